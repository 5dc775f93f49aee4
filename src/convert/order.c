// SPDX-License-Identifier: MIT
// The order of rows. RoPE rotates pairs of a head's elements, interleaved or NeoX pairs (graph.h: frit_rope_style). A
// checkpoint has one style (frit.rope.style), and GGUF files of the architecture may have the other. Then the rotated
// rows of Q and K are permuted, which does not change results. Value heads of delta nets (frit.delta.grouped_heads) are
// reordered in a similar way.
#include "convert/convert.h"

#include <string.h>

// Returns the source row of interleaved heads: head j of the result is the (j / n_groups)-th of group j % n_groups.
static int64_t dealt_source(const frit_row_order *order, int64_t i)
{
    const int64_t row = i - order->offset, j = row / order->head;
    if (row < 0) return i;
    return order->offset + (j % order->n_groups * order->n_each + j / order->n_groups) * order->head +
           row % order->head;
}

int64_t frit_row_order_source(const frit_row_order *order, int64_t i)
{
    if (order->n_groups > 0) return dealt_source(order, i);
    if (order->take > 0) i = i / order->take * order->of + order->offset + i % order->take;
    if (order->permuted == 0 || (order->end > 0 && i >= order->end)) return i;
    const int64_t row = i % order->head, half = order->permuted / 2;
    if (row >= order->permuted) return i;
    return i - row + (order->to_interleaved ? row / 2 + row % 2 * half : row % half * 2 + row / half);
}

// Splits "blk.12.attn_q.weight" into 12 and "attn_q.weight"; NULL outside layers.
static const char *part_of(const char *name, int32_t *layer)
{
    if (strncmp(name, "blk.", 4) != 0) return NULL;
    *layer = 0;
    for (name += 4; *name >= '0' && *name <= '9' && *layer < 100000; name++) *layer = 10 * *layer + (*name - '0');
    return *name == '.' ? name + 1 : NULL;
}

// Returns the order of value heads of a delta net: adjacent heads that share a key head become interleaved.
static frit_row_order order_of_values(const frit_hparams *hp, const char *part)
{
    const frit_recurrent_params *r = &hp->recurrent;
    const int64_t dim = r->rank > 0 ? r->inner / r->rank : 0, keys = 2 * (int64_t)r->n_groups * r->state;
    const struct {
        const char *part;
        int64_t offset, head;
        bool of_numbers, of_columns;
    } parts[] = {
        {"attn_qkv.weight", keys, dim, false, false}, {"ssm_conv1d.weight", keys, dim, false, false},
        {"attn_gate.weight", 0, dim, false, false},   {"ssm_alpha.weight", 0, 1, false, false},
        {"ssm_beta.weight", 0, 1, false, false},      {"ssm_a", 0, 1, true, false},
        {"ssm_dt.bias", 0, 1, true, false},           {"ssm_out.weight", 0, dim, false, true},
    };
    for (size_t i = 0; r->grouped_heads && i < FRIT_COUNT(parts); i++)
        if (strcmp(part, parts[i].part) == 0)
            return (frit_row_order){.offset = parts[i].offset,
                                    .head = parts[i].head,
                                    .n_groups = r->n_groups,
                                    .n_each = r->rank / r->n_groups,
                                    .of_numbers = parts[i].of_numbers,
                                    .of_columns = parts[i].of_columns};
    return (frit_row_order){0};
}

frit_row_order frit_row_order_of(const frit_hparams *hp, const frit_arch *arch, const char *name)
{
    static const struct {
        const char *part;
        bool is_fused;   // has rows of v after q and k
    } permuted[] = {{"attn_q.weight", false}, {"attn_q.bias", false},    {"attn_k.weight", false},
                    {"attn_k.bias", false},   {"attn_qkv.weight", true}, {"attn_qkv.bias", true}};
    int32_t layer;
    const char *part = part_of(name, &layer);
    if (!part || layer >= hp->n_layer) return (frit_row_order){0};
    const frit_row_order values = order_of_values(hp, part);
    if (values.n_groups > 0 || hp->rope_style == arch->rope_style) return values;
    for (size_t i = 0; i < FRIT_COUNT(permuted); i++) {
        const frit_layer_hparams *l = &hp->layers[layer];
        if (strcmp(part, permuted[i].part) != 0) continue;
        return (frit_row_order){.head = l->k_dim,
                                .end = permuted[i].is_fused ? (int64_t)(l->n_head + l->n_head_kv) * l->k_dim : 0,
                                .permuted = hp->rope.dim,
                                .to_interleaved = arch->rope_style == FRIT_ROPE_INTERLEAVED,
                                .of_numbers = strstr(part, ".bias") != NULL};
    }
    return (frit_row_order){0};
}

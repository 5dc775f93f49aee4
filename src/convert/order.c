// SPDX-License-Identifier: MIT
// The order of rows. Rotary embeddings turn pairs of a head's elements: neighbours, or one of each half. A checkpoint
// says which its rows are written for (frit.rope.style), an architecture what its GGUF files have; where they differ,
// the rows of Q and K that rotate change places, and nothing else notices.
#include "convert/convert.h"

#include <string.h>

int64_t frit_row_order_source(const frit_row_order *order, int64_t i)
{
    if (order->take > 0) i = i / order->take * order->of + order->offset + i % order->take;
    if (order->turned == 0) return i;
    const int64_t row = i % order->head, half = order->turned / 2;
    if (row >= order->turned) return i;
    return i - row + (order->to_neighbours ? row / 2 + row % 2 * half : row % half * 2 + row / half);
}

// "blk.12.attn_q.weight" -> 12 and "attn_q.weight"; NULL if it is of no layer.
static const char *part_of(const char *name, int32_t *layer)
{
    if (strncmp(name, "blk.", 4) != 0) return NULL;
    *layer = 0;
    for (name += 4; *name >= '0' && *name <= '9' && *layer < 100000; name++) *layer = 10 * *layer + (*name - '0');
    return *name == '.' ? name + 1 : NULL;
}

frit_row_order frit_row_order_of(const frit_hparams *hp, const frit_arch *arch, const char *name)
{
    static const char *const turned[] = {"attn_q.weight", "attn_q.bias", "attn_k.weight", "attn_k.bias"};
    int32_t layer;
    const char *part = part_of(name, &layer);
    if (!part || hp->rope_style == arch->rope_style || layer >= hp->n_layer) return (frit_row_order){0};
    for (size_t i = 0; i < FRIT_COUNT(turned); i++) {
        if (strcmp(part, turned[i]) != 0) continue;
        return (frit_row_order){.head = hp->layers[layer].k_dim,
                                .turned = hp->rope.dim,
                                .to_neighbours = arch->rope_style == FRIT_ROPE_NEIGHBOURS,
                                .of_numbers = strstr(part, ".bias") != NULL};
    }
    return (frit_row_order){0};
}

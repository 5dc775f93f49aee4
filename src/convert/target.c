// SPDX-License-Identifier: MIT
// Makes the contents of a checkpoint's GGUF file: each tensor in the file's row order and type, computed when it is
// read. Models that are quantized while they load (engine/model/model.c) use the same tensors, so their results are
// equal.
#include "convert/convert.h"
#include "format/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct target {
    frit_checkpoint *ckpt;   // gets new tensors
    const frit_tensor *old;
    size_t n_old;
    frit_map old_index;
    const frit_arch *arch;   // NULL: the source is GGUF
    frit_hparams *hp;
    frit_dtype *types;   // source types of the new tensors
} target;

// Mamba 2 has norms of groups of channels, which folders store as one vector.
static void group_norm(const target *t, frit_tensor *tensor)
{
    const char *part = strstr(tensor->name, ".ssm_norm.weight");
    const int64_t n_groups = t->hp->recurrent.n_groups, n = tensor->shape[0];
    int64_t at;
    if (!part || tensor->n_dims != 1 || n_groups < 2 || n != t->hp->recurrent.inner || n % n_groups != 0) return;
    char name[64];
    snprintf(name, sizeof name, "%.*s.ssm_d", (int)(part - tensor->name), tensor->name);
    if (!frit_map_get(&t->old_index, frit_str_of(name), &at)) return;   // a delta net has a norm of one head
    tensor->n_dims = 2;
    tensor->shape[0] = n_groups;
    tensor->shape[1] = n / n_groups;
}

// Reshapes convolutions from [channels, 1, kernel] to one row per channel, and ssm_a and ssm_d of Mamba 2, with one
// number per head, to columns.
static void reshape(const target *t, frit_tensor *tensor)
{
    const bool is_conv = strstr(tensor->name, "ssm_conv1d") || strstr(tensor->name, "shortconv.conv");
    const char *part = strstr(tensor->name, ".ssm_a");
    if (is_conv && tensor->n_dims == 3 && tensor->shape[1] == 1) {
        tensor->shape[1] = tensor->shape[2];
        tensor->shape[2] = 1;
        tensor->n_dims = 2;
    }
    if (!part) part = strstr(tensor->name, ".ssm_d");
    if (!part || part[6] || tensor->n_dims != 1) return;
    char name[64];
    int64_t both[2];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%.*s.ssm_%c", (int)(part - tensor->name), tensor->name, "ad"[i]);
        if (!frit_map_get(&t->old_index, frit_str_of(name), &both[i])) return;
    }
    if (t->old[both[0]].n_dims == 1) tensor->n_dims = 2;   // [heads, 1]
}

static int64_t source_row(const void *order, int64_t i)
{
    return frit_row_order_source(order, i);
}

static bool is_multiplier(const char *name)
{
    const size_t n = strlen(name);
    return n > 11 && strcmp(name + n - 11, ".multiplier") == 0;
}

static const frit_tensor *find_old(const target *t, const char *name)
{
    int64_t at;
    return frit_map_get(&t->old_index, frit_str_of(name), &at) ? &t->old[at] : NULL;
}

// Multiplies "NAME.weight" by "NAME.multiplier", which GGUF has no tensor for.
static frit_status apply_multiplier(const target *t, const char *name, frit_tensor *tensor)
{
    char full[128];
    const size_t n = strlen(name);
    if (n < 7 || strcmp(name + n - 7, ".weight") != 0) return FRIT_OK;
    snprintf(full, sizeof full, "%.*s.multiplier", (int)(n - 7), name);
    const frit_tensor *factors = find_old(t, full);
    return !factors ? FRIT_OK : frit_multiply_rows(&t->ckpt->arena, tensor, factors->data, factors->shape[0]);
}

// Fails for a tied table that is scaled, because it would need two factors.
static frit_status check_tied(const target *t)
{
    const bool scaled = find_old(t, "output.multiplier") || find_old(t, "token_embd.multiplier");
    if (!scaled || find_old(t, "output.weight")) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: embeddings and output are tied and scaled, which GGUF files of the architecture "
                          "'%s' cannot express",
                          t->ckpt->path, t->arch->name);
}

// Adds a tensor of the target with the rows that `order` takes.
static frit_status add_target(target *t, const char *name, const frit_tensor *from, frit_row_order order)
{
    frit_arena *arena = &t->ckpt->arena;
    frit_tensor to = *from;
    to.name = name;
    if (t->arch) reshape(t, &to), group_norm(t, &to);   // first, because recipes work on rows
    if (t->arch) FRIT_TRY(apply_multiplier(t, from->name, &to));
    if (order.take > 0 || order.permuted > 0 || order.n_groups > 0) {
        frit_row_order *kept = frit_arena_new(arena, frit_row_order, 1);
        if (!kept) return frit_fail_memory(sizeof *kept, name);
        *kept = order;
        const int64_t n = order.of_numbers ? frit_tensor_n_elems(from) : frit_tensor_n_rows(from);
        const int64_t n_taken = order.take > 0 ? n / order.of * order.take : n;
        if (order.of_numbers)
            FRIT_TRY(frit_reorder_numbers(arena, &to, source_row, kept, n_taken));
        else if (order.of_columns)
            FRIT_TRY(frit_reorder_columns(arena, &to, source_row, kept));
        else
            FRIT_TRY(frit_reorder(arena, &to, source_row, kept, n_taken, order.permuted > 0 ? order.head : 0));
    }
    t->types[t->ckpt->n_tensors] = from->dtype;
    return frit_checkpoint_add_tensor(t->ckpt, &to);
}

// Splits "blk.0.ffn_gate_up_exps.weight" and ".bias" into two tensors. Sets *is_fused for such a tensor.
static frit_status split_fused(target *t, const frit_tensor *from, bool *is_fused)
{
    static const char *const names[] = {"gate_exps", "up_exps"};
    const char *at = strstr(from->name, "gate_up_exps.");
    const bool is_bias = at && strcmp(strchr(at, '.'), ".bias") == 0;
    const int64_t n = at ? from->shape[1] : 0;   // [n_expert, gate and up, in], a bias [n_expert, gate and up]
    *is_fused = at && from->n_dims == (is_bias ? 2 : 3) && n % 2 == 0;
    for (int i = 0; *is_fused && i < 2; i++) {
        char name[128];
        snprintf(name, sizeof name, "%.*s%s%s", (int)(at - from->name), from->name, names[i], strchr(at, '.'));
        const char *copy = frit_arena_text(&t->ckpt->arena, name, strlen(name));
        if (!copy) return frit_fail_memory(strlen(name), "the name of a tensor");
        FRIT_TRY(add_target(t, copy, from,
                            (frit_row_order){.of = n, .take = n / 2, .offset = i * (n / 2), .of_numbers = is_bias}));
    }
    return FRIT_OK;
}

static frit_status add_rope_factors(target *t)
{
    const float *factors;
    int64_t at;
    FRIT_TRY(frit_convert_rope_factors(t->hp, &t->ckpt->arena, &factors));
    if (!factors || frit_map_get(&t->old_index, frit_str_of("rope_freqs.weight"), &at)) return FRIT_OK;
    const int64_t n = t->hp->rope.dim / 2;
    const frit_tensor tensor = {.name = "rope_freqs.weight",
                                .dtype = FRIT_DTYPE_F32,
                                .n_dims = 1,
                                .shape = {n, 1, 1, 1},
                                .data = factors,
                                .n_bytes = (uint64_t)n * sizeof *factors};
    t->types[t->ckpt->n_tensors] = FRIT_DTYPE_F32;
    return frit_checkpoint_add_tensor(t->ckpt, &tensor);
}

static frit_status add_one(target *t, const frit_tensor *from)
{
    bool is_fused = false;
    if (t->arch && is_multiplier(from->name)) return FRIT_OK;
    if (t->arch) FRIT_TRY(split_fused(t, from, &is_fused));
    if (is_fused) return FRIT_OK;
    const frit_row_order order = t->arch ? frit_row_order_of(t->hp, t->arch, from->name) : (frit_row_order){0};
    const int64_t n_rows = from->n_dims < 2 ? from->shape[0] : from->shape[from->n_dims - 2];
    if (order.permuted > 0 && n_rows % order.head != 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has %" PRId64 " rows, expected a multiple of %" PRId64,
                              t->ckpt->path, from->name, n_rows, order.head);
    return add_target(t, from->name, from, order);
}

// Makes a new list of tensors. The old tensors stay in the arena, because the new ones read them.
static frit_status list_tensors(target *t)
{
    frit_checkpoint *ckpt = t->ckpt;
    ckpt->tensors = NULL;
    ckpt->n_tensors = ckpt->tensor_capacity = 0;
    ckpt->tensor_index = (frit_map){0};
    t->types = frit_arena_new(&ckpt->arena, frit_dtype, 2 * t->n_old + 1);
    if (!t->types) return frit_fail_memory(2 * t->n_old * sizeof *t->types, "the types of tensors");
    if (t->arch) FRIT_TRY(check_tied(t));
    if (t->arch) FRIT_TRY(add_rope_factors(t));
    for (size_t i = 0; i < t->n_old; i++) FRIT_TRY(add_one(t, &t->old[i]));
    return t->arch ? frit_convert_add_keys(&ckpt->meta, t->hp, t->arch) : FRIT_OK;
}

frit_status frit_convert_checkpoint(frit_checkpoint *ckpt, const frit_arch *arch, frit_hparams *hp,
                                    const frit_convert_types *types, const frit_log *log)
{
    target t = {.ckpt = ckpt,
                .old = ckpt->tensors,
                .n_old = ckpt->n_tensors,
                .old_index = ckpt->tensor_index,
                .arch = arch,
                .hp = hp};
    frit_status status = list_tensors(&t);
    if (status == FRIT_OK) status = frit_convert_encode(ckpt, types, t.types, !arch, log);
    frit_map_free(&t.old_index);
    return status;
}

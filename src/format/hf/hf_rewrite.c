// SPDX-License-Identifier: MIT
// Rewrites of tensors into the conventions of GGUF. Vectors are computed at once, matrices when they are read.
#include "format/hf/hf.h"
#include "format/rows.h"

#include <stdio.h>
#include <stdlib.h>

frit_status frit_hf_plus_one(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    if (is_bias) return FRIT_OK;
    bool is_float =
        tensor->dtype == FRIT_DTYPE_F32 || tensor->dtype == FRIT_DTYPE_F16 || tensor->dtype == FRIT_DTYPE_BF16;
    if (tensor->n_dims != 1 || !is_float)
        return frit_fail(FRIT_E_FORMAT,
                         "tensor '%s' is not a vector of f32, f16 or bf16, expected for the weight of a norm",
                         tensor->name);
    int64_t n = tensor->shape[0];
    float *values = frit_arena_new(&hf->ckpt->arena, float, (size_t)n);
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, tensor->name);
    FRIT_TRY(frit_tensor_decode_rows(tensor, 0, 1, values));
    for (int64_t i = 0; i < n; i++) values[i] += 1;
    tensor->dtype = FRIT_DTYPE_F32;
    tensor->data = values;
    tensor->n_bytes = (uint64_t)n * sizeof *values;
    tensor->is_mapped = false;
    return FRIT_OK;
}

frit_status frit_hf_flatten(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)hf;
    for (int i = 2; i < tensor->n_dims && !is_bias; i++) tensor->shape[1] *= tensor->shape[i], tensor->shape[i] = 1;
    if (tensor->n_dims > 2 && !is_bias) tensor->n_dims = 2;
    return FRIT_OK;
}

frit_status frit_hf_transpose(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    return is_bias ? FRIT_OK : frit_transpose(&hf->ckpt->arena, tensor);
}

frit_status frit_hf_split_gate_up(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    const char *layer = strstr(tensor->name, "layers.");
    if (!layer || tensor->n_dims != 2 || tensor->shape[0] % 2 != 0)
        return frit_fail(
            FRIT_E_FORMAT,
            "tensor '%s' has %d dimensions and %lld rows, expected a layer's matrix with an even number of "
            "rows: gate and up",
            tensor->name, tensor->n_dims, (long long)tensor->shape[0]);
    char name[64];
    const char *kind = frit_hf_written(hf, "expert_count") > 0 ? "_shexp" : "";
    const int n =
        snprintf(name, sizeof name, "blk.%d.ffn_up%s.weight", (int)strtol(layer + strlen("layers."), NULL, 10), kind);
    const int64_t half = tensor->shape[0] / 2;
    frit_tensor up = frit_tensor_cut(tensor, half, half);
    *tensor = frit_tensor_cut(tensor, 0, half);
    up.name = frit_arena_text(&hf->ckpt->arena, name, (size_t)n);
    if (!up.name) return frit_fail_memory((size_t)n, "a tensor name");
    return frit_checkpoint_add_tensor(hf->ckpt, &up);
}

typedef struct groups {
    int64_t n, n_head, dim;   // groups of heads; heads of Q in a group; rows of a head
} groups;

// The source of row i in the order all q, all k, all v.
static int64_t ungrouped_row(const void *order, int64_t i)
{
    const groups *g = order;
    const int64_t head = i / g->dim, n_q = g->n * g->n_head, side = head < n_q ? 0 : head < n_q + g->n ? 1 : 2;
    const int64_t group = side == 0 ? head / g->n_head : (head - n_q) % g->n;
    const int64_t place = side == 0 ? head % g->n_head : g->n_head + side - 1;
    return (group * (g->n_head + 2) + place) * g->dim + i % g->dim;
}

frit_status frit_hf_ungroup_qkv(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    const int64_t n_head = (int64_t)frit_hf_written(hf, "attention.head_count");
    const int64_t n_kv = (int64_t)frit_hf_written(hf, "attention.head_count_kv");
    const int64_t dim = (int64_t)frit_hf_written(hf, "attention.key_length");
    if (tensor->shape[0] != (n_head + 2 * n_kv) * dim)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld rows, expected %lld for %lld and %lld heads of %lld",
                         tensor->name, (long long)tensor->shape[0], (long long)((n_head + 2 * n_kv) * dim),
                         (long long)n_head, (long long)n_kv, (long long)dim);
    groups *g = frit_arena_new(&hf->ckpt->arena, groups, 1);
    if (!g) return frit_fail_memory(sizeof *g, tensor->name);
    *g = (groups){n_kv, n_head / n_kv, dim};
    if (is_bias) return frit_reorder_numbers(&hf->ckpt->arena, tensor, ungrouped_row, g, tensor->shape[0]);
    return frit_reorder(&hf->ckpt->arena, tensor, ungrouped_row, g, tensor->shape[0], 0);
}

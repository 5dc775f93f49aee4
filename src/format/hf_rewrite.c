// SPDX-License-Identifier: MIT
// Rewrites of tensors into the conventions of GGUF. What a name alone cannot say is copied into the checkpoint.
#include "format/hf.h"

frit_status frit_hf_add_one(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    if (is_bias) return FRIT_OK;
    bool is_float =
        tensor->dtype == FRIT_DTYPE_F32 || tensor->dtype == FRIT_DTYPE_F16 || tensor->dtype == FRIT_DTYPE_BF16;
    if (tensor->n_dims != 1 || !is_float)
        return frit_fail(FRIT_E_FORMAT,
                         "tensor '%s' is not a vector of f32, f16 or bf16, as the weight of a norm must be",
                         tensor->name);
    int64_t n = tensor->shape[0];
    float *values = frit_arena_new(&hf->ckpt->arena, float, (size_t)n);
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, tensor->name);
    frit_tensor_decode_row(tensor, 0, values);
    for (int64_t i = 0; i < n; i++) values[i] += 1;
    tensor->dtype = FRIT_DTYPE_F32;
    tensor->data = values;
    tensor->n_bytes = (uint64_t)n * sizeof *values;
    tensor->is_mapped = false;
    return FRIT_OK;
}

// Copies elements one by one: they have a size of their own.
static frit_status check_elements(const frit_tensor *tensor, int n_dims, size_t *n_bytes)
{
    *n_bytes = (size_t)frit_dtype_row_bytes(tensor->dtype, 1);
    if (tensor->n_dims == n_dims && frit_dtype_get(tensor->dtype)->block_elems == 1) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not one of %d dimensions in a plain number format", tensor->name,
                     n_dims);
}

frit_status frit_hf_transpose(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    if (is_bias) return FRIT_OK;
    size_t size;
    FRIT_TRY(check_elements(tensor, 2, &size));
    const int64_t n_rows = tensor->shape[0], n = tensor->shape[1];
    uint8_t *copy = frit_arena_alloc(&hf->ckpt->arena, (size_t)tensor->n_bytes, 64);
    if (!copy) return frit_fail_memory((size_t)tensor->n_bytes, tensor->name);
    const uint8_t *data = tensor->data;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t i = 0; i < n; i++)
            memcpy(copy + (i * n_rows + r) * (int64_t)size, data + (r * n + i) * (int64_t)size, size);
    tensor->shape[0] = n;
    tensor->shape[1] = n_rows;
    tensor->data = copy;
    tensor->is_mapped = false;
    return FRIT_OK;
}

frit_status frit_hf_ungroup_qkv(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    const int64_t n_head = (int64_t)frit_hf_written(hf, "attention.head_count");
    const int64_t n_kv = (int64_t)frit_hf_written(hf, "attention.head_count_kv");
    const int64_t dim = (int64_t)frit_hf_written(hf, "attention.key_length"), group = n_head / n_kv;
    if (tensor->shape[0] != (n_head + 2 * n_kv) * dim)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld rows, expected %lld for %lld and %lld heads of %lld",
                         tensor->name, (long long)tensor->shape[0], (long long)((n_head + 2 * n_kv) * dim),
                         (long long)n_head, (long long)n_kv, (long long)dim);
    const int64_t bytes = (int64_t)(tensor->n_bytes / (uint64_t)tensor->shape[0]) * dim;   // of one head
    uint8_t *copy = frit_arena_alloc(&hf->ckpt->arena, (size_t)tensor->n_bytes, 64);
    if (!copy) return frit_fail_memory((size_t)tensor->n_bytes, tensor->name);
    const uint8_t *from = tensor->data;
    for (int64_t g = 0; g < n_kv; g++, from += (group + 2) * bytes) {
        memcpy(copy + g * group * bytes, from, (size_t)(group * bytes));
        memcpy(copy + (n_head + g) * bytes, from + group * bytes, (size_t)bytes);
        memcpy(copy + (n_head + n_kv + g) * bytes, from + (group + 1) * bytes, (size_t)bytes);
    }
    tensor->data = copy;
    tensor->is_mapped = false;
    return FRIT_OK;
}

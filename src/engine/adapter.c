// SPDX-License-Identifier: MIT
// Adapters: opening one for a model, in the form that kernels read.
//
//     a    as the file has it, or as f32 if it is in a type that is no plain number
//     b    turned, [rank, n_out], so that numbers beside each other belong to results beside each other; its rows where
//          the model has them (convert/convert.h)
//
// Files are read, not mapped: they are small, and a file that shrinks later does no harm.
#include "convert/convert.h"
#include "engine/adapter.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

// ------------------------------------------------------------------------------- into the kernels' form

static bool is_plain(frit_dtype type)
{
    return type == FRIT_DTYPE_F32 || type == FRIT_DTYPE_F16 || type == FRIT_DTYPE_BF16;
}

// Here the adapter is to blame; later it would be the model's logits that are not finite.
static frit_status check_finite(const frit_tensor *tensor)
{
    enum { MOST = 1 << 14 };
    const int64_t width = tensor->shape[tensor->n_dims - 1], n_rows = frit_tensor_n_elems(tensor) / width;
    const int64_t n_at_once = width < MOST ? MOST / width : 1;
    float *values = malloc((size_t)(n_at_once * width) * sizeof *values);
    if (!values) return frit_fail_memory((size_t)(n_at_once * width) * sizeof *values, tensor->name);
    frit_status status = FRIT_OK;
    for (int64_t row = 0; row < n_rows && status == FRIT_OK; row += n_at_once) {
        const int64_t n = n_rows - row < n_at_once ? n_rows - row : n_at_once;
        status = frit_tensor_decode_rows(tensor, row, n, values);
        for (int64_t i = 0; i < n * width && status == FRIT_OK; i++)
            if (!isfinite(values[i]))
                status = frit_fail(FRIT_E_FORMAT, "tensor '%s' holds %g at %lld, expected finite numbers", tensor->name,
                                   (double)values[i], (long long)(row * width + i));
    }
    free(values);
    return status;
}

static frit_status decode(frit_adapter *adapter, const frit_tensor *tensor, float **out)
{
    const int64_t n = frit_tensor_n_elems(tensor), width = tensor->shape[tensor->n_dims - 1];
    float *values = *out = frit_arena_new(&adapter->arena, float, (size_t)n);
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, tensor->name);
    FRIT_TRY(frit_tensor_decode_rows(tensor, 0, n / width, values));
    adapter->info.n_bytes += (uint64_t)n * sizeof *values;
    return FRIT_OK;
}

static frit_status take_a(frit_adapter *adapter, const frit_tensor *a, frit_low_rank *low)
{
    low->a_type = a->dtype;
    low->a = a->data;
    adapter->info.n_bytes += a->n_bytes;
    if (is_plain(a->dtype) && a->data) return FRIT_OK;
    float *values;
    FRIT_TRY(decode(adapter, a, &values));
    low->a_type = FRIT_DTYPE_F32;
    low->a = (const uint8_t *)values;
    return FRIT_OK;
}

// [n, n_out, rank] becomes [n, rank, n_out].
static frit_status turn_b(frit_adapter *adapter, const frit_tensor *b, const frit_row_order *order, frit_low_rank *low)
{
    const int64_t rank = low->rank, n_out = low->b_width, n = frit_tensor_n_elems(b) / rank / n_out;
    const uint8_t *from = b->data;
    low->b_type = b->dtype;
    if (!is_plain(b->dtype) || !b->data) {
        float *values;
        FRIT_TRY(decode(adapter, b, &values));
        low->b_type = FRIT_DTYPE_F32;
        from = (const uint8_t *)values;
    }
    const size_t size = frit_dtype_get(low->b_type)->block_bytes, n_bytes = (size_t)frit_tensor_n_elems(b) * size;
    uint8_t *to = frit_arena_alloc(&adapter->arena, n_bytes, 1);
    if (!to) return frit_fail_memory(n_bytes, b->name);
    for (int64_t m = 0; m < n; m++, from += (size_t)(n_out * rank) * size)
        for (int64_t j = 0; j < rank; j++)
            for (int64_t o = 0; o < n_out; o++, to += size)
                memcpy(to, from + (size_t)(frit_row_order_source(order, o) * rank + j) * size, size);
    low->b = to - n_bytes;
    adapter->info.n_bytes += n_bytes;
    return FRIT_OK;
}

// From the adapter's order of rows to the model's.
static frit_status find_order(const frit_adapter *adapter, const frit_adapter_pair *pair, frit_row_order *order)
{
    const frit_model *model = adapter->model;
    const char *style = adapter->file.rope_style;
    frit_hparams from = model->hp;
    frit_arch to = *model->arch;
    if (style) from.rope_style = strcmp(style, "halves") == 0 ? FRIT_ROPE_HALVES : FRIT_ROPE_NEIGHBOURS;
    if (!style) from.rope_style = model->arch->rope_style;
    to.rope_style = model->hp.rope_style;
    *order = frit_row_order_of(&from, &to, pair->name);
    const int64_t n_out = pair->b.shape[pair->b.n_dims - 2];
    if (order->turned == 0 || n_out % order->head == 0) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld rows, expected a multiple of %lld", pair->b.name,
                     (long long)n_out, (long long)order->head);
}

static frit_status take_pair(frit_adapter *adapter, const frit_adapter_pair *pair)
{
    frit_adapter_part *part = &adapter->parts[adapter->n_parts++];
    const frit_checkpoint *base = adapter->model->ckpt;
    const int last = pair->b.n_dims - 1;
    part->name = pair->name;
    part->base = frit_checkpoint_find(base, pair->name);
    if (!part->base) part->base = frit_checkpoint_find(base, "token_embd.weight");   // of a shared head
    part->low =
        (frit_low_rank){.rank = (int32_t)pair->b.shape[last], .scale = pair->scale, .b_width = pair->b.shape[last - 1]};
    if (adapter->info.rank < part->low.rank) adapter->info.rank = part->low.rank;
    frit_row_order order;
    FRIT_TRY(check_finite(&pair->a));
    FRIT_TRY(check_finite(&pair->b));
    FRIT_TRY(find_order(adapter, pair, &order));
    FRIT_TRY(take_a(adapter, &pair->a, &part->low));
    return turn_b(adapter, &pair->b, &order, &part->low);
}

static frit_status take_directions(frit_adapter *adapter, const frit_adapter_options *options)
{
    const frit_adapter_file *file = &adapter->file;
    const size_t first = options->first_layer > 0 ? (size_t)options->first_layer : 1;
    const size_t last = options->last_layer > 0 ? (size_t)options->last_layer : SIZE_MAX;
    if (options->first_layer < 0 || options->last_layer < 0 || first > last)
        return frit_fail(FRIT_E_INVALID, "layers %d to %d are no range", options->first_layer, options->last_layer);
    adapter->directions = frit_arena_new(&adapter->arena, const float *, (size_t)adapter->model->hp.n_layer);
    if (!adapter->directions) return frit_fail_memory(file->n_directions * sizeof(float *), "a control vector");
    for (size_t i = first; i < file->n_directions && i < (size_t)adapter->model->hp.n_layer && i <= last; i++) {
        float *values;
        if (!file->directions[i]) continue;
        FRIT_TRY(check_finite(file->directions[i]));
        FRIT_TRY(decode(adapter, file->directions[i], &values));
        adapter->directions[i] = values;
        adapter->info.n_tensors++;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- opening

// Whether every tensor is one that graphs multiply by.
static frit_status check_used(frit_adapter *adapter)
{
    const frit_model *model = adapter->model;
    frit_arena arena = {0};
    frit_graph graph;
    frit_adapters bound = {0};
    frit_graph_init(&graph, &arena, 1, 1);
    frit_status status = frit_adapters_bind(&bound, &adapter, 1, model->hp.n_layer, &arena);
    if (status == FRIT_OK)
        status = frit_arch_build(&graph, model->arch, &model->hp, &model->weights,
                                 &(frit_build_options){.adapters = &bound});
    for (size_t i = 0; i < bound.n && status == FRIT_OK; i++)
        if (!bound.matrices[i].is_used)
            status = frit_fail(FRIT_E_UNSUPPORTED, "adapters of '%s' are not supported in the architecture '%s'",
                               bound.matrices[i].name, model->arch->name);
    frit_map_free(&bound.index);
    frit_arena_free(&arena);
    return status;
}

static frit_status open_adapter(frit_adapter *adapter, const char *path, const frit_adapter_options *options)
{
    const frit_model *model = adapter->model;
    if (model->vocab_only)
        return frit_fail(FRIT_E_INVALID, "%s has no weights that an adapter could add to", model->info.path);
    FRIT_TRY(frit_adapter_file_open(&adapter->file, path, model->ckpt, &(frit_checkpoint_options){.no_mmap = true}));
    const frit_adapter_file *file = &adapter->file;
    adapter->info = (frit_adapter_info){.path = file->ckpt->path,
                                        .name = file->name,
                                        .format = file->format,
                                        .kind = file->is_vector ? "control vector" : "lora",
                                        .n_tensors = (int32_t)file->n_pairs,
                                        .alpha = file->alpha};
    if (file->is_vector) return take_directions(adapter, options);
    adapter->parts = frit_arena_new(&adapter->arena, frit_adapter_part, file->n_pairs);
    if (!adapter->parts) return frit_fail_memory(file->n_pairs * sizeof *adapter->parts, "an adapter");
    for (size_t i = 0; i < file->n_pairs; i++) FRIT_TRY(take_pair(adapter, &file->pairs[i]));
    return check_used(adapter);
}

frit_status frit_adapter_open(frit_adapter **out, frit_model *model, const char *path,
                              const frit_adapter_options *options)
{
    static const frit_adapter_options defaults;
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(path);
    FRIT_REQUIRE_UNUSED(options);
    frit_adapter *adapter = calloc(1, sizeof *adapter);
    if (!adapter) return frit_fail_memory(sizeof *adapter, "an adapter");
    atomic_init(&adapter->n_refs, 1);
    frit_model_retain(model);
    adapter->model = model;
    frit_status status = open_adapter(adapter, path, options ? options : &defaults);
    if (status != FRIT_OK) {
        if (!strstr(frit_error(), path)) status = frit_fail(status, "%s: %s", path, frit_error());
        frit_adapter_free(adapter);
        return status;
    }
    *out = adapter;
    return FRIT_OK;
}

void frit_adapter_retain(frit_adapter *adapter)
{
    atomic_fetch_add(&adapter->n_refs, 1);
}

void frit_adapter_free(frit_adapter *adapter)
{
    if (!adapter || atomic_fetch_sub(&adapter->n_refs, 1) > 1) return;
    frit_adapter_file_close(&adapter->file);
    frit_arena_free(&adapter->arena);
    frit_model_free(adapter->model);
    free(adapter);
}

frit_status frit_adapter_get_info(const frit_adapter *adapter, frit_adapter_info *info)
{
    FRIT_REQUIRE(info);
    *info = (frit_adapter_info){0};
    FRIT_REQUIRE(adapter);
    *info = adapter->info;
    return FRIT_OK;
}

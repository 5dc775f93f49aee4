// SPDX-License-Identifier: MIT
// Opens an adapter for a model, in the form that kernels read.
//
//     a    as in the file, or f32 if its type is not f32, f16 or bf16
//     b    transposed to [rank, n_out], so that neighbouring numbers belong to neighbouring results; rows are in the
//          model's order (convert/convert.h) and multiplied by the gains of magnitudes
//
// Files are read, not mapped: they are small, and a file that shrinks later does no harm.
#include "convert/convert.h"
#include "engine/lora/adapter.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- into the kernels' form

static bool is_plain(frit_dtype type)
{
    return type == FRIT_DTYPE_F32 || type == FRIT_DTYPE_F16 || type == FRIT_DTYPE_BF16;
}

// Checks an adapter's numbers when it is opened. Otherwise the model's logits would seem wrong later.
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

// Makes a tensor of the adapter with room for numbers of this type.
static frit_status make_tensor(frit_adapter *adapter, const frit_tensor *like, frit_dtype type, frit_tensor **out,
                               uint8_t **bytes)
{
    const size_t n_bytes = (size_t)frit_tensor_n_elems(like) * frit_dtype_get(type)->block_bytes;
    frit_tensor *tensor = *out = frit_arena_new(&adapter->arena, frit_tensor, 1);
    *bytes = (uint8_t *)frit_arena_new(&adapter->arena, float, (n_bytes + sizeof(float) - 1) / sizeof(float));
    if (!tensor || !*bytes) return frit_fail_memory(n_bytes, like->name);
    *tensor = *like;
    tensor->dtype = type;
    tensor->data = *bytes;
    tensor->n_bytes = n_bytes;
    tensor->is_mapped = false;
    tensor->recipe = NULL;
    adapter->info.n_bytes += n_bytes;
    return FRIT_OK;
}

static frit_status decode_to_f32(frit_adapter *adapter, const frit_tensor *tensor, const frit_tensor **out)
{
    const int64_t n = frit_tensor_n_elems(tensor), width = tensor->shape[tensor->n_dims - 1];
    frit_tensor *made;
    uint8_t *bytes;
    FRIT_TRY(make_tensor(adapter, tensor, FRIT_DTYPE_F32, &made, &bytes));
    *out = made;
    return frit_tensor_decode_rows(tensor, 0, n / width, (float *)(void *)bytes);
}

static frit_status set_a(frit_adapter *adapter, const frit_tensor *a, frit_low_rank *low)
{
    if (!is_plain(a->dtype) || !a->data) return decode_to_f32(adapter, a, &low->a);
    low->a = a;   // owned by the file
    adapter->info.n_bytes += a->n_bytes;
    return FRIT_OK;
}

// Transposes [n, n_out, rank] to [n, rank, n_out].
static frit_status transpose_b(frit_adapter *adapter, const frit_tensor *b, const frit_row_order *order,
                               frit_low_rank *low)
{
    const int last = b->n_dims - 1;
    const int64_t rank = low->rank, n_out = b->shape[last - 1], n = frit_tensor_n_elems(b) / rank / n_out;
    const frit_tensor *source = b;
    if (!is_plain(b->dtype) || !b->data) FRIT_TRY(decode_to_f32(adapter, b, &source));
    const size_t size = frit_dtype_get(source->dtype)->block_bytes;
    const uint8_t *from = source->data;
    frit_tensor *transposed;
    uint8_t *to;
    FRIT_TRY(make_tensor(adapter, b, source->dtype, &transposed, &to));
    transposed->shape[last - 1] = rank, transposed->shape[last] = n_out;
    for (int64_t m = 0; m < n; m++, from += (size_t)(n_out * rank) * size)
        for (int64_t j = 0; j < rank; j++)
            for (int64_t o = 0; o < n_out; o++, to += size)
                memcpy(to, from + (size_t)(frit_row_order_source(order, o) * rank + j) * size, size);
    low->b = transposed;
    return FRIT_OK;
}

// Finds the order that leads from the adapter's rows to the model's.
static frit_status find_order(const frit_adapter *adapter, const frit_adapter_pair *pair, frit_row_order *order)
{
    const frit_model *model = adapter->model;
    const char *style = adapter->file.rope_style;
    frit_hparams from = model->hp;
    frit_arch to = *model->arch;
    if (style) from.rope_style = strcmp(style, "neox") == 0 ? FRIT_ROPE_NEOX : FRIT_ROPE_INTERLEAVED;
    if (!style) from.rope_style = model->arch->rope_style;
    to.rope_style = model->hp.rope_style;
    *order = frit_row_order_of(&from, &to, pair->name);
    const int64_t n_out = pair->b.shape[pair->b.n_dims - 2];
    if (order->permuted == 0 || n_out % order->head == 0) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld rows, expected a multiple of %lld", pair->b.name,
                     (long long)n_out, (long long)order->head);
}

// Returns the length of a name without ".weight".
static int stem_of(const char *name)
{
    const size_t n = strlen(name), n_suffix = strlen(".weight");
    return (int)(n > n_suffix && strcmp(name + n - n_suffix, ".weight") == 0 ? n - n_suffix : n);
}

// Returns the bias that the matrix's product adds, or NULL.
static const frit_tensor *bias_of(const frit_model *model, const char *name)
{
    char base[96], full[128], bias[140];
    for (size_t i = 0; i < model->arch->n_rows; i++) {
        const frit_weight_row *row = &model->arch->rows[i];
        for (int32_t layer = 0; layer < (row->flags & FRIT_WEIGHT_LAYER ? model->hp.n_layer : 1); layer++) {
            frit_weight_name(row, &model->hp, layer, base, full);
            if (strcmp(full, name) == 0 && row->flags & (FRIT_WEIGHT_UNBIASED | FRIT_WEIGHT_TABLE)) return NULL;
        }
    }
    snprintf(bias, sizeof bias, "%.*s.bias", stem_of(name), name);
    return frit_checkpoint_find(model->ckpt, bias);
}

static frit_status set_shift(frit_adapter *adapter, const frit_tensor *bias, const float *gain, int64_t n,
                             frit_low_rank *low)
{
    frit_tensor *tensor;
    uint8_t *bytes;
    if (!bias || frit_tensor_n_elems(bias) != n) return FRIT_OK;
    FRIT_TRY(make_tensor(adapter, bias, FRIT_DTYPE_F32, &tensor, &bytes));
    float *shift = (float *)(void *)bytes;
    low->shift = tensor;
    FRIT_TRY(frit_tensor_decode_rows(bias, 0, n / bias->shape[bias->n_dims - 1], shift));
    for (int64_t i = 0; i < n; i++) shift[i] *= -gain[i];
    return FRIT_OK;
}

// Multiplies the columns of b, [rank, n_out], by 1 + gain.
static frit_status multiply_b_by_gains(frit_adapter *adapter, const float *gain, frit_low_rank *low)
{
    const frit_tensor *b = low->b;
    const int64_t n = b->shape[1];
    if (b->dtype != FRIT_DTYPE_F32) {
        adapter->info.n_bytes -= b->n_bytes;   // not read again
        FRIT_TRY(decode_to_f32(adapter, b, &low->b));
    }
    float *values = (float *)(uintptr_t)low->b->data;
    for (int64_t i = 0; i < low->rank * n; i++) values[i] *= 1 + gain[i % n];
    return FRIT_OK;
}

static frit_status set_magnitudes(frit_adapter *adapter, const frit_adapter_pair *pair, const frit_tensor *w,
                                  const frit_row_order *order, frit_low_rank *low)
{
    char name[140];
    frit_tensor *gain, like = pair->magnitudes;
    uint8_t *bytes;
    if (!pair->magnitudes.name) return FRIT_OK;
    snprintf(name, sizeof name, "%.*s.scale", stem_of(w->name), w->name);
    if (w->n_dims != 2 || pair->b.n_dims != 2 || frit_checkpoint_find(adapter->model->ckpt, name))
        return frit_fail(FRIT_E_UNSUPPORTED, "magnitudes (DoRA) of '%s' are not supported: expected a plain matrix",
                         pair->name);
    FRIT_TRY(check_finite(&pair->magnitudes));
    like.n_dims = 1;
    like.shape[0] = pair->b.shape[0], like.shape[1] = 1;
    FRIT_TRY(make_tensor(adapter, &like, FRIT_DTYPE_F32, &gain, &bytes));
    FRIT_TRY(frit_adapter_gains(pair, w, order, (float *)(void *)bytes));
    low->gain = gain;
    FRIT_TRY(set_shift(adapter, bias_of(adapter->model, pair->name), gain->data, like.shape[0], low));
    return multiply_b_by_gains(adapter, gain->data, low);
}

// Sets gains and shifts from factors of the product, or from another bias than the model's.
static frit_status set_factors(frit_adapter *adapter, const frit_adapter_pair *pair, const frit_row_order *order,
                               frit_low_rank *low)
{
    const bool is_bias = pair->bias.name != NULL;
    const frit_tensor *column = is_bias ? &pair->bias : &pair->factors, *own = bias_of(adapter->model, pair->name);
    const int64_t n = pair->b.shape[0];
    frit_tensor like = *column, *gain, *shift;
    uint8_t *gains, *shifts;
    if (!column->name) return FRIT_OK;
    if (pair->b.n_dims != 2 || frit_tensor_n_elems(column) != n)
        return frit_fail(FRIT_E_INVALID, "tensor '%s' has %lld numbers, expected %lld for '%s'", column->name,
                         (long long)frit_tensor_n_elems(column), (long long)n, pair->name);
    FRIT_TRY(check_finite(column));
    like.n_dims = 1;
    like.shape[0] = n, like.shape[1] = 1;
    FRIT_TRY(make_tensor(adapter, &like, FRIT_DTYPE_F32, &gain, &gains));
    FRIT_TRY(make_tensor(adapter, &like, FRIT_DTYPE_F32, &shift, &shifts));
    float *numbers = (float *)(void *)(is_bias ? shifts : gains), *sorted = calloc((size_t)n, sizeof *sorted);
    if (!sorted) return frit_fail_memory((size_t)n * sizeof *sorted, column->name);
    frit_status status = frit_tensor_decode_rows(column, 0, n, sorted);
    for (int64_t o = 0; o < n; o++) numbers[o] = sorted[frit_row_order_source(order, o)] - (is_bias ? 0 : 1);
    const bool has_own = is_bias && own && frit_tensor_n_elems(own) == n;
    if (status == FRIT_OK && has_own) status = frit_tensor_decode_rows(own, 0, n / own->shape[own->n_dims - 1], sorted);
    for (int64_t o = 0; o < n && has_own; o++) numbers[o] -= sorted[o];
    free(sorted);
    low->gain = gain;
    low->shift = shift;
    return status;
}

static frit_status set_pair(frit_adapter *adapter, const frit_adapter_pair *pair)
{
    const frit_tensor *base;
    const int32_t matrix = frit_adapters_matrix(adapter->model->ckpt, pair->name, &base);
    if (matrix < 0) return frit_fail(FRIT_E_INVALID, "the model has no tensor '%s'", pair->name);
    frit_low_rank *low = &adapter->table.matrices[matrix];
    low->rank = (int32_t)pair->b.shape[pair->b.n_dims - 1];
    low->scale = pair->scale;
    if (adapter->info.rank < low->rank) adapter->info.rank = low->rank;
    frit_row_order order;
    FRIT_TRY(check_finite(&pair->a));
    FRIT_TRY(check_finite(&pair->b));
    FRIT_TRY(find_order(adapter, pair, &order));
    FRIT_TRY(set_a(adapter, &pair->a, low));
    FRIT_TRY(transpose_b(adapter, &pair->b, &order, low));
    FRIT_TRY(set_factors(adapter, pair, &order, low));
    return set_magnitudes(adapter, pair, base, &order, low);
}

static frit_status set_directions(frit_adapter *adapter, const frit_adapter_options *options)
{
    const frit_adapter_file *file = &adapter->file;
    const size_t first = options->first_layer > 0 ? (size_t)options->first_layer : 1;
    const size_t last = options->last_layer > 0 ? (size_t)options->last_layer : SIZE_MAX;
    if (options->first_layer < 0 || options->last_layer < 0 || first > last)
        return frit_fail(FRIT_E_INVALID, "layers %d to %d are not a range, expected a first one not after the last",
                         options->first_layer, options->last_layer);
    adapter->steers = true;
    for (size_t i = first; i < file->n_directions && i < (size_t)adapter->model->hp.n_layer && i <= last; i++) {
        if (!file->directions[i]) continue;
        FRIT_TRY(check_finite(file->directions[i]));
        FRIT_TRY(decode_to_f32(adapter, file->directions[i], &adapter->table.directions[i]));
        adapter->info.n_tensors++;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- opening

// Fails if graphs do not multiply by a tensor of the adapter.
static frit_status check_used(frit_adapter *adapter)
{
    const frit_model *model = adapter->model;
    frit_arena arena = {0};
    frit_graph graph;
    const frit_adapters all = {
        .ckpt = model->ckpt, .n_h = 1, .is_used = frit_arena_new(&arena, bool, (size_t)adapter->table.n_matrices)};
    frit_status status = all.is_used ? FRIT_OK : frit_fail_memory(model->ckpt->n_tensors, "an adapter");
    for (int encodes = 0; encodes < (model->arch->is_encoder_decoder ? 2 : 1) && status == FRIT_OK; encodes++) {
        frit_graph_init(&graph, &arena, 1, 1);
        status = frit_arch_build(&graph, model->arch, &model->hp, &model->weights,
                                 &(frit_build_options){.encode = encodes, .adapters = &all});
    }
    for (size_t i = 0; i < adapter->file.n_pairs && status == FRIT_OK; i++) {
        const frit_tensor *base;
        const char *name = adapter->file.pairs[i].name;
        if (!all.is_used[frit_adapters_matrix(model->ckpt, name, &base)])
            status = frit_fail(FRIT_E_UNSUPPORTED, "adapters of '%s' are not supported in the architecture '%s'", name,
                               model->arch->name);
    }
    frit_arena_free(&arena);
    return status;
}

static frit_status make_table(frit_adapter *adapter)
{
    frit_adapter_table *table = &adapter->table;
    table->n_matrices = (int32_t)adapter->model->ckpt->n_tensors + 1;
    table->n_layers = adapter->model->hp.n_layer;
    table->matrices = frit_arena_new(&adapter->arena, frit_low_rank, (size_t)table->n_matrices);
    table->directions = frit_arena_new(&adapter->arena, const frit_tensor *, (size_t)table->n_layers);
    return table->matrices && table->directions
               ? FRIT_OK
               : frit_fail_memory((size_t)table->n_matrices * sizeof *table->matrices, "an adapter");
}

static frit_status open_adapter(frit_adapter *adapter, const char *path, const frit_adapter_options *options)
{
    const frit_model *model = adapter->model;
    if (model->vocab_only)
        return frit_fail(FRIT_E_INVALID, "%s has no weights that an adapter could add to", model->info.path);
    FRIT_TRY(frit_adapter_file_open(&adapter->file, path, model->ckpt,
                                    &(frit_checkpoint_options){.no_mmap = true, .log = &model->log}));
    const frit_adapter_file *file = &adapter->file;
    adapter->info = (frit_adapter_info){.path = file->ckpt->path,
                                        .name = file->name,
                                        .format = file->format,
                                        .kind = file->is_vector ? "control vector" : "lora",
                                        .n_tensors = (int32_t)file->n_pairs,
                                        .alpha = file->alpha};
    FRIT_TRY(make_table(adapter));
    if (file->is_vector) return set_directions(adapter, options);
    for (size_t i = 0; i < file->n_pairs; i++) FRIT_TRY(set_pair(adapter, &file->pairs[i]));
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
    frit_model_ref(model);
    adapter->model = model;
    frit_status status = open_adapter(adapter, path, options ? options : &defaults);
    if (status != FRIT_OK) {
        frit_adapter_free(adapter);
        return frit_fail_in(path, status);
    }
    *out = adapter;
    return FRIT_OK;
}

void frit_adapter_ref(frit_adapter *adapter)
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

uint64_t frit_adapter_bytes(const frit_adapter *adapter, const uint16_t *devices, int d)
{
    const frit_adapter_table *table = &adapter->table;
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < table->n_matrices; i++) {
        const frit_low_rank *low = &table->matrices[i];
        if (!low->a || (devices && !(devices[i] >> d & 1))) continue;
        n_bytes += low->a->n_bytes + low->b->n_bytes + (low->gain ? low->gain->n_bytes : 0) +
                   (low->shift ? low->shift->n_bytes : 0);
    }
    for (int32_t i = 0; i < table->n_layers; i++) {
        const frit_tensor *direction = table->directions[i];
        if (direction && (!devices || devices[table->n_matrices + i] >> d & 1)) n_bytes += direction->n_bytes;
    }
    return n_bytes;
}

frit_status frit_adapter_get_info(const frit_adapter *adapter, frit_adapter_info *info)
{
    FRIT_REQUIRE(info);
    *info = (frit_adapter_info){0};
    FRIT_REQUIRE(adapter);
    *info = adapter->info;
    return FRIT_OK;
}

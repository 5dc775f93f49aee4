// SPDX-License-Identifier: MIT
// Binding: finds the tensor of every weight row and checks its shape. Every tensor of the file must belong to a row.
#include "arch/arch.h"
#include "format/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Tensors that a file may have although no weight row names them.
static const struct {
    const char *prefix, *suffix;   // either may be ""
} ignored[] = {
    {"", ".input_scale"},           // activation scales that quantizers write
    {"rope_freqs.weight", ""},      // in files of architectures that do not read it
    {"", ".rotary_emb.inv_freq"},   // computed from the hyperparameters instead
    {"cls.", ""},                   // a classifier head in a file of a language model
    {"dense_", ""},                 // layers after pooling (engine/session/dense.c)
};

typedef struct binder {
    const frit_hparams *hp;
    const frit_checkpoint *ckpt;
    frit_arena *arena;
    bool *bound;   // [n_tensors]
} binder;

static const frit_tensor *take(binder *b, const char *name)
{
    const frit_tensor *tensor = frit_checkpoint_find(b->ckpt, name);
    if (tensor) b->bound[tensor - b->ckpt->tensors] = true;
    return tensor;
}

static const char *expected_text(int64_t n, int64_t out, int64_t in, char text[96])
{
    if (n > 0)
        snprintf(text, 96, "[%lld, %lld, %lld]", (long long)n, (long long)out, (long long)in);
    else if (in == 1)
        snprintf(text, 96, "[%lld]", (long long)out);
    else
        snprintf(text, 96, "[%lld, %lld]", (long long)out, (long long)in);
    return text;
}

static frit_status check_shape(const frit_tensor *tensor, int64_t n, int64_t out, int64_t in)
{
    const int64_t *shape = tensor->shape;
    if (n == 0 && shape[0] == out && shape[1] == in && shape[2] == 1 && shape[3] == 1) return FRIT_OK;
    if (n > 0 && shape[0] == n && shape[1] == out && shape[2] == in && shape[3] == 1) return FRIT_OK;
    char found[96], expected[96];
    return frit_fail(FRIT_E_FORMAT, "tensor '%s' has the shape %s, expected %s", tensor->name,
                     frit_tensor_shape_text(tensor, found), expected_text(n, out, in, expected));
}

// Drops outermost dimensions of 1 that are not expected: some writers give every tensor four dimensions.
static frit_status drop_ones(binder *b, const frit_tensor **tensor, int n_dims)
{
    const frit_tensor *found = *tensor;
    if (found->n_dims <= n_dims || found->shape[0] != 1) return FRIT_OK;
    frit_tensor *copy = frit_arena_new(b->arena, frit_tensor, 1);
    if (!copy) return frit_fail_memory(sizeof *copy, found->name);
    *copy = *found;
    while (copy->n_dims > n_dims && copy->shape[0] == 1) {
        memmove(copy->shape, copy->shape + 1, (FRIT_MAX_DIMS - 1) * sizeof *copy->shape);
        copy->shape[FRIT_MAX_DIMS - 1] = 1;
        copy->n_dims--;
    }
    *tensor = copy;
    return FRIT_OK;
}

// Binds a vector in the form that kernels need: f32, aligned, finite, one dimension. The vector is copied only if the
// file has another form.
static frit_status bind_vector(binder *b, const frit_tensor **out, const frit_tensor *tensor, int64_t n, unsigned flags)
{
    const bool spread = flags & FRIT_WEIGHT_SPREAD, inverse = flags & FRIT_WEIGHT_INVERSE;
    FRIT_TRY(drop_ones(b, &tensor, 1));
    const int64_t n_elems = frit_tensor_n_elems(tensor);
    const bool fits = spread ? n_elems > 0 && n % n_elems == 0 : n_elems == n;
    if (!fits || (tensor->n_dims > 1 && tensor->shape[1] > 1 && !spread && !(flags & FRIT_WEIGHT_FLAT)))
        return check_shape(tensor, 0, n, 1);
    const float *values = tensor->data;
    bool as_is = values && tensor->dtype == FRIT_DTYPE_F32 && (uintptr_t)values % sizeof(float) == 0;
    if (!as_is || tensor->n_dims != 1 || n_elems != n || inverse) {
        frit_tensor *copy = frit_arena_new(b->arena, frit_tensor, 1);
        float *decoded = frit_arena_new(b->arena, float, (size_t)n);
        if (!copy || !decoded) return frit_fail_memory((size_t)n * sizeof *decoded, tensor->name);
        const int64_t width = tensor->shape[tensor->n_dims - 1];
        FRIT_TRY(frit_tensor_decode_rows(tensor, 0, n_elems / width, decoded));
        for (int64_t i = n - 1; i >= 0 && n_elems < n; i--) decoded[i] = decoded[i / (n / n_elems)];
        for (int64_t i = 0; i < n && inverse; i++) decoded[i] = 1 / decoded[i];
        *copy = (frit_tensor){.name = tensor->name,
                              .dtype = FRIT_DTYPE_F32,
                              .n_dims = 1,
                              .shape = {n, 1, 1, 1},
                              .data = decoded,
                              .n_bytes = (uint64_t)n * sizeof *decoded};
        values = decoded;
        tensor = copy;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            return frit_fail(FRIT_E_FORMAT, "tensor '%s': element %lld is %g, expected a finite number", tensor->name,
                             (long long)i, (double)values[i]);
    }
    *out = tensor;
    return FRIT_OK;
}

// Replaces a matrix by a view of it with other dimensions.
static frit_status view(binder *b, const frit_tensor **tensor, int64_t out, int64_t in)
{
    frit_tensor *copy = frit_arena_new(b->arena, frit_tensor, 1);
    if (!copy) return frit_fail_memory(sizeof *copy, (*tensor)->name);
    *copy = **tensor;
    copy->n_dims = 2;
    copy->shape[0] = out;
    copy->shape[1] = in;
    *tensor = copy;
    return FRIT_OK;
}

static frit_status take_first_row(binder *b, const frit_tensor **tensor)
{
    frit_tensor *row = frit_arena_new(b->arena, frit_tensor, 1);
    if (!row) return frit_fail_memory(sizeof *row, (*tensor)->name);
    const int64_t width = (*tensor)->shape[(*tensor)->n_dims > 0 ? (*tensor)->n_dims - 1 : 0];
    const bool is_whole = frit_tensor_n_elems(*tensor) <= width;
    *row = **tensor;
    row->n_dims = 1;
    for (int i = 0; i < FRIT_MAX_DIMS; i++) row->shape[i] = i == 0 ? width : 1;
    if (!is_whole) row->n_bytes = frit_dtype_row_bytes(row->dtype, width);
    *tensor = row;
    return FRIT_OK;
}

// (x w^T + b) * scale is x w^T * scale + b * scale.
static frit_status scale_bias(binder *b, frit_weight *weight)
{
    int64_t n = weight->b->shape[0];
    frit_tensor *copy = frit_arena_new(b->arena, frit_tensor, 1);
    float *scaled = frit_arena_new(b->arena, float, (size_t)n);
    if (!copy || !scaled) return frit_fail_memory((size_t)n * sizeof *scaled, weight->b->name);
    const float *bias = weight->b->data, *scale = weight->scale->data;
    for (int64_t i = 0; i < n; i++) scaled[i] = bias[i] * scale[weight->scale->shape[0] == 1 ? 0 : i];
    *copy = *weight->b;
    copy->data = scaled;
    copy->is_mapped = false;
    weight->b = copy;
    return FRIT_OK;
}

typedef struct size {   // of a row's tensor; n is 0 but for stacks
    int64_t n, out, in;
} size;

// Binds "NAME.bias" and, for matrices, "NAME.scale", or "NAME.multiplier" if a folder's configuration scales the result
// (GGUF files have this factor in the weights). A stack has a bias [n, out] and one scale for each matrix.
static frit_status bind_companions(binder *b, const frit_weight_row *row, const char *base, size s, frit_weight *weight)
{
    char name[128];
    snprintf(name, sizeof name, "%s.bias", base);
    const frit_tensor *tensor = row->flags & FRIT_WEIGHT_TABLE ? NULL : take(b, name);
    if (tensor && !(row->flags & FRIT_WEIGHT_UNBIASED)) {
        FRIT_TRY(bind_vector(b, &weight->b, tensor, s.n > 0 ? s.n * s.out : s.out, FRIT_WEIGHT_FLAT));
        if (s.n > 0) FRIT_TRY(view(b, &weight->b, s.n, s.out));
    }
    if (row->in == FRIT_DIM_1) return FRIT_OK;
    snprintf(name, sizeof name, "%s.multiplier", base);
    tensor = take(b, name);
    if (tensor) return bind_vector(b, &weight->scale, tensor, tensor->shape[0] == 1 ? 1 : s.out, 0);
    if (!weight->w || row->flags & FRIT_WEIGHT_TABLE) return FRIT_OK;
    snprintf(name, sizeof name, "%s.scale", base);
    tensor = take(b, name);
    bool of_format = weight->w->dtype == FRIT_DTYPE_NVFP4;
    if (!tensor || (!of_format && (row->flags & FRIT_WEIGHT_UNSCALED))) return FRIT_OK;
    int64_t n_scales = s.n > 0 ? s.n : tensor->shape[0] == 1 ? 1 : s.out;
    FRIT_TRY(bind_vector(b, &weight->scale, tensor, n_scales, 0));
    bool last = !of_format && (row->flags & FRIT_WEIGHT_SCALE_LAST) && s.n == 0;
    return last && weight->b ? scale_bias(b, weight) : FRIT_OK;
}

static bool may_be_absent(const binder *b, const frit_weight_row *row, int32_t i_layer, const frit_weights *weights)
{
    const frit_layer *layer = &weights->layers[i_layer];
    const bool is_ffn = row->offset >= offsetof(frit_layer, ffn) && row->offset < offsetof(frit_layer, act_scale);
    const frit_weight *fused = is_ffn ? &layer->gate_up : &layer->qkv;
    if (row->flags & FRIT_WEIGHT_STACK) fused = &layer->gate_up_experts;
    if (row->flags & FRIT_WEIGHT_OR_FUSED && frit_has(fused)) return true;
    return frit_weight_may_be_absent(row, b->hp, i_layer);
}

// Finds the tensor of a row. A tensor of a fused matrix may have the name of one of its parts.
static const frit_tensor *take_of_row(binder *b, const frit_weight_row *row, const char *name, size s)
{
    const frit_tensor *tensor = frit_checkpoint_find(b->ckpt, name);
    if (!tensor) return NULL;
    if (row->flags & FRIT_WEIGHT_IF_FITS && (tensor->shape[0] != s.out || tensor->shape[1] != s.in)) return NULL;
    if (row->flags & FRIT_WEIGHT_OR_FUSED && b->bound[tensor - b->ckpt->tensors]) return NULL;
    return take(b, name);
}

static frit_status bind_row(binder *b, const frit_weight_row *row, int32_t i_layer, const frit_weights *weights,
                            frit_weight *weight)
{
    char base[96], name[128];
    frit_weight_name(row, b->hp, i_layer, base, name);
    const frit_layer_hparams *lhp = &b->hp->layers[i_layer];
    const bool is_stack = row->flags & FRIT_WEIGHT_STACK, is_vector = row->in == FRIT_DIM_1;
    const size s = {is_stack ? frit_dim_size(b->hp, lhp, row->n) : 0, frit_dim_size(b->hp, lhp, row->out),
                    frit_dim_size(b->hp, lhp, row->in)};
    if (s.out == 0 || s.in == 0 || (is_stack && s.n == 0)) return FRIT_OK;
    const frit_tensor *tensor = take_of_row(b, row, name, s);
    if (!tensor && !weight->w && !may_be_absent(b, row, i_layer, weights)) {
        char expected[96];
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is missing, expected with the shape %s", name,
                         expected_text(s.n, s.out, s.in, expected));
    }
    if (tensor && !is_vector) FRIT_TRY(drop_ones(b, &tensor, is_stack ? 3 : 2));
    if (tensor && (row->flags & FRIT_WEIGHT_FIRST_ROW)) FRIT_TRY(take_first_row(b, &tensor));
    if (tensor && is_vector) {
        FRIT_TRY(bind_vector(b, &weight->w, tensor, s.out, row->flags));
    } else if (tensor) {
        bool flat = s.out == 1 && tensor->n_dims == 1 && tensor->shape[0] == s.in;   // a matrix of one row
        if (flat) FRIT_TRY(view(b, &tensor, s.out, s.in));
        FRIT_TRY(check_shape(tensor, s.n, s.out, s.in));
        weight->w = tensor;
    }
    bool alone = row->flags & FRIT_WEIGHT_WHOLE_NAME;
    return alone ? FRIT_OK : bind_companions(b, row, base, s, weight);
}

// ------------------------------------------------------------------------------- fused weights

static frit_status cut_tensor(binder *b, const frit_tensor **out, const frit_tensor *whole, int64_t begin, int64_t n)
{
    if (!whole || whole->shape[0] == 1) {   // one number for all
        *out = whole;
        return FRIT_OK;
    }
    frit_tensor *part = frit_arena_new(b->arena, frit_tensor, 1);
    if (!part) return frit_fail_memory(sizeof *part, whole->name);
    *part = frit_tensor_cut(whole, begin, n);
    *out = part;
    return FRIT_OK;
}

// Makes a view of rows [begin, begin + n) of a weight.
static frit_status cut(binder *b, frit_weight *part, const frit_weight *whole, int64_t begin, int64_t n)
{
    FRIT_TRY(cut_tensor(b, &part->w, whole->w, begin, n));
    FRIT_TRY(cut_tensor(b, &part->b, whole->b, begin, n));
    return cut_tensor(b, &part->scale, whole->scale, begin, n);
}

static frit_status cut_recurrent(binder *b, frit_recurrent_weights *w)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    if (frit_has(&w->in_xz)) {
        FRIT_TRY(cut(b, &w->x, &w->in_xz, 0, r->inner));
        FRIT_TRY(cut(b, &w->z, &w->in_xz, r->inner, r->inner));
    }
    if (frit_has(&w->in_zxs)) {
        FRIT_TRY(cut(b, &w->z, &w->in_zxs, 0, r->inner));
        FRIT_TRY(cut(b, &w->x, &w->in_zxs, r->inner, r->n_channels));
        FRIT_TRY(cut(b, &w->step, &w->in_zxs, (int64_t)r->inner + r->n_channels, r->rank));
    }
    return FRIT_OK;
}

// Cuts fused matrices into views. Separate products of the parts are as fast as one of the whole, and each result is
// contiguous.
static frit_status cut_fused(binder *b, frit_layer *layer, const frit_arch *arch, const frit_layer_hparams *lhp)
{
    if (frit_has(&layer->qkv)) {
        const int64_t n_q = frit_dim_size(b->hp, lhp, FRIT_DIM_N_Q), n_k = frit_dim_size(b->hp, lhp, FRIT_DIM_N_K);
        const int64_t third = layer->qkv.w->shape[0] / 3;
        const int64_t k = arch->qkv_in_thirds ? third : n_q, v = arch->qkv_in_thirds ? 2 * third : n_q + n_k;
        FRIT_TRY(cut(b, &layer->q, &layer->qkv, 0, n_q));
        FRIT_TRY(cut(b, &layer->k, &layer->qkv, k, n_k));
        FRIT_TRY(cut(b, &layer->v, &layer->qkv, v, frit_dim_size(b->hp, lhp, FRIT_DIM_N_V)));
        layer->qkv = (frit_weight){0};
    }
    if (frit_has(&layer->gate_up)) {
        FRIT_TRY(cut(b, &layer->ffn.gate, &layer->gate_up, 0, lhp->n_ff));
        FRIT_TRY(cut(b, &layer->ffn.up, &layer->gate_up, lhp->n_ff, lhp->n_ff));
    }
    if (frit_has(&layer->shared_gate_up)) {
        const int64_t n = b->hp->n_ff_shexp;
        FRIT_TRY(cut(b, &layer->shared.gate, &layer->shared_gate_up, 0, n));
        FRIT_TRY(cut(b, &layer->shared.up, &layer->shared_gate_up, n, n));
    }
    return cut_recurrent(b, &layer->recurrent);
}

// True for tensors of layers for multi-token prediction, which follow the other layers.
static bool is_of_next_layer(const frit_hparams *hp, const char *name)
{
    if (hp->n_layer_next == 0 || strncmp(name, "blk.", 4) != 0) return false;
    long layer = strtol(name + 4, NULL, 10);
    return layer >= hp->n_layer && layer < (long)hp->n_layer + hp->n_layer_next;
}

static bool is_ignored(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < FRIT_COUNT(ignored); i++) {
        size_t n_prefix = strlen(ignored[i].prefix), n_suffix = strlen(ignored[i].suffix);
        if (n >= n_prefix && n >= n_suffix && memcmp(name, ignored[i].prefix, n_prefix) == 0 &&
            strcmp(name + n - n_suffix, ignored[i].suffix) == 0)
            return true;
    }
    return false;
}

// Checks that every tensor belongs to a row: a tensor that nothing reads would make the result silently wrong.
static frit_status check_all_bound(const binder *b, const char *arch)
{
    const frit_tensor *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < b->ckpt->n_tensors; i++) {
        const char *name = b->ckpt->tensors[i].name;
        if (b->bound[i] || is_ignored(name) || is_of_next_layer(b->hp, name)) continue;
        if (n++ == 0) first = &b->ckpt->tensors[i];
    }
    if (n == 0) return FRIT_OK;
    char shape[96];
    return frit_fail(FRIT_E_FORMAT,
                     "tensor '%s' is not expected in the architecture '%s' (%zu such tensors); its shape is %s",
                     first->name, arch, n, frit_tensor_shape_text(first, shape));
}

static frit_status check_factors(const frit_tensor *factors)
{
    for (int64_t i = 0; factors && i < factors->shape[0]; i++) {
        float factor = ((const float *)factors->data)[i];
        if (!(factor > 0))
            return frit_fail(FRIT_E_FORMAT, "tensor '%s': element %lld is %g, expected a number above 0", factors->name,
                             (long long)i, (double)factor);
    }
    return FRIT_OK;
}

static frit_status bind_next_rows(binder *b, const frit_weight_row *rows, size_t n_rows, const frit_weights *weights)
{
    const int32_t i = b->hp->n_layer;
    for (size_t k = 0; k < n_rows; k++) {
        if (!(rows[k].flags & FRIT_WEIGHT_LAYER)) continue;
        char *owner = (char *)&weights->layers[i];
        FRIT_TRY(bind_row(b, &rows[k], i, weights, (frit_weight *)(void *)(owner + rows[k].offset)));
    }
    return FRIT_OK;
}

// Binds the first layer for multi-token prediction. If the file lacks some of its tensors, the model runs without it.
static void bind_next(binder *b, frit_weights *weights, const frit_arch *arch)
{
    size_t n_rows;
    const frit_weight_row *rows = frit_next_rows(&n_rows);
    if (b->hp->n_layer_next == 0) return;
    frit_status status = bind_next_rows(b, arch->rows, arch->n_rows, weights);
    if (status == FRIT_OK) status = bind_next_rows(b, rows, n_rows, weights);
    if (status == FRIT_OK)
        status = cut_fused(b, &weights->layers[b->hp->n_layer], arch, &b->hp->layers[b->hp->n_layer]);
    weights->has_next = status == FRIT_OK;
    if (status != FRIT_OK) weights->no_next = frit_arena_text(b->arena, frit_error(), strlen(frit_error()));
}

static frit_status bind_all(binder *b, frit_weights *weights, const frit_arch *arch)
{
    for (size_t i = 0; i < arch->n_rows; i++) {
        const frit_weight_row *row = &arch->rows[i];
        bool per_layer = row->flags & FRIT_WEIGHT_LAYER;
        const int32_t begin = row->flags & FRIT_WEIGHT_DEC ? b->hp->n_layer_enc : 0;
        const int32_t end = row->flags & FRIT_WEIGHT_ENC ? b->hp->n_layer_enc : per_layer ? b->hp->n_layer : 1;
        for (int32_t layer = begin; layer < end; layer++) {
            char *owner = per_layer ? (char *)&weights->layers[layer] : (char *)weights;
            frit_weight *weight = (frit_weight *)(void *)(owner + row->offset);
            FRIT_TRY(bind_row(b, row, layer, weights, weight));
            if (!weight->w && (row->flags & FRIT_WEIGHT_OR_TOK_EMBD)) weight->w = weights->tok_embd.w;
        }
    }
    for (int32_t i = 0; i < b->hp->n_layer; i++) FRIT_TRY(cut_fused(b, &weights->layers[i], arch, &b->hp->layers[i]));
    bind_next(b, weights, arch);
    FRIT_TRY(check_factors(weights->rope_freqs.w));
    FRIT_TRY(check_factors(weights->rope_long.w));
    FRIT_TRY(check_factors(weights->rope_short.w));
    return check_all_bound(b, arch->name);
}

frit_status frit_weights_bind(frit_weights *weights, const frit_arch *arch, const frit_hparams *hp,
                              const frit_checkpoint *ckpt, frit_arena *arena)
{
    *weights =
        (frit_weights){.layers = frit_arena_new(arena, frit_layer, (size_t)hp->n_layer + (size_t)hp->n_layer_next)};
    binder b = {.hp = hp, .ckpt = ckpt, .arena = arena, .bound = frit_arena_new(arena, bool, ckpt->n_tensors)};
    if (!weights->layers || !b.bound)
        return frit_fail_memory((size_t)hp->n_layer * sizeof *weights->layers + ckpt->n_tensors, "the list of weights");
    frit_status status = bind_all(&b, weights, arch);
    if (status == FRIT_OK && arch->compute) status = arch->compute(weights, hp, arena);
    return frit_fail_in(ckpt->path, status);
}

frit_status frit_constant_new(const frit_tensor **out, float **values, const char *name, int n_dims,
                              const int64_t *shape, frit_arena *arena)
{
    frit_tensor *tensor = frit_arena_new(arena, frit_tensor, 1);
    size_t n = 1;
    for (int i = 0; i < n_dims; i++) n *= (size_t)shape[i];
    *values = frit_arena_new(arena, float, n);
    if (!tensor || !*values) return frit_fail_memory(n * sizeof **values, name);
    *tensor = (frit_tensor){.name = name,
                            .dtype = FRIT_DTYPE_F32,
                            .n_dims = n_dims,
                            .shape = {1, 1, 1, 1},
                            .data = *values,
                            .n_bytes = n * sizeof **values};
    memcpy(tensor->shape, shape, (size_t)n_dims * sizeof *shape);
    *out = tensor;
    return FRIT_OK;
}

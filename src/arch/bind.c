// SPDX-License-Identifier: MIT
// Binding: every weight row finds its tensor, every tensor of the file belongs to a row, every shape is as expected.
#include "arch/arch.h"

#include <math.h>
#include <stdio.h>

// Tensors that may stand in a file although no row names them.
static const struct {
    const char *prefix, *suffix;   // either may be ""
} ignored[] = {
    {"", ".input_scale"},           // quantizers' notes about activations
    {"rope_freqs.weight", ""},      // of architectures that do not read it
    {"", ".rotary_emb.inv_freq"},   // computed from the hyperparameters instead
    {"cls.", ""},                   // a classifier's head beside a language model
};

typedef struct binder {
    const frit_hparams *hp;
    const frit_checkpoint *ckpt;
    frit_arena *arena;
    bool *bound;   // [n_tensors]
} binder;

static int64_t resolve(const frit_hparams *hp, const frit_layer_hparams *lhp, frit_dim dim)
{
    const int64_t n_head = lhp->n_head, n_head_kv = lhp->n_head_kv;
    switch (dim) {
    case FRIT_DIM_1:
        return 1;
    case FRIT_DIM_N_VOCAB:
        return hp->n_vocab;
    case FRIT_DIM_N_EMBD:
        return hp->n_embd;
    case FRIT_DIM_N_FF:
        return lhp->n_ff;
    case FRIT_DIM_N_Q:
        return n_head * lhp->k_dim;
    case FRIT_DIM_N_K:
        return n_head_kv * lhp->k_dim;
    case FRIT_DIM_N_V:
        return n_head_kv * lhp->v_dim;
    case FRIT_DIM_N_O:
        return n_head * lhp->v_dim;
    case FRIT_DIM_N_QKV:
        return (n_head + n_head_kv) * lhp->k_dim + n_head_kv * lhp->v_dim;
    case FRIT_DIM_HEAD:
        return lhp->k_dim;
    case FRIT_DIM_ROPE_PAIRS:
        return hp->rope.dim / 2;
    }
    return 0;
}

static const frit_tensor *take(binder *b, const char *name)
{
    const frit_tensor *tensor = frit_checkpoint_find(b->ckpt, name);
    if (tensor) b->bound[tensor - b->ckpt->tensors] = true;
    return tensor;
}

static frit_status check_shape(const frit_tensor *tensor, int64_t out, int64_t in)
{
    const int64_t *shape = tensor->shape;
    if (shape[0] == out && shape[1] == in && shape[2] == 1 && shape[3] == 1) return FRIT_OK;
    char found[96], expected[64];
    if (in == 1)
        snprintf(expected, sizeof expected, "[%lld]", (long long)out);
    else
        snprintf(expected, sizeof expected, "[%lld, %lld]", (long long)out, (long long)in);
    return frit_fail(FRIT_E_FORMAT, "tensor '%s' has the shape %s, expected %s", tensor->name,
                     frit_tensor_shape_text(tensor, found), expected);
}

// A vector as kernels want it: f32, aligned, finite. Copied only if the file has it otherwise.
static frit_status bind_vector(binder *b, const frit_tensor **out, const frit_tensor *tensor, int64_t n)
{
    FRIT_TRY(check_shape(tensor, n, 1));
    const float *values = tensor->data;
    if (tensor->dtype != FRIT_DTYPE_F32 || (uintptr_t)tensor->data % sizeof(float) != 0) {
        frit_tensor *copy = frit_arena_new(b->arena, frit_tensor, 1);
        float *decoded = frit_arena_new(b->arena, float, (size_t)n);
        if (!copy || !decoded) return frit_fail_memory((size_t)n * sizeof *decoded, tensor->name);
        frit_tensor_decode_row(tensor, 0, decoded);
        *copy = *tensor;
        copy->dtype = FRIT_DTYPE_F32;
        copy->data = values = decoded;
        copy->n_bytes = (uint64_t)n * sizeof *decoded;
        tensor = copy;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            return frit_fail(FRIT_E_FORMAT, "tensor '%s' holds %g at %lld, expected finite numbers", tensor->name,
                             (double)values[i], (long long)i);
    }
    *out = tensor;
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
    weight->b = copy;
    return FRIT_OK;
}

// "NAME.bias" and, beside matrices, "NAME.scale".
static frit_status bind_companions(binder *b, const frit_weight_row *row, const char *base, int64_t out,
                                   frit_weight *weight)
{
    char name[128];
    snprintf(name, sizeof name, "%s.bias", base);
    const frit_tensor *tensor = take(b, name);
    if (tensor) FRIT_TRY(bind_vector(b, &weight->b, tensor, out));
    if (row->in == FRIT_DIM_1 || !weight->w) return FRIT_OK;
    snprintf(name, sizeof name, "%s.scale", base);
    tensor = take(b, name);
    bool of_format = weight->w->dtype == FRIT_DTYPE_NVFP4;
    if (!tensor || (!of_format && (row->flags & FRIT_WEIGHT_UNSCALED))) return FRIT_OK;
    FRIT_TRY(bind_vector(b, &weight->scale, tensor, tensor->shape[0] == 1 ? 1 : out));
    bool last = !of_format && (row->flags & FRIT_WEIGHT_SCALE_LAST);
    return last && weight->b ? scale_bias(b, weight) : FRIT_OK;
}

static frit_status bind_row(binder *b, const frit_weight_row *row, int32_t i_layer, frit_weight *weight)
{
    char base[96], name[128];
    bool per_layer = row->flags & FRIT_WEIGHT_LAYER;
    if (per_layer)
        snprintf(base, sizeof base, "blk.%d.%s", (int)i_layer, row->name);
    else
        snprintf(base, sizeof base, "%s", row->name);
    const frit_layer_hparams *lhp = &b->hp->layers[i_layer];
    int64_t out = resolve(b->hp, lhp, row->out), in = resolve(b->hp, lhp, row->in);
    bool is_matrix = row->in != FRIT_DIM_1;
    snprintf(name, sizeof name, "%s.weight", base);
    const frit_tensor *tensor = take(b, name);
    if (!tensor && !(row->flags & (FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_OR_TOK_EMBD)))
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is missing", name);
    if (tensor && is_matrix) {
        FRIT_TRY(check_shape(tensor, out, in));
        weight->w = tensor;
    } else if (tensor) {
        FRIT_TRY(bind_vector(b, &weight->w, tensor, out));
    }
    return row->flags & FRIT_WEIGHT_TABLE ? FRIT_OK : bind_companions(b, row, base, out, weight);
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

// A tensor that nothing reads would make the result silently wrong.
static frit_status check_all_bound(const binder *b, const char *arch)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < b->ckpt->n_tensors; i++) {
        const char *name = b->ckpt->tensors[i].name;
        if (b->bound[i] || is_ignored(name)) continue;
        if (n++ == 0) first = name;
    }
    if (n == 0) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not expected in the architecture '%s' (%zu such tensors)", first,
                     arch, n);
}

static frit_status check_factors(const frit_tensor *factors)
{
    for (int64_t i = 0; factors && i < factors->shape[0]; i++) {
        float factor = ((const float *)factors->data)[i];
        if (!(factor > 0))
            return frit_fail(FRIT_E_FORMAT, "tensor '%s' holds %g at %lld, expected numbers above 0", factors->name,
                             (double)factor, (long long)i);
    }
    return FRIT_OK;
}

static frit_status bind_all(binder *b, frit_weights *weights, const frit_arch *arch)
{
    for (size_t i = 0; i < arch->n_rows; i++) {
        const frit_weight_row *row = &arch->rows[i];
        bool per_layer = row->flags & FRIT_WEIGHT_LAYER;
        for (int32_t layer = 0; layer < (per_layer ? b->hp->n_layer : 1); layer++) {
            char *owner = per_layer ? (char *)&weights->layers[layer] : (char *)weights;
            frit_weight *weight = (frit_weight *)(void *)(owner + row->offset);
            FRIT_TRY(bind_row(b, row, layer, weight));
            if (!weight->w && (row->flags & FRIT_WEIGHT_OR_TOK_EMBD)) weight->w = weights->tok_embd.w;
        }
    }
    FRIT_TRY(check_factors(weights->rope_freqs.w));
    return check_all_bound(b, arch->name);
}

frit_status frit_weights_bind(frit_weights *weights, const frit_arch *arch, const frit_hparams *hp,
                              const frit_checkpoint *ckpt, frit_arena *arena)
{
    *weights = (frit_weights){.layers = frit_arena_new(arena, frit_layer, (size_t)hp->n_layer)};
    binder b = {.hp = hp, .ckpt = ckpt, .arena = arena, .bound = frit_arena_new(arena, bool, ckpt->n_tensors)};
    if (!weights->layers || !b.bound)
        return frit_fail_memory((size_t)hp->n_layer * sizeof *weights->layers + ckpt->n_tensors, "the list of weights");
    frit_status status = bind_all(&b, weights, arch);
    return status == FRIT_OK ? FRIT_OK : frit_fail(status, "%s: %s", ckpt->path, frit_error());
}

// SPDX-License-Identifier: MIT
// The building blocks of layers. A part whose weight is not bound is left out.
#include "arch/arch.h"

#include <math.h>

static frit_node *weight(frit_build *b, const frit_tensor *tensor)
{
    return tensor ? frit_weight_node(b->g, tensor) : NULL;
}

static frit_node *linear(frit_build *b, const frit_weight *w, frit_node *x)
{
    if (!w->scale) return frit_matmul(b->g, weight(b, w->w), x, weight(b, w->b));
    frit_node *y = frit_matmul(b->g, weight(b, w->w), x, NULL);
    if (w->scale->shape[0] == 1)
        y = frit_scale(b->g, y, *(const float *)w->scale->data);
    else
        y = frit_mul(b->g, y, weight(b, w->scale));
    return w->b ? frit_add(b->g, y, weight(b, w->b)) : y;
}

frit_node *frit_linear(frit_build *b, const frit_weight *w, frit_node *x)
{
    return frit_adapt(b, w, x, NULL, 0, linear(b, w, x));
}

frit_node *frit_norm(frit_build *b, const frit_weight *w, frit_node *x)
{
    if (b->hp->norm == FRIT_NORM_LAYER)
        return frit_layer_norm(b->g, x, weight(b, w->w), weight(b, w->b), b->hp->layer_norm_eps);
    x = frit_rms_norm(b->g, x, weight(b, w->w), b->hp->rms_eps);
    return w->b ? frit_add(b->g, x, weight(b, w->b)) : x;
}

// ------------------------------------------------------------------------------- attention

static frit_node *split_heads(frit_build *b, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, x, 2, (int64_t[]){n_head, dim});
}

static frit_node *join_heads(frit_build *b, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, x, 1, (int64_t[]){n_head * dim});
}

frit_node *frit_rope_heads(frit_build *b, frit_node *x, int32_t offset)
{
    return frit_rope_heads_as(b, x, offset, b->hp->rope_style);
}

frit_node *frit_rope_heads_as(frit_build *b, frit_node *x, int32_t offset, frit_rope_style style)
{
    return frit_rope_heads_by(b, x, (frit_rope){.style = style, .offset = offset});
}

frit_node *frit_rope_heads_by(frit_build *b, frit_node *x, frit_rope rope)
{
    const frit_hparams *hp = b->hp;
    const frit_weights *weights = b->weights;
    const bool slides = b->lhp->window > 0;
    const frit_rope_table *table = slides ? &hp->rope_swa_table : &hp->rope_table;
    const int32_t dim = slides ? hp->rope_swa.dim : hp->rope.dim;
    static const frit_weight none = {0};
    const frit_weight *factors = &weights->rope_freqs;
    if (!frit_has(factors)) factors = hp->n_ctx > hp->rope.n_ctx_orig ? &weights->rope_long : &weights->rope_short;
    if (slides && (hp->is_swa_plain || dim != hp->rope.dim)) factors = &none;   // of layers without a window
    rope.dim = dim;
    rope.magnitude = table->magnitude;
    if (b->turns) return frit_rotate_by(b->g, x, b->turns, rope);
    return frit_rotate(b->g, x, b->positions, weight(b, table->inv_freq), weight(b, factors->w), rope);
}

static float attention_scale(const frit_build *b, const frit_attention_options *options)
{
    if (options->scale != 0) return options->scale;
    if (b->hp->attn_scale != 0) return b->hp->attn_scale;
    return 1 / sqrtf((float)b->lhp->k_dim);
}

// Norms queries or keys, [T, H, D].
static frit_node *norm_heads(frit_build *b, const frit_weight *w, frit_node *x, const frit_attention_options *options)
{
    static const frit_weight bare = {0};
    if (options->bare_qk_norm && !frit_has(w) && x) return frit_norm(b, &bare, x);
    if (!frit_has(w) || !x) return x;
    const int64_t n_head = x->shape[1], dim = x->shape[2];
    if (options->qk_norm == FRIT_QK_NORM_HEAD) return frit_norm(b, w, x);
    if (options->qk_norm == FRIT_QK_NORM_WHOLE)
        return split_heads(b, frit_norm(b, w, join_heads(b, x, n_head, dim)), n_head, dim);
    x = join_heads(b, frit_norm(b, &bare, x), n_head, dim);
    return split_heads(b, frit_mul(b->g, x, weight(b, w->w)), n_head, dim);
}

static frit_node *project(frit_build *b, const frit_weight *w, frit_node *x, int64_t n_head, int64_t dim)
{
    x = frit_linear(b, w, x);
    if (b->hp->attn_clamp != 0) x = frit_clamp(b->g, x, -b->hp->attn_clamp, b->hp->attn_clamp);
    return split_heads(b, x, n_head, dim);
}

// v is NULL if values are the first elements of keys; k is NULL too if an earlier layer's cache is used.
frit_node *frit_attend_cached(frit_build *b, const frit_layer *w, frit_node *q, frit_node *k, frit_node *v, float scale)
{
    const frit_hparams *hp = b->hp;
    const bool chunked = hp->attn_chunk > 0 && b->lhp->window > 0;
    const int32_t kv_layer = b->lhp->shares_kv ? b->lhp->kv_layer : b->i_layer;
    const bool sees = b->ends && (b->lhp->window > 0 || hp->media.seeing == FRIT_SEEING_ALL);
    const frit_attend attend = {.layer = kv_layer,
                                .scale = scale,
                                .softcap = hp->attn_softcap,
                                .window = chunked ? 0 : b->lhp->window,
                                .chunk = chunked ? hp->attn_chunk : 0,
                                .block = b->chosen ? hp->index.block : 0,
                                .alibi = hp->attn_alibi,
                                .bidirectional = hp->is_bidirectional,
                                .reach = w->rel_gains ? hp->rel_distance : 0,
                                .ends_at = sees ? b->ends_at : 0,
                                .temp_scale = b->attn_temp ? hp->attn_temp_scale : 0,
                                .temp_offset = hp->attn_temp_offset,
                                .temp_length = hp->attn_temp_length};
    const int64_t n_head = q ? q->shape[1] : 0, v_dim = v ? v->shape[2] : b->lhp->v_dim;
    if (!b->lhp->shares_kv) b->written[b->i_layer] = frit_kv_write(b->g, k, v, b->i_layer);
    frit_node *written = b->written[kv_layer];
    frit_node *y = b->chosen && b->chosen->op == FRIT_OP_CHOOSE_BLOCKS
                       ? frit_attend_in_blocks(b->g, q, written, b->chosen, attend, v_dim)
                   : b->chosen    ? frit_attend_sparse(b->g, q, written, b->chosen, attend, v_dim)
                   : sees         ? frit_attend_with_ends(b->g, q, written, b->ends, attend, v_dim)
                   : w->rel_gains ? frit_attend_with_gains(b->g, q, written, weight(b, w->rel_gains), attend, v_dim)
                                  : frit_attend_with_sinks(b->g, q, written, weight(b, w->sinks.w), attend, v_dim);
    return join_heads(b, y, n_head, v_dim);
}

frit_node *frit_gate_heads(frit_build *b, const frit_layer *w, frit_node *y, frit_node *x, frit_act act)
{
    frit_node *gate = frit_linear(b, &w->head_gate, x);
    const int64_t n_head = b->lhp->n_head;
    if (!gate || !y || gate->shape[1] == y->shape[1]) return frit_glu(b->g, gate, y, act);
    const int64_t dim = y->shape[1] / n_head;
    gate = frit_activate(b->g, gate, act);
    y = frit_scale_rows(b->g, split_heads(b, y, n_head, dim), split_heads(b, gate, n_head, 1));
    return join_heads(b, y, n_head, dim);
}

frit_node *frit_attention(frit_build *b, const frit_layer *w, frit_node *x, frit_attention_options options)
{
    static const frit_weight none = {0};
    const frit_layer_hparams *lhp = b->lhp;
    frit_node *const in = x;
    const frit_weight *k_norm =
        frit_has(&w->q_norm) ? &w->k_norm : &none;   // keys have a norm only if queries have one
    frit_node *q = project(b, &w->q, x, lhp->n_head, options.is_gated ? 2 * (int64_t)lhp->k_dim : lhp->k_dim);
    frit_node *gate = options.is_gated ? frit_slice(b->g, q, lhp->k_dim, lhp->k_dim) : NULL;
    if (gate) q = frit_slice(b->g, q, 0, lhp->k_dim);
    frit_node *k = NULL, *v = NULL;
    if (!lhp->shares_kv) {
        k = project(b, &w->k, x, lhp->n_head_kv, lhp->k_dim);
        v = frit_has(&w->v) ? project(b, &w->v, x, lhp->n_head_kv, lhp->v_dim) : k;
        if (b->hp->value_scale != 0) v = frit_scale(b->g, v, b->hp->value_scale);
        if (options.norm_values) v = frit_rms_norm(b->g, v, NULL, b->hp->rms_eps);
    }
    if (!options.norm_after_rope) {
        q = norm_heads(b, &w->q_norm, q, &options);
        k = norm_heads(b, k_norm, k, &options);
    }
    if (!options.no_rope && !lhp->no_rope) {
        q = frit_rope_heads(b, q, 0);
        if (k) k = frit_rope_heads(b, k, 0);
    }
    if (options.norm_after_rope) {
        q = norm_heads(b, &w->q_norm, q, &options);
        k = norm_heads(b, k_norm, k, &options);
    }
    x = frit_attend_cached(b, w, q, k, v, attention_scale(b, &options));
    if (gate) x = frit_glu(b->g, join_heads(b, gate, lhp->n_head, lhp->k_dim), x, FRIT_ACT_SIGMOID);
    if (frit_has(&w->head_gate))
        x = frit_gate_heads(b, w, x, in, options.softplus_gate ? FRIT_ACT_SOFTPLUS : FRIT_ACT_SIGMOID);
    if (frit_has(&w->sub_norm)) x = frit_norm(b, &w->sub_norm, x);
    return frit_linear(b, &w->o, x);
}

// ------------------------------------------------------------------------------- feed-forward

frit_node *frit_clamped_glu(frit_build *b, frit_node *gate, frit_node *up, frit_act act, float limit)
{
    if (limit == 0) return frit_glu(b->g, gate, up, act);
    gate = frit_clamp(b->g, frit_activate(b->g, gate, act), -INFINITY, limit);
    return frit_mul(b->g, gate, frit_clamp(b->g, up, -limit, limit));
}

frit_node *frit_glu_plus_one(frit_build *b, frit_node *gate, frit_node *up)
{
    gate = frit_clamp(b->g, gate, -INFINITY, 7);
    up = frit_clamp(b->g, up, -7, 7);
    frit_node *product = frit_glu(b->g, gate, up, FRIT_ACT_GELU_QUICK);
    return frit_add(b->g, product, frit_activate(b->g, gate, FRIT_ACT_GELU_QUICK));
}

frit_node *frit_feed_forward(frit_build *b, const frit_ffn_weights *w, frit_node *x, frit_act act)
{
    frit_node *h = frit_linear(b, &w->up, x);
    if (frit_has(&w->gate))
        h = frit_glu(b->g, frit_linear(b, &w->gate, x), h, act);
    else
        h = frit_activate(b->g, h, act);
    if (frit_has(&w->norm)) h = frit_norm(b, &w->norm, h);
    return frit_linear(b, &w->down, h);
}

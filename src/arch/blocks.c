// SPDX-License-Identifier: MIT
// What layers are made of. A weight that is not bound leaves its part out.
#include "arch/arch.h"

#include <math.h>

static frit_node *weight(frit_build *b, const frit_tensor *tensor)
{
    return tensor ? frit_weight_node(b->g, tensor) : NULL;
}

frit_node *frit_linear(frit_build *b, const frit_weight *w, frit_node *x)
{
    if (!w->scale) return frit_matmul(b->g, weight(b, w->w), x, weight(b, w->b));
    frit_node *y = frit_matmul(b->g, weight(b, w->w), x, NULL);
    if (w->scale->shape[0] == 1)
        y = frit_scale(b->g, y, *(const float *)w->scale->data);
    else
        y = frit_mul(b->g, y, weight(b, w->scale));
    return w->b ? frit_add(b->g, y, weight(b, w->b)) : y;
}

frit_node *frit_norm(frit_build *b, const frit_weight *w, frit_node *x)
{
    if (!w->b) return frit_rms_norm(b->g, x, weight(b, w->w), b->hp->rms_eps);
    return frit_layer_norm(b->g, x, weight(b, w->w), weight(b, w->b), b->hp->layer_norm_eps);
}

static frit_node *split_heads(frit_build *b, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, x, 2, (int64_t[]){n_head, dim});
}

static frit_node *rotate(frit_build *b, frit_node *x)
{
    const frit_hparams *hp = b->hp;
    const frit_rope rope = {
        .style = hp->rope_style, .dim = hp->rope.dim, .magnitude = hp->rope_magnitude, .inv_freq = hp->inv_freq};
    return frit_rotate(b->g, x, b->positions, weight(b, b->weights->rope_freqs.w), rope);
}

static float attention_scale(const frit_build *b, const frit_attention_options *options)
{
    if (options->scale != 0) return options->scale;
    if (b->hp->attn_scale != 0) return b->hp->attn_scale;
    return 1 / sqrtf((float)b->lhp->k_dim);
}

frit_node *frit_attention(frit_build *b, const frit_layer *w, frit_node *x, frit_attention_options options)
{
    const frit_layer_hparams *lhp = b->lhp;
    frit_node *q = split_heads(b, frit_linear(b, &w->q, x), lhp->n_head, lhp->k_dim);
    frit_node *k = split_heads(b, frit_linear(b, &w->k, x), lhp->n_head_kv, lhp->k_dim);
    frit_node *v = split_heads(b, frit_linear(b, &w->v, x), lhp->n_head_kv, lhp->v_dim);
    if (frit_has(&w->q_norm)) q = frit_norm(b, &w->q_norm, q);
    if (frit_has(&w->k_norm)) k = frit_norm(b, &w->k_norm, k);
    if (!options.no_rope) {
        q = rotate(b, q);
        k = rotate(b, k);
    }
    frit_node *written = frit_kv_write(b->g, k, v, b->i_layer);
    const frit_attend attend = {.layer = b->i_layer,
                                .scale = attention_scale(b, &options),
                                .softcap = b->hp->attn_softcap,
                                .window = lhp->window};
    frit_node *y = frit_attend_node(b->g, q, written, attend, lhp->v_dim);
    y = frit_reshape(b->g, y, 1, (int64_t[]){(int64_t)lhp->n_head * lhp->v_dim});
    return frit_linear(b, &w->o, y);
}

frit_node *frit_feed_forward(frit_build *b, const frit_layer *w, frit_node *x, frit_ffn_options options)
{
    frit_node *h = frit_linear(b, &w->up, x);
    if (frit_has(&w->gate))
        h = frit_glu(b->g, frit_linear(b, &w->gate, x), h, options.act);
    else
        h = frit_activate(b->g, h, options.act);
    return frit_linear(b, &w->down, h);
}

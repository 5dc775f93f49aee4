// SPDX-License-Identifier: MIT
// The layer functions that most architectures share.
#include "arch/arch.h"

frit_node *frit_residual(frit_build *b, frit_node *x, frit_node *branch)
{
    if (b->hp->residual_scale != 0) branch = frit_scale(b->g, branch, b->hp->residual_scale);
    return frit_add(b->g, x, branch);
}

static frit_node *norm_if(frit_build *b, const frit_weight *w, frit_node *x)
{
    return frit_has(w) ? frit_norm(b, w, x) : x;
}

frit_node *frit_mixer(frit_build *b, const frit_layer *w, frit_node *x)
{
    if (b->lhp->is_recurrent) return b->arch->recurrent(b, w, x);
    return frit_has(&w->kv_a) ? frit_attention_mla(b, w, x) : frit_attention(b, w, x, b->arch->attention);
}

frit_node *frit_layer_sequential(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    h = frit_mixer(b, w, h);
    x = frit_residual(b, x, norm_if(b, &w->post_attn_norm, h));
    h = frit_norm(b, &w->ffn_norm, x);
    h = frit_feed_forward_or_experts(b, w, h);
    return frit_residual(b, x, norm_if(b, &w->post_ffn_norm, h));
}

frit_node *frit_layer_mixer(frit_build *b, const frit_layer *w, frit_node *x)
{
    return frit_residual(b, x, frit_mixer(b, w, frit_norm(b, &w->attn_norm, x)));
}

frit_node *frit_layer_post_norm(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_attention(b, w, x, b->arch->attention);
    x = frit_residual(b, x, frit_norm(b, &w->post_attn_norm, h));
    h = frit_feed_forward_or_experts(b, w, x);
    return frit_residual(b, x, frit_norm(b, &w->post_ffn_norm, h));
}

frit_node *frit_layer_norm_sums(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_residual(b, x, frit_attention(b, w, x, b->arch->attention));
    x = frit_norm(b, &w->post_attn_norm, x);
    x = frit_residual(b, x, frit_feed_forward_or_experts(b, w, x));
    return frit_norm(b, &w->post_ffn_norm, x);
}

frit_node *frit_layer_parallel(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    frit_node *f = frit_has(&w->ffn_norm) ? frit_norm(b, &w->ffn_norm, x) : h;
    frit_node *a = frit_has(&w->attn_norm_2) ? frit_norm(b, &w->attn_norm_2, x) : h;
    a = frit_attention(b, w, a, b->arch->attention);
    f = frit_feed_forward_or_experts(b, w, f);
    return frit_residual(b, frit_residual(b, x, a), f);
}

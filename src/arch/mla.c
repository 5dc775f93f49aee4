// SPDX-License-Identifier: MIT
// Multi-head latent attention (DeepSeek-V2): keys and values of all heads are computed from one short vector of each
// position. RoPE rotates only a part of each head.
//
//     kv_a x = [ latent | rotating part, shared by all heads ]
//
// Expanded: kv_b computes the keys and values of all heads, which are cached. Absorbed: the latent vector is key and
// value of a single head; k_b projects queries into the latent space, v_b projects the result of attention back to
// heads.
#include "arch/arch.h"

#include <math.h>

typedef struct latent {
    frit_node *c;    // [T, kv_rank], normed
    frit_node *pe;   // [T, 1, rope.dim], rotated
} latent;

static frit_node *heads_of(frit_build *b, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, x, 2, (int64_t[]){n_head, dim});
}

static frit_node *rotate(frit_build *b, frit_node *x, int32_t offset)
{
    return b->lhp->no_rope ? x : frit_rope_heads(b, x, offset);
}

// The number of elements of a head before the rotated part.
static int32_t still_dim(const frit_build *b)
{
    return b->hp->k_dim_mla - b->hp->rope.dim;
}

// Computes queries from the layer's input or from its compressed form.
static frit_node *make_queries(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_linear(b, frit_has(&w->q_a) ? &w->q_b : &w->q, x);
    x = heads_of(b, x, b->lhp->n_head, b->hp->k_dim_mla);
    return rotate(b, x, still_dim(b));
}

static latent make_latent(frit_build *b, const frit_layer *w, frit_node *x)
{
    const int64_t rank = b->hp->kv_rank, dim = b->hp->rope.dim;
    x = frit_linear(b, &w->kv_a, x);
    frit_node *pe = heads_of(b, frit_slice(b->g, x, rank, dim), 1, dim);
    return (latent){.c = frit_norm(b, &w->kv_a_norm, frit_slice(b->g, x, 0, rank)), .pe = rotate(b, pe, 0)};
}

static frit_node *attend_absorbed(frit_build *b, const frit_layer *w, frit_node *q, latent kv)
{
    frit_graph *g = b->g;
    const int64_t n_head = b->lhp->n_head, rank = b->hp->kv_rank, still = still_dim(b), dim = b->hp->rope.dim;
    frit_node *q_still = frit_heads(g, frit_weight_node(g, w->k_b.w), frit_slice(g, q, 0, still));
    q = frit_concat(g, q_still, frit_slice(g, q, still, dim));
    frit_node *c = heads_of(b, kv.c, 1, rank), *v = b->lhp->v_in_k ? NULL : c;
    frit_node *y = frit_attend_cached(b, w, q, frit_concat(g, c, kv.pe), v, b->hp->attn_scale);
    y = frit_heads(g, frit_weight_node(g, w->v_b.w), heads_of(b, y, n_head, rank));
    return frit_reshape(g, y, 1, (int64_t[]){n_head * b->hp->v_dim_mla});
}

static frit_node *attend_expanded(frit_build *b, const frit_layer *w, frit_node *q, latent kv)
{
    frit_graph *g = b->g;
    const int64_t n_head = b->lhp->n_head, still = still_dim(b), v_dim = b->hp->v_dim_mla, dim = b->hp->rope.dim;
    frit_node *x = heads_of(b, frit_linear(b, &w->kv_b, kv.c), n_head, still + v_dim);
    frit_node *v = frit_slice(g, x, still, v_dim);
    // If no part stays unrotated, all heads share the rotated part as their key.
    frit_node *k = still > 0 ? frit_slice(g, x, 0, still) : NULL;
    if (k) return frit_attend_cached(b, w, q, frit_concat(g, k, kv.pe), v, b->hp->attn_scale);
    for (int64_t h = 1; h < n_head; h++) k = frit_concat(g, k ? k : heads_of(b, kv.pe, 1, dim), kv.pe);
    return frit_attend_cached(b, w, q, heads_of(b, k ? k : kv.pe, n_head, dim), v, b->hp->attn_scale);
}

frit_node *frit_attention_mla(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *compressed = x;
    if (frit_has(&w->q_a)) compressed = frit_norm(b, &w->q_a_norm, frit_linear(b, &w->q_a, x));
    frit_node *q = make_queries(b, w, compressed);
    if (b->lhp->has_index) b->chosen = frit_choose_positions(b, w, x, compressed);
    const latent kv = make_latent(b, w, x);
    frit_node *const gated = x;
    x = frit_has(&w->k_b) ? attend_absorbed(b, w, q, kv) : attend_expanded(b, w, q, kv);
    if (frit_has(&w->head_gate)) x = frit_gate_heads(b, w, x, gated, FRIT_ACT_SIGMOID);
    return frit_linear(b, &w->o, x);
}

frit_status frit_mla_adjust(frit_hparams *hp)
{
    const frit_layer_hparams *first = &hp->layers[0];
    // Absorbed: the latent vector is the first part of keys and all of values, so it is cached once.
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_layer_hparams *lhp = &hp->layers[i];
        lhp->v_in_k = hp->k_dim_mla > 0 && lhp->n_head_kv == 1 && lhp->v_dim == hp->kv_rank &&
                      lhp->k_dim == hp->kv_rank + hp->rope.dim;
    }
    if (hp->k_dim_mla == 0) hp->k_dim_mla = first->k_dim;
    if (hp->v_dim_mla == 0) hp->v_dim_mla = first->v_dim;
    if (hp->kv_rank < 1)
        return frit_fail(FRIT_E_FORMAT, "attention.kv_lora_rank is %d, expected 1 or more", (int)hp->kv_rank);
    if (hp->k_dim_mla < hp->rope.dim)
        return frit_fail(FRIT_E_FORMAT, "heads have %d elements, fewer than the %d that RoPE rotates",
                         (int)hp->k_dim_mla, (int)hp->rope.dim);
    // With YaRN the scale of scores grows with the context's extension, because the rotated part is not scaled.
    double grown = hp->rope.factor > 1 ? 1 + hp->rope.log_multiplier * log(hp->rope.factor) : 1;
    hp->attn_scale = (float)(grown * grown / sqrt(hp->k_dim_mla));
    return FRIT_OK;
}

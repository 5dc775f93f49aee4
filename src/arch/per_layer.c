// SPDX-License-Identifier: MIT
// Small Gemmas: per-layer embeddings (each token has one for each layer), and last layers that use the keys and values
// of earlier layers.
#include "arch/arch.h"

#include <math.h>

frit_node *frit_per_layer_begin(frit_build *b, frit_node *x)
{
    const frit_hparams *hp = b->hp;
    const frit_weights *w = b->weights;
    const int64_t n = hp->n_embd_layer, n_layer = hp->n_layer;
    frit_graph *g = b->g;
    if (n == 0) return x;
    frit_node *projected = frit_scale(g, frit_linear(b, &w->layer_proj, x), 1 / sqrtf((float)hp->n_embd));
    projected = frit_norm(b, &w->layer_proj_norm, frit_reshape(g, projected, 2, (int64_t[]){n_layer, n}));
    projected = frit_reshape(g, projected, 1, (int64_t[]){n_layer * n});
    b->per_layer = projected;
    if (!frit_has(&w->layer_embd)) return x;
    frit_node *own = frit_embed(g, frit_weight_node(g, w->layer_embd.w), b->tokens);
    own = frit_scale(g, own, sqrtf((float)n));
    b->per_layer = frit_scale(g, frit_add(g, projected, own), sqrtf(0.5f));
    return x;
}

frit_node *frit_per_layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    const int64_t n = b->hp->n_embd_layer;
    frit_node *own = frit_slice(b->g, b->per_layer, b->i_layer * n, n);
    x = frit_glu(b->g, frit_linear(b, &w->layer_gate, x), own, b->hp->act);
    return frit_norm(b, &w->layer_norm, frit_linear(b, &w->layer_proj, x));
}

frit_status frit_share_kv(frit_hparams *hp)
{
    const int32_t first = hp->n_layer - hp->n_layer_shared_kv;
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_layer_hparams *lhp = &hp->layers[i];
        lhp->kv_layer = i;
        if (i < first) continue;
        int32_t k = first - 1;
        while (k >= 0 && (hp->layers[k].window > 0) != (lhp->window > 0)) k--;
        if (k < 0)
            return frit_fail(FRIT_E_FORMAT, "layer %d shares keys and values, but no layer of its kind has any",
                             (int)i);
        lhp->kv_layer = k;
        lhp->shares_kv = true;
        lhp->n_head_kv = hp->layers[k].n_head_kv;
    }
    return FRIT_OK;
}

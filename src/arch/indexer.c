// SPDX-License-Identifier: MIT
// The indexer of sparse attention (DeepSeek-V3.2): a few small heads score all cached positions; attention reads only
// the best.
//
//     score(t, p) = sum_h weights(x_t)[h] max(q(c_t)[h] . norm(k x_p), 0)
//
// c is the compressed query of latent attention. RoPE rotates the first elements of the indexer's heads and keys.
#include "arch/arch.h"

#include <math.h>

static const float norm_eps = 1e-6f;   // files have no key for it

frit_node *frit_choose_positions(frit_build *b, const frit_layer *w, frit_node *x, frit_node *compressed)
{
    const frit_index_params *index = &b->hp->index;
    const int64_t n_head = index->n_head, dim = index->dim;
    frit_graph *g = b->g;
    frit_node *q = frit_reshape(g, frit_linear(b, &w->index_q, compressed), 2, (int64_t[]){n_head, dim});
    frit_node *k = frit_linear(b, &w->index_k, x);
    k = frit_layer_norm(g, k, frit_weight_node(g, w->index_norm.w),
                        w->index_norm.b ? frit_weight_node(g, w->index_norm.b) : NULL, norm_eps);
    k = frit_reshape(g, k, 2, (int64_t[]){1, dim});
    q = frit_rope_heads_as(b, q, 0, index->rope_style);
    k = frit_rope_heads_as(b, k, 0, index->rope_style);
    frit_node *weights = frit_linear(b, &w->index_weights, x);
    weights = frit_scale(g, weights, 1 / sqrtf((float)(n_head * dim)));
    const frit_choose choose = {.layer = b->i_layer, .n = index->n_chosen, .n_ctx = b->hp->n_ctx};
    return frit_choose_node(g, q, weights, frit_index_write(g, k, b->i_layer), choose);
}

frit_status frit_indexer_adjust(frit_hparams *hp)
{
    frit_index_params *index = &hp->index;
    if (index->n_head < 1 || index->dim < hp->rope.dim || index->n_chosen < 1)
        return frit_fail(FRIT_E_FORMAT,
                         "attention.indexer has %d heads of %d numbers and chooses %d positions, expected 1 or more, "
                         "of at least rope.dimension_count %d",
                         (int)index->n_head, (int)index->dim, (int)index->n_chosen, (int)hp->rope.dim);
    if (hp->q_rank < 1)
        return frit_fail(FRIT_E_FORMAT, "attention.q_lora_rank is %d, expected 1 or more: the indexer reads it",
                         (int)hp->q_rank);
    if (!hp->layers[0].has_index)
        return frit_fail(FRIT_E_FORMAT,
                         "attention.indexer.types says that layer 0 shares an indexer, expected its own");
    return frit_mla_adjust(hp);
}

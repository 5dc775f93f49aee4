// SPDX-License-Identifier: MIT
// MiniMax-M3. QK norms per head; in all but the first layers an indexer chooses the blocks of positions that each KV
// head reads; experts and feed-forwards as in gpt-oss, with a shared expert.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_LAYER_WEIGHT(index_q,      "indexer.q_proj", N_INDEX_Q, N_EMBD, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(index_k,      "indexer.k_proj", INDEX,     N_EMBD, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(index_q_norm, "indexer.q_norm", INDEX,     1,      FRIT_WEIGHT_OWN_INDEX),
    FRIT_LAYER_WEIGHT(index_norm,   "indexer.k_norm", INDEX,     1,      FRIT_WEIGHT_OWN_INDEX),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_INDEXER, "attention.indexer.block_size", "attention.indexer.local_blocks",
                                   "expert_weights_norm", "leading_dense_block_count"};

static frit_status adjust(frit_hparams *hp)
{
    const frit_index_params *index = &hp->index;
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_layer_hparams *lhp = &hp->layers[i];
        lhp->has_index = lhp->has_experts;
        if (lhp->has_index && index->n_head != lhp->n_head_kv)
            return frit_fail(FRIT_E_FORMAT, "attention.indexer.head_count is %d, expected one for each of %d KV heads",
                             (int)index->n_head, (int)lhp->n_head_kv);
    }
    if (index->dim >= hp->rope.dim && index->n_chosen >= index->n_latest) return FRIT_OK;
    return frit_fail(
        FRIT_E_FORMAT,
        "attention.indexer has heads of %d numbers and chooses %d blocks, expected rope.dimension_count %d "
        "and local_blocks %d at least",
        (int)index->dim, (int)index->n_chosen, (int)hp->rope.dim, (int)index->n_latest);
}

static frit_node *choose(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_index_params *index = &b->hp->index;
    frit_node *q = frit_reshape(b->g, frit_linear(b, &w->index_q, x), 2, (int64_t[]){index->n_head, index->dim});
    frit_node *k = frit_reshape(b->g, frit_linear(b, &w->index_k, x), 2, (int64_t[]){1, index->dim});
    q = frit_rope_heads(b, frit_norm(b, &w->index_q_norm, q), 0);
    k = frit_rope_heads(b, frit_norm(b, &w->index_norm, k), 0);
    const frit_choose choose = {.layer = b->i_layer,
                                .n = index->n_chosen,
                                .n_ctx = b->hp->n_ctx,
                                .block = index->block,
                                .n_latest = index->n_latest};
    return frit_choose_blocks(b->g, q, frit_index_write(b->g, k, b->i_layer), choose);
}

static frit_node *feed_forward(frit_build *b, const frit_ffn_weights *w, frit_node *x)
{
    return frit_linear(b, &w->down, frit_glu_plus_one(b, frit_linear(b, &w->gate, x), frit_linear(b, &w->up, x)));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    b->chosen = b->lhp->has_index ? choose(b, w, h) : NULL;
    x = frit_residual(b, x, frit_attention(b, w, h, b->arch->attention));
    b->chosen = NULL;
    h = frit_norm(b, &w->ffn_norm, x);
    if (!b->lhp->has_experts) return frit_residual(b, x, feed_forward(b, &w->ffn, h));
    h = frit_add(b->g, frit_routed_experts(b, w, h, NULL), feed_forward(b, &w->shared, h));
    return frit_residual(b, x, h);
}

const frit_arch frit_arch_minimax_m3 = {
    .name = "minimax-m3",
    .title = "MiniMax-M3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .gating = FRIT_GATING_SIGMOID,
    .expert_normalize = true,
    .glu = frit_glu_plus_one,
    .layer = layer,
    .adjust = adjust,
};

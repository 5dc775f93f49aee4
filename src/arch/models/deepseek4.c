// SPDX-License-Identifier: MIT
// DeepSeek-V4. Hyper-connections; keys of one head that are also values, of the latest positions and of blocks of
// positions; in blocks of 4 an indexer chooses; attention's output is projected in groups of heads; experts, which in
// the first layers depend on the token alone.
#include "arch/arch.h"
#include "format/rows.h"

#include <math.h>

enum { INDEXED_BLOCK = 4 };   // blocks of this size overlap, and an indexer chooses some

// clang-format off
#define HYPER_ROWS(field, name)                                                                                     \
    FRIT_LAYER_WEIGHT(field.mix,    name "_fn",    HYPER_MIX,   HYPER_IN, FRIT_WEIGHT_UNSCALED),                   \
    FRIT_LAYER_WEIGHT(field.scales, name "_scale", HYPER_PARTS, 1,        0),                                      \
    FRIT_LAYER_WEIGHT(field.biases, name "_base",  HYPER_MIX,   1,        0)

static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_MODEL_WEIGHT(out_hyper.mix,    "output_hc_fn",    HYPER, HYPER_IN, FRIT_WEIGHT_UNSCALED),
    FRIT_MODEL_WEIGHT(out_hyper.scales, "output_hc_scale", 1,     1,        0),
    FRIT_MODEL_WEIGHT(out_hyper.biases, "output_hc_base",  HYPER, 1,        0),
    HYPER_ROWS(attn_hyper, "hc_attn"),
    HYPER_ROWS(ffn_hyper, "hc_ffn"),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_LAYER_WEIGHT(sinks,     "attn_sinks",     N_HEAD,   1,        0),
    FRIT_LAYER_WEIGHT(q_a,       "attn_q_a",       Q_RANK,   N_EMBD,   FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(q_a_norm,  "attn_q_a_norm",  Q_RANK,   1,        0),
    FRIT_LAYER_WEIGHT(q_b,       "attn_q_b",       N_Q,      Q_RANK,   FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(kv_a,      "attn_kv",        HEAD,     N_EMBD,   FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(kv_a_norm, "attn_kv_a_norm", HEAD,     1,        0),
    FRIT_LAYER_STACK(o_a, "attn_output_a", O_GROUPS, O_RANK, O_GROUP,  FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(o,         "attn_output_b",  N_EMBD,   O_RANKS,  FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(compressor.kv,     "attn_compressor_kv",   COMPRESSED,       N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(compressor.gate,   "attn_compressor_gate", COMPRESSED,       N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(compressor.biases, "attn_compressor_ape",  COMPRESSED_BLOCK, 1,      FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(compressor.norm,   "attn_compressor_norm", BLOCK_HEAD,       1,      0),
    FRIT_LAYER_WEIGHT(index_q,       "indexer.attn_q_b", N_INDEX_Q,   Q_RANK, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(index_weights, "indexer.proj",     INDEX_HEADS, N_EMBD, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(index_compressor.kv,     "indexer_compressor_kv",   INDEX_COMPRESSED, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(index_compressor.gate,   "indexer_compressor_gate", INDEX_COMPRESSED, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(index_compressor.biases, "indexer_compressor_ape",  INDEX_COMPRESSED_BLOCK, 1, FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(index_compressor.norm,   "indexer_compressor_norm", INDEX_HEAD,       1,      0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_EXPERTS(0),
    FRIT_WEIGHTS_SHARED_EXPERT(0),
    FRIT_LAYER_WEIGHT(token_experts, "ffn_gate_tid2eid", N_VOCAB, N_EXPERT_USED, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_TABLE),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_INDEXER,
                                   "attention.q_lora_rank",
                                   "attention.sliding_window",
                                   "attention.compress_ratios",
                                   "attention.compress_rope_freq_base",
                                   "attention.output_group_count",
                                   "attention.output_lora_rank",
                                   "expert_weights_norm",
                                   "hash_layer_count",
                                   "hyper_connection.count",
                                   "hyper_connection.epsilon",
                                   "hyper_connection.sinkhorn_iterations",
                                   "swiglu_clamp_exp",
                                   "swiglu_clamp_shexp"};

// ------------------------------------------------------------------------------- sizes

static frit_status adjust_layer(frit_hparams *hp, frit_layer_hparams *lhp, int32_t i)
{
    const int64_t n = lhp->block == INDEXED_BLOCK ? 4 * INDEXED_BLOCK : lhp->block;   // rows of the state, of one size
    if (lhp->n_head_kv != 1 || lhp->k_dim != lhp->v_dim || lhp->n_head % hp->o_groups != 0 || lhp->window < 1)
        return frit_fail(FRIT_E_FORMAT,
                         "layer %d has %d heads in %d groups, %d KV heads, keys of %d and values of %d numbers and a "
                         "window of %d, expected 1 KV head, values as keys, a window, and equal groups",
                         (int)i, (int)lhp->n_head, (int)hp->o_groups, (int)lhp->n_head_kv, (int)lhp->k_dim,
                         (int)lhp->v_dim, (int)lhp->window);
    lhp->v_in_k = true;
    hp->near_window = lhp->window;
    if (lhp->block == 0) return FRIT_OK;
    lhp->has_index = lhp->block == INDEXED_BLOCK;
    lhp->window = 0;   // keys of blocks are cached at all positions, next to the keys of positions
    lhp->n_head_kv = 2;
    const int64_t size = 2 * n * (lhp->k_dim + (lhp->has_index ? (int64_t)hp->index.dim : 0));
    if (size > 1 << 28)
        return frit_fail(FRIT_E_FORMAT, "layer %d has blocks of %d positions, whose state has %lld numbers, too many",
                         (int)i, (int)lhp->block, (long long)size);
    lhp->n_state = (int32_t)size;
    return FRIT_OK;
}

// Layers with blocks have a RoPE of their own, which may be scaled; YaRN does not change its magnitude.
static frit_status adjust(frit_hparams *hp)
{
    const frit_index_params *index = &hp->index;
    for (int32_t i = 0; i < hp->n_layer; i++) {
        FRIT_TRY(adjust_layer(hp, &hp->layers[i], i));
        if (hp->layers[i].has_index && (index->n_head < 1 || index->dim < hp->rope.dim || index->n_chosen < 1))
            return frit_fail(FRIT_E_FORMAT,
                             "attention.indexer has %d heads of %d numbers and chooses %d blocks, expected 1 or more, "
                             "of at least rope.dimension_count %d",
                             (int)index->n_head, (int)index->dim, (int)index->n_chosen, (int)hp->rope.dim);
    }
    if (hp->q_rank < 1) return frit_fail(FRIT_E_FORMAT, "attention.q_lora_rank is 0, expected 1 or more");
    hp->rope.base = hp->block_rope_base;
    if (hp->rope.scaling == FRIT_ROPE_YARN && hp->rope.factor > 1)
        hp->rope.attn_factor = 1 / (1 + 0.1f * logf(hp->rope.factor));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- experts by token

static const uint16_t never = 0xce6e;   // bfloat16: -1e9, a score with which no expert is chosen

// Replaces the table of a token's experts by one of what is added to the scores of all experts.
static frit_status spread_experts(frit_weight *w, const frit_hparams *hp, frit_arena *arena)
{
    const frit_tensor *ids = w->w;
    const int64_t n_used = hp->n_expert_used, n = hp->n_expert, n_vocab = hp->n_vocab;
    const int64_t id_bytes = frit_tensor_n_elems(ids) > 0 ? (int64_t)ids->n_bytes / frit_tensor_n_elems(ids) : 0;
    if (!ids->data || (ids->dtype != FRIT_DTYPE_I32 && ids->dtype != FRIT_DTYPE_I64))
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a table of whole numbers", ids->name);
    frit_tensor *table = frit_arena_new(arena, frit_tensor, 1);
    uint16_t *values = frit_arena_new(arena, uint16_t, (size_t)(n_vocab * n));
    if (!table || !values) return frit_fail_memory((size_t)(n_vocab * n) * sizeof *values, ids->name);
    for (int64_t i = 0; i < n_vocab * n; i++) values[i] = never;
    for (int64_t i = 0; i < n_vocab * n_used; i++) {
        int64_t id = 0;
        memcpy(&id, (const uint8_t *)ids->data + i * id_bytes, (size_t)id_bytes);   // negative ids become large ones
        if (id < 0 || id >= n)
            return frit_fail(FRIT_E_FORMAT, "tensor '%s': element %lld is %lld, expected an expert below %lld",
                             ids->name, (long long)i, (long long)id, (long long)n);
        values[i / n_used * n + id] = 0;
    }
    *table = (frit_tensor){.name = ids->name,
                           .dtype = FRIT_DTYPE_BF16,
                           .n_dims = 2,
                           .shape = {n_vocab, n, 1, 1},
                           .data = values,
                           .n_bytes = (uint64_t)(n_vocab * n) * sizeof *values};
    w->w = table;
    return FRIT_OK;
}

static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_weight *w = &weights->layers[i].token_experts;
        if (frit_has(w) != (i < hp->n_layer_hash))
            return frit_fail(FRIT_E_FORMAT, "layer %d %s a table of experts by token, but hash_layer_count is %d",
                             (int)i, frit_has(w) ? "has" : "has not", (int)hp->n_layer_hash);
        if (frit_has(w)) FRIT_TRY(spread_experts(w, hp, arena));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- the layer

static frit_node *heads_of(frit_build *b, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, x, 2, (int64_t[]){n_head, dim});
}

// Rotates the last elements of heads [T, H, D].
static frit_node *rotate(frit_build *b, frit_node *x, int32_t shift, bool is_back)
{
    if (!x) return NULL;
    const int32_t dim = b->lhp->window > 0 ? b->hp->rope_swa.dim : b->hp->rope.dim;
    return frit_rope_heads_by(b, x,
                              (frit_rope){.style = b->hp->rope_style,
                                          .offset = (int32_t)frit_node_width(x) - dim,
                                          .shift = shift,
                                          .is_back = is_back});
}

// Keys of blocks, [T, 1, D], in the row of each block's last position. A key is rotated as the block's first position.
static frit_node *compress(frit_build *b, const frit_compressor_weights *w, frit_node *x)
{
    frit_state state = frit_take_state(b, 0);
    state.block = b->lhp->block;
    state.overlaps = b->lhp->has_index;
    frit_node *kv = frit_linear(b, &w->kv, x), *gate = frit_linear(b, &w->gate, x);
    if (!kv) return NULL;
    frit_take_state(b, 2 * kv->shape[1] * (state.overlaps ? 2 : 1) * state.block);
    frit_node *y = frit_compress(b->g, kv, gate, frit_weight_node(b->g, w->biases.w), state);
    if (!y) return NULL;
    y = heads_of(b, frit_norm(b, &w->norm, y), 1, y->shape[1]);
    return rotate(b, y, 1 - state.block, false);
}

static frit_node *choose_blocks(frit_build *b, const frit_layer *w, frit_node *x, frit_node *compressed)
{
    const frit_index_params *index = &b->hp->index;
    frit_node *q = heads_of(b, frit_linear(b, &w->index_q, compressed), index->n_head, index->dim);
    frit_node *weights = frit_linear(b, &w->index_weights, x), *k = compress(b, &w->index_compressor, x);
    weights = frit_scale(b->g, weights, 1 / sqrtf((float)index->n_head * (float)index->dim));
    const frit_choose choose = {
        .layer = b->i_layer, .n = index->n_chosen, .n_ctx = b->hp->n_ctx, .block = b->lhp->block};
    return frit_choose_node(b->g, rotate(b, q, 0, false), weights, frit_index_write(b->g, k, b->i_layer), choose);
}

// Attention to the latest positions and to blocks.
static frit_node *attend_blocks(frit_build *b, const frit_layer *w, frit_node *q, frit_node *kv, frit_node *x,
                                frit_node *compressed, float scale)
{
    const int64_t dim = b->lhp->k_dim;
    const frit_attend attend = {
        .layer = b->i_layer, .scale = scale, .window = b->hp->near_window, .block = b->lhp->block};
    frit_node *k = compress(b, &w->compressor, x);
    frit_node *chosen = b->lhp->has_index ? choose_blocks(b, w, x, compressed) : NULL;
    kv = frit_concat(b->g, frit_reshape(b->g, kv, 1, (int64_t[]){dim}), frit_reshape(b->g, k, 1, (int64_t[]){dim}));
    frit_node *written = frit_kv_write(b->g, heads_of(b, kv, 2, dim), NULL, b->i_layer);
    return frit_attend_blocks(b->g, q, written, frit_weight_node(b->g, w->sinks.w), chosen, attend);
}

static frit_node *attention(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_layer_hparams *lhp = b->lhp;
    const frit_hparams *hp = b->hp;
    const int64_t n_head = lhp->n_head, dim = lhp->k_dim, n_groups = hp->o_groups;
    const float scale = 1 / sqrtf((float)dim);
    frit_node *compressed = frit_norm(b, &w->q_a_norm, frit_linear(b, &w->q_a, x));
    frit_node *q = heads_of(b, frit_linear(b, &w->q_b, compressed), n_head, dim);
    q = rotate(b, frit_rms_norm(b->g, q, NULL, hp->rms_eps), 0, false);
    frit_node *kv = heads_of(b, frit_norm(b, &w->kv_a_norm, frit_linear(b, &w->kv_a, x)), 1, dim);
    kv = rotate(b, kv, 0, false);
    frit_node *y = lhp->block > 0 ? attend_blocks(b, w, q, kv, x, compressed, scale)
                                  : heads_of(b, frit_attend_cached(b, w, q, kv, NULL, scale), n_head, dim);
    y = rotate(b, y, 0, true);   // values are rotated with keys
    y = frit_heads(b->g, frit_weight_node(b->g, w->o_a.w), heads_of(b, y, n_groups, n_head * dim / n_groups));
    return frit_linear(b, &w->o, frit_reshape(b->g, y, 1, (int64_t[]){n_groups * hp->o_rank}));
}

static frit_node *glu(frit_build *b, frit_node *gate, frit_node *up, float limit)
{
    if (limit == 0) return frit_glu(b->g, gate, up, FRIT_ACT_SILU);
    return frit_glu(b->g, frit_clamp(b->g, gate, -INFINITY, limit), frit_clamp(b->g, up, -limit, limit), FRIT_ACT_SILU);
}

static frit_node *glu_of_experts(frit_build *b, frit_node *gate, frit_node *up)
{
    return glu(b, gate, up, b->lhp->clamp_exp);
}

static frit_node *experts(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *scores = frit_linear(b, &w->router, x);
    if (frit_has(&w->token_experts))
        scores = frit_add(b->g, scores, frit_embed(b->g, frit_weight_node(b->g, w->token_experts.w), b->tokens));
    frit_node *y = frit_routed_experts(b, w, x, scores);
    frit_node *h = glu(b, frit_linear(b, &w->shared.gate, x), frit_linear(b, &w->shared.up, x), b->lhp->clamp_shexp);
    return frit_add(b->g, y, frit_linear(b, &w->shared.down, h));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_hyper_branch branch = frit_hyper_read(b, &w->attn_hyper, x);
    x = frit_hyper_write(b, branch, x, attention(b, w, frit_norm(b, &w->attn_norm, branch.x)));
    branch = frit_hyper_read(b, &w->ffn_hyper, x);
    return frit_hyper_write(b, branch, x, experts(b, w, frit_norm(b, &w->ffn_norm, branch.x)));
}

const frit_arch frit_arch_deepseek4 = {
    .name = "deepseek4",
    .title = "DeepSeek-V4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .gating = FRIT_GATING_SQRT_SOFTPLUS,
    .windows = {.plain_rope = true},
    .glu = glu_of_experts,
    .begin = frit_hyper_begin,
    .layer = layer,
    .end = frit_hyper_end,
    .adjust = adjust,
    .compute = compute,
};

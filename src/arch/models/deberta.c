// SPDX-License-Identifier: MIT
// DeBERTa v2 and v3. As BERT without learned positions; scores also compare queries and keys with embeddings of the
// distance between tokens, which all layers share and each layer projects with its matrices of queries and keys.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_BERT,
    FRIT_MODEL_WEIGHT(pos_embd, "position_embd", N_CTX,     N_EMBD, FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(rel_bias, "rel_embd",      N_BUCKETS, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(rel_norm, "rel_embd_norm", N_EMBD,    1,      0),
    FRIT_WEIGHTS_UNGATED(0),
};
// clang-format on

static const char *const keys[] = {"attention.relative_buckets_count"};

// ------------------------------------------------------------------------------- embeddings of distances

// Reads the embeddings of distances with their norm, transposed: [n_embd, n].
static frit_status read_distances(const frit_weights *weights, const frit_hparams *hp, int64_t n, float *out,
                                  float *row)
{
    const int64_t width = hp->n_embd;
    const float *w = weights->rel_norm.w->data, *b = weights->rel_norm.b ? weights->rel_norm.b->data : NULL;
    for (int64_t i = 0; i < n; i++) {
        double mean = 0, square = 0;
        FRIT_TRY(frit_tensor_decode_rows(weights->rel_bias.w, i, 1, row));
        for (int64_t k = 0; k < width; k++) mean += row[k] / (double)width;
        for (int64_t k = 0; k < width; k++) square += (row[k] - mean) * (row[k] - mean) / (double)width;
        const double scale = 1 / sqrt(square + (double)hp->layer_norm_eps);
        for (int64_t k = 0; k < width; k++) out[k * n + i] = (float)((row[k] - mean) * scale) * w[k] + (b ? b[k] : 0);
    }
    return FRIT_OK;
}

// Projects them: the result is [n_head, n, dim] of a matrix [n_head * dim, n_embd].
static frit_status project(const frit_tensor **out, const frit_weight *w, const frit_hparams *hp, int64_t n,
                           const float *distances, frit_arena *arena)
{
    const int64_t n_head = hp->layers[0].n_head, dim = hp->layers[0].k_dim, shape[] = {n_head, n, dim};
    float *values, *row = frit_arena_new(arena, float, (size_t)hp->n_embd + (size_t)n), *sums = row + hp->n_embd;
    if (!row) return frit_fail_memory((size_t)hp->n_embd * sizeof *row, w->w->name);
    FRIT_TRY(frit_constant_new(out, &values, w->w->name, 3, shape, arena));
    for (int64_t o = 0; o < n_head * dim; o++) {
        FRIT_TRY(frit_tensor_decode_rows(w->w, o, 1, row));
        for (int64_t i = 0; i < n; i++) sums[i] = w->b ? ((const float *)w->b->data)[o] : 0;
        for (int64_t k = 0; k < hp->n_embd; k++)
            for (int64_t i = 0; i < n; i++) sums[i] += row[k] * distances[k * n + i];
        for (int64_t i = 0; i < n; i++) values[(o / dim * n + i) * dim + o % dim] = sums[i];
    }
    return FRIT_OK;
}

static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    const int64_t n = hp->rel_buckets;
    float *distances = frit_arena_new(arena, float, (size_t)(n + 1) * (size_t)hp->n_embd);
    if (!distances) return frit_fail_memory((size_t)n * (size_t)hp->n_embd * sizeof *distances, "distances");
    FRIT_TRY(read_distances(weights, hp, n, distances, distances + n * hp->n_embd));
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_layer *w = &weights->layers[i];
        FRIT_TRY(project(&w->rel_k, &w->k, hp, n, distances, arena));
        FRIT_TRY(project(&w->rel_q, &w->q, hp, n, distances, arena));
    }
    return FRIT_OK;
}

static frit_status adjust(frit_hparams *hp)
{
    hp->has_no_cache = true;   // all rows that a token sees are in its step
    if (hp->rel_buckets % 2 == 0) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "deberta.attention.relative_buckets_count is %d, expected an even number",
                     (int)hp->rel_buckets);
}

// ------------------------------------------------------------------------------- the layer

static frit_node *heads(frit_build *b, const frit_weight *w, frit_node *x)
{
    return frit_reshape(b->g, frit_linear(b, w, x), 2, (int64_t[]){b->lhp->n_head, b->lhp->k_dim});
}

static frit_node *attention(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_graph *g = b->g;
    frit_node *q = heads(b, &w->q, x), *k = heads(b, &w->k, x), *v = heads(b, &w->v, x);
    const frit_relate relate = {.scale = 1 / sqrtf(3 * (float)b->lhp->k_dim),   // three terms
                                .span = b->hp->rel_buckets / 2,
                                .n_distances = b->hp->rel_distance};
    frit_node *to_key = frit_heads(g, frit_weight_node(g, w->rel_k), q);
    frit_node *to_query = frit_heads(g, frit_weight_node(g, w->rel_q), k);
    frit_node *y = frit_attend_relative(g, q, k, v, to_key, to_query, relate);
    return frit_linear(b, &w->o, frit_reshape(g, y, 1, (int64_t[]){(int64_t)b->lhp->n_head * b->lhp->k_dim}));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_norm(b, &w->post_attn_norm, frit_add(b->g, x, attention(b, w, x)));
    return frit_norm(b, &w->post_ffn_norm, frit_add(b->g, x, frit_feed_forward(b, &w->ffn, x, b->hp->act)));
}

const frit_arch frit_arch_deberta = {
    .name = "deberta",
    .title = "DeBERTa v2, v3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .is_encoder = true,
    .no_out_norm = true,
    .ranks_by_gelu = true,
    .adjust = adjust,
    .compute = compute,
    .layer = layer,
};

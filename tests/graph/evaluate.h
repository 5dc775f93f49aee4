// SPDX-License-Identifier: MIT
// graph/evaluate.h: runs a graph by the formulas of the op table, in double precision, node by node.
//
// The evaluation uses neither plans nor backends, so tests can check both against it, and fusion and the graphs of
// architectures too. It runs one sequence from position 0; row t is position t.
#pragma once
#include "graph/node.h"
#include "support/support.h"

#include <math.h>

enum { EVALUATE_LAYERS = 64 };

typedef struct evaluate_cache {   // keys and values of all rows
    double *k[EVALUATE_LAYERS], *v[EVALUATE_LAYERS];
    int64_t n_kv[EVALUATE_LAYERS], k_dim[EVALUATE_LAYERS];
} evaluate_cache;

typedef struct evaluation {
    const int32_t *tokens, *out_rows;
    double **values;   // [n_nodes], NULL: not yet computed
    evaluate_cache *cache;
    struct evaluation *ranks;   // [n_ranks]: the ranks of a group, with their graphs; NULL: none
    const frit_graph *graphs;
    int n_ranks, rank;
} evaluation;

static inline const double *evaluate_node(evaluation *e, const frit_node *node);

static inline double evaluate_act(frit_act act, double x)
{
    switch (act) {
    case FRIT_ACT_SILU:
        return x / (1 + exp(-x));
    case FRIT_ACT_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case FRIT_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / 3.141592653589793) * (x + 0.044715 * x * x * x)));
    case FRIT_ACT_GELU_QUICK:
        return x / (1 + exp(-1.702 * x));
    case FRIT_ACT_RELU:
        return x > 0 ? x : 0;
    case FRIT_ACT_RELU2:
        return x > 0 ? x * x : 0;
    case FRIT_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case FRIT_ACT_TANH:
        return tanh(x);
    case FRIT_ACT_SOFTPLUS:
        return log(1 + exp(x));
    case FRIT_ACT_COUNT:
        break;
    }
    fail_msg("activation %d has no formula", (int)act);
    return 0;
}

static inline void evaluate_norm(const double *x, const double *w, double eps, double *y, int64_t n_rows, int64_t n)
{
    for (int64_t t = 0; t < n_rows; t++, x += n, y += n) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
        double scale = 1 / sqrt(sum / (double)n + eps);
        for (int64_t i = 0; i < n; i++) y[i] = x[i] * scale * (w ? w[i] : 1);
    }
}

static inline void evaluate_layer_norm(const double *x, const double *w, const double *b, double eps, double *y,
                                       int64_t n_rows, int64_t n)
{
    for (int64_t t = 0; t < n_rows; t++, x += n, y += n) {
        double mean = 0, var = 0;
        for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) / sqrt(var + eps) * (w ? w[i] : 1) + (b ? b[i] : 0);
    }
}

static inline void evaluate_linear(const double *x, const double *w, const double *b, double *y, int64_t n_rows,
                                   int64_t n_in, int64_t n_out)
{
    for (int64_t t = 0; t < n_rows; t++) {
        for (int64_t o = 0; o < n_out; o++) {
            double sum = b ? b[o] : 0;
            for (int64_t i = 0; i < n_in; i++) sum += x[t * n_in + i] * w[o * n_in + i];
            y[t * n_out + o] = sum;
        }
    }
}

static inline void evaluate_rope(const frit_node *node, const double *x, const double *inv_freq, const double *factors,
                                 double *y)
{
    int64_t n_heads = node->shape[1], n = node->shape[2];
    const frit_rope *rope = &node->rope;
    memcpy(y, x, (size_t)frit_node_elems(node) * sizeof *y);
    for (int64_t t = 0; t < node->shape[0]; t++) {
        for (int64_t h = 0; h < n_heads; h++) {
            double *head = y + (t * n_heads + h) * n;
            for (int i = 0; i < rope->dim / 2; i++) {
                bool halves = rope->style == FRIT_ROPE_NEOX;
                int a = halves ? i : 2 * i, b = halves ? i + rope->dim / 2 : 2 * i + 1;
                double angle = (double)t * inv_freq[i] / (factors ? factors[i] : 1);
                double c = cos(angle) * (double)rope->magnitude, s = sin(angle) * (double)rope->magnitude;
                double p = head[a], q = head[b];
                head[a] = p * c - q * s;
                head[b] = p * s + q * c;
            }
        }
    }
}

static inline double *evaluate_copy(const frit_node *node, const double *x)
{
    size_t n = (size_t)frit_node_elems(node);
    double *copy = calloc(n + 1, sizeof *copy);
    memcpy(copy, x, n * sizeof *x);
    return copy;
}

static inline void evaluate_kv_write(evaluate_cache *cache, const frit_node *node, const double *k, const double *v)
{
    assert_true(node->layer < EVALUATE_LAYERS);
    free(cache->k[node->layer]);
    free(cache->v[node->layer]);
    cache->k[node->layer] = evaluate_copy(node->src[0], k);
    cache->v[node->layer] = evaluate_copy(node->src[1], v);
    cache->n_kv[node->layer] = node->src[0]->shape[1];
    cache->k_dim[node->layer] = node->src[0]->shape[2];
}

static inline void evaluate_cache_free(evaluate_cache *cache)
{
    for (int i = 0; i < EVALUATE_LAYERS; i++) free(cache->k[i]), free(cache->v[i]);
    *cache = (evaluate_cache){0};
}

static inline void evaluate_attend(const evaluate_cache *cache, const frit_node *node, const double *q, double *y)
{
    const int32_t layer = node->attend.layer;
    const double *k = cache->k[layer], *v = cache->v[layer];
    int64_t n_heads = node->shape[1], n_kv = cache->n_kv[layer], k_dim = cache->k_dim[layer], v_dim = node->shape[2];
    assert_non_null(k);
    double *p = calloc((size_t)node->shape[0], sizeof *p);
    for (int64_t t = 0; t < node->shape[0]; t++) {
        for (int64_t h = 0; h < n_heads; h++) {
            int64_t g = h / (n_heads / n_kv);
            int64_t first = node->attend.window > 0 && t >= node->attend.window ? t - node->attend.window + 1 : 0;
            double best = -INFINITY, total = 0;
            for (int64_t s = first; s <= t; s++) {
                p[s] = 0;
                for (int64_t i = 0; i < k_dim; i++)
                    p[s] += q[(t * n_heads + h) * k_dim + i] * k[(s * n_kv + g) * k_dim + i];
                p[s] *= (double)node->attend.scale;
                double cap = (double)node->attend.softcap;
                if (cap != 0) p[s] = cap * tanh(p[s] / cap);
                best = fmax(best, p[s]);
            }
            for (int64_t s = first; s <= t; s++) total += p[s] = exp(p[s] - best);
            for (int64_t i = 0; i < v_dim; i++) {
                double sum = 0;
                for (int64_t s = first; s <= t; s++) sum += p[s] / total * v[(s * n_kv + g) * v_dim + i];
                y[(t * n_heads + h) * v_dim + i] = sum;
            }
        }
    }
    free(p);
}

static inline void evaluate_weight(const frit_tensor *tensor, double *y)
{
    int64_t n = tensor->shape[tensor->n_dims - 1], n_rows = frit_tensor_n_elems(tensor) / n;
    float *row = calloc((size_t)n, sizeof *row);
    for (int64_t r = 0; r < n_rows; r++) {
        assert_ok(frit_tensor_decode_rows(tensor, r, 1, row));
        for (int64_t i = 0; i < n; i++) y[r * n + i] = (double)row[i];
    }
    free(row);
}

static inline void evaluate_input(evaluation *e, const frit_node *node, double *y)
{
    for (int64_t t = 0; t < node->shape[0]; t++) {
        switch (node->input) {
        case FRIT_INPUT_TOKENS:
            y[t] = e->tokens[t];
            break;
        case FRIT_INPUT_POSITIONS:
            y[t] = (double)t;
            break;
        case FRIT_INPUT_OUT_ROWS:
            y[t] = e->out_rows[t];
            break;
        case FRIT_INPUT_WRITTEN:
            break;
        case FRIT_INPUT_RESULT:
            fail_msg("an input of a segment has no value");
        }
    }
}

static inline void evaluate_elementwise(const frit_node *node, const double *const src[], double *y)
{
    int64_t n = frit_node_elems(node), n1 = node->n_src > 1 ? frit_node_elems(node->src[1]) : n;
    for (int64_t i = 0; i < n; i++) {
        double a = src[0][i], b = node->n_src > 1 ? src[1][i % n1] : 0;
        switch (node->op) {
        case FRIT_OP_ADD:
            y[i] = a + b;
            break;
        case FRIT_OP_MUL:
            y[i] = a * b;
            break;
        case FRIT_OP_SCALE:
            y[i] = a * (double)node->factor;
            break;
        case FRIT_OP_SOFTCAP:
            y[i] = (double)node->factor * tanh(a / (double)node->factor);
            break;
        case FRIT_OP_ACT:
            y[i] = evaluate_act(node->act, a);
            break;
        case FRIT_OP_XIELU:
            y[i] = (a > 0 ? (double)node->xielu.positive * a * a
                          : (double)node->xielu.negative * (exp(fmin(a, (double)node->xielu.eps)) - 1 - a)) +
                   (double)node->xielu.beta * a;
            break;
        case FRIT_OP_GLU:
            y[i] = evaluate_act(node->act, a) * b;
            break;
        default:
            fail_msg("op %s has no formula here", frit_op_get(node->op)->name);
        }
    }
}

// Computes y = x w^T for a product whose matrix is source i_w.
static inline void evaluate_product(const frit_node *node, int i_w, const double *const src[], const double *bias,
                                    double *y)
{
    int64_t n_out = node->src[i_w]->shape[0], n_in = node->src[i_w]->shape[1];
    evaluate_linear(src[0], src[i_w], bias, y, frit_node_elems(node) / n_out, n_in, n_out);
}

static inline void evaluate_rows(const frit_node *node, const double *x, const double *rows, double *y)
{
    int64_t n = frit_node_elems(node) / (node->shape[0] > 0 ? node->shape[0] : 1);
    for (int64_t t = 0; t < node->shape[0]; t++) memcpy(y + t * n, x + (int64_t)rows[t] * n, (size_t)n * sizeof *y);
}

// The source of an exchange, as rank r computes it.
static inline const double *evaluate_of_rank(evaluation *e, const frit_node *node, int r)
{
    return evaluate_node(&e->ranks[r], e->graphs[r].nodes[node->src[0]->id]);
}

static inline void evaluate_reduce(evaluation *e, const frit_node *node, double *y)
{
    for (int r = 0; r < e->n_ranks; r++) {
        const double *x = evaluate_of_rank(e, node, r);
        for (int64_t i = 0; i < frit_node_elems(node); i++) y[i] += x[i];
    }
}

// Copies a part between the ranks' value and the whole one.
static inline void evaluate_cut(const frit_node *part, const frit_ranks *ranks, int index, const double *from,
                                double *to, bool gathers)
{
    int64_t n_outer = 1, n = 1;
    for (int i = 0; i < part->n_dims; i++) *(i < ranks->axis ? &n_outer : &n) *= part->shape[i];
    for (int64_t i = 0; i < n_outer; i++) {
        const int64_t whole = (i * ranks->n_parts + index) * n;
        memcpy(to + (gathers ? whole : i * n), from + (gathers ? i * n : whole), (size_t)n * sizeof *to);
    }
}

static inline void evaluate_gather(evaluation *e, const frit_node *node, double *y)
{
    const frit_ranks *ranks = &node->ranks;
    for (int p = 0; p < ranks->n_parts; p++)
        evaluate_cut(node->src[0], ranks, p, evaluate_of_rank(e, node, p * ranks->n / ranks->n_parts), y, true);
}

static inline void evaluate_op(evaluation *e, const frit_node *node, const double *const src[], double *y)
{
    int64_t n = node->shape[node->n_dims - 1], size = frit_node_elems(node), n_rows = n > 0 ? size / n : 0;
    switch (node->op) {
    case FRIT_OP_INPUT:
        evaluate_input(e, node, y);
        break;
    case FRIT_OP_WEIGHT:
        evaluate_weight(node->tensor, y);
        break;
    case FRIT_OP_EMBED:
        evaluate_rows(node, src[0], src[1], y);
        break;
    case FRIT_OP_TAKE_ROWS:
        evaluate_rows(node, src[0], src[1], y);
        break;
    case FRIT_OP_LINEAR:
        evaluate_product(node, 1, src, src[2], y);
        for (int64_t i = 0; i < size && node->factor != 0; i++) y[i] *= (double)node->factor;
        break;
    case FRIT_OP_RMS_NORM:
        evaluate_norm(src[0], src[1], (double)node->eps, y, n_rows, n);
        break;
    case FRIT_OP_LAYER_NORM:
        evaluate_layer_norm(src[0], src[1], src[2], (double)node->eps, y, n_rows, n);
        break;
    case FRIT_OP_RESHAPE:
        memcpy(y, src[0], (size_t)size * sizeof *y);
        break;
    case FRIT_OP_ROPE:
        evaluate_rope(node, src[0], src[2], src[3], y);
        break;
    case FRIT_OP_KV_WRITE:
        evaluate_kv_write(e->cache, node, src[0], src[1]);
        break;
    case FRIT_OP_ATTEND:
        evaluate_attend(e->cache, node, src[0], y);
        break;
    case FRIT_OP_REDUCE:
        evaluate_reduce(e, node, y);
        break;
    case FRIT_OP_GATHER:
        evaluate_gather(e, node, y);
        break;
    case FRIT_OP_PART:
        evaluate_cut(node, &node->ranks, e->rank * node->ranks.n_parts / node->ranks.n, src[0], y, false);
        break;
    case FRIT_OP_SLICE:
        for (int64_t t = 0; t < n_rows; t++)
            memcpy(y + t * n, src[0] + t * frit_node_width(node->src[0]) + node->begin, (size_t)n * sizeof *y);
        break;
    default:
        evaluate_elementwise(node, src, y);
    }
}

static inline const double *evaluate_node(evaluation *e, const frit_node *node)
{
    if (e->values[node->id]) return e->values[node->id];
    const double *src[FRIT_MAX_SOURCES] = {NULL};
    for (int i = 0; i < node->n_src; i++) src[i] = evaluate_node(e, node->src[i]);
    double *y = calloc((size_t)frit_node_elems(node) + 1, sizeof *y);
    evaluate_op(e, node, src, y);
    return e->values[node->id] = y;
}

// Computes the output of the graph as floats, malloc'd. `tokens` is [max_rows], `out_rows` [max_outs].
static inline float *evaluate_graph(const frit_graph *g, const int32_t *tokens, const int32_t *out_rows)
{
    size_t n = (size_t)g->n_nodes;
    evaluate_cache cache = {0};
    evaluation e = {.tokens = tokens, .out_rows = out_rows, .values = calloc(n, sizeof *e.values), .cache = &cache};
    const double *y = evaluate_node(&e, g->output);
    size_t size = (size_t)frit_node_elems(g->output);
    float *result = calloc(size + 1, sizeof *result);
    for (size_t i = 0; i < size; i++) result[i] = (float)y[i];
    for (size_t i = 0; i < n; i++) free(e.values[i]);
    free(e.values);
    evaluate_cache_free(&cache);
    return result;
}

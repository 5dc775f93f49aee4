// SPDX-License-Identifier: MIT
// Compares small models on the GPU with a reference in plain C, whose weights are decoded by src/quant.
#include "base/rng.h"
#include "gpu_prompt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 70, POSITIONS = 320, MAX_SEQS = 16 };

typedef struct reference {
    const model *m;
    frit_rng rng;
    float *qk[MODEL_MAX_LAYERS], *v[MODEL_MAX_LAYERS], *o[MODEL_MAX_LAYERS], *gate[MODEL_MAX_LAYERS],
        *up[MODEL_MAX_LAYERS], *down[MODEL_MAX_LAYERS], *norm1[MODEL_MAX_LAYERS], *norm2[MODEL_MAX_LAYERS];
    float *table, *head, *norm_out;
    float *keys, *values;   // [layer][row][position][kv head * head size]
    int begin[MAX_SEQS];    // tokens of each row before its first step
} reference;

static float *floats(size_t n)
{
    float *p = calloc(n, sizeof *p);
    if (!p) must(frit_fail_memory(n * sizeof *p, "the reference model"));
    return p;
}

static float normal(frit_rng *rng)
{
    const double u = 1 - frit_rng_double(rng), v = frit_rng_double(rng);
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

// Encodes a random matrix. *decoded: its numbers after encoding.
static uint8_t *random_matrix(reference *r, frit_dtype dtype, int n_rows, int k, float **decoded)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    const size_t row_bytes = (size_t)frit_dtype_row_bytes(dtype, k);
    uint8_t *blocks = malloc((size_t)n_rows * row_bytes);
    float *row = floats((size_t)k);
    *decoded = floats((size_t)n_rows * (size_t)k);
    for (int i = 0; blocks && i < n_rows; i++) {
        for (int j = 0; j < k; j++) row[j] = normal(&r->rng) * 0.05f;
        type->encode(row, blocks + (size_t)i * row_bytes, k, NULL);
        type->decode(blocks + (size_t)i * row_bytes, *decoded + (size_t)i * (size_t)k, k);
    }
    free(row);
    return blocks;
}

static void upload_tiles(bench *b, frit_dtype dtype, const frit_tile_source *source, uint64_t to)
{
    must(frit_cuda_load_tiles(&b->loader, dtype, source, to));
    must(frit_cuda_loader_wait(&b->loader));
}

static float *make_matrix(bench *b, reference *r, frit_dtype dtype, int n_rows, int k, frit_cuda_row_order order,
                          uint64_t to)
{
    float *decoded;
    uint8_t *blocks = random_matrix(r, dtype, n_rows, k, &decoded);
    const frit_tile_source source = {
        .blocks = blocks, .n_rows = n_rows, .n_columns = k, .order = order, .head_size = r->m->shape.head_size};
    upload_tiles(b, dtype, &source, to);
    free(blocks);
    return decoded;
}

static float *make_norm(bench *b, reference *r, int n, uint64_t to)
{
    float *w = floats((size_t)n);
    for (int i = 0; i < n; i++) w[i] = 1 + 0.1f * normal(&r->rng);
    upload(b, to, w, (size_t)n * 4);
    return w;
}

static void make_weights(bench *b, reference *r)
{
    const model *m = r->m;
    const model_shape *s = &m->shape;
    const int n_q = s->n_heads * s->head_size, n_kv = s->n_kv_heads * s->head_size;
    for (int i = 0; i < s->n_layers; i++) {
        const model_layer *l = &m->layers[i];
        r->qk[i] = make_matrix(b, r, m->types.most, n_q + n_kv, s->dim, FRIT_CUDA_ORDER_ADJACENT, l->qk);
        r->v[i] = make_matrix(b, r, model_type(m, i, true), n_kv, s->dim, FRIT_CUDA_ORDER_NATURAL, l->v);
        r->o[i] = make_matrix(b, r, m->types.most, s->dim, n_q, FRIT_CUDA_ORDER_NATURAL, l->o);
        uint8_t *gate = random_matrix(r, m->types.most, s->n_ff, s->dim, &r->gate[i]);
        uint8_t *up = random_matrix(r, m->types.most, s->n_ff, s->dim, &r->up[i]);
        const frit_tile_source source = {
            .blocks = gate, .second = up, .n_rows = s->n_ff, .n_columns = s->dim, .order = FRIT_CUDA_ORDER_GATED};
        upload_tiles(b, m->types.most, &source, l->gate_up);
        free(gate);
        free(up);
        r->down[i] = make_matrix(b, r, model_type(m, i, true), s->dim, s->n_ff, FRIT_CUDA_ORDER_NATURAL, l->down);
        r->norm1[i] = make_norm(b, r, s->dim, l->norm1);
        r->norm2[i] = make_norm(b, r, s->dim, l->norm2);
    }
    r->head = make_matrix(b, r, m->types.head, s->n_vocab, s->dim, FRIT_CUDA_ORDER_NATURAL, m->head);
    r->norm_out = make_norm(b, r, s->dim, m->norm_out);
    r->table = make_matrix(b, r, m->types.head, s->n_vocab, s->dim, FRIT_CUDA_ORDER_NATURAL, m->table);
    const size_t n = (size_t)(s->n_layers * m->rows * POSITIONS) * (size_t)n_kv;
    r->keys = floats(n);
    r->values = floats(n);
}

// ------------------------------------------------------------------------------- a step

static void multiply(const float *weights, const float *x, int n_rows, int k, float *y)
{
    for (int i = 0; i < n_rows; i++) {
        float sum = 0;
        for (int j = 0; j < k; j++) sum += weights[(size_t)i * (size_t)k + (size_t)j] * x[j];
        y[i] = sum;
    }
}

static void norm(const float *x, const float *w, int n, float *y)
{
    double squares = 0;
    for (int i = 0; i < n; i++) squares += (double)x[i] * x[i];
    const float factor = (float)(1 / sqrt(squares / n + 1e-5));
    for (int i = 0; i < n; i++) y[i] = x[i] * factor * w[i];
}

static void rotate(const model_shape *s, float *x, int n_heads, int position)
{
    const int half = s->head_size / 2;
    for (int i = 0; i < n_heads * half; i++) {
        const double angle = position * pow(500000.0, -(double)(i % half) / half);
        const double c = cos(angle), d = sin(angle), a = x[2 * i], e = x[2 * i + 1];
        x[2 * i] = (float)(a * c - e * d);
        x[2 * i + 1] = (float)(a * d + e * c);
    }
}

static void attend(const model_shape *s, const float *q, const float *keys, const float *values, int n, float *out)
{
    const int size = s->head_size, n_kv = s->n_kv_heads * size, group = s->n_heads / s->n_kv_heads;
    float scores[POSITIONS];
    for (int h = 0; h < s->n_heads; h++) {
        const int at = h / group * size;
        float largest = -INFINITY, total = 0;
        for (int p = 0; p < n; p++) {
            scores[p] = 0;
            for (int d = 0; d < size; d++) scores[p] += q[h * size + d] * keys[p * n_kv + at + d];
            scores[p] /= sqrtf((float)size);
            largest = fmaxf(largest, scores[p]);
        }
        for (int p = 0; p < n; p++) total += scores[p] = expf(scores[p] - largest);
        for (int d = 0; d < size; d++) {
            float sum = 0;
            for (int p = 0; p < n; p++) sum += scores[p] * values[p * n_kv + at + d];
            out[h * size + d] = sum / total;
        }
    }
}

static void run_layer(reference *r, int i, int row, int position, float *x, float *y, float *z)
{
    const model_shape *s = &r->m->shape;
    const int n_q = s->n_heads * s->head_size, n_kv = s->n_kv_heads * s->head_size;
    const size_t sequence = (size_t)((i * r->m->rows + row) * POSITIONS) * (size_t)n_kv;
    float *keys = r->keys + sequence, *values = r->values + sequence;
    norm(x, r->norm1[i], s->dim, y);
    multiply(r->qk[i], y, n_q + n_kv, s->dim, z);
    multiply(r->v[i], y, n_kv, s->dim, values + position * n_kv);
    rotate(s, z, s->n_heads + s->n_kv_heads, position);
    memcpy(keys + position * n_kv, z + n_q, (size_t)n_kv * sizeof *z);
    attend(s, z, keys, values, position + 1, y);
    multiply(r->o[i], y, s->dim, n_q, z);
    for (int j = 0; j < s->dim; j++) x[j] += z[j];
    norm(x, r->norm2[i], s->dim, y);
    multiply(r->gate[i], y, s->n_ff, s->dim, z);
    multiply(r->up[i], y, s->n_ff, s->dim, z + s->n_ff);
    for (int j = 0; j < s->n_ff; j++) y[j] = z[j] / (1 + expf(-z[j])) * z[s->n_ff + j];
    multiply(r->down[i], y, s->dim, s->n_ff, z);
    for (int j = 0; j < s->dim; j++) x[j] += z[j];
}

static void run_row(reference *r, int row, int position, int token, float *logits)
{
    const model_shape *s = &r->m->shape;
    float *x = floats((size_t)s->dim), *y = floats((size_t)(s->n_ff + s->dim) * 4),
          *z = floats((size_t)(s->n_ff + s->dim) * 4);
    memcpy(x, r->table + (size_t)token * (size_t)s->dim, (size_t)s->dim * sizeof *x);
    for (int i = 0; i < s->n_layers; i++) run_layer(r, i, row, position, x, y, z);
    norm(x, r->norm_out, s->dim, y);
    multiply(r->head, y, s->n_vocab, s->dim, logits);
    free(x);
    free(y);
    free(z);
}

static void free_reference(reference *r)
{
    for (int i = 0; i < r->m->shape.n_layers; i++) {
        float *own[] = {r->qk[i], r->v[i], r->o[i], r->gate[i], r->up[i], r->down[i], r->norm1[i], r->norm2[i]};
        for (size_t j = 0; j < FRIT_COUNT(own); j++) free(own[j]);
    }
    float *all[] = {r->table, r->head, r->norm_out, r->keys, r->values};
    for (size_t i = 0; i < FRIT_COUNT(all); i++) free(all[i]);
}

// ------------------------------------------------------------------------------- the comparison

typedef struct outcome {
    double worst_error;   // sum of squared differences over sum of squares, of one row's logits
} outcome;

static void compare_row(const model *m, const float *own, const float *expected, outcome *result)
{
    double error = 0, squares = 0;
    for (size_t i = 0; i < (size_t)m->shape.n_vocab; i++) {
        error += pow((double)own[i] - expected[i], 2);
        squares += pow(expected[i], 2);
    }
    if (!(error / squares <= result->worst_error)) result->worst_error = error / squares;
}

// Compares the GPU's logits of the token at position begin + step of each row with the reference's. For a prompt
// (step -1) the reference first computes the tokens before that position.
static void compare_step(bench *b, reference *r, const int *tokens, int step, outcome *result)
{
    const model *m = r->m;
    const size_t n = (size_t)m->shape.n_vocab;
    float *logits = floats(n * (size_t)m->rows), *expected = floats(n);
    download(b, logits, m->logits, n * (size_t)m->rows * 4);
    for (int row = 0; row < m->rows; row++) {
        const int last = r->begin[row] + step;
        for (int i = step < 0 ? 0 : last; i <= last; i++)
            run_row(r, row, i, tokens[row * m->n_positions + i], expected);
        compare_row(m, logits + (size_t)row * n, expected, result);
    }
    free(logits);
    free(expected);
}

// Prompts differ in length, so that they end at different rows of a tile.
static void run_prompt(bench *b, model *m, reference *r, const frit_cublaslt *blas, const int *tokens, outcome *result)
{
    prompt p;
    prompt_open(b, &p, m, blas, r->begin, tokens, m->n_positions);
    prompt_record(b, &p);
    compare_step(b, r, tokens, -1, result);
    prompt_close(b, &p);
}

static void run_step(bench *b, model *m, reference *r, const int *tokens, int step, outcome *result)
{
    int positions[MAX_SEQS], own[MAX_SEQS];
    for (int i = 0; i < m->rows; i++) {
        positions[i] = r->begin[i] + step;
        own[i] = tokens[i * m->n_positions + positions[i]];
    }
    upload(b, m->positions, positions, (size_t)m->rows * sizeof *positions);
    upload(b, m->tokens, own, (size_t)m->rows * sizeof *own);
    model_record(b, m);
    must_cuda(b, b->driver.stream_wait(b->stream), "a decode step");
    compare_step(b, r, tokens, step, result);
}

static int check_model(bench *b, model *m, int n_prompt, const frit_cublaslt *blas, int n_steps)
{
    reference r = {.m = m};
    outcome result = {0}, prompted = {0};
    frit_rng_init(&r.rng, 5);
    m->n_positions = POSITIONS;
    model_open(b, m, 0);
    make_weights(b, &r);
    int *tokens = calloc((size_t)(m->rows * m->n_positions), sizeof *tokens);
    if (!tokens) must(frit_fail_memory(0, "tokens"));
    for (int i = 0; i < m->rows; i++) {
        r.begin[i] = n_prompt ? n_prompt + 41 * i : 0;
        for (int j = 0; j < m->n_positions; j++)
            tokens[i * m->n_positions + j] = (17 * i + 3 + 29 * j) % m->shape.n_vocab;
    }
    if (n_prompt) run_prompt(b, m, &r, blas, tokens, &prompted);
    m->n_steps = 1;
    for (int i = 0; i < n_steps; i++) run_step(b, m, &r, tokens, i, &result);
    free(tokens);
    // A prompt's activations have the 11 bits of f16, or the 8 of bf16; later steps read the keys and values it left.
    const double most = n_prompt ? 2e-4 : 1e-4;
    const bool is_good = result.worst_error < most && prompted.worst_error < most;
    printf(
        "check %s, %s, %d rows, prompts from %d tokens, %d splits of %d warps, %d steps: error %.2e, of prompts %.2e: "
        "%s\n",
        m->types.name, m->tuning.name, m->rows, n_prompt, m->tuning.splits, m->tuning.attend_warps, n_steps,
        result.worst_error, prompted.worst_error, is_good ? "good" : "WRONG");
    fflush(stdout);
    free_reference(&r);
    model_close(b, m);
    return !is_good;
}

int bench_check(bench *b, const char *folder, const char *filter)
{
    // clang-format off
    static const model_shape shapes[] = {
        {"tiny",       3,  512, 8, 2, 128, 1536,  992},   // 96 row tiles of gate-up, 62 of the head
        {"small heads", 2, 512, 8, 2,  64, 4096, 1008},
        {"wide",        2, 256, 2, 1, 128, 14336, 512},   // with 8 rows or more its columns are divided into parts
    };
    #define Q4_K_M {"q4_k_m", FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q6_K}
    #define Q4_0 {"q4_0", FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q6_K}
    #define ALL(type) {#type, FRIT_DTYPE_##type, FRIT_DTYPE_##type, FRIT_DTYPE_##type}
    static const struct { model_types types; int rows, n_prompt, shape, n_steps; model_tuning tuning; } cases[] = {
        {Q4_K_M,     1, 0, 0, STEPS, {.name = "chosen"}},
        {Q4_K_M,     1, 0, 1, STEPS, {.name = "one split", .splits = 1, .attend_warps = 2}},
        {Q4_K_M,     3, 200, 0, 8,   {.name = "pages ahead", .splits = 1, .attend_warps = 1, .attend_stages = 2}},
        {ALL(Q8_0),  2, 200, 1, 8,   {.name = "pages ahead", .splits = 2, .attend_warps = 2, .attend_stages = 3}},
        {Q4_K_M,     3, 0, 0, 40,    {.name = "16 warps", .warps = 16, .attend_warps = 1}},
        {Q4_K_M,    16, 0, 1, 8,     {.name = "chosen"}},
        {Q4_K_M,     1, 0, 0, 8,     {.name = "2 groups", .groups = 2}},
        {Q4_K_M,     8, 0, 2, 8,     {.name = "chosen"}},
        {Q4_K_M,    13, 0, 2, 8,     {.name = "chosen"}},
        {ALL(Q8_0),  1, 0, 0, 40,    {.name = "chosen"}},
        {ALL(Q8_0),  9, 0, 0, 8,     {.name = "cp.async", .copies_by_thread = true}},
        {Q4_0,       2, 0, 0, 40,    {.name = "2 groups, cp.async", .groups = 2, .copies_by_thread = true}},
        {ALL(BF16),  1, 0, 0, 40,    {.name = "chosen"}},
        {ALL(BF16),  5, 0, 1, 8,     {.name = "one after the other", .is_serial = true}},
        {ALL(F16),   1, 0, 0, 8,     {.name = "chosen"}},
        {ALL(Q5_K),  1, 0, 0, 8,     {.name = "chosen"}},
        {ALL(IQ4_XS), 1, 0, 0, 8,    {.name = "chosen"}},
        {Q4_K_M,     1, 1, 0, 8,     {.name = "chosen"}},
        {Q4_K_M,     3, 60, 0, 8,     {.name = "chosen"}},
        {ALL(Q8_0),  2, 200, 1, 8,     {.name = "chosen"}},
        {ALL(BF16),  2, 130, 0, 8,     {.name = "gate-up in f32", .is_gate_up_f32 = true}},
    };
    // clang-format on
    frit_cublaslt blas;
    int n_faults = 0;
    const bool has_blas = frit_cublaslt_open(&blas, folder) == FRIT_OK || frit_cublaslt_open(&blas, NULL) == FRIT_OK;
    if (!has_blas) printf("no prompts: %s\n", frit_error());
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        if (cases[i].n_prompt && !has_blas) continue;
        if (strcmp(filter, ".") != 0 && !strstr(cases[i].tuning.name, filter)) continue;
        model *m = calloc(1, sizeof *m);
        if (!m) must(frit_fail_memory(sizeof *m, "a model"));
        *m = (model){
            .shape = shapes[cases[i].shape], .types = cases[i].types, .rows = cases[i].rows, .tuning = cases[i].tuning};
        n_faults += check_model(b, m, cases[i].n_prompt, &blas, cases[i].n_steps);
        free(m);
    }
    if (has_blas) frit_cublaslt_close(&blas);
    printf("\n");
    return n_faults;
}

// SPDX-License-Identifier: MIT
// Whole decode steps: tokens per second of dense models with random weights of real shapes.
#include "gpu_prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
static const model_shape shapes[] = {
    {"llama-8b", 32, 4096, 32, 8, 128, 14336, 128256},
    {"llama-1b", 16, 2048, 32, 8,  64,  8192, 128256},
};

static const model_types files[] = {
    {"q4_k_m", FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q6_K},
    {"q4_0",   FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q6_K},
    {"q8_0",   FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q8_0},
    {"bf16",   FRIT_DTYPE_BF16, FRIT_DTYPE_BF16, FRIT_DTYPE_BF16},
};

// The first is the choice of the backend; the others are tried with q4_k_m.
static const model_tuning tunings[] = {
    {.name = "chosen"},
    {.name = "all of the ring at once",  .open_stages = 2},
    {.name = "three stages",             .stages = 3},
    {.name = "one group of 16 warps",    .warps = 16, .stages = 2},
    {.name = "four groups of 4 warps",   .groups = 4, .warps = 4, .stages = 2},
    {.name = "8 warps",                  .groups = 1, .stages = 2},
    {.name = "cp.async",                 .copies_by_thread = true},
    {.name = "4 attention warps",        .attend_warps = 4},
    {.name = "one after the other",      .is_serial = true},
    {.name = "without qkv",              .without = MODEL_QKV},
    {.name = "without attention",        .without = MODEL_ATTEND},
    {.name = "without o",                .without = MODEL_O},
    {.name = "without gate-up",          .without = MODEL_GATE_UP},
    {.name = "without down",             .without = MODEL_DOWN},
    {.name = "without head",             .without = MODEL_HEAD},
};
// Attention in long contexts.
static const model_tuning deep_tunings[] = {
    {.name = "no pages ahead, 33 parts",       .splits = 33, .attend_stages = -1},
    {.name = "3 pages ahead, 4 warps",         .attend_stages = 3, .attend_warps = 4},
    {.name = "1 page ahead, 8 warps",          .attend_stages = 1, .attend_warps = 8},
    {.name = "without attention",              .without = MODEL_ATTEND},
};
// Columns of o and down in parts, for eight rows.
static const model_tuning part_tunings[] = {
    {.name = "down in 2 parts",              .down_parts = 2},
    {.name = "down in 7 parts",              .down_parts = 7},
    {.name = "o in 2 parts",                 .o_parts = 2},
    {.name = "without qkv",                  .without = MODEL_QKV},
    {.name = "without attention",            .without = MODEL_ATTEND},
    {.name = "without o",                    .without = MODEL_O},
    {.name = "without gate-up",              .without = MODEL_GATE_UP},
    {.name = "without down",                 .without = MODEL_DOWN},
    {.name = "without head",                 .without = MODEL_HEAD},
};

static const int prompt_lengths[] = {128, 512, 2048, 8192};
// The cost of parts of a prompt, by leaving one out.
static const model_tuning prompt_tunings[] = {
    {.name = "chosen"},
    {.name = "gate-up in f32",    .is_gate_up_f32 = true},
    {.name = "without products",  .without = MODEL_QKV},
    {.name = "without attention", .without = MODEL_ATTEND},
};

static const struct run { int depth, rows; } runs[] = {{128, 1}, {4096, 1}, {16384, 1}, {128, 2}, {128, 4}, {128, 8}, {128, 16}};
// clang-format on

static void run_model(bench *b, const model_shape *shape, const model_types *types, const model_tuning *tuning,
                      int depth, int rows, const char *filter)
{
    enum { REPEATS = 9, MARGIN = (REPEATS + 4) * 9 };
    char text[128];
    snprintf(text, sizeof text, "%s %s | %d | %d | %s", shape->name, types->name, depth, rows, tuning->name);
    if (strcmp(filter, ".") != 0 && !strstr(text, filter)) return;
    model *m = calloc(1, sizeof *m);
    if (!m) must(frit_fail_memory(sizeof *m, "a model"));
    *m = (model){.shape = *shape, .types = *types, .tuning = *tuning, .rows = rows, .n_positions = depth + MARGIN};
    model_open(b, m, depth);
    model_fill(b, m);
    m->n_steps = 1;
    const double one = time_graph(b, model_record, m, REPEATS);
    m->n_steps = 8;
    const double many = time_graph(b, model_record, m, REPEATS) / m->n_steps;
    const double kv = (double)depth * rows * shape->n_layers * 2 * shape->n_kv_heads * shape->head_size * 2;
    const double gbs = ((double)m->n_weight_bytes + kv) / many / 1000;
    printf("| %s | %.1f | %.1f | %.0f | %.0f | %.1f %% |\n", text, one, many, rows * 1e6 / many, gbs,
           100 * gbs / b->read_gbs);
    fflush(stdout);
    model_close(b, m);
    free(m);
}

void bench_steps(bench *b, const char *filter)
{
    bench_probe(b);
    printf("| model | depth | rows | variant | us, 1 step a graph | us, 8 steps | tokens/s | GB/s | of the probe |\n"
           "|---|---|---|---|---|---|---|---|---|\n");
    for (size_t s = 0; s < FRIT_COUNT(shapes); s++) {
        for (size_t f = 0; f < FRIT_COUNT(files); f++) run_model(b, &shapes[s], &files[f], &tunings[0], 128, 1, filter);
        for (size_t t = 1; t < FRIT_COUNT(tunings); t++)
            run_model(b, &shapes[s], &files[0], &tunings[t], 128, 1, filter);
        for (size_t r = 1; r < FRIT_COUNT(runs); r++)
            run_model(b, &shapes[s], &files[0], &tunings[0], runs[r].depth, runs[r].rows, filter);
        for (size_t t = 0; t < FRIT_COUNT(part_tunings); t++)
            run_model(b, &shapes[s], &files[0], &part_tunings[t], 128, 8, filter);
        for (size_t t = 0; t < FRIT_COUNT(deep_tunings); t++)
            run_model(b, &shapes[s], &files[0], &deep_tunings[t], 16384, 1, filter);
    }
    printf("\n");
}

// ------------------------------------------------------------------------------- prompts

static void run_prompt(bench *b, const frit_cublaslt *blas, const model_shape *shape, const model_types *types,
                       const model_tuning *tuning, int n_tokens, const char *filter)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s | %d | %s", shape->name, types->name, n_tokens, tuning->name);
    if (strcmp(filter, ".") != 0 && !strstr(text, filter)) return;
    model *m = calloc(1, sizeof *m);
    int *tokens = calloc((size_t)n_tokens, sizeof *tokens);
    prompt p;
    if (!m || !tokens) must(frit_fail_memory(sizeof *m, "a model"));
    *m = (model){.shape = *shape, .types = *types, .tuning = *tuning, .rows = 1, .n_positions = n_tokens + 32};
    model_open(b, m, 0);
    model_fill(b, m);
    for (int i = 0; i < n_tokens; i++) tokens[i] = (i * 7919 + 13) % shape->n_vocab;
    prompt_open(b, &p, m, blas, &n_tokens, tokens, n_tokens);
    const double us = time_graph(b, prompt_record, &p, 5);
    printf("| %s | %.0f | %.0f |\n", text, us, n_tokens * 1e6 / us);
    fflush(stdout);
    prompt_close(b, &p);
    model_close(b, m);
    free(tokens);
    free(m);
}

void bench_prompts(bench *b, const char *folder, const char *filter)
{
    frit_cublaslt blas;
    if (frit_cublaslt_open(&blas, folder) != FRIT_OK && frit_cublaslt_open(&blas, NULL) != FRIT_OK) {
        printf("prompts: %s\n", frit_error());
        return;
    }
    printf("| model | tokens | variant | us | tokens/s |\n|---|---|---|---|---|\n");
    for (size_t s = 0; s < FRIT_COUNT(shapes); s++) {
        for (size_t f = 0; f < FRIT_COUNT(files); f++)
            for (size_t n = 0; n < FRIT_COUNT(prompt_lengths); n++)
                run_prompt(b, &blas, &shapes[s], &files[f], &prompt_tunings[0], prompt_lengths[n], filter);
        for (size_t t = 1; t < FRIT_COUNT(prompt_tunings); t++)
            run_prompt(b, &blas, &shapes[s], &files[0], &prompt_tunings[t], 2048, filter);
    }
    printf("\n");
    frit_cublaslt_close(&blas);
}

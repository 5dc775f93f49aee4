// SPDX-License-Identifier: MIT
// Logits of whole models through the public interface against those of transformers and llama.cpp: in one chunk, in
// chunks of seven, and token by token, with and without fusion, keys and values in f32.
#include "arch/golden.h"

static const size_t chunks[] = {0, 7, 1};   // 0: all at once

typedef struct results {
    float *logits;   // [n_tokens, n_vocab]
    size_t n_vocab, n_rows;
} results;

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    results *r = ctx;
    assert_int_equal(n, r->n_vocab);
    memcpy(r->logits + (r->n_rows + i) * n, values, n * sizeof *values);
}

static void push(frit_engine *engine, frit_session *session, const int32_t *tokens, size_t n, results *r)
{
    frit_push_options options = {.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = r};
    assert_ok(frit_session_push(session, tokens, n, &options));
    int32_t n_rows;
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, &n_rows));
    r->n_rows += n;
}

static double run(frit_model *model, const golden *g, size_t chunk, const char *cpu, bool no_fuse)
{
    frit_engine_options options = {.n_ctx = 64, .n_threads = 2, .kv_type = "f32", .cpu = cpu, .no_fuse = no_fuse};
    frit_engine *engine;
    frit_session *session;
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&session, engine));
    results r = {.logits = calloc(g->n_tokens * g->n_vocab, sizeof(float)), .n_vocab = g->n_vocab};
    if (chunk == 0) chunk = g->n_tokens;
    for (size_t i = 0; i < g->n_tokens; i += chunk) {
        size_t left = g->n_tokens - i;
        push(engine, session, g->tokens + i, left < chunk ? left : chunk, &r);
    }
    double error = nmse(r.logits, g->logits, g->n_tokens * g->n_vocab);
    free(r.logits);
    frit_session_free(session);
    frit_engine_free(engine);
    return error;
}

// Prints a row of NMSEs; returns how many are above the limit.
static size_t compare(size_t i, const char *cpu, double limit)
{
    golden g = golden_load(i);
    frit_model *model;
    assert_ok(frit_model_open(&model, g.path, NULL));
    size_t n_bad = 0;
    print_message("%-18s", golden_name(i));
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
        for (size_t c = 0; c < FRIT_COUNT(chunks); c++) {
            double error = run(model, &g, chunks[c], cpu, no_fuse);
            print_message("  %.1e", error);
            n_bad += !(error <= limit);
        }
    }
    print_message("\n");
    frit_model_free(model);
    golden_free(&g);
    return n_bad;
}

static void compare_all(const char *cpu, double limit)
{
    print_message("%-18s  fused: all, by 7, by 1      unfused: all, by 7, by 1\n", cpu ? cpu : "best kernels");
    size_t n_bad = 0;
    for (size_t i = 0; i < N_GOLDENS; i++) n_bad += compare(i, cpu, limit);
    assert_int_equal(n_bad, 0);
}

static void reference_kernels_give_the_logits_of_the_reference(void **state)
{
    (void)state;
    compare_all("reference", 1e-6);
}

static void the_best_kernels_give_the_logits_of_the_reference(void **state)
{
    (void)state;
    compare_all(NULL, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_kernels_give_the_logits_of_the_reference),
        cmocka_unit_test(the_best_kernels_give_the_logits_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

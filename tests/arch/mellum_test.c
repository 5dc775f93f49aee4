// SPDX-License-Identifier: MIT
// A tiny Mellum, made by data/mellum.py, and llama.cpp's logits: int32 tokens, int32 vocabulary, ids, and a row of
// logits for each id. Its windows are shorter than the text, and layers with windows rotate without scaling.
#include "support/support.h"

typedef struct results {
    float *logits;
    size_t n;
} results;

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    results *r = ctx;
    (void)i;
    memcpy(r->logits + r->n, values, n * sizeof *values);
    r->n += n;
}

static double error_of(const char *bytes, const char *cpu, bool no_fuse, size_t chunk)
{
    const frit_engine_options options = {
        .n_ctx = 64, .n_threads = 2, .cache_type_k = "f32", .cache_type_v = "f32", .cpu = cpu, .no_fuse = no_fuse};
    const int32_t *head = (const int32_t *)(const void *)bytes;
    const size_t n_tokens = (size_t)head[0], n = n_tokens * (size_t)head[1];
    const float *expected = (const float *)(const void *)(head + 2 + n_tokens);
    results r = {.logits = calloc(n, sizeof *r.logits)};
    const frit_push_options push = {.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = &r};
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_model_open(&model, project_path("tests/arch/data/mellum.gguf"), NULL));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&session, engine));
    for (size_t i = 0; i < n_tokens; i += chunk) {
        const size_t left = n_tokens - i;
        assert_ok(frit_session_push(session, head + 2 + i, left < chunk ? left : chunk, &push));
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
    }
    assert_int_equal(r.n, n);
    const double error = nmse(r.logits, expected, n);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    free(r.logits);
    return error;
}

static void logits_are_those_of_the_reference(void **state)
{
    (void)state;
    static const struct {
        const char *title, *cpu;
        bool no_fuse;
        size_t chunk;
    } modes[] = {{"reference", "reference", true, 24},
                 {"at once", NULL, false, 24},
                 {"by 7", NULL, false, 7},
                 {"by 1", NULL, false, 1},
                 {"unfused", NULL, true, 7}};
    size_t n_bytes, n_bad = 0;
    char *bytes = read_file(project_path("tests/arch/data/mellum.logits"), &n_bytes);
    for (size_t i = 0; i < FRIT_COUNT(modes); i++) {
        const double error = error_of(bytes, modes[i].cpu, modes[i].no_fuse, modes[i].chunk);
        print_message("%s %.1e\n", modes[i].title, error);
        n_bad += !(error <= 1e-11);
    }
    free(bytes);
    assert_int_equal(n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits_are_those_of_the_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

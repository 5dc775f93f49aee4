// SPDX-License-Identifier: MIT
// Layers that run one by one on stored residuals give the same results as in one step, in all architectures whose
// layers read only the residual.
#include "quantize/refine_stream.h"
#include "support/support.h"

#include <dirent.h>

enum { N_TOKENS = 24, N_WINDOWS = 2 };

static bool wants_none(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return false;
}

// Number of windows at once.
static void run_layers(frit_refine_stream *stream, int32_t layer, int64_t n)
{
    frit_covariance *none;
    assert_ok(frit_covariance_new(&none, &(frit_covariance_options){.wants = wants_none}));
    assert_ok(frit_refine_stream_begin(stream, none, layer, true));
    for (int64_t w = 0; w < N_WINDOWS; w += n)
        assert_ok(frit_refine_stream_run(stream, (frit_refine_windows){w, 1, n}, N_TOKENS));
    stream->layer = layer + 1;
    assert_ok(frit_engine_observe_covariance(stream->engine, NULL));
    frit_covariance_free(none);
}

// False if layers of this model read more than the residual.
static bool check(const char *path)
{
    frit_token tokens[N_WINDOWS * N_TOKENS];
    frit_model *model;
    frit_engine *engine;
    assert_ok(frit_model_open(&model, path, NULL));
    for (int i = 0; i < N_WINDOWS * N_TOKENS; i++) tokens[i] = (7 * i + 3) % model->info.n_vocab;
    const frit_refine_text text = {.tokens = tokens, .n_windows = N_WINDOWS, .window = N_TOKENS};
    const frit_engine_options options = {.n_ctx = N_TOKENS,
                                         .n_batch = N_WINDOWS * N_TOKENS,
                                         .n_sessions = N_WINDOWS,
                                         .n_threads = 2,
                                         .device = "cpu",
                                         .no_prefix_cache = true};
    const int32_t last = model->hp.n_layer - 1;
    assert_ok(frit_engine_new(&engine, model, &options));
    frit_refine_stream whole = {.engine = engine, .text = &text}, alone = whole, together = whole;
    assert_ok(frit_refine_stream_open(&whole, model, UINT64_MAX));
    assert_ok(frit_refine_stream_open(&alone, model, UINT64_MAX));
    assert_ok(frit_refine_stream_open(&together, model, UINT64_MAX));
    const bool can = whole.rows != NULL;
    if (can) {
        run_layers(&whole, last, 1);
        for (int32_t i = 0; i <= last; i++) run_layers(&alone, i, 1);
        for (int32_t i = 0; i <= last; i++) run_layers(&together, i, N_WINDOWS);
        const double difference =
            nmse(alone.rows, whole.rows, (size_t)(N_WINDOWS * N_TOKENS) * (size_t)model->hp.n_embd);
        if (difference > 1e-12) print_message("%s: %g\n", path, difference);
        assert_true(difference <= 1e-12);
        assert_memory_equal(together.rows, alone.rows, alone.n_bytes);   // windows that share steps change no bit
    }
    frit_refine_stream_close(&together);
    frit_refine_stream_close(&whole);
    frit_refine_stream_close(&alone);
    frit_engine_free(engine);
    frit_model_free(model);
    return can;
}

static bool is_decoder(const char *path)
{
    frit_model *model;
    assert_ok(frit_model_open(&model, path, NULL));
    const bool is = model->info.kind == FRIT_KIND_DECODER;
    frit_model_free(model);
    return is;
}

static void layers_run_alone(void **state)
{
    (void)state;
    char folder[1024], path[2048];
    int n = 0, n_alone = 0;
    snprintf(folder, sizeof folder, "%s", shared_path("goldens/arch"));
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (const struct dirent *file = readdir(list); file; file = readdir(list)) {
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        if (!strstr(file->d_name, ".gguf") || !is_decoder(path)) continue;
        n_alone += check(path);
        n++;
    }
    closedir(list);
    print_message("layers run alone in %d of %d models\n", n_alone, n);
    assert_true(n_alone > n / 2);
}

static void there_is_no_room(void **state)
{
    (void)state;
    frit_model *model;
    const frit_refine_text text = {.n_windows = 4, .window = 8};
    frit_refine_stream stream = {.text = &text};
    assert_ok(frit_model_open(&model, shared_path("goldens/arch/llama-dense.gguf"), NULL));
    const uint64_t n = 4 * 8 * (uint64_t)model->hp.n_embd * sizeof(float);
    assert_ok(frit_refine_stream_open(&stream, model, n - 1));
    assert_null(stream.rows);
    assert_ok(frit_refine_stream_open(&stream, model, n));
    assert_non_null(stream.rows);
    frit_refine_stream_close(&stream);
    frit_model_free(model);
}

typedef struct taken {
    float *rows;
    size_t n;
} taken;

static void take_row(void *ctx, size_t i, const float *values, size_t n)
{
    taken *t = ctx;
    memcpy(t->rows + i * n, values, n * sizeof *values);
    t->n++;
}

static uint64_t run_window(frit_engine *engine, const frit_refine_text *text, int64_t first, taken *out)
{
    const frit_push_options push = {.output = FRIT_OUTPUT_ALL, .row = take_row, .row_ctx = out};
    const uint64_t before = engine->flights.n_submitted;
    assert_ok(frit_refine_text_run(text, engine, 0, N_TOKENS, first, &push));
    return engine->flights.n_submitted - before;
}

// Works for any vocabulary, if steps may have enough rows of logits.
static void a_window_is_one_step(void **state)
{
    (void)state;
    enum { FIRST = 9 };
    frit_token tokens[N_TOKENS];
    frit_model *model;
    frit_engine *engine;
    assert_ok(frit_model_open(&model, shared_path("goldens/arch/llama-dense.gguf"), NULL));
    const size_t n_vocab = (size_t)model->info.n_vocab;
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = (frit_token)((7 * (size_t)i + 3) % n_vocab);
    const frit_refine_text text = {.tokens = tokens, .n_windows = 1, .window = N_TOKENS};
    const frit_engine_options options = {
        .n_ctx = N_TOKENS, .n_batch = N_TOKENS, .n_threads = 2, .device = "cpu", .no_prefix_cache = true};
    assert_ok(frit_engine_new(&engine, model, &options));
    engine->schedule.max_outs = 2;
    taken all = {.rows = calloc(N_TOKENS * n_vocab, sizeof(float))}, last = all;
    last.rows = calloc(N_TOKENS * n_vocab, sizeof(float));
    assert_non_null(all.rows);
    assert_non_null(last.rows);
    assert_true(run_window(engine, &text, 0, &all) >= N_TOKENS / 2);
    frit_engine_allow_outs(engine, N_TOKENS - FIRST);
    assert_int_equal(run_window(engine, &text, FIRST, &last), 1);
    assert_int_equal(all.n, N_TOKENS);
    assert_int_equal(last.n, N_TOKENS - FIRST);
    assert_true(nmse(last.rows, all.rows + FIRST * n_vocab, (N_TOKENS - FIRST) * n_vocab) < 1e-12);
    free(all.rows);
    free(last.rows);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_run_alone),
        cmocka_unit_test(there_is_no_room),
        cmocka_unit_test(a_window_is_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

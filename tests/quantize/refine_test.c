// SPDX-License-Identifier: MIT
// Refining a quantized file: its results come closer to the model's, and nothing else in the file changes.
#include "quantize/refine.h"
#include "quantize/refine_file.h"
#include "format/checkpoint.h"
#include "frit_tools.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include <math.h>

enum { N_TOKENS = 9 * 512, N_OTHER = 512 };

static frit_token tokens[1 << 16];

static const char *model_path(void)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s", shared_path("models/stories260k-f32.gguf"));
    return path;
}

static void read_tokens(void)
{
    frit_model *model;
    size_t n, n_tokens;
    char *text = read_file(shared_path("models/valid.txt"), &n);
    assert_ok(frit_model_open(&model, model_path(), NULL));
    assert_ok(frit_tokenize(model, text + 100000, 20000, FRIT_TEXT_SPECIAL, tokens, FRIT_COUNT(tokens), &n_tokens));
    assert_true(n_tokens > N_TOKENS + N_OTHER);
    frit_model_free(model);
    free(text);
}

// `path` has its own room: the buffers of temp_path and shared_path are reused, and a path that tests remove must never
// be a path of reference data.
static void quantize(const char *name, char path[1024])
{
    snprintf(path, 1024, "%s", temp_path(name));
    const frit_quantize_options quantize = {.mix = "q4_0"};
    assert_ok(frit_convert(model_path(), path, &(frit_convert_options){.n_threads = 2, .quantize = &quantize}));
}

typedef struct hidden {
    float *values;
    size_t n;
} hidden;

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    hidden *h = ctx;
    h->values = realloc(h->values, (i + 1) * n * sizeof *values);
    memcpy(h->values + i * n, values, n * sizeof *values);
    h->n = (i + 1) * n;
}

static hidden run(const char *path)
{
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    hidden h = {0};
    int32_t n_rows;
    const frit_push_options push = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = keep_row, .row_ctx = &h};
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 512, .n_threads = 2, .device = "cpu"}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens + N_TOKENS, N_OTHER, &push));
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return h;
}

static double distance(const char *path, const hidden *from)
{
    double sum = 0;
    hidden h = run(path);
    assert_int_equal(h.n, from->n);
    for (size_t i = 0; i < h.n; i++)
        sum += ((double)h.values[i] - from->values[i]) * ((double)h.values[i] - from->values[i]);
    free(h.values);
    return sum;
}

static double kl_before, kl_after;   // on held-out text, from the log

static void keep_text(void *ctx, frit_log_level level, const char *sentence)
{
    const char *numbers = strstr(sentence, "goes from ");
    if (numbers) sscanf(numbers, "goes from %lf to %lf", &kl_before, &kl_after);
    if (level == FRIT_LOG_INFO) snprintf(ctx, 400, "%s", sentence);
}

// The file has the divergence in its metadata, and no path.
static void expect_labels(const char *path, double kl)
{
    frit_checkpoint *ckpt;
    frit_str hash;
    double mean;
    int64_t n_windows, n_tokens, n_matrices;
    bool found;
    assert_ok(frit_checkpoint_open(&ckpt, path, NULL));
    assert_ok(frit_meta_get_f64(&ckpt->meta, "quantize.kl.mean", &mean, &found));
    assert_true(found && fabs(mean - kl) <= 0.000006);   // the log has five decimals
    assert_ok(frit_meta_get_i64(&ckpt->meta, "quantize.kl.windows", &n_windows, &found));
    assert_true(found && n_windows == 1);
    assert_ok(frit_meta_get_text(&ckpt->meta, "quantize.refine.sha256", &hash, &found));
    assert_true(found && hash.len == 64);
    assert_ok(frit_meta_get_i64(&ckpt->meta, "quantize.refine.tokens", &n_tokens, &found));
    assert_true(found && n_tokens == N_TOKENS);
    assert_ok(frit_meta_get_i64(&ckpt->meta, "quantize.refine.matrices", &n_matrices, &found));
    assert_true(found && n_matrices > 0);
    for (size_t i = 0; i < ckpt->meta.n; i++) {
        const frit_pair *pair = &ckpt->meta.pairs[i];
        if (pair->value.type == FRIT_VALUE_TEXT && strncmp(pair->key.ptr, "quantize.", 9) == 0)
            assert_null(memchr(pair->value.text.ptr, '/', pair->value.text.len));
    }
    frit_checkpoint_close(ckpt);
}

static void results_come_nearer_on_other_text(void **state)
{
    (void)state;
    char said[400] = "", first[1024], second[1024], third[1024];
    size_t n_start, n_refined, n_again;
    shared_path("models/stories260k-f32.gguf");   // skips the test before anything is allocated
    read_tokens();
    quantize("refine_a.gguf", first);
    char *start = read_file(first, &n_start);
    hidden want = run(model_path());
    const double before = distance(first, &want);
    frit_refine_options options = {
        .tokens = tokens, .n_tokens = N_TOKENS, .n_threads = 2, .log = keep_text, .log_ctx = said};
    assert_ok(frit_refine(model_path(), first, &options));
    const double after = distance(first, &want);
    print_message("%s; hidden states: %g -> %g (x %.3f)\n", said, before, after, after / before);
    assert_true(after < 0.9 * before);
    assert_non_null(strstr(said, "matrices are refined"));
    print_message("KL divergence of windows that are held out: %g -> %g\n", kl_before, kl_after);
    assert_true(kl_before > 0 && kl_after > 0 && kl_after < 0.9 * kl_before);
    expect_labels(first, kl_after);
    char *refined = read_file(first, &n_refined);
    assert_true(n_refined >= n_start && n_refined <= n_start + FRIT_REFINE_LABEL_BYTES);
    quantize("refine_b.gguf", second);
    options.n_threads = 1;
    assert_ok(frit_refine(model_path(), second, &options));
    char *again = read_file(second, &n_again);
    assert_int_equal(n_again, n_refined);
    assert_memory_equal(again, refined, n_refined);
    free(again);
    quantize("refine_f.gguf",
             third);   // inputs are not stored between groups of matrices; more threads than cores
    options.n_threads = 16;
    assert_ok(frit_refine_within(model_path(), third, &options, 0));
    again = read_file(third, &n_again);
    assert_int_equal(n_again, n_refined);
    assert_memory_equal(again, refined, n_refined);
    free(start);
    free(refined);
    free(again);
    free(want.values);
    remove(first);
    remove(second);
    remove(third);
}

static bool stop(void *ctx, double done)
{
    (void)ctx;
    return done < 0.02;
}

static void a_file_stays_where_refining_fails(void **state)
{
    (void)state;
    char path[1024];
    size_t n_before, n_after;
    shared_path("models/stories260k-f32.gguf");   // skips the test before anything is allocated
    read_tokens();
    quantize("refine_c.gguf", path);
    char *before = read_file(path, &n_before);
    frit_refine_options options = {.tokens = tokens, .n_tokens = 4000, .n_threads = 2};
    assert_int_equal(frit_refine(model_path(), path, &options), FRIT_E_INVALID);
    assert_non_null(strstr(frit_error(), "at least 4096 tokens, found 4000"));
    options.n_tokens = N_TOKENS;
    options.progress = stop;
    assert_int_equal(frit_refine(model_path(), path, &options), FRIT_E_CANCELLED);
    assert_int_equal(frit_refine(shared_path("models/fable-6m-bf16.gguf"), path, &options), FRIT_E_INVALID);
    char *after = read_file(path, &n_after);
    assert_int_equal(n_before, n_after);
    assert_memory_equal(before, after, n_before);
    free(before);
    free(after);
    remove(path);
}

// The bytes of a tensor of a file, malloc'd.
static char *tensor_bytes(const char *path, const char *name, size_t *n)
{
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, path, NULL));
    const frit_tensor *tensor = frit_checkpoint_find(ckpt, name);
    assert_non_null(tensor);
    *n = (size_t)tensor->n_bytes;
    char *bytes = malloc(*n);
    memcpy(bytes, tensor->data, *n);
    frit_checkpoint_close(ckpt);
    return bytes;
}

static bool changes(const char *before, const char *after, const char *name)
{
    size_t n_before, n_after;
    char *a = tensor_bytes(before, name, &n_before), *b = tensor_bytes(after, name, &n_after);
    assert_int_equal(n_before, n_after);
    const bool is_changed = memcmp(a, b, n_before) != 0;
    free(a);
    free(b);
    return is_changed;
}

static void a_model_of_its_own_output_has_that_refined(void **state)
{
    (void)state;
    enum { N = 9 * TINY_CTX };
    char source[1024], before[1024], after[1024];
    static frit_token ids[N];
    for (int i = 0; i < N; i++) ids[i] = (frit_token)((i * 7 + i / 13 * 5) % TINY_VOCAB);
    for (int tied = 0; tied < 2; tied++) {
        const tiny_options tiny = {.without = tied ? "output.weight" : NULL};
        snprintf(source, sizeof source, "%s", tiny_model("refine_tiny.gguf", &tiny));
        const frit_quantize_options quantize = {.mix = "q4_0", .output_type = "q4_0", .embedding_type = "q4_0"};
        const frit_convert_options convert = {.n_threads = 2, .quantize = &quantize};
        snprintf(before, sizeof before, "%s", temp_path("refine_d.gguf"));
        snprintf(after, sizeof after, "%s", temp_path("refine_e.gguf"));
        assert_ok(frit_convert(source, before, &convert));
        assert_ok(frit_convert(source, after, &convert));
        assert_ok(frit_refine(source, after, &(frit_refine_options){.tokens = ids, .n_tokens = N, .n_threads = 2}));
        assert_true(changes(before, after, "blk.1.ffn_down.weight") || changes(before, after, "blk.1.ffn_up.weight"));
        assert_false(changes(before, after, "token_embd.weight"));
        if (!tied) assert_true(changes(before, after, "output.weight"));
        remove(before);
        remove(after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_nearer_on_other_text),
        cmocka_unit_test(a_file_stays_where_refining_fails),
        cmocka_unit_test(a_model_of_its_own_output_has_that_refined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

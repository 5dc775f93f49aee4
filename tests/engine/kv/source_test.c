// SPDX-License-Identifier: MIT
// Encoder-decoders: a session has a source, which its tokens attend to, for any division into steps.
#include "arch/golden.h"

#include "base/checksum.h"
#include "engine/session/saved.h"

typedef struct rows {
    float *values;
    size_t n, width;
} rows;

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    rows *r = ctx;
    r->values = realloc(r->values, (i + 1) * n * sizeof *values);
    r->width = n;
    r->n = i + 1;
    memcpy(r->values + i * n, values, n * sizeof *values);
}

typedef struct fixture {
    golden g;
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_model_info info;
} fixture;

static fixture open_golden(int32_t n_batch)
{
    fixture f = {0};
    size_t i = 0;
    while (strcmp(golden_name(i), "t5") != 0) i++;
    f.g = golden_load(i);
    const frit_engine_options options = {
        .n_ctx = 64, .n_sessions = 2, .n_batch = n_batch, .cache_type_k = "f32", .cache_type_v = "f32"};
    assert_ok(frit_model_open(&f.model, f.g.path, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    assert_ok(frit_session_new(&f.session, f.engine));
    frit_model_get_info(f.model, &f.info);
    return f;
}

static void close_golden(fixture *f)
{
    frit_session_free(f->session);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    golden_free(&f->g);
}

static void run_all(fixture *f)
{
    while (frit_session_pending(f->session) > 0) assert_ok(frit_engine_step(f->engine, NULL));
}

static double error_of_last(const fixture *f, size_t n_tokens)
{
    const float *logits = frit_session_logits(f->session);
    assert_non_null(logits);
    return nmse(logits, f->g.logits + (n_tokens - 1) * f->g.n_vocab, f->g.n_vocab);
}

static void the_decoder_looks_at_what_was_encoded(void **state)
{
    (void)state;
    fixture f = open_golden(8);   // less than the source, which runs at once nevertheless
    assert_int_equal(f.info.kind, FRIT_KIND_ENCODER_DECODER);
    assert_int_equal(f.info.decoder_start, f.g.tokens[0]);
    assert_string_equal(f.info.pooling, "mean");
    assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, NULL));
    assert_int_equal(frit_session_pending(f.session), f.g.n_source);
    assert_int_equal(frit_session_length(f.session), 0);
    for (size_t i = 0; i < f.g.n_tokens; i++) {
        assert_ok(frit_session_push(f.session, f.g.tokens + i, 1, NULL));
        run_all(&f);
        assert_true(error_of_last(&f, i + 1) <= 1e-6);
    }
    close_golden(&f);
}

static void the_source_outlives_tokens_and_tokens_no_source(void **state)
{
    (void)state;
    fixture f = open_golden(0);
    assert_ok(frit_session_encode(f.session, f.g.source, 20, NULL));
    assert_ok(frit_session_push(f.session, f.g.tokens, 5, NULL));
    run_all(&f);
    assert_true(error_of_last(&f, 5) > 1e-4);   // another text
    assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, NULL));
    assert_int_equal(frit_session_length(f.session), 0);
    assert_ok(frit_session_push(f.session, f.g.tokens, 9, NULL));
    run_all(&f);
    assert_true(error_of_last(&f, 9) <= 1e-6);
    assert_ok(frit_session_truncate(f.session, 0));
    assert_int_equal(frit_session_pending(f.session), 0);
    assert_ok(frit_session_push(f.session, f.g.tokens, f.g.n_tokens, NULL));
    run_all(&f);
    assert_true(error_of_last(&f, f.g.n_tokens) <= 1e-6);
    close_golden(&f);
}

// One session encodes while another decodes.
static void sessions_keep_their_own_sources(void **state)
{
    (void)state;
    fixture f = open_golden(0);
    frit_session *other;
    assert_ok(frit_session_new(&other, f.engine));
    assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, NULL));
    assert_ok(frit_session_push(f.session, f.g.tokens, 3, NULL));
    run_all(&f);
    assert_ok(frit_session_encode(other, f.g.source + 7, 30, NULL));
    assert_ok(frit_session_push(other, f.g.tokens, 6, NULL));
    assert_ok(frit_session_push(f.session, f.g.tokens + 3, 6, NULL));
    run_all(&f);
    while (frit_session_pending(other) > 0) assert_ok(frit_engine_step(f.engine, NULL));
    assert_true(error_of_last(&f, 9) <= 1e-6);
    assert_true(nmse(frit_session_logits(other), f.g.logits + 5 * f.g.n_vocab, f.g.n_vocab) > 1e-4);
    frit_session_free(other);
    close_golden(&f);
}

static void expect_source(const frit_session *session, const frit_token *tokens, size_t n)
{
    size_t n_held;
    const frit_token *held = frit_session_source(session, &n_held);
    assert_int_equal(n_held, n);
    if (n == 0) assert_null(held);
    if (n > 0) assert_memory_equal(held, tokens, n * sizeof *tokens);
}

// Another session reads another text, so that a loaded session has other pages than the saved one.
static void a_loaded_session_looks_at_its_source(void **state)
{
    (void)state;
    fixture f = open_golden(8), other = open_golden(8);
    frit_session *busy;
    expect_source(f.session, NULL, 0);
    assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, NULL));
    assert_ok(frit_session_push(f.session, f.g.tokens, 9, NULL));
    run_all(&f);
    assert_ok(frit_session_save(f.session, temp_path("read")));

    assert_ok(frit_session_new(&busy, other.engine));
    assert_ok(frit_session_encode(busy, f.g.source + 5, 30, NULL));
    while (frit_session_pending(busy) > 0) assert_ok(frit_engine_step(other.engine, NULL));
    assert_ok(frit_session_encode(other.session, f.g.source, 7, NULL));   // is replaced later
    assert_ok(frit_session_load(other.session, temp_path("read")));
    assert_int_equal(frit_session_pending(other.session), 0);
    assert_int_equal(frit_session_length(other.session), 9);
    expect_source(other.session, f.g.source, f.g.n_source);
    assert_memory_equal(frit_session_logits(f.session), frit_session_logits(other.session),
                        f.g.n_vocab * sizeof(float));
    assert_ok(frit_session_push(f.session, f.g.tokens + 9, 4, NULL));
    assert_ok(frit_session_push(other.session, f.g.tokens + 9, 4, NULL));
    run_all(&f);
    run_all(&other);
    assert_memory_equal(frit_session_logits(f.session), frit_session_logits(other.session),
                        f.g.n_vocab * sizeof(float));
    assert_true(error_of_last(&other, 13) <= 1e-6);
    frit_session_free(busy);
    close_golden(&f);
    close_golden(&other);
}

static void a_source_that_waits_waits_again(void **state)
{
    (void)state;
    fixture f = open_golden(8), other = open_golden(8);
    assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, NULL));
    assert_ok(frit_session_push(f.session, f.g.tokens, 9, NULL));
    assert_ok(frit_session_save(f.session, temp_path("waits")));
    assert_ok(frit_session_load(other.session, temp_path("waits")));
    assert_int_equal(frit_session_pending(other.session), f.g.n_source + 9);
    run_all(&other);
    assert_true(error_of_last(&other, 9) <= 1e-6);
    assert_ok(frit_session_truncate(f.session, 0));   // only a source
    run_all(&f);
    assert_ok(frit_session_save(f.session, temp_path("waits")));
    assert_ok(frit_session_load(other.session, temp_path("waits")));
    assert_int_equal(frit_session_length(other.session), 0);
    assert_ok(frit_session_push(other.session, f.g.tokens, 3, NULL));
    run_all(&other);
    assert_true(error_of_last(&other, 3) <= 1e-6);
    close_golden(&f);
    close_golden(&other);
}

static void run_both(frit_engine *engine, const frit_session *a, const frit_session *b)
{
    while (frit_session_pending(a) + frit_session_pending(b) > 0) assert_ok(frit_engine_step(engine, NULL));
}

// Forks a session while its source waits, after the source was encoded, and after tokens ran. Then the session reads
// another source, which a fork that shared it would notice.
static void a_fork_looks_at_a_source_of_its_own(void **state)
{
    (void)state;
    for (size_t n_before = 0; n_before <= 9; n_before += 9)
        for (int waits = 0; waits < 2; waits++) {
            fixture f = open_golden(8);
            frit_session *fork;
            assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, NULL));
            if (n_before > 0) assert_ok(frit_session_push(f.session, f.g.tokens, n_before, NULL));
            if (!waits) run_all(&f);
            assert_ok(frit_session_fork(&fork, f.session));
            expect_source(fork, f.g.source, f.g.n_source);
            assert_int_equal(frit_session_length(fork), n_before);
            assert_int_equal(frit_session_pending(fork), waits ? f.g.n_source + n_before : 0);
            assert_ok(frit_session_encode(f.session, f.g.source + 7, 30, NULL));
            assert_ok(frit_session_push(f.session, f.g.tokens, 9, NULL));
            assert_ok(frit_session_push(fork, f.g.tokens + n_before, f.g.n_tokens - n_before, NULL));
            run_both(f.engine, f.session, fork);
            assert_true(error_of_last(&f, 9) > 1e-4);   // another text
            assert_true(nmse(frit_session_logits(fork), f.g.logits + (f.g.n_tokens - 1) * f.g.n_vocab, f.g.n_vocab) <=
                        1e-6);
            frit_session_free(fork);
            close_golden(&f);
        }
}

static void forks_share_the_source(void **state)
{
    (void)state;
    fixture f = open_golden(8);
    frit_session *forks[8];
    size_t n = 0;
    assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, NULL));
    run_all(&f);
    for (; n < FRIT_COUNT(forks); n++) assert_ok(frit_session_fork(&forks[n], f.session));
    assert_ok(frit_session_push(forks[3], f.g.tokens, 9, NULL));
    run_all(&f);
    while (n > 0) frit_session_free(forks[--n]);
    assert_ok(frit_session_push(f.session, f.g.tokens, 9, NULL));
    run_all(&f);
    assert_true(error_of_last(&f, 9) <= 1e-6);
    close_golden(&f);
}

// Changes a value of a header and corrects the checksum.
static const struct {
    size_t at;
    uint32_t value;
    frit_status status;
    const char *part;
} faults[] = {
    {offsetof(frit_saved_header, n_source), 0, FRIT_E_FORMAT, "length of the source does not suit"},
    {offsetof(frit_saved_header, n_source), 47, FRIT_E_FORMAT, "length of the source does not suit"},
    {offsetof(frit_saved_header, n_source), UINT32_MAX, FRIT_E_FORMAT, "length of the source does not suit"},
    {offsetof(frit_saved_header, n_encoded), 0, FRIT_E_FORMAT, "its tokens have no source"},
    {offsetof(frit_saved_header, n_encoded), 49, FRIT_E_FORMAT, "length of the source does not suit"},
    {offsetof(frit_saved_header, groups[1].position_bytes), 0, FRIT_E_INVALID, "0 bytes for a position of a source"},
    {sizeof(frit_saved_header) + 9 * 4, 512, FRIT_E_FORMAT, "not in the vocabulary"},
};

static void damaged_sources_in_files_are_refused(void **state)
{
    (void)state;
    fixture f = open_golden(8);
    size_t n_bytes;
    assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, NULL));
    assert_ok(frit_session_push(f.session, f.g.tokens, 9, NULL));
    run_all(&f);
    assert_ok(frit_session_save(f.session, temp_path("good")));
    for (size_t i = 0; i < FRIT_COUNT(faults); i++) {
        char *bytes = read_file(temp_path("good"), &n_bytes);
        frit_checksum sum = {0};
        memcpy(bytes + faults[i].at, &faults[i].value, sizeof faults[i].value);
        frit_checksum_add(&sum, bytes, n_bytes - 8);
        const uint64_t value = frit_checksum_value(&sum);
        memcpy(bytes + n_bytes - 8, &value, 8);
        write_file(temp_path("bad"), bytes, n_bytes);
        free(bytes);
        assert_fails(frit_session_load(f.session, temp_path("bad")), faults[i].status, faults[i].part);
        assert_int_equal(frit_session_length(f.session), 9);
    }
    frit_engine *small;
    frit_session *session;
    assert_ok(frit_engine_new(&small, f.model,
                              &(frit_engine_options){.n_ctx = 16, .cache_type_k = "f32", .cache_type_v = "f32"}));
    assert_ok(frit_session_new(&session, small));
    assert_fails(frit_session_load(session, temp_path("good")), FRIT_E_LIMIT, "holds 48 tokens, the context is 16");
    frit_session_free(session);
    frit_engine_free(small);
    close_golden(&f);
}

static void keep_vector(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    (void)item;
    keep_row(ctx, i, values, n);
}

static void sources_give_hidden_states_and_embeddings(void **state)
{
    (void)state;
    fixture f = open_golden(0);
    rows hidden = {0}, vector = {0};
    const frit_push_options wanted = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = keep_row, .row_ctx = &hidden};
    assert_ok(frit_session_encode(f.session, f.g.source, f.g.n_source, &wanted));
    run_all(&f);
    assert_int_equal(hidden.n, f.g.n_source);
    const frit_embed_item item = {.tokens = f.g.source, .n_tokens = f.g.n_source};
    static const struct {
        const char *pooling;
        size_t first, n;
    } poolings[] = {{"mean", 0, 48}, {"cls", 0, 1}, {"last", 47, 1}};
    for (size_t p = 0; p < FRIT_COUNT(poolings); p++) {
        const frit_embed_options options = {.pooling = poolings[p].pooling, .normalize = "none"};
        float mean[64] = {0};
        for (size_t t = poolings[p].first; t < poolings[p].first + poolings[p].n; t++)
            for (size_t k = 0; k < 64; k++) mean[k] += hidden.values[t * 64 + k] / (float)poolings[p].n;
        assert_ok(frit_embed_texts(f.engine, &item, 1, &options, keep_vector, &vector));
        assert_int_equal(vector.width, 64);
        assert_true(nmse(vector.values, mean, 64) <= 1e-10);
    }
    free(hidden.values);
    free(vector.values);
    close_golden(&f);
}

static void bad_sources_are_refused(void **state)
{
    (void)state;
    fixture f = open_golden(0);
    static const frit_token many[65], bad[] = {512};
    const frit_push_options all = {.output = FRIT_OUTPUT_ALL};
    assert_fails(frit_session_push(f.session, f.g.tokens, 1, NULL), FRIT_E_INVALID, "no source to look at");
    assert_fails(frit_session_encode(f.session, many, 0, NULL), FRIT_E_INVALID, "no tokens");
    assert_fails(frit_session_encode(f.session, many, 65, NULL), FRIT_E_LIMIT, "longer than the context of 64");
    assert_fails(frit_session_encode(f.session, bad, 1, NULL), FRIT_E_INVALID, "ids are 0 to 511");
    assert_fails(frit_session_encode(f.session, many, 1, &all), FRIT_E_INVALID, "no logits");
    close_golden(&f);
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    assert_ok(frit_model_open(&model, shared_path("goldens/hf/llama"), NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64}));
    assert_ok(frit_session_new(&session, engine));
    assert_fails(frit_session_encode(session, many, 1, NULL), FRIT_E_UNSUPPORTED, "only encoder-decoders");
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_decoder_looks_at_what_was_encoded),
        cmocka_unit_test(the_source_outlives_tokens_and_tokens_no_source),
        cmocka_unit_test(sessions_keep_their_own_sources),
        cmocka_unit_test(a_loaded_session_looks_at_its_source),
        cmocka_unit_test(a_source_that_waits_waits_again),
        cmocka_unit_test(a_fork_looks_at_a_source_of_its_own),
        cmocka_unit_test(forks_share_the_source),
        cmocka_unit_test(damaged_sources_in_files_are_refused),
        cmocka_unit_test(sources_give_hidden_states_and_embeddings),
        cmocka_unit_test(bad_sources_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

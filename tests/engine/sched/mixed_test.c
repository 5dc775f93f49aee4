// SPDX-License-Identifier: MIT
// Steps in which some sessions use prefill kernels and others decode kernels: a session's results are the same, bit for
// bit, as in steps of its own. If the processor has one set of kernels for all rows, nothing is tested. With the tiles
// of tests/tiles every processor with AVX-512 BF16 has two sets (engine/mixed@tiles).
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"

enum { N_SESSIONS = 5, N_PUSHES = 8, N_CTX = 256, N_BATCH = 256, N_TEXT = 20 };

// Lengths of pushes: few tokens and many; pushes of up to 63 are never cut.
static const int32_t lengths[N_SESSIONS][N_PUSHES] = {
    {12, 1, 1, 1, 1, 1, 1, 1},      // a stream
    {40, 1, 1, 3, 1, 1, 5, 1},      // one after a long prompt
    {63, 32, 1, 31, 36, 1, 1, 1},   // prompts in sequence
    {31, 1, 30, 1, 41, 1, 7, 1},  {1, 1, 33, 1, 1, 34, 1, 1},
};

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
    int32_t n_vocab;
    int n_mixed;   // steps with both row classes
} fixture;

static fixture open_on(const char *path, const char *type)
{
    fixture f = {0};
    frit_model_info info;
    assert_ok(frit_model_open(&f.model, path, &(frit_model_options){.type = type}));
    const frit_engine_options options = {
        .n_ctx = N_CTX, .n_sessions = N_SESSIONS, .n_batch = N_BATCH, .n_threads = 2, .no_prefix_cache = true};
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    assert_ok(frit_model_get_info(f.model, &info));
    f.n_vocab = info.n_vocab;
    return f;
}

static void close_all(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

static void skip_without_tiles(fixture *f)
{
    const bool mixes = f->engine->rows.mixes_classes;
    if (mixes) return;
    assert_true(f->engine->rows.least[FRIT_ROWS_PREFILL] == INT32_MAX);   // tiles of a CPU alone can always be mixed
                                                                          // with other kernels
    close_all(f);
    skip_because("this processor has one set of kernels for few rows and for many");
}

static void step(fixture *f)
{
    assert_ok(frit_engine_step(f->engine, NULL));
    const frit_step *last = &f->engine->flights.ring[f->engine->flights.n_submitted % FRIT_MAX_FLIGHTS].step;
    assert_true(last->n_decode_rows == 0 || last->prefill);
    for (int32_t i = 0; i < last->n_seqs; i++)
        if (last->prefill && last->seqs[i].first_row >= last->n_decode_rows) assert_true(last->seqs[i].n_rows >= 32);
    f->n_mixed += last->n_decode_rows > 0;
}

// ------------------------------------------------------------------------------- logits

typedef struct writer {   // a session and its results
    frit_session *session;
    int n_pushed;
    float *logits;   // [N_PUSHES, n_vocab]
} writer;

static void push_next(const fixture *f, writer *w, int i)
{
    frit_token tokens[64];
    const int32_t n = lengths[i][w->n_pushed];
    // All tokens of a push of session 3 are equal: few rows, most of which use the same experts.
    for (int32_t k = 0; k < n; k++)
        tokens[k] = (i * 7919 + w->n_pushed * 104729 + (i == 3 ? 0 : k * (k + 31))) % f->n_vocab;
    assert_ok(frit_session_push(w->session, tokens, (size_t)n, NULL));
    w->n_pushed++;
}

// Stores the results of the last push, and pushes the next one. Returns false after the last push.
static bool go_on(const fixture *f, writer *w, int i)
{
    if (frit_session_pending(w->session) > 0) return true;
    const size_t n = (size_t)f->n_vocab;
    const float *logits = frit_session_logits(w->session);
    if (w->n_pushed > 0) {
        assert_non_null(logits);
        memcpy(w->logits + (size_t)(w->n_pushed - 1) * n, logits, n * sizeof *logits);
    }
    if (w->n_pushed == N_PUSHES) return false;
    push_next(f, w, i);
    return true;
}

static void write_all(fixture *f, writer *writers, int begin, int end)
{
    for (int i = begin; i < end; i++)
        writers[i] = (writer){make_session(f->engine), 0, malloc(N_PUSHES * (size_t)f->n_vocab * sizeof(float))};
    for (bool any = true; any;) {
        any = false;
        for (int i = begin; i < end; i++) any = go_on(f, &writers[i], i) || any;
        if (any) step(f);
    }
    for (int i = begin; i < end; i++) frit_session_free(writers[i].session);
}

static void expect_equal(const fixture *f, const writer *alone, const writer *together, const char *what)
{
    const size_t n = (size_t)f->n_vocab;
    for (int i = 0; i < N_SESSIONS; i++)
        for (int p = 0; p < N_PUSHES; p++)
            if (memcmp(alone[i].logits + (size_t)p * n, together[i].logits + (size_t)p * n, n * sizeof(float)) != 0)
                fail_msg("%s: session %d: the logits after push %d are others beside other sessions", what, i, p);
}

static void check_logits(const char *path, const char *type)
{
    fixture f = open_on(path, type);
    skip_without_tiles(&f);
    writer alone[N_SESSIONS], together[N_SESSIONS];
    char what[64];
    snprintf(what, sizeof what, "%.40s, %s", strrchr(path, '/') + 1, type ? type : "as it is");
    for (int i = 0; i < N_SESSIONS; i++) write_all(&f, alone, i, i + 1);
    assert_int_equal(f.n_mixed, 0);
    write_all(&f, together, 0, N_SESSIONS);
    assert_true(f.n_mixed >= 3);
    expect_equal(&f, alone, together, what);
    for (int i = 0; i < N_SESSIONS; i++) {
        free(alone[i].logits);
        free(together[i].logits);
    }
    close_all(&f);
}

// One type for each kind of kernel, and one that tiles do not multiply.
static void logits_are_the_same_beside_other_sessions(void **state)
{
    (void)state;
    static const char *const types[] = {"q8_0", "f16", "q6_k", "iq4_nl", "f32"};
    for (size_t i = 0; i < FRIT_COUNT(types); i += FRIT_TEST_STRIDE)
        check_logits(project_path("models/fable.gguf"), types[i]);
}

// Experts, products of heads, recurrent layers, windows and sinks.
static void so_they_are_of_every_kind_of_layer(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type;
    } models[] = {{"qwen3moe-moe", "q8_0"},   {"deepseek2-moe", "q8_0"}, {"deepseek2-moe", "bf16"},
                  {"gpt-oss-moe", "q8_0"},    {"gemma2-dense", "bf16"},  {"granitehybrid-dense", "q8_0"},
                  {"falcon-h1-dense", "bf16"}};
    bool any = false;
    for (size_t i = 0; i < FRIT_COUNT(models); i += FRIT_TEST_STRIDE) {
        if (!shared_has("goldens/arch/%s.gguf", models[i].name)) continue;
        any = true;
        check_logits(shared_path("goldens/arch/%s.gguf", models[i].name), models[i].type);
    }
    if (!any) skip_because("models of other architectures are not here");
}

// ------------------------------------------------------------------------------- texts

typedef struct way {
    frit_sampler_options sampler;
    const char *regex;   // NULL: any text
    bool speculates;
} way;

static const way ways[] = {
    {.sampler = {.temp = 0}},
    {.sampler = {.temp = 0.8f, .top_p = 0.95f, .seed = 7}},
    {.sampler = {.temp = 0}, .speculates = true},
    {.sampler = {.temp = 0.7f, .seed = 5},
     .regex = "(the (dog|cat) went to the (river|forest)[ .,]){9}",
     .speculates = true},
    {.sampler = {.temp = 0.9f, .seed = 2}, .regex = "(once upon a time [a-z]{3} ){12}"},
};

static frit_sampler *make_sampler(const fixture *f, const way *w)
{
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, f->model, &w->sampler));
    if (!w->regex) return sampler;
    frit_grammar *grammar;
    const frit_grammar_options options = {.kind = FRIT_GRAMMAR_REGEX};
    assert_ok(frit_grammar_new(&grammar, f->model, w->regex, strlen(w->regex), &options));
    assert_ok(frit_sampler_set_grammar(sampler, grammar));
    frit_grammar_free(grammar);
    return sampler;
}

static frit_session *begin_text(fixture *f)
{
    frit_token prompt[20];
    frit_session *session = make_session(f->engine);
    for (int i = 0; i < 20; i++) prompt[i] = 100 + i * i % 9;   // a text with repetitions
    assert_ok(frit_session_push(session, prompt, 20, NULL));
    return session;
}

static size_t write_text(fixture *f, const way *w, frit_session *const *others, int n_others, frit_token *tokens)
{
    enum { PROMPT = 36 };   // one prompt chunk
    frit_session *session = begin_text(f);
    frit_sampler *sampler = make_sampler(f, w);
    const frit_speculate_options options = {.kind = "ngram", .max_drafts = 5, .always = true};
    if (w->speculates) assert_ok(frit_session_speculate(session, &options));
    size_t n = 0;
    for (size_t n_more; n < N_TEXT && !frit_sampler_is_over(sampler); n += n_more) {
        for (int i = 0; i < n_others; i++) {   // have something to run all the time
            frit_token prompt[PROMPT];
            if (frit_session_pending(others[i]) > 0) continue;
            assert_ok(frit_session_truncate(others[i], 0));
            for (int k = 0; k < PROMPT; k++) prompt[k] = (int32_t)(n * 31 + (size_t)(k * (i + 3))) % f->n_vocab;
            assert_ok(frit_session_push(others[i], prompt, PROMPT, NULL));
        }
        assert_ok(frit_session_next_tokens(session, sampler, tokens + n, N_TEXT - n, &n_more));
        f->n_mixed += f->engine->flights.ring[f->engine->flights.n_submitted % FRIT_MAX_FLIGHTS].step.n_decode_rows > 0;
    }
    frit_sampler_free(sampler);
    frit_session_free(session);
    return n;
}

static void texts_are_the_same_beside_prompts(void **state)
{
    (void)state;
    fixture f = open_on(project_path("models/fable.gguf"), "q8_0");
    skip_without_tiles(&f);
    // With emulated tiles most of the time is spent on prompts, so with sanitizers only the most complete variant runs.
    for (size_t i = FRIT_TEST_STRIDE > 1 ? 3 : 0; i < FRIT_COUNT(ways); i += FRIT_TEST_STRIDE) {
        frit_token alone[N_TEXT], beside[N_TEXT];
        frit_session *others[2] = {make_session(f.engine), make_session(f.engine)};
        const size_t n = write_text(&f, &ways[i], NULL, 0, alone);
        f.n_mixed = 0;
        assert_int_equal(write_text(&f, &ways[i], others, 2, beside), n);
        assert_true(f.n_mixed >= 3);
        assert_memory_equal(alone, beside, n * sizeof *alone);
        frit_session_free(others[0]);
        frit_session_free(others[1]);
    }
    close_all(&f);
}

// ------------------------------------------------------------------------------- schedules

static void count_row(void *ctx, size_t i, const float *row, size_t n)
{
    (void)i, (void)row, (void)n;
    ++*(int *)ctx;
}

// Hidden states and logits are results of different steps: neither kind of session waits forever.
static void nobody_starves(void **state)
{
    (void)state;
    enum { STEPS = 24, PROMPT = 130 };   // a prompt has several chunks
    fixture f = open_on(project_path("models/fable.gguf"), "q8_0");
    skip_without_tiles(&f);
    frit_session *stream = make_session(f.engine), *prompts[2] = {make_session(f.engine), make_session(f.engine)},
                 *hidden = make_session(f.engine);
    frit_token tokens[PROMPT];
    int n_hidden = 0, n_stream = 0, n_prompts = 0;
    for (int i = 0; i < PROMPT; i++) tokens[i] = i * 17 % f.n_vocab;
    for (int i = 0; i < STEPS; i++) {
        if (frit_session_pending(stream) == 0) {
            assert_ok(frit_session_push(stream, tokens, 1, NULL));
            n_stream++;
        }
        for (int k = 0; k < 2; k++) {
            if (frit_session_pending(prompts[k]) > 0) continue;
            assert_ok(frit_session_truncate(prompts[k], 0));
            assert_ok(frit_session_push(prompts[k], tokens, PROMPT, NULL));
            n_prompts++;
        }
        if (frit_session_pending(hidden) == 0) {
            assert_ok(frit_session_truncate(hidden, 0));
            assert_ok(frit_session_push(
                hidden, tokens, 40,
                &(frit_push_options){.output = FRIT_OUTPUT_EMBEDDINGS, .row = count_row, .row_ctx = &n_hidden}));
        }
        step(&f);
    }
    assert_true(n_stream >= STEPS / 2);
    assert_true(n_hidden >= 80 && n_prompts >= 3);
    frit_session_free(stream);
    for (int k = 0; k < 2; k++) frit_session_free(prompts[k]);
    frit_session_free(hidden);
    close_all(&f);
}

static void the_budget_counts_the_whole_step(void **state)
{
    (void)state;
    assert_int_equal(frit_schedule_mixed_budget(&(frit_step_cost){0}, 32), 64);
    assert_int_equal(frit_schedule_mixed_budget(&(frit_step_cost){.decode_ns = 7e6, .mixed_row_ns = 0.22e6}, 32), 48);
    assert_int_equal(frit_schedule_mixed_budget(&(frit_step_cost){.decode_ns = 7e6, .mixed_row_ns = 0.29e6}, 32), 32);
    assert_int_equal(frit_schedule_mixed_budget(&(frit_step_cost){.decode_ns = 7e6, .mixed_row_ns = 1e6}, 32), 32);
    assert_int_equal(frit_schedule_mixed_budget(&(frit_step_cost){.decode_ns = 1e9, .mixed_row_ns = 1e-3}, 32),
                     INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_the_same_beside_other_sessions),
        cmocka_unit_test(so_they_are_of_every_kind_of_layer),
        cmocka_unit_test(texts_are_the_same_beside_prompts),
        cmocka_unit_test(nobody_starves),
        cmocka_unit_test(the_budget_counts_the_whole_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

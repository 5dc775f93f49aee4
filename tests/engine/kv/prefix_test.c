// SPDX-License-Identifier: MIT
// The prefix cache: the tokens that a session reuses from earlier sessions, equality of texts bit for bit, and texts
// that must not be shared. With --bench MODEL (a file, or a shape for random weights): the time to the first token
// after a cached prefix.
#include "support/adapters.h"
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "base/time.h"
#include "frit.h"
#include "frit_tools.h"

enum { N_CTX = 256, N = 150, N_NEXT = 8 };

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
    int32_t n_vocab;
} fixture;

static fixture open_model(const char *path, frit_engine_options options)
{
    fixture f;
    frit_model_info info;
    if (options.n_ctx == 0) options.n_ctx = N_CTX;
    options.n_threads = 1;
    options.deterministic = true;
    f.model = load_model(path);
    f.engine = make_engine(f.model, options);
    assert_ok(frit_model_get_info(f.model, &info));
    f.n_vocab = info.n_vocab;
    return f;
}

static fixture open_tiny(frit_engine_options options)
{
    return open_model(tiny_model("a.gguf", &(tiny_options){.n_ctx = 8192}), options);
}

static void close_model(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

static frit_session *push_session(const fixture *f, const frit_token *tokens, size_t n)
{
    frit_session *session = make_session(f->engine);
    assert_ok(frit_session_push(session, tokens, n, NULL));
    return session;
}

// Returns the number of rows that ran.
static int32_t run(const fixture *f, const frit_session *session)
{
    int32_t n_rows, n = 0;
    for (; frit_session_pending(session) > 0; n += n_rows) assert_ok(frit_engine_step(f->engine, &n_rows));
    return n;
}

// Runs the tokens in a new session and returns its logits. *n_rows may be NULL.
static float *logits_of(const fixture *f, const frit_token *tokens, size_t n, int32_t *n_rows)
{
    frit_session *session = push_session(f, tokens, n);
    const int32_t n_run = run(f, session);
    assert_int_equal(frit_session_cached(session), n - (size_t)n_run);
    if (n_rows) *n_rows = n_run;
    float *logits = malloc((size_t)f->n_vocab * sizeof *logits);
    assert_non_null(frit_session_logits(session));
    memcpy(logits, frit_session_logits(session), (size_t)f->n_vocab * sizeof *logits);
    frit_session_free(session);
    return logits;
}

static void assert_runs(const fixture *f, const frit_token *tokens, size_t n, const float *expected, int32_t n_expected)
{
    int32_t n_rows;
    float *found = logits_of(f, tokens, n, &n_rows);
    assert_int_equal(n_rows, n_expected);
    assert_memory_equal(found, expected, (size_t)f->n_vocab * sizeof *found);
    free(found);
}

// ------------------------------------------------------------------------------- texts stay the same

static void a_text_that_ran_runs_one_token_again(void **state)
{
    (void)state;
    fixture f = open_tiny((frit_engine_options){.n_sessions = 2}),
            cold = open_tiny((frit_engine_options){.no_prefix_cache = true});
    frit_token a[N], b[N];
    make_tokens(1, a, N, f.n_vocab);
    memcpy(b, a, sizeof b);
    b[70] = (b[70] + 1) % f.n_vocab;
    float *of_a = logits_of(&cold, a, N, NULL), *of_b = logits_of(&cold, b, N, NULL);
    assert_runs(&f, a, N, of_a, N);
    assert_runs(&f, a, N, of_a, 1);
    assert_runs(&f, b, N, of_b, N - 70);   // within a page
    assert_runs(&f, b, N, of_b, 1);
    assert_runs(&f, a, N, of_a, 1);   // its pages were copied and are unchanged
    assert_runs(&cold, a, N, of_a, N);
    free(of_a);
    free(of_b);
    close_model(&f);
    close_model(&cold);
}

static void a_shared_prefix_of_4000_tokens_runs_once(void **state)
{
    (void)state;
    enum { SHARED = 4000, OWN = 50 };
    const frit_engine_options options = {.n_ctx = SHARED + OWN, .n_sessions = 2};
    fixture f = open_tiny(options);
    frit_token tokens[2][SHARED + OWN];
    make_tokens(1, tokens[0], SHARED + OWN, f.n_vocab);
    memcpy(tokens[1], tokens[0], sizeof tokens[1]);
    make_tokens(2, tokens[1] + SHARED, OWN, f.n_vocab);
    tokens[1][SHARED] = (tokens[0][SHARED] + 1) % f.n_vocab;
    int32_t n_rows;
    free(logits_of(&f, tokens[0], SHARED + OWN, &n_rows));
    assert_int_equal(n_rows, SHARED + OWN);
    free(logits_of(&f, tokens[1], SHARED + OWN, &n_rows));
    assert_int_equal(n_rows, OWN);
    close_model(&f);
}

// Generates greedily.
static void go_on(const fixture *f, frit_session *session, frit_token next[N_NEXT])
{
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, f->model, NULL));
    for (int i = 0; i < N_NEXT; i++) assert_ok(frit_session_next(session, sampler, &next[i]));
    frit_sampler_free(sampler);
}

// A conversation: each turn reuses the tokens of the previous turn, including its answer.
static void check_turns(const char *path, frit_engine_options options)
{
    fixture f = open_model(path, options);
    options.no_prefix_cache = true;
    fixture cold = open_model(path, options);
    frit_token tokens[N_CTX];
    size_t n = 0;
    for (int turn = 0; turn < 4; turn++) {
        frit_token expected[N_NEXT];
        make_tokens((uint64_t)turn, tokens + n, 45, f.n_vocab);
        frit_session *session = push_session(&cold, tokens, n + 45);
        go_on(&cold, session, expected);
        frit_session_free(session);
        session = push_session(&f, tokens, n + 45);
        go_on(&f, session, tokens + n + 45);
        assert_memory_equal(tokens + n + 45, expected, sizeof expected);
        // The last token runs only if the session runs ahead.
        assert_in_range(frit_session_cached(session), turn > 0 ? n - 1 : 0, turn > 0 ? n : 0);
        frit_session_free(session);
        n += 45 + N_NEXT;
    }
    close_model(&f);
    close_model(&cold);
}

static void a_turn_runs_what_is_new(void **state)
{
    (void)state;
    check_turns(tiny_model("a.gguf", &(tiny_options){0}), (frit_engine_options){0});
    check_turns(tiny_model("a.gguf", &(tiny_options){0}), (frit_engine_options){.cpu = "reference"});
}

static void windows_go_on_where_their_positions_are_left(void **state)
{
    (void)state;
    check_turns(shared_path("goldens/hf/gemma3_text"), (frit_engine_options){.n_sessions = 2});
    check_turns(shared_path("goldens/hf/mistral"), (frit_engine_options){.n_sessions = 2});
}

static void states_go_on_where_a_text_ended(void **state)
{
    (void)state;
    check_turns(shared_path("goldens/arch/jamba-dense.gguf"), (frit_engine_options){0});
    check_turns(shared_path("goldens/arch/mamba-dense.gguf"), (frit_engine_options){.n_sessions = 2});
}

// A snapshot is taken at the beginning of a page, 16 tokens or more before the end of a push: after 128 of 150.
static void states_go_on_from_snapshots(void **state)
{
    (void)state;
    const char *path = shared_path("goldens/arch/jamba-dense.gguf");
    fixture f = open_model(path, (frit_engine_options){0});
    fixture cold = open_model(path, (frit_engine_options){.no_prefix_cache = true});
    frit_token tokens[N];
    make_tokens(1, tokens, N, f.n_vocab);
    free(logits_of(&f, tokens, N, NULL));
    tokens[N - 1] = (tokens[N - 1] + 1) % f.n_vocab;
    float *expected = logits_of(&cold, tokens, N, NULL);
    assert_runs(&f, tokens, N, expected, N - 128);
    free(expected);
    close_model(&f);
    close_model(&cold);
}

// ------------------------------------------------------------------------------- room

// Cached pages do not take memory from running sessions: a text fills the cache after others.
static void kept_pages_give_way(void **state)
{
    (void)state;
    fixture f = open_tiny((frit_engine_options){.n_ctx = 128}),
            cold = open_tiny((frit_engine_options){.n_ctx = 128, .no_prefix_cache = true});
    frit_token tokens[128];
    for (uint64_t seed = 0; seed < 6; seed++) {
        make_tokens(seed, tokens, 128, f.n_vocab);
        float *expected = logits_of(&cold, tokens, 128, NULL);
        assert_runs(&f, tokens, 128, expected, 128);
        assert_runs(&f, tokens, 128, expected, 1);   // the copy of its last page has no room, so the token runs in the
                                                     // page itself
        assert_runs(&f, tokens, 128, expected, 1);
        free(expected);
    }
    close_model(&f);
    close_model(&cold);
}

// Evicted pages wait in host memory and are loaded to the bit.
static void check_host(const char *path, frit_engine_options options)
{
    enum { TEXTS = 5 };
    frit_token tokens[TEXTS][128];
    float *expected[TEXTS];
    options.n_ctx = 128;
    options.no_prefix_cache = true;
    fixture cold = open_model(path, options);
    options.no_prefix_cache = false;
    options.prefix_host_mib = 8;
    fixture f = open_model(path, options);
    for (int i = 0; i < TEXTS; i++) {
        make_tokens((uint64_t)i, tokens[i], 128, f.n_vocab);
        expected[i] = logits_of(&cold, tokens[i], 128, NULL);
        assert_runs(&f, tokens[i], 128, expected[i], 128);
    }
    for (int i = 0; i < 2 * TEXTS; i++) assert_runs(&f, tokens[i % TEXTS], 128, expected[i % TEXTS], 1);
    for (int i = 0; i < TEXTS; i++) free(expected[i]);
    close_model(&f);
    close_model(&cold);
}

static void pages_come_back_from_the_host(void **state)
{
    (void)state;
    check_host(tiny_model("a.gguf", &(tiny_options){0}), (frit_engine_options){0});
    check_host(shared_path("goldens/hf/gemma3_text"), (frit_engine_options){0});
}

// Runs two texts that grow together in a cache for one: the second session is preempted, and continues after the first
// has ended. Writes its logits and returns the number of rows that ran.
static int32_t run_crowded(const fixture *f, frit_token (*tokens)[128], float *logits)
{
    enum { FIRST = 60, END = 120 };
    frit_session *a = push_session(f, tokens[0], FIRST), *b = push_session(f, tokens[1], FIRST);
    int32_t n_rows, n = 0;
    assert_ok(frit_session_set_share(b, 1, -1));
    n += run(f, a);
    n += run(f, b);
    for (size_t at = FIRST; at < END; at++) {
        const size_t length = frit_session_length(b);
        assert_ok(frit_session_push(a, tokens[0] + at, 1, NULL));
        if (frit_session_pending(b) == 0) assert_ok(frit_session_push(b, tokens[1] + length, 1, NULL));
        for (; frit_session_pending(a) > 0; n += n_rows) assert_ok(frit_engine_step(f->engine, &n_rows));
    }
    assert_true(frit_session_pending(b) > FIRST);   // it was preempted
    frit_session_free(a);
    n += run(f, b);
    for (size_t at = frit_session_length(b); at < END; at++) {
        assert_ok(frit_session_push(b, tokens[1] + at, 1, NULL));
        n += run(f, b);
    }
    memcpy(logits, frit_session_logits(b), (size_t)f->n_vocab * sizeof *logits);
    frit_session_free(b);
    return n;
}

static void check_spilled(const char *path)
{
    fixture cold = open_model(path, (frit_engine_options){.n_ctx = 128, .no_prefix_cache = true});
    frit_token tokens[2][128];
    for (int i = 0; i < 2; i++) make_tokens(40 + (uint64_t)i, tokens[i], 128, cold.n_vocab);
    float *expected = logits_of(&cold, tokens[1], 120, NULL);
    float *logits = malloc((size_t)cold.n_vocab * sizeof *logits);
    int32_t n_rows[2];
    for (int i = 0; i < 2; i++) {
        fixture f = open_model(path, (frit_engine_options){.n_ctx = 128, .prefix_host_mib = i ? 8 : 0});
        n_rows[i] = run_crowded(&f, tokens, logits);
        assert_memory_equal(logits, expected, (size_t)f.n_vocab * sizeof *logits);
        close_model(&f);
    }
    assert_in_range(n_rows[0], 240 + 60, 240 + 66);   // the tokens that it had run run again
    assert_in_range(n_rows[1], 240, 242);             // its pages are loaded from host memory
    free(logits);
    free(expected);
    close_model(&cold);
}

// Pages of a preempted session are evicted to host memory too.
static void preempted_sessions_come_back_from_the_host(void **state)
{
    (void)state;
    check_spilled(tiny_model("a.gguf", &(tiny_options){0}));
}

static void the_longest_unused_goes_first(void **state)
{
    (void)state;
    fixture f = open_tiny((frit_engine_options){.n_ctx = 128, .n_sessions = 2});   // 8 pages
    frit_token a[64], b[64], c[128];
    make_tokens(1, a, 64, f.n_vocab);
    make_tokens(2, b, 64, f.n_vocab);
    make_tokens(3, c, 128, f.n_vocab);
    int32_t n_rows;
    free(logits_of(&f, a, 64, NULL));
    free(logits_of(&f, b, 64, NULL));
    free(logits_of(&f, a, 64, &n_rows));   // takes a copy of its last page
    assert_int_equal(n_rows, 1);
    free(logits_of(&f, c, 128, &n_rows));   // and needs four more pages: b's last page is evicted
    assert_int_equal(n_rows, 128);
    free(logits_of(&f, a, 64, &n_rows));
    assert_int_equal(n_rows, 1);
    free(logits_of(&f, b, 64, &n_rows));
    assert_true(n_rows > 1);
    close_model(&f);
}

// ------------------------------------------------------------------------------- what is not shared

static size_t cached_of(const fixture *f, frit_session *session, const frit_token *tokens)
{
    assert_ok(frit_session_push(session, tokens, N, NULL));
    run(f, session);
    const size_t n = frit_session_cached(session);
    frit_session_free(session);
    return n;
}

static frit_session *salted(const fixture *f, const char *salt)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, f->engine));
    assert_ok(frit_session_set_salt(session, salt, strlen(salt)));
    return session;
}

static void salts_separate_sessions(void **state)
{
    (void)state;
    fixture f = open_tiny((frit_engine_options){.n_sessions = 4});
    frit_token tokens[N];
    make_tokens(1, tokens, N, f.n_vocab);
    assert_int_equal(cached_of(&f, salted(&f, ""), tokens), 0);
    assert_int_equal(cached_of(&f, salted(&f, "a"), tokens), 0);
    assert_int_equal(cached_of(&f, salted(&f, "b"), tokens), 0);
    assert_int_equal(cached_of(&f, salted(&f, "a"), tokens), N - 1);
    assert_int_equal(cached_of(&f, salted(&f, "ab"), tokens), 0);
    assert_int_equal(cached_of(&f, salted(&f, ""), tokens), N - 1);
    frit_session *session = push_session(&f, tokens, N);
    run(&f, session);
    assert_fails(frit_session_set_salt(session, "c", 1), FRIT_E_INVALID, "150 tokens of the session ran");
    assert_ok(frit_session_truncate(session, 0));
    assert_ok(frit_session_set_salt(session, "c", 1));
    assert_int_equal(cached_of(&f, session, tokens), 0);
    close_model(&f);
}

static frit_session *adapted(const fixture *f, frit_adapter *adapter, float scale)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, f->engine));
    assert_ok(frit_session_set_adapters(session, &adapter, &scale, 1));
    return session;
}

static void adapters_and_scales_separate_sessions(void **state)
{
    (void)state;
    fixture f = open_model(tiny_model("a.gguf", &(tiny_options){0}), (frit_engine_options){.n_sessions = 4});
    frit_token tokens[N];
    frit_adapter *adapters[2];
    for (int i = 0; i < 2; i++) {
        char name[16], base[512];
        snprintf(name, sizeof name, "b%d.gguf", i);
        snprintf(base, sizeof base, "%s", temp_path("a.gguf"));
        const char *path = make_adapter(name, base, &(adapter_options){.seed = (uint64_t)(2 + i)}, NULL);
        assert_ok(frit_adapter_open(&adapters[i], f.model, path, NULL));
    }
    make_tokens(1, tokens, N, f.n_vocab);
    assert_int_equal(cached_of(&f, adapted(&f, adapters[0], 0), tokens), 0);
    assert_int_equal(cached_of(&f, adapted(&f, adapters[0], 1), tokens), 0);
    assert_int_equal(cached_of(&f, adapted(&f, adapters[0], 0.5f), tokens), 0);
    assert_int_equal(cached_of(&f, adapted(&f, adapters[0], 1), tokens), N - 1);
    assert_int_equal(cached_of(&f, adapted(&f, adapters[1], 1), tokens), 0);   // another adapter has the same index
    assert_int_equal(cached_of(&f, adapted(&f, adapters[0], 0), tokens), N - 1);
    // Adapters changed in the middle: the text belongs to none of them.
    frit_session *session = adapted(&f, adapters[1], 2);
    assert_ok(frit_session_push(session, tokens, 64, NULL));
    run(&f, session);
    assert_ok(frit_session_set_adapters(session, NULL, NULL, 0));
    make_tokens(9, tokens + 64, N - 64, f.n_vocab);
    assert_ok(frit_session_push(session, tokens + 64, N - 64, NULL));
    run(&f, session);
    frit_session_free(session);
    assert_int_equal(cached_of(&f, adapted(&f, adapters[1], 0), tokens), 64);   // cached by the first session above
    for (int i = 0; i < 2; i++) frit_adapter_free(adapters[i]);
    close_model(&f);
}

// Keys and values of a session file are used by its session only.
static void sessions_from_files_leave_nothing(void **state)
{
    (void)state;
    fixture f = open_tiny((frit_engine_options){.n_sessions = 4});
    frit_token tokens[N];
    make_tokens(1, tokens, N, f.n_vocab);
    frit_session *session = push_session(&f, tokens, N), *other;
    run(&f, session);
    size_t n;
    frit_session_save_memory(session, NULL, 0, &n);
    void *bytes = malloc(n);
    assert_ok(frit_session_save_memory(session, bytes, n, &n));
    frit_session_free(session);
    fixture g = open_tiny((frit_engine_options){.n_sessions = 4});
    assert_ok(frit_session_new(&other, g.engine));
    assert_ok(frit_session_load_memory(other, bytes, n));
    frit_session_free(other);
    assert_int_equal(cached_of(&g, salted(&g, ""), tokens), 0);
    free(bytes);
    close_model(&f);
    close_model(&g);
}

static void count_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)i;
    (void)values;
    (void)n;
    ++*(size_t *)ctx;
}

static void tokens_with_results_run(void **state)
{
    (void)state;
    fixture f = open_tiny((frit_engine_options){.n_sessions = 2});
    frit_token tokens[N];
    size_t n_seen = 0;
    make_tokens(1, tokens, N, f.n_vocab);
    free(logits_of(&f, tokens, N, NULL));
    frit_session *session = push_session(&f, tokens, 100);
    const frit_push_options all = {.output = FRIT_OUTPUT_ALL, .row = count_row, .row_ctx = &n_seen};
    assert_ok(frit_session_push(session, tokens + 100, 50, &all));
    assert_int_equal(run(&f, session), 50);
    assert_int_equal(n_seen, 50);
    assert_int_equal(frit_session_cached(session), 100);
    assert_ok(frit_session_truncate(session, 60));
    assert_int_equal(frit_session_cached(session), 60);
    frit_session_free(session);
    close_model(&f);
}

// A session that fails removes its pages from the prefix cache.
static void failed_sessions_leave_nothing(void **state)
{
    (void)state;
    fixture f = open_model(tiny_model("bad.gguf", &(tiny_options){.damaged = "token_embd.weight"}),
                           (frit_engine_options){.n_batch = 64});
    frit_token tokens[N];
    make_tokens(1, tokens, N, f.n_vocab);
    for (int i = 0; i < 2; i++) {
        frit_session *session = push_session(&f, tokens, N);
        while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(f.engine, NULL));
        assert_int_equal(frit_session_status(session), FRIT_E_FORMAT);
        assert_int_equal(frit_session_cached(session), 0);
        frit_session_free(session);
    }
    close_model(&f);
}

// ------------------------------------------------------------------------------- --bench

enum { BENCH_PREFIX = 4000, BENCH_NEW = 200, BENCH_ROUNDS = 7 };

static double seconds_of(const fixture *f, const frit_token *tokens, size_t n, size_t n_cached)
{
    const uint64_t begin = frit_time_ns();
    frit_session *session = push_session(f, tokens, n);
    run(f, session);
    const double seconds = 1e-9 * (double)(frit_time_ns() - begin);
    assert_int_equal(frit_session_cached(session), n_cached);
    frit_session_free(session);
    return seconds;
}

// Returns the time after the session itself has run the first n_before tokens.
static double seconds_after(const fixture *f, const frit_token *tokens, size_t n_before, size_t n)
{
    frit_session *session = push_session(f, tokens, n_before);
    run(f, session);
    const uint64_t begin = frit_time_ns();
    assert_ok(frit_session_push(session, tokens + n_before, n - n_before, NULL));
    run(f, session);
    const double seconds = 1e-9 * (double)(frit_time_ns() - begin);
    frit_session_free(session);
    return seconds;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Measures times to the first token: of a whole prompt, after a prefix that the session has run, and after one that
// other sessions have run.
static void bench(const char *name)
{
    fixture f;
    frit_model_info info;
    const frit_engine_options options = {.n_ctx = BENCH_PREFIX + BENCH_NEW, .n_sessions = 2};
    if (strchr(name, '.'))
        assert_ok(frit_model_open(&f.model, name, NULL));
    else
        assert_ok(frit_model_open_random(&f.model, &(frit_random_options){.shape = name, .n_layers = 4}, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    assert_ok(frit_model_get_info(f.model, &info));
    f.n_vocab = info.n_vocab;
    frit_token *tokens = malloc((BENCH_PREFIX + BENCH_NEW) * sizeof *tokens);
    double alone[BENCH_ROUNDS], after[BENCH_ROUNDS], warm[BENCH_ROUNDS];
    make_tokens(1, tokens, BENCH_PREFIX, f.n_vocab);
    const double prefix = seconds_of(&f, tokens, BENCH_PREFIX, 0);
    for (int i = 0; i < BENCH_ROUNDS; i++) {
        for (int k = 0; k < BENCH_NEW; k++) tokens[BENCH_PREFIX + k] = 1 + (i * 1000 + k * 7) % (f.n_vocab - 1);
        tokens[BENCH_PREFIX] = (tokens[0] + 1 + i) % f.n_vocab;   // a text with a new beginning
        alone[i] = seconds_of(&f, tokens + BENCH_PREFIX, BENCH_NEW, 0);
        tokens[BENCH_PREFIX] = (tokens[BENCH_PREFIX] + BENCH_ROUNDS) % f.n_vocab;
        after[i] = seconds_after(&f, tokens, BENCH_PREFIX, BENCH_PREFIX + BENCH_NEW);
        tokens[BENCH_PREFIX] = (tokens[BENCH_PREFIX] + BENCH_ROUNDS) % f.n_vocab;
        warm[i] = seconds_of(&f, tokens, BENCH_PREFIX + BENCH_NEW, BENCH_PREFIX);
    }
    qsort(alone, BENCH_ROUNDS, sizeof *alone, by_size);
    qsort(after, BENCH_ROUNDS, sizeof *after, by_size);
    qsort(warm, BENCH_ROUNDS, sizeof *warm, by_size);
    const int middle = BENCH_ROUNDS / 2;
    printf("%s, %d layers: %d tokens %.3f s; %d tokens alone %.4f s, after them %.4f s, after a warm prefix %.4f s\n",
           name, info.n_layer, BENCH_PREFIX, prefix, BENCH_NEW, alone[middle], after[middle], warm[middle]);
    free(tokens);
    close_model(&f);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench(argc > 2 ? argv[2] : "llama-1b");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_that_ran_runs_one_token_again),
        cmocka_unit_test(a_shared_prefix_of_4000_tokens_runs_once),
        cmocka_unit_test(a_turn_runs_what_is_new),
        cmocka_unit_test(windows_go_on_where_their_positions_are_left),
        cmocka_unit_test(states_go_on_where_a_text_ended),
        cmocka_unit_test(states_go_on_from_snapshots),
        cmocka_unit_test(kept_pages_give_way),
        cmocka_unit_test(the_longest_unused_goes_first),
        cmocka_unit_test(pages_come_back_from_the_host),
        cmocka_unit_test(preempted_sessions_come_back_from_the_host),
        cmocka_unit_test(salts_separate_sessions),
        cmocka_unit_test(adapters_and_scales_separate_sessions),
        cmocka_unit_test(sessions_from_files_leave_nothing),
        cmocka_unit_test(tokens_with_results_run),
        cmocka_unit_test(failed_sessions_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

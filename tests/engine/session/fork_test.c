// SPDX-License-Identifier: MIT
// Forks of sessions: both continue bit for bit as the original would have, and neither disturbs the other.
#include "support/adapters.h"
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "frit.h"

enum { N = 45, N_MORE = 9, N_NEXT = 12 };

static void push(frit_session *session, uint64_t seed, size_t n)
{
    frit_token tokens[N];
    make_tokens(seed, tokens, n, TINY_VOCAB);
    assert_ok(frit_session_push(session, tokens, n, NULL));
}

// Generates the greedy continuation.
static void go_on(const frit_model *model, frit_session *session, frit_token next[N_NEXT])
{
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, model, NULL));
    for (int i = 0; i < N_NEXT; i++) assert_ok(frit_session_next(session, sampler, &next[i]));
    frit_sampler_free(sampler);
}

static void assert_same_logits(const frit_session *a, const frit_session *b, int32_t n_vocab)
{
    const float *x = frit_session_logits(a), *y = frit_session_logits(b);
    assert_non_null(x);
    assert_non_null(y);
    assert_memory_equal(x, y, (size_t)n_vocab * sizeof *x);
}

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
    int32_t n_vocab;
} fixture;

static fixture open_model(const char *path, frit_engine_options options)
{
    fixture f;
    frit_model_info info;
    f.model = load_model(path);
    f.engine = make_engine(f.model, options);
    assert_ok(frit_model_get_info(f.model, &info));
    f.n_vocab = info.n_vocab;
    return f;
}

static void close_model(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

// Forks after some tokens ran while others wait, pushes other tokens to the fork first, and compares with a session
// that was never forked.
static void check_fork(fixture *f, bool waits)
{
    frit_session *straight, *session, *fork;
    frit_token tokens[N + N_MORE], next[3][N_NEXT];
    make_tokens(3, tokens, N + N_MORE, f->n_vocab);
    assert_ok(frit_session_new(&straight, f->engine));
    assert_ok(frit_session_new(&session, f->engine));
    assert_ok(frit_session_push(straight, tokens, N, NULL));
    assert_ok(frit_session_push(session, tokens, N, NULL));
    if (!waits)
        while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(f->engine, NULL));
    assert_ok(frit_session_set_note(session, "a note", 6));
    assert_ok(frit_session_fork(&fork, session));
    size_t n;
    assert_string_equal(frit_session_note(fork, &n), "a note");
    assert_int_equal(frit_session_length(fork), N);
    assert_int_equal(frit_session_pending(fork), waits ? N : 0);
    if (!waits) assert_same_logits(session, fork, f->n_vocab);
    assert_ok(frit_session_push(fork, tokens + N, N_MORE, NULL));   // other tokens
    go_on(f->model, fork, next[0]);
    go_on(f->model, session, next[1]);
    go_on(f->model, straight, next[2]);
    assert_memory_equal(next[1], next[2], sizeof next[1]);
    assert_ok(frit_session_truncate(fork, N));
    assert_ok(frit_session_truncate(fork, N - 1));   // runs its last token again in any kind of model
    assert_ok(frit_session_push(fork, tokens + N - 1, 1, NULL));
    go_on(f->model, fork, next[0]);
    assert_memory_equal(next[0], next[2], sizeof next[0]);
    frit_session_free(session);
    frit_session_free(fork);
    frit_session_free(straight);
}

static void a_fork_goes_on_to_the_bit(void **state)
{
    (void)state;
    const frit_engine_options options[] = {
        {.n_ctx = 128, .n_sessions = 3, .n_threads = 1},
        {.n_ctx = 128, .n_sessions = 3, .n_threads = 1, .cpu = "reference"},
        {.n_ctx = 128, .n_sessions = 3, .n_threads = 1, .cache_type_k = "f32", .cache_type_v = "bf16"},
    };
    for (size_t i = 0; i < FRIT_COUNT(options); i++) {
        fixture f = open_model(tiny_model("a.gguf", &(tiny_options){0}), options[i]);
        check_fork(&f, false);
        check_fork(&f, true);
        close_model(&f);
    }
}

// States, short convolutions, latent attention.
static void every_kind_of_cache_is_forked(void **state)
{
    (void)state;
    static const char *const names[] = {"jamba-dense", "qwen35-dense", "lfm2-dense"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        fixture f = open_model(shared_path("goldens/arch/%s.gguf", names[i]),
                               (frit_engine_options){.n_ctx = 128, .n_sessions = 3, .n_threads = 1});
        check_fork(&f, false);
        check_fork(&f, true);
        close_model(&f);
    }
}

static void adapters_go_with_a_fork(void **state)
{
    (void)state;
    fixture f = open_model(tiny_model("a.gguf", &(tiny_options){0}),
                           (frit_engine_options){.n_ctx = 64, .n_sessions = 2, .n_threads = 1});
    frit_adapter *adapter;
    frit_session *session, *fork;
    char path[512];
    snprintf(path, sizeof path, "%s", make_adapter("b.gguf", temp_path("a.gguf"), &(adapter_options){.seed = 2}, NULL));
    assert_ok(frit_adapter_open(&adapter, f.model, path, NULL));
    assert_ok(frit_session_new(&session, f.engine));
    assert_ok(frit_session_set_adapters(session, &adapter, (float[]){0.5f}, 1));
    push(session, 1, 20);
    assert_ok(frit_session_fork(&fork, session));
    frit_token a[N_NEXT], b[N_NEXT];
    go_on(f.model, session, a);
    go_on(f.model, fork, b);
    assert_memory_equal(a, b, sizeof a);
    push(session, 7, 1);
    push(fork, 7, 1);
    while (frit_session_pending(session) + frit_session_pending(fork) > 0) assert_ok(frit_engine_step(f.engine, NULL));
    assert_same_logits(session, fork, f.n_vocab);
    frit_session_free(session);
    frit_session_free(fork);
    frit_adapter_free(adapter);
    close_model(&f);
}

// Two pages: the second one is shared, and neither session can write into it before the other one is freed.
static void a_fork_shares_pages_until_it_writes(void **state)
{
    (void)state;
    fixture f = open_model(tiny_model("a.gguf", &(tiny_options){0}),
                           (frit_engine_options){.n_ctx = 64, .n_sessions = 1, .n_threads = 1});
    frit_session *session, *fork;
    assert_ok(frit_session_new(&session, f.engine));
    assert_ok(frit_session_fork(&fork, session));   // a fork of an empty session
    frit_session_free(fork);
    push(session, 1, 40);
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(f.engine, NULL));
    assert_ok(frit_session_fork(&fork, session));
    assert_same_logits(session, fork, f.n_vocab);
    push(session, 2, 1);
    int32_t n_rows = 7;
    assert_fails(frit_engine_step(f.engine, &n_rows), FRIT_E_LIMIT,
                 "1 session waits for room in it, and no other one runs: 0 of 2 pages of 32 tokens are free");
    assert_int_equal(n_rows, 0);
    frit_session_free(fork);
    frit_token next[N_NEXT];
    go_on(f.model, session, next);
    frit_session_free(session);
    close_model(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_goes_on_to_the_bit),
        cmocka_unit_test(every_kind_of_cache_is_forked),
        cmocka_unit_test(adapters_go_with_a_fork),
        cmocka_unit_test(a_fork_shares_pages_until_it_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

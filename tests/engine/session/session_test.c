// SPDX-License-Identifier: MIT
// Sessions and steps on a tiny model: the logits do not depend on how tokens are pushed.
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"

#include <math.h>
#include <unistd.h>

enum { N = 50 };   // tokens of the usual text

// Both ways to compute: plain code with f32 caches, and the best kernels.
static const frit_engine_options engines[] = {{.cpu = "reference", .n_sessions = 4}, {.n_sessions = 4, .n_threads = 2}};

static void push(frit_session *session, const frit_token *tokens, size_t n)
{
    assert_ok(frit_session_push(session, tokens, n, NULL));
}

static float *copy_logits(const frit_session *session)
{
    const float *logits = frit_session_logits(session);
    assert_non_null(logits);
    float *copy = malloc(TINY_VOCAB * sizeof *copy);
    memcpy(copy, logits, TINY_VOCAB * sizeof *copy);
    return copy;
}

// Fast kernels may add in another order for another number of rows.
static void assert_near(const float *a, const float *b, size_t n)
{
    assert_non_null(a);
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * fmaxf(1, fabsf(b[i]))))
            fail_msg("value %zu is %g, expected %g", i, (double)a[i], (double)b[i]);
}

// Computes the logits after tokens[0..n), one token at a time in a new session.
static float *plain_logits(frit_engine *engine, const frit_token *tokens, size_t n)
{
    frit_session *session = make_session(engine);
    for (size_t i = 0; i < n; i++) {
        push(session, &tokens[i], 1);
        run_all(engine);
    }
    float *logits = copy_logits(session);
    frit_session_free(session);
    return logits;
}

// ------------------------------------------------------------------------------- the same logits by every way

static void chunks_of_any_size_give_the_same_logits(void **state)
{
    (void)state;
    frit_token tokens[N];
    make_tokens(1, tokens, N, TINY_VOCAB);
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        const int32_t batches[] = {0, 7, 1, 32, 13};
        frit_engine *plain = tiny_engine(&(tiny_options){0}, engines[e]);
        float *expected = plain_logits(plain, tokens, N);
        for (size_t b = 0; b < FRIT_COUNT(batches); b++) {
            frit_engine_options options = engines[e];
            options.n_batch = batches[b];
            frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
            frit_session *session = make_session(engine);
            push(session, tokens, N);
            assert_null(frit_session_logits(session));
            run_all(engine);
            assert_near(frit_session_logits(session), expected, TINY_VOCAB);
            frit_session_free(session);
            frit_engine_free(engine);
        }
        free(expected);
        frit_engine_free(plain);
    }
}

static void interleaved_sessions_do_not_disturb_each_other(void **state)
{
    (void)state;
    enum { SESSIONS = 3 };
    static const size_t lengths[SESSIONS] = {50, 33, 7};
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        frit_engine_options options = engines[e];
        options.n_batch = 16;
        frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
        frit_token tokens[SESSIONS][N];
        frit_session *sessions[SESSIONS];
        float *expected[SESSIONS];
        for (int s = 0; s < SESSIONS; s++) {
            make_tokens((uint64_t)s + 5, tokens[s], N, TINY_VOCAB);
            expected[s] = plain_logits(engine, tokens[s], lengths[s]);
            sessions[s] = make_session(engine);
        }
        // Pushes of growing size, with steps between them: decode rows and prompt chunks of all sessions in one batch.
        size_t at[SESSIONS] = {0};
        for (int round = 0, left = SESSIONS; left > 0; round++) {
            left = 0;
            for (int s = 0; s < SESSIONS; s++) {
                size_t n = (size_t)((round + s) % 3 == 0 ? 9 : 1);
                if (n > lengths[s] - at[s]) n = lengths[s] - at[s];
                push(sessions[s], tokens[s] + at[s], n);
                at[s] += n;
                left += at[s] < lengths[s];
            }
            int32_t n_rows;
            assert_ok(frit_engine_step(engine, &n_rows));
            assert_in_range(n_rows, 1, 16);
        }
        run_all(engine);
        for (int s = 0; s < SESSIONS; s++) {
            assert_near(frit_session_logits(sessions[s]), expected[s], TINY_VOCAB);
            frit_session_free(sessions[s]);
            free(expected[s]);
        }
        frit_engine_free(engine);
    }
}

static void fusion_changes_nothing(void **state)
{
    (void)state;
    frit_token tokens[N];
    make_tokens(2, tokens, N, TINY_VOCAB);
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        frit_engine_options options = engines[e];
        frit_engine *fused = tiny_engine(&(tiny_options){0}, options);
        options.no_fuse = true;
        frit_engine *plain = tiny_engine(&(tiny_options){0}, options);
        float *a = plain_logits(fused, tokens, N), *b = plain_logits(plain, tokens, N);
        assert_near(a, b, TINY_VOCAB);
        free(a);
        free(b);
        frit_engine_free(fused);
        frit_engine_free(plain);
    }
}

static void the_default_path_agrees_with_the_reference(void **state)
{
    (void)state;
    frit_token tokens[N];
    make_tokens(3, tokens, N, TINY_VOCAB);
    frit_engine *a = tiny_engine(&(tiny_options){0}, engines[0]), *b = tiny_engine(&(tiny_options){0}, engines[1]);
    float *expected = plain_logits(a, tokens, N), *logits = plain_logits(b, tokens, N);
    assert_true(nmse(logits, expected, TINY_VOCAB) < 1e-4);
    free(expected);
    free(logits);
    frit_engine_free(a);
    frit_engine_free(b);
}

static void dynamic_rotation_belongs_to_the_engine(void **state)
{
    (void)state;
    frit_token tokens[N];
    make_tokens(3, tokens, N, TINY_VOCAB);
    frit_model *plain = load_tiny(&(tiny_options){0}), *dynamic;
    assert_ok(frit_model_open(&dynamic, tiny_model("dynamic.gguf", &(tiny_options){.rope_scaling = "dynamic"}), NULL));
    const frit_engine_options within = {.cpu = "reference", .n_ctx = TINY_CTX};
    const frit_engine_options beyond = {.cpu = "reference", .n_ctx = 4 * TINY_CTX};
    frit_engine *made[4] = {make_engine(plain, beyond), make_engine(dynamic, within), make_engine(dynamic, beyond),
                            make_engine(dynamic, within)};
    float *logits[4];
    for (int i = 0; i < 4; i++) {
        logits[i] = plain_logits(made[i], tokens, N);
        frit_engine_free(made[i]);
    }
    assert_near(logits[1], logits[0], TINY_VOCAB);   // unchanged until scaling is needed
    assert_true(nmse(logits[2], logits[0], TINY_VOCAB) > 1e-6);
    assert_memory_equal(logits[3], logits[1], TINY_VOCAB * sizeof(float));   // another session does not change the
                                                                             // model
    for (int i = 0; i < 4; i++) free(logits[i]);
    frit_model_free(plain);
    frit_model_free(dynamic);
}

static void truncating_and_feeding_again_gives_the_same_logits(void **state)
{
    (void)state;
    frit_token tokens[N], others[N];
    make_tokens(4, tokens, N, TINY_VOCAB);
    make_tokens(9, others, N, TINY_VOCAB);
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[e]);
        float *expected = plain_logits(engine, tokens, N);
        frit_session *session = make_session(engine);
        const size_t keeps[] = {0, 1, 31, 32, 33, 49};
        for (size_t i = 0; i < FRIT_COUNT(keeps); i++) {
            assert_ok(frit_session_truncate(session, 0));
            push(session, tokens, keeps[i]);
            push(session, others, 17);
            run_all(engine);
            assert_ok(frit_session_truncate(session, keeps[i]));
            assert_int_equal(frit_session_length(session), keeps[i]);
            assert_null(frit_session_logits(session));
            push(session, tokens + keeps[i], N - keeps[i]);
            run_all(engine);
            assert_near(frit_session_logits(session), expected, TINY_VOCAB);
        }
        free(expected);
        frit_session_free(session);
        frit_engine_free(engine);
    }
}

static void truncating_into_the_queue_keeps_what_is_before(void **state)
{
    (void)state;
    frit_token tokens[N];
    make_tokens(6, tokens, N, TINY_VOCAB);
    frit_engine_options options = engines[0];
    options.n_batch = 8;
    options.no_prefix_cache = true;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
    float *expected = plain_logits(engine, tokens, 21);
    frit_session *session = make_session(engine);
    push(session, tokens, N);
    assert_ok(frit_engine_step(engine, NULL));
    assert_int_equal(frit_session_pending(session), N - 8);
    assert_ok(frit_session_truncate(session, 21));
    assert_int_equal(frit_session_length(session), 21);
    assert_int_equal(frit_session_pending(session), 13);
    run_all(engine);
    assert_near(frit_session_logits(session), expected, TINY_VOCAB);
    assert_ok(frit_session_truncate(session, 21));   // nothing changes, so the logits stay
    assert_non_null(frit_session_logits(session));
    free(expected);
    frit_session_free(session);
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- results for every token

typedef struct collected {
    float *rows;
    size_t n, width;
} collected;

static void collect(void *ctx, size_t i, const float *values, size_t n)
{
    collected *c = ctx;
    assert_int_equal(i, c->n);
    assert_int_equal(n, c->width);
    c->rows = realloc(c->rows, (c->n + 1) * n * sizeof *c->rows);
    memcpy(c->rows + c->n * n, values, n * sizeof *values);
    c->n++;
}

static void logits_of_all_tokens_come_in_order(void **state)
{
    (void)state;
    frit_token tokens[N];
    make_tokens(7, tokens, N, TINY_VOCAB);
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        for (int32_t n_batch = 0; n_batch < 20; n_batch += 9) {
            frit_engine_options options = engines[e];
            options.n_batch = n_batch;
            frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
            frit_session *session = make_session(engine);
            collected all = {.width = TINY_VOCAB};
            const frit_push_options wants = {.output = FRIT_OUTPUT_ALL, .row = collect, .row_ctx = &all};
            push(session, tokens, 5);   // rows are counted from the push that requests them
            assert_ok(frit_session_push(session, tokens + 5, N - 5, &wants));
            run_all(engine);
            assert_int_equal(all.n, N - 5);
            assert_near(frit_session_logits(session), all.rows + (N - 6) * TINY_VOCAB, TINY_VOCAB);
            for (size_t i = 5; i < N; i += 11) {
                float *expected = plain_logits(engine, tokens, i + 1);
                assert_near(all.rows + (i - 5) * TINY_VOCAB, expected, TINY_VOCAB);
                free(expected);
            }
            free(all.rows);
            frit_session_free(session);
            frit_engine_free(engine);
        }
    }
}

static void many_logits_come_in_small_steps(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[0]);
    engine->schedule.max_outs = 3;   // the limit of a large vocabulary
    frit_token tokens[N];
    make_tokens(7, tokens, N, TINY_VOCAB);
    frit_session *session = make_session(engine);
    collected all = {.width = TINY_VOCAB};
    assert_ok(frit_session_push(session, tokens, N,
                                &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = collect, .row_ctx = &all}));
    int32_t n_rows;
    assert_ok(frit_engine_step(engine, &n_rows));
    assert_int_equal(n_rows, 3);
    run_all(engine);
    assert_int_equal(all.n, N);
    float *expected = plain_logits(engine, tokens, N);
    assert_near(frit_session_logits(session), expected, TINY_VOCAB);
    free(expected);
    free(all.rows);
    frit_session_free(session);
    frit_engine_free(engine);
}

static void embeddings_and_logits_take_turns(void **state)
{
    (void)state;
    frit_engine_options options = engines[1];
    options.n_batch = 8;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
    frit_token tokens[N];
    make_tokens(8, tokens, N, TINY_VOCAB);
    float *expected = plain_logits(engine, tokens, N);
    frit_session *embeds = make_session(engine), *talks = make_session(engine);
    collected hidden = {.width = 32}, again = {.width = 32};
    assert_ok(frit_session_push(
        embeds, tokens, N, &(frit_push_options){.output = FRIT_OUTPUT_EMBEDDINGS, .row = collect, .row_ctx = &hidden}));
    // A session that always has one token queued does not prevent others from running, and vice versa.
    for (size_t i = 0; i < N; i++) {
        push(talks, &tokens[i], 1);
        int32_t n_rows;
        while (frit_session_pending(talks) > 0) assert_ok(frit_engine_step(engine, &n_rows));
    }
    assert_int_equal(frit_session_pending(embeds), 0);
    assert_int_equal(hidden.n, N);
    assert_null(frit_session_logits(embeds));
    assert_near(frit_session_logits(talks), expected, TINY_VOCAB);

    assert_ok(frit_session_truncate(embeds, 0));
    for (size_t i = 0; i < N; i++) {
        const frit_push_options wants = {
            .output = FRIT_OUTPUT_EMBEDDINGS, .row = collect, .row_ctx = &(collected){.width = 32}};
        assert_ok(frit_session_push(embeds, &tokens[i], 1, &wants));
        run_all(engine);
        collected *one = wants.row_ctx;
        assert_int_equal(one->n, 1);
        assert_near(one->rows, hidden.rows + i * 32, 32);
        free(one->rows);
    }
    // Consecutive pushes with results of different kinds.
    assert_ok(frit_session_truncate(embeds, 0));
    assert_ok(frit_session_push(
        embeds, tokens, 20, &(frit_push_options){.output = FRIT_OUTPUT_EMBEDDINGS, .row = collect, .row_ctx = &again}));
    push(embeds, tokens + 20, N - 20);
    run_all(engine);
    assert_int_equal(again.n, 20);
    assert_near(frit_session_logits(embeds), expected, TINY_VOCAB);
    free(expected);
    free(hidden.rows);
    free(again.rows);
    frit_session_free(embeds);
    frit_session_free(talks);
    frit_engine_free(engine);
}

static void a_push_may_ask_for_nothing(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[0]);
    frit_token tokens[N];
    make_tokens(9, tokens, N, TINY_VOCAB);
    frit_session *session = make_session(engine);
    assert_ok(frit_session_push(session, tokens, N - 1, &(frit_push_options){.output = FRIT_OUTPUT_NONE}));
    run_all(engine);
    assert_null(frit_session_logits(session));
    assert_int_equal(frit_session_pending(session), 0);
    push(session, tokens + N - 1, 1);
    run_all(engine);
    float *expected = plain_logits(engine, tokens, N);
    assert_near(frit_session_logits(session), expected, TINY_VOCAB);
    // A token at the same position that requests nothing does not restore the old logits.
    assert_ok(frit_session_truncate(session, N - 1));
    assert_ok(frit_session_push(session, tokens, 1, &(frit_push_options){.output = FRIT_OUTPUT_NONE}));
    run_all(engine);
    assert_null(frit_session_logits(session));
    free(expected);
    frit_session_free(session);
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- scheduling

static void single_tokens_run_before_prompts(void **state)
{
    (void)state;
    frit_engine_options options = engines[0];
    options.n_batch = 16;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
    frit_token tokens[100];
    make_tokens(1, tokens, 100, TINY_VOCAB);
    frit_session *prompt = make_session(engine), *other = make_session(engine), *decode = make_session(engine);
    push(prompt, tokens, 100);
    push(other, tokens, 100);
    int32_t n_rows;
    for (int i = 0; i < 10; i++) {
        push(decode, tokens, 1);
        assert_ok(frit_engine_step(engine, &n_rows));
        assert_int_equal(n_rows, 16);
        assert_int_equal(frit_session_pending(decode), 0);
    }
    // 150 rows were divided between the two prompts, alternately.
    assert_in_range(frit_session_pending(prompt), 15, 35);
    assert_in_range(frit_session_pending(other), 15, 35);
    frit_session_free(prompt);
    run_all(engine);
    assert_int_equal(frit_session_pending(other), 0);
    frit_session_free(other);
    frit_session_free(decode);
    frit_engine_free(engine);
}

// Counts the rows of each step while one session generates and others have prompts.
static void prompts_keep_to_a_budget_while_others_generate(void **state)
{
    (void)state;
    enum { LONG = 250 };
    static const struct {
        int32_t budget;
        frit_step_cost pace;
        int32_t n_rows;   // of steps with prompts
    } rows[] = {
        {40, {.decode_ns = 0, .prompt_row_ns = 0}, 1 + 40},
        {5, {.decode_ns = 0, .prompt_row_ns = 0}, 1 + 5},
        // Devices with a queue have the budget of added_row_ns.
        {0, {.decode_ns = 1000, .prompt_row_ns = 100, .added_row_ns = 727e3}, 1 + 27},
        {0, {.decode_ns = 1000, .prompt_row_ns = 1000, .added_row_ns = 9e6}, 1 + 16},
        {0, {.decode_ns = 1000, .prompt_row_ns = 1e-3, .added_row_ns = 1e-3}, 128},
        {-1, {.decode_ns = 1000, .prompt_row_ns = 100}, 128},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_engine_options options = engines[0];
        options.n_batch = 128;
        options.prompt_budget = rows[i].budget;
        options.no_prefix_cache = true;
        frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
        frit_token tokens[LONG];
        make_tokens(1, tokens, LONG, TINY_VOCAB);
        frit_session *prompts[2] = {make_session(engine), make_session(engine)}, *decode = make_session(engine);
        push(decode, tokens, 2);
        run_all(engine);
        for (int k = 0; k < 2; k++) push(prompts[k], tokens, LONG);
        for (int32_t n_left = 2 * LONG, n_rows; n_left > 0; n_left -= n_rows - 1) {
            push(decode, tokens, 1);
            engine->cost = rows[i].pace;
            assert_ok(frit_engine_step(engine, &n_rows));
            assert_int_equal(frit_session_pending(decode), 0);   // every step runs its token
            assert_int_equal(n_rows, 1 + n_left < rows[i].n_rows ? 1 + n_left : rows[i].n_rows);
        }
        frit_session_free(decode);
        for (int k = 0; k < 2; k++) frit_session_free(prompts[k]);
        frit_engine_free(engine);
    }
}

static void the_budget_of_prompts_follows_the_pace_of_steps(void **state)
{
    (void)state;
    assert_int_equal(frit_schedule_budget(&(frit_step_cost){0}, 32), 64);
    assert_int_equal(frit_schedule_budget(&(frit_step_cost){.decode_ns = 5e6, .prompt_row_ns = 1e5}, 32), 137);
    assert_int_equal(frit_schedule_budget(&(frit_step_cost){.decode_ns = 5e6, .prompt_row_ns = 1e6}, 32), 32);
    assert_int_equal(frit_schedule_budget(&(frit_step_cost){.decode_ns = 5e6, .prompt_row_ns = 1e6}, 64), 64);
    assert_int_equal(frit_schedule_budget(&(frit_step_cost){.decode_ns = 1e9, .prompt_row_ns = 1e-3}, 64), INT32_MAX);
    assert_int_equal(frit_schedule_queue_budget(&(frit_step_cost){0}), 256);
    assert_int_equal(frit_schedule_queue_budget(&(frit_step_cost){.decode_ns = 5e6, .added_row_ns = 3e4}), 500);
    assert_int_equal(frit_schedule_queue_budget(&(frit_step_cost){.decode_ns = 1e7, .added_row_ns = 1e5}), 175);
    assert_int_equal(frit_schedule_queue_budget(&(frit_step_cost){.decode_ns = 5e6, .added_row_ns = 1e7}), 16);
}

static void nobody_starves_in_a_batch_of_one(void **state)
{
    (void)state;
    frit_engine_options options = engines[0];
    options.n_batch = 1;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
    frit_token tokens[20];
    make_tokens(1, tokens, 20, TINY_VOCAB);
    frit_session *decode = make_session(engine), *prompt = make_session(engine);
    push(prompt, tokens, 20);
    for (int i = 0; i < 45; i++) {
        if (frit_session_pending(decode) == 0) push(decode, tokens, 1);
        int32_t n_rows;
        assert_ok(frit_engine_step(engine, &n_rows));
        assert_int_equal(n_rows, 1);
    }
    assert_int_equal(frit_session_pending(prompt), 0);
    assert_in_range(frit_session_length(decode), 22, 26);
    frit_session_free(decode);
    frit_session_free(prompt);
    frit_engine_free(engine);
}

static void a_step_without_work_runs_nothing(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[1]);
    int32_t n_rows = -1;
    assert_ok(frit_engine_step(engine, &n_rows));
    assert_int_equal(n_rows, 0);
    frit_session *session = make_session(engine);
    assert_ok(frit_session_push(session, NULL, 0, NULL));
    assert_ok(frit_engine_step(engine, &n_rows));
    assert_int_equal(n_rows, 0);
    assert_null(frit_session_logits(session));
    frit_session_free(session);
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- lifetimes

static void two_engines_share_a_model(void **state)
{
    (void)state;
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_engine *a = make_engine(model, engines[0]), *b = make_engine(model, engines[0]);
    frit_token tokens[N];
    make_tokens(1, tokens, N, TINY_VOCAB);
    frit_model_free(model);
    float *x = plain_logits(a, tokens, N);
    frit_engine_free(a);
    float *y = plain_logits(b, tokens, N);
    assert_memory_equal(x, y, TINY_VOCAB * sizeof *x);
    free(x);
    free(y);
    frit_engine_free(b);
}

static void a_session_outlives_its_engine_only_to_be_freed(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[0]);
    frit_session *session = make_session(engine);
    frit_token token = 1;
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, engine->model, NULL));
    push(session, &token, 1);
    frit_engine_free(engine);
    assert_fails(frit_session_push(session, &token, 1, NULL), FRIT_E_INVALID, "engine was freed");
    assert_fails(frit_session_truncate(session, 0), FRIT_E_INVALID, "engine was freed");
    assert_fails(frit_session_next(session, sampler, &token), FRIT_E_INVALID, "engine was freed");
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_session_free(NULL);
    frit_engine_free(NULL);
    frit_model_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_of_any_size_give_the_same_logits),
        cmocka_unit_test(interleaved_sessions_do_not_disturb_each_other),
        cmocka_unit_test(fusion_changes_nothing),
        cmocka_unit_test(the_default_path_agrees_with_the_reference),
        cmocka_unit_test(dynamic_rotation_belongs_to_the_engine),
        cmocka_unit_test(truncating_and_feeding_again_gives_the_same_logits),
        cmocka_unit_test(truncating_into_the_queue_keeps_what_is_before),
        cmocka_unit_test(logits_of_all_tokens_come_in_order),
        cmocka_unit_test(many_logits_come_in_small_steps),
        cmocka_unit_test(embeddings_and_logits_take_turns),
        cmocka_unit_test(a_push_may_ask_for_nothing),
        cmocka_unit_test(single_tokens_run_before_prompts),
        cmocka_unit_test(prompts_keep_to_a_budget_while_others_generate),
        cmocka_unit_test(the_budget_of_prompts_follows_the_pace_of_steps),
        cmocka_unit_test(nobody_starves_in_a_batch_of_one),
        cmocka_unit_test(a_step_without_work_runs_nothing),
        cmocka_unit_test(two_engines_share_a_model),
        cmocka_unit_test(a_session_outlives_its_engine_only_to_be_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

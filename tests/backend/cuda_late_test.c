// SPDX-License-Identifier: MIT
// Late picks (engine/sched/late.h) on a GPU: texts with a grammar take part in every step, beside a text without one,
// and each is the text that its session gives alone. On the GPU of tests/emulator or, with FRIT_TEST_GPU=FOLDER, on the
// machine's.
#include "backend/gpu_engine.h"

enum { STREAMS = 3, TOKENS = 16, STEPS = TOKENS + 4 };

typedef struct stream {
    frit_sampler_options sampling;
    const char *regex;   // NULL: no grammar
    frit_session *session;
    frit_sampler *sampler;
    frit_token expected[TOKENS];
    bool is_ahead;
    int n, ended_at;   // the step that gave the last token
} stream;

static void begin(stream *s, frit_engine *engine, frit_token prompt)
{
    frit_grammar *grammar;
    const frit_grammar_options options = {.kind = FRIT_GRAMMAR_REGEX};
    assert_ok(frit_sampler_create(&s->sampler, 320, &s->sampling));
    if (s->regex) {
        assert_ok(frit_grammar_new(&grammar, engine->model, s->regex, strlen(s->regex), &options));
        assert_ok(frit_sampler_set_grammar(s->sampler, grammar));
        frit_grammar_free(grammar);
    }
    assert_ok(frit_session_new(&s->session, engine));
    assert_ok(frit_session_push(s->session, &prompt, 1, NULL));
}

static void end(stream *s)
{
    frit_session_free(s->session);
    frit_sampler_free(s->sampler);
    s->session = NULL;
}

static void take_and_go_on(stream *s, int step)
{
    static const frit_pick_options options = {.logprobs = true, .n_top = 1, .late = true};
    frit_picked picked;
    if (!s->session) return;
    if (frit_session_has_picked(s->session)) {
        assert_ok(frit_session_picked(s->session, &picked));
        assert_int_equal(picked.token, s->expected[s->n]);
        assert_int_equal(picked.n_top, s->n > 0);
        if (++s->n == TOKENS) {
            s->ended_at = step;
            end(s);
            return;
        }
        assert_ok(frit_sampler_accept(s->sampler, picked.token));
        if (!s->is_ahead) assert_ok(frit_session_push(s->session, &picked.token, 1, NULL));
        if (!s->is_ahead) assert_ok(frit_session_pick(s->session, s->sampler, &options));
        s->is_ahead = false;
    }
    if (!s->is_ahead) assert_ok(frit_session_pick_ahead(s->session, s->sampler, &options, &s->is_ahead));
}

static void texts_with_a_grammar_take_part_in_every_step(void **state)
{
    (void)state;
    require_gpu();
    stream streams[STREAMS] = {
        {.sampling = {.temp = 1, .seed = 4}},
        {.sampling = {.temp = 1, .seed = 5, .repeat_penalty = 1.2f}, .regex = "([a-f][g-m]){30}"},
        {.sampling = {.temp = 0}, .regex = "([0-9]{2}[a-c]){30}"}};
    frit_model *model = random_model(SMALL_LLAMA("32"));
    frit_engine *engine;
    const frit_engine_options options = {
        .n_ctx = 64, .n_threads = 2, .n_sessions = STREAMS, .device = "cuda", .deterministic = true};
    assert_ok(frit_engine_new(&engine, model, &options));
    for (int i = 0; i < STREAMS; i++) {
        begin(&streams[i], engine, 60 + i);
        for (int k = 0; k < TOKENS; k++)
            assert_ok(frit_session_next(streams[i].session, streams[i].sampler, &streams[i].expected[k]));
        end(&streams[i]);
    }
    for (int i = 0; i < STREAMS; i++) {
        begin(&streams[i], engine, 60 + i);
        assert_ok(frit_session_pick(streams[i].session, streams[i].sampler, NULL));
    }
    for (int step = 0; step < STEPS; step++) {
        assert_ok(frit_engine_advance(engine, NULL));
        for (int i = 0; i < STREAMS; i++) take_and_go_on(&streams[i], step);
    }
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(streams[i].n, TOKENS);
        assert_int_equal(streams[i].ended_at, streams[0].ended_at);
    }
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_with_a_grammar_take_part_in_every_step),
    };
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}

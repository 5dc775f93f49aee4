// SPDX-License-Identifier: MIT
// A serving loop of many sessions (frit_engine_advance, frit_session_pick_ahead, frit_session_stop), on the test device
// and on the CPU: each text is the one that its session gives alone, wherever other texts begin and end, whether or not
// it has a grammar, and however late its tokens are taken.
#include "support/support.h"

#include "engine/engine.h"
#include "support/test_device.h"
#include "support/tiny_model.h"

enum { SLOTS = 5, TEXTS = 40, LONGEST = 24, PROMPT = 9 };

static frit_engine *make_engine_of(test_device_kind kind, frit_engine_options options)
{
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    options.cpu = "reference";
    options.n_threads = 1;
    options.n_sessions = SLOTS;
    test_device_use(kind);
    assert_ok(frit_model_open(&model, tiny_model("advance.gguf", &(tiny_options){.n_layer = 4}), NULL));
    assert_ok(frit_engine_new(&engine, model, &options));
    frit_model_free(model);
    test_device_use(TEST_DEVICE_NONE);
    return engine;
}

static frit_engine *make_engine(test_device_kind kind)
{
    return make_engine_of(kind, (frit_engine_options){.n_batch = 16});
}

// ------------------------------------------------------------------------------- texts

typedef struct text {
    frit_token prompt[PROMPT];
    size_t n_prompt, n_wanted, n;   // n_wanted: fewer in a text that its grammar ends
    frit_sampler_options sampling;
    const char *regex;   // NULL: no grammar
    bool logprobs, speculates;
    frit_token expected[LONGEST];
    float logprob[LONGEST];   // of the tokens, with logprobs
} text;

static const char *const regexes[] = {NULL, NULL, "([a-f]{1,3}ghqr?){1,40}", "[a-c]{5}ab[k-m]", "(uvw|wvu)+"};

static const frit_sampler_options samplings[] = {
    {.temp = 0},
    {.temp = 1.5f, .top_p = 0.95f, .seed = 7},
    {.temp = 1, .repeat_penalty = 1.3f, .presence_penalty = 0.4f, .seed = 8},
    {.temp = 2, .top_k = 10, .samplers = "temperature;top_k", .seed = 9},   // steps do not run this chain
};

static void make_texts(text *texts, uint64_t seed)
{
    frit_rng rng;
    frit_rng_init(&rng, seed);
    for (int i = 0; i < TEXTS; i++) {
        text *t = &texts[i];
        *t = (text){.n_prompt = (size_t)random_between(&rng, 1, PROMPT),
                    .n_wanted = (size_t)random_between(&rng, 1, LONGEST)};
        for (size_t k = 0; k < t->n_prompt; k++) t->prompt[k] = (frit_token)random_between(&rng, 0, TINY_VOCAB - 1);
        t->sampling = samplings[random_between(&rng, 0, FRIT_COUNT(samplings) - 1)];
        t->sampling.seed += (uint64_t)i;
        t->regex = regexes[random_between(&rng, 0, FRIT_COUNT(regexes) - 1)];
        t->speculates = random_between(&rng, 0, 3) == 0;   // waits for the last token where drafts would follow it
        t->logprobs = !t->sampling.samplers && random_between(&rng, 0, 2) == 0;
    }
}

// engine: NULL for texts without a grammar.
static frit_sampler *make_sampler(const frit_engine *engine, const text *t)
{
    frit_sampler *sampler = NULL;
    frit_grammar *grammar = NULL;
    const frit_grammar_options options = {.kind = FRIT_GRAMMAR_REGEX};
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, &t->sampling));
    if (!t->regex) return sampler;
    assert_ok(frit_grammar_new(&grammar, engine->model, t->regex, strlen(t->regex), &options));
    assert_ok(frit_sampler_set_grammar(sampler, grammar));
    frit_grammar_free(grammar);
    return sampler;
}

static frit_pick_options pick_options(const text *t)
{
    return (frit_pick_options){.logprobs = t->logprobs, .n_top = t->logprobs ? 2 : 0, .late = true};
}

// The next token, with its log-probability.
static void pick_alone(frit_session *session, frit_sampler *sampler, text *t, size_t k)
{
    const frit_pick_options options = pick_options(t);
    frit_picked picked;
    assert_ok(frit_session_pick(session, sampler, &options));
    while (!frit_session_has_picked(session)) assert_ok(frit_engine_step(session->engine, NULL));
    assert_ok(frit_session_picked(session, &picked));
    assert_ok(frit_sampler_accept(sampler, picked.token));
    assert_ok(frit_session_push(session, &picked.token, 1, NULL));
    t->expected[k] = picked.token;
    t->logprob[k] = picked.logprob;
}

static void generate_alone(text *texts)
{
    frit_engine *engine = make_engine(TEST_DEVICE_NONE);
    for (int i = 0; i < TEXTS; i++) {
        frit_session *session = NULL;
        text *t = &texts[i];
        frit_sampler *sampler = make_sampler(engine, t);
        assert_ok(frit_session_new(&session, engine));
        assert_ok(frit_session_push(session, t->prompt, t->n_prompt, NULL));
        for (size_t k = 0; k < t->n_wanted; k++) {
            if (t->logprobs)
                pick_alone(session, sampler, t, k);
            else
                assert_ok(frit_session_next(session, sampler, &t->expected[k]));
            if (frit_sampler_is_over(sampler)) t->n_wanted = k + 1;
        }
        frit_sampler_free(sampler);
        frit_session_free(session);
    }
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- the loop

typedef struct slot {
    frit_session *session;
    frit_sampler *sampler;
    text *text;   // NULL: the slot is idle
    bool is_picking, is_ahead;
} slot;

typedef struct loop {
    frit_engine *engine;
    slot slots[SLOTS];
    text *next, *end;
    int n_ahead, n_most_in_flight;
    frit_rng rng;
    int n_divided;   // steps that left out a session that waited for nothing
} loop;

static void request_pick(slot *s)
{
    const frit_pick_options options = pick_options(s->text);
    s->is_picking = frit_session_pick(s->session, s->sampler, &options) == FRIT_OK;
}

static void begin_text(loop *l, slot *s)
{
    s->text = l->next++;
    const frit_speculate_options speculation = {.kind = s->text->speculates ? "ngram" : "none", .always = true};
    s->sampler = make_sampler(l->engine, s->text);
    s->is_ahead = false;
    assert_ok(frit_session_speculate(s->session, &speculation));
    assert_ok(frit_session_truncate(s->session, 0));
    assert_ok(frit_session_push(s->session, s->text->prompt, s->text->n_prompt, NULL));
    request_pick(s);
}

static void end_text(slot *s)
{
    assert_ok(frit_session_stop(s->session));
    assert_true(frit_session_pending(s->session) <= 1);   // only a token in flight
    frit_sampler_free(s->sampler);
    s->text = NULL;
}

static frit_token take_token(slot *s)
{
    frit_picked picked = {0};
    if (s->is_picking) {
        assert_ok(frit_session_picked(s->session, &picked));
        if (s->text->logprobs) assert_true(picked.logprob == s->text->logprob[s->text->n]);
        if (s->text->logprobs) assert_int_equal(picked.n_top, 2);
        return picked.token;
    }
    assert_ok(frit_sampler_set_position(s->sampler, frit_session_length(s->session)));
    assert_ok(frit_sampler_sample(s->sampler, frit_session_logits(s->session), &picked.token));
    return picked.token;
}

static void advance_text(slot *s)
{
    const frit_token token = take_token(s);
    assert_int_equal(token, s->text->expected[s->text->n]);
    assert_ok(frit_sampler_accept(s->sampler, token));
    if (++s->text->n == s->text->n_wanted) {
        end_text(s);
        return;
    }
    if (!s->is_ahead) {
        assert_ok(frit_session_push(s->session, &token, 1, NULL));
        request_pick(s);
    }
    s->is_ahead = false;
}

static void run_ahead(loop *l, slot *s)
{
    const frit_pick_options options = pick_options(s->text);
    assert_ok(frit_session_complete_pick(s->session, s->sampler));
    // Now and then a text takes part in every second step.
    if (random_between(&l->rng, 0, 20) > 0)
        assert_ok(frit_session_pick_ahead(s->session, s->sampler, &options, &s->is_ahead));
}

static void run_iteration(loop *l)
{
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &l->slots[i];
        const bool is_slow = random_between(&l->rng, 0, 8) == 0;   // its token is taken later
        if (s->text && !is_slow &&
            (s->is_picking ? frit_session_has_picked(s->session) : frit_session_pending(s->session) == 0))
            advance_text(s);
        if (!s->text && l->next < l->end && frit_session_pending(s->session) == 0) begin_text(l, s);
        if (s->text && s->is_picking && !s->is_ahead) run_ahead(l, s);
        l->n_ahead += s->text && s->is_ahead;
    }
    int32_t n_rows;
    assert_ok(frit_engine_advance(l->engine, &n_rows));
    for (int i = 0; i < SLOTS; i++) {
        const frit_session *s = l->slots[i].session;
        l->n_divided += n_rows > 0 && frit_session_pending(s) > s->n_flying && s->n_done > 0;
    }
    const int n_in_flight = (int)(l->engine->flights.n_submitted - l->engine->flights.n_completed);
    if (n_in_flight > l->n_most_in_flight) l->n_most_in_flight = n_in_flight;
}

static bool is_done(const loop *l)
{
    bool is = l->next == l->end;
    for (int i = 0; i < SLOTS; i++) is = is && !l->slots[i].text && frit_session_pending(l->slots[i].session) == 0;
    return is;
}

static void texts_are_what_they_are_alone(void **state)
{
    (void)state;
    static const struct {
        test_device_kind kind;
        const char *device;
        int n_in_flight;   // after a call
        bool runs_ahead, divides;
    } rows[] = {{TEST_DEVICE_ALONE, NULL, 1, true, false},         {TEST_DEVICE_LAYERS, NULL, 0, false, false},
                {TEST_DEVICE_NONE, NULL, 0, false, false},         {TEST_DEVICE_ALONE, "test:0-1", 1, false, true},
                {TEST_DEVICE_ALONE, "test:0,2,1", 2, false, true}, {TEST_DEVICE_NONE, "cpu:0-1", 0, false, false}};
    for (size_t d = 0; d < FRIT_COUNT(rows); d++) {
        text texts[TEXTS];
        make_texts(texts, 11 + d);
        generate_alone(texts);
        const frit_engine_options options = {.n_batch = 16, .device = rows[d].device, .split = "layer"};
        loop l = {.engine = make_engine_of(rows[d].kind, options), .next = texts, .end = texts + TEXTS};
        const size_t n_late = test_device_n_late();
        frit_rng_init(&l.rng, 3 + d);
        for (int i = 0; i < SLOTS; i++) assert_ok(frit_session_new(&l.slots[i].session, l.engine));
        for (int n = 0; !is_done(&l); n++) {
            assert_true(n < 2 * TEXTS * (LONGEST + PROMPT));   // it comes to an end
            run_iteration(&l);
        }
        for (int i = 0; i < TEXTS; i++) assert_int_equal(texts[i].n, texts[i].n_wanted);
        assert_int_equal(l.n_most_in_flight, rows[d].n_in_flight);
        assert_int_equal(l.n_ahead > 0, rows[d].runs_ahead);
        if (rows[d].divides) assert_true(l.n_divided > 0);
        assert_int_equal(test_device_n_late() - n_late > TEXTS, rows[d].runs_ahead);
        for (int i = 0; i < SLOTS; i++) frit_session_free(l.slots[i].session);
        frit_engine_free(l.engine);
    }
}

// ------------------------------------------------------------------------------- single calls

// A session with a pick in flight, alone.
static frit_session *begin_picking(frit_engine *engine, frit_sampler *sampler)
{
    const frit_token prompt[] = {3, 24, 43};
    frit_session *session = NULL;
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, prompt, FRIT_COUNT(prompt), NULL));
    assert_ok(frit_session_pick(session, sampler, NULL));
    assert_ok(frit_engine_advance(engine, NULL));   // returns with the step in flight
    return session;
}

static void stopping_waits_for_nothing(void **state)
{
    (void)state;
    frit_engine *engine = make_engine(TEST_DEVICE_ALONE);
    frit_sampler *sampler = make_sampler(NULL, &(text){0});
    frit_session *session = begin_picking(engine, sampler);
    bool is_ahead = false;
    frit_picked picked;
    assert_false(frit_session_has_picked(session));
    assert_ok(frit_session_pick_ahead(session, sampler, NULL, &is_ahead));
    assert_true(is_ahead);
    assert_ok(frit_session_pick_ahead(session, sampler, NULL, &is_ahead));
    assert_false(is_ahead);   // two picks wait already
    assert_int_equal(frit_session_length(session), 4);
    assert_ok(frit_session_stop(session));
    assert_int_equal(engine->flights.n_completed, 0);
    assert_int_equal(frit_session_length(session), 3);    // the token that nobody knows was in no step
    assert_int_equal(frit_session_pending(session), 3);   // in flight
    assert_fails(frit_session_picked(session, &picked), FRIT_E_INVALID, "no pick");
    assert_ok(frit_engine_advance(engine, NULL));
    assert_int_equal(frit_session_pending(session), 0);
    assert_ok(frit_session_truncate(session, 0));
    frit_session_free(session);
    frit_sampler_free(sampler);
    frit_engine_free(engine);
}

static void stopping_waits_for_tokens_that_are_not_known(void **state)
{
    (void)state;
    frit_engine *engine = make_engine(TEST_DEVICE_ALONE);
    frit_sampler *sampler = make_sampler(NULL, &(text){0});
    frit_session *session = begin_picking(engine, sampler);
    bool is_ahead = false;
    assert_ok(frit_session_pick_ahead(session, sampler, NULL, &is_ahead));
    assert_ok(frit_engine_submit(engine, NULL, NULL));   // both steps are in flight
    assert_int_equal(frit_session_tokens(session)[3], -1);
    assert_ok(frit_session_stop(session));
    assert_int_equal(frit_session_length(session), 4);
    assert_true(frit_session_tokens(session)[3] >= 0);
    frit_session_free(session);
    frit_sampler_free(sampler);
    frit_engine_free(engine);
}

// A mask for the beginning of a text would be that of the token before.
static void a_forced_beginning_needs_known_tokens(void **state)
{
    (void)state;
    frit_engine *engine = make_engine(TEST_DEVICE_ALONE);
    frit_sampler *sampler = make_sampler(NULL, &(text){0}), *forcing = make_sampler(NULL, &(text){0});
    frit_session *session = begin_picking(engine, sampler);
    bool is_ahead = true;
    forcing->forced_left = frit_str_of("a");
    assert_ok(frit_session_pick_ahead(session, forcing, NULL, &is_ahead));
    assert_false(is_ahead);
    assert_ok(frit_session_push_picked(session));
    assert_fails(frit_session_pick(session, forcing, NULL), FRIT_E_UNSUPPORTED, "forces the beginning");
    forcing->forced_left = (frit_str){0};
    frit_session_free(session);
    frit_sampler_free(sampler);
    frit_sampler_free(forcing);
    frit_engine_free(engine);
}

typedef struct stream {   // two tokens of a session at most are in flight
    frit_session *session;
    frit_sampler *sampler;
    bool is_ahead;
    int n;
} stream;

static void take_and_go_on(stream *s)
{
    static const frit_pick_options options = {.late = true};
    frit_picked picked;
    if (frit_session_has_picked(s->session)) {
        assert_ok(frit_session_picked(s->session, &picked));
        assert_ok(frit_sampler_accept(s->sampler, picked.token));
        if (!s->is_ahead) assert_ok(frit_session_push(s->session, &picked.token, 1, NULL));
        if (!s->is_ahead) assert_ok(frit_session_pick(s->session, s->sampler, &options));
        s->is_ahead = false;
        s->n++;
    }
    if (!s->is_ahead) assert_ok(frit_session_pick_ahead(s->session, s->sampler, &options, &s->is_ahead));
}

static void a_grammar_takes_part_in_every_step(void **state)
{
    (void)state;
    enum { STEPS = 40 };
    frit_engine *engine = make_engine(TEST_DEVICE_ALONE);
    const text free_text = {.sampling = {.temp = 1, .seed = 4}},
               bound = {.sampling = {.temp = 1, .seed = 5, .repeat_penalty = 1.2f}, .regex = "([a-f][g-m]){30}"};
    stream streams[] = {{.sampler = make_sampler(engine, &free_text)}, {.sampler = make_sampler(engine, &bound)}};
    for (size_t i = 0; i < FRIT_COUNT(streams); i++) {
        assert_ok(frit_session_new(&streams[i].session, engine));
        assert_ok(frit_session_push(streams[i].session, &(frit_token){7}, 1, NULL));
        assert_ok(frit_session_pick(streams[i].session, streams[i].sampler, NULL));
    }
    for (int n = 0; n < STEPS; n++) {
        assert_ok(frit_engine_advance(engine, NULL));
        for (size_t i = 0; i < FRIT_COUNT(streams); i++) take_and_go_on(&streams[i]);
    }
    for (size_t i = 0; i < FRIT_COUNT(streams); i++) {
        assert_true(streams[i].n >= STEPS - 2);
        frit_session_free(streams[i].session);
        frit_sampler_free(streams[i].sampler);
    }
    frit_engine_free(engine);
}

// A late pick is made after the token before it was taken, or never.
static void a_late_pick_waits_for_its_token(void **state)
{
    (void)state;
    frit_engine *engine = make_engine(TEST_DEVICE_ALONE);
    frit_sampler *sampler = make_sampler(engine, &(text){.regex = "([a-f][g-m]){30}"});
    frit_session *session = begin_picking(engine, sampler);
    frit_picked picked;
    bool is_ahead = true;
    assert_ok(frit_session_pick_ahead(session, sampler, NULL, &is_ahead));
    assert_false(is_ahead);
    assert_ok(frit_session_pick_ahead(session, sampler, &(frit_pick_options){.late = true}, &is_ahead));
    assert_true(is_ahead);
    assert_fails(frit_session_complete_pick(session, sampler), FRIT_E_INVALID, "the token before");
    assert_ok(frit_engine_advance(engine, NULL));
    assert_ok(frit_session_picked(session, &picked));
    assert_ok(frit_sampler_accept(sampler, picked.token));
    assert_fails(frit_session_push_picked(session), FRIT_E_INVALID, "complete_pick");
    assert_ok(frit_engine_wait(engine, engine->flights.n_submitted));   // the step is over, its logits are there
    assert_false(frit_session_has_picked(session));
    assert_ok(frit_session_complete_pick(session, sampler));
    assert_ok(frit_session_complete_pick(session, sampler));   // nothing to do
    assert_false(frit_session_has_picked(session));
    const size_t n_runs = test_device_n_runs();
    assert_ok(frit_engine_advance(engine, NULL));
    assert_true(frit_session_has_picked(session));
    assert_int_equal(test_device_n_runs(), n_runs);
    assert_ok(frit_session_picked(session, &picked));
    assert_ok(frit_sampler_accept(sampler, picked.token));
    frit_session_free(session);
    frit_sampler_free(sampler);
    frit_engine_free(engine);
}

// Forgetting the tokens of a session does not wait for the steps of others.
static void truncating_waits_for_the_own_steps(void **state)
{
    (void)state;
    frit_engine *engine = make_engine(TEST_DEVICE_ALONE);
    frit_sampler *sampler = make_sampler(NULL, &(text){0});
    frit_session *other = begin_picking(engine, sampler);
    assert_ok(frit_engine_advance(engine, NULL));
    assert_ok(frit_session_truncate(other, 0));
    frit_session *session = begin_picking(engine, sampler);
    assert_ok(frit_session_push(other, &(frit_token){5}, 1, NULL));
    assert_ok(frit_session_truncate(other, 0));
    assert_int_equal(engine->flights.n_submitted - engine->flights.n_completed, 1);
    assert_ok(frit_session_truncate(session, 0));
    assert_int_equal(engine->flights.n_submitted - engine->flights.n_completed, 0);
    frit_session_free(other);
    frit_session_free(session);
    frit_sampler_free(sampler);
    frit_engine_free(engine);
}

// The row classes of a device on which no layer is do not divide the steps of the others.
static void row_classes_are_those_of_devices_with_layers(void **state)
{
    (void)state;
    test_device_set_traits((test_device_traits){.least_prefill = 16});
    frit_engine *engine = make_engine_of(TEST_DEVICE_ALONE, (frit_engine_options){.n_batch = 64});
    assert_int_equal(engine->rows.least[FRIT_ROWS_PREFILL], 16);
    frit_engine_free(engine);
    engine = make_engine_of(TEST_DEVICE_ALONE, (frit_engine_options){.n_batch = 64, .gpu_layers = "0"});
    assert_int_equal(engine->rows.least[FRIT_ROWS_PREFILL], INT32_MAX);
    frit_engine_free(engine);
    test_device_set_traits((test_device_traits){0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_what_they_are_alone),
        cmocka_unit_test(stopping_waits_for_nothing),
        cmocka_unit_test(stopping_waits_for_tokens_that_are_not_known),
        cmocka_unit_test(a_forced_beginning_needs_known_tokens),
        cmocka_unit_test(a_grammar_takes_part_in_every_step),
        cmocka_unit_test(a_late_pick_waits_for_its_token),
        cmocka_unit_test(truncating_waits_for_the_own_steps),
        cmocka_unit_test(row_classes_are_those_of_devices_with_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

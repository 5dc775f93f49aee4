// SPDX-License-Identifier: MIT
// Layers for multi-token prediction: their results against the definition in plain C, and drafts by them.
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"
#include "engine/spec/distribution.h"
#include "engine/spec/speculate.h"

#include <math.h>

enum { N_EMBD = 32, N_HEAD = 4, N_KV = 2, DIM = 8, N_FF = 48, N = 14, N_TEXT = 40, N_PROMPT = 20 };

// Engines of the model, and of its layer for multi-token prediction.
static void make_both(const tiny_options *tiny, const frit_engine_options *options, frit_engine **engine,
                      frit_engine **next)
{
    frit_model *model = load_tiny(tiny), *layer = NULL;
    assert_ok(frit_model_open_next(&layer, model));
    *engine = make_engine(model, *options);
    *next = make_engine(layer, *options);
    frit_model_free(model);
    frit_model_free(layer);
}

static void run(frit_session *session)
{
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(session->engine, NULL));
    assert_ok(frit_session_status(session));
}

// ------------------------------------------------------------------------------- the definition

static const float *weight(const frit_model *model, const char *name)
{
    const frit_tensor *tensor = frit_checkpoint_find(model->ckpt, name);
    assert_non_null(tensor);
    return tensor->data;
}

static const float *of_layer(const frit_model *model, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "blk.2.%s.weight", part);
    return weight(model, name);
}

static void norm(double *y, const double *x, const float *w)
{
    double sum = 0;
    for (int i = 0; i < N_EMBD; i++) sum += x[i] * x[i];
    for (int i = 0; i < N_EMBD; i++) y[i] = x[i] / sqrt(sum / N_EMBD + 1e-5) * w[i];
}

static void multiply(double *y, const float *w, const double *x, int n_out, int n_in)
{
    for (int o = 0; o < n_out; o++) {
        y[o] = 0;
        for (int i = 0; i < n_in; i++) y[o] += w[o * n_in + i] * x[i];
    }
}

static void rotate(double *x, int n_head, int position)
{
    for (int h = 0; h < n_head; h++)
        for (int i = 0; i < DIM / 2; i++) {
            double *a = &x[h * DIM + 2 * i], *b = a + 1;
            const double angle = position * pow(10000, -2.0 * i / DIM), c = cos(angle), s = sin(angle), before = *a;
            *a = before * c - *b * s;
            *b = before * s + *b * c;
        }
}

typedef struct definition {
    const frit_model *model;
    double k[N + 1][N_KV * DIM], v[N + 1][N_KV * DIM];
    double hidden[N_EMBD];   // after the norm, at the last position
    double logits[TINY_VOCAB];
} definition;

static void attend(const definition *d, const double *q, int position, double *y)
{
    for (int h = 0; h < N_HEAD; h++) {
        double scores[N + 1], sum = 0;
        const int kv = h / (N_HEAD / N_KV) * DIM;
        for (int p = 0; p <= position; p++) {
            scores[p] = 0;
            for (int i = 0; i < DIM; i++) scores[p] += q[h * DIM + i] * d->k[p][kv + i] / sqrt(DIM);
            sum += scores[p] = exp(scores[p]);
        }
        for (int i = 0; i < DIM; i++) {
            y[h * DIM + i] = 0;
            for (int p = 0; p <= position; p++) y[h * DIM + i] += scores[p] / sum * d->v[p][kv + i];
        }
    }
}

// Computes position i of the layer: `token` is token i + 1 of the text, `hidden` the state of token i.
static void predict(definition *d, int i, frit_token token, const double *hidden, bool is_tied)
{
    const frit_model *m = d->model;
    double e[N_EMBD], both[2 * N_EMBD], x[N_EMBD], a[N_EMBD], q[N_EMBD], y[N_EMBD], gate[N_FF], up[N_FF];
    const float *table = is_tied ? weight(m, "token_embd.weight") : of_layer(m, "nextn.embed_tokens");
    for (int k = 0; k < N_EMBD; k++) e[k] = table[token * N_EMBD + k];
    norm(both, e, of_layer(m, "nextn.enorm"));
    norm(both + N_EMBD, hidden, of_layer(m, "nextn.hnorm"));
    multiply(x, of_layer(m, "nextn.eh_proj"), both, N_EMBD, 2 * N_EMBD);
    norm(a, x, of_layer(m, "attn_norm"));
    multiply(q, of_layer(m, "attn_q"), a, N_EMBD, N_EMBD);
    multiply(d->k[i], of_layer(m, "attn_k"), a, N_KV * DIM, N_EMBD);
    multiply(d->v[i], of_layer(m, "attn_v"), a, N_KV * DIM, N_EMBD);
    rotate(q, N_HEAD, i);
    rotate(d->k[i], N_KV, i);
    attend(d, q, i, y);
    multiply(a, of_layer(m, "attn_output"), y, N_EMBD, N_EMBD);
    for (int k = 0; k < N_EMBD; k++) x[k] += a[k];
    norm(a, x, of_layer(m, "ffn_norm"));
    multiply(gate, of_layer(m, "ffn_gate"), a, N_FF, N_EMBD);
    multiply(up, of_layer(m, "ffn_up"), a, N_FF, N_EMBD);
    for (int k = 0; k < N_FF; k++) up[k] *= gate[k] / (1 + exp(-gate[k]));
    multiply(y, of_layer(m, "ffn_down"), up, N_EMBD, N_FF);
    for (int k = 0; k < N_EMBD; k++) x[k] += y[k];
    norm(d->hidden, x, is_tied ? weight(m, "output_norm.weight") : of_layer(m, "nextn.shared_head_norm"));
    multiply(d->logits, is_tied ? weight(m, "output.weight") : of_layer(m, "nextn.shared_head_head"), d->hidden,
             TINY_VOCAB, N_EMBD);
}

typedef struct rows {
    float values[N][TINY_VOCAB];
} rows;

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    memcpy(((rows *)ctx)->values[i], values, n * sizeof *values);
}

static void assert_near(const float *found, const double *expected, double tolerance)
{
    for (int i = 0; i < TINY_VOCAB; i++)
        if (!(fabs(found[i] - expected[i]) < tolerance))
            fail_msg("logit %d: %g, expected %g", i, (double)found[i], expected[i]);
}

static void check_definition(const tiny_options *tiny, const frit_engine_options *options, double tolerance)
{
    const bool is_tied = tiny->next == TINY_NEXT_TIED;
    frit_engine *engine, *next;
    frit_session *states, *text, *layer;
    frit_token tokens[N];
    static rows hidden, logits;
    static definition d;
    make_both(tiny, options, &engine, &next);
    for (int i = 0; i < N; i++) tokens[i] = 4 + (i * i + 3 * i) % 50;
    assert_ok(frit_session_new(&states, engine));
    assert_ok(
        frit_session_push(states, tokens, N,
                          &(frit_push_options){.output = FRIT_OUTPUT_EMBEDDINGS, .row = keep_row, .row_ctx = &hidden}));
    run(states);
    assert_ok(frit_session_new(&text, engine));
    assert_ok(frit_hidden_acquire(text));
    assert_ok(frit_session_push(text, tokens, N, NULL));
    run(text);
    assert_ok(frit_session_new(&layer, next));
    assert_ok(frit_hidden_acquire(layer));
    layer->mtp = (frit_mtp_text){.of = text, .base = 0, .n_true = N - 1};
    const frit_push_options all = {.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = &logits};
    assert_ok(frit_session_push(layer, tokens + 1, N - 1, &all));
    run(layer);
    d = (definition){.model = engine->model};
    for (int i = 0; i + 1 < N; i++) {
        double state[N_EMBD];
        for (int k = 0; k < N_EMBD; k++) state[k] = hidden.values[i][k];
        predict(&d, i, tokens[i + 1], state, is_tied);
        assert_near(logits.values[i], d.logits, tolerance);
    }
    assert_ok(frit_session_push(layer, &tokens[3], 1, NULL));   // continues with its own states
    run(layer);
    double state[N_EMBD];
    memcpy(state, d.hidden, sizeof state);
    predict(&d, N - 1, tokens[3], state, is_tied);
    assert_near(frit_session_logits(layer), d.logits, tolerance);
    frit_session_free(layer);
    frit_session_free(text);
    frit_session_free(states);
    frit_engine_free(next);
    frit_engine_free(engine);
}

static void the_layer_computes_what_its_definition_says(void **state)
{
    (void)state;
    const tiny_options own = {.next = TINY_NEXT}, tied = {.next = TINY_NEXT_TIED, .seed = 5};
    check_definition(&own, &(frit_engine_options){.cpu = "reference"}, 1e-4);
    check_definition(&tied, &(frit_engine_options){.cpu = "reference"}, 1e-4);
    check_definition(&own, &(frit_engine_options){.n_threads = 2, .n_batch = 5}, 0.02);   // keys in f16
    check_definition(&own, &(frit_engine_options){.no_fuse = true}, 0.02);
}

// ------------------------------------------------------------------------------- drafts

static frit_session *begin(frit_engine *engine, const frit_speculate_options *speculate, int seed)
{
    frit_session *session;
    frit_token prompt[N_PROMPT];
    assert_ok(frit_session_new(&session, engine));
    if (speculate) assert_ok(frit_session_speculate(session, speculate));
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = 5 + (i * i + seed) % 7;
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
    return session;
}

static void generate(frit_session *session, const frit_sampler_options *options, size_t at_once, frit_token *tokens)
{
    frit_sampler *sampler;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, options));
    for (size_t n = 0, n_more = 0; n < N_TEXT; n += n_more) {
        const size_t room = N_TEXT - n < at_once ? N_TEXT - n : at_once;
        assert_ok(frit_session_next_tokens(session, sampler, tokens + n, room, &n_more));
        assert_true(n_more >= 1 && n_more <= room);
    }
    frit_sampler_free(sampler);
}

static void drafts_by_the_layer_do_not_change_the_text(void **state)
{
    (void)state;
    static const frit_engine_options engines[] = {
        {.cpu = "reference", .n_sessions = 4}, {.n_sessions = 4, .n_threads = 2}, {.n_sessions = 4, .n_batch = 7}};
    static const frit_sampler_options samplers[] = {
        {.temp = 0}, {.temp = 0.7f, .top_k = 8, .seed = 3}, {.temp = 0, .repeat_penalty = 1.1f, .repeat_last_n = 16}};
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        frit_engine *engine, *next;
        make_both(&(tiny_options){.next = e % 2 ? TINY_NEXT : TINY_NEXT_TIED}, &engines[e], &engine, &next);
        for (size_t k = 0; k < FRIT_COUNT(samplers); k++) {
            const frit_speculate_options speculate = {.kind = "mtp", .draft = next, .always = true, .max_drafts = 3};
            frit_token plain[N_TEXT], drafted[N_TEXT];
            frit_speculation_info info;
            frit_session *a = begin(engine, NULL, (int)k), *b = begin(engine, &speculate, (int)k), *fork;
            generate(a, &samplers[k], 1, plain);
            generate(b, &samplers[k], 16, drafted);
            assert_memory_equal(plain, drafted, sizeof plain);
            assert_ok(frit_session_get_speculation(b, &info));
            assert_true(info.n_drafted > N_TEXT / 2 && info.n_accepted <= info.n_drafted);
            assert_ok(frit_session_truncate(b, N_PROMPT / 2));   // another text from this position on
            assert_ok(frit_session_truncate(a, N_PROMPT / 2));
            assert_ok(frit_session_push(a, (frit_token[]){9, 8, 7}, 3, NULL));
            assert_ok(frit_session_push(b, (frit_token[]){9, 8, 7}, 3, NULL));
            assert_ok(frit_session_fork(&fork, b));
            generate(a, &samplers[k], 1, plain);
            generate(b, &samplers[k], 5, drafted);
            assert_memory_equal(plain, drafted, sizeof plain);
            generate(fork, &samplers[k], 16, drafted);
            assert_memory_equal(plain, drafted, sizeof plain);
            frit_session_free(fork);
            frit_session_free(b);
            frit_session_free(a);
        }
        frit_engine_free(next);
        frit_engine_free(engine);
    }
}

// A model whose next token depends on the last one: the layer predicts it exactly.
static void drafts_of_a_layer_that_is_right_are_accepted(void **state)
{
    (void)state;
    frit_engine *engine, *next;
    const tiny_options tiny = {.next = TINY_NEXT_TIED, .chain = true, .seed = 2};
    make_both(&tiny, &(frit_engine_options){.n_sessions = 2}, &engine, &next);
    const frit_speculate_options speculate = {.kind = "mtp", .draft = next, .always = true, .max_drafts = 4};
    frit_token plain[N_TEXT], drafted[N_TEXT];
    frit_speculation_info info;
    frit_session *a = begin(engine, NULL, 0), *b = begin(engine, &speculate, 0);
    generate(a, &(frit_sampler_options){.temp = 0}, 1, plain);
    const uint64_t n_before = engine->flights.n_submitted;
    generate(b, &(frit_sampler_options){.temp = 0}, 16, drafted);
    assert_memory_equal(plain, drafted, sizeof plain);
    assert_true(engine->flights.n_submitted - n_before < N_TEXT / 3);
    assert_ok(frit_session_get_speculation(b, &info));
    assert_true(info.n_drafted >= N_TEXT / 2);
    assert_int_equal(info.n_accepted, info.n_drafted);
    frit_session_free(a);
    frit_session_free(b);
    frit_engine_free(next);
    frit_engine_free(engine);
}

// The layer has the model's distribution, so it is right with sampling too if it draws with the same random numbers.
// This holds too where it begins within the text, because older hidden states are missing, and after tokens left the
// text.
static void drafts_by_the_layer_leave_the_distribution_as_it_is(void **state)
{
    (void)state;
    frit_engine *engine, *next;
    make_both(&(tiny_options){.next = TINY_NEXT_TIED}, &(frit_engine_options){.n_threads = 1}, &engine, &next);
    expect_distribution(engine, &(frit_speculate_options){.kind = "mtp", .draft = next});
    frit_engine_free(next);
    frit_engine_free(engine);
}

static void drafts_are_drawn_with_the_random_numbers_of_their_places(void **state)
{
    (void)state;
    enum { LONG = 110, N_BATCH = 8 };
    static const struct {
        size_t n_prompt;
        bool shifts;
    } cases[] = {{N_PROMPT, false}, {LONG, false}, {LONG, true}};
    const tiny_options tiny = {.next = TINY_NEXT_TIED, .chain = true, .seed = 2};
    const frit_sampler_options samplers[] = {{.temp = 0.8f, .seed = 5}, {.temp = 1.5f, .top_k = 20, .seed = 6}};
    for (size_t c = 0; c < FRIT_COUNT(cases); c++) {
        frit_engine *engine, *next;
        const int32_t n_ctx = cases[c].shifts ? 128 : TINY_CTX;
        make_both(&tiny, &(frit_engine_options){.n_sessions = 2, .n_batch = N_BATCH, .n_ctx = n_ctx}, &engine, &next);
        const frit_speculate_options speculate = {.kind = "mtp", .draft = next, .always = true, .max_drafts = 4};
        for (size_t k = 0; k < FRIT_COUNT(samplers); k++) {
            frit_token prompt[LONG], plain[N_TEXT], drafted[N_TEXT];
            frit_speculation_info info;
            frit_session *a = begin(engine, NULL, 0), *b = begin(engine, &speculate, 0);
            for (int i = 0; i < LONG; i++) prompt[i] = 5 + (i * i) % 11;
            const size_t n_more = cases[c].n_prompt - N_PROMPT;
            if (n_more > 0) assert_ok(frit_session_push(a, prompt, n_more, NULL));
            if (n_more > 0) assert_ok(frit_session_push(b, prompt, n_more, NULL));
            if (cases[c].shifts) assert_ok(frit_session_set_shift(a, &(frit_shift_options){.n_drop = 32}));
            if (cases[c].shifts) assert_ok(frit_session_set_shift(b, &(frit_shift_options){.n_drop = 32}));
            generate(a, &samplers[k], 1, plain);
            generate(b, &samplers[k], 16, drafted);
            assert_memory_equal(plain, drafted, sizeof plain);
            assert_ok(frit_session_get_speculation(b, &info));
            print_message("%zu tokens, shift %d: %d of %d drafts right\n", cases[c].n_prompt, cases[c].shifts,
                          (int)info.n_accepted, (int)info.n_drafted);
            assert_true(info.n_drafted >= N_TEXT / 2);
            assert_true(info.n_accepted * 20 >= info.n_drafted * 19);   // its logits are rounded differently
            frit_session_free(a);
            frit_session_free(b);
        }
        frit_engine_free(next);
        frit_engine_free(engine);
    }
}

// Stored hidden states move with their tokens. Hits are counted for a layer that predicts well and reads these states.
static void drafts_go_on_after_a_context_shift(void **state)
{
    (void)state;
    static const tiny_options tinies[] = {{.next = TINY_NEXT_TIED, .chain = true, .seed = 2}, {.next = TINY_NEXT}};
    for (size_t t = 0; t < FRIT_COUNT(tinies); t++) {
        frit_engine *engine, *next;
        make_both(&tinies[t], &(frit_engine_options){.n_sessions = 2, .n_ctx = 128}, &engine, &next);
        const frit_speculate_options speculate = {.kind = "mtp", .draft = next, .always = true, .max_drafts = 4};
        frit_session *a = begin(engine, NULL, 0), *b = begin(engine, &speculate, 0);
        frit_speculation_info info;
        frit_shift_info shift;
        assert_ok(frit_session_set_shift(a, &(frit_shift_options){.n_drop = 32}));
        assert_ok(frit_session_set_shift(b, &(frit_shift_options){.n_drop = 32}));
        for (int i = 0; i < 6; i++) {
            frit_token plain[N_TEXT], drafted[N_TEXT];
            generate(a, &(frit_sampler_options){.temp = 0}, 1, plain);
            generate(b, &(frit_sampler_options){.temp = 0}, 16, drafted);
            assert_memory_equal(plain, drafted, sizeof plain);
            assert_int_equal(b->n_tokens, a->n_tokens);
            // All tokens of the last page except the last have run, so their states are stored.
            assert_non_null(frit_hidden_row(b->hidden, b->n_tokens - 2));
            assert_true(b->hidden->first + b->hidden->n <= b->n_tokens);
        }
        assert_ok(frit_session_get_shift(b, &shift));
        assert_true(shift.n_dropped >= 96);
        assert_ok(frit_session_get_speculation(b, &info));
        assert_true(info.n_drafted >= N_TEXT * 2);
        if (tinies[t].chain) assert_int_equal(info.n_accepted, info.n_drafted);
        frit_session_free(a);
        frit_session_free(b);
        frit_engine_free(next);
        frit_engine_free(engine);
    }
}

static void sessions_draft_together_and_may_stop(void **state)
{
    (void)state;
    enum { MANY = 3 };
    frit_engine *engine, *next;
    const tiny_options tiny = {.next = TINY_NEXT_TIED, .chain = true, .seed = 2};
    make_both(&tiny, &(frit_engine_options){.n_sessions = MANY}, &engine, &next);
    const frit_speculate_options speculate = {.kind = "mtp", .draft = next, .always = true, .max_drafts = 2};
    frit_session *sessions[MANY];
    frit_sampler *sampler;
    frit_draft_item items[MANY] = {{0}};
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, &(frit_sampler_options){.temp = 0}));
    for (int i = 0; i < MANY; i++) {
        sessions[i] = begin(engine, &speculate, 7 * i);   // the same text
        assert_ok(frit_session_pick(sessions[i], sampler, NULL));
        items[i] = (frit_draft_item){.session = sessions[i], .sampler = sampler, .max_drafts = 2};
    }
    for (int i = 0; i < MANY; i++) run(sessions[i]);
    for (int i = 0; i < MANY; i++) {
        frit_picked picked;
        assert_ok(frit_session_picked(sessions[i], &picked));
        assert_ok(frit_session_push(sessions[i], &picked.token, 1, NULL));
    }
    uint64_t n_steps = 0;
    for (int k = 0; k < 4; k++) {   // the layer runs prompts in chunks
        for (int i = 0; i < MANY; i++) assert_ok(frit_session_truncate(sessions[i], N_PROMPT + 1));
        n_steps = next->flights.n_submitted;
        assert_ok(frit_sessions_draft(items, MANY));
        n_steps = next->flights.n_submitted - n_steps;
    }
    for (int i = 0; i < MANY; i++) assert_int_equal(items[i].n_drafts, 2);
    assert_int_equal(n_steps, 2);   // one for each round
    assert_non_null(sessions[0]->hidden);
    assert_ok(frit_session_truncate(sessions[0], N_PROMPT));
    assert_ok(frit_session_speculate(sessions[0], &(frit_speculate_options){.kind = "none"}));
    assert_null(sessions[0]->hidden);   // later steps give only logits
    for (int i = 0; i < MANY; i++) frit_session_free(sessions[i]);
    frit_sampler_free(sampler);
    frit_engine_free(next);
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- what is refused

static void a_file_without_the_whole_layer_runs_without_it(void **state)
{
    (void)state;
    static const char *const parts[] = {"nextn.eh_proj", "nextn.hnorm", "attn_k", "ffn_norm"};
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
        char name[64];
        frit_model *next;
        snprintf(name, sizeof name, "blk.2.%s.weight", parts[i]);
        frit_model *model = load_tiny(&(tiny_options){.next = TINY_NEXT, .without = name});
        assert_fails(frit_model_open_next(&next, model), FRIT_E_UNSUPPORTED, name);
        assert_null(next);
        frit_engine *engine = make_engine(model, (frit_engine_options){0});
        frit_session *session = begin(engine, NULL, 0);
        run(session);
        frit_session_free(session);
        frit_engine_free(engine);
        frit_model_free(model);
    }
    frit_model *next,
        *model = load_tiny(&(tiny_options){.next = TINY_NEXT, .transposed = "blk.2.nextn.eh_proj.weight"});
    assert_fails(frit_model_open_next(&next, model), FRIT_E_UNSUPPORTED, "[32, 64]");
    frit_model_free(model);
    model = load_tiny(&(tiny_options){0});
    assert_fails(frit_model_open_next(&next, model), FRIT_E_UNSUPPORTED, "nextn_predict_layers");
    frit_model_free(model);
}

static void the_layer_of_another_model_is_refused(void **state)
{
    (void)state;
    frit_engine *engine, *next, *other, *other_next;
    const tiny_options tiny = {.next = TINY_NEXT};
    make_both(&tiny, &(frit_engine_options){.n_sessions = 2}, &engine, &next);
    make_both(&tiny, &(frit_engine_options){.n_sessions = 2}, &other, &other_next);
    frit_session *session = begin(engine, NULL, 0);
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.kind = "mtp"}), FRIT_E_INVALID, "layer");
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.kind = "mtp", .draft = other}),
                 FRIT_E_INVALID, "layer");
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.kind = "mtp", .draft = other_next}),
                 FRIT_E_INVALID, "that model alone");
    frit_session_free(session);
    frit_engine_free(other_next);
    frit_engine_free(other);
    frit_engine_free(next);
    frit_engine_free(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layer_computes_what_its_definition_says),
        cmocka_unit_test(drafts_by_the_layer_do_not_change_the_text),
        cmocka_unit_test(drafts_of_a_layer_that_is_right_are_accepted),
        cmocka_unit_test(drafts_by_the_layer_leave_the_distribution_as_it_is),
        cmocka_unit_test(drafts_are_drawn_with_the_random_numbers_of_their_places),
        cmocka_unit_test(drafts_go_on_after_a_context_shift),
        cmocka_unit_test(sessions_draft_together_and_may_stop),
        cmocka_unit_test(a_file_without_the_whole_layer_runs_without_it),
        cmocka_unit_test(the_layer_of_another_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Self-extend: logits are those of a definition in plain C, in which every position is written out; texts are the same
// however they run; what cannot be done is refused. With --nll MODEL TEXT: what tokens cost by place, with and without.
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"

#include <math.h>

enum { N_CTX = 384, N_GROUP = 4, WIDTH = 64, N_LONG = 300, N_PROMPT = 40 };

static const frit_extend_options usual = {.n_group = N_GROUP, .width = WIDTH};

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
} fixture;

static fixture open_tiny(const tiny_options *tiny, frit_engine_options options)
{
    fixture f;
    if (options.n_ctx == 0) options.n_ctx = N_CTX;
    if (options.n_threads == 0) options.n_threads = 2;
    options.deterministic = true;
    assert_ok(frit_model_open(&f.model, tiny_model("extend.gguf", tiny), NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    return f;
}

static void close_model(fixture *f)
{
    const frit_kv *kv = &f->engine->kv;
    for (int32_t g = 0; g < kv->n_groups; g++) {
        assert_int_equal(kv->groups[g].n_free + kv->groups[g].n_idle, kv->groups[g].n_pages);
        for (int32_t p = 0; p < kv->groups[g].n_pages; p++) assert_int_equal(kv->groups[g].refs[p], 0);
    }
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

static frit_session *make_session(const fixture *f)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, f->engine));
    assert_ok(frit_session_set_extend(session, &usual));
    return session;
}

static void run(const fixture *f)
{
    int32_t n_rows;
    do assert_ok(frit_engine_step(f->engine, &n_rows));
    while (n_rows > 0);
}

static void push(const fixture *f, frit_session *session, const frit_token *tokens, size_t n)
{
    assert_ok(frit_session_push(session, tokens, n, NULL));
    run(f);
}

static void make_tokens(uint64_t seed, frit_token *tokens, size_t n)
{
    frit_rng rng;
    frit_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) tokens[i] = (frit_token)random_between(&rng, 3, TINY_VOCAB - 1);
}

static void assert_same_logits(const frit_session *found, const frit_session *expected)
{
    assert_non_null(frit_session_logits(found));
    assert_non_null(frit_session_logits(expected));
    assert_memory_equal(frit_session_logits(found), frit_session_logits(expected), TINY_VOCAB * sizeof(float));
}

// ------------------------------------------------------------------------------- the definition

enum { N_EMBD = 32, N_HEAD = 4, N_KV = 2, DIM = 8, N_FF = 48, N_LAYER = 3 };

typedef struct definition {
    const frit_model *model;
    double k[N_LAYER][N_CTX][N_KV * DIM], v[N_LAYER][N_CTX][N_KV * DIM];   // keys as they are before any rotation
    double logits[TINY_VOCAB];
} definition;

static const float *weight(const definition *d, int layer, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, layer < 0 ? "%s.weight" : "blk.%2$d.%1$s.weight", part, layer);
    const frit_tensor *tensor = frit_checkpoint_find(d->model->ckpt, name);
    assert_non_null(tensor);
    return tensor->data;
}

static void norm(double *y, const double *x, const float *w)
{
    double sum = 0;
    for (int i = 0; i < N_EMBD; i++) sum += x[i] * x[i];
    for (int i = 0; i < N_EMBD; i++) y[i] = x[i] / sqrt(sum / N_EMBD + 1e-5) * (double)w[i];
}

static void multiply(double *y, const float *w, const double *x, int n_out, int n_in)
{
    for (int o = 0; o < n_out; o++) {
        y[o] = 0;
        for (int i = 0; i < n_in; i++) y[o] += (double)w[o * n_in + i] * x[i];
    }
}

static void rotate(double *y, const double *x, int position)
{
    for (int i = 0; i < DIM / 2; i++) {
        const double angle = position * pow(10000, -2.0 * i / DIM), c = cos(angle), s = sin(angle);
        y[2 * i] = x[2 * i] * c - x[2 * i + 1] * s;
        y[2 * i + 1] = x[2 * i] * s + x[2 * i + 1] * c;
    }
}

// The position of token s while token t runs: that of its group before the window of t, its own within.
static int position_of(int s, int t)
{
    const int n_before = t / WIDTH * WIDTH;
    return s < n_before ? s / N_GROUP : n_before / N_GROUP + s - n_before;
}

static void attend(const definition *d, int layer, const double *q, int t, double *y)
{
    for (int h = 0; h < N_HEAD; h++) {
        double scores[N_CTX], sum = 0, query[DIM], key[DIM];
        const int kv = h / (N_HEAD / N_KV) * DIM;
        rotate(query, q + h * DIM, position_of(t, t));
        for (int s = 0; s <= t; s++) {
            rotate(key, d->k[layer][s] + kv, position_of(s, t));
            scores[s] = 0;
            for (int i = 0; i < DIM; i++) scores[s] += query[i] * key[i] / sqrt(DIM);
            sum += scores[s] = exp(scores[s]);
        }
        for (int i = 0; i < DIM; i++) {
            y[h * DIM + i] = 0;
            for (int s = 0; s <= t; s++) y[h * DIM + i] += scores[s] / sum * d->v[layer][s][kv + i];
        }
    }
}

static void add(double *x, const double *y)
{
    for (int i = 0; i < N_EMBD; i++) x[i] += y[i];
}

static void compute(definition *d, int t, frit_token token)
{
    double x[N_EMBD], a[N_EMBD], q[N_EMBD], y[N_EMBD], gate[N_FF], up[N_FF];
    for (int i = 0; i < N_EMBD; i++) x[i] = (double)weight(d, -1, "token_embd")[token * N_EMBD + i];
    for (int l = 0; l < N_LAYER; l++) {
        norm(a, x, weight(d, l, "attn_norm"));
        multiply(q, weight(d, l, "attn_q"), a, N_EMBD, N_EMBD);
        multiply(d->k[l][t], weight(d, l, "attn_k"), a, N_KV * DIM, N_EMBD);
        multiply(d->v[l][t], weight(d, l, "attn_v"), a, N_KV * DIM, N_EMBD);
        attend(d, l, q, t, y);
        multiply(a, weight(d, l, "attn_output"), y, N_EMBD, N_EMBD);
        add(x, a);
        norm(a, x, weight(d, l, "ffn_norm"));
        multiply(gate, weight(d, l, "ffn_gate"), a, N_FF, N_EMBD);
        multiply(up, weight(d, l, "ffn_up"), a, N_FF, N_EMBD);
        for (int i = 0; i < N_FF; i++) up[i] *= gate[i] / (1 + exp(-gate[i]));
        multiply(y, weight(d, l, "ffn_down"), up, N_EMBD, N_FF);
        add(x, y);
    }
    norm(a, x, weight(d, -1, "output_norm"));
    multiply(d->logits, weight(d, -1, "output"), a, TINY_VOCAB, N_EMBD);
}

typedef struct rows {
    float values[N_LONG][TINY_VOCAB];
} rows;

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    memcpy(((rows *)ctx)->values[i], values, n * sizeof *values);
}

static double error_of(const float *found, const double *expected)
{
    double most = 0;
    for (int i = 0; i < TINY_VOCAB; i++) most = fmax(most, fabs((double)found[i] - expected[i]));
    return most;
}

static void logits_are_those_of_the_definition(void **state)
{
    (void)state;
    static definition d;
    static rows found;
    static const struct {
        frit_engine_options options;
        double limit;
    } ways[] = {
        {{.cpu = "reference", .cache_type_k = "f32", .cache_type_v = "f32"}, 1e-4},
        {{.cache_type_k = "f32", .cache_type_v = "f32"}, 1e-4},
        {{.cache_type_k = "f32", .cache_type_v = "f32", .n_batch = 7}, 1e-4},
        {{.n_batch = 50}, 0.02},   // keys in f16
    };
    frit_token tokens[N_LONG];
    make_tokens(1, tokens, N_LONG);
    for (size_t w = 0; w < FRIT_COUNT(ways); w++) {
        fixture f = open_tiny(&(tiny_options){.n_layer = N_LAYER}, ways[w].options);
        frit_session *session = make_session(&f);
        assert_ok(
            frit_session_push(session, tokens, N_LONG,
                              &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = &found}));
        run(&f);
        d.model = f.model;
        double most = 0;
        for (int t = 0; t < N_LONG; t++) {
            compute(&d, t, tokens[t]);
            most = fmax(most, error_of(found.values[t], d.logits));
        }
        print_message("%s keys, steps of %d: %.1e\n",
                      ways[w].options.cache_type_k ? ways[w].options.cache_type_k : "f16", ways[w].options.n_batch,
                      most);
        assert_true(most < ways[w].limit);
        frit_session_free(session);
        close_model(&f);
    }
}

// Without groups, or in a text of one window, nothing changes.
static void a_text_within_its_window_is_that_without(void **state)
{
    (void)state;
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 3, .no_prefix_cache = true});
    frit_session *plain, *one, *extended = make_session(&f);
    frit_token tokens[N_LONG];
    make_tokens(2, tokens, N_LONG);
    assert_ok(frit_session_new(&plain, f.engine));
    assert_ok(frit_session_new(&one, f.engine));
    assert_ok(frit_session_set_extend(one, &(frit_extend_options){.n_group = 1, .width = WIDTH}));
    push(&f, plain, tokens, WIDTH);
    push(&f, one, tokens, WIDTH);
    push(&f, extended, tokens, WIDTH);
    assert_same_logits(extended, plain);
    push(&f, plain, tokens + WIDTH, 2);
    push(&f, one, tokens + WIDTH, 2);
    push(&f, extended, tokens + WIDTH, 2);
    assert_same_logits(one, plain);
    assert_true(memcmp(frit_session_logits(extended), frit_session_logits(plain), TINY_VOCAB * sizeof(float)) != 0);
    frit_session_free(plain);
    frit_session_free(one);
    frit_session_free(extended);
    close_model(&f);
}

// ------------------------------------------------------------------------------- texts

typedef struct generating {
    frit_token tokens[N_LONG];
    const char *speculation;   // NULL: none
    float temp;
    size_t saved_at, forked_at;   // the session is saved and loaded by another, a fork goes on; 0: neither
} generating;

static frit_sampler *make_sampler(const fixture *f, float temp)
{
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, f->model, &(frit_sampler_options){.temp = temp, .seed = 4}));
    return sampler;
}

static void speculate(frit_session *session, const char *kind)
{
    if (kind) assert_ok(frit_session_speculate(session, &(frit_speculate_options){.kind = kind, .always = true}));
}

static bool is_at(size_t at, size_t n)
{
    return at > 0 && n >= at && n < at + 4;
}

static frit_session *replace(const fixture *f, frit_session *session, const generating *g, size_t n)
{
    frit_session *other = session;
    if (is_at(g->saved_at, n)) {
        const char *path = temp_path("extended");
        assert_ok(frit_session_save(session, path));
        frit_session_free(session);
        other = make_session(f);
        speculate(other, g->speculation);
        assert_ok(frit_session_load(other, path));
    } else if (is_at(g->forked_at, n)) {
        assert_ok(frit_session_fork(&other, session));
        frit_session_free(session);
    }
    return other;
}

static void generate(const fixture *f, generating *g)
{
    frit_token prompt[N_PROMPT], next[4];
    make_tokens(1, prompt, N_PROMPT);
    frit_session *session = make_session(f);
    frit_sampler *sampler = make_sampler(f, g->temp);
    speculate(session, g->speculation);
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
    for (size_t n = 0, n_next; n < N_LONG; n += n_next) {
        assert_ok(frit_session_next_tokens(session, sampler, next, N_LONG - n < 4 ? N_LONG - n : 4, &n_next));
        memcpy(g->tokens + n, next, n_next * sizeof *next);
        session = replace(f, session, g, n);
    }
    frit_session_free(session);
    frit_sampler_free(sampler);
}

static void texts_are_the_same_however_they_run(void **state)
{
    (void)state;
    static const struct {
        frit_engine_options engine;
        const char *speculation;
        size_t saved_at, forked_at;
    } ways[] = {
        {{.n_batch = 7}, NULL, 0, 0},
        {{.no_prefix_cache = true}, NULL, 0, 0},
        {{.n_batch = 16}, "ngram", 0, 0},
        {{.n_sessions = 2}, NULL, 130, 250},
        {{.n_sessions = 2}, "ngram", WIDTH * 2 - N_PROMPT, WIDTH * 3 - N_PROMPT},
    };
    for (int sampled = 0; sampled < 2; sampled++) {
        generating expected = {.temp = (float)sampled};
        fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){0});
        generate(&f, &expected);
        close_model(&f);
        for (size_t i = 0; i < FRIT_COUNT(ways); i++) {
            generating found = {.temp = (float)sampled,
                                .speculation = ways[i].speculation,
                                .saved_at = ways[i].saved_at,
                                .forked_at = ways[i].forked_at};
            f = open_tiny(&(tiny_options){0}, ways[i].engine);
            generate(&f, &found);
            close_model(&f);
            assert_memory_equal(found.tokens, expected.tokens, sizeof found.tokens);
        }
    }
}

// A draft model, which has no windows: its drafts are right or wrong, the text is the same.
static void a_draft_model_does_not_change_the_text(void **state)
{
    (void)state;
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){0});
    frit_engine *draft;
    assert_ok(frit_engine_new(&draft, f.model, &(frit_engine_options){.n_ctx = N_CTX, .n_threads = 2}));
    for (int k = 0; k < 2; k++) {
        const float temp = k == 0 ? 0 : 0.7f;
        frit_token prompt[N_PROMPT], plain[N_LONG], drafted[N_LONG], *texts[] = {plain, drafted};
        frit_speculation_info info;
        make_tokens(1, prompt, N_PROMPT);
        for (int i = 0; i < 2; i++) {
            const frit_speculate_options speculate = {.kind = "draft", .draft = draft, .always = true, .max_drafts = 3};
            frit_session *session = make_session(&f);
            frit_sampler *sampler = make_sampler(&f, temp);
            if (i == 1) assert_ok(frit_session_speculate(session, &speculate));
            assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
            for (size_t n = 0, n_next; n < N_LONG; n += n_next)
                assert_ok(
                    frit_session_next_tokens(session, sampler, texts[i] + n, N_LONG - n < 4 ? N_LONG - n : 4, &n_next));
            assert_ok(frit_session_get_speculation(session, &info));
            frit_session_free(session);
            frit_sampler_free(sampler);
        }
        assert_memory_equal(plain, drafted, sizeof plain);
        assert_true(info.n_drafted > N_LONG / 4 && info.n_accepted > 0);
    }
    frit_engine_free(draft);
    close_model(&f);
}

enum { N_TOGETHER = 4 };

static void sessions_that_share_steps_give_their_texts(void **state)
{
    (void)state;
    frit_token alone[N_TOGETHER][N_LONG], together[N_TOGETHER][N_LONG];
    for (int n_others = 0; n_others < N_TOGETHER; n_others += N_TOGETHER - 1) {
        // Two sessions' pages: some are preempted.
        fixture f = open_tiny(
            &(tiny_options){0},
            (frit_engine_options){.n_sessions = n_others ? 2 : 1, .n_batch = n_others ? 24 : 64, .prompt_budget = 8});
        for (int first = 0; first < N_TOGETHER; first += 1 + n_others) {
            frit_session *sessions[N_TOGETHER];
            frit_sampler *sampler = make_sampler(&f, 0);
            for (int s = first; s <= first + n_others; s++) {
                frit_token prompt[N_CTX];
                const size_t n = 20 + 20 * (size_t)s;   // so that their windows end at other times
                make_tokens(20 + (uint64_t)s, prompt, n);
                sessions[s] = make_session(&f);
                assert_ok(frit_session_push(sessions[s], prompt, n, NULL));
                assert_ok(frit_session_pick(sessions[s], sampler, NULL));
            }
            for (size_t n[N_TOGETHER] = {0}, n_done = 0; n_done <= (size_t)n_others;) {
                frit_picked picked;
                assert_ok(frit_engine_step(f.engine, NULL));
                for (int s = first; s <= first + n_others; s++) {
                    if (!sessions[s] || frit_session_pending(sessions[s]) > 0) continue;
                    assert_ok(frit_session_picked(sessions[s], &picked));
                    (n_others ? together : alone)[s][n[s]++] = picked.token;
                    if (n[s] == N_LONG) {
                        frit_session_free(sessions[s]);
                        sessions[s] = NULL;
                        n_done++;
                        continue;
                    }
                    assert_ok(frit_session_push(sessions[s], &picked.token, 1, NULL));
                    assert_ok(frit_session_pick(sessions[s], sampler, NULL));
                }
            }
            frit_sampler_free(sampler);
        }
        close_model(&f);
    }
    assert_memory_equal(alone, together, sizeof alone);
}

// Tokens are queued before they are known, and steps submitted before those before them have landed.
static void picks_are_pushed_before_they_are_known(void **state)
{
    (void)state;
    frit_token expected[N_LONG], found[N_LONG], prompt[N_PROMPT];
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 2});
    frit_sampler *sampler = make_sampler(&f, 0);
    make_tokens(1, prompt, N_PROMPT);
    frit_session *plain = make_session(&f), *ahead = make_session(&f);
    push(&f, plain, prompt, N_PROMPT);
    for (size_t i = 0; i < N_LONG; i++) assert_ok(frit_session_next(plain, sampler, &expected[i]));
    frit_session_free(plain);
    assert_ok(frit_session_push(ahead, prompt, N_PROMPT, NULL));
    assert_ok(frit_session_pick(ahead, sampler, NULL));
    for (size_t i = 0; i < N_LONG; i++) {
        frit_picked picked;
        uint64_t step;
        do assert_ok(frit_engine_submit(f.engine, &step, NULL));
        while (step == 0);
        assert_ok(frit_session_push_picked(ahead));
        assert_ok(frit_session_pick(ahead, sampler, NULL));
        assert_ok(frit_engine_wait(f.engine, step));
        assert_ok(frit_session_picked(ahead, &picked));
        found[i] = picked.token;
    }
    assert_memory_equal(found, expected, sizeof found);
    frit_session_free(ahead);
    frit_sampler_free(sampler);
    close_model(&f);
}

// ------------------------------------------------------------------------------- going back, forks, the prefix cache

static void a_session_goes_back_into_any_window(void **state)
{
    (void)state;
    frit_token tokens[N_LONG];
    make_tokens(5, tokens, N_LONG);
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 2, .no_prefix_cache = true});
    frit_session *expected = make_session(&f), *session = make_session(&f);
    push(&f, expected, tokens, N_LONG);
    push(&f, session, tokens, N_LONG);
    static const size_t places[] = {N_LONG - 1, 4 * WIDTH, 4 * WIDTH - 1, 3 * WIDTH + 5, WIDTH, WIDTH - 1, 1, 0};
    for (size_t i = 0; i < FRIT_COUNT(places); i++) {
        assert_ok(frit_session_truncate(session, places[i]));
        push(&f, session, tokens + places[i], N_LONG - places[i]);
        assert_same_logits(session, expected);
    }
    frit_session_free(expected);
    frit_session_free(session);
    close_model(&f);
}

static void a_fork_is_not_changed_by_the_windows_of_another(void **state)
{
    (void)state;
    frit_token tokens[N_LONG];
    make_tokens(6, tokens, N_LONG);
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 3, .no_prefix_cache = true});
    frit_session *a = make_session(&f), *b, *expected = make_session(&f);
    push(&f, a, tokens, WIDTH);
    assert_ok(frit_session_fork(&b, a));
    push(&f, a, tokens + WIDTH, 10);   // its keys are in groups now
    assert_ok(frit_session_truncate(b, WIDTH - 1));
    push(&f, b, tokens + 100, 1);   // the other's are not
    push(&f, expected, tokens, WIDTH - 1);
    push(&f, expected, tokens + 100, 1);
    assert_same_logits(b, expected);
    frit_session_free(a);
    frit_session_free(b);
    frit_session_free(expected);
    close_model(&f);
}

static void whole_windows_are_found_by_sessions_with_the_same_numbers(void **state)
{
    (void)state;
    frit_token tokens[N_LONG];
    make_tokens(7, tokens, N_LONG);
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 4});
    frit_session *first = make_session(&f), *warm = make_session(&f), *other, *plain;
    push(&f, first, tokens, N_LONG);
    push(&f, warm, tokens, N_LONG);
    assert_int_equal(frit_session_cached(warm), N_LONG / WIDTH * WIDTH);
    assert_same_logits(warm, first);
    assert_ok(frit_session_new(&other, f.engine));
    assert_ok(frit_session_set_extend(other, &(frit_extend_options){.n_group = 2, .width = WIDTH}));
    assert_ok(frit_session_new(&plain, f.engine));
    push(&f, other, tokens, N_LONG);
    push(&f, plain, tokens, N_LONG);
    assert_int_equal(frit_session_cached(other), 0);
    assert_int_equal(frit_session_cached(plain), 0);
    frit_session_free(first);
    frit_session_free(other);
    frit_session_free(plain);
    assert_ok(frit_session_truncate(warm, 0));
    push(&f, warm, tokens, 2 * WIDTH - 1);   // the end of a window is never in the cache
    assert_int_equal(frit_session_cached(warm), WIDTH);
    frit_session_free(warm);
    close_model(&f);
}

// ------------------------------------------------------------------------------- refusals

static void assert_refused(const char *name, const char *sentence)
{
    if (!shared_has("goldens/%s", name)) skip_because("a reference model is not here");
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    assert_ok(frit_model_open(&model, shared_path("goldens/%s", name), NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64, .n_threads = 1}));
    assert_ok(frit_session_new(&session, engine));
    assert_fails(frit_session_set_extend(session, &usual), FRIT_E_UNSUPPORTED, sentence);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

static void models_that_cannot_say_why(void **state)
{
    (void)state;
    assert_refused("arch/gpt2-dense.gguf", "no self-extend: the keys of layer 0 contain learned positions");
    assert_refused("arch/bloom-dense.gguf", "no self-extend: its keys are not rotated");
    assert_refused("hf/gemma3_text", "no self-extend: its layers look back at a window only");
    assert_refused("arch/mamba2-dense.gguf", "no self-extend: a recurrent state has no keys that could move");
}

static void numbers_and_orders_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 2});
    frit_session *session = make_session(&f), *plain;
    frit_token tokens[N_CTX + 1];
    make_tokens(3, tokens, N_CTX + 1);
    static const int32_t wrong[][2] = {{4, 0}, {0, 64}, {-1, 64}, {4, -64}, {4, 48}, {3, 64}, {128, 64}};
    for (size_t i = 0; i < FRIT_COUNT(wrong); i++) {
        const frit_extend_options options = {.n_group = wrong[i][0], .width = wrong[i][1]};
        assert_fails(frit_session_set_extend(session, &options), FRIT_E_INVALID, "a multiple of that and of 32");
    }
    assert_fails(frit_session_set_shift(session, &(frit_shift_options){0}), FRIT_E_INVALID, "has self-extend");
    push(&f, session, tokens, N_LONG);
    assert_ok(frit_session_set_extend(session, &usual));   // as it was
    assert_fails(frit_session_set_extend(session, NULL), FRIT_E_INVALID, "300 tokens of the session ran at other");
    const char *path = temp_path("refused");
    assert_ok(frit_session_save(session, path));
    assert_ok(frit_session_new(&plain, f.engine));
    assert_fails(frit_session_load(plain, path), FRIT_E_INVALID,
                 "saved with groups of 4 tokens in a window of 64, the session has 0 and 0");
    assert_ok(frit_session_set_shift(plain, &(frit_shift_options){0}));
    assert_fails(frit_session_set_extend(plain, &usual), FRIT_E_INVALID, "has a context shift");
    assert_ok(frit_session_truncate(session, 0));
    assert_ok(frit_session_set_extend(session, NULL));
    assert_fails(frit_session_push(session, tokens, N_CTX + 1, NULL), FRIT_E_LIMIT, "do not fit");
    frit_session_free(session);
    frit_session_free(plain);
    close_model(&f);
}

// ------------------------------------------------------------------------------- what texts cost

static double nll(const frit_session *session, size_t n_vocab, frit_token next)
{
    frit_logprob logprob = {.token = next};
    assert_ok(frit_logprobs_of(frit_session_logits(session), n_vocab, &logprob, 1));
    return -(double)logprob.logprob;
}

// Means of tokens by place, in as many parts as n_parts.
static void measure(const char *path, const char *text_path, int32_t n_group, int32_t width)
{
    enum { N = 4096, PART = 512, PARTS = N / PART };
    frit_model *model;
    frit_engine *engine;
    frit_model_info info;
    frit_token *tokens = calloc(1 << 20, sizeof *tokens);
    double sums[2][PARTS] = {0};
    size_t n_bytes, n;
    char *text = read_file(text_path, &n_bytes);
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_model_get_info(model, &info));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = N, .no_prefix_cache = true}));
    assert_ok(frit_tokenize(model, text, n_bytes < 60000 ? n_bytes : 60000, FRIT_TEXT_SPECIAL, tokens, 1 << 20, &n));
    for (int extended = 0; extended < 2; extended++) {
        const frit_extend_options options = {.n_group = extended ? n_group : 1, .width = width};
        frit_session *session;
        assert_ok(frit_session_new(&session, engine));
        assert_ok(frit_session_set_extend(session, &options));
        for (size_t i = 0; i + 1 < n && i < N; i++) {
            assert_ok(frit_session_push(session, tokens + i, 1, NULL));
            while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
            sums[extended][i / PART] += nll(session, (size_t)info.n_vocab, tokens[i + 1]) / PART;
        }
        frit_session_free(session);
    }
    for (int p = 0; p < PARTS && (size_t)(p + 1) * PART < n; p++)
        printf("tokens %4d to %4d: %.3f nats each, with groups %.3f\n", p * PART, (p + 1) * PART - 1, sums[0][p],
               sums[1][p]);
    free(text);
    free(tokens);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "--nll") == 0) {   // MODEL TEXT GROUP WIDTH
        measure(argv[2], argv[3], (int32_t)strtol(argv[4], NULL, 10), (int32_t)strtol(argv[5], NULL, 10));
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_the_definition),
        cmocka_unit_test(a_text_within_its_window_is_that_without),
        cmocka_unit_test(texts_are_the_same_however_they_run),
        cmocka_unit_test(a_draft_model_does_not_change_the_text),
        cmocka_unit_test(sessions_that_share_steps_give_their_texts),
        cmocka_unit_test(picks_are_pushed_before_they_are_known),
        cmocka_unit_test(a_session_goes_back_into_any_window),
        cmocka_unit_test(a_fork_is_not_changed_by_the_windows_of_another),
        cmocka_unit_test(whole_windows_are_found_by_sessions_with_the_same_numbers),
        cmocka_unit_test(models_that_cannot_say_why),
        cmocka_unit_test(numbers_and_orders_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

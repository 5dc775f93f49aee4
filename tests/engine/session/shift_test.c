// SPDX-License-Identifier: MIT
// The context shift: keys belong to the new positions, nothing is left in the cache, and models that do not support it
// are refused with the reason. With --nll MODEL TEXT CONTEXT: the loss of a text after shifts.
//
// After a shift, the cache of a longer text differs from that of a session of the remaining tokens, because upper
// layers have seen the dropped tokens. In two cases they are equal: with one layer, any text; and with any number of
// layers, a text of one token repeated, where all positions have the same values, so that keys differ by their rotation
// alone.
#include "arch/golden.h"
#include "engine/session/shift_fixture.h"
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"

#include <math.h>

// Makes a session whose context is full of tokens[N_CTX], and pushes N_NEXT more: N_DROP of the first ones leave.
static frit_session *shifted(const fixture *f, const frit_token *tokens)
{
    frit_session *session = make_session(f->engine);
    frit_shift_info info;
    push(f, session, tokens, N_CTX);
    assert_ok(frit_session_set_shift(session, &(frit_shift_options){.n_drop = N_DROP}));
    push(f, session, tokens + N_CTX, N_NEXT);
    assert_ok(frit_session_get_shift(session, &info));
    assert_int_equal(info.n_dropped, N_DROP);
    assert_int_equal(info.n_keep, N_KEEP);
    assert_int_equal(frit_session_length(session), N_CTX + N_NEXT - N_DROP);
    const frit_token *left = frit_session_tokens(session);
    assert_memory_equal(left, tokens, N_KEEP * sizeof *left);
    assert_memory_equal(left + N_KEEP, tokens + N_KEEP + N_DROP, (N_CTX + N_NEXT - N_KEEP - N_DROP) * sizeof *left);
    return session;
}

// Makes a session of the same tokens that has run all of them at their present positions.
static frit_session *fresh(const fixture *f, const frit_session *other)
{
    frit_session *session = make_session(f->engine);
    push(f, session, frit_session_tokens(other), frit_session_length(other));
    return session;
}

static double logits_error(const fixture *f, const frit_session *found, const frit_session *expected)
{
    assert_non_null(frit_session_logits(found));
    assert_non_null(frit_session_logits(expected));
    return nmse(frit_session_logits(found), frit_session_logits(expected), (size_t)f->n_vocab);
}

// ------------------------------------------------------------------------------- what is computed

static void with_one_layer_the_logits_are_those_of_what_is_left(void **state)
{
    (void)state;
    static const struct {
        const char *type, *scaling, *cpu;
        double limit;
    } rows[] = {
        {"f32", NULL, "reference", 1e-10}, {"f32", NULL, NULL, 1e-10},          {"f32", "linear", NULL, 1e-10},
        {"f32", "yarn", NULL, 1e-10},      {"f16", NULL, NULL, 1e-5},           {"bf16", NULL, NULL, 1e-3},
        {"q8_0", NULL, NULL, 1e-3},        {"q8_0", "yarn", "reference", 1e-3}, {"q5_1", NULL, NULL, 2e-2},
        {"q4_0", NULL, NULL, 5e-2},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const tiny_options tiny = {.n_layer = 1, .times = 8, .rope_scaling = rows[i].scaling};
        fixture f = open_tiny(&tiny, (frit_engine_options){.cpu = rows[i].cpu,
                                                           .n_sessions = 2,
                                                           .no_prefix_cache = true,
                                                           .cache_type_k = rows[i].type,
                                                           .cache_type_v = rows[i].type});
        frit_token tokens[N_CTX + N_NEXT];
        plain_tokens(i, tokens, FRIT_COUNT(tokens), f.n_vocab);
        frit_session *found = shifted(&f, tokens), *expected = fresh(&f, found);
        const double error = logits_error(&f, found, expected);
        print_message("%s %s: %.1e\n", rows[i].type, rows[i].scaling ? rows[i].scaling : "", error);
        assert_true(error <= rows[i].limit);
        frit_session_free(found);
        frit_session_free(expected);
        close_model(&f);
    }
}

// Keys and values of all layers in the order of files: by head and number, in f32.
typedef struct contents {
    uint8_t *bytes;
    size_t n;
} contents;

static frit_status gather(void *ctx, uint8_t *bytes, size_t n_bytes)
{
    contents *c = ctx;
    c->bytes = realloc(c->bytes, c->n + n_bytes);
    memcpy(c->bytes + c->n, bytes, n_bytes);
    c->n += n_bytes;
    return FRIT_OK;
}

static contents contents_of(const frit_session *session)
{
    contents c = {0};
    assert_ok(frit_kv_visit(&session->engine->kv, session->map.tables, FRIT_KV_TEXT, (int32_t)session->n_done,
                            &(frit_kv_visitor){.visit = gather, .ctx = &c}));
    return c;
}

// Returns number d of a key of the tiny model, which has 2 heads of 8, at position p of n, in its page.
static float key_at(const contents *c, int layer, size_t n, int head, int d, size_t p)
{
    const size_t layer_floats = 2 * 2 * 8 * n, page = p / FRIT_PAGE_TOKENS * FRIT_PAGE_TOKENS;
    const size_t in_page = n - page < FRIT_PAGE_TOKENS ? n - page : FRIT_PAGE_TOKENS;
    const size_t at = (size_t)layer * layer_floats + (size_t)head * 8 * n + page * 8 + (size_t)d * in_page + p - page;
    float value;
    memcpy(&value, c->bytes + at * sizeof value, sizeof value);
    return value;
}

// Interleaved pairs, base 10,000: computed by the definition, without the code under test.
static void keys_of_all_layers_are_rotated_and_nothing_else(void **state)
{
    (void)state;
    enum { LAYERS = 3, LEFT = N_CTX - N_DROP };
    fixture f = open_tiny(&(tiny_options){.n_layer = LAYERS},
                          (frit_engine_options){.cache_type_k = "f32", .cache_type_v = "f32"});
    frit_token tokens[N_CTX + N_NEXT];
    plain_tokens(7, tokens, FRIT_COUNT(tokens), f.n_vocab);
    frit_session *session = make_session(f.engine);
    push(&f, session, tokens, N_CTX);
    const contents before = contents_of(session);
    assert_ok(frit_session_set_shift(session, &(frit_shift_options){.n_drop = N_DROP}));
    assert_ok(frit_session_push(session, tokens + N_CTX, 1, NULL));   // the token has not run
    const contents after = contents_of(session);
    assert_int_equal(after.n, before.n / N_CTX * LEFT);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int head = 0; head < 2; head++)
            for (size_t p = 0; p < LEFT; p++)
                for (int i = 0; i < 4; i++) {
                    const size_t from = p < N_KEEP ? p : p + N_DROP;
                    const double angle = ((double)p - (double)from) * pow(10000, -2.0 * i / 8);
                    const double a = (double)key_at(&before, layer, N_CTX, head, 2 * i, from),
                                 b = (double)key_at(&before, layer, N_CTX, head, 2 * i + 1, from);
                    const double x = (double)key_at(&after, layer, LEFT, head, 2 * i, p),
                                 y = (double)key_at(&after, layer, LEFT, head, 2 * i + 1, p);
                    assert_true(fabs(x - (a * cos(angle) - b * sin(angle))) < 1e-4);
                    assert_true(fabs(y - (a * sin(angle) + b * cos(angle))) < 1e-4);
                }
    // Values of the last layer, at the end of the contents: the last page moved unchanged.
    const size_t n = 8 * FRIT_PAGE_TOKENS * sizeof(float);
    assert_memory_equal(after.bytes + after.n - n, before.bytes + before.n - n, n);
    free(before.bytes);
    free(after.bytes);
    frit_session_free(session);
    close_model(&f);
}

// ------------------------------------------------------------------------------- all architectures

static const char *const refused[] = {
    "learned positions",
    "state",
    "rotated vectors",
    "rotation",
    "index",
    "sees all",
    "encoder",
    "chunks",
    "window",
    "temperature",
    "otherwise than keys",
    "no key",
};

// Sinks take weight from all positions, more if there are few.
static bool has_sinks(const fixture *f)
{
    return frit_has(&f->engine->model->weights.layers[0].sinks);
}

// Layer 0 depends only on token and position, so the keys of any text are those of a new session.
static double first_layer_error(const fixture *f)
{
    frit_token tokens[N_CTX + N_NEXT];
    plain_tokens(3, tokens, FRIT_COUNT(tokens), f->n_vocab);
    frit_session *found = shifted(f, tokens), *expected = fresh(f, found);
    const contents a = contents_of(found), b = contents_of(expected);
    const frit_cache_layer *layers = f->engine->kv.layers;
    int32_t first = 0;
    while (layers[first].spec.kind == FRIT_CACHE_NONE || layers[first].group != 0) first++;
    const size_t n = (size_t)layers[first].spec.n_head_kv * (size_t)layers[first].spec.k_dim * found->n_done;
    const bool sees_all = f->engine->kv.groups[0].window == 0;
    const double error = sees_all ? nmse((const float *)a.bytes, (const float *)b.bytes, n) : 0;
    free(a.bytes);
    free(b.bytes);
    frit_session_free(found);
    frit_session_free(expected);
    return first == 0 ? error : 0;
}

static double repeated_token_error(const fixture *f)
{
    frit_token tokens[N_CTX + N_NEXT];
    for (size_t i = 0; i < FRIT_COUNT(tokens); i++) tokens[i] = 5;
    frit_session *found = shifted(f, tokens), *expected = fresh(f, found);
    const contents a = contents_of(found), b = contents_of(expected);
    assert_int_equal(a.n, b.n);
    double error = nmse((const float *)a.bytes, (const float *)b.bytes, a.n / sizeof(float));
    error = fmax(error, logits_error(f, found, expected));
    free(a.bytes);
    free(b.bytes);
    frit_session_free(found);
    frit_session_free(expected);
    return error;
}

static void check_refusal(const char *name)
{
    const char *sentence = frit_error();
    bool is_known = false;
    for (size_t i = 0; i < FRIT_COUNT(refused); i++) is_known = is_known || strstr(sentence, refused[i]);
    print_message("| %-22s | %s |\n", name, strstr(sentence, "shift") ? strstr(sentence, "shift") : sentence);
    assert_true(is_known);
}

static void every_architecture_shifts_or_says_why_not(void **state)
{
    (void)state;
    size_t n_shifted = 0, n_refused = 0, n_wrong = 0;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        if (!golden_is_here(i)) continue;
        golden g = golden_load(i);
        frit_model_info info;
        frit_model *model;
        assert_ok(frit_model_open(&model, g.path, NULL));
        assert_ok(frit_model_get_info(model, &info));
        frit_model_free(model);
        const int32_t n_ctx = info.n_ctx_train > 0 && info.n_ctx_train < N_CTX ? info.n_ctx_train : N_CTX;
        fixture f = open_model(g.path, (frit_engine_options){.n_ctx = n_ctx,
                                                             .n_sessions = 2,
                                                             .full_windows = true,
                                                             .no_prefix_cache = true,
                                                             .cache_type_k = "f32",
                                                             .cache_type_v = "f32"});
        frit_session *session = make_session(f.engine);
        const frit_status status = frit_session_set_shift(session, &(frit_shift_options){.n_drop = 1});
        frit_session_free(session);
        if (status == FRIT_OK && n_ctx == N_CTX) {
            const double first = first_layer_error(&f), deep = has_sinks(&f) ? 0 : repeated_token_error(&f);
            const bool is_right = first < 1e-9 && deep < 1e-7;
            print_message("| %-22s | %8.1e | %8.1e |%s\n", golden_name(i), first, deep, is_right ? "" : " wrong");
            n_wrong += !is_right;
            n_shifted++;
        } else if (status != FRIT_OK) {
            assert_int_equal(status, FRIT_E_UNSUPPORTED);
            check_refusal(golden_name(i));
            n_refused++;
        }
        close_model(&f);
        golden_free(&g);
    }
    print_message("%zu shift, %zu do not\n", n_shifted, n_refused);
    assert_int_equal(n_wrong, 0);
    assert_true(n_shifted + n_refused > 0);
}

// ------------------------------------------------------------------------------- what others see

static void a_fork_is_not_changed_by_the_shift_of_another(void **state)
{
    (void)state;
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 2, .deterministic = true});
    frit_token tokens[N_CTX + N_NEXT];
    plain_tokens(2, tokens, FRIT_COUNT(tokens), f.n_vocab);
    frit_session *a = make_session(f.engine), *b;
    push(&f, a, tokens, N_CTX - 1);
    assert_ok(frit_session_fork(&b, a));
    assert_ok(frit_session_set_shift(a, &(frit_shift_options){0}));
    push(&f, a, tokens + N_CTX - 1, N_NEXT);
    push(&f, b, tokens + N_CTX - 1, 1);
    frit_session *expected = NULL;
    frit_session_free(a);
    expected = make_session(f.engine);
    push(&f, expected, tokens, N_CTX);
    assert_memory_equal(frit_session_logits(b), frit_session_logits(expected), (size_t)f.n_vocab * sizeof(float));
    frit_session_free(b);
    frit_session_free(expected);
    assert_no_page_is_lost(&f);
    close_model(&f);
}

static void shifted_pages_are_not_found_and_the_old_text_is(void **state)
{
    (void)state;
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 3, .deterministic = true}),
            cold = open_tiny(&(tiny_options){0}, (frit_engine_options){.no_prefix_cache = true, .deterministic = true});
    frit_token tokens[N_CTX + N_NEXT], left[N_CTX];
    plain_tokens(3, tokens, FRIT_COUNT(tokens), f.n_vocab);
    frit_session *session = shifted(&f, tokens);
    const size_t n_left = frit_session_length(session);
    memcpy(left, frit_session_tokens(session), n_left * sizeof *left);
    frit_session_free(session);
    for (int i = 0; i < 2; i++) {
        const frit_token *text = i ? tokens : left;
        const size_t n = i ? N_CTX : n_left;
        frit_session *warm = make_session(f.engine), *expected = make_session(cold.engine);
        push(&f, warm, text, n);
        push(&cold, expected, text, n);
        assert_int_equal(frit_session_cached(warm), i ? N_CTX - 1 : N_KEEP);
        assert_memory_equal(frit_session_logits(warm), frit_session_logits(expected),
                            (size_t)f.n_vocab * sizeof(float));
        frit_session_free(warm);
        frit_session_free(expected);
    }
    close_model(&f);
    close_model(&cold);
}

// If pages are short, a session without shifts is preempted even if it has run more: a shifted text that runs again
// would change.
static void a_shifted_session_is_not_preempted_by_another(void **state)
{
    (void)state;
    fixture f = open_tiny(&(tiny_options){0},
                          (frit_engine_options){.n_sessions = 2, .no_prefix_cache = true, .deterministic = true});
    frit_token tokens[N_CTX + N_NEXT];
    plain_tokens(3, tokens, FRIT_COUNT(tokens), f.n_vocab);
    frit_session *session = shifted(&f, tokens), *other = make_session(f.engine), *third = make_session(f.engine);
    assert_ok(frit_session_truncate(session, 50));   // 2 of 8 pages
    push(&f, other, tokens, 96);                     // 3
    push(&f, third, tokens, 96);                     // and the rest
    assert_ok(frit_session_push(session, tokens, 40, NULL));
    assert_ok(frit_session_push(other, tokens, 20, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(f.engine, NULL));
    assert_int_equal(frit_session_pending(other), 116);   // all tokens run again
    assert_int_equal(frit_session_length(session), 90);
    frit_session_free(session);
    run_all(f.engine);
    assert_int_equal(frit_session_pending(other), 0);
    frit_session_free(other);
    frit_session_free(third);
    assert_no_page_is_lost(&f);
    close_model(&f);
}

// ------------------------------------------------------------------------------- refusals

static void what_does_not_fit_is_refused_with_numbers(void **state)
{
    (void)state;
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){0});
    frit_session *session = make_session(f.engine);
    frit_token tokens[N_CTX + 1];
    plain_tokens(3, tokens, FRIT_COUNT(tokens), f.n_vocab);
    const frit_shift_options most = {.n_keep = 64}, too_much = {.n_keep = 65}, negative = {.n_keep = -1},
                             drops = {.n_drop = 65}, all_zero = {0};
    assert_fails(frit_session_set_shift(session, &too_much), FRIT_E_INVALID,
                 "that keeps 96 tokens needs a context of 160 at least, found 128");
    assert_fails(frit_session_set_shift(session, &negative), FRIT_E_INVALID, "keeps -1 tokens and drops 0");
    assert_fails(frit_session_set_shift(session, &drops), FRIT_E_INVALID, "drops 65 tokens; expected up to 64");
    assert_ok(frit_session_set_shift(session, &most));
    assert_ok(frit_session_set_shift(session, &all_zero));
    assert_fails(frit_session_push(session, tokens, N_CTX + 1, NULL), FRIT_E_LIMIT, "129 more tokens do not fit");
    assert_ok(frit_session_push(session, tokens, N_CTX, NULL));
    assert_fails(frit_session_push(session, tokens, 1, NULL), FRIT_E_LIMIT, "makes too little room");   // no token ran
    run_all(f.engine);
    assert_fails(frit_session_push(session, tokens, 97, NULL), FRIT_E_LIMIT, "makes too little room");
    assert_int_equal(frit_session_length(session), N_CTX);
    assert_ok(frit_session_push(session, tokens, 96, NULL));   // all tokens leave, except the kept ones
    assert_int_equal(frit_session_length(session), N_CTX);
    run_all(f.engine);
    assert_ok(frit_session_set_shift(session, NULL));
    assert_fails(frit_session_push(session, tokens, 1, NULL), FRIT_E_LIMIT, "its context is 128");
    frit_session_free(session);
    close_model(&f);
    f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_ctx = 95});
    session = make_session(f.engine);
    assert_fails(frit_session_set_shift(session, &all_zero), FRIT_E_INVALID,
                 "needs a context of 96 at least, found 95");
    frit_session_free(session);
    close_model(&f);
}

static void a_refusal_says_what_a_longer_context_takes(void **state)
{
    (void)state;
    if (!shared_has("goldens/arch/gpt2-dense.gguf")) skip_because("the reference model gpt2-dense is not here");
    fixture f = open_model(shared_path("goldens/arch/gpt2-dense.gguf"), (frit_engine_options){.n_ctx = 32});
    frit_session *session = make_session(f.engine);
    assert_fails(frit_session_set_shift(session, &(frit_shift_options){0}), FRIT_E_UNSUPPORTED, "learned positions");
    assert_non_null(strstr(frit_error(), "the cache of 32 tokens takes"));
    assert_non_null(strstr(frit_error(), "of 64 tokens"));
    frit_shift_info info;
    assert_ok(frit_session_get_shift(session, &info));
    assert_false(info.on);
    frit_session_free(session);
    close_model(&f);
}

// ------------------------------------------------------------------------------- what a shift costs

static void self_extend_is_refused_with_what_to_use(void **state)
{
    (void)state;
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_ctx = 128});
    frit_session *session = make_session(f.engine);
    for (int32_t n = 0; n <= 1; n++) assert_ok(frit_session_set_extend(session, &(frit_extend_options){.n_group = n}));
    assert_fails(frit_session_set_extend(session, &(frit_extend_options){.n_group = 2, .width = 64}),
                 FRIT_E_UNSUPPORTED, "no longer supported: extend the context with YaRN");
    frit_session_free(session);
    close_model(&f);
}

static double nll(const fixture *f, const frit_session *session, frit_token next)
{
    frit_logprob logprob = {.token = next};
    assert_ok(frit_logprobs_of(frit_session_logits(session), (size_t)f->n_vocab, &logprob, 1));
    return -(double)logprob.logprob;
}

// Runs a text in a session that shifts, and in one that runs the remaining tokens again after each shift.
static void measure(const char *path, const char *text_path, int32_t n_ctx)
{
    enum { N = 3000 };
    fixture f = open_model(path, (frit_engine_options){.n_ctx = n_ctx, .n_sessions = 2, .no_prefix_cache = true});
    frit_token *tokens = calloc(1 << 20, sizeof *tokens);
    double shifted = 0, run_again = 0;
    size_t n_bytes, n, n_dropped = 0, n_measured = 0;
    char *text = read_file(text_path, &n_bytes);
    assert_ok(frit_tokenize(f.model, text, n_bytes < 40000 ? n_bytes : 40000, FRIT_TEXT_SPECIAL, tokens, 1 << 20, &n));
    frit_session *session = make_session(f.engine), *again = make_session(f.engine);
    assert_ok(frit_session_set_shift(session, &(frit_shift_options){0}));
    for (size_t i = 0; i + 1 < n && i < N; i++) {
        frit_shift_info info;
        push(&f, session, tokens + i, 1);
        assert_ok(frit_session_get_shift(session, &info));
        const bool is_new = info.n_dropped > n_dropped;
        if (is_new) assert_ok(frit_session_truncate(again, 0));
        const size_t n_more = is_new ? frit_session_length(session) : 1;
        push(&f, again, frit_session_tokens(session) + frit_session_length(session) - n_more, n_more);
        n_dropped = info.n_dropped;
        if (n_dropped == 0) continue;
        shifted += nll(&f, session, tokens[i + 1]);
        run_again += nll(&f, again, tokens[i + 1]);
        n_measured++;
    }
    printf("a context of %d, %zu tokens after the first shift: %.3f nats each, run again %.3f\n", n_ctx, n_measured,
           shifted / (double)n_measured, run_again / (double)n_measured);
    frit_session_free(session);
    frit_session_free(again);
    free(text);
    free(tokens);
    close_model(&f);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--nll") == 0) {   // MODEL TEXT CONTEXT
        measure(argv[2], argv[3], (int32_t)strtol(argv[4], NULL, 10));
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_one_layer_the_logits_are_those_of_what_is_left),
        cmocka_unit_test(keys_of_all_layers_are_rotated_and_nothing_else),
        cmocka_unit_test(every_architecture_shifts_or_says_why_not),
        cmocka_unit_test(a_fork_is_not_changed_by_the_shift_of_another),
        cmocka_unit_test(shifted_pages_are_not_found_and_the_old_text_is),
        cmocka_unit_test(a_shifted_session_is_not_preempted_by_another),
        cmocka_unit_test(what_does_not_fit_is_refused_with_numbers),
        cmocka_unit_test(a_refusal_says_what_a_longer_context_takes),
        cmocka_unit_test(self_extend_is_refused_with_what_to_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

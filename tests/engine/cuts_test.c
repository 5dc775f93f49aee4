// SPDX-License-Identifier: MIT
// A text divided into steps in any way: logits are equal bit for bit, on every instruction set that has one kind of
// kernels for few and many rows (AMX has two).
#include "support/support.h"

#include "backend/cpu/kernels.h"
#include "frit.h"

enum { MAX_TOKENS = 300 };

typedef struct rows {
    float *logits;   // [n, n_vocab]
    size_t n_vocab;
} rows;

static void keep_row(void *ctx, size_t i, const float *logits, size_t n)
{
    rows *r = ctx;
    assert_int_equal(n, r->n_vocab);
    memcpy(r->logits + i * n, logits, n * sizeof *logits);
}

typedef struct setup {
    const char *type, *cache_type;   // NULL: the file's types, f16
    const char *cpu;
} setup;

// Computes the logits after each token, in steps of `step` rows.
static void run(frit_engine *engine, const frit_token *tokens, size_t n_tokens, size_t step, rows *all)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    for (size_t i = 0; i < n_tokens; i += step) {
        const size_t n = n_tokens - i < step ? n_tokens - i : step;
        rows r = {all->logits + i * all->n_vocab, all->n_vocab};
        assert_ok(frit_session_push(session, tokens + i, n,
                                    &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = &r}));
        while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    }
    frit_session_free(session);
}

static void check_cuts(frit_model *model, const setup *s, size_t n_tokens)
{
    static const size_t cuts[] = {33, 7, 1};
    const frit_engine_options options = {.n_ctx = MAX_TOKENS,
                                         .n_batch = MAX_TOKENS,
                                         .n_threads = 1,
                                         .cpu = s->cpu,
                                         .cache_type_k = s->cache_type,
                                         .cache_type_v = s->cache_type};
    frit_model_info info;
    frit_engine *engine;
    frit_token tokens[MAX_TOKENS];
    frit_rng rng = {{n_tokens}};
    frit_model_get_info(model, &info);
    assert_ok(frit_engine_new(&engine, model, &options));
    for (size_t i = 0; i < n_tokens; i++) tokens[i] = (frit_token)random_between(&rng, 0, info.n_vocab - 1);
    const size_t row_bytes = (size_t)info.n_vocab * sizeof(float);
    rows whole = {malloc(n_tokens * row_bytes), (size_t)info.n_vocab},
         cut = {malloc(n_tokens * row_bytes), whole.n_vocab};
    run(engine, tokens, n_tokens, n_tokens, &whole);
    for (size_t c = 0; c < FRIT_COUNT(cuts); c++) {
        run(engine, tokens, n_tokens, cuts[c], &cut);
        for (size_t i = 0; i < n_tokens; i++)
            if (memcmp(whole.logits + i * whole.n_vocab, cut.logits + i * whole.n_vocab, row_bytes) != 0)
                fail_msg("%s, weights %s, cache %s: in steps of %zu rows the logits after token %zu differ", s->cpu,
                         s->type ? s->type : "of the file", s->cache_type ? s->cache_type : "f16", cuts[c], i);
    }
    free(whole.logits);
    free(cut.logits);
    frit_engine_free(engine);
}

static frit_model *open_model(const char *type)
{
    frit_model *model;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), &(frit_model_options){.type = type}));
    return model;
}

static const frit_isa *isa_to_check(size_t i)
{
    const frit_isa *isa = frit_isa_get(i);
    return isa && frit_isa_is_usable(isa) && isa->kinds == FRIT_FOR_ANY ? isa : NULL;
}

// More positions than one chunk of attention has.
static void a_long_text_is_the_same_in_any_steps(void **state)
{
    (void)state;
    frit_model *model = open_model(NULL);
    for (size_t i = 1, n = 0; frit_isa_get(i); i++)
        if (isa_to_check(i) && n++ % FRIT_TEST_STRIDE == 0)
            check_cuts(model, &(setup){.cpu = frit_isa_get(i)->name}, MAX_TOKENS);
    check_cuts(model, &(setup){.cpu = "scalar"}, 40);
    frit_model_free(model);
}

// One type for each kind of kernel.
static void every_kind_of_weights_is_the_same_in_any_steps(void **state)
{
    (void)state;
    static const char *const types[] = {"f32", "bf16", "q8_0", "q4_0", "q4_1", "q6_k", "q2_k", "mxfp4"};
    for (size_t t = 0; t < FRIT_COUNT(types); t += FRIT_TEST_STRIDE) {
        frit_model *model = open_model(types[t]);
        for (size_t i = 1; frit_isa_get(i); i++)
            if (isa_to_check(i)) check_cuts(model, &(setup){.type = types[t], .cpu = frit_isa_get(i)->name}, 40);
        frit_model_free(model);
    }
}

static void every_type_of_cache_is_the_same_in_any_steps(void **state)
{
    (void)state;
    static const char *const types[] = {"f32", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"};
    frit_model *model = open_model(NULL);
    for (size_t i = 1; frit_isa_get(i); i++)
        for (size_t t = i % FRIT_TEST_STRIDE; isa_to_check(i) && t < FRIT_COUNT(types); t += FRIT_TEST_STRIDE)
            check_cuts(model, &(setup){.cache_type = types[t], .cpu = frit_isa_get(i)->name}, 45);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_text_is_the_same_in_any_steps),
        cmocka_unit_test(every_kind_of_weights_is_the_same_in_any_steps),
        cmocka_unit_test(every_type_of_cache_is_the_same_in_any_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

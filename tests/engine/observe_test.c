// SPDX-License-Identifier: MIT
// Importance: engines that observe add up the squares of the inputs of products, as llama-imatrix does.
#include "convert/importance.h"
#include "support/support.h"

#include <math.h>

enum { N_CTX = 512, N_WINDOWS = 8 };

static void ignore_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

static void run(frit_engine *engine, const frit_token *tokens, size_t n)
{
    const frit_push_options push = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = ignore_row};
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, n, &push));
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
    assert_ok(frit_session_status(session));
    frit_session_free(session);
}

// Measures windows [first, end) of the golden's text.
static frit_importance *measure(int first, int end, const frit_engine_options *options)
{
    static frit_token tokens[1 << 16];
    frit_model *model;
    frit_engine *engine;
    frit_importance *importance;
    size_t n_text, n_tokens;
    assert_ok(frit_model_open(&model, shared_path("models/fable-6m-bf16.gguf"), NULL));
    char *text = read_file(shared_path("models/valid.txt"), &n_text);
    assert_ok(frit_tokenize(model, text + 100000, 150000, FRIT_TEXT_SPECIAL, tokens, FRIT_COUNT(tokens), &n_tokens));
    assert_ok(frit_importance_new(&importance));
    assert_ok(frit_engine_new(&engine, model, options));
    assert_ok(frit_engine_observe(engine, importance));
    const frit_token bos = tokens[0];   // the token that begins the model's texts
    for (int w = first; w < end; w++) {
        tokens[w * N_CTX] = bos;
        run(engine, tokens + w * N_CTX, N_CTX);
    }
    frit_engine_free(engine);
    frit_model_free(model);
    free(text);
    return importance;
}

static const frit_engine_options fast = {.n_ctx = N_CTX, .n_threads = 2, .device = "cpu"};

static void sums_are_those_of_llama_imatrix(void **state)
{
    (void)state;
    shared_path("models/fable-6m-bf16.gguf");   // skips the test before anything is allocated
    frit_importance *importance = measure(0, N_WINDOWS, &fast);
    size_t n, n_checked = 0;
    char *text = read_file(project_path("tests/goldens/quantize/imatrix.txt"), &n), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[64];
        long long n_tokens;
        float want, means[1024];
        double got = 0;
        if (*line == '#') continue;
        assert_int_equal(sscanf(line, "%63s %lld %g", name, &n_tokens, &want), 3);
        const frit_importance_entry *entry = frit_importance_find(importance, name);
        assert_non_null(entry);
        assert_int_equal(entry->counts[0], n_tokens);
        frit_importance_means(importance, entry, means);
        for (size_t i = 0; i < entry->n_values; i++) got += (double)means[i];
        if (!(fabs(got - (double)want) <= 1e-3 * (double)want))
            fail_msg("%s: %g, expected %g", name, got, (double)want);
        n_checked++;
    }
    assert_int_equal(n_checked, 42);
    assert_int_equal(importance->n, 43);   // includes the tied output, which llama-imatrix leaves out
    assert_int_equal(frit_importance_find(importance, "token_embd.weight")->counts[0], N_WINDOWS * N_CTX);
    free(text);
    frit_importance_free(importance);
}

static void assert_equal(const frit_importance *a, const frit_importance *b, double limit)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const frit_importance_entry *x = &a->entries[i], *y = frit_importance_find(b, x->name);
        assert_non_null(y);
        assert_int_equal(x->n_values, y->n_values);
        assert_int_equal(x->n_counts, y->n_counts);
        assert_memory_equal(x->counts, y->counts, x->n_counts * sizeof *x->counts);
        for (size_t k = 0; k < x->n_values; k++)
            if (!(fabs(x->sums[k] - y->sums[k]) <= limit * fabs(y->sums[k]) + 1e-9))
                fail_msg("%s, column %zu: %g, expected %g", x->name, k, x->sums[k], y->sums[k]);
    }
}

static void halves_add_up_to_the_whole_for_any_threads(void **state)
{
    (void)state;
    shared_path("models/fable-6m-bf16.gguf");   // skips the test before anything is allocated
    const frit_engine_options one = {.n_ctx = N_CTX, .n_threads = 1, .device = "cpu"};
    frit_importance *whole = measure(0, 2, &fast), *first = measure(0, 1, &one), *second = measure(1, 2, &fast);
    assert_ok(frit_importance_merge(first, second));
    assert_equal(first, whole, 1e-12);
    frit_importance_free(first);
    frit_importance_free(second);
    frit_importance_free(whole);
}

// ------------------------------------------------------------------------------------- small models

static frit_importance *measure_small(const char *name, const char *cpu)
{
    frit_token tokens[40];
    frit_model *model;
    frit_engine *engine;
    frit_importance *importance;
    const frit_engine_options options = {
        .n_ctx = 64, .n_threads = 2, .device = "cpu", .cpu = cpu, .cache_type_k = "f32", .cache_type_v = "f32"};
    for (int i = 0; i < 40; i++) tokens[i] = (i * 7 + 3) % 60;
    assert_ok(frit_model_open(&model, shared_path("goldens/arch/%s.gguf", name), NULL));
    assert_ok(frit_importance_new(&importance));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_engine_observe(engine, importance));
    run(engine, tokens, 40);
    assert_ok(frit_engine_observe(engine, NULL));
    run(engine, tokens, 40);   // adds nothing
    frit_engine_free(engine);
    frit_model_free(model);
    return importance;
}

static const frit_importance_entry *find_part(const frit_importance *importance, const char *part)
{
    for (size_t i = 0; part && i < importance->n; i++)
        if (strstr(importance->entries[i].name, part)) return &importance->entries[i];
    return NULL;
}

// The reference has the same inputs. Experts count the tokens that reach them; latent attention has sums for each head.
static void experts_and_heads_have_their_own_sums(void **state)
{
    (void)state;
    static const struct {
        const char *model, *experts, *heads;
    } rows[] = {
        {"qwen3moe-moe", "ffn_down_exps", NULL},
        {"deepseek2-moe", "ffn_down_exps", "attn_k_b"},
        {"llama-dense", NULL, NULL},
        {"falcon-h1-dense", NULL, NULL},
    };
    shared_path("goldens/arch");   // skips the test before anything is allocated
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_importance *got = measure_small(rows[i].model, NULL), *want = measure_small(rows[i].model, "reference");
        print_message("%s: %zu matrices\n", rows[i].model, got->n);
        assert_true(got->n > 4);
        assert_equal(got, want, 2e-2);
        const frit_importance_entry *experts = find_part(got, rows[i].experts), *heads = find_part(got, rows[i].heads);
        assert_int_equal(experts != NULL, rows[i].experts != NULL);
        assert_int_equal(heads != NULL, rows[i].heads != NULL);
        int64_t n_reached = 0;
        for (size_t k = 0; experts && k < experts->n_counts; k++) n_reached += experts->counts[k];
        if (experts) assert_true(experts->n_counts > 1 && n_reached > 0 && n_reached % 40 == 0);
        if (heads) assert_true(heads->n_counts == 1 && heads->counts[0] == 40);
        frit_importance_free(got);
        frit_importance_free(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_llama_imatrix),
        cmocka_unit_test(halves_add_up_to_the_whole_for_any_threads),
        cmocka_unit_test(experts_and_heads_have_their_own_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

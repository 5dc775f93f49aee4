// SPDX-License-Identifier: MIT
// Whole models on a GPU through WebGPU, compared with the logits that others computed. Arguments select reference
// models whose names contain one of them; "" selects all.
#include "backend/webgpu_device.h"

#include "backend/gpu_engine.h"
#include "sample/sampler.h"

typedef struct run_mode {
    const char *cache;   // type of keys and values
    size_t chunk;        // tokens at a time; 0: all at once
} run_mode;

static const run_mode modes[] = {{"f32", 0}, {"f32", 7}, {"f32", 1}, {"f16", 0}, {"f16", 1}};

static double limit_of(const run_mode *mode)
{
    return strcmp(mode->cache, "f32") == 0 ? 1e-6 : 1e-5;
}

typedef struct model_run {
    frit_model *model;
    const golden *g;
    int32_t n_ctx;
    const char *op_on_cpu;   // NULL: all ran on the GPU
} model_run;

static double error_on(model_run *m, const char *device, const run_mode *mode)
{
    const golden *g = m->g;
    kept_rows r = {.logits = calloc(g->n_tokens * g->n_vocab, sizeof(float)), .n_vocab = g->n_vocab};
    frit_engine *engine = new_engine(m->model, device, mode->cache, m->n_ctx);
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    if (g->source) assert_ok(frit_session_encode(session, g->source, g->n_source, NULL));
    run_golden(engine, session, g, 0, g->n_tokens, mode->chunk ? mode->chunk : g->n_tokens, &r);
    if (strcmp(device, "webgpu") == 0) {
        assert_ptr_equal(engine->devices[0]->backend, &frit_backend_webgpu);
        assert_true(((const frit_webgpu_device *)engine->devices[0])->n_submitted > 0);
        if (!m->op_on_cpu) m->op_on_cpu = op_on_cpu(engine);
    }
    frit_session_free(session);
    frit_engine_free(engine);
    const double error = nmse(r.logits, g->logits, g->n_tokens * g->n_vocab);
    free(r.logits);
    return error;
}

// Rounding keys to f16 costs much if scores are large and not scaled (T5). The limit is twice the error of the CPU.
static bool is_within(model_run *m, const run_mode *mode, double error)
{
    if (error <= limit_of(mode)) return true;
    return strcmp(mode->cache, "f16") == 0 && error <= 2 * error_on(m, "cpu", mode);
}

static char **wanted;

static bool is_wanted(const char *name)
{
    // Fused steps; softcaps, windows and norms after products; ALiBi, layer norms and biases; experts; norms of
    // heads; two sums after a product; factors of sums with a bias.
    static const char *const names[] = {"llama-dense", "gemma2-dense", "bloom-dense",  "llama-moe",
                                        "qwen3-dense", "falcon_h1",    "granite-dense"};
    for (char **word = wanted; word && *word; word++)
        if (strstr(name, *word)) return true;
    for (size_t i = 0; i < FRIT_COUNT(names) && !(wanted && *wanted); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

// Runs a model in all modes and returns the number of failures.
static size_t n_wrong_of(size_t i)
{
    size_t n_wrong = 0;
    golden g = golden_load(i);
    frit_model *model;
    assert_ok(frit_model_open(&model, g.path, NULL));
    const unsigned flags = golden_get(i)->flags;
    model_run m = {.model = model, .g = &g, .n_ctx = flags & GOLDEN_LONG ? 256 : 64};
    print_message("| %-22s |", golden_name(i));
    for (size_t k = 0; k < FRIT_COUNT(modes); k++) {
        if (flags & GOLDEN_AT_ONCE && modes[k].chunk) continue;
        const double error = error_on(&m, "webgpu", &modes[k]);
        const bool is_right = is_within(&m, &modes[k], error);
        print_message(" %7.1e%s |", error, is_right ? "" : "!");
        n_wrong += !is_right;
    }
    print_message("%s%s\n", m.op_on_cpu ? " on the CPU: " : "", m.op_on_cpu ? m.op_on_cpu : "");
    frit_model_free(model);
    golden_free(&g);
    return n_wrong;
}

static void logits_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    size_t n_run = 0, n_wrong = 0;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        if (!is_wanted(golden_name(i)) || !golden_is_here(i)) continue;
        n_wrong += n_wrong_of(i);
        n_run++;
    }
    assert_int_equal(n_wrong, 0);
    if (n_run == 0) skip_because("the reference models are not here");
}

int main(int argc, char **argv)
{
    (void)argc;
    wanted = argv + 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits_are_those_of_the_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

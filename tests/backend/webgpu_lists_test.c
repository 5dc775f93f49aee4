// SPDX-License-Identifier: MIT
// The lists of launches of all reference models, on a library that checks each call and computes nothing
// (webgpu_fake.h): prompts, and single tokens. Wrong lists end the process. Ops that have a kernel run on the GPU.
// Arguments select models whose names contain one of them.
#include "backend/gpu_engine.h"
#include "backend/webgpu/device.h"

#include <dlfcn.h>

static const char path[] = FRIT_BUILD_DIR "/tests/libfrit_fake_webgpu.so";

// Ops without a kernel, and products of rows of rows.
static bool may_run_on_cpu(const frit_node *node)
{
    static const frit_op ops[] = {FRIT_OP_CHOOSE, FRIT_OP_ATTEND_SPARSE, FRIT_OP_ATTEND, FRIT_OP_INDEX_WRITE,
                                  FRIT_OP_KV_WRITE};
    for (size_t i = 0; i < FRIT_COUNT(ops); i++)
        if (ops[i] == node->op) return true;
    return node->op == FRIT_OP_LINEAR && node->n_dims == 3;
}

static void check_ops(const frit_engine *engine, const char *name)
{
    const frit_shape_class *classes = &engine->plans.classes[0][0][0][0][0];
    const size_t n = sizeof engine->plans.classes / sizeof *classes;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; classes[i].planned && k < classes[i].segments.n; k++) {
            const frit_segment *segment = &classes[i].segments.list[k];
            for (int j = 0; segment->device > 0 && j < segment->graph.n_nodes; j++) {
                const frit_node *node = segment->graph.nodes[j];
                const bool is_computed =
                    node->op != FRIT_OP_INPUT && node->op != FRIT_OP_WEIGHT && node->op != FRIT_OP_RESHAPE;
                if (is_computed && !may_run_on_cpu(node))
                    fail_msg("%s: %s runs on the CPU", name, frit_op_get(node->op)->name);
            }
        }
}

static char **wanted;

// Without arguments: the models of the first sets, all of whose ops have a kernel or a row above.
static bool is_wanted(size_t i)
{
    for (char **word = wanted; *word; word++)
        if (strstr(golden_name(i), *word)) return true;
    return !*wanted && !(golden_get(i)->flags & GOLDEN_MORE);
}

static void run_model(size_t i)
{
    golden g = golden_load(i);
    frit_model *model;
    assert_ok(frit_model_open(&model, g.path, NULL));
    const unsigned flags = golden_get(i)->flags;
    kept_rows r = {.logits = calloc(g.n_tokens * g.n_vocab, sizeof(float)), .n_vocab = g.n_vocab};
    for (size_t chunk = g.n_tokens; chunk > 0; chunk = chunk > 1 ? 1 : 0) {
        if (flags & GOLDEN_AT_ONCE && chunk < g.n_tokens) continue;
        frit_engine *engine = new_engine(model, "webgpu", "f16", flags & GOLDEN_LONG ? 256 : 64);
        frit_session *session;
        r.n_rows = 0;
        assert_ok(frit_session_new(&session, engine));
        if (g.source) assert_ok(frit_session_encode(session, g.source, g.n_source, NULL));
        run_golden(engine, session, &g, 0, g.n_tokens, chunk, &r);
        if (chunk == g.n_tokens) check_ops(engine, golden_name(i));
        frit_session_free(session);
        frit_engine_free(engine);
    }
    frit_model_free(model);
    free(r.logits);
    golden_free(&g);
}

static void lists_of_all_models_are_right(void **state)
{
    (void)state;
    size_t n_run = 0;
    void *library = dlopen(path, RTLD_NOW);
    if (!library) skip_because("this build has no library for lists");
    int (*n_living)(void);
    *(void **)&n_living = dlsym(library, "fake_n_living");
    frit_webgpu_use_library(path);
    for (size_t i = 0; i < N_GOLDENS; i++) {
        if (!is_wanted(i) || !golden_is_here(i)) continue;
        run_model(i);
        assert_int_equal(n_living(), 0);
        n_run++;
    }
    frit_webgpu_use_library(NULL);
    if (n_run == 0) skip_because("the reference models are not here");
}

int main(int argc, char **argv)
{
    (void)argc;
    wanted = argv + 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_of_all_models_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Adapters saved by PEFT, against logits computed by peft: from folders, and from converted GGUF files.
#include "frit.h"
#include "frit_tools.h"
#include "support/support.h"

#include <jansson.h>

typedef struct adapted {
    const char *name;
    bool converts;         // GGUF can represent the adapter
    const char *refused;   // part of the error; NULL: the adapter is supported
} adapted;

static const adapted adapters[] = {
    {"lora", true, NULL},
    {"rslora", true, NULL},
    {"dora", false, NULL},
    {"dora-rslora-tied", false, NULL},
    {"rslora-pattern", true, NULL},
    {"rank-pattern-regex", true, NULL},
    {"embedding", true, NULL},
    {"experts", true, NULL},
    {"experts-qwen3_moe", true, NULL},
    {"layers-to-transform", true, NULL},
    {"fan-in-fan-out", true, NULL},
    {"bias", false, NULL},
    {"modules-to-save", true, NULL},
    {"trainable-tokens", true, NULL},
    {"ia3", false, NULL},
    {"loha", false, "peft_type is 'LOHA', only LORA and IA3 are supported"},
    {"lokr", false, "peft_type is 'LOKR', only LORA and IA3 are supported"},
    {"vera", false, "peft_type is 'VERA', only LORA and IA3 are supported"},
};

typedef struct golden {
    char adapter[600], base[600];
    frit_token ids[256];
    size_t n_ids, n_vocab;
    float *logits;
} golden;

static golden load(const char *name)
{
    golden g = {.n_ids = 0};
    size_t n_bytes;
    snprintf(g.adapter, sizeof g.adapter, "%s", shared_path("goldens/lora/%s", name));
    json_t *json = json_load_file(shared_path("goldens/lora/%s/golden.json", name), 0, NULL);
    const json_t *ids = json_object_get(json, "ids");
    snprintf(g.base, sizeof g.base, "%s", shared_path("goldens/%s", json_string_value(json_object_get(json, "base"))));
    g.n_ids = json_array_size(ids);
    g.n_vocab = (size_t)json_integer_value(json_object_get(json, "cols"));
    assert_in_range(g.n_ids, 1, FRIT_COUNT(g.ids));
    for (size_t i = 0; i < g.n_ids; i++) g.ids[i] = (frit_token)json_integer_value(json_array_get(ids, i));
    json_decref(json);
    g.logits = (float *)(void *)read_file(shared_path("goldens/lora/%s/golden.f32", name), &n_bytes);
    assert_int_equal(n_bytes, g.n_ids * g.n_vocab * sizeof *g.logits);
    return g;
}

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    memcpy((float *)ctx + i * n, values, n * sizeof *values);
}

// Returns the error, for the whole text in one step or token by token, or with half of the adapter added twice.
static double error_of(const golden *g, const char *base, const char *path, const char *cpu, bool in_halves)
{
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_adapter *both[2];
    float *logits = calloc(g->n_ids * g->n_vocab, sizeof *logits);
    const frit_engine_options options = {
        .n_ctx = 256, .n_threads = 2, .cpu = cpu, .cache_type_k = "f32", .cache_type_v = "f32"};
    assert_ok(frit_model_open(&model, base, NULL));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&session, engine));
    for (int i = 0; i < 2; i++) assert_ok(frit_adapter_open(&both[i], model, path, NULL));
    const float scales[2][2] = {{1, 0}, {0.5f, 0.5f}};
    assert_ok(frit_session_set_adapters(session, both, scales[in_halves], in_halves ? 2 : 1));
    for (int i = 0; i < 2; i++) frit_adapter_free(both[i]);
    const size_t n = in_halves ? 1 : g->n_ids;
    for (size_t i = 0; i < g->n_ids; i += n) {
        const frit_push_options push = {.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = logits + i * g->n_vocab};
        assert_ok(frit_session_push(session, g->ids + i, n, &push));
        while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    }
    const double error = nmse(logits, g->logits, g->n_ids * g->n_vocab);
    free(logits);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return error;
}

static size_t check(const adapted *a, const golden *g, const char *base, const char *path, const char *what)
{
    static const double limit = 1e-9;
    const double errors[] = {error_of(g, base, path, "reference", false), error_of(g, base, path, NULL, false),
                             error_of(g, base, path, NULL, true)};
    print_message("| %-20s | %-10s |", a->name, what);
    for (size_t i = 0; i < FRIT_COUNT(errors); i++) print_message(" %8.1e |", errors[i]);
    print_message("\n");
    return (size_t) !(errors[0] <= limit) + !(errors[1] <= limit) + !(errors[2] <= limit);
}

static void logits_are_those_of_peft(void **state)
{
    (void)state;
    char gguf[600], converted[600];
    size_t n_bad = 0;
    shared_path("goldens/lora/lora");   // skips the test before anything is allocated
    snprintf(gguf, sizeof gguf, "%s", temp_path("base.gguf"));
    snprintf(converted, sizeof converted, "%s", temp_path("adapter.gguf"));
    for (size_t i = 0; i < FRIT_COUNT(adapters); i++) {
        const adapted *a = &adapters[i];
        if (a->refused) continue;
        golden g = load(a->name);
        n_bad += check(a, &g, g.base, g.adapter, "folder");
        assert_ok(frit_convert(g.base, gguf, NULL));
        n_bad += check(a, &g, gguf, g.adapter, "GGUF");
        if (a->converts) {
            assert_ok(frit_convert(g.adapter, converted, &(frit_convert_options){.base = gguf}));
            n_bad += check(a, &g, gguf, converted, "both GGUF");
        }
        free(g.logits);
    }
    assert_int_equal(n_bad, 0);
}

static void other_kinds_are_refused_by_name(void **state)
{
    (void)state;
    shared_path("goldens/lora/lora");
    for (size_t i = 0; i < FRIT_COUNT(adapters); i++) {
        const adapted *a = &adapters[i];
        frit_model *model;
        frit_adapter *adapter;
        if (!a->refused) continue;
        golden g = load(a->name);
        assert_ok(frit_model_open(&model, g.base, NULL));
        assert_fails(frit_adapter_open(&adapter, model, g.adapter, NULL), FRIT_E_UNSUPPORTED, a->refused);
        frit_model_free(model);
        free(g.logits);
    }
}

static void the_reported_adapter_of_a_multimodal_model_is_taken(void **state)
{
    (void)state;
    frit_model *model;
    frit_adapter *adapter;
    char base[600], path[600];
    snprintf(base, sizeof base, "%s", shared_path("bugs/10-lora-of-a-multimodal-model/llava-model"));
    snprintf(path, sizeof path, "%s", shared_path("bugs/10-lora-of-a-multimodal-model/llava-adapter"));
    assert_ok(frit_model_open(&model, base, NULL));
    assert_ok(frit_adapter_open(&adapter, model, path, NULL));
    frit_adapter_info info;
    assert_ok(frit_adapter_get_info(adapter, &info));
    assert_int_equal(info.n_tensors, 2);
    frit_adapter_free(adapter);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_peft),
        cmocka_unit_test(other_kinds_are_refused_by_name),
        cmocka_unit_test(the_reported_adapter_of_a_multimodal_model_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Weights of a model: engines share them, and their bytes are known before they are packed.
#include "support/engines.h"
#include "support/support.h"

#include "backend/cpu/pack/memory.h"
#include "base/thread/thread.h"
#include "engine/engine.h"
#include "support/tiny_model.h"

#include <dirent.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N_VOCAB = 8192 };

static const frit_token tokens[] = {1, 70, 800, 9, 10, 511, 12, 13};

static frit_model *open_as(const char *type)
{
    frit_model *model;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), &(frit_model_options){.type = type}));
    return model;
}

static frit_engine *engine_of(frit_model *model, frit_engine_options options)
{
    frit_engine *engine;
    if (options.n_threads == 0) options.n_threads = 2;
    assert_ok(frit_engine_new(&engine, model, &options));
    return engine;
}

static void ignore(void *ctx, size_t position, const float *row, size_t n)
{
    (void)ctx, (void)position, (void)row, (void)n;
}

// Computes logits after a prompt and a token, so that steps with many and few rows have run.
static void logits_of(frit_engine *engine, float logits[N_VOCAB])
{
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    for (int i = 0; i < 2; i++) {
        assert_ok(frit_session_push(session, tokens, i == 0 ? FRIT_COUNT(tokens) : 1, NULL));
        run_all(engine);
    }
    memcpy(logits, frit_session_logits(session), N_VOCAB * sizeof *logits);
    frit_session_free(session);
}

static float expected[N_VOCAB], result[N_VOCAB];

static void check_logits(frit_engine *engine)
{
    logits_of(engine, result);
    assert_memory_equal(result, expected, sizeof expected);
}

static int find_expected(void **state)
{
    (void)state;
    frit_model *model = open_as(NULL);
    frit_engine *engine = engine_of(model, (frit_engine_options){0});
    logits_of(engine, expected);
    frit_engine_free(engine);
    frit_model_free(model);
    return 0;
}

static frit_engine_info info_of(const frit_engine *engine)
{
    frit_engine_info info;
    assert_ok(frit_engine_get_info(engine, &info));
    return info;
}

static bool count(void *ctx, double done)
{
    assert_true(done > 0 && done <= 1);
    ++*(int *)ctx;
    return true;
}

static void the_second_engine_packs_nothing(void **state)
{
    (void)state;
    int n_told[2] = {0};
    uint64_t n_bytes, n_now;
    frit_model *model = open_as(NULL);
    frit_engine *first = engine_of(model, (frit_engine_options){.progress = count, .progress_ctx = &n_told[0]});
    assert_int_equal(frit_stores_count(model->stores, &n_bytes), 1);
    assert_true(n_bytes > model->info.n_bytes / 2 && n_told[0] > 0);
    frit_engine *second =
        engine_of(model, (frit_engine_options){.n_threads = 1, .progress = count, .progress_ctx = &n_told[1]});
    assert_int_equal(n_told[1], 0);
    assert_int_equal(frit_stores_count(model->stores, &n_now), 1);
    assert_int_equal(n_now, n_bytes);
    assert_int_equal(info_of(first).packed_bytes, n_bytes);
    assert_int_equal(info_of(second).packed_bytes, n_bytes);
    check_logits(first);
    check_logits(second);
    frit_engine_free(first);
    assert_int_equal(frit_stores_count(model->stores, &n_now), 1);
    check_logits(second);
    frit_engine_free(second);
    assert_int_equal(frit_stores_count(model->stores, &n_now), 0);
    frit_engine *third = engine_of(model, (frit_engine_options){.progress = count, .progress_ctx = &n_told[1]});
    assert_int_equal(n_told[1], n_told[0]);
    check_logits(third);
    frit_engine_free(third);
    frit_model_free(model);
}

static void other_forms_have_stores_of_their_own(void **state)
{
    (void)state;
    uint64_t both, one;
    frit_model *model = open_as(NULL);
    frit_engine *best = engine_of(model, (frit_engine_options){0});
    frit_engine *reference = engine_of(model, (frit_engine_options){.cpu = "reference"});
    assert_int_equal(frit_stores_count(model->stores, &both), 2);
    assert_int_equal(both, info_of(best).packed_bytes);
    assert_int_equal(info_of(reference).packed_bytes, 0);   // reads all weights in place
    assert_true(info_of(reference).weight_bytes <= model->info.n_bytes);
    check_logits(best);
    frit_engine_free(reference);
    assert_int_equal(frit_stores_count(model->stores, &one), 1);
    frit_engine *kept = engine_of(model, (frit_engine_options){.weights_cache = temp_path("forms")});
    assert_int_equal(frit_stores_count(model->stores, &both), 2);
    assert_int_equal(both, 2 * one);
    check_logits(kept);
    frit_engine_free(best);
    check_logits(kept);
    frit_engine_free(kept);
    frit_model_free(model);
}

// ------------------------------------------------------------------------------- bytes

// The size of the only file in a folder, or 0.
static uint64_t file_bytes(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    uint64_t n_bytes = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[1024 + 256];
        size_t n;
        if (entry->d_name[0] == '.') continue;
        assert_int_equal(n_bytes, 0);
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        free(read_file(path, &n));
        n_bytes = n;
        assert_int_equal(unlink(path), 0);
    }
    closedir(dir);
    return n_bytes;
}

// The layout in store_cache.h: a head of 56 bytes, a hash for each 4 MiB, panels from a multiple of 4096 on.
static uint64_t file_bytes_of(uint64_t n_panels)
{
    const uint64_t section = 4 << 20, head = 56 + 8 * ((n_panels + section - 1) / section);
    return n_panels == 0 ? 0 : (head + 4095) / 4096 * 4096 + n_panels;
}

static int check_bytes(const char *path, const char *type, const char *folder)
{
    static const frit_token few_tokens[] = {1, 7, 30, 63};
    uint64_t n_bytes;
    frit_session *session;
    const frit_push_options hidden = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = ignore};
    frit_model *model;
    const frit_status status = frit_model_open(&model, path, &(frit_model_options){.type = type});
    if (status == FRIT_E_INVALID) return 0;   // no type of whole models
    assert_ok(status);
    frit_engine *engine = engine_of(model, (frit_engine_options){.weights_cache = folder});
    const frit_engine_info info = info_of(engine);
    const uint64_t n_file = file_bytes(folder), n_expected = file_bytes_of(info.packed_bytes);
    if (n_file != n_expected)
        fail_msg("%s: the file has %llu bytes, expected %llu", type, (unsigned long long)n_file,
                 (unsigned long long)n_expected);
    assert_ok(frit_session_new(&session, engine));
    for (int i = 0; i < 3; i++) {
        assert_ok(frit_session_push(session, few_tokens, i == 1 ? 1 : FRIT_COUNT(few_tokens), i == 2 ? &hidden : NULL));
        run_all(engine);
    }
    frit_session_free(session);
    frit_stores_count(model->stores, &n_bytes);   // no plan added any
    assert_int_equal(n_bytes, info.packed_bytes);
    frit_engine_free(engine);
    frit_model_free(model);
    return 1;
}

static void bytes_are_known_before_they_are_packed(void **state)
{
    (void)state;
    char folder[512], path[512];
    int n_types = 0;
    snprintf(folder, sizeof folder, "%s", temp_path("bytes"));
    snprintf(path, sizeof path, "%s", tiny_model("wide.gguf", &(tiny_options){.times = 8, .n_layer = 1}));
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++) {
        const frit_dtype_info *dtype = frit_dtype_get((frit_dtype)type);
        if (dtype->encode && frit_dtype_is_of_files((frit_dtype)type))
            n_types += check_bytes(path, dtype->name, folder);
    }
    assert_true(n_types > 25);
}

// The bytes of files that are mapped into this process and in memory; 0 if unknown.
static uint64_t file_bytes_resident(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssFile: %llu kB", &kib) == 1) break;
    if (file) fclose(file);
    return kib << 10;
}

// Every tensor is in one of two places.
static void what_is_not_packed_is_read_in_place(void **state)
{
    (void)state;
    frit_model *model = open_as(NULL);
    frit_engine *engine = engine_of(model, (frit_engine_options){.cpu = "reference"});
    uint64_t n_mapped = 0;
    for (size_t i = 0; i < model->ckpt->n_tensors; i++)
        if (model->ckpt->tensors[i].is_mapped) n_mapped += model->ckpt->tensors[i].n_bytes;
    assert_true(n_mapped > model->info.n_bytes / 2);
    assert_int_equal(info_of(engine).weight_bytes, n_mapped);
    frit_engine_free(engine);
    frit_model_free(model);
}

// Rows are copied to huge pages if the system has them, and the file's pages are dropped.
static void floats_are_in_memory_once(void **state)
{
    (void)state;
    static const frit_token few_tokens[] = {1, 7, 30, 63};
    float logits[2][TINY_VOCAB];
    frit_model *model;
    assert_ok(frit_model_open(&model, tiny_model("floats.gguf", &(tiny_options){.times = 16}), NULL));
    for (int i = 0; i < 2; i++) {
        const uint64_t before = file_bytes_resident();
        frit_engine *engine =
            engine_of(model, (frit_engine_options){.weights_cache = i == 0 ? temp_path("none") : NULL});
        const uint64_t after = file_bytes_resident();
        const frit_engine_info info = info_of(engine);
        const bool copied = i == 1 && frit_cpu_memory_has_huge_pages();
        assert_true(info.weight_bytes > model->info.n_bytes * 9 / 10);
        if (copied)
            assert_true(info.packed_bytes > info.weight_bytes * 9 / 10);
        else
            assert_int_equal(info.packed_bytes, 0);
        if (copied) assert_true(after < before + info.packed_bytes / 2);
        frit_session *session;
        assert_ok(frit_session_new(&session, engine));
        assert_ok(frit_session_push(session, few_tokens, FRIT_COUNT(few_tokens), NULL));
        run_all(engine);
        memcpy(logits[i], frit_session_logits(session), sizeof logits[i]);
        frit_session_free(session);
        frit_engine_free(engine);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    frit_model_free(model);
}

// ------------------------------------------------------------------------------- threads

static void make_and_run(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    frit_model *model = ctx;
    float logits[N_VOCAB];
    for (int i = 0; i < 3; i++) {
        frit_engine *engine = engine_of(model, (frit_engine_options){.n_threads = 1 + thread % 2});
        logits_of(engine, logits);
        assert_memory_equal(logits, expected, sizeof expected);
        frit_engine_free(engine);
    }
}

static void engines_are_made_and_run_by_several_threads(void **state)
{
    (void)state;
    frit_pool *pool;
    uint64_t n_bytes;
    frit_model *model = open_as(NULL);
    assert_ok(frit_pool_new(&pool, 3));
    frit_pool_run(pool, make_and_run, model);
    assert_int_equal(frit_stores_count(model->stores, &n_bytes), 0);
    frit_pool_free(pool);
    frit_model_free(model);
}

typedef struct pair {
    frit_model *model;
    _Atomic int packs, waits;
} pair;

// Packs until the other thread has been told that it waits.
static bool wait_for_other(void *ctx, double done)
{
    (void)done;
    pair *p = ctx;
    atomic_store(&p->packs, 1);
    while (!atomic_load(&p->waits)) usleep(100);
    return true;
}

static bool give_up(void *ctx, double done)
{
    (void)done;
    atomic_store(&((pair *)ctx)->waits, 1);
    return false;
}

static void pack_or_give_up(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    pair *p = ctx;
    frit_engine *engine;
    frit_engine_options options = {.n_threads = 1, .progress = wait_for_other, .progress_ctx = p};
    if (thread == 0) {
        assert_ok(frit_engine_new(&engine, p->model, &options));
        check_logits(engine);
        frit_engine_free(engine);
        return;
    }
    while (!atomic_load(&p->packs)) usleep(100);
    options.progress = give_up;
    assert_fails(frit_engine_new(&engine, p->model, &options), FRIT_E_CANCELLED, "cancelled");
    assert_null(engine);
}

static const frit_tensor *find_use(const frit_plan_needs *needs, const char *name)
{
    for (int i = 0; i < FRIT_MAX_DEVICES; i++)
        for (size_t k = 0; k < needs->weights[i].n; k++)
            if (strcmp(needs->weights[i].list[k].tensor->name, name) == 0) return needs->weights[i].list[k].tensor;
    return NULL;
}

// Constants are loaded with the weights, once for all engines.
static void constants_are_listed_with_the_weights(void **state)
{
    (void)state;
    frit_model *model = open_as(NULL);
    const frit_tensor *found[2];
    for (int i = 0; i < 2; i++) {
        frit_plan_needs needs;
        frit_engine *engine = engine_of(model, (frit_engine_options){.n_ctx = i == 0 ? 64 : 128});
        assert_ok(frit_plans_measure(engine, &needs));
        found[i] = find_use(&needs, "rope.inv_freq");
        frit_plan_needs_free(&needs);
        frit_engine_free(engine);
    }
    assert_non_null(found[0]);
    assert_ptr_equal(found[0], found[1]);
    assert_int_equal(found[0]->n_bytes, (size_t)(model->hp.rope.dim / 2) * sizeof(float));
    frit_model_free(model);
}

static void waiting_for_another_engine_can_be_cancelled(void **state)
{
    (void)state;
    frit_pool *pool;
    pair p = {.model = open_as(NULL)};
    assert_ok(frit_pool_new(&pool, 2));
    frit_pool_run(pool, pack_or_give_up, &p);
    frit_pool_free(pool);
    frit_model_free(p.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_engine_packs_nothing),
        cmocka_unit_test(other_forms_have_stores_of_their_own),
        cmocka_unit_test(bytes_are_known_before_they_are_packed),
        cmocka_unit_test(what_is_not_packed_is_read_in_place),
        cmocka_unit_test(floats_are_in_memory_once),
        cmocka_unit_test(engines_are_made_and_run_by_several_threads),
        cmocka_unit_test(constants_are_listed_with_the_weights),
        cmocka_unit_test(waiting_for_another_engine_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, find_expected, NULL);
}

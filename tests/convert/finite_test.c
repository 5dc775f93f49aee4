// SPDX-License-Identifier: MIT
// Numbers that are not finite, or too large for a type, are never written: conversion names the tensor and leaves no
// file.
#include "convert/convert.h"
#include "format/gguf.h"
#include "frit.h"
#include "frit_tools.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include <float.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WIDTH = 512, ROWS = 5, N = WIDTH * ROWS };

static const char name[] = "blk.0.ffn_up.weight";

// Writes one matrix in type `type`.
static void write_source(const char *path, const float *values, frit_dtype type)
{
    const uint64_t row_bytes = frit_dtype_row_bytes(type, WIDTH);
    uint8_t *rows = malloc((size_t)row_bytes * ROWS);
    frit_dtype_get(type)->encode(values, rows, N, NULL);
    const frit_tensor tensor = {.name = name,
                                .dtype = type,
                                .n_dims = 2,
                                .shape = {ROWS, WIDTH, 1, 1},
                                .data = rows,
                                .n_bytes = row_bytes * ROWS};
    frit_arena arena = {0};
    frit_meta meta;
    frit_meta_init(&meta, &arena);
    assert_ok(frit_meta_add_text(&meta, "general.architecture", "llama"));
    assert_ok(frit_meta_add_u64(&meta, "llama.block_count", 1));
    assert_ok(frit_gguf_write_contents(&(frit_gguf_contents){&meta, &tensor, 1, NULL, NULL}, path));
    frit_meta_deinit(&meta);
    frit_arena_free(&arena);
    free(rows);
}

static void expect_no_file(const char *path)
{
    char part[700];
    snprintf(part, sizeof part, "%s.part", path);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(part, F_OK), 0);
}

typedef struct files {
    char source[600], target[600];
    float values[N];
} files;

static void make_files(files *f, float deviation)
{
    frit_rng rng;
    frit_rng_init(&rng, 11);
    random_normal(&rng, f->values, N, deviation);
    snprintf(f->source, sizeof f->source, "%s", temp_path("source.gguf"));
    snprintf(f->target, sizeof f->target, "%s", temp_path("target.gguf"));
}

static frit_status to_type(const files *f, const char *type)
{
    return frit_convert(f->source, f->target, &(frit_convert_options){.type = type, .n_threads = 2});
}

static frit_status to_mix(const files *f, const char *mix)
{
    const frit_quantize_options quantize = {.mix = mix};
    return frit_convert(f->source, f->target, &(frit_convert_options){.quantize = &quantize, .n_threads = 2});
}

static void expect_refused(const files *f, frit_status status, const char *what, const char *type)
{
    if (status == FRIT_OK || !strstr(frit_error(), name) || !strstr(frit_error(), what) ||
        !strstr(frit_error(), f->source))
        fail_msg("as %s: %s, expected a refusal of %s that has '%s'", type, status ? frit_error() : "written", name,
                 what);
    expect_no_file(f->target);
}

static void every_type_refuses_numbers_that_are_not_finite(void **state)
{
    (void)state;
    static const struct {
        float value;
        const char *what;
    } bad[] = {{NAN, "has NaN in row 3, column 300"},
               {INFINITY, "has infinity in row 3, column 300"},
               {-INFINITY, "has infinity in row 3, column 300"}};
    files f;
    make_files(&f, 0.1f);
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        f.values[3 * WIDTH + 300] = bad[i].value;
        f.values[4 * WIDTH + 7] = NAN;   // the first one is named
        write_source(f.source, f.values, FRIT_DTYPE_F32);
        expect_refused(&f, to_type(&f, NULL), bad[i].what, "itself");
        for (int type = 0; type < FRIT_DTYPE_COUNT; type++)
            if (frit_file_type_id((frit_dtype)type) >= 0)
                expect_refused(&f, to_type(&f, frit_dtype_get((frit_dtype)type)->name), bad[i].what,
                               frit_dtype_get((frit_dtype)type)->name);
    }
}

static void every_mix_refuses_numbers_that_are_not_finite(void **state)
{
    (void)state;
    size_t n = 0;
    files f;
    make_files(&f, 0.1f);
    f.values[2 * WIDTH] = INFINITY;
    write_source(f.source, f.values, FRIT_DTYPE_F32);
    for (const frit_type_mix *mix; (mix = frit_mix_get(n)) != NULL; n++) {
        const frit_status status = to_mix(&f, mix->name);
        if (status == FRIT_OK || !strstr(frit_error(), "importance"))
            expect_refused(&f, status, "has infinity in row 2, column 0", mix->name);
    }
    assert_true(n >= 32);
}

static void sources_of_every_type_are_looked_at(void **state)
{
    (void)state;
    static const frit_dtype types[] = {FRIT_DTYPE_F16,    FRIT_DTYPE_BF16,    FRIT_DTYPE_Q8_0,
                                       FRIT_DTYPE_Q4_1,   FRIT_DTYPE_Q2_K,    FRIT_DTYPE_Q6_K,
                                       FRIT_DTYPE_IQ4_XS, FRIT_DTYPE_IQ2_XXS, FRIT_DTYPE_TQ2_0};
    static const char *const to[] = {NULL, "f32", "f16", "q8_0", "q4_k", "iq3_s"};
    files f;
    make_files(&f, 0.1f);
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        for (size_t k = 0; k < WIDTH; k++) f.values[WIDTH + k] = 1e9f;   // scales become infinity
        if (types[i] == FRIT_DTYPE_BF16) f.values[WIDTH] = NAN;
        write_source(f.source, f.values, types[i]);
        for (size_t k = 0; k < FRIT_COUNT(to); k++)
            expect_refused(&f, to_type(&f, to[k]), "in row 1, column ", frit_dtype_get(types[i])->name);
    }
}

// Numbers such as 70000 in f16, which the type would store as infinity or clamp.
static void numbers_that_are_too_large_for_a_type_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        float value;
        bool fits;
    } rows[] = {
        {"f16", 65504, true},     {"f16", 70000, false},  {"f16", -70000, false},  {"bf16", 70000, true},
        {"bf16", 3.4e38f, false}, {"f32", 3.4e38f, true}, {"q8_0", 70000, true},   {"q8_0", 8e6f, true},
        {"q8_0", -8.5e6f, false}, {"q4_0", 5e5f, true},   {"q4_0", 6e5f, false},   {"nvfp4", 2500, true},
        {"nvfp4", 70000, false},  {"mxfp4", 1e30f, true}, {"tq2_0", 70000, false}, {"q6_k", 1e10f, false},
    };
    files f;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        make_files(&f, 0.1f);
        f.values[WIDTH + 5] = rows[i].value;
        write_source(f.source, f.values, FRIT_DTYPE_F32);
        const frit_status status = to_type(&f, rows[i].type);
        if (rows[i].fits && status != FRIT_OK)
            fail_msg("%g as %s: %s", (double)rows[i].value, rows[i].type, frit_error());
        if (!rows[i].fits) {
            expect_refused(&f, status, "in row 1, column 5", rows[i].type);
            assert_non_null(strstr(frit_error(), rows[i].type));
        }
        remove(f.target);
    }
}

// A type refuses large numbers, or loses no more precision than for small numbers.
static void what_a_type_takes_it_holds(void **state)
{
    (void)state;
    static float values[N], again[N];
    static uint8_t blocks[N * sizeof(float)];
    for (int t = 0; t < FRIT_DTYPE_COUNT; t++) {
        const frit_dtype_info *type = frit_dtype_get((frit_dtype)t);
        if (frit_file_type_id((frit_dtype)t) < 0) continue;
        double usual = 0;
        size_t n_taken = 0, n_refused = 0;
        for (float size = 1; size < 1e38f; size *= size < 1000 ? 1000 : 1.7f) {
            frit_rng rng;
            frit_rng_init(&rng, 5);
            random_normal(&rng, values, N, 0.1f);
            for (size_t i = 0; i < N; i++) values[i] *= size;
            const bool fits = frit_encode_checked(type, values, blocks, N, NULL, again) == N;
            n_taken += fits;
            n_refused += !fits;
            const double error = nmse(again, values, N);
            if (size == 1) usual = error;
            if (fits && !(error <= 1.5 * usual + 1e-9))
                fail_msg("%s takes numbers of %g and loses %g instead of %g", type->name, (double)size, error, usual);
        }
        assert_true(n_taken > 1);
        assert_true(n_refused > 0 || strcmp(type->name, "f32") == 0 || strcmp(type->name, "bf16") == 0 ||
                    strcmp(type->name, "mxfp4") == 0);
    }
}

static void a_size_and_an_earlier_file_hide_nothing(void **state)
{
    (void)state;
    const frit_allocate_options options = {.bits = 8, .text = "ab cd ef gh", .n_text = 11, .n_windows = 1};
    char source[600], target[600];
    snprintf(source, sizeof source, "%s",
             tiny_model("nan.gguf", &(tiny_options){.times = 8, .damaged = "blk.1.ffn_down.weight"}));
    snprintf(target, sizeof target, "%s", temp_path("sized.gguf"));
    assert_fails(frit_allocate(source, target, NULL, &options), FRIT_E_FORMAT, "'blk.1.ffn_down.weight' has NaN");
    expect_no_file(target);
}

// ------------------------------------------------------------------------------------- while loading

static frit_status start(const char *path, const char *type, const char *cache)
{
    frit_model *model;
    frit_engine *engine = NULL;
    assert_ok(frit_model_open(&model, path, &(frit_model_options){.type = type}));
    const frit_engine_options options = {.n_ctx = 64, .n_threads = 2, .weights_cache = cache};
    const frit_status status = frit_engine_new(&engine, model, &options);
    frit_engine_free(engine);
    frit_model_free(model);
    return status;
}

static void types_while_loading_hide_nothing(void **state)
{
    (void)state;
    char path[600], cache[600];
    snprintf(path, sizeof path, "%s", tiny_model("nan.gguf", &(tiny_options){.damaged = "blk.1.ffn_down.weight"}));
    snprintf(cache, sizeof cache, "%s", temp_path("cache"));
    mkdir(cache, 0700);
    static const char *const types[] = {"q8_0", "bf16", "q4_0"};
    for (size_t i = 0; i < FRIT_COUNT(types); i++)
        assert_fails(start(path, types[i], NULL), FRIT_E_FORMAT, "nan.gguf: tensor 'blk.1.ffn_down.weight' has NaN");
    for (int i = 0; i < 2; i++)   // nothing was left
        assert_fails(start(path, "q8_0", cache), FRIT_E_FORMAT, "tensor 'blk.1.ffn_down.weight' has NaN");
}

// ------------------------------------------------------------------------------------- real files

static void the_reported_file_is_refused(void **state)
{
    (void)state;
    static const char *const mixes[] = {"q8_0", "q4_0", "q6_k", "q4_k_m", "iq3_s", "f16"};
    files f;
    snprintf(f.source, sizeof f.source, "%s", shared_path("bugs/11-quantize-hides-nan/one-nan.gguf"));
    snprintf(f.target, sizeof f.target, "%s", temp_path("target.gguf"));
    for (size_t i = 0; i < FRIT_COUNT(mixes); i++) expect_refused(&f, to_mix(&f, mixes[i]), "has NaN", mixes[i]);
    expect_refused(&f, to_type(&f, "q5_1"), "has NaN", "q5_1");
    expect_refused(&f, to_type(&f, NULL), "has NaN", "itself");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_refuses_numbers_that_are_not_finite),
        cmocka_unit_test(every_mix_refuses_numbers_that_are_not_finite),
        cmocka_unit_test(sources_of_every_type_are_looked_at),
        cmocka_unit_test(numbers_that_are_too_large_for_a_type_are_refused),
        cmocka_unit_test(what_a_type_takes_it_holds),
        cmocka_unit_test(a_size_and_an_earlier_file_hide_nothing),
        cmocka_unit_test(types_while_loading_hide_nothing),
        cmocka_unit_test(the_reported_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

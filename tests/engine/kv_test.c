// SPDX-License-Identifier: MIT
// Cache pages: handing out, giving back, layout, refusals.
#include "support/support.h"

#include "engine/kv.h"

static const frit_kv_types KV_F32 = {FRIT_DTYPE_F32, FRIT_DTYPE_F32}, KV_F16 = {FRIT_DTYPE_F16, FRIT_DTYPE_F16};
static uint64_t n_allocated;

typedef struct fake_memory {
    frit_memory base;
    uint8_t *bytes;
} fake_memory;

static frit_status fake_alloc(frit_device *device, uint64_t n_bytes, frit_memory **out)
{
    fake_memory *memory = calloc(1, sizeof *memory);
    *memory = (fake_memory){{device, n_bytes}, calloc(1, (size_t)n_bytes)};
    n_allocated += n_bytes;
    *out = &memory->base;
    return memory->bytes ? FRIT_OK : frit_fail_memory((size_t)n_bytes, "a test");
}

static void fake_release(frit_device *device, frit_memory *memory)
{
    (void)device;
    n_allocated -= memory->n_bytes;
    free(((fake_memory *)memory)->bytes);
    free(memory);
}

static void *fake_map(const frit_memory *memory)
{
    return ((const fake_memory *)memory)->bytes;
}

static const frit_backend fake = {.name = "fake", .alloc = fake_alloc, .release = fake_release, .map = fake_map};
static frit_device device = {.backend = &fake}, other = {.backend = &fake};
static frit_device *const devices[] = {&device, &other};

static frit_kv_shape shape_of(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    return (frit_kv_shape){.specs = specs, .n_layers = n_layers, .types = types};
}

static frit_status make(frit_kv *kv, const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types,
                        int32_t n_pages)
{
    const frit_kv_shape shape = shape_of(specs, n_layers, types);
    return frit_kv_init(kv, devices, 1, &shape, (frit_kv_room){n_pages, 0, 0});
}

static uint64_t page_bytes_of(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    const frit_kv_shape shape = shape_of(specs, n_layers, types);
    return frit_kv_page_bytes(&shape);
}

static frit_status check(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    const frit_kv_shape shape = shape_of(specs, n_layers, types);
    return frit_kv_check(&shape);
}

static const frit_cache_spec specs[3] = {
    {FRIT_CACHE_KV, 2, 16, 8, 0, 0, false, 0, false},
    {FRIT_CACHE_NONE, 0, 0, 0, 0, 0, false, 0, false},
    {FRIT_CACHE_KV, 1, 4, 4, 0, 0, false, 0, false},
};

static void pages_of_all_layers_lie_apart(void **state)
{
    (void)state;
    frit_kv kv;
    assert_ok(make(&kv, specs, 3, KV_F16, 5));
    assert_int_equal(kv.n_bytes, 5 * page_bytes_of(specs, 3, KV_F16));
    assert_int_equal(kv.n_bytes, 5 * 32 * 2 * (2 * 16 + 2 * 8 + 4 + 4));
    assert_int_equal(n_allocated, kv.n_bytes);
    // Page by page: what a short text touches is at the front.
    uint64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const frit_cache_layer *layer = &kv.layers[i];
        assert_int_equal(layer->k.offset, at);
        at += layer->spec.n_head_kv * 32 * layer->spec.k_dim * 2;
        assert_int_equal(layer->v.offset, at);
        at += layer->spec.n_head_kv * 32 * layer->spec.v_dim * 2;
        assert_int_equal(layer->k.page_bytes, kv.n_bytes / 5);
        assert_int_equal(layer->v.page_bytes, kv.n_bytes / 5);
    }
    assert_int_equal(at, kv.n_bytes / 5);
    frit_kv_deinit(&kv);
    assert_int_equal(n_allocated, 0);
}

// Layers 0 and 2, which have keys, on a device each; states on the second.
static void each_device_has_the_pages_of_its_layers(void **state)
{
    (void)state;
    frit_cache_spec split[3];
    memcpy(split, specs, sizeof split);
    split[1].n_state = 10;
    const int8_t where[3] = {0, 1, 1};
    const frit_kv_shape shape = {.specs = split, .n_layers = 3, .types = KV_F16, .devices = where};
    frit_kv kv;
    assert_ok(frit_kv_init(&kv, devices, 2, &shape, (frit_kv_room){5, 2, 1}));
    const uint64_t first = 32 * 2 * (2 * 16 + 2 * 8), second = 32 * 2 * (4 + 4);
    assert_int_equal(kv.n_parts, 2);
    assert_ptr_equal(kv.parts[0].memory->device, &device);
    assert_ptr_equal(kv.parts[1].memory->device, &other);
    assert_int_equal(kv.parts[0].memory->n_bytes, 5 * first);
    assert_int_equal(kv.parts[1].memory->n_bytes, 5 * second + 4 * 64);   // two slots and a copy of each
    assert_int_equal(kv.n_bytes, 5 * (first + second) + 4 * 64);
    assert_int_equal(frit_kv_page_bytes(&shape), first + second);
    assert_int_equal(kv.layers[2].k.offset, 0);
    assert_int_equal(kv.layers[2].k.page_bytes, second);
    assert_int_equal(kv.layers[1].states_offset, 5 * second);
    for (int i = 0; i < 2; i++) assert_ptr_equal(kv.parts[i].cache.memory, kv.parts[i].memory);
    frit_kv_deinit(&kv);
    assert_int_equal(n_allocated, 0);
}

static void a_device_without_layers_has_no_memory(void **state)
{
    (void)state;
    frit_kv kv;
    const frit_kv_shape shape = shape_of(specs, 3, KV_F16);
    assert_ok(frit_kv_init(&kv, devices, 2, &shape, (frit_kv_room){5, 0, 0}));
    assert_null(kv.parts[1].memory);
    assert_int_equal(n_allocated, kv.n_bytes);
    frit_kv_deinit(&kv);
}

static void a_page_belongs_to_one_map_at_a_time(void **state)
{
    (void)state;
    enum { PAGES = 12, MAPS = 4 };
    frit_kv kv;
    assert_ok(make(&kv, specs, 3, KV_F32, PAGES));
    frit_kv_map maps[MAPS] = {{0}};
    int32_t lengths[MAPS] = {0};
    frit_rng rng;
    frit_rng_init(&rng, 4);
    for (int round = 0; round < 5000; round++) {
        int i = (int)random_between(&rng, 0, MAPS - 1);
        int32_t n = (int32_t)random_between(&rng, 0, 6 * FRIT_PAGE_TOKENS);
        if (n <= lengths[i]) {
            frit_kv_shrink(&kv, &maps[i], lengths[i] = n);
        } else {
            int32_t before = maps[i].n_pages, more = frit_kv_pages_of(n) - before;
            bool fits = more <= kv.n_free;
            assert_int_equal(frit_kv_extend(&kv, &maps[i], n), fits ? FRIT_OK : FRIT_E_LIMIT);
            assert_int_equal(maps[i].n_pages, before + (fits ? more : 0));
            if (fits) lengths[i] = n;
        }
        int seen[PAGES] = {0}, n_used = 0;
        for (int m = 0; m < MAPS; m++) {
            assert_int_equal(maps[m].n_pages, (lengths[m] + 31) / 32);
            for (int32_t p = 0; p < maps[m].n_pages; p++, n_used++) assert_int_equal(seen[maps[m].pages[p]]++, 0);
        }
        assert_int_equal(kv.n_free, PAGES - n_used);
    }
    for (int m = 0; m < MAPS; m++) frit_kv_map_free(&kv, &maps[m]);
    assert_int_equal(kv.n_free, PAGES);
    frit_kv_deinit(&kv);
}

static void a_full_cache_says_what_is_missing(void **state)
{
    (void)state;
    frit_kv kv;
    frit_kv_map map = {0};
    assert_ok(make(&kv, specs, 3, KV_F32, 2));
    assert_ok(frit_kv_extend(&kv, &map, 33));
    assert_fails(frit_kv_extend(&kv, &map, 65), FRIT_E_LIMIT, "need 1 pages of 32 tokens, 0 are free");
    assert_int_equal(map.n_pages, 2);
    frit_kv_map_free(&kv, &map);
    frit_kv_deinit(&kv);
}

static void neighbouring_pages_do_not_compete_for_places_in_caches(void **state)
{
    (void)state;
    frit_cache_spec many[16];
    for (size_t i = 0; i < FRIT_COUNT(many); i++)
        many[i] = (frit_cache_spec){FRIT_CACHE_KV, 8, 64, 64, 0, 0, false, 0, false};
    const uint64_t n_bytes = 16 * 2 * 8 * 32 * 64 * 2, page_bytes = page_bytes_of(many, 16, KV_F16);
    assert_true(page_bytes % 4096 >= 64 && page_bytes % 64 == 0);
    assert_true(page_bytes > n_bytes && page_bytes < n_bytes + 4096);
}

static void keys_and_values_have_types_of_their_own(void **state)
{
    (void)state;
    static const frit_cache_spec wide = {FRIT_CACHE_KV, 3, 96, 64, 0, 0, false, 0, false};
    const frit_kv_types types = {FRIT_DTYPE_Q8_0, FRIT_DTYPE_F16};
    frit_kv kv;
    assert_ok(check(&wide, 1, types));
    assert_ok(make(&kv, &wide, 1, types, 2));
    const frit_cache_layer *layer = &kv.layers[0];
    assert_int_equal(layer->k.row_bytes, 3 * 34);
    assert_int_equal(layer->v.row_bytes, 64 * 2);
    assert_int_equal(layer->v.offset - layer->k.offset, (3 * 32 * 3 * 34 + 63) / 64 * 64);
    assert_int_equal(layer->k.mix, 32);   // the largest power of two in 96
    assert_int_equal(layer->v.mix, 1);
    assert_int_equal(kv.n_bytes, 2 * layer->k.page_bytes);
    assert_int_equal(layer->k.page_bytes, layer->v.offset - layer->k.offset + 3 * 32 * 64 * 2);
    frit_kv_deinit(&kv);
}

static void values_in_keys_take_no_room_and_an_index_its_own(void **state)
{
    (void)state;
    static const frit_cache_spec latent = {FRIT_CACHE_KV, 1, 96, 64, 0, 0, true, 128, false};
    frit_kv kv;
    assert_ok(check(&latent, 1, (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_F32}));
    assert_ok(make(&kv, &latent, 1, (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_F32}, 2));
    const frit_cache_layer *layer = &kv.layers[0];
    assert_int_equal(layer->v.offset, layer->k.offset);
    assert_int_equal(layer->v.dtype, FRIT_DTYPE_Q8_0);
    assert_int_equal(layer->v.dim, 64);
    assert_int_equal(layer->v.row_bytes, layer->k.row_bytes);
    assert_int_equal(layer->k.mix, 32);   // of both sizes, so that values can be mixed back alone
    assert_int_equal(layer->v.mix, 32);
    assert_int_equal(layer->index.offset - layer->k.offset, 32 * 3 * 34);
    assert_int_equal(layer->index.mix, 128);
    assert_int_equal(kv.n_bytes, 2 * 32 * (3 + 4) * 34);
    const frit_kv_shape shape = shape_of(&latent, 1, (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_F32});
    assert_int_equal(frit_kv_token_bytes(&shape), 7 * 34);
    frit_kv_deinit(&kv);
    assert_fails(check(&(frit_cache_spec){FRIT_CACHE_KV, 1, 96, 64, 0, 0, true, 40, false}, 1,
                       (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_F16}),
                 FRIT_E_INVALID, "cached keys of an index cannot be q8_0: a head of layer 0 has 40 numbers");
}

static void heads_that_blocks_do_not_fit_are_refused(void **state)
{
    (void)state;
    assert_fails(check(specs, 3, (frit_kv_types){FRIT_DTYPE_Q4_0, FRIT_DTYPE_F16}), FRIT_E_INVALID,
                 "cached keys cannot be q4_0: a head of layer 0 has 16 numbers, expected a multiple of 32");
    assert_fails(check(specs, 3, (frit_kv_types){FRIT_DTYPE_F16, FRIT_DTYPE_Q5_1}), FRIT_E_INVALID,
                 "cached values cannot be q5_1: a head of layer 0 has 8 numbers");
    assert_ok(check(specs, 3, KV_F16));
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    const frit_cache_spec huge = {FRIT_CACHE_KV, INT32_MAX, INT32_MAX, INT32_MAX, 0, 0, false, 0, false};
    frit_kv kv;
    assert_int_equal(page_bytes_of(&huge, 1, KV_F32), UINT64_MAX);
    assert_fails(make(&kv, &huge, 1, KV_F32, 2), FRIT_E_MEMORY, "64-bit");
    const frit_cache_spec negative = {FRIT_CACHE_KV, -1, 16, 16, 0, 0, false, 0, false};
    assert_int_equal(page_bytes_of(&negative, 1, KV_F32), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_all_layers_lie_apart),
        cmocka_unit_test(each_device_has_the_pages_of_its_layers),
        cmocka_unit_test(a_device_without_layers_has_no_memory),
        cmocka_unit_test(a_page_belongs_to_one_map_at_a_time),
        cmocka_unit_test(a_full_cache_says_what_is_missing),
        cmocka_unit_test(neighbouring_pages_do_not_compete_for_places_in_caches),
        cmocka_unit_test(keys_and_values_have_types_of_their_own),
        cmocka_unit_test(values_in_keys_take_no_room_and_an_index_its_own),
        cmocka_unit_test(heads_that_blocks_do_not_fit_are_refused),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

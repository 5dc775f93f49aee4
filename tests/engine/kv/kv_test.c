// SPDX-License-Identifier: MIT
// Pages of the cache: allocation, references, layout, refusals.
#include "support/support.h"

#include "engine/kv/kv.h"

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

static void fake_free(frit_device *device, frit_memory *memory)
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

static int n_page_copies;

static frit_status fake_copy(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes)
{
    (void)device;
    assert_true(to.offset + n_bytes <= to.memory->n_bytes && from.offset + n_bytes <= from.memory->n_bytes);
    memcpy(((fake_memory *)to.memory)->bytes + to.offset, ((fake_memory *)from.memory)->bytes + from.offset,
           (size_t)n_bytes);
    n_page_copies++;
    return FRIT_OK;
}

static const frit_backend fake = {
    .name = "fake", .alloc = fake_alloc, .free = fake_free, .map = fake_map, .copy = fake_copy};
static frit_device device = {.backend = &fake}, second = {.backend = &fake};
static frit_device *const devices[] = {&device, &second};

static frit_kv_shape shape_of(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    return (frit_kv_shape){.specs = specs, .n_layers = n_layers, .types = types};
}

static frit_status make(frit_kv *kv, const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types,
                        int32_t n_pages)
{
    const frit_kv_shape shape = shape_of(specs, n_layers, types);
    const frit_kv_room room = {.n_ctx = n_pages * FRIT_PAGE_TOKENS, .n_sessions = 1, .n_rows = 8};
    return frit_kv_init(kv, devices, 1, &shape, &room);
}

static uint64_t page_bytes_of(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    const frit_kv_shape shape = shape_of(specs, n_layers, types);
    frit_kv_sizes sizes;
    frit_kv_measure(&shape, &sizes);
    return sizes.groups[0].page_bytes;
}

static frit_status check(const frit_cache_spec *specs, int32_t n_layers, frit_kv_types types)
{
    const frit_kv_shape shape = shape_of(specs, n_layers, types);
    return frit_kv_check(&shape);
}

static const frit_cache_spec specs[3] = {
    {.kind = FRIT_CACHE_KV, .n_head_kv = 2, .k_dim = 16, .v_dim = 8},
    {.kind = FRIT_CACHE_NONE},
    {.kind = FRIT_CACHE_KV, .n_head_kv = 1, .k_dim = 4, .v_dim = 4},
};

static void pages_of_all_layers_lie_apart(void **state)
{
    (void)state;
    frit_kv kv;
    assert_ok(make(&kv, specs, 3, KV_F16, 5));
    assert_int_equal(kv.n_bytes, 5 * page_bytes_of(specs, 3, KV_F16));
    assert_int_equal(kv.n_bytes, 5 * 32 * 2 * (2 * 16 + 2 * 8 + 4 + 4));
    assert_int_equal(n_allocated, kv.n_bytes);
    // A short text uses the beginning of the memory.
    uint64_t at = 0;
    for (int i = 0; i < 3; i += 2) {
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

// Layers 0 and 2, with keys, on one device each; states on the second device.
static void each_device_has_the_pages_of_its_layers(void **state)
{
    (void)state;
    frit_cache_spec split[3];
    memcpy(split, specs, sizeof split);
    split[1].n_state = 10;
    const int8_t where[3] = {0, 1, 1};
    const frit_kv_shape shape = {.specs = split, .n_layers = 3, .types = KV_F16, .devices = where};
    frit_kv kv;
    const frit_kv_room room = {.n_ctx = 80, .n_sessions = 2, .n_rows = 8, .n_snapshots = 1};
    assert_ok(frit_kv_init(&kv, devices, 2, &shape, &room));
    const uint64_t n_first = 32 * 2 * (2 * 16 + 2 * 8), n_second = 32 * 2 * (4 + 4);
    assert_int_equal(kv.n_storages, 2);
    assert_ptr_equal(kv.storages[0].memory->device, &device);
    assert_ptr_equal(kv.storages[1].memory->device, &second);
    assert_int_equal(kv.storages[0].memory->n_bytes, 6 * n_first);
    assert_int_equal(kv.storages[1].memory->n_bytes, 6 * n_second + 4 * 64);   // two states and a copy of each
    assert_int_equal(kv.n_bytes, 6 * (n_first + n_second) + 4 * 64);
    assert_int_equal(frit_kv_bytes(&(frit_kv_sizes){{{0, false, n_first + n_second}}, 1, 64}, &room), kv.n_bytes);
    assert_int_equal(kv.layers[2].k.offset, 0);
    assert_int_equal(kv.layers[2].k.page_bytes, n_second);
    assert_int_equal(kv.layers[1].states_offset, 6 * n_second);
    for (int i = 0; i < 2; i++) assert_ptr_equal(kv.storages[i].cache.memory, kv.storages[i].memory);
    frit_kv_deinit(&kv);
    assert_int_equal(n_allocated, 0);
}

static void a_device_without_layers_has_no_memory(void **state)
{
    (void)state;
    frit_kv kv;
    const frit_kv_shape shape = shape_of(specs, 3, KV_F16);
    assert_ok(frit_kv_init(&kv, devices, 2, &shape, &(frit_kv_room){.n_ctx = 160, .n_sessions = 1}));
    assert_null(kv.storages[1].memory);
    assert_int_equal(n_allocated, kv.n_bytes);
    frit_kv_deinit(&kv);
}

// ------------------------------------------------------------------------------- pages

// A window of 40 positions in layer 0, full attention in layer 2; states in layer 1.
enum { WINDOW = 40, N_CTX = 320 };

static void make_mixed(frit_kv *kv, int32_t n_sessions, int32_t n_rows, int32_t n_snapshots, bool has_states)
{
    static frit_cache_spec mixed[3];
    memcpy(mixed, specs, sizeof mixed);
    mixed[0].window = WINDOW;
    mixed[1].n_state = has_states ? 10 : 0;
    const frit_kv_shape shape = shape_of(mixed, 3, KV_F16);
    const frit_kv_room room = {.n_ctx = N_CTX, .n_sessions = n_sessions, .n_rows = n_rows, .n_snapshots = n_snapshots};
    assert_ok(frit_kv_init(kv, devices, 1, &shape, &room));
    assert_int_equal(kv->n_groups, 2);
    assert_int_equal(kv->groups[0].window, WINDOW);
    assert_int_equal(kv->groups[1].window, 0);
}

static void free_map(frit_kv *kv, frit_kv_map *map)
{
    frit_kv_release(kv, map);
    frit_kv_map_free(map);
}

static void run_to(frit_kv *kv, frit_kv_map *map, int32_t *n_done, int32_t n)
{
    assert_int_equal(frit_kv_fitting(kv, map, *n_done, n - *n_done), n - *n_done);
    assert_ok(frit_kv_extend(kv, map, *n_done, n - *n_done));
    *n_done = n;
    frit_kv_unref_passed(kv, map, n);
}

static void pages_before_a_window_are_given_back(void **state)
{
    (void)state;
    frit_kv kv;
    frit_kv_map map = {0};
    int32_t n_done = 0;
    make_mixed(&kv, 1, 32, 0, false);
    assert_ok(frit_kv_map_reserve(&kv, &map, N_CTX));
    const frit_kv_table *window = &map.tables[0], *full = &map.tables[1];
    for (int32_t n = 20; n <= N_CTX; n += 20) {
        run_to(&kv, &map, &n_done, n);
        const int32_t first = n > WINDOW ? (n - WINDOW + 1) / 32 : 0;
        assert_true(window->begin <= first);
        assert_true(first < FRIT_WINDOW_SLACK || window->begin == first - FRIT_WINDOW_SLACK);
        assert_int_equal(full->end - full->begin, (n + 31) / 32);
        assert_int_equal(window->end, full->end);
        assert_int_equal(kv.groups[0].n_free + window->end - window->begin, kv.groups[0].n_pages);
    }
    assert_true(kv.groups[0].n_pages < kv.groups[1].n_pages);
    free_map(&kv, &map);
    for (int g = 0; g < 2; g++) assert_int_equal(kv.groups[g].n_free, kv.groups[g].n_pages);
    frit_kv_deinit(&kv);
}

static void a_window_goes_back_as_far_as_its_pages_or_to_a_snapshot(void **state)
{
    (void)state;
    frit_kv kv;
    frit_kv_map map = {0};
    int32_t n_done = 0;
    make_mixed(&kv, 1, 64, 2, false);
    assert_ok(frit_kv_map_reserve(&kv, &map, N_CTX));
    for (int32_t n = 32; n <= 300; n += 32) {
        run_to(&kv, &map, &n_done, n);
        if (n == 64 || n == 128) {
            const frit_kv_snapshot *snapshot = frit_kv_add_snapshot(&kv, &map, n, false);
            assert_non_null(snapshot);
            assert_int_equal(snapshot->state, 0);
        }
    }
    assert_int_equal(n_done, 288);
    assert_ok(frit_kv_truncate(&kv, &map, 280, &n_done));
    assert_int_equal(n_done, 280);   // the pages of its window are present
    assert_ok(frit_kv_truncate(&kv, &map, 150, &n_done));
    assert_int_equal(n_done, 128);
    assert_int_equal(map.n_snapshots, 2);
    assert_int_equal(map.tables[0].begin, (128 - WINDOW + 1) / 32);
    assert_int_equal(map.tables[0].end, 4);
    assert_int_equal(map.tables[1].end, 4);
    run_to(&kv, &map, &n_done, 200);
    assert_ok(frit_kv_truncate(&kv, &map, 100, &n_done));
    assert_int_equal(n_done, 64);
    assert_int_equal(map.n_snapshots, 1);
    assert_ok(frit_kv_truncate(&kv, &map, 63, &n_done));
    assert_int_equal(n_done, 63);   // both pages are present again
    run_to(&kv, &map, &n_done, 300);
    assert_ok(frit_kv_truncate(&kv, &map, 60, &n_done));
    assert_int_equal(n_done, 0);   // everything runs again
    for (int g = 0; g < 2; g++) assert_int_equal(kv.groups[g].n_free, kv.groups[g].n_pages);
    free_map(&kv, &map);
    frit_kv_deinit(&kv);
}

static void shared_pages_are_copied_when_they_are_written(void **state)
{
    (void)state;
    frit_kv kv;
    frit_kv_map maps[2];
    memset(maps, 0, sizeof maps);
    int32_t n_done[2] = {0};
    make_mixed(&kv, 2, 64, 0, true);
    for (int i = 0; i < 2; i++) assert_ok(frit_kv_map_reserve(&kv, &maps[i], N_CTX));
    run_to(&kv, &maps[0], &n_done[0], 70);
    const int32_t n_free = kv.groups[1].n_free;
    assert_ok(frit_kv_share(&kv, &maps[1], &maps[0], 70, false));
    n_done[1] = 70;
    assert_int_equal(kv.groups[1].n_free, n_free);
    assert_true(maps[1].state > 0 && maps[1].state != maps[0].state);
    const int32_t shared = maps[0].tables[1].pages[2];
    n_page_copies = 0;
    run_to(&kv, &maps[1], &n_done[1], 71);
    assert_int_equal(n_page_copies, 2);   // of each group
    assert_int_equal(maps[0].tables[1].pages[2], shared);
    assert_int_not_equal(maps[1].tables[1].pages[2], shared);
    assert_int_equal(maps[1].tables[1].pages[1], maps[0].tables[1].pages[1]);
    run_to(&kv, &maps[0], &n_done[0], 72);
    assert_int_equal(n_page_copies, 2);   // the page has one owner now
    assert_int_equal(kv.groups[1].n_free, n_free - 1);
    free_map(&kv, &maps[0]);
    run_to(&kv, &maps[1], &n_done[1], 100);
    free_map(&kv, &maps[1]);
    for (int g = 0; g < 2; g++) assert_int_equal(kv.groups[g].n_free, kv.groups[g].n_pages);
    assert_int_equal(kv.n_free_states, 2);
    frit_kv_deinit(&kv);
}

typedef struct tracked_map {   // the page table of the random test
    frit_kv_map map;
    int32_t n_done;
} tracked_map;

// Checks that every page has as many references as tables and snapshots refer to it, and that other pages are free.
static void check_references(const frit_kv *kv, const tracked_map *maps, int n_maps)
{
    for (int32_t g = 0; g < kv->n_groups; g++) {
        int32_t expected[256] = {0}, n_used = 0;
        for (int m = 0; m < n_maps; m++) {
            const frit_kv_table *table = &maps[m].map.tables[g];
            assert_true(table->end == frit_kv_pages_of(maps[m].n_done));
            assert_true(table->begin * 32 <= frit_kv_first_position(kv->groups[g].window, maps[m].n_done));
            for (int32_t p = table->begin; p < table->end; p++) expected[table->pages[p]]++;
        }
        for (int32_t i = 0; i < kv->n_snapshots; i++) {
            const frit_kv_table *table = &kv->snapshots[i].tables[g];
            int n_refs = 0;
            for (int m = 0; m < n_maps; m++)
                for (int32_t k = 0; k < maps[m].map.n_snapshots; k++)
                    n_refs += maps[m].map.snapshots[k] == &kv->snapshots[i];
            assert_int_equal(n_refs, kv->snapshots[i].n_refs);
            for (int32_t p = table->begin; p < table->end; p++) expected[table->pages[p - table->first]]++;
        }
        for (int32_t i = 0; i < kv->groups[g].n_pages; i++) {
            assert_int_equal(kv->groups[g].refs[i], expected[i]);
            n_used += expected[i] > 0;
        }
        assert_int_equal(kv->groups[g].n_free, kv->groups[g].n_pages - n_used);
    }
}

static void change(frit_kv *kv, tracked_map *m, tracked_map *other, frit_rng *rng)
{
    const int32_t n = (int32_t)random_between(rng, 0, 50), keep = (int32_t)random_between(rng, 0, N_CTX);
    switch (random_between(rng, 0, 5)) {
    case 0:
        assert_ok(frit_kv_truncate(kv, &m->map, keep < m->n_done ? keep : m->n_done, &m->n_done));
        assert_true(m->n_done <= keep);
        break;
    case 1:
        frit_kv_release(kv, &m->map);
        m->n_done = 0;
        if (frit_kv_share(kv, &m->map, &other->map, other->n_done, false) == FRIT_OK) m->n_done = other->n_done;
        break;
    case 2:
        frit_kv_drop_snapshots(kv, &m->map, m->n_done);
        if (m->n_done >= 32 && m->map.n_snapshots == 0) frit_kv_add_snapshot(kv, &m->map, m->n_done / 32 * 32, false);
        break;
    default: {
        const int32_t room = n < N_CTX - m->n_done ? n : N_CTX - m->n_done;
        const int32_t fits = frit_kv_fitting(kv, &m->map, m->n_done, room);
        assert_in_range(fits, 0, room);
        if (fits < room) assert_fails(frit_kv_extend(kv, &m->map, m->n_done, fits + 32), FRIT_E_LIMIT, "cache is full");
        if (fits == 0) break;
        assert_ok(frit_kv_extend(kv, &m->map, m->n_done, fits));
        m->n_done += fits;
        frit_kv_unref_passed(kv, &m->map, m->n_done);
    }
    }
}

static void no_page_is_lost_or_given_back_twice(void **state)
{
    (void)state;
    enum { MAPS = 6, ROUNDS = 20000 };
    frit_kv kv;
    tracked_map maps[MAPS];
    memset(maps, 0, sizeof maps);
    frit_rng rng;
    frit_rng_init(&rng, 4);
    make_mixed(&kv, 3, 50, 2, true);   // memory for fewer tables than exist
    for (int m = 0; m < MAPS; m++) assert_ok(frit_kv_map_reserve(&kv, &maps[m].map, N_CTX));
    for (int round = 0; round < ROUNDS; round++) {
        const int m = (int)random_between(&rng, 0, MAPS - 1), other = (int)random_between(&rng, 0, MAPS - 2);
        change(&kv, &maps[m], &maps[other < m ? other : other + 1], &rng);
        check_references(&kv, maps, MAPS);
    }
    for (int m = 0; m < MAPS; m++) {
        free_map(&kv, &maps[m].map);
        maps[m].n_done = 0;
    }
    check_references(&kv, maps, MAPS);
    for (int g = 0; g < 2; g++) assert_int_equal(kv.groups[g].n_free, kv.groups[g].n_pages);
    assert_int_equal(kv.n_free_states, 3);
    frit_kv_deinit(&kv);
}

static void a_full_cache_says_what_is_missing(void **state)
{
    (void)state;
    frit_kv kv;
    frit_kv_map map = {0};
    assert_ok(make(&kv, specs, 3, KV_F32, 2));
    assert_ok(frit_kv_map_reserve(&kv, &map, 128));
    assert_ok(frit_kv_extend(&kv, &map, 0, 33));
    assert_int_equal(frit_kv_fitting(&kv, &map, 33, 60), 31);
    assert_fails(frit_kv_extend(&kv, &map, 33, 32), FRIT_E_LIMIT, "need 1 pages of 32 tokens, 0 of 2 are free");
    assert_int_equal(map.tables[0].end, 2);
    free_map(&kv, &map);
    frit_kv_deinit(&kv);
}

static void neighbouring_pages_do_not_compete_for_places_in_caches(void **state)
{
    (void)state;
    frit_cache_spec many[16];
    for (size_t i = 0; i < FRIT_COUNT(many); i++)
        many[i] = (frit_cache_spec){.kind = FRIT_CACHE_KV, .n_head_kv = 8, .k_dim = 64, .v_dim = 64};
    const uint64_t n_bytes = 16 * 2 * 8 * 32 * 64 * 2, page_bytes = page_bytes_of(many, 16, KV_F16);
    assert_true(page_bytes % 4096 >= 64 && page_bytes % 64 == 0);
    assert_true(page_bytes > n_bytes && page_bytes < n_bytes + 4096);
}

static void keys_and_values_have_types_of_their_own(void **state)
{
    (void)state;
    static const frit_cache_spec wide = {.kind = FRIT_CACHE_KV, .n_head_kv = 3, .k_dim = 96, .v_dim = 64};
    const frit_kv_types types = {FRIT_DTYPE_Q8_0, FRIT_DTYPE_F16};
    frit_kv kv;
    assert_ok(check(&wide, 1, types));
    assert_ok(make(&kv, &wide, 1, types, 2));
    const frit_cache_layer *layer = &kv.layers[0];
    assert_int_equal(layer->k.row_bytes, 3 * 34);
    assert_int_equal(layer->v.row_bytes, 64 * 2);
    assert_int_equal(layer->v.offset - layer->k.offset, (3 * 32 * 3 * 34 + 63) / 64 * 64);
    assert_int_equal(layer->k.hadamard, 32);   // the largest power of two in 96
    assert_int_equal(layer->v.hadamard, 1);
    assert_int_equal(kv.n_bytes, 2 * layer->k.page_bytes);
    assert_int_equal(layer->k.page_bytes, layer->v.offset - layer->k.offset + 3 * 32 * 64 * 2);
    frit_kv_deinit(&kv);
}

static void values_in_keys_take_no_room_and_an_index_its_own(void **state)
{
    (void)state;
    static const frit_cache_spec latent = {
        .kind = FRIT_CACHE_KV, .n_head_kv = 1, .k_dim = 96, .v_dim = 64, .v_in_k = true, .index_dim = 128};
    frit_kv kv;
    assert_ok(check(&latent, 1, (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_F32}));
    assert_ok(make(&kv, &latent, 1, (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_F32}, 2));
    const frit_cache_layer *layer = &kv.layers[0];
    assert_int_equal(layer->v.offset, layer->k.offset);
    assert_int_equal(layer->v.dtype, FRIT_DTYPE_Q8_0);
    assert_int_equal(layer->v.dim, 64);
    assert_int_equal(layer->v.row_bytes, layer->k.row_bytes);
    assert_int_equal(layer->k.hadamard, 32);   // divides both sizes, so that values alone can be transformed back
    assert_int_equal(layer->v.hadamard, 32);
    assert_int_equal(layer->index.offset - layer->k.offset, 32 * 3 * 34);
    assert_int_equal(layer->index.hadamard, 128);
    assert_int_equal(kv.n_bytes, 2 * 32 * (3 + 4) * 34);
    const frit_kv_shape shape = shape_of(&latent, 1, (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_F32});
    assert_int_equal(frit_kv_token_bytes(&shape), 7 * 34);
    frit_kv_deinit(&kv);
    assert_fails(
        check(
            &(frit_cache_spec){
                .kind = FRIT_CACHE_KV, .n_head_kv = 1, .k_dim = 96, .v_dim = 64, .v_in_k = true, .index_dim = 40},
            1, (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_F16}),
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
    const frit_cache_spec huge = {
        .kind = FRIT_CACHE_KV, .n_head_kv = INT32_MAX, .k_dim = INT32_MAX, .v_dim = INT32_MAX};
    frit_kv kv;
    assert_int_equal(page_bytes_of(&huge, 1, KV_F32), UINT64_MAX);
    assert_fails(make(&kv, &huge, 1, KV_F32, 2), FRIT_E_MEMORY, "64-bit");
    const frit_cache_spec negative = {.kind = FRIT_CACHE_KV, .n_head_kv = -1, .k_dim = 16, .v_dim = 16};
    assert_int_equal(page_bytes_of(&negative, 1, KV_F32), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_all_layers_lie_apart),
        cmocka_unit_test(each_device_has_the_pages_of_its_layers),
        cmocka_unit_test(a_device_without_layers_has_no_memory),
        cmocka_unit_test(pages_before_a_window_are_given_back),
        cmocka_unit_test(a_window_goes_back_as_far_as_its_pages_or_to_a_snapshot),
        cmocka_unit_test(shared_pages_are_copied_when_they_are_written),
        cmocka_unit_test(no_page_is_lost_or_given_back_twice),
        cmocka_unit_test(a_full_cache_says_what_is_missing),
        cmocka_unit_test(neighbouring_pages_do_not_compete_for_places_in_caches),
        cmocka_unit_test(keys_and_values_have_types_of_their_own),
        cmocka_unit_test(values_in_keys_take_no_room_and_an_index_its_own),
        cmocka_unit_test(heads_that_blocks_do_not_fit_are_refused),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

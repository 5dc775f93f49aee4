// SPDX-License-Identifier: MIT
// The cache of a group: bytes that are written come back, whatever heads the ranks have, and a copied page is the page.
#include "support/support.h"

#include "backend/group_device.h"

enum { N_LAYERS = 4, N_PAGES = 5, N_STATE = 24 };

typedef struct shape {
    int32_t n_head, n_parts[N_LAYERS];
    bool v_in_k, has_index, has_states;
} shape;

// Lays out layers as an engine does: two groups of layers, pages of each group, then states.
static uint64_t lay_out(const shape *s, frit_cache_layer *layers)
{
    uint64_t at = 0;
    for (int32_t g = 0; g < 2; g++) {
        const uint64_t begin = at;
        for (int32_t i = g; i < N_LAYERS; i += 2) {
            frit_cache_layer *layer = &layers[i];
            *layer = (frit_cache_layer){.spec = {.kind = FRIT_CACHE_KV,
                                                 .n_head_kv = s->n_head,
                                                 .k_dim = 8,
                                                 .v_dim = 8,
                                                 .v_in_k = s->v_in_k,
                                                 .index_dim = s->has_index ? 4 : 0,
                                                 .n_parts = s->n_parts[i]},
                                        .group = g,
                                        .k = {.row_bytes = 16, .offset = at}};
            at += (uint64_t)s->n_head * 16 * FRIT_PAGE_TOKENS;
            layer->v = layer->k;
            if (!s->v_in_k) layer->v.offset = at, at += (uint64_t)s->n_head * 16 * FRIT_PAGE_TOKENS;
            layer->index = (frit_cache_side){.row_bytes = s->has_index ? 8 : 0, .offset = at};
            at += layer->index.row_bytes * FRIT_PAGE_TOKENS;
        }
        const uint64_t page_bytes = at - begin + 64;   // a gap
        for (int32_t i = g; i < N_LAYERS; i += 2)
            layers[i].k.page_bytes = layers[i].v.page_bytes = layers[i].index.page_bytes = page_bytes;
        at = begin + N_PAGES * page_bytes;
    }
    for (int32_t i = 0; i < N_LAYERS && s->has_states; i++) {
        layers[i].spec.n_state = N_STATE;
        layers[i].states_offset = at;
        at += 3 * N_STATE * sizeof(float);
    }
    return at;
}

// True for the bytes that layers have; gaps have no rank.
static void mark_used(const shape *s, const frit_cache_layer *layers, uint64_t n_bytes, uint8_t *used)
{
    memset(used, 0, (size_t)n_bytes);
    for (int32_t i = 0; i < N_LAYERS; i++)
        for (uint64_t p = 0; p < N_PAGES; p++) {
            const frit_cache_layer *l = &layers[i];
            const size_t n = (size_t)s->n_head * 16 * FRIT_PAGE_TOKENS;
            memset(used + l->k.offset + p * l->k.page_bytes, 1, n);
            memset(used + l->v.offset + p * l->v.page_bytes, 1, n);
            memset(used + l->index.offset + p * l->index.page_bytes, 1, (size_t)l->index.row_bytes * FRIT_PAGE_TOKENS);
        }
    for (int32_t i = 0; i < N_LAYERS && s->has_states; i++)
        memset(used + layers[i].states_offset, 1, 3 * N_STATE * sizeof(float));
}

static frit_device *open_group(int32_t n)
{
    frit_device *group;
    frit_device_list list;
    char name[32];
    snprintf(name, sizeof name, "cpu:0-%d", (int)n - 1);
    assert_true(frit_device_list_parse(name, &list));
    assert_ok(
        frit_group_open(&group, &frit_backend_cpu, &list, &(frit_device_options){.cpu = "reference", .n_threads = n}));
    return group;
}

static void check(const shape *s, int32_t n_ranks)
{
    frit_cache_layer layers[N_LAYERS];
    const uint64_t n_bytes = lay_out(s, layers), page = layers[0].k.page_bytes;
    frit_device *group = open_group(n_ranks);
    const frit_backend *b = group->backend;
    frit_memory *memory;
    uint8_t *given = malloc(n_bytes), *found = calloc(n_bytes, 1), *used = malloc(n_bytes);
    frit_rng rng;
    frit_rng_init(&rng, 5);
    for (uint64_t i = 0; i < n_bytes; i++) given[i] = (uint8_t)frit_rng_next(&rng);
    mark_used(s, layers, n_bytes, used);
    assert_ok(b->alloc_cache(group, &(frit_cache){.layers = layers, .n_layers = N_LAYERS}, n_bytes, &memory));
    for (uint64_t at = 0, n; at < n_bytes; at += n) {   // written in parts of any size
        n = 1 + frit_rng_next(&rng) % 3000;
        if (n > n_bytes - at) n = n_bytes - at;
        assert_ok(b->write(group, (frit_address){memory, at}, given + at, n));
    }
    assert_ok(b->read(group, (frit_address){memory, 0}, found, n_bytes));
    for (uint64_t i = 0; i < n_bytes; i++)
        if (used[i]) assert_int_equal(found[i], given[i]);
    assert_ok(b->copy(group, (frit_address){memory, layers[0].k.offset + 3 * page},
                      (frit_address){memory, layers[0].k.offset + page}, page));
    assert_ok(b->read(group, (frit_address){memory, layers[0].k.offset + 3 * page}, found, page));
    for (uint64_t i = 0; i < page; i++)
        if (used[i]) assert_int_equal(found[i], given[page + i]);
    const uint64_t rank_bytes = ((group_memory *)memory)->cache.rank_bytes;
    assert_true(rank_bytes <= n_bytes);
    b->free(group, memory);
    b->close(group);
    free(given);
    free(found);
    free(used);
}

static void what_is_written_comes_back(void **state)
{
    (void)state;
    check(&(shape){.n_head = 4, .n_parts = {2, 2, 2, 2}}, 2);
    check(&(shape){.n_head = 4, .n_parts = {2, 1, 2, 0}, .has_states = true}, 4);
    check(&(shape){.n_head = 4, .n_parts = {4, 4, 2, 2}, .has_index = true}, 4);
    check(&(shape){.n_head = 1, .n_parts = {1, 1, 1, 1}, .v_in_k = true}, 2);
    check(&(shape){.n_head = 4, .n_parts = {4, 4, 4, 4}, .has_states = true}, 8);
}

static void ranks_have_a_part_of_the_memory(void **state)
{
    (void)state;
    const shape s = {.n_head = 8, .n_parts = {4, 4, 4, 4}};
    frit_cache_layer layers[N_LAYERS];
    const uint64_t n_bytes = lay_out(&s, layers);
    frit_group_cache cache;
    assert_ok(frit_group_cache_init(&cache, &(frit_cache){.layers = layers, .n_layers = N_LAYERS}, n_bytes, 4));
    assert_true(cache.rank_bytes * 4 < n_bytes + n_bytes / 4);
    frit_group_cache_deinit(&cache);
}

static void names_of_lists_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t n, numbers[FRIT_MAX_RANKS];   // n 0: no list
        const char *written;                  // NULL: as `name`
    } rows[] = {{"cpu:0-1", 2, {0, 1}, NULL},
                {"cuda:2-5", 4, {2, 3, 4, 5}, NULL},
                {"cuda:0,2", 2, {0, 2}, NULL},
                {"cuda:0,1,2", 3, {0, 1, 2}, "cuda:0-2"},
                {"cuda:3,0-1", 3, {3, 0, 1}, "cuda:3,0,1"},
                {"cpu:0", 1, {0}, NULL},
                {"cpu", 0, {0}, NULL},
                {"cpu:", 0, {0}, NULL},
                {":0-1", 0, {0}, NULL},
                {"cpu:1-0", 0, {0}, NULL},
                {"cpu:0-", 0, {0}, NULL},
                {"cpu:-1", 0, {0}, NULL},
                {"cpu:0,", 0, {0}, NULL},
                {"cpu:0,0", 0, {0}, NULL},
                {"cpu:0-2,1", 0, {0}, NULL},
                {"cpu:0-1x", 0, {0}, NULL},
                {"a-very-long-backend:0", 0, {0}, NULL}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_device_list list;
        char name[64];
        assert_int_equal(frit_device_list_parse(rows[i].name, &list), rows[i].n > 0);
        if (rows[i].n == 0) continue;
        assert_int_equal(list.n, rows[i].n);
        assert_memory_equal(list.numbers, rows[i].numbers, (size_t)list.n * sizeof *list.numbers);
        frit_device_list_name(&list, name, sizeof name);
        assert_string_equal(name, rows[i].written ? rows[i].written : rows[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(ranks_have_a_part_of_the_memory),
        cmocka_unit_test(names_of_lists_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

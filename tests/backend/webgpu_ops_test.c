// SPDX-License-Identifier: MIT
// Compares ops on a GPU through WebGPU with plain C on the CPU: several sequences in one step, page boundaries, all
// weight types and cache types. Arguments are weight types: only products of these types run. An argument with *
// selects tests by their names. Without an argument some cases are left out, which "all" has.
#include "backend/webgpu_compare.h"

// ------------------------------------------------------------------------------- ops

static frit_node *make_pair(source *s, int kind)
{
    frit_graph *g = &s->w->graph;
    frit_node *x = take(s, 96);
    switch (kind) {
    case 0:
        return frit_add(g, x, take(s, 96));
    case 1:
        return frit_mul(g, x, take(s, 96));
    case 2:
        return frit_mul(g, x, world_vector(s->w, 96));
    case 3:
        return frit_scale(g, x, 1.5F);
    case 4:
        return frit_softcap(g, x, 0.75F);
    case 5:
        return frit_clamp(g, x, -0.5F, 0.25F);
    case 6:
        return frit_concat(g, x, take(s, 33));
    case 7:
        return frit_slice(g, x, 5, 17);
    case 8:
        return frit_scale_rows(g, frit_reshape(g, x, 2, (int64_t[]){4, 24}), take_heads(s, 4, 1));
    case 9:
        return frit_softmax(g, x);
    case 10:
        return frit_gaussian_topk(g, x, 0.5F);
    case 11:
        return frit_rms_match(g, x, take(s, 96), 1e-5F);
    case 12:
        return frit_take_rows(g, x, s->w->out_node);
    case 13:
        return frit_xielu_node(g, x, (frit_xielu){0.8F, 0.6F, 0.5F, -1e-6F});
    case 14:
        return frit_mix_streams(g, frit_reshape(g, x, 2, (int64_t[]){3, 32}), take_heads(s, 2, 3));
    case 15:
        return frit_place_rows(g, x, frit_activate(g, take(s, 97), FRIT_ACT_RELU));
    default:
        return NULL;
    }
}

static void ops_on_numbers_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    for (int kind = 0;; kind++) {
        world w;
        source s;
        char what[32];
        open_any(&w, &s, (uint64_t)kind);
        w.graph.output = make_pair(&s, kind);
        if (!w.graph.output) {
            world_close(&w);
            break;
        }
        snprintf(what, sizeof what, "op %s", frit_op_get(w.graph.output->op)->name);
        compare(&w, 1e-11, what);
        world_close(&w);
    }
}

static void activations_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    for (int act = 0; act < FRIT_ACT_COUNT; act++) {
        world w;
        source s;
        char what[32];
        snprintf(what, sizeof what, "activation %d", act);
        open_any(&w, &s, (uint64_t)act);
        frit_node *x = frit_scale(&w.graph, take(&s, 512), 4);
        w.graph.output =
            act % 2 ? frit_glu(&w.graph, x, take(&s, 512), (frit_act)act) : frit_activate(&w.graph, x, (frit_act)act);
        compare(&w, 1e-11, what);
        world_close(&w);
    }
}

static void norms_are_those_of_the_reference(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 33, 64, 600, 4096};
    require_webgpu();
    for (size_t i = 0; i < 2 * FRIT_COUNT(widths); i++) {
        world w;
        source s;
        const int64_t n = widths[i / 2];
        open_any(&w, &s, i);
        frit_node *x = take(&s, n), *weight = world_vector(&w, n);
        w.graph.output = i % 2 ? frit_layer_norm(&w.graph, x, weight, world_vector(&w, n), 1e-5F)
                               : frit_rms_norm(&w.graph, x, i % 4 ? weight : NULL, 1e-5F);
        compare(&w, 1e-11, i % 2 ? "layer norm" : "norm");
        world_close(&w);
    }
}

static void rotations_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    for (int i = 0; i < 4; i++) {
        world w;
        world_open(&w, 2, (int[][2]){{0, 3}, {i % 2 ? 100000 : 7, 2}}, (uint64_t)i);
        source s = {.w = &w, .rows = world_rows(&w, WIDTH)};
        const frit_rope rope = {.style = i < 2 ? FRIT_ROPE_INTERLEAVED : FRIT_ROPE_NEOX,
                                .dim = 16,
                                .offset = i % 2 ? 8 : 0,
                                .magnitude = 1.25F};
        frit_tensor *frequencies = world_tensor(&w, FRIT_DTYPE_F32, 0, 8, 0);
        for (int k = 0; k < 8; k++) ((float *)(uintptr_t)frequencies->data)[k] = powf(10000, (float)-k / 8);
        w.graph.output = frit_rotate(&w.graph, take_heads(&s, 3, 24), w.position_node,
                                     frit_weight_node(&w.graph, frequencies), NULL, rope);
        compare(&w, 1e-11, "rope");
        world_close(&w);
    }
}

static void given_rotations_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    for (int i = 0; i < 4; i++) {
        world w;
        source s;
        open_any(&w, &s, (uint64_t)i);
        w.graph.output = random_turn(&s, i);
        compare(&w, 1e-11, "rope angles");
        world_close(&w);
    }
}

// ------------------------------------------------------------------------------- products

static char **wanted;
static bool is_full;   // all kinds of products of all types, and all cases of caches; otherwise some

static bool is_wanted(const char *name)
{
    for (char **word = wanted; word && *word; word++)
        if (strcmp(name, *word) == 0) return true;
    return !wanted || !*wanted;
}

// kind: 0 a product, 1 with a bias and a factor, 2 with a residual, 3 gates and values.
static void compare_product(frit_dtype dtype, uint64_t seed, int64_t n_in, int64_t n_out, int kind)
{
    world w;
    source s;
    char what[96];
    open_any(&w, &s, seed);
    frit_node *x = take(&s, n_in), *y;
    frit_tensor *a = world_tensor(&w, dtype, n_out, n_in, 0), *b = world_tensor(&w, dtype, n_out, n_in, 0);
    for (int64_t i = 0; i < n_out; i++) {
        random_weights(&w.rng, dtype, (uint8_t *)(uintptr_t)a->data + (size_t)i * frit_dtype_row_bytes(dtype, n_in),
                       n_in);
        random_weights(&w.rng, dtype, (uint8_t *)(uintptr_t)b->data + (size_t)i * frit_dtype_row_bytes(dtype, n_in),
                       n_in);
    }
    y = frit_matmul(&w.graph, frit_weight_node(&w.graph, a), x, kind == 1 ? world_vector(&w, n_out) : NULL);
    if (kind == 2) y = frit_add(&w.graph, take(&s, n_out), y);
    if (kind == 3)
        y = frit_glu(&w.graph, y, frit_matmul(&w.graph, frit_weight_node(&w.graph, b), x, NULL), FRIT_ACT_SILU);
    w.graph.output = y;
    snprintf(what, sizeof what, "product of %s, %d x %d, kind %d, seed %d", frit_dtype_get(dtype)->name, (int)n_out,
             (int)n_in, kind, (int)seed);
    compare(&w, 1e-8, what);
    world_close(&w);
}

// Steps of one row, whose products compute a norm of it for themselves if only they read it.
static void compare_normed(frit_dtype dtype, int64_t n_in, int64_t n_out, int kind)
{
    world w;
    char what[96];
    world_open(&w, 1, (int[][2]){{5, 1}}, (uint64_t)n_in);
    source s = {.w = &w, .rows = world_rows(&w, WIDTH)};
    frit_node *x = take(&s, n_in), *y[2];
    frit_node *norm = frit_rms_norm(&w.graph, x, world_vector(&w, n_in), 1e-5F);
    for (int k = 0; k < 2; k++) {
        frit_tensor *a = world_tensor(&w, dtype, n_out, n_in, 0);
        random_weights(&w.rng, dtype, (uint8_t *)(uintptr_t)a->data, n_out * n_in);
        y[k] = frit_matmul(&w.graph, frit_weight_node(&w.graph, a), norm, kind == 1 ? world_vector(&w, n_out) : NULL);
    }
    w.graph.output = kind == 2 ? frit_glu(&w.graph, y[0], y[1], FRIT_ACT_SILU)
                     : kind == 3
                         ? frit_add(&w.graph, frit_mul(&w.graph, y[0], y[1]), frit_slice(&w.graph, norm, 0, n_out))
                         : frit_mul(&w.graph, y[0], y[1]);
    snprintf(what, sizeof what, "products of a norm, %s, %d x %d, kind %d", frit_dtype_get(dtype)->name, (int)n_out,
             (int)n_in, kind);
    compare(&w, 1e-7, what);   // products are multiplied with each other
    world_close(&w);
}

static void products_of_norms_are_those_of_the_reference(void **state)
{
    static const frit_dtype types[] = {FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q8_0, FRIT_DTYPE_F16};
    static const int64_t widths[] = {256, 512, 1280, 2560, 4096, 4352, 5120, 288};
    (void)state;
    require_webgpu();
    for (size_t i = 0; i < FRIT_COUNT(widths); i++)
        for (size_t t = 0; t < (is_full ? FRIT_COUNT(types) : 1); t++) {
            const frit_dtype dtype = widths[i] % 256 == 0 ? types[(i + t) % FRIT_COUNT(types)] : FRIT_DTYPE_Q8_0;
            compare_normed(dtype, widths[i], 40, (int)(i + t) % 4);
        }
}

static bool has_products(frit_dtype dtype)
{
    world w;
    source s;
    open_any(&w, &s, 0);
    frit_tensor *a = world_tensor(&w, dtype, 16, 256, 0);
    frit_node *y = frit_matmul(&w.graph, frit_weight_node(&w.graph, a), take(&s, 256), NULL);
    const bool runs = y && frit_backend_webgpu.runs(NULL, y);
    world_close(&w);
    return runs;
}

static void products_of_all_types_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    for (int t = 0; t < FRIT_DTYPE_COUNT; t++) {
        if (!has_products((frit_dtype)t) || !is_wanted(frit_dtype_get((frit_dtype)t)->name)) continue;
        compare_product((frit_dtype)t, 0, 256, 32, 0);
        compare_product((frit_dtype)t, 3, 512, 48, 3);
        if (!is_full && t != FRIT_DTYPE_Q4_K && t != FRIT_DTYPE_F16) continue;
        compare_product((frit_dtype)t, 1, 1280, 40, 1);
        compare_product((frit_dtype)t, 2, 2304, 24, 2);
        compare_product((frit_dtype)t, 3, 1280, 100, 1);
    }
}

// Random numbers of rows and columns, with few and many rows of the input.
static void products_of_any_shape_are_those_of_the_reference(void **state)
{
    enum { N_SHAPES = 4, COLUMNS = 2560 };
    frit_rng rng;
    (void)state;
    require_webgpu();
    frit_rng_init(&rng, 1);
    for (int t = 0; t < FRIT_DTYPE_COUNT; t++) {
        const int64_t each =
            frit_dtype_get((frit_dtype)t)->block_elems < 32 ? 32 : frit_dtype_get((frit_dtype)t)->block_elems;
        if (!has_products((frit_dtype)t)) continue;
        for (int i = 0; i < (is_full ? N_SHAPES : 0) || (i < 1 && t == FRIT_DTYPE_Q5_K); i++)
            compare_product((frit_dtype)t, (uint64_t)(t + i), each * random_between(&rng, 1, COLUMNS / each),
                            random_between(&rng, 1, 200), (int)random_between(&rng, 0, 3));
    }
}

static void short_rows_are_padded(void **state)
{
    (void)state;
    static const frit_dtype types[] = {FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q8_0, FRIT_DTYPE_F16, FRIT_DTYPE_F32,
                                       FRIT_DTYPE_MXFP4};
    require_webgpu();
    for (size_t i = 0; i < FRIT_COUNT(types); i++)
        for (int kind = 0; kind < 3; kind++) compare_product(types[i], i, 32 + 64 * (int64_t)i, 7 + (int64_t)i, kind);
}

// ------------------------------------------------------------------------------- the cache

// Keys of types without blocks are transposed, as the engine lays them out.
static void make_cache(world *w, frit_kv_types types, int n_kv, int dim)
{
    world_cache(w, types, n_kv, dim, dim);
    w->layer.k.transposed = frit_dtype_get(types.k)->block_elems == 1;
}

static void compare_attention(frit_kv_types types, int n_head, int n_kv, int dim, frit_attend attend, uint64_t seed,
                              double limit)
{
    world w;
    source s;
    char what[96];
    open_any(&w, &s, seed);
    make_cache(&w, types, n_kv, dim);
    frit_node *written = frit_kv_write(&w.graph, take_heads(&s, n_kv, dim), take_heads(&s, n_kv, dim), 0);
    frit_node *q = take_heads(&s, n_head, dim);
    w.graph.output = attend.ends_at > 0 ? frit_attend_with_ends(&w.graph, q, written, world_ends(&w), attend, dim)
                                        : frit_attend_node(&w.graph, q, written, attend, dim);
    snprintf(what, sizeof what, "attention of %s and %s, %d of %d heads of %d, seed %d", frit_dtype_get(types.k)->name,
             frit_dtype_get(types.v)->name, n_head, n_kv, dim, (int)seed);
    compare(&w, limit, what);
    world_close(&w);
}

static void caches_of_all_types_are_those_of_the_reference(void **state)
{
    (void)state;
    static const struct {
        frit_dtype dtype;
        double limit;
    } types[] = {{FRIT_DTYPE_F32, 1e-11},
                 {FRIT_DTYPE_F16, 1e-11},
                 {FRIT_DTYPE_BF16, 1e-11},
                 {FRIT_DTYPE_Q8_0, 1e-6},
                 {FRIT_DTYPE_Q4_0, 1e-4}};
    require_webgpu();
    for (size_t i = 0; i < FRIT_COUNT(types); i++)
        for (uint64_t seed = is_full ? 0 : 2; seed < 4; seed++) {
            const frit_kv_types both = {types[i].dtype, types[i].dtype}, mixed = {types[i].dtype, FRIT_DTYPE_F16};
            compare_attention(both, 4, 2, 64, (frit_attend){.scale = 0.125F}, seed, types[i].limit);
            if (seed == 3) compare_attention(mixed, 7, 1, 128, (frit_attend){.scale = 0.1F}, seed, types[i].limit);
        }
}

static void attention_has_all_properties(void **state)
{
    (void)state;
    static const frit_attend kinds[] = {{.scale = 0.2F, .window = 9},
                                        {.scale = 0.2F, .chunk = 16},
                                        {.scale = 0.2F, .softcap = 3},
                                        {.scale = 0.2F, .alibi = 8},
                                        {.scale = 0.2F, .bidirectional = true},
                                        {.scale = 0.2F, .ends_at = 1},
                                        {.scale = 0.2F, .ends_at = 1, .window = 9},
                                        {.scale = 0.2F, .temp_scale = 0.1F, .temp_offset = 1, .temp_length = 8}};
    require_webgpu();
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++) compare_attention(KV_F32, 6, 2, 32, kinds[i], 3, 1e-10);
    compare_attention(KV_F32, 20, 1, 80, kinds[0], 2, 1e-10);
    compare_attention(KV_F16, 2, 2, 256, kinds[1], 1, 1e-10);
}

// More positions than one part of attention has.
static void long_texts_have_parts(void **state)
{
    (void)state;
    static const frit_dtype types[] = {FRIT_DTYPE_F16, FRIT_DTYPE_Q8_0};
    require_webgpu();
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        world w;
        world_open(&w, 2, (int[][2]){{1000, 1}, {300, 2}}, i);
        source s = {.w = &w, .rows = world_rows(&w, WIDTH)};
        make_cache(&w, (frit_kv_types){types[i], types[i]}, 2, 64);
        frit_node *written = frit_kv_write(&w.graph, take_heads(&s, 2, 64), take_heads(&s, 2, 64), 0);
        w.graph.output = frit_attend_node(&w.graph, take_heads(&s, 4, 64), written, (frit_attend){.scale = 0.3F}, 64);
        compare(&w, types[i] == FRIT_DTYPE_F16 ? 1e-10 : 1e-6, "long text");
        world_close(&w);
    }
}

int main(int argc, char **argv)
{
    is_full = argc > 1;
    if (argc > 1 && strcmp(argv[1], "all") == 0) argc--, argv++;
    const bool by_name = argc > 1 && strchr(argv[1], '*');
    wanted = by_name || argc < 2 ? NULL : argv + 1;
    if (by_name) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest all[] = {
        cmocka_unit_test(ops_on_numbers_are_those_of_the_reference),
        cmocka_unit_test(activations_are_those_of_the_reference),
        cmocka_unit_test(norms_are_those_of_the_reference),
        cmocka_unit_test(rotations_are_those_of_the_reference),
        cmocka_unit_test(given_rotations_are_those_of_the_reference),
        cmocka_unit_test(products_of_all_types_are_those_of_the_reference),
        cmocka_unit_test(products_of_any_shape_are_those_of_the_reference),
        cmocka_unit_test(products_of_norms_are_those_of_the_reference),
        cmocka_unit_test(short_rows_are_padded),
        cmocka_unit_test(caches_of_all_types_are_those_of_the_reference),
        cmocka_unit_test(attention_has_all_properties),
        cmocka_unit_test(long_texts_have_parts),
    };
    const struct CMUnitTest products[] = {cmocka_unit_test(products_of_all_types_are_those_of_the_reference)};
    return argc > 1 && !by_name ? cmocka_run_group_tests(products, NULL, NULL)
                                : cmocka_run_group_tests(all, NULL, NULL);
}

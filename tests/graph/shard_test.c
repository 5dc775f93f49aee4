// SPDX-License-Identifier: MIT
// Shards: the ranks of a group compute what one device computes, for graphs of layers whose sizes and ops are random.
#include "graph/evaluate.h"
#include "graph/example.h"
#include "graph/shard.h"

#include "format/rows.h"

enum { TRIALS = 300, HEAD = 4 };

static const int32_t tokens[EXAMPLE_ROWS] = {3, 1, 4, 1, 5, 9}, out_rows[EXAMPLE_OUTS] = {2, 5};

// ------------------------------------------------------------------------------- running ranks

typedef struct ranks {
    int n, rank;   // `rank`: whose graph is being copied
    frit_arena arena;
    frit_graph graphs[FRIT_MAX_RANKS];
    evaluate_cache caches[FRIT_MAX_RANKS];
    evaluation all[FRIT_MAX_RANKS];
    bool in_floats;
} ranks;

// Reads a part into memory, as the formulas read it.
static const frit_tensor *part_of(void *ctx, const frit_node *weight)
{
    ranks *r = ctx;
    frit_tensor *part = frit_arena_new(&r->arena, frit_tensor, 1);
    assert_ok(frit_shard_tensor(&r->arena, weight->tensor, &weight->cut, r->rank, part));
    if (part->data) return part;
    uint8_t *rows = frit_arena_alloc(&r->arena, 1, (size_t)part->n_bytes + 1),
            *scratch = malloc(frit_tensor_scratch_bytes(part) + 1);
    frit_tensor_read(part, 0, frit_tensor_n_rows(part), rows, scratch);
    free(scratch);
    part->data = rows;
    part->recipe = NULL;
    return part;
}

static void make_ranks(ranks *r, const frit_graph *g, int n)
{
    *r = (ranks){.n = n};
    for (r->rank = 0; r->rank < n; r->rank++) {
        assert_ok(frit_shard_copy(&r->graphs[r->rank], &r->arena, g, part_of, r));
        r->all[r->rank] = (evaluation){.tokens = tokens,
                                       .out_rows = out_rows,
                                       .values = calloc((size_t)g->n_nodes + 1, sizeof(double *)),
                                       .cache = &r->caches[r->rank],
                                       .ranks = r->all,
                                       .graphs = r->graphs,
                                       .n_ranks = n,
                                       .rank = r->rank};
    }
}

static void free_ranks(ranks *r)
{
    for (int i = 0; i < r->n; i++) {
        for (int k = 0; k < r->graphs[i].n_nodes; k++) free(r->all[i].values[k]);
        free(r->all[i].values);
        evaluate_cache_free(&r->caches[i]);
    }
    frit_arena_free(&r->arena);
}

static const double *result_of(ranks *r, int rank)
{
    return evaluate_node(&r->all[rank], r->graphs[rank].output);
}

// The bytes of weights that a rank's products read.
static uint64_t product_bytes(const frit_graph *g)
{
    uint64_t n_bytes = 0;
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == FRIT_OP_LINEAR) n_bytes += g->nodes[i]->src[1]->tensor->n_bytes;
    return n_bytes;
}

// ------------------------------------------------------------------------------- random models

typedef struct sizes {
    int64_t n_embd, n_head, n_kv, n_ff, n_vocab;
    bool has_bias, has_head_norms, has_norm_of_all, is_parallel, has_factor, is_fused;
    int n_layers;
} sizes;

static int64_t one_of(frit_rng *rng, int n, const int64_t *list)
{
    return list[frit_rng_next(rng) % (uint64_t)n];
}

static sizes random_sizes(frit_rng *rng)
{
    const bool flags[] = {1 & frit_rng_next(rng) >> 7, 1 & frit_rng_next(rng) >> 7, 1 & frit_rng_next(rng) >> 7,
                          1 & frit_rng_next(rng) >> 7, 1 & frit_rng_next(rng) >> 7, 1 & frit_rng_next(rng) >> 7};
    sizes s = {.n_embd = one_of(rng, 3, (int64_t[]){16, 24, 20}),
               .n_head = one_of(rng, 4, (int64_t[]){4, 8, 6, 3}),
               .n_ff = one_of(rng, 4, (int64_t[]){32, 24, 20, 7}),
               .n_vocab = EXAMPLE_VOCAB,
               .has_bias = flags[0],
               .has_head_norms = flags[1],
               .has_norm_of_all = flags[2],
               .is_parallel = flags[3],
               .has_factor = flags[4],
               .is_fused = flags[5],
               .n_layers = 1 + (int)(frit_rng_next(rng) % 2)};
    s.n_kv = s.n_head / one_of(rng, 3, (int64_t[]){1, 2, s.n_head});
    if (s.n_kv == 0 || s.n_head % s.n_kv != 0) s.n_kv = s.n_head;
    return s;
}

static frit_node *product(example *e, const sizes *s, frit_node *x, int64_t n_out, bool has_bias)
{
    const int64_t n_in = x->shape[x->n_dims - 1];
    frit_node *bias = has_bias ? example_weight(e, "b", n_out, 0) : NULL;
    frit_node *y = frit_matmul(&e->g, example_weight(e, "w", n_out, n_in), x, bias);
    return s->has_factor ? frit_scale(&e->g, y, 0.5f) : y;
}

static frit_node *by_heads(example *e, const sizes *s, frit_node *x, int64_t n_head)
{
    frit_graph *g = &e->g;
    if (s->has_norm_of_all) x = frit_rms_norm(g, x, example_weight(e, "norm", n_head * HEAD, 0), 1e-5f);
    x = frit_reshape(g, x, 2, (int64_t[]){n_head, HEAD});
    if (s->has_head_norms) x = frit_rms_norm(g, x, example_weight(e, "norm", HEAD, 0), 1e-5f);
    return x;
}

static frit_node *attention(example *e, const sizes *s, frit_node *h, frit_node *positions, int layer)
{
    frit_graph *g = &e->g;
    const frit_rope rope = {.style = FRIT_ROPE_NEOX, .dim = HEAD, .magnitude = 1};
    frit_node *inv_freq = example_frequencies(e, HEAD / 2), *q, *k, *v;
    const int64_t n_q = s->n_head * HEAD, n_k = s->n_kv * HEAD;
    if (s->is_fused) {
        frit_node *all = product(e, s, h, n_q + 2 * n_k, s->has_bias);
        q = frit_slice(g, all, 0, n_q), k = frit_slice(g, all, n_q, n_k), v = frit_slice(g, all, n_q + n_k, n_k);
    } else {
        q = product(e, s, h, n_q, s->has_bias), k = product(e, s, h, n_k, s->has_bias);
        v = product(e, s, h, n_k, s->has_bias);
    }
    q = frit_rotate(g, by_heads(e, s, q, s->n_head), positions, inv_freq, NULL, rope);
    k = frit_rotate(g, by_heads(e, s, k, s->n_kv), positions, inv_freq, NULL, rope);
    frit_node *written = frit_kv_write(g, k, frit_reshape(g, v, 2, (int64_t[]){s->n_kv, HEAD}), layer);
    h = frit_attend_node(g, q, written, (frit_attend){.layer = layer, .scale = 0.5f}, HEAD);
    h = frit_reshape(g, h, 1, &n_q);
    return product(e, s, h, s->n_embd, s->has_bias);
}

static frit_node *gated(example *e, const sizes *s, frit_node *h)
{
    frit_node *gate = product(e, s, h, s->n_ff, s->has_bias), *up = product(e, s, h, s->n_ff, false);
    return product(e, s, frit_glu(&e->g, gate, up, FRIT_ACT_SILU), s->n_embd, s->has_bias);
}

static void random_model(example *e, const sizes *s)
{
    frit_graph *g = &e->g;
    frit_node *positions = frit_input_node(g, FRIT_INPUT_POSITIONS);
    frit_node *x = example_rows(e, s->n_embd);
    for (int i = 0; i < s->n_layers; i++) {
        frit_node *h = frit_rms_norm(g, x, example_weight(e, "norm", s->n_embd, 0), 1e-5f);
        frit_node *a = attention(e, s, h, positions, i);
        if (!s->is_parallel) {
            x = frit_add(g, x, a);
            h = frit_rms_norm(g, x, example_weight(e, "norm", s->n_embd, 0), 1e-5f);
        }
        frit_node *m = gated(e, s, h);
        x = frit_add(g, x, s->is_parallel ? frit_add(g, a, m) : m);
    }
    x = frit_take_rows(g, x, frit_input_node(g, FRIT_INPUT_OUT_ROWS));
    x = frit_rms_norm(g, x, example_weight(e, "norm", s->n_embd, 0), 1e-5f);
    g->output = product(e, s, x, s->n_vocab, false);
    assert_ok(frit_graph_check(g));
}

// ------------------------------------------------------------------------------- tests

typedef struct found {
    int n_ops[FRIT_OP_COUNT];
    uint64_t whole_bytes, rank_bytes;
} found;

// Compares the ranks with the model, and returns what the graph of a rank has.
static found expect_same(const sizes *s, uint64_t seed, int n_ranks, bool is_exact)
{
    example e;
    example_start(&e);
    frit_rng_init(&e.rng, seed);
    random_model(&e, s);
    float *expected = evaluate_graph(&e.g, tokens, out_rows);
    int8_t parts[EVALUATE_LAYERS] = {0};
    found result = {.whole_bytes = product_bytes(&e.g)};
    frit_fuse(&e.g);
    const frit_node *output = e.g.output;
    assert_ok(
        frit_shard_graph(&e.g, &(frit_shard_options){.n_ranks = n_ranks, .is_exact = is_exact, .cache_parts = parts}));
    assert_ptr_equal(e.g.output, output);
    ranks r;
    make_ranks(&r, &e.g, n_ranks);
    for (int i = 0; i < n_ranks; i++) {
        const double *y = result_of(&r, i);
        for (int64_t k = 0; k < EXAMPLE_OUTS * s->n_vocab; k++) assert_float_equal((float)y[k], expected[k], 1e-4f);
        frit_plan *plan;
        assert_ok(frit_plan_new(&plan, &r.graphs[i], &(frit_plan_options){.is_fused = true}));
        if (i > 0) continue;
        for (int k = 0; k < FRIT_OP_COUNT; k++) result.n_ops[k] = count_ops(plan, (frit_op)k);
    }
    result.rank_bytes = product_bytes(&r.graphs[0]);
    free_ranks(&r);
    free(expected);
    example_end(&e);
    return result;
}

static const sizes llama = {.n_embd = 16, .n_head = 4, .n_kv = 2, .n_ff = 32, .n_vocab = EXAMPLE_VOCAB, .n_layers = 2};

static void a_layer_has_two_sums_and_half_of_the_weights(void **state)
{
    (void)state;
    const found f = expect_same(&llama, 1, 2, false);
    assert_int_equal(f.n_ops[FRIT_OP_REDUCE], 2 * llama.n_layers);
    assert_int_equal(f.n_ops[FRIT_OP_GATHER], 1);   // of logits
    assert_int_equal(f.n_ops[FRIT_OP_PART], 0);
    assert_int_equal(2 * f.rank_bytes, f.whole_bytes);
}

static void ranks_share_a_head_of_keys_if_there_are_more_ranks(void **state)
{
    (void)state;
    const found f = expect_same(&llama, 2, 4, false);
    assert_int_equal(f.n_ops[FRIT_OP_REDUCE], 2 * llama.n_layers);
    assert_int_equal(f.n_ops[FRIT_OP_GATHER], 1);
    assert_int_equal(f.n_ops[FRIT_OP_PART], 0);
}

static void what_ranks_do_not_divide_stays_whole(void **state)
{
    (void)state;
    sizes odd = llama;
    odd.n_ff = 31;
    odd.n_vocab = 19;
    const found f = expect_same(&odd, 3, 3, false);
    assert_int_equal(f.n_ops[FRIT_OP_REDUCE] + f.n_ops[FRIT_OP_GATHER] + f.n_ops[FRIT_OP_PART], 0);
    assert_int_equal(f.rank_bytes, f.whole_bytes);
}

static void a_block_with_parallel_branches_has_one_sum(void **state)
{
    (void)state;
    sizes parallel = llama;
    parallel.is_parallel = true;
    assert_int_equal(expect_same(&parallel, 4, 2, false).n_ops[FRIT_OP_REDUCE], llama.n_layers);
    assert_int_equal(expect_same(&parallel, 4, 2, true).n_ops[FRIT_OP_REDUCE], 2 * llama.n_layers);
}

static void one_rank_adds_leaves_and_exchanges_nothing(void **state)
{
    (void)state;
    const found f = expect_same(&llama, 5, 1, true);
    assert_int_equal(f.n_ops[FRIT_OP_REDUCE] + f.n_ops[FRIT_OP_GATHER] + f.n_ops[FRIT_OP_PART], 0);
    assert_int_equal(f.n_ops[FRIT_OP_LINEAR], llama.n_layers * (5 + 2 * 8) + 1);
    assert_int_equal(f.rank_bytes, f.whole_bytes);
    const found none = expect_same(&llama, 5, 1, false);
    assert_int_equal(none.n_ops[FRIT_OP_LINEAR], llama.n_layers * 7 + 1);
}

static void random_models_compute_the_same(void **state)
{
    (void)state;
    const int counts[] = {1, 2, 3, 4, 8};
    uint64_t n_reduces = 0;
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        frit_rng rng;
        frit_rng_init(&rng, seed);
        const sizes s = random_sizes(&rng);
        n_reduces += (uint64_t)expect_same(&s, seed, counts[seed % 5], seed % 2).n_ops[FRIT_OP_REDUCE];
    }
    assert_true(n_reduces > TRIALS / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_has_two_sums_and_half_of_the_weights),
        cmocka_unit_test(ranks_share_a_head_of_keys_if_there_are_more_ranks),
        cmocka_unit_test(what_ranks_do_not_divide_stays_whole),
        cmocka_unit_test(a_block_with_parallel_branches_has_one_sum),
        cmocka_unit_test(one_rank_adds_leaves_and_exchanges_nothing),
        cmocka_unit_test(random_models_compute_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

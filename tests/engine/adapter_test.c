// SPDX-License-Identifier: MIT
// Adapters: equality with merged weights, sessions that share steps, control vectors, bad files.
#include "engine/adapter_world.h"
#include "support/adapters.h"
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"
#include "format/gguf.h"

#include <dirent.h>
#include <math.h>

enum { N_TOKENS = 40 };

typedef struct rows {
    float *logits;   // [N_TOKENS, n_vocab]
    size_t n_vocab;
} rows;

static void keep_row(void *ctx, size_t i, const float *logits, size_t n)
{
    rows *r = ctx;
    memcpy(r->logits + i * n, logits, n * sizeof *logits);
}

static frit_token token_at(const world *w, size_t i)
{
    return (frit_token)((i * 7 + 3) % (size_t)w->info.n_vocab);
}

static rows new_rows(const world *w)
{
    const size_t n_vocab = (size_t)w->info.n_vocab;
    return (rows){calloc(N_TOKENS * n_vocab, sizeof(float)), n_vocab};
}

static void push(const world *w, frit_session *session, rows *r, size_t first, size_t n)
{
    frit_token tokens[N_TOKENS];
    for (size_t i = 0; i < n; i++) tokens[i] = token_at(w, first + i);
    assert_ok(frit_session_push(session, tokens, n,
                                &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = r}));
}

// Returns the logits after each token, with these adapters.
static rows run(const world *w, frit_adapter *const *adapters, const float *scales, size_t n)
{
    frit_session *session;
    rows r = new_rows(w);
    assert_ok(frit_session_new(&session, w->engine));
    assert_ok(frit_session_set_adapters(session, adapters, scales, n));
    push(w, session, &r, 0, N_TOKENS);
    run_all(w->engine);
    frit_session_free(session);
    return r;
}

static size_t n_of(const rows *r)
{
    return N_TOKENS * r->n_vocab;
}

// ------------------------------------------------------------------------------- merged weights

static void check_merged(const char *model, const adapter_options *options, const char *cpu, double limit)
{
    size_t n_pairs;
    const float scale = 0.75f;
    const char *adapter_path = make_adapter("a.gguf", model, options, &n_pairs);
    assert_true(n_pairs > 0);
    const char *merged_path = merge_adapters("merged.gguf", model, &adapter_path, &scale, 1);
    world base = open_world(model, cpu), merged = open_world(merged_path, cpu);
    frit_adapter *adapter;
    assert_ok(frit_adapter_open(&adapter, base.model, adapter_path, NULL));
    rows plain = run(&base, NULL, NULL, 0), expected = run(&merged, NULL, NULL, 0);
    rows found = run(&base, &adapter, &scale, 1);
    const double error = nmse(found.logits, expected.logits, n_of(&found));
    const double change = nmse(plain.logits, expected.logits, n_of(&found));
    print_message("%s: %zu pairs, NMSE %.1e where the adapter changes %.1e\n", strrchr(model, '/') + 1, n_pairs, error,
                  change);
    assert_true(change > 1e-4);
    assert_true(error <= limit);
    free(plain.logits);
    free(expected.logits);
    free(found.logits);
    frit_adapter_free(adapter);
    close_world(&base);
    close_world(&merged);
}

static const struct {
    const char *name, *without;
} goldens[] = {
    {"llama-dense", NULL},   {"llama-moe", NULL},      {"qwen3moe-moe", NULL},    {"qwen2moe-moe", NULL},
    {"phi3-dense", NULL},    {"gpt2-dense", NULL},     {"falcon-dense", NULL},    {"gemma2-dense", NULL},
    {"deepseek2-moe", NULL}, {"mamba2-dense", NULL},   {"mamba-dense", NULL},     {"jamba-dense", NULL},
    {"gpt-oss-moe", NULL},   {"olmo-dense", NULL},     {"command-r-dense", NULL}, {"qwen3next-moe", "ssm_in"},
    {"bloom-dense", NULL},   {"stablelm-dense", NULL},
};

static void check_goldens(adapter_options options, const char *cpu)
{
    for (size_t i = 0; i < FRIT_COUNT(goldens); i += FRIT_TEST_STRIDE) {
        options.without = goldens[i].without;
        const char *path = shared_path("goldens/arch/%s.gguf", goldens[i].name);
        check_merged(without_scales(goldens[i].name, path), &options, cpu, 1e-10);
    }
}

static void adapters_give_the_logits_of_merged_weights(void **state)
{
    (void)state;
    check_goldens((adapter_options){.alpha = 8}, "reference");
}

static void fast_kernels_give_them_too(void **state)
{
    (void)state;
    check_goldens((adapter_options){.rank = 19}, NULL);
}

static void a_tiny_model_may_have_adapters_of_any_type(void **state)
{
    (void)state;
    const frit_dtype types[] = {FRIT_DTYPE_F32, FRIT_DTYPE_F16, FRIT_DTYPE_BF16};
    const char *const cpus[] = {"reference", "scalar", NULL};
    const char *model = tiny_model("tiny.gguf", &(tiny_options){0});
    for (size_t t = 0; t < FRIT_COUNT(types); t++)
        for (size_t c = 0; c < FRIT_COUNT(cpus); c++)
            check_merged(model, &(adapter_options){.rank = 1 + 40 * (int32_t)t, .type = types[t]}, cpus[c],
                         c == 0 ? 1e-10 : 1e-8);
}

// ------------------------------------------------------------------------------- sharing steps

static void assert_same(const rows *a, const rows *b)
{
    assert_memory_equal(a->logits, b->logits, n_of(a) * sizeof(float));
}

static void sessions_that_share_steps_give_what_each_gives_alone(void **state)
{
    (void)state;
    const char *const names[] = {"llama-dense", "qwen3moe-moe", "phi3-dense",     "qwen2moe-moe",
                                 "olmo-dense",  "mamba2-dense", "command-r-dense"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        const char *model = shared_path("goldens/arch/%s.gguf", names[i]);
        const char *paths[] = {make_adapter("a.gguf", model, &(adapter_options){.seed = 1}, NULL),
                               make_adapter("b.gguf", model, &(adapter_options){.seed = 2, .rank = 7}, NULL)};
        // Each session in an engine of its own; the last one without adapters.
        rows alone[3];
        for (int k = 0; k < 3; k++) {
            world w = open_world(model, NULL);
            frit_adapter *adapter = NULL;
            if (k < 2) assert_ok(frit_adapter_open(&adapter, w.model, paths[k], NULL));
            alone[k] = run(&w, &adapter, (float[]){0.5f}, k < 2);
            frit_adapter_free(adapter);
            close_world(&w);
        }
        world w = open_world(model, NULL);
        frit_session *sessions[3];
        frit_adapter *adapters[2];
        rows together[3];
        for (int k = 0; k < 3; k++) {
            assert_ok(frit_session_new(&sessions[k], w.engine));
            together[k] = new_rows(&w);
            if (k == 2) continue;
            assert_ok(frit_adapter_open(&adapters[k], w.model, paths[k], NULL));
            assert_ok(frit_session_set_adapters(sessions[k], &adapters[k], (float[]){0.5f}, 1));
        }
        for (int k = 0; k < 3; k++) push(&w, sessions[k], &together[k], 0, N_TOKENS);
        run_all(w.engine);
        for (int k = 0; k < 3; k++) assert_same(&together[k], &alone[k]);
        for (int k = 0; k < 3; k++) frit_session_free(sessions[k]);
        for (int k = 0; k < 2; k++) frit_adapter_free(adapters[k]);
        close_world(&w);
        for (int k = 0; k < 3; k++) free(together[k].logits), free(alone[k].logits);
    }
}

static void token_by_token_they_share_steps_too(void **state)
{
    (void)state;
    const char *model = shared_path("goldens/arch/%s.gguf", "llama-dense");
    const char *path = make_adapter("a.gguf", model, &(adapter_options){.seed = 1}, NULL);
    world w = open_world(model, NULL);
    frit_adapter *adapter;
    assert_ok(frit_adapter_open(&adapter, w.model, path, NULL));
    rows expected[2] = {run(&w, &adapter, (float[]){2}, 1), run(&w, NULL, NULL, 0)};
    frit_session *sessions[2];
    for (int k = 0; k < 2; k++) assert_ok(frit_session_new(&sessions[k], w.engine));
    assert_ok(frit_session_set_adapters(sessions[0], &adapter, (float[]){2}, 1));
    const size_t n_vocab = (size_t)w.info.n_vocab;
    for (size_t i = 0; i < N_TOKENS; i++) {
        const frit_token token = token_at(&w, i);
        int32_t n_rows;
        for (int k = 0; k < 2; k++) assert_ok(frit_session_push(sessions[k], &token, 1, NULL));
        assert_ok(frit_engine_step(w.engine, &n_rows));
        assert_int_equal(n_rows, 2);
        for (int k = 0; k < 2; k++)
            assert_true(nmse(frit_session_logits(sessions[k]), expected[k].logits + i * n_vocab, n_vocab) < 1e-9);
    }
    for (int k = 0; k < 2; k++) frit_session_free(sessions[k]), free(expected[k].logits);
    frit_adapter_free(adapter);
    close_world(&w);
}

static void a_scale_of_0_is_no_adapter_and_several_add_up(void **state)
{
    (void)state;
    const char *model = tiny_model("tiny.gguf", &(tiny_options){0});
    const char *paths[] = {make_adapter("a.gguf", model, &(adapter_options){.seed = 1, .without = "ffn"}, NULL),
                           make_adapter("b.gguf", model, &(adapter_options){.seed = 2, .alpha = 3}, NULL)};
    const float scales[] = {0.5f, -1.25f};
    world base = open_world(model, "reference");
    frit_adapter *adapters[2];
    rows plain = run(&base, NULL, NULL, 0);
    for (int i = 0; i < 2; i++) assert_ok(frit_adapter_open(&adapters[i], base.model, paths[i], NULL));
    rows zero = run(&base, adapters, (float[]){0, 0}, 2), both = run(&base, adapters, scales, 2);
    assert_same(&zero, &plain);
    world merged = open_world(merge_adapters("merged.gguf", model, paths, scales, 2), "reference");
    rows expected = run(&merged, NULL, NULL, 0);
    assert_true(nmse(both.logits, expected.logits, n_of(&both)) <= 1e-10);
    rows again = run(&base, NULL, NULL, 0);
    assert_same(&again, &plain);
    free(plain.logits), free(zero.logits), free(both.logits), free(expected.logits), free(again.logits);
    for (int i = 0; i < 2; i++) frit_adapter_free(adapters[i]);
    close_world(&base);
    close_world(&merged);
}

static void adapters_come_and_go(void **state)
{
    (void)state;
    const char *model = tiny_model("tiny.gguf", &(tiny_options){0});
    world w = open_world(model, NULL);
    frit_session *session;
    assert_ok(frit_session_new(&session, w.engine));
    rows first = {0};
    for (uint64_t i = 0; i < 12; i++) {   // more than the table has at first
        frit_adapter *adapter;
        const char *path = make_adapter("a.gguf", model, &(adapter_options){.seed = i % 3}, NULL);
        assert_ok(frit_adapter_open(&adapter, w.model, path, NULL));
        assert_ok(frit_session_set_adapters(session, &adapter, (float[]){1}, 1));
        frit_adapter_free(adapter);   // the session keeps it
        rows r = new_rows(&w);
        assert_ok(frit_session_truncate(session, 0));
        push(&w, session, &r, 0, N_TOKENS);
        run_all(w.engine);
        if (i == 0) first = r;
        if (i % 3 == 0) assert_same(&r, &first);
        if (i % 3 != 0) assert_true(nmse(r.logits, first.logits, n_of(&r)) > 1e-4);
        if (i > 0) free(r.logits);
    }
    free(first.logits);
    frit_session_free(session);
    close_world(&w);
}

typedef struct change {   // of a session's adapters, and of the other session's
    float scales[2], beside[2];
} change;

// Runs a prompt of each session and one more token, in steps that both share.
static void run_pair(const world *w, frit_adapter *const *adapters, const change *c, rows found[2])
{
    frit_session *sessions[2] = {make_session(w->engine), make_session(w->engine)};
    assert_ok(frit_session_set_adapters(sessions[0], adapters, c->scales, 2));
    assert_ok(frit_session_set_adapters(sessions[1], adapters, c->beside, 2));
    for (int k = 0; k < 2; k++) found[k] = new_rows(w);
    for (int k = 0; k < 2; k++) push(w, sessions[k], &found[k], 0, N_TOKENS - 1);
    run_all(w->engine);
    for (int k = 0; k < 2; k++) {
        const frit_token token = token_at(w, N_TOKENS - 1);
        rows last = {found[k].logits + (N_TOKENS - 1) * found[k].n_vocab, found[k].n_vocab};
        assert_ok(
            frit_session_push(sessions[k], &token, 1,
                              &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = &last}));
        run_all(w->engine);
    }
    for (int k = 0; k < 2; k++) frit_session_free(sessions[k]);
}

// The adapters have different ranks and matrices.
static void attaching_detaching_and_scaling_make_no_plan(void **state)
{
    (void)state;
    static const change changes[] = {
        {{1, 0}, {0, 0}},      {{0, 0}, {0, 0}},    {{0.5f, 0}, {0, 0}},  {{0, 1}, {1, 0}},
        {{0, -0.75f}, {0, 0}}, {{1, 0.5f}, {0, 1}}, {{0, 0}, {0.25f, 2}}, {{1, 0}, {0, 0}},
    };
    const char *model = tiny_model("tiny.gguf", &(tiny_options){.n_layer = 3});
    const char *paths[] = {
        make_adapter("a.gguf", model, &(adapter_options){.seed = 1, .only = "attn_q."}, NULL),
        make_adapter("b.gguf", model, &(adapter_options){.seed = 2, .rank = 19, .without = "attn_q."}, NULL)};
    size_t n_made = 0;
    world w = open_world(model, NULL);
    frit_adapter *adapters[2];
    for (int i = 0; i < 2; i++) assert_ok(frit_adapter_open(&adapters[i], w.model, paths[i], NULL));
    for (size_t i = 0; i < FRIT_COUNT(changes); i++) {
        rows found[2], alone[2];
        run_pair(&w, adapters, &changes[i], found);
        if (i == 1) n_made = w.engine->plans.n_made;   // engines with and without room for adapters
        if (i > 1) assert_int_equal(w.engine->plans.n_made, n_made);
        world other = open_world(model, NULL);
        frit_adapter *others[2];
        for (int k = 0; k < 2; k++) assert_ok(frit_adapter_open(&others[k], other.model, paths[k], NULL));
        run_pair(&other, others, &(change){{changes[i].scales[0], changes[i].scales[1]}, {0}}, alone);
        assert_same(&found[0], &alone[0]);
        for (int k = 0; k < 2; k++) frit_adapter_free(others[k]), free(found[k].logits), free(alone[k].logits);
        close_world(&other);
    }
    for (int i = 0; i < 2; i++) frit_adapter_free(adapters[i]);
    close_world(&w);
}

static void sessions_without_adapters_run_plans_without_them(void **state)
{
    (void)state;
    const char *model = tiny_model("tiny.gguf", &(tiny_options){0});
    world w = open_world(model, NULL);
    frit_adapter *adapter;
    assert_ok(frit_adapter_open(&adapter, w.model, make_adapter("a.gguf", model, &(adapter_options){0}, NULL), NULL));
    frit_session *with = make_session(w.engine);
    assert_ok(frit_session_set_adapters(with, &adapter, (float[]){1}, 1));
    rows plain = run(&w, NULL, NULL, 0);
    for (int i = 0; i < FRIT_PLAN_KINDS; i++)
        for (int k = 0; k < FRIT_N_CLASSES; k++) assert_null(w.engine->plans.classes[0][0][1][i][k].planned);
    const frit_shape_class *c = &w.engine->plans.classes[0][0][0][FRIT_PLAN_LOGITS][0];
    for (int k = 0; k < c->graph.n_nodes; k++) assert_true(c->graph.nodes[k]->op != FRIT_OP_ADAPT_DOWN);
    free(plain.logits);
    frit_session_free(with);
    frit_adapter_free(adapter);
    close_world(&w);
}

static void ranks_that_no_plan_has_room_for_are_refused(void **state)
{
    (void)state;
    enum { RANK = 1500, N = 11 };
    const char *model = tiny_model("tiny.gguf", &(tiny_options){0});
    const adapter_options options = {.rank = RANK, .only = "blk.0.attn_q."};
    world w = open_world(model, NULL);
    frit_adapter *adapters[N];
    float scales[N];
    for (int i = 0; i < N; i++) {
        scales[i] = 1;
        assert_ok(frit_adapter_open(&adapters[i], w.model, make_adapter("a.gguf", model, &options, NULL), NULL));
    }
    frit_session *session = make_session(w.engine);
    assert_ok(frit_session_set_adapters(session, adapters, scales, 2));
    assert_fails(frit_session_set_adapters(session, adapters, scales, N), FRIT_E_LIMIT,
                 "have a rank of 16500 together, expected at most 16384");
    assert_true(session->adapters.scales[0] == 1 && session->adapters.plan_class.ranks == 4);
    frit_session_free(session);
    for (int i = 0; i < N; i++) frit_adapter_free(adapters[i]);
    close_world(&w);
}

// Builds the graph of every architecture, with room for adapters of all matrices.
static void every_architecture_has_room_for_adapters(void **state)
{
    (void)state;
    const char *folder = shared_path("goldens/arch");
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[600];
        frit_model *model;
        const size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".gguf") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (frit_model_open(&model, path, NULL) != FRIT_OK) continue;
        frit_arena arena = {0};
        bool *is_used = frit_arena_new(&arena, bool, model->ckpt->n_tensors + 1);
        const frit_adapters room = {.ckpt = model->ckpt, .n_h = 1, .steers = true, .is_used = is_used};
        frit_graph graph;
        frit_graph_init(&graph, &arena, 4, 2);
        const frit_build_options options = {.adapters = &room};
        if (frit_arch_build(&graph, model->arch, &model->hp, &model->weights, &options) != FRIT_OK)
            fail_msg("%s: %s", entry->d_name, frit_error());
        size_t n_used = 0;
        for (size_t i = 0; i <= model->ckpt->n_tensors; i++) n_used += is_used[i];
        assert_true(n_used > 3);
        n++;
        frit_arena_free(&arena);
        frit_model_free(model);
    }
    closedir(dir);
    assert_true((size_t)n >= shared_least(8));
}

// ------------------------------------------------------------------------------- control vectors

// A direction after layer i equals a bias of the layer's last product.
static void control_vectors_are_added_behind_layers(void **state)
{
    (void)state;
    const char *model = tiny_model("tiny.gguf", &(tiny_options){.n_layer = 3});
    const char *path = make_vector("v.gguf", model, 5, 1, 2);
    frit_checkpoint *ckpt, *vector;
    assert_ok(frit_checkpoint_open(&ckpt, model, NULL));
    assert_ok(frit_checkpoint_open(&vector, path, NULL));
    for (int layer = 1; layer <= 2; layer++) {
        char name[64];
        snprintf(name, sizeof name, "direction.%d", layer);
        const frit_tensor *direction = frit_checkpoint_find(vector, name);
        frit_tensor bias = *direction;
        float *values = frit_arena_new(&ckpt->arena, float, (size_t)direction->shape[0]);
        for (int64_t i = 0; i < direction->shape[0]; i++) values[i] = 0.5f * ((const float *)direction->data)[i];
        snprintf(name, sizeof name, "blk.%d.ffn_down.bias", layer);
        bias.name = frit_arena_text(&ckpt->arena, name, strlen(name));
        bias.data = values;
        assert_ok(frit_checkpoint_add_tensor(ckpt, &bias));
    }
    const char *biased_path = temp_path("biased.gguf");
    assert_ok(frit_gguf_write(ckpt, biased_path));
    frit_checkpoint_close(vector);
    frit_checkpoint_close(ckpt);
    for (int c = 0; c < 2; c++) {
        world w = open_world(model, c ? NULL : "reference"), biased = open_world(biased_path, c ? NULL : "reference");
        frit_adapter *all, *second;
        assert_ok(frit_adapter_open(&all, w.model, path, NULL));
        assert_ok(
            frit_adapter_open(&second, w.model, path, &(frit_adapter_options){.first_layer = 2, .last_layer = 2}));
        rows expected = run(&biased, NULL, NULL, 0), found = run(&w, &all, (float[]){0.5f}, 1);
        rows less = run(&w, &second, (float[]){0.5f}, 1);
        assert_true(nmse(found.logits, expected.logits, n_of(&found)) <= (c ? 1e-9 : 1e-12));
        assert_true(nmse(less.logits, expected.logits, n_of(&found)) > 1e-4);
        frit_adapter_info info;
        frit_adapter_get_info(second, &info);
        assert_string_equal(info.kind, "control vector");
        assert_int_equal(info.n_tensors, 1);
        free(expected.logits), free(found.logits), free(less.logits);
        frit_adapter_free(all);
        frit_adapter_free(second);
        close_world(&w);
        close_world(&biased);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tiny_model_may_have_adapters_of_any_type),
        cmocka_unit_test(a_scale_of_0_is_no_adapter_and_several_add_up),
        cmocka_unit_test(adapters_come_and_go),
        cmocka_unit_test(attaching_detaching_and_scaling_make_no_plan),
        cmocka_unit_test(sessions_without_adapters_run_plans_without_them),
        cmocka_unit_test(ranks_that_no_plan_has_room_for_are_refused),
        cmocka_unit_test(every_architecture_has_room_for_adapters),
        cmocka_unit_test(control_vectors_are_added_behind_layers),
        cmocka_unit_test(adapters_give_the_logits_of_merged_weights),
        cmocka_unit_test(fast_kernels_give_them_too),
        cmocka_unit_test(sessions_that_share_steps_give_what_each_gives_alone),
        cmocka_unit_test(token_by_token_they_share_steps_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

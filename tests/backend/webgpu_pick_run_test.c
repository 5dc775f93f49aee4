// SPDX-License-Identifier: MIT
// Picks on a GPU through WebGPU and on CPUs have the same tokens and failures, bit for bit, for random logits and
// samplers. FRIT_TEST_ROUNDS sets the number of steps.
#include "backend/webgpu/picks.h"
#include "backend/webgpu/weights/weights.h"
#include "backend/webgpu_device.h"
#include "graph/plan.h"
#include "sample/pick_runner.h"
#include "sample/random_picks.h"

#include <stdatomic.h>

enum { N_PICKS = 6, MOST_VOCAB = 8192 };

typedef struct step {   // of a graph whose output are rows of a table: the logits
    frit_arena arena;
    frit_graph graph;
    frit_plan *plan;
    frit_tensor table;
    frit_seq seqs[N_PICKS];
    int32_t numbers[N_PICKS], pages[N_PICKS];   // 0, 1, 2, ...
    frit_batch batch;
    frit_sampler *samplers[N_PICKS];
    frit_pick picks[N_PICKS];
    float *rows;
    int32_t n_vocab;
} step;

static frit_device *gpu;
static frit_pick_runner *runner;
static int32_t before[N_PICKS], n_before;   // tokens of the step before
static int n_on_gpu;

// A pick of output i, half of the time after a token that the step before picks.
static void add_pick(step *s, frit_rng *rng, int32_t i)
{
    static frit_str pieces[MOST_VOCAB];
    frit_sampler_mark mark;
    const bool is_after_unknown = i < n_before && random_between(rng, 0, 1);
    frit_sampler *sampler = s->samplers[i] = random_sampler(rng, s->n_vocab);
    if (random_between(rng, 0, 5) == 0) force(sampler, pieces, s->n_vocab);
    if (is_after_unknown) frit_sampler_try_count(sampler, -1, &mark);
    assert_ok(frit_sampler_add_pick(sampler, &s->batch.lists, &s->picks[i]));
    if (is_after_unknown) frit_sampler_go_back(sampler, &mark);
    frit_pick_count *unknown = frit_pick_unknown(&s->batch.lists, &s->picks[i]);
    if (unknown) unknown->token = ~i;
    s->picks[i].row = i;
    if (s->picks[i].top_n_sigma > 0 && random_between(rng, 0, 3)) s->picks[i].top_n_sigma = 0;
    const bool is_long = s->picks[i].top_k == 0 || s->picks[i].top_k > 256;
    if (is_long && random_between(rng, 0, 3)) s->picks[i].top_p = 0, s->picks[i].top_k = 0;
}

static void open_step(step *s, frit_rng *rng, int round)
{
    const int32_t n = (int32_t)random_between(rng, 1, round % 2 ? 1 : N_PICKS);
    s->n_vocab = 32 * (int32_t)random_between(rng, 1, round % 4 ? 12 : MOST_VOCAB / 32);
    frit_graph_init(&s->graph, &s->arena, n, n);
    s->rows = frit_arena_new(&s->arena, float, (size_t)n *(size_t)s->n_vocab);
    s->table = (frit_tensor){.name = "logits",
                             .dtype = FRIT_DTYPE_F32,
                             .n_dims = 2,
                             .shape = {n, s->n_vocab},
                             .data = (const uint8_t *)s->rows};
    frit_node *tokens = frit_input_node(&s->graph, FRIT_INPUT_TOKENS);
    frit_node *rows = frit_embed(&s->graph, frit_weight_node(&s->graph, &s->table), tokens);
    s->graph.output = frit_take_rows(&s->graph, rows, frit_input_node(&s->graph, FRIT_INPUT_OUT_ROWS));
    for (int32_t i = 0; i < n; i++) {
        s->numbers[i] = s->pages[i] = i;
        s->seqs[i] = (frit_seq){.first_row = i, .n_rows = 1, .state = i};
    }
    s->batch = (frit_batch){.n_rows = n,
                            .n_outs = n,
                            .n_seqs = n,
                            .tokens = s->numbers,
                            .positions = s->numbers,
                            .out_rows = s->numbers,
                            .seqs = s->seqs,
                            .pages = s->pages,
                            .n_groups = 1,
                            .page_stride = 1,
                            .lists.n_vocab = s->n_vocab};
    for (int32_t i = 0; i < n; i++) {
        random_logits(rng, s->rows + (size_t)i * (size_t)s->n_vocab, s->n_vocab, (int)random_between(rng, 0, 1000));
        if (random_between(rng, 0, 20) == 0)
            s->rows[i * s->n_vocab + random_between(rng, 0, s->n_vocab - 1)] = i % 2 ? NAN : INFINITY;
        add_pick(s, rng, i);
    }
    s->batch.picks = s->picks;
    s->batch.n_picks = n;
    assert_ok(frit_pick_lists_reserve(&s->batch.lists, &(frit_pick_room){0}));
}

static void run_step(step *s, frit_step_output *output)
{
    frit_exec *exec;
    frit_ticket ticket;
    const frit_cache none = {0};
    frit_webgpu_device *d = (frit_webgpu_device *)gpu;
    assert_ok(frit_graph_check(&s->graph));
    assert_ok(
        frit_plan_new(&s->plan, &s->graph, &(frit_plan_options){.can_join = gpu->backend->can_join, .device = gpu}));
    assert_ok(gpu->backend->prepare(gpu, s->plan, &none, &exec));
    assert_ok(gpu->backend->submit(gpu, exec, &s->batch, output, &ticket));
    n_on_gpu += d->flights[ticket % FRIT_WEBGPU_FLIGHTS].picks_on_gpu;
    assert_ok(gpu->backend->wait(gpu, ticket));
    gpu->backend->exec_free(gpu, exec);
    frit_webgpu_tensors_free(d);
}

static void check_pick(const step *s, int32_t i, const frit_picked_token *got, const frit_picked_token *wanted)
{
    const frit_pick *p = &s->picks[i];
    if (got->token == wanted->token && got->status == wanted->status) return;
    fail_msg(
        "pick %d of %d tokens: temp %g top-k %d top-p %g min-p %g sigma %g, %d biases, %d counts, mask %d: %d (%d) "
        "for %d (%d)",
        i, s->n_vocab, (double)p->temp, p->top_k, (double)p->top_p, (double)p->min_p, (double)p->top_n_sigma,
        p->n_biases, p->n_counts, p->mask, got->token, got->status, wanted->token, wanted->status);
}

static void check_round(frit_rng *rng, int round)
{
    static step s;
    frit_picked_token picked[2][N_PICKS] = {{{0}}};
    frit_out_row taken[N_PICKS] = {{0}};
    s = (step){0};
    open_step(&s, rng, round);
    const int32_t n = s.batch.n_picks;
    frit_pick_lists lists = s.batch.lists;
    run_step(&s, &(frit_step_output){.taken = taken, .picked = picked[0]});
    for (int32_t i = 0; i < n; i++) frit_pick_resolve(&lists, &s.picks[i], i < n_before ? before[i] : 0);
    frit_pick_alone(runner, &(frit_pick_job){s.rows, s.picks, n, &lists, picked[1]});
    for (int32_t i = 0; i < n; i++) {
        bool is_bad = false;
        check_pick(&s, i, &picked[0][i], &picked[1][i]);
        for (int32_t t = 0; t < s.n_vocab; t++) is_bad = is_bad || !isfinite(s.rows[i * s.n_vocab + t]);
        assert_int_equal(atomic_load(&taken[i].bad), is_bad);
        before[i] = picked[0][i].status == FRIT_PICK_DONE ? picked[0][i].token : 0;
        frit_sampler_free(s.samplers[i]);
    }
    n_before = n;
    frit_pick_lists_free(&s.batch.lists);
    frit_arena_free(&s.arena);
}

static void picks_are_those_of_the_cpu(void **state)
{
    const char *rounds = getenv("FRIT_TEST_ROUNDS");
    frit_rng rng;
    (void)state;
    require_webgpu();
    frit_webgpu_use_library(webgpu_library());
    assert_ok(frit_backend_webgpu.open(&gpu, &(frit_device_options){.n_threads = 1}));
    assert_ok(frit_pick_runner_new(&runner, 1, FRIT_PICK_BATCH));
    frit_rng_init(&rng, 5);
    const int n = rounds ? atoi(rounds) : 60;
    for (int round = 0; round < n; round++) check_round(&rng, round);
    assert_true(n_on_gpu > n / 3);
    print_message("%d of %d steps on the GPU\n", n_on_gpu, n);
    frit_pick_runner_free(runner);
    frit_backend_webgpu.close(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(picks_are_those_of_the_cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Sums over the GPUs of a group: microseconds of each in a recorded step, which has hundreds of them in a row.
#include "backend/group.h"
#include "gpu.h"
#include "graph/node.h"
#include "graph/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WIDTH = 4096, SUMS = 256, WARM_UP = 4, STEPS = 20, MOST_ROWS = 256 };

static double now_us(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

// A row of a table, whose sum over the ranks is summed again and again.
static void make_graph(frit_graph *g, frit_arena *arena, float *table, int32_t rows, int32_t n_ranks)
{
    frit_tensor *tensor = frit_arena_new(arena, frit_tensor, 1);
    *tensor = (frit_tensor){.name = "table",
                            .dtype = FRIT_DTYPE_F32,
                            .n_dims = 2,
                            .shape = {1, WIDTH, 1, 1},
                            .data = (const uint8_t *)table,
                            .n_bytes = WIDTH * sizeof *table};
    frit_graph_init(g, arena, rows, 1);
    frit_node *x = frit_embed(g, frit_weight_node(g, tensor), frit_input_node(g, FRIT_INPUT_TOKENS));
    for (int i = 0; i < SUMS; i++) x = frit_reduce_node(g, x, n_ranks);
    g->results = frit_arena_new(arena, frit_node *, 1);
    g->results[0] = x;
    g->n_results = 1;
    must(frit_graph_check(g));
}

static double run_steps(frit_device *group, frit_exec *exec, const frit_batch *batch, int n)
{
    frit_ticket ticket = 0, before = 0;
    frit_step_output output = {0};
    const double begin = now_us();
    for (int i = 0; i < n; i++) {
        must(group->backend->submit(group, exec, batch, &output, &ticket));
        if (before > 0) must(group->backend->wait(group, before));
        before = ticket;
    }
    must(group->backend->wait(group, ticket));
    return (now_us() - begin) / n / SUMS;
}

static double time_sums(frit_device *group, float *table, int32_t rows, int32_t n_ranks)
{
    static int32_t tokens[MOST_ROWS], positions[MOST_ROWS];
    static frit_seq seqs[MOST_ROWS];
    frit_arena arena = {0};
    frit_graph g;
    frit_plan *plan;
    frit_exec *exec;
    const frit_cache none = {0};
    make_graph(&g, &arena, table, rows, n_ranks);
    for (int32_t i = 0; i < rows; i++) seqs[i] = (frit_seq){.first_row = i, .n_rows = 1, .state = -1};
    const frit_batch batch = {.n_rows = rows, .n_seqs = rows, .tokens = tokens, .positions = positions, .seqs = seqs};
    const frit_plan_options options = {.is_fused = true, .can_join = group->backend->can_join, .device = group};
    must(frit_plan_new(&plan, &g, &options));
    must(group->backend->prepare(group, plan, &none, &exec));
    run_steps(group, exec, &batch, WARM_UP);
    const double us = run_steps(group, exec, &batch, STEPS);
    group->backend->exec_free(group, exec);
    frit_arena_free(&arena);
    return us;
}

void bench_exchange(const bench *b, int32_t n_ranks)
{
    static float table[WIDTH];
    frit_device *group;
    frit_device_list list = {.backend = "cuda", .n = n_ranks};
    for (int32_t i = 0; i < n_ranks; i++) list.numbers[i] = i;
    for (int i = 0; i < WIDTH; i++) table[i] = 1e-30f * (float)(i + 1);
    must(frit_group_open(&group, &frit_backend_cuda, &list, &(frit_device_options){.log = &b->compiler.log}));
    printf("| sum over %d GPUs, KB | us in a recorded step |\n|---|---|\n", (int)n_ranks);
    for (int32_t rows = 1; rows <= MOST_ROWS; rows *= 4)
        printf("| %d | %.2f |\n", (int)(rows * WIDTH * 4 / 1024), time_sums(group, table, rows, n_ranks));
    printf("\n");
    group->backend->close(group);
}

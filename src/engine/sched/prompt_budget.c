// SPDX-License-Identifier: MIT
// The number of prompt rows in a step, and the cutting of prompts into parts.
//
// While some session generates, steps have few prompt rows, so that no session waits long for its next token: as many
// rows as take 2.75 times the time of a decode step, by measured times. One in a hundred steps takes a quarter longer
// than most, and the wait should stay within five times the wait without prompts. In steps that mix row classes the
// wait is the step, which may take 3.5 times the time of a decode step. A device with a queue may be so fast that
// such a wait is too short to be noticed, so its steps may take 20 ms in any case.
#include "engine/engine.h"
#include "engine/sched/step_cost.h"

enum { FIRST_BUDGET = 64, TILE = 16, MEMORY = 8 };   // MEMORY: steps that averages remember
static const double gap = 2.75, mixed_gap = 3.5, least_gap_ns = 20e6;

int32_t frit_schedule_budget(const frit_step_cost *cost, int32_t least)
{
    if (cost->decode_ns <= 0 || cost->prompt_row_ns <= 0) return FIRST_BUDGET > least ? FIRST_BUDGET : least;
    const double n = gap * cost->decode_ns / cost->prompt_row_ns;
    return n < least ? least : n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

int32_t frit_schedule_queue_budget(const frit_step_cost *cost)
{
    enum { FIRST = 256 };
    if (cost->decode_ns <= 0 || cost->added_row_ns <= 0) return FIRST;
    const double step_ns = gap * cost->decode_ns > least_gap_ns ? gap * cost->decode_ns : least_gap_ns;
    const double n = (step_ns - cost->decode_ns) / cost->added_row_ns;
    return n < FRIT_LEAST_BUDGET ? FRIT_LEAST_BUDGET : n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

// The fixed cost of prefill rows in a step, as a number of rows: weights are unpacked into tiles once.
static int32_t fixed_rows(int32_t least)
{
    return 2 * least;
}

int32_t frit_schedule_mixed_budget(const frit_step_cost *cost, int32_t least)
{
    if (cost->decode_ns <= 0 || cost->mixed_row_ns <= 0) return FIRST_BUDGET > least ? FIRST_BUDGET : least;
    const double n = mixed_gap * cost->decode_ns / cost->mixed_row_ns - fixed_rows(least);
    if (n < least) return least;
    return n < INT32_MAX - TILE ? ((int32_t)n + TILE / 2) / TILE * TILE : INT32_MAX;
}

// Measures by how much each prompt row makes a step longer than a step of decode rows.
static void measure_added_rows(frit_step_cost *cost, const frit_step *step, double step_ns)
{
    int32_t n_rows = 0;
    for (int32_t i = 0; i < step->n_seqs; i++)
        if (step->seqs[i].n_rows > 1) n_rows += step->seqs[i].n_rows;
    if (n_rows < FRIT_LEAST_BUDGET) return;
    const double least_ns = step_ns / 4, added_ns = step_ns - cost->decode_ns;   // decode steps vary
    frit_average_update(&cost->added_row_ns, (added_ns > least_ns ? added_ns : least_ns) / n_rows, MEMORY);
}

void frit_schedule_measure(frit_engine *engine, const frit_step *step, uint64_t step_ns)
{
    frit_step_cost *cost = &engine->cost;
    const int32_t least = engine->rows.least[FRIT_ROWS_PREFILL];
    frit_step_cost_measure(engine, step, step_ns);
    measure_added_rows(cost, step, (double)step_ns);
    if (step->n_seqs == step->n_rows)
        frit_average_update(&cost->decode_ns, (double)step_ns, MEMORY);
    else if (step->n_decode_rows > 0)
        frit_average_update(&cost->mixed_row_ns,
                            (double)step_ns / (step->n_rows - step->n_decode_rows + fixed_rows(least)), MEMORY);
    else if (step->n_rows >= FRIT_LEAST_BUDGET)   // fewer rows say little about the cost of one
        frit_average_update(&cost->prompt_row_ns, (double)step_ns / step->n_rows, MEMORY);
}

size_t frit_prefill_chunk(size_t n, size_t wanted, size_t fits, size_t least)
{
    const size_t by_wanted = (n + wanted - 1) / wanted, by_least = n / least;
    const size_t n_chunks = by_wanted < by_least ? by_wanted : by_least;
    size_t chunk = n_chunks > 0 ? (n + n_chunks - 1) / n_chunks : 0;
    const size_t tiles = chunk / TILE * TILE;   // used if the other chunks, with no more tiles each, can have the rest
    if (tiles >= least && n - tiles <= (n_chunks - 1) * (tiles + TILE)) chunk = tiles;
    if (chunk > fits) chunk = n - fits < least && n > least ? n - least : fits;
    return chunk < least || chunk > fits ? 0 : chunk;
}

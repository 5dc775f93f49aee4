// SPDX-License-Identifier: MIT
// Measured time of decode steps with 1 to FRIT_COST_ROWS rows.
#include "engine/engine.h"
#include "engine/sched/step_cost.h"

enum { MEMORY = 4, FORGETS = 512 };   // steps that averages remember

// The cost of one more row. The first prompt touches new memory, so its time may be too long.
static double row_ns(const frit_engine *engine, double least)
{
    const double of_prompts = engine->cost.prompt_row_ns, most = least / 2;
    return of_prompts > 0 && of_prompts < most ? of_prompts : most;
}

double frit_step_cost_decode(const frit_engine *engine, int32_t n_rows)
{
    int32_t below = n_rows < FRIT_COST_ROWS ? n_rows : FRIT_COST_ROWS, above = n_rows;
    while (below > 0 && engine->cost.decode_rows_ns[below] <= 0) below--;
    while (above <= FRIT_COST_ROWS && engine->cost.decode_rows_ns[above] <= 0) above++;
    if (below == n_rows) return engine->cost.decode_rows_ns[n_rows];
    const double low = below > 0 ? engine->cost.decode_rows_ns[below] : 0;
    if (above > FRIT_COST_ROWS) return below > 0 ? low + (n_rows - below) * row_ns(engine, low / below) : 0;
    const double high = engine->cost.decode_rows_ns[above];
    if (below > 0) return low + (high - low) * (n_rows - below) / (above - below);
    return high - (above - n_rows) * row_ns(engine, high / above) / 2;
}

void frit_step_cost_next(const frit_engine *engine, int32_t *n_rows, double *n_tokens)
{
    const frit_step *last = &engine->flights.ring[engine->flights.n_submitted % FRIT_MAX_FLIGHTS].step;
    const int32_t n = last->decodes && last->n_seqs > 1 ? last->n_seqs : 1;
    *n_rows = n + engine->drafts.n_queued;
    *n_tokens = n + engine->drafts.n_expected;
}

// Updates the averages. A step that took very long counts less, because other processes had the processor. Averages of
// other numbers of rows move slowly towards the new one, so that old measurements are forgotten.
static void update_averages(frit_engine *engine, int32_t n_rows, double ns)
{
    double *average = &engine->cost.decode_rows_ns[n_rows];
    if (*average == 0) {   // the first step of so many rows touches new memory
        *average = -1;
        return;
    }
    const double expected = frit_step_cost_decode(engine, n_rows);
    if (expected > 0 && ns > 2 * expected) ns = 2 * expected;
    *average += *average > 0 ? (ns - *average) / MEMORY : ns;
    for (int32_t i = 1; i <= FRIT_COST_ROWS; i++) {
        if (i == n_rows || engine->cost.decode_rows_ns[i] <= 0) continue;
        const double by_rows = *average + (i - n_rows) * row_ns(engine, *average / n_rows);
        if (by_rows > 0) engine->cost.decode_rows_ns[i] += (by_rows - engine->cost.decode_rows_ns[i]) / FORGETS;
    }
}

void frit_step_cost_measure(frit_engine *engine, const frit_step *step, uint64_t step_ns)
{
    const bool is_first = step->n_rows <= FRIT_COST_ROWS && engine->cost.decode_rows_ns[step->n_rows] == 0;
    if (engine->drafts.budget.awaits_step && step->decodes && !is_first)
        engine->drafts.budget.round.step_ns = (double)step_ns;
    engine->drafts.budget.awaits_step = false;
    if (step->decodes && step->n_rows <= FRIT_COST_ROWS) update_averages(engine, step->n_rows, (double)step_ns);
}

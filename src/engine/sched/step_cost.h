// SPDX-License-Identifier: MIT
// engine/sched/step_cost.h: how long steps take, as moving averages of measured times.
#pragma once
#include "engine/sched/schedule.h"

// Moves an average towards a new value. `memory`: the number of values that it remembers; 0 is an average of none.
static inline void frit_average_update(double *average, double value, int memory)
{
    *average += *average > 0 ? (value - *average) / memory : value;
}

// Measures a step that has run.
void frit_step_cost_measure(frit_engine *engine, const frit_step *step, uint64_t step_ns);
// The expected time of a step of n_rows decode rows, from measured steps of this or other numbers of rows; 0: unknown.
double frit_step_cost_decode(const frit_engine *engine, int32_t n_rows);
// The expected next step: rows of sessions that generate and drafts queued so far, and the tokens that they give.
void frit_step_cost_next(const frit_engine *engine, int32_t *n_rows, double *n_tokens);

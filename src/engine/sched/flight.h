// SPDX-License-Identifier: MIT
// engine/sched/flight.h: a step from when it is submitted until it has landed: its devices are done, and its results
// were handed out to sessions. Two may be in flight, in order.
#pragma once
#include "engine/placement/plans.h"
#include "engine/sched/schedule.h"

enum { FRIT_MAX_FLIGHTS = 2 };

typedef struct frit_flight {
    frit_step step;
    uint64_t number;               // of the step that is, or was, in it; 0: none
    const frit_plan_class *plan;   // that it runs
    frit_ticket tickets[2];        // of the segment with the output, and of the last
    frit_step_output output;
    float *hidden;   // [n_batch, n_embd]: of its rows, where sessions keep them; NULL: none has
    uint64_t start_ns;
    bool is_ahead;        // the caller may come for it long after it has run
    frit_status status;   // once it has landed: how it ended
    frit_failure failure;
} frit_flight;

// step.c: gives engine->step, which has been scheduled, to the devices. Fails if it does not run at all.
frit_status frit_step_submit(frit_engine *engine, frit_flight *flight);
frit_status frit_step_wait(const frit_flight *flight);
bool frit_step_poll(const frit_flight *flight);
// Hands the results of a step out that has run.
void frit_step_deliver(frit_engine *engine, const frit_flight *flight);

// flight.c: waits for the oldest step and hands out its results, or for all of them; their status stays with them too.
frit_status frit_flight_wait(frit_engine *engine);
frit_status frit_flight_wait_all(frit_engine *engine);
void frit_flight_drop_all(frit_engine *engine);   // waits, and hands nothing out
static inline bool frit_flight_runs_picks(const frit_plan_class *plan)
{
    return plan->parts[plan->segments.output].device->backend->picks;
}

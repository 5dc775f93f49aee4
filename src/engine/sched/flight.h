// SPDX-License-Identifier: MIT
// engine/sched/flight.h: a step in flight: from its submission until its devices are done and its results are delivered
// to sessions. Two steps may be in flight, or one for each device where devices work one after the other; they complete
// in order.
#pragma once
#include "engine/placement/plans.h"
#include "engine/sched/schedule.h"

enum { FRIT_MAX_FLIGHTS = 4 };

typedef struct frit_late_picks {   // late picks of a step that have been submitted (late.h)
    frit_pick *picks;              // [n]
    frit_picked_token *picked;
    frit_session **owners;
    size_t *at;   // the tokens of the owners that the picks follow
    frit_pick_lists lists;
    frit_step_output output;
    int32_t n;
    size_t picks_capacity, picked_capacity, owners_capacity, at_capacity;
} frit_late_picks;

typedef struct frit_flight {
    frit_step step;
    uint64_t number;                         // the step's number; 0: none
    const frit_shape_class *plan;            // the plan that the step runs
    frit_ticket tickets[FRIT_MAX_DEVICES];   // of the last segment that each device runs; 0: it runs none
    frit_step_output output;
    float *hidden;   // [n_batch, n_embd]: hidden states of its rows; NULL: no session of the engine stores them
    uint64_t start_ns;
    size_t n_plans;         // engine->plans.n_made when the step was started
    size_t n_plans_after;   // engine->plans.n_made when the step was submitted
    frit_late_picks late;
    bool is_ahead;        // the caller may wait for it long after it has run
    frit_status status;   // once it has completed
    frit_failure failure;
} frit_flight;

// step.c: submits engine->step, which has been scheduled, to its devices. Fails if nothing was submitted.
frit_status frit_step_submit(frit_engine *engine, frit_flight *flight);
frit_status frit_step_wait(const frit_engine *engine, const frit_flight *flight);
bool frit_step_poll(const frit_engine *engine, const frit_flight *flight);
// Delivers the results of a step that has run.
void frit_step_deliver(frit_engine *engine, frit_flight *flight);
// Delivers the results of the step's late picks, and forgets these picks.
void frit_step_deliver_late(frit_flight *flight);
// Result i of the step's picks, of which late picks are the last ones.
const frit_picked_token *frit_flight_picked(const frit_flight *flight, int32_t i);

// flight.c: submits a step. If it divides, sessions that generate are divided among the steps in flight. If it waits
// for pictures, a step has rows as soon as a session has tokens; otherwise one piece of a picture is encoded, and the
// step may have no rows.
frit_status frit_flight_submit(frit_engine *engine, bool divides, bool waits_for_pictures, uint64_t *step,
                               int32_t *n_rows);
// flight.c: waits for the oldest step in flight, or for all of them, and delivers results. Each flight keeps its
// status.
frit_status frit_flight_wait(frit_engine *engine);
frit_status frit_flight_wait_all(frit_engine *engine);
// Waits until no step in flight has rows of the session. Tokens of steps that failed are queued again.
void frit_flight_wait_session(const frit_session *session);
void frit_flight_drop_all(frit_engine *engine);         // waits, and delivers nothing
uint64_t frit_flight_most(const frit_engine *engine);   // steps that may be in flight
// True if the device with the output runs picks.
static inline bool frit_flight_runs_picks(const frit_shape_class *plan)
{
    return plan->planned[plan->segments.output].device->backend->picks;
}

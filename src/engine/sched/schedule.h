// SPDX-License-Identifier: MIT
// engine/sched/schedule.h: which rows of which sessions run in the next step, and the input that the step gives to
// plans.
#pragma once
#include "engine/sched/tables.h"
#include "engine/session/session.h"

typedef struct frit_step {   // a batch, and the sessions of its sequences
    // Arrays of [n_batch].
    int32_t *tokens, *positions, *out_rows;
    frit_seq *seqs;
    frit_session **owners;   // of the sequences
    frit_out_row *taken;     // where rows of results are copied
    frit_pick *picks;        // in the order of the rows that they pick from
    frit_picked_token *picked;
    frit_pick_lists lists;   // of the picks
    frit_step_tables tables;
    int32_t n_rows, n_outs, n_seqs, n_picks;
    int32_t most_rows;                      // while rows are chosen: the limit of n_rows
    int32_t most_decoding;                  // while rows are chosen: the limit of sessions that generate
    frit_result result;                     // the kind of result of this step; NONE while undecided
    bool prefill;                           // it has prefill rows (frit_row_class)
    int32_t n_decode_rows, n_decode_outs;   // as in frit_batch
    frit_adapter_class adapted;             // the plan class that its adapters need
    bool keeps_hidden;                      // hidden states of a session are stored
    float *given;    // [n_batch, n_embd]: hidden states that a multi-token prediction layer reads; NULL: none
    bool has_soft;   // it has soft tokens (media/soft.h)
    bool encodes;    // its rows are of sources
    bool decodes;    // its rows are single tokens and drafts that follow them
} frit_step;

// How long steps take, as moving averages in nanoseconds; 0: not measured yet.
enum { FRIT_COST_ROWS = 32 };   // rows up to which steps of decode rows are measured by their number
typedef struct frit_step_cost {
    double decode_ns;       // a step in which every sequence is one row
    double prompt_row_ns;   // a row of a step of prompts
    double added_row_ns;    // by which a prompt row makes a step longer
    double mixed_row_ns;    // a prefill row of a step that mixes row classes; fixed costs count as further rows
    double
        decode_rows_ns[FRIT_COST_ROWS + 1];   // [n]: a step of n decode rows; -1: it has run once and was not measured
} frit_step_cost;

// Chooses the rows of the next step, into engine->step. Allocates nothing; n_rows is 0 if nothing can run.
void frit_schedule(frit_engine *engine);
// How many sessions have something to run and no row in the step that was scheduled.
int32_t frit_schedule_waiting(const frit_engine *engine);
// FRIT_E_LIMIT if sessions have something to run, and the step that was scheduled has no rows for want of pages.
frit_status frit_schedule_check(const frit_engine *engine);
// Writes the rows that were chosen into the step's batch, decode rows first (batch_layout.c).
void frit_schedule_lay_out(frit_engine *engine);

// prompt_budget.c.
enum { FRIT_LEAST_BUDGET = 16 };   // prompt rows
// Updates engine->cost by the time of a step that has run.
void frit_schedule_measure(frit_engine *engine, const frit_step *step, uint64_t step_ns);
// Prompt rows that a step may have while other sessions generate: as many as take 2.75 times the time of a decode step.
int32_t frit_schedule_budget(const frit_step_cost *cost, int32_t least);
// Prompt rows of a step of a device with a queue: as many as make the step 2.75 times as long as a decode step, or 20
// ms long.
int32_t frit_schedule_queue_budget(const frit_step_cost *cost);
// Prefill rows of a step that mixes row classes: as many as make the step 3.5 times as long as a decode step.
int32_t frit_schedule_mixed_budget(const frit_step_cost *cost, int32_t least);
// Size of the next chunk of a prompt with n rows left. Chunks are about equal, at least `least`, at most `fits`, at
// most `wanted` unless the last would fall under `least`, and multiples of a tile if possible. 0 if nothing fits.
size_t frit_prefill_chunk(size_t n, size_t wanted, size_t fits, size_t least);

// SPDX-License-Identifier: MIT
// engine/sched/schedule.h: which rows of which sessions run in the next step, and the input that the step gives to
// plans.
#pragma once
#include "engine/session/session.h"

// What a sequence has by its index in the batch: page tables, scales of adapters (tables.c).
typedef struct frit_step_tables {
    int32_t *pages;   // [n_groups, n_seqs, page_stride] of the step
    float *scales;    // [n_seqs, adapters.n]
    size_t pages_capacity, scales_capacity;
    int32_t page_stride;   // of the step
} frit_step_tables;

typedef struct frit_step {                    // the batch and whose it is
    int32_t *tokens, *positions, *out_rows;   // [n_batch]
    frit_seq *seqs;                           // [n_batch]
    frit_session **owners;                    // [n_batch]: of the sequences
    frit_out_row *taken;                      // [n_batch]: where rows of results are copied
    frit_pick *picks;                         // [n_batch]: in the order of the rows that they pick from
    frit_picked_token *picked;                // [n_batch]: what they give
    frit_pick_lists lists;                    // of picks
    frit_step_tables tables;
    int32_t n_rows, n_outs, n_seqs, n_picks;
    int32_t most_rows;                      // while it is made
    frit_result result;                     // the kind that this step gives; NONE while open
    bool prefill;                           // it has prefill rows (frit_row_class)
    int32_t n_decode_rows, n_decode_outs;   // as in frit_batch
    frit_adapter_class adapted;             // room for what its sequences have
    bool keeps_hidden;                      // a sequence's hidden states are kept
    float *given;   // [n_batch, n_embd] that a layer for multi-token prediction reads; otherwise NULL
    bool encodes;   // its rows are those of sources
    bool decodes;   // its rows are single tokens, and drafts that follow them
} frit_step;

// How long steps take, as moving averages; 0: not measured yet.
typedef struct frit_pace {
    double decode_ns;       // a step in which every sequence is one row
    double prompt_row_ns;   // a row of a step of prompts
    // The same where kernels for many rows compute them in a step that has others too. What takes long however few
    // they are counts as so many rows more (frit_schedule_mixed_budget).
    double mixed_row_ns;
} frit_pace;

// Room for the tables of a step with `n_sessions` sequences and `n_adapters` scales each, so that steps allocate none.
frit_status frit_step_reserve_tables(frit_engine *engine, size_t n_sessions, size_t n_adapters);
void frit_step_fill_tables(frit_engine *engine);   // for the sequences of the step
void frit_step_free_tables(frit_step_tables *tables);
// Room for the lists of all picks that sessions have asked for. Allocates only where they have grown.
frit_status frit_step_reserve_picks(frit_engine *engine);

// Chooses the rows of the next step, into engine->step. Allocates nothing; n_rows is 0 if nothing is queued.
void frit_schedule(frit_engine *engine);
// How prompts share steps (prompt_share.c). Which sessions wait with prompts now; then each of these once, in the order
// in which they take rows, NULL after the last; and the rows that one of the step's sessions has taken.
void frit_share_update(frit_engine *engine, bool (*is_prompt)(const frit_session *session));
frit_session *frit_share_next(frit_engine *engine);
void frit_share_count(frit_session *session);
// How many sessions have something to run and no row in the step that was scheduled.
int32_t frit_schedule_waiting(const frit_engine *engine);
// FRIT_E_LIMIT if sessions have something to run, and the step that was scheduled has nothing, for want of pages.
frit_status frit_schedule_check(const frit_engine *engine);
// Updates the averages by a step that took so long.
void frit_schedule_measure(frit_engine *engine, const frit_step *step, uint64_t step_ns);
// What a step of n_rows single tokens and drafts takes, measured or by what other steps took; 0: nothing is known
// (step_cost.c).
enum { FRIT_PACE_FEW = 32 };   // rows up to which it is measured
double frit_pace_few(const frit_engine *engine, int32_t n_rows);
// What is known of the next step: rows, of sessions that generate and of drafts so far, and the tokens that these give.
void frit_pace_next(const frit_engine *engine, int32_t *n_rows, double *n_tokens);
void frit_pace_measure_few(frit_engine *engine, const frit_step *step, uint64_t step_ns);

// What drafts of other models may cost beyond what they save, by measured times (draft_budget.c): a small part of the
// time of all steps, and what earlier drafts saved. All sessions of an engine share it, so that none of them tries
// again what did not pay for others.
enum { FRIT_DRAFT_CLASSES = 5 };
typedef struct frit_draft_rates {   // how often drafts were right, by the draft model's own probability
    double n_right[FRIT_DRAFT_CLASSES], n_tried[FRIT_DRAFT_CLASSES];   // older ones count less
} frit_draft_rates;
typedef struct frit_draft_round {   // drafts for one step, and the step
    double without_ns;              // that the step takes without drafts
    int32_t n_seqs;                 // tokens that it gives then
    int32_t n_drafts, n_right;
    double draft_ns, follow_ns;   // making the drafts; running texts in draft models
    double step_ns;               // with the drafts
    double expected_ns;           // by all of this, but for texts, beyond the step without; 0: nothing was
} frit_draft_round;
typedef struct frit_draft_budget {
    bool is_open;              // has begun: the first step was measured
    double round_ns, all_ns;   // what may be lost: by rounds alone, and by rounds and texts together
    frit_draft_rates rates;    // of all sessions
    frit_draft_round round;    // the last one
    bool awaits_step;          // the round's has not run
    bool has_verified;         // some step has
    int32_t n_rounds;
} frit_draft_budget;
// Counts a round.
void frit_draft_budget_note(frit_draft_budget *budget, const frit_draft_round *round);
// Whether there is room for a round that may lose so much, after texts that take so long.
bool frit_draft_budget_bears(const frit_draft_budget *budget, double loss_ns, double follow_ns);
// How often drafts of class c are right: from those of the session, and the others'. Either may have none.
double frit_draft_rate(const frit_draft_rates *own, const frit_draft_rates *all, int c);
void frit_draft_rates_learn(frit_draft_rates *rates, int c, bool right);
// Prompt rows of a step at most while other sessions generate: so many as take 2.75 times as long as a step without.
int32_t frit_schedule_budget(const frit_pace *pace, int32_t least);
// The same where steps have rows of both kinds: so many that all of the step takes 3.5 times as long.
int32_t frit_schedule_mixed_budget(const frit_pace *pace, int32_t least);
// The next part of a prompt of n rows, where all parts have `least` rows or more, and are about equally long, of whole
// tiles where they can be: of `wanted` rows or fewer where that leaves no part with too few, and never of more than
// fit. 0: none.
size_t frit_schedule_part(size_t n, size_t wanted, size_t fits, size_t least);

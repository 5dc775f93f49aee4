// SPDX-License-Identifier: MIT
// engine/sched/tables.h: arrays of a step's batch that hold no pointers: page tables, scales of adapters, picks.
#pragma once
#include "frit.h"

typedef struct frit_step_tables {
    int32_t *pages;   // [n_groups, n_seqs, page_stride] of the step
    float *scales;    // [n_seqs, adapters.n]
    size_t pages_capacity, scales_capacity;
    int32_t page_stride;   // of the step
} frit_step_tables;

// Room for the tables of a step with `n_sessions` sequences and `n_adapters` scales each, so that steps allocate none.
frit_status frit_step_reserve_tables(frit_engine *engine, size_t n_sessions, size_t n_adapters);
void frit_step_fill_tables(frit_engine *engine);   // for the sequences of engine->step
void frit_step_free_tables(frit_step_tables *tables);
// Room in engine->step for the lists of all picks that sessions request. Allocates only if they have grown.
frit_status frit_step_reserve_picks(frit_engine *engine);

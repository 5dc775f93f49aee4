// SPDX-License-Identifier: MIT
// sample/pick_runner.h: runs picks on rows of logits in memory, with any number of threads.
//
// A pick needs a few scans of its row, each cut into FRIT_BLOCKS pieces, with little work between them. With top-k up
// to FRIT_PICK_LIST one scan is enough: each thread keeps the k best of its pieces, and the other stages work on the
// union of these lists. Otherwise top-k and top-p find the last token that stays by counting logits in bins. No list of
// the whole vocabulary is made, and results do not depend on the number of threads.
//
//     frit_pick_begin(run, &job, first);                       // at most FRIT_PICK_BATCH picks from `first` on
//     for (int phase = 0; phase < FRIT_PICK_PHASES; phase++)   // frit_walk has the same functions
//         if ((n = frit_pick_open(run, phase)) > 0) frit_pick_work(run, phase, 0, n, thread);
#pragma once
#include "sample/pick.h"

enum { FRIT_PICK_LIST = 256, FRIT_PICK_BATCH = 16, FRIT_PICK_PHASES = 32 };

typedef struct frit_pick_runner frit_pick_runner;

typedef struct frit_pick_job {
    float *rows;   // [n_rows, n_vocab]; changed while picks run, then restored
    const frit_pick *picks;
    int32_t n_picks;
    const frit_pick_lists *lists;
    frit_picked_token *picked;   // [n_picks]
} frit_pick_job;

// For at most n_threads threads and batches of at most n_picks, itself at most FRIT_PICK_BATCH.
frit_status frit_pick_runner_new(frit_pick_runner **out, int n_threads, int n_picks);
void frit_pick_runner_free(frit_pick_runner *run);

int32_t frit_pick_begin(frit_pick_runner *run, const frit_pick_job *job,
                        int32_t first);                 // returns the end of the batch
int frit_pick_open(frit_pick_runner *run, int phase);   // returns the pieces of the phase
void frit_pick_work(frit_pick_runner *run, int phase, int begin, int end, int thread);

void frit_pick_alone(frit_pick_runner *run, const frit_pick_job *job);   // all picks, on this thread

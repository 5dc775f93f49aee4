// SPDX-License-Identifier: MIT
// backend/cpu/feed.h: the activations of products, in the form that their kernels read.
//
// Who makes them depends on where they come from and on how many rows there are:
//
//     result of a norm that only products read     few rows: each thread for itself, norm and all, when it first needs
//                                                  them; more: by rows, in a phase of norm and conversion
//     result of another norm                       whoever makes a row of it
//     NORM_ADD that products read first, or a norm of it that only they read
//                                                  few rows: each thread for itself, with the norm; the one that does
//                                                  the first piece keeps the sum for later readers; more: in a phase
//     result of LINEAR_GLU, LINEAR_ACT             whoever makes 32 columns of it
//     anything else                                few rows: each thread for itself; more: by rows, in a phase
//
// For few rows a phase costs more than what all threads do at once: they wait for the one that does it, and then for
// each other. What a thread makes for itself lies in its workspace and is good for the step. Results do not depend on
// who made them.
#pragma once
#include "backend/cpu/task.h"

struct frit_feed {
    const frit_node *source;   // the product's source 0: its rows and their width
    const frit_node *norm;     // NULL: the rows are x as they are
    const frit_node *sum;      // NULL, or what a thread makes of the sum's sources instead of reading x
    const frit_task_env *env;
    const float *x, *w[2];    // rows; weight and bias of the norm
    const float *sum_of[3];   // sources of the sum
    float *kept;              // where the sum is kept
    frit_form form;
    uint8_t *rows;       // for all threads
    bool own;            // threads make few rows for themselves
    size_t own_offset;   // behind frit_own
    uint32_t id;         // of the list, from 1
};

enum { FRIT_OWN_ROWS = 2 };   // few

// The part of a workspace that survives a task. Behind it is room for two rows of numbers, which nobody keeps.
typedef struct frit_own {
    uint64_t holds[FRIT_FORM_COUNT];   // run << 32 | feed; anything else is stale
    uint8_t unused[128 - FRIT_FORM_COUNT * 8 % 128];
} frit_own;

float *frit_own_row(const frit_task_env *env, int thread);

// Whether this run's rows are few.
bool frit_feed_is_own(const frit_feed *feed);
// The rows, for products on thread share.thread.
const uint8_t *frit_feed_rows(const frit_feed *feed, int thread);
// Stores the sum of the feed's rows for its later readers.
void frit_feed_keep(const frit_feed *feed);
// y = r + the norm of row x.
void frit_norm_add_row(const frit_kernels *kernels, const frit_node *sum, float *y, const float *x, const float *w,
                       const float *r);
// y = the norm of row x.
void frit_norm_row(const frit_kernels *kernels, const frit_node *norm, float *y, const float *x, const float *w,
                   const float *b);

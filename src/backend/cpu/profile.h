// SPDX-License-Identifier: MIT
// backend/cpu/profile.h: the time of runs by op and type.
//
// Every thread measures how long it worked on each action and how long it waited after it. After the run the times are
// added to the row of the action's kind. A wait before the first or after the last action counts for "start and end".
//
//     thread 0   | run q | wait | run rope | ...
//     thread 1   | run q        | run rope | ...
#pragma once
#include "backend/cpu/task.h"
#include "base/time.h"
#include "frit_tools.h"

typedef struct frit_profile_time {
    uint64_t run_ns, wait_ns;   // wait: from its end to the next action of this thread
} frit_profile_time;

typedef struct frit_profile_thread {
    uint64_t begin_ns, end_ns;   // times of the last share
    int last;                    // action of the last share; -1: none yet
} frit_profile_thread;

enum { FRIT_PROFILE_ROWS = 128 };

typedef struct frit_profile {
    frit_profile_row rows[FRIT_PROFILE_ROWS];   // in the order of their first run
    char names[FRIT_PROFILE_ROWS][40];          // rows[].op points here
    int n_rows, n_threads;
    frit_profile_time *times;   // [n_threads][n_actions]
    frit_profile_thread *threads;
    int n_actions;
} frit_profile;

// Describes one action: its name, and the bytes that it read and the operations that it computed in this run.
void frit_profile_describe(const frit_task *task, frit_task_fn run, char name[40], frit_profile_row *row);
// Starts the measurement of a run of n_actions on n_threads.
frit_status frit_profile_start(frit_profile *profile, int n_threads, int n_actions);
// Called before and after thread `thread` works on a share of an action.
void frit_profile_begin(frit_profile *profile, int thread);
void frit_profile_end(frit_profile *profile, int thread, int i_action);
void frit_profile_add(frit_profile *profile, const char *name, const frit_profile_row *row);
void frit_profile_free(frit_profile *profile);

// SPDX-License-Identifier: MIT
// backend/cpu/profile.h: where the time of runs goes, by op and type.
//
// Every thread measures how long it worked on each action of the list and how long it waited after it; after the run
// these times are added to the rows of their kind. What a thread waits before its first action and after its last
// counts for "start and end".
//
//     thread 0   | run q | wait | run rope | ...
//     thread 1   | run q        | run rope | ...
#pragma once
#include "backend/cpu/task.h"
#include "base/time.h"
#include "frit_tools.h"

typedef struct frit_profile_time {
    uint64_t run_ns, wait_ns;   // wait: until the next action of this thread
} frit_profile_time;

typedef struct frit_profile_thread {
    uint64_t begin_ns, end_ns;   // of the last piece of work
    int last;                    // its action; -1: none yet
} frit_profile_thread;

enum { FRIT_PROFILE_ROWS = 128 };

typedef struct frit_profile {
    frit_profile_row rows[FRIT_PROFILE_ROWS];   // in the order in which they first ran
    char names[FRIT_PROFILE_ROWS][40];          // what rows[].op points to
    int n_rows, n_threads;
    frit_profile_time *times;   // [n_threads][n_actions]
    frit_profile_thread *threads;
    int n_actions;
} frit_profile;

// What belongs to one action: how it is called, and what it read and calculated in this run.
void frit_profile_describe(const frit_task *task, frit_task_fn run, char name[40], frit_profile_row *row);
// Begins to measure a run of n_actions on n_threads.
frit_status frit_profile_start(frit_profile *profile, int n_threads, int n_actions);
// Before and after thread `part` worked on pieces of an action.
void frit_profile_begin(frit_profile *profile, int part);
void frit_profile_end(frit_profile *profile, int part, int i_action);
void frit_profile_add(frit_profile *profile, const char *name, const frit_profile_row *row);
void frit_profile_free(frit_profile *profile);

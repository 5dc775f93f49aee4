// SPDX-License-Identifier: MIT
// backend/cpu/exec.h: executables of the CPU: a plan's steps as a list of actions in phases. exec_build.c makes them,
// exec.c runs them.
//
// The actions of a phase do not depend on each other and are cut into pieces that all threads take as they can; the
// next phase begins when all are done (thread.h). Behind an action come its followers (graph/plan.h): whoever did
// pieces of a product goes on with the heads that he has just made. So a layer that generates one token has five
// phases, and one more behind more than 256 positions; of many rows, attention may have one before (attend turn):
//
//     q, k, v = linear      norm and conversion by each thread; then rope, kv_write
//     attend
//    (attend merge)
//     linear_add            conversion by each thread
//     linear_glu            norm and conversion by each thread; makes what is read next, converted
//     linear_add
#pragma once
#include "backend/cpu/cpu.h"
#include "backend/cpu/fast.h"
#include "backend/cpu/feed.h"

enum { FRIT_NO_ACTION = -1 };

typedef struct frit_action {
    frit_task_fn run;
    frit_pieces_fn pieces;   // NULL: it follows another action
    int n_pieces;            // in this run
    int follower;            // the action that goes on with the same share, or FRIT_NO_ACTION
    frit_task task;
} frit_action;

typedef struct frit_phase {
    int first, n;   // actions
} frit_phase;

struct frit_exec {
    frit_plan *plan;
    frit_task_env narrow, wide;   // for nodes of few and of many rows
    frit_action *actions;
    frit_phase *phases;
    frit_feed *feeds;
    int n_actions, n_phases, n_feeds;
    int n_open;        // phases of the last run that had any pieces
    uint8_t *memory;   // the plan's scratch, the slots, the workspaces
    uint64_t n_bytes;
};

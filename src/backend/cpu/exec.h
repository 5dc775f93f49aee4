// SPDX-License-Identifier: MIT
// backend/cpu/exec.h: executables of the CPU: a plan's phases as a list of actions. lower.c makes them, exec.c runs
// them.
//
// The actions of a phase do not depend on each other and are cut into pieces that all threads take as they can; the
// next phase begins when all are done (thread.h). An action may have a follower (an epilogue, graph/phase.h): the
// thread that did pieces of a product continues with the heads that it has just computed. So a layer that generates one
// token has five phases, and one more after more than 256 positions; of many rows, attention may have one before
// (kv_to_tiles):
//
//     q, k, v = linear       norm and conversion by each thread; then rope, kv_write
//     attend
//    (attend merge)
//     linear, add            conversion by each thread
//     linear, linear, glu    norm and conversion by each thread; computes what is read next in the form that it wants
//     linear, add
#pragma once
#include "backend/cpu/cpu.h"
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/ops/act_input.h"

enum { FRIT_NO_ACTION = -1 };

typedef struct frit_action {
    frit_task_fn run;
    frit_pieces_fn pieces;   // NULL: it follows another action
    int n_pieces;            // in this run
    int follower;            // the action that continues with the same share, or FRIT_NO_ACTION
    frit_task task;
} frit_action;

typedef struct frit_exec_phase {
    int first, n;   // actions
} frit_exec_phase;

struct frit_exec {
    frit_plan *plan;
    frit_batch batch;                // of the run; its arrays are the engine's
    frit_task_env decode, prefill;   // for nodes of few and of many rows
    frit_action *actions;
    frit_exec_phase *phases;
    frit_act_input *inputs;
    frit_task *ups;   // of tasks before GLU
    int n_actions, n_phases, n_inputs;
    int n_open;                 // phases of the last run that had any pieces
    frit_cache cache;           // with the addresses of its layers
    frit_cache_layer *layers;   // of it; NULL: the engine's
    frit_cpu_memory scratch;    // the plan's, and that of activation inputs (lower.h); may be the device's
    bool shares_scratch;
    frit_cpu_memory workspaces;
    frit_cpu_memory given;   // the plan's inputs
};

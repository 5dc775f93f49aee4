// SPDX-License-Identifier: MIT
// backend/cpu/exec.h: executables of the CPU: a plan's phases as a list of actions. lower.c makes them, exec.c runs
// them.
//
// The actions of a phase do not depend on each other. They are cut into pieces that all threads claim; the next phase
// begins when all pieces are done (thread.h). An action may have a follower (an epilogue, graph/phase.h): the thread
// that computed pieces of a product continues with the heads that it has just computed. A layer that decodes one token
// has five phases, and a sixth (attend merge) after more than 256 positions. Attention of prefill may have a phase
// before it (kv_to_tiles):
//
//     q, k, v = linear       norm and conversion by each thread; then rope, kv_write
//     attend
//    (attend merge)
//     linear, add            conversion by each thread
//     linear, linear, glu    norm and conversion by each thread; the result is written in the form that is read next
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
    frit_batch batch;                // batch of the run; the engine owns its arrays
    frit_task_env decode, prefill;   // for nodes of the row classes
    frit_action *actions;
    frit_exec_phase *phases;
    frit_act_input *inputs;
    frit_task *ups;           // second products of GLU (frit_task.up)
    const float **of_ranks;   // frit_task.of_ranks of all exchanges; NULL: the device is in no group
    int n_actions, n_phases, n_inputs;
    int n_open;                 // phases of the last run that had any pieces
    frit_cache cache;           // with the addresses of its layers
    frit_cache_layer *layers;   // layers of `cache`; NULL: it has the engine's
    frit_cpu_memory scratch;    // scratch of the plan and memory of activation inputs (lower.h); may be the device's
    bool shares_scratch;
    frit_cpu_memory workspaces;
    frit_cpu_memory given;   // the plan's inputs
};

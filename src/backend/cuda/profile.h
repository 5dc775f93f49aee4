// SPDX-License-Identifier: MIT
// backend/cuda/profile.h: the time of a GPU's steps, by kernel and weight type. With a profile, the launches of a step
// run one after the other with events between them, without a graph.
#pragma once
#include "backend/cuda/exec.h"

enum { FRIT_CUDA_PROFILE_ROWS = 128 };

typedef struct frit_cuda_profile {
    frit_profile_row rows[FRIT_CUDA_PROFILE_ROWS];   // in the order of their first launch
    char names[FRIT_CUDA_PROFILE_ROWS][40];          // memory of rows[].op
    int n_rows;
    frit_cuda_event *events;   // [n_events]
    int n_events;
} frit_cuda_profile;

frit_status frit_cuda_profile_set(frit_device *device, bool on);
bool frit_cuda_profile_row(const frit_device *device, size_t i, frit_profile_row *row);
// Runs the launches and adds their times.
frit_status frit_cuda_profile_run(frit_exec *exec, const frit_cuda_step *step);
void frit_cuda_profile_free(frit_cuda_device *device);

// SPDX-License-Identifier: MIT
// backend/cuda/ops/ops.h: the table of ops that GPUs run, and the ops that have no file of their own.
#pragma once
#include "backend/cuda/device.h"

struct frit_cuda_launch;

// `runs` of frit_backend.
bool frit_cuda_runs(const frit_device *device, const frit_node *node);
// True if source i of the node is a matrix that products or lookups read as tiles.
bool frit_cuda_is_tiled(const frit_node *node, int source);
// The launches of a node.
frit_status frit_cuda_lower(frit_exec *exec, const frit_node *node);
// A launch of a kernel of plain.cu, a thread for each number of the result.
frit_status frit_cuda_add_plain(frit_exec *exec, const frit_node *node, const char *name,
                                struct frit_cuda_launch **out);

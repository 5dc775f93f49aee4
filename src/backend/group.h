// SPDX-License-Identifier: MIT
// backend/group.h: several devices of one kind as one device, whose members each compute a part of every node.
//
// The group runs plans of graphs that frit_shard_graph has divided (graph/shard.h). A member, a rank, has its parts of
// the weights and of the cache. Each call goes to all members, each on a thread of its own, in the same order; members
// exchange values by their backend (frit_backend.join). Outputs come from rank 0.
//
// The memory of a cache looks whole from outside: reads, writes and copies go to the ranks that have the bytes.
#pragma once
#include "backend/backend.h"
#include "graph/shard.h"

// True if the name is that of a group: "cpu:0-3", or "cpu:0" for a group of one. Sets the backend's name and the
// members' numbers. False for other names.
bool frit_group_parse(const char *name, char backend[16], int32_t *first, int32_t *n);
// Opens members first, ..., first + n - 1 of the backend. With options->deterministic, sums do not depend on n.
frit_status frit_group_open(frit_device **out, const frit_backend *kind, int32_t first, int32_t n,
                            const frit_device_options *options);

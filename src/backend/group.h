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

// Devices of one backend by their numbers.
typedef struct frit_device_list {
    char backend[16];
    int32_t n;   // may be more than FRIT_MAX_RANKS, which frit_group_open refuses
    int32_t numbers[FRIT_MAX_RANKS];
} frit_device_list;

// True if the name is that of a list: "cpu:0-3", "cuda:0,2", or "cpu:0" for a list of one. False for other names, and
// for lists with a number twice.
bool frit_device_list_parse(const char *name, frit_device_list *list);
// The name of a list, "cuda:0-3" or "cuda:0,2".
void frit_device_list_name(const frit_device_list *list, char *name, size_t n_bytes);
// Opens the devices of the list, which are the backend's, as members of a group. With options->deterministic, sums do
// not depend on how many they are.
frit_status frit_group_open(frit_device **out, const frit_backend *kind, const frit_device_list *list,
                            const frit_device_options *options);

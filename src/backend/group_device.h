// SPDX-License-Identifier: MIT
// backend/group_device.h: private to group*.c: a group, its memory and its executables.
#pragma once
#include "backend/group.h"
#include "backend/group_cache.h"
#include "backend/group_weights.h"
#include "base/thread/thread.h"

enum { FRIT_GROUP_FLIGHTS = 4 };   // more steps than an engine has in flight

typedef struct group_output {   // of a rank after the first
    frit_step_output output;
    int32_t n_picks, n_tops;   // capacity
} group_output;

typedef struct group_flight {
    frit_ticket tickets[FRIT_MAX_RANKS];
    group_output outputs[FRIT_MAX_RANKS];
} group_flight;

typedef struct frit_group {
    frit_device base;
    frit_backend backend;       // the group's functions
    const frit_backend *kind;   // of the members
    char name[32];
    int32_t n;
    bool is_exact, has_own_memory;
    frit_device *members[FRIT_MAX_RANKS];
    frit_meeting *meeting;
    frit_pool *pool;   // a thread for each member; the first one is the caller's
    frit_group_weights weights[FRIT_MAX_RANKS];
    frit_ticket n_submitted;
    group_flight flights[FRIT_GROUP_FLIGHTS];   // step number i is in flights[i % FRIT_GROUP_FLIGHTS]
    char failures[FRIT_MAX_RANKS][FRIT_ERROR_BYTES];
} frit_group;

typedef struct group_memory {
    frit_memory base;
    frit_memory *ranks[FRIT_MAX_RANKS];
    uint64_t offsets[FRIT_MAX_RANKS];   // of values: where they lie in the ranks' memory
    frit_group_cache cache;             // without layers: all ranks have the same bytes
    frit_cache caches[FRIT_MAX_RANKS];
} group_memory;

typedef struct group_exec {
    frit_group *group;
    frit_plan *plan;   // the group's
    frit_arena arenas[FRIT_MAX_RANKS];
    frit_graph graphs[FRIT_MAX_RANKS];
    frit_plan *plans[FRIT_MAX_RANKS];
    frit_exec *execs[FRIT_MAX_RANKS];
    group_memory *values;   // [nodes of the graph]: made when they are asked for
} group_exec;

// Calls fn for each member, on its thread. The first failure, if there is one, with the rank.
typedef frit_status (*frit_member_fn)(frit_group *group, int rank, void *ctx);
frit_status frit_group_on_all(frit_group *group, frit_member_fn fn, void *ctx);
// The same, and after a failure all steps of the members have ended.
frit_status frit_group_run(frit_group *group, frit_member_fn fn, void *ctx);
frit_status frit_group_settle(frit_group *group);   // waits for all steps

// group_memory.c
frit_status frit_group_alloc(frit_device *device, uint64_t n_bytes, frit_memory **out);
frit_status frit_group_alloc_cache(frit_device *device, const frit_cache *cache, uint64_t n_bytes, frit_memory **out);
void frit_group_free(frit_device *device, frit_memory *memory);
void *frit_group_map(const frit_memory *memory);
frit_status frit_group_read(frit_device *device, frit_address from, void *to, uint64_t n_bytes);
frit_status frit_group_write(frit_device *device, frit_address to, const void *from, uint64_t n_bytes);
frit_status frit_group_copy(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes);

// group_exec.c
frit_status frit_group_weight_bytes(frit_device *device, const frit_weight_uses *uses, frit_weight_bytes *out);
frit_status frit_group_load(frit_device *device, const frit_weight_uses *uses, frit_progress progress);
frit_status frit_group_set_adapter(frit_device *device, int32_t i, const frit_adapter_table *adapter);
frit_status frit_group_prepare(frit_device *device, frit_plan *plan, const frit_cache *cache, frit_exec **out);
frit_status frit_group_tune(frit_exec *exec);
frit_status frit_group_exec_bytes(frit_device *device, frit_plan *plan, frit_exec_bytes *out);
frit_address frit_group_value(frit_exec *exec, const frit_node *node);
void frit_group_exec_free(frit_device *device, frit_exec *exec);

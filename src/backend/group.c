// SPDX-License-Identifier: MIT
// Groups: calls to all members, outputs, and the group's row of functions.
#include "backend/group_device.h"

#include "base/machine/topology.h"
#include "base/number.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)FRIT_MAX_RANKS == (int)FRIT_MEETING_MAX, "every rank has a seat");

// ------------------------------------------------------------------------------- calls to all members

typedef struct group_call {
    frit_group *group;
    frit_member_fn fn;
    void *ctx;
    frit_status status[FRIT_MAX_RANKS];
} group_call;

static void call_member(void *ctx, int thread, int n_threads)
{
    group_call *call = ctx;
    (void)n_threads;
    call->status[thread] = call->fn(call->group, thread, call->ctx);
    if (call->status[thread] == FRIT_OK) return;
    snprintf(call->group->failures[thread], sizeof call->group->failures[thread], "%s", frit_error());
    frit_meeting_break(call->group->meeting, thread);
}

static frit_status fail_as(const frit_group *group, int rank, frit_status status)
{
    if (group->n == 1 || status == FRIT_E_CANCELLED) return frit_fail(status, "%s", group->failures[rank]);
    return frit_fail(status, "rank %d of %s: %s", rank, group->name, group->failures[rank]);
}

// The failure of the rank that failed first: others fail because they wait for it.
static frit_status first_failure(const group_call *call)
{
    const frit_group *group = call->group;
    const int breaker = frit_meeting_breaker(group->meeting);
    if (frit_meeting_is_late(group->meeting))
        return frit_fail(FRIT_E_UNSUPPORTED, "rank %d of %s: the others have waited %d seconds for it", breaker,
                         group->name, FRIT_MEETING_MS / 1000);
    if (breaker >= 0 && call->status[breaker] != FRIT_OK) return fail_as(group, breaker, call->status[breaker]);
    for (int i = 0; i < group->n; i++)
        if (call->status[i] != FRIT_OK) return fail_as(group, i, call->status[i]);
    return FRIT_OK;
}

frit_status frit_group_on_all(frit_group *group, frit_member_fn fn, void *ctx)
{
    group_call call = {.group = group, .fn = fn, .ctx = ctx};
    frit_pool_run(group->pool, call_member, &call);
    return first_failure(&call);
}

static frit_status wait_member(frit_group *group, int rank, void *ctx)
{
    frit_device *member = group->members[rank];
    return member->backend->wait(member, ((const frit_ticket *)ctx)[rank]);
}

// Waits for all that members run, and ignores their failures: one has been reported.
static void drain(frit_group *group)
{
    const group_flight *last = &group->flights[group->n_submitted % FRIT_GROUP_FLIGHTS];
    char failures[sizeof group->failures];
    memcpy(failures, group->failures, sizeof failures);
    frit_group_on_all(group, wait_member, (void *)(uintptr_t)last->tickets);
    memcpy(group->failures, failures, sizeof failures);
    frit_meeting_reset(group->meeting);
}

// After a failure the members begin again together.
static frit_status recover(frit_group *group, frit_status status)
{
    char text[FRIT_ERROR_BYTES];
    if (status == FRIT_OK) return FRIT_OK;
    snprintf(text, sizeof text, "%s", frit_error());
    drain(group);
    return frit_fail(status, "%s", text);
}

frit_status frit_group_run(frit_group *group, frit_member_fn fn, void *ctx)
{
    return recover(group, frit_group_on_all(group, fn, ctx));
}

// ------------------------------------------------------------------------------- steps

typedef struct submission {
    const group_exec *exec;
    const frit_batch *batch;
    frit_step_output *output;
    group_flight *flight;
} submission;

// Ranks after the first have outputs of their own, which no caller reads: later steps look up the picks of this one.
static frit_status reserve_output(group_flight *flight, int rank, const frit_batch *batch)
{
    group_output *own = &flight->outputs[rank];
    if (batch->n_picks > own->n_picks) {
        free(own->output.picked);
        own->output.picked = calloc((size_t)batch->n_picks, sizeof *own->output.picked);
        own->n_picks = own->output.picked ? batch->n_picks : 0;
    }
    if (batch->lists.n_tops > own->n_tops) {
        free(own->output.tops);
        own->output.tops = calloc((size_t)batch->lists.n_tops, sizeof *own->output.tops);
        own->n_tops = own->output.tops ? batch->lists.n_tops : 0;
    }
    const bool fits = batch->n_picks <= own->n_picks && batch->lists.n_tops <= own->n_tops;
    return fits ? FRIT_OK : frit_fail_memory((size_t)batch->n_picks, "the picks of a rank");
}

static frit_status submit_member(frit_group *group, int rank, void *ctx)
{
    const submission *s = ctx;
    frit_device *member = group->members[rank];
    frit_step_output *output = s->output;
    if (rank > 0) {
        FRIT_TRY(reserve_output(s->flight, rank, s->batch));
        output = &s->flight->outputs[rank].output;
    }
    return member->backend->submit(member, s->exec->execs[rank], s->batch, output, &s->flight->tickets[rank]);
}

static frit_status group_submit(frit_device *base, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                                frit_ticket *ticket)
{
    frit_group *group = (frit_group *)base;
    group_flight *flight = &group->flights[(group->n_submitted + 1) % FRIT_GROUP_FLIGHTS];
    memcpy(flight->tickets, group->flights[group->n_submitted % FRIT_GROUP_FLIGHTS].tickets, sizeof flight->tickets);
    group->n_submitted++;
    *ticket = group->n_submitted;
    return frit_group_run(group, submit_member,
                          &(submission){(const group_exec *)(const void *)exec, batch, output, flight});
}

static const group_flight *flight_of(const frit_group *group, frit_ticket ticket)
{
    assert(ticket <= group->n_submitted && ticket + FRIT_GROUP_FLIGHTS > group->n_submitted);
    return &group->flights[ticket % FRIT_GROUP_FLIGHTS];
}

static bool group_poll(frit_device *base, frit_ticket ticket)
{
    const frit_group *group = (const frit_group *)base;
    const group_flight *flight = flight_of(group, ticket);
    for (int i = 0; i < group->n; i++)
        if (!group->kind->poll(group->members[i], flight->tickets[i])) return false;
    return true;
}

static frit_status group_wait(frit_device *base, frit_ticket ticket)
{
    frit_group *group = (frit_group *)base;
    if (!group->kind->queues) return FRIT_OK;   // it has run when `submit` returned
    return frit_group_run(group, wait_member, (void *)(uintptr_t)flight_of(group, ticket)->tickets);
}

frit_status frit_group_settle(frit_group *group)
{
    return group_wait(&group->base, group->n_submitted);
}

// ------------------------------------------------------------------------------- opening

typedef struct opening {
    const frit_device_options *options;
    const frit_device_list *list;
} opening;

// Parts of tensors belong to the group, so members have stores of their own.
static frit_status open_member(frit_group *group, int rank, void *ctx)
{
    const opening *o = ctx;
    frit_device_options options = *o->options;
    const frit_rank at = {group->meeting, rank, group->n};
    options.number = group->kind->numbered ? o->list->numbers[rank] : rank;
    options.n_members = group->n;
    options.stores = NULL;
    FRIT_TRY(group->kind->open(&group->members[rank], &options));
    if (!group->members[rank]) return frit_fail(FRIT_E_INVALID, "this machine has no such device");
    group->weights[rank].rank = rank;
    return group->kind->join(group->members[rank], &at);
}

static frit_status close_member(frit_group *group, int rank, void *ctx)
{
    (void)ctx;
    if (group->members[rank]) group->kind->close(group->members[rank]);
    return FRIT_OK;
}

static void group_close(frit_device *base)
{
    frit_group *group = (frit_group *)base;
    if (!group) return;
    if (group->pool) frit_group_on_all(group, close_member, NULL);
    frit_pool_free(group->pool);
    frit_meeting_free(group->meeting);
    for (int i = 0; i < group->n; i++) frit_group_weights_free(&group->weights[i]);
    for (int k = 0; k < FRIT_GROUP_FLIGHTS; k++)
        for (int i = 0; i < group->n; i++) {
            free(group->flights[k].outputs[i].output.picked);
            free(group->flights[k].outputs[i].output.tops);
        }
    free(group);
}

static void group_info(const frit_device *base, frit_device_info *info)
{
    const frit_group *group = (const frit_group *)base;
    group->kind->info(group->members[0], info);
    for (int i = 1; i < group->n; i++) {
        frit_device_info other;
        group->kind->info(group->members[i], &other);
        info->n_threads += other.n_threads;
        info->n_threads_batch += other.n_threads_batch;
        if (other.free_bytes < info->free_bytes) info->free_bytes = other.free_bytes;
    }
    info->n_ranks = group->n;
    info->is_exact = group->is_exact;
}

static bool group_runs(const frit_device *base, const frit_node *node)
{
    const frit_group *group = (const frit_group *)base;
    return group->kind->runs(group->members[0], node);
}

static bool group_can_join(const void *base, frit_join join, const frit_node *node, const frit_node *other)
{
    const frit_group *group = base;
    return group->kind->can_join(group->members[0], join, node, other);
}

static frit_status group_profile(frit_device *base, bool on)
{
    const frit_group *group = (const frit_group *)base;
    return group->kind->profile(group->members[0], on);
}

static bool group_profile_row(const frit_device *base, size_t i, frit_profile_row *row)
{
    const frit_group *group = (const frit_group *)base;
    return group->kind->profile_row(group->members[0], i, row);
}

static void set_functions(frit_group *group)
{
    const frit_backend *kind = group->kind;
    group->backend = (frit_backend){.name = group->name,
                                    .picks = kind->picks,
                                    .queues = kind->queues,
                                    .early_prologues = kind->early_prologues,
                                    .values_by_dim = kind->values_by_dim,
                                    .close = group_close,
                                    .info = group_info,
                                    .alloc = frit_group_alloc,
                                    .alloc_cache = frit_group_alloc_cache,
                                    .free = frit_group_free,
                                    .map = frit_group_map,
                                    .read = frit_group_read,
                                    .write = frit_group_write,
                                    .copy = frit_group_copy,
                                    .runs = group_runs,
                                    .can_join = kind->can_join ? group_can_join : NULL,
                                    .weight_bytes = kind->weight_bytes ? frit_group_weight_bytes : NULL,
                                    .load = kind->load ? frit_group_load : NULL,
                                    .set_adapter = kind->set_adapter ? frit_group_set_adapter : NULL,
                                    .prepare = frit_group_prepare,
                                    .tune = kind->tune ? frit_group_tune : NULL,
                                    .exec_bytes = frit_group_exec_bytes,
                                    .value = frit_group_value,
                                    .submit = group_submit,
                                    .poll = group_poll,
                                    .wait = group_wait,
                                    .exec_free = frit_group_exec_free,
                                    .profile = kind->profile ? group_profile : NULL,
                                    .profile_row = kind->profile ? group_profile_row : NULL,
                                    .op_kernel = kind->op_kernel};
    group->base.backend = &group->backend;
}

static frit_status open_all(frit_group *group, opening *o)
{
    frit_device_info info;
    FRIT_TRY(frit_meeting_new(&group->meeting, group->n, group->n <= frit_topology_cpus()));
    FRIT_TRY(frit_pool_new(&group->pool, group->n));
    FRIT_TRY(frit_group_on_all(group, open_member, o));
    group->kind->info(group->members[0], &info);
    group->has_own_memory = info.free_bytes > 0;
    return FRIT_OK;
}

frit_status frit_group_open(frit_device **out, const frit_backend *kind, const frit_device_list *list,
                            const frit_device_options *options)
{
    *out = NULL;
    if (!kind->join)
        return frit_fail(FRIT_E_UNSUPPORTED, "device: %s devices cannot be members of a group, expected one device",
                         kind->name);
    if (list->n < 1 || list->n > FRIT_MAX_RANKS)
        return frit_fail(FRIT_E_INVALID, "device: a group of %d devices of %s is asked for, expected 1 to %d",
                         (int)list->n, kind->name, (int)FRIT_MAX_RANKS);
    frit_group *group = calloc(1, sizeof *group);
    if (!group) return frit_fail_memory(sizeof *group, "a group of devices");
    group->kind = kind;
    group->n = list->n;
    group->is_exact = options->deterministic;
    frit_device_list_name(list, group->name, sizeof group->name);
    set_functions(group);
    const frit_status status = open_all(group, &(opening){options, list});
    if (status == FRIT_OK)
        *out = &group->base;
    else
        group_close(&group->base);
    return status;
}

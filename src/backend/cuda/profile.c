// SPDX-License-Identifier: MIT
// Timing launches, and adding the times to rows.
#include "backend/cuda/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void frit_cuda_profile_free(frit_cuda_device *d)
{
    if (!d->profile) return;
    for (int i = 0; i < d->profile->n_events; i++) d->driver.event_free(d->profile->events[i]);
    free(d->profile->events);
    free(d->profile);
    d->profile = NULL;
}

frit_status frit_cuda_profile_set(frit_device *base, bool on)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.context_use(d->gpu.context), "using a GPU"));
    frit_cuda_profile_free(d);
    if (on && !(d->profile = calloc(1, sizeof *d->profile)))
        return frit_fail_memory(sizeof *d->profile, "the profile of a GPU");
    return FRIT_OK;
}

bool frit_cuda_profile_row(const frit_device *base, size_t i, frit_profile_row *row)
{
    const frit_cuda_profile *p = ((const frit_cuda_device *)base)->profile;
    if (!p || i >= (size_t)p->n_rows) return false;
    *row = p->rows[i];
    return true;
}

static frit_status reserve_events(frit_cuda_device *d, int n)
{
    frit_cuda_profile *p = d->profile;
    if (n <= p->n_events) return FRIT_OK;
    frit_cuda_event *events = realloc(p->events, (size_t)n * sizeof *events);
    if (!events) return frit_fail_memory((size_t)n * sizeof *events, "the profile of a GPU");
    p->events = events;
    for (; p->n_events < n; p->n_events++)
        FRIT_TRY(frit_cuda_check(&d->driver, d->driver.event_new(&events[p->n_events], 0), "making an event"));
    return FRIT_OK;
}

// The row of this name and type. If the table is full, the last row.
static frit_profile_row *row_of(frit_cuda_profile *p, const char *name, const char *type)
{
    int i = 0;
    while (i < p->n_rows && (strcmp(p->rows[i].op, name) != 0 || strcmp(p->rows[i].type, type) != 0)) i++;
    if (i == FRIT_CUDA_PROFILE_ROWS) return &p->rows[i - 1];
    if (i < p->n_rows) return &p->rows[i];
    snprintf(p->names[i], sizeof p->names[i], "%s", name);
    p->rows[i] = (frit_profile_row){.op = p->names[i], .type = type};
    p->n_rows++;
    return &p->rows[i];
}

// Counts each matrix of a launch as read once. Matrices of experts are not counted: routes are unknown to the host.
static void add_launch(frit_cuda_profile *p, const frit_cuda_launch *l, const frit_cuda_step *step, double seconds)
{
    const char *name = l->kernel ? l->kernel->name : frit_op_get(l->node->op)->name, *type = "";
    if (l->matrices[0]) {
        type = frit_dtype_get(l->matrices[0]->dtype)->name;
        if (!l->kernel) name = frit_op_get(FRIT_OP_LINEAR)->name;
    }
    frit_profile_row *row = row_of(p, name, type);
    row->n_calls++;
    row->run_s += seconds;
    for (int i = 0; i < FRIT_CUDA_MATRICES && l->matrices[i]; i++) {
        const frit_tensor *w = l->matrices[i];
        row->n_bytes += (double)w->n_bytes;
        row->n_ops += 2 * (double)frit_cuda_rows(l->node, step->batch) * (double)frit_tensor_n_elems(w);
    }
}

static frit_status add_all(frit_exec *exec, const frit_cuda_step *step)
{
    const frit_cuda_driver *driver = &exec->device->driver;
    frit_cuda_profile *p = exec->device->profile;
    for (int i = 0; i < exec->n_launches; i++) {
        float ms = 0;
        FRIT_TRY(frit_cuda_check(driver, driver->event_elapsed(&ms, p->events[i], p->events[i + 1]), "reading a time"));
        add_launch(p, &exec->launches[i], step, ms * 1e-3);
    }
    return FRIT_OK;
}

frit_status frit_cuda_profile_run(frit_exec *exec, const frit_cuda_step *step)
{
    frit_cuda_device *d = exec->device;
    const frit_cuda_driver *driver = &d->driver;
    const int n = exec->n_launches;
    FRIT_TRY(reserve_events(d, n + 1));
    for (int i = 0; i <= n; i++) {
        FRIT_TRY(frit_cuda_check(driver, driver->event_record(d->profile->events[i], d->stream), "recording an event"));
        if (i < n) FRIT_TRY(exec->launches[i].run(d, &exec->launches[i], step));
    }
    FRIT_TRY(frit_cuda_check(driver, driver->event_wait(d->profile->events[n]), "running a step on a GPU"));
    return add_all(exec, step);
}

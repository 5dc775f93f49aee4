// SPDX-License-Identifier: MIT
// How much of the time a GPU works on steps, by its own clock: events at the beginning and the end of each. For
// measurements (bench/gpu_engine.c); nothing is recorded before frit_cuda_pace_start.
#include "backend/cuda/device.h"

static frit_status check(frit_cuda_device *d, int result, const char *what)
{
    return frit_cuda_check(&d->driver, result, what);
}

void frit_cuda_pace_stop(frit_cuda_device *d)
{
    frit_cuda_pace *p = &d->pace;
    for (int i = 0; i < FRIT_CUDA_FLIGHTS; i++) {
        if (p->began[i]) d->driver.event_free(p->began[i]);
        if (p->ended[i]) d->driver.event_free(p->ended[i]);
    }
    if (p->first) d->driver.event_free(p->first);
    *p = (frit_cuda_pace){0};
}

frit_status frit_cuda_pace_start(frit_cuda_device *d)
{
    enum { WITH_TIME = 0 };
    frit_cuda_pace *p = &d->pace;
    frit_cuda_pace_stop(d);
    FRIT_TRY(check(d, d->driver.context_use(d->gpu.context), "using a GPU"));
    FRIT_TRY(check(d, d->driver.event_new(&p->first, WITH_TIME), "making an event"));
    for (int i = 0; i < FRIT_CUDA_FLIGHTS; i++) {
        FRIT_TRY(check(d, d->driver.event_new(&p->began[i], WITH_TIME), "making an event"));
        FRIT_TRY(check(d, d->driver.event_new(&p->ended[i], WITH_TIME), "making an event"));
    }
    FRIT_TRY(check(d, d->driver.event_record(p->first, d->stream), "recording an event"));
    p->is_on = true;
    return FRIT_OK;
}

frit_status frit_cuda_pace_mark(frit_cuda_device *d, const frit_cuda_flight *flight, bool is_end)
{
    const frit_cuda_pace *p = &d->pace;
    if (!p->is_on) return FRIT_OK;
    const frit_cuda_event event = (is_end ? p->ended : p->began)[flight - d->flights];
    return check(d, d->driver.event_record(event, d->stream), "recording an event");
}

frit_status frit_cuda_pace_land(frit_cuda_device *d, const frit_cuda_flight *flight)
{
    frit_cuda_pace *p = &d->pace;
    float busy, end;
    if (!p->is_on) return FRIT_OK;
    const frit_cuda_event began = p->began[flight - d->flights], ended = p->ended[flight - d->flights];
    FRIT_TRY(check(d, d->driver.event_elapsed(&busy, began, ended), "reading a GPU's clock"));
    FRIT_TRY(check(d, d->driver.event_elapsed(&end, p->first, ended), "reading a GPU's clock"));
    if (p->n_steps++ == 0) p->start_ms = end - busy;
    p->busy_ms += busy;
    p->end_ms = end;
    return FRIT_OK;
}

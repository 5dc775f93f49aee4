// SPDX-License-Identifier: MIT
// Keys that were seen, their graphs, and which of them are forgotten.
#include "backend/cuda/recordings.h"
#include "backend/cuda/exec.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 512 << 20, LEAST_FREE = 256 << 20 };   // of the GPU's memory

static void free_graph(frit_cuda_device *d, frit_cuda_recording *recording)
{
    if (!recording->graph) return;
    d->driver.graph_exec_free(recording->graph);
    recording->graph = NULL;
    recording->n_seen = 0;
    d->recordings->n_graphs--;
}

static void drop(frit_cuda_device *d, frit_cuda_recording *recording)
{
    frit_cuda_recordings *all = d->recordings;
    free_graph(d, recording);
    *recording = all->list[--all->n];
}

// The recording that was used least recently, with a graph or without. NULL: not found.
static frit_cuda_recording *find_oldest(frit_cuda_recordings *all, bool has_graph)
{
    frit_cuda_recording *oldest = NULL;
    for (int i = 0; i < all->n; i++) {
        frit_cuda_recording *r = &all->list[i];
        if ((r->graph != NULL) == has_graph && (!oldest || r->used_at < oldest->used_at)) oldest = r;
    }
    return oldest;
}

frit_status frit_cuda_recordings_find(frit_cuda_device *d, const frit_cuda_graph_key *key, frit_cuda_recording **out)
{
    *out = NULL;
    if (!d->recordings) d->recordings = calloc(1, sizeof *d->recordings);
    frit_cuda_recordings *all = d->recordings;
    if (!all) return frit_fail_memory(sizeof *all, "recorded steps");
    all->n_finds++;
    for (int i = 0; i < all->n; i++) {
        frit_cuda_recording *r = &all->list[i];
        if (memcmp(&r->key, key, sizeof *key) != 0) continue;
        r->used_at = all->n_finds;
        if (r->n_seen < 2) r->n_seen++;
        if (r->n_seen == 2 && !r->is_refused) *out = r;
        return FRIT_OK;
    }
    if (all->n == FRIT_CUDA_MOST_KEYS) drop(d, find_oldest(all, false));   // fewer than all have graphs
    all->list[all->n++] = (frit_cuda_recording){.key = *key, .n_seen = 1, .used_at = all->n_finds};
    return FRIT_OK;
}

static uint64_t count_free(const frit_cuda_device *d)
{
    size_t n_free = 0, n_all = 0;
    return d->driver.memory_info(&n_free, &n_all) == 0 ? n_free : 0;
}

// Frees the oldest graph if there may not be one more. It is not running: steps in flight use the two newest.
static void make_room(frit_cuda_device *d, uint64_t n_free)
{
    frit_cuda_recordings *all = d->recordings;
    const bool is_large = all->n_bytes > MOST_BYTES || n_free < LEAST_FREE;
    if (all->n_graphs == FRIT_CUDA_MOST_GRAPHS || (is_large && all->n_graphs >= FRIT_CUDA_LEAST_GRAPHS))
        free_graph(d, find_oldest(all, true));
}

static frit_status capture(frit_cuda_recording *recording, frit_exec *exec, const frit_cuda_step *step,
                           frit_cuda_launches_fn run)
{
    frit_cuda_device *d = exec->device;
    frit_cuda_graph graph = NULL;
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.capture_begin(d->stream, FRIT_CUDA_CAPTURE_THREAD), "recording"));
    frit_status status = run(exec, step);
    const int result = d->driver.capture_end(d->stream, &graph);
    if (status == FRIT_OK) status = frit_cuda_check(&d->driver, result, "recording the kernels of a step");
    if (status == FRIT_OK)
        status = frit_cuda_check(&d->driver, d->driver.graph_prepare(&recording->graph, graph, 0), "preparing a graph");
    if (status != FRIT_OK) recording->graph = NULL;
    if (graph) d->driver.graph_free(graph);
    return status;
}

void frit_cuda_recordings_record(frit_cuda_recording *recording, frit_exec *exec, const frit_cuda_step *step,
                                 frit_cuda_launches_fn run)
{
    frit_cuda_device *d = exec->device;
    frit_cuda_recordings *all = d->recordings;
    const uint64_t before = count_free(d);
    make_room(d, before);
    recording->is_refused = capture(recording, exec, step, run) != FRIT_OK;
    if (recording->is_refused) {
        frit_log_say(&d->log, FRIT_LOG_WARNING, "cuda: the kernels of a step are launched one by one: %s",
                     frit_error());
        return;
    }
    const uint64_t after = count_free(d);
    all->n_bytes = (all->n_graphs++ > 0 ? all->n_bytes : 0) + (after < before ? before - after : 0);
}

void frit_cuda_recordings_drop(frit_cuda_device *d, const frit_exec *exec)
{
    frit_cuda_recordings *all = d->recordings;
    for (int i = all ? all->n - 1 : -1; i >= 0; i--)
        if (!exec || all->list[i].key.exec == exec) drop(d, &all->list[i]);
}

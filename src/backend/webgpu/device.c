// SPDX-License-Identifier: MIT
// Opening a GPU through WebGPU, its memory, its queue, and the table of functions for backend.h.
#include "backend/webgpu/device.h"
#include "backend/webgpu/exec.h"
#include "backend/webgpu/ops/adapt.h"
#include "backend/webgpu/ops/linear.h"
#include "backend/webgpu/ops/ops.h"
#include "backend/webgpu/runtime/wgsl.h"
#include "backend/webgpu/weights/weights.h"
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *library_path;

void frit_webgpu_use_library(const char *path)
{
    library_path = path;
}

static const char *const numbered[FRIT_NUMBERED_DEVICES] = FRIT_NUMBERED("webgpu");

static int webgpu_count(void)
{
    return frit_gpu_n_adapters(library_path);
}

static frit_webgpu_device *device_of(const frit_device *base)
{
    return (frit_webgpu_device *)(uintptr_t)base;
}

// ------------------------------------------------------------------------------- opening

// WebGPU does not say how much memory is free. GPUs with memory of their own are asked for it in pieces, large ones
// first, until the smallest are refused; all are given back. Libraries may take a refusal for the loss of the device,
// so the pieces of each size are another device's.
static uint64_t probe_pieces(int number, uint64_t piece, frit_gpu_buffer *pieces, int most, frit_gpu *gpu, int *n)
{
    *n = 0;
    if (frit_gpu_open(gpu, library_path, number) != FRIT_OK) return 0;
    while (piece <= gpu->limits.storage_binding_bytes && *n < most &&
           frit_gpu_buffer_new(gpu, piece, FRIT_GPU_STORAGE, "a probe", &pieces[*n]) == FRIT_OK)
        ++*n;
    return (uint64_t)*n * piece;
}

static uint64_t probe_free(int number)
{
    enum { SIZES = 2, MOST_PIECES = 256 };
    static const uint64_t sizes[SIZES] = {(uint64_t)1 << 30, (uint64_t)256 << 20};
    frit_gpu *gpus = calloc(SIZES, sizeof *gpus);
    frit_gpu_buffer *pieces = calloc((size_t)SIZES * MOST_PIECES, sizeof *pieces);
    uint64_t n_bytes = 0;
    int n[SIZES] = {0};
    for (int i = 0; i < SIZES && gpus && pieces; i++)
        n_bytes += probe_pieces(number, sizes[i], pieces + (size_t)i * MOST_PIECES, MOST_PIECES, &gpus[i], &n[i]);
    for (int i = 0; i < SIZES && gpus && pieces; i++) {
        for (int k = 0; k < n[i]; k++) frit_gpu_buffer_free(&gpus[i], &pieces[(size_t)i * MOST_PIECES + (size_t)k]);
        if (gpus[i].library) frit_gpu_close(&gpus[i]);
    }
    free(pieces);
    free(gpus);
    return n_bytes;
}

static void webgpu_close(frit_device *base)
{
    frit_webgpu_device *d = device_of(base);
    if (!d) return;
    for (int i = 0; i < FRIT_WEBGPU_FLIGHTS; i++) {
        if (d->flights[i].ticket) frit_webgpu_flight_wait(d, &d->flights[i]);
        frit_gpu_unmap(&d->gpu, &d->flights[i].readback);
        frit_gpu_buffer_free(&d->gpu, &d->flights[i].readback);
        free(d->flights[i].pick_rows);
        free(d->flights[i].tokens);
        free(d->flights[i].batch);
    }
    frit_pick_runner_free(d->pick_runner);
    free(d->tokens);
    if (d->ready.commands) frit_gpu_drop_commands(&d->gpu, d->ready.commands);
    frit_webgpu_tensors_free(d);
    frit_webgpu_adapters_free(d);
    for (int i = 0; i < FRIT_WEBGPU_N_SHARED; i++) frit_gpu_buffer_free(&d->gpu, &d->shared[i].buffer);
    for (size_t i = 0; i < d->n_kernels; i++) {
        frit_gpu_pipeline_free(&d->gpu, &d->kernels[i]->pipeline);
        free(d->kernels[i]);
    }
    free(d->kernels);
    free(d->input);
    frit_pool_free(d->pool);
    if (d->gpu.library) frit_gpu_close(&d->gpu);
    free(d);
}

static void describe(frit_webgpu_device *d)
{
    const frit_gpu_features *f = &d->gpu.features;
    snprintf(d->kind, sizeof d->kind, "%s through %s (%s%s%sbindings of %.0f MB)", d->gpu.name, d->gpu.library_name,
             f->is_software ? "a processor, no GPU; " : "", f->has_f16 ? "f16, " : "",
             f->has_subgroups ? "subgroups, " : "", (double)d->gpu.limits.storage_binding_bytes / 1e6);
}

static frit_status webgpu_open(frit_device **out, const frit_device_options *options)
{
    *out = NULL;
    const int number = options->n_members > 0 ? (int)options->number : -1;
    frit_webgpu_device *d = calloc(1, sizeof *d);
    if (!d) return frit_fail_memory(sizeof *d, "a GPU");
    d->base.backend = &frit_backend_webgpu;
    if (options->log) d->log = *options->log;
    d->version = 1;
    for (int i = 0; i < FRIT_WEBGPU_N_SHARED; i++) d->shared[i].base.device = &d->base;
    frit_status status = frit_gpu_open(&d->gpu, library_path, number);
    if (status == FRIT_OK) status = frit_pool_new(&d->pool, options->n_threads);
    if (status == FRIT_OK) status = frit_pick_runner_new(&d->pick_runner, 1, FRIT_PICK_BATCH);
    if (status != FRIT_OK) {
        webgpu_close(&d->base);
        return status;
    }
    describe(d);
    d->number = number;
    if (d->gpu.features.is_software)
        frit_log_say(&d->log, FRIT_LOG_WARNING, "webgpu: %s is a processor, not a GPU; --device cpu is faster",
                     d->gpu.name);
    frit_log_say(&d->log, FRIT_LOG_INFO, "webgpu: %s", d->kind);
    *out = &d->base;
    return FRIT_OK;
}

static void webgpu_info(const frit_device *base, frit_device_info *info)
{
    frit_webgpu_device *d = device_of(base);
    if (d->gpu.features.is_discrete && !d->is_probed) {
        d->is_probed = true;
        d->free_bytes = probe_free(d->number) + d->used_bytes;
    }
    *info = (frit_device_info){.isa = d->kind, .n_threads = 1, .n_threads_batch = 1};
    if (d->free_bytes > 0) info->free_bytes = d->free_bytes > d->used_bytes ? d->free_bytes - d->used_bytes : 1;
}

// ------------------------------------------------------------------------------- memory

// The content is lost if the memory grows. Steps that use the smaller buffer keep it until they have run.
frit_status frit_webgpu_reserve(frit_webgpu_device *d, frit_webgpu_shared which, uint64_t n_bytes)
{
    static const char *const names[] = {
        "intermediate results", "inputs of products", "attention", "a step", "picks", "lists of picks", "adapters"};
    frit_webgpu_memory *memory = &d->shared[which];
    frit_gpu_buffer grown;
    if (memory->buffer.handle && memory->buffer.n_bytes >= n_bytes) return FRIT_OK;
    const uint64_t wanted = which == FRIT_WEBGPU_STEP ? 2 * n_bytes + 4096 : n_bytes;
    FRIT_TRY(frit_gpu_buffer_new(&d->gpu, wanted, FRIT_GPU_STORAGE, names[which], &grown));
    d->used_bytes += grown.n_bytes - memory->buffer.n_bytes;
    if (memory->buffer.handle) d->gpu.call.buffer_release(memory->buffer.handle);
    memory->buffer.handle = grown.handle;
    memory->buffer.n_bytes = memory->base.n_bytes = grown.n_bytes;
    memory->buffer.usage = FRIT_GPU_STORAGE;
    d->version++;
    return FRIT_OK;
}

static frit_status webgpu_alloc(frit_device *base, uint64_t n_bytes, frit_memory **out)
{
    frit_webgpu_device *d = device_of(base);
    *out = NULL;
    frit_webgpu_memory *memory = calloc(1, sizeof *memory);
    if (!memory) return frit_fail_memory(sizeof *memory, "memory of a GPU");
    memory->base = (frit_memory){base, n_bytes};
    const frit_status status = frit_gpu_buffer_new(&d->gpu, n_bytes, FRIT_GPU_STORAGE, "the cache", &memory->buffer);
    if (status != FRIT_OK) {
        free(memory);
        return status;
    }
    d->used_bytes += memory->buffer.n_bytes;
    *out = &memory->base;
    return FRIT_OK;
}

static void webgpu_free(frit_device *base, frit_memory *memory)
{
    frit_webgpu_device *d = device_of(base);
    if (!memory) return;
    frit_webgpu_memory *m = (frit_webgpu_memory *)memory;
    d->used_bytes -= m->buffer.n_bytes;
    frit_gpu_buffer_free(&d->gpu, &m->buffer);
    free(m);
}

static void *webgpu_map(const frit_memory *memory)
{
    (void)memory;
    return NULL;
}

static const frit_gpu_buffer *buffer_of(frit_address address)
{
    return &((const frit_webgpu_memory *)address.memory)->buffer;
}

static frit_status webgpu_read(frit_device *base, frit_address from, void *to, uint64_t n_bytes)
{
    return frit_gpu_read(&device_of(base)->gpu, buffer_of(from), from.offset, to, n_bytes);
}

static frit_status webgpu_write(frit_device *base, frit_address to, const void *from, uint64_t n_bytes)
{
    return frit_gpu_write(&device_of(base)->gpu, buffer_of(to), to.offset, from, n_bytes);
}

// WebGPU copies only between different buffers.
static frit_status webgpu_copy(frit_device *base, frit_address to, frit_address from, uint64_t n_bytes)
{
    frit_webgpu_device *d = device_of(base);
    frit_gpu_buffer between;
    const frit_gpu_buffer *source = buffer_of(from), *target = buffer_of(to);
    if (source != target) {
        const frit_gpu_copy copy = {source, target, from.offset, to.offset, n_bytes};
        return frit_gpu_submit(&d->gpu, &(frit_gpu_list){.copies = &copy, .n_copies = 1, .is_new = true});
    }
    FRIT_TRY(frit_gpu_buffer_new(&d->gpu, n_bytes, FRIT_GPU_STORAGE, "a copy", &between));
    const frit_gpu_copy copies[] = {{source, &between, from.offset, 0, n_bytes},
                                    {&between, target, 0, to.offset, n_bytes}};
    const frit_status status =
        frit_gpu_submit(&d->gpu, &(frit_gpu_list){.copies = copies, .n_copies = 2, .is_new = true});
    d->gpu.call.buffer_release(between.handle);
    return status;
}

// ------------------------------------------------------------------------------- kernels

static bool is_same(const frit_webgpu_kernel *a, const frit_webgpu_kernel *b)
{
    return strcmp(a->file, b->file) == 0 && strcmp(a->kinds, b->kinds) == 0 && a->n_defines == b->n_defines &&
           memcmp(a->defines, b->defines, sizeof a->defines) == 0;
}

static frit_status build_kernel(frit_webgpu_device *d, frit_webgpu_kernel *kernel)
{
    const char *defines[FRIT_WEBGPU_DEFINES];
    frit_buf text = {0};
    for (int i = 0; i < kernel->n_defines; i++) defines[i] = kernel->defines[i];
    frit_status status = frit_wgsl_make(kernel->file, defines, (size_t)kernel->n_defines, &text);
    if (status == FRIT_OK)
        status = frit_gpu_pipeline_new(&d->gpu, kernel->file, text.data, kernel->kinds, &kernel->pipeline);
    frit_buf_free(&text);
    return status;
}

frit_status frit_webgpu_kernel_get(frit_webgpu_device *d, const frit_webgpu_kernel *wanted, frit_webgpu_kernel **out)
{
    for (size_t i = 0; i < d->n_kernels; i++) {
        *out = d->kernels[i];
        if (is_same(*out, wanted)) return FRIT_OK;
    }
    FRIT_TRY(FRIT_GROW(d->kernels, d->kernels_capacity, d->n_kernels + 1, "the list of kernels"));
    frit_webgpu_kernel *kernel = malloc(sizeof *kernel);
    if (!kernel) return frit_fail_memory(sizeof *kernel, "a kernel");
    *kernel = *wanted;
    const frit_status status = build_kernel(d, kernel);
    if (status != FRIT_OK) {
        free(kernel);
        return status;
    }
    *out = d->kernels[d->n_kernels++] = kernel;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- the queue

static bool webgpu_poll(frit_device *base, frit_ticket ticket)
{
    frit_webgpu_device *d = device_of(base);
    for (int i = 0; i < FRIT_WEBGPU_FLIGHTS; i++) {
        frit_webgpu_flight *flight = &d->flights[i];
        if (!flight->ticket || flight->ticket > ticket || !frit_gpu_is_mapped(&d->gpu, &flight->readback)) continue;
        const frit_status status = frit_webgpu_flight_wait(d, flight);
        if (status == FRIT_OK || d->failure != FRIT_OK) continue;
        d->failure = status;
        snprintf(d->sentence, sizeof d->sentence, "%s", frit_error());
    }
    return d->n_done >= ticket;
}

static frit_status webgpu_wait(frit_device *base, frit_ticket ticket)
{
    frit_webgpu_device *d = device_of(base);
    frit_status status = d->failure;
    if (status != FRIT_OK) status = frit_fail(status, "%s", d->sentence);
    d->failure = FRIT_OK;
    for (int i = 0; i < FRIT_WEBGPU_FLIGHTS; i++) {
        if (!d->flights[i].ticket || d->flights[i].ticket > ticket) continue;
        const frit_status waited = frit_webgpu_flight_wait(d, &d->flights[i]);
        if (status == FRIT_OK) status = waited;
    }
    return status;
}

static const char *webgpu_op_kernel(frit_op op)
{
    (void)op;
    return "webgpu";
}

const frit_backend frit_backend_webgpu = {
    .name = "webgpu",
    .picks = true,
    .queues = true,
    .by_name = true,   // used only if it is named: it is young
    .numbered = numbered,
    .count = webgpu_count,
    .open = webgpu_open,
    .close = webgpu_close,
    .info = webgpu_info,
    .alloc = webgpu_alloc,
    .free = webgpu_free,
    .map = webgpu_map,
    .read = webgpu_read,
    .write = webgpu_write,
    .copy = webgpu_copy,
    .runs = frit_webgpu_runs,
    .can_join = frit_webgpu_can_join,
    .weight_bytes = frit_webgpu_weight_bytes,
    .set_adapter = frit_webgpu_set_adapter,
    .prepare = frit_webgpu_prepare,
    .value = frit_webgpu_value,
    .submit = frit_webgpu_submit,
    .poll = webgpu_poll,
    .wait = webgpu_wait,
    .exec_free = frit_webgpu_exec_free,
    .op_kernel = webgpu_op_kernel,
};

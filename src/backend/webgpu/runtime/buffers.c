// SPDX-License-Identifier: MIT
// Buffers of a GPU, and copies between them and the host.
#include "backend/webgpu/runtime/gpu.h"
#include "backend/webgpu/runtime/scope.h"

#include "base/os.h"

#include <string.h>

enum { NOT_MAPPED, WAITING, MAPPED, FAILED };
enum { PIECE_BYTES = 16 << 20 };

static uint64_t usage_bits(frit_gpu_usage usage)
{
    switch (usage) {
    case FRIT_GPU_UNIFORM:
        return FRIT_WGPU_USE_UNIFORM | FRIT_WGPU_COPY_DST;
    case FRIT_GPU_READBACK:
        return FRIT_WGPU_MAP_READ | FRIT_WGPU_COPY_DST;
    default:
        return FRIT_WGPU_USE_STORAGE | FRIT_WGPU_COPY_DST | FRIT_WGPU_COPY_SRC;
    }
}

frit_status frit_gpu_buffer_new(frit_gpu *gpu, uint64_t n_bytes, frit_gpu_usage usage, const char *what,
                                frit_gpu_buffer *out)
{
    const uint64_t size = (n_bytes + 15) / 16 * 16 + (n_bytes == 0 ? 16 : 0);
    const uint64_t most = usage == FRIT_GPU_STORAGE && gpu->limits.storage_binding_bytes < gpu->limits.buffer_bytes
                              ? gpu->limits.storage_binding_bytes
                              : gpu->limits.buffer_bytes;
    *out = (frit_gpu_buffer){.usage = usage};
    if (size > most)
        return frit_fail(FRIT_E_MEMORY, "%s: %.1f MB for %s are more than a buffer can have, %.1f MB", gpu->name,
                         (double)size / 1e6, what, (double)most / 1e6);
    FRIT_TRY(frit_gpu_check(gpu));
    frit_gpu_scope_begin(gpu);
    const frit_wgpu_buffer_descriptor descriptor = {.usage = usage_bits(usage), .size = size};
    frit_wgpu_buffer handle = gpu->call.buffer_new(gpu->device, &descriptor);
    const frit_status status = frit_gpu_scope_end(gpu, what);
    if (status == FRIT_OK && handle) {
        out->handle = handle;
        out->n_bytes = size;
        return FRIT_OK;
    }
    if (handle) gpu->call.buffer_release(handle);
    return status != FRIT_OK ? status : frit_fail(FRIT_E_MEMORY, "%s: no buffer for %s", gpu->name, what);
}

void frit_gpu_buffer_free(frit_gpu *gpu, frit_gpu_buffer *buffer)
{
    if (!buffer->handle) return;
    gpu->call.buffer_destroy(buffer->handle);
    gpu->call.buffer_release(buffer->handle);
    *buffer = (frit_gpu_buffer){0};
}

static frit_status check_range(const frit_gpu *gpu, const frit_gpu_buffer *buffer, uint64_t offset, uint64_t n_bytes)
{
    if (offset % 4 == 0 && n_bytes % 4 == 0 && offset <= buffer->n_bytes && n_bytes <= buffer->n_bytes - offset)
        return FRIT_OK;
    return frit_fail(FRIT_E_INTERNAL,
                     "%s: bytes %llu to %llu of a buffer of %llu bytes; expected multiples of 4 inside of it",
                     gpu->name, (unsigned long long)offset, (unsigned long long)(offset + n_bytes),
                     (unsigned long long)buffer->n_bytes);
}

frit_status frit_gpu_write(frit_gpu *gpu, const frit_gpu_buffer *to, uint64_t offset, const void *from,
                           uint64_t n_bytes)
{
    FRIT_TRY(check_range(gpu, to, offset, n_bytes));
    FRIT_TRY(frit_gpu_check(gpu));
    for (uint64_t at = 0; at < n_bytes; at += PIECE_BYTES) {
        const uint64_t n = n_bytes - at < PIECE_BYTES ? n_bytes - at : PIECE_BYTES;
        gpu->call.queue_write(gpu->queue, to->handle, offset + at, (const uint8_t *)from + at, (size_t)n);
        if (n_bytes > PIECE_BYTES) FRIT_TRY(frit_gpu_submit(gpu, &(frit_gpu_list){0}));   // frees the copies in between
    }
    return frit_gpu_check(gpu);
}

// ------------------------------------------------------------------------------- mapping

static void mapped(uint32_t status, frit_wgpu_string_view message, void *a, void *b)
{
    frit_gpu_buffer *buffer = a;
    (void)message, (void)b;
    atomic_store(&buffer->map_state, status == FRIT_WGPU_SUCCESS ? MAPPED : FAILED);
}

frit_status frit_gpu_map_begin(frit_gpu *gpu, frit_gpu_buffer *buffer, uint64_t n_bytes)
{
    FRIT_TRY(check_range(gpu, buffer, 0, n_bytes));
    FRIT_TRY(frit_gpu_check(gpu));
    if (buffer->usage != FRIT_GPU_READBACK || atomic_load(&buffer->map_state) != NOT_MAPPED)
        return frit_fail(FRIT_E_INTERNAL, "%s: a buffer is mapped that the host cannot read", gpu->name);
    atomic_store(&buffer->map_state, WAITING);
    gpu->call.buffer_map(buffer->handle, FRIT_WGPU_MAP_READ, 0, (size_t)n_bytes,
                         (frit_wgpu_map_callback){.mode = FRIT_WGPU_PROCESS_EVENTS, .callback = mapped, .a = buffer});
    return FRIT_OK;
}

bool frit_gpu_is_mapped(frit_gpu *gpu, frit_gpu_buffer *buffer)
{
    if (atomic_load(&buffer->map_state) == WAITING) {
        if (gpu->call.poll)
            gpu->call.poll(gpu->device, 0, NULL);
        else
            gpu->call.process_events(gpu->instance);
    }
    return atomic_load(&buffer->map_state) != WAITING;
}

frit_status frit_gpu_map_wait(frit_gpu *gpu, frit_gpu_buffer *buffer, uint64_t submit, uint64_t n_bytes,
                              const void **out)
{
    *out = NULL;
    while (!frit_gpu_is_mapped(gpu, buffer) && !atomic_load(&gpu->is_lost)) {
        if (gpu->call.poll)
            gpu->call.poll(gpu->device, 1, &submit);
        else
            frit_os_yield();
    }
    FRIT_TRY(frit_gpu_check(gpu));
    if (atomic_load(&buffer->map_state) == MAPPED) *out = gpu->call.buffer_mapped(buffer->handle, 0, (size_t)n_bytes);
    return *out ? FRIT_OK : frit_fail(FRIT_E_UNSUPPORTED, "%s: results cannot be read", gpu->name);
}

void frit_gpu_unmap(frit_gpu *gpu, frit_gpu_buffer *buffer)
{
    if (atomic_load(&buffer->map_state) == MAPPED) gpu->call.buffer_unmap(buffer->handle);
    atomic_store(&buffer->map_state, NOT_MAPPED);
}

static frit_status read_piece(frit_gpu *gpu, frit_gpu_buffer *staging, const frit_gpu_copy *copy, void *to)
{
    const void *bytes;
    FRIT_TRY(frit_gpu_submit(gpu, &(frit_gpu_list){.copies = copy, .n_copies = 1}));
    FRIT_TRY(frit_gpu_map_begin(gpu, staging, copy->n_bytes));
    const frit_status status = frit_gpu_map_wait(gpu, staging, gpu->last_submit, copy->n_bytes, &bytes);
    if (status == FRIT_OK) memcpy(to, bytes, (size_t)copy->n_bytes);
    frit_gpu_unmap(gpu, staging);
    return status;
}

frit_status frit_gpu_read(frit_gpu *gpu, const frit_gpu_buffer *from, uint64_t offset, void *to, uint64_t n_bytes)
{
    frit_gpu_buffer staging;
    frit_status status = FRIT_OK;
    FRIT_TRY(check_range(gpu, from, offset, n_bytes));
    FRIT_TRY(frit_gpu_buffer_new(gpu, n_bytes < PIECE_BYTES ? n_bytes : PIECE_BYTES, FRIT_GPU_READBACK,
                                 "reading from the GPU", &staging));
    for (uint64_t at = 0; at < n_bytes && status == FRIT_OK; at += PIECE_BYTES) {
        const uint64_t n = n_bytes - at < PIECE_BYTES ? n_bytes - at : PIECE_BYTES;
        const frit_gpu_copy copy = {.from = from, .to = &staging, .from_offset = offset + at, .n_bytes = n};
        status = read_piece(gpu, &staging, &copy, (uint8_t *)to + at);
    }
    frit_gpu_buffer_free(gpu, &staging);
    return status;
}

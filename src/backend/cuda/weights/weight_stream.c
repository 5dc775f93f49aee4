// SPDX-License-Identifier: MIT
// Assigning stream buffers to executables, and filling them ahead.
#include "backend/cuda/weights/weight_stream.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/weights/weights.h"

#include <stdlib.h>

enum { ALIGNMENT = 256, EVENT_WITHOUT_TIME = 2 };

static frit_status check_driver(const frit_cuda_device *d, int result, const char *what)
{
    return frit_cuda_check(&d->driver, result, what);
}

// ------------------------------------------------------------------------------- places

frit_status frit_cuda_weight_stream_add(frit_exec *exec, const frit_cuda_tensor *tensor, frit_cuda_address *out)
{
    for (size_t i = 0; i < exec->n_streamed; i++)
        if (frit_cuda_tensor_equals(&exec->streamed[i], tensor)) {
            *out = (frit_cuda_address){FRIT_CUDA_STREAMED, exec->streamed[i].address};
            return FRIT_OK;
        }
    frit_cuda_tensor *list = realloc(exec->streamed, (exec->n_streamed + 1) * sizeof *list);
    if (!list) return frit_fail_memory(sizeof *list, "the list of weights");
    exec->streamed = list;
    list[exec->n_streamed] = *tensor;
    list[exec->n_streamed++].address = exec->streamed_bytes;
    *out = (frit_cuda_address){FRIT_CUDA_STREAMED, exec->streamed_bytes};
    exec->streamed_bytes += (tensor->n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return FRIT_OK;
}

static frit_status make_events(frit_cuda_device *d, frit_cuda_stream_buffer *buffer)
{
    if (buffer->is_read) return FRIT_OK;
    for (int i = 0; i < FRIT_CUDA_PIECES; i++)
        FRIT_TRY(check_driver(d, d->driver.event_new(&buffer->is_filled[i], EVENT_WITHOUT_TIME), "making an event"));
    return check_driver(d, d->driver.event_new(&buffer->is_read, EVENT_WITHOUT_TIME), "making an event");
}

// Executables store offsets only, so a buffer may be reallocated.
frit_status frit_cuda_weight_stream_join(frit_exec *exec)
{
    frit_cuda_device *d = exec->device;
    exec->stream_buffer = (int)(d->n_streaming++ % FRIT_CUDA_STREAM_BUFFERS);
    exec->older = d->streaming;
    d->streaming = exec;
    frit_cuda_stream_buffer *buffer = &d->stream_buffers[exec->stream_buffer];
    FRIT_TRY(make_events(d, buffer));
    if (buffer->n_bytes >= exec->streamed_bytes) return FRIT_OK;
    FRIT_TRY(frit_cuda_loader_wait(&d->loader));
    FRIT_TRY(check_driver(d, d->driver.stream_wait(d->stream), "waiting for a GPU"));
    frit_cuda_free_bytes(d, buffer->address);
    buffer->holds = NULL;
    buffer->n_bytes = 0;
    FRIT_TRY(frit_cuda_alloc_bytes(d, exec->streamed_bytes, "weights that come with each step", &buffer->address));
    buffer->n_bytes = exec->streamed_bytes;
    return FRIT_OK;
}

void frit_cuda_weight_stream_leave(frit_exec *exec)
{
    frit_cuda_device *d = exec->device;
    for (frit_exec **at = &d->streaming; *at; at = &(*at)->older)
        if (*at == exec) {
            *at = exec->older;
            break;
        }
    for (frit_exec *other = d->streaming; other; other = other->older)
        if (other->follower == exec) other->follower = NULL;
    for (int i = 0; i < FRIT_CUDA_STREAM_BUFFERS; i++)
        if (d->stream_buffers[i].holds == exec) d->stream_buffers[i].holds = NULL;
    if (d->streamed == exec) d->streamed = NULL;
    free(exec->streamed);
    exec->streamed = NULL;
    exec->n_streamed = 0;
}

void frit_cuda_weight_stream_close(frit_cuda_device *d)
{
    for (int i = 0; i < FRIT_CUDA_STREAM_BUFFERS; i++) {
        frit_cuda_stream_buffer *buffer = &d->stream_buffers[i];
        frit_cuda_free_bytes(d, buffer->address);
        for (int k = 0; k < FRIT_CUDA_PIECES; k++)
            if (buffer->is_filled[k]) d->driver.event_free(buffer->is_filled[k]);
        if (buffer->is_read) d->driver.event_free(buffer->is_read);
    }
}

// ------------------------------------------------------------------------------- a step

// Starts copying the executable's matrices to its buffer, after the step that read the buffer last.
static frit_status fill_buffer(frit_cuda_device *d, frit_exec *exec)
{
    frit_cuda_stream_buffer *buffer = &d->stream_buffers[exec->stream_buffer];
    frit_cuda_piece *pieces = d->loader.pieces;
    buffer->holds = NULL;
    for (int i = 0; i < FRIT_CUDA_PIECES && buffer->was_read; i++)
        FRIT_TRY(
            check_driver(d, d->driver.stream_wait_event(pieces[i].stream, buffer->is_read, 0), "waiting for a step"));
    for (size_t i = 0; i < exec->n_streamed; i++) {
        frit_cuda_tensor tensor = exec->streamed[i];
        tensor.address += buffer->address;
        FRIT_TRY(frit_cuda_tensor_fill(d, &tensor));
    }
    for (int i = 0; i < FRIT_CUDA_PIECES; i++)
        FRIT_TRY(check_driver(d, d->driver.event_record(buffer->is_filled[i], pieces[i].stream), "recording an event"));
    buffer->holds = exec;
    return FRIT_OK;
}

frit_status frit_cuda_weight_stream_begin(frit_exec *exec, uint64_t *address)
{
    frit_cuda_device *d = exec->device;
    frit_cuda_stream_buffer *buffer = &d->stream_buffers[exec->stream_buffer];
    if (buffer->holds != exec) FRIT_TRY(fill_buffer(d, exec));
    for (int i = 0; i < FRIT_CUDA_PIECES; i++)
        FRIT_TRY(
            check_driver(d, d->driver.stream_wait_event(d->stream, buffer->is_filled[i], 0), "waiting for weights"));
    *address = buffer->address;
    return FRIT_OK;
}

frit_status frit_cuda_weight_stream_end(frit_exec *exec)
{
    frit_cuda_device *d = exec->device;
    frit_cuda_stream_buffer *buffer = &d->stream_buffers[exec->stream_buffer];
    FRIT_TRY(check_driver(d, d->driver.event_record(buffer->is_read, d->stream), "recording an event"));
    buffer->was_read = true;
    if (d->streamed && d->streamed != exec) d->streamed->follower = exec;
    d->streamed = exec;
    frit_exec *next = exec->follower;
    if (!next || next->stream_buffer == exec->stream_buffer || d->stream_buffers[next->stream_buffer].holds == next)
        return FRIT_OK;
    return fill_buffer(d, next);
}

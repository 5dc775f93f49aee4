// SPDX-License-Identifier: MIT
// The table of target GPUs, and a driver whose GPUs are the rows of this table.
#include "backend/cuda/runtime/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const frit_cuda_target targets[] = {
#define GPU(name, arch, n_multiprocessors, shared_kib, l2_mib) {name, arch, n_multiprocessors, shared_kib, l2_mib},
#include "backend/cuda/runtime/gpus.def"
#undef GPU
};

const frit_cuda_target *frit_cuda_target_get(size_t i)
{
    return i < FRIT_COUNT(targets) ? &targets[i] : NULL;
}

int frit_cuda_target_find(const char *name)
{
    for (size_t i = 0; i < FRIT_COUNT(targets); i++)
        if (strcmp(targets[i].name, name) == 0) return (int)i;
    return -1;
}

// ------------------------------------------------------------------------------- the driver

enum { OK, INVALID = 1, OUT_OF_MEMORY = 2 };

static const size_t memory_bytes = (size_t)1 << 40;       // any model fits
static const uint64_t some_address = (uint64_t)1 << 32;   // of all memory, because nothing reads it
static char some_object;                                  // the address of all objects; nothing reads it either

static int no_flags(unsigned flags)
{
    (void)flags;
    return OK;
}

static int get_version(int *version)
{
    *version = 0;   // not known
    return OK;
}

static int get_error(int result, const char **text)
{
    *text = result == OUT_OF_MEMORY ? "out of memory" : "no GPU is here";
    return OK;
}

static int get_count(int *n)
{
    *n = (int)FRIT_COUNT(targets);
    return OK;
}

static int get_device(int *device, int ordinal)
{
    *device = ordinal;
    return OK;
}

static int get_name(char *name, int n, int device)
{
    snprintf(name, (size_t)n, "%s", targets[device].name);
    return OK;
}

static int get_memory_of(size_t *n_bytes, int device)
{
    (void)device;
    *n_bytes = memory_bytes;
    return OK;
}

static int get_attribute(int *value, int attribute, int device)
{
    const frit_cuda_target *t = &targets[device];
    const struct {
        int attribute, value;
    } known[] = {{FRIT_CUDA_MAJOR, t->arch / 10},
                 {FRIT_CUDA_MINOR, t->arch % 10},
                 {FRIT_CUDA_MULTIPROCESSORS, t->n_multiprocessors},
                 {FRIT_CUDA_SHARED_OPTIN, t->shared_kib << 10},
                 {FRIT_CUDA_L2_BYTES, t->l2_mib << 20}};
    for (size_t i = 0; i < FRIT_COUNT(known); i++) {
        if (known[i].attribute != attribute) continue;
        *value = known[i].value;
        return OK;
    }
    return INVALID;
}

static int retain_context(frit_cuda_context *context, int device)
{
    (void)device;
    *context = (frit_cuda_context)(void *)&some_object;
    return OK;
}

static int release_context(int device)
{
    (void)device;
    return OK;
}

static int use_context(frit_cuda_context context)
{
    (void)context;
    return OK;
}

static int wait_context(void)
{
    return OK;
}

static int get_memory(size_t *n_free, size_t *n_total)
{
    *n_free = *n_total = memory_bytes;
    return OK;
}

static int alloc_memory(uint64_t *address, size_t n_bytes)
{
    (void)n_bytes;
    *address = some_address;
    return OK;
}

static int free_memory(uint64_t address)
{
    (void)address;
    return OK;
}

static int alloc_host(void **address, size_t n_bytes, unsigned flags)
{
    (void)flags;
    *address = malloc(n_bytes + 1);
    return *address ? OK : OUT_OF_MEMORY;
}

static int free_host(void *address)
{
    free(address);
    return OK;
}

static int set_memory(uint64_t to, unsigned char value, size_t n, frit_cuda_stream stream)
{
    (void)to, (void)value, (void)n, (void)stream;
    return OK;
}

static int copy_up(uint64_t to, const void *from, size_t n, frit_cuda_stream stream)
{
    (void)to, (void)from, (void)n, (void)stream;
    return OK;
}

static int copy_down(void *to, uint64_t from, size_t n, frit_cuda_stream stream)
{
    (void)from, (void)stream;
    memset(to, 0, n);
    return OK;
}

static int copy_within(uint64_t to, uint64_t from, size_t n, frit_cuda_stream stream)
{
    (void)to, (void)from, (void)n, (void)stream;
    return OK;
}

static int load_module(frit_cuda_module *module, const void *cubin)
{
    (void)cubin;
    *module = (frit_cuda_module)(void *)&some_object;
    return OK;
}

static int unload_module(frit_cuda_module module)
{
    (void)module;
    return OK;
}

static int get_function(frit_cuda_function *function, frit_cuda_module module, const char *name)
{
    (void)module, (void)name;
    *function = (frit_cuda_function)(void *)&some_object;
    return OK;
}

static int set_function(frit_cuda_function function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return OK;
}

static int count_blocks(int *n, frit_cuda_function function, int threads, size_t shared)
{
    (void)function, (void)threads, (void)shared;
    *n = 1;
    return OK;
}

static int launch(const frit_cuda_launch_config *config, frit_cuda_function function, void **params, void **extra)
{
    (void)config, (void)function, (void)params, (void)extra;
    return OK;
}

static int new_stream(frit_cuda_stream *stream, unsigned flags)
{
    (void)flags;
    *stream = (frit_cuda_stream)(void *)&some_object;
    return OK;
}

static int use_stream(frit_cuda_stream stream)
{
    (void)stream;
    return OK;
}

static int begin_capture(frit_cuda_stream stream, int mode)
{
    (void)stream, (void)mode;
    return INVALID;   // no step runs
}

static int end_capture(frit_cuda_stream stream, frit_cuda_graph *graph)
{
    (void)stream;
    *graph = NULL;
    return INVALID;
}

static int prepare_graph(frit_cuda_graph_exec *exec, frit_cuda_graph graph, unsigned long long flags)
{
    (void)graph, (void)flags;
    *exec = NULL;
    return INVALID;
}

static int launch_graph(frit_cuda_graph_exec exec, frit_cuda_stream stream)
{
    (void)exec, (void)stream;
    return INVALID;
}

static int free_graph(frit_cuda_graph graph)
{
    (void)graph;
    return OK;
}

static int free_graph_exec(frit_cuda_graph_exec exec)
{
    (void)exec;
    return OK;
}

static int new_event(frit_cuda_event *event, unsigned flags)
{
    (void)flags;
    *event = (frit_cuda_event)(void *)&some_object;
    return OK;
}

static int use_event(frit_cuda_event event)
{
    (void)event;
    return OK;
}

static int record_event(frit_cuda_event event, frit_cuda_stream stream)
{
    (void)event, (void)stream;
    return OK;
}

static int wait_for_event(frit_cuda_stream stream, frit_cuda_event event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return OK;
}

static int get_elapsed(float *milliseconds, frit_cuda_event begin, frit_cuda_event end)
{
    (void)begin, (void)end;
    *milliseconds = 0;
    return OK;
}

void frit_cuda_driver_open_target(frit_cuda_driver *driver)
{
    *driver = (frit_cuda_driver){.init = no_flags,
                                 .driver_version = get_version,
                                 .error_text = get_error,
                                 .device_count = get_count,
                                 .device_get = get_device,
                                 .device_name = get_name,
                                 .device_memory = get_memory_of,
                                 .device_attribute = get_attribute,
                                 .context_retain = retain_context,
                                 .context_release = release_context,
                                 .context_use = use_context,
                                 .context_wait = wait_context,
                                 .memory_info = get_memory,
                                 .memory_alloc = alloc_memory,
                                 .memory_free = free_memory,
                                 .host_alloc = alloc_host,
                                 .host_free = free_host,
                                 .memory_set = set_memory,
                                 .copy_up = copy_up,
                                 .copy_down = copy_down,
                                 .copy_within = copy_within,
                                 .module_load = load_module,
                                 .module_unload = unload_module,
                                 .module_function = get_function,
                                 .function_set = set_function,
                                 .function_blocks = count_blocks,
                                 .launch = launch,
                                 .stream_new = new_stream,
                                 .stream_free = use_stream,
                                 .stream_wait = use_stream,
                                 .capture_begin = begin_capture,
                                 .capture_end = end_capture,
                                 .graph_prepare = prepare_graph,
                                 .graph_launch = launch_graph,
                                 .graph_free = free_graph,
                                 .graph_exec_free = free_graph_exec,
                                 .event_new = new_event,
                                 .event_free = use_event,
                                 .event_record = record_event,
                                 .event_wait = use_event,
                                 .event_query = use_event,
                                 .stream_wait_event = wait_for_event,
                                 .event_elapsed = get_elapsed};
}

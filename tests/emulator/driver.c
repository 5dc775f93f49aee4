// SPDX-License-Identifier: MIT
// CUDA's driver for the emulator. Streams work immediately, and new memory is full of NaN. There are FRIT_EMULATED_GPUS
// (default 1), which share FRIT_EMULATED_BYTES of memory (default 4 GiB). They are of kind FRIT_EMULATED_ARCH (default
// sm_90), and have FRIT_EMULATED_MULTIPROCESSORS (default 4) each.
#include "emulator.h"

#include "backend/cuda/runtime/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK, INVALID = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500 };

// ------------------------------------------------------------------------------- the device

static _Atomic uint64_t n_used, n_total, n_foreign;
static int fault;

void emulated_break(int result)
{
    fault = result;
}

void emulated_take(uint64_t n_bytes)
{
    n_used = n_used - n_foreign + n_bytes;
    n_foreign = n_bytes;
}

int cuInit(unsigned flags)
{
    const char *text = getenv("FRIT_EMULATED_BYTES");
    n_total = text ? strtoull(text, NULL, 10) : (uint64_t)4 << 30;
    return flags ? INVALID : OK;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return OK;
}

int cuGetErrorString(int result, const char **text)
{
    *text = result == OUT_OF_MEMORY   ? "out of memory"
            : result == EMULATED_LOST ? "unspecified launch failure"
            : result == NOT_FOUND     ? "named symbol not found"
                                      : "invalid argument";
    return OK;
}

int cuDeviceGetCount(int *n)
{
    const char *text = getenv("FRIT_EMULATED_GPUS");
    *n = text ? (int)strtol(text, NULL, 10) : 1;
    return OK;
}

static bool is_device(int device)
{
    int n;
    cuDeviceGetCount(&n);
    return device >= 0 && device < n;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return is_device(ordinal) ? OK : INVALID;
}

int cuDeviceGetName(char *name, int n, int device)
{
    snprintf(name, (size_t)n, "emulated GPU");
    return is_device(device) ? OK : INVALID;
}

int cuDeviceTotalMem_v2(size_t *n_bytes, int device)
{
    *n_bytes = n_total;
    return is_device(device) ? OK : INVALID;
}

static int arch(void)
{
    const char *text = getenv("FRIT_EMULATED_ARCH");
    return text ? (int)strtol(text, NULL, 10) : 90;
}

// Shared memory that a block of threads may have.
static int shared_kib(void)
{
    switch (arch()) {
    case 70:
        return 96;
    case 75:
        return 64;
    case 80:
    case 87:
        return 163;
    case 86:
    case 89:
    case 120:
        return 99;
    default:
        return 227;
    }
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *text = getenv("FRIT_EMULATED_MULTIPROCESSORS");
    *value = attribute == FRIT_CUDA_MULTIPROCESSORS ? text ? (int)strtol(text, NULL, 10) : 4
             : attribute == FRIT_CUDA_MAJOR         ? arch() / 10
             : attribute == FRIT_CUDA_MINOR         ? arch() % 10
             : attribute == FRIT_CUDA_SHARED_OPTIN  ? shared_kib() << 10
             : attribute == FRIT_CUDA_L2_BYTES      ? 50 << 20
                                                    : 0;
    return is_device(device) ? OK : INVALID;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    static int one;
    *context = &one;
    return is_device(device) ? OK : INVALID;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    return is_device(device) ? OK : INVALID;
}

int cuCtxSetCurrent(void *context)
{
    (void)context;
    return OK;
}

int cuCtxSynchronize(void)
{
    return fault;
}

// ------------------------------------------------------------------------------- memory

// The size of an allocation precedes it.
enum { HEAD = 256 };

int cuMemGetInfo_v2(size_t *n_free, size_t *n_all)
{
    *n_all = n_total;
    *n_free = n_used < n_total ? n_total - n_used : 0;
    return fault;
}

int cuMemAlloc_v2(uint64_t *address, size_t n_bytes)
{
    if (n_bytes == 0) return INVALID;
    if (fault) return fault;
    if (n_bytes > n_total || n_used > n_total - n_bytes) return OUT_OF_MEMORY;
    uint8_t *memory = aligned_alloc(HEAD, (n_bytes + HEAD - 1) / HEAD * HEAD + HEAD);
    if (!memory) return OUT_OF_MEMORY;
    memcpy(memory, &n_bytes, sizeof n_bytes);
    memset(memory + HEAD, 0xff, n_bytes);
    n_used += n_bytes;
    *address = (uint64_t)(uintptr_t)(memory + HEAD);
    return OK;
}

int cuMemFree_v2(uint64_t address)
{
    size_t n_bytes;
    uint8_t *memory = (uint8_t *)(uintptr_t)address - HEAD;
    memcpy(&n_bytes, memory, sizeof n_bytes);
    memset(memory + HEAD, 0xff, n_bytes);
    n_used -= n_bytes;
    free(memory);
    return OK;
}

int cuMemHostAlloc(void **address, size_t n_bytes, unsigned flags)
{
    (void)flags;
    *address = malloc(n_bytes + 1);
    return *address ? OK : OUT_OF_MEMORY;
}

int cuMemFreeHost(void *address)
{
    free(address);
    return OK;
}

// ------------------------------------------------------------------------------- memory of several GPUs

int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = getenv("FRIT_EMULATED_NO_PEERS") == NULL;
    return is_device(device) && is_device(peer) && device != peer ? OK : INVALID;
}

int cuMemGetAllocationGranularity(size_t *n_bytes, const frit_cuda_shared_memory *kind, int option)
{
    *n_bytes = 4096;
    return kind->type == 1 && option == 0 && is_device(kind->device) ? OK : INVALID;
}

int cuMemCreate(uint64_t *memory, size_t n_bytes, const frit_cuda_shared_memory *kind, unsigned long long flags)
{
    return is_device(kind->device) && flags == 0 ? cuMemAlloc_v2(memory, n_bytes) : INVALID;
}

int cuMemRelease(uint64_t memory)
{
    return cuMemFree_v2(memory);
}

// Addresses have memory of their own, which exists when access is allowed.
int cuMemAddressReserve(uint64_t *address, size_t n_bytes, size_t alignment, uint64_t wanted, unsigned long long flags)
{
    *address = (uint64_t)(uintptr_t)mmap(NULL, n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return alignment == 0 && wanted == 0 && flags == 0 ? OK : INVALID;
}

int cuMemAddressFree(uint64_t address, size_t n_bytes)
{
    return munmap((void *)(uintptr_t)address, n_bytes) == 0 ? OK : INVALID;
}

int cuMemMap(uint64_t address, size_t n_bytes, size_t offset, uint64_t memory, unsigned long long flags)
{
    return address && n_bytes > 0 && offset == 0 && memory && flags == 0 ? OK : INVALID;
}

int cuMemUnmap(uint64_t address, size_t n_bytes)
{
    return mprotect((void *)(uintptr_t)address, n_bytes, PROT_NONE) == 0 ? OK : INVALID;
}

int cuMemSetAccess(uint64_t address, size_t n_bytes, const frit_cuda_access *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_device(list[i].device) || list[i].flags != 3) return INVALID;
    return mprotect((void *)(uintptr_t)address, n_bytes, PROT_READ | PROT_WRITE) == 0 ? OK : INVALID;
}

// ------------------------------------------------------------------------------- kernels

typedef void (*launch_fn)(void (*kernel)(const void *), const void *args, const unsigned *grid, unsigned threads,
                          unsigned shared_bytes);

typedef struct module {
    void *library;
    launch_fn launch;
} module;

typedef struct function {
    const module *from;
    void (*entry)(const void *args);
    size_t n_bytes;   // of its arguments
} function;

int cuModuleLoadData(module **out, const void *cubin)
{
    const uint64_t *head = cubin;
    char path[] = "/tmp/frit-emulator-XXXXXX";
    if (head[0] != EMULATED_MAGIC) return INVALID;
    const int file = mkstemp(path);
    module *m = calloc(1, sizeof *m);
    if (file < 0 || !m) return OUT_OF_MEMORY;
    const size_t n = (size_t)head[1] - EMULATED_HEAD;
    const bool is_written = write(file, (const uint8_t *)cubin + EMULATED_HEAD, n) == (ssize_t)n;
    close(file);
    m->library = is_written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(path);
    if (m->library) *(void **)&m->launch = dlsym(m->library, "emulated_launch");
    *out = m;
    return m->launch ? OK : INVALID;
}

int cuModuleUnload(module *m)
{
    dlclose(m->library);
    free(m);
    return OK;
}

// Functions are never freed: modules have few.
int cuModuleGetFunction(function **out, module *m, const char *name)
{
    char text[128];
    function *f = calloc(1, sizeof *f);
    if (!f) return OUT_OF_MEMORY;
    f->from = m;
    snprintf(text, sizeof text, "entry_%s", name);
    *(void **)&f->entry = dlsym(m->library, text);
    snprintf(text, sizeof text, "bytes_%s", name);
    const unsigned long *n = dlsym(m->library, text);
    if (!f->entry || !n) {
        free(f);
        return NOT_FOUND;
    }
    f->n_bytes = *n;
    *out = f;
    return OK;
}

int cuFuncSetAttribute(function *f, int attribute, int value)
{
    (void)attribute, (void)value;
    return f ? OK : INVALID;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, function *f, int threads, size_t shared)
{
    *n = 1;
    return f && threads > 0 && shared <= 227 << 10 ? OK : INVALID;
}

// ------------------------------------------------------------------------------- streams and graphs

typedef struct graph {
    emulated_work *list;
    size_t n, room;
} graph;

struct emulated_stream {
    graph *captured;   // NULL: work is done at once
};

static int add(graph *g, const emulated_work *work)
{
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 64;
        emulated_work *list = realloc(g->list, g->room * sizeof *list);
        if (!list) return OUT_OF_MEMORY;
        g->list = list;
    }
    g->list[g->n] = *work;
    if (work->n_bytes > 0) {
        g->list[g->n].data = malloc(work->n_bytes);
        if (!g->list[g->n].data) return OUT_OF_MEMORY;
        memcpy(g->list[g->n].data, work->data, work->n_bytes);
    }
    g->n++;
    return OK;
}

int emulated_submit(emulated_stream *stream, const emulated_work *work)
{
    if (stream && stream->captured) return add(stream->captured, work);
    if (fault) return fault;
    work->run(work, work->data);
    return OK;
}

static void run_copy(const emulated_work *work, void *data)
{
    (void)data;
    memmove((void *)(uintptr_t)work->to, (const void *)(uintptr_t)work->from, work->size);
}

static void run_set(const emulated_work *work, void *data)
{
    (void)data;
    memset((void *)(uintptr_t)work->to, (int)work->from, work->size);
}

static void run_launch(const emulated_work *work, void *data)
{
    const function *f = work->object;
    f->from->launch(f->entry, data, work->grid, work->threads, work->shared_bytes);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, emulated_stream *stream)
{
    return emulated_submit(stream, &(emulated_work){.run = run_set, .to = to, .from = value, .size = n});
}

static int copy(uint64_t to, uint64_t from, size_t n, emulated_stream *stream)
{
    return emulated_submit(stream, &(emulated_work){.run = run_copy, .to = to, .from = from, .size = n});
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, emulated_stream *stream)
{
    return copy(to, (uint64_t)(uintptr_t)from, n, stream);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, emulated_stream *stream)
{
    return copy((uint64_t)(uintptr_t)to, from, n, stream);
}

int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t n,
                      emulated_stream *stream)
{
    return to_context && from_context ? copy(to, from, n, stream) : INVALID;
}

int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
    return peer && flags == 0 ? OK : INVALID;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, emulated_stream *stream)
{
    return copy(to, from, n, stream);
}

int cuLaunchKernelEx(const frit_cuda_launch_config *config, function *f, void **params, void **extra)
{
    if (extra || config->block[0] == 0 || config->grid[0] == 0) return INVALID;
    return emulated_submit((emulated_stream *)config->stream,
                           &(emulated_work){.run = run_launch,
                                            .object = f,
                                            .grid = {config->grid[0], config->grid[1], config->grid[2]},
                                            .threads = config->block[0] * config->block[1] * config->block[2],
                                            .shared_bytes = config->shared_bytes,
                                            .data = params[0],
                                            .n_bytes = f->n_bytes});
}

int cuStreamCreate(emulated_stream **out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    return *out ? OK : OUT_OF_MEMORY;
}

int cuStreamDestroy_v2(emulated_stream *stream)
{
    free(stream);
    return OK;
}

int cuStreamSynchronize(emulated_stream *stream)
{
    return stream && stream->captured ? INVALID : fault;
}

int cuStreamWaitEvent(emulated_stream *stream, void *event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return OK;
}

int cuStreamBeginCapture_v2(emulated_stream *stream, int mode)
{
    (void)mode;
    stream->captured = calloc(1, sizeof *stream->captured);
    return stream->captured ? OK : OUT_OF_MEMORY;
}

int cuStreamEndCapture(emulated_stream *stream, graph **out)
{
    *out = stream->captured;
    stream->captured = NULL;
    return *out ? OK : INVALID;
}

static void free_graph(graph *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->list[i].n_bytes > 0) free(g->list[i].data);
    free(g->list);
    free(g);
}

int cuGraphInstantiateWithFlags(graph **exec, const graph *from, unsigned long long flags)
{
    (void)flags;
    graph *g = calloc(1, sizeof *g);
    int result = g ? OK : OUT_OF_MEMORY;
    for (size_t i = 0; i < from->n && result == OK; i++) result = add(g, &from->list[i]);
    *exec = g;
    return result;
}

int cuGraphLaunch(graph *g, emulated_stream *stream)
{
    int result = OK;
    for (size_t i = 0; i < g->n && result == OK; i++) result = emulated_submit(stream, &g->list[i]);
    return result;
}

int cuGraphDestroy(graph *g)
{
    free_graph(g);
    return OK;
}

int cuGraphExecDestroy(graph *g)
{
    free_graph(g);
    return OK;
}

int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    *event = malloc(1);
    return *event ? OK : OUT_OF_MEMORY;
}

int cuEventDestroy_v2(void *event)
{
    free(event);
    return OK;
}

int cuEventRecord(void *event, emulated_stream *stream)
{
    (void)stream;
    return event ? OK : INVALID;
}

int cuEventSynchronize(void *event)
{
    return event ? fault : INVALID;
}

int cuEventQuery(void *event)
{
    return event ? fault : INVALID;
}

int cuEventElapsedTime(float *milliseconds, void *begin, void *end)
{
    // Optionally shorter each time, for a test of the choice of measured kernels.
    static int n_calls;
    *milliseconds = getenv("FRIT_EMULATED_HURRY") ? 1 / (float)++n_calls : 1;
    return begin && end ? OK : INVALID;
}

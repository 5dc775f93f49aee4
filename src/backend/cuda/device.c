// SPDX-License-Identifier: MIT
// Opening a GPU, its memory, its queue, and the table of functions for backend.h.
#include "backend/cuda/device.h"
#include "backend/cuda/group/exchange.h"
#include "backend/cuda/group/receive.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/exec_bytes.h"
#include "backend/cuda/ops/adapt.h"
#include "backend/cuda/ops/gemm_wgmma.h"
#include "backend/cuda/ops/ops.h"
#include "backend/cuda/ops/linear.h"
#include "backend/cuda/picks.h"
#include "backend/cuda/profile.h"
#include "backend/cuda/recordings.h"
#include "backend/cuda/runtime/target.h"
#include "backend/cuda/weights/weight_stream.h"
#include "backend/cuda/weights/weights.h"
#include "base/file/file.h"
#include "base/grow.h"
#include "base/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_NON_BLOCKING = 1, EVENT_WITHOUT_TIME = 2 };

static frit_cuda_libraries libraries;

void frit_cuda_use_libraries(const frit_cuda_libraries *wanted)
{
    libraries = wanted ? *wanted : (frit_cuda_libraries){0};
}

static frit_cuda_device *device_of(const frit_device *base)
{
    return (frit_cuda_device *)(uintptr_t)base;
}

static frit_status check_driver(const frit_cuda_device *d, int result, const char *what)
{
    return frit_cuda_check(&d->driver, result, what);
}

// Makes the context current: calls may come from any thread.
static frit_status use_context(const frit_cuda_device *d)
{
    return check_driver(d, d->driver.context_use(d->gpu.context), "using a GPU");
}

// ------------------------------------------------------------------------------- opening

static frit_status open_flights(frit_cuda_device *d)
{
    FRIT_TRY(check_driver(d, d->driver.event_new(&d->is_read, EVENT_WITHOUT_TIME), "making an event"));
    FRIT_TRY(check_driver(d, d->driver.event_new(&d->is_sent, EVENT_WITHOUT_TIME), "making an event"));
    for (int i = 0; i < FRIT_CUDA_ALL_FLIGHTS; i++) {
        frit_cuda_flight *flight = &d->flights[i];
        FRIT_TRY(check_driver(d, d->driver.event_new(&flight->is_uploaded, EVENT_WITHOUT_TIME), "making an event"));
        FRIT_TRY(check_driver(d, d->driver.event_new(&flight->is_done, EVENT_WITHOUT_TIME), "making an event"));
    }
    return FRIT_OK;
}

static bool exists(const char *folder, int arch, char *path, size_t path_bytes)
{
    const int n = snprintf(path, path_bytes, "%s/sm_%d.kernels", folder, arch);
    return n > 0 && (size_t)n < path_bytes && frit_path_get_kind(path) == FRIT_PATH_FILE;
}

// The archive of kernels for the GPU: beside the program or library, or in the folder of --weights-cache.
static bool find_archive(const frit_cuda_device *d, const frit_device_options *options, char *path, size_t path_bytes)
{
    // "../lib/kernels": of the command in a wheel, whose library has them beside itself.
    static const char *const folders[] = {"kernels", "../share/frit/kernels", "../../share/frit/kernels",
                                          "../lib/kernels"};
    char folder[1024];
    if (libraries.package) return exists(libraries.package, d->gpu.arch, path, path_bytes);
    if (options->weights_cache && exists(options->weights_cache, d->gpu.arch, path, path_bytes)) return true;
    for (size_t i = 0; i < FRIT_COUNT(folders); i++)
        if (frit_folder_beside(folders[i], folder, sizeof folder) && exists(folder, d->gpu.arch, path, path_bytes))
            return true;
    return false;
}

// NULL, or why kernels of the archive do not run here.
static const char *check_archive(const frit_cuda_device *d)
{
    const frit_cubin_archive_info *info = frit_cubin_archive_get_info(d->archive);
    const frit_cubin_key key = frit_cuda_sources_key();
    if (info->arch != (uint32_t)d->gpu.arch) return "another kind of GPU";
    if (memcmp(&info->sources, &key, sizeof key) != 0) return "another version of frit";
    return (uint32_t)d->driver.version / 1000 < info->nvrtc_major ? "a newer version of the driver" : NULL;
}

// An archive that cannot be used costs a warning.
static void open_archive(frit_cuda_device *d, const frit_device_options *options)
{
    char path[1100];
    if (!find_archive(d, options, path, sizeof path)) return;
    if (frit_cubin_archive_open(&d->archive, path) != FRIT_OK) {
        frit_log_say(&d->log, FRIT_LOG_WARNING, "cuda: compiled kernels are not used: %s", frit_error());
        return;
    }
    const char *other = check_archive(d);
    if (!other) return;
    frit_log_say(&d->log, FRIT_LOG_WARNING, "cuda: compiled kernels are not used: %s is for %s", path, other);
    frit_cubin_archive_close(d->archive);
    d->archive = NULL;
}

// Archived kernels are made for numbers of multiprocessors. Without a compiler a GPU with another number uses those for
// the next smaller number: some of its multiprocessors are then idle.
static void fit_to_archive(frit_cuda_device *d)
{
    const frit_cubin_archive_info *info = frit_cubin_archive_get_info(d->archive);
    int best = 0;
    for (int i = 0; i < FRIT_CUBIN_GPUS; i++)
        if ((int)info->multiprocessors[i] <= d->gpu.n_multiprocessors && (int)info->multiprocessors[i] > best)
            best = (int)info->multiprocessors[i];
    if (best == 0 || best == d->gpu.n_multiprocessors) return;
    frit_log_say(&d->log, FRIT_LOG_WARNING,
                 "cuda: without NVRTC, %d of %d multiprocessors are used: %s has no kernels for more", best,
                 d->gpu.n_multiprocessors, frit_cubin_archive_path(d->archive));
    d->gpu.n_multiprocessors = best;
}

static frit_status fail_to_compile(frit_status status)
{
    return frit_fail(
        status,
        "%s; without it --weights-cache has to name a folder of compiled kernels, or an archive of them is "
        "installed ('frit kernels' writes archives)",
        frit_error());
}

// Without NVRTC only kernels of a folder or an archive can be used.
static frit_status open_compiler(frit_cuda_device *d, const frit_device_options *options)
{
    const char *folder = libraries.cubins ? libraries.cubins : options->weights_cache;
    const frit_status status = frit_nvrtc_open(&d->nvrtc, libraries.nvrtc, d->gpu.arch);
    open_archive(d, options);
    if (status != FRIT_OK && !folder && !d->archive) return fail_to_compile(status);
    if (status != FRIT_OK)
        frit_log_say(&d->log, FRIT_LOG_WARNING, "cuda: only kernels that %s has: %s",
                     d->archive ? frit_cubin_archive_path(d->archive) : folder, frit_error());
    if (status != FRIT_OK && d->archive) fit_to_archive(d);
    d->compiler = (frit_cuda_compiler){.nvrtc = status == FRIT_OK ? &d->nvrtc : NULL,
                                       .folder = folder,
                                       .archive = d->archive,
                                       .arch = d->gpu.arch,
                                       .driver_version = d->driver.version,
                                       .log = d->log};
    return FRIT_OK;
}

// NVRTC 12 compiles for sm_70 and newer. driver.h says what GPUs before sm_80 lack.
static frit_status check_kind(const frit_cuda_gpu *gpu)
{
    enum { OLDEST = 70 };
    if (gpu->arch >= OLDEST) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED, "%s is sm_%d; expected sm_%d or newer", gpu->name, gpu->arch, (int)OLDEST);
}

static frit_status open_gpu(frit_cuda_device *d, const frit_device_options *options)
{
    FRIT_TRY(frit_cuda_driver_open_as(&d->driver, libraries.driver));
    FRIT_TRY(frit_cuda_gpu_open(&d->gpu, &d->driver, options->number));
    FRIT_TRY(check_kind(&d->gpu));
    return open_compiler(d, options);
}

// A GPU for which kernels are compiled only.
static frit_status open_target(frit_cuda_device *d, const frit_device_target *target)
{
    const int row = frit_cuda_target_find(target->gpu);
    if (row < 0) return frit_fail(FRIT_E_INVALID, "'%.60s' is no GPU that frit knows by name", target->gpu);
    frit_cuda_driver_open_target(&d->driver);
    FRIT_TRY(frit_cuda_gpu_open(&d->gpu, &d->driver, row));
    FRIT_TRY(frit_nvrtc_open(&d->nvrtc, libraries.nvrtc, d->gpu.arch));
    d->is_target = true;
    d->has_blas = target->has_blas && !d->is_deterministic && frit_cuda_has_tensor_products(&d->gpu);
    d->compiler = (frit_cuda_compiler){
        .nvrtc = &d->nvrtc, .archive = target->known, .arch = d->gpu.arch, .collected = target->kernels, .log = d->log};
    return FRIT_OK;
}

static void open_blas(frit_cuda_device *d)
{
    if (d->is_target || d->is_deterministic || !frit_cuda_has_tensor_products(&d->gpu)) return;
    d->has_blas = frit_cublaslt_open(&d->blas, libraries.blas) == FRIT_OK;
    if (!d->has_blas && !frit_cuda_has_wgmma(&d->gpu))
        frit_log_say(&d->log, FRIT_LOG_WARNING, "cuda: prompts are slower without cuBLASLt: %s", frit_error());
}

static frit_status open_all(frit_cuda_device *d, const frit_device_options *options)
{
    FRIT_TRY(options->target ? open_target(d, options->target) : open_gpu(d, options));
    FRIT_TRY(frit_pool_new(&d->pool, options->n_threads));
    FRIT_TRY(check_driver(d, d->driver.stream_new(&d->stream, STREAM_NON_BLOCKING), "making a stream"));
    FRIT_TRY(check_driver(d, d->driver.stream_new(&d->uploads, STREAM_NON_BLOCKING), "making a stream"));
    FRIT_TRY(open_flights(d));
    open_blas(d);
    return frit_cuda_loader_open(&d->loader, &d->gpu, &d->compiler, d->pool);
}

static void free_buffer(frit_cuda_device *d, frit_cuda_buffer *buffer)
{
    if (buffer->address) d->driver.memory_free(buffer->address);
    if (buffer->host) d->driver.host_free(buffer->host);
    *buffer = (frit_cuda_buffer){0};
}

static void cuda_close(frit_device *base)
{
    frit_cuda_device *d = device_of(base);
    if (!d) return;
    if (d->gpu.context) {
        d->driver.context_use(d->gpu.context);
        if (d->uploads) d->driver.stream_wait(d->uploads);
        if (d->stream) d->driver.stream_wait(d->stream);
        frit_cuda_weight_stream_close(d);
        frit_cuda_recordings_drop(d, NULL);
        if (d->loader.gpu) frit_cuda_loader_close(&d->loader);
        frit_cuda_tensors_free(d);
        frit_cuda_free_bytes(d, d->scratch.address);
        frit_cuda_free_bytes(d, d->work);
        frit_cuda_picks_close(d);
        frit_cuda_profile_free(d);
        frit_cuda_adapters_free(d);
        for (size_t i = 0; i < d->n_blas_plans; i++) frit_cublaslt_product_free(&d->blas_plans[i].product);
        if (d->blas.library) frit_cublaslt_close(&d->blas);
        for (int i = 0; i < FRIT_CUDA_ALL_FLIGHTS; i++) {
            free_buffer(d, &d->flights[i].input);
            for (int k = 0; k < 2; k++) free(d->flights[i].staging[k]);
            free_buffer(d, &d->flights[i].output);
            free_buffer(d, &d->flights[i].picked);
            if (d->flights[i].is_uploaded) d->driver.event_free(d->flights[i].is_uploaded);
            if (d->flights[i].is_done) d->driver.event_free(d->flights[i].is_done);
        }
        if (d->is_read) d->driver.event_free(d->is_read);
        if (d->is_sent) d->driver.event_free(d->is_sent);
        frit_cuda_peers_close(&d->peers, &d->gpu);
        frit_cuda_kernels_free(&d->gpu, d->kernels, d->n_kernels);
        for (size_t i = 0; i < d->n_kernels; i++) free(d->kernels[i]);
        if (d->uploads) d->driver.stream_free(d->uploads);
        if (d->stream) d->driver.stream_free(d->stream);
    }
    free(d->recordings);
    free(d->kernels);
    free(d->blas_plans);
    frit_cuda_autotune_free(&d->autotune);
    frit_pool_free(d->pool);
    frit_nvrtc_close(&d->nvrtc);
    frit_cubin_archive_close(d->archive);
    frit_cuda_gpu_close(&d->gpu);
    frit_cuda_driver_close(&d->driver);
    free(d);
}

static const char *const numbered[FRIT_NUMBERED_DEVICES] = FRIT_NUMBERED("cuda");

static int cuda_count(void)
{
    frit_cuda_driver driver;
    int n = 0;
    if (frit_cuda_driver_open_as(&driver, libraries.driver) != FRIT_OK) return 0;
    if (driver.device_count(&n) != 0) n = 0;
    frit_cuda_driver_close(&driver);
    return n;
}

static uint64_t cuda_reaches(int number)
{
    frit_cuda_driver driver;
    int device = 0, other = 0, n = 0, can = 0;
    uint64_t reached = 0;
    if (frit_cuda_driver_open_as(&driver, libraries.driver) != FRIT_OK) return 0;
    if (driver.device_count(&n) != 0 || driver.device_get(&device, number) != 0) n = 0;
    for (int i = 0; i < n && i < 64; i++)
        if (i != number && driver.device_get(&other, i) == 0 && driver.peer_access(&can, device, other) == 0 && can)
            reached |= (uint64_t)1 << i;
    frit_cuda_driver_close(&driver);
    return reached;
}

static frit_status cuda_open(frit_device **out, const frit_device_options *options)
{
    *out = NULL;
    frit_cuda_device *d = calloc(1, sizeof *d);
    if (!d) return frit_fail_memory(sizeof *d, "a GPU");
    d->base.backend = &frit_backend_cuda;
    if (options->log) d->log = *options->log;
    d->is_deterministic = options->deterministic;
    d->has_fp8_inputs = options->fp8_inputs;
    d->autotune.folder = options->deterministic || options->target ? NULL : options->weights_cache;
    const frit_status status = open_all(d, options);
    if (status != FRIT_OK) {
        cuda_close(&d->base);
        return status;
    }
    frit_log_say(&d->log, FRIT_LOG_INFO, "cuda: %s, sm_%d, %d multiprocessors", d->gpu.name, d->gpu.arch,
                 d->gpu.n_multiprocessors);
    *out = &d->base;
    return FRIT_OK;
}

static void cuda_info(const frit_device *base, frit_device_info *info)
{
    const frit_cuda_device *d = device_of(base);
    size_t n_free = 0, n_all = 0;
    *info = (frit_device_info){.isa = d->gpu.name, .n_threads = 1, .n_threads_batch = 1};
    if (use_context(d) == FRIT_OK && d->driver.memory_info(&n_free, &n_all) == 0) info->free_bytes = n_free;
}

// ------------------------------------------------------------------------------- memory

frit_status frit_cuda_alloc_bytes(frit_cuda_device *d, uint64_t n_bytes, const char *what, uint64_t *address)
{
    size_t n_free = 0, n_all = 0;
    *address = 0;
    if (n_bytes == 0) return FRIT_OK;
    const frit_status status = check_driver(d, d->driver.memory_alloc(address, (size_t)n_bytes), what);
    if (status != FRIT_E_MEMORY || d->driver.memory_info(&n_free, &n_all) != 0) return status;
    return frit_fail(FRIT_E_MEMORY, "%s: %.1f MB for %s do not fit; %.1f of %.1f MB are free", d->gpu.name,
                     (double)n_bytes / 1e6, what, (double)n_free / 1e6, (double)n_all / 1e6);
}

void frit_cuda_free_bytes(frit_cuda_device *d, uint64_t address)
{
    if (address) d->driver.memory_free(address);
}

// Allocates the larger buffer before the smaller one is freed.
frit_status frit_cuda_buffer_reserve(frit_cuda_device *d, frit_cuda_buffer *buffer, size_t n_bytes, bool on_gpu,
                                     bool on_host)
{
    if (buffer->n_bytes >= n_bytes) return FRIT_OK;
    frit_cuda_buffer grown = {.n_bytes = n_bytes + n_bytes / 2};
    frit_status status = FRIT_OK;
    if (on_gpu) status = frit_cuda_alloc_bytes(d, grown.n_bytes, "a step", &grown.address);
    if (on_host && status == FRIT_OK)
        status = check_driver(d, d->driver.host_alloc(&grown.host, grown.n_bytes, 0), "allocating pinned memory");
    free_buffer(d, status == FRIT_OK ? buffer : &grown);
    if (status == FRIT_OK) *buffer = grown;
    return status;
}

// Frees the memory first, because both sizes together may not fit. If the larger size cannot be allocated, the former
// size is allocated again for the plans that need no more. *has_bytes: the size that there is now.
static frit_status grow_memory(frit_cuda_device *d, uint64_t n_bytes, const char *what, uint64_t *address,
                               uint64_t *has_bytes)
{
    const uint64_t before = *has_bytes;
    if (before >= n_bytes) return FRIT_OK;
    FRIT_TRY(check_driver(d, d->driver.stream_wait(d->stream), "waiting for a GPU"));
    frit_cuda_free_bytes(d, *address);
    *has_bytes = 0;
    const frit_status status = frit_cuda_alloc_bytes(d, n_bytes, what, address);
    if (status == FRIT_OK)
        *has_bytes = n_bytes;
    else if (d->driver.memory_alloc(address, (size_t)before) == 0)
        *has_bytes = before;
    else
        *address = 0;
    return status;
}

frit_status frit_cuda_scratch_reserve(frit_cuda_device *d, uint64_t n_bytes)
{
    d->scratch.base.device = &d->base;
    return grow_memory(d, n_bytes, "intermediate results", &d->scratch.address, &d->scratch.base.n_bytes);
}

frit_status frit_cuda_work_reserve(frit_cuda_device *d, uint64_t n_bytes)
{
    return grow_memory(d, n_bytes, "large products", &d->work, &d->work_bytes);
}

static frit_status cuda_alloc(frit_device *base, uint64_t n_bytes, frit_memory **out)
{
    frit_cuda_device *d = device_of(base);
    *out = NULL;
    FRIT_TRY(use_context(d));
    frit_cuda_memory *memory = calloc(1, sizeof *memory);
    if (!memory) return frit_fail_memory(sizeof *memory, "memory of a GPU");
    memory->base = (frit_memory){base, n_bytes};
    frit_status status = frit_cuda_alloc_bytes(d, n_bytes, "the cache", &memory->address);
    if (status == FRIT_OK && n_bytes > 0)
        status =
            check_driver(d, d->driver.memory_set(memory->address, 0, (size_t)n_bytes, d->stream), "clearing memory");
    if (status != FRIT_OK) {
        frit_cuda_free_bytes(d, memory->address);
        free(memory);
        return status;
    }
    *out = &memory->base;
    return FRIT_OK;
}

static void cuda_free(frit_device *base, frit_memory *memory)
{
    frit_cuda_device *d = device_of(base);
    if (!memory || use_context(d) != FRIT_OK) return;
    d->driver.stream_wait(d->stream);
    frit_cuda_free_bytes(d, ((frit_cuda_memory *)memory)->address);
    free(memory);
}

static void *cuda_map(const frit_memory *memory)
{
    (void)memory;
    return NULL;
}

static uint64_t gpu_address(frit_address address)
{
    return ((frit_cuda_memory *)address.memory)->address + address.offset;
}

static frit_status cuda_read(frit_device *base, frit_address from, void *to, uint64_t n_bytes)
{
    frit_cuda_device *d = device_of(base);
    FRIT_TRY(use_context(d));
    FRIT_TRY(
        check_driver(d, d->driver.copy_down(to, gpu_address(from), (size_t)n_bytes, d->stream), "reading from a GPU"));
    return check_driver(d, d->driver.stream_wait(d->stream), "reading from a GPU");
}

static frit_status cuda_write(frit_device *base, frit_address to, const void *from, uint64_t n_bytes)
{
    frit_cuda_device *d = device_of(base);
    FRIT_TRY(use_context(d));
    FRIT_TRY(check_driver(d, d->driver.copy_up(gpu_address(to), from, (size_t)n_bytes, d->stream), "writing to a GPU"));
    return check_driver(d, d->driver.stream_wait(d->stream), "writing to a GPU");
}

static frit_status cuda_copy(frit_device *base, frit_address to, frit_address from, uint64_t n_bytes)
{
    frit_cuda_device *d = device_of(base);
    FRIT_TRY(use_context(d));
    return check_driver(d, d->driver.copy_within(gpu_address(to), gpu_address(from), (size_t)n_bytes, d->stream),
                        "copying on a GPU");
}

// ------------------------------------------------------------------------------- kernels

static bool is_same(const frit_cuda_kernel *a, const frit_cuda_kernel *b)
{
    return strcmp(a->file, b->file) == 0 && strcmp(a->name, b->name) == 0 && a->n_defines == b->n_defines &&
           memcmp(a->defines, b->defines, sizeof a->defines) == 0 && memcmp(a->grid, b->grid, sizeof a->grid) == 0 &&
           a->threads == b->threads && a->shared_bytes == b->shared_bytes;
}

frit_status frit_cuda_kernel_get(frit_cuda_device *d, const frit_cuda_kernel *wanted, frit_cuda_kernel **out)
{
    for (size_t i = 0; i < d->n_kernels; i++) {
        *out = d->kernels[i];
        if (is_same(*out, wanted)) return FRIT_OK;
    }
    FRIT_TRY(FRIT_GROW(d->kernels, d->kernels_capacity, d->n_kernels + 1, "the list of kernels"));
    *out = malloc(sizeof **out);
    if (!*out) return frit_fail_memory(sizeof **out, "a kernel");
    **out = *wanted;
    d->kernels[d->n_kernels++] = *out;
    return FRIT_OK;
}

frit_status frit_cuda_kernels_build(frit_cuda_device *d)
{
    size_t first = 0;
    while (first < d->n_kernels && d->kernels[first]->function) first++;   // kernels that are not built yet come last
    const size_t n = d->n_kernels - first;
    const frit_status status = frit_cuda_kernels_make(&d->gpu, &d->compiler, d->pool, d->kernels + first, n);
    if (status == FRIT_OK) return FRIT_OK;
    for (size_t i = first; i < d->n_kernels; i++) free(d->kernels[i]);
    d->n_kernels = first;
    return status;
}

// ------------------------------------------------------------------------------- the queue

static bool cuda_poll(frit_device *base, frit_ticket ticket)
{
    frit_cuda_device *d = device_of(base);
    if (use_context(d) != FRIT_OK) return false;
    for (int i = 0; i < FRIT_CUDA_ALL_FLIGHTS; i++) {
        frit_cuda_flight *flight = &d->flights[i];
        if (!flight->ticket || flight->ticket > ticket || d->driver.event_query(flight->is_done) != 0) continue;
        const frit_status status = frit_cuda_flight_wait(d, flight);
        if (status == FRIT_OK || d->failure != FRIT_OK) continue;
        d->failure = status;
        snprintf(d->sentence, sizeof d->sentence, "%s", frit_error());
    }
    return d->n_done >= ticket;
}

static frit_status cuda_wait(frit_device *base, frit_ticket ticket)
{
    frit_cuda_device *d = device_of(base);
    frit_status status = d->failure;
    if (status != FRIT_OK) status = frit_fail(status, "%s", d->sentence);
    d->failure = FRIT_OK;
    FRIT_TRY(use_context(d));
    for (int i = 0; i < FRIT_CUDA_ALL_FLIGHTS; i++) {
        if (!d->flights[i].ticket || d->flights[i].ticket > ticket) continue;
        const frit_status waited = frit_cuda_flight_wait(d, &d->flights[i]);
        if (status == FRIT_OK) status = waited;
    }
    return status;
}

static const char *cuda_op_kernel(frit_op op)
{
    (void)op;
    return "cuda";
}

const frit_backend frit_backend_cuda = {
    .name = "cuda",
    .picks = true,
    .queues = true,
    .streams = true,
    .early_prologues = true,
    .by_name = true,   // used only if it is named: it is young
    .numbered = numbered,
    .count = cuda_count,
    .reaches = cuda_reaches,
    .values_by_dim = true,
    .open = cuda_open,
    .join = frit_cuda_join,
    .close = cuda_close,
    .info = cuda_info,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .map = cuda_map,
    .read = cuda_read,
    .write = cuda_write,
    .copy = cuda_copy,
    .receive = frit_cuda_receive,
    .runs = frit_cuda_runs,
    .can_join = frit_cuda_can_join,
    .weight_bytes = frit_cuda_weight_bytes,
    .set_adapter = frit_cuda_set_adapter,
    .compile = frit_cuda_compile_plans,
    .prepare = frit_cuda_prepare,
    .tune = frit_cuda_gemm_tune,
    .exec_bytes = frit_cuda_exec_bytes,
    .value = frit_cuda_value,
    .submit = frit_cuda_submit,
    .pick = frit_cuda_pick,
    .poll = cuda_poll,
    .wait = cuda_wait,
    .exec_free = frit_cuda_exec_free,
    .profile = frit_cuda_profile_set,
    .profile_row = frit_cuda_profile_row,
    .op_kernel = cuda_op_kernel,
};

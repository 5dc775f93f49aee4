// SPDX-License-Identifier: MIT
// The CPU as a device: opening it with a capped instruction set, its memory, and the backend's row of functions.
#include "backend/cpu/cpu.h"
#include "backend/cpu/pack/memory.h"
#include "backend/cpu/task.h"
#include "base/machine/cpu.h"

#include <stdlib.h>
#include <string.h>

static const char reference_name[] = "reference";

static frit_status find_isa(const char *name, const frit_isa **out)
{
    frit_buf names = {0};
    frit_buf_text(&names, reference_name);
    for (size_t i = 0; (*out = frit_isa_get(i)) != NULL; i++) {
        if (strcmp((*out)->name, name) == 0) break;
        frit_buf_printf(&names, ", %s", (*out)->name);
    }
    frit_status status = FRIT_OK;
    if (!*out)
        status = frit_fail(FRIT_E_INVALID, "cpu: '%s' is not an instruction set of this build, which has %s", name,
                           names.data ? names.data : "none");
    else if (!frit_isa_is_usable(*out))
        status = frit_fail(FRIT_E_UNSUPPORTED, "cpu: %s is asked for, but this processor (%s) does not have it", name,
                           frit_cpu_name());
    frit_buf_free(&names);
    return status;
}

// A member of a group has its part of the CPUs, which are sorted by memory node.
static void take_part(frit_topology *t, const frit_device_options *options)
{
    frit_nodes *nodes = &t->nodes;
    const int32_t n = options->n_members, i = options->number % n;
    const int begin = nodes->n_cpus * i / n, end = nodes->n_cpus * (i + 1) / n;
    t->n_cores = t->n_cores > n ? t->n_cores / n : 1;
    t->n_fast_cores = t->n_fast_cores > n ? t->n_fast_cores / n : 1;
    nodes->n = 1;
    nodes->n_cpus = end - begin;
    memmove(nodes->cpus, nodes->cpus + begin, (size_t)(end - begin) * sizeof *nodes->cpus);
    nodes->first[0] = 0;
    nodes->first[1] = (int16_t)(end - begin);
}

// Number of threads of a member: its part of the given number.
static int32_t threads_of_member(const frit_device_options *options, int32_t n_threads)
{
    const int32_t n = options->n_members;
    if (n == 0 || n_threads == 0) return n_threads;
    return n_threads > n ? n_threads / n : 1;
}

// The threads of the options, or by the number of cores. Slow cores would delay the fast ones in decode steps, which
// wait for memory; prefill gains from all cores.
static frit_status open_pools(frit_cpu_device *device, const frit_device_options *options)
{
    const frit_topology *t = &device->topology;
    const int32_t n_threads = threads_of_member(options, options->n_threads);
    const int32_t n_threads_batch = threads_of_member(options, options->n_threads_batch);
    const int decode = n_threads ? n_threads : t->n_fast_cores;
    int prefill = n_threads_batch ? n_threads_batch : n_threads;
    if (prefill == 0) prefill = t->n_cores;
    FRIT_TRY(frit_pool_new(&device->prefill_pool, prefill));
    device->decode_pool = device->prefill_pool;
    if (decode != prefill) FRIT_TRY(frit_pool_new(&device->decode_pool, decode));
    device->probes = options->n_threads == 0;
    return FRIT_OK;
}

static void close_pools(frit_cpu_device *device)
{
    if (device->decode_pool != device->prefill_pool) frit_pool_free(device->decode_pool);
    frit_pool_free(device->prefill_pool);
}

static void place_thread(void *ctx, int thread, int n_threads)
{
    const frit_nodes *nodes = ctx;
    if (thread > 0) frit_nodes_stay(nodes, frit_nodes_of_thread(nodes, thread, n_threads));
}

void frit_cpu_place_threads(frit_cpu_device *device, frit_pool *pool)
{
    if (device->topology.nodes.n > 1 || device->is_pinned) frit_pool_run(pool, place_thread, &device->topology.nodes);
}

// The threads of a member stay on its CPUs, but for the thread that calls the engine, which calls member 0.
static void pin_member(frit_cpu_device *device, const frit_device_options *options)
{
    const frit_nodes *nodes = &device->topology.nodes;
    if (nodes->n_cpus == 0 || (options->numa && strcmp(options->numa, "off") == 0)) return;
    device->is_pinned = true;
    if (options->number > 0) frit_nodes_stay(nodes, 0);
    frit_cpu_place_threads(device, device->prefill_pool);
    if (device->decode_pool != device->prefill_pool) frit_cpu_place_threads(device, device->decode_pool);
}

static void open_nodes(frit_cpu_device *device, const frit_device_options *options)
{
    frit_topology *t = &device->topology;
    frit_log_say(options->log, FRIT_LOG_INFO, "cpu: %d CPUs, %d cores, %d of them fast, %d memory nodes (%s)",
                 t->n_cpus, t->n_cores, t->n_fast_cores, t->nodes.n, t->source);
    if (options->numa && strcmp(options->numa, "off") == 0) t->nodes.n = 1;
    if (t->nodes.n < 2) return;
    frit_log_say(options->log, FRIT_LOG_INFO, "cpu: threads stay on their memory nodes");
    frit_cpu_place_threads(device, device->prefill_pool);
    if (device->decode_pool != device->prefill_pool) frit_cpu_place_threads(device, device->decode_pool);
}

// Copies of floats leave a quarter of the memory free. With a cache folder nothing is copied: processes share the file.
static uint64_t most_floats(const frit_cpu_device *device, bool in_place)
{
    const bool pays = !device->reference && !in_place && frit_cpu_memory_has_huge_pages();
    return pays ? frit_memory_available() / 4 * 3 : 0;
}

static frit_status open_store(frit_cpu_device *device, const frit_device_options *options)
{
    const bool has_folder = options->weights_cache && *options->weights_cache;
    const frit_packs_options packs = {.kernels = device->reference ? NULL : &device->decode_kernels,
                                      .folder = has_folder ? options->weights_cache : NULL,
                                      .most_floats = most_floats(device, has_folder || options->in_place),
                                      .source = options->weights_source,
                                      .log = options->log};
    device->stores = options->stores;
    device->owns_stores = !options->stores;
    if (device->owns_stores) FRIT_TRY(frit_stores_new(&device->stores));
    return frit_packs_open(&device->packs, device->stores, &packs);
}

static void close_store(frit_cpu_device *device)
{
    frit_stores_release(device->stores, (frit_store *)device->packs);
    if (device->owns_stores) frit_stores_free(device->stores);
}

static void cpu_close(frit_device *base)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    if (!device) return;
    frit_profile_free(device->profile);
    frit_cpu_memory_free(device->scratch.bytes, device->scratch.base.n_bytes);
    frit_pick_runner_free(device->pick_runner);
    frit_cpu_adapters_free(&device->adapters);
    free(device->tokens);
    free(device->picked);
    close_store(device);
    close_pools(device);
    free(device);
}

// Replaces the prefill kernel by the decode kernel, and returns true if both are equal or read rows in different forms,
// by which a step can tell the classes apart.
static bool reconcile_kernels(frit_product_kernel *prefill, const frit_product_kernel *decode)
{
    const bool fits =
        !frit_form_is_tiled(decode->form) && (prefill->run == decode->run || frit_form_is_tiled(prefill->form));
    memcpy(prefill, decode, sizeof *prefill);
    return fits;
}

// True if prefill kernels differ from decode kernels only in products and in attention, the ops that know the class of
// each row.
static bool can_mix_classes(const frit_cpu_device *device)
{
    const frit_kernels *decode = &device->decode_kernels;
    frit_kernels prefill = device->prefill_kernels;
    bool fits = true;
    for (int i = 0; i < FRIT_DTYPE_COUNT; i++)
        fits = reconcile_kernels(&prefill.product[i], &decode->product[i]) &&
               reconcile_kernels(&prefill.packed[i], &decode->packed[i]) && fits;
    for (int form = 0; form < FRIT_FORM_COUNT; form++)
        if (frit_form_is_tiled((frit_form)form)) prefill.convert[form] = decode->convert[form];
    memcpy(prefill.coarse, decode->coarse, sizeof prefill.coarse);
    prefill.is_coarse = decode->is_coarse;
    prefill.attend_bf16 = decode->attend_bf16;
    prefill.attend_bf16_if_long = decode->attend_bf16_if_long;
    prefill.pack_kv_page = decode->pack_kv_page;
    prefill.probe_int8 = decode->probe_int8;
    prefill.probe_float = decode->probe_float;
    return fits && memcmp(&prefill, decode, sizeof prefill) == 0;
}

static frit_status cpu_open(frit_device **out, const frit_device_options *options)
{
    const frit_isa *cap = NULL;
    const bool reference = options->cpu && strcmp(options->cpu, reference_name) == 0;
    *out = NULL;
    if (options->n_threads < 0)
        return frit_fail(FRIT_E_INVALID, "n_threads is %d, expected 0 or more", (int)options->n_threads);
    if (options->n_threads_batch < 0)
        return frit_fail(FRIT_E_INVALID, "n_threads_batch is %d, expected 0 or more", (int)options->n_threads_batch);
    if (options->cpu && !reference) FRIT_TRY(find_isa(options->cpu, &cap));

    frit_cpu_device *device = calloc(1, sizeof *device);
    if (!device) return frit_fail_memory(sizeof *device, "the CPU device");
    frit_topology_get(&device->topology);
    if (options->n_members > 0) take_part(&device->topology, options);
    frit_status status = open_pools(device, options);
    device->reference = reference;
    const char *decode_isa =
        frit_isa_install(&device->decode_kernels, cap, options->deterministic ? FRIT_FOR_ANY : FRIT_FOR_LONG_PROMPTS);
    if (status == FRIT_OK) status = open_store(device, options);
    if (status == FRIT_OK)
        status = frit_pick_runner_new(&device->pick_runner, frit_cpu_most_threads(device), FRIT_PICK_BATCH);
    if (status != FRIT_OK) {
        cpu_close(&device->base);
        return status;
    }
    if (options->n_members > 0)
        pin_member(device, options);
    else
        open_nodes(device, options);
    device->base.backend = &frit_backend_cpu;
    device->isa = frit_isa_install(&device->prefill_kernels, cap, options->deterministic ? FRIT_FOR_ANY : FRIT_FOR_ALL);
    device->has_prefill_kernels = !reference && strcmp(decode_isa, device->isa) != 0;
    device->prefill_kernels.is_coarse = options->coarse && !options->deterministic;
    device->mixes_classes = device->has_prefill_kernels && can_mix_classes(device);
    if (reference) device->isa = reference_name;
    *out = &device->base;
    return FRIT_OK;
}

static frit_status cpu_join(frit_device *base, const frit_rank *rank)
{
    ((frit_cpu_device *)base)->rank = *rank;
    return FRIT_OK;
}

static void cpu_info(const frit_device *base, frit_device_info *info)
{
    const frit_cpu_device *device = (const frit_cpu_device *)base;
    *info =
        (frit_device_info){.isa = device->isa,
                           .n_threads = frit_pool_size(device->decode_pool),
                           .n_threads_batch = frit_pool_size(device->prefill_pool),
                           .least_rows = {[FRIT_ROWS_PREFILL] = device->has_prefill_kernels ? FRIT_PREFILL_ROWS / 2 : 0,
                                          [FRIT_ROWS_LONG_PREFILL] =
                                              device->decode_kernels.attend_bf16_if_long ? FRIT_LONG_PREFILL_ROWS : 0},
                           .mixes_classes = device->mixes_classes,
                           .joins_above = device->has_prefill_kernels ? FRIT_JOINS_ABOVE : 0};
}

// ------------------------------------------------------------------------------- memory

static frit_status cpu_alloc(frit_device *base, uint64_t n_bytes, frit_memory **out)
{
    *out = NULL;
    frit_cpu_memory *memory = calloc(1, sizeof *memory);
    if (!memory) return frit_fail_memory(sizeof *memory, "a buffer of the CPU");
    *memory = (frit_cpu_memory){.base = {base, n_bytes}, .bytes = frit_cpu_memory_new(n_bytes)};
    if (!memory->bytes) {
        free(memory);
        return frit_fail_memory((size_t)n_bytes, "a buffer of the CPU");
    }
    frit_nodes_spread(&((const frit_cpu_device *)base)->topology.nodes, memory->bytes, n_bytes);
    *out = &memory->base;
    return FRIT_OK;
}

static void cpu_free(frit_device *base, frit_memory *memory)
{
    (void)base;
    if (memory) frit_cpu_memory_free(((frit_cpu_memory *)memory)->bytes, memory->n_bytes);
    free(memory);
}

static void *cpu_map(const frit_memory *memory)
{
    return ((const frit_cpu_memory *)memory)->bytes;
}

static uint8_t *address_of(frit_address address)
{
    return ((frit_cpu_memory *)address.memory)->bytes + address.offset;
}

static frit_status cpu_read(frit_device *base, frit_address from, void *to, uint64_t n_bytes)
{
    (void)base;
    memcpy(to, address_of(from), (size_t)n_bytes);
    return FRIT_OK;
}

static frit_status cpu_write(frit_device *base, frit_address to, const void *from, uint64_t n_bytes)
{
    (void)base;
    memcpy(address_of(to), from, (size_t)n_bytes);
    return FRIT_OK;
}

static frit_status cpu_copy(frit_device *base, frit_address to, frit_address from, uint64_t n_bytes)
{
    (void)base;
    memmove(address_of(to), address_of(from), (size_t)n_bytes);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- the queue

// The CPU has no queue: the calling thread computes.
static bool cpu_poll(frit_device *base, frit_ticket ticket)
{
    return ticket <= ((const frit_cpu_device *)base)->n_runs;
}

static frit_status cpu_wait(frit_device *base, frit_ticket ticket)
{
    (void)base, (void)ticket;
    return FRIT_OK;
}

static bool cpu_runs(const frit_device *base, const frit_node *node)
{
    (void)base, (void)node;
    return true;
}

// ------------------------------------------------------------------------------- weights

static frit_status cpu_weight_bytes(frit_device *base, const frit_weight_uses *uses, frit_weight_bytes *out)
{
    return frit_packs_measure(((const frit_cpu_device *)base)->packs, uses, out);
}

static frit_status cpu_load(frit_device *base, const frit_weight_uses *uses, frit_progress progress)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    return frit_packs_load(device->packs, device->prefill_pool, uses, progress);
}

// ------------------------------------------------------------------------------- profiles

static frit_status cpu_profile(frit_device *base, bool on)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    frit_profile_free(device->profile);
    device->profile = on ? calloc(1, sizeof *device->profile) : NULL;
    return device->profile || !on ? FRIT_OK : frit_fail_memory(sizeof *device->profile, "a profile");
}

static bool cpu_profile_row(const frit_device *base, size_t i, frit_profile_row *row)
{
    const frit_profile *profile = ((const frit_cpu_device *)base)->profile;
    if (!profile || i >= (size_t)profile->n_rows) return false;
    *row = profile->rows[i];
    return true;
}

static const char *cpu_op_kernel(frit_op op)
{
    frit_kernels kernels = {0};
    const frit_cpu_op *row = &frit_cpu_ops[op];
    const char *best = frit_isa_install(&kernels, NULL, FRIT_FOR_ALL);
    if (!row->fast) return reference_name;
    return row->linear || row->stacked ? best : kernels.isa;
}

const frit_backend frit_backend_cpu = {
    .name = "cpu",
    .picks = true,
    .open = cpu_open,
    .close = cpu_close,
    .join = cpu_join,
    .info = cpu_info,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .map = cpu_map,
    .read = cpu_read,
    .write = cpu_write,
    .copy = cpu_copy,
    .runs = cpu_runs,
    .can_join = frit_cpu_can_join,
    .weight_bytes = cpu_weight_bytes,
    .load = cpu_load,
    .set_adapter = frit_cpu_set_adapter,
    .prepare = frit_cpu_prepare,
    .exec_bytes = frit_cpu_exec_bytes,
    .value = frit_cpu_value,
    .submit = frit_cpu_submit,
    .pick = frit_cpu_pick,
    .poll = cpu_poll,
    .wait = cpu_wait,
    .exec_free = frit_cpu_exec_free,
    .profile = cpu_profile,
    .profile_row = cpu_profile_row,
    .op_kernel = cpu_op_kernel,
};

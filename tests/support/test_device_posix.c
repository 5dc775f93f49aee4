// SPDX-License-Identifier: MIT
// The test device: a queue, a thread that processes it, and a CPU device inside.
#include "support/test_copies.h"
#include "support/test_device.h"

#include "backend/cpu/cpu.h"
#include "graph/node.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_JOBS = 4, LATE_NS = 20000, POISON = 0xff };   // POISON: bytes of a NaN

typedef struct test_memory {
    frit_memory base;
    frit_memory *inner;   // memory of the inner CPU device
} test_memory;

typedef struct test_exec {
    struct test_device *device;
    frit_arena arena;
    frit_graph graph;   // a copy of the plan's graph, whose shapes are those of the run
    frit_plan *plan;
    frit_exec *inner;
    frit_cache cache;        // in the memory of the inner CPU device
    test_memory values[2];   // memory of the inner executable's results and inputs
    float *rows;             // of the output, in host memory
} test_exec;

typedef enum job_kind { JOB_RUN, JOB_PICK, JOB_READ, JOB_WRITE, JOB_COPY, JOB_RECEIVE, JOB_HOLD } job_kind;

typedef struct job {
    job_kind kind;
    test_exec *exec;   // JOB_RUN, JOB_PICK
    frit_batch batch;
    frit_step_output wanted;    // for executables with an output
    frit_step_output *output;   // written by these executables only
    uint8_t *input;             // memory of the batch
    size_t n_input;
    frit_address to, from;   // in the memory of the inner CPU device
    void *host;
    const void *given;
    uint64_t n_bytes;
    struct test_device *other;   // JOB_RECEIVE, JOB_HOLD: waits until this device has done `until`
    frit_ticket until;
} job;

typedef struct test_adapter {   // copies of an adapter's matrices, in the device's memory
    frit_memory *memory;
    frit_arena arena;
} test_adapter;

typedef struct test_device {
    frit_device base;
    frit_device *inner;
    test_device_traits traits;
    uint64_t n_bytes;   // of all memory of the device
    test_adapter *adapters;
    int32_t n_adapters;
    pthread_t thread;
    pthread_mutex_t lock;   // protects all fields below
    pthread_cond_t changed;
    job jobs[N_JOBS];    // a ring buffer
    size_t input_room;   // of each job
    frit_ticket n_queued, n_done;
    bool ends;
    frit_status status;   // of the first job that failed since the last wait
    char failure[FRIT_ERROR_BYTES];
} test_device;

const char *const test_device_names[TEST_DEVICE_KINDS] = {"none", "alone", "layers", "ops"};

static test_device_kind chosen;
static test_device_traits chosen_traits;
static atomic_size_t opened_ever, runs_ever, picks_ever, matrices_ever;
static atomic_int runs_to_loss, runs_to_stall, stall_ms;

// ------------------------------------------------------------------------------- the queue

static void be_late(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
}

// Overwrites stale results, so that they cannot be used. Inputs are lost after one run, so each must be given again.
static frit_status run(const test_device *device, job *j)
{
    test_exec *exec = j->exec;
    frit_step_output output = j->wanted;
    frit_ticket ticket;
    if (runs_to_loss > 0 && atomic_fetch_sub(&runs_to_loss, 1) == 1)
        return frit_fail(FRIT_E_UNSUPPORTED, "the test device is lost");
    if (runs_to_stall > 0 && atomic_fetch_sub(&runs_to_stall, 1) == 1)
        nanosleep(&(struct timespec){.tv_sec = stall_ms / 1000, .tv_nsec = stall_ms % 1000 * 1000000L}, NULL);
    frit_cpu_exec_fill(exec->inner, POISON);
    FRIT_TRY(frit_backend_cpu.submit(device->inner, exec->inner, &j->batch, &output, &ticket));
    FRIT_TRY(frit_backend_cpu.wait(device->inner, ticket));
    runs_ever++;
    const frit_node *node = exec->graph.output;
    if (!node) return FRIT_OK;
    memcpy(exec->rows, output.rows, (size_t)frit_node_elems(node) * sizeof(float));
    j->output->rows = exec->rows;
    return FRIT_OK;
}

static frit_status pick(const test_device *device, job *j)
{
    frit_ticket ticket;
    picks_ever += (size_t)j->batch.n_picks;
    return frit_backend_cpu.pick(device->inner, j->exec->inner, &j->batch, &j->wanted, &ticket);
}

static void wait_until_done(test_device *device, frit_ticket ticket)
{
    pthread_mutex_lock(&device->lock);
    while (device->n_done < ticket) pthread_cond_wait(&device->changed, &device->lock);
    pthread_mutex_unlock(&device->lock);
}

// The bytes lie in host memory, which both inner devices see.
static void receive(const job *j)
{
    wait_until_done(j->other, j->until);
    be_late();
    const uint8_t *from = frit_backend_cpu.map(j->from.memory);
    uint8_t *to = frit_backend_cpu.map(j->to.memory);
    memcpy(to + j->to.offset, from + j->from.offset, (size_t)j->n_bytes);
}

static frit_status do_job(const test_device *device, job *j)
{
    switch (j->kind) {
    case JOB_RUN:
        be_late();
        return run(device, j);
    case JOB_PICK:
        return pick(device, j);
    case JOB_READ:
        return frit_backend_cpu.read(device->inner, j->from, j->host, j->n_bytes);
    case JOB_WRITE:
        return frit_backend_cpu.write(device->inner, j->to, j->given, j->n_bytes);
    case JOB_COPY:
        be_late();
        return frit_backend_cpu.copy(device->inner, j->to, j->from, j->n_bytes);
    case JOB_RECEIVE:
        receive(j);
        return FRIT_OK;
    case JOB_HOLD:
        wait_until_done(j->other, j->until);
        return FRIT_OK;
    }
    return FRIT_OK;
}

static void *work(void *ctx)
{
    test_device *device = ctx;
    pthread_mutex_lock(&device->lock);
    while (true) {
        while (device->n_done == device->n_queued && !device->ends) pthread_cond_wait(&device->changed, &device->lock);
        if (device->n_done == device->n_queued) break;
        job *j = &device->jobs[device->n_done % N_JOBS];
        pthread_mutex_unlock(&device->lock);
        const frit_status status = do_job(device, j);
        pthread_mutex_lock(&device->lock);
        if (status != FRIT_OK && device->status == FRIT_OK) {
            device->status = status;
            snprintf(device->failure, sizeof device->failure, "%s", frit_error());
        }
        device->n_done++;
        pthread_cond_broadcast(&device->changed);
    }
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

// Returns a free job at the end of the queue, which the caller fills.
static job *next_job(test_device *device)
{
    pthread_mutex_lock(&device->lock);
    while (device->n_queued - device->n_done == N_JOBS) pthread_cond_wait(&device->changed, &device->lock);
    pthread_mutex_unlock(&device->lock);
    return &device->jobs[device->n_queued % N_JOBS];
}

static frit_ticket queue_job(test_device *device)
{
    pthread_mutex_lock(&device->lock);
    const frit_ticket ticket = ++device->n_queued;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    return ticket;
}

static bool device_poll(frit_device *base, frit_ticket ticket)
{
    test_device *device = (test_device *)base;
    pthread_mutex_lock(&device->lock);
    const bool is_done = device->n_done >= ticket;
    pthread_mutex_unlock(&device->lock);
    return is_done;
}

static frit_status device_wait(frit_device *base, frit_ticket ticket)
{
    test_device *device = (test_device *)base;
    pthread_mutex_lock(&device->lock);
    while (device->n_done < ticket) pthread_cond_wait(&device->changed, &device->lock);
    const frit_status status = device->status;
    device->status = FRIT_OK;
    pthread_mutex_unlock(&device->lock);
    return status == FRIT_OK ? FRIT_OK : frit_fail(status, "%s", device->failure);
}

static frit_status wait_for_all(test_device *device)
{
    return device_wait(&device->base, device->n_queued);
}

// ------------------------------------------------------------------------------- memory

static frit_status device_alloc(frit_device *base, uint64_t n_bytes, frit_memory **out)
{
    test_device *device = (test_device *)base;
    *out = NULL;
    if (device->traits.free_bytes > 0 && n_bytes > device->traits.free_bytes - device->n_bytes)
        return frit_fail_memory((size_t)n_bytes, "memory of the test device");
    test_memory *memory = calloc(1, sizeof *memory);
    if (!memory) return frit_fail_memory(sizeof *memory, "memory of the test device");
    memory->base = (frit_memory){.device = base, .n_bytes = n_bytes};
    const frit_status status = frit_backend_cpu.alloc(device->inner, n_bytes, &memory->inner);
    if (status != FRIT_OK) {
        free(memory);
        return status;
    }
    memset(frit_backend_cpu.map(memory->inner), POISON, (size_t)n_bytes);
    device->n_bytes += n_bytes;
    *out = &memory->base;
    return FRIT_OK;
}

// The system takes the bytes back, so a later read fails.
static void device_free(frit_device *base, frit_memory *memory)
{
    test_device *device = (test_device *)base;
    if (!memory) return;
    wait_for_all(device);
    device->n_bytes -= memory->n_bytes;
    frit_backend_cpu.free(device->inner, ((test_memory *)memory)->inner);
    free(memory);
}

static void *device_map(const frit_memory *memory)
{
    (void)memory;
    return NULL;
}

// Finds the address in the memory of the inner CPU device.
static frit_status find(const test_device *device, frit_address place, uint64_t n_bytes, frit_address *out)
{
    if (!place.memory || place.memory->device != &device->base)
        return frit_fail(FRIT_E_INTERNAL, "the test device was given a place of another device");
    if (place.offset > place.memory->n_bytes || n_bytes > place.memory->n_bytes - place.offset)
        return frit_fail(FRIT_E_INTERNAL, "the test device was given bytes %llu to %llu of memory of %llu bytes",
                         (unsigned long long)place.offset, (unsigned long long)(place.offset + n_bytes),
                         (unsigned long long)place.memory->n_bytes);
    *out = (frit_address){((const test_memory *)place.memory)->inner, place.offset};
    return FRIT_OK;
}

static frit_status device_read(frit_device *base, frit_address from, void *to, uint64_t n_bytes)
{
    test_device *device = (test_device *)base;
    frit_address place;
    FRIT_TRY(find(device, from, n_bytes, &place));
    job *j = next_job(device);
    j->kind = JOB_READ;
    j->from = place;
    j->host = to;
    j->n_bytes = n_bytes;
    return device_wait(base, queue_job(device));
}

static frit_status device_write(frit_device *base, frit_address to, const void *from, uint64_t n_bytes)
{
    test_device *device = (test_device *)base;
    frit_address place;
    FRIT_TRY(find(device, to, n_bytes, &place));
    job *j = next_job(device);
    j->kind = JOB_WRITE;
    j->to = place;
    j->given = from;
    j->n_bytes = n_bytes;
    return device_wait(base, queue_job(device));
}

static frit_status device_copy(frit_device *base, frit_address to, frit_address from, uint64_t n_bytes)
{
    test_device *device = (test_device *)base;
    frit_address target, source;
    FRIT_TRY(find(device, to, n_bytes, &target));
    FRIT_TRY(find(device, from, n_bytes, &source));
    job *j = next_job(device);
    j->kind = JOB_COPY;
    j->to = target;
    j->from = source;
    j->n_bytes = n_bytes;
    queue_job(device);
    return FRIT_OK;
}

// The copy waits for what the source has queued, and what the source queues later waits for the copy.
static frit_status device_receive(frit_device *base, frit_address to, frit_address from, uint64_t n_bytes)
{
    test_device *device = (test_device *)base, *source = (test_device *)from.memory->device;
    frit_address target, given;
    FRIT_TRY(find(device, to, n_bytes, &target));
    FRIT_TRY(find(source, from, n_bytes, &given));
    job *j = next_job(device);
    j->kind = JOB_RECEIVE;
    j->to = target;
    j->from = given;
    j->n_bytes = n_bytes;
    j->other = source;
    j->until = source->n_queued;
    const frit_ticket ticket = queue_job(device);
    job *hold = next_job(source);
    hold->kind = JOB_HOLD;
    hold->other = device;
    hold->until = ticket;
    queue_job(source);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- what it runs

static bool is_chosen(const frit_node *node)
{
    switch (chosen) {
    case TEST_DEVICE_LAYERS:
        return node->depth % 2 == 0;
    case TEST_DEVICE_OPS:
        return node->op % 2 == 0;
    default:
        return true;
    }
}

static bool device_runs(const frit_device *device, const frit_node *node)
{
    (void)device;
    return is_chosen(node);
}

// Allows some joins, so that plans are made of which the device runs only a part.
static bool device_can_join(const void *device, frit_join join, const frit_node *node, const frit_node *other)
{
    (void)device, (void)node, (void)other;
    return join == FRIT_JOIN_ELEMENTS || join == FRIT_JOIN_ROWS;
}

static frit_status device_weight_bytes(frit_device *base, const frit_weight_uses *uses, frit_weight_bytes *out)
{
    const test_device *device = (const test_device *)base;
    FRIT_TRY(frit_backend_cpu.weight_bytes(device->inner, uses, out));
    const uint64_t times = device->traits.weight_times > 0 ? (uint64_t)device->traits.weight_times : 1;
    out->missing *= times;
    out->in_place *= times;
    return FRIT_OK;
}

static frit_status device_load(frit_device *base, const frit_weight_uses *uses, frit_progress progress)
{
    FRIT_TRY(wait_for_all((test_device *)base));
    return frit_backend_cpu.load(((test_device *)base)->inner, uses, progress);
}

// ------------------------------------------------------------------------------- adapters

// The device reads only its copies: freeing the host's matrices changes nothing.
static frit_status device_set_adapter(frit_device *base, int32_t i, const frit_adapter_table *adapter)
{
    test_device *device = (test_device *)base;
    test_adapter copy = {0};
    frit_adapter_table table;
    FRIT_TRY(wait_for_all(device));
    if (i >= device->n_adapters) {
        test_adapter *adapters = realloc(device->adapters, (size_t)(i + 1) * sizeof *adapters);
        if (!adapters) return frit_fail_memory((size_t)(i + 1) * sizeof *adapters, "adapters of the test device");
        device->adapters = adapters;
        while (device->n_adapters <= i) adapters[device->n_adapters++] = (test_adapter){0};
    }
    frit_status status = adapter ? device_alloc(base, test_copy_bytes(adapter) + 1, &copy.memory) : FRIT_OK;
    if (adapter && status == FRIT_OK) {
        uint8_t *bytes = frit_backend_cpu.map(((test_memory *)copy.memory)->inner);
        matrices_ever += test_copy_adapter(&table, adapter, &copy.arena, bytes);
    }
    if (status == FRIT_OK) status = frit_backend_cpu.set_adapter(device->inner, i, adapter ? &table : NULL);
    test_adapter *old = status == FRIT_OK ? &device->adapters[i] : &copy;
    device_free(base, old->memory);
    frit_arena_free(&old->arena);
    if (status == FRIT_OK) *old = copy;
    return status;
}

// ------------------------------------------------------------------------------- executables

// Binds the device's part of the cache.
static frit_status bind_cache(test_exec *exec, const frit_cache *cache)
{
    frit_address place;
    exec->cache = *cache;
    if (!cache->memory) return FRIT_OK;
    FRIT_TRY(find(exec->device, (frit_address){cache->memory, 0}, 0, &place));
    exec->cache.memory = place.memory;
    return FRIT_OK;
}

static frit_status prepare(test_exec *exec, frit_plan *plan, const frit_cache *cache)
{
    const frit_plan_options alone = {.no_fuse = true, .is_fused = true, .decode_kernels = plan->decode_kernels};
    frit_plan_set_rows(plan, plan->graph->max_rows, plan->graph->max_outs);
    FRIT_TRY(bind_cache(exec, cache));
    FRIT_TRY(test_copy_graph(&exec->graph, &exec->arena, plan->graph));
    FRIT_TRY(frit_plan_new(&exec->plan, &exec->graph, &alone));
    FRIT_TRY(frit_backend_cpu.prepare(exec->device->inner, exec->plan, &exec->cache, &exec->inner));
    if (!exec->graph.output) return FRIT_OK;
    const size_t n = (size_t)frit_node_elems(exec->graph.output);
    exec->rows = malloc(n * sizeof(float));
    return exec->rows ? FRIT_OK : frit_fail_memory(n * sizeof(float), "rows of results");
}

static void device_exec_free(frit_device *base, frit_exec *exec_base)
{
    test_device *device = (test_device *)base;
    test_exec *exec = (test_exec *)(void *)exec_base;
    if (!exec) return;
    wait_for_all(device);
    frit_backend_cpu.exec_free(device->inner, exec->inner);
    frit_arena_free(&exec->arena);
    free(exec->rows);
    free(exec);
}

static frit_status device_prepare(frit_device *base, frit_plan *plan, const frit_cache *cache, frit_exec **out)
{
    test_device *device = (test_device *)base;
    *out = NULL;
    FRIT_TRY(wait_for_all(device));
    test_exec *exec = calloc(1, sizeof *exec);
    if (!exec) return frit_fail_memory(sizeof *exec, "an executable of the test device");
    exec->device = device;
    const frit_status status = prepare(exec, plan, cache);
    if (status == FRIT_OK)
        *out = (frit_exec *)(void *)exec;
    else
        device_exec_free(base, (frit_exec *)(void *)exec);
    return status;
}

static frit_address device_value(frit_exec *exec_base, const frit_node *node)
{
    test_exec *exec = (test_exec *)(void *)exec_base;
    const frit_address inner = frit_backend_cpu.value(exec->inner, exec->graph.nodes[node->id]);
    test_memory *memory = exec->values;
    if (memory->inner && memory->inner != inner.memory) memory++;
    *memory = (test_memory){{&exec->device->base, inner.memory->n_bytes}, inner.memory};
    return (frit_address){&memory->base, inner.offset};
}

// ------------------------------------------------------------------------------- steps

// Gives all jobs the room that one needed: a steady step must not allocate, for any job of the ring.
static frit_status copy_batch(test_device *device, job *j, const frit_batch *batch)
{
    const size_t n_bytes = (size_t)frit_batch_bytes(batch);
    if (n_bytes > device->input_room) device->input_room = 2 * n_bytes;
    if (device->input_room > j->n_input) {
        free(j->input);
        j->n_input = 0;
        j->input = malloc(device->input_room);
        if (!j->input) return frit_fail_memory(device->input_room, "the input of a step");
        j->n_input = device->input_room;
    }
    frit_batch_pack(j->input, batch);
    j->batch = frit_batch_view(j->input);
    return FRIT_OK;
}

static frit_status device_submit(frit_device *base, frit_exec *exec_base, const frit_batch *batch,
                                 frit_step_output *output, frit_ticket *ticket)
{
    test_device *device = (test_device *)base;
    test_exec *exec = (test_exec *)(void *)exec_base;
    if (exec->device != device)
        return frit_fail(FRIT_E_INTERNAL, "the test device was given an executable of another device");
    job *j = next_job(device);
    FRIT_TRY(copy_batch(device, j, batch));
    j->kind = JOB_RUN;
    j->exec = exec;
    j->output = output;
    j->wanted = exec->graph.output ? *output : (frit_step_output){0};
    *ticket = queue_job(device);
    return FRIT_OK;
}

static frit_status device_pick(frit_device *base, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                               frit_ticket *ticket)
{
    test_device *device = (test_device *)base;
    job *j = next_job(device);
    FRIT_TRY(copy_batch(device, j, batch));
    j->kind = JOB_PICK;
    j->exec = (test_exec *)(void *)exec;
    j->wanted = *output;
    *ticket = queue_job(device);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- opening

static void device_close(frit_device *base)
{
    test_device *device = (test_device *)base;
    if (!device) return;
    pthread_mutex_lock(&device->lock);
    device->ends = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    pthread_join(device->thread, NULL);
    pthread_mutex_destroy(&device->lock);
    pthread_cond_destroy(&device->changed);
    for (int32_t i = 0; i < device->n_adapters; i++) {
        if (device->adapters[i].memory)
            frit_backend_cpu.free(device->inner, ((test_memory *)device->adapters[i].memory)->inner);
        free(device->adapters[i].memory);
        frit_arena_free(&device->adapters[i].arena);
    }
    free(device->adapters);
    frit_backend_cpu.close(device->inner);
    for (size_t i = 0; i < N_JOBS; i++) free(device->jobs[i].input);
    free(device);
}

static frit_status device_open(frit_device **out, const frit_device_options *options)
{
    frit_device_options inner = *options;
    inner.cpu = "reference";
    inner.n_threads = inner.n_threads_batch = 1;
    inner.weights_cache = NULL;
    inner.n_members = 0;
    *out = NULL;
    if (chosen_traits.is_absent) return FRIT_OK;
    test_device *device = calloc(1, sizeof *device);
    if (!device) return frit_fail_memory(sizeof *device, "the test device");
    const frit_status status = frit_backend_cpu.open(&device->inner, &inner);
    if (status != FRIT_OK) {
        free(device);
        return status;
    }
    device->base.backend = &test_device_backend;
    device->traits = chosen_traits;
    if (options->deterministic && !device->traits.ignores_deterministic) device->traits.least_prefill = 0;
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->changed, NULL);
    if (pthread_create(&device->thread, NULL, work, device) != 0) abort();
    opened_ever++;
    *out = &device->base;
    return FRIT_OK;
}

static void device_info(const frit_device *base, frit_device_info *info)
{
    const test_device *device = (const test_device *)base;
    const test_device_traits *traits = &device->traits;
    const uint64_t n_left = traits->free_bytes > device->n_bytes ? traits->free_bytes - device->n_bytes : 1;
    *info = (frit_device_info){.isa = "test",
                               .n_threads = 1,
                               .n_threads_batch = 1,
                               .least_rows = {[FRIT_ROWS_PREFILL] = traits->least_prefill},
                               .free_bytes = traits->free_bytes > 0 ? n_left : 0};
}

static frit_status device_profile(frit_device *base, bool on)
{
    FRIT_TRY(wait_for_all((test_device *)base));
    return frit_backend_cpu.profile(((test_device *)base)->inner, on);
}

static bool device_profile_row(const frit_device *base, size_t i, frit_profile_row *row)
{
    return frit_backend_cpu.profile_row(((const test_device *)base)->inner, i, row);
}

static frit_status device_join(frit_device *base, const frit_rank *rank)
{
    return frit_backend_cpu.join(((test_device *)base)->inner, rank);
}

static const char *device_op_kernel(frit_op op)
{
    (void)op;
    return "reference";
}

const frit_backend test_device_backend = {
    .name = "test",
    .picks = true,
    .queues = true,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .join = device_join,
    .alloc = device_alloc,
    .free = device_free,
    .map = device_map,
    .read = device_read,
    .write = device_write,
    .copy = device_copy,
    .receive = device_receive,
    .runs = device_runs,
    .can_join = device_can_join,
    .weight_bytes = device_weight_bytes,
    .load = device_load,
    .set_adapter = device_set_adapter,
    .prepare = device_prepare,
    .value = device_value,
    .submit = device_submit,
    .pick = device_pick,
    .poll = device_poll,
    .wait = device_wait,
    .exec_free = device_exec_free,
    .profile = device_profile,
    .profile_row = device_profile_row,
    .op_kernel = device_op_kernel,
};

void test_device_use(test_device_kind kind)
{
    chosen = kind;
    frit_backend_set_first(kind == TEST_DEVICE_NONE ? NULL : &test_device_backend);
}

void test_device_set_traits(test_device_traits traits)
{
    chosen_traits = traits;
}

void test_device_set_free(frit_device *device, uint64_t n_bytes)
{
    ((test_device *)device)->traits.free_bytes = ((test_device *)device)->n_bytes + n_bytes;
}

bool test_device_use_named(const char *name)
{
    for (int i = 0; i < TEST_DEVICE_KINDS; i++) {
        if (strcmp(name, test_device_names[i]) != 0) continue;
        test_device_use((test_device_kind)i);
        return true;
    }
    return false;
}

void test_device_lose(int n)
{
    runs_to_loss = n;
}

void test_device_stall(int n, int ms)
{
    stall_ms = ms;
    runs_to_stall = n;
}

size_t test_device_n_opened(void)
{
    return opened_ever;
}

size_t test_device_n_matrices(void)
{
    return matrices_ever;
}

size_t test_device_n_late(void)
{
    return picks_ever;
}

size_t test_device_n_runs(void)
{
    return runs_ever;
}

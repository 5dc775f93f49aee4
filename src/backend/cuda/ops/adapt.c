// SPDX-License-Identifier: MIT
// Loading adapters, and the launches that apply them.
#include "backend/cuda/ops/adapt.h"
#include "backend/cuda/exec.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, WARPS = THREADS / 32, ALIGNMENT = 256 };

// ------------------------------------------------------------------------------- the table

void frit_cuda_adapters_free(frit_cuda_device *d)
{
    frit_cuda_adapters *a = d->adapters;
    if (!a) return;
    for (int32_t i = 0; i < a->n; i++) frit_cuda_free_bytes(d, a->memory[i]);
    frit_cuda_free_bytes(d, a->parts_on);
    frit_cuda_free_bytes(d, a->directions_on);
    free(a->memory);
    free(a->parts);
    free(a->directions);
    free(a);
    d->adapters = NULL;
}

// New rows are zero.
static bool grow_rows(void *rows, int32_t n, int32_t wanted, size_t row_bytes)
{
    void **at = rows, *grown = realloc(*at, (size_t)wanted * row_bytes + 1);
    if (!grown) return false;
    memset((uint8_t *)grown + (size_t)n * row_bytes, 0, (size_t)(wanted - n) * row_bytes);
    *at = grown;
    return true;
}

static frit_status reserve(frit_cuda_device *d, int32_t n, const frit_adapter_table *table)
{
    if (!d->adapters && !(d->adapters = calloc(1, sizeof *d->adapters)))
        return frit_fail_memory(sizeof *d->adapters, "the adapters of a GPU");
    frit_cuda_adapters *a = d->adapters;
    if (table && a->n_matrices == 0) a->n_matrices = table->n_matrices, a->n_layers = table->n_layers;
    if (n <= a->n || a->n_matrices == 0) return FRIT_OK;
    const size_t parts = (size_t)a->n_matrices * sizeof *a->parts,
                 directions = (size_t)a->n_layers * sizeof *a->directions;
    if (!grow_rows(&a->memory, a->n, n, sizeof *a->memory) || !grow_rows(&a->parts, a->n, n, parts) ||
        !grow_rows(&a->directions, a->n, n, directions))
        return frit_fail_memory((size_t)n * parts, "the table of an adapter");
    frit_cuda_free_bytes(d, a->parts_on);
    frit_cuda_free_bytes(d, a->directions_on);
    a->n = n;
    FRIT_TRY(frit_cuda_alloc_bytes(d, (uint64_t)n * parts, "the table of adapters", &a->parts_on));
    return frit_cuda_alloc_bytes(d, (uint64_t)n * directions, "the table of adapters", &a->directions_on);
}

static frit_status check_table(const frit_adapter_table *table)
{
    for (int32_t i = 0; table && i < table->n_matrices; i++)
        if (table->matrices[i].gain)
            return frit_fail(FRIT_E_UNSUPPORTED,
                             "device cuda: adapters with magnitudes (DoRA) are not supported; expected --device cpu");
    return FRIT_OK;
}

static frit_status upload_bytes(frit_cuda_device *d, uint64_t to, const void *from, uint64_t n_bytes)
{
    if (n_bytes == 0) return FRIT_OK;
    FRIT_TRY(
        frit_cuda_check(&d->driver, d->driver.copy_up(to, from, (size_t)n_bytes, d->stream), "copying an adapter"));
    return frit_cuda_check(&d->driver, d->driver.stream_wait(d->stream), "copying an adapter");
}

// Calls `put` with each tensor of the adapter and its offset. Returns the bytes of all tensors.
static uint64_t walk_tensors(const frit_adapter_table *table, frit_status (*put)(void *, const frit_tensor *, uint64_t),
                             void *ctx, frit_status *status)
{
    uint64_t at = 0;
    for (int32_t i = 0; i < 2 * table->n_matrices + table->n_layers && *status == FRIT_OK; i++) {
        const int32_t k = i / 2;
        const frit_tensor *t = i >= 2 * table->n_matrices ? table->directions[i - 2 * table->n_matrices]
                               : i % 2                    ? table->matrices[k].b
                                                          : table->matrices[k].a;
        if (!t) continue;
        if (put) *status = put(ctx, t, at);
        at += (t->n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return at;
}

typedef struct sending {
    frit_cuda_device *device;
    uint64_t memory;
} sending;

static frit_status send_tensor(void *ctx, const frit_tensor *t, uint64_t at)
{
    const sending *s = ctx;
    return upload_bytes(s->device, s->memory + at, t->data, t->n_bytes);
}

static int kind_of(const frit_tensor *t)
{
    return t->dtype == FRIT_DTYPE_F32   ? FRIT_GPU_CACHE_F32
           : t->dtype == FRIT_DTYPE_F16 ? FRIT_GPU_CACHE_F16
                                        : FRIT_GPU_CACHE_BF16;
}

static uint64_t next_of(uint64_t *at, const frit_tensor *t)
{
    if (!t) return 0;
    const uint64_t address = *at;
    *at += (t->n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return address;
}

// Fills the table entries of adapter `index`, in the order of walk_tensors.
static void fill_rows(frit_cuda_adapters *a, int32_t index, const frit_adapter_table *table)
{
    uint64_t at = a->memory[index];
    for (int32_t i = 0; i < a->n_matrices; i++) {
        const frit_low_rank *from = &table->matrices[i];
        frit_gpu_low_rank *to = &a->parts[(size_t)index * (size_t)a->n_matrices + (size_t)i];
        *to = (frit_gpu_low_rank){.rank = from->a ? from->rank : 0, .scale = from->scale};
        to->a = next_of(&at, from->a);
        to->b = next_of(&at, from->b);
        if (from->a) to->kind_a = kind_of(from->a);
        if (from->b) to->kind_b = kind_of(from->b), to->n_b = (int)from->b->shape[from->b->n_dims - 1];
    }
    for (int32_t i = 0; i < a->n_layers; i++)
        a->directions[(size_t)index * (size_t)a->n_layers + (size_t)i] = next_of(&at, table->directions[i]);
}

static frit_status load_adapter(frit_cuda_device *d, int32_t index, const frit_adapter_table *table)
{
    frit_cuda_adapters *a = d->adapters;
    frit_status status = FRIT_OK;
    const uint64_t n_bytes = walk_tensors(table, NULL, NULL, &status);
    FRIT_TRY(frit_cuda_alloc_bytes(d, n_bytes, "an adapter", &a->memory[index]));
    (void)walk_tensors(table, send_tensor, &(sending){d, a->memory[index]}, &status);
    if (status == FRIT_OK) fill_rows(a, index, table);
    return status;
}

frit_status frit_cuda_set_adapter(frit_device *base, int32_t index, const frit_adapter_table *table)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    FRIT_TRY(check_table(table));
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.context_use(d->gpu.context), "using a GPU"));
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.stream_wait(d->stream), "waiting for a GPU"));
    FRIT_TRY(reserve(d, index + 1, table));
    frit_cuda_adapters *a = d->adapters;
    if (index >= a->n) return FRIT_OK;   // there never was such an adapter
    const size_t n_parts = (size_t)a->n_matrices, n_layers = (size_t)a->n_layers;
    frit_cuda_free_bytes(d, a->memory[index]);
    a->memory[index] = 0;
    memset(a->parts + (size_t)index * n_parts, 0, n_parts * sizeof *a->parts);
    memset(a->directions + (size_t)index * n_layers, 0, n_layers * sizeof *a->directions);
    if (table) FRIT_TRY(load_adapter(d, index, table));
    FRIT_TRY(upload_bytes(d, a->parts_on, a->parts, (uint64_t)a->n * n_parts * sizeof *a->parts));
    return upload_bytes(d, a->directions_on, a->directions, (uint64_t)a->n * n_layers * sizeof *a->directions);
}

// ------------------------------------------------------------------------------- launches

static frit_status run_adapt(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    frit_adapt_args args = l->adapt;
    const frit_cuda_adapters *a = d->adapters;
    const bool steers = l->node->op == FRIT_OP_STEER, is_down = l->node->op == FRIT_OP_ADAPT_DOWN;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    args.x = frit_cuda_resolve(step, l->x[0]);
    args.h = frit_cuda_resolve(step, l->x[1]);
    args.y = frit_cuda_resolve(step, l->y);
    args.picked = step->picked;
    args.scales = step->arrays[FRIT_CUDA_SCALES];
    args.seq_of = step->arrays[FRIT_CUDA_SEQ_OF];
    args.out_rows = l->node->rows == FRIT_SHAPE_OUTS ? step->arrays[FRIT_CUDA_OUT_ROWS] : 0;
    args.n_adapters = step->batch->n_adapters;
    if (a && step->batch->scales) {
        args.n_loaded = a->n < args.n_adapters ? a->n : args.n_adapters;
        args.table = steers ? a->directions_on : a->parts_on;
        args.stride = steers ? a->n_layers : a->n_matrices;
    }
    const int n = is_down ? args.n_h : args.width, each = is_down ? WARPS : THREADS;
    return n_rows == 0 ? FRIT_OK
                       : frit_cuda_run_kernel(d, l->kernel, (unsigned)n_rows, (unsigned)((n + each - 1) / each), &args);
}

bool frit_cuda_adapt_fits(const frit_node *node)
{
    const int own = node->op == FRIT_OP_ADAPT_UP ? 2 : 1;   // another source is a route of experts
    return node->n_src == own && node->n_dims == 2 && node->src[0]->n_dims <= 2;
}

frit_status frit_cuda_lower_adapt(frit_exec *exec, const frit_node *node)
{
    static const char *const names[FRIT_OP_COUNT] = {
        [FRIT_OP_ADAPT_DOWN] = "adapt_down", [FRIT_OP_ADAPT_UP] = "adapt_up", [FRIT_OP_STEER] = "adapt_steer"};
    const bool is_down = node->op == FRIT_OP_ADAPT_DOWN;
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    for (int i = 0; i < node->n_src; i++) FRIT_TRY(frit_cuda_address_of(exec, node->src[i], false, &l->x[i]));
    FRIT_TRY(frit_cuda_address_of(exec, node, false, &l->y));
    l->run = run_adapt;
    l->adapt = (frit_adapt_args){.index = node->op == FRIT_OP_STEER ? node->layer : node->adapted[0].matrix,
                                 .n_h = node->adapted[0].n_h,
                                 .first_row = (int)node->adapted[0].first_row,
                                 .is_lookup = is_down && frit_node_is_ids(node->src[0]),
                                 .width = (int)frit_cuda_width(is_down ? node->src[0] : node)};
    return frit_cuda_kernel_get_named(exec, "adapt.cu", names[node->op], THREADS, 0, &l->kernel);
}

frit_status frit_cuda_lower_adapted(frit_exec *exec, const frit_node *linear)
{
    const int i = frit_node_adapts(linear, 0);
    if (i < 0) return FRIT_OK;
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_launch_new(exec, linear, &l));
    FRIT_TRY(frit_cuda_address_of(exec, linear, false, &l->y));
    FRIT_TRY(frit_cuda_address_of(exec, linear->src[i], false, &l->x[1]));
    l->x[0] = l->y;
    l->run = run_adapt;
    l->adapt = (frit_adapt_args){.index = linear->adapted[0].matrix,
                                 .n_h = linear->adapted[0].n_h,
                                 .first_row = (int)linear->adapted[0].first_row,
                                 .width = (int)frit_cuda_width(linear)};
    return frit_cuda_kernel_get_named(exec, "adapt.cu", "adapt_up", THREADS, 0, &l->kernel);
}

// SPDX-License-Identifier: MIT
// Products of many rows: these become f16 times a power of two for each row, if they are not (f16_input.c), cuBLASLt
// multiplies, or for up to 128 rows a kernel of our own (gemm_small.h), and what follows the product finishes its
// results.
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/precise.h"
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/ops/gemm_small.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, THREADS = 256 };

static frit_status launch(frit_cuda_device *d, const frit_cuda_kernel *kernel, unsigned n_blocks, const void *args)
{
    frit_cuda_kernel one = *kernel;
    one.grid[0] = n_blocks;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, args, FRIT_CUDA_OVERLAPPING);
}

static int64_t n_tiles_of(const frit_cuda_matmul *m)
{
    return m->segments[0].n_tiles + m->segments[1].n_tiles;
}

static frit_status blas_plan(frit_cuda_device *d, const frit_cuda_matmul *matmul, int n_rows,
                             const frit_cuda_matmul_args *args, const frit_cublaslt_product **out)
{
    enum { MOST = 256 };
    const frit_cublaslt_shape shape = {.n_tokens = n_rows,
                                       .n_rows = (int)n_tiles_of(matmul) * FRIT_TILE_ROWS,
                                       .k = matmul->k,
                                       .is_f16 = true,
                                       .is_out_f32 = true};
    for (size_t i = 0; i < d->n_blas_plans; i++) {
        const frit_cublaslt_shape *s = &d->blas_plans[i].shape;
        *out = &d->blas_plans[i].product;
        if (s->n_tokens == shape.n_tokens && s->n_rows == shape.n_rows && s->k == shape.k) return FRIT_OK;
    }
    if (!d->blas_plans) d->blas_plans = calloc(MOST, sizeof *d->blas_plans);
    if (!d->blas_plans) return frit_fail_memory(MOST * sizeof *d->blas_plans, "products of many rows");
    if (d->n_blas_plans == MOST) {
        for (size_t i = 0; i < MOST; i++) frit_cublaslt_product_free(&d->blas_plans[i].product);
        d->n_blas_plans = 0;
    }
    frit_cuda_blas_plan *plan = &d->blas_plans[d->n_blas_plans];
    const int choice = frit_cuda_choices_algorithm(d, matmul, n_rows, args);
    FRIT_TRY(frit_cuda_matmul_prepare(matmul, &d->blas, n_rows, choice, &plan->product));
    plan->shape = shape;
    d->n_blas_plans++;
    *out = &plan->product;
    return FRIT_OK;
}

static frit_status multiply_many(frit_cuda_device *d, const frit_cuda_launch *l, int n_rows, const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const frit_cublaslt_product *product;
    const frit_cuda_matmul_args args = {.weights = {frit_cuda_resolve(step, l->x[1]), frit_cuda_resolve(step, l->x[4])},
                                        .x = frit_cuda_resolve(step, m->x.rows),
                                        .y = step->work + m->product,
                                        .scratch = step->work + m->weights,
                                        .workspace = step->work + m->workspace};
    FRIT_TRY(blas_plan(d, m->matmul, n_rows, &args, &product));
    return frit_cuda_matmul_run(m->matmul, &d->gpu, product, &args, d->stream);
}

// NULL: too many rows.
static const frit_cuda_some_variant *some_for(const frit_cuda_many *m, int64_t n_rows)
{
    for (int i = 0; i < m->n_some; i++)
        if (m->some[i].rows >= n_rows) return &m->some[i];
    return NULL;
}

// Whether nothing is left to be done with what the product's kernel has.
static bool is_finished(const frit_cuda_launch *l, const frit_cuda_some_variant *some)
{
    const frit_cuda_many *m = &l->many;
    return some->n_parts == 1 && m->finish && !m->is_gated && !m->norm.kernel && l->x[3].where == FRIT_CUDA_NOWHERE &&
           frit_cuda_width(l->node) == m->n;
}

static frit_status multiply_gated(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_some_variant *some,
                                  int n_rows, const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const frit_some_args args = {.weights = {frit_cuda_resolve(step, l->x[1])},
                                 .x = frit_cuda_resolve(step, m->x.rows),
                                 .scales = frit_cuda_resolve(step, m->x.scales),
                                 .out = frit_cuda_resolve(step, m->gated.rows),
                                 .squares = frit_cuda_resolve(step, m->x.squares),
                                 .bounds = m->bounds,
                                 .out_scales = frit_cuda_resolve(step, m->gated.scales),
                                 .n_rows = n_rows};
    return frit_cuda_kernel_launch(&d->gpu, some->kernel, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

static frit_status multiply_some(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_some_variant *some,
                                 int n_rows, bool is_last, const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const frit_some_args args = {.weights = {frit_cuda_resolve(step, l->x[1]), frit_cuda_resolve(step, l->x[4])},
                                 .x = frit_cuda_resolve(step, m->x.rows),
                                 .scales = is_last ? frit_cuda_resolve(step, m->x.scales) : 0,
                                 .out = is_last ? frit_cuda_resolve(step, l->y) : step->work + m->product,
                                 .n_rows = n_rows};
    return frit_cuda_kernel_launch(&d->gpu, some->kernel, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

static frit_status multiply_precisely(frit_cuda_device *d, const frit_cuda_launch *l, int n_rows,
                                      const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const frit_precise_args args = {.tiles = frit_cuda_resolve(step, l->x[1]),
                                    .x = frit_cuda_resolve(step, l->x[0]),
                                    .out = step->work + m->product,
                                    .n_rows = n_rows,
                                    .stride = m->n};
    frit_cuda_kernel one = *m->precise;
    one.grid[1] = (unsigned)(n_rows + FRIT_CUDA_PRECISE_ROWS - 1) / FRIT_CUDA_PRECISE_ROWS;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

int frit_cuda_many_parts(const frit_cuda_launch *l, int64_t n_rows)
{
    const frit_cuda_some_variant *some = some_for(&l->many, n_rows);
    return some ? some->n_parts : 1;
}

static frit_status finish_gates(frit_cuda_device *d, const frit_cuda_many *m, int64_t n_rows, int n_parts,
                                const frit_cuda_step *step)
{
    const frit_gate_args args = {.x = step->work + m->product,
                                 .product_scales = frit_cuda_resolve(step, m->x.scales),
                                 .y = frit_cuda_resolve(step, m->gated.rows),
                                 .scales = frit_cuda_resolve(step, m->gated.scales),
                                 .n_parts = n_parts,
                                 .stride = m->n};
    return launch(d, m->gate, (unsigned)n_rows, &args);
}

// The sum with the residual, and its norm as halves.
static frit_status finish_and_norm(frit_cuda_device *d, const frit_cuda_launch *l, int64_t n_rows, int n_parts,
                                   const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const frit_norm_args args = {.x = frit_cuda_resolve(step, l->y),
                                 .y = frit_cuda_resolve(step, m->norm.y.rows),
                                 .scales = frit_cuda_resolve(step, m->norm.y.scales),
                                 .squares = frit_cuda_resolve(step, m->norm.y.squares),
                                 .weight = frit_cuda_resolve(step, m->norm.weight),
                                 .bias = frit_cuda_resolve(step, m->norm.bias),
                                 .residual = frit_cuda_resolve(step, l->x[3]),
                                 .product = step->work + m->product,
                                 .product_scales = frit_cuda_resolve(step, m->x.scales),
                                 .epsilon = m->norm.epsilon,
                                 .n_parts = n_parts,
                                 .stride = m->n};
    return launch(d, frit_cuda_norm_for(&m->norm, n_rows), (unsigned)n_rows, &args);
}

static frit_status finish_numbers(frit_cuda_device *d, const frit_cuda_launch *l, int64_t n_rows, int n_parts,
                                  const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const int64_t width = frit_cuda_width(l->node);
    const frit_finish_args args = {.x = step->work + m->product,
                                   .scales = frit_cuda_resolve(step, m->x.scales),
                                   .residual = frit_cuda_resolve(step, l->x[3]),
                                   .y = frit_cuda_resolve(step, l->y),
                                   .n = n_rows * width,
                                   .width = (int)width,
                                   .stride = m->n,
                                   .is_gated = m->is_gated,
                                   .n_parts = n_parts};
    return launch(d, m->finish, (unsigned)((args.n + THREADS - 1) / THREADS), &args);
}

static frit_status convert_rows(frit_cuda_device *d, const frit_cuda_launch *l, int64_t n_rows,
                                const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const frit_convert_args args = {.x = frit_cuda_resolve(step, l->x[0]),
                                    .y = frit_cuda_resolve(step, m->x.rows),
                                    .scales = frit_cuda_resolve(step, m->x.scales),
                                    .n = n_rows,
                                    .width = m->k};
    return launch(d, m->convert, (unsigned)n_rows, &args);
}

static frit_status run_many(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    const frit_cuda_some_variant *some = some_for(m, n_rows);
    const int n_parts = frit_cuda_many_parts(l, n_rows);
    if (n_rows == 0) return FRIT_OK;
    if (m->convert) FRIT_TRY(convert_rows(d, l, n_rows, step));
    if (some && some->is_gated) return multiply_gated(d, l, some, (int)n_rows, step);
    const bool is_last = some && is_finished(l, some);
    if (m->precise)
        FRIT_TRY(multiply_precisely(d, l, (int)n_rows, step));
    else
        FRIT_TRY(some ? multiply_some(d, l, some, (int)n_rows, is_last, step) : multiply_many(d, l, (int)n_rows, step));
    if (m->gate) return finish_gates(d, m, n_rows, n_parts, step);
    if (m->norm.kernel) return finish_and_norm(d, l, n_rows, n_parts, step);
    return m->finish && !is_last ? finish_numbers(d, l, n_rows, n_parts, step) : FRIT_OK;
}

static uint64_t take_work(uint64_t *at, uint64_t n_bytes)
{
    const uint64_t begin = *at;
    *at += (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return begin;
}

static frit_status new_matmul(frit_exec *exec, const frit_cuda_matmul *of, frit_cuda_matmul **out)
{
    frit_cuda_matmul **list = realloc(exec->matmuls, (size_t)(exec->n_matmuls + 1) * sizeof(frit_cuda_matmul *));
    if (list) exec->matmuls = list;
    *out = list ? malloc(sizeof **out) : NULL;
    if (!*out) return frit_fail_memory(sizeof **out, "a product of many rows");
    **out = *of;
    exec->matmuls[exec->n_matmuls++] = *out;
    return FRIT_OK;
}

void frit_cuda_matmuls_free(frit_exec *exec)
{
    for (int i = 0; i < exec->n_matmuls; i++) free(exec->matmuls[i]);
    free(exec->matmuls);
}

// Kernels for up to 16, 32, 64 and 128 rows, and the bytes that their results take.
static frit_status take_some(frit_cuda_device *d, const frit_cuda_products *p, int64_t max_rows, frit_cuda_launch *l,
                             uint64_t *n_bytes)
{
    frit_cuda_many *m = &l->many;
    const bool has_bounds = m->bounds != 0, is_fixed = l->x[1].where == FRIT_CUDA_FIXED;
    const uint64_t weights[FRIT_GPU_SEGMENTS] = {is_fixed ? l->x[1].at : 0, is_fixed ? l->x[4].at : 0};
    for (int rows = FRIT_CUDA_SOME_ROWS >> (FRIT_CUDA_SOME_VARIANTS - 1); rows <= FRIT_CUDA_SOME_ROWS; rows *= 2) {
        frit_cuda_some some = {.rows = rows, .k = p->k, .is_gated = has_bounds};
        frit_cuda_kernel kernel;
        memcpy(some.segments, p->segments, sizeof some.segments);
        if (frit_cuda_choices_some(d, &some, weights) == FRIT_CUDA_BY_BLAS) return FRIT_OK;
        if (frit_cuda_some_kernel(&some, &d->gpu, &kernel) != FRIT_OK) return FRIT_OK;   // cuBLASLt then
        frit_cuda_some_variant *v = &m->some[m->n_some++];
        *v = (frit_cuda_some_variant){.rows = rows, .n_parts = some.splits, .is_gated = some.is_gated};
        FRIT_TRY(frit_cuda_kernel_take(d, &kernel, &v->kernel));
        const int64_t n_rows = max_rows < rows ? max_rows : rows;
        const uint64_t own = (uint64_t)(some.splits * n_rows * m->n) * sizeof(float);
        if (own > *n_bytes) *n_bytes = own;
        if (rows >= max_rows) return FRIT_OK;
    }
    return FRIT_OK;
}

// What finishes the results.
static frit_status take_finish(frit_exec *exec, const frit_node *result, frit_cuda_many *m)
{
    if (!result) return FRIT_OK;
    frit_cuda_kernel gate;
    const bool feeds = m->is_gated && result->op == FRIT_OP_GLU && frit_cuda_feeds_many(exec, result);
    if (!feeds || frit_cuda_gate_kernel((int)frit_cuda_width(result), &gate) != FRIT_OK)
        return frit_cuda_take_kernel(exec, "gemm.cu", "finish_rows", THREADS, 0, &m->finish);
    exec->is_halves[result->id] = true;
    m->gated = frit_cuda_halves_of(exec, result);
    return frit_cuda_kernel_take(exec->device, &gate, &m->gate);
}

// Gates and values whose weights stay where they are, of rows that are known by their squares too: bounds of them.
static frit_status take_bounds(frit_exec *exec, const frit_cuda_products *p, frit_cuda_launch *l)
{
    frit_cuda_many *m = &l->many;
    if (!m->gate || m->x.squares.where == FRIT_CUDA_NOWHERE || l->x[1].where != FRIT_CUDA_FIXED) return FRIT_OK;
    frit_cuda_kernel kernel = {
        .file = "bounds.cu", .name = "bounds", .grid = {(unsigned)p->segments[0].n_tiles, 1, 1}, .threads = 256};
    frit_cuda_define(&kernel, "TYPE0", frit_dtype_get(p->segments[0].dtype)->gguf_id);
    frit_cuda_define(&kernel, "K", p->k);
    FRIT_TRY(frit_cuda_keep_bytes(exec, 2 * sizeof(float), true, &m->bounds));
    return frit_cuda_kernel_take(exec->device, &kernel, &m->measure);
}

frit_status frit_cuda_many_measure(frit_exec *exec)
{
    frit_cuda_device *d = exec->device;
    for (int i = 0; i < exec->n_launches; i++) {
        const frit_cuda_launch *l = &exec->launches[i];
        if (l->run != run_many || !l->many.measure) continue;
        const frit_bounds_args args = {.tiles = l->x[1].at, .largest = l->many.bounds};
        FRIT_TRY(frit_cuda_kernel_launch(&d->gpu, l->many.measure, d->stream, &args, FRIT_CUDA_IN_ORDER));
    }
    return FRIT_OK;
}

static frit_status lay_out_work(frit_exec *exec, const frit_cuda_products *p, int64_t max_rows, frit_cuda_launch *l)
{
    frit_cuda_many *m = &l->many;
    const uint64_t n_rows = (uint64_t)max_rows;
    uint64_t at = 0, product_bytes = n_rows * (uint64_t)m->n * sizeof(float);
    FRIT_TRY(take_some(exec->device, p, max_rows, l, &product_bytes));
    m->workspace = take_work(&at, FRIT_CUBLASLT_WORKSPACE_BYTES);
    if (m->convert) {
        m->x.rows = (frit_cuda_address){FRIT_CUDA_WORK, take_work(&at, n_rows * (uint64_t)m->k * 2)};
        m->x.scales = (frit_cuda_address){FRIT_CUDA_WORK, take_work(&at, n_rows * sizeof(float))};
    }
    m->weights = take_work(&at, frit_cuda_matmul_scratch(m->matmul));
    m->product = take_work(&at, product_bytes);
    if (at > exec->work_bytes) exec->work_bytes = at;
    return FRIT_OK;
}

// What it has for each row is its products alone, in f32.
static frit_status lower_precise(frit_exec *exec, const frit_cuda_products *p, int64_t max_rows,
                                 const frit_node *result, frit_cuda_many *m)
{
    const uint64_t n_bytes = (uint64_t)max_rows * (uint64_t)m->n * sizeof(float);
    frit_cuda_kernel kernel;
    FRIT_TRY(frit_cuda_precise_kernel(p->segments[0].dtype, p->k, p->segments[0].n_tiles, &kernel));
    FRIT_TRY(frit_cuda_kernel_take(exec->device, &kernel, &m->precise));
    if (n_bytes > exec->work_bytes) exec->work_bytes = n_bytes;
    return take_finish(exec, result, m);
}

frit_status frit_cuda_lower_many(frit_exec *exec, const frit_cuda_products *p, int64_t max_rows,
                                 const frit_node *result, frit_cuda_launch *l)
{
    frit_cuda_device *d = exec->device;
    frit_cuda_many *m = &l->many;
    const frit_node *x = frit_node_storage(p->node->src[0]);
    frit_cuda_matmul matmul = {.k = p->k, .in = FRIT_CUDA_F16, .out = FRIT_CUDA_F32};
    memcpy(matmul.segments, p->segments, sizeof matmul.segments);
    l->run = run_many;
    *m = (frit_cuda_many){
        .k = p->k, .n = (int)n_tiles_of(&matmul) * FRIT_TILE_ROWS, .is_gated = p->epilogue == FRIT_GPU_GLU};
    if (exec->is_precise) return lower_precise(exec, p, max_rows, result, m);
    FRIT_TRY(frit_cuda_matmul_describe(&matmul));
    FRIT_TRY(new_matmul(exec, &matmul, &m->matmul));
    for (int i = 0; i < matmul.n_kernels; i++)
        FRIT_TRY(frit_cuda_kernel_take(d, &matmul.dequantize[i], &m->matmul->shared[i]));
    if (exec->is_halves[x->id])
        m->x = frit_cuda_halves_of(exec, x);
    else
        FRIT_TRY(frit_cuda_take_kernel(exec, "gemm.cu", "convert_rows", THREADS, 0, &m->convert));
    FRIT_TRY(take_finish(exec, result, m));
    FRIT_TRY(take_bounds(exec, p, l));
    return lay_out_work(exec, p, max_rows, l);
}

bool frit_cuda_many_takes_norm(const frit_cuda_launch *l, const frit_node *norm)
{
    return l->run == run_many && l->many.finish && !l->many.is_gated && !l->many.norm.kernel &&
           l->x[3].where == FRIT_CUDA_SCRATCH && l->node == frit_node_storage(norm->src[0]) &&
           l->node->rows == norm->rows;
}

// SPDX-License-Identifier: MIT
// Launches of gemms. The input is converted to f16 unless it is f16 already (f16_input.h). The product is computed by
// gemm_small.h, gemm_wgmma.h, gemm_fp8.h or cuBLASLt. A last kernel scales the results and adds residual, activation or
// norm.
#include "backend/cuda/ops/gemm.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/gemm_fp8.h"
#include "backend/cuda/ops/gemm_small.h"
#include "backend/cuda/ops/gemm_wgmma.h"
#include "backend/cuda/ops/precise.h"
#include "backend/cuda/ops/linear.h"
#include "backend/cuda/ops/rows.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, THREADS = 256 };

bool frit_cuda_is_gemm(const frit_exec *exec, const frit_node *linear)
{
    const frit_cuda_device *d = exec->device;
    if (exec->is_precise) return true;
    if (linear->shape[0] < FRIT_CUDA_GEMM_FROM || d->is_deterministic) return false;
    return (d->has_blas || frit_cuda_gemm_is_wgmma(&d->gpu, frit_cuda_row_elems(linear->src[0]))) &&
           frit_node_storage(linear->src[1])->tensor->dtype != FRIT_DTYPE_F32;
}

static frit_status launch_blocks(frit_cuda_device *d, const frit_cuda_kernel *kernel, unsigned n_blocks,
                                 const void *args)
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
    if (!d->blas_plans) return frit_fail_memory(MOST * sizeof *d->blas_plans, "large products");
    if (d->n_blas_plans == MOST) {
        for (size_t i = 0; i < MOST; i++) frit_cublaslt_product_free(&d->blas_plans[i].product);
        d->n_blas_plans = 0;
    }
    frit_cuda_blas_plan *plan = &d->blas_plans[d->n_blas_plans];
    const int choice = frit_cuda_autotune_algorithm(d, matmul, n_rows, args);
    FRIT_TRY(frit_cuda_matmul_prepare(matmul, &d->blas, n_rows, choice, &plan->product));
    plan->shape = shape;
    d->n_blas_plans++;
    *out = &plan->product;
    return FRIT_OK;
}

static frit_cuda_matmul_args matmul_args(const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
    return (frit_cuda_matmul_args){.weights = {frit_cuda_resolve(step, l->x[1]), frit_cuda_resolve(step, l->x[4])},
                                   .x = frit_cuda_resolve(step, m->x.rows),
                                   .y = step->work + m->product,
                                   .scratch = step->work + m->weights,
                                   .workspace = step->work + m->workspace};
}

static frit_status multiply_by_cublaslt(frit_cuda_device *d, const frit_cuda_launch *l, int n_rows,
                                        const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
    const frit_cublaslt_product *product;
    const frit_cuda_matmul_args args = matmul_args(l, step);
    FRIT_TRY(blas_plan(d, m->matmul, n_rows, &args, &product));
    return frit_cuda_matmul_run(m->matmul, &d->gpu, product, &args, d->stream);
}

// The kernel that multiplies tiles for n_rows rows; NULL: there are too many.
static const frit_cuda_gemm_variant *variant_for(const frit_cuda_gemm *m, int64_t n_rows)
{
    for (int i = 0; i < m->n_variants; i++)
        if (m->variants[i].rows >= n_rows) return &m->variants[i];
    return NULL;
}

static frit_status launch_variant(frit_cuda_device *d, const frit_cuda_gemm_variant *v, const frit_gemm_args *args)
{
    frit_cuda_kernel one = *v->kernel;
    one.grid[0] *= (unsigned)((args->n_rows + v->block_rows - 1) / v->block_rows);
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, args, FRIT_CUDA_OVERLAPPING);
}

// True if no other kernel needs to follow the product.
static bool is_finished(const frit_cuda_launch *l, const frit_cuda_gemm_variant *variant)
{
    const frit_cuda_gemm *m = &l->gemm;
    return variant->n_parts == 1 && m->finish && !m->is_gated && !m->norm.kernel &&
           l->x[3].where == FRIT_CUDA_NOWHERE && frit_cuda_width(l->node) == m->n;
}

static int x_rows_of(int64_t n_rows)
{
    return (int)((n_rows + 7) / 8 * 8);
}

static frit_status quantize_rows(frit_cuda_device *d, const frit_cuda_launch *l, int64_t n_rows,
                                 const frit_cuda_step *step)
{
    enum { WARPS = 8 };
    const frit_cuda_gemm *m = &l->gemm;
    const frit_quantize_args args = {.x = frit_cuda_resolve(step, m->x.rows),
                                     .y = step->work + m->codes,
                                     .scales = step->work + m->code_scales,
                                     .n_rows = (int)n_rows,
                                     .slab_rows = x_rows_of(n_rows),
                                     .n_slabs = m->k / 128};
    return launch_blocks(d, m->quantize, (unsigned)(args.slab_rows * args.n_slabs + WARPS - 1) / WARPS, &args);
}

// Sets the input of a product: the f16 rows, or what quantize_rows makes of them.
static void set_input(const frit_cuda_launch *l, const frit_cuda_gemm_variant *variant, const frit_cuda_step *step,
                      frit_gemm_args *args)
{
    const frit_cuda_gemm *m = &l->gemm;
    args->x = variant->is_fp8 ? step->work + m->codes : frit_cuda_resolve(step, m->x.rows);
    args->x_scales = variant->is_fp8 ? step->work + m->code_scales : 0;
}

static frit_status multiply_gated(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_gemm_variant *variant,
                                  int n_rows, const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
    frit_gemm_args args = {.weights = {frit_cuda_resolve(step, l->x[1])},
                           .scales = frit_cuda_resolve(step, m->x.scales),
                           .out = frit_cuda_resolve(step, m->gated.rows),
                           .squares = frit_cuda_resolve(step, m->x.squares),
                           .bounds = m->bounds,
                           .out_scales = frit_cuda_resolve(step, m->gated.scales),
                           .n_rows = n_rows,
                           .slab_rows = frit_cuda_slab_rows(d, m->n / 2, n_rows)};
    set_input(l, variant, step, &args);
    return launch_variant(d, variant, &args);
}

static frit_status multiply_in_tiles(frit_cuda_device *d, const frit_cuda_launch *l,
                                     const frit_cuda_gemm_variant *variant, int n_rows, bool is_last,
                                     const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
    frit_gemm_args args = {.weights = {frit_cuda_resolve(step, l->x[1]), frit_cuda_resolve(step, l->x[4])},
                           .scales = is_last ? frit_cuda_resolve(step, m->x.scales) : 0,
                           .out = is_last ? frit_cuda_resolve(step, l->y) : step->work + m->product,
                           .n_rows = n_rows};
    set_input(l, variant, step, &args);
    return launch_variant(d, variant, &args);
}

static frit_status multiply_precisely(frit_cuda_device *d, const frit_cuda_launch *l, int n_rows,
                                      const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
    const frit_precise_args args = {.tiles = frit_cuda_resolve(step, l->x[1]),
                                    .x = frit_cuda_resolve(step, l->x[0]),
                                    .out = step->work + m->product,
                                    .n_rows = n_rows,
                                    .stride = m->n};
    frit_cuda_kernel one = *m->precise;
    one.grid[1] = (unsigned)(n_rows + FRIT_CUDA_PRECISE_ROWS - 1) / FRIT_CUDA_PRECISE_ROWS;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

int frit_cuda_gemm_parts(const frit_cuda_launch *l, int64_t n_rows)
{
    const frit_cuda_gemm_variant *variant = variant_for(&l->gemm, n_rows);
    return variant ? variant->n_parts : 1;
}

static frit_status finish_gates(frit_cuda_device *d, const frit_cuda_gemm *m, int64_t n_rows, int n_parts,
                                const frit_cuda_step *step)
{
    const frit_gate_args args = {.x = step->work + m->product,
                                 .product_scales = frit_cuda_resolve(step, m->x.scales),
                                 .y = frit_cuda_resolve(step, m->gated.rows),
                                 .scales = frit_cuda_resolve(step, m->gated.scales),
                                 .n_parts = n_parts,
                                 .stride = m->n,
                                 .slab_rows = frit_cuda_slab_rows(d, m->n / 2, n_rows)};
    return launch_blocks(d, m->gate, (unsigned)n_rows, &args);
}

// Adds the residual, and writes the norm of the sum in f16.
static frit_status finish_and_norm(frit_cuda_device *d, const frit_cuda_launch *l, int64_t n_rows, int n_parts,
                                   const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
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
                                 .stride = m->n,
                                 .slab_rows = frit_cuda_slab_rows(d, frit_cuda_width(l->node), n_rows)};
    return launch_blocks(d, frit_cuda_f16_norm_kernel(&m->norm, n_rows), (unsigned)n_rows, &args);
}

static frit_status finish_numbers(frit_cuda_device *d, const frit_cuda_launch *l, int64_t n_rows, int n_parts,
                                  const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
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
    return launch_blocks(d, m->finish, (unsigned)((args.n + THREADS - 1) / THREADS), &args);
}

static frit_status convert_rows(frit_cuda_device *d, const frit_cuda_launch *l, int64_t n_rows,
                                const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
    const frit_convert_args args = {.x = frit_cuda_resolve(step, l->x[0]),
                                    .y = frit_cuda_resolve(step, m->x.rows),
                                    .scales = frit_cuda_resolve(step, m->x.scales),
                                    .n = n_rows,
                                    .width = m->k,
                                    .slab_rows = frit_cuda_slab_rows(d, m->k, n_rows)};
    return launch_blocks(d, m->convert, (unsigned)n_rows, &args);
}

static frit_status run_gemm(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    const frit_cuda_gemm_variant *variant = variant_for(m, n_rows);
    const int n_parts = frit_cuda_gemm_parts(l, n_rows);
    if (n_rows == 0) return FRIT_OK;
    if (m->convert) FRIT_TRY(convert_rows(d, l, n_rows, step));
    if (variant && variant->is_fp8) FRIT_TRY(quantize_rows(d, l, n_rows, step));
    if (variant && variant->is_gated) return multiply_gated(d, l, variant, (int)n_rows, step);
    const bool is_last = variant && is_finished(l, variant);
    if (m->precise)
        FRIT_TRY(multiply_precisely(d, l, (int)n_rows, step));
    else
        FRIT_TRY(variant ? multiply_in_tiles(d, l, variant, (int)n_rows, is_last, step)
                         : multiply_by_cublaslt(d, l, (int)n_rows, step));
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
    if (!*out) return frit_fail_memory(sizeof **out, "a large product");
    **out = *of;
    exec->matmuls[exec->n_matmuls++] = *out;
    return FRIT_OK;
}

void frit_cuda_matmuls_free(frit_exec *exec)
{
    for (int i = 0; i < exec->n_matmuls; i++) free(exec->matmuls[i]);
    free(exec->matmuls);
}

static frit_status add_variant(frit_cuda_device *d, frit_cuda_gemm *m, const frit_cuda_gemm_variant *variant,
                               const frit_cuda_kernel *kernel, int64_t max_rows, uint64_t *n_bytes)
{
    frit_cuda_gemm_variant *v = &m->variants[m->n_variants++];
    const int64_t n_rows = max_rows < variant->rows ? max_rows : variant->rows;
    const uint64_t own = (uint64_t)(variant->n_parts * n_rows * m->n) * sizeof(float);
    *v = *variant;
    if (own > *n_bytes) *n_bytes = own;
    return frit_cuda_kernel_get(d, kernel, &v->kernel);
}

// Adds the kernel of gemm_small.h for up to `rows` rows. *is_added false: cuBLASLt multiplies.
static frit_status add_small(frit_cuda_device *d, const frit_cuda_products *p, int rows, int64_t max_rows,
                             frit_cuda_launch *l, uint64_t *n_bytes, bool *is_added)
{
    frit_cuda_gemm *m = &l->gemm;
    frit_cuda_gemm_small small = {.rows = rows, .k = p->k, .is_gated = m->bounds != 0};
    const bool is_fixed = l->x[1].where == FRIT_CUDA_FIXED;
    const uint64_t weights[FRIT_GPU_SEGMENTS] = {is_fixed ? l->x[1].at : 0, is_fixed ? l->x[4].at : 0};
    frit_cuda_kernel kernel;
    memcpy(small.segments, p->segments, sizeof small.segments);
    *is_added = frit_cuda_autotune_gemm_small(d, &small, weights) != FRIT_CUDA_BY_BLAS &&
                frit_cuda_gemm_small_kernel(&small, &d->gpu, &kernel) == FRIT_OK;
    if (!*is_added) return FRIT_OK;
    const frit_cuda_gemm_variant variant = {
        .rows = rows, .n_parts = small.splits, .block_rows = rows, .is_gated = small.is_gated};
    return add_variant(d, m, &variant, &kernel, max_rows, n_bytes);
}

static frit_status add_wgmma(frit_cuda_device *d, const frit_cuda_products *p, int rows, int64_t max_rows,
                             frit_cuda_launch *l, uint64_t *n_bytes)
{
    frit_cuda_gemm *m = &l->gemm;
    enum { MANY = 2048 };   // more rows have the same kernel
    frit_cuda_gemm_wgmma wgmma = {.n_rows = rows < MANY ? rows : MANY, .k = p->k, .is_gated = m->bounds != 0};
    frit_cuda_kernel kernel;
    memcpy(wgmma.segments, p->segments, sizeof wgmma.segments);
    FRIT_TRY(frit_cuda_gemm_wgmma_kernel(&wgmma, &d->gpu, &kernel));
    kernel.grid[0] = frit_cuda_gemm_wgmma_blocks(&wgmma, wgmma.rows);
    const frit_cuda_gemm_variant variant = {
        .rows = rows, .n_parts = wgmma.splits, .block_rows = wgmma.rows, .is_gated = wgmma.is_gated};
    return add_variant(d, m, &variant, &kernel, max_rows, n_bytes);
}

static frit_status add_fp8(frit_cuda_device *d, const frit_cuda_products *p, int rows, int64_t max_rows,
                           frit_cuda_launch *l, uint64_t *n_bytes)
{
    frit_cuda_gemm *m = &l->gemm;
    enum { MANY = 2048 };   // more rows have the same kernel
    frit_cuda_gemm_fp8 fp8 = {.n_rows = rows < MANY ? rows : MANY, .k = p->k, .is_gated = m->bounds != 0};
    frit_cuda_kernel kernel;
    memcpy(fp8.segments, p->segments, sizeof fp8.segments);
    FRIT_TRY(frit_cuda_gemm_fp8_kernel(&fp8, &d->gpu, &kernel));
    kernel.grid[0] = frit_cuda_gemm_fp8_blocks(&fp8, fp8.rows);
    const frit_cuda_gemm_variant variant = {
        .rows = rows, .n_parts = fp8.splits, .block_rows = fp8.rows, .is_gated = fp8.is_gated, .is_fp8 = true};
    return add_variant(d, m, &variant, &kernel, max_rows, n_bytes);
}

// Adds kernels that multiply tiles, for up to max_rows rows. *n_bytes: the memory of their results.
static frit_status add_variants(frit_cuda_device *d, const frit_cuda_products *p, int64_t max_rows, frit_cuda_launch *l,
                                uint64_t *n_bytes)
{
    static const int small[] = {16, 32, 64, FRIT_CUDA_GEMM_SMALL_ROWS},
                     wgmma[] = {32, 64, 96, 128, 192, 256, 384, 512, 1024, INT32_MAX};
    const bool is_wgmma = frit_cuda_gemm_is_wgmma(&d->gpu, p->k);
    const size_t n_small = is_wgmma ? 1 : FRIT_COUNT(small);
    bool is_added = true;
    for (size_t i = 0; i < n_small && is_added; i++) {
        FRIT_TRY(add_small(d, p, small[i], max_rows, l, n_bytes, &is_added));
        if (small[i] >= max_rows) return FRIT_OK;
    }
    for (size_t i = 0; is_wgmma && i < FRIT_COUNT(wgmma); i++) {
        FRIT_TRY((l->gemm.quantize ? add_fp8 : add_wgmma)(d, p, wgmma[i], max_rows, l, n_bytes));
        if (wgmma[i] >= max_rows) return FRIT_OK;
    }
    return FRIT_OK;
}

// Chooses the kernel that finishes the results.
static frit_status take_finish(frit_exec *exec, const frit_node *result, frit_cuda_gemm *m)
{
    if (!result) return FRIT_OK;
    frit_cuda_kernel gate;
    const bool feeds = m->is_gated && result->op == FRIT_OP_GLU && frit_cuda_feeds_gemm(exec, result);
    if (!feeds || frit_cuda_gate_kernel((int)frit_cuda_width(result), &gate) != FRIT_OK)
        return frit_cuda_kernel_get_named(exec, "gemm.cu", "finish_rows", THREADS, 0, &m->finish);
    exec->is_f16_input[result->id] = true;
    m->gated = frit_cuda_f16_input_of(exec, result);
    return frit_cuda_kernel_get(exec->device, &gate, &m->gate);
}

// Adds the kernel that measures the weights of gates and values, from which gated kernels bound their results. It needs
// the squares of input rows, and weights at a fixed address.
static frit_status take_bounds(frit_exec *exec, const frit_cuda_products *p, frit_cuda_launch *l)
{
    frit_cuda_gemm *m = &l->gemm;
    if (!m->gate || m->x.squares.where == FRIT_CUDA_NOWHERE || l->x[1].where != FRIT_CUDA_FIXED) return FRIT_OK;
    frit_cuda_kernel kernel = {
        .file = "bounds.cu", .name = "bounds", .grid = {(unsigned)p->segments[0].n_tiles, 1, 1}, .threads = 256};
    frit_cuda_define(&kernel, "TYPE0", frit_dtype_get(p->segments[0].dtype)->gguf_id);
    frit_cuda_define(&kernel, "K", p->k);
    FRIT_TRY(frit_cuda_plan_alloc(exec, 2 * sizeof(float), true, &m->bounds));
    return frit_cuda_kernel_get(exec->device, &kernel, &m->measure);
}

frit_status frit_cuda_gemm_measure(frit_exec *exec)
{
    frit_cuda_device *d = exec->device;
    for (int i = 0; i < exec->n_launches; i++) {
        const frit_cuda_launch *l = &exec->launches[i];
        if (l->run != run_gemm || !l->gemm.measure) continue;
        const frit_bounds_args args = {.tiles = l->x[1].at, .largest = l->gemm.bounds};
        FRIT_TRY(frit_cuda_kernel_launch(&d->gpu, l->gemm.measure, d->stream, &args, FRIT_CUDA_IN_ORDER));
    }
    return FRIT_OK;
}

// Multiplies once in each number of rows whose algorithm is chosen by measuring.
static frit_status tune_launch(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_gemm *m = &l->gemm;
    const frit_cuda_matmul_args args = matmul_args(l, step);
    for (int n = FRIT_CUDA_AUTOTUNE_ROWS; n <= l->node->shape[0]; n += FRIT_CUDA_AUTOTUNE_ROWS) {
        const size_t n_before = d->n_blas_plans;
        const frit_cublaslt_product *product;
        if (variant_for(m, n)) continue;
        FRIT_TRY(blas_plan(d, m->matmul, n, &args, &product));
        if (d->n_blas_plans > n_before) FRIT_TRY(frit_cuda_matmul_run(m->matmul, &d->gpu, product, &args, d->stream));
    }
    return FRIT_OK;
}

frit_status frit_cuda_gemm_tune(frit_exec *exec)
{
    frit_cuda_device *d = exec->device;
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.context_use(d->gpu.context), "using a GPU"));
    FRIT_TRY(frit_cuda_scratch_reserve(d, exec->plan->scratch_bytes));
    FRIT_TRY(frit_cuda_work_reserve(d, exec->work_bytes));
    const frit_cuda_step step = {.scratch = d->scratch.address, .work = d->work, .inputs = exec->inputs.address};
    for (int i = 0; i < exec->n_launches; i++) {
        const frit_cuda_launch *l = &exec->launches[i];
        const bool is_streamed = l->x[1].where == FRIT_CUDA_STREAMED || l->x[4].where == FRIT_CUDA_STREAMED;
        if (l->run == run_gemm && !l->gemm.precise && !is_streamed) FRIT_TRY(tune_launch(d, l, &step));
    }
    return FRIT_OK;
}

static frit_status lay_out_work(frit_exec *exec, const frit_cuda_products *p, int64_t max_rows, frit_cuda_launch *l)
{
    frit_cuda_gemm *m = &l->gemm;
    const uint64_t n_rows = (uint64_t)max_rows;
    uint64_t at = 0, product_bytes = n_rows * (uint64_t)m->n * sizeof(float);
    if (exec->device->has_fp8_inputs && frit_cuda_gemm_is_fp8(&exec->device->gpu, p->k, p->segments))
        FRIT_TRY(frit_cuda_kernel_get_named(exec, "quantize_rows.cu", "quantize_rows", THREADS, 0, &m->quantize));
    FRIT_TRY(add_variants(exec->device, p, max_rows, l, &product_bytes));
    if (m->quantize) {
        const uint64_t x_rows = (uint64_t)x_rows_of(max_rows);
        m->codes = take_work(&at, x_rows * (uint64_t)m->k);
        m->code_scales = take_work(&at, x_rows * (uint64_t)(m->k / 128) * sizeof(float));
    }
    if (m->matmul) m->workspace = take_work(&at, FRIT_CUBLASLT_WORKSPACE_BYTES);
    if (m->convert) {
        m->x.rows = (frit_cuda_address){FRIT_CUDA_WORK,
                                        take_work(&at, frit_cuda_f16_input_bytes(exec->device, m->k, max_rows))};
        m->x.scales = (frit_cuda_address){FRIT_CUDA_WORK, take_work(&at, n_rows * sizeof(float))};
    }
    if (m->matmul) m->weights = take_work(&at, frit_cuda_matmul_scratch(m->matmul));
    m->product = take_work(&at, product_bytes);
    if (at > exec->work_bytes) exec->work_bytes = at;
    return FRIT_OK;
}

static frit_status lower_precise(frit_exec *exec, const frit_cuda_products *p, int64_t max_rows,
                                 const frit_node *result, frit_cuda_gemm *m)
{
    const uint64_t n_bytes = (uint64_t)max_rows * (uint64_t)m->n * sizeof(float);
    frit_cuda_kernel kernel;
    FRIT_TRY(frit_cuda_precise_kernel(p->segments[0].dtype, p->k, p->segments[0].n_tiles, &kernel));
    FRIT_TRY(frit_cuda_kernel_get(exec->device, &kernel, &m->precise));
    if (n_bytes > exec->work_bytes) exec->work_bytes = n_bytes;
    return take_finish(exec, result, m);
}

static frit_status take_matmul(frit_exec *exec, frit_cuda_matmul *matmul, frit_cuda_gemm *m)
{
    FRIT_TRY(frit_cuda_matmul_describe(matmul));
    FRIT_TRY(new_matmul(exec, matmul, &m->matmul));
    for (int i = 0; i < matmul->n_kernels; i++)
        FRIT_TRY(frit_cuda_kernel_get(exec->device, &matmul->dequantize[i], &m->matmul->shared[i]));
    return FRIT_OK;
}

frit_status frit_cuda_lower_gemm(frit_exec *exec, const frit_cuda_products *p, int64_t max_rows,
                                 const frit_node *result, frit_cuda_launch *l)
{
    frit_cuda_gemm *m = &l->gemm;
    const frit_node *x = frit_node_storage(p->node->src[0]);
    frit_cuda_matmul matmul = {.k = p->k, .in = FRIT_CUDA_F16, .out = FRIT_CUDA_F32};
    memcpy(matmul.segments, p->segments, sizeof matmul.segments);
    l->run = run_gemm;
    *m = (frit_cuda_gemm){
        .k = p->k, .n = (int)n_tiles_of(&matmul) * FRIT_TILE_ROWS, .is_gated = p->epilogue == FRIT_GPU_GLU};
    if (exec->is_precise) return lower_precise(exec, p, max_rows, result, m);
    if (!frit_cuda_gemm_is_wgmma(&exec->device->gpu, p->k)) FRIT_TRY(take_matmul(exec, &matmul, m));
    if (exec->is_f16_input[x->id])
        m->x = frit_cuda_f16_input_of(exec, x);
    else
        FRIT_TRY(frit_cuda_kernel_get_named(exec, "gemm.cu", "convert_rows", THREADS, 0, &m->convert));
    FRIT_TRY(take_finish(exec, result, m));
    FRIT_TRY(take_bounds(exec, p, l));
    return lay_out_work(exec, p, max_rows, l);
}

bool frit_cuda_gemm_can_norm(const frit_cuda_launch *l, const frit_node *norm)
{
    return l->run == run_gemm && l->gemm.finish && !l->gemm.is_gated && !l->gemm.norm.kernel &&
           l->x[3].where == FRIT_CUDA_SCRATCH && l->node == frit_node_storage(norm->src[0]) &&
           l->node->rows == norm->rows;
}

// SPDX-License-Identifier: MIT
// Launches of product.h: kernels for 1, 2, 4, 8 and 16 rows, of which a step uses the smallest that is large enough. A
// deterministic device has one kernel, for up to 8 rows, because kernels for other numbers of rows add in other orders.
#include "backend/cuda/ops/gemv.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/linear.h"

#include <string.h>

enum { MOST_ROWS = 16, ONLY_ROWS = 8 };

static frit_cuda_product describe_product(const frit_cuda_products *p, int n_rows)
{
    frit_cuda_product product = {
        .rows = n_rows, .k = p->k, .n = p->n, .is_normed = p->norm, .epilogue = p->epilogue, .heads = p->heads};
    memcpy(product.segments, p->segments, sizeof product.segments);
    return product;
}

bool frit_cuda_can_gemv(const frit_exec *exec, const frit_cuda_products *p, int64_t n_rows)
{
    frit_cuda_kernel kernel;
    const frit_cuda_product product = describe_product(p, exec->device->is_deterministic ? 1 : (int)n_rows);
    return frit_cuda_product_kernel(&product, &exec->device->gpu, &kernel) == FRIT_OK;
}

static frit_status add_variant(frit_exec *exec, const frit_cuda_products *p, int n_rows, frit_cuda_gemv_variant *v)
{
    const frit_cuda_product product = describe_product(p, n_rows);
    const uint64_t n_bytes = frit_cuda_product_partial_bytes(&product, &exec->device->gpu);
    frit_cuda_kernel kernel;
    FRIT_TRY(frit_cuda_product_kernel(&product, &exec->device->gpu, &kernel));
    if (n_bytes > exec->work_bytes) exec->work_bytes = n_bytes;
    v->rows = n_rows;
    return frit_cuda_kernel_get(exec->device, &kernel, &v->kernel);
}

// Adds the kernel for the most rows that shared memory has room for.
static frit_status add_only_variant(frit_exec *exec, const frit_cuda_products *p, frit_cuda_gemv *gemv)
{
    frit_status status = FRIT_E_UNSUPPORTED;
    for (int n_rows = ONLY_ROWS; n_rows > 0 && status == FRIT_E_UNSUPPORTED; n_rows /= 2)
        status = add_variant(exec, p, n_rows, &gemv->variants[0]);
    gemv->n_variants = 1;
    return status;
}

static const frit_cuda_gemv_variant *variant_for(const frit_cuda_gemv *gemv, int64_t n_rows)
{
    int i = 0;
    while (i + 1 < gemv->n_variants && gemv->variants[i].rows < n_rows) i++;
    return &gemv->variants[i];
}

// One launch, for n_rows rows from `row` on.
static frit_status run_variant(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step,
                               const frit_cuda_gemv_variant *v, int64_t row, int64_t n_rows)
{
    const frit_cuda_gemv *gemv = &l->gemv;
    const uint64_t residual = frit_cuda_resolve(step, l->x[3]), r = (uint64_t)row;
    const uint64_t row_bytes = gemv->row_bytes ? (uint64_t)gemv->row_bytes : (uint64_t)gemv->n * sizeof(float);
    const frit_product_args args = {.weights = {frit_cuda_resolve(step, l->x[1]), frit_cuda_resolve(step, l->x[4])},
                                    .x = frit_cuda_resolve(step, l->x[0]) + r * (uint64_t)gemv->k * sizeof(float),
                                    .norm = frit_cuda_resolve(step, l->x[2]),
                                    .residual = residual ? residual + r * row_bytes : 0,
                                    .out = frit_cuda_resolve(step, l->y) + r * row_bytes,
                                    .rope =
                                        frit_cuda_resolve(step, l->x[5]) + r * (uint64_t)gemv->rotated * sizeof(float),
                                    .positions = step->arrays[FRIT_CUDA_POSITIONS] + r * sizeof(int32_t),
                                    .seq_of = step->arrays[FRIT_CUDA_SEQ_OF] + r * sizeof(int32_t),
                                    .pages = frit_cuda_pages_of(l, step),
                                    .keys = gemv->keys,
                                    .values = gemv->values,
                                    .partial = step->work,
                                    .arrived = gemv->arrived,
                                    .epsilon = gemv->epsilon,
                                    .query_scale = gemv->query_scale,
                                    .n_rows = (int)n_rows,
                                    .page_stride = step->page_stride};
    frit_cuda_kernel one = *v->kernel;
    one.grid[1] = (unsigned)((n_rows + v->rows - 1) / v->rows);
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

// One launch for each 16 rows, or 8. Products with f32 weights compute all full groups in one launch (product.cu).
static frit_status run_gemv(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    for (int64_t row = 0, now; row < n_rows; row += now) {
        const frit_cuda_gemv_variant *v = variant_for(&l->gemv, n_rows - row);
        now = n_rows - row < v->rows ? n_rows - row : v->rows;
        if (l->gemv.takes_all_rows && now == v->rows) now = (n_rows - row) / v->rows * v->rows;
        FRIT_TRY(run_variant(d, l, step, v, row, now));
    }
    return FRIT_OK;
}

// Counters of blocks that have arrived. All gemvs of the plan share them, because they run one after the other.
static frit_status get_counters(frit_exec *exec, uint64_t *counters)
{
    const uint64_t n_bytes = (uint64_t)exec->device->gpu.n_multiprocessors * sizeof(uint32_t);
    if (!exec->counters) FRIT_TRY(frit_cuda_plan_alloc(exec, n_bytes, true, &exec->counters));
    *counters = exec->counters;
    return FRIT_OK;
}

frit_status frit_cuda_lower_gemv(frit_exec *exec, const frit_cuda_products *p, int64_t max_rows, frit_cuda_launch *l)
{
    l->run = run_gemv;
    l->gemv = (frit_cuda_gemv){.takes_all_rows = p->segments[0].dtype == FRIT_DTYPE_F32 && p->epilogue != FRIT_GPU_QKV,
                               .k = p->k,
                               .n = p->epilogue == FRIT_GPU_GLU ? p->n / 2 : p->n,
                               .epsilon = p->norm ? p->norm->eps : 0};
    FRIT_TRY(get_counters(exec, &l->gemv.arrived));
    if (exec->device->is_deterministic) return add_only_variant(exec, p, &l->gemv);
    for (int n_rows = 1; l->gemv.n_variants < FRIT_CUDA_GEMV_VARIANTS; n_rows *= 2) {
        const frit_status status = add_variant(exec, p, n_rows, &l->gemv.variants[l->gemv.n_variants]);
        if (status == FRIT_E_UNSUPPORTED && n_rows > 1) return FRIT_OK;   // shared memory is too small for more rows
        FRIT_TRY(status);
        l->gemv.n_variants++;
        if (n_rows >= max_rows || n_rows >= MOST_ROWS) return FRIT_OK;
    }
    return FRIT_OK;
}

// SPDX-License-Identifier: MIT
// Products and what they run with: a norm before, a residual or a gate after. Up to 16 rows are a kernel of product.h;
// more are cuBLASLt's, or where that is not installed, products of 16 rows one after the other.
#include "backend/cuda/exec.h"
#include "backend/cuda/product.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 16, ALIGNMENT = 256, THREADS = 256, MANY_FROM = 17 };

// One or two products of the same rows, and what is done to their results.
typedef struct products {
    const frit_node *node, *second;   // LINEAR; second: the values of gates, or NULL
    const frit_node *result;          // that is kept
    const frit_node *norm;            // of their rows, computed by the product; NULL: no norm
    const frit_node *residual;        // NULL: none
} products;

static const frit_tensor *matrix_of(const frit_node *linear)
{
    return frit_node_storage(linear->src[1])->tensor;
}

bool frit_cuda_linear_fits(const frit_node *node)
{
    const frit_node *w = frit_node_storage(node->src[1]);
    return w->op == FRIT_OP_WEIGHT && w->n_dims == 2 && frit_tile_format_of(w->tensor->dtype) &&
           w->shape[1] % 32 == 0 && node->adapts == 0;
}

static bool is_plain(const frit_node *linear)
{
    return linear->op == FRIT_OP_LINEAR && frit_cuda_linear_fits(linear) && linear->factor == 0 &&
           (linear->n_src < 3 || !linear->src[2]);
}

// ------------------------------------------------------------------------------- few rows

static frit_cuda_product describe(const products *p, int n_rows)
{
    const frit_tensor *w = matrix_of(p->node);
    const int n = (int)frit_cuda_width(p->node) * (p->second ? 2 : 1);
    return (frit_cuda_product){.rows = n_rows,
                               .k = (int)w->shape[1],
                               .n = n,
                               .is_normed = p->norm,
                               .epilogue = p->second     ? FRIT_GPU_GLU
                                           : p->residual ? FRIT_GPU_ADD
                                                         : FRIT_GPU_STORE,
                               .segments = {{w->dtype, (n + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS}}};
}

// Parts after the first add to what is there.
static frit_status take_parts(const frit_exec *exec, frit_cuda_product *product, frit_cuda_few *few)
{
    few->n_parts = product->epilogue == FRIT_GPU_GLU ? 1 : frit_cuda_product_split(product, &exec->device->gpu);
    if (few->n_parts > FRIT_CUDA_PARTS)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of %d columns", product->stride);
    few->rows = product->rows;
    few->k = product->k;
    for (int part = 0; part < few->n_parts; part++) {
        frit_cuda_kernel kernel;
        if (part > 0) product->epilogue = FRIT_GPU_ADD;
        FRIT_TRY(frit_cuda_product_kernel(product, &exec->device->gpu, &kernel));
        FRIT_TRY(frit_cuda_kernel_take(exec->device, &kernel, &few->parts[part]));
    }
    return FRIT_OK;
}

static frit_status run_few(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_few *few = &l->few;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    const uint64_t x = frit_cuda_resolve(step, l->x[0]), tiles = frit_cuda_resolve(step, l->x[1]);
    const uint64_t residual = frit_cuda_resolve(step, l->x[3]), y = frit_cuda_resolve(step, l->y);
    for (int64_t row = 0; row < n_rows; row += few->rows)
        for (int part = 0; part < few->n_parts; part++) {
            const uint64_t column = (uint64_t)(part * few->k), at = (uint64_t)(row * few->n) * sizeof(float);
            const frit_product_args args = {.weights = {tiles + column / FRIT_TILE_COLUMNS * (uint64_t)few->tile_bytes},
                                            .x = x + ((uint64_t)(row * few->whole) + column) * sizeof(float),
                                            .norm = frit_cuda_resolve(step, l->x[2]),
                                            .residual = part == 0 && residual ? residual + at : 0,
                                            .out = y + at,
                                            .epsilon = few->epsilon};
            FRIT_TRY(frit_cuda_kernel_launch(&d->gpu, few->parts[part], d->stream, &args, FRIT_CUDA_OVERLAPPING));
        }
    return FRIT_OK;
}

// As many rows at a time as shared memory has room for.
static frit_status lower_few(frit_exec *exec, const products *p, frit_cuda_launch *l)
{
    const int64_t most = p->node->shape[0] < MOST_ROWS ? p->node->shape[0] : MOST_ROWS;
    frit_status status = FRIT_OK;
    l->run = run_few;
    l->few = (frit_cuda_few){.whole = (int)matrix_of(p->node)->shape[1],
                             .n = (int)frit_cuda_width(p->result),
                             .tile_bytes = frit_tile_format_of(matrix_of(p->node)->dtype)->tile_bytes,
                             .epsilon = p->norm ? p->norm->eps : 0};
    for (int n_rows = (int)most; n_rows > 0; n_rows /= 2) {
        frit_cuda_product product = describe(p, n_rows);
        status = take_parts(exec, &product, &l->few);
        if (status != FRIT_E_UNSUPPORTED) return status;
    }
    return status;
}

static bool can_norm(const frit_exec *exec, const products *p)
{
    frit_cuda_kernel kernel;
    const frit_cuda_product product = describe(p, (int)p->node->shape[0]);
    return frit_cuda_product_kernel(&product, &exec->device->gpu, &kernel) == FRIT_OK;
}

// ------------------------------------------------------------------------------- many rows

static frit_status blas_plan(frit_cuda_device *d, const frit_cuda_matmul *matmul, int n_rows,
                             const frit_cublaslt_product **out)
{
    enum { MOST = 256 };
    const frit_cublaslt_shape shape = {.n_tokens = n_rows,
                                       .n_rows = matmul->segments[0].n_tiles * FRIT_TILE_ROWS,
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
    FRIT_TRY(frit_cuda_matmul_prepare(matmul, &d->blas, n_rows, &plan->product));
    plan->shape = shape;
    d->n_blas_plans++;
    *out = &plan->product;
    return FRIT_OK;
}

static frit_status run_many(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_many *m = &l->many;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch), width = frit_cuda_width(l->node);
    const frit_cublaslt_product *product;
    if (n_rows == 0) return FRIT_OK;
    FRIT_TRY(blas_plan(d, m->matmul, (int)n_rows, &product));
    const frit_convert_args convert = {.x = frit_cuda_resolve(step, l->x[0]),
                                       .y = step->work + m->converted,
                                       .scales = step->work + m->scales,
                                       .n = n_rows,
                                       .width = m->k};
    FRIT_TRY(frit_cuda_run_kernel(d, m->convert, (unsigned)(n_rows + 7) / 8, 1, &convert));
    const frit_cuda_matmul_args args = {.weights = {frit_cuda_resolve(step, l->x[1])},
                                        .x = convert.y,
                                        .y = step->work + m->product,
                                        .scratch = step->work + m->weights,
                                        .workspace = step->work + m->workspace};
    FRIT_TRY(frit_cuda_matmul_run(m->matmul, &d->gpu, product, &args, d->stream));
    const frit_finish_args finish = {.x = args.y,
                                     .scales = convert.scales,
                                     .residual = frit_cuda_resolve(step, l->x[3]),
                                     .y = frit_cuda_resolve(step, l->y),
                                     .n = n_rows * width,
                                     .width = (int)width,
                                     .stride = m->n,
                                     .is_gated = m->n_products == 2};
    return frit_cuda_run_kernel(d, m->finish, (unsigned)((finish.n + THREADS - 1) / THREADS), 1, &finish);
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

static frit_status take_plain(frit_cuda_device *d, const char *name, frit_cuda_kernel **out)
{
    const frit_cuda_kernel wanted = {.file = "many_rows.cu", .name = name, .grid = {1, 1, 1}, .threads = THREADS};
    return frit_cuda_kernel_take(d, &wanted, out);
}

static frit_status lower_many(frit_exec *exec, const products *p, frit_cuda_launch *l)
{
    frit_cuda_device *d = exec->device;
    frit_cuda_many *m = &l->many;
    const frit_tensor *w = matrix_of(p->node);
    const int n = (int)frit_cuda_width(p->node) * (p->second ? 2 : 1),
              n_tiles = (n + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS;
    const uint64_t n_rows = (uint64_t)p->node->shape[0];
    frit_cuda_matmul matmul = {
        .k = (int)w->shape[1], .in = FRIT_CUDA_F16, .out = FRIT_CUDA_F32, .segments = {{w->dtype, n_tiles}}};
    frit_cuda_kernel *dequantize;
    l->run = run_many;
    *m = (frit_cuda_many){.k = matmul.k, .n = n_tiles * FRIT_TILE_ROWS, .n_products = p->second ? 2 : 1};
    FRIT_TRY(frit_cuda_matmul_describe(&matmul));
    FRIT_TRY(new_matmul(exec, &matmul, &m->matmul));
    FRIT_TRY(frit_cuda_kernel_take(d, &matmul.dequantize[0], &dequantize));
    m->matmul->shared = dequantize;
    FRIT_TRY(take_plain(d, "convert_rows", &m->convert));
    FRIT_TRY(take_plain(d, "finish_rows", &m->finish));
    uint64_t at = 0;
    m->workspace = take_work(&at, FRIT_CUBLASLT_WORKSPACE_BYTES);
    m->converted = take_work(&at, n_rows * (uint64_t)m->k * 2);
    m->scales = take_work(&at, n_rows * sizeof(float));
    m->weights = take_work(&at, frit_cuda_matmul_scratch(&matmul));
    m->product = take_work(&at, n_rows * (uint64_t)m->n * sizeof(float));
    if (at > exec->work_bytes) exec->work_bytes = at;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- lowering

static frit_status lower_products(frit_exec *exec, const products *p)
{
    frit_cuda_launch *l;
    const frit_node *x = p->norm ? p->norm->src[0] : p->node->src[0];
    FRIT_TRY(frit_cuda_launch_new(exec, p->result, &l));
    FRIT_TRY(frit_cuda_address_of(exec, x, false, &l->x[0]));
    l->x[1].where = FRIT_CUDA_FIXED;
    FRIT_TRY(frit_cuda_tensor_take(exec->device, matrix_of(p->node), p->second ? matrix_of(p->second) : NULL, true,
                                   &l->x[1].at));
    if (p->norm) FRIT_TRY(frit_cuda_address_of(exec, p->norm->src[1], false, &l->x[2]));
    if (p->residual) FRIT_TRY(frit_cuda_address_of(exec, p->residual, false, &l->x[3]));
    FRIT_TRY(frit_cuda_address_of(exec, p->result, false, &l->y));
    const bool is_prefill = p->node->shape[0] >= MANY_FROM && exec->device->blas.library;
    return is_prefill ? lower_many(exec, p, l) : lower_few(exec, p, l);
}

// Factor and bias of a product, on the results.
static frit_status lower_rest(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    if (node->factor != 0) {
        FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_scale", &l));
        l->x[0] = l->y;
        l->plain.factor[0] = node->factor;
    }
    if (node->n_src < 3 || !node->src[2]) return FRIT_OK;
    FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_add", &l));
    l->x[0] = l->y;
    l->x[1] = l->x[2];
    l->plain.size[0] = (int)frit_cuda_width(node);
    return FRIT_OK;
}

frit_status frit_cuda_lower_linear(frit_exec *exec, const frit_node *node)
{
    FRIT_TRY(lower_products(exec, &(products){.node = node, .result = node}));
    return lower_rest(exec, node);
}

static const frit_node *other_source(const frit_node *pair, const frit_node *one)
{
    return pair->src[0] == one ? pair->src[1] : pair->src[0];
}

// The last node adds something to the chain's results so far.
static frit_status add_more(frit_exec *exec, const frit_node *result, const frit_node *more)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, result, "plain_add", &l));
    l->x[0] = l->y;
    FRIT_TRY(frit_cuda_address_of(exec, more, false, &l->x[1]));
    l->plain.size[0] = INT32_MAX;
    return FRIT_OK;
}

static frit_status lower_chain(frit_exec *exec, const frit_chain *chain, const frit_node *norm)
{
    const frit_node *first = chain->nodes[0];
    if (first->op != FRIT_OP_LINEAR || (chain->n_nodes == 1 && !is_plain(first))) return frit_cuda_lower(exec, first);
    products p = {.node = first, .result = frit_chain_result(chain)};
    if (norm && first->src[0] == norm) p.norm = norm;
    int next = 1;
    if (chain->n_products == 2) {
        const frit_node *glu = chain->nodes[2];
        p.node = glu->src[0];
        p.second = glu->src[1];
        next = 3;
    } else if (chain->n_nodes > 1) {
        p.residual = other_source(chain->nodes[1], first);
        next = 2;
    }
    FRIT_TRY(lower_products(exec, &p));
    for (; next < chain->n_nodes; next++)
        FRIT_TRY(add_more(exec, p.result, other_source(chain->nodes[next], chain->nodes[next - 1])));
    return FRIT_OK;
}

// The norm of a phase that its products compute for themselves; NULL: no norm.
static const frit_node *folded_norm(const frit_exec *exec, const frit_phase *phase)
{
    if (phase->n_prologue != 1 || phase->prologue[0].n_nodes != 1) return NULL;
    const frit_node *norm = phase->prologue[0].nodes[0];
    if (norm->op != FRIT_OP_RMS_NORM || norm->n_src < 2 || norm->n_dims != 2 || norm->shape[0] > MOST_ROWS) return NULL;
    for (int i = 0; i < phase->n_products; i++) {
        const frit_chain *chain = &phase->products[i];
        const products p = {
            .node = chain->nodes[0], .second = chain->n_products == 2 ? chain->nodes[1] : NULL, .norm = norm};
        for (int k = 0; k < chain->n_products; k++)
            if (!is_plain(chain->nodes[k]) || chain->nodes[k]->src[0] != norm) return NULL;
        if (!can_norm(exec, &p)) return NULL;
    }
    return norm;
}

frit_status frit_cuda_lower_phase(frit_exec *exec, const frit_phase *phase)
{
    const frit_node *norm = folded_norm(exec, phase);
    for (int i = 0; i < phase->n_prologue && !norm; i++) FRIT_TRY(lower_chain(exec, &phase->prologue[i], NULL));
    for (int i = 0; i < phase->n_products; i++) FRIT_TRY(lower_chain(exec, &phase->products[i], norm));
    for (int i = 0; i < phase->n_epilogue; i++) FRIT_TRY(lower_chain(exec, &phase->epilogue[i], NULL));
    return FRIT_OK;
}

static bool is_residual(const frit_node *add)
{
    const frit_node *a = add->src[0], *b = add->src[1];
    return a->n_dims == b->n_dims && a->rows == b->rows && a->shape[a->n_dims - 1] == b->shape[b->n_dims - 1];
}

bool frit_cuda_takes(const void *device, frit_join join, const frit_node *node, const frit_node *other)
{
    (void)device;
    if (join == FRIT_JOIN_PROLOGUE) return node->op == FRIT_OP_RMS_NORM && node->n_src > 1 && is_plain(other);
    if (join != FRIT_JOIN_ELEMENTS || !is_plain(other)) return false;
    if (node->op == FRIT_OP_ADD) return is_residual(node);
    return node->op == FRIT_OP_GLU && node->act == FRIT_ACT_SILU && is_plain(node->src[0]) && is_plain(node->src[1]) &&
           matrix_of(node->src[0])->dtype == matrix_of(node->src[1])->dtype && frit_cuda_width(node) % 8 == 0;
}

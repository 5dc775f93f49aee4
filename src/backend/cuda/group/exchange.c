// SPDX-License-Identifier: MIT
// Launches of exchanges. All ranks have the same plan, so they launch the same exchanges in the same order.
#include "backend/cuda/group/exchange.h"
#include "backend/cuda/launch.h"

#include <string.h>

enum {
    UNIT = FRIT_GPU_EXCHANGE_UNIT,
    THREADS = UNIT / 4,
    MOST_UNITS = FRIT_GPU_EXCHANGE_UNITS,
    MOST_SMALL = UNIT * FRIT_GPU_EXCHANGE_SMALL
};

static_assert((int)FRIT_GPU_MOST_RANKS == (int)FRIT_MEETING_MAX, "arguments of kernels name the buffers of all ranks");

frit_status frit_cuda_join(frit_device *base, const frit_rank *rank)
{
    frit_cuda_device *d = (frit_cuda_device *)base;
    FRIT_TRY(frit_cuda_check(&d->driver, d->driver.context_use(d->gpu.context), "using a GPU"));
    return frit_cuda_peers_open(&d->peers, &d->gpu, rank);
}

// Batches are the first dimension, which is never cut.
bool frit_cuda_exchange_fits(const frit_node *node)
{
    return node->rows != FRIT_SHAPE_FIXED && (node->op == FRIT_OP_REDUCE || node->ranks.axis > 0);
}

// Neighbours of a row that are of one part: numbers of the part from dimension axis on.
static int64_t inner_of(const frit_node *part, int axis)
{
    int64_t n = 1;
    for (int i = axis; i < part->n_dims; i++) n *= part->shape[i];
    return n;
}

// Chooses the size of pieces: small ones go to many blocks of threads, large ones cost fewer flags. Returns the number
// of blocks.
static unsigned take_pieces(frit_exchange_args *args, bool is_packed)
{
    const int64_t n_units = (args->n + UNIT - 1) / UNIT, most = FRIT_GPU_EXCHANGE_BLOCKS;
    args->n_units = (int)((n_units + most - 1) / most);
    if (args->n_units > MOST_UNITS * (is_packed ? 2 : 1)) args->n_units = MOST_UNITS * (is_packed ? 2 : 1);
    const int64_t n_pieces = (n_units + args->n_units - 1) / args->n_units;
    return (unsigned)(n_pieces < most ? n_pieces : most);
}

static frit_status run_exchange(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_node *node = l->node, *part = node->op == FRIT_OP_PART ? node : node->src[0];
    frit_exchange_args args = {.x = frit_cuda_resolve(step, l->x[0]),
                               .y = frit_cuda_resolve(step, l->y),
                               .residual = frit_cuda_resolve(step, l->x[1]),
                               .n = frit_cuda_rows(node, step->batch) * frit_cuda_row_elems(part),
                               .inner = node->op == FRIT_OP_REDUCE ? 1 : inner_of(part, node->ranks.axis),
                               .rank = d->peers.rank.rank,
                               .n_parts = node->ranks.n_parts};
    if (args.n == 0) return FRIT_OK;
    memcpy(args.buffers, d->peers.buffers, sizeof args.buffers);
    const bool is_small = node->op == FRIT_OP_REDUCE && args.n <= MOST_SMALL;
    frit_cuda_kernel one = is_small ? *l->exchange_small : *l->kernel;
    one.grid[0] = is_small                   ? (unsigned)((args.n + UNIT - 1) / UNIT)
                  : node->op == FRIT_OP_PART ? (unsigned)((args.n + THREADS - 1) / THREADS)
                                             : take_pieces(&args, node->op == FRIT_OP_REDUCE && !d->is_deterministic);
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

static frit_status add_exchange(frit_exec *exec, const frit_node *node, const frit_node *result, frit_cuda_launch **out)
{
    frit_cuda_kernel kernel = {.file = "exchange.cu",
                               .name = node->op == FRIT_OP_REDUCE   ? "exchange_reduce"
                                       : node->op == FRIT_OP_GATHER ? "exchange_gather"
                                                                    : "exchange_part",
                               .grid = {1, 1, 1},
                               .threads = THREADS};
    frit_cuda_define(&kernel, "RANKS", exec->device->peers.rank.n);
    frit_cuda_define(&kernel, "PACKED", !exec->device->is_deterministic);
    FRIT_TRY(frit_cuda_launch_new(exec, node, out));
    frit_cuda_launch *l = *out;
    FRIT_TRY(frit_cuda_address_of(exec, node->src[0], false, &l->x[0]));
    l->y = (frit_cuda_address){FRIT_CUDA_SCRATCH, exec->plan->offsets[frit_node_storage(result)->id]};
    l->run = run_exchange;
    if (node->op == FRIT_OP_REDUCE) {
        frit_cuda_kernel small = kernel;
        small.name = "exchange_small";
        FRIT_TRY(frit_cuda_kernel_get(exec->device, &small, &l->exchange_small));
    }
    return frit_cuda_kernel_get(exec->device, &kernel, &l->kernel);
}

frit_status frit_cuda_lower_exchange(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    return add_exchange(exec, node, node, &l);
}

frit_status frit_cuda_lower_reduce(frit_exec *exec, const frit_node *reduce, const frit_node *sum,
                                   const frit_node *residual)
{
    frit_cuda_launch *l;
    FRIT_TRY(add_exchange(exec, reduce, sum, &l));
    return frit_cuda_address_of(exec, residual, false, &l->x[1]);
}

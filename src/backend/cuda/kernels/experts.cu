// SPDX-License-Identifier: MIT
// Products with matrices of experts: a phase (phase.cuh) with the tiles of the expert that a block of threads serves,
// which it reads from the route.
//
//     ROWS 1         blockIdx.y is an assignment: an expert of a row
//     ROWS 2 ...     blockIdx.y is a part of a group of assignments of one expert (dispatch.cu); a group has PARTS
// parts
//     MIX            blockIdx.y is a row: computes the weighted sum over its experts, as one product whose matrix has
// the
//                    columns of all of the row's experts side by side
//     BY_HEADS       heads instead of experts: each row has all N_USED heads; blockIdx.y is a head of a row, or of ROWS
//                    rows
//
// Defined by the host (experts.c): the defines of product.cu, BY_HEADS, N_USED, PART_K (columns of an expert), PARTS,
// MIX, OWN_ROWS (the input has a row for each assignment), WEIGHED (input rows are multiplied by the weight of the
// route), GLU_ACT. Shared memory has N_USED + 1 addresses after SHARED_BYTES.
#include "phase.cuh"

static_assert(SHARED_BYTES >= shared_end, "the host counts shared memory as it is laid out here");
static_assert(!MIX || ROWS == 1, "a sum over experts is of one row");

#define PART_BLOCKS BLOCKS_OF(PART_K)

// The product's argument `positions` has the assignments of a group, or the first assignment of a head; `seq_of` has
// the route.
struct the_phase {
    static const int k = K, n = MATRIX_ROWS, stride = STRIDE, type0 = TYPE0, tiles0 = TILES0, type1 = TYPE0, tiles1 = 0,
                     epilogue = EPILOGUE;
    static const bool norm = false;

    static DEVICE int assignment(const frit_product_args &a, int column)
    {
        if (BY_HEADS && ROWS > 1) return (int)a.positions + column * N_USED;
        return ROWS == 1 ? 0 : __ldcg((const int *)a.positions + column);
    }
    static DEVICE eight load(const frit_product_args &a, int row, int column)
    {
        const int i = assignment(a, row), part = MIX ? column / (PART_BLOCKS * 256) : 0;
        const long long from = MIX ? part : OWN_ROWS ? i : i / N_USED;
        eight e = load_eight<PART_K>((const float *)a.x + from * PART_K, column - part * PART_BLOCKS * 256);
        if (WEIGHED) {
            const int at = MIX ? part : i / N_USED * 2 * N_USED + i % N_USED;
            const float weight = __ldcg((const float *)a.seq_of + N_USED + at);
#pragma unroll
            for (int j = 0; j < 8; j++) e.v[j] *= weight;
        }
        return e;
    }
    static DEVICE long long result(const frit_product_args &a, int column)
    {
        return assignment(a, column);
    }
};

struct matrices {
    u64 weights;
    const u64 *parts;   // MIX: the tiles of each expert of the row
    bool is_done;
    DEVICE bool next(matrix &m)
    {
        if (is_done) return false;
        m.bytes = tile_of<TYPE0>::bytes;
        m.blocks = BLOCKS_OF(K);
        m.stride = PART_BLOCKS;
        m.end = TILES0;
        m.weights = weights;
        m.is_new = is_done = true;
        return true;
    }
    DEVICE void locate(ring &r) const
    {
        const u64 from = MIX ? parts[r.block / PART_BLOCKS] : weights;
        r.from = (const char *)from + ((long long)r.tile * PART_BLOCKS + r.block % PART_BLOCKS) * tile_of<TYPE0>::bytes;
    }
    DEVICE void advance(ring &r) const
    {
        if (MIX)
            locate(r);
        else
            r.from += tile_of<TYPE0>::bytes;
    }
};

// Sets the operands of the block; false: it has nothing to do.
DEVICE bool take_part(const frit_experts_args &e, char *shared, frit_product_args &a, matrices &list)
{
    const float *route = (const float *)e.route;
    u64 *parts = (u64 *)(shared + (SHARED_BYTES + 7) / 8 * 8);
    a.n_rows = 1;
    a.x = e.x, a.out = e.out, a.residual = e.residual, a.seq_of = e.route;
    if (MIX) {
        const long long row = e.first + blockIdx.y;
        route += row * 2 * N_USED;
        a.seq_of = (u64)route;
        a.x += row * N_USED * PART_K * 4, a.out += row * MATRIX_ROWS * 4;
        if (a.residual) a.residual += row * MATRIX_ROWS * 4;
        for (int i = threadIdx.x; i < N_USED; i += THREADS)
            parts[i] = e.weights + (u64)(int)__ldcg(route + i) * e.bytes;
        __syncthreads();
        list.parts = parts;
        return true;
    }
    if (BY_HEADS && ROWS > 1) {
        const int i = e.first + (int)blockIdx.y, head = i % N_USED, row = i / N_USED * ROWS;
        a.n_rows = min(e.n_rows - row, ROWS);
        a.positions = (u64)(row * N_USED + head);
        list.weights = e.weights + (u64)head * e.bytes;
        return true;
    }
    if (ROWS == 1) {
        const long long i = e.first + blockIdx.y, row = i / N_USED;
        route += row * 2 * N_USED + i % N_USED;
        a.seq_of = (u64)route;
        a.x += (OWN_ROWS ? i : row) * PART_K * 4,
            a.out += i * (EPILOGUE == EPILOGUE_GLU ? MATRIX_ROWS / 2 : MATRIX_ROWS) * 4;
        list.weights = e.weights + (u64)(BY_HEADS ? (int)(i % N_USED) : (int)__ldcg(route)) * e.bytes;
        return true;
    }
    const int at = e.first + (int)blockIdx.y, begin = at % PARTS * ROWS;
    const frit_expert_group *group = (const frit_expert_group *)e.groups + at / PARTS;
    a.n_rows = min(__ldcg(&group->n) - begin, ROWS);
    a.positions = e.order + (u64)(__ldcg(&group->first) + begin) * 4;
    list.weights = e.weights + (u64)__ldcg(&group->expert) * e.bytes;
    return a.n_rows > 0;
}

// Without the hint of one block, the compiler spills registers for sm_80.
#if __CUDA_ARCH__ < 900
#define BOUNDS __launch_bounds__(THREADS, 1)
#else
#define BOUNDS __launch_bounds__(THREADS)
#endif

extern "C" __global__ void BOUNDS experts(const frit_experts_args e)
{
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % WARPS, group = threadIdx.x / 32 / WARPS;
    ring r;
    matrices list = {0, 0, false};
    frit_product_args a = {};
    let_next_kernel_start();
    wait_for_kernel_before();   // the route is the result of another kernel
    if (!take_part(e, shared, a, list)) return;
    ring_open(r, list, shared_address(shared), group, warp, lane);
    convert_input<the_phase>(a, shared, group, warp, lane, [] {});
    ring_fill(r, list, warp, lane);
    run_phase<the_phase>(a, shared, r, list, group, warp, lane);
}

// SPDX-License-Identifier: MIT
// Whole decode steps of a dense model in one kernel: one block of threads on each multiprocessor goes through all
// phases of all layers. Between phases all blocks wait for each other; the rings go on fetching the next phases'
// weights meanwhile, so memory never rests while there is room in them.
//
// Launched cooperatively: all blocks must be resident. Defined by the host (decode.c): what phase.cuh, attend.cuh and
// embed.cuh want, SHARED_BYTES, LAYERS, FF, VOCABULARY, TYPE_MOST, TYPE_MORE, TYPE_HEAD, TYPE_TABLE, TRACE (clocks are
// wanted).
#include "attend.cuh"
#include "embed.cuh"
#include "phase.cuh"

static_assert(SHARED_BYTES >= shared_end, "the host counts shared memory as it is laid out here");
static_assert(SCRATCH_BYTES >= ATTEND_SHARED_FLOATS * 4, "attention has room in place of activations");
static_assert(LAYERS <= FRIT_GPU_MAX_LAYERS, "all layers have a place in the arguments");

template <int V> struct qkv_phase : rows_in_order<qkv_phase<V>> {
    static const int k = DIM, stride = DIM, type0 = TYPE_MOST, tiles0 = (HEADS + KV_HEADS) * HEAD / 16;
    static const int type1 = V, tiles1 = KV_HEADS * HEAD / 16, n = (tiles0 + tiles1) * 16, epilogue = EPILOGUE_QKV;
    static const bool norm = true;
};

template <int TYPE, int K, int TILES, bool NORM, int EPILOGUE>
struct one_matrix : rows_in_order<one_matrix<TYPE, K, TILES, NORM, EPILOGUE>> {
    static const int k = K, stride = K, type0 = TYPE, tiles0 = TILES, type1 = TYPE, tiles1 = 0, n = TILES * 16, epilogue = EPILOGUE;
    static const bool norm = NORM;
};

typedef one_matrix<TYPE_MOST, HEADS * HEAD, DIM / 16, false, EPILOGUE_ADD> o_phase;
typedef one_matrix<TYPE_MOST, DIM, FF / 8, true, EPILOGUE_GLU> gate_up_phase;
template <int TYPE> struct down_phase : one_matrix<TYPE, FF, DIM / 16, false, EPILOGUE_ADD> {
};
typedef one_matrix<TYPE_HEAD, DIM, VOCABULARY / 16, true, EPILOGUE_PICK> head_phase;

// All matrices of all steps, in order.
struct matrices : tiles_in_order {
    const frit_gpu_matrix *all;
    int n, n_steps;
    int step, i;
    DEVICE bool next(frit_gpu_matrix &m)
    {
        if (i == n) i = 0, step++;
        if (step == n_steps) return false;
        m = all[i++];
        return true;
    }
};

// ------------------------------------------------------------------------------- all blocks

struct all_blocks {
    u32 *counter;
    u32 target;
    // What this block has written is there for the others.
    DEVICE void arrive()
    {
        __syncthreads();
        target += GRID;
        if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
    }
    // What all blocks wrote before they arrived is there for this one. A block that never comes ends the kernel with
    // an error after some seconds.
    DEVICE void wait()
    {
        if (threadIdx.x == 0) {
            u32 n;
            int tries = 0;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(counter) : "memory");
                if (++tries == 1 << 23) __trap();
            } while (n < target);
        }
        __syncthreads();
    }
};

// Clocks of one thread of each block at the ends of parts of phases, for the last step (TRACE).
struct trace {
    u64 *to;
    DEVICE void mark()
    {
#if TRACE
        if (threadIdx.x == 0) *to++ = clock64();
#endif
    }
};

struct worker {
    ring r;
    matrices list;
    all_blocks all;
    int turn;
    trace marks;
};

// A number that the compiler knows nothing of. What depends on it is computed where it is needed: moved out of the loop
// over layers, the addresses of all phases would be more than there are registers.
DEVICE int unknown(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}

// Waits for the phase before it, then runs P.
template <class P>
DEVICE void run(worker &w, char *all_shared, const frit_product_args &p, const frit_attend_args *next = nullptr)
{
    const int thread = unknown(threadIdx.x), lane = thread % 32, warp = thread / 32 % WARPS,
              group = thread / 32 / WARPS;
    char *shared = all_shared + unknown(0);
    convert_input<P>(p, shared, group, warp, lane, [&w] {
        w.all.wait();
        w.marks.mark();
    });
    w.marks.mark();
    if (next)
        for (int i = blockIdx.x; i < ROWS * ALL_QUERY_TILES * SPLITS; i += GRID) {
            const int row = i / ALL_QUERY_TILES % ROWS;
            attend_prefetch(*next, attend_pages(*next, row, i / (ALL_QUERY_TILES * ROWS)), row, i % ALL_QUERY_TILES);
        }
    run_phase<P>(p, shared, w.r, w.list, group, warp, lane, w.turn);
    w.marks.mark();
    w.all.arrive();
}

DEVICE void run_layer(const frit_decode_args &a, worker &w, char *shared, int layer, int *is_last)
{
    const frit_decode_layer &l = a.layers[layer];
    frit_attend_args at = a.attend;
    at.keys += (long long)layer * (2 * KV_HEADS * 32 * HEAD * 2);
    at.values += (long long)layer * (2 * KV_HEADS * 32 * HEAD * 2);
    frit_product_args p = {};
    p.x = a.embed.x;
    p.norm = l.norm1;
    p.out = at.q;
    p.rope = a.embed.rope;
    p.positions = at.positions;
    p.pages = at.pages;
    p.page_stride = at.page_stride;
    p.n_rows = ROWS;
    p.keys = at.keys;
    p.values = at.values;
    p.epsilon = a.epsilon;
    p.query_scale = 1.4426950408889634f * rsqrtf((float)HEAD);
    if (TYPE_MORE != TYPE_MOST && l.is_more)
        run<qkv_phase<TYPE_MORE>>(w, shared, p, &at);
    else
        run<qkv_phase<TYPE_MOST>>(w, shared, p, &at);

    w.all.wait();
    w.marks.mark();
    // The first parts of all heads first: short contexts have no others.
    for (int i = blockIdx.x; i < ROWS * ALL_QUERY_TILES * SPLITS; i += GRID) {
        const int row = i / ALL_QUERY_TILES % ROWS, split = i / (ALL_QUERY_TILES * ROWS);
        const part_pages pages = attend_pages(at, row, split);
        if (split >= pages.n_active) break;   // and so are all that follow
        attend_part(at, pages, row, i % ALL_QUERY_TILES, split, (float *)(shared + x_at), is_last);
        __syncthreads();
    }
    w.marks.mark();
    w.all.arrive();

    p.x = at.out;
    p.out = a.embed.x;
    run<o_phase>(w, shared, p);
    p.x = a.embed.x;
    p.norm = l.norm2;
    p.out = a.h;
    run<gate_up_phase>(w, shared, p);
    p.x = a.h;
    p.out = a.embed.x;
    if (TYPE_MORE != TYPE_MOST && l.is_more)
        run<down_phase<TYPE_MORE>>(w, shared, p);
    else
        run<down_phase<TYPE_MOST>>(w, shared, p);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) decode(const __grid_constant__ frit_decode_args a)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ int is_last;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % WARPS, group = threadIdx.x / 32 / WARPS;
    worker w = {{}, {{}, a.matrices, a.n_matrices, a.n_steps, 0, 0}, {(u32 *)a.barrier, 0}, 0, {}};
    ring_open(w.r, w.list, shared_address(shared), group, warp, lane);
#pragma unroll 1
    for (int step = 0; step < a.n_steps; step++) {
        w.marks.to = (u64 *)a.trace + blockIdx.x * (LAYERS * 14 + 3);
        if (step) w.all.wait();
        for (int row = blockIdx.x; row < ROWS; row += GRID) embed_row(a.embed, row);
        w.all.arrive();
#pragma unroll 1
        for (int layer = 0; layer < LAYERS; layer++) run_layer(a, w, shared, layer, &is_last);
        frit_product_args p = {};
        p.x = a.embed.x;
        p.norm = a.norm;
        p.out = a.logits;
        p.best = a.embed.best;
        p.n_rows = ROWS;
        p.epsilon = a.epsilon;
        run<head_phase>(w, shared, p);
    }
}

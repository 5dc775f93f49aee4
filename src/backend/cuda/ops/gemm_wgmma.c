// SPDX-License-Identifier: MIT
// Choosing blocks of rows, tiles, warps and splits by estimate; defines and launch shape of kernels/gemm_wgmma.cu.
#include "backend/cuda/ops/gemm_wgmma.h"
#include "backend/cuda/weights/repack.h"

enum { X_STAGES = 4, COPY_WARPS = 4, MOST_TILES = 2, MOST_SPLITS = 8, MOST_BLOCKS = 2, REGISTERS = 65536 };

static const int row_blocks[] = {32, 64, 96, 128};
static const int warp_counts[] = {4, 8, 12};

bool frit_cuda_has_wgmma(const frit_cuda_gpu *gpu)
{
    return gpu->arch == 90;
}

static int tile_bytes_of(const frit_cuda_gemm_wgmma *s)
{
    int most = 0;
    for (int i = 0; i < FRIT_GPU_SEGMENTS && s->segments[i].n_tiles; i++) {
        const int n = frit_tile_format_of(s->segments[i].dtype)->tile_bytes;
        if (n > most) most = n;
    }
    return most;
}

// A static_assert of the kernel compares the result with what it lays out.
static int shared_bytes(const frit_cuda_gemm_wgmma *s)
{
    return X_STAGES * s->rows * 128 + s->warps * s->stages * (s->tiles * tile_bytes_of(s) + 8) + 2 * X_STAGES * 8;
}

static int n_groups_of(const frit_cuda_gemm_wgmma *s)
{
    const int group = s->tiles * s->warps;
    int n = 0;
    for (int i = 0; i < FRIT_GPU_SEGMENTS; i++) n += (s->segments[i].n_tiles + group - 1) / group;
    return n;
}

unsigned frit_cuda_gemm_wgmma_blocks(const frit_cuda_gemm_wgmma *s, int64_t n_rows)
{
    return (unsigned)(n_groups_of(s) * ((n_rows + s->rows - 1) / s->rows));
}

// Registers that a thread of the multiplying warps needs, about, and has.
static bool has_registers(const frit_cuda_gemm_wgmma *s)
{
    const int threads = (s->warps + COPY_WARPS) * 32, each = REGISTERS / s->at_once / threads / 8 * 8;
    const int copy = s->rows / 2 + (s->tiles * s->rows >= 256 ? 24 : 32),
              rest = (each * (s->warps + COPY_WARPS) - copy * COPY_WARPS) / s->warps;
    return rest >= s->tiles * s->rows / 2 + (s->tiles * s->rows >= 256 ? 80 : 88);
}

static bool fits(const frit_cuda_gemm_wgmma *s, const frit_cuda_gpu *gpu)
{
    enum { RESERVED = 1024 };   // bytes of shared memory that the system takes for a block of threads
    return s->at_once * (shared_bytes(s) + RESERVED) <= gpu->shared_bytes + RESERVED && has_registers(s);
}

// Estimated clocks, from measurements on an H200. A warpgroup takes a time for converting 64 columns of weights, which
// all rows share, and one for each row. Up to eight warps of a multiprocessor do not slow each other down. The copies
// of x take as long as their bytes.
static double cost_of(const frit_cuda_gemm_wgmma *s, const frit_cuda_gpu *gpu)
{
    const double start = 4000, of_stage = 100, of_weights = 300, of_row = 4.1, x_bytes_a_clock = 29, bytes_a_clock = 40;
    const int n_blocks = (s->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS,
              each = (n_blocks + s->splits - 1) / s->splits, n_slots = gpu->n_multiprocessors * s->at_once;
    const int n_all = (int)frit_cuda_gemm_wgmma_blocks(s, s->n_rows) * s->splits,
              n_waves = (n_all + n_slots - 1) / n_slots;
    const double crowded = s->warps * s->at_once > 8 ? s->warps * s->at_once / 8.0 : 1;
    const double copies = 128.0 * s->rows * s->at_once / x_bytes_a_clock;
    double stage = (of_stage + s->tiles * (of_weights + of_row * s->rows)) * crowded * (s->at_once > 1 ? 1.05 : 1);
    if (stage < copies) stage = copies;
    const double clocks = 4.0 * each * stage;
    const double gates = s->is_gated && s->splits > 1 ? 6000 : 0;   // clocks of the kernel that then computes gates
    const double results = 8.0 * s->splits * s->n_rows * n_groups_of(s) * s->tiles * s->warps * FRIT_TILE_ROWS;
    return gates + n_waves * (start + clocks) + results / (bytes_a_clock * gpu->n_multiprocessors);
}

// Inserts the candidate by its cost into `out`, which keeps the `most` cheapest.
static int insert(frit_cuda_gemm_wgmma *out, double *costs, int n, int most, const frit_cuda_gemm_wgmma *one,
                  double cost)
{
    int at = n < most ? n : most - 1;
    if (n == most && cost >= costs[at]) return n;
    for (; at > 0 && costs[at - 1] > cost; at--) out[at] = out[at - 1], costs[at] = costs[at - 1];
    out[at] = *one, costs[at] = cost;
    return n < most ? n + 1 : n;
}

static bool is_wanted(int wanted, int value)
{
    return wanted == 0 || wanted == value;
}

// Sets stages: three if shared memory allows, at least two.
static bool set_stages(frit_cuda_gemm_wgmma *s, const frit_cuda_gpu *gpu)
{
    for (int stages = s->stages ? s->stages : 3; stages >= 2; stages--) {
        frit_cuda_gemm_wgmma one = *s;
        one.stages = stages;
        if (fits(&one, gpu)) {
            s->stages = stages;
            return true;
        }
        if (s->stages) break;
    }
    return false;
}

int frit_cuda_gemm_wgmma_candidates(const frit_cuda_gemm_wgmma *wanted, const frit_cuda_gpu *gpu,
                                    frit_cuda_gemm_wgmma *out, int most)
{
    enum { MOST = 64 };
    const int n_blocks = (wanted->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
    double costs[MOST];
    int n = 0;
    if (most > MOST) most = MOST;
    for (size_t r = 0; r < FRIT_COUNT(row_blocks); r++)
        for (size_t w = 0; w < FRIT_COUNT(warp_counts); w++)
            for (int tiles = 1; tiles <= MOST_TILES; tiles++)
                for (int splits = 1; splits <= MOST_SPLITS && splits <= n_blocks; splits++)
                    for (int at_once = 1; at_once <= 3; at_once++) {
                        frit_cuda_gemm_wgmma one = *wanted;
                        if (!is_wanted(one.rows, row_blocks[r]) || !is_wanted(one.warps, warp_counts[w]) ||
                            !is_wanted(one.tiles, tiles) || !is_wanted(one.splits, splits) ||
                            !is_wanted(one.at_once, at_once))
                            continue;
                        one.rows = row_blocks[r], one.warps = warp_counts[w], one.tiles = tiles, one.splits = splits,
                        one.at_once = at_once;
                        const int64_t n_parts = (int64_t)frit_cuda_gemm_wgmma_blocks(&one, one.n_rows) * splits;
                        if ((splits > 1 && !wanted->splits && n_parts > MOST_BLOCKS * gpu->n_multiprocessors) ||
                            !set_stages(&one, gpu))
                            continue;
                        n = insert(out, costs, n, most, &one, cost_of(&one, gpu));
                    }
    return n;
}

uint64_t frit_cuda_gemm_wgmma_bytes(const frit_cuda_gpu *gpu, uint64_t n, uint64_t n_rows)
{
    enum { MOST_NUMBERS = 128 * 12 * MOST_TILES * FRIT_TILE_ROWS };   // of a block of threads
    const uint64_t rows = n_rows < FRIT_CUDA_GEMM_WGMMA_ROWS ? n_rows : FRIT_CUDA_GEMM_WGMMA_ROWS;
    const uint64_t most = (uint64_t)gpu->n_multiprocessors * MOST_BLOCKS * MOST_NUMBERS,
                   in_parts = rows * n * MOST_SPLITS < most ? rows * n * MOST_SPLITS : most;
    return (rows * n > in_parts ? rows * n : in_parts) * sizeof(float);
}

static frit_status check(const frit_cuda_gemm_wgmma *s)
{
    if (s->k < 32 || s->k % 32)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product has %d columns; expected a multiple of 32", s->k);
    for (int i = 0; i < FRIT_GPU_SEGMENTS && s->segments[i].n_tiles; i++) {
        const frit_tile_format *format = frit_tile_format_of(s->segments[i].dtype);
        if (!format || format->low_bits > 16)
            return frit_fail(FRIT_E_UNSUPPORTED,
                             "a product of f16 has weights of type %s, for which there is no kernel",
                             frit_dtype_get(s->segments[i].dtype)->name);
    }
    return FRIT_OK;
}

frit_status frit_cuda_gemm_wgmma_kernel(frit_cuda_gemm_wgmma *s, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel)
{
    frit_cuda_gemm_wgmma best;
    FRIT_TRY(check(s));
    if (!frit_cuda_has_wgmma(gpu))
        return frit_fail(FRIT_E_UNSUPPORTED, "%s has no products of warpgroups; expected sm_90", gpu->name);
    if (frit_cuda_gemm_wgmma_candidates(s, gpu, &best, 1) == 0)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "a product of %d rows and %d columns does not fit into the %d bytes of "
                         "shared memory of %s",
                         s->n_rows, s->k, gpu->shared_bytes, gpu->name);
    *s = best;
    s->is_gated = s->is_gated && s->splits == 1 && s->segments[1].n_tiles == 0;
    *kernel = (frit_cuda_kernel){.file = "gemm_wgmma.cu",
                                 .name = "gemm_wgmma",
                                 .grid = {frit_cuda_gemm_wgmma_blocks(s, s->n_rows), (unsigned)s->splits, 1},
                                 .threads = (unsigned)(s->warps + COPY_WARPS) * 32,
                                 .shared_bytes = (unsigned)shared_bytes(s)};
    const frit_cuda_segment *second = &s->segments[s->segments[1].n_tiles ? 1 : 0];
    const struct {
        const char *name;
        int64_t value;
    } defines[] = {
        {"TYPE0", frit_dtype_get(s->segments[0].dtype)->gguf_id},
        {"TILES0", s->segments[0].n_tiles},
        {"TYPE1", frit_dtype_get(second->dtype)->gguf_id},
        {"TILES1", s->segments[1].n_tiles},
        {"K", s->k},
        {"ROWS", s->rows},
        {"TILES", s->tiles},
        {"WARPS", s->warps},
        {"SPLITS", s->splits},
        {"STAGES", s->stages},
        {"AT_ONCE", s->at_once},
        {"SHARED_BYTES", shared_bytes(s)},
        {"HALF_MATH", !s->is_exact},
        {"GATED", s->is_gated},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    return FRIT_OK;
}

// SPDX-License-Identifier: MIT
// Defines and launch shapes of the kernels of rows.h.
#include "backend/cuda/ops/rows.h"

enum { MAX_WIDTH = 65536, STATIC_SHARED_BYTES = 48000 };

static frit_status check_width(const char *what, int width, int multiple)
{
    if (width >= multiple && width % multiple == 0 && width <= MAX_WIDTH) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED, "%s has %d numbers; expected a multiple of %d up to %d", what, width, multiple,
                     (int)MAX_WIDTH);
}

static void begin_kernel(frit_cuda_kernel *kernel, const char *file, const char *name, unsigned threads)
{
    *kernel = (frit_cuda_kernel){.file = file, .name = name, .grid = {1, 1, 1}, .threads = threads};
}

frit_status frit_cuda_embed_kernel(const frit_cuda_embed *embed, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check_width("a token's row", embed->width, 32));
    if (!frit_tile_format_of(embed->dtype))
        return frit_fail(FRIT_E_UNSUPPORTED, "type %s has no tiles for GPUs", frit_dtype_get(embed->dtype)->name);
    begin_kernel(kernel, "embed_rows.cu", "embed_rows", 256);
    frit_cuda_define(kernel, "TYPE0", frit_dtype_get(embed->dtype)->gguf_id);
    frit_cuda_define(kernel, "DIM", embed->width);
    frit_cuda_define(kernel, "ROTATED", embed->rotated);
    return FRIT_OK;
}

frit_status frit_cuda_norm_kernel(const frit_cuda_norm *norm, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check_width("the norm of a row", norm->width, 4));
    begin_kernel(kernel, "norm_rows.cu", "norm_rows", norm->is_small && norm->width > 2048 ? 1024 : 256);
    frit_cuda_define(kernel, "THREADS", kernel->threads);
    frit_cuda_define(kernel, "WIDTH", norm->width);
    frit_cuda_define(kernel, "IS_LAYER", norm->is_layer);
    frit_cuda_define(kernel, "HAS_WEIGHT", norm->has_weight);
    frit_cuda_define(kernel, "HAS_BIAS", norm->has_bias);
    frit_cuda_define(kernel, "IN", norm->in);
    frit_cuda_define(kernel, "OUT", norm->out);
    frit_cuda_define(kernel, "SUM", norm->is_sum);
    frit_cuda_define(kernel, "SCALED", norm->is_scaled);
    frit_cuda_define(kernel, "JOINS", norm->joins);
    return FRIT_OK;
}

frit_status frit_cuda_glu_kernel(const frit_cuda_glu *glu, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check_width("the activation of a row", glu->width, 8));
    begin_kernel(kernel, "glu_rows.cu", "glu_rows", 256);
    kernel->grid[1] = (unsigned)(glu->width / 8 + 255) / 256;
    frit_cuda_define(kernel, "WIDTH", glu->width);
    frit_cuda_define(kernel, "FUNCTION", glu->act);
    frit_cuda_define(kernel, "GATED", glu->is_gated);
    frit_cuda_define(kernel, "HAS_BIAS", glu->has_bias);
    frit_cuda_define(kernel, "IN", glu->in);
    frit_cuda_define(kernel, "OUT", glu->out);
    return FRIT_OK;
}

// Each thread keeps its part of a row in registers.
frit_status frit_cuda_gate_kernel(int width, frit_cuda_kernel *kernel)
{
    enum { MOST = 16384, SMALL = 2048 };
    FRIT_TRY(check_width("gates of a row", width, 8));
    if (width > MOST)
        return frit_fail(FRIT_E_UNSUPPORTED, "a row of gates has %d numbers; expected at most %d", width, (int)MOST);
    begin_kernel(kernel, "gate_rows.cu", "gate_rows", width <= SMALL ? 128 : 1024);
    frit_cuda_define(kernel, "WIDTH", width);
    frit_cuda_define(kernel, "THREADS", kernel->threads);
    return FRIT_OK;
}

static void define_cache(frit_cuda_kernel *kernel, const frit_cuda_heads *heads)
{
    frit_cuda_define_heads(kernel, heads);
    frit_cuda_define(kernel, "KEY_TYPE", heads->keys);
    frit_cuda_define(kernel, "VALUE_TYPE", heads->values);
}

frit_status frit_cuda_heads_kernel(const frit_cuda_heads_rows *h, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check_width("a head", h->heads.head_size, h->order == FRIT_CUDA_ORDER_NATURAL ? 4 : 16));
    if (h->rotated < 0 || h->rotated > h->heads.head_size || h->rotated % 2)
        return frit_fail(FRIT_E_UNSUPPORTED, "rotation of %d of %d dimensions is not supported", h->rotated,
                         h->heads.head_size);
    begin_kernel(kernel, "heads_rows.cu", "heads_rows", 256);
    kernel->grid[1] = (unsigned)(h->heads.n_heads + 2 * h->heads.n_kv_heads + 7) / 8;
    define_cache(kernel, &h->heads);
    frit_cuda_define(kernel, "ORDER", h->order);
    frit_cuda_define(kernel, "ROTATED", h->rotated);
    frit_cuda_define(kernel, "ROTATES_NEOX", h->style == FRIT_ROPE_NEOX);
    frit_cuda_define(kernel, "HAS_BIAS", h->has_bias);
    frit_cuda_define(kernel, "HAS_NORM", h->has_norm);
    frit_cuda_define(kernel, "QUERIES", h->has_f32_queries ? FRIT_CUDA_F32 : FRIT_CUDA_F16);
    return FRIT_OK;
}

void frit_cuda_define_attend(frit_cuda_kernel *kernel, const frit_cuda_attend *attend)
{
    define_cache(kernel, &attend->heads);
    frit_cuda_define(kernel, "WINDOW", attend->window);
    frit_cuda_define(kernel, "HAS_SOFTCAP", attend->has_softcap);
    frit_cuda_define(kernel, "HAS_SINKS", attend->has_sinks);
    frit_cuda_define(kernel, "OUT", attend->out);
    if (attend->shared_parts) frit_cuda_define(kernel, "SHARED_PARTS", attend->shared_parts);
}

static int group_of(const frit_cuda_heads *heads)
{
    return heads->n_heads / heads->n_kv_heads;
}

int frit_cuda_query_tiles(const frit_cuda_heads *heads)
{
    return heads->n_kv_heads * ((group_of(heads) + FRIT_CUDA_QUERY_TILE - 1) / FRIT_CUDA_QUERY_TILE);
}

int frit_cuda_tile_queries(const frit_cuda_heads *heads)
{
    return group_of(heads) < FRIT_CUDA_QUERY_TILE ? group_of(heads) : FRIT_CUDA_QUERY_TILE;
}

bool frit_cuda_has_codes(const frit_cuda_heads *heads)
{
    return heads->keys != FRIT_GPU_CACHE_F16 || heads->values != FRIT_GPU_CACHE_F16;
}

// Bytes of 32 numbers of a cached head; 0: attend.cu does not read the type.
static int block_bytes(int type)
{
    static const int bytes[] = {
        [FRIT_GPU_CACHE_F16] = 64,  [FRIT_GPU_CACHE_BF16] = 64, [FRIT_GPU_CACHE_F8] = 32,
        [FRIT_GPU_CACHE_Q8_0] = 34, [FRIT_GPU_CACHE_Q4_0] = 18, [FRIT_GPU_CACHE_IQ4_NL] = 0,
    };
    return type >= 0 && (size_t)type < FRIT_COUNT(bytes) ? bytes[type] : 0;
}

bool frit_cuda_is_attended(int type)
{
    return block_bytes(type) > 0;
}

// Bytes of the keys and values of a head in a page.
static int head_bytes(const frit_cuda_heads *heads)
{
    return heads->head_size * (block_bytes(heads->keys) + block_bytes(heads->values));
}

// Small heads need more warps to keep enough bytes in flight, and to convert codes in time.
static int ring_warps(const frit_cuda_heads *heads)
{
    enum { SMALL_PAGE = 11000 };   // bytes of a page of which eight warps have room for two each
    if (heads->head_size <= 64) return 12;
    if (heads->head_size > 128 && frit_cuda_has_codes(heads)) return 4;
    return head_bytes(heads) <= SMALL_PAGE ? 8 : 6;
}

static int ring_bytes(const frit_cuda_heads *heads, int warps, int stages)
{
    return warps * stages * (head_bytes(heads) + 8);   // 8: a barrier
}

int frit_cuda_attend_stages(const frit_cuda_heads *heads, const frit_cuda_gpu *gpu)
{
    enum { MOST = 2, MOST_OF_CODES = 4, BESIDE = 1024 };   // BESIDE: bytes that the system reserves
    const int warps = ring_warps(heads);
    const int left = gpu->shared_bytes - BESIDE - warps * frit_cuda_tile_queries(heads) * (heads->head_size + 2) * 4;
    int n = frit_cuda_has_codes(heads) ? MOST_OF_CODES : MOST;
    while (n > 0 && ring_bytes(heads, warps, n) > left) n--;
    return gpu->arch >= 90 && n > 1 ? n : 0;
}

frit_status frit_cuda_attend_kernel(const frit_cuda_attend *attend, int n_splits, int warps, frit_cuda_kernel *kernel)
{
    const frit_cuda_heads *h = &attend->heads;
    const int n_queries = frit_cuda_tile_queries(h), part_bytes = n_queries * (h->head_size + 2) * 4;
    FRIT_TRY(check_width("a head", h->head_size, 32));
    if (!warps && attend->stages) warps = ring_warps(h);
    if (!warps) warps = 8 * part_bytes <= STATIC_SHARED_BYTES ? 8 : 4;
    if (h->head_size > 256 || warps * part_bytes > STATIC_SHARED_BYTES)
        return frit_fail(
            FRIT_E_UNSUPPORTED,
            "%d heads of %d dimensions do not fit in attention by %d warps; expected at most 256 dimensions", n_queries,
            h->head_size, warps);
    begin_kernel(kernel, "attend.cu", "attend", (unsigned)warps * 32);
    kernel->grid[0] = (unsigned)(frit_cuda_query_tiles(h) * n_splits);
    kernel->shared_bytes = (unsigned)ring_bytes(h, warps, attend->stages);
    frit_cuda_define_attend(kernel, attend);
    frit_cuda_define(kernel, "ATTEND_STAGES", attend->stages);
    frit_cuda_define(kernel, "SPLITS", n_splits);
    frit_cuda_define(kernel, "ATTEND_WARPS", warps);
    return FRIT_OK;
}

// Two stages of two pages; for codes also stages of two pages as f16.
static int rows_bytes(const frit_cuda_heads *heads, int n_half_stages)
{
    return 2 * (2 * head_bytes(heads)) + n_half_stages * 2 * (2 * 32 * heads->head_size * 2);
}

int frit_cuda_attend_rows_bytes(const frit_cuda_heads *heads)
{
    return rows_bytes(heads, frit_cuda_has_codes(heads));
}

frit_status frit_cuda_attend_rows_kernel(const frit_cuda_attend *attend, const frit_cuda_gpu *gpu,
                                         frit_cuda_kernel *kernel)
{
    const frit_cuda_heads *heads = &attend->heads;
    const int size = heads->head_size, has_codes = frit_cuda_has_codes(heads);
    // Larger heads have no registers for more.
    const bool is_ahead = has_codes && size <= 128 && rows_bytes(heads, 2) <= gpu->shared_bytes;
    const int n_half_stages = is_ahead ? 2 : has_codes, n_shared = rows_bytes(heads, n_half_stages),
              n_at_once = is_ahead && heads->n_heads / heads->n_kv_heads % 2 == 0 ? 2 : 1;
    FRIT_TRY(check_width("a head", size, 32));
    if (n_shared > gpu->shared_bytes)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "attention of heads of %d dimensions needs %d bytes of shared memory; %s has %d", size,
                         n_shared, gpu->name, gpu->shared_bytes);
    begin_kernel(kernel, "attend_rows.cu", "attend_rows", 128 * (unsigned)n_at_once);
    kernel->grid[1] = (unsigned)(heads->n_heads / n_at_once);
    kernel->shared_bytes = (unsigned)n_shared;
    frit_cuda_define_attend(kernel, attend);
    frit_cuda_define(kernel, "HEADS_AT_ONCE", n_at_once);
    frit_cuda_define(kernel, "HALF_STAGES", n_half_stages);
    if (attend->shared_parts) frit_cuda_define(kernel, "SPLITS", attend->own_parts);
    return FRIT_OK;
}

frit_status frit_cuda_take_rows_kernel(int width, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check_width("a row", width, 4));
    begin_kernel(kernel, "take_rows.cu", "take_rows", 256);
    frit_cuda_define(kernel, "WIDTH", width);
    return FRIT_OK;
}

frit_status frit_cuda_rope_kernel(int rotated, frit_cuda_kernel *kernel)
{
    FRIT_TRY(check_width("a rotation", rotated, 2));
    begin_kernel(kernel, "rope_rows.cu", "rope_rows", 128);
    frit_cuda_define(kernel, "ROTATED", rotated);
    return FRIT_OK;
}

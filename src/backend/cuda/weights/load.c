// SPDX-License-Identifier: MIT
// Copying weights to the GPU, and making tiles of them there.
#include "backend/cuda/weights/load.h"
#include "backend/cuda/kernels/args.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, STREAM_NON_BLOCKING = 1, EVENT_WITHOUT_TIME = 2 };

static frit_status check_driver(const frit_cuda_loader *l, int result, const char *what)
{
    return frit_cuda_check(l->gpu->driver, result, what);
}

// ------------------------------------------------------------------------------- memory and kernels

static frit_status open_piece(frit_cuda_loader *l, frit_cuda_piece *piece)
{
    const frit_cuda_driver *driver = l->gpu->driver;
    void *host = NULL;
    FRIT_TRY(check_driver(l, driver->host_alloc(&host, FRIT_CUDA_PIECE_BYTES, 0), "allocating pinned memory"));
    piece->host = host;
    FRIT_TRY(
        check_driver(l, driver->memory_alloc(&piece->device, FRIT_CUDA_PIECE_BYTES), "allocating memory for loading"));
    FRIT_TRY(check_driver(l, driver->stream_new(&piece->stream, STREAM_NON_BLOCKING), "making a stream"));
    return check_driver(l, driver->event_new(&piece->is_read, EVENT_WITHOUT_TIME), "making an event");
}

static frit_status open_all(frit_cuda_loader *l)
{
    for (int i = 0; i < FRIT_CUDA_PIECES; i++) FRIT_TRY(open_piece(l, &l->pieces[i]));
    return FRIT_OK;
}

frit_status frit_cuda_loader_open(frit_cuda_loader *loader, const frit_cuda_gpu *gpu,
                                  const frit_cuda_compiler *compiler, frit_pool *pool)
{
    *loader = (frit_cuda_loader){.gpu = gpu, .compiler = compiler, .pool = pool};
    const frit_status status = open_all(loader);
    if (status != FRIT_OK) frit_cuda_loader_close(loader);
    return status;
}

void frit_cuda_loader_close(frit_cuda_loader *l)
{
    const frit_cuda_driver *driver = l->gpu->driver;
    for (int i = 0; i < FRIT_CUDA_PIECES; i++)
        if (l->pieces[i].stream) driver->stream_wait(l->pieces[i].stream);
    for (int i = 0; i < FRIT_DTYPE_COUNT; i++) {
        if (l->kernels[i]) frit_cuda_kernels_free(l->gpu, &l->kernels[i], 1);
        free(l->kernels[i]);
        if (l->grids[i]) driver->memory_free(l->grids[i]);
    }
    for (int i = 0; i < FRIT_CUDA_PIECES; i++) {
        if (l->pieces[i].host) driver->host_free(l->pieces[i].host);
        if (l->pieces[i].device) driver->memory_free(l->pieces[i].device);
        if (l->pieces[i].is_read) driver->event_free(l->pieces[i].is_read);
        if (l->pieces[i].stream) driver->stream_free(l->pieces[i].stream);
    }
    *l = (frit_cuda_loader){.gpu = l->gpu};
}

static frit_status describe_kernel(frit_cuda_loader *l, frit_dtype dtype)
{
    frit_cuda_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return frit_fail_memory(sizeof *kernel, "a kernel");
    *kernel = (frit_cuda_kernel){.file = "repack.cu", .name = "repack", .threads = THREADS};
    frit_cuda_define(kernel, "TYPE0", frit_dtype_get(dtype)->gguf_id);
    l->kernels[dtype] = kernel;
    return FRIT_OK;
}

static frit_status upload_grid(frit_cuda_loader *l, const frit_tile_format *format)
{
    if (format->grid_bytes == 0 || l->grids[format->dtype]) return FRIT_OK;
    uint64_t *address = &l->grids[format->dtype];
    FRIT_TRY(check_driver(l, l->gpu->driver->memory_alloc(address, format->grid_bytes), "allocating a grid"));
    const frit_cuda_stream stream =
        l->pieces[0].stream;   // waited for, because the streams of other pieces read the grid too
    FRIT_TRY(check_driver(l, l->gpu->driver->copy_up(*address, format->grid, format->grid_bytes, stream),
                          "copying a grid to the GPU"));
    return check_driver(l, l->gpu->driver->stream_wait(stream), "copying a grid to the GPU");
}

frit_status frit_cuda_loader_prepare(frit_cuda_loader *l, const frit_dtype *types, size_t n)
{
    frit_cuda_kernel *added[FRIT_DTYPE_COUNT];
    frit_dtype of[FRIT_DTYPE_COUNT];
    size_t n_added = 0;
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < n && status == FRIT_OK; i++) {
        const frit_tile_format *format = frit_tile_format_of(types[i]);
        if (!format)
            status = frit_fail(FRIT_E_UNSUPPORTED, "type %s has no tiles for GPUs", frit_dtype_get(types[i])->name);
        else
            status = upload_grid(l, format);
        if (status != FRIT_OK || l->kernels[types[i]]) continue;
        status = describe_kernel(l, types[i]);
        if (status != FRIT_OK) continue;
        of[n_added] = types[i];
        added[n_added++] = l->kernels[types[i]];
    }
    if (status == FRIT_OK) status = frit_cuda_kernels_make(l->gpu, l->compiler, l->pool, added, n_added);
    for (size_t i = 0; i < n_added && status != FRIT_OK; i++) {
        free(l->kernels[of[i]]);
        l->kernels[of[i]] = NULL;
    }
    return status;
}

// ------------------------------------------------------------------------------- pieces

typedef struct copy_job {
    uint8_t *to;
    const uint8_t *from;
    size_t n_bytes;
} copy_job;

static void copy_part(void *ctx, int thread, int n_threads)
{
    const copy_job *job = ctx;
    const size_t begin = job->n_bytes * (size_t)thread / (size_t)n_threads,
                 end = job->n_bytes * (size_t)(thread + 1) / (size_t)n_threads;
    memcpy(job->to + begin, job->from + begin, end - begin);
}

// The next piece, after the GPU has read its former content.
static frit_status take_piece(frit_cuda_loader *l, frit_cuda_piece **piece)
{
    *piece = &l->pieces[l->next];
    l->next = (l->next + 1) % FRIT_CUDA_PIECES;
    if (!(*piece)->is_used) return FRIT_OK;
    return check_driver(l, l->gpu->driver->event_wait((*piece)->is_read), "waiting for a copy");
}

static void fill_piece(frit_cuda_loader *l, frit_cuda_piece *piece, size_t at, const uint8_t *from, size_t n_bytes)
{
    copy_job job = {.to = piece->host + at, .from = from, .n_bytes = n_bytes};
    frit_pool_run(l->pool, copy_part, &job);
}

static frit_status give_back(frit_cuda_loader *l, frit_cuda_piece *piece)
{
    piece->is_used = true;
    return check_driver(l, l->gpu->driver->event_record(piece->is_read, piece->stream), "recording an event");
}

frit_status frit_cuda_load_bytes(frit_cuda_loader *l, const void *from, uint64_t n_bytes, uint64_t to)
{
    for (uint64_t at = 0; at < n_bytes; at += FRIT_CUDA_PIECE_BYTES) {
        const uint64_t left = n_bytes - at;
        const size_t n = left < FRIT_CUDA_PIECE_BYTES ? (size_t)left : FRIT_CUDA_PIECE_BYTES;
        frit_cuda_piece *piece;
        FRIT_TRY(take_piece(l, &piece));
        fill_piece(l, piece, 0, (const uint8_t *)from + at, n);
        FRIT_TRY(
            check_driver(l, l->gpu->driver->copy_up(to + at, piece->host, n, piece->stream), "copying to the GPU"));
        FRIT_TRY(give_back(l, piece));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- tiles

// Number of rows of each matrix that make up whole tiles.
static int64_t rows_of_unit(const frit_tile_source *source)
{
    if (source->order == FRIT_CUDA_ORDER_GATED) return FRIT_TILE_ROWS / 2;
    return source->order == FRIT_CUDA_ORDER_NEOX ? source->head_size : FRIT_TILE_ROWS;
}

// Loads rows [begin, end) of the matrix, or of both matrices of a gated pair.
static frit_status load_piece(frit_cuda_loader *l, const frit_tile_format *format, const frit_tile_source *source,
                              int64_t begin, int64_t end, uint64_t to)
{
    const frit_dtype_info *type = frit_dtype_get(format->dtype);
    const uint64_t row_bytes = frit_dtype_row_bytes(format->dtype, source->n_columns);
    const size_t n_bytes = (size_t)((uint64_t)(end - begin) * row_bytes), at = (n_bytes + 15) / 16 * 16;
    const bool is_gated = source->order == FRIT_CUDA_ORDER_GATED;
    const int64_t n_tiles = ((end - begin) * (is_gated ? 2 : 1) + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS;
    frit_cuda_piece *piece;
    FRIT_TRY(take_piece(l, &piece));
    fill_piece(l, piece, 0, source->blocks + (uint64_t)begin * row_bytes, n_bytes);
    if (is_gated) fill_piece(l, piece, at, source->second + (uint64_t)begin * row_bytes, n_bytes);
    FRIT_TRY(check_driver(
        l, l->gpu->driver->copy_up(piece->device, piece->host, is_gated ? at + n_bytes : n_bytes, piece->stream),
        "copying weights to the GPU"));
    const frit_repack_args args = {.blocks = piece->device,
                                   .second = piece->device + at,
                                   .grid = l->grids[format->dtype],
                                   .out = to,
                                   .n_rows = end - begin,
                                   .n_tiles = n_tiles,
                                   .row_bytes = (int64_t)row_bytes,
                                   .n_columns = (int)source->n_columns,
                                   .bytes_of_256 = (int)(256 / type->block_elems * type->block_bytes),
                                   .order = (int)source->order,
                                   .head_pairs = source->head_size / 2};
    frit_cuda_kernel *kernel = l->kernels[format->dtype];
    const uint64_t n_units = (uint64_t)n_tiles * frit_tile_bytes(format, source) / 16;
    kernel->grid[0] = (unsigned)((n_units + THREADS - 1) / THREADS);
    kernel->grid[1] = kernel->grid[2] = 1;
    FRIT_TRY(frit_cuda_kernel_launch(l->gpu, kernel, piece->stream, &args, FRIT_CUDA_IN_ORDER));
    return give_back(l, piece);
}

frit_status frit_cuda_load_tiles(frit_cuda_loader *l, frit_dtype dtype, const frit_tile_source *source, uint64_t to)
{
    FRIT_TRY(frit_cuda_loader_prepare(l, &dtype, 1));
    const frit_tile_format *format = frit_tile_format_of(dtype);
    const uint64_t row_bytes = frit_dtype_row_bytes(dtype, source->n_columns);
    const int64_t unit = rows_of_unit(source), n_matrices = source->order == FRIT_CUDA_ORDER_GATED ? 2 : 1;
    const uint64_t unit_bytes = (uint64_t)unit * row_bytes;
    const int64_t n_units = (int64_t)((FRIT_CUDA_PIECE_BYTES - 16) / n_matrices / (int64_t)unit_bytes);
    if (n_units == 0)
        return frit_fail(FRIT_E_UNSUPPORTED, "a piece has %d rows of %d bytes; expected at most %d bytes", (int)unit,
                         (int)row_bytes, (int)FRIT_CUDA_PIECE_BYTES);
    const int64_t step = n_units * unit;
    for (int64_t row = 0; row < source->n_rows; row += step) {
        const int64_t end = row + step < source->n_rows ? row + step : source->n_rows;
        FRIT_TRY(load_piece(l, format, source, row, end, to));
        to += (uint64_t)(step * n_matrices / FRIT_TILE_ROWS) * frit_tile_bytes(format, source);
    }
    return FRIT_OK;
}

frit_status frit_cuda_loader_wait(frit_cuda_loader *l)
{
    for (int i = 0; i < FRIT_CUDA_PIECES; i++)
        FRIT_TRY(check_driver(l, l->gpu->driver->stream_wait(l->pieces[i].stream), "loading weights"));
    return FRIT_OK;
}

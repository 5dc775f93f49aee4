// SPDX-License-Identifier: MIT
// Rounding rows with the covariance of their inputs.
#include "quantize/refine_rows.h"
#include "quantize/refine_eight.h"
#include "quantize/refine_lanes.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = FRIT_REFINE_COLUMNS,
    TILED_COLUMNS = 256,
    ROWS = 32
};   // columns of a block, columns of a product in tiles, rows of a thread

typedef struct job {
    const frit_refine_input *in;
    const frit_block_format *format;
    frit_kernels kernels;
    frit_refine_rows *rows;
    size_t row_bytes;
    int64_t n_blocks;   // of a row
    double *changes;    // per ROWS rows
    _Atomic bool failed;
    _Atomic int64_t next;   // first row that no thread has claimed
} job;

// Buffers of a thread for ROWS rows.
typedef struct batch {
    const job *job;
    int64_t first, n;
    float *target, *error, *gradient, *other;   // [ROWS, width]
    float tile[ROWS][COLUMNS], directions[ROWS][FRIT_UNPACKED_CODES];
    frit_unpacked_block *blocks;   // [ROWS, n_blocks]
    frit_refine_lanes lanes;
    float curvature[COLUMNS][COLUMNS];
    // For products in tiles: rows in bfloat16, transposed results, and the kernel's scratch.
    uint8_t *plain;   // [ROWS, width]
    float transposed[TILED_COLUMNS][ROWS];
    uint8_t *scratch;
} batch;

static frit_dense_rows rows_of(const float *at, int64_t n, int64_t width)
{
    return (frit_dense_rows){at, n, width};
}

static frit_unpacked_block *block_of(const batch *b, int64_t row, int64_t column)
{
    return b->blocks + row * b->job->n_blocks + column / b->job->format->block;
}

static int group_of(const frit_block_format *format, int64_t column)
{
    return (int)(column % format->block) / format->group;
}

static float value_of(const batch *b, int64_t row, int64_t column)
{
    const frit_block_format *format = b->job->format;
    const frit_unpacked_block *block = block_of(b, row, column);
    const int g = group_of(format, column);
    const float level = frit_block_format_level(format, block->codes[column % format->block]);
    return frit_block_format_scale(block, g) * level - frit_block_format_min(block, g);
}

// ------------------------------------------------------------------------------------- products

// A factor of row products: f32 and in tiles; either may be NULL.
typedef struct multiplier {
    const float *at;
    const uint8_t *tiled;
} multiplier;

static bool is_there(multiplier m)
{
    return m.at || m.tiled;
}

// Rounds columns [begin, end) of the rows for the next calls of multiply.
static void set_columns(const batch *b, const float *x, int64_t begin, int64_t end)
{
    const int64_t n = b->job->in->width;
    for (int64_t r = 0; r < b->n && b->plain; r++)
        frit_dtype_get(FRIT_DTYPE_BF16)
            ->encode(x + r * n + begin, b->plain + (size_t)(r * n + begin) * sizeof(uint16_t), end - begin, NULL);
}

static void multiply_in_tiles(batch *b, const uint8_t *tiled, int64_t begin, int64_t n_columns, float *out)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    const frit_dense_forms m = {.tiled = (uint8_t *)(uintptr_t)tiled, .width = n}, x = {.plain = b->plain, .width = n};
    frit_dense_tile_dots(&in->dense, m, (frit_dense_block){begin, n_columns}, x, (frit_dense_block){0, b->n},
                         b->transposed[0], ROWS, b->scratch);
    for (int64_t r = 0; r < b->n; r++)
        for (int64_t k = 0; k < n_columns; k++) out[r * n + begin + k] = b->transposed[k][r];
}

// Computes columns [begin, end) of `out`: rows x times the multiplier's rows. set_columns was called for all of x.
static void multiply(batch *b, multiplier m, const float *x, int64_t begin, int64_t end, float *out)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    const int64_t most = m.tiled ? TILED_COLUMNS : COLUMNS;
    for (int64_t first = begin; first < end; first += most) {
        const int64_t n_columns = end - first < most ? end - first : most;
        if (m.tiled)
            multiply_in_tiles(b, m.tiled, first, n_columns, out);
        else
            frit_dense_dots(&in->dense, rows_of(x, b->n, n), rows_of(m.at + first * n, n_columns, n), n, out + first,
                            n);
    }
}

static void multiply_all(batch *b, multiplier m, const float *x, float *out)
{
    set_columns(b, x, 0, b->job->in->width);
    multiply(b, m, x, 0, b->job->in->width, out);
}

// ------------------------------------------------------------------------------------- the target

// Solves y U^T = b for columns [begin, end) of y. Blocks are called from the last to the first.
static void solve_upper(batch *b, float *y, int64_t begin, int64_t end)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    if (end < n)
        frit_dense_dots(&in->dense, rows_of(y + end, b->n, n), rows_of(in->factor + begin * n + end, end - begin, n),
                        n - end, b->tile[0], COLUMNS);
    for (int64_t r = 0; r < b->n; r++) {
        float *row = y + r * n;
        for (int64_t k = begin; k < end && end < n; k++) row[k] -= b->tile[r][k - begin];
        for (int64_t k = end; k-- > begin;)
            for (int64_t j = begin; j < k; j++) row[j] -= in->factor[k * n + j] * row[k];
    }
}

// Solves x U = z for columns [begin, end) of x. Blocks are called from the first to the last.
static void solve_lower(batch *b, float *x, int64_t begin, int64_t end)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    if (begin > 0)
        frit_dense_dots(&in->dense, rows_of(x, b->n, n), rows_of(in->factor + begin * n, end - begin, n), begin,
                        b->tile[0], COLUMNS);
    for (int64_t r = 0; r < b->n; r++) {
        float *row = x + r * n;
        for (int64_t k = begin; k < end && begin > 0; k++) row[k] -= b->tile[r][k - begin];
        for (int64_t k = begin; k < end; k++)
            for (int64_t j = k + 1; j < end; j++) row[j] -= in->factor[k * n + j] * row[k];
    }
}

// Computes alpha D w for the rows.
static void multiply_cross(batch *b, multiplier cross, float *out)
{
    const int64_t n = b->job->in->width;
    multiply_all(b, cross, b->job->rows->weights + b->first * n, out);
    for (int64_t i = 0; i < b->n * n; i++) out[i] *= b->job->in->alpha;
}

static void find_target(batch *b)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    memcpy(b->target, b->job->rows->weights + b->first * n, (size_t)(b->n * n) * sizeof(float));
    const multiplier cross = {in->cross, in->tiles.cross};
    if (!is_there(cross)) return;
    float *x = b->error;
    multiply_cross(b, cross, x);
    for (int64_t end = n; end > 0; end -= end % COLUMNS ? end % COLUMNS : COLUMNS)
        solve_upper(b, x, end - (end % COLUMNS ? end % COLUMNS : COLUMNS), end);
    for (int64_t r = 0; r < b->n; r++)
        for (int64_t k = 0; k < n; k++) x[r * n + k] /= in->diagonal[k];
    for (int64_t begin = 0; begin < n; begin += COLUMNS)
        solve_lower(b, x, begin, begin + COLUMNS < n ? begin + COLUMNS : n);
    for (int64_t i = 0; i < b->n * n; i++) b->target[i] += x[i];
}

// ------------------------------------------------------------------------------------- column by column

// Sets the code nearest to `wanted` and returns its value.
static float round_to_level(const batch *b, int64_t row, int64_t column, float wanted)
{
    const frit_block_format *format = b->job->format;
    frit_unpacked_block *block = block_of(b, row, column);
    const int g = group_of(format, column);
    const float scale = frit_block_format_scale(block, g), min = frit_block_format_min(block, g);
    int8_t *code = &block->codes[column % format->block];
    if (scale != 0) *code = (int8_t)frit_block_format_nearest(format, (wanted + min) / scale);
    return scale * frit_block_format_level(format, *code) - min;
}

// Rounds eight columns from k on together. `made_up` is the compensation of earlier errors.
static void round_eight(const batch *b, int64_t row, int64_t k, const float *made_up)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    const float *diagonal = in->diagonal + k, *target = b->target + row * n + k;
    frit_unpacked_block *block = block_of(b, row, k);
    int8_t *codes = block->codes + k % b->job->format->block;
    frit_refine_eight eight = {.format = b->job->format,
                               .scale = frit_block_format_scale(block, group_of(b->job->format, k))};
    for (int i = 0; i < 8; i++) {
        const float *u = in->factor + (k + i) * n + k;
        eight.now[i] = target[i];
        for (int l = i; l < 8; l++) eight.gradient[i] -= (l == i ? 1 : u[l]) * diagonal[l] * made_up[l];
        for (int j = 0; j < 8; j++) {
            const float *v = in->factor + (k + j) * n + k;
            for (int l = i > j ? i : j; l < 8; l++)
                eight.curvature[i][j] += (l == i ? 1 : u[l]) * (l == j ? 1 : v[l]) * diagonal[l];
        }
    }
    if (eight.scale != 0) frit_refine_eight_find(&eight, codes);
    for (int i = 0; i < 8; i++) b->error[row * n + k + i] = target[i] - eight.scale * (float)codes[i];
}

// Rounds columns [begin, end). `error` is the target minus the result.
static void round_columns(batch *b, int64_t begin, int64_t end)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    const bool is_grid = b->job->format->is_grid;
    memset(b->tile, 0, sizeof b->tile);
    if (begin > 0)
        frit_dense_dots(&in->dense, rows_of(b->error, b->n, n), rows_of(in->factor + begin * n, end - begin, n), begin,
                        b->tile[0], COLUMNS);
    for (int64_t r = 0; r < b->n; r++) {
        const float *target = b->target + r * n;
        float *error = b->error + r * n, *made_up = b->tile[r];
        for (int64_t k = begin; k < end; k++) {
            const float *u = in->factor + k * n;
            if (!is_grid)
                error[k] = target[k] - round_to_level(b, r, k, target[k] + made_up[k - begin]);
            else if (k % 8 == 0)
                round_eight(b, r, k, made_up + k - begin);
            for (int64_t j = k + 1; j < end; j++) made_up[j - begin] += u[j] * error[k];
        }
    }
}

// ------------------------------------------------------------------------------------- descent

// Loads sixteen rows, or the rest, from row `first` on as lanes.
static void load_lanes(batch *b, int64_t first, int64_t begin, int64_t end)
{
    const frit_block_format *format = b->job->format;
    frit_refine_lanes *l = &b->lanes;
    const int64_t width = b->job->in->width;
    *l = (frit_refine_lanes){
        .format = format, .kernels = &b->job->kernels, .n = (int)(end - begin), .h = b->curvature[0]};
    for (int64_t r = first; r < b->n && r < first + FRIT_REFINE_LANES; r++) {
        const float *target = b->target + r * width, *error = b->error + r * width, *gradient = b->gradient + r * width;
        for (int64_t k = begin; k < end; k++) {
            l->now[k - begin][r - first] = target[k] + error[k];
            l->gradient[k - begin][r - first] = gradient[k];
            l->codes[k - begin][r - first] = block_of(b, r, k)->codes[k % format->block];
        }
        for (int64_t k = begin; k < end; k += format->group) {
            const frit_unpacked_block *block = block_of(b, r, k);
            const int64_t g = (k - begin) / format->group;
            l->d[g][r - first] = block->d;
            l->dmin[g][r - first] = block->dmin;
            l->scales[g][r - first] = block->scales[group_of(format, k)];
            l->mins[g][r - first] = format->min_high > 0 ? block->mins[group_of(format, k)] : 0;
        }
    }
}

// Stores the lanes. `other` gets the changes of the numbers.
static void store_lanes(batch *b, int64_t first, int64_t begin, int64_t end)
{
    const frit_block_format *format = b->job->format;
    const frit_refine_lanes *l = &b->lanes;
    const int64_t width = b->job->in->width;
    for (int64_t r = first; r < b->n && r < first + FRIT_REFINE_LANES; r++) {
        const float *target = b->target + r * width;
        float *error = b->error + r * width, *gradient = b->gradient + r * width, *other = b->other + r * COLUMNS;
        for (int64_t k = begin; k < end; k++) {
            const float next = l->now[k - begin][r - first] - target[k];
            other[k - begin] = next - error[k];
            error[k] = next;
            gradient[k] = l->gradient[k - begin][r - first];
            block_of(b, r, k)->codes[k % format->block] = (int8_t)l->codes[k - begin][r - first];
        }
        for (int64_t k = begin; k < end; k += format->group) {
            frit_unpacked_block *block = block_of(b, r, k);
            const int64_t g = (k - begin) / format->group;
            block->d = l->d[g][r - first];
            block->dmin = l->dmin[g][r - first];
            block->scales[group_of(format, k)] = (int16_t)l->scales[g][r - first];
            if (format->min_high > 0) block->mins[group_of(format, k)] = (int16_t)l->mins[g][r - first];
        }
    }
}

static void load_curvature(batch *b, int64_t begin, int64_t end)
{
    const frit_refine_input *in = b->job->in;
    for (int64_t k = begin; k < end; k++) {
        memcpy(b->curvature[k - begin], in->sums + k * in->width + begin, (size_t)(end - begin) * sizeof(float));
        b->curvature[k - begin][k - begin] += in->damping;
    }
}

// Computes the gradient of the squared error in columns [begin, end).
static void find_gradient(batch *b, int64_t begin, int64_t end)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    multiply(b, (multiplier){in->sums, in->tiles.sums}, b->error, begin, end, b->gradient);
    for (int64_t r = 0; r < b->n; r++)
        for (int64_t k = begin; k < end; k++) b->gradient[r * n + k] += in->damping * b->error[r * n + k];
}

// Improves codes, scales and mins of columns [begin, end) of a unit, and updates the gradient of the unit's other
// columns.
static void improve_columns(batch *b, int64_t begin, int64_t end, int64_t unit, int64_t unit_end)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    load_curvature(b, begin, end);
    for (int64_t first = 0; first < b->n; first += FRIT_REFINE_LANES) {
        load_lanes(b, first, begin, end);
        frit_refine_lanes_improve(&b->lanes);
        store_lanes(b, first, begin, end);
    }
    for (int64_t first = unit; first < unit_end; first += COLUMNS) {
        const int64_t last = first + COLUMNS < unit_end ? first + COLUMNS : unit_end;
        if (first == begin) continue;   // already updated
        frit_dense_dots(&in->dense, rows_of(b->other, b->n, COLUMNS),
                        rows_of(in->sums + first * n + begin, last - first, n), end - begin, b->tile[0], COLUMNS);
        for (int64_t r = 0; r < b->n; r++)
            for (int64_t k = first; k < last; k++) b->gradient[r * n + k] += b->tile[r][k - first];
    }
}

// Computes the derivative of the numbers with respect to d (or dmin) of the super-block at `first`.
static void find_direction(const batch *b, int64_t row, int64_t first, bool of_mins, float *direction)
{
    const frit_block_format *format = b->job->format;
    const frit_unpacked_block *block = block_of(b, row, first);
    for (int i = 0; i < format->block; i++) {
        const int g = i / format->group;
        const float level = frit_block_format_level(format, block->codes[i]);
        direction[i] = of_mins ? -(float)block->mins[g] : (float)block->scales[g] * level;
    }
}

// Computes the best step of d (or dmin) of each row: -slope / curve.
static void find_steps(batch *b, int64_t first, float *steps)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    float slopes[ROWS] = {0}, curves[ROWS] = {0};
    for (int64_t begin = 0; begin < b->job->format->block; begin += COLUMNS) {
        frit_dense_dots(&in->dense, rows_of(b->directions[0], b->n, FRIT_UNPACKED_CODES),
                        rows_of(in->sums + (first + begin) * n + first, COLUMNS, n), b->job->format->block, b->tile[0],
                        COLUMNS);
        for (int64_t r = 0; r < b->n; r++) {
            const float *direction = b->directions[r] + begin, *gradient = b->gradient + r * n + first + begin;
            for (int k = 0; k < COLUMNS; k++) {
                curves[r] += direction[k] * (b->tile[r][k] + in->damping * direction[k]);
                slopes[r] += direction[k] * gradient[k];
            }
        }
    }
    for (int64_t r = 0; r < b->n; r++) steps[r] = curves[r] > 0 ? -slopes[r] / curves[r] : 0;
}

// Takes the steps. Directions become the changes of the numbers.
static void take_steps(batch *b, int64_t first, bool of_mins, const float *steps)
{
    const int64_t n = b->job->in->width;
    for (int64_t r = 0; r < b->n; r++) {
        frit_unpacked_block *block = block_of(b, r, first);
        float *factor = of_mins ? &block->dmin : &block->d;
        const float next = frit_block_format_nearest_d(b->job->format, *factor + steps[r]);
        const bool is_allowed = next * *factor > 0 && isfinite(next);   // codes keep their signs
        const float step = is_allowed ? next - *factor : 0;
        if (is_allowed) *factor = next;
        for (int i = 0; i < b->job->format->block; i++) {
            b->directions[r][i] *= step;
            b->error[r * n + first + i] += b->directions[r][i];
        }
    }
}

// Updates the gradient in the super-blocks' own columns.
static void follow_directions(batch *b, int64_t first)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width, end = first + b->job->format->block;
    for (int64_t begin = first; begin < end; begin += COLUMNS) {
        frit_dense_dots(&in->dense, rows_of(b->directions[0], b->n, FRIT_UNPACKED_CODES),
                        rows_of(in->sums + begin * n + first, COLUMNS, n), end - first, b->tile[0], COLUMNS);
        for (int64_t r = 0; r < b->n; r++)
            for (int k = 0; k < COLUMNS; k++)
                b->gradient[r * n + begin + k] += b->tile[r][k] + in->damping * b->directions[r][begin - first + k];
    }
}

// Improves d, then dmin of the super-blocks at `first`.
static void improve_super_blocks(batch *b, int64_t first)
{
    const bool has_mins = b->job->format->min_high > 0;
    float steps[ROWS];
    for (int of_mins = 0; of_mins <= has_mins; of_mins++) {
        for (int64_t r = 0; r < b->n; r++) find_direction(b, r, first, of_mins, b->directions[r]);
        find_steps(b, first, steps);
        take_steps(b, first, of_mins, steps);
        if (has_mins && !of_mins) follow_directions(b, first);
    }
}

static bool has_integers(const frit_block_format *format)
{
    return format->scale_low < format->scale_high;
}

// Improves a super-block, or several small blocks. The gradient is computed once for the unit.
static void improve_unit(batch *b, int64_t begin, int64_t end)
{
    const frit_block_format *format = b->job->format;
    find_gradient(b, begin, end);
    for (int64_t first = begin; first < end; first += COLUMNS)
        improve_columns(b, first, first + COLUMNS < end ? first + COLUMNS : end, begin, end);
    for (int64_t first = begin; first < end && has_integers(format); first += format->block)
        improve_super_blocks(b, first);
    set_columns(b, b->error, begin, end);
}

static void descend_rows(batch *b)
{
    const int64_t n = b->job->in->width, unit = b->job->format->block < COLUMNS ? COLUMNS : b->job->format->block;
    for (int64_t i = 0; i < b->n * n; i++) b->error[i] = -b->error[i];   // result minus target
    set_columns(b, b->error, 0, n);
    for (int round = 0; round < b->job->in->rounds; round++)
        for (int64_t begin = 0; begin < n; begin += unit) improve_unit(b, begin, begin + unit < n ? begin + unit : n);
}

// ------------------------------------------------------------------------------------- rows

// Returns the change of the squared error on held-out tokens from the encoder's rows A to the new rows B. x are the
// inputs in the quantized model and z a mixture of x and the inputs in the original model: |W z - A x|^2 - |W z - B
// x|^2 = (A - B) (H (A + B) - 2 T W)^T.
static double compare_results(batch *b)
{
    const frit_refine_input *in = b->job->in;
    const int64_t n = in->width;
    const frit_refine_rows *rows = b->job->rows;
    float *before = b->target, *sum = b->error;
    double change = 0;
    for (int64_t r = 0; r < b->n; r++) {
        const uint8_t *initial = rows->initial + (size_t)(b->first + r) * b->job->row_bytes;
        frit_dtype_get(rows->type)->decode(initial, before + r * n, n);
        for (int64_t k = 0; k < n; k++) {
            const float now = value_of(b, r, k), weight = rows->weights[(b->first + r) * n + k];
            sum[r * n + k] = now + before[r * n + k] - 2 * weight;
            before[r * n + k] = now - before[r * n + k];
        }
    }
    const multiplier cross = {in->held_cross, in->tiles.held_cross};
    if (is_there(cross)) multiply_cross(b, cross, b->gradient);
    multiply_all(b, (multiplier){in->held, in->tiles.held}, sum, b->other);
    for (int64_t i = 0; i < b->n * n; i++)
        change += (double)before[i] * ((double)b->other[i] - (is_there(cross) ? 2 * (double)b->gradient[i] : 0));
    return change;
}

static void refine_batch(batch *b)
{
    const job *j = b->job;
    const frit_block_format *format = j->format;
    const size_t block_bytes = (size_t)frit_dtype_get(format->type)->block_bytes;
    const int64_t n = j->in->width;
    for (int64_t i = 0; i < b->n * j->n_blocks; i++)
        format->unpack(j->rows->initial + (size_t)b->first * j->row_bytes + (size_t)i * block_bytes, &b->blocks[i]);
    find_target(b);
    for (int64_t begin = 0; begin < n; begin += COLUMNS)
        round_columns(b, begin, begin + COLUMNS < n ? begin + COLUMNS : n);
    descend_rows(b);
    for (int64_t i = 0; i < b->n * j->n_blocks; i++)
        format->pack(&b->blocks[i], j->rows->blocks + (size_t)b->first * j->row_bytes + (size_t)i * block_bytes);
    if (is_there((multiplier){j->in->held, j->in->tiles.held})) j->changes[b->first / ROWS] = compare_results(b);
}

static uint8_t *aligned(uint8_t *at)
{
    return at + (64 - (uintptr_t)at % 64) % 64;
}

static void run_part(void *ctx, int thread, int n_threads)
{
    (void)thread, (void)n_threads;
    job *j = ctx;
    const bool in_tiles = j->in->tiles.sums != NULL;
    const size_t n = (size_t)(ROWS * (j->in->width < COLUMNS ? COLUMNS : j->in->width));
    batch *b = calloc(1, sizeof *b);
    float *memory = malloc(4 * n * sizeof *memory);
    frit_unpacked_block *blocks = malloc((size_t)(ROWS * j->n_blocks) * sizeof *blocks);
    const size_t n_scratch = frit_dense_tile_scratch_bytes();
    uint8_t *tiles = in_tiles ? malloc(n_scratch + n * sizeof(uint16_t) + 64) : NULL;
    if (!b || !memory || !blocks || (in_tiles && !tiles)) j->failed = true;
    for (int64_t first; !j->failed && (first = atomic_fetch_add(&j->next, ROWS)) < j->rows->n;) {
        *b = (batch){.job = j,
                     .first = first,
                     .n = j->rows->n - first < ROWS ? j->rows->n - first : ROWS,
                     .target = memory,
                     .error = memory + n,
                     .gradient = memory + 2 * n,
                     .other = memory + 3 * n,
                     .blocks = blocks,
                     .plain = tiles ? aligned(tiles) + n_scratch : NULL,
                     .scratch = tiles ? aligned(tiles) : NULL};
        refine_batch(b);
    }
    free(b);
    free(memory);
    free(blocks);
    free(tiles);
}

frit_status frit_refine_run(const frit_refine_input *input, frit_refine_rows *rows, frit_pool *pool)
{
    job j = {.in = input, .format = frit_block_format_get(rows->type), .rows = rows};
    frit_isa_install(&j.kernels, NULL, FRIT_FOR_ANY);
    if (!j.format || input->width % j.format->block != 0)
        return frit_fail(FRIT_E_INVALID, "rows of %lld numbers of %s cannot be refined", (long long)input->width,
                         frit_dtype_get(rows->type)->name);
    const size_t n_batches = (size_t)(rows->n + ROWS - 1) / ROWS;
    j.row_bytes = (size_t)frit_dtype_row_bytes(rows->type, input->width);
    j.n_blocks = input->width / j.format->block;
    j.changes = calloc(n_batches + 1, sizeof *j.changes);
    if (!j.changes) return frit_fail_memory(n_batches * sizeof *j.changes, "errors of rows");
    frit_pool_run(pool, run_part, &j);
    rows->change = 0;
    for (size_t i = 0; i < n_batches; i++) rows->change += j.changes[i];
    free(j.changes);
    return j.failed ? frit_fail_memory((size_t)(4 * ROWS * input->width) * sizeof(float), "rows to refine") : FRIT_OK;
}

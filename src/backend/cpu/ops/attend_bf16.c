// SPDX-License-Identifier: MIT
// Attention of many queries in bf16. frit_attend_bf16 of kernels.h defines how scores become weights.
//
// The weights of a query are relative to the score of its own position, which it always sees. Other scores need not be
// known, and maxima are searched only if a score is 40 octaves larger.
#include "backend/cpu/ops/attend.h"

#include <math.h>
#include <string.h>

#define OCTAVES_OF_E 1.44269504f   // log2(e)

typedef struct queries {
    int64_t n, n_padded, k_padded, acc_stride;
    uint8_t *q;
    float *acc, *lift, *slope;             // [n_padded, acc_stride], [n_padded], [n_padded]
    float *max, *sum;                      // [n_padded]: results
    int32_t *begin, *end, *own_position;   // [n_padded]
    float *row;                            // [2, k_padded]
    float *page;                           // frit_kv_page_scratch_bytes
    uint8_t *tiles, *scratch;              // tiles of a span without stored tiles; scratch of the kernel
} queries;

static int64_t up_to(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static size_t workspace_bytes(int64_t n, int64_t k_dim, int64_t v_dim)
{
    const int64_t padded = up_to(n, FRIT_BF16_QUERIES), k_padded = up_to(k_dim, FRIT_TILE_COLUMNS);
    const int64_t n_floats = padded * k_padded / 2 + frit_attend_round_up(padded * (v_dim + 16)) + 7 * padded +
                             frit_attend_round_up(2 * k_padded);
    return (size_t)n_floats * sizeof(float) + frit_kv_page_scratch_bytes(k_dim, v_dim) +
           FRIT_BF16_PAGES * frit_bf16_page_bytes(k_dim, v_dim) + FRIT_BF16_SCRATCH;
}

static queries take_room(const frit_attend_item *item, float *workspace)
{
    const frit_attend_shape *s = item->shape;
    queries q = {.n = frit_attend_queries(item), .acc_stride = s->v_dim + 16};
    q.n_padded = up_to(q.n, FRIT_BF16_QUERIES), q.k_padded = up_to(s->k_dim, FRIT_TILE_COLUMNS);
    q.q = frit_attend_take(&workspace, q.n_padded * q.k_padded / 2);
    q.acc = frit_attend_take(&workspace, q.n_padded * q.acc_stride);
    q.lift = frit_attend_take(&workspace, q.n_padded);
    q.slope = frit_attend_take(&workspace, q.n_padded);
    q.max = frit_attend_take(&workspace, q.n_padded);
    q.sum = frit_attend_take(&workspace, q.n_padded);
    q.begin = frit_attend_take(&workspace, q.n_padded);
    q.end = frit_attend_take(&workspace, q.n_padded);
    q.own_position = frit_attend_take(&workspace, q.n_padded);
    q.row = frit_attend_take(&workspace, 2 * q.k_padded);
    q.page = frit_attend_take(&workspace, (int64_t)(frit_kv_page_scratch_bytes(s->k_dim, s->v_dim) / sizeof(float)));
    q.tiles = (uint8_t *)workspace;
    q.scratch = q.tiles + FRIT_BF16_PAGES * frit_bf16_page_bytes(s->k_dim, s->v_dim);
    return q;
}

// Rounds to bf16.
static float round_bytes(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The score of a query with the key of its own position, with factors rounded as in the kernel: rounding may move large
// scores by more octaves than weights have. n is a multiple of the number of accumulators.
static float own_score(const float *query, const float *key, int64_t n, float softcap)
{
    float sums[8] = {0}, score = 0;
    for (int64_t d = 0; d < n; d += 8)
        for (int i = 0; i < 8; i++) sums[i] += round_bytes(query[d + i]) * round_bytes(key[d + i]);
    for (int i = 0; i < 8; i++) score += sums[i];
    return softcap != 0 ? softcap * tanhf(score / softcap) : score;
}

static queries gather_queries(const frit_attend_item *item, float *workspace)
{
    const frit_attend_shape *s = item->shape;
    const frit_attend *attend = &item->task->node->attend;
    const frit_kernels *kernels = item->kernels;
    const float unit = FRIT_OCTAVE * OCTAVES_OF_E;
    queries q = take_room(item, workspace);
    float *query_row = q.row, *key = q.row + q.k_padded;
    memset(q.acc, 0, (size_t)(q.n_padded * q.acc_stride) * sizeof(float));
    memset(q.row, 0, 2 * (size_t)q.k_padded * sizeof(float));
    for (int64_t i = 0; i < q.n_padded; i++) {
        q.lift[i] = q.slope[i] = 0;
        q.own_position[i] = q.begin[i] = q.end[i] = 0;
        if (i == q.n) memset(query_row, 0, (size_t)q.k_padded * sizeof(float));
        if (i < q.n) {
            const frit_attend_query query = frit_attend_query_at(item, i);
            if (i % s->group == 0)
                frit_attend_decode_positions(item, &s->layer->k,
                                             (frit_range){query.own_position, query.own_position + 1}, key);
            frit_attend_load_query(item, &query, unit, query_row);
            q.lift[i] = frit_bf16_lift(own_score(query_row, key, q.k_padded, unit * attend->softcap));
            q.slope[i] = unit * frit_attend_slope(attend, query.head, s->n_head);
            q.begin[i] = (int32_t)query.seen.begin, q.end[i] = (int32_t)query.seen.end,
            q.own_position[i] = (int32_t)query.own_position;
        }
        kernels->convert[FRIT_FORM_BF16_TILES](query_row, frit_form_row(FRIT_FORM_BF16_TILES, q.q, i, q.k_padded),
                                               q.k_padded);
    }
    return q;
}

// ------------------------------------------------------------------------------- pages as tiles

size_t frit_kv_page_scratch_bytes(int64_t k_dim, int64_t v_dim)
{
    const int64_t n_floats =
        frit_attend_round_up(FRIT_PAGE_TOKENS * k_dim) + frit_attend_round_up(FRIT_PAGE_TOKENS * v_dim);
    return (size_t)n_floats * sizeof(float);
}

// Sets the rows of a page, in the cache or decoded. Returns their type.
static frit_dtype find_rows(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                            float *decoded, const uint8_t **rows, uint64_t *row_bytes)
{
    const bool direct = side->dtype == FRIT_DTYPE_F16 || side->dtype == FRIT_DTYPE_BF16;
    const int64_t first = frit_page_begin(positions.begin);
    if (!direct) frit_attend_decode_positions(item, side, positions, decoded + (positions.begin - first) * side->dim);
    *row_bytes = direct ? side->row_bytes : (uint64_t)side->dim * sizeof(float);
    *rows = direct ? frit_cache_at(side, item->pages, first, item->head) : (const uint8_t *)decoded;
    return direct ? side->dtype : FRIT_DTYPE_F32;
}

void frit_kv_page_to_tiles(const frit_attend_item *item, int64_t page, frit_range seen, float *workspace,
                           uint8_t *tiles)
{
    const frit_cache_layer *layer = item->shape->layer;
    const int64_t first = page * FRIT_PAGE_TOKENS, end = first + FRIT_PAGE_TOKENS;
    const frit_range positions = {seen.begin > first ? seen.begin : first, seen.end < end ? seen.end : end};
    frit_bf16_page packed = {.begin = (int)(positions.begin - first),
                             .end = (int)(positions.end - first),
                             .k_dim = item->shape->k_dim,
                             .v_dim = item->shape->v_dim,
                             .tiles = tiles};
    float *k = frit_attend_take(&workspace, FRIT_PAGE_TOKENS * packed.k_dim), *v = workspace;
    packed.k_type = find_rows(item, &layer->k, positions, k, &packed.k, &packed.k_bytes);
    packed.k_transposed = layer->k.transposed && packed.k_type != FRIT_DTYPE_F32;
    packed.v_type = find_rows(item, &layer->v, positions, v, &packed.v, &packed.v_bytes);
    item->kernels->pack_kv_page(&packed);
}

static frit_range pages_of(frit_range positions)
{
    return (frit_range){positions.begin / FRIT_PAGE_TOKENS, (positions.end + FRIT_PAGE_TOKENS - 1) / FRIT_PAGE_TOKENS};
}

// The stored tiles of these pages, or NULL.
static const uint8_t *load_page_tiles(const frit_attend_item *item, frit_range pages)
{
    if (item->tiled.begin > pages.begin || item->tiled.end < pages.end) return NULL;
    const size_t page_bytes = frit_bf16_page_bytes(item->shape->k_dim, item->shape->v_dim);
    return item->tiles + (size_t)(pages.begin - item->tiled.begin) * page_bytes;
}

// The tiles of at most FRIT_BF16_PAGES pages, stored or made now.
static const uint8_t *tiles_of(const frit_attend_item *item, frit_range positions, const queries *q)
{
    const size_t page_bytes = frit_bf16_page_bytes(item->shape->k_dim, item->shape->v_dim);
    const frit_range pages = pages_of(positions);
    const uint8_t *there = load_page_tiles(item, pages);
    if (there) return there;
    for (int64_t page = pages.begin; page < pages.end; page++)
        frit_kv_page_to_tiles(item, page, positions, q->page, q->tiles + (size_t)(page - pages.begin) * page_bytes);
    return q->tiles;
}

// ------------------------------------------------------------------------------- items

// Up to FRIT_BF16_PAGES pages from p on.
static frit_range span_from(int64_t p, int64_t end)
{
    const int64_t next = frit_page_begin(p) + FRIT_BF16_SPAN;
    return (frit_range){p, next < end ? next : end};
}

static void attend_pages(const frit_attend_item *item, frit_range positions, frit_range next, queries *q)
{
    const frit_attend_shape *s = item->shape;
    const frit_attend *attend = &item->task->node->attend;
    const frit_range ahead = pages_of(next);
    const size_t page_bytes = frit_bf16_page_bytes(s->k_dim, s->v_dim);
    item->kernels->attend_bf16(&(frit_attend_bf16){.n_queries = q->n_padded,
                                                   .k_dim = s->k_dim,
                                                   .v_dim = s->v_dim,
                                                   .tiles = tiles_of(item, positions, q),
                                                   .ahead = load_page_tiles(item, ahead),
                                                   .n_ahead = (size_t)(ahead.end - ahead.begin) * page_bytes,
                                                   .first = (int32_t)frit_page_begin(positions.begin),
                                                   .begin = (int32_t)positions.begin,
                                                   .end = (int32_t)positions.end,
                                                   .q = q->q,
                                                   .lift = q->lift,
                                                   .acc = q->acc,
                                                   .seen_begin = q->begin,
                                                   .seen_end = q->end,
                                                   .slope = attend->alibi != 0 ? q->slope : NULL,
                                                   .own_position = q->own_position,
                                                   .softcap = FRIT_OCTAVE * OCTAVES_OF_E * attend->softcap,
                                                   .scratch = q->scratch});
}

static void run_item(const frit_attend_item *item, frit_range positions, float *workspace, frit_attend_sums *sums)
{
    queries q = gather_queries(item, workspace);
    for (int64_t p = positions.begin; p < positions.end;) {
        const frit_range now = span_from(p, positions.end);
        attend_pages(item, now, span_from(now.end, positions.end), &q);
        p = now.end;
    }
    for (int64_t i = 0; i < q.n; i++) {
        q.max[i] = (127 - q.lift[i] / FRIT_OCTAVE) / OCTAVES_OF_E;
        q.sum[i] = 0;
        for (int k = 0; k < 16; k++) q.sum[i] += q.acc[i * q.acc_stride + item->shape->v_dim + k];
    }
    *sums = (frit_attend_sums){q.max, q.sum, q.acc, q.acc_stride};
}

const frit_attend_way frit_attend_by_bf16 = {workspace_bytes, run_item, false};

// SPDX-License-Identifier: MIT
// Attention over the paged cache: the work, cut into items that do not depend on the number of threads.
//
//     seq - block of rows - head of the cache - chunk of positions
//
// A chunk has sums of its own, which are folded together in the order of the positions. Chunks begin at fixed positions
// of a text, so a result is the same whatever else the step holds and however the text is cut into steps. (In bf16,
// the seq decides.) The step only decides which thread computes the chunks: where there is room for their sums, each is
// an item, and frit_fast_attend_merge folds; where a step has work enough without, one item computes a block's chunks
// one after the other, and folds them as it goes.
//
// Where blocks of a seq look at the same positions in bf16, keys and values are stored as tiles once for all of
// them, before: as many pages as there is room for.
#include "backend/cpu/ops/attend.h"
#include "backend/cpu/ops/fast.h"
#include "quant/hadamard.h"
#include "base/minmax.h"

#include <string.h>

enum {
    ROW_QUERIES = 16,          // of a block, rows x group, unless the group alone is larger
    TILE_QUERIES = 256,        // the same where many queries share decoded keys and values,
    MOST_TILE_QUERIES = 384,   // at most
    BF16_QUERIES = 128,        // and where blocks share them
    MAX_CHUNKS = 128,          // of a block
    BF16_CHUNKS = 32,          // of a block in bf16
    CHUNK_STEP = 128,          // positions, in bf16
    PREFILL_ITEMS = 32,        // of a run with many rows: blocks x heads x chunks
    CHUNKED_ROWS = 512,        // rows x chunks that a step has room for
    PAGES_OF_ROW = 8,          // in tiles, for each row and four heads of the graph,
    LESS_TILED = 16,           // a part of that where vectors multiply, which are slower than what makes tiles
    TILED_BYTES = 256 << 20,   // the same, at most
};

// ------------------------------------------------------------------------------- blocks

typedef struct block {   // neighbouring rows of one sequence
    const frit_seq *seq;
    int64_t first, n_rows;   // of the sequence
    frit_range span;         // positions that some row looks at; memory before it may hold anything
    int64_t chunk;           // in bf16: positions of a chunk; the first begins where the page of span.begin does
    int64_t first_chunk;     // else: of the text
    int64_t n_chunks;
    int64_t sums;   // where the sums of its chunks lie; -1: the block is one item for each head
    int64_t n_items;
} block;

typedef struct tiled {   // the pages of a run as tiles, one head after the other
    frit_range seen;     // positions
    frit_range pages;
    int64_t first;   // tiles of so many pages lie before
} tiled;

typedef struct walk {   // over the blocks of a step
    const frit_task *task;
    frit_attend_shape shape;
    int seq;              // the next block is in
    int64_t first;        // and begins at
    int64_t block_rows;   // of blocks of that sequence
    int64_t n_sums;       // taken so far: rows x chunks
    int64_t n_tiled;      // the same: pages x heads of the cache
    tiled tiled;          // of that sequence
    block b;              // this one
} walk;

static walk begin_walk(const frit_task *task)
{
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->attend.layer];
    walk w = {.task = task};
    w.shape = (frit_attend_shape){
        .layer = layer, .n_head = task->node->src[0]->shape[1], .k_dim = layer->k.dim, .v_dim = layer->v.dim};
    w.shape.group = w.shape.n_head / layer->spec.n_head_kv;
    return w;
}

// Whether rows of this seq look at chosen positions only: as long as all can be chosen, all are looked at.
static bool is_some(const walk *w, const frit_seq *seq)
{
    const frit_node *node = w->task->node;
    return node->op == FRIT_OP_ATTEND_SPARSE && seq->n_past + seq->n_rows > node->src[2]->shape[1];
}

// Queries that lie side by side must be neighbours where scores depend on how far they are.
static bool is_prefill(const walk *w, const frit_seq *seq)
{
    if (is_some(w, seq) || (w->task->node->attend.reach > 0 && w->shape.group != 1)) return false;
    return frit_seq_kernels(w->task->env, seq)->attend_tile &&
           (w->shape.group > FRIT_DECODE_GROUP || seq->n_rows >= FRIT_PREFILL_ATTEND_ROWS);
}

// Whether bfloat16 adds little: to what was rounded when it was written, unless f16 is as coarse as the model gets.
static bool is_coarse(const frit_task_env *env, const frit_cache_layer *layer)
{
    const frit_dtype k = layer->k.dtype, v = layer->v.dtype;
    if (k == FRIT_DTYPE_F32 || v == FRIT_DTYPE_F32) return false;
    return !env->fine || k != FRIT_DTYPE_F16 || v != FRIT_DTYPE_F16;
}

static bool is_in_bf16(const walk *w, const frit_seq *seq)
{
    const frit_task_env *env = w->task->env;
    const frit_kernels *kernels = frit_seq_kernels(env, seq);
    const frit_cache_layer *layer = w->shape.layer;
    const frit_attend *attend = &w->task->node->attend;
    if (!kernels->attend_bf16 || !is_coarse(env, layer) || layer->v.dim % 16 != 0) return false;
    if (attend->cross || attend->reach > 0 || is_some(w, seq)) return false;   // it begins at the query's own score
    return kernels->attend_bf16_if_long ? seq->is_long : is_prefill(w, seq);
}

// By the sequence, not by what is left of it: a prompt's last row sums in the order of those before it.
static const frit_attend_way *way_of(const walk *w, const frit_seq *seq)
{
    if (is_in_bf16(w, seq)) return &frit_attend_by_bf16;
    return is_prefill(w, seq) ? &frit_attend_by_tiles : &frit_attend_by_rows;
}

// By tiles, blocks as long as each other, so that no short one decodes all keys and values for a few queries, in whole
// pairs of panels: half as many queries again as TILE_QUERIES at most.
static int64_t even_block_rows(const frit_seq *seq, int64_t group)
{
    const int64_t n_blocks = frit_max_i64(1, (seq->n_rows * group + TILE_QUERIES / 2) / TILE_QUERIES);
    const int64_t n_rows = (seq->n_rows + n_blocks - 1) / n_blocks;
    const int64_t step = frit_max_i64(1, 2 * FRIT_ATTEND_LANES / (group & -group));   // rows that fill pairs of panels
    return frit_min_i64((n_rows + step - 1) / step * step, frit_max_i64(1, MOST_TILE_QUERIES / group));
}

static int64_t block_rows_of(const walk *w, const frit_seq *seq)
{
    const frit_attend_way *way = way_of(w, seq);
    if (is_some(w, seq)) return 1;
    if (way == &frit_attend_by_tiles) return even_block_rows(seq, w->shape.group);
    return frit_max_i64(1, (way == &frit_attend_by_bf16 ? BF16_QUERIES : ROW_QUERIES) / w->shape.group);
}

static int64_t blocks_of(const walk *w, const frit_seq *seq)
{
    return (seq->n_rows + w->block_rows - 1) / w->block_rows;
}

// Few long chunks: in bf16, folding costs much of what adding costs.
static void cut_for_bf16(const walk *w, block *b)
{
    const int64_t n = b->span.end - frit_page_begin(b->span.begin);
    const int64_t n_items = blocks_of(w, b->seq) * w->shape.layer->spec.n_head_kv;   // of the sequence, with one chunk
    const int64_t most = frit_max_i64(1, frit_min_i64(BF16_CHUNKS, PREFILL_ITEMS / n_items));
    const int64_t share = (n + most - 1) / most;
    b->chunk = most > 1 ? frit_max_i64(FRIT_CHUNK, (share + CHUNK_STEP - 1) / CHUNK_STEP * CHUNK_STEP) : n;
    b->n_chunks = (n + b->chunk - 1) / b->chunk;
}

static void cut_positions(const walk *w, block *b)
{
    if (way_of(w, b->seq) == &frit_attend_by_bf16) {
        cut_for_bf16(w, b);
        return;
    }
    b->first_chunk = frit_attend_chunk_at(b->span.begin);
    b->n_chunks = b->span.end > b->span.begin ? frit_attend_chunk_at(b->span.end - 1) - b->first_chunk + 1 : 0;
}

// Whether threads share a block's chunks: not where the seq has items enough.
static bool shares_chunks(const walk *w, const block *b)
{
    if (b->n_chunks < 2 || b->n_chunks > MAX_CHUNKS || w->n_sums + b->n_rows * b->n_chunks > CHUNKED_ROWS) return false;
    return !is_prefill(w, b->seq) || blocks_of(w, b->seq) * w->shape.layer->spec.n_head_kv < PREFILL_ITEMS;
}

// Of all seqs: no more than this in tiles.
static int64_t tiled_room(const frit_node *node, const frit_kernels *kernels)
{
    const int64_t part = kernels->attend_bf16_if_long ? LESS_TILED : 1;
    const int64_t n_pages = node->shape[0] * node->src[0]->shape[1] / 4 * PAGES_OF_ROW / part;
    const size_t page_bytes = frit_bf16_page_bytes(frit_node_width(node->src[0]), frit_node_width(node));
    return frit_min_i64(n_pages, (int64_t)(TILED_BYTES / page_bytes));
}

static void place_tiles(walk *w, const frit_seq *seq)
{
    const frit_attend *attend = &w->task->node->attend;
    const int64_t n_head = w->shape.layer->spec.n_head_kv;
    w->tiled = (tiled){.first = w->n_tiled};
    if (seq->n_rows <= w->block_rows || way_of(w, seq) != &frit_attend_by_bf16) return;
    const int64_t room = (tiled_room(w->task->node, w->task->env->kernels) - w->n_tiled) / n_head;
    w->tiled.seen.begin = frit_attend_span(attend, seq, seq->n_past).begin;
    w->tiled.seen.end = frit_attend_span(attend, seq, seq->n_past + seq->n_rows - 1).end;
    const int64_t begin = w->tiled.seen.begin / FRIT_PAGE_TOKENS;
    const int64_t end = (w->tiled.seen.end + FRIT_PAGE_TOKENS - 1) / FRIT_PAGE_TOKENS;
    w->tiled.pages = (frit_range){begin, frit_min_i64(end, begin + room)};
    w->n_tiled += n_head * (w->tiled.pages.end - begin);
}

static bool next_block(walk *w)
{
    const frit_batch *batch = w->task->env->batch;
    const frit_attend *attend = &w->task->node->attend;
    while (w->seq < batch->n_seqs && w->first >= batch->seqs[w->seq].n_rows) w->seq++, w->first = 0;
    if (w->seq == batch->n_seqs) return false;
    const frit_seq *seq = &batch->seqs[w->seq];
    w->block_rows = block_rows_of(w, seq);
    if (w->first == 0) place_tiles(w, seq);
    block b = {
        .seq = seq, .first = w->first, .n_rows = frit_min_i64(w->block_rows, seq->n_rows - w->first), .sums = -1};
    b.span.begin = frit_attend_span(attend, seq, seq->n_past + b.first).begin;
    b.span.end = frit_attend_span(attend, seq, seq->n_past + b.first + b.n_rows - 1).end;
    if (is_some(w, seq)) b.span = (frit_range){0, frit_min_i64(b.span.end, w->task->node->src[2]->shape[1])};
    cut_positions(w, &b);
    if (shares_chunks(w, &b)) {
        b.sums = w->n_sums;
        w->n_sums += b.n_rows * b.n_chunks;
    }
    b.n_items = w->shape.layer->spec.n_head_kv * (b.sums >= 0 ? b.n_chunks : 1);
    w->first += b.n_rows;
    w->b = b;
    return true;
}

static frit_range chunk_of(const block *b, int64_t i)
{
    const int64_t begin =
        b->chunk ? frit_page_begin(b->span.begin) + i * b->chunk : frit_attend_chunk_begin(b->first_chunk + i);
    const int64_t end = b->chunk ? begin + b->chunk : frit_attend_chunk_begin(b->first_chunk + i + 1);
    return (frit_range){frit_max_i64(begin, b->span.begin), frit_min_i64(end, b->span.end)};
}

// ------------------------------------------------------------------------------- sums

// What is known of a query after some positions.
typedef struct sums {
    float max, sum;
    float acc[];   // [v_dim]
} sums;

static int64_t sums_floats(int64_t v_dim)   // lines that no two threads write
{
    return frit_attend_line(2 + v_dim);
}

static sums *sums_at(float *first, int64_t i, int64_t v_dim)
{
    return (sums *)(void *)(first + i * sums_floats(v_dim));
}

static size_t all_sums_bytes(const frit_node *node)
{
    const int64_t n = frit_min_i64(node->shape[0] * MAX_CHUNKS, CHUNKED_ROWS) * node->src[0]->shape[1];
    return (size_t)(n * sums_floats(frit_node_width(node))) * sizeof(float);
}

// Of one row of the block and one head of the graph.
static sums *chunk_sums(const walk *w, int64_t row, int64_t head, int64_t chunk)
{
    const int64_t i = (w->b.sums + row * w->b.n_chunks) * w->shape.n_head + head * w->b.n_chunks + chunk;
    return sums_at((float *)(void *)w->task->shared, i, w->shape.v_dim);
}

// The tiles of a seq's page and one head: after the sums.
static uint8_t *tiles_at(const walk *w, int64_t head, int64_t page)
{
    const tiled *t = &w->tiled;
    const int64_t i = t->first + head * (t->pages.end - t->pages.begin) + page - t->pages.begin;
    return w->task->shared + all_sums_bytes(w->task->node) +
           (size_t)i * frit_bf16_page_bytes(w->shape.k_dim, w->shape.v_dim);
}

size_t frit_attend_shared_bytes(const frit_node *node, const frit_kernels *kernels)
{
    const size_t page_bytes = frit_bf16_page_bytes(frit_node_width(node->src[0]), frit_node_width(node));
    return all_sums_bytes(node) + (kernels->pack_kv_page ? (size_t)tiled_room(node, kernels) * page_bytes : 0);
}

// Nothing yet.
static void empty(sums *total, int64_t v_dim)
{
    total->max = -INFINITY, total->sum = 0;
    memset(total->acc, 0, (size_t)v_dim * sizeof(float));
}

// Adds the sums of the positions that follow. The same for all: results are compared to the bit.
static void fold(sums *total, float part_max, float part_sum, const float *part, int64_t v_dim)
{
    if (part_sum == 0) return;   // this row sees nothing of them
    if (total->sum == 0) {
        memcpy(total->acc, part, (size_t)v_dim * sizeof(float));
        total->max = part_max, total->sum = part_sum;
        return;
    }
    const float top = part_max > total->max ? part_max : total->max;
    const float before = frit_attend_factor(total->max, top), now = frit_attend_factor(part_max, top);
    for (int64_t i = 0; i < v_dim; i++) total->acc[i] = before * total->acc[i] + now * part[i];
    total->sum = before * total->sum + now * part_sum;
    total->max = top;
}

// What a sink adds to the sum of exponentials. Beside a sink far above `top` all else vanishes, as it should.
static float sink_weight(const frit_task *task, int64_t head, float top)
{
    const float *sinks = frit_attend_sinks(task);
    return sinks ? expf(sinks[head] - top) : 0;
}

static void give_result(const walk *w, int64_t row, int64_t head, float top, float sum, const float *acc)
{
    const frit_attend_shape *s = &w->shape;
    float *y = w->task->y + (row * s->n_head + head) * s->v_dim;
    w->task->env->kernels->scale(y, acc, 1 / (sum + sink_weight(w->task, head, top)), s->v_dim);
    frit_hadamard(y, s->v_dim, s->layer->v.hadamard);
}

// ------------------------------------------------------------------------------- items

void frit_attend_load_query(const frit_attend_item *item, const frit_attend_query *query, float factor, float *y)
{
    const frit_attend_shape *s = item->shape;
    const float *x = item->task->x[0] + (query->row * s->n_head + query->head) * s->k_dim;
    const float scale = frit_attend_scale(&item->task->node->attend, query->own_position);
    item->kernels->scale(y, x, factor * scale, s->k_dim);
    frit_hadamard(y, s->k_dim, s->layer->k.hadamard);
}

static void decode(const frit_attend_item *item, const frit_cache_side *side, const uint8_t *x, float *y, int64_t n)
{
    const frit_kernels *k = item->kernels;
    if (k->decode[side->dtype])
        k->decode[side->dtype](x, y, n);
    else
        frit_dtype_get(side->dtype)->decode(x, y, n);
}

void frit_attend_decode_pages(const frit_attend_item *item, const frit_cache_side *side, frit_range positions, float *y)
{
    for (int64_t p = frit_page_begin(positions.begin); p < positions.end; p += FRIT_PAGE_TOKENS) {
        decode(item, side, frit_cache_at(side, item->pages, p, item->head), y, FRIT_PAGE_TOKENS * side->dim);
        y += FRIT_PAGE_TOKENS * side->dim;
    }
}

// One page of transposed rows.
static void decode_tiled(const frit_attend_item *item, const frit_cache_side *side, frit_range positions, float *y)
{
    const uint64_t step = FRIT_PAGE_TOKENS * side->row_bytes / (uint64_t)side->dim;
    const uint8_t *x = frit_cache_at(side, item->pages, positions.begin, item->head);
    const int64_t n = positions.end - positions.begin;
    for (int64_t d = 0; d < side->dim; d++, x += step) {
        float column[FRIT_PAGE_TOKENS];
        decode(item, side, x, column, n);
        for (int64_t i = 0; i < n; i++) y[i * side->dim + d] = column[i];
    }
}

void frit_attend_decode_positions(const frit_attend_item *item, const frit_cache_side *side, frit_range positions,
                                  float *y)
{
    for (int64_t p = positions.begin, next; p < positions.end; p = next) {
        next = frit_min_i64(frit_page_begin(p) + FRIT_PAGE_TOKENS, positions.end);
        // Values that lie in keys have other numbers between them.
        if (side->row_bytes != frit_dtype_row_bytes(side->dtype, side->dim)) next = p + 1;
        if (side->transposed)
            decode_tiled(item, side, (frit_range){p, next}, y);
        else
            decode(item, side, frit_cache_at(side, item->pages, p, item->head), y, (next - p) * side->dim);
        y += (next - p) * side->dim;
    }
}

// Queries of a block; at least as many as one row has in a group.
static int64_t most_queries(const frit_node *node)
{
    return frit_max_i64(MOST_TILE_QUERIES, node->src[0]->shape[1]);
}

size_t frit_attend_workspace_bytes(const frit_node *node)
{
    static const frit_attend_way *const ways[] = {&frit_attend_by_rows, &frit_attend_by_tiles, &frit_attend_by_bf16};
    const int64_t n = most_queries(node), k_dim = frit_node_width(node->src[0]), v_dim = frit_node_width(node);
    size_t most = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const size_t n_bytes = ways[i]->workspace_bytes(n, k_dim, v_dim);
        most = n_bytes > most ? n_bytes : most;
    }
    return most + (size_t)(n * sums_floats(v_dim)) * sizeof(float);
}

static frit_attend_item item_of(const walk *w, int64_t head)
{
    const block *b = &w->b;
    frit_attend_item item = {.task = w->task,
                             .kernels = frit_seq_kernels(w->task->env, b->seq),
                             .shape = &w->shape,
                             .seq = b->seq,
                             .pages = frit_layer_pages(w->task, w->shape.layer, b->seq),
                             .first = b->first,
                             .n_rows = b->n_rows,
                             .head = head,
                             .n_chosen = b->span.end,
                             .tiled = w->tiled.pages};
    if (w->tiled.pages.end > 0) item.tiles = tiles_at(w, head, w->tiled.pages.begin);
    if (is_some(w, b->seq))
        item.chosen = w->task->x[2] + (b->seq->first_row + b->first) * w->task->node->src[2]->shape[1];
    return item;
}

// One chunk, or all of them one after the other.
static void attend_item(const walk *w, int64_t head, int64_t chunk, float *workspace)
{
    const block *b = &w->b;
    const int64_t v_dim = w->shape.v_dim, group = w->shape.group, n = b->n_rows * group;
    const frit_attend_item item = item_of(w, head);
    const frit_attend_way *way = way_of(w, b->seq);
    float *totals = workspace;
    workspace += n * sums_floats(v_dim);
    const bool folds = way->folds && b->sums < 0;
    const int64_t n_parts = folds ? 1 : b->n_chunks;
    for (int64_t c = b->sums >= 0 ? chunk : 0; c < (b->sums >= 0 ? chunk + 1 : n_parts); c++) {
        frit_attend_sums part;
        way->run(&item, folds ? b->span : chunk_of(b, c), workspace, &part);
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = b->seq->first_row + b->first + i / group, h = head * group + i % group;
            const float *acc = part.acc + i * part.acc_stride;
            if (n_parts == 1) {
                give_result(w, row, h, part.max[i], part.sum[i], acc);
                continue;
            }
            sums *total = b->sums >= 0 ? chunk_sums(w, i / group, h, c) : sums_at(totals, i, v_dim);
            if (b->sums >= 0) {
                total->max = part.max[i], total->sum = part.sum[i];
                memcpy(total->acc, acc, (size_t)v_dim * sizeof(float));
                continue;
            }
            if (c == 0) empty(total, v_dim);
            fold(total, part.max[i], part.sum[i], acc, v_dim);
            if (c == b->n_chunks - 1) give_result(w, row, h, total->max, total->sum, total->acc);
        }
    }
}

// Pages to bring into tiles, where the walk has come to the first block of a seq: for each head.
static int64_t n_to_tile(const walk *w)
{
    if (w->b.first > 0) return 0;
    return (w->tiled.pages.end - w->tiled.pages.begin) * w->shape.layer->spec.n_head_kv;
}

int frit_kv_to_tiles_pieces(const frit_task *task)
{
    int64_t n = 0;
    if (!task->env->kernels->pack_kv_page) return 0;
    for (walk w = begin_walk(task); next_block(&w);) n += n_to_tile(&w);
    return (int)frit_min_i64(n, FRIT_MAX_PIECES);
}

void frit_fast_kv_to_tiles(const frit_task *task, frit_share share)
{
    int64_t n = 0;
    for (walk w = begin_walk(task); next_block(&w);) n += n_to_tile(&w);
    const frit_range mine = frit_split(n, 1, share);
    int64_t first = 0;
    for (walk w = begin_walk(task); first < mine.end && next_block(&w); first += n_to_tile(&w)) {
        const int64_t n_pages = w.tiled.pages.end - w.tiled.pages.begin;
        for (int64_t i = frit_max_i64(mine.begin, first); i < frit_min_i64(mine.end, first + n_to_tile(&w)); i++) {
            const int64_t head = (i - first) / n_pages, page = w.tiled.pages.begin + (i - first) % n_pages;
            const frit_attend_item item = item_of(&w, head);
            frit_kv_page_to_tiles(&item, page, w.tiled.seen, frit_task_workspace(task, share),
                                  tiles_at(&w, head, page));
        }
    }
}

int frit_attend_pieces(const frit_task *task)
{
    int64_t n = 0;
    for (walk w = begin_walk(task); next_block(&w);) n += w.b.n_items;
    return (int)frit_min_i64(n, FRIT_MAX_PIECES);
}

static bool next_of_run(walk *w)
{
    return w->first < w->b.seq->n_rows && next_block(w);
}

static int64_t items_of_head(const walk *w)
{
    return w->b.n_items / w->shape.layer->spec.n_head_kv;
}

// Some items of a seq, on whose first block `start` stands: by heads first, so that the second cache of a thread's core
// may hold what its share reads, then by blocks, then by chunks.
static void attend_run(const walk *start, frit_range items, int64_t n_of_head, float *workspace)
{
    for (int64_t head = items.begin / n_of_head; head * n_of_head < items.end; head++) {
        int64_t first = head * n_of_head;
        walk w = *start;
        do {
            const int64_t n = items_of_head(&w);
            for (int64_t chunk = frit_max_i64(items.begin - first, 0); chunk < frit_min_i64(n, items.end - first);
                 chunk++)
                attend_item(&w, head, chunk, workspace);
            first += n;
        } while (first < items.end && next_of_run(&w));
    }
}

void frit_fast_attend(const frit_task *task, frit_share share)
{
    int64_t n = 0;
    for (walk w = begin_walk(task); next_block(&w);) n += w.b.n_items;
    const frit_range mine = frit_split(n, 1, share);
    int64_t first = 0;   // item of the sequence
    for (walk w = begin_walk(task); first < mine.end && next_block(&w);) {
        const walk start = w;
        int64_t n_of_head = items_of_head(&w);
        while (next_of_run(&w)) n_of_head += items_of_head(&w);
        const int64_t end = first + n_of_head * w.shape.layer->spec.n_head_kv;
        if (mine.begin < end)
            attend_run(&start, (frit_range){frit_max_i64(mine.begin - first, 0), frit_min_i64(mine.end, end) - first},
                       n_of_head, frit_task_workspace(task, share));
        first = end;
    }
}

void frit_fast_attend_sparse(const frit_task *task, frit_share share)
{
    frit_fast_attend(task, share);
}

static int64_t n_merges(const walk *w)
{
    return w->b.sums >= 0 ? w->b.n_rows * w->shape.n_head : 0;
}

int frit_attend_merge_pieces(const frit_task *task)
{
    int64_t n = 0;
    for (walk w = begin_walk(task); next_block(&w);) n += n_merges(&w);
    return (int)frit_min_i64(n, FRIT_MAX_PIECES);
}

static void merge(const walk *w, int64_t row, int64_t head, sums *total)
{
    const int64_t v_dim = w->shape.v_dim;
    empty(total, v_dim);
    for (int64_t c = 0; c < w->b.n_chunks; c++) {
        const sums *part = chunk_sums(w, row, head, c);
        fold(total, part->max, part->sum, part->acc, v_dim);
    }
    give_result(w, w->b.seq->first_row + w->b.first + row, head, total->max, total->sum, total->acc);
}

void frit_fast_attend_merge(const frit_task *task, frit_share share)
{
    int64_t n = 0;
    for (walk w = begin_walk(task); next_block(&w);) n += n_merges(&w);
    const frit_range mine = frit_split(n, 1, share);
    int64_t first = 0;
    for (walk w = begin_walk(task); first < mine.end && next_block(&w); first += n_merges(&w))
        for (int64_t i = frit_max_i64(mine.begin, first); i < frit_min_i64(mine.end, first + n_merges(&w)); i++)
            merge(&w, (i - first) / w.shape.n_head, (i - first) % w.shape.n_head, frit_task_workspace(task, share));
}

// ------------------------------------------------------------------------------- writing

static void store(const frit_task *task, const frit_cache_side *side, const int32_t *pages, int64_t p, int64_t head,
                  const float *x, float *mixed)
{
    const frit_kernels *k = task->env->kernels;
    uint8_t *to = side->transposed ? (uint8_t *)mixed : frit_cache_at(side, pages, p, head);
    if (side->hadamard > 1) {
        memcpy(mixed, x, (size_t)side->dim * sizeof(float));
        frit_hadamard(mixed, side->dim, side->hadamard);
        x = mixed;
    }
    if (k->encode[side->dtype])
        k->encode[side->dtype](x, to, side->dim);
    else
        frit_dtype_get(side->dtype)->encode(x, to, side->dim, NULL);
    if (side->transposed) frit_cache_write(&(frit_cache_row){side, pages, p, head}, to);
}

// Some heads of the keys or of the values of all rows.
static void write_heads(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const frit_cache_side *side = task->keys ? &layer->k : &layer->v;
    const float *x = task->x[task->keys ? 0 : 1];
    const int64_t n_head = layer->spec.n_head_kv;
    const frit_range heads = frit_split(n_head, 1, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        for (int64_t row = seq->first_row; row < seq->first_row + seq->n_rows; row++)
            for (int64_t h = heads.begin; h < heads.end; h++)
                store(task, side, pages, seq->n_past + row - seq->first_row, h, x + (row * n_head + h) * side->dim,
                      frit_task_workspace(task, share));
    }
}

void frit_fast_kv_write(const frit_task *task, frit_share share)
{
    if (task->by_heads) {
        write_heads(task, share);
        return;
    }
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const int64_t n_head = layer->spec.n_head_kv, k_dim = layer->k.dim, v_dim = layer->v.dim;
    const frit_range mine = frit_split(batch->n_rows * n_head, 1, share);
    float *mixed = frit_task_workspace(task, share);

    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        const int64_t first = seq->first_row * n_head, end = frit_min_i64(mine.end, first + seq->n_rows * n_head);
        for (int64_t i = frit_max_i64(mine.begin, first); i < end; i++) {
            const int64_t p = seq->n_past + i / n_head - seq->first_row, h = i % n_head;
            store(task, &layer->k, pages, p, h, task->x[0] + i * k_dim, mixed);
            if (task->x[1]) store(task, &layer->v, pages, p, h, task->x[1] + i * v_dim, mixed);
        }
    }
}

void frit_fast_index_write(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->layer];
    const frit_cache_side *side = &layer->index;
    const frit_range mine = frit_split(batch->n_rows, 1, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        const int64_t end = frit_min_i64(mine.end, seq->first_row + seq->n_rows);
        for (int64_t t = frit_max_i64(mine.begin, seq->first_row); t < end; t++)
            store(task, side, pages, seq->n_past + t - seq->first_row, 0, task->x[0] + t * side->dim,
                  frit_task_workspace(task, share));
    }
}

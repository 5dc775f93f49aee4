// SPDX-License-Identifier: MIT
// The partition of attention into blocks, chunks and tiles (attend_plan.h).
#include "backend/cpu/ops/attend_plan.h"
#include "base/minmax.h"

enum {
    ROW_QUERIES = 16,          // rows x group of a block by rows, unless the group alone is larger
    TILE_QUERIES = 256,        // rows x group of a block by tiles, which share decoded keys and values
    BF16_QUERIES = 128,        // rows x group of a block in bf16
    BF16_CHUNKS = 32,          // chunks of a block in bf16
    CHUNK_STEP = 128,          // chunks in bf16 are multiples of this many positions
    PREFILL_ITEMS = 32,        // blocks x heads x chunks that are enough for all threads
    PAGES_OF_ROW = 8,          // pages in tiles for each row and four heads of the graph
    LESS_TILED = 16,           // divides PAGES_OF_ROW where vectors multiply: they are slower than making tiles
    TILED_BYTES = 256 << 20,   // the limit of all tiles
};

frit_attend_walk frit_attend_walk_begin(const frit_task *task)
{
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->attend.layer];
    frit_attend_walk w = {.task = task};
    w.shape = (frit_attend_shape){
        .layer = layer, .n_head = task->node->src[0]->shape[1], .k_dim = layer->k.dim, .v_dim = layer->v.dim};
    w.shape.group = w.shape.n_head / layer->spec.n_head_kv;
    return w;
}

bool frit_attend_is_sparse(const frit_attend_walk *w, const frit_seq *seq)
{
    const frit_node *node = w->task->node;
    return node->op == FRIT_OP_ATTEND_SPARSE && seq->n_past + seq->n_rows > node->src[2]->shape[1];
}

// True if the tile kernels compute this sequence. With a bias by distance (reach) they need the queries of a block at
// consecutive positions, so groups of one head.
static bool is_prefill(const frit_attend_walk *w, const frit_seq *seq)
{
    if (frit_attend_is_sparse(w, seq) || (w->task->node->attend.reach > 0 && w->shape.group != 1)) return false;
    return frit_seq_kernels(w->task->env, seq)->attend_tile &&
           (w->shape.group > FRIT_DECODE_GROUP || seq->n_rows >= FRIT_PREFILL_ATTEND_ROWS);
}

// True if bf16 adds little error: keys and values were rounded when they were written. With env->fine, an f16 cache is
// not coarse enough.
static bool adds_little_error(const frit_task_env *env, const frit_cache_layer *layer)
{
    const frit_dtype k = layer->k.dtype, v = layer->v.dtype;
    if (k == FRIT_DTYPE_F32 || v == FRIT_DTYPE_F32) return false;
    return !env->fine || k != FRIT_DTYPE_F16 || v != FRIT_DTYPE_F16;
}

static bool is_in_bf16(const frit_attend_walk *w, const frit_seq *seq)
{
    const frit_task_env *env = w->task->env;
    const frit_kernels *kernels = frit_seq_kernels(env, seq);
    const frit_cache_layer *layer = w->shape.layer;
    const frit_attend *attend = &w->task->node->attend;
    if (!kernels->attend_bf16 || !adds_little_error(env, layer) || layer->v.dim % 16 != 0) return false;
    if (attend->cross || attend->reach > 0 || frit_attend_is_sparse(w, seq))
        return false;   // the bf16 kernels begin at the score of the query's own position
    return kernels->attend_bf16_if_long ? seq->row_class == FRIT_ROWS_LONG_PREFILL : is_prefill(w, seq);
}

const frit_attend_way *frit_attend_way_of(const frit_attend_walk *w, const frit_seq *seq)
{
    if (is_in_bf16(w, seq)) return &frit_attend_by_bf16;
    return is_prefill(w, seq) ? &frit_attend_by_tiles : &frit_attend_by_rows;
}

// Rows of a block by tiles. Blocks have about the same length, so that no short block decodes all keys and values for a
// few queries, and fill pairs of panels. A block has at most 1.5 * TILE_QUERIES queries.
static int64_t even_block_rows(const frit_seq *seq, int64_t group)
{
    const int64_t n_blocks = frit_max_i64(1, (seq->n_rows * group + TILE_QUERIES / 2) / TILE_QUERIES);
    const int64_t n_rows = (seq->n_rows + n_blocks - 1) / n_blocks;
    const int64_t step = frit_max_i64(1, 2 * FRIT_ATTEND_LANES / (group & -group));   // rows that fill pairs of panels
    return frit_min_i64((n_rows + step - 1) / step * step, frit_max_i64(1, FRIT_ATTEND_TILE_QUERIES / group));
}

static int64_t block_rows_of(const frit_attend_walk *w, const frit_seq *seq)
{
    const frit_attend_way *way = frit_attend_way_of(w, seq);
    if (frit_attend_is_sparse(w, seq)) return 1;
    if (way == &frit_attend_by_tiles) return even_block_rows(seq, w->shape.group);
    return frit_max_i64(1, (way == &frit_attend_by_bf16 ? BF16_QUERIES : ROW_QUERIES) / w->shape.group);
}

static int64_t blocks_of(const frit_attend_walk *w, const frit_seq *seq)
{
    return (seq->n_rows + w->block_rows - 1) / w->block_rows;
}

// Few long chunks: in bf16, folding costs nearly as much as adding.
static void plan_bf16_chunks(const frit_attend_walk *w, frit_attend_block *b)
{
    const int64_t n = b->seen.end - frit_page_begin(b->seen.begin);
    const int64_t n_items =
        blocks_of(w, b->seq) * w->shape.layer->spec.n_head_kv;   // items if each block has one chunk
    const int64_t most = frit_max_i64(1, frit_min_i64(BF16_CHUNKS, PREFILL_ITEMS / n_items));
    const int64_t share = (n + most - 1) / most;
    b->chunk = most > 1 ? frit_max_i64(FRIT_CHUNK, (share + CHUNK_STEP - 1) / CHUNK_STEP * CHUNK_STEP) : n;
    b->n_chunks = (n + b->chunk - 1) / b->chunk;
}

static void plan_chunks(const frit_attend_walk *w, frit_attend_block *b)
{
    if (frit_attend_way_of(w, b->seq) == &frit_attend_by_bf16) {
        plan_bf16_chunks(w, b);
        return;
    }
    b->first_chunk = frit_attend_chunk_at(b->seen.begin);
    b->n_chunks = b->seen.end > b->seen.begin ? frit_attend_chunk_at(b->seen.end - 1) - b->first_chunk + 1 : 0;
}

// True if the chunks of a block are separate items. A long sequence has enough items without.
static bool shares_chunks(const frit_attend_walk *w, const frit_attend_block *b)
{
    if (b->n_chunks < 2 || b->n_chunks > FRIT_ATTEND_CHUNKS ||
        w->n_sums + b->n_rows * b->n_chunks > FRIT_ATTEND_CHUNKED_ROWS)
        return false;
    return !is_prefill(w, b->seq) || blocks_of(w, b->seq) * w->shape.layer->spec.n_head_kv < PREFILL_ITEMS;
}

int64_t frit_attend_tile_pages(const frit_node *node, const frit_kernels *kernels)
{
    const int64_t part = kernels->attend_bf16_if_long ? LESS_TILED : 1;
    const int64_t n_pages = node->shape[0] * node->src[0]->shape[1] / 4 * PAGES_OF_ROW / part;
    const size_t page_bytes = frit_bf16_page_bytes(frit_node_width(node->src[0]), frit_node_width(node));
    return frit_min_i64(n_pages, (int64_t)(TILED_BYTES / page_bytes));
}

// Reserves tiles for the pages of a sequence with several blocks, as far as there is memory.
static void plan_tiles(frit_attend_walk *w, const frit_seq *seq)
{
    const int64_t n_head = w->shape.layer->spec.n_head_kv;
    w->tiled = (frit_attend_tiled){.first = w->n_tiled};
    if (seq->n_rows <= w->block_rows || frit_attend_way_of(w, seq) != &frit_attend_by_bf16) return;
    const int64_t room = (frit_attend_tile_pages(w->task->node, w->task->env->kernels) - w->n_tiled) / n_head;
    w->tiled.seen.begin = frit_attend_seen(w->task, seq, seq->n_past).begin;
    w->tiled.seen.end = frit_attend_seen(w->task, seq, seq->n_past + seq->n_rows - 1).end;
    const int64_t begin = w->tiled.seen.begin / FRIT_PAGE_TOKENS;
    const int64_t end = (w->tiled.seen.end + FRIT_PAGE_TOKENS - 1) / FRIT_PAGE_TOKENS;
    w->tiled.pages = (frit_range){begin, frit_min_i64(end, begin + room)};
    w->n_tiled += n_head * (w->tiled.pages.end - begin);
}

bool frit_attend_walk_next(frit_attend_walk *w)
{
    const frit_batch *batch = w->task->env->batch;
    while (w->seq < batch->n_seqs && w->next_row >= batch->seqs[w->seq].n_rows) w->seq++, w->next_row = 0;
    if (w->seq == batch->n_seqs) return false;
    const frit_seq *seq = &batch->seqs[w->seq];
    w->block_rows = block_rows_of(w, seq);
    if (w->next_row == 0) plan_tiles(w, seq);
    frit_attend_block b = {
        .seq = seq, .first = w->next_row, .n_rows = frit_min_i64(w->block_rows, seq->n_rows - w->next_row), .sums = -1};
    b.seen.begin = frit_attend_seen(w->task, seq, seq->n_past + b.first).begin;
    b.seen.end = frit_attend_seen(w->task, seq, seq->n_past + b.first + b.n_rows - 1).end;
    if (frit_attend_is_sparse(w, seq))
        b.seen = (frit_range){0, frit_min_i64(b.seen.end, w->task->node->src[2]->shape[1])};
    plan_chunks(w, &b);
    if (shares_chunks(w, &b)) {
        b.sums = w->n_sums;
        w->n_sums += b.n_rows * b.n_chunks;
    }
    b.n_items = w->shape.layer->spec.n_head_kv * (b.sums >= 0 ? b.n_chunks : 1);
    w->next_row += b.n_rows;
    w->block = b;
    return true;
}

frit_range frit_attend_block_chunk(const frit_attend_block *b, int64_t i)
{
    const int64_t begin =
        b->chunk ? frit_page_begin(b->seen.begin) + i * b->chunk : frit_attend_chunk_begin(b->first_chunk + i);
    const int64_t end = b->chunk ? begin + b->chunk : frit_attend_chunk_begin(b->first_chunk + i + 1);
    return (frit_range){frit_max_i64(begin, b->seen.begin), frit_min_i64(end, b->seen.end)};
}

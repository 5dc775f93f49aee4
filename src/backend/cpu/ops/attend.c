// SPDX-License-Identifier: MIT
// Attention over the paged cache: computes the items of a step (attend_plan.h), and folds the sums of their chunks.
//
// If several blocks of a sequence look at one range of positions in bf16, keys and values are stored as tiles once,
// before attention begins, as far as shared memory suffices.
#include "backend/cpu/ops/attend_plan.h"
#include "backend/cpu/ops/fast.h"
#include "base/minmax.h"
#include "quant/hadamard.h"

#include <string.h>

// ------------------------------------------------------------------------------- sums

// The sums of a query over some positions, relative to `max`.
typedef struct sums {
    float max, sum;
    float acc[];   // [v_dim]
} sums;

static int64_t sums_floats(int64_t v_dim)   // a multiple of the cache line: no two threads write one line
{
    return frit_attend_round_up(2 + v_dim);
}

static sums *sums_at(float *first, int64_t i, int64_t v_dim)
{
    return (sums *)(void *)(first + i * sums_floats(v_dim));
}

static size_t all_sums_bytes(const frit_node *node)
{
    const int64_t n =
        frit_min_i64(node->shape[0] * FRIT_ATTEND_CHUNKS, FRIT_ATTEND_CHUNKED_ROWS) * node->src[0]->shape[1];
    return (size_t)(n * sums_floats(frit_node_width(node))) * sizeof(float);
}

// The sums of one row of the block, one head of the graph and one chunk, in shared memory.
static sums *chunk_sums(const frit_attend_walk *w, int64_t row, int64_t head, int64_t chunk)
{
    const int64_t i = (w->block.sums + row * w->block.n_chunks) * w->shape.n_head + head * w->block.n_chunks + chunk;
    return sums_at((float *)(void *)w->task->shared, i, w->shape.v_dim);
}

// The tiles of a page and a head of the cache, in shared memory after all sums.
static uint8_t *tiles_at(const frit_attend_walk *w, int64_t head, int64_t page)
{
    const frit_attend_tiled *t = &w->tiled;
    const int64_t i = t->first + head * (t->pages.end - t->pages.begin) + page - t->pages.begin;
    return w->task->shared + all_sums_bytes(w->task->node) +
           (size_t)i * frit_bf16_page_bytes(w->shape.k_dim, w->shape.v_dim);
}

size_t frit_attend_shared_bytes(const frit_node *node, const frit_kernels *kernels)
{
    const size_t page_bytes = frit_bf16_page_bytes(frit_node_width(node->src[0]), frit_node_width(node));
    return all_sums_bytes(node) +
           (kernels->pack_kv_page ? (size_t)frit_attend_tile_pages(node, kernels) * page_bytes : 0);
}

static void clear_sums(sums *total, int64_t v_dim)
{
    total->max = -INFINITY, total->sum = 0;
    memset(total->acc, 0, (size_t)v_dim * sizeof(float));
}

// Adds the sums of the next positions. All ways fold by this function, so that results are the same bits.
static void fold_sums(sums *total, float chunk_max, float chunk_sum, const float *acc, int64_t v_dim)
{
    if (chunk_sum == 0) return;   // the row sees none of the positions
    if (total->sum == 0) {
        memcpy(total->acc, acc, (size_t)v_dim * sizeof(float));
        total->max = chunk_max, total->sum = chunk_sum;
        return;
    }
    const float top = chunk_max > total->max ? chunk_max : total->max;
    const float before = frit_attend_factor(total->max, top), now = frit_attend_factor(chunk_max, top);
    for (int64_t i = 0; i < v_dim; i++) total->acc[i] = before * total->acc[i] + now * acc[i];
    total->sum = before * total->sum + now * chunk_sum;
    total->max = top;
}

// The term of a sink in the sum of exponentials. A sink far above `top` makes every weight vanish, as it should.
static float sink_weight(const frit_task *task, int64_t head, float top)
{
    const float *sinks = frit_attend_sinks(task);
    return sinks ? expf(sinks[head] - top) : 0;
}

static void write_result(const frit_attend_walk *w, int64_t row, int64_t head, float top, float sum, const float *acc)
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

// The most queries of a block: one row may have more than FRIT_ATTEND_TILE_QUERIES heads.
static int64_t most_queries(const frit_node *node)
{
    return frit_max_i64(FRIT_ATTEND_TILE_QUERIES, node->src[0]->shape[1]);
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

static frit_attend_item make_item(const frit_attend_walk *w, int64_t head)
{
    const frit_attend_block *b = &w->block;
    frit_attend_item item = {.task = w->task,
                             .kernels = frit_seq_kernels(w->task->env, b->seq),
                             .shape = &w->shape,
                             .seq = b->seq,
                             .pages = frit_layer_pages(w->task, w->shape.layer, b->seq),
                             .first = b->first,
                             .n_rows = b->n_rows,
                             .head = head,
                             .n_chosen = b->seen.end,
                             .tiled = w->tiled.pages};
    if (w->tiled.pages.end > 0) item.tiles = tiles_at(w, head, w->tiled.pages.begin);
    if (frit_attend_is_sparse(w, b->seq))
        item.chosen = w->task->x[2] + (b->seq->first_row + b->first) * w->task->node->src[2]->shape[1];
    return item;
}

// Computes one chunk of a block whose chunks are items, or all chunks of another block.
static void attend_item(const frit_attend_walk *w, int64_t head, int64_t chunk, float *workspace)
{
    const frit_attend_block *b = &w->block;
    const int64_t v_dim = w->shape.v_dim, group = w->shape.group, n = b->n_rows * group;
    const frit_attend_item item = make_item(w, head);
    const frit_attend_way *way = frit_attend_way_of(w, b->seq);
    float *totals = workspace;
    workspace += n * sums_floats(v_dim);
    const bool folds = way->folds && b->sums < 0;
    const int64_t n_chunks = folds ? 1 : b->n_chunks;
    for (int64_t c = b->sums >= 0 ? chunk : 0; c < (b->sums >= 0 ? chunk + 1 : n_chunks); c++) {
        frit_attend_sums of_chunk;
        way->run(&item, folds ? b->seen : frit_attend_block_chunk(b, c), workspace, &of_chunk);
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = b->seq->first_row + b->first + i / group, h = head * group + i % group;
            const float *acc = of_chunk.acc + i * of_chunk.acc_stride;
            if (n_chunks == 1) {
                write_result(w, row, h, of_chunk.max[i], of_chunk.sum[i], acc);
                continue;
            }
            sums *total = b->sums >= 0 ? chunk_sums(w, i / group, h, c) : sums_at(totals, i, v_dim);
            if (b->sums >= 0) {
                total->max = of_chunk.max[i], total->sum = of_chunk.sum[i];
                memcpy(total->acc, acc, (size_t)v_dim * sizeof(float));
                continue;
            }
            if (c == 0) clear_sums(total, v_dim);
            fold_sums(total, of_chunk.max[i], of_chunk.sum[i], acc, v_dim);
            if (c == b->n_chunks - 1) write_result(w, row, h, total->max, total->sum, total->acc);
        }
    }
}

// Pages x heads to store as tiles if the walk is at the first block of a sequence, else 0.
static int64_t count_tiles(const frit_attend_walk *w)
{
    if (w->block.first > 0) return 0;
    return (w->tiled.pages.end - w->tiled.pages.begin) * w->shape.layer->spec.n_head_kv;
}

int frit_kv_to_tiles_pieces(const frit_task *task)
{
    int64_t n = 0;
    if (!task->env->kernels->pack_kv_page) return 0;
    for (frit_attend_walk w = frit_attend_walk_begin(task); frit_attend_walk_next(&w);) n += count_tiles(&w);
    return (int)frit_min_i64(n, FRIT_MAX_PIECES);
}

void frit_fast_kv_to_tiles(const frit_task *task, frit_share share)
{
    int64_t n = 0;
    for (frit_attend_walk w = frit_attend_walk_begin(task); frit_attend_walk_next(&w);) n += count_tiles(&w);
    const frit_range mine = frit_split(n, 1, share);
    int64_t first = 0;
    for (frit_attend_walk w = frit_attend_walk_begin(task); first < mine.end && frit_attend_walk_next(&w);
         first += count_tiles(&w)) {
        const int64_t n_pages = w.tiled.pages.end - w.tiled.pages.begin;
        for (int64_t i = frit_max_i64(mine.begin, first); i < frit_min_i64(mine.end, first + count_tiles(&w)); i++) {
            const int64_t head = (i - first) / n_pages, page = w.tiled.pages.begin + (i - first) % n_pages;
            const frit_attend_item item = make_item(&w, head);
            frit_kv_page_to_tiles(&item, page, w.tiled.seen, frit_task_workspace(task, share),
                                  tiles_at(&w, head, page));
        }
    }
}

int frit_attend_pieces(const frit_task *task)
{
    int64_t n = 0;
    for (frit_attend_walk w = frit_attend_walk_begin(task); frit_attend_walk_next(&w);) n += w.block.n_items;
    return (int)frit_min_i64(n, FRIT_MAX_PIECES);
}

static bool next_of_sequence(frit_attend_walk *w)
{
    return w->next_row < w->block.seq->n_rows && frit_attend_walk_next(w);
}

static int64_t items_of_head(const frit_attend_walk *w)
{
    return w->block.n_items / w->shape.layer->spec.n_head_kv;
}

// Computes some items of a sequence; `start` is at its first block. The order is heads, blocks, chunks, so that the L2
// cache of a thread's core may hold the keys and values that its share reads.
static void attend_sequence(const frit_attend_walk *start, frit_range items, int64_t n_of_head, float *workspace)
{
    for (int64_t head = items.begin / n_of_head; head * n_of_head < items.end; head++) {
        int64_t first = head * n_of_head;
        frit_attend_walk w = *start;
        do {
            const int64_t n = items_of_head(&w);
            for (int64_t chunk = frit_max_i64(items.begin - first, 0); chunk < frit_min_i64(n, items.end - first);
                 chunk++)
                attend_item(&w, head, chunk, workspace);
            first += n;
        } while (first < items.end && next_of_sequence(&w));
    }
}

void frit_fast_attend(const frit_task *task, frit_share share)
{
    int64_t n = 0;
    for (frit_attend_walk w = frit_attend_walk_begin(task); frit_attend_walk_next(&w);) n += w.block.n_items;
    const frit_range mine = frit_split(n, 1, share);
    int64_t first = 0;   // item of the sequence
    for (frit_attend_walk w = frit_attend_walk_begin(task); first < mine.end && frit_attend_walk_next(&w);) {
        const frit_attend_walk start = w;
        int64_t n_of_head = items_of_head(&w);
        while (next_of_sequence(&w)) n_of_head += items_of_head(&w);
        const int64_t end = first + n_of_head * w.shape.layer->spec.n_head_kv;
        if (mine.begin < end)
            attend_sequence(&start,
                            (frit_range){frit_max_i64(mine.begin - first, 0), frit_min_i64(mine.end, end) - first},
                            n_of_head, frit_task_workspace(task, share));
        first = end;
    }
}

void frit_fast_attend_sparse(const frit_task *task, frit_share share)
{
    frit_fast_attend(task, share);
}

static int64_t count_merges(const frit_attend_walk *w)
{
    return w->block.sums >= 0 ? w->block.n_rows * w->shape.n_head : 0;
}

int frit_attend_merge_pieces(const frit_task *task)
{
    int64_t n = 0;
    for (frit_attend_walk w = frit_attend_walk_begin(task); frit_attend_walk_next(&w);) n += count_merges(&w);
    return (int)frit_min_i64(n, FRIT_MAX_PIECES);
}

static void merge_chunks(const frit_attend_walk *w, int64_t row, int64_t head, sums *total)
{
    const int64_t v_dim = w->shape.v_dim;
    clear_sums(total, v_dim);
    for (int64_t c = 0; c < w->block.n_chunks; c++) {
        const sums *of_chunk = chunk_sums(w, row, head, c);
        fold_sums(total, of_chunk->max, of_chunk->sum, of_chunk->acc, v_dim);
    }
    write_result(w, w->block.seq->first_row + w->block.first + row, head, total->max, total->sum, total->acc);
}

void frit_fast_attend_merge(const frit_task *task, frit_share share)
{
    int64_t n = 0;
    for (frit_attend_walk w = frit_attend_walk_begin(task); frit_attend_walk_next(&w);) n += count_merges(&w);
    const frit_range mine = frit_split(n, 1, share);
    int64_t first = 0;
    for (frit_attend_walk w = frit_attend_walk_begin(task); first < mine.end && frit_attend_walk_next(&w);
         first += count_merges(&w))
        for (int64_t i = frit_max_i64(mine.begin, first); i < frit_min_i64(mine.end, first + count_merges(&w)); i++)
            merge_chunks(&w, (i - first) / w.shape.n_head, (i - first) % w.shape.n_head,
                         frit_task_workspace(task, share));
}

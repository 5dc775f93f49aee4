// SPDX-License-Identifier: MIT
// Chooses the positions of sparse attention: scores by the kernels of attention, then the best of them.
//
// With more than FRIT_SPLIT_SCORES_ROWS rows, each row is an item, and scores are not stored. With fewer, ranges of
// positions are items: scores go to shared memory, and frit_fast_choose_finish finds the best. While all positions can
// be chosen, no position is scored.
#include "backend/cpu/ops/cache.h"
#include "backend/cpu/ops/attend.h"
#include "backend/cpu/ops/best.h"
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/ref/ref.h"
#include "quant/hadamard.h"

#include <string.h>

enum { CHUNK = 4 * FRIT_ATTEND_ROWS };   // positions of an item that is a range of positions

typedef struct room {   // the workspace
    float *q, *dots;    // [heads, dim], [heads, FRIT_ATTEND_ROWS]
    float *scores;      // [FRIT_ATTEND_ROWS]
    float *decoded;     // [FRIT_ATTEND_ROWS, dim]
    frit_best best;
    int32_t *scratch;   // [n]
} room;

static room take_room(const frit_task *task, frit_share share)
{
    const frit_node *q = task->node->src[0];
    const int64_t n = task->node->shape[1];
    float *at = frit_task_workspace(task, share);
    room r = {.q = frit_attend_take(&at, q->shape[1] * q->shape[2])};
    r.dots = frit_attend_take(&at, q->shape[1] * FRIT_ATTEND_ROWS);
    r.scores = frit_attend_take(&at, FRIT_ATTEND_ROWS);
    r.decoded = frit_attend_take(&at, FRIT_ATTEND_ROWS * q->shape[2]);
    r.best = (frit_best){.scores = frit_attend_take(&at, n), .most = n};
    r.best.ids = frit_attend_take(&at, n);
    r.scratch = frit_attend_take(&at, n);
    return r;
}

size_t frit_choose_workspace_bytes(const frit_node *node)
{
    const int64_t n_head = node->src[0]->shape[1], dim = node->src[0]->shape[2];
    const int64_t n = frit_attend_round_up(n_head * dim) + (n_head + 1) * FRIT_ATTEND_ROWS +
                      frit_attend_round_up(FRIT_ATTEND_ROWS * dim) + 3 * frit_attend_round_up(node->shape[1]);
    const size_t fast = (size_t)n * sizeof(float), reference = frit_ref_choose_workspace_bytes(node);
    return fast > reference ? fast : reference;
}

// ------------------------------------------------------------------------------- scores

typedef struct row {
    const frit_seq *seq;
    int64_t t, n_seen;   // row of the batch; positions up to its own
} row;

static void load_queries(const frit_task *task, const row *at, room *r)
{
    const frit_cache_side *side = &task->env->cache->layers[task->node->choose.layer].index;
    const int64_t n_head = task->node->src[0]->shape[1], n = n_head * side->dim;
    memcpy(r->q, task->x[0] + at->t * n, (size_t)n * sizeof(float));
    for (int64_t h = 0; h < n_head; h++) frit_hadamard(r->q + h * side->dim, side->dim, side->hadamard);
}

// Lists the keys of positions [begin, end), decoded if no kernel reads their type. Returns the type.
static frit_dtype list_keys(const frit_task *task, const frit_seq *seq, frit_range positions, room *r,
                            const uint8_t **rows)
{
    const frit_kernels *k = task->env->kernels;
    const frit_cache_layer *layer = &task->env->cache->layers[task->node->choose.layer];
    const frit_cache_side *side = &layer->index;
    const int32_t *pages = frit_layer_pages(task, layer, seq);
    const bool direct = k->attend_scores[side->dtype] != NULL;
    for (int64_t p = positions.begin, i = 0; p < positions.end; p++, i++) {
        rows[i] = frit_cache_at(side, pages, p, 0);
        if (direct) continue;
        float *key = r->decoded + i * side->dim;
        if (k->decode[side->dtype])
            k->decode[side->dtype](rows[i], key, side->dim);
        else
            frit_dtype_get(side->dtype)->decode(rows[i], key, side->dim);
        rows[i] = (const uint8_t *)key;
    }
    return direct ? side->dtype : FRIT_DTYPE_F32;
}

// Scores at most FRIT_ATTEND_ROWS positions for the loaded queries.
static void score_positions(const frit_task *task, const row *at, frit_range positions, room *r, float *scores)
{
    const int64_t n_head = task->node->src[0]->shape[1], n = positions.end - positions.begin;
    const float *w = task->x[1] + at->t * n_head;
    const uint8_t *rows[FRIT_ATTEND_ROWS];
    const frit_dtype dtype = list_keys(task, at->seq, positions, r, rows);
    task->env->kernels->attend_scores[dtype](r->dots, r->q, n_head, rows, n, task->node->src[0]->shape[2]);
    memset(scores, 0, (size_t)n * sizeof(float));
    for (int64_t h = 0; h < n_head; h++) {
        const float *dots = r->dots + h * FRIT_ATTEND_ROWS;
        for (int64_t i = 0; i < n; i++) scores[i] += w[h] * (dots[i] > 0 ? dots[i] : 0);
    }
}

// Positions of a block, of which only the last can be chosen.
static int64_t block_of(const frit_task *task)
{
    return task->node->choose.block > 1 ? task->node->choose.block : 1;
}

static void offer_position(const frit_task *task, room *r, const float *scores, int64_t begin, int64_t n)
{
    const int64_t block = block_of(task);
    for (int64_t i = block - 1 - begin % block; i < n; i += block)
        frit_best_offer(&r->best, scores[i], (int32_t)(begin + i));
}

static void write_chosen(const frit_task *task, const row *at, room *r)
{
    const int64_t n = task->node->shape[1];
    float *y = task->y + at->t * n;
    frit_best_sort(&r->best, r->scratch);
    for (int64_t i = 0; i < n; i++) y[i] = i < r->best.n ? (float)r->best.ids[i] : -1;
}

static void write_all_positions(const frit_task *task, const row *at)
{
    const int64_t n = task->node->shape[1];
    float *y = task->y + at->t * n;
    const int64_t block = block_of(task), n_blocks = at->n_seen / block;
    for (int64_t i = 0; i < n; i++) y[i] = i < n_blocks ? (float)((i + 1) * block - 1) : -1;
}

static void choose_row(const frit_task *task, const row *at, room *r)
{
    r->best.n = 0;
    load_queries(task, at, r);
    for (int64_t p = 0, next; p < at->n_seen; p = next) {
        next = p + FRIT_ATTEND_ROWS < at->n_seen ? p + FRIT_ATTEND_ROWS : at->n_seen;
        score_positions(task, at, (frit_range){p, next}, r, r->scores);
        offer_position(task, r, r->scores, p, next - p);
    }
    write_chosen(task, at, r);
}

// ------------------------------------------------------------------------------- items

static bool is_decode(const frit_task *task)
{
    return task->node->shape[0] <= FRIT_SPLIT_SCORES_ROWS;
}

static float *scores_of(const frit_task *task, int64_t t)
{
    return (float *)(void *)task->shared + t * frit_attend_round_up(task->node->choose.n_ctx);
}

size_t frit_choose_shared_bytes(const frit_node *node, const frit_kernels *kernels)
{
    (void)kernels;
    const int64_t n_rows = node->shape[0] < FRIT_SPLIT_SCORES_ROWS ? node->shape[0] : FRIT_SPLIT_SCORES_ROWS;
    return (size_t)(n_rows * frit_attend_round_up(node->choose.n_ctx)) * sizeof(float);
}

static row row_at(const frit_seq *seq, int64_t i)
{
    return (row){seq, seq->first_row + i, seq->n_past + i + 1};
}

// Number of items of a row.
static int64_t n_items(const frit_task *task, const row *at)
{
    const bool all = at->n_seen / block_of(task) <= task->node->shape[1];
    return all || !is_decode(task) ? 1 : (at->n_seen + CHUNK - 1) / CHUNK;
}

int frit_choose_pieces(const frit_task *task)
{
    const frit_batch *batch = task->env->batch;
    int64_t n = 0;
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++)
        for (int64_t i = 0; i < batch->seqs[i_seq].n_rows; i++) {
            const row at = row_at(&batch->seqs[i_seq], i);
            n += n_items(task, &at);
        }
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

static void score_chunk(const frit_task *task, const row *at, int64_t chunk, room *r)
{
    const int64_t end = (chunk + 1) * CHUNK < at->n_seen ? (chunk + 1) * CHUNK : at->n_seen;
    load_queries(task, at, r);
    for (int64_t p = chunk * CHUNK, next; p < end; p = next) {
        next = p + FRIT_ATTEND_ROWS < end ? p + FRIT_ATTEND_ROWS : end;
        score_positions(task, at, (frit_range){p, next}, r, scores_of(task, at->t) + p);
    }
}

void frit_fast_choose(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    room r = take_room(task, share);
    int64_t item = 0;
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++)
        for (int64_t i = 0; i < batch->seqs[i_seq].n_rows; i++) {
            const row at = row_at(&batch->seqs[i_seq], i);
            const int64_t n = n_items(task, &at);
            for (int64_t chunk = 0; chunk < n; chunk++, item++) {
                if (!frit_share_has(share, item)) continue;
                if (at.n_seen / block_of(task) <= task->node->shape[1])
                    write_all_positions(task, &at);
                else if (is_decode(task))
                    score_chunk(task, &at, chunk, &r);
                else
                    choose_row(task, &at, &r);
            }
        }
}

int frit_choose_finish_pieces(const frit_task *task)
{
    return is_decode(task) ? frit_pieces_by_row(task) : 0;
}

void frit_fast_choose_finish(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    room r = take_room(task, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++)
        for (int64_t i = 0; i < batch->seqs[i_seq].n_rows; i++) {
            const row at = row_at(&batch->seqs[i_seq], i);
            if (at.n_seen / block_of(task) <= task->node->shape[1] || !frit_share_has(share, at.t)) continue;
            r.best.n = 0;
            offer_position(task, &r, scores_of(task, at.t), 0, at.n_seen);
            write_chosen(task, &at, &r);
        }
}

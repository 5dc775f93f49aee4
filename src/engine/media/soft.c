// SPDX-License-Identifier: MIT
// Soft tokens: the runs of an engine, runs in sessions, and the input of steps that have some.
#include "engine/media/soft.h"

#include "base/grow.h"
#include "base/sha256.h"
#include "engine/engine.h"
#include "engine/media/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- runs

// The id of row i: 30 bits of a hash, so that different pictures have different ids.
frit_token frit_soft_id(const uint8_t digest[32], int32_t i)
{
    uint8_t hash[32];
    frit_sha256 sum;
    const uint8_t row[4] = {(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16), (uint8_t)(i >> 24)};
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, digest, 32);
    frit_sha256_add(&sum, row, sizeof row);
    frit_sha256_end(&sum, hash);
    const uint32_t bits =
        (uint32_t)hash[0] | (uint32_t)hash[1] << 8 | (uint32_t)hash[2] << 16 | (uint32_t)hash[3] << 24;
    return (frit_token)((bits & (FRIT_FIRST_SOFT - 1)) | FRIT_FIRST_SOFT);
}

static void free_run(frit_soft_run *run)
{
    frit_picture_unref(run->picture);
    free(run->ids);
    free(run->features);
    free(run->places);
    free(run);
}

static frit_status enter(frit_soft_run *run)
{
    frit_soft_runs *all = &run->engine->soft;
    FRIT_TRY(FRIT_GROW(all->list, all->capacity, all->n + 1, "the pictures of an engine"));
    all->list[all->n++] = run;
    return FRIT_OK;
}

frit_status frit_soft_run_new(frit_soft_run **out, frit_engine *engine, const float *features, int32_t height,
                              int32_t width, int32_t n, const uint8_t digest[32], bool has_axes)
{
    const size_t n_tokens = (size_t)height * (size_t)width;
    *out = NULL;
    frit_soft_run *run = calloc(1, sizeof *run);
    if (!run) return frit_fail_memory(sizeof *run, "a picture");
    *run = (frit_soft_run){.engine = engine, .n_refs = 1, .n_tokens = (int32_t)n_tokens, .width = n};
    run->n_positions = !has_axes ? (int32_t)n_tokens : height > width ? height : width;
    run->ids = calloc(n_tokens, sizeof *run->ids);
    run->places = has_axes ? calloc(n_tokens, sizeof *run->places) : NULL;
    const bool fits = run->ids && (run->places || !has_axes);
    frit_status status = fits ? FRIT_OK : frit_fail_memory(n_tokens * sizeof *run->places, "the tokens of a picture");
    if (status == FRIT_OK && features) status = frit_soft_run_fill(run, features);
    if (status == FRIT_OK) status = enter(run);
    if (status != FRIT_OK) {
        free_run(run);
        return status;
    }
    memcpy(run->digest, digest, sizeof run->digest);
    for (int32_t i = 0; i < run->n_tokens; i++) {
        run->ids[i] = frit_soft_id(digest, i);
        if (has_axes) run->places[i][1] = i / width, run->places[i][2] = i % width;
    }
    *out = run;
    return FRIT_OK;
}

frit_status frit_soft_run_fill(frit_soft_run *run, const float *features)
{
    const size_t n = (size_t)run->n_tokens * (size_t)run->width;
    run->features = calloc(n, sizeof *run->features);
    if (!run->features) return frit_fail_memory(n * sizeof *features, "the features of a picture");
    memcpy(run->features, features, n * sizeof *features);
    frit_picture_unref(run->picture);
    run->picture = NULL;
    return FRIT_OK;
}

static uint64_t bytes_of(const frit_soft_run *run)
{
    return (uint64_t)run->n_tokens * (uint64_t)run->width * sizeof *run->features;
}

static void ref_run(frit_soft_run *run)
{
    if (run->n_refs++ == 0) run->engine->soft.idle_bytes -= bytes_of(run);
}

frit_soft_run *frit_soft_run_find(const frit_engine *engine, const uint8_t digest[32])
{
    for (size_t i = 0; i < engine->soft.n; i++) {
        frit_soft_run *run = engine->soft.list[i];
        if (memcmp(run->digest, digest, sizeof run->digest) != 0) continue;
        ref_run(run);
        return run;
    }
    return NULL;
}

static void remove_run(frit_soft_run *run)
{
    frit_soft_runs *all = run->engine ? &run->engine->soft : NULL;
    for (size_t i = 0; all && i < all->n; i++)
        if (all->list[i] == run) all->list[i--] = all->list[--all->n];
    free_run(run);
}

// Frees the least recently used runs without references until the others fit.
static void evict_runs(frit_soft_runs *all)
{
    while (all->idle_bytes > all->cache_bytes) {
        frit_soft_run *oldest = NULL;
        for (size_t i = 0; i < all->n; i++) {
            frit_soft_run *run = all->list[i];
            if (run->n_refs == 0 && (!oldest || run->used_at < oldest->used_at)) oldest = run;
        }
        all->idle_bytes -= bytes_of(oldest);
        remove_run(oldest);
    }
}

void frit_soft_run_unref(frit_soft_run *run)
{
    if (!run || --run->n_refs > 0) return;
    if (!run->engine || !run->features || run->engine->soft.cache_bytes == 0) {
        remove_run(run);
        return;
    }
    frit_soft_runs *all = &run->engine->soft;
    run->used_at = ++all->clock;
    all->idle_bytes += bytes_of(run);
    evict_runs(all);
}

void frit_soft_set_cache(frit_engine *engine, uint64_t n_bytes)
{
    engine->soft.cache_bytes = n_bytes;
    evict_runs(&engine->soft);
}

void frit_soft_runs_free(frit_engine *engine)
{
    frit_soft_runs *all = &engine->soft;
    frit_soft_set_cache(engine, 0);
    for (size_t i = 0; i < all->n; i++) all->list[i]->engine = NULL;
    free(all->list);
    *all = (frit_soft_runs){0};
}

// Returns the run that n tokens begin with; NULL: none.
static frit_soft_run *find_run(const frit_engine *engine, const frit_token *tokens, size_t n)
{
    for (size_t i = 0; i < engine->soft.n; i++) {
        frit_soft_run *run = engine->soft.list[i];
        if ((size_t)run->n_tokens <= n && memcmp(run->ids, tokens, (size_t)run->n_tokens * sizeof *tokens) == 0)
            return run;
    }
    return NULL;
}

// ------------------------------------------------------------------------------- sessions

static int64_t n_turns(const frit_hparams *hp)
{
    return frit_has_rope_axes(hp) ? hp->rope.dim : 0;
}

uint64_t frit_soft_step_bytes(const frit_engine *engine, int32_t n_rows)
{
    return (uint64_t)n_rows * (uint64_t)frit_soft_row_width(&engine->hp) * sizeof(float);
}

static frit_status check_run(const frit_session *session, const frit_soft_run *run)
{
    const frit_model *model = session->engine->model;
    if (!frit_arch_reads_media(model->arch, &model->hp))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: models of the architecture '%s' read no pictures",
                              model->info.path, model->arch->name);
    if (session->shift.on) return frit_fail(FRIT_E_UNSUPPORTED, "a session whose context shifts reads no pictures");
    if (run->width == frit_feature_width(&model->hp)) return FRIT_OK;
    return frit_fail_file(FRIT_E_INVALID, "%s: a picture has rows of %d features, expected %lld", model->info.path,
                          (int)run->width, (long long)frit_feature_width(&model->hp));
}

// Makes steps so large that they have all rows of a picture, if these see each other.
static frit_status reserve_step(const frit_session *session, const frit_soft_run *run)
{
    frit_engine *engine = session->engine;
    if (engine->hp.media.seeing == FRIT_SEEING_NONE || run->n_tokens <= engine->n_batch) return FRIT_OK;
    FRIT_TRY(frit_session_settle_all(session));
    return frit_engine_grow(engine, (size_t)run->n_tokens);
}

// Allocates the input of steps with soft tokens when the first come, or steps have become larger.
static frit_status reserve_rows(frit_engine *engine)
{
    const uint64_t n_bytes = frit_soft_step_bytes(engine, engine->n_batch);
    if (engine->soft.rows && engine->soft.n_rows >= engine->n_batch) return FRIT_OK;
    float *rows = frit_arena_alloc(&engine->arena, (size_t)n_bytes, sizeof(float));
    if (!rows) return frit_fail_memory((size_t)n_bytes, "the features of a step");
    engine->soft.rows = rows;
    engine->soft.n_rows = engine->n_batch;
    return FRIT_OK;
}

frit_status frit_session_soft_reserve(frit_session *session, const frit_token *tokens, size_t n)
{
    size_t n_runs = 0;
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < FRIT_FIRST_SOFT) continue;
        const frit_soft_run *run = find_run(session->engine, tokens + i, n - i);
        if (!run)
            return frit_fail(FRIT_E_INVALID, "token %zu of %zu is %d, which begins no picture of this engine", i, n,
                             (int)tokens[i]);
        FRIT_TRY(check_run(session, run));
        FRIT_TRY(reserve_step(session, run));
        i += (size_t)run->n_tokens - 1;
        n_runs++;
    }
    if (n_runs == 0) return FRIT_OK;
    FRIT_TRY(reserve_rows(session->engine));
    return FRIT_GROW(session->soft.items, session->soft.capacity, session->soft.n + n_runs, "a session's pictures");
}

void frit_session_soft_take(frit_session *session, const frit_token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < FRIT_FIRST_SOFT) continue;
        frit_soft_run *run = find_run(session->engine, tokens + i, n - i);
        ref_run(run);
        session->soft.items[session->soft.n++] = (frit_soft_item){run, session->n_tokens + i};
        i += (size_t)run->n_tokens - 1;
    }
}

// Returns the run that token i is a part of, or NULL.
static const frit_soft_item *find_item(const frit_session *session, size_t i)
{
    for (size_t k = 0; k < session->soft.n; k++) {
        const frit_soft_item *item = &session->soft.items[k];
        if (i >= item->first && i - item->first < (size_t)item->run->n_tokens) return item;
    }
    return NULL;
}

frit_soft_run *frit_session_soft_awaits(const frit_session *session)
{
    if (session->failure.status != FRIT_OK || session->prefix.is_reading) return NULL;
    for (size_t k = 0; k < session->soft.n; k++) {
        const frit_soft_item *item = &session->soft.items[k];
        if (!item->run->features && item->first + (size_t)item->run->n_tokens > session->n_done) return item->run;
    }
    return NULL;
}

// Runs that end before token i take fewer rotary positions than they have tokens.
int32_t frit_session_rotary(const frit_session *session, size_t i)
{
    int32_t position = (int32_t)i;
    for (size_t k = 0; k < session->soft.n; k++) {
        const frit_soft_item *item = &session->soft.items[k];
        if (item->first + (size_t)item->run->n_tokens <= i) position -= item->run->n_tokens - item->run->n_positions;
    }
    return position;
}

frit_status frit_session_soft_copy(frit_session *to, const frit_session *from)
{
    FRIT_TRY(FRIT_GROW(to->soft.items, to->soft.capacity, from->soft.n, "a session's pictures"));
    for (size_t k = 0; k < from->soft.n; k++) {
        to->soft.items[k] = from->soft.items[k];
        ref_run(to->soft.items[k].run);
    }
    to->soft.n = from->soft.n;
    return FRIT_OK;
}

void frit_session_soft_drop(frit_session *session, size_t n_keep)
{
    frit_session_soft *all = &session->soft;
    while (all->n > 0 && all->items[all->n - 1].first >= n_keep) frit_soft_run_unref(all->items[--all->n].run);
}

size_t frit_session_soft_floor(const frit_session *session, size_t n)
{
    const frit_soft_item *item = find_item(session, n);
    return item ? item->first : n;
}

size_t frit_session_soft_rows(const frit_session *session, size_t first, size_t n)
{
    if (session->engine->hp.media.seeing == FRIT_SEEING_NONE || session->soft.n == 0 || n == 0) return n;
    const size_t end = frit_session_soft_floor(session, first + n);
    const frit_soft_item *item = end > first ? NULL : find_item(session, first);
    return item ? item->first + (size_t)item->run->n_tokens - first : end - first;
}

void frit_session_soft_free(frit_session *session)
{
    frit_session_soft_drop(session, 0);
    free(session->soft.items);
    session->soft = (frit_session_soft){0};
}

// ------------------------------------------------------------------------------- steps

// The axis that pair i of a head turns by: sections of time, row, column, one after the other. If they are mixed, rows
// and columns have one pair each of three, as long as their sections last.
static int axis_of(const frit_hparams *hp, int64_t i)
{
    int axis = (int)(i % FRIT_ROPE_AXES);
    if (hp->is_rope_mixed) return i < (int64_t)FRIT_ROPE_AXES * hp->rope_sections[axis] ? axis : 0;
    axis = 0;
    for (int64_t end = hp->rope_sections[0]; axis < FRIT_ROPE_AXES - 1 && i >= end; end += hp->rope_sections[axis])
        axis++;
    return axis;
}

static void write_turns(const frit_session *session, size_t i, const frit_soft_item *item, float *turns)
{
    const frit_hparams *hp = &session->engine->hp;
    const float *inv_freq = hp->rope_table.inv_freq->data;
    const int64_t n_pairs = hp->rope.dim / 2;
    const int32_t first = frit_session_rotary(session, item ? item->first : i);
    const int32_t *place = item ? item->run->places[i - item->first] : NULL;
    for (int64_t k = 0; k < n_pairs; k++) {
        const int32_t position = first + (place ? place[axis_of(hp, k)] : 0);
        const double angle = (double)position * (double)inv_freq[k];
        turns[k] = (float)(cos(angle) * (double)hp->rope_table.magnitude);
        turns[n_pairs + k] = (float)(sin(angle) * (double)hp->rope_table.magnitude);
    }
}

static void write_row(const frit_session *session, size_t i, float *row)
{
    const frit_hparams *hp = &session->engine->hp;
    const size_t n = (size_t)frit_feature_width(hp);
    const frit_soft_item *item = find_item(session, i);
    row[0] = item ? 1 : 0;
    if (item)
        memcpy(row + 1, item->run->features + (i - item->first) * n, n * sizeof *row);
    else
        memset(row + 1, 0, n * sizeof *row);
    if (n_turns(hp) > 0) write_turns(session, i, item, row + 1 + n);
    const size_t end = item ? item->first + (size_t)item->run->n_tokens : i + 1;
    if (hp->media.seeing != FRIT_SEEING_NONE) row[frit_soft_row_width(hp) - 1] = (float)end;
}

static bool has_soft_rows(const frit_step *step)
{
    for (int32_t i = 0; i < step->n_rows; i++)
        if (step->tokens[i] >= FRIT_FIRST_SOFT) return true;
    return false;
}

void frit_soft_lay_out(frit_engine *engine)
{
    frit_step *step = engine->step;
    step->has_soft = engine->soft.rows && has_soft_rows(step);
    if (!step->has_soft) return;
    const size_t width = (size_t)frit_soft_step_bytes(engine, 1) / sizeof(float);
    for (int32_t s = 0; s < step->n_seqs; s++) {
        const frit_seq *seq = &step->seqs[s];
        for (int32_t k = 0; k < seq->n_rows; k++) {
            const int32_t row = seq->first_row + k;
            write_row(step->owners[s], (size_t)(seq->n_past + k), engine->soft.rows + (size_t)row * width);
            // An entry of the table, of which only per-layer embeddings are used.
            if (step->tokens[row] >= FRIT_FIRST_SOFT) step->tokens[row] = engine->hp.media.padding;
        }
    }
}

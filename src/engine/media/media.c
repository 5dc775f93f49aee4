// SPDX-License-Identifier: MIT
// Pictures in sessions: their tokens, and the input of steps that have some.
#include "engine/media/media.h"

#include "base/grow.h"
#include "base/sha256.h"
#include "engine/engine.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- pictures

// The id of row i: 30 bits of a hash, so that different pictures have different ids.
static frit_token soft_id(const uint8_t digest[32], int32_t i)
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

frit_status frit_media_of_features(frit_media **out, const float *features, int32_t height, int32_t width, int32_t n,
                                   const uint8_t digest[32], bool has_axes)
{
    const size_t n_tokens = (size_t)height * (size_t)width;
    *out = NULL;
    frit_media *media = calloc(1, sizeof *media);
    if (!media) return frit_fail_memory(sizeof *media, "a picture");
    *media = (frit_media){.n_tokens = (int32_t)n_tokens, .width = n};
    atomic_init(&media->n_refs, 1);
    media->n_positions = !has_axes ? (int32_t)n_tokens : height > width ? height : width;
    media->ids = calloc(n_tokens, sizeof *media->ids);
    media->features = calloc(n_tokens * (size_t)n, sizeof *media->features);
    media->places = has_axes ? calloc(n_tokens, sizeof *media->places) : NULL;
    if (!media->ids || !media->features || (has_axes && !media->places)) {
        frit_media_unref(media);
        return frit_fail_memory(n_tokens * (size_t)n * sizeof *media->features, "the features of a picture");
    }
    memcpy(media->features, features, n_tokens * (size_t)n * sizeof *features);
    for (int32_t i = 0; i < media->n_tokens; i++) {
        media->ids[i] = soft_id(digest, i);
        if (has_axes) media->places[i][1] = i / width, media->places[i][2] = i % width;
    }
    *out = media;
    return FRIT_OK;
}

frit_media *frit_media_ref(frit_media *media)
{
    atomic_fetch_add(&media->n_refs, 1);
    return media;
}

void frit_media_unref(frit_media *media)
{
    if (!media || atomic_fetch_sub(&media->n_refs, 1) > 1) return;
    free(media->ids);
    free(media->features);
    free(media->places);
    free(media);
}

// ------------------------------------------------------------------------------- sessions

static frit_status check_model(const frit_session *session, const frit_media *media)
{
    const frit_model *model = session->engine->model;
    if (!frit_arch_reads_media(model->arch, &model->hp))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: models of the architecture '%s' read no pictures yet",
                              model->info.path, model->arch->name);
    if (media->width == model->hp.n_embd) return FRIT_OK;
    return frit_fail_file(FRIT_E_INVALID, "%s: a picture has rows of %d features, expected %d", model->info.path,
                          (int)media->width, (int)model->hp.n_embd);
}

static int64_t n_turns(const frit_hparams *hp)
{
    return frit_has_rope_axes(hp) ? hp->rope.dim : 0;
}

uint64_t frit_media_step_bytes(const frit_engine *engine, int32_t n_rows)
{
    return (uint64_t)n_rows * (uint64_t)(1 + engine->hp.n_embd + n_turns(&engine->hp)) * sizeof(float);
}

// Allocates the input of steps with pictures when the first comes.
static frit_status reserve_input(frit_engine *engine)
{
    const uint64_t n_bytes = frit_media_step_bytes(engine, engine->n_batch);
    if (engine->media_rows) return FRIT_OK;
    engine->media_rows = frit_arena_alloc(&engine->arena, (size_t)n_bytes, sizeof(float));
    return engine->media_rows ? FRIT_OK : frit_fail_memory((size_t)n_bytes, "the features of a step");
}

frit_status frit_session_push_features(frit_session *session, frit_media *media)
{
    frit_session_media *all = &session->media;
    FRIT_TRY(frit_session_check_usable(session));
    FRIT_TRY(frit_session_status(session));
    FRIT_TRY(check_model(session, media));
    if (session->shift.on) return frit_fail(FRIT_E_UNSUPPORTED, "a session whose context shifts reads no pictures");
    FRIT_TRY(frit_session_make_room(session, (size_t)media->n_tokens));
    FRIT_TRY(reserve_input(session->engine));
    FRIT_TRY(FRIT_GROW(all->items, all->capacity, all->n + 1, "the pictures of a session"));
    all->items[all->n++] = (frit_media_item){frit_media_ref(media), session->n_tokens};
    memcpy(session->tokens + session->n_tokens, media->ids, (size_t)media->n_tokens * sizeof *media->ids);
    session->n_tokens += (size_t)media->n_tokens;
    session->pick.n_forced = 0;
    session->results.needs_logits = true;
    return FRIT_OK;
}

// Returns the picture that token i is a part of, or NULL.
static const frit_media_item *find_item(const frit_session *session, size_t i)
{
    for (size_t k = 0; k < session->media.n; k++) {
        const frit_media_item *item = &session->media.items[k];
        if (i >= item->first && i - item->first < (size_t)item->media->n_tokens) return item;
    }
    return NULL;
}

// Pictures before token i that end before it take fewer rotary positions than they have tokens.
int32_t frit_session_rotary(const frit_session *session, size_t i)
{
    int32_t position = (int32_t)i;
    for (size_t k = 0; k < session->media.n; k++) {
        const frit_media_item *item = &session->media.items[k];
        const size_t end = item->first + (size_t)item->media->n_tokens;
        if (end <= i) position -= item->media->n_tokens - item->media->n_positions;
    }
    return position;
}

frit_status frit_session_media_copy(frit_session *to, const frit_session *from)
{
    frit_session_media *all = &to->media;
    FRIT_TRY(FRIT_GROW(all->items, all->capacity, from->media.n, "the pictures of a session"));
    for (size_t k = 0; k < from->media.n; k++) {
        all->items[k] = from->media.items[k];
        frit_media_ref(all->items[k].media);
    }
    all->n = from->media.n;
    return FRIT_OK;
}

void frit_session_media_drop(frit_session *session, size_t n_keep)
{
    frit_session_media *all = &session->media;
    while (all->n > 0 && all->items[all->n - 1].first >= n_keep) frit_media_unref(all->items[--all->n].media);
}

size_t frit_session_media_floor(const frit_session *session, size_t n)
{
    const frit_media_item *item = n > 0 ? find_item(session, n) : NULL;
    return item ? item->first : n;
}

void frit_session_media_free(frit_session *session)
{
    frit_session_media_drop(session, 0);
    free(session->media.items);
    session->media = (frit_session_media){0};
}

// ------------------------------------------------------------------------------- steps

// The axis that pair i of a head turns by: sections of time, row, column, one after the other.
static int axis_of(const frit_hparams *hp, int64_t i)
{
    int axis = 0;
    for (int64_t end = hp->rope_sections[0]; axis < FRIT_ROPE_AXES - 1 && i >= end; end += hp->rope_sections[axis])
        axis++;
    return axis;
}

static void write_turns(const frit_engine *engine, const frit_session *session, size_t i, const frit_media_item *item,
                        float *turns)
{
    const frit_hparams *hp = &engine->hp;
    const float *inv_freq = hp->rope_table.inv_freq->data;
    const int64_t n_pairs = hp->rope.dim / 2;
    const int32_t first = frit_session_rotary(session, item ? item->first : i);
    const int32_t *place = item ? item->media->places[i - item->first] : NULL;
    for (int64_t k = 0; k < n_pairs; k++) {
        const int32_t position = first + (place ? place[axis_of(hp, k)] : 0);
        const double angle = (double)position * (double)inv_freq[k];
        turns[k] = (float)(cos(angle) * (double)hp->rope_table.magnitude);
        turns[n_pairs + k] = (float)(sin(angle) * (double)hp->rope_table.magnitude);
    }
}

static void write_row(const frit_engine *engine, const frit_session *session, size_t i, float *row)
{
    const int64_t n_embd = engine->hp.n_embd;
    const frit_media_item *item = find_item(session, i);
    row[0] = item ? 1 : 0;
    if (item)
        memcpy(row + 1, item->media->features + (i - item->first) * (size_t)n_embd, (size_t)n_embd * sizeof *row);
    else
        memset(row + 1, 0, (size_t)n_embd * sizeof *row);
    if (n_turns(&engine->hp) > 0) write_turns(engine, session, i, item, row + 1 + n_embd);
}

static bool has_soft_rows(const frit_step *step)
{
    for (int32_t i = 0; i < step->n_rows; i++)
        if (step->tokens[i] >= FRIT_FIRST_SOFT) return true;
    return false;
}

void frit_media_lay_out(frit_engine *engine)
{
    frit_step *step = engine->step;
    step->has_media = engine->media_rows && has_soft_rows(step);
    if (!step->has_media) return;
    const size_t width = (size_t)frit_media_step_bytes(engine, 1) / sizeof(float);
    for (int32_t s = 0; s < step->n_seqs; s++) {
        const frit_seq *seq = &step->seqs[s];
        for (int32_t k = 0; k < seq->n_rows; k++) {
            const int32_t row = seq->first_row + k;
            write_row(engine, step->owners[s], (size_t)(seq->n_past + k), engine->media_rows + (size_t)row * width);
            if (step->tokens[row] >= FRIT_FIRST_SOFT) step->tokens[row] = 0;   // an entry of the table; not used
        }
    }
}

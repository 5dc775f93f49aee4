// SPDX-License-Identifier: MIT
// Pictures as tokens: digests, marks.
#include "engine/media/picture.h"

#include "base/grow.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- digests

// Hashes what the features depend on: the encoder, the pixels and how they are prepared. Pictures with other salts
// share nothing.
static void hash_picture(frit_picture *picture, const frit_picture_rules *rules, const char *salt)
{
    frit_sha256 sum;
    const frit_processor *p = &picture->processor;
    const frit_image *image = picture->image;
    const double factors[] = {
        p->rescales ? p->rescale : 1, p->normalizes, p->filter, p->n_bits, p->is_fused, p->is_bf16};
    const uint32_t numbers[] = {image->width, image->height, picture->plan.out_width, picture->plan.out_height,
                                picture->plan.n_tiles};
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, rules->digest, sizeof rules->digest);
    frit_sha256_add(&sum, numbers, sizeof numbers);
    frit_sha256_add(&sum, factors, sizeof factors);
    frit_sha256_add(&sum, p->mean, sizeof p->mean);
    frit_sha256_add(&sum, p->deviation, sizeof p->deviation);
    frit_sha256_add(&sum, image->rgb, (size_t)image->width * image->height * 3);
    if (salt) frit_sha256_add(&sum, salt, strlen(salt));
    frit_sha256_end(&sum, picture->digest);
}

static void hash_run(const frit_picture *picture, frit_picture_run *run)
{
    frit_sha256 sum;
    const uint32_t numbers[] = {run->first, run->n};
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, picture->digest, sizeof picture->digest);
    frit_sha256_add(&sum, numbers, sizeof numbers);
    frit_sha256_end(&sum, run->digest);
}

// ------------------------------------------------------------------------------- tokens

typedef struct writing {
    const frit_model *model;
    frit_picture *picture;
    uint32_t n_written;   // soft tokens
} writing;

static frit_status add_marks(const writing *w, const char *text)
{
    frit_picture *picture = w->picture;
    frit_token marks[2 * FRIT_MARK_BYTES];
    size_t n;
    FRIT_TRY(frit_tokenize(w->model, text, strlen(text), FRIT_TEXT_PARSE_SPECIAL, marks, FRIT_COUNT(marks), &n));
    FRIT_TRY(FRIT_GROW(picture->tokens, picture->capacity, picture->n + n, "the tokens of a picture"));
    memcpy(picture->tokens + picture->n, marks, n * sizeof *marks);
    picture->n += n;
    return FRIT_OK;
}

// Adds a part of what replaces the placeholder: a mark, or n_soft soft tokens.
static frit_status add_part(void *ctx, const char *text, uint32_t n_soft)
{
    writing *w = ctx;
    frit_picture *picture = w->picture;
    if (text) return add_marks(w, text);
    FRIT_TRY(FRIT_GROW(picture->runs, picture->runs_capacity, picture->n_runs + 1, "the features of a picture"));
    FRIT_TRY(FRIT_GROW(picture->tokens, picture->capacity, picture->n + n_soft, "the tokens of a picture"));
    frit_picture_run *run = &picture->runs[picture->n_runs++];
    *run = (frit_picture_run){.first = w->n_written, .n = n_soft};
    hash_run(picture, run);
    for (uint32_t i = 0; i < n_soft; i++) picture->tokens[picture->n++] = frit_soft_id(run->digest, (int32_t)i);
    w->n_written += n_soft;
    return FRIT_OK;
}

static frit_status add_tokens(frit_picture *picture, const frit_model *model)
{
    const frit_processor *p = &picture->processor;
    frit_picture_edges *edges = &picture->edges;
    writing w = {.model = model, .picture = picture};
    snprintf(edges->place, sizeof edges->place, "%s", p->placeholder);
    snprintf(edges->lead, sizeof edges->lead, "%s", p->lead);
    snprintf(edges->tail, sizeof edges->tail, "%s", p->tail);
    if (p->lead[0]) FRIT_TRY(add_marks(&w, p->lead));
    edges->n_lead = picture->n;
    FRIT_TRY(frit_processor_marks(p, &picture->plan, add_part, &w));
    const size_t n_before = picture->n;
    if (p->tail[0]) FRIT_TRY(add_marks(&w, p->tail));
    edges->n_tail = picture->n - n_before;
    return FRIT_OK;
}

// Cuts patches now if they need no more memory than the image, which is given up then.
static frit_status cut_small(frit_picture *picture)
{
    const size_t n_values = (size_t)picture->plan.n_patches * picture->plan.patch_values;
    const size_t n_pixels = (size_t)picture->image->width * picture->image->height;
    if (n_values * sizeof(float) > n_pixels * 3) return FRIT_OK;
    picture->patches = calloc(n_values, sizeof *picture->patches);
    if (!picture->patches) return frit_fail_memory(n_values * sizeof(float), "the patches of a picture");
    FRIT_TRY(frit_processor_patches(&picture->processor, &picture->plan, picture->image, picture->patches));
    frit_image_free(picture->image);
    picture->image = NULL;
    return FRIT_OK;
}

static frit_status make_picture(frit_picture *picture, const frit_model *model, const frit_media_options *options)
{
    const frit_picture_rules *rules;
    const frit_image *image = picture->image;
    FRIT_TRY(frit_model_get_picture_rules(model, &rules));
    picture->processor = rules->processor;
    picture->placeholder = rules->placeholder;
    if (options) frit_processor_limit(&picture->processor, options->min_tokens, options->max_tokens);
    FRIT_TRY(frit_processor_plan(&picture->plan, &picture->processor, image->width, image->height));
    hash_picture(picture, rules, options ? options->salt : NULL);
    FRIT_TRY(add_tokens(picture, model));
    return cut_small(picture);
}

frit_status frit_picture_new(frit_picture **out, const frit_model *model, const frit_image *image,
                             const frit_media_options *options)
{
    *out = NULL;
    frit_picture *picture = calloc(1, sizeof *picture);
    if (!picture) return frit_fail_memory(sizeof *picture, "a picture");
    atomic_init(&picture->n_refs, 1);
    picture->image = (frit_image *)(uintptr_t)image;   // only the reference count changes
    frit_image_retain(picture->image);
    const frit_status status = make_picture(picture, model, options);
    if (status != FRIT_OK) {
        frit_picture_unref(picture);
        return status;
    }
    *out = picture;
    return FRIT_OK;
}

frit_picture *frit_picture_ref(frit_picture *picture)
{
    atomic_fetch_add(&picture->n_refs, 1);
    return picture;
}

void frit_picture_unref(frit_picture *picture)
{
    if (!picture || atomic_fetch_sub(&picture->n_refs, 1) > 1) return;
    frit_image_free(picture->image);
    free(picture->patches);
    free(picture->tokens);
    free(picture->runs);
    free(picture);
}

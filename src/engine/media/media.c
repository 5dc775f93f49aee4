// SPDX-License-Identifier: MIT
// Pictures as parts of prompts: the processor cuts them into patches, the encoder makes features of these.
#include "engine/media/media.h"

#include "base/grow.h"
#include "base/sha256.h"
#include "engine/media/anyres.h"
#include "engine/media/encoder.h"
#include "format/processor.h"
#include "media/image.h"

#include <stdlib.h>
#include <string.h>

struct frit_pictures {
    frit_processor processor;
    frit_token placeholder;
    frit_encoder *encoder;
};

// ------------------------------------------------------------------------------- opening

static frit_status open_processor(frit_pictures *pictures, const frit_model *model)
{
    bool found = false;
    const char *path = model->info.path;
    if (strcmp(model->ckpt->format, "safetensors") != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: pictures are read by models in Hugging Face folders only", path);
    FRIT_TRY(frit_processor_open(&pictures->processor, &found, path));
    if (!found) return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no processor of pictures", path);
    pictures->placeholder = frit_vocab_find(&model->vocab, frit_str_of(pictures->processor.placeholder));
    if (pictures->placeholder >= 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: the vocabulary has no token '%s', which stands for a picture", path,
                          pictures->processor.placeholder);
}

void frit_pictures_free(frit_pictures *pictures)
{
    if (!pictures) return;
    frit_encoder_close(pictures->encoder);
    free(pictures);
}

static frit_status open_pictures(frit_engine *engine)
{
    const frit_model *model = engine->model;
    if (engine->pictures) return FRIT_OK;
    if (!frit_arch_reads_media(model->arch, &model->hp))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: models of the architecture '%s' read no pictures",
                              model->info.path, model->arch->name);
    frit_pictures *pictures = calloc(1, sizeof *pictures);
    if (!pictures) return frit_fail_memory(sizeof *pictures, "the encoder of pictures");
    frit_status status = open_processor(pictures, model);
    if (status == FRIT_OK) status = frit_encoder_open(&pictures->encoder, engine, model->info.path);
    if (status != FRIT_OK) {
        frit_pictures_free(pictures);
        return status;
    }
    engine->pictures = pictures;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- features and tokens

// A picture whose tokens are being written: marks, and runs of soft tokens between them.
typedef struct writing {
    frit_engine *engine;
    const frit_image *image;
    frit_processor processor;   // the engine's, within the limits of the options
    frit_picture_plan plan;
    frit_media *media;
    float *features;      // [plan.n_soft, width] of all tiles; NULL: not encoded yet
    uint32_t n_written;   // soft tokens
} writing;

// Hashes what the features of a run depend on: the pixels, how they are prepared, and the run's first soft token.
static void hash_run(const writing *w, uint8_t digest[32])
{
    frit_sha256 sum;
    const frit_processor *p = &w->processor;
    const double factors[] = {
        p->rescales ? p->rescale : 1, p->normalizes, p->filter, p->n_bits, p->is_fused, p->is_bf16};
    const uint32_t numbers[] = {w->image->width,    w->image->height, w->plan.out_width,
                                w->plan.out_height, w->plan.n_tiles,  w->n_written};
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, numbers, sizeof numbers);
    frit_sha256_add(&sum, factors, sizeof factors);
    frit_sha256_add(&sum, p->mean, sizeof p->mean);
    frit_sha256_add(&sum, p->deviation, sizeof p->deviation);
    frit_sha256_add(&sum, w->image->rgb, (size_t)w->image->width * w->image->height * 3);
    frit_sha256_end(&sum, digest);
}

// Encodes n_features features of all tiles, one tile after the other.
static frit_status encode_tiles(const writing *w, const float *patches, size_t n_features, float *features)
{
    frit_encoder *encoder = w->engine->pictures->encoder;
    int64_t n_left = (int64_t)n_features;
    for (uint32_t i = 0; i < w->plan.n_tiles; i++) {
        const frit_grid tile = frit_plan_tile(&w->plan, &w->processor, i);
        const frit_media_grid grid = {(int32_t)tile.rows, (int32_t)tile.columns};
        frit_media_size size;
        FRIT_TRY(frit_encoder_count(encoder, grid, &size));
        n_left -= size.n_outs;
        if (n_left < 0) break;
        FRIT_TRY(frit_encoder_run(encoder, grid, patches, features));
        patches += (size_t)tile.rows * tile.columns * w->plan.patch_values;
        features += size.n_outs * frit_encoder_width(encoder);
    }
    if (n_left == 0) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED,
                     "the model's processor expects %zu features of this picture, and its encoder gives another number",
                     n_features);
}

// Encodes the tiles, and puts their features together.
static frit_status encode_anyres(const writing *w, const float *patches)
{
    const frit_encoder *encoder = w->engine->pictures->encoder;
    const float *newline = frit_encoder_newline(encoder);
    const size_t width = (size_t)frit_encoder_width(encoder);
    const size_t n = (size_t)w->plan.n_tiles * frit_plan_tile_soft(&w->plan, &w->processor, 0);
    if (!newline) return frit_fail(FRIT_E_FORMAT, "the model has no image_newline, which ends the rows of a picture");
    float *tiles = calloc(n * width, sizeof *tiles);
    if (!tiles) return frit_fail_memory(n * width * sizeof *tiles, "the tiles of a picture");
    const frit_status status = encode_tiles(w, patches, n, tiles);
    if (status == FRIT_OK) frit_anyres_join(&w->plan, tiles, newline, width, w->features);
    free(tiles);
    return status;
}

// Cuts the picture into patches and encodes all of its tiles.
static frit_status encode(writing *w)
{
    const size_t n = (size_t)w->plan.n_patches * w->plan.patch_values;
    const frit_encoder *encoder = w->engine->pictures->encoder;
    const size_t n_features = (size_t)w->plan.n_soft * (size_t)frit_encoder_width(encoder);
    if (w->plan.patch_values != (uint32_t)frit_encoder_patch_width(encoder))
        return frit_fail(FRIT_E_FORMAT, "the model's processor cuts patches of %u numbers, its encoder reads %lld",
                         w->plan.patch_values, (long long)frit_encoder_patch_width(encoder));
    float *patches = calloc(n, sizeof *patches);
    w->features = calloc(n_features, sizeof *w->features);
    frit_status status =
        patches && w->features ? FRIT_OK : frit_fail_memory((n + n_features) * sizeof(float), "a picture");
    if (status == FRIT_OK) status = frit_processor_patches(&w->processor, &w->plan, w->image, patches);
    if (status == FRIT_OK)
        status = w->processor.rule == FRIT_RULE_ANYRES ? encode_anyres(w, patches)
                                                       : encode_tiles(w, patches, w->plan.n_soft, w->features);
    free(patches);
    return status;
}

// Makes the run of the next n features, or takes the one that a session or another picture still has.
static frit_status make_run(writing *w, uint32_t n, frit_soft_run **out)
{
    uint8_t digest[32];
    const bool has_axes = frit_has_rope_axes(&w->engine->hp);
    const int32_t columns = (int32_t)(has_axes ? w->plan.tile_patches.columns / w->processor.merge : n);
    hash_run(w, digest);
    *out = frit_soft_run_find(w->engine, digest);
    if (*out) return FRIT_OK;
    if (has_axes && n != w->plan.n_soft)
        return frit_fail(FRIT_E_UNSUPPORTED, "a picture of %u tiles, expected one for a model with M-RoPE",
                         w->plan.n_tiles);
    if (!w->features) FRIT_TRY(encode(w));
    const int64_t width = frit_encoder_width(w->engine->pictures->encoder);
    return frit_soft_run_new(out, w->engine, w->features + w->n_written * width, (int32_t)n / columns, columns,
                             (int32_t)width, digest, has_axes);
}

static frit_status add_tokens(frit_media *media, const frit_token *tokens, size_t n)
{
    FRIT_TRY(FRIT_GROW(media->tokens, media->capacity, media->n + n, "the tokens of a picture"));
    memcpy(media->tokens + media->n, tokens, n * sizeof *tokens);
    media->n += n;
    return FRIT_OK;
}

// Adds a part of what replaces the placeholder: a mark, or n_soft soft tokens.
static frit_status add_part(void *ctx, const char *text, uint32_t n_soft)
{
    writing *w = ctx;
    frit_media *media = w->media;
    if (text) {
        frit_token marks[2 * FRIT_MARK_BYTES];
        size_t n;
        FRIT_TRY(
            frit_tokenize(w->engine->model, text, strlen(text), FRIT_TEXT_PARSE_SPECIAL, marks, FRIT_COUNT(marks), &n));
        return add_tokens(media, marks, n);
    }
    FRIT_TRY(FRIT_GROW(media->runs, media->runs_capacity, media->n_runs + 1, "the features of a picture"));
    FRIT_TRY(make_run(w, n_soft, &media->runs[media->n_runs]));
    w->n_written += n_soft;
    return add_tokens(media, media->runs[media->n_runs++]->ids, n_soft);
}

static frit_status make_media(frit_media *media, frit_engine *engine, const frit_image *image,
                              const frit_media_options *options)
{
    writing w = {.engine = engine, .image = image, .media = media};
    FRIT_TRY(open_pictures(engine));
    w.processor = engine->pictures->processor;
    if (options) frit_processor_limit(&w.processor, options->min_tokens, options->max_tokens);
    FRIT_TRY(frit_processor_plan(&w.plan, &w.processor, image->width, image->height));
    media->placeholder = engine->pictures->placeholder;
    const frit_status status = frit_processor_marks(&w.processor, &w.plan, add_part, &w);
    free(w.features);
    return status;
}

frit_status frit_media_new(frit_media **out, frit_engine *engine, const frit_image *image,
                           const frit_media_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(engine);
    FRIT_REQUIRE(image);
    FRIT_REQUIRE_UNUSED(options);
    if (options && options->max_tokens > 0 && options->min_tokens > options->max_tokens)
        return frit_fail(FRIT_E_INVALID, "a picture of at least %u and at most %u tokens", options->min_tokens,
                         options->max_tokens);
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a picture cannot be encoded from within a row function");
    frit_media *media = calloc(1, sizeof *media);
    if (!media) return frit_fail_memory(sizeof *media, "a picture");
    media->n_refs = 1;
    const frit_status status = make_media(media, engine, image, options);
    if (status != FRIT_OK) {
        frit_media_free(media);
        return status;
    }
    *out = media;
    return FRIT_OK;
}

frit_media *frit_media_ref(frit_media *media)
{
    media->n_refs++;
    return media;
}

void frit_media_free(frit_media *media)
{
    if (!media || --media->n_refs > 0) return;
    for (size_t i = 0; i < media->n_runs; i++) frit_soft_run_unref(media->runs[i]);
    free(media->runs);
    free(media->tokens);
    free(media);
}

const frit_token *frit_media_tokens(const frit_media *media, size_t *n_tokens)
{
    FRIT_REQUIRE_OR(NULL, n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE_OR(NULL, media);
    *n_tokens = media->n;
    return media->tokens;
}

frit_status frit_media_place_all(frit_token **out, size_t *n_out, const frit_token *tokens, size_t n,
                                 frit_media *const *media, size_t n_media)
{
    size_t n_found = 0, n_all = n, at = 0;
    for (size_t i = 0; i < n; i++) n_found += n_media > 0 && tokens[i] == media[0]->placeholder;
    if (n_found != n_media)
        return frit_fail(FRIT_E_INVALID,
                         "the chat template has written %zu places for pictures, expected %zu, one for each picture",
                         n_found, n_media);
    for (size_t k = 0; k < n_media; k++) n_all += media[k]->n;
    *out = calloc(n_all + 1, sizeof **out);
    if (!*out) return frit_fail_memory(n_all * sizeof **out, "a prompt");
    for (size_t i = 0, k = 0; i < n; i++) {
        const bool is_place = n_media > 0 && tokens[i] == media[0]->placeholder;
        const frit_token *from = is_place ? media[k]->tokens : &tokens[i];
        const size_t n_from = is_place ? media[k++]->n : 1;
        memcpy(*out + at, from, n_from * sizeof *from);
        at += n_from;
    }
    *n_out = at;
    return FRIT_OK;
}

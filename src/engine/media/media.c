// SPDX-License-Identifier: MIT
// Pictures as parts of prompts: the processor cuts them into patches, the encoder makes features of these.
#include "engine/media/media.h"

#include "base/grow.h"
#include "base/sha256.h"
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

// ------------------------------------------------------------------------------- encoding

// Identifies the features: by the pixels, and by the size to which they are resized.
static void hash_picture(const frit_image *image, const frit_picture_plan *plan, uint8_t digest[32])
{
    frit_sha256 sum;
    const uint32_t sizes[] = {image->width, image->height, plan->out_width, plan->out_height};
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, sizes, sizeof sizes);
    frit_sha256_add(&sum, image->rgb, (size_t)image->width * image->height * 3);
    frit_sha256_end(&sum, digest);
}

static frit_status encode(frit_engine *engine, const frit_picture_plan *plan, const frit_image *image, float *features)
{
    const frit_pictures *pictures = engine->pictures;
    const size_t n = (size_t)plan->n_patches * plan->patch_values;
    float *patches = calloc(n, sizeof *patches);
    if (!patches) return frit_fail_memory(n * sizeof *patches, "the patches of a picture");
    const frit_media_grid grid = {(int32_t)plan->tile_patches.rows, (int32_t)plan->tile_patches.columns};
    frit_status status = frit_processor_patches(&pictures->processor, plan, image, patches);
    if (status == FRIT_OK) status = frit_encoder_run(pictures->encoder, grid, patches, features);
    free(patches);
    return status;
}

// Makes the run of a picture of one tile, or takes the one that a session or another picture still has.
static frit_status make_run(frit_soft_run **out, frit_engine *engine, const frit_picture_plan *plan,
                            const frit_image *image)
{
    uint8_t digest[32];
    const frit_encoder *encoder = engine->pictures->encoder;
    const int32_t merge = (int32_t)engine->pictures->processor.merge, width = (int32_t)frit_encoder_width(encoder);
    const int32_t rows = (int32_t)plan->tile_patches.rows / merge,
                  columns = (int32_t)plan->tile_patches.columns / merge;
    hash_picture(image, plan, digest);
    *out = frit_soft_run_find(engine, digest);
    if (*out) return FRIT_OK;
    if (plan->n_tiles != 1 || plan->patch_values != (uint32_t)frit_encoder_patch_width(encoder) ||
        (int64_t)rows * columns != plan->n_soft)
        return frit_fail(FRIT_E_UNSUPPORTED, "a picture of %u tiles with %u numbers a patch, expected 1 and %lld",
                         plan->n_tiles, plan->patch_values, (long long)frit_encoder_patch_width(encoder));
    float *features = calloc((size_t)rows * (size_t)columns * (size_t)width, sizeof *features);
    if (!features) return frit_fail_memory((size_t)plan->n_soft * (size_t)width * sizeof *features, "a picture");
    frit_status status = encode(engine, plan, image, features);
    if (status == FRIT_OK)
        status =
            frit_soft_run_new(out, engine, features, rows, columns, width, digest, frit_has_rope_axes(&engine->hp));
    free(features);
    return status;
}

// ------------------------------------------------------------------------------- tokens

typedef struct writing {
    const frit_model *model;
    frit_media *media;
} writing;

static frit_status add_tokens(frit_media *media, const frit_token *tokens, size_t n)
{
    FRIT_TRY(FRIT_GROW(media->tokens, media->capacity, media->n + n, "the tokens of a picture"));
    memcpy(media->tokens + media->n, tokens, n * sizeof *tokens);
    media->n += n;
    return FRIT_OK;
}

// Adds a part of what replaces the placeholder: a mark, or the soft tokens.
static frit_status add_part(void *ctx, const char *text, uint32_t n_soft)
{
    const writing *w = ctx;
    frit_token marks[FRIT_MARK_BYTES];
    size_t n;
    if (!text && n_soft == (uint32_t)w->media->runs[0]->n_tokens)
        return add_tokens(w->media, w->media->runs[0]->ids, n_soft);
    if (!text) return frit_fail(FRIT_E_INTERNAL, "a picture has features in several places");
    FRIT_TRY(frit_tokenize(w->model, text, strlen(text), FRIT_TEXT_PARSE_SPECIAL, marks, FRIT_COUNT(marks), &n));
    return add_tokens(w->media, marks, n);
}

static frit_status make_media(frit_media *media, frit_engine *engine, const frit_image *image)
{
    frit_picture_plan plan;
    FRIT_TRY(open_pictures(engine));
    FRIT_TRY(frit_processor_plan(&plan, &engine->pictures->processor, image->width, image->height));
    media->placeholder = engine->pictures->placeholder;
    media->runs = calloc(1, sizeof *media->runs);
    if (!media->runs) return frit_fail_memory(sizeof *media->runs, "a picture");
    FRIT_TRY(make_run(&media->runs[0], engine, &plan, image));
    media->n_runs = 1;
    return frit_processor_marks(&engine->pictures->processor, &plan, add_part, &(writing){engine->model, media});
}

frit_status frit_media_new(frit_media **out, frit_engine *engine, const frit_image *image,
                           const frit_media_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(engine);
    FRIT_REQUIRE(image);
    FRIT_REQUIRE_UNUSED(options);
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a picture cannot be encoded from within a row function");
    frit_media *media = calloc(1, sizeof *media);
    if (!media) return frit_fail_memory(sizeof *media, "a picture");
    media->n_refs = 1;
    const frit_status status = make_media(media, engine, image);
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
                         "the prompt has %zu places for pictures, but %zu pictures are given: the chat template shows "
                         "no others",
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

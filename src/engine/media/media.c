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

// A picture that is cut into tiles, which are encoded one by one.
typedef struct cutting {
    frit_engine *engine;
    const frit_image *image;
    frit_picture_plan plan;
    float *patches;   // of all tiles; NULL: not made yet
} cutting;

// Identifies the features of a tile: by the pixels, the size to which they are resized, and the tile.
static void hash_tile(const cutting *c, uint32_t tile, uint8_t digest[32])
{
    frit_sha256 sum;
    const uint32_t sizes[] = {c->image->width,    c->image->height, c->plan.out_width,
                              c->plan.out_height, c->plan.n_tiles,  tile};
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, sizes, sizeof sizes);
    frit_sha256_add(&sum, c->image->rgb, (size_t)c->image->width * c->image->height * 3);
    frit_sha256_end(&sum, digest);
}

static frit_status cut_picture(cutting *c)
{
    const size_t n = (size_t)c->plan.n_patches * c->plan.patch_values;
    if (c->patches) return FRIT_OK;
    c->patches = calloc(n, sizeof *c->patches);
    if (!c->patches) return frit_fail_memory(n * sizeof *c->patches, "the patches of a picture");
    return frit_processor_patches(&c->engine->pictures->processor, &c->plan, c->image, c->patches);
}

// Encodes a tile, whose patches begin at index `first` of the picture's, to n features.
static frit_status encode_tile(cutting *c, uint32_t tile, size_t first, float *features, int64_t n)
{
    const frit_encoder *encoder = c->engine->pictures->encoder;
    const frit_grid patches = frit_plan_tile(&c->plan, &c->engine->pictures->processor, tile);
    const frit_media_grid grid = {(int32_t)patches.rows, (int32_t)patches.columns};
    frit_media_size size;
    FRIT_TRY(frit_encoder_count(encoder, grid, &size));
    if (size.n_outs != n || c->plan.patch_values != (uint32_t)frit_encoder_patch_width(encoder))
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "the model's processor cuts %lld features of patches of %u numbers, its encoder gives %lld of "
                         "%lld",
                         (long long)n, c->plan.patch_values, (long long)size.n_outs,
                         (long long)frit_encoder_patch_width(encoder));
    FRIT_TRY(cut_picture(c));
    return frit_encoder_run(c->engine->pictures->encoder, grid, c->patches + first * c->plan.patch_values, features);
}

// Makes the run of a tile, or takes the one that a session or another picture still has.
static frit_status make_run(frit_soft_run **out, cutting *c, uint32_t tile, size_t first)
{
    uint8_t digest[32];
    frit_engine *engine = c->engine;
    const frit_processor *processor = &engine->pictures->processor;
    const frit_grid patches = frit_plan_tile(&c->plan, processor, tile);
    const int32_t width = (int32_t)frit_encoder_width(engine->pictures->encoder);
    const int32_t rows = (int32_t)(patches.rows / processor->merge),
                  columns = (int32_t)(patches.columns / processor->merge);
    hash_tile(c, tile, digest);
    *out = frit_soft_run_find(engine, digest);
    if (*out) return FRIT_OK;
    const size_t n = (size_t)rows * (size_t)columns;
    float *features = calloc(n * (size_t)width, sizeof *features);
    if (!features) return frit_fail_memory(n * (size_t)width * sizeof *features, "a picture");
    frit_status status = encode_tile(c, tile, first, features, (int64_t)n);
    if (status == FRIT_OK)
        status =
            frit_soft_run_new(out, engine, features, rows, columns, width, digest, frit_has_rope_axes(&engine->hp));
    free(features);
    return status;
}

static frit_status make_runs(frit_media *media, cutting *c)
{
    size_t first = 0;
    media->runs = calloc(c->plan.n_tiles, sizeof(frit_soft_run *));
    if (!media->runs) return frit_fail_memory(c->plan.n_tiles * sizeof *media->runs, "a picture");
    for (uint32_t i = 0; i < c->plan.n_tiles; i++) {
        const frit_grid patches = frit_plan_tile(&c->plan, &c->engine->pictures->processor, i);
        FRIT_TRY(make_run(&media->runs[i], c, i, first));
        media->n_runs++;
        first += (size_t)patches.rows * patches.columns;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- tokens

typedef struct writing {
    const frit_model *model;
    frit_media *media;
    size_t n_written;   // runs
} writing;

static frit_status add_tokens(frit_media *media, const frit_token *tokens, size_t n)
{
    FRIT_TRY(FRIT_GROW(media->tokens, media->capacity, media->n + n, "the tokens of a picture"));
    memcpy(media->tokens + media->n, tokens, n * sizeof *tokens);
    media->n += n;
    return FRIT_OK;
}

// Adds a part of what replaces the placeholder: a mark, or the soft tokens of the next tiles.
static frit_status add_part(void *ctx, const char *text, uint32_t n_soft)
{
    writing *w = ctx;
    frit_token marks[2 * FRIT_MARK_BYTES];
    size_t n;
    while (!text && n_soft > 0 && w->n_written < w->media->n_runs) {
        const frit_soft_run *run = w->media->runs[w->n_written++];
        if ((uint32_t)run->n_tokens > n_soft) break;
        FRIT_TRY(add_tokens(w->media, run->ids, (size_t)run->n_tokens));
        n_soft -= (uint32_t)run->n_tokens;
    }
    if (!text && n_soft == 0) return FRIT_OK;
    if (!text)
        return frit_fail(FRIT_E_UNSUPPORTED, "the features of tiles are not in one piece in this model's prompts");
    FRIT_TRY(frit_tokenize(w->model, text, strlen(text), FRIT_TEXT_PARSE_SPECIAL, marks, FRIT_COUNT(marks), &n));
    return add_tokens(w->media, marks, n);
}

static frit_status make_media(frit_media *media, frit_engine *engine, const frit_image *image)
{
    cutting c = {.engine = engine, .image = image};
    FRIT_TRY(open_pictures(engine));
    const frit_processor *processor = &engine->pictures->processor;
    FRIT_TRY(frit_processor_plan(&c.plan, processor, image->width, image->height));
    media->placeholder = engine->pictures->placeholder;
    const frit_status status = make_runs(media, &c);
    free(c.patches);
    FRIT_TRY(status);
    return frit_processor_marks(processor, &c.plan, add_part, &(writing){.model = engine->model, .media = media});
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

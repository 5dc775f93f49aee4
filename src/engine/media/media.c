// SPDX-License-Identifier: MIT
// Pictures as parts of prompts, and the encoding of a picture in pieces.
#include "engine/media/media.h"

#include "engine/media/anyres.h"
#include "engine/media/encoder.h"
#include "engine/media/picture.h"
#include "engine/session/session.h"

#include <stdlib.h>
#include <string.h>

struct frit_pictures {
    frit_encoder *encoder;
    // The picture that is being encoded; NULL: none.
    frit_picture *picture;
    float *patches;      // owned; NULL: the picture's own are used
    const float *next;   // patches of the next tile
    float *features;     // [n_features, width] of all tiles
    float *to;           // features of the next tile
    uint32_t n_tiles;    // encoded
    int64_t n_features, n_left;
};

// ------------------------------------------------------------------------------- opening

static void drop_work(frit_pictures *pictures)
{
    frit_picture_unref(pictures->picture);
    free(pictures->patches);
    free(pictures->features);
    *pictures = (frit_pictures){.encoder = pictures->encoder};
}

void frit_pictures_free(frit_pictures *pictures)
{
    if (!pictures) return;
    drop_work(pictures);
    frit_encoder_close(pictures->encoder);
    free(pictures);
}

static frit_status open_pictures(frit_engine *engine)
{
    const frit_picture_rules *rules;
    if (engine->pictures) return FRIT_OK;
    FRIT_TRY(frit_model_get_picture_rules(engine->model, &rules));
    frit_pictures *pictures = calloc(1, sizeof *pictures);
    if (!pictures) return frit_fail_memory(sizeof *pictures, "the encoder of pictures");
    const frit_status status = frit_encoder_open(&pictures->encoder, engine, rules->encoder);
    if (status != FRIT_OK) {
        frit_pictures_free(pictures);
        return status;
    }
    engine->pictures = pictures;
    return FRIT_OK;
}

frit_status frit_engine_set_media(frit_engine *engine, const frit_engine_media_options *options)
{
    FRIT_REQUIRE(engine);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_TRY(open_pictures(engine));
    frit_soft_set_cache(engine, options ? options->cache_bytes : 0);
    return FRIT_OK;
}

frit_status frit_engine_get_media_info(const frit_engine *engine, frit_engine_media_info *info)
{
    FRIT_REQUIRE(engine);
    FRIT_REQUIRE(info);
    *info = (frit_engine_media_info){.n_encoded = engine->soft.n_encoded, .cache_bytes = engine->soft.idle_bytes};
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- encoding

// Features that the encoder gives of all tiles.
static uint32_t count_features(const frit_picture *picture)
{
    const frit_picture_plan *plan = &picture->plan;
    return picture->processor.rule == FRIT_RULE_ANYRES
               ? plan->n_tiles * frit_plan_tile_soft(plan, &picture->processor, 0)
               : plan->n_soft;
}

static frit_status begin(frit_pictures *pictures, frit_picture *picture)
{
    const size_t n = (size_t)picture->plan.n_patches * picture->plan.patch_values;
    pictures->n_features = pictures->n_left = count_features(picture);
    const size_t n_features = (size_t)pictures->n_features * (size_t)frit_encoder_width(pictures->encoder);
    if (picture->processor.rule == FRIT_RULE_ANYRES && !frit_encoder_newline(pictures->encoder))
        return frit_fail(FRIT_E_FORMAT, "the model has no image_newline, which ends the rows of a picture");
    if (picture->plan.patch_values != (uint32_t)frit_encoder_patch_width(pictures->encoder))
        return frit_fail(FRIT_E_FORMAT, "the model's processor cuts patches of %u numbers, its encoder reads %lld",
                         picture->plan.patch_values, (long long)frit_encoder_patch_width(pictures->encoder));
    pictures->picture = frit_picture_ref(picture);
    if (!picture->patches) pictures->patches = calloc(n, sizeof *pictures->patches);
    pictures->features = calloc(n_features, sizeof *pictures->features);
    if (!pictures->features || (!picture->patches && !pictures->patches))
        return frit_fail_memory((n + n_features) * sizeof(float), "a picture");
    pictures->next = picture->patches ? picture->patches : pictures->patches;
    pictures->to = pictures->features;
    if (picture->patches) return FRIT_OK;
    return frit_processor_patches(&picture->processor, &picture->plan, picture->image, pictures->patches);
}

static frit_status encode_tile(frit_pictures *pictures)
{
    const frit_picture *picture = pictures->picture;
    const frit_grid tile = frit_plan_tile(&picture->plan, &picture->processor, pictures->n_tiles);
    const frit_media_grid grid = {(int32_t)tile.rows, (int32_t)tile.columns};
    frit_media_size size;
    FRIT_TRY(frit_encoder_count(pictures->encoder, grid, &size));
    pictures->n_left -= size.n_outs;
    pictures->n_tiles++;
    if (pictures->n_left >= 0) {
        FRIT_TRY(frit_encoder_run(pictures->encoder, grid, pictures->next, pictures->to));
        pictures->next += (size_t)tile.rows * tile.columns * picture->plan.patch_values;
        pictures->to += size.n_outs * frit_encoder_width(pictures->encoder);
    }
    if (pictures->n_left == 0 || (pictures->n_left > 0 && pictures->n_tiles < picture->plan.n_tiles)) return FRIT_OK;
    return frit_fail(
        FRIT_E_UNSUPPORTED,
        "the model's processor expects %lld features of this picture, and its encoder gives another number",
        (long long)pictures->n_features);
}

// Puts the features of tiles together where the text has them in another form. They stay as they are otherwise.
static frit_status join_tiles(frit_pictures *pictures)
{
    const frit_picture *picture = pictures->picture;
    const size_t width = (size_t)frit_encoder_width(pictures->encoder), n = (size_t)picture->plan.n_soft * width;
    if (picture->processor.rule != FRIT_RULE_ANYRES) return FRIT_OK;
    float *joined = calloc(n, sizeof *joined);
    if (!joined) return frit_fail_memory(n * sizeof *joined, "the features of a picture");
    frit_anyres_join(&picture->plan, pictures->features, frit_encoder_newline(pictures->encoder), width, joined);
    free(pictures->features);
    pictures->features = joined;
    return FRIT_OK;
}

// Gives the runs of the engine their features. Other pictures with the same content have the same runs.
static frit_status give_features(frit_engine *engine)
{
    const frit_pictures *pictures = engine->pictures;
    const int64_t width = frit_encoder_width(pictures->encoder);
    for (size_t i = 0; i < pictures->picture->n_runs; i++) {
        const frit_picture_run *own = &pictures->picture->runs[i];
        frit_soft_run *run = frit_soft_run_find(engine, own->digest);
        const frit_status status =
            run && !run->features ? frit_soft_run_fill(run, pictures->features + own->first * width) : FRIT_OK;
        frit_soft_run_unref(run);
        FRIT_TRY(status);
    }
    engine->soft.n_encoded++;
    return FRIT_OK;
}

// Runs the next piece of the encoding of a picture, which takes the place of another one.
static frit_status encode_piece(frit_engine *engine, frit_picture *picture)
{
    frit_pictures *pictures = engine->pictures;
    const bool is_begun =
        pictures->picture && memcmp(pictures->picture->digest, picture->digest, sizeof picture->digest) == 0;
    frit_status status = FRIT_OK;
    if (!is_begun) {
        drop_work(pictures);
        status = begin(pictures, picture);
    }
    if (status == FRIT_OK) status = encode_tile(pictures);
    const bool is_done = status == FRIT_OK && pictures->n_left == 0;
    if (is_done) status = join_tiles(pictures);
    if (is_done && status == FRIT_OK) status = give_features(engine);
    if (is_done || status != FRIT_OK) drop_work(pictures);
    return status;
}

// ------------------------------------------------------------------------------- pictures that sessions wait for

static bool awaits(const frit_session *session, const frit_picture *picture)
{
    const frit_soft_run *run = frit_session_soft_awaits(session);
    return run && memcmp(run->picture->digest, picture->digest, sizeof picture->digest) == 0;
}

// The picture that is encoded next: one that was begun, or that of the first session that waits.
static frit_picture *choose_picture(const frit_engine *engine)
{
    frit_picture *begun = engine->pictures ? engine->pictures->picture : NULL, *first = NULL;
    for (const frit_session *s = engine->sessions; s; s = s->next) {
        const frit_soft_run *run = frit_session_soft_awaits(s);
        if (run && !first) first = run->picture;
        if (begun && awaits(s, begun)) return begun;
    }
    return first;
}

bool frit_media_advance(frit_engine *engine)
{
    frit_picture *picture = choose_picture(engine);
    if (!picture) {
        if (engine->pictures) drop_work(engine->pictures);   // the sessions that waited are gone
        return false;
    }
    frit_picture_ref(picture);
    frit_status status = open_pictures(engine);
    if (status == FRIT_OK) status = encode_piece(engine, picture);
    for (frit_session *s = engine->sessions; s && status != FRIT_OK; s = s->next)
        if (awaits(s, picture)) frit_session_fail(s, status);
    frit_picture_unref(picture);
    return true;
}

// ------------------------------------------------------------------------------- pictures of an engine

static frit_status enter_picture(frit_soft_run **runs, size_t *n_runs, frit_engine *engine, frit_picture *picture)
{
    const bool has_axes = frit_has_rope_axes(&engine->hp);
    for (size_t i = 0; i < picture->n_runs; i++) {
        const frit_picture_run *own = &picture->runs[i];
        runs[*n_runs] = frit_soft_run_find(engine, own->digest);
        if (!runs[*n_runs]) {
            const int32_t columns =
                (int32_t)(has_axes ? picture->plan.tile_patches.columns / picture->processor.merge : own->n);
            if (has_axes && own->n != picture->plan.n_soft)
                return frit_fail(FRIT_E_UNSUPPORTED, "a picture of %u tiles, expected one for a model with M-RoPE",
                                 picture->plan.n_tiles);
            FRIT_TRY(frit_soft_run_new(&runs[*n_runs], engine, NULL, (int32_t)own->n / columns, columns,
                                       (int32_t)frit_encoder_width(engine->pictures->encoder), own->digest, has_axes));
            runs[*n_runs]->picture = frit_picture_ref(picture);
        }
        ++*n_runs;
    }
    return FRIT_OK;
}

frit_status frit_media_enter(frit_soft_run ***runs, size_t *n_runs, frit_engine *engine, frit_media *const *media,
                             size_t n_media)
{
    size_t n = 0;
    *n_runs = 0;
    *runs = NULL;
    FRIT_TRY(open_pictures(engine));
    for (size_t i = 0; i < n_media; i++) n += media[i]->picture->n_runs;
    *runs = calloc(n + 1, sizeof **runs);
    if (!*runs) return frit_fail_memory(n * sizeof **runs, "pictures");
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < n_media && status == FRIT_OK; i++)
        status = enter_picture(*runs, n_runs, engine, media[i]->picture);
    if (status == FRIT_OK) return FRIT_OK;
    frit_media_leave(*runs, *n_runs);
    *runs = NULL;
    *n_runs = 0;
    return status;
}

void frit_media_leave(frit_soft_run **runs, size_t n_runs)
{
    for (size_t i = 0; i < n_runs; i++) frit_soft_run_unref(runs[i]);
    free(runs);
}

static frit_status check_options(const frit_media_options *options)
{
    FRIT_REQUIRE_UNUSED(options);
    if (!options || options->max_tokens == 0 || options->min_tokens <= options->max_tokens) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "a picture of at least %u and at most %u tokens", options->min_tokens,
                     options->max_tokens);
}

frit_status frit_media_prepare(frit_media **out, const frit_model *model, const frit_image *image,
                               const frit_media_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(image);
    FRIT_TRY(check_options(options));
    frit_media *media = calloc(1, sizeof *media);
    if (!media) return frit_fail_memory(sizeof *media, "a picture");
    const frit_status status = frit_picture_new(&media->picture, model, image, options);
    if (status != FRIT_OK) {
        frit_media_free(media);
        return status;
    }
    media->tokens = media->picture->tokens;
    media->n = media->picture->n;
    media->placeholder = media->picture->placeholder;
    media->edges = media->picture->edges;
    *out = media;
    return FRIT_OK;
}

// Encodes the picture until its runs have features.
static frit_status encode_now(frit_engine *engine, frit_media *media)
{
    FRIT_TRY(frit_media_enter(&media->runs, &media->n_runs, engine, &media, 1));
    for (size_t i = 0; i < media->n_runs; i++)
        while (!media->runs[i]->features) FRIT_TRY(encode_piece(engine, media->picture));
    return FRIT_OK;
}

frit_status frit_media_new(frit_media **out, frit_engine *engine, const frit_image *image,
                           const frit_media_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(engine);
    FRIT_REQUIRE(image);
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a picture cannot be encoded from within a row function");
    frit_media *media;
    FRIT_TRY(frit_media_prepare(&media, engine->model, image, options));
    const frit_status status = encode_now(engine, media);
    if (status != FRIT_OK) {
        frit_media_free(media);
        return status;
    }
    *out = media;
    return FRIT_OK;
}

frit_status frit_media_copy_tokens(frit_media **out, const frit_media *media)
{
    *out = calloc(1, sizeof **out);
    frit_token *tokens = calloc(media->n + 1, sizeof *tokens);
    if (!*out || !tokens) {
        free(*out);
        free(tokens);
        *out = NULL;
        return frit_fail_memory(media->n * sizeof *tokens, "the tokens of a picture");
    }
    memcpy(tokens, media->tokens, media->n * sizeof *tokens);
    **out = (frit_media){.tokens = tokens,
                         .own_tokens = tokens,
                         .n = media->n,
                         .placeholder = media->placeholder,
                         .edges = media->edges};
    return FRIT_OK;
}

void frit_media_free(frit_media *media)
{
    if (!media) return;
    frit_media_leave(media->runs, media->n_runs);
    frit_picture_unref(media->picture);
    free(media->own_tokens);
    free(media);
}
uint64_t frit_media_bytes(const frit_media *media)
{
    FRIT_REQUIRE_OR(0, media);
    const frit_picture *picture = media->picture;
    uint64_t n_bytes = media->n * sizeof *media->tokens;
    if (picture && picture->image) n_bytes += (uint64_t)picture->image->width * picture->image->height * 3;
    if (picture && picture->patches)
        n_bytes += (uint64_t)picture->plan.n_patches * picture->plan.patch_values * sizeof(float);
    return n_bytes;
}

const frit_token *frit_media_tokens(const frit_media *media, size_t *n_tokens)
{
    FRIT_REQUIRE_OR(NULL, n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE_OR(NULL, media);
    *n_tokens = media->n;
    return media->tokens;
}

static size_t count_between_edges(const frit_media *media)
{
    return media->n - media->edges.n_lead - media->edges.n_tail;
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
    for (size_t k = 0; k < n_media; k++) n_all += count_between_edges(media[k]);
    *out = calloc(n_all + 1, sizeof **out);
    if (!*out) return frit_fail_memory(n_all * sizeof **out, "a prompt");
    for (size_t i = 0, k = 0; i < n; i++) {
        const bool is_place = n_media > 0 && tokens[i] == media[0]->placeholder;
        const frit_token *from = is_place ? media[k]->tokens + media[k]->edges.n_lead : &tokens[i];
        const size_t n_from = is_place ? count_between_edges(media[k++]) : 1;
        memcpy(*out + at, from, n_from * sizeof *from);
        at += n_from;
    }
    *n_out = at;
    return FRIT_OK;
}

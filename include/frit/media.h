// SPDX-License-Identifier: MIT
// frit/media.h: pictures.
#ifndef FRIT_MEDIA_H
#define FRIT_MEDIA_H

#include "session.h"
#include "turn.h"

#ifdef __cplusplus
extern "C" {
#endif

// An image is a picture as pixels: upright, red, green and blue of 8 bits each, without transparency. An image never
// changes: any number of threads may use it.
//
//     frit_image_open(&image, "photo.jpg", NULL);
//     frit_image_get_size(image, &width, &height);
//     frit_image_free(image);
typedef struct frit_image frit_image;

// Limits are compared with the header of a file before memory is allocated for its pixels.
typedef struct frit_image_limits {
    uint64_t max_bytes;    // of the file; 0: 20 MiB
    uint64_t max_pixels;   // width times height; 0: 64 Mi
    uint32_t max_side;     // width, and height; 0: 32767
    uint64_t reserved[8];
} frit_image_limits;

// Opens a PNG, JPEG, WebP or GIF file; its first bytes say which of them it is. The orientation that its EXIF data has
// is applied, transparent pixels are placed over white, of 16 bits the upper 8 are used, and color profiles are
// ignored. The first picture of an animation is used. FRIT_E_FORMAT for a damaged or partial file, FRIT_E_UNSUPPORTED
// for other formats and for those whose library the build of frit does without, FRIT_E_LIMIT, FRIT_E_NOT_FOUND,
// FRIT_E_IO, FRIT_E_MEMORY.
FRIT_API frit_status frit_image_open(frit_image **out, const char *path, const frit_image_limits *limits);
// Opens the contents of a file, which are not used after the call.
FRIT_API frit_status frit_image_open_memory(frit_image **out, const void *bytes, size_t n_bytes,
                                            const frit_image_limits *limits);
// Makes an image of pixels [height, width, 3], which are copied. A side has at most 32767 pixels.
FRIT_API frit_status frit_image_from_rgb(frit_image **out, uint32_t width, uint32_t height, const uint8_t *rgb);
FRIT_API void frit_image_free(frit_image *image);
// Adds an owner: frit_image_free must be called once more.
FRIT_API frit_status frit_image_retain(frit_image *image);

FRIT_API frit_status frit_image_get_size(const frit_image *image, uint32_t *width, uint32_t *height);
// Returns the pixels [height, width, 3], which live as long as the image.
FRIT_API const uint8_t *frit_image_pixels(const frit_image *image);

// Pictures in prompts. A frit_media (declared in session.h) is an image that the encoder of an engine's model turns
// into features, with the marks that the model expects around them. It belongs to the engine's thread. Sessions whose
// prompts have it keep what they need of it.
//
//     frit_media_new(&media, engine, image, NULL);
//     frit_turn_new_with_media(&turn, model, conversation, n, &media, 1);   // a part {"type": "image"} for each
//     frit_turn_tokenize(turn, NULL, tokens, capacity, &n);                 // push them, as any prompt

// Limits within those of the model. A picture is made smaller or larger until it has so many tokens; models with one
// size of pictures ignore the limits.
typedef struct frit_media_options {
    uint32_t min_tokens, max_tokens;   // of a picture; 0: the model's
    const char *salt;                  // pictures share features with pictures of the same salt only; NULL: no salt
    uint64_t reserved[7];
} frit_media_options;

// Encodes an image, which is not used after the call. An image that a session or another frit_media still has is not
// encoded again. `options` may be NULL. FRIT_E_UNSUPPORTED if the model reads no pictures, FRIT_E_INVALID for a size
// that the model refuses, FRIT_E_MEMORY.
FRIT_API frit_status frit_media_new(frit_media **out, frit_engine *engine, const frit_image *image,
                                    const frit_media_options *options);
// Makes a picture that is encoded later: when a session to which it is pushed (frit_push_options.media) has to run its
// tokens. Needs no engine: any thread may prepare a picture, and one thread at a time use it. Fails as frit_media_new
// does, with FRIT_E_LIMIT for a picture of too many tiles.
FRIT_API frit_status frit_media_prepare(frit_media **out, const frit_model *model, const frit_image *image,
                                        const frit_media_options *options);
// Returns the bytes of memory that a picture keeps until it is encoded.
FRIT_API uint64_t frit_media_bytes(const frit_media *media);
FRIT_API void frit_media_free(frit_media *media);
// Returns the tokens of a picture in a prompt, which live as long as `media`. Ids from 2^30 on stand for features;
// frit_session_push takes them while `media` or a session has them.
FRIT_API const frit_token *frit_media_tokens(const frit_media *media, size_t *n_tokens);

typedef struct frit_engine_media_options {
    // Features of pictures that no session uses any more are kept while they have so many bytes together; the least
    // recently used are freed. 0: none.
    uint64_t cache_bytes;
    uint64_t reserved[8];
} frit_engine_media_options;

// Opens the encoder of the engine's model, which is otherwise opened when the first picture comes. Between steps, on
// the engine's thread. `options` may be NULL. FRIT_E_UNSUPPORTED if the model reads no pictures.
FRIT_API frit_status frit_engine_set_media(frit_engine *engine, const frit_engine_media_options *options);

typedef struct frit_engine_media_info {
    uint64_t n_encoded;     // pictures that the engine has encoded
    uint64_t cache_bytes;   // of features that no session uses
    uint64_t reserved[8];
} frit_engine_media_info;
// Must be called between steps, by the engine's thread.
FRIT_API frit_status frit_engine_get_media_info(const frit_engine *engine, frit_engine_media_info *info);

// frit_turn_new for a conversation with pictures: it has as many parts {"type": "image"} as there are pictures, in
// their order. The turn copies their tokens. FRIT_E_INVALID if the numbers differ, or if the model's chat template does
// not show them all.
FRIT_API frit_status frit_turn_new_with_media(frit_turn **out, const frit_model *model, const char *conversation,
                                              size_t n_bytes, frit_media *const *media, size_t n_media);

#ifdef __cplusplus
}
#endif
#endif

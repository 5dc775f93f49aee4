// SPDX-License-Identifier: MIT
// Images: formats by their first bytes, limits, transparency, objects.
#include "media/image.h"

#include "base/buf.h"
#include "base/file/file.h"

#include <stdatomic.h>
#include <stdlib.h>

static const uint64_t default_bytes = UINT64_C(20) << 20, default_pixels = UINT64_C(64) << 20;
enum { DEFAULT_SIDE = 32767, MAX_MAGIC = 12 };

// Decoders that this build has.
#ifdef FRIT_WITH_PNG
#define PNG_DECODER frit_png_decode
#else
#define PNG_DECODER NULL
#endif
#ifdef FRIT_WITH_JPEG
#define JPEG_DECODER frit_jpeg_decode
#else
#define JPEG_DECODER NULL
#endif
#ifdef FRIT_WITH_WEBP
#define WEBP_DECODER frit_webp_decode
#else
#define WEBP_DECODER NULL
#endif

#ifdef FRIT_WITH_GIF
#define GIF_DECODER frit_gif_decode
#else
#define GIF_DECODER NULL
#endif

typedef struct image_format {
    const char *name;
    const char *magic;   // the first bytes of a file; '?' is any byte
    size_t n_magic;
    frit_status (*decode)(frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes);   // NULL: this build has none
    bool is_known_only;   // the format is recognized, so that the sentence names it
} image_format;

// clang-format off
static const image_format formats[] = {
    {"PNG",  "\x89PNG\r\n\x1a\n",        8, PNG_DECODER,  false},
    {"JPEG", "\xff\xd8\xff",             3, JPEG_DECODER, false},
    {"WebP", "RIFF????WEBP",            12, WEBP_DECODER, false},
    {"GIF",  "GIF8",                     4, GIF_DECODER,  false},
    {"BMP",  "BM",                       2, NULL, true},
    {"TIFF", "II*\0",                    4, NULL, true},
    {"TIFF", "MM\0*",                    4, NULL, true},
    {"PDF",  "%PDF",                     4, NULL, true},
    {"SVG",  "<svg",                     4, NULL, true},
    {"JPEG XL", "\xff\x0a",              2, NULL, true},
    {"AVIF", "????ftypavif",            12, NULL, true},
    {"HEIC", "????ftyphei?",            12, NULL, true},
};
// clang-format on

static const image_format *find_format(const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < FRIT_COUNT(formats); i++) {
        if (n_bytes < formats[i].n_magic) continue;
        bool fits = true;
        for (size_t j = 0; j < formats[i].n_magic; j++)
            fits = fits && (formats[i].magic[j] == '?' || (uint8_t)formats[i].magic[j] == bytes[j]);
        if (fits) return &formats[i];
    }
    return NULL;
}

frit_status frit_raw_image_check(const frit_raw_image *picture, uint64_t width, uint64_t height)
{
    const frit_image_limits *limits = picture->limits;
    if (width == 0 || height == 0)
        return frit_fail(FRIT_E_FORMAT, "the picture has %llux%llu pixels; expected at least 1x1",
                         (unsigned long long)width, (unsigned long long)height);
    if (width > limits->max_side || height > limits->max_side)
        return frit_fail(FRIT_E_LIMIT, "the picture has %llux%llu pixels; a side may have at most %u",
                         (unsigned long long)width, (unsigned long long)height, (unsigned)limits->max_side);
    if (width * height > limits->max_pixels)
        return frit_fail(FRIT_E_LIMIT, "the picture has %llux%llu pixels; expected at most %llu pixels",
                         (unsigned long long)width, (unsigned long long)height, (unsigned long long)limits->max_pixels);
    return FRIT_OK;
}

static frit_status allocate(uint8_t **out, uint64_t width, uint64_t height, uint64_t n_channels)
{
    const uint64_t n_bytes = width * height * n_channels;   // sides have at most 32 bits, and limits were checked
    *out = n_bytes <= SIZE_MAX ? malloc((size_t)n_bytes) : NULL;
    return *out ? FRIT_OK
                : frit_fail(FRIT_E_MEMORY, "out of memory: %llu bytes for a picture's pixels",
                            (unsigned long long)n_bytes);
}

frit_status frit_raw_image_begin(frit_raw_image *picture, uint64_t width, uint64_t height, int n_channels)
{
    FRIT_TRY(frit_raw_image_check(picture, width, height));
    FRIT_TRY(allocate(&picture->pixels, width, height, (uint64_t)n_channels));
    picture->width = (uint32_t)width;
    picture->height = (uint32_t)height;
    picture->n_channels = n_channels;
    return FRIT_OK;
}

// Places pixels with alpha over white, in place.
static void drop_alpha(frit_raw_image *picture)
{
    const size_t n = (size_t)picture->width * picture->height;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *from = picture->pixels + 4 * i;
        const unsigned alpha = from[3];
        for (size_t c = 0; c < 3; c++)
            picture->pixels[3 * i + c] = (uint8_t)((from[c] * alpha + 255 * (255 - alpha) + 127) / 255);
    }
    picture->n_channels = 3;
}

static frit_status make_image(frit_image **out, uint32_t width, uint32_t height)
{
    frit_image *image = calloc(1, sizeof *image);
    if (!image) return frit_fail_memory(sizeof *image, "an image");
    const frit_status status = allocate(&image->rgb, width, height, 3);
    if (status != FRIT_OK) {
        free(image);
        return status;
    }
    image->n_refs = 1;
    image->width = width;
    image->height = height;
    *out = image;
    return FRIT_OK;
}

static frit_status upright_image(frit_image **out, frit_raw_image *picture)
{
    const bool swaps = picture->orientation > 4;
    FRIT_TRY(make_image(out, swaps ? picture->height : picture->width, swaps ? picture->width : picture->height));
    if (picture->n_channels == 4) drop_alpha(picture);
    frit_raw_image_turn(picture, (*out)->rgb);
    return FRIT_OK;
}

static frit_status decode(frit_image **out, const uint8_t *bytes, size_t n_bytes, const frit_image_limits *limits)
{
    const image_format *format = find_format(bytes, n_bytes);
    if (!format)
        return frit_fail(FRIT_E_FORMAT, "%zu bytes are no picture; expected a PNG, JPEG, WebP or GIF file", n_bytes);
    if (!format->decode && format->is_known_only)
        return frit_fail(FRIT_E_UNSUPPORTED, "the picture is a %s file; expected PNG, JPEG, WebP or GIF", format->name);
    if (!format->decode)
        return frit_fail(FRIT_E_UNSUPPORTED, "the picture is a %s file, which this build of frit cannot read",
                         format->name);
    frit_raw_image picture = {.limits = limits, .orientation = 1};
    frit_status status = format->decode(&picture, bytes, n_bytes);
    if (status == FRIT_OK) status = upright_image(out, &picture);
    free(picture.pixels);
    return status;
}

static frit_image_limits with_defaults(const frit_image_limits *limits)
{
    frit_image_limits all = limits ? *limits : (frit_image_limits){0};
    if (!all.max_bytes) all.max_bytes = default_bytes;
    if (!all.max_pixels) all.max_pixels = default_pixels;
    if (!all.max_side) all.max_side = DEFAULT_SIDE;
    return all;
}

frit_status frit_image_open_memory(frit_image **out, const void *bytes, size_t n_bytes, const frit_image_limits *limits)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE_ITEMS(bytes, n_bytes);
    FRIT_REQUIRE_UNUSED(limits);
    const frit_image_limits all = with_defaults(limits);
    if (n_bytes > all.max_bytes)
        return frit_fail(FRIT_E_LIMIT, "the picture's file has %zu bytes; expected at most %llu", n_bytes,
                         (unsigned long long)all.max_bytes);
    return decode(out, bytes, n_bytes, &all);
}

frit_status frit_image_open(frit_image **out, const char *path, const frit_image_limits *limits)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(path);
    FRIT_REQUIRE_UNUSED(limits);
    const frit_image_limits all = with_defaults(limits);
    char *bytes;
    size_t n_bytes;
    FRIT_TRY(frit_file_read(path, all.max_bytes, &bytes, &n_bytes));
    const frit_status status = frit_fail_in(path, decode(out, (const uint8_t *)bytes, n_bytes, &all));
    free(bytes);
    return status;
}

frit_status frit_image_from_rgb(frit_image **out, uint32_t width, uint32_t height, const uint8_t *rgb)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(rgb);
    if (width == 0 || height == 0 || width > DEFAULT_SIDE || height > DEFAULT_SIDE)
        return frit_fail(FRIT_E_INVALID, "an image has %ux%u pixels; expected sides of 1 to %d", (unsigned)width,
                         (unsigned)height, DEFAULT_SIDE);
    FRIT_TRY(make_image(out, width, height));
    memcpy((*out)->rgb, rgb, (size_t)width * height * 3);
    return FRIT_OK;
}

void frit_image_free(frit_image *image)
{
    if (!image || atomic_fetch_sub(&image->n_refs, 1) > 1) return;
    free(image->rgb);
    free(image);
}

frit_status frit_image_retain(frit_image *image)
{
    FRIT_REQUIRE(image);
    atomic_fetch_add(&image->n_refs, 1);
    return FRIT_OK;
}

frit_status frit_image_get_size(const frit_image *image, uint32_t *width, uint32_t *height)
{
    FRIT_REQUIRE(image);
    FRIT_REQUIRE(width);
    FRIT_REQUIRE(height);
    *width = image->width;
    *height = image->height;
    return FRIT_OK;
}

const uint8_t *frit_image_pixels(const frit_image *image)
{
    FRIT_REQUIRE_OR(NULL, image);
    return image->rgb;
}

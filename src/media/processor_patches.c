// SPDX-License-Identifier: MIT
// Patches of pictures: resized, cut into tiles, normalized, in the order of the encoder's rows.
#include "media/image.h"
#include "media/processor.h"

#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- numbers of pixels

// The number that each level of each color becomes.
typedef struct level_table {
    float values[3][256];
} level_table;

static float round_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float bf16_value(const frit_processor *p, int color, int level)
{
    const float value = round_bf16((float)level * (float)p->rescale);
    return round_bf16(round_bf16(value - round_bf16(p->mean[color])) / round_bf16(p->deviation[color]));
}

static float fused_value(const frit_processor *p, int color, int level)
{
    const float scale = (float)(1.0 / p->rescale);
    return ((float)level - p->mean[color] * scale) / (p->deviation[color] * scale);
}

static void fill_levels(level_table *table, const frit_processor *p)
{
    for (int color = 0; color < 3; color++)
        for (int level = 0; level < 256; level++) {
            float value = p->rescales ? (float)(level * p->rescale) : (float)level;
            if (p->is_bf16)
                value = bf16_value(p, color, level);
            else if (p->is_fused && p->rescales && p->normalizes)
                value = fused_value(p, color, level);
            else if (p->normalizes)
                value = (value - p->mean[color]) / p->deviation[color];
            table->values[color][level] = value;
        }
}

// ------------------------------------------------------------------------------- tiles

// A resized picture on a black canvas.
typedef struct canvas {
    const uint8_t *rgb;
    int64_t width, height, x, y;
} canvas;

static const uint8_t *pixel_of(const canvas *c, int64_t x, int64_t y)
{
    static const uint8_t black[3];
    x -= c->x;
    y -= c->y;
    return x < 0 || y < 0 || x >= c->width || y >= c->height ? black : c->rgb + (y * c->width + x) * 3;
}

// Writes the patch whose upper left pixel is (x, y) of the canvas.
static void write_patch(const frit_processor *p, const level_table *levels, const canvas *c, int64_t x, int64_t y,
                        float *patch)
{
    const size_t side = p->patch, area = side * side;
    for (size_t row = 0; row < side; row++)
        for (size_t column = 0; column < side; column++) {
            const uint8_t *pixel = pixel_of(c, x + (int64_t)column, y + (int64_t)row);
            const size_t at = row * side + column;
            for (size_t color = 0; color < 3; color++) {
                const float value = levels->values[color][pixel[color]];
                if (p->colors_last) {
                    patch[at * 3 + color] = value;
                    continue;
                }
                for (size_t frame = 0; frame < p->frames; frame++)
                    patch[(color * p->frames + frame) * area + at] = value;
            }
        }
}

// Writes the patches of a tile that begins at (x, y) of the canvas. Returns the end of the written numbers.
static float *write_tile(const frit_processor *p, const level_table *levels, const canvas *c, int64_t x, int64_t y,
                         frit_grid grid, size_t patch_values, float *patches)
{
    const uint32_t block = p->block;
    for (uint32_t i = 0; i < grid.rows * grid.columns; i++) {
        const uint32_t square = i / (block * block), in_square = i % (block * block);
        const uint32_t per_row = grid.columns / block;
        const uint32_t row = square / per_row * block + in_square / block;
        const uint32_t column = square % per_row * block + in_square % block;
        write_patch(p, levels, c, x + (int64_t)column * p->patch, y + (int64_t)row * p->patch, patches);
        patches += patch_values;
    }
    return patches;
}

static frit_status resize(uint8_t **out, const frit_processor *p, const uint8_t *rgb, uint32_t width, uint32_t height,
                          uint32_t out_width, uint32_t out_height)
{
    const size_t n_bytes = (size_t)out_width * out_height * 3;
    *out = malloc(n_bytes);
    if (!*out) return frit_fail_memory(n_bytes, "a resized picture");
    return frit_resample(rgb, width, height, p->filter, p->n_bits, *out, out_width, out_height);
}

// A writer of the patches of one picture.
typedef struct writer {
    const frit_processor *p;
    const frit_picture_plan *plan;
    level_table levels;
    float *at;   // of the next patch
} writer;

static void write_tiles(writer *w, const uint8_t *resized)
{
    const frit_picture_plan *plan = w->plan;
    const canvas c = {resized, plan->out_width, plan->out_height, plan->x, plan->y};
    for (int64_t row = 0; row < plan->tiles.rows; row++)
        for (int64_t column = 0; column < plan->tiles.columns; column++)
            w->at = write_tile(w->p, &w->levels, &c, column * plan->tile_width, row * plan->tile_height,
                               plan->tile_patches, plan->patch_values, w->at);
}

static frit_status write_whole(writer *w, const uint8_t *rgb, uint32_t width, uint32_t height)
{
    const frit_picture_plan *plan = w->plan;
    uint8_t *resized;
    const frit_status status = resize(&resized, w->p, rgb, width, height, plan->whole_width, plan->whole_height);
    const canvas c = {resized, plan->whole_width, plan->whole_height, 0, 0};
    if (status == FRIT_OK)
        w->at = write_tile(w->p, &w->levels, &c, 0, 0, plan->whole_patches, plan->patch_values, w->at);
    free(resized);
    return status;
}

// The whole picture of SPLIT is made of the resized one, other rules make it of the picture.
static frit_status write_all(writer *w, const uint8_t *rgb)
{
    const frit_picture_plan *plan = w->plan;
    const bool is_whole_first = frit_plan_is_whole(plan, w->p, 0), is_split = w->p->rule == FRIT_RULE_SPLIT;
    if (is_whole_first) FRIT_TRY(write_whole(w, rgb, plan->first_width, plan->first_height));
    uint8_t *resized;
    frit_status status =
        resize(&resized, w->p, rgb, plan->first_width, plan->first_height, plan->out_width, plan->out_height);
    if (status == FRIT_OK) {
        write_tiles(w, resized);
        if (plan->has_whole && !is_whole_first)
            status = write_whole(w, is_split ? resized : rgb, is_split ? plan->out_width : plan->first_width,
                                 is_split ? plan->out_height : plan->first_height);
    }
    free(resized);
    return status;
}

frit_status frit_processor_patches(const frit_processor *p, const frit_picture_plan *plan, const frit_image *image,
                                   float *patches)
{
    if (image->width != plan->width || image->height != plan->height)
        return frit_fail(FRIT_E_INVALID, "an image of %ux%u pixels was planned as %ux%u", (unsigned)image->width,
                         (unsigned)image->height, (unsigned)plan->width, (unsigned)plan->height);
    writer w = {.p = p, .plan = plan, .at = patches};
    fill_levels(&w.levels, p);
    if (plan->first_width == plan->width && plan->first_height == plan->height) return write_all(&w, image->rgb);
    uint8_t *first;
    frit_status status =
        resize(&first, p, image->rgb, image->width, image->height, plan->first_width, plan->first_height);
    if (status == FRIT_OK) status = write_all(&w, first);
    free(first);
    return status;
}

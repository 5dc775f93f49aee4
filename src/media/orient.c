// SPDX-License-Identifier: MIT
// The orientation of a picture: where EXIF data has it, and how pixels are moved by it.
#include "media/image.h"

#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };

static uint32_t number(const uint8_t *at, size_t n_bytes, bool is_big)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n_bytes; i++) value = value << 8 | at[is_big ? i : n_bytes - 1 - i];
    return value;
}

int frit_exif_orientation(const uint8_t *exif, size_t n_bytes)
{
    if (n_bytes >= 6 && memcmp(exif, "Exif\0\0", 6) == 0) exif += 6, n_bytes -= 6;
    if (n_bytes < 10 || (memcmp(exif, "II*\0", 4) != 0 && memcmp(exif, "MM\0*", 4) != 0)) return 1;
    const bool is_big = exif[0] == 'M';
    const size_t directory = number(exif + 4, 4, is_big);
    if (directory > n_bytes - 2) return 1;
    const size_t n_entries = number(exif + directory, 2, is_big);
    for (size_t i = 0; i < n_entries && directory + 2 + (i + 1) * ENTRY_BYTES <= n_bytes; i++) {
        const uint8_t *entry = exif + directory + 2 + i * ENTRY_BYTES;
        if (number(entry, 2, is_big) != TAG_ORIENTATION) continue;
        const uint32_t value = number(entry + 8, 2, is_big);
        return number(entry + 2, 2, is_big) == TYPE_SHORT && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

// Upright pixel (x, y) is the stored pixel (x, y), or (y, x) where axes are swapped, counted from the right or from
// below where mirrored.
static const struct {
    bool swaps, mirrors_x, mirrors_y;
} turns[9] = {
    [2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true}, [5] = {true, false, false},
    [6] = {true, false, true},  [7] = {true, true, true},  [8] = {true, true, false},
};

void frit_raw_image_turn(const frit_raw_image *picture, uint8_t *rgb)
{
    const bool swaps = turns[picture->orientation].swaps;
    const bool mirrors_x = turns[picture->orientation].mirrors_x, mirrors_y = turns[picture->orientation].mirrors_y;
    const size_t w = picture->width, h = picture->height;
    const size_t width = swaps ? h : w, height = swaps ? w : h;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            const size_t column = swaps ? y : x, row = swaps ? x : y;
            const size_t from = (mirrors_y ? h - 1 - row : row) * w + (mirrors_x ? w - 1 - column : column);
            memcpy(rgb + (y * width + x) * 3, picture->pixels + from * 3, 3);
        }
}

// SPDX-License-Identifier: MIT
// Opens any bytes as a picture of at most a million pixels, and reads all of its pixels.
#include "frit.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_image *image;
    uint32_t width, height;
    unsigned sum = 0;
    const frit_image_limits limits = {.max_pixels = 1 << 20};
    if (frit_image_open_memory(&image, bytes, n_bytes, &limits) != FRIT_OK) return 0;
    if (frit_image_get_size(image, &width, &height) != FRIT_OK || width == 0 || height == 0) abort();
    const uint8_t *pixels = frit_image_pixels(image);
    for (size_t i = 0; i < (size_t)width * height * 3; i++) sum += pixels[i];
    frit_image_free(image);
    return sum == 1 ? -1 : 0;   // the sum is used, so pixels are read
}

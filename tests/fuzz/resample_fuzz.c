// SPDX-License-Identifier: MIT
// Resamples pictures between any sizes up to 4,096 of at most 65,536 pixels, with each filter.
#include "media/resample.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MAX_SIDE = 4096, MAX_PIXELS = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    uint16_t sizes[4];
    if (n_bytes < sizeof sizes + 2) return 0;
    memcpy(sizes, bytes, sizeof sizes);
    const uint32_t width = sizes[0] % MAX_SIDE + 1, height = sizes[1] % MAX_SIDE + 1;
    const uint32_t out_width = sizes[2] % MAX_SIDE + 1, out_height = sizes[3] % MAX_SIDE + 1;
    if (width * height > MAX_PIXELS || out_width * out_height > MAX_PIXELS || height * out_width > 4 * MAX_PIXELS)
        return 0;
    const frit_filter filter = (frit_filter)(bytes[8] % FRIT_FILTER_COUNT);
    const int n_bits = bytes[8] & 128 ? FRIT_PILLOW_BITS : FRIT_TORCHVISION_BITS;
    bytes += sizeof sizes + 1;
    n_bytes -= sizeof sizes + 1;
    uint8_t *in = malloc((size_t)width * height * 3), *out = malloc((size_t)out_width * out_height * 3);
    if (!in || !out) abort();
    for (size_t i = 0; i < (size_t)width * height * 3; i++) in[i] = bytes[i % n_bytes];
    if (frit_resample(in, width, height, filter, n_bits, out, out_width, out_height) != FRIT_OK) abort();
    free(in);
    free(out);
    return 0;
}

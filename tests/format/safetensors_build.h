// SPDX-License-Identifier: MIT
// format/safetensors_build.h: safetensors images in memory, for tests.
#pragma once
#include "support/support.h"

typedef struct image {
    uint8_t *bytes;
    size_t n_bytes;
} image;

// Makes a header with this length field and text, then n_data bytes 0, 1, 2, ...; release with free(image.bytes).
static inline image image_with_length(uint64_t length, const char *header, size_t n_data)
{
    size_t n_header = strlen(header);
    image made = {malloc(8 + n_header + n_data), 8 + n_header + n_data};
    for (int i = 0; i < 8; i++) made.bytes[i] = (uint8_t)(length >> 8 * i);
    memcpy(made.bytes + 8, header, n_header);
    for (size_t i = 0; i < n_data; i++) made.bytes[8 + n_header + i] = (uint8_t)i;
    return made;
}

static inline image image_of(const char *header, size_t n_data)
{
    return image_with_length(strlen(header), header, n_data);
}

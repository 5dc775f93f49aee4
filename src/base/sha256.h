// SPDX-License-Identifier: MIT
// base/sha256.h: SHA-256 (FIPS 180-4), used for names of contents: no two contents with equal names are known.
//
//     frit_sha256 sum;
//     frit_sha256_init(&sum);
//     frit_sha256_add(&sum, bytes, n);      // any number of times; the cuts do not matter
//     frit_sha256_end(&sum, out);
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { FRIT_SHA256_BYTES = 32 };

typedef struct frit_sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64];   // bytes of an incomplete block
} frit_sha256;

void frit_sha256_init(frit_sha256 *sum);
void frit_sha256_add(frit_sha256 *sum, const void *bytes, size_t n);
void frit_sha256_end(frit_sha256 *sum, uint8_t out[FRIT_SHA256_BYTES]);

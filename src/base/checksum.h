// SPDX-License-Identifier: MIT
// base/checksum.h: a 64-bit checksum that detects damage, not tampering.
//
//     frit_checksum sum = {0};
//     frit_checksum_add(&sum, bytes, n);      // any number of times; the cuts do not matter
//     uint64_t value = frit_checksum_value(&sum);
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { FRIT_CHECKSUM_LANES = 4 };

typedef struct frit_checksum {
    uint64_t lanes[FRIT_CHECKSUM_LANES];
    uint8_t rest[8 * FRIT_CHECKSUM_LANES];   // bytes of an incomplete block
    uint64_t n_bytes;
} frit_checksum;

void frit_checksum_add(frit_checksum *sum, const void *bytes, size_t n);
uint64_t frit_checksum_value(const frit_checksum *sum);

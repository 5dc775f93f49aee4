// SPDX-License-Identifier: MIT
// hub/digest.h: the expected digest of a file: SHA-256 in 64 hexadecimal digits, or git's name of a blob in 40 digits,
// which is the SHA-1 of "blob SIZE", a zero and the bytes. The hub gives git's name for small files.
#pragma once
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HUB_SHA1_BYTES = 20 };

typedef struct hub_sha1 {
    uint32_t state[5];
    uint64_t n_bytes;
    uint8_t block[64];   // bytes of an incomplete one
} hub_sha1;

void hub_sha1_init(hub_sha1 *sum);
void hub_sha1_add(hub_sha1 *sum, const void *bytes, size_t n);
void hub_sha1_end(hub_sha1 *sum, uint8_t out[HUB_SHA1_BYTES]);

typedef struct hub_digest {
    bool is_git;
    frit_sha256 sha256;
    hub_sha1 sha1;
} hub_digest;

// `expected`: 64 or 40 digits; n_bytes: size of the whole file.
void hub_digest_init(hub_digest *digest, const char *expected, uint64_t n_bytes);
void hub_digest_add(hub_digest *digest, const void *bytes, size_t n);
void hub_digest_end(hub_digest *digest, char hex[65]);
const char *hub_digest_name(const hub_digest *digest);   // "SHA-256"

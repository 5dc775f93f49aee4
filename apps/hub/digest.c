// SPDX-License-Identifier: MIT
// SHA-1, as in FIPS 180-4, and the digests of files. SHA-1 does not resist forgery by an author of the repository; here
// it detects damage.
#include "hub/digest.h"

#include <stdio.h>
#include <string.h>

static uint32_t rotate_left(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static void add_block(hub_sha1 *sum, const uint8_t *block)
{
    static const uint32_t constants[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80], *s = sum->state;
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               (uint32_t)block[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4];
    for (int i = 0; i < 80; i++) {
        const uint32_t choose = (b & c) | (~b & d), parity = b ^ c ^ d, majority = (b & c) | (b & d) | (c & d);
        const uint32_t mixed = i < 20 ? choose : i >= 40 && i < 60 ? majority : parity;
        const uint32_t next = rotate_left(a, 5) + mixed + e + constants[i / 20] + w[i];
        e = d, d = c, c = rotate_left(b, 30), b = a, a = next;
    }
    s[0] += a, s[1] += b, s[2] += c, s[3] += d, s[4] += e;
}

void hub_sha1_init(hub_sha1 *sum)
{
    *sum = (hub_sha1){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void hub_sha1_add(hub_sha1 *sum, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    while (n > 0) {
        const size_t at = sum->n_bytes % 64, part = n < 64 - at ? n : 64 - at;
        memcpy(sum->block + at, from, part);
        if (at + part == 64) add_block(sum, sum->block);
        sum->n_bytes += part;
        from += part;
        n -= part;
    }
}

void hub_sha1_end(hub_sha1 *sum, uint8_t out[HUB_SHA1_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    const uint64_t n_bits = 8 * sum->n_bytes;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(n_bits >> (56 - 8 * i));
    hub_sha1_add(sum, padding, 1 + (119 - sum->n_bytes % 64) % 64);   // ends 8 bytes before the end of a block
    hub_sha1_add(sum, length, sizeof length);
    for (int i = 0; i < HUB_SHA1_BYTES; i++) out[i] = (uint8_t)(sum->state[i / 4] >> (24 - 8 * (i % 4)));
}

// ---------------------------------------------------------------------------------------- of files

void hub_digest_init(hub_digest *digest, const char *expected, uint64_t n_bytes)
{
    char header[32];
    *digest = (hub_digest){.is_git = strlen(expected) == (size_t)2 * HUB_SHA1_BYTES};
    frit_sha256_init(&digest->sha256);
    hub_sha1_init(&digest->sha1);
    const int n = snprintf(header, sizeof header, "blob %llu", (unsigned long long)n_bytes);
    hub_sha1_add(&digest->sha1, header, (size_t)n + 1);   // with the final zero
}

void hub_digest_add(hub_digest *digest, const void *bytes, size_t n)
{
    if (digest->is_git)
        hub_sha1_add(&digest->sha1, bytes, n);
    else
        frit_sha256_add(&digest->sha256, bytes, n);
}

void hub_digest_end(hub_digest *digest, char hex[65])
{
    uint8_t sum[FRIT_SHA256_BYTES];
    const int n = digest->is_git ? HUB_SHA1_BYTES : FRIT_SHA256_BYTES;
    if (digest->is_git)
        hub_sha1_end(&digest->sha1, sum);
    else
        frit_sha256_end(&digest->sha256, sum);
    for (int i = 0; i < n; i++) snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

const char *hub_digest_name(const hub_digest *digest)
{
    return digest->is_git ? "SHA-1 in git" : "SHA-256";
}

// SPDX-License-Identifier: MIT
// AMX tiles in C, separate for each thread. A kernel that uses a tile before the configuration, or after its release,
// ends the program, as on a processor. The compiler includes tiles.h before this file too.
#include "base/machine/cpu.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned frit_cpu_features_of_processor(void);

enum { TILES = 8, ROWS = 16, BYTES = 64 };

typedef union tile {
    uint8_t bytes[ROWS][BYTES];
    uint16_t bf16[ROWS][BYTES / 2];
    uint32_t words[ROWS][BYTES / 4];
    float floats[ROWS][BYTES / 4];
} tile;

static _Thread_local tile tiles[TILES];
static _Thread_local bool is_configured;

static void check(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "tiles: %s\n", what);
    abort();
}

// Supports only whole tiles: 16 rows of 64 bytes.
void frit_tiles_configure(const void *config)
{
    const uint8_t *bytes = config;
    check(bytes[0] == 1 && bytes[1] == 0, "another palette than 1");
    for (int i = 0; i < TILES; i++) {
        uint16_t row_bytes;
        memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof row_bytes);
        check(row_bytes == BYTES && bytes[48 + i] == ROWS, "a tile that is not 16 rows of 64 bytes");
    }
    memset(tiles, 0, sizeof tiles);
    is_configured = true;
}

void frit_tiles_release(void)
{
    memset(tiles, 0xff, sizeof tiles);
    is_configured = false;
}

void frit_tiles_load(int i, const void *from, long stride)
{
    check(is_configured, "a load without a configuration");
    for (int row = 0; row < ROWS; row++) memcpy(tiles[i].bytes[row], (const uint8_t *)from + row * stride, BYTES);
}

void frit_tiles_store(int i, void *to, long stride)
{
    check(is_configured, "a store without a configuration");
    for (int row = 0; row < ROWS; row++) memcpy((uint8_t *)to + row * stride, tiles[i].bytes[row], BYTES);
}

void frit_tiles_zero(int i)
{
    check(is_configured, "a tile without a configuration");
    memset(&tiles[i], 0, sizeof tiles[i]);
}

static inline float as_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float from_bf16(uint16_t bits)
{
    return as_float((uint32_t)bits << 16);
}

// Kernels that call these functions need more than AVX-512F.
#define VECTORS __attribute__((target("avx512f")))

// sum[r, c] += a[r, 2 k] * b[k, 2 c] + a[r, 2 k + 1] * b[k, 2 c + 1], for k = 0, 1, ...
VECTORS void frit_tiles_multiply(int sum, int a, int b)
{
    check(is_configured, "a product without a configuration");
    for (int r = 0; r < ROWS; r++) {
        for (int k = 0; k < BYTES / 4; k++) {
            const float first = from_bf16(tiles[a].bf16[r][2 * k]), second = from_bf16(tiles[a].bf16[r][2 * k + 1]);
            for (int c = 0; c < BYTES / 4; c++)   // words: the first element in the lower half
                tiles[sum].floats[r][c] +=
                    first * as_float(tiles[b].words[k][c] << 16) + second * as_float(tiles[b].words[k][c] & 0xffff0000);
        }
    }
}

void frit_tiles_multiply_bytes(int sum, int a, int b)   // for the probe, which only counts operations
{
    check(is_configured, "a product without a configuration");
    (void)sum;
    (void)a;
    (void)b;
}

// The processor's features, and tiles if the processor has all other features that their kernels need.
unsigned frit_cpu_features(void)
{
    const unsigned features = frit_cpu_features_of_processor();
    return features & FRIT_CPU_AVX512_BF16 ? features | FRIT_CPU_AMX_INT8 | FRIT_CPU_AMX_BF16 : features;
}

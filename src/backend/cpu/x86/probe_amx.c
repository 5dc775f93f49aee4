// SPDX-License-Identifier: MIT
// Probe of the tile unit: independent products.
#include "backend/cpu/x86/tiles_amx.h"

static void open_zeros(void)
{
    open_tiles();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(6);
}

static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    int32_t sums[16 * 16] = {0};
    open_zeros();
    for (int64_t i = 0; i < n_rounds; i++) {
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 6);
        _tile_dpbusd(2, 4, 6);
        _tile_dpbusd(3, 4, 6);
    }
    _tile_stored(0, sums, 64);
    close_tiles();
    *sink += sums[0];
    return (double)n_rounds * 4 * 2 * 16 * 16 * 64;
}

static double probe_float(int64_t n_rounds, int32_t *sink)
{
    float sums[16 * 16] = {0};
    open_zeros();
    for (int64_t i = 0; i < n_rounds; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 6);
        _tile_dpbf16ps(2, 4, 6);
        _tile_dpbf16ps(3, 4, 6);
    }
    _tile_stored(0, sums, 64);
    close_tiles();
    *sink += sums[0] > 0;
    return (double)n_rounds * 4 * 2 * 16 * 16 * 32;
}

void frit_install_amx_probe(frit_kernels *k)
{
    k->probe_float = probe_float;
    k->probe_int8 = probe_int8;
}

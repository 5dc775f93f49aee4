// SPDX-License-Identifier: MIT
// tiles/tiles.h: the AMX instructions that kernels use, in C, for processors without them.
//
// The compiler includes this before a kernel file (tests/CMakeLists.txt). A load copies rows and checks their distance
// against the configuration. Products are of bfloat16, added to f32 in the processor's order.
#pragma once
#include <immintrin.h>

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#undef _tile_dpbusd
#define _tile_loadconfig(config)     frit_tiles_configure(config)
#define _tile_release()              frit_tiles_release()
#define _tile_loadd(t, from, stride) frit_tiles_load(t, from, (long)(stride))
#define _tile_stored(t, to, stride)  frit_tiles_store(t, to, (long)(stride))
#define _tile_zero(t)                frit_tiles_zero(t)
#define _tile_dpbf16ps(sum, a, b)    frit_tiles_multiply(sum, a, b)
#define _tile_dpbssd(sum, a, b)      frit_tiles_multiply_bytes(sum, a, b)
#define _tile_dpbusd(sum, a, b)      frit_tiles_multiply_bytes(sum, a, b)

void frit_tiles_configure(const void *config);
void frit_tiles_release(void);
void frit_tiles_load(int tile, const void *from, long stride);
void frit_tiles_store(int tile, void *to, long stride);
void frit_tiles_zero(int tile);
void frit_tiles_multiply(int sum, int a, int b);
void frit_tiles_multiply_bytes(int sum, int a, int b);

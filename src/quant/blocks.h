// SPDX-License-Identifier: MIT
// quant/blocks.h: the blocks of every number format, byte for byte as in files (little-endian).
//
// A block of a quantized format has codes (qs), possibly their high bits (qh), and scales. The decoders in this folder
// define the meaning of codes. The structs are packed: a block may start at any address, and no member needs alignment.
// This header is plain C that includes only <stdint.h>, so that device code can include it as text.
#pragma once
#include <stdint.h>

typedef uint16_t frit_half;   // the bits of an IEEE binary16 number

#pragma pack(push, 1)

// Plain numbers: a block is one number.
// clang-format off
typedef struct { float    value; } frit_block_f32;
typedef struct { frit_half value; } frit_block_f16;
typedef struct { uint16_t value; } frit_block_bf16;
typedef struct { uint8_t  value; } frit_block_fp8;    // e4m3: sign, exponent of bias 7, three bits; no infinity
typedef struct { double   value; } frit_block_f64;
typedef struct { int8_t   value; } frit_block_i8;
typedef struct { int16_t  value; } frit_block_i16;
typedef struct { int32_t  value; } frit_block_i32;
typedef struct { int64_t  value; } frit_block_i64;
// clang-format on

// 32 numbers with one scale, some with an offset: legacy.c.
typedef struct frit_block_q4_0 {
    frit_half d;
    uint8_t qs[16];
} frit_block_q4_0;

typedef struct frit_block_q4_1 {
    frit_half d, m;
    uint8_t qs[16];
} frit_block_q4_1;

typedef struct frit_block_q5_0 {
    frit_half d;
    uint32_t qh;
    uint8_t qs[16];
} frit_block_q5_0;

typedef struct frit_block_q5_1 {
    frit_half d, m;
    uint32_t qh;
    uint8_t qs[16];
} frit_block_q5_1;

typedef struct frit_block_q8_0 {
    frit_half d;
    int8_t qs[32];
} frit_block_q8_0;

// 128 numbers of e4m3 with one scale: float.c. No GGUF file has it.
typedef struct frit_block_fp8_128 {
    float d;
    uint8_t qs[128];
} frit_block_fp8_128;

// 256 numbers with quantized scales of groups of 16 or 32: k_quants.c.
typedef struct frit_block_q2_k {
    uint8_t scales[16];
    uint8_t qs[64];
    frit_half d, dmin;
} frit_block_q2_k;

typedef struct frit_block_q3_k {
    uint8_t qh[32];
    uint8_t qs[64];
    uint8_t scales[12];
    frit_half d;
} frit_block_q3_k;

typedef struct frit_block_q4_k {
    frit_half d, dmin;
    uint8_t scales[12];
    uint8_t qs[128];
} frit_block_q4_k;

typedef struct frit_block_q5_k {
    frit_half d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
} frit_block_q5_k;

typedef struct frit_block_q6_k {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    frit_half d;
} frit_block_q6_k;

// 256 numbers as indices into grids of 4 or 8 magnitudes, and signs: iq.c.
typedef struct frit_block_iq1_s {
    frit_half d;
    uint8_t qs[32];
    uint16_t qh[8];
} frit_block_iq1_s;

typedef struct frit_block_iq1_m {
    uint8_t qs[32];
    uint8_t qh[16];
    uint16_t scales[4];
} frit_block_iq1_m;

typedef struct frit_block_iq2_xxs {
    frit_half d;
    struct {
        uint8_t qs[4];
        uint32_t signs;
    } groups[8];
} frit_block_iq2_xxs;

typedef struct frit_block_iq2_xs {
    frit_half d;
    uint16_t qs[32];
    uint8_t scales[8];
} frit_block_iq2_xs;

typedef struct frit_block_iq2_s {
    frit_half d;
    uint8_t qs[32];
    uint8_t signs[32];
    uint8_t qh[8];
    uint8_t scales[8];
} frit_block_iq2_s;

typedef struct frit_block_iq3_xxs {
    frit_half d;
    uint8_t qs[64];
    uint32_t signs[8];
} frit_block_iq3_xxs;

typedef struct frit_block_iq3_s {
    frit_half d;
    uint8_t qs[64];
    uint8_t qh[8];
    uint8_t signs[32];
    uint8_t scales[4];
} frit_block_iq3_s;

// Codes that index sixteen uneven levels: iq.c.
typedef struct frit_block_iq4_nl {
    frit_half d;
    uint8_t qs[16];
} frit_block_iq4_nl;

typedef struct frit_block_iq4_xs {
    frit_half d;
    uint16_t scales_high;
    uint8_t scales_low[4];
    uint8_t qs[128];
} frit_block_iq4_xs;

// Two, three or four levels: low_bits.c.
typedef struct frit_block_tq1_0 {
    uint8_t qs[48];
    uint8_t qh[4];
    frit_half d;
} frit_block_tq1_0;

typedef struct frit_block_tq2_0 {
    uint8_t qs[64];
    frit_half d;
} frit_block_tq2_0;

typedef struct frit_block_q1_0 {
    frit_half d;
    uint8_t qs[16];
} frit_block_q1_0;

typedef struct frit_block_q2_0 {
    frit_half d;
    uint8_t qs[16];
} frit_block_q2_0;

// Four-bit floating point with eight-bit scales: fp4.c.
typedef struct frit_block_mxfp4 {
    uint8_t e;   // E8M0: a power of two
    uint8_t qs[16];
} frit_block_mxfp4;

typedef struct frit_block_nvfp4 {
    uint8_t d[4];   // UE4M3, one for 16 numbers
    uint8_t qs[32];
} frit_block_nvfp4;

#pragma pack(pop)

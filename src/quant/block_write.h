// SPDX-License-Identifier: MIT
// quant/block_write.h: writes codes and integer scales into blocks; the inverse of the decoders' reading functions.
#pragma once
#include "quant/blocks.h"

// Writes 256 codes into fields of two bits (64 bytes) or four bits (128 bytes). Higher bits of the codes are dropped.
void frit_write_two_bits(const uint8_t codes[256], uint8_t qs[64]);
void frit_write_four_bits(const uint8_t codes[256], uint8_t qs[128]);
// Writes bit `bit` of the codes: code 32 u + l to bit u of byte l.
void frit_write_one_bit(const uint8_t codes[256], int bit, uint8_t qh[32]);
// The inverse of frit_unpack_scales_q4_k and _q3_k.
void frit_write_scales_q4_k(const uint8_t scales[8], const uint8_t mins[8], uint8_t packed[12]);
void frit_write_scales_q3_k(const int8_t scales[16], uint8_t packed[12]);
void frit_write_q6_k(const uint8_t codes[256], frit_block_q6_k *block);   // ql and qh
void frit_write_nibbles(const uint8_t codes[32], uint8_t qs[16]);
uint32_t frit_write_fifth_bits(const uint8_t codes[32]);

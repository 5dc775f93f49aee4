// SPDX-License-Identifier: MIT
// quant/recode.h: blocks of types whose codes are slow to read in kernels, recoded without loss. A kernel finds the
// parts below, in whole words and in this order:
//
//     nvfp4             of four blocks: 16 scales | nibbles as in the file                  NaN scales are zeros
//     q1_0              for each 32 columns four bytes: bit b of byte i is column 4 b + i            | d
//     q2_0              for each 32 columns eight bytes: bits 2 b of byte i are column 8 b + i       | d
//     tq1_0, tq2_0      two bits, the code of TQ2_0                                                  | d
//     iq1_s             two bits, grid + 1 | nibble of 32: scale, highest bit: the shift is negative | d
//     iq1_m             two bits, grid + 1 | a bit: the shift is negative | nibble of 16: scale      | d
//     iq2_*             two bits, magnitude | a bit: negative | nibble of 16 (iq2_xxs: 32): scale    | d
//     iq3_*             four bits, magnitude, the highest: negative | nibble of 32: scale            | d
//
// Two bits, four bits and a bit are stored as in Q2_K, Q4_K and Q5_K: column c of 32 in byte c, the next 32 columns in
// higher bits. A magnitude is its index in the list of its grid: 3 magnitudes in IQ2 (8, 25, 43), 8 in IQ3.
//
// In types whose kernels read indices, only the order of the indices changes. A run is eight columns:
//
//     iq1_s_index       for each run: bits 10..4 of its index, highest bit 3 | for each group of 32, 16 bits: bits 2..0
//                       of its runs' indices, and the highest four as in the file | d
//     iq1_m_index       for each run as in iq1_s_index | for each run a nibble: bits 2..0, highest as in the file
//                       | scales
//     iq2_xs_index      for each group: low bytes of its four indices, a byte of signs for each run, highest the ninth
//                       bit of its index | scales | d
//     iq3_xxs_index     for each group of 32: indices of the first halves of the four runs, of the second halves,
//                       signs and scale as in the file | d
//     iq3_s_index       for each group: indices as in iq3_xxs_index, a byte of signs for each run (bits 3 - k and
//                       7 - k: columns 2 k and 2 k + 1) | a byte for each group: ninth bits of the first halves, of the
//                       second halves | a nibble for each group: scale | d
#pragma once
#include <stdint.h>

void frit_recode_nvfp4(const void *block, uint8_t *out);
void frit_recode_q1_0(const void *block, uint8_t *out);
void frit_recode_q2_0(const void *block, uint8_t *out);
void frit_recode_tq1_0(const void *block, uint8_t *out);
void frit_recode_iq1_s(const void *block, uint8_t *out);
void frit_recode_iq1_m(const void *block, uint8_t *out);
void frit_recode_iq2_xxs(const void *block, uint8_t *out);
void frit_recode_iq2_xs(const void *block, uint8_t *out);
void frit_recode_iq2_s(const void *block, uint8_t *out);
void frit_recode_iq3_xxs(const void *block, uint8_t *out);
void frit_recode_iq3_s(const void *block, uint8_t *out);
void frit_recode_iq1_s_index(const void *block, uint8_t *out);
void frit_recode_iq1_m_index(const void *block, uint8_t *out);
void frit_recode_iq2_xs_index(const void *block, uint8_t *out);
void frit_recode_iq3_xxs_index(const void *block, uint8_t *out);
void frit_recode_iq3_s_index(const void *block, uint8_t *out);

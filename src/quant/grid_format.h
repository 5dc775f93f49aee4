// SPDX-License-Identifier: MIT
// quant/grid_format.h: converts blocks of the IQ2 and IQ3 formats to magnitudes with signs, and back; for
// block_format.c.
#pragma once
#include "quant/block_format.h"

void frit_unpack_iq2_xxs(const void *block, frit_unpacked_block *out);
void frit_unpack_iq2_xs(const void *block, frit_unpacked_block *out);
void frit_unpack_iq2_s(const void *block, frit_unpacked_block *out);
void frit_unpack_iq3_xxs(const void *block, frit_unpacked_block *out);
void frit_unpack_iq3_s(const void *block, frit_unpacked_block *out);
// Codes must be rows of the grid. In formats that store seven of eight signs, the number of minus signs must be even.
void frit_pack_iq2_xxs(const frit_unpacked_block *from, void *block);
void frit_pack_iq2_xs(const frit_unpacked_block *from, void *block);
void frit_pack_iq2_s(const frit_unpacked_block *from, void *block);
void frit_pack_iq3_xxs(const frit_unpacked_block *from, void *block);
void frit_pack_iq3_s(const frit_unpacked_block *from, void *block);

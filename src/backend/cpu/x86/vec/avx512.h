// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/avx512.h: shared by the kernel files for AVX-512 (F, BW, DQ, VL).
#pragma once
#include "backend/cpu/kernels.h"

// The parts of frit_install_avx512.
void frit_install_avx512_attend(frit_kernels *kernels);        // attention by rows
void frit_install_avx512_attend_tile(frit_kernels *kernels);   // attention by tiles
void frit_install_avx512_state(frit_kernels *kernels);
void frit_install_avx512_descend(frit_kernels *kernels);

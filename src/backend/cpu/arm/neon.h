// SPDX-License-Identifier: MIT
// backend/cpu/arm/neon.h: shared by the kernel files for NEON. Only they include it.
#pragma once
#include "backend/cpu/kernels.h"

// The parts of frit_install_neon.
void frit_install_neon_float(frit_kernels *kernels);    // products with f32, f16 and bf16
void frit_install_neon_packed(frit_kernels *kernels);   // products with packed weights
void frit_install_neon_convert(frit_kernels *kernels);
void frit_install_neon_attend(frit_kernels *kernels);        // attention by rows
void frit_install_neon_attend_tile(frit_kernels *kernels);   // attention by tiles
void frit_install_neon_state(frit_kernels *kernels);
void frit_install_neon_descend(frit_kernels *kernels);

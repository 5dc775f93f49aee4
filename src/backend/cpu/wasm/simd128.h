// SPDX-License-Identifier: MIT
// backend/cpu/wasm/simd128.h: shared by the kernel files for WebAssembly's vectors of 128 bits. Only they include it.
#pragma once
#include "backend/cpu/kernels.h"

// The parts of frit_install_simd128.
void frit_install_simd128_float(frit_kernels *kernels);    // products with f32, f16 and bf16
void frit_install_simd128_packed(frit_kernels *kernels);   // products with packed weights
void frit_install_simd128_convert(frit_kernels *kernels);
void frit_install_simd128_attend(frit_kernels *kernels);        // attention by rows
void frit_install_simd128_attend_tile(frit_kernels *kernels);   // attention by tiles
void frit_install_simd128_state(frit_kernels *kernels);
void frit_install_simd128_descend(frit_kernels *kernels);

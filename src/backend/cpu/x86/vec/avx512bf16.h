// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/avx512bf16.h: shared by the kernel files for AVX-512 BF16.
#pragma once
#include "backend/cpu/kernels.h"

void frit_install_avx512bf16_attend(frit_kernels *kernels);   // a part of frit_install_avx512bf16

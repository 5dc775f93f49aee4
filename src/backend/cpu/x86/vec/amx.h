// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/amx.h: shared by the kernel files for AMX.
#pragma once
#include "backend/cpu/kernels.h"

// The parts of frit_install_amx.
void frit_install_amx_attend(frit_kernels *kernels);
void frit_install_amx_float(frit_kernels *kernels);
void frit_install_amx_probe(frit_kernels *kernels);

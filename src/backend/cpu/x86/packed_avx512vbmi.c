// SPDX-License-Identifier: MIT
// Products of panels that keep the file's indices, with AVX-512 VNNI and the table lookups of VBMI.
#include "backend/cpu/x86/dot_avx512vnni.h"
#include "backend/cpu/tmpl/packed_dots_tmpl.h"
#include "backend/cpu/x86/packed_tile_vnni_tmpl.h"
#include "backend/cpu/x86/indexed_avx512vbmi_tmpl.h"

static const char isa[] = "avx512vbmi";

#define PACKED_TYPES         "backend/cpu/pack/packed_indexed.def"
#define PACKED_LAYOUT(dtype) frit_interleave_indexed(dtype)
#include "backend/cpu/tmpl/packed_tmpl.h"

void frit_install_avx512vbmi(frit_kernels *k)
{
    install(k);
}

// SPDX-License-Identifier: MIT
// Products of packed weights with AVX-VNNI: a register holds a word of eight rows.
#include "backend/cpu/x86/vec_avx2.h"

enum { MAX_TOKENS = 5 };

static const char isa[] = "avxvnni";

FRIT_INLINE vec dot(vec sum, vec codes, vec x)
{
    return _mm256_dpbusd_avx_epi32(sum, codes, x);
}

FRIT_INLINE vec open_wide(vec codes)
{
    return codes;
}

FRIT_INLINE vec start_wide(const int32_t *minus_128)
{
    return all_words(minus_128);
}

FRIT_INLINE vec dot_wide(vec sum, vec codes, vec x)
{
    return dot(sum, codes, x);
}

#include "backend/cpu/x86/packed_tmpl.h"

void frit_install_avxvnni(frit_kernels *k)
{
    install(k);
}

// SPDX-License-Identifier: MIT
// The searches of offset_search.h with AVX2.
#define LANES 8
#include "quant/search/offset_search_tmpl.h"

void frit_fit_offsets_avx2(const frit_offset_groups *groups)
{
    fit_offsets(groups);
}

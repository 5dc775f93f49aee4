// SPDX-License-Identifier: MIT
// The searches of offset_search.h for any processor.
#include "quant/search/offset_search_tmpl.h"

void frit_fit_offsets_any(const frit_offset_groups *groups)
{
    fit_offsets(groups);
}

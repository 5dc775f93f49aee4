// SPDX-License-Identifier: MIT
// Parts of the pages that several sequences share. attend_rows.cu computes them for all rows of a tile; attend.cu joins
// them with a row's own parts.
//
//     parts of a row and a query tile      [SHARED_PARTS][SPLITS], of which those with pages lie side by side
//
// Defined before: SHARED_PARTS, SPLITS (parts of a row's own pages).
#pragma once

#define ALL_PARTS (SHARED_PARTS + SPLITS)

// Pages of each part but the last. Parts of few pages would take longer to join than to read.
DEVICE int shared_pages_each(int n_pages)
{
    const int least = 8;
    return max((n_pages + SHARED_PARTS - 1) / SHARED_PARTS, least);
}

DEVICE int n_shared_parts(int n_pages)
{
    const int each = shared_pages_each(n_pages);
    return (n_pages + each - 1) / each;
}

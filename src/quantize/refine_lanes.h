// SPDX-License-Identifier: MIT
// quantize/refine_lanes.h: the descent of refine_rows.h for some columns of sixteen rows, while all other columns stay.
//
// Each row is a lane of a vector. Rows are independent, so a column of all lanes is one or two vectors, and the latency
// of divisions and roundings is shared by sixteen rows.
#pragma once
#include "backend/cpu/kernels.h"
#include "quant/block_format.h"

enum { FRIT_REFINE_COLUMNS = 128, FRIT_REFINE_LANES = FRIT_DESCENT_LANES, FRIT_REFINE_GROUPS = 8 };

typedef float frit_lanes[FRIT_REFINE_LANES];

typedef struct frit_refine_lanes {
    const frit_block_format *format;
    const frit_kernels *kernels;
    int n;   // columns: a multiple of the format's group
    // [n, FRIT_REFINE_COLUMNS]: change of all gradients per step of a column, damping included.
    const float *h;
    frit_lanes now[FRIT_REFINE_COLUMNS], gradient[FRIT_REFINE_COLUMNS], codes[FRIT_REFINE_COLUMNS];
    frit_lanes d[FRIT_REFINE_GROUPS], dmin[FRIT_REFINE_GROUPS];   // of each group's block
    frit_lanes scales[FRIT_REFINE_GROUPS], mins[FRIT_REFINE_GROUPS];
} frit_refine_lanes;

// Improves each code, then each group's scale and min with matching codes. Lanes whose factors are 0 stay 0.
void frit_refine_lanes_improve(frit_refine_lanes *lanes);

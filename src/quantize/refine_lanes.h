// SPDX-License-Identifier: MIT
// quantize/refine_lanes.h: codes and scales of some columns of sixteen rows side by side: what the descent of
// refine_rows.h changes while all other columns stay.
//
// Each row is a lane. Rows do not depend on each other, so a column of all lanes is a vector or two, and what one row
// waits for, a division or a rounding, it waits for together with fifteen others.
#pragma once
#include "backend/cpu/kernels.h"
#include "quant/block_format.h"

enum { FRIT_REFINE_COLUMNS = 128, FRIT_REFINE_LANES = FRIT_DESCENT_LANES, FRIT_REFINE_GROUPS = 8 };

typedef float frit_lanes[FRIT_REFINE_LANES];

typedef struct frit_refine_lanes {
    const frit_block_format *format;
    const frit_kernels *kernels;
    int n;   // columns: a multiple of the format's group
    // [n, FRIT_REFINE_COLUMNS]: what a step of a column adds to the gradients of all, damping included.
    const float *h;
    frit_lanes now[FRIT_REFINE_COLUMNS], gradient[FRIT_REFINE_COLUMNS], codes[FRIT_REFINE_COLUMNS];
    frit_lanes d[FRIT_REFINE_GROUPS], dmin[FRIT_REFINE_GROUPS];   // each group has those of its block
    frit_lanes scales[FRIT_REFINE_GROUPS], mins[FRIT_REFINE_GROUPS];
} frit_refine_lanes;

// Each code in turn, then each group's scale and min, with codes that suit these. Lanes whose factors are 0 stay 0.
void frit_refine_lanes_improve(frit_refine_lanes *lanes);

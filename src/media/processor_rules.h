// SPDX-License-Identifier: MIT
// media/processor_rules.h: the sizes that each rule gives. The rules are in processor_sizes.c (one tile) and
// processor_tiles.c. A rule that sets no tile size makes one tile of the resized picture.
#pragma once
#include "media/processor.h"

#include <math.h>

frit_status frit_plan_smart(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_stretch(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_crop(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_longest(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_budget(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_split(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_canvas(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_anyres(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_tokens(frit_picture_plan *plan, const frit_processor *p);
frit_status frit_plan_chunks(frit_picture_plan *plan, const frit_processor *p);

// Sets n_marks.
frit_status frit_plan_count_marks(frit_picture_plan *plan, const frit_processor *p);

// Sizes between limits that are multiples of `factor`, with about the picture's ratio of sides.
typedef struct frit_smart_limits {
    double factor, min_pixels, max_pixels;
    double frames;          // pixels are those of all frames
    bool at_least_factor;   // sides are rounded to the factor at least before they are compared with the limits
} frit_smart_limits;
void frit_smart_size(const frit_smart_limits *limits, double width, double height, double *out_width,
                     double *out_height);

// Python's a // b of floats.
static inline double frit_floor_divide(double a, double b)
{
    const double rest = fmod(a, b);
    return floor((a - rest) / b + 0.5);
}

// Python's round(): halves become even.
static inline double frit_round_even(double x)
{
    const double below = floor(x), fraction = x - below;
    if (fraction != 0.5) return floor(x + 0.5);
    return fmod(below, 2.0) == 0.0 ? below : below + 1;
}

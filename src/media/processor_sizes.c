// SPDX-License-Identifier: MIT
// Rules by which a picture becomes one tile. Numbers are doubles and are rounded as in Python, which these rules are
// published in: at some sizes another rounding gives another number of tokens.
#include "media/processor_rules.h"

enum { MAX_RATIO = 200 };

static frit_status set_out(frit_picture_plan *plan, double width, double height)
{
    const double most = 1 << 24;   // check_sizes of processor.c has the limits
    plan->out_width = (uint32_t)(width < most ? width : most);
    plan->out_height = (uint32_t)(height < most ? height : most);
    return FRIT_OK;
}

static double at_least(double value, double least)
{
    return value < least ? least : value;
}

void frit_smart_size(const frit_smart_limits *l, double width, double height, double *out_width, double *out_height)
{
    const double factor = l->factor, least = l->at_least_factor ? factor : 0;
    double w = at_least(frit_round_even(width / factor) * factor, least);
    double h = at_least(frit_round_even(height / factor) * factor, least);
    if (l->frames * h * w > l->max_pixels) {
        const double beta = sqrt(l->frames * height * width / l->max_pixels);
        w = at_least(floor(width / beta / factor) * factor, factor);
        h = at_least(floor(height / beta / factor) * factor, factor);
    } else if (l->frames * h * w < l->min_pixels) {
        const double beta = sqrt(l->min_pixels / (l->frames * height * width));
        w = ceil(width * beta / factor) * factor;
        h = ceil(height * beta / factor) * factor;
    }
    *out_width = w;
    *out_height = h;
}

frit_status frit_plan_smart(frit_picture_plan *plan, const frit_processor *p)
{
    const frit_smart_limits limits = {.factor = (double)p->patch * p->merge,
                                      .min_pixels = (double)p->min_pixels,
                                      .max_pixels = (double)p->max_pixels,
                                      .frames = p->counts_frames ? p->frames : 1};
    double width = plan->width, height = plan->height;
    if (p->counts_frames && (width < limits.factor || height < limits.factor)) {
        const double scale = fmax(limits.factor / height, limits.factor / width);
        width = floor(width * scale);
        height = floor(height * scale);
    }
    if (fmax(width, height) / fmin(width, height) > MAX_RATIO)
        return frit_fail(FRIT_E_INVALID,
                         "a picture of %ux%u pixels is too narrow; expected a longer side of at most %d shorter sides",
                         (unsigned)plan->width, (unsigned)plan->height, MAX_RATIO);
    double out_width, out_height;
    frit_smart_size(&limits, width, height, &out_width, &out_height);
    return set_out(plan, out_width, out_height);
}

frit_status frit_plan_stretch(frit_picture_plan *plan, const frit_processor *p)
{
    return set_out(plan, p->width, p->height);
}

frit_status frit_plan_crop(frit_picture_plan *plan, const frit_processor *p)
{
    const bool is_wide = plan->width > plan->height;
    const double shorter = is_wide ? plan->height : plan->width, longer = is_wide ? plan->width : plan->height;
    const double length = floor((double)p->shortest * longer / shorter);
    set_out(plan, is_wide ? length : p->shortest, is_wide ? p->shortest : length);
    plan->tile_width = p->width;
    plan->tile_height = p->height;
    plan->x = -(int32_t)((plan->out_width - p->width) / 2);
    plan->y = -(int32_t)((plan->out_height - p->height) / 2);
    return FRIT_OK;
}

frit_status frit_plan_longest(frit_picture_plan *plan, const frit_processor *p)
{
    double width = plan->width, height = plan->height;
    const double ratio = fmax(height / p->longest, width / p->longest);
    if (ratio > 1) {
        width = floor(width / ratio);
        height = floor(height / ratio);
    }
    if (width < 1 || height < 1)
        return frit_fail(FRIT_E_INVALID, "a picture of %ux%u pixels is too narrow", (unsigned)plan->width,
                         (unsigned)plan->height);
    const double side = (double)p->patch * p->merge;
    return set_out(plan, ceil(width / side) * side, ceil(height / side) * side);
}

frit_status frit_plan_budget(frit_picture_plan *plan, const frit_processor *p)
{
    const double width = plan->width, height = plan->height, side = (double)p->patch * p->merge;
    const double target = (double)p->max_tokens * p->merge * p->merge * p->patch * p->patch;
    const double factor = sqrt(target / (height * width)), most = p->max_tokens * side;
    double h = floor(factor * height / side) * side, w = floor(factor * width / side) * side;
    if (h == 0 && w == 0)
        return frit_fail(FRIT_E_INVALID, "a picture of %ux%u pixels becomes less than one token", (unsigned)plan->width,
                         (unsigned)plan->height);
    if (h == 0) {
        h = side;
        w = fmin(floor(width / height) * side, most);
    } else if (w == 0) {
        w = side;
        h = fmin(floor(height / width) * side, most);
    }
    if (h * w > target)
        return frit_fail(FRIT_E_INVALID, "a picture of %ux%u pixels is too narrow for %u tokens", (unsigned)plan->width,
                         (unsigned)plan->height, (unsigned)p->max_tokens);
    return set_out(plan, w, h);
}

// SPDX-License-Identifier: MIT
// Rules by which a picture becomes several tiles. Arithmetic is in doubles as in Python, and in floats where the
// published rule uses PyTorch.
#include "media/processor_rules.h"

// The tile of the picture as a whole.
static void add_whole(frit_picture_plan *plan, uint32_t width, uint32_t height)
{
    plan->has_whole = true;
    plan->whole_width = width;
    plan->whole_height = height;
}

static void set_tiles(frit_picture_plan *plan, const frit_processor *p, uint32_t rows, uint32_t columns)
{
    plan->tiles = (frit_grid){rows, columns};
    plan->tile_width = p->width;
    plan->tile_height = p->height;
    plan->out_width = columns * p->width;
    plan->out_height = rows * p->height;
}

// ------------------------------------------------------------------------------- Idefics 3

static double odd_to_even(double x)
{
    return fmod(x, 2) == 0 ? x : x + 1;
}

// The longer side becomes p->longest, at most 4096; the other one is even.
static void longest_size(const frit_processor *p, double *width, double *height)
{
    const double most = 4096, ratio = *width / *height;
    if (*width >= *height) {
        *width = p->longest;
        *height = odd_to_even(floor(*width / ratio));
    } else {
        *height = p->longest;
        *width = odd_to_even(floor(*height * ratio));
    }
    *width = fmax(*width, 1);
    *height = fmax(*height, 1);
    const double next = *width / *height;
    if (*width >= *height && *width > most) {
        *width = most;
        *height = floor(*width / next);
    } else if (*height > *width && *height > most) {
        *height = most;
        *width = floor(*height * next);
    }
    *width = fmax(*width, 1);
    *height = fmax(*height, 1);
}

frit_status frit_plan_split(frit_picture_plan *plan, const frit_processor *p)
{
    double width = plan->width, height = plan->height;
    const double side = p->width;
    longest_size(p, &width, &height);
    plan->first_width = (uint32_t)width;
    plan->first_height = (uint32_t)height;
    set_tiles(plan, p, 1, 1);
    if (!p->splits) return FRIT_OK;
    const double ratio = width / height;
    if (width >= height) {
        width = ceil(width / side) * side;
        height = ceil(floor(width / ratio) / side) * side;
    } else {
        height = ceil(height / side) * side;
        width = ceil(floor(height * ratio) / side) * side;
    }
    if (width <= side && height <= side) return FRIT_OK;
    set_tiles(plan, p, (uint32_t)fmax(height / side, 1), (uint32_t)fmax(width / side, 1));
    add_whole(plan, p->width, p->height);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- InternVL, LFM2-VL

// The grid of min_tiles to max_tiles tiles whose ratio of sides is nearest to the picture's. Of equally near ones a
// grid of more tiles is taken while the picture has more than half of its pixels.
static frit_grid nearest_grid(const frit_picture_plan *plan, const frit_processor *p)
{
    const double ratio = (double)plan->width / plan->height, area = (double)plan->width * plan->height;
    double best = INFINITY;
    frit_grid grid = {1, 1};
    for (uint32_t n = p->min_tiles; n <= p->max_tiles; n++)
        for (uint32_t columns = 1; columns <= n; columns++) {
            if (n % columns != 0) continue;
            const uint32_t rows = n / columns;
            const double distance = fabs(ratio - (double)columns / rows);
            const bool is_large = area > 0.5 * p->width * p->height * n;
            if (distance > best || (distance == best && !is_large)) continue;
            best = distance;
            grid = (frit_grid){rows, columns};
        }
    return grid;
}

frit_status frit_plan_canvas(frit_picture_plan *plan, const frit_processor *p)
{
    const frit_grid grid = p->splits && p->max_tiles > 1 ? nearest_grid(plan, p) : (frit_grid){1, 1};
    set_tiles(plan, p, grid.rows, grid.columns);
    if (grid.rows * grid.columns > 1) add_whole(plan, p->width, p->height);
    return FRIT_OK;
}

frit_status frit_plan_tokens(frit_picture_plan *plan, const frit_processor *p)
{
    const double factor = (double)p->patch * p->merge, token = factor * factor;
    const frit_smart_limits limits = {.factor = factor,
                                      .min_pixels = p->min_tokens * token,
                                      .max_pixels = p->max_tokens * token,
                                      .frames = 1,
                                      .at_least_factor = true};
    double width, height;
    frit_smart_size(&limits, plan->width, plan->height, &width, &height);
    const double w = fmax(p->patch, frit_round_even(plan->width / factor) * factor);
    const double h = fmax(p->patch, frit_round_even(plan->height / factor) * factor);
    const bool is_cut =
        p->splits && !(p->min_tiles == 1 && p->max_tiles == 1) && w * h > limits.max_pixels * p->tolerance;
    if (!is_cut) {
        plan->out_width = (uint32_t)fmin(width, 1 << 24);
        plan->out_height = (uint32_t)fmin(height, 1 << 24);
        return FRIT_OK;
    }
    const frit_grid grid = nearest_grid(plan, p);
    set_tiles(plan, p, grid.rows, grid.columns);
    if (p->adds_whole && grid.rows * grid.columns > 1)
        add_whole(plan, (uint32_t)fmin(width, 1 << 24), (uint32_t)fmin(height, 1 << 24));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- LLaVA-NeXT, LLaVA-OneVision

// The listed size that shows most of the picture's pixels, and of equal ones the smallest.
static frit_grid best_listed(const frit_picture_plan *plan, const frit_processor *p)
{
    const double width = plan->width, height = plan->height;
    double most = 0, least_wasted = INFINITY;
    frit_grid best = p->grids[0];
    for (uint32_t i = 0; i < p->n_grids; i++) {
        const double w = p->grids[i].columns, h = p->grids[i].rows, scale = fmin(w / width, h / height);
        const double effective = fmin(floor(width * scale) * floor(height * scale), width * height);
        const double wasted = w * h - effective;
        if (effective < most || (effective == most && wasted >= least_wasted)) continue;
        most = effective;
        least_wasted = wasted;
        best = p->grids[i];
    }
    return best;
}

frit_status frit_plan_anyres(frit_picture_plan *plan, const frit_processor *p)
{
    const frit_grid size = best_listed(plan, p);
    const double scale_w = (double)size.columns / plan->width, scale_h = (double)size.rows / plan->height;
    set_tiles(plan, p, size.rows / p->height, size.columns / p->width);
    if (scale_w < scale_h)
        plan->out_height = (uint32_t)fmin(ceil(plan->height * scale_w), size.rows);
    else
        plan->out_width = (uint32_t)fmin(ceil(plan->width * scale_h), size.columns);
    plan->x = (int32_t)(size.columns - plan->out_width) / 2;
    plan->y = (int32_t)(size.rows - plan->out_height) / 2;
    add_whole(plan, p->width, p->height);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- Llama 4

typedef struct canvas_choice {
    frit_grid grid;
    float scale;
} canvas_choice;

static float canvas_scale(const frit_picture_plan *plan, const frit_processor *p, frit_grid grid)
{
    const float w = (float)(grid.columns * p->width) / (float)plan->width;
    const float h = (float)(grid.rows * p->height) / (float)plan->height;
    return h > w ? w : h;
}

// The canvas that enlarges the picture least, or the one that shrinks it least; of equal ones the smallest.
static frit_grid best_canvas(const frit_picture_plan *plan, const frit_processor *p)
{
    canvas_choice best = {.scale = -1};
    for (uint32_t n = 1; n <= p->max_tiles; n++)
        for (uint32_t rows = 1; rows <= n; rows++) {
            if (n % rows != 0) continue;
            const canvas_choice next = {{rows, n / rows}, canvas_scale(plan, p, (frit_grid){rows, n / rows})};
            const bool enlarges = next.scale >= 1, best_enlarges = best.scale >= 1;
            const bool is_better = enlarges != best_enlarges      ? enlarges
                                   : enlarges && !p->fills_canvas ? next.scale < best.scale
                                                                  : next.scale > best.scale;
            if (is_better) best = next;
        }
    return best.grid;
}

static uint32_t clamped(uint32_t value, uint32_t low, uint32_t high)
{
    if (value < low) value = low;
    return value > high ? high : value;
}

frit_status frit_plan_chunks(frit_picture_plan *plan, const frit_processor *p)
{
    const frit_grid grid = best_canvas(plan, p);
    set_tiles(plan, p, grid.rows, grid.columns);
    uint32_t width = plan->out_width, height = plan->out_height;
    if (!p->fills_canvas) {
        width = clamped(plan->width, p->height, width);
        height = clamped(plan->height, p->height, height);
    }
    const double scale_w = (double)width / plan->width, scale_h = (double)height / plan->height;
    if (scale_w < scale_h)
        height = (uint32_t)fmin(floor(plan->height * scale_w), height);
    else
        width = (uint32_t)fmin(floor(plan->width * scale_h), width);
    plan->out_width = width ? width : 1;
    plan->out_height = height ? height : 1;
    if (grid.rows * grid.columns > 1) add_whole(plan, p->width, p->height);
    return FRIT_OK;
}

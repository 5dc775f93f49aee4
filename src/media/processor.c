// SPDX-License-Identifier: MIT
// Plans of pictures: sizes by the processor's rule, then numbers of patches and soft tokens.
#include "media/processor_rules.h"

typedef frit_status (*rule_fn)(frit_picture_plan *plan, const frit_processor *p);
static const rule_fn rules[FRIT_RULE_COUNT] = {
    [FRIT_RULE_SMART] = frit_plan_smart,   [FRIT_RULE_STRETCH] = frit_plan_stretch,
    [FRIT_RULE_CROP] = frit_plan_crop,     [FRIT_RULE_LONGEST] = frit_plan_longest,
    [FRIT_RULE_SPLIT] = frit_plan_split,   [FRIT_RULE_BUDGET] = frit_plan_budget,
    [FRIT_RULE_CANVAS] = frit_plan_canvas, [FRIT_RULE_ANYRES] = frit_plan_anyres,
    [FRIT_RULE_TOKENS] = frit_plan_tokens, [FRIT_RULE_CHUNKS] = frit_plan_chunks,
};

// Numbers of soft tokens fit into 32 bits, and memory of patches into a size, with these limits.
static const uint64_t max_picture_pixels = UINT64_C(1) << 26;

static frit_grid grid_of(const frit_processor *p, uint32_t width, uint32_t height)
{
    return (frit_grid){height / p->patch, width / p->patch};
}

static uint64_t merged(const frit_processor *p, frit_grid patches)
{
    return (uint64_t)(patches.rows / p->merge) * (patches.columns / p->merge);
}

bool frit_plan_is_whole(const frit_picture_plan *plan, const frit_processor *p, uint32_t i)
{
    return plan->has_whole && i == (p->rule == FRIT_RULE_ANYRES ? 0 : plan->n_tiles - 1);
}

frit_grid frit_plan_tile(const frit_picture_plan *plan, const frit_processor *p, uint32_t i)
{
    return frit_plan_is_whole(plan, p, i) ? plan->whole_patches : plan->tile_patches;
}

uint32_t frit_plan_tile_soft(const frit_picture_plan *plan, const frit_processor *p, uint32_t i)
{
    if (p->soft_per_tile) return p->soft_per_tile;
    return (uint32_t)((int64_t)merged(p, frit_plan_tile(plan, p, i)) + p->extra_soft);
}

// ANYRES: how much of the tiles' features shows the picture.
static void plan_shown(frit_picture_plan *plan, const frit_processor *p)
{
    const uint32_t rows = plan->tile_patches.rows / p->merge, columns = plan->tile_patches.columns / p->merge;
    plan->canvas = (frit_grid){plan->tiles.rows * rows, plan->tiles.columns * columns};
    frit_grid shown = plan->canvas;
    // transformers rounds to 7 digits before it drops the fraction.
    const double last_digit = 5e-8;
    if ((double)plan->width / plan->height > (double)shown.columns / shown.rows) {
        const double height = plan->height * ((double)shown.columns / plan->width);
        plan->skipped_rows = (shown.rows - (uint32_t)(height + last_digit)) / 2;
        shown.rows -= plan->skipped_rows * 2;
    } else {
        const double width = plan->width * ((double)shown.rows / plan->height);
        plan->skipped_columns = (shown.columns - (uint32_t)(width + last_digit)) / 2;
        shown.columns -= plan->skipped_columns * 2;
    }
    plan->shown = plan->shrunk = shown;
    if (p->max_anyres == 0) return;
    const double ratio = sqrt((double)shown.rows * shown.columns / ((double)p->max_anyres * rows * rows));
    if (ratio > 1.1)
        plan->shrunk = (frit_grid){(uint32_t)frit_floor_divide(shown.rows, ratio),
                                   (uint32_t)frit_floor_divide(shown.columns, ratio)};
}

static uint64_t count_soft(frit_picture_plan *plan, const frit_processor *p)
{
    uint64_t n = 0;
    if (p->rule == FRIT_RULE_ANYRES) {
        plan_shown(plan, p);
        return frit_plan_tile_soft(plan, p, 0) + (uint64_t)plan->shrunk.rows * (plan->shrunk.columns + 1);
    }
    for (uint32_t i = 0; i < plan->n_tiles; i++) n += frit_plan_tile_soft(plan, p, i);
    return n;
}

static frit_status check_sizes(const frit_picture_plan *plan, const frit_processor *p)
{
    const uint64_t n_tiles = (uint64_t)plan->tiles.rows * plan->tiles.columns + plan->has_whole;
    const uint64_t n_pixels = (uint64_t)plan->tile_width * plan->tile_height * n_tiles;
    const uint64_t n_whole = (uint64_t)plan->whole_width * plan->whole_height;
    if (n_tiles > FRIT_MAX_TILES || n_pixels > max_picture_pixels || n_whole > max_picture_pixels ||
        (uint64_t)plan->out_width * plan->out_height > max_picture_pixels ||
        (uint64_t)plan->first_width * plan->first_height > max_picture_pixels)
        return frit_fail(
            FRIT_E_LIMIT, "a picture of %ux%u pixels becomes %llu tiles of %ux%u; expected at most %d, and %llu pixels",
            (unsigned)plan->width, (unsigned)plan->height, (unsigned long long)n_tiles, (unsigned)plan->tile_width,
            (unsigned)plan->tile_height, FRIT_MAX_TILES, (unsigned long long)max_picture_pixels);
    if (plan->tile_width < p->patch * p->merge || plan->tile_height < p->patch * p->merge)
        return frit_fail(FRIT_E_INVALID, "a picture of %ux%u pixels becomes %ux%u, less than a patch of %u",
                         (unsigned)plan->width, (unsigned)plan->height, (unsigned)plan->tile_width,
                         (unsigned)plan->tile_height, (unsigned)(p->patch * p->merge));
    return FRIT_OK;
}

frit_status frit_processor_plan(frit_picture_plan *plan, const frit_processor *p, uint32_t width, uint32_t height)
{
    *plan = (frit_picture_plan){
        .width = width, .height = height, .first_width = width, .first_height = height, .tiles = {1, 1}};
    if (width == 0 || height == 0 || width > INT16_MAX || height > INT16_MAX)
        return frit_fail(FRIT_E_INVALID, "a picture has %ux%u pixels; expected sides of 1 to %d", (unsigned)width,
                         (unsigned)height, INT16_MAX);
    FRIT_TRY(rules[p->rule](plan, p));
    if (!plan->tile_width) plan->tile_width = plan->out_width, plan->tile_height = plan->out_height;
    FRIT_TRY(check_sizes(plan, p));
    plan->n_tiles = plan->tiles.rows * plan->tiles.columns + plan->has_whole;
    plan->tile_patches = grid_of(p, plan->tile_width, plan->tile_height);
    if (plan->has_whole) plan->whole_patches = grid_of(p, plan->whole_width, plan->whole_height);
    plan->n_patches = plan->tiles.rows * plan->tiles.columns * plan->tile_patches.rows * plan->tile_patches.columns +
                      plan->whole_patches.rows * plan->whole_patches.columns;
    plan->patch_values = 3 * p->frames * p->patch * p->patch;
    const uint64_t n_soft = count_soft(plan, p);
    if (n_soft == 0 || n_soft > max_picture_pixels)
        return frit_fail(FRIT_E_INVALID, "a picture of %ux%u pixels has %llu tokens", (unsigned)width, (unsigned)height,
                         (unsigned long long)n_soft);
    plan->n_soft = (uint32_t)n_soft;
    return frit_plan_count_marks(plan, p);
}

// SPDX-License-Identifier: MIT
// Fewer or more soft tokens than a model's files ask for.
#include "media/processor_rules.h"

typedef struct token_limits {
    uint32_t min, max;   // 0: none
} token_limits;

static uint32_t smaller(uint32_t value, uint32_t limit)
{
    return limit && limit < value ? limit : value;
}

// Soft tokens of one tile.
static uint32_t tile_tokens(const frit_processor *p)
{
    const uint32_t side = p->patch * p->merge;
    const uint32_t n = p->soft_per_tile ? p->soft_per_tile : (p->width / side) * (p->height / side);
    return n ? n : 1;
}

static void limit_smart(frit_processor *p, token_limits l)
{
    const uint64_t side = (uint64_t)p->patch * p->merge;
    const uint64_t token = side * side * (p->counts_frames ? p->frames : 1);
    if (l.max && l.max * token < p->max_pixels) p->max_pixels = l.max * token;
    if (l.min && l.min * token > p->min_pixels) p->min_pixels = l.min * token;
    if (p->min_pixels > p->max_pixels) p->min_pixels = p->max_pixels;
}

static void limit_longest(frit_processor *p, token_limits l)
{
    if (!l.max) return;
    const uint32_t side = p->patch * p->merge, n = (uint32_t)sqrt(l.max);
    p->longest = smaller(p->longest, (n ? n : 1) * side);
}

static void limit_budget(frit_processor *p, token_limits l)
{
    p->max_tokens = smaller(p->max_tokens, l.max);
}

// n x n tiles and the whole picture.
static void limit_split(frit_processor *p, token_limits l)
{
    if (!l.max || !p->splits) return;
    const uint32_t n_tiles = l.max / tile_tokens(p);
    const uint32_t n = n_tiles > 2 ? (uint32_t)sqrt(n_tiles - 1) : 0;
    if (n < 2)
        p->splits = false;
    else
        p->longest = smaller(p->longest, n * p->width);
}

static void limit_tiles(frit_processor *p, token_limits l)
{
    if (!l.max) return;
    const uint32_t n_tiles = l.max / tile_tokens(p), n_whole = p->rule != FRIT_RULE_TOKENS || p->adds_whole ? 1 : 0;
    if (n_tiles < 2 + n_whole) {
        p->splits = false;
        p->max_tiles = p->min_tiles = 1;
        return;
    }
    p->max_tiles = smaller(p->max_tiles, n_tiles - n_whole);
    p->min_tiles = smaller(p->min_tiles, p->max_tiles);
}

static void limit_tokens(frit_processor *p, token_limits l)
{
    limit_tiles(p, l);
    p->max_tokens = smaller(p->max_tokens, l.max);
    if (l.min > p->min_tokens) p->min_tokens = l.min;
    p->min_tokens = smaller(p->min_tokens, p->max_tokens);
}

// Keeps the listed sizes whose tiles are within the limit. The smallest listed size always stays.
static void limit_anyres(frit_processor *p, token_limits l)
{
    if (!l.max) return;
    const uint32_t n_tiles = l.max / tile_tokens(p), tile = p->width * p->height;
    uint32_t n = 0, fewest = 0;
    for (uint32_t i = 1; i < p->n_grids; i++)
        if ((uint64_t)p->grids[i].rows * p->grids[i].columns <
            (uint64_t)p->grids[fewest].rows * p->grids[fewest].columns)
            fewest = i;
    for (uint32_t i = 0; i < p->n_grids; i++) {
        const uint64_t n_of_grid = (uint64_t)p->grids[i].rows * p->grids[i].columns / tile;
        if (i == fewest || n_of_grid + 1 <= n_tiles) p->grids[n++] = p->grids[i];
    }
    p->n_grids = n;
}

void frit_processor_limit(frit_processor *p, uint32_t min_tokens, uint32_t max_tokens)
{
    static void (*const rules[FRIT_RULE_COUNT])(frit_processor *, token_limits) = {
        [FRIT_RULE_SMART] = limit_smart,   [FRIT_RULE_LONGEST] = limit_longest, [FRIT_RULE_SPLIT] = limit_split,
        [FRIT_RULE_BUDGET] = limit_budget, [FRIT_RULE_CANVAS] = limit_tiles,    [FRIT_RULE_CHUNKS] = limit_tiles,
        [FRIT_RULE_ANYRES] = limit_anyres, [FRIT_RULE_TOKENS] = limit_tokens,
    };
    if (rules[p->rule]) rules[p->rule](p, (token_limits){min_tokens, max_tokens});
}

// SPDX-License-Identifier: MIT
// Features of tiles as one grid, without padding, shrunk, with a newline after each row.
#include "engine/media/anyres.h"

#include <string.h>

// Where a row or column of the shrunk grid lies among those that are shown: between two, at a part of their distance.
typedef struct between {
    uint32_t low, high;
    float part;
} between;

// As PyTorch's bilinear resizing without antialias and without aligned corners, in floats.
static between place_of(uint32_t i, uint32_t n, uint32_t n_shown)
{
    const float at = (float)n_shown / (float)n * ((float)i + 0.5f) - 0.5f;
    const uint32_t low = at > 0 ? (uint32_t)at : 0;
    return (between){low, low + 1 < n_shown ? low + 1 : low, at > 0 ? at - (float)low : 0};
}

// The feature at a row and a column of the shown part of the grid.
static const float *feature_at(const frit_picture_plan *plan, const float *tiles, size_t width, uint32_t row,
                               uint32_t column)
{
    const uint32_t rows = plan->canvas.rows / plan->tiles.rows, columns = plan->canvas.columns / plan->tiles.columns;
    row += plan->skipped_rows;
    column += plan->skipped_columns;
    const size_t tile = 1 + (size_t)(row / rows) * plan->tiles.columns + column / columns;
    return tiles + ((tile * rows + row % rows) * columns + column % columns) * width;
}

static void mix(const frit_picture_plan *plan, const float *tiles, size_t width, between y, between x, float *to)
{
    const float *a = feature_at(plan, tiles, width, y.low, x.low), *b = feature_at(plan, tiles, width, y.low, x.high);
    const float *c = feature_at(plan, tiles, width, y.high, x.low), *d = feature_at(plan, tiles, width, y.high, x.high);
    for (size_t i = 0; i < width; i++)
        to[i] = (1 - y.part) * ((1 - x.part) * a[i] + x.part * b[i]) + y.part * ((1 - x.part) * c[i] + x.part * d[i]);
}

void frit_anyres_join(const frit_picture_plan *plan, const float *tiles, const float *newline, size_t width,
                      float *features)
{
    const frit_grid shrunk = plan->shrunk;
    const size_t n_tile = (size_t)(plan->canvas.rows / plan->tiles.rows) * (plan->canvas.columns / plan->tiles.columns);
    memcpy(features, tiles, n_tile * width * sizeof *features);
    features += n_tile * width;
    for (uint32_t row = 0; row < shrunk.rows; row++) {
        const between y = place_of(row, shrunk.rows, plan->shown.rows);
        for (uint32_t column = 0; column < shrunk.columns; column++, features += width)
            mix(plan, tiles, width, y, place_of(column, shrunk.columns, plan->shown.columns), features);
        memcpy(features, newline, width * sizeof *features);
        features += width;
    }
}

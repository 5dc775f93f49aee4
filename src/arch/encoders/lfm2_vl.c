// SPDX-License-Identifier: MIT
// The encoder of LFM2-VL: SigLIP 2 for pictures of any size, whose table of positions is resized to each. Squares of
// patches become one row of the text through a norm and two matrices.
#include "arch/encoders/vit_rows.h"

#include <math.h>
#include <stdlib.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_VIT_ROWS,
    FRIT_VIT_POSITIONS,
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_norm, "merge_norm", MERGED, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(media.merge_in, "merge_in", PROJECTOR, MERGED, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, PROJECTOR, 0),
};
// clang-format on

static const char *const keys[] = {FRIT_VIT_KEYS, "projector_length"};

static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    const frit_tensor *positions = weights->media.positions.w;
    float *values;
    (void)hp;
    FRIT_TRY(frit_constant_new(&weights->media.places, &values, "places", 2, positions->shape, arena));
    return frit_tensor_decode_rows(positions, 0, positions->shape[0], values);
}

// Fills the weights [n, side] by which n numbers are computed from `side` ones: PyTorch's bilinear resizing with
// antialias, in floats as there. Each weight is the height of a triangle over a number of the smaller list.
static void fill_weights(int32_t n, int32_t side, float *weights)
{
    const float scale = (float)side / (float)n, support = scale > 1 ? scale : 1;
    for (int32_t i = 0; i < n; i++) {
        const float center = scale * ((float)i + 0.5f);
        float sum = 0;
        for (int32_t k = 0; k < side; k++) {
            const float distance = fabsf((float)k - center + 0.5f) / support;
            weights[i * side + k] = distance < 1 ? 1 - distance : 0;
            sum += weights[i * side + k];
        }
        for (int32_t k = 0; k < side; k++) weights[i * side + k] /= sum;
    }
}

// to [n] = the sum of n_parts vectors, `stride` apart, times their weights.
static void mix(const float *from, int32_t n_parts, int64_t stride, const float *weights, int64_t n, float *to)
{
    for (int32_t k = 0; k < n_parts; k++, from += stride)
        for (int64_t i = 0; i < n && weights[k] != 0; i++) to[i] += weights[k] * from[i];
}

// Resizes rows first, then columns.
static frit_status resize_places(const frit_hparams *hp, const frit_weights *weights, frit_media_grid grid,
                                 float *places)
{
    const int32_t side = hp->media.side, height = grid.height, width = grid.width;
    const int64_t n = hp->n_embd, row = width * n;
    const float *table = weights->media.places->data;
    float *by_row = calloc((size_t)side * (size_t)row, sizeof *by_row);
    float *of_x = calloc((size_t)width * (size_t)side, sizeof *of_x);
    float *of_y = calloc((size_t)height * (size_t)side, sizeof *of_y);
    const bool fits = by_row && of_x && of_y;
    if (fits) {
        fill_weights(width, side, of_x);
        fill_weights(height, side, of_y);
        for (int32_t y = 0; y < side; y++)
            for (int32_t x = 0; x < width; x++)
                mix(table + y * side * n, side, n, of_x + x * side, n, by_row + y * row + x * n);
        for (int32_t y = 0; y < height; y++) mix(by_row, side, row, of_y + y * side, row, places + y * row);
    }
    free(by_row);
    free(of_x);
    free(of_y);
    return fits ? FRIT_OK : frit_fail_memory((size_t)side * (size_t)row * sizeof *places, "positions of patches");
}

static frit_node *end(frit_build *b, frit_node *x)
{
    return frit_media_merge_normed(b, frit_norm(b, &b->weights->out_norm, x));
}

const frit_arch frit_arch_lfm2_vl_vision = {
    .name = "lfm2_vl_vision",
    .title = "the encoder of LFM2-VL",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_media_layer,
    .end = end,
    .compute = compute,
    .media = &(const frit_media_arch){.place = frit_media_place_blocks, .resize_places = resize_places},
};

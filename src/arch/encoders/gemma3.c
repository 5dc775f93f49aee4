// SPDX-License-Identifier: MIT
// The encoder of Gemma 3: SigLIP for tiles of one size. The mean of a square of patches becomes a row of the text,
// after a norm and a matrix; patches beside the whole squares become none.
#include "arch/encoders/vit_rows.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_VIT_ROWS,
    FRIT_VIT_POSITIONS,
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.mean_norm, "mean_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, N_EMBD, 0),
};
// clang-format on

static const char *const keys[] = {FRIT_VIT_KEYS};

// Whole squares first, then the other patches, row by row.
static void place(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *places, int32_t *out_rows)
{
    const int32_t merge = hp->media.merge, height = grid.height / merge * merge, width = grid.width / merge * merge;
    int32_t n = height * width;
    frit_media_place_blocks(hp, (frit_media_grid){height, width}, places, out_rows);
    for (int32_t i = 0; i < n; i++) places[i].patch = places[i].turns[0] * grid.width + places[i].turns[1];
    for (int32_t i = 0; i < grid.height * grid.width; i++) {
        const int32_t y = i / grid.width, x = i % grid.width;
        if (y >= height || x >= width) places[n++].patch = i;
    }
    for (int32_t i = 0; i < n; i++) places[i].place = places[i].patch;
}

static frit_node *end(frit_build *b, frit_node *x)
{
    const frit_media_weights *w = &b->weights->media;
    x = frit_media_mean(b, frit_norm(b, &b->weights->out_norm, x));
    x = frit_rms_norm(b->g, x, frit_weight_node(b->g, w->mean_norm.w), b->hp->rms_eps);
    return frit_linear(b, &w->merge_out, x);
}

const frit_arch frit_arch_gemma3_vision = {
    .name = "gemma3_vision",
    .title = "the encoder of Gemma 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_media_layer,
    .end = end,
    .media = &(const frit_media_arch){.has_places = true, .drops_rest = true, .place = place},
};

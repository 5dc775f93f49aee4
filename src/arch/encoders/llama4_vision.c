// SPDX-License-Identifier: MIT
// The encoder of Llama 4, for tiles of one size: learned positions, rotations by columns and rows, and a class row
// after the others. Squares of patches become one row of the text through three matrices.
#include "arch/encoders/vit_rows.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_VIT_ROWS,
    FRIT_VIT_CLASS,
    FRIT_MODEL_WEIGHT(media.input_norm, "input_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_in, "merge_in", PROJECTOR, MERGED, 0),
    FRIT_MODEL_WEIGHT(media.merge_mid, "merge_mid", PROJECTOR, PROJECTOR, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, PROJECTOR, 0),
};
// clang-format on

static const char *const keys[] = {FRIT_VIT_KEYS, "projector_length"};

// The first column and row are position 1; the class row does not rotate.
static void place(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows_of, int32_t *out_rows)
{
    const int32_t n = grid.height * grid.width;
    frit_media_place_blocks(hp, grid, rows_of, out_rows);
    for (int32_t i = 0; i < n; i++) {
        const int32_t y = rows_of[i].turns[0], x = rows_of[i].turns[1];
        rows_of[i].turns[0] = x + 1;
        rows_of[i].turns[1] = y + 1;
    }
    rows_of[n] = (frit_patch_place){.patch = -1, .place = n};
}

static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    return frit_media_add_class(weights, (int64_t)hp->media.side * hp->media.side, arena);
}

static frit_node *begin(frit_build *b, frit_node *x)
{
    return frit_norm(b, &b->weights->media.input_norm, x);
}

static frit_node *end(frit_build *b, frit_node *x)
{
    const frit_media_weights *w = &b->weights->media;
    x = frit_media_blocks(b, frit_norm(b, &b->weights->out_norm, x));
    x = frit_activate(b->g, frit_linear(b, &w->merge_in, x), FRIT_ACT_GELU);
    x = frit_activate(b->g, frit_linear(b, &w->merge_mid, x), FRIT_ACT_GELU);
    return frit_linear(b, &w->merge_out, x);
}

const frit_arch frit_arch_llama4_vision = {
    .name = "llama4_vision",
    .title = "the encoder of Llama 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .begin = begin,
    .layer = frit_media_layer,
    .end = end,
    .compute = compute,
    .media = &(const frit_media_arch){.has_turns = true, .has_places = true, .has_class = true, .place = place},
};

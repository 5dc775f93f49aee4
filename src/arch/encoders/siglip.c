// SPDX-License-Identifier: MIT
// The encoder of SmolVLM and Idefics 3: SigLIP for tiles of one size, with learned positions. Squares of patches become
// one row of the text.
#include "arch/encoders/vit_rows.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_VIT_ROWS,
    FRIT_VIT_POSITIONS,
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, MERGED, 0),
};
// clang-format on

static const char *const keys[] = {FRIT_VIT_KEYS};

static frit_node *end(frit_build *b, frit_node *x)
{
    x = frit_media_blocks(b, frit_norm(b, &b->weights->out_norm, x));
    return frit_linear(b, &b->weights->media.merge_out, x);
}

const frit_arch frit_arch_idefics3_vision = {
    .name = "idefics3_vision",
    .title = "the encoder of SmolVLM and Idefics 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_media_layer,
    .end = end,
    .media = &(const frit_media_arch){.has_places = true, .place = frit_media_place_blocks},
};

// SPDX-License-Identifier: MIT
// The encoder of InternVL: InternViT for tiles of one size, with a class row and a factor for each element of what a
// layer adds. Squares of patches become one row of the text through a norm and two matrices.
#include "arch/encoders/vit_rows.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_VIT_ROWS,
    FRIT_VIT_CLASS,
    FRIT_LAYER_WEIGHT(attn_factors, "attn_factors", N_EMBD, 1, 0),
    FRIT_LAYER_WEIGHT(ffn_factors, "ffn_factors", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_norm, "merge_norm", MERGED, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_in, "merge_in", EMBD_OUT, MERGED, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, EMBD_OUT, 0),
};
// clang-format on

static const char *const keys[] = {FRIT_VIT_KEYS};

static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    (void)hp;
    return frit_media_add_class(weights, 0, arena);
}

const frit_arch frit_arch_internvl_vision = {
    .name = "internvl_vision",
    .title = "the encoder of InternVL",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .layer = frit_media_layer,
    .end = frit_media_merge_normed,
    .compute = compute,
    .media = &(const frit_media_arch){.has_places = true, .has_class = true, .place = frit_media_place_after_class},
};

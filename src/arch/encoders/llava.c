// SPDX-License-Identifier: MIT
// The encoders of LLaVA for tiles of one size: CLIP with a class row (1.5, 1.6), or SigLIP (OneVision). Each patch
// becomes a row of the text. The norm after the last layer is unused, and so may the last layers be. The newline is a
// row of the text that follows each row of features (engine/media/anyres.h).
#include "arch/encoders/vit_rows.h"

// clang-format off
#define PROJECTOR \
    FRIT_MODEL_WEIGHT(media.merge_in, "merge_in", EMBD_OUT, N_EMBD, 0), \
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, EMBD_OUT, 0), \
    FRIT_MODEL_WEIGHT(media.newline, "newline", EMBD_OUT, 1, FRIT_WEIGHT_OPTIONAL)

static const frit_weight_row clip_rows[] = {
    FRIT_VIT_ROWS,
    FRIT_VIT_CLASS,
    FRIT_MODEL_WEIGHT(media.input_norm, "input_norm", N_EMBD, 1, 0),
    PROJECTOR,
};

static const frit_weight_row siglip_rows[] = {
    FRIT_VIT_ROWS,
    FRIT_VIT_POSITIONS,
    PROJECTOR,
};
// clang-format on

static const char *const keys[] = {FRIT_VIT_KEYS, "unused_block_count"};

static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    (void)hp;
    return frit_media_add_class(weights, 0, arena);
}

static frit_node *begin(frit_build *b, frit_node *x)
{
    return frit_norm(b, &b->weights->media.input_norm, x);
}

static frit_node *end(frit_build *b, frit_node *x)
{
    x = frit_linear(b, &b->weights->media.merge_in, frit_media_blocks(b, x));
    return frit_linear(b, &b->weights->media.merge_out, frit_activate(b->g, x, FRIT_ACT_GELU));
}

const frit_arch frit_arch_llava_vision = {
    .name = "llava_vision",
    .title = "the encoder of LLaVA 1.5 and 1.6",
    .rows = clip_rows,
    .n_rows = FRIT_COUNT(clip_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_QUICK,
    .begin = begin,
    .layer = frit_media_layer,
    .end = end,
    .compute = compute,
    .media = &(const frit_media_arch){.has_places = true, .has_class = true, .place = frit_media_place_after_class},
};

const frit_arch frit_arch_llava_siglip_vision = {
    .name = "llava_siglip_vision",
    .title = "the encoder of LLaVA-OneVision",
    .rows = siglip_rows,
    .n_rows = FRIT_COUNT(siglip_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_media_layer,
    .end = end,
    .media = &(const frit_media_arch){.has_places = true, .place = frit_media_place_blocks},
};

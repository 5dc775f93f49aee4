// SPDX-License-Identifier: MIT
// The encoder of Qwen3-VL and Qwen3.5: learned positions that are stretched over a picture, then rotations by rows and
// columns. Some layers of Qwen3-VL give features of their own, which the text adds after its first layers (deepstack).
#include "arch/encoders/vit_rows.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_VIT_ROWS,
    FRIT_VIT_POSITIONS,
    FRIT_LAYER_WEIGHT(deep_norm, "deep_norm", DEEP, 1, 0),
    FRIT_LAYER_WEIGHT(deep_in, "deep_in", DEEP, DEEP, 0),
    FRIT_LAYER_WEIGHT(deep_out, "deep_out", EMBD_OUT, DEEP, 0),
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_in, "merge_in", MERGED, MERGED, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, MERGED, 0),
};
// clang-format on

static const char *const keys[] = {FRIT_VIT_KEYS, "n_deepstack_layers", "deepstack_layers"};

static frit_status adjust(frit_hparams *hp)
{
    int32_t n = 0;
    for (int32_t i = 0; i < hp->n_layer; i++) n += hp->layers[i].is_deep;
    if (n == hp->media.n_deep) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "%d layers give features, expected n_deepstack_layers, %d", (int)n,
                     (int)hp->media.n_deep);
}

// The weights of the features that the k-th such layer gives are those of layer k.
static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_media_layer(b, w, x);
    if (!b->lhp->is_deep) return x;
    const frit_layer *own = &b->weights->layers[b->n_deep++];
    frit_node *y = frit_norm(b, &own->deep_norm, frit_media_blocks(b, x));
    y = frit_linear(b, &own->deep_out, frit_activate(b->g, frit_linear(b, &own->deep_in, y), FRIT_ACT_GELU));
    b->deep = b->deep ? frit_concat(b->g, b->deep, y) : y;
    return x;
}

static frit_node *end(frit_build *b, frit_node *x)
{
    x = frit_media_merge(b, x);
    return b->deep ? frit_concat(b->g, x, b->deep) : x;
}

const frit_arch frit_arch_qwen3_vl_vision = {
    .name = "qwen3_vl_vision",
    .title = "the encoder of Qwen3-VL and Qwen3.5",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = layer,
    .end = end,
    .adjust = adjust,
    .media = &(const frit_media_arch){.has_turns = true,
                                      .has_places = true,
                                      .n_taps = 4,
                                      .tap = frit_media_tap_bilinear,
                                      .place = frit_media_place_squares},
};

// SPDX-License-Identifier: MIT
// Encoders of tiles of one size, with learned positions: SigLIP of SmolVLM and Idefics 3, whose squares of patches
// become one row of the text, and CLIP of LLaVA 1.5, which has a class row and whose last layers are unused.
#include "arch/media.h"
#include "format/rows.h"

// clang-format off
#define ROWS_OF_BOTH \
    FRIT_MODEL_WEIGHT(media.patch, "patch_embd", N_EMBD, EMBD_IN, 0), \
    FRIT_ROW_NORM(attn_norm, "attn_norm"), \
    FRIT_WEIGHTS_QKV(0), \
    FRIT_ROW_O(0), \
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"), \
    FRIT_WEIGHTS_UNGATED(0)

static const frit_weight_row idefics3_rows[] = {
    ROWS_OF_BOTH,
    FRIT_MODEL_WEIGHT(media.positions, "position_embd", PLACES, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, MERGED, 0),
};

static const frit_weight_row llava_rows[] = {
    ROWS_OF_BOTH,
    FRIT_MODEL_WEIGHT(media.positions, "position_embd", PLACES_1, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(media.class_row, "class_embd", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.input_norm, "input_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.merge_in, "merge_in", EMBD_OUT, N_EMBD, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, EMBD_OUT, 0),
};
// clang-format on

static const char *const keys[] = {"embedding_length_input", "embedding_length_out", "spatial_merge_size",
                                   "position_side", "unused_block_count"};

static void place_after_class(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows, int32_t *out_rows)
{
    rows[0] = (frit_patch_place){.patch = -1};
    frit_media_place_blocks(hp, grid, rows + 1, out_rows);
    for (int32_t i = 0; i < grid.height * grid.width; i++) out_rows[i]++;
}

static frit_node *end_idefics3(frit_build *b, frit_node *x)
{
    x = frit_media_blocks(b, frit_norm(b, &b->weights->out_norm, x));
    return frit_linear(b, &b->weights->media.merge_out, x);
}

// Adds the class row's vector to its position, so that all rows read one table.
static frit_status compute_places(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    const frit_tensor *positions = weights->media.positions.w;
    const float *first = weights->media.class_row.w->data;
    float *values;
    FRIT_TRY(frit_constant_new(&weights->media.places, &values, "places", 2, positions->shape, arena));
    FRIT_TRY(frit_tensor_decode_rows(positions, 0, positions->shape[0], values));
    for (int32_t i = 0; i < hp->n_embd; i++) values[i] += first[i];
    return FRIT_OK;
}

static frit_node *begin_llava(frit_build *b, frit_node *x)
{
    return frit_norm(b, &b->weights->media.input_norm, x);
}

static frit_node *end_llava(frit_build *b, frit_node *x)
{
    x = frit_linear(b, &b->weights->media.merge_in, frit_media_blocks(b, x));
    return frit_linear(b, &b->weights->media.merge_out, frit_activate(b->g, x, FRIT_ACT_GELU));
}

const frit_arch frit_arch_idefics3_vision = {
    .name = "idefics3_vision",
    .title = "the encoder of SmolVLM and Idefics 3",
    .rows = idefics3_rows,
    .n_rows = FRIT_COUNT(idefics3_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_media_layer,
    .end = end_idefics3,
    .media = &(const frit_media_arch){.has_places = true, .place = frit_media_place_blocks},
};

const frit_arch frit_arch_llava_vision = {
    .name = "llava_vision",
    .title = "the encoder of LLaVA 1.5",
    .rows = llava_rows,
    .n_rows = FRIT_COUNT(llava_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_QUICK,
    .begin = begin_llava,
    .layer = frit_media_layer,
    .end = end_llava,
    .compute = compute_places,
    .media = &(const frit_media_arch){.has_places = true, .has_class = true, .place = place_after_class},
};

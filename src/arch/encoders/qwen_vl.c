// SPDX-License-Identifier: MIT
// The encoders of Qwen2-VL and Qwen2.5-VL: patches of two frames, rotated by rows and columns. Blocks of 2 x 2 patches
// become one row of the text. Version 2.5 has RMSNorm, gates, and windows of blocks in most layers.
#include "arch/media.h"

// clang-format off
#define ROWS_OF_BOTH \
    FRIT_MODEL_WEIGHT(media.patch, "patch_embd", N_EMBD, EMBD_IN, 0), \
    FRIT_ROW_NORM(attn_norm, "attn_norm"), \
    FRIT_WEIGHTS_QKV(0), \
    FRIT_ROW_O(0), \
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"), \
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD, 1, 0), \
    FRIT_MODEL_WEIGHT(media.merge_in, "merge_in", MERGED, MERGED, 0), \
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, MERGED, 0)

static const frit_weight_row rows_2[] = {
    ROWS_OF_BOTH,
    FRIT_WEIGHTS_UNGATED(0),
};

static const frit_weight_row rows_2_5[] = {
    ROWS_OF_BOTH,
    FRIT_WEIGHTS_GATED(0),
};
// clang-format on

static const char *const keys[] = {"embedding_length_input", "embedding_length_out", "spatial_merge_size",
                                   "attention.sliding_window"};

// Places one block of patches, which the processor has put together too.
static frit_patch_place *place_block(const frit_hparams *hp, frit_media_grid grid, int32_t y, int32_t x,
                                     int32_t segment, frit_patch_place *to)
{
    const int32_t merge = hp->media.merge, n = merge * merge, block = y * (grid.width / merge) + x;
    for (int32_t i = 0; i < n; i++)
        *to++ = (frit_patch_place){
            .patch = block * n + i, .turns = {y * merge + i / merge, x * merge + i % merge}, .segment = segment};
    return to;
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// Returns the blocks on a side of a window; the larger side of the grid, if no layer has windows.
static int32_t window_of(const frit_hparams *hp, frit_media_grid grid)
{
    for (int32_t i = 0; i < hp->n_layer; i++)
        if (hp->layers[i].window > 0) return hp->layers[i].window;
    return grid.height > grid.width ? grid.height : grid.width;
}

// Rows lie window by window, and in a window block by block.
static void place(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows, int32_t *out_rows)
{
    const int32_t merge = hp->media.merge, size = window_of(hp, grid);
    const int32_t height = grid.height / merge, width = grid.width / merge;
    frit_patch_place *to = rows;
    int32_t segment = 0;
    for (int32_t top = 0; top < height; top += size)
        for (int32_t left = 0; left < width; left += size, segment++)
            for (int32_t y = top; y < least(top + size, height); y++)
                for (int32_t x = left; x < least(left + size, width); x++) {
                    out_rows[y * width + x] = (int32_t)(to - rows);
                    to = place_block(hp, grid, y, x, segment, to);
                }
}

const frit_arch frit_arch_qwen2_vl_vision = {
    .name = "qwen2_vl_vision",
    .title = "the encoder of Qwen2-VL",
    .rows = rows_2,
    .n_rows = FRIT_COUNT(rows_2),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_QUICK,
    .layer = frit_media_layer,
    .end = frit_media_merge,
    .media = &(const frit_media_arch){.has_turns = true, .place = place},
};

const frit_arch frit_arch_qwen2_5_vl_vision = {
    .name = "qwen2_5_vl_vision",
    .title = "the encoder of Qwen2.5-VL",
    .rows = rows_2_5,
    .n_rows = FRIT_COUNT(rows_2_5),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_RMS,
    .act = FRIT_ACT_SILU,
    .layer = frit_media_layer,
    .end = frit_media_merge,
    .media = &(const frit_media_arch){.has_turns = true, .has_segments = true, .place = place},
};

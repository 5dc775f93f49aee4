// SPDX-License-Identifier: MIT
// arch/encoders/vit_rows.h: rows and keys that encoders with learned positions share (CLIP, SigLIP, InternViT,
// Qwen3-VL).
#pragma once
#include "arch/media.h"

// clang-format off
#define FRIT_VIT_ROWS \
    FRIT_MODEL_WEIGHT(media.patch, "patch_embd", N_EMBD, EMBD_IN, 0), \
    FRIT_ROW_NORM(attn_norm, "attn_norm"), \
    FRIT_WEIGHTS_QKV(0), \
    FRIT_ROW_O(0), \
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"), \
    FRIT_WEIGHTS_UNGATED(0)
#define FRIT_VIT_POSITIONS \
    FRIT_MODEL_WEIGHT(media.positions, "position_embd", PLACES, N_EMBD, FRIT_WEIGHT_TABLE)
// Positions with one of the class row.
#define FRIT_VIT_CLASS \
    FRIT_MODEL_WEIGHT(media.positions, "position_embd", PLACES_1, N_EMBD, FRIT_WEIGHT_TABLE), \
    FRIT_MODEL_WEIGHT(media.class_row, "class_embd", N_EMBD, 1, 0)

#define FRIT_VIT_KEYS \
    "embedding_length_input", "embedding_length_out", "spatial_merge_size", "position_side"
// clang-format on

// SPDX-License-Identifier: MIT
// format/hf/hf_vision.h: keys that families of encoders of pictures share. A family is a file of vision/, as a text
// model's family is one of families/, and reads vision_config instead of the whole configuration.
#pragma once
#include "format/hf/hf.h"

// clang-format off
#define FRIT_HF_VISION_KEYS \
    {NULL, "context_length", FRIT_HF_TOKENS, 1 << 20}, \
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED}, \
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED}, \
    {NULL, "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD}, \
    {NULL, "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED}, \
    {NULL, "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM}
// clang-format on

// Reads a number of vision_config, which must be there.
frit_status frit_hf_vision_number(const frit_hf *hf, const char *name, double *out);
// Writes the number of pixels of a patch of so many frames.
frit_status frit_hf_vision_pixels(const frit_hf *hf, double n_frames);
// Writes the base of rotations, which is 10,000 unless vision_config has it. FRIT_E_UNSUPPORTED for scaled rotations.
frit_status frit_hf_vision_rope(const frit_hf *hf);
// Writes the width of the text model's embeddings, which its class determines if the configuration does not.
frit_status frit_hf_vision_text_width(const frit_hf *hf);

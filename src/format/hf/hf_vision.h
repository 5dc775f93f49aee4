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
// Keys of encoders with LayerNorm.
#define FRIT_HF_VIT_KEYS \
    FRIT_HF_VISION_KEYS, \
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED}
// Tensors of CLIP and SigLIP; `tower` is the prefix of their names.
#define FRIT_HF_CLIP_TENSORS(tower) \
    {.name = tower ".embeddings.patch_embedding", .gguf = "patch_embd", .bias_if = FRIT_HF_MAYBE, \
     .rewrite = frit_hf_flatten}, \
    {.name = tower ".embeddings.position_embedding", .gguf = "position_embd"}, \
    {.name = tower ".encoder.layers.*.layer_norm1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.self_attn.out_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.layer_norm2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS}
// clang-format on

// Reads a number of vision_config, which must be there.
frit_status frit_hf_vision_number(const frit_hf *hf, const char *name, double *out);
// As frit_hf_vision_number; the number may also be a list of two equal ones, height and width.
frit_status frit_hf_vision_side(const frit_hf *hf, const char *name, double *out);
// FRIT_E_UNSUPPORTED unless the text is absent, null or equal to `value`; `where` names the object in errors.
frit_status frit_hf_vision_expect(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                                  const char *value);
// Writes the patches on a side of a tile, which image_size says, and the number of pixels of a patch.
frit_status frit_hf_vision_tile(const frit_hf *hf);
// Writes the patches on a side of a block from a ratio of sides that is one part of a whole, as 0.5.
frit_status frit_hf_vision_ratio(const frit_hf *hf, const json_t *object, const char *where, const char *name);
// Writes the number of pixels of a patch of so many frames.
frit_status frit_hf_vision_pixels(const frit_hf *hf, double n_frames);
// Writes the base of rotations, which is 10,000 unless vision_config has it. FRIT_E_UNSUPPORTED for scaled rotations.
frit_status frit_hf_vision_rope(const frit_hf *hf);
// Writes the width of the text model's embeddings, which its class determines if the configuration does not.
frit_status frit_hf_vision_text_width(const frit_hf *hf);

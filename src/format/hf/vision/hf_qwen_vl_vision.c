// SPDX-License-Identifier: MIT
// The encoders of Qwen2-VL and Qwen2.5-VL.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

static frit_status complete_both(const frit_hf *hf)
{
    double n_frames;
    FRIT_TRY(frit_hf_vision_number(hf, "temporal_patch_size", &n_frames));
    FRIT_TRY(frit_hf_vision_rope(hf));
    return frit_hf_vision_pixels(hf, n_frames);
}

static frit_status complete_2(const frit_hf *hf)
{
    double ratio = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "vision_config.", "mlp_ratio", FRIT_HF_FACTOR, &ratio));
    FRIT_TRY(frit_hf_add_number(hf, "feed_forward_length", FRIT_HF_WIDTH,
                                (double)(int64_t)(frit_hf_written(hf, "embedding_length") * ratio)));
    return complete_both(hf);
}

// Writes the size of windows, in blocks of patches, and 0 for the layers without windows.
static frit_status add_windows(const frit_hf *hf)
{
    double size, patch, merge;
    FRIT_TRY(frit_hf_vision_number(hf, "window_size", &size));
    FRIT_TRY(frit_hf_vision_number(hf, "patch_size", &patch));
    FRIT_TRY(frit_hf_vision_number(hf, "spatial_merge_size", &merge));
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    const uint32_t window = (uint32_t)(size / merge / patch);
    if (window < 1)
        return frit_fail_file(FRIT_E_FORMAT, "%s: vision_config.window_size is %.0f, expected at least %.0f", hf->path,
                              size, merge * patch);
    uint32_t *windows = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!windows) return frit_fail_memory(n * sizeof *windows, "the windows of layers");
    for (size_t i = 0; i < n; i++) windows[i] = window;
    const json_t *full = json_object_get(hf->config, "fullatt_block_indexes"), *index;
    size_t i;
    json_array_foreach(full, i, index)
    {
        const json_int_t layer = json_integer_value(index);
        if (!json_is_integer(index) || layer < 0 || (size_t)layer >= n)
            return frit_fail_file(FRIT_E_FORMAT,
                                  "%s: vision_config.fullatt_block_indexes[%zu] is not one of the %zu layers", hf->path,
                                  i, n);
        windows[layer] = 0;
    }
    return frit_hf_add_array(hf, "attention.sliding_window", FRIT_VALUE_U32, windows, n);
}

static frit_status complete_2_5(const frit_hf *hf)
{
    FRIT_TRY(add_windows(hf));
    return complete_both(hf);
}

// clang-format off
#define KEYS_OF_BOTH \
    FRIT_HF_VISION_KEYS, \
    {"out_hidden_size", "embedding_length_out", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"spatial_merge_size", "spatial_merge_size", FRIT_HF_WIDTH, FRIT_HF_NEEDED}

#define TENSORS_OF_BOTH \
    {.name = "visual.patch_embed.proj", .gguf = "patch_embd", .rewrite = frit_hf_flatten}, \
    {.name = "visual.blocks.*.norm1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_MAYBE}, \
    {.name = "visual.blocks.*.attn.qkv", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = "visual.blocks.*.attn.proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = "visual.blocks.*.norm2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_MAYBE}, \
    {.name = "visual.merger.ln_q", .gguf = "output_norm", .bias_if = FRIT_HF_MAYBE}, \
    {.name = "visual.merger.mlp.0", .gguf = "merge_in", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = "visual.merger.mlp.2", .gguf = "merge_out", .bias_if = FRIT_HF_ALWAYS}

static const frit_hf_key keys_2[] = {
    KEYS_OF_BOTH,
    {NULL, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-6},
};

static const frit_hf_tensor tensors_2[] = {
    TENSORS_OF_BOTH,
    {.name = "visual.blocks.*.mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.blocks.*.mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
};

static const frit_hf_key keys_2_5[] = {
    KEYS_OF_BOTH,
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {NULL, "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-6},
};

static const frit_hf_tensor tensors_2_5[] = {
    TENSORS_OF_BOTH,
    {.name = "visual.blocks.*.mlp.gate_proj", .gguf = "blk.*.ffn_gate", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.blocks.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.blocks.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
};

#define BOTH_ARE \
    .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names, \
    .ignored = "language_model.|layers.|embed_tokens.|norm.|lm_head."

const frit_hf_family frit_hf_qwen2_vl_vision = {
    .model_type = "qwen2_vl", .arch = "qwen2_vl_vision", .act = "quick_gelu", BOTH_ARE, .more = complete_2,
    .own = {keys_2, FRIT_COUNT(keys_2), tensors_2, FRIT_COUNT(tensors_2)}};
const frit_hf_family frit_hf_qwen2_5_vl_vision = {
    .model_type = "qwen2_5_vl", .arch = "qwen2_5_vl_vision", .act = "silu", BOTH_ARE, .more = complete_2_5,
    .own = {keys_2_5, FRIT_COUNT(keys_2_5), tensors_2_5, FRIT_COUNT(tensors_2_5)}};
// clang-format on

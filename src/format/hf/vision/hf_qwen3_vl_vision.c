// SPDX-License-Identifier: MIT
// The encoders of Qwen3-VL and Qwen3.5, with experts in the text and without.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

#include <math.h>

// Writes which layers give features for the text's first layers, and how many do.
static frit_status add_deepstack(const frit_hf *hf)
{
    const json_t *list = json_object_get(hf->config, "deepstack_visual_indexes"), *item;
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    json_int_t last = -1;
    size_t i;
    if (list && !json_is_null(list) && !json_is_array(list))
        return frit_fail_file(FRIT_E_FORMAT, "%s: vision_config.deepstack_visual_indexes is not a list", hf->path);
    uint32_t *is_deep = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!is_deep) return frit_fail_memory(n * sizeof *is_deep, "the layers of an encoder");
    memset(is_deep, 0, n * sizeof *is_deep);
    json_array_foreach(list, i, item)
    {
        const json_int_t layer = json_integer_value(item);
        if (!json_is_integer(item) || layer <= last || (size_t)layer >= n)
            return frit_fail_file(
                FRIT_E_FORMAT,
                "%s: vision_config.deepstack_visual_indexes[%zu] is not one of the %zu layers, or not "
                "above the one before",
                hf->path, i, n);
        is_deep[layer] = 1;
        last = layer;
    }
    FRIT_TRY(frit_hf_add_number(hf, "n_deepstack_layers", FRIT_HF_COUNT, (double)json_array_size(list)));
    return frit_hf_add_array(hf, "deepstack_layers", FRIT_VALUE_U32, is_deep, n);
}

static frit_status complete(const frit_hf *hf)
{
    double n_frames, n_places;
    FRIT_TRY(frit_hf_vision_number(hf, "temporal_patch_size", &n_frames));
    FRIT_TRY(frit_hf_vision_number(hf, "num_position_embeddings", &n_places));
    const double side = floor(sqrt(n_places));
    if (side * side != n_places)
        return frit_fail_file(FRIT_E_FORMAT, "%s: vision_config.num_position_embeddings is %.0f, expected a square",
                              hf->path, n_places);
    FRIT_TRY(frit_hf_add_number(hf, "position_side", FRIT_HF_WIDTH, side));
    FRIT_TRY(add_deepstack(hf));
    FRIT_TRY(frit_hf_vision_rope(hf));
    return frit_hf_vision_pixels(hf, n_frames);
}

// clang-format off
static const frit_hf_key keys[] = {
    FRIT_HF_VISION_KEYS,
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"out_hidden_size", "embedding_length_out", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"spatial_merge_size", "spatial_merge_size", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {NULL, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-6},
};

static const frit_hf_tensor tensors[] = {
    {.name = "visual.patch_embed.proj", .gguf = "patch_embd", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_flatten},
    {.name = "visual.pos_embed", .gguf = "position_embd"},
    {.name = "visual.blocks.*.norm1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.blocks.*.attn.qkv", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.blocks.*.attn.proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.blocks.*.norm2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.blocks.*.mlp.linear_fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.blocks.*.mlp.linear_fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.merger.norm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.merger.linear_fc1", .gguf = "merge_in", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.merger.linear_fc2", .gguf = "merge_out", .bias_if = FRIT_HF_ALWAYS},
    {.name = "visual.deepstack_merger_list.*.norm", .gguf = "blk.*.deep_norm", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "visual.deepstack_merger_list.*.linear_fc1", .gguf = "blk.*.deep_in", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "visual.deepstack_merger_list.*.linear_fc2", .gguf = "blk.*.deep_out", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
};

#define ALL_ARE \
    .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names, .arch = "qwen3_vl_vision", \
    .ignored = "language_model.|layers.|embed_tokens.|norm.|lm_head.|mtp.", .act = "gelu_pytorch_tanh", \
    .more = complete, .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)}

const frit_hf_family frit_hf_qwen3_vl_vision = {.model_type = "qwen3_vl", ALL_ARE};
const frit_hf_family frit_hf_qwen3_vl_moe_vision = {.model_type = "qwen3_vl_moe", ALL_ARE};
const frit_hf_family frit_hf_qwen3_5_vision = {.model_type = "qwen3_5", ALL_ARE};
const frit_hf_family frit_hf_qwen3_5_moe_vision = {.model_type = "qwen3_5_moe", ALL_ARE};
// clang-format on

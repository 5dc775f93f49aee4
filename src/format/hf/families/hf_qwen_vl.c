// SPDX-License-Identifier: MIT
// Qwen2-VL, Qwen2.5-VL and Qwen3-VL: the text side. Published folders of the first two have one flat configuration.
// The text side of Qwen3-VL adds features of pictures after as many first layers as its encoder gives features for.
#include "format/hf/hf_rows.h"

static frit_status complete_2(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "use_sliding_window", 0));
    return frit_hf_add_sections(hf);
}

static frit_status complete_3(const frit_hf *hf)
{
    const json_t *vision = json_object_get(hf->whole, "vision_config");
    const json_t *layers = json_object_get(vision, "deepstack_visual_indexes");
    const size_t n = !vision || json_is_null(layers) ? 0 : !layers ? 3 : json_array_size(layers);   // 3: of the class
    if (n > 0) FRIT_TRY(frit_hf_add_number(hf, "n_deepstack_layers", FRIT_HF_COUNT, (double)n));
    return frit_hf_add_sections(hf);
}

static frit_status complete_3_moe(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "decoder_sparse_step", 1));
    if (json_array_size(json_object_get(hf->config, "mlp_only_layers")) > 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: mlp_only_layers is not empty, which is not supported", hf->path);
    return complete_3(hf);
}

static bool is_flat(const json_t *config)
{
    return !json_object_get(config, "text_config");
}

// clang-format off
static const frit_hf_key keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
};

static const frit_hf_tensor qwen2_vl_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
};

static const frit_hf_tensor qwen3_vl_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
};

static const frit_hf_key qwen3_vl_moe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

static const frit_hf_tensor qwen3_vl_moe_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    {.name = "model.layers.*.mlp.gate", .gguf = "blk.*.ffn_gate_inp"},
    FRIT_HF_ROWS_TRANSPOSED_EXPERTS("model.layers.*.mlp"),
};

#define ALL_ARE \
    .ignored = "visual.|model.visual.", .act = "silu|swish", .is_visual = true, .shared = &frit_hf_decoder
#define VL_2_IS \
    ALL_ARE, .arch = "qwen2vl", .more = complete_2, \
    .own = {keys, FRIT_COUNT(keys), qwen2_vl_tensors, FRIT_COUNT(qwen2_vl_tensors)}

const frit_hf_family frit_hf_qwen2_vl = {
    .model_type = "qwen2_vl", .class_name = "Qwen2VLForConditionalGeneration", .fits = is_flat, VL_2_IS};
const frit_hf_family frit_hf_qwen2_vl_text = {
    .model_type = "qwen2_vl_text", .class_name = "Qwen2VLForConditionalGeneration", VL_2_IS};
const frit_hf_family frit_hf_qwen2_5_vl = {
    .model_type = "qwen2_5_vl", .class_name = "Qwen2_5_VLForConditionalGeneration", .fits = is_flat, VL_2_IS};
const frit_hf_family frit_hf_qwen2_5_vl_text = {
    .model_type = "qwen2_5_vl_text", .class_name = "Qwen2_5_VLForConditionalGeneration", VL_2_IS};
const frit_hf_family frit_hf_qwen3_vl_text = {
    .model_type = "qwen3_vl_text", .class_name = "Qwen3VLForConditionalGeneration", ALL_ARE, .arch = "qwen3vl",
    .more = complete_3,
    .own = {keys, FRIT_COUNT(keys), qwen3_vl_tensors, FRIT_COUNT(qwen3_vl_tensors)}};
const frit_hf_family frit_hf_qwen3_vl_moe_text = {
    .model_type = "qwen3_vl_moe_text", .class_name = "Qwen3VLMoeForConditionalGeneration", ALL_ARE,
    .arch = "qwen3vlmoe", .more = complete_3_moe,
    .own = {qwen3_vl_moe_keys, FRIT_COUNT(qwen3_vl_moe_keys), qwen3_vl_moe_tensors,
            FRIT_COUNT(qwen3_vl_moe_tensors)}};
// clang-format on

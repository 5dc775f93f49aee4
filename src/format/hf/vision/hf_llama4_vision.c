// SPDX-License-Identifier: MIT
// The encoder of Llama 4.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

static frit_status complete(const frit_hf *hf)
{
    double width;
    FRIT_TRY(frit_hf_vision_number(hf, "projector_output_dim", &width));
    FRIT_TRY(frit_hf_add_number(hf, "projector_length", FRIT_HF_WIDTH, width));
    FRIT_TRY(frit_hf_vision_expect(hf, hf->config, "vision_config.", "vision_feature_select_strategy", "default"));
    FRIT_TRY(frit_hf_vision_ratio(hf, hf->config, "vision_config.", "pixel_shuffle_ratio"));
    FRIT_TRY(frit_hf_vision_rope(hf));
    FRIT_TRY(frit_hf_vision_tile(hf));
    return frit_hf_vision_text_width(hf);
}

// clang-format off
static const frit_hf_key keys[] = {
    FRIT_HF_VISION_KEYS,
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {NULL, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-5},   // the class does not read norm_eps
};

#define AT "vision_model.model.layers.*"
static const frit_hf_tensor tensors[] = {
    {.name = "vision_model.patch_embedding.linear", .gguf = "patch_embd"},
    {.name = "vision_model.positional_embedding_vlm", .gguf = "position_embd.weight", .whole = true},
    {.name = "vision_model.class_embedding", .gguf = "class_embd.weight", .whole = true},
    {.name = "vision_model.layernorm_pre", .gguf = "input_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".post_attention_layernorm", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "vision_model.layernorm_post", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "vision_model.vision_adapter.mlp.fc1", .gguf = "merge_in"},
    {.name = "vision_model.vision_adapter.mlp.fc2", .gguf = "merge_mid"},
    {.name = "multi_modal_projector.linear_1", .gguf = "merge_out"},
};

const frit_hf_family frit_hf_llama4_vision = {
    .model_type = "llama4", .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names,
    .arch = "llama4_vision", .act = "gelu", .more = complete,
    .ignored = "language_model.|lm_head.|layers.|embed_tokens.|norm.",
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)}};
// clang-format on

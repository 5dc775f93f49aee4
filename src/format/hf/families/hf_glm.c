// SPDX-License-Identifier: MIT
// GLM-4 and GLM-4.5, also with vision, Solar Open and Sarvam 30B. RoPE on part of each head, on neighbouring elements
// in the dense models.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key glm_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
};

static const frit_hf_tensor glm_tensors[] = {
    FRIT_HF_ROWS_BIASED_QKV("model.layers.*.self_attn"),
    {.name = "model.layers.*.mlp.gate_up_proj", .gguf = "blk.*.ffn_up"},
    {.gguf = "blk.*.ffn_gate", .none = true},
};

#define GLM4_REST \
    {.name = "model.layers.*.mlp.gate_up_proj", .gguf = "blk.*.ffn_up"}, \
    {.gguf = "blk.*.ffn_gate", .none = true}, \
    {.name = "model.layers.*.post_self_attn_layernorm", .gguf = "blk.*.post_attention_norm"}, \
    {.name = "model.layers.*.post_mlp_layernorm", .gguf = "blk.*.post_ffw_norm"}

static const frit_hf_tensor glm4_tensors[] = {FRIT_HF_ROWS_BIASED_QKV("model.layers.*.self_attn"), GLM4_REST};

static const frit_hf_tensor glm4v_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    GLM4_REST,
};

// Solar Open has no dense layers and no width for them.
#define MOE_KEYS \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"n_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_NEEDED}, \
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"n_group", "expert_group_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}

static const frit_hf_key glm4_moe_keys[] = {
    MOE_KEYS,
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
};

static const frit_hf_key solar_open_keys[] = {
    MOE_KEYS,
    {"moe_intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {NULL, "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_FALSE},
};

static const frit_hf_tensor glm4_moe_tensors[] = {
    FRIT_HF_ROWS_BIASED_QKV("model.layers.*.self_attn"),
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.gguf = "blk.*.ffn_norm", .none = true},
    FRIT_HF_ROWS_DEEPSEEK_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.self_attn.q_norm", .gguf = "blk.*.attn_q_norm", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.k_norm", .gguf = "blk.*.attn_k_norm", .may_be_absent = true},
    FRIT_HF_ROWS_NEXT("model.layers.*"),
};
// clang-format on

const frit_hf_family frit_hf_glm = {
    .model_type = "glm",
    .class_name = "GlmForCausalLM",
    .arch = "chatglm",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {glm_keys, FRIT_COUNT(glm_keys), glm_tensors, FRIT_COUNT(glm_tensors)},
};

const frit_hf_family frit_hf_glm4 = {
    .model_type = "glm4",
    .class_name = "Glm4ForCausalLM",
    .arch = "glm4",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {glm_keys, FRIT_COUNT(glm_keys), glm4_tensors, FRIT_COUNT(glm4_tensors)},
};

const frit_hf_family frit_hf_glm4_moe = {
    .model_type = "glm4_moe",
    .class_name = "Glm4MoeForCausalLM",
    .arch = "glm4moe",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {glm4_moe_keys, FRIT_COUNT(glm4_moe_keys), glm4_moe_tensors, FRIT_COUNT(glm4_moe_tensors)},
};

const frit_hf_family frit_hf_solar_open = {
    .model_type = "solar_open",
    .class_name = "SolarOpenForCausalLM",
    .arch = "glm4moe",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {solar_open_keys, FRIT_COUNT(solar_open_keys), glm4_moe_tensors, FRIT_COUNT(glm4_moe_tensors)},
};

const frit_hf_family frit_hf_sarvam_moe = {
    .model_type = "sarvam_moe",
    .class_name = "SarvamMoEForCausalLM",
    .arch = "glm4moe",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {glm4_moe_keys, FRIT_COUNT(glm4_moe_keys), glm4_moe_tensors, FRIT_COUNT(glm4_moe_tensors)},
};

const frit_hf_family frit_hf_glm4v_text = {
    .model_type = "glm4v_text",
    .class_name = "Glm4vForConditionalGeneration",
    .arch = "glm4",
    .act = "silu|swish",
    .ignored = "visual.|model.visual.",
    .is_visual = true,
    .shared = &frit_hf_decoder,
    .own = {glm_keys, FRIT_COUNT(glm_keys), glm4v_tensors, FRIT_COUNT(glm4v_tensors)},
};

const frit_hf_family frit_hf_glm4v_moe_text = {
    .model_type = "glm4v_moe_text",
    .class_name = "Glm4vMoeForConditionalGeneration",
    .arch = "glm4moe",
    .act = "silu|swish",
    .ignored = "visual.|model.visual.",
    .is_visual = true,
    .shared = &frit_hf_decoder,
    .own = {glm4_moe_keys, FRIT_COUNT(glm4_moe_keys), glm4_moe_tensors, FRIT_COUNT(glm4_moe_tensors)},
};

// SPDX-License-Identifier: MIT
// Phi-1 to 2, Phi-3, Phi-3.5 MoE.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key phi_keys[] = {
    FRIT_HF_KEYS_NO_RMS_NORM,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor phi_tensors[] = {
    {.name = "model.layers.*.input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.dense", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.gguf = "blk.*.ffn_gate", .none = true},
    {.name = "model.final_layernorm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "lm_head", .gguf = "output", .bias_if = FRIT_HF_ALWAYS, .may_be_tied = true},
};

static const frit_hf_key phi3_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor phi3_tensors[] = {
    {.name = "model.layers.*.self_attn.qkv_proj", .gguf = "blk.*.attn_qkv"},
    {.gguf = "blk.*.attn_q", .none = true},
    {.gguf = "blk.*.attn_k", .none = true},
    {.gguf = "blk.*.attn_v", .none = true},
    {.name = "model.layers.*.mlp.gate_up_proj", .gguf = "blk.*.ffn_up"},
    {.gguf = "blk.*.ffn_gate", .none = true},
};

static const frit_hf_key phimoe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"router_jitter_noise", "frit_router_jitter", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const frit_hf_tensor phimoe_tensors[] = {
    {.name = "model.layers.*.input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.norm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "lm_head", .gguf = "output", .bias_if = "lm_head_bias", .may_be_tied = true},
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    {.name = "model.layers.*.block_sparse_moe.experts.@.w1", .gguf = "blk.*.ffn_gate_exps", .may_be_absent = true},
    {.name = "model.layers.*.block_sparse_moe.experts.@.w3", .gguf = "blk.*.ffn_up_exps", .may_be_absent = true},
    {.name = "model.layers.*.block_sparse_moe.experts.@.w2", .gguf = "blk.*.ffn_down_exps", .may_be_absent = true},
    {.name = "model.layers.*.block_sparse_moe.gate", .gguf = "blk.*.ffn_gate_inp"},
};
// clang-format on

const frit_hf_family frit_hf_phi = {
    .model_type = "phi",
    .class_name = "PhiForCausalLM",
    .arch = "phi2",
    .act = "gelu_new|gelu_pytorch_tanh|gelu!",
    .shared = &frit_hf_decoder,
    .own = {phi_keys, FRIT_COUNT(phi_keys), phi_tensors, FRIT_COUNT(phi_tensors)},
};

const frit_hf_family frit_hf_phi3 = {
    .model_type = "phi3",
    .class_name = "Phi3ForCausalLM",
    .arch = "phi3",
    .act = "silu|swish",
    .has_windows = true,
    .shared = &frit_hf_decoder,
    .own = {phi3_keys, FRIT_COUNT(phi3_keys), phi3_tensors, FRIT_COUNT(phi3_tensors)},
};

const frit_hf_family frit_hf_phimoe = {
    .model_type = "phimoe",
    .class_name = "PhimoeForCausalLM",
    .arch = "phimoe",
    .act = "silu|swish",
    .has_windows = true,
    .norm = "layer",
    .shared = &frit_hf_decoder,
    .own = {phimoe_keys, FRIT_COUNT(phimoe_keys), phimoe_tensors, FRIT_COUNT(phimoe_tensors)},
};

// SPDX-License-Identifier: MIT
// Hunyuan, dense and MoE.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key hunyuan_v1_dense_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor hunyuan_v1_dense_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.self_attn.query_layernorm", .gguf = "blk.*.attn_q_norm"},
    {.name = "model.layers.*.self_attn.key_layernorm", .gguf = "blk.*.attn_k_norm"},
};

static const frit_hf_key hunyuan_v1_moe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_topk", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"intermediate_size", "expert_shared_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

static const frit_hf_tensor hunyuan_v1_moe_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.self_attn.query_layernorm", .gguf = "blk.*.attn_q_norm"},
    {.name = "model.layers.*.self_attn.key_layernorm", .gguf = "blk.*.attn_k_norm"},
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    FRIT_HF_ROWS_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.mlp.shared_mlp.gate_proj", .gguf = "blk.*.ffn_gate_shexp", .may_be_absent = true},
    {.name = "model.layers.*.mlp.shared_mlp.up_proj", .gguf = "blk.*.ffn_up_shexp", .may_be_absent = true},
    {.name = "model.layers.*.mlp.shared_mlp.down_proj", .gguf = "blk.*.ffn_down_shexp", .may_be_absent = true},
    {.name = "model.layers.*.mlp.gate.wg", .gguf = "blk.*.ffn_gate_inp"},
};
// clang-format on

const frit_hf_family frit_hf_hunyuan_v1_dense = {
    .model_type = "hunyuan_v1_dense",
    .class_name = "HunYuanDenseV1ForCausalLM",
    .arch = "hunyuan-dense",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {hunyuan_v1_dense_keys, FRIT_COUNT(hunyuan_v1_dense_keys), hunyuan_v1_dense_tensors,
            FRIT_COUNT(hunyuan_v1_dense_tensors)},
};

const frit_hf_family frit_hf_hunyuan_v1_moe = {
    .model_type = "hunyuan_v1_moe",
    .class_name = "HunYuanMoEV1ForCausalLM",
    .arch = "hunyuan-moe",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {hunyuan_v1_moe_keys, FRIT_COUNT(hunyuan_v1_moe_keys), hunyuan_v1_moe_tensors,
            FRIT_COUNT(hunyuan_v1_moe_tensors)},
};

// ---------------------------------------------------------------------------------------- Hunyuan 3

// clang-format off
static const frit_hf_key hy_v3_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"router_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {NULL, "expert_weights_norm", FRIT_HF_FLAG, 1},
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, 1},
};

#define AT "model.layers.*.mlp"
static const frit_hf_tensor hy_v3_tensors[] = {
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
    FRIT_HF_ROWS_DENSE_LAYERS(AT),
    FRIT_HF_ROWS_EXPERTS(AT),
    FRIT_HF_ROWS_SHARED_EXPERT(AT ".shared_mlp"),
    {.name = AT ".router.gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = AT ".expert_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_hy_v3 = {
    .model_type = "hy_v3",
    .class_name = "HYV3ForCausalLM",
    .arch = "hy_v3",
    .act = "silu|swish",
    .more = frit_hf_add_dense_layers,
    .shared = &frit_hf_decoder,
    .own = {hy_v3_keys, FRIT_COUNT(hy_v3_keys), hy_v3_tensors, FRIT_COUNT(hy_v3_tensors)},
};

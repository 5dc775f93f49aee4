// SPDX-License-Identifier: MIT
// Qwen 2 MoE and Qwen 3 MoE. Every layer has experts; variants with dense layers are refused.
#include "format/hf/hf_rows.h"

// Refuses models with layers without experts.
static frit_status refuse_dense_layers(const frit_hf *hf)
{
    double step = 1;
    bool slides = false;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "decoder_sparse_step", FRIT_HF_COUNT, &step));
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "use_sliding_window", &slides));
    const json_t *dense = json_object_get(hf->config, "mlp_only_layers");
    if (step != 1 || json_array_size(dense) > 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: some layers have no experts (decoder_sparse_step, mlp_only_layers), "
                              "which is not supported",
                              hf->path);
    if (slides)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: use_sliding_window is set, which is not supported", hf->path);
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key qwen2_moe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_FALSE},
};

static const frit_hf_tensor qwen2_moe_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "qkv_bias"},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = "qkv_bias"},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = "qkv_bias"},
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    FRIT_HF_ROWS_EXPERTS("model.layers.*.mlp"),
    FRIT_HF_ROWS_SHARED_EXPERT("model.layers.*.mlp.shared_expert"),
    {.name = "model.layers.*.mlp.gate", .gguf = "blk.*.ffn_gate_inp"},
    {.name = "model.layers.*.mlp.shared_expert_gate", .gguf = "blk.*.ffn_gate_inp_shexp"},
};

static const frit_hf_key qwen3_moe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_FALSE},
};

static const frit_hf_tensor qwen3_moe_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    FRIT_HF_ROWS_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.mlp.gate", .gguf = "blk.*.ffn_gate_inp"},
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
};
// clang-format on

const frit_hf_family frit_hf_qwen2_moe = {
    .model_type = "qwen2_moe",
    .class_name = "Qwen2MoeForCausalLM",
    .arch = "qwen2moe",
    .act = "silu|swish",
    .more = refuse_dense_layers,
    .shared = &frit_hf_decoder,
    .own = {qwen2_moe_keys, FRIT_COUNT(qwen2_moe_keys), qwen2_moe_tensors, FRIT_COUNT(qwen2_moe_tensors)},
};

const frit_hf_family frit_hf_qwen3_moe = {
    .model_type = "qwen3_moe",
    .class_name = "Qwen3MoeForCausalLM",
    .arch = "qwen3moe",
    .act = "silu|swish",
    .more = refuse_dense_layers,
    .shared = &frit_hf_decoder,
    .own = {qwen3_moe_keys, FRIT_COUNT(qwen3_moe_keys), qwen3_moe_tensors, FRIT_COUNT(qwen3_moe_tensors)},
};

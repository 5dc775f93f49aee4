// SPDX-License-Identifier: MIT
// DeepSeek-V2 and V3. Latent attention, expanded by kv_b to ordinary heads; RoPE on part of each head, on neighbouring
// elements unless the configuration says otherwise.
#include "format/hf/hf_rows.h"

// A key head has an unrotated and a rotated part; the number of key heads is the number of query heads.
static frit_status add_heads(const frit_hf *hf)
{
    double still = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "qk_nope_head_dim", FRIT_HF_WIDTH, &still));
    FRIT_TRY(frit_hf_set_number(hf, "attention.key_length", FRIT_HF_WIDTH,
                                still + frit_hf_written(hf, "rope.dimension_count")));
    return frit_hf_set_number(hf, "attention.head_count_kv", FRIT_HF_HEADS,
                              frit_hf_written(hf, "attention.head_count"));
}

static frit_status complete_v2(const frit_hf *hf)
{
    const char *method = "greedy";
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", "topk_method", &method));
    if (strcmp(method, "greedy") != 0 && frit_hf_written(hf, "expert_group_count") > 1)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: topk_method is '%.40s', only greedy is supported", hf->path,
                              method);
    FRIT_TRY(frit_hf_set_number(hf, "expert_group_count", FRIT_HF_COUNT, 1));
    FRIT_TRY(frit_hf_add_number(hf, "expert_gating_func", FRIT_HF_COUNT, 1));   // softmax
    return add_heads(hf);
}

static frit_status complete_v3(const frit_hf *hf)
{
    bool neighbours = true;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "rope_interleave", &neighbours));
    if (!neighbours) FRIT_TRY(frit_meta_add_text(&hf->ckpt->meta, "frit.rope.style", "halves"));
    FRIT_TRY(frit_hf_add_number(hf, "expert_gating_func", FRIT_HF_COUNT, 2));   // sigmoid
    return add_heads(hf);
}

// clang-format off
static const frit_hf_key deepseek_v2_keys[] = {
    {"kv_lora_rank", "attention.kv_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"q_lora_rank", "attention.q_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NO_KEY},
    {"qk_rope_head_dim", "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"v_head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NO_KEY},
    {"n_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_FALSE},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_FALSE},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"n_group", "expert_group_count", FRIT_HF_COUNT, 1},
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, 1},
};

static const frit_hf_tensor deepseek_tensors[] = {
    {.gguf = "blk.*.attn_k", .none = true},
    {.gguf = "blk.*.attn_v", .none = true},
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.q_a_proj", .gguf = "blk.*.attn_q_a", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.q_a_layernorm", .gguf = "blk.*.attn_q_a_norm", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.q_b_proj", .gguf = "blk.*.attn_q_b", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.kv_a_proj_with_mqa", .gguf = "blk.*.attn_kv_a_mqa"},
    {.name = "model.layers.*.self_attn.kv_a_layernorm", .gguf = "blk.*.attn_kv_a_norm"},
    {.name = "model.layers.*.self_attn.kv_b_proj", .gguf = "blk.*.attn_kv_b"},
    FRIT_HF_ROWS_DEEPSEEK_EXPERTS("model.layers.*.mlp"),
    FRIT_HF_ROWS_NEXT("model.layers.*"),
};

static const frit_hf_key deepseek_v3_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"kv_lora_rank", "attention.kv_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"q_lora_rank", "attention.q_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NO_KEY},
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"n_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_NEEDED},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"n_group", "expert_group_count", FRIT_HF_COUNT, 1},
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, 1},
    {"qk_rope_head_dim", "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"v_head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};
// clang-format on

const frit_hf_family frit_hf_deepseek_v2 = {
    .model_type = "deepseek_v2",
    .class_name = "DeepseekV2ForCausalLM",
    .arch = "deepseek2",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_v2,
    .shared = &frit_hf_decoder,
    .own = {deepseek_v2_keys, FRIT_COUNT(deepseek_v2_keys), deepseek_tensors, FRIT_COUNT(deepseek_tensors)},
};

const frit_hf_family frit_hf_deepseek_v3 = {
    .model_type = "deepseek_v3",
    .class_name = "DeepseekV3ForCausalLM",
    .arch = "deepseek2",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_v3,
    .shared = &frit_hf_decoder,
    .own = {deepseek_v3_keys, FRIT_COUNT(deepseek_v3_keys), deepseek_tensors, FRIT_COUNT(deepseek_tensors)},
};

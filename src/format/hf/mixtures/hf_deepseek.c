// SPDX-License-Identifier: MIT
// DeepSeek-V2, V3 and V3.2, GLM-4.7 Flash, GLM-5, Mistral Small 4, Sarvam. Latent attention, expanded by kv_b to
// ordinary heads; RoPE on part of each head, on neighbouring elements unless the configuration says otherwise.
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
    bool is_interleaved = true;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "rope_interleave", &is_interleaved));
    if (!is_interleaved) FRIT_TRY(frit_meta_add_text(&hf->ckpt->meta, "frit.rope.style", "neox"));
    FRIT_TRY(frit_hf_expect_text(hf, "scoring_func", "sigmoid"));
    FRIT_TRY(frit_hf_add_number(hf, "expert_gating_func", FRIT_HF_COUNT, 2));   // sigmoid
    FRIT_TRY(frit_hf_add_dense_layers(hf));
    return add_heads(hf);
}

static frit_status complete_mistral4(const frit_hf *hf)
{
    bool is_interleaved = true;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "rope_interleave", &is_interleaved));
    if (!is_interleaved) FRIT_TRY(frit_meta_add_text(&hf->ckpt->meta, "frit.rope.style", "neox"));
    FRIT_TRY(frit_hf_add_number(hf, "expert_gating_func", FRIT_HF_COUNT, 1));   // softmax
    FRIT_TRY(frit_hf_add_temperature(hf));
    return add_heads(hf);
}

// Layers with an indexer: by name, by a pattern of F and S, or by a schedule.
static frit_status has_own_indexer(const frit_hf *hf, size_t i, uint32_t *out)
{
    const json_t *types = json_object_get(hf->config, "indexer_types");
    const json_t *pattern = json_object_get(hf->config, "index_topk_pattern");
    double period = 1, offset = 2;
    const char *type = json_string_value(json_array_get(types, i));
    if (json_is_array(types)) {
        *out = type && strcmp(type, "full") == 0;
        if (*out || (type && strcmp(type, "shared") == 0)) return FRIT_OK;
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: indexer_types[%zu] is '%.40s', expected full or shared",
                              hf->path, i, type ? type : "not text");
    }
    if (json_is_string(pattern) && i < json_string_length(pattern)) {
        *out = json_string_value(pattern)[i] == 'F';
        return FRIT_OK;
    }
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "index_topk_freq", FRIT_HF_LAYERS, &period));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "index_skip_topk_offset", FRIT_HF_COUNT, &offset));
    *out = i + 1 <= (size_t)offset || (i + 1 - (size_t)offset) % (size_t)period == 0;
    return FRIT_OK;
}

static frit_status complete_glm_dsa(const frit_hf *hf)
{
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    uint32_t *own = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!own) return frit_fail_memory(n * sizeof *own, "the indexers of layers");
    for (size_t i = 0; i < n; i++) FRIT_TRY(has_own_indexer(hf, i, &own[i]));
    FRIT_TRY(frit_hf_set_list(hf, "attention.indexer.types", own));
    return complete_v3(hf);
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

#define MLA_TENSORS \
    {.gguf = "blk.*.attn_k", .none = true}, \
    {.gguf = "blk.*.attn_v", .none = true}, \
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.q_a_proj", .gguf = "blk.*.attn_q_a", .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.q_a_layernorm", .gguf = "blk.*.attn_q_a_norm", .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.q_b_proj", .gguf = "blk.*.attn_q_b", .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.kv_a_proj_with_mqa", .gguf = "blk.*.attn_kv_a_mqa"}, \
    {.name = "model.layers.*.self_attn.kv_a_layernorm", .gguf = "blk.*.attn_kv_a_norm"}, \
    {.name = "model.layers.*.self_attn.kv_b_proj", .gguf = "blk.*.attn_kv_b"}

static const frit_hf_tensor deepseek_tensors[] = {
    MLA_TENSORS,
    FRIT_HF_ROWS_DEEPSEEK_EXPERTS("model.layers.*.mlp"),
    FRIT_HF_ROWS_NEXT("model.layers.*"),
};

#define AT_INDEXER "model.layers.*.self_attn.indexer"
static const frit_hf_tensor indexed_tensors[] = {
    MLA_TENSORS,
    {.name = AT_INDEXER ".wq_b", .gguf = "blk.*.indexer.attn_q_b", .may_be_absent = true},
    {.name = AT_INDEXER ".wk", .gguf = "blk.*.indexer.attn_k", .may_be_absent = true},
    {.name = AT_INDEXER ".k_norm", .gguf = "blk.*.indexer.k_norm", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.name = AT_INDEXER ".weights_proj", .gguf = "blk.*.indexer.proj", .may_be_absent = true},
    FRIT_HF_ROWS_DEEPSEEK_EXPERTS("model.layers.*.mlp"),
    FRIT_HF_ROWS_NEXT("model.layers.*"),
};

static const frit_hf_tensor mistral4_tensors[] = {
    MLA_TENSORS,
    FRIT_HF_ROWS_DENSE_LAYERS("model.layers.*.mlp"),
    FRIT_HF_ROWS_SHARED_EXPERT("model.layers.*.mlp.shared_experts"),
    {.name = "model.layers.*.mlp.gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    FRIT_HF_ROWS_STACKED_EXPERTS("model.layers.*.mlp"),
};

#define V3_KEYS \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"kv_lora_rank", "attention.kv_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"q_lora_rank", "attention.q_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NO_KEY}, \
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"n_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_NEEDED}, \
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"n_group", "expert_group_count", FRIT_HF_COUNT, 1}, \
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, 1}, \
    {"qk_rope_head_dim", "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"v_head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}

static const frit_hf_key deepseek_v3_keys[] = {V3_KEYS};

static const frit_hf_key indexed_keys[] = {
    V3_KEYS,
    {"index_n_heads", "attention.indexer.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"index_head_dim", "attention.indexer.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"index_topk", "attention.indexer.top_k", FRIT_HF_COUNT, FRIT_HF_NEEDED},
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

const frit_hf_family frit_hf_deepseek_v32 = {
    .model_type = "deepseek_v32",
    .class_name = "DeepseekV32ForCausalLM",
    .arch = "deepseek32",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_v3,
    .shared = &frit_hf_decoder,
    .own = {indexed_keys, FRIT_COUNT(indexed_keys), indexed_tensors, FRIT_COUNT(indexed_tensors)},
};

const frit_hf_family frit_hf_glm_moe_dsa = {
    .model_type = "glm_moe_dsa",
    .class_name = "GlmMoeDsaForCausalLM",
    .arch = "glm-dsa",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_glm_dsa,
    .shared = &frit_hf_decoder,
    .own = {indexed_keys, FRIT_COUNT(indexed_keys), indexed_tensors, FRIT_COUNT(indexed_tensors)},
};

const frit_hf_family frit_hf_glm4_moe_lite = {
    .model_type = "glm4_moe_lite",
    .class_name = "Glm4MoeLiteForCausalLM",
    .arch = "deepseek2",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_v3,
    .shared = &frit_hf_decoder,
    .own = {deepseek_v3_keys, FRIT_COUNT(deepseek_v3_keys), deepseek_tensors, FRIT_COUNT(deepseek_tensors)},
};

const frit_hf_family frit_hf_sarvam_mla = {
    .model_type = "sarvam_mla",
    .class_name = "SarvamMLAForCausalLM",
    .arch = "deepseek2",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_v3,
    .shared = &frit_hf_decoder,
    .own = {deepseek_v3_keys, FRIT_COUNT(deepseek_v3_keys), deepseek_tensors, FRIT_COUNT(deepseek_tensors)},
};

const frit_hf_family frit_hf_mistral4 = {
    .model_type = "mistral4",
    .class_name = "Mistral4ForCausalLM",
    .arch = "mistral4",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_mistral4,
    .shared = &frit_hf_decoder,
    .own = {deepseek_v3_keys, FRIT_COUNT(deepseek_v3_keys), mistral4_tensors, FRIT_COUNT(mistral4_tensors)},
};

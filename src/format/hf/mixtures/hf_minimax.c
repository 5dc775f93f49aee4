// SPDX-License-Identifier: MIT
// MiniMax-Text-01: layers of lightning attention and of softmax attention; MiniMax-M2 and M3.
#include "format/hf/hf_rows.h"

enum { MAX_LAYERS = 1024 };

static bool every_second(const frit_hf *hf, double period, size_t i)
{
    (void)hf, (void)period;
    return i % 2 == 1;
}

// The factor of the residual must be equal in all layers, and the factors of the branches must be 1.
static frit_status complete(const frit_hf *hf)
{
    bool recurrent[MAX_LAYERS];
    uint32_t list[MAX_LAYERS];
    const json_t *factor = json_object_get(hf->config, "full_attn_alpha_factor");
    const double alpha = factor ? json_number_value(factor) : 1;
    FRIT_TRY(frit_hf_expect(hf, "linear_attn_alpha_factor", alpha));
    FRIT_TRY(frit_hf_expect(hf, "mlp_alpha_factor", alpha));
    FRIT_TRY(frit_hf_expect(hf, "full_attn_beta_factor", 1));
    FRIT_TRY(frit_hf_expect(hf, "linear_attn_beta_factor", 1));
    FRIT_TRY(frit_hf_expect(hf, "mlp_beta_factor", 1));
    FRIT_TRY(frit_hf_recurrent_types(hf, every_second, recurrent));
    const size_t n_layer = (size_t)frit_hf_written(hf, "block_count");
    for (size_t i = 0; i < n_layer; i++) list[i] = recurrent[i];
    return frit_hf_set_list(hf, "attention.recurrent_layers", list);
}

// clang-format off
static const frit_hf_key minimax_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"full_attn_alpha_factor", "residual_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const frit_hf_tensor minimax_tensors[] = {
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.self_attn.qkv_proj", .gguf = "blk.*.attn_qkv", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.output_gate", .gguf = "blk.*.attn_gate", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.norm", .gguf = "blk.*.attn_norm_2", .may_be_absent = true},
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    {.name = "model.layers.*.block_sparse_moe.gate", .gguf = "blk.*.ffn_gate_inp"},
    {.name = "model.layers.*.block_sparse_moe.experts.@.w1", .gguf = "blk.*.ffn_gate_exps"},
    {.name = "model.layers.*.block_sparse_moe.experts.@.w3", .gguf = "blk.*.ffn_up_exps"},
    {.name = "model.layers.*.block_sparse_moe.experts.@.w2", .gguf = "blk.*.ffn_down_exps"},
    {.name = "model.layers.*.self_attn.out_proj", .gguf = "blk.*.attn_output", .may_be_absent = true},
};
// clang-format on

const frit_hf_family frit_hf_minimax = {
    .model_type = "minimax",
    .class_name = "MiniMaxForCausalLM",
    .arch = "minimax-01",
    .act = "silu|swish",
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {minimax_keys, FRIT_COUNT(minimax_keys), minimax_tensors, FRIT_COUNT(minimax_tensors)},
};

// ---------------------------------------------------------------------------------------- MiniMax-M2

// Files have rotary_dim instead of a factor.
static frit_status complete_m2(const frit_hf *hf)
{
    const double dim = frit_hf_written(hf, "attention.key_length");
    double rotated = dim;
    FRIT_TRY(frit_hf_expect_text(hf, "scoring_func", "sigmoid"));
    FRIT_TRY(frit_hf_expect_text(hf, "qk_norm_type", "per_layer"));
    FRIT_TRY(frit_hf_expect(hf, "use_qk_norm", 1));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "rotary_dim", FRIT_HF_WIDTH, &rotated));
    if (frit_hf_written(hf, "rope.dimension_count") != dim) return FRIT_OK;
    return frit_hf_set_number(hf, "rope.dimension_count", FRIT_HF_WIDTH, rotated);
}

// clang-format off
static const frit_hf_key minimax_m2_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

static const frit_hf_tensor minimax_m2_tensors[] = {
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
    FRIT_HF_ROWS_NUMBERED_EXPERTS("model.layers.*.block_sparse_moe"),
    {.name = "model.layers.*.block_sparse_moe.gate", .gguf = "blk.*.ffn_gate_inp"},
    {.name = "model.layers.*.block_sparse_moe.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_minimax_m2 = {
    .model_type = "minimax_m2",
    .class_name = "MiniMaxM2ForCausalLM",
    .arch = "minimax-m2",
    .act = "silu|swish",
    .more = complete_m2,
    .shared = &frit_hf_decoder,
    .own = {minimax_m2_keys, FRIT_COUNT(minimax_m2_keys), minimax_m2_tensors, FRIT_COUNT(minimax_m2_tensors)},
};

// ---------------------------------------------------------------------------------------- MiniMax-M3

// Files have the indexer's keys in sparse_attention_config, and transformers has others outside of it.
static frit_status add_index(const frit_hf *hf)
{
    static const struct {
        const char *name, *old, *key;
        double otherwise;
    } keys[] = {
        {"index_n_heads", "sparse_num_index_heads", "attention.indexer.head_count", 4},
        {"index_head_dim", "sparse_index_dim", "attention.indexer.key_length", 128},
        {"index_topk_blocks", "sparse_topk_blocks", "attention.indexer.top_k", 16},
        {"index_block_size", "sparse_block_size", "attention.indexer.block_size", 128},
        {"index_local_blocks", "sparse_local_block", "attention.indexer.local_blocks", 1},
    };
    const json_t *sparse = json_object_get(hf->config, "sparse_attention_config");
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) {
        double value = keys[i].otherwise;
        FRIT_TRY(frit_hf_get_number(hf, hf->config, "", keys[i].name, FRIT_HF_COUNT, &value));
        FRIT_TRY(frit_hf_get_number(hf, sparse, "sparse_attention_config.", keys[i].old, FRIT_HF_COUNT, &value));
        FRIT_TRY(frit_hf_add_number(hf, keys[i].key, FRIT_HF_COUNT, value));
    }
    return FRIT_OK;
}

// True if item i of a list is the number or the name of a layer with experts, or with an indexer.
static bool is_sparse(const json_t *list, size_t i)
{
    const json_t *item = json_array_get(list, i);
    const char *name = json_string_value(item);
    return name ? strcmp(name, "sparse") == 0 || strcmp(name, "minimax_m3_sparse") == 0 : json_integer_value(item) != 0;
}

// The first layers are dense and have full attention, in all others there are experts and an indexer.
static frit_status add_kinds(const frit_hf *hf)
{
    const json_t *experts = json_object_get(hf->config, "mlp_layer_types"),
                 *indexed = json_object_get(hf->config, "layer_types");
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    size_t n_dense = 0;
    if (!json_is_array(experts)) experts = json_object_get(hf->config, "moe_layer_freq");
    if (!json_is_array(indexed))
        indexed = json_object_get(json_object_get(hf->config, "sparse_attention_config"), "sparse_attention_freq");
    while (n_dense < n && !is_sparse(experts, n_dense)) n_dense++;
    for (size_t i = 0; i < n; i++) {
        if (is_sparse(experts, i) == (i >= n_dense) && is_sparse(indexed, i) == (i >= n_dense)) continue;
        return frit_fail_file(
            FRIT_E_UNSUPPORTED,
            "%s: layer_types and mlp_layer_types: layer %zu has %s and %s, expected dense layers with "
            "full attention, then layers with experts and an indexer",
            hf->path, i, is_sparse(experts, i) ? "experts" : "none",
            is_sparse(indexed, i) ? "an indexer" : "full attention");
    }
    return frit_hf_add_number(hf, "leading_dense_block_count", FRIT_HF_COUNT, (double)n_dense);
}

static frit_status complete_m3(const frit_hf *hf)
{
    FRIT_TRY(complete_m2(hf));
    FRIT_TRY(frit_hf_expect(hf, "swiglu_alpha", 1.702));
    FRIT_TRY(frit_hf_expect(hf, "swiglu_limit", 7));
    FRIT_TRY(add_index(hf));
    return add_kinds(hf);
}

// clang-format off
static const frit_hf_key minimax_m3_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"dense_intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"shared_intermediate_size", "expert_shared_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

#define AT_M3 "model.layers.*"
static const frit_hf_tensor minimax_m3_tensors[] = {
    {.name = "model.norm", .gguf = "output_norm", .rewrite = frit_hf_plus_one},
    {.name = AT_M3 ".input_layernorm", .gguf = "blk.*.attn_norm", .rewrite = frit_hf_plus_one},
    {.name = AT_M3 ".post_attention_layernorm", .gguf = "blk.*.ffn_norm", .rewrite = frit_hf_plus_one},
    {.name = AT_M3 ".self_attn.q_norm", .gguf = "blk.*.attn_q_norm", .rewrite = frit_hf_plus_one},
    {.name = AT_M3 ".self_attn.k_norm", .gguf = "blk.*.attn_k_norm", .rewrite = frit_hf_plus_one},
    {.name = AT_M3 ".self_attn.index_q_proj", .gguf = "blk.*.indexer.q_proj", .may_be_absent = true},
    {.name = AT_M3 ".self_attn.index_k_proj", .gguf = "blk.*.indexer.k_proj", .may_be_absent = true},
    {.name = AT_M3 ".self_attn.index_q_norm", .gguf = "blk.*.indexer.q_norm", .may_be_absent = true, .rewrite = frit_hf_plus_one},
    {.name = AT_M3 ".self_attn.index_k_norm", .gguf = "blk.*.indexer.k_norm", .may_be_absent = true, .rewrite = frit_hf_plus_one},
    FRIT_HF_ROWS_DENSE_LAYERS(AT_M3 ".mlp"),
    FRIT_HF_ROWS_NUMBERED_EXPERTS(AT_M3 ".block_sparse_moe"),
    FRIT_HF_ROWS_SHARED_EXPERT(AT_M3 ".block_sparse_moe.shared_experts"),
    {.name = AT_M3 ".block_sparse_moe.gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = AT_M3 ".block_sparse_moe.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_minimax_m3_vl_text = {
    .model_type = "minimax_m3_vl_text",
    .class_name = "MiniMaxM3VLForCausalLM",
    .arch = "minimax-m3",
    .ignored = "vision_tower.|multi_modal_projector.|patch_merge_mlp.|model.vision_tower.|model.multi_modal_projector.",
    .act = "silu|swish|swigluoai",
    .more = complete_m3,
    .shared = &frit_hf_decoder,
    .own = {minimax_m3_keys, FRIT_COUNT(minimax_m3_keys), minimax_m3_tensors, FRIT_COUNT(minimax_m3_tensors)},
};

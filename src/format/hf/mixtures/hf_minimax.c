// SPDX-License-Identifier: MIT
// MiniMax-Text-01: layers of lightning attention and of softmax attention.
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

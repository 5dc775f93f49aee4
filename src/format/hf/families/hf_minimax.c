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

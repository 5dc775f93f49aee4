// SPDX-License-Identifier: MIT
// ERNIE 4.5, dense and MoE. RoPE on neighbouring elements, as in GGUF files.
#include "format/hf/hf_rows.h"

// FRIT_E_UNSUPPORTED if layers with experts end before the last layer; -1 stands for the last layer.
static frit_status check_last(const frit_hf *hf)
{
    const json_t *last = json_object_get(hf->config, "moe_layer_end_index");
    const double n_layer = frit_hf_written(hf, "block_count"), at = json_number_value(last);
    if (!json_is_integer(last) || at == -1 || at >= n_layer - 1) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: moe_layer_end_index is %.0f, expected -1 or at least %.0f", hf->path,
                          at, n_layer - 1);
}

// clang-format off
static const frit_hf_key ernie4_5_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_key ernie4_5_moe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"moe_num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_k", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_num_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"moe_layer_start_index", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_layer_interval", "interleave_moe_layer_step", FRIT_HF_COUNT, FRIT_HF_NEEDED},
};

static const frit_hf_tensor ernie4_5_moe_tensors[] = {
    FRIT_HF_ROWS_DENSE_AND_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.mlp.moe_statics.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_ernie4_5 = {
    .model_type = "ernie4_5",
    .class_name = "Ernie4_5ForCausalLM",
    .arch = "ernie4_5",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {ernie4_5_keys, FRIT_COUNT(ernie4_5_keys), NULL, 0},
};

const frit_hf_family frit_hf_ernie4_5_moe = {
    .model_type = "ernie4_5_moe",
    .class_name = "Ernie4_5_MoeForCausalLM",
    .arch = "ernie4_5-moe",
    .more = check_last,
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {ernie4_5_moe_keys, FRIT_COUNT(ernie4_5_moe_keys), ernie4_5_moe_tensors, FRIT_COUNT(ernie4_5_moe_tensors)},
};

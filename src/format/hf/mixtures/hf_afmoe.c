// SPDX-License-Identifier: MIT
// Trinity (Arcee) and K-EXAONE: RoPE in layers with a window only; sigmoid router with a selection bias.
#include "format/hf/hf_rows.h"

static frit_status complete_afmoe(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect_text(hf, "score_func", "sigmoid"));
    return frit_hf_expect(hf, "mup_enabled", 1);
}

// If sliding_window is null, transformers rotates in all layers and the architecture exaone-moe in none, so such a file
// is refused.
static frit_status complete_exaone(const frit_hf *hf)
{
    if (!frit_meta_find(&hf->ckpt->meta, "frit.attention.sliding_window"))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: sliding_window is null, a model of type '%s' needs a number",
                              hf->path, hf->family->model_type);
    FRIT_TRY(frit_hf_expect_text(hf, "scoring_func", "sigmoid"));
    return frit_hf_add_dense_layers(hf);
}

// clang-format off
#define KEYS \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"num_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"n_group", "expert_group_count", FRIT_HF_COUNT, 1}, \
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, 1}, \
    FRIT_HF_KEY_SIGMOID_ROUTER

static const frit_hf_key afmoe_keys[] = {
    KEYS,
    {"num_dense_layers", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_FALSE},
    {"route_norm", "expert_weights_norm", FRIT_HF_FLAG, 1},
    {"route_scale", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

#define AT "model.layers.*.mlp"
static const frit_hf_tensor afmoe_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
    {.name = "model.layers.*.self_attn.gate_proj", .gguf = "blk.*.attn_gate"},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.name = "model.layers.*.pre_mlp_layernorm", .gguf = "blk.*.ffn_norm"},
    {.name = "model.layers.*.post_mlp_layernorm", .gguf = "blk.*.post_ffw_norm"},
    FRIT_HF_ROWS_DENSE_LAYERS(AT),
    FRIT_HF_ROWS_EXPERTS(AT),
    FRIT_HF_ROWS_SHARED_EXPERT(AT ".shared_experts"),
    {.name = AT ".router.gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = AT ".expert_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};

static const frit_hf_key exaone_moe_keys[] = {
    KEYS,
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_NEEDED},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const frit_hf_tensor exaone_moe_tensors[] = {
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
    FRIT_HF_ROWS_DENSE_AND_EXPERTS(AT),
    {.name = AT ".e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_afmoe = {
    .model_type = "afmoe",
    .class_name = "AfmoeForCausalLM",
    .arch = "afmoe",
    .act = "silu|swish",
    .has_windows = true,
    .window_period = 4,
    .more = complete_afmoe,
    .shared = &frit_hf_decoder,
    .own = {afmoe_keys, FRIT_COUNT(afmoe_keys), afmoe_tensors, FRIT_COUNT(afmoe_tensors)},
};

const frit_hf_family frit_hf_exaone_moe = {
    .model_type = "exaone_moe",
    .class_name = "ExaoneMoeForCausalLM",
    .arch = "exaone-moe",
    .act = "silu|swish",
    .ignored = "mtp.",
    .has_windows = true,
    .window_period = 4,
    .more = complete_exaone,
    .shared = &frit_hf_decoder,
    .own = {exaone_moe_keys, FRIT_COUNT(exaone_moe_keys), exaone_moe_tensors, FRIT_COUNT(exaone_moe_tensors)},
};

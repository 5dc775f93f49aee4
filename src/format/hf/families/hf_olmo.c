// SPDX-License-Identifier: MIT
// OLMo 1 to 3. OLMo 1 has no weights in its norms; 2 and 3 have norms after attention and feed-forward.
#include "format/hf/hf_rows.h"

static frit_status add_eps(const frit_hf *hf)
{
    return frit_hf_add_number(hf, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-5);
}

// clang-format off
static const frit_hf_key olmo_keys[] = {
    FRIT_HF_KEYS_NO_RMS_NORM,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"clip_qkv", "attention.clamp_kqv", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
};

static const frit_hf_tensor olmo_tensors[] = {
    {.gguf = "blk.*.attn_norm", .none = true},
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.gguf = "output_norm", .none = true},
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
};

static const frit_hf_key olmo2_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor olmo2_tensors[] = {
    {.gguf = "blk.*.attn_norm", .none = true},
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.name = "model.layers.*.post_feedforward_layernorm", .gguf = "blk.*.post_ffw_norm"},
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
};

static const frit_hf_key olmoe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_FALSE},
    {"clip_qkv", "attention.clamp_kqv", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
};

static const frit_hf_tensor olmoe_tensors[] = {
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    FRIT_HF_ROWS_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.mlp.gate", .gguf = "blk.*.ffn_gate_inp"},
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
};
// clang-format on

const frit_hf_family frit_hf_olmo = {
    .model_type = "olmo",
    .class_name = "OlmoForCausalLM",
    .arch = "olmo",
    .act = "silu|swish",
    .more = add_eps,
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {olmo_keys, FRIT_COUNT(olmo_keys), olmo_tensors, FRIT_COUNT(olmo_tensors)},
};

const frit_hf_family frit_hf_olmo2 = {
    .model_type = "olmo2",
    .class_name = "Olmo2ForCausalLM",
    .arch = "olmo2",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {olmo2_keys, FRIT_COUNT(olmo2_keys), olmo2_tensors, FRIT_COUNT(olmo2_tensors)},
};

const frit_hf_family frit_hf_olmo3 = {
    .model_type = "olmo3",
    .class_name = "Olmo3ForCausalLM",
    .arch = "olmo2",
    .act = "silu|swish",
    .has_windows = true,
    .window_period = 4,
    .shared = &frit_hf_decoder,
    .own = {olmo2_keys, FRIT_COUNT(olmo2_keys), olmo2_tensors, FRIT_COUNT(olmo2_tensors)},
};

const frit_hf_family frit_hf_olmoe = {
    .model_type = "olmoe",
    .class_name = "OlmoeForCausalLM",
    .arch = "olmoe",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {olmoe_keys, FRIT_COUNT(olmoe_keys), olmoe_tensors, FRIT_COUNT(olmoe_tensors)},
};

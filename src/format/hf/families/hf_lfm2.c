// SPDX-License-Identifier: MIT
// LFM2, dense and MoE, and LFM3: short convolutions and attention.
#include "format/hf/hf_rows.h"

#include <math.h>

enum { MAX_LAYERS = 1024 };

// True for layers that full_attn_idxs does not list; without a list all layers are attention.
static bool is_not_listed(const frit_hf *hf, double period, size_t i)
{
    const json_t *list = json_object_get(hf->config, "full_attn_idxs"), *item;
    size_t k;
    (void)period;
    if (!json_is_array(list)) return false;
    json_array_foreach(list, k, item) if (json_integer_value(item) == (json_int_t)i) return false;
    return true;
}

static frit_status complete(const frit_hf *hf, frit_hf_layer_fn otherwise)
{
    bool recurrent[MAX_LAYERS];
    FRIT_TRY(frit_hf_expect(hf, "conv_bias", 0));
    FRIT_TRY(frit_hf_expect(hf, "norm_topk_prob", 1));
    FRIT_TRY(frit_hf_recurrent_types(hf, otherwise, recurrent));
    return frit_hf_add_recurrent(hf, recurrent);
}

static frit_status complete_moe(const frit_hf *hf)
{
    return complete(hf, NULL);
}

// Computes the feed-forward width: the configured width may be the one before an adjustment.
static frit_status complete_lfm2(const frit_hf *hf)
{
    bool adjusts = false;
    double n = frit_hf_written(hf, "feed_forward_length"), factor = 1, multiple = 1;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "block_auto_adjust_ff_dim", &adjusts));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "block_ffn_dim_multiplier", FRIT_HF_FACTOR, &factor));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "block_multiple_of", FRIT_HF_WIDTH, &multiple));
    if (adjusts) {
        n = ceil(floor(floor(2 * n / 3) * factor) / multiple) * multiple;
        FRIT_TRY(frit_hf_set_number(hf, "feed_forward_length", FRIT_HF_WIDTH, n));
    }
    return complete(hf, is_not_listed);
}

// clang-format off
#define LFM2_KEYS \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD}, \
    {"norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED}, \
    {"conv_L_cache", "shortconv.l_cache", FRIT_HF_COUNT, FRIT_HF_NEEDED}

#define LFM2_TENSORS \
    {.name = "model.embedding_norm", .gguf = "token_embd_norm"}, \
    {.gguf = "output_norm", .none = true}, \
    {.name = "model.layers.*.operator_norm", .gguf = "blk.*.attn_norm"}, \
    {.name = "model.layers.*.ffn_norm", .gguf = "blk.*.ffn_norm"}, \
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.out_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.q_layernorm", .gguf = "blk.*.attn_q_norm", .may_be_absent = true}, \
    {.name = "model.layers.*.self_attn.k_layernorm", .gguf = "blk.*.attn_k_norm", .may_be_absent = true}, \
    {.name = "model.layers.*.conv.conv", .gguf = "blk.*.shortconv.conv", .may_be_absent = true}, \
    {.name = "model.layers.*.conv.in_proj", .gguf = "blk.*.shortconv.in_proj", .may_be_absent = true}, \
    {.name = "model.layers.*.conv.out_proj", .gguf = "blk.*.shortconv.out_proj", .may_be_absent = true}, \
    {.name = "model.layers.*.feed_forward.w1", .gguf = "blk.*.ffn_gate", .may_be_absent = true}, \
    {.name = "model.layers.*.feed_forward.w3", .gguf = "blk.*.ffn_up", .may_be_absent = true}, \
    {.name = "model.layers.*.feed_forward.w2", .gguf = "blk.*.ffn_down", .may_be_absent = true}

static const frit_hf_key lfm2_keys[] = {
    LFM2_KEYS,
};

static const frit_hf_tensor lfm2_tensors[] = {
    LFM2_TENSORS,
};

static const frit_hf_key lfm2_moe_keys[] = {
    LFM2_KEYS,
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_dense_layers", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const frit_hf_tensor lfm2_moe_tensors[] = {
    LFM2_TENSORS,
    {.name = "model.layers.*.feed_forward.gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = "model.layers.*.feed_forward.expert_bias", .gguf = "blk.*.exp_probs_b.bias", .whole = true, .may_be_absent = true},
    {.name = "model.layers.*.feed_forward.experts.@.w1", .gguf = "blk.*.ffn_gate_exps", .may_be_absent = true},
    {.name = "model.layers.*.feed_forward.experts.@.w3", .gguf = "blk.*.ffn_up_exps", .may_be_absent = true},
    {.name = "model.layers.*.feed_forward.experts.@.w2", .gguf = "blk.*.ffn_down_exps", .may_be_absent = true},
};

static const frit_hf_key lfm3_keys[] = {
    LFM2_KEYS,
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

#define AT "model.layers.*"
static const frit_hf_tensor lfm3_tensors[] = {
    {.name = "model.embedding_norm", .gguf = "token_embd_norm"},
    {.gguf = "output_norm", .none = true},
    {.name = AT ".operator_norm", .gguf = "blk.*.attn_norm"},
    {.name = AT ".post_operator_norm", .gguf = "blk.*.post_attention_norm", .may_be_absent = true},
    {.name = AT ".ffn_norm", .gguf = "blk.*.ffn_norm"},
    {.name = AT ".post_ffn_norm", .gguf = "blk.*.post_ffw_norm", .may_be_absent = true},
    FRIT_HF_ROWS_SOME_ATTENTION(AT ".self_attn"),
    {.name = AT ".self_attn.gate_proj", .gguf = "blk.*.attn_gate", .may_be_absent = true},
    {.name = AT ".self_attn.g_proj", .gguf = "blk.*.attn_gate", .may_be_absent = true},
    {.name = AT ".self_attn.q_norm", .gguf = "blk.*.attn_q_norm", .may_be_absent = true},
    {.name = AT ".self_attn.k_norm", .gguf = "blk.*.attn_k_norm", .may_be_absent = true},
    {.name = AT ".conv.conv", .gguf = "blk.*.shortconv.conv", .may_be_absent = true},
    {.name = AT ".conv.in_proj", .gguf = "blk.*.shortconv.in_proj", .may_be_absent = true},
    {.name = AT ".conv.out_proj", .gguf = "blk.*.shortconv.out_proj", .may_be_absent = true},
    {.name = AT ".feed_forward.w1", .gguf = "blk.*.ffn_gate"},
    {.name = AT ".feed_forward.w3", .gguf = "blk.*.ffn_up"},
    {.name = AT ".feed_forward.w2", .gguf = "blk.*.ffn_down"},
};
// clang-format on

static frit_status complete_lfm3(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_add_proportional(hf));
    return complete(hf, NULL);
}

const frit_hf_family frit_hf_lfm3 = {
    .model_type = "lfm3",
    .class_name = "Lfm3ForCausalLM",
    .arch = "lfm3",
    .act = "silu|swish",
    .has_windows = true,
    .needs_types = true,
    .other_type = "conv",
    .is_proportional = true,
    .more = complete_lfm3,
    .shared = &frit_hf_decoder,
    .own = {lfm3_keys, FRIT_COUNT(lfm3_keys), lfm3_tensors, FRIT_COUNT(lfm3_tensors)},
};

const frit_hf_family frit_hf_lfm2 = {
    .model_type = "lfm2",
    .class_name = "Lfm2ForCausalLM",
    .arch = "lfm2",
    .act = "silu|swish",
    .more = complete_lfm2,
    .shared = &frit_hf_decoder,
    .own = {lfm2_keys, FRIT_COUNT(lfm2_keys), lfm2_tensors, FRIT_COUNT(lfm2_tensors)},
};

const frit_hf_family frit_hf_lfm2_moe = {
    .model_type = "lfm2_moe",
    .class_name = "Lfm2MoeForCausalLM",
    .arch = "lfm2moe",
    .act = "silu|swish",
    .more = complete_moe,
    .shared = &frit_hf_decoder,
    .own = {lfm2_moe_keys, FRIT_COUNT(lfm2_moe_keys), lfm2_moe_tensors, FRIT_COUNT(lfm2_moe_tensors)},
};

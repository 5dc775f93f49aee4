// SPDX-License-Identifier: MIT
// Kimi Linear and Ling 3: Kimi Delta Attention in most layers, latent attention in the others, experts.
#include "format/hf/hf_rows.h"

enum { MAX_LAYERS = 1024 };

// Numbers of layers begin with 1 in linear_attn_config.
static bool is_delta(const frit_hf *hf, double period, size_t i)
{
    const json_t *linear = json_object_get(hf->config, "linear_attn_config"), *item;
    const json_t *full = json_object_get(linear, "full_attn_layers");
    size_t k;
    (void)period;
    json_array_foreach(full, k, item) if (json_integer_value(item) == (json_int_t)i + 1) return false;
    return full || i == 0 || i % 4 != 0;
}

static bool is_delta_of_group(const frit_hf *hf, double period, size_t i)
{
    double size = 1;
    (void)period;
    return frit_hf_get_number(hf, hf->config, "", "layer_group_size", FRIT_HF_LAYERS, &size) == FRIT_OK &&
           (i + 1) % (size_t)size != 0;
}

// Sizes of expanded heads, and layers without keys.
static frit_status add_heads(const frit_hf *hf, frit_hf_layer_fn otherwise)
{
    bool recurrent[MAX_LAYERS];
    double still = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "qk_nope_head_dim", FRIT_HF_WIDTH, &still));
    const double dim = still + frit_hf_written(hf, "rope.dimension_count");
    FRIT_TRY(frit_hf_set_number(hf, "attention.key_length", FRIT_HF_WIDTH, dim));
    FRIT_TRY(frit_hf_add_number(hf, "attention.key_length_mla", FRIT_HF_WIDTH, dim));
    FRIT_TRY(frit_hf_add_number(hf, "attention.value_length_mla", FRIT_HF_WIDTH,
                                frit_hf_written(hf, "attention.value_length")));
    FRIT_TRY(
        frit_hf_set_number(hf, "attention.head_count_kv", FRIT_HF_HEADS, frit_hf_written(hf, "attention.head_count")));
    FRIT_TRY(frit_hf_recurrent_types(hf, otherwise, recurrent));
    FRIT_TRY(frit_hf_add_dense_layers(hf));
    return frit_hf_add_recurrent(hf, recurrent);
}

// The architecture has as many heads of delta attention as of latent attention.
static frit_status check_delta_heads(const frit_hf *hf, double n)
{
    if (n == frit_hf_written(hf, "attention.head_count")) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %.0f heads of delta attention, expected num_attention_heads %.0f",
                          hf->path, n, frit_hf_written(hf, "attention.head_count"));
}

static frit_status complete_kimi(const frit_hf *hf)
{
    static const char *const where = "linear_attn_config.";
    const json_t *linear = json_object_get(hf->config, "linear_attn_config");
    double n_head = 0, dim = 0, n_taps = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_num_heads", FRIT_HF_HEADS, &n_head));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_head_dim", FRIT_HF_WIDTH, &dim));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_conv_kernel_dim", FRIT_HF_COUNT, &n_taps));
    FRIT_TRY(frit_hf_get_number(hf, linear, where, "num_heads", FRIT_HF_HEADS, &n_head));
    FRIT_TRY(frit_hf_get_number(hf, linear, where, "head_dim", FRIT_HF_WIDTH, &dim));
    FRIT_TRY(frit_hf_get_number(hf, linear, where, "short_conv_kernel_size", FRIT_HF_COUNT, &n_taps));
    FRIT_TRY(frit_hf_expect_text(hf, "moe_router_activation_func", "sigmoid"));
    FRIT_TRY(frit_hf_expect(hf, "norm_topk_prob", 1));
    FRIT_TRY(frit_hf_add_number(hf, "kda.head_dim", FRIT_HF_WIDTH, dim));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.conv_kernel", FRIT_HF_COUNT, n_taps));
    FRIT_TRY(check_delta_heads(hf, n_head));
    return add_heads(hf, is_delta);
}

static frit_status complete_bailing(const frit_hf *hf)
{
    double dim = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "head_dim", FRIT_HF_WIDTH, &dim));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_head_dim", FRIT_HF_WIDTH, &dim));
    FRIT_TRY(frit_hf_expect(hf, "kda_safe_gate", 1));
    FRIT_TRY(frit_hf_expect(hf, "no_kda_lora", 1));
    FRIT_TRY(frit_hf_expect_text(hf, "score_function", "sigmoid"));
    FRIT_TRY(frit_hf_expect_text(hf, "gated_attention_proj_granularity_type", "head_wise"));
    double bound = -5;
    const json_t *given = json_object_get(hf->config, "kda_lower_bound");
    if (json_is_number(given)) bound = json_number_value(given);
    if (!(bound < 0 && bound > -1e6))
        return frit_fail_file(FRIT_E_FORMAT, "%s: kda_lower_bound is %g, expected a number below 0", hf->path, bound);
    FRIT_TRY(frit_hf_add_number(hf, "kda.gate_lower_bound", FRIT_HF_MAGNITUDE, bound));
    FRIT_TRY(frit_hf_add_number(hf, "kda.head_dim", FRIT_HF_WIDTH, dim));
    return add_heads(hf, is_delta_of_group);
}

// clang-format off
#define MLA_KEYS \
    {"kv_lora_rank", "attention.kv_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"q_lora_rank", "attention.q_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NO_KEY}, \
    {"qk_rope_head_dim", "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"v_head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, 1}, \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"n_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"n_group", "expert_group_count", FRIT_HF_COUNT, 1}

#define DELTA_TENSORS(at) \
    {.name = at ".q_proj", .gguf = "blk.*.attn_q", .may_be_absent = true}, \
    {.name = at ".k_proj", .gguf = "blk.*.attn_k", .may_be_absent = true}, \
    {.name = at ".v_proj", .gguf = "blk.*.attn_v", .may_be_absent = true}, \
    {.name = at ".q_a_proj", .gguf = "blk.*.attn_q_a", .may_be_absent = true}, \
    {.name = at ".q_a_layernorm", .gguf = "blk.*.attn_q_a_norm", .may_be_absent = true}, \
    {.name = at ".q_b_proj", .gguf = "blk.*.attn_q_b", .may_be_absent = true}, \
    {.name = at ".kv_a_proj_with_mqa", .gguf = "blk.*.attn_kv_a_mqa", .may_be_absent = true}, \
    {.name = at ".kv_a_layernorm", .gguf = "blk.*.attn_kv_a_norm", .may_be_absent = true}, \
    {.name = at ".kv_b_proj", .gguf = "blk.*.attn_kv_b", .may_be_absent = true}, \
    {.name = at ".q_conv1d", .gguf = "blk.*.ssm_conv1d_q", .may_be_absent = true}, \
    {.name = at ".k_conv1d", .gguf = "blk.*.ssm_conv1d_k", .may_be_absent = true}, \
    {.name = at ".v_conv1d", .gguf = "blk.*.ssm_conv1d_v", .may_be_absent = true}, \
    {.name = at ".dt_bias", .gguf = "blk.*.ssm_dt.bias", .whole = true, .may_be_absent = true}, \
    {.name = at ".b_proj", .gguf = "blk.*.ssm_beta", .may_be_absent = true}, \
    {.name = at ".o_norm", .gguf = "blk.*.ssm_norm", .may_be_absent = true}

static const frit_hf_key kimi_linear_keys[] = {
    MLA_KEYS,
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, 1},
};

#define AT "model.layers.*.self_attn"
static const frit_hf_tensor kimi_linear_tensors[] = {
    DELTA_TENSORS(AT),
    {.name = AT ".o_proj", .gguf = "blk.*.attn_output"},
    {.name = AT ".A_log", .gguf = "blk.*.ssm_a", .whole = true, .may_be_absent = true, .rewrite = frit_hf_negative_exp},
    {.name = AT ".f_a_proj", .gguf = "blk.*.ssm_f_a", .may_be_absent = true},
    {.name = AT ".f_b_proj", .gguf = "blk.*.ssm_f_b", .may_be_absent = true},
    {.name = AT ".g_a_proj", .gguf = "blk.*.ssm_g_a", .may_be_absent = true},
    {.name = AT ".g_b_proj", .gguf = "blk.*.ssm_g_b", .may_be_absent = true},
    FRIT_HF_ROWS_DENSE_LAYERS("model.layers.*.mlp"),
    FRIT_HF_ROWS_NUMBERED_EXPERTS("model.layers.*.block_sparse_moe"),
    FRIT_HF_ROWS_SHARED_EXPERT("model.layers.*.block_sparse_moe.shared_experts"),
    {.name = "model.layers.*.block_sparse_moe.gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = "model.layers.*.block_sparse_moe.gate.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};

static const frit_hf_key bailing_hybrid_keys[] = {
    MLA_KEYS,
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_NEEDED},
    {"short_conv_kernel_size", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED},
};

#define AT_LING "model.layers.*.attention"
static const frit_hf_tensor bailing_hybrid_tensors[] = {
    {.name = "model.word_embeddings", .gguf = "token_embd"},
    DELTA_TENSORS(AT_LING),
    {.name = AT_LING ".dense", .gguf = "blk.*.attn_output"},
    {.name = AT_LING ".A_log", .gguf = "blk.*.ssm_a", .whole = true, .may_be_absent = true, .rewrite = frit_hf_positive_exp},
    {.name = AT_LING ".f_proj", .gguf = "blk.*.ssm_f_a", .may_be_absent = true},
    {.name = AT_LING ".g_proj", .gguf = "blk.*.attn_gate", .may_be_absent = true, .of_attention = true},
    {.name = AT_LING ".g_proj", .gguf = "blk.*.ssm_g_a", .may_be_absent = true},
    FRIT_HF_ROWS_DENSE_AND_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.mlp.gate.expert_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_kimi_linear = {
    .model_type = "kimi_linear",
    .class_name = "KimiLinearForCausalLM",
    .arch = "kimi-linear",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_kimi,
    .shared = &frit_hf_decoder,
    .own = {kimi_linear_keys, FRIT_COUNT(kimi_linear_keys), kimi_linear_tensors, FRIT_COUNT(kimi_linear_tensors)},
};

const frit_hf_family frit_hf_bailing_hybrid = {
    .model_type = "bailing_hybrid",
    .class_name = "BailingHybridForCausalLM",
    .arch = "bailingmoe3",
    .act = "silu|swish",
    .is_latent = true,
    .more = complete_bailing,
    .shared = &frit_hf_decoder,
    .own = {bailing_hybrid_keys, FRIT_COUNT(bailing_hybrid_keys), bailing_hybrid_tensors,
            FRIT_COUNT(bailing_hybrid_tensors)},
};

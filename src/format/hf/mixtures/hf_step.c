// SPDX-License-Identifier: MIT
// Step-3.5-Flash and Step-3.7-Flash: the text side. Weights of norms are stored minus one.
#include "format/hf/hf_rows.h"

// Adds limits of gate and up: a list of numbers, in which null and 0 mean none.
static frit_status add_limits(const frit_hf *hf, const char *name, const char *key)
{
    const json_t *list = json_object_get(hf->config, name);
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    if (!list || json_is_null(list)) return FRIT_OK;
    float *limits = frit_arena_new(&hf->ckpt->arena, float, n);
    if (!limits) return frit_fail_memory(n * sizeof *limits, name);
    for (size_t i = 0; i < n; i++) {
        limits[i] = (float)json_number_value(json_array_get(list, i));
        if (json_array_size(list) < n || limits[i] < 0)
            return frit_fail_file(FRIT_E_FORMAT, "%s: %s is not a list of %zu numbers from 0", hf->path, name, n);
        if (limits[i] > 0 && (double)i < frit_hf_written(hf, "leading_dense_block_count"))
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s[%zu] is %g in a dense layer, expected 0", hf->path, name,
                                  i, (double)limits[i]);
    }
    return frit_hf_add_array(hf, key, FRIT_VALUE_F32, limits, n);
}

static frit_status add_heads(const frit_hf *hf)
{
    const json_t *other = json_object_get(hf->config, "attention_other_setting");
    const double n_head = frit_hf_written(hf, "attention.head_count");
    const double n_kv = frit_hf_written(hf, "attention.head_count_kv"),
                 dim = frit_hf_written(hf, "attention.key_length");
    static const char *const where = "attention_other_setting.";
    double n_other = n_head, n_kv_other = n_kv, dim_other = dim;
    FRIT_TRY(frit_hf_get_number(hf, other, where, "num_attention_heads", FRIT_HF_HEADS, &n_other));
    FRIT_TRY(frit_hf_get_number(hf, other, where, "num_attention_groups", FRIT_HF_HEADS, &n_kv_other));
    FRIT_TRY(frit_hf_get_number(hf, other, where, "head_dim", FRIT_HF_WIDTH, &dim_other));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "num_sliding_attention_heads", FRIT_HF_HEADS, &n_other));
    if (n_kv_other != n_kv || dim_other != dim)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: attention_other_setting has %.0f groups of %.0f, expected %.0f of %.0f", hf->path,
                              n_kv_other, dim_other, n_kv, dim);
    return frit_hf_set_by_kind(hf, "attention.head_count", n_head, n_other);
}

// As in GGUF files, rope.dimension_count is twice what layers without a window rotate.
static frit_status complete(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "use_bidirectional_attention", 0));
    FRIT_TRY(
        frit_hf_set_number(hf, "rope.dimension_count", FRIT_HF_WIDTH, 2 * frit_hf_written(hf, "rope.dimension_count")));
    FRIT_TRY(frit_hf_add_dense_layers(hf));
    FRIT_TRY(add_limits(hf, "swiglu_limits", "swiglu_clamp_exp"));
    FRIT_TRY(add_limits(hf, "swiglu_limits_shared", "swiglu_clamp_shexp"));
    return add_heads(hf);
}

// clang-format off
static const frit_hf_key step3p5_keys[] = {
    FRIT_HF_KEY_SIGMOID_ROUTER,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"share_expert_dim", "expert_shared_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"moe_router_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"norm_expert_weight", "expert_weights_norm", FRIT_HF_FLAG, 1},
    {NULL, "leading_dense_block_count", FRIT_HF_COUNT, 3},
};

#define AT "model.layers.*"
static const frit_hf_tensor step3p5_tensors[] = {
    {.name = "model.norm", .gguf = "output_norm", .rewrite = frit_hf_plus_one},
    {.name = AT ".input_layernorm", .gguf = "blk.*.attn_norm", .rewrite = frit_hf_plus_one},
    {.name = AT ".post_attention_layernorm", .gguf = "blk.*.ffn_norm", .rewrite = frit_hf_plus_one},
    {.name = AT ".self_attn.q_norm", .gguf = "blk.*.attn_q_norm", .may_be_absent = true, .rewrite = frit_hf_plus_one},
    {.name = AT ".self_attn.k_norm", .gguf = "blk.*.attn_k_norm", .may_be_absent = true, .rewrite = frit_hf_plus_one},
    {.name = AT ".self_attn.g_proj", .gguf = "blk.*.attn_gate"},
    FRIT_HF_ROWS_DENSE_LAYERS(AT ".mlp"),
    FRIT_HF_ROWS_SHARED_EXPERT(AT ".share_expert"),
    {.name = AT ".moe.gate_proj", .gguf = "blk.*.ffn_gate_exps", .may_be_absent = true},
    {.name = AT ".moe.up_proj", .gguf = "blk.*.ffn_up_exps", .may_be_absent = true},
    {.name = AT ".moe.down_proj", .gguf = "blk.*.ffn_down_exps", .may_be_absent = true},
    {.name = AT ".moe.gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = AT ".moe.router_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_step3p5 = {
    .model_type = "step3p5",
    .class_name = "Step3p5ForCausalLM",
    .arch = "step35",
    .act = "silu|swish",
    .ignored = "vision_model.|vit_large_projector.",
    .has_windows = true,
    .needs_types = true,
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {step3p5_keys, FRIT_COUNT(step3p5_keys), step3p5_tensors, FRIT_COUNT(step3p5_tensors)},
};

// SPDX-License-Identifier: MIT
// MiMo-V2-Flash and MiMo-V2.5. Layers with a window have their own numbers of heads, RoPE base and sinks. The class
// reads RoPE from rope_parameters only; the older keys of published files must say the same.
#include "format/hf/hf_rows.h"

static frit_status expect_equal(const frit_hf *hf, const char *name, const char *other)
{
    double value = 0, sliding = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", name, FRIT_HF_WIDTH, &value));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", other, FRIT_HF_WIDTH, &sliding));
    if (sliding == 0 || sliding == value) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is %.0f, expected %s, %.0f", hf->path, other, sliding, name,
                          value);
}

// Published files have the pattern too; it must say what the class reads.
static frit_status check_pattern(const frit_hf *hf)
{
    const json_t *list = json_object_get(hf->config, "hybrid_layer_pattern"), *item;
    size_t i;
    json_array_foreach(
        list, i, item) if ((json_integer_value(item) != 0) !=
                           (frit_hf_window(hf, i) >
                            0)) return frit_fail_file(FRIT_E_UNSUPPORTED,
                                                      "%s: hybrid_layer_pattern[%zu] is not what layer_types says",
                                                      hf->path, i);
    return FRIT_OK;
}

static frit_status complete(const frit_hf *hf)
{
    const double n_head = frit_hf_written(hf, "attention.head_count"),
                 n_kv = frit_hf_written(hf, "attention.head_count_kv");
    double n_other = n_head, n_kv_other = n_kv;
    FRIT_TRY(expect_equal(hf, "head_dim", "swa_head_dim"));
    FRIT_TRY(expect_equal(hf, "v_head_dim", "swa_v_head_dim"));
    FRIT_TRY(frit_hf_expect_text(hf, "scoring_func", "sigmoid"));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "swa_num_attention_heads", FRIT_HF_HEADS, &n_other));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "swa_num_key_value_heads", FRIT_HF_HEADS, &n_kv_other));
    FRIT_TRY(frit_hf_expect(hf, "rope_theta", frit_hf_written(hf, "rope.freq_base")));
    FRIT_TRY(frit_hf_expect(hf, "swa_rope_theta", frit_hf_written(hf, "rope.freq_base_swa")));
    FRIT_TRY(check_pattern(hf));
    FRIT_TRY(frit_hf_add_dense_layers(hf));
    FRIT_TRY(frit_hf_set_by_kind(hf, "attention.head_count", n_head, n_other));
    return frit_hf_set_by_kind(hf, "attention.head_count_kv", n_kv, n_kv_other);
}

// clang-format off
static const frit_hf_key mimo_v2_flash_keys[] = {
    FRIT_HF_KEY_SIGMOID_ROUTER,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"v_head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"attention_value_scale", "attention.value_scale", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, 1},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_NEEDED},
    {"n_group", "expert_group_count", FRIT_HF_COUNT, 1},
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, 1},
    {NULL, "leading_dense_block_count", FRIT_HF_COUNT, 1},
};

static const frit_hf_tensor mimo_v2_flash_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.self_attn.attention_sink_bias", .gguf = "blk.*.attn_sinks.weight", .whole = true, .may_be_absent = true},
    FRIT_HF_ROWS_DENSE_LAYERS("model.layers.*.mlp"),
    FRIT_HF_ROWS_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.mlp.gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = "model.layers.*.mlp.gate.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_mimo_v2_flash = {
    .model_type = "mimo_v2_flash",
    .class_name = "MiMoV2FlashForCausalLM",
    .arch = "mimo2",
    .act = "silu|swish",
    .ignored = "model.mtp.",
    .has_windows = true,
    .window_first = 1,
    .window_period = 6,
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {mimo_v2_flash_keys, FRIT_COUNT(mimo_v2_flash_keys), mimo_v2_flash_tensors,
            FRIT_COUNT(mimo_v2_flash_tensors)},
};

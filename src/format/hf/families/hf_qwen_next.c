// SPDX-License-Identifier: MIT
// Qwen3-Next and Qwen3.5, without experts and with them: gated delta nets and gated attention.
#include "format/hf/hf_rows.h"

#include <stdio.h>

enum { MAX_LAYERS = 1024 };

static bool but_each_last(const frit_hf *hf, double period, size_t i)
{
    (void)hf;
    return (i + 1) % (size_t)period != 0;
}

static frit_status complete(const frit_hf *hf)
{
    bool recurrent[MAX_LAYERS];
    uint32_t list[MAX_LAYERS];
    double dim = 0;
    const size_t n_layer = (size_t)frit_hf_written(hf, "block_count");
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_value_head_dim", FRIT_HF_COUNT, &dim));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, dim * frit_hf_written(hf, "ssm.time_step_rank")));
    FRIT_TRY(frit_hf_recurrent_types(hf, but_each_last, recurrent));
    for (size_t i = 0; i < n_layer; i++) list[i] = recurrent[i];
    return frit_hf_set_list(hf, "attention.recurrent_layers", list);
}

static frit_status complete_next(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "decoder_sparse_step", 1));
    FRIT_TRY(frit_hf_expect(hf, "norm_topk_prob", 1));
    if (json_array_size(json_object_get(hf->config, "mlp_only_layers")) > 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: mlp_only_layers is not empty, which is not supported", hf->path);
    return complete(hf);
}

// GGUF files have value heads in another order. They have the sections of M-RoPE because other engines need them; for
// text, M-RoPE equals plain RoPE.
static frit_status complete_35(const frit_hf *hf)
{
    static const uint32_t sections[4] = {11, 11, 10, 0};
    char key[64];
    FRIT_TRY(frit_hf_add_sections(hf));
    snprintf(key, sizeof key, "%s.rope.dimension_sections", hf->family->arch);
    const char *copy = frit_arena_text(&hf->ckpt->arena, key, strlen(key));
    if (!copy) return frit_fail_memory(sizeof key, "a metadata key");
    if (!frit_meta_find(&hf->ckpt->meta, key)) FRIT_TRY(frit_hf_add_list(hf, copy, sections, 4));
    FRIT_TRY(frit_meta_add_bool(&hf->ckpt->meta, "frit.delta.grouped_heads", true));
    return complete(hf);
}

// clang-format off
#define SHARED_KEYS \
    {"linear_conv_kernel_dim", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"linear_key_head_dim", "ssm.state_size", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"linear_num_value_heads", "ssm.time_step_rank", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"linear_num_key_heads", "ssm.group_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}

#define SHARED_TENSORS \
    {.name = "model.norm", .gguf = "output_norm", .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.input_layernorm", .gguf = "blk.*.attn_norm", .rewrite = frit_hf_plus_one}, \
    {.gguf = "blk.*.ffn_norm", .none = true}, \
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm", .rewrite = frit_hf_plus_one}, \
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"), \
    {.name = "model.layers.*.self_attn.q_norm", .gguf = "blk.*.attn_q_norm", .may_be_absent = true, .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.self_attn.k_norm", .gguf = "blk.*.attn_k_norm", .may_be_absent = true, .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.linear_attn.A_log", .gguf = "blk.*.ssm_a", .whole = true, .may_be_absent = true, .rewrite = frit_hf_negative_exp}, \
    {.name = "model.layers.*.linear_attn.dt_bias", .gguf = "blk.*.ssm_dt.bias", .whole = true, .may_be_absent = true}, \
    {.name = "model.layers.*.linear_attn.conv1d", .gguf = "blk.*.ssm_conv1d", .may_be_absent = true}, \
    {.name = "model.layers.*.linear_attn.norm", .gguf = "blk.*.ssm_norm", .may_be_absent = true}, \
    {.name = "model.layers.*.linear_attn.out_proj", .gguf = "blk.*.ssm_out", .may_be_absent = true}

#define NEXT_TENSORS \
    {.name = "model.layers.*.eh_proj", .gguf = FRIT_HF_NEXT_PROJ, .may_be_absent = true}, \
    {.name = "model.layers.*.enorm", .gguf = "blk.*.nextn.enorm", .may_be_absent = true, .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.hnorm", .gguf = "blk.*.nextn.hnorm", .may_be_absent = true, .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.next_norm", .gguf = "blk.*.nextn.shared_head_norm", .may_be_absent = true, .rewrite = frit_hf_plus_one}

static const frit_hf_prefix next_names[] = {
    {"mtp.fc.", "model.layers.*.eh_proj."},
    {"mtp.layers.0.", "model.layers.*."},
    {"mtp.pre_fc_norm_embedding.", "model.layers.*.enorm."},
    {"mtp.pre_fc_norm_hidden.", "model.layers.*.hnorm."},
    {"mtp.norm.", "model.layers.*.next_norm."},
    {0},
};

#define EXPERT_KEYS \
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}

#define EXPERT_TENSORS \
    FRIT_HF_ROWS_NO_FEED_FORWARD, \
    {.name = "model.layers.*.mlp.gate", .gguf = "blk.*.ffn_gate_inp"}, \
    FRIT_HF_ROWS_EXPERTS("model.layers.*.mlp"), \
    FRIT_HF_ROWS_SHARED_EXPERT("model.layers.*.mlp.shared_expert"), \
    {.name = "model.layers.*.mlp.shared_expert_gate", .gguf = "blk.*.ffn_gate_inp_shexp"}

#define MIXER_TENSORS_35 \
    {.name = "model.layers.*.linear_attn.in_proj_qkv", .gguf = "blk.*.attn_qkv", .may_be_absent = true}, \
    {.name = "model.layers.*.linear_attn.in_proj_z", .gguf = "blk.*.attn_gate", .may_be_absent = true}, \
    {.name = "model.layers.*.linear_attn.in_proj_a", .gguf = "blk.*.ssm_alpha", .may_be_absent = true}, \
    {.name = "model.layers.*.linear_attn.in_proj_b", .gguf = "blk.*.ssm_beta", .may_be_absent = true}

static const frit_hf_key qwen3_next_keys[] = {
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    SHARED_KEYS,
    EXPERT_KEYS,
};

static const frit_hf_tensor qwen3_next_tensors[] = {
    SHARED_TENSORS,
    NEXT_TENSORS,
    {.name = "model.layers.*.linear_attn.in_proj_qkvz", .gguf = "blk.*.ssm_in", .may_be_absent = true},
    {.name = "model.layers.*.linear_attn.in_proj_ba", .gguf = "blk.*.ssm_ba", .may_be_absent = true},
    EXPERT_TENSORS,
};

static const frit_hf_key qwen3_5_text_keys[] = {
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    SHARED_KEYS,
};

static const frit_hf_tensor qwen3_5_text_tensors[] = {
    SHARED_TENSORS,
    NEXT_TENSORS,
    MIXER_TENSORS_35,
};

static const frit_hf_key qwen3_5_moe_text_keys[] = {
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    SHARED_KEYS,
    EXPERT_KEYS,
    {"moe_intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},   // unused: all layers have experts
};

static const frit_hf_tensor qwen3_5_moe_text_tensors[] = {
    SHARED_TENSORS,
    NEXT_TENSORS,
    MIXER_TENSORS_35,
    EXPERT_TENSORS,
    FRIT_HF_ROWS_STACKED_EXPERTS("model.layers.*.mlp"),
};
// clang-format on

const frit_hf_family frit_hf_qwen3_next = {
    .model_type = "qwen3_next",
    .class_name = "Qwen3NextForCausalLM",
    .arch = "qwen3next",
    .act = "silu|swish",
    .more = complete_next,
    .next = next_names,
    .shared = &frit_hf_decoder,
    .own = {qwen3_next_keys, FRIT_COUNT(qwen3_next_keys), qwen3_next_tensors, FRIT_COUNT(qwen3_next_tensors)},
};

const frit_hf_family frit_hf_qwen3_5_text = {
    .model_type = "qwen3_5_text",
    .class_name = "Qwen3_5ForCausalLM",
    .arch = "qwen35",
    .act = "silu|swish",
    .more = complete_35,
    .next = next_names,
    .shared = &frit_hf_decoder,
    .own = {qwen3_5_text_keys, FRIT_COUNT(qwen3_5_text_keys), qwen3_5_text_tensors, FRIT_COUNT(qwen3_5_text_tensors)},
};

const frit_hf_family frit_hf_qwen3_5_moe_text = {
    .model_type = "qwen3_5_moe_text",
    .class_name = "Qwen3_5MoeForCausalLM",
    .arch = "qwen35moe",
    .act = "silu|swish",
    .more = complete_35,
    .next = next_names,
    .is_visual = true,
    .shared = &frit_hf_decoder,
    .own = {qwen3_5_moe_text_keys, FRIT_COUNT(qwen3_5_moe_text_keys), qwen3_5_moe_text_tensors,
            FRIT_COUNT(qwen3_5_moe_text_tensors)},
};

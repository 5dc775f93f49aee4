// SPDX-License-Identifier: MIT
// gpt-oss.
#include "format/hf/hf_rows.h"
#include "format/rows.h"

// Source of row i: interleaved rows of gate and up become all of gate, then all of up.
static int64_t parted_row(const void *order, int64_t i)
{
    const int64_t n = *(const int64_t *)order, row = i % n;
    return i - row + row % (n / 2) * 2 + row / (n / 2);
}

// The experts' matrices are stored transposed, [n_expert, n_in, n_out], unless they are MXFP4.
static frit_status transpose(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    return tensor->dtype == FRIT_DTYPE_MXFP4 ? FRIT_OK : frit_transpose(&hf->ckpt->arena, tensor);
}

static frit_status part_gate_up(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    frit_arena *arena = &hf->ckpt->arena;
    if (tensor->n_dims == 3) FRIT_TRY(transpose(hf, tensor, is_bias));
    int64_t *n = frit_arena_new(arena, int64_t, 1);
    if (!n) return frit_fail_memory(sizeof *n, tensor->name);
    *n = tensor->shape[1];
    if (tensor->n_dims != 3) return frit_reorder_numbers(arena, tensor, parted_row, n, tensor->shape[0] * *n);
    return frit_reorder(arena, tensor, parted_row, n, tensor->shape[0] * *n, *n);
}

// clang-format off
static const frit_hf_key gpt_oss_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

static const frit_hf_tensor gpt_oss_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.gguf = "blk.*.ffn_norm", .none = true},
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    {.name = "model.layers.*.mlp.router", .gguf = "blk.*.ffn_gate_inp", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.sinks", .gguf = "blk.*.attn_sinks.weight", .whole = true},
    {.name = "model.layers.*.mlp.experts.gate_up_proj", .gguf = "blk.*.ffn_gate_up_exps.weight", .whole = true, .rewrite = part_gate_up},
    {.name = "model.layers.*.mlp.experts.gate_up_proj_bias", .gguf = "blk.*.ffn_gate_up_exps.bias", .whole = true, .rewrite = part_gate_up},
    {.name = "model.layers.*.mlp.experts.down_proj", .gguf = "blk.*.ffn_down_exps.weight", .whole = true, .rewrite = transpose},
    {.name = "model.layers.*.mlp.experts.down_proj_bias", .gguf = "blk.*.ffn_down_exps.bias", .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_gpt_oss = {
    .model_type = "gpt_oss",
    .class_name = "GptOssForCausalLM",
    .arch = "gpt-oss",
    .act = "silu|swish",
    .has_windows = true,
    .window_period = 2,
    .shared = &frit_hf_decoder,
    .own = {gpt_oss_keys, FRIT_COUNT(gpt_oss_keys), gpt_oss_tensors, FRIT_COUNT(gpt_oss_tensors)},
};

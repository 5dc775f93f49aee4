// SPDX-License-Identifier: MIT
// gpt-oss, as saved in plain number formats.
#include "format/hf.h"

// The experts' matrices are stored the other way round, with gate and up in turn: [E, n_embd, (gate, up) n_ff].
static frit_status part_gate_up(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    const int64_t n_expert = tensor->shape[0], n_in = tensor->n_dims == 3 ? tensor->shape[1] : 1;
    const int64_t n = tensor->shape[tensor->n_dims - 1];
    const size_t size = (size_t)frit_dtype_row_bytes(tensor->dtype, 1);
    uint8_t *copy = frit_arena_alloc(&hf->ckpt->arena, (size_t)tensor->n_bytes, 64);
    if (!copy) return frit_fail_memory((size_t)tensor->n_bytes, tensor->name);
    const uint8_t *from = tensor->data;
    for (int64_t e = 0; e < n_expert; e++)
        for (int64_t i = 0; i < n_in; i++)
            for (int64_t o = 0; o < n; o++, from += size) {
                const int64_t row = o % 2 * (n / 2) + o / 2;
                memcpy(copy + (size_t)((e * n + row) * n_in + i) * size, from, size);
            }
    if (tensor->n_dims == 3) tensor->shape[1] = n;
    tensor->shape[tensor->n_dims - 1] = tensor->n_dims == 3 ? n_in : n;
    tensor->data = copy;
    tensor->is_mapped = false;
    return FRIT_OK;
}

static frit_status turn_down(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    const int64_t n_expert = tensor->shape[0], n_in = tensor->shape[1], n_out = tensor->shape[2];
    const size_t size = (size_t)frit_dtype_row_bytes(tensor->dtype, 1);
    uint8_t *copy = frit_arena_alloc(&hf->ckpt->arena, (size_t)tensor->n_bytes, 64);
    if (!copy) return frit_fail_memory((size_t)tensor->n_bytes, tensor->name);
    const uint8_t *from = tensor->data;
    for (int64_t e = 0; e < n_expert; e++)
        for (int64_t i = 0; i < n_in; i++)
            for (int64_t o = 0; o < n_out; o++, from += size)
                memcpy(copy + (size_t)((e * n_out + o) * n_in + i) * size, from, size);
    tensor->shape[1] = n_out;
    tensor->shape[2] = n_in;
    tensor->data = copy;
    tensor->is_mapped = false;
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key gpt_oss_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 131072, 131072},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, 8, FRIT_HF_N_HEAD},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, 64, FRIT_HF_DIVIDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, 128, 128},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, 4, 4},
    {"intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, 2880, 2880},
};

static const frit_hf_tensor gpt_oss_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.gguf = "blk.*.ffn_gate", .none = true},
    {.gguf = "blk.*.ffn_up", .none = true},
    {.gguf = "blk.*.ffn_down", .none = true},
    {.name = "model.layers.*.mlp.router", .gguf = "blk.*.ffn_gate_inp", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.sinks", .gguf = "blk.*.attn_sinks.weight", .whole = true},
    {.name = "model.layers.*.mlp.experts.gate_up_proj", .gguf = "blk.*.ffn_gate_up_exps.weight", .whole = true, .rewrite = part_gate_up},
    {.name = "model.layers.*.mlp.experts.gate_up_proj_bias", .gguf = "blk.*.ffn_gate_up_exps.bias", .whole = true, .rewrite = part_gate_up},
    {.name = "model.layers.*.mlp.experts.down_proj", .gguf = "blk.*.ffn_down_exps.weight", .whole = true, .rewrite = turn_down},
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

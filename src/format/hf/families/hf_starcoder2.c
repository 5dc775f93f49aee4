// SPDX-License-Identifier: MIT
// StarCoder2. LayerNorm; an ungated feed-forward; biases.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key starcoder2_keys[] = {
    FRIT_HF_KEYS_NO_RMS_NORM,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
};

static const frit_hf_tensor starcoder2_tensors[] = {
    {.name = "model.layers.*.input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.norm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_MAYBE},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_MAYBE},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_MAYBE},
    {.name = "model.layers.*.self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_MAYBE},
    {.name = "model.layers.*.mlp.c_fc", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_MAYBE},
    {.name = "model.layers.*.mlp.c_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_MAYBE},
    {.gguf = "blk.*.ffn_gate", .none = true},
};
// clang-format on

const frit_hf_family frit_hf_starcoder2 = {
    .model_type = "starcoder2",
    .class_name = "Starcoder2ForCausalLM",
    .arch = "starcoder2",
    .act = "gelu_pytorch_tanh|gelu_new|gelu!",
    .has_windows = true,
    .shared = &frit_hf_decoder,
    .own = {starcoder2_keys, FRIT_COUNT(starcoder2_keys), starcoder2_tensors, FRIT_COUNT(starcoder2_tensors)},
};

// SPDX-License-Identifier: MIT
// GPT-2. Its matrices are stored the other way round.
#include "format/hf.h"

// clang-format off
static const frit_hf_key gpt2_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"n_positions", "context_length", FRIT_HF_TOKENS, 2048, 2048},
    {"n_embd", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"n_layer", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"n_inner", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_4_EMBD, FRIT_HF_4_EMBD},
    {"n_head", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {NULL, "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD, FRIT_HF_N_HEAD},
    {NULL, "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED, FRIT_HF_DIVIDED},
    {NULL, "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM, FRIT_HF_K_DIM},
    {NULL, "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_K_DIM, FRIT_HF_K_DIM},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
};

static const frit_hf_tensor gpt2_tensors[] = {
    {.name = "transformer.wte", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    {.name = "transformer.wpe", .gguf = "position_embd"},
    {.name = "transformer.h.*.ln_1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.attn.c_attn", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_transpose},
    {.name = "transformer.h.*.attn.c_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_transpose},
    {.name = "transformer.h.*.ln_2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.mlp.c_fc", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_transpose},
    {.name = "transformer.h.*.mlp.c_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_transpose},
    {.name = "transformer.ln_f", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
};
// clang-format on

const frit_hf_family frit_hf_gpt2 = {
    .model_type = "gpt2",
    .class_name = "GPT2LMHeadModel",
    .arch = "gpt2",
    .act = "gelu_new|gelu_pytorch_tanh|gelu_fast|gelu!",
    .act_name = "activation_function",
    .default_act = "gelu_new",
    .is_tied = true,
    .shared = &frit_hf_no_names,
    .own = {gpt2_keys, FRIT_COUNT(gpt2_keys), gpt2_tensors, FRIT_COUNT(gpt2_tensors)},
};

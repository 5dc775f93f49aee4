// SPDX-License-Identifier: MIT
// GPT-2. Its matrices are stored transposed.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key gpt2_keys[] = {
    FRIT_HF_KEYS_GPT2,
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
    .shared = &frit_hf_no_names,
    .own = {gpt2_keys, FRIT_COUNT(gpt2_keys), gpt2_tensors, FRIT_COUNT(gpt2_tensors)},
};

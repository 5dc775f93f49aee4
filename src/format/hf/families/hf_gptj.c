// SPDX-License-Identifier: MIT
// GPT-J. As Phi-2, but RoPE on neighbouring elements and attention without biases. GGUF has no name for it.
#include "format/hf/hf_rows.h"

static frit_status set_rotary(const frit_hf *hf)
{
    double dim = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "rotary_dim", FRIT_HF_WIDTH, &dim));
    return frit_hf_set_number(hf, "rope.dimension_count", FRIT_HF_WIDTH, dim);
}

// clang-format off
static const frit_hf_key gptj_keys[] = {
    FRIT_HF_KEYS_GPT2,
};

static const frit_hf_tensor gptj_tensors[] = {
    {.name = "transformer.wte", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .bias_if = FRIT_HF_MAYBE, .may_be_tied = true},
    {.name = "transformer.h.*.ln_1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.attn.q_proj", .gguf = "blk.*.attn_q"},
    {.name = "transformer.h.*.attn.k_proj", .gguf = "blk.*.attn_k"},
    {.name = "transformer.h.*.attn.v_proj", .gguf = "blk.*.attn_v"},
    {.name = "transformer.h.*.attn.out_proj", .gguf = "blk.*.attn_output"},
    {.name = "transformer.h.*.mlp.fc_in", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.mlp.fc_out", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.ln_f", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
};
// clang-format on

const frit_hf_family frit_hf_gptj = {
    .model_type = "gptj",
    .class_name = "GPTJForCausalLM",
    .arch = "phi2",
    .act = "gelu_new|gelu_pytorch_tanh|gelu!",
    .act_name = "activation_function",
    .rope_style = "neighbours",
    .more = set_rotary,
    .shared = &frit_hf_no_names,
    .own = {gptj_keys, FRIT_COUNT(gptj_keys), gptj_tensors, FRIT_COUNT(gptj_tensors)},
};

// SPDX-License-Identifier: MIT
// GPT-J. As Phi-2, but neighbours rotate and attention has no biases. GGUF has no name for it.
#include "format/hf.h"

static frit_status set_rotary(const frit_hf *hf)
{
    double dim = 64;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "rotary_dim", FRIT_HF_WIDTH, &dim));
    return frit_hf_set_number(hf, "rope.dimension_count", FRIT_HF_WIDTH, dim);
}

// clang-format off
static const frit_hf_key gptj_keys[] = {
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
    .default_act = "gelu_new",
    .rope_style = "neighbours",
    .more = set_rotary,
    .shared = &frit_hf_no_names,
    .own = {gptj_keys, FRIT_COUNT(gptj_keys), gptj_tensors, FRIT_COUNT(gptj_tensors)},
};

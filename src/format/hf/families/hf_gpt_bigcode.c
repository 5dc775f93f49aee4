// SPDX-License-Identifier: MIT
// StarCoder, SantaCoder. One KV head, or q, k and v interleaved by head.
#include "format/hf/hf_rows.h"

static frit_status set_heads(const frit_hf *hf)
{
    bool shares = true;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "multi_query", &shares));
    return frit_hf_set_number(hf, "attention.head_count_kv", FRIT_HF_HEADS,
                              shares ? 1 : frit_hf_written(hf, "attention.head_count"));
}

// clang-format off
static const frit_hf_key gpt_bigcode_keys[] = {
    FRIT_HF_KEYS_GPT2,
};

static const frit_hf_tensor gpt_bigcode_tensors[] = {
    {.name = "transformer.wte", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    {.name = "transformer.wpe", .gguf = "position_embd"},
    {.name = "transformer.h.*.ln_1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.attn.c_attn", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_ungroup_qkv},
    {.name = "transformer.h.*.attn.c_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.ln_2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.mlp.c_fc", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.mlp.c_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.ln_f", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
};
// clang-format on

const frit_hf_family frit_hf_gpt_bigcode = {
    .model_type = "gpt_bigcode",
    .class_name = "GPTBigCodeForCausalLM",
    .arch = "starcoder",
    .act = "gelu_pytorch_tanh|gelu_new|gelu!",
    .act_name = "activation_function",
    .more = set_heads,
    .shared = &frit_hf_no_names,
    .own = {gpt_bigcode_keys, FRIT_COUNT(gpt_bigcode_keys), gpt_bigcode_tensors, FRIT_COUNT(gpt_bigcode_tensors)},
};

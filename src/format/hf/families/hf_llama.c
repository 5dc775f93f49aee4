// SPDX-License-Identifier: MIT
// Llama 1-3, Mistral, Ministral 3, InternLM 3, IQuest-Coder, Helium and CWM. In GGUF most are "llama"; Mistral adds a
// sliding window. GGUF files of this architecture store the rows of Q and K permuted, for RoPE on neighbouring
// elements; of these folders only those of Helium do.
#include "format/hf/hf.h"

// clang-format off
static const frit_hf_key llama_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
};

static const frit_hf_tensor llama_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.name = "model.layers.*.mlp.gate_proj",    .gguf = "blk.*.ffn_gate",    .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.up_proj",      .gguf = "blk.*.ffn_up",      .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj",    .gguf = "blk.*.ffn_down",    .bias_if = "mlp_bias"},
};

static const frit_hf_tensor helium_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = "attention_bias"},
    {.name = "model.layers.*.mlp.gate_proj",    .gguf = "blk.*.ffn_gate", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.up_proj",      .gguf = "blk.*.ffn_up",   .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj",    .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
};

static const frit_hf_tensor bidirec_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.gguf = "output", .none = true},
};

static const frit_hf_key mistral_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"sliding_window", "attention.sliding_window", FRIT_HF_TOKENS, FRIT_HF_NO_KEY},
};
// clang-format on

const frit_hf_family frit_hf_llama = {
    .model_type = "llama",
    .class_name = "LlamaForCausalLM",
    .arch = "llama",
    .act = "silu|swish",
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {llama_keys, FRIT_COUNT(llama_keys), llama_tensors, FRIT_COUNT(llama_tensors)},
};

const frit_hf_family frit_hf_internlm3 = {
    .model_type = "internlm3",
    .class_name = "InternLM3ForCausalLM",
    .arch = "llama",
    .act = "silu|swish",
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {llama_keys, FRIT_COUNT(llama_keys), llama_tensors, FRIT_COUNT(llama_tensors)},
};

static frit_status add_bidirec(const frit_hf *hf)
{
    return frit_hf_add_flag(hf, "attention.causal", false);
}

// llama-nemotron-embed, whose class lies beside the files.
const frit_hf_family frit_hf_llama_bidirec = {
    .model_type = "llama_bidirec",
    .class_name = "LlamaBidirectionalModel",
    .arch = "llama-embed",
    .act = "silu|swish",
    .rope_style = "neox",
    .ignored = "lm_head.",
    .more = add_bidirec,
    .shared = &frit_hf_decoder,
    .own = {llama_keys, FRIT_COUNT(llama_keys), bidirec_tensors, FRIT_COUNT(bidirec_tensors)},
};

static frit_status expect_plain(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "clip_qkv", 0));
    return frit_hf_expect(hf, "use_sliding_window", 0);
}

const frit_hf_family frit_hf_iquestcoder = {
    .model_type = "iquestcoder",
    .class_name = "IQuestCoderForCausalLM",
    .arch = "llama",
    .act = "silu|swish",
    .rope_style = "neox",
    .more = expect_plain,
    .shared = &frit_hf_decoder,
    .own = {llama_keys, FRIT_COUNT(llama_keys), llama_tensors, FRIT_COUNT(llama_tensors)},
};

const frit_hf_family frit_hf_mistral = {
    .model_type = "mistral",
    .class_name = "MistralForCausalLM",
    .arch = "llama",
    .act = "silu|swish",
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {mistral_keys, FRIT_COUNT(mistral_keys), NULL, 0},
};

const frit_hf_family frit_hf_ministral3 = {
    .model_type = "ministral3",
    .class_name = "Ministral3ForCausalLM",
    .arch = "mistral3",
    .act = "silu|swish",
    .rope_style = "neox",
    .has_windows = true,
    .more = frit_hf_add_temperature,
    .shared = &frit_hf_decoder,
    .own = {llama_keys, FRIT_COUNT(llama_keys), NULL, 0},
};

const frit_hf_family frit_hf_helium = {
    .model_type = "helium",
    .class_name = "HeliumForCausalLM",
    .arch = "llama",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {llama_keys, FRIT_COUNT(llama_keys), helium_tensors, FRIT_COUNT(helium_tensors)},
};

const frit_hf_family frit_hf_cwm = {
    .model_type = "cwm",
    .class_name = "CwmForCausalLM",
    .arch = "llama",
    .needs_types = true,
    .act = "silu|swish",
    .rope_style = "neox",
    .has_windows = true,
    .shared = &frit_hf_decoder,
    .own = {llama_keys, FRIT_COUNT(llama_keys), NULL, 0},
};

// SPDX-License-Identifier: MIT
// Gemma 2 and 3, and EmbeddingGemma. Norms multiply by 1 + weight; GGUF stores the sum.
#include "format/hf/hf.h"

#include <math.h>

// The divisor of scores is the root of a key's value, possibly not the head size.
static frit_status add_scale(const frit_hf *hf)
{
    double scalar = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "query_pre_attn_scalar", FRIT_HF_FACTOR, &scalar));
    return frit_hf_add_number(hf, "attention.scale", FRIT_HF_FACTOR, 1 / sqrt(scalar));
}

static bool is_bidirectional(const json_t *config)
{
    return json_is_true(json_object_get(config, "use_bidirectional_attention"));
}

static bool is_causal(const json_t *config)
{
    return !is_bidirectional(config);
}

static frit_status add_embedding(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_add_flag(hf, "attention.causal", false));
    return add_scale(hf);
}

enum { NO_CAP = FRIT_HF_FALSE };   // 0: no cap; without the key, readers of GGUF assume the caps of published models

// clang-format off
static const frit_hf_key gemma2_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"attn_logit_softcapping", "attn_logit_softcapping", FRIT_HF_FACTOR, NO_CAP},
    {"final_logit_softcapping", "final_logit_softcapping", FRIT_HF_FACTOR, NO_CAP},
};

#define BOTH_TENSORS \
    {.name = "model.layers.*.input_layernorm", .gguf = "blk.*.attn_norm", .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm", .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.pre_feedforward_layernorm", .gguf = "blk.*.ffn_norm", .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.post_feedforward_layernorm", .gguf = "blk.*.post_ffw_norm", .rewrite = frit_hf_plus_one}, \
    {.name = "model.norm", .gguf = "output_norm", .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "attention_bias"}, \
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = "attention_bias"}, \
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = "attention_bias"}, \
    {.name = "model.layers.*.self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"}

static const frit_hf_tensor gemma2_tensors[] = {BOTH_TENSORS};

static const frit_hf_key gemma3_text_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"final_logit_softcapping", "final_logit_softcapping", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
};

#define GEMMA3_TENSORS \
    BOTH_TENSORS, \
    {.name = "model.layers.*.self_attn.q_norm", .gguf = "blk.*.attn_q_norm", .rewrite = frit_hf_plus_one}, \
    {.name = "model.layers.*.self_attn.k_norm", .gguf = "blk.*.attn_k_norm", .rewrite = frit_hf_plus_one}

static const frit_hf_tensor gemma3_text_tensors[] = {GEMMA3_TENSORS};
static const frit_hf_tensor gemma3_embedding_tensors[] = {GEMMA3_TENSORS, {.gguf = "output", .none = true}};
// clang-format on

const frit_hf_family frit_hf_gemma2 = {
    .model_type = "gemma2",
    .class_name = "Gemma2ForCausalLM",
    .arch = "gemma2",
    .act = "gelu_pytorch_tanh|gelu_new",
    .act_name = "hidden_activation",
    .has_windows = true,
    .window_period = 2,
    .more = add_scale,
    .shared = &frit_hf_decoder,
    .own = {gemma2_keys, FRIT_COUNT(gemma2_keys), gemma2_tensors, FRIT_COUNT(gemma2_tensors)},
};

const frit_hf_family frit_hf_gemma3_text = {
    .model_type = "gemma3_text",
    .class_name = "Gemma3ForCausalLM",
    .arch = "gemma3",
    .fits = is_causal,
    .act = "gelu_pytorch_tanh|gelu_new",
    .act_name = "hidden_activation",
    .has_windows = true,
    .window_period = 6,
    .more = add_scale,
    .shared = &frit_hf_decoder,
    .own = {gemma3_text_keys, FRIT_COUNT(gemma3_text_keys), gemma3_text_tensors, FRIT_COUNT(gemma3_text_tensors)},
};

// EmbeddingGemma.
const frit_hf_family frit_hf_gemma3_embedding = {
    .model_type = "gemma3_text",
    .class_name = "Gemma3TextModel",
    .arch = "gemma-embedding",
    .fits = is_bidirectional,
    .act = "gelu_pytorch_tanh|gelu_new",
    .act_name = "hidden_activation",
    .has_windows = true,
    .window_period = 6,
    .ignored = "lm_head.",
    .more = add_embedding,
    .shared = &frit_hf_decoder,
    .own = {gemma3_text_keys, FRIT_COUNT(gemma3_text_keys), gemma3_embedding_tensors,
            FRIT_COUNT(gemma3_embedding_tensors)},
};

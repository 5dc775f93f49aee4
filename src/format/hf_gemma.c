// SPDX-License-Identifier: MIT
// Gemma 1. Its norms multiply by 1 + weight; GGUF stores the sum.
#include "format/hf.h"

static frit_status add_one(frit_tensor *weight, frit_arena *arena)
{
    bool is_float =
        weight->dtype == FRIT_DTYPE_F32 || weight->dtype == FRIT_DTYPE_F16 || weight->dtype == FRIT_DTYPE_BF16;
    if (weight->n_dims != 1 || !is_float)
        return frit_fail(FRIT_E_FORMAT,
                         "tensor '%s' is not a vector of f32, f16 or bf16, as the weight of a norm must be",
                         weight->name);
    int64_t n = weight->shape[0];
    float *values = frit_arena_new(arena, float, (size_t)n);
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, weight->name);
    frit_tensor_decode_row(weight, 0, values);
    for (int64_t i = 0; i < n; i++) values[i] += 1;
    weight->dtype = FRIT_DTYPE_F32;
    weight->data = values;
    weight->n_bytes = (uint64_t)n * sizeof *values;
    return FRIT_OK;
}

static frit_status refuse_bidirectional(const frit_hf *hf)
{
    bool bidirectional = false;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "use_bidirectional_attention", &bidirectional));
    if (bidirectional)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: use_bidirectional_attention is set: not a model that generates text",
                         hf->path);
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key keys[] = {
    {"max_position_embeddings", "context_length",          FRIT_HF_TOKENS, 8192, FRIT_HF_NEEDED},
    {"num_key_value_heads",     "attention.head_count_kv", FRIT_HF_HEADS,  16,   FRIT_HF_NEEDED},
    {"head_dim",                "attention.key_length",    FRIT_HF_WIDTH,  256,  FRIT_HF_NEEDED},
};

static const frit_hf_tensor tensors[] = {
    {.name = "model.layers.*.input_layernorm",          .gguf = "blk.*.attn_norm",   .rewrite = add_one},
    {.name = "model.layers.*.self_attn.q_proj",         .gguf = "blk.*.attn_q",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.k_proj",         .gguf = "blk.*.attn_k",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.v_proj",         .gguf = "blk.*.attn_v",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.o_proj",         .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm",    .rewrite = add_one},
    {.name = "model.norm",                              .gguf = "output_norm",       .rewrite = add_one},
};
// clang-format on

const frit_hf_family frit_hf_gemma = {
    .model_type = "gemma",
    .class_name = "GemmaForCausalLM",
    .arch = "gemma",
    // Folders from Gemma's first weeks say "gelu" where the model was trained with the tanh form.
    .act = "gelu_pytorch_tanh|gelu_new|gelu",
    .is_tied = true,
    .shared = &frit_hf_decoder,
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)},
    .more = refuse_bidirectional,
};

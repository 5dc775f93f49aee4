// SPDX-License-Identifier: MIT
// GPT-J and CodeGen. As Phi-2, but RoPE on neighbouring elements and attention without biases. GGUF has no name for
// them.
#include "format/hf/hf_rows.h"
#include "format/rows.h"

enum { N_PARTS = 4 };   // CodeGen's fused matrix: q, v and k of each part of the heads

// The source of row i in the order all q, all k, all v.
static int64_t row_of_parts(const void *order, int64_t i)
{
    static const int64_t places[] = {0, 2, 1};
    const int64_t n = *(const int64_t *)order, size = n / N_PARTS, row = i % n;
    return (row / size * 3 + places[i / n]) * size + row % size;
}

static frit_status join_parts(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    int64_t *n = frit_arena_new(&hf->ckpt->arena, int64_t, 1);
    if (!n) return frit_fail_memory(sizeof *n, tensor->name);
    *n = (int64_t)frit_hf_written(hf, "embedding_length");
    if (tensor->n_dims != 2 || tensor->shape[0] != 3 * *n ||
        (int64_t)frit_hf_written(hf, "attention.head_count") % N_PARTS)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a matrix of %d parts, expected %lld rows and heads by %d",
                         tensor->name, (int)N_PARTS, (long long)(3 * *n), (int)N_PARTS);
    return frit_reorder(&hf->ckpt->arena, tensor, row_of_parts, n, tensor->shape[0], 0);
}

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

static const frit_hf_tensor codegen_tensors[] = {
    {.name = "transformer.wte", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .bias_if = FRIT_HF_MAYBE, .may_be_tied = true},
    {.name = "transformer.h.*.ln_1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.attn.qkv_proj", .gguf = "blk.*.attn_qkv", .rewrite = join_parts},
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
    .rope_style = "interleaved",
    .more = set_rotary,
    .shared = &frit_hf_no_names,
    .own = {gptj_keys, FRIT_COUNT(gptj_keys), gptj_tensors, FRIT_COUNT(gptj_tensors)},
};

const frit_hf_family frit_hf_codegen = {
    .model_type = "codegen",
    .class_name = "CodeGenForCausalLM",
    .arch = "phi2",
    .act = "gelu_new|gelu_pytorch_tanh|gelu!",
    .act_name = "activation_function",
    .rope_style = "interleaved",
    .more = set_rotary,
    .shared = &frit_hf_no_names,
    .own = {gptj_keys, FRIT_COUNT(gptj_keys), codegen_tensors, FRIT_COUNT(codegen_tensors)},
};

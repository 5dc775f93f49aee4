// SPDX-License-Identifier: MIT
// NeoBERT. The class beside the files computes the width of the feed-forward from intermediate_size, and stores q, k
// and v of each head together.
#include "format/hf/hf.h"

#include <math.h>

static frit_status add_neobert(const frit_hf *hf)
{
    const double n_ff = floor(2 * frit_hf_written(hf, "feed_forward_length") / 3);
    FRIT_TRY(frit_hf_expect(hf, "rope", 1));
    FRIT_TRY(frit_hf_expect(hf, "rms_norm", 1));
    FRIT_TRY(frit_hf_expect(hf, "ngpt", 0));
    FRIT_TRY(frit_hf_set_number(hf, "feed_forward_length", FRIT_HF_WIDTH, 8 * ceil(n_ff / 8)));
    return frit_hf_add_flag(hf, "attention.causal", false);
}

// clang-format off
static const frit_hf_key neobert_keys[] = {
    {"max_length", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {NULL, "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {NULL, "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {NULL, "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {NULL, "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {"norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor neobert_tensors[] = {
    {.name = "encoder", .gguf = "token_embd"},
    {.name = "transformer_encoder.*.attention_norm", .gguf = "blk.*.attn_norm"},
    {.name = "transformer_encoder.*.qkv", .gguf = "blk.*.attn_qkv", .rewrite = frit_hf_ungroup_qkv},
    {.name = "transformer_encoder.*.wo", .gguf = "blk.*.attn_output"},
    {.name = "transformer_encoder.*.ffn_norm", .gguf = "blk.*.ffn_norm"},
    {.name = "transformer_encoder.*.ffn.w12", .gguf = "blk.*.ffn_up"},
    {.name = "transformer_encoder.*.ffn.w3", .gguf = "blk.*.ffn_down"},
    {.name = "layer_norm", .gguf = "enc.output_norm"},
    {.gguf = "blk.*.attn_q", .none = true},
    {.gguf = "blk.*.attn_k", .none = true},
    {.gguf = "blk.*.attn_v", .none = true},
    {.gguf = "blk.*.ffn_gate", .none = true},
    {.gguf = "output_norm", .none = true},
    {.gguf = "output", .none = true},
};
// clang-format on

const frit_hf_family frit_hf_neobert = {
    .model_type = "neobert",
    .class_name = "NeoBERT",
    .arch = "neo-bert",
    .prefix = "model.",
    .ignored = "decoder.|dense.|classifier.",
    .act = "SwiGLU|swiglu",
    .shared = &frit_hf_decoder,
    .own = {neobert_keys, FRIT_COUNT(neobert_keys), neobert_tensors, FRIT_COUNT(neobert_tensors)},
    .more = add_neobert,
};

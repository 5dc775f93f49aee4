// SPDX-License-Identifier: MIT
// BitNet b1.58. Squared ReLU, where GGUF files of the architecture have SiLU.
#include "format/hf/hf_rows.h"

static frit_status complete(const frit_hf *hf)
{
    return frit_meta_add_text(&hf->ckpt->meta, "frit.act", "relu2");
}

// clang-format off
static const frit_hf_key bitnet_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
};

static const frit_hf_tensor bitnet_tensors[] = {
    {.name = "model.layers.*.self_attn.attn_sub_norm", .gguf = "blk.*.attn_sub_norm"},
    {.name = "model.layers.*.mlp.ffn_sub_norm", .gguf = "blk.*.ffn_sub_norm"},
};
// clang-format on

const frit_hf_family frit_hf_bitnet = {
    .model_type = "bitnet",
    .class_name = "BitNetForCausalLM",
    .arch = "bitnet",
    .act = "relu2",
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {bitnet_keys, FRIT_COUNT(bitnet_keys), bitnet_tensors, FRIT_COUNT(bitnet_tensors)},
};

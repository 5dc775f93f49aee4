// SPDX-License-Identifier: MIT
// EXAONE 4. Norms after attention and feed-forward; in models with windows, layers without one have no RoPE.
#include "format/hf/hf_rows.h"

static frit_status add_rope_layers(const frit_hf *hf)
{
    const frit_value *windows = frit_meta_find(&hf->ckpt->meta, "frit.attention.sliding_window");
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    uint32_t *still = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!still) return frit_fail_memory(n * sizeof *still, "the list of layers with RoPE");
    for (size_t i = 0; i < n; i++) still[i] = windows && frit_value_item_i64(windows, i) == 0;
    return frit_hf_add_list(hf, "frit.rope.none", still, n);
}

// clang-format off
static const frit_hf_key exaone4_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
};

static const frit_hf_tensor exaone4_tensors[] = {
    {.gguf = "blk.*.attn_norm", .none = true},
    {.gguf = "blk.*.ffn_norm", .none = true},
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.name = "model.layers.*.post_feedforward_layernorm", .gguf = "blk.*.post_ffw_norm"},
};
// clang-format on

const frit_hf_family frit_hf_exaone4 = {
    .model_type = "exaone4",
    .class_name = "Exaone4ForCausalLM",
    .arch = "exaone4",
    .act = "silu|swish",
    .has_windows = true,
    .window_period = 4,
    .more = add_rope_layers,
    .shared = &frit_hf_decoder,
    .own = {exaone4_keys, FRIT_COUNT(exaone4_keys), exaone4_tensors, FRIT_COUNT(exaone4_tensors)},
};

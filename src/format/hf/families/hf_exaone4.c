// SPDX-License-Identifier: MIT
// EXAONE 3, 4 and K-EXAONE. EXAONE 3 is a Llama; its published files have names like GPT-2's. EXAONE 4 has norms after
// attention and feed-forward; in models with windows, layers without one have no RoPE.
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

#define ROWS_EITHER(there, here, to) \
    {.name = there, .gguf = to, .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}, \
    {.name = here, .gguf = to, .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}
#define AT   "transformer.h.*"
#define HERE "model.layers.*"
static const frit_hf_tensor exaone_tensors[] = {
    ROWS_EITHER("transformer.wte", "model.embed_tokens", "token_embd"),
    ROWS_EITHER("transformer.ln_f", "model.norm", "output_norm"),
    ROWS_EITHER(AT ".ln_1", HERE ".input_layernorm", "blk.*.attn_norm"),
    ROWS_EITHER(AT ".attn.attention.q_proj", HERE ".self_attn.q_proj", "blk.*.attn_q"),
    ROWS_EITHER(AT ".attn.attention.k_proj", HERE ".self_attn.k_proj", "blk.*.attn_k"),
    ROWS_EITHER(AT ".attn.attention.v_proj", HERE ".self_attn.v_proj", "blk.*.attn_v"),
    ROWS_EITHER(AT ".attn.attention.out_proj", HERE ".self_attn.o_proj", "blk.*.attn_output"),
    ROWS_EITHER(AT ".ln_2", HERE ".post_attention_layernorm", "blk.*.ffn_norm"),
    ROWS_EITHER(AT ".mlp.c_fc_0", HERE ".mlp.gate_proj", "blk.*.ffn_gate"),
    ROWS_EITHER(AT ".mlp.c_fc_1", HERE ".mlp.up_proj", "blk.*.ffn_up"),
    ROWS_EITHER(AT ".mlp.c_proj", HERE ".mlp.down_proj", "blk.*.ffn_down"),
};
// clang-format on

const frit_hf_family frit_hf_exaone = {
    .model_type = "exaone",
    .class_name = "ExaoneForCausalLM",
    .arch = "exaone",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {exaone4_keys, FRIT_COUNT(exaone4_keys), exaone_tensors, FRIT_COUNT(exaone_tensors)},
};

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

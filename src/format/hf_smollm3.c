// SPDX-License-Identifier: MIT
// SmolLM3. As Llama; the configuration lists the layers with RoPE.
#include "format/hf_rows.h"

static frit_status add_rope_layers(const frit_hf *hf)
{
    const json_t *list = json_object_get(hf->config, "no_rope_layers");
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    if (!json_is_array(list)) return FRIT_OK;
    if (json_array_size(list) != n)
        return frit_fail(FRIT_E_FORMAT, "%s: no_rope_layers is not a list of %zu numbers, one for each layer", hf->path,
                         n);
    uint32_t *still = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!still) return frit_fail_memory(n * sizeof *still, "the list of layers with RoPE");
    // Despite the name no_rope_layers, 1 means a layer with RoPE.
    for (size_t i = 0; i < n; i++) still[i] = json_integer_value(json_array_get(list, i)) == 0;
    return frit_hf_add_list(hf, "frit.rope.none", still, n);
}

// clang-format off
static const frit_hf_key smollm3_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 32768, 32768},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, 4, FRIT_HF_N_HEAD},
};

static const frit_hf_tensor smollm3_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.mlp.gate_proj", .gguf = "blk.*.ffn_gate", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
};
// clang-format on

const frit_hf_family frit_hf_smollm3 = {
    .model_type = "smollm3",
    .class_name = "SmolLM3ForCausalLM",
    .arch = "smollm3",
    .act = "silu|swish",
    .is_tied = true,
    .more = add_rope_layers,
    .rope_style = "halves",
    .shared = &frit_hf_decoder,
    .own = {smollm3_keys, FRIT_COUNT(smollm3_keys), smollm3_tensors, FRIT_COUNT(smollm3_tensors)},
};

// SPDX-License-Identifier: MIT
// SmolLM3. As Llama; the configuration lists the layers with RoPE.
#include "format/hf/hf_rows.h"

static frit_status add_rope_layers(const frit_hf *hf)
{
    const json_t *list = json_object_get(hf->config, "no_rope_layers");
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    double interval = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "no_rope_layer_interval", FRIT_HF_LAYERS, &interval));
    if (list && !json_is_null(list) && json_array_size(list) != n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: no_rope_layers is not a list of %zu numbers, one for each layer",
                              hf->path, n);
    uint32_t *still = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!still) return frit_fail_memory(n * sizeof *still, "the list of layers with RoPE");
    // Despite the name no_rope_layers, 1 means a layer with RoPE.
    for (size_t i = 0; i < n; i++)
        still[i] = json_is_array(list) ? json_integer_value(json_array_get(list, i)) == 0
                                       : interval > 0 && (i + 1) % (size_t)interval == 0;
    return frit_hf_add_list(hf, "frit.rope.none", still, n);
}

// clang-format off
static const frit_hf_key smollm3_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
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
    .more = add_rope_layers,
    .rope_style = "halves",
    .shared = &frit_hf_decoder,
    .own = {smollm3_keys, FRIT_COUNT(smollm3_keys), smollm3_tensors, FRIT_COUNT(smollm3_tensors)},
};

// SPDX-License-Identifier: MIT
// Llama 4: the text side. Layers with RoPE attend within a chunk; some layers have experts, stored transposed.
#include "format/hf/hf_rows.h"

// If moe_layers lists the layers with experts, writes the distance between them; a list other than every n-th layer is
// refused.
static frit_status add_expert_step(const frit_hf *hf)
{
    const json_t *list = json_object_get(hf->config, "moe_layers");
    const size_t n = (size_t)frit_hf_written(hf, "block_count"), n_listed = json_array_size(list);
    if (!json_is_array(list)) return FRIT_OK;
    if (n_listed == 0) return frit_hf_set_number(hf, "expert_count", FRIT_HF_COUNT, 0);
    const json_int_t step = json_integer_value(json_array_get(list, 0)) + 1;
    for (size_t i = 0; i < n_listed; i++)
        if (step < 1 || n_listed != n / (size_t)step ||
            json_integer_value(json_array_get(list, i)) != (json_int_t)(i + 1) * step - 1)
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: moe_layers is not every n-th layer", hf->path);
    return frit_hf_set_number(hf, "interleave_moe_layer_step", FRIT_HF_LAYERS, (double)step);
}

// Layers with RoPE attend within chunks.
static frit_status add_chunks(const frit_hf *hf)
{
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    const json_t *types = json_object_get(hf->config, "layer_types");
    const frit_value *unrotated = frit_meta_find(&hf->ckpt->meta, "frit.rope.none");
    uint32_t *windows = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    double size = 0;
    if (!windows || !unrotated) return frit_fail_memory(n * sizeof *windows, "the chunks of layers");
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "attention_chunk_size", FRIT_HF_TOKENS, &size));
    for (size_t i = 0; i < n; i++) {
        const bool rotates = frit_value_item_i64(unrotated, i) == 0;
        const char *type = json_string_value(json_array_get(types, i));
        windows[i] = rotates ? (uint32_t)size : 0;
        if (type && (strcmp(type, "chunked_attention") == 0) != (windows[i] > 0))
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: layer_types[%zu] is '%.40s' in a layer with%s RoPE",
                                  hf->path, i, type, rotates ? "" : "out");
    }
    if (size > 0) FRIT_TRY(frit_hf_add_number(hf, "attention.chunk_size", FRIT_HF_TOKENS, size));
    return frit_hf_add_list(hf, "frit.attention.sliding_window", windows, n);
}

static frit_status complete(const frit_hf *hf)
{
    bool is_tuned = true;
    const bool norms = frit_hf_written(hf, "expert_count") != 128;   // published models with 128 experts have no norms
    FRIT_TRY(frit_hf_expect(hf, "use_qk_norm", norms));
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "attn_temperature_tuning", &is_tuned));
    if (!is_tuned) FRIT_TRY(frit_hf_set_number(hf, "attention.temperature_scale", FRIT_HF_MAGNITUDE, 0));
    FRIT_TRY(add_expert_step(hf));
    FRIT_TRY(frit_hf_add_rope_layers(hf));
    return add_chunks(hf);
}

// clang-format off
static const frit_hf_key llama4_text_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"intermediate_size_mlp", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"interleave_moe_layer_step", "interleave_moe_layer_step", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"attn_scale", "attention.temperature_scale", FRIT_HF_MAGNITUDE, FRIT_HF_NEEDED},
    {"floor_scale", "attention.temperature_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
};

#define AT "model.layers.*.feed_forward"
static const frit_hf_tensor llama4_text_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_DENSE_LAYERS(AT),
    FRIT_HF_ROWS_SHARED_EXPERT(AT ".shared_expert"),
    {.name = AT ".router", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    FRIT_HF_ROWS_TRANSPOSED_EXPERTS(AT),
};
// clang-format on

const frit_hf_family frit_hf_llama4_text = {
    .model_type = "llama4_text",
    .class_name = "Llama4ForCausalLM",
    .arch = "llama4",
    .ignored = "vision_model.|multi_modal_projector.",
    .act = "silu|swish",
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {llama4_text_keys, FRIT_COUNT(llama4_text_keys), llama4_text_tensors, FRIT_COUNT(llama4_text_tensors)},
};

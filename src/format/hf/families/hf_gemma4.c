// SPDX-License-Identifier: MIT
// Gemma 4 and EmbeddingGemma 2. Layers without a window have their own head size, with RoPE on part of each head: the
// other pairs are divided by a large factor in the tensor rope_freqs, as in GGUF files.
#include "format/hf/hf_rows.h"

#include <math.h>
#include <stdio.h>

static bool slides(const frit_hf *hf, size_t i)
{
    const json_t *types = json_object_get(hf->config, "layer_types");
    const char *type = json_string_value(json_array_get(types, i));
    if (i + 1 == (size_t)frit_hf_written(hf, "block_count")) return false;   // the last layer is full
    return type ? strcmp(type, "sliding_attention") == 0 : i % 6 != 5;
}

// Reads a number for layers without a window, from its own key or from per_layer_config of the first such layer.
static frit_status get_of_full(const frit_hf *hf, const char *global, const char *name, double *out)
{
    const json_t *config = json_object_get(hf->config, "per_layer_config");
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", global, FRIT_HF_WIDTH, out));
    const size_t n_layer = (size_t)frit_hf_written(hf, "block_count");
    for (size_t i = 0; i < n_layer; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        const json_t *one = json_object_get(config, key);
        if (!slides(hf, i) && one) return frit_hf_get_number(hf, one, "per_layer_config.", name, FRIT_HF_WIDTH, out);
    }
    return FRIT_OK;
}

static frit_status add_heads(const frit_hf *hf)
{
    const double dim = frit_hf_written(hf, "attention.key_length");
    double full = 0;
    FRIT_TRY(get_of_full(hf, "global_head_dim", "head_dim", &full));
    FRIT_TRY(frit_hf_add_number(hf, "attention.key_length_swa", FRIT_HF_WIDTH, dim));
    FRIT_TRY(frit_hf_add_number(hf, "attention.value_length_swa", FRIT_HF_WIDTH, dim));
    FRIT_TRY(frit_hf_add_number(hf, "rope.dimension_count_swa", FRIT_HF_WIDTH, dim));
    FRIT_TRY(frit_hf_set_number(hf, "attention.key_length", FRIT_HF_WIDTH, full));
    FRIT_TRY(frit_hf_set_number(hf, "attention.value_length", FRIT_HF_WIDTH, full));
    return frit_hf_set_number(hf, "rope.dimension_count", FRIT_HF_WIDTH, full);
}

// Adds the list of KV heads by layer.
static frit_status add_kv_heads(const frit_hf *hf)
{
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    const double n_kv = frit_hf_written(hf, "attention.head_count_kv");
    uint32_t *values = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    double full = n_kv;
    if (!values) return frit_fail_memory(n * sizeof *values, "the sizes of layers");
    FRIT_TRY(get_of_full(hf, "num_global_key_value_heads", "num_key_value_heads", &full));
    for (size_t i = 0; i < n; i++) values[i] = (uint32_t)(slides(hf, i) ? n_kv : full);
    return full != n_kv ? frit_hf_set_list(hf, "attention.head_count_kv", values) : FRIT_OK;
}

// Adds lists by layer: KV heads, and the wider feed-forward of layers that share KV.
static frit_status add_lists(const frit_hf *hf)
{
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    uint32_t *values = frit_arena_new(&hf->ckpt->arena, uint32_t, 2 * n);
    if (!values) return frit_fail_memory(2 * n * sizeof *values, "the sizes of layers");
    const double n_kv = frit_hf_written(hf, "attention.head_count_kv"),
                 n_ff = frit_hf_written(hf, "feed_forward_length");
    const double n_shared = frit_hf_written(hf, "attention.shared_kv_layers");
    double full = n_kv;
    bool is_wide = false, k_eq_v = false;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "use_double_wide_mlp", &is_wide));
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "attention_k_eq_v", &k_eq_v));
    if (k_eq_v) FRIT_TRY(get_of_full(hf, "num_global_key_value_heads", "num_key_value_heads", &full));
    for (size_t i = 0; i < n; i++) {
        values[i] = (uint32_t)(slides(hf, i) ? n_kv : full);
        values[n + i] = (uint32_t)(is_wide && (double)i >= (double)n - n_shared ? 2 * n_ff : n_ff);
    }
    if (full != n_kv) FRIT_TRY(frit_hf_set_list(hf, "attention.head_count_kv", values));
    return is_wide ? frit_hf_set_list(hf, "feed_forward_length", values + n) : FRIT_OK;
}

static frit_status add_pattern(const frit_hf *hf)
{
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    uint8_t *flags = frit_arena_new(&hf->ckpt->arena, uint8_t, n);
    if (!flags) return frit_fail_memory(n, "the kinds of layers");
    for (size_t i = 0; i < n; i++) flags[i] = slides(hf, i);
    return frit_hf_add_array(hf, "attention.sliding_window_pattern", FRIT_VALUE_BOOL, flags, n);
}

// Writes if rows of a picture see each other, in layers with a window, and whose per-layer embeddings they have.
static frit_status add_pictures(const frit_hf *hf)
{
    double padding = 0;
    const json_t *both = json_object_get(hf->config, "use_bidirectional_attention");
    const bool is_vision = json_is_string(both) && strcmp(json_string_value(both), "vision") == 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "pad_token_id", FRIT_HF_COUNT, &padding));
    if (padding > 0) FRIT_TRY(frit_hf_add_number(hf, "padding_token_id", FRIT_HF_COUNT, padding));
    return frit_hf_add_number(hf, "picture_attention", FRIT_HF_COUNT, is_vision);
}

static frit_status complete(const frit_hf *hf)
{
    double cap = 0, window = 0;
    const json_t *both = json_object_get(hf->config, "use_bidirectional_attention");
    if (json_is_string(both) && strcmp(json_string_value(both), "all") == 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: use_bidirectional_attention is 'all', expected a causal language model", hf->path);
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "final_logit_softcapping", FRIT_HF_FACTOR, &cap));
    FRIT_TRY(frit_hf_add_number(hf, "final_logit_softcapping", FRIT_HF_FACTOR,
                                cap));   // written even if 0: llama.cpp assumes 30 without the key
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "sliding_window", FRIT_HF_COUNT, &window));
    FRIT_TRY(frit_hf_add_number(hf, "attention.sliding_window", FRIT_HF_COUNT, window));
    FRIT_TRY(add_heads(hf));
    FRIT_TRY(add_lists(hf));
    FRIT_TRY(add_pattern(hf));
    FRIT_TRY(add_pictures(hf));
    return frit_hf_add_proportional(hf);
}

// clang-format off
static const frit_hf_key gemma4_text_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input", FRIT_HF_COUNT, FRIT_HF_FALSE},
    {"num_kv_shared_layers", "attention.shared_kv_layers", FRIT_HF_COUNT, FRIT_HF_FALSE},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NO_KEY},
    {"top_k_experts", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NO_KEY},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NO_KEY},
};

#define AT "model.layers.*"
static const frit_hf_tensor gemma4_text_tensors[] = {
    {.name = "model.embed_tokens_per_layer", .gguf = "per_layer_token_embd", .may_be_absent = true},
    {.name = "model.per_layer_model_projection", .gguf = "per_layer_model_proj", .may_be_absent = true},
    {.name = "model.per_layer_projection_norm", .gguf = "per_layer_proj_norm", .may_be_absent = true},
    FRIT_HF_ROWS_GEMMA_LAYERS(AT),
    {.name = AT ".post_feedforward_layernorm_1", .gguf = "blk.*.post_ffw_norm_1", .may_be_absent = true},
    {.name = AT ".pre_feedforward_layernorm_2", .gguf = "blk.*.pre_ffw_norm_2", .may_be_absent = true},
    {.name = AT ".post_feedforward_layernorm_2", .gguf = "blk.*.post_ffw_norm_2", .may_be_absent = true},
    {.name = AT ".router.proj", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = AT ".router.scale", .gguf = "blk.*.ffn_gate_inp.scale", .whole = true, .may_be_absent = true},
    {.name = AT ".router.per_expert_scale", .gguf = "blk.*.ffn_down_exps.scale", .whole = true, .may_be_absent = true},
    {.name = AT ".experts.gate_up_proj", .gguf = "blk.*.ffn_gate_up_exps.weight", .whole = true, .may_be_absent = true},
    {.name = AT ".experts.down_proj", .gguf = "blk.*.ffn_down_exps.weight", .whole = true, .may_be_absent = true},
    {.name = AT ".per_layer_input_gate", .gguf = "blk.*.inp_gate", .may_be_absent = true},
    {.name = AT ".per_layer_projection", .gguf = "blk.*.proj", .may_be_absent = true},
    {.name = AT ".post_per_layer_input_norm", .gguf = "blk.*.post_norm", .may_be_absent = true},
    {.name = AT ".layer_scalar", .gguf = "blk.*.layer_output_scale.weight", .whole = true, .may_be_absent = true},
};
// clang-format on

const frit_hf_family frit_hf_gemma4_text = {
    .model_type = "gemma4_text",
    .class_name = "Gemma4ForCausalLM",
    .arch = "gemma4",
    .act = "gelu_pytorch_tanh",
    .act_name = "hidden_activation",
    .has_windows = true,
    .window_period = 6,
    .is_proportional = true,
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {gemma4_text_keys, FRIT_COUNT(gemma4_text_keys), gemma4_text_tensors, FRIT_COUNT(gemma4_text_tensors)},
};

const frit_hf_family frit_hf_gemma4_unified_text = {
    .model_type = "gemma4_unified_text",
    .class_name = "Gemma4UnifiedForCausalLM",
    .arch = "gemma4",
    .act = "gelu_pytorch_tanh",
    .act_name = "hidden_activation",
    .has_windows = true,
    .window_period = 6,
    .is_proportional = true,
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {gemma4_text_keys, FRIT_COUNT(gemma4_text_keys), gemma4_text_tensors, FRIT_COUNT(gemma4_text_tensors)},
};

// ---------------------------------------------------------------------------------------- EmbeddingGemma 2

// The window of these files is the number of positions on either side, in GGUF it is that of both sides.
static frit_status add_embedding(const frit_hf *hf)
{
    double radius = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "sliding_window", FRIT_HF_TOKENS, &radius));
    FRIT_TRY(frit_meta_remove(&hf->ckpt->meta, "frit.attention.sliding_window"));
    FRIT_TRY(frit_hf_add_number(hf, "attention.sliding_window", FRIT_HF_TOKENS, 2 * radius));
    FRIT_TRY(frit_hf_add_flag(hf, "attention.causal", false));
    FRIT_TRY(add_heads(hf));
    FRIT_TRY(add_kv_heads(hf));
    return add_pattern(hf);
}

// clang-format off
static const frit_hf_key embedding_gemma2_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"embedding_dim", "embedding_length_out", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

static const frit_hf_tensor embedding_gemma2_tensors[] = {
    {.name = "model.embedding_projection", .gguf = "output_proj"},
    {.name = "model.ple.per_layer_model_projection", .gguf = "per_layer_model_proj"},
    {.name = "model.ple.per_layer_projection_norm", .gguf = "per_layer_proj_norm"},
    FRIT_HF_ROWS_GEMMA_LAYERS(AT),
    {.name = AT ".ple_block.per_layer_input_gate", .gguf = "blk.*.inp_gate"},
    {.name = AT ".ple_block.per_layer_projection", .gguf = "blk.*.proj"},
    {.name = AT ".ple_block.post_per_layer_input_norm", .gguf = "blk.*.post_norm"},
    {.name = AT ".layer_scalar", .gguf = "blk.*.layer_output_scale.weight", .whole = true, .may_be_absent = true},
    {.gguf = "output", .none = true},
};
// clang-format on

const frit_hf_family frit_hf_embedding_gemma2_text = {
    .model_type = "embedding_gemma2_text",
    .class_name = "EmbeddingGemma2TextModel",
    .arch = "embedding-gemma2",
    .act = "gelu_pytorch_tanh",
    .act_name = "hidden_activation",
    .has_windows = true,
    .window_period = 6,
    .more = add_embedding,
    .shared = &frit_hf_decoder,
    .own = {embedding_gemma2_keys, FRIT_COUNT(embedding_gemma2_keys), embedding_gemma2_tensors,
            FRIT_COUNT(embedding_gemma2_tensors)},
};

// SPDX-License-Identifier: MIT
// Qwen 2 / 2.5 and Qwen 3. Qwen 2 has biases on Q, K and V; Qwen 3 has QK norms per head instead.
// Both may have windows in their upper layers. MiMo is Qwen 2 with layers for multi-token prediction.
#include "format/hf/hf_rows.h"
#include "format/rows.h"

// clang-format off
static const frit_hf_key qwen2_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
};

static const frit_hf_tensor qwen2_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
};

static const frit_hf_key qwen3_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
};

static const frit_hf_tensor qwen3_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
};
// clang-format on

// ---------------------------------------------------------------------------------------- windows

// Sets the windows of layers: by layer_types, otherwise from layer max_window_layers on.
static frit_status fill_windows(const frit_hf *hf, uint32_t window, uint32_t *windows, size_t n_layer)
{
    const json_t *types = json_object_get(hf->config, "layer_types");
    if (!types || json_is_null(types)) {
        double n_full = 0;
        FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "max_window_layers", FRIT_HF_COUNT, &n_full));
        for (size_t i = 0; i < n_layer; i++) windows[i] = (double)i >= n_full ? window : 0;
        return FRIT_OK;
    }
    if (!json_is_array(types) || json_array_size(types) != n_layer)
        return frit_fail_file(FRIT_E_FORMAT, "%s: layer_types is not a list of %zu names, one for each layer", hf->path,
                              n_layer);
    for (size_t i = 0; i < n_layer; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        bool slides = type && strcmp(type, "sliding_attention") == 0;
        if (!slides && !(type && strcmp(type, "full_attention") == 0))
            return frit_fail_file(
                FRIT_E_UNSUPPORTED,
                "%s: layer_types[%zu] is '%.40s', only full_attention and sliding_attention are supported", hf->path, i,
                type ? type : "not text");
        windows[i] = slides ? window : 0;
    }
    return FRIT_OK;
}

// Writes windows under a key of frit: GGUF files of these architectures have attention.sliding_window without using it.
static frit_status add_windows(const frit_hf *hf)
{
    bool use_window = false;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "use_sliding_window", &use_window));
    if (!use_window || json_is_null(json_object_get(hf->config, "sliding_window"))) return FRIT_OK;
    double window = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "sliding_window", FRIT_HF_TOKENS, &window));
    size_t n_layer = (size_t)frit_hf_written(hf, "block_count");
    uint32_t *windows = frit_arena_new(&hf->ckpt->arena, uint32_t, n_layer);
    if (!windows) return frit_fail_memory(n_layer * sizeof *windows, "the windows of layers");
    FRIT_TRY(fill_windows(hf, (uint32_t)window, windows, n_layer));
    frit_value value = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_U32, n_layer, windows}};
    return frit_meta_add(&hf->ckpt->meta, frit_str_of("frit.attention.sliding_window"), value);
}

const frit_hf_family frit_hf_qwen2 = {
    .model_type = "qwen2",
    .class_name = "Qwen2ForCausalLM",
    .arch = "qwen2",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {qwen2_keys, FRIT_COUNT(qwen2_keys), qwen2_tensors, FRIT_COUNT(qwen2_tensors)},
    .more = add_windows,
};

// ---------------------------------------------------------------------------------------- MiMo

// MiMo's layer for multi-token prediction multiplies [h | embedding]; in GGUF the order is [embedding | h].
static int64_t other_half(const void *order, int64_t i)
{
    const int64_t n = *(const int64_t *)order;
    return i < n ? i + n : i - n;
}

static frit_status swap_halves(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    int64_t *n = frit_arena_new(&hf->ckpt->arena, int64_t, 1);
    if (!n) return frit_fail_memory(sizeof *n, tensor->name);
    *n = (int64_t)frit_hf_written(hf, "embedding_length");
    if (frit_tensor_width(tensor) != 2 * *n)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld columns, expected %lld", tensor->name,
                         (long long)frit_tensor_width(tensor), (long long)(2 * *n));
    return frit_reorder_columns(&hf->ckpt->arena, tensor, other_half, n);
}

// clang-format off
static const frit_hf_tensor mimo_tensors[] = {
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.input_proj",       .gguf = FRIT_HF_NEXT_PROJ, .may_be_absent = true, .rewrite = swap_halves},
    {.name = "model.layers.*.token_layernorm",  .gguf = "blk.*.nextn.enorm", .may_be_absent = true},
    {.name = "model.layers.*.hidden_layernorm", .gguf = "blk.*.nextn.hnorm", .may_be_absent = true},
    {.name = "model.layers.*.final_layernorm",  .gguf = "blk.*.nextn.shared_head_norm", .may_be_absent = true},
};
// clang-format on

static const frit_hf_prefix mimo_next[] = {
    {"model.mtp_layers.0.input_proj.", "model.layers.*.input_proj."},
    {"model.mtp_layers.0.", "model.layers.*."},
    {0},
};

const frit_hf_family frit_hf_mimo = {
    .model_type = "mimo",
    .class_name = "MiMoForCausalLM",
    .arch = "qwen2",
    .act = "silu|swish",
    .next = mimo_next,
    .shared = &frit_hf_decoder,
    .own = {qwen2_keys, FRIT_COUNT(qwen2_keys), mimo_tensors, FRIT_COUNT(mimo_tensors)},
    .more = add_windows,
};

const frit_hf_family frit_hf_qwen3 = {
    .model_type = "qwen3",
    .class_name = "Qwen3ForCausalLM",
    .arch = "qwen3",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {qwen3_keys, FRIT_COUNT(qwen3_keys), qwen3_tensors, FRIT_COUNT(qwen3_tensors)},
    .more = add_windows,
};

// SPDX-License-Identifier: MIT
// Gemma 3n, the text model. Norms use their weights unchanged.
#include "format/hf/hf_rows.h"
#include "format/rows.h"

#include <math.h>

static bool slides(const frit_hf *hf, size_t i)
{
    const char *type = json_string_value(json_array_get(json_object_get(hf->config, "layer_types"), i));
    return type ? strcmp(type, "sliding_attention") == 0 : i % 5 != 4;
}

// The quantile function of the normal distribution.
static double quantile(double p)
{
    double low = -10, high = 10;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        *(0.5 * erfc(-middle * sqrt(0.5)) < p ? &low : &high) = middle;
    }
    return low;
}

// Reads one number for all layers, or a list; `fallback` if the key is absent.
static frit_status get_of_layer(const frit_hf *hf, const char *name, frit_hf_kind kind, size_t i, double *out)
{
    const json_t *list = json_object_get(hf->config, name);
    if (!json_is_array(list)) return frit_hf_get_number(hf, hf->config, "", name, kind, out);
    const json_t *item = json_array_get(list, i);
    if (!json_is_number(item) || json_number_value(item) < 0 || json_number_value(item) > 1 << 24)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s[%zu] is not a number of 0 or more, one for each layer", hf->path,
                              name, i);
    *out = json_number_value(item);
    return FRIT_OK;
}

static frit_status add_lists(const frit_hf *hf)
{
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    frit_arena *arena = &hf->ckpt->arena;
    uint32_t *widths = frit_arena_new(arena, uint32_t, n);
    float *scales = frit_arena_new(arena, float, n);
    uint8_t *flags = frit_arena_new(arena, uint8_t, n);
    if (!widths || !scales || !flags) return frit_fail_memory(n * 9, "numbers of layers");
    for (size_t i = 0; i < n; i++) {
        const json_t *pattern = json_object_get(hf->config, "activation_sparsity_pattern");
        const bool is_default = !pattern || json_is_null(pattern);
        double width = 0, sparsity = is_default && n > 10 && i < 10 ? 0.95 : 0;
        FRIT_TRY(get_of_layer(hf, "intermediate_size", FRIT_HF_WIDTH, i, &width));
        FRIT_TRY(get_of_layer(hf, "activation_sparsity_pattern", FRIT_HF_MAGNITUDE, i, &sparsity));
        if (width < 1 || width != floor(width) || sparsity >= 1)
            return frit_fail_file(FRIT_E_FORMAT, "%s: layer %zu is %g wide and %g of it is to be cut", hf->path, i,
                                  width, sparsity);
        widths[i] = (uint32_t)width;
        scales[i] = sparsity > 0 ? (float)quantile(sparsity) : -INFINITY;
        flags[i] = slides(hf, i);
    }
    FRIT_TRY(frit_hf_add_array(hf, "feed_forward_length", FRIT_VALUE_U32, widths, n));
    FRIT_TRY(frit_hf_add_array(hf, "activation_sparsity_scale", FRIT_VALUE_F32, scales, n));
    return frit_hf_add_array(hf, "attention.sliding_window_pattern", FRIT_VALUE_BOOL, flags, n);
}

typedef struct rows_there {
    int64_t n;
} rows_there;

static int64_t row_or_first(const void *order, int64_t i)
{
    return i < ((const rows_there *)order)->n ? i : 0;
}

// Image and sound tokens, the last ones, have no per-layer embeddings in the folder; they get the embedding of token 0.
static frit_status complete_rows(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    const int64_t n_vocab = (int64_t)frit_hf_written(hf, "vocab_size");
    double n = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "vocab_size_per_layer_input", FRIT_HF_TOKENS, &n));
    if (is_bias || tensor->n_dims != 2 || (double)tensor->shape[0] != n || tensor->shape[0] >= n_vocab) return FRIT_OK;
    rows_there *there = frit_arena_new(&hf->ckpt->arena, rows_there, 1);
    if (!there) return frit_fail_memory(sizeof *there, tensor->name);
    there->n = tensor->shape[0];
    return frit_reorder(&hf->ckpt->arena, tensor, row_or_first, there, n_vocab, 0);
}

static frit_status complete(const frit_hf *hf)
{
    double window = 0, n_vocab = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "vocab_size_per_layer_input", FRIT_HF_TOKENS, &n_vocab));
    if (n_vocab > frit_hf_written(hf, "vocab_size"))
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: vocab_size_per_layer_input is %.0f, expected at most vocab_size, %.0f", hf->path,
                              n_vocab, frit_hf_written(hf, "vocab_size"));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "sliding_window", FRIT_HF_COUNT, &window));
    FRIT_TRY(frit_hf_add_number(hf, "attention.sliding_window", FRIT_HF_COUNT, window));
    return add_lists(hf);
}

// clang-format off
static const frit_hf_key gemma3n_text_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"none", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NO_KEY},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"final_logit_softcapping", "final_logit_softcapping", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_kv_shared_layers", "attention.shared_kv_layers", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"altup_num_inputs", "altup.num_inputs", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"altup_active_idx", "altup.active_idx", FRIT_HF_COUNT, FRIT_HF_FALSE},
    {"laurel_rank", "laurel_rank", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

#define AT "model.layers.*"
static const frit_hf_tensor gemma3n_text_tensors[] = {
    {.name = "model.altup_projections.@", .gguf = "altup_proj"},
    {.name = "model.altup_unembed_projections.@", .gguf = "altup_unembd_proj"},
    {.name = "model.embed_tokens_per_layer", .gguf = "per_layer_token_embd", .rewrite = complete_rows},
    {.name = "model.per_layer_model_projection", .gguf = "per_layer_model_proj"},
    {.name = "model.per_layer_projection_norm", .gguf = "per_layer_proj_norm"},
    FRIT_HF_ROWS_GEMMA_LAYERS(AT),
    {.name = AT ".altup.prediction_coefs", .gguf = "blk.*.altup_predict_coef"},
    {.name = AT ".altup.correction_coefs", .gguf = "blk.*.altup_correct_coef"},
    {.name = AT ".altup.modality_router", .gguf = "blk.*.altup_router"},
    {.name = AT ".altup.router_norm", .gguf = "blk.*.altup_router_norm"},
    {.name = AT ".altup.correct_output_scale", .gguf = "blk.*.altup_correct_scale.weight", .whole = true, .may_be_absent = true},
    {.name = AT ".laurel.linear_left", .gguf = "blk.*.laurel_l"},
    {.name = AT ".laurel.linear_right", .gguf = "blk.*.laurel_r"},
    {.name = AT ".laurel.post_laurel_norm", .gguf = "blk.*.laurel_post_norm"},
    {.name = AT ".per_layer_input_gate", .gguf = "blk.*.inp_gate"},
    {.name = AT ".per_layer_projection", .gguf = "blk.*.proj"},
    {.name = AT ".post_per_layer_input_norm", .gguf = "blk.*.post_norm"},
};
// clang-format on

const frit_hf_family frit_hf_gemma3n_text = {
    .model_type = "gemma3n_text",
    .class_name = "Gemma3nForCausalLM",
    .arch = "gemma3n",
    .act = "gelu_pytorch_tanh",
    .act_name = "hidden_activation",
    .has_windows = true,
    .window_period = 5,
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {gemma3n_text_keys, FRIT_COUNT(gemma3n_text_keys), gemma3n_text_tensors, FRIT_COUNT(gemma3n_text_tensors)},
};

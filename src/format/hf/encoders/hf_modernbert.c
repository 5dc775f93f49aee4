// SPDX-License-Identifier: MIT
// ModernBERT and its decoders. transformers 4 and 5 use different keys for windows and their RoPE base.
#include "format/hf/encoders/hf_encoders.h"
#include "format/hf/hf_rows.h"

#include <math.h>

// clang-format off
static const frit_hf_key modernbert_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    FRIT_HF_KEYS_EQUAL_HEADS,
    {"norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"local_attention", "attention.sliding_window", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"global_attn_every_n_layers", "attention.sliding_window_pattern", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
};

static const frit_hf_tensor modernbert_tensors[] = {
    {.name = "embeddings.tok_embeddings", .gguf = "token_embd"},
    {.name = "embeddings.norm", .gguf = "token_embd_norm", .bias_if = "norm_bias"},
    {.name = "layers.*.attn_norm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.name = "layers.*.attn.Wqkv", .gguf = "blk.*.attn_qkv", .bias_if = "attention_bias"},
    {.name = "layers.*.attn.Wo", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.name = "layers.*.mlp_norm", .gguf = "blk.*.ffn_norm", .bias_if = "norm_bias"},
    {.name = "layers.*.mlp.Wi", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "layers.*.mlp.Wo", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
    {.name = "final_norm", .gguf = "output_norm", .bias_if = "norm_bias"},
    {.name = "head.dense", .gguf = "cls", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.name = "head.norm", .gguf = "cls.norm", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.name = "classifier", .gguf = "cls.output", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    FRIT_HF_ROW_MASKED_LM("head.dense", "mlm.dense"),
    FRIT_HF_ROW_MASKED_LM("head.norm", "mlm.norm"),
    FRIT_HF_ROW_MASKED_LM("decoder", "output"),
};

static const frit_hf_tensor decoder_tensors[] = {
    {.name = "model.embeddings.tok_embeddings", .gguf = "token_embd"},
    {.name = "model.embeddings.norm", .gguf = "token_embd_norm", .bias_if = "norm_bias"},
    {.name = "model.layers.*.attn_norm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    FRIT_HF_ROWS_BIASED_QKV("model.layers.*.attn"),
    {.name = "model.layers.*.attn.Wo", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.name = "model.layers.*.mlp_norm", .gguf = "blk.*.ffn_norm", .bias_if = "norm_bias"},
    {.name = "model.layers.*.mlp.Wi", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.Wo", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
    {.name = "model.final_norm", .gguf = "output_norm", .bias_if = "norm_bias"},
    {.name = "lm_head.dense", .gguf = "mlm.dense", .bias_if = "classifier_bias"},
    {.name = "lm_head.norm", .gguf = "mlm.norm", .bias_if = "norm_bias"},
    {.name = "decoder", .gguf = "output", .may_be_tied = true},
    {.name = "decoder.bias", .gguf = "output.bias", .whole = true, .may_be_absent = true},
};
// clang-format on

// A list of layers that differs from the period is written under a key of frit.
static frit_status check_layers(const frit_hf *hf)
{
    const json_t *types = json_object_get(hf->config, "layer_types");
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    const size_t period = (size_t)frit_hf_written(hf, "attention.sliding_window_pattern");
    const uint32_t window = (uint32_t)frit_hf_written(hf, "attention.sliding_window");
    if (!types || json_is_null(types)) return FRIT_OK;
    if (!json_is_array(types) || json_array_size(types) != n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: layer_types is not a list of %zu names, one for each layer", hf->path,
                              n);
    uint32_t *windows = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!windows) return frit_fail_memory(n * sizeof *windows, "the windows of layers");
    bool differs = false;
    for (size_t i = 0; i < n; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool slides = type && strcmp(type, "sliding_attention") == 0;
        if (!slides && !(type && strcmp(type, "full_attention") == 0))
            return frit_fail_file(
                FRIT_E_UNSUPPORTED,
                "%s: layer_types[%zu] is '%.40s', only full_attention and sliding_attention are supported", hf->path, i,
                type ? type : "not text");
        windows[i] = slides ? window : 0;
        differs = differs || slides != (i % period != 0);
    }
    return differs ? frit_hf_add_list(hf, "frit.attention.sliding_window", windows, n) : FRIT_OK;
}

static frit_status add_modernbert(const frit_hf *hf)
{
    const char *act = "gelu";
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", "hidden_activation", &act));
    FRIT_TRY(frit_hf_add_text(hf, "hidden_activation", act));
    FRIT_TRY(frit_hf_add_flag(hf, "attention.causal", false));
    FRIT_TRY(frit_hf_expect_gelu(hf, "classifier_activation"));
    FRIT_TRY(frit_hf_expect_gelu(hf, "hidden_activation"));
    return check_layers(hf);
}

const frit_hf_family frit_hf_modernbert = {
    .model_type = "modernbert",
    .class_name = "ModernBertModel",
    .arch = "modern-bert",
    .prefix = "model.",
    .ignored = "head.|decoder.|classifier.",
    .act = "gelu|silu",
    .act_name = "hidden_activation",
    .has_windows = true,
    .shared = &frit_hf_no_names,
    .own = {modernbert_keys, FRIT_COUNT(modernbert_keys), modernbert_tensors, FRIT_COUNT(modernbert_tensors)},
    .more = add_modernbert,
};

// Windows reach to both sides in ModernBERT; a decoder's window has the positions before a token.
static frit_status add_decoder(const frit_hf *hf)
{
    const double window = floor(frit_hf_written(hf, "attention.sliding_window") / 2);
    FRIT_TRY(frit_hf_set_number(hf, "attention.sliding_window", FRIT_HF_TOKENS, window));
    FRIT_TRY(frit_hf_expect_text(hf, "classifier_activation", "gelu"));
    return check_layers(hf);
}

const frit_hf_family frit_hf_modernbert_decoder = {
    .model_type = "modernbert-decoder",
    .class_name = "ModernBertDecoderForCausalLM",
    .arch = "modernbert-decoder",
    .act = "gelu",
    .act_name = "hidden_activation",
    .has_windows = true,
    .shared = &frit_hf_no_names,
    .own = {modernbert_keys, FRIT_COUNT(modernbert_keys), decoder_tensors, FRIT_COUNT(decoder_tensors)},
    .more = add_decoder,
};

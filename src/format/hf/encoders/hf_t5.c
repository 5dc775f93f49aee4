// SPDX-License-Identifier: MIT
// T5, FLAN-T5, mT5 and UMT5, and their encoders alone. UMT5 has a table of biases in each layer, T5 in the first layers
// only.
#include "format/hf/hf.h"

#include <math.h>

// clang-format off
#define KEYS \
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"n_positions", "context_length", FRIT_HF_TOKENS, 512}, \
    {"d_model", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"num_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED}, \
    {"d_ff", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"num_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED}, \
    {"none", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD}, \
    {"d_kv", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"d_kv", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED}, \
    {"relative_attention_num_buckets", "attention.relative_buckets_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}

static const frit_hf_key encoder_keys[] = {KEYS};
static const frit_hf_key t5_keys[] = {
    KEYS,
    {"num_decoder_layers", "decoder_block_count", FRIT_HF_LAYERS, FRIT_HF_N_LAYER},
    {"decoder_start_token_id", "decoder_start_token_id", FRIT_HF_COUNT, FRIT_HF_NO_KEY},
};

#define ATTENTION(side, at, to) \
    {.name = side ".block.*.layer." at ".q", .gguf = to "_q"}, \
    {.name = side ".block.*.layer." at ".k", .gguf = to "_k"}, \
    {.name = side ".block.*.layer." at ".v", .gguf = to "_v"}, \
    {.name = side ".block.*.layer." at ".o", .gguf = to "_o"}
#define FEED_FORWARD(side, at, to) \
    {.name = side ".block.*.layer." at ".DenseReluDense.wi", .gguf = to "_up", .may_be_absent = true}, \
    {.name = side ".block.*.layer." at ".DenseReluDense.wi_0", .gguf = to "_gate", .may_be_absent = true}, \
    {.name = side ".block.*.layer." at ".DenseReluDense.wi_1", .gguf = to "_up", .may_be_absent = true}, \
    {.name = side ".block.*.layer." at ".DenseReluDense.wo", .gguf = to "_down"}, \
    {.name = side ".block.*.layer." at ".layer_norm", .gguf = to "_norm"}

#define ENCODER \
    {.name = "shared", .gguf = "token_embd"}, \
    ATTENTION("encoder", "0.SelfAttention", "enc.blk.*.attn"), \
    {.name = "encoder.block.*.layer.0.SelfAttention.relative_attention_bias", .gguf = "enc.blk.*.attn_rel_b", .may_be_absent = true}, \
    {.name = "encoder.block.*.layer.0.layer_norm", .gguf = "enc.blk.*.attn_norm"}, \
    FEED_FORWARD("encoder", "1", "enc.blk.*.ffn"), \
    {.name = "encoder.final_layer_norm", .gguf = "enc.output_norm"}

static const frit_hf_tensor encoder_tensors[] = {ENCODER};
static const frit_hf_tensor t5_tensors[] = {
    ENCODER,
    ATTENTION("decoder", "0.SelfAttention", "dec.blk.*.attn"),
    {.name = "decoder.block.*.layer.0.SelfAttention.relative_attention_bias", .gguf = "dec.blk.*.attn_rel_b", .may_be_absent = true},
    {.name = "decoder.block.*.layer.0.layer_norm", .gguf = "dec.blk.*.attn_norm"},
    ATTENTION("decoder", "1.EncDecAttention", "dec.blk.*.cross_attn"),
    {.name = "decoder.block.*.layer.1.layer_norm", .gguf = "dec.blk.*.cross_attn_norm"},
    FEED_FORWARD("decoder", "2", "dec.blk.*.ffn"),
    {.name = "decoder.final_layer_norm", .gguf = "dec.output_norm"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
};
// clang-format on

extern const frit_hf_family frit_hf_mt5;

static bool is_encoder(const json_t *config)
{
    const char *name = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    return name && strstr(name, "T5EncoderModel");
}

static frit_status add_encoder(const frit_hf *hf)
{
    double distance = 0;
    const char *act = NULL;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "relative_attention_max_distance", FRIT_HF_TOKENS, &distance));
    const frit_value reach = {.type = FRIT_VALUE_U32, .u = (uint64_t)distance};
    if (distance != 128)
        FRIT_TRY(frit_meta_add(&hf->ckpt->meta, frit_str_of("frit.attention.relative_distance"), reach));
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", "feed_forward_proj", &act));
    return strcmp(act, "gated-silu") == 0 ? frit_meta_add_text(&hf->ckpt->meta, "frit.act", "silu") : FRIT_OK;
}

static frit_status add_t5(const frit_hf *hf)
{
    bool tied = true, scaled;
    // The class reads null as absent.
    if (json_is_null(json_object_get(hf->config, "tie_word_embeddings")) &&
        json_object_set_new(hf->config, "tie_word_embeddings", json_true()) != 0)
        return frit_fail_memory(1, hf->path);
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "tie_word_embeddings", &tied));
    // transformers 4 scales the results of T5 and UMT5 if the output is tied, transformers 5 by scale_decoder_outputs.
    scaled = tied && hf->family != &frit_hf_mt5;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "scale_decoder_outputs", &scaled));
    if (scaled)
        FRIT_TRY(
            frit_hf_add_number(hf, "logit_scale", FRIT_HF_FACTOR, 1 / sqrt(frit_hf_written(hf, "embedding_length"))));
    return add_encoder(hf);
}

#define FAMILY(name, type, class)                                                                                  \
    const frit_hf_family frit_hf_##name##_encoder = {                                                              \
        .model_type = type,                                                                                        \
        .class_name = class "EncoderModel",                                                                        \
        .arch = "t5encoder",                                                                                       \
        .ignored = "encoder.embed_tokens.|decoder.|lm_head.",                                                      \
        .act = "relu|gated-gelu|gated-silu",                                                                       \
        .act_name = "feed_forward_proj",                                                                           \
        .fits = is_encoder,                                                                                        \
        .shared = &frit_hf_no_names,                                                                               \
        .own = {encoder_keys, FRIT_COUNT(encoder_keys), encoder_tensors, FRIT_COUNT(encoder_tensors)},             \
        .more = add_encoder,                                                                                       \
    };                                                                                                             \
    const frit_hf_family frit_hf_##name = {                                                                        \
        .model_type = type,                                                                                        \
        .class_name = class "ForConditionalGeneration",                                                            \
        .arch = "t5",                                                                                              \
        .ignored = "encoder.embed_tokens.|decoder.embed_tokens.|decoder.block.0.layer.1.EncDecAttention.relative", \
        .act = "relu|gated-gelu|gated-silu",                                                                       \
        .act_name = "feed_forward_proj",                                                                           \
        .shared = &frit_hf_no_names,                                                                               \
        .own = {t5_keys, FRIT_COUNT(t5_keys), t5_tensors, FRIT_COUNT(t5_tensors)},                                 \
        .more = add_t5,                                                                                            \
    }

FAMILY(t5, "t5", "T5");
FAMILY(mt5, "mt5", "MT5");
FAMILY(umt5, "umt5", "UMT5");

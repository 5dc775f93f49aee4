// SPDX-License-Identifier: MIT
// BART, Marian, mBART, M2M-100 (NLLB) and PEGASUS. Sinusoids are computed and become tables of positions, as learned
// ones, whose first two rows are for padding.
#include "format/hf/encoders/hf_encoders.h"

#include <math.h>

enum { FIRST_POSITION = 2 };

static frit_status cut_positions(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    return frit_hf_cut_positions(hf, tensor, FIRST_POSITION);
}

// clang-format off
static const frit_hf_key keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"d_model", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"encoder_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"decoder_layers", "decoder_block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"encoder_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {NULL, "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {NULL, "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {NULL, "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {NULL, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-5},
    {"decoder_start_token_id", "decoder_start_token_id", FRIT_HF_COUNT, FRIT_HF_NO_KEY},
};

#define ATTENTION(at, to) \
    {.name = at ".q_proj", .gguf = to "_q", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = at ".k_proj", .gguf = to "_k", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = at ".v_proj", .gguf = to "_v", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = at ".out_proj", .gguf = to "_o", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = at "_layer_norm", .gguf = to "_norm", .bias_if = FRIT_HF_ALWAYS}
#define SIDE(at, to) \
    ATTENTION(at ".self_attn", to ".attn"), \
    {.name = at ".fc1", .gguf = to ".ffn_up", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = at ".fc2", .gguf = to ".ffn_down", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = at ".final_layer_norm", .gguf = to ".ffn_norm", .bias_if = FRIT_HF_ALWAYS}
#define ALL \
    {.name = "model.shared", .gguf = "token_embd"}, \
    {.name = "lm_head", .gguf = "output", .may_be_tied = true}, \
    {.name = "final_logits_bias", .gguf = "output.bias", .whole = true, .may_be_absent = true}, \
    SIDE("model.encoder.layers.*", "enc.blk.*"), \
    SIDE("model.decoder.layers.*", "dec.blk.*"), \
    ATTENTION("model.decoder.layers.*.encoder_attn", "dec.blk.*.cross_attn")
#define LEARNED \
    {.name = "model.encoder.embed_positions", .gguf = "enc.position_embd", .rewrite = cut_positions}, \
    {.name = "model.decoder.embed_positions", .gguf = "dec.position_embd", .rewrite = cut_positions}, \
    {.name = "model.encoder.layernorm_embedding", .gguf = "enc.token_embd_norm", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = "model.decoder.layernorm_embedding", .gguf = "dec.token_embd_norm", .bias_if = FRIT_HF_ALWAYS}
#define FINAL_NORMS \
    {.name = "model.encoder.layer_norm", .gguf = "enc.output_norm", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = "model.decoder.layer_norm", .gguf = "dec.output_norm", .bias_if = FRIT_HF_ALWAYS}

static const frit_hf_tensor bart_tensors[] = {ALL, LEARNED};
static const frit_hf_tensor mbart_tensors[] = {ALL, LEARNED, FINAL_NORMS};
static const frit_hf_tensor marian_tensors[] = {ALL};
static const frit_hf_tensor m2m_tensors[] = {ALL, FINAL_NORMS};
static const frit_hf_tensor pegasus_tensors[] = {
    ALL,
    FINAL_NORMS,
    {.name = "model.encoder.embed_positions", .gguf = "enc.position_embd", .may_be_absent = true},
    {.name = "model.decoder.embed_positions", .gguf = "dec.position_embd", .may_be_absent = true},
};
// clang-format on

// ---------------------------------------------------------------------------------------- sinusoids

typedef struct sinusoids {
    double last;       // the pair i of n has the frequency 10000^(-i / last)
    int64_t first;     // position of the first row
    int64_t n_empty;   // rows of zeros before it
} sinusoids;

static frit_status add_table(const frit_hf *hf, const char *name, const sinusoids *s)
{
    const int64_t n = (int64_t)frit_hf_written(hf, "context_length"),
                  dim = (int64_t)frit_hf_written(hf, "embedding_length");
    if (dim % 2 != 0 || dim < 4 || n > 1 << 20)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: sinusoids of %lld numbers for %lld positions are not supported",
                              hf->path, (long long)dim, (long long)n);
    float *values = frit_arena_new(&hf->ckpt->arena, float, (size_t)(n * dim));
    if (!values) return frit_fail_memory((size_t)(n * dim) * sizeof *values, name);
    for (int64_t p = 0; p < n; p++)
        for (int64_t i = 0; i < dim / 2 && p >= s->n_empty; i++) {
            const double angle = (double)(s->first + p - s->n_empty) * pow(10000, -(double)i / s->last);
            values[p * dim + i] = (float)sin(angle);
            values[p * dim + dim / 2 + i] = (float)cos(angle);
        }
    return frit_checkpoint_add_tensor(hf->ckpt, &(frit_tensor){.name = name,
                                                               .dtype = FRIT_DTYPE_F32,
                                                               .n_dims = 2,
                                                               .shape = {n, dim, 1, 1},
                                                               .data = values,
                                                               .n_bytes = (uint64_t)(n * dim) * sizeof *values});
}

static frit_status add_sinusoids(const frit_hf *hf, const char *enc, const char *dec)
{
    const sinusoids s = {.last = frit_hf_written(hf, "embedding_length") / 2};
    FRIT_TRY(add_table(hf, enc, &s));
    return add_table(hf, dec, &s);
}

// M2M-100 counts positions from the padding token's id on, and padding itself has none: a decoder that starts with it
// has zeros first.
static frit_status add_m2m_sinusoids(const frit_hf *hf)
{
    double padding = 0, start = -1;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "pad_token_id", FRIT_HF_COUNT, &padding));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "decoder_start_token_id", FRIT_HF_COUNT, &start));
    sinusoids s = {.last = frit_hf_written(hf, "embedding_length") / 2 - 1, .first = (int64_t)padding + 1};
    FRIT_TRY(add_table(hf, "enc.position_embd.weight", &s));
    s.n_empty = start == padding;
    return add_table(hf, "dec.position_embd.weight", &s);
}

// ---------------------------------------------------------------------------------------- the families

// Adds the widths of feed-forwards: the encoder's layers, then the decoder's.
static frit_status add_widths(const frit_hf *hf)
{
    const size_t n_enc = (size_t)frit_hf_written(hf, "block_count");
    const size_t n = n_enc + (size_t)frit_hf_written(hf, "decoder_block_count");
    double enc = 0, dec = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "encoder_ffn_dim", FRIT_HF_WIDTH, &enc));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "decoder_ffn_dim", FRIT_HF_WIDTH, &dec));
    if (enc == dec) return frit_hf_add_number(hf, "feed_forward_length", FRIT_HF_WIDTH, enc);
    uint32_t *widths = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!widths) return frit_fail_memory(n * sizeof *widths, "the widths of layers");
    for (size_t i = 0; i < n; i++) widths[i] = (uint32_t)(i < n_enc ? enc : dec);
    return frit_hf_add_array(hf, "feed_forward_length", FRIT_VALUE_U32, widths, n);
}

static frit_status add_bart(const frit_hf *hf)
{
    bool is_scaled = false, is_shared = true;
    FRIT_TRY(frit_hf_expect(hf, "decoder_attention_heads", frit_hf_written(hf, "attention.head_count")));
    if (json_object_get(hf->config, "decoder_vocab_size"))
        FRIT_TRY(frit_hf_expect(hf, "decoder_vocab_size", frit_hf_written(hf, "vocab_size")));
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "share_encoder_decoder_embeddings", &is_shared));
    if (!is_shared)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: share_encoder_decoder_embeddings is false, only true is supported", hf->path);
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "scale_embedding", &is_scaled));
    if (is_scaled)
        FRIT_TRY(
            frit_hf_add_number(hf, "embedding_scale", FRIT_HF_FACTOR, sqrt(frit_hf_written(hf, "embedding_length"))));
    FRIT_TRY(add_widths(hf));
    return frit_hf_add_act(hf);
}

static frit_status add_marian(const frit_hf *hf)
{
    FRIT_TRY(add_bart(hf));
    return add_sinusoids(hf, "enc.position_embd.weight", "dec.position_embd.weight");
}

// Some files of PEGASUS have tables, which the class reads.
static frit_status add_pegasus(const frit_hf *hf)
{
    FRIT_TRY(add_bart(hf));
    return add_sinusoids(hf, "enc.position_sinusoids.weight", "dec.position_sinusoids.weight");
}

static frit_status add_m2m(const frit_hf *hf)
{
    FRIT_TRY(add_bart(hf));
    return add_m2m_sinusoids(hf);
}

#define FAMILY(name, type, class, to, names, function)                                                       \
    const frit_hf_family frit_hf_##name = {                                                                  \
        .model_type = type,                                                                                  \
        .class_name = class,                                                                                 \
        .arch = to,                                                                                          \
        .ignored = "model.encoder.embed_tokens.|model.decoder.embed_tokens.|model.encoder.embed_positions.|" \
                   "model.decoder.embed_positions.|classification_head.|qa_outputs.",                        \
        .act = FRIT_HF_ENCODER_ACTS,                                                                         \
        .act_name = "activation_function",                                                                   \
        .shared = &frit_hf_no_names,                                                                         \
        .own = {keys, FRIT_COUNT(keys), names, FRIT_COUNT(names)},                                           \
        .more = function,                                                                                    \
    }

FAMILY(bart, "bart", "BartForConditionalGeneration", "bart", bart_tensors, add_bart);
FAMILY(marian, "marian", "MarianMTModel", "bart", marian_tensors, add_marian);
FAMILY(mbart, "mbart", "MBartForConditionalGeneration", "mbart", mbart_tensors, add_bart);
FAMILY(m2m_100, "m2m_100", "M2M100ForConditionalGeneration", "mbart", m2m_tensors, add_m2m);
FAMILY(pegasus, "pegasus", "PegasusForConditionalGeneration", "mbart", pegasus_tensors, add_pegasus);

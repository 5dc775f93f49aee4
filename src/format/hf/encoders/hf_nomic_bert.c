// SPDX-License-Identifier: MIT
// nomic-embed-text, GTE and jina-embeddings v3: BERT with RoPE.
#include "format/hf/encoders/hf_encoders.h"
#include "format/rows.h"

typedef struct halves {
    int64_t n;   // rows of each
} halves;

static int64_t swapped_row(const void *order, int64_t i)
{
    const halves *h = order;
    return i < h->n ? i + h->n : i - h->n;
}

// GTE's files have up before gate, GGUF has gate before up.
static frit_status swap_halves(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    halves *h = frit_arena_new(&hf->ckpt->arena, halves, 1);
    if (!h) return frit_fail_memory(sizeof *h, tensor->name);
    if (is_bias || tensor->n_dims != 2 || tensor->shape[0] % 2 != 0)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a matrix of an even number of rows", tensor->name);
    h->n = tensor->shape[0] / 2;
    return frit_reorder(&hf->ckpt->arena, tensor, swapped_row, h, tensor->shape[0], 0);
}

// Published files have keys of their first code. Those that would change the result must have the values of the models
// that transformers' class runs.
static frit_status add_nomic(const frit_hf *hf)
{
    static const struct {
        const char *key;
        double value;
    } singles[] = {
        {"prenorm", 0},
        {"parallel_block", 0},
        {"use_rms_norm", 0},
        {"rotary_emb_fraction", 1},
        {"qkv_proj_bias", 0},
        {"mlp_fc1_bias", 0},
        {"mlp_fc2_bias", 0},
        {"rotary_emb_interleaved", 0},
        {"causal", 0},
        {"num_experts", 0},
        {"scale_attn_weights", 1},
        {"rotary_scaling_factor", 1},
        {"scale_attn_by_inverse_layer_idx", 0},
    };
    const char *act = "swiglu";
    for (size_t i = 0; i < FRIT_COUNT(singles); i++) FRIT_TRY(frit_hf_expect(hf, singles[i].key, singles[i].value));
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", "activation_function", &act));
    if (strcmp(act, "swiglu") != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: activation_function is '%.40s', only swiglu is supported",
                              hf->path, act);
    return frit_hf_add_encoder(hf);
}

// clang-format off
static const frit_hf_key nomic_keys[] = {
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {"head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {NULL, "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
};
static const frit_hf_key rope_keys[] = {
    {NULL, "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
};

#define EMBEDDINGS(norm) \
    {.name = "embeddings.word_embeddings", .gguf = "token_embd"}, \
    {.name = "embeddings.token_type_embeddings", .gguf = "token_types", .may_be_absent = true}, \
    {.name = norm, .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS}
#define NORMS(at, attention, feed_forward) \
    {.name = at attention, .gguf = "blk.*.attn_output_norm", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = at feed_forward, .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS}

static const frit_hf_tensor nomic_tensors[] = {
    EMBEDDINGS("emb_ln"),
    {.name = "encoder.layers.*.attn.Wqkv", .gguf = "blk.*.attn_qkv"},
    {.name = "encoder.layers.*.attn.out_proj", .gguf = "blk.*.attn_output"},
    {.name = "encoder.layers.*.mlp.fc11", .gguf = "blk.*.ffn_up"},
    {.name = "encoder.layers.*.mlp.fc12", .gguf = "blk.*.ffn_gate"},
    {.name = "encoder.layers.*.mlp.fc2", .gguf = "blk.*.ffn_down"},
    NORMS("encoder.layers.*", ".norm1", ".norm2"),
};

static const frit_hf_tensor jina_tensors[] = {
    EMBEDDINGS("emb_ln"),
    {.name = "encoder.layers.*.mixer.Wqkv", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layers.*.mixer.out_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layers.*.mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layers.*.mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    NORMS("encoder.layers.*", ".norm1", ".norm2"),
};

static const frit_hf_tensor gte_tensors[] = {
    EMBEDDINGS("embeddings.LayerNorm"),
    {.name = "encoder.layer.*.attention.qkv_proj", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.o_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.mlp.up_gate_proj", .gguf = "blk.*.ffn_up", .rewrite = swap_halves},
    {.name = "encoder.layer.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    NORMS("encoder.layer.*", ".attn_ln", ".mlp_ln"),
};
// clang-format on

const frit_hf_family frit_hf_nomic_bert = {
    .model_type = "nomic_bert",
    .class_name = "NomicBertModel",
    .arch = "nomic-bert",
    .prefix = "bert.",
    .ignored = "pooler.|cls.|lm_head.|classifier.",
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_encoder,
    .own = {nomic_keys, FRIT_COUNT(nomic_keys), nomic_tensors, FRIT_COUNT(nomic_tensors)},
    .more = add_nomic,
};

const frit_hf_family frit_hf_gte = {
    .model_type = "gte",
    .class_name = "GteModel",
    .arch = "nomic-bert",
    .prefix = "new.",
    .ignored = "pooler.|lm_head.|classifier.",
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_encoder,
    .own = {rope_keys, FRIT_COUNT(rope_keys), gte_tensors, FRIT_COUNT(gte_tensors)},
    .more = frit_hf_add_encoder,
};

const frit_hf_family frit_hf_jina_embeddings_v3 = {
    .model_type = "jina_embeddings_v3",
    .class_name = "JinaEmbeddingsV3Model",
    .arch = "jina-bert-v3",
    .prefix = "roberta.",
    .ignored = "pooler.|lm_head.|classifier.",
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_encoder,
    .own = {rope_keys, FRIT_COUNT(rope_keys), jina_tensors, FRIT_COUNT(jina_tensors)},
    .more = frit_hf_add_encoder,
};

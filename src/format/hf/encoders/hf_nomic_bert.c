// SPDX-License-Identifier: MIT
// nomic-embed-text, GTE and jina-embeddings v3: BERT with RoPE. Published files of GTE have the type "new", after a
// class beside them; transformers calls it gte.
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

frit_status frit_hf_swap_halves(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    halves *h = frit_arena_new(&hf->ckpt->arena, halves, 1);
    if (!h) return frit_fail_memory(sizeof *h, tensor->name);
    if (is_bias || tensor->n_dims != 2 || tensor->shape[0] % 2 != 0)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a matrix of an even number of rows", tensor->name);
    h->n = tensor->shape[0] / 2;
    return frit_reorder(&hf->ckpt->arena, tensor, swapped_row, h, tensor->shape[0], 0);
}

typedef struct single {   // a key that is supported with one value
    const char *key;
    double value;
} single;

static frit_status expect_all(const frit_hf *hf, const single *singles, size_t n)
{
    for (size_t i = 0; i < n; i++) FRIT_TRY(frit_hf_expect(hf, singles[i].key, singles[i].value));
    return FRIT_OK;
}

// Published files have keys of their first code. Those that would change the result must have the values of the
// published models.
static frit_status expect_nomic(const frit_hf *hf)
{
    static const single singles[] = {
        {"prenorm", 0},
        {"parallel_block", 0},
        {"use_rms_norm", 0},
        {"rotary_emb_fraction", 1},
        {"rotary_emb_interleaved", 0},
        {"causal", 0},
        {"scale_attn_weights", 1},
        {"rotary_scaling_factor", 1},
        {"scale_attn_by_inverse_layer_idx", 0},
    };
    return expect_all(hf, singles, FRIT_COUNT(singles));
}

static frit_status add_nomic(const frit_hf *hf)
{
    static const single singles[] = {{"qkv_proj_bias", 0}, {"mlp_fc1_bias", 0}, {"mlp_fc2_bias", 0}};
    FRIT_TRY(expect_nomic(hf));
    FRIT_TRY(expect_all(hf, singles, FRIT_COUNT(singles)));
    FRIT_TRY(frit_hf_expect_text(hf, "activation_function", "swiglu"));
    return frit_hf_add_encoder(hf);
}

static bool has_experts(const json_t *config)
{
    return json_number_value(json_object_get(config, "num_experts")) > 0;
}

static frit_status add_nomic_moe(const frit_hf *hf)
{
    static const single singles[] = {
        {"moe_normalize_expert_weights", 0}, {"num_shared_experts", 0}, {"expert_choice_router", 0}};
    FRIT_TRY(expect_nomic(hf));
    FRIT_TRY(expect_all(hf, singles, FRIT_COUNT(singles)));
    FRIT_TRY(frit_hf_expect_text(hf, "activation_function", "gelu"));
    if (json_object_set_new(hf->config, "hidden_act", json_string("gelu")) != 0)
        return frit_fail_memory(64, "a configuration");
    return frit_hf_add_encoder(hf);
}

// The experts' rows are those of one matrix.
static frit_status cut_experts(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    const int64_t n = (int64_t)frit_hf_written(hf, "expert_count");
    if (is_bias || tensor->n_dims != 2 || tensor->shape[0] % n != 0)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a matrix of a multiple of %lld rows", tensor->name,
                         (long long)n);
    tensor->n_dims = 3;
    tensor->shape[2] = tensor->shape[1];
    tensor->shape[1] = tensor->shape[0] / n;
    tensor->shape[0] = n;
    return FRIT_OK;
}

static frit_status transpose_experts(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    FRIT_TRY(cut_experts(hf, tensor, is_bias));
    return frit_transpose(&hf->ckpt->arena, tensor);
}

// The class of published files has keys which transformers' class lacks.
static frit_status add_new(const frit_hf *hf)
{
    static const single singles[] = {{"logn_attention_scale", 0}, {"logn_attention_clip1", 0}, {"pack_qkv", 1}};
    FRIT_TRY(expect_all(hf, singles, FRIT_COUNT(singles)));
    FRIT_TRY(frit_hf_expect_text(hf, "layer_norm_type", "layer_norm"));
    return frit_hf_add_encoder(hf);
}

// clang-format off
static const frit_hf_key nomic_keys[] = {
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {"head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {NULL, "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
};
static const frit_hf_key nomic_moe_keys[] = {
    {NULL, "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_top_k", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_every_n_layers", "moe_every_n_layers", FRIT_HF_COUNT, FRIT_HF_NEEDED},
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

static const frit_hf_tensor nomic_moe_tensors[] = {
    EMBEDDINGS("emb_ln"),
    {.name = "encoder.layers.*.attn.Wqkv", .gguf = "blk.*.attn_qkv", .bias_if = "qkv_proj_bias"},
    {.name = "encoder.layers.*.attn.out_proj", .gguf = "blk.*.attn_output", .bias_if = "qkv_proj_bias"},
    {.name = "encoder.layers.*.mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = "mlp_fc1_bias", .may_be_absent = true},
    {.name = "encoder.layers.*.mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = "mlp_fc2_bias", .may_be_absent = true},
    {.name = "encoder.layers.*.mlp.router.layer", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = "encoder.layers.*.mlp.experts.mlp.w1", .gguf = "blk.*.ffn_up_exps.weight", .whole = true, .may_be_absent = true, .rewrite = cut_experts},
    {.name = "encoder.layers.*.mlp.experts.mlp.w2", .gguf = "blk.*.ffn_down_exps.weight", .whole = true, .may_be_absent = true, .rewrite = transpose_experts},
    {.name = "encoder.layers.*.mlp.experts.bias", .gguf = "blk.*.ffn_exps.bias", .whole = true, .may_be_absent = true},
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
    {.name = "encoder.layer.*.mlp.up_gate_proj", .gguf = "blk.*.ffn_up", .rewrite = frit_hf_swap_halves},
    {.name = "encoder.layer.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    NORMS("encoder.layer.*", ".attn_ln", ".mlp_ln"),
    {.name = "pooler.dense", .gguf = "cls", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.name = "classifier", .gguf = "cls.output", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
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

const frit_hf_family frit_hf_nomic_bert_moe = {
    .model_type = "nomic_bert",
    .class_name = "NomicBertModel",
    .arch = "nomic-bert-moe",
    .prefix = "bert.",
    .ignored = "pooler.|cls.|lm_head.|classifier.",
    .act = FRIT_HF_ENCODER_ACTS,
    .fits = has_experts,
    .shared = &frit_hf_encoder,
    .own = {nomic_moe_keys, FRIT_COUNT(nomic_moe_keys), nomic_moe_tensors, FRIT_COUNT(nomic_moe_tensors)},
    .more = add_nomic_moe,
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

const frit_hf_family frit_hf_gte_new = {
    .model_type = "new",
    .class_name = "NewModel",
    .arch = "nomic-bert",
    .prefix = "new.",
    .ignored = "pooler.|lm_head.|classifier.",
    .act = FRIT_HF_ENCODER_ACTS,
    .has_ntk = true,
    .shared = &frit_hf_encoder,
    .own = {rope_keys, FRIT_COUNT(rope_keys), gte_tensors, FRIT_COUNT(gte_tensors)},
    .more = add_new,
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

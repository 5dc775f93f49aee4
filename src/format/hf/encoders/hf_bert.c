// SPDX-License-Identifier: MIT
// BERT, RoBERTa, XLM-RoBERTa and CamemBERT. The position tables of RoBERTa and its successors begin with rows for
// padding. In files of classes with a head, all other names have a prefix. Classifier heads are read as cls and
// cls.output, masked-LM heads as mlm.dense, mlm.norm and output.
#include "format/hf/encoders/hf_encoders.h"
#include "format/rows.h"

// clang-format off
static const frit_hf_key bert_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {NULL, "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {NULL, "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {NULL, "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor bert_tensors[] = {
    {.name = "embeddings.word_embeddings", .gguf = "token_embd"},
    {.name = "embeddings.token_type_embeddings", .gguf = "token_types"},
    {.name = "embeddings.position_embeddings", .gguf = "position_embd"},
    {.name = "embeddings.LayerNorm", .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.self.query", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.self.key", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.self.value", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.output.dense", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.output.LayerNorm", .gguf = "blk.*.attn_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.intermediate.dense", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.output.dense", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.output.LayerNorm", .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "pooler.dense", .gguf = "cls", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.name = "classifier", .gguf = "cls.output", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    FRIT_HF_ROW_MASKED_LM("cls.predictions.transform.dense", "mlm.dense"),
    FRIT_HF_ROW_MASKED_LM("cls.predictions.transform.LayerNorm", "mlm.norm"),
    {.name = "cls.predictions.decoder", .gguf = "output", .may_be_absent = true, .of_masked_lm = true},
    {.name = "cls.predictions.bias", .gguf = "output.bias", .whole = true, .may_be_absent = true, .of_masked_lm = true},
};
// clang-format on

const frit_hf_names frit_hf_encoder = {bert_keys, FRIT_COUNT(bert_keys), NULL, 0};
const frit_hf_names frit_hf_bert_names = {bert_keys, FRIT_COUNT(bert_keys), bert_tensors, FRIT_COUNT(bert_tensors)};

frit_status frit_hf_add_act(const frit_hf *hf)
{
    static const char *const names[][2] = {{"gelu_new", "gelu_tanh"},
                                           {"gelu_pytorch_tanh", "gelu_tanh"},
                                           {"relu", "relu"},
                                           {"silu", "silu"},
                                           {"swish", "silu"}};
    const char *act = "gelu";
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", hf->family->act_name ? hf->family->act_name : "hidden_act", &act));
    for (size_t i = 0; i < FRIT_COUNT(names); i++)
        if (strcmp(act, names[i][0]) == 0) return frit_meta_add_text(&hf->ckpt->meta, "frit.act", names[i][1]);
    return frit_meta_add_text(&hf->ckpt->meta, "frit.act", act);
}

frit_status frit_hf_add_encoder(const frit_hf *hf)
{
    const char *kind = "absolute";
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", "position_embedding_type", &kind));
    if (strcmp(kind, "absolute") != 0 && strcmp(kind, "rope") != 0 && strcmp(kind, "rotary") != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: position_embedding_type is '%.40s', only absolute is supported",
                              hf->path, kind);
    return frit_hf_add_bidirectional(hf);
}

frit_status frit_hf_add_bidirectional(const frit_hf *hf)
{
    double n_types = 0;
    FRIT_TRY(frit_hf_expect(hf, "is_decoder", 0));
    FRIT_TRY(frit_hf_expect(hf, "add_cross_attention", 0));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "type_vocab_size", FRIT_HF_COUNT, &n_types));
    const frit_value types = {.type = FRIT_VALUE_U32, .u = (uint64_t)n_types};
    FRIT_TRY(frit_meta_add(&hf->ckpt->meta, frit_str_of("tokenizer.ggml.token_type_count"), types));
    FRIT_TRY(frit_hf_add_flag(hf, "attention.causal", false));
    return frit_hf_add_act(hf);
}

frit_status frit_hf_expect_gelu(const frit_hf *hf, const char *name)
{
    const char *act = "gelu";
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", name, &act));
    if (!frit_hf_is_masked_lm(hf) || strcmp(act, "gelu") == 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: %s is '%.40s', a masked-LM head of this class is supported with gelu", hf->path, name,
                          act);
}

// ---------------------------------------------------------------------------------------- RoBERTa

frit_status frit_hf_skip_positions(const frit_hf *hf, double first)
{
    const double n_ctx = frit_hf_written(hf, "context_length") - first;
    if (n_ctx < 1)
        return frit_fail_file(
            FRIT_E_FORMAT,
            "%s: max_position_embeddings is %.0f, expected more than the %.0f rows for padding (pad_token_id)",
            hf->path, n_ctx + first, first);
    return frit_hf_set_number(hf, "context_length", FRIT_HF_TOKENS, n_ctx);
}

frit_status frit_hf_cut_positions(const frit_hf *hf, frit_tensor *tensor, double first)
{
    (void)hf;
    const int64_t n = (int64_t)first;
    if (tensor->n_dims != 2 || tensor->shape[0] <= n)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a table of more than %lld positions", tensor->name,
                         (long long)n);
    *tensor = frit_tensor_cut(tensor, n, tensor->shape[0] - n);
    return FRIT_OK;
}

// Positions start after the padding token's id.
static frit_status first_position(const frit_hf *hf, double *first)
{
    double padding = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "pad_token_id", FRIT_HF_COUNT, &padding));
    *first = padding + 1;
    return FRIT_OK;
}

static frit_status add_roberta(const frit_hf *hf)
{
    double first;
    FRIT_TRY(first_position(hf, &first));
    FRIT_TRY(frit_hf_skip_positions(hf, first));
    FRIT_TRY(frit_hf_expect_gelu(hf, "hidden_act"));
    return frit_hf_add_encoder(hf);
}

static frit_status cut_positions(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    double first;
    (void)is_bias;   // tables have none
    FRIT_TRY(first_position(hf, &first));
    return frit_hf_cut_positions(hf, tensor, first);
}

// clang-format off
static const frit_hf_key roberta_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
};

static const frit_hf_tensor roberta_tensors[] = {
    FRIT_HF_ROW_MASKED_LM("lm_head.dense", "mlm.dense"),
    FRIT_HF_ROW_MASKED_LM("lm_head.layer_norm", "mlm.norm"),
    {.name = "lm_head.decoder", .gguf = "output", .may_be_absent = true, .of_masked_lm = true},
    {.name = "lm_head.bias", .gguf = "output.bias", .whole = true, .may_be_absent = true, .of_masked_lm = true},
    {.name = "embeddings.position_embeddings", .gguf = "position_embd", .rewrite = cut_positions},
    {.name = "classifier.dense", .gguf = "cls", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.name = "classifier.out_proj", .gguf = "cls.output", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
};
// clang-format on

// Jina's class for XLM-RoBERTa, which lies beside the files, names tensors otherwise.
static bool is_flash(const json_t *config)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(config, "auto_map"), key, value)
    {
        const char *name = json_string_value(value);
        if (name && (strstr(name, "XLMRobertaFlash") || strstr(name, "xlm-roberta-flash"))) return true;
    }
    return false;
}

static frit_status add_flash(const frit_hf *hf)
{
    if (json_is_array(json_object_get(hf->config, "lora_adaptations")))
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: lora_adaptations: adapters inside the weights are not supported; the form of "
                              "jina-embeddings v3 for transformers (jina_embeddings_v3) is",
                              hf->path);
    FRIT_TRY(frit_hf_expect_text(hf, "position_embedding_type", "absolute"));
    return add_roberta(hf);
}

// clang-format off
static const frit_hf_tensor flash_tensors[] = {
    {.name = "emb_ln", .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.gguf = "blk.*.attn_q", .none = true},
    {.gguf = "blk.*.attn_k", .none = true},
    {.gguf = "blk.*.attn_v", .none = true},
    {.name = "encoder.layers.*.mixer.Wqkv", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layers.*.mixer.out_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layers.*.norm1", .gguf = "blk.*.attn_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layers.*.mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layers.*.mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layers.*.norm2", .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "embeddings.position_embeddings", .gguf = "position_embd", .rewrite = cut_positions},
    {.name = "classifier.dense", .gguf = "cls", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.name = "classifier.out_proj", .gguf = "cls.output", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.gguf = "mlm.dense", .none = true},
    {.gguf = "mlm.norm", .none = true},
    {.gguf = "output", .none = true},
    {.gguf = "output.bias", .none = true},
};
// clang-format on

#define NOT_READ \
    "pooler.|cls.predictions.|cls.seq_relationship.|lm_head.|embeddings.position_ids|embeddings.token_type_ids"

const frit_hf_family frit_hf_bert = {
    .model_type = "bert",
    .class_name = "BertModel",
    .arch = "bert",
    .prefix = "bert.",
    .ignored = NOT_READ,
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_bert_names,
    .more = frit_hf_add_encoder,
};

const frit_hf_family frit_hf_roberta = {
    .model_type = "roberta",
    .class_name = "RobertaModel",
    .arch = "bert",
    .prefix = "roberta.",
    .ignored = NOT_READ,
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_bert_names,
    .own = {roberta_keys, FRIT_COUNT(roberta_keys), roberta_tensors, FRIT_COUNT(roberta_tensors)},
    .more = add_roberta,
};

// jina-reranker v2.
const frit_hf_family frit_hf_xlm_roberta_flash = {
    .model_type = "xlm-roberta",
    .class_name = "XLMRobertaModel",
    .arch = "bert",
    .prefix = "roberta.",
    .ignored = NOT_READ,
    .act = FRIT_HF_ENCODER_ACTS,
    .fits = is_flash,
    .shared = &frit_hf_bert_names,
    .own = {roberta_keys, FRIT_COUNT(roberta_keys), flash_tensors, FRIT_COUNT(flash_tensors)},
    .more = add_flash,
};

const frit_hf_family frit_hf_xlm_roberta = {
    .model_type = "xlm-roberta",
    .class_name = "XLMRobertaModel",
    .arch = "bert",
    .prefix = "roberta.",
    .ignored = NOT_READ,
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_bert_names,
    .own = {roberta_keys, FRIT_COUNT(roberta_keys), roberta_tensors, FRIT_COUNT(roberta_tensors)},
    .more = add_roberta,
};

const frit_hf_family frit_hf_camembert = {
    .model_type = "camembert",
    .class_name = "CamembertModel",
    .arch = "bert",
    .prefix = "roberta.",
    .ignored = NOT_READ,
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_bert_names,
    .own = {roberta_keys, FRIT_COUNT(roberta_keys), roberta_tensors, FRIT_COUNT(roberta_tensors)},
    .more = add_roberta,
};

// SPDX-License-Identifier: MIT
// Folders of embedders as their makers publish them, which are read by classes beside the files. Each is made of a
// model with a reference result: its weights get the published names, shapes and orders.
#include "arch/published.h"
#include "format/hf/hf.h"

#include <math.h>

// ------------------------------------------------------------------------------- results

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    memcpy((float *)ctx + i * n, values, n * sizeof *values);
}

static float *run(const golden *g, const char *path, const char *cpu)
{
    const frit_engine_options options = {
        .n_ctx = 64, .n_threads = 2, .cache_type_k = "f32", .cache_type_v = "f32", .cpu = cpu};
    float *rows = calloc(g->n_tokens * g->n_vocab, sizeof *rows);
    const frit_push_options push = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = keep_row, .row_ctx = rows};
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, g->tokens, g->n_tokens, &push));
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return rows;
}

static double error_of(const golden *g, const char *path, const char *cpu)
{
    float *rows = run(g, path, cpu);
    const double error = nmse(rows, g->logits, g->n_tokens * g->n_vocab);
    free(rows);
    return error;
}

static golden load(const char *name)
{
    size_t i = 0;
    while (i < N_GOLDENS && strcmp(golden_name(i), name) != 0) i++;
    assert_true(i < N_GOLDENS);
    return golden_load(i);
}

static void check(const published *p, const float *routed_bias)
{
    golden g = load(p->source);
    char folder[600], file[700];
    snprintf(folder, sizeof folder, "%s", temp_path("published"));
    snprintf(file, sizeof file, "%s.gguf", folder);
    write_published(folder, g.path, p, routed_bias);
    const double plain = error_of(&g, folder, "reference"), fast = error_of(&g, folder, NULL);
    assert_ok(frit_convert(folder, file, &(frit_convert_options){.type = "f32", .n_threads = 2}));
    const double converted = error_of(&g, file, NULL);
    print_message("%-18s reference %.1e, fast %.1e, converted %.1e\n", p->source, plain, fast, converted);
    assert_true(plain < 1e-6 && fast < 1e-6 && converted < 1e-6);
    remove(file);
    remove_folder(folder);
    golden_free(&g);
}

// ------------------------------------------------------------------------------- models

#define BERT_EMBEDDINGS                                                                     \
    {"bert.embeddings.word_embeddings.weight", "token_embd.weight", NULL, NULL},            \
        {"bert.embeddings.token_type_embeddings.weight", "token_types.weight", NULL, NULL}, \
        {"bert.embeddings.LayerNorm.weight", "token_embd_norm.weight", NULL, NULL},         \
    {                                                                                       \
        "bert.embeddings.LayerNorm.bias", "token_embd_norm.bias", NULL, NULL                \
    }
#define BOTH(there, here)                          \
    {there ".weight", here ".weight", NULL, NULL}, \
    {                                              \
        there ".bias", here ".bias", NULL, NULL    \
    }
#define JINA_ATTENTION                                                            \
    BOTH("bert.encoder.layer.*.attention.self.query", "blk.*.attn_q"),            \
        BOTH("bert.encoder.layer.*.attention.self.key", "blk.*.attn_k"),          \
        BOTH("bert.encoder.layer.*.attention.self.value", "blk.*.attn_v"),        \
        BOTH("bert.encoder.layer.*.attention.output.dense", "blk.*.attn_output"), \
        BOTH("bert.encoder.layer.*.attention.output.LayerNorm", "blk.*.attn_output_norm")
#define JINA_CONFIG                                                                                                 \
    "{\"architectures\": [\"JinaBertForMaskedLM\"], \"model_type\": \"bert\", \"hidden_act\": \"gelu\","            \
    " \"position_embedding_type\": \"alibi\", \"feed_forward_type\": \"geglu\", \"hidden_size\": 64,"               \
    " \"intermediate_size\": 96, \"layer_norm_eps\": 1e-05, \"max_position_embeddings\": 256, \"vocab_size\": 128," \
    " \"num_attention_heads\": 4, \"num_hidden_layers\": 3, \"pad_token_id\": 0, \"type_vocab_size\": 2,"           \
    " \"emb_pooler\": \"mean\"}"

// clang-format off
static const published jina_v2 = {
    "jina-bert-v2", JINA_CONFIG,
    {
        BERT_EMBEDDINGS, JINA_ATTENTION,
        {"bert.encoder.layer.*.mlp.gated_layers.weight", "blk.*.ffn_gate.weight", "blk.*.ffn_up.weight", NULL},
        BOTH("bert.encoder.layer.*.mlp.wo", "blk.*.ffn_down"),
        BOTH("bert.encoder.layer.*.mlp.layernorm", "blk.*.layer_output_norm"),
    },
};

static const published jina_code = {
    "jina-bert-v2-code", JINA_CONFIG,
    {
        BERT_EMBEDDINGS, JINA_ATTENTION,
        BOTH("bert.encoder.layer.*.attention.self.layer_norm_q", "blk.*.attn_q_norm"),
        BOTH("bert.encoder.layer.*.attention.self.layer_norm_k", "blk.*.attn_k_norm"),
        BOTH("bert.encoder.layer.*.layer_norm_1", "blk.*.attn_norm_2"),
        {"bert.encoder.layer.*.mlp.up_gated_layer.weight", "blk.*.ffn_up.weight", "blk.*.ffn_gate.weight", NULL},
        BOTH("bert.encoder.layer.*.mlp.down_layer", "blk.*.ffn_down"),
        BOTH("bert.encoder.layer.*.layer_norm_2", "blk.*.layer_output_norm"),
    },
};

static const published nomic_moe = {
    "nomic-bert-moe",
    "{\"activation_function\": \"gelu\", \"architectures\": [\"NomicBertModel\"], \"causal\": false,"
    " \"expert_choice_router\": false, \"layer_norm_epsilon\": 1e-05, \"max_trained_positions\": 256,"
    " \"mlp_fc1_bias\": true, \"mlp_fc2_bias\": true, \"model_type\": \"nomic_bert\", \"moe_every_n_layers\": 2,"
    " \"moe_normalize_expert_weights\": false, \"moe_top_k\": 2, \"n_embd\": 64, \"n_head\": 4, \"n_inner\": 96,"
    " \"n_layer\": 4, \"n_positions\": 256, \"num_experts\": 4, \"num_shared_experts\": 0, \"pad_token_id\": 1,"
    " \"parallel_block\": false, \"prenorm\": false, \"qkv_proj_bias\": true, \"rotary_emb_base\": 10000,"
    " \"rotary_emb_fraction\": 1.0, \"rotary_emb_interleaved\": false, \"rotary_scaling_factor\": null,"
    " \"scale_attn_weights\": true, \"type_vocab_size\": 2, \"use_rms_norm\": null, \"vocab_size\": 128}",
    {
        {"embeddings.word_embeddings.weight", "token_embd.weight", NULL, NULL},
        {"embeddings.token_type_embeddings.weight", "token_types.weight", NULL, NULL},
        BOTH("emb_ln", "token_embd_norm"),
        BOTH("encoder.layers.*.attn.Wqkv", "blk.*.attn_qkv"),
        BOTH("encoder.layers.*.attn.out_proj", "blk.*.attn_output"),
        BOTH("encoder.layers.*.norm1", "blk.*.attn_output_norm"),
        BOTH("encoder.layers.*.norm2", "blk.*.layer_output_norm"),
        BOTH("encoder.layers.*.mlp.fc1", "blk.*.ffn_up"),
        BOTH("encoder.layers.*.mlp.fc2", "blk.*.ffn_down"),
        {"encoder.layers.*.mlp.router.layer.weight", "blk.*.ffn_gate_inp.weight", NULL, NULL},
        {"encoder.layers.*.mlp.experts.mlp.w1", "blk.*.ffn_up_exps.weight", NULL, join_experts},
        {"encoder.layers.*.mlp.experts.mlp.w2", "blk.*.ffn_down_exps.weight", NULL, transpose_experts},
    },
};

// An intermediate_size of 144 makes a feed-forward of 96.
static const published neobert = {
    "neo-bert",
    "{\"architectures\": [\"NeoBERTLMHead\"], \"dim_head\": 16, \"hidden_size\": 64, \"intermediate_size\": 144,"
    " \"max_length\": 256, \"model_type\": \"neobert\", \"norm_eps\": 1e-05, \"num_attention_heads\": 4,"
    " \"num_hidden_layers\": 3, \"pad_token_id\": 0, \"vocab_size\": 128}",
    {
        {"model.encoder.weight", "token_embd.weight", NULL, NULL},
        {"model.transformer_encoder.*.attention_norm.weight", "blk.*.attn_norm.weight", NULL, NULL},
        {"model.transformer_encoder.*.qkv.weight", "blk.*.attn_qkv.weight", NULL, group_by_head},
        {"model.transformer_encoder.*.wo.weight", "blk.*.attn_output.weight", NULL, NULL},
        {"model.transformer_encoder.*.ffn_norm.weight", "blk.*.ffn_norm.weight", NULL, NULL},
        {"model.transformer_encoder.*.ffn.w12.weight", "blk.*.ffn_up.weight", NULL, NULL},
        {"model.transformer_encoder.*.ffn.w3.weight", "blk.*.ffn_down.weight", NULL, NULL},
        {"model.layer_norm.weight", "enc.output_norm.weight", NULL, NULL},
    },
};

#define LLAMA_SIZES \
    " \"vocab_size\": 128, \"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 3," \
    " \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"max_position_embeddings\": 256," \
    " \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0, \"bos_token_id\": 1, \"eos_token_id\": 2}"
#define LLAMA_NAMES(prefix) \
    {prefix "embed_tokens.weight", "token_embd.weight", NULL, NULL}, \
    {prefix "norm.weight", "output_norm.weight", NULL, NULL}, \
    {prefix "layers.*.input_layernorm.weight", "blk.*.attn_norm.weight", NULL, NULL}, \
    {prefix "layers.*.self_attn.q_proj.weight", "blk.*.attn_q.weight", NULL, unpair}, \
    {prefix "layers.*.self_attn.k_proj.weight", "blk.*.attn_k.weight", NULL, unpair}, \
    {prefix "layers.*.self_attn.v_proj.weight", "blk.*.attn_v.weight", NULL, NULL}, \
    {prefix "layers.*.self_attn.o_proj.weight", "blk.*.attn_output.weight", NULL, NULL}, \
    {prefix "layers.*.post_attention_layernorm.weight", "blk.*.ffn_norm.weight", NULL, NULL}, \
    {prefix "layers.*.mlp.gate_proj.weight", "blk.*.ffn_gate.weight", NULL, NULL}, \
    {prefix "layers.*.mlp.up_proj.weight", "blk.*.ffn_up.weight", NULL, NULL}, \
    {prefix "layers.*.mlp.down_proj.weight", "blk.*.ffn_down.weight", NULL, NULL}

static const published llama_bidirec = {
    "llama-embed",
    "{\"architectures\": [\"LlamaBidirectionalModel\"], \"model_type\": \"llama_bidirec\", \"pooling\": \"avg\"," LLAMA_SIZES,
    {LLAMA_NAMES("")},
};

static const published llama_not_causal = {
    "llama-embed",
    "{\"architectures\": [\"LlamaModel\"], \"model_type\": \"llama\", \"is_causal\": false," LLAMA_SIZES,
    {LLAMA_NAMES("")},
};
// clang-format on

// The first two rows of the table of positions are for padding.
static void add_padding(matrix *m)
{
    const size_t n = (size_t)(n_rows_of(m) * width_of(m)), n_padding = (size_t)(2 * width_of(m));
    float *values = calloc(n + n_padding, sizeof *values);
    memcpy(values + n_padding, m->values, n * sizeof *values);
    free(m->values);
    m->values = values;
    m->shape[0] += 2;
}

// clang-format off
#define QKV(part) \
    {"roberta.encoder.layers.*.mixer.Wqkv." part, "blk.*.attn_q." part, "blk.*.attn_k." part "|blk.*.attn_v." part, NULL}
static const published jina_reranker = {
    "xlm-roberta",
    "{\"architectures\": [\"XLMRobertaModel\"], \"model_type\": \"xlm-roberta\", \"hidden_act\": \"gelu\","
    " \"auto_map\": {\"AutoConfig\": \"configuration_xlm_roberta.XLMRobertaFlashConfig\"}, \"hidden_size\": 64,"
    " \"intermediate_size\": 96, \"layer_norm_eps\": 1e-12, \"max_position_embeddings\": 258, \"vocab_size\": 512,"
    " \"num_attention_heads\": 4, \"num_hidden_layers\": 3, \"pad_token_id\": 1, \"type_vocab_size\": 2,"
    " \"position_embedding_type\": \"absolute\", \"use_flash_attn\": true}",
    {
        {"roberta.embeddings.word_embeddings.weight", "token_embd.weight", NULL, NULL},
        {"roberta.embeddings.token_type_embeddings.weight", "token_types.weight", NULL, NULL},
        {"roberta.embeddings.position_embeddings.weight", "position_embd.weight", NULL, add_padding},
        BOTH("roberta.emb_ln", "token_embd_norm"),
        QKV("weight"), QKV("bias"),
        BOTH("roberta.encoder.layers.*.mixer.out_proj", "blk.*.attn_output"),
        BOTH("roberta.encoder.layers.*.norm1", "blk.*.attn_output_norm"),
        BOTH("roberta.encoder.layers.*.mlp.fc1", "blk.*.ffn_up"),
        BOTH("roberta.encoder.layers.*.mlp.fc2", "blk.*.ffn_down"),
        BOTH("roberta.encoder.layers.*.norm2", "blk.*.layer_output_norm"),
    },
};
// clang-format on

static void jina_reranker_v2_has_the_type_of_xlm_roberta(void **state)
{
    (void)state;
    check(&jina_reranker, NULL);
}

// The rows that the whole model, whose logits are those of transformers, gives for a source.
static float *encode(const golden *g)
{
    const frit_engine_options options = {.n_ctx = 64, .n_threads = 2, .cache_type_k = "f32", .cache_type_v = "f32"};
    float *rows = calloc(g->n_source * WIDTH, sizeof *rows);
    const frit_push_options push = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = keep_row, .row_ctx = rows};
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_model_open(&model, g->path, NULL));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_encode(session, g->source, g->n_source, &push));
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return rows;
}

static void the_encoder_of_t5_alone_gives_the_rows_of_the_whole(void **state)
{
    (void)state;
    static const char *const names[] = {"t5", "t5-gated", "umt5", "mt5"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        golden g = load(names[i]);
        float *wanted = encode(&g);
        assert_true(wanted[0] != 0 && wanted[(g.n_source - 1) * WIDTH] != wanted[0]);
        golden alone = {.tokens = g.source, .n_tokens = g.n_source, .n_vocab = WIDTH, .logits = wanted};
        char folder[600], path[700];
        size_t n;
        snprintf(folder, sizeof folder, "%s", temp_path("encoder"));
        mkdir(folder, 0700);
        snprintf(path, sizeof path, "%s/config.json", g.path);
        json_t *config = json_load_file(path, 0, NULL);
        json_object_set_new(config, "architectures", json_pack("[s]", i < 2 ? "T5EncoderModel" : "UMT5EncoderModel"));
        assert_int_equal(json_dump_file(config, in_folder(folder, "config.json"), 0), 0);
        snprintf(path, sizeof path, "%s/model.safetensors", g.path);
        char *bytes = read_file(path, &n);
        write_file(in_folder(folder, "model.safetensors"), bytes, n);
        const double error = error_of(&alone, folder, NULL);
        print_message("%-18s %.1e\n", names[i], error);
        assert_true(error < 1e-9);
        free(bytes);
        free(wanted);
        json_decref(config);
        remove_folder(folder);
        golden_free(&g);
    }
}

static void jina_embeddings_v2_has_the_type_of_bert(void **state)
{
    (void)state;
    check(&jina_v2, NULL);
    check(&jina_code, NULL);
}

static void experts_of_nomic_are_rows_of_one_matrix(void **state)
{
    (void)state;
    check(&nomic_moe, NULL);
}

// A norm over the elements follows the sum, so that equal numbers in all elements change nothing, and others do.
static void a_bias_of_the_sum_of_nomics_experts_is_added(void **state)
{
    (void)state;
    float bias[WIDTH];
    for (int i = 0; i < WIDTH; i++) bias[i] = 2;
    check(&nomic_moe, bias);
    golden g = load(nomic_moe.source);
    char folder[600];
    snprintf(folder, sizeof folder, "%s", temp_path("published"));
    bias[7] = -2;
    write_published(folder, g.path, &nomic_moe, bias);
    assert_true(error_of(&g, folder, NULL) > 1e-3);
    remove_folder(folder);
    golden_free(&g);
}

static void neobert_stores_q_k_and_v_of_each_head_together(void **state)
{
    (void)state;
    check(&neobert, NULL);
}

static void language_models_become_bidirectional_by_their_configuration(void **state)
{
    (void)state;
    check(&llama_bidirec, NULL);
    check(&llama_not_causal, NULL);
}

// Folders of GTE and of nomic-embed-text differ from the references in their configuration alone.
static void configurations_of_older_classes_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *source, *config;
    } cases[] = {
        {"gte",
         "{\"architectures\": [\"NewModel\"], \"model_type\": \"new\", \"hidden_act\": \"gelu\", \"hidden_size\": 64,"
         " \"intermediate_size\": 96, \"layer_norm_eps\": 1e-12, \"layer_norm_type\": \"layer_norm\","
         " \"logn_attention_clip1\": false, \"logn_attention_scale\": false, \"max_position_embeddings\": 256,"
         " \"num_attention_heads\": 4, \"num_hidden_layers\": 3, \"pack_qkv\": true, \"pad_token_id\": 3,"
         " \"position_embedding_type\": \"rope\", \"rope_scaling\": {\"factor\": 1.0, \"type\": \"ntk\"},"
         " \"rope_theta\": 160000, \"type_vocab_size\": 1, \"unpad_inputs\": false, \"vocab_size\": 512}"},
        {"nomic_bert",
         "{\"activation_function\": \"swiglu\", \"architectures\": [\"NomicBertModel\"], \"causal\": false,"
         " \"layer_norm_epsilon\": 1e-12, \"mlp_fc1_bias\": false, \"mlp_fc2_bias\": false,"
         " \"model_type\": \"nomic_bert\", \"n_embd\": 64, \"n_head\": 4, \"n_inner\": 96, \"n_layer\": 3,"
         " \"n_positions\": 256, \"num_experts\": 0, \"pad_token_id\": 3, \"prenorm\": false,"
         " \"qkv_proj_bias\": false, \"rotary_emb_base\": 1000, \"rotary_emb_fraction\": 1.0,"
         " \"rotary_scaling_factor\": null, \"type_vocab_size\": 2, \"vocab_size\": 512}"},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        golden g = load(cases[i].source);
        char folder[600], weights[700];
        size_t n;
        snprintf(folder, sizeof folder, "%s", temp_path("published"));
        mkdir(folder, 0700);
        snprintf(weights, sizeof weights, "%s/model.safetensors", g.path);
        char *bytes = read_file(weights, &n);
        write_file(in_folder(folder, "model.safetensors"), bytes, n);
        write_file(in_folder(folder, "config.json"), cases[i].config, strlen(cases[i].config));
        const double error = error_of(&g, folder, NULL);
        print_message("%-18s %.1e\n", cases[i].source, error);
        assert_true(error < 1e-6);
        free(bytes);
        remove_folder(folder);
        golden_free(&g);
    }
}

// ------------------------------------------------------------------------------- configurations

static const char *const gte =
    "{\"model_type\": \"new\", \"hidden_act\": \"gelu\", \"hidden_size\": 64, \"intermediate_size\": 96,"
    " \"max_position_embeddings\": 256, \"num_attention_heads\": 4, \"num_hidden_layers\": 3,"
    " \"rope_theta\": 20000, \"rope_scaling\": {\"factor\": 8.0, \"type\": \"ntk\"}, \"vocab_size\": 512}";

// Reads a changed configuration without weights; an accepted one fails by the first missing tensor.
static frit_status read_config(frit_hf *hf, frit_checkpoint **ckpt, const char *config, const char *changes)
{
    json_t *changed = json_loads(changes, 0, NULL);
    assert_ok(frit_checkpoint_new(ckpt, "folder"));
    *hf = (frit_hf){.ckpt = *ckpt, .path = "config.json", .config = json_loads(config, 0, NULL)};
    assert_true(changed && hf->config);
    json_object_update((json_t *)(uintptr_t)hf->config, changed);
    json_decref(changed);
    return frit_hf_read_config(hf);
}

// The published class multiplies the base by the factor f, and divides frequencies by f^(2 / head size).
static void ntk_scaling_is_a_greater_base_and_linear_scaling(void **state)
{
    (void)state;
    frit_hf hf;
    frit_checkpoint *ckpt;
    frit_str type;
    assert_ok(read_config(&hf, &ckpt, gte, "{}"));
    assert_ok(frit_meta_get_text(&ckpt->meta, "nomic-bert.rope.scaling.type", &type, NULL));
    assert_true(frit_str_is(type, "linear"));
    const double base = frit_hf_written(&hf, "rope.freq_base"), factor = frit_hf_written(&hf, "rope.scaling.factor");
    for (int i = 0; i < HEAD / 2; i++) {
        const double wanted = pow(8 * 20000.0, -2.0 * i / HEAD) / pow(8, 2.0 / HEAD);
        assert_float_equal(pow(base, -2.0 * i / HEAD) / factor, wanted, 1e-6 * wanted);
    }
    json_decref(hf.config);
    frit_checkpoint_close(ckpt);
}

static void configurations_that_change_the_result_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *const *config;
        const char *changes, *sentence;
    } cases[] = {
        {&jina_v2.config, "{\"feed_forward_type\": \"reglu\"}", "feed_forward_type is 'reglu', a model with ALiBi"},
        {&jina_v2.config, "{\"feed_forward_type\": null}", "feed_forward_type is 'original'"},
        {&jina_v2.config, "{\"feed_forward_type\": 3}", "feed_forward_type is 3, expected text"},
        {&jina_v2.config, "{\"hidden_act\": \"relu\"}", "hidden_act is 'relu'"},
        {&gte, "{\"rope_scaling\": {\"type\": \"ntk\"}}", "rope_scaling.factor is missing"},
        {&gte, "{\"rope_scaling\": {\"type\": \"ntk\", \"factor\": -1}}", "rope_scaling.factor is -1"},
        {&gte, "{\"rope_scaling\": {\"type\": \"ntk\", \"factor\": 2, \"mixed_b\": 0.6}}",
         "rope_scaling.mixed_b is a number, only null"},
        {&gte, "{\"model_type\": \"gte\"}", "rope_scaling.rope_type is 'ntk'"},
        {&gte, "{\"logn_attention_scale\": true}", "logn_attention_scale is 1"},
        {&gte, "{\"pack_qkv\": false}", "pack_qkv is 0"},
        {&gte, "{\"layer_norm_type\": \"rms_norm\"}", "layer_norm_type is 'rms_norm'"},
        {&nomic_moe.config, "{\"moe_normalize_expert_weights\": true}", "moe_normalize_expert_weights is 1"},
        {&nomic_moe.config, "{\"num_shared_experts\": 1}", "num_shared_experts is 1"},
        {&nomic_moe.config, "{\"activation_function\": \"swiglu\"}", "activation_function is 'swiglu'"},
        {&nomic_moe.config, "{\"moe_top_k\": null}", "moe_top_k is null"},
        {&nomic_moe.config, "{\"prenorm\": true}", "prenorm is 1"},
        {&nomic_moe.config, "{\"num_experts\": 0}", "qkv_proj_bias is 1"},
        {&neobert.config, "{\"rope\": false}", "rope is 0"},
        {&neobert.config, "{\"ngpt\": true}", "ngpt is 1"},
        {&neobert.config, "{\"hidden_act\": \"gelu\"}", "hidden_act is 'gelu'"},
        {&neobert.config, "{\"num_attention_heads\": 0}", "num_attention_heads is 0"},
        {&jina_reranker.config, "{\"lora_adaptations\": [\"separation\"]}", "lora_adaptations: adapters inside"},
        {&jina_reranker.config, "{\"position_embedding_type\": \"rotary\"}", "position_embedding_type is 'rotary'"},
        {&llama_not_causal.config, "{\"model_type\": \"mistral\", \"sliding_window\": 16}", "without sliding windows"},
        {&llama_not_causal.config,
         "{\"model_type\": \"qwen2\", \"sliding_window\": 16, \"use_sliding_window\": true, \"max_window_layers\": 1}",
         "without sliding windows"},
        {&gte, "{\"is_causal\": 1}", "is_causal is 1, expected true or false"},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_hf hf;
        frit_checkpoint *ckpt;
        const frit_status status = read_config(&hf, &ckpt, *cases[i].config, cases[i].changes);
        if (status == FRIT_OK || !strstr(frit_error(), cases[i].sentence))
            fail_msg("%s: %d, '%s'", cases[i].changes, (int)status, status ? frit_error() : "");
        json_decref(hf.config);
        frit_checkpoint_close(ckpt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jina_embeddings_v2_has_the_type_of_bert),
        cmocka_unit_test(experts_of_nomic_are_rows_of_one_matrix),
        cmocka_unit_test(a_bias_of_the_sum_of_nomics_experts_is_added),
        cmocka_unit_test(neobert_stores_q_k_and_v_of_each_head_together),
        cmocka_unit_test(language_models_become_bidirectional_by_their_configuration),
        cmocka_unit_test(jina_reranker_v2_has_the_type_of_xlm_roberta),
        cmocka_unit_test(the_encoder_of_t5_alone_gives_the_rows_of_the_whole),
        cmocka_unit_test(configurations_of_older_classes_are_read),
        cmocka_unit_test(ntk_scaling_is_a_greater_base_and_linear_scaling),
        cmocka_unit_test(configurations_that_change_the_result_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

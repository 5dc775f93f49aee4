// SPDX-License-Identifier: MIT
// modules.json of sentence-transformers: what follows the model to make an embedding of its hidden states.
//
//     [{"path": "", "type": "...Transformer"}, {"path": "1_Pooling", "type": "...Pooling"},
//      {"path": "2_Dense", "type": "...Dense"}, {"path": "3_Normalize", "type": "...Normalize"}]
//
// Pooling becomes ARCH.pooling_type or frit.embed.pooling (hf_pooling.c). The matrices of Dense become dense_2, dense_3
// and so on, as in llama.cpp's files, and their activations frit.embed.dense_acts. Embeddings are normalized unless a
// caller asks otherwise, so Normalize has no key, but it must be last. A module that is not in the table is refused.
#include "format/hf/hf.h"
#include "format/safetensors.h"

#include <math.h>
#include <stdio.h>

enum { MAX_DENSE = 8, NAME_BYTES = 64 };

typedef struct modules {
    const frit_hf *hf;
    const char *folder;
    const frit_checkpoint_options *options;
    bool is_pooled, is_normalized;
    size_t n_dense;
    frit_str acts[MAX_DENSE];
    char dense[NAME_BYTES];   // the folder of the Dense module that is read
} modules;

static frit_status fail_config(const modules *m, const char *path, const char *what)
{
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s/%s/config.json: %s", m->folder, path, what);
}

static frit_status ignore(modules *m, const char *path)
{
    (void)m, (void)path;
    return FRIT_OK;
}

static frit_status read_pooling(modules *m, const char *path)
{
    m->is_pooled = true;
    return frit_hf_read_pooling(m->hf, m->folder, path);
}

static frit_status read_splade(modules *m, const char *path)
{
    m->is_pooled = true;
    return frit_hf_read_splade(m->hf, m->folder, path);
}

static frit_status read_static(modules *m, const char *path)
{
    (void)path;
    m->is_pooled = true;
    if (frit_meta_find(&m->hf->ckpt->meta, "frit.embed.plain_text")) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s/modules.json: StaticEmbedding is read of models of type 'model2vec'",
                          m->folder);
}

static frit_status read_normalize(modules *m, const char *path)
{
    (void)path;
    m->is_normalized = true;
    return FRIT_OK;
}

// ---------------------------------------------------------------------------------------- Dense

// Names the activation of a class of torch.nn.
static const char *find_act(const char *type)
{
    static const char *const acts[][2] = {{".Identity", "none"}, {".Tanh", "tanh"}, {".GELU", "gelu"},
                                          {".ReLU", "relu"},     {".SiLU", "silu"}, {".Sigmoid", "sigmoid"}};
    const char *last = type ? strrchr(type, '.') : NULL;
    for (size_t i = 0; last && i < FRIT_COUNT(acts); i++)
        if (strcmp(last, acts[i][0]) == 0) return acts[i][1];
    return NULL;
}

static frit_status read_act(modules *m, const json_t *config)
{
    char text[160];
    const char *type = json_string_value(json_object_get(config, "activation_function")), *act;
    if (!type) type = "torch.nn.modules.activation.Tanh";
    act = find_act(type);
    snprintf(text, sizeof text, "activation_function is '%.60s', expected Identity, Tanh, GELU, ReLU, SiLU or Sigmoid",
             type);
    if (!act) return fail_config(m, m->dense, text);
    m->acts[m->n_dense] = frit_str_of(act);
    return FRIT_OK;
}

static frit_status check_dense(const modules *m, const json_t *config)
{
    static const char *const names[] = {"module_input_name", "module_output_name"};
    char text[160];
    if (!m->is_pooled) return fail_config(m, m->dense, "a Dense module before Pooling is not supported");
    if (m->is_normalized) return fail_config(m, m->dense, "a Dense module after Normalize is not supported");
    if (json_is_true(json_object_get(config, "use_residual")))
        return fail_config(m, m->dense, "use_residual is true, only false is supported");
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        const char *name = json_string_value(json_object_get(config, names[i]));
        snprintf(text, sizeof text, "%s is '%.60s', only sentence_embedding is supported", names[i], name ? name : "");
        if (name && strcmp(name, "sentence_embedding") != 0) return fail_config(m, m->dense, text);
    }
    return FRIT_OK;
}

static frit_status add_tensor(void *ctx, const frit_safetensors_entry *entry)
{
    modules *m = ctx;
    frit_arena *arena = &m->hf->ckpt->arena;
    char name[NAME_BYTES];
    frit_tensor tensor;
    const bool is_weight = strcmp(entry->name, "linear.weight") == 0;
    if (!is_weight && strcmp(entry->name, "linear.bias") != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: tensor '%s' is not expected, only linear.weight and linear.bias",
                              entry->path, entry->name);
    FRIT_TRY(frit_safetensors_to_tensor(entry, &tensor));
    if (tensor.n_dims != (is_weight ? 2 : 1))
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has %d dimensions, expected %d", entry->path, entry->name,
                              tensor.n_dims, is_weight ? 2 : 1);
    snprintf(name, sizeof name, "dense_%zu.%s", m->n_dense + 2, is_weight ? "weight" : "bias");
    tensor.name = frit_arena_text(arena, name, strlen(name));
    if (!tensor.name) return frit_fail_memory(strlen(name), "a tensor name");
    return frit_checkpoint_add_tensor(m->hf->ckpt, &tensor);
}

static frit_status read_weights(modules *m)
{
    frit_checkpoint *ckpt = m->hf->ckpt;
    frit_buf path = {0};
    frit_file *file = NULL;
    frit_buf_printf(&path, "%s/%s/model.safetensors", m->folder, m->dense);
    const char *copy = path.failed ? NULL : frit_arena_text(&ckpt->arena, path.data, path.len);
    frit_buf_free(&path);
    if (!copy) return frit_fail_memory(strlen(m->folder), "a path");
    if (frit_path_get_kind(copy) != FRIT_PATH_FILE)
        return frit_fail_file(FRIT_E_NOT_FOUND, "%s/%s: has no model.safetensors with the weights of a Dense module",
                              m->folder, m->dense);
    FRIT_TRY(frit_file_open(&file, copy, m->options && m->options->no_mmap));
    FRIT_TRY(frit_checkpoint_add_file(ckpt, file));
    return frit_safetensors_read(copy, frit_file_data(file), frit_file_size(file), &ckpt->arena, add_tensor, m);
}

// Checks the matrix against the configuration, and adds the sizes that llama.cpp reads.
static frit_status add_sizes(const modules *m, const json_t *config)
{
    char name[NAME_BYTES];
    double in = 0, out = 0;
    snprintf(name, sizeof name, "dense_%zu.weight", m->n_dense + 2);
    const frit_tensor *weight = frit_checkpoint_find(m->hf->ckpt, name);
    FRIT_TRY(frit_hf_get_number(m->hf, config, "Dense: ", "in_features", FRIT_HF_WIDTH, &in));
    FRIT_TRY(frit_hf_get_number(m->hf, config, "Dense: ", "out_features", FRIT_HF_WIDTH, &out));
    if (!weight || (double)weight->shape[0] != out || (double)weight->shape[1] != in)
        return frit_fail_file(FRIT_E_FORMAT, "%s/%s: expected a tensor linear.weight of %.0f x %.0f numbers", m->folder,
                              m->dense, out, in);
    snprintf(name, sizeof name, "dense_%zu_feat_in", m->n_dense + 2);
    FRIT_TRY(frit_hf_add_number(m->hf, name, FRIT_HF_WIDTH, in));
    snprintf(name, sizeof name, "dense_%zu_feat_out", m->n_dense + 2);
    return frit_hf_add_number(m->hf, name, FRIT_HF_WIDTH, out);
}

static frit_status read_dense(modules *m, const char *path)
{
    json_t *config = NULL;
    snprintf(m->dense, sizeof m->dense, "%s", path);
    if (m->n_dense == MAX_DENSE)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s/modules.json: has more than %d Dense modules", m->folder,
                              MAX_DENSE);
    frit_status status = frit_hf_load_object(m->folder, path, "config.json", &config);
    if (status == FRIT_OK) status = check_dense(m, config);
    if (status == FRIT_OK) status = read_act(m, config);
    if (status == FRIT_OK) status = read_weights(m);
    if (status == FRIT_OK) status = add_sizes(m, config);
    json_decref(config);
    m->n_dense++;
    return status;
}

static frit_status add_acts(const modules *m)
{
    frit_str *acts = frit_arena_new(&m->hf->ckpt->arena, frit_str, MAX_DENSE);
    if (!acts) return frit_fail_memory(sizeof m->acts, "activations");
    memcpy(acts, m->acts, sizeof m->acts);
    const frit_value value = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, m->n_dense, acts}};
    return m->n_dense == 0 ? FRIT_OK : frit_meta_add(&m->hf->ckpt->meta, frit_str_of("frit.embed.dense_acts"), value);
}

// ---------------------------------------------------------------------------------------- the list

static const struct {
    const char *type;   // the last part
    bool has_files;
    frit_status (*read)(modules *m, const char *path);
} kinds[] = {
    {"Transformer", false, ignore},       {"MLMTransformer", false, ignore},       {"Dropout", false, ignore},
    {"Normalize", false, read_normalize}, {"Pooling", true, read_pooling},         {"SpladePooling", true, read_splade},
    {"Dense", true, read_dense},          {"StaticEmbedding", false, read_static},
};

// True if the text is the name of a subfolder, without a path.
static bool is_plain_name(const char *name)
{
    return name && *name && *name != '.' && strlen(name) < NAME_BYTES && !strpbrk(name, "/\\:");
}

static frit_status read_module(modules *m, const json_t *module, size_t i)
{
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *path = json_string_value(json_object_get(module, "path"));
    const char *last = type ? strrchr(type, '.') : NULL;
    if (!type || !path)
        return frit_fail_file(FRIT_E_FORMAT, "%s/modules.json: module %zu has no type and path in text", m->folder, i);
    last = last ? last + 1 : type;
    for (size_t k = 0; k < FRIT_COUNT(kinds); k++) {
        if (strcmp(last, kinds[k].type) != 0) continue;
        if (kinds[k].has_files && !is_plain_name(path))
            return frit_fail_file(FRIT_E_FORMAT,
                                  "%s/modules.json: the path of module %zu is '%.60s', expected the name "
                                  "of a folder in it",
                                  m->folder, i, path);
        return kinds[k].read(m, path);
    }
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s/modules.json: a module of type '%.80s' is not supported, expected Transformer, Pooling, "
                          "Dense, Normalize, SpladePooling or StaticEmbedding",
                          m->folder, type);
}

static frit_status read_list(modules *m, const json_t *list)
{
    if (!json_is_array(list))
        return frit_fail_file(FRIT_E_FORMAT, "%s/modules.json: is not a list of modules", m->folder);
    for (size_t i = 0; i < json_array_size(list); i++) FRIT_TRY(read_module(m, json_array_get(list, i), i));
    return add_acts(m);
}

// ---------------------------------------------------------------------------------------- prompts

frit_status frit_hf_add_prompts(const frit_hf *hf, const char *folder, const json_t *config)
{
    frit_meta *meta = &hf->ckpt->meta;
    json_t *prompts = json_object_get(config, "prompts"), *text;
    const char *name, *by_default = json_string_value(json_object_get(config, "default_prompt_name"));
    const size_t n = json_object_size(prompts);
    size_t i = 0;
    if (prompts && !json_is_null(prompts) && !json_is_object(prompts))
        return frit_fail_file(FRIT_E_FORMAT, "%s/config_sentence_transformers.json: prompts is not an object", folder);
    if (by_default && !json_object_get(prompts, by_default))
        return frit_fail_file(
            FRIT_E_FORMAT,
            "%s/config_sentence_transformers.json: default_prompt_name is '%.60s', but prompts has no "
            "such name",
            folder, by_default);
    frit_str *names = frit_arena_new(&hf->ckpt->arena, frit_str, 2 * n + 1), *texts = names ? names + n : NULL;
    if (!names) return frit_fail_memory(n * sizeof *names, "prompts");
    json_object_foreach(prompts, name, text)
    {
        if (!json_is_string(text))
            return frit_fail_file(FRIT_E_FORMAT, "%s/config_sentence_transformers.json: prompt '%.60s' is not text",
                                  folder, name);
        names[i] = frit_str_of(frit_arena_text(&hf->ckpt->arena, name, strlen(name)));
        texts[i] = (frit_str){frit_arena_text(&hf->ckpt->arena, json_string_value(text), json_string_length(text)),
                              json_string_length(text)};
        if (!names[i].ptr || !texts[i++].ptr) return frit_fail_memory(json_string_length(text), "a prompt");
    }
    if (n == 0) return FRIT_OK;
    FRIT_TRY(frit_meta_add(meta, frit_str_of("frit.embed.prompt_names"),
                           (frit_value){.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, n, names}}));
    FRIT_TRY(frit_meta_add(meta, frit_str_of("frit.embed.prompts"),
                           (frit_value){.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, n, texts}}));
    return by_default ? frit_meta_add_text(meta, "frit.embed.default_prompt", by_default) : FRIT_OK;
}

// True if a step of the tokenizer, or a step in it, makes text lower case.
static bool lowers_case(const json_t *step)
{
    const char *type = json_string_value(json_object_get(step, "type"));
    const json_t *inner;
    size_t i;
    json_array_foreach(json_object_get(step, "normalizers"), i, inner) if (lowers_case(inner)) return true;
    return type && (strcmp(type, "Lowercase") == 0 ||
                    (strcmp(type, "BertNormalizer") == 0 && json_is_true(json_object_get(step, "lowercase"))));
}

static frit_status check_case(const char *folder, const json_t *config)
{
    if (!json_is_true(json_object_get(config, "do_lower_case"))) return FRIT_OK;
    json_t *tokenizer = frit_hf_load_optional(folder, "tokenizer.json");
    const bool is_done = lowers_case(json_object_get(tokenizer, "normalizer"));
    json_decref(tokenizer);
    if (is_done) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s/sentence_bert_config.json: do_lower_case is true, which is supported if the tokenizer "
                          "makes text lower case",
                          folder);
}

// Writes the number of tokens to which texts are cut: max_seq_length, or the tokenizer's model_max_length, which is a
// huge number where there is no limit.
static frit_status add_length(const frit_hf *hf, const char *folder, const json_t *config)
{
    const json_t *length = json_object_get(config, "max_seq_length");
    double most = frit_hf_written(hf, "context_length");
    if (length && !json_is_null(length)) {
        if (!json_is_integer(length) || json_integer_value(length) < 1 || json_integer_value(length) > 1 << 30)
            return frit_fail_file(FRIT_E_FORMAT,
                                  "%s/sentence_bert_config.json: max_seq_length is not a number from 1 to %d", folder,
                                  1 << 30);
        most = (double)json_integer_value(length);
    } else {
        json_t *tokenizer = frit_hf_load_optional(folder, "tokenizer_config.json");
        length = json_object_get(tokenizer, "model_max_length");
        if (json_is_number(length) && json_number_value(length) >= 1) most = fmin(most, json_number_value(length));
        json_decref(tokenizer);
    }
    if (most < 1) return FRIT_OK;
    const frit_value value = {.type = FRIT_VALUE_U32, .u = (uint64_t)most};
    return frit_meta_add(&hf->ckpt->meta, frit_str_of("frit.embed.max_length"), value);
}

// The file has another name for some classes of models.
static frit_status load_transformer(const char *folder, json_t **out)
{
    static const char *const names[] = {"sentence_bert_config.json",       "sentence_roberta_config.json",
                                        "sentence_distilbert_config.json", "sentence_camembert_config.json",
                                        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json"};
    *out = NULL;
    for (size_t i = 0; i < FRIT_COUNT(names) && !*out; i++) FRIT_TRY(frit_hf_load_object(folder, NULL, names[i], out));
    return FRIT_OK;
}

// Writes how many numbers of a vector are kept.
static frit_status add_dims(const frit_hf *hf, const char *folder, const json_t *config)
{
    const json_t *dims = json_object_get(config, "truncate_dim");
    if (!dims || json_is_null(dims)) return FRIT_OK;
    if (!json_is_integer(dims) || json_integer_value(dims) < 1 || json_integer_value(dims) > 1 << 24)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s/config_sentence_transformers.json: truncate_dim is not a number from 1 to %d", folder,
                              1 << 24);
    const frit_value value = {.type = FRIT_VALUE_U32, .u = (uint64_t)json_integer_value(dims)};
    return frit_meta_add(&hf->ckpt->meta, frit_str_of("frit.embed.dims"), value);
}

frit_status frit_hf_add_modules(const frit_hf *hf, const char *folder, const frit_checkpoint_options *options)
{
    modules m = {.hf = hf, .folder = folder, .options = options};
    json_t *list = NULL, *prompts = NULL, *text = NULL;
    frit_status status = frit_hf_load_object(folder, NULL, "modules.json", &list);
    if (status == FRIT_OK && list) status = read_list(&m, list);
    if (status == FRIT_OK) status = frit_hf_load_object(folder, NULL, "config_sentence_transformers.json", &prompts);
    if (status == FRIT_OK && prompts) status = frit_hf_add_prompts(hf, folder, prompts);
    if (status == FRIT_OK && prompts) status = add_dims(hf, folder, prompts);
    if (status == FRIT_OK) status = load_transformer(folder, &text);
    if (status == FRIT_OK && text) status = check_case(folder, text);
    const bool is_static = frit_meta_find(&hf->ckpt->meta, "frit.embed.plain_text");
    if (status == FRIT_OK && (list || text) && !is_static) status = add_length(hf, folder, text);
    json_decref(list);
    json_decref(prompts);
    json_decref(text);
    return status;
}

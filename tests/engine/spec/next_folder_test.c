// SPDX-License-Identifier: MIT
// Layers for multi-token prediction in Hugging Face folders. The folders are reference models whose last layer is
// copied as the additional layer, with random parts, under the names of published models.
#include "support/support.h"

#include "engine/engine.h"
#include "format/checkpoint.h"
#include "format/rows.h"

#include <jansson.h>
#include <sys/stat.h>

enum { N_EMBD = 64, N_VOCAB = 512, N_TEXT = 40, N_PROMPT = 20 };

// The parts that the additional layer has besides those of other layers, under GGUF's names: rows, columns.
static const struct part {
    const char *gguf;
    int n_out, n_in;
} parts[] = {
    {"eh_proj", N_EMBD, 2 * N_EMBD},
    {"enorm", N_EMBD, 0},
    {"hnorm", N_EMBD, 0},
    {"embed_tokens", N_VOCAB, N_EMBD},
    {"shared_head_head", N_VOCAB, N_EMBD},
    {"shared_head_norm", N_EMBD, 0},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

// The spelling of a family.
typedef struct folder_family {
    const char *reference;
    int32_t n_layer;               // the last one has attention
    const char *type, *its_type;   // values of config.json, if they are another family's
    const char *layer;             // prefix of the layer's names
    const char *names[N_PARTS];    // NULL: absent in its files
    bool adds_one;                 // norms multiply by 1 + weight
    bool hidden_first;             // eh_proj multiplies [h | embedding]
} folder_family;

#define DEEPSEEK_NAMES                                                                                       \
    "model.layers.3.eh_proj", "model.layers.3.enorm", "model.layers.3.hnorm", "model.layers.3.embed_tokens", \
        "model.layers.3.shared_head.head", "model.layers.3.shared_head.norm"
#define QWEN_NAMES "mtp.fc", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", NULL, NULL, "mtp.norm"

static const folder_family glm = {"goldens/hf/glm4_moe", 3, .layer = "model.layers.3.", .names = {DEEPSEEK_NAMES}};
static const folder_family deepseek = {"goldens/hf/deepseek_v3", 3, .layer = "model.layers.3.",
                                       .names = {DEEPSEEK_NAMES}};
static const folder_family qwen_next = {"goldens/hf/qwen3_next", 4, .layer = "mtp.layers.0.", .names = {QWEN_NAMES},
                                        .adds_one = true};
static const folder_family qwen_35 = {"goldens/hf/qwen3_5_text", 4, .layer = "mtp.layers.0.", .names = {QWEN_NAMES},
                                      .adds_one = true};
static const folder_family mimo = {"goldens/hf/qwen2",
                                   3,
                                   "\"qwen2\"",
                                   "\"mimo\"",
                                   "model.mtp_layers.0.",
                                   {"model.mtp_layers.0.input_proj", "model.mtp_layers.0.token_layernorm",
                                    "model.mtp_layers.0.hidden_layernorm", NULL, NULL,
                                    "model.mtp_layers.0.final_layernorm"},
                                   .hidden_first = true};

typedef struct file {   // a file while it is written
    json_t *header;
    frit_buf data;
    frit_rng rng;
} file;

static void add(file *f, const char *name, json_t *shape, const char *dtype, const void *bytes, size_t n)
{
    json_object_set_new(f->header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets",
                                  (json_int_t)f->data.len, (json_int_t)(f->data.len + n)));
    frit_buf_append(&f->data, bytes, n);
}

static void make_values(frit_rng *rng, const struct part *part, float *values)
{
    random_normal(rng, values, (size_t)part->n_out * (size_t)(part->n_in ? part->n_in : 1), part->n_in ? 0.1F : 1);
}

static void add_random(file *f, const struct part *part, const char *name)
{
    char whole[96];
    const size_t n = (size_t)part->n_out * (size_t)(part->n_in ? part->n_in : 1);
    float *values = malloc(n * sizeof *values);
    make_values(&f->rng, part, values);
    snprintf(whole, sizeof whole, "%s.weight", name);
    json_t *shape = part->n_in ? json_pack("[i, i]", part->n_out, part->n_in) : json_pack("[i]", part->n_out);
    add(f, whole, shape, "F32", values, n * sizeof *values);
    free(values);
}

// Copies the tensors of the model, and those of its last layer a second time.
static void copy_tensors(file *f, const folder_family *family, const char *path)
{
    char last[64];
    snprintf(last, sizeof last, "model.layers.%d.", (int)family->n_layer - 1);
    char *bytes;
    size_t n_bytes;
    assert_ok(frit_file_read(path, (uint64_t)1 << 30, &bytes, &n_bytes));
    uint64_t n_header;
    memcpy(&n_header, bytes, sizeof n_header);
    json_t *header = json_loadb(bytes + 8, n_header, 0, NULL), *entry;
    const char *name;
    assert_non_null(header);
    json_object_foreach(header, name, entry)
    {
        const json_t *offsets = json_object_get(entry, "data_offsets");
        if (!offsets) continue;   // __metadata__
        const size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
        const size_t n = (size_t)json_integer_value(json_array_get(offsets, 1)) - begin;
        const char *dtype = json_string_value(json_object_get(entry, "dtype"));
        json_t *shape = json_object_get(entry, "shape");
        add(f, name, json_incref(shape), dtype, bytes + 8 + n_header + begin, n);
        if (strncmp(name, last, strlen(last)) != 0) continue;
        char again[160];
        snprintf(again, sizeof again, "%s%s", family->layer, name + strlen(last));
        add(f, again, json_incref(shape), dtype, bytes + 8 + n_header + begin, n);
    }
    json_decref(header);
    free(bytes);
}

static void write_in(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, bytes, n);
}

// Writes config.json of the family.
static void write_config(const char *folder, const folder_family *family)
{
    char name[96], *config;
    size_t n_config;
    snprintf(name, sizeof name, "%s/config.json", family->reference);
    assert_ok(frit_file_read(shared_path("%s", name), 1 << 20, &config, &n_config));
    frit_buf text = {0};
    const char *type = family->type ? strstr(config, family->type) : NULL;
    assert_true(!family->type || type);
    const size_t n_before = type ? (size_t)(type - config) : n_config;
    frit_buf_append(&text, config, n_before);
    if (type) frit_buf_text(&text, family->its_type);
    if (type) frit_buf_append(&text, type + strlen(family->type), n_config - n_before - strlen(family->type));
    write_in(folder, "config.json", text.data, text.len);
    frit_buf_free(&text);
    free(config);
}

// `without` names a part to leave out.
static const char *make_folder(const folder_family *family, const char *without)
{
    static char folder[4096];
    static int n_folders;
    char name[96];
    snprintf(name, sizeof name, "next-%d", n_folders++);
    snprintf(folder, sizeof folder, "%s", temp_path(name));
    assert_int_equal(mkdir(folder, 0700), 0);
    write_config(folder, family);
    file f = {.header = json_object()};
    frit_rng_init(&f.rng, 3);
    snprintf(name, sizeof name, "%s/model.safetensors", family->reference);
    copy_tensors(&f, family, shared_path("%s", name));
    for (size_t i = 0; i < N_PARTS; i++)
        if (family->names[i] && (!without || strcmp(without, parts[i].gguf) != 0))
            add_random(&f, &parts[i], family->names[i]);
    char *header = json_dumps(f.header, JSON_COMPACT);
    const uint64_t n_header = strlen(header);
    frit_buf all = {0};
    frit_buf_append(&all, (const char *)&n_header, sizeof n_header);
    frit_buf_append(&all, header, n_header);
    frit_buf_append(&all, f.data.data, f.data.len);
    write_in(folder, "model.safetensors", all.data, all.len);
    frit_buf_free(&all);
    frit_buf_free(&f.data);
    free(header);
    json_decref(f.header);
    return folder;
}

// Checks that each part is where GGUF files have it.
static void check_parts(const frit_model *model, const folder_family *family)
{
    frit_rng rng;
    frit_rng_init(&rng, 3);
    for (size_t i = 0; i < N_PARTS; i++) {
        char name[96];
        const int n_in = parts[i].n_in ? parts[i].n_in : 1;
        const size_t n = (size_t)parts[i].n_out * (size_t)n_in;
        float *values = malloc(n * sizeof *values), *found = malloc(n * sizeof *found);
        if (family->names[i]) make_values(&rng, &parts[i], values);
        snprintf(name, sizeof name, "blk.%d.nextn.%s.weight", (int)family->n_layer, parts[i].gguf);
        const frit_tensor *tensor = frit_checkpoint_find(model->ckpt, name);
        if (!tensor != !family->names[i]) fail_msg("%s: %s", name, tensor ? "is there" : "is missing");
        if (tensor) assert_ok(frit_tensor_decode_rows(tensor, 0, frit_tensor_n_rows(tensor), found));
        for (size_t k = 0; tensor && k < n; k++) {
            const bool moves = i == 0 && family->hidden_first;
            const size_t from = moves ? (k / N_EMBD % 2 ? k - N_EMBD : k + N_EMBD) : k;
            const float expected = values[from] + (family->adds_one && parts[i].n_in == 0 ? 1 : 0);
            if (found[k] != expected) fail_msg("%s: number %zu is %g, expected %g", name, k, found[k], expected);
        }
        free(values);
        free(found);
    }
}

static void write_text(const frit_model *model, frit_engine *engine, frit_engine *next, frit_token *tokens,
                       frit_speculation_info *info)
{
    const frit_speculate_options speculate = {.kind = "mtp", .draft = next, .always = true, .max_drafts = 4};
    frit_session *session;
    frit_sampler *sampler;
    frit_token prompt[N_PROMPT];
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (frit_token)(5 + 7 * i);
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_sampler_create(&sampler, model->info.n_vocab, &(frit_sampler_options){.temp = 1, .seed = 4}));
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
    if (next) assert_ok(frit_session_speculate(session, &speculate));
    for (size_t n = 0, n_more; n < N_TEXT; n += n_more)
        assert_ok(frit_session_next_tokens(session, sampler, tokens + n, N_TEXT - n, &n_more));
    assert_ok(frit_session_get_speculation(session, info));
    frit_sampler_free(sampler);
    frit_session_free(session);
}

// Checks the converted GGUF file.
static void check_file(const folder_family *family)
{
    const frit_engine_options options = {.n_ctx = 128, .n_threads = 1, .deterministic = true, .no_prefix_cache = true};
    char path[4200];
    frit_model *model, *layer;
    frit_engine *engine, *next;
    frit_token expected[N_TEXT], tokens[N_TEXT];
    frit_speculation_info info;
    snprintf(path, sizeof path, "%s", temp_path("next.gguf"));
    assert_ok(frit_convert(make_folder(family, NULL), path, &(frit_convert_options){.type = "f32"}));
    assert_ok(frit_model_open(&model, path, NULL));
    assert_int_equal(model->info.n_layer_next, 1);
    assert_ok(frit_model_open_next(&layer, model));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_engine_new(&next, layer, &options));
    write_text(model, engine, NULL, expected, &info);
    write_text(model, engine, next, tokens, &info);
    assert_memory_equal(tokens, expected, sizeof expected);
    assert_true(info.n_drafted >= N_TEXT);
    frit_engine_free(next);
    frit_engine_free(engine);
    frit_model_free(layer);
    frit_model_free(model);
    remove(path);
}

static void check_family(const folder_family *family)
{
    if (!shared_has("%s", family->reference)) skip_because("the reference model is not here");
    const frit_engine_options options = {.n_ctx = 128, .n_threads = 1, .deterministic = true, .no_prefix_cache = true};
    frit_model *plain, *model, *layer;
    frit_engine *engines[3];
    frit_token expected[N_TEXT], tokens[N_TEXT];
    frit_speculation_info info;
    assert_ok(frit_model_open(&plain, shared_path("%s", family->reference),
                              NULL));   // config.json names a layer that is absent
    assert_int_equal(plain->info.n_layer_next, 0);
    assert_fails(frit_model_open_next(&layer, plain), FRIT_E_UNSUPPORTED, "nextn_predict_layers");
    assert_ok(frit_model_open(&model, make_folder(family, NULL), NULL));
    assert_int_equal(model->info.n_layer_next, 1);
    assert_int_equal(model->info.n_layer, plain->info.n_layer);
    check_parts(model, family);
    assert_ok(frit_model_open_next(&layer, model));
    assert_ok(frit_engine_new(&engines[0], plain, &options));
    assert_ok(frit_engine_new(&engines[1], model, &options));
    assert_ok(frit_engine_new(&engines[2], layer, &options));
    write_text(plain, engines[0], NULL, expected, &info);
    write_text(model, engines[1], NULL, tokens, &info);
    assert_memory_equal(tokens, expected, sizeof expected);
    write_text(model, engines[1], engines[2], tokens, &info);
    assert_memory_equal(tokens, expected, sizeof expected);
    assert_true(info.n_drafted >= N_TEXT);
    for (int i = 2; i >= 0; i--) frit_engine_free(engines[i]);
    frit_model_free(layer);
    frit_model_free(model);
    frit_model_free(plain);
    check_file(family);
}

static void layers_of_glm_4_5_guess(void **state)
{
    (void)state;
    check_family(&glm);
}

static void layers_of_deepseek_v3_guess(void **state)
{
    (void)state;
    check_family(&deepseek);
}

// The other layers of Qwen 3 Next are delta nets, whose states must drop refused drafts.
static void layers_of_qwen_3_next_guess(void **state)
{
    (void)state;
    check_family(&qwen_next);
}

static void layers_of_qwen_3_5_guess(void **state)
{
    (void)state;
    check_family(&qwen_35);
}

static void layers_of_mimo_guess(void **state)
{
    (void)state;
    check_family(&mimo);
}

// Published folders lack the head and the embeddings if these are the model's; other parts may not be missing.
static void parts_may_be_missing(void **state)
{
    (void)state;
    static const struct {
        const char *part;
        int32_t n_layer_next;
        bool is_used;
    } rows[] = {{"shared_head_head", 1, true}, {"embed_tokens", 1, true}, {"hnorm", 1, false}, {"eh_proj", 0, false}};
    if (!shared_has("goldens/hf/glm4_moe")) skip_because("the reference model is not here");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_model *model, *layer = NULL;
        assert_ok(frit_model_open(&model, make_folder(&glm, rows[i].part), NULL));
        assert_int_equal(model->info.n_layer_next, rows[i].n_layer_next);
        const frit_status status = frit_model_open_next(&layer, model);
        assert_int_equal(status, rows[i].is_used ? FRIT_OK : FRIT_E_UNSUPPORTED);
        frit_model_free(layer);
        frit_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_glm_4_5_guess),     cmocka_unit_test(layers_of_deepseek_v3_guess),
        cmocka_unit_test(layers_of_qwen_3_next_guess), cmocka_unit_test(layers_of_qwen_3_5_guess),
        cmocka_unit_test(layers_of_mimo_guess),        cmocka_unit_test(parts_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

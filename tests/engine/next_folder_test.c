// SPDX-License-Identifier: MIT
// Layers for multi-token prediction of Hugging Face folders. The folders are reference models of two families, whose
// last layer is there once more with random parts of such a layer, under the names of the published models.
#include "support/support.h"

#include "engine/engine.h"
#include "format/checkpoint.h"

#include <jansson.h>
#include <sys/stat.h>

enum { N_EMBD = 64, N_VOCAB = 512, N_LAYER = 3, N_TEXT = 40, N_PROMPT = 20 };

// What a folder's layer has more than others: rows, columns.
static const struct part {
    const char *name, *gguf;
    int n_out, n_in;
} parts[] = {
    {"eh_proj", "eh_proj", N_EMBD, 2 * N_EMBD},
    {"enorm", "enorm", N_EMBD, 0},
    {"hnorm", "hnorm", N_EMBD, 0},
    {"embed_tokens", "embed_tokens", N_VOCAB, N_EMBD},
    {"shared_head.head", "shared_head_head", N_VOCAB, N_EMBD},
    {"shared_head.norm", "shared_head_norm", N_EMBD, 0},
};

typedef struct file {   // that is being written
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

static void add_random(file *f, const struct part *part)
{
    char name[96];
    const size_t n = (size_t)part->n_out * (size_t)(part->n_in ? part->n_in : 1);
    float *values = malloc(n * sizeof *values);
    random_normal(&f->rng, values, n, part->n_in ? 0.1F : 1);
    snprintf(name, sizeof name, "model.layers.%d.%s.weight", N_LAYER, part->name);
    json_t *shape = part->n_in ? json_pack("[i, i]", part->n_out, part->n_in) : json_pack("[i]", part->n_out);
    add(f, name, shape, "F32", values, n * sizeof *values);
    free(values);
}

// The tensors of the model, and those of its last layer again.
static void copy_tensors(file *f, const char *path)
{
    char *bytes;
    size_t n_bytes;
    assert_ok(frit_file_read(path, (uint64_t)1 << 30, &bytes, &n_bytes));
    uint64_t n_header;
    memcpy(&n_header, bytes, sizeof n_header);
    json_t *header = json_loadb(bytes + 8, n_header, 0, NULL), *entry;
    const char *name, last[] = "model.layers.2.";
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
        snprintf(again, sizeof again, "model.layers.%d.%s", N_LAYER, name + strlen(last));
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

// `without`: this part is left out.
static const char *make_folder(const char *reference, const char *without)
{
    static char folder[4096];
    static int n_folders;
    char name[96], *config;
    size_t n_config;
    snprintf(name, sizeof name, "next-%d", n_folders++);
    snprintf(folder, sizeof folder, "%s", temp_path(name));
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(name, sizeof name, "%s/config.json", reference);
    assert_ok(frit_file_read(shared_path("%s", name), 1 << 20, &config, &n_config));
    assert_non_null(strstr(config, "\"num_nextn_predict_layers\": 1"));
    write_in(folder, "config.json", config, n_config);
    free(config);
    file f = {.header = json_object()};
    frit_rng_init(&f.rng, 3);
    snprintf(name, sizeof name, "%s/model.safetensors", reference);
    copy_tensors(&f, shared_path("%s", name));
    for (size_t i = 0; i < FRIT_COUNT(parts); i++)
        if (!without || strcmp(without, parts[i].name) != 0) add_random(&f, &parts[i]);
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

// Each part is where GGUF files have it.
static void check_parts(const frit_model *model)
{
    frit_rng rng;
    frit_rng_init(&rng, 3);
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
        char name[96];
        const size_t n = (size_t)parts[i].n_out * (size_t)(parts[i].n_in ? parts[i].n_in : 1);
        float *values = malloc(n * sizeof *values);
        random_normal(&rng, values, n, parts[i].n_in ? 0.1F : 1);
        snprintf(name, sizeof name, "blk.%d.nextn.%s.weight", N_LAYER, parts[i].gguf);
        const frit_tensor *tensor = frit_checkpoint_find(model->ckpt, name);
        if (!tensor) fail_msg("%s is missing", name);
        assert_memory_equal(tensor->data, values, n * sizeof *values);
        free(values);
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

static void check_family(const char *reference)
{
    if (!shared_has("%s", reference)) skip_because("the reference model is not here");
    const frit_engine_options options = {.n_ctx = 128, .n_threads = 1, .deterministic = true, .no_prefix_cache = true};
    frit_model *plain, *model, *layer;
    frit_engine *engines[3];
    frit_token expected[N_TEXT], tokens[N_TEXT];
    frit_speculation_info info;
    assert_ok(
        frit_model_open(&plain, shared_path("%s", reference), NULL));   // config.json names a layer that is not there
    assert_int_equal(plain->info.n_layer_next, 0);
    assert_fails(frit_model_open_next(&layer, plain), FRIT_E_UNSUPPORTED, "nextn_predict_layers");
    assert_ok(frit_model_open(&model, make_folder(reference, NULL), NULL));
    assert_int_equal(model->info.n_layer_next, 1);
    assert_int_equal(model->info.n_layer, plain->info.n_layer);
    check_parts(model);
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
}

static void layers_of_glm_4_5_guess(void **state)
{
    (void)state;
    check_family("goldens/hf/glm4_moe");
}

static void layers_of_deepseek_v3_guess(void **state)
{
    (void)state;
    check_family("goldens/hf/deepseek_v3");
}

// Published folders lack the head and the embeddings where they are the model's; others are incomplete.
static void parts_may_be_missing(void **state)
{
    (void)state;
    static const struct {
        const char *part;
        int32_t n_layer_next;
        bool is_used;
    } rows[] = {{"shared_head.head", 1, true}, {"embed_tokens", 1, true}, {"hnorm", 1, false}, {"eh_proj", 0, false}};
    if (!shared_has("goldens/hf/glm4_moe")) skip_because("the reference model is not here");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_model *model, *layer = NULL;
        assert_ok(frit_model_open(&model, make_folder("goldens/hf/glm4_moe", rows[i].part), NULL));
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
        cmocka_unit_test(layers_of_glm_4_5_guess),
        cmocka_unit_test(layers_of_deepseek_v3_guess),
        cmocka_unit_test(parts_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Variants of folders without a reference, made from folders that have one: the weights are changed to compensate for a
// change of the configuration, so the logits must stay equal.
#include "arch/golden.h"
#include "base/buf.h"

#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct variant {
    golden gold;
    json_t *config, *header;
    char *bytes;
    size_t n_header;
    char path[600];
} variant;

static variant open_variant(const char *name)
{
    variant v = {.header = NULL};
    size_t i = 0, n_bytes;
    while (i < N_GOLDEN_FOLDERS && strcmp(golden_name(i), name) != 0) i++;
    assert_true(i < N_GOLDEN_FOLDERS);
    v.gold = golden_load(i);
    v.bytes = read_file(shared_path("goldens/hf/%s/model.safetensors", name), &n_bytes);
    uint64_t length;
    memcpy(&length, v.bytes, sizeof length);
    v.n_header = sizeof length + (size_t)length;
    v.header = json_loadb(v.bytes + sizeof length, (size_t)length, 0, NULL);
    v.config = json_load_file(shared_path("goldens/hf/%s/config.json", name), 0, NULL);
    assert_true(v.header && v.config);
    json_object_del(v.header, "__metadata__");
    snprintf(v.path, sizeof v.path, "%s", temp_path("variant"));
    mkdir(v.path, 0700);
    return v;
}

static void close_variant(variant *v)
{
    static const char *const files[] = {"model.safetensors", "config.json"};
    char path[700];
    for (size_t i = 0; i < FRIT_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", v->path, files[i]);
        remove(path);
    }
    rmdir(v->path);
    json_decref(v->header);
    json_decref(v->config);
    free(v->bytes);
    golden_free(&v->gold);
}

static uint16_t *numbers_of(const variant *v, const json_t *tensor, size_t *n)
{
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    const size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
    *n = ((size_t)json_integer_value(json_array_get(offsets, 1)) - begin) / 2;
    return (uint16_t *)(void *)(v->bytes + v->n_header + begin);
}

// Multiplies by a power of two, which is exact in bfloat16.
static void multiply(uint16_t *x, size_t n, double factor)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        value *= (float)factor;
        memcpy(&bits, &value, sizeof bits);
        x[i] = (uint16_t)(bits >> 16);
    }
}

// Multiplies the tensors whose names contain `part`.
static void multiply_all(variant *v, const char *part, double factor)
{
    const char *name;
    json_t *tensor;
    size_t n, n_found = 0;
    json_object_foreach(v->header, name, tensor)
    {
        if (!strstr(name, part)) continue;
        uint16_t *x = numbers_of(v, tensor, &n);
        multiply(x, n, factor);
        n_found++;
    }
    assert_true(n_found > 0);
}

static void write_variant(const variant *v)
{
    json_t *header = json_object();
    frit_buf data = {0}, file = {0};
    const char *name;
    json_t *tensor;
    char path[700];
    size_t n;
    json_object_foreach(v->header, name, tensor)
    {
        const uint16_t *x = numbers_of(v, tensor, &n);
        json_t *offsets = json_pack("[I, I]", (json_int_t)data.len, (json_int_t)(data.len + 2 * n));
        json_object_set_new(header, name,
                            json_pack("{s: O, s: O, s: o}", "dtype", json_object_get(tensor, "dtype"), "shape",
                                      json_object_get(tensor, "shape"), "data_offsets", offsets));
        frit_buf_append(&data, x, 2 * n);
    }
    char *text = json_dumps(header, JSON_COMPACT);
    const uint64_t length = strlen(text);
    frit_buf_append(&file, &length, sizeof length);
    frit_buf_append(&file, text, (size_t)length);
    frit_buf_append(&file, data.data, data.len);
    snprintf(path, sizeof path, "%s/model.safetensors", v->path);
    write_file(path, file.data, file.len);
    snprintf(path, sizeof path, "%s/config.json", v->path);
    assert_int_equal(json_dump_file(v->config, path, 0), 0);
    free(text);
    json_decref(header);
    frit_buf_free(&data);
    frit_buf_free(&file);
}

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    memcpy((float *)ctx + i * n, values, n * sizeof *values);
}

static float *logits_of_file(const variant *v, const char *path, const char *type)
{
    const golden *g = &v->gold;
    const frit_engine_options options = {.n_ctx = 64, .n_threads = 2, .cache_type_k = "f32", .cache_type_v = "f32"};
    float *logits = calloc(g->n_tokens * g->n_vocab, sizeof *logits);
    const frit_push_options push = {.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = logits};
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_model_open(&model, path, &(frit_model_options){.type = type}));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, g->tokens, g->n_tokens, &push));
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return logits;
}

static float *logits_of(const variant *v)
{
    write_variant(v);
    return logits_of_file(v, v->path, NULL);
}

// Checks the last written folder after conversion, and with another type set while loading.
static void check_conversion(const variant *v, const float *logits)
{
    const size_t n = v->gold.n_tokens * v->gold.n_vocab;
    char *out = strdup(temp_path("variant.gguf"));
    assert_ok(frit_convert(v->path, out, &(frit_convert_options){.type = "f32", .n_threads = 2}));
    float *file = logits_of_file(v, out, NULL);
    assert_true(nmse(file, logits, n) < 1e-9);
    free(file);
    assert_ok(frit_convert(v->path, out, &(frit_convert_options){.type = "q8_0", .n_threads = 2}));
    file = logits_of_file(v, out, NULL);
    float *folder = logits_of_file(v, v->path, "q8_0");
    assert_memory_equal(file, folder, n * sizeof *file);
    free(file);
    free(folder);
    remove(out);
    free(out);
}

static void set(variant *v, const char *changes)
{
    json_t *changed = json_loads(changes, 0, NULL);
    assert_non_null(changed);
    json_object_update(v->config, changed);
    json_decref(changed);
}

// Falcon-H1 scales the results of nearly all matrices. The scale of the scan's matrix has five parts.
static void multipliers_of_a_configuration_are_applied(void **state)
{
    (void)state;
    static const struct {
        const char *part;
        double factor;
    } undone[] = {{"q_proj", 0.5},  {"v_proj", 0.5},     {"k_proj", 2},          {"o_proj", 2}, {"mamba.out_proj", 8},
                  {"gate_proj", 2}, {"down_proj", 0.25}, {"embed_tokens", 0.25}, {"lm_head", 2}};
    static const double parts[] = {0.5, 2, 4, 0.25, 8};
    variant v = open_variant("falcon_h1");
    set(&v, "{\"attention_in_multiplier\": 2.0, \"key_multiplier\": 0.25, \"attention_out_multiplier\": 0.5,"
            " \"ssm_in_multiplier\": 2.0, \"ssm_out_multiplier\": 0.125, \"mlp_multipliers\": [0.5, 4.0],"
            " \"embedding_multiplier\": 4.0, \"lm_head_multiplier\": 0.5,"
            " \"ssm_multipliers\": [0.5, 2.0, 4.0, 0.25, 8.0]}");
    for (size_t i = 0; i < FRIT_COUNT(undone); i++) multiply_all(&v, undone[i].part, undone[i].factor);
    const size_t inner = (size_t)json_integer_value(json_object_get(v.config, "mamba_d_ssm"));
    const size_t states = (size_t)(json_integer_value(json_object_get(v.config, "mamba_n_groups")) *
                                   json_integer_value(json_object_get(v.config, "mamba_d_state")));
    const size_t rows[] = {inner, inner, states, states,
                           (size_t)json_integer_value(json_object_get(v.config, "mamba_n_heads"))};
    const size_t width = (size_t)json_integer_value(json_object_get(v.config, "hidden_size"));
    const char *name;
    json_t *tensor;
    json_object_foreach(v.header, name, tensor)
    {
        size_t n;
        uint16_t *x = numbers_of(&v, tensor, &n);
        for (size_t k = 0; strstr(name, "mamba.in_proj") && k < FRIT_COUNT(parts); x += rows[k++] * width)
            multiply(x, rows[k] * width, 1 / (2 * parts[k]));
    }
    float *logits = logits_of(&v);
    assert_true(nmse(logits, v.gold.logits, v.gold.n_tokens * v.gold.n_vocab) < 1e-9);
    check_conversion(&v, logits);
    free(logits);
    close_variant(&v);
}

// Granite 4 without experts equals a model whose experts have no effect.
static void a_shared_expert_alone_is_a_feed_forward(void **state)
{
    (void)state;
    variant v = open_variant("granitemoehybrid");
    multiply_all(&v, "block_sparse_moe.output_linear", 0);
    float *with_experts = logits_of(&v);
    const char *name;
    json_t *tensor;
    void *next;
    json_object_foreach_safe(v.header, next, name, tensor) if (strstr(name, "block_sparse_moe"))
        json_object_del(v.header, name);
    set(&v, "{\"num_local_experts\": 0}");
    float *without = logits_of(&v);
    assert_true(nmse(without, with_experts, v.gold.n_tokens * v.gold.n_vocab) < 1e-9);
    assert_true(nmse(without, v.gold.logits, v.gold.n_tokens * v.gold.n_vocab) > 1e-3);   // the experts had an effect
    check_conversion(&v, without);
    free(with_experts);
    free(without);
    close_variant(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multipliers_of_a_configuration_are_applied),
        cmocka_unit_test(a_shared_expert_alone_is_a_feed_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

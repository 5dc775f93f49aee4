// SPDX-License-Identifier: MIT
// PEFT folders as adapters: for a model in a folder and in a GGUF file; converted; damaged.
#include "support/support.h"

#include "base/buf.h"
#include "frit.h"

#include <math.h>
#include <sys/stat.h>

enum { VOCAB = 24, EMBD = 16, FF = 24, N_LAYER = 2, RANK = 3, N_TOKENS = 12 };

static const struct shape {
    const char *name;   // %d: the layer
    int out, in;        // in 0: a vector
    bool adapted;
} shapes[] = {
    {"model.embed_tokens", VOCAB, EMBD, true},
    {"lm_head", VOCAB, EMBD, true},
    {"model.norm", EMBD, 0, false},
    {"model.layers.%d.input_layernorm", EMBD, 0, false},
    {"model.layers.%d.post_attention_layernorm", EMBD, 0, false},
    {"model.layers.%d.self_attn.q_proj", EMBD, EMBD, true},
    {"model.layers.%d.self_attn.k_proj", EMBD / 2, EMBD, true},
    {"model.layers.%d.self_attn.v_proj", EMBD / 2, EMBD, true},
    {"model.layers.%d.self_attn.o_proj", EMBD, EMBD, true},
    {"model.layers.%d.mlp.gate_proj", FF, EMBD, true},
    {"model.layers.%d.mlp.up_proj", FF, EMBD, true},
    {"model.layers.%d.mlp.down_proj", EMBD, FF, true},
};

static const char model_config[] =
    "{\"model_type\":\"llama\",\"vocab_size\":24,\"hidden_size\":16,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":24,\"max_position_embeddings\":64}";

// ------------------------------------------------------------------------------- files

typedef struct tensors {   // of one safetensors file
    frit_buf header, data;
} tensors;

static void add_tensor(tensors *t, const char *name, int rows, int columns, const float *values)
{
    const size_t begin = t->data.len, n_bytes = sizeof(float) * (size_t)rows * (size_t)(columns ? columns : 1);
    frit_buf_printf(&t->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d", t->header.len ? "," : "{", name, rows);
    if (columns) frit_buf_printf(&t->header, ",%d", columns);
    frit_buf_printf(&t->header, "],\"data_offsets\":[%zu,%zu]}", begin, begin + n_bytes);
    frit_buf_append(&t->data, values, n_bytes);
}

static void save_tensors(tensors *t, const char *folder, const char *name)
{
    frit_buf file = {0};
    char path[600];
    frit_buf_char(&t->header, '}');
    const uint64_t n = t->header.len;
    for (int i = 0; i < 8; i++) frit_buf_char(&file, (char)(n >> 8 * i));
    frit_buf_append(&file, t->header.data, t->header.len);
    frit_buf_append(&file, t->data.data, t->data.len);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
    frit_buf_free(&t->header);
    frit_buf_free(&t->data);
    *t = (tensors){0};
}

static void save_text(const char *folder, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, text, strlen(text));
}

static const char *folder_in(char path[512], const char *name)
{
    snprintf(path, 512, "%s", temp_path(name));
    mkdir(path, 0700);
    return path;
}

typedef struct files {
    char base[512], adapter[512], merged[512];
} files;

// A module in PEFT's configuration.
typedef struct scaling {
    double alpha, alpha_of_down;
    bool by_root;
    bool has_magnitudes;   // rows are scaled to their own lengths; the table of embeddings then has no adapter
    const char *inside;    // replacement of "model." in the adapter's names; NULL: unchanged
} scaling;

// Makes the name of a text model's module within a multimodal model.
static const char *name_inside(const char *module, const char *inside, char name[96])
{
    const bool is_inner = inside && strncmp(module, "model.", 6) == 0;
    snprintf(name, 96, "%s%s", is_inner ? inside : "", is_inner ? module + 6 : module);
    return name;
}

// Sets rows' magnitudes near their present lengths.
static void set_lengths(frit_rng *rng, float *w, int n_out, int n_in, float *magnitudes)
{
    random_normal(rng, magnitudes, (size_t)n_out, 0.3f);
    for (int o = 0; o < n_out; o++) {
        double sum = 0;
        for (int k = 0; k < n_in; k++) sum += (double)w[o * n_in + k] * w[o * n_in + k];
        const double factor = 1 + magnitudes[o];
        for (int k = 0; k < n_in; k++) w[o * n_in + k] = (float)(w[o * n_in + k] * factor);
        magnitudes[o] = (float)(factor * sqrt(sum));
    }
}

static void write_config(const files *f, const char *more)
{
    frit_buf text = {0};
    frit_buf_printf(&text, "{\"peft_type\":\"LORA\",\"r\":%d,\"lora_alpha\":5,\"bias\":\"none\"%s}", RANK, more);
    save_text(f->adapter, "adapter_config.json", text.data);
    frit_buf_free(&text);
}

// Writes the base, an adapter of all its matrices, and the merged model.
static void write_files(files *f, const char *more, scaling s)
{
    tensors base = {0}, adapter = {0}, merged = {0};
    frit_rng rng;
    frit_rng_init(&rng, 7);
    save_text(folder_in(f->base, "base"), "config.json", model_config);
    save_text(folder_in(f->merged, "merged"), "config.json", model_config);
    folder_in(f->adapter, "adapter");
    write_config(f, more);
    for (int layer = 0; layer < N_LAYER; layer++) {
        for (size_t i = 0; i < FRIT_COUNT(shapes); i++) {
            const struct shape *shape = &shapes[i];
            const bool is_table = i == 0;
            const int n_in = shape->in ? shape->in : 1;
            float w[FF * FF], a[RANK * FF], b[FF * RANK], turned[RANK * FF];
            char module[64], name[200], inside[96];
            if (layer > 0 && !strchr(shape->name, '%')) continue;
            snprintf(module, sizeof module, shape->name, layer);
            snprintf(name, sizeof name, "%s.weight", module);
            random_normal(&rng, w, (size_t)(shape->out * n_in), 0.3f);
            add_tensor(&base, name, shape->out, shape->in, w);
            if (shape->adapted && !(is_table && s.has_magnitudes)) {
                const double alpha = strstr(module, "down_proj") ? s.alpha_of_down : s.alpha;
                const double scale = alpha / (s.by_root ? sqrt(RANK) : RANK);
                random_normal(&rng, a, (size_t)(RANK * n_in), 0.2f);
                random_normal(&rng, b, (size_t)(shape->out * RANK), 0.2f);
                // The merged weight is w + scale b a. For a table PEFT has a [r, tokens] and b [n_embd, r].
                for (int o = 0; o < shape->out; o++)
                    for (int k = 0; k < n_in; k++) {
                        double sum = 0;
                        for (int j = 0; j < RANK; j++) sum += (double)b[o * RANK + j] * a[j * n_in + k];
                        w[o * n_in + k] += (float)(scale * sum);
                    }
                if (is_table) {   // a's columns are rows of w
                    float of_tokens[RANK * FF];
                    for (int o = 0; o < shape->out; o++)
                        for (int j = 0; j < RANK; j++) of_tokens[j * shape->out + o] = b[o * RANK + j];
                    for (int k = 0; k < n_in; k++)
                        for (int j = 0; j < RANK; j++) turned[k * RANK + j] = a[j * n_in + k];
                    name_inside(module, s.inside, inside);
                    snprintf(name, sizeof name, "base_model.model.%s.lora_embedding_A", inside);
                    add_tensor(&adapter, name, RANK, shape->out, of_tokens);
                    snprintf(name, sizeof name, "base_model.model.%s.lora_embedding_B", inside);
                    add_tensor(&adapter, name, n_in, RANK, turned);
                } else {
                    name_inside(module, s.inside, inside);
                    snprintf(name, sizeof name, "base_model.model.%s.lora_A.weight", inside);
                    add_tensor(&adapter, name, RANK, n_in, a);
                    snprintf(name, sizeof name, "base_model.model.%s.lora_B.weight", inside);
                    add_tensor(&adapter, name, shape->out, RANK, b);
                    float magnitudes[FF];
                    snprintf(name, sizeof name, "base_model.model.%s.lora_magnitude_vector", inside);
                    if (s.has_magnitudes) set_lengths(&rng, w, shape->out, n_in, magnitudes);
                    if (s.has_magnitudes) add_tensor(&adapter, name, shape->out, 0, magnitudes);
                }
            }
            snprintf(name, sizeof name, "%s.weight", module);
            add_tensor(&merged, name, shape->out, shape->in, w);
        }
    }
    static const float of_encoder[RANK * 2];
    if (s.inside)
        add_tensor(&adapter, "base_model.model.model.vision_tower.layers.0.q_proj.lora_A.weight", RANK, 2, of_encoder);
    if (s.inside)
        add_tensor(&adapter, "base_model.model.model.vision_tower.layers.0.q_proj.lora_B.weight", 2, RANK, of_encoder);
    save_tensors(&base, f->base, "model.safetensors");
    save_tensors(&merged, f->merged, "model.safetensors");
    save_tensors(&adapter, f->adapter, "adapter_model.safetensors");
}

// ------------------------------------------------------------------------------- logits

static void keep_row(void *ctx, size_t i, const float *logits, size_t n)
{
    memcpy((float *)ctx + i * n, logits, n * sizeof *logits);
}

static void run(const char *path, const char *adapter_path, float logits[N_TOKENS * VOCAB])
{
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_adapter *adapter;
    frit_token tokens[N_TOKENS];
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = (i * 5 + 1) % VOCAB;
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.cpu = "reference", .n_ctx = 32}));
    assert_ok(frit_session_new(&session, engine));
    if (adapter_path) {
        assert_ok(frit_adapter_open(&adapter, model, adapter_path, NULL));
        assert_ok(frit_session_set_adapters(session, &adapter, (float[]){1}, 1));
        frit_adapter_free(adapter);
    }
    assert_ok(frit_session_push(session, tokens, N_TOKENS,
                                &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = logits}));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

static void check(const char *more, scaling s)
{
    files f;
    float expected[N_TOKENS * VOCAB], found[N_TOKENS * VOCAB], plain[N_TOKENS * VOCAB];
    char gguf[512], converted[512];
    write_files(&f, more, s);
    run(f.merged, NULL, expected);
    run(f.base, NULL, plain);
    assert_true(nmse(plain, expected, N_TOKENS * VOCAB) > 1e-3);
    run(f.base, f.adapter, found);
    assert_true(nmse(found, expected, N_TOKENS * VOCAB) <= 1e-10);

    // GGUF files of Llama have the rows of q and k in another order.
    snprintf(gguf, sizeof gguf, "%s", temp_path("base.gguf"));
    snprintf(converted, sizeof converted, "%s", temp_path("adapter.gguf"));
    assert_ok(frit_convert(f.base, gguf, NULL));
    run(gguf, f.adapter, found);
    assert_true(nmse(found, expected, N_TOKENS * VOCAB) <= 1e-10);
    if (s.has_magnitudes) {
        assert_fails(frit_convert(f.adapter, converted, &(frit_convert_options){.base = f.base}), FRIT_E_UNSUPPORTED,
                     "has magnitudes (DoRA), factors (IA3) or biases, for which GGUF has no form");
        return;
    }
    assert_ok(frit_convert(f.adapter, converted, &(frit_convert_options){.base = f.base}));
    run(gguf, converted, found);
    assert_true(nmse(found, expected, N_TOKENS * VOCAB) <= 1e-10);
    run(f.base, converted, found);
    assert_true(nmse(found, expected, N_TOKENS * VOCAB) <= 1e-10);
    assert_ok(frit_convert(f.adapter, converted, &(frit_convert_options){.base = gguf, .type = "f16"}));
    assert_fails(frit_convert(f.adapter, gguf, &(frit_convert_options){.base = gguf}), FRIT_E_INVALID,
                 "the target is the adapter's model");
    run(gguf, converted, found);
    assert_true(nmse(found, expected, N_TOKENS * VOCAB) <= 1e-5);
}

static void adapters_of_folders_give_the_logits_of_merged_weights(void **state)
{
    (void)state;
    check("", (scaling){5, 5, false, false, NULL});
}

static void magnitudes_give_rows_their_lengths(void **state)
{
    (void)state;
    check(",\"use_dora\":true", (scaling){5, 5, false, true, NULL});
    check(",\"use_dora\":true,\"use_rslora\":true", (scaling){5, 5, true, true, "model.language_model."});
}

static void modules_of_multimodal_models_are_those_of_the_text_model(void **state)
{
    (void)state;
    static const char *const inside[] = {"model.language_model.", "language_model.model.",
                                         "model.language_model.model.", "model.text_model."};
    for (size_t i = 0; i < FRIT_COUNT(inside); i++) check("", (scaling){5, 5, false, false, inside[i]});
}

static void scales_may_be_by_the_root_of_the_rank_and_by_module(void **state)
{
    (void)state;
    check(",\"use_rslora\":true", (scaling){5, 5, true, false, NULL});
    check(",\"alpha_pattern\":{\"mlp.down_proj\":2}", (scaling){5, 2, false, false, NULL});
    check(",\"alpha_pattern\":{\"d..n_proj\":2,\"n_proj\":9}", (scaling){5, 2, false, false, NULL});
    check(",\"alpha_pattern\":{\"^model\\\\.layers\\\\.\\\\d+\\\\.mlp\\\\.down_proj$\":2}",
          (scaling){5, 2, false, false, NULL});
}

// ------------------------------------------------------------------------------- bad folders

static frit_status open_status(const files *f)
{
    frit_model *model;
    frit_adapter *adapter;
    assert_ok(frit_model_open(&model, f->base, NULL));
    const frit_status status = frit_adapter_open(&adapter, model, f->adapter, NULL);
    if (status == FRIT_OK) frit_adapter_free(adapter);
    frit_model_free(model);
    return status;
}

static void bad_configurations_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        frit_status status;
        const char *part;
    } rows[] = {
        {",\"use_dora\":true", FRIT_E_UNSUPPORTED, "'model.embed_tokens': magnitudes (DoRA) and biases of experts"},
        {",\"modules_to_save\":[\"lm_head\"]", FRIT_E_FORMAT, "replaces 'lm_head'"},
        {",\"trainable_token_indices\":{\"embed_tokens\":[1]}", FRIT_E_FORMAT, "replaces 'embed_tokens'"},
        {",\"rank_pattern\":{\"q_proj\":8}", FRIT_E_FORMAT, "has the rank 3, but adapter_config.json says 8"},
        {",\"alpha_pattern\":{\"q_(\":8}", FRIT_E_UNSUPPORTED, "'q_(' is not a regular expression that can be matched"},
        {",\"alpha_pattern\":{\"(?:\\\\w|.)+(?!$)\":8}", FRIT_E_UNSUPPORTED,   // the regex takes exponential time
         "is not a regular expression that can be matched"},
        {",\"lora_bias\":true", FRIT_E_UNSUPPORTED, "lora_bias"},
        {",", FRIT_E_FORMAT, "not a JSON object"},
    };
    files f;
    write_files(&f, "", (scaling){5, 5, false, false, NULL});
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        write_config(&f, rows[i].more);
        assert_fails(open_status(&f), rows[i].status, rows[i].part);
    }
    save_text(f.adapter, "adapter_config.json", "{\"peft_type\":\"LORA\",\"r\":0,\"lora_alpha\":5}");
    assert_fails(open_status(&f), FRIT_E_FORMAT, "r is 0, expected a rank");
    save_text(f.adapter, "adapter_config.json", "{\"peft_type\":\"IA3\"}");
    assert_fails(open_status(&f), FRIT_E_FORMAT, "has more than one kind of adapter");
}

static void write_one(const files *f, const char *name, int rows, int columns, const char *other)
{
    static const float zeros[64 * 64];
    tensors t = {0};
    add_tensor(&t, name, rows, columns, zeros);
    if (other) add_tensor(&t, other, rows, columns, zeros);
    save_tensors(&t, f->adapter, "adapter_model.safetensors");
}

static void bad_tensors_are_refused_with_a_sentence(void **state)
{
    (void)state;
#define Q "base_model.model.model.layers.0.self_attn.q_proj"
    files f;
    write_files(&f, "", (scaling){5, 5, false, false, NULL});
    write_one(&f, Q ".lora_A.weight", RANK, EMBD, NULL);
    assert_fails(open_status(&f), FRIT_E_FORMAT, "self_attn.q_proj' has a tensor A, expected also B");
    write_one(&f, Q ".weight", EMBD, EMBD, NULL);
    assert_fails(open_status(&f), FRIT_E_UNSUPPORTED,
                 "q_proj' is replaced, which is supported for embeddings and the output only");
    write_one(&f, Q ".lora_magnitude_vector", EMBD, 0, NULL);   // regardless of the configuration
    assert_fails(open_status(&f), FRIT_E_FORMAT, "has a tensor of magnitudes, expected also A");
    write_one(&f, "base_model.model.encoder.q.lora_A.weight", RANK, EMBD, "base_model.model.encoder.q.lora_B.weight");
    assert_fails(open_status(&f), FRIT_E_INVALID, "for the module 'encoder.q'");
    write_one(&f, Q ".lora_A.weight", RANK, RANK, Q ".lora_B.weight");
    assert_fails(open_status(&f), FRIT_E_INVALID, "lora_A.weight' has the shape [3, 3], expected");
#undef Q
    char path[600];
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", f.adapter);
    write_file(path, "\10\0\0\0\0\0\0\0{}", 10);
    assert_true(open_status(&f) != FRIT_OK);
    remove(path);
    assert_fails(open_status(&f), FRIT_E_NOT_FOUND, "has no adapter_model.safetensors");
    save_text(f.adapter, "adapter_model.bin", "\200\2}q");
    assert_fails(open_status(&f), FRIT_E_UNSUPPORTED, "Python pickle (adapter_model.bin)");
    assert_fails(frit_convert(f.adapter, temp_path("x.gguf"), &(frit_convert_options){.base = f.base}),
                 FRIT_E_UNSUPPORTED, "Python pickle");
    assert_fails(frit_convert(f.adapter, temp_path("x.gguf"), NULL), FRIT_E_INVALID,
                 "converting an adapter needs its model");
    snprintf(path, sizeof path, "%s/adapter_config.json", f.adapter);
    remove(path);
    assert_fails(open_status(&f), FRIT_E_NOT_FOUND, "has no adapter_config.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_of_folders_give_the_logits_of_merged_weights),
        cmocka_unit_test(scales_may_be_by_the_root_of_the_rank_and_by_module),
        cmocka_unit_test(magnitudes_give_rows_their_lengths),
        cmocka_unit_test(modules_of_multimodal_models_are_those_of_the_text_model),
        cmocka_unit_test(bad_configurations_are_refused_with_a_sentence),
        cmocka_unit_test(bad_tensors_are_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

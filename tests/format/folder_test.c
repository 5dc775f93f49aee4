// SPDX-License-Identifier: MIT
// Hugging Face folders: the reference folders under GGUF's names, and the meaning of keys of config.json.
#include "format/folder_build.h"
#include "format/hf/hf.h"

#include <math.h>

// ---------------------------------------------------------------------------------------- looking at a checkpoint

static double number_of(const frit_checkpoint *ckpt, const char *key)
{
    double value = NAN;
    assert_ok(frit_meta_get_f64(&ckpt->meta, key, &value, NULL));
    return value;
}

static void expect_text(const frit_checkpoint *ckpt, const char *key, const char *expected)
{
    frit_str text = {"(absent)", 8};
    assert_ok(frit_meta_get_text(&ckpt->meta, key, &text, NULL));
    if (!frit_str_is(text, expected)) fail_msg("%s is '%.*s', expected '%s'", key, (int)text.len, text.ptr, expected);
}

// One expected pair: a number, a text, or neither (the key must be absent).
typedef struct expected {
    const char *key;
    double number;
    const char *text;
} expected;

#define ABSENT NAN

static void expect_pairs(const frit_checkpoint *ckpt, const expected *pairs, size_t n)
{
    for (size_t i = 0; i < n && pairs[i].key; i++) {
        if (pairs[i].text) {
            expect_text(ckpt, pairs[i].key, pairs[i].text);
            continue;
        }
        bool found = frit_meta_find(&ckpt->meta, pairs[i].key) != NULL;
        if (isnan(pairs[i].number) && found) fail_msg("%s is there", pairs[i].key);
        if (isnan(pairs[i].number)) continue;
        double value = number_of(ckpt, pairs[i].key);
        if (!(fabs(value - pairs[i].number) <= 1e-6 * fabs(pairs[i].number)))
            fail_msg("%s is %g, expected %g", pairs[i].key, value, pairs[i].number);
    }
}

static const frit_tensor *expect_tensor(const frit_checkpoint *ckpt, const char *name, int64_t rows, int64_t columns)
{
    const frit_tensor *t = frit_checkpoint_find(ckpt, name);
    if (!t) fail_msg("%s: there is no %s", ckpt->path, name);
    assert_int_equal(t->n_dims, columns ? 2 : 1);
    if (t->shape[0] != rows || t->shape[1] != (columns ? columns : 1)) {
        char text[96];
        fail_msg("%s: %s is %s, expected [%d, %d]", ckpt->path, name, frit_tensor_shape_text(t, text), (int)rows,
                 (int)columns);
    }
    return t;
}

// ---------------------------------------------------------------------------------------- the reference folders

typedef struct reference {
    const char *name, *arch, *rope_style;
    int head_dim, n_head_kv;
    bool tied, qkv_bias, other_bias, head_norms, f32_norms;
    expected pairs[8];
} reference;

// clang-format off
static const reference references[] = {
    {.name = "llama", .arch = "llama", .rope_style = "neox", .head_dim = 16, .n_head_kv = 2,
     .pairs = {{"llama.rope.freq_base", 10000, NULL},
               {"llama.rope.scaling.type", ABSENT, NULL},
               {"llama.attention.sliding_window", ABSENT, NULL},
               {"llama.attention.layer_norm_rms_epsilon", 1e-6, NULL},
               {"general.name", 0, "llama"}}},
    {.name = "llama-rope3", .arch = "llama", .rope_style = "neox", .head_dim = 16, .n_head_kv = 2,
     .pairs = {{"llama.rope.freq_base", 500000, NULL},
               {"llama.rope.scaling.type", 0, "llama3"},
               {"llama.rope.scaling.factor", 8, NULL},
               {"llama.rope.scaling.low_freq_factor", 1, NULL},
               {"llama.rope.scaling.high_freq_factor", 4, NULL},
               {"llama.rope.scaling.original_context_length", 64, NULL}}},
    {.name = "llama-linear-rope", .arch = "llama", .rope_style = "neox", .head_dim = 16, .n_head_kv = 2,
     .pairs = {{"llama.rope.scaling.type", 0, "linear"},
               {"llama.rope.scaling.factor", 4, NULL},
               {"llama.rope.scaling.original_context_length", ABSENT, NULL}}},
    {.name = "llama-yarn", .arch = "llama", .rope_style = "neox", .head_dim = 16, .n_head_kv = 2,
     .pairs = {{"llama.rope.scaling.type", 0, "yarn"},
               {"llama.rope.scaling.factor", 4, NULL},
               {"llama.rope.scaling.original_context_length", 64, NULL},
               {"llama.rope.scaling.attn_factor", ABSENT, NULL},
               {"llama.rope.scaling.yarn_beta_fast", 32, NULL},
               {"llama.rope.scaling.yarn_beta_slow", 1, NULL},
               {"llama.rope.scaling.yarn_ext_factor", 1, NULL},
               {"llama.context_length", 256, NULL}}},
    {.name = "llama-bias-tied", .arch = "llama", .rope_style = "neox", .head_dim = 32, .n_head_kv = 2,
     .tied = true, .qkv_bias = true, .other_bias = true},
    {.name = "mistral", .arch = "llama", .rope_style = "neox", .head_dim = 16, .n_head_kv = 2,
     .pairs = {{"llama.attention.sliding_window", 16, NULL}}},
    {.name = "qwen2", .arch = "qwen2", .head_dim = 16, .n_head_kv = 2, .qkv_bias = true,
     .pairs = {{"frit.attention.sliding_window", ABSENT, NULL}}},
    {.name = "qwen2-tied", .arch = "qwen2", .head_dim = 16, .n_head_kv = 2, .tied = true, .qkv_bias = true},
    {.name = "qwen3", .arch = "qwen3", .head_dim = 32, .n_head_kv = 2, .head_norms = true},
    {.name = "gemma", .arch = "gemma", .head_dim = 32, .n_head_kv = 1, .tied = true, .f32_norms = true,
     .pairs = {{"gemma.rope.freq_base", 10000, NULL}}},
};
// clang-format on

enum { N_VOCAB = 512, N_EMBD = 64, N_HEAD = 4, N_LAYER = 3, N_FF = 96 };

static void check_keys(const frit_checkpoint *ckpt, const reference *ref)
{
    const struct {
        const char *key;
        double number;
    } numbers[] = {
        {"vocab_size", N_VOCAB},
        {"context_length", 256},
        {"embedding_length", N_EMBD},
        {"block_count", N_LAYER},
        {"feed_forward_length", N_FF},
        {"attention.head_count", N_HEAD},
        {"attention.head_count_kv", ref->n_head_kv},
        {"attention.key_length", ref->head_dim},
        {"attention.value_length", ref->head_dim},
        {"rope.dimension_count", ref->head_dim},
    };
    for (size_t i = 0; i < FRIT_COUNT(numbers); i++) {
        char key[100];
        snprintf(key, sizeof key, "%s.%s", ref->arch, numbers[i].key);
        expect_pairs(ckpt, &(expected){key, numbers[i].number, NULL}, 1);
    }
    expect_text(ckpt, "general.architecture", ref->arch);
    expect_text(ckpt, "tokenizer.ggml.model", "none");
    if (ref->rope_style) expect_text(ckpt, "frit.rope.style", ref->rope_style);
    if (!ref->rope_style) assert_null(frit_meta_find(&ckpt->meta, "frit.rope.style"));
    expect_pairs(ckpt, ref->pairs, FRIT_COUNT(ref->pairs));
}

// Checks every expected tensor, and counts them.
static size_t check_tensors(const frit_checkpoint *ckpt, const reference *ref)
{
    const int n_q = N_HEAD * ref->head_dim, n_kv = ref->n_head_kv * ref->head_dim;
    const struct {
        const char *name;
        int rows, columns;
        bool there;
    } rows[] = {
        {"attn_norm.weight", N_EMBD, 0, true},
        {"attn_q.weight", n_q, N_EMBD, true},
        {"attn_k.weight", n_kv, N_EMBD, true},
        {"attn_v.weight", n_kv, N_EMBD, true},
        {"attn_output.weight", N_EMBD, n_q, true},
        {"attn_q.bias", n_q, 0, ref->qkv_bias},
        {"attn_k.bias", n_kv, 0, ref->qkv_bias},
        {"attn_v.bias", n_kv, 0, ref->qkv_bias},
        {"attn_output.bias", N_EMBD, 0, ref->other_bias},
        {"attn_q_norm.weight", ref->head_dim, 0, ref->head_norms},
        {"attn_k_norm.weight", ref->head_dim, 0, ref->head_norms},
        {"ffn_norm.weight", N_EMBD, 0, true},
        {"ffn_gate.weight", N_FF, N_EMBD, true},
        {"ffn_up.weight", N_FF, N_EMBD, true},
        {"ffn_down.weight", N_EMBD, N_FF, true},
        {"ffn_gate.bias", N_FF, 0, ref->other_bias},
        {"ffn_up.bias", N_FF, 0, ref->other_bias},
        {"ffn_down.bias", N_EMBD, 0, ref->other_bias},
    };
    expect_tensor(ckpt, "token_embd.weight", N_VOCAB, N_EMBD);
    frit_dtype norm_dtype = ref->f32_norms ? FRIT_DTYPE_F32 : FRIT_DTYPE_BF16;
    assert_int_equal(expect_tensor(ckpt, "output_norm.weight", N_EMBD, 0)->dtype, norm_dtype);
    if (!ref->tied) expect_tensor(ckpt, "output.weight", N_VOCAB, N_EMBD);
    size_t n = 2 + !ref->tied;
    for (int layer = 0; layer < N_LAYER; layer++)
        for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
            if (!rows[i].there) continue;
            char name[100];
            snprintf(name, sizeof name, "blk.%d.%s", layer, rows[i].name);
            expect_tensor(ckpt, name, rows[i].rows, rows[i].columns);
            n++;
        }
    return n;
}

static void the_reference_folders_open_under_the_names_of_gguf(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(references); i++) {
        if (!shared_has("goldens/hf/%s", references[i].name)) continue;
        frit_checkpoint *ckpt;
        assert_ok(frit_checkpoint_open(&ckpt, shared_path("goldens/hf/%s", references[i].name), NULL));
        assert_string_equal(ckpt->format, "safetensors");
        check_keys(ckpt, &references[i]);
        assert_int_equal(ckpt->n_tensors, check_tensors(ckpt, &references[i]));
        frit_checkpoint_close(ckpt);
    }
}

// Opens the folder and the plain file in it.
static void open_both(const char *folder, frit_checkpoint **named, frit_checkpoint **bare)
{
    assert_ok(frit_checkpoint_open(named, shared_path("goldens/hf/%s/", folder), NULL));
    assert_ok(frit_checkpoint_open(bare, shared_path("goldens/hf/%s/model.safetensors", folder), NULL));
}

static void tensors_keep_their_data_under_the_new_name(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"token_embd.weight", "model.embed_tokens.weight"},
        {"output.weight", "lm_head.weight"},
        {"output_norm.weight", "model.norm.weight"},
        {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
        {"blk.2.attn_q.weight", "model.layers.2.self_attn.q_proj.weight"},
        {"blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj.weight"},
        {"blk.1.attn_v.weight", "model.layers.1.self_attn.v_proj.weight"},
        {"blk.1.attn_output.weight", "model.layers.1.self_attn.o_proj.weight"},
        {"blk.1.attn_q_norm.weight", "model.layers.1.self_attn.q_norm.weight"},
        {"blk.1.attn_k_norm.weight", "model.layers.1.self_attn.k_norm.weight"},
        {"blk.1.ffn_norm.weight", "model.layers.1.post_attention_layernorm.weight"},
        {"blk.1.ffn_gate.weight", "model.layers.1.mlp.gate_proj.weight"},
        {"blk.1.ffn_up.weight", "model.layers.1.mlp.up_proj.weight"},
        {"blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj.weight"},
    };
    frit_checkpoint *named, *bare;
    open_both("qwen3", &named, &bare);
    for (size_t i = 0; i < FRIT_COUNT(pairs); i++) {
        const frit_tensor *a = frit_checkpoint_find(named, pairs[i][0]), *b = frit_checkpoint_find(bare, pairs[i][1]);
        assert_true(a && b);
        assert_int_equal(a->dtype, b->dtype);
        assert_int_equal(a->n_bytes, b->n_bytes);
        assert_memory_equal(a->data, b->data, a->n_bytes);
    }
    frit_checkpoint_close(named);
    frit_checkpoint_close(bare);
}

static void norms_of_gemma_have_one_added(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"output_norm.weight", "model.norm.weight"},
        {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
        {"blk.2.ffn_norm.weight", "model.layers.2.post_attention_layernorm.weight"},
    };
    frit_checkpoint *named, *bare;
    open_both("gemma", &named, &bare);
    for (size_t i = 0; i < FRIT_COUNT(pairs); i++) {
        float values[N_EMBD], stored[N_EMBD];
        frit_tensor_decode_row(frit_checkpoint_find(named, pairs[i][0]), 0, values);
        frit_tensor_decode_row(frit_checkpoint_find(bare, pairs[i][1]), 0, stored);
        for (int k = 0; k < N_EMBD; k++) assert_true(values[k] == stored[k] + 1.0f);
    }
    frit_checkpoint_close(named);
    frit_checkpoint_close(bare);
}

// ---------------------------------------------------------------------------------------- what configurations mean

typedef struct meaning {
    const char *changes;   // changes to the tiny configuration
    expected pairs[8];
} meaning;

// Reads the changed configuration alone, without tensors.
static frit_checkpoint *read_meaning(const char *changes)
{
    json_t *config = change_config(changes);
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_new(&ckpt, "model"));
    frit_hf hf = {.ckpt = ckpt, .path = "config.json", .config = config};
    if (frit_hf_read_config(&hf) != FRIT_OK) fail_msg("%s: %s", changes, frit_error());
    json_decref(config);
    return ckpt;
}

static void expect_meanings(const meaning *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        frit_checkpoint *ckpt = read_meaning(rows[i].changes);
        expect_pairs(ckpt, rows[i].pairs, FRIT_COUNT(rows[i].pairs));
        frit_checkpoint_close(ckpt);
    }
}

static void absent_keys_mean_what_transformers_takes(void **state)
{
    (void)state;
    static const meaning rows[] = {
        {"{\"-num_key_value_heads\":0,\"-max_position_embeddings\":0}",
         {{"llama.attention.head_count_kv", 2, NULL},
          {"llama.context_length", 2048, NULL},
          {"llama.attention.key_length", 2, NULL},
          {"llama.rope.freq_base", 10000, NULL},
          {"llama.attention.layer_norm_rms_epsilon", 1e-6, NULL}}},
        {"{\"num_key_value_heads\":null,\"head_dim\":null,\"rope_scaling\":null,\"quantization_config\":null}",
         {{"llama.attention.head_count_kv", 2, NULL},
          {"llama.attention.key_length", 2, NULL},
          {"llama.rope.dimension_count", 2, NULL}}},
        {"{\"model_type\":\"mistral\",\"-max_position_embeddings\":0}",
         {{"llama.attention.sliding_window", 4096, NULL},
          {"llama.context_length", 131072, NULL},
          {"general.architecture", 0, "llama"}}},
        {"{\"model_type\":\"mistral\",\"num_attention_heads\":16,\"-num_key_value_heads\":0,\"hidden_size\":64}",
         {{"llama.attention.head_count_kv", 8, NULL}, {"llama.attention.key_length", 4, NULL}}},
        {"{\"model_type\":\"mistral\",\"sliding_window\":null}", {{"llama.attention.sliding_window", ABSENT, NULL}}},
        {"{\"model_type\":\"gemma\",\"-max_position_embeddings\":0,\"num_attention_heads\":16,\"-num_key_value_heads\":"
         "0}",
         {{"gemma.context_length", 8192, NULL},
          {"gemma.attention.key_length", 256, NULL},
          {"gemma.attention.head_count_kv", 16, NULL},
          {"gemma.rope.dimension_count", 256, NULL}}},
        {"{\"-model_type\":0,\"architectures\":[\"LlamaForCausalLM\"]}", {{"general.architecture", 0, "llama"}}},
        {"{\"rms_norm_eps\":0.5,\"head_dim\":6}",
         {{"llama.attention.layer_norm_rms_epsilon", 0.5, NULL},
          {"llama.attention.key_length", 6, NULL},
          {"llama.attention.value_length", 6, NULL},
          {"llama.rope.dimension_count", 6, NULL}}},
    };
    expect_meanings(rows, FRIT_COUNT(rows));
}

// For models of images or sounds, the text model is read, under each of the names that transformers has used.
static void a_text_model_inside_another_is_found(void **state)
{
    (void)state;
    static const char *const prefixes[][2] = {
        {"language_model.model.", "language_model."}, {"model.language_model.", ""}, {"model.text_model.", ""}};
    static const char wrapper[] =
        "{\"model_type\":\"llava\",\"hidden_size\":99,\"vocab_size\":99,\"-num_hidden_layers\":0,"
        "\"tie_word_embeddings\":false,\"text_config\":%s}";
    char changes[1000];
    snprintf(changes, sizeof changes, wrapper, tiny_config);
    const meaning rows[] = {
        {changes, {{"llama.embedding_length", 4, NULL}, {"general.architecture", 0, "llama"}}},
        {"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\",\"hidden_size\":64,"
         "\"num_hidden_layers\":6,\"intermediate_size\":96,\"sliding_window\":16}}",
         {{"gemma3.vocab_size", 262208, NULL},
          {"gemma3.attention.head_count", 8, NULL},
          {"gemma3.attention.head_count_kv", 4, NULL},
          {"gemma3.rope.freq_base", 1e6, NULL},
          {"gemma3.rope.freq_base_swa", 10000, NULL}}}};
    expect_meanings(rows, FRIT_COUNT(rows));
    for (size_t i = 0; i < FRIT_COUNT(prefixes); i++) {
        frit_checkpoint *ckpt;
        make_folder(NULL);
        model_prefix = prefixes[i][0];
        head_prefix = prefixes[i][1];
        write_weights(NULL, "vision_tower.patch.weight", "U8");
        model_prefix = "model.";
        head_prefix = "";
        write_changed_config(changes);
        assert_ok(open_tiny(&ckpt));
        assert_int_equal(ckpt->n_tensors, FRIT_COUNT(tiny_tensors));
        assert_non_null(frit_checkpoint_find(ckpt, "blk.0.attn_q.weight"));
        assert_non_null(frit_checkpoint_find(ckpt, "output.weight"));
        frit_checkpoint_close(ckpt);
    }
}

static void rotary_parameters_are_read_in_both_spellings(void **state)
{
    (void)state;
    static const meaning rows[] = {
        {"{\"rope_theta\":1000000}", {{"llama.rope.freq_base", 1e6, NULL}, {"llama.rope.scaling.type", ABSENT, NULL}}},
        {"{\"rope_parameters\":{\"rope_theta\":5e5}}", {{"llama.rope.freq_base", 5e5, NULL}}},
        {"{\"rope_theta\":7,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":9}}",
         {{"llama.rope.freq_base", 9, NULL}}},
        {"{\"rope_theta\":7,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}",
         {{"llama.rope.freq_base", 7, NULL},
          {"llama.rope.scaling.type", 0, "linear"},
          {"llama.rope.scaling.factor", 2, NULL}}},
        {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},\"rope_parameters\":{\"rope_theta\":9}}",
         {{"llama.rope.freq_base", 10000, NULL}, {"llama.rope.scaling.type", 0, "linear"}}},
        {"{\"rope_scaling\":{},\"rope_parameters\":{\"rope_theta\":9}}", {{"llama.rope.freq_base", 9, NULL}}},
        {"{\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2.5,\"original_max_position_embeddings\":4}}",
         {{"llama.rope.scaling.type", 0, "dynamic"},
          {"llama.rope.scaling.factor", 2.5, NULL},
          {"llama.rope.scaling.original_context_length", 8, NULL}}},
        {"{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0}}",
         {{"llama.rope.scaling.original_context_length", 8, NULL},
          {"llama.rope.scaling.attn_factor", ABSENT, NULL},
          {"llama.rope.scaling.yarn_beta_fast", 32, NULL},
          {"llama.rope.scaling.yarn_beta_slow", 1, NULL}}},
        {"{\"original_max_position_embeddings\":2,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
         "\"original_max_position_embeddings\":4,\"beta_fast\":16,\"beta_slow\":null,\"attention_factor\":2.0}}",
         {{"llama.rope.scaling.original_context_length", 2, NULL},
          {"llama.rope.scaling.yarn_beta_fast", 16, NULL},
          {"llama.rope.scaling.yarn_beta_slow", 1, NULL},
          {"llama.rope.scaling.attn_factor", 2 / 1.138629436111989, NULL}}},   // 0.1 ln 4 + 1
        {"{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,\"mscale\":0.5,\"mscale_all_dim\":2.0}}",
         {{"llama.rope.scaling.attn_factor", 1.0693147180559945 / 1.2772588722239781 / 1.138629436111989, NULL}}},
        {"{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,\"mscale\":0.5,\"mscale_all_dim\":0}}",
         {{"llama.rope.scaling.attn_factor", ABSENT, NULL}}},
        {"{\"rope_parameters\":{\"rope_type\":\"llama3\",\"factor\":32,\"low_freq_factor\":1,\"high_freq_factor\":4}}",
         {{"llama.rope.scaling.type", 0, "llama3"},
          {"llama.rope.scaling.factor", 32, NULL},
          {"llama.rope.scaling.original_context_length", 8, NULL}}},
        {"{\"partial_rotary_factor\":1.0}", {{"llama.rope.dimension_count", 2, NULL}}},
    };
    expect_meanings(rows, FRIT_COUNT(rows));
}

static void windows_of_qwen_follow_the_flag_and_the_layers(void **state)
{
    (void)state;
    static const struct {
        const char *changes;
        int windows[3];   // by layer; -1: the key is absent
    } rows[] = {
        {"\"use_sliding_window\":true,\"sliding_window\":16,\"max_window_layers\":0", {16, 16, 16}},
        {"\"use_sliding_window\":true,\"max_window_layers\":0", {4096, 4096, 4096}},
        {"\"use_sliding_window\":true,\"sliding_window\":16,\"max_window_layers\":2", {0, 0, 16}},
        {"\"use_sliding_window\":true,\"sliding_window\":16", {0, 0, 0}},
        {"\"use_sliding_window\":true,\"sliding_window\":null,\"max_window_layers\":0", {-1, 0, 0}},
        {"\"use_sliding_window\":false,\"sliding_window\":16,\"max_window_layers\":0", {-1, 0, 0}},
        {"\"use_sliding_window\":null,\"sliding_window\":16,\"max_window_layers\":0", {-1, 0, 0}},
        {"\"sliding_window\":16,\"max_window_layers\":0", {-1, 0, 0}},
        {"\"use_sliding_window\":true,\"sliding_window\":16,\"max_window_layers\":0,\"layer_types\":null",
         {16, 16, 16}},
        {"\"use_sliding_window\":true,\"sliding_window\":16,\"max_window_layers\":0,"
         "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\"]",
         {16, 0, 16}},
    };
    static const char *const types[] = {"qwen2", "qwen3"};
    for (size_t i = 0; i < FRIT_COUNT(types) * FRIT_COUNT(rows); i++) {
        const int *windows = rows[i / 2].windows;
        char changes[300];
        snprintf(changes, sizeof changes, "{\"model_type\":\"%s\",\"num_hidden_layers\":3,%s}", types[i % 2],
                 rows[i / 2].changes);
        frit_checkpoint *ckpt = read_meaning(changes);
        const frit_value *array = frit_meta_find(&ckpt->meta, "frit.attention.sliding_window");
        assert_int_equal(array != NULL, windows[0] >= 0);
        if (array) assert_int_equal(array->array.n, 3);
        for (uint64_t layer = 0; array && layer < 3; layer++)
            assert_int_equal(frit_value_item_i64(array, layer), windows[layer]);
        frit_checkpoint_close(ckpt);
    }
}

// Writes the reference's weights with the first n rows of one matrix of bf16.
static void write_fewer_rows(const char *folder, const char *name, int64_t n)
{
    size_t n_bytes;
    uint64_t n_header = 0;
    char *file = read_file(shared_path("goldens/hf/%s/model.safetensors", folder), &n_bytes);
    memcpy(&n_header, file, 8);
    json_t *header = json_loadb(file + 8, (size_t)n_header, 0, NULL), *tensor = json_object_get(header, name), *value;
    assert_non_null(tensor);
    json_t *shape = json_object_get(tensor, "shape");
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    const json_int_t begin = json_integer_value(json_array_get(offsets, 0)),
                     end = json_integer_value(json_array_get(offsets, 1)),
                     kept = begin + 2 * n * json_integer_value(json_array_get(shape, 1));
    json_array_set_new(shape, 0, json_integer(n));
    const char *key;
    json_object_foreach(header, key, value)
    {
        json_t *at = json_object_get(value, "data_offsets");
        for (size_t i = 0; i < json_array_size(at); i++) {
            const json_int_t offset = json_integer_value(json_array_get(at, i));
            if (offset >= end) json_array_set_new(at, i, json_integer(offset - (end - kept)));
        }
    }
    char *text = json_dumps(header, JSON_COMPACT);
    image made = image_of(text, n_bytes - 8 - (size_t)n_header - (size_t)(end - kept));
    char *data = file + 8 + n_header, *to = (char *)made.bytes + 8 + strlen(text);
    memcpy(to, data, (size_t)kept);
    memcpy(to + kept, data + end, n_bytes - 8 - (size_t)n_header - (size_t)end);
    write_file(in_folder("model.safetensors"), made.bytes, made.n_bytes);
    free(made.bytes);
    free(text);
    free(file);
    json_decref(header);
}

// Gemma 3n: in published models, layers embed 256 tokens fewer than the vocabulary has. The other tokens use the first
// token's embedding.
static void tokens_that_layers_do_not_embed_are_as_the_first(void **state)
{
    (void)state;
    enum { N = 512, N_THERE = 400, WIDTH = 160 };
    make_folder(NULL);
    write_fewer_rows("gemma3n_text", "model.embed_tokens_per_layer.weight", N_THERE);
    json_t *config = json_load_file(shared_path("goldens/hf/gemma3n_text/config.json"), 0, NULL);
    json_object_set_new(config, "vocab_size_per_layer_input", json_integer(N_THERE));
    assert_int_equal(json_dump_file(config, in_folder("config.json"), 0), 0);

    frit_checkpoint *whole, *ckpt;
    assert_ok(frit_checkpoint_open(&whole, shared_path("goldens/hf/gemma3n_text"), NULL));
    assert_ok(open_tiny(&ckpt));
    const frit_tensor *wanted = frit_checkpoint_find(whole, "per_layer_token_embd.weight");
    const frit_tensor *found = frit_checkpoint_find(ckpt, "per_layer_token_embd.weight");
    assert_int_equal(found->shape[0], N);
    static float a[WIDTH], b[WIDTH];
    for (int64_t i = 0; i < N; i++) {
        assert_ok(frit_tensor_decode_rows(found, i, 1, a));
        assert_ok(frit_tensor_decode_rows(wanted, i < N_THERE ? i : 0, 1, b));
        assert_memory_equal(a, b, sizeof a);
    }
    frit_checkpoint_close(whole);
    frit_checkpoint_close(ckpt);
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    const frit_token tokens[] = {3, 399, 400, 511};
    assert_ok(frit_model_open(&model, folder_path, NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 32, .n_threads = 1}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, FRIT_COUNT(tokens), NULL));
    assert_ok(frit_engine_step(engine, NULL));
    assert_non_null(frit_session_logits(session));
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);

    frit_checkpoint *bad;
    json_object_set_new(config, "vocab_size_per_layer_input", json_integer(N + 1));
    assert_int_equal(json_dump_file(config, in_folder("config.json"), 0), 0);
    assert_fails(open_tiny(&bad), FRIT_E_FORMAT, "vocab_size_per_layer_input is 513, expected at most vocab_size, 512");
    json_decref(config);
}

// ---------------------------------------------------------------------------------------- shards

static void a_folder_of_shards_opens_like_one_file(void **state)
{
    (void)state;
    frit_buf index = {0};
    frit_buf_text(&index, "{\"weight_map\":{");
    for (size_t i = 0; i < FRIT_COUNT(tiny_tensors); i++)
        frit_buf_printf(&index, "%s\"%s\":\"model-1-of-2.safetensors\"", i ? "," : "", tiny_tensors[i].name);
    frit_buf_text(&index, ",\"extra\":\"model-2-of-2.safetensors\"}}");
    char first[4200];
    snprintf(first, sizeof first, "%s", in_folder("model-1-of-2.safetensors"));
    assert_int_equal(rename(in_folder("model.safetensors"), first), 0);
    image made = image_of("{\"extra\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1);
    write_file(in_folder("model-2-of-2.safetensors"), made.bytes, made.n_bytes);
    write_file(in_folder("model.safetensors.index.json"), index.data, index.len);
    for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
        frit_checkpoint *ckpt;
        assert_ok(frit_checkpoint_open(&ckpt, folder_path, &(frit_checkpoint_options){.no_mmap = no_mmap}));
        assert_int_equal(ckpt->n_files, 2);
        assert_int_equal(ckpt->n_tensors, FRIT_COUNT(tiny_tensors));
        expect_tensor(ckpt, "blk.0.ffn_down.weight", 4, 6);
        frit_checkpoint_close(ckpt);
    }
    free(made.bytes);
    frit_buf_free(&index);
}

static bool stop_half_way(void *ctx, double done)
{
    *(double *)ctx = done;
    return done < 0.4;
}

static void opening_can_be_cancelled_between_shards(void **state)
{
    (void)state;
    double done = -1;
    frit_checkpoint *ckpt;
    frit_checkpoint_options options = {.progress = stop_half_way, .progress_ctx = &done};
    assert_fails(frit_checkpoint_open(&ckpt, folder_path, &options), FRIT_E_CANCELLED, "cancelled");
    assert_true(done == 0.5);
    assert_null(ckpt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_folders_open_under_the_names_of_gguf),
        cmocka_unit_test(tensors_keep_their_data_under_the_new_name),
        cmocka_unit_test(norms_of_gemma_have_one_added),
        cmocka_unit_test(absent_keys_mean_what_transformers_takes),
        cmocka_unit_test(a_text_model_inside_another_is_found),
        cmocka_unit_test(rotary_parameters_are_read_in_both_spellings),
        cmocka_unit_test(tokens_that_layers_do_not_embed_are_as_the_first),
        cmocka_unit_test(windows_of_qwen_follow_the_flag_and_the_layers),
        cmocka_unit_test_setup(a_folder_of_shards_opens_like_one_file, make_folder),
        cmocka_unit_test(opening_can_be_cancelled_between_shards),   // uses the folder of the previous test
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

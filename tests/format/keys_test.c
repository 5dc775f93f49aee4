// SPDX-License-Identifier: MIT
// Keys that a config.json leaves out or spells differently have the meaning that transformers' AutoConfig gives them.
// tests/goldens/hf/keys.tsv, written by classes.py, has for each case a change to a folder's config.json, and an
// equivalent change with every key.
#include "format/hf/hf.h"
#include "support/support.h"

static json_t *load(const char *folder)
{
    json_t *config = json_load_file(shared_path("%s/config.json", folder), 0, NULL);
    if (!config) fail_msg("%s: config.json is not JSON", folder);
    return config;
}

static json_t *change(const char *folder, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "goldens/hf/%s", folder);
    json_t *config = load(path), *changes = json_loads(text, 0, NULL), *value;
    const char *key;
    if (!changes) fail_msg("%s: not JSON: %s", folder, text);
    json_object_foreach(changes, key, value)
    {
        if (key[0] == '-')
            json_object_del(config, key + 1);
        else
            json_object_set(config, key, value);
    }
    json_decref(changes);
    return config;
}

static void print_pairs(const frit_checkpoint *ckpt, frit_buf *out)
{
    for (size_t i = 0; i < ckpt->meta.n; i++) {
        const frit_pair *pair = &ckpt->meta.pairs[i];
        frit_buf_printf(out, "%.*s ", (int)pair->key.len, pair->key.ptr);
        frit_value_print(&pair->value, -1, out);
        frit_buf_char(out, '\n');
    }
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        frit_buf_printf(out, "%s", ckpt->tensors[i].name);
        for (size_t k = 0; k < ckpt->tensors[i].n_bytes / sizeof(float); k++)
            frit_buf_printf(out, " %g", (double)((const float *)ckpt->tensors[i].data)[k]);
        frit_buf_char(out, '\n');
    }
}

// Prints the tensors that a folder must have.
static void print_flags(const frit_hf *hf, frit_buf *out)
{
    const frit_hf_tensor *row;
    bool flag = false;
    double n_next = 0;
    assert_ok(frit_hf_get_flag(hf, hf->config, "", "tie_word_embeddings", &flag));
    assert_ok(frit_hf_get_number(hf, hf->config, "", "num_mtp_layers", FRIT_HF_COUNT, &n_next));
    frit_buf_printf(out, "tied %d, %g layers for the next token\n", flag, n_next);
    for (size_t i = 0; (row = frit_hf_tensor_get(hf->family, i)); i++) {
        if (!row->bias_if || !*row->bias_if || *row->bias_if == '?') continue;
        flag = false;
        assert_ok(frit_hf_get_flag(hf, hf->config, "", row->bias_if, &flag));
        frit_buf_printf(out, "bias of %s %d\n", row->gguf, flag);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Sorts lines, because keys may be in another order.
static void sort_lines(frit_buf *text)
{
    enum { MOST = 1000 };
    char *copy = strdup(text->data), *save = NULL, *lines[MOST];
    size_t n = 0;
    for (char *line = strtok_r(copy, "\n", &save); line && n < MOST; line = strtok_r(NULL, "\n", &save))
        lines[n++] = line;
    assert_true(n < MOST);
    qsort(lines, n, sizeof *lines, by_text);
    frit_buf_clear(text);
    for (size_t i = 0; i < n; i++) frit_buf_printf(text, "%s\n", lines[i]);
    free(copy);
}

// Prints everything that is read, or the error.
static bool print_read(json_t *config, frit_buf *out)
{
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_new(&ckpt, "folder"));
    frit_hf hf = {.ckpt = ckpt, .path = "config.json", .config = config};
    const bool is_read = frit_hf_read_config(&hf) == FRIT_OK;
    if (is_read) {
        print_pairs(ckpt, out);
        print_flags(&hf, out);
    } else {
        frit_buf_text(out, frit_error());
    }
    frit_checkpoint_close(ckpt);
    json_decref(config);
    sort_lines(out);
    return is_read;
}

static void print_difference(const char *a, const char *b)
{
    while (*a || *b) {
        const int n_a = (int)strcspn(a, "\n"), n_b = (int)strcspn(b, "\n");
        if (n_a != n_b || strncmp(a, b, (size_t)n_a) != 0)
            print_message("    is:       %.*s\n    expected: %.*s\n", n_a, a, n_b, b);
        a += n_a + (a[n_a] != 0);
        b += n_b + (b[n_b] != 0);
    }
}

static void keys_mean_what_transformers_makes_of_them(void **state)
{
    (void)state;
    size_t n_bytes, n = 0, n_bad = 0;
    char *text = read_file(project_path("tests/goldens/hf/keys.tsv"), &n_bytes), *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *given = strchr(line, '\t'), *meant = strrchr(line, '\t');
        assert_true(given && meant > given);
        *given++ = *meant++ = 0;
        if (!shared_has("goldens/hf/%s", line)) continue;
        frit_buf is = {0}, expected = {0};
        n++;
        const bool one = print_read(change(line, given), &is), other = print_read(change(line, meant), &expected);
        if (one != other || (one && strcmp(is.data, expected.data) != 0)) {
            print_message("%s: %s\n", line, given);
            print_difference(is.data, expected.data);
            n_bad++;
        }
        frit_buf_free(&is);
        frit_buf_free(&expected);
    }
    free(text);
    assert_true(n >= shared_least(1800));
    assert_int_equal(n_bad, 0);
}

// Compares published configurations with equivalent ones that have every key.
static void published_configurations_are_read_as_whole_ones(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"03-published-config-keys/qwen3_next-full_attention_interval",
         "03-published-config-keys/qwen3_next-reference"},
        {"03-published-config-keys/lfm2-block_ff_dim", "03-published-config-keys/lfm2-reference"},
        {"03-published-config-keys/gpt_neox-rotary_emb_base-5000",
         "03-published-config-keys/gpt_neox-the-same-in-rope_parameters"},
        {"03-published-config-keys/bloom-n_embed-num_attention_heads", "01-base-model-prefix/bloom-as-causal-lm"},
        {"04-absent-keys-class-defaults/lfm2-without-rope_parameters",
         "04-absent-keys-class-defaults/lfm2-reference-rope_parameters"},
        {"04-absent-keys-class-defaults/glm4-without-attention_bias",
         "04-absent-keys-class-defaults/glm4-reference-attention_bias"},
        {"04-absent-keys-class-defaults/arcee-without-rms_norm_eps",
         "04-absent-keys-class-defaults/arcee-reference-rms_norm_eps"},
        {"04-absent-keys-class-defaults/cohere-without-rope_parameters",
         "04-absent-keys-class-defaults/cohere-reference-rope_parameters"},
    };
    for (size_t i = 0; i < FRIT_COUNT(pairs); i++) {
        frit_buf is = {0}, expected = {0};
        char path[256];
        snprintf(path, sizeof path, "bugs/%s", pairs[i][0]);
        const bool one = print_read(load(path), &is);
        snprintf(path, sizeof path, "bugs/%s", pairs[i][1]);
        const bool other = print_read(load(path), &expected);
        if (!one || !other || strcmp(is.data, expected.data) != 0) {
            print_difference(is.data, expected.data);
            fail_msg("%s is read otherwise", pairs[i][0]);
        }
        frit_buf_free(&is);
        frit_buf_free(&expected);
    }
}

// A multimodal model whose text_config lacks its model_type and its sizes.
static void text_models_have_the_type_that_the_whole_gives_them(void **state)
{
    (void)state;
    static const struct {
        const char *config, *type;
        double width;
    } rows[] = {
        {"{\"model_type\":\"llava\",\"text_config\":{}}", "llama", 4096},
        {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"qwen2\"}}", "qwen2", 4096},
        {"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3\"}}", "gemma3_text", 2304},
        {"{\"model_type\":\"idefics2\",\"text_config\":{\"hidden_size\":64}}", "mistral", 64},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt;
        json_t *config = json_loads(rows[i].config, 0, NULL);
        assert_ok(frit_checkpoint_new(&ckpt, "folder"));
        frit_hf hf = {.ckpt = ckpt, .path = "config.json", .config = config};
        assert_ok(frit_hf_read_config(&hf));
        assert_string_equal(hf.family->model_type, rows[i].type);
        assert_true(frit_hf_written(&hf, "embedding_length") == rows[i].width);
        frit_checkpoint_close(ckpt);
        json_decref(config);
    }
}

// Values of keys for which the architecture supports one value only.
static void values_that_nothing_computes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *part;
    } rows[] = {
        {"{\"model_type\":\"gpt2\",\"scale_attn_weights\":false}", "scale_attn_weights is 0"},
        {"{\"model_type\":\"gpt2\",\"scale_attn_by_inverse_layer_idx\":true}", "scale_attn_by_inverse_layer_idx is 1"},
        {"{\"model_type\":\"gpt_oss\",\"swiglu_limit\":5}", "swiglu_limit is 5"},
        {"{\"model_type\":\"bloom\",\"apply_residual_connection_post_layernorm\":true}", "apply_residual"},
        {"{\"model_type\":\"olmo2\",\"attention_bias\":true}", "attention_bias is 1"},
        {"{\"model_type\":\"deepseek_v3\",\"attention_bias\":true}", "attention_bias is 1"},
        {"{\"model_type\":\"ernie4_5\",\"use_bias\":true}", "use_bias is 1"},
        {"{\"model_type\":\"phi\",\"qk_layernorm\":true}", "qk_layernorm is 1"},
        {"{\"model_type\":\"mamba2\",\"time_step_limit\":[0,0.1]}", "time_step_limit is not supported"},
        {"{\"model_type\":\"mamba2\",\"num_heads\":64}", "num_heads is 64 and head_dim is 64"},
        {"{\"model_type\":\"bamba\",\"mamba_d_head\":32}", "mamba_d_head is 32"},
        {"{\"model_type\":\"ernie4_5_moe\",\"moe_layer_end_index\":3}", "moe_layer_end_index is 3"},
        {"{\"model_type\":\"jamba\",\"num_hidden_layers\":2000}", "2000 layers"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt;
        json_t *config = json_loads(rows[i].config, 0, NULL);
        assert_ok(frit_checkpoint_new(&ckpt, "folder"));
        frit_hf hf = {.ckpt = ckpt, .path = "config.json", .config = config};
        const frit_status status = frit_hf_read_config(&hf);
        if (status == FRIT_OK || !strstr(frit_error(), rows[i].part))
            fail_msg("%s: got %d \"%s\"", rows[i].config, (int)status, frit_error());
        frit_checkpoint_close(ckpt);
        json_decref(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_configurations_are_read_as_whole_ones),
        cmocka_unit_test(text_models_have_the_type_that_the_whole_gives_them),
        cmocka_unit_test(values_that_nothing_computes_are_refused),
        cmocka_unit_test(keys_mean_what_transformers_makes_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

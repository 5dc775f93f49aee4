// SPDX-License-Identifier: MIT
// Folders written by base classes: names without the prefix of generating classes, buffers, no output matrix.
#include "arch/golden.h"
#include "format/folder_build.h"

#include <unistd.h>

static char said[600];

static void remember(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx, (void)level;
    snprintf(said, sizeof said, "%s", sentence);
}

// Renames the tensors of a safetensors file as a base class does: without the prefix of most names, and without output.
static json_t *rename_tensors(const json_t *header, const char *prefix)
{
    json_t *out = json_object(), *value;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)header, name, value)
    {
        const bool has_prefix = strncmp(name, prefix, strlen(prefix)) == 0;
        json_object_set(out, name + (has_prefix ? strlen(prefix) : 0), value);
    }
    return out;
}

// Finds the prefix of the table of embeddings; "" for names without one.
static void find_prefix(const json_t *header, char prefix[64])
{
    static const char *const tables[] = {"embed_tokens.", "wte.", "word_embeddings.", "embed_in.", "embeddings."};
    json_t *value;
    const char *name;
    prefix[0] = 0;
    json_object_foreach((json_t *)(uintptr_t)header, name, value)
    {
        const char *dot = strchr(name, '.');
        for (size_t i = 0; dot && i < FRIT_COUNT(tables); i++)
            if (strncmp(dot + 1, tables[i], strlen(tables[i])) == 0)
                snprintf(prefix, 64, "%.*s", (int)(dot + 1 - name), name);
    }
}

// Writes the reference folder as its base class does. Returns false if names have no prefix, or a model with vision
// contains the text model.
static bool write_as_base(const char *set, const char *name)
{
    size_t n_bytes, n_config;
    uint64_t length;
    char prefix[64];
    char *bytes = read_file(shared_path("%s/%s/model.safetensors", set, name), &n_bytes);
    char *config = read_file(shared_path("%s/%s/config.json", set, name), &n_config);
    if (strstr(config, "\"text_config\"")) {
        free(bytes);
        free(config);
        return false;
    }
    memcpy(&length, bytes, sizeof length);
    json_t *header = json_loadb(bytes + sizeof length, (size_t)length, 0, NULL);
    assert_non_null(header);
    find_prefix(header, prefix);
    json_t *renamed = rename_tensors(header, prefix);
    char *text = json_dumps(renamed, JSON_COMPACT);
    frit_buf file = {0};
    const uint64_t n_text = strlen(text);
    frit_buf_append(&file, &n_text, sizeof n_text);
    frit_buf_text(&file, text);
    frit_buf_append(&file, bytes + sizeof length + length, n_bytes - sizeof length - (size_t)length);
    write_file(in_folder("model.safetensors"), file.data, file.len);
    write_file(in_folder("config.json"), config, n_config);
    frit_buf_free(&file);
    free(text);
    free(bytes);
    free(config);
    json_decref(renamed);
    json_decref(header);
    return prefix[0] != 0;
}

static bool is_same(const frit_checkpoint *a, const frit_checkpoint *b)
{
    bool same = a->n_tensors == b->n_tensors && a->meta.n == b->meta.n;
    for (size_t i = 0; i < a->n_tensors && same; i++) {
        const frit_tensor *one = &a->tensors[i], *other = frit_checkpoint_find(b, one->name);
        same = other && one->n_bytes == other->n_bytes && one->dtype == other->dtype &&
               (!one->data || memcmp(one->data, other->data, (size_t)one->n_bytes) == 0);
    }
    return same;
}

static void folders_of_base_classes_are_those_of_generating_ones(void **state)
{
    (void)state;
    size_t n = 0, n_bad = 0;
    const frit_log log = {remember, NULL};
    for (size_t i = 0; i < N_GOLDEN_FOLDERS; i++) {
        frit_checkpoint *base = NULL, *whole = NULL;
        const bool is_encoder = golden_get(i)->flags & GOLDEN_HIDDEN;   // base classes have written it already
        if (is_encoder || !golden_is_here(i) || !write_as_base(golden_set(i), golden_name(i))) continue;
        n++;
        said[0] = 0;
        const frit_checkpoint_options options = {.log = &log};
        assert_ok(frit_checkpoint_open(&whole, shared_path("%s/%s", golden_set(i), golden_name(i)), NULL));
        const frit_status status = frit_checkpoint_open(&base, folder_path, &options);
        if (status != FRIT_OK || said[0] || !is_same(whole, base)) {
            print_message("%s: %s %s\n", golden_name(i), status == FRIT_OK ? "other tensors" : frit_error(), said);
            n_bad++;
        }
        frit_checkpoint_close(base);
        frit_checkpoint_close(whole);
    }
    assert_true(n >= shared_least(60));
    assert_int_equal(n_bad, 0);
}

static void a_base_class_has_no_output_matrix(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    const frit_log log = {remember, NULL};
    const frit_checkpoint_options options = {.log = &log};
    model_prefix = "";
    write_weights("lm_head.weight", NULL, NULL);
    assert_ok(frit_checkpoint_open(&ckpt, folder_path, &options));
    assert_null(frit_checkpoint_find(ckpt, "output.weight"));
    assert_non_null(strstr(said, "has no output matrix"));
    frit_checkpoint_close(ckpt);
    said[0] = 0;
    write_changed_config("{\"tie_word_embeddings\":true}");
    assert_ok(frit_checkpoint_open(&ckpt, folder_path, &options));
    assert_string_equal(said, "");
    frit_checkpoint_close(ckpt);
    model_prefix = "model.";
}

static void buffers_of_old_files_are_left_out_in_silence(void **state)
{
    (void)state;
    static const char *const names[] = {"model.layers.0.self_attn.rotary_emb.inv_freq", "layers.0.attn.bias",
                                        "layers.0.attn.masked_bias", "h.0.attention.masked_bias"};
    frit_checkpoint *ckpt;
    const frit_log log = {remember, NULL};
    const frit_checkpoint_options options = {.log = &log};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        said[0] = 0;
        write_weights(NULL, names[i], "U8");
        assert_ok(frit_checkpoint_open(&ckpt, folder_path, &options));
        assert_string_equal(said, "");
        frit_checkpoint_close(ckpt);
    }
}

static void published_folders_open(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"gpt2-as-published", "gpt2-as-causal-lm"},
                                           {"bloom-as-published", "bloom-as-causal-lm"},
                                           {"qwen3-as-published", "qwen3-as-causal-lm"}};
    for (size_t i = 0; i < FRIT_COUNT(pairs); i++) {
        frit_checkpoint *is, *expected;
        assert_ok(frit_checkpoint_open(&is, shared_path("bugs/01-base-model-prefix/%s", pairs[i][0]), NULL));
        assert_ok(frit_checkpoint_open(&expected, shared_path("bugs/01-base-model-prefix/%s", pairs[i][1]), NULL));
        assert_true(is_same(expected, is));
        frit_checkpoint_close(is);
        frit_checkpoint_close(expected);
    }
    frit_checkpoint *ckpt;
    const frit_log log = {remember, NULL};
    const frit_checkpoint_options options = {.log = &log};
    said[0] = 0;
    assert_ok(
        frit_checkpoint_open(&ckpt, shared_path("bugs/01-base-model-prefix/gpt2-as-published-with-masks"), &options));
    assert_int_equal(ckpt->n_tensors, 28);
    assert_string_equal(said, "");
    frit_checkpoint_close(ckpt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(folders_of_base_classes_are_those_of_generating_ones, make_folder),
        cmocka_unit_test_setup(a_base_class_has_no_output_matrix, make_folder),
        cmocka_unit_test_setup(buffers_of_old_files_are_left_out_in_silence, make_folder),
        cmocka_unit_test(published_folders_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

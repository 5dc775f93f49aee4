// SPDX-License-Identifier: MIT
// The reference folders were written by transformers 5. Most published folders were written by transformers 4: the same
// models in its spelling must give the same results.
#include "arch/arch.h"
#include "arch/golden.h"
#include "format/checkpoint.h"

#include <dirent.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

// Names in transformers 4 for rope_theta and partial_rotary_factor, and keys that it left out.
static const struct {
    const char *folder;
    const char *theta, *local_theta, *partial;   // NULL: the usual name; local: for layers with a window
    const char *left_out;                        // a list that follows from other keys, or from the layer's number
    const char *added;                           // a key that may replace it
} families[] = {
    {"gpt_neox", "rotary_emb_base", NULL, "rotary_pct", NULL, NULL},
    {"gpt_neox-seq", "rotary_emb_base", NULL, "rotary_pct", NULL, NULL},
    {"cohere2", NULL, NULL, NULL, "layer_types", "{\"sliding_window_pattern\":4}"},
    {"gemma2", NULL, NULL, NULL, "layer_types", NULL},
    {"gemma3_text", NULL, "rope_local_base_freq", NULL, "layer_types", "{\"sliding_window_pattern\":6}"},
    {"gemma3n_text", NULL, "rope_local_base_freq", NULL, "layer_types", NULL},
    {"modernbert", "global_rope_theta", "local_rope_theta", NULL, "layer_types", NULL},
    {"olmo3", NULL, NULL, NULL, "layer_types", NULL},
    {"gpt_oss", NULL, NULL, NULL, "layer_types", NULL},
    {"qwen2", NULL, NULL, NULL, "layer_types", NULL},
    {"qwen2-tied", NULL, NULL, NULL, "layer_types", NULL},
    {"qwen2_moe", NULL, NULL, NULL, "layer_types", NULL},
    {"qwen3", NULL, NULL, NULL, "layer_types", NULL},
    {"dots1", NULL, NULL, NULL, "layer_types", NULL},
    {"smollm3", NULL, NULL, NULL, "layer_types", NULL},
};

static size_t family_of(const char *folder)
{
    size_t i = 0;
    while (i < FRIT_COUNT(families) && strcmp(families[i].folder, folder) != 0) i++;
    return i;
}

static void move(json_t *config, const char *to, json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    if (!value) return;
    json_object_set(config, to, value);
    json_object_del(from, key);
}

// Converts {"rope_theta": 1e4, "rope_type": "yarn", "factor": 4} to "rope_theta": 1e4, "rope_scaling": {"type": "yarn",
// ...}.
static void spell_rotation(json_t *config, json_t *rope, const char *theta, const char *partial)
{
    move(config, theta ? theta : "rope_theta", rope, "rope_theta");
    move(config, partial ? partial : "partial_rotary_factor", rope, "partial_rotary_factor");
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    json_object_set_new(config, "rope_scaling", json_null());
    if (!type || strcmp(type, "default") == 0) return;
    move(rope, "type", rope, "rope_type");
    json_object_set(config, "rope_scaling", rope);
}

static json_t *spell_as_4(const char *folder)
{
    json_t *config = json_load_file(shared_path("goldens/hf/%s/config.json", folder), 0, NULL);
    const size_t i = family_of(folder);
    const bool is_named = i < FRIT_COUNT(families);
    assert_non_null(config);
    move(config, "torch_dtype", config, "dtype");
    json_t *rope = json_object_get(config, "rope_parameters"), *full = json_object_get(rope, "full_attention");
    if (rope) {
        json_t *local = json_object_get(rope, "sliding_attention");
        const char *local_theta = is_named ? families[i].local_theta : NULL;
        if (local && local_theta) move(config, local_theta, local, "rope_theta");
        spell_rotation(config, full ? full : rope, is_named ? families[i].theta : NULL,
                       is_named ? families[i].partial : NULL);
        json_object_del(config, "rope_parameters");
    }
    if (is_named && families[i].left_out) json_object_del(config, families[i].left_out);
    json_t *added = is_named && families[i].added ? json_loads(families[i].added, 0, NULL) : NULL;
    if (added) json_object_update(config, added);
    json_decref(added);
    return config;
}

// Makes a folder of the same name with another config.json; its other files are the reference's.
static const char *make_folder(const char *folder, const json_t *config)
{
    static char path[4200];
    char name[4600], target[4600];
    snprintf(path, sizeof path, "%s", temp_path(folder));
    mkdir(path, 0700);
    snprintf(name, sizeof name, "%s/config.json", path);
    unlink(name);
    assert_int_equal(json_dump_file(config, name, 0), 0);
    DIR *dir = opendir(shared_path("goldens/hf/%s", folder));
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "config.json") == 0) continue;
        snprintf(target, sizeof target, "%s", shared_path("goldens/hf/%s/%.200s", folder, entry->d_name));
        snprintf(name, sizeof name, "%s/%.200s", path, entry->d_name);
        unlink(name);
        assert_int_equal(symlink(target, name), 0);
    }
    closedir(dir);
    return path;
}

static frit_hparams read_hparams(const frit_checkpoint *ckpt, frit_arena *arena)
{
    const frit_arch *arch;
    frit_hparams hp;
    assert_ok(frit_arch_of(&arch, ckpt));
    assert_ok(frit_hparams_read(&hp, arch, ckpt, arena));
    return hp;
}

static bool is_same(const frit_checkpoint *four, const frit_checkpoint *five)
{
    frit_arena arena = {0};
    frit_hparams a = read_hparams(four, &arena), b = read_hparams(five, &arena);
    const size_t layer_bytes = (size_t)b.n_layer * sizeof *b.layers;
    bool same = a.n_layer == b.n_layer && memcmp(a.layers, b.layers, layer_bytes) == 0;
    a.layers = b.layers;
    // Without scaling it does not matter whether layers with a window would have it.
    const bool is_plain = a.rope.factor == 1 && b.rope.factor == 1;
    if (is_plain && a.rope_swa.base == b.rope_swa.base && a.rope_swa.dim == b.rope_swa.dim) {
        memset(&a.rope_swa, 0, sizeof a.rope_swa);
        memset(&b.rope_swa, 0, sizeof b.rope_swa);
    }
    same = same && memcmp(&a, &b, sizeof a) == 0;
    frit_arena_free(&arena);
    return same;
}

static void print_difference(const frit_checkpoint *four, const frit_checkpoint *five)
{
    print_message("%s: %zu keys, %zu expected\n", four->path, four->meta.n, five->meta.n);
    for (size_t i = 0; i < five->meta.n; i++) {
        char key[200];
        frit_buf a = {0}, b = {0};
        const frit_pair *pair = &five->meta.pairs[i];
        snprintf(key, sizeof key, "%.*s", (int)pair->key.len, pair->key.ptr);
        const frit_value *value = frit_meta_find(&four->meta, key);
        frit_value_print(&pair->value, -1, &a);
        if (value) frit_value_print(value, -1, &b);
        if (!value || strcmp(a.data, b.data) != 0)
            print_message("  %s is %s, expected %s\n", key, value ? b.data : "absent", a.data);
        frit_buf_free(&a);
        frit_buf_free(&b);
    }
}

static void folders_of_transformers_4_mean_the_same(void **state)
{
    (void)state;
    size_t n_bad = 0;
    for (size_t i = 0; i < N_GOLDEN_FOLDERS; i++) {
        const char *folder = golden_name(i);
        frit_checkpoint *four, *five;
        // Newer models exist in transformers 5 only.
        if (strcmp(folder, "gemma4_text") == 0 || golden_get(i)->flags & GOLDEN_MORE) continue;
        char *path = strdup(shared_path("goldens/hf/%s", folder));
        json_t *config = spell_as_4(folder);
        assert_ok(frit_checkpoint_open(&five, path, NULL));
        const frit_status status = frit_checkpoint_open(&four, make_folder(folder, config), NULL);
        if (status != FRIT_OK) print_message("%s: %s\n", folder, frit_error());
        n_bad += status != FRIT_OK;
        if (status == FRIT_OK && !is_same(four, five)) {
            print_difference(four, five);
            n_bad++;
        }
        frit_checkpoint_close(five);
        frit_checkpoint_close(four);
        json_decref(config);
        free(path);
    }
    assert_int_equal(n_bad, 0);
}

// Without layer_types, windows follow the configuration's period and number.
static void patterns_of_windows_are_those_of_the_configuration(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *changes;
        int32_t windows[7];
    } rows[] = {
        {"gemma3_text", "{\"sliding_window_pattern\":3}", {16, 16, 0, 16, 16, 0, 16}},
        {"cohere2", "{\"sliding_window_pattern\":2}", {16, 0, 16, 0}},
        {"cohere2", "{\"sliding_window_pattern\":null}", {16, 16, 16, 0}},
        {"dots1", "{\"sliding_window\":16,\"max_window_layers\":1}", {0, 16, 16}},
        {"dots1", "{\"sliding_window\":null,\"max_window_layers\":1}", {0, 0, 0}},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *config = spell_as_4(rows[i].folder), *changes = json_loads(rows[i].changes, 0, NULL);
        frit_checkpoint *ckpt;
        frit_arena arena = {0};
        json_object_update(config, changes);
        assert_ok(frit_checkpoint_open(&ckpt, make_folder(rows[i].folder, config), NULL));
        const frit_hparams hp = read_hparams(ckpt, &arena);
        for (int32_t k = 0; k < hp.n_layer; k++) assert_int_equal(hp.layers[k].window, rows[i].windows[k]);
        frit_arena_free(&arena);
        frit_checkpoint_close(ckpt);
        json_decref(config);
        json_decref(changes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_of_transformers_4_mean_the_same),
        cmocka_unit_test(patterns_of_windows_are_those_of_the_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

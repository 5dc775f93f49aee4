// SPDX-License-Identifier: MIT
// Sets every key of every golden configuration to a value of another kind. The folder must be refused with an error
// that names the key, unless the key is not read. A value of the wrong kind never counts as absent.
#include "base/buf.h"
#include "format/checkpoint.h"
#include "support/support.h"

#include <dirent.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const values[] = {"\"x\"", "true", "-7", "0.5", "1e300", "[]", "[\"x\"]", "[-7]", "{}"};

static char copy[600];

// Returns all metadata as one text; NULL if the folder is refused.
static char *read_meta(const char *folder)
{
    frit_checkpoint *ckpt;
    if (frit_checkpoint_open(&ckpt, folder, &(frit_checkpoint_options){0}) != FRIT_OK) return NULL;
    frit_buf all = {0};
    for (size_t i = 0; i < ckpt->meta.n; i++) {
        const frit_pair *pair = &ckpt->meta.pairs[i];
        frit_buf_printf(&all, "%.*s=", (int)pair->key.len, pair->key.ptr);
        frit_value_print(&pair->value, -1, &all);
        frit_buf_char(&all, '\n');
    }
    frit_buf_printf(&all, "%zu tensors\n", ckpt->n_tensors);
    frit_checkpoint_close(ckpt);
    return all.data;
}

static void write_copy(const json_t *config)
{
    char path[700];
    snprintf(path, sizeof path, "%s/config.json", copy);
    assert_int_equal(json_dump_file(config, path, 0), 0);
}

// Tries a change. `object` is part of `config`.
static size_t try_key(const char *name, json_t *config, json_t *object, const char *key, const char *meta)
{
    size_t n_bad = 0;
    json_t *before = json_incref(json_object_get(object, key));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        json_t *value = json_loads(values[i], JSON_DECODE_ANY, NULL);
        const bool is_number = json_is_number(value) && (json_is_number(before) || json_is_null(before));
        if (is_number || (json_typeof(value) == json_typeof(before) && !json_is_array(value)) ||
            (json_is_boolean(value) && json_is_boolean(before)) ||
            (json_is_array(before) && json_array_size(value) == 0)) {
            json_decref(value);
            continue;
        }
        json_object_set_new(object, key, value);
        write_copy(config);
        char *now = read_meta(copy);
        // Tokens that end a text are read only for models that generate.
        const bool is_class = strcmp(key, "architectures") == 0;
        const bool good = is_class ? now || strstr(frit_error(), "_token_id")
                          : now    ? strcmp(now, meta) == 0
                                   : strstr(frit_error(), key) != NULL;
        if (!good)
            print_message("%s: %s = %s: %s\n", name, key, values[i], now ? "is read as something" : frit_error());
        n_bad += !good;
        free(now);
    }
    json_object_set_new(object, key, before);
    return n_bad;
}

static void link_files(const char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char from[1600], to[1600];
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "config.json") == 0) continue;
        snprintf(from, sizeof from, "%s/%s", folder, entry->d_name);
        snprintf(to, sizeof to, "%s/%s", copy, entry->d_name);
        assert_int_equal(symlink(from, to), 0);
    }
    closedir(dir);
}

static void unlink_files(void)
{
    DIR *dir = opendir(copy);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s", copy, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    closedir(dir);
}

static size_t try_folder(const char *folder, const char *name)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *config = json_load_file(path, 0, NULL), *inner;
    assert_non_null(config);
    link_files(folder);
    write_copy(config);
    char *meta = read_meta(copy);
    if (!meta) fail_msg("%s: %s", name, frit_error());
    size_t n_bad = 0;
    void *next;
    const char *key, *inner_key;
    json_t *value;
    json_object_foreach_safe(config, next, key, value)
    {
        char outer[128];
        snprintf(outer, sizeof outer, "%s", key);
        n_bad += try_key(name, config, config, outer, meta);
        void *after;
        json_t *object = json_object_get(config, outer);
        if (!json_is_object(object)) continue;
        json_object_foreach_safe(object, after, inner_key, inner)
        {
            char of[128];
            snprintf(of, sizeof of, "%s", inner_key);
            n_bad += try_key(name, config, object, of, meta);
        }
    }
    free(meta);
    json_decref(config);
    unlink_files();
    return n_bad;
}

static void values_of_another_kind_are_refused(void **state)
{
    (void)state;
    char *root = strdup(shared_path("goldens/hf"));
    snprintf(copy, sizeof copy, "%s", temp_path("copy"));
    assert_int_equal(mkdir(copy, 0700), 0);
    DIR *dir = opendir(root);
    assert_non_null(dir);
    size_t n_bad = 0, n_folders = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char folder[1000], config[1100];
        snprintf(folder, sizeof folder, "%s/%s", root, entry->d_name);
        snprintf(config, sizeof config, "%s/config.json", folder);
        if (entry->d_name[0] == '.' || access(config, F_OK) != 0 || n_folders++ % FRIT_TEST_STRIDE != 0) continue;
        n_bad += try_folder(folder, entry->d_name);
    }
    closedir(dir);
    rmdir(copy);
    free(root);
    assert_true(n_folders >= shared_least(61));
    assert_int_equal(n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_another_kind_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

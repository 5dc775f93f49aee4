// SPDX-License-Identifier: MIT
// Checks that an architecture is named only in its own file, its row, the tables of folders, spellings, shapes and
// mixes, docs and tests, that the list is
// sorted, and that docs/models.md names all architectures.
#include "arch/arch.h"
#include "support/support.h"

#include <dirent.h>

// In src/text, names of tokenizers and chat formats may equal names of architectures.
static const char *const folders[] = {"src/base",   "src/quant",   "src/format",          "src/graph",
                                      "src/arch",   "src/backend", "src/backend/cpu",     "src/backend/cpu/arm",
                                      "src/sample", "src/convert", "src/backend/cpu/x86", "src/backend/cpu/tmpl",
                                      "src/engine", "apps/common", "apps/frit",           "apps/server"};

static bool is_table(const char *file)
{
    return strncmp(file, "hf_", 3) == 0 || strcmp(file, "random_shapes.c") == 0 || strcmp(file, "mix_rules.c") == 0 ||
           strcmp(file, "gguf_spelling.c") == 0;
}

// Reads a file of the source tree as a string; the caller frees it.
static char *read_source(const char *file)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", FRIT_SOURCE_DIR, file);
    size_t n_bytes;
    char *text = read_file(path, &n_bytes);
    text = realloc(text, n_bytes + 1);
    text[n_bytes] = 0;
    return text;
}

static void check_file(const char *folder, const char *file)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    char *text = read_source(path);
    const frit_arch *arch;
    for (size_t i = 0; (arch = frit_arch_get(i)); i++) {
        char literal[64], row[64];
        snprintf(literal, sizeof literal, "\"%s\"", arch->name);
        snprintf(row, sizeof row, ".name = \"%s\"", arch->name);
        if (strstr(text, literal) && !strstr(text, row)) fail_msg("%s names the architecture %s", path, literal);
    }
    free(text);
}

static void no_other_file_names_an_architecture(void **state)
{
    (void)state;
    int n = 0;
    for (size_t i = 0; i < FRIT_COUNT(folders); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", FRIT_SOURCE_DIR, folders[i]);
        DIR *dir = opendir(path);
        assert_non_null(dir);
        for (struct dirent *entry; (entry = readdir(dir));) {
            const char *end = strrchr(entry->d_name, '.');
            if (!end || (strcmp(end, ".c") != 0 && strcmp(end, ".h") != 0) || is_table(entry->d_name)) continue;
            check_file(folders[i], entry->d_name);
            n++;
        }
        closedir(dir);
    }
    assert_in_range(n, 100, 10000);
}

static void the_list_of_architectures_is_in_alphabetical_order(void **state)
{
    (void)state;
    char *text = read_source("src/arch/arch.c"), before[64] = "", name[64];
    int n = 0;
    for (const char *at = text; (at = strstr(at, "    X(")); n++) {
        assert_int_equal(sscanf(at, " X(%63[a-z0-9_])", name), 1);
        if (strcmp(before, name) >= 0) fail_msg("X(%s) stands before X(%s)", before, name);
        strcpy(before, name);
        at += 6;
    }
    assert_true(n > 100);
    free(text);
}

// Fails unless the file has a row that begins in this way for every architecture.
static void expect_rows(const char *file, const char *before, const char *after)
{
    char *text = read_source(file);
    const frit_arch *arch;
    for (size_t i = 0; (arch = frit_arch_get(i)); i++) {
        char row[64];
        snprintf(row, sizeof row, "%s%s%s", before, arch->name, after);
        if (!strstr(text, row)) fail_msg("%s has no row '%s'", file, row);
    }
    free(text);
}

static void the_page_and_the_help_of_models_have_a_row_for_every_architecture(void **state)
{
    (void)state;
    expect_rows("docs/models.md", "| `", "` |");
    expect_rows("apps/frit/cli/models.def", ", \"", "\", ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_file_names_an_architecture),
        cmocka_unit_test(the_list_of_architectures_is_in_alphabetical_order),
        cmocka_unit_test(the_page_and_the_help_of_models_have_a_row_for_every_architecture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

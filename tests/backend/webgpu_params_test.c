// SPDX-License-Identifier: MIT
// The parameters of launches have the same words in the kernels as in backend/webgpu/ops/params.h.
#include "support/support.h"

#include <ctype.h>
#include <dirent.h>

static const char folder[] = FRIT_SOURCE_DIR "/src/backend/webgpu";

// The word of "params[4].y" is 17. P_STACK is an index of `params`, so that "2" is word 8.
static int word_of(const char *value)
{
    int index;
    char component;
    const char *params = strstr(value, "params[");
    if (!params) return 4 * atoi(value);
    assert_int_equal(sscanf(params, "params[%d].%c", &index, &component), 2);
    return 4 * index + (int)(strchr("xyzw", component) - "xyzw");
}

// The prefix in params.h of the parameters that a kernel defines: PARAM_STORE_ for store.wgsl.
static void prefix_of(const char *file, char *prefix, size_t n)
{
    const bool is_common = strcmp(file, "step.wgsl") == 0 || strcmp(file, "sources.wgsl") == 0;
    snprintf(prefix, n, is_common ? "PARAM_" : "PARAM_%.*s_", (int)strcspn(file, "."), file);
    for (char *c = prefix; *c; c++) *c = (char)toupper((unsigned char)*c);
}

// Checks each "#define P_NAME params[...]..." of a kernel. Returns their number.
static int check_kernel(const char *header, const char *file)
{
    char path[512], prefix[64], row[128];
    int n = 0;
    size_t n_bytes;
    prefix_of(file, prefix, sizeof prefix);
    snprintf(path, sizeof path, "%s/kernels/%s", folder, file);
    char *text = read_file(path, &n_bytes);
    assert_non_null(text);
    for (const char *at = text; (at = strstr(at, "#define P_")); n++) {
        char name[32], value[64];
        assert_int_equal(sscanf(at, "#define P_%31s %63[^\n]", name, value), 2);
        snprintf(row, sizeof row, " %s%s = %d", prefix, name, word_of(value));
        const char *found = strstr(header, row);
        if (!found || isdigit((unsigned char)found[strlen(row)])) fail_msg("params.h lacks%s of %s", row, file);
        at += strlen("#define P_");
    }
    free(text);
    return n;
}

static void words_of_parameters_are_those_of_the_kernels(void **state)
{
    char path[512];
    int n_checked = 0, n_words = 0;
    size_t n_bytes;
    (void)state;
    snprintf(path, sizeof path, "%s/ops/params.h", folder);
    char *header = read_file(path, &n_bytes);
    assert_non_null(header);
    snprintf(path, sizeof path, "%s/kernels", folder);
    DIR *kernels = opendir(path);
    assert_non_null(kernels);
    for (const struct dirent *entry; (entry = readdir(kernels));)
        if (strstr(entry->d_name, ".wgsl")) n_checked += check_kernel(header, entry->d_name);
    closedir(kernels);
    for (const char *at = header; (at = strstr(at, "    PARAM_")); at++) n_words++;
    assert_int_equal(n_checked, n_words);
    free(header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_of_parameters_are_those_of_the_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// JSON schemas: the official suite of tests, schemas with texts that match and do not, and refusals.
// With --table: the suite's cases by file, and why schemas are refused, as docs/grammar.md shows them.
#include "grammar/check.h"

#include <jansson.h>

static const char *const files[] = {
    "additionalProperties",
    "allOf",
    "anchor",
    "anyOf",
    "boolean_schema",
    "const",
    "contains",
    "content",
    "default",
    "defs",
    "dependentRequired",
    "dependentSchemas",
    "dynamicRef",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if-then-else",
    "infinite-loop-detection",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "ref",
    "refRemote",
    "required",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "vocabulary",
};

static bool print_table;

typedef struct counts {
    int n, n_supported, n_wrong;
} counts;

static void run_schema(const char *file, json_t *group, counts *c)
{
    static const frit_schema_options options = {.ignore_formats = true, .complete = true};
    json_t *schema = json_object_get(group, "schema"), *tests = json_object_get(group, "tests"), *test;
    char *text = json_dumps(schema, JSON_ENCODE_ANY);
    frit_automaton *a = NULL;
    size_t i;
    const frit_status status = frit_schema_compile(&a, frit_str_of(text), &options);
    c->n += (int)json_array_size(tests);
    const bool matches_nothing = status == FRIT_E_INVALID && strstr(frit_error(), "matches no text");
    if (status != FRIT_OK && !matches_nothing) {
        if (status != FRIT_E_UNSUPPORTED && status != FRIT_E_LIMIT) fail_msg("%s: %s: %s", file, text, frit_error());
        if (print_table)
            printf("| %s | %s | %zu | %s |\n", file, json_string_value(json_object_get(group, "description")),
                   json_array_size(tests), frit_error());
        free(text);
        return;
    }
    json_array_foreach(tests, i, test)
    {
        json_t *data = json_object_get(test, "data");
        char *value = json_dumps(data, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        if (json_is_real(data) && strchr(value, 'e')) {   // many digits, not an exponent
            free(value);
            value = json_dumps(data, JSON_ENCODE_ANY);
        }
        const bool valid = json_is_true(json_object_get(test, "valid"));
        const int got = matches_nothing ? -1 : match_text(a, frit_str_of(value));
        c->n_supported++;
        if ((got == 1) != valid) {
            c->n_wrong++;
            print_message("%s: %s: %s is %s, got %d\n", file, text, value, valid ? "valid" : "invalid", got);
        }
        free(value);
    }
    frit_automaton_free(a);
    free(text);
}

static void the_suite_of_json_schema_is_answered(void **state)
{
    (void)state;
    counts all = {0};
    for (size_t i = 0; i < FRIT_COUNT(files); i++) {
        size_t n_bytes, k;
        char *text = read_file(shared_path("goldens/json-schema/%s.json", files[i]), &n_bytes);
        json_t *groups = json_loadb(text, n_bytes, JSON_ALLOW_NUL, NULL), *group;
        assert_non_null(groups);
        json_array_foreach(groups, k, group) run_schema(files[i], group, &all);
        json_decref(groups);
        free(text);
    }
    if (print_table) printf("%d of %d cases are supported\n", all.n_supported, all.n);
    assert_int_equal(all.n_wrong, 0);
    assert_true(all.n_supported * 100 >= all.n * 85);
}

int main(int argc, char **argv)
{
    print_table = argc > 1 && strcmp(argv[1], "--table") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_suite_of_json_schema_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

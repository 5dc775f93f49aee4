// SPDX-License-Identifier: MIT
// JSON schemas: the official test suite, schemas with matching and other texts, and refusals. With --table: refused
// cases of the suite, with reasons. With --answers N: N random answers for each schema of schemas.jsonl, for
// answers.py.
#include "grammar/random_answer.h"

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

static bool print_table, print_answers;
static int n_answers = 2;   // of each schema

static void print_line(const char *schema, frit_str text)
{
    printf("%s\t", schema);
    for (size_t i = 0; i < text.len; i++)   // white space between tokens only
        if (text.ptr[i] != '\n' && text.ptr[i] != '\t') putchar(text.ptr[i]);
    putchar('\n');
}

typedef struct counts {
    int n, n_supported, n_wrong;
} counts;

static void run_schema(const char *file, json_t *group, counts *c)
{
    static const frit_schema_options options = {.ignore_formats = true, .open_objects = true, .complete = true};
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

// ------------------------------------------------------------------------------------- in order, as models write

typedef struct schema_case {
    const char *schema;
    const char *good[6], *bad[8];
} schema_case;

static const schema_case cases[] = {
    {"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": {\"type\": \"string\"}}, "
     "\"required\": [\"b\"], \"additionalProperties\": false}",
     {"{\"a\":1,\"b\":\"x\"}", "{\"b\": \"\"}", "{\n  \"a\": -12,\n  \"b\": \"\\u00e9\\n\"\n}"},
     {"{}", "{\"b\":\"x\",\"a\":1}", "{\"a\":1}", "{\"a\":1.0,\"b\":\"\"}", "{\"a\":01,\"b\":\"\"}", "{\"b\":\"\",}",
      "{\"b\":\"\\ud800\"}", "{\"b\":\"\",\"c\":1}"}},
    {"{\"enum\": [\"red\", \"a\\\"b\", 5, null, [1, {\"x\": true}]]}",
     {"\"red\"", "\"a\\\"b\"", "5", "null", "[1,{\"x\":true}]"},
     {"\"blue\"", "6", "[]", "[1,{}]", "5.5"}},
    {"{\"type\": \"integer\", \"minimum\": -5, \"exclusiveMaximum\": 120, \"multipleOf\": 5}",
     {"-5", "0", "5", "115", "100"},
     {"-10", "120", "3", "-0", "05", "5.0", "1e1"}},
    {"{\"type\": \"number\", \"minimum\": 0.5, \"maximum\": 1.25}",
     {"0.5", "1", "1.25", "0.75"},
     {"0.4999", "1.251", "2", "-1", "0", "0.50"}},
    {"{\"type\": \"string\", \"pattern\": \"^[A-Z]{2}-\\\\d+$\", \"maxLength\": 5}",
     {"\"AB-1\"", "\"AB-12\""},
     {"\"AB-\"", "\"AB-123\"", "\"xAB-1\""}},
    {"{\"type\": \"array\", \"prefixItems\": [{\"const\": 1}], \"items\": {\"type\": \"boolean\"}, \"minItems\": 2, "
     "\"maxItems\": 3}",
     {"[1,true]", "[1, false, true]"},
     {"[]", "[1]", "[true,true]", "[1,true,true,true]", "[1,2]"}},
    {"{\"$defs\": {\"n\": {\"type\": \"object\", \"properties\": {\"v\": {\"type\": \"integer\"}, \"next\": {\"$ref\": "
     "\"#/$defs/n\"}}, "
     "\"required\": [\"v\"], \"additionalProperties\": false}}, \"$ref\": \"#/$defs/n\"}",
     {"{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}"},
     {"{}", "{\"v\":1,\"next\":{}}", "{\"v\":1,\"next\":1}"}},
    {"{\"oneOf\": [{\"properties\": {\"kind\": {\"const\": \"a\"}, \"x\": {\"type\": \"integer\"}}, \"required\": "
     "[\"kind\", \"x\"], \"additionalProperties\": false, \"type\": \"object\"}, "
     "{\"properties\": {\"kind\": {\"const\": \"b\"}, \"y\": {\"type\": \"string\"}}, \"required\": [\"kind\", \"y\"], "
     "\"additionalProperties\": false, \"type\": \"object\"}]}",
     {"{\"kind\":\"a\",\"x\":1}", "{\"kind\":\"b\",\"y\":\"\"}"},
     {"{\"kind\":\"a\",\"y\":\"\"}", "{\"kind\":\"c\",\"x\":1}", "null"}},
    {"{\"type\": \"string\", \"format\": \"date\"}",
     {"\"2026-11-22\""},
     {"\"2026-13-22\"", "\"today\"", "\"2026-1-2\""}},
    {"{\"type\": \"array\", \"uniqueItems\": true, \"minItems\": 1, \"maxItems\": 3, \"items\": {\"$ref\": "
     "\"#/$defs/c\"}, "
     "\"$defs\": {\"c\": {\"enum\": [\"red\", \"green\", 5, \"red\", 5.0, null]}}}",
     {"[\"red\"]", "[\"red\",\"green\"]", "[5, \"red\", null]", "[\"green\",\"red\"]"},
     {"[]", "[\"red\",\"red\"]", "[5,5]", "[\"red\",\"green\",5,null]", "[\"red\",\"green\",\"red\"]", "[\"blue\"]",
      "[null,null]", "[\"red\",]"}},
    {"{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"type\": \"boolean\"}}",
     {"[]", "[true]", "[true,false]", "[false,true]"},
     {"[true,true]", "[true,false,true]", "[null]"}},
    {"{\"$dynamicRef\": \"#n\", \"$defs\": {\"n\": {\"$dynamicAnchor\": \"n\", \"type\": \"object\", \"required\": "
     "[\"v\"], \"properties\": {\"v\": {\"type\": \"integer\"}, \"next\": {\"$dynamicRef\": \"#n\"}}, "
     "\"additionalProperties\": false}}}",
     {"{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2}}"},
     {"{}", "{\"v\":1,\"next\":{}}", "{\"v\":1,\"next\":1}"}},
    {"{\"type\": [\"null\", \"boolean\"]}", {"null", "true", "false"}, {"0", "\"\"", "nul"}},
    {"{\"type\": \"object\", \"patternProperties\": {\"^n_\": {\"type\": \"integer\"}}, \"additionalProperties\": "
     "{\"type\": \"string\"}, \"minProperties\": 1, \"maxProperties\": 2}",
     {"{\"n_a\":1}", "{\"n_a\":1,\"b\":\"\"}"},
     {"{}", "{\"n_a\":\"\"}", "{\"b\":1}", "{\"a\":\"\",\"b\":\"\",\"c\":\"\"}"}},
};

static void texts_match_as_the_schemas_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_automaton *a = NULL;
        assert_ok(frit_schema_compile(&a, frit_str_of(cases[i].schema), NULL));
        for (size_t k = 0; k < 6 && cases[i].good[k]; k++) assert_matches(a, cases[i].schema, cases[i].good[k], 1);
        for (size_t k = 0; k < 8 && cases[i].bad[k]; k++)
            if (match_text(a, frit_str_of(cases[i].bad[k])) == 1)
                fail_msg("%s: %s matches", cases[i].schema, cases[i].bad[k]);
        frit_automaton_free(a);
    }
}

// ------------------------------------------------------------------------------------- lengths of strings

static frit_automaton *compile_schema(const char *schema)
{
    frit_automaton *a = NULL;
    if (frit_schema_compile(&a, frit_str_of(schema), NULL) != FRIT_OK) fail_msg("%s: %s", schema, frit_error());
    return a;
}

// Writes a string of n characters, alternately of one to four bytes and escapes.
static void write_string(frit_buf *out, int n)
{
    static const char *const characters[] = {
        "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\xb4", "\\u00e9", "\\ud83d\\udc34", "\\n", "\\\"", "\\u0001"};
    out->len = 0;
    frit_buf_char(out, '"');
    for (int i = 0; i < n; i++) frit_buf_text(out, characters[i % (int)FRIT_COUNT(characters)]);
    frit_buf_char(out, '"');
}

static void characters_of_strings_are_counted(void **state)
{
    (void)state;
    static const int limits[][2] = {{0, 0}, {0, 1}, {1, 1}, {2, 5}, {3, -1}, {0, 20}, {20, 20}, {7, 12}, {4, 9}};
    frit_buf schema = {0}, text = {0};
    frit_buf_text(&schema, "{\"type\": \"array\", \"items\": false, \"prefixItems\": [");
    for (size_t i = 0; i < FRIT_COUNT(limits); i++) {   // all in one schema, because they share states
        frit_buf_printf(&schema, "%s{\"type\": \"string\", \"minLength\": %d", i ? "," : "", limits[i][0]);
        if (limits[i][1] >= 0) frit_buf_printf(&schema, ", \"maxLength\": %d", limits[i][1]);
        frit_buf_char(&schema, '}');
    }
    frit_buf_text(&schema, "]}");
    frit_automaton *a = compile_schema(schema.data);
    frit_match match;
    assert_ok(frit_match_init(&match, a, 2));
    for (size_t i = 0; i < FRIT_COUNT(limits); i++) {
        size_t n_read;
        const int low = limits[i][0], high = limits[i][1] >= 0 ? limits[i][1] : 40;
        assert_ok(frit_match_push(&match, i ? "," : "[", 1, &n_read));
        for (int n = 0; n <= 40; n++) {
            write_string(&text, n);
            assert_ok(frit_match_push(&match, text.data, text.len, &n_read));
            const bool fits = n_read == text.len;
            if (fits != (n >= low && n <= high)) fail_msg("%d characters of %d to %d", n, low, high);
            if (fits) assert_ok(frit_match_pop(&match, 1));
        }
        write_string(&text, high);
        assert_ok(frit_match_push(&match, text.data, text.len, &n_read));
    }
    frit_match_deinit(&match);
    frit_automaton_free(a);
    frit_buf_free(&schema);
    frit_buf_free(&text);
}

static void strings_with_other_limits_share_states(void **state)
{
    (void)state;
    frit_automaton *one = compile_schema("{\"type\": \"string\", \"maxLength\": 200}");
    frit_automaton *four =
        compile_schema("{\"anyOf\": [{\"type\": \"array\", \"items\": {\"type\": \"string\", "
                       "\"maxLength\": 150}}, {\"type\": \"array\", \"items\": {\"type\": \"string\", "
                       "\"maxLength\": 199}}, {\"type\": \"string\", \"maxLength\": 200}]}");
    assert_true(four->n_states < one->n_states + 100);
    assert_true(one->n_states > 200);
    frit_automaton_free(one);
    frit_automaton_free(four);
    frit_automaton *most = compile_schema("{\"type\": \"string\", \"minLength\": 9000, \"maxLength\": 18000}");
    frit_automaton_free(most);
    assert_fails(frit_schema_compile(&most, frit_str_of("{\"type\": \"string\", \"maxLength\": 49999}"), NULL),
                 FRIT_E_LIMIT, "strings of limited lengths need");
}

// Two schemas of one grammar, like those of two tools, share the limit.
static void schemas_of_one_grammar_share_the_limit_of_states(void **state)
{
    (void)state;
    static const char schema[] = "{\"type\": \"string\", \"maxLength\": 20000}";
    frit_rule_builder builder = {0};
    int32_t rule;
    assert_ok(frit_schema_add_text(&builder, frit_str_of(schema), NULL, NULL, &rule));
    assert_fails(frit_schema_add_text(&builder, frit_str_of(schema), NULL, NULL, &rule), FRIT_E_LIMIT,
                 "strings of limited lengths need");
    frit_builder_free(&builder);
}

static void equal_subschemas_are_compiled_once(void **state)
{
    (void)state;
    frit_automaton *same = compile_schema(
        "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\"a\": {\"enum\": [\"red\", "
        "\"green\"], \"title\": \"A\"}, \"b\": {\"description\": \"B\", \"enum\": [\"red\", \"green\"]}}}");
    frit_automaton *other = compile_schema(
        "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\"a\": {\"enum\": [\"red\", "
        "\"green\"], \"title\": \"A\"}, \"b\": {\"description\": \"B\", \"enum\": [\"red\", \"brown\"]}}}");
    assert_true(same->n_states + 5 < other->n_states);
    assert_matches(same, "same", "{\"a\":\"red\",\"b\":\"green\"}", 1);
    assert_matches(other, "other", "{\"a\":\"red\",\"b\":\"green\"}", -1);
    assert_matches(other, "other", "{\"a\":\"green\",\"b\":\"brown\"}", 1);
    frit_automaton_free(same);
    frit_automaton_free(other);
}

// Descriptions, titles, examples and other notes may be anything.
static void notes_change_no_language(void **state)
{
    (void)state;
    static const char *const notes[] = {
        "", "\"description\": \"red | green ::= \\\"x\\\" [\", ",
        "\"title\": \"/* } */\", \"examples\": [{\"a\": 7}], ",
        "\"$comment\": \"\\n\\\\\", \"default\": 3, \"deprecated\": true, \"x-other\": {\"type\": \"null\"}, "};
    for (size_t i = 0; i < FRIT_COUNT(notes); i++) {
        char schema[512];
        snprintf(schema, sizeof schema,
                 "{%s\"type\": \"object\", \"properties\": {\"a\": {%s\"enum\": [\"red\", \"green\"]}}, \"required\": "
                 "[\"a\"], \"additionalProperties\": false}",
                 notes[i], notes[i]);
        frit_automaton *a = compile_schema(schema);
        assert_matches(a, schema, "{\"a\":\"green\"}", 1);
        assert_matches(a, schema, "{\"a\":7}", -1);
        assert_matches(a, schema, "{}", -1);
        assert_matches(a, schema, "null", -1);
        frit_automaton_free(a);
    }
}

static void what_cannot_be_said_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *sentence;
    } bad[] = {
        {"{", "JSON schema, line 1"},
        {"[]", "neither an object nor true or false"},
        {"{\"type\": \"strin\"}", "'type' names an unknown type: found strin, expected array, boolean"},
        {"{\"type\": [\"null\", 7]}", "'type' names an unknown type: found no text"},
        {"{\"type\": \"array\", \"uniqueItems\": true}", "'uniqueItems' cannot be expressed by a grammar"},
        {"{\"$ref\": \"other.json\"}", "'$ref' to 'other.json', which is not in the schema"},
        {"{\"$ref\": \"#/$defs/x\"}", "'$ref' to '#/$defs/x'"},
        {"{\"$ref\": \"#\"}", "one may refer to itself"},
        {"{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"enum\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}}",
         "'uniqueItems' is about more than 10 values"},
        {"{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"$ref\": \"#\"}}",
         "'uniqueItems' cannot be expressed by a grammar"},
        {"{\"$dynamicRef\": \"#x\"}", "'$ref' to '#x', which is not in the schema"},
        {"{\"$dynamicRef\": \"#x\", \"$defs\": {\"a\": {\"$dynamicAnchor\": \"x\"}, \"b\": {\"$id\": \"b\", "
         "\"$dynamicAnchor\": \"x\"}}}",
         "'$dynamicRef' depends on"},
        {"{\"pattern\": \"(?=a)\"}", "expected no lookahead"},
        {"{\"pattern\": \"(a)\\\\1\"}", "expected no back reference"},
        {"{\"maxLength\": 100000000}", "'maxLength' is above 50000"},
        {"{\"minItems\": -1}", "'minItems' is not a whole number from 0"},
        {"{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"items\": [{}]}",
         "'items' is an array; expected prefixItems"},
        {"{\"items\": [{}], \"prefixItems\": [{}]}", "'items' is an array; expected prefixItems"},
        {"{\"$recursiveRef\": \"#a\"}", "a '$recursiveRef' is '#a'; expected '#'"},
        {"{\"$recursiveAnchor\": true, \"items\": {\"$recursiveRef\": \"#\"}, \"$defs\": {\"a\": {\"$id\": \"a\", "
         "\"$recursiveAnchor\": true}}}",
         "'$recursiveRef' depends on"},
        {"{\"$schema\": \"http://json-schema.org/draft-03/schema#\"}", "expected draft-04, draft-06, draft-07"},
        {"{\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"minimum\": 1, \"exclusiveMinimum\": true}",
         "'exclusiveMinimum' is not a number"},
        {"{\"multipleOf\": 0.123456789}", "multipleOf needs more than"},
        {"{\"minimum\": \"a\"}", "'minimum' is not a number"},
        {"{\"type\": \"integer\", \"minimum\": 2, \"maximum\": 1}", "matches no text"},
        {"{\"type\": \"object\", \"properties\": {\"a\": false}, \"required\": [\"a\"]}", "matches no text"},
        {"{\"$schema\": \"http://example.com/x\"}", "'$schema' is not one of json-schema.org"},
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        frit_automaton *a = NULL;
        const frit_status status = frit_schema_compile(&a, frit_str_of(bad[i].schema), NULL);
        if (status == FRIT_OK || a || !strstr(frit_error(), bad[i].sentence))
            fail_msg("%s: %d \"%s\", expected \"%s\"", bad[i].schema, status, frit_error(), bad[i].sentence);
    }
}

// ------------------------------------------------------------------------------------- random answers

// Texts that the grammar for models allows are also allowed by the one for validators.
static int try_schema(const char *schema, const words *w, frit_rng *rng)
{
    static const frit_schema_options complete = {.complete = true};
    frit_automaton *a, *validator = NULL;
    int n_done = 0;
    if (frit_schema_compile(&a, frit_str_of(schema), NULL) != FRIT_OK) fail_msg("%s: %s", schema, frit_error());
    const frit_status status = frit_schema_compile(&validator, frit_str_of(schema), &complete);
    if (status != FRIT_OK && status != FRIT_E_UNSUPPORTED && status != FRIT_E_LIMIT) fail_msg("%s", frit_error());
    for (int k = 0; k < n_answers; k++) {
        frit_buf text = {0};
        if (write_answer(a, w, rng, &text)) {
            const frit_str t = {text.data, text.len};
            if (validator && match_text(validator, t) != 1) fail_msg("%s: '%s' is not valid", schema, text.data);
            if (print_answers) print_line(schema, t);
            n_done++;
        }
        frit_buf_free(&text);
    }
    frit_automaton_free(a);
    frit_automaton_free(validator);
    return n_done;
}

static void random_answers_are_valid(void **state)
{
    (void)state;
    size_t n;
    int n_schemas = 0, n_done = 0;
    words w;
    frit_rng rng;
    frit_rng_init(&rng, 9);
    make_words(&w, NULL, 0);
    char *text = read_file(project_path("tests/grammar/schemas.jsonl"), &n), *end;
    for (char *line = text; (end = strchr(line, '\n')); line = end + 1, n_schemas++) {
        *end = 0;
        n_done += try_schema(line, &w, &rng);
    }
    free(text);
    free_words(&w);
    assert_int_equal(n_schemas, 50);
    assert_true(n_done >= n_schemas * n_answers * 9 / 10);
}

int main(int argc, char **argv)
{
    print_table = argc > 1 && strcmp(argv[1], "--table") == 0;
    print_answers = argc > 2 && strcmp(argv[1], "--answers") == 0;
    if (print_answers) n_answers = atoi(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_suite_of_json_schema_is_answered),
        cmocka_unit_test(texts_match_as_the_schemas_say),
        cmocka_unit_test(characters_of_strings_are_counted),
        cmocka_unit_test(strings_with_other_limits_share_states),
        cmocka_unit_test(schemas_of_one_grammar_share_the_limit_of_states),
        cmocka_unit_test(equal_subschemas_are_compiled_once),
        cmocka_unit_test(notes_change_no_language),
        cmocka_unit_test(what_cannot_be_said_is_refused_by_name),
        cmocka_unit_test(random_answers_are_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Keywords of drafts before 2020-12, selected by $schema, and without it if they have one meaning.
#include "grammar/check.h"

#include "grammar/grammar.h"

#define DRAFT(n) "\"$schema\": \"http://json-schema.org/draft-0" #n "/schema#\""
#define NEW      "\"$schema\": \"https://json-schema.org/draft/2019-09/schema\""

typedef struct row {
    const char *schema;
    const char *good[5], *bad[5];
} row;

static const row rows[] = {
    {"{" DRAFT(7) ", \"items\": [{\"type\": \"integer\"}, {\"enum\": [\"x\", \"y\"]}], \"minItems\": 2, \"maxItems\": "
                  "2, \"type\": \"array\"}",
     {"[3,\"x\"]"},
     {"[3]", "[\"x\",3]", "[3,\"x\",1]"}},
    {"{\"items\": [{\"type\": \"integer\"}], \"additionalItems\": false, \"type\": \"array\"}",
     {"[]", "[3]"},
     {"[3,4]", "[null]"}},
    {"{\"items\": [{\"type\": \"integer\"}], \"additionalItems\": {\"type\": \"null\"}, \"type\": \"array\"}",
     {"[3]", "[3,null,null]"},
     {"[3,4]"}},
    {"{\"items\": [true], \"unevaluatedItems\": false, \"type\": \"array\"}", {"[3]"}, {"[3,4]"}},
    {"{" DRAFT(7) ", \"items\": {\"type\": \"integer\"}, \"additionalItems\": false, \"type\": \"array\"}",
     {"[3,4]"},
     {"[null]"}},
    {"{" DRAFT(4) ", \"minimum\": 3, \"exclusiveMinimum\": true, \"type\": \"integer\"}", {"4"}, {"3", "2"}},
    {"{" DRAFT(4) ", \"minimum\": 3, \"exclusiveMinimum\": false, \"type\": \"integer\"}", {"3"}, {"2"}},
    {"{\"maximum\": 3, \"exclusiveMaximum\": true, \"type\": \"integer\"}", {"2"}, {"3", "4"}},
    {"{" DRAFT(6) ", \"exclusiveMaximum\": 3, \"type\": \"integer\"}", {"2"}, {"3"}},
    {"{" DRAFT(7) ", \"dependencies\": {\"a\": [\"b\"], \"c\": {\"required\": [\"d\"]}}, \"type\": \"object\"}",
     {"{}", "{\"a\":1,\"b\":2}", "{\"c\":1,\"d\":2}", "{\"d\":1}"},
     {"{\"a\":1}", "{\"c\":1}"}},
    {"{\"dependencies\": {\"a\": [\"b\"]}, \"type\": \"object\"}", {"{\"b\":1}", "{\"a\":1,\"b\":2}"}, {"{\"a\":1}"}},
    {"{" DRAFT(7) ", \"definitions\": {\"n\": {\"type\": \"integer\"}}, \"properties\": {\"a\": {\"$ref\": "
                  "\"#/definitions/n\"}}, \"type\": \"object\"}",
     {"{\"a\":1}"},
     {"{\"a\":\"\"}"}},
    {"{" DRAFT(
         7) ", \"$ref\": \"#/definitions/n\", \"type\": \"string\", \"definitions\": {\"n\": {\"type\": \"integer\"}}}",
     {"1"},
     {"\"\""}},
    {"{" DRAFT(7) ", \"$id\": \"http://a/b\", \"definitions\": {\"n\": {\"$id\": \"#mark\", \"type\": \"integer\"}}, "
                  "\"items\": {\"$ref\": "
                  "\"#mark\"}, \"type\": \"array\"}",
     {"[1]"},
     {"[null]"}},
    {"{" DRAFT(4) ", \"id\": \"http://a/b\", \"definitions\": {\"n\": {\"id\": \"c\", \"type\": \"integer\"}}, "
                  "\"items\": {\"$ref\": "
                  "\"http://a/c\"}, \"type\": \"array\"}",
     {"[1]"},
     {"[null]"}},
    {"{" DRAFT(
         7) ", \"properties\": {\"id\": {\"type\": \"integer\"}, \"$id\": {\"type\": \"null\"}}, \"type\": \"object\"}",
     {"{\"id\":1}", "{\"id\":1,\"$id\":null}"},
     {"{\"id\":\"\"}"}},
    {"{" NEW
     ", \"$recursiveAnchor\": true, \"type\": \"object\", \"properties\": {\"next\": {\"$recursiveRef\": \"#\"}}}",
     {"{}", "{\"next\":{\"next\":{}}}"},
     {"{\"next\":1}"}},
    {"{" NEW ", \"type\": \"array\", \"items\": {\"$recursiveRef\": \"#\"}}", {"[]", "[[],[[]]]"}, {"[1]"}},
    {"{" NEW ", \"items\": [{\"type\": \"integer\"}], \"contains\": {\"type\": \"string\"}, \"type\": \"array\"}",
     {"[1,\"\"]"},
     {"[1]"}},
    {"{\"$schema\": \"http://json-schema.org/schema#\", \"items\": [{\"type\": \"integer\"}], \"type\": \"array\"}",
     {"[1]"},
     {"[null]"}},
};

static void keywords_are_those_of_the_draft(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const row *r = &rows[i];
        frit_automaton *a;
        if (frit_schema_compile(&a, frit_str_of(r->schema), NULL) != FRIT_OK)
            fail_msg("%s: %s", r->schema, frit_error());
        for (size_t k = 0; k < FRIT_COUNT(r->good) && r->good[k]; k++) assert_matches(a, r->schema, r->good[k], 1);
        for (size_t k = 0; k < FRIT_COUNT(r->bad) && r->bad[k]; k++)
            if (match_text(a, frit_str_of(r->bad[k])) == 1) fail_msg("%s: %s matches", r->schema, r->bad[k]);
        frit_automaton_free(a);
    }
}

static void check_shared(const char *name, const char *good, const char *bad)
{
    size_t n_bytes;
    char *text = read_file(shared_path("bugs/12-draft-07-tuples/%s.json", name), &n_bytes);
    frit_automaton *a;
    assert_ok(frit_schema_compile(&a, (frit_str){text, n_bytes}, NULL));
    assert_matches(a, name, good, 1);
    if (match_text(a, frit_str_of(bad)) == 1) fail_msg("%s: %s matches", name, bad);
    frit_automaton_free(a);
    free(text);
}

static void tuples_of_other_programs_are_read(void **state)
{
    (void)state;
    check_shared("tuple-with-schema", "[3,\"x\"]", "[3,\"z\"]");
    check_shared("tuple-of-a-class", "{\"at\":[1,2]}", "{\"at\":[1]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keywords_are_those_of_the_draft),
        cmocka_unit_test(tuples_of_other_programs_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

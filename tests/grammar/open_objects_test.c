// SPDX-License-Identifier: MIT
// Members that schemas do not name: objects may have none if the schemas do not mention others; with open_objects they
// may have any, as in the drafts.
#include "grammar/check.h"

#include "grammar/grammar.h"

#define INTEGER "{\"type\": \"integer\"}"
#define A       "\"a\": " INTEGER
#define B       "\"b\": " INTEGER
#define C       "\"c\": " INTEGER

typedef struct row {
    const char *about, *schema;
    const char *good[5];
    const char *invented[5];   // allowed only with open_objects
    const char *bad[4];
} row;

static const row rows[] = {
    {"properties",
     "{\"type\": \"object\", \"properties\": {" A ", " B "}, \"required\": [\"a\"]}",
     {"{\"a\":1}", "{\"a\":1,\"b\":2}"},
     {"{\"a\":1,\"x\":2}", "{\"a\":1,\"b\":2,\"x\":\"\"}"},
     {"{}", "{\"a\":\"\"}"}},
    {"no type", "{\"properties\": {" A "}}", {"{}", "{\"a\":1}", "[1]", "null"}, {"{\"x\":1}"}, {"{\"a\":\"\"}"}},
    {"no names", "{\"type\": \"object\"}", {"{}", "{\"a\":1}", "{\"x\":[]}"}, {NULL}, {"1"}},
    {"an empty list of names", "{\"type\": \"object\", \"properties\": {}}", {"{}"}, {"{\"x\":1}"}, {"1"}},
    {"required names alone",
     "{\"type\": \"object\", \"required\": [\"a\"]}",
     {"{\"a\":1}", "{\"a\":1,\"x\":2}"},
     {NULL},
     {"{}"}},
    {"a required name that is no property",
     "{\"properties\": {" A "}, \"required\": [\"b\"], \"type\": \"object\"}",
     {"{\"b\":\"\"}", "{\"a\":1,\"b\":2}"},
     {"{\"b\":1,\"x\":2}"},
     {"{\"a\":1}"}},
    {"opened",
     "{\"properties\": {" A "}, \"additionalProperties\": true}",
     {"{\"a\":1,\"x\":2}", "{\"x\":2}"},
     {NULL},
     {NULL}},
    {"opened by a schema",
     "{\"properties\": {" A "}, \"additionalProperties\": {\"type\": \"string\"}}",
     {"{\"a\":1,\"x\":\"\"}"},
     {NULL},
     {"{\"x\":1}"}},
    {"opened by unevaluatedProperties",
     "{\"properties\": {" A "}, \"unevaluatedProperties\": {\"type\": \"string\"}}",
     {"{\"a\":1,\"x\":\"\"}"},
     {NULL},
     {"{\"x\":1}"}},
    {"opened by propertyNames",
     "{\"properties\": {" A "}, \"propertyNames\": {\"pattern\": \"^[a-f]$\"}}",
     {"{\"a\":1,\"f\":\"\"}"},
     {NULL},
     {"{\"x\":1}"}},
    {"opened by a part",
     "{\"properties\": {" A "}, \"allOf\": [{\"additionalProperties\": true}]}",
     {"{\"a\":1,\"x\":2}"},
     {NULL},
     {NULL}},
    {"closed",
     "{\"properties\": {" A "}, \"additionalProperties\": false}",
     {"{}", "{\"a\":1}"},
     {NULL},
     {"{\"x\":1}"}},
    {"patterns",
     "{\"type\": \"object\", \"patternProperties\": {\"^n_\": " INTEGER "}}",
     {"{}", "{\"n_a\":1,\"n_b\":2}"},
     {"{\"x\":1}"},
     {"{\"n_a\":\"\"}"}},
    {"patterns and names",
     "{\"properties\": {" A "}, \"patternProperties\": {\"^n_\": " INTEGER "}}",
     {"{\"a\":1,\"n_b\":2}"},
     {"{\"a\":1,\"x\":2}"},
     {NULL}},
    {"enough members",
     "{\"type\": \"object\", \"properties\": {" A "}, \"minProperties\": 3}",
     {"{\"a\":1,\"x\":2,\"y\":3}"},
     {NULL},
     {"{\"a\":1}"}},
    {"parts",
     "{\"allOf\": [{\"properties\": {" A "}, \"required\": [\"a\"]}, {\"properties\": {" B
     "}, \"required\": [\"b\"]}], \"type\": \"object\"}",
     {"{\"a\":1,\"b\":2}"},
     {"{\"a\":1,\"b\":2,\"x\":3}"},
     {"{\"a\":1}", "{\"b\":1}"}},
    {"a reference and names of its own, as classes that inherit",
     "{\"$defs\": {\"base\": {\"type\": \"object\", \"properties\": {" A
     "}, \"required\": [\"a\"]}}, \"$ref\": \"#/$defs/base\", "
     "\"properties\": {" B "}, \"required\": [\"b\"]}",
     {"{\"b\":2,\"a\":1}"},
     {"{\"b\":2,\"a\":1,\"x\":3}"},
     {"{\"a\":1}"}},
    {"a reference in allOf",
     "{\"$defs\": {\"base\": {\"properties\": {" A "}}}, \"allOf\": [{\"$ref\": \"#/$defs/base\"}], \"properties\": {" B
     "}}",
     {"{\"b\":2,\"a\":1}", "{}"},
     {"{\"b\":2,\"x\":1}"},
     {NULL}},
    {"parts that need what others name",
     "{\"type\": \"object\", \"properties\": {" A ", " B
     "}, \"anyOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}]}",
     {"{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"b\":2}"},
     {"{\"a\":1,\"x\":2}"},
     {"{}"}},
    {"alternatives with names of their own",
     "{\"type\": \"object\", \"properties\": {" C "}, \"required\": [\"c\"], \"anyOf\": [{\"properties\": {" A
     "}, \"required\": [\"a\"]}, "
     "{\"properties\": {" B "}, \"required\": [\"b\"]}]}",
     {"{\"c\":1,\"a\":1}", "{\"c\":1,\"b\":2}"},
     {"{\"c\":1,\"a\":1,\"x\":2}"},
     {"{\"c\":1}"}},
    {"exactly one of two",
     "{\"oneOf\": [{\"type\": \"object\", \"properties\": {" A
     "}, \"required\": [\"a\"]}, {\"type\": \"object\", \"properties\": {" B "}, "
     "\"required\": [\"b\"]}]}",
     {"{\"a\":1}", "{\"b\":2}"},
     {"{\"a\":1,\"x\":2}"},
     {"{\"a\":1,\"b\":2}", "{}"}},
    {"one of two by a mark",
     "{\"oneOf\": [{\"properties\": {\"k\": {\"const\": \"a\"}, " A
     "}, \"required\": [\"k\"], \"type\": \"object\"}, {\"properties\": "
     "{\"k\": {\"const\": \"b\"}, " B "}, \"required\": [\"k\"], \"type\": \"object\"}]}",
     {"{\"k\":\"a\",\"a\":1}", "{\"k\":\"b\",\"b\":1}"},
     {"{\"k\":\"a\",\"b\":1}", "{\"k\":\"b\",\"x\":1}"},
     {"{\"a\":1}"}},
    {"a condition",
     "{\"type\": \"object\", \"properties\": {" A
     "}, \"required\": [\"a\"], \"if\": {\"properties\": {\"a\": {\"const\": 1}}}, \"then\": "
     "{\"properties\": {" B "}, \"required\": [\"b\"]}, \"else\": {\"properties\": {" C "}}}",
     {"{\"a\":1,\"b\":2}", "{\"a\":2}", "{\"a\":2,\"c\":1}"},
     {"{\"a\":2,\"x\":1}"},
     {"{\"a\":1}"}},
    {"a dependency",
     "{\"type\": \"object\", \"properties\": {" A "}, \"dependentRequired\": {\"a\": [\"b\"]}}",
     {"{}", "{\"a\":1,\"b\":\"\"}"},
     {"{\"x\":1}"},
     {"{\"a\":1}"}},
    {"a schema that depends",
     "{\"type\": \"object\", \"properties\": {" A "}, \"dependentSchemas\": {\"a\": {\"properties\": {" B "}}}}",
     {"{}", "{\"a\":1,\"b\":2}"},
     {"{\"x\":1}"},
     {"{\"a\":1,\"b\":\"\"}"}},
    {"what must not be",
     "{\"type\": \"object\", \"properties\": {" A
     "}, \"not\": {\"properties\": {\"a\": {\"const\": 7}}, \"required\": [\"a\"]}}",
     {"{}", "{\"a\":1}"},
     {"{\"a\":1,\"x\":1}"},
     {"{\"a\":7}"}},
    {"a constant",
     "{\"properties\": {" A "}, \"const\": {\"a\": 1, \"z\": 2}}",
     {"{\"a\":1,\"z\":2}"},
     {NULL},
     {"{\"a\":1}"}},
    {"members of members",
     "{\"type\": \"object\", \"properties\": {\"o\": {\"type\": \"object\", \"properties\": {" A "}}}}",
     {"{\"o\":{}}", "{\"o\":{\"a\":1}}"},
     {"{\"o\":{\"x\":1}}", "{\"x\":{}}"},
     {"{\"o\":1}"}},
    {"items",
     "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {" A "}}}",
     {"[{\"a\":1},{}]"},
     {"[{\"x\":1}]"},
     {"[1]"}},
    {"one member that two parts are about",
     "{\"allOf\": [{\"properties\": {\"o\": {\"properties\": {" A "}}}}, {\"properties\": {\"o\": {\"properties\": {" B
     "}}}}], \"type\": \"object\"}",
     {"{\"o\":{\"a\":1,\"b\":2}}"},
     {"{\"o\":{\"x\":1}}"},
     {NULL}},
    {"a part that is closed",
     "{\"allOf\": [{\"properties\": {" A "}, \"additionalProperties\": false}, {\"properties\": {" B
     "}}], \"type\": \"object\"}",
     {"{}", "{\"a\":1}"},
     {NULL},
     {"{\"b\":1}"}},
};

// any_order: members may be in the rows' order.
static void check(const row *r, bool open)
{
    const frit_schema_options options = {.any_order = true, .open_objects = open};
    frit_automaton *a;
    if (frit_schema_compile(&a, frit_str_of(r->schema), &options) != FRIT_OK)
        fail_msg("%s: %s", r->about, frit_error());
    for (size_t i = 0; i < FRIT_COUNT(r->good) && r->good[i]; i++) assert_matches(a, r->about, r->good[i], 1);
    for (size_t i = 0; i < FRIT_COUNT(r->invented) && r->invented[i]; i++)
        if ((match_text(a, frit_str_of(r->invented[i])) == 1) != open)
            fail_msg("%s: %s %s", r->about, r->invented[i], open ? "does not match" : "matches");
    for (size_t i = 0; i < FRIT_COUNT(r->bad) && r->bad[i]; i++)
        if (match_text(a, frit_str_of(r->bad[i])) == 1) fail_msg("%s: %s matches", r->about, r->bad[i]);
    frit_automaton_free(a);
}

static void objects_have_the_members_that_their_schemas_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) check(&rows[i], false);
}

static void open_objects_have_others_as_the_drafts_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) check(&rows[i], true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_have_the_members_that_their_schemas_name),
        cmocka_unit_test(open_objects_have_others_as_the_drafts_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

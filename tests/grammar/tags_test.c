// SPDX-License-Identifier: MIT
// Structural tags: matching texts, answers from random logits, and an error for each mistake.
#include "grammar/random_answer.h"

static frit_automaton *make(const char *text)
{
    frit_automaton *a;
    if (frit_tags_compile(&a, frit_str_of(text), NULL) != FRIT_OK) fail_msg("%s: %s", text, frit_error());
    return a;
}

#define NOW \
    "{\"begin\": \"<call=now>\", \"schema\": {\"type\": \"object\", \"maxProperties\": 0}, \"end\": \"</call>\"}"
#define ADD                                                                                                        \
    "{\"begin\": \"<call=add>\", \"schema\": {\"type\": \"array\", \"items\": {\"type\": \"integer\"}}, \"end\": " \
    "\"</call>\"}"
#define THINK \
    "{\"type\": \"tag\", \"begin\": \"<think>\", \"content\": {\"type\": \"any_text\"}, \"end\": \"</think>\"}"
#define CALLS                                                                                                \
    "\"triggers\": [\"<call=\"], \"tags\": [{\"begin\": \"<call=now>\", \"content\": {\"type\": \"regex\", " \
    "\"pattern\": \"[0-9]+\"}, \"end\": \"</call>\"}, {\"begin\": \"<call=b\", \"content\": {\"type\": "     \
    "\"const_string\", \"value\": \"x\"}, \"end\": [\">\", \"/>\"]}]"

typedef struct text_case {
    const char *text;
    int expected;   // as in match_text
} text_case;

static const struct {
    const char *tags;
    text_case texts[16];
} cases[] = {
    {"{\"type\": \"structural_tag\", \"triggers\": [\"<call=\"], \"structures\": [" NOW ", " ADD "]}",
     {{"", 1},
      {"any text", 1},
      {"<call", 1},
      {"<call= ", -1},
      {"a<call=", 0},
      {"<call=now>{}</call>", 1},
      {"It is <call=now>{}</call> and <call=add>[1, 2]</call>, then.", 1},
      {"<<call=now>{}</call>", 1},
      {"<call=now>{}</call><call=add>[]</call>", 1},
      {"<call=now>[]", -1},
      {"<call=now>{} ", -1},
      {"<call=no more", -1},
      {"</call> alone", 1},
      {"\xc3\xa9<call=add>[\"", -1}}},
    // Two triggers, which share their first letters; a tag without an end.
    {"{\"structures\": [{\"begin\": \"<a>\", \"schema\": true, \"end\": \"\"}, {\"begin\": \"<b:1>\", \"schema\": "
     "{\"const\": 7}, \"end\": \";\"}], \"triggers\": [\"<a\", \"<b:\", \"<a\"]}",
     {{"<", 1}, {"<c> <a>null", 1}, {"<a>[] <b:1>7;<b", 1}, {"<b:2", -1}, {"<b:1>7", 0}, {"<ab", -1}}},
    {"{\"format\": {\"type\": \"triggered_tags\", " CALLS "}}",
     {{"so <call=now>12</call>!", 1},
      {"<call=bx>", 1},
      {"<call=bx/><call=bx>", 1},
      {"<call=by", -1},
      {"<call=bx;", -1}}},
    {"{\"format\": {\"type\": \"triggered_tags\", \"stop_after_first\": true, " CALLS "}}",
     {{"no call", 1}, {"one <call=bx>", 1}, {"one <call=bx> ", -1}}},
    {"{\"format\": {\"type\": \"triggered_tags\", \"at_least_one\": true, " CALLS "}}",
     {{"", 0}, {"text", -1}, {"<call=bx>", 1}, {"<call=bx> and <call=now>1</call> more", 1}}},
    {"{\"format\": {\"type\": \"triggered_tags\", \"at_least_one\": true, \"stop_after_first\": true, " CALLS "}}",
     {{"<call=bx>", 1}, {"<call=bx> ", -1}, {"<call=now>1</call>", 1}}},
    {"{\"format\": {\"type\": \"triggered_tags\", \"excludes\": [\"sorry\"], " CALLS "}}",
     {{"sorr", 1}, {"sorry", -1}, {"I am <call=bx> sorr", 1}, {"<call=bx>sorry", -1}}},
    {"{\"format\": {\"type\": \"sequence\", \"elements\": [" THINK ", {\"type\": \"triggered_tags\", " CALLS "}]}}",
     {{"<think>", 0},
      {"<think>a </thin</think>", 1},
      {"<think></think>so <call=bx>.", 1},
      {"so", -1},
      {"<think><call=now>x</think>", 1}}},
    {"{\"type\": \"tag\", \"begin\": \"\", \"content\": {\"type\": \"any_text\", \"excluded_str\": [\"no\"]}, \"end\": "
     "[\".\", "
     "\"!\"]}",
     {{"yes.", 1}, {"yes", 0}, {"yes!", 1}, {"no", -1}, {"yes.x", -1}, {"n.", 1}}},
    // Triggers within a tag do not include its end.
    {"{\"format\": {\"type\": \"tag\", \"begin\": \"[\", \"content\": {\"type\": \"triggered_tags\", " CALLS
     "}, \"end\": \"]\"}}",
     {{"[a <call=bx> b]", 1}, {"[]", 1}, {"[a]b", -1}, {"[<call=bx>", 0}}},
    // A tag within another one with the same end.
    {"{\"type\": \"tag\", \"begin\": \"<a>\", \"content\": {\"type\": \"tag\", \"begin\": \"<b>\", \"content\": "
     "{\"type\": \"any_text\"}, \"end\": \"</>\"}, \"end\": \"</>\"}",
     {{"<a><b>x</></>", 1}, {"<a><b>x</>", 0}, {"<a><b></></>", 1}, {"<a><b></>x", -1}}},
    {"{\"format\": {\"type\": \"tags_with_separator\", \"separator\": \", \", \"tags\": [" ADD "]}}",
     {{"<call=add>[]</call>", 1},
      {"<call=add>[]</call>, <call=add>[3]</call>", 1},
      {"<call=add>[]</call>,", 0},
      {" ", -1}}},
    {"{\"format\": {\"type\": \"tags_with_separator\", \"separator\": \"\", \"at_least_one\": true, "
     "\"stop_after_first\": true, "
     "\"tags\": [" ADD "]}}",
     {{"", 0}, {"<call=add>[]</call>", 1}, {"<call=add>[]</call><", -1}}},
    {"{\"format\": {\"type\": \"or\", \"elements\": [{\"type\": \"const_string\", \"value\": \"none\"}, {\"type\": "
     "\"json_schema\", "
     "\"json_schema\": {\"type\": \"integer\"}}]}}",
     {{"none", 1}, {"12", 1}, {"n", 0}, {"x", -1}}},
    // Each grammar has rules of its own, even with equal names.
    {"{\"format\": {\"type\": \"sequence\", \"elements\": [{\"type\": \"grammar\", \"grammar\": \"root ::= a\\na ::= "
     "\\\"1\\\"\"}, "
     "{\"type\": \"grammar\", \"grammar\": \"root ::= a a\\na ::= \\\"2\\\"\"}]}}",
     {{"122", 1}, {"12", 0}, {"11", -1}}},
};

static void texts_match_as_the_tags_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_automaton *a = make(cases[i].tags);
        for (size_t k = 0; cases[i].texts[k].text; k++)
            assert_matches(a, cases[i].tags, cases[i].texts[k].text, cases[i].texts[k].expected);
        frit_automaton_free(a);
    }
}

// Marks that must not occur, such as those of the model's own calls, unless the caller has an equal trigger.
static void marks_of_others_do_not_occur(void **state)
{
    (void)state;
    frit_automaton *a;
    const frit_str marks[] = {frit_str_of("<tool_call>"), frit_str_of("<call=")};
    const frit_tags_options options = {.form = {.without = marks, .n_without = 2}};
    assert_ok(frit_tags_compile(&a, frit_str_of("{\"structures\": [" NOW "], \"triggers\": [\"<call=\"]}"), &options));
    assert_matches(a, "without a mark", "a <tool_call", 1);
    assert_matches(a, "without a mark", "a <tool_call>", -1);
    assert_matches(a, "without a mark", "a <call=now>{}</call> <tool_call>", -1);
    assert_matches(a, "without a mark", "a <call=now>{}</call> <tool", 1);
    frit_automaton_free(a);
}

// A tag follows after a trigger, wherever the tokens are cut.
static void check_tagged(const char *answer)
{
    for (const char *at = answer; (at = strstr(at, "<call=")); at++) {
        const char *end = strstr(at, "</call>");
        if (!end || (strncmp(at, "<call=now>{", 11) != 0 && strncmp(at, "<call=add>[", 11) != 0))
            fail_msg("'%s' has a trigger without a tag", answer);
    }
}

static void random_logits_give_whole_tags(void **state)
{
    (void)state;
    enum { ANSWERS = 200 };
    static const char *const parts[] = {"<call=", "</call>", "<ca", "now>", "l=add"};
    frit_str marks[150];   // each many times, so that random text contains some
    for (size_t i = 0; i < FRIT_COUNT(marks); i++) marks[i] = frit_str_of(parts[i % FRIT_COUNT(parts)]);
    words w;
    frit_rng rng;
    int n_done = 0, n_tagged = 0;
    frit_rng_init(&rng, 7);
    make_words(&w, marks, FRIT_COUNT(marks));
    frit_automaton *a = make("{\"structures\": [" NOW ", " ADD "], \"triggers\": [\"<call=\"]}");
    for (int i = 0; i < ANSWERS; i++) {
        frit_buf answer = {0};
        if (write_answer(a, &w, &rng, &answer)) {
            check_tagged(answer.data ? answer.data : "");
            n_done++;
            n_tagged += answer.data && strstr(answer.data, "</call>") != NULL;
        }
        frit_buf_free(&answer);
    }
    frit_automaton_free(a);
    free_words(&w);
    if (n_done <= ANSWERS * 9 / 10 || n_tagged <= ANSWERS / 4)
        fail_msg("%d answers end, %d have tags", n_done, n_tagged);
}

static const struct {
    const char *tags, *sentence;
    frit_status status;
} mistakes[] = {
    {"", "structural tag, line 1, column 0", FRIT_E_INVALID},
    {"[1]", "found neither structures nor a format", FRIT_E_INVALID},
    {"{\"type\": \"structural_tag\"}", "found neither structures nor a format", FRIT_E_INVALID},
    {"{\"structures\": [" NOW "]}", "structural tag: triggers is missing; expected a list of one or more",
     FRIT_E_INVALID},
    {"{\"structures\": [" NOW "], \"triggers\": []}", "triggers is empty; expected a list", FRIT_E_INVALID},
    {"{\"structures\": [" NOW "], \"triggers\": \"<call\"}", "triggers is no list", FRIT_E_INVALID},
    {"{\"structures\": [" NOW "], \"triggers\": [5]}", "triggers is no text", FRIT_E_INVALID},
    {"{\"structures\": [" NOW "], \"triggers\": [\"\"]}", "triggers is empty; expected a text", FRIT_E_INVALID},
    {"{\"structures\": [], \"triggers\": [\"a\"]}", "structures is empty; expected a list of one or more",
     FRIT_E_INVALID},
    {"{\"structures\": [" NOW "], \"triggers\": [\"<tool\"]}",
     "structures[0].begin is '<call=now>'; expected it to begin with one of the triggers", FRIT_E_INVALID},
    {"{\"structures\": [" NOW "], \"triggers\": [\"<call\", \"<tool\"]}",
     "the trigger '<tool' begins none of the structures; expected one or more", FRIT_E_INVALID},
    {"{\"structures\": [" NOW "], \"triggers\": [\"<call=\", \"call\"]}",
     "the trigger '<call=' contains the trigger 'call', which always comes first", FRIT_E_INVALID},
    {"{\"structures\": [5], \"triggers\": [\"a\"]}", "structural tag, structures[0]: found no object", FRIT_E_INVALID},
    {"{\"structures\": [{\"schema\": {}, \"end\": \"x\"}], \"triggers\": [\"a\"]}",
     "structural tag, structures[0]: begin is missing; expected a text", FRIT_E_INVALID},
    {"{\"structures\": [{\"begin\": \"a\", \"schema\": {}}], \"triggers\": [\"a\"]}",
     "structural tag, structures[0]: end is missing; expected a text", FRIT_E_INVALID},
    {"{\"structures\": [{\"begin\": \"a\", \"schema\": {}, \"end\": []}], \"triggers\": [\"a\"]}",
     "structures[0]: end is empty; expected a text or several", FRIT_E_INVALID},
    {"{\"structures\": [{\"begin\": \"a\", \"end\": \"\"}], \"triggers\": [\"a\"]}",
     "structures[0]: the JSON schema is missing; expected an object, true or false", FRIT_E_INVALID},
    {"{\"structures\": [{\"begin\": \"a\", \"schema\": [], \"end\": \"\"}], \"triggers\": [\"a\"]}",
     "structures[0]: the JSON schema is of another type; expected an object", FRIT_E_INVALID},
    {"{\"structures\": [{\"begin\": \"a\", \"schema\": {\"type\": \"text\"}, \"end\": \"\"}], \"triggers\": [\"a\"]}",
     "structural tag, structures[0]: JSON schema: 'type' names an unknown type", FRIT_E_INVALID},
    {"{\"structures\": [{\"begin\": \"a\", \"schema\": {\"uniqueItems\": true}, \"end\": \"\"}], \"triggers\": "
     "[\"a\"]}",
     "uniqueItems", FRIT_E_UNSUPPORTED},
    {"{\"format\": {}}", "structural tag, format: found no format; expected an object with a type", FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"poem\"}}", "the format 'poem' is not known", FRIT_E_UNSUPPORTED},
    {"{\"format\": {\"type\": \"sequence\"}}", "format: elements is missing", FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"sequence\", \"elements\": [{\"type\": \"regex\", \"pattern\": \"(\"}]}}",
     "structural tag, format.elements[0]: regular expression", FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"grammar\", \"grammar\": \"root ::= a\"}}", "'a' is used, but not defined",
     FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"grammar\", \"grammar\": \"root ::= <[1]>\"}}", "no vocabulary", FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"const_string\", \"value\": \"\"}}", "matches only the empty text", FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"const_string\", \"value\": \"\\u0000\"}}", "\\u0000 is not allowed", FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"tags_with_separator\", \"tags\": [" NOW "]}}", "separator is missing", FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"triggered_tags\", \"at_least_one\": 1, " CALLS "}}", "at_least_one is not a boolean",
     FRIT_E_INVALID},
    {"{\"format\": {\"type\": \"json_schema\", \"json_schema\": false}}", "no text", FRIT_E_INVALID},
};

static void each_mistake_has_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(mistakes); i++) {
        frit_automaton *a;
        const frit_status status = frit_tags_compile(&a, frit_str_of(mistakes[i].tags), NULL);
        if (status == FRIT_OK || !strstr(frit_error(), mistakes[i].sentence))
            fail_msg("%s: %d, '%s'; expected '%s'", mistakes[i].tags, (int)status, frit_error(), mistakes[i].sentence);
        assert_int_equal(status, mistakes[i].status);
        assert_null(a);
    }
}

static void append_many(frit_buf *text, const char *part, int n)
{
    for (int i = 0; i < n; i++) frit_buf_text(text, part);
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    frit_automaton *a;
    frit_buf text = {0};
    frit_buf_text(&text, "{\"format\": ");
    append_many(&text, "{\"type\": \"or\", \"elements\": [", 150);
    frit_buf_text(&text, "{\"type\": \"any_text\"}");
    append_many(&text, "]}", 150);
    frit_buf_text(&text, "}");
    assert_fails(frit_tags_compile(&a, (frit_str){text.data, text.len}, NULL), FRIT_E_LIMIT, "100 deep");
    frit_buf_clear(&text);
    frit_buf_text(&text, "{\"structures\": [" NOW "], \"triggers\": [\"<call\"");
    append_many(&text, ", \"x\"", 600);
    frit_buf_text(&text, "]}");
    assert_fails(frit_tags_compile(&a, (frit_str){text.data, text.len}, NULL), FRIT_E_LIMIT, "at most 512");
    frit_buf_free(&text);
}

// There are 128 tools, the most that OpenAI's interface allows, each with its own trigger.
static void many_triggers_are_one_automaton(void **state)
{
    (void)state;
    enum { TOOLS = 128 };
    frit_buf text = {0};
    frit_buf_text(&text, "{\"structures\": [");
    for (int i = 0; i < TOOLS; i++)
        frit_buf_printf(&text, "%s{\"begin\": \"<tool_%d>\", \"schema\": {\"const\": %d}, \"end\": \"</tool>\"}",
                        i > 0 ? ", " : "", i, i);
    frit_buf_text(&text, "], \"triggers\": [");
    for (int i = 0; i < TOOLS; i++) frit_buf_printf(&text, "%s\"<tool_%d>\"", i > 0 ? ", " : "", i);
    frit_buf_text(&text, "]}");
    frit_automaton *a = make(text.data);
    assert_matches(a, "many tools", "a <tool_12>12</tool><tool_127>127</tool> <tool_128>", 1);
    assert_matches(a, "many tools", "a <tool_12>13", -1);
    assert_true(a->n_states < 10000);
    frit_automaton_free(a);
    frit_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_match_as_the_tags_say),   cmocka_unit_test(marks_of_others_do_not_occur),
        cmocka_unit_test(random_logits_give_whole_tags), cmocka_unit_test(each_mistake_has_a_sentence),
        cmocka_unit_test(what_is_too_large_is_refused),  cmocka_unit_test(many_triggers_are_one_automaton),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

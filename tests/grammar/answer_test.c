// SPDX-License-Identifier: MIT
// Answers of chats from random logits: calls in the format of every published template are parsed as calls whose
// arguments match their schemas. --rounds N: N answers of each format instead of a few.
#include "grammar/random_answer.h"
#include "support/golden_chat.h"

#include "grammar/answer.h"
#include "text/answer/parts.h"

#include <dirent.h>

static int n_rounds = 4;

static void make_format_words(words *w, const answer_format *f)
{
    frit_str marks[32] = {f->reply_open,   f->raw_open,       f->think_open,      f->think_close, f->section_open,
                          f->call_open,    f->call_close,     f->section_close,   f->args_open,   f->name_close,
                          f->arg_open,     f->key_close_text, f->key_close_other, f->value_close, f->quote,
                          f->message_open, f->header_close,   f->id_open};
    size_t n = 18;
    for (size_t i = 0; i < FRIT_COUNT(f->body_ends); i++)
        if (f->body_ends[i]) marks[n++] = frit_str_of(f->body_ends[i]);
    make_words(w, marks, n);
}

// ---------------------------------------------------------------------------------------- tools

static const char tools_text[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"strict\": true, \"parameters\": {\"type\": "
    "\"object\", \"properties\": {\"city\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 12}, \"days\": "
    "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 14}, \"unit\": {\"enum\": [\"C\", \"F\", \"12\"]}, \"note\": "
    "{\"type\": [\"string\", \"null\"]}, \"hourly\": {\"type\": \"boolean\"}, \"zones\": {\"type\": \"array\", "
    "\"items\": {\"type\": \"string\", \"maxLength\": 6}, \"maxItems\": 3}, \"place\": {\"type\": \"object\", "
    "\"properties\": {\"x\": {\"type\": \"number\"}, \"s\": {\"type\": \"string\", \"maxLength\": 5}}, \"required\": "
    "[\"x\"], \"additionalProperties\": false}}, \"required\": [\"city\", \"days\", \"unit\"], "
    "\"additionalProperties\": false}}}, {\"type\": \"function\", \"function\": {\"name\": \"sum-2_numbers\", "
    "\"strict\": true, \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"number\"}, \"b\": "
    "{\"anyOf\": [{\"type\": \"integer\"}, {\"type\": \"string\"}]}}, \"required\": [\"a\"], "
    "\"additionalProperties\": false}}}, {\"type\": \"function\", \"function\": {\"name\": \"now\", \"strict\": "
    "true}}, {\"type\": \"function\", \"function\": {\"name\": \"other\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"a\": {\"type\": \"array\", \"uniqueItems\": true}}}}}]";

enum { N_TOOLS = 4 };

typedef struct checked {
    int n_calls, n_done;
    char text[64];   // beginning of the text outside calls
} checked;

static json_t *tools;
static frit_automaton *validators[N_TOOLS];   // NULL: any object

static int make_tools(void **state)
{
    (void)state;
    static const frit_schema_options complete = {.complete = true};
    tools = parse(tools_text);
    for (size_t i = 0; i < 2; i++) {
        const json_t *function = json_object_get(json_array_get(tools, i), "function");
        char *text = json_dumps(json_object_get(function, "parameters"), 0);
        assert_ok(frit_schema_compile(&validators[i], frit_str_of(text), &complete));
        free(text);
    }
    assert_ok(frit_schema_compile(&validators[2], frit_str_of("{\"type\": \"object\", \"maxProperties\": 0}"), NULL));
    return 0;
}

static int free_tools(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_TOOLS; i++) frit_automaton_free(validators[i]);
    json_decref(tools);
    return 0;
}

static void check_call(const char *about, const frit_part *part, const char *answer)
{
    size_t i = 0;
    for (; i < N_TOOLS; i++)
        if (strcmp(json_string_value(json_object_get(json_object_get(json_array_get(tools, i), "function"), "name")),
                   part->name) == 0)
            break;
    if (i == N_TOOLS) fail_msg("%s: '%s' calls '%s'", about, answer, part->name);
    if (validators[i] && match_text(validators[i], (frit_str){part->text, part->n_bytes}) != 1)
        fail_msg("%s: '%s' has the arguments '%s', which the schema of %s forbids", about, answer, part->text,
                 part->name);
}

static void take(const char *about, frit_parts *split, const frit_buf *answer, checked *c)
{
    frit_part part;
    while (frit_parts_next(split, &part)) {
        if (part.kind == FRIT_PART_CALL) {
            check_call(about, &part, answer->data);
            c->n_calls++;
        } else if (part.kind == FRIT_PART_TEXT) {
            strncat(c->text, part.text, sizeof c->text - 1 - strlen(c->text));
        }
    }
}

// Parses an answer as the server does.
static checked read_answer(const char *about, const answer_format *f, frit_str prompt, const frit_buf *answer)
{
    checked c = {0};
    frit_parts *split;
    const frit_parts_options options = {.format = f, .tools = tools, .prompt = prompt};
    assert_ok(frit_parts_new(&split, &options));
    frit_parts_push(split, (frit_str){answer->data ? answer->data : "", answer->len});
    take(about, split, answer, &c);
    frit_parts_end(split);
    take(about, split, answer, &c);
    frit_parts_free(split);
    return c;
}

// ---------------------------------------------------------------------------------------- every format

static frit_str prompt_of(const answer_format *f, frit_thinking thinking)
{
    if (f->style == CALL_CHANNELS) return frit_str_of(f->recipient_only ? ">>>" : "<|start|>assistant");
    return thinking == FRIT_THINKING_NOW ? f->think_open : (frit_str){"", 0};
}

typedef struct kind {
    const char *name;
    bool must_call, one_call;
    const char *only, *format;   // format is a schema
} kind;

static frit_status add_schema(void *ctx, frit_rule_builder *builder, const frit_schema_form *form, int32_t *rule)
{
    return frit_schema_add_text(builder, frit_str_of(((const kind *)ctx)->format), NULL, form, rule);
}

static const kind kinds[] = {
    {"required", true, false, NULL, NULL},
    {"required, one call", true, true, NULL, NULL},
    {"a named function", true, false, "sum-2_numbers", NULL},
    {"auto", false, false, NULL, NULL},
    {"auto or a schema", false, false, NULL,
     "{\"type\": \"object\", \"properties\": {\"s\": {\"type\": \"string\"}}, "
     "\"required\": [\"s\"], \"additionalProperties\": false}"},
};

static void check_answer(const char *about, const kind *k, const checked *c, const frit_buf *answer)
{
    if (k->must_call && (c->n_calls == 0 || c->text[0]))
        fail_msg("%s: '%s' has %d calls and the text '%s'", about, answer->data, c->n_calls, c->text);
    if (k->one_call && c->n_calls != 1)
        fail_msg("%s: '%s' has %d calls, expected one", about, answer->data, c->n_calls);
    if (k->format && c->n_calls == 0 && c->text[0] != '{')
        fail_msg("%s: '%s' has the text '%s', expected an object", about, answer->data, c->text);
}

static int try_kind(const char *name, const answer_format *f, const words *w, const kind *k, frit_rng *rng)
{
    const bool thinks = f->think_close.len > 0;
    const frit_thinking thinking = !thinks ? FRIT_THINKING_NOT : (frit_thinking)random_between(rng, 0, 2);
    const frit_answer_grammar o = {.format = f,
                                   .thinking = thinking,
                                   .tools = tools,
                                   .must_call = k->must_call,
                                   .only = k->only,
                                   .one_call = k->one_call,
                                   .add_format = k->format ? add_schema : NULL,
                                   .ctx = (void *)k};
    char about[512];
    frit_automaton *a;
    int n_done = 0;
    snprintf(about, sizeof about, "%s, %s, thinking %d", name, k->name, (int)thinking);
    if (frit_answer_compile(&a, &o) != FRIT_OK) fail_msg("%s: %s", about, frit_error());
    for (int i = 0; i < n_rounds; i++) {
        frit_buf answer = {0};
        if (write_answer(a, w, rng, &answer)) {
            const checked c = read_answer(about, f, prompt_of(f, thinking), &answer);
            check_answer(about, k, &c, &answer);
            n_done++;
        }
        frit_buf_free(&answer);
    }
    frit_automaton_free(a);
    return n_done;
}

static void every_format_of_calls_can_be_demanded(void **state)
{
    (void)state;
    struct dirent **entries;
    frit_rng rng;
    frit_rng_init(&rng, 41);
    int n = scandir(shared_path("goldens/template"), &entries, NULL, alphasort), n_formats = 0, n_answers = 0,
        n_tried = 0;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        char *dot = strstr(entries[i]->d_name, ".jinja");
        if (dot) *dot = 0;
        frit_chat *chat = dot ? open_golden(entries[i]->d_name) : NULL;
        const answer_format *f = chat ? frit_chat_get_format(chat) : NULL;
        if (f && f->style != CALL_NONE) {
            words w;
            make_format_words(&w, f);
            n_formats++;
            for (size_t k = 0; k < FRIT_COUNT(kinds); k++) {
                n_answers += try_kind(entries[i]->d_name, f, &w, &kinds[k], &rng);
                n_tried += n_rounds;
            }
            free_words(&w);
        }
        frit_chat_free(chat);
        free(entries[i]);
    }
    free(entries);
    print_message("%d formats, %d answers, %d of them ended\n", n_formats, n_tried, n_answers);
    assert_true((size_t)n_formats >= shared_least(40));
    assert_true(n_answers > n_tried * 9 / 10);
}

// The answers of a template without tools are one object.
static void a_plain_template_has_calls_and_replies_in_objects(void **state)
{
    (void)state;
    frit_chat *chat =
        open_chat("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
    const answer_format *f = frit_chat_get_format(chat);
    frit_rng rng;
    words w;
    int n_answers = 0;
    frit_rng_init(&rng, 43);
    make_format_words(&w, f);
    for (size_t k = 0; k < FRIT_COUNT(kinds); k++) n_answers += try_kind("plain", f, &w, &kinds[k], &rng);
    assert_true(n_answers > 0);
    free_words(&w);
    const struct {
        frit_answer_grammar o;
        const char *text;
        int matches;
    } rows[] = {
        {{.format = f, .tools = tools}, "{\"response\": \"Hi \\\"you\\\"\\n\"}", 1},
        {{.format = f, .tools = tools}, "{\"tool_calls\": [{\"name\": \"now\", \"arguments\": {}}]}", 1},
        {{.format = f, .tools = tools}, "Hi", -1},
        {{.format = f, .tools = tools}, "{\"tool_calls\": []}", -1},
        {{.format = f, .tools = tools}, "{\"tool_calls\": [{\"name\": \"no\", \"arguments\": {}}]}", -1},
        {{.format = f, .tools = tools, .must_call = true}, "{\"response\": \"Hi\"}", -1},
        {{.format = f, .tools = tools, .continues = true}, "Hi", 1},
        {{.format = f}, "Hi", 1},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_automaton *a;
        assert_ok(frit_answer_compile(&a, &rows[i].o));
        assert_matches(a, "a plain template", rows[i].text, rows[i].matches);
        frit_automaton_free(a);
    }
    frit_chat_free(chat);
}

// ---------------------------------------------------------------------------------------- refusals

static void what_is_not_possible_is_refused_by_its_place(void **state)
{
    (void)state;
    static const answer_format none = {.style = CALL_NONE}, named = {.style = CALL_NAMED, .call_open = {"<c>", 3}};
    json_t *unique =
        parse("[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"strict\": true, \"parameters\": "
              "{\"properties\": {\"a\": {\"uniqueItems\": true}}}}}]");
    json_t *space = parse("[{\"type\": \"function\", \"function\": {\"name\": \"f g\"}}]");
    const struct {
        frit_answer_grammar o;
        frit_status status;
        const char *sentence;
    } rows[] = {
        {{.format = &none, .tools = tools, .must_call = true}, FRIT_E_UNSUPPORTED, "tool_choice: the format of this"},
        {{.format = &named, .tools = tools, .must_call = true, .continues = true}, FRIT_E_INVALID, "tool_choice: asks"},
        {{.format = &named, .tools = unique}, FRIT_E_UNSUPPORTED, "tools[0].function.parameters: JSON schema: 'unique"},
        {{.format = &named, .tools = space, .must_call = true}, FRIT_E_UNSUPPORTED, "tools[0].function.name: 'f g'"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_automaton *a;
        assert_int_equal(frit_answer_compile(&a, &rows[i].o), rows[i].status);
        if (strncmp(frit_error(), rows[i].sentence, strlen(rows[i].sentence)) != 0)
            fail_msg("%zu: '%s', expected '%s'", i, frit_error(), rows[i].sentence);
    }
    json_decref(unique);
    json_decref(space);
}

// Clients leave additionalProperties out, and a weak model would add members without end.
static void arguments_that_no_schema_names_are_left_out(void **state)
{
    (void)state;
    static const answer_format json = {
        .style = CALL_JSON, .call_open = {"<c>", 3}, .name_key = {"name", 4}, .args_key = {"arguments", 9}};
    json_t *closed = parse("[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": "
                           "\"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}}}}]");
    frit_automaton *a;
    const frit_answer_grammar o = {.format = &json, .tools = closed, .must_call = true};
    assert_ok(frit_answer_compile(&a, &o));
    assert_matches(a, "a tool", "<c>{\"name\": \"f\", \"arguments\": {\"a\": 1}}", 1);
    assert_matches(a, "a tool", "<c>{\"name\": \"f\", \"arguments\": {}}", 1);
    assert_matches(a, "a tool", "<c>{\"name\": \"f\", \"arguments\": {\"b\": 1}}", -1);
    assert_matches(a, "a tool", "<c>{\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": 1}}", -1);
    frit_automaton_free(a);
    json_decref(closed);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--rounds") == 0) n_rounds = atoi(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_of_calls_can_be_demanded),
        cmocka_unit_test(a_plain_template_has_calls_and_replies_in_objects),
        cmocka_unit_test(what_is_not_possible_is_refused_by_its_place),
        cmocka_unit_test(arguments_that_no_schema_names_are_left_out),
    };
    return cmocka_run_group_tests(tests, make_tools, free_tools);
}

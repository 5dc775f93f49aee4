// SPDX-License-Identifier: MIT
// Tools over HTTP with a model whose template does not support them: its answers are JSON objects, which a grammar
// enforces, and clients get calls and texts as from any other model.
#include "support/served_posix.h"
#include "support/scripted_model.h"

#include <string.h>

#define CHAT "/v1/chat/completions"
#define PARAMETERS \
    "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}}, \"required\": [\"city\"]}"
#define TOOLS                                                                                                          \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"Looks out.\", " \
    "\"parameters\": " PARAMETERS "}}, {\"type\": \"function\", \"function\": {\"name\": \"now\"}}]"
#define ASK(word) "\"messages\": [{\"role\": \"user\", \"content\": \"" word "\"}]"

// ChatML; the question, or the last result, is the name of a script.
static const char chat_template[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% set said = messages[-1].content %}"
    "{{ '<|after|>' if 'tool_result' in said else {'weather': '<|weather|>', 'two': '<|two|>', 'words': '<|words|>', "
    "'stubborn': '<|stubborn|>', 'formatted': '<|formatted|>'}.get(said, said) }}{% endif %}";

static const script scripts[] = {
    {"<|weather|>",
     {"{\"tool_calls\": [", "{\"name\": \"get_weather\", ", "\"arguments\": {\"city\": ", "\"Paris\"", "}}]}"}},
    {"<|after|>", {"{\"response\": ", "\"It is ", "21 degrees.\"}"}},
    {"<|two|>",
     {"{\"tool_calls\": [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}", ", {\"name\": \"now\", ",
      "\"arguments\": {}}", "]}"}},
    {"<|words|>", {"{\"response\": \"", "A \\\"sky\\\"", "\\n\\ud83d\\ude00 {b", "lue}.\"", "}"}},
    {"<|formatted|>", {"{\"result\":", "{\"response\": \"j", "a\"}"}},
    {"<|stubborn|>", {"I would ", "rather not."}},
};

static served s;

static int start_server(void **state)
{
    (void)state;
    const char *path = temp_path("plain.gguf");
    scripted_model(path, chat_template, scripts, FRIT_COUNT(scripts));
    s = serve(path, "--parallel 2 --threads 1");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static json_t *ask_at(const char *path, const char *body)
{
    reply r = post(&s, path, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static const json_t *choice_of(const json_t *json)
{
    const json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    assert_non_null(choice);
    return choice;
}

static void expect_text(const json_t *object, const char *key, const char *want)
{
    const json_t *value = json_object_get(object, key);
    if (!want && json_is_null(value)) return;
    if (!want || !json_is_string(value) || strcmp(json_string_value(value), want) != 0)
        fail_msg("%s: '%s', not '%s'", key, json_string_value(value), want ? want : "null");
}

static void expect_call(const json_t *message, size_t i, const char *name, const char *arguments)
{
    const json_t *call = json_array_get(json_object_get(message, "tool_calls"), i);
    const json_t *function = json_object_get(call, "function");
    assert_true(json_string_length(json_object_get(call, "id")) > 0);
    expect_text(function, "name", name);
    if (arguments) expect_text(function, "arguments", arguments);
}

// ---------------------------------------------------------------------------------------- whole answers

static void an_answer_is_a_call_or_a_text(void **state)
{
    (void)state;
    json_t *json = ask_at(CHAT, "{" TOOLS ", " ASK("weather") "}");
    const json_t *choice = choice_of(json), *message = json_object_get(choice, "message");
    expect_text(choice, "finish_reason", "tool_calls");
    expect_text(message, "content", NULL);
    assert_int_equal(json_array_size(json_object_get(message, "tool_calls")), 1);
    expect_call(message, 0, "get_weather", "{\"city\": \"Paris\"}");
    json_decref(json);
    json = ask_at(CHAT, "{" TOOLS ", " ASK("words") "}");
    choice = choice_of(json), message = json_object_get(choice, "message");
    expect_text(choice, "finish_reason", "stop");
    expect_text(message, "content", "A \"sky\"\n\xf0\x9f\x98\x80 {blue}.");
    assert_null(json_object_get(message, "tool_calls"));
    json_decref(json);
}

static void calls_are_several_unless_one_is_asked_for(void **state)
{
    (void)state;
    json_t *json = ask_at(CHAT, "{" TOOLS ", " ASK("two") "}");
    const json_t *message = json_object_get(choice_of(json), "message");
    assert_int_equal(json_array_size(json_object_get(message, "tool_calls")), 2);
    expect_call(message, 0, "get_weather", "{\"city\": \"Rome\"}");
    expect_call(message, 1, "now", "{}");
    json_decref(json);
    json = ask_at(CHAT, "{" TOOLS ", " ASK("two") ", \"parallel_tool_calls\": false}");
    message = json_object_get(choice_of(json), "message");
    assert_int_equal(json_array_size(json_object_get(message, "tool_calls")), 1);
    json_decref(json);
}

static void a_choice_of_tools_holds(void **state)
{
    (void)state;
    // The model would answer with text, which is not allowed.
    json_t *json = ask_at(CHAT, "{" TOOLS ", " ASK("stubborn") ", \"tool_choice\": {\"type\": \"function\", "
                                                               "\"function\": {\"name\": \"now\"}}}");
    const json_t *message = json_object_get(choice_of(json), "message");
    assert_int_equal(json_array_size(json_object_get(message, "tool_calls")), 1);
    expect_call(message, 0, "now", NULL);
    json_decref(json);
    json = ask_at(CHAT, "{" TOOLS ", " ASK("weather") ", \"tool_choice\": \"required\"}");
    expect_call(json_object_get(choice_of(json), "message"), 0, "get_weather", "{\"city\": \"Paris\"}");
    json_decref(json);
    // The model is told of no tools, and its answer is plain text.
    json = ask_at(CHAT, "{" TOOLS ", " ASK("stubborn") ", \"tool_choice\": \"none\"}");
    expect_text(json_object_get(choice_of(json), "message"), "content", "I would rather not.");
    json_decref(json);
    json = ask_at(CHAT, "{" ASK("words") "}");
    const char *content = json_string_value(json_object_get(json_object_get(choice_of(json), "message"), "content"));
    assert_non_null(strstr(content, "{\"response\": "));
    json_decref(json);
}

static void a_schema_of_the_answer_holds_beside_calls(void **state)
{
    (void)state;
#define FORMAT                                                                                               \
    "\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": {\"type\": \"object\", " \
    "\"properties\": {\"response\": {\"enum\": [\"ja\"]}}, \"required\": [\"response\"]}}}"
    json_t *json = ask_at(CHAT, "{" FORMAT ", " TOOLS ", " ASK("weather") "}");
    expect_call(json_object_get(choice_of(json), "message"), 0, "get_weather", "{\"city\": \"Paris\"}");
    json_decref(json);
    json = ask_at(CHAT, "{" FORMAT ", " TOOLS ", " ASK("formatted") "}");
    expect_text(json_object_get(choice_of(json), "message"), "content", "{\"response\": \"ja\"}");
    json_decref(json);
}

static void an_answer_that_is_cut_has_what_it_said(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "A \"sky\"", "A \"sky\"\n\xf0\x9f\x98\x80 {b"};
    for (size_t i = 0; i < FRIT_COUNT(texts); i++) {
        char body[1024];
        snprintf(body, sizeof body, "{%s, %s, \"max_tokens\": %d}", TOOLS, ASK("words"), (int)i + 1);
        json_t *json = ask_at(CHAT, body);
        expect_text(choice_of(json), "finish_reason", "length");
        expect_text(json_object_get(choice_of(json), "message"), "content", texts[i]);
        json_decref(json);
    }
}

static void a_stream_has_the_text_as_it_comes_and_calls_whole(void **state)
{
    (void)state;
    static const struct {
        const char *word, *content, *arguments, *finish;
        int least;   // deltas of content
    } rows[] = {
        {"words", "A \"sky\"\n\xf0\x9f\x98\x80 {blue}.", "", "stop", 3},
        {"weather", "", "{\"city\": \"Paris\"}", "tool_calls", 0},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char body[1024], content[128] = "", arguments[128] = "", finish[32] = "";
        int n = 0;
        snprintf(body, sizeof body, "{%s, \"messages\": [{\"role\": \"user\", \"content\": \"%s\"}], \"stream\": true}",
                 TOOLS, rows[i].word);
        reply r = post(&s, CHAT, body);
        assert_int_equal(r.status, 200);
        for (char *at = r.body; (at = strstr(at, "data: {")) != NULL; at++) {
            json_t *chunk = json_loads(at + 6, JSON_DISABLE_EOF_CHECK, NULL);
            const json_t *delta = json_object_get(choice_of(chunk), "delta");
            const json_t *call = json_array_get(json_object_get(delta, "tool_calls"), 0);
            const char *piece = json_string_value(json_object_get(delta, "content"));
            if (piece && *piece) n++, strcat(content, piece);
            piece = json_string_value(json_object_get(json_object_get(call, "function"), "arguments"));
            if (piece) strcat(arguments, piece);
            piece = json_string_value(json_object_get(choice_of(chunk), "finish_reason"));
            if (piece) strcat(finish, piece);
            json_decref(chunk);
        }
        assert_string_equal(content, rows[i].content);
        assert_string_equal(arguments, rows[i].arguments);
        assert_string_equal(finish, rows[i].finish);
        assert_true(n >= rows[i].least);
        reply_free(&r);
    }
}

// ---------------------------------------------------------------------------------------- the history

#define CALLED                                                                                                       \
    "\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"content\": "          \
    "\"weather\"}, "                                                                                                 \
    "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"a\", \"type\": \"function\", "         \
    "\"function\": {\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"Paris\\\"}\"}}, {\"id\": \"b\", " \
    "\"type\": \"function\", \"function\": {\"name\": \"now\", \"arguments\": \"\"}}]}, {\"role\": \"tool\", "       \
    "\"tool_call_id\": \"a\", \"content\": \"21 \\\"degrees\\\"\"}, {\"role\": \"tool\", \"tool_call_id\": \"b\", "  \
    "\"content\": \"noon\"}]"

static void calls_and_results_of_the_history_are_messages_that_the_template_knows(void **state)
{
    (void)state;
    json_t *json = ask_at("/apply-template", "{" TOOLS ", " CALLED "}");
    const char *prompt = json_string_value(json_object_get(json, "prompt"));
    const char *const parts[] = {
        "<|im_start|>system\nBe brief.\n\n",
        "{\"name\": \"get_weather\", \"description\": \"Looks out.\", \"parameters\": {\"type\": \"object\"",
        "<|im_start|>user\nweather<|im_end|>\n<|im_start|>assistant\n",
        "{\"tool_calls\": [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}, {\"name\": \"now\", "
        "\"arguments\": {}}]}<|im_end|>\n<|im_start|>user\n",
        "{\"tool_result\": {\"name\": \"get_weather\", \"content\": \"21 \\\"degrees\\\"\"}}\n\n"
        "{\"tool_result\": {\"name\": \"now\", \"content\": \"noon\"}}<|im_end|>\n<|im_start|>assistant\n"};
    const char *at = prompt;
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
        at = strstr(at, parts[i]);
        if (!at) fail_msg("'%s' does not follow in '%s'", parts[i], prompt);
        at += strlen(parts[i]);
    }
    json_decref(json);
    json = ask_at(CHAT, "{" TOOLS ", " CALLED "}");
    expect_text(json_object_get(choice_of(json), "message"), "content", "It is 21 degrees.");
    json_decref(json);
    // Without tools the history is the same, and tools are not mentioned.
    json = ask_at("/apply-template", "{" CALLED "}");
    prompt = json_string_value(json_object_get(json, "prompt"));
    assert_null(strstr(prompt, "Looks out."));
    assert_non_null(strstr(prompt, parts[3]));
    json_decref(json);
}

// ---------------------------------------------------------------------------------------- other protocols

static void all_protocols_have_it(void **state)
{
    (void)state;
    static const char tools[] =
        "\"tools\": [{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": " PARAMETERS "}]";
    char body[1024];
    snprintf(body, sizeof body, "{%s, \"input\": \"weather\"}", tools);
    json_t *json = ask_at("/v1/responses", body);
    const json_t *item = json_array_get(json_object_get(json, "output"), 0);
    expect_text(item, "type", "function_call");
    expect_text(item, "arguments", "{\"city\": \"Paris\"}");
    json_decref(json);

    static const char anthropic[] =
        "\"max_tokens\": 100, \"tools\": [{\"name\": \"get_weather\", \"input_schema\": " PARAMETERS "}]";
    snprintf(body, sizeof body, "{%s, %s}", anthropic, ASK("weather"));
    json = ask_at("/v1/messages", body);
    item = json_array_get(json_object_get(json, "content"), 0);
    expect_text(json, "stop_reason", "tool_use");
    expect_text(item, "name", "get_weather");
    expect_text(json_object_get(item, "input"), "city", "Paris");
    json_decref(json);
    snprintf(body, sizeof body, "{%s, %s}", anthropic, ASK("words"));
    json = ask_at("/v1/messages", body);
    item = json_array_get(json_object_get(json, "content"), 0);
    expect_text(item, "text", "A \"sky\"\n\xf0\x9f\x98\x80 {blue}.");
    json_decref(json);

    json = ask_at("/api/chat", "{\"model\": \"plain\", \"stream\": false, " TOOLS ", " ASK("weather") "}");
    item = json_array_get(json_object_get(json_object_get(json, "message"), "tool_calls"), 0);
    expect_text(json_object_get(item, "function"), "name", "get_weather");
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_a_call_or_a_text),
        cmocka_unit_test(calls_are_several_unless_one_is_asked_for),
        cmocka_unit_test(a_choice_of_tools_holds),
        cmocka_unit_test(a_schema_of_the_answer_holds_beside_calls),
        cmocka_unit_test(an_answer_that_is_cut_has_what_it_said),
        cmocka_unit_test(a_stream_has_the_text_as_it_comes_and_calls_whole),
        cmocka_unit_test(calls_and_results_of_the_history_are_messages_that_the_template_knows),
        cmocka_unit_test(all_protocols_have_it),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

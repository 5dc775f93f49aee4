// SPDX-License-Identifier: MIT
// Tools and reasoning over HTTP, with a scripted model.
//
//     test_server_tools --model PATH      writes that model, for tests/server/clients/clients_*.py
#include "support/served_posix.h"
#include "support/tool_model.h"

#include <string.h>

#define CHAT "/v1/chat/completions"
#define TOOLS                                                                                                    \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"parameters\": {\"type\": " \
    "\"object\", \"properties\": {\"city\": {\"type\": \"string\"}}}}}, {\"type\": \"function\", \"function\": " \
    "{\"name\": \"add\", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}}}}]"
#define ASK(word) "\"messages\": [{\"role\": \"user\", \"content\": \"" word "\"}]"

static served s;

static int start_server(void **state)
{
    (void)state;
    const char *path = temp_path("scripted.gguf");
    tool_model(path);
    s = serve(path, "--parallel 2 --threads 1");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// ---------------------------------------------------------------------------------------- whole answers

static json_t *ask(const char *body)
{
    reply r = post(&s, CHAT, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static json_t *choice_of(const json_t *json)
{
    json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    assert_non_null(choice);
    return choice;
}

static void expect_text(const json_t *object, const char *key, const char *want)
{
    const json_t *value = json_object_get(object, key);
    if (!want && json_is_null(value)) return;
    if (!want || !json_is_string(value) || strcmp(json_string_value(value), want) != 0)
        fail_msg("%s: '%s', not '%s'", key, json_string_value(value), want);
}

static void expect_call(const json_t *call, const char *name, const char *arguments)
{
    expect_text(call, "type", "function");
    assert_true(json_string_length(json_object_get(call, "id")) > 0);
    expect_text(json_object_get(call, "function"), "name", name);
    expect_text(json_object_get(call, "function"), "arguments", arguments);
}

static void reasoning_text_and_call_come_apart(void **state)
{
    (void)state;
    json_t *json = ask("{" TOOLS ", " ASK("weather") "}");
    const json_t *choice = choice_of(json), *message = json_object_get(choice, "message");
    expect_text(choice, "finish_reason", "tool_calls");
    expect_text(message, "role", "assistant");
    expect_text(message, "reasoning_content", "Hm, weather.");
    expect_text(message, "content", "Let me look.");
    assert_int_equal(json_array_size(json_object_get(message, "tool_calls")), 1);
    expect_call(json_array_get(json_object_get(message, "tool_calls"), 0), "get_weather", "{\"city\": \"Paris\"}");
    const json_t *details = json_object_get(json_object_get(json, "usage"), "completion_tokens_details");
    assert_in_range(json_integer_value(json_object_get(details, "reasoning_tokens")), 1, 3);
    json_decref(json);
}

static void a_stream_has_deltas_as_openai_sends_them(void **state)
{
    (void)state;
    reply r = post(&s, CHAT, "{" TOOLS ", " ASK("weather") ", \"stream\": true}");
    assert_int_equal(r.status, 200);
    char content[64] = "", reasoning[64] = "", arguments[64] = "", name[32] = "", finish[32] = "";
    int n_ids = 0;
    for (char *at = r.body; (at = strstr(at, "data: {")) != NULL; at++) {
        json_t *chunk = json_loads(at + 6, JSON_DISABLE_EOF_CHECK, NULL);
        const json_t *choice = choice_of(chunk), *delta = json_object_get(choice, "delta");
        const json_t *call = json_array_get(json_object_get(delta, "tool_calls"), 0);
        const json_t *function = json_object_get(call, "function");
        const char *piece = json_string_value(json_object_get(delta, "content"));
        if (piece) strcat(content, piece);
        piece = json_string_value(json_object_get(delta, "reasoning_content"));
        if (piece) strcat(reasoning, piece);
        piece = json_string_value(json_object_get(function, "arguments"));
        if (piece) strcat(arguments, piece);
        piece = json_string_value(json_object_get(function, "name"));
        if (piece) strcat(name, piece);
        if (call) assert_int_equal(json_integer_value(json_object_get(call, "index")), 0);
        n_ids += json_object_get(call, "id") != NULL;
        piece = json_string_value(json_object_get(choice, "finish_reason"));
        if (piece) strcat(finish, piece);
        json_decref(chunk);
    }
    assert_string_equal(content, "Let me look.");
    assert_string_equal(reasoning, "Hm, weather.");
    assert_string_equal(arguments, "{\"city\": \"Paris\"}");
    assert_string_equal(name, "get_weather");
    assert_string_equal(finish, "tool_calls");
    assert_int_equal(n_ids, 1);
    assert_non_null(strstr(r.body, "data: [DONE]"));
    reply_free(&r);
}

static void the_answer_of_a_tool_leads_to_an_answer_in_words(void **state)
{
    (void)state;
    json_t *json =
        ask("{" TOOLS ", \"messages\": [{\"role\": \"user\", \"content\": \"weather\"}, {\"role\": \"assistant\", "
            "\"content\": null, \"reasoning_content\": \"Hm.\", \"refusal\": null, \"tool_calls\": [{\"id\": "
            "\"c12345678\", \"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": "
            "\"{\\\"city\\\": \\\"Paris\\\"}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"c12345678\", "
            "\"content\": \"21\"}]}");
    expect_text(choice_of(json), "finish_reason", "stop");
    expect_text(json_object_get(choice_of(json), "message"), "content", "It is 21 degrees.");
    assert_null(json_object_get(json_object_get(choice_of(json), "message"), "tool_calls"));
    json_decref(json);
}

static void calls_may_be_several_or_the_first_only(void **state)
{
    (void)state;
    json_t *json = ask("{" TOOLS ", " ASK("two") "}");
    const json_t *message = json_object_get(choice_of(json), "message"),
                 *calls = json_object_get(message, "tool_calls");
    expect_text(message, "content", NULL);
    assert_int_equal(json_array_size(calls), 2);
    expect_call(json_array_get(calls, 0), "add", "{\"a\": 1}");
    expect_call(json_array_get(calls, 1), "add", "{\"a\": 2}");
    json_decref(json);
    json = ask("{" TOOLS ", " ASK("two") ", \"parallel_tool_calls\": false}");
    calls = json_object_get(json_object_get(choice_of(json), "message"), "tool_calls");
    assert_int_equal(json_array_size(calls), 1);
    expect_text(choice_of(json), "finish_reason", "tool_calls");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "usage"), "completion_tokens")), 1);
    json_decref(json);
}

static void what_is_no_call_is_content(void **state)
{
    (void)state;
    json_t *json = ask("{" TOOLS ", " ASK("bad") "}");
    expect_text(choice_of(json), "finish_reason", "stop");
    expect_text(json_object_get(choice_of(json), "message"), "content", "<tool_call>{\"name\": oops}</tool_call>");
    json_decref(json);
    static const char *const without[] = {"{" ASK("two") "}", "{" TOOLS ", " ASK("two") ", \"tool_choice\": \"none\"}"};
    for (size_t i = 0; i < FRIT_COUNT(without); i++) {
        json = ask(without[i]);
        const char *content =
            json_string_value(json_object_get(json_object_get(choice_of(json), "message"), "content"));
        assert_non_null(content);
        assert_non_null(strstr(content, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2}}"));
        json_decref(json);
    }
}

#define FEW                                                                                                      \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"add\", \"strict\": true, \"parameters\": "  \
    "{\"type\": "                                                                                                \
    "\"object\", \"properties\": {\"a\": {\"enum\": [1, 2]}}, \"required\": [\"a\"], \"additionalProperties\": " \
    "false}}}, "                                                                                                 \
    "{\"type\": \"function\", \"function\": {\"name\": \"now\"}}]"

static void a_call_can_be_demanded(void **state)
{
    (void)state;
    json_t *json = ask("{" FEW ", " ASK("two") ", \"tool_choice\": \"required\"}");
    const json_t *message = json_object_get(choice_of(json), "message"), *calls;
    expect_text(choice_of(json), "finish_reason", "tool_calls");
    expect_text(message, "content", NULL);
    expect_call(json_array_get(json_object_get(message, "tool_calls"), 0), "add", "{\"a\": 1}");
    expect_call(json_array_get(json_object_get(message, "tool_calls"), 1), "add", "{\"a\": 2}");
    json_decref(json);
    // The script's text does not fit the grammar: the model must call, after its reasoning.
    json = ask("{" FEW ", " ASK("weather") ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": "
                                           "\"now\"}}}");
    message = json_object_get(choice_of(json), "message");
    calls = json_object_get(message, "tool_calls");
    expect_text(choice_of(json), "finish_reason", "tool_calls");
    expect_text(message, "content", NULL);
    expect_text(message, "reasoning_content", "Hm, weather.");
    assert_int_equal(json_array_size(calls), 1);
    expect_text(json_object_get(json_array_get(calls, 0), "function"), "name", "now");
    json_decref(json);
}

static void strict_arguments_obey_their_schema(void **state)
{
    (void)state;
    json_t *json = ask("{" FEW ", " ASK("five") ", \"parallel_tool_calls\": false}");
    const json_t *message = json_object_get(choice_of(json), "message");
    const json_t *call = json_array_get(json_object_get(message, "tool_calls"), 0);
    json_t *arguments =
        json_loads(json_string_value(json_object_get(json_object_get(call, "function"), "arguments")), 0, NULL);
    const json_int_t a = json_integer_value(json_object_get(arguments, "a"));
    if (a != 1 && a != 2) fail_msg("a is %lld; the schema allows 1 and 2", (long long)a);
    json_decref(arguments);
    json_decref(json);
}

static void a_schema_holds_after_reasoning(void **state)
{
    (void)state;
#define FORMAT "\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": {\"enum\": [\"ja\"]}}}"
    static const char *const bodies[] = {"{" FORMAT ", " ASK("weather") "}",
                                         "{" FORMAT ", " FEW ", " ASK("weather") ", \"tool_choice\": \"none\"}"};
    for (size_t i = 0; i < FRIT_COUNT(bodies); i++) {
        json_t *json = ask(bodies[i]);
        const json_t *message = json_object_get(choice_of(json), "message");
        expect_text(message, "reasoning_content", "Hm, weather.");
        expect_text(message, "content", "\"ja\"");
        json_decref(json);
    }
    // Text that begins like the caller's own tag must continue as this tag; the reasoning is not affected.
    json_t *tagged =
        ask("{\"response_format\": {\"type\": \"structural_tag\", \"structures\": [{\"begin\": \"It\", "
            "\"schema\": {\"enum\": [7]}, \"end\": \".\"}], \"triggers\": [\"I\"]}, \"max_tokens\": 60, " ASK(
                "weather") "}");
    const json_t *said = json_object_get(choice_of(tagged), "message");
    expect_text(said, "reasoning_content", "Hm, weather.");
    assert_non_null(json_string_value(json_object_get(said, "content")));
    for (const char *at = json_string_value(json_object_get(said, "content")); (at = strchr(at, 'I')); at++)
        if (strncmp(at, "It7.", strlen(at) < 4 ? strlen(at) : 4) != 0) fail_msg("'%s' is no tag", at);
    json_decref(tagged);
    // With tools, the answer is a call or matches the format.
    json_t *json = ask("{" FORMAT ", " FEW ", " ASK("two") "}");
    const json_t *message = json_object_get(choice_of(json), "message");
    assert_int_equal(json_array_size(json_object_get(message, "tool_calls")), 2);
    json_decref(json);
}

static void templates_are_applied_with_everything(void **state)
{
    (void)state;
    reply r = post(&s, "/apply-template",
                   "{" TOOLS ", \"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
                   "\"content\": \"The sky \"}], \"continue_final_message\": true}");
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    const char *prompt = json_string_value(json_object_get(json, "prompt"));
    assert_non_null(strstr(prompt, "tools: [{\"type\": \"function\""));
    assert_string_equal(prompt + strlen(prompt) - strlen("[assistant]The sky "), "[assistant]The sky ");
    json_decref(json);
    reply_free(&r);
}

// ---------------------------------------------------------------------------------------- errors

static void wrong_tools_are_refused_by_place(void **state)
{
    (void)state;
    static const struct {
        const char *body, *param, *code;
    } rows[] = {
        {"{" ASK("a") ", \"tools\": 5}", "tools", "invalid_type"},
        {"{" ASK("a") ", \"tools\": [{\"type\": \"retrieval\"}]}", "tools[0].type", "invalid_value"},
        {"{" ASK("a") ", \"tools\": [{\"type\": \"function\"}]}", "tools[0].function.name", "invalid_value"},
        {"{" ASK("a") ", \"tool_choice\": \"required\"}", "tool_choice", "invalid_value"},
        {"{" TOOLS ", " ASK("a") ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"no\"}}}",
         "tool_choice", "invalid_value"},
        {"{" TOOLS ", " ASK("a") ", \"tool_choice\": 5}", "tool_choice", "invalid_value"},
        {"{" ASK("a") ", \"chat_template_kwargs\": 5}", "chat_template_kwargs", "invalid_type"},
        {"{" ASK("a") ", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"strict\": 5}}]}",
         "tools[0].function.strict", "invalid_type"},
        {"{" ASK("a") ", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"strict\": true, "
                      "\"parameters\": {\"items\": {}, \"properties\": {\"a\": {\"uniqueItems\": true}}}}}]}",
         "tools[0].function.parameters", "unsupported_value"},
        {"{" ASK("a") ", \"functions\": [{}]}", "functions", "unsupported_parameter"},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{}]}]}", "messages[0].tool_calls[0]",
         "invalid_value"},
        {"{" ASK("a") ", \"continue_final_message\": true}", "continue_final_message", "invalid_value"},
        {"{" ASK("a") ", \"continue_final_message\": 5}", "continue_final_message", "invalid_type"},
        {"{}", "messages", "missing_required_parameter"},
        {"{\"messages\": 5}", "messages", "invalid_type"},
        {"{\"messages\": []}", "messages", "invalid_value"},
        {"{\"messages\": [5]}", "messages[0].role", "invalid_type"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [5]}]}", "messages[0].content", "invalid_value"},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": 5}]}", "messages[0].tool_calls", "invalid_type"},
        {"{" ASK("a") ", \"samplers\": [\"tipical\"]}", "samplers", "invalid_value"},
        {"{" ASK("a") ", \"dry_multiplier\": 1, \"dry_sequence_breakers\": [\"\"]}", "dry_sequence_breakers",
         "invalid_value"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        reply r = post(&s, CHAT, rows[i].body);
        json_t *json = reply_json(&r), *error = json_object_get(json, "error");
        if (r.status != 400) fail_msg("%s: %d %s", rows[i].body, r.status, r.body);
        expect_text(error, "param", rows[i].param);
        expect_text(error, "code", rows[i].code);
        expect_text(error, "type", "invalid_request_error");
        json_decref(json);
        reply_free(&r);
    }
}

static void a_body_of_millions_of_values_is_refused(void **state)
{
    (void)state;
    enum { N = 3 << 20 };
    char *body = malloc(2 * N + 64);
    strcpy(body, "{\"prompt\": [5");
    size_t n = strlen(body);
    for (int i = 0; i < N; i++) {
        body[n++] = ',';
        body[n++] = '5';
    }
    strcpy(body + n, "]}");
    reply r = post(&s, "/v1/completions", body);
    assert_int_equal(r.status, 413);
    json_t *json = reply_json(&r);
    expect_text(json_object_get(json, "error"), "code", "body_too_large");
    json_decref(json);
    reply_free(&r);
    free(body);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--model") == 0) {
        tool_model(argv[2]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasoning_text_and_call_come_apart),
        cmocka_unit_test(a_stream_has_deltas_as_openai_sends_them),
        cmocka_unit_test(the_answer_of_a_tool_leads_to_an_answer_in_words),
        cmocka_unit_test(calls_may_be_several_or_the_first_only),
        cmocka_unit_test(what_is_no_call_is_content),
        cmocka_unit_test(a_call_can_be_demanded),
        cmocka_unit_test(strict_arguments_obey_their_schema),
        cmocka_unit_test(a_schema_holds_after_reasoning),
        cmocka_unit_test(templates_are_applied_with_everything),
        cmocka_unit_test(wrong_tools_are_refused_by_place),
        cmocka_unit_test(a_body_of_millions_of_values_is_refused),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

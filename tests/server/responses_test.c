// SPDX-License-Identifier: MIT
// OpenAI's Responses over HTTP, with a scripted model.
#include "support/events_posix.h"
#include "support/tool_model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "/v1/responses"
#define TOOLS                                                                                                        \
    "\"tools\": [{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": {\"type\": \"object\", "        \
    "\"properties\": {\"city\": {\"type\": \"string\"}}}}, {\"type\": \"function\", \"name\": \"add\", \"strict\": " \
    "null}]"

static served s;

static int start_server(void **state)
{
    (void)state;
    const char *path = temp_path("scripted.gguf");
    tool_model(path);
    s = serve(path, "--parallel 2 --threads 1 --temp 0 --alias gpt --api-key one --api-key two");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static reply send_as(const char *key, const char *method, const char *path, const char *body)
{
    char header[64];
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", key);
    return reply_to(&s, method, path, header, body);
}

static json_t *ask(const char *method, const char *path, const char *body, int status)
{
    reply r = send_as("one", method, path, body);
    if (r.status != status) fail_msg("%s %s %s: %d %s", method, path, body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static json_t *ask_events(const char *body)
{
    reply r = send_as("one", "POST", PATH, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *events = read_events(&r);
    reply_free(&r);
    return events;
}

static void an_answer_has_items(void **state)
{
    (void)state;
    json_t *json = ask("POST", PATH, "{\"input\": \"weather\", \"metadata\": {\"a\": \"b\"}, " TOOLS "}", 200);
    assert_memory_equal(text_in(json, "id"), "resp_", 5);
    expect_text_in(json, "object", "response");
    expect_text_in(json, "status", "completed");
    expect_text_in(json, "model", "gpt");
    expect_text_in(json, "metadata.a", "b");
    assert_true(json_real_value(value_in(json, "top_p")) == 0.95);
    assert_true(json_is_null(value_in(json, "error")));
    assert_int_equal(json_array_size(value_in(json, "tools")), 2);
    assert_int_equal(json_array_size(value_in(json, "output")), 3);
    expect_text_in(json, "output.0.type", "reasoning");
    expect_text_in(json, "output.0.content.0.text", "Hm, weather.");
    expect_text_in(json, "output.1.type", "message");
    expect_text_in(json, "output.1.role", "assistant");
    expect_text_in(json, "output.1.content.0.type", "output_text");
    expect_text_in(json, "output.1.content.0.text", "Let me look.");
    expect_text_in(json, "output.2.type", "function_call");
    expect_text_in(json, "output.2.name", "get_weather");
    expect_text_in(json, "output.2.arguments", "{\"city\": \"Paris\"}");
    assert_true(strlen(text_in(json, "output.2.call_id")) > 0);
    expect_int_in(json, "usage.total_tokens",
                  json_integer_value(value_in(json, "usage.input_tokens")) +
                      json_integer_value(value_in(json, "usage.output_tokens")));
    json_decref(json);
}

static void a_stream_has_events_in_order(void **state)
{
    (void)state;
    static const char *const want[] = {"response.created",
                                       "response.in_progress",
                                       "response.output_item.added",
                                       "response.content_part.added",
                                       "response.reasoning_text.delta",
                                       "response.reasoning_text.delta",
                                       "response.reasoning_text.done",
                                       "response.content_part.done",
                                       "response.output_item.done",
                                       "response.output_item.added",
                                       "response.content_part.added",
                                       "response.output_text.delta",
                                       "response.output_text.delta",
                                       "response.output_text.done",
                                       "response.content_part.done",
                                       "response.output_item.done",
                                       "response.output_item.added",
                                       "response.function_call_arguments.delta",
                                       "response.function_call_arguments.done",
                                       "response.output_item.done",
                                       "response.completed"};
    json_t *events = ask_events("{\"stream\": true, \"input\": \"weather\", " TOOLS "}");
    assert_int_equal(json_array_size(events), FRIT_COUNT(want));
    for (size_t i = 0; i < FRIT_COUNT(want); i++) {
        const json_t *event = json_array_get(events, i);
        expect_text_in(event, "event", want[i]);
        expect_text_in(event, "data.type", want[i]);
        expect_int_in(event, "data.sequence_number", (json_int_t)i);
        if (i >= 2 && i < 20) expect_int_in(event, "data.output_index", i < 9 ? 0 : i < 16 ? 1 : 2);
    }
    expect_text_in(events, "0.data.response.status", "in_progress");
    assert_int_equal(json_array_size(value_in(events, "0.data.response.output")), 0);
    expect_text_in(events, "11.data.delta", "Let me");
    expect_text_in(events, "13.data.text", "Let me look.");
    expect_text_in(events, "11.data.item_id", text_in(events, "9.data.item.id"));
    expect_text_in(events, "18.data.arguments", "{\"city\": \"Paris\"}");
    expect_text_in(events, "20.data.response.id", text_in(events, "0.data.response.id"));
    // The items of the stream equal those of the response at its end, which is stored.
    const json_t *whole = value_in(events, "20.data.response");
    assert_true(json_equal(value_in(whole, "output.0"), value_in(events, "8.data.item")));
    assert_true(json_equal(value_in(whole, "output.1"), value_in(events, "15.data.item")));
    assert_true(json_equal(value_in(whole, "output.2"), value_in(events, "19.data.item")));
    char path[128];
    snprintf(path, sizeof path, PATH "/%s", text_in(whole, "id"));
    json_t *stored = ask("GET", path, "", 200);
    assert_true(json_equal(stored, (json_t *)whole));
    json_decref(stored);
    json_decref(events);
}

// A result, with the call given by the id of the previous response, or with all items repeated: the prompt is the same.
static void conversations_continue_by_id_or_by_items(void **state)
{
    (void)state;
    char body[2048];
    json_t *first = ask("POST", PATH, "{\"instructions\": \"Be brief.\", \"input\": \"weather\", " TOOLS "}", 200);
    snprintf(body, sizeof body,
             "{\"instructions\": \"Be long.\", \"previous_response_id\": \"%s\", \"input\": [{\"type\": "
             "\"function_call_output\", \"call_id\": \"%s\", \"output\": \"21\"}], " TOOLS "}",
             text_in(first, "id"), text_in(first, "output.2.call_id"));
    json_t *by_id = ask("POST", PATH, body, 200);
    expect_text_in(by_id, "output.0.content.0.text", "It is 21 degrees.");
    expect_text_in(by_id, "previous_response_id", text_in(first, "id"));

    json_t *items = json_pack("[{s:s, s:s}]", "role", "user", "content", "weather");
    json_array_extend(items, (json_t *)value_in(first, "output"));
    json_array_append_new(items,
                          json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "type", "function_call_output", "call_id",
                                    text_in(first, "output.2.call_id"), "output", "type", "input_text", "text", "21"));
    json_t *request = json_loads("{\"instructions\": \"Be long.\", " TOOLS "}", 0, NULL);
    json_object_set_new(request, "input", items);
    char *text = json_dumps(request, 0);
    json_t *by_items = ask("POST", PATH, text, 200);
    expect_text_in(by_items, "output.0.content.0.text", "It is 21 degrees.");
    expect_int_in(by_items, "usage.input_tokens", json_integer_value(value_in(by_id, "usage.input_tokens")));
    expect_int_in(by_items, "usage.input_tokens_details.cached_tokens",
                  json_integer_value(value_in(by_id, "usage.input_tokens")) - 1);
    // A third turn includes the two before it.
    snprintf(body, sizeof body, "{\"previous_response_id\": \"%s\", \"input\": \"five\", \"max_output_tokens\": 1}",
             text_in(by_id, "id"));
    json_t *third = ask("POST", PATH, body, 200);
    expect_text_in(third, "status", "incomplete");
    expect_text_in(third, "incomplete_details.reason", "max_output_tokens");
    expect_text_in(third, "output.0.status", "incomplete");
    json_decref(third);
    json_decref(by_items);
    json_decref(request);
    json_decref(by_id);
    json_decref(first);
    free(text);
}

static void responses_are_kept_for_their_caller_until_they_are_deleted(void **state)
{
    (void)state;
    char path[128], body[256];
    json_t *json = ask("POST", PATH, "{\"input\": \"weather\"}", 200);
    snprintf(path, sizeof path, PATH "/%s", text_in(json, "id"));
    snprintf(body, sizeof body, "{\"input\": \"two\", \"previous_response_id\": \"%s\"}", text_in(json, "id"));
    json_t *stored = ask("GET", path, "", 200);
    assert_true(json_equal(json, stored));
    json_decref(stored);
    static const char *const methods[] = {"GET", "DELETE"};
    for (int i = 0; i < 2; i++) {
        reply r = send_as("two", methods[i], path, "");   // another caller
        assert_int_equal(r.status, 404);
        reply_free(&r);
    }
    reply r = send_as("two", "POST", PATH, body);
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "previous_response_not_found"));
    reply_free(&r);
    json_t *gone = ask("DELETE", path, "", 200);
    assert_true(json_is_true(value_in(gone, "deleted")));
    json_decref(gone);
    json_decref(ask("DELETE", path, "", 404));
    json_decref(ask("GET", path, "", 404));
    json_decref(ask("POST", PATH, body, 400));
    json_decref(json);
    json = ask("POST", PATH, "{\"input\": \"weather\", \"store\": false}", 200);
    snprintf(path, sizeof path, PATH "/%s", text_in(json, "id"));
    json_decref(ask("GET", path, "", 404));
    json_decref(json);
}

static void the_oldest_responses_go_first(void **state)
{
    (void)state;
    enum { LIMIT = 1024 };
    char path[128];
    json_t *json = ask("POST", PATH, "{\"input\": \"a\", \"max_output_tokens\": 0}", 200);
    snprintf(path, sizeof path, PATH "/%s", text_in(json, "id"));
    json_decref(json);
    for (int i = 0; i < LIMIT; i++) {
        if (i == LIMIT - 1) json_decref(ask("GET", path, "", 200));
        json_decref(ask("POST", PATH, "{\"input\": \"a\", \"max_output_tokens\": 0}", 200));
    }
    json_decref(ask("GET", path, "", 404));
}

static void formats_and_choices_hold(void **state)
{
    (void)state;
    json_t *json = ask("POST", PATH,
                       "{\"input\": \"weather\", \"text\": {\"format\": {\"type\": \"json_schema\", \"name\": \"n\", "
                       "\"schema\": {\"enum\": [17]}, \"strict\": true}}, \"reasoning\": {\"effort\": \"low\"}}",
                       200);
    const json_t *output = value_in(json, "output");
    expect_text_in(json_array_get(output, json_array_size(output) - 1), "content.0.text", "17");
    expect_text_in(json, "text.format.type", "json_schema");
    expect_text_in(json, "reasoning.effort", "low");
    json_decref(json);
    json = ask("POST", PATH, "{\"input\": \"five\", \"tool_choice\": \"none\", " TOOLS "}", 200);
    expect_text_in(json, "output.0.type", "message");
    json_decref(json);
    json =
        ask("POST", PATH,
            "{\"input\": \"weather\", \"tool_choice\": {\"type\": \"function\", \"name\": \"add\"}, " TOOLS "}", 200);
    expect_text_in(json, "output.1.name", "add");
    json_decref(json);
    json = ask("POST", PATH, "{\"input\": \"two\", \"parallel_tool_calls\": false, " TOOLS "}", 200);
    assert_int_equal(json_array_size(value_in(json, "output")), 1);
    json_decref(json);
}

static void what_is_wrong_is_refused_by_place(void **state)
{
    (void)state;
    static const struct {
        const char *body, *said;
    } rows[] = {
        {"{}", "input: is missing"},
        {"{\"input\": 5}", "input: expected a string or a list"},
        {"{\"input\": []}", "input: expected a string or a list"},
        {"{\"input\": [5]}", "input[0]: expected an object"},
        {"{\"input\": [{\"role\": \"tool\", \"content\": \"a\"}]}", "input[0].role: 'tool'"},
        {"{\"input\": [{\"role\": \"user\"}]}", "input[0]: expected content"},
        {"{\"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_image\"}]}]}",
         "input[0].content[0]: expected the picture as a data URI"},
        {"{\"input\": [{\"type\": \"web_search_call\"}]}", "an item of type 'web_search_call' is not supported"},
        {"{\"input\": [{\"type\": \"function_call\", \"call_id\": \"a\"}]}", "input[0].name: is missing"},
        {"{\"input\": [{\"type\": \"function_call_output\", \"call_id\": \"a\"}]}", "input[0]: expected content"},
        {"{\"input\": \"a\", \"tools\": [{\"type\": \"web_search\"}]}", "a tool of type 'web_search' is not supported"},
        {"{\"input\": \"a\", \"tool_choice\": {\"type\": \"file_search\"}}", "tool_choice: expected"},
        {"{\"input\": \"a\", \"text\": {\"format\": {\"type\": \"xml\"}}}", "text.format: expected"},
        {"{\"input\": \"a\", \"reasoning\": \"high\"}", "reasoning: expected an object"},
        {"{\"input\": \"a\", \"truncation\": \"oldest\"}", "truncation: expected"},
        {"{\"input\": \"a\", \"previous_response_id\": \"resp_1\"}", "there is no response 'resp_1'"},
        {"{\"input\": \"a\", \"max_output_tokens\": \"5\"}", "max_output_tokens: expected an integer"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *json = ask("POST", PATH, rows[i].body, 400);
        expect_text_in(json, "error.type", "invalid_request_error");
        if (!strstr(text_in(json, "error.message"), rows[i].said))
            fail_msg("%s: '%s', not '%s'", rows[i].body, text_in(json, "error.message"), rows[i].said);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_has_items),
        cmocka_unit_test(a_stream_has_events_in_order),
        cmocka_unit_test(conversations_continue_by_id_or_by_items),
        cmocka_unit_test(responses_are_kept_for_their_caller_until_they_are_deleted),
        cmocka_unit_test(the_oldest_responses_go_first),
        cmocka_unit_test(formats_and_choices_hold),
        cmocka_unit_test(what_is_wrong_is_refused_by_place),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

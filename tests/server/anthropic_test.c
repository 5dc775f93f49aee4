// SPDX-License-Identifier: MIT
// Anthropic's Messages over HTTP, with a scripted model.
#include "support/events_posix.h"
#include "support/tool_model.h"

#include <string.h>

#define PATH "/v1/messages"
#define TOOLS                                                                                                          \
    "\"tools\": [{\"name\": \"get_weather\", \"input_schema\": {\"type\": \"object\", \"properties\": {\"city\": "     \
    "{\"type\": \"string\"}}}}, {\"name\": \"add\", \"input_schema\": {\"type\": \"object\", \"properties\": {\"a\": " \
    "{\"type\": \"integer\"}}}, \"type\": \"custom\", \"cache_control\": {\"type\": \"ephemeral\"}}]"
#define ASK(word) "\"max_tokens\": 200, \"messages\": [{\"role\": \"user\", \"content\": \"" word "\"}]"

static served s;

static int start_server(void **state)
{
    (void)state;
    const char *path = temp_path("scripted.gguf");
    tool_model(path);
    s = serve(path, "--parallel 2 --threads 1 --temp 0 --alias claude");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static void an_answer_has_blocks(void **state)
{
    (void)state;
    json_t *json = post_for(&s, PATH, "{" TOOLS ", " ASK("weather") "}", 200);
    assert_memory_equal(text_in(json, "id"), "msg_", 4);
    expect_text_in(json, "type", "message");
    expect_text_in(json, "role", "assistant");
    expect_text_in(json, "model", "claude");
    assert_int_equal(json_array_size(value_in(json, "content")), 3);
    expect_text_in(json, "content.0.type", "thinking");
    expect_text_in(json, "content.0.thinking", "Hm, weather.");
    expect_text_in(json, "content.0.signature", "");
    expect_text_in(json, "content.1.type", "text");
    expect_text_in(json, "content.1.text", "Let me look.");
    expect_text_in(json, "content.2.type", "tool_use");
    expect_text_in(json, "content.2.name", "get_weather");
    expect_text_in(json, "content.2.input.city", "Paris");
    assert_true(strlen(text_in(json, "content.2.id")) > 0);
    expect_text_in(json, "stop_reason", "tool_use");
    assert_true(json_is_null(value_in(json, "stop_sequence")));
    json_decref(json);
}

// Combining the events as a client does gives the whole answer.
static void a_stream_has_events_in_order(void **state)
{
    (void)state;
    static const char *const want[] = {"message_start",       "ping",
                                       "content_block_start", "content_block_delta",
                                       "content_block_delta", "content_block_stop",
                                       "content_block_start", "content_block_delta",
                                       "content_block_delta", "content_block_stop",
                                       "content_block_start", "content_block_delta",
                                       "content_block_stop",  "message_delta",
                                       "message_stop"};
    static const char *const indices[] = {NULL, NULL, "0", "0", "0", "0", "1", "1", "1", "1", "2", "2", "2"};
    json_t *events = post_for_events(&s, PATH, "{\"stream\": true, " TOOLS ", " ASK("weather") "}");
    assert_int_equal(json_array_size(events), FRIT_COUNT(want));
    for (size_t i = 0; i < FRIT_COUNT(want); i++) {
        const json_t *event = json_array_get(events, i);
        expect_text_in(event, "event", want[i]);
        expect_text_in(event, "data.type", want[i]);
        if (i < FRIT_COUNT(indices) && indices[i]) expect_int_in(event, "data.index", atoi(indices[i]));
    }
    expect_text_in(events, "0.data.message.role", "assistant");
    expect_int_in(events, "0.data.message.usage.output_tokens", 0);
    expect_text_in(events, "2.data.content_block.type", "thinking");
    expect_text_in(events, "3.data.delta.thinking", "Hm");
    expect_text_in(events, "7.data.delta.text", "Let me");
    expect_text_in(events, "8.data.delta.text", " look.");
    expect_text_in(events, "10.data.content_block.name", "get_weather");
    expect_text_in(events, "11.data.delta.type", "input_json_delta");
    expect_text_in(events, "11.data.delta.partial_json", "{\"city\": \"Paris\"}");
    expect_text_in(events, "13.data.delta.stop_reason", "tool_use");
    assert_true(json_integer_value(value_in(events, "13.data.usage.output_tokens")) > 3);
    json_decref(events);
}

static void results_lead_to_an_answer_in_words(void **state)
{
    (void)state;
    json_t *json = post_for(
        &s, PATH,
        "{" TOOLS ", \"system\": [{\"type\": \"text\", \"text\": \"Be brief.\"}], \"max_tokens\": 50, \"messages\": "
        "[{\"role\": \"user\", \"content\": \"weather\"}, {\"role\": \"assistant\", \"content\": [{\"type\": "
        "\"thinking\", \"thinking\": \"Hm.\", \"signature\": \"\"}, {\"type\": \"redacted_thinking\", \"data\": "
        "\"x\"}, "
        "{\"type\": \"text\", \"text\": \"Let me look.\"}, {\"type\": \"tool_use\", \"id\": \"toolu_1234\", \"name\": "
        "\"get_weather\", \"input\": {\"city\": \"Paris\"}}]}, {\"role\": \"user\", \"content\": [{\"type\": "
        "\"tool_result\", \"tool_use_id\": \"toolu_1234\", \"content\": [{\"type\": \"text\", \"text\": "
        "\"21\"}]}]}]}",
        200);
    expect_text_in(json, "content.0.text", "It is 21 degrees.");
    expect_text_in(json, "stop_reason", "end_turn");
    json_decref(json);
}

// A request becomes the prompt of the same conversation in OpenAI's form: the number of tokens is equal, and all are
// cached.
static void messages_become_the_prompt_of_openais_form(void **state)
{
    (void)state;
    json_t *chat = post_for(
        &s, "/v1/chat/completions",
        "{\"max_tokens\": 1, \"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", "
        "\"content\": \"one and\"}, {\"role\": \"assistant\", \"content\": null, \"reasoning_content\": \"Hm.\", "
        "\"tool_calls\": [{\"id\": \"c12345678\", \"type\": \"function\", \"function\": {\"name\": \"add\", "
        "\"arguments\": \"{\\\"a\\\":1}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"c12345678\", \"content\": "
        "\"2\"}, {\"role\": \"user\", \"content\": \"five\"}]}",
        200);
    const json_int_t n = json_integer_value(value_in(chat, "usage.prompt_tokens"));
    const char *same =
        "{\"system\": \"Be brief.\", \"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"one and\"}, "
        "{\"role\": \"assistant\", \"content\": [{\"type\": \"thinking\", \"thinking\": \"Hm.\"}, {\"type\": "
        "\"tool_use\", \"id\": \"c12345678\", \"name\": \"add\", \"input\": {\"a\": 1}}]}, {\"role\": \"user\", "
        "\"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"c12345678\", \"content\": \"2\"}, {\"type\": "
        "\"text\", \"text\": \"five\"}]}]}";
    json_t *message = post_for(&s, PATH, same, 200), *count = post_for(&s, PATH "/count_tokens", same, 200);
    expect_int_in(count, "input_tokens", n);
    expect_int_in(message, "usage.input_tokens", 1);
    expect_int_in(message, "usage.cache_read_input_tokens", n - 1);
    expect_int_in(message, "usage.output_tokens", 1);
    expect_text_in(message, "stop_reason", "max_tokens");
    json_decref(chat);
    json_decref(message);
    json_decref(count);
}

static void stop_sequences_are_named(void **state)
{
    (void)state;
    json_t *json = post_for(&s, PATH, "{\"stop_sequences\": [\"xyz\", \"wea\", \"me l\"], " ASK("weather") "}", 200);
    expect_text_in(json, "stop_reason", "stop_sequence");
    expect_text_in(json, "stop_sequence", "wea");
    expect_text_in(json, "content.0.thinking", "Hm,");
    json_decref(json);
    json_t *events =
        post_for_events(&s, PATH, "{\"stream\": true, \"stop_sequences\": [\"me l\"], " ASK("weather") "}");
    const json_t *delta = json_array_get(events, json_array_size(events) - 2);
    expect_text_in(delta, "data.delta.stop_reason", "stop_sequence");
    expect_text_in(delta, "data.delta.stop_sequence", "me l");
    json_decref(events);
}

static void calls_can_be_demanded_and_limited(void **state)
{
    (void)state;
    json_t *json = post_for(&s, PATH, "{" TOOLS ", " ASK("two") ", \"tool_choice\": {\"type\": \"any\"}}", 200);
    assert_int_equal(json_array_size(value_in(json, "content")), 2);
    expect_int_in(json, "content.1.input.a", 2);
    json_decref(json);
    json = post_for(&s, PATH,
                    "{" TOOLS ", " ASK("two") ", \"tool_choice\": {\"type\": \"auto\", \"disable_parallel_tool_use\": "
                                              "true}}",
                    200);
    assert_int_equal(json_array_size(value_in(json, "content")), 1);
    expect_text_in(json, "stop_reason", "tool_use");
    json_decref(json);
    json = post_for(&s, PATH,
                    "{" TOOLS ", " ASK("weather") ", \"tool_choice\": {\"type\": \"tool\", \"name\": \"add\"}}", 200);
    expect_text_in(json, "content.1.name", "add");
    json_decref(json);
    json = post_for(&s, PATH, "{" TOOLS ", " ASK("five") ", \"tool_choice\": {\"type\": \"none\"}}", 200);
    expect_text_in(json, "content.0.type", "text");
    json_decref(json);
}

static void what_is_wrong_is_refused_by_place(void **state)
{
    (void)state;
    static const struct {
        const char *body, *said;
    } rows[] = {
        {"{}", "messages: is missing"},
        {"{\"messages\": []}", "messages: expected a list"},
        {"{\"messages\": [7]}", "messages[0]: expected an object"},
        {"{\"messages\": [{\"role\": \"tool\", \"content\": \"a\"}]}", "messages[0].role: 'tool'"},
        {"{\"messages\": [{\"role\": \"user\"}]}", "messages[0].content: expected a string"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]}",
         "messages[0].content[0]: expected a source of type base64 with its data"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\"}]}]}",
         "messages[0].content[0].tool_use_id: is missing"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"a\", "
         "\"content\": [{\"type\": \"document\"}]}]}]}",
         "messages[0].content[0].content[0]: only blocks of type 'text' and 'image' are supported"},
        {"{\"system\": 5, " ASK("two") "}", "system"},
        {"{\"system\": [{\"type\": \"image\"}], " ASK("two") "}", "system.content[0]"},
        {"{\"tools\": [{\"type\": \"web_search_20250305\", \"name\": \"w\"}], " ASK("two") "}",
         "a tool of type 'web_search_20250305' is not supported"},
        {"{\"tools\": [{}], " ASK("two") "}", "tools[0].name: is missing"},
        {"{\"tool_choice\": {\"type\": \"every\"}, " ASK("two") "}", "tool_choice: type 'every'"},
        {"{\"thinking\": {\"type\": \"deep\"}, " ASK("two") "}", "thinking: expected"},
        {"{\"stop_sequences\": \"a\", " ASK("two") "}", "stop_sequences: expected a list"},
        {"{\"output_config\": {\"effort\": \"most\"}, " ASK("two") "}", "output_config.effort: expected"},
        {"{\"temperature\": -1, " ASK("two") "}", "temperature: -1 is outside"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *json = post_for(&s, PATH, rows[i].body, 400);
        expect_text_in(json, "type", "error");
        expect_text_in(json, "error.type", "invalid_request_error");
        if (!strstr(text_in(json, "error.message"), rows[i].said))
            fail_msg("%s: '%s', not '%s'", rows[i].body, text_in(json, "error.message"), rows[i].said);
        json_decref(json);
    }
    json_t *json = post_for(&s, PATH, "{\"model\": \"opus\", " ASK("two") "}", 404);
    expect_text_in(json, "error.type", "not_found_error");
    json_decref(json);
}

static void a_last_message_of_the_assistant_is_continued(void **state)
{
    (void)state;
    static const char body[] = "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"five\"}, "
                               "{\"role\": \"assistant\", \"content\": \"I say\"}]}";
    static const char same[] =
        "{\"continue_final_message\": true, \"add_generation_prompt\": false, \"max_tokens\": 1, "
        "\"messages\": [{\"role\": \"user\", \"content\": \"five\"}, {\"role\": \"assistant\", "
        "\"content\": \"I say\"}]}";
    json_t *count = post_for(&s, PATH "/count_tokens", body, 200),
           *chat = post_for(&s, "/v1/chat/completions", same, 200);
    expect_int_in(count, "input_tokens", json_integer_value(value_in(chat, "usage.prompt_tokens")));
    json_decref(count);
    json_decref(chat);
}

static void formats_hold(void **state)
{
    (void)state;
    json_t *json = post_for(&s, PATH,
                            "{\"output_config\": {\"format\": {\"type\": \"json_schema\", \"schema\": {\"enum\": "
                            "[17]}}}, " ASK("weather") "}",
                            200);
    const json_t *content = value_in(json, "content");
    expect_text_in(json_array_get(content, json_array_size(content) - 1), "text", "17");
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_has_blocks),
        cmocka_unit_test(a_stream_has_events_in_order),
        cmocka_unit_test(results_lead_to_an_answer_in_words),
        cmocka_unit_test(messages_become_the_prompt_of_openais_form),
        cmocka_unit_test(stop_sequences_are_named),
        cmocka_unit_test(calls_can_be_demanded_and_limited),
        cmocka_unit_test(what_is_wrong_is_refused_by_place),
        cmocka_unit_test(a_last_message_of_the_assistant_is_continued),
        cmocka_unit_test(formats_hold),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

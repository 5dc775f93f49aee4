// SPDX-License-Identifier: MIT
// Ollama's paths over HTTP, with a scripted model.
#include "support/events_posix.h"
#include "support/tool_model.h"

#include <string.h>

#define TOOLS                                                                                                    \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"parameters\": {\"type\": " \
    "\"object\", \"properties\": {\"city\": {\"type\": \"string\"}}}}}]"
#define ASK(word) "\"model\": \"llama:latest\", \"messages\": [{\"role\": \"user\", \"content\": \"" word "\"}]"

static served s;

static int start_server(void **state)
{
    (void)state;
    const char *path = temp_path("scripted.gguf");
    tool_model(path);
    s = serve(path, "--parallel 2 --threads 1 --temp 0 --alias llama");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// The lines of a stream.
static json_t *post_for_lines(const char *path, const char *body)
{
    reply r = post(&s, path, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    assert_string_equal(reply_header(&r, "Content-Type"), "application/x-ndjson");
    assert_true(r.complete);
    json_t *lines = json_array();
    for (const char *at = r.body; *at;) {
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);
        if (!line) fail_msg("no JSON: %.*s", (int)(end - at), at);
        json_array_append_new(lines, line);
        at = end + 1;
    }
    reply_free(&r);
    return lines;
}

static void a_chat_has_ollamas_shape(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/api/chat", "{\"stream\": false, " TOOLS ", " ASK("weather") "}", 200);
    expect_text_in(json, "model", "llama");
    expect_text_in(json, "message.role", "assistant");
    expect_text_in(json, "message.content", "Let me look.");
    expect_text_in(json, "message.thinking", "Hm, weather.");
    expect_text_in(json, "message.tool_calls.0.function.name", "get_weather");
    expect_text_in(json, "message.tool_calls.0.function.arguments.city", "Paris");
    expect_text_in(json, "done_reason", "stop");
    assert_true(json_is_true(value_in(json, "done")));
    assert_true(json_integer_value(value_in(json, "prompt_eval_count")) > 20);
    assert_true(json_integer_value(value_in(json, "eval_count")) > 5);
    assert_true(json_integer_value(value_in(json, "eval_duration")) > 0);
    assert_true(json_integer_value(value_in(json, "total_duration")) >=
                json_integer_value(value_in(json, "eval_duration")));
    assert_int_equal(strlen(text_in(json, "created_at")), 20);
    json_decref(json);
}

static void answers_stream_as_lines_unless_that_is_declined(void **state)
{
    (void)state;
    json_t *lines = post_for_lines("/api/chat", "{" TOOLS ", " ASK("weather") "}");
    const size_t n = json_array_size(lines);
    char content[64] = "", thinking[64] = "";
    int n_calls = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *line = json_array_get(lines, i);
        assert_int_equal(json_is_true(value_in(line, "done")), i + 1 == n);
        assert_int_equal(value_in(line, "eval_count") != NULL, i + 1 == n);
        strcat(content, text_in(line, "message.content"));
        const char *thought = json_string_value(value_in(line, "message.thinking"));
        if (thought) strcat(thinking, thought);
        n_calls += (int)json_array_size(value_in(line, "message.tool_calls"));
    }
    assert_string_equal(content, "Let me look.");
    assert_string_equal(thinking, "Hm, weather.");
    assert_int_equal(n_calls, 1);
    json_decref(lines);
}

static void results_lead_to_an_answer_in_words(void **state)
{
    (void)state;
    json_t *json =
        post_for(&s, "/api/chat",
                 "{\"stream\": false, " TOOLS ", \"messages\": [{\"role\": \"user\", \"content\": \"weather\"}, "
                 "{\"role\": \"assistant\", \"content\": \"Let me look.\", \"thinking\": \"Hm.\", \"tool_calls\": "
                 "[{\"function\": {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}}]}, {\"role\": "
                 "\"tool\", \"tool_name\": \"get_weather\", \"content\": \"21\"}]}",
                 200);
    expect_text_in(json, "message.content", "It is 21 degrees.");
    json_decref(json);
}

static void prompts_are_messages_or_the_whole_input(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/api/generate", "{\"stream\": false, \"prompt\": \"weather\", \"think\": true}", 200);
    assert_non_null(strstr(text_in(json, "response"), "Let me look."));
    expect_text_in(json, "thinking", "Hm, weather.");
    json_decref(json);
    json_t *lines = post_for_lines("/api/generate", "{\"raw\": true, \"prompt\": \"<|after|>\"}");
    char text[64] = "";
    for (size_t i = 0; i < json_array_size(lines); i++) strcat(text, text_in(json_array_get(lines, i), "response"));
    assert_string_equal(text, "It is 21 degrees.");
    json_decref(lines);
    // A system prompt comes first.
    json =
        post_for(&s, "/api/generate",
                 "{\"stream\": false, \"system\": \"Hi.\", \"prompt\": \"a\", \"options\": {\"num_predict\": 1}}", 200);
    json_t *chat =
        post_for(&s, "/v1/chat/completions",
                 "{\"max_tokens\": 1, \"messages\": [{\"role\": \"system\", \"content\": \"Hi.\"}, {\"role\": "
                 "\"user\", \"content\": \"a\"}]}",
                 200);
    expect_int_in(json, "prompt_eval_count", json_integer_value(value_in(chat, "usage.prompt_tokens")));
    json_decref(chat);
    json_decref(json);
}

static void options_and_formats_hold(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/api/chat",
                            "{\"stream\": false, \"options\": {\"num_predict\": 2, \"temperature\": 0.5, \"top_k\": 3, "
                            "\"seed\": 1, \"num_ctx\": 100}, " ASK("weather") "}",
                            200);
    expect_text_in(json, "done_reason", "length");
    expect_int_in(json, "eval_count", 2);
    json_decref(json);
    json =
        post_for(&s, "/api/chat", "{\"stream\": false, \"options\": {\"stop\": [\"me l\"]}, " ASK("weather") "}", 200);
    expect_text_in(json, "message.content", "Let ");
    json_decref(json);
    json = post_for(&s, "/api/chat", "{\"stream\": false, \"format\": {\"enum\": [17]}, " ASK("weather") "}", 200);
    expect_text_in(json, "message.content", "17");
    json_decref(json);
}

static void an_empty_request_says_that_the_model_is_loaded(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/api/chat", "{\"model\": \"llama\"}", 200);
    expect_text_in(json, "done_reason", "load");
    json_decref(json);
    json = post_for(&s, "/api/generate", "{\"model\": \"llama\", \"keep_alive\": \"5m\"}", 200);
    expect_text_in(json, "response", "");
    json_decref(json);
}

static json_t *get_for(const char *path)
{
    reply r = get(&s, path);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static void models_are_listed_and_shown(void **state)
{
    (void)state;
    static const char *const paths[] = {"/api/tags", "/api/ps"};
    for (int i = 0; i < 2; i++) {
        json_t *json = get_for(paths[i]);
        expect_text_in(json, "models.0.name", "llama");
        expect_text_in(json, "models.0.details.family", "llama");
        expect_text_in(json, "models.0.details.format", "gguf");
        assert_true(json_integer_value(value_in(json, "models.0.size")) > 1000);
        json_decref(json);
    }
    json_t *json = post_for(&s, "/api/show", "{\"model\": \"llama\"}", 200);
    assert_non_null(strstr(text_in(json, "template"), "tool_call"));
    const json_t *meta = value_in(json, "model_info");
    assert_string_equal(json_string_value(json_object_get(meta, "general.architecture")), "llama");
    assert_int_equal(json_integer_value(json_object_get(meta, "llama.context_length")), 4096);
    assert_null(json_object_get(meta, "tokenizer.ggml.tokens"));
    expect_text_in(json, "capabilities.0", "completion");
    json_decref(json);
    json = get_for("/api/version");
    assert_true(strlen(text_in(json, "version")) >= 5);
    json_decref(json);
}

static void texts_become_vectors(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/api/embed", "{\"model\": \"llama\", \"input\": [\"a\", \"b\"]}", 200);
    json_t *openai = post_for(&s, "/v1/embeddings", "{\"input\": [\"a\", \"b\"]}", 200);
    assert_int_equal(json_array_size(value_in(json, "embeddings")), 2);
    assert_true(json_equal(value_in(json, "embeddings.1"), value_in(openai, "data.1.embedding")));
    expect_int_in(json, "prompt_eval_count", json_integer_value(value_in(openai, "usage.prompt_tokens")));
    json_decref(openai);
    json_decref(json);
}

// An input that is too long loses its end, as in Ollama, unless the request forbids it.
static void a_text_that_is_too_long_is_cut(void **state)
{
    (void)state;
    enum { N = 6000 };
    char *body = malloc(N + 200);
    for (int i = 0; i < 3; i++) {
        static const char *const ends[] = {"", ", \"truncate\": true", ", \"truncate\": false"};
        const int n = sprintf(body, "{\"model\": \"llama\"%s, \"input\": [\"a\", \"", ends[i]);
        for (int k = 0; k < N; k++) body[n + k] = k % 2 ? '5' : '~';
        strcpy(body + n + N, "\"]}");
        json_t *json = post_for(&s, "/api/embed", body, i < 2 ? 200 : 400);
        if (i < 2) assert_int_equal(json_array_size(value_in(json, "embeddings")), 2);
        if (i < 2) assert_in_range(json_integer_value(value_in(json, "prompt_eval_count")), 4000, 4200);
        json_decref(json);
    }
    free(body);
}

static void the_older_path_gives_one_vector(void **state)
{
    (void)state;
    json_t *json = post_for(&s, "/api/embeddings", "{\"model\": \"llama\", \"prompt\": \"b\"}", 200);
    json_t *other = post_for(&s, "/api/embed", "{\"model\": \"llama\", \"input\": \"b\"}", 200);
    assert_true(json_equal(value_in(json, "embedding"), value_in(other, "embeddings.0")));
    json_decref(json);
    json_decref(other);
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *body, *said;
        int status;
    } rows[] = {
        {"/api/chat", "{\"model\": \"qwen\"}", "The model 'qwen' does not exist", 404},
        {"/api/show", "{\"model\": \"qwen\"}", "The model 'qwen' does not exist", 404},
        {"/api/chat", "{\"messages\": 5}", "messages: expected a list", 400},
        {"/api/chat", "{\"messages\": [{}]}", "messages[0].role: is missing", 400},
        {"/api/chat", "{\"messages\": [{\"role\": \"user\", \"images\": [\"\"]}]}",
         "messages[0].images[0]: scripted.gguf: has no encoder of pictures; expected a file mmproj-*.gguf beside it, "
         "or mmproj",
         400},
        {"/api/chat", "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{}]}]}", "tool_calls[0].name", 400},
        {"/api/chat", "{\"options\": {\"temperature\": -1}, " ASK("a") "}", "temperature: -1 is outside", 400},
        {"/api/chat", "{\"options\": {\"num_predict\": \"5\"}, " ASK("a") "}", "options.num_predict", 400},
        {"/api/chat", "{\"options\": 5, " ASK("a") "}", "options: expected an object", 400},
        {"/api/chat", "{\"format\": \"xml\", " ASK("a") "}", "format: expected", 400},
        {"/api/chat", "{\"think\": 5, " ASK("a") "}", "think: expected", 400},
        {"/api/generate", "{\"prompt\": 5}", "prompt: expected a string", 400},
        {"/api/generate", "{\"prompt\": \"a\", \"images\": [\"\"]}",
         "images[0]: scripted.gguf: has no encoder of pictures", 400},
        {"/api/generate", "{\"prompt\": \"a\", \"suffix\": \"b\"}", "no tokens for filling in", 400},
        {"/api/embed", "{}", "input: is missing", 400},
        {"/api/embeddings", "{}", "prompt: is missing", 400},
        {"/api/embeddings", "{\"prompt\": [\"a\"]}", "prompt: expected a string", 400},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *json = post_for(&s, rows[i].path, rows[i].body, rows[i].status);
        if (!strstr(text_in(json, "error"), rows[i].said))
            fail_msg("%s: '%s', not '%s'", rows[i].body, text_in(json, "error"), rows[i].said);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chat_has_ollamas_shape),
        cmocka_unit_test(answers_stream_as_lines_unless_that_is_declined),
        cmocka_unit_test(results_lead_to_an_answer_in_words),
        cmocka_unit_test(prompts_are_messages_or_the_whole_input),
        cmocka_unit_test(options_and_formats_hold),
        cmocka_unit_test(an_empty_request_says_that_the_model_is_loaded),
        cmocka_unit_test(models_are_listed_and_shown),
        cmocka_unit_test(texts_become_vectors),
        cmocka_unit_test(a_text_that_is_too_long_is_cut),
        cmocka_unit_test(the_older_path_gives_one_vector),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

// SPDX-License-Identifier: MIT
// "truncation": "auto" of OpenAI's Responses: conversations that are longer than the context.
#include "support/events_posix.h"
#include "support/tool_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "/v1/responses"

enum { CTX = 1200, ROOM = 20, N_TURNS = 24 };

static served s;

static int start_server(void **state)
{
    (void)state;
    const char *path = temp_path("truncated.gguf");
    tool_model(path);
    s = serve(path, "--parallel 1 --threads 1 --temp 0 --ctx 1200");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// Makes a conversation of the last n of N_TURNS turns, each with a question, a call, its result and, except in the last
// turn, an answer. The turns differ in length.
static char *body_of(int n, const char *truncation)
{
    json_t *items = json_array();
    for (int i = N_TURNS - n; i < N_TURNS; i++) {
        char text[64];
        snprintf(text, sizeof text, "question %d%.*s", i, i % 7, "??????");
        json_array_append_new(items, json_pack("{s:s, s:s}", "role", "user", "content", text));
        json_array_append_new(items, json_pack("{s:s, s:s, s:s, s:s}", "type", "function_call", "call_id", text, "name",
                                               "add", "arguments", "{}"));
        json_array_append_new(
            items, json_pack("{s:s, s:s, s:s}", "type", "function_call_output", "call_id", text, "output", "3"));
        if (i + 1 < N_TURNS)
            json_array_append_new(items, json_pack("{s:s, s:s}", "role", "assistant", "content", "It is 3."));
    }
    json_t *body = json_pack("{s:s, s:o, s:i, s:s*}", "instructions", "Be brief.", "input", items, "max_output_tokens",
                             ROOM, "truncation", truncation);
    char *text = json_dumps(body, 0);
    json_decref(body);
    return text;
}

// Returns the tokens of the prompt; 0: it is too long.
static json_int_t tokens_of(int n, const char *truncation)
{
    char *body = body_of(n, truncation);
    reply r = post(&s, PATH, body);
    json_t *json = reply_json(&r);
    if (r.status != 200) expect_text_in(json, "error.code", "context_length_exceeded");
    const json_int_t n_tokens = r.status == 200 ? json_integer_value(value_in(json, "usage.input_tokens")) : 0;
    if (r.status == 200 && truncation) expect_text_in(json, "truncation", truncation);
    json_decref(json);
    reply_free(&r);
    free(body);
    return n_tokens;
}

static void as_many_turns_stay_as_leave_room_for_the_answer(void **state)
{
    (void)state;
    json_int_t most = 0;
    int n_kept = 0;
    for (int n = 1; n <= N_TURNS; n++) {
        const json_int_t n_tokens = tokens_of(n, NULL);
        if (n_tokens == 0 || n_tokens > CTX - ROOM) break;
        assert_true(n_tokens > most);   // instructions and each turn are complete
        most = n_tokens;
        n_kept = n;
    }
    assert_true(n_kept > 1 && n_kept < N_TURNS - 1);
    assert_int_equal(tokens_of(N_TURNS, "disabled"), 0);
    assert_int_equal(tokens_of(N_TURNS, "auto"), most);
    assert_int_equal(tokens_of(n_kept + 1, "auto"), most);
    assert_int_equal(tokens_of(n_kept, "auto"), most);
    assert_int_equal(tokens_of(1, "auto"), tokens_of(1, NULL));
}

static void a_conversation_by_ids_goes_on_for_ever(void **state)
{
    (void)state;
    char body[512], id[128] = "";
    for (int i = 0; i < N_TURNS; i++) {
        snprintf(body, sizeof body, "{\"input\": \"weather\", \"truncation\": \"auto\"%s%s%s}",
                 i > 0 ? ", \"previous_response_id\": \"" : "", id, i > 0 ? "\"" : "");
        json_t *json = post_for(&s, PATH, body, 200);
        snprintf(id, sizeof id, "%s", text_in(json, "id"));
        assert_memory_equal(text_in(json, "output.1.content.0.text"), "Let me look.", 12);
        json_decref(json);
    }
    // Turns that were dropped from a prompt are still part of the conversation.
    snprintf(body, sizeof body, "{\"input\": \"weather\", \"previous_response_id\": \"%s\"}", id);
    json_t *json = post_for(&s, PATH, body, 400);
    expect_text_in(json, "error.code", "context_length_exceeded");
    json_decref(json);
}

static void the_last_turn_stays(void **state)
{
    (void)state;
    char body[CTX * 16 + 256];
    int n = sprintf(body, "{\"truncation\": \"auto\", \"input\": [{\"role\": \"user\", \"content\": \"weather\"}, "
                          "{\"role\": \"assistant\", \"content\": \"yes\"}, {\"role\": \"user\", \"content\": \"");
    for (int i = 0; i < CTX; i++) n += sprintf(body + n, "question ");
    sprintf(body + n, "\"}]}");
    json_t *json = post_for(&s, PATH, body, 400);
    expect_text_in(json, "error.code", "context_length_exceeded");
    json_decref(json);
}

// The conversation needs more memory than the template may use, so it counts as too long.
static void turns_that_the_template_cannot_hold_are_left_out(void **state)
{
    (void)state;
    enum { LENGTH = 28000000 };
    char *body = malloc(LENGTH + 512);
    assert_non_null(body);
    served fable = serve(FRIT_SOURCE_DIR "/models/fable.gguf", "--parallel 1 --threads 1");
    for (int truncates = 0; truncates < 2; truncates++) {
        int n = sprintf(body,
                        "{\"truncation\": \"%s\", \"max_output_tokens\": 1, \"input\": [{\"role\": \"user\", "
                        "\"content\": \"",
                        truncates ? "auto" : "disabled");
        memset(body + n, 'x', LENGTH);
        strcpy(body + n + LENGTH, "\"}, {\"role\": \"user\", \"content\": \"Hello.\"}]}");
        json_t *json = post_for(&fable, PATH, body, truncates ? 200 : 400);
        if (!truncates) expect_text_in(json, "error.code", "context_length_exceeded");
        if (truncates) assert_in_range(json_integer_value(value_in(json, "usage.input_tokens")), 1, 100);
        json_decref(json);
    }
    free(body);
    assert_int_equal(stop_serving(&fable, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_turns_stay_as_leave_room_for_the_answer),
        cmocka_unit_test(a_conversation_by_ids_goes_on_for_ever),
        cmocka_unit_test(the_last_turn_stays),
        cmocka_unit_test(turns_that_the_template_cannot_hold_are_left_out),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

// SPDX-License-Identifier: MIT
// Conversations whose calls are broken, in each protocol, and the names of fields in errors.
#include "support/events_posix.h"
#include "support/tool_model.h"

#include <string.h>

#define CHAT      "/v1/chat/completions"
#define RESPONSES "/v1/responses"
#define MESSAGES  "/v1/messages"
#define OLLAMA    "/api/chat"

static served s;

static int start_server(void **state)
{
    (void)state;
    const char *path = temp_path("history.gguf");
    tool_model(path);
    s = serve(path, "--parallel 2 --threads 1 --ctx 2048");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// Conversations with a call whose arguments are this text; %s is a JSON text.
static const struct {
    const char *path, *body;
} protocols[] = {
    {CHAT, "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
           "\"content\": null, \"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": "
           "\"add\", \"arguments\": %s}}]}, {\"role\": \"tool\", \"tool_call_id\": \"1\", \"content\": \"failed\"}]}"},
    {RESPONSES, "{\"max_output_tokens\": 1, \"input\": [{\"role\": \"user\", \"content\": \"x\"}, {\"type\": "
                "\"function_call\", \"call_id\": \"1\", \"name\": \"add\", \"arguments\": %s}, {\"type\": "
                "\"function_call_output\", \"call_id\": \"1\", \"output\": \"failed\"}]}"},
    {MESSAGES, "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
               "\"content\": [{\"type\": \"tool_use\", \"id\": \"1\", \"name\": \"add\", \"input\": %s}]}, {\"role\": "
               "\"user\", \"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"1\", \"content\": "
               "\"failed\"}]}]}"},
    {OLLAMA, "{\"stream\": false, \"options\": {\"num_predict\": 1}, \"messages\": [{\"role\": \"user\", \"content\": "
             "\"x\"}, {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": \"add\", "
             "\"arguments\": %s}}]}, {\"role\": \"tool\", \"content\": \"failed\"}]}"},
};

static void broken_arguments_do_not_end_a_conversation(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\"{\\\"a\\\": \\\"y\"",    "\"\"",       "\"[1]\"", "\"null\"", "\"5\"", "\"no JSON\"", "\"{\\\"a\"", "\"}\"",
        "\"{\\\"a\\\": \\u0000}\"", "{\"a\": 5}", "null"};
    for (size_t i = 0; i < FRIT_COUNT(protocols); i++) {
        for (size_t k = 0; k < FRIT_COUNT(texts); k++) {
            char body[1024];
            snprintf(body, sizeof body, protocols[i].body, texts[k]);
            json_decref(post_for(&s, protocols[i].path, body, 200));
        }
    }
}

// The model sees the text that it wrote.
static void broken_arguments_are_in_the_prompt(void **state)
{
    (void)state;
    char body[1024];
    snprintf(body, sizeof body, protocols[0].body, "\"{\\\"a\\\": \\\"cut off\"");
    json_t *json = post_for(&s, "/apply-template", body, 200);
    if (!strstr(text_in(json, "prompt"), "cut off")) fail_msg("%s", text_in(json, "prompt"));
    json_decref(json);
}

typedef struct mistake {
    const char *path, *body, *param, *said;   // said: beginning of the sentence; NULL: the field
} mistake;

#define TOOL_USE(name) "{\"type\": \"tool_use\", \"id\": \"1\", \"name\": \"" name "\", \"input\": {}}"
#define CALL(name)     "{\"type\": \"function_call\", \"call_id\": \"1\", \"arguments\": \"\", \"name\": \"" name "\"}"
#define SAYS(role)     "{\"role\": \"" role "\", \"content\": \"x\"}"

static const mistake mistakes[] = {
    {RESPONSES, "{\"input\": [" SAYS("user") ", " CALL("") "]}", "input[1]", NULL},
    {RESPONSES, "{\"instructions\": \"Be brief.\", \"input\": [" SAYS("user") ", " CALL("add") ", " CALL("") "]}",
     "input[2]", NULL},
    {RESPONSES, "{\"input\": [" SAYS("user") ", " SAYS("assistant") ", " CALL("") "]}", "input[2]", NULL},
    {RESPONSES,
     "{\"input\": [" SAYS("user") ", {\"type\": \"function_call\", \"call_id\": \"1\", \"name\": \"f\", "
                                  "\"arguments\": 5}]}",
     "input[1]", NULL},
    {RESPONSES, "{\"input\": \"x\", \"tools\": [{\"type\": \"function\", \"name\": \"f\", \"parameters\": 5}]}",
     "tools[0].parameters", NULL},
    {RESPONSES, "{\"input\": \"x\", \"tool_choice\": \"required\"}", "tool_choice", NULL},
    {RESPONSES,
     "{\"input\": \"x\", \"tools\": [{\"type\": \"function\", \"name\": \"f\", \"strict\": true, \"parameters\": "
     "{\"items\": {}, \"properties\": {\"a\": {\"uniqueItems\": true}}}}]}",
     "tools[0].parameters", NULL},
    {RESPONSES, "{\"input\": [{\"role\": \"king\", \"content\": \"x\"}]}", "input[0]", NULL},
    {CHAT, "{\"messages\": [" SAYS("king") "]}", "messages[0].role", NULL},
    {CHAT,
     "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": "
     "[]}}]}]}",
     "messages[0].tool_calls[0].function.arguments", NULL},
    {MESSAGES,
     "{\"messages\": [" SAYS("user") ", {\"role\": \"assistant\", \"content\": [{\"type\": \"text\", "
                                     "\"text\": \"a\"}, " TOOL_USE("") "]}]}",
     NULL, "messages[1].content[1]: "},
    {MESSAGES, "{\"messages\": [" SAYS("user") "], \"tools\": [{\"name\": \"f\", \"input_schema\": 5}]}", NULL,
     "tools[0].input_schema: "},
    {OLLAMA, "{\"messages\": [" SAYS("king") "]}", NULL, "messages[0].role: "},
    {OLLAMA, "{\"messages\": [" SAYS("user") "], \"options\": {\"seed\": 1.5}}", NULL, "options.seed: "},
    {OLLAMA, "{\"messages\": [" SAYS("user") "], \"options\": {\"top_k\": \"many\"}}", NULL, "options.top_k: "},
};

static void errors_name_the_fields_of_the_caller(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(mistakes); i++) {
        const mistake *m = &mistakes[i];
        char begin[128];
        json_t *json = post_for(&s, m->path, m->body, 400);
        const char *said = text_in(json, strcmp(m->path, OLLAMA) == 0 ? "error" : "error.message");
        if (m->param) expect_text_in(json, "error.param", m->param);
        snprintf(begin, sizeof begin, "%s", m->said ? m->said : m->param);
        if (strncmp(said, begin, strlen(begin)) != 0) fail_msg("'%s' does not begin with '%s'", said, begin);
        json_decref(json);
    }
}

static void what_is_too_long_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *path, *format, *param;
    } rows[] = {{RESPONSES, "{\"input\": \"%s\"}", "input"},
                {RESPONSES, "{\"truncation\": \"auto\", \"input\": \"%s\"}", "input"},
                {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}]}", "messages"}};
    enum { N_WORDS = 4000 };
    char *words = malloc(9 * N_WORDS + 1), *body = malloc(9 * N_WORDS + 200);
    for (int i = 0; i < N_WORDS; i++) memcpy(words + 9 * i, "question ", 10);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        snprintf(body, 9 * N_WORDS + 200, rows[i].format, words);
        json_t *json = post_for(&s, rows[i].path, body, 400);
        expect_text_in(json, "error.code", "context_length_exceeded");
        expect_text_in(json, "error.param", rows[i].param);
        json_decref(json);
    }
    free(words);
    free(body);
}

// If turns are left out, or a conversation is continued, positions in errors are still those of the request.
static void places_are_right_after_other_turns(void **state)
{
    (void)state;
    char body[2048];
    json_t *first =
        post_for(&s, RESPONSES, "{\"input\": [" SAYS("user") ", " SAYS("assistant") ", " SAYS("user") "]}", 200);
    snprintf(body, sizeof body, "{\"previous_response_id\": \"%s\", \"instructions\": \"a\", \"input\": [%s, %s, %s]}",
             text_in(first, "id"), SAYS("user"), CALL("add"), CALL(""));
    json_t *json = post_for(&s, RESPONSES, body, 400);
    expect_text_in(json, "error.param", "input[2]");
    json_decref(json);
    json_decref(first);
}

// Clients in languages whose numbers are all floats write integers as floats.
static void whole_numbers_may_be_written_as_floats(void **state)
{
    (void)state;
    static const struct {
        const char *path, *body;
        int status;
    } rows[] = {
        {CHAT, "{\"max_tokens\": 2.0, \"n\": 1.0, \"seed\": 7.0, \"top_k\": 40.0, \"messages\": [" SAYS("user") "]}",
         200},
        {CHAT, "{\"max_tokens\": 2e0, \"logprobs\": true, \"top_logprobs\": 1.0, \"messages\": [" SAYS("user") "]}",
         200},
        {"/v1/completions", "{\"prompt\": [5.0, 6.0], \"max_tokens\": 1.0, \"logprobs\": 1.0, \"best_of\": 1.0}", 200},
        {"/completion", "{\"prompt\": \"a\", \"n_predict\": 1.0, \"n_probs\": 1.0, \"id_slot\": -1.0}", 200},
        {RESPONSES, "{\"input\": \"a\", \"max_output_tokens\": 1.0, \"priority\": 1.0, \"top_logprobs\": 0.0}", 200},
        {MESSAGES, "{\"max_tokens\": 1.0, \"messages\": [" SAYS("user") "]}", 200},
        {OLLAMA,
         "{\"stream\": false, \"messages\": [" SAYS("user") "], \"options\": {\"num_predict\": 2.0, \"top_k\": 40.0, "
                                                            "\"seed\": 3.0, \"repeat_last_n\": 64.0}}",
         200},
        {"/tokenize", "{\"content\": \"a\"}", 200},
        {"/detokenize", "{\"tokens\": [5.0]}", 200},
        {"/v1/embeddings", "{\"input\": [5.0, 6.0], \"dimensions\": 4.0}", 200},
        {CHAT, "{\"max_tokens\": 2.5, \"messages\": [" SAYS("user") "]}", 400},
        {CHAT, "{\"max_tokens\": 1e300, \"messages\": [" SAYS("user") "]}", 400},
        {CHAT, "{\"n\": 0.0, \"messages\": [" SAYS("user") "]}", 400},
        {CHAT, "{\"seed\": 1.5, \"messages\": [" SAYS("user") "]}", 400},
        {OLLAMA, "{\"messages\": [" SAYS("user") "], \"options\": {\"num_predict\": 1.5}}", 400},
        {"/v1/completions", "{\"prompt\": [5.5], \"max_tokens\": 1}", 400},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        reply r = post(&s, rows[i].path, rows[i].body);
        if (r.status != rows[i].status) fail_msg("%s: %d %s", rows[i].body, r.status, r.body);
        reply_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_arguments_do_not_end_a_conversation),
        cmocka_unit_test(broken_arguments_are_in_the_prompt),
        cmocka_unit_test(errors_name_the_fields_of_the_caller),
        cmocka_unit_test(what_is_too_long_is_named),
        cmocka_unit_test(places_are_right_after_other_turns),
        cmocka_unit_test(whole_numbers_may_be_written_as_floats),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

// SPDX-License-Identifier: MIT
// Bad requests in OpenAI's formats: each is refused with its field, its code and a sentence.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <unistd.h>

#define CHAT  "/v1/chat/completions"
#define TEXT  "/v1/completions"
#define HELLO "\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}], \"temperature\": 0"

// ChatML, with a special sentence for one kind of message.
static const char chat_template[] = "{% for m in messages %}{% if m.content == 'forbidden' %}{{ raise_exception('That "
                                    "is not talked about.') }}{% endif %}"
                                    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                                    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static served s;

static int start_server(void **state)
{
    (void)state;
    const tiny_options options = {.n_ctx = 512, .chat_template = chat_template};
    s = serve(tiny_model("tiny.gguf", &options), "--parallel 8 --max-queue 100 --threads 1 --cors http://page.example");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static const char *text_at(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    if (!text) fail_msg("no text '%s'", key);
    return text;
}

typedef struct bad {
    const char *path, *body;
    int status;
    const char *param, *code, *part;   // NULL: null, null, anything
} bad;

static void check_error(const reply *r, const bad *expected)
{
    json_t *json = reply_json(r);
    const json_t *error = json_object_get(json, "error");
    const char *param = json_string_value(json_object_get(error, "param"));
    const char *code = json_string_value(json_object_get(error, "code"));
    bool good = r->status == expected->status && json_object_get(error, "param") && json_object_get(error, "code") &&
                strcmp(text_at(error, "type"), r->status < 500 ? "invalid_request_error" : "server_error") == 0 &&
                (!expected->part || strstr(text_at(error, "message"), expected->part)) &&
                strcmp(param ? param : "", expected->param ? expected->param : "") == 0 &&
                strcmp(code ? code : "", expected->code ? expected->code : "") == 0;
    if (!good) fail_msg("%s %.300s: %d %s", expected->path, expected->body, r->status, r->body);
    json_decref(json);
}

// clang-format off
static const bad bads[] = {
    {CHAT, "", 400, NULL, NULL, "empty"},
    {CHAT, "{\"messages\": [", 400, NULL, "invalid_json", "column 14"},
    {CHAT, "[1]", 400, NULL, NULL, "a list"},
    {CHAT, "{\"seed\": 1, \"seed\": 2}", 400, NULL, "invalid_json", "duplicate"},
    {CHAT, "{\"temperature\": 1e999}", 400, NULL, "invalid_json", "overflow"},
    {CHAT, "{\"seed\": 99999999999999999999}", 400, "seed", "invalid_value", "2^64"},
    {CHAT, "\xef\xbb\xbf{\"seed\": 1.5}", 400, "seed", "invalid_type", NULL},   // a byte order mark
    {CHAT, "{\"seed\": NaN}", 400, NULL, "invalid_json", NULL},
    {CHAT, "{\"stop\": \"\\ud800\"}", 400, NULL, "invalid_json", NULL},
    {CHAT, "{\"stop\": \"\\u0000\"}", 400, "stop", "invalid_value", "zero"},
    {CHAT, "{\"stop\": \"\xff\"}", 400, NULL, "invalid_json", NULL},
    {CHAT, "{}", 400, "messages", "missing_required_parameter", NULL},
    {CHAT, "{\"messages\": []}", 400, "messages", "invalid_value", "empty"},
    {CHAT, "{\"messages\": {}}", 400, "messages", "invalid_type", "list"},
    {CHAT, "{\"messages\": [5]}", 400, "messages[0].role", "invalid_type", NULL},
    {CHAT, "{\"messages\": [{\"role\": \"king\", \"content\": \"\"}]}", 400, "messages[0].role", "invalid_value", "'king'"},
    {CHAT, "{\"messages\": [{\"role\": \"function\", \"content\": \"\"}]}", 400, "messages[0].role", "invalid_value", NULL},
    {CHAT, "{\"messages\": [{\"role\": \"user\"}]}", 400, "messages[0].content", "invalid_value", "missing"},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": 5}]}", 400, "messages[0].content", "invalid_value", NULL},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}", 400, "messages[0].content[0]", "invalid_type", "data URI"},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": [5]}]}", 400, "messages[0].content", "invalid_value", NULL},
    {CHAT, "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{}]}]}", 400, "messages[0].tool_calls[0]", "invalid_value", "function"},
    {CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"forbidden\"}]}", 400, "messages", NULL, "That is not talked about."},
    {CHAT, "{" HELLO ", \"model\": \"gpt-4\"}", 404, "model", "model_not_found", "gpt-4"},
    {CHAT, "{" HELLO ", \"model\": 4}", 400, "model", "invalid_type", NULL},
    {CHAT, "{" HELLO ", \"stream\": \"yes\"}", 400, "stream", "invalid_type", NULL},
    {CHAT, "{" HELLO ", \"stream_options\": true}", 400, "stream_options", "invalid_type", NULL},
    {CHAT, "{" HELLO ", \"stream_options\": {\"include_usage\": 1}}", 400, "stream_options.include_usage", "invalid_type", NULL},
    {CHAT, "{" HELLO ", \"max_tokens\": -2}", 400, "max_tokens", "invalid_value", NULL},
    {CHAT, "{" HELLO ", \"max_tokens\": 2147483648}", 400, "max_tokens", "invalid_value", NULL},
    {CHAT, "{" HELLO ", \"max_tokens\": 1.5}", 400, "max_tokens", "invalid_type", "a number"},
    {CHAT, "{" HELLO ", \"max_completion_tokens\": \"9\"}", 400, "max_completion_tokens", "invalid_type", NULL},
    {CHAT, "{\"temperature\": -0.1}", 400, "temperature", "invalid_value", NULL},
    {CHAT, "{\"temperature\": \"hot\"}", 400, "temperature", "invalid_type", NULL},
    {CHAT, "{\"top_p\": 1.01}", 400, "top_p", "invalid_value", NULL},
    {CHAT, "{\"top_k\": -2}", 400, "top_k", "invalid_value", NULL},
    {CHAT, "{\"min_p\": true}", 400, "min_p", "invalid_type", NULL},
    {CHAT, "{\"top_n_sigma\": -1}", 400, "top_n_sigma", "invalid_value", NULL},
    {CHAT, "{" HELLO ", \"samplers\": [\"top_k\", \"bottom_k\"]}", 400, "samplers", "invalid_value", "'bottom_k' is not the name of a stage; each"},
    {CHAT, "{" HELLO ", \"samplers\": \"kq\"}", 400, "samplers", "invalid_value", "'q' is not the letter of a stage"},
    {CHAT, "{\"samplers\": [\"top_k\", 5]}", 400, "samplers", "invalid_type", NULL},
    {CHAT, "{\"samplers\": 5}", 400, "samplers", "invalid_type", NULL},
    {CHAT, "{\"mirostat\": 3}", 400, "mirostat", "invalid_value", "0 to 2"},
    {CHAT, "{\"dry_sequence_breakers\": \"a\"}", 400, "dry_sequence_breakers", "invalid_type", NULL},
    {CHAT, "{" HELLO ", \"dry_multiplier\": 1, \"dry_sequence_breakers\": [\"\"]}", 400, "dry_sequence_breakers", "invalid_value", "an empty text"},
    {CHAT, "{\"penalize_nl\": 1}", 400, "penalize_nl", "invalid_type", NULL},
    {CHAT, "{\"frequency_penalty\": 1000}", 400, "frequency_penalty", "invalid_value", NULL},
    {CHAT, "{\"repeat_last_n\": -2}", 400, "repeat_last_n", "invalid_value", NULL},
    {CHAT, "{\"seed\": 1.5}", 400, "seed", "invalid_type", NULL},
    {CHAT, "{\"stop\": \"\"}", 400, "stop", "invalid_value", "empty"},
    {CHAT, "{\"stop\": [1]}", 400, "stop", "invalid_type", NULL},
    {CHAT, "{\"logit_bias\": [5]}", 400, "logit_bias", "invalid_type", NULL},
    {CHAT, "{\"logit_bias\": {\"a\": 1}}", 400, "logit_bias", "invalid_value", "'a'"},
    {CHAT, "{\"logit_bias\": {\"-1\": 1}}", 400, "logit_bias", "invalid_value", NULL},
    {CHAT, "{\"logit_bias\": {\"1\": 101}}", 400, "logit_bias", "invalid_value", NULL},
    {CHAT, "{\"logit_bias\": {\"1\": null}}", 400, "logit_bias", "invalid_value", NULL},
    {CHAT, "{" HELLO ", \"logit_bias\": {\"64\": 1}}", 400, "logit_bias", "invalid_value", "0 to 63"},
    {CHAT, "{\"n\": 0}", 400, "n", "invalid_value", NULL},
    {CHAT, "{\"n\": 129}", 400, "n", "invalid_value", NULL},
    {TEXT, "{\"n\": \"2\"}", 400, "n", "invalid_type", NULL},
    {CHAT, "{\"logprobs\": 5}", 400, "logprobs", "invalid_type", NULL},
    {CHAT, "{\"top_logprobs\": 21}", 400, "top_logprobs", "invalid_value", NULL},
    {CHAT, "{\"top_logprobs\": -1}", 400, "top_logprobs", "invalid_value", NULL},
    {CHAT, "{" HELLO ", \"top_logprobs\": 2}", 400, "top_logprobs", "invalid_value", "expected logprobs true"},
    {CHAT, "{" HELLO ", \"logprobs\": false, \"top_logprobs\": 2}", 400, "top_logprobs", "invalid_value", "expected logprobs true"},
    {CHAT, "{" HELLO ", \"use_beam_search\": true}", 400, "use_beam_search", "unsupported_parameter", "frit run --beams"},
    {TEXT, "{\"logprobs\": 21}", 400, "logprobs", "invalid_value", NULL},
    {TEXT, "{\"logprobs\": \"5\"}", 400, "logprobs", "invalid_type", NULL},
    {CHAT, "{\"functions\": [{\"name\": \"f\"}]}", 400, "functions", "unsupported_parameter", NULL},
    {CHAT, "{\"response_format\": {\"type\": \"poem\"}}", 400, "response_format", "unsupported_parameter", "json_schema or structural_tag"},
    {CHAT, "{" HELLO ", \"response_format\": {\"type\": \"structural_tag\"}}", 400, "response_format", "invalid_value", "neither structures nor"},
    {CHAT, "{" HELLO ", \"response_format\": {\"type\": \"structural_tag\", \"structures\": "
     "[{\"begin\": \"<a>\", \"schema\": {}, \"end\": \"\"}], \"triggers\": []}}",
     400, "response_format", "invalid_value", "triggers is empty"},
    {CHAT, "{" HELLO ", \"response_format\": {\"type\": \"structural_tag\", \"structures\": "
     "[{\"begin\": \"<a>\", \"schema\": {}, \"end\": \"\"}], \"triggers\": [\"<b\"]}}",
     400, "response_format", "invalid_value", "begin with one of the triggers"},
    {CHAT, "{\"response_format\": \"json\"}", 400, "response_format", "invalid_type", NULL},
    {CHAT, "{\"response_format\": {\"type\": \"json_schema\"}}", 400, "response_format", "missing_required_parameter", "schema"},
    {CHAT, "{\"json_schema\": [1]}", 400, "json_schema", "invalid_type", NULL},
    {CHAT, "{\"regex\": 5}", 400, "regex", "invalid_type", NULL},
    {CHAT, "{\"regex\": \"a\", \"grammar\": \"root ::= [a]\"}", 400, "regex", "invalid_value", "already"},
    {TEXT, "{\"prompt\": \"a\", \"json_schema\": {\"type\": \"array\", \"uniqueItems\": true}}", 400, "json_schema", "unsupported_value", "uniqueItems"},
    {TEXT, "{\"prompt\": \"a\", \"regex\": \"(a\"}", 400, "regex", "invalid_value", "closing )"},
    {TEXT, "{\"prompt\": \"a\", \"grammar\": \"root ::= root\"}", 400, "grammar", "invalid_value", "no text"},
    {TEXT, "{\"prompt\": \"a\", \"heal\": true, \"regex\": \"a\"}", 400, "regex", "unsupported_parameter", "heal"},
    {TEXT, "{}", 400, "prompt", "missing_required_parameter", NULL},
    {TEXT, "{\"prompt\": 5}", 400, "prompt", "invalid_type", NULL},
    {TEXT, "{\"prompt\": []}", 400, "prompt", "invalid_value", "empty"},
    {TEXT, "{\"prompt\": [-1]}", 400, "prompt", "invalid_value", NULL},
    {TEXT, "{\"prompt\": [4294967296]}", 400, "prompt", "invalid_value", NULL},
    {TEXT, "{\"prompt\": [64]}", 400, "prompt", "invalid_value", "0 to 63"},
    {TEXT, "{\"prompt\": [5, \"a\"]}", 400, "prompt", "invalid_value", NULL},
    {TEXT, "{\"prompt\": \"a\", \"echo\": 1}", 400, "echo", "invalid_type", NULL},
    {TEXT, "{\"prompt\": \"a\", \"echo\": true, \"heal\": true}", 400, "echo", "unsupported_parameter", "healed"},
    {"/v1/rerank", "{\"query\": \"a\", \"documents\": [\"b\"]}", 400, "model", "unsupported_model", "tiny: has no classification head"},
    {TEXT, "{\"prompt\": \"a\", \"suffix\": \"b\"}", 400, "model", "unsupported_model", NULL},
    {"/tokenize", "{}", 400, "content", "missing_required_parameter", NULL},
    {"/tokenize", "{\"content\": 5}", 400, "content", "invalid_type", NULL},
    {"/tokenize", "{\"content\": \"a\", \"model\": \"gpt-4\"}", 404, "model", "model_not_found", "gpt-4"},
    {"/detokenize", "{}", 400, "tokens", "missing_required_parameter", NULL},
    {"/detokenize", "{\"tokens\": [64]}", 400, "tokens", NULL, "0 to 63"},
    {"/detokenize", "{\"tokens\": \"a\"}", 400, "tokens", "invalid_type", NULL},
    {"/apply-template", "{}", 400, "messages", "missing_required_parameter", NULL},
    {"/v1/models", "{}", 405, NULL, "method_not_allowed", "GET"},
    {"/v2/models", "{}", 404, NULL, "not_found", "/v2/models"},
    {"/nothing", "", 404, NULL, "not_found", NULL},
    {"/v1/..%2f..%2fetc/passwd", "", 404, NULL, "not_found", NULL},
};
// clang-format on

static void every_bad_request_is_refused_by_name(void **state)
{
    (void)state;
    int fd = connect_to(&s);   // one connection: each refusal leaves it usable
    for (size_t i = 0; i < FRIT_COUNT(bads); i++) {
        char *text = post_text(bads[i].path, "", bads[i].body);
        send_text(fd, text);
        reply r = read_reply(fd);
        if (r.status == 0) fail_msg("%s %s: the connection ended", bads[i].path, bads[i].body);
        check_error(&r, &bads[i]);
        reply_free(&r);
        free(text);
    }
    close(fd);
    assert_int_equal(health(&s, "running"), 0);
}

static void long_lists_and_deep_nesting_are_refused(void **state)
{
    (void)state;
    size_t n = 400000;
    char *body = malloc(2 * n + 64);
    memset(body, '[', n);
    body[n] = 0;
    bad deep = {CHAT, body, 400, NULL, "invalid_json", "depth"};
    reply r = post(&s, CHAT, body);
    check_error(&r, &deep);
    reply_free(&r);
    strcpy(body, "{\"stop\": [");
    for (size_t i = 0; i < 1000; i++) strcat(body, i ? ",\"a\"" : "\"a\"");
    strcat(body, "]}");
    bad stops = {CHAT, body, 400, "stop", "invalid_value", "1000"};
    r = post(&s, CHAT, body);
    check_error(&r, &stops);
    reply_free(&r);
    free(body);
}

static void a_prompt_longer_than_the_context_is_refused(void **state)
{
    (void)state;
    char body[8192] = "{\"max_tokens\": 1, \"prompt\": [5";
    for (int i = 1; i < 511; i++) strcat(body, ",5");
    size_t n = strlen(body);
    strcpy(body + n, "]}");
    reply r = post(&s, TEXT, body);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    strcpy(body + n, ",5]}");
    bad too_long = {TEXT, body, 400, "prompt", "context_length_exceeded", "maximum context length is 512"};
    r = post(&s, TEXT, body);
    check_error(&r, &too_long);
    reply_free(&r);
    strcpy(body + n, ",5], \"stream\": true}");
    r = post(&s, TEXT, body);
    check_error(&r, &too_long);
    reply_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bad_request_is_refused_by_name),
        cmocka_unit_test(long_lists_and_deep_nesting_are_refused),
        cmocka_unit_test(a_prompt_longer_than_the_context_is_refused),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

// SPDX-License-Identifier: MIT
// The server's answers in OpenAI's formats. The model is tiny and random; tests compare only its greedy text.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <pthread.h>
#include <unistd.h>

#define CHAT   "/v1/chat/completions"
#define TEXT   "/v1/completions"
#define HELLO  "\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}], \"temperature\": 0"
#define NO_END "\"logit_bias\": {\"2\": -100}"

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

static const json_t *choice_of(const json_t *json)
{
    const json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    assert_non_null(choice);
    assert_int_equal(json_integer_value(json_object_get(choice, "index")), 0);
    assert_non_null(json_object_get(choice, "logprobs"));
    return choice;
}

static void check_usage(const json_t *json, int n_answer)
{
    const json_t *usage = json_object_get(json, "usage");
    json_int_t prompt = json_integer_value(json_object_get(usage, "prompt_tokens"));
    assert_true(prompt > 0);
    assert_int_equal(json_integer_value(json_object_get(usage, "completion_tokens")), n_answer);
    assert_int_equal(json_integer_value(json_object_get(usage, "total_tokens")), prompt + n_answer);
}

// Returns the text of an answer, malloc'd.
static char *answer_text(const char *path, const char *body)
{
    reply r = post(&s, path, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    const json_t *choice = choice_of(json), *message = json_object_get(choice, "message");
    char *text = strdup(text_at(message ? message : choice, message ? "content" : "text"));
    json_decref(json);
    reply_free(&r);
    return text;
}

// ---------------------------------------------------------------------------------------- shapes

static void a_chat_answer_has_openais_shape(void **state)
{
    (void)state;
    reply r = post(&s, CHAT, "{" HELLO ", " NO_END ", \"max_tokens\": 7}");
    assert_int_equal(r.status, 200);
    assert_string_equal(reply_header(&r, "Content-Type"), "application/json");
    json_t *json = reply_json(&r);
    assert_memory_equal(text_at(json, "id"), "chatcmpl-", 9);
    assert_string_equal(text_at(json, "object"), "chat.completion");
    assert_string_equal(text_at(json, "model"), "tiny");
    assert_true(json_integer_value(json_object_get(json, "created")) > 1700000000);
    const json_t *choice = choice_of(json), *message = json_object_get(choice, "message");
    assert_string_equal(text_at(choice, "finish_reason"), "length");
    assert_string_equal(text_at(message, "role"), "assistant");
    assert_true(strlen(text_at(message, "content")) > 0);
    assert_true(json_is_null(json_object_get(message, "refusal")));
    check_usage(json, 7);
    const json_t *timings = json_object_get(json, "timings");   // as in llama.cpp's server
    assert_int_equal(json_integer_value(json_object_get(timings, "predicted_n")), 7);
    assert_true(json_is_real(json_object_get(timings, "predicted_per_second")));
    json_decref(json);
    reply_free(&r);
}

static void a_completion_has_openais_shape_and_sixteen_tokens(void **state)
{
    (void)state;
    reply r = post(&s, TEXT, "{\"prompt\": \"abc\", \"temperature\": 0, " NO_END "}");
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    assert_memory_equal(text_at(json, "id"), "cmpl-", 5);
    assert_string_equal(text_at(json, "object"), "text_completion");
    assert_string_equal(text_at(choice_of(json), "finish_reason"), "length");
    assert_true(strlen(text_at(choice_of(json), "text")) > 0);
    check_usage(json, 16);
    json_decref(json);
    reply_free(&r);
}

typedef struct stream {   // the combined events of a stream
    char text[16384], id[64], finish[16];
    int n_events, n_roles, n_usage;
    bool done;
} stream;

static void take_event(stream *out, const json_t *json, bool chat)
{
    assert_string_equal(text_at(json, "object"), chat ? "chat.completion.chunk" : "text_completion");
    if (out->n_events++ == 0) snprintf(out->id, sizeof out->id, "%s", text_at(json, "id"));
    assert_string_equal(text_at(json, "id"), out->id);
    if (json_array_size(json_object_get(json, "choices")) == 0) {
        assert_string_not_equal(out->finish, "");
        out->n_usage += json_is_object(json_object_get(json, "usage"));
        return;
    }
    assert_string_equal(out->finish, "");
    const json_t *choice = choice_of(json), *delta = chat ? json_object_get(choice, "delta") : choice;
    const char *text = json_string_value(json_object_get(delta, chat ? "content" : "text"));
    const char *finish = json_string_value(json_object_get(choice, "finish_reason"));
    if (json_object_get(delta, "role")) {
        assert_int_equal(out->n_events, 1);
        out->n_roles++;
    }
    if (text) strncat(out->text, text, sizeof out->text - strlen(out->text) - 1);
    if (finish) snprintf(out->finish, sizeof out->finish, "%s", finish);
}

static stream *read_stream(const char *path, const char *body)
{
    stream *out = calloc(1, sizeof *out);
    reply r = post(&s, path, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    assert_true(r.complete);
    assert_string_equal(reply_header(&r, "Content-Type"), "text/event-stream");
    assert_string_equal(reply_header(&r, "Cache-Control"), "no-cache");
    for (const char *at = r.body; *at;) {
        const char *end = strstr(at, "\n\n");
        assert_non_null(end);
        assert_memory_equal(at, "data: ", 6);
        assert_false(out->done);
        json_t *json = json_loadb(at + 6, (size_t)(end - at) - 6, 0, NULL);
        if (json)
            take_event(out, json, strcmp(path, CHAT) == 0);
        else
            out->done = strncmp(at + 6, "[DONE]", 6) == 0;
        json_decref(json);
        at = end + 2;
    }
    assert_true(out->done);
    reply_free(&r);
    return out;
}

static void a_stream_is_the_answer_in_pieces(void **state)
{
    (void)state;
    static const char *const paths[] = {CHAT, TEXT};
    static const char *const heads[] = {HELLO, "\"prompt\": \"hello\", \"temperature\": 0"};
    for (int i = 0; i < 2; i++) {
        char body[1024];
        snprintf(body, sizeof body, "{%s, " NO_END ", \"max_tokens\": 40}", heads[i]);
        char *whole = answer_text(paths[i], body);
        snprintf(body, sizeof body, "{%s, " NO_END ", \"max_tokens\": 40, \"stream\": true, \"stream_options\": %s}",
                 heads[i], i == 0 ? "{\"include_usage\": true}" : "null");
        stream *pieces = read_stream(paths[i], body);
        assert_string_equal(pieces->text, whole);
        assert_string_equal(pieces->finish, "length");
        assert_int_equal(pieces->n_roles, i == 0);
        assert_int_equal(pieces->n_usage, i == 0);
        free(pieces);
        free(whole);
    }
}

static void stop_strings_end_the_answer_before_them(void **state)
{
    (void)state;
    char *whole = answer_text(TEXT, "{\"prompt\": \"stop\", \"temperature\": 0, \"max_tokens\": 60, " NO_END "}");
    size_t n = strlen(whole);
    assert_true(n > 20);
    // Stop strings of every length, from the middle, so that some span tokens.
    for (size_t length = 1; length <= 8; length++) {
        char stop[16] = {0}, body[512];
        memcpy(stop, whole + n / 2, length);
        size_t at = (size_t)(strstr(whole, stop) - whole);
        snprintf(body, sizeof body,
                 "{\"prompt\": \"stop\", \"temperature\": 0, \"max_tokens\": 60, " NO_END
                 ", \"stop\": [\"unseen\", \"%s\"], \"stream\": true}",
                 stop);
        stream *cut = read_stream(TEXT, body);
        assert_int_equal(strlen(cut->text), at);
        assert_memory_equal(cut->text, whole, at);
        assert_string_equal(cut->finish, "stop");
        free(cut);
        snprintf(body, sizeof body,
                 "{\"prompt\": \"stop\", \"temperature\": 0, \"max_tokens\": 60, " NO_END ", \"stop\": \"%s\"}", stop);
        char *text = answer_text(TEXT, body);
        assert_int_equal(strlen(text), at);
        free(text);
    }
    free(whole);
}

// Greedy: each token is the likeliest, and the tokens' bytes are the text.
static size_t check_chat_odds(const json_t *choice, char *text)
{
    const json_t *content = json_object_get(json_object_get(choice, "logprobs"), "content");
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *pick = json_array_get(content, i), *top = json_object_get(pick, "top_logprobs");
        assert_int_equal(json_array_size(top), 3);
        double last = json_real_value(json_object_get(pick, "logprob"));
        assert_true(last <= 0);
        assert_string_equal(text_at(json_array_get(top, 0), "token"), text_at(pick, "token"));
        for (size_t k = 0; k < 3; k++) {
            double now = json_real_value(json_object_get(json_array_get(top, k), "logprob"));
            assert_true(now <= last);
            last = now;
        }
        const json_t *bytes = json_object_get(pick, "bytes");
        size_t n = strlen(text);
        for (size_t b = 0; b < json_array_size(bytes); b++)
            text[n + b] = (char)json_integer_value(json_array_get(bytes, b));
        text[n + json_array_size(bytes)] = 0;
    }
    return json_array_size(content);
}

static void log_probabilities_go_with_their_tokens(void **state)
{
    (void)state;
    const char *body = "{" HELLO ", " NO_END ", \"max_tokens\": 30, \"logprobs\": true, \"top_logprobs\": 3%s}";
    char text[2][4096] = {"", ""}, asked[1024];
    snprintf(asked, sizeof asked, body, "");
    reply r = post(&s, CHAT, asked);
    json_t *json = reply_json(&r);
    assert_int_equal(check_chat_odds(choice_of(json), text[0]), 30);
    assert_string_equal(text_at(json_object_get(choice_of(json), "message"), "content"), text[0]);
    json_decref(json);
    reply_free(&r);
    // A stop string holds back its own tokens; the stream sends the others with their text.
    snprintf(asked, sizeof asked, body, ", \"stream\": true, \"stop\": \"@\"");
    memcpy(strchr(asked, '@'), text[0] + 20, 1);
    r = post(&s, CHAT, asked);
    for (char *at = r.body, *end; *at && (end = strstr(at, "\n\n")); at = end + 2) {
        json = json_loadb(at + 6, (size_t)(end - at) - 6, 0, NULL);
        if (json) check_chat_odds(choice_of(json), text[1]);
        json_decref(json);
    }
    assert_true(strlen(text[1]) > 0 || text[0][0] == text[0][20]);
    assert_memory_equal(text[0], text[1], strlen(text[1]));
    reply_free(&r);
}

static void completions_have_four_lists_of_log_probabilities(void **state)
{
    (void)state;
    reply r = post(&s, TEXT, "{\"prompt\": \"odds\", \"temperature\": 0, \"logprobs\": 2, " NO_END "}");
    json_t *json = reply_json(&r);
    const json_t *odds = json_object_get(choice_of(json), "logprobs");
    const json_t *tokens = json_object_get(odds, "tokens"), *offsets = json_object_get(odds, "text_offset");
    const char *text = text_at(choice_of(json), "text");
    assert_int_equal(json_array_size(tokens), 16);
    assert_int_equal(json_array_size(json_object_get(odds, "token_logprobs")), 16);
    for (size_t i = 0; i < 16; i++) {
        const char *token = json_string_value(json_array_get(tokens, i));
        const json_t *top = json_array_get(json_object_get(odds, "top_logprobs"), i);
        assert_int_equal(json_object_size(top), 2);
        assert_non_null(json_object_get(top, token));
        size_t at = (size_t)json_integer_value(json_array_get(offsets, i));
        assert_true(at <= strlen(text));
        if (strncmp(token, "bytes:", 6) != 0 && token[0] != '<') assert_memory_equal(text + at, token, strlen(token));
    }
    json_decref(json);
    reply_free(&r);
}

// Completes these ids with a bias that forces the next token: returns its raw log-probability.
static json_t *ask_forced(const int *ids, size_t n, int forced)
{
    char body[1024], list[512] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", i ? ", " : "", ids[i]);
    snprintf(
        body, sizeof body,
        "{\"prompt\": [%s], \"temperature\": 0, \"max_tokens\": 1, \"logprobs\": 2, \"logit_bias\": {\"%d\": 100}}",
        list, forced);
    reply r = post(&s, TEXT, body);
    json_t *json = reply_json(&r), *lists = json_incref(json_object_get(choice_of(json), "logprobs"));
    json_decref(json);
    reply_free(&r);
    return lists;
}

// Each token of the prompt has the log-probability that it has as an answer to the tokens before it.
static void an_echoed_prompt_has_its_log_probabilities(void **state)
{
    (void)state;
    enum { PROMPT = 9, ANSWER = 4 };
    static const int ids[PROMPT] = {1, 15, 26, 17, 38, 9, 9, 40, 51};
    const char *body = "{\"prompt\": [1, 15, 26, 17, 38, 9, 9, 40, 51], \"temperature\": 0, \"max_tokens\": 4, "
                       "\"logprobs\": 2, \"echo\": true, \"stream\": %s, " NO_END "}";
    char asked[1024];
    snprintf(asked, sizeof asked, body, "false");
    reply r = post(&s, TEXT, asked);
    json_t *json = reply_json(&r);
    const json_t *lists = json_object_get(choice_of(json), "logprobs");
    const json_t *tokens = json_object_get(lists, "tokens"), *offsets = json_object_get(lists, "text_offset");
    const json_t *logprobs = json_object_get(lists, "token_logprobs"), *tops = json_object_get(lists, "top_logprobs");
    const char *text = text_at(choice_of(json), "text");
    assert_int_equal(json_array_size(tokens), PROMPT + ANSWER);
    assert_int_equal(json_array_size(offsets), PROMPT + ANSWER);
    assert_true(json_is_null(json_array_get(logprobs, 0)) && json_is_null(json_array_get(tops, 0)));
    for (size_t i = 1; i < PROMPT; i++) {
        json_t *forced = ask_forced(ids, i, ids[i]);
        assert_true(json_equal(json_array_get(json_object_get(forced, "tokens"), 0), json_array_get(tokens, i)));
        assert_true(
            json_equal(json_array_get(json_object_get(forced, "token_logprobs"), 0), json_array_get(logprobs, i)));
        assert_true(json_equal(json_array_get(json_object_get(forced, "top_logprobs"), 0), json_array_get(tops, i)));
        assert_true(json_integer_value(json_array_get(offsets, i)) >=
                    json_integer_value(json_array_get(offsets, i - 1)));
        json_decref(forced);
    }
    for (size_t i = PROMPT; i < PROMPT + ANSWER; i++) {
        const char *token = json_string_value(json_array_get(tokens, i));
        const size_t at = (size_t)json_integer_value(json_array_get(offsets, i));
        assert_true(at <= strlen(text));
        if (strncmp(token, "bytes:", 6) != 0 && token[0] != '<') assert_memory_equal(text + at, token, strlen(token));
    }
    // Without an answer, and as a stream.
    char *alone = answer_text(TEXT, "{\"prompt\": \"echo\", \"max_tokens\": 0, \"logprobs\": 1, \"echo\": true}");
    assert_string_equal(alone, "echo");
    snprintf(asked, sizeof asked, body, "true");
    stream *streamed = read_stream(TEXT, asked);
    assert_string_equal(streamed->text, text);
    json_decref(json);
    reply_free(&r);
    free(streamed);
    free(alone);
}

static void a_healed_completion_goes_on_within_the_last_word(void **state)
{
    (void)state;
    static const char *const cuts[] = {"Once upon a ti", "Once upon a t", "Once upo"};
    const char *whole = "Once upon a time, there";
    served stories = serve(shared_path("models/stories260k-f32.gguf"), "--parallel 1 --threads 1");
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char body[256];
        size_t n = strlen(cuts[i]);
        snprintf(body, sizeof body, "{\"prompt\": \"%s\", \"temperature\": 0, \"max_tokens\": 12, \"heal\": true}",
                 cuts[i]);
        reply r = post(&stories, TEXT, body);
        json_t *json = reply_json(&r);
        const char *text = text_at(choice_of(json), "text");
        if (strncmp(text, whole + n, strlen(whole) - n) != 0) fail_msg("'%s' goes on with '%s'", cuts[i], text);
        json_decref(json);
        reply_free(&r);
    }
    stop_serving(&stories, SIGTERM);
}

static void the_same_seed_gives_the_same_text(void **state)
{
    (void)state;
    const char *body = "{\"prompt\": \"a\", \"temperature\": 5, \"top_k\": 0, \"max_tokens\": 30, \"seed\": 7}";
    char *a = answer_text(TEXT, body), *b = answer_text(TEXT, body);
    assert_string_equal(a, b);
    const char *free_body = "{\"prompt\": \"a\", \"temperature\": 5, \"top_k\": 0, \"max_tokens\": 30}";
    char *c = answer_text(TEXT, free_body), *d = answer_text(TEXT, free_body);
    assert_string_not_equal(c, d);
    free(a), free(b), free(c), free(d);
}

static void token_prompts_and_every_field_are_taken(void **state)
{
    (void)state;
    char *by_ids = answer_text(TEXT, "{\"prompt\": [1, 5, 6, 7], \"temperature\": 0}");
    free(by_ids);
    char *all = answer_text(
        CHAT,
        "{\"model\": \"default\", \"stream\": false, \"stream_options\": {}, \"seed\": -1, \"stop\": null, "
        "\"logit_bias\": {\"5\": 1.5, \"6\": -100}, \"temperature\": 1, \"top_k\": 20, \"top_p\": 0.9, \"min_p\": 0.1, "
        "\"top_n_sigma\": 2, \"repeat_penalty\": 1.1, \"repetition_penalty\": 1.1, \"frequency_penalty\": 0.5, "
        "\"presence_penalty\": -0.5, \"repeat_last_n\": -1, \"n\": 1, \"typical_p\": 0.9, \"tfs_z\": 0.9, "
        "\"xtc_probability\": 0.5, \"xtc_threshold\": 0.2, \"dynatemp_range\": 0.5, \"dynatemp_exponent\": 1.5, "
        "\"dry_multiplier\": 0.8, \"dry_base\": 1.5, \"dry_allowed_length\": 3, \"dry_penalty_last_n\": -1, "
        "\"dry_sequence_breakers\": [\"a\", \"\\n\"], \"mirostat\": 0, \"mirostat_tau\": 4, \"mirostat_eta\": 0.2, "
        "\"adaptive_target\": -1, \"adaptive_decay\": 0.5, \"penalize_nl\": false, "
        "\"samplers\": [\"dry\", \"top_k\", \"typ_p\", \"temperature\"], \"response_format\": {\"type\": \"text\"}, "
        "\"max_tokens\": 3, \"max_completion_tokens\": 4, \"logprobs\": false, \"tools\": [], "
        "\"tool_choice\": \"auto\", \"store\": true, \"metadata\": {\"a\": \"b\"}, \"user\": \"me\", \"unknown\": 5, "
        "\"messages\": [{\"role\": \"developer\", \"content\": \"be brief\"}, {\"role\": \"user\", \"name\": \"x\", "
        "\"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}]}, "
        "{\"role\": \"assistant\", \"content\": null}, {\"role\": \"user\", \"content\": \"c\"}]}");
    free(all);
}

static void the_answer_ends_with_the_context(void **state)
{
    (void)state;
    reply r = post(&s, TEXT, "{\"prompt\": [5, 6, 7], \"temperature\": 0, \"max_tokens\": -1, " NO_END "}");
    json_t *json = reply_json(&r);
    assert_string_equal(text_at(choice_of(json), "finish_reason"), "length");
    check_usage(json, 512 - 3);
    json_decref(json);
    reply_free(&r);
    r = post(&s, TEXT, "{\"prompt\": [5, 6, 7], \"max_tokens\": 0}");
    json = reply_json(&r);
    assert_string_equal(text_at(choice_of(json), "text"), "");
    check_usage(json, 0);
    json_decref(json);
    reply_free(&r);
}

static void the_next_turn_runs_only_what_is_new(void **state)
{
    (void)state;
    const char *body = "{\"prompt\": \"only what is new must run again\", \"temperature\": 0, \"max_tokens\": 4}";
    char *first = answer_text(TEXT, body);
    reply r = post(&s, TEXT, body);
    json_t *json = reply_json(&r);
    const json_t *usage = json_object_get(json, "usage");
    json_int_t cached =
        json_integer_value(json_object_get(json_object_get(usage, "prompt_tokens_details"), "cached_tokens"));
    assert_int_equal(cached, json_integer_value(json_object_get(usage, "prompt_tokens")) - 1);
    assert_string_equal(text_at(choice_of(json), "text"), first);
    json_decref(json);
    reply_free(&r);
    free(first);
}

typedef struct client {
    pthread_t thread;
    char body[256], *alone, *together;
} client;

static void *ask_again(void *ctx)
{
    client *c = ctx;
    c->together = answer_text(CHAT, c->body);
    return NULL;
}

static void eight_clients_at_once_get_the_text_of_one_alone(void **state)
{
    (void)state;
    client clients[8];
    for (int i = 0; i < 8; i++) {
        snprintf(clients[i].body, sizeof clients[i].body,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"client %c%c\"}], \"temperature\": 0, "
                 "\"max_tokens\": 100, " NO_END "}",
                 'a' + i, 'z' - i);
        clients[i].alone = answer_text(CHAT, clients[i].body);
    }
    for (int i = 0; i < 8; i++) pthread_create(&clients[i].thread, NULL, ask_again, &clients[i]);
    for (int i = 0; i < 8; i++) pthread_join(clients[i].thread, NULL);
    for (int i = 0; i < 8; i++) {
        assert_string_equal(clients[i].together, clients[i].alone);
        free(clients[i].together);
        free(clients[i].alone);
    }
}

// ---------------------------------------------------------------------------------------- other routes

static void models_are_listed_and_found(void **state)
{
    (void)state;
    static const char *const paths[] = {"/v1/models", "/models", "/v1/models/tiny", "/models/default"};
    for (size_t i = 0; i < FRIT_COUNT(paths); i++) {
        reply r = get(&s, paths[i]);
        assert_int_equal(r.status, 200);
        json_t *json = reply_json(&r);
        const json_t *data = json_object_get(json, "data"), *model = data ? json_array_get(data, 0) : json;
        assert_string_equal(text_at(json, "object"), i < 2 ? "list" : "model");
        assert_string_equal(text_at(model, "id"), "tiny");
        assert_string_equal(text_at(model, "object"), "model");
        assert_string_equal(text_at(model, "owned_by"), "frit");
        json_decref(json);
        reply_free(&r);
    }
    reply r = get(&s, "/v1/models/some/other");
    assert_int_equal(r.status, 404);
    assert_non_null(strstr(r.body, "model_not_found"));
    reply_free(&r);
}

static void text_goes_to_tokens_and_back(void **state)
{
    (void)state;
    reply r = post(&s, "/tokenize", "{\"content\": \"hello there\", \"with_pieces\": true}");
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r), *tokens = json_object_get(json, "tokens"), *ids = json_array();
    assert_int_equal(json_array_size(tokens), json_integer_value(json_object_get(json, "count")));
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        assert_non_null(json_object_get(json_array_get(tokens, i), "piece"));
        json_array_append(ids, json_object_get(json_array_get(tokens, i), "id"));
    }
    json_t *back = json_pack("{s:o}", "tokens", ids);
    char *body = json_dumps(back, 0);
    reply text = post(&s, "/detokenize", body);
    assert_int_equal(text.status, 200);
    assert_string_equal(text.body, "{\"content\":\"hello there\"}");
    json_decref(json);
    json_decref(back);
    free(body);
    reply_free(&text);
    reply_free(&r);
    r = post(&s, "/apply-template", "{" HELLO "}");
    assert_string_equal(r.body, "{\"prompt\":\"<|im_start|>user\\nhello<|im_end|>\\n<|im_start|>assistant\\n\"}");
    reply_free(&r);
    r = post(&s, "/apply-template", "{" HELLO ", \"add_generation_prompt\": false}");
    assert_string_equal(r.body, "{\"prompt\":\"<|im_start|>user\\nhello<|im_end|>\\n\"}");
    reply_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chat_answer_has_openais_shape),
        cmocka_unit_test(a_completion_has_openais_shape_and_sixteen_tokens),
        cmocka_unit_test(a_stream_is_the_answer_in_pieces),
        cmocka_unit_test(stop_strings_end_the_answer_before_them),
        cmocka_unit_test(log_probabilities_go_with_their_tokens),
        cmocka_unit_test(completions_have_four_lists_of_log_probabilities),
        cmocka_unit_test(an_echoed_prompt_has_its_log_probabilities),
        cmocka_unit_test(a_healed_completion_goes_on_within_the_last_word),
        cmocka_unit_test(the_same_seed_gives_the_same_text),
        cmocka_unit_test(token_prompts_and_every_field_are_taken),
        cmocka_unit_test(the_answer_ends_with_the_context),
        cmocka_unit_test(the_next_turn_runs_only_what_is_new),
        cmocka_unit_test(eight_clients_at_once_get_the_text_of_one_alone),
        cmocka_unit_test(models_are_listed_and_found),
        cmocka_unit_test(text_goes_to_tokens_and_back),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

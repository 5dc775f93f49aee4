// SPDX-License-Identifier: MIT
// Pictures over HTTP: the answers of transformers by every protocol, refusals, the caches, and attacks.
#include "engine/media/golden_media.h"
#include "support/events_posix.h"

#include <string.h>

#define CHAT      "/v1/chat/completions"
#define RESPONSES "/v1/responses"
#define MESSAGES  "/v1/messages"

static const char template_text[] =
    "{%- for message in messages -%}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static served serve_pictures(const char *folder, const char *more)
{
    char options[512];
    const char *path = temp_path("pictures.jinja");
    write_file(path, template_text, strlen(template_text));
    snprintf(options, sizeof options,
             "--ctx 512 --threads 2 --temp 0 -ctk f32 -ctv f32 --alias tiny --chat-template %s %s", path, more);
    return serve(folder, options);
}

// ---------------------------------------------------------------------------------------- requests

static char *base64(const void *data, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = data;
    char *text = calloc(n / 3 * 4 + 8, 1), *at = text;
    for (size_t i = 0; i < n; i += 3) {
        const unsigned b1 = i + 1 < n ? bytes[i + 1] : 0, b2 = i + 2 < n ? bytes[i + 2] : 0;
        const unsigned bits = (unsigned)bytes[i] << 16 | b1 << 8 | b2;
        *at++ = digits[bits >> 18];
        *at++ = digits[bits >> 12 & 63];
        *at++ = i + 1 < n ? digits[bits >> 6 & 63] : '=';
        *at++ = i + 2 < n ? digits[bits & 63] : '=';
    }
    return text;
}

static char *read_base64(const char *name)
{
    size_t n;
    char *bytes = read_file(shared_path("goldens/media/images/%s", name), &n);
    char *text = base64(bytes, n);
    free(bytes);
    return text;
}

static json_t *data_uri(const char *name)
{
    char *text = read_base64(name);
    json_t *uri = json_sprintf("data:image/png;base64,%s", text);
    free(text);
    return uri;
}

// A reply's JSON; takes the request over.
static json_t *ask(const served *s, const char *path, json_t *request, int status)
{
    char *body = json_dumps(request, 0);
    reply r = post(s, path, body);
    if (r.status != status) fail_msg("%s: %d %.600s", path, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    free(body);
    json_decref(request);
    return json;
}

// A text or a picture of a message, as each protocol writes it.
typedef json_t *(*part_fn)(const char *text, const char *image);

static json_t *chat_part(const char *text, const char *image)
{
    if (text) return json_pack("{s:s, s:s}", "type", "text", "text", text);
    return json_pack("{s:s, s:{s:o}}", "type", "image_url", "image_url", "url", data_uri(image));
}

static json_t *responses_part(const char *text, const char *image)
{
    if (text) return json_pack("{s:s, s:s}", "type", "input_text", "text", text);
    return json_pack("{s:s, s:o}", "type", "input_image", "image_url", data_uri(image));
}

static json_t *anthropic_part(const char *text, const char *image)
{
    if (text) return json_pack("{s:s, s:s}", "type", "text", "text", text);
    char *data = read_base64(image);
    json_t *part = json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "image", "source", "type", "base64", "media_type",
                             "image/png", "data", data);
    free(data);
    return part;
}

// The parts of a golden case: its text is one user's message, with a mark for each picture.
static json_t *parts_of(const json_t *one, part_fn part)
{
    static const char mark[] = "<|vision_start|><|image_pad|><|vision_end|>";
    json_t *parts = json_array();
    const json_t *images = json_object_get(one, "images");
    const char *text = strstr(media_golden_text(one, "text"), "user\n") + 5;
    const char *end = strstr(text, "<|im_end|>");
    for (size_t n = 0; text < end;) {
        char piece[256];
        const char *next = strstr(text, mark);
        if (!next || next > end) next = end;
        snprintf(piece, sizeof piece, "%.*s", (int)(next - text), text);
        if (next > text) json_array_append_new(parts, part(piece, NULL));
        if (next < end) json_array_append_new(parts, part(NULL, json_string_value(json_array_get(images, n++))));
        text = next < end ? next + strlen(mark) : end;
    }
    return parts;
}

static json_t *chat_request(json_t *content, int n)
{
    return json_pack("{s:i, s:[{s:s, s:o}]}", "max_tokens", n, "messages", "role", "user", "content", content);
}

// The text of the tokens with which transformers continues.
static char *continuation_of(const char *folder, const json_t *one)
{
    frit_model *model;
    frit_text_stream *stream;
    char *out = calloc(256, 1);
    const char *text;
    size_t n;
    const json_t *ids = json_object_get(one, "continuation");
    assert_ok(frit_model_open(&model, folder, &(frit_model_options){.vocab_only = true}));
    assert_ok(frit_text_stream_new(&stream, model, 0));
    for (size_t i = 0; i <= json_array_size(ids); i++) {
        if (i < json_array_size(ids))
            assert_ok(frit_text_stream_push(stream, (frit_token)json_integer_value(json_array_get(ids, i)), &text, &n));
        else
            assert_ok(frit_text_stream_flush(stream, &text, &n));
        if (n > 0) memcpy(out + strlen(out), text, n);
    }
    frit_text_stream_free(stream);
    frit_model_free(model);
    return out;
}

static long long metric(const served *s, const char *name)
{
    reply r = get(s, "/metrics");
    char pattern[128];
    snprintf(pattern, sizeof pattern, "\n%s{", name);
    const char *at = strstr(r.body, pattern);
    assert_non_null(at);
    const long long value = atoll(strchr(at, '}') + 1);
    reply_free(&r);
    return value;
}

static long long count_encoded(const served *s)
{
    return metric(s, "frit_pictures_encoded_total");
}

// ---------------------------------------------------------------------------------------- answers

static void expect_answers(const served *s, const json_t *one, const char *expected)
{
    const int n = (int)json_array_size(json_object_get(one, "continuation"));
    json_t *json = ask(s, CHAT, chat_request(parts_of(one, chat_part), n), 200);
    expect_text_in(json, "choices.0.message.content", expected);
    expect_int_in(json, "usage.prompt_tokens", (json_int_t)json_array_size(json_object_get(one, "ids")));
    json_decref(json);
    json = ask(s, RESPONSES,
               json_pack("{s:i, s:[{s:s, s:o}]}", "max_output_tokens", n, "input", "role", "user", "content",
                         parts_of(one, responses_part)),
               200);
    expect_text_in(json, "output.0.content.0.text", expected);
    json_decref(json);
    json = ask(s, MESSAGES, chat_request(parts_of(one, anthropic_part), n), 200);
    expect_text_in(json, "content.0.text", expected);
    json_decref(json);
}

static void answers_equal_those_of_transformers(void **state)
{
    (void)state;
    static const char *const models[] = {"qwen2_vl", "qwen2_5_vl"};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        media_golden gold = media_golden_open(models[m]);
        served s = serve_pictures(gold.folder, "");
        for (size_t k = 1; k < 3; k++) {
            const json_t *one = json_array_get(json_object_get(gold.root, "cases"), k);
            char *expected = continuation_of(gold.folder, one);
            expect_answers(&s, one, expected);
            free(expected);
        }
        assert_int_equal(count_encoded(&s), 3);   // one and two pictures, each for three protocols
        assert_int_equal(stop_serving(&s, SIGTERM), 0);
        media_golden_close(&gold);
    }
}

// Ollama's pictures stand before the text, as in the first golden case with a picture.
static void ollamas_answers_equal_those_of_transformers(void **state)
{
    (void)state;
    media_golden gold = media_golden_open("qwen2_5_vl");
    const json_t *one = json_array_get(json_object_get(gold.root, "cases"), 1);
    char *expected = continuation_of(gold.folder, one), *data = read_base64("j444.jpg");
    served s = serve_pictures(gold.folder, "");
    json_t *json = ask(&s, "/api/chat",
                       json_pack("{s:b, s:{s:i}, s:[{s:s, s:s, s:[s]}]}", "stream", 0, "options", "num_predict", 6,
                                 "messages", "role", "user", "content", "What is it?", "images", data),
                       200);
    expect_text_in(json, "message.content", expected);
    expect_int_in(json, "prompt_eval_count", (json_int_t)json_array_size(json_object_get(one, "ids")));
    json_decref(json);
    json = ask(&s, "/api/generate",
               json_pack("{s:b, s:{s:i}, s:s, s:[s]}", "stream", 0, "options", "num_predict", 6, "prompt",
                         "What is it?", "images", data),
               200);
    expect_text_in(json, "response", expected);
    json_decref(json);
    assert_int_equal(count_encoded(&s), 1);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    free(data);
    free(expected);
    media_golden_close(&gold);
}

static void tool_results_may_have_pictures(void **state)
{
    (void)state;
    served s = serve_pictures(shared_path("goldens/media/qwen2_5_vl"), "");
    json_t *request = json_pack(
        "{s:i, s:[{s:s, s:s}, {s:s, s:[{s:s, s:s, s:s, s:{}}]}, {s:s, s:[{s:s, s:s, s:[o, o]}]}]}", "max_tokens", 4,
        "messages", "role", "user", "content", "Look", "role", "assistant", "content", "type", "tool_use", "id", "a",
        "name", "camera", "input", "role", "user", "content", "type", "tool_result", "tool_use_id", "a", "content",
        anthropic_part("A picture:", NULL), anthropic_part(NULL, "j444.jpg"));
    json_t *json = ask(&s, MESSAGES, request, 200);
    json_decref(json);
    assert_int_equal(count_encoded(&s), 1);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// The picture is found by the response that continues another one.
static void stored_conversations_keep_their_pictures(void **state)
{
    (void)state;
    media_golden gold = media_golden_open("qwen2_5_vl");
    const json_t *one = json_array_get(json_object_get(gold.root, "cases"), 1);
    served s = serve_pictures(gold.folder, "");
    json_t *json = ask(&s, RESPONSES,
                       json_pack("{s:i, s:[{s:s, s:o}]}", "max_output_tokens", 6, "input", "role", "user", "content",
                                 parts_of(one, responses_part)),
                       200);
    const json_int_t n_image = json_integer_value(value_in(json, "usage.input_tokens_details.image_tokens"));
    json_t *next = ask(&s, RESPONSES,
                       json_pack("{s:i, s:s, s:O}", "max_output_tokens", 6, "input", "And now?", "previous_response_id",
                                 value_in(json, "id")),
                       200);
    assert_true(n_image > 0);
    expect_int_in(next, "usage.input_tokens_details.image_tokens", n_image);
    assert_int_equal(count_encoded(&s), 1);
    json_decref(json);
    json_decref(next);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    media_golden_close(&gold);
}

static void models_say_what_they_read(void **state)
{
    (void)state;
    served s = serve_pictures(shared_path("goldens/media/qwen2_5_vl"), "");
    reply r = get(&s, "/v1/models");
    json_t *json = reply_json(&r);
    expect_text_in(json, "data.0.meta.modalities.input.1", "image");
    json_decref(json);
    reply_free(&r);
    r = get(&s, "/props");
    json = reply_json(&r);
    assert_true(json_is_true(value_in(json, "modalities.vision")));
    json_decref(json);
    reply_free(&r);
    json = ask(&s, "/api/show", json_pack("{s:s}", "model", "tiny"), 200);
    char *capabilities = json_dumps(value_in(json, "capabilities"), 0);
    assert_non_null(strstr(capabilities, "\"vision\""));
    free(capabilities);
    json_decref(json);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- detail and limits

static json_int_t count_image_tokens(const served *s, const char *detail)
{
    json_t *part = chat_part(NULL, "wide.jpg");
    if (detail) json_object_set_new(json_object_get(part, "image_url"), "detail", json_string(detail));
    json_t *json = ask(s, CHAT, chat_request(json_pack("[o]", part), 1), 200);
    const json_int_t n = json_integer_value(value_in(json, "usage.prompt_tokens_details.image_tokens"));
    json_decref(json);
    return n;
}

static void pictures_have_so_many_tokens_as_asked_for(void **state)
{
    (void)state;
    const char *folder = shared_path("goldens/media/qwen2_5_vl");
    served s = serve_pictures(folder, "");
    const json_int_t all = count_image_tokens(&s, NULL);
    assert_true(all > 6);
    assert_int_equal(count_image_tokens(&s, "high"), all);
    assert_int_equal(count_image_tokens(&s, "low"), all);   // it has fewer than 256
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    s = serve_pictures(folder, "--image-tokens 4");
    assert_in_range(count_image_tokens(&s, "high"), 1, 4 + 2);   // with the marks
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- refusals

static void expect_refused(const served *s, const char *path, const char *body, const char *words)
{
    reply r = post(s, path, body);
    if (r.status != 400 || !strstr(r.body, words))
        fail_msg("%.200s: %d %s, without '%s'", body, r.status, r.body, words);
    reply_free(&r);
}

#define CONTENT(parts) "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [" parts "]}]}"
#define INPUT(parts)   "{\"max_output_tokens\": 1, \"input\": [{\"role\": \"user\", \"content\": [" parts "]}]}"
#define URL(url)       "{\"type\": \"image_url\", \"image_url\": {\"url\": \"" url "\"}}"
#define PIXEL          "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"

static const struct {
    const char *path, *body, *words;
} refused[] = {
    {CHAT, CONTENT(URL("https://example.com/a.png")),
     "messages[0].content[0]: 'https://example.com/a.png' is an address"},
    {CHAT, CONTENT(URL("HTTP://example.com/a.png")), "send a data URI, data:image/jpeg;base64,"},
    {CHAT, CONTENT(URL("file:///etc/passwd")), "frit fetches no pictures"},
    {CHAT, CONTENT(URL("iVBORw0KGgo=")), "is no data URI of a picture, expected data:image/jpeg;base64,"},
    {CHAT, CONTENT(URL("data:text/plain;base64,QQ==")), "is no data URI of a picture"},
    {CHAT, CONTENT(URL("data:image/png,abc")), "is no data URI of a picture"},
    {CHAT, CONTENT(URL("data:image/png;base64,Q")), "messages[0].content[0]: the picture is no base64"},
    {CHAT, CONTENT(URL("data:image/png;base64,QQ$=")), "no base64, from character 2 of 4 on"},
    {CHAT, CONTENT(URL("data:image/png;base64,QQ==QQ==")), "no base64, from character 4 of 8 on"},
    {CHAT, CONTENT(URL("data:image/png;base64,")), "0 bytes are no picture"},
    {CHAT, CONTENT(URL("data:image/png;base64,QUJDREVG")),
     "6 bytes are no picture; expected a PNG, JPEG, WebP or GIF file"},
    {CHAT, CONTENT("{\"type\": \"image_url\"}"), "messages[0].content[0]: expected the picture as a data URI"},
    {CHAT, CONTENT("{\"type\": \"image_url\", \"image_url\": {\"url\": 5}}"), "expected the picture as a data URI"},
    {CHAT, CONTENT("{\"type\": \"image_url\", \"image_url\": {\"url\": \"" PIXEL "\", \"detail\": \"huge\"}}"),
     "messages[0].content[0]: the detail is 'huge', expected low, high or auto"},
    {CHAT, CONTENT("{\"type\": \"image\"}"), "a part of type 'image' has no picture"},
    {CHAT, CONTENT("{\"type\": \"image\", \"data\": \"QQ==\", \"detail\": 1, \"field\": 2}"), "has no picture"},
    {CHAT, CONTENT("{\"type\": \"text\", \"text\": \"a\"}, " URL(PIXEL) ", {\"type\": \"input_audio\"}"),
     "messages[0].content"},
    {CHAT,
     "{\"max_tokens\": 1, \"prompt_logprobs\": 1, \"messages\": [{\"role\": \"user\", \"content\": [" URL(PIXEL) "]}]}",
     "prompt_logprobs: is not possible with pictures"},
    {RESPONSES, INPUT("{\"type\": \"input_image\", \"file_id\": \"f1\"}"),
     "input[0].content[0].file_id: is not supported"},
    {RESPONSES,
     INPUT("{\"type\": \"input_text\", \"text\": \"a\"}, {\"type\": \"input_image\", \"image_url\": \"http://a\"}"),
     "input[0].content[1]: 'http://a' is an address"},
    {RESPONSES, INPUT("{\"type\": \"input_image\"}"), "input[0].content[0]: expected the picture as a data URI"},
    {MESSAGES, CONTENT("{\"type\": \"image\", \"source\": {\"type\": \"url\", \"url\": \"http://a\"}}"),
     "messages[0].content[0]: a source of type url is not supported"},
    {MESSAGES, CONTENT("{\"type\": \"image\", \"source\": {\"type\": \"file\", \"file_id\": \"a\"}}"),
     "frit keeps no files"},
    {MESSAGES, CONTENT("{\"type\": \"image\"}"), "expected a source of type base64"},
    {MESSAGES, CONTENT("{\"type\": \"image\", \"source\": {\"type\": \"base64\"}}"),
     "expected a picture, the file in base64"},
    {MESSAGES,
     CONTENT("{\"type\": \"image\", \"source\": {\"type\": \"base64\", \"data\": \""
             "data:image/png;charset=x;QQ==\"}}"),
     "is a data URI, expected base64 alone"},
    {MESSAGES, CONTENT("{\"type\": \"tool_result\", \"tool_use_id\": \"a\", \"content\": [{\"type\": \"image\"}]}"),
     "messages[0].content[0].content[0]"},
    {"/api/chat", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"images\": [\"http://a\"]}]}",
     "messages[0].images[0]: 'http://a' is an address"},
    {"/api/chat", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"images\": \"a\"}]}",
     "messages[0].images: expected a list of pictures"},
    {"/api/generate", "{\"prompt\": \"a\", \"images\": [7]}", "images[0]: expected a picture"},
    {"/api/generate", "{\"prompt\": \"a\", \"raw\": true, \"images\": [\"QQ==\"]}", "not with raw or suffix"},
};

static void every_refusal_names_the_place(void **state)
{
    (void)state;
    served s = serve_pictures(shared_path("goldens/media/qwen2_5_vl"), "");
    for (size_t i = 0; i < FRIT_COUNT(refused); i++)
        expect_refused(&s, refused[i].path, refused[i].body, refused[i].words);
    json_t *parts = json_array();
    for (int i = 0; i < 33; i++) json_array_append_new(parts, chat_part(NULL, "one.png"));
    json_t *json = ask(&s, CHAT, chat_request(parts, 1), 400);
    expect_text_in(json, "error.message", "messages[0].content[32]: a request has at most 32 pictures");
    expect_text_in(json, "error.param", "messages[0].content[32]");
    json_decref(json);
    assert_int_equal(count_encoded(&s), 0);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void models_of_text_refuse_pictures(void **state)
{
    (void)state;
    served s = serve(shared_path("goldens/hf/qwen2"), "--ctx 128 --threads 1");
    expect_refused(
        &s, CHAT,
        "{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}, {\"role\": \"user\", \"content\": [" URL(
            PIXEL) "]}]}",
        "messages[1].content[0]: qwen2: has no processor of pictures");
    expect_refused(&s, "/api/chat",
                   "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"images\": [\"QQ==\"]}]}",
                   "messages[0].images[0]: qwen2: ");
    reply r = get(&s, "/props");
    json_t *json = reply_json(&r);
    assert_true(json_is_false(value_in(json, "modalities.vision")));
    json_decref(json);
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- caches

static void many_requests_encode_a_picture_once(void **state)
{
    (void)state;
    enum { N = 32 };
    media_golden gold = media_golden_open("qwen2_5_vl");
    const json_t *one = json_array_get(json_object_get(gold.root, "cases"), 1);
    char *expected = continuation_of(gold.folder, one);
    served s = serve_pictures(gold.folder, "--parallel 4 --max-queue 64");
    json_t *request = chat_request(parts_of(one, chat_part), 6);
    char *body = json_dumps(request, 0);
    int sockets[N];
    for (int i = 0; i < N; i++) sockets[i] = send_post(&s, CHAT, body);
    for (int i = 0; i < N; i++) {
        reply r = read_reply(sockets[i]);
        assert_int_equal(r.status, 200);
        json_t *json = reply_json(&r);
        expect_text_in(json, "choices.0.message.content", expected);
        json_decref(json);
        reply_free(&r);
        close(sockets[i]);
    }
    assert_int_equal(count_encoded(&s), 1);
    free(body);
    json_decref(request);
    free(expected);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    media_golden_close(&gold);
}

// Keeps no features: the prefix cache alone spares the encoder.
static void a_second_turn_runs_its_new_tokens_only(void **state)
{
    (void)state;
    media_golden gold = media_golden_open("qwen2_5_vl");
    const json_t *one = json_array_get(json_object_get(gold.root, "cases"), 1);
    served s = serve_pictures(gold.folder, "--media-cache 0");
    json_t *json = ask(&s, CHAT, chat_request(parts_of(one, chat_part), 6), 200);
    expect_int_in(json, "usage.prompt_tokens_details.cached_tokens", 0);
    json_t *answer = json_deep_copy(value_in(json, "choices.0.message.content"));
    json_decref(json);
    json_t *request = chat_request(parts_of(one, chat_part), 6), *messages = json_object_get(request, "messages");
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "assistant", "content", answer));
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "user", "content", "Which?"));
    json = ask(&s, CHAT, request, 200);
    const json_int_t cached = json_integer_value(value_in(json, "usage.prompt_tokens_details.cached_tokens"));
    assert_true(cached >= 32);   // a page, which has the picture
    json_decref(json);
    assert_int_equal(count_encoded(&s), 1);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    media_golden_close(&gold);
}

// Without the prefix cache the features are found; without both, pictures are encoded again; other salts share nothing.
static void features_are_kept_as_options_say(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        bool salts;
        int n_encoded;
    } rows[] = {{"--no-prefix-cache", false, 1}, {"--no-prefix-cache --media-cache 0", false, 2}, {"", true, 2}};
    media_golden gold = media_golden_open("qwen2_5_vl");
    const json_t *one = json_array_get(json_object_get(gold.root, "cases"), 1);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        served s = serve_pictures(gold.folder, rows[i].options);
        json_t *first = NULL;
        for (int k = 0; k < 2; k++) {
            json_t *request = chat_request(parts_of(one, chat_part), 6);
            if (rows[i].salts) json_object_set_new(request, "cache_salt", json_sprintf("salt%d", k));
            json_t *json = ask(&s, CHAT, request, 200);
            const json_t *text = value_in(json, "choices.0.message.content");
            if (first) assert_true(json_equal(first, (json_t *)(uintptr_t)text));
            if (!first) first = json_deep_copy(text);
            json_decref(json);
        }
        json_decref(first);
        assert_int_equal(count_encoded(&s), rows[i].n_encoded);
        assert_int_equal(stop_serving(&s, SIGTERM), 0);
    }
    media_golden_close(&gold);
}

static void several_answers_to_a_picture_share_it(void **state)
{
    (void)state;
    media_golden gold = media_golden_open("qwen2_5_vl");
    const json_t *one = json_array_get(json_object_get(gold.root, "cases"), 1);
    char *expected = continuation_of(gold.folder, one);
    served s = serve_pictures(gold.folder, "--media-cache 0");
    json_t *request = chat_request(parts_of(one, chat_part), 6);
    json_object_set_new(request, "n", json_integer(3));
    json_t *json = ask(&s, CHAT, request, 200);
    for (int i = 0; i < 3; i++) {
        char path[64];
        snprintf(path, sizeof path, "choices.%d.message.content", i);
        expect_text_in(json, path, expected);
    }
    json_decref(json);
    free(expected);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    media_golden_close(&gold);
}

// Texts that are streamed beside pictures are the same as alone.
static void texts_go_on_beside_pictures(void **state)
{
    (void)state;
    enum { N = 6 };
    static const char *const images[N] = {"wide.jpg", "tall.png", "rgb.png", "gray.jpg", "exif6.jpg", "la.png"};
    static const char text[] = "{\"max_tokens\": 200, \"ignore_eos\": true, \"messages\": [{\"role\": \"user\", "
                               "\"content\": \"Tell\"}]}";
    served s = serve_pictures(shared_path("goldens/media/qwen2_5_vl"), "--parallel 3");
    reply alone = post(&s, CHAT, text);
    assert_int_equal(alone.status, 200);
    int sockets[N], beside = send_post(&s, CHAT, text);
    for (int i = 0; i < N; i++) {
        json_t *request = chat_request(json_pack("[o]", chat_part(NULL, images[i])), 4);
        char *body = json_dumps(request, 0);
        sockets[i] = send_post(&s, CHAT, body);
        free(body);
        json_decref(request);
    }
    reply r = read_reply(beside);
    json_t *one = reply_json(&alone), *other = reply_json(&r);
    assert_true(json_equal(json_object_get(one, "choices"), json_object_get(other, "choices")));
    json_decref(one);
    json_decref(other);
    reply_free(&alone);
    reply_free(&r);
    close(beside);
    for (int i = 0; i < N; i++) {
        r = read_reply(sockets[i]);
        assert_int_equal(r.status, 200);
        reply_free(&r);
        close(sockets[i]);
    }
    assert_int_equal(count_encoded(&s), N);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- attacks

static long peak_mib(const served *s)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)s->pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld kB", &kib) == 1) break;
    if (file) fclose(file);
    if (kib < 0) skip_because("this system does not tell what memory a process had");
    return kib >> 10;
}

// Every damaged and hostile file is refused with a sentence, or read.
static void hostile_files_are_refused(void **state)
{
    (void)state;
    size_t n;
    served s = serve_pictures(shared_path("goldens/media/qwen2_5_vl"), "");
    const long before = peak_mib(&s);
    char *text = read_file(shared_path("goldens/media/images/bad/index.json"), &n);
    json_t *index = json_loadb(text, n, 0, NULL), *value;
    size_t i;
    int n_refused = 0;
    free(text);
    json_array_foreach(index, i, value)
    {
        char file[128];
        const char *name = media_golden_text(value, "file");
        snprintf(file, sizeof file, "bad/%s", name);
        json_t *request = chat_request(json_pack("[o]", chat_part(NULL, file)), 1);
        char *body = json_dumps(request, 0);
        reply r = post(&s, CHAT, body);
        if (r.status != 200 && r.status != 400) fail_msg("%s: %d %s", name, r.status, r.body);
        if (r.status == 400 && !strstr(r.body, "messages[0].content[0]: ")) fail_msg("%s: %s", name, r.body);
        n_refused += r.status == 400;
        reply_free(&r);
        free(body);
        json_decref(request);
    }
    assert_true(n_refused >= 16);
    json_decref(index);
    assert_true(peak_mib(&s) - before < 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Files with changed bytes: no status but 200 and 400, and memory stays small.
static void mutants_of_files_do_no_harm(void **state)
{
    (void)state;
    enum { N = 400 / FRIT_TEST_STRIDE };
    static const char *const names[] = {"rgb.png",    "j444.jpg",        "progressive.jpg",
                                        "lossy.webp", "first_frame.gif", "interlaced.png"};
    served s = serve_pictures(shared_path("goldens/media/qwen2_5_vl"), "");
    const long before = peak_mib(&s);
    uint32_t random = 1;
    for (int i = 0; i < N; i++) {
        size_t n;
        char *bytes = read_file(shared_path("goldens/media/images/%s", names[i % FRIT_COUNT(names)]), &n);
        for (int k = 0; k < 1 + i % 8; k++) {
            random = random * 1664525u + 1013904223u;
            bytes[(random >> 8) % n] = (char)(random >> 3);
        }
        char *data = base64(bytes, i % 5 == 4 ? n / 2 : n);
        json_t *request = json_pack("{s:b, s:{s:i}, s:[{s:s, s:s, s:[s]}]}", "stream", 0, "options", "num_predict", 1,
                                    "messages", "role", "user", "content", "a", "images", data);
        char *body = json_dumps(request, 0);
        reply r = post(&s, "/api/chat", body);
        if (r.status != 200 && r.status != 400) fail_msg("mutant %d: %d %s", i, r.status, r.body);
        reply_free(&r);
        free(body);
        json_decref(request);
        free(data);
        free(bytes);
    }
    assert_true(peak_mib(&s) - before < 400);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static uint32_t crc_of(const unsigned char *bytes, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static unsigned char *put_number(unsigned char *at, uint32_t value)
{
    for (int i = 3; i >= 0; i--) *at++ = (unsigned char)(value >> 8 * i);
    return at;
}

// A white PNG of side x side pixels with one bit each, without compression.
static unsigned char *large_png(uint32_t side, size_t *n)
{
    const size_t row = 1 + side / 8, n_raw = row * side, n_blocks = (n_raw + 65534) / 65535;
    unsigned char *file = calloc(n_raw + 5 * n_blocks + 128, 1), *at = file, *raw = malloc(n_raw);
    memset(raw, 255, n_raw);
    for (size_t i = 0; i < side; i++) raw[i * row] = 0;
    memcpy(at, "\x89PNG\r\n\x1a\n", 8);
    at = put_number(at + 8, 13);
    memcpy(at, "IHDR", 4);
    put_number(put_number(at + 4, side), side);
    at[12] = 1;   // bits; the other bytes are 0: grey
    at = put_number(at + 17, crc_of(at, 17));
    at = put_number(at, (uint32_t)(n_raw + 5 * n_blocks + 6));
    unsigned char *chunk = at;
    memcpy(at, "IDAT\x78\x01", 6);
    at += 6;
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n_raw; i++) a = (a + raw[i]) % 65521, b = (b + a) % 65521;
    for (size_t from = 0; from < n_raw; from += 65535) {
        const size_t length = n_raw - from < 65535 ? n_raw - from : 65535;
        *at++ = from + length == n_raw;
        *at++ = (unsigned char)length, *at++ = (unsigned char)(length >> 8);
        *at++ = (unsigned char)~length, *at++ = (unsigned char)(~length >> 8);
        memcpy(at, raw + from, length);
        at += length;
    }
    at = put_number(at, b << 16 | a);
    at = put_number(at, crc_of(chunk, (size_t)(at - chunk)));
    at = put_number(at, 0);
    memcpy(at, "IEND", 4);
    at = put_number(at + 4, crc_of(at, 4));
    *n = (size_t)(at - file);
    free(raw);
    return file;
}

// 32 requests at once, each with a picture of 16 Mi pixels: decoded together they would have 1.5 GiB.
static void large_pictures_at_once_take_bounded_memory(void **state)
{
    (void)state;
    enum { N = 32 };
    size_t n;
    served s = serve_pictures(shared_path("goldens/media/qwen2_5_vl"), "--parallel 4 --max-queue 64");
    const long before = peak_mib(&s);
    unsigned char *png = large_png(4096, &n);
    char *data = base64(png, n);
    json_t *request = chat_request(json_pack("[{s:s, s:{s:o}}]", "type", "image_url", "image_url", "url",
                                             json_sprintf("data:image/png;base64,%s", data)),
                                   1);
    char *body = json_dumps(request, 0);
    int sockets[N], n_good = 0;
    for (int i = 0; i < N; i++) sockets[i] = send_post(&s, CHAT, body);
    for (int i = 0; i < N; i++) {
        reply r = read_reply(sockets[i]);
        if (r.status != 200 && r.status != 503) fail_msg("%d %s", r.status, r.body);
        n_good += r.status == 200;
        reply_free(&r);
        close(sockets[i]);
    }
    assert_true(n_good > 0);
    const long taken = peak_mib(&s) - before;
    print_message("%d pictures of 16 Mi pixels, %d read: %ld MiB\n", N, n_good, taken);
    assert_true(taken < 900);
    assert_int_equal(count_encoded(&s), 1);
    free(body);
    free(data);
    free(png);
    json_decref(request);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Sizes are compared before memory is allocated; together the pictures of a request have a limit too.
static void too_many_pixels_are_refused(void **state)
{
    (void)state;
    size_t n;
    served s = serve_pictures(shared_path("goldens/media/qwen2_5_vl"), "");
    unsigned char *png = large_png(4096, &n);
    put_number(put_number(png + 16, 30000), 30000);
    put_number(png + 29, crc_of(png + 12, 17));
    char *data = base64(png, 200);
    json_t *uri = json_sprintf("data:image/png;base64,%s", data);
    json_t *json = ask(
        &s, CHAT, chat_request(json_pack("[{s:s, s:{s:o}}]", "type", "image_url", "image_url", "url", uri), 1), 400);
    expect_text_in(json, "error.message",
                   "messages[0].content[0]: the picture has 30000x30000 pixels; expected at most 67108864 pixels");
    expect_text_in(json, "error.code", "picture_too_large");
    json_decref(json);
    free(data);
    free(png);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_equal_those_of_transformers),
        cmocka_unit_test(ollamas_answers_equal_those_of_transformers),
        cmocka_unit_test(tool_results_may_have_pictures),
        cmocka_unit_test(stored_conversations_keep_their_pictures),
        cmocka_unit_test(models_say_what_they_read),
        cmocka_unit_test(pictures_have_so_many_tokens_as_asked_for),
        cmocka_unit_test(every_refusal_names_the_place),
        cmocka_unit_test(models_of_text_refuse_pictures),
        cmocka_unit_test(many_requests_encode_a_picture_once),
        cmocka_unit_test(a_second_turn_runs_its_new_tokens_only),
        cmocka_unit_test(features_are_kept_as_options_say),
        cmocka_unit_test(several_answers_to_a_picture_share_it),
        cmocka_unit_test(texts_go_on_beside_pictures),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(mutants_of_files_do_no_harm),
        cmocka_unit_test(large_pictures_at_once_take_bounded_memory),
        cmocka_unit_test(too_many_pixels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

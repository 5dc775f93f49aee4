// SPDX-License-Identifier: MIT
// /v1/embeddings, of an encoder and of a model that generates.
#include "support/sentence_folder.h"
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <math.h>
#include <signal.h>

#define EMBED "/v1/embeddings"

static served s;

static int start_server(void **state)
{
    (void)state;
    s = serve(tiny_model("tiny.gguf", &(tiny_options){.n_ctx = 64}), "--parallel 2 --threads 1");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static json_t *ask(const char *body)
{
    reply r = post(&s, EMBED, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    assert_string_equal(json_string_value(json_object_get(json, "object")), "list");
    return json;
}

static const json_t *vector_of(const json_t *json, size_t i)
{
    const json_t *item = json_array_get(json_object_get(json, "data"), i);
    assert_string_equal(json_string_value(json_object_get(item, "object")), "embedding");
    assert_int_equal(json_integer_value(json_object_get(item, "index")), i);
    return json_object_get(item, "embedding");
}

static double length_of(const json_t *vector)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(vector); i++) sum += pow(json_real_value(json_array_get(vector, i)), 2);
    return sqrt(sum);
}

static void a_text_becomes_a_vector_of_length_one(void **state)
{
    (void)state;
    json_t *json = ask("{\"model\": \"tiny\", \"input\": \"hello\"}");
    assert_string_equal(json_string_value(json_object_get(json, "model")), "tiny");
    assert_int_equal(json_array_size(json_object_get(json, "data")), 1);
    assert_true(fabs(length_of(vector_of(json, 0)) - 1) < 1e-4);
    const json_t *usage = json_object_get(json, "usage");
    assert_true(json_integer_value(json_object_get(usage, "prompt_tokens")) > 0);
    assert_int_equal(json_integer_value(json_object_get(usage, "prompt_tokens")),
                     json_integer_value(json_object_get(usage, "total_tokens")));
    json_decref(json);
}

static void lists_of_texts_and_of_tokens_keep_their_order(void **state)
{
    (void)state;
    json_t *both = ask("{\"input\": [\"hello\", \"abc\"]}"), *one = ask("{\"input\": \"abc\"}");
    assert_int_equal(json_array_size(json_object_get(both, "data")), 2);
    assert_true(json_equal(vector_of(both, 1), vector_of(one, 0)));
    assert_false(json_equal(vector_of(both, 0), vector_of(one, 0)));
    json_t *ids = ask("{\"input\": [5, 6, 7]}"), *lists = ask("{\"input\": [[9], [5, 6, 7]]}");
    assert_int_equal(json_array_size(json_object_get(ids, "data")), 1);
    assert_true(json_equal(vector_of(lists, 1), vector_of(ids, 0)));
    json_decref(both);
    json_decref(one);
    json_decref(ids);
    json_decref(lists);
}

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return (int)(strchr(digits, c) - digits);
}

static void base64_holds_the_same_floats(void **state)
{
    (void)state;
    json_t *plain = ask("{\"input\": \"hello\"}"),
           *coded = ask("{\"input\": \"hello\", \"encoding_format\": \"base64\"}");
    const json_t *vector = vector_of(plain, 0);
    const char *text = json_string_value(vector_of(coded, 0));
    const size_t n = json_array_size(vector);
    assert_non_null(text);
    assert_int_equal(strlen(text), (4 * n + 2) / 3 * 4);
    unsigned char *bytes = calloc(4 * n + 3, 1);
    for (size_t i = 0, at = 0; text[i] && text[i] != '='; i += 4, at += 3) {
        unsigned group = 0;
        for (size_t k = 0; k < 4; k++) group = group << 6 | (text[i + k] == '=' ? 0u : (unsigned)digit_of(text[i + k]));
        for (size_t k = 0; k < 3 && at + k < 4 * n; k++) bytes[at + k] = (unsigned char)(group >> (16 - 8 * k));
    }
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, bytes + 4 * i, sizeof value);
        assert_true(fabs((double)value - json_real_value(json_array_get(vector, i))) < 1e-7);
    }
    free(bytes);
    json_decref(plain);
    json_decref(coded);
}

static void dimensions_cut_and_normalize_again(void **state)
{
    (void)state;
    json_t *json = ask("{\"input\": \"hello\", \"dimensions\": 5}");
    assert_int_equal(json_array_size(vector_of(json, 0)), 5);
    assert_true(fabs(length_of(vector_of(json, 0)) - 1) < 1e-4);
    json_decref(json);
}

static void many_inputs_take_many_steps(void **state)
{
    (void)state;
    json_t *list = json_array();
    for (int i = 0; i < 300; i++) json_array_append_new(list, json_pack("[i, i]", 3 + i % 7, 4 + i % 11));
    json_t *request = json_pack("{s:o}", "input", list);
    char *body = json_dumps(request, 0);
    json_t *json = ask(body);
    assert_int_equal(json_array_size(json_object_get(json, "data")), 300);
    assert_true(json_equal(vector_of(json, 0), vector_of(json, 77)));
    json_decref(json);
    json_decref(request);
    free(body);
}

static void bad_requests_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *body, *sentence;
    } rows[] = {
        {"{}", "input: is missing"},
        {"{\"input\": []}", "input: an empty list"},
        {"{\"input\": 7}", "input: expected a string"},
        {"{\"input\": [[]]}", "input[0]: is empty"},
        {"{\"input\": [\"a\", 7]}", "input: expected a string"},
        {"{\"input\": [99999999]}", "is not a token id"},
        {"{\"input\": [-1]}", "is not a token id"},
        {"{\"input\": \"a\", \"encoding_format\": \"hex\"}", "expected float or base64"},
        {"{\"input\": \"a\", \"dimensions\": 0}", "dimensions"},
        {"{\"input\": \"a\", \"dimensions\": 100000}", "numbers of each vector"},
        {"{\"input\": \"a\", \"pooling\": \"none\"}", "pooling: a vector for each token"},
        {"{\"input\": \"a\", \"pooling\": \"most\"}", "pooling is 'most'"},
        {"{\"input\": \"a\", \"pooling\": \"rank\"}", "classification head"},
        {"{\"input\": \"a\", \"normalize\": \"l9\"}", "normalize is 'l9'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reply r = post(&s, EMBED, rows[i].body);
        if (r.status != 400 || !strstr(r.body, rows[i].sentence)) fail_msg("%s: %d %s", rows[i].body, r.status, r.body);
        if (strchr(r.body, '/')) fail_msg("%s", r.body);   // no path of the server's files
        reply_free(&r);
    }
    reply r = post(&s, EMBED, "{\"input\": \"a\", \"dimensions\": 100000}");
    json_t *json = reply_json(&r);
    const json_t *error = json_object_get(json, "error");
    assert_string_equal(json_string_value(json_object_get(error, "param")), "dimensions");
    assert_string_equal(json_string_value(json_object_get(error, "code")), "invalid_value");
    json_decref(json);
    reply_free(&r);
    r = post(&s, EMBED, "{\"input\": \"a\", \"model\": \"gpt-9\"}");
    assert_int_equal(r.status, 404);
    reply_free(&r);
    char body[4096] = "{\"input\": [5";
    for (int i = 0; i < 64; i++) strcat(body, ", 5");
    strcat(body, "]}");
    r = post(&s, EMBED, body);
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "context_length_exceeded"));
    reply_free(&r);
}

static void an_encoder_gives_embeddings_and_no_text(void **state)
{
    (void)state;
    served other = serve(shared_path("goldens/hf/bert"), "--threads 1");
    reply r = post(&other, EMBED, "{\"input\": [\"Hello.\", \"World.\"]}");
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    assert_int_equal(json_array_size(vector_of(json, 1)), 64);
    json_decref(json);
    reply_free(&r);
    r = post(&other, "/v1/completions", "{\"prompt\": \"Hello.\"}");
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "is an encoder"));
    reply_free(&r);
    assert_int_equal(stop_serving(&other, SIGTERM), 0);
}

static void a_masked_lm_head_gives_sparse_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *body, *part;
    } bad[] = {
        {"{\"input\": \"Hello.\", \"pooling\": \"splade\", \"encoding_format\": \"base64\"}", "numbers only"},
        {"{\"input\": \"Hello.\", \"prompt_name\": \"query\"}", "prompt_name is 'query', but"},
        {"{\"input\": \"Hello.\", \"pooling\": \"mean+rank\"}", "'rank' cannot be joined with others"},
    };
    served other = serve(shared_path("goldens/hf-more/bert-splade"), "--threads 1");
    reply r = post(&other, EMBED, "{\"input\": [\"Hello.\", \"World.\"], \"pooling\": \"splade\"}");
    if (r.status != 200) fail_msg("%d %s", r.status, r.body);
    json_t *json = reply_json(&r);
    const json_t *indices = json_object_get(vector_of(json, 1), "indices");
    const json_t *values = json_object_get(vector_of(json, 1), "values");
    assert_in_range(json_array_size(indices), 1, 512);
    assert_int_equal(json_array_size(values), json_array_size(indices));
    for (size_t i = 0; i < json_array_size(values); i++) assert_true(json_real_value(json_array_get(values, i)) > 0);
    json_decref(json);
    reply_free(&r);
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        r = post(&other, EMBED, bad[i].body);
        assert_int_equal(r.status, 400);
        if (!strstr(r.body, bad[i].part)) fail_msg("%s: %s", bad[i].part, r.body);
        reply_free(&r);
    }
    assert_int_equal(stop_serving(&other, SIGTERM), 0);
}

// The number of tokens in the files is less than the context.
static void texts_are_cut_where_the_models_folder_says(void **state)
{
    (void)state;
    static const char text[] = "{\"input\": [\"Hello there, my friend of the garden.\"]}";
    char *folder = sentence_folder("cut", "{\"max_seq_length\": 6}", "{\"truncate_dim\": 5}");
    served other = serve(folder, "--threads 1");
    reply r = post(&other, EMBED, text);
    if (r.status != 200) fail_msg("%d %s", r.status, r.body);
    json_t *json = reply_json(&r);
    const json_t *usage = json_object_get(json, "usage");
    assert_int_equal(json_integer_value(json_object_get(usage, "prompt_tokens")), 6);
    assert_int_equal(json_array_size(vector_of(json, 0)), 5);
    json_decref(json);
    reply_free(&r);
    assert_int_equal(stop_serving(&other, SIGTERM), 0);
    free(folder);
}

static void an_encoder_decoder_answers_completions(void **state)
{
    (void)state;
    served other = serve(shared_path("goldens/hf/t5"), "--threads 1 --parallel 2");
    char *first = NULL;
    for (int i = 0; i < 3; i++) {   // by either session, after it has served another text
        reply r =
            post(&other, "/v1/completions",
                 i == 1 ? "{\"prompt\": \"Bye.\", \"max_tokens\": 6}"
                        : "{\"prompt\": \"Hello there.\", \"max_tokens\": 6, \"temperature\": 0, \"logprobs\": 0}");
        if (r.status != 200) fail_msg("%d %s", r.status, r.body);
        json_t *json = reply_json(&r);
        json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
        char *text = json_dumps(choice, JSON_SORT_KEYS);
        if (i == 0) first = text;
        if (i == 2) assert_string_equal(text, first);
        if (i > 0) free(text);
        json_decref(json);
        reply_free(&r);
    }
    free(first);
    reply r = post(&other, "/v1/chat/completions", "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}");
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "does not chat"));
    reply_free(&r);
    r = post(&other, EMBED, "{\"input\": \"Hello.\"}");
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_int_equal(stop_serving(&other, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_becomes_a_vector_of_length_one),
        cmocka_unit_test(lists_of_texts_and_of_tokens_keep_their_order),
        cmocka_unit_test(base64_holds_the_same_floats),
        cmocka_unit_test(dimensions_cut_and_normalize_again),
        cmocka_unit_test(many_inputs_take_many_steps),
        cmocka_unit_test(bad_requests_are_refused_by_name),
        cmocka_unit_test(an_encoder_gives_embeddings_and_no_text),
        cmocka_unit_test(a_masked_lm_head_gives_sparse_vectors),
        cmocka_unit_test(texts_are_cut_where_the_models_folder_says),
        cmocka_unit_test(an_encoder_decoder_answers_completions),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

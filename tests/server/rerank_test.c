// SPDX-License-Identifier: MIT
// /v1/rerank, of a cross-encoder.
#include "support/classifier.h"
#include "support/served_posix.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

#define RERANK "/v1/rerank"

static served s;

static int start_server(void **state)
{
    (void)state;
    float out[1][CLASSIFIER_WIDTH], bias[1];
    char *folder = make_classifier("ranker", 1, out, bias);
    s = serve(folder, "--parallel 2 --threads 1 --ctx 64");
    free(folder);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static json_t *ask(const char *path, const char *body)
{
    reply r = post(&s, path, body);
    if (r.status != 200) fail_msg("%s: %d %s", body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static const json_t *result_of(const json_t *json, size_t i)
{
    return json_array_get(json_object_get(json, "results"), i);
}

static double score_of(const json_t *json, size_t i)
{
    return json_real_value(json_object_get(result_of(json, i), "relevance_score"));
}

static long long index_of(const json_t *json, size_t i)
{
    return json_integer_value(json_object_get(result_of(json, i), "index"));
}

static void documents_are_sorted_by_their_scores(void **state)
{
    (void)state;
    json_t *json = ask(RERANK, "{\"model\": \"ranker\", \"query\": \"the king\", \"documents\": [\"a fish\", \"the old "
                               "king\", {\"text\": \"the queen of the sea\"}, \"\"]}");
    assert_string_equal(json_string_value(json_object_get(json, "object")), "list");
    assert_int_equal(json_array_size(json_object_get(json, "results")), 4);
    assert_true(json_integer_value(json_object_get(json_object_get(json, "usage"), "total_tokens")) > 12);
    bool seen[4] = {false};
    for (size_t i = 0; i < 4; i++) {
        assert_in_range(index_of(json, i), 0, 3);
        seen[index_of(json, i)] = true;
        assert_true(score_of(json, i) > 0 && score_of(json, i) < 1 &&
                    (i == 0 || score_of(json, i) <= score_of(json, i - 1)));
        assert_null(json_object_get(result_of(json, i), "document"));
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    // The best two, with their texts and raw scores.
    json_t *two =
        ask("/reranking", "{\"query\": \"the king\", \"documents\": [\"a fish\", \"the old king\", {\"text\": "
                          "\"the queen of the sea\"}, \"\"], \"top_n\": 2, \"return_documents\": true, "
                          "\"raw_scores\": true}");
    static const char *const texts[] = {"a fish", "the old king", "the queen of the sea", ""};
    assert_int_equal(json_array_size(json_object_get(two, "results")), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(index_of(two, i), index_of(json, i));
        assert_true(fabs(1 / (1 + exp(-score_of(two, i))) - score_of(json, i)) < 1e-5);
        const json_t *document = json_object_get(result_of(two, i), "document");
        assert_string_equal(json_string_value(json_object_get(document, "text")), texts[index_of(two, i)]);
    }
    json_decref(json);
    json_decref(two);
}

static void bad_requests_are_refused_by_their_field(void **state)
{
    (void)state;
    static const struct {
        const char *body, *param, *code, *part;
    } cases[] = {
        {"{\"documents\": [\"a\"]}", "query", "missing_required_parameter", NULL},
        {"{\"query\": 5, \"documents\": [\"a\"]}", "query", "invalid_type", NULL},
        {"{\"query\": \"a\"}", "documents", "missing_required_parameter", NULL},
        {"{\"query\": \"a\", \"documents\": \"b\"}", "documents", "invalid_type", "a list of texts"},
        {"{\"query\": \"a\", \"documents\": []}", "documents", "invalid_value", "0 texts; expected 1 to 2048"},
        {"{\"query\": \"a\", \"documents\": [\"b\", 5]}", "documents", "invalid_type", "documents[1]"},
        {"{\"query\": \"a\", \"documents\": [{\"title\": \"b\"}]}", "documents", "invalid_type", "documents[0]"},
        {"{\"query\": \"a\", \"documents\": [\"b\"], \"top_n\": 0}", "top_n", "invalid_value", NULL},
        {"{\"query\": \"a\", \"documents\": [\"a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a "
         "a "
         "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a\"]}",
         "documents", "context_length_exceeded", "the model's context is 64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reply r = post(&s, RERANK, cases[i].body);
        json_t *json = reply_json(&r);
        const json_t *error = json_object_get(json, "error");
        assert_int_equal(r.status, 400);
        assert_string_equal(json_string_value(json_object_get(error, "param")), cases[i].param);
        assert_string_equal(json_string_value(json_object_get(error, "code")), cases[i].code);
        if (cases[i].part) assert_non_null(strstr(json_string_value(json_object_get(error, "message")), cases[i].part));
        json_decref(json);
        reply_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_sorted_by_their_scores),
        cmocka_unit_test(bad_requests_are_refused_by_their_field),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

// SPDX-License-Identifier: MIT
// Parts of frit bench --requests: percentiles, when requests begin, their prompts, and events of a server's stream.
#include "frit/bench/load.h"

#include "support/support.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- figures

static void expect_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9 * (1 + fabs(expected))) fail_msg("%.12g, expected %.12g", value, expected);
}

// The expected values are those of numpy.percentile.
static void percentiles_are_interpolated(void **state)
{
    (void)state;
    const double four[] = {1, 2, 3, 4}, uneven[] = {1, 10, 100, 1000, 10000};
    expect_near(load_percentile(four, 4, 50), 2.5);
    expect_near(load_percentile(four, 4, 90), 3.7);
    expect_near(load_percentile(four, 4, 99), 3.97);
    expect_near(load_percentile(four, 4, 0), 1);
    expect_near(load_percentile(four, 4, 100), 4);
    expect_near(load_percentile(uneven, 5, 90), 6400);
    expect_near(load_percentile(uneven, 5, 95), 8200);
    expect_near(load_percentile(four, 1, 99), 1);
    expect_near(load_percentile(four, 0, 99), 0);
}

static void a_summary_sorts_its_values(void **state)
{
    (void)state;
    load_series series = {0};
    const double values[] = {9, 2, 7, 4, 4, 5, 4, 5};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) assert_true(load_series_add(&series, values[i]));
    const load_summary s = load_summarize(&series);
    expect_near(s.mean, 5);
    expect_near(s.sd, 2);
    expect_near(s.median, 4.5);
    expect_near(s.p90, 7.6);
    expect_near(s.max, 9);
    free(series.items);
    const load_summary none = load_summarize(&(load_series){0});
    expect_near(none.mean + none.sd + none.p99 + none.max, 0);
}

static load_answer answer_at(double sent, const double *times, size_t n)
{
    load_answer answer = {0};
    load_answer_begin(&answer, sent);
    for (size_t i = 0; i < n; i++) assert_true(load_answer_note(&answer, times[i]));
    return answer;
}

static void times_of_an_answer(void **state)
{
    (void)state;
    load_result result = {0};
    const load_case load = {.n_in = 10, .n_out = 9};
    const double times[] = {1.5, 1.6, 1.9, 2.3};
    load_answer answer = answer_at(1, times, 4);
    answer.n_in = 11;
    answer.n_out = 9;   // events of more than one token
    answer.n_cached = 5;
    assert_true(load_result_add(&result, &load, &answer));
    expect_near(result.ttft.items[0], 0.5);
    expect_near(result.e2el.items[0], 1.3);
    expect_near(result.tpot.items[0], 0.1);   // (1.3 - 0.5) / 8
    assert_int_equal(result.itl.n, 3);
    expect_near(result.itl.items[2], 0.4);
    assert_int_equal(result.n_in, 11);
    assert_int_equal(result.n_out, 9);
    assert_int_equal(result.n_cached, 5);
    assert_int_equal(result.n_short, 0);
    assert_int_equal(result.n_by_usage, 1);
    expect_near(load_result_peak(&result), 9 * 0.75);   // three of four events within the second from 1 to 2
    load_answer_begin(&answer, 3);                      // a server that does not count: events are tokens
    assert_true(load_answer_note(&answer, 3.25));
    assert_true(load_result_add(&result, &load, &answer));
    assert_int_equal(result.n_by_events, 1);
    assert_int_equal(result.n_in, 21);
    assert_int_equal(result.n_out, 10);
    assert_int_equal(result.n_short, 1);
    assert_int_equal(result.tpot.n, 1);   // one token has no time after the first
    load_answer_free(&answer);
    load_result_free(&result);
}

static void errors_are_counted_by_kind(void **state)
{
    (void)state;
    load_result result = {0};
    for (int i = 0; i < 3; i++) load_result_fail(&result, "HTTP 429", i == 0 ? "the queue is full" : "another one");
    load_result_fail(&result, "connection lost", "why");
    assert_int_equal(result.n_failed, 4);
    assert_int_equal(result.n_errors, 2);
    assert_int_equal(result.errors[0].n, 3);
    assert_string_equal(result.errors[0].example, "the queue is full");
    for (int i = 0; i < 2 * LOAD_MAX_ERRORS; i++) {
        char kind[16];
        snprintf(kind, sizeof kind, "HTTP %d", 500 + i);
        load_result_fail(&result, kind, "");
    }
    int64_t n = 0;
    for (int i = 0; i < result.n_errors; i++) n += result.errors[i].n;
    assert_int_equal(result.n_errors, LOAD_MAX_ERRORS);
    assert_int_equal(n, result.n_failed);
}

// ---------------------------------------------------------------------------------------- requests

static void requests_arrive_at_the_rate(void **state)
{
    (void)state;
    enum { N = 20000 };
    load_case a = {.n_requests = N, .rate = 40, .seed = 7}, b = a, c = a, all = {.n_requests = 5, .seed = 7};
    c.seed = 8;
    assert_true(load_case_init(&a) && load_case_init(&b) && load_case_init(&c) && load_case_init(&all));
    assert_memory_equal(a.arrivals, b.arrivals, N * sizeof(double));
    assert_true(a.arrivals[0] == 0 && a.arrivals[1] > 0 && a.arrivals[1] != c.arrivals[1]);
    double squares = 0;
    const double mean = a.arrivals[N - 1] / (N - 1);
    for (int i = 1; i < N; i++) {
        assert_true(a.arrivals[i] > a.arrivals[i - 1]);
        squares += pow(a.arrivals[i] - a.arrivals[i - 1] - mean, 2) / (N - 1);
    }
    assert_true(fabs(mean * 40 - 1) < 0.03);              // four standard errors
    assert_true(fabs(sqrt(squares) / mean - 1) < 0.05);   // exponential: as wide as its mean
    for (int i = 0; i < 5; i++) assert_true(all.arrivals[i] == 0);
    load_case_deinit(&a);
    load_case_deinit(&b);
    load_case_deinit(&c);
    load_case_deinit(&all);
}

static void prompts_are_functions_of_the_seed(void **state)
{
    (void)state;
    enum { N = 64, SHARED = 16 };
    frit_token a[N], b[N], c[N];
    load_case load = {.n_in = N, .n_shared = SHARED, .n_vocab = 100, .seed = 1};
    load_case_prompt(&load, 3, a);
    load_case_prompt(&load, 3, b);
    assert_memory_equal(a, b, sizeof a);
    load.first = 2;   // of a later round
    load_case_prompt(&load, 1, b);
    assert_memory_equal(a, b, sizeof a);
    load_case_prompt(&load, 2, b);
    assert_memory_equal(a, b, SHARED * sizeof *a);
    assert_memory_not_equal(a + SHARED, b + SHARED, (N - SHARED) * sizeof *a);
    load.seed = 2;
    load_case_prompt(&load, 1, c);
    assert_memory_not_equal(a, c, SHARED * sizeof *a);
    for (int i = 0; i < N; i++) assert_true(a[i] >= 0 && a[i] < 100);
    load.n_shared = N;
    load_case_prompt(&load, 1, a);
    load_case_prompt(&load, 2, b);
    assert_memory_equal(a, b, sizeof a);
}

static void requests_with_a_grammar_alternate(void **state)
{
    (void)state;
    static const double shares[] = {0, 0.1, 0.25, 0.5, 0.9, 1};
    for (size_t i = 0; i < FRIT_COUNT(shares); i++) {
        const load_case load = {.structured = shares[i]};
        int n = 0, longest = 0;
        for (int32_t k = 0, run = 0; k < 40; k++) {
            const bool is = load_case_is_structured(&load, k);
            n += is;
            run = is ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
        assert_int_equal(n, (int)(40 * shares[i] + 0.5));
        if (shares[i] <= 0.5) assert_true(longest <= 1);
    }
}

static void grammars_are_fields_of_openai_and_vllm(void **state)
{
    (void)state;
    static const struct {
        const char *option, *text, *expected;
    } rows[] = {
        {"json-schema", "{\"type\": \"null\"}",
         "{\"a\": 1, \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"answer\", "
         "\"schema\": {\"type\": \"null\"}}}"},
        {"regex", "a\"b", "{\"a\": 1, \"structured_outputs\": {\"regex\": \"a\\\"b\"}"},
        {"structural-tag", "{}", "{\"a\": 1, \"structured_outputs\": {\"structural_tag\": \"{}\"}"},
    };
    char *fields;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        assert_int_equal(load_body_add_grammar(&fields, "{\"a\": 1", rows[i].option, rows[i].text), 0);
        assert_string_equal(fields, rows[i].expected);
        free(fields);
    }
    assert_int_not_equal(load_body_add_grammar(&fields, "{", "json-schema", "{"), 0);
    assert_null(fields);
}

static void bodies_are_json_with_the_prompt(void **state)
{
    (void)state;
    enum { N = 300 };
    char *fields;
    frit_token tokens[N], expected[N];
    assert_int_equal(load_body_fields(&fields, "a \"model\"", "{\"top_k\": 3, \"ignore_eos\": null}"), 0);
    load_case load = {.n_in = N, .n_out = 7, .n_vocab = INT32_MAX, .seed = 3};
    for (int is_text = 0; is_text < 2; is_text++) {
        if (is_text) load.n_vocab = LOAD_WORDS;
        const size_t size = load_body_size(fields, &load);
        char *body = malloc(size);
        assert_non_null(body);
        const size_t n = load_body_write(body, fields, &load, 5, is_text, tokens);
        assert_true(n <= size);
        json_t *json = json_loadb(body, n, 0, NULL);
        const json_t *prompt = json_object_get(json, "prompt");
        assert_string_equal(json_string_value(json_object_get(json, "model")), "a \"model\"");
        assert_int_equal(json_integer_value(json_object_get(json, "max_tokens")), 7);
        assert_int_equal(json_integer_value(json_object_get(json, "top_k")), 3);
        assert_null(json_object_get(json, "ignore_eos"));
        load_case_prompt(&load, 5, expected);
        for (size_t i = 0; i < N && !is_text; i++)
            assert_int_equal(json_integer_value(json_array_get(prompt, i)), expected[i]);
        if (is_text) assert_true(json_string_length(prompt) > 3 * N);
        json_decref(json);
        free(body);
    }
    free(fields);
}

static void the_queue_keeps_rate_and_concurrency(void **state)
{
    (void)state;
    double arrivals[] = {0, 1, 1.5};
    const load_case load = {.n_requests = 3, .n_at_once = 2, .rate = 1, .arrivals = arrivals};
    load_queue queue = {.load = &load};
    assert_true(load_queue_is_due(&queue, 0));
    queue.next = queue.n_running = 1;
    assert_false(load_queue_is_due(&queue, 0.5));
    expect_near(load_queue_wait(&queue, 0.5, 10), 0.5);
    expect_near(load_queue_wait(&queue, 0.5, 0.1), 0.1);
    assert_true(load_queue_is_due(&queue, 2));
    queue.next = queue.n_running = 2;
    assert_false(load_queue_is_due(&queue, 2));   // two are in flight
    expect_near(load_queue_wait(&queue, 2, 10), 10);
    queue.n_running = 1;
    assert_true(load_queue_is_due(&queue, 2));
    expect_near(load_queue_wait(&queue, 2, 10), 0);
    queue.next = 3;
    assert_false(load_queue_is_due(&queue, 9));
}

// ---------------------------------------------------------------------------------------- events

static load_event read_event(const char *text)
{
    load_event event;
    if (!load_event_read(&event, text, strlen(text))) fail_msg("%s: expected an event", text);
    return event;
}

static void events_of_streams(void **state)
{
    (void)state;
    load_event e =
        read_event("{\"id\":\"a\",\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":null}],\"usage\":null}");
    assert_true(e.has_choice && e.has_text && !e.is_end && !e.is_error && e.n_out == -1);
    e = read_event(" {\"choices\" : [ {\"text\" : \"\" , \"finish_reason\" : \"length\" } ] } ");
    assert_true(e.has_choice && !e.has_text && e.is_end);
    e = read_event("{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\\\"}\"},\"finish_reason\":null}]}");
    assert_true(e.has_choice && e.has_text);
    e = read_event("{\"choices\":[],\"usage\":{\"prompt_tokens\":256,\"completion_tokens\":128,\"total_tokens\":384,"
                   "\"prompt_tokens_details\":{\"audio\":[1,{}],\"cached_tokens\":64}}}");
    assert_true(!e.has_choice && e.n_in == 256 && e.n_out == 128 && e.n_cached == 64);
    e = read_event("{\"choices\":[{\"text\":\"a\",\"logprobs\":{\"tokens\":[\"a\"],\"top\":[-1.5e-3,true,false]}}],"
                   "\"usage\":{\"prompt_tokens\":null,\"completion_tokens\":-1,\"prompt_tokens_details\":null}}");
    assert_true(e.has_text && e.n_in == -1 && e.n_out == -1 && e.n_cached == -1);
    e = read_event("{\"error\":{\"code\":500,\"message\":\"no \\\"room\\\"\",\"type\":\"x\"}}");
    assert_true(e.is_error && e.n_message == 11 && memcmp(e.message, "no \\\"room\\\"", 11) == 0);
    e = read_event("{\"error\":\"gone\"}");
    assert_true(e.is_error && e.n_message == 4);
    e = read_event("{\"error\":null,\"choices\":null,\"usage\":7}");
    assert_true(!e.is_error && !e.has_choice);
    e = read_event("{\"choices\":[{\"text\":\"\",\"finish_reason\":\"\"}]}");
    assert_true(e.has_choice && !e.is_end);
    e = read_event("{}");
    assert_true(!e.has_choice && !e.is_error);
    e = read_event("{\"usage\":{\"completion_tokens\":99999999999999999999999999}}");
    assert_true(e.n_out >= INT32_MAX);
}

static void broken_events_are_refused(void **state)
{
    (void)state;
    static const char *const broken[] = {"",
                                         " ",
                                         "[]",
                                         "1",
                                         "{",
                                         "}",
                                         "{\"a\"}",
                                         "{\"a\":}",
                                         "{\"a\":1,}",
                                         "{a:1}",
                                         "{\"a\":1}}",
                                         "{\"a\":1} x",
                                         "{\"a\":nul}",
                                         "{\"a\":nullx}",
                                         "{\"a\":\"\n\"}",
                                         "{\"a\":\"",
                                         "{\"a\":\"\\",
                                         "{\"a\":[1,]}",
                                         "{\"a\":[1}",
                                         "{\"choices\":[{\"text\":\"a}]}",
                                         "{\"choices\":[{\"text\":\"a\"}",
                                         "{\"usage\":{\"prompt_tokens\":}}",
                                         "{\"error\":{\"message\":\"a}}"};
    load_event event;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        if (load_event_read(&event, broken[i], strlen(broken[i]))) fail_msg("'%s' was read", broken[i]);
    assert_false(load_event_read(&event, "{}\0", 3));
    char deep[4096];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    assert_false(load_event_read(&event, deep, sizeof deep));
    const char whole[] =
        "{\"choices\":[{\"text\":\"a\\\"b\",\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":12}}";
    for (size_t n = 0; n + 1 < sizeof whole - 1; n++) assert_false(load_event_read(&event, whole, n));
}

typedef struct said {
    char text[256];
    int n, most;   // most: refuses the one after these
} said;

static bool say(void *ctx, const char *data, size_t n)
{
    said *s = ctx;
    snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), "<%.*s>", (int)n, data);
    return ++s->n < s->most;
}

static void lines_may_come_in_any_pieces(void **state)
{
    (void)state;
    const char stream[] =
        ": hello\n\ndata: one\n\ndata:two\r\n\r\nevent: x\rdata:  three\r\rid\ndata\ndata:\ndata: [DONE]\n\ndata: cut";
    const size_t n = sizeof stream - 1;
    for (size_t cut = 0; cut <= n; cut++) {
        for (size_t second = cut; second <= n; second += 7) {
            load_line_reader lines = {0};
            said s = {.most = 100};
            assert_int_equal(load_line_reader_feed(&lines, stream, cut, say, &s), LOAD_FEED_OK);
            assert_int_equal(load_line_reader_feed(&lines, stream + cut, second - cut, say, &s), LOAD_FEED_OK);
            assert_int_equal(load_line_reader_feed(&lines, stream + second, n - second, say, &s), LOAD_FEED_OK);
            assert_string_equal(s.text, "<one><two>< three><><[DONE]>");
            load_line_reader_free(&lines);
        }
    }
}

static void lines_end_where_their_reader_stops(void **state)
{
    (void)state;
    load_line_reader lines = {0};
    said s = {.most = 2};
    const char stream[] = "data: 1\ndata: 2\ndata: 3\n";
    assert_int_equal(load_line_reader_feed(&lines, stream, sizeof stream - 1, say, &s), LOAD_FEED_STOPPED);
    assert_string_equal(s.text, "<1><2>");
    load_line_reader_free(&lines);
    char *piece = calloc(1, LOAD_MAX_LINE);
    assert_non_null(piece);
    memset(piece, 'a', LOAD_MAX_LINE);
    assert_int_equal(load_line_reader_feed(&lines, piece, LOAD_MAX_LINE, say, &s), LOAD_FEED_OK);
    assert_int_equal(load_line_reader_feed(&lines, piece, 1, say, &s), LOAD_FEED_TOO_LONG);
    load_line_reader_free(&lines);
    free(piece);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_interpolated),
        cmocka_unit_test(a_summary_sorts_its_values),
        cmocka_unit_test(times_of_an_answer),
        cmocka_unit_test(errors_are_counted_by_kind),
        cmocka_unit_test(requests_arrive_at_the_rate),
        cmocka_unit_test(prompts_are_functions_of_the_seed),
        cmocka_unit_test(requests_with_a_grammar_alternate),
        cmocka_unit_test(grammars_are_fields_of_openai_and_vllm),
        cmocka_unit_test(bodies_are_json_with_the_prompt),
        cmocka_unit_test(the_queue_keeps_rate_and_concurrency),
        cmocka_unit_test(events_of_streams),
        cmocka_unit_test(broken_events_are_refused),
        cmocka_unit_test(lines_may_come_in_any_pieces),
        cmocka_unit_test(lines_end_where_their_reader_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Limits of the memory and the time of a request.
#include "support/events_posix.h"
#include "support/scripted_model.h"
#include "support/tool_model.h"

#include <string.h>
#include <time.h>

#define RESPONSES "/v1/responses"

static served start(const char *more)
{
    char options[256];
    const char *path = temp_path("bounds.gguf");
    tool_model(path);
    snprintf(options, sizeof options, "--parallel 1 --threads 1 --ctx 1024 %s", more);
    return serve(path, options);
}

// The server's peak memory in MiB.
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

// Two million tokens: as JSON objects they took 1.7 GB.
static void pieces_of_a_long_text_take_little_memory(void **state)
{
    (void)state;
    enum { N = (1 << 20) / FRIT_TEST_STRIDE };
    served s = start("");
    const long before = peak_mib(&s);
    char *body = malloc(2 * N + 100);
    int n = sprintf(body, "{\"with_pieces\": true, \"content\": \"");
    for (int i = 0; i < 2 * N; i++) body[n + i] = i % 2 ? '5' : '~';
    strcpy(body + n + 2 * N, "\"}");
    reply r = post(&s, "/tokenize", body);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    const json_int_t count = json_integer_value(json_object_get(json, "count"));
    assert_true(count >= N);
    assert_int_equal(json_array_size(json_object_get(json, "tokens")), count);
    json_decref(json);
    reply_free(&r);
    free(body);
    const long taken = peak_mib(&s) - before;
    print_message("%lld tokens with pieces: %ld MiB\n", (long long)count, taken);
    if (FRIT_TEST_STRIDE == 1) assert_true(taken < 250);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Pieces that are not UTF-8, and pieces that JSON escapes.
static void tokens_and_pieces_are_json(void **state)
{
    (void)state;
    served s = start("");
    json_t *json =
        post_for(&s, "/tokenize", "{\"content\": \"a\\\"b\\\\\\n\\u0001\\u00e9 <think>\", \"with_pieces\": true}", 200);
    json_t *plain = post_for(&s, "/tokenize", "{\"content\": \"a\\\"b\\\\\\n\\u0001\\u00e9 <think>\"}", 200);
    const size_t n = json_array_size(value_in(json, "tokens"));
    assert_true(n > 5);
    assert_int_equal(json_array_size(value_in(plain, "tokens")), n);
    char bytes[64] = "";
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *token = json_array_get(value_in(json, "tokens"), i), *piece = json_object_get(token, "piece");
        assert_true(json_equal(json_object_get(token, "id"), json_array_get(value_in(plain, "tokens"), i)));
        for (size_t k = 0; k < json_array_size(piece); k++)
            bytes[n_bytes++] = (char)json_integer_value(json_array_get(piece, k));
        memcpy(bytes + n_bytes, json_string_value(piece) ? json_string_value(piece) : "", json_string_length(piece));
        n_bytes += json_string_length(piece);
    }
    assert_non_null(strstr(bytes, "a\"b\\\n\1\xc3\xa9"));   // blanks are those of the vocabulary
    assert_non_null(strstr(bytes, "<think>"));
    expect_int_in(json, "count", (json_int_t)n);
    json_decref(json);
    json_decref(plain);
    json = post_for(&s, "/tokenize", "{\"content\": \"\"}", 200);
    assert_int_equal(json_array_size(value_in(json, "tokens")), 0);
    json_decref(json);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- stored conversations

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// A request with n_turns turns, which continues `previous` (NULL: none).
static json_t *post_turns(const served *s, int n_turns, const char *previous, const char *more)
{
    static const char turn[] = "{\"role\": \"user\", \"content\": \"x\"}";
    char *body = malloc((size_t)n_turns * (sizeof turn + 2) + 512);
    int n = sprintf(body, "{\"max_output_tokens\": 1%s, \"input\": [", more);
    for (int i = 0; i < n_turns; i++) n += sprintf(body + n, "%s%s", i > 0 ? ", " : "", turn);
    n += sprintf(body + n, "]");
    if (previous) n += sprintf(body + n, ", \"previous_response_id\": \"%s\"", previous);
    strcpy(body + n, "}");
    json_t *json = post_for(s, RESPONSES, body, 200);
    free(body);
    return json;
}

// Requests that continue each other stay within the limits of one: the stored conversation stays small.
static void a_chain_of_long_requests_stays_cheap(void **state)
{
    (void)state;
    enum { N_TURNS = 40000, N_LINKS = 6 };
    char previous[128] = "";
    served s = start("");
    double longest = 0, first = 0;
    for (int i = 0; i < N_LINKS; i++) {
        json_t *json = post_turns(&s, N_TURNS, i > 0 ? previous : NULL, ", \"truncation\": \"auto\"");
        snprintf(previous, sizeof previous, "%s", text_in(json, "id"));
        assert_true(json_is_true(value_in(json, "store")));
        json_decref(json);
        const double begin = seconds();
        json_decref(post_turns(&s, 1, previous, ", \"truncation\": \"auto\", \"store\": false"));
        const double took = seconds() - begin;
        if (i == 0) first = took;
        if (took > longest) longest = took;
    }
    const long mib = peak_mib(&s);
    print_message("a short request after %d long ones: %.2f s, after one %.2f s; %ld MiB at most\n", N_LINKS, longest,
                  first, mib);
    assert_true(longest < 3 * first + 2);
    if (FRIT_TEST_STRIDE == 1) assert_true(mib < 600);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// The template shows only the last message, so conversations of any length fit.
static void what_is_too_long_to_be_stored_says_so(void **state)
{
    (void)state;
    enum { N_TURNS = 60000 };
    static const script scripts[] = {{"x", {"yes"}}};
    const char *path = temp_path("last.gguf");
    scripted_model(path, "{{ messages[-1].content }}", scripts, 1);
    served s = serve(path, "--parallel 1 --threads 1");
    json_t *json = post_turns(&s, N_TURNS, NULL, ", \"truncation\": \"disabled\"");
    assert_true(json_is_false(value_in(json, "store")));
    char body[256];
    snprintf(body, sizeof body, "{\"input\": \"x\", \"previous_response_id\": \"%s\"}", text_in(json, "id"));
    json_decref(json);
    json = post_for(&s, RESPONSES, body, 400);
    expect_text_in(json, "error.code", "previous_response_not_found");
    json_decref(json);
    json = post_turns(&s, 100, NULL, ", \"truncation\": \"disabled\"");
    assert_true(json_is_true(value_in(json, "store")));
    json_decref(json);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_a_long_text_take_little_memory),
        cmocka_unit_test(tokens_and_pieces_are_json),
        cmocka_unit_test(a_chain_of_long_requests_stays_cheap),
        cmocka_unit_test(what_is_too_long_to_be_stored_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

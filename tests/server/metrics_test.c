// SPDX-License-Identifier: MIT
// The metrics after known requests.
#include "support/events_posix.h"
#include "support/tool_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ASK(word) "\"messages\": [{\"role\": \"user\", \"content\": \"" word "\"}]"

static served s;

static int start_server(void **state)
{
    (void)state;
    const char *path = temp_path("scripted.gguf");
    tool_model(path);
    s = serve(path, "--parallel 2 --threads 1 --temp 0 --alias 'na\"me'");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static char *metrics(void)
{
    reply r = get(&s, "/metrics");
    assert_int_equal(r.status, 200);
    assert_memory_equal(reply_header(&r, "Content-Type"), "text/plain; version=0.0.4", 25);
    char *text = strdup(r.body);
    reply_free(&r);
    return text;
}

// Returns the value of a line that begins with `start`; fails the test if it is absent.
static double value_of(const char *text, const char *start)
{
    const size_t n = strlen(start);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, start, n) == 0) return strtod(line + strcspn(line, "}") + 1, NULL);
    fail_msg("no %s", start);
    return 0;
}

#define M "{model_name=\"na\\\"me\""

static void requests_are_counted(void **state)
{
    (void)state;
    char *before = metrics();
    json_t *first = post_for(&s, "/v1/chat/completions", "{" ASK("weather") "}", 200);
    json_t *second = post_for(&s, "/v1/chat/completions", "{\"max_tokens\": 3, " ASK("weather") "}", 200);
    char *after = metrics();
    const double n_prompt = json_integer_value(value_in(first, "usage.prompt_tokens"));
    const double n_answer = json_integer_value(value_in(first, "usage.completion_tokens"));
    const struct {
        const char *start;
        double grows;
    } rows[] = {
        {"vllm:prompt_tokens_total" M, 2 * n_prompt},
        {"vllm:generation_tokens_total" M, n_answer + 3},
        {"vllm:prefix_cache_queries_total" M, 2 * n_prompt},
        {"vllm:prefix_cache_hits_total" M,
         (double)json_integer_value(value_in(first, "usage.prompt_tokens_details.cached_tokens")) + n_prompt - 1},
        {"vllm:request_success_total" M ",finished_reason=\"stop\"", 1},
        {"vllm:request_success_total" M ",finished_reason=\"length\"", 1},
        {"vllm:request_success_total" M ",finished_reason=\"abort\"", 0},
        {"vllm:time_to_first_token_seconds_count" M, 2},
        {"vllm:inter_token_latency_seconds_count" M, n_answer - 1 + 2},
        {"vllm:e2e_request_latency_seconds_count" M, 2},
        {"vllm:request_queue_time_seconds_count" M, 2},
        {"vllm:request_prefill_time_seconds_count" M, 2},
        {"vllm:request_decode_time_seconds_count" M, 2},
        {"vllm:request_inference_time_seconds_count" M, 2},
        {"vllm:request_time_per_output_token_seconds_count" M, 2},
        {"vllm:request_prompt_tokens_sum" M, 2 * n_prompt},
        {"vllm:request_generation_tokens_sum" M, n_answer + 3},
        {"vllm:request_generation_tokens_bucket" M ",le=\"5\"", 1},
        {"vllm:request_generation_tokens_bucket" M ",le=\"+Inf\"", 2},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const double found = value_of(after, rows[i].start) - value_of(before, rows[i].start);
        if (fabs(found - rows[i].grows) > 1e-9) fail_msg("%s: %g more, not %g", rows[i].start, found, rows[i].grows);
    }
    // All tokens of both requests, without cached tokens and without the last token of each answer.
    const double n_ran =
        value_of(after, "vllm:iteration_tokens_total_sum" M) - value_of(before, "vllm:iteration_tokens_total_sum" M);
    const double n_cached =
        value_of(after, "vllm:prefix_cache_hits_total" M) - value_of(before, "vllm:prefix_cache_hits_total" M);
    const double n_rejected = value_of(after, "vllm:spec_decode_num_draft_tokens_total" M) -
                              value_of(after, "vllm:spec_decode_num_accepted_tokens_total" M);
    assert_true(n_ran - n_rejected == 2 * n_prompt - n_cached + n_answer - 1 + 2);
    assert_true(value_of(after, "frit_step_sessions_sum" M) == value_of(after, "frit_step_sessions_count" M));
    assert_true(value_of(after, "frit_steps_total" M) > value_of(before, "frit_steps_total" M));
    assert_true(value_of(after, "frit_sessions" M) == 2);
    assert_true(value_of(after, "vllm:num_requests_running" M) == 0);
    assert_true(value_of(after, "vllm:kv_cache_usage_perc" M) == 0);
    json_decref(first);
    json_decref(second);
    free(before);
    free(after);
}

static void requests_that_run_are_seen(void **state)
{
    (void)state;
    // The answer is larger than all buffers between the server and the client, which does not read.
    char *text = post_text("/v1/chat/completions", "",
                           "{\"stream\": true, \"regex\": \"a*\", \"logit_bias\": {\"2\": -100}, \"logprobs\": true, "
                           "\"top_logprobs\": 20, " ASK("weather") "}");
    const int fd = connect_to(&s), small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    send_text(fd, text);
    char some[64];
    assert_true(read_some(fd, some, sizeof some, 20000) > 0);
    char *during = metrics();
    assert_true(value_of(during, "vllm:num_requests_running" M) == 1);
    double use = 0;
    for (int i = 0; i < 500 && use == 0; i++) {   // the first step's use may not be known yet
        free(during);
        during = metrics();
        use = value_of(during, "vllm:kv_cache_usage_perc" M);
    }
    assert_true(use > 0 && use <= 1);
    close(fd);
    expect_health(&s, "running", 0);
    char *after = metrics();
    assert_true(value_of(after, "vllm:request_success_total" M ",finished_reason=\"abort\"") == 1);
    free(during);
    free(after);
    free(text);
}

// Each line is a comment or NAME{LABELS} NUMBER, each name has its type before it, and buckets do not shrink.
static void the_text_is_prometheus(void **state)
{
    (void)state;
    char *text = metrics(), family[128] = "", bucket[128] = "";
    double last = 0;
    int n_types = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char name[128], kind[32];
        if (sscanf(line, "# TYPE %127s %31s", name, kind) == 2) {
            assert_true(strcmp(kind, "counter") == 0 || strcmp(kind, "gauge") == 0 || strcmp(kind, "histogram") == 0);
            snprintf(family, sizeof family, "%s", name);
            n_types++;
        }
        if (*line == '#') continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(line, "{ "), line);
        if (strncmp(name, family, strlen(family)) != 0) fail_msg("%s is not of %s", line, family);
        char *end;
        const char *number = strrchr(line, ' ');
        assert_non_null(number);
        const double value = strtod(number, &end);
        if (*end || end == number + 1) fail_msg("no number: %s", line);
        if (!strstr(name, "_bucket")) continue;
        if (strcmp(bucket, name) == 0 && value < last) fail_msg("a bucket shrinks: %s", line);
        snprintf(bucket, sizeof bucket, "%s", name);
        last = value;
    }
    assert_true(n_types >= 20);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_counted),
        cmocka_unit_test(requests_that_run_are_seen),
        cmocka_unit_test(the_text_is_prometheus),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

// SPDX-License-Identifier: MIT
// frit bench --url against a running frit serve.
#include "support/command_posix.h"
#include "support/served_posix.h"

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("%s is missing", name);
    return json_number_value(value);
}

static void a_running_server_is_measured(void **state)
{
    (void)state;
    char arguments[256];
    served s = serve(project_path("models/fable.gguf"), "--parallel 4 --max-queue 64");
    snprintf(
        arguments, sizeof arguments,
        "bench -q --json --url http://127.0.0.1:%d --requests 12 --in 40 --out 6 --concurrency 3,0 --shared-prefix 32 "
        "--warmup 1",
        s.port);
    outcome o = frit(arguments, NULL);
    const int code = stop_serving(&s, SIGTERM);
    if (strstr(o.err, "without libcurl")) skip_because("this build has no libcurl");
    if (o.code != 0) fail_msg("code %d: %s", o.code, o.err);
    assert_int_equal(code, 0);
    json_t *list = json_loads(o.out, 0, NULL);
    assert_int_equal(json_array_size(list), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *m = json_array_get(list, i);
        assert_int_equal(number(m, "completed"), 12);
        assert_int_equal(number(m, "failed"), 0);
        assert_int_equal(number(m, "total_input_tokens"), 480);
        assert_int_equal(number(m, "total_output_tokens"), 72);
        assert_int_equal(number(m, "short_answers"), 0);
        assert_int_equal(number(m, "vocab"), 8192);           // as the server says
        assert_true(number(m, "cached_tokens") >= 12 * 32);   // the warm-up has left the shared prefix in the cache
        assert_string_equal(json_string_value(json_object_get(m, "tokens_counted_by")), "usage");
        assert_true(number(m, "median_ttft_ms") > 0 && number(m, "median_e2el_ms") > number(m, "median_ttft_ms"));
    }
    json_decref(list);
    outcome_free(&o);
}

static void a_key_is_sent(void **state)
{
    (void)state;
    char arguments[256];
    served s = serve(project_path("models/fable.gguf"), "--api-key secret");
    snprintf(arguments, sizeof arguments, "bench -q --url http://127.0.0.1:%d --requests 1 --in 4 --out 2 --api-key ",
             s.port);
    char right[300], wrong[300];
    snprintf(right, sizeof right, "%ssecret", arguments);
    snprintf(wrong, sizeof wrong, "%swrong --model fable", arguments);
    outcome o = frit(right, NULL), refused = frit(wrong, NULL);
    stop_serving(&s, SIGTERM);
    if (strstr(o.err, "without libcurl")) skip_because("this build has no libcurl");
    assert_int_equal(o.code, 0);
    assert_int_equal(refused.code, 1);
    assert_non_null(strstr(refused.out, "HTTP 401"));
    outcome_free(&o);
    outcome_free(&refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_server_is_measured),
        cmocka_unit_test(a_key_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

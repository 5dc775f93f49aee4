// SPDX-License-Identifier: MIT
// A server with several models: they are loaded when a request needs them, and unloaded when others need the memory.
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <unistd.h>

#define TEXT "/v1/completions"

enum { LONG_NAME = 20000 };

// Makes a tiny model with weights of its own.
static const char *model(int which)
{
    static char paths[3][1024];
    char name[16];
    const tiny_options options = {.n_ctx = 4096, .seed = (uint64_t)which + 1};
    snprintf(name, sizeof name, "m%d.gguf", which);
    if (!paths[which][0]) snprintf(paths[which], sizeof paths[which], "%s", tiny_model(name, &options));
    return paths[which];
}

static served serve_models(const char *options)
{
    char all[8192];
    snprintf(all, sizeof all, "'two=%s' 'three=%s' --parallel 2 --threads 1 --ctx 256 %s", model(1), model(2), options);
    return serve(model(0), all);
}

// Returns the reply of a model, as JSON; `name` NULL: the request names no model.
static json_t *ask(const served *s, const char *name)
{
    char body[256], field[64] = "";
    if (name) snprintf(field, sizeof field, "\"model\": \"%s\", ", name);
    snprintf(body, sizeof body,
             "{%s\"prompt\": \"abc\", \"temperature\": 0, \"max_tokens\": 24, \"logit_bias\": {\"2\": -100}}", field);
    return post_for(s, TEXT, body, 200);
}

static void expect_same_text(const json_t *a, const json_t *b)
{
    assert_string_equal(text_in(a, "choices.0.text"), text_in(b, "choices.0.text"));
}

static const char *status_of(const served *s, const char *name)
{
    static char value[16];
    char path[128];
    snprintf(path, sizeof path, "/v1/models/%s", name);
    reply r = get(s, path);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    snprintf(value, sizeof value, "%s", text_in(json, "status.value"));
    assert_int_equal(json_is_null(value_in(json, "meta")), strcmp(value, "loaded") != 0);
    json_decref(json);
    reply_free(&r);
    return value;
}

static void expect_status(const served *s, const char *name, const char *value)
{
    for (int i = 0; i < 6000 && strcmp(status_of(s, name), value) != 0; i++) nap(10);
    assert_string_equal(status_of(s, name), value);
}

// ---------------------------------------------------------------------------------------- by name

static void each_model_answers_as_it_does_alone(void **state)
{
    (void)state;
    served s = serve_models("");
    expect_status(&s, "m0", "loaded");
    expect_status(&s, "two", "unloaded");
    expect_status(&s, "three", "unloaded");
    const char *const names[] = {NULL, "two", "three", "default", "m0", "two:latest"};
    json_t *answers[FRIT_COUNT(names)];
    for (size_t i = 0; i < FRIT_COUNT(names); i++) answers[i] = ask(&s, names[i]);
    expect_text_in(answers[0], "model", "m0");
    expect_text_in(answers[1], "model", "two");
    expect_same_text(answers[3], answers[0]);
    expect_same_text(answers[4], answers[0]);
    expect_same_text(answers[5], answers[1]);
    for (int i = 0; i < 3; i++) {
        served alone = serve(model(i), "--parallel 2 --threads 1 --ctx 256");
        json_t *answer = ask(&alone, NULL);
        expect_same_text(answer, answers[i]);
        json_decref(answer);
        assert_int_equal(stop_serving(&alone, SIGTERM), 0);
    }
    for (size_t i = 0; i < FRIT_COUNT(names); i++) json_decref(answers[i]);
    json_decref(post_for(&s, TEXT, "{\"model\": \"four\", \"prompt\": \"a\"}", 404));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static size_t count_in(const served *s, const char *path, const char *list)
{
    reply r = get(s, path);
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    const size_t n = json_array_size(json_object_get(json, list));
    json_decref(json);
    reply_free(&r);
    return n;
}

static void lists_have_all_models_or_those_that_are_loaded(void **state)
{
    (void)state;
    served s = serve_models("");
    assert_int_equal(count_in(&s, "/v1/models", "data"), 3);
    assert_int_equal(count_in(&s, "/api/tags", "models"), 3);
    assert_int_equal(count_in(&s, "/api/ps", "models"), 1);
    json_decref(ask(&s, "two"));
    assert_int_equal(count_in(&s, "/api/ps", "models"), 2);
    reply r = get(&s, "/metrics");
    assert_non_null(strstr(r.body, "vllm:request_success_total{model_name=\"two\",finished_reason=\"length\"} 1"));
    assert_non_null(strstr(r.body, "vllm:request_success_total{model_name=\"m0\",finished_reason=\"length\"} 0"));
    assert_non_null(strstr(r.body, "frit_model_loaded{model_name=\"three\"} 0"));
    reply_free(&r);
    for (int i = 0; i < 2; i++) {
        r = get(&s, i == 0 ? "/props?model=two" : "/props?model=three");
        assert_int_equal(r.status, i == 0 ? 200 : 503);
        assert_non_null(strstr(r.body, i == 0 ? "\"model_alias\":\"two\"" : "model_not_loaded"));
        reply_free(&r);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void models_are_loaded_and_freed_by_hand(void **state)
{
    (void)state;
    served s = serve_models("");
    const struct {
        const char *path, *body;
        int status;
    } wrong[] = {{"/models/load", "{}", 400},
                 {"/models/load", "{\"model\": \"four\"}", 404},
                 {"/models/load", "{\"model\": 4}", 400},
                 {"/models/load", "{\"model\": \"m0\"}", 400},
                 {"/models/unload", "{\"model\": \"two\"}", 400}};
    for (size_t i = 0; i < FRIT_COUNT(wrong); i++)
        json_decref(post_for(&s, wrong[i].path, wrong[i].body, wrong[i].status));
    json_decref(post_for(&s, "/models/load", "{\"model\": \"two\"}", 200));
    expect_status(&s, "two", "loaded");
    json_decref(post_for(&s, "/models/unload", "{\"model\": \"m0\"}", 200));
    expect_status(&s, "m0", "unloaded");
    json_decref(ask(&s, NULL));   // loads the first model again
    expect_status(&s, "m0", "loaded");
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_model_that_fails_to_load_leaves_the_others(void **state)
{
    (void)state;
    char options[2048], bad[1024];
    snprintf(bad, sizeof bad, "%s", temp_path("bad.gguf"));
    size_t n;
    char *bytes = read_file(model(1), &n);
    write_file(bad, bytes, n / 2);
    free(bytes);
    snprintf(options, sizeof options, "'bad=%s'", bad);
    served s = serve_models(options);
    for (int i = 0; i < 2; i++) {
        reply r = post(&s, TEXT, "{\"model\": \"bad\", \"prompt\": \"a\"}");
        assert_int_equal(r.status, 500);
        assert_non_null(strstr(r.body, "model_load_failed"));
        assert_non_null(strstr(r.body, "The model 'bad' cannot be loaded: "));
        assert_non_null(strstr(r.body, "bad.gguf"));
        if (strchr(r.body, '/')) fail_msg("%s", r.body);   // without the file's folder
        assert_string_equal(reply_header(&r, "X-Should-Retry"), "false");
        reply_free(&r);
        json_decref(ask(&s, "two"));
    }
    reply r = get(&s, "/v1/models/bad");
    json_t *json = reply_json(&r);
    assert_true(json_is_true(value_in(json, "status.failed")));
    json_decref(json);
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static double temperature_of(const served *s, const char *path, int status)
{
    reply r = get(s, path);
    assert_int_equal(r.status, status);
    json_t *json = reply_json(&r), *row;
    double found = -1;
    size_t i;
    json_array_foreach(json, i, row)
    {
        if (strcmp(text_in(row, "name"), "temperature") == 0)
            found = json_number_value(json_object_get(row, "default"));
    }
    json_decref(json);
    reply_free(&r);
    return found;
}

static void sampling_options_are_those_of_a_model(void **state)
{
    (void)state;
    char config[1024], text[4096];
    snprintf(config, sizeof config, "%s", temp_path("models.conf"));
    const int n = snprintf(text, sizeof text,
                           "port = 0\nthreads = 1\nctx = 256\n[one]\npath = %s\ntemp = 0.25\n[two]\npath = %s\n"
                           "temp = 0.75\n",
                           model(0), model(1));
    write_file(config, text, (size_t)n);
    char arguments[1200];
    snprintf(arguments, sizeof arguments, "--config '%s'", config);
    served s = serve_arguments(arguments);
    assert_true(temperature_of(&s, "/sampling", 200) == 0.25);
    assert_true(temperature_of(&s, "/sampling?model=two", 503) == -1);   // it is not loaded
    json_decref(ask(&s, "two"));
    assert_true(temperature_of(&s, "/sampling?model=two", 200) == 0.75);
    assert_true(temperature_of(&s, "/sampling?model=one", 200) == 0.25);
    temperature_of(&s, "/sampling?model=three", 404);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void names_and_files_are_checked_at_the_start(void **state)
{
    (void)state;
    char arguments[4096], said[4096];
    snprintf(arguments, sizeof arguments, "'%s' 'm0=%s' --port 0", model(0), model(1));
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    assert_non_null(strstr(said, "'m0' names two models"));
    snprintf(arguments, sizeof arguments, "'%s' 'a=/nowhere/b.gguf' --port 0", model(0));
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 3);
    assert_non_null(strstr(said, "'/nowhere/b.gguf' does not exist"));
    snprintf(arguments, sizeof arguments, "'%s' '%s' --alias a --port 0", model(0), model(1));
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    assert_non_null(strstr(said, "--alias"));
    snprintf(arguments, sizeof arguments, "'=%s' --port 0", model(0));
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    assert_non_null(strstr(said, "empty"));
}

// ---------------------------------------------------------------------------------------- room

static void so_many_models_are_loaded_at_once(void **state)
{
    (void)state;
    served s = serve_models("--max-models 2");
    static const char *const order[] = {"m0", "two", "three", "m0", "two", "two", "three"};
    json_t *first = ask(&s, "m0");
    for (size_t i = 0; i < FRIT_COUNT(order); i++) {
        json_decref(ask(&s, order[i]));
        assert_string_equal(status_of(&s, order[i]), "loaded");
        assert_true(count_in(&s, "/api/ps", "models") <= 2);
    }
    json_t *again = ask(&s, "m0");
    expect_same_text(again, first);
    json_decref(first);
    json_decref(again);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void idle_models_are_freed_and_come_back(void **state)
{
    (void)state;
    served s = serve_models("--idle-unload 1");
    json_t *first = ask(&s, "two");
    expect_status(&s, "m0", "unloaded");
    expect_status(&s, "two", "unloaded");
    json_t *again = ask(&s, "two");
    expect_same_text(again, first);
    json_decref(first);
    json_decref(again);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// A client that does not read keeps its model loaded. Clients that wait for another model may leave, or wait.
static void a_model_with_requests_is_not_freed(void **state)
{
    (void)state;
    char *options = malloc(LONG_NAME + 4096);
    memset(options, 'n', LONG_NAME);
    sprintf(options + LONG_NAME, "='%s' 'two=%s' --parallel 2 --threads 1 --max-models 1", model(0), model(1));
    char *all = malloc(LONG_NAME + 8192);
    snprintf(all, LONG_NAME + 8192, "%s --idle-unload 1", options);
    served s = serve(model(2), all);   // its last model is neither of these two
    free(options);
    char *body = malloc(LONG_NAME + 512), *name = malloc(LONG_NAME + 1);
    memset(name, 'n', LONG_NAME);
    name[LONG_NAME] = 0;
    sprintf(body,
            "{\"model\": \"%s\", \"prompt\": \"a\", \"temperature\": 0, \"max_tokens\": 1500, \"stream\": true, "
            "\"logit_bias\": {\"2\": -100}}",
            name);
    const int slow = send_post(&s, TEXT, body);
    char byte[1];
    assert_int_equal(read_some(slow, byte, 1, 60000), 1);
    const char *other = "{\"model\": \"two\", \"prompt\": \"a\", \"max_tokens\": 4, \"temperature\": 0}";
    int left = send_post(&s, TEXT, other);
    expect_health(&s, "waiting", 1);
    close(left);
    expect_health(&s, "waiting", 0);
    sprintf(body, "{\"model\": \"%s\"}", name);
    json_decref(post_for(&s, "/models/unload", body, 409));
    assert_int_equal(health(&s, "running"), 1);
    const int waits = send_post(&s, TEXT, other);
    expect_health(&s, "waiting", 1);
    read_until(slow, "[DONE]");
    close(slow);
    reply r = read_reply(waits);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(waits);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    free(all);
    free(body);
    free(name);
}

// ---------------------------------------------------------------------------------------- at once

static void models_that_run_at_once_write_what_they_write_alone(void **state)
{
    (void)state;
    enum { N = 12 };
    served s = serve_models("");
    const char *const names[] = {"m0", "two", "three"};
    json_t *alone[3];
    int fds[N];
    for (int i = 0; i < 3; i++) alone[i] = ask(&s, names[i]);
    for (int i = 0; i < N; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "{\"model\": \"%s\", \"prompt\": \"abc\", \"temperature\": 0, \"max_tokens\": 24, "
                 "\"logit_bias\": {\"2\": -100}}",
                 names[i % 3]);
        fds[i] = send_post(&s, TEXT, body);
    }
    for (int i = 0; i < N; i++) {
        reply r = read_reply(fds[i]);
        assert_int_equal(r.status, 200);
        json_t *json = reply_json(&r);
        expect_same_text(json, alone[i % 3]);
        json_decref(json);
        reply_free(&r);
        close(fds[i]);
    }
    for (int i = 0; i < 3; i++) json_decref(alone[i]);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// Requests for more models than there is room for: models are loaded in turn, and no request waits forever.
static void requests_for_more_models_than_there_is_room_for_are_all_answered(void **state)
{
    (void)state;
    enum { N = 18 };
    served s = serve_models("--max-models 1 --max-queue 64");
    const char *const names[] = {"m0", "two", "three"};
    int fds[N];
    for (int i = 0; i < N; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"model\": \"%s\", \"prompt\": \"abc\", \"max_tokens\": 8}", names[i % 3]);
        fds[i] = send_post(&s, TEXT, body);
    }
    for (int i = 0; i < N; i++) {
        reply r = read_reply(fds[i]);
        if (r.status != 200) fail_msg("%d: %s", r.status, r.body);
        reply_free(&r);
        close(fds[i]);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_model_answers_as_it_does_alone),
        cmocka_unit_test(lists_have_all_models_or_those_that_are_loaded),
        cmocka_unit_test(models_are_loaded_and_freed_by_hand),
        cmocka_unit_test(a_model_that_fails_to_load_leaves_the_others),
        cmocka_unit_test(sampling_options_are_those_of_a_model),
        cmocka_unit_test(names_and_files_are_checked_at_the_start),
        cmocka_unit_test(so_many_models_are_loaded_at_once),
        cmocka_unit_test(idle_models_are_freed_and_come_back),
        cmocka_unit_test(a_model_with_requests_is_not_freed),
        cmocka_unit_test(models_that_run_at_once_write_what_they_write_alone),
        cmocka_unit_test(requests_for_more_models_than_there_is_room_for_are_all_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Responses in a folder: restarts, kills, damage, full disks, limits.
#include "support/events_posix.h"
#include "support/tool_model.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH "/v1/responses"

static const char *model(void)
{
    static char path[1024];
    if (path[0]) return path;
    snprintf(path, sizeof path, "%s", temp_path("stored.gguf"));
    tool_model(path);
    return path;
}

// Makes an empty folder.
static const char *folder(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s", temp_path(name));
    return path;
}

static served serve_in(const char *path, const char *more)
{
    char options[2048];
    snprintf(options, sizeof options, "--parallel 4 --threads 1 --temp 0 --responses-dir '%s' %s", path, more);
    return serve(model(), options);
}

// Lists names of files with this ending, at most `most`; returns their number.
static size_t list(const char *path, const char *ending, char names[][96], size_t most)
{
    size_t n = 0;
    DIR *all = opendir(path);
    assert_non_null(all);
    for (const struct dirent *name = readdir(all); name; name = readdir(all)) {
        const char *dot = strrchr(name->d_name, '.');
        if (!dot || strcmp(dot, ending) != 0 || strlen(name->d_name) >= 96) continue;
        if (n < most) snprintf(names[n], 96, "%s", name->d_name);
        n++;
    }
    closedir(all);
    return n;
}

static int status_of(const served *s, const char *method, const char *id)
{
    char path[256];
    snprintf(path, sizeof path, PATH "/%s", id);
    reply r = reply_to(s, method, path, "", "");
    const int status = r.status;
    reply_free(&r);
    return status;
}

static void responses_are_there_after_a_restart(void **state)
{
    (void)state;
    const char *path = folder("restart");
    char id[64], gone[64], body[256], names[4][96];
    served s = serve_in(path, "");
    json_t *first = post_for(&s, PATH, "{\"input\": \"weather\"}", 200);
    snprintf(id, sizeof id, "%s", text_in(first, "id"));
    json_t *events = post_for_events(&s, PATH, "{\"input\": \"two\", \"stream\": true}");
    const json_t *last = json_array_get(events, json_array_size(events) - 1);
    snprintf(gone, sizeof gone, "%s", text_in(last, "data.response.id"));
    assert_true(json_is_true(value_in(last, "data.response.store")));
    json_decref(events);
    json_decref(post_for(&s, PATH, "{\"input\": \"two\", \"store\": false}", 200));
    assert_int_equal(list(path, ".response", names, 4), 2);
    assert_int_equal(status_of(&s, "DELETE", gone), 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);

    s = serve_in(path, "");
    char where[128];
    snprintf(where, sizeof where, PATH "/%s", id);
    reply r = get(&s, where);
    assert_int_equal(r.status, 200);
    json_t *stored = reply_json(&r);
    assert_true(json_equal(stored, first));
    reply_free(&r);
    assert_int_equal(status_of(&s, "GET", gone), 404);
    snprintf(body, sizeof body,
             "{\"previous_response_id\": \"%s\", \"input\": [{\"type\": \"function_call_output\", \"call_id\": \"c\", "
             "\"output\": \"21\"}]}",
             id);
    r = post(&s, PATH, body);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_int_equal(list(path, ".response", names, 4), 2);
    json_decref(stored);
    json_decref(first);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

enum { N_LANES = 4, N_ROUNDS = 12 };

// Returns the id of an answer that has arrived completely.
static bool acknowledged(reply *r, char id[64])
{
    const char *at = r->complete && r->status == 200 ? strstr(r->body, "\"id\":\"resp_") : NULL;
    if (at) sscanf(at, "\"id\":\"%63[a-z0-9_]", id);
    reply_free(r);
    return at != NULL;
}

// Each connection requests some answers while the server is killed.
static void a_killed_server_loses_nothing_that_it_acknowledged(void **state)
{
    (void)state;
    const char *path = folder("killed");
    static char ids[3 * N_LANES * (N_ROUNDS + 1)][64];
    size_t n = 0;
    for (int kills = 0; kills < 3; kills++) {
        served s = serve_in(path, "");
        int fds[N_LANES];
        char *text = post_text(PATH, "", "{\"input\": \"weather\"}");
        for (int i = 0; i < N_LANES; i++) send_text(fds[i] = connect_to(&s), text);
        for (int round = 0; round < N_ROUNDS; round++) {
            for (int i = 0; i < N_LANES; i++) {
                reply r = read_reply(fds[i]);
                assert_true(acknowledged(&r, ids[n++]));
                send_text(fds[i], text);
            }
        }
        assert_int_equal(stop_serving(&s, SIGKILL), 128 + SIGKILL);
        for (int i = 0; i < N_LANES; i++) {
            reply r = read_reply(fds[i]);
            n += acknowledged(&r, ids[n]);
            close(fds[i]);
        }
        free(text);
        char said[64];
        while (read(s.err, said, sizeof said) > 0) {
        }
        close(s.err);
    }
    // An unfinished answer is no response, and its file is removed.
    char partial[1200], names[1][96];
    snprintf(partial, sizeof partial, "%s/resp_0.partial", path);
    close(open(partial, O_WRONLY | O_CREAT, 0600));
    served s = serve_in(path, "");
    assert_null(strstr(s.said, "warning"));
    assert_true(n >= 3 * N_LANES * N_ROUNDS);
    for (size_t i = 0; i < n; i++)
        if (status_of(&s, "GET", ids[i]) != 200) fail_msg("%s is lost", ids[i]);
    assert_int_equal(list(path, ".partial", names, 1), 0);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void change_file(const char *path, const char *name, long at, const char *bytes, long length)
{
    char whole[1200];
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    const int fd = open(whole, O_RDWR);
    assert_true(fd >= 0);
    if (bytes) assert_int_equal(pwrite(fd, bytes, strlen(bytes), at), strlen(bytes));
    if (length >= 0) assert_int_equal(ftruncate(fd, length), 0);
    close(fd);
}

static void damaged_files_are_skipped_with_a_warning(void **state)
{
    (void)state;
    const char *path = folder("damaged");
    char names[8][96], id[96];
    served s = serve_in(path, "");
    for (int i = 0; i < 5; i++) json_decref(post_for(&s, PATH, "{\"input\": \"weather\"}", 200));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    assert_int_equal(list(path, ".response", names, 8), 5);
    change_file(path, names[0], 0, NULL, 0);              // empty
    change_file(path, names[1], 0, NULL, 200);            // truncated
    change_file(path, names[2], 0, "frit-respond", -1);   // another kind of file
    change_file(path, names[3], 300, "~", -1);            // one changed byte
    s = serve_in(path, "");
    for (int i = 0; i < 3; i++)
        if (!strstr(s.said, names[i])) fail_msg("no warning of %s: %s", names[i], s.said);
    assert_null(strstr(s.said, names[4]));
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "%.*s", (int)(strrchr(names[i], '.') - names[i]), names[i]);
        assert_int_equal(status_of(&s, "GET", id), i < 4 ? 404 : 200);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    assert_non_null(strstr(s.said, "its checksum is wrong"));
    assert_int_equal(list(path, ".response", names, 8), 5);   // kept for inspection
}

// A response in the background was promised to exist.
static void expect_failed(const served *s, const char *id)
{
    char path[256], status[32] = "";
    snprintf(path, sizeof path, PATH "/%s", id);
    for (int i = 0; i < 3000 && strcmp(status, "failed") != 0; i++) {
        reply r = get(s, path);
        if (r.status != 200) fail_msg("%s: %d %s", path, r.status, r.body);
        json_t *json = reply_json(&r);
        snprintf(status, sizeof status, "%s", text_in(json, "status"));
        if (strcmp(status, "failed") == 0) {
            expect_text_in(json, "error.code", "server_error");
            assert_true(json_is_false(value_in(json, "store")));
            assert_int_equal(json_array_size(value_in(json, "output")), 2);
        } else {
            expect_text_in(json, "status", "in_progress");
            nap(10);
        }
        json_decref(json);
        reply_free(&r);
    }
    assert_string_equal(status, "failed");
}

// A limit of the process simulates a full disk.
static void a_full_disk_loses_no_answer_and_the_client_is_told(void **state)
{
    (void)state;
    const char *path = folder("full");
    struct rlimit before, small;
    char names[1][96], id[64];
    (void)model();
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 700;
    setrlimit(RLIMIT_FSIZE, &small);
    served s = serve_in(path, "");
    setrlimit(RLIMIT_FSIZE, &before);
    for (int i = 0; i < 2; i++) {
        json_t *json = post_for(&s, PATH, "{\"input\": \"weather\"}", 200);
        assert_int_equal(json_array_size(value_in(json, "output")), 2);
        assert_true(json_is_false(value_in(json, "store")));
        snprintf(id, sizeof id, "%s", text_in(json, "id"));
        json_decref(json);
        assert_int_equal(status_of(&s, "GET", id), 404);
    }
    json_t *made = post_for(&s, PATH, "{\"input\": \"weather\", \"background\": true}", 200);
    snprintf(id, sizeof id, "%s", text_in(made, "id"));
    json_decref(made);
    expect_failed(&s, id);
    reply r = post(&s, PATH, "{\"input\": \"two\", \"background\": true, \"stream\": true}");
    assert_non_null(strstr(r.body, "event: response.failed\n"));
    assert_null(strstr(r.body, "event: response.completed\n"));
    reply_free(&r);
    assert_int_equal(list(path, ".response", names, 1), 0);
    assert_int_equal(list(path, ".partial", names, 1), 0);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    const char *warning = strstr(s.said, "responses are not stored");
    assert_non_null(warning);
    assert_null(strstr(warning + 1, "responses are not stored"));   // the warning is printed once
}

static void a_folder_has_limits(void **state)
{
    (void)state;
    enum { LONG = 200000, N = 8 };
    const char *path = folder("limits");
    char names[16][96], id[64], first[64] = "";
    char *body = malloc(LONG + 256);
    const int n = sprintf(body, "{\"input\": \"a\", \"max_output_tokens\": 0, \"metadata\": {\"a\": \"");
    memset(body + n, 'x', LONG);
    strcpy(body + n + LONG, "\"}}");
    served s = serve_in(path, "--responses-max 1");
    for (int i = 0; i < N; i++) {
        json_t *json = post_for(&s, PATH, body, 200);
        snprintf(id, sizeof id, "%s", text_in(json, "id"));
        if (i == 0) snprintf(first, sizeof first, "%s", id);
        json_decref(json);
    }
    free(body);
    assert_int_equal(status_of(&s, "GET", first), 404);
    assert_int_equal(status_of(&s, "GET", id), 200);
    assert_in_range(list(path, ".response", names, 16), 2, (1 << 20) / LONG);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    // A response of 1970 is too old.
    char whole[1200];
    snprintf(whole, sizeof whole, "%s/resp_old.response", path);
    FILE *file = fopen(whole, "w");
    fprintf(file, "frit-response 1 0 5 2 2 2 0000000000000000\n{}[]{}");
    fclose(file);
    s = serve_in(path, "--responses-days 30");
    assert_int_equal(status_of(&s, "GET", "resp_old"), 404);
    assert_int_not_equal(access(whole, F_OK), 0);
    assert_int_equal(status_of(&s, "GET", id), 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_folder_that_cannot_be_used_is_an_error(void **state)
{
    (void)state;
    char arguments[4096], said[4096];
    const char *path = folder("plain");
    close(open(path, O_WRONLY | O_CREAT, 0600));
    snprintf(arguments, sizeof arguments, "'%s' --port 0 --responses-dir '%s'", model(), path);
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 1);
    assert_non_null(strstr(said, "--responses-dir"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_are_there_after_a_restart),
        cmocka_unit_test(a_killed_server_loses_nothing_that_it_acknowledged),
        cmocka_unit_test(damaged_files_are_skipped_with_a_warning),
        cmocka_unit_test(a_full_disk_loses_no_answer_and_the_client_is_told),
        cmocka_unit_test(a_folder_has_limits),
        cmocka_unit_test(a_folder_that_cannot_be_used_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Texts of sessions in files: saved, restored after a restart, erased, refused.
#include "support/events_posix.h"
#include "support/tiny_model.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT "/v1/completions"
#define LONG "abcdefgh hgfedcba abcdefgh hgfedcba abcdefgh hgfedcba abcdefgh hgfedcba"

static const char *model(int which)
{
    static char paths[2][1024];
    char name[16];
    const tiny_options options = {.n_ctx = 4096, .seed = (uint64_t)which + 1};
    snprintf(name, sizeof name, "s%d.gguf", which);
    if (!paths[which][0]) snprintf(paths[which], sizeof paths[which], "%s", tiny_model(name, &options));
    return paths[which];
}

static const char *folder(void)
{
    static char path[1024];
    if (!path[0]) {
        snprintf(path, sizeof path, "%s", temp_path("slots"));
        assert_int_equal(mkdir(path, 0700), 0);
    }
    return path;
}

static served serve_slots(int which, const char *more)
{
    char options[4096];
    snprintf(options, sizeof options, "--parallel 2 --threads 1 --ctx 4096 --slot-save-path '%s' %s", folder(), more);
    return serve(model(which), options);
}

typedef struct said {
    char text[256];
    int n_prompt, n_cached;
} said;

static said ask(const served *s, const char *prompt)
{
    char body[512];
    said out = {0};
    snprintf(body, sizeof body,
             "{\"prompt\": \"%s\", \"temperature\": 0, \"max_tokens\": 12, \"logit_bias\": {\"2\": -100}}", prompt);
    json_t *json = post_for(s, TEXT, body, 200);
    snprintf(out.text, sizeof out.text, "%s", text_in(json, "choices.0.text"));
    out.n_prompt = (int)json_integer_value(value_in(json, "usage.prompt_tokens"));
    out.n_cached = (int)json_integer_value(value_in(json, "usage.prompt_tokens_details.cached_tokens"));
    json_decref(json);
    return out;
}

// Returns the number of tokens in the reply; -1: none. Repeats the request while the slot is busy (409), unless 409 is
// expected.
static int change(const served *s, const char *slot, const char *action, const char *name, int status)
{
    static const char *const names[] = {"n_saved", "n_restored", "n_erased"};
    char path[128], body[256];
    snprintf(path, sizeof path, "/slots/%s?action=%s", slot, action);
    snprintf(body, sizeof body, "{\"filename\": \"%s\"}", name);
    reply r = post(s, path, body);
    for (int i = 0; i < 6000 && r.status == 409 && status != 409; i++) {
        reply_free(&r);
        nap(10);
        r = post(s, path, body);
    }
    if (r.status != status) fail_msg("%s %s: %d %s", path, body, r.status, r.body);
    json_t *json = reply_json(&r);
    int n = -1;
    for (size_t i = 0; i < FRIT_COUNT(names); i++)
        if (json_object_get(json, names[i])) n = (int)json_integer_value(json_object_get(json, names[i]));
    json_decref(json);
    reply_free(&r);
    return n;
}

// ---------------------------------------------------------------------------------------- there and back

static void a_restored_text_does_not_run_again(void **state)
{
    (void)state;
    served s = serve_slots(0, "");
    const said first = ask(&s, LONG);
    assert_int_equal(first.n_cached, 0);
    const said longer = ask(&s, LONG " and more");
    const int n_saved = change(&s, "0", "save", "text", 200);
    assert_int_equal(n_saved, longer.n_prompt + 11);   // without the last token, which never ran
    assert_int_equal(stop_serving(&s, SIGTERM), 0);

    s = serve_slots(0, "");
    assert_int_equal(change(&s, "1", "restore", "text", 200), n_saved);
    const said again = ask(&s, LONG " and more");
    assert_int_equal(again.n_cached, again.n_prompt - 1);
    assert_string_equal(again.text, longer.text);
    const said other = ask(&s, "hgf");   // does not change the restored text
    assert_true(other.n_cached < 3);
    const said shorter = ask(&s, LONG);
    assert_int_equal(shorter.n_cached, shorter.n_prompt - 1);
    assert_string_equal(shorter.text, first.text);
    assert_true(change(&s, "1", "erase", "", 200) > 0);
    change(&s, "1", "save", "none", 400);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// A session that began with a file can be saved too.
static void a_text_goes_on_over_restarts(void **state)
{
    (void)state;
    served s = serve_slots(0, "--no-prefix-cache");
    ask(&s, LONG);
    change(&s, "0", "save", "first", 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    s = serve_slots(0, "--no-prefix-cache");
    change(&s, "0", "restore", "first", 200);
    const said longer = ask(&s, LONG " and so on");
    assert_true(longer.n_cached >= (int)strlen(LONG) / 2);
    change(&s, "0", "save", "second", 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    s = serve_slots(0, "--no-prefix-cache");
    change(&s, "1", "restore", "second", 200);
    const said again = ask(&s, LONG " and so on");
    assert_int_equal(again.n_cached, again.n_prompt - 1);
    assert_string_equal(again.text, longer.text);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_request_may_name_its_slot(void **state)
{
    (void)state;
    served s = serve_slots(0, "");
    json_t *json = post_for(&s, TEXT, "{\"prompt\": \"abc\", \"max_tokens\": 4, \"id_slot\": 1}", 200);
    json_decref(json);
    change(&s, "0", "save", "empty", 400);
    assert_true(change(&s, "1", "save", "named", 200) > 0);
    json_decref(post_for(&s, TEXT, "{\"prompt\": \"abc\", \"id_slot\": -2}", 400));
    json_decref(post_for(&s, TEXT, "{\"prompt\": \"abc\", \"id_slot\": \"a\"}", 400));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- refused

static void what_cannot_be_done_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *body;
        int status;
        const char *part;
    } rows[] = {
        {"/slots/0?action=save", "{\"filename\": \"../out\"}", 400, "'../out' is not a name"},
        {"/slots/0?action=save", "{\"filename\": \"a/b\"}", 400, "is not a name"},
        {"/slots/0?action=save", "{\"filename\": \"/tmp/out\"}", 400, "is not a name"},
        {"/slots/0?action=save", "{\"filename\": \"..\"}", 400, "is not a name"},
        {"/slots/0?action=save", "{\"filename\": \".hidden\"}", 400, "is not a name"},
        {"/slots/0?action=save", "{\"filename\": \"a\\\\b\"}", 400, "is not a name"},
        {"/slots/0?action=save", "{\"filename\": \"a\\nb\"}", 400, "is not a name"},
        {"/slots/0?action=save", "{\"filename\": \"a.tmp\"}", 400, "is not a name"},
        {"/slots/0?action=save", "{\"filename\": \"\"}", 400, "is not a name"},
        {"/slots/0?action=save", "{\"filename\": \"a\\u0000b\"}", 400, "zero character"},
        {"/slots/0?action=save", "{\"filename\": 5}", 400, "expected a string"},
        {"/slots/0?action=save", "{}", 400, "filename: is missing"},
        {"/slots/0?action=save", "{\"filename\": \"a\", \"model\": \"b\"}", 404, "model_not_found"},
        {"/slots/0?action=restore", "{\"filename\": \"nothing\"}", 404, "there is no file 'nothing'"},
        {"/slots/0?action=burn", "{\"filename\": \"a\"}", 400, "'burn', expected save, restore or erase"},
        {"/slots/0", "{\"filename\": \"a\"}", 400, "expected save, restore or erase"},
        {"/slots/2?action=erase", "{}", 404, "the slots 0 to 1"},
        {"/slots/-1?action=erase", "{}", 404, "there is no slot '-1'"},
        {"/slots/0x?action=erase", "{}", 404, "there is no slot '0x'"},
        {"/slots/99999999999999999999?action=erase", "{}", 404, "there is no slot"},
    };
    served s = serve_slots(0, "");
    ask(&s, "abc");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        reply r = post(&s, rows[i].path, rows[i].body);
        if (r.status != rows[i].status || !strstr(r.body, rows[i].part))
            fail_msg("%s %s: %d %s", rows[i].path, rows[i].body, r.status, r.body);
        reply_free(&r);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    s = serve(model(0), "--threads 1");
    change(&s, "0", "save", "a", 400);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    char arguments[2048], message[4096];
    snprintf(arguments, sizeof arguments, "'%s' --port 0 --slot-save-path /nowhere/at/all", model(0));
    assert_int_equal(serve_and_fail(arguments, message, sizeof message), 2);
    assert_non_null(strstr(message, "--slot-save-path /nowhere/at/all: is not a folder"));
}

static void files_of_other_models_and_damaged_ones_are_refused(void **state)
{
    (void)state;
    char path[1200];
    served s = serve_slots(1, "");
    ask(&s, LONG);
    change(&s, "0", "save", "theirs", 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    snprintf(path, sizeof path, "%s/theirs", folder());
    size_t n;
    char *bytes = read_file(path, &n);
    s = serve_slots(0, "");
    const said before = ask(&s, LONG);
    change(&s, "0", "restore", "theirs", 400);
    change(&s, "0", "save", "mine", 200);   // a failed restore changes nothing
    snprintf(path, sizeof path, "%s/cut", folder());
    write_file(path, bytes, n / 2);
    change(&s, "0", "restore", "cut", 400);
    bytes[n / 2] ^= 1;
    write_file(path, bytes, n);
    change(&s, "0", "restore", "cut", 400);
    write_file(path, "", 0);
    change(&s, "0", "restore", "cut", 400);
    const said after = ask(&s, LONG);
    assert_string_equal(after.text, before.text);
    free(bytes);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static reply post_with(const served *s, const char *key, const char *path, const char *body)
{
    char header[64];
    snprintf(header, sizeof header, "X-Api-Key: %s\r\n", key);
    return reply_to(s, "POST", path, header, body);
}

static void expect_with(const served *s, const char *key, const char *path, const char *body, int status)
{
    reply r = post_with(s, key, path, body);
    if (r.status != status) fail_msg("%s %s %s: %d %s", key, path, body, r.status, r.body);
    reply_free(&r);
}

static void texts_belong_to_their_keys(void **state)
{
    (void)state;
    const char *save = "/slots/0?action=save", *restore = "/slots/0?action=restore", *file = "{\"filename\": \"keys\"}";
    const char *salted = "{\"filename\": \"keys\", \"cache_salt\": \"x\"}";
    const char *prompt = "{\"prompt\": \"" LONG "\", \"max_tokens\": 2}";
    served s = serve_slots(0, "--api-key one --api-key two");
    expect_with(&s, "one", TEXT, prompt, 200);
    expect_with(&s, "two", save, file, 403);
    expect_with(&s, "one", save, salted, 403);
    expect_with(&s, "two", "/slots/0?action=erase", "{}", 403);
    expect_with(&s, "one", save, file, 200);
    expect_with(&s, "two", restore, file, 403);
    expect_with(&s, "one", restore, salted, 403);
    expect_with(&s, "one", restore, file, 200);
    for (int i = 0; i < 2; i++) {   // the other key's request does not find it
        reply r = post_with(&s, i == 0 ? "two" : "one", TEXT, prompt);
        json_t *json = reply_json(&r);
        const int n = (int)json_integer_value(value_in(json, "usage.prompt_tokens_details.cached_tokens"));
        assert_true(i == 0 ? n == 0 : n > 32);
        json_decref(json);
        reply_free(&r);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// A key reads no text of another key: not by a file name, not by restoring into its slot, not by a failing restore.
static void no_key_takes_a_text_from_another(void **state)
{
    (void)state;
    const char *prompt = "{\"prompt\": \"" LONG "\", \"max_tokens\": 2, \"id_slot\": %d}";
    char first[512], second[512];
    snprintf(first, sizeof first, prompt, 0);
    snprintf(second, sizeof second, prompt, 1);
    served s = serve_slots(0, "--api-key one --api-key two");
    expect_with(&s, "one", TEXT, first, 200);
    expect_with(&s, "two", TEXT, second, 200);
    expect_with(&s, "one", "/slots/0?action=save", "{\"filename\": \"tale\"}", 200);
    expect_with(&s, "two", "/slots/1?action=save", "{\"filename\": \"tale\"}", 403);
    expect_with(&s, "two", "/slots/1?action=save", "{\"filename\": \"other\"}", 200);
    expect_with(&s, "two", "/slots/0?action=restore", "{\"filename\": \"other\"}", 403);
    expect_with(&s, "two", "/slots/0?action=restore", "{\"filename\": \"nope\"}", 403);
    expect_with(&s, "two", "/slots/1?action=restore", "{\"filename\": \"nope\"}", 404);
    expect_with(&s, "two", "/slots/1?action=save", "{\"filename\": \"still there\"}", 200);
    expect_with(&s, "one", "/slots/0?action=save", "{\"filename\": \"tale\"}", 200);
    expect_with(&s, "one", "/slots/0?action=restore", "{\"filename\": \"tale\"}", 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    struct stat info;
    char path[1200];
    snprintf(path, sizeof path, "%s/tale", folder());
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

// A link may not lead out of the folder, and errors do not show the path of the folder.
static void links_are_not_followed_and_paths_not_told(void **state)
{
    (void)state;
    static const char outside[] = "not for everybody";
    char link[1200], target[1024], found[64];
    snprintf(target, sizeof target, "%s", temp_path("outside"));
    write_file(target, outside, sizeof outside);
    snprintf(link, sizeof link, "%s/link", folder());
    unlink(link);
    assert_int_equal(symlink(target, link), 0);
    snprintf(link, sizeof link, "%s/folder", folder());
    rmdir(link);
    assert_int_equal(mkdir(link, 0700), 0);
    snprintf(link, sizeof link, "%s/damaged", folder());
    write_file(link, outside, sizeof outside);
    served s = serve_slots(0, "");
    ask(&s, LONG);
    static const char *const names[] = {"link", "folder", "damaged"};
    static const char *const paths[] = {"/slots/0?action=save", "/slots/0?action=restore"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        for (size_t k = 0; k < FRIT_COUNT(paths); k++) {
            char body[128];
            snprintf(body, sizeof body, "{\"filename\": \"%s\"}", names[i]);
            reply r = post(&s, paths[k], body);
            const bool is_mine = i == 2 && k == 0;   // without keys, all files are accessible
            if (r.status != (is_mine ? 200 : i == 2 && k == 1 ? 200 : 400))
                fail_msg("%s: %d %s", body, r.status, r.body);
            if (strstr(r.body, folder()) || strstr(r.body, target)) fail_msg("%s", r.body);
            reply_free(&r);
        }
    }
    size_t n;
    char *bytes = read_file(target, &n);
    snprintf(found, sizeof found, "%.*s", (int)n, bytes);
    assert_string_equal(found, outside);
    free(bytes);
    write_file(link, outside, sizeof outside);
    reply r = post(&s, paths[1], "{\"filename\": \"damaged\"}");
    assert_int_equal(r.status, 400);
    if (strchr(r.body, '/')) fail_msg("%s", r.body);
    reply_free(&r);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_busy_slot_is_left_alone(void **state)
{
    (void)state;
    served s = serve_slots(0, "--context-shift");
    const int fd = send_post(&s, TEXT,
                             "{\"prompt\": \"a\", \"max_tokens\": 100000000, \"temperature\": 0, \"id_slot\": 0, "
                             "\"logit_bias\": {\"2\": -100}}");
    expect_health(&s, "running", 1);
    change(&s, "0", "erase", "", 409);
    change(&s, "1", "erase", "", 200);
    close(fd);
    expect_health(&s, "running", 0);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

// ---------------------------------------------------------------------------------------- the end of the process

// Kills the server while it saves. A file whose save was confirmed is there afterwards; any other file is whole, or
// absent.
static void a_kill_loses_no_saved_text_and_leaves_no_half_files(void **state)
{
    (void)state;
    enum { ROUNDS = 6, FILES = 8, STREAMS = 4 };
    char name[64], path[1200], body[128];
    int n_saved[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        served s = serve_slots(0, "");
        json_decref(post_for(&s, TEXT, "{\"prompt\": \"" LONG "\", \"temperature\": 0, \"max_tokens\": 300}", 200));
        int streams[STREAMS];
        for (int i = 0; i < STREAMS; i++)
            streams[i] = send_post(&s, TEXT,
                                   "{\"prompt\": \"b\", \"ignore_eos\": true, \"max_tokens\": 3000, "
                                   "\"id_slot\": 1, \"stream\": true}");
        snprintf(name, sizeof name, "sure%d", round);
        n_saved[round] = change(&s, "0", "save", name, 200);
        for (int i = 0; i < FILES; i++) {
            snprintf(body, sizeof body, "{\"filename\": \"kill%d\"}", i);
            char *text = post_text("/slots/0?action=save", "", body);
            send_text(connect_to(&s), text);   // the connections end with the test
            free(text);
        }
        nap(2 * round);
        assert_int_equal(stop_serving(&s, SIGKILL), 128 + SIGKILL);
        for (int i = 0; i < STREAMS; i++) close(streams[i]);
    }
    served s = serve_slots(0, "");
    int n_files = 0;
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "sure%d", i);
        assert_int_equal(change(&s, "0", "restore", name, 200), n_saved[i]);
    }
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "kill%d", i);
        snprintf(path, sizeof path, "%s/%s", folder(), name);
        if (access(path, F_OK) != 0) continue;
        change(&s, "0", "restore", name, 200);
        n_files++;
    }
    print_message("%d of %d files had their names\n", n_files, FILES);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restored_text_does_not_run_again),
        cmocka_unit_test(a_text_goes_on_over_restarts),
        cmocka_unit_test(a_request_may_name_its_slot),
        cmocka_unit_test(what_cannot_be_done_is_refused),
        cmocka_unit_test(files_of_other_models_and_damaged_ones_are_refused),
        cmocka_unit_test(texts_belong_to_their_keys),
        cmocka_unit_test(no_key_takes_a_text_from_another),
        cmocka_unit_test(links_are_not_followed_and_paths_not_told),
        cmocka_unit_test(a_busy_slot_is_left_alone),
        cmocka_unit_test(a_kill_loses_no_saved_text_and_leaves_no_half_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

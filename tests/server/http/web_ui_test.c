// SPDX-License-Identifier: MIT
// The files of the web UI over a socket: types, encodings, tags, headers, access, and passwords.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <unistd.h>

#define HOST "Host: localhost\r\n"
#define GZIP HOST "Accept-Encoding: gzip, deflate, br\r\n"
// "any:secret" and "any:wrong"
#define PASSWORD       "Authorization: Basic YW55OnNlY3JldA==\r\n"
#define WRONG_PASSWORD "Authorization: Basic YW55Ondyb25n\r\n"

static served s;

static int start_server(void **state)
{
    (void)state;
    s = serve(tiny_model("web_ui.gguf", &(tiny_options){0}), "--threads 1 --api-key secret --cors http://page.example");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

static reply ask(const char *method, const char *path, const char *headers)
{
    char text[2048];
    snprintf(text, sizeof text, "%s %s HTTP/1.1\r\n%sContent-Length: 0\r\n\r\n", method, path, headers);
    return reply_to_text(&s, text);
}

static void expect_status(const char *method, const char *path, const char *headers, int status)
{
    reply r = ask(method, path, headers);
    if (r.status != status) fail_msg("%s %s %s: status %d, not %d", method, path, headers, r.status, status);
    reply_free(&r);
}

static void expect_type(const char *path, const char *type)
{
    reply r = ask("GET", path, GZIP PASSWORD);
    if (r.status != 200) fail_msg("%s: status %d", path, r.status);
    assert_string_equal(reply_header(&r, "Content-Type"), type);
    assert_string_equal(reply_header(&r, "X-Content-Type-Options"), "nosniff");
    assert_string_equal(reply_header(&r, "Referrer-Policy"), "no-referrer");
    const char *policy = reply_header(&r, "Content-Security-Policy");
    assert_non_null(strstr(policy, "default-src 'none'"));
    assert_non_null(strstr(policy, "frame-ancestors 'none'"));
    assert_non_null(strstr(policy, "img-src 'self' data: blob:;"));   // pictures of messages, and no other host
    assert_null(strstr(policy, "unsafe"));
    assert_true(r.complete && r.n_body > 0);
    const char *encoding = reply_header(&r, "Content-Encoding");
    if (encoding) {
        assert_string_equal(encoding, "gzip");
        assert_memory_equal(r.body, "\x1f\x8b", 2);
    }
    reply_free(&r);
}

static void files_have_their_types_and_a_strict_policy(void **state)
{
    (void)state;
    expect_type("/", "text/html; charset=utf-8");
    expect_type("/docs", "text/html; charset=utf-8");
    expect_type("/assets/docs.css", "text/css; charset=utf-8");
    expect_type("/assets/docs.js", "text/javascript; charset=utf-8");
    expect_status("HEAD", "/docs", GZIP PASSWORD "Connection: close\r\n", 200);
    expect_status("GET", "/assets/nothing.js", GZIP PASSWORD, 404);
    expect_status("GET", "/assets/../docs", GZIP PASSWORD, 404);
    expect_status("GET", "/assets/", GZIP PASSWORD, 404);
    expect_status("POST", "/", GZIP PASSWORD, 405);
}

// A browser fetches at most 500 kB for the web UI. A build without Node.js serves a short text.
static void the_web_ui_is_small(void **state)
{
    (void)state;
    static const char *const paths[] = {"/", "/assets/app.js", "/assets/worker.js", "/assets/app.css",
                                        "/assets/theme.js"};
    size_t n = 0;
    for (size_t i = 0; i < FRIT_COUNT(paths); i++) {
        reply r = ask("GET", paths[i], GZIP PASSWORD);
        if (r.status == 200) n += r.n_body;
        reply_free(&r);
    }
    assert_in_range(n, 100, 500000);
}

static void a_file_that_did_not_change_is_not_sent_again(void **state)
{
    (void)state;
    reply r = ask("GET", "/", GZIP PASSWORD);
    char headers[512];
    snprintf(headers, sizeof headers, GZIP PASSWORD "If-None-Match: \"other\", W/%s\r\n", reply_header(&r, "ETag"));
    reply_free(&r);
    r = ask("GET", "/", headers);
    assert_int_equal(r.status, 304);
    assert_int_equal(r.n_body, 0);
    assert_non_null(reply_header(&r, "ETag"));
    reply_free(&r);
    expect_status("GET", "/", GZIP PASSWORD "If-None-Match: \"other\"\r\n", 200);
}

// An uncompressed file (in a build without Node.js) suits every Accept-Encoding.
static void clients_that_cannot_read_gzip_are_told(void **state)
{
    (void)state;
    reply r = ask("GET", "/", GZIP PASSWORD);
    const int status = reply_header(&r, "Content-Encoding") ? 406 : 200;
    reply_free(&r);
    expect_status("GET", "/", HOST PASSWORD, status);
    expect_status("GET", "/", HOST PASSWORD "Accept-Encoding: br\r\n", status);
    expect_status("GET", "/", HOST PASSWORD "Accept-Encoding: br, gzip;q=0\r\n", status);
    expect_status("GET", "/", HOST PASSWORD "Accept-Encoding: br, gzip;q=0.5\r\n", 200);
    expect_status("GET", "/", HOST PASSWORD "Accept-Encoding: *\r\n", 200);
}

static void the_browser_asks_for_the_key_as_a_password(void **state)
{
    (void)state;
    reply r = ask("GET", "/", GZIP);
    assert_int_equal(r.status, 401);
    assert_memory_equal(reply_header(&r, "WWW-Authenticate"), "Basic realm=\"frit\"", 18);
    reply_free(&r);
    r = ask("GET", "/v1/models", HOST);
    assert_int_equal(r.status, 401);
    assert_string_equal(reply_header(&r, "WWW-Authenticate"), "Bearer");
    reply_free(&r);
    expect_status("GET", "/", GZIP WRONG_PASSWORD, 401);
    expect_status("GET", "/v1/models", HOST PASSWORD, 200);
    expect_status("GET", "/v1/models", HOST WRONG_PASSWORD, 401);
    expect_status("GET", "/v1/models", HOST "Authorization: Basic c2VjcmV0\r\n", 401);   // "secret"
    expect_status("GET", "/v1/models", HOST "Authorization: Basic YW55OnNlY3JldA=x\r\n", 401);
    expect_status("GET", "/v1/models", HOST "Authorization: Basic YW55OnNlY3JldAA=\r\n", 401);   // "any:secret\0"
    char *long_one = malloc(6001);
    memset(long_one, 'Y', 6000);
    long_one[6000] = 0;
    char *headers = malloc(7000);
    snprintf(headers, 7000, HOST "Authorization: Basic %s\r\n", long_one);
    const int fd = connect_to(&s);
    send_text(fd, "GET /v1/models HTTP/1.1\r\n");
    send_text(fd, headers);
    send_text(fd, "\r\n");
    r = read_reply(fd);
    assert_int_equal(r.status, 401);
    reply_free(&r);
    close(fd);
    free(long_one);
    free(headers);
}

// Browsers send a stored password with requests of any site.
static void pages_of_other_sites_cannot_use_the_password(void **state)
{
    (void)state;
    expect_status("GET", "/v1/models", HOST PASSWORD "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", 403);
    expect_status("GET", "/v1/models", HOST PASSWORD "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n", 403);
    expect_status("GET", "/v1/models", HOST PASSWORD "Sec-Fetch-Site: cross-site\r\n", 403);
    expect_status("DELETE", "/v1/responses/x",
                  HOST PASSWORD "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 403);
    expect_status("GET", "/v1/models", HOST PASSWORD "Origin: http://evil.example\r\n", 403);
    expect_status("GET", "/v1/models", HOST PASSWORD "Origin: http://page.example\r\n", 403);   // even if --cors allows
                                                                                                // it
    expect_status("GET", "/v1/models",
                  HOST "Origin: http://page.example\r\nAuthorization: Bearer secret\r\nSec-Fetch-Site: cross-site\r\n",
                  200);
    expect_status("GET", "/", GZIP PASSWORD "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n",
                  200);   // a link
    expect_status("GET", "/v1/models", HOST PASSWORD "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n", 200);
    expect_status("GET", "/", GZIP PASSWORD "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", 200);
}

static void sampling_options_come_from_their_rows(void **state)
{
    (void)state;
    reply r = ask("GET", "/sampling", HOST PASSWORD);
    assert_int_equal(r.status, 200);
    json_t *list = reply_json(&r), *row;
    bool found = false;
    size_t i;
    json_array_foreach(list, i, row)
    {
        assert_true(json_is_string(json_object_get(row, "help")) && json_is_number(json_object_get(row, "default")));
        if (strcmp(json_string_value(json_object_get(row, "name")), "top_p") != 0) continue;
        found = true;
        assert_string_equal(json_string_value(json_object_get(row, "type")), "number");
        assert_true(json_number_value(json_object_get(row, "min")) == 0);
        assert_true(json_number_value(json_object_get(row, "max")) == 1);
    }
    assert_true(found && json_array_size(list) > 15);
    json_decref(list);
    reply_free(&r);
}

static void the_web_ui_can_be_turned_off(void **state)
{
    (void)state;
    const served with_web_ui = s;
    s = serve(tiny_model("web_ui.gguf", &(tiny_options){0}), "--threads 1 --no-page");
    static const char *const paths[] = {"/", "/docs", "/assets/docs.js"};
    for (size_t i = 0; i < FRIT_COUNT(paths); i++) expect_status("GET", paths[i], GZIP, 404);
    expect_status("GET", "/openapi.json", HOST, 200);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    s = with_web_ui;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_their_types_and_a_strict_policy),
        cmocka_unit_test(the_web_ui_is_small),
        cmocka_unit_test(a_file_that_did_not_change_is_not_sent_again),
        cmocka_unit_test(clients_that_cannot_read_gzip_are_told),
        cmocka_unit_test(the_browser_asks_for_the_key_as_a_password),
        cmocka_unit_test(pages_of_other_sites_cannot_use_the_password),
        cmocka_unit_test(sampling_options_come_from_their_rows),
        cmocka_unit_test(the_web_ui_can_be_turned_off),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

// SPDX-License-Identifier: MIT
// File properties in replies, in headers of any form, and permitted redirects.
#include "hub/curl.h"
#include "support/support.h"

static hub_head head;

static void take(const char *line, size_t n)
{
    char copy[8192];   // exactly as long as the line, so that a sanitizer sees a read past it
    assert_true(n <= sizeof copy);
    char *begin = copy + sizeof copy - n;
    memcpy(begin, line, n);
    assert_int_equal(hub_curl_header(begin, 1, n, &head), n);
}

static void take_text(const char *line)
{
    take(line, strlen(line));
}

static void headers_are_read(void **state)
{
    (void)state;
    hub_head_reset(&head);
    take_text("HTTP/1.1 206 Partial Content\r\n");
    take_text("content-length: 100\r\n");
    take_text("Content-Range: bytes 200-299/5000\r\n");
    take_text("ETag:   \"abc\"  \r\n");
    take_text("X-Linked-Size: 7\r\n");
    take_text("Retry-After: 12\r\n");
    take_text("\r\n");
    assert_int_equal(head.status, 206);
    assert_int_equal(head.n_bytes, 100);
    assert_int_equal(head.begin, 200);
    assert_int_equal(head.total, 5000);
    assert_string_equal(head.etag, "\"abc\"");
    assert_int_equal(head.linked_bytes, 7);
    assert_int_equal(head.retry_s, 12);
    take_text("HTTP/2 302\r\n");   // the next reply of the same request
    assert_int_equal(head.status, 302);
    assert_string_equal(head.etag, "");
    assert_int_equal(head.retry_s, -1);
}

static void bad_headers_are_not_taken(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "\r\n",
        ":",
        ": x",
        "ETag",
        "ETag:",
        "Content-Length: -5",
        "Content-Length: x",
        "Content-Length:",
        "Content-Length: 99999999999999999999999",
        "Content-Range: bytes */5",
        "Content-Range: 1-2/3",
        "Content-Range: bytes",
        "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT",
        "Retry-After: 99999999999",
        "HTTP/",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 x",
    };
    hub_head_reset(&head);
    for (size_t i = 0; i < FRIT_COUNT(lines); i++) {
        take_text(lines[i]);
        assert_true(head.n_bytes == UINT64_MAX && head.begin == UINT64_MAX && head.retry_s == -1 && !head.etag[0]);
    }
    take("ETag: a\0b", 9);
    assert_string_equal(head.etag, "");
    char line[8192] = "ETag: ";
    memset(line + 6, 'a', 300);
    take_text(line);   // longer than its field
    assert_string_equal(head.etag, "");
    memcpy(line, "Location: ", 10);
    memset(line + 10, 'a', sizeof line - 11);
    take_text(line);
    assert_string_equal(head.location, "");
}

static void where_redirects_may_lead(void **state)
{
    (void)state;
    hub_path to;
    assert_int_equal(hub_curl_redirect("https://a.example/x/y", "/z", &to), HUB_OK);
    assert_string_equal(to.text, "https://a.example/z");
    assert_int_equal(hub_curl_redirect("https://a.example/x/y", "https://b.example/z?s=1", &to), HUB_OK);
    assert_string_equal(to.text, "https://b.example/z?s=1");
    static const char *const bad[] = {"", "http://a.example/x", "file:///etc/passwd", "ftp://a.example/x", "https://"};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++)
        assert_int_equal(hub_curl_redirect("https://a.example/x/y", bad[i], &to), HUB_E_NETWORK);
}

static void servers_that_get_a_token(void **state)
{
    (void)state;
    assert_true(hub_same_server("https://a.example/x", "https://A.example:443/y"));
    static const char *const others[] = {"http://a.example/x",    "https://a.example:444/x", "https://b.a.example/x",
                                         "https://a.example.b/x", "https://a.example@b/x",   "nothing"};
    for (size_t i = 0; i < FRIT_COUNT(others); i++) assert_false(hub_same_server("https://a.example/x", others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_read),
        cmocka_unit_test(bad_headers_are_not_taken),
        cmocka_unit_test(where_redirects_may_lead),
        cmocka_unit_test(servers_that_get_a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

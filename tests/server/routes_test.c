// SPDX-License-Identifier: MIT
// Requests each row of the table of routes over a socket: without a key, with invalid bodies, with the wrong method.
#include "server/routes.h"
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <string.h>
#include <unistd.h>

#define KEY "X-Api-Key: secret\r\n"

// The hash of the key "hashed".
#define HASH "1a06df824ed741b53c785079a6347f00eec5af82f9850775409ca69dff4068a6"
static const char key_file[] = "named = sha256:" HASH "\n";

static served s;
static const server_route *routes;
static size_t n_routes;

static int start_server(void **state)
{
    (void)state;
    const tiny_options options = {.n_ctx = 256};
    routes = server_routes(&n_routes);
    char arguments[512];
    write_file(temp_path("routes-keys"), key_file, sizeof key_file - 1);
    snprintf(arguments, sizeof arguments, "--parallel 2 --threads 1 --api-key secret --api-key-file '%s'",
             temp_path("routes-keys"));
    s = serve(tiny_model("routes.gguf", &options), arguments);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return stop_serving(&s, SIGTERM);
}

// Requests a route, with a word for the '*' in its path.
static reply ask(const server_route *route, const char *headers, const char *body)
{
    char path[256];
    const size_t n = strcspn(route->path, "*");
    snprintf(path, sizeof path, "%.*s%s", (int)n, route->path, route->path[n] ? "x" : "");
    return reply_to(&s, route->method, path, headers, body);
}

// Checks that the reply has the members and types of an error in the route's protocol.
static void expect_shape(const server_route *route, const reply *r)
{
    const server_problem problem = {.status = r->status, .message = "m"};
    char *text = route->protocol->problem(&problem);
    json_t *want = json_loads(text, 0, NULL), *found = reply_json(r);
    const char *key;
    json_t *value;
    assert_true(json_object_size(want) > 0);
    json_object_foreach(want, key, value) if (!json_object_get(found, key) ||
                                              json_typeof(json_object_get(found, key)) != json_typeof(value))
        fail_msg("%s %s: no '%s' as in %s: %s", route->method, route->path, key, text, r->body);
    json_decref(want);
    json_decref(found);
    free(text);
}

static void rows_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_routes; i++) {
        const server_route *route = &routes[i];
        assert_true(route->handle && route->reply && route->protocol && route->protocol->problem);
        assert_true(route->summary && strlen(route->summary) > 10);
        assert_true(route->path[0] == '/');
        // A POST may have no body, if its path is enough.
        const bool may_have_body = strcmp(route->method, "POST") == 0;
        assert_true(may_have_body || !route->parser);
        assert_true(!may_have_body || route->parser || strchr(route->path, '*'));
    }
}

static void nothing_but_liveness_is_answered_without_a_key(void **state)
{
    (void)state;
    static const char *const open[] = {"/health", "/livez", "/readyz"};
    static const char *const wrong[] = {"",
                                        "Authorization: Bearer secre\r\n",
                                        "Authorization: Bearer secrets\r\n",
                                        "Authorization: Basic secret\r\n",
                                        "Authorization: Bearer \r\n",
                                        "X-Api-Key: \r\n",
                                        "X-Api-Key: named\r\n",
                                        "X-Api-Key: " HASH "\r\n",
                                        "X-Api-Key: sha256:" HASH "\r\n"};
    for (size_t i = 0; i < n_routes; i++) {
        bool is_open = false;
        for (size_t k = 0; k < FRIT_COUNT(open); k++) is_open |= strcmp(routes[i].path, open[k]) == 0;
        assert_int_equal(routes[i].needs_key, !is_open);
        for (size_t k = 0; k < FRIT_COUNT(wrong); k++) {
            reply r = ask(&routes[i], wrong[k], "{}");
            if (r.status != (is_open ? 200 : 401)) fail_msg("%s: %d %s", routes[i].path, r.status, r.body);
            if (!is_open) expect_shape(&routes[i], &r);
            reply_free(&r);
        }
    }
}

static void broken_bodies_get_the_error_of_the_protocol(void **state)
{
    (void)state;
    char deep[1024] = "{\"messages\": ";
    memset(deep + strlen(deep), '[', 900);
    const char *const bodies[] = {"",
                                  "{",
                                  "[]",
                                  "7",
                                  "\"a\"",
                                  "{\"model\": 1}",
                                  "{\"messages\": 1, \"input\": 1.5}",
                                  "{\"a\": 1, \"a\": 2}",
                                  "{\"messages\": \"\xff\"}",
                                  "{\"model\": \"\\u0000\"}",
                                  deep};
    for (size_t i = 0; i < n_routes; i++)
        for (size_t k = 0; k < FRIT_COUNT(bodies) && routes[i].parser; k++) {
            reply r = ask(&routes[i], KEY, bodies[k]);
            if (r.status / 100 != 2 && (r.status < 400 || r.status > 499))
                fail_msg("%s, %s: %d %s", routes[i].path, bodies[k], r.status, r.body);
            const bool is_list = k == 2 && routes[i].parser->list;
            if (k < 5 && !is_list) assert_int_equal(r.status, 400);
            if (r.status != 200) expect_shape(&routes[i], &r);
            reply_free(&r);
        }
}

static void long_bodies_and_values_get_the_error_of_the_protocol(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_routes; i++) {
        if (!routes[i].parser) continue;
        char head[512];
        snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: localhost\r\n" KEY "Content-Length: 99999999\r\n\r\n",
                 routes[i].path);
        reply r = reply_to_text(&s, head);
        assert_int_equal(r.status, 413);
        expect_shape(&routes[i], &r);
        reply_free(&r);
    }
}

static void other_methods_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_routes; i++) {
        server_route other = routes[i];
        other.method = "PATCH";
        reply r = ask(&other, KEY, "");
        assert_int_equal(r.status, 405);
        assert_non_null(strstr(reply_header(&r, "Allow"), routes[i].method));
        reply_free(&r);
    }
}

static json_t *read_document(void)
{
    reply r = reply_to(&s, "GET", "/openapi.json", KEY, "");
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

static void the_document_has_each_row(void **state)
{
    (void)state;
    json_t *json = read_document(), *paths = json_object_get(json, "paths");
    assert_string_equal(json_string_value(json_object_get(json, "openapi")), "3.1.0");
    size_t n_operations = 0;
    const char *key;
    json_t *path;
    json_object_foreach(paths, key, path) n_operations += json_object_size(path);
    assert_int_equal(n_operations, n_routes);
    for (size_t i = 0; i < n_routes; i++) {
        char name[96], method[8] = "";
        const size_t n = strcspn(routes[i].path, "*");
        snprintf(name, sizeof name, "%.*s%s", (int)n, routes[i].path, routes[i].path[n] ? "{id}" : "");
        for (size_t k = 0; routes[i].method[k]; k++) method[k] = (char)(routes[i].method[k] | 32);
        const json_t *operation = json_object_get(json_object_get(paths, name), method);
        if (!operation) fail_msg("no %s %s", routes[i].method, routes[i].path);
        assert_string_equal(json_string_value(json_object_get(operation, "summary")), routes[i].summary);
        assert_int_equal(json_object_get(operation, "security") == NULL, routes[i].needs_key);
        assert_int_equal(json_object_get(operation, "requestBody") != NULL, routes[i].parser != NULL);
    }
    json_decref(json);
}

// A value that turns an option off in requests may be outside the option's own range.
static void the_document_allows_what_requests_may_say(void **state)
{
    (void)state;
    json_t *json = read_document();
    int least = 0;
    assert_int_equal(json_unpack(json, "{s:{s:{s:{s:{s:{s:{s:{s:{s:{s:i}}}}}}}}}}", "paths", "/v1/chat/completions",
                                 "post", "requestBody", "content", "application/json", "schema", "properties", "top_k",
                                 "minimum", &least),
                     0);
    assert_int_equal(least, -1);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(nothing_but_liveness_is_answered_without_a_key),
        cmocka_unit_test(broken_bodies_get_the_error_of_the_protocol),
        cmocka_unit_test(long_bodies_and_values_get_the_error_of_the_protocol),
        cmocka_unit_test(other_methods_are_refused),
        cmocka_unit_test(the_document_has_each_row),
        cmocka_unit_test(the_document_allows_what_requests_may_say),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}

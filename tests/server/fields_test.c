// SPDX-License-Identifier: MIT
// Bodies of requests, truncated anywhere: nothing past their end is read, and a refused body has an error.
#include "base/status.h"
#include "server/request/request.h"
#include "support/support.h"

#include <sys/mman.h>
#include <unistd.h>

static char *guarded;   // a page, followed by a page without access
static size_t page_bytes;

static int map_pages(void **state)
{
    (void)state;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    guarded = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return guarded == MAP_FAILED || mprotect(guarded + page_bytes, page_bytes, PROT_NONE) != 0;
}

// Copies the first n bytes to the end of the page, before the page without access.
static const char *at_end(const char *body, size_t n)
{
    assert_true(n <= page_bytes);
    return memcpy(guarded + page_bytes - n, body, n);
}

static void parse_every_cut(const char *body, bool is_good)
{
    for (size_t n = 0; n <= strlen(body); n++) {
        server_generation request = {0};
        server_problem problem = {0};
        const bool good = server_parse(&server_completion_parser, at_end(body, n), n, &request, &problem);
        if (good != (is_good && n == strlen(body))) fail_msg("%.*s: %d %s", (int)n, body, good, problem.message);
        if (!good) assert_int_equal(problem.status, 400);
        if (!good) assert_true(problem.message[0]);
        server_request_deinit(&server_completion_parser, &request);
    }
}

static void a_body_may_end_anywhere(void **state)
{
    (void)state;
    parse_every_cut(
        "{\"prompt\": \"a\\\"\", \"stop\": [\"b\", \"\\u00e9\"], \"seed\": 18446744073709551615, \"top_k\": 3}", true);
    parse_every_cut("{\"seed\": 18446744073709551616, \"prompt\": \"a\"}", false);
    // The number is too large for the JSON library, so the seed is searched for in the text after it.
    parse_every_cut("{\"x\": 99999999999999999999, \"seed\\", false);
    parse_every_cut("{\"x\": 99999999999999999999, \"a\": {\"seed\": 1}, \"seed\" : \"5\"}", false);
}

static void a_large_seed_is_taken_as_it_is(void **state)
{
    (void)state;
    const char *body = "{\"prompt\": \"\\\"seed\\\": 1\", \"user\": \"seed\", \"seed\": 18446744073709551615}";
    server_generation request = {0};
    server_problem problem = {0};
    if (!server_parse(&server_completion_parser, at_end(body, strlen(body)), strlen(body), &request, &problem))
        fail_msg("%s", problem.message);
    assert_true(request.sampling.has_seed && request.sampling.seed == UINT64_MAX);
    assert_string_equal(request.prompt.text, "\"seed\": 1");
    server_request_deinit(&server_completion_parser, &request);
}

static void the_words_of_an_error_decide_nothing(void **state)
{
    (void)state;
    static const char *const sentences[] = {"expected a list", "is missing", "no place for tools", "anything"};
    for (size_t i = 0; i < FRIT_COUNT(sentences); i++) {
        server_problem problem = {0};
        const frit_status status =
            frit_fail_at(FRIT_E_INVALID, "messages[1].role", FRIT_CODE_INVALID_VALUE, "%s", sentences[i]);
        char message[64];
        assert_false(server_refuse_field(&problem, 400, "input[1].role", status));
        assert_string_equal(problem.code, "invalid_value");
        assert_string_equal(problem.param, "input[1].role");
        snprintf(message, sizeof message, "input[1].role: %s", sentences[i]);
        assert_string_equal(problem.message, message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_may_end_anywhere),
        cmocka_unit_test(a_large_seed_is_taken_as_it_is),
        cmocka_unit_test(the_words_of_an_error_decide_nothing),
    };
    return cmocka_run_group_tests(tests, map_pages, NULL);
}

// SPDX-License-Identifier: MIT
// support/support.h: functions that tests share: cmocka, paths, reference data, random numbers and comparisons.
//
// A test file ends with a table of its tests and main. Names are sentences: gguf_rejects_a_truncated_directory.
// Reference data is in ../shared beside the checkout. Without it, a part of it is in tests/goldens, and tests of the
// rest are skipped; with FRIT_REQUIRE_DATA=1 in the environment they fail.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/status.h"

// Ends the running test as skipped, with a reason that the report of `make test` shows.
void skip_because(const char *format, ...) FRIT_PRINTF(1, 2);
#undef skip
#define skip() skip_because("%s, line %d, gives no reason", __FILE__, __LINE__)

// A program some of whose tests were skipped, and none failed, ends with FRIT_SKIPPED, which CTest shows as Skipped.
enum { FRIT_SKIPPED = 77 };
int run_group(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up,
              CMFixtureFunction tear_down);
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, set_up, tear_down) run_group(#tests, tests, FRIT_COUNT(tests), set_up, tear_down)

// Paths are valid until the program ends.
//
// Returns "../shared/goldens/quant/input.f32", or its copy in tests/goldens. Skips the running test if neither exists.
const char *shared_path(const char *format, ...) FRIT_PRINTF(1, 2);
// For tests of many cases: true if the data of a case is present. Always true with ../shared.
bool shared_has(const char *format, ...) FRIT_PRINTF(1, 2);
// The number of cases that a test must find at least: n with ../shared, otherwise 1.
size_t shared_least(size_t n);
// Returns a path in the project's own tree.
const char *project_path(const char *format, ...) FRIT_PRINTF(1, 2);
// Returns a new file name in a temporary folder that is removed when the program ends.
const char *temp_path(const char *name);

// Reads the whole file, malloc'd and zero-terminated; fails the test if it cannot be read.
char *read_file(const char *path, size_t *n_bytes);
void expect_equal_files(const char *a, const char *b);   // byte by byte
void write_file(const char *path, const void *bytes, size_t n_bytes);

// Returns sum((a - b)^2) / sum(b^2), where b is the reference. Infinite if a has a number that is not finite.
double nmse(const float *a, const float *b, size_t n);
// Draws n values from a normal distribution.
void random_normal(frit_rng *rng, float *values, size_t n, float deviation);
int64_t random_between(frit_rng *rng, int64_t low, int64_t high);   // both included

// Sanitizers have their own malloc, and reserve more address space than a limit may allow.
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

// With an emulated processor or a sanitizer, tests of many cases run only every FRIT_TEST_STRIDE-th case.
#ifndef FRIT_TEST_STRIDE
#define FRIT_TEST_STRIDE 1
#endif

// Fails with the library's sentence if the status is not FRIT_OK.
#define assert_ok(expression)                                                                                 \
    do {                                                                                                      \
        frit_status status_ = (expression);                                                                   \
        if (status_ != FRIT_OK) fail_msg("%s: %s: %s", #expression, frit_status_text(status_), frit_error()); \
    } while (0)

// Fails unless the status is `expected` and the sentence contains `part`.
#define assert_fails(expression, expected, part)                                                            \
    do {                                                                                                    \
        frit_status status_ = (expression);                                                                 \
        if (status_ != (expected) || !strstr(frit_error(), (part)))                                         \
            fail_msg("%s: got %d \"%s\", expected %d with \"%s\"", #expression, (int)status_, frit_error(), \
                     (int)(expected), (part));                                                              \
    } while (0)

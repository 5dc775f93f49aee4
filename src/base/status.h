// SPDX-License-Identifier: MIT
// base/status.h: error handling.
//
// A function returns 0 or a negative frit_status. frit_fail stores the error message where the error is detected; each
// thread keeps its last message, which frit_error() returns. A message names the object, what was found and what is
// expected, in one sentence.
//
//     return frit_fail(FRIT_E_FORMAT, "%s: tensor '%s' has %u dimensions, expected at most 4", path, name, n);
#pragma once
#include "frit.h"

#if defined(__MINGW32__) && !defined(__clang__)   // on MinGW plain "printf" means Microsoft's old formats
#define FRIT_PRINTF(fmt, first) __attribute__((format(gnu_printf, fmt, first)))
#elif defined(__GNUC__)
#define FRIT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define FRIT_PRINTF(fmt, first)
#endif

#define FRIT_ERROR_BYTES 1024

// Stores the message. Control characters in the result are replaced by '?'.
void frit_fail_say(const char *format, ...) FRIT_PRINTF(1, 2);

// Stores the message; its value is `status`. A macro, so that compilers see that a failure is never FRIT_OK and that
// the results of a failed call are not used.
#define frit_fail(status, ...) (frit_fail_say(__VA_ARGS__), (status))

// The system's words for an errno, in `text` or in constant memory. Any thread may call it.
enum { FRIT_ERRNO_BYTES = 256 };
const char *frit_errno_text(int error, char text[FRIT_ERRNO_BYTES]);

static inline frit_status frit_fail_memory(size_t n_bytes, const char *what)
{
    return frit_fail(FRIT_E_MEMORY, "out of memory: %zu bytes for %s", n_bytes, what);
}

// Returns on failure. Only for functions that own nothing yet; the others use a `fail:` label.
#define FRIT_TRY(expression)                        \
    do {                                            \
        frit_status frit_try_ = (expression);       \
        if (frit_try_ != FRIT_OK) return frit_try_; \
    } while (0)

// What a public function checks first. Each sentence names the function and the argument.
//
//     FRIT_REQUIRE(session);             // "frit_session_push: 'session' is NULL; expected a frit_session"
//     FRIT_REQUIRE_OR(NULL, session);    // of functions that return something else than a status
//     FRIT_REQUIRE_ITEMS(tokens, n);     // NULL is fine for none
//     FRIT_REQUIRE_UNUSED(options);      // "frit_engine_new: options.reserved is not zero; ..."
#define FRIT_REQUIRE(arg)           FRIT_REQUIRE_OR(FRIT_E_INVALID, arg)
#define FRIT_REQUIRE_ITEMS(arg, n)  FRIT_REQUIRE_ITEMS_OR(FRIT_E_INVALID, arg, n)
#define FRIT_REQUIRE_OR(value, arg) FRIT_REQUIRE_ITEMS_OR(value, arg, 1)
#define FRIT_REQUIRE_ITEMS_OR(value, arg, n)                    \
    do {                                                        \
        if (!(arg) && (n) > 0) {                                \
            frit_fail_null(__func__, #arg, FRIT_EXPECTED(arg)); \
            return (value);                                     \
        }                                                       \
    } while (0)
#define FRIT_REQUIRE_UNUSED(options) FRIT_REQUIRE_UNUSED_ITEMS(options, (options) ? 1 : 0)
#define FRIT_REQUIRE_UNUSED_ITEMS(items, n)                                                                          \
    do {                                                                                                             \
        for (size_t frit_i_ = 0; frit_i_ < (size_t)(n); frit_i_++)                                                   \
            FRIT_TRY(frit_check_unused((items)[frit_i_].reserved, FRIT_COUNT((items)->reserved), __func__, #items)); \
    } while (0)

#define FRIT_HANDLE(type) type * : "a " #type, const type * : "a " #type
// clang-format off
#define FRIT_EXPECTED(arg)                                                                                            \
    _Generic((arg), FRIT_HANDLE(frit_model), FRIT_HANDLE(frit_engine), FRIT_HANDLE(frit_session),                     \
             FRIT_HANDLE(frit_sampler), FRIT_HANDLE(frit_adapter), FRIT_HANDLE(frit_text_stream),                     \
             FRIT_HANDLE(frit_turn), FRIT_HANDLE(frit_grammar), FRIT_HANDLE(frit_beams), const char *: "a text",  \
             frit_row_fn: "a function", frit_embed_fn: "a function",  \
             default: "a pointer")
// clang-format on
void frit_fail_null(const char *function, const char *argument, const char *expected);
frit_status frit_check_unused(const uint64_t *words, size_t n, const char *function, const char *argument);

#define FRIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

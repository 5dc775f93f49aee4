// SPDX-License-Identifier: MIT
// base/status.h: error handling.
//
// A function returns 0 or a negative frit_status. The error is stored where it is detected; each thread keeps its last
// one. Its message names the object, what was found and what is expected, in one sentence, which frit_error() returns.
//
//     return frit_fail(FRIT_E_INVALID, "token %d is outside of 0 to %d", token, n_vocab - 1);
//     return frit_fail_at(FRIT_E_INVALID, "tools", FRIT_CODE_INVALID_TYPE, "expected a list");
//     return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has %u dimensions, expected at most 4", path, name, n);
//
// Callers decide by the status, by frit_error_code and by frit_error_field, never by the words of a message.
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

enum { FRIT_FIELD_BYTES = 128 };

// Stores the error. Control characters in the message are replaced by '?'.
void frit_fail_say(const char *format, ...) FRIT_PRINTF(1, 2);
void frit_fail_say_at(const char *field, const char *code, const char *format, ...) FRIT_PRINTF(3, 4);
void frit_fail_say_file(const char *format, ...) FRIT_PRINTF(1, 2);

// Store an error; their value is `status`. They are macros, so that compilers see that a failure is never FRIT_OK and
// that the results of a failed call are not used.
//
// frit_fail_at: an error of a field of a request, or of an option. The message is "FIELD: " and the format's text, and
// only this text if `field` is NULL. The field is copied; the code is a constant of frit/status.h.
// frit_fail_file: the format begins with the path of a file or folder, so that frit_fail_in adds none.
#define frit_fail(status, ...)                 (frit_fail_say(__VA_ARGS__), (status))
#define frit_fail_at(status, field, code, ...) (frit_fail_say_at(field, code, __VA_ARGS__), (status))
#define frit_fail_file(status, ...)            (frit_fail_say_file(__VA_ARGS__), (status))

// Returns `status`. If it is a failure whose message does not begin with a path yet, puts "PATH: " before the message.
frit_status frit_fail_in(const char *path, frit_status status);

// The name of a field, for frit_fail_at: frit_field_name("messages[%zu].role", i).text
typedef struct frit_field {
    char text[FRIT_FIELD_BYTES];
} frit_field;
frit_field frit_field_name(const char *format, ...) FRIT_PRINTF(1, 2);

// A thread's last error, to be kept and to become the last error of another thread. All zero: no error.
typedef struct frit_failure {
    char sentence[FRIT_ERROR_BYTES];
    char field[FRIT_FIELD_BYTES];   // "": none
    const char *code;               // a constant; NULL: none
    bool names_file;                // the sentence begins with a path
} frit_failure;
void frit_failure_get(frit_failure *failure);
void frit_failure_set(const frit_failure *failure);

// The system's text for an errno, in `text` or in constant memory. Any thread may call it.
enum { FRIT_ERRNO_BYTES = 256 };
const char *frit_errno_text(int error, char text[FRIT_ERRNO_BYTES]);

static inline frit_status frit_fail_memory(size_t n_bytes, const char *what)
{
    return frit_fail(FRIT_E_MEMORY, "out of memory: %zu bytes for %s", n_bytes, what);
}

// Returns on failure. Only for functions that own nothing yet.
#define FRIT_TRY(expression)                        \
    do {                                            \
        frit_status frit_try_ = (expression);       \
        if (frit_try_ != FRIT_OK) return frit_try_; \
    } while (0)

// Checks of a public function's arguments. Each sentence names the function and the argument.
//
//     FRIT_REQUIRE(session);             // "frit_session_push: 'session' is NULL; expected a frit_session"
//     FRIT_REQUIRE_OR(NULL, session);    // for functions that do not return a status
//     FRIT_REQUIRE_ITEMS(tokens, n);     // NULL is allowed if n is 0
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
             FRIT_HANDLE(frit_turn), FRIT_HANDLE(frit_grammar), FRIT_HANDLE(frit_beams), FRIT_HANDLE(frit_image), const char *: "a text",  \
             frit_row_fn: "a function", frit_embed_fn: "a function",  \
             default: "a pointer")
// clang-format on
void frit_fail_null(const char *function, const char *argument, const char *expected);
frit_status frit_check_unused(const uint64_t *words, size_t n, const char *function, const char *argument);

#define FRIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

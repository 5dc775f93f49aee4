// SPDX-License-Identifier: MIT
// base/status.h: how a failure travels.
//
// A function returns 0 or a negative frit_status. The sentence is written once, where it is known, by frit_fail;
// it is kept per thread until the next failure, and frit_error() reads it. A good sentence names the object,
// what was found and what was expected.
//
//     return frit_fail(FRIT_E_FORMAT, "%s: tensor '%s' has %u dimensions, at most 4 are possible", path, name, n);
#pragma once
#include "frit.h"

#if defined(__MINGW32__) && !defined(__clang__)   // there, plain "printf" means Microsoft's old formats
#define FRIT_PRINTF(fmt, first) __attribute__((format(gnu_printf, fmt, first)))
#elif defined(__GNUC__)
#define FRIT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define FRIT_PRINTF(fmt, first)
#endif

#define FRIT_ERROR_BYTES 1024

// Stores the sentence. Control characters in the result are replaced by '?'.
void frit_fail_say(const char *format, ...) FRIT_PRINTF(1, 2);

// Stores the sentence; its value is `status`. A macro, so that compilers see that a failure is never FRIT_OK and that
// the results of a call that failed are not used.
#define frit_fail(status, ...) (frit_fail_say(__VA_ARGS__), (status))

// The system's words for an errno, in `text` or in constant memory. Any thread may call it.
enum { FRIT_ERRNO_BYTES = 256 };
const char *frit_errno_text(int error, char text[FRIT_ERRNO_BYTES]);

static inline frit_status frit_fail_memory(size_t n_bytes, const char *what)
{
    return frit_fail(FRIT_E_MEMORY, "out of memory: %zu bytes for %s", n_bytes, what);
}

// Forwards a failure. Only for functions that own nothing yet; the others use one `fail:` label.
#define FRIT_TRY(expression)                        \
    do {                                            \
        frit_status frit_try_ = (expression);       \
        if (frit_try_ != FRIT_OK) return frit_try_; \
    } while (0)

#define FRIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

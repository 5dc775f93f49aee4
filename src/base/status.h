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

// Stores the sentence and returns `status`. Control characters in the result are replaced by '?'.
frit_status frit_fail(frit_status status, const char *format, ...) FRIT_PRINTF(2, 3);
frit_status frit_fail_memory(size_t n_bytes, const char *what);

// Forwards a failure. Only for functions that own nothing yet; the others use one `fail:` label.
#define FRIT_TRY(expression)                        \
    do {                                            \
        frit_status frit_try_ = (expression);       \
        if (frit_try_ != FRIT_OK) return frit_try_; \
    } while (0)

#define FRIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

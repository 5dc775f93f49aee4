// SPDX-License-Identifier: MIT
// frit/status.h: what functions return, and how the library exports them.
#ifndef FRIT_STATUS_H
#define FRIT_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(FRIT_SHARED)
#ifdef FRIT_BUILDING
#define FRIT_API __declspec(dllexport)
#else
#define FRIT_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define FRIT_API __attribute__((visibility("default")))
#else
#define FRIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The one list of status codes: name, value, text.
#define FRIT_STATUS_MAP(X)                 \
    X(OK, 0, "done")                       \
    X(E_INVALID, -1, "invalid argument")   \
    X(E_MEMORY, -2, "out of memory")       \
    X(E_IO, -3, "input or output failed")  \
    X(E_NOT_FOUND, -4, "not found")        \
    X(E_FORMAT, -5, "bad model file")      \
    X(E_UNSUPPORTED, -6, "not supported")  \
    X(E_LIMIT, -7, "a limit was exceeded") \
    X(E_CANCELLED, -8, "cancelled")        \
    X(E_INTERNAL, -9, "internal error")    \
    X(E_TIMEOUT, -10, "took too long")

typedef enum frit_status {
#define FRIT_STATUS_ENUM(name, value, text) FRIT_##name = value,
    FRIT_STATUS_MAP(FRIT_STATUS_ENUM)
#undef FRIT_STATUS_ENUM
} frit_status;

// The general text of a code ("bad model file"). Lives for ever.
FRIT_API const char *frit_status_text(frit_status status);

// The sentence of the calling thread's last failure; "" if there was none. Valid until its next failure.
FRIT_API const char *frit_error(void);

#ifdef __cplusplus
}
#endif
#endif

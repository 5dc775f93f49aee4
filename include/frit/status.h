// SPDX-License-Identifier: MIT
// frit/status.h: statuses and errors of functions, and how the library exports them.
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
    X(E_FORMAT, -5, "bad file")            \
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

// Returns the general text of a code ("bad file"). Lives for ever.
FRIT_API const char *frit_status_text(frit_status status);

// Returns the sentence of the calling thread's last failure; "" if there was none. Valid until its next failure.
FRIT_API const char *frit_error(void);

// Returns the field or option that the calling thread's last failure is about, such as "messages[2].content" or
// "logit-bias". The sentence then begins with the field and ": ". NULL if the failure is not about one field, or if
// there was no failure. Valid until the thread's next failure.
FRIT_API const char *frit_error_field(void);

// Returns the code of the calling thread's last failure, one of FRIT_CODE_*. Programs use it to distinguish failures of
// one status: sentences may change, codes do not. Compare it with strcmp: later versions may add codes. NULL if the
// failure has no code, or if there was no failure. A failure with a field has a code. Lives for ever.
FRIT_API const char *frit_error_code(void);

#define FRIT_CODE_MISSING_PARAMETER     "missing_required_parameter"   // the field is required and absent
#define FRIT_CODE_INVALID_TYPE          "invalid_type"                 // the field has another JSON type than expected
#define FRIT_CODE_INVALID_VALUE         "invalid_value"                // the field's value is not allowed
#define FRIT_CODE_UNSUPPORTED_PARAMETER "unsupported_parameter"        // the model cannot do what the field asks for
#define FRIT_CODE_UNSUPPORTED_VALUE     "unsupported_value"            // the library cannot use the field's value
#define FRIT_CODE_NO_TOKEN_LEFT         "no_token_left"                // every token is forbidden

#ifdef __cplusplus
}
#endif
#endif

// SPDX-License-Identifier: MIT
// The names of statuses, and the calling thread's last error message.
#include "base/status.h"

#include "base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[FRIT_ERROR_BYTES];

const char *frit_status_text(frit_status status)
{
    switch (status) {
#define FRIT_STATUS_CASE(name, value, text) \
    case FRIT_##name:                       \
        return text;
        FRIT_STATUS_MAP(FRIT_STATUS_CASE)
#undef FRIT_STATUS_CASE
    }
    return "unknown status";
}

const char *frit_error(void)
{
    return sentence;
}

// strerror_r has two types: POSIX's writes into the buffer and returns a number, GNU's returns the text.
#if defined(_WIN32)

const char *frit_errno_text(int error, char text[FRIT_ERRNO_BYTES])
{
    return strerror_s(text, FRIT_ERRNO_BYTES, error) == 0 ? text : "unknown error";
}

#else

static inline const char *text_of_posix(int failed, const char *text)
{
    return failed ? "unknown error" : text;
}

static inline const char *text_of_gnu(const char *found, const char *text)
{
    (void)text;
    return found;
}

const char *frit_errno_text(int error, char text[FRIT_ERRNO_BYTES])
{
    return _Generic(strerror_r(error, text, FRIT_ERRNO_BYTES), int
                    : text_of_posix, default
                    : text_of_gnu)(strerror_r(error, text, FRIT_ERRNO_BYTES), text);
}

#endif

const char *frit_version(void)
{
#define FRIT_TEXT2(x) #x
#define FRIT_TEXT(x)  FRIT_TEXT2(x)
    return FRIT_TEXT(FRIT_VERSION_MAJOR) "." FRIT_TEXT(FRIT_VERSION_MINOR) "." FRIT_TEXT(FRIT_VERSION_PATCH);
}

void frit_fail_say(const char *format, ...)
{
    // The arguments may point into the old message, so the new one is built in another buffer.
    char next[FRIT_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    frit_vformat(next, sizeof next, format, args);
    va_end(args);
    size_t n = 0;
    for (; next[n]; n++) {
        unsigned char c = (unsigned char)next[n];
        sentence[n] = (char)(c < 32 || c == 127 ? '?' : c);
    }
    sentence[n] = 0;
}

void frit_fail_null(const char *function, const char *argument, const char *expected)
{
    frit_fail_say("%s: '%s' is NULL; expected %s", function, argument, expected);
}

frit_status frit_check_unused(const uint64_t *words, size_t n, const char *function, const char *argument)
{
    for (size_t i = 0; i < n; i++)
        if (words[i] != 0)
            return frit_fail(FRIT_E_INVALID,
                             "%s: %s.reserved is not zero; expected zero, or a library as new as the program", function,
                             argument);
    return FRIT_OK;
}

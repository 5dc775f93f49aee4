// SPDX-License-Identifier: MIT
// The names of statuses, and the calling thread's last error.
#include "base/status.h"

#include "base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local frit_failure last;

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
    return last.sentence;
}

const char *frit_error_field(void)
{
    return last.field[0] ? last.field : NULL;
}

const char *frit_error_code(void)
{
    return last.code;
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

// Makes this sentence the last error. The arguments may point into the previous error.
static void store(const char *sentence, const char *field, const char *code, bool names_file)
{
    frit_failure next = {.code = code, .names_file = names_file};
    size_t n = 0;
    for (; n < sizeof next.sentence - 1 && sentence[n]; n++) {
        const unsigned char c = (unsigned char)sentence[n];
        next.sentence[n] = (char)(c < 32 || c == 127 ? '?' : c);
    }
    frit_format(next.field, sizeof next.field, "%s", field);
    last = next;
}

void frit_fail_say(const char *format, ...)
{
    char sentence[FRIT_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    frit_vformat(sentence, sizeof sentence, format, args);
    va_end(args);
    store(sentence, "", NULL, false);
}

void frit_fail_say_file(const char *format, ...)
{
    char sentence[FRIT_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    frit_vformat(sentence, sizeof sentence, format, args);
    va_end(args);
    store(sentence, "", NULL, true);
}

void frit_fail_say_at(const char *field, const char *code, const char *format, ...)
{
    char what[FRIT_ERROR_BYTES], sentence[FRIT_ERROR_BYTES + FRIT_FIELD_BYTES];
    va_list args;
    va_start(args, format);
    frit_vformat(what, sizeof what, format, args);
    va_end(args);
    frit_format(sentence, sizeof sentence, "%s%s%s", field ? field : "", field ? ": " : "", what);
    store(sentence, field ? field : "", code, false);
}

frit_status frit_fail_in(const char *path, frit_status status)
{
    char sentence[FRIT_ERROR_BYTES];
    if (status == FRIT_OK || last.names_file) return status;
    frit_format(sentence, sizeof sentence, "%s: %s", path, last.sentence);
    store(sentence, "", last.code, true);
    return status;
}

frit_field frit_field_name(const char *format, ...)
{
    frit_field field;
    va_list args;
    va_start(args, format);
    frit_vformat(field.text, sizeof field.text, format, args);
    va_end(args);
    return field;
}

void frit_failure_get(frit_failure *failure)
{
    *failure = last;
}

void frit_failure_set(const frit_failure *failure)
{
    last = *failure;
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

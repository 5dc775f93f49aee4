// SPDX-License-Identifier: MIT
// Formats a message and passes it to the log function.
#include "base/log.h"

#include "base/number.h"

#include <stdarg.h>

void frit_log_say(const frit_log *log, frit_log_level level, const char *format, ...)
{
    if (!log || !log->fn) return;
    char sentence[FRIT_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    frit_vformat(sentence, sizeof sentence, format, args);
    va_end(args);
    log->fn(log->ctx, level, sentence);
}

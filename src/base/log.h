// SPDX-License-Identifier: MIT
// base/log.h: warnings. The library never prints: the caller's function gets the message.
#pragma once
#include "base/status.h"

typedef struct frit_log {
    frit_log_fn fn;   // NULL: silent
    void *ctx;
} frit_log;

void frit_log_say(const frit_log *log, frit_log_level level, const char *format, ...) FRIT_PRINTF(3, 4);

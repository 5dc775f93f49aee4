// SPDX-License-Identifier: MIT
// text/halt.h: ends the encoding of a text early: after too many tokens, or when it is cancelled.
#pragma once
#include "base/status.h"

typedef struct frit_halt {
    size_t max_tokens;   // 0: any number
    bool (*cancelled)(void *ctx);
    void *ctx;
    uint32_t n_checks;
} frit_halt;

// Called before every word; calls the callback from time to time.
frit_status frit_halt_check(frit_halt *halt, size_t n_tokens);

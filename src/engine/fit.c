// SPDX-License-Identifier: MIT
// How long a context the memory allows.
//
//     available memory  [ weights | scratch | keys and values ........ | left alone ...... ]
//
// Asked for: everything must fit. Left to the engine: scratch, keys and values get half of what the weights leave.
#include "engine/fit.h"

enum { STEP = 1024 };   // what a chosen context is a multiple of

static uint64_t needed(const frit_fit *fit, int32_t n_ctx)
{
    frit_kv_room room = fit->room;
    room.n_ctx = n_ctx;
    const uint64_t n_bytes = frit_kv_bytes(&fit->sizes, &room);
    return n_bytes < UINT64_MAX - fit->scratch_bytes ? n_bytes + fit->scratch_bytes : UINT64_MAX;
}

// The largest multiple of `step` up to `most` that needs at most `budget`; 0 without one.
static int32_t largest(const frit_fit *fit, int32_t most, int32_t step, uint64_t budget)
{
    int32_t low = 0, high = most / step;
    while (low < high) {
        int32_t middle = high - (high - low) / 2;
        if (needed(fit, middle * step) <= budget)
            low = middle;
        else
            high = middle - 1;
    }
    return low * step;
}

static frit_status fail_fit(const frit_fit *fit, int32_t n_ctx, uint64_t budget)
{
    return frit_fail(FRIT_E_MEMORY,
                     "%s: a context of %d tokens for %d session%s needs %llu bytes, %llu are available after the "
                     "weights (%llu bytes); ask for a smaller context",
                     fit->path, n_ctx, fit->room.n_sessions, fit->room.n_sessions == 1 ? "" : "s",
                     (unsigned long long)needed(fit, n_ctx), (unsigned long long)budget,
                     (unsigned long long)fit->weight_bytes);
}

frit_status frit_fit_context(const frit_fit *fit, int32_t *n_ctx)
{
    uint64_t budget = fit->available > fit->weight_bytes ? fit->available - fit->weight_bytes : 0;
    const double mib = 1024 * 1024;
    if (fit->n_ctx > 0) {
        if (needed(fit, fit->n_ctx) > budget) return fail_fit(fit, fit->n_ctx, budget);
        if (fit->n_ctx_train > 0 && fit->n_ctx > fit->n_ctx_train)
            frit_log_say(fit->log, FRIT_LOG_WARNING,
                         "%s: a context of %d tokens is longer than the %d it was trained for", fit->path, fit->n_ctx,
                         fit->n_ctx_train);
        *n_ctx = fit->n_ctx;
    } else {
        int32_t most = fit->n_ctx_train > 0 ? fit->n_ctx_train : 4 * STEP;
        *n_ctx = most;
        if (needed(fit, most) > budget / 2) *n_ctx = largest(fit, most, STEP, budget / 2);
        if (*n_ctx == 0) *n_ctx = largest(fit, most < STEP ? most : STEP, FRIT_PAGE_TOKENS, budget / 2);
        if (*n_ctx == 0) return fail_fit(fit, FRIT_PAGE_TOKENS, budget);
        if (*n_ctx < most)
            frit_log_say(
                fit->log, FRIT_LOG_WARNING,
                "%s: the context is %d tokens of %d, because %.1f MiB of memory are available after the weights",
                fit->path, *n_ctx, most, (double)budget / mib);
    }
    frit_log_say(fit->log, FRIT_LOG_INFO,
                 "%s: context %d tokens, %d session%s: %.1f MiB of keys, values and scratch; %.1f MiB are available",
                 fit->path, *n_ctx, fit->room.n_sessions, fit->room.n_sessions == 1 ? "" : "s",
                 (double)needed(fit, *n_ctx) / mib, (double)budget / mib);
    return FRIT_OK;
}

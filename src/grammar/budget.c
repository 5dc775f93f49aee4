// SPDX-License-Identifier: MIT
// Counts steps and bytes of a compilation.
#include "grammar/budget.h"

#include <stdlib.h>

enum { LOOK_STEPS = 1 << 16 };

static frit_status say(frit_status status)
{
    if (status == FRIT_E_CANCELLED) return frit_fail(status, "compiling the grammar was cancelled");
    return frit_fail(status,
                     "the grammar needs more than %d million steps or %d MiB to compile; expected fewer alternatives "
                     "that hold together, fewer names or shorter repetitions",
                     FRIT_BUDGET_STEPS / 1000000, FRIT_BUDGET_BYTES >> 20);
}

static frit_status fail(frit_budget *budget, frit_status status)
{
    budget->failed = status;
    budget->pause = 0;   // every later check fails
    return say(status);
}

frit_status frit_budget_look(frit_budget *budget)
{
    if (budget->failed != FRIT_OK) return say(budget->failed);
    if (budget->steps > FRIT_BUDGET_STEPS) return fail(budget, FRIT_E_LIMIT);
    if (budget->cancelled && budget->cancelled(budget->ctx)) return fail(budget, FRIT_E_CANCELLED);
    budget->pause = budget->steps + LOOK_STEPS;
    return FRIT_OK;
}

frit_status frit_budget_acquire(frit_budget *budget, size_t bytes)
{
    if (!budget) return FRIT_OK;
    FRIT_TRY(frit_budget_spend(budget, (int64_t)(bytes / 64 < INT32_MAX ? bytes / 64 : INT32_MAX)));
    if (bytes > FRIT_BUDGET_BYTES || budget->bytes + bytes > FRIT_BUDGET_BYTES) return fail(budget, FRIT_E_LIMIT);
    budget->bytes += bytes;
    return FRIT_OK;
}

void *frit_budget_resize(frit_budget *budget, void *items, size_t before, size_t after)
{
    if (frit_budget_acquire(budget, after) != FRIT_OK) return NULL;
    void *more = realloc(items, after ? after : 1);
    frit_budget_release(budget, more ? before : after);
    return more;
}

frit_status frit_budget_fail(const frit_budget *budget, size_t bytes, const char *what)
{
    return budget && budget->failed != FRIT_OK ? say(budget->failed) : frit_fail_memory(bytes, what);
}

size_t frit_json_bytes(frit_str text)
{
    enum { VALUE = 80, MEMBER = 112, LIST = 112, OBJECT = 288 };
    size_t bytes = VALUE + 2 * text.len;
    bool within = false;
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if (c == '"') within = !within;
        if (within && c == '\\') i++;
        if (within) continue;
        bytes += c == ',' ? VALUE : c == ':' ? MEMBER : c == '[' ? LIST : c == '{' ? OBJECT : 0;
    }
    return bytes;
}

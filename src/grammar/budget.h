// SPDX-License-Identifier: MIT
// grammar/budget.h: the cost limits of compiling one grammar from any text: steps, each of which takes a few
// nanoseconds, and bytes that are allocated at a time. After a failure all later charges fail too.
//
//     FRIT_TRY(frit_budget_spend(budget, n));             // before or within a loop of n steps
//     items = frit_budget_resize(budget, items, n * sizeof *items, room * sizeof *items);   // as realloc
//     free(items); frit_budget_release(budget, room * sizeof *items);
//
// Functions take NULL for a budget without limits.
#pragma once
#include "base/buf.h"

typedef struct frit_budget {
    int64_t steps;                  // taken so far
    int64_t pause;                  // steps after which the limits are checked again
    size_t bytes;                   // allocated now
    bool (*cancelled)(void *ctx);   // called from time to time by the calling thread; NULL: never
    void *ctx;
    frit_status failed;
} frit_budget;

enum { FRIT_BUDGET_STEPS = 120000000, FRIT_BUDGET_BYTES = 224 << 20 };

// Checks the limits: FRIT_E_LIMIT if there are more steps or bytes than allowed, FRIT_E_CANCELLED if `cancelled`
// returns true.
frit_status frit_budget_look(frit_budget *budget);
frit_status frit_budget_acquire(frit_budget *budget, size_t bytes);
// Resizes items from `before` to `after` bytes. NULL: frit_budget_fail has the reason, and the old items stay valid.
void *frit_budget_resize(frit_budget *budget, void *items, size_t before, size_t after);
// The status and error of a failure: of the budget or, if the budget has not failed, of memory.
frit_status frit_budget_fail(const frit_budget *budget, size_t bytes, const char *what);

// Upper bound of the bytes of the values of a JSON text after reading.
size_t frit_json_bytes(frit_str text);

static inline frit_status frit_budget_spend(frit_budget *budget, int64_t steps)
{
    if (!budget) return FRIT_OK;
    budget->steps += steps;
    return budget->steps < budget->pause ? FRIT_OK : frit_budget_look(budget);
}

static inline void frit_budget_release(frit_budget *budget, size_t bytes)
{
    if (budget) budget->bytes -= bytes;
}

// SPDX-License-Identifier: MIT
// grammar/budget.h: what compiling one grammar may cost, whatever its text is: steps, of which each takes a few
// nanoseconds, and bytes that are held at a time. A failure is remembered: everything that is charged later fails, too.
//
//     FRIT_TRY(frit_budget_spend(budget, n));             // before or within a loop of n steps
//     items = frit_budget_resize(budget, items, n * sizeof *items, room * sizeof *items);   // as realloc
//     free(items); frit_budget_give(budget, room * sizeof *items);
//
// Functions take NULL for a budget without limits.
#pragma once
#include "base/buf.h"

typedef struct frit_budget {
    int64_t steps;                  // taken so far
    int64_t pause;                  // steps after which it is looked at again
    size_t bytes;                   // held now
    bool (*cancelled)(void *ctx);   // asked now and then by the calling thread; NULL: never
    void *ctx;
    frit_status failed;
} frit_budget;

enum { FRIT_BUDGET_STEPS = 120000000, FRIT_BUDGET_BYTES = 224 << 20 };

// FRIT_E_LIMIT where there are more steps or bytes than allowed, FRIT_E_CANCELLED.
frit_status frit_budget_look(frit_budget *budget);
frit_status frit_budget_take(frit_budget *budget, size_t bytes);
// `after` bytes in place of `before`; NULL: frit_budget_fail says why. The old ones are then still there.
void *frit_budget_resize(frit_budget *budget, void *items, size_t before, size_t after);
// The status and sentence of a failure: of the budget or, where that has not failed, of memory.
frit_status frit_budget_fail(const frit_budget *budget, size_t bytes, const char *what);

// What the values of a JSON text hold at most once it is read.
size_t frit_json_bytes(frit_str text);

static inline frit_status frit_budget_spend(frit_budget *budget, int64_t steps)
{
    if (!budget) return FRIT_OK;
    budget->steps += steps;
    return budget->steps < budget->pause ? FRIT_OK : frit_budget_look(budget);
}

static inline void frit_budget_give(frit_budget *budget, size_t bytes)
{
    if (budget) budget->bytes -= bytes;
}

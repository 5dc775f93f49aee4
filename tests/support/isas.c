// SPDX-License-Identifier: MIT
// Finds the instruction sets of the build that this processor lacks.
#include "support/isas.h"

#include "support/support.h"

#include "backend/cpu/kernels.h"

static void print_missing(void)
{
    char names[256] = "";
    size_t n = 0;
    for (size_t i = 0; frit_isa_get(i); i++)
        if (!frit_isa_is_usable(frit_isa_get(i)) && n < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n > 0 ? ", " : "", frit_isa_get(i)->name);
    if (n > 0) fprintf(stderr, "partly: no kernels ran for what this processor lacks: %s\n", names);
}

int report_isas(void **state)
{
    (void)state;
    atexit(print_missing);
    return 0;
}

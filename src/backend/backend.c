// SPDX-License-Identifier: MIT
// The list of backends, best first. A backend is a row here and a folder.
#include "backend/backend.h"

#include <string.h>

static const frit_backend *const rows[] = {
    &frit_backend_cpu,
};

const frit_backend *frit_backend_find(const char *name)
{
    if (!name) return rows[0];
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        if (strcmp(rows[i]->name, name) == 0) return rows[i];
    return NULL;
}

// SPDX-License-Identifier: MIT
// The numbers of GPUs in a browser, whose module has no backend for them yet.
#include "backend/backend.h"
#include "backend/webgpu/adapters.h"

const frit_backend frit_backend_webgpu = {.name = "webgpu"};   // not in the list of backends

int frit_webgpu_count(void)
{
    return 0;
}

const char *frit_webgpu_numbered(int number)
{
    (void)number;
    return NULL;
}

int frit_webgpu_number_of(const char *name)
{
    (void)name;
    return -1;
}

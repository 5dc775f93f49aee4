// SPDX-License-Identifier: MIT
// backend/cpu/probe.h: measures the limits of this machine, with which speeds are compared.
#pragma once
#include "base/status.h"
#include "frit_tools.h"

// Sets the names, and with n_threads > 0 measures for about a second (frit_machine_probe in frit_tools.h).
frit_status frit_cpu_probe(frit_machine *machine, int32_t n_threads);

// SPDX-License-Identifier: MIT
// backend/cpu/probe.h: what this machine can do at most, measured: the figures that speeds are compared with.
#pragma once
#include "base/status.h"
#include "frit_tools.h"

// Fills the names; measures for about a second when n_threads > 0 (frit_machine_probe in frit_tools.h).
frit_status frit_cpu_probe(frit_machine *machine, int32_t n_threads);

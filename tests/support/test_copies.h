// SPDX-License-Identifier: MIT
// support/test_copies.h: copies that the test device computes with, so that it reads nothing of the host.
#pragma once
#include "backend/backend.h"
#include "graph/graph.h"

uint64_t test_copy_bytes(const frit_adapter_table *from);   // of test_copy_adapter's `bytes`
// Copies the matrices to `bytes`, and the table's lists to the arena. Returns the number of matrices.
size_t test_copy_adapter(frit_adapter_table *table, const frit_adapter_table *from, frit_arena *arena, uint8_t *bytes);
// Copies nodes, output and results.
frit_status test_copy_graph(frit_graph *copy, frit_arena *arena, const frit_graph *graph);

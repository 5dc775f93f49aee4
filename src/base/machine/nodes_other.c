// SPDX-License-Identifier: MIT
// Memory nodes on systems other than Linux: threads and memory stay where the system puts them.
#include "base/machine/nodes.h"

bool frit_nodes_stay(const frit_nodes *nodes, int node)
{
    (void)nodes, (void)node;
    return true;
}

bool frit_nodes_spread(const frit_nodes *nodes, void *memory, uint64_t n_bytes)
{
    (void)nodes, (void)memory, (void)n_bytes;
    return true;
}

// SPDX-License-Identifier: MIT
// Assigns the threads of a pool to memory nodes.
#include "base/machine/nodes.h"

int frit_nodes_of_thread(const frit_nodes *nodes, int thread, int n_threads)
{
    if (nodes->n < 2) return 0;
    const int at = (int)((int64_t)(2 * thread + 1) * nodes->n_cpus / (2 * (int64_t)n_threads));
    int node = 0;
    while (node + 1 < nodes->n && at >= nodes->first[node + 1]) node++;
    return node;
}

// SPDX-License-Identifier: MIT
// base/nodes.h: the memory nodes of a machine. A CPU reads its own node's memory faster than another's, and memory lies
// on the node of whoever touches it first. So threads that stay on a node, and pack the weights that they will read,
// have them near; what everybody reads is spread over all nodes.
//
//     part         0  1  2  3 | 4  5  6  7         of a pool, in proportion to the CPUs of each node
//     node         0          | 1
//
// On machines with one node, and where nodes are not known, `n` is 1 and there is nothing to do.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRIT_MAX_NODES = 64, FRIT_MAX_NODE_CPUS = 4096 };

typedef struct frit_nodes {
    int n;                               // with CPUs that this process may use; others are left out
    int numbers[FRIT_MAX_NODES];         // the system's, ascending
    int n_cpus;                          // that it may use
    int16_t cpus[FRIT_MAX_NODE_CPUS];    // by node, then ascending
    int16_t first[FRIT_MAX_NODES + 1];   // of a node's, in cpus
} frit_nodes;

// Of the CPUs in the list, ascending, from sysfs below `root` ("" on a real machine).
void frit_nodes_of(frit_nodes *nodes, const char *root, const int *cpus, int n_cpus);
// Where a part of so many belongs: an index of numbers.
int frit_nodes_of_part(const frit_nodes *nodes, int part, int parts);
// The calling thread runs on the CPUs of this node from now on. False: it was refused.
bool frit_nodes_stay(const frit_nodes *nodes, int node);
// Pages of this memory that were not touched yet go to all nodes by turns. False: it was refused; nothing is lost.
bool frit_nodes_spread(const frit_nodes *nodes, void *memory, uint64_t n_bytes);

// SPDX-License-Identifier: MIT
// base/machine/nodes.h: the memory (NUMA) nodes of a machine. A CPU reads its own node's memory faster than another's.
// A page is placed on the node of the thread that touches it first. So threads stay on a node and pack the weights that
// they will read; memory that all threads read is interleaved over the nodes.
//
//     part         0  1  2  3 | 4  5  6  7         of a pool, in proportion to the CPUs of each node
//     node         0          | 1
//
// On machines with one node, and where nodes are unknown, `n` is 1 and nothing is placed.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRIT_MAX_NODES = 64, FRIT_MAX_NODE_CPUS = 4096 };

typedef struct frit_nodes {
    int n;                               // nodes with CPUs that this process may use
    int numbers[FRIT_MAX_NODES];         // the system's node numbers, ascending
    int n_cpus;                          // CPUs that this process may use
    int16_t cpus[FRIT_MAX_NODE_CPUS];    // by node, then ascending
    int16_t first[FRIT_MAX_NODES + 1];   // index in cpus of each node's first CPU
} frit_nodes;

// The nodes of the listed CPUs (ascending), from sysfs below `root` ("" on a real machine).
void frit_nodes_of(frit_nodes *nodes, const char *root, const int *cpus, int n_cpus);
// The node of a thread of a pool: an index into numbers.
int frit_nodes_of_thread(const frit_nodes *nodes, int thread, int n_threads);
// Binds the calling thread to the CPUs of the node. False: refused by the system.
bool frit_nodes_stay(const frit_nodes *nodes, int node);
// Interleaves the untouched pages of this memory over all nodes. False: refused by the system; harmless.
bool frit_nodes_spread(const frit_nodes *nodes, void *memory, uint64_t n_bytes);

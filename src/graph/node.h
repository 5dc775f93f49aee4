// SPDX-License-Identifier: MIT
// graph/node.h: private to graph/: making nodes, and the shape rules that check them.
#pragma once
#include "graph/graph.h"

// A shape rule sets the rows and shape of a node from its sources and attributes. If the shape is an attribute
// (RESHAPE, ATTEND), the rule checks it. An error names the op, what was found and what is expected.
typedef frit_status (*frit_shape_rule)(frit_node *node);

#define OP(NAME, name, min_src, max_src, sources, attr, shape, rows, cut, formula) \
    frit_status frit_shape_##shape(frit_node *node);
#include "graph/ops.def"
#undef OP

// Checks the template `node` (op, sources, attributes) and copies it into the graph. NULL if the graph has failed now
// or before.
frit_node *frit_node_new(frit_graph *g, frit_node node);
// Copies a node that was checked in another graph. Its sources must be nodes of `g`.
frit_node *frit_node_copy(frit_graph *g, const frit_node *node);
// "[T, 64]": T stands for the rows of the step, O for its output rows. Returns `text`.
const char *frit_node_shape_text(const frit_node *node, char text[96]);
// Fails: "op linear (x w [b]): found [T, 64] and [96, 32], expected a matrix ...", of sources a and b.
frit_status frit_node_fail_shape(const frit_node *node, int a, int b, const char *expected);
bool frit_node_is_leaf(const frit_node *node);
bool frit_node_is_write(const frit_node *node);   // writes to the cache, has no result

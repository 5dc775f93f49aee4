// SPDX-License-Identifier: MIT
// graph/node.h: for graph/ alone: how nodes are made, and the shape rules that check them.
#pragma once
#include "graph/graph.h"

// A shape rule looks at a node's sources and attributes, and sets its rows and shape. Nodes whose shape is an attribute
// (RESHAPE, ATTEND) come with it and have it checked. Failures are sentences: op, what was found, what was expected.
typedef frit_status (*frit_shape_rule)(frit_node *node);

#define OP(NAME, name, min_src, max_src, sources, attr, shape, rows, formula) \
    frit_status frit_shape_##shape(frit_node *node);
#include "graph/ops.def"
#undef OP

// Checks the template `node` (op, sources, attributes) and copies it into the graph; NULL after a failure, also an
// earlier one.
frit_node *frit_node_new(frit_graph *g, frit_node node);
// The same without the check, for a node that was checked in another graph. Its sources are those of this one.
frit_node *frit_node_copy(frit_graph *g, const frit_node *node);
// "[T, 64]": T stands for the rows of the step, O for its output rows. Returns `text`.
const char *frit_node_shape_text(const frit_node *node, char text[96]);
int64_t frit_node_n_elems(const frit_node *node);
bool frit_node_is_leaf(const frit_node *node);
bool frit_node_is_write(const frit_node *node);   // to the cache: there is no result

// SPDX-License-Identifier: MIT
// backend/webgpu/ops/product.h: launches of products with tiles (kernels/product.wgsl, kernels/matrix.wgsl), and their
// input (kernels/quantize.wgsl). Products of matrices and those of experts both use it.
#pragma once
#include "backend/webgpu/exec.h"
#include "backend/webgpu/weights/tiles.h"

// Steps with more rows run matrix.wgsl.
enum { FRIT_WEBGPU_GEMV_ROWS = 8 };

typedef enum frit_webgpu_routed {   // ROUTED of kernels/routed.wgsl
    FRIT_WEBGPU_BY_ROW,
    FRIT_WEBGPU_BY_ASSIGNMENT,
    FRIT_WEBGPU_BY_GROUP,
    FRIT_WEBGPU_SUM,
    FRIT_WEBGPU_BY_HEAD
} frit_webgpu_routed;

typedef struct frit_webgpu_product {
    const frit_node *node;   // its rows are the rows of the grid
    const frit_webgpu_tensor *weights;
    int part;              // the buffer of `weights`
    int64_t n_in, n_out;   // columns of the matrix, and numbers of a row of the result
    uint32_t result;       // offset in the scratch memory
    bool is_int;
    bool by_tiles;       // matrix.wgsl, otherwise product.wgsl
    int64_t n_at_once;   // rows of a group of threads
    frit_webgpu_routed routed;
} frit_webgpu_product;

// Adds the launch without what is applied to results. Its grid has n[0] groups for the rows of the matrix.
frit_status frit_webgpu_product_new(frit_exec *exec, const frit_webgpu_product *product, frit_webgpu_launch **out);
int64_t frit_webgpu_most_rows(const frit_exec *exec, const frit_node *node);   // of a step of the plan
void frit_webgpu_define_type(frit_webgpu_kernel *kernel, frit_dtype dtype);
// Makes the rows of x the input of products, if they are not yet.
frit_status frit_webgpu_add_input(frit_exec *exec, const frit_node *x, bool is_int);
// The rows of the node as products of integers read them, so that its kernel may write their input (see below). NULL:
// there are no such products.
const frit_node *frit_webgpu_input_of_products(const frit_exec *exec, const frit_node *node);
// Reserves memory for the input of products of the node's rows, and notes that a launch writes it. Returns its blocks.
int64_t frit_webgpu_input_reserve(frit_exec *exec, const frit_node *node, bool is_int);
// True if the product of the node with its matrix is one of integers.
bool frit_webgpu_is_int_product(const frit_exec *exec, const frit_node *node);

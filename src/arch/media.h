// SPDX-License-Identifier: MIT
// arch/media.h: encoders of pictures: a list of weights and a layer function, as for other architectures (arch.h).
//
// The rows of a step are patches of a picture instead of tokens. Each row brings what the encoder reads, one after the
// other: the pixels of its patch, the cosines and sines of its rotation (op rope_angles), the number of its window
// (op attend_uncached), and its places in a table of positions with their weights (op embed_mix) or, if the table is
// resized for each picture, its vector. The results are the rows that stand for the picture in a text: each is computed
// from a block of consecutive rows, which is why rows are placed block by block.
//
//     frit_media_count(arch, hp, grid, &size);                      rows and results of a picture of this size
//     frit_media_place(arch, hp, &weights, grid, pixels, &rows);    fills the input of its rows
//     frit_media_build(&graph, arch, hp, &weights);                 writes the graph of a step
#pragma once
#include "arch/arch.h"

typedef struct frit_media_grid {   // of a picture, in patches
    int32_t height, width;
} frit_media_grid;

typedef struct frit_media_size {
    int64_t n_rows, n_outs;
} frit_media_size;

typedef struct frit_patch_place {   // of a row
    int32_t patch;                  // its pixels: index in the processor's order; -1: none, of a class row
    int32_t turns[2];               // positions by which the first and the second half of its pairs rotate
    int32_t place;                  // its row of the table of positions
    int32_t segment;                // number of its window
} frit_patch_place;

// The input of a picture's rows.
typedef struct frit_media_rows {
    float *given;        // [n_rows, frit_media_width]
    int32_t *out_rows;   // [n_outs]: the first row of the block that each result is computed from
} frit_media_rows;

struct frit_media_arch {
    bool has_turns, has_segments;
    bool turns_alternate;   // frequencies belong to rows and columns in turn, otherwise both have the same
    bool has_places;        // rows read a table of learned positions, by the number of their place
    bool has_class;         // a row stands for the whole picture (CLIP), and gives no result
    bool is_bounded;        // pictures have at most hp->media.side rows and columns of patches
    bool drops_rest;        // patches beside whole blocks are rows too, and give no result
    bool centers_pixels;    // the processor's pixels are 0 to 1, and the encoder reads -1 to 1
    // With has_places: rows of the table that a patch reads, if there are several. tap writes indices and weights.
    int32_t n_taps;
    void (*tap)(const frit_hparams *hp, frit_media_grid grid, const frit_patch_place *at, float *rows, float *weights);
    // Resizes the table of learned positions to a grid: places [height * width, n_embd]. Rows bring their vector. NULL:
    // the encoder has no table, or one for pictures of one size.
    frit_status (*resize_places)(const frit_hparams *hp, const frit_weights *weights, frit_media_grid grid,
                                 float *places);
    // Places the rows and the blocks. The grid's sides are multiples of hp->media.merge.
    void (*place)(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows, int32_t *out_rows);
};

const frit_arch *frit_media_arch_find(const char *name);   // NULL if unknown

// FRIT_E_INVALID if a side of the grid is no multiple of the encoder's blocks.
frit_status frit_media_count(const frit_arch *arch, const frit_hparams *hp, frit_media_grid grid, frit_media_size *out);
int64_t frit_media_width(const frit_arch *arch, const frit_hparams *hp);   // floats that each row brings
int64_t frit_media_out_width(const frit_hparams *hp);                      // elements of a result
// pixels [patches, n_embd_in], in the order of the model's processor.
frit_status frit_media_place(const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights,
                             frit_media_grid grid, const float *pixels, const frit_media_rows *out);
// The output is [n_outs, frit_media_out_width].
frit_status frit_media_build(frit_graph *g, const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights);

// Places rows block by block. The processor gives patches row by row, or block by block too.
void frit_media_place_blocks(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows, int32_t *out_rows);
void frit_media_place_squares(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows, int32_t *out_rows);
// For `tap`: the four places around the patch of a table with hp->media.side rows and columns, which is stretched over
// the picture and interpolated bilinearly. Patches turn by their row and column.
void frit_media_tap_bilinear(const frit_hparams *hp, frit_media_grid grid, const frit_patch_place *at, float *rows,
                             float *weights);
// The first row is the class row, and its position is the first of the table.
void frit_media_place_after_class(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows,
                                  int32_t *out_rows);
// For `compute`: adds the class row's vector to row i of the positions, so that all rows read one table.
frit_status frit_media_add_class(frit_weights *weights, int64_t i, frit_arena *arena);
// A layer: x + attention(norm(x)), then x + feed_forward(norm(x)). What is added may have a factor for each element.
frit_node *frit_media_layer(frit_build *b, const frit_layer *w, frit_node *x);
// Joins the rows of each block: [n_outs, merge * merge * n_embd].
frit_node *frit_media_blocks(frit_build *b, frit_node *x);
// The mean of the rows of each block: [n_outs, n_embd].
frit_node *frit_media_mean(frit_build *b, frit_node *x);
// The results of Qwen's encoders: a norm, the joined rows of each block, two matrices with GELU between.
frit_node *frit_media_merge(frit_build *b, frit_node *x);
// The joined rows of each block, a norm if the model has one, two matrices with GELU between.
frit_node *frit_media_merge_normed(frit_build *b, frit_node *x);

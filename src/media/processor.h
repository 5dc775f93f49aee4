// SPDX-License-Identifier: MIT
// media/processor.h: processors, which make the input of a vision encoder of a picture of any size.
//
// A processor is data, read from a model's files (format/processor.h). Its rule says how a picture is resized and cut
// into *tiles*, which an encoder sees one by one; with most rules a picture is one tile. A tile is cut into square
// *patches*, which are the rows of the encoder's input. The encoder makes *features* of them, vectors that take the
// places of soft tokens in the prompt.
//
//     frit_picture_plan plan;
//     FRIT_TRY(frit_processor_plan(&plan, processor, width, height));   // sizes alone, without pixels
//     float *patches = malloc((size_t)plan.n_patches * plan.patch_values * sizeof *patches);
//     FRIT_TRY(frit_processor_patches(processor, &plan, image, patches));
//
// A patch is a row for a LINEAR node. Its numbers are in the order of the encoder's weights as published: color, frame,
// y, x (a convolution's), or y, x, color if `colors_last`.
//
// Tiles follow each other, and in a tile patches do: row by row from above, each row from the left. With a `block` of
// 2 (Qwen2-VL, GLM), a tile is squares of 2x2 patches in that order, and the patches of a square are in that order too:
// the features of patches 4 i to 4 i + 3 become soft token i.
#pragma once
#include "base/status.h"
#include "media/resample.h"

enum {
    FRIT_MAX_GRIDS = 64,            // of a processor with the rule ANYRES
    FRIT_MAX_TILES = 256,           // of a picture
    FRIT_MAX_TILE_SIDE = 1 << 14,   // in pixels
    FRIT_MARK_BYTES = 64,
};

typedef struct frit_grid {
    uint32_t rows, columns;
} frit_grid;

typedef enum frit_tile_rule {
    FRIT_RULE_SMART,     // Qwen2-VL, GLM: multiples of a factor, with a number of pixels within limits
    FRIT_RULE_STRETCH,   // Gemma 3: one size for all pictures
    FRIT_RULE_CROP,      // LLaVA 1.5: the shortest side becomes a length, and the center is used
    FRIT_RULE_LONGEST,   // Pixtral: sides of at most a length, rounded up to whole patches
    FRIT_RULE_SPLIT,     // Idefics 3: the longest side becomes a length, then whole tiles; the whole picture is last
    FRIT_RULE_BUDGET,    // Gemma 4: as large as a number of soft tokens allows
    FRIT_RULE_CANVAS,    // InternVL: the grid of tiles with the nearest shape; the whole picture is last
    FRIT_RULE_ANYRES,    // LLaVA-NeXT, LLaVA-OneVision: the whole picture is first, then tiles of the best listed size
    FRIT_RULE_TOKENS,    // LFM2-VL: SMART by numbers of soft tokens, and CANVAS for larger pictures
    FRIT_RULE_CHUNKS,    // Llama 4: tiles that are filled up with black; the whole picture is last
    FRIT_RULE_COUNT,
} frit_tile_rule;

// Marks that stand around and between the soft tokens of a picture.
typedef enum frit_mark_style {
    FRIT_MARKS_AROUND,    // `before` and `after`, which are often ""
    FRIT_MARKS_ROWS,      // Pixtral: `row_break` after each row but the last, then `after`
    FRIT_MARKS_IDEFICS,   // <row_1_col_1> before each tile, a line for each row of tiles
    FRIT_MARKS_LFM2,      // <|img_row_1_col_1|> before each tile, <|img_thumbnail|> before the whole picture
    FRIT_MARKS_LLAMA4,    // separators after tiles and after rows of tiles
} frit_mark_style;

// Lengths are in pixels. A field that the rule does not use is 0.
typedef struct frit_processor {
    frit_tile_rule rule;
    frit_filter filter;
    int n_bits;   // of the filter's weights, for frit_resample

    uint32_t patch;    // side of a patch
    uint32_t frames;   // how often a patch has its pixels: 2 for encoders of videos, otherwise 1
    uint32_t merge;    // merge x merge patches become one soft token
    uint32_t block;    // patches are in squares of block x block; 1: row by row
    bool colors_last;
    uint32_t soft_per_tile;   // soft tokens of each tile; 0: as many as merged patches
    int32_t extra_soft;       // soft tokens of each tile beside those of its patches: 1 for a class token

    uint32_t width, height;            // of a tile, or of each picture (STRETCH)
    uint32_t shortest;                 // CROP
    uint32_t longest;                  // LONGEST, SPLIT
    uint64_t min_pixels, max_pixels;   // SMART: of a resized picture
    bool counts_frames;                // SMART: pixels are counted once for each frame (GLM-4.1V)
    uint32_t min_tokens, max_tokens;   // BUDGET, TOKENS: soft tokens
    uint32_t min_tiles, max_tiles;     // CANVAS, TOKENS, CHUNKS
    double tolerance;                  // TOKENS: a picture of more than tolerance x max_tokens soft tokens is cut
    bool splits;                       // SPLIT, CANVAS, TOKENS: larger pictures are cut into tiles
    bool adds_whole;                   // CANVAS, TOKENS: the whole picture follows its tiles
    bool fills_canvas;                 // CHUNKS: pictures are enlarged to the largest canvas
    frit_grid grids[FRIT_MAX_GRIDS];   // ANYRES: sizes; rows are pixels of the height
    uint32_t n_grids;
    uint32_t max_anyres;   // ANYRES: features are shrunk to those of this number of tiles; 0: they stay

    double rescale;   // 1/255
    float mean[3], deviation[3];
    bool rescales, normalizes;
    bool is_fused;   // mean and deviation are multiplied by 255 instead of dividing pixels, as torchvision does
    bool is_bf16;    // Llama 4: each number is rounded to bfloat16

    frit_mark_style mark_style;
    char placeholder[FRIT_MARK_BYTES];   // what a chat template writes for a picture
    char before[FRIT_MARK_BYTES], after[FRIT_MARK_BYTES], row_break[FRIT_MARK_BYTES];
    char lead[FRIT_MARK_BYTES], tail[FRIT_MARK_BYTES];   // plain text around all marks (Gemma 3)
} frit_processor;

// The work of a processor with pictures of one size.
typedef struct frit_picture_plan {
    uint32_t width, height;               // of the picture
    uint32_t first_width, first_height;   // SPLIT: of the picture resized before all else; otherwise as the picture
    uint32_t out_width, out_height;       // of the resized picture
    int32_t x, y;                         // where it lies on the canvas of all tiles; CROP: negative
    uint32_t tile_width, tile_height;
    frit_grid tiles;                      // that the picture is cut into; 1x1: it is not cut
    bool has_whole;                       // the whole picture is one more tile: the first (ANYRES), or the last
    uint32_t whole_width, whole_height;   // of that tile

    uint32_t n_tiles;          // with the whole picture
    frit_grid tile_patches;    // patches of each tile
    frit_grid whole_patches;   // patches of the whole picture's tile
    uint32_t n_patches;        // of all tiles
    uint32_t patch_values;     // numbers of a patch
    uint32_t n_soft;           // soft tokens of all tiles
    uint32_t n_marks;          // tokens of marks that the processor writes, if each newline is a token

    // ANYRES: soft tokens are the features of the whole picture, then those of the tiles as one grid, `canvas`. Its
    // rows and columns of padding are left out, the rest is shrunk bilinearly, and a learned vector (image_newline)
    // follows each row.
    frit_grid canvas;
    uint32_t skipped_rows, skipped_columns;   // left out above and below, or on the left and on the right
    frit_grid shown;                          // what remains
    frit_grid shrunk;                         // as `shown` if it is not shrunk
} frit_picture_plan;

// Narrows the numbers of soft tokens that pictures become; 0: no limit. A number that the rule cannot reach is
// approached: a picture has the tokens of one tile at least, and ANYRES those of two. Rules with one size for all
// pictures (STRETCH, CROP) stay as they are, and only SMART and TOKENS enlarge pictures to min_tokens.
void frit_processor_limit(frit_processor *processor, uint32_t min_tokens, uint32_t max_tokens);
// Plans pictures of a size. FRIT_E_INVALID for a size that the processor refuses, FRIT_E_LIMIT for one that would have
// too many tiles or pixels.
frit_status frit_processor_plan(frit_picture_plan *plan, const frit_processor *processor, uint32_t width,
                                uint32_t height);
// Returns true if tile i is the whole picture.
bool frit_plan_is_whole(const frit_picture_plan *plan, const frit_processor *processor, uint32_t i);
// Returns the patches of tile i.
frit_grid frit_plan_tile(const frit_picture_plan *plan, const frit_processor *processor, uint32_t i);
// Returns the soft tokens of one tile. Not for ANYRES, whose tiles have their soft tokens together.
uint32_t frit_plan_tile_soft(const frit_picture_plan *plan, const frit_processor *processor, uint32_t i);

// Writes the patches [n_patches, patch_values] of an image of the planned size. FRIT_E_MEMORY.
frit_status frit_processor_patches(const frit_processor *processor, const frit_picture_plan *plan,
                                   const frit_image *image, float *patches);

// Calls `each` for the parts that replace the placeholder in the prompt, in order: a text, whose control tokens are
// parsed, or n_soft soft tokens, with a text of NULL. Two texts never follow each other.
typedef frit_status (*frit_mark_fn)(void *ctx, const char *text, uint32_t n_soft);
frit_status frit_processor_marks(const frit_processor *processor, const frit_picture_plan *plan, frit_mark_fn each,
                                 void *ctx);

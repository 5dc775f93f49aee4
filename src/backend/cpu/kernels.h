// SPDX-License-Identifier: MIT
// backend/cpu/kernels.h: the small kernels that every instruction set may replace, as a struct of function pointers.
//
// isa.def lists the instruction sets from slowest to fastest. Each installs its kernels over the slower ones, and
// "scalar" fills every field. Kernels know nothing of graphs, threads or the cache. No pointer needs alignment beyond
// the one of its elements; weights may start at any byte.
//
// A product multiplies rows of weights by rows of activations. Each weight type names the *form* of the activations
// that it reads: f32, or int8 codes with scales, which are computed once for each input row and shared by all products
// that read the row. Types without a product of their own are decoded to f32, a few rows at a time (fast_linear.c).
//
//     F32             f32[n]
//     Q8              codes int8[n] | scales f32[n / 32] | sums f32[n / 16]: scale * sum of 16 codes, for types with
// mins
//     Q8_LINES        a frit_q8_line for every 32 elements, for packed weights
//     Q8_TRANSPOSED   Q8_LINES with transposed codes: first column 0 of each of the line's four spans of eight columns,
//                     then column 1 of each, and so on, for weights that look up spans of eight columns
//     BF16_TILES      bf16, sixteen rows together: 32 elements of each row, then the next 32 of each row, and so on
//     BF16_PAIRS      BF16_TILES with the rounding errors, again in bf16, after every 32 elements: 16 bits of precision
//
// There is a scale for every 32 elements, although a block of the K types holds 256: it costs little and halves the
// error of the model's results.
#pragma once
#include "backend/cpu/thresholds.h"
#include "graph/graph.h"

#include <math.h>

// For templates: functions whose parameters, including function pointers, are constants where they are called.
#if defined(_MSC_VER)
#define FRIT_INLINE static __forceinline
#else
#define FRIT_INLINE static inline __attribute__((always_inline))
#endif

// FRIT_UNROLL(n) stands before a loop with a constant number of iterations, at most n, and unrolls it fully, so that
// local arrays stay in registers. FRIT_UNROLL_BY(n) unrolls a loop with any number of iterations n times. Compilers
// ignore each other's pragmas.
#define FRIT_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define FRIT_UNROLL(n)    FRIT_PRAGMA(clang loop unroll(full))
#define FRIT_UNROLL_BY(n) FRIT_PRAGMA(clang loop unroll_count(n))
#elif defined(__GNUC__) && defined(__OPTIMIZE__)   // without optimization gcc warns of the pragma
#define FRIT_UNROLL(n)    FRIT_PRAGMA(GCC unroll n)
#define FRIT_UNROLL_BY(n) FRIT_UNROLL(n)
#else
#define FRIT_UNROLL(n)
#define FRIT_UNROLL_BY(n)
#endif

// Makes the compiler compute *v before the code that follows. `registers` is the constraint letter of inline assembly.
// Without it clang unpacks the codes of many products at once and spills registers. gcc reorders only on ARM, where an
// option prevents it (cmake/FritCompiler.cmake).
#if defined(__clang__)
#define FRIT_KEEP_ORDER(v, registers) __asm__ volatile("" : "+" registers(*(v)))
#else
#define FRIT_KEEP_ORDER(v, registers) (void)(v)
#endif

typedef enum frit_form {
    FRIT_FORM_F32,
    FRIT_FORM_Q8,
    FRIT_FORM_Q8_LINES,
    FRIT_FORM_Q8_TRANSPOSED,
    FRIT_FORM_BF16_TILES,
    FRIT_FORM_BF16_PAIRS,
    FRIT_FORM_COUNT
} frit_form;

enum { FRIT_TILE_ROWS = 16, FRIT_TILE_COLUMNS = 32, FRIT_TILE_BYTES = 1024 };   // a tile of BF16_*

// Bytes of one row of n values, a multiple of 64. n is a multiple of 32 except for F32 and BF16_PAIRS. Rows of Q8_LINES
// and Q8_TRANSPOSED have an odd number of lines, so that rows of neighbouring tokens fall into different cache sets.
size_t frit_form_bytes(frit_form form, int64_t n);
// Bytes of n_rows rows. BF16_* rounds n_rows up to a multiple of 16.
size_t frit_form_bytes_of_rows(frit_form form, int64_t n_rows, int64_t n);
// Bytes from 32 elements of a row to the next 32; 0: a row is converted as a whole.
size_t frit_form_column_bytes(frit_form form);
// True for BF16_*, which store sixteen rows together.
bool frit_form_is_tiled(frit_form form);
// Address of row i, for `convert`. Products read rows from a multiple of 16 on.
uint8_t *frit_form_row(frit_form form, uint8_t *rows, int64_t i, int64_t n);

// 32 activations in one cache line. A kernel whose weight codes are biased by o starts its integer sum with -o times
// the sum of the activation codes.
typedef struct frit_q8_line {
    int8_t codes[32];
    float scale;
    float sum;             // scale * sum of the codes
    float sums_16[2];      // scale * sum of 16 codes
    int32_t minus_128;     // -128 * sum of the codes
    int32_t minus_32[2];   // -32 * sum of 16 codes
    int16_t sums[2];       // sum of 16 codes
} frit_q8_line;

// Transposes the lines of n numbers in place: Q8_LINES to Q8_TRANSPOSED.
void frit_transpose_q8_lines(frit_q8_line *lines, int64_t n);

// y[j * y_stride + i] = dot(w row i, x row j) for n_w rows of weights and n_x rows of activations. For layouts that
// interleave rows, `w_stride` is the bytes of one group of rows.
typedef struct frit_product {
    const uint8_t *w;
    size_t w_stride;    // bytes
    const uint8_t *x;   // rows in the kernel's form
    size_t x_stride;    // bytes
    float *y;
    size_t y_stride;   // floats
    int64_t n_w, n_x;
    int64_t n;          // values in a row
    uint8_t *scratch;   // FRIT_PRODUCT_SCRATCH bytes at a multiple of 64, for kernels that unpack
    int64_t n_ahead;    // rows of weights after these that are read next, to prefetch
    bool in_order;      // decode: reads weights in the order of memory instead of several panels side by side
} frit_product;

enum { FRIT_PRODUCT_SCRATCH = 520 << 10 };

typedef struct frit_product_kernel {
    void (*run)(const frit_product *p);   // NULL: decode to f32
    frit_form form;
    const char *isa;
    const struct frit_interleave *layout;   // layout of panels (pack.h)
} frit_product_kernel;

typedef void (*frit_unary_fn)(float *y, const float *x, int64_t n);

// Positions that attention looks at before it updates its maxima and sums, a few pages.
enum {
    FRIT_ATTEND_ROWS = 8 * FRIT_PAGE_TOKENS,   // by rows
    FRIT_ATTEND_SPAN = 4 * FRIT_PAGE_TOKENS,   // by tiles
    FRIT_BF16_PAGES = 16,
    FRIT_BF16_SPAN = FRIT_BF16_PAGES * FRIT_PAGE_TOKENS,   // in bf16
    FRIT_BF16_BLOCK = 8 * FRIT_PAGE_TOKENS                 // positions whose weights are stored at once in bf16
};
enum { FRIT_ATTEND_LANES = 16 };   // lanes of the widest panel of queries

// One head of a page of transposed keys, [dim, FRIT_PAGE_TOKENS]. The two addresses `ahead` are prefetched, 64 bytes
// for each dimension: the hardware prefetcher cannot know where the next page is.
typedef struct frit_attend_keys {
    const uint8_t *page, *ahead[2];
} frit_attend_keys;

// Logarithm of the smallest weight of attention, 2^-100. Smaller weights, or their products with values, could be
// subnormal numbers, which processors compute about a hundred times slower.
#define FRIT_LEAST_WEIGHT -69.3147f

enum { FRIT_SPAN_PAGES = 2 * FRIT_ATTEND_SPAN / FRIT_PAGE_TOKENS };   // pages of keys and pages of values

// Many queries of one head of the cache against n_p positions. Queries are lanes: a panel holds frit_kernels.lanes
// queries, so that maxima, sums and weights need no operation across lanes. Unused lanes of the last panel see no
// position.
typedef struct frit_attend_tile {
    int64_t n_panels, n_p, k_dim, v_dim;
    const float *k, *v;           // [n_p, k_dim], [n_p, v_dim]
    bool k_transposed;            // k is [page, k_dim, FRIT_PAGE_TOKENS], from the page of the tile's first position on
    const float *q;               // [n_panels, k_dim, lanes], scaled
    float *acc;                   // [n_panels, v_dim, lanes]: sums of weighted values
    float *max, *sum;             // [n_panels, lanes]: largest score, sum of the exponentials relative to it
    const int32_t *begin, *end;   // [n_panels, lanes]: positions that are seen; may lie outside of the tile
    const float *slope;           // [n_panels, lanes], or NULL: scores lose slope * |own_position - position|
    const int32_t *own_position;   // [n_panels, lanes]: the query's own position
    const float *bias;             // NULL, or added to scores: bias[n_p - 1 - p + i] for query i at position p
    int32_t first;                 // first position of the tile
    float softcap;
    bool cut;           // some query does not see all positions of the tile
    uint8_t *scratch;   // FRIT_ATTEND_SCRATCH bytes, at a cache line
    struct {
        const uint8_t *first;
        size_t n_bytes;
    } ahead[FRIT_SPAN_PAGES];   // pages of keys and values that are decoded next, to prefetch
    int n_ahead;
} frit_attend_tile;

enum { FRIT_ATTEND_SCRATCH = 2 * FRIT_ATTEND_LANES * FRIT_ATTEND_SPAN * 4 };   // scores of two panels

// Many queries of one head of the cache against a few pages, factors rounded to bfloat16.
//
// The unit of scores is 1 / FRIT_OCTAVE of an octave: a score s has the weight 2^(s / 128). The bits of a bf16 number
// are 128 times its logarithm to base 2, plus 128 * 127, except for a small correction of the seven mantissa bits, so a
// weight is a score rounded to an integer. `lift` is added to scores first: with the lift 128 * (127 - t) the weights
// of a query are relative to a score of t octaves. The kernel lowers the lift of queries whose weights reach 2, and
// their sums with it, by whole octaves, so nothing is rounded.
enum { FRIT_BF16_QUERIES = 32, FRIT_OCTAVE = 128, FRIT_BF16_ROOM = 40 };

// The lift of a query that may meet scores up to FRIT_BF16_ROOM octaves above this one.
static inline float frit_bf16_lift(float score)
{
    return FRIT_OCTAVE * (127 - FRIT_BF16_ROOM - ceilf(score / FRIT_OCTAVE));
}

// Makes tiles of the keys and values of one head and one page, frit_bf16_page_bytes.
typedef struct frit_bf16_page {
    frit_dtype k_type, v_type;   // F32, F16 or BF16
    uint64_t k_bytes, v_bytes;   // bytes from one position to the next
    const uint8_t *k, *v;        // rows of the page
    bool k_transposed;           // k is [k_dim, FRIT_PAGE_TOKENS]
    int begin, end;              // positions that may be read; the others become zeros
    int64_t k_dim, v_dim;
    uint8_t *tiles;   // the result, at a cache line
} frit_bf16_page;

// Bytes of the tiles of a page and a head. k_dim is rounded up to a multiple of 32.
static inline size_t frit_bf16_page_bytes(int64_t k_dim, int64_t v_dim)
{
    return FRIT_PAGE_TOKENS * ((size_t)(k_dim + 31) / 32 * 32 + (size_t)v_dim) * 2;
}

typedef struct frit_attend_bf16 {
    int64_t n_queries, k_dim, v_dim;   // multiples of FRIT_BF16_QUERIES, of 1, of 16
    const uint8_t *tiles;              // tiles of at most FRIT_BF16_PAGES pages
    const uint8_t *ahead;              // memory that is read next, to prefetch
    size_t n_ahead;                    // its bytes
    int32_t first;                     // position of the first row of the first page
    int32_t begin, end;                // positions to look at
    const uint8_t *q;                  // FRIT_FORM_BF16_TILES, in units of 1 / FRIT_OCTAVE of an octave
    float *lift;                       // [n_queries], multiples of FRIT_OCTAVE
    float *acc;   // [n_queries, v_dim + 16]: sums of weighted values; the last 16 add up to the sum of the weights
    const int32_t *seen_begin, *seen_end;   // [n_queries]: positions that are seen
    const float *slope;                     // [n_queries], or NULL: scores lose slope * |own_position - position|
    const int32_t *own_position;            // [n_queries]: the query's own position
    float softcap;
    uint8_t *scratch;   // FRIT_BF16_SCRATCH bytes, at a cache line
} frit_attend_bf16;

// Room for the scores of two steps and for weights.
enum { FRIT_BF16_SCRATCH = 2 * 4 * FRIT_TILE_BYTES + FRIT_BF16_BLOCK * FRIT_BF16_QUERIES * 2 };

// Rows of one head and one sequence of SCAN or DELTA, computed in order:
//
//     S [dim, n] = e[t, :] S + u[t, :] k[t, :]^T,  y[t, :] = S q[t, :],  e = exp(step[t] g[t, :]),  u = step[t] x[t, :]
//
// With a beta, u = (x[t, :] - e S k) beta. A stride of 0 means that all t share one row.
typedef struct frit_state_rows {
    float *state;
    int64_t n_rows, dim, n;
    const float *x;
    float *y;
    int64_t x_row;   // stride of x and y in elements
    const float *k, *q;
    int64_t k_row;
    const float *g;
    int64_t g_row, n_g;         // n_g: n, or 1 if all columns have one decay
    const float *step, *beta;   // step NULL: 1; beta NULL: no delta rule
    int64_t head_row;           // stride of step and beta
    float *scratch;             // [FRIT_STATE_CHUNK, n_g]
} frit_state_rows;

enum { FRIT_STATE_CHUNK = 16 };   // rows whose decays are computed at a time

// Coordinate descent on FRIT_DESCENT_LANES rows side by side: each column in order becomes the best number
// scale * level(code) - min while all other columns stay, and the gradients are updated.
enum { FRIT_DESCENT_LANES = 16 };

typedef struct frit_descent {
    int n, group, n_sweeps;   // columns, columns of a group, sweeps over all columns
    const float *h;           // [n, stride]: the change of the gradients by a unit step of a column
    int64_t stride;
    int low, high;                   // smallest and largest code
    const int8_t *levels;            // level of each code; NULL: the codes themselves
    const float *scales, *mins;      // [n / group, lanes]
    float *now, *gradient, *codes;   // [n, lanes]
} frit_descent;

typedef struct frit_kernels {
    const char *isa;   // instruction set of the vector kernels below
    bool in_order;     // frit_product.in_order for this processor (processors.def)
    frit_product_kernel product[FRIT_DTYPE_COUNT];
    frit_product_kernel packed[FRIT_DTYPE_COUNT];   // panels of pack.h; run NULL: not packed
    // With is_coarse, replaces `product` for rows of a multiple of 32 elements: rounds floats to bf16. run NULL: none.
    frit_product_kernel coarse[FRIT_DTYPE_COUNT];
    bool is_coarse;   // the device's products may round to bf16 (backend.h)
    void (*convert[FRIT_FORM_COUNT])(const float *x, uint8_t *out, int64_t n);   // [FRIT_FORM_F32] is not called

    void (*rms_norm)(float *y, const float *x, const float *w, int64_t n, float eps);   // w may be NULL
    void (*layer_norm)(float *y, const float *x, const float *w, const float *b, int64_t n, float eps);   // w, b too
    void (*add)(float *y, const float *a, const float *b, int64_t n);
    void (*mul)(float *y, const float *a, const float *b, int64_t n);
    void (*scale)(float *y, const float *x, float factor, int64_t n);
    void (*softcap)(float *y, const float *x, float cap, int64_t n);   // y may be x
    frit_unary_fn act[FRIT_ACT_COUNT];                                 // y may be x
    void (*xielu)(float *y, const float *x, const frit_xielu *xielu, int64_t n);
    // Rotates n_pairs pairs; `table` holds the cosines, then the sines.
    void (*rope[2])(float *y, const float *x, const float *table, int64_t n_pairs);   // by frit_rope_style

    // Converts n f32 to cached keys or values, and back. NULL: the codec of the type does.
    void (*encode[FRIT_DTYPE_COUNT])(const float *x, uint8_t *y, int64_t n);
    void (*decode[FRIT_DTYPE_COUNT])(const uint8_t *x, float *y, int64_t n);
    // Attention over n_p positions of one head, at most FRIT_ATTEND_ROWS, for n_q query vectors:
    // s[q][p] = dot(query q, key p);  acc[q] += sum_p s[q][p] * value p. Rows of s are FRIT_ATTEND_ROWS apart. `rows`
    // has the addresses of the keys or values. NULL: this type is decoded to f32 first.
    void (*attend_scores[FRIT_DTYPE_COUNT])(float *s, const float *q, int64_t n_q, const uint8_t *const *rows,
                                            int64_t n_p, int64_t dim);
    void (*attend_values[FRIT_DTYPE_COUNT])(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows,
                                            int64_t n_p, int64_t dim);
    // Scores of all keys of one head in a page.
    void (*attend_page[FRIT_DTYPE_COUNT])(float *s, const float *q, int64_t n_q, const frit_attend_keys *keys,
                                          int64_t dim);
    // Turns scores [n] of one query into weights relative to the largest score so far, and into zeros outside of the
    // positions [begin, end) that the query sees. Updates *max and *sum, and returns the factor of earlier sums. s has
    // memory for n rounded up to FRIT_ATTEND_LANES.
    float (*attend_weigh)(float *s, int64_t begin, int64_t end, int64_t n, float *max, float *sum);
    // Attention of many queries to one tile of positions, from scores to sums. NULL: by rows instead.
    void (*attend_tile)(const frit_attend_tile *tile);
    // One panel, each lane with its own factors: total = before * total + now * acc, then acc = 0; n f32 a lane.
    void (*attend_fold)(float *total, float *acc, const float *before, const float *now, int64_t n);
    int lanes;   // queries of a panel of attend_tile, at most FRIT_ATTEND_LANES
    // For keys and values of less than 32 bits, v_dim a multiple of 16. NULL: attend_tile instead.
    void (*attend_bf16)(const frit_attend_bf16 *attend);
    bool attend_bf16_if_long;   // attend_bf16 is for sequences of long prompts only
    void (*pack_kv_page)(const frit_bf16_page *page);
    void (*state_rows)(const frit_state_rows *rows);
    void (*descend)(const frit_descent *descent);
    // gradient[j] += sum over n_steps k of steps[k] * h[k, j], for n columns j; lanes as above.
    void (*follow)(float *gradient, const float *steps, int n_steps, const float *h, int64_t stride, int n);
    float (*max)(const float *x, int64_t n);
    float (*exp_sum)(float *x, float max, int64_t n);   // x = exp(x - max); returns the sum

    // For probe.c: probe_read reads all bytes, [0] several places side by side, [1] in order. The others run n_rounds
    // of the ISA's multiply-add of int8, or of its fastest floats of at least bf16, and return the number of
    // operations. A multiply-add counts as two.
    uint64_t (*probe_read[2])(const void *bytes, size_t n);
    double (*probe_int8)(int64_t n_rounds, int32_t *sink);
    double (*probe_float)(int64_t n_rounds, int32_t *sink);
} frit_kernels;

// ------------------------------------------------------------------------------- instruction sets (isa.def)

enum { FRIT_PANEL_ROWS = 16 };   // rows of a panel of a packed matrix (pack.h)

// Nodes that an instruction set computes (isa.def).
enum {
    FRIT_FOR_ANY = 0,
    FRIT_FOR_LONG_PROMPTS = 1,   // sequences of long prompts (FRIT_LONG_PREFILL_ROWS), which may be in any step
    FRIT_FOR_PREFILL = 2,        // nodes of at least FRIT_PREFILL_ROWS
    FRIT_FOR_ALL = FRIT_FOR_LONG_PROMPTS | FRIT_FOR_PREFILL,
};

typedef struct frit_isa {
    const char *name;
    unsigned features;   // FRIT_CPU_*: all must be there
    unsigned kinds;      // FRIT_FOR_*: installed only for nodes that are of all these kinds
    void (*install)(frit_kernels *kernels);
} frit_isa;

const frit_isa *frit_isa_get(size_t i);   // row i, slowest first; NULL past the end
bool frit_isa_is_usable(const frit_isa *isa);
// Installs all usable rows up to `cap` (NULL: all) for nodes of `kinds`, and returns the name of the last one.
const char *frit_isa_install(frit_kernels *kernels, const frit_isa *cap, unsigned kinds);

#define ISA_ANY(name, kinds, features) void frit_install_##name(frit_kernels *kernels);
#define ISA_X86                        ISA_ANY
#define ISA_ARM                        ISA_ANY
#define ISA_WASM                       ISA_ANY
#define ISA_RELAXED                    ISA_ANY
#include "backend/cpu/isa.def"
#undef ISA_ANY
#undef ISA_X86
#undef ISA_ARM
#undef ISA_WASM
#undef ISA_RELAXED
void frit_install_scalar_descend(frit_kernels *kernels);   // a part of frit_install_scalar
void frit_install_scalar_state(frit_kernels *kernels);     // a part of frit_install_scalar

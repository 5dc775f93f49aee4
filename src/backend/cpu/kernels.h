// SPDX-License-Identifier: MIT
// backend/cpu/kernels.h: the small kernels that every instruction set may replace, as a struct of function pointers.
//
// isa.c lists the instruction sets from slowest to fastest; each installs its kernels over those before, and "scalar"
// fills every field. Kernels know nothing of graphs, threads or pages. No pointer needs alignment beyond that of its
// elements; weights may start at any byte.
//
// A product multiplies rows of weights by rows of activations. Each weight type names the *form* in which it wants its
// activations: f32 as they are, or int8 codes with scales, made once for each input row and shared by all products that
// read it. Types without a product of their own are decoded to f32, a few rows at a time (fast_linear.c).
//
//     F32        f32[n]
//     Q8         codes int8[n] | scales f32[n / 32] | sums f32[n / 16]: scale * sum of 16 codes, for types with offsets
//     Q8_LINES   the same and more in a frit_q8_line for every 32 elements: for packed weights
//     Q8_TRANSPOSED  the same, but the codes of a line are transposed: of its four runs of eight columns the first of each,
//                then the second of each, ..: for weights whose runs of eight are found at once
//     BF16_TILES bf16, sixteen rows together: 32 elements of each, then the next 32 of each, ..
//     BF16_PAIRS the same, and after every 32 of each row what they lack, again in bf16: 16 bits of precision
//
// A scale for 32 elements, where a block of the K types holds 256, costs little and halves the error of what the model
// computes.
#pragma once
#include "backend/cpu/thresholds.h"
#include "graph/graph.h"

#include <math.h>

// For templates: functions whose parameters are constants, other functions among them, where they are called.
#if defined(_MSC_VER)
#define FRIT_INLINE static __forceinline
#else
#define FRIT_INLINE static inline __attribute__((always_inline))
#endif

// Before a loop of a constant number of rounds, n at most: all are written out, so that what an array holds stays in
// registers. Compilers have names of their own for it, and none unrolls a loop by another's. FRIT_UNROLL_BY is for
// loops of any number of rounds, n of them are written out.
#define FRIT_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define FRIT_UNROLL(n)    FRIT_PRAGMA(clang loop unroll(full))
#define FRIT_UNROLL_BY(n) FRIT_PRAGMA(clang loop unroll_count(n))
#elif defined(__GNUC__)
#define FRIT_UNROLL(n)    FRIT_PRAGMA(GCC unroll n)
#define FRIT_UNROLL_BY(n) FRIT_UNROLL(n)
#else
#define FRIT_UNROLL(n)
#define FRIT_UNROLL_BY(n)
#endif

// What v points at, in `registers` by the name that assembly has for them, is computed before what is written after it:
// clang would unpack the codes of many products at once, more than registers hold. gcc does so only on ARM, where an
// option keeps it from that (cmake/FritCompiler.cmake).
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

enum { FRIT_TILE_ROWS = 16, FRIT_TILE_COLUMNS = 32, FRIT_TILE_BYTES = 1024 };   // of BF16_*

// Bytes of one row of n values; n is a multiple of 32 for all but F32 and BF16_PAIRS, and the bytes are a multiple of
// 64. Rows of Q8_LINES and Q8_TRANSPOSED have an odd number of lines, so that those of neighbouring tokens do not
// compete for a place in the cache.
size_t frit_form_bytes(frit_form form, int64_t n);
// Bytes of all rows. Those of BF16_* come in sixteens.
size_t frit_form_bytes_of_rows(frit_form form, int64_t n_rows, int64_t n);
// From 32 elements of a row to the next 32; 0: rows are made as a whole.
size_t frit_form_column_bytes(frit_form form);
// Sixteen rows together: BF16_*.
bool frit_form_is_tiled(frit_form form);
// Where row i goes: what `convert` is called with. Products are called with rows from i on, i a multiple of 16.
uint8_t *frit_form_row(frit_form form, uint8_t *rows, int64_t i, int64_t n);

// 32 activations in one cache line. A kernel whose codes of weights are o too large starts its integer sum with -o
// times the sum of the activations' codes.
typedef struct frit_q8_line {
    int8_t codes[32];
    float scale;
    float sum;             // scale * sum of the codes
    float sums_16[2];      // scale * sum of 16 codes
    int32_t minus_128;     // -128 * sum of the codes
    int32_t minus_32[2];   // -32 * sum of 16 codes
    int16_t sums[2];       // of 16 codes
} frit_q8_line;

// Lines of n numbers in Q8_LINES become those of Q8_TRANSPOSED.
void frit_turn_q8_lines(frit_q8_line *lines, int64_t n);

// y[j * y_stride + i] = dot(w row i, x row j) for n_w rows of weights and n_x rows of activations.
// A layout that interleaves rows reads `w_stride` as the bytes of one group of rows.
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
    int64_t n_ahead;    // rows of weights right after these that are wanted next
    bool in_order;      // few tokens: reads weights in the order in which they lie, not several places side by side
} frit_product;

enum { FRIT_PRODUCT_SCRATCH = 520 << 10 };

typedef struct frit_product_kernel {
    void (*run)(const frit_product *p);   // NULL: decode to f32
    frit_form form;
    const char *isa;
    const struct frit_interleave *layout;   // of panels (pack.h)
} frit_product_kernel;

typedef void (*frit_unary_fn)(float *y, const float *x, int64_t n);

// Positions that attention looks at before it updates its maxima and sums, a few pages: with few queries, with many,
// and with many in bfloat16.
enum {
    FRIT_ATTEND_ROWS = 8 * FRIT_PAGE_TOKENS,
    FRIT_ATTEND_SPAN = 4 * FRIT_PAGE_TOKENS,
    FRIT_BF16_PAGES = 16,
    FRIT_BF16_SPAN = FRIT_BF16_PAGES * FRIT_PAGE_TOKENS,
    FRIT_BF16_BLOCK = 8 * FRIT_PAGE_TOKENS   // positions whose weights are kept
};
enum { FRIT_ATTEND_LANES = 16 };   // of the longest panel

// One head of a page of transposed keys, [dim, FRIT_PAGE_TOKENS]. What is read next is prefetched meanwhile, 64 bytes
// for each dimension: the processor does not guess where the next page lies.
typedef struct frit_attend_keys {
    const uint8_t *page, *ahead[2];
} frit_attend_keys;

// Where exponentials of attention saturate: 2^-100. Smaller weights, or products of them with values, would not be
// normal numbers, and processors take a hundred times as long for those.
#define FRIT_LEAST_WEIGHT -69.3147f

enum { FRIT_SPAN_PAGES = 2 * FRIT_ATTEND_SPAN / FRIT_PAGE_TOKENS };   // of keys and of values

// Many queries of one head of the cache against n_p positions. Queries are lanes: a panel holds frit_kernels.lanes of
// them, so that maxima, sums and weights need no operation across lanes. What belongs to no query, in the last panel,
// sees nothing.
typedef struct frit_attend_tile {
    int64_t n_panels, n_p, k_dim, v_dim;
    const float *k, *v;           // [n_p, k_dim], [n_p, v_dim]
    bool k_transposed;            // k is [page, k_dim, FRIT_PAGE_TOKENS], from the page of the tile's first position on
    const float *q;               // [n_panels, k_dim, lanes], scaled
    float *acc;                   // [n_panels, v_dim, lanes]: sums of weighted values
    float *max, *sum;             // [n_panels, lanes]: of the scores, of their exponentials relative to it
    const int32_t *begin, *end;   // [n_panels, lanes]: positions that are seen; may lie outside of the tile
    const float *slope;           // [n_panels, lanes], or NULL: scores lose slope * |own_position - position|
    const int32_t *own_position;   // [n_panels, lanes]: the query's own position
    const float *bias;             // NULL, or what scores gain: query i at position p of the tile bias[n_p - 1 - p + i]
    int32_t first;                 // position of the tile
    float softcap;
    bool cut;           // some query does not see all positions of the tile
    uint8_t *scratch;   // FRIT_ATTEND_SCRATCH bytes, at a cache line
    struct {
        const uint8_t *first;
        size_t n_bytes;
    } ahead[FRIT_SPAN_PAGES];   // to prefetch meanwhile: pages of keys and values that are decoded next
    int n_ahead;
} frit_attend_tile;

enum { FRIT_ATTEND_SCRATCH = 2 * FRIT_ATTEND_LANES * FRIT_ATTEND_SPAN * 4 };   // scores of two panels

// Many queries of one head of the cache against a few pages, factors rounded to bfloat16.
//
// Scores count in parts of an octave, FRIT_OCTAVE of them: a score s weighs 2^(s / 128). The bits of a bfloat16 are
// 128 times its logarithm to base 2, plus 128 * 127, but for a small correction of the seven bits after the exponent;
// so a weight is a score rounded to an integer. `lift` is what is added to scores before that: a query that has the
// lift 128 * (127 - t) weighs relative to a score of t octaves. The kernel lowers the lift of queries whose weights
// come to 2, and their sums with it; by whole octaves, so nothing is rounded.
enum { FRIT_BF16_QUERIES = 32, FRIT_OCTAVE = 128, FRIT_BF16_ROOM = 40 };

// The lift of a query that may meet scores up to FRIT_BF16_ROOM octaves above this one.
static inline float frit_bf16_lift(float score)
{
    return FRIT_OCTAVE * (127 - FRIT_BF16_ROOM - ceilf(score / FRIT_OCTAVE));
}

// Keys and values come as tiles, a page of one head after the other; frit_bf16_page_bytes each.
typedef struct frit_bf16_page {
    frit_dtype k_type, v_type;   // F32, F16 or BF16
    uint64_t k_bytes, v_bytes;   // from one position's row to the next
    const uint8_t *k, *v;        // rows of the page
    bool k_transposed;           // k is [k_dim, FRIT_PAGE_TOKENS]
    int begin, end;              // those that may be read; the others become zeros
    int64_t k_dim, v_dim;
    uint8_t *tiles;   // the result, at a cache line
} frit_bf16_page;

// k is filled up to a multiple of 32.
static inline size_t frit_bf16_page_bytes(int64_t k_dim, int64_t v_dim)
{
    return FRIT_PAGE_TOKENS * ((size_t)(k_dim + 31) / 32 * 32 + (size_t)v_dim) * 2;
}

typedef struct frit_attend_bf16 {
    int64_t n_queries, k_dim, v_dim;   // multiples of FRIT_BF16_QUERIES, of 1, of 16
    const uint8_t *tiles;              // of FRIT_BF16_PAGES pages at most
    const uint8_t *ahead;              // what is read next, to be brought closer meanwhile: n_ahead bytes
    size_t n_ahead;
    int32_t first;        // position of the first row of the first page
    int32_t begin, end;   // positions to look at
    const uint8_t *q;     // FRIT_FORM_BF16_TILES, in parts of an octave
    float *lift;          // [n_queries], multiples of FRIT_OCTAVE
    float *acc;   // [n_queries, v_dim + 16]: sums of weighted values; then sixteen that make that of the weights
    const int32_t *seen_begin, *seen_end;   // [n_queries]: positions that are seen
    const float *slope;                     // [n_queries], or NULL: scores lose slope * |own_position - position|
    const int32_t *own_position;            // [n_queries]: the query's own position
    float softcap;
    uint8_t *scratch;   // FRIT_BF16_SCRATCH bytes, at a cache line
} frit_attend_bf16;

// Scores of two steps, weights.
enum { FRIT_BF16_SCRATCH = 2 * 4 * FRIT_TILE_BYTES + FRIT_BF16_BLOCK * FRIT_BF16_QUERIES * 2 };

// A head's rows of one sequence of SCAN or DELTA, one after the other:
//
//     S [dim, n] = e[t, :] S + u[t, :] k[t, :]^T,  y[t, :] = S q[t, :],  e = exp(step[t] g[t, :]),  u = step[t] x[t, :]
//
// or, where there is a beta, u = (x[t, :] - e S k) beta. Rows of t are so many elements apart; 0: they are the same.
typedef struct frit_state_rows {
    float *state;
    int64_t n_rows, dim, n;
    const float *x;
    float *y;
    int64_t x_row;   // of y too
    const float *k, *q;
    int64_t k_row;
    const float *g;
    int64_t g_row, n_g;         // n_g: n, or 1 for all
    const float *step, *beta;   // NULL: 1; without the rule
    int64_t head_row;           // of both
    float *scratch;             // [FRIT_STATE_CHUNK, n_g]
} frit_state_rows;

enum { FRIT_STATE_CHUNK = 16 };   // rows whose decays are computed at a time

// Coordinate descent of FRIT_DESCENT_LANES rows side by side: each column in turn becomes the number
// scale * level(code) - min that is best while all others stay, and the gradients follow its step.
enum { FRIT_DESCENT_LANES = 16 };

typedef struct frit_descent {
    int n, group, n_sweeps;   // columns, those of a group, sweeps over all of them
    const float *h;           // [n, stride]: what a step of a column adds to the gradients
    int64_t stride;
    int low, high;                   // codes
    const int8_t *levels;            // of codes; NULL: the codes themselves
    const float *scales, *mins;      // [n / group, lanes]
    float *now, *gradient, *codes;   // [n, lanes]
} frit_descent;

typedef struct frit_kernels {
    const char *isa;   // of the vector kernels below
    bool in_order;     // frit_product.in_order: this processor's memory is faster so (docs/log/memory.md)
    frit_product_kernel product[FRIT_DTYPE_COUNT];
    frit_product_kernel packed[FRIT_DTYPE_COUNT];   // of matrices in the order of pack.h; NULL: they stay as they are
    // In place of `product` where `is_coarse`, for rows of a multiple of 32: rounds floats to bf16. NULL: none.
    frit_product_kernel coarse[FRIT_DTYPE_COUNT];
    bool is_coarse;   // the device's products may be (backend.h)
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

    // Cached keys and values: from and to f32, n of them. NULL: by the type's codec.
    void (*encode[FRIT_DTYPE_COUNT])(const float *x, uint8_t *y, int64_t n);
    void (*decode[FRIT_DTYPE_COUNT])(const uint8_t *x, float *y, int64_t n);
    // Attention over n_p positions of one head, at most FRIT_ATTEND_ROWS, for n_q query vectors:
    // s[q][p] = dot(query q, key p);  acc[q] += sum_p s[q][p] * value p. Rows of s are FRIT_ATTEND_ROWS apart. `rows`
    // lists the keys or values in the order in which they are best read. NULL: this type is decoded to f32 first.
    void (*attend_scores[FRIT_DTYPE_COUNT])(float *s, const float *q, int64_t n_q, const uint8_t *const *rows,
                                            int64_t n_p, int64_t dim);
    void (*attend_values[FRIT_DTYPE_COUNT])(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows,
                                            int64_t n_p, int64_t dim);
    // Scores of all keys of one head in a page.
    void (*attend_page[FRIT_DTYPE_COUNT])(float *s, const float *q, int64_t n_q, const frit_attend_keys *keys,
                                          int64_t dim);
    // Scores [n] of one query, of which it sees [begin, end), become weights relative to the largest score so far;
    // zeros elsewhere. Returns the factor of what was summed before; *max and *sum are brought up to date. s has room
    // for n rounded up to FRIT_ATTEND_LANES.
    float (*attend_weigh)(float *s, int64_t begin, int64_t end, int64_t n, float *max, float *sum);
    // The same for many queries, with all that lies between scores and sums. NULL: a few queries at a time.
    void (*attend_tile)(const frit_attend_tile *tile);
    // Of one panel, each lane with its own factors: total = before * total + now * acc, then acc = 0; n f32 a lane.
    void (*attend_fold)(float *total, float *acc, const float *before, const float *now, int64_t n);
    int lanes;   // of its panels; at most FRIT_ATTEND_LANES
    // For keys and values that are kept in less than f32, where v_dim is a multiple of 16. NULL: by the other one.
    void (*attend_bf16)(const frit_attend_bf16 *attend);
    bool attend_bf16_if_long;   // only for sequences of long prompts
    void (*pack_kv_page)(const frit_bf16_page *page);
    void (*state_rows)(const frit_state_rows *rows);
    void (*descend)(const frit_descent *descent);
    // gradient[j] += sum over n_steps k of steps[k] * h[k, j], for n columns j; lanes as above.
    void (*follow)(float *gradient, const float *steps, int n_steps, const float *h, int64_t stride, int n);
    float (*max)(const float *x, int64_t n);
    float (*exp_sum)(float *x, float max, int64_t n);   // x = exp(x - max); returns the sum

    // For probe.c: reads all bytes, [0] several places side by side, [1] in order; runs rounds of the ISA's
    // multiply-add of int8, or of its fastest floats that are at least bf16, and returns how many operations
    // (a multiplication and an addition count as two) that were.
    uint64_t (*probe_read[2])(const void *bytes, size_t n);
    double (*probe_int8)(int64_t n_rounds, int32_t *sink);
    double (*probe_float)(int64_t n_rounds, int32_t *sink);
} frit_kernels;

// ------------------------------------------------------------------------------- instruction sets (isa.def)

enum { FRIT_PANEL_ROWS = 16 };   // rows of a packed matrix that lie together (pack.h)

// Nodes that an instruction set is used for (isa.def).
enum {
    FRIT_FOR_ANY = 0,
    FRIT_FOR_LONG_PROMPTS = 1,   // of sequences of long prompts (FRIT_LONG_ROWS), which may be in any step
    FRIT_FOR_PREFILL = 2,        // of FRIT_PREFILL_ROWS
    FRIT_FOR_ALL = FRIT_FOR_LONG_PROMPTS | FRIT_FOR_PREFILL,
};

typedef struct frit_isa {
    const char *name;
    unsigned features;   // FRIT_CPU_*: all must be there
    unsigned kinds;      // FRIT_FOR_*: used only for nodes of all these kinds
    void (*install)(frit_kernels *kernels);
} frit_isa;

const frit_isa *frit_isa_get(size_t i);   // row i, slowest first; NULL past the end
bool frit_isa_is_usable(const frit_isa *isa);
// Installs all usable rows up to `cap` (NULL: all) that are for nodes of these kinds, and returns the last one's name.
const char *frit_isa_install(frit_kernels *kernels, const frit_isa *cap, unsigned kinds);

#define ISA_ANY(name, kinds, features) void frit_install_##name(frit_kernels *kernels);
#define ISA_X86                        ISA_ANY
#define ISA_ARM                        ISA_ANY
#include "backend/cpu/isa.def"
#undef ISA_ANY
#undef ISA_X86
#undef ISA_ARM
void frit_install_scalar_descend(frit_kernels *kernels);   // scalar's part for rounding again
void frit_install_scalar_state(frit_kernels *kernels);     // scalar's part for recurrent layers

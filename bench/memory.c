// SPDX-License-Identifier: MIT
// Measures the fastest way to read this machine's memory: plain access patterns, and frit's products of one token,
// interleaved round by round. make bench-memory; docs/log/memory.md.
//
//     bench_memory [-t THREADS] [-m MIB] [-r ROUNDS] [-n COLUMNS] [TYPE ...]
//
// A pattern reads from several places at once, some bytes of each in rotation. It may prefetch a number of bytes ahead
// of each place, into one of the caches. Threads divide the memory into equal parts, or take small pieces in rotation.
#include "backend/cpu/pack/memory.h"
#include "backend/cpu/pack/pack.h"
#include "base/thread/thread.h"
#include "base/time.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 64, MAX_ROWS = 64, PANEL = 32768, PIECE = 65536 };

typedef uint64_t line __attribute__((vector_size(64)));

typedef enum hint { NONE, T0, T1, T2, NTA } hint;

typedef struct pattern {
    int places;    // number of places that are read at once
    size_t turn;   // bytes read from one place before the next
    hint hint;
    size_t ahead;        // prefetch distance in bytes; 0: the next rotation of all places, in parts
    bool small_pieces;   // threads take adjacent pieces in rotation, instead of a part each
    bool small_pages;
} pattern;

static const pattern patterns[] = {
    {1, PANEL, NONE, 0, false, false},   {1, PANEL, NONE, 0, true, false},   {1, PANEL, NONE, 0, false, true},
    {1, PANEL, T0, 1024, false, false},  {1, PANEL, T0, 4096, false, false}, {1, PANEL, T0, 8192, false, false},
    {1, PANEL, T0, 16384, false, false}, {1, PANEL, T0, 8192, true, false},  {1, PANEL, T0, 8192, false, true},
    {1, PANEL, T1, 8192, false, false},  {1, PANEL, T2, 8192, false, false}, {1, PANEL, NTA, 8192, false, false},
    {2, 2048, NONE, 0, false, false},    {4, 2048, NONE, 0, false, false},   {8, 2048, NONE, 0, false, false},
    {8, 256, NONE, 0, false, false},     {8, 2048, T0, 4096, false, false},  {8, 256, T0, 4096, false, false},
    {1, 2048, T0, 0, false, false},      {2, 2048, T0, 0, false, false},     {4, 2048, T0, 0, false, false},
    {8, 2048, T0, 0, false, false},      {8, 4096, T0, 0, false, false},
};

typedef struct row {   // of the table
    char name[64];
    double rates[MAX_ROUNDS];
} row;

typedef struct bench {
    frit_pool *pool;
    uint8_t *pages[2];   // huge, small
    size_t n_bytes;
    int64_t n;
    const pattern *pattern;
    const frit_product_kernel *kernel;
    frit_product product;
    size_t row_bytes;   // of weights
    _Atomic uint64_t sink;
} bench;

// ------------------------------------------------------------------------------- patterns

FRIT_INLINE void request(const uint8_t *p, hint h)
{
    if (h == T0) __builtin_prefetch(p, 0, 3);
    if (h == T1) __builtin_prefetch(p, 0, 2);
    if (h == T2) __builtin_prefetch(p, 0, 1);
    if (h == NTA) __builtin_prefetch(p, 0, 0);
}

FRIT_INLINE void read_turn(const uint8_t *from, size_t n, hint h, size_t ahead, line sums[4])
{
    for (size_t i = 0; i < n; i += 256) {
        FRIT_UNROLL(4)
        for (size_t k = 0; k < 4; k++) {
            request(from + i + 64 * k + ahead, h);
            sums[k] += *(const line *)(const void *)(from + i + 64 * k);
        }
    }
}

// Reads one rotation of all places. The next rotation is prefetched in eighths, one for each place.
FRIT_INLINE void read_turns(const uint8_t *from, const uint8_t *next, const pattern *p, hint h, line sums[4])
{
    const size_t part = p->turn / 8;
    int place = 0;
    for (int s = 0; s < p->places; s++) {
        for (size_t u = 0; u < 8; u++) {
            for (size_t i = 0; i < part; i += 64) request(next + (size_t)place * PANEL + i, h);
            if (++place == p->places) place = 0, next += part;
            read_turn(from + (size_t)s * PANEL + u * part, part, NONE, 0, sums);
        }
    }
}

FRIT_INLINE uint64_t read_as(const uint8_t *bytes, size_t n, const pattern *p, hint h)
{
    line sums[4] = {{0}};
    const size_t group = (size_t)p->places * PANEL;
    uint64_t sum = 0;
    for (size_t g = 0; g + group <= n; g += group) {
        for (size_t at = 0; at < PANEL; at += p->turn) {
            const uint8_t *from = bytes + g + at;
            if (h != NONE && p->ahead == 0)
                read_turns(from, at + p->turn < PANEL ? from + p->turn : bytes + g + group, p, h, sums);
            else
                for (int s = 0; s < p->places; s++) read_turn(from + (size_t)s * PANEL, p->turn, h, p->ahead, sums);
        }
    }
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 8; i++) sum += sums[k][i];
    return sum;
}

static uint64_t read_pattern(const uint8_t *bytes, size_t n, const pattern *p)
{
    switch (p->hint) {
    case T0:
        return read_as(bytes, n, p, T0);
    case T1:
        return read_as(bytes, n, p, T1);
    case T2:
        return read_as(bytes, n, p, T2);
    case NTA:
        return read_as(bytes, n, p, NTA);
    case NONE:
        break;
    }
    return read_as(bytes, n, p, NONE);
}

static void run_pattern(void *ctx, int thread, int n_threads)
{
    bench *b = ctx;
    const pattern *p = b->pattern;
    const uint8_t *bytes = b->pages[p->small_pages];
    const size_t share = b->n_bytes / (size_t)n_threads / PIECE * PIECE;
    uint64_t sum = 0;
    if (!p->small_pieces) sum = read_pattern(bytes + share * (size_t)thread, share, p);
    for (size_t i = (size_t)thread; p->small_pieces && i < b->n_bytes / PIECE; i += (size_t)n_threads)
        sum += read_pattern(bytes + i * PIECE, PIECE, p);
    atomic_fetch_add(&b->sink, sum);
}

static void name_pattern(const pattern *p, char *out, size_t n)
{
    static const char *const hints[] = {"no prefetch", "t0", "t1", "t2", "nta"};
    char ahead[32] = "", turn[32] = "";
    if (p->hint != NONE && p->ahead) snprintf(ahead, sizeof ahead, " %zu ahead", p->ahead);
    if (p->hint != NONE && !p->ahead) snprintf(ahead, sizeof ahead, " of the next turn");
    if (p->turn < PANEL) snprintf(turn, sizeof turn, ", turns of %zu", p->turn);
    snprintf(out, n, "%d%s, %s%s%s%s", p->places, turn, hints[p->hint], ahead,
             p->small_pieces ? ", 64K interleaved" : "", p->small_pages ? ", 4K pages" : "");
}

// ------------------------------------------------------------------------------- products

static void run_product(void *ctx, int thread, int n_threads)
{
    bench *b = ctx;
    frit_product p = b->product;
    p.n_w = p.n_w / n_threads / FRIT_PANEL_ROWS * FRIT_PANEL_ROWS;
    p.w += (size_t)(p.n_w * thread) * b->row_bytes;
    p.y += p.n_w * thread;
    b->kernel->run(&p);
}

// Uses the memory as a matrix of zeros; the time of products does not depend on the numbers.
static bool open_product(bench *b, const frit_kernels *kernels, const char *name)
{
    frit_dtype dtype;
    if (!frit_dtype_from_name(name, &dtype)) return false;
    const bool packed = kernels->packed[dtype].run && frit_pack_fits(kernels->packed[dtype].layout, b->n);
    b->kernel = packed ? &kernels->packed[dtype] : &kernels->product[dtype];
    if (!b->kernel->run || b->n % 256) return false;
    b->row_bytes = packed ? frit_pack_row_bytes(b->kernel->layout, b->n) : (size_t)frit_dtype_row_bytes(dtype, b->n);
    const int64_t n_w = (int64_t)(b->n_bytes / b->row_bytes) / FRIT_PANEL_ROWS * FRIT_PANEL_ROWS;
    b->product = (frit_product){.w = b->pages[0],
                                .w_stride = packed ? FRIT_PANEL_ROWS * b->row_bytes : b->row_bytes,
                                .x = calloc(1, frit_form_bytes_of_rows(b->kernel->form, 1, b->n) + 64),
                                .y = calloc((size_t)n_w, sizeof(float)),
                                .n_w = n_w,
                                .n_x = 1,
                                .n = b->n};
    return b->product.x && b->product.y;
}

static void close_product(bench *b)
{
    free((void *)(uintptr_t)b->product.x);
    free(b->product.y);
}

// ------------------------------------------------------------------------------- the table

static double rate_of(bench *b, frit_pool_fn fn, double n_bytes)
{
    const uint64_t start = frit_time_ns();
    frit_pool_run(b->pool, fn, b);
    return n_bytes / (double)(frit_time_ns() - start + 1);
}

static int by_rate(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_rows(row *rows, int n, int n_rounds, double *best)
{
    for (int i = 0; i < n; i++) {
        double *r = rows[i].rates;
        qsort(r, (size_t)n_rounds, sizeof *r, by_rate);
        const double median = r[n_rounds / 2];
        if (best && median > *best) *best = median;
        printf("%-44s %6.1f (%.1f - %.1f)\n", rows[i].name, median, r[0], r[n_rounds - 1]);
    }
}

// Runs one round: every pattern, then every type in both ways to read.
static int measure(bench *b, const frit_kernels *kernels, char **types, int n_types, int round, row *rows)
{
    int n = 0;
    for (size_t i = 0; i < FRIT_COUNT(patterns); i++, n++) {
        b->pattern = &patterns[i];
        name_pattern(b->pattern, rows[n].name, sizeof rows[n].name);
        rows[n].rates[round] = rate_of(b, run_pattern, (double)b->n_bytes);
    }
    for (int t = 0; t < n_types; t++) {
        if (!open_product(b, kernels, types[t])) continue;
        for (int in_order = 0; in_order < 2; in_order++, n++) {
            b->product.in_order = in_order;
            snprintf(rows[n].name, sizeof rows[n].name, "%s, %s", types[t], in_order ? "in order" : "side by side");
            rows[n].rates[round] = rate_of(b, run_product, (double)b->row_bytes * (double)b->product.n_w);
        }
        close_product(b);
    }
    return n;
}

static bool open_bench(bench *b, int n_threads)
{
    if (frit_pool_new(&b->pool, n_threads) != FRIT_OK) return false;
    for (int i = 0; i < 2; i++) {
        b->pages[i] = frit_cpu_memory_new(b->n_bytes + 2 * PIECE);   // room after the end, which prefetches may touch
        if (!b->pages[i]) return false;
        if (i == 1) frit_cpu_memory_sparse(b->pages[i], b->n_bytes + 2 * PIECE);
        memset(b->pages[i], 0, b->n_bytes + 2 * PIECE);
    }
    return true;
}

static void close_bench(bench *b)
{
    for (int i = 0; i < 2; i++) frit_cpu_memory_free(b->pages[i], b->n_bytes + 2 * PIECE);
    frit_pool_free(b->pool);
}

int main(int argc, char **argv)
{
    static char *usual[] = {"q8_0", "bf16", "q4_0", "q4_k", "q6_k"};
    static row rows[MAX_ROWS];
    int n_threads = 0, n_mib = 256, n_rounds = 9, n_columns = 2048, i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        int *option = strcmp(argv[i], "-t") == 0   ? &n_threads
                      : strcmp(argv[i], "-m") == 0 ? &n_mib
                      : strcmp(argv[i], "-r") == 0 ? &n_rounds
                      : strcmp(argv[i], "-n") == 0 ? &n_columns
                                                   : NULL;
        if (!option) return fprintf(stderr, "unknown option '%s', -t, -m, -r or -n was expected\n", argv[i]), 2;
        *option = atoi(argv[i + 1]);
    }
    char **types = i < argc ? argv + i : usual;
    const int n_types = i < argc ? argc - i : (int)FRIT_COUNT(usual), n_patterns = (int)FRIT_COUNT(patterns);
    bench b = {.n_bytes = (size_t)n_mib << 20, .n = n_columns};
    frit_kernels kernels;
    if (n_mib < 1 || n_rounds < 1 || n_rounds > MAX_ROUNDS || n_patterns + 2 * n_types > MAX_ROWS || n_threads < 0 ||
        !open_bench(&b, n_threads))
        return fprintf(stderr, "no memory for these numbers, or more rounds or types than %d\n", MAX_ROUNDS), 2;
    const char *isa = frit_isa_install(&kernels, NULL, FRIT_FOR_ANY);
    int n = 0;
    for (int round = 0; round < n_rounds; round++) n = measure(&b, &kernels, types, n_types, round, rows);
    double best = 0;
    printf("%d threads, %d MiB, GB/s: median of %d rounds (least - most)\n\n", frit_pool_size(b.pool), n_mib, n_rounds);
    print_rows(rows, n_patterns, n_rounds, &best);
    printf("\nproducts of one token, %d columns, %s; %.0f GB/s are 90 %% of the best pattern\n\n", n_columns, isa,
           0.9 * best);
    print_rows(rows + n_patterns, n - n_patterns, n_rounds, NULL);
    close_bench(&b);
    return 0;
}

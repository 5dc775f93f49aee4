// SPDX-License-Identifier: MIT
// backend/compare.h: compares a world's plan on every instruction set of this processor with the reference.
#pragma once
#include "backend/world.h"

#include <math.h>

enum { MAX_ISAS = 16 };

static inline size_t usable_isas(const char *names[MAX_ISAS])
{
    size_t n = 0;
    for (size_t i = 0; frit_isa_get(i); i++)
        if (frit_isa_is_usable(frit_isa_get(i))) names[n++] = frit_isa_get(i)->name;
    return n;
}

// The largest error relative to its limit, printed at the end: a limit far above it would hide faults.
static struct {
    char what[128];
    const char *isa;
    double error, limit;
} closest = {.limit = 1};

static inline void print_closest(void)
{
    if (closest.isa)
        printf("closest to its limit: %s on %s, nmse %.1e, limit %.1e\n", closest.what, closest.isa, closest.error,
               closest.limit);
}

static inline void note_error(const char *what, const char *isa, double error, double limit)
{
    if (limit <= 0 || error / limit <= closest.error / closest.limit) return;
    if (!closest.isa) atexit(print_closest);
    snprintf(closest.what, sizeof closest.what, "%s", what);
    closest.isa = isa, closest.error = error, closest.limit = limit;
}

// True for instruction sets that round the factors of products to bf16; `attends`: the factors of attention.
static inline bool rounds(const char *isa, bool attends)
{
    return strcmp(isa, "amx") == 0 || (attends && strcmp(isa, "avx512bf16") == 0);
}

typedef struct limits {          // limits of errors
    double tolerance, rounded;   // rounded: for instruction sets that round to bf16
    bool attends;
} limits;

// Runs the world's plan on all instruction sets; the number of threads must not change a bit of the result.
static inline void compare_within(world *w, bool fuse, limits most, const char *what)
{
    const char *isas[MAX_ISAS];
    const size_t n_isas = usable_isas(isas);
    world_plan(w, fuse);
    const size_t n = world_result_size(w);
    float *expected = malloc(n * sizeof(float)), *one = malloc(n * sizeof(float)), *more = malloc(n * sizeof(float));
    world_run(w, "reference", 2, expected);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(expected[i])) fail_msg("%s: the reference gives %g", what, (double)expected[i]);
    for (size_t i = 0; i < n_isas; i++) {
        world_run(w, isas[i], 1, one);
        const double error = nmse(one, expected, n);
        const double limit = rounds(isas[i], most.attends) ? most.rounded : most.tolerance;
        note_error(what, isas[i], error, limit);
        if (!(error <= limit)) fail_msg("%s on %s: nmse %g, at most %g", what, isas[i], error, limit);
        for (int threads = 2; threads <= 3; threads++) {
            world_run(w, isas[i], threads, more);
            if (memcmp(one, more, n * sizeof(float)) != 0)
                fail_msg("%s on %s: %d threads give another result than one", what, isas[i], threads);
        }
    }
    free(expected);
    free(one);
    free(more);
}

// `rounded`: the tolerance of instruction sets that round the factors of all products.
static inline void compare_rounded(world *w, bool fuse, double tolerance, double rounded, const char *what)
{
    compare_within(w, fuse, (limits){tolerance, rounded, false}, what);
}

static inline void compare_attention(world *w, bool fuse, double tolerance, double rounded, const char *what)
{
    compare_within(w, fuse, (limits){tolerance, rounded, true}, what);
}

static inline void compare(world *w, bool fuse, double tolerance, const char *what)
{
    compare_rounded(w, fuse, tolerance, tolerance, what);
}

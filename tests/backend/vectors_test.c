// SPDX-License-Identifier: MIT
// Compares the vector kernels of every instruction set of this processor with plain C. One table of cases is used by
// tests, with tails and odd addresses, and by --bench [NAME], which times them at the width of a model.
#include "backend/weights.h"
#include "backend/world.h"

#include "base/time.h"
#include "support/isas.h"

#include <math.h>

enum { MAX_N = 4096, GUARD = 16 };

// Memory of a case. y has n elements and a guard that must stay untouched.
typedef struct vectors {
    float *y;
    const float *a, *b, *c;
    uint8_t *bytes;
    int64_t n;
} vectors;

typedef struct vector_case {
    const char *name;
    void (*run)(const frit_kernels *k, const vectors *v, int which);
    int n_which;        // variants: activations, styles, types
    int64_t multiple;   // n is a multiple of this
    double tolerance;   // relative to the largest element of the result,
    bool of_inputs;     // or of the inputs, for results that nearly cancel
} vector_case;

static void run_rms_norm(const frit_kernels *k, const vectors *v, int which)
{
    k->rms_norm(v->y, v->a, which ? v->b : NULL, v->n, 1e-5f);
}

static void run_layer_norm(const frit_kernels *k, const vectors *v, int which)
{
    k->layer_norm(v->y, v->a, which ? v->b : NULL, which ? v->c : NULL, v->n, 1e-5f);
}

static void run_add(const frit_kernels *k, const vectors *v, int which)
{
    (void)which;
    k->add(v->y, v->a, v->b, v->n);
}

static void run_mul(const frit_kernels *k, const vectors *v, int which)
{
    (void)which;
    k->mul(v->y, v->a, v->b, v->n);
}

static void run_scale(const frit_kernels *k, const vectors *v, int which)
{
    (void)which;
    k->scale(v->y, v->a, -0.7f, v->n);
}

static void run_softcap(const frit_kernels *k, const vectors *v, int which)
{
    (void)which;
    k->softcap(v->y, v->a, 2, v->n);
}

static void run_act(const frit_kernels *k, const vectors *v, int which)
{
    k->act[which](v->y, v->a, v->n);
}

static void run_xielu(const frit_kernels *k, const vectors *v, int which)
{
    static const frit_xielu params[] = {{0.8f, 1.3f, 0.5f, -1e-6f}, {0.1f, 0.6f, 0, -0.25f}};
    k->xielu(v->y, v->a, &params[which], v->n);
}

// Gate, activation and product, as at the end of the products of gate and up.
static void run_glu(const frit_kernels *k, const vectors *v, int which)
{
    k->act[which](v->y, v->a, v->n);
    k->mul(v->y, v->y, v->b, v->n);
}

static void run_rope(const frit_kernels *k, const vectors *v, int which)
{
    k->rope[which](v->y, v->a, v->b, v->n / 2);
}

static void run_softmax(const frit_kernels *k, const vectors *v, int which)
{
    (void)which;
    memcpy(v->y, v->a, (size_t)v->n * sizeof *v->y);
    const float sum = k->exp_sum(v->y, k->max(v->a, v->n), v->n);
    k->scale(v->y, v->y, 1 / sum, v->n);
}

static const frit_dtype kept[] = {FRIT_DTYPE_F16,  FRIT_DTYPE_BF16, FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q4_0,
                                  FRIT_DTYPE_Q4_1, FRIT_DTYPE_Q5_0, FRIT_DTYPE_Q5_1, FRIT_DTYPE_IQ4_NL};

static void run_encode(const frit_kernels *k, const vectors *v, int which)
{
    const frit_dtype dtype = kept[which];
    if (k->encode[dtype])
        k->encode[dtype](v->a, v->bytes, v->n);
    else
        frit_dtype_get(dtype)->encode(v->a, v->bytes, v->n, NULL);
    frit_dtype_get(dtype)->decode(v->bytes, v->y, v->n);
}

static void run_decode(const frit_kernels *k, const vectors *v, int which)
{
    const frit_dtype dtype = kept[which];
    frit_dtype_get(dtype)->encode(v->a, v->bytes, v->n, NULL);
    if (k->decode[dtype])
        k->decode[dtype](v->bytes, v->y, v->n);
    else
        frit_dtype_get(dtype)->decode(v->bytes, v->y, v->n);
}

static const vector_case cases[] = {
    {"rms_norm", run_rms_norm, 2, 1, 2e-6, false},
    {"layer_norm", run_layer_norm, 2, 1, 1e-5, false},
    {"add", run_add, 1, 1, 0, false},
    {"mul", run_mul, 1, 1, 0, false},
    {"scale", run_scale, 1, 1, 0, false},
    {"softcap", run_softcap, 1, 1, 1e-6, true},
    {"act", run_act, FRIT_ACT_COUNT, 1, 1e-6, true},
    {"xielu", run_xielu, 2, 1, 1e-6, true},
    {"glu", run_glu, FRIT_ACT_COUNT, 1, 3e-6, true},
    {"rope", run_rope, 2, 2, 1e-6, false},
    {"softmax", run_softmax, 1, 1, 1e-5, false},
    {"encode", run_encode, FRIT_COUNT(kept), 32, 0, false},
    {"decode", run_decode, FRIT_COUNT(kept), 32, 0, false},
};

static bool install(size_t i, frit_kernels *kernels)
{
    const frit_isa *isa = frit_isa_get(i);
    memset(kernels, 0, sizeof *kernels);
    return isa && frit_isa_is_usable(isa) && frit_isa_install(kernels, isa, FRIT_FOR_ALL);
}

static void check(const vector_case *c, const frit_kernels *plain, const frit_kernels *kernels, frit_rng *rng)
{
    static float numbers[3][MAX_N + GUARD], expected[MAX_N], result[MAX_N + 2 * GUARD];
    static uint8_t bytes[MAX_N * 4 + GUARD];
    for (int i = 0; i < 3; i++) random_normal(rng, numbers[i], MAX_N + GUARD, 2);
    for (int round = 0; round < 40; round++) {
        const int64_t most = round < 30 ? 100 : MAX_N;
        int64_t n = c->multiple * random_between(rng, 1, most / c->multiple);
        if (n < 2) n = 2 * c->multiple;   // one element has no variance
        float *y = result + random_between(rng, 0, GUARD - 1);
        const vectors v = {y,
                           numbers[0] + random_between(rng, 0, 15),
                           numbers[1] + random_between(rng, 0, 15),
                           numbers[2] + random_between(rng, 0, 15),
                           bytes + random_between(rng, 0, 15),
                           n};
        for (int which = 0; which < c->n_which; which++) {
            double largest = 0;
            for (int64_t i = 0; c->of_inputs && i < n; i++) largest = fmax(largest, fabs((double)v.a[i]));
            c->run(plain, &v, which);
            memcpy(expected, y, (size_t)n * sizeof *y);
            for (size_t i = 0; i < FRIT_COUNT(result); i++) result[i] = NAN;
            c->run(kernels, &v, which);
            for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)expected[i]));
            for (int64_t i = 0; i < n; i++)
                if (!(fabs((double)y[i] - expected[i]) <= c->tolerance * largest))
                    fail_msg("%s, variant %d on %s: %g at %d of %d, expected %g", c->name, which, kernels->isa,
                             (double)y[i], (int)i, (int)n, (double)expected[i]);
            assert_true(isnan(y[n]) && (y == result || isnan(y[-1])));   // elements before and after are untouched
        }
    }
}

static void vector_kernels_agree_with_plain_c(void **state)
{
    (void)state;
    frit_kernels plain, kernels;
    frit_rng rng;
    frit_rng_init(&rng, 3);
    assert_true(install(0, &plain));
    for (size_t isa = 1; frit_isa_get(isa); isa++)
        for (size_t c = 0; install(isa, &kernels) && c < FRIT_COUNT(cases); c++)
            check(&cases[c], &plain, &kernels, &rng);
}

// Elements per nanosecond, the best of many runs.
static double rate(const vector_case *c, const frit_kernels *kernels, int which)
{
    enum { N = 2048 };
    static float numbers[3][N], y[N];
    static uint8_t bytes[N * 4];
    frit_rng rng;
    frit_rng_init(&rng, 1);
    for (int i = 0; i < 3; i++) random_normal(&rng, numbers[i], N, 2);
    const vectors v = {y, numbers[0], numbers[1], numbers[2], bytes, N};
    double best = 0;
    for (const uint64_t end = frit_time_ns() + 5000000; frit_time_ns() < end;) {
        const uint64_t before = frit_time_ns();
        for (int i = 0; i < 4; i++) c->run(kernels, &v, which);
        best = fmax(best, 4.0 * N / (double)(frit_time_ns() - before));
    }
    return best;
}

static void bench(const char *filter)
{
    printf("one thread, 2048 numbers in the first cache; numbers a nanosecond, for each variant (encode and decode\n"
           "with the other way by plain C)\n\n");
    for (size_t c = 0; c < FRIT_COUNT(cases); c++) {
        frit_kernels kernels;
        for (size_t isa = 0; frit_isa_get(isa) && strstr(cases[c].name, filter); isa++) {
            if (!install(isa, &kernels)) continue;
            printf("%-10s %-11s", cases[c].name, frit_isa_get(isa)->name);
            for (int which = 0; which < cases[c].n_which; which++) printf(" %6.2f", rate(&cases[c], &kernels, which));
            printf("\n");
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench(argc > 2 ? argv[2] : "");
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(vector_kernels_agree_with_plain_c)};
    return cmocka_run_group_tests(tests, report_isas, NULL);
}

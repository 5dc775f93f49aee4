// SPDX-License-Identifier: MIT
// Compares products and conversions of every type on every instruction set of this processor with sums in double
// precision of decoded numbers. With --bench [NAME] the types whose name contains NAME are timed.
#include "backend/weights.h"
#include "backend/world.h"

#include "base/time.h"
#include "support/isas.h"

#include <math.h>
#include <time.h>

enum { MAX_ROWS = 19, MAX_X = 29, MAX_N = 2048 };

// Installs the kernels of instruction sets up to row i; false if this processor lacks it.
static bool install(size_t i, frit_kernels *kernels)
{
    const frit_isa *isa = frit_isa_get(i);
    return isa && frit_isa_is_usable(isa) && frit_isa_install(kernels, isa, FRIT_FOR_ALL);
}

// Decodes a converted row.
static void decode_form(frit_form form, const uint8_t *row, int64_t n, double *values)
{
    for (int64_t i = 0; i < n; i++) {
        float number;
        if (form == FRIT_FORM_F32) {
            memcpy(&number, row + 4 * i, 4);
            values[i] = number;
        } else if (form == FRIT_FORM_Q8_LINES || form == FRIT_FORM_Q8_TRANSPOSED) {
            const frit_q8_line *line = (const frit_q8_line *)(const void *)row + i / 32;
            const int64_t at = form == FRIT_FORM_Q8_TRANSPOSED ? i % 8 * 4 + i % 32 / 8 : i % 32;
            values[i] = (double)line->scale * line->codes[at];
        } else if (form == FRIT_FORM_BF16_TILES) {
            uint32_t bits = 0;
            memcpy((uint8_t *)&bits + 2, row + i / FRIT_TILE_COLUMNS * FRIT_TILE_BYTES + i % FRIT_TILE_COLUMNS * 2, 2);
            memcpy(&number, &bits, 4);
            values[i] = number;
        } else if (form == FRIT_FORM_BF16_PAIRS) {
            values[i] = 0;
            for (int part = 0; part < 2; part++) {
                const int64_t at = (2 * (i / FRIT_TILE_COLUMNS) + part) * FRIT_TILE_BYTES + i % FRIT_TILE_COLUMNS * 2;
                uint32_t bits = 0;
                memcpy((uint8_t *)&bits + 2, row + at, 2);
                memcpy(&number, &bits, 4);
                values[i] += number;
            }
        } else {
            memcpy(&number, row + n + 4 * (i / 32), 4);
            values[i] = (double)number * (int8_t)row[i];
        }
    }
}

typedef struct product_case {
    frit_dtype dtype;
    int64_t n, n_w, n_x;
    size_t misalign;
    uint8_t *weights;   // n_w rows, `misalign` bytes after an aligned address
    float *x;           // [n_x, n]
} product_case;

static void open_case(product_case *c, frit_rng *rng, frit_dtype dtype)
{
    const int64_t block = frit_dtype_get(dtype)->block_elems;
    *c = (product_case){.dtype = dtype, .n_w = random_between(rng, 1, MAX_ROWS), .n_x = random_between(rng, 1, MAX_X)};
    c->n = block * random_between(rng, 1, block > 1 ? MAX_N / block / 2 : c->n_w % 4 ? 300 : MAX_N);
    c->misalign = 2 * (size_t)random_between(rng, 0, 40) + 1 * (block == 1 ? 0 : (size_t)random_between(rng, 0, 1));
    const size_t row_bytes = (size_t)frit_dtype_row_bytes(dtype, c->n);
    c->weights =
        malloc(row_bytes * (size_t)c->n_w + c->misalign);   // ends with the last row, so that asan sees reads after it
    for (int64_t i = 0; i < c->n_w; i++)
        random_weights(rng, dtype, c->weights + c->misalign + (size_t)i * row_bytes, c->n);
    c->x = malloc((size_t)(c->n_x * c->n) * sizeof(float));
    random_normal(rng, c->x, (size_t)(c->n_x * c->n), 1);
}

static void close_case(product_case *c)
{
    free(c->weights);
    free(c->x);
}

// Tolerances relative to sum |w x| (rounding of sums) and sum |w| |x| (rounding of activation codes).
static const double fine_tolerance = 3e-6, code_tolerance = 0.02;

// A result does not depend on the other rows and tokens: one row and one token give the same bits.
static void check_alone(const product_case *c, const frit_product_kernel *kernel, const float *y)
{
    const size_t row_bytes = (size_t)frit_dtype_row_bytes(c->dtype, c->n);
    for (int64_t i = 0; i < c->n_w; i++) {
        for (int64_t j = 0; j < c->n_x; j += 7) {
            float one;
            kernel->run(&(frit_product){c->weights + c->misalign + (size_t)i * row_bytes, row_bytes,
                                        (const uint8_t *)(c->x + j * c->n), 0, &one, 0, 1, 1, c->n, NULL, 0, false});
            assert_memory_equal(&one, &y[j * MAX_ROWS + i], sizeof one);
        }
    }
}

static void check_case(const product_case *c, const frit_kernels *kernels, const frit_product_kernel *kernel,
                       double sum_tolerance)
{
    static double xs[MAX_X][MAX_N];
    static float w[MAX_N], y[MAX_X * MAX_ROWS], in_order[MAX_X * MAX_ROWS];
    const frit_dtype_info *type = frit_dtype_get(c->dtype);
    const size_t row_bytes = (size_t)frit_dtype_row_bytes(c->dtype, c->n),
                 x_bytes = frit_form_bytes(kernel->form, c->n);
    uint8_t *converted = malloc(frit_form_bytes_of_rows(kernel->form, c->n_x, c->n));
    uint8_t *scratch = aligned_alloc(64, FRIT_PRODUCT_SCRATCH);
    for (int64_t j = 0; j < c->n_x; j++) {
        uint8_t *row = frit_form_row(kernel->form, converted, j, c->n);
        if (kernel->form == FRIT_FORM_F32)
            memcpy(row, c->x + j * c->n, x_bytes);
        else
            kernels->convert[kernel->form](c->x + j * c->n, row, c->n);
    }
    for (int64_t j = 0; j < c->n_x; j++)
        decode_form(kernel->form, frit_form_row(kernel->form, converted, j, c->n), c->n, xs[j]);
    memset(y, 0xff, sizeof y);
    memset(in_order, 0xff, sizeof in_order);
    frit_product p = {
        c->weights + c->misalign, row_bytes, converted, x_bytes, y, MAX_ROWS, c->n_w, c->n_x, c->n, scratch, 0, false};
    kernel->run(&p);
    p.y = in_order;
    p.in_order = true;
    kernel->run(&p);
    assert_memory_equal(in_order, y, sizeof y);
    for (int64_t i = 0; i < c->n_w; i++) {
        type->decode(c->weights + c->misalign + (size_t)i * row_bytes, w, c->n);
        for (int64_t j = 0; j < c->n_x; j++) {
            double sum = 0, exact = 0, size = 0;
            for (int64_t k = 0; k < c->n; k++) {
                sum += xs[j][k] * w[k];
                exact += (double)c->x[j * c->n + k] * w[k];
                size += fabs(xs[j][k]) * (fabs(w[k]) + 0.05);   // offsets cancel, so their size counts too
            }
            const double got = y[j * MAX_ROWS + i];
            if (!(fabs(got - sum) <= sum_tolerance * size))
                fail_msg("%s on %s: %g, expected %g (n %d, row %d of %d, token %d of %d)", type->name, kernel->isa, got,
                         sum, (int)c->n, (int)i, (int)c->n_w, (int)j, (int)c->n_x);
            if (!(fabs(got - exact) <= code_tolerance * size))
                fail_msg("%s on %s: %g, but %g without rounding the activations", type->name, kernel->isa, got, exact);
        }
        for (int64_t j = 0; j < c->n_x; j++)
            for (int64_t k = c->n_w; k < MAX_ROWS; k++) assert_true(isnan(y[j * MAX_ROWS + k]));   // untouched
    }
    if (kernel->form == FRIT_FORM_F32) check_alone(c, kernel, y);
    free(converted);
    free(scratch);
}

static void products_equal_sums_of_decoded_numbers(void **state)
{
    (void)state;
    frit_kernels kernels;
    for (size_t isa = 0; frit_isa_get(isa); isa++) {
        if (!install(isa, &kernels)) continue;
        for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
            if (!kernels.product[dtype].run) continue;
            frit_rng rng;
            frit_rng_init(&rng, (uint64_t)dtype);
            for (int i = 0; i < 40; i++) {
                product_case c;
                open_case(&c, &rng, (frit_dtype)dtype);
                check_case(&c, &kernels, &kernels.product[dtype], fine_tolerance);
                close_case(&c);
            }
        }
    }
}

// Kernels that round floats to bf16: activations, and f16 weights too.
static void coarse_products_equal_sums_of_rounded_numbers(void **state)
{
    (void)state;
    frit_kernels kernels;
    for (size_t isa = 0; frit_isa_get(isa); isa++) {
        if (!install(isa, &kernels)) continue;
        for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
            if (!kernels.coarse[dtype].run) continue;
            frit_rng rng;
            frit_rng_init(&rng, (uint64_t)dtype);
            for (int i = 0; i < 40; i++) {
                product_case c;
                open_case(&c, &rng, (frit_dtype)dtype);
                c.n -= c.n % FRIT_TILE_COLUMNS;
                if (c.n > 0) check_case(&c, &kernels, &kernels.coarse[dtype], 0x1p-8);
                close_case(&c);
            }
        }
    }
}

// Codes at the ends of their ranges reveal a saturating instruction.
static void products_do_not_saturate(void **state)
{
    (void)state;
    frit_kernels kernels;
    for (size_t isa = 0; frit_isa_get(isa); isa++) {
        if (!install(isa, &kernels)) continue;
        for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
            const frit_dtype_info *type = frit_dtype_get((frit_dtype)dtype);
            if (!kernels.product[dtype].run || type->block_elems == 1) continue;   // floats have no codes
            for (int fill = 0; fill < 4; fill++) {
                static const uint8_t fills[] = {0x00, 0x7f, 0x80, 0xff};
                frit_rng rng;
                frit_rng_init(&rng, 5);
                product_case c;
                open_case(&c, &rng, (frit_dtype)dtype);
                uint8_t *block = c.weights + c.misalign;
                for (int64_t b = 0; b < c.n_w * c.n / type->block_elems; b++, block += type->block_bytes) {
                    memset(block, fills[fill], (size_t)type->block_bytes);
                    weight_fix_scales(&rng, (frit_dtype)dtype, block);
                }
                for (int64_t i = 0; i < c.n_x * c.n; i++) c.x[i] = i / c.n % 2 ? -1 : 1;
                check_case(&c, &kernels, &kernels.product[dtype], fine_tolerance);
                close_case(&c);
            }
        }
    }
}

static void conversions_are_the_same_on_all_instruction_sets(void **state)
{
    (void)state;
    frit_kernels scalar, kernels;
    assert_true(install(0, &scalar));
    for (size_t isa = 0; frit_isa_get(isa); isa++) {
        if (!install(isa, &kernels)) continue;
        for (int form = FRIT_FORM_F32 + 1; form < FRIT_FORM_COUNT; form++) {
            frit_rng rng;
            frit_rng_init(&rng, 3);
            for (int i = 0; i < 50; i++) {
                static const float sizes[] = {1, 1e-30f, 1e30f, 0, 1e-40f};
                const int64_t n = 32 * random_between(&rng, 1, 20);
                const size_t n_bytes = frit_form_bytes_of_rows((frit_form)form, 1, n);
                float *x = malloc((size_t)n * sizeof(float));
                uint8_t *a = calloc(n_bytes, 1), *b = calloc(n_bytes, 1);
                random_normal(&rng, x, (size_t)n, sizes[i % 5]);
                scalar.convert[form](x, a, n);
                kernels.convert[form](x, b, n);
                assert_memory_equal(a, b, n_bytes);
                double *values = malloc((size_t)n * sizeof(double));
                decode_form((frit_form)form, b, n, values);
                for (int64_t k = 0; k < n; k++)   // half a step of a block whose largest element is about 4 deviations
                    assert_true(fabs(values[k] - x[k]) <= (double)sizes[i % 5] * 6 / 127 / 2 + 1e-30);
                free(values);
                free(x);
                free(a);
                free(b);
            }
        }
    }
}

static void f16_values_are_rounded_as_the_format_says(void **state)
{
    (void)state;
    frit_kernels kernels;
    for (size_t isa = 0; frit_isa_get(isa); isa++) {
        if (!install(isa, &kernels)) continue;
        float x[1003];
        uint16_t y[1003];
        frit_rng rng;
        frit_rng_init(&rng, 1);
        for (int i = 0; i < 1003; i++)
            x[i] = (float)ldexp(2 * frit_rng_double(&rng) - 1, (int)random_between(&rng, -30, 18));
        x[7] = INFINITY, x[8] = 65519.996f, x[9] = 65520, x[10] = -0.0f;
        kernels.encode[FRIT_DTYPE_F16] ? kernels.encode[FRIT_DTYPE_F16](x, (uint8_t *)y, 1003)
                                       : frit_encode_f16(x, y, 1003, NULL);
        for (int i = 0; i < 1003; i++) assert_int_equal(y[i], frit_float_to_half(x[i]));
    }
}

// ------------------------------------------------------------------------------- benchmark

typedef struct seconds {
    double wall, cpu;   // cpu: time of one thread, which does not depend on other processes
} seconds;

// The fastest of many runs of a plan with one product of n_x rows and a square matrix.
static seconds time_product(frit_dtype dtype, int64_t size, int n_x, int n_threads, const char *cpu)
{
    world w;
    world_open(&w, 1, (int[][2]){{0, n_x}}, 1);
    frit_tensor *t = world_tensor(&w, dtype, size, size, 0);
    random_weights(&w.rng, dtype, world_bytes(t), size * size);
    w.graph.output = frit_matmul(&w.graph, frit_weight_node(&w.graph, t), world_rows(&w, size), NULL);
    world_plan(&w, false);

    frit_device *device;
    frit_exec *exec;
    assert_ok(frit_backend_cpu.open(&device, &(frit_device_options){.n_threads = n_threads, .cpu = cpu}));
    assert_ok(frit_backend_cpu.prepare(device, w.plan, &w.cache, &exec));
    seconds best = {1e30, 1e30};
    for (uint64_t start = frit_time_ns(); frit_time_ns() - start < 150000000;) {
        const uint64_t before = frit_time_ns();
        const clock_t cpu_before = clock();
        for (int i = 0; i < 128 / n_x; i++) world_step(&w, device, exec);
        best.cpu = fmin(best.cpu, (double)(clock() - cpu_before) / CLOCKS_PER_SEC / n_threads / (128.0 / n_x));
        best.wall = fmin(best.wall, (double)(frit_time_ns() - before) * 1e-9 / (128.0 / n_x));
    }
    frit_backend_cpu.exec_free(device, exec);
    frit_backend_cpu.close(device);
    world_close(&w);
    return best;
}

static void bench(const char *filter)
{
    static const int64_t size = 2048;
    frit_kernels kernels;
    printf("%lld x %lld; wall and cpu: microseconds for all rows, cpu of one thread; GB/s of weights and Gop/s (a\n"
           "multiplication and an addition are two) by the wall\n\n",
           (long long)size, (long long)size);
    printf("%-9s %-11s %4s %7s %9s %9s %7s %7s\n", "type", "isa", "rows", "threads", "wall", "cpu", "GB/s", "Gop/s");
    for (int d = 0; d < FRIT_DTYPE_COUNT; d++) {
        const frit_dtype_info *type = frit_dtype_get((frit_dtype)d);
        if (!strstr(type->name, filter)) continue;
        for (size_t isa = 0; frit_isa_get(isa); isa++) {
            const char *name = frit_isa_get(isa)->name;
            if (!install(isa, &kernels)) continue;
            if (isa > 0 && (!kernels.product[d].run || strcmp(kernels.product[d].isa, name) != 0)) continue;
            for (int i = 0; i < 4; i++) {
                const int n_x = i / 2 ? 128 : 1, n_threads = 1 + i % 2;
                const seconds s = time_product((frit_dtype)d, size, n_x, n_threads, name);
                const double bytes = (double)frit_dtype_row_bytes((frit_dtype)d, size) * (double)size;
                printf("%-9s %-11s %4d %7d %9.1f %9.1f %7.2f %7.1f\n", type->name, name, n_x, n_threads, s.wall * 1e6,
                       s.cpu * 1e6, bytes / s.wall * 1e-9, 2.0 * (double)(size * size) * n_x / s.wall * 1e-9);
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench(argc > 2 ? argv[2] : "");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_sums_of_decoded_numbers),
        cmocka_unit_test(coarse_products_equal_sums_of_rounded_numbers),
        cmocka_unit_test(products_do_not_saturate),
        cmocka_unit_test(conversions_are_the_same_on_all_instruction_sets),
        cmocka_unit_test(f16_values_are_rounded_as_the_format_says),
    };
    return cmocka_run_group_tests(tests, report_isas, NULL);
}

// SPDX-License-Identifier: MIT
// Compares packing and the products of packed matrices, of every type on every instruction set of this processor, with
// sums in double precision of decoded numbers. With --bench [NAME] types are timed in the cache and from memory.
#include "backend/weights.h"

#include "backend/cpu/pack/memory.h"
#include "backend/cpu/pack/pack.h"
#include "support/isas.h"

#include <math.h>
#include <time.h>

enum { MAX_ROWS = 50, MAX_N = 2048 };

static bool install(size_t i, frit_kernels *kernels)
{
    const frit_isa *isa = frit_isa_get(i);
    return isa && frit_isa_is_usable(isa) && frit_isa_install(kernels, isa, FRIT_FOR_ALL);
}

typedef struct product_case {
    const frit_interleave *layout;
    frit_dtype dtype;
    int64_t n, n_w, n_x;
    size_t row_bytes, packed_bytes;   // bytes of a row
    uint8_t *weights, *panels;
    float *x;
    bool random;   // random data, whose rounding errors cancel
} product_case;

static void pack_all(product_case *c)
{
    for (int64_t i = 0; i < c->n_w; i += FRIT_PANEL_ROWS) {
        const int n = c->n_w - i < FRIT_PANEL_ROWS ? (int)(c->n_w - i) : FRIT_PANEL_ROWS;
        frit_pack_panel(c->layout, c->weights + (size_t)i * c->row_bytes, n, c->n,
                        c->panels + (size_t)i * c->packed_bytes);
    }
}

// Weights at an odd address, panels that end with their memory, so that asan sees reads after them.
static void open_case(product_case *c, frit_rng *rng, const frit_interleave *layout, int64_t n_w, int64_t n_x)
{
    const frit_dtype dtype = layout->dtype;
    const int64_t block = frit_dtype_get(dtype)->block_elems;
    *c = (product_case){.layout = layout, .dtype = dtype, .n_w = n_w, .n_x = n_x, .random = true};
    c->n = block * random_between(rng, 1, block == 1 ? 300 : MAX_N / block);
    while (!frit_pack_fits(layout, c->n)) c->n += block;
    c->row_bytes = (size_t)frit_dtype_row_bytes(dtype, c->n);
    c->packed_bytes = frit_pack_row_bytes(layout, c->n);
    const size_t n_panels = (size_t)(n_w + FRIT_PANEL_ROWS - 1) / FRIT_PANEL_ROWS;
    c->weights = malloc(c->row_bytes * (size_t)n_w);
    c->panels = malloc(n_panels * FRIT_PANEL_ROWS * c->packed_bytes);
    c->x = malloc((size_t)(n_x * c->n) * sizeof(float));
    for (int64_t i = 0; i < n_w; i++) random_weights(rng, dtype, c->weights + (size_t)i * c->row_bytes, c->n);
    random_normal(rng, c->x, (size_t)(n_x * c->n), 1);
    pack_all(c);
}

static void close_case(product_case *c)
{
    free(c->weights);
    free(c->panels);
    free(c->x);
}

// Decodes row i of the converted activations.
static void decode_row(frit_form form, uint8_t *rows, int64_t i, int64_t n, double *values)
{
    const uint8_t *row = frit_form_row(form, rows, i, n);
    const frit_q8_line *lines = (const void *)row;
    for (int64_t k = 0; k < n; k++) {
        if (form == FRIT_FORM_Q8_LINES || form == FRIT_FORM_Q8_TRANSPOSED) {
            const int64_t at = form == FRIT_FORM_Q8_TRANSPOSED ? k % 8 * 4 + k % 32 / 8 : k % 32;
            values[k] = (double)lines[k / 32].scale * lines[k / 32].codes[at];
        } else {
            uint32_t bits = 0;
            float number;
            memcpy((uint8_t *)&bits + 2, row + k / FRIT_TILE_COLUMNS * FRIT_TILE_BYTES + k % FRIT_TILE_COLUMNS * 2, 2);
            memcpy(&number, &bits, 4);
            values[k] = number;
        }
    }
}

// Tolerances: relative to sum |w| |x| for float sums or weights in bf16, and relative to the root of sum w^2 x^2 for
// single roundings to bf16, 0.0016.
typedef struct tolerances {
    double sum, mean;
} tolerances;

static tolerances tolerances_of(frit_form form)
{
    return form == FRIT_FORM_BF16_TILES ? (tolerances){0x1p-8 + 1e-6, 0.003} : (tolerances){1e-6, 1e-4};
}

static void check_case(const product_case *c, const frit_kernels *kernels)
{
    const frit_product_kernel *kernel = &kernels->packed[c->dtype];
    const frit_dtype_info *type = frit_dtype_get(c->dtype);
    const size_t n = (size_t)c->n, n_x = (size_t)c->n_x, y_stride = (size_t)c->n_w + 1;
    const tolerances tolerance = tolerances_of(kernel->form);
    uint8_t *converted = aligned_alloc(64, frit_form_bytes_of_rows(kernel->form, c->n_x, c->n));
    uint8_t *scratch = aligned_alloc(64, FRIT_PRODUCT_SCRATCH);
    double *xs = malloc(n_x * n * sizeof *xs), off = 0, all = 0;
    float *w = malloc(n * sizeof *w), *y = malloc(n_x * y_stride * sizeof *y);
    for (int64_t j = 0; j < c->n_x; j++)
        kernels->convert[kernel->form](c->x + j * c->n, frit_form_row(kernel->form, converted, j, c->n), c->n);
    for (int64_t j = 0; j < c->n_x; j++) decode_row(kernel->form, converted, j, c->n, xs + j * c->n);
    memset(y, 0xff, n_x * y_stride * sizeof *y);
    kernel->run(&(frit_product){.w = c->panels,
                                .w_stride = FRIT_PANEL_ROWS * c->packed_bytes,
                                .x = converted,
                                .x_stride = frit_form_bytes(kernel->form, c->n),
                                .y = y,
                                .y_stride = y_stride,
                                .n_w = c->n_w,
                                .n_x = c->n_x,
                                .n = c->n,
                                .scratch = scratch,
                                .in_order = c->n_x % 4 != 1});
    for (int64_t i = 0; i < c->n_w; i++) {
        type->decode(c->weights + (size_t)i * c->row_bytes, w, c->n);
        for (int64_t j = 0; j < c->n_x; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < c->n; k++) {
                const double product = xs[j * c->n + k] * w[k];
                sum += product;
                size += fabs(product) + 0.05 * fabs(xs[j * c->n + k]);   // offsets cancel, so their size counts too
                all += product * product;
            }
            const double got = y[(size_t)j * y_stride + (size_t)i];
            if (!(fabs(got - sum) <= tolerance.sum * size))
                fail_msg("%s on %s: %g, expected %g (n %d, row %d of %d, token %d of %d)", type->name, kernel->isa, got,
                         sum, (int)c->n, (int)i, (int)c->n_w, (int)j, (int)c->n_x);
            off += (got - sum) * (got - sum);
        }
    }
    if (c->random && !(sqrt(off) <= tolerance.mean * sqrt(all) + 1e-6))
        fail_msg("%s on %s: off by %g of the products' size", type->name, kernel->isa, sqrt(off / all));
    for (size_t j = 0; j < n_x; j++) assert_true(isnan(y[(j + 1) * y_stride - 1]));   // untouched
    free(converted);
    free(scratch);
    free(xs);
    free(w);
    free(y);
}

// Calls `check` for every type that some instruction set of this processor packs.
static void for_all_kernels(void (*check)(frit_dtype dtype, const frit_kernels *kernels))
{
    frit_kernels kernels;
    for (size_t isa = 0; frit_isa_get(isa); isa++) {
        if (!install(isa, &kernels)) continue;
        for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++)
            if (kernels.packed[dtype].run) check((frit_dtype)dtype, &kernels);
    }
}

static void check_shapes(frit_dtype dtype, const frit_kernels *kernels)
{
    frit_rng rng;
    frit_rng_init(&rng, (uint64_t)dtype);
    // Every number of tokens up to 17, and some larger ones, with strides. Types begin with different numbers.
    for (int64_t i = 1 + (int)dtype % FRIT_TEST_STRIDE; i <= 17 + 3; i += FRIT_TEST_STRIDE) {
        product_case c;
        const int64_t n_x = i <= 17 ? i : random_between(&rng, 18, 80);
        open_case(&c, &rng, kernels->packed[dtype].layout, random_between(&rng, 1, MAX_ROWS), n_x);
        check_case(&c, kernels);
        close_case(&c);
    }
}

static void products_equal_sums_of_decoded_numbers(void **state)
{
    (void)state;
    for_all_kernels(check_shapes);
}

// More rows and tokens than kernels take at once.
static void check_large(frit_dtype dtype, const frit_kernels *kernels)
{
    const bool tiles = frit_form_is_tiled(kernels->packed[dtype].form);
    frit_rng rng;
    frit_rng_init(&rng, (uint64_t)dtype);
    product_case c;
    open_case(&c, &rng, kernels->packed[dtype].layout, tiles ? 150 : 17, tiles ? 530 : 270);
    check_case(&c, kernels);
    close_case(&c);
}

static void large_products_are_cut_into_blocks(void **state)
{
    (void)state;
    for_all_kernels(check_large);
}

// The bits do not depend on the other tokens of a call: a session's tokens do not depend on the cut into steps.
static void check_neighbours(frit_dtype dtype, const frit_kernels *kernels)
{
    enum { N_W = 40, N_X = 29 };
    static float all[N_X][N_W], one[N_W];
    const frit_product_kernel *kernel = &kernels->packed[dtype];
    if (frit_form_is_tiled(kernel->form)) return;   // tiles of tokens cannot be cut
    frit_rng rng;
    frit_rng_init(&rng, 7);
    product_case c;
    open_case(&c, &rng, kernel->layout, N_W, N_X);
    const size_t x_bytes = frit_form_bytes(kernel->form, c.n);
    uint8_t *converted = malloc(N_X * x_bytes);
    for (int j = 0; j < N_X; j++) kernels->convert[kernel->form](c.x + j * c.n, converted + (size_t)j * x_bytes, c.n);
    frit_product p = {
        c.panels, FRIT_PANEL_ROWS * c.packed_bytes, converted, x_bytes, all[0], N_W, N_W, N_X, c.n, NULL, 0, true};
    kernel->run(&p);
    p.y = one;
    for (int n_x = 1; n_x < 5; n_x++) {
        for (int j = 0; j + n_x <= N_X; j += n_x) {
            static float some[4][N_W];
            p.x = converted + (size_t)j * x_bytes;
            p.y = some[0];
            p.n_x = n_x;
            p.n_w = N_W;
            for (int in_order = 0; in_order < 2; in_order++) {
                p.in_order = in_order;
                memset(some, 0xff, sizeof some);
                kernel->run(&p);
                assert_memory_equal(some, all[j], (size_t)n_x * sizeof some[0]);
            }
            p.n_w = FRIT_PANEL_ROWS;   // the first panel alone
            p.y = one;
            p.n_x = 1;
            kernel->run(&p);
            assert_memory_equal(one, all[j], FRIT_PANEL_ROWS * sizeof one[0]);
        }
    }
    free(converted);
    close_case(&c);
}

static void products_do_not_depend_on_their_neighbours(void **state)
{
    (void)state;
    for_all_kernels(check_neighbours);
}

// Codes at the ends of their ranges reveal a saturating instruction.
static void check_extremes(frit_dtype dtype, const frit_kernels *kernels)
{
    static const uint8_t fills[] = {0x00, 0x7f, 0x80, 0xff};
    const frit_dtype_info *type = frit_dtype_get(dtype);
    frit_rng rng;
    frit_rng_init(&rng, 5);
    for (size_t fill = 0; fill < FRIT_COUNT(fills) && type->block_elems > 1; fill++) {
        product_case c;
        open_case(&c, &rng, kernels->packed[dtype].layout, 20, 5);
        c.random = false;
        uint8_t *block = c.weights;
        for (int64_t b = 0; b < c.n_w * c.n / type->block_elems; b++, block += type->block_bytes) {
            memset(block, fills[fill], (size_t)type->block_bytes);
            weight_fix_scales(&rng, dtype, block);
        }
        for (int64_t i = 0; i < c.n_x * c.n; i++) c.x[i] = i / c.n % 2 ? -1 : 1;
        pack_all(&c);
        check_case(&c, kernels);
        close_case(&c);
    }
}

static void products_do_not_saturate(void **state)
{
    (void)state;
    for_all_kernels(check_extremes);
}

// A panel has exactly the bytes of its rows unless they are recoded.
static void check_bytes(const frit_interleave *layout)
{
    const int64_t n = 256;
    if (!layout || !frit_pack_fits(layout, n) || layout->recode) return;
    const size_t row_bytes = (size_t)frit_dtype_row_bytes(layout->dtype, n);
    for (int n_rows = 1; n_rows <= FRIT_PANEL_ROWS; n_rows += 5) {
        size_t counts[2][256] = {{0}};
        uint8_t *rows = malloc(row_bytes * (size_t)n_rows), *panel = malloc(row_bytes * FRIT_PANEL_ROWS);
        frit_rng rng;
        frit_rng_init(&rng, (uint64_t)layout->dtype);
        for (size_t i = 0; i < row_bytes * (size_t)n_rows; i++) rows[i] = (uint8_t)frit_rng_next(&rng);
        memset(panel, 0xa5, row_bytes * FRIT_PANEL_ROWS);
        frit_pack_panel(layout, rows, n_rows, n, panel);
        for (size_t i = 0; i < row_bytes * (size_t)n_rows; i++) counts[0][rows[i]]++;
        for (size_t i = 0; i < row_bytes * FRIT_PANEL_ROWS; i++) counts[1][panel[i]]++;
        counts[0][0] += row_bytes * (size_t)(FRIT_PANEL_ROWS - n_rows);
        assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
        free(rows);
        free(panel);
    }
}

static void packing_keeps_every_byte(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
        check_bytes(frit_interleave_get((frit_dtype)dtype));
        check_bytes(frit_interleave_indexed((frit_dtype)dtype));
    }
}

// ------------------------------------------------------------------------------- benchmark

// Processor time of this thread, which does not depend on other processes.
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Current cycles per second: dependent multiplications take three cycles each.
static double clock_rate(void)
{
    enum { STEPS = 20000 };
    uint64_t x = 3;
    const double before = cpu_seconds();
    for (int i = 0; i < STEPS; i++) {
        x *= x;
        __asm__ volatile("" : "+r"(x));
    }
    return 3.0 * STEPS / (cpu_seconds() - before);
}

typedef struct duration {
    double seconds, cycles;
} duration;

// The fastest of many runs in at least 20 ms. The clock is measured with each run, because it depends on the load.
static duration best_of(const frit_product_kernel *kernel, const frit_product *p)
{
    duration best = {1e30, 1e30};
    for (double begin = cpu_seconds(), after = begin; after - begin < 0.02;) {
        const double rate = clock_rate(), before = cpu_seconds();
        kernel->run(p);
        after = cpu_seconds();
        const double cycles = (after - before) * (rate + clock_rate()) / 2;
        best = (duration){fmin(best.seconds, after - before), fmin(best.cycles, cycles)};
    }
    return best;
}

enum { MEMORY_TOKENS = 5 };   // the first cases, which are also timed from memory
static const int64_t bench_tokens[] = {1, 2, 4, 8, 16, 32, 64, 128, 512};

static void bench_kernel(frit_dtype dtype, const frit_kernels *kernels)
{
    enum { N = 2048, SMALL = 512, LARGE = 65536, TOKENS = 512 };
    const frit_product_kernel *kernel = &kernels->packed[dtype];
    const frit_dtype_info *type = frit_dtype_get(dtype);
    const size_t file_bytes = (size_t)frit_dtype_row_bytes(dtype, N),
                 row_bytes = frit_pack_row_bytes(kernel->layout, N);
    const size_t x_bytes = frit_form_bytes(kernel->form, N);
    uint8_t *rows = malloc(file_bytes * FRIT_PANEL_ROWS), *panels = frit_cpu_memory_new(row_bytes * LARGE);
    uint8_t *x = aligned_alloc(64, TOKENS * x_bytes), *scratch = aligned_alloc(64, FRIT_PRODUCT_SCRATCH);
    float *y = malloc(sizeof(float) * LARGE * 16), *values = malloc(sizeof(float) * N);
    frit_rng rng;
    frit_rng_init(&rng, 1);
    for (size_t i = 0; i < FRIT_PANEL_ROWS; i++) random_weights(&rng, dtype, rows + i * file_bytes, N);
    for (size_t i = 0; i < LARGE; i += FRIT_PANEL_ROWS)
        frit_pack_panel(kernel->layout, rows, FRIT_PANEL_ROWS, N, panels + i * row_bytes);
    for (size_t j = 0; j < TOKENS; j++) {
        random_normal(&rng, values, N, 1);
        kernels->convert[kernel->form](values, frit_form_row(kernel->form, x, (int64_t)j, N), N);
    }
    frit_product p = {panels,           row_bytes * FRIT_PANEL_ROWS, x, x_bytes, y, SMALL, SMALL, 1, N, scratch, 0,
                      kernels->in_order};
    printf("%-8s %-11s", type->name, kernel->isa);
    for (size_t i = 0; i < FRIT_COUNT(bench_tokens); i++) {
        p.n_x = bench_tokens[i];
        const duration d = best_of(kernel, &p);
        if (i == 0) printf(" %8.1f", (double)row_bytes * SMALL / d.cycles);
        printf(" %6.0f", 2.0 * N * SMALL * (double)p.n_x / d.cycles);
    }
    p.n_w = p.y_stride = LARGE;
    for (size_t i = 0; i < MEMORY_TOKENS; i++) {
        p.n_x = bench_tokens[i];
        printf(" %6.1f", (double)row_bytes * LARGE / best_of(kernel, &p).seconds * 1e-9);
    }
    printf("\n");
    free(rows);
    frit_cpu_memory_free(panels, row_bytes * LARGE);
    free(x);
    free(scratch);
    free(y);
    free(values);
}

static const char *bench_filter = "";

static void bench_if_named(frit_dtype dtype, const frit_kernels *kernels)
{
    if (strstr(frit_dtype_get(dtype)->name, bench_filter)) bench_kernel(dtype, kernels);
}

// The maximum percentage of the file's size. Types with grids and types of one to three bits are recoded
// (docs/log/products.md) if no kernel reads the file's indices.
static void packed_weights_are_as_large_as_the_file_or_a_known_part_larger(void **state)
{
    (void)state;
    enum { N = 1024, USUAL = 100 };
    static const int most[FRIT_DTYPE_COUNT] = {
        [FRIT_DTYPE_IQ1_S] = 140, [FRIT_DTYPE_IQ1_M] = 190,   [FRIT_DTYPE_IQ2_XXS] = 155, [FRIT_DTYPE_IQ2_XS] = 144,
        [FRIT_DTYPE_IQ2_S] = 130, [FRIT_DTYPE_IQ3_XXS] = 137, [FRIT_DTYPE_IQ3_S] = 122,   [FRIT_DTYPE_TQ1_0] = 123,
    };
    print_message("%-16s %10s %10s %9s\n", "layout", "bits", "packed", "factor");
    for (int i = 0; i < 2 * FRIT_DTYPE_COUNT; i++) {
        const frit_dtype dtype = (frit_dtype)(i / 2);
        const frit_interleave *layout = i % 2 ? frit_interleave_indexed(dtype) : frit_interleave_get(dtype);
        if (!layout || !frit_pack_fits(layout, N)) continue;
        const double file = (double)frit_dtype_row_bytes(dtype, N), packed = (double)frit_pack_row_bytes(layout, N);
        print_message("%-16s %10.4f %10.4f %7.0f %%\n", layout->name, file * 8 / N, packed * 8 / N,
                      100 * packed / file);
        if (100 * packed / file > (i % 2 || !most[dtype] ? USUAL : most[dtype]))
            fail_msg("%s: %g bytes of the file are %g packed", layout->name, file, packed);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        if (argc > 2) bench_filter = argv[2];
        printf("one thread; bytes of weights a cycle with one token, operations (a multiplication and an addition are\n"
               "two) a cycle with n tokens, both in the cache; then GB/s of weights from memory\n\n");
        printf("%-8s %-11s %8s", "type", "isa", "B/cycle");
        for (size_t i = 0; i < FRIT_COUNT(bench_tokens); i++) printf(" %6d", (int)bench_tokens[i]);
        for (size_t i = 0; i < MEMORY_TOKENS; i++) printf(" %6d", (int)bench_tokens[i]);
        printf("\n");
        for_all_kernels(bench_if_named);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_sums_of_decoded_numbers),
        cmocka_unit_test(large_products_are_cut_into_blocks),
        cmocka_unit_test(products_do_not_depend_on_their_neighbours),
        cmocka_unit_test(products_do_not_saturate),
        cmocka_unit_test(packing_keeps_every_byte),
        cmocka_unit_test(packed_weights_are_as_large_as_the_file_or_a_known_part_larger),
    };
    return cmocka_run_group_tests(tests, report_isas, NULL);
}

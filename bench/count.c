// SPDX-License-Identifier: MIT
// Multiplies 16 rows x 256 columns of packed weights once, for bench/count.py, which counts its instructions.
//
//     bench_count ISA TYPE TOKENS
//
// Prints the addresses at which counting begins and ends. Weights are zeros, because the executed instructions do not
// depend on them.
#include "backend/cpu/kernels.h"
#include "backend/cpu/pack/pack.h"
#include "quant/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 256, MAX_TOKENS = 512, AFTER = 1 << 16 };   // AFTER: bytes after the weights for prefetches

__attribute__((noinline)) static void begin(void)
{
    __asm__ volatile("");
}

__attribute__((noinline)) static void end(void)
{
    __asm__ volatile("");
}

static bool install(const char *name, frit_kernels *kernels)
{
    const frit_isa *isa;
    for (size_t i = 0; (isa = frit_isa_get(i)) != NULL; i++) {
        if (!frit_isa_is_usable(isa)) continue;
        frit_isa_install(kernels, isa, FRIT_FOR_ALL);
        if (strcmp(isa->name, name) == 0) return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    static float y[MAX_TOKENS * FRIT_PANEL_ROWS];
    frit_kernels kernels = {0};
    frit_dtype dtype;
    const int64_t n_x = argc == 4 ? atoi(argv[3]) : 0;
    if (n_x < 1 || n_x > MAX_TOKENS || !frit_dtype_from_name(argv[2], &dtype) || !install(argv[1], &kernels) ||
        !kernels.packed[dtype].run)
        return fprintf(stderr, "expected an instruction set, a type that it packs, and 1 to %d tokens\n", MAX_TOKENS),
               2;
    const frit_product_kernel *kernel = &kernels.packed[dtype];
    const size_t row_bytes = frit_pack_row_bytes(kernel->layout, COLUMNS),
                 x_bytes = frit_form_bytes(kernel->form, COLUMNS);
    uint8_t *memory = calloc(1, FRIT_PANEL_ROWS * row_bytes + MAX_TOKENS * x_bytes + FRIT_PRODUCT_SCRATCH + AFTER);
    if (!memory) return fprintf(stderr, "no memory\n"), 1;
    uint8_t *scratch = memory + (-(uintptr_t)memory & 63), *x = scratch + FRIT_PRODUCT_SCRATCH;
    const frit_product p = {.w = x + MAX_TOKENS * x_bytes,
                            .w_stride = FRIT_PANEL_ROWS * row_bytes,
                            .x = x,
                            .x_stride = x_bytes,
                            .y = y,
                            .y_stride = FRIT_PANEL_ROWS,
                            .n_w = FRIT_PANEL_ROWS,
                            .n_x = n_x,
                            .n = COLUMNS,
                            .scratch = scratch};
    printf("%#llx %#llx\n", (unsigned long long)(uintptr_t)begin, (unsigned long long)(uintptr_t)end);
    fflush(stdout);
    begin();
    kernel->run(&p);
    end();
    free(memory);
    return 0;
}

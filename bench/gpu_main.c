// SPDX-License-Identifier: MIT
// Measures the speed of frit's GPU kernels on this machine and prints tables.
//
//     bench_gpu [--nvrtc FOLDER] [--cache FOLDER] [check|types [TYPE]|models [FILTER]|load|products [FILTER]|
//               gemm_small [FILTER]|gemm_wgmma [FILTER]|steps [FILTER]|prompts [FILTER]|prefill|engine MODEL|
//               exchange GPUS|present]...
//
// Without arguments all measurements except `engine` and `exchange` run. FILTER selects rows whose text contains it;
// "." selects all. present: only checks if there is a GPU; exits with 0 (yes) or 1 (no).
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must(frit_status status)
{
    if (status == FRIT_OK) return;
    fprintf(stderr, "bench_gpu: %s\n", frit_error());
    exit(1);
}

void must_cuda(bench *b, int result, const char *what)
{
    must(frit_cuda_check(&b->driver, result, what));
}

static void print_log(void *ctx, frit_log_level level, const char *text)
{
    (void)ctx, (void)level;
    fprintf(stderr, "%s\n", text);
}

static void open_all(bench *b, const char *nvrtc, const char *cache)
{
    must(frit_cuda_driver_open(&b->driver));
    must(frit_cuda_gpu_open(&b->gpu, &b->driver, 0));
    must(frit_nvrtc_open(&b->nvrtc, nvrtc, b->gpu.arch));
    must(frit_pool_new(&b->pool, 0));
    must_cuda(b, b->driver.stream_new(&b->stream, 1), "making a stream");
    b->compiler = (frit_cuda_compiler){.nvrtc = &b->nvrtc,
                                       .folder = cache,
                                       .arch = b->gpu.arch,
                                       .driver_version = b->driver.version,
                                       .log = {print_log, NULL}};
    must(frit_cuda_loader_open(&b->loader, &b->gpu, &b->compiler, b->pool));
    printf("%s, sm_%d, %d multiprocessors, L2 %.0f MB, %.0f GB, CUDA %d.%d, NVRTC %d.%d\n", b->gpu.name, b->gpu.arch,
           b->gpu.n_multiprocessors, b->gpu.l2_bytes / 1e6, (double)b->gpu.memory_bytes / 1e9, b->driver.version / 1000,
           b->driver.version % 1000 / 10, b->nvrtc.major, b->nvrtc.minor);
}

static void close_all(bench *b)
{
    frit_cuda_loader_close(&b->loader);
    b->driver.stream_free(b->stream);
    frit_pool_free(b->pool);
    frit_nvrtc_close(&b->nvrtc);
    frit_cuda_gpu_close(&b->gpu);
    frit_cuda_driver_close(&b->driver);
}

int main(int argc, char **argv)
{
    static bench b;
    const char *nvrtc = NULL, *cache = NULL;
    int i = 1, n_faults = 0;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--nvrtc") == 0) nvrtc = argv[i + 1];
        if (strcmp(argv[i], "--cache") == 0) cache = argv[i + 1];
    }
    static char *everything[] = {"check", "load",  "products", ".",       "gemm_small", ".",      "gemm_wgmma",
                                 ".",     "steps", ".",        "prompts", ".",          "prefill"};
    char **words = i < argc ? argv + i : everything;
    const int n = i < argc ? argc - i : (int)FRIT_COUNT(everything);
    if (strcmp(words[0], "present") == 0) {
        const frit_status status = frit_cuda_driver_open(&b.driver);
        if (status != FRIT_OK) printf("%s: kernels are not run\n", frit_error());
        return status != FRIT_OK;
    }
    open_all(&b, nvrtc, cache);
    for (int j = 0; j < n; j++) {
        const char *filter = j + 1 < n ? words[j + 1] : ".";
        if (strcmp(words[j], "check") == 0)
            n_faults += check_types(&b, ".") + check_prefill(&b, nvrtc) + bench_check(&b, nvrtc, ".");
        if (strcmp(words[j], "models") == 0) n_faults += bench_check(&b, nvrtc, filter);
        if (strcmp(words[j], "types") == 0) n_faults += check_types(&b, filter);
        if (strcmp(words[j], "load") == 0) bench_load(&b);
        if (strcmp(words[j], "prompts") == 0) bench_prompts(&b, nvrtc, filter);
        if (strcmp(words[j], "products") == 0) bench_products(&b, filter);
        if (strcmp(words[j], "steps") == 0) bench_steps(&b, filter);
        if (strcmp(words[j], "gemm_small") == 0) bench_gemm_small(&b, filter);
        if (strcmp(words[j], "gemm_wgmma") == 0) bench_gemm_wgmma(&b, filter);
        if (strcmp(words[j], "engine") == 0 && j + 1 < n) bench_engine(&b, words[j + 1]);
        if (strcmp(words[j], "exchange") == 0 && j + 1 < n) bench_exchange(&b, atoi(words[j + 1]));
        if (strcmp(words[j], "prefill") == 0) bench_prefill(&b, nvrtc);
        fflush(stdout);
    }
    close_all(&b);
    return n_faults > 0;
}

// SPDX-License-Identifier: MIT
// bench_webgpu: what a GPU does through WebGPU: the speed of plain reads, the cost of a dispatch, of a step and of a
// readback, and the speed of products with tiles. Prints a line for each measurement.
//
//     build/release/bench/bench_webgpu [LIBRARY [basics | products]]      LIBRARY: Dawn's or wgpu-native's file
//     build/release/bench/bench_webgpu LIBRARY SHAPE TYPE N_PROMPT [N_LAYERS]      steps of a random model
#include "backend/cuda/weights/repack.h"
#include "backend/webgpu/runtime/gpu.h"
#include "backend/webgpu/runtime/wgsl.h"
#include "base/time.h"
#include "webgpu_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, STEP_WORDS = 64, PARAM_BYTES = 256 };

typedef struct bench {
    frit_gpu gpu;
    frit_gpu_buffer params, step, scratch, acts, results;
    frit_gpu_dispatch list[MOST];
} bench;

void must(frit_status status)
{
    if (status == FRIT_OK) return;
    fprintf(stderr, "bench_webgpu: %s\n", frit_error());
    exit(1);
}

static frit_gpu_buffer new_buffer(bench *b, uint64_t n_bytes, frit_gpu_usage usage)
{
    frit_gpu_buffer buffer;
    must(frit_gpu_buffer_new(&b->gpu, n_bytes, usage, "a benchmark", &buffer));
    return buffer;
}

static void new_pipeline(bench *b, const char *file, const char *const *defines, size_t n, const char *kinds,
                         frit_gpu_pipeline *out)
{
    frit_buf text = {0};
    must(strchr(file, '\n') ? frit_wgsl_make_text(file, defines, n, &text) : frit_wgsl_make(file, defines, n, &text));
    must(frit_gpu_pipeline_new(&b->gpu, "benchmark", text.data, kinds, out));
    frit_buf_free(&text);
}

static void wait_for_all(frit_gpu *gpu, const frit_gpu_buffer *from, frit_gpu_buffer *results)
{
    const void *bytes;
    const frit_gpu_copy copy = {.from = from, .to = results, .n_bytes = 4};
    must(frit_gpu_submit(gpu, &(frit_gpu_list){.copies = &copy, .n_copies = 1}));
    must(frit_gpu_map_begin(gpu, results, 4));
    must(frit_gpu_map_wait(gpu, results, gpu->last_submit, 4, &bytes));
    frit_gpu_unmap(gpu, results);
}

double time_dispatches(frit_gpu *gpu, const frit_gpu_buffer *from, const frit_gpu_dispatch *list, size_t n,
                       double *encode)
{
    double best = 1e30;
    frit_gpu_buffer results;
    must(frit_gpu_buffer_new(gpu, 4, FRIT_GPU_READBACK, "a benchmark", &results));
    *encode = 1e30;
    for (int i = 0; i < 8; i++) {
        wait_for_all(gpu, from, &results);
        const uint64_t begin = frit_time_ns();
        must(frit_gpu_submit(gpu, &(frit_gpu_list){.dispatches = list, .n_dispatches = n, .is_new = i == 0}));
        const double submitted = (double)(frit_time_ns() - begin) / 1e3;
        wait_for_all(gpu, from, &results);
        const double all = (double)(frit_time_ns() - begin) / 1e3;
        if (all < best) best = all;
        if (submitted < *encode) *encode = submitted;
    }
    frit_gpu_buffer_free(gpu, &results);
    return best;
}

static double time_list(bench *b, size_t n, double *encode)
{
    return time_dispatches(&b->gpu, &b->scratch, b->list, n, encode);
}

static void print_adapter(const bench *b)
{
    const frit_gpu *g = &b->gpu;
    printf("adapter | %s through %s%s\n", g->name, g->library_name, g->features.is_software ? ", a processor" : "");
    printf("features | f16 %d, subgroups %d, timestamps %d, discrete %d\n", g->features.has_f16,
           g->features.has_subgroups, g->features.has_timestamps, g->features.is_discrete);
    printf(
        "limits | buffer %llu, binding %llu, workgroup memory %u, invocations %u, storage buffers %u, alignment %u\n",
        (unsigned long long)g->limits.buffer_bytes, (unsigned long long)g->limits.storage_binding_bytes,
        g->limits.workgroup_bytes, g->limits.workgroup_invocations, g->limits.storage_buffers,
        g->limits.storage_alignment);
}

// ------------------------------------------------------------------------------- waiting and dispatches

static void measure_waiting(bench *b)
{
    uint32_t words[1024] = {0};
    double best = 1e30, with_write = 1e30;
    for (int i = 0; i < 50; i++) {
        uint64_t begin = frit_time_ns();
        wait_for_all(&b->gpu, &b->scratch, &b->results);
        if ((double)(frit_time_ns() - begin) < best) best = (double)(frit_time_ns() - begin);
        begin = frit_time_ns();
        must(frit_gpu_write(&b->gpu, &b->step, 0, words, STEP_WORDS * 4));
        wait_for_all(&b->gpu, &b->scratch, &b->results);
        if ((double)(frit_time_ns() - begin) < with_write) with_write = (double)(frit_time_ns() - begin);
    }
    printf("readback | %.1f us, with a write before it %.1f us\n", best / 1e3, with_write / 1e3);
}

static void measure_dispatches(bench *b)
{
    static const char nothing[] = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;\n"
                                  "@compute @workgroup_size(64)\n"
                                  "fn main(@builtin(global_invocation_id) i: vec3<u32>) {\n"
                                  "    a[i.x] = a[i.x] + 1u;\n}\n";
    frit_gpu_pipeline pipeline;
    frit_gpu_buffer buffers[8];
    frit_wgpu_bind_group groups[8];
    double encode;
    new_pipeline(b, nothing, NULL, 0, "w", &pipeline);
    for (int i = 0; i < 8; i++) {
        buffers[i] = new_buffer(b, 1 << 20, FRIT_GPU_STORAGE);
        must(frit_gpu_group_new(&b->gpu, &pipeline, (frit_gpu_range[]){{.buffer = &buffers[i]}}, &groups[i]));
    }
    for (int n_groups = 1; n_groups <= 1024; n_groups *= 32)
        for (int apart = 1; apart <= 8; apart += 7) {
            for (int i = 0; i < MOST; i++)
                b->list[i] = (frit_gpu_dispatch){&pipeline, groups[i % apart], {(uint32_t)n_groups, 1, 1}};
            const double few = time_list(b, MOST / 2, &encode), many = time_list(b, MOST, &encode);
            printf("dispatch | %d groups, %s buffers: %.2f us each, encoding %.2f us\n", n_groups,
                   apart == 1 ? "the same" : "different", (many - few) / (MOST / 2), encode / MOST);
        }
}

// ------------------------------------------------------------------------------- reads

static void measure_reads(bench *b)
{
    static const char reads[] = "@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;\n"
                                "@group(0) @binding(1) var<storage, read_write> y: array<u32>;\n"
                                "@compute @workgroup_size(256)\n"
                                "fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>,\n"
                                "        @builtin(local_invocation_index) t: u32) {\n"
                                "    var sum = vec4<u32>();\n"
                                "    let size = arrayLength(&x);\n"
                                "    for (var i = g.x * 256u + t; i < size; i += n.x * 256u) { sum ^= x[i]; }\n"
                                "    let all = sum.x ^ sum.y ^ sum.z ^ sum.w;\n"
                                "    if (all == 0x12345678u) { y[0] = all; }\n}\n";
    uint64_t n_bytes = (uint64_t)1 << 30;
    frit_gpu_pipeline pipeline;
    frit_wgpu_bind_group group;
    double encode;
    while (n_bytes > b->gpu.limits.storage_binding_bytes || n_bytes > b->gpu.limits.buffer_bytes) n_bytes /= 2;
    const frit_gpu_buffer x = new_buffer(b, n_bytes, FRIT_GPU_STORAGE);
    new_pipeline(b, reads, NULL, 0, "rw", &pipeline);
    must(frit_gpu_group_new(&b->gpu, &pipeline, (frit_gpu_range[]){{.buffer = &x}, {.buffer = &b->scratch}}, &group));
    for (uint32_t n = 256; n <= 16384; n *= 4) {
        for (int i = 0; i < 4; i++) b->list[i] = (frit_gpu_dispatch){&pipeline, group, {n, 1, 1}};
        const double us = time_list(b, 4, &encode);
        printf("read | %.0f MB by %u groups: %.0f GB/s\n", (double)n_bytes / 1e6, n, 4 * (double)n_bytes / us / 1e3);
    }
}

// ------------------------------------------------------------------------------- products

typedef struct shape {
    int64_t n_out, n_in;
} shape;

enum { COPIES = 8 };

static uint64_t matrix_bytes(frit_dtype dtype, shape s)
{
    return (uint64_t)((s.n_out + 15) / 16 * ((s.n_in + 255) / 256)) * (uint64_t)frit_tile_format_of(dtype)->tile_bytes;
}

static void define(char *text, const char *name, int value)
{
    snprintf(text, 32, "%s=%d", name, value);
}

static void measure_product(bench *b, frit_dtype dtype, shape s, int n_rows, int n_parts, int n_splits)
{
    const frit_tile_format *f = frit_tile_format_of(dtype);
    const int is_int = f->low_bits < 16, n_blocks = (int)((s.n_in + 255) / 256), n_at_once = n_rows;
    const uint64_t n_bytes = matrix_bytes(dtype, s);
    const struct {
        const char *name;
        int value;
    } values[] = {{"ROWS_OF", 0},
                  {"TYPE", (int)frit_dtype_get(dtype)->gguf_id},
                  {"LOW", f->low_bits},
                  {"HIGH", f->high_bits},
                  {"HEAD", f->head_bytes},
                  {"TAIL", f->tail_bytes},
                  {"TILE", f->tile_bytes / 16},
                  {"NR", n_at_once},
                  {"PARTS", n_parts},
                  {"SPLIT", n_splits},
                  {"IS_INT", is_int}};
    char texts[FRIT_COUNT(values)][32];
    const char *defines[FRIT_COUNT(values)];
    uint32_t params[32] = {0, (uint32_t)s.n_out, (uint32_t)n_blocks}, step[STEP_WORDS] = {(uint32_t)n_rows};
    frit_gpu_pipeline pipeline;
    frit_gpu_buffer matrices[COPIES];
    frit_wgpu_bind_group groups[COPIES];
    double encode;
    for (size_t i = 0; i < FRIT_COUNT(values); i++)
        define(texts[i], values[i].name, values[i].value), defines[i] = texts[i];
    new_pipeline(b, "product.wgsl", defines, FRIT_COUNT(values), "urwrrr", &pipeline);
    must(frit_gpu_write(&b->gpu, &b->params, 0, params, sizeof params));
    must(frit_gpu_write(&b->gpu, &b->step, 0, step, sizeof step));
    for (int i = 0; i < COPIES; i++) {
        matrices[i] = new_buffer(b, n_bytes, FRIT_GPU_STORAGE);
        const frit_gpu_range ranges[] = {{&b->params, 0, 128}, {.buffer = &b->step},     {.buffer = &b->scratch},
                                         {.buffer = &b->acts}, {.buffer = &matrices[i]}, {.buffer = &matrices[i]}};
        must(frit_gpu_group_new(&b->gpu, &pipeline, ranges, &groups[i]));
    }
    for (int i = 0; i < MOST; i++)
        b->list[i] =
            (frit_gpu_dispatch){&pipeline, groups[i % COPIES], {(uint32_t)((s.n_out + 15) / 16 * n_splits), 1, 1}};
    const size_t few_n = b->gpu.features.is_software ? 1 : 32, many_n = b->gpu.features.is_software ? 2 : 96;
    const double few = time_list(b, few_n, &encode), many = time_list(b, many_n, &encode);
    const double us = (many - few) / (double)(many_n - few_n);
    printf("product | %s, %lld x %lld, %d rows, %d parts, %d splits: %.1f us, %.0f GB/s\n", frit_dtype_get(dtype)->name,
           (long long)s.n_out, (long long)s.n_in, n_rows, n_parts, n_splits, us, (double)n_bytes / us / 1e3);
    fflush(stdout);
    for (int i = 0; i < COPIES; i++) {
        b->gpu.call.group_release(groups[i]);
        frit_gpu_buffer_free(&b->gpu, &matrices[i]);
    }
    frit_gpu_pipeline_free(&b->gpu, &pipeline);
}

static void measure_products(bench *b)
{
    static const frit_dtype types[] = {FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q8_0,  FRIT_DTYPE_Q6_K,
                                       FRIT_DTYPE_Q4_0, FRIT_DTYPE_MXFP4, FRIT_DTYPE_F16};
    static const shape shapes[] = {{4096, 4096}, {4096, 14336}, {14336, 4096}, {1024, 4096}, {2048, 2048}};
    const size_t n_types = b->gpu.features.is_software ? 2 : FRIT_COUNT(types);
    const size_t n_shapes = b->gpu.features.is_software ? 1 : FRIT_COUNT(shapes);
    const int most_parts = b->gpu.limits.workgroup_invocations >= 512 ? 16 : 8;
    for (size_t t = 0; t < n_types; t++)
        for (size_t k = 0; k < n_shapes; k++)
            for (int splits = 1; splits <= 2; splits++)
                for (int parts = 8; parts <= (t < 3 ? most_parts : 8); parts *= 2)
                    measure_product(b, types[t], shapes[k], 1, parts, splits);
    for (size_t t = 0; t < 2; t++)
        for (int n = 2; n <= 8; n *= 2) measure_product(b, types[t], shapes[0], n, 8, 1 + (n < 4));
}

// Compiles kernels without any checks from now on, if the library can.
static frit_wgpu_shader_module (*checked_module)(frit_wgpu_device, const frit_wgpu_named *, uint64_t);

static frit_wgpu_shader_module unchecked_module(frit_wgpu_device device, const frit_wgpu_named *d, uint64_t checks)
{
    (void)checks;
    return checked_module(device, d, 0);
}

static void measure_unchecked(bench *b)
{
    static const shape one = {4096, 14336};
    if (!b->gpu.call.module_trusted) return;
    checked_module = b->gpu.call.module_trusted;
    b->gpu.call.module_trusted = unchecked_module;
    printf("product | without checks of indices:\n");
    measure_product(b, FRIT_DTYPE_Q4_K, one, 1, 8, 1);
    measure_product(b, FRIT_DTYPE_Q8_0, one, 1, 8, 1);
    b->gpu.call.module_trusted = checked_module;
}

int main(int argc, char **argv)
{
    static bench b;
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);   // lines are seen when they are printed
    if (argc > 4) {
        bench_model(argv[1], argv[2], argv[3], atoi(argv[4]), argc > 5 ? atoi(argv[5]) : 0);
        return 0;
    }
    must(frit_gpu_open(&b.gpu, argc > 1 ? argv[1] : NULL, -1));
    print_adapter(&b);
    b.params = new_buffer(&b, PARAM_BYTES, FRIT_GPU_UNIFORM);
    b.step = new_buffer(&b, STEP_WORDS * 4, FRIT_GPU_STORAGE);
    b.scratch = new_buffer(&b, 16 << 20, FRIT_GPU_STORAGE);
    b.acts = new_buffer(&b, 16 << 20, FRIT_GPU_STORAGE);
    b.results = new_buffer(&b, 4096, FRIT_GPU_READBACK);
    const char *part = argc > 2 ? argv[2] : "";
    if (strcmp(part, "products") != 0) {
        measure_waiting(&b);
        measure_dispatches(&b);
        measure_reads(&b);
    }
    if (strcmp(part, "basics") != 0) measure_unchecked(&b), measure_products(&b);
    frit_gpu_close(&b.gpu);
    return 0;
}

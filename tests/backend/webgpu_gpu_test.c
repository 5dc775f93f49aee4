// SPDX-License-Identifier: MIT
// The GPU through WebGPU (runtime/gpu.h): a kernel runs, and misuse ends with a status and a sentence, never with the
// end of the process. Also the preprocessor of kernels, which needs no GPU.
#include "backend/webgpu_device.h"
#include "backend/webgpu/runtime/wgsl.h"

static const char twice[] =
    "@group(0) @binding(0) var<storage, read> a: array<f32>;\n"
    "@group(0) @binding(1) var<storage, read_write> b: array<f32>;\n"
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3<u32>) { b[i.x] = a[i.x] * 2.0; }\n";

enum { N = 256 };

typedef struct bench {
    frit_gpu gpu;
    frit_gpu_buffer a, b;
    frit_gpu_pipeline pipeline;
    frit_wgpu_bind_group group;
} bench;

static void open_bench(bench *t)
{
    float x[N];
    require_webgpu();
    for (int i = 0; i < N; i++) x[i] = (float)i;
    assert_ok(frit_gpu_open(&t->gpu, webgpu_library(), -1));
    assert_ok(frit_gpu_buffer_new(&t->gpu, sizeof x, FRIT_GPU_STORAGE, "a", &t->a));
    assert_ok(frit_gpu_buffer_new(&t->gpu, sizeof x, FRIT_GPU_STORAGE, "b", &t->b));
    assert_ok(frit_gpu_write(&t->gpu, &t->a, 0, x, sizeof x));
    assert_ok(frit_gpu_pipeline_new(&t->gpu, "twice", twice, "rw", &t->pipeline));
    assert_ok(
        frit_gpu_group_new(&t->gpu, &t->pipeline, (frit_gpu_range[]){{.buffer = &t->a}, {.buffer = &t->b}}, &t->group));
}

static void close_bench(bench *t)
{
    t->gpu.call.group_release(t->group);
    frit_gpu_pipeline_free(&t->gpu, &t->pipeline);
    frit_gpu_buffer_free(&t->gpu, &t->a);
    frit_gpu_buffer_free(&t->gpu, &t->b);
    frit_gpu_close(&t->gpu);
}

static frit_status run(bench *t, uint32_t groups)
{
    const frit_gpu_dispatch dispatch = {&t->pipeline, t->group, {groups, 1, 1}};
    return frit_gpu_submit(&t->gpu, &(frit_gpu_list){.dispatches = &dispatch, .n_dispatches = 1, .is_new = true});
}

static void assert_works(bench *t)
{
    float y[N] = {0};
    assert_ok(run(t, N / 64));
    assert_ok(frit_gpu_read(&t->gpu, &t->b, 0, y, sizeof y));
    for (int i = 0; i < N; i++) assert_true(y[i] == 2.0F * (float)i);
}

static void a_kernel_runs(void **state)
{
    (void)state;
    bench t;
    open_bench(&t);
    for (int i = 0; i < 3; i++) assert_works(&t);
    close_bench(&t);
}

static void faulty_kernels_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *wgsl, *kinds;
    } cases[] = {{"fn main( {", "rw"},
                 {"@compute @workgroup_size(64) fn other() {}", ""},
                 {"@compute @workgroup_size(100000) fn main() {}", ""},
                 {twice, "rr"},
                 {twice, "w"},
                 {twice, "rx"}};
    bench t;
    open_bench(&t);
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_gpu_pipeline pipeline;
        if (frit_gpu_pipeline_new(&t.gpu, "faulty", cases[i].wgsl, cases[i].kinds, &pipeline) == FRIT_OK)
            fail_msg("kernel %d is accepted", (int)i);
        assert_null(pipeline.handle);
        assert_works(&t);
    }
    close_bench(&t);
}

static void faulty_groups_are_refused(void **state)
{
    (void)state;
    bench t;
    open_bench(&t);
    frit_gpu_buffer readback, none = {0};
    assert_ok(frit_gpu_buffer_new(&t.gpu, 64, FRIT_GPU_READBACK, "readback", &readback));
    const frit_gpu_range cases[][2] = {{{.buffer = &t.a}, {.buffer = &t.a}},      {{.buffer = &t.a}, {.buffer = &none}},
                                       {{.buffer = &readback}, {.buffer = &t.b}}, {{&t.a, 4, 64}, {.buffer = &t.b}},
                                       {{&t.a, 0, 4096}, {.buffer = &t.b}},       {{&t.a, 4096, 64}, {.buffer = &t.b}}};
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_wgpu_bind_group group;
        assert_true(frit_gpu_group_new(&t.gpu, &t.pipeline, cases[i], &group) != FRIT_OK);
        assert_null(group);
        assert_works(&t);
    }
    frit_gpu_buffer_free(&t.gpu, &readback);
    close_bench(&t);
}

static void faulty_lists_are_refused(void **state)
{
    (void)state;
    bench t;
    open_bench(&t);
    float y[4];
    const frit_gpu_dispatch none = {.pipeline = &t.pipeline, .grid = {1, 1, 1}};
    assert_true(run(&t, 1U << 20) != FRIT_OK);
    assert_true(frit_gpu_submit(&t.gpu, &(frit_gpu_list){.dispatches = &none, .n_dispatches = 1}) != FRIT_OK);
    const frit_gpu_copy copies[] = {{&t.a, &t.a, 0, 64, 64}, {&t.a, &t.b, 2, 0, 64}, {&t.a, &t.b, 0, 0, 1 << 20}};
    for (size_t i = 0; i < FRIT_COUNT(copies); i++)
        assert_true(frit_gpu_submit(&t.gpu, &(frit_gpu_list){.copies = &copies[i], .n_copies = 1}) != FRIT_OK);
    assert_true(frit_gpu_write(&t.gpu, &t.a, 1022, y, 16) != FRIT_OK);
    assert_true(frit_gpu_read(&t.gpu, &t.a, 4096, y, 16) != FRIT_OK);
    assert_true(frit_gpu_map_begin(&t.gpu, &t.a, 64) != FRIT_OK);
    assert_works(&t);
    close_bench(&t);
}

static void memory_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    bench t;
    frit_gpu_buffer large;
    open_bench(&t);
    assert_int_equal(frit_gpu_buffer_new(&t.gpu, (uint64_t)1 << 50, FRIT_GPU_STORAGE, "much", &large), FRIT_E_MEMORY);
    assert_non_null(strstr(frit_error(), "much"));
    assert_works(&t);
    close_bench(&t);
}

static void a_lost_gpu_is_a_failure(void **state)
{
    (void)state;
    bench t;
    float y[4];
    frit_gpu_buffer buffer;
    open_bench(&t);
    assert_works(&t);
    t.gpu.call.device_destroy(t.gpu.device);
    assert_true(run(&t, 1) != FRIT_OK);
    assert_true(run(&t, 1) != FRIT_OK);
    assert_true(frit_gpu_read(&t.gpu, &t.a, 0, y, sizeof y) != FRIT_OK);
    assert_true(frit_gpu_write(&t.gpu, &t.a, 0, y, sizeof y) != FRIT_OK);
    assert_true(frit_gpu_buffer_new(&t.gpu, 64, FRIT_GPU_STORAGE, "late", &buffer) != FRIT_OK);
    close_bench(&t);
}

static void a_missing_library_is_not_found(void **state)
{
    (void)state;
    frit_gpu gpu;
    assert_int_equal(frit_gpu_open(&gpu, "/nowhere/libwgpu_native.so", -1), FRIT_E_NOT_FOUND);
    assert_non_null(strstr(frit_error(), "/nowhere/libwgpu_native.so"));
    assert_int_equal(frit_gpu_open(&gpu, "libc.so.6", -1), FRIT_E_NOT_FOUND);
}

// ------------------------------------------------------------------------------- the preprocessor

static void directives_become_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *define, *expected;
    } cases[] = {{"a // b\n\n  c", "X=1", "a\nc\n"},
                 {"x X Xu XX a.X", "X=(2 * 3)", "x (2 * 3) u32((2 * 3)) XX a.X\n"},
                 {"#define Y X + 1\nY", "X=4", "4 + 1\n"},
                 {"#if X == 4 && !Z\na\n#else\nb\n#endif", "X=4", "a\n"},
                 {"#if X > 4 || Z\na\n#elif X * 2 == 8\nb\n#else\nc\n#endif", "X=4", "b\n"},
                 {"#if 0\n#if 1\na\n#else\nb\n#endif\n#endif\nc", "X=1", "c\n"},
                 {"#repeat i X\na@i @iu\n#end", "X=2", "a0 0u\na1 1u\n"},
                 {"#repeat i 2\n#repeat j 2\n@i@j\n#end\n#end", "X=2", "00\n01\n10\n11\n"},
                 {"#repeat i 3\n#if @i == X\nthis @i\n#endif\n#end", "X=2", "this 2\n"}};
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_buf out = {0};
        assert_ok(frit_wgsl_make_text(cases[i].text, &cases[i].define, 1, &out));
        assert_string_equal(out.data, cases[i].expected);
        frit_buf_free(&out);
    }
}

static void faulty_directives_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"#if",      "#if (1",         "#if 1",           "#endif",
                                        "#else",    "#wrong",         "#repeat 3\n#end", "#include \"nothing.wgsl\"",
                                        "#include", "#if 1 +\n#endif"};
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_buf out = {0};
        if (frit_wgsl_make_text(cases[i], NULL, 0, &out) == FRIT_OK) fail_msg("'%s' is accepted", cases[i]);
        frit_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directives_become_text),         cmocka_unit_test(faulty_directives_are_refused),
        cmocka_unit_test(a_missing_library_is_not_found), cmocka_unit_test(a_kernel_runs),
        cmocka_unit_test(faulty_kernels_are_refused),     cmocka_unit_test(faulty_groups_are_refused),
        cmocka_unit_test(faulty_lists_are_refused),       cmocka_unit_test(memory_that_does_not_fit_is_refused),
        cmocka_unit_test(a_lost_gpu_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// The CPU as a device: instruction-set caps, memory, the list of kernels, the probe.
#include "backend/world.h"

#include "backend/cpu/probe.h"
#include "backend/cpu/task.h"
#include "base/machine/cpu.h"

static frit_status open_with(frit_device **device, const char *cpu, int n_threads)
{
    return frit_backend_cpu.open(device, &(frit_device_options){.n_threads = n_threads, .cpu = cpu});
}

static frit_device_info info_of(const frit_device *device)
{
    frit_device_info info;
    device->backend->info(device, &info);
    return info;
}

static void every_usable_instruction_set_opens_under_its_name(void **state)
{
    (void)state;
    frit_device *device;
    const char *best = NULL;
    for (size_t i = 0; frit_isa_get(i); i++) {
        const frit_isa *isa = frit_isa_get(i);
        if (frit_isa_is_usable(isa)) {
            best = isa->name;
            assert_ok(open_with(&device, isa->name, 2));
            assert_string_equal(info_of(device).isa, isa->name);
            assert_int_equal(info_of(device).n_threads, 2);
            frit_backend_cpu.close(device);
        } else {
            assert_fails(open_with(&device, isa->name, 1), FRIT_E_UNSUPPORTED, isa->name);
            assert_null(device);
        }
    }
    assert_ok(open_with(&device, NULL, 1));
    assert_string_equal(info_of(device).isa, best);
    frit_backend_cpu.close(device);
    assert_ok(open_with(&device, "reference", 0));
    assert_string_equal(info_of(device).isa, "reference");
    assert_true(info_of(device).n_threads_batch >= 1);
    frit_backend_cpu.close(device);
    frit_backend_cpu.close(NULL);
}

static void unknown_instruction_sets_are_refused_with_the_list(void **state)
{
    (void)state;
    frit_device *device;
    assert_fails(open_with(&device, "avx3", 1), FRIT_E_INVALID, "'avx3'");
    assert_non_null(strstr(frit_error(), "reference, scalar"));
    assert_fails(open_with(&device, "", 1), FRIT_E_INVALID, "scalar");
    assert_fails(open_with(&device, NULL, -1), FRIT_E_INVALID, "n_threads is -1");
    assert_null(device);
}

static void prompts_may_have_threads_of_their_own(void **state)
{
    (void)state;
    static const int32_t cases[][4] = {{3, 0, 3, 3}, {2, 5, 2, 5}, {4, 1, 4, 1}};   // options, result
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_device *device;
        const frit_device_options options = {.n_threads = cases[i][0], .n_threads_batch = cases[i][1]};
        assert_ok(frit_backend_cpu.open(&device, &options));
        assert_int_equal(info_of(device).n_threads, cases[i][2]);
        assert_int_equal(info_of(device).n_threads_batch, cases[i][3]);
        frit_backend_cpu.close(device);
    }
    frit_device *device;
    frit_topology counts;
    frit_topology_get(&counts);
    assert_ok(frit_backend_cpu.open(&device, &(frit_device_options){.n_threads_batch = 7}));
    assert_int_equal(info_of(device).n_threads, counts.n_fast_cores);
    assert_int_equal(info_of(device).n_threads_batch, 7);
    frit_backend_cpu.close(device);
    assert_fails(frit_backend_cpu.open(&device, &(frit_device_options){.n_threads_batch = -2}), FRIT_E_INVALID,
                 "n_threads_batch is -2");
}

// A product with pools of several sizes: more and fewer threads for prefill than for decode.
static void steps_run_on_the_threads_of_their_class(void **state)
{
    (void)state;
    static const int32_t threads[][2] = {{1, 1}, {1, 4}, {4, 1}, {3, 2}};
    for (int n_rows = 1; n_rows < 80; n_rows += 39) {
        world w;
        world_open(&w, 1, (int[][2]){{0, n_rows}}, 5);
        frit_tensor *m = world_tensor(&w, FRIT_DTYPE_F32, 96, 64, 0);
        random_normal(&w.rng, world_bytes(m), 96 * 64, 1);
        w.graph.output = frit_matmul(&w.graph, frit_weight_node(&w.graph, m), world_rows(&w, 64), NULL);
        world_plan(&w, true);
        const size_t size = world_result_size(&w);
        float *first = malloc(size * sizeof *first);
        for (size_t i = 0; i < FRIT_COUNT(threads); i++) {
            frit_device *device;
            frit_exec *exec;
            const float *output;
            const frit_device_options options = {.n_threads = threads[i][0], .n_threads_batch = threads[i][1]};
            assert_ok(frit_backend_cpu.open(&device, &options));
            assert_ok(frit_backend_cpu.prepare(device, w.plan, &w.cache, &exec));
            frit_cpu_exec_fill(exec, 0xff);
            output = world_step(&w, device, exec);
            if (i > 0)
                assert_memory_equal(output, first, size * sizeof *first);
            else
                memcpy(first, output, size * sizeof *first);
            frit_backend_cpu.exec_free(device, exec);
            frit_backend_cpu.close(device);
        }
        free(first);
        world_close(&w);
    }
}

static void a_probe_finds_threads_that_memory_can_feed(void **state)
{
    (void)state;
    enum { N_BYTES = 24 << 20 };
    frit_kernels kernels;
    frit_isa_install(&kernels, NULL, FRIT_FOR_ANY);
    uint8_t *bytes = calloc(1, N_BYTES);
    for (int n = 1; n <= 6; n++) {
        frit_pool *pool;
        assert_ok(frit_pool_new(&pool, n));
        assert_in_range(frit_cpu_fewest_readers(pool, &kernels, bytes, N_BYTES), (n + 1) / 2, n);
        frit_pool_free(pool);
    }
    free(bytes);
}

static void memory_is_zeroed_and_backed_only_when_touched(void **state)
{
    (void)state;
    frit_device *device;
    frit_memory *memory;
    assert_ok(open_with(&device, NULL, 1));
    for (uint64_t n = 1; n < (uint64_t)64 << 20; n = n * 17 + 3) {
        assert_ok(frit_backend_cpu.alloc(device, n, &memory));
        uint8_t *bytes = frit_backend_cpu.map(memory);
        assert_int_equal((uintptr_t)bytes % 4096, 0);
        for (uint64_t i = 0; i < n; i += 511) assert_int_equal(bytes[i], 0);
        memset(bytes, 0xff, n);
        frit_backend_cpu.free(device, memory);
    }
    const uint64_t huge = (uint64_t)1 << 38;   // far beyond this machine's memory; only address space is used
    if (frit_backend_cpu.alloc(device, huge, &memory) == FRIT_OK) {
        ((uint8_t *)frit_backend_cpu.map(memory))[huge - 1] = 1;
        frit_backend_cpu.free(device, memory);
    }
    assert_fails(frit_backend_cpu.alloc(device, UINT64_MAX - 5, &memory), FRIT_E_MEMORY, "");
    assert_null(memory);
    frit_backend_cpu.close(device);
}

static void every_op_has_a_reference_and_says_how_it_runs(void **state)
{
    (void)state;
    for (int op = 0; op < FRIT_OP_COUNT; op++) {
        assert_non_null(frit_cpu_references[op]);
        const char *kernel = frit_backend_cpu.op_kernel((frit_op)op);
        assert_non_null(kernel);
        assert_int_equal(strcmp(kernel, "reference") == 0, frit_cpu_ops[op].fast == NULL);
    }
}

static void backends_are_found_by_name_and_the_cpu_is_the_last(void **state)
{
    (void)state;
    int n = 0;
    while (frit_backend_get(n)) n++;
    assert_ptr_equal(frit_backend_find("cpu"), &frit_backend_cpu);
    assert_ptr_equal(frit_backend_get(n - 1), &frit_backend_cpu);
    assert_false(frit_backend_cpu.by_name);
    assert_null(frit_backend_find("abacus"));
}

static void probe_names_the_machine_and_measures_when_asked(void **state)
{
    (void)state;
    frit_machine machine;
    assert_ok(frit_cpu_probe(&machine, 0));
    assert_string_equal(machine.cpu_name, frit_cpu_name());
    assert_true(machine.n_cores >= 1);
    assert_true(machine.read_gbps == 0 && machine.int8_tops == 0);
    assert_ok(frit_cpu_probe(&machine, 2));
    assert_true(machine.read_gbps > 0.01 && machine.read_gbps < 100000);
    assert_true(machine.int8_tops > 0.00001 && machine.int8_tops < 100000);
    assert_true(machine.float_tops > 0.00001 && machine.float_tops < 100000);
    print_message("%s, %s: %.1f GB/s, %.3f TOPS of int8, %.3f of floats\n", machine.cpu_name, machine.isa,
                  machine.read_gbps, machine.int8_tops, machine.float_tops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_usable_instruction_set_opens_under_its_name),
        cmocka_unit_test(unknown_instruction_sets_are_refused_with_the_list),
        cmocka_unit_test(prompts_may_have_threads_of_their_own),
        cmocka_unit_test(steps_run_on_the_threads_of_their_class),
        cmocka_unit_test(a_probe_finds_threads_that_memory_can_feed),
        cmocka_unit_test(memory_is_zeroed_and_backed_only_when_touched),
        cmocka_unit_test(every_op_has_a_reference_and_says_how_it_runs),
        cmocka_unit_test(backends_are_found_by_name_and_the_cpu_is_the_last),
        cmocka_unit_test(probe_names_the_machine_and_measures_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

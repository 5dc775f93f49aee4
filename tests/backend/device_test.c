// SPDX-License-Identifier: MIT
// The test device behaves as support/test_device.h says. Tests of engines on it rely on that.
#include "support/test_device.h"

#include "backend/backend.h"
#include "frit.h"
#include "support/support.h"
#include "support/tiny_model.h"

enum { BYTES = 256 };

typedef struct devices {
    frit_device *device, *other, *cpu;
} devices;

static devices open_devices(void)
{
    devices d;
    assert_ok(test_device_backend.open(&d.device, &(frit_device_options){0}));
    assert_ok(test_device_backend.open(&d.other, &(frit_device_options){0}));
    assert_ok(frit_backend_cpu.open(&d.cpu, &(frit_device_options){.n_threads = 1}));
    return d;
}

static void close_devices(devices *d)
{
    test_device_backend.close(d->device);
    test_device_backend.close(d->other);
    frit_backend_cpu.close(d->cpu);
}

static void device_memory_is_hidden_and_filled(void **state)
{
    (void)state;
    devices d = open_devices();
    frit_memory *memory;
    float numbers[BYTES / 4];
    assert_ok(test_device_backend.alloc(d.device, BYTES, &memory));
    assert_null(test_device_backend.map(memory));
    assert_ok(test_device_backend.read(d.device, (frit_address){memory, 0}, numbers, BYTES));
    for (int i = 0; i < BYTES / 4; i++) assert_true(numbers[i] != numbers[i]);   // NaN
    test_device_backend.free(d.device, memory);
    close_devices(&d);
}

static void bytes_come_back_as_they_were_sent(void **state)
{
    (void)state;
    devices d = open_devices();
    frit_memory *memory, *on_other, *on_cpu;
    uint8_t sent[BYTES], found[BYTES] = {0};
    for (int i = 0; i < BYTES; i++) sent[i] = (uint8_t)(3 * i);
    assert_ok(test_device_backend.alloc(d.device, 2 * BYTES, &memory));
    assert_ok(test_device_backend.alloc(d.other, BYTES, &on_other));
    assert_ok(frit_backend_cpu.alloc(d.cpu, BYTES, &on_cpu));
    const frit_address first = {memory, 0}, second = {memory, BYTES}, there = {on_other, 0}, here = {on_cpu, 0};
    assert_ok(test_device_backend.write(d.device, first, sent, BYTES));
    assert_ok(test_device_backend.copy(d.device, second, first, BYTES));
    assert_ok(frit_backend_copy(there, second, BYTES));
    assert_ok(frit_backend_copy(here, there, BYTES));
    assert_ok(frit_backend_cpu.read(d.cpu, here, found, BYTES));
    assert_memory_equal(found, sent, BYTES);
    test_device_backend.free(d.device, memory);
    test_device_backend.free(d.other, on_other);
    frit_backend_cpu.free(d.cpu, on_cpu);
    close_devices(&d);
}

static void addresses_outside_of_its_memory_are_errors(void **state)
{
    (void)state;
    devices d = open_devices();
    frit_memory *memory, *on_other;
    uint8_t bytes[BYTES] = {0};
    assert_ok(test_device_backend.alloc(d.device, BYTES, &memory));
    assert_ok(test_device_backend.alloc(d.other, BYTES, &on_other));
    const frit_address own = {memory, 0}, late = {memory, BYTES - 1}, foreign = {on_other, 0};
    assert_fails(test_device_backend.read(d.device, foreign, bytes, 1), FRIT_E_INTERNAL, "another device");
    assert_fails(test_device_backend.write(d.device, foreign, bytes, 1), FRIT_E_INTERNAL, "another device");
    assert_fails(test_device_backend.copy(d.device, own, foreign, 1), FRIT_E_INTERNAL, "another device");
    assert_fails(test_device_backend.read(d.device, late, bytes, 2), FRIT_E_INTERNAL, "of memory of 256 bytes");
    test_device_backend.free(d.device, memory);
    test_device_backend.free(d.other, on_other);
    close_devices(&d);
}

// The device sleeps for longer than a poll takes.
static void copies_are_done_later(void **state)
{
    (void)state;
    devices d = open_devices();
    frit_memory *memory;
    uint8_t byte = 7;
    int n_late = 0;
    assert_ok(test_device_backend.alloc(d.device, BYTES, &memory));
    for (uint64_t i = 1; i <= 100; i++) {
        assert_ok(test_device_backend.copy(d.device, (frit_address){memory, 0}, (frit_address){memory, 1}, 1));
        n_late += !test_device_backend.poll(d.device, i);
    }
    assert_true(n_late > 50);
    assert_ok(test_device_backend.read(d.device, (frit_address){memory, 0}, &byte, 1));
    assert_int_equal(byte, 0xff);
    assert_true(test_device_backend.poll(d.device, 101));
    test_device_backend.free(d.device, memory);
    close_devices(&d);
}

static void run_prompt(frit_model *model, float *logits)
{
    frit_engine *engine;
    frit_session *session;
    const frit_token tokens[] = {5, 6, 7, 8};
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.cpu = "reference"}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, FRIT_COUNT(tokens), NULL));
    assert_ok(frit_engine_step(engine, NULL));
    const float *found = frit_session_logits(session);
    assert_non_null(found);
    memcpy(logits, found, TINY_VOCAB * sizeof *found);
    frit_session_free(session);
    frit_engine_free(engine);
}

static void engines_compute_the_same_on_it(void **state)
{
    (void)state;
    frit_model *model;
    float expected[TINY_VOCAB], found[TINY_VOCAB];
    assert_ok(frit_model_open(&model, tiny_model("a.gguf", &(tiny_options){0}), NULL));
    run_prompt(model, expected);
    for (int kind = TEST_DEVICE_ALONE; kind < TEST_DEVICE_KINDS; kind++) {
        const size_t before = test_device_n_runs();
        test_device_use((test_device_kind)kind);
        run_prompt(model, found);
        test_device_use(TEST_DEVICE_NONE);
        assert_memory_equal(found, expected, sizeof found);
        const size_t n_seqs = test_device_n_runs() - before;
        if (kind == TEST_DEVICE_ALONE) assert_int_equal(n_seqs, 1);   // the whole graph is one segment
        if (kind != TEST_DEVICE_ALONE) assert_true(n_seqs > 1);
    }
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_is_hidden_and_filled),
        cmocka_unit_test(bytes_come_back_as_they_were_sent),
        cmocka_unit_test(addresses_outside_of_its_memory_are_errors),
        cmocka_unit_test(copies_are_done_later),
        cmocka_unit_test(engines_compute_the_same_on_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

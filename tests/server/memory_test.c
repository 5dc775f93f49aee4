// SPDX-License-Identifier: MIT
// Memory promised to loaded models does not count as free for another model.
#include "frit/serve.h"
#include "support/support.h"
#include "support/tiny_model.h"

static void a_model_has_room_beside_what_is_promised(void **state)
{
    (void)state;
    static const struct {
        uint64_t promised, available;
        bool is_given;
        int32_t n_ctx;
    } rows[] = {
        {0, 300, true, 8192},      // all of it
        {100, 300, true, 0},       // half of its cache
        {100, 300, false, 4096},   // half the length, because it may be shortened
        {100, 299, false, 0},      // less is too short
        {150, 300, true, 0},     {200, 400, false, 4096}, {100, 400, true, 8192}, {400, 300, false, 0},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const serve_need need = {.fixed_bytes = 100, .kv_bytes = 200, .n_ctx = 8192, .is_given = rows[i].is_given};
        assert_int_equal(serve_fit_context(&need, rows[i].promised, rows[i].available), rows[i].n_ctx);
    }
}

static void what_was_taken_is_what_an_engine_may_take(void **state)
{
    (void)state;
    frit_model *model;
    frit_estimate *estimate;
    frit_estimate_device host;
    frit_engine_options options = {.n_ctx = 128, .n_sessions = 2, .n_threads = 1};
    uint64_t promised = 0, taken[2];
    assert_ok(frit_model_open(&model, tiny_model("memory.gguf", &(tiny_options){.n_ctx = 256}), NULL));
    for (int i = 0; i < 2; i++) {
        const int code = serve_take_memory(&promised, &taken[i], model, &options);
        if (taken[i] == 0) skip_because("this system does not tell what memory a process has");
        assert_int_equal(code, CLI_DONE);
    }
    assert_ok(frit_estimate_new(&estimate, model, &options));
    assert_true(frit_estimate_get_device(estimate, 0, &host));
    assert_int_equal(taken[0], host.packed_bytes + host.mapped_bytes + host.kv_bytes + host.scratch_bytes);
    assert_int_equal(taken[1], taken[0]);
    assert_int_equal(promised, 2 * taken[0]);
    frit_estimate_free(estimate);

    promised = UINT64_C(1) << 60;   // more than any machine has
    assert_int_equal(serve_take_memory(&promised, &taken[0], model, &options), CLI_NO_MEMORY);
    assert_int_equal(promised, UINT64_C(1) << 60);
    assert_non_null(strstr(cli_last_failure(), "of models that are loaded"));
    options.fit = "off";
    assert_int_equal(serve_take_memory(&promised, &taken[0], model, &options), CLI_DONE);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_has_room_beside_what_is_promised),
        cmocka_unit_test(what_was_taken_is_what_an_engine_may_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// The sampling that generation_config.json of a folder recommends, as metadata.
#include "format/folder_build.h"
#include "support/support.h"

static frit_checkpoint *open_with(const char *generation)
{
    frit_checkpoint *ckpt;
    assert_int_equal(make_folder(NULL), 0);
    write_file(in_folder("generation_config.json"), generation, strlen(generation));
    assert_ok(open_tiny(&ckpt));
    return ckpt;
}

static void recommended_sampling_becomes_metadata(void **state)
{
    (void)state;
    frit_checkpoint *ckpt = open_with("{\"temperature\": 0.6, \"top_k\": 20, \"top_p\": 1, \"min_p\": null, "
                                      "\"repetition_penalty\": 1.05, \"do_sample\": true, \"eos_token_id\": 2}");
    double value = 0;
    bool found;
    assert_ok(frit_meta_get_f64(&ckpt->meta, "general.sampling.temp", &value, &found));
    assert_true(found && value == 0.6);
    assert_ok(frit_meta_get_f64(&ckpt->meta, "general.sampling.top_k", &value, &found));
    assert_true(found && value == 20);
    assert_ok(frit_meta_get_f64(&ckpt->meta, "general.sampling.top_p", &value, &found));
    assert_true(found && value == 1);
    assert_ok(frit_meta_get_f64(&ckpt->meta, "general.sampling.penalty_repeat", &value, &found));
    assert_true(found && value == 1.05);
    assert_null(frit_meta_find(&ckpt->meta, "general.sampling.min_p"));
    frit_checkpoint_close(ckpt);
}

static void nothing_is_recommended_where_nothing_is_sampled(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"do_sample\": false, \"temperature\": 0.6}", "{\"temperature\": \"hot\"}",
                                        "{\"temperature\"", "[]", ""};
    for (size_t i = 0; i < FRIT_COUNT(texts); i++) {
        frit_checkpoint *ckpt = open_with(texts[i]);
        assert_null(frit_meta_find(&ckpt->meta, "general.sampling.temp"));
        frit_checkpoint_close(ckpt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recommended_sampling_becomes_metadata),
        cmocka_unit_test(nothing_is_recommended_where_nothing_is_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

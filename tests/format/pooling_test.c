// SPDX-License-Identifier: MIT
// The pooling of sentence-transformers folders: one supported mode, or a refusal.
#include "format/folder_build.h"

static void write_pooling(const char *config)
{
    static const char modules[] =
        "[{\"idx\":0,\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
        "{\"idx\":1,\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"}]";
    write_file(in_folder("modules.json"), modules, strlen(modules));
    mkdir(in_folder("1_Pooling"), 0700);
    write_file(in_folder("1_Pooling/config.json"), config, strlen(config));
}

static void one_mode_is_the_kind_of_pooling(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        double type;
    } rows[] = {
        {"{\"pooling_mode_cls_token\":false,\"pooling_mode_mean_tokens\":true}", 1},
        {"{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":false}", 2},
        {"{\"pooling_mode_lasttoken\":true}", 3},
        {"{\"pooling_mode\":\"mean\"}", 1},
        {"{\"pooling_mode\":[\"cls\"]}", 2},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt;
        double type = 0;
        write_pooling(rows[i].config);
        assert_ok(open_tiny(&ckpt));
        assert_ok(frit_meta_get_f64(&ckpt->meta, "llama.pooling_type", &type, NULL));
        if (type != rows[i].type) fail_msg("%s: %g, expected %g", rows[i].config, type, rows[i].type);
        frit_checkpoint_close(ckpt);
    }
}

static void other_modes_and_several_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *config, *part;
    } rows[] = {
        {"{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":true}",
         "pooling by cls and mean is not supported"},
        {"{\"pooling_mode_max_tokens\":true}", "pooling by max is not supported"},
        {"{\"pooling_mode_mean_tokens\":true,\"pooling_mode_max_tokens\":true}", "pooling by max and mean"},
        {"{\"pooling_mode_mean_sqrt_len_tokens\":true}", "pooling by mean_sqrt_len_tokens"},
        {"{\"pooling_mode_weightedmean_tokens\":true}", "pooling by weightedmean"},
        {"{\"pooling_mode\":[\"mean\",\"lasttoken\"]}", "pooling by mean and lasttoken"},
        {"{\"pooling_mode\":\"median\"}",
         "pooling by an unknown mode is not supported, expected mean, cls or lasttoken"},
        {"{}", "1_Pooling/config.json: pooling by an unknown mode"},
        {"{", "1_Pooling/config.json: pooling by an unknown mode"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt;
        write_pooling(rows[i].config);
        assert_fails(open_tiny(&ckpt), FRIT_E_UNSUPPORTED, rows[i].part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_mode_is_the_kind_of_pooling, make_folder),
        cmocka_unit_test_setup(other_modes_and_several_are_refused_by_name, make_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

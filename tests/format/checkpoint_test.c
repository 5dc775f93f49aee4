// SPDX-License-Identifier: MIT
// Opening paths that are not models, files that change while they are open, and the lifetime of checkpoints.
#include "support/gguf_builder.h"
#include "support/support.h"

#include "format/checkpoint.h"
#include "format/gguf.h"

#include <sys/stat.h>
#include <unistd.h>

static frit_status open_and_close(const char *path, bool no_mmap)
{
    frit_checkpoint *ckpt;
    frit_status status = frit_checkpoint_open(&ckpt, path, &(frit_checkpoint_options){.no_mmap = no_mmap});
    if (status != FRIT_OK) assert_null(ckpt);
    frit_checkpoint_close(ckpt);
    return status;
}

static void write_model(const char *path)
{
    gguf_builder b = {0};
    gguf_add_text(&b, "general.architecture", "llama");
    gguf_add_tensor(&b, "t", FRIT_DTYPE_F32, 2, (int64_t[]){64, 512}, NULL);
    frit_buf file = gguf_build(&b);
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

// ------------------------------------------------------------------------------------------- no models

static void a_missing_path_is_not_found(void **state)
{
    (void)state;
    assert_fails(open_and_close(temp_path("absent.gguf"), false), FRIT_E_NOT_FOUND, "absent.gguf");
    assert_fails(open_and_close(temp_path("absent/x.gguf"), true), FRIT_E_NOT_FOUND, "absent/x.gguf");
    assert_fails(open_and_close("", false), FRIT_E_NOT_FOUND, ": ");
}

static void a_link_that_leads_nowhere_is_refused(void **state)
{
    (void)state;
    const char *loop = temp_path("loop.gguf");
    assert_int_equal(symlink(loop, loop), 0);
    assert_int_not_equal(open_and_close(loop, false), FRIT_OK);
    assert_non_null(strstr(frit_error(), "loop.gguf"));
}

static const struct {
    const char *bytes;
    size_t n;
    const char *phrases[2];
} strangers[] = {
    {"", 0, {"is not a GGUF file", "it is empty"}},
    {"G", 1, {"is not a GGUF file", "bytes 47 (\"G\")"}},
    {"GGU", 3, {"is not a GGUF file", "bytes 47 47 55 (\"GGU\")"}},
    {"GGUX....", 8, {"is not a GGUF file", "bytes 47 47 55 58 2e 2e 2e 2e"}},
    {"\0\1\2\3\4\5\6\7\10", 9, {"is not a GGUF file", "bytes 00 01 02 03 04 05 06 07 (\"........\")"}},
    {"version https://git-lfs.github.com/spec/v1\n", 43, {"is not a GGUF file", "a Git LFS pointer"}},
    {"lmgg\1\0\0\0", 8, {"is not a GGUF file", "a GGML file from before GGUF"}},
    {"PK\3\4\0\0\0\0", 8, {"is not a GGUF file", "PyTorch"}},
    {"<!DOCTYPE html>", 15, {"is not a GGUF file", "a web page"}},
};

static void files_of_another_kind_are_described(void **state)
{
    (void)state;
    const char *path = temp_path("stranger.bin");
    for (size_t i = 0; i < FRIT_COUNT(strangers); i++) {
        write_file(path, strangers[i].bytes, strangers[i].n);
        for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
            assert_fails(open_and_close(path, no_mmap), FRIT_E_FORMAT, strangers[i].phrases[0]);
            if (!strstr(frit_error(), strangers[i].phrases[1]))
                fail_msg("\"%s\" lacks \"%s\"", frit_error(), strangers[i].phrases[1]);
        }
    }
}

static void an_empty_folder_is_refused(void **state)
{
    (void)state;
    const char *path = temp_path("empty-folder");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_fails(open_and_close(path, false), FRIT_E_NOT_FOUND, "empty-folder: has no config.json");
}

static void a_pipe_is_refused_without_waiting_for_it(void **state)
{
    (void)state;
    const char *path = temp_path("pipe.gguf");
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_fails(open_and_close(path, false), FRIT_E_IO, "a pipe");
    assert_fails(open_and_close("/dev/null", true), FRIT_E_IO, "/dev/null");
    alarm(0);
}

static void a_file_without_permission_is_refused(void **state)
{
    (void)state;
    const char *path = temp_path("secret.gguf");
    write_model(path);
    assert_int_equal(chmod(path, 0), 0);
    if (access(path, R_OK) == 0) skip_because("this user may read everything");
    assert_fails(open_and_close(path, false), FRIT_E_IO, "secret.gguf");
}

// ---------------------------------------------------------------------------------------- whole models

static void a_mapped_file_that_shrinks_is_noticed(void **state)
{
    (void)state;
    const char *path = temp_path("shrinking.gguf");
    for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
        frit_checkpoint *ckpt;
        write_model(path);
        assert_ok(frit_checkpoint_open(&ckpt, path, &(frit_checkpoint_options){.no_mmap = no_mmap}));
        assert_true(frit_checkpoint_is_intact(ckpt));
        assert_int_equal(truncate(path, 4096), 0);
        assert_int_equal(frit_checkpoint_is_intact(ckpt), no_mmap);   // a copy in memory is not affected
        frit_checkpoint_close(ckpt);
    }
}

static void a_file_that_shrinks_before_it_is_opened_again_is_refused(void **state)
{
    (void)state;
    const char *path = temp_path("shrunk.gguf");
    write_model(path);
    assert_int_equal(truncate(path, 4096), 0);
    for (int no_mmap = 0; no_mmap < 2; no_mmap++)
        assert_fails(open_and_close(path, no_mmap), FRIT_E_FORMAT,
                     "tensor 't' needs bytes 128 to 131200, the file has 4096");
}

static void the_extension_of_a_model_does_not_matter(void **state)
{
    (void)state;
    const char *path = temp_path("model.bin");
    write_model(path);
    assert_ok(open_and_close(path, false));
}

static void many_tensors_stay_findable(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    static char names[5000][24];
    static const float value = 1;
    assert_ok(frit_checkpoint_new(&ckpt, "many"));
    for (int i = 0; i < 5000; i++) {
        snprintf(names[i], sizeof names[i], "tensor.%d", i);
        frit_tensor t = {.name = names[i],
                         .dtype = FRIT_DTYPE_F32,
                         .n_dims = 1,
                         .shape = {1, 1, 1, 1},
                         .data = &value,
                         .n_bytes = 4};
        assert_ok(frit_checkpoint_add_tensor(ckpt, &t));
    }
    for (int i = 0; i < 5000; i++) assert_ptr_equal(frit_checkpoint_find(ckpt, names[i]), &ckpt->tensors[i]);
    frit_checkpoint_close(ckpt);
}

static void the_largest_shape_fits_its_text(void **state)
{
    (void)state;
    char text[96];
    frit_tensor t = {.n_dims = 4, .shape = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}};
    assert_int_equal(strlen(frit_tensor_shape_text(&t, text)), 4 * 19 + 3 * 2 + 2);
    t.n_dims = 0;
    assert_string_equal(frit_tensor_shape_text(&t, text), "[]");
    assert_int_equal(frit_tensor_n_elems(&t), 1);
}

static bool refuse_at_once(void *ctx, double done)
{
    (void)done;
    ++*(int *)ctx;
    return false;
}

static void loading_can_be_cancelled(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    int n_calls = 0;
    const char *path = temp_path("cancelled.gguf");
    write_model(path);
    frit_checkpoint_options options = {.progress = refuse_at_once, .progress_ctx = &n_calls};
    assert_fails(frit_checkpoint_open(&ckpt, path, &options), FRIT_E_CANCELLED, "cancelled");
    assert_null(ckpt);
    assert_int_equal(n_calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_path_is_not_found),
        cmocka_unit_test(a_link_that_leads_nowhere_is_refused),
        cmocka_unit_test(files_of_another_kind_are_described),
        cmocka_unit_test(an_empty_folder_is_refused),
        cmocka_unit_test(a_pipe_is_refused_without_waiting_for_it),
        cmocka_unit_test(a_file_without_permission_is_refused),
        cmocka_unit_test(a_mapped_file_that_shrinks_is_noticed),
        cmocka_unit_test(a_file_that_shrinks_before_it_is_opened_again_is_refused),
        cmocka_unit_test(the_extension_of_a_model_does_not_matter),
        cmocka_unit_test(many_tensors_stay_findable),
        cmocka_unit_test(the_largest_shape_fits_its_text),
        cmocka_unit_test(loading_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

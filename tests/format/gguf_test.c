// SPDX-License-Identifier: MIT
// Reads whole GGUF files and writes them back byte for byte.
#include "support/gguf_builder.h"
#include "support/support.h"

#include "format/gguf.h"

#include <glob.h>

static frit_checkpoint *parse(const frit_buf *file)
{
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_new(&ckpt, "memory.gguf"));
    assert_ok(frit_gguf_parse(ckpt, "memory.gguf", (const uint8_t *)file->data, file->len));
    return ckpt;
}

// ----------------------------------------------------------------------------------------------- reading

static void every_value_type_is_read(void **state)
{
    (void)state;
    static const char *const words[] = {"a", "", "bc"};
    gguf_builder b = {0};
    gguf_add_value(&b, "u8", FRIT_VALUE_U8, &(uint8_t){255});
    gguf_add_value(&b, "i8", FRIT_VALUE_I8, &(int8_t){-128});
    gguf_add_value(&b, "u16", FRIT_VALUE_U16, &(uint16_t){65535});
    gguf_add_value(&b, "i16", FRIT_VALUE_I16, &(int16_t){-32768});
    gguf_add_u32(&b, "u32", 4294967295u);
    gguf_add_i32(&b, "i32", -5);
    gguf_add_f32(&b, "f32", 0.5f);
    gguf_add_bool(&b, "bool", true);
    gguf_add_text(&b, "text", "bytes \xff stay");
    gguf_add_value(&b, "u64", FRIT_VALUE_U64, &(uint64_t){UINT64_MAX});
    gguf_add_value(&b, "i64", FRIT_VALUE_I64, &(int64_t){INT64_MIN});
    gguf_add_value(&b, "f64", FRIT_VALUE_F64, &(double){-0.1});
    gguf_add_array(&b, "array", FRIT_VALUE_I16, 3, (int16_t[]){1, -2, 3});
    gguf_add_texts(&b, "texts", 3, words);
    gguf_add_array(&b, "empty", FRIT_VALUE_F64, 0, NULL);
    gguf_add_texts(&b, "no texts", 0, NULL);
    frit_buf file = gguf_build(&b), text = {0};
    frit_checkpoint *ckpt = parse(&file);
    assert_int_equal(ckpt->meta.n, 16);
    static const char *const expected[] = {
        "255",
        "-128",
        "65535",
        "-32768",
        "4294967295",
        "-5",
        "0.5",
        "true",
        "bytes \\xff stay",
        "18446744073709551615",
        "-9223372036854775808",
        "-0.1",
        "[1, -2, 3]",
        "[\"a\", \"\", \"bc\"]",
        "[]",
        "[]",
    };
    for (size_t i = 0; i < ckpt->meta.n; i++) {
        frit_buf_clear(&text);
        frit_value_print(&ckpt->meta.pairs[i].value, -1, &text);
        assert_string_equal(text.data, expected[i]);
    }
    assert_int_equal(frit_meta_find(&ckpt->meta, "text")->text.len, 12);
    frit_buf_free(&text);
    frit_checkpoint_close(ckpt);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

static void shapes_are_outermost_first(void **state)
{
    (void)state;
    float values[3 * 2 * 5], row[5];
    for (int i = 0; i < 30; i++) values[i] = (float)i;
    gguf_builder b = {0};
    gguf_add_tensor(&b, "one", FRIT_DTYPE_F32, 1, (int64_t[]){7}, NULL);
    gguf_add_tensor(&b, "three", FRIT_DTYPE_F32, 3, (int64_t[]){3, 2, 5}, values);
    gguf_add_tensor(&b, "four", FRIT_DTYPE_Q8_0, 4, (int64_t[]){2, 1, 3, 64}, NULL);
    frit_buf file = gguf_build(&b);
    frit_checkpoint *ckpt = parse(&file);
    char text[96];
    assert_int_equal(ckpt->n_tensors, 3);
    const frit_tensor *t = frit_checkpoint_find(ckpt, "three");
    assert_ptr_equal(t, &ckpt->tensors[1]);
    assert_string_equal(frit_tensor_shape_text(t, text), "[3, 2, 5]");
    assert_int_equal(frit_tensor_n_elems(t), 30);
    assert_int_equal(t->n_bytes, 120);
    assert_int_equal(t->shape[3], 1);
    frit_tensor_decode_row(t, 5, row);
    for (int i = 0; i < 5; i++) assert_true(row[i] == (float)(25 + i));
    t = frit_checkpoint_find(ckpt, "four");
    assert_string_equal(frit_tensor_shape_text(t, text), "[2, 1, 3, 64]");
    assert_int_equal(t->n_bytes, 2 * 3 * 68);
    assert_null(frit_checkpoint_find(ckpt, "fou"));
    frit_checkpoint_close(ckpt);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

static void version_2_reads_like_version_3(void **state)
{
    (void)state;
    gguf_builder b = {.version = 2};
    gguf_add_u32(&b, "n", 3);
    gguf_add_tensor(&b, "t", FRIT_DTYPE_F16, 2, (int64_t[]){2, 16}, NULL);
    frit_buf file = gguf_build(&b);
    frit_checkpoint *ckpt = parse(&file);
    assert_string_equal(ckpt->format, "GGUF v2");
    assert_int_equal(frit_meta_find(&ckpt->meta, "n")->u, 3);
    assert_memory_equal(frit_checkpoint_find(ckpt, "t")->data, file.data + gguf_place(&b, "data"), 64);
    frit_checkpoint_close(ckpt);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

static void any_multiple_of_8_aligns_the_data(void **state)
{
    (void)state;
    static const uint32_t alignments[] = {8, 16, 24, 32, 64, 4096};
    for (size_t i = 0; i < FRIT_COUNT(alignments); i++) {
        gguf_builder b = {.alignment = alignments[i]};
        gguf_add_u32(&b, "general.alignment", alignments[i]);
        gguf_add_tensor(&b, "a", FRIT_DTYPE_I8, 1, (int64_t[]){3}, "abc");
        gguf_add_tensor(&b, "b", FRIT_DTYPE_I8, 1, (int64_t[]){3}, "def");
        frit_buf file = gguf_build(&b);
        frit_checkpoint *ckpt = parse(&file);
        const char *a = ckpt->tensors[0].data, *d = ckpt->tensors[1].data;
        assert_memory_equal(a, "abc", 3);
        assert_memory_equal(d, "def", 3);
        assert_int_equal((a - file.data) % alignments[i], 0);
        assert_int_equal(d - a, alignments[i]);
        const char *path = temp_path("aligned.gguf");
        size_t n;
        assert_ok(frit_gguf_write(ckpt, path));
        char *copy = read_file(path, &n);
        assert_int_equal(n, file.len);
        assert_memory_equal(copy, file.data, n);
        free(copy);
        frit_checkpoint_close(ckpt);
        frit_buf_free(&file);
        gguf_builder_free(&b);
    }
}

// Other writers may leave gaps between tensors, list them in another order than their data, or not pad the end.
static void data_may_lie_in_any_order_with_gaps(void **state)
{
    (void)state;
    gguf_builder b = {0};
    gguf_add_tensor(&b, "a", FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
    gguf_add_tensor(&b, "b", FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
    gguf_add_tensor(&b, "unused", FRIT_DTYPE_I8, 1, (int64_t[]){96}, NULL);
    frit_buf file = gguf_build(&b);
    gguf_patch(&b, &file, "tensor 2 dim 0", 5, 8);
    gguf_patch(&b, &file, "tensor 2 offset", 0, 8);
    gguf_patch(&b, &file, "tensor 0 offset", 128, 8);
    file.len = gguf_place(&b, "data") + 160;
    frit_checkpoint *ckpt = parse(&file);
    size_t data = gguf_place(&b, "data");
    assert_ptr_equal(ckpt->tensors[0].data, file.data + data + 128);
    assert_ptr_equal(ckpt->tensors[1].data, file.data + data + 32);
    assert_ptr_equal(ckpt->tensors[2].data, file.data + data);
    frit_checkpoint_close(ckpt);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

// --------------------------------------------------------------------------------------------- round trip

// fable-vocab.gguf has no tensors but is padded; other vocabulary files end with their metadata, like files that frit
// writes.
static bool is_padded_vocabulary(const char *path)
{
    return strstr(path, "/fable-vocab.gguf") != NULL;
}

static void check_round_trip(const char *path, bool no_mmap)
{
    const char *copy_path = temp_path("copy.gguf");
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, path, &(frit_checkpoint_options){.no_mmap = no_mmap}));
    assert_string_equal(ckpt->format, "GGUF v3");
    assert_ok(frit_gguf_write(ckpt, copy_path));
    size_t n_original, n_copy;
    char *original = read_file(path, &n_original), *copy = read_file(copy_path, &n_copy);
    if (is_padded_vocabulary(path)) {
        assert_int_equal(ckpt->n_tensors, 0);
        for (; n_original > n_copy; n_original--) assert_int_equal(original[n_original - 1], 0);
    }
    if (n_copy != n_original || memcmp(copy, original, n_copy) != 0) fail_msg("%s: the copy differs", path);
    free(original);
    free(copy);
    frit_checkpoint_close(ckpt);
}

static void check_round_trips(const char *folder, size_t n_expected)
{
    glob_t found = {0};
    char pattern[4200];
    snprintf(pattern, sizeof pattern, "%s/*.gguf", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) check_round_trip(found.gl_pathv[i], i % 2 == 1);
    assert_true(found.gl_pathc >= shared_least(n_expected));
    globfree(&found);
}

static void the_model_of_the_project_survives_a_round_trip(void **state)
{
    (void)state;
    check_round_trip(project_path("models/fable.gguf"), false);
    check_round_trip(project_path("models/fable.gguf"), true);
}

static void every_shared_model_survives_a_round_trip(void **state)
{
    (void)state;
    check_round_trips(shared_path("models"), 3);
}

static void every_architecture_survives_a_round_trip(void **state)
{
    (void)state;
    check_round_trips(shared_path("goldens/arch"), 100);
}

static void every_vocabulary_survives_a_round_trip(void **state)
{
    (void)state;
    check_round_trips(shared_path("goldens/tokenizer"), 12);
}

// ------------------------------------------------------------------------------------------------ writing

static void a_checkpoint_built_by_hand_can_be_written_and_read(void **state)
{
    (void)state;
    static const float values[] = {1, 2, 3, 4, 5, 6};
    frit_checkpoint *ckpt, *back;
    assert_ok(frit_checkpoint_new(&ckpt, "made"));
    assert_ok(frit_meta_add_text(&ckpt->meta, "general.name", "hand made"));
    assert_ok(frit_meta_add_u64(&ckpt->meta, "n", 7));
    assert_ok(frit_meta_add_f64(&ckpt->meta, "eps", 1e-6));
    assert_ok(frit_meta_add_bool(&ckpt->meta, "on", true));
    frit_tensor matrix = {.name = "m",
                          .dtype = FRIT_DTYPE_F32,
                          .n_dims = 2,
                          .shape = {2, 3, 1, 1},
                          .data = values,
                          .n_bytes = sizeof values};
    frit_tensor scalar = {
        .name = "s", .dtype = FRIT_DTYPE_F32, .n_dims = 0, .shape = {1, 1, 1, 1}, .data = values + 4, .n_bytes = 4};
    assert_ok(frit_checkpoint_add_tensor(ckpt, &matrix));
    assert_ok(frit_checkpoint_add_tensor(ckpt, &scalar));
    assert_fails(frit_checkpoint_add_tensor(ckpt, &scalar), FRIT_E_FORMAT, "tensor 's' occurs twice");
    const char *path = temp_path("made.gguf");
    assert_ok(frit_gguf_write(ckpt, path));
    assert_ok(frit_checkpoint_open(&back, path, NULL));
    double eps = 0;
    bool on = false;
    float row[3];
    char text[96];
    assert_ok(frit_meta_get_f64(&back->meta, "eps", &eps, NULL));
    assert_ok(frit_meta_get_bool(&back->meta, "on", &on, NULL));
    assert_true(eps == 1e-6 && on);
    frit_tensor_decode_row(frit_checkpoint_find(back, "m"), 1, row);
    assert_true(row[0] == 4 && row[1] == 5 && row[2] == 6);
    assert_string_equal(frit_tensor_shape_text(frit_checkpoint_find(back, "s"), text), "[1]");
    frit_tensor_decode_row(frit_checkpoint_find(back, "s"), 0, row);
    assert_true(row[0] == 5);
    frit_checkpoint_close(back);
    frit_checkpoint_close(ckpt);
}

static void a_file_can_be_written_over_the_one_it_was_read_from(void **state)
{
    (void)state;
    size_t n_after;
    gguf_builder b = {0};
    gguf_add_tensor(&b, "t", FRIT_DTYPE_F16, 2, (int64_t[]){64, 512}, NULL);
    frit_buf file = gguf_build(&b);
    const char *path = temp_path("self.gguf");
    write_file(path, file.data, file.len);
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, path, NULL));
    assert_ok(frit_meta_add_text(&ckpt->meta, "general.name", "again"));
    assert_ok(frit_gguf_write(ckpt, path));
    frit_checkpoint_close(ckpt);
    assert_ok(frit_checkpoint_open(&ckpt, path, NULL));
    assert_memory_equal(ckpt->tensors[0].data, file.data + gguf_place(&b, "data"), 64 * 512 * 2);
    assert_ok(frit_meta_remove(&ckpt->meta, "general.name"));
    assert_ok(frit_gguf_write(ckpt, path));
    frit_checkpoint_close(ckpt);
    char *after = read_file(path, &n_after);
    assert_int_equal(n_after, file.len);
    assert_memory_equal(after, file.data, n_after);
    free(after);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

static void a_failed_write_leaves_nothing_behind(void **state)
{
    (void)state;
    gguf_builder b = {0};
    gguf_add_u32(&b, "n", 3);
    frit_buf file = gguf_build(&b);
    frit_checkpoint *ckpt = parse(&file);
    const char *path = temp_path("no-such-folder/x.gguf");
    assert_int_not_equal(frit_gguf_write(ckpt, path), FRIT_OK);
    assert_non_null(strstr(frit_error(), "no-such-folder/x.gguf"));
    assert_ok(frit_meta_add_u64(&ckpt->meta, "general.alignment", 12));
    path = temp_path("bad-alignment.gguf");
    assert_fails(frit_gguf_write(ckpt, path), FRIT_E_FORMAT, "'general.alignment' is 12, expected a multiple of 8");
    assert_int_equal(frit_path_get_kind(path), FRIT_PATH_NONE);
    frit_checkpoint_close(ckpt);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_type_is_read),
        cmocka_unit_test(shapes_are_outermost_first),
        cmocka_unit_test(version_2_reads_like_version_3),
        cmocka_unit_test(any_multiple_of_8_aligns_the_data),
        cmocka_unit_test(data_may_lie_in_any_order_with_gaps),
        cmocka_unit_test(the_model_of_the_project_survives_a_round_trip),
        cmocka_unit_test(every_shared_model_survives_a_round_trip),
        cmocka_unit_test(every_architecture_survives_a_round_trip),
        cmocka_unit_test(every_vocabulary_survives_a_round_trip),
        cmocka_unit_test(a_checkpoint_built_by_hand_can_be_written_and_read),
        cmocka_unit_test(a_file_can_be_written_over_the_one_it_was_read_from),
        cmocka_unit_test(a_failed_write_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

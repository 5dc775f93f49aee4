// SPDX-License-Identifier: MIT
// Split sets: every part opens the whole set, and every mismatch between parts has its own error.
#include "support/gguf_builder.h"
#include "support/support.h"

#include "format/gguf.h"

#include <unistd.h>

enum { N_PARTS = 3 };

typedef struct part_options {
    int no, count, n_tensors;   // values in the metadata; n_tensors -1: absent
    const char *name;           // general.name, or NULL
    const char *word;           // last item of test.words, or NULL
    int number;                 // last item of test.ints, or 0
    const char *tensor;         // name of its second tensor, or NULL
    uint32_t alignment;         // 0: absent
} part_options;

static part_options usual(int no)
{
    part_options o = {.no = no, .count = N_PARTS, .n_tensors = N_PARTS + 1};
    if (no == 0) o.name = "set", o.word = "last", o.number = 7;
    return o;
}

static const char *part_path(const char *set, int no, int count)
{
    char name[100];
    snprintf(name, sizeof name, "%s-%05d-of-%05d.gguf", set, no + 1, count);
    return temp_path(name);
}

// Part i has the tensor "blk.i" of 32 bytes that start with i; part 0 also has "head".
static frit_buf build_part(part_options o)
{
    char name[20], bytes[32];
    gguf_builder b = {.alignment = o.alignment};
    if (o.name) gguf_add_text(&b, "general.name", o.name);
    if (o.word) gguf_add_texts(&b, "test.words", 2, (const char *const[]){"first", o.word});
    if (o.number) gguf_add_array(&b, "test.ints", FRIT_VALUE_I32, 2, (int32_t[]){1, o.number});
    if (o.alignment) gguf_add_u32(&b, "general.alignment", o.alignment);
    gguf_add_value(&b, "split.no", FRIT_VALUE_U16, &(uint16_t){(uint16_t)o.no});
    gguf_add_value(&b, "split.count", FRIT_VALUE_U16, &(uint16_t){(uint16_t)o.count});
    if (o.n_tensors >= 0) gguf_add_i32(&b, "split.tensors.count", o.n_tensors);
    snprintf(name, sizeof name, "blk.%d", o.no);
    memset(bytes, o.no, sizeof bytes);
    gguf_add_tensor(&b, name, FRIT_DTYPE_I8, 1, (int64_t[]){32}, bytes);
    if (o.no == 0) gguf_add_tensor(&b, "head", FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
    if (o.tensor) gguf_add_tensor(&b, o.tensor, FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
    frit_buf file = gguf_build(&b);
    gguf_builder_free(&b);
    return file;
}

static void write_part(const char *path, part_options o)
{
    frit_buf file = build_part(o);
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
}

static void write_set(const char *set)
{
    for (int i = 0; i < N_PARTS; i++) write_part(part_path(set, i, N_PARTS), usual(i));
}

static frit_status open_and_close(const char *path)
{
    frit_checkpoint *ckpt;
    frit_status status = frit_checkpoint_open(&ckpt, path, NULL);
    frit_checkpoint_close(ckpt);
    return status;
}

// ------------------------------------------------------------------------------------------- sets that fit

static void any_part_opens_the_whole_set_in_order(void **state)
{
    (void)state;
    static const char *const names[] = {"blk.0", "head", "blk.1", "blk.2"};
    write_set("whole");
    for (int i = 0; i < 2 * N_PARTS; i++) {
        frit_checkpoint *ckpt;
        frit_checkpoint_options options = {.no_mmap = i >= N_PARTS};
        assert_ok(frit_checkpoint_open(&ckpt, part_path("whole", i % N_PARTS, N_PARTS), &options));
        assert_int_equal(ckpt->n_files, N_PARTS);
        assert_int_equal(ckpt->n_tensors, 4);
        for (size_t k = 0; k < 4; k++) assert_string_equal(ckpt->tensors[k].name, names[k]);
        assert_int_equal(*(const char *)frit_checkpoint_find(ckpt, "blk.2")->data, 2);
        assert_int_equal(*(const char *)frit_checkpoint_find(ckpt, "blk.1")->data, 1);
        assert_true(frit_str_is(frit_meta_find(&ckpt->meta, "general.name")->text, "set"));
        assert_int_equal(ckpt->meta.n, 3);   // the keys of the split describe the parts, not the model
        assert_true(frit_checkpoint_is_intact(ckpt));
        assert_string_equal(ckpt->path, part_path("whole", i % N_PARTS, N_PARTS));
        frit_checkpoint_close(ckpt);
    }
}

static void a_set_can_be_written_as_one_file(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    const char *merged = temp_path("merged.gguf");
    write_set("merge");
    assert_ok(frit_checkpoint_open(&ckpt, part_path("merge", 1, N_PARTS), NULL));
    assert_ok(frit_gguf_write(ckpt, merged));
    frit_checkpoint_close(ckpt);
    assert_ok(frit_checkpoint_open(&ckpt, merged, NULL));
    assert_int_equal(ckpt->n_files, 1);
    assert_int_equal(ckpt->n_tensors, 4);
    assert_int_equal(*(const char *)frit_checkpoint_find(ckpt, "blk.2")->data, 2);
    frit_checkpoint_close(ckpt);
}

static void one_part_can_be_opened_alone_and_written_back(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    const char *path = part_path("single", 1, N_PARTS), *copy_path = temp_path("single-copy.gguf");
    write_part(path, usual(1));
    assert_ok(frit_checkpoint_open(&ckpt, path, &(frit_checkpoint_options){.one_shard = true}));
    assert_int_equal(ckpt->n_tensors, 1);
    assert_int_equal(frit_meta_find(&ckpt->meta, "split.count")->u, N_PARTS);
    assert_ok(frit_gguf_write(ckpt, copy_path));
    frit_checkpoint_close(ckpt);
    size_t n, n_copy;
    char *bytes = read_file(path, &n), *copy = read_file(copy_path, &n_copy);
    assert_int_equal(n, n_copy);
    assert_memory_equal(bytes, copy, n);
    free(bytes);
    free(copy);
}

static void a_count_of_0_or_1_is_a_file_of_its_own(void **state)
{
    (void)state;
    for (int count = 0; count < 2; count++) {
        const char *path = temp_path("alone.gguf");
        write_part(path, (part_options){.no = 0, .count = count, .n_tensors = -1});
        assert_ok(open_and_close(path));
    }
}

static void parts_may_have_their_own_alignment(void **state)
{
    (void)state;
    write_set("aligned");
    part_options o = usual(2);
    o.alignment = 512;
    write_part(part_path("aligned", 2, N_PARTS), o);
    assert_ok(open_and_close(part_path("aligned", 0, N_PARTS)));
}

static void parts_may_repeat_metadata_of_the_first(void **state)
{
    (void)state;
    write_set("repeat");
    part_options o = usual(0);
    o.no = 1;
    o.n_tensors = -1;   // the number of tensors may be left out
    write_part(part_path("repeat", 1, N_PARTS), o);
    assert_ok(open_and_close(part_path("repeat", 1, N_PARTS)));
}

static bool count_calls(void *ctx, double done)
{
    double *last = ctx;
    assert_true(done >= *last && done <= 1);
    *last = done;
    return true;
}

static bool stop_at_a_third(void *ctx, double done)
{
    (void)ctx;
    return done < 0.3;
}

static void progress_grows_and_can_cancel(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    double last = 0;
    write_set("progress");
    const char *path = part_path("progress", 2, N_PARTS);
    frit_checkpoint_options options = {.progress = count_calls, .progress_ctx = &last};
    assert_ok(frit_checkpoint_open(&ckpt, path, &options));
    assert_true(last == 1);
    frit_checkpoint_close(ckpt);
    options.progress = stop_at_a_third;
    assert_fails(frit_checkpoint_open(&ckpt, path, &options), FRIT_E_CANCELLED, "cancelled");
    assert_null(ckpt);
}

// ------------------------------------------------------------------------------------ sets that do not fit

static void a_missing_part_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < N_PARTS; i++) {
        write_set("missing");
        assert_int_equal(unlink(part_path("missing", i, N_PARTS)), 0);
        char what[64];
        snprintf(what, sizeof what, "part %d of 3 is missing, expected the file", i + 1);
        assert_fails(open_and_close(part_path("missing", (i + 1) % N_PARTS, N_PARTS)), FRIT_E_NOT_FOUND, what);
        assert_non_null(strstr(frit_error(), part_path("missing", i, N_PARTS)));
    }
}

static void a_renamed_part_says_how_it_should_be_called(void **state)
{
    (void)state;
    const char *path = temp_path("renamed.gguf");
    write_part(path, usual(1));
    assert_fails(open_and_close(path), FRIT_E_FORMAT, "is part 2 of 3");
    assert_non_null(strstr(frit_error(), "should end in '-00002-of-00003.gguf'"));
    path = temp_path("x.gguf");   // shorter than any suffix
    write_part(path, usual(0));
    assert_fails(open_and_close(path), FRIT_E_FORMAT, "'-00001-of-00003.gguf'");
}

typedef struct misfit {
    const char *what;
    int replaced;   // the part to replace
    part_options with;
    frit_status status;
    const char *phrases[2];
} misfit;

// clang-format off
static const misfit misfits[] = {
    {"another count", 1, {.no = 1, .count = 4, .n_tensors = 4}, FRIT_E_FORMAT,
     {"is part of a set of 4 files, expected a set of 3", "different sets"}},
    {"another number", 1, {.no = 2, .count = 3, .n_tensors = 4}, FRIT_E_FORMAT,
     {"is part 3 of the set by its metadata, expected part 2", NULL}},
    {"another number of tensors", 2, {.no = 2, .count = 3, .n_tensors = 9}, FRIT_E_FORMAT,
     {"the set has 9 tensors by this part, 4 by another", "different sets"}},
    {"another model's name", 1, {.no = 1, .count = 3, .n_tensors = 4, .name = "other"}, FRIT_E_FORMAT,
     {"'general.name' has another value than in the first part", "different sets"}},
    {"another word", 1, {.no = 1, .count = 3, .n_tensors = 4, .word = "lost"}, FRIT_E_FORMAT,
     {"'test.words' has another value than in the first part", "different sets"}},
    {"a shorter word", 1, {.no = 1, .count = 3, .n_tensors = 4, .word = "las"}, FRIT_E_FORMAT,
     {"'test.words' has another value than in the first part", "different sets"}},
    {"another number in an array", 2, {.no = 2, .count = 3, .n_tensors = 4, .number = 8}, FRIT_E_FORMAT,
     {"'test.ints' has another value than in the first part", "different sets"}},
    {"a tensor of an earlier part", 2, {.no = 2, .count = 3, .n_tensors = 4, .tensor = "head"}, FRIT_E_FORMAT,
     {"tensor 'head' occurs twice", "an earlier part of the set has it too"}},
    {"a tensor too many", 2, {.no = 2, .count = 3, .n_tensors = 4, .tensor = "more"}, FRIT_E_FORMAT,
     {"the 3 parts have 5 tensors, expected 4", NULL}},
    {"no part of a set", 1, {.no = 0, .count = 1, .n_tensors = 4}, FRIT_E_FORMAT,
     {"is part of a set of 1 files, expected a set of 3", NULL}},
};
// clang-format on

static void parts_of_different_sets_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(misfits); i++) {
        const misfit *m = &misfits[i];
        write_set("misfit");
        write_part(part_path("misfit", m->replaced, N_PARTS), m->with);
        frit_status status = open_and_close(part_path("misfit", 0, N_PARTS));
        if (status != m->status) fail_msg("%s: status %d: %s", m->what, (int)status, frit_error());
        for (int k = 0; k < 2; k++)
            if (m->phrases[k] && !strstr(frit_error(), m->phrases[k]))
                fail_msg("%s: \"%s\" lacks \"%s\"", m->what, frit_error(), m->phrases[k]);
    }
}

static void a_broken_part_is_named_by_its_own_path(void **state)
{
    (void)state;
    write_set("broken");
    const char *broken = part_path("broken", 2, N_PARTS);
    write_file(broken, "GGUF", 4);
    assert_fails(open_and_close(part_path("broken", 0, N_PARTS)), FRIT_E_FORMAT, "broken-00003-of-00003.gguf");
    write_file(broken, "not a model", 11);
    assert_fails(open_and_close(part_path("broken", 0, N_PARTS)), FRIT_E_FORMAT, "broken-00003-of-00003.gguf");
}

static void split_keys_are_checked(void **state)
{
    (void)state;
    const char *path = temp_path("keys.gguf");
    write_part(path, (part_options){.no = 5, .count = 5, .n_tensors = -1});
    assert_fails(open_and_close(path), FRIT_E_FORMAT, "'split.no' is 5, expected 0 to 4");
    gguf_builder b = {0};
    gguf_add_i32(&b, "split.count", -2);
    frit_buf file = gguf_build(&b);
    write_file(path, file.data, file.len);
    assert_fails(open_and_close(path), FRIT_E_FORMAT, "'split.count' is -2, expected 0 to 99999");
    frit_buf_free(&file);
    gguf_builder_free(&b);
    gguf_add_text(&b, "split.count", "2");
    file = gguf_build(&b);
    write_file(path, file.data, file.len);
    assert_fails(open_and_close(path), FRIT_E_FORMAT, "'split.count' is text, expected a whole number");
    frit_buf_free(&file);
    gguf_builder_free(&b);
    gguf_add_u32(&b, "split.count", 100000);
    file = gguf_build(&b);
    write_file(path, file.data, file.len);
    assert_fails(open_and_close(path), FRIT_E_FORMAT, "'split.count' is 100000, expected 0 to 99999");
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_part_opens_the_whole_set_in_order),
        cmocka_unit_test(a_set_can_be_written_as_one_file),
        cmocka_unit_test(one_part_can_be_opened_alone_and_written_back),
        cmocka_unit_test(a_count_of_0_or_1_is_a_file_of_its_own),
        cmocka_unit_test(parts_may_have_their_own_alignment),
        cmocka_unit_test(parts_may_repeat_metadata_of_the_first),
        cmocka_unit_test(progress_grows_and_can_cancel),
        cmocka_unit_test(a_missing_part_is_named),
        cmocka_unit_test(a_renamed_part_says_how_it_should_be_called),
        cmocka_unit_test(parts_of_different_sets_are_refused),
        cmocka_unit_test(a_broken_part_is_named_by_its_own_path),
        cmocka_unit_test(split_keys_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

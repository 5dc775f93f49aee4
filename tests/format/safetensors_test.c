// SPDX-License-Identifier: MIT
// Valid safetensors files: the result of every type, shape and position; and all reference folders as plain files.
#include "format/safetensors.h"
#include "format/safetensors_build.h"

#include <dirent.h>

static frit_checkpoint *parse(image made)
{
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_new(&ckpt, "memory"));
    assert_ok(frit_safetensors_parse(ckpt, "memory", made.bytes, made.n_bytes));
    return ckpt;
}

static void every_supported_type_keeps_its_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        frit_dtype dtype;
        size_t n_bytes;
    } rows[] = {
        {"F64", FRIT_DTYPE_F64, 8},   {"F32", FRIT_DTYPE_F32, 4}, {"F16", FRIT_DTYPE_F16, 2},
        {"BF16", FRIT_DTYPE_BF16, 2}, {"I64", FRIT_DTYPE_I64, 8}, {"I32", FRIT_DTYPE_I32, 4},
        {"I16", FRIT_DTYPE_I16, 2},   {"I8", FRIT_DTYPE_I8, 1},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[2,3],\"data_offsets\":[0,%zu]}}",
                 rows[i].name, 6 * rows[i].n_bytes);
        image made = image_of(header, 6 * rows[i].n_bytes);
        frit_checkpoint *ckpt = parse(made);
        const frit_tensor *t = frit_checkpoint_find(ckpt, "t");
        assert_non_null(t);
        assert_int_equal(t->dtype, rows[i].dtype);
        assert_int_equal(t->n_dims, 2);
        assert_int_equal(t->shape[0], 2);
        assert_int_equal(t->shape[1], 3);
        assert_int_equal(t->shape[2], 1);
        assert_int_equal(t->n_bytes, 6 * rows[i].n_bytes);
        assert_ptr_equal(t->data, made.bytes + 8 + strlen(header));
        frit_checkpoint_close(ckpt);
        free(made.bytes);
    }
}

static void a_scalar_becomes_one_element(void **state)
{
    (void)state;
    image made = image_of("{\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4);
    frit_checkpoint *ckpt = parse(made);
    const frit_tensor *t = frit_checkpoint_find(ckpt, "s");
    assert_int_equal(t->n_dims, 1);
    assert_int_equal(t->shape[0], 1);
    frit_checkpoint_close(ckpt);
    free(made.bytes);
}

static void tensors_are_listed_in_the_order_of_their_data(void **state)
{
    (void)state;
    image made = image_of("{\"last\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[5,8]},"
                          "\"first\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                          "\"odd\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}   ",
                          8);
    frit_checkpoint *ckpt = parse(made);
    assert_int_equal(ckpt->n_tensors, 3);
    assert_string_equal(ckpt->tensors[0].name, "first");
    assert_string_equal(ckpt->tensors[1].name, "odd");
    assert_string_equal(ckpt->tensors[2].name, "last");
    assert_int_equal(*(const uint8_t *)ckpt->tensors[2].data, 5);
    frit_checkpoint_close(ckpt);
    free(made.bytes);
}

static void free_form_pairs_become_metadata(void **state)
{
    (void)state;
    image made = image_of("{\"__metadata__\":{\"format\":\"pt\",\"who\":\"tester\"}}", 0);
    frit_checkpoint *ckpt = parse(made);
    frit_str text;
    bool found;
    assert_ok(frit_meta_get_text(&ckpt->meta, "safetensors.who", &text, &found));
    assert_true(found && frit_str_is(text, "tester"));
    assert_int_equal(ckpt->meta.n, 2);
    assert_int_equal(ckpt->n_tensors, 0);
    frit_checkpoint_close(ckpt);
    free(made.bytes);
}

static void a_file_is_recognised_by_its_name_or_its_first_bytes(void **state)
{
    (void)state;
    image made = image_of("{\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4);
    static const char *const names[] = {"a.safetensors", "without-suffix"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        const char *path = temp_path(names[i]);
        write_file(path, made.bytes, made.n_bytes);
        for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
            frit_checkpoint *ckpt;
            assert_ok(frit_checkpoint_open(&ckpt, path, &(frit_checkpoint_options){.no_mmap = no_mmap}));
            assert_string_equal(ckpt->format, "safetensors");
            assert_int_equal(ckpt->n_tensors, 1);
            assert_memory_equal(ckpt->tensors[0].data, "\0\1\2\3", 4);
            frit_checkpoint_close(ckpt);
        }
    }
    free(made.bytes);
}

static void all_reference_folders_parse_as_bare_files(void **state)
{
    (void)state;
    DIR *dir = opendir(shared_path("goldens/hf"));
    assert_non_null(dir);
    int n_files = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strchr(entry->d_name, '.')) continue;
        frit_checkpoint *ckpt;
        assert_ok(frit_checkpoint_open(&ckpt, shared_path("goldens/hf/%s/model.safetensors", entry->d_name), NULL));
        assert_true(ckpt->n_tensors > 0);
        uint64_t n_bytes = 0;
        for (size_t i = 0; i < ckpt->n_tensors; i++) {
            const frit_tensor *t = &ckpt->tensors[i];
            assert_int_equal(t->dtype, FRIT_DTYPE_BF16);
            assert_int_equal(t->n_bytes, 2 * frit_tensor_n_elems(t));
            n_bytes += t->n_bytes;
        }
        // The header is all that is not a tensor.
        const uint8_t *bytes = frit_file_data(ckpt->files[0]);
        uint64_t n_header = bytes[0] + 256u * bytes[1] + 65536u * bytes[2];
        assert_int_equal(8 + n_header + n_bytes, frit_file_size(ckpt->files[0]));
        frit_checkpoint_close(ckpt);
        n_files++;
    }
    closedir(dir);
    assert_true((size_t)n_files >= shared_least(76));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_supported_type_keeps_its_bytes),
        cmocka_unit_test(a_scalar_becomes_one_element),
        cmocka_unit_test(tensors_are_listed_in_the_order_of_their_data),
        cmocka_unit_test(free_form_pairs_become_metadata),
        cmocka_unit_test(a_file_is_recognised_by_its_name_or_its_first_bytes),
        cmocka_unit_test(all_reference_folders_parse_as_bare_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

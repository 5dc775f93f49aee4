// SPDX-License-Identifier: MIT
// The table of number formats: names, ids, sizes.
#include "support/support.h"

#include "quant/dtype.h"

static void every_row_is_found_by_its_name_and_its_id(void **state)
{
    (void)state;
    for (int i = 0; i < FRIT_DTYPE_COUNT; i++) {
        const frit_dtype_info *type = frit_dtype_get((frit_dtype)i);
        frit_dtype found = FRIT_DTYPE_COUNT;
        assert_true(frit_dtype_from_name(type->name, &found));
        assert_int_equal(found, i);
        found = FRIT_DTYPE_COUNT;
        assert_int_equal(frit_dtype_from_gguf((uint32_t)type->gguf_id, &found), frit_dtype_is_of_files((frit_dtype)i));
        if (frit_dtype_is_of_files((frit_dtype)i)) assert_int_equal(found, i);
        assert_non_null(type->decode);
        assert_null(frit_dtype_removed_name((uint32_t)type->gguf_id));
        if (i > 0) assert_true(type->gguf_id > frit_dtype_get((frit_dtype)(i - 1))->gguf_id);
    }
}

static void names_may_be_written_in_capitals(void **state)
{
    (void)state;
    frit_dtype dtype;
    assert_true(frit_dtype_from_name("Q4_K", &dtype));
    assert_int_equal(dtype, FRIT_DTYPE_Q4_K);
    assert_true(frit_dtype_from_name("BF16", &dtype));
    assert_int_equal(dtype, FRIT_DTYPE_BF16);
}

static void unknown_names_and_ids_are_not_found(void **state)
{
    (void)state;
    frit_dtype dtype = FRIT_DTYPE_F32;
    static const char *const names[] = {"", "q4", "q4_k_m", "q4_kk", " q4_k", "f3", "f321", "q4_2"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) assert_false(frit_dtype_from_name(names[i], &dtype));
    static const uint32_t ids[] = {9, 15, 43, 255, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < FRIT_COUNT(ids); i++) {
        assert_false(frit_dtype_from_gguf(ids[i], &dtype));
        assert_null(frit_dtype_removed_name(ids[i]));
    }
    assert_int_equal(dtype, FRIT_DTYPE_F32);
}

static void removed_formats_are_known_by_name_only(void **state)
{
    (void)state;
    static const struct {
        uint32_t id;
        const char *name;
    } rows[] = {{4, "q4_2"},      {5, "q4_3"},        {31, "q4_0_4_4"},   {32, "q4_0_4_8"},
                {33, "q4_0_8_8"}, {36, "iq4_nl_4_4"}, {37, "iq4_nl_4_8"}, {38, "iq4_nl_8_8"}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_dtype dtype;
        assert_string_equal(frit_dtype_removed_name(rows[i].id), rows[i].name);
        assert_false(frit_dtype_from_gguf(rows[i].id, &dtype));
        assert_false(frit_dtype_from_name(rows[i].name, &dtype));
    }
}

static void rows_take_whole_blocks(void **state)
{
    (void)state;
    assert_int_equal(frit_dtype_row_bytes(FRIT_DTYPE_F32, 5), 20);
    assert_int_equal(frit_dtype_row_bytes(FRIT_DTYPE_Q4_0, 0), 0);
    assert_int_equal(frit_dtype_row_bytes(FRIT_DTYPE_Q4_0, 64), 36);
    assert_int_equal(frit_dtype_row_bytes(FRIT_DTYPE_Q6_K, 4096), 16 * 210);
    assert_int_equal(frit_dtype_row_bytes(FRIT_DTYPE_F64, (int64_t)1 << 40), (uint64_t)1 << 43);
}

static void the_table_agrees_with_the_reference_list(void **state)
{
    (void)state;
    char *text = read_file(shared_path("goldens/quant/types.tsv"), NULL);
    int n_rows = 0;
    for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        int id, elems, bytes;
        char name[32];
        assert_int_equal(sscanf(line + 1, "%d %31s %d %d", &id, name, &elems, &bytes), 4);
        frit_dtype dtype;
        assert_true(frit_dtype_from_gguf((uint32_t)id, &dtype));
        const frit_dtype_info *type = frit_dtype_get(dtype);
        assert_string_equal(type->name, name);
        assert_int_equal(type->block_elems, elems);
        assert_int_equal(type->block_bytes, bytes);
        n_rows++;
    }
    assert_int_equal(n_rows, 28);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_found_by_its_name_and_its_id),
        cmocka_unit_test(names_may_be_written_in_capitals),
        cmocka_unit_test(unknown_names_and_ids_are_not_found),
        cmocka_unit_test(removed_formats_are_known_by_name_only),
        cmocka_unit_test(rows_take_whole_blocks),
        cmocka_unit_test(the_table_agrees_with_the_reference_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Metadata: exact conversions, errors for inexact ones, values as text.
#include "support/support.h"

#include "format/meta.h"

#include <math.h>

typedef struct fixture {
    frit_arena arena;
    frit_meta meta;
} fixture;

static fixture *open_fixture(void)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    frit_meta_init(&f->meta, &f->arena);
    return f;
}

static void close_fixture(fixture *f)
{
    frit_meta_deinit(&f->meta);
    frit_arena_free(&f->arena);
    free(f);
}

// ------------------------------------------------------------------------------------------- conversions

typedef enum { YES, NO } usable;

typedef struct row {
    frit_value value;
    usable as_i64;
    int64_t i;
    usable as_f64;
    double f;
    usable as_bool;
    bool b;
    const char *found;   // text in the error
} row;

#define NUMBER(TYPE, field, number)                \
    {                                              \
        .type = FRIT_VALUE_##TYPE, .field = number \
    }

// clang-format off
static const row rows[] = {
    // value                           as i64                as f64           as bool  found
    {NUMBER(U8, u, 255),               YES, 255,             YES, 255,        NO,  0, "the u8 255"},
    {NUMBER(I8, i, -128),              YES, -128,            YES, -128,       NO,  0, "the i8 -128"},
    {NUMBER(U16, u, 1),                YES, 1,               YES, 1,          YES, 1, ""},
    {NUMBER(I16, i, 0),                YES, 0,               YES, 0,          YES, 0, ""},
    {NUMBER(U32, u, UINT32_MAX),       YES, UINT32_MAX,      YES, UINT32_MAX, NO,  0, "the u32 4294967295"},
    {NUMBER(I32, i, INT32_MIN),        YES, INT32_MIN,       YES, INT32_MIN,  NO,  0, "the i32 -2147483648"},
    {NUMBER(U64, u, INT64_MAX),        YES, INT64_MAX,       NO,  0,          NO,  0, "the u64 9223372036854775807"},
    {NUMBER(U64, u, 1ull << 63),       NO,  0,               YES, 0x1p63,     NO,  0, "the u64 9223372036854775808"},
    {NUMBER(U64, u, UINT64_MAX),       NO,  0,               NO,  0,          NO,  0, "the u64 18446744073709551615"},
    {NUMBER(I64, i, INT64_MIN),        YES, INT64_MIN,       YES, -0x1p63,    NO,  0, "the i64 -9223372036854775808"},
    {NUMBER(I64, i, (1ll << 53) + 1),  YES, (1ll << 53) + 1, NO,  0,          NO,  0, "the i64 9007199254740993"},
    {NUMBER(F32, f, 1.5),              NO,  0,               YES, 1.5,        NO,  0, "the f32 1.5"},
    {NUMBER(F32, f, 10000),            YES, 10000,           YES, 10000,      NO,  0, "the f32 10000"},
    {NUMBER(F64, f, -3),               YES, -3,              YES, -3,         NO,  0, "the f64 -3"},
    {NUMBER(F64, f, 0x1p63),           NO,  0,               YES, 0x1p63,     NO,  0, "the f64 9.22337204e+18"},
    {NUMBER(F64, f, INFINITY),         NO,  0,               YES, INFINITY,   NO,  0, "the f64 inf"},
    {NUMBER(BOOL, u, 1),               NO,  0,               NO,  0,          YES, 1, "is bool"},
    {{.type = FRIT_VALUE_TEXT, .text = {"7", 1}}, NO, 0, NO, 0, NO, 0, "is text"},
    {{.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_U32, 1, "\7\0\0"}}, NO, 0, NO, 0, NO, 0, "an array of u32"},
};
// clang-format on

static void check_found(const row *r, const char *expected)
{
    if (!strstr(frit_error(), "'key'") || !strstr(frit_error(), r->found) || !strstr(frit_error(), expected))
        fail_msg("\"%s\" lacks 'key', \"%s\" or \"%s\"", frit_error(), r->found, expected);
}

static void numbers_convert_only_when_nothing_is_lost(void **state)
{
    (void)state;
    for (size_t k = 0; k < FRIT_COUNT(rows); k++) {
        const row *r = &rows[k];
        fixture *f = open_fixture();
        bool found = false, b = !r->b;
        int64_t i = 77;
        double d = 77;
        assert_ok(frit_meta_add(&f->meta, frit_str_of("key"), r->value));

        frit_status status = frit_meta_get_i64(&f->meta, "key", &i, &found);
        assert_int_equal(status, r->as_i64 == YES ? FRIT_OK : FRIT_E_FORMAT);
        assert_true(i == (r->as_i64 == YES ? r->i : 77));
        assert_true(found);
        if (status != FRIT_OK) check_found(r, "expected a whole number");

        status = frit_meta_get_f64(&f->meta, "key", &d, &found);
        assert_int_equal(status, r->as_f64 == YES ? FRIT_OK : FRIT_E_FORMAT);
        assert_true(d == (r->as_f64 == YES ? r->f : 77));
        if (status != FRIT_OK) check_found(r, "expected a number");

        status = frit_meta_get_bool(&f->meta, "key", &b, NULL);
        assert_int_equal(status, r->as_bool == YES ? FRIT_OK : FRIT_E_FORMAT);
        assert_true(b == (r->as_bool == YES ? r->b : !r->b));
        if (status != FRIT_OK) check_found(r, "expected a bool");
        close_fixture(f);
    }
}

static void nan_is_not_a_whole_number(void **state)
{
    (void)state;
    fixture *f = open_fixture();
    int64_t i = 5;
    assert_ok(frit_meta_add_f64(&f->meta, "key", NAN));
    assert_fails(frit_meta_get_i64(&f->meta, "key", &i, NULL), FRIT_E_FORMAT, "nan");
    assert_int_equal(i, 5);
    close_fixture(f);
}

static void absent_keys_leave_the_result_alone(void **state)
{
    (void)state;
    fixture *f = open_fixture();
    int64_t i = 5;
    double d = 6;
    bool b = true, found = true;
    frit_str text = frit_str_of("x");
    assert_ok(frit_meta_get_i64(&f->meta, "no", &i, &found));
    assert_false(found);
    assert_ok(frit_meta_get_f64(&f->meta, "no", &d, NULL));
    assert_ok(frit_meta_get_bool(&f->meta, "no", &b, NULL));
    assert_ok(frit_meta_get_text(&f->meta, "no", &text, NULL));
    assert_true(i == 5 && d == 6 && b && frit_str_is(text, "x"));
    assert_null(frit_meta_find(&f->meta, "no"));
    close_fixture(f);
}

static void text_is_only_read_from_text(void **state)
{
    (void)state;
    fixture *f = open_fixture();
    frit_str text = {0};
    assert_ok(frit_meta_add_text(&f->meta, "name", "frit"));
    assert_ok(frit_meta_add_u64(&f->meta, "number", 3));
    assert_ok(frit_meta_get_text(&f->meta, "name", &text, NULL));
    assert_true(frit_str_is(text, "frit"));
    assert_fails(frit_meta_get_text(&f->meta, "number", &text, NULL), FRIT_E_FORMAT,
                 "metadata key 'number' is the u64 3, expected text");
    close_fixture(f);
}

// ---------------------------------------------------------------------------------- adding and removing

static void pairs_keep_their_order_and_copies_their_bytes(void **state)
{
    (void)state;
    fixture *f = open_fixture();
    char key[24], text[24];
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "key.%d", i);
        snprintf(text, sizeof text, "text %d", i);
        assert_ok(frit_meta_add_text(&f->meta, key, text));
    }
    assert_int_equal(f->meta.n, 500);
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "key.%d", i);
        snprintf(text, sizeof text, "text %d", i);
        assert_true(frit_str_is(f->meta.pairs[i].key, key));
        assert_true(frit_str_is(frit_meta_find(&f->meta, key)->text, text));
    }
    close_fixture(f);
}

static void a_key_cannot_be_there_twice(void **state)
{
    (void)state;
    fixture *f = open_fixture();
    assert_ok(frit_meta_add_bool(&f->meta, "flag", true));
    assert_fails(frit_meta_add_u64(&f->meta, "flag", 1), FRIT_E_FORMAT, "'flag' occurs twice");
    assert_int_equal(f->meta.n, 1);
    close_fixture(f);
}

static void removing_a_pair_keeps_the_others_findable(void **state)
{
    (void)state;
    fixture *f = open_fixture();
    static const char *const keys[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) assert_ok(frit_meta_add_u64(&f->meta, keys[i], i));
    assert_ok(frit_meta_remove(&f->meta, "b"));
    assert_ok(frit_meta_remove(&f->meta, "d"));
    assert_ok(frit_meta_remove(&f->meta, "absent"));
    assert_int_equal(f->meta.n, 2);
    assert_null(frit_meta_find(&f->meta, "b"));
    assert_null(frit_meta_find(&f->meta, "d"));
    assert_int_equal(frit_meta_find(&f->meta, "a")->u, 0);
    assert_int_equal(frit_meta_find(&f->meta, "c")->u, 2);
    assert_ok(frit_meta_add_u64(&f->meta, "b", 9));
    assert_true(frit_str_is(f->meta.pairs[2].key, "b"));
    close_fixture(f);
}

// ------------------------------------------------------------------------------------------- array items

static void items_are_read_from_unaligned_bytes(void **state)
{
    (void)state;
    unsigned char bytes[1 + 24];
    static const int16_t i16[] = {-2, 300};
    static const uint64_t u64[] = {7, UINT64_MAX};
    static const float f32[] = {0.25f, -8};
    static const int64_t i64[] = {INT64_MIN, 1};
    frit_value array = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_I16, 2, memcpy(bytes + 1, i16, sizeof i16)}};
    assert_int_equal(frit_value_item_i64(&array, 0), -2);
    assert_int_equal(frit_value_item_i64(&array, 1), 300);
    assert_true(frit_value_item_f64(&array, 0) == -2);
    array.array.type = FRIT_VALUE_U64;
    memcpy(bytes + 1, u64, sizeof u64);
    assert_int_equal(frit_value_item_i64(&array, 0), 7);
    assert_true(frit_value_item_i64(&array, 1) == INT64_MAX);
    array.array.type = FRIT_VALUE_F32;
    memcpy(bytes + 1, f32, sizeof f32);
    assert_true(frit_value_item_f64(&array, 0) == 0.25 && frit_value_item_f64(&array, 1) == -8);
    array.array.type = FRIT_VALUE_I64;
    memcpy(bytes + 1, i64, sizeof i64);
    assert_true(frit_value_item_i64(&array, 0) == INT64_MIN);
    array.array.type = FRIT_VALUE_BOOL;
    memcpy(bytes + 1, "\1\0", 2);
    assert_true(frit_value_item_i64(&array, 0) == 1 && frit_value_item_i64(&array, 1) == 0);
}

static void every_type_has_a_name_and_a_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    for (int i = 0; i < FRIT_VALUE_TYPE_COUNT; i++) {
        assert_int_equal(frit_value_type_bytes((frit_value_type)i), sizes[i]);
        assert_string_not_equal(frit_value_type_name((frit_value_type)i), "unknown");
    }
    assert_string_equal(frit_value_type_name((frit_value_type)13), "unknown");
}

// ------------------------------------------------------------------------------------------------ as text

static void assert_prints(frit_value value, int max_items, const char *expected)
{
    frit_buf out = {0};
    frit_value_print(&value, max_items, &out);
    assert_string_equal(out.data ? out.data : "", expected);
    frit_buf_free(&out);
}

static frit_value f32_value(float f)
{
    return (frit_value){.type = FRIT_VALUE_F32, .f = f};
}

static void scalars_print_as_people_write_them(void **state)
{
    (void)state;
    assert_prints((frit_value)NUMBER(U64, u, UINT64_MAX), 3, "18446744073709551615");
    assert_prints((frit_value)NUMBER(I8, i, -1), 3, "-1");
    assert_prints((frit_value)NUMBER(BOOL, u, 1), 3, "true");
    assert_prints((frit_value)NUMBER(BOOL, u, 0), 3, "false");
    assert_prints(f32_value(1e-5f), 3, "1e-05");
    assert_prints(f32_value(0.1f), 3, "0.1");
    assert_prints(f32_value(16777217.0f), 3, "16777216");
    assert_prints(f32_value(NAN), 3, "nan");
    assert_prints((frit_value)NUMBER(F64, f, 0.1), 3, "0.1");
    assert_prints((frit_value)NUMBER(F64, f, 1.0 / 3), 3, "0.3333333333333333");
    assert_prints((frit_value)NUMBER(F64, f, -INFINITY), 3, "-inf");
}

static void text_prints_without_terminal_escapes(void **state)
{
    (void)state;
    assert_prints((frit_value){.type = FRIT_VALUE_TEXT, .text = frit_str_of("a\tb\n\033[31mc")}, 3, "a\tb\n\\x1b[31mc");
    assert_prints((frit_value){.type = FRIT_VALUE_TEXT, .text = {"\0\x7f\xff", 3}}, 3, "\\x00\\x7f\\xff");
    assert_prints((frit_value){.type = FRIT_VALUE_TEXT, .text = frit_str_of("\xc3\xa4 \xe2\x82")}, 3,
                  "\xc3\xa4 \\xe2\\x82");
    assert_prints((frit_value){.type = FRIT_VALUE_TEXT,
                               .text = frit_str_of("\xc2\x9b"
                                                   "31m")},
                  3,
                  "\\xc2\\x9b"
                  "31m");
    assert_prints((frit_value){.type = FRIT_VALUE_TEXT, .text = {"", 0}}, 3, "");
}

static void long_arrays_are_shortened(void **state)
{
    (void)state;
    static const int32_t numbers[] = {1, -2, 3, 4};
    static const frit_str texts[] = {{"a\n", 2}, {"\"", 1}, {"\\", 1}};
    frit_value n = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_I32, 4, numbers}};
    frit_value t = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, 3, texts}};
    assert_prints(n, 4, "[1, -2, 3, 4]");
    assert_prints(n, -1, "[1, -2, 3, 4]");
    assert_prints(n, 2, "[1, -2, ... (4 in all)]");
    assert_prints(n, 0, "[... (4 in all)]");
    assert_prints(t, 9, "[\"a\\n\", \"\\\"\", \"\\\\\"]");
    t.array.n = 0;
    assert_prints(t, 0, "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_convert_only_when_nothing_is_lost),
        cmocka_unit_test(nan_is_not_a_whole_number),
        cmocka_unit_test(absent_keys_leave_the_result_alone),
        cmocka_unit_test(text_is_only_read_from_text),
        cmocka_unit_test(pairs_keep_their_order_and_copies_their_bytes),
        cmocka_unit_test(a_key_cannot_be_there_twice),
        cmocka_unit_test(removing_a_pair_keeps_the_others_findable),
        cmocka_unit_test(items_are_read_from_unaligned_bytes),
        cmocka_unit_test(every_type_has_a_name_and_a_size),
        cmocka_unit_test(scalars_print_as_people_write_them),
        cmocka_unit_test(text_prints_without_terminal_escapes),
        cmocka_unit_test(long_arrays_are_shortened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

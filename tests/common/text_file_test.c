// SPDX-License-Identifier: MIT
// Byte order marks before a text.
#include "support/support.h"

#include "common/text_file.h"

static void the_mark_of_utf_8_is_no_part_of_a_text(void **state)
{
    (void)state;
    assert_int_equal(app_mark_bytes("\xef\xbb\xbfx", 4), 3);
    assert_int_equal(app_mark_bytes("\xef\xbb\xbf", 3), 3);
    assert_int_equal(app_mark_bytes("\xef\xbb", 2), 0);
    assert_int_equal(app_mark_bytes("x\xef\xbb\xbf", 4), 0);
    assert_int_equal(app_mark_bytes("", 0), 0);
}

static void other_encodings_are_named(void **state)
{
    (void)state;
    assert_string_equal(app_foreign_encoding("\xff\xfeh\0", 4), "UTF-16");
    assert_string_equal(app_foreign_encoding("\xfe\xff\0h", 4), "UTF-16");
    assert_string_equal(app_foreign_encoding("\xff\xfe\0\0h\0\0\0", 8), "UTF-32");
    assert_null(app_foreign_encoding("\xef\xbb\xbfh", 4));
    assert_null(app_foreign_encoding("\xff", 1));
    assert_null(app_foreign_encoding("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mark_of_utf_8_is_no_part_of_a_text),
        cmocka_unit_test(other_encodings_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

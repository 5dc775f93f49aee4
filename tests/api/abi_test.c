// SPDX-License-Identifier: MIT
// Compatibility with programs compiled with the headers of version 0.2 (abi/0.2): sizes, offsets, values and
// declarations are unchanged.
#include "abi_layout.h"

#include "support/header.h"
#include "support/support.h"

static void sizes_offsets_and_values_stay(void **state)
{
    (void)state;
    size_t n = 0;
    for (; abi_layout_0_2[n].name; n++) {
        const layout_row *was = &abi_layout_0_2[n], *is = &abi_layout_today[n];
        assert_string_equal(was->name, is->name);
        if (was->value != is->value) fail_msg("%s was %llu and is %llu", was->name, was->value, is->value);
    }
    assert_true(n > 200);
}

// Checks that the new header has every function declaration of the old one.
static size_t compare_declarations(const char *name)
{
    char *was = read_header("tests/api/abi/0.2", name), *is = read_header("include", name), declaration[1024];
    size_t n = 0;
    for (const char *at = was; (at = strstr(at, "FRIT_API ")) != NULL; at++) {
        const size_t length = strcspn(at, ";") + 1;
        if (strcspn(at, "#") < length) continue;   // the definition of FRIT_API
        assert_true(length < sizeof declaration);
        snprintf(declaration, sizeof declaration, "%.*s", (int)length, at);
        if (!strstr(is, declaration)) fail_msg("%s no longer has: %s", name, declaration);
        n++;
    }
    free(was);
    free(is);
    return n;
}

static void declarations_stay(void **state)
{
    (void)state;
    assert_true(compare_declarations("frit.h") > 70);
    assert_true(compare_declarations("frit_tools.h") > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_offsets_and_values_stay),
        cmocka_unit_test(declarations_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

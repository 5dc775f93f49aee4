// SPDX-License-Identifier: MIT
// Arena, buffer, map, status.
#include "support/support.h"

#include "base/arena.h"
#include "base/map.h"

static void map_finds_every_key_after_growing(void **state)
{
    (void)state;
    static char keys[1000][8];
    frit_map map = {0};
    for (int i = 0; i < 1000; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        assert_true(frit_map_put(&map, frit_str_of(keys[i]), i));
    }
    int64_t value;
    for (int i = 0; i < 1000; i++) {
        assert_true(frit_map_get(&map, frit_str_of(keys[i]), &value));
        assert_int_equal(value, i);
    }
    assert_false(frit_map_get(&map, frit_str_of("absent"), &value));
    frit_map_free(&map);
}

// Otherwise a file could have keys that all fall into one slot, which would make opening it quadratic.
static void each_map_hashes_with_a_seed_of_its_own(void **state)
{
    (void)state;
    frit_map a = {0}, b = {0};
    assert_true(frit_map_put(&a, frit_str_of("key"), 1));
    assert_true(frit_map_put(&b, frit_str_of("key"), 1));
    assert_true(a.seed != b.seed);
    frit_map_free(&a);
    frit_map_free(&b);
}

static void arena_remembers_a_failed_allocation(void **state)
{
    (void)state;
    frit_arena arena = {0};
    assert_non_null(frit_arena_alloc(&arena, 3, 5));
    assert_null(frit_arena_alloc(&arena, SIZE_MAX / 2, 3));
    assert_true(frit_arena_failed(&arena));
    frit_arena_free(&arena);
}

static void arena_gives_zeroed_memory_of_any_size(void **state)
{
    (void)state;
    frit_arena arena = {0};
    for (size_t n = 1; n < 300000; n = n * 3 + 1) {
        unsigned char *bytes = frit_arena_alloc(&arena, n, 1);
        assert_int_equal((uintptr_t)bytes % 16, 0);
        for (size_t i = 0; i < n; i++) assert_int_equal(bytes[i], 0);
        memset(bytes, 0xff, n);
    }
    frit_arena_free(&arena);
}

static void buffer_is_always_zero_terminated(void **state)
{
    (void)state;
    frit_buf buf = {0};
    for (int i = 0; i < 200; i++) frit_buf_printf(&buf, "%d,", i);
    assert_false(buf.failed);
    assert_int_equal(strlen(buf.data), buf.len);
    assert_memory_equal(buf.data, "0,1,2,", 6);
    frit_buf_free(&buf);
}

static void a_failure_may_quote_the_one_before(void **state)
{
    (void)state;
    assert_int_equal(frit_fail(FRIT_E_IO, "first\n"), FRIT_E_IO);
    assert_int_equal(frit_fail(FRIT_E_FORMAT, "second: %s", frit_error()), FRIT_E_FORMAT);
    assert_string_equal(frit_error(), "second: first?");
}

static void a_failure_keeps_its_field_and_code(void **state)
{
    (void)state;
    const frit_field field = frit_field_name("tools[%d].type", 2);
    assert_int_equal(frit_fail_at(FRIT_E_INVALID, field.text, FRIT_CODE_INVALID_TYPE, "expected %s", "a text"),
                     FRIT_E_INVALID);
    assert_string_equal(frit_error(), "tools[2].type: expected a text");
    assert_string_equal(frit_error_field(), "tools[2].type");
    assert_string_equal(frit_error_code(), "invalid_type");
    frit_failure failure;
    frit_failure_get(&failure);
    assert_int_equal(frit_fail_at(FRIT_E_INVALID, NULL, FRIT_CODE_NO_TOKEN_LEFT, "none"), FRIT_E_INVALID);
    assert_string_equal(frit_error(), "none");
    assert_null(frit_error_field());
    assert_string_equal(frit_error_code(), "no_token_left");
    assert_int_equal(frit_fail(FRIT_E_IO, "other"), FRIT_E_IO);
    assert_null(frit_error_field());
    assert_null(frit_error_code());
    frit_failure_set(&failure);
    assert_string_equal(frit_error(), "tools[2].type: expected a text");
    assert_string_equal(frit_error_field(), "tools[2].type");
}

static void a_failure_gets_one_path(void **state)
{
    (void)state;
    assert_int_equal(frit_fail_in("m.gguf", FRIT_OK), FRIT_OK);
    assert_int_equal(frit_fail_in("m.gguf", frit_fail(FRIT_E_FORMAT, "key 'a' is 5")), FRIT_E_FORMAT);
    assert_string_equal(frit_error(), "m.gguf: key 'a' is 5");
    assert_int_equal(frit_fail_in("folder", FRIT_E_FORMAT), FRIT_E_FORMAT);
    assert_string_equal(frit_error(), "m.gguf: key 'a' is 5");
    assert_int_equal(frit_fail_in("folder", frit_fail_file(FRIT_E_IO, "%s: ends early", "b.gguf")), FRIT_E_IO);
    assert_string_equal(frit_error(), "b.gguf: ends early");
    frit_fail_say("key 'm.gguf' is 5");
    frit_fail_in("m.gguf", FRIT_E_FORMAT);
    assert_string_equal(frit_error(), "m.gguf: key 'm.gguf' is 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_finds_every_key_after_growing),   cmocka_unit_test(each_map_hashes_with_a_seed_of_its_own),
        cmocka_unit_test(arena_remembers_a_failed_allocation), cmocka_unit_test(arena_gives_zeroed_memory_of_any_size),
        cmocka_unit_test(buffer_is_always_zero_terminated),    cmocka_unit_test(a_failure_may_quote_the_one_before),
        cmocka_unit_test(a_failure_keeps_its_field_and_code),  cmocka_unit_test(a_failure_gets_one_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

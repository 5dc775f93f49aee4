// SPDX-License-Identifier: MIT
// Incomplete files: they are continued if their trailer is complete and of the same file, and begun anew if it is
// damaged.
#include "hub/partial.h"
#include "support/support.h"

#include <unistd.h>

enum { N_BYTES = 1300000, CHUNK = 512 << 10 };   // three chunks

static char path[512], bytes[N_BYTES];

static void make_partial(void)
{
    hub_partial partial;
    unlink(path);
    assert_int_equal(hub_partial_open(&partial, path, "etag", N_BYTES), HUB_OK);
    assert_int_equal(partial.n_chunks, 3);
    assert_int_equal(hub_partial_write(&partial, 0, bytes, 1000), HUB_OK);
    assert_int_equal(hub_partial_write(&partial, 2 * CHUNK, bytes + 2 * CHUNK, 50), HUB_OK);
    assert_int_equal(hub_partial_set_validator(&partial, "\"v\""), HUB_OK);
    assert_int_equal(hub_partial_prefix(&partial), 1000);
    hub_partial_close(&partial);
}

// Opens the partial again and returns the number of its bytes.
static uint64_t open_again(const char *identity, uint64_t n_bytes, char validator[256])
{
    hub_partial partial;
    if (hub_partial_open(&partial, path, identity, n_bytes) != HUB_OK) fail_msg("%s", hub_error());
    uint64_t sum = 0;
    for (size_t c = 0; c < partial.n_chunks; c++) sum += partial.done[c];
    assert_int_equal(sum, partial.n_done);
    snprintf(validator, 256, "%s", partial.validator);
    hub_partial_close(&partial);
    return sum;
}

static void a_partial_is_continued(void **state)
{
    (void)state;
    char validator[256];
    make_partial();
    assert_int_equal(open_again("etag", N_BYTES, validator), 1050);
    assert_string_equal(validator, "\"v\"");
}

static void a_partial_of_another_file_is_begun_anew(void **state)
{
    (void)state;
    char validator[256];
    static const struct {
        const char *identity;
        uint64_t n_bytes;
    } others[] = {{"other", N_BYTES}, {"", N_BYTES}, {"etag", N_BYTES + 1}, {"etag", 5}, {"etag", 0}};
    for (size_t i = 0; i < FRIT_COUNT(others); i++) {
        make_partial();
        assert_int_equal(open_again(others[i].identity, others[i].n_bytes, validator), 0);
        assert_string_equal(validator, "");
    }
}

static void a_damaged_trailer_is_begun_anew(void **state)
{
    (void)state;
    char validator[256];
    make_partial();
    size_t n;
    char *whole = read_file(path, &n);
    const size_t n_fields = 8 + 3 * 8, n_table = 3 * 8;
    for (size_t i = 0; i < n_fields + n_table; i++) {   // the fields before the counts, and the counts of bytes
        const size_t at = i < n_fields ? N_BYTES + i : n - n_table + i - n_fields;
        if (i >= n_fields && i % 8 < 3) continue;   // a smaller count may be valid
        char *copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, whole, n);
        copy[at] = (char)(copy[at] ^ 0x80);
        write_file(path, copy, n);
        free(copy);
        if (open_again("etag", N_BYTES, validator) != 0) fail_msg("byte %zu of the trailer may be anything", i);
    }
    for (size_t cut = 1; cut < n - N_BYTES; cut += 7) {
        write_file(path, whole, n - cut);
        assert_int_equal(open_again("etag", N_BYTES, validator), 0);
    }
    free(whole);
}

static void bytes_go_where_they_are_next(void **state)
{
    (void)state;
    hub_partial partial;
    make_partial();
    assert_int_equal(hub_partial_open(&partial, path, "etag", N_BYTES), HUB_OK);
    assert_int_equal(hub_partial_write(&partial, 0, bytes, 1), HUB_E_DATA);
    assert_int_equal(hub_partial_write(&partial, 1001, bytes, 1), HUB_E_DATA);
    assert_int_equal(hub_partial_write(&partial, N_BYTES, bytes, 1), HUB_E_DATA);
    assert_int_equal(hub_partial_write(&partial, 1000, bytes + 1000, CHUNK - 1000), HUB_OK);
    assert_int_equal(hub_partial_write(&partial, CHUNK, bytes + CHUNK, CHUNK), HUB_OK);
    assert_int_equal(hub_partial_write(&partial, 2 * CHUNK + 50, bytes + 2 * CHUNK + 50, N_BYTES - 2 * CHUNK - 50),
                     HUB_OK);
    assert_int_equal(partial.n_done, N_BYTES);
    assert_int_equal(hub_partial_prefix(&partial), N_BYTES);
    char target[512];
    snprintf(target, sizeof target, "%s", temp_path("target"));
    assert_int_equal(hub_partial_finish(&partial, target), HUB_OK);
    size_t n;
    char *whole = read_file(target, &n);
    assert_int_equal(n, N_BYTES);
    assert_memory_equal(whole, bytes, N_BYTES);
    free(whole);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_link_is_not_followed(void **state)
{
    (void)state;
    char elsewhere[512];
    hub_partial partial;
    snprintf(elsewhere, sizeof elsewhere, "%s", temp_path("elsewhere"));
    write_file(elsewhere, "mine", 4);
    unlink(path);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_int_equal(hub_partial_open(&partial, path, "etag", N_BYTES), HUB_E_DISK);
    unlink(path);
    char *text = read_file(elsewhere, NULL);
    assert_string_equal(text, "mine");
    free(text);
}

int main(void)
{
    snprintf(path, sizeof path, "%s", temp_path("part"));
    for (size_t i = 0; i < N_BYTES; i++) bytes[i] = (char)(i * 7 + i / 251);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partial_is_continued),          cmocka_unit_test(a_partial_of_another_file_is_begun_anew),
        cmocka_unit_test(a_damaged_trailer_is_begun_anew), cmocka_unit_test(bytes_go_where_they_are_next),
        cmocka_unit_test(a_link_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

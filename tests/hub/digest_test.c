// SPDX-License-Identifier: MIT
// Digests of files: examples of FIPS 180-4, and git's names of blobs.
#include "support/support.h"

#include "hub/digest.h"

#include <string.h>

// Checks the digest of a text that is added in pieces of n bytes.
static void expect_sha1(const char *text, size_t n_times, size_t n_piece, const char *expected)
{
    hub_sha1 sum;
    uint8_t bytes[HUB_SHA1_BYTES];
    char hex[2 * HUB_SHA1_BYTES + 1];
    const size_t n = strlen(text);
    hub_sha1_init(&sum);
    for (size_t i = 0; i < n_times; i++)
        for (size_t at = 0; at < n; at += n_piece) hub_sha1_add(&sum, text + at, n - at < n_piece ? n - at : n_piece);
    hub_sha1_end(&sum, bytes);
    for (int i = 0; i < HUB_SHA1_BYTES; i++) snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    assert_string_equal(hex, expected);
}

static void sha1_is_the_standards(void **state)
{
    (void)state;
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    for (size_t n_piece = 1; n_piece < 70; n_piece += 3) {
        expect_sha1("abc", 1, n_piece, "a9993e364706816aba3e25717850c26c9cd0d89d");
        expect_sha1("", 1, n_piece, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        expect_sha1(two_blocks, 1, n_piece, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    }
    expect_sha1("aaaaaaaaaa", 100000, 10, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

static void files_have_the_names_of_git(void **state)
{
    (void)state;
    hub_digest digest;
    char hex[65];
    hub_digest_init(&digest, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", 0);
    hub_digest_end(&digest, hex);
    assert_string_equal(hex, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");   // git hash-object /dev/null
    hub_digest_init(&digest, "ce013625030ba8dba906f756967f9e9ca394464a", 6);
    hub_digest_add(&digest, "hel", 3);
    hub_digest_add(&digest, "lo\n", 3);
    hub_digest_end(&digest, hex);
    assert_string_equal(hex, "ce013625030ba8dba906f756967f9e9ca394464a");   // echo hello | git hash-object --stdin
    assert_string_equal(hub_digest_name(&digest), "SHA-1 in git");
    hub_digest_init(&digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 3);
    hub_digest_add(&digest, "abc", 3);
    hub_digest_end(&digest, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha1_is_the_standards),
        cmocka_unit_test(files_have_the_names_of_git),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

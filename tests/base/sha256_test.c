// SPDX-License-Identifier: MIT
// SHA-256: the examples of FIPS 180-4, and cuts of a text.
#include "support/support.h"

#include "base/sha256.h"

static void expect(const char *text, size_t times, size_t cut, const char *hex)
{
    frit_sha256 sum;
    uint8_t out[FRIT_SHA256_BYTES];
    char found[2 * FRIT_SHA256_BYTES + 1];
    frit_sha256_init(&sum);
    const size_t n = strlen(text);
    for (size_t i = 0; i < times; i++)
        for (size_t at = 0; at < n; at += cut) frit_sha256_add(&sum, text + at, n - at < cut ? n - at : cut);
    frit_sha256_end(&sum, out);
    for (size_t i = 0; i < sizeof out; i++) snprintf(found + 2 * i, 3, "%02x", out[i]);
    assert_string_equal(found, hex);
}

static void examples_give_their_sums(void **state)
{
    (void)state;
    for (size_t cut = 1; cut < 70; cut += 23) {
        expect("", 1, cut, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        expect("abc", 1, cut, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, cut,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        expect("aaaaaaaaaa", 100000, 7, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_give_their_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

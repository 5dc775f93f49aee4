// SPDX-License-Identifier: MIT
// UTF-8: every code point, every sequence of up to three bytes, and the samples of the Unicode standard.
#include "support/support.h"

#include "base/utf8.h"

static void every_code_point_survives_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        if (c >= 0xd800 && c <= 0xdfff) continue;
        char bytes[4];
        int n = frit_utf8_encode(c, bytes);
        assert_int_equal(n, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        uint32_t back = UINT32_MAX;
        if (frit_utf8_decode(bytes, 4, &back) != n || back != c) fail_msg("U+%04X", (unsigned)c);
        for (int cut = 1; cut < n; cut++) assert_int_equal(frit_utf8_decode(bytes, (size_t)cut, &back), 0);
        if (frit_utf8_valid_prefix(bytes, (size_t)n) != (size_t)n) fail_msg("U+%04X", (unsigned)c);
    }
}

static void what_is_no_character_is_encoded_as_a_replacement(void **state)
{
    (void)state;
    const uint32_t bad[] = {0xd800, 0xdfff, 0x110000, UINT32_MAX};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        char bytes[4];
        assert_int_equal(frit_utf8_encode(bad[i], bytes), 3);
        assert_memory_equal(bytes, "\xef\xbf\xbd", 3);
    }
}

// Written independently from the definition: which bit patterns exist, then which values are allowed.
static int expect(const unsigned char *s, size_t n)
{
    int length = s[0] < 0x80             ? 1
                 : (s[0] & 0xe0) == 0xc0 ? 2
                 : (s[0] & 0xf0) == 0xe0 ? 3
                 : (s[0] & 0xf8) == 0xf0 ? 4
                                         : 0;
    if (length == 0) return -1;
    // The longest prefix for which some continuation gives an allowed value.
    for (int i = 1; i <= length; i++) {
        if ((size_t)i == n && i < length) break;
        uint32_t low = length == 1 ? s[0] : s[0] & (0x7fu >> length), high;
        int known = i < length ? i + 1 : length;
        for (int k = 1; k < known; k++) {
            if ((s[k] & 0xc0) != 0x80) return -(k > i - 1 ? i : k);
            low = low << 6 | (s[k] & 0x3f);
        }
        int open = 6 * (length - known);
        low <<= open;
        high = low | ((1u << open) - 1);
        const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (high < least[length] || low > 0x10ffff || (low >= 0xd800 && high <= 0xdfff)) return -i;
    }
    if ((size_t)length > n) {
        // A truncated sequence can still become valid unless its lead byte never can.
        uint32_t low = (s[0] & (0x7fu >> length));
        bool never = (length == 2 && low < 2) || (length == 4 && low > 4);
        return never ? -1 : 0;
    }
    return length;
}

static void every_sequence_of_three_bytes_is_judged_by_the_definition(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < 1u << 24; v++) {
        const unsigned char s[3] = {(unsigned char)(v >> 16), (unsigned char)(v >> 8), (unsigned char)v};
        uint32_t c;
        int got = frit_utf8_decode((const char *)s, 3, &c), want = expect(s, 3);
        if (got != want) fail_msg("%02x %02x %02x: %d, expected %d", s[0], s[1], s[2], got, want);
    }
}

static void a_lead_byte_alone_is_incomplete_or_invalid(void **state)
{
    (void)state;
    for (int lead = 0; lead < 256; lead++) {
        const char s[1] = {(char)lead};
        uint32_t c;
        int want = lead < 0x80 ? 1 : lead >= 0xc2 && lead <= 0xf4 ? 0 : -1;
        assert_int_equal(frit_utf8_decode(s, 1, &c), want);
    }
    uint32_t c;
    assert_int_equal(frit_utf8_decode("", 0, &c), 0);
}

// Unicode 15, table 3-8: maximal parts, each replaced by one U+FFFD.
static void invalid_text_falls_into_maximal_parts(void **state)
{
    (void)state;
    const char text[] = "\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64";
    const int want[] = {1, -3, -2, -1, 1, -1, 1, -1, -1, 1};
    size_t at = 0;
    for (size_t i = 0; i < FRIT_COUNT(want); i++) {
        uint32_t c;
        int n = frit_utf8_decode(text + at, sizeof text - 1 - at, &c);
        assert_int_equal(n, want[i]);
        at += (size_t)abs(n);
    }
    assert_int_equal(at, sizeof text - 1);
    assert_int_equal(frit_utf8_valid_prefix(text, sizeof text - 1), 1);
}

static void the_valid_prefix_ends_before_half_a_character(void **state)
{
    (void)state;
    const char text[] = "twelve bytes and \xf0\x9f\xa6\x8a";
    for (size_t n = 0; n < sizeof text; n++) {
        size_t want = n < 17 || n == sizeof text - 1 ? n : 17;
        assert_int_equal(frit_utf8_valid_prefix(text, n), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_survives_a_round_trip),
        cmocka_unit_test(what_is_no_character_is_encoded_as_a_replacement),
        cmocka_unit_test(every_sequence_of_three_bytes_is_judged_by_the_definition),
        cmocka_unit_test(a_lead_byte_alone_is_incomplete_or_invalid),
        cmocka_unit_test(invalid_text_falls_into_maximal_parts),
        cmocka_unit_test(the_valid_prefix_ends_before_half_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

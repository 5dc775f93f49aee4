// SPDX-License-Identifier: MIT
// Half precision and bfloat16 against their definitions, and against the processor's conversions if it has them.
#include "support/support.h"

#include <math.h>

#include "quant/half.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAVE_F16C 1
#endif

// sign * mantissa * 2^exponent, computed in double, where every half and every bfloat16 is exact.
static double defined_value(uint32_t bits, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    int exponent = (int)(bits >> mantissa_bits) & top;
    double mantissa = bits & ((1u << mantissa_bits) - 1), sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == top) return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

static void assert_same_float(float got, double expected, uint32_t bits)
{
    if (isnan(expected) ? isnan(got) : got == (float)expected && !signbit(got) == !signbit(expected)) return;
    fail_msg("0x%04x: got %g, expected %g", (unsigned)bits, (double)got, expected);
}

static void every_half_decodes_to_its_definition(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) assert_same_float(frit_half_to_float((uint16_t)h), defined_value(h, 5, 10), h);
}

static void every_bf16_decodes_to_its_definition(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) assert_same_float(frit_bf16_to_float((uint16_t)h), defined_value(h, 8, 7), h);
}

static void every_half_and_bf16_survives_the_way_through_float(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float half = frit_half_to_float((uint16_t)h), bf16 = frit_bf16_to_float((uint16_t)h);
        if (isnan(half))
            assert_true(isnan(frit_half_to_float(frit_float_to_half(half))));
        else
            assert_int_equal(frit_float_to_half(half), h);
        if (isnan(bf16))
            assert_true(isnan(frit_bf16_to_float(frit_float_to_bf16(bf16))));
        else
            assert_int_equal(frit_float_to_bf16(bf16), h);
    }
}

// The number halfway between two neighbours goes to the even one; numbers beside it go to the nearer one.
static void encoding_rounds_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double here = defined_value(h, 5, 10), next = h == 0x7bff ? 65536.0 : defined_value(h + 1, 5, 10);
        float middle = (float)((here + next) / 2);
        uint16_t even = (uint16_t)(h + (h & 1));
        assert_int_equal(frit_float_to_half(middle), even);
        assert_int_equal(frit_float_to_half(-middle), even | 0x8000);
        assert_int_equal(frit_float_to_half(nextafterf(middle, 0)), h);
        assert_int_equal(frit_float_to_half(nextafterf(middle, INFINITY)), h + 1);
    }
    for (uint32_t h = 0; h < 0x7f80; h++) {
        uint32_t middle = h << 16 | 0x8000;
        assert_int_equal(frit_float_to_bf16(frit_float_of_bits(middle)), h + (h & 1));
        assert_int_equal(frit_float_to_bf16(frit_float_of_bits(middle | 0x80000000)), (h + (h & 1)) | 0x8000);
        assert_int_equal(frit_float_to_bf16(frit_float_of_bits(middle - 1)), h);
        assert_int_equal(frit_float_to_bf16(frit_float_of_bits(middle + 1)), h + 1);
    }
}

static void infinities_and_nans_keep_their_kind(void **state)
{
    (void)state;
    assert_int_equal(frit_float_to_half(INFINITY), 0x7c00);
    assert_int_equal(frit_float_to_half(-INFINITY), 0xfc00);
    assert_int_equal(frit_float_to_half(3e38f), 0x7c00);
    assert_int_equal(frit_float_to_bf16(INFINITY), 0x7f80);
    assert_int_equal(frit_float_to_bf16(-INFINITY), 0xff80);
    // A NaN whose bits are all below the stored ones must not become an infinity.
    const uint32_t nans[] = {0x7f800001, 0xff800001, 0x7fc00000, 0xffffffff};
    for (size_t i = 0; i < FRIT_COUNT(nans); i++) {
        float x = frit_float_of_bits(nans[i]);
        assert_true(isnan(frit_half_to_float(frit_float_to_half(x))));
        assert_true(isnan(frit_bf16_to_float(frit_float_to_bf16(x))));
        assert_int_equal(frit_float_to_half(x) >> 15, nans[i] >> 31);
        assert_int_equal(frit_float_to_bf16(x) >> 15, nans[i] >> 31);
    }
}

#if HAVE_F16C
__attribute__((target("f16c"))) static uint16_t processor_half(float x)
{
    return (uint16_t)_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}

__attribute__((target("f16c"))) static float processor_float(uint16_t h)
{
    return _cvtsh_ss(h);
}
#endif

static void halves_agree_with_the_processor(void **state)
{
    (void)state;
#if HAVE_F16C
    // Processors with AVX2 have F16C; not every compiler can test for F16C.
    if (!__builtin_cpu_supports("avx2")) skip_because("this processor does not convert halves");
    for (uint32_t h = 0; h < 65536; h++) {
        float expected = processor_float((uint16_t)h), got = frit_half_to_float((uint16_t)h);
        if (isnan(expected))
            assert_true(isnan(got));
        else
            assert_int_equal(frit_bits_of_float(got), frit_bits_of_float(expected));
    }
    frit_rng rng;
    frit_rng_init(&rng, 1);
    for (int i = 0; i < 2000000; i++) {
        // Exponents near the range of f16, and others from time to time.
        uint32_t u = (uint32_t)frit_rng_next(&rng);
        if (i % 8 != 0) u = (u & 0x807fffff) | (90 + (uint32_t)frit_rng_next(&rng) % 56) << 23;
        float x = frit_float_of_bits(u);
        if (!isnan(x)) assert_int_equal(frit_float_to_half(x), processor_half(x));
    }
#else
    skip_because("this compiler or processor does not convert halves");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_decodes_to_its_definition),
        cmocka_unit_test(every_bf16_decodes_to_its_definition),
        cmocka_unit_test(every_half_and_bf16_survives_the_way_through_float),
        cmocka_unit_test(encoding_rounds_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(infinities_and_nans_keep_their_kind),
        cmocka_unit_test(halves_agree_with_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Compares decoders and encoders of every format with reference blocks.
//
// The reference has an input of 4 rows of 1024 numbers, importance weights for a row, and for each format the blocks
// ("NAME.bin"), their decoded numbers ("NAME.f32"), and both again with the weights used ("NAME.importance.*").
#include "support/support.h"

#include <math.h>

#include "quant/blocks.h"
#include "quant/dtype.h"

enum { N_ROWS = 4, N_COLUMNS = 1024, N = N_ROWS * N_COLUMNS };

typedef struct reference {
    char name[32];
    double rmse, rmse_importance;   // of decoded numbers against the input; -1: there is no such file
} reference;

static int read_references(reference rows[64])
{
    char *text = read_file(shared_path("goldens/quant/types.tsv"), NULL);
    int n = 0;
    for (char *line = strchr(text, '\n'); line && line[1] && n < 64; line = strchr(line + 1, '\n')) {
        assert_int_equal(
            sscanf(line + 1, "%*d %31s %*d %*d %lf %lf", rows[n].name, &rows[n].rmse, &rows[n].rmse_importance), 3);
        n += shared_has("goldens/quant/%s.f32", rows[n].name);
    }
    free(text);
    assert_in_range(n, shared_least(28), 28);
    return n;
}

static const frit_dtype_info *dtype_named(const char *name, frit_dtype *dtype)
{
    assert_true(frit_dtype_from_name(name, dtype));
    return frit_dtype_get(*dtype);
}

static void *read_exactly(const char *name, const char *suffix, size_t n_bytes)
{
    size_t n_read;
    char *bytes = read_file(shared_path("goldens/quant/%s%s", name, suffix), &n_read);
    assert_int_equal(n_read, n_bytes);
    return bytes;
}

// Decodes blocks at an address `offset` bytes after an aligned one; they end at the end of the memory.
static void decode_at(const frit_dtype_info *type, const char *blocks, size_t n_bytes, int64_t n, int offset,
                      float *values)
{
    char *memory = malloc(n_bytes + (size_t)offset);
    memcpy(memory + offset, blocks, n_bytes);
    type->decode(memory + offset, values, n);
    free(memory);
}

static void assert_same_bytes(const void *got, const void *expected, size_t n, size_t unit, const char *what)
{
    const char *a = got, *b = expected;
    size_t at = 0, n_different = 0;
    for (size_t i = n; i-- > 0;) {
        if (a[i] != b[i]) at = i, n_different++;
    }
    if (n_different > 0) {
        fail_msg("%s: %zu of %zu bytes differ, first in unit %zu at byte %zu", what, n_different, n, at / unit,
                 at % unit);
    }
}

static double root_mean_square_error(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < N; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sqrt(sum / N);
}

static void assert_decodes(const char *name, const char *bin, const char *f32, double rmse)
{
    frit_dtype dtype;
    const frit_dtype_info *type = dtype_named(name, &dtype);
    size_t n_bytes = (size_t)frit_dtype_row_bytes(dtype, N);
    char *blocks = read_exactly(name, bin, n_bytes);
    float *expected = read_exactly(name, f32, N * sizeof(float)),
          *input = read_exactly("input", ".f32", N * sizeof(float));
    float *values = malloc(N * sizeof(float));
    for (int offset = 0; offset < 8; offset++) {
        for (int i = 0; i < N; i++) values[i] = NAN;
        decode_at(type, blocks, n_bytes, N, offset, values);
        assert_same_bytes(values, expected, N * sizeof(float), sizeof(float), name);
    }
    double got = root_mean_square_error(values, input);
    if (fabs(got - rmse) > 1e-5 * rmse + 1e-9) fail_msg("%s%s: error %g, listed as %g", name, bin, got, rmse);
    free(values);
    free(input);
    free(expected);
    free(blocks);
}

static void every_reference_block_decodes_exactly_at_any_address(void **state)
{
    (void)state;
    reference rows[64];
    int n = read_references(rows);
    for (int i = 0; i < n; i++) {
        const char *name = rows[i].name;
        bool plain_file = strcmp(name, "f32") == 0 || strcmp(name, "f16") == 0 || strcmp(name, "bf16") == 0;
        if (rows[i].rmse >= 0) assert_decodes(name, ".bin", ".f32", rows[i].rmse);
        if (!plain_file) assert_decodes(name, ".importance.bin", ".importance.f32", rows[i].rmse_importance);
    }
}

// The reference's encoder has a fault: in an IQ3_S block, the groups after a group of 32 zeros are shifted.
static bool reference_is_wrong(const char *name, const float block[256])
{
    if (strcmp(name, "iq3_s") != 0) return false;
    for (int g = 0; g < 8; g++) {
        int n_zeros = 0;
        while (n_zeros < 32 && block[g * 32 + n_zeros] == 0) n_zeros++;
        if (n_zeros == 32) return true;
    }
    return false;
}

// Replaces wrong reference blocks by frit's, which must be closer to the input.
static void correct_reference(const char *name, const frit_dtype_info *type, const float *input, const char *ours,
                              char *reference_blocks)
{
    for (int64_t i = 0; i < N; i += type->block_elems) {
        int64_t at = i / type->block_elems * type->block_bytes;
        if (!reference_is_wrong(name, input + i)) continue;
        float a[256], b[256];
        double error_ours = 0, error_reference = 0;
        type->decode(ours + at, a, 256);
        type->decode(reference_blocks + at, b, 256);
        for (int j = 0; j < 256; j++) {
            error_ours += ((double)a[j] - input[i + j]) * ((double)a[j] - input[i + j]);
            error_reference += ((double)b[j] - input[i + j]) * ((double)b[j] - input[i + j]);
        }
        assert_true(error_ours < error_reference / 4);
        memcpy(reference_blocks + at, ours + at, (size_t)type->block_bytes);
    }
}

static void assert_encodes(const char *name, const char *bin, const float *importance, double rmse)
{
    frit_dtype dtype;
    const frit_dtype_info *type = dtype_named(name, &dtype);
    size_t row_bytes = (size_t)frit_dtype_row_bytes(dtype, N_COLUMNS), n_bytes = N_ROWS * row_bytes;
    char *expected = read_exactly(name, bin, n_bytes), what[80];
    float *input = read_exactly("input", ".f32", N * sizeof(float)), *decoded = malloc(N * sizeof(float));
    // Encodes row by row to an odd address; importance weights repeat for each row.
    char *memory = malloc(n_bytes + 1), *blocks = memory + 1;
    memset(memory, 0x55, n_bytes + 1);
    for (int row = 0; row < N_ROWS; row++) {
        type->encode(input + row * N_COLUMNS, blocks + (size_t)row * row_bytes, N_COLUMNS, importance);
    }
    correct_reference(name, type, input, blocks, expected);
    snprintf(what, sizeof what, "encoding %s%s", name, bin);
    assert_same_bytes(blocks, expected, n_bytes, (size_t)type->block_bytes, what);
    type->decode(blocks, decoded, N);
    assert_true(root_mean_square_error(decoded, input) <= rmse * (1 + 1e-5) + 1e-9);
    free(memory);
    free(decoded);
    free(input);
    free(expected);
}

static void every_encoder_writes_the_reference_blocks(void **state)
{
    (void)state;
    reference rows[64];
    int n = read_references(rows), n_encoders = 0;
    float *importance = read_exactly("importance", ".f32", N_COLUMNS * sizeof(float));
    for (int i = 0; i < n; i++) {
        frit_dtype dtype;
        const char *name = rows[i].name;
        if (!dtype_named(name, &dtype)->encode) continue;
        n_encoders++;
        bool plain_file = strcmp(name, "f32") == 0 || strcmp(name, "f16") == 0 || strcmp(name, "bf16") == 0;
        if (rows[i].rmse >= 0) assert_encodes(name, ".bin", NULL, rows[i].rmse);
        assert_encodes(name, plain_file ? ".bin" : ".importance.bin", importance, rows[i].rmse_importance);
    }
    assert_int_equal(n_encoders, n);
    free(importance);
}

static void plain_integers_and_doubles_decode_to_their_values(void **state)
{
    (void)state;
    float values[3];
    const struct {
        int8_t i8[3];
        int16_t i16[3];
        int32_t i32[3];
        int64_t i64[3];
        double f64[3];
    } from = {{-128, 0, 127},
              {-32768, 1, 32767},
              {INT32_MIN, 16777217, INT32_MAX},
              {INT64_MIN, 16777219, INT64_MAX},
              {-0.1, 1e300, 1 + 0x1p-25}};
    const float i8[] = {-128, 0, 127}, i16[] = {-32768, 1, 32767}, i32[] = {-0x1p31f, 16777216, 0x1p31f},
                i64[] = {-0x1p63f, 16777220, 0x1p63f}, f64[] = {-0.1f, INFINITY, 1};
    const struct {
        frit_dtype dtype;
        const void *blocks;
        const float *expected;
    } rows[] = {{FRIT_DTYPE_I8, from.i8, i8},
                {FRIT_DTYPE_I16, from.i16, i16},
                {FRIT_DTYPE_I32, from.i32, i32},
                {FRIT_DTYPE_I64, from.i64, i64},
                {FRIT_DTYPE_F64, from.f64, f64}};
    for (size_t r = 0; r < FRIT_COUNT(rows); r++) {
        size_t n_bytes = (size_t)frit_dtype_row_bytes(rows[r].dtype, 3);
        for (int offset = 0; offset < 8; offset++) {
            decode_at(frit_dtype_get(rows[r].dtype), rows[r].blocks, n_bytes, 3, offset, values);
            assert_same_bytes(values, rows[r].expected, sizeof values, sizeof(float), "integers");
        }
    }
}

// For any bits of a block, decoding stays inside the tables and the block, which sanitizers check.
static void any_bits_decode_without_harm(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 7);
    for (int i = 0; i < FRIT_DTYPE_COUNT; i++) {
        const frit_dtype_info *type = frit_dtype_get((frit_dtype)i);
        size_t n_bytes = (size_t)type->block_bytes;
        char *block = malloc(n_bytes);
        float *values = malloc((size_t)type->block_elems * sizeof(float)),
              *again = malloc((size_t)type->block_elems * sizeof(float));
        for (int trial = 0; trial < 100; trial++) {
            for (size_t b = 0; b < n_bytes; b++) block[b] = (char)(trial == 0 ? 0xff : frit_rng_next(&rng));
            decode_at(type, block, n_bytes, type->block_elems, 0, values);
            decode_at(type, block, n_bytes, type->block_elems, 1, again);
            assert_memory_equal(values, again, (size_t)type->block_elems * sizeof(float));
        }
        free(again);
        free(values);
        free(block);
    }
}

// Encodes a row of 256 numbers and decodes it again.
static void round_trip(const frit_dtype_info *type, frit_dtype dtype, const float input[256], bool weighted,
                       float output[256])
{
    float ones[256];
    for (int i = 0; i < 256; i++) ones[i] = 1;
    char *blocks = malloc((size_t)frit_dtype_row_bytes(dtype, 256));
    type->encode(input, blocks, 256, weighted ? ones : NULL);
    type->decode(blocks, output, 256);
    free(blocks);
}

static void encoders_keep_zeros_and_survive_numbers_that_are_not_finite(void **state)
{
    (void)state;
    const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -0.0f};
    frit_rng rng;
    frit_rng_init(&rng, 3);
    for (int i = 0; i < FRIT_DTYPE_COUNT; i++) {
        const frit_dtype_info *type = frit_dtype_get((frit_dtype)i);
        if (!type->encode) continue;
        for (int weighted = 0; weighted < 2; weighted++) {
            float input[256] = {0}, output[256];
            round_trip(type, (frit_dtype)i, input, weighted, output);
            for (int j = 0; j < 256; j++) {
                if (output[j] != 0) fail_msg("%s: zero becomes %g", type->name, (double)output[j]);
            }
            for (int trial = 0; trial < 200; trial++) {
                random_normal(&rng, input, 256, 1);
                for (int k = random_between(&rng, 1, 5); k > 0; k--) {
                    input[random_between(&rng, 0, 255)] = odd[random_between(&rng, 0, FRIT_COUNT(odd) - 1)];
                }
                round_trip(type, (frit_dtype)i, input, weighted, output);
            }
        }
    }
}

static void plain_floats_keep_infinities_and_nans(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_F32, FRIT_DTYPE_F16, FRIT_DTYPE_BF16};
    for (size_t i = 0; i < FRIT_COUNT(dtypes); i++) {
        float input[256] = {INFINITY, -INFINITY, NAN, -0.0f, 1}, output[256];
        round_trip(frit_dtype_get(dtypes[i]), dtypes[i], input, false, output);
        assert_true(output[0] == INFINITY && output[1] == -INFINITY && isnan(output[2]));
        assert_true(output[3] == 0 && signbit(output[3]) && output[4] == 1 && output[5] == 0);
    }
}

// Decoding and encoding a code gives the code, ties go to the even code, and numbers that are too large become the
// largest one.
static void fp8_is_rounded_to_the_nearest_code(void **state)
{
    (void)state;
    const frit_dtype_info *type = frit_dtype_get(FRIT_DTYPE_FP8);
    float values[256];
    uint8_t codes[256], again[256];
    for (int i = 0; i < 256; i++) codes[i] = (uint8_t)i;
    type->decode(codes, values, 256);
    type->encode(values, again, 256, NULL);
    assert_memory_equal(codes, again, 255);
    assert_true(isnan(values[0x7f]) && isnan(values[0xff]));
    assert_true(values[0x01] == 0x1p-9f && values[0x08] == 0x1p-6f && values[0x7e] == 448 &&
                values[0x87] == -7 * 0x1p-9f);
    for (int i = 0; i < 0x7e; i++) {
        const float middle = (values[i] + values[i + 1]) / 2;
        const float inputs[] = {middle, -middle, nextafterf(middle, 0), nextafterf(middle, INFINITY)};
        type->encode(inputs, again, 4, NULL);
        const uint8_t even = (uint8_t)(i + i % 2);
        assert_int_equal(again[0], even);
        assert_int_equal(again[1], even | 0x80);
        assert_int_equal(again[2], i);
        assert_int_equal(again[3], i + 1);
    }
    type->encode((float[]){449, -INFINITY, 1e30f, NAN}, again, 4, NULL);
    assert_true(again[0] == 0x7e && again[1] == 0xfe && again[2] == 0x7e && (again[3] & 0x7f) == 0x7f);
}

// Numbers on the grid of a block come back exactly; others have an error of at most a sixteenth, or of the smallest
// number of the block.
static void fp8_128_keeps_numbers_of_its_grid(void **state)
{
    (void)state;
    const frit_dtype_info *type = frit_dtype_get(FRIT_DTYPE_FP8_128);
    frit_rng rng;
    frit_rng_init(&rng, 8);
    for (int trial = 0; trial < 200; trial++) {
        frit_block_fp8_128 block = {.d = (float)ldexp(1 + frit_rng_double(&rng), random_between(&rng, -40, 10))}, again;
        float values[128], decoded[128];
        for (int i = 0; i < 128; i++)
            block.qs[i] = (uint8_t)(random_between(&rng, 0, 1) << 7 | random_between(&rng, 0, 0x7e));
        block.qs[trial % 128] = 0x7e;
        type->decode(&block, values, 128);
        type->encode(values, &again, 128, NULL);
        type->decode(&again, decoded, 128);
        for (int i = 0; i < 128; i++) assert_true(fabsf(decoded[i] - values[i]) <= 1e-6f * fabsf(values[i]));
        random_normal(&rng, values, 128, ldexpf(1, trial % 60 - 30));
        type->encode(values, &block, 128, NULL);
        type->decode(&block, decoded, 128);
        for (int i = 0; i < 128; i++)
            assert_true(fabsf(decoded[i] - values[i]) <= fabsf(values[i]) / 15.9f + block.d * 0x1p-10f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reference_block_decodes_exactly_at_any_address),
        cmocka_unit_test(every_encoder_writes_the_reference_blocks),
        cmocka_unit_test(plain_integers_and_doubles_decode_to_their_values),
        cmocka_unit_test(any_bits_decode_without_harm),
        cmocka_unit_test(encoders_keep_zeros_and_survive_numbers_that_are_not_finite),
        cmocka_unit_test(plain_floats_keep_infinities_and_nans),
        cmocka_unit_test(fp8_is_rounded_to_the_nearest_code),
        cmocka_unit_test(fp8_128_keeps_numbers_of_its_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

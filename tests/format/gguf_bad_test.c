// SPDX-License-Identifier: MIT
// Damaged GGUF files: each is refused with a status and an error that names the object, what was found and what was
// expected, and nothing is read outside the file.
#include "support/gguf_builder.h"
#include "support/support.h"

#include "format/gguf.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

// Builds the valid file that all rows damage: pairs 0 to 7 and tensors 0 to 2. The data ends without padding.
static void build_valid(gguf_builder *b)
{
    static const char *const words[] = {"a", "bc", "def"};
    gguf_add_text(b, "general.architecture", "llama");   // pair 0
    gguf_add_u32(b, "general.alignment", 32);            // pair 1
    gguf_add_bool(b, "test.flag", true);                 // pair 2
    gguf_add_array(b, "test.ints", FRIT_VALUE_I32, 3, (int32_t[]){1, 2, 3});
    gguf_add_texts(b, "test.words", 3, words);   // pair 4
    gguf_add_array(b, "test.bools", FRIT_VALUE_BOOL, 2, (uint8_t[]){0, 1});
    gguf_add_f32(b, "test.real", 0.5f);   // pair 6
    gguf_add_value(b, "test.long", FRIT_VALUE_I64, &(int64_t){-1});
    gguf_add_tensor(b, "tensor.a", FRIT_DTYPE_F32, 2, (int64_t[]){2, 8}, NULL);     // offsets 0 to 64
    gguf_add_tensor(b, "tensor.b", FRIT_DTYPE_Q8_0, 2, (int64_t[]){2, 64}, NULL);   // 64 to 200
    gguf_add_tensor(b, "tensor.c", FRIT_DTYPE_F32, 1, (int64_t[]){8}, NULL);        // 224 to 256
}

static frit_status parse_bytes(const void *bytes, size_t n)
{
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_new(&ckpt, "bad.gguf"));
    frit_status status = frit_gguf_parse(ckpt, "bad.gguf", bytes, n);
    frit_checkpoint_close(ckpt);
    return status;
}

// Parses a copy that ends exactly at the end of its allocation, so that sanitizers detect any read past it.
static frit_status parse_exactly(const void *bytes, size_t n)
{
    void *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    frit_status status = parse_bytes(copy, n);
    free(copy);
    return status;
}

static void check_sentence(const char *what, frit_status status, frit_status expected, const char *const phrases[3])
{
    if (status != expected)
        fail_msg("%s: status %d (\"%s\"), expected %d", what, (int)status, frit_error(), (int)expected);
    if (!strstr(frit_error(), "bad.gguf")) fail_msg("%s: \"%s\" does not name the file", what, frit_error());
    for (int i = 0; i < 3; i++)
        if (phrases[i] && !strstr(frit_error(), phrases[i]))
            fail_msg("%s: \"%s\" lacks \"%s\"", what, frit_error(), phrases[i]);
}

// ------------------------------------------------------------------------- one number of a valid file changed

#define MANY UINT64_MAX
#define HIGH (1ull << 63)

typedef struct row {
    const char *place;
    uint64_t value;
    int n_bytes;
    frit_status status;
    const char *phrases[3];   // object, found, expected
} row;

// clang-format off
static const row rows[] = {
    // header
    {"magic", 0x46554748, 4, FRIT_E_FORMAT, {"header", "48 47 55 46", "expected 47 47 55 46"}},
    {"magic", 0x47475546, 4, FRIT_E_UNSUPPORTED, {"header", "big-endian", "expected little-endian"}},
    {"magic", 0x6c6d6767, 4, FRIT_E_FORMAT, {"header", "67 67 6d 6c", "\"GGUF\""}},
    {"version", 0, 4, FRIT_E_FORMAT, {"header", "version 0", "expected 2 or 3"}},
    {"version", 1, 4, FRIT_E_UNSUPPORTED, {"header", "version 1", "expected 2 or 3"}},
    {"version", 4, 4, FRIT_E_UNSUPPORTED, {"header", "version 4", "expected 2 or 3"}},
    {"version", 1u << 31, 4, FRIT_E_FORMAT, {"header", "version 2147483648", "expected 2 or 3"}},
    {"version", 3u << 24, 4, FRIT_E_UNSUPPORTED, {"header", "big-endian", "expected little-endian"}},
    {"n tensors", 4, 8, FRIT_E_FORMAT, {"tensor 4 of 4", "empty name", NULL}},
    {"n tensors", 1000, 8, FRIT_E_FORMAT, {"header", "1000 tensors", "bytes remain"}},
    {"n tensors", HIGH, 8, FRIT_E_FORMAT, {"header", "9223372036854775808 tensors", "bytes remain"}},
    {"n tensors", MANY, 8, FRIT_E_FORMAT, {"header", "18446744073709551615 tensors", "bytes remain"}},
    {"n pairs", 1000, 8, FRIT_E_FORMAT, {"header", "1000 metadata pairs", "bytes remain"}},
    {"n pairs", HIGH, 8, FRIT_E_FORMAT, {"header", "9223372036854775808 metadata pairs", "bytes remain"}},
    {"n pairs", MANY, 8, FRIT_E_FORMAT, {"header", "18446744073709551615 metadata pairs", "bytes remain"}},
    {"n pairs", 9, 8, FRIT_E_FORMAT, {"tensor 1 of 3", "name of", "remain"}},
    // pairs
    {"pair 0 key length", 0, 8, FRIT_E_FORMAT, {"metadata pair 1 of 8", "empty key", NULL}},
    {"pair 0 key length", 500000, 8, FRIT_E_FORMAT, {"metadata pair 1 of 8", "key of 500000 bytes", "remain"}},
    {"pair 2 key length", HIGH, 8, FRIT_E_FORMAT,
     {"metadata pair 3 of 8", "key of 9223372036854775808 bytes", "remain"}},
    {"pair 2 key length", MANY, 8, FRIT_E_FORMAT,
     {"metadata pair 3 of 8", "key of 18446744073709551615 bytes", "remain"}},
    {"pair 2 key", 0, 1, FRIT_E_FORMAT, {"metadata pair 3 of 8", "key with a zero byte", NULL}},
    {"pair 2 key", 0xff, 1, FRIT_E_FORMAT, {"metadata pair 3 of 8", "key that is not valid UTF-8", NULL}},
    {"pair 0 type", 13, 4, FRIT_E_FORMAT,
     {"metadata key 'general.architecture'", "unknown value type 13", "expected 0 to 12"}},
    {"pair 0 type", UINT32_MAX, 4, FRIT_E_FORMAT,
     {"'general.architecture'", "unknown value type 4294967295", "expected 0 to 12"}},
    {"pair 0 value", 100000, 8, FRIT_E_FORMAT, {"'general.architecture'", "text of 100000 bytes", "remain"}},
    {"pair 0 value", HIGH, 8, FRIT_E_FORMAT, {"'general.architecture'", "text of 9223372036854775808 bytes", "remain"}},
    {"pair 0 value", MANY, 8, FRIT_E_FORMAT,
     {"'general.architecture'", "text of 18446744073709551615 bytes", "remain"}},
    {"pair 2 value", 2, 1, FRIT_E_FORMAT, {"'test.flag'", "value 2", "expected 0 or 1"}},
    {"pair 2 value", 255, 1, FRIT_E_FORMAT, {"'test.flag'", "value 255", "expected 0 or 1"}},
    {"pair 3 item type", 9, 4, FRIT_E_UNSUPPORTED, {"'test.ints'", "array of arrays", "expected an array of numbers"}},
    {"pair 3 item type", 99, 4, FRIT_E_FORMAT, {"'test.ints'", "unknown value type 99", "expected 0 to 12"}},
    {"pair 3 n items", 100000, 8, FRIT_E_FORMAT, {"'test.ints'", "100000 items of type i32", "remain"}},
    {"pair 3 n items", HIGH / 2, 8, FRIT_E_FORMAT, {"'test.ints'", "4611686018427387904 items", "remain"}},
    {"pair 3 n items", HIGH, 8, FRIT_E_FORMAT, {"'test.ints'", "9223372036854775808 items", "remain"}},
    {"pair 3 n items", MANY, 8, FRIT_E_FORMAT, {"'test.ints'", "18446744073709551615 items", "remain"}},
    {"pair 4 n items", MANY, 8, FRIT_E_FORMAT, {"'test.words'", "18446744073709551615 items of type text", "remain"}},
    {"pair 4 n items", HIGH / 8, 8, FRIT_E_FORMAT, {"'test.words'", "items of type text", "remain"}},
    {"pair 4 item 1", 99999, 8, FRIT_E_FORMAT, {"'test.words'", "array item of 99999 bytes", "remain"}},
    {"pair 4 item 2", MANY, 8, FRIT_E_FORMAT, {"'test.words'", "array item of 18446744073709551615 bytes", "remain"}},
    {"pair 5 item 1", 7, 1, FRIT_E_FORMAT, {"'test.bools'", "value 7", "expected 0 or 1"}},
    // alignment
    {"pair 1 value", 0, 4, FRIT_E_FORMAT, {"'general.alignment'", "is 0", "expected a multiple of 8"}},
    {"pair 1 value", 1, 4, FRIT_E_FORMAT, {"'general.alignment'", "is 1", "expected a multiple of 8"}},
    {"pair 1 value", 3, 4, FRIT_E_FORMAT, {"'general.alignment'", "is 3", "expected a multiple of 8"}},
    {"pair 1 value", 1u << 31, 4, FRIT_E_FORMAT,
     {"tensor 'tensor.b'", "offset 64", "multiple of the alignment 2147483648"}},
    {"pair 1 type", FRIT_VALUE_F32, 4, FRIT_E_FORMAT,
     {"'general.alignment'", "the f32 4.4", "expected a whole number"}},
    {"pair 1 type", FRIT_VALUE_I32, 4, FRIT_OK, {NULL, NULL, NULL}},
    // names of tensors
    {"tensor 1 name length", 0, 8, FRIT_E_FORMAT, {"tensor 2 of 3", "empty name", NULL}},
    {"tensor 1 name length", 256, 8, FRIT_E_FORMAT, {"tensor 2 of 3", "name of 256 bytes", "at most 255"}},
    {"tensor 1 name length", 77777, 8, FRIT_E_FORMAT, {"tensor 2 of 3", "name of 77777 bytes", "remain"}},
    {"tensor 1 name length", HIGH, 8, FRIT_E_FORMAT, {"tensor 2 of 3", "name of 9223372036854775808 bytes", "remain"}},
    {"tensor 1 name length", MANY, 8, FRIT_E_FORMAT, {"tensor 2 of 3", "name of 18446744073709551615 bytes", "remain"}},
    {"tensor 1 name", 0, 1, FRIT_E_FORMAT, {"tensor 2 of 3", "name with a zero byte", NULL}},
    {"tensor 1 name", 0xc0, 1, FRIT_E_FORMAT, {"tensor 2 of 3", "name that is not valid UTF-8", NULL}},
    // shapes
    {"tensor 0 n dims", 0, 4, FRIT_E_FORMAT, {"tensor 'tensor.a'", "0 dimensions", "expected 1 to 4"}},
    {"tensor 0 n dims", 5, 4, FRIT_E_FORMAT, {"tensor 'tensor.a'", "5 dimensions", "expected 1 to 4"}},
    {"tensor 0 n dims", UINT32_MAX, 4, FRIT_E_FORMAT,
     {"tensor 'tensor.a'", "4294967295 dimensions", "expected 1 to 4"}},
    {"tensor 0 dim 0", 0, 8, FRIT_E_FORMAT, {"tensor 'tensor.a'", "dimension of 0", "expected at least 1"}},
    {"tensor 0 dim 1", 0, 8, FRIT_E_FORMAT, {"tensor 'tensor.a'", "dimension of 0", "expected at least 1"}},
    {"tensor 0 dim 0", MANY, 8, FRIT_E_FORMAT, {"tensor 'tensor.a'", "dimension of -1", "expected at least 1"}},
    {"tensor 0 dim 1", HIGH, 8, FRIT_E_FORMAT,
     {"tensor 'tensor.a'", "dimension of -9223372036854775808", "expected at least 1"}},
    {"tensor 0 dim 1", 1ull << 61, 8, FRIT_E_FORMAT, {"tensor 'tensor.a'", "more than 2^63 - 1 elements", NULL}},
    {"tensor 0 dim 1", 1ull << 59, 8, FRIT_E_FORMAT, {"tensor 'tensor.a'", "size in bytes that exceeds 2^64", NULL}},
    {"tensor 0 dim 1", 1ull << 40, 8, FRIT_E_FORMAT, {"tensor 'tensor.a'", "needs bytes", "truncated"}},
    {"tensor 0 dim 1", 3, 8, FRIT_E_FORMAT, {"tensor 'tensor.b'", "offset 64", "inside tensor 'tensor.a'"}},
    {"tensor 1 dim 0", 63, 8, FRIT_E_FORMAT,
     {"tensor 'tensor.b'", "rows of 63 elements", "a multiple of 32 for type q8_0"}},
    // types
    {"tensor 0 type", 4, 4, FRIT_E_UNSUPPORTED, {"tensor 'tensor.a'", "type 4 (q4_2)", "removed"}},
    {"tensor 0 type", 5, 4, FRIT_E_UNSUPPORTED, {"tensor 'tensor.a'", "type 5 (q4_3)", "removed"}},
    {"tensor 0 type", 31, 4, FRIT_E_UNSUPPORTED, {"tensor 'tensor.a'", "type 31 (q4_0_4_4)", "removed"}},
    {"tensor 0 type", 38, 4, FRIT_E_UNSUPPORTED, {"tensor 'tensor.a'", "type 38 (iq4_nl_8_8)", "removed"}},
    {"tensor 0 type", 9, 4, FRIT_E_UNSUPPORTED, {"tensor 'tensor.a'", "type 9", "not a known number format"}},
    {"tensor 0 type", 1000, 4, FRIT_E_UNSUPPORTED, {"tensor 'tensor.a'", "type 1000", "not a known number format"}},
    {"tensor 0 type", UINT32_MAX, 4, FRIT_E_UNSUPPORTED,
     {"tensor 'tensor.a'", "type 4294967295", "not a known number format"}},
    {"tensor 2 type", 28, 4, FRIT_E_FORMAT, {"tensor 'tensor.c'", "needs bytes", "truncated"}},
    // offsets
    {"tensor 1 offset", 65, 8, FRIT_E_FORMAT, {"tensor 'tensor.b'", "offset 65", "multiple of the alignment 32"}},
    {"tensor 1 offset", 0, 8, FRIT_E_FORMAT, {"tensor 'tensor.", "offset 0", "inside tensor 'tensor."}},
    {"tensor 1 offset", 32, 8, FRIT_E_FORMAT, {"tensor 'tensor.b'", "offset 32", "inside tensor 'tensor.a'"}},
    {"tensor 2 offset", 192, 8, FRIT_E_FORMAT, {"tensor 'tensor.c'", "offset 192", "inside tensor 'tensor.b'"}},
    {"tensor 2 offset", 256, 8, FRIT_E_FORMAT, {"tensor 'tensor.c'", "needs bytes", "truncated"}},
    {"tensor 2 offset", 1ull << 40, 8, FRIT_E_FORMAT, {"tensor 'tensor.c'", "needs bytes 1099511", "truncated"}},
    {"tensor 2 offset", HIGH, 8, FRIT_E_FORMAT, {"tensor 'tensor.c'", "needs bytes 92233720368547", "truncated"}},
    {"tensor 2 offset", MANY - 31, 8, FRIT_E_FORMAT, {"tensor 'tensor.c'", "offset 18446744073709551584", "exceed"}},
    {"tensor 2 offset", MANY - 63, 8, FRIT_E_FORMAT,
     {"tensor 'tensor.c'", "offset 18446744073709551552", "exceeds 2^64"}},
    {"tensor 2 offset", MANY, 8, FRIT_E_FORMAT, {"tensor 'tensor.c'", "offset 18446744073709551615", "multiple"}},
};
// clang-format on

static void a_changed_number_is_refused_with_a_clear_sentence(void **state)
{
    (void)state;
    gguf_builder b = {0};
    build_valid(&b);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char what[100];
        snprintf(what, sizeof what, "%s = %" PRIu64, rows[i].place, rows[i].value);
        frit_buf file = gguf_build(&b);
        gguf_patch(&b, &file, rows[i].place, rows[i].value, (size_t)rows[i].n_bytes);
        frit_status status = parse_exactly(file.data, file.len);
        if (rows[i].status == FRIT_OK)
            assert_ok(status);
        else
            check_sentence(what, status, rows[i].status, rows[i].phrases);
        frit_buf_free(&file);
    }
    gguf_builder_free(&b);
}

// --------------------------------------------------------------------------------- files built differently

static void add_twin_pairs(gguf_builder *b)
{
    gguf_add_u32(b, "test.twin", 1);
    gguf_add_text(b, "test.twin", "x");
}

static void add_twin_tensors(gguf_builder *b)
{
    gguf_add_tensor(b, "twin", FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
    gguf_add_tensor(b, "other", FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
    gguf_add_tensor(b, "twin", FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
}

static void add_text_alignment(gguf_builder *b)
{
    gguf_add_text(b, "general.alignment", "32");
}

static void add_negative_alignment(gguf_builder *b)
{
    gguf_add_i32(b, "general.alignment", -32);
}

static void add_bool_alignment(gguf_builder *b)
{
    gguf_add_bool(b, "general.alignment", true);
}

static void add_huge_alignment(gguf_builder *b)
{
    gguf_add_value(b, "general.alignment", FRIT_VALUE_U64, &(uint64_t){1ull << 40});
}

static char long_text[70000];

static void add_long_key(gguf_builder *b)
{
    memset(long_text, 'k', sizeof long_text - 1);
    gguf_add_u32(b, long_text, 1);
}

static void add_long_name(gguf_builder *b)
{
    memset(long_text, 0, sizeof long_text);
    memset(long_text, 'n', 256);
    gguf_add_tensor(b, long_text, FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
}

static void add_long_bad_key(gguf_builder *b)
{
    memset(long_text, 0, sizeof long_text);
    memset(long_text, 'k', 60000);
    gguf_add_bool(b, long_text, true);
    b->sections[1].data[b->sections[1].len - 1] = 9;
}

static void add_nested_arrays(gguf_builder *b)
{
    static uint8_t nest[10000 * 12];   // item type 9 | length 1, repeated
    for (size_t k = 0; k < sizeof nest; k += 12) nest[k] = FRIT_VALUE_ARRAY, nest[k + 4] = 1;
    gguf_add_array(b, "test.nest", FRIT_VALUE_U8, sizeof nest, nest);
    memcpy(b->sections[1].data + 8 + strlen("test.nest") + 4, &(uint32_t){FRIT_VALUE_ARRAY}, 4);
}

static void add_four_large_dimensions(gguf_builder *b)
{
    gguf_add_tensor(b, "wide", FRIT_DTYPE_I8, 4, (int64_t[]){1, 1, 1, 1}, NULL);
    for (size_t i = 0; i < 4; i++) memcpy(b->sections[2].data + 16 + 8 * i, &(uint64_t){1u << 31}, 8);
}

static const struct {
    const char *what;
    void (*add)(gguf_builder *b);
    frit_status status;
    const char *phrases[3];
} built[] = {
    {"a key twice", add_twin_pairs, FRIT_E_FORMAT, {"metadata key 'test.twin'", "occurs twice", NULL}},
    {"a tensor twice", add_twin_tensors, FRIT_E_FORMAT, {"tensor 'twin'", "occurs twice", NULL}},
    {"alignment as text", add_text_alignment, FRIT_E_FORMAT, {"'general.alignment'", "is text", "a whole number"}},
    {"alignment as bool", add_bool_alignment, FRIT_E_FORMAT, {"'general.alignment'", "is bool", "a whole number"}},
    {"alignment -32", add_negative_alignment, FRIT_E_FORMAT, {"'general.alignment'", "is -32", "multiple of 8"}},
    {"alignment 2^40", add_huge_alignment, FRIT_E_FORMAT, {"'general.alignment'", "is 1099511627776", "multiple of 8"}},
    {"a key of 69999 bytes", add_long_key, FRIT_E_FORMAT, {"metadata pair 1 of 1", "69999 bytes", "at most 65535"}},
    {"a name of 256 bytes", add_long_name, FRIT_E_FORMAT, {"tensor 1 of 1", "256 bytes", "at most 255"}},
    {"a long key in a sentence", add_long_bad_key, FRIT_E_FORMAT, {"kkk...' is a bool", "value 9", "0 or 1"}},
    {"arrays in arrays", add_nested_arrays, FRIT_E_UNSUPPORTED, {"'test.nest'", "array of arrays", "expected"}},
    {"a product of 2^124", add_four_large_dimensions, FRIT_E_FORMAT, {"tensor 'wide'", "more than 2^63 - 1", NULL}},
};

static void files_built_wrongly_are_refused_with_a_clear_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(built); i++) {
        gguf_builder b = {0};
        built[i].add(&b);
        frit_buf file = gguf_build(&b);
        check_sentence(built[i].what, parse_exactly(file.data, file.len), built[i].status, built[i].phrases);
        frit_buf_free(&file);
        gguf_builder_free(&b);
    }
}

static void a_vocabulary_without_tensors_is_fine(void **state)
{
    (void)state;
    gguf_builder b = {0};
    gguf_add_text(&b, "tokenizer.ggml.model", "gpt2");
    frit_buf file = gguf_build(&b);
    assert_ok(parse_exactly(file.data, file.len));
    gguf_builder_free(&b);
    frit_buf_free(&file);
    file = gguf_build(&b);   // an empty file
    assert_int_equal(file.len, 24);
    assert_ok(parse_exactly(file.data, file.len));
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

static void the_longest_names_are_accepted(void **state)
{
    (void)state;
    gguf_builder b = {0};
    memset(long_text, 0, sizeof long_text);
    memset(long_text, 'x', 65535);
    gguf_add_u32(&b, long_text, 1);
    long_text[255] = 0;
    gguf_add_tensor(&b, long_text, FRIT_DTYPE_I8, 1, (int64_t[]){32}, NULL);
    frit_buf file = gguf_build(&b);
    assert_ok(parse_exactly(file.data, file.len));
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

// ---------------------------------------------------------------------------------------------- truncation

static void a_file_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    gguf_builder b = {0};
    build_valid(&b);
    frit_buf file = gguf_build(&b);
    assert_ok(parse_exactly(file.data, file.len));
    for (size_t n = 0; n < file.len; n++) {
        if (parse_exactly(file.data, n) != FRIT_E_FORMAT)
            fail_msg("%zu of %zu bytes: \"%s\"", n, file.len, frit_error());
        if (!strstr(frit_error(), "bad.gguf: ")) fail_msg("%zu bytes: \"%s\" does not name the file", n, frit_error());
        if (!strstr(frit_error(), "truncated") && !strstr(frit_error(), "remain"))
            fail_msg("%zu bytes: \"%s\" does not say that bytes are missing", n, frit_error());
    }
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

// Changes any byte to some values: the file is refused or accepted, but never read outside its bounds, which sanitizers
// check.
static void a_file_with_any_byte_changed_does_no_harm(void **state)
{
    (void)state;
    static const unsigned char values[] = {0, 1, 8, 9, 0x7f, 0x80, 0xff};
    gguf_builder b = {0};
    build_valid(&b);
    frit_buf file = gguf_build(&b);
    size_t n_refused = 0;
    for (size_t at = 0; at < gguf_place(&b, "data"); at++) {
        char before = file.data[at];
        for (size_t i = 0; i < sizeof values; i++) {
            file.data[at] = (char)values[i];
            n_refused += parse_exactly(file.data, file.len) != FRIT_OK;
        }
        file.data[at] = before;
    }
    assert_true(n_refused > 500);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

// ------------------------------------------------------------------------------------------ through files

static void broken_files_are_refused_mapped_and_read(void **state)
{
    (void)state;
    gguf_builder b = {0};
    build_valid(&b);
    frit_buf file = gguf_build(&b);
    const char *path = temp_path("bad.gguf");
    for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
        frit_checkpoint_options options = {.no_mmap = no_mmap};
        frit_checkpoint *ckpt;
        write_file(path, file.data, file.len);
        assert_ok(frit_checkpoint_open(&ckpt, path, &options));
        assert_int_equal(ckpt->n_tensors, 3);
        frit_checkpoint_close(ckpt);
        for (size_t n = 0; n < file.len; n += n < 40 ? 1 : 37) {
            write_file(path, file.data, n);
            assert_fails(frit_checkpoint_open(&ckpt, path, &options), FRIT_E_FORMAT, "bad.gguf");
            assert_null(ckpt);
        }
        for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
            if (rows[i].status == FRIT_OK || strcmp(rows[i].place, "magic") == 0) continue;
            frit_buf broken = gguf_build(&b);
            gguf_patch(&b, &broken, rows[i].place, rows[i].value, (size_t)rows[i].n_bytes);
            write_file(path, broken.data, broken.len);
            check_sentence(rows[i].place, frit_checkpoint_open(&ckpt, path, &options), rows[i].status, rows[i].phrases);
            frit_buf_free(&broken);
        }
    }
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

static void the_last_tensor_may_end_at_the_end_of_a_page(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    gguf_builder b = {0};
    build_valid(&b);
    frit_buf file = gguf_build(&b);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && file.len < page);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    frit_checkpoint *ckpt;
    float values[64];
    assert_ok(frit_checkpoint_new(&ckpt, "bad.gguf"));
    assert_ok(frit_gguf_parse(ckpt, "bad.gguf", memcpy(pages + page - file.len, file.data, file.len), file.len));
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_tensor *t = &ckpt->tensors[i];
        int64_t n_rows = frit_tensor_n_elems(t) / t->shape[t->n_dims - 1];
        for (int64_t k = 0; k < n_rows; k++) frit_tensor_decode_row(t, k, values);
    }
    frit_checkpoint_close(ckpt);
    munmap(pages, 2 * page);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_number_is_refused_with_a_clear_sentence),
        cmocka_unit_test(files_built_wrongly_are_refused_with_a_clear_sentence),
        cmocka_unit_test(a_vocabulary_without_tensors_is_fine),
        cmocka_unit_test(the_longest_names_are_accepted),
        cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_file_with_any_byte_changed_does_no_harm),
        cmocka_unit_test(broken_files_are_refused_mapped_and_read),
        cmocka_unit_test(the_last_tensor_may_end_at_the_end_of_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

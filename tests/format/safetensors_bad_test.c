// SPDX-License-Identifier: MIT
// Damaged safetensors files and sets: each is refused with an error, and nothing is read out of bounds.
#include "format/safetensors.h"
#include "format/safetensors_build.h"

#include <sys/stat.h>

static frit_status parse(image made)
{
    // An exact copy on the heap, so that sanitizers detect a read past the end.
    uint8_t *bytes = malloc(made.n_bytes + (made.n_bytes == 0));
    memcpy(bytes, made.bytes, made.n_bytes);
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_new(&ckpt, "bad"));
    frit_status status = frit_safetensors_parse(ckpt, "bad", bytes, made.n_bytes);
    frit_checkpoint_close(ckpt);
    free(bytes);
    return status;
}

#define ENTRY(dtype, shape, begin, end) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static const struct {
    const char *header;
    size_t n_data;
    frit_status status;
    const char *part;   // of the sentence
} rows[] = {
    {"", 0, FRIT_E_FORMAT, "does not begin with '{'"},
    {" {}", 0, FRIT_E_FORMAT, "does not begin with '{'"},
    {"[]", 0, FRIT_E_FORMAT, "does not begin with '{'"},
    {"{", 0, FRIT_E_FORMAT, "not valid JSON"},
    {"{}x", 0, FRIT_E_FORMAT, "not valid JSON"},
    {"{\"a\":1,}", 0, FRIT_E_FORMAT, "not valid JSON"},
    {"{\"a\\u0000b\":1}", 0, FRIT_E_FORMAT, "not valid JSON"},
    {"{\"\xff\":1}", 0, FRIT_E_FORMAT, "not valid JSON"},
    {"{\"a\":1,\"a\":2}", 0, FRIT_E_FORMAT, "duplicate"},
    {"{\"a\":" ENTRY("F32", "[1]", 0, 4) ",\"a\":" ENTRY("F32", "[1]", 0, 4) "}", 4, FRIT_E_FORMAT, "duplicate"},
    {"{\"a\":1}", 0, FRIT_E_FORMAT, "entry 'a' is not an object"},
    {"{\"a\":[]}", 0, FRIT_E_FORMAT, "entry 'a' is not an object"},
    {"{\"a\":{}}", 0, FRIT_E_FORMAT, "'a' has no dtype"},
    {"{\"a\":{\"dtype\":7}}", 0, FRIT_E_FORMAT, "'a' has no dtype"},
    {"{\"a\":" ENTRY("Q4_K", "[1]", 0, 4) "}", 4, FRIT_E_UNSUPPORTED, "'a' has the unknown type 'Q4_K'"},
    {"{\"a\":" ENTRY("", "[1]", 0, 4) "}", 4, FRIT_E_UNSUPPORTED, "unknown type ''"},
    {"{\"a\":" ENTRY("F8_E4M3", "[4]", 0, 4) "}", 4, FRIT_E_UNSUPPORTED, "'a' has the type F8_E4M3"},
    {"{\"a\":" ENTRY("U8", "[4]", 0, 4) "}", 4, FRIT_E_UNSUPPORTED, "type U8"},
    {"{\"a\":" ENTRY("BOOL", "[4]", 0, 4) "}", 4, FRIT_E_UNSUPPORTED, "type BOOL"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, FRIT_E_FORMAT, "'a' has no shape"},
    {"{\"a\":" ENTRY("F32", "4", 0, 4) "}", 4, FRIT_E_FORMAT, "'a' has no shape"},
    {"{\"a\":" ENTRY("F32", "[-1]", 0, 4) "}", 4, FRIT_E_FORMAT, "dimension 0 of tensor 'a'"},
    {"{\"a\":" ENTRY("F32", "[1,1.0]", 0, 4) "}", 4, FRIT_E_FORMAT, "dimension 1 of tensor 'a'"},
    {"{\"a\":" ENTRY("F32", "[\"1\"]", 0, 4) "}", 4, FRIT_E_FORMAT, "dimension 0 of tensor 'a'"},
    {"{\"a\":" ENTRY("F32", "[99999999999999999999]", 0, 4) "}", 4, FRIT_E_FORMAT, "not valid JSON"},
    {"{\"a\":" ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, FRIT_E_FORMAT, "has 9 dimensions"},
    {"{\"a\":" ENTRY("F32", "[0]", 0, 0) "}", 0, FRIT_E_UNSUPPORTED, "is empty"},
    {"{\"a\":" ENTRY("F32", "[4294967296,4294967296]", 0, 0) "}", 0, FRIT_E_FORMAT, "more than 2^64"},
    {"{\"a\":" ENTRY("F32", "[4611686018427387904]", 0, 0) "}", 0, FRIT_E_FORMAT, "does not fill whole bytes"},
    {"{\"a\":" ENTRY("F4", "[3]", 0, 1) "}", 1, FRIT_E_FORMAT, "does not fill whole bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, FRIT_E_FORMAT, "'a' has no data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, FRIT_E_FORMAT, "'a' has no data_offsets"},
    {"{\"a\":" ENTRY("F32", "[1]", 0, 4.0) "}", 4, FRIT_E_FORMAT, "data_offsets of tensor 'a'"},
    {"{\"a\":" ENTRY("F32", "[1]", -4, 0) "}", 4, FRIT_E_FORMAT, "data_offsets of tensor 'a'"},
    {"{\"a\":" ENTRY("F32", "[1]", 4, 0) "}", 4, FRIT_E_FORMAT, "after its end"},
    {"{\"a\":" ENTRY("F32", "[2]", 0, 8) "}", 4, FRIT_E_FORMAT, "only 4 bytes of data"},
    {"{\"a\":" ENTRY("F32", "[1]", 0, 9223372036854775807) "}", 4, FRIT_E_FORMAT, "only 4 bytes of data"},
    {"{\"a\":" ENTRY("F32", "[2]", 0, 4) "}", 4, FRIT_E_FORMAT, "need 8"},
    {"{\"a\":" ENTRY("F32", "[1]", 0, 8) "}", 8, FRIT_E_FORMAT, "has 8 bytes"},
    {"{\"a\":" ENTRY("F32", "[1]", 4, 8) "}", 8, FRIT_E_FORMAT, "before tensor 'a', belong to no tensor"},
    {"{\"a\":" ENTRY("F32", "[1]", 0, 4) "}", 8, FRIT_E_FORMAT, "end at byte 4 of the data"},
    {"{}", 1, FRIT_E_FORMAT, "end at byte 0 of the data"},
    {"{\"a\":" ENTRY("F32", "[2]", 0, 8) ",\"b\":" ENTRY("F32", "[1]", 4, 8) "}", 8, FRIT_E_FORMAT,
     "'a' and 'b' overlap at byte 4"},
    {"{\"a\":" ENTRY("F32", "[1]", 0, 4) ",\"b\":" ENTRY("F32", "[1]", 0, 4) "}", 4, FRIT_E_FORMAT,
     "'a' and 'b' overlap at byte 0"},
    {"{\"a\":" ENTRY("I8", "[2]", 0, 2) ",\"b\":" ENTRY("I8", "[2]", 3, 5) "}", 5, FRIT_E_FORMAT,
     "bytes 2 to 3 of the data"},
    {"{\"__metadata__\":[]}", 0, FRIT_E_FORMAT, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, FRIT_E_FORMAT, "'a' in __metadata__ is not text"},
};

static void every_fault_of_a_header_has_its_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        image made = image_of(rows[i].header, rows[i].n_data);
        frit_status status = parse(made);
        if (status != rows[i].status || !strstr(frit_error(), rows[i].part))
            fail_msg("row %zu, %s: got %d \"%s\", expected %d with \"%s\"", i, rows[i].header, (int)status,
                     frit_error(), (int)rows[i].status, rows[i].part);
        free(made.bytes);
    }
}

static void a_wrong_header_length_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        const char *part;
    } lengths[] = {{0, "does not begin"},        {1, "not valid JSON"},  {3, "the file ends after 2"},
                   {100000000, "the file ends"}, {100000001, "at most"}, {UINT64_MAX, "at most"},
                   {UINT64_MAX - 7, "at most"},  {1ull << 63, "at most"}};
    for (size_t i = 0; i < FRIT_COUNT(lengths); i++) {
        image made = image_with_length(lengths[i].length, "{}", 0);
        assert_fails(parse(made), FRIT_E_FORMAT, lengths[i].part);
        free(made.bytes);
    }
}

static void a_file_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    image made = image_of("{\"__metadata__\":{\"format\":\"pt\"},\"a\":" ENTRY("BF16", "[2,3]", 0, 12) ",\"b\":" ENTRY(
                              "F32", "[]", 12, 16) "}  ",
                          16);
    assert_ok(parse(made));
    for (size_t n = 0; n < made.n_bytes; n++)
        if (parse((image){made.bytes, n}) != FRIT_E_FORMAT) fail_msg("cut to %zu bytes", n);
    free(made.bytes);
}

static void any_single_wrong_byte_is_survived(void **state)
{
    (void)state;
    image made = image_of("{\"a\":" ENTRY("BF16", "[2,3]", 0, 12) ",\"b\":" ENTRY("F32", "[]", 12, 16) "}", 16);
    size_t n_refused = 0, n_header = made.n_bytes - 16;
    for (size_t at = 0; at < n_header; at++) {
        uint8_t saved = made.bytes[at];
        for (int value = 0; value < 256; value++) {
            made.bytes[at] = (uint8_t)value;
            n_refused += parse(made) != FRIT_OK;
        }
        made.bytes[at] = saved;
    }
    assert_true(n_refused > 200 * n_header);   // only names may change freely
    free(made.bytes);
}

static void deep_json_is_refused(void **state)
{
    (void)state;
    static const char *const openers[] = {"[", "{\"a\":"};
    for (size_t i = 0; i < FRIT_COUNT(openers); i++) {
        frit_buf text = {0};
        frit_buf_text(&text, "{\"a\":");
        for (int depth = 0; depth < 100000; depth++) frit_buf_text(&text, openers[i]);
        image made = image_of(text.data, 0);
        assert_fails(parse(made), FRIT_E_FORMAT, "maximum parsing depth");
        free(made.bytes);
        frit_buf_free(&text);
    }
}

static void a_git_lfs_pointer_is_told_from_a_model(void **state)
{
    (void)state;
    static const char text[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
    const char *path = temp_path("pointer.safetensors");
    write_file(path, text, strlen(text));
    frit_checkpoint *ckpt;
    assert_fails(frit_checkpoint_open(&ckpt, path, NULL), FRIT_E_FORMAT, "git lfs pull");
    assert_null(ckpt);
}

// ---------------------------------------------------------------------------------------- sharded sets

static const char *folder_path;   // two valid shards: one.safetensors has a, two.safetensors has b and c

static const char *in_folder(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder_path, name);
    return path;
}

static void write_shard(const char *name, const char *header, size_t n_data)
{
    image made = image_of(header, n_data);
    write_file(in_folder(name), made.bytes, made.n_bytes);
    free(made.bytes);
}

static frit_status count(void *ctx, const frit_safetensors_entry *entry)
{
    (void)entry;
    ++*(size_t *)ctx;
    return FRIT_OK;
}

static frit_status read_set(const char *index, size_t *n_tensors)
{
    write_file(in_folder("model.safetensors.index.json"), index, strlen(index));
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_new(&ckpt, folder_path));
    *n_tensors = 0;
    frit_status status =
        frit_safetensors_read_folder(ckpt, folder_path, &(frit_checkpoint_options){0}, count, n_tensors);
    frit_checkpoint_close(ckpt);
    return status;
}

static int make_shards(void **state)
{
    (void)state;
    static char path[4096];
    snprintf(path, sizeof path, "%s", temp_path("set"));
    folder_path = path;
    if (mkdir(folder_path, 0700) != 0) return -1;
    write_shard("one.safetensors", "{\"a\":" ENTRY("F32", "[1]", 0, 4) "}", 4);
    write_shard("two.safetensors", "{\"b\":" ENTRY("F32", "[1]", 0, 4) ",\"c\":" ENTRY("F8_E5M2", "[1]", 4, 5) "}", 5);
    write_shard("again.safetensors", "{\"a\":" ENTRY("F32", "[1]", 0, 4) "}", 4);
    write_file(in_folder("cut.safetensors"), "\4\0\0", 3);
    return 0;
}

static void shards_are_read_together(void **state)
{
    (void)state;
    size_t n;
    assert_ok(read_set("{\"metadata\":{\"total_size\":9},\"weight_map\":{\"a\":\"one.safetensors\","
                       "\"b\":\"two.safetensors\",\"c\":\"two.safetensors\"}}",
                       &n));
    assert_int_equal(n, 3);
}

static void every_fault_of_an_index_has_its_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *index;
        frit_status status;
        const char *part;
    } faults[] = {
        {"", FRIT_E_FORMAT, "not valid JSON"},
        {"[]", FRIT_E_FORMAT, "no weight_map"},
        {"{}", FRIT_E_FORMAT, "no weight_map"},
        {"{\"weight_map\":[]}", FRIT_E_FORMAT, "no weight_map"},
        {"{\"weight_map\":{}}", FRIT_E_FORMAT, "no weight_map"},
        {"{\"weight_map\":{\"a\":1}}", FRIT_E_FORMAT, "the file of tensor 'a' is not text"},
        {"{\"weight_map\":{\"a\":\"\"}}", FRIT_E_FORMAT, "not a file name without folders"},
        {"{\"weight_map\":{\"a\":\"..\"}}", FRIT_E_FORMAT, "not a file name without folders"},
        {"{\"weight_map\":{\"a\":\"../one.safetensors\"}}", FRIT_E_FORMAT, "not a file name without folders"},
        {"{\"weight_map\":{\"a\":\"/etc/one.safetensors\"}}", FRIT_E_FORMAT, "not a file name without folders"},
        {"{\"weight_map\":{\"a\":\"x\\\\one.safetensors\"}}", FRIT_E_FORMAT, "not a file name without folders"},
        {"{\"weight_map\":{\"a\":\"c:one.safetensors\"}}", FRIT_E_FORMAT, "not a file name without folders"},
        {"{\"weight_map\":{\"a\":\"pytorch_model-1.bin\"}}", FRIT_E_UNSUPPORTED, "is not a safetensors file"},
        {"{\"weight_map\":{\"a\":\"none.safetensors\"}}", FRIT_E_NOT_FOUND, "shard none.safetensors"},
        {"{\"weight_map\":{\"a\":\"cut.safetensors\"}}", FRIT_E_FORMAT, "cut.safetensors: the file has 3 bytes"},
        {"{\"weight_map\":{\"z\":\"one.safetensors\"}}", FRIT_E_FORMAT, "tensor 'z'"},
        {"{\"weight_map\":{\"a\":\"two.safetensors\"}}", FRIT_E_FORMAT, "is in no shard"},
        {"{\"weight_map\":{\"b\":\"one.safetensors\",\"c\":\"two.safetensors\"}}", FRIT_E_FORMAT,
         "'b' is in two.safetensors, but"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"again.safetensors\"}}", FRIT_E_FORMAT,
         "'a' is in two shards"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"a\":\"two.safetensors\"}}", FRIT_E_FORMAT, "is in no shard"},
    };
    for (size_t i = 0; i < FRIT_COUNT(faults); i++) {
        size_t n;
        frit_status status = read_set(faults[i].index, &n);
        if (status != faults[i].status || !strstr(frit_error(), faults[i].part))
            fail_msg("%s: got %d \"%s\", expected %d with \"%s\"", faults[i].index, (int)status, frit_error(),
                     (int)faults[i].status, faults[i].part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_of_a_header_has_its_sentence),
        cmocka_unit_test(a_wrong_header_length_is_refused),
        cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
        cmocka_unit_test(any_single_wrong_byte_is_survived),
        cmocka_unit_test(deep_json_is_refused),
        cmocka_unit_test(a_git_lfs_pointer_is_told_from_a_model),
        cmocka_unit_test(shards_are_read_together),
        cmocka_unit_test(every_fault_of_an_index_has_its_sentence),
    };
    return cmocka_run_group_tests(tests, make_shards, NULL);
}

// SPDX-License-Identifier: MIT
// Importance files: both formats, experts, and files that are not importance files. Files that are encoded with
// importance have the bytes of llama-quantize.
#include "convert/convert.h"
#include "format/gguf.h"
#include "format/rows.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include <math.h>

// ------------------------------------------------------------------------------------- files

typedef struct bytes {
    uint8_t data[4096];
    size_t n;
} bytes;

static void put(bytes *b, const void *data, size_t n)
{
    assert_true(b->n + n <= sizeof b->data);
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

static void put_i32(bytes *b, int32_t value)
{
    put(b, &value, sizeof value);
}

static void put_entry(bytes *b, const char *name, int32_t n_calls, const float *values, int32_t n)
{
    put_i32(b, (int32_t)strlen(name));
    put(b, name, strlen(name));
    put_i32(b, n_calls);
    put_i32(b, n);
    put(b, values, (size_t)n * sizeof *values);
}

static bytes legacy_file(void)
{
    static const float values[] = {2, 4, 0, 8};
    bytes b = {.n = 0};
    put_i32(&b, 2);
    put_entry(&b, "blk.0.attn_q.weight", 2, values, 4);
    put_entry(&b, "blk.0.ffn_up.weight", 4, values, 2);
    put_i32(&b, 7);
    put_i32(&b, 13);
    put(&b, "/home/me/text", 13);
    return b;
}

static void legacy_files_hold_means_times_calls(void **state)
{
    (void)state;
    const bytes b = legacy_file();
    frit_importance importance;
    float means[4];
    assert_ok(frit_importance_parse(&importance, "x.dat", b.data, b.n));
    assert_true(importance.is_legacy);
    assert_int_equal(importance.n, 2);
    assert_int_equal(importance.n_chunks, 7);
    assert_string_equal(importance.dataset, "text");   // folders are not stored
    assert_null(frit_importance_find(&importance, "output.weight"));
    frit_importance_means(&importance, frit_importance_find(&importance, "blk.0.attn_q.weight"), means);
    assert_true(means[0] == 1 && means[1] == 2 && means[2] == 0 && means[3] == 4);
    frit_importance_deinit(&importance);
}

typedef struct gguf_case {
    const char *sums_name, *counts_name;
    float sums[6], counts[2];
    int64_t n_values, n_counts;
} gguf_case;

static const gguf_case good = {"a.weight.in_sum2", "a.weight.counts", {2, 4, 6, 8, 10, 12}, {2, 0}, 6, 2};

// Opens a file of one matrix.
static frit_status open_gguf(const gguf_case *c, frit_importance *importance)
{
    char path[600];
    snprintf(path, sizeof path, "%s", temp_path("importance.gguf"));
    const frit_tensor tensors[] = {
        {.name = c->sums_name,
         .n_dims = 2,
         .shape = {1, c->n_values, 1, 1},
         .data = c->sums,
         .n_bytes = (uint64_t)c->n_values * sizeof(float)},
        {.name = c->counts_name,
         .n_dims = 2,
         .shape = {c->n_counts, 1, 1, 1},
         .data = c->counts,
         .n_bytes = (uint64_t)c->n_counts * sizeof(float)},
    };
    frit_arena arena = {0};
    frit_meta meta;
    frit_meta_init(&meta, &arena);
    assert_ok(frit_meta_add_text(&meta, "general.type", "imatrix"));
    assert_ok(frit_meta_add_u64(&meta, "imatrix.chunk_count", 3));
    assert_ok(frit_meta_add_u64(&meta, "imatrix.chunk_size", 512));
    assert_ok(frit_gguf_write_contents(&(frit_gguf_contents){&meta, tensors, 2, NULL, NULL}, path));
    frit_meta_deinit(&meta);
    frit_arena_free(&arena);
    const frit_status status = frit_importance_open(importance, path);
    remove(path);
    return status;
}

static void experts_without_tokens_count_all_columns_alike(void **state)
{
    (void)state;
    frit_importance importance;
    float means[6];
    assert_ok(open_gguf(&good, &importance));
    assert_false(importance.is_legacy);
    assert_int_equal(importance.n_chunks, 3);
    assert_int_equal(importance.chunk_size, 512);
    frit_importance_means(&importance, frit_importance_find(&importance, "a.weight"), means);
    static const float expected[] = {1, 2, 3, 1, 1, 1};
    assert_memory_equal(means, expected, sizeof means);
    frit_importance_deinit(&importance);
}

// ------------------------------------------------------------------------------------- bad files

static void bad_gguf_files_are_refused_with_a_sentence(void **state)
{
    (void)state;
    gguf_case rows[8];
    static const char *const errors[] = {
        "value 1 of 'a.weight' is nan",     "value 0 of 'a.weight' is -2",
        "value 0 of 'a.weight' is inf",     "count 0 of 'a.weight' is -1",
        "count 1 of 'a.weight' is nan",     "has 5 values and 2 counts, expected a multiple",
        "'a.weight' needs sums and counts", "no importance in it",
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) rows[i] = good;
    rows[0].sums[1] = NAN;
    rows[1].sums[0] = -2;
    rows[2].sums[0] = INFINITY;
    rows[3].counts[0] = -1;
    rows[4].counts[1] = NAN;
    rows[5].n_values = 5;
    rows[6].counts_name = "b.weight.counts";
    rows[7].sums_name = "a.weight";
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_importance importance;
        assert_fails(open_gguf(&rows[i], &importance), FRIT_E_FORMAT, errors[i]);
        assert_int_equal(importance.n, 0);
    }
}

static void bad_legacy_files_are_refused_with_a_sentence(void **state)
{
    (void)state;
    const bytes good_file = legacy_file();
    const size_t first = 4 + 4 + 19;   // after the name of the first entry
    static const struct {
        size_t at;
        int32_t value;
        const char *error;
    } rows[] = {
        {0, 0, "not an importance file"},
        {0, -5, "not an importance file"},
        {0, 1 << 30, "not an importance file"},
        {4, 0, "a name has 0 bytes"},
        {4, 1 << 20, "a name has 1048576 bytes"},
        {27, -1, "expected 1 or more"},
        {31, 0, "expected 1 or more"},
        {31, 1 << 28, "the file ends in the 268435456 values"},
        {35, -1, "value 0 of 'blk.0.attn_q.weight' is"},
        {0, 3, "a name has a zero byte"},
    };
    assert_int_equal(first, 27);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        bytes b = good_file;
        frit_importance importance;
        memcpy(b.data + rows[i].at, &rows[i].value, sizeof rows[i].value);
        assert_fails(frit_importance_parse(&importance, "x.dat", b.data, b.n), FRIT_E_FORMAT, rows[i].error);
    }
}

// The file may end after the last entry and after each part of the optional tail.
static void cut_files_are_refused(void **state)
{
    (void)state;
    const bytes b = legacy_file();
    const size_t n_tail = 4 + 4 + 13;
    for (size_t n = 0; n < b.n; n++) {
        frit_importance importance;
        const frit_status status = frit_importance_parse(&importance, "x.dat", b.data, n);
        if (status == FRIT_OK) frit_importance_deinit(&importance);
        const bool is_end = n == b.n - n_tail || n == b.n - n_tail + 4;
        assert_int_equal(status, is_end ? FRIT_OK : FRIT_E_FORMAT);
    }
    bytes twice = {.n = 0};
    const float one = 1;
    frit_importance importance;
    put_i32(&twice, 2);
    put_entry(&twice, "a", 1, &one, 1);
    put_entry(&twice, "a", 1, &one, 1);
    assert_fails(frit_importance_parse(&importance, "x.dat", twice.data, twice.n), FRIT_E_FORMAT, "'a' occurs twice");
}

// ------------------------------------------------------------------------------------- use

static void write_legacy(const char *path, const char *name, int32_t n)
{
    static float values[8192];
    FILE *file = fopen(path, "wb");
    const int32_t head[] = {1, (int32_t)strlen(name)}, sizes[] = {1, n};
    assert_non_null(file);
    fwrite(head, sizeof head, 1, file);
    fwrite(name, strlen(name), 1, file);
    fwrite(sizes, sizeof sizes, 1, file);
    fwrite(values, sizeof *values, (size_t)n, file);
    fclose(file);
}

static void importance_of_another_model_is_refused(void **state)
{
    (void)state;
    char file[600], out[600];
    const char *source = shared_path("models/fable-6m-bf16.gguf");
    snprintf(file, sizeof file, "%s", temp_path("other.dat"));
    snprintf(out, sizeof out, "%s", temp_path("other.gguf"));
    const frit_quantize_options quantize = {.mix = "q4_k_m", .importance = file};
    const frit_convert_options options = {.quantize = &quantize};
    write_legacy(file, "blk.0.attn_q.weight", 512);
    assert_fails(frit_convert(source, out, &options), FRIT_E_INVALID,
                 "importance of 'blk.0.attn_q.weight' has 512 values, expected 256: the file is of another model");
    write_legacy(file, "blk.0.attn_q.weight", 256);
    assert_fails(frit_convert(source, out, &options), FRIT_E_INVALID, "importance is known of 1 of 43 matrices");
    remove(file);
    assert_fails(frit_convert(source, out, &options), FRIT_E_NOT_FOUND, "other.dat");
}

static void keep_warning(void *ctx, frit_log_level level, const char *sentence)
{
    if (level == FRIT_LOG_WARNING && strstr(sentence, "reached")) snprintf(ctx, 300, "%s", sentence);
}

// For a model without experts.
static void matrices_without_tokens_are_said(void **state)
{
    (void)state;
    char source[600], file[600], out[600], said[300];
    snprintf(source, sizeof source, "%s", tiny_model("tiny.gguf", &(tiny_options){0}));
    snprintf(file, sizeof file, "%s", temp_path("unread.gguf"));
    snprintf(out, sizeof out, "%s", temp_path("unread-out.gguf"));
    static const char *const expected[] = {"", "no token of the importance file reached 1 matrix",
                                           "no token of the importance file reached 2 matrices"};
    for (size_t n_unread = 0; n_unread < FRIT_COUNT(expected); n_unread++) {
        frit_importance *importance;
        frit_importance_entry *entry;
        frit_checkpoint *ckpt;
        size_t n = 0;
        assert_ok(frit_importance_new(&importance));
        assert_ok(frit_checkpoint_open(&ckpt, source, NULL));
        for (size_t i = 0; i < ckpt->n_tensors; i++) {
            const frit_tensor *tensor = &ckpt->tensors[i];
            if (!frit_convert_is_mixed(tensor) || !strstr(tensor->name, "blk.")) continue;
            assert_ok(frit_importance_add(importance, tensor->name, (size_t)frit_tensor_width(tensor), 1, &entry));
            for (size_t k = 0; k < entry->n_values; k++) entry->sums[k] = 1;
            entry->counts[0] = n++ < n_unread ? 0 : 5;
        }
        frit_checkpoint_close(ckpt);
        assert_ok(frit_importance_write(importance, file, NULL));
        frit_importance_free(importance);
        const frit_quantize_options quantize = {.mix = "q4_0", .importance = file, .pure = true};
        *said = 0;
        assert_ok(frit_convert(source, out,
                               &(frit_convert_options){.quantize = &quantize, .log = keep_warning, .log_ctx = said}));
        if (n_unread > 0) assert_string_equal(said, expected[n_unread]);
        assert_null(strstr(said, "experts"));
    }
    remove(file);
    remove(out);
}

// ------------------------------------------------------------------------------------- bytes

static uint64_t hash_rows(uint64_t hash, const frit_tensor *tensor, int64_t n)
{
    const size_t n_bytes = (size_t)n * (size_t)frit_tensor_row_bytes(tensor);
    uint8_t *rows = malloc(n_bytes), *scratch = malloc(frit_tensor_scratch_bytes(tensor) + 1);
    frit_tensor_read(tensor, 0, n, rows, scratch);
    for (size_t i = 0; i < n_bytes; i++) hash = (hash ^ rows[i]) * UINT64_C(1099511628211);
    free(rows);
    free(scratch);
    return hash;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const frit_tensor *)a)->name, ((const frit_tensor *)b)->name);
}

static uint64_t hash_model(const char *mix, const frit_importance *importance)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    frit_checkpoint *ckpt;
    frit_convert_types types;
    assert_ok(frit_convert_find_types(NULL, &types));
    types.mix.mix = frit_mix_find(mix);
    types.importance = importance;
    assert_ok(frit_checkpoint_open(&ckpt, shared_path("models/fable-6m-bf16.gguf"), NULL));
    assert_ok(frit_convert_checkpoint(ckpt, NULL, NULL, &types, NULL));
    qsort(ckpt->tensors, ckpt->n_tensors, sizeof *ckpt->tensors, compare_names);
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_tensor *t = &ckpt->tensors[i];
        if (t->n_dims > 1)
            hash = hash_rows(hash, t, strcmp(t->name, "blk.0.attn_output.weight") == 0 ? frit_tensor_n_rows(t) : 4);
    }
    frit_checkpoint_close(ckpt);
    return hash;
}

// All mixes: without importance if they do not need it, and with it.
static void bytes_are_those_of_llama_quantize(void **state)
{
    (void)state;
    shared_path("models/fable-6m-bf16.gguf");   // skips the test before anything is allocated
    frit_importance importance = {0};
    size_t n, n_checked = 0;
    assert_ok(frit_importance_open(&importance, project_path("tests/goldens/quantize/fable-6m.imatrix.gguf")));
    char *text = read_file(project_path("tests/goldens/quantize/bytes.txt"), &n), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char mix[32], row[32];
        unsigned long long want;
        if (*line == '#') continue;
        assert_int_equal(sscanf(line, "%31s %31s %llx", mix, row, &want), 3);
        if (hash_model(mix, strcmp(row, "important") == 0 ? &importance : NULL) != want)
            fail_msg("%s %s: other bytes than llama-quantize's", mix, row);
        n_checked++;
    }
    free(text);
    frit_importance_deinit(&importance);
    assert_int_equal(n_checked, 55);
}

// ------------------------------------------------------------------------------------- writing

static frit_importance *read_golden(void)
{
    frit_importance *importance;
    assert_ok(frit_importance_read(&importance, project_path("tests/goldens/quantize/fable-6m.imatrix.gguf")));
    return importance;
}

static void files_come_back_in_both_formats(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s", temp_path("again.dat"));
    for (int legacy = 0; legacy < 2; legacy++) {
        frit_importance *from = read_golden(), *to;
        assert_ok(frit_importance_write(from, path, &(frit_importance_file){.legacy = legacy}));
        assert_ok(frit_importance_read(&to, path));
        assert_int_equal(to->is_legacy, legacy);
        assert_int_equal(to->n, from->n);
        assert_int_equal(to->n_chunks, from->n_chunks);
        assert_string_equal(to->dataset, "cal.txt");
        for (size_t i = 0; i < from->n; i++) {
            const frit_importance_entry *a = &from->entries[i], *b = frit_importance_find(to, a->name);
            float x[1024], y[1024];
            assert_non_null(b);
            assert_int_equal(a->n_values, b->n_values);
            assert_int_equal(a->counts[0], legacy ? b->counts[0] * 512 : b->counts[0]);
            frit_importance_means(from, a, x);
            frit_importance_means(to, b, y);
            for (size_t k = 0; k < a->n_values; k++) assert_true(fabsf(x[k] - y[k]) <= 1e-6f * x[k]);
        }
        frit_importance_free(from);
        frit_importance_free(to);
    }
    remove(path);
}

static void merged_files_add_sums_and_counts(void **state)
{
    (void)state;
    frit_importance *a = read_golden(), *b = read_golden(), *legacy;
    const frit_importance_entry *entry = frit_importance_find(a, "blk.3.ffn_up.weight");
    const double sum = entry->sums[7];
    assert_ok(frit_importance_merge(a, b));
    assert_true(entry->sums[7] == 2 * sum);
    assert_int_equal(entry->counts[0], 2 * 38912);
    assert_int_equal(a->n_chunks, 2 * 76);
    frit_importance_info info;
    assert_true(frit_importance_get_info(a, 0, &info));
    assert_int_equal(info.n_tokens, 2 * 38912);
    assert_true(info.min <= info.mean && info.mean <= info.max && info.entropy > 0 && info.entropy <= 8);
    assert_false(frit_importance_get_info(a, a->n, &info));
    assert_ok(frit_importance_new(&legacy));
    const bytes file = legacy_file();
    assert_ok(frit_importance_parse(legacy, "x.dat", file.data, file.n));
    assert_fails(frit_importance_merge(a, legacy), FRIT_E_INVALID, "a legacy file counts calls");
    assert_fails(frit_importance_write(legacy, temp_path("x.gguf"), NULL), FRIT_E_INVALID,
                 "does not say how many tokens");
    frit_importance_free(a);
    frit_importance_free(b);
    frit_importance_free(legacy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legacy_files_hold_means_times_calls),
        cmocka_unit_test(experts_without_tokens_count_all_columns_alike),
        cmocka_unit_test(bad_gguf_files_are_refused_with_a_sentence),
        cmocka_unit_test(bad_legacy_files_are_refused_with_a_sentence),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(importance_of_another_model_is_refused),
        cmocka_unit_test(matrices_without_tokens_are_said),
        cmocka_unit_test(bytes_are_those_of_llama_quantize),
        cmocka_unit_test(files_come_back_in_both_formats),
        cmocka_unit_test(merged_files_add_sums_and_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// Tensors that are copied from an earlier file: they have the bytes of encoding, and changed tensors are encoded.
#include "quantize/type_choice.h"
#include "format/checkpoint.h"
#include "format/gguf.h"
#include "frit_tools.h"
#include "support/support.h"
#include "support/tiny_model.h"

static const char text[] = "ab cd ef gh ij kl mn op qr st uv wx yz ab ba cd dc ef fe gh hg ij ji kl lk mn nm op po qr ";

typedef struct taken {
    size_t n, of;
} taken;

static void listen(void *ctx, frit_log_level level, const char *sentence)
{
    taken *t = ctx;
    (void)level;
    if (strstr(sentence, "quantized tensors are taken from")) sscanf(sentence, "%zu of %zu", &t->n, &t->of);
}

// Chooses types of `bits` each on average.
static frit_status make(const char *source, const char *target, float bits, const char *words, const char *reuse,
                        taken *t)
{
    const frit_convert_options convert = {.n_threads = 2, .log = listen, .log_ctx = t};
    const frit_allocate_options options = {
        .bits = bits, .text = words, .n_text = strlen(words), .n_windows = 1, .types = "all", .reuse = reuse};
    return frit_allocate(source, target, &convert, &options);
}

typedef struct files {
    char source[600], earlier[600], with[600], without[600];
    char words[1200];
} files;

static files make_files(void)
{
    files f = {0};
    taken none = {0};
    size_t n = 0;
    for (int i = 0; i < 12; i++) n += (size_t)snprintf(f.words + n, sizeof f.words - n, "%s%d", text + 7 * i, i);
    snprintf(f.source, sizeof f.source, "%s", tiny_model("source.gguf", &(tiny_options){.n_layer = 3}));
    snprintf(f.earlier, sizeof f.earlier, "%s", temp_path("earlier.gguf"));
    snprintf(f.with, sizeof f.with, "%s", temp_path("with.gguf"));
    snprintf(f.without, sizeof f.without, "%s", temp_path("without.gguf"));
    assert_ok(make(f.source, f.earlier, 10, f.words, NULL, &none));
    return f;
}

static void bytes_are_the_same_with_and_without(void **state)
{
    (void)state;
    static const float bits[] = {10, 9.7f, 10.5f, 14};
    const files f = make_files();
    size_t n_some = 0;
    for (size_t i = 0; i < FRIT_COUNT(bits); i++) {
        taken none = {0}, t = {0};
        assert_ok(make(f.source, f.without, bits[i], f.words, NULL, &none));
        assert_ok(make(f.source, f.with, bits[i], f.words, f.earlier, &t));
        print_message("%g bits: %zu of %zu\n", (double)bits[i], t.n, t.of);
        expect_equal_files(f.with, f.without);
        if (i == 0) assert_true(t.n == t.of && t.n > 0);
        n_some += t.n > 0 && t.n < t.of;
    }
    assert_true(n_some > 0);
}

// Another model of the same shapes, and other importance.
static void tensors_of_other_numbers_are_encoded(void **state)
{
    (void)state;
    const files f = make_files();
    char other[600], words[1200];
    taken none = {0}, t = {0};
    snprintf(other, sizeof other, "%s", tiny_model("other.gguf", &(tiny_options){.n_layer = 3, .seed = 7}));
    assert_ok(make(other, f.without, 10, f.words, NULL, &none));
    assert_ok(make(other, f.with, 10, f.words, f.earlier, &t));
    assert_int_equal(t.n, 0);
    expect_equal_files(f.with, f.without);
    memcpy(words, f.words, sizeof words);
    for (char *c = words; *c; c++)
        if (*c == 'a') *c = 'z';
    assert_ok(make(f.source, f.without, 10, words, NULL, &none));
    assert_ok(make(f.source, f.with, 10, words, f.earlier, &t));
    assert_true(t.n < t.of);   // some have the same input
    expect_equal_files(f.with, f.without);
}

// The metadata stays when another program changes the numbers.
static void tensors_that_were_changed_are_encoded(void **state)
{
    (void)state;
    const files f = make_files();
    char changed[600];
    frit_checkpoint *ckpt;
    taken none = {0}, t = {0};
    snprintf(changed, sizeof changed, "%s", temp_path("changed.gguf"));
    assert_ok(frit_checkpoint_open(&ckpt, f.earlier, NULL));
    frit_tensor *tensor = &ckpt->tensors[0];
    while (frit_dtype_get(tensor->dtype)->block_elems == 1) tensor++;
    char *bytes = malloc((size_t)tensor->n_bytes);
    for (size_t i = 0; i < (size_t)tensor->n_bytes; i++) bytes[i] = (char)(((const char *)tensor->data)[i] ^ 1);
    tensor->data = bytes;
    assert_ok(frit_gguf_write(ckpt, changed));
    frit_checkpoint_close(ckpt);
    free(bytes);
    assert_ok(make(f.source, f.without, 10, f.words, NULL, &none));
    assert_ok(make(f.source, f.with, 10, f.words, changed, &t));
    assert_int_equal(t.n + 1, t.of);
    expect_equal_files(f.with, f.without);
}

static void refined_tensors_are_encoded(void **state)
{
    (void)state;
    enum { N = 9 * TINY_CTX };
    static frit_token ids[N];
    const files f = make_files();
    taken none = {0}, t = {0};
    for (int i = 0; i < N; i++) ids[i] = (frit_token)((i * 7 + i / 13 * 5) % TINY_VOCAB);
    assert_ok(make(f.source, f.earlier, 10, f.words, NULL, &none));
    assert_ok(make(f.source, f.without, 10, f.words, NULL, &none));
    assert_ok(frit_refine(f.source, f.earlier, &(frit_refine_options){.tokens = ids, .n_tokens = N, .n_threads = 2}));
    assert_ok(make(f.source, f.with, 10, f.words, f.earlier, &t));
    print_message("%zu of %zu\n", t.n, t.of);
    assert_true(t.n < t.of);
    expect_equal_files(f.with, f.without);
}

static frit_status mix(const files *f, const char *target, const char *name, const char *importance, const char *reuse,
                       taken *t)
{
    const frit_quantize_options quantize = {.mix = name, .importance = importance, .reuse = reuse};
    const frit_convert_options convert = {.n_threads = 2, .quantize = &quantize, .log = listen, .log_ctx = t};
    return frit_convert(f->source, target, &convert);
}

static void expect_text(const char *path, const char *key, const char *want, size_t n)
{
    frit_checkpoint *ckpt;
    frit_str found_text = {0};
    bool found = false;
    assert_ok(frit_checkpoint_open(&ckpt, path, NULL));
    assert_ok(frit_meta_get_text(&ckpt->meta, key, &found_text, &found));
    if (!found || found_text.len != n || (want && memcmp(found_text.ptr, want, n) != 0))
        fail_msg("%s is '%.*s'", key, (int)found_text.len, found_text.ptr);
    frit_checkpoint_close(ckpt);
}

// With importance, files of mixes have hashes of what their tensors were made from.
static void mixes_take_tensors_too(void **state)
{
    (void)state;
    const files f = make_files();
    char kept[600], plain[600];
    taken none = {0}, t = {0};
    snprintf(kept, sizeof kept, "%s", temp_path("mix.state"));
    snprintf(plain, sizeof plain, "%s", temp_path("plain.gguf"));
    const frit_allocate_options measured = {
        .bits = 10, .text = f.words, .n_text = strlen(f.words), .n_windows = 1, .state = kept};
    assert_ok(frit_allocate(f.source, plain, &(frit_convert_options){.n_threads = 2}, &measured));
    assert_ok(mix(&f, f.earlier, "q5_k_s", kept, NULL, &none));
    expect_text(f.earlier, "quantize.method", "mix q5_k_s", 10);
    expect_text(f.earlier, "quantize.calibration.sha256", NULL, 64);
    static const char *const names[] = {"q5_k_s", "q5_k_m", "q4_k_m"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        t = none;
        assert_ok(mix(&f, f.without, names[i], kept, NULL, &t));
        assert_ok(mix(&f, f.with, names[i], kept, f.earlier, &t));
        print_message("%s: %zu of %zu\n", names[i], t.n, t.of);
        expect_equal_files(f.with, f.without);
        if (i == 0) assert_true(t.n == t.of && t.n > 0);
    }
    assert_ok(mix(&f, plain, "q5_k_s", NULL, NULL, &none));
    expect_text(plain, "quantize.method", "mix q5_k_s", 10);
    assert_int_equal(mix(&f, f.with, "q5_k_s", kept, plain, &t), FRIT_E_INVALID);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    const files f = make_files();
    taken t = {0};
    assert_int_equal(make(f.source, f.with, 10, f.words, f.source, &t), FRIT_E_INVALID);
    assert_non_null(strstr(frit_error(), "does not say what its tensors were made from, expected a file of a size"));
    assert_int_equal(make(f.source, f.earlier, 10, f.words, f.earlier, &t), FRIT_E_INVALID);
    assert_non_null(strstr(frit_error(), "the target is the file to reuse, expected another name"));
    assert_int_not_equal(make(f.source, f.with, 10, f.words, temp_path("none.gguf"), &t), FRIT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_the_same_with_and_without),
        cmocka_unit_test(tensors_of_other_numbers_are_encoded),
        cmocka_unit_test(tensors_that_were_changed_are_encoded),
        cmocka_unit_test(refined_tensors_are_encoded),
        cmocka_unit_test(mixes_take_tensors_too),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

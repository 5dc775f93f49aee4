// SPDX-License-Identifier: MIT
// Parses any bytes as a GGUF file, then uses the result: prints and converts every value, decodes the first and last
// row of every tensor.
#include "format/gguf.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

// A whole file of 322 bytes: four pairs, two tensors (f32 [2, 4] and q8_0 [32]), their data.
// clang-format off
#define ZERO4 "\0\0\0\0"
#define LENGTH(n) n "\0\0\0\0\0\0\0"
static const char start[] =
    "GGUF" "\3\0\0\0" LENGTH("\2") LENGTH("\4")
    LENGTH("\21") "general.alignment" "\4\0\0\0" "\40\0\0\0"
    LENGTH("\5") "words" "\11\0\0\0" "\10\0\0\0" LENGTH("\2") LENGTH("\1") "a" LENGTH("\2") "bc"
    LENGTH("\4") "ints" "\11\0\0\0" "\5\0\0\0" LENGTH("\3") "\1\0\0\0" "\2\0\0\0" "\3\0\0\0"
    LENGTH("\4") "flag" "\7\0\0\0" "\1"
    LENGTH("\1") "a" "\2\0\0\0" LENGTH("\4") LENGTH("\2") ZERO4 LENGTH("\0")
    LENGTH("\1") "b" "\1\0\0\0" LENGTH("\40") "\10\0\0\0" LENGTH("\40");
// clang-format on
enum { START_BYTES = sizeof start - 1, FILE_BYTES = (START_BYTES + 31) / 32 * 32 + 32 + 34 };

// Input that is too short for a header becomes a valid file, so that an empty corpus is enough.
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    (void)seed;
    if (n_bytes < 24 && max_bytes >= FILE_BYTES) {
        memset(bytes, 1, FILE_BYTES);
        memcpy(bytes, start, START_BYTES);
        n_bytes = FILE_BYTES;
    }
    return LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
}

static void use_pair(const frit_checkpoint *ckpt, const frit_pair *pair, frit_buf *text)
{
    char key[128];
    snprintf(key, sizeof key, "%.*s", pair->key.len < 127 ? (int)pair->key.len : 127, pair->key.ptr);
    int64_t i;
    double f;
    bool b;
    frit_str s;
    (void)frit_meta_get_i64(&ckpt->meta, key, &i, NULL);
    (void)frit_meta_get_f64(&ckpt->meta, key, &f, NULL);
    (void)frit_meta_get_bool(&ckpt->meta, key, &b, NULL);
    (void)frit_meta_get_text(&ckpt->meta, key, &s, NULL);
    frit_buf_clear(text);
    frit_value_print(&pair->value, 16, text);
    if (text->failed) abort();
}

static void use_tensor(const frit_checkpoint *ckpt, const frit_tensor *tensor)
{
    char text[96];
    int64_t n_elems = frit_tensor_n_elems(tensor), n = tensor->shape[tensor->n_dims - 1];
    float *values = malloc((size_t)n * sizeof *values);
    if (!values || frit_checkpoint_find(ckpt, tensor->name) != tensor ||
        strlen(frit_tensor_shape_text(tensor, text)) < 3)
        abort();
    frit_tensor_decode_row(tensor, 0, values);
    frit_tensor_decode_row(tensor, n_elems / n - 1, values);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_checkpoint *ckpt;
    frit_buf text = {0};
    if (frit_checkpoint_new(&ckpt, "fuzz.gguf") != FRIT_OK) abort();
    if (frit_gguf_parse(ckpt, "fuzz.gguf", bytes, n_bytes) == FRIT_OK) {
        for (size_t i = 0; i < ckpt->meta.n; i++) use_pair(ckpt, &ckpt->meta.pairs[i], &text);
        for (size_t i = 0; i < ckpt->n_tensors; i++) use_tensor(ckpt, &ckpt->tensors[i]);
    }
    frit_buf_free(&text);
    frit_checkpoint_close(ckpt);
    return 0;
}

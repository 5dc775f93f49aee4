// SPDX-License-Identifier: MIT
// support/gguf_builder.h: makes small GGUF files in memory, complete or damaged on purpose.
//
//     gguf_builder b = {0};
//     gguf_add_text(&b, "general.architecture", "llama");
//     gguf_add_tensor(&b, "a.weight", FRIT_DTYPE_F32, 2, (int64_t[]){2, 8}, NULL);
//     frit_buf file = gguf_build(&b);
//     gguf_patch(&b, &file, "tensor 0 offset", 8, 8);       // overwrites a number of the finished file
//     frit_buf_free(&file);
//     gguf_builder_free(&b);
//
// Places in the file have names, in which i counts from 0: "magic", "version", "n tensors", "n pairs"; "pair i key
// length", "pair i key", "pair i type", "pair i value" (of a text: its length), "pair i item type", "pair i n items",
// "pair i item j" (of a text: its length); "tensor i name length", "tensor i name", "tensor i n dims", "tensor i dim j"
// (as in the file: innermost first), "tensor i type", "tensor i offset"; "data".
#pragma once
#include "base/buf.h"
#include "format/meta.h"
#include "quant/dtype.h"

typedef struct gguf_mark {
    char name[40];
    int section;
    size_t at;
} gguf_mark;

typedef struct gguf_builder {
    uint32_t version;     // 0: 3
    uint64_t alignment;   // 0: 32; the caller adds the pair general.alignment
    uint64_t n_pairs, n_tensors;
    frit_buf sections[4];   // header, pairs, directory, data
    gguf_mark *marks;
    size_t n_marks, mark_capacity;
} gguf_builder;

void gguf_add_text(gguf_builder *b, const char *key, const char *text);
void gguf_add_u32(gguf_builder *b, const char *key, uint32_t value);
void gguf_add_i32(gguf_builder *b, const char *key, int32_t value);
void gguf_add_f32(gguf_builder *b, const char *key, float value);
void gguf_add_bool(gguf_builder *b, const char *key, bool value);
// Adds a number or bool, whose bytes are as in the file.
void gguf_add_value(gguf_builder *b, const char *key, frit_value_type type, const void *bytes);
void gguf_add_array(gguf_builder *b, const char *key, frit_value_type type, uint64_t n, const void *items);
void gguf_add_texts(gguf_builder *b, const char *key, uint64_t n, const char *const *texts);
// Adds a tensor. Shape: outermost first. `data` NULL: bytes that count up, starting from the tensor's number.
void gguf_add_tensor(gguf_builder *b, const char *name, frit_dtype dtype, int n_dims, const int64_t *shape,
                     const void *data);

// Builds the whole file. The builder may be used and built again.
frit_buf gguf_build(gguf_builder *b);
// The offset of a named place in the last result of gguf_build; fails the test if it does not exist.
size_t gguf_place(const gguf_builder *b, const char *name);
void gguf_patch(const gguf_builder *b, frit_buf *file, const char *place, uint64_t value, size_t n_bytes);
void gguf_builder_free(gguf_builder *b);

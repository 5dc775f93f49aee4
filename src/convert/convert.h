// SPDX-License-Identifier: MIT
// convert/convert.h: any checkpoint as a GGUF file that other engines load.
//
//     open the source -> make it what the file will hold (target.c; order.c: which rows go where; types.c, mix.c and
//     fallbacks.c: in which type; importance.c; keys.c; reuse.c) -> vocabulary -> files, tensor by tensor, some rows at
//     a time
//
// A source already has GGUF's names (format/). Conversion changes number formats, the order of rows where GGUF files of
// an architecture have another, and splits tensors where GGUF files have several.
#pragma once
#include "arch/arch.h"
#include "base/log.h"
#include "base/thread/thread.h"
#include "convert/importance.h"
#include "convert/mix.h"
#include "format/gguf.h"

// The rows of a result. It takes `take` of every `of` source rows, from `offset` on. Within each `head` rows the first
// `permuted` are permuted for RoPE: halves become neighbours, or neighbours halves. Or heads of `head` rows, from
// `offset` on, change from group by group to the first head of each of n_groups, then the second. Zero: all rows,
// unchanged.
typedef struct frit_row_order {
    int64_t of, take, offset;
    int64_t head, permuted;
    int64_t n_groups, n_each;   // heads of a group
    bool to_neighbours;
    bool of_numbers;   // a vector: rows are single elements
    bool of_columns;   // the order applies to columns instead of rows
} frit_row_order;

// The source row of row i of the result.
int64_t frit_row_order_source(const frit_row_order *order, int64_t i);
// The row order of a source tensor in the file.
frit_row_order frit_row_order_of(const frit_hparams *hp, const frit_arch *arch, const char *name);

// keys.c: keys that GGUF files need and folders imply. Adds keys to `meta`, and removes those that a tensor replaces.
frit_status frit_convert_add_keys(frit_meta *meta, const frit_hparams *hp, const frit_arch *arch);
// RoPE factors [dim / 2] in `arena`, for kinds of scaling that GGUF stores as a tensor; otherwise NULL.
frit_status frit_convert_rope_factors(frit_hparams *hp, frit_arena *arena, const float **factors);

// The type of a tensor in the file if one is wanted for all matrices; FRIT_DTYPE_COUNT: unchanged.
frit_dtype frit_convert_type(const frit_tensor *tensor, frit_dtype wanted, bool is_gguf);
// Whether the wanted type is meant for it: a matrix of numbers that is not small.
bool frit_convert_is_matrix(const frit_tensor *tensor);
// Whether a mix gives it a type.
bool frit_convert_is_mixed(const frit_tensor *tensor);
// The type that most numbers of a checkpoint's tensors have.
frit_dtype frit_convert_main_type(const frit_checkpoint *ckpt);
// general.file_type of files whose matrices are of this type; -1: none.
int frit_file_type_id(frit_dtype dtype);

// The type that an option names; FRIT_DTYPE_COUNT for NULL, FRIT_E_INVALID if it cannot be written.
frit_status frit_convert_find_type(const char *name, frit_dtype *dtype);

// Which type each tensor of a file gets.
typedef struct frit_convert_types {
    frit_dtype wanted;                   // of all matrices; FRIT_DTYPE_COUNT: unchanged
    frit_mix_options mix;                // counts if it has a mix
    const frit_importance *importance;   // NULL: none
    // Gets each tensor; then nothing is to be written. May be NULL.
    void (*planned)(void *ctx, const frit_tensor *tensor, frit_dtype from, bool needs_importance, bool has_importance);
    void *planned_ctx;
} frit_convert_types;

// What an option names: a type for all matrices, or a mix. NULL: types stay.
frit_status frit_convert_find_types(const char *name, frit_convert_types *types);
bool frit_convert_changes(const frit_convert_types *types);   // whether types do not stay

// fallbacks.c: the wanted type for rows of `width` numbers, or the one that takes its place where its blocks do not
// divide them: q5_0 for q4_k and so on; at last f16.
frit_dtype frit_convert_fit(frit_dtype wanted, int64_t width, bool in_mix);

// native.c: the type of four bits that a matrix was trained for, as it is in it, or all of its floats lie on the type's
// grid in some rows; FRIT_DTYPE_COUNT: none is known.
frit_status frit_convert_native(const frit_tensor *tensor, frit_dtype *native);

// Which matrices got another type than the wanted one.
typedef struct frit_fallbacks {
    size_t n_matrices, n_changes;
    struct {
        frit_dtype wanted, got;
        size_t n;
        frit_buf names;   // "token_embd.weight, blk.*.attn_q.weight"
    } changes[16];
} frit_fallbacks;

void frit_fallbacks_add(frit_fallbacks *all, const char *name, frit_dtype wanted, frit_dtype got);
// One warning for each type that took the place of a wanted one; frees the names.
void frit_fallbacks_say(frit_fallbacks *all, const frit_log *log, const char *source);

// target.c: changes a checkpoint to the content of its GGUF file in these types: tensors, row order, keys. Rows
// are computed when they are read. `arch` NULL: the source is GGUF, and only types change. Otherwise the caller must
// read the hyperparameters again; `hp` are the old ones. `log` gets warnings of fallbacks.
frit_status frit_convert_checkpoint(frit_checkpoint *ckpt, const frit_arch *arch, frit_hparams *hp,
                                    const frit_convert_types *types, const frit_log *log);

// encode.c: gives every tensor its type. from[i]: the type of tensor i in the source.
frit_status frit_convert_encode(frit_checkpoint *ckpt, const frit_convert_types *types, const frit_dtype *from,
                                bool is_gguf, const frit_log *log);

// finite.c: FRIT_E_FORMAT if a number of the tensor is not finite.
frit_status frit_convert_check_finite(const frit_tensor *tensor, frit_pool *pool);

// Writes a tensor, some rows at a time, if all of its numbers are finite and fit its type. `report` gets the number of
// bytes written.
typedef frit_status (*frit_convert_report_fn)(void *ctx, uint64_t n_bytes);
frit_status frit_convert_write(const frit_tensor *tensor, frit_pool *pool, frit_file_writer *writer,
                               frit_convert_report_fn report, void *ctx);
frit_status frit_convert_rows(const frit_tensor *from, const frit_tensor *to, const frit_row_order *order,
                              frit_pool *pool, frit_file_writer *writer, frit_convert_report_fn report, void *ctx);

// What was chosen for a model's tensors (quantize/type_choice.h), instead of a mix.
typedef struct frit_convert_choice {
    const frit_map *types;               // name -> frit_dtype, for all that are quantized
    const frit_importance *importance;   // NULL: none
    const frit_meta *labels;             // pairs that the file gets
    uint64_t *n_bytes;                   // gets the size of the file, and nothing is written; NULL: the file is written
    const char *reuse;                   // an earlier file, whose tensors are taken where they are the same; NULL: none
} frit_convert_choice;

frit_status frit_convert_chosen(const char *source, const char *target, const frit_convert_options *options,
                                const frit_convert_choice *choice);

// reuse.c: what the tensors of a file were made from: [n_tensors] hashes, zero for those that were not quantized. They
// are a pair of its metadata, so that a later file can take tensors from it.
#define FRIT_ORIGINS_KEY "quantize.origins"
typedef struct frit_origin {
    uint64_t hash[2];   // the first half of a SHA-256
} frit_origin;

frit_status frit_origins_find(const frit_checkpoint *ckpt, frit_pool *pool, frit_origin *origins);
// Adds the pair to `meta`. The array is borrowed.
frit_status frit_origins_add(frit_meta *meta, const frit_origin *origins, size_t n);
// A file to take tensors from. FRIT_E_INVALID if it does not have the pair.
frit_status frit_reuse_open(frit_checkpoint **out, const char *path);
// Tensors of `ckpt` whose origin and type are those of the earlier file get its data, if some rows are equal too: what
// else was done to that file is not known. `earlier` must outlive them. Returns how many, of `n_quantized`.
frit_status frit_reuse_take(frit_checkpoint *ckpt, const frit_origin *origins, const frit_checkpoint *earlier,
                            frit_pool *pool, size_t *n_taken, size_t *n_quantized);

// adapter.c: writes a PEFT adapter of the model `base` (NULL: the one in its configuration) as a GGUF file. `wanted`:
// FRIT_DTYPE_COUNT: types unchanged. `log` gets warnings of fallbacks.
frit_status frit_convert_adapter(const char *source, const char *target, const char *base, frit_dtype wanted,
                                 const frit_log *log);

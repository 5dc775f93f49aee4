// SPDX-License-Identifier: MIT
// convert/convert.h: converts any checkpoint to a GGUF file that other engines load.
//
//     open the source -> make the contents of the file (target.c; order.c: row order; types.c, mix.c and fallbacks.c:
//     types; importance.c; keys.c; reuse.c) -> vocabulary -> files, tensor by tensor, some rows at a time
//
// A source has GGUF's names already (format/). Conversion changes number formats, reorders rows where GGUF files of the
// architecture have another order, and splits tensors where GGUF files have several.
#pragma once
#include "arch/arch.h"
#include "base/log.h"
#include "base/thread/thread.h"
#include "convert/importance.h"
#include "convert/mix.h"
#include "format/gguf.h"

// The order of a result's rows; all zero: unchanged. It takes `take` of every `of` source rows, from `offset` on. In
// each `head` rows the first `permuted` ones are permuted for RoPE, between NeoX and interleaved pairs, up to row
// `end`. With n_groups, heads of `head` rows, from `offset` on, are interleaved: the first head of each group, then the
// second of each.
typedef struct frit_row_order {
    int64_t of, take, offset;
    int64_t head, permuted;
    int64_t end;                // 0: all heads are permuted
    int64_t n_groups, n_each;   // n_each: heads per group
    bool to_interleaved;
    bool of_numbers;   // a vector: rows are single elements
    bool of_columns;   // the order applies to columns instead of rows
} frit_row_order;

// Returns the source row of row i of the result.
int64_t frit_row_order_source(const frit_row_order *order, int64_t i);
// Returns the row order of a source tensor in the file.
frit_row_order frit_row_order_of(const frit_hparams *hp, const frit_arch *arch, const char *name);

// keys.c: keys that GGUF files need and folders imply. Adds keys to `meta`, and removes those that a tensor replaces.
frit_status frit_convert_add_keys(frit_meta *meta, const frit_hparams *hp, const frit_arch *arch);
// Sets *factors to RoPE factors [dim / 2] in `arena`, or to NULL if GGUF stores this scaling as keys.
frit_status frit_convert_rope_factors(frit_hparams *hp, frit_arena *arena, const float **factors);

// Returns the type of a tensor in the file if `wanted` is the type for matrices; FRIT_DTYPE_COUNT: unchanged.
frit_dtype frit_convert_type(const frit_tensor *tensor, frit_dtype wanted, bool is_gguf);
// True for a matrix of numbers that is not small: the wanted type applies to it.
bool frit_convert_is_matrix(const frit_tensor *tensor);
// True if mixes quantize the tensor.
bool frit_convert_is_mixed(const frit_tensor *tensor);
// Returns the type of most numbers in a checkpoint.
frit_dtype frit_convert_main_type(const frit_checkpoint *ckpt);
// Returns general.file_type of files with matrices of this type; -1: none.
int frit_file_type_id(frit_dtype dtype);

// Finds the type that an option names; FRIT_DTYPE_COUNT for NULL. FRIT_E_INVALID if frit cannot write it.
frit_status frit_convert_find_type(const char *name, frit_dtype *dtype);

// The types of a file's tensors.
typedef struct frit_convert_types {
    frit_dtype wanted;                   // type of all matrices; FRIT_DTYPE_COUNT: unchanged
    frit_mix_options mix;                // used if it has a mix
    const frit_importance *importance;   // NULL: none
    // Called with each tensor; if it is set, nothing is written. May be NULL.
    void (*planned)(void *ctx, const frit_tensor *tensor, frit_dtype from, bool needs_importance, bool has_importance);
    void *planned_ctx;
} frit_convert_types;

// True for "fp8" and "fp8_weights", names of models in memory: matrices become fp8_128. *has_inputs: inputs of their
// products may be rounded to fp8 too.
bool frit_convert_is_fp8(const char *name, bool *has_inputs);
// Finds the type or mix that an option names. NULL: types stay.
frit_status frit_convert_find_types(const char *name, frit_convert_types *types);
bool frit_convert_changes(const frit_convert_types *types);   // true if types change

// fallbacks.c: returns `wanted`, or a replacement if its blocks do not divide rows of `width` numbers: q5_0 for q4_k
// and so on, at last f16.
frit_dtype frit_convert_fit(frit_dtype wanted, int64_t width, bool in_mix);

// native.c: finds the 4-bit type that a matrix was trained for: its own type, or one whose grid has all floats of some
// sampled rows. FRIT_DTYPE_COUNT: none.
frit_status frit_convert_native(const frit_tensor *tensor, frit_dtype *native);

// The matrices that got another type than the wanted one.
typedef struct frit_fallbacks {
    size_t n_matrices, n_changes;
    struct {
        frit_dtype wanted, got;
        size_t n;
        frit_buf names;   // "token_embd.weight, blk.*.attn_q.weight"
    } changes[16];
} frit_fallbacks;

void frit_fallbacks_add(frit_fallbacks *all, const char *name, frit_dtype wanted, frit_dtype got);
// Logs one warning for each replaced type, and frees the names.
void frit_fallbacks_say(frit_fallbacks *all, const frit_log *log, const char *source);

// target.c: changes a checkpoint to the contents of its GGUF file: tensors, row order, keys. Rows are computed when
// they are read. If `arch` is NULL the source is GGUF and only types change. Otherwise the caller must read the
// hyperparameters again; `hp` are the old ones. `log` gets warnings about fallbacks.
frit_status frit_convert_checkpoint(frit_checkpoint *ckpt, const frit_arch *arch, frit_hparams *hp,
                                    const frit_convert_types *types, const frit_log *log);

// encode.c: sets the type of every tensor. from[i] is the type of tensor i in the source.
frit_status frit_convert_encode(frit_checkpoint *ckpt, const frit_convert_types *types, const frit_dtype *from,
                                bool is_gguf, const frit_log *log);

// finite.c: FRIT_E_FORMAT if a number of the tensor is not finite.
frit_status frit_convert_check_finite(const frit_tensor *tensor, frit_pool *pool);

// Writes a tensor, some rows at a time. Fails if a number is not finite or does not fit the type. `report` gets the
// number of bytes written.
typedef frit_status (*frit_convert_report_fn)(void *ctx, uint64_t n_bytes);
frit_status frit_convert_write(const frit_tensor *tensor, frit_pool *pool, frit_file_writer *writer,
                               frit_convert_report_fn report, void *ctx);
frit_status frit_convert_rows(const frit_tensor *from, const frit_tensor *to, const frit_row_order *order,
                              frit_pool *pool, frit_file_writer *writer, frit_convert_report_fn report, void *ctx);

// Types that were chosen for a model's tensors (quantize/type_choice.h), instead of a mix.
typedef struct frit_convert_choice {
    const frit_map *types;               // name -> frit_dtype, for all quantized tensors
    const frit_importance *importance;   // NULL: none
    const frit_meta *labels;             // metadata to add
    uint64_t *n_bytes;                   // gets the size of the file, which is not written; NULL: write the file
    const char *reuse;                   // an earlier file, whose equal tensors are copied; NULL: none
} frit_convert_choice;

frit_status frit_convert_chosen(const char *source, const char *target, const frit_convert_options *options,
                                const frit_convert_choice *choice);

// reuse.c: hashes of the sources of a file's tensors, [n_tensors]; zero for tensors that were not quantized. They are
// metadata of the file, so that a later file can copy tensors from it.
#define FRIT_ORIGINS_KEY "quantize.origins"
typedef struct frit_origin {
    uint64_t hash[2];   // first half of a SHA-256
} frit_origin;

frit_status frit_origins_find(const frit_checkpoint *ckpt, frit_pool *pool, frit_origin *origins);
// Adds the hashes to `meta`. The array is borrowed.
frit_status frit_origins_add(frit_meta *meta, const frit_origin *origins, size_t n);
// Opens a file to copy tensors from. FRIT_E_INVALID if it has no hashes.
frit_status frit_reuse_open(frit_checkpoint **out, const char *path);
// Gives tensors of `ckpt` the data of the earlier file, if origin, type and some sampled rows are equal: the rows show
// if the earlier file was changed later. `earlier` must outlive them. Sets *n_taken to the number of copied tensors.
frit_status frit_reuse_take(frit_checkpoint *ckpt, const frit_origin *origins, const frit_checkpoint *earlier,
                            frit_pool *pool, size_t *n_taken, size_t *n_quantized);

// adapter.c: writes a PEFT adapter of the model `base` as a GGUF file. `base` NULL: the model in its configuration.
// `wanted` FRIT_DTYPE_COUNT: types stay. `log` gets warnings about fallbacks.
frit_status frit_convert_adapter(const char *source, const char *target, const char *base, frit_dtype wanted,
                                 const frit_log *log);

// SPDX-License-Identifier: MIT
// convert/convert.h: any checkpoint as a GGUF file that other engines load.
//
//     open the source -> make it what the file will hold (target.c; order.c: which rows go where; types.c and
//     fallbacks.c: in which type; keys.c) -> vocabulary -> files, tensor by tensor, a few rows at a time
//
// A source already has GGUF's names (format/). What is left to do is what only concerns the bytes: number formats, and
// rows that GGUF files of an architecture have in another order, or in a tensor of their own.
#pragma once
#include "arch/arch.h"
#include "base/log.h"
#include "base/thread.h"
#include "format/gguf.h"

// Which rows of the source a result has. Of every `of` rows it may take `take`, from `offset` on; within each `head`
// rows the first `turned` may change places: two halves become neighbours, or the other way around. Or heads of
// `head` rows, from `offset` on, which lie group by group, are dealt: the first of each of n_groups, then the second.
// Zero: all rows, as they are.
typedef struct frit_row_order {
    int64_t of, take, offset;
    int64_t head, turned;
    int64_t n_groups, n_each;   // heads of a group
    bool to_neighbours;
    bool of_numbers;   // a vector: rows are single numbers
    bool of_columns;   // what is said of rows is meant of columns
} frit_row_order;

// Where row i of the result comes from.
int64_t frit_row_order_source(const frit_row_order *order, int64_t i);
// How the rows of a tensor of the source are to be laid out.
frit_row_order frit_row_order_of(const frit_hparams *hp, const frit_arch *arch, const char *name);

// keys.c: what GGUF files have and folders leave to be known. Adds keys to `meta`, and takes out those that a tensor
// takes the place of.
frit_status frit_convert_add_keys(frit_meta *meta, const frit_hparams *hp, const frit_arch *arch);
// Factors of the pairs that rotate, [dim / 2] in `arena`, where GGUF has a tensor for a kind of scaling; else NULL.
frit_status frit_convert_rope_factors(frit_hparams *hp, frit_arena *arena, const float **factors);

// The type of a tensor in the file. `wanted`: of matrices; FRIT_DTYPE_COUNT: as they are.
frit_dtype frit_convert_type(const frit_tensor *tensor, frit_dtype wanted, bool is_gguf);
// Whether the wanted type is meant for it: a matrix of numbers that is not small.
bool frit_convert_is_matrix(const frit_tensor *tensor);
// The type that most numbers of a checkpoint's tensors have.
frit_dtype frit_convert_main_type(const frit_checkpoint *ckpt);
// general.file_type of files whose matrices are of this type; -1: there is no number for it.
int frit_file_type_id(frit_dtype dtype);

// The type that an option names; FRIT_DTYPE_COUNT for NULL, FRIT_E_INVALID if it cannot be written.
frit_status frit_convert_find_type(const char *name, frit_dtype *dtype);

// fallbacks.c: the wanted type for rows of `width` numbers, or the one that takes its place where its blocks do not
// divide them: q5_0 for q4_k and so on; at last f16.
frit_dtype frit_convert_fit(frit_dtype wanted, int64_t width);

// Which matrices got another type than the wanted one.
typedef struct frit_fallbacks {
    frit_dtype wanted;
    size_t n_matrices;
    struct {
        size_t n;
        frit_buf names;   // "token_embd.weight, blk.*.attn_q.weight"
    } of[FRIT_DTYPE_COUNT];
} frit_fallbacks;

void frit_fallbacks_add(frit_fallbacks *all, const char *name, frit_dtype got);
// One warning for each type that took the place of the wanted one; frees the names.
void frit_fallbacks_say(frit_fallbacks *all, const frit_log *log, const char *source);

// target.c: a checkpoint becomes what its GGUF file would hold, in the type `wanted`: tensors and their order of rows,
// and keys. Nothing is computed before it is read. `arch` NULL: it comes from GGUF, and only types change. Otherwise
// hyperparameters are to be read anew: `hp` was those before. `log` gets warnings of fallbacks.
frit_status frit_convert_checkpoint(frit_checkpoint *ckpt, const frit_arch *arch, frit_hparams *hp, frit_dtype wanted,
                                    const frit_log *log);

// Writes a tensor, some rows at a time. `report` is told how many bytes are done.
typedef frit_status (*frit_convert_report_fn)(void *ctx, uint64_t n_bytes);
frit_status frit_convert_write(const frit_tensor *tensor, frit_pool *pool, frit_file_writer *writer,
                               frit_convert_report_fn report, void *ctx);
frit_status frit_convert_rows(const frit_tensor *from, const frit_tensor *to, const frit_row_order *order,
                              frit_pool *pool, frit_file_writer *writer, frit_convert_report_fn report, void *ctx);

// adapter.c: a PEFT adapter of the model `base` (NULL: the one that its configuration names) as a GGUF file. `wanted`:
// FRIT_DTYPE_COUNT: the types as they are. `log` gets warnings of fallbacks.
frit_status frit_convert_adapter(const char *source, const char *target, const char *base, frit_dtype wanted,
                                 const frit_log *log);

// SPDX-License-Identifier: MIT
// format/checkpoint.h: tensors and metadata of a model, from any kind of file.
//
// A GGUF file (or any part of a split set), a safetensors file, or a Hugging Face folder opens as one checkpoint with
// GGUF's names for keys and tensors and with shapes outermost first. Tensor data stays in the mapped files; every
// tensor lies inside its file. Data that a source stores in another convention is converted when it is read
// (format/rows.h); small tensors are rewritten into the checkpoint's own memory.
//
//     frit_checkpoint *ckpt;
//     FRIT_TRY(frit_checkpoint_open(&ckpt, path, &(frit_checkpoint_options){0}));
//     const frit_tensor *t = frit_checkpoint_find(ckpt, "token_embd.weight");
#pragma once
#include "base/file/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "format/meta.h"
#include "quant/dtype.h"

enum { FRIT_MAX_DIMS = 4 };

typedef struct frit_tensor {
    const char *name;
    frit_dtype dtype;
    int n_dims;
    int64_t shape[FRIT_MAX_DIMS];   // outermost first; unused entries are 1
    const void *data;               // n_bytes, possibly unaligned; NULL: rows are computed when they are read
    uint64_t n_bytes;
    bool is_mapped;                     // data is in a mapped file: its pages may be dropped and read again
    const struct frit_recipe *recipe;   // without data: format/rows.h
    int64_t first_row;                  // the first row of the recipe's result
} frit_tensor;

typedef struct frit_checkpoint {
    const char *path;
    const char *format;   // "GGUF v3", "safetensors"
    frit_meta meta;
    frit_tensor *tensors;
    size_t n_tensors, tensor_capacity;
    frit_map tensor_index;   // name -> index in `tensors`
    frit_file **files;
    size_t n_files, file_capacity;
    frit_arena arena;   // owns the arrays, names and rewritten tensors
} frit_checkpoint;

typedef enum frit_checkpoint_part {
    FRIT_CHECKPOINT_TEXT,
    FRIT_CHECKPOINT_VISION,   // the encoder of pictures
} frit_checkpoint_part;

typedef struct frit_checkpoint_options {
    bool no_mmap;
    frit_checkpoint_part part;   // which part of a multimodal model's folder is read
    bool one_shard;              // do not look for the other parts of a split set
    frit_progress_fn progress;
    void *progress_ctx;
    const frit_log *log;
} frit_checkpoint_options;

// A source of checkpoints: recognises a path and opens it. The list is in checkpoint.c.
typedef struct frit_checkpoint_source {
    const char *name;                       // "GGUF file"
    bool (*recognises)(const char *path);   // by the path's kind and the file's first bytes; never fails
    frit_status (*open)(frit_checkpoint *ckpt, const char *path, const frit_checkpoint_options *options);
} frit_checkpoint_source;

frit_status frit_checkpoint_open(frit_checkpoint **out, const char *path, const frit_checkpoint_options *options);
void frit_checkpoint_close(frit_checkpoint *ckpt);
const frit_tensor *frit_checkpoint_find(const frit_checkpoint *ckpt, const char *name);
bool frit_checkpoint_is_intact(const frit_checkpoint *ckpt);                 // no mapped file has shrunk
bool frit_checkpoint_reads(const frit_checkpoint *ckpt, const char *path);   // true if `path` is one of its files
// Adds the sizes of the checkpoint's files to the sum, and a sample of their pages.
void frit_checkpoint_hash(const frit_checkpoint *ckpt, frit_sha256 *sum);

// For sources and tools that build a checkpoint. frit_checkpoint_new creates an empty one. Name and data of a tensor
// must live as long as the checkpoint (in its arena or files). FRIT_E_FORMAT for a duplicate name. The checkpoint owns
// a file from the call on, even if the call fails.
frit_status frit_checkpoint_new(frit_checkpoint **out, const char *path);
frit_status frit_checkpoint_add_tensor(frit_checkpoint *ckpt, const frit_tensor *tensor);
frit_status frit_checkpoint_add_file(frit_checkpoint *ckpt, frit_file *file);
// Calls the caller's progress function; FRIT_E_CANCELLED if it returns false.
frit_status frit_checkpoint_report(const frit_checkpoint_options *options, double done);

int64_t frit_tensor_n_elems(const frit_tensor *tensor);
// Writes a shape as "[512, 64]"; returns `text`.
const char *frit_tensor_shape_text(const frit_tensor *tensor, char text[96]);
// Decodes rows [begin, begin + n) (of the tensor seen as [n_elems / shape[last], shape[last]]) to f32.
frit_status frit_tensor_decode_rows(const frit_tensor *tensor, int64_t begin, int64_t n, float *values);
// One row of a tensor whose data is in memory.
void frit_tensor_decode_row(const frit_tensor *tensor, int64_t row, float *values);

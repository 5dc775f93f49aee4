// SPDX-License-Identifier: MIT
// format/gguf.h: GGUF files, versions 2 and 3: reading into a checkpoint, splitting, writing.
//
//     header  magic "GGUF" | version u32 | n_tensors u64 | n_pairs u64
//     pairs   key text | type u32 | value                                     (text: length u64, bytes)
//     tensors name text | n_dims u32 | dims u64[n_dims], innermost first | type u32 | offset u64
//     padding to general.alignment (32 unless set), then the data; offsets count from here
#pragma once
#include "format/checkpoint.h"

extern const frit_checkpoint_source frit_source_gguf;

// Parses a whole file image. Data pointers point into `bytes`, which must outlive the checkpoint. The fuzzer calls this
// function.
frit_status frit_gguf_parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes);

// Opens a file, or all files of a split set in order, through a function that reads ranges. Sizes are copied.
frit_status frit_gguf_open_files(frit_checkpoint *ckpt, const frit_model_files *files);

typedef struct frit_gguf_contents {
    const frit_meta *meta;
    const frit_tensor *tensors;
    size_t n_tensors;
    // Writes the data of tensor i, n_bytes. NULL: tensor.data is written.
    frit_status (*write)(void *ctx, size_t i, frit_file_writer *writer);
    void *ctx;
} frit_gguf_contents;

// Writes pairs and tensors, in order, as GGUF v3 with the alignment of the metadata. Never leaves a partial file under
// `path`.
frit_status frit_gguf_write_contents(const frit_gguf_contents *contents, const char *path);
// Writes the file like frit_gguf_write_contents, but can continue an earlier call. A call that is stopped
// (FRIT_E_CANCELLED) or killed leaves PATH.part. The next call with the same header and the same `origin`, a hash [32]
// of what the data is made from, continues after the tensors in PATH.part; `kept` gets their number.
frit_status frit_gguf_write_in_runs(const frit_gguf_contents *contents, const char *path, const uint8_t *origin,
                                    void (*kept)(void *ctx, size_t n_tensors));
// Computes the size of the file in bytes.
frit_status frit_gguf_measure(const frit_gguf_contents *contents, const char *path, uint64_t *n_bytes);
// The name of part `no` (from 0) of `count`: "dir/name.gguf" becomes "dir/name-00001-of-00003.gguf", in the arena.
// NULL if memory is short.
const char *frit_gguf_shard_path(frit_arena *arena, const char *path, int no, int count);

// Writes the checkpoint's pairs and tensors, in order, as GGUF v3 with the alignment of its metadata.
// Writing a checkpoint that was read from a v3 file gives the same bytes.
frit_status frit_gguf_write(const frit_checkpoint *ckpt, const char *path);

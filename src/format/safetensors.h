// SPDX-License-Identifier: MIT
// format/safetensors.h: safetensors files, sharded sets with an index, and Hugging Face folders.
//
//     file    header length u64 | header: a JSON object {name: {dtype, shape, data_offsets}} | data
//
// No number of a header is trusted. A reader gets the entries after all of them were checked: types are known, shapes
// multiply without overflow, and the tensors cover the data exactly, without gaps or overlaps.
#pragma once
#include "format/checkpoint.h"

extern const frit_checkpoint_source frit_source_safetensors;   // one file, names unchanged
extern const frit_checkpoint_source frit_source_folder;        // config.json + shards; names and keys as in GGUF

// Parses a whole file image and appends its tensors, and its free-form pairs as keys "safetensors.NAME".
// Data pointers point into `bytes`, which must outlive the checkpoint. This is what the fuzzer calls.
frit_status frit_safetensors_parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes);

// ------------------------------------------------------------------------------- for sources (and safetensors*.c)

enum { FRIT_SAFETENSORS_MAX_DIMS = 8 };

typedef struct frit_safetensors_entry {
    const char *path;   // of the file
    const char *name;
    const char *type;   // "BF16"; possibly a type that frit does not support
    int n_dims;
    int64_t shape[FRIT_SAFETENSORS_MAX_DIMS];   // may have zeros
    const uint8_t *data;
    uint64_t n_bytes;
} frit_safetensors_entry;

typedef frit_status (*frit_safetensors_each_fn)(void *ctx, const frit_safetensors_entry *entry);

// Calls `each` for every tensor of one file, in the order of their data. Names are copied into `names`.
frit_status frit_safetensors_read(const char *path, const uint8_t *bytes, uint64_t n_bytes, frit_arena *names,
                                  frit_safetensors_each_fn each, void *ctx);
// frit_safetensors_read for a folder: its model.safetensors, or all files that its model.safetensors.index.json names.
// Adds the files to the checkpoint.
frit_status frit_safetensors_read_folder(frit_checkpoint *ckpt, const char *folder,
                                         const frit_checkpoint_options *options, frit_safetensors_each_fn each,
                                         void *ctx);
// FRIT_E_UNSUPPORTED for entries that a frit_tensor cannot represent: unknown number format, five dimensions, empty.
frit_status frit_safetensors_to_tensor(const frit_safetensors_entry *entry, frit_tensor *tensor);

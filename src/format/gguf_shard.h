// SPDX-License-Identifier: MIT
// format/gguf_shard.h: one GGUF file, before it becomes a checkpoint or a shard of one. Private to gguf_*.c.
#pragma once
#include "base/check.h"
#include "format/gguf.h"
#include "format/ranges.h"

typedef struct frit_gguf_shard {
    const char *path;
    frit_file *file;   // owned until it moves into the checkpoint; NULL for an image in memory
    uint32_t version;
    frit_meta meta;         // its index is owned, its pairs are in the checkpoint's arena
    frit_tensor *tensors;   // in the checkpoint's arena
    size_t n_tensors;
} frit_gguf_shard;

// Opens and reads one file. The shard is empty after a failure.
frit_status frit_gguf_shard_open(frit_gguf_shard *shard, frit_arena *arena, const char *path, bool no_mmap);
frit_status frit_gguf_shard_read(frit_gguf_shard *shard, frit_arena *arena, const char *path, const uint8_t *bytes,
                                 uint64_t n_bytes);
// Reads the header and small tensors of a file through its function. The file must live as long as the arena.
frit_status frit_gguf_shard_read_ranges(frit_gguf_shard *shard, frit_arena *arena, const frit_range_file *file);
void frit_gguf_shard_free(frit_gguf_shard *shard);

// Appends the shard's tensors to the checkpoint and moves its file there, and its metadata if the checkpoint has none.
frit_status frit_gguf_shard_move(frit_gguf_shard *shard, frit_checkpoint *ckpt);

// general.alignment, or 32. The format asks for a multiple of 8, not for a power of two.
frit_status frit_gguf_alignment(const char *path, const frit_meta *meta, uint64_t *alignment);
static inline bool frit_gguf_align(uint64_t a, uint64_t alignment, uint64_t *out)
{
    return frit_add_u64(a, (alignment - a % alignment) % alignment, out);
}

// Appends the shard; if it belongs to a split set, opens the other shards and appends all in order.
frit_status frit_gguf_set_open(frit_gguf_shard *shard, frit_checkpoint *ckpt, const frit_checkpoint_options *options);

// gguf_spelling.c: gives keys and tensors with other spellings their usual names, joins experts that are stored one by
// one, and leaves out tensors that do not belong to the text model, with a warning.
frit_status frit_gguf_respell(frit_checkpoint *ckpt, const frit_log *log);

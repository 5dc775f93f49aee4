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

// Parses a whole file image. Data pointers point into `bytes`, which must outlive the checkpoint.
// This is what the fuzzer calls.
frit_status frit_gguf_parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes);

// Writes the checkpoint's pairs and tensors, in order, as GGUF v3 with the alignment that its metadata asks for.
// Writing what was read from a v3 file gives the same bytes. Never leaves a partial file under `path`.
frit_status frit_gguf_write(const frit_checkpoint *ckpt, const char *path);

// SPDX-License-Identifier: MIT
// format/safetensors.h: safetensors files, sharded sets with an index, and Hugging Face folders.
//
//     file    header length u64 | header: a JSON object {name: {dtype, shape, data_offsets}} | data
#pragma once
#include "format/checkpoint.h"

extern const frit_checkpoint_source frit_source_safetensors;   // one file, names as they stand
extern const frit_checkpoint_source frit_source_folder;        // config.json + shards; names and keys as in GGUF

// Parses a whole file image and appends its tensors. This is what the fuzzer calls.
frit_status frit_safetensors_parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes);

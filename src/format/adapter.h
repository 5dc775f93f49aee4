// SPDX-License-Identifier: MIT
// format/adapter.h: adapter files, opened for a model.
//
//     GGUF    general.type "adapter", adapter.type "lora"; tensors NAME.lora_a and NAME.lora_b, where NAME is a tensor
//             of the model; or general.architecture "controlvector", tensors direction.N
//     PEFT    a folder with adapter_config.json and adapter_model.safetensors, names as in the model's own folder
//
// An adapter is a list of pairs under GGUF's names. A pair changes a matrix w into w + scale * b a; with magnitudes
// (DoRA), each row is then scaled to its own length. `rope_style` names the order that the file's rows of b have
// (convert/convert.h reorders them). The shapes of every pair fit its tensor of the model.
//
//     a [rank, n_in]            b [n_out, rank]             a matrix
//     a [n, rank, n_in]         b [n, n_out, rank]          a stack of n matrices
//     a [n_vocab, rank]         b [n_embd, rank]            token_embd, which is read row by row
#pragma once
#include "format/checkpoint.h"

typedef struct frit_adapter_pair {
    const char *name;   // of the model's tensor
    frit_tensor a, b;   // with their names in the file
    float scale;        // alpha / rank, or the file's own value
    // Columns [n_out, 1], rows in the order of b's rows; no name: none.
    frit_tensor magnitudes;
    frit_tensor factors;   // the product with its bias is multiplied by them
    frit_tensor bias;      // instead of the product's bias
} frit_adapter_pair;

typedef struct frit_adapter_file {
    frit_checkpoint *ckpt;   // owns files and names
    frit_arena arena;        // owns rewritten tensors
    const char *format;      // "GGUF v3", "PEFT"
    const char *name;        // general.name, or the folder's; ""
    bool is_vector;
    const char *rope_style;   // "neox", "interleaved"; NULL: as in GGUF files of the architecture
    float alpha;              // from PEFT's configuration or the file; 0: none
    frit_adapter_pair *pairs;
    size_t n_pairs;
    const frit_tensor **directions;   // [n_directions]: of layer i, or NULL
    size_t n_directions;
} frit_adapter_file;

// `base` is the model's checkpoint. FRIT_E_NOT_FOUND, FRIT_E_FORMAT, FRIT_E_UNSUPPORTED; FRIT_E_INVALID for an adapter
// of another model.
frit_status frit_adapter_file_open(frit_adapter_file *out, const char *path, const frit_checkpoint *base,
                                   const frit_checkpoint_options *options);
void frit_adapter_file_close(frit_adapter_file *file);

// ------------------------------------------------------------------------------- for adapter_*.c and the fuzzer

// file->ckpt holds a parsed GGUF file.
frit_status frit_adapter_read_gguf(frit_adapter_file *file, const frit_checkpoint *base);
// `config` and `weights` are the contents of both files of a PEFT folder; they must outlive file->ckpt.
frit_status frit_adapter_read_peft(frit_adapter_file *file, const frit_checkpoint *base, const char *config,
                                   size_t n_config, const uint8_t *bytes, uint64_t n_bytes, const frit_log *log);
bool frit_adapter_is_peft(const char *path);      // a folder, or the weights file in one
bool frit_adapter_has_config(const char *path);   // has adapter_config.json
// Appends base_model_name_or_path of a PEFT adapter; appends nothing if the key is absent.
frit_status frit_adapter_base_of(const char *path, frit_buf *out);
frit_status frit_adapter_open_peft(frit_adapter_file *file, const char *path, const frit_checkpoint *base,
                                   const frit_checkpoint_options *options);
// Adds a pair if it fits the model's tensor of this name.
frit_status frit_adapter_add_pair(frit_adapter_file *file, const frit_checkpoint *base, const frit_adapter_pair *pair);

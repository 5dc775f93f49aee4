// SPDX-License-Identifier: MIT
// engine/saved.h: the file of a session.
//
//     header | tokens int32 | source int32 | places of states int32 | logits f32
//            | positions, by layer | positions of the source, by layer | states, by place | note | sum
//
// Numbers are as the machine has them. What positions and states consist of is the cache's business (kv.h: visits); the
// header says how large they are, and of which model. The source is the text that an encoder-decoder reads; its
// positions hold what the encoder left, all of it or, where it has not run yet, nothing. The last place of a state is
// that of the session itself, those before are of its copies. The checksum is of everything before it.
#pragma once
#include "base/status.h"

enum { FRIT_SAVED_VERSION = 3 };

typedef struct frit_saved_header {
    char magic[8];   // frit_saved_magic
    uint32_t version, n_layer;
    uint64_t n_bytes;   // of the file
    char arch[32], type_k[16], type_v[16];
    uint64_t model;      // fingerprint of weights and what the metadata says of them
    uint64_t rotation;   // of the frequencies that positions turn by, which may depend on the context
    uint64_t adapters;   // of the session's adapters and their scales; 0: none
    uint64_t position_bytes, state_bytes;
    uint64_t source_bytes;   // of a position of the source; 0: the model has none
    uint32_t n_vocab, n_ctx;
    uint32_t n_tokens, n_done, n_states, n_logits;   // n_logits: 0 or n_vocab
    uint32_t n_source, n_encoded;                    // n_encoded: 0 or n_source
    uint64_t n_note_bytes;
} frit_saved_header;

extern const char frit_saved_magic[8];

typedef struct frit_saved {   // parts of the file's bytes, which may be unaligned
    frit_saved_header header;
    const uint8_t *tokens, *source, *places, *logits, *positions, *source_positions, *states, *note;
} frit_saved;

// Checks all of it before anybody allocates or changes anything; `expected` is what a session of this engine would
// have: everything up to n_ctx. `name` is for the sentence.
frit_status frit_saved_parse(frit_saved *saved, const char *name, const uint8_t *bytes, uint64_t n_bytes,
                             const frit_saved_header *expected);

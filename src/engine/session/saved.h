// SPDX-License-Identifier: MIT
// engine/session/saved.h: the file of a session.
//
//     header | tokens int32 | source int32 | snapshot positions int32 | logits f32
//            | cache | cache of the source | of each snapshot: cache of windows, states | note | checksum
//
// Numbers have the machine's byte order. The layout of cache positions and states is the cache's (kv.h: visits); the
// header has their sizes, and identifies the model. Layers with a window have the positions that the next token looks
// at, from the beginning of a page on. The source is the text that an encoder-decoder reads; its cache is complete, or
// empty if the encoder has not run. A snapshot's position is the number of tokens before it, at the beginning of a
// page. The last snapshot is the session's own state, without windows. The checksum is of everything before it.
#pragma once
#include "base/status.h"

enum { FRIT_SAVED_VERSION = 6, FRIT_SAVED_GROUPS = 4 };

typedef struct frit_saved_group {   // layers with the same window
    uint64_t position_bytes;        // 0: the model has fewer groups
    uint32_t window;                // 0: all positions
    uint32_t of_source;
} frit_saved_group;

typedef struct frit_saved_header {
    char magic[8];   // frit_saved_magic
    uint32_t version, n_layer;
    uint64_t n_bytes;   // of the file
    char arch[32], type_k[16], type_v[16];
    uint64_t model;      // fingerprint of weights and what the metadata says of them
    uint64_t rotation;   // checksum of RoPE's frequencies, which may depend on the context
    uint64_t adapters;   // of the session's adapters and their scales; 0: none
    uint64_t state_bytes;
    frit_saved_group groups[FRIT_SAVED_GROUPS];
    uint32_t n_vocab, n_ctx;
    uint32_t n_tokens, n_done, n_snapshots, n_logits;   // n_logits: 0 or n_vocab
    uint32_t n_source, n_encoded;                       // n_encoded: 0 or n_source
    uint64_t n_note_bytes;
    uint64_t n_dropped;   // tokens that left the text before (shift.c)
    // Versions of frit with self-extend wrote its group, its window and a count here. It was removed: all are 0.
    uint32_t self_extend[3];
    uint32_t unused;
} frit_saved_header;

extern const char frit_saved_magic[8];

typedef struct frit_saved {   // parts of the file's bytes, which may be unaligned
    frit_saved_header header;
    const uint8_t *tokens, *source, *snapshot_positions, *logits, *positions, *source_positions, *snapshots, *note;
} frit_saved;

// Bytes of n_positions in the header's groups: of a text, of a source, or of a text in groups with a window only.
// UINT64_MAX on overflow.
typedef enum frit_saved_section { FRIT_SAVED_TEXT, FRIT_SAVED_SOURCE, FRIT_SAVED_WINDOWS } frit_saved_section;
uint64_t frit_saved_bytes(const frit_saved_header *header, frit_saved_section section, uint32_t n_positions);

// Checks all bytes, before anything is allocated or changed. `expected` is the header of a session of this engine, with
// its fields up to n_ctx. `name` is for error sentences.
frit_status frit_saved_parse(frit_saved *saved, const char *name, const uint8_t *bytes, uint64_t n_bytes,
                             const frit_saved_header *expected);

// SPDX-License-Identifier: MIT
// Any bytes as the file of a session: in an accepted file, all parts are inside the file and their values are in range.
#include "base/checksum.h"
#include "engine/session/saved.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

enum { VOCAB = 5, CTX = 99, FULL = 6, WINDOWED = 14, SOURCE = 10, STATE = 12, WINDOW = 3 };

static frit_saved_header expected(void)
{
    frit_saved_header h = {.version = FRIT_SAVED_VERSION, .n_layer = 2, .model = 1, .rotation = 2};
    memcpy(h.magic, frit_saved_magic, sizeof h.magic);
    memcpy(h.arch, "jamba", 5);
    memcpy(h.type_k, "f16", 3);
    memcpy(h.type_v, "f16", 3);
    h.groups[0] = (frit_saved_group){.position_bytes = WINDOWED, .window = WINDOW};
    h.groups[1] = (frit_saved_group){.position_bytes = FULL};
    h.groups[2] = (frit_saved_group){.position_bytes = SOURCE, .of_source = 1};
    h.state_bytes = STATE;
    h.n_vocab = VOCAB;
    h.n_ctx = CTX;
    return h;
}

// Writes a file of 40 tokens with a source of two, a snapshot and a note. Input that is too short becomes this file, so
// that an empty corpus is enough.
static size_t write_good(uint8_t *bytes)
{
    frit_saved_header h = expected();
    h.n_tokens = h.n_done = 40;
    h.n_snapshots = h.n_source = h.n_encoded = 2;
    h.n_logits = VOCAB;
    h.n_note_bytes = 2;
    h.n_bytes = sizeof h + 40 * 4 + 2 * 4 + 2 * 4 + VOCAB * 4 + frit_saved_bytes(&h, FRIT_SAVED_TEXT, 40) + 2 * SOURCE +
                frit_saved_bytes(&h, FRIT_SAVED_WINDOWS, 32) + 2 * STATE + 2 + 8;
    memset(bytes, 0, (size_t)h.n_bytes);
    memcpy(bytes, &h, sizeof h);
    const int32_t positions[2] = {32, 40};
    memcpy(bytes + sizeof h + 40 * 4 + 2 * 4, positions, sizeof positions);
    return (size_t)h.n_bytes;
}

// Mostly corrects size and checksum, because otherwise few changes would be read.
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    if (n_bytes < sizeof(frit_saved_header) && max_bytes >= 4096) n_bytes = write_good(bytes);
    n_bytes = LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
    if (n_bytes < sizeof(frit_saved_header) + 8 || seed % 8 == 0) return n_bytes;
    const uint64_t size = n_bytes;
    memcpy(bytes + offsetof(frit_saved_header, n_bytes), &size, sizeof size);
    frit_checksum sum = {0};
    frit_checksum_add(&sum, bytes, n_bytes - 8);
    const uint64_t value = frit_checksum_value(&sum);
    memcpy(bytes + n_bytes - 8, &value, 8);
    return n_bytes;
}

static volatile uint8_t sink;

static void touch(const uint8_t *part, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) sink = part[i];
}

static void check_tokens(const uint8_t *numbers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int32_t token;
        memcpy(&token, numbers + 4 * (size_t)i, 4);
        if (token < 0 || token >= VOCAB) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    const frit_saved_header h = expected();
    frit_saved saved;
    if (frit_saved_parse(&saved, "fuzz", bytes, n_bytes, &h) != FRIT_OK) return 0;
    const frit_saved_header *found = &saved.header;
    if (found->n_tokens > CTX || found->n_done > found->n_tokens) abort();
    if (found->n_source > CTX || (found->n_encoded != 0 && found->n_encoded != found->n_source)) abort();
    check_tokens(saved.tokens, found->n_tokens);
    check_tokens(saved.source, found->n_source);
    touch(saved.snapshot_positions, 4 * (uint64_t)found->n_snapshots);
    touch(saved.logits, 4 * (uint64_t)found->n_logits);
    touch(saved.positions, frit_saved_bytes(found, FRIT_SAVED_TEXT, found->n_done));
    touch(saved.source_positions, (uint64_t)found->n_encoded * SOURCE);
    uint64_t n_snapshots = (uint64_t)found->n_snapshots * STATE;
    for (size_t i = 0; i + 1 < found->n_snapshots; i++) {
        int32_t at;
        memcpy(&at, saved.snapshot_positions + 4 * i, 4);
        n_snapshots += frit_saved_bytes(found, FRIT_SAVED_WINDOWS, (uint32_t)at);
    }
    touch(saved.snapshots, n_snapshots);
    touch(saved.note, found->n_note_bytes);
    return 0;
}

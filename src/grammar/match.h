// SPDX-License-Identifier: MIT
// grammar/match.h: the position of a text in a grammar: all states that the bytes so far may have led to, each with the
// calls that it is inside of.
//
//     item    (state, frame): the automaton is in this state, inside of a call that returns to the frame
//     frame   a set of (state, frame): where a call returns to. Equal frames are stored once (interned), and all calls
//         of a rule at one position of the text share their frame, as in Earley's algorithm. So an ambiguous
//         grammar has few items, whatever the number of its parses.
//     config  the items after a byte, and whether the text may end there
//
// No function recurses: a deep nesting of the text is a long list of frames.
#pragma once
#include "grammar/grammar.h"

typedef struct frit_item {
    int32_t state, frame;
} frit_item;

// Pseudo states, to which the outermost frames return.
enum { FRIT_RETURN_END = -1, FRIT_RETURN_OUT = -2 };
// Frames that always exist: of the whole text, and of a walk that began inside an unknown call (mask.c).
enum { FRIT_FRAME_ROOT = 0, FRIT_FRAME_OUTER = 1 };
enum { FRIT_MATCH_ITEMS = 2048, FRIT_MATCH_BUCKETS = 4096, FRIT_MATCH_WORK = 1 << 15, FRIT_MATCH_FRAMES = 1 << 18 };

typedef struct frit_frame {
    uint32_t first;   // index of the first entry
    int32_t n;
} frit_frame;

typedef struct frit_frames {
    frit_frame *frames;
    frit_item *entries;
    int32_t *buckets;
    int32_t n, room, n_buckets;
    uint32_t n_entries;
    size_t entries_capacity;
} frit_frames;

typedef struct frit_config {
    frit_item *items;
    int32_t n;
    size_t capacity;
    bool final;   // the text may end here
    bool out;     // the call in which the walk began may have ended with the last byte
} frit_config;

typedef struct frit_calls {   // scratch of a step
    struct frit_pending_call {
        int32_t rule;
        frit_item back;
    } * items;
    frit_item *entries;
    int32_t n;
    size_t capacity, entries_capacity;
    struct frit_match_bucket {   // items of the config; valid in the round only
        uint64_t round;
        int32_t item;
    } buckets[FRIT_MATCH_BUCKETS];
    uint64_t round;
    int32_t n_added;
} frit_calls;

frit_status frit_frames_init(frit_frames *frames);
void frit_frames_clear(frit_frames *frames);   // keeps the two permanent frames
void frit_frames_deinit(frit_frames *frames);
void frit_config_free(frit_config *config);
void frit_calls_free(frit_calls *calls);

// Makes the config before the first byte.
frit_status frit_config_start(const frit_automaton *a, frit_frames *frames, frit_calls *calls, frit_config *out);
// Makes the config after one more byte; it has no items if the byte does not fit. FRIT_E_LIMIT, FRIT_E_MEMORY.
frit_status frit_config_step(const frit_automaton *a, frit_frames *frames, frit_calls *calls, const frit_item *items,
                             int32_t n, unsigned char byte, frit_config *out);
// Makes the config in which the call of a frame has just ended.
frit_status frit_config_return(const frit_automaton *a, frit_frames *frames, frit_calls *calls, int32_t frame,
                               frit_config *out);

// A text that grows token by token.
typedef struct frit_match {
    const frit_automaton *automaton;
    frit_frames frames;
    frit_calls calls;
    frit_config now, next, saved;
    frit_item *history;   // items of the configs before each push
    struct frit_match_mark {
        uint32_t first;
        int32_t n;
        bool final;
    } * marks;
    uint32_t n_history;
    int32_t n_marks;
    size_t history_capacity, marks_capacity;
    int32_t max_marks;   // pushes that can be taken back; 0: none
} frit_match;

frit_status frit_match_init(frit_match *match, const frit_automaton *automaton, int32_t max_marks);
void frit_match_deinit(frit_match *match);
frit_status frit_match_reset(frit_match *match);
// Reads bytes. *n_read is the number that fit; if it is less than n, the match stays unchanged. FRIT_E_LIMIT,
// FRIT_E_MEMORY.
frit_status frit_match_push(frit_match *match, const char *bytes, size_t n, size_t *n_read);
// Reads a token: its text, or its id if the grammar names it. If the token does not fit, the match stays unchanged.
frit_status frit_match_push_token(frit_match *match, int32_t token, frit_str text, bool *fits);
// Takes back the last n pushes. FRIT_E_INVALID if there were fewer, or max_marks is smaller.
frit_status frit_match_pop(frit_match *match, int32_t n);
// frit_match_is_final: true if the text may end here; frit_match_is_over: true if it must.
bool frit_match_is_final(const frit_match *match);
bool frit_match_is_over(const frit_match *match);
// Sets bit b % 64 of word b / 64 for each byte b that may follow.
void frit_match_bytes(const frit_match *match, uint64_t bytes[4]);
// Appends the bytes that must follow, at most `most`, and reads none of them. Stops where the text may end.
frit_status frit_match_forced(frit_match *match, size_t most, frit_buf *out);

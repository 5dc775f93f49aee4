// SPDX-License-Identifier: MIT
// text/stream.h: streams tokens to text: bytes are buffered until they complete a character.
//
// The texts of all pushes and the flush are what frit_tokenizer_decode gives, with U+FFFD for every sequence that is
// not UTF-8. A stream begins at the start of a text: to continue a prompt, push the prompt's tokens first and drop
// their text (some kinds write the first word with a space that is not in the text).
#pragma once
#include "text/tokenizer/tokenizer.h"

typedef struct frit_stream {
    const frit_tokenizer *tokenizer;
    unsigned flags;
    frit_buf held;   // an incomplete character, at most 3 bytes
    frit_buf text;   // output of the last call
    frit_text_place place;
} frit_stream;

void frit_stream_init(frit_stream *stream, const frit_tokenizer *tokenizer, unsigned flags);
frit_str frit_stream_push(frit_stream *stream, frit_token id);   // zero-terminated; valid until the next call
frit_str frit_stream_flush(frit_stream *stream);
void frit_stream_deinit(frit_stream *stream);

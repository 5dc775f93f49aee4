// SPDX-License-Identifier: MIT
// Moves whole characters from `held` to `text`.
#include "text/stream.h"

#include "base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd";   // U+FFFD

void frit_stream_init(frit_stream *stream, const frit_tokenizer *tokenizer, unsigned flags)
{
    *stream = (frit_stream){.tokenizer = tokenizer, .flags = flags};
}

void frit_stream_deinit(frit_stream *stream)
{
    frit_buf_free(&stream->held);
    frit_buf_free(&stream->text);
}

// Outputs complete characters, and U+FFFD for bytes that cannot become one.
static void release(frit_stream *stream, bool last)
{
    const char *p = stream->held.data;
    size_t n = stream->held.len, done = 0;
    while (done < n) {
        size_t valid = frit_utf8_valid_prefix(p + done, n - done);
        frit_buf_append(&stream->text, p + done, valid);
        done += valid;
        if (done == n) break;
        uint32_t c;
        int len = frit_utf8_decode(p + done, n - done, &c);
        if (len == 0 && !last) break;   // may still be completed
        frit_buf_text(&stream->text, replacement);
        done = len == 0 ? n : done + (size_t)-len;
    }
    if (done > 0) memmove(stream->held.data, stream->held.data + done, n - done);
    stream->held.len = n - done;
}

static frit_str given(frit_stream *stream)
{
    return frit_buf_reserve(&stream->text, 0) && stream->text.len > 0 ? (frit_str){stream->text.data, stream->text.len}
                                                                      : (frit_str){"", 0};
}

frit_str frit_stream_push(frit_stream *stream, frit_token id)
{
    frit_str piece = frit_tokenizer_next_piece(stream->tokenizer, id, stream->flags, &stream->place);
    frit_buf_clear(&stream->text);
    if (stream->flags & FRIT_TEXT_BYTES) {
        frit_buf_append(&stream->text, piece.ptr, piece.len);
        return given(stream);
    }
    frit_buf_append(&stream->held, piece.ptr, piece.len);
    release(stream, false);
    return given(stream);
}

frit_str frit_stream_flush(frit_stream *stream)
{
    frit_buf_clear(&stream->text);
    release(stream, true);
    return given(stream);
}

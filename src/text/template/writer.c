// SPDX-License-Identifier: MIT
// Writing with origins, and the chunks that hold texts with untrusted bytes.
#include "text/template/writer.h"

#include "text/template/value.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 64 << 10 };

// ------------------------------------------------------------------------------------- origins

void frit_origin_free(origin *o)
{
    for (origin_chunk *chunk = o->chunks; chunk; chunk = chunk->next) frit_spans_free(&chunk->untrusted);
    o->chunks = NULL;   // their memory belongs to the run
}

// The chunk that contains an address; NULL: the text has no untrusted bytes.
static const origin_chunk *chunk_of(const run *r, const char *at)
{
    for (const origin_chunk *chunk = r->origin.chunks; chunk; chunk = chunk->next)
        if ((uintptr_t)at >= (uintptr_t)chunk->bytes && (uintptr_t)at < (uintptr_t)chunk->bytes + chunk->used)
            return chunk;
    return NULL;
}

bool frit_origin_is_untrusted(const run *r, const char *at)
{
    const origin_chunk *chunk = chunk_of(r, at);
    if (!chunk) return false;
    const size_t offset = (size_t)(at - chunk->bytes), i = frit_spans_find(&chunk->untrusted, offset);
    return i < chunk->untrusted.n && chunk->untrusted.items[i].begin <= offset;
}

// Finds a chunk with room for a text and its final zero.
static origin_chunk *chunk_with_room(run *r, size_t n)
{
    origin_chunk *chunk = r->origin.chunks;
    if (chunk && chunk->capacity - chunk->used > n) return chunk;
    const size_t capacity = n + 1 > CHUNK_BYTES ? n + 1 : CHUNK_BYTES;
    chunk = frit_run_alloc(r, 1, sizeof *chunk);
    char *bytes = chunk ? frit_run_alloc(r, capacity, 1) : NULL;
    if (!bytes) return NULL;
    *chunk = (origin_chunk){.next = r->origin.chunks, .bytes = bytes, .capacity = capacity};
    r->origin.chunks = chunk;
    return chunk;
}

static frit_status place(run *r, frit_str text, const frit_spans *untrusted, value *out)
{
    origin_chunk *chunk = chunk_with_room(r, text.len);
    if (!chunk) return frit_run_memory(r);
    char *copy = chunk->bytes + chunk->used;
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    for (size_t i = 0; i < untrusted->n; i++)
        frit_spans_push(&chunk->untrusted, chunk->used + untrusted->items[i].begin,
                        chunk->used + untrusted->items[i].end);
    chunk->used += text.len + 1;
    *out = frit_var_text((frit_str){copy, text.len});
    return chunk->untrusted.failed ? frit_fail_memory(text.len, "a template's text") : FRIT_OK;
}

frit_status frit_origin_copy(run *r, frit_str text, value *out)
{
    frit_span all = {0, text.len};
    return place(r, text, &(frit_spans){.items = &all, .n = text.len > 0}, out);
}

// ------------------------------------------------------------------------------------- writing

// Notes the untrusted ranges of bytes[0, n), which are about to be written.
static void note_origin(writer *w, const char *bytes, size_t n)
{
    const origin_chunk *chunk = n > 0 ? chunk_of(w->r, bytes) : NULL;
    if (!chunk) return;
    const frit_spans *spans = &chunk->untrusted;
    const size_t begin = (size_t)(bytes - chunk->bytes), end = begin + n, at = w->buf.len;
    for (size_t i = frit_spans_find(spans, begin); i < spans->n && spans->items[i].begin < end; i++) {
        const frit_span span = spans->items[i];
        frit_spans_push(&w->untrusted, at + (span.begin > begin ? span.begin - begin : 0),
                        at + (span.end < end ? span.end : end) - begin);
    }
}

void frit_write(writer *w, const char *bytes, size_t n)
{
    if (w->taints)
        frit_spans_push(&w->untrusted, w->buf.len, w->buf.len + n);
    else
        note_origin(w, bytes, n);
    frit_buf_append(&w->buf, bytes, n);
}

void frit_write_made(writer *w, const char *bytes, size_t n)
{
    if (w->taints) frit_spans_push(&w->untrusted, w->buf.len, w->buf.len + n);
    frit_buf_append(&w->buf, bytes, n);
}

void frit_write_text(writer *w, const char *text)
{
    frit_write_made(w, text, strlen(text));
}

void frit_write_char(writer *w, char c)
{
    frit_write_made(w, &c, 1);
}

void frit_write_printf(writer *w, const char *format, ...)
{
    const size_t before = w->buf.len;
    va_list args;
    va_start(args, format);
    frit_buf_vprintf(&w->buf, format, args);
    va_end(args);
    if (w->taints) frit_spans_push(&w->untrusted, before, w->buf.len);
}

void frit_writer_cut(writer *w, size_t n_bytes)
{
    if (w->buf.len <= n_bytes) return;
    w->buf.len = n_bytes;
    w->buf.data[n_bytes] = 0;
    frit_spans_cut(&w->untrusted, n_bytes);
}

void frit_writer_free(writer *w)
{
    frit_buf_free(&w->buf);
    frit_spans_free(&w->untrusted);
}

// Copies the template's own text into the run's memory.
static frit_status keep(run *r, frit_str text, value *out)
{
    char *copy = frit_run_alloc(r, text.len + 1, 1);
    if (!copy) return frit_run_memory(r);
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    *out = frit_var_text((frit_str){copy, text.len});
    return FRIT_OK;
}

frit_status frit_writer_take(writer *w, value *out)
{
    const frit_str text = {w->buf.data, w->buf.len};
    frit_status status = FRIT_OK;
    if (w->buf.failed || w->untrusted.failed)
        status = frit_fail_memory(w->buf.len, "a template's text");
    else if (w->untrusted.n > 0)
        status = place(w->r, text, &w->untrusted, out);
    else
        status = keep(w->r, text, out);
    frit_writer_free(w);
    return status;
}

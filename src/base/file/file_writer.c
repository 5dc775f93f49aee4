// SPDX-License-Identifier: MIT
// Writes files in large pieces, and continues partial files. Each system implements base/file/file_sink.h.
#include "base/file/partial_file.h"
#include "base/file/file_sink.h"

#include <stdlib.h>
#include <string.h>

enum { WRITE_BUFFER = 256 * 1024 };

struct frit_file_writer {
    frit_sink *sink;
    uint64_t offset;   // bytes written so far
    size_t n_buffered;
    unsigned char buffer[WRITE_BUFFER];
};

static frit_status open_writer(frit_file_writer **out, const char *path, frit_sink_kind kind)
{
    *out = NULL;
    frit_file_writer *w = calloc(1, sizeof *w);
    if (!w) return frit_fail_memory(sizeof *w, "a file to be written");
    const frit_status status = frit_sink_open(&w->sink, path, kind);
    if (w->sink)
        *out = w;
    else
        free(w);
    return status;
}

static void close_writer(frit_file_writer *w, bool keeps)
{
    frit_sink_close(w->sink, keeps);
    free(w);
}

static frit_status write_buffer(frit_file_writer *w)
{
    const size_t n = w->n_buffered;
    w->n_buffered = 0;
    return frit_sink_write(w->sink, w->buffer, n);
}

frit_status frit_file_writer_open(frit_file_writer **out, const char *path)
{
    return open_writer(out, path, FRIT_SINK_FILE);
}

frit_status frit_file_writer_open_private(frit_file_writer **out, const char *path)
{
    return open_writer(out, path, FRIT_SINK_PRIVATE);
}

frit_status frit_file_writer_write(frit_file_writer *w, const void *bytes, size_t n)
{
    if (n > WRITE_BUFFER - w->n_buffered) FRIT_TRY(write_buffer(w));
    if (n > WRITE_BUFFER) {
        FRIT_TRY(frit_sink_write(w->sink, bytes, n));
    } else if (n > 0) {
        memcpy(w->buffer + w->n_buffered, bytes, n);
        w->n_buffered += n;
    }
    w->offset += n;
    return FRIT_OK;
}

uint64_t frit_file_writer_offset(const frit_file_writer *w)
{
    return w->offset;
}

frit_status frit_file_writer_commit(frit_file_writer *w)
{
    frit_status status = write_buffer(w);
    if (status != FRIT_OK) {
        close_writer(w, false);
        return status;
    }
    status = frit_sink_commit(w->sink);
    free(w);
    return status;
}

void frit_file_writer_abort(frit_file_writer *w)
{
    if (w) close_writer(w, false);
}

// ------------------------------------------------------------------------------------- parts

static frit_status read_key(frit_file_writer *w, const uint8_t key[FRIT_PARTIAL_KEY_BYTES], uint64_t *n_kept)
{
    uint8_t found[FRIT_PARTIAL_KEY_BYTES];
    *n_kept = frit_sink_peek(w->sink, found, sizeof found);
    if (*n_kept > 0 && memcmp(found, key, sizeof found) != 0) *n_kept = 0;
    FRIT_TRY(frit_partial_file_keep(w, *n_kept));
    return *n_kept > 0 ? FRIT_OK : frit_file_writer_write(w, key, FRIT_PARTIAL_KEY_BYTES);
}

frit_status frit_partial_file_open(frit_file_writer **out, const char *path, const uint8_t key[FRIT_PARTIAL_KEY_BYTES],
                                   uint64_t *n_kept)
{
    *n_kept = 0;
    FRIT_TRY(open_writer(out, path, FRIT_SINK_PARTIAL));
    if (!*out) return FRIT_OK;
    const frit_status status = read_key(*out, key, n_kept);
    if (status == FRIT_OK) return FRIT_OK;
    close_writer(*out, true);
    *out = NULL;
    return status;
}

frit_status frit_partial_file_keep(frit_file_writer *w, uint64_t n)
{
    FRIT_TRY(write_buffer(w));
    w->offset = n;
    return frit_sink_cut(w->sink, n);
}

frit_status frit_partial_file_flush(frit_file_writer *w)
{
    return write_buffer(w);
}

void frit_partial_file_leave(frit_file_writer *w)
{
    if (!w) return;
    write_buffer(w);   // what cannot be written now is written by the next call
    close_writer(w, true);
}

frit_status frit_partial_file_commit(frit_file_writer *w, const void *first)
{
    frit_status status = write_buffer(w);
    if (status == FRIT_OK) status = frit_sink_rewind(w->sink);
    if (status == FRIT_OK) status = frit_sink_write(w->sink, first, FRIT_PARTIAL_KEY_BYTES);
    if (status == FRIT_OK) return frit_file_writer_commit(w);
    close_writer(w, false);
    return status;
}

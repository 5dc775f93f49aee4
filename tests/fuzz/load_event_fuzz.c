// SPDX-License-Identifier: MIT
// Any stream of a server, in any pieces: the lines that are cut out of it do not depend on the pieces, and each object
// that Jansson reads is read as an event, unless it is nested deeply.
#include "frit/bench/load.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

typedef struct seen {
    uint64_t hash;
    int n;
} seen;

static bool see(void *ctx, const char *data, size_t n)
{
    seen *s = ctx;
    load_event event;
    s->n++;
    for (size_t i = 0; i < n; i++) s->hash = (s->hash ^ (unsigned char)data[i]) * 0x100000001b3u;
    if (load_event_read(&event, data, n) && event.message &&
        (event.message < data || event.message + event.n_message > data + n))
        abort();
    return true;
}

static seen feed(const char *text, size_t n, size_t piece)
{
    load_line_reader lines = {0};
    seen s = {0};
    for (size_t at = 0; at < n; at += piece)
        if (load_line_reader_feed(&lines, text + at, n - at < piece ? n - at : piece, see, &s) != LOAD_FEED_OK) abort();
    load_line_reader_free(&lines);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    const char *text = (const char *)bytes;
    load_event event;
    if (n_bytes > 65536) return 0;
    const seen whole = feed(text, n_bytes, n_bytes + 1), parts = feed(text, n_bytes, 1 + n_bytes % 7);
    if (whole.n != parts.n || whole.hash != parts.hash) abort();
    int depth = 0;
    for (size_t i = 0; i < n_bytes; i++) depth += text[i] == '[' || text[i] == '{';
    if (depth > 60) return 0;
    json_t *json = json_loadb(text, n_bytes, 0, NULL);
    if (json_is_object(json) && !load_event_read(&event, text, n_bytes)) abort();
    json_decref(json);
    return 0;
}

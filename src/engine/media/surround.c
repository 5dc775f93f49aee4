// SPDX-License-Identifier: MIT
// Plain text that stands around a picture in a prompt.
#include "engine/media/media.h"

#include <string.h>

// Returns the next placeholder of a prompt outside of untrusted ranges, or NULL.
static const char *find_place(const frit_buf *prompt, const char *from, const frit_spans *untrusted, const char *place)
{
    const char *const end = prompt->data + prompt->len;
    while (from < end) {
        const char *found = strstr(from, place);
        if (!found) {   // before a zero byte
            from += strlen(from) + 1;
            continue;
        }
        const size_t begin = (size_t)(found - prompt->data), i = frit_spans_find(untrusted, begin);
        if (i == untrusted->n || untrusted->items[i].begin >= begin + strlen(place)) return found;
        from = found + 1;
    }
    return NULL;
}

// Copies the untrusted ranges between `begin` and `end` to where the text is now, `moved` bytes later.
static void move_spans(frit_spans *to, const frit_spans *from, size_t begin, size_t end, size_t moved)
{
    for (size_t i = frit_spans_find(from, begin); i < from->n && from->items[i].begin < end; i++)
        frit_spans_push(to, from->items[i].begin + moved, from->items[i].end + moved);
}

frit_status frit_media_surround(frit_buf *prompt, frit_spans *untrusted, frit_media *const *media, size_t n_media)
{
    if (n_media == 0 || (!media[0]->edges.lead[0] && !media[0]->edges.tail[0]) || prompt->len == 0) return FRIT_OK;
    frit_buf text = {0};
    frit_spans spans = {0};
    size_t at = 0;
    const size_t n_place = strlen(media[0]->edges.place);
    for (const char *place; (place = find_place(prompt, prompt->data + at, untrusted, media[0]->edges.place));) {
        const size_t begin = (size_t)(place - prompt->data);
        move_spans(&spans, untrusted, at, begin, text.len - at);
        frit_buf_append(&text, prompt->data + at, begin - at);
        frit_buf_text(&text, media[0]->edges.lead);
        frit_buf_text(&text, media[0]->edges.place);
        frit_buf_text(&text, media[0]->edges.tail);
        at = begin + n_place;
    }
    move_spans(&spans, untrusted, at, prompt->len, text.len - at);
    frit_buf_append(&text, prompt->data + at, prompt->len - at);
    if (text.failed || spans.failed) {
        frit_buf_free(&text);
        frit_spans_free(&spans);
        return frit_fail_memory(prompt->len, "a prompt");
    }
    frit_buf_free(prompt);
    frit_spans_free(untrusted);
    *prompt = text;
    *untrusted = spans;
    return FRIT_OK;
}

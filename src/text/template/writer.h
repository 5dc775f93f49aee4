// SPDX-License-Identifier: MIT
// text/template/writer.h: texts that a template makes, and which of their bytes are untrusted.
//
// Untrusted is what comes from the variables: contents of messages, tools, arguments. Whatever a template does with
// such a text (slices, joins, replaces, prints it as JSON), the bytes that come from it stay untrusted, and those that
// the template itself writes stay its own. The tokenizer takes control tokens from the latter only.
//
//     "<|user|>" + content | trim      ->      <|user|>text of the user
//                                                      ~~~~~~~~~~~~~~~~ untrusted
//
// A text is known by its address. Texts with untrusted bytes lie in the chunks of an origin, each of which lists its
// untrusted ranges; a text anywhere else is the template's. So slices need no bookkeeping, and every text that is
// written through a writer keeps its origin.
#pragma once
#include "base/buf.h"
#include "base/spans.h"

struct run;
struct value;

typedef struct origin_chunk {
    struct origin_chunk *next;
    char *bytes;
    size_t used, capacity;
    frit_spans untrusted;
} origin_chunk;

typedef struct origin {
    bool on;   // off: variables are borrowed as they are, and nothing is untrusted
    origin_chunk *chunks;
} origin;

void frit_origin_free(origin *o);
bool frit_origin_is_untrusted(const struct run *r, const char *at);
// A copy of a variable's text, all of it untrusted.
frit_status frit_origin_copy(struct run *r, frit_str text, struct value *out);

typedef struct writer {
    frit_buf buf;
    struct run *r;
    frit_spans untrusted;
    bool taints;   // while set, everything that is written is untrusted
} writer;

void frit_write(writer *w, const char *bytes, size_t n);   // keeps their origin
// Bytes of the template's own, or made from a text whose origin `taints` tells.
void frit_write_made(writer *w, const char *bytes, size_t n);
void frit_write_text(writer *w, const char *text);
void frit_write_char(writer *w, char c);
void frit_write_printf(writer *w, const char *format, ...) FRIT_PRINTF(2, 3);
void frit_writer_cut(writer *w, size_t n_bytes);   // keeps so many
void frit_writer_free(writer *w);
// As a value; frees the writer.
frit_status frit_writer_take(writer *w, struct value *out);

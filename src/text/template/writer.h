// SPDX-License-Identifier: MIT
// text/template/writer.h: texts that a template makes, and which of their bytes are untrusted.
//
// Bytes that come from the variables are untrusted: contents of messages, tools, arguments. Whatever a template does
// with an untrusted text (slices, joins, replaces, prints it as JSON), its bytes stay untrusted, and bytes that the
// template itself writes stay trusted. The tokenizer reads control tokens from trusted bytes only.
//
//     "<|user|>" + content | trim      ->      <|user|>text of the user
//                                                      ~~~~~~~~~~~~~~~~ untrusted
//
// The origin of a text is found by its address. Texts with untrusted bytes are in the chunks of an origin, each of
// which lists its untrusted ranges. A text anywhere else is the template's. So slices need no bookkeeping, and every
// text that is written through a writer keeps its origin.
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
// Copies a variable's text as untrusted bytes.
frit_status frit_origin_copy(struct run *r, frit_str text, struct value *out);

typedef struct writer {
    frit_buf buf;
    struct run *r;
    frit_spans untrusted;
    bool taints;   // while set, everything that is written is untrusted
} writer;

void frit_write(writer *w, const char *bytes, size_t n);   // the bytes keep their origin
// Writes the template's own bytes, or bytes made from a text whose origin `taints` tells.
void frit_write_made(writer *w, const char *bytes, size_t n);
void frit_write_text(writer *w, const char *text);
void frit_write_char(writer *w, char c);
void frit_write_printf(writer *w, const char *format, ...) FRIT_PRINTF(2, 3);
void frit_writer_cut(writer *w, size_t n_bytes);   // keeps the first n_bytes
void frit_writer_free(writer *w);
// Returns the text as a value and frees the writer.
frit_status frit_writer_take(writer *w, struct value *out);

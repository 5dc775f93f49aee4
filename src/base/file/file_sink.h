// SPDX-License-Identifier: MIT
// base/file/file_sink.h: what a system does for base/file/file_writer.c: writing a file that has another name until it
// is whole.
#pragma once
#include "base/file/file.h"

typedef struct frit_sink frit_sink;

// A private file is its owner's alone from the beginning.
typedef enum frit_sink_kind { FRIT_SINK_FILE, FRIT_SINK_PRIVATE, FRIT_SINK_PART } frit_sink_kind;

// The name until commit is a new one beside PATH. Of a part it is PATH.part, with what is there; *out NULL: another
// process has it.
frit_status frit_sink_open(frit_sink **out, const char *path, frit_sink_kind kind);
frit_status frit_sink_write(frit_sink *sink, const void *bytes, size_t n);
// Reads the first n bytes of a part that was opened now. Returns how many bytes there are in all, 0 if fewer than n.
uint64_t frit_sink_peek(frit_sink *sink, void *bytes, size_t n);
frit_status frit_sink_cut(frit_sink *sink, uint64_t n);   // what is written next follows the first n bytes, and ends it
frit_status frit_sink_rewind(frit_sink *sink);            // what is written next replaces the first bytes
// Gives it its name; closed afterwards, and removed if that failed.
frit_status frit_sink_commit(frit_sink *sink);
void frit_sink_close(frit_sink *sink, bool keeps);   // keeps: it stays under the name that it has

// SPDX-License-Identifier: MIT
// base/file/file_sink.h: the system calls under base/file/file_writer.c: writing a file that has another name until it
// is complete.
#pragma once
#include "base/file/file.h"

typedef struct frit_sink frit_sink;

// Only the owner may read a private file, from its creation on.
typedef enum frit_sink_kind { FRIT_SINK_FILE, FRIT_SINK_PRIVATE, FRIT_SINK_PARTIAL } frit_sink_kind;

// Until commit, the file has a new name beside PATH. A part is PATH.part and keeps its contents; *out is NULL if
// another process writes it.
frit_status frit_sink_open(frit_sink **out, const char *path, frit_sink_kind kind);
frit_status frit_sink_write(frit_sink *sink, const void *bytes, size_t n);
// Reads the first n bytes of a part that was just opened. Returns the size of the part, 0 if it is less than n.
uint64_t frit_sink_peek(frit_sink *sink, void *bytes, size_t n);
frit_status frit_sink_cut(frit_sink *sink, uint64_t n);   // the file ends after its first n bytes; writing continues
                                                          // there
frit_status frit_sink_rewind(frit_sink *sink);            // writing continues at the first byte
// Renames the file to PATH and closes it. If that fails, the file is removed.
frit_status frit_sink_commit(frit_sink *sink);
void frit_sink_close(frit_sink *sink, bool keeps);   // keeps: the file stays under its present name

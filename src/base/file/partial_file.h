// SPDX-License-Identifier: MIT
// base/file/partial_file.h: a file that several calls may write, each continuing where the one before was stopped or
// killed.
//
// Until it is committed the file is PATH.part, and its first bytes are a key, a hash of everything that determines the
// file. A call with the same key continues the partial file; a call with another key begins anew. Readers never open a
// partial file as the file. One process at a time may write a partial file.
#pragma once
#include "base/file/file.h"

enum { FRIT_PARTIAL_KEY_BYTES = 40 };

// *n_kept is the size of the existing file with this key; 0: it is new and has only the key. *out is NULL if
// another process writes it.
frit_status frit_partial_file_open(frit_file_writer **out, const char *path, const uint8_t key[FRIT_PARTIAL_KEY_BYTES],
                                   uint64_t *n_kept);
// Continues after the first n bytes, at most n_kept.
frit_status frit_partial_file_keep(frit_file_writer *writer, uint64_t n);
frit_status frit_partial_file_flush(frit_file_writer *writer);   // what was written survives the end of the process
void frit_partial_file_leave(frit_file_writer *writer);          // closes; the file stays for another call
// Commits like frit_file_writer_commit, with the file's own first bytes [FRIT_PARTIAL_KEY_BYTES] in place of the key.
frit_status frit_partial_file_commit(frit_file_writer *writer, const void *first);

// SPDX-License-Identifier: MIT
// base/file/file_part.h: a file that several calls may write, each continuing where the one before was stopped or
// killed.
//
// Until it is committed the file is PATH.part, and its first bytes are a key, a hash of everything that determines the
// file. A call with the same key continues the part; a call with another key begins anew. Readers never open a part as
// the file. One process at a time may write a part.
#pragma once
#include "base/file/file.h"

enum { FRIT_PART_KEY_BYTES = 40 };

// *n_kept is the size of the existing part with this key; 0: the part is new and has only the key. *out is NULL if
// another process writes the part.
frit_status frit_file_part_open(frit_file_writer **out, const char *path, const uint8_t key[FRIT_PART_KEY_BYTES],
                                uint64_t *n_kept);
// Continues after the first n bytes, at most n_kept.
frit_status frit_file_part_keep(frit_file_writer *writer, uint64_t n);
frit_status frit_file_part_flush(frit_file_writer *writer);   // what was written survives the end of the process
void frit_file_part_leave(frit_file_writer *writer);          // closes; the part stays for another call
// Commits like frit_file_writer_commit, with the file's own first bytes [FRIT_PART_KEY_BYTES] in place of the key.
frit_status frit_file_part_commit(frit_file_writer *writer, const void *first);

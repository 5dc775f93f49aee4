// SPDX-License-Identifier: MIT
// base/file/file_part.h: a file that several runs may write, each going on where the one before was stopped or killed.
//
// Until it is committed the file is PATH.part, and its first bytes are a key: what all of its bytes follow from. With
// the same key a run goes on; with another one it begins anew. A part is never taken for the file. One process at a
// time has it.
#pragma once
#include "base/file/file.h"

enum { FRIT_PART_KEY_BYTES = 40 };

// *n_kept: the bytes of the part that this key has; 0: it is new, and has only the key. *out NULL: another process
// writes it.
frit_status frit_file_part_open(frit_file_writer **out, const char *path, const uint8_t key[FRIT_PART_KEY_BYTES],
                                uint64_t *n_kept);
// Goes on after the first n bytes, of those that are kept.
frit_status frit_file_part_keep(frit_file_writer *writer, uint64_t n);
frit_status frit_file_part_flush(frit_file_writer *writer);   // what was written stays if the process is killed
void frit_file_part_leave(frit_file_writer *writer);          // closes; the part stays for another run
// As frit_file_writer_commit, with the file's own first bytes [FRIT_PART_KEY_BYTES] in place of the key.
frit_status frit_file_part_commit(frit_file_writer *writer, const void *first);

// SPDX-License-Identifier: MIT
// base/file.h: files of models, read as bytes; files of results, written whole or not at all.
//
// frit_file gives the bytes of a regular file: mapped, or read into memory where mapping is not wanted or fails.
// Anything that is not a regular file (directory, FIFO, device) is refused before it is read.
// A mapped file that someone cuts short raises SIGBUS when touched; frit_file_is_intact lets a caller look first.
//
// frit_file_writer writes to a temporary name beside the target; only commit gives the file its name.
#pragma once
#include "base/status.h"

typedef struct frit_file frit_file;

frit_status frit_file_open(frit_file **out, const char *path, bool no_mmap);
const uint8_t *frit_file_data(const frit_file *file);   // may be NULL for an empty file
uint64_t frit_file_size(const frit_file *file);
const char *frit_file_path(const frit_file *file);
bool frit_file_is_mapped(const frit_file *file);
bool frit_file_is_intact(const frit_file *file);      // still at least as long as when it was opened
uint64_t frit_file_size_now(const frit_file *file);   // as the system sees it at this moment; 0 if it cannot say
uint64_t frit_file_changed(const frit_file *file);    // when that happened last, on the system's clock; 0: not known
// What was read of a mapped file needs no memory of this process until it is touched again. Where the system cannot do
// that, nothing happens.
void frit_file_drop_pages(const frit_file *file);
void frit_file_close(frit_file *file);

typedef enum frit_path_kind { FRIT_PATH_NONE, FRIT_PATH_FILE, FRIT_PATH_FOLDER, FRIT_PATH_OTHER } frit_path_kind;
frit_path_kind frit_path_get_kind(const char *path);
bool frit_path_is_same(const char *a, const char *b);   // both are there and are one file
frit_status frit_folder_make(const char *path);         // its parents are there; fine if it is too
// Reads at most max_bytes of a regular file into `out` (malloc'd, zero-terminated).
frit_status frit_file_read(const char *path, uint64_t max_bytes, char **out, size_t *n_bytes);

typedef struct frit_file_writer frit_file_writer;
frit_status frit_file_writer_open(frit_file_writer **out, const char *path);
frit_status frit_file_writer_write(frit_file_writer *writer, const void *bytes, size_t n);
uint64_t frit_file_writer_offset(const frit_file_writer *writer);
frit_status frit_file_writer_commit(frit_file_writer *writer);   // closes; the writer is gone afterwards
void frit_file_writer_abort(frit_file_writer *writer);           // removes what was written; NULL is fine

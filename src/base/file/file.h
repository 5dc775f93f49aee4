// SPDX-License-Identifier: MIT
// base/file/file.h: reads files as bytes (mapped where possible); writes files atomically.
//
// frit_file has the bytes of a regular file: mapped, or read into memory if mapping is not wanted or fails.
// Anything that is not a regular file (directory, FIFO, device) is refused before it is read.
// Reading a mapped file that was truncated raises SIGBUS; frit_file_is_intact checks its size first.
//
// frit_file_writer writes to a temporary name in the target's folder; commit renames it.
#pragma once
#include "base/status.h"

typedef struct frit_file frit_file;

frit_status frit_file_open(frit_file **out, const char *path, bool no_mmap);
const uint8_t *frit_file_data(const frit_file *file);   // may be NULL for an empty file
uint64_t frit_file_size(const frit_file *file);
const char *frit_file_path(const frit_file *file);
bool frit_file_is_mapped(const frit_file *file);
bool frit_file_is_intact(const frit_file *file);      // still at least as long as when it was opened
uint64_t frit_file_size_now(const frit_file *file);   // current size in the file system; 0 if unknown
uint64_t frit_file_changed(const frit_file *file);    // time of the last change, on the system's clock; 0: unknown
// Drops the mapped pages of a range from this process's memory until they are read again. No effect where the system
// cannot do that.
void frit_file_drop_pages(const frit_file *file);
void frit_file_close(frit_file *file);

// Large memory that is written once and read seldom. It consists of pages of a file without a name beside PATH, which
// the system can write out, instead of the process's own memory. If no such file can be made, it is ordinary memory.
frit_status frit_file_open_copy(frit_file **out, const char *path);   // a copy of the file PATH, which stays unchanged
uint8_t *frit_file_bytes(frit_file *copy);
void *frit_scratch_new(const char *path, uint64_t n_bytes, bool *is_mapped);   // zeros; NULL: out of memory
void frit_scratch_free(void *data, uint64_t n_bytes, bool is_mapped);

typedef enum frit_path_kind { FRIT_PATH_NONE, FRIT_PATH_FILE, FRIT_PATH_FOLDER, FRIT_PATH_OTHER } frit_path_kind;
frit_path_kind frit_path_get_kind(const char *path);
bool frit_path_is_same(const char *a, const char *b);     // both exist and are the same file
frit_status frit_folder_make(const char *path);           // its parent must exist; no error if the folder exists
frit_status frit_folder_make_private(const char *path);   // a new folder is accessible to its owner only
// Calls `each` for every file of a folder; `changed` is in seconds since 1970. `each` may remove the file. A folder
// that cannot be read counts as empty.
typedef void (*frit_folder_fn)(void *ctx, const char *name, uint64_t n_bytes, int64_t changed);
void frit_folder_each(const char *path, frit_folder_fn each, void *ctx);
bool frit_file_remove(const char *path);
void frit_file_touch(const char *path);   // sets the time of the last change to now
// Reads at most max_bytes of a regular file into `out` (malloc'd, zero-terminated).
frit_status frit_file_read(const char *path, uint64_t max_bytes, char **out, size_t *n_bytes);

typedef struct frit_file_writer frit_file_writer;
frit_status frit_file_writer_open(frit_file_writer **out, const char *path);
// For files with private contents, such as chats: only the owner may read the new file, whatever the permissions of an
// existing file.
frit_status frit_file_writer_open_private(frit_file_writer **out, const char *path);
frit_status frit_file_writer_write(frit_file_writer *writer, const void *bytes, size_t n);
uint64_t frit_file_writer_offset(const frit_file_writer *writer);
frit_status frit_file_writer_commit(frit_file_writer *writer);   // closes; the writer is gone afterwards
void frit_file_writer_abort(frit_file_writer *writer);           // removes what was written; NULL is fine

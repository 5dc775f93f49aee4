// SPDX-License-Identifier: MIT
// hub/disk.h: folders, links, locks and free space on the disk, for caches that other processes use too. Paths are
// UTF-8 with '/'. disk_posix.c and disk_win.c have the parts that depend on the system. Every failure sets an error.
#pragma once
#include "hub/hub.h"

// ---------------------------------------------------------------------------------------- files

hub_status hub_make_folder(const char *path);    // with the folders above it
hub_status hub_make_parents(const char *path);   // the folders above a file
uint64_t hub_file_bytes(const char *path);       // UINT64_MAX: not a regular file; links are followed
uint64_t hub_used_bytes(const char *path);       // bytes on the disk, without holes; 0 if there is no such file
int64_t hub_file_changed(const char *path);
bool hub_is_folder(const char *path);
bool hub_is_link(const char *path);                    // true for symbolic links
bool hub_is_same_file(const char *a, const char *b);   // after links; false if one does not exist
bool hub_is_file_name(const char *text, size_t n);     // true if the system allows the name; '/' is not allowed
const char *hub_home(void);                            // the user's folder, ~; "." if it is unknown
void hub_use_slashes(char *path);                      // replaces the system's separator by '/'
// Reads at most max_bytes of a regular file, malloc'd, with a zero after them.
hub_status hub_read_text(const char *path, uint64_t max_bytes, char **out, size_t *n);
hub_status hub_write_text(const char *path, const char *text, size_t n);   // appears when it is complete
hub_status hub_rename(const char *from, const char *to);                   // replaces `to`; both must be closed
// Makes a relative link at `path` to `target`, and replaces an existing file.
hub_status hub_link(const char *target, const char *path);
// Fails if the disk of `path`, which need not exist, has less free space than this.
hub_status hub_check_room(const char *path, uint64_t n_bytes, const char *what);
// Finds the free space on the disk of `path`, which need not exist. False if it is unknown.
bool hub_disk_left(const char *path, double *free_bytes);
// Calls a function for the entries of a folder except "." and "..", sorted; for none if it cannot be read. The function
// may remove the entry.
typedef hub_status (*hub_entry_fn)(void *ctx, const char *path, const char *name, bool is_folder);
hub_status hub_each_entry(const char *folder, hub_entry_fn each, void *ctx);
// Removes a file, a link, or a folder with its contents. Links are not followed. *freed grows by the bytes of the
// files.
hub_status hub_remove(const char *path, uint64_t *freed);
void hub_try_remove(const char *path);   // removes a file if possible; keeps the last error

// ---------------------------------------------------------------------------------------- open files

typedef intptr_t hub_handle;
#define HUB_CLOSED ((hub_handle)-1)

// `writes`: creates the file if needed, allows holes in it, and refuses a link. Returns HUB_CLOSED on failure.
hub_status hub_open(const char *path, bool writes, hub_handle *out);
hub_status hub_write_at(hub_handle file, const char *path, uint64_t at, const void *bytes, size_t n);
hub_status hub_read_at(hub_handle file, const char *path, uint64_t at, void *bytes, size_t n);
hub_status hub_resize(hub_handle file, const char *path, uint64_t n_bytes);
hub_status hub_sync(hub_handle file, const char *path);
void hub_close(hub_handle file);   // HUB_CLOSED is fine

// Takes the exclusive lock of a file, in the same way as huggingface-hub. If it must wait, prints one message.
hub_status hub_lock(const char *path, const char *what, const hub_watch *watch, hub_handle *out);
void hub_unlock(hub_handle lock);

// ---------------------------------------------------------------------------------------- of one system

hub_status hub_system_failed(const char *path, const char *what);   // with the reason of the last call that failed
hub_status hub_make_one_folder(const char *path);                   // no error if the folder exists
hub_status hub_make_link(const char *target, const char *relative, const char *path);   // `path` does not exist
bool hub_free_bytes(const char *folder, double *out);   // false if the folder does not exist or the space is unknown
typedef enum hub_locked { HUB_LOCKED, HUB_LOCKED_BY_OTHERS, HUB_LOCKS_UNKNOWN, HUB_LOCK_FAILED } hub_locked;
hub_locked hub_try_lock(hub_handle file);
void hub_sleep_ms(int ms);
double hub_now_s(void);   // monotonic clock
long hub_process_id(void);

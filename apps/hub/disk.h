// SPDX-License-Identifier: MIT
// hub/disk.h: folders, links, locks and room on the disk, for caches that other processes use too. Paths are UTF-8 and
// have '/'. What systems do differently is in disk_posix.c and disk_win.c; each failure leaves a sentence.
#pragma once
#include "hub/hub.h"

// ---------------------------------------------------------------------------------------- files

hub_status hub_make_folder(const char *path);    // and those above it
hub_status hub_make_parents(const char *path);   // those above a file
uint64_t hub_file_bytes(const char *path);       // UINT64_MAX: there is no such regular file (a link to one is one)
uint64_t hub_used_bytes(const char *path);       // on the disk: holes do not count; 0 if there is no such file
int64_t hub_file_changed(const char *path);
bool hub_is_folder(const char *path);
bool hub_is_link(const char *path);                    // a symbolic one
bool hub_is_same_file(const char *a, const char *b);   // after links; false if one is not there
bool hub_is_file_name(const char *text, size_t n);     // on this system, without '/'
const char *hub_home(void);                            // the user's folder, as ~ means it; "." if it is unknown
void hub_use_slashes(char *path);                      // in place of the system's own separator
// At most max_bytes of a regular file, malloc'd, with a zero after them.
hub_status hub_read_text(const char *path, uint64_t max_bytes, char **out, size_t *n);
hub_status hub_write_text(const char *path, const char *text, size_t n);   // appears whole
hub_status hub_rename(const char *from, const char *to);                   // replaces; neither is open
// A link at `path` to `target`, relative, in place of what is there.
hub_status hub_link(const char *target, const char *path);
// Fails if the disk of `path`, which need not exist, has less room than this.
hub_status hub_check_room(const char *path, uint64_t n_bytes, const char *what);
// What is free on the disk of `path`, which need not exist. False: that is unknown.
bool hub_disk_left(const char *path, double *free_bytes);
// The entries of a folder but "." and "..", sorted; none if it cannot be read. What is found may be removed.
typedef hub_status (*hub_entry_fn)(void *ctx, const char *path, const char *name, bool is_folder);
hub_status hub_each_entry(const char *folder, hub_entry_fn each, void *ctx);
// A file, a link, or a folder with all in it. Links are not followed. *freed grows by the bytes of the files.
hub_status hub_remove(const char *path, uint64_t *freed);
void hub_discard(const char *path);   // a file, if that is possible; the sentence of an error before it stays

// ---------------------------------------------------------------------------------------- open files

typedef intptr_t hub_handle;
#define HUB_CLOSED ((hub_handle)-1)

// `writes`: it is made if it is not there, may have holes, and a link is refused. HUB_CLOSED on failure.
hub_status hub_open(const char *path, bool writes, hub_handle *out);
hub_status hub_write_at(hub_handle file, const char *path, uint64_t at, const void *bytes, size_t n);
hub_status hub_read_at(hub_handle file, const char *path, uint64_t at, void *bytes, size_t n);
hub_status hub_resize(hub_handle file, const char *path, uint64_t n_bytes);
hub_status hub_sync(hub_handle file, const char *path);
void hub_close(hub_handle file);   // takes HUB_CLOSED

// The exclusive lock of a file, as huggingface-hub takes it. Waits, and says once that it does.
hub_status hub_lock(const char *path, const char *what, const hub_watch *watch, hub_handle *out);
void hub_unlock(hub_handle lock);

// ---------------------------------------------------------------------------------------- of one system

hub_status hub_system_failed(const char *path, const char *what);   // with the reason of the last call that failed
hub_status hub_make_one_folder(const char *path);                   // also if it is there
hub_status hub_make_link(const char *target, const char *relative, const char *path);   // nothing is there
bool hub_free_bytes(const char *folder, double *out);   // false: it is not there, or that is unknown
typedef enum hub_locked { HUB_LOCKED, HUB_LOCKED_BY_OTHERS, HUB_LOCKS_UNKNOWN, HUB_LOCK_FAILED } hub_locked;
hub_locked hub_try_lock(hub_handle file);
void hub_sleep_ms(int ms);
double hub_now_s(void);   // of a clock that nothing sets
long hub_process_id(void);

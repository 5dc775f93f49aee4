// SPDX-License-Identifier: MIT
// hub/disk.h: folders, links, locks and room on the disk, for caches that other processes use too.
#pragma once
#include "hub/hub.h"

hub_status hub_make_folder(const char *path);    // and those above it
hub_status hub_make_parents(const char *path);   // those above a file
uint64_t hub_file_bytes(const char *path);       // UINT64_MAX: there is no such regular file (a link to one is one)
uint64_t hub_used_bytes(const char *path);       // on the disk: holes do not count; 0 if there is no such file
int64_t hub_file_changed(const char *path);
bool hub_is_folder(const char *path);
// At most max_bytes of a regular file, malloc'd, with a zero after them.
hub_status hub_read_text(const char *path, uint64_t max_bytes, char **out, size_t *n);
hub_status hub_write_text(const char *path, const char *text, size_t n);   // appears whole
hub_status hub_rename(const char *from, const char *to);
// A link at `path` to `target`, relative, in place of what is there.
hub_status hub_link(const char *target, const char *path);
// Fails if the disk of `path`, which need not exist, has less room than this.
hub_status hub_check_room(const char *path, uint64_t n_bytes, const char *what);

// The exclusive lock of a file, as huggingface-hub takes it (flock). Waits, and says once that it does.
hub_status hub_lock(const char *path, const char *what, const hub_watch *watch, int *fd);
void hub_unlock(int fd);

// The entries of a folder but "." and "..", sorted; none if it cannot be read. What is found may be removed.
typedef hub_status (*hub_entry_fn)(void *ctx, const char *path, const char *name, bool is_folder);
hub_status hub_each_entry(const char *folder, hub_entry_fn each, void *ctx);
// A file, a link, or a folder with all in it. Links are not followed. *freed grows by the bytes of the files.
hub_status hub_remove(const char *path, uint64_t *freed);

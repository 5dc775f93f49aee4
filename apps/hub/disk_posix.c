// SPDX-License-Identifier: MIT
// The disk on POSIX systems.
#include "hub/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

hub_status hub_system_failed(const char *path, const char *what)
{
    const int error = errno;
    if (error == ENOSPC || error == EDQUOT) return hub_fail_full(path, what, "the disk is full");
    if (error == EFBIG) return hub_fail_full(path, what, "the file is larger than allowed");
    return hub_fail(HUB_E_DISK, "%s: %s: %s", path, what, strerror(error));
}

const char *hub_home(void)
{
    const char *home = getenv("HOME");
    return home && *home ? home : ".";
}

void hub_use_slashes(char *path)
{
    (void)path;
}

bool hub_is_file_name(const char *text, size_t n)
{
    (void)text;
    return n <= 255;
}

long hub_process_id(void)
{
    return (long)getpid();
}

void hub_sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

double hub_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// ---------------------------------------------------------------------------------------- files

hub_status hub_make_one_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? HUB_OK : hub_system_failed(path, "the folder cannot be made");
}

uint64_t hub_file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : UINT64_MAX;
}

uint64_t hub_used_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_blocks * 512 : 0;
}

int64_t hub_file_changed(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_mtime : 0;
}

bool hub_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool hub_is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

bool hub_is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

hub_status hub_rename(const char *from, const char *to)
{
    return rename(from, to) == 0 ? HUB_OK : hub_system_failed(to, "cannot be written");
}

hub_status hub_make_link(const char *target, const char *relative, const char *path)
{
    // On a disk without symbolic links, a hard link gives the file a second name.
    if (symlink(relative, path) == 0 || link(target, path) == 0) return HUB_OK;
    return hub_system_failed(path, "the link cannot be made");
}

bool hub_free_bytes(const char *folder, double *out)
{
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0) return false;
    *out = (double)disk.f_bavail * (double)disk.f_frsize;
    return true;
}

static int not_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

hub_status hub_each_entry(const char *folder, hub_entry_fn each, void *ctx)
{
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, not_dots, alphasort);
    hub_status status = HUB_OK;
    for (int i = 0; i < n; i++) {
        hub_path path;
        if (status == HUB_OK && hub_path_set(&path, "%s/%s", folder, entries[i]->d_name) == HUB_OK)
            status = each(ctx, path.text, entries[i]->d_name, hub_is_folder(path.text));
        free(entries[i]);
    }
    free(entries);
    return status;
}

static hub_status remove_entry(void *ctx, const char *path, const char *name, bool is_folder)
{
    (void)name, (void)is_folder;
    return hub_remove(path, ctx);
}

hub_status hub_remove(const char *path, uint64_t *freed)
{
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT ? HUB_OK : hub_system_failed(path, "cannot be removed");
    if (S_ISDIR(st.st_mode)) {
        const hub_status status = hub_each_entry(path, remove_entry, freed);
        if (status != HUB_OK) return status;
        return rmdir(path) == 0 ? HUB_OK : hub_system_failed(path, "the folder cannot be removed");
    }
    if (unlink(path) != 0) return hub_system_failed(path, "cannot be removed");
    if (S_ISREG(st.st_mode) && st.st_nlink == 1) *freed += (uint64_t)st.st_size;
    return HUB_OK;
}

void hub_try_remove(const char *path)
{
    unlink(path);
}

// ---------------------------------------------------------------------------------------- open files

hub_status hub_open(const char *path, bool writes, hub_handle *out)
{
    *out = open(path, O_CLOEXEC | (writes ? O_RDWR | O_CREAT | O_NOFOLLOW : O_RDONLY), 0666);
    return *out != HUB_CLOSED ? HUB_OK : hub_system_failed(path, writes ? "cannot be written" : "cannot be read");
}

hub_status hub_write_at(hub_handle file, const char *path, uint64_t at, const void *bytes, size_t n)
{
    const char *from = bytes;
    while (n > 0) {
        const ssize_t wrote = pwrite((int)file, from, n, (off_t)at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return hub_system_failed(path, "cannot be written");
        from += wrote;
        at += (uint64_t)wrote;
        n -= (size_t)wrote;
    }
    return HUB_OK;
}

hub_status hub_read_at(hub_handle file, const char *path, uint64_t at, void *bytes, size_t n)
{
    char *to = bytes;
    while (n > 0) {
        const ssize_t got = pread((int)file, to, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return hub_system_failed(path, "cannot be read");
        if (got == 0) return hub_fail(HUB_E_DISK, "%s: became shorter while it was in use", path);
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return HUB_OK;
}

hub_status hub_resize(hub_handle file, const char *path, uint64_t n_bytes)
{
    return ftruncate((int)file, (off_t)n_bytes) == 0 ? HUB_OK : hub_system_failed(path, "cannot be written");
}

hub_status hub_sync(hub_handle file, const char *path)
{
    return fsync((int)file) == 0 || errno == EINVAL ? HUB_OK : hub_system_failed(path, "cannot be written");
}

void hub_close(hub_handle file)
{
    if (file != HUB_CLOSED) close((int)file);
}

// Uses flock, like huggingface-hub.
hub_locked hub_try_lock(hub_handle file)
{
    if (flock((int)file, LOCK_EX | LOCK_NB) == 0) return HUB_LOCKED;
    if (errno == EWOULDBLOCK || errno == EINTR) return HUB_LOCKED_BY_OTHERS;
    return errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP ? HUB_LOCKS_UNKNOWN : HUB_LOCK_FAILED;
}

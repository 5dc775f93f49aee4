// SPDX-License-Identifier: MIT
// Folders, links, locks and room on the disk.
#include "hub/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static hub_status fail_errno(const char *path, const char *what)
{
    const int error = errno;
    if (error == ENOSPC || error == EDQUOT) return hub_fail(HUB_E_DISK, "%s: %s: the disk is full", path, what);
    return hub_fail(HUB_E_DISK, "%s: %s: %s", path, what, strerror(error));
}

// ---------------------------------------------------------------------------------------- files

hub_status hub_make_folder(const char *path)
{
    hub_path at;
    const hub_status status = hub_path_set(&at, "%s", path);
    if (status != HUB_OK) return status;
    for (char *c = at.text + 1;; c++) {
        if (*c && *c != '/') continue;
        const char before = *c;
        *c = 0;
        if (mkdir(at.text, 0777) != 0 && errno != EEXIST && !hub_is_folder(at.text))
            return fail_errno(at.text, "the folder cannot be made");
        if (!before) break;
        *c = before;
    }
    return hub_is_folder(path) ? HUB_OK : hub_fail(HUB_E_DISK, "%s: is a file, a folder is expected", path);
}

hub_status hub_make_parents(const char *path)
{
    hub_path folder;
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return HUB_OK;
    const hub_status status = hub_path_set(&folder, "%.*s", (int)(slash - path), path);
    return status == HUB_OK ? hub_make_folder(folder.text) : status;
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

hub_status hub_read_text(const char *path, uint64_t max_bytes, char **out, size_t *n)
{
    const uint64_t n_bytes = hub_file_bytes(path);
    *out = NULL;
    if (n_bytes == UINT64_MAX) return hub_fail(HUB_E_NOT_FOUND, "%s: there is no such file", path);
    if (n_bytes > max_bytes)
        return hub_fail(HUB_E_DATA, "%s: has %llu bytes, expected at most %llu", path, (unsigned long long)n_bytes,
                        (unsigned long long)max_bytes);
    FILE *file = fopen(path, "rb");
    if (!file) return fail_errno(path, "cannot be read");
    char *text = malloc((size_t)n_bytes + 1);
    if (text) {
        *n = fread(text, 1, (size_t)n_bytes, file);
        text[*n] = 0;
    }
    const bool good = !ferror(file);
    fclose(file);
    *out = text;
    if (!text) return hub_fail(HUB_E_MEMORY, "out of memory");
    if (good) return HUB_OK;
    free(text);
    *out = NULL;
    return hub_fail(HUB_E_DISK, "%s: cannot be read", path);
}

// A name beside the target that no other process uses.
static hub_status beside(hub_path *out, const char *path)
{
    static _Atomic unsigned counter;
    return hub_path_set(out, "%s.%ld.%u.new", path, (long)getpid(), counter++);
}

hub_status hub_write_text(const char *path, const char *text, size_t n)
{
    hub_path part;
    hub_status status = beside(&part, path);
    if (status == HUB_OK) status = hub_make_parents(path);
    if (status != HUB_OK) return status;
    FILE *file = fopen(part.text, "wb");
    if (!file) return fail_errno(path, "cannot be written");
    const bool wrote = fwrite(text, 1, n, file) == n;
    if (!wrote) status = fail_errno(path, "cannot be written");
    if (fclose(file) != 0 && wrote) status = fail_errno(path, "cannot be written");
    if (status == HUB_OK) status = hub_rename(part.text, path);
    if (status != HUB_OK) unlink(part.text);
    return status;
}

hub_status hub_rename(const char *from, const char *to)
{
    return rename(from, to) == 0 ? HUB_OK : fail_errno(to, "cannot be written");
}

// ---------------------------------------------------------------------------------------- links

// From the folder of `path` to `target`; both are absolute, or relative to the same folder.
static hub_status relative_to(hub_path *out, const char *target, const char *path)
{
    size_t common = 0;
    for (size_t i = 0; target[i] && target[i] == path[i]; i++)
        if (target[i] == '/') common = i + 1;
    size_t n = 0;
    out->text[0] = 0;
    for (const char *at = path + common; (at = strchr(at, '/')); at++) {
        if (n + 4 >= sizeof out->text) return hub_path_set(out, "%*s", HUB_PATH_BYTES, "");
        n += (size_t)snprintf(out->text + n, sizeof out->text - n, "../");
    }
    if (n + strlen(target + common) >= sizeof out->text) return hub_path_set(out, "%*s", HUB_PATH_BYTES, "");
    snprintf(out->text + n, sizeof out->text - n, "%s", target + common);
    return HUB_OK;
}

hub_status hub_link(const char *target, const char *path)
{
    hub_path to, part;
    hub_status status = relative_to(&to, target, path);
    if (status == HUB_OK) status = beside(&part, path);
    if (status == HUB_OK) status = hub_make_parents(path);
    if (status != HUB_OK) return status;
    // Where a disk knows no symbolic links, a hard link gives the file a second name.
    if (symlink(to.text, part.text) != 0 && link(target, part.text) != 0)
        return fail_errno(path, "the link cannot be made");
    status = hub_rename(part.text, path);
    // Two names of one file: rename leaves both.
    unlink(part.text);
    return status;
}

// ---------------------------------------------------------------------------------------- room

hub_status hub_check_room(const char *path, uint64_t n_bytes, const char *what)
{
    enum { MARGIN = 16 << 20 };
    hub_path at;
    struct statvfs disk;
    hub_status status = hub_path_set(&at, "%s", path);
    if (status != HUB_OK) return status;
    while (statvfs(at.text[0] ? at.text : "/", &disk) != 0) {
        char *slash = strrchr(at.text, '/');
        if (errno != ENOENT || !slash) return HUB_OK;   // writing tells
        *slash = 0;
    }
    const double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    if ((double)n_bytes + MARGIN <= free_bytes) return HUB_OK;
    return hub_fail(HUB_E_DISK,
                    "%s needs %.2f GiB more, and the disk of %s has %.2f GiB; 'frit list' and 'frit rm' free room",
                    what, (double)n_bytes / (1 << 30), path, free_bytes / (1 << 30));
}

// ---------------------------------------------------------------------------------------- locks

hub_status hub_lock(const char *path, const char *what, const hub_watch *watch, int *fd)
{
    char sentence[512];
    bool said = false;
    hub_status status = hub_make_parents(path);
    *fd = -1;
    if (status != HUB_OK) return status;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0664);
    if (*fd < 0) return fail_errno(path, "the lock cannot be opened");
    while (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) return HUB_OK;   // this disk knows no locks
            status = fail_errno(path, "the lock cannot be taken");
        } else if (watch->stops(watch->ctx)) {
            status = hub_fail(HUB_E_CANCELLED, "stopped");
        }
        if (status != HUB_OK) {
            hub_unlock(*fd);
            *fd = -1;
            return status;
        }
        snprintf(sentence, sizeof sentence, "another process fetches %s; waiting for it", what);
        if (!said) watch->say(watch->ctx, sentence);
        said = true;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return HUB_OK;
}

// The file stays: another process may have it open and wait.
void hub_unlock(int fd)
{
    if (fd >= 0) close(fd);
}

// ---------------------------------------------------------------------------------------- folders

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
    if (lstat(path, &st) != 0) return errno == ENOENT ? HUB_OK : fail_errno(path, "cannot be removed");
    if (S_ISDIR(st.st_mode)) {
        const hub_status status = hub_each_entry(path, remove_entry, freed);
        if (status != HUB_OK) return status;
        return rmdir(path) == 0 ? HUB_OK : fail_errno(path, "the folder cannot be removed");
    }
    if (unlink(path) != 0) return fail_errno(path, "cannot be removed");
    if (S_ISREG(st.st_mode) && st.st_nlink == 1) *freed += (uint64_t)st.st_size;
    return HUB_OK;
}

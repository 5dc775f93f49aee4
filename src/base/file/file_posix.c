// SPDX-License-Identifier: MIT
// Files on POSIX systems.
#include "base/file/file.h"
#include "base/buf.h"
#include "base/machine/cpu.h"
#include "base/file/file_sink.h"
#include "base/time.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_ALIGNMENT = 4096, MAX_NAMES = 100 };
static const size_t MAX_IO = (size_t)1 << 30;   // some systems refuse more in one call

struct frit_file {
    char *path;
    void *data;
    uint64_t size;
    int fd;
    bool mapped;
};

static frit_status fail_errno(const char *path, const char *what)
{
    int error = errno;
    frit_status status = error == ENOENT || error == ENOTDIR ? FRIT_E_NOT_FOUND
                         : error == ENOMEM                   ? FRIT_E_MEMORY
                                                             : FRIT_E_IO;
    char text[FRIT_ERRNO_BYTES];
    return frit_fail_file(status, "%s: %s: %s", path[0] ? path : "''", what, frit_errno_text(error, text));
}

static const char *kind_text(mode_t mode)
{
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

frit_path_kind frit_path_get_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return FRIT_PATH_NONE;
    return S_ISREG(st.st_mode) ? FRIT_PATH_FILE : S_ISDIR(st.st_mode) ? FRIT_PATH_FOLDER : FRIT_PATH_OTHER;
}

bool frit_path_is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static frit_status make_folder(const char *path, mode_t mode)
{
    if (mkdir(path, mode) == 0 || (errno == EEXIST && frit_path_get_kind(path) == FRIT_PATH_FOLDER)) return FRIT_OK;
    return fail_errno(path, "the folder cannot be created");
}

frit_status frit_folder_make(const char *path)
{
    return make_folder(path, 0777);
}

frit_status frit_folder_make_private(const char *path)
{
    return make_folder(path, 0700);
}

void frit_folder_each(const char *path, frit_folder_fn each, void *ctx)
{
    DIR *folder = opendir(path);
    if (!folder) return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat st;
        if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            each(ctx, entry->d_name, (uint64_t)st.st_size, (int64_t)st.st_mtime);
    }
    closedir(folder);
}

bool frit_file_remove(const char *path)
{
    return unlink(path) == 0;
}

void frit_file_touch(const char *path)
{
    utimensat(AT_FDCWD, path, NULL, 0);
}

// O_NONBLOCK: otherwise opening a pipe without a writer blocks. Regular files ignore it.
static frit_status open_regular(const char *path, int *fd, uint64_t *size)
{
    struct stat st;
    do *fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0 && (errno == ENXIO || errno == EOPNOTSUPP) && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return frit_fail_file(FRIT_E_IO, "%s: is %s, expected a file", path, kind_text(st.st_mode));
    if (*fd < 0) return fail_errno(path, "cannot be opened");
    frit_status status = FRIT_OK;
    if (fstat(*fd, &st) != 0)
        status = fail_errno(path, "cannot be examined");
    else if (!S_ISREG(st.st_mode))
        status = frit_fail_file(FRIT_E_IO, "%s: is %s, expected a file", path, kind_text(st.st_mode));
    if (status == FRIT_OK)
        *size = (uint64_t)st.st_size;
    else
        close(*fd);
    return status;
}

// Reads up to n bytes; *got is the number read.
static frit_status read_up_to(int fd, const char *path, char *data, size_t n, size_t *got)
{
    for (*got = 0; *got < n;) {
        size_t want = n - *got < MAX_IO ? n - *got : MAX_IO;
        ssize_t now = read(fd, data + *got, want);
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) return fail_errno(path, "cannot be read");
        if (now == 0) break;
        *got += (size_t)now;
    }
    return FRIT_OK;
}

static frit_status read_whole(frit_file *file)
{
    size_t n = (size_t)file->size, got = 0;
    const uint64_t available = frit_memory_available();
    if (file->size > available)   // the system would promise the memory, and kill the process while the memory is
                                  // filled
        return frit_fail_file(FRIT_E_MEMORY, "%s: has %llu bytes to be read into memory, %llu are available",
                              file->path, (unsigned long long)file->size, (unsigned long long)available);
    if (file->size > SIZE_MAX || posix_memalign(&file->data, READ_ALIGNMENT, n) != 0) {
        file->data = NULL;
        return frit_fail_file(FRIT_E_MEMORY, "%s: %llu bytes do not fit in memory", file->path,
                              (unsigned long long)file->size);
    }
    FRIT_TRY(read_up_to(file->fd, file->path, file->data, n, &got));
    if (got == n) return FRIT_OK;
    return frit_fail_file(FRIT_E_IO, "%s: ends after %zu bytes, expected %zu: it was truncated", file->path, got, n);
}

static frit_status load(frit_file *file, bool no_mmap)
{
    if (file->size == 0) return FRIT_OK;
    if (!no_mmap && file->size <= SIZE_MAX) {
        void *data = mmap(NULL, (size_t)file->size, PROT_READ, MAP_PRIVATE, file->fd, 0);
        if (data != MAP_FAILED) {
            file->data = data;
            file->mapped = true;
            return FRIT_OK;
        }
    }
    return read_whole(file);
}

static frit_status load_mapped(frit_file *file)
{
    return load(file, false);
}

static frit_status load_unmapped(frit_file *file)
{
    return load(file, true);
}

// Opens a new file beside the path and removes its name. Returns below 0 if that fails.
static int open_nameless(const char *path)
{
    const size_t n = strlen(path) + sizeof ".copy.XXXXXX";
    char *name = malloc(n);
    if (!name) return -1;
    snprintf(name, n, "%s.copy.XXXXXX", path);
    const int fd = mkstemp(name);
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        unlink(name);
    }
    free(name);
    return fd;
}

static bool write_all(int fd, const char *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t now = write(fd, data + done, n - done < MAX_IO ? n - done : MAX_IO);
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) return false;
        done += (size_t)now;
    }
    return true;
}

// Writes every block, with zeros where there is nothing to copy. A hole could fail to get disk space when its page is
// changed.
static bool fill(int fd, const frit_file *from, uint64_t n_bytes)
{
    enum { CHUNK = 1 << 20 };
    char *chunk = calloc(CHUNK, 1);
    bool is_whole = chunk != NULL;
    for (uint64_t done = 0; is_whole && done < n_bytes;) {
        size_t n = n_bytes - done < CHUNK ? (size_t)(n_bytes - done) : CHUNK;
        if (from) is_whole = read_up_to(from->fd, from->path, chunk, n, &n) == FRIT_OK && n > 0;
        is_whole = is_whole && write_all(fd, chunk, n);
        done += n;
    }
    free(chunk);
    return is_whole;
}

// NULL: the folder or the disk has no room.
static void *map_nameless(const char *path, const frit_file *from, uint64_t n_bytes)
{
    const int fd = n_bytes > 0 && n_bytes <= SIZE_MAX ? open_nameless(path) : -1;
    if (fd < 0) return NULL;
    void *data = MAP_FAILED;
    if (fill(fd, from, n_bytes)) data = mmap(NULL, (size_t)n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);   // the mapping keeps it
    return data == MAP_FAILED ? NULL : data;
}

static frit_status load_copy(frit_file *file)
{
    file->data = map_nameless(file->path, file, file->size);
    file->mapped = file->data != NULL;
    if (file->mapped || file->size == 0) return FRIT_OK;
    return lseek(file->fd, 0, SEEK_SET) == 0 ? read_whole(file) : fail_errno(file->path, "cannot be read");
}

static frit_status open_with(frit_file **out, const char *path, frit_status (*load_into)(frit_file *file))
{
    *out = NULL;
    frit_file *file = calloc(1, sizeof *file);
    char *copy = strdup(path);
    if (!file || !copy) {
        free(file);
        free(copy);
        return frit_fail_memory(sizeof *file + strlen(path) + 1, "an open file");
    }
    file->path = copy;
    frit_status status = open_regular(path, &file->fd, &file->size);
    if (status != FRIT_OK) file->fd = -1;
    if (status == FRIT_OK) status = load_into(file);
    if (status != FRIT_OK) {
        frit_file_close(file);
        return status;
    }
    *out = file;
    return FRIT_OK;
}

frit_status frit_file_open(frit_file **out, const char *path, bool no_mmap)
{
    return open_with(out, path, no_mmap ? load_unmapped : load_mapped);
}

frit_status frit_file_open_copy(frit_file **out, const char *path)
{
    return open_with(out, path, load_copy);
}

uint8_t *frit_file_bytes(frit_file *copy)
{
    return copy->data;
}

void *frit_scratch_new(const char *path, uint64_t n_bytes, bool *is_mapped)
{
    void *data = map_nameless(path, NULL, n_bytes);
    *is_mapped = data != NULL;
    return data ? data : n_bytes <= SIZE_MAX ? calloc(1, (size_t)n_bytes) : NULL;
}

void frit_scratch_free(void *data, uint64_t n_bytes, bool is_mapped)
{
    if (is_mapped)
        munmap(data, (size_t)n_bytes);
    else
        free(data);
}

const uint8_t *frit_file_data(const frit_file *file)
{
    return file->data;
}

uint64_t frit_file_size(const frit_file *file)
{
    return file->size;
}

const char *frit_file_path(const frit_file *file)
{
    return file->path;
}

bool frit_file_is_mapped(const frit_file *file)
{
    return file->mapped;
}

bool frit_file_is_intact(const frit_file *file)
{
    struct stat st;
    return !file->mapped || (fstat(file->fd, &st) == 0 && (uint64_t)st.st_size >= file->size);
}

uint64_t frit_file_size_now(const frit_file *file)
{
    struct stat st;
    return fstat(file->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

uint64_t frit_file_changed(const frit_file *file)
{
    struct stat st;
    if (fstat(file->fd, &st) != 0) return 0;
#if defined(__APPLE__)
    const struct timespec at = st.st_mtimespec;
#else
    const struct timespec at = st.st_mtim;
#endif
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

void frit_file_drop_pages(const frit_file *file)
{
    if (file->mapped) madvise(file->data, (size_t)file->size, MADV_DONTNEED);
}

void frit_file_close(frit_file *file)
{
    if (!file) return;
    if (file->mapped)
        munmap(file->data, (size_t)file->size);
    else
        free(file->data);
    if (file->fd >= 0) close(file->fd);
    free(file->path);
    free(file);
}

// Some regular files (/proc) have size 0, so reading continues to the end.
static frit_status read_limited(int fd, const char *path, uint64_t max_bytes, frit_buf *text)
{
    for (size_t got = 1, chunk = 4096; got > 0;) {
        if (!frit_buf_reserve(text, chunk)) return frit_fail_memory(text->len + chunk, path);
        FRIT_TRY(read_up_to(fd, path, text->data + text->len, chunk, &got));
        text->len += got;
        text->data[text->len] = 0;
        chunk = text->len < 4096 ? 4096 : text->len;
        if (text->len > max_bytes)
            return frit_fail_file(FRIT_E_LIMIT, "%s: has more than %llu bytes", path, (unsigned long long)max_bytes);
    }
    return FRIT_OK;
}

frit_status frit_file_read(const char *path, uint64_t max_bytes, char **out, size_t *n_bytes)
{
    *out = NULL;
    *n_bytes = 0;
    int fd;
    uint64_t size;
    FRIT_TRY(open_regular(path, &fd, &size));
    frit_buf text = {0};
    frit_status status = FRIT_OK;
    if (size > max_bytes)
        status = frit_fail_file(FRIT_E_LIMIT, "%s: has %llu bytes, expected at most %llu", path,
                                (unsigned long long)size, (unsigned long long)max_bytes);
    if (status == FRIT_OK) status = read_limited(fd, path, max_bytes, &text);
    close(fd);
    if (status != FRIT_OK) {
        frit_buf_free(&text);
        return status;
    }
    *out = text.data;
    *n_bytes = text.len;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- sinks

struct frit_sink {
    char *path, *temp;   // temp: the name until commit
    int fd;
};

// Follows a symbolic link, so that its target is replaced and not the link. An existing target must be a regular
// file; the new file gets its permissions.
static frit_status find_target(frit_sink *sink, const char *path, mode_t *mode)
{
    struct stat st;
    *mode = 0;
    sink->path = realpath(path, NULL);
    if (!sink->path) sink->path = strdup(path);   // the target does not exist yet
    if (!sink->path) return frit_fail_memory(strlen(path) + 1, "a path");
    if (stat(sink->path, &st) != 0) return FRIT_OK;
    if (!S_ISREG(st.st_mode))
        return frit_fail_file(FRIT_E_IO, "%s: is %s and cannot be replaced by a file", path, kind_text(st.st_mode));
    *mode = st.st_mode & 07777;
    return FRIT_OK;
}

static frit_status open_temp(frit_sink *sink, mode_t mode)
{
    uint64_t number = frit_time_ns() ^ (uint64_t)getpid() << 40;
    size_t size = strlen(sink->path) + sizeof ".0123456789abcdef.tmp";
    sink->temp = malloc(size);
    if (!sink->temp) return frit_fail_memory(size, "a path");
    for (int i = 0; i < MAX_NAMES && sink->fd < 0; i++, number += 0x9e3779b97f4a7c15u) {
        snprintf(sink->temp, size, "%s.%08llx.tmp", sink->path, (unsigned long long)(number & 0xffffffff));
        sink->fd = open(sink->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (sink->fd < 0 && errno != EEXIST && errno != EINTR) break;
    }
    return sink->fd >= 0 ? FRIT_OK : fail_errno(sink->path, "cannot be written");
}

// Opens and locks the part. The lock belongs to this process until it closes the file. The process that had the lock
// before may have renamed the file in between.
static frit_status open_part(frit_sink *sink, bool *is_free)
{
    struct stat mine, named;
    size_t size = strlen(sink->path) + sizeof ".part";
    sink->temp = malloc(size);
    if (!sink->temp) return frit_fail_memory(size, "a path");
    snprintf(sink->temp, size, "%s.part", sink->path);
    sink->fd = open(sink->temp, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (sink->fd < 0) return fail_errno(sink->temp, "cannot be written");
    *is_free = flock(sink->fd, LOCK_EX | LOCK_NB) == 0 && fstat(sink->fd, &mine) == 0 &&
               stat(sink->temp, &named) == 0 && mine.st_ino == named.st_ino && S_ISREG(mine.st_mode);
    return FRIT_OK;
}

frit_status frit_sink_open(frit_sink **out, const char *path, frit_sink_kind kind)
{
    const bool is_part = kind == FRIT_SINK_PARTIAL, is_private = kind == FRIT_SINK_PRIVATE;
    *out = NULL;
    frit_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return frit_fail_memory(sizeof *sink, "a file to be written");
    sink->fd = -1;
    mode_t mode;
    bool is_free = true;
    frit_status status = find_target(sink, path, &mode);
    if (status == FRIT_OK) status = is_part ? open_part(sink, &is_free) : open_temp(sink, is_private ? 0600 : 0666);
    if (status == FRIT_OK && is_free && mode != 0 && !is_private && fchmod(sink->fd, mode) != 0)
        status = fail_errno(path, "its permissions cannot be kept");
    if (status == FRIT_OK && is_free)
        *out = sink;
    else
        frit_sink_close(sink, is_part || sink->fd < 0);
    return status;
}

frit_status frit_sink_write(frit_sink *sink, const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        ssize_t now = write(sink->fd, at, n < MAX_IO ? n : MAX_IO);
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) return fail_errno(sink->path, "cannot be written");
        at += now;
        n -= (size_t)now;
    }
    return FRIT_OK;
}

uint64_t frit_sink_peek(frit_sink *sink, void *bytes, size_t n)
{
    struct stat st;
    const bool is_read = pread(sink->fd, bytes, n, 0) == (ssize_t)n && fstat(sink->fd, &st) == 0;
    return is_read ? (uint64_t)st.st_size : 0;
}

frit_status frit_sink_cut(frit_sink *sink, uint64_t n)
{
    const bool done = ftruncate(sink->fd, (off_t)n) == 0 && lseek(sink->fd, (off_t)n, SEEK_SET) == (off_t)n;
    return done ? FRIT_OK : fail_errno(sink->temp, "cannot be written");
}

frit_status frit_sink_rewind(frit_sink *sink)
{
    return lseek(sink->fd, 0, SEEK_SET) == 0 ? FRIT_OK : fail_errno(sink->temp, "cannot be written");
}

// Makes the rename durable. Not all file systems can; the file's content is complete in any case.
static void sync_folder(const char *path)
{
    char *folder = strdup(path);
    if (!folder) return;
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

frit_status frit_sink_commit(frit_sink *sink)
{
    frit_status status = FRIT_OK;
    if (fsync(sink->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        status = fail_errno(sink->path, "cannot be written");
    if (status == FRIT_OK) {
        int fd = sink->fd;
        sink->fd = -1;
        if (close(fd) != 0 && errno != EINTR) status = fail_errno(sink->path, "cannot be written");
    }
    if (status == FRIT_OK && rename(sink->temp, sink->path) != 0) status = fail_errno(sink->path, "cannot be replaced");
    if (status == FRIT_OK) sync_folder(sink->path);
    frit_sink_close(sink, status == FRIT_OK);
    return status;
}

void frit_sink_close(frit_sink *sink, bool keeps)
{
    if (!keeps && sink->temp) unlink(sink->temp);
    if (sink->fd >= 0) close(sink->fd);
    free(sink->path);
    free(sink->temp);
    free(sink);
}

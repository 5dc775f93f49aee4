// SPDX-License-Identifier: MIT
// Files of stored responses. A file is written under a temporary name, synced, and renamed.
#include "server/api/responses_disk.h"

#include "frit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING  ".response"
#define PARTIAL ".partial"

enum { MAX_HEAD = 256, N_TEXTS = 3, MAX_TEXT = 1 << 30 };

struct server_disk {
    int folder;   // a file descriptor
    char *path;
};

typedef struct head {
    size_t key, n[N_TEXTS], n_head;
    int64_t created;
    uint64_t checksum;   // of key, created, lengths and texts
} head;

bool server_disk_open(server_disk **out, const char *path, server_problem *problem)
{
    *out = NULL;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return server_refuse(problem, 500, NULL, NULL, "--responses-dir %.300s: %s", path, strerror(errno));
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return server_refuse(problem, 500, NULL, NULL, "--responses-dir %.300s: %s", path, strerror(errno));
    if (faccessat(folder, ".", W_OK | X_OK, 0) != 0) {
        server_refuse(problem, 500, NULL, NULL, "--responses-dir %.300s: %s", path, strerror(errno));
        close(folder);
        return false;
    }
    server_disk *disk = calloc(1, sizeof *disk);
    char *kept = strdup(path);
    if (!disk || !kept) {
        close(folder);
        free(disk);
        free(kept);
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    }
    *disk = (server_disk){folder, kept};
    *out = disk;
    return true;
}

void server_disk_close(server_disk *disk)
{
    if (!disk) return;
    close(disk->folder);
    free(disk->path);
    free(disk);
}

static void warn(const server_disk *disk, const char *name, const char *what)
{
    fprintf(stderr, "frit: warning: %s/%s: %s; it is skipped\n", disk->path, name, what);
}

static bool name_file(char name[96], const char *id, const char *ending)
{
    return snprintf(name, 96, "%s%s", id, ending) < 96;
}

// ---------------------------------------------------------------------------------------- bytes

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

static size_t read_all(int fd, char *bytes, size_t n)
{
    size_t got = 0;
    while (got < n) {
        const ssize_t done = read(fd, bytes + got, n - got);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) break;
        got += (size_t)done;
    }
    return got;
}

// Adds bytes to a 64-bit FNV-1a hash, which detects damage, not tampering.
static uint64_t add_to(uint64_t sum, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) sum = (sum ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return sum;
}

static int write_fields(char text[MAX_HEAD], const head *h)
{
    return snprintf(text, MAX_HEAD, "frit-response 1 %zu %" PRId64 " %zu %zu %zu", h->key, h->created, h->n[0], h->n[1],
                    h->n[2]);
}

static uint64_t checksum_of(const head *h, const char *const texts[N_TEXTS])
{
    char fields[MAX_HEAD];
    uint64_t sum = add_to(0xcbf29ce484222325u, fields, (size_t)write_fields(fields, h));
    for (size_t i = 0; i < N_TEXTS; i++) sum = add_to(sum, texts[i], h->n[i]);
    return sum;
}

// Reads the head of an open file of n_file bytes. Returns what is wrong, or NULL.
static const char *read_head(int fd, uint64_t n_file, head *h)
{
    char text[MAX_HEAD + 1];
    const size_t n = read_all(fd, text, MAX_HEAD);
    text[n] = 0;
    const char *end = memchr(text, '\n', n);
    int n_read = 0;
    if (!end ||
        sscanf(text, "frit-response 1 %zu %" SCNd64 " %zu %zu %zu %" SCNx64 "%n", &h->key, &h->created, &h->n[0],
               &h->n[1], &h->n[2], &h->checksum, &n_read) != 6 ||
        text + n_read != end)
        return "the head is not that of a response";
    h->n_head = (size_t)(end - text) + 1;
    if (h->n[0] > MAX_TEXT || h->n[1] > MAX_TEXT || h->n[2] > MAX_TEXT) return "a text is too long";
    if (n_file != (uint64_t)h->n_head + h->n[0] + h->n[1] + h->n[2]) return "its length is not the one that it names";
    return NULL;
}

// ---------------------------------------------------------------------------------------- files

static bool is_id(const char *name, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return n > 0 && n < sizeof(((server_disk_entry *)NULL)->id) && strspn(name, letters) == n;
}

static void list_one(server_disk *disk, const char *name, void (*found)(void *ctx, const server_disk_entry *entry),
                     void *ctx)
{
    const char *dot = strrchr(name, '.');
    struct stat info;
    head h;
    if (dot && strcmp(dot, PARTIAL) == 0 && is_id(name, (size_t)(dot - name))) unlinkat(disk->folder, name, 0);
    if (!dot || strcmp(dot, ENDING) != 0 || !is_id(name, (size_t)(dot - name))) return;
    const int fd = openat(disk->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool is_file = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const char *wrong = is_file ? read_head(fd, (uint64_t)info.st_size, &h) : "it cannot be read";
    if (fd >= 0) close(fd);
    if (wrong) {
        warn(disk, name, wrong);
        return;
    }
    server_disk_entry entry = {.key = h.key, .n_bytes = (size_t)info.st_size, .created = h.created};
    memcpy(entry.id, name, (size_t)(dot - name));
    found(ctx, &entry);
}

void server_disk_list(server_disk *disk, void (*found)(void *ctx, const server_disk_entry *entry), void *ctx)
{
    const int again = openat(disk->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = again >= 0 ? fdopendir(again) : NULL;
    if (!names) {
        if (again >= 0) close(again);
        return;
    }
    for (const struct dirent *name = readdir(names); name; name = readdir(names))
        list_one(disk, name->d_name, found, ctx);
    closedir(names);
}

static bool write_file(int fd, const head *h, const char *const texts[N_TEXTS])
{
    char text[MAX_HEAD];
    int n = write_fields(text, h);
    n += snprintf(text + n, MAX_HEAD - (size_t)n, " %016" PRIx64 "\n", checksum_of(h, texts));
    bool good = write_all(fd, text, (size_t)n);
    for (size_t i = 0; i < N_TEXTS && good; i++) good = write_all(fd, texts[i], h->n[i]);
    return good && fsync(fd) == 0;
}

bool server_disk_write(server_disk *disk, server_disk_entry *entry, const server_stored *stored, char reason[128])
{
    const char *const texts[N_TEXTS] = {stored->response, stored->history, stored->message};
    head h = {.key = entry->key, .created = entry->created};
    char partial[96], name[96];
    for (size_t i = 0; i < N_TEXTS; i++) h.n[i] = strlen(texts[i]);
    snprintf(reason, 128, "the id '%.80s' is no file's name", entry->id);
    if (!is_id(entry->id, strlen(entry->id)) || !name_file(partial, entry->id, PARTIAL) ||
        !name_file(name, entry->id, ENDING))
        return false;
    const int fd = openat(disk->folder, partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_file(fd, &h, texts);
    struct stat info = {0};
    good = good && fstat(fd, &info) == 0;
    int error = good ? 0 : errno;
    if (fd >= 0 && close(fd) != 0 && good) good = false, error = errno;
    if (good && renameat(disk->folder, partial, disk->folder, name) != 0) good = false, error = errno;
    if (good && fsync(disk->folder) != 0) good = false, error = errno;
    entry->n_bytes = (size_t)info.st_size;
    if (good) return true;
    if (fd >= 0) unlinkat(disk->folder, partial, 0);
    unlinkat(disk->folder, name, 0);
    snprintf(reason, 128, "%s", strerror(error));
    return false;
}

// Reads the zero-terminated texts of an open file after its head. Returns what is wrong, or NULL.
static const char *read_texts(int fd, const head *h, server_stored *stored)
{
    char **const texts[N_TEXTS] = {&stored->response, &stored->history, &stored->message};
    if (lseek(fd, (off_t)h->n_head, SEEK_SET) < 0) return strerror(errno);
    for (size_t i = 0; i < N_TEXTS; i++) {
        char *text = *texts[i] = malloc(h->n[i] + 1);
        if (!text) return "there is not enough memory";
        if (read_all(fd, text, h->n[i]) != h->n[i]) return "it cannot be read";
        text[h->n[i]] = 0;
    }
    const char *const all[N_TEXTS] = {stored->response, stored->history, stored->message};
    return checksum_of(h, all) == h->checksum ? NULL : "its checksum is wrong";
}

bool server_disk_read(server_disk *disk, const char *id, server_stored *stored)
{
    char name[96];
    struct stat info;
    head h;
    *stored = (server_stored){0};
    if (!is_id(id, strlen(id)) || !name_file(name, id, ENDING)) return false;
    const int fd = openat(disk->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const char *wrong = fd >= 0 && fstat(fd, &info) == 0 ? read_head(fd, (uint64_t)info.st_size, &h) : strerror(errno);
    if (!wrong) wrong = read_texts(fd, &h, stored);
    if (fd >= 0) close(fd);
    if (!wrong) return true;
    if (fd >= 0 || errno != ENOENT) warn(disk, name, wrong);   // no warning if the file was removed by hand
    server_stored_deinit(stored);
    return false;
}

void server_disk_remove(server_disk *disk, const char *id)
{
    char name[96];
    if (is_id(id, strlen(id)) && name_file(name, id, ENDING)) unlinkat(disk->folder, name, 0);
}

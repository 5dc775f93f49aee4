// SPDX-License-Identifier: MIT
// For each controller ("cpu", "memory") there are three steps:
//
//     /proc/self/cgroup       "0::/user.slice/app" (v2) or "4:cpu,cpuacct:/docker/1f"      which group is ours
//     /proc/self/mountinfo    "... /docker/1f /sys/fs/cgroup/cpu ... - cgroup cgroup rw,cpu"  where its tree is mounted
//     the group's folder, then its parents up to the mount point                            read the limits
//
// In a container the root of the mount may be the group itself, while /proc/self/cgroup has the outer name. The mount's
// root is then removed from the name.
#include "base/machine/cgroup.h"
#include "base/number.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, FILE_BYTES = 64 * 1024 };

typedef struct place {
    char folder[PATH_BYTES];
    size_t n_mount;   // length of the mount point, where the walk up ends
    bool v2;
} place;

// Reads a file, zero-terminated and truncated to the buffer. False if it cannot be read.
static bool read_text(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t n = 0;
    ssize_t got;
    while (n + 1 < size && (got = read(fd, text + n, size - 1 - n)) > 0) n += (size_t)got;
    close(fd);
    text[n] = 0;
    return true;
}

static bool list_has(const char *list, const char *end, const char *word)
{
    size_t n = strlen(word);
    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - list) == n && memcmp(list, word, n) == 0) return true;
        list = stop + 1;
    }
    return false;
}

// Finds "id:controllers:/name" for the controller, or the v2 line whose list is empty when `controller` is "".
static bool find_group(const char *lines, const char *controller, char *name, size_t size)
{
    for (const char *line = lines; *line;) {
        const char *end = line + strcspn(line, "\n");
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
        if (path) {
            bool found = *controller ? list_has(list + 1, path, controller) : path == list + 1;
            if (found && (size_t)(end - path) <= size) {
                memcpy(name, path + 1, (size_t)(end - path - 1));
                name[end - path - 1] = 0;
                return true;
            }
        }
        line = *end ? end + 1 : end;
    }
    return false;
}

// Finds the root and the mount point of a v1 controller, or of v2 when `controller` is "".
static bool find_mount(const char *lines, const char *controller, char *mount_root, char *mount_point)
{
    char line[PATH_BYTES], type[64], options[1024];
    for (const char *at = lines; *at;) {
        size_t n = strcspn(at, "\n");
        if (n < sizeof line) {
            memcpy(line, at, n);
            line[n] = 0;
            const char *dash = strstr(line, " - ");
            bool whole = dash && sscanf(line, "%*s %*s %*s %4095s %4095s", mount_root, mount_point) == 2 &&
                         sscanf(dash + 3, "%63s %*s %1023s", type, options) == 2;
            if (whole && !*controller && strcmp(type, "cgroup2") == 0) return true;
            if (whole && *controller && strcmp(type, "cgroup") == 0 &&
                list_has(options, options + strlen(options), controller))
                return true;
        }
        at += n + (at[n] != 0);
    }
    return false;
}

static bool find_place(place *p, const char *root, const char *controller, char *scratch)
{
    char name[PATH_BYTES], mount_root[PATH_BYTES], mount_point[PATH_BYTES], proc[PATH_BYTES];
    snprintf(proc, sizeof proc, "%s/proc/self", root);
    // A controller is in v1 if it is listed in v1, otherwise in v2.
    p->v2 = false;
    if (!read_text(proc, "cgroup", scratch, FILE_BYTES)) return false;
    if (!find_group(scratch, controller, name, sizeof name)) {
        p->v2 = true;
        if (!find_group(scratch, "", name, sizeof name)) return false;
    }
    if (!read_text(proc, "mountinfo", scratch, FILE_BYTES)) return false;
    if (!find_mount(scratch, p->v2 ? "" : controller, mount_root, mount_point)) return false;
    const char *below = name;
    size_t n = strlen(mount_root);
    if (n > 1 && strncmp(name, mount_root, n) == 0 && (name[n] == '/' || name[n] == 0)) below += n;
    // Names outside the namespace ("/../x") cannot be resolved: the mount point itself is read.
    if (strstr(below, "/..") || strcmp(below, "/") == 0) below = "";
    int n_folder = snprintf(p->folder, sizeof p->folder, "%s%s%s", root, mount_point, below);
    if (n_folder < 0 || (size_t)n_folder >= sizeof p->folder) return false;
    p->n_mount = strlen(root) + strlen(mount_point);
    return true;
}

// Moves to the parent group; false at the top.
static bool climb(place *p)
{
    char *slash = strrchr(p->folder, '/');
    if (!slash || (size_t)(slash - p->folder) < p->n_mount) return false;
    *slash = 0;
    return true;
}

static double read_number(const char *folder, const char *name)
{
    char text[64];
    double value;
    return read_text(folder, name, text, sizeof text) && frit_parse_double(text, strlen(text), &value) > 0 ? value : -1;
}

int frit_cgroup_cpus(const char *root)
{
    double least = 0;
    place *p = malloc(sizeof *p);
    char *scratch = malloc(FILE_BYTES);
    bool more = p && scratch && find_place(p, root, "cpu", scratch);
    for (; more; more = climb(p)) {
        double quota = -1, period = -1;
        if (!p->v2) {
            quota = read_number(p->folder, "cpu.cfs_quota_us");
            period = read_number(p->folder, "cpu.cfs_period_us");
        } else if (read_text(p->folder, "cpu.max", scratch, FILE_BYTES)) {
            const size_t n = strlen(scratch), used = frit_parse_double(scratch, n, &quota);   // no number in "max
                                                                                              // 100000"
            if (used < n) frit_parse_double(scratch + used + 1, n - used - 1, &period);
        }
        if (quota <= 0 || period <= 0) continue;
        if (least == 0 || quota / period < least) least = quota / period;
    }
    free(scratch);
    free(p);
    if (least == 0 || least > 1e6) return 0;
    int whole = (int)least;
    return whole + (whole < least);
}

static uint64_t read_bytes(const char *folder, const char *name)
{
    char text[64];
    uint64_t value;
    return read_text(folder, name, text, sizeof text) && sscanf(text, "%" SCNu64, &value) == 1 ? value : UINT64_MAX;
}

// The value of `key` in memory.stat; 0 without such a line.
static uint64_t find_stat(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, n) == 0 && line[n] == ' ') return strtoull(line + n, NULL, 10);
    }
    return 0;
}

static uint64_t page_cache(const place *p, char *scratch)
{
    if (!read_text(p->folder, "memory.stat", scratch, FILE_BYTES)) return 0;
    if (p->v2) return find_stat(scratch, "active_file") + find_stat(scratch, "inactive_file");
    return find_stat(scratch, "total_active_file") + find_stat(scratch, "total_inactive_file");
}

uint64_t frit_cgroup_memory(const char *root, uint64_t *n_free)
{
    // v1 shows "no limit" as the largest multiple of a page, more than any machine has.
    const uint64_t NO_LIMIT = UINT64_C(1) << 60;
    uint64_t least = UINT64_MAX;
    *n_free = UINT64_MAX;
    place *p = malloc(sizeof *p);
    char *scratch = malloc(FILE_BYTES);
    bool more = p && scratch && find_place(p, root, "memory", scratch);
    for (; more; more = climb(p)) {
        uint64_t limit = read_bytes(p->folder, p->v2 ? "memory.max" : "memory.limit_in_bytes");
        if (limit >= NO_LIMIT) continue;
        uint64_t used = read_bytes(p->folder, p->v2 ? "memory.current" : "memory.usage_in_bytes");
        if (used == UINT64_MAX) used = 0;
        uint64_t cache = page_cache(p, scratch);
        used -= cache < used ? cache : used;
        uint64_t left = used < limit ? limit - used : 0;
        if (limit < least) least = limit;
        if (left < *n_free) *n_free = left;
    }
    free(scratch);
    free(p);
    return least;
}

// SPDX-License-Identifier: MIT
// Small files below /sys/devices, and the affinity mask.
#include "base/sysfs.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool frit_sysfs_read(const char *root, const char *name, char text[FRIT_SYSFS_BYTES])
{
    char path[FRIT_SYSFS_BYTES];
    snprintf(path, sizeof path, "%s/sys/devices/%s", root, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, text, FRIT_SYSFS_BYTES - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

bool frit_sysfs_list_has(const char *list, long number)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        const long from = strtol(list, &end, 10);
        const long to = *end == '-' ? strtol(end + 1, &end, 10) : from;
        if (from <= number && number <= to) return true;
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}

// The mask is asked for in growing sizes: the kernel refuses one that is smaller than its own.
int frit_sysfs_allowed_cpus(int **out)
{
    *out = NULL;
    for (int n_cpus = CPU_SETSIZE; n_cpus <= 64 * CPU_SETSIZE; n_cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n_cpus);
        if (!set) return 0;
        const size_t size = CPU_ALLOC_SIZE((size_t)n_cpus);
        const bool known = sched_getaffinity(0, size, set) == 0;
        int n = 0;
        if (known) *out = malloc((size_t)n_cpus * sizeof **out);
        for (int i = 0; *out && i < n_cpus; i++)
            if (CPU_ISSET_S((size_t)i, size, set)) (*out)[n++] = i;
        CPU_FREE(set);
        if (known) return n;
    }
    return 0;
}

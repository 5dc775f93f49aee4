// SPDX-License-Identifier: MIT
// Small files below /sys/devices.
#include "base/machine/sysfs.h"

#include <fcntl.h>
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

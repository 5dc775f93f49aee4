// SPDX-License-Identifier: MIT
// base/machine/sysfs.h: reads Linux's files about CPUs. `root` is prepended to every path that is read: "" on a real
// machine, a folder in tests.
#pragma once
#include <stdbool.h>

enum { FRIT_SYSFS_BYTES = 4096 };

// The text of root/sys/devices/name, zero-terminated, truncated to the buffer. False if it cannot be read.
bool frit_sysfs_read(const char *root, const char *name, char text[FRIT_SYSFS_BYTES]);
bool frit_sysfs_list_has(const char *list, long number);   // "0-3,8"

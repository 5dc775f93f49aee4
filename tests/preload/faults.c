// SPDX-License-Identifier: MIT
// A library that is loaded before others (LD_PRELOAD) and makes calls fail, as support/faults.h says. Needs glibc.
#include "support/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t n);

static faults none;
static faults *now = &none;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FRIT_TEST_FAULTS");
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped = fd >= 0 ? mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (mapped != MAP_FAILED) now = mapped;
}

// libmicrohttpd forgets to go on with a connection where it cannot allocate its poll set, until the connection's time
// is over, and hwloc ends the process: their calls are let through.
static int is_spared(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname &&
           (strstr(info.dli_fname, "microhttpd") || strstr(info.dli_fname, "hwloc"));
}

static int fails(const void *caller)
{
    if (now == &none || is_spared(caller)) return 0;
    atomic_fetch_add(&now->n_allocations, 1);
    if (atomic_load(&now->fail_allocation) <= 0 || atomic_fetch_sub(&now->fail_allocation, 1) != 1) return 0;
    atomic_fetch_add(&now->n_failed, 1);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(ptr, n);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, out);
    if (result == 0 && clock == CLOCK_REALTIME) out->tv_sec += atomic_load(&now->clock_offset);
    return result;
}

static int spoils(int fd)
{
    struct stat info;
    if (!atomic_load(&now->fail_writes) || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
    atomic_fetch_add(&now->n_failed, 1);
    errno = EIO;
    return 1;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "write");
    return spoils(fd) ? -1 : real(fd, bytes, n);
}

int fsync(int fd)
{
    static int (*real)(int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    return spoils(fd) ? -1 : real(fd);
}

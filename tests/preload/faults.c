// SPDX-License-Identifier: MIT
// A library that is loaded before others (LD_PRELOAD) and makes calls fail, as described in support/faults.h. Needs
// glibc.
#include "support/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
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

// hwloc ends the process without memory, so its calls do not fail (server/system limits the memory of a process).
static int is_spared(const void *caller)
{
    Dl_info info;
    const int is_known = dladdr(caller, &info) && info.dli_fname;
    if (atomic_load(&now->of_http)) return !is_known || !strstr(info.dli_fname, "microhttpd");
    return is_known && strstr(info.dli_fname, "hwloc");
}

static int fails(const void *caller)
{
    if (now == &none || is_spared(caller)) return 0;
    const long number = atomic_fetch_add(&now->n_allocations, 1), each = atomic_load(&now->fail_each);
    if (each > 0 && number % each == 0) {
        atomic_fetch_add(&now->n_failed, 1);
        errno = ENOMEM;
        return 1;
    }
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

// ---------------------------------------------------------------------------------------- disks

static int is_model(const char *path)
{
    const char *end = strrchr(path, '.');
    return end && strcmp(end, ".gguf") == 0;
}

static int reads_model(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return is_model(path);
}

// Waits like a file on a network server that does not answer: in the kernel, where no signal handler runs and only the
// end of the process helps. The parent of vfork waits in this way.
static void stall(void)
{
    const pid_t parent = getpid();
    atomic_fetch_add(&now->n_stalled, 1);
    if (vfork() == 0) {
        while (atomic_load(&now->stall_opens) && getppid() == parent) usleep(10000);
        _exit(0);
    }
}

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "open");
    if (atomic_load(&now->stall_opens) && is_model(path)) stall();
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

ssize_t read(int fd, void *bytes, size_t n)
{
    static ssize_t (*real)(int, void *, size_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "read");
    if (!atomic_load(&now->fail_reads) || !reads_model(fd)) return real(fd, bytes, n);
    atomic_fetch_add(&now->n_failed, 1);
    errno = EIO;
    return -1;
}

// Copies the model's bytes to a file that the test can truncate, so that its pages cannot be read, as on a failing
// disk. The model's own file stays unchanged.
static int copy_of(const void *bytes, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.pages", getenv("FRIT_TEST_FAULTS"));
    const int copy = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (copy < 0 || write(copy, bytes, n) != (ssize_t)n) abort();
    return copy;
}

void *mmap(void *at, size_t n, int access, int flags, int fd, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    void *mapped = real(at, n, access, flags, fd, offset);
    if (mapped == MAP_FAILED || fd < 0 || !atomic_load(&now->copy_maps) || !reads_model(fd)) return mapped;
    const int copy = copy_of(mapped, n);
    mapped = real(mapped, n, access, flags | MAP_FIXED, copy, 0);
    close(copy);
    return mapped;
}

void *mmap64(void *at, size_t n, int access, int flags, int fd, off_t offset) __attribute__((alias("mmap")));

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

// SPDX-License-Identifier: MIT
// Replaces malloc in programs that test kernels. Each array ends at the end of a page, before a page without access, so
// that a kernel that reads or writes past its array ends the program. Alignment leaves up to ALIGNMENT - 1 bytes
// between the array and the page; writes there are found when the array is freed.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 16, UNTOUCHED = 0xa5 };   // the alignment of malloc

// The header directly before the array.
typedef struct fence {
    char *mapping;
    size_t mapped_bytes;
    size_t n_bytes;
    size_t gap_bytes;
} fence;

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static void *allocate(size_t alignment, size_t n_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (alignment < ALIGNMENT) alignment = ALIGNMENT;
    if (n_bytes > PTRDIFF_MAX / 2 || alignment > PTRDIFF_MAX / 4) return errno = ENOMEM, NULL;
    const size_t touched = round_up(sizeof(fence) + alignment + n_bytes + alignment, page);
    char *mapping =
        mmap(NULL, touched + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return errno = ENOMEM, NULL;
    if (mprotect(mapping + touched, page, PROT_NONE) != 0) return munmap(mapping, touched + page), errno = ENOMEM, NULL;
    char *array = (char *)((uintptr_t)(mapping + touched - n_bytes) / alignment * alignment);
    const size_t gap = (size_t)(mapping + touched - array) - n_bytes;
    memset(array + n_bytes, UNTOUCHED, gap);
    ((fence *)array)[-1] = (fence){mapping, touched + page, n_bytes, gap};
    return array;
}

void *malloc(size_t n_bytes)
{
    return allocate(ALIGNMENT, n_bytes);
}

void *calloc(size_t n, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size, &n_bytes)) return errno = ENOMEM, NULL;
    return allocate(ALIGNMENT, n_bytes);   // the system's pages are zero
}

void free(void *array)
{
    if (!array) return;
    const fence f = ((fence *)array)[-1];
    const unsigned char *gap = (unsigned char *)array + f.n_bytes;
    for (size_t i = 0; i < f.gap_bytes; i++)
        if (gap[i] != UNTOUCHED) {
            static const char text[] = "fence: bytes past the end of an array were written\n";
            if (write(STDERR_FILENO, text, sizeof text - 1) >= 0) abort();
        }
    const int error = errno;
    munmap(f.mapping, f.mapped_bytes);
    errno = error;
}

void *realloc(void *array, size_t n_bytes)
{
    void *larger = allocate(ALIGNMENT, n_bytes);
    if (larger && array) {
        const size_t n_before = ((fence *)array)[-1].n_bytes;
        memcpy(larger, array, n_before < n_bytes ? n_before : n_bytes);
        free(array);
    }
    return larger;
}

void *aligned_alloc(size_t alignment, size_t n_bytes)
{
    return allocate(alignment, n_bytes);
}

int posix_memalign(void **out, size_t alignment, size_t n_bytes)
{
    *out = allocate(alignment, n_bytes);
    return *out ? 0 : ENOMEM;
}

// SPDX-License-Identifier: MIT
// The machine's memory and its free part: Linux (and its control groups), macOS, a WebAssembly heap, other POSIX
// systems.
#include "base/machine/cpu.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include "base/machine/cgroup.h"
#include <inttypes.h>
#include <sys/sysinfo.h>

// The value of a line of /proc/meminfo, in bytes; 0 without such a line.
static uint64_t meminfo(const char *key)
{
    uint64_t bytes = 0;
    char line[128];
    size_t n = strlen(key);
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file) return 0;
    while (bytes == 0 && fgets(line, sizeof line, file)) {
        uint64_t kib;
        if (strncmp(line, key, n) == 0 && sscanf(line + n, ": %" SCNu64 " kB", &kib) == 1) bytes = kib * 1024;
    }
    fclose(file);
    return bytes;
}

// The kernel's own figure, for a root without /proc. It does not count pages of files as free.
static uint64_t ask_kernel(bool only_free)
{
    struct sysinfo info;
    if (sysinfo(&info) != 0) return 0;
    return (uint64_t)(only_free ? info.freeram + info.bufferram : info.totalram) * info.mem_unit;
}

uint64_t frit_memory_total(void)
{
    uint64_t n_free, total = meminfo("MemTotal"), limit = frit_cgroup_memory("", &n_free);
    if (total == 0) total = ask_kernel(false);
    return limit < total ? limit : total;
}

uint64_t frit_memory_available(void)
{
    uint64_t n_free, available = meminfo("MemAvailable");
    if (available == 0) available = ask_kernel(true);
    frit_cgroup_memory("", &n_free);
    return n_free < available ? n_free : available;
}

#elif defined(__APPLE__)
#include <mach/mach.h>
#include <sys/sysctl.h>

uint64_t frit_memory_total(void)
{
    uint64_t total = 0;
    size_t size = sizeof total;
    return sysctlbyname("hw.memsize", &total, &size, NULL, 0) == 0 ? total : 0;
}

// Free memory, and memory that the system can reclaim without writing it.
uint64_t frit_memory_available(void)
{
    vm_statistics64_data_t stat;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    mach_port_t host = mach_host_self();
    kern_return_t result = host_statistics64(host, HOST_VM_INFO64, (host_info64_t)&stat, &n);
    mach_port_deallocate(mach_task_self(), host);
    if (result != KERN_SUCCESS) return 0;
    uint64_t n_pages = (uint64_t)stat.free_count + stat.external_page_count + stat.purgeable_count;
    return n_pages * (uint64_t)vm_kernel_page_size;
}

#elif defined(__EMSCRIPTEN__)
#include <emscripten/heap.h>
#include <malloc.h>

uint64_t frit_memory_total(void)
{
    return emscripten_get_heap_max();
}

// The bytes by which the heap can grow, and memory that was freed.
uint64_t frit_memory_available(void)
{
    const struct mallinfo info = mallinfo();
    return emscripten_get_heap_max() - emscripten_get_heap_size() + (uint64_t)info.fordblks;
}

#else

uint64_t frit_memory_total(void)
{
    long n_pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return n_pages > 0 && size > 0 ? (uint64_t)n_pages * (uint64_t)size : 0;
}

uint64_t frit_memory_available(void)
{
    return frit_memory_total() / 2;   // unknown: half of the memory as a safe estimate
}

#endif

uint64_t frit_cache_bytes(void)
{
#if defined(_SC_LEVEL3_CACHE_SIZE)
    const long n_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return n_bytes > 0 ? (uint64_t)n_bytes : 0;
#else
    return 0;
#endif
}

// SPDX-License-Identifier: MIT
// Memory of a Windows machine, bounded by the job object of the process.
#include "base/machine/cpu.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

// Job limits count committed memory of the process or of the whole job; UINT64_MAX: none.
static uint64_t job_limit(void)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION info;
    if (!QueryInformationJobObject(NULL, JobObjectExtendedLimitInformation, &info, sizeof info, NULL))
        return UINT64_MAX;
    DWORD flags = info.BasicLimitInformation.LimitFlags;
    uint64_t limit = UINT64_MAX;
    if (flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY) limit = info.ProcessMemoryLimit;
    if ((flags & JOB_OBJECT_LIMIT_JOB_MEMORY) && info.JobMemoryLimit < limit) limit = info.JobMemoryLimit;
    return limit;
}

uint64_t frit_memory_total(void)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    if (!GlobalMemoryStatusEx(&status)) return 0;
    uint64_t limit = job_limit();
    return limit < status.ullTotalPhys ? limit : status.ullTotalPhys;
}

uint64_t frit_memory_available(void)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    if (!GlobalMemoryStatusEx(&status)) return 0;
    uint64_t limit = job_limit();
    return limit < status.ullAvailPhys ? limit : status.ullAvailPhys;
}

uint64_t frit_cache_bytes(void)
{
    return 0;
}

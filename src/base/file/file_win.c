// SPDX-License-Identifier: MIT
// Files on Windows. Paths are UTF-8, as everywhere in frit.
#include "base/file/file.h"
#include "base/file/file_sink.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { READ_ALIGNMENT = 4096, MAX_NAMES = 100, MAX_IO = 1 << 30, TEXT_BYTES = 256 };

struct frit_file {
    char *path;
    void *data;
    uint64_t size;
    HANDLE handle;
    bool mapped;
};

static frit_status fail_windows(const char *path, const char *what)
{
    DWORD error = GetLastError();
    char text[TEXT_BYTES];
    DWORD n = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, error, 0, text,
                             sizeof text, NULL);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == '.')) n--;
    frit_status status = FRIT_E_IO;
    if (error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND) status = FRIT_E_NOT_FOUND;
    if (error == ERROR_NOT_ENOUGH_MEMORY || error == ERROR_OUTOFMEMORY) status = FRIT_E_MEMORY;
    return frit_fail_file(status, "%s: %s: %.*s", path, what, (int)n, text);
}

static char *copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    if (copy) memcpy(copy, text, n);
    return copy;
}

// Converts to UTF-16, malloc'd; NULL when out of memory or not UTF-8.
static wchar_t *widen(const char *path)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *wide = n > 0 ? malloc((size_t)n * sizeof *wide) : NULL;
    if (wide) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, n);
    return wide;
}

static frit_status fail_path(const char *path)
{
    return frit_fail_file(FRIT_E_INVALID, "%s: is not a path in UTF-8", path);
}

// Compares full path names, so links are not recognized.
bool frit_path_is_same(const char *a, const char *b)
{
    wchar_t x[MAX_PATH], y[MAX_PATH], *wide_a = widen(a), *wide_b = widen(b);
    const DWORD n = wide_a ? GetFullPathNameW(wide_a, MAX_PATH, x, NULL) : 0;
    const DWORD m = wide_b ? GetFullPathNameW(wide_b, MAX_PATH, y, NULL) : 0;
    free(wide_a);
    free(wide_b);
    return n > 0 && n < MAX_PATH && m > 0 && m < MAX_PATH && _wcsicmp(x, y) == 0 &&
           frit_path_get_kind(a) != FRIT_PATH_NONE;
}

frit_path_kind frit_path_get_kind(const char *path)
{
    wchar_t *wide = widen(path);
    DWORD attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    free(wide);
    if (attributes == INVALID_FILE_ATTRIBUTES) return FRIT_PATH_NONE;
    if (attributes & FILE_ATTRIBUTE_DIRECTORY) return FRIT_PATH_FOLDER;
    return attributes & FILE_ATTRIBUTE_DEVICE ? FRIT_PATH_OTHER : FRIT_PATH_FILE;
}

frit_status frit_folder_make(const char *path)
{
    wchar_t *wide = widen(path);
    if (!wide) return fail_path(path);
    const bool made = CreateDirectoryW(wide, NULL) || frit_path_get_kind(path) == FRIT_PATH_FOLDER;
    free(wide);
    return made ? FRIT_OK : fail_windows(path, "the folder cannot be created");
}

frit_status frit_folder_make_private(const char *path)
{
    return frit_folder_make(path);
}

// Seconds since 1970. Windows counts units of 100 ns since 1601.
static int64_t seconds_of(FILETIME time)
{
    const uint64_t ticks = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
    return (int64_t)(ticks / 10000000) - 11644473600;
}

void frit_folder_each(const char *path, frit_folder_fn each, void *ctx)
{
    char pattern[4 * MAX_PATH], name[4 * MAX_PATH];
    WIN32_FIND_DATAW found;
    if (snprintf(pattern, sizeof pattern, "%s/*", path) >= (int)sizeof pattern) return;
    wchar_t *wide = widen(pattern);
    HANDLE search = wide ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
    free(wide);
    if (search == INVALID_HANDLE_VALUE) return;
    do {
        const bool is_file = !(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY);
        if (is_file && WideCharToMultiByte(CP_UTF8, 0, found.cFileName, -1, name, sizeof name, NULL, NULL) > 0)
            each(ctx, name, (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow,
                 seconds_of(found.ftLastWriteTime));
    } while (FindNextFileW(search, &found));
    FindClose(search);
}

bool frit_file_remove(const char *path)
{
    wchar_t *wide = widen(path);
    const bool removed = wide && DeleteFileW(wide);
    free(wide);
    return removed;
}

void frit_file_touch(const char *path)
{
    wchar_t *wide = widen(path);
    HANDLE file = wide
                      ? CreateFileW(wide, FILE_WRITE_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                    NULL, OPEN_EXISTING, 0, NULL)
                      : INVALID_HANDLE_VALUE;
    FILETIME now;
    free(wide);
    if (file == INVALID_HANDLE_VALUE) return;
    GetSystemTimeAsFileTime(&now);
    SetFileTime(file, NULL, NULL, &now);
    CloseHandle(file);
}

static frit_status open_regular(const char *path, HANDLE *handle, uint64_t *size)
{
    if (frit_path_get_kind(path) == FRIT_PATH_FOLDER)
        return frit_fail_file(FRIT_E_IO, "%s: is a folder, expected a file", path);
    wchar_t *wide = widen(path);
    if (!wide) return fail_path(path);
    DWORD sharing = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    *handle = CreateFileW(wide, GENERIC_READ, sharing, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    free(wide);
    if (*handle == INVALID_HANDLE_VALUE) return fail_windows(path, "cannot be opened");
    LARGE_INTEGER n;
    frit_status status = FRIT_OK;
    if (GetFileType(*handle) != FILE_TYPE_DISK)
        status = frit_fail_file(FRIT_E_IO, "%s: is a device or a pipe, expected a file", path);
    else if (!GetFileSizeEx(*handle, &n))
        status = fail_windows(path, "cannot be examined");
    if (status == FRIT_OK)
        *size = (uint64_t)n.QuadPart;
    else
        CloseHandle(*handle);
    return status;
}

static frit_status read_exactly(HANDLE handle, const char *path, char *data, size_t n)
{
    for (size_t got = 0; got < n;) {
        DWORD now, want = n - got < MAX_IO ? (DWORD)(n - got) : MAX_IO;
        if (!ReadFile(handle, data + got, want, &now, NULL)) return fail_windows(path, "cannot be read");
        if (now == 0)
            return frit_fail_file(FRIT_E_IO, "%s: ends after %llu bytes, expected %llu: it was truncated", path,
                                  (unsigned long long)got, (unsigned long long)n);
        got += now;
    }
    return FRIT_OK;
}

static frit_status load(frit_file *file, bool no_mmap)
{
    if (file->size == 0) return FRIT_OK;
    if (!no_mmap && file->size <= SIZE_MAX) {
        HANDLE mapping = CreateFileMappingW(file->handle, NULL, PAGE_READONLY, 0, 0, NULL);
        if (mapping) file->data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
        if (mapping) CloseHandle(mapping);   // the view keeps it alive
        file->mapped = file->data != NULL;
        if (file->mapped) return FRIT_OK;
    }
    if (file->size <= SIZE_MAX) file->data = _aligned_malloc((size_t)file->size, READ_ALIGNMENT);
    if (!file->data)
        return frit_fail_file(FRIT_E_MEMORY, "%s: %llu bytes do not fit in memory", file->path,
                              (unsigned long long)file->size);
    return read_exactly(file->handle, file->path, file->data, (size_t)file->size);
}

frit_status frit_file_open(frit_file **out, const char *path, bool no_mmap)
{
    *out = NULL;
    frit_file *file = calloc(1, sizeof *file);
    char *copy = copy_text(path);
    if (!file || !copy) {
        free(file);
        free(copy);
        return frit_fail_memory(sizeof *file + strlen(path) + 1, "an open file");
    }
    file->path = copy;
    frit_status status = open_regular(path, &file->handle, &file->size);
    if (status != FRIT_OK) file->handle = INVALID_HANDLE_VALUE;
    if (status == FRIT_OK) status = load(file, no_mmap);
    if (status != FRIT_OK) {
        frit_file_close(file);
        return status;
    }
    *out = file;
    return FRIT_OK;
}

frit_status frit_file_open_copy(frit_file **out, const char *path)
{
    return frit_file_open(out, path, true);
}

uint8_t *frit_file_bytes(frit_file *copy)
{
    return copy->data;
}

void *frit_scratch_new(const char *path, uint64_t n_bytes, bool *is_mapped)
{
    (void)path;
    *is_mapped = false;
    return n_bytes <= SIZE_MAX ? calloc(1, (size_t)n_bytes) : NULL;
}

void frit_scratch_free(void *data, uint64_t n_bytes, bool is_mapped)
{
    (void)n_bytes, (void)is_mapped;
    free(data);
}

const uint8_t *frit_file_data(const frit_file *file)
{
    return file->data;
}

uint64_t frit_file_size(const frit_file *file)
{
    return file->size;
}

const char *frit_file_path(const frit_file *file)
{
    return file->path;
}

bool frit_file_is_mapped(const frit_file *file)
{
    return file->mapped;
}

bool frit_file_is_intact(const frit_file *file)
{
    LARGE_INTEGER n;
    return !file->mapped || (GetFileSizeEx(file->handle, &n) && (uint64_t)n.QuadPart >= file->size);
}

uint64_t frit_file_size_now(const frit_file *file)
{
    LARGE_INTEGER n;
    return GetFileSizeEx(file->handle, &n) ? (uint64_t)n.QuadPart : 0;
}

uint64_t frit_file_changed(const frit_file *file)
{
    FILETIME at;
    if (!GetFileTime(file->handle, NULL, NULL, &at)) return 0;
    return (uint64_t)at.dwHighDateTime << 32 | at.dwLowDateTime;
}

void frit_file_drop_pages(const frit_file *file)
{
    (void)file;   // the system reclaims them when it needs memory
}

void frit_file_close(frit_file *file)
{
    if (!file) return;
    if (file->mapped)
        UnmapViewOfFile(file->data);
    else
        _aligned_free(file->data);
    if (file->handle != INVALID_HANDLE_VALUE) CloseHandle(file->handle);
    free(file->path);
    free(file);
}

frit_status frit_file_read(const char *path, uint64_t max_bytes, char **out, size_t *n_bytes)
{
    *out = NULL;
    *n_bytes = 0;
    HANDLE handle;
    uint64_t size;
    FRIT_TRY(open_regular(path, &handle, &size));
    frit_status status = FRIT_OK;
    char *text = NULL;
    if (size > max_bytes)
        status = frit_fail_file(FRIT_E_LIMIT, "%s: has %llu bytes, expected at most %llu", path,
                                (unsigned long long)size, (unsigned long long)max_bytes);
    else if (size >= SIZE_MAX || !(text = malloc((size_t)size + 1)))
        status = frit_fail_file(FRIT_E_MEMORY, "%s: %llu bytes do not fit in memory", path, (unsigned long long)size);
    else
        status = read_exactly(handle, path, text, (size_t)size);
    CloseHandle(handle);
    if (status != FRIT_OK) {
        free(text);
        return status;
    }
    text[size] = 0;
    *out = text;
    *n_bytes = (size_t)size;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- sinks

struct frit_sink {
    char *path;
    wchar_t *target, *temp;   // temp: the name until commit
    HANDLE handle;
};

// Sets the name until commit: PATH and an ending.
static bool set_temp(frit_sink *sink, const char *ending)
{
    const size_t size = strlen(sink->path) + strlen(ending) + 1;
    char *name = malloc(size);
    if (name) snprintf(name, size, "%s%s", sink->path, ending);
    free(sink->temp);
    sink->temp = name ? widen(name) : NULL;
    free(name);
    return sink->temp != NULL;
}

static frit_status open_temp(frit_sink *sink)
{
    uint64_t number = (uint64_t)GetTickCount64() ^ (uint64_t)GetCurrentProcessId() << 20;
    char ending[16];
    for (int i = 0; i < MAX_NAMES && sink->handle == INVALID_HANDLE_VALUE; i++, number += 0x9e3779b97f4a7c15u) {
        snprintf(ending, sizeof ending, ".%08llx.tmp", (unsigned long long)(number & 0xffffffff));
        if (!set_temp(sink, ending)) return frit_fail_memory(strlen(sink->path) + sizeof ending, "a path");
        sink->handle = CreateFileW(sink->temp, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
        if (sink->handle == INVALID_HANDLE_VALUE && GetLastError() != ERROR_FILE_EXISTS) break;
    }
    return sink->handle != INVALID_HANDLE_VALUE ? FRIT_OK : fail_windows(sink->path, "cannot be written");
}

// Opens the part for this process only.
static frit_status open_part(frit_sink *sink, bool *is_free)
{
    if (!set_temp(sink, ".part")) return frit_fail_memory(strlen(sink->path) + sizeof ".part", "a path");
    sink->handle =
        CreateFileW(sink->temp, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    *is_free = sink->handle != INVALID_HANDLE_VALUE;
    if (*is_free || GetLastError() == ERROR_SHARING_VIOLATION) return FRIT_OK;
    return fail_windows(sink->path, "cannot be written");
}

// Windows gives files in a user's folders to this user only, so all kinds of sinks are private there.
frit_status frit_sink_open(frit_sink **out, const char *path, frit_sink_kind kind)
{
    *out = NULL;
    const frit_path_kind there = frit_path_get_kind(path);
    if (there == FRIT_PATH_FOLDER || there == FRIT_PATH_OTHER)
        return frit_fail_file(FRIT_E_IO, "%s: is not a file and cannot be replaced by one", path);
    frit_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return frit_fail_memory(sizeof *sink, "a file to be written");
    sink->handle = INVALID_HANDLE_VALUE;
    sink->path = copy_text(path);
    sink->target = widen(path);
    bool is_free = true;
    frit_status status = FRIT_OK;
    if (!sink->path)
        status = frit_fail_memory(strlen(path) + 1, "a path");
    else if (!sink->target)
        status = fail_path(path);
    if (status == FRIT_OK) status = kind == FRIT_SINK_PARTIAL ? open_part(sink, &is_free) : open_temp(sink);
    if (status == FRIT_OK && is_free)
        *out = sink;
    else
        frit_sink_close(sink, true);   // nothing was opened
    return status;
}

frit_status frit_sink_write(frit_sink *sink, const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        DWORD now;
        if (!WriteFile(sink->handle, at, n < MAX_IO ? (DWORD)n : MAX_IO, &now, NULL))
            return fail_windows(sink->path, "cannot be written");
        at += now;
        n -= now;
    }
    return FRIT_OK;
}

uint64_t frit_sink_peek(frit_sink *sink, void *bytes, size_t n)
{
    DWORD n_read;
    LARGE_INTEGER size;
    const bool is_read =
        ReadFile(sink->handle, bytes, (DWORD)n, &n_read, NULL) && n_read == n && GetFileSizeEx(sink->handle, &size);
    return is_read ? (uint64_t)size.QuadPart : 0;
}

static frit_status seek(frit_sink *sink, uint64_t n)
{
    const LARGE_INTEGER to = {.QuadPart = (LONGLONG)n};
    return SetFilePointerEx(sink->handle, to, NULL, FILE_BEGIN) ? FRIT_OK
                                                                : fail_windows(sink->path, "cannot be written");
}

frit_status frit_sink_cut(frit_sink *sink, uint64_t n)
{
    FRIT_TRY(seek(sink, n));
    return SetEndOfFile(sink->handle) ? FRIT_OK : fail_windows(sink->path, "cannot be written");
}

frit_status frit_sink_rewind(frit_sink *sink)
{
    return seek(sink, 0);
}

frit_status frit_sink_commit(frit_sink *sink)
{
    frit_status status = FRIT_OK;
    if (!FlushFileBuffers(sink->handle)) status = fail_windows(sink->path, "cannot be written");
    if (status == FRIT_OK) {
        CloseHandle(sink->handle);
        sink->handle = INVALID_HANDLE_VALUE;
        if (!MoveFileExW(sink->temp, sink->target, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
            status = fail_windows(sink->path, "cannot be replaced");
    }
    frit_sink_close(sink, status == FRIT_OK);
    return status;
}

void frit_sink_close(frit_sink *sink, bool keeps)
{
    if (sink->handle != INVALID_HANDLE_VALUE) CloseHandle(sink->handle);
    if (!keeps && sink->temp) DeleteFileW(sink->temp);   // Windows cannot remove an open file
    free(sink->path);
    free(sink->target);
    free(sink->temp);
    free(sink);
}

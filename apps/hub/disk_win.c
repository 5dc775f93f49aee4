// SPDX-License-Identifier: MIT
// The disk on Windows. The prefix "\\?\" removes the limit of 260 characters for paths.
#include "hub/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>
#include <winioctl.h>

enum { WIDE_PATH = 2 * HUB_PATH_BYTES, ALL_SHARE = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };
// Exists since Windows 10 1703: a process needs no privilege for links if the machine is configured for it.
enum { LINK_UNPRIVILEGED = 2 };

typedef struct wide_path {
    wchar_t text[WIDE_PATH + 8];
} wide_path;

static hub_status fail_code(const char *path, const char *what, DWORD error)
{
    char text[256];
    if (error == ERROR_DISK_FULL || error == ERROR_HANDLE_DISK_FULL)
        return hub_fail_full(path, what, "the disk is full");
    if (error == ERROR_FILE_TOO_LARGE) return hub_fail_full(path, what, "the file is larger than allowed");
    DWORD n = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, error, 0, text,
                             sizeof text, NULL);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == '.')) n--;
    return hub_fail(HUB_E_DISK, "%s: %s: %.*s", path, what, (int)n, text);
}

hub_status hub_system_failed(const char *path, const char *what)
{
    return fail_code(path, what, GetLastError());
}

// Returns false, with an error of the system, if the path is not UTF-8 or too long.
static bool widen(const char *path, wide_path *out)
{
    wchar_t given[WIDE_PATH];
    wchar_t *whole = out->text + 4;
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, given, WIDE_PATH)) return false;
    const DWORD n = GetFullPathNameW(given, WIDE_PATH, whole, NULL);
    if (n == 0 || n >= WIDE_PATH) return false;
    if (whole[0] != '\\')   // otherwise it is on another machine, or has the prefix
        wmemcpy(out->text, L"\\\\?\\", 4);
    else
        wmemmove(out->text, whole, n + 1);
    return true;
}

const char *hub_home(void)
{
    const char *home = getenv("USERPROFILE");
    return home && *home ? home : ".";
}

void hub_use_slashes(char *path)
{
    for (; *path; path++)
        if (*path == '\\') *path = '/';
}

// False for names of devices with any suffix, and for names with dots and spaces at the end or a ':', which begins a
// stream.
bool hub_is_file_name(const char *text, size_t n)
{
    static const char *const devices[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
    char stem[8] = "";
    size_t n_stem = 0;
    if (n == 0 || n > 255 || text[n - 1] == '.' || text[n - 1] == ' ') return false;
    for (size_t i = 0; i < n; i++)
        if (strchr("<>:\"|?*\\", text[i])) return false;
    while (n_stem < n && text[n_stem] != '.') n_stem++;
    while (n_stem > 0 && text[n_stem - 1] == ' ') n_stem--;
    if (n_stem >= sizeof stem) return true;
    for (size_t i = 0; i < n_stem; i++)
        stem[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 'a' - 'A' : text[i]);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        if (strcmp(stem, devices[i]) == 0) return false;
    const bool is_port = strncmp(stem, "com", 3) == 0 || strncmp(stem, "lpt", 3) == 0;
    return !(is_port && n_stem == 4 && stem[3] >= '0' && stem[3] <= '9');
}

long hub_process_id(void)
{
    return (long)GetCurrentProcessId();
}

void hub_sleep_ms(int ms)
{
    Sleep((DWORD)ms);
}

double hub_now_s(void)
{
    return 1e-3 * (double)GetTickCount64();
}

// ---------------------------------------------------------------------------------------- files

// Gets the attributes of the file at `path`, or with `follows` of the target of a link there.
static bool look(const char *path, bool follows, BY_HANDLE_FILE_INFORMATION *out)
{
    wide_path wide;
    if (!widen(path, &wide)) return false;
    const DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | (follows ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
    HANDLE file = CreateFileW(wide.text, FILE_READ_ATTRIBUTES, ALL_SHARE, NULL, OPEN_EXISTING, flags, NULL);
    if (file == INVALID_HANDLE_VALUE) return false;
    const bool good = GetFileInformationByHandle(file, out);
    CloseHandle(file);
    return good;
}

static uint64_t join(DWORD high, DWORD low)
{
    return (uint64_t)high << 32 | low;
}

hub_status hub_make_one_folder(const char *path)
{
    wide_path wide;
    if (widen(path, &wide) && (CreateDirectoryW(wide.text, NULL) || GetLastError() == ERROR_ALREADY_EXISTS))
        return HUB_OK;
    return hub_system_failed(path, "the folder cannot be made");
}

uint64_t hub_file_bytes(const char *path)
{
    BY_HANDLE_FILE_INFORMATION info;
    if (!look(path, true, &info) || info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) return UINT64_MAX;
    return join(info.nFileSizeHigh, info.nFileSizeLow);
}

uint64_t hub_used_bytes(const char *path)
{
    wide_path wide;
    DWORD high = 0;
    if (hub_file_bytes(path) == UINT64_MAX || !widen(path, &wide)) return 0;
    const DWORD low = GetCompressedFileSizeW(wide.text, &high);
    return low == INVALID_FILE_SIZE && GetLastError() != NO_ERROR ? 0 : join(high, low);
}

int64_t hub_file_changed(const char *path)
{
    BY_HANDLE_FILE_INFORMATION info;
    if (!look(path, true, &info)) return 0;
    // Windows counts units of 100 ns since 1601.
    const uint64_t ticks = join(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime);
    return (int64_t)(ticks / 10000000) - 11644473600;
}

bool hub_is_folder(const char *path)
{
    BY_HANDLE_FILE_INFORMATION info;
    return look(path, true, &info) && info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
}

bool hub_is_link(const char *path)
{
    BY_HANDLE_FILE_INFORMATION info;
    return look(path, false, &info) && info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT;
}

bool hub_is_same_file(const char *a, const char *b)
{
    BY_HANDLE_FILE_INFORMATION x, y;
    return look(a, true, &x) && look(b, true, &y) && x.dwVolumeSerialNumber == y.dwVolumeSerialNumber &&
           x.nFileIndexHigh == y.nFileIndexHigh && x.nFileIndexLow == y.nFileIndexLow;
}

hub_status hub_rename(const char *from, const char *to)
{
    wide_path wide_from, wide_to;
    if (widen(from, &wide_from) && widen(to, &wide_to) &&
        MoveFileExW(wide_from.text, wide_to.text, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        return HUB_OK;
    return hub_system_failed(to, "cannot be written");
}

// Few users may make symbolic links; a hard link gives the file a second name.
hub_status hub_make_link(const char *target, const char *relative, const char *path)
{
    wide_path wide, wide_target;
    wchar_t wide_relative[WIDE_PATH];
    if (!widen(path, &wide) || !widen(target, &wide_target) ||
        !MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, relative, -1, wide_relative, WIDE_PATH))
        return hub_system_failed(path, "the link cannot be made");
    for (wchar_t *c = wide_relative; *c; c++)
        if (*c == '/') *c = '\\';
    // Wine reports success, but makes no link.
    if (CreateSymbolicLinkW(wide.text, wide_relative, LINK_UNPRIVILEGED) && hub_is_same_file(target, path))
        return HUB_OK;
    DeleteFileW(wide.text);
    if (CreateHardLinkW(wide.text, wide_target.text, NULL)) return HUB_OK;
    return hub_system_failed(path, "the link cannot be made");
}

bool hub_free_bytes(const char *folder, double *out)
{
    wide_path wide;
    ULARGE_INTEGER n;
    if (!hub_is_folder(folder) || !widen(folder, &wide) || !GetDiskFreeSpaceExW(wide.text, &n, NULL, NULL))
        return false;
    *out = (double)n.QuadPart;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Returns names, malloc'd, in no order. Names that are not valid UTF-8 are left out.
static char **list_names(const char *folder, size_t *n)
{
    hub_path pattern;
    wide_path wide;
    WIN32_FIND_DATAW found;
    char name[4 * MAX_PATH], **names = NULL;
    *n = 0;
    if (hub_path_set(&pattern, "%s/*", folder) != HUB_OK || !widen(pattern.text, &wide)) return NULL;
    HANDLE search = FindFirstFileW(wide.text, &found);
    if (search == INVALID_HANDLE_VALUE) return NULL;
    do {
        if (!WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, found.cFileName, -1, name, sizeof name, NULL, NULL))
            continue;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        char **grown = realloc(names, (*n + 1) * sizeof *grown);
        if (!grown) break;
        names = grown;
        names[*n] = strdup(name);
        if (names[*n]) ++*n;
    } while (FindNextFileW(search, &found));
    FindClose(search);
    return names;
}

hub_status hub_each_entry(const char *folder, hub_entry_fn each, void *ctx)
{
    size_t n;
    char **names = list_names(folder, &n);
    hub_status status = HUB_OK;
    if (n > 1) qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n; i++) {
        hub_path path;
        if (status == HUB_OK && hub_path_set(&path, "%s/%s", folder, names[i]) == HUB_OK)
            status = each(ctx, path.text, names[i], hub_is_folder(path.text));
        free(names[i]);
    }
    free(names);
    return status;
}

static hub_status remove_entry(void *ctx, const char *path, const char *name, bool is_folder)
{
    (void)name, (void)is_folder;
    return hub_remove(path, ctx);
}

hub_status hub_remove(const char *path, uint64_t *freed)
{
    BY_HANDLE_FILE_INFORMATION info;
    wide_path wide;
    if (!widen(path, &wide)) return hub_system_failed(path, "cannot be removed");
    if (GetFileAttributesW(wide.text) == INVALID_FILE_ATTRIBUTES) return HUB_OK;
    const bool is_known = look(path, false, &info),
               is_link = is_known && info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT;
    if (is_known && info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) {
        const hub_status status = is_link ? HUB_OK : hub_each_entry(path, remove_entry, freed);
        if (status != HUB_OK) return status;
        return RemoveDirectoryW(wide.text) ? HUB_OK : hub_system_failed(path, "the folder cannot be removed");
    }
    if (!DeleteFileW(wide.text)) return hub_system_failed(path, "cannot be removed");
    if (is_known && !is_link && info.nNumberOfLinks == 1) *freed += join(info.nFileSizeHigh, info.nFileSizeLow);
    return HUB_OK;
}

void hub_try_remove(const char *path)
{
    wide_path wide;
    if (widen(path, &wide)) DeleteFileW(wide.text);
}

// ---------------------------------------------------------------------------------------- open files

static HANDLE handle_of(hub_handle file)
{
    return (HANDLE)file;
}

// A file that is written cannot be removed by others: huggingface-hub removes a lock that no process has open.
hub_status hub_open(const char *path, bool writes, hub_handle *out)
{
    const char *what = writes ? "cannot be written" : "cannot be read";
    wide_path wide;
    DWORD n;
    *out = HUB_CLOSED;
    if (!widen(path, &wide)) return hub_system_failed(path, what);
    if (writes && hub_is_link(path)) return fail_code(path, what, ERROR_ACCESS_DENIED);
    HANDLE file =
        CreateFileW(wide.text, writes ? GENERIC_READ | GENERIC_WRITE : GENERIC_READ,
                    writes ? FILE_SHARE_READ | FILE_SHARE_WRITE : ALL_SHARE, NULL, writes ? OPEN_ALWAYS : OPEN_EXISTING,
                    FILE_ATTRIBUTE_NORMAL | (writes ? FILE_FLAG_OPEN_REPARSE_POINT : 0), NULL);
    if (file == INVALID_HANDLE_VALUE) return hub_system_failed(path, what);
    // Without this, a write far from the start would fill everything before it with zeros, as on disks without sparse
    // files.
    if (writes) DeviceIoControl(file, FSCTL_SET_SPARSE, NULL, 0, NULL, 0, &n, NULL);
    *out = (hub_handle)file;
    return HUB_OK;
}

static OVERLAPPED place(uint64_t at)
{
    return (OVERLAPPED){.Offset = (DWORD)at, .OffsetHigh = (DWORD)(at >> 32)};
}

hub_status hub_write_at(hub_handle file, const char *path, uint64_t at, const void *bytes, size_t n)
{
    const char *from = bytes;
    while (n > 0) {
        OVERLAPPED where = place(at);
        DWORD wrote = 0;
        if (!WriteFile(handle_of(file), from, n < 1 << 30 ? (DWORD)n : 1 << 30, &wrote, &where) || wrote == 0)
            return hub_system_failed(path, "cannot be written");
        from += wrote;
        at += wrote;
        n -= wrote;
    }
    return HUB_OK;
}

hub_status hub_read_at(hub_handle file, const char *path, uint64_t at, void *bytes, size_t n)
{
    char *to = bytes;
    while (n > 0) {
        OVERLAPPED where = place(at);
        DWORD got = 0;
        const bool good = ReadFile(handle_of(file), to, n < 1 << 30 ? (DWORD)n : 1 << 30, &got, &where);
        if (!good && GetLastError() != ERROR_HANDLE_EOF) return hub_system_failed(path, "cannot be read");
        if (got == 0) return hub_fail(HUB_E_DISK, "%s: became shorter while it was in use", path);
        to += got;
        at += got;
        n -= got;
    }
    return HUB_OK;
}

hub_status hub_resize(hub_handle file, const char *path, uint64_t n_bytes)
{
    const LARGE_INTEGER end = {.QuadPart = (LONGLONG)n_bytes};
    if (SetFilePointerEx(handle_of(file), end, NULL, FILE_BEGIN) && SetEndOfFile(handle_of(file))) return HUB_OK;
    return hub_system_failed(path, "cannot be written");
}

hub_status hub_sync(hub_handle file, const char *path)
{
    return FlushFileBuffers(handle_of(file)) ? HUB_OK : hub_system_failed(path, "cannot be written");
}

void hub_close(hub_handle file)
{
    if (file != HUB_CLOSED) CloseHandle(handle_of(file));
}

// Locks the first byte, like huggingface-hub on Windows.
hub_locked hub_try_lock(hub_handle file)
{
    OVERLAPPED where = place(0);
    if (LockFileEx(handle_of(file), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &where))
        return HUB_LOCKED;
    const DWORD error = GetLastError();
    if (error == ERROR_LOCK_VIOLATION || error == ERROR_IO_PENDING) return HUB_LOCKED_BY_OTHERS;
    return error == ERROR_NOT_SUPPORTED || error == ERROR_INVALID_FUNCTION ? HUB_LOCKS_UNKNOWN : HUB_LOCK_FAILED;
}

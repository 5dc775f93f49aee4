// SPDX-License-Identifier: MIT
// Folders, links, locks and free space on the disk: the parts that all systems share.
#include "hub/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- files

hub_status hub_make_folder(const char *path)
{
    hub_path at;
    hub_status status = hub_path_set(&at, "%s", path);
    if (status != HUB_OK) return status;
    for (char *c = at.text + 1; status == HUB_OK; c++) {
        if (*c && *c != '/') continue;
        const char before = *c;
        *c = 0;
        if (!hub_is_folder(at.text)) status = hub_make_one_folder(at.text);
        if (!before) break;
        *c = before;
    }
    if (status != HUB_OK || hub_is_folder(path)) return status;
    return hub_fail(HUB_E_DISK, "%s: is a file, a folder is expected", path);
}

hub_status hub_make_parents(const char *path)
{
    hub_path folder;
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return HUB_OK;
    const hub_status status = hub_path_set(&folder, "%.*s", (int)(slash - path), path);
    return status == HUB_OK ? hub_make_folder(folder.text) : status;
}

hub_status hub_read_text(const char *path, uint64_t max_bytes, char **out, size_t *n)
{
    const uint64_t n_bytes = hub_file_bytes(path);
    *out = NULL;
    if (n_bytes == UINT64_MAX) return hub_fail(HUB_E_NOT_FOUND, "%s: there is no such file", path);
    if (n_bytes > max_bytes)
        return hub_fail(HUB_E_DATA, "%s: has %llu bytes, expected at most %llu", path, (unsigned long long)n_bytes,
                        (unsigned long long)max_bytes);
    char *text = malloc((size_t)n_bytes + 1);
    if (!text) return hub_fail(HUB_E_MEMORY, "out of memory");
    hub_handle file;
    hub_status status = hub_open(path, false, &file);
    if (status == HUB_OK) status = hub_read_at(file, path, 0, text, (size_t)n_bytes);
    hub_close(file);
    if (status != HUB_OK) {
        free(text);
        return status;
    }
    text[n_bytes] = 0;
    *out = text;
    *n = (size_t)n_bytes;
    return HUB_OK;
}

// Makes a name beside the target that no other process uses.
static hub_status beside(hub_path *out, const char *path)
{
    static _Atomic unsigned counter;
    return hub_path_set(out, "%s.%ld.%u.new", path, hub_process_id(), counter++);
}

hub_status hub_write_text(const char *path, const char *text, size_t n)
{
    hub_path part;
    hub_handle file = HUB_CLOSED;
    hub_status status = beside(&part, path);
    if (status == HUB_OK) status = hub_make_parents(path);
    if (status == HUB_OK) status = hub_open(part.text, true, &file);
    if (status == HUB_OK) status = hub_write_at(file, path, 0, text, n);
    hub_close(file);
    if (status == HUB_OK) status = hub_rename(part.text, path);
    if (status == HUB_OK) return status;
    if (file != HUB_CLOSED) hub_try_remove(part.text);
    return status;
}

// ---------------------------------------------------------------------------------------- links

// Makes the relative path from the folder of `path` to `target`; both are absolute, or relative to the same folder.
static hub_status relative_to(hub_path *out, const char *target, const char *path)
{
    size_t common = 0;
    for (size_t i = 0; target[i] && target[i] == path[i]; i++)
        if (target[i] == '/') common = i + 1;
    size_t n = 0;
    out->text[0] = 0;
    for (const char *at = path + common; (at = strchr(at, '/')); at++) {
        if (n + 4 >= sizeof out->text) return hub_path_set(out, "%*s", HUB_PATH_BYTES, "");
        n += (size_t)snprintf(out->text + n, sizeof out->text - n, "../");
    }
    if (n + strlen(target + common) >= sizeof out->text) return hub_path_set(out, "%*s", HUB_PATH_BYTES, "");
    snprintf(out->text + n, sizeof out->text - n, "%s", target + common);
    return HUB_OK;
}

hub_status hub_link(const char *target, const char *path)
{
    hub_path to, part;
    uint64_t none = 0;
    if (hub_is_same_file(target, path)) return HUB_OK;
    hub_status status = relative_to(&to, target, path);
    if (status == HUB_OK) status = beside(&part, path);
    if (status == HUB_OK) status = hub_make_parents(path);
    if (status == HUB_OK) status = hub_make_link(target, to.text, part.text);
    if (status != HUB_OK) return status;
    status = hub_rename(part.text, path);
    return status == HUB_OK ? hub_remove(part.text, &none) : status;   // rename keeps both if they are two names of one
                                                                       // file
}

// ---------------------------------------------------------------------------------------- room

bool hub_disk_left(const char *path, double *free_bytes)
{
    hub_path at;
    if (hub_path_set(&at, "%s", path) != HUB_OK) return false;
    while (!hub_free_bytes(at.text[0] ? at.text : "/", free_bytes)) {
        char *slash = strrchr(at.text, '/');
        if (!slash) return false;
        *slash = 0;
    }
    return true;
}

hub_status hub_check_room(const char *path, uint64_t n_bytes, const char *what)
{
    enum { MARGIN = 16 << 20 };
    double free_bytes;
    if (!hub_disk_left(path, &free_bytes)) return HUB_OK;   // a write will report the error
    if ((double)n_bytes + MARGIN <= free_bytes) return HUB_OK;
    return hub_fail(HUB_E_DISK,
                    "%s needs %.2f GiB more, and the disk of %s has %.2f GiB; 'frit list' and 'frit rm' free room",
                    what, (double)n_bytes / (1 << 30), path, free_bytes / (1 << 30));
}

// ---------------------------------------------------------------------------------------- locks

hub_status hub_lock(const char *path, const char *what, const hub_watch *watch, hub_handle *out)
{
    char sentence[512];
    bool said = false;
    *out = HUB_CLOSED;
    hub_status status = hub_make_parents(path);
    if (status == HUB_OK) status = hub_open(path, true, out);
    while (status == HUB_OK) {
        const hub_locked locked = hub_try_lock(*out);
        if (locked == HUB_LOCKED || locked == HUB_LOCKS_UNKNOWN) return HUB_OK;
        if (locked == HUB_LOCK_FAILED) status = hub_system_failed(path, "the lock cannot be taken");
        if (status == HUB_OK && watch->stops(watch->ctx)) status = hub_fail(HUB_E_CANCELLED, "stopped");
        if (status != HUB_OK) break;
        snprintf(sentence, sizeof sentence, "another process fetches %s; waiting for it", what);
        if (!said) watch->say(watch->ctx, sentence);
        said = true;
        hub_sleep_ms(50);
    }
    hub_close(*out);
    *out = HUB_CLOSED;
    return status;
}

// The file is not removed, because another process may have it open and wait.
void hub_unlock(hub_handle lock)
{
    hub_close(lock);
}

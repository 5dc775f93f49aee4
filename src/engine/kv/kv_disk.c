// SPDX-License-Identifier: MIT
// The prefix cache on disk. Pages that leave memory go to files, and are read when a text begins with their tokens.
//
// A background thread reads and writes. The engine's thread passes work to it through:
//
//     ring      pages to be written. The engine's thread copies a page to the next free entry and continues. If the
//     ring is
//               full, the page is not saved.
//     request   pages to be read after a position of a text. The session that requests them runs no rows until they are
//               read; others do. They become idle pages of the prefix cache, where the session then finds them.
//
// At the end all pages in memory are written. Pages of texts that depend on adapters are not saved, because numbers of
// adapters differ between processes.
#include "engine/kv/kv_disk.h"

#include "base/thread/background.h"
#include "base/file/file.h"
#include "engine/kv/kv.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { RING_BYTES = 64 << 20, REQUEST_BYTES = 32 << 20, MOST_PAGES = 256 };

typedef enum request_state { NOTHING, ASKED, READ } request_state;

typedef struct request {
    _Atomic int state;
    // Written by the engine's thread before it sets ASKED, and by the background thread after that:
    frit_kv_key parent;
    int32_t *tokens;   // [n_ctx]
    int32_t depth, n;
    frit_kv_disk_page *pages;   // [room]
    int32_t room, n_read;
    // Used by the engine's thread only:
    frit_kv_root *root;
    int32_t entry;    // the pages follow this entry; -1: the root
    uint64_t stamp;   // of `entry`
} request;

typedef struct frit_kv_disk {
    frit_kv_disk_files files;
    frit_background *thread;
    frit_kv_key identity;
    frit_kv_key *keys;   // [n_entries] of the prefix cache
    frit_kv_disk_page *ring;
    uint32_t ring_size;
    _Atomic uint32_t n_given, n_taken;   // pages that were put into the ring, and that were written
    request request;
} frit_kv_disk;

// ------------------------------------------------------------------------------- the thread

// Pages in the ring have no files yet.
static bool read_from_ring(const frit_kv_disk *disk, frit_kv_disk_page *page)
{
    for (uint32_t i = atomic_load(&disk->n_taken); i != atomic_load(&disk->n_given); i++) {
        const frit_kv_disk_page *given = &disk->ring[i % disk->ring_size];
        if (memcmp(&given->key, &page->key, sizeof page->key) != 0) continue;
        page->groups = given->groups;
        memcpy(page->bytes, given->bytes, (size_t)disk->files.page_bytes);
        return true;
    }
    return false;
}

static void read_pages(frit_kv_disk *disk, request *r)
{
    frit_kv_key parent = r->parent;
    for (r->n_read = 0; r->n_read < r->n; r->n_read++) {
        frit_kv_disk_page *page = &r->pages[r->n_read];
        memcpy(page->tokens, r->tokens + (size_t)r->n_read * FRIT_PAGE_TOKENS, sizeof page->tokens);
        page->parent = parent;
        page->depth = r->depth + r->n_read;
        page->key = parent = frit_kv_key_after(&parent, page->tokens);
        if (!read_from_ring(disk, page) && !frit_kv_disk_read(&disk->files, page)) return;
    }
}

static void process_work(void *ctx)
{
    frit_kv_disk *disk = ctx;
    if (disk->files.n_bytes == UINT64_MAX) frit_kv_disk_trim(&disk->files);   // the first time
    for (;;) {
        const uint32_t n_taken = atomic_load(&disk->n_taken);
        if (atomic_load(&disk->request.state) == ASKED) {
            read_pages(disk, &disk->request);
            atomic_store(&disk->request.state, READ);
        } else if (n_taken != atomic_load(&disk->n_given)) {
            frit_kv_disk_write(&disk->files, &disk->ring[n_taken % disk->ring_size]);
            atomic_store(&disk->n_taken, n_taken + 1);
        } else {
            return;
        }
        frit_background_tell(disk->thread);
    }
}

// ------------------------------------------------------------------------------- making

static frit_status make_pages(frit_kv_disk_page **pages, uint32_t n, uint64_t page_bytes)
{
    *pages = calloc(n, sizeof **pages);
    if (!*pages) return frit_fail_memory(n * sizeof **pages, "pages on their way to a disk");
    (*pages)[0].bytes = malloc((size_t)(n * page_bytes));
    if (!(*pages)[0].bytes) return frit_fail_memory((size_t)(n * page_bytes), "pages on their way to a disk");
    for (uint32_t i = 1; i < n; i++) (*pages)[i].bytes = (*pages)[0].bytes + i * page_bytes;
    return FRIT_OK;
}

static uint32_t fitting(uint64_t n_bytes, uint64_t page_bytes)
{
    const uint64_t n = n_bytes / page_bytes;
    return n < 2 ? 2 : n < MOST_PAGES ? (uint32_t)n : MOST_PAGES;
}

static frit_status allocate_disk(frit_kv *kv, frit_kv_disk *disk, const frit_kv_disk_options *options)
{
    frit_kv_disk_files *files = &disk->files;
    files->log = options->log;
    files->max_bytes = options->max_bytes;
    files->n_bytes = UINT64_MAX;
    files->folder = malloc(strlen(options->folder) + 1);
    disk->keys = calloc((size_t)kv->prefix.n_entries + 1, sizeof *disk->keys);
    disk->request.tokens = calloc((size_t)options->n_ctx, sizeof(int32_t));
    if (!files->folder || !disk->keys || !disk->request.tokens)
        return frit_fail_memory((size_t)kv->prefix.n_entries * sizeof *disk->keys, "the prefix cache on disk");
    memcpy(files->folder, options->folder, strlen(options->folder) + 1);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        files->group_at[g] = files->page_bytes;
        for (int p = 0; p < kv->n_storages && !kv->groups[g].of_source; p++)
            files->group_bytes[g] += kv->storages[p].layout.page_bytes[g];
        files->page_bytes += files->group_bytes[g];
    }
    disk->ring_size = fitting(RING_BYTES, files->page_bytes);
    disk->request.room = (int32_t)fitting(REQUEST_BYTES, files->page_bytes);
    FRIT_TRY(make_pages(&disk->ring, disk->ring_size, files->page_bytes));
    FRIT_TRY(make_pages(&disk->request.pages, (uint32_t)disk->request.room, files->page_bytes));
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, options->identity, options->n_identity);
    frit_sha256_end(&sum, disk->identity.bytes);
    return frit_background_new(&disk->thread, process_work, disk);
}

static void free_disk(frit_kv_disk *disk)
{
    frit_background_free(disk->thread);
    if (disk->ring) free(disk->ring[0].bytes);
    if (disk->request.pages) free(disk->request.pages[0].bytes);
    free(disk->ring);
    free(disk->request.pages);
    free(disk->request.tokens);
    free(disk->keys);
    free(disk->files.folder);
    free(disk);
}

frit_status frit_kv_disk_init(frit_kv *kv, const frit_kv_disk_options *options)
{
    if (!kv->prefix.on || kv->state_bytes > 0 || kv->n_groups == 0) {
        frit_log_say(&options->log, FRIT_LOG_WARNING,
                     "the prefix cache keeps nothing in %s: the model has recurrent states or no prefix cache",
                     options->folder);
        return FRIT_OK;
    }
    if (frit_folder_make_private(options->folder) != FRIT_OK) {
        frit_log_say(&options->log, FRIT_LOG_WARNING, "%s; the prefix cache keeps no prompts there", frit_error());
        return FRIT_OK;
    }
    frit_kv_disk *disk = calloc(1, sizeof *disk);
    if (!disk) return frit_fail_memory(sizeof *disk, "the prefix cache on disk");
    const frit_status status = allocate_disk(kv, disk, options);
    if (status == FRIT_OK)
        kv->disk = disk;
    else
        free_disk(disk);
    return status;
}

void frit_kv_disk_deinit(frit_kv *kv)
{
    frit_kv_disk *disk = kv->disk;
    if (!disk) return;
    while (frit_kv_disk_wait(kv)) continue;
    for (int32_t i = 0; i < kv->prefix.n_used; i++) {
        uint32_t seen = frit_background_news(disk->thread);
        while (atomic_load(&disk->n_given) - atomic_load(&disk->n_taken) == disk->ring_size) {
            frit_background_wait(disk->thread, seen);
            seen = frit_background_news(disk->thread);
        }
        if (kv->prefix.entries[i].stamp != 0) frit_kv_disk_save(kv, i);
    }
    kv->disk = NULL;
    free_disk(disk);
}

// ------------------------------------------------------------------------------- names

void frit_kv_disk_name_root(const frit_kv *kv, frit_kv_root *root)
{
    const frit_kv_disk *disk = kv->disk;
    if (!disk || root->is_named) return;
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, disk->identity.bytes, sizeof disk->identity.bytes);
    frit_sha256_add(&sum, root->key, root->n_bytes);
    frit_sha256_end(&sum, root->name);
    root->is_named = true;
}

static frit_kv_key key_before(const frit_kv *kv, const frit_kv_root *root, int32_t parent)
{
    frit_kv_key key;
    if (parent >= 0) return kv->disk->keys[parent];
    memcpy(key.bytes, root->name, sizeof key.bytes);
    return key;
}

void frit_kv_disk_name(const frit_kv *kv, int32_t i)
{
    const frit_kv_entry *entry = &kv->prefix.entries[i];
    if (!kv->disk || !entry->root->is_named) return;
    const frit_kv_key before = key_before(kv, entry->root, entry->parent);
    kv->disk->keys[i] = frit_kv_key_after(&before, entry->tokens);
}

static int32_t depth_of(const frit_kv *kv, int32_t i)
{
    int32_t n = 0;
    while ((i = kv->prefix.entries[i].parent) >= 0) n++;
    return n;
}

// ------------------------------------------------------------------------------- to files

// Reads one group of a page from the devices or from host memory.
static frit_status read_group(const frit_kv *kv, const frit_kv_entry *entry, int32_t g, uint8_t *bytes)
{
    for (int p = 0; p < kv->n_storages; p++) {
        const uint64_t n_bytes = kv->storages[p].layout.page_bytes[g];
        if (n_bytes == 0) continue;
        const frit_address from = entry->pages[g] >= 0 ? frit_kv_page_address(kv, p, g, entry->pages[g])
                                                       : frit_kv_host_address(kv, p, g, entry->host_page);
        frit_device *device = from.memory->device;
        FRIT_TRY(device->backend->read(device, from, bytes, n_bytes));
        bytes += n_bytes;
    }
    return FRIT_OK;
}

void frit_kv_disk_save(frit_kv *kv, int32_t i)
{
    frit_kv_disk *disk = kv->disk;
    frit_kv_entry *entry = &kv->prefix.entries[i];
    if (!disk || entry->on_disk || entry->n_tokens < FRIT_PAGE_TOKENS || !entry->root->is_named) return;
    const uint32_t n_given = atomic_load(&disk->n_given);
    if (n_given - atomic_load(&disk->n_taken) == disk->ring_size) return;
    frit_kv_disk_page *page = &disk->ring[n_given % disk->ring_size];
    page->key = disk->keys[i];
    page->parent = key_before(kv, entry->root, entry->parent);
    page->depth = depth_of(kv, i);
    page->groups = 0;
    memcpy(page->tokens, entry->tokens, sizeof page->tokens);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        if (entry->pages[g] < 0 && !entry->in_host[g]) continue;
        if (read_group(kv, entry, g, page->bytes + disk->files.group_at[g]) != FRIT_OK) return;
        page->groups |= 1u << g;
    }
    if (page->groups == 0) return;
    entry->on_disk = true;
    atomic_store(&disk->n_given, n_given + 1);
    frit_background_wake(disk->thread);
}

// ------------------------------------------------------------------------------- from files

bool frit_kv_disk_look(frit_kv *kv, const frit_kv_text *text, int32_t *n_known)
{
    frit_kv_disk *disk = kv->disk;
    if (!disk || !text->root->is_named) return false;
    request *r = &disk->request;
    if (atomic_load(&r->state) != NOTHING) return true;   // one request at a time
    int32_t entry;
    const int32_t n = frit_kv_find_pages(kv, text, &entry), n_missing = text->n / FRIT_PAGE_TOKENS - n;
    if (n_missing <= 0 || n <= *n_known) return false;   // the last request did not find more
    *n_known = n;
    r->n = n_missing < r->room ? n_missing : r->room;
    r->depth = n;
    r->entry = entry;
    r->stamp = entry >= 0 ? kv->prefix.entries[entry].stamp : 0;
    r->parent = key_before(kv, text->root, entry);
    r->root = text->root;
    frit_kv_root_ref(r->root);
    memcpy(r->tokens, text->tokens + (size_t)n * FRIT_PAGE_TOKENS, (size_t)r->n * FRIT_PAGE_TOKENS * sizeof *r->tokens);
    atomic_store(&r->state, ASKED);
    frit_background_wake(disk->thread);
    return true;
}

static frit_status write_group(const frit_kv *kv, int32_t g, int32_t page, const uint8_t *bytes)
{
    for (int p = 0; p < kv->n_storages; p++) {
        const uint64_t n_bytes = kv->storages[p].layout.page_bytes[g];
        frit_device *device = kv->storages[p].device;
        if (n_bytes > 0) FRIT_TRY(device->backend->write(device, frit_kv_page_address(kv, p, g, page), bytes, n_bytes));
        bytes += n_bytes;
    }
    return FRIT_OK;
}

static bool has_room(const frit_kv *kv, uint32_t groups)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (groups >> g & 1 && frit_kv_available(&kv->groups[g]) == 0) return false;
    return true;
}

// Adds a page that was read to the prefix cache as an idle page. Returns its entry; -1: there is no room.
static int32_t land_page(frit_kv *kv, const request *r, int32_t parent, uint64_t stamp, const frit_kv_disk_page *page)
{
    int32_t pages[FRIT_MAX_GROUPS], i = -1;
    frit_status status = has_room(kv, page->groups) ? FRIT_OK : FRIT_E_LIMIT;
    for (int32_t g = 0; g < kv->n_groups; g++) {
        pages[g] = status == FRIT_OK && page->groups >> g & 1 ? frit_kv_alloc_page(kv, g) : -1;
        if (pages[g] >= 0) status = write_group(kv, g, pages[g], page->bytes + kv->disk->files.group_at[g]);
    }
    const bool is_there = parent < 0 || kv->prefix.entries[parent].stamp == stamp;   // allocating may have evicted it
    if (status == FRIT_OK && is_there) i = frit_kv_add_page(kv, r->root, parent, page->tokens, pages);
    for (int32_t g = 0; g < kv->n_groups; g++)
        if (pages[g] >= 0) frit_kv_unref_page(&kv->groups[g], pages[g]);
    if (i >= 0) kv->prefix.entries[i].on_disk = true;
    return i;
}

static void land_request(frit_kv *kv)
{
    request *r = &kv->disk->request;
    int32_t at = r->entry;
    uint64_t stamp = r->stamp;
    for (int32_t k = 0; k < r->n_read; k++) {
        if (at >= 0 && kv->prefix.entries[at].stamp != stamp) break;
        int32_t next = frit_kv_find_page(kv, r->root, at, r->pages[k].tokens);   // may have been computed meanwhile
        if (next < 0) next = land_page(kv, r, at, stamp, &r->pages[k]);
        if (next < 0) break;
        at = next;
        stamp = kv->prefix.entries[at].stamp;
    }
    frit_kv_root_unref(kv, r->root);
    r->root = NULL;
    atomic_store(&r->state, NOTHING);
}

void frit_kv_disk_land(frit_kv *kv)
{
    if (kv->disk && atomic_load(&kv->disk->request.state) == READ) land_request(kv);
}

bool frit_kv_disk_wait(frit_kv *kv)
{
    frit_kv_disk *disk = kv->disk;
    if (!disk || atomic_load(&disk->request.state) == NOTHING) return false;
    uint32_t seen = frit_background_news(disk->thread);
    while (atomic_load(&disk->request.state) == ASKED) {
        frit_background_wait(disk->thread, seen);
        seen = frit_background_news(disk->thread);
    }
    land_request(kv);
    return true;
}

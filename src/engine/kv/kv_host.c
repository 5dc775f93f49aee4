// SPDX-License-Identifier: MIT
// Pages of the prefix cache that were evicted to host memory, where they stay until a session needs them. A host page
// holds one page of each group, with the storage of all devices.
#include "engine/kv/kv.h"

#include <stdlib.h>

// Sets the offsets of the devices' storage within a host page.
static void lay_out(const frit_kv *kv, frit_kv_host *host)
{
    uint64_t at = 0;
    for (int32_t g = 0; g < kv->n_groups; g++)
        for (int p = 0; p < kv->n_storages && !kv->groups[g].of_source; p++) {
            host->offsets[g][p] = at;
            at += kv->storages[p].layout.page_bytes[g];
        }
}

frit_status frit_kv_host_init(frit_kv *kv, frit_device *cpu, const frit_kv_sizes *sizes, const frit_kv_room *room)
{
    frit_kv_host *host = &kv->host;
    host->page_bytes = frit_kv_host_page_bytes(sizes);
    host->n_pages = frit_kv_n_host_pages(sizes, room);
    if (host->n_pages == 0) return FRIT_OK;
    lay_out(kv, host);
    host->free_pages = calloc((size_t)host->n_pages, sizeof *host->free_pages);
    if (!host->free_pages) return frit_fail_memory((size_t)host->n_pages, "pages in the host's memory");
    for (int32_t i = 0; i < host->n_pages; i++) host->free_pages[i] = host->n_pages - 1 - i;
    host->n_free = host->n_pages;
    kv->n_bytes += (uint64_t)host->n_pages * host->page_bytes;
    return cpu->backend->alloc(cpu, (uint64_t)host->n_pages * host->page_bytes, &host->memory);
}

void frit_kv_host_deinit(frit_kv *kv)
{
    const frit_memory *memory = kv->host.memory;
    if (memory) memory->device->backend->free(memory->device, kv->host.memory);
    free(kv->host.free_pages);
    kv->host = (frit_kv_host){0};
}

frit_address frit_kv_host_address(const frit_kv *kv, int device, int32_t g, int32_t host_page)
{
    const frit_kv_host *host = &kv->host;
    return (frit_address){host->memory, (uint64_t)host_page * host->page_bytes + host->offsets[g][device]};
}

static frit_status copy_page(const frit_kv *kv, int32_t g, int32_t page, int32_t host_page, bool back)
{
    for (int p = 0; p < kv->n_storages; p++) {
        const uint64_t n_bytes = kv->storages[p].layout.page_bytes[g];
        const frit_address there = frit_kv_host_address(kv, p, g, host_page);
        const frit_address here = frit_kv_page_address(kv, p, g, page);
        if (n_bytes > 0) FRIT_TRY(frit_backend_copy(back ? here : there, back ? there : here, n_bytes));
    }
    return FRIT_OK;
}

bool frit_kv_host_save(frit_kv *kv, frit_kv_entry *entry, int32_t g)
{
    frit_kv_host *host = &kv->host;
    if (entry->host_page < 0 && host->n_free == 0) return false;
    const int32_t host_page = entry->host_page >= 0 ? entry->host_page : host->free_pages[host->n_free - 1];
    if (copy_page(kv, g, entry->pages[g], host_page, false) != FRIT_OK) return false;
    if (entry->host_page < 0) host->n_free--;
    entry->host_page = host_page;
    entry->in_host[g] = true;
    return true;
}

frit_status frit_kv_host_load(frit_kv *kv, frit_kv_entry *entry, int32_t g, int32_t page)
{
    FRIT_TRY(copy_page(kv, g, page, entry->host_page, true));
    frit_kv_host_drop(kv, entry, g);
    return FRIT_OK;
}

void frit_kv_host_drop(frit_kv *kv, frit_kv_entry *entry, int32_t g)
{
    bool any = false;
    entry->in_host[g] = false;
    for (int32_t i = 0; i < kv->n_groups; i++) any = any || entry->in_host[i];
    if (any || entry->host_page < 0) return;
    kv->host.free_pages[kv->host.n_free++] = entry->host_page;
    entry->host_page = -1;
}

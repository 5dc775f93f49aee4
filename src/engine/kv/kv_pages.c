// SPDX-License-Identifier: MIT
// Pages of a group: free, idle (only the prefix cache owns them), or referenced by tables. Idle pages are a list from
// lru to mru, linked by before and after.
#include "engine/kv/kv.h"

static void add_idle(frit_kv_group *group, int32_t page)
{
    group->before[page] = group->mru;
    group->after[page] = -1;
    if (group->mru >= 0)
        group->after[group->mru] = page;
    else
        group->lru = page;
    group->mru = page;
    group->n_idle++;
}

static void remove_idle(frit_kv_group *group, int32_t page)
{
    const int32_t before = group->before[page], after = group->after[page];
    if (before >= 0)
        group->after[before] = after;
    else
        group->lru = after;
    if (after >= 0)
        group->before[after] = before;
    else
        group->mru = before;
    group->n_idle--;
}

int32_t frit_kv_alloc_page(frit_kv *kv, int32_t g)
{
    frit_kv_group *group = &kv->groups[g];
    if (group->n_free == 0) frit_kv_evict_page(kv, g, group->lru);
    const int32_t page = group->free_pages[--group->n_free];
    group->refs[page] = 1;
    return page;
}

void frit_kv_ref_page(frit_kv_group *group, int32_t page)
{
    if (group->refs[page]++ == 0) remove_idle(group, page);
}

void frit_kv_unref_page(frit_kv_group *group, int32_t page)
{
    if (--group->refs[page] > 0) return;
    if (group->owners[page] >= 0)
        add_idle(group, page);
    else
        group->free_pages[group->n_free++] = page;
}

void frit_kv_disown_page(frit_kv_group *group, int32_t page)
{
    group->owners[page] = -1;
    if (group->refs[page] > 0) return;
    remove_idle(group, page);
    group->free_pages[group->n_free++] = page;
}

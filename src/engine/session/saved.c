// SPDX-License-Identifier: MIT
// Checks the file of a session before it is used.
#include "engine/session/saved.h"

#include "base/check.h"
#include "base/checksum.h"
#include "engine/kv/kv_layout.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char frit_saved_magic[8] = {'F', 'R', 'I', 'T', 'S', 'E', 'S', 'S'};

enum { MAX_SNAPSHOTS = 1 << 10 };   // so that their sizes can be added up

typedef struct parsing {
    const char *name;
    const frit_saved_header *found, *expected;
} parsing;

static frit_status check_file(const parsing *p, uint64_t n_bytes)
{
    const frit_saved_header *found = p->found;
    if (memcmp(found->magic, frit_saved_magic, sizeof frit_saved_magic) != 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s: is no session file", p->name);
    if (found->version != FRIT_SAVED_VERSION)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: a session file of version %u, version %d is expected", p->name,
                              found->version, (int)FRIT_SAVED_VERSION);
    if (found->n_bytes != n_bytes)
        return frit_fail_file(FRIT_E_FORMAT, "%s: has %llu bytes, %llu are expected: it was cut short or added to",
                              p->name, (unsigned long long)n_bytes, (unsigned long long)found->n_bytes);
    return FRIT_OK;
}

static bool is_same(const char *a, const char *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

static frit_status check_groups(const parsing *p)
{
    for (int i = 0; i < FRIT_SAVED_GROUPS; i++) {
        const frit_saved_group *a = &p->found->groups[i], *b = &p->expected->groups[i];
        if (a->window != b->window)
            return frit_fail_file(FRIT_E_INVALID, "%s: keeps a window of %u positions, %u are expected (0: all)",
                                  p->name, a->window, b->window);
        if (a->position_bytes != b->position_bytes || a->of_source != b->of_source)
            return frit_fail_file(FRIT_E_INVALID, "%s: has %llu bytes for a position%s, %llu%s are expected", p->name,
                                  (unsigned long long)a->position_bytes, a->of_source ? " of a source" : "",
                                  (unsigned long long)b->position_bytes, b->of_source ? " of a source" : "");
    }
    return FRIT_OK;
}

static frit_status check_model(const parsing *p)
{
    const frit_saved_header *a = p->found, *b = p->expected;
    if (!is_same(a->arch, b->arch, sizeof a->arch) || a->n_layer != b->n_layer || a->n_vocab != b->n_vocab)
        return frit_fail_file(
            FRIT_E_INVALID,
            "%s: was saved with another model: %.31s with %u layers and %u tokens, this one is %.31s with "
            "%u and %u",
            p->name, a->arch, a->n_layer, a->n_vocab, b->arch, b->n_layer, b->n_vocab);
    if (a->model != b->model)
        return frit_fail_file(FRIT_E_INVALID,
                              "%s: was saved with another model of architecture %.31s: its weights or metadata differ",
                              p->name, b->arch);
    if (a->adapters != b->adapters)
        return frit_fail_file(FRIT_E_INVALID, "%s: was saved with %s, the session has %s", p->name,
                              a->adapters ? "adapters" : "no adapters",
                              !b->adapters  ? "none"
                              : a->adapters ? "others, or other scales of them"
                                            : "some");
    for (size_t i = 0; i < FRIT_COUNT(a->self_extend); i++)
        if (a->self_extend[i] != 0)
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: was saved with self-extend, which frit no longer supports",
                                  p->name);
    if (!is_same(a->type_k, b->type_k, sizeof a->type_k) || !is_same(a->type_v, b->type_v, sizeof a->type_v))
        return frit_fail_file(FRIT_E_INVALID, "%s: keys and values are %.15s and %.15s there, %.15s and %.15s here",
                              p->name, a->type_k, a->type_v, b->type_k, b->type_v);
    if (a->rotation != b->rotation)
        return frit_fail_file(
            FRIT_E_INVALID,
            "%s: was saved with a context of %u tokens, in which positions turn by other angles than with "
            "%u",
            p->name, a->n_ctx, b->n_ctx);
    if (a->state_bytes != b->state_bytes)
        return frit_fail_file(FRIT_E_INVALID, "%s: has %llu bytes for a state, %llu are expected", p->name,
                              (unsigned long long)a->state_bytes, (unsigned long long)b->state_bytes);
    return check_groups(p);
}

static frit_status fail_damaged(const parsing *p, const char *what)
{
    return frit_fail_file(FRIT_E_FORMAT, "%s: is damaged: %s", p->name, what);
}

static int32_t number_at(const uint8_t *numbers, size_t i)
{
    int32_t value;
    memcpy(&value, numbers + i * sizeof value, sizeof value);
    return value;
}

static bool has_window(const frit_saved_header *h)
{
    bool any = false;
    for (int i = 0; i < FRIT_SAVED_GROUPS; i++) any = any || h->groups[i].window > 0;
    return any;
}

uint64_t frit_saved_bytes(const frit_saved_header *h, frit_saved_section section, uint32_t n_positions)
{
    uint64_t total = 0, n_bytes;
    for (int i = 0; i < FRIT_SAVED_GROUPS; i++) {
        const frit_saved_group *group = &h->groups[i];
        if (group->of_source != (section == FRIT_SAVED_SOURCE)) continue;
        if (section == FRIT_SAVED_WINDOWS && group->window == 0) continue;
        const uint32_t first = (uint32_t)frit_kv_first_position((int32_t)group->window, (int32_t)n_positions);
        if (!frit_mul_u64(group->position_bytes, n_positions - first, &n_bytes) ||
            !frit_add_u64(total, n_bytes, &total))
            return UINT64_MAX;
    }
    return total;
}

// Bytes of all snapshots: states, and windows but for the last one.
static uint64_t snapshot_bytes(const frit_saved_header *h, const uint8_t *positions)
{
    uint64_t total;
    if (!frit_mul_u64(h->n_snapshots, h->state_bytes, &total)) return UINT64_MAX;
    for (size_t i = 0; i + 1 < h->n_snapshots; i++) {
        const int32_t at = number_at(positions, i);
        if (at < 0 || (uint32_t)at > h->n_done ||
            !frit_add_u64(total, frit_saved_bytes(h, FRIT_SAVED_WINDOWS, (uint32_t)at), &total))
            return UINT64_MAX;
    }
    return total;
}

static frit_status check_counts(const parsing *p)
{
    const frit_saved_header *h = p->found;
    const bool has_source = frit_saved_bytes(h, FRIT_SAVED_SOURCE, 1) > 0;
    const bool has_snapshots = (h->state_bytes > 0 || has_window(h)) && h->n_done > 0;
    if (h->n_tokens > INT32_MAX || h->n_done > h->n_tokens) return fail_damaged(p, "more tokens ran than there are");
    if (has_snapshots != (h->n_snapshots > 0) || h->n_snapshots > MAX_SNAPSHOTS)
        return fail_damaged(p, "the number of states does not suit its model");
    if (h->n_logits != 0 && (h->n_logits != h->n_vocab || h->n_done != h->n_tokens || h->n_tokens == 0))
        return fail_damaged(p, "the number of logits does not suit its tokens");
    if (h->n_source > INT32_MAX || (h->n_source > 0 && !has_source) ||
        (h->n_encoded != 0 && h->n_encoded != h->n_source))
        return fail_damaged(p, "the length of the source does not suit its model");
    if (has_source && ((h->n_tokens > 0 && h->n_source == 0) || (h->n_done > 0 && h->n_encoded == 0)))
        return fail_damaged(p, "its tokens have no source");
    const uint32_t longest = h->n_tokens > h->n_source ? h->n_tokens : h->n_source;
    if (longest > p->expected->n_ctx)
        return frit_fail_file(FRIT_E_LIMIT, "%s: holds %u tokens, the context is %u: ask for a longer one", p->name,
                              longest, p->expected->n_ctx);
    return FRIT_OK;
}

typedef struct cutting {
    const uint8_t *at;
    uint64_t n_left;
} cutting;

static bool cut_section(cutting *c, const uint8_t **section, uint64_t n_bytes)
{
    if (n_bytes > c->n_left) return false;
    *section = c->at;
    c->at += n_bytes;
    c->n_left -= n_bytes;
    return true;
}

// Cuts the bytes into sections. False if their sizes are not those of the header.
static bool cut(frit_saved *saved, const uint8_t *bytes, uint64_t n_bytes)
{
    const frit_saved_header *h = &saved->header;
    cutting c = {bytes + sizeof *h, n_bytes - sizeof *h};
    return cut_section(&c, &saved->tokens, (uint64_t)h->n_tokens * 4) &&
           cut_section(&c, &saved->source, (uint64_t)h->n_source * 4) &&
           cut_section(&c, &saved->snapshot_positions, (uint64_t)h->n_snapshots * 4) &&
           cut_section(&c, &saved->logits, (uint64_t)h->n_logits * 4) &&
           cut_section(&c, &saved->positions, frit_saved_bytes(h, FRIT_SAVED_TEXT, h->n_done)) &&
           cut_section(&c, &saved->source_positions, frit_saved_bytes(h, FRIT_SAVED_SOURCE, h->n_encoded)) &&
           cut_section(&c, &saved->snapshots, snapshot_bytes(h, saved->snapshot_positions)) &&
           cut_section(&c, &saved->note, h->n_note_bytes) && c.n_left == sizeof(uint64_t);
}

static frit_status check_sum(const parsing *p, const uint8_t *bytes, uint64_t n_bytes)
{
    frit_checksum sum = {0};
    uint64_t written;
    memcpy(&written, bytes + n_bytes - sizeof written, sizeof written);
    frit_checksum_add(&sum, bytes, (size_t)n_bytes - sizeof written);
    return frit_checksum_value(&sum) == written ? FRIT_OK : fail_damaged(p, "its checksum is not that of its bytes");
}

static bool are_tokens(const frit_saved_header *h, const uint8_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t token = number_at(numbers, i);
        if (token < 0 || (uint32_t)token >= h->n_vocab) return false;
    }
    return true;
}

// Checks the content: a file with a valid checksum may have been written by anyone.
static frit_status check_values(const parsing *p, const frit_saved *saved)
{
    const frit_saved_header *h = &saved->header;
    if (!are_tokens(h, saved->tokens, h->n_tokens) || !are_tokens(h, saved->source, h->n_source))
        return fail_damaged(p, "a token is not in the vocabulary");
    int32_t before = 0;
    for (size_t i = 0; i < h->n_snapshots; i++) {
        const int32_t at = number_at(saved->snapshot_positions, i);
        const bool is_last = i + 1 == h->n_snapshots;
        if (at < before || at < 1 || (uint32_t)at > h->n_done || (is_last && (uint32_t)at != h->n_done) ||
            (!is_last && at % FRIT_PAGE_TOKENS != 0))
            return fail_damaged(p, "its states are not in order");
        before = at;
    }
    for (size_t i = 0; i < h->n_logits; i++) {
        float value;
        memcpy(&value, saved->logits + i * sizeof value, sizeof value);
        if (!isfinite(value)) return fail_damaged(p, "its logits are not finite");
    }
    return FRIT_OK;
}

frit_status frit_saved_parse(frit_saved *saved, const char *name, const uint8_t *bytes, uint64_t n_bytes,
                             const frit_saved_header *expected)
{
    static_assert(sizeof(frit_saved_header) == 248, "a header without padding");
    *saved = (frit_saved){0};
    const parsing p = {.name = name, .found = &saved->header, .expected = expected};
    if (n_bytes < sizeof saved->header + sizeof(uint64_t) || n_bytes > SIZE_MAX)
        return frit_fail_file(FRIT_E_FORMAT, "%s: is no session file: it has %llu bytes", name,
                              (unsigned long long)n_bytes);
    memcpy(&saved->header, bytes, sizeof saved->header);
    FRIT_TRY(check_file(&p, n_bytes));
    FRIT_TRY(check_model(&p));
    FRIT_TRY(check_counts(&p));
    if (!cut(saved, bytes, n_bytes)) return fail_damaged(&p, "its parts do not add up to its size");
    FRIT_TRY(check_sum(&p, bytes, n_bytes));
    return check_values(&p, saved);
}

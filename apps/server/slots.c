// SPDX-License-Identifier: MIT
// Choosing and reusing sessions.
#include "server/slots.h"

#include <stdlib.h>
#include <string.h>

// A prefix shorter than one tenth of the prompt (say, only a system message) is not worth another conversation's cache.
enum { WORTH_KEEPING = 10 };

frit_status server_slots_init(server_slots *slots, frit_engine *engine, int32_t n, const server_adapters *adapters)
{
    frit_engine_info info;
    frit_engine_get_info(engine, &info);
    *slots = (server_slots){.adapters = *adapters, .items = calloc((size_t)n, sizeof *slots->items)};
    if (!slots->items) return FRIT_E_MEMORY;
    for (slots->n = 0; slots->n < n; slots->n++) {
        server_slot *slot = &slots->items[slots->n];
        slot->tokens = malloc((size_t)info.n_ctx * sizeof *slot->tokens);
        slot->scales = calloc(adapters->n + 1, sizeof *slot->scales);
        frit_status status = slot->tokens && slot->scales ? frit_session_new(&slot->session, engine) : FRIT_E_MEMORY;
        if (status != FRIT_OK) {
            free(slot->scales);
            free(slot->tokens);
            server_slots_free(slots);
            return status;
        }
    }
    return FRIT_OK;
}

void server_slots_free(server_slots *slots)
{
    for (int32_t i = 0; i < slots->n; i++) {
        frit_session_free(slots->items[i].session);
        free(slots->items[i].tokens);
        free(slots->items[i].scales);
    }
    free(slots->items);
    *slots = (server_slots){0};
}

static bool has_scales(const server_slots *slots, const server_slot *slot, const float *scales)
{
    return slots->adapters.n == 0 || memcmp(slot->scales, scales, slots->adapters.n * sizeof *scales) == 0;
}

static size_t common_prefix(const server_slots *slots, const server_slot *slot, const frit_token *prompt,
                            size_t n_prompt, const float *scales)
{
    size_t n = 0;
    if (!has_scales(slots, slot, scales)) return 0;
    while (n < n_prompt && n < slot->n_tokens && prompt[n] == slot->tokens[n]) n++;
    return n;
}

server_slot *server_slots_choose(server_slots *slots, const frit_token *prompt, size_t n_prompt, const float *scales)
{
    server_slot *longest = NULL, *oldest = NULL;
    size_t n_longest = 0;
    for (int32_t i = 0; i < slots->n; i++) {
        server_slot *slot = &slots->items[i];
        if (slot->job) continue;
        size_t n = common_prefix(slots, slot, prompt, n_prompt, scales);
        if (n > n_longest) {
            longest = slot;
            n_longest = n;
        }
        if (!oldest || slot->used_at < oldest->used_at) oldest = slot;
    }
    return n_longest * WORTH_KEEPING >= n_prompt && longest ? longest : oldest;
}

static frit_status set_scales(const server_slots *slots, server_slot *slot, const float *scales)
{
    if (has_scales(slots, slot, scales)) return FRIT_OK;
    frit_status status = frit_session_set_adapters(slot->session, slots->adapters.items, scales, slots->adapters.n);
    if (status == FRIT_OK) memcpy(slot->scales, scales, slots->adapters.n * sizeof *scales);
    return status;
}

frit_status server_slot_load(const server_slots *slots, server_slot *slot, const frit_token *prompt, size_t n_prompt,
                             const float *scales, const frit_push_options *rows, size_t *n_cached)
{
    size_t n_keep = rows ? 0 : common_prefix(slots, slot, prompt, n_prompt, scales);
    if (n_keep == n_prompt) n_keep--;   // a row must run to give logits
    *n_cached = n_keep;
    frit_status status = frit_session_truncate(slot->session, n_keep);
    slot->n_tokens = n_keep;
    if (status == FRIT_OK) status = set_scales(slots, slot, scales);
    if (status == FRIT_OK) status = frit_session_push(slot->session, prompt + n_keep, n_prompt - n_keep, rows);
    if (status != FRIT_OK) return status;
    memcpy(slot->tokens, prompt, n_prompt * sizeof *prompt);
    slot->n_tokens = n_prompt;
    return FRIT_OK;
}

frit_status server_slot_read(const server_slots *slots, server_slot *slot, const frit_token *prompt, size_t n_prompt,
                             const float *scales, frit_token start)
{
    slot->n_tokens = 0;
    frit_status status = set_scales(slots, slot, scales);
    if (status == FRIT_OK) status = frit_session_encode(slot->session, prompt, n_prompt, NULL);
    return status == FRIT_OK ? server_slot_push(slot, start) : status;
}

frit_status server_slot_fork(server_slot *slot, const server_slot *from, size_t n, size_t n_scales)
{
    frit_session *session;
    server_slot_clear(slot);   // a state that it holds is free for the copy
    frit_status status = frit_session_fork(&session, from->session);
    if (status != FRIT_OK) return status;
    frit_session_free(slot->session);
    slot->session = session;
    slot->n_tokens = 0;
    memcpy(slot->scales, from->scales, n_scales * sizeof *slot->scales);
    status = frit_session_truncate(session, n);
    if (status != FRIT_OK) return status;
    memcpy(slot->tokens, from->tokens, n * sizeof *slot->tokens);
    slot->n_tokens = n;
    return FRIT_OK;
}

void server_slot_clear(server_slot *slot)
{
    if (frit_session_truncate(slot->session, 0) == FRIT_OK) slot->n_tokens = 0;
}

frit_status server_slot_push(server_slot *slot, frit_token token)
{
    frit_status status = frit_session_push(slot->session, &token, 1, NULL);
    if (status == FRIT_OK) slot->tokens[slot->n_tokens++] = token;
    return status;
}

void server_slot_rest(server_slots *slots, server_slot *slot)
{
    const size_t n = frit_session_length(slot->session), n_pending = frit_session_pending(slot->session);
    // What a session that failed has in the cache is as bad as its results.
    const bool is_good = frit_session_status(slot->session) == FRIT_OK;
    const size_t n_run = is_good && n > n_pending ? n - n_pending : 0;
    if (frit_session_truncate(slot->session, n_run) == FRIT_OK) slot->n_tokens = n_run;
    slot->job = NULL;
    slot->used_at = ++slots->clock;
}

// SPDX-License-Identifier: MIT
// Chooses and prepares sessions for jobs.
#include "server/sched/slots.h"

#include "common/speculate.h"

#include <stdlib.h>
#include <string.h>

frit_status server_slots_init(server_slots *slots, frit_engine *engine, int32_t n, const server_adapters *adapters,
                              const frit_speculate_options *speculate, const app_shift_options *shift, bool keeps)
{
    frit_engine_info info;
    frit_engine_get_info(engine, &info);
    *slots = (server_slots){
        .adapters = *adapters, .shift = *shift, .n_ctx = info.n_ctx, .items = calloc((size_t)n, sizeof *slots->items)};
    slots->scales = calloc(adapters->n + 1, sizeof *slots->scales);
    if (!slots->items || !slots->scales) {
        server_slots_deinit(slots);
        return FRIT_E_MEMORY;
    }
    for (size_t i = 0; i < adapters->n; i++) slots->scales[i] = adapters->scales[i];
    for (slots->n = 0; slots->n < n; slots->n++) {
        server_slot *slot = &slots->items[slots->n];
        slot->scales = calloc(adapters->n + 1, sizeof *slot->scales);
        slot->keeps = keeps;
        frit_status status = slot->scales ? frit_session_new(&slot->session, engine) : FRIT_E_MEMORY;
        if (status == FRIT_OK) status = app_speculate(slot->session, speculate);
        if (status == FRIT_OK) status = app_shift(slot->session, shift, 0, info.n_ctx);
        if (status != FRIT_OK) {
            frit_session_free(slot->session);
            free(slot->scales);
            server_slots_deinit(slots);
            return status;
        }
    }
    return FRIT_OK;
}

void server_slots_deinit(server_slots *slots)
{
    for (int32_t i = 0; i < slots->n; i++) {
        frit_session_free(slots->items[i].session);
        free(slots->items[i].scales);
        free(slots->items[i].salt);
    }
    free(slots->items);
    free(slots->scales);
    *slots = (server_slots){0};
}

static bool has_scales(const server_slots *slots, const server_slot *slot, const float *scales)
{
    return slots->adapters.n == 0 || memcmp(slot->scales, scales, slots->adapters.n * sizeof *scales) == 0;
}

server_slot *server_slots_idle(const server_slots *slots)
{
    for (int32_t i = 0; i < slots->n; i++)
        if (!slots->items[i].job && !slots->items[i].is_settling) return &slots->items[i];
    return NULL;
}

static frit_status set_scales(const server_slots *slots, server_slot *slot, const float *scales)
{
    if (has_scales(slots, slot, scales)) return FRIT_OK;
    frit_status status = frit_session_set_adapters(slot->session, slots->adapters.items, scales, slots->adapters.n);
    if (status == FRIT_OK) memcpy(slot->scales, scales, slots->adapters.n * sizeof *scales);
    return status;
}

static bool is_of_picture(frit_token token)
{
    return token >= 1 << 30;
}

// Tokens at the beginning of the prompt that the restored text has. At least one token of the prompt runs.
static size_t count_found(const server_slots *slots, const server_slot *slot, const server_prompt *prompt)
{
    enum { LEAST = 32 };   // fewer tokens are not worth the loss of the restored text
    const char *salt = prompt->salt ? prompt->salt : "";
    if (!slot->is_restored || strcmp(server_slot_salt(slot), salt) != 0 || !has_scales(slots, slot, prompt->scales))
        return 0;
    const frit_token *tokens = frit_session_tokens(slot->session);
    const size_t length = frit_session_length(slot->session);
    size_t n = 0;
    while (n < length && n + 1 < prompt->n && tokens[n] == prompt->tokens[n]) n++;
    if (n < length && (is_of_picture(tokens[n]) || is_of_picture(prompt->tokens[n])))
        while (n > 0 && is_of_picture(tokens[n - 1])) n--;   // no text ends within a picture
    return n >= LEAST || n == length || n + 1 == prompt->n ? n : 0;
}

server_slot *server_slots_best(const server_slots *slots, server_slot *idle, const server_prompt *prompt)
{
    server_slot *best = NULL, *plain = NULL;
    size_t n_best = 0;
    for (int32_t i = 0; i < slots->n; i++) {
        server_slot *slot = &slots->items[i];
        if (slot->job || slot->is_settling) continue;
        const size_t n = count_found(slots, slot, prompt);
        if (n > n_best) best = slot, n_best = n;
        if (!plain && !slot->is_restored) plain = slot;
    }
    return best ? best : plain ? plain : idle;
}

size_t server_slot_cached(const server_slot *slot)
{
    return slot->n_found > 0 ? slot->n_found : frit_session_cached(slot->session);
}

const char *server_slot_salt(const server_slot *slot)
{
    return slot->salt ? slot->salt : "";
}

frit_status server_slot_clear(server_slot *slot)
{
    free(slot->salt);
    slot->salt = NULL;
    slot->is_restored = false;
    slot->n_found = 0;
    return frit_session_truncate(slot->session, 0);
}

static frit_status set_salt(server_slot *slot, const char *salt)
{
    char *copy = *salt ? strdup(salt) : NULL;
    if (*salt && !copy) return FRIT_E_MEMORY;
    free(slot->salt);
    slot->salt = copy;
    return FRIT_OK;
}

frit_status server_slot_mark_restored(server_slot *slot, const char *salt)
{
    const frit_status status = set_salt(slot, salt);
    slot->is_restored = status == FRIT_OK;
    return status == FRIT_OK ? status : server_slot_clear(slot);
}

// Empties the session, and sets adapters and salt for the prompt.
static frit_status begin_text(const server_slots *slots, server_slot *slot, const server_prompt *prompt)
{
    const char *salt = prompt->salt ? prompt->salt : "";
    frit_status status = server_slot_clear(slot);
    if (status == FRIT_OK) status = set_scales(slots, slot, prompt->scales);
    if (status == FRIT_OK) status = frit_session_set_salt(slot->session, salt, strlen(salt));
    return status == FRIT_OK && slot->keeps ? set_salt(slot, salt) : status;
}

frit_status server_slot_load(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             const frit_push_options *rows)
{
    const size_t n_same = rows ? 0 : count_found(slots, slot, prompt);
    frit_status status = n_same > 0 ? frit_session_truncate(slot->session, n_same) : begin_text(slots, slot, prompt);
    if (status == FRIT_OK && n_same > 0) slot->n_found = n_same - frit_session_pending(slot->session);
    frit_push_options how = rows ? *rows : (frit_push_options){0};
    how.media = prompt->media;
    how.n_media = prompt->n_media;
    if (status == FRIT_OK) status = frit_session_push(slot->session, prompt->tokens + n_same, prompt->n - n_same, &how);
    if (status == FRIT_OK) status = app_shift(slot->session, &slots->shift, prompt->n, slots->n_ctx);
    return status == FRIT_OK ? frit_session_predict(slot->session, prompt->prediction, prompt->n_prediction) : status;
}

frit_status server_slot_read(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             frit_token start)
{
    frit_status status = set_scales(slots, slot, prompt->scales);
    if (status == FRIT_OK) status = frit_session_encode(slot->session, prompt->tokens, prompt->n, NULL);
    return status == FRIT_OK ? frit_session_push(slot->session, &start, 1, NULL) : status;
}

void server_slot_end_job(server_slot *slot, size_t n_drafts)
{
    const size_t before = frit_session_length(slot->session);
    slot->job = NULL;
    slot->n_found = 0;
    slot->is_settling = true;
    const bool stopped = frit_session_stop(slot->session) == FRIT_OK;
    const size_t n_dropped = before - frit_session_length(slot->session);
    slot->loses_text = !slot->keeps || !stopped || n_dropped > n_drafts;
    slot->n_drafts = n_dropped < n_drafts ? n_drafts - n_dropped : 0;
    if (frit_session_pending(slot->session) == 0) server_slot_settle_now(slot);
}

// Keeps only a text that ran wholly and was not shifted.
void server_slot_settle_now(server_slot *slot)
{
    frit_session *session = slot->session;
    frit_shift_info shift;
    if (!slot->is_settling) return;
    slot->is_settling = false;
    frit_session_get_shift(session, &shift);
    const bool keeps = !slot->loses_text && frit_session_status(session) == FRIT_OK && shift.n_dropped == 0 &&
                       frit_session_length(session) > slot->n_drafts;
    if (!keeps || frit_session_truncate(session, frit_session_length(session) - slot->n_drafts) != FRIT_OK)
        server_slot_clear(slot);
}

bool server_slots_settle(server_slots *slots)
{
    bool any = false;
    for (int32_t i = 0; i < slots->n; i++) {
        server_slot *slot = &slots->items[i];
        if (slot->is_settling && frit_session_pending(slot->session) == 0) server_slot_settle_now(slot);
        any = any || slot->is_settling;
    }
    return any;
}

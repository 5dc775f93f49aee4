// SPDX-License-Identifier: MIT
// Giving sessions to jobs.
#include "server/slots.h"

#include "common/speculate.h"

#include <stdlib.h>
#include <string.h>

frit_status server_slots_init(server_slots *slots, frit_engine *engine, int32_t n, const server_adapters *adapters,
                              const frit_speculate_options *speculate, const app_shift_options *shift)
{
    frit_engine_info info;
    frit_engine_get_info(engine, &info);
    *slots = (server_slots){
        .adapters = *adapters, .shift = *shift, .n_ctx = info.n_ctx, .items = calloc((size_t)n, sizeof *slots->items)};
    if (!slots->items) return FRIT_E_MEMORY;
    for (slots->n = 0; slots->n < n; slots->n++) {
        server_slot *slot = &slots->items[slots->n];
        slot->scales = calloc(adapters->n + 1, sizeof *slot->scales);
        frit_status status = slot->scales ? frit_session_new(&slot->session, engine) : FRIT_E_MEMORY;
        if (status == FRIT_OK) status = app_speculate(slot->session, speculate);
        if (status == FRIT_OK) status = app_shift(slot->session, shift, 0, info.n_ctx);   // refused at the start
        if (status != FRIT_OK) {
            frit_session_free(slot->session);
            free(slot->scales);
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
        free(slots->items[i].scales);
    }
    free(slots->items);
    *slots = (server_slots){0};
}

static bool has_scales(const server_slots *slots, const server_slot *slot, const float *scales)
{
    return slots->adapters.n == 0 || memcmp(slot->scales, scales, slots->adapters.n * sizeof *scales) == 0;
}

server_slot *server_slots_idle(const server_slots *slots)
{
    for (int32_t i = 0; i < slots->n; i++)
        if (!slots->items[i].job) return &slots->items[i];
    return NULL;
}

static frit_status set_scales(const server_slots *slots, server_slot *slot, const float *scales)
{
    if (has_scales(slots, slot, scales)) return FRIT_OK;
    frit_status status = frit_session_set_adapters(slot->session, slots->adapters.items, scales, slots->adapters.n);
    if (status == FRIT_OK) memcpy(slot->scales, scales, slots->adapters.n * sizeof *scales);
    return status;
}

frit_status server_slot_load(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             const frit_push_options *rows)
{
    const char *salt = prompt->salt ? prompt->salt : "";
    frit_status status = frit_session_truncate(slot->session, 0);
    if (status == FRIT_OK) status = set_scales(slots, slot, prompt->scales);
    if (status == FRIT_OK) status = frit_session_set_salt(slot->session, salt, strlen(salt));
    if (status == FRIT_OK) status = frit_session_push(slot->session, prompt->tokens, prompt->n, rows);
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

void server_slot_rest(server_slot *slot)
{
    frit_session_truncate(slot->session, 0);
    slot->job = NULL;
}

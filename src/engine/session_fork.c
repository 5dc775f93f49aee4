// SPDX-License-Identifier: MIT
// A second session that goes on where another one is.
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

// The state after what ran, and the copies of earlier ones. A step that failed may have left a later copy.
static frit_status copy_states(frit_session *to, const frit_session *from)
{
    frit_kv *kv = &from->engine->kv;
    if (kv->state_bytes == 0 || from->n_done == 0) return FRIT_OK;
    FRIT_TRY(frit_kv_copy_states(kv, from->map.slot, to->map.slot));
    for (int32_t i = 0; i < from->map.n_copies; i++) {
        const frit_kv_copy *copy = &from->map.copies[i];
        if ((size_t)copy->at > from->n_done) break;
        const int32_t slot = frit_kv_add_copy(kv, &to->map, copy->at);
        if (slot > 0) FRIT_TRY(frit_kv_copy_states(kv, copy->slot, slot));
    }
    return FRIT_OK;
}

static frit_status copy_cache(frit_session *to, const frit_session *from)
{
    frit_kv *kv = &from->engine->kv;
    if (from->n_source > 0) {
        FRIT_TRY(frit_session_set_source(to, from->source, from->n_source));
        to->source_waits = from->source_waits;
        if (!from->source_waits)
            FRIT_TRY(frit_kv_copy_positions(kv, &from->source_map, &to->source_map, (int32_t)from->n_source));
    }
    FRIT_TRY(frit_kv_extend(kv, &to->map, (int32_t)from->n_tokens));
    FRIT_TRY(frit_kv_copy_positions(kv, &from->map, &to->map, (int32_t)from->n_done));
    return copy_states(to, from);
}

static frit_status copy_scales(frit_session *to, const frit_session *from)
{
    const size_t n = (size_t)from->engine->adapters.n;
    if (!from->scales) return FRIT_OK;
    to->scales = calloc(n + 1, sizeof *to->scales);
    if (!to->scales) return frit_fail_memory(n * sizeof *to->scales, "a session's adapters");
    memcpy(to->scales, from->scales, n * sizeof *to->scales);
    return FRIT_OK;
}

static frit_status copy_session(frit_session *to, const frit_session *from)
{
    FRIT_TRY(copy_scales(to, from));
    if (from->note) FRIT_TRY(frit_session_set_note(to, from->note, from->n_note_bytes));
    FRIT_TRY(copy_cache(to, from));
    memcpy(to->tokens, from->tokens, from->n_tokens * sizeof *to->tokens);
    memcpy(to->logits, from->logits, (size_t)from->engine->hp.n_vocab * sizeof *to->logits);
    to->n_tokens = from->n_tokens;
    to->n_done = from->n_done;
    to->n_handed = from->n_handed;
    to->logits_at = from->logits_at;
    to->wants_logits = from->wants_logits;
    to->copy_at = from->copy_at;
    return FRIT_OK;
}

frit_status frit_session_fork(frit_session **out, const frit_session *session)
{
    frit_session *copy;
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(session);
    FRIT_TRY(frit_session_settle(session));
    FRIT_TRY(frit_session_status(session));
    FRIT_TRY(frit_session_check_known(session));
    FRIT_TRY(frit_session_new(&copy, session->engine));
    frit_status status = copy_session(copy, session);
    if (status != FRIT_OK) {
        frit_session_free(copy);
        return status;
    }
    *out = copy;
    return FRIT_OK;
}

// SPDX-License-Identifier: MIT
// Tokens that sessions have picked by their steps: requesting picks, and taking results (pick.h).
#include "engine/engine.h"
#include "engine/sched/late.h"
#include "engine/spec/speculate.h"

#include "base/time.h"

#include <stdlib.h>

// ------------------------------------------------------------------------------- requests

frit_pick_request *frit_session_find_pick(const frit_session *session, size_t i)
{
    for (int32_t k = 0; k < session->pick.n; k++) {
        const frit_pick_request *request = &session->pick.requests[k];
        if (i - request->at < (size_t)request->n)
            return (frit_pick_request *)(uintptr_t)request;   // wraps around for tokens before the request
    }
    return NULL;
}

bool frit_session_knows(const frit_session *session, size_t n)
{
    for (size_t i = n > FRIT_MAX_PICK_REQUESTS ? n - FRIT_MAX_PICK_REQUESTS : 0; i < n; i++)
        if (session->tokens[i] < 0) return false;
    return true;
}

frit_status frit_session_check_known(const frit_session *session)
{
    if (frit_session_knows(session, session->n_tokens)) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID,
                     "the session's last token is not known yet: the step that picks it must run first");
}

void frit_session_clear_picks(frit_session *session)
{
    session->pick.n = 0;
}

void frit_session_free_picks(frit_session *session)
{
    for (int32_t k = 0; k < FRIT_MAX_PICK_REQUESTS; k++) {
        free(session->pick.requests[k].picks);
        free(session->pick.requests[k].picked);
        frit_pick_lists_free(&session->pick.requests[k].lists);
    }
}

// The oldest request becomes the last: its results stay valid until the next request.
static void drop_oldest(frit_session *session)
{
    const frit_pick_request oldest = session->pick.requests[0];
    for (int32_t k = 1; k < FRIT_MAX_PICK_REQUESTS; k++) session->pick.requests[k - 1] = session->pick.requests[k];
    session->pick.requests[FRIT_MAX_PICK_REQUESTS - 1] = oldest;
    session->pick.n--;
}

// ------------------------------------------------------------------------------- requesting

static frit_status check_request(const frit_session *session, const frit_sampler *sampler,
                                 const frit_pick_options *options)
{
    const int32_t n_vocab = session->engine->hp.n_vocab,
                  most = n_vocab < FRIT_PICK_MAX_TOP ? n_vocab : FRIT_PICK_MAX_TOP;
    const size_t n_drafts = options->n_drafts;
    if (session->engine->model->arch->is_encoder)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: an encoder has no logits to pick from",
                              session->engine->model->info.path);
    if (!sampler->is_pick)
        return frit_fail(FRIT_E_UNSUPPORTED, "the sampler has stages of the caller's own, or in another order than the "
                                             "default: devices do not run it");
    if (sampler->n_vocab != n_vocab)
        return frit_fail(FRIT_E_INVALID, "the sampler is for %d tokens, the model has %d", sampler->n_vocab, n_vocab);
    // The sampler must have accepted all tokens before a mask.
    const bool is_known = !frit_late_is_needed(session, sampler) || (options->late && frit_late_is_possible(session));
    if (sampler->constraint && !is_known)
        return frit_fail(FRIT_E_UNSUPPORTED, "the sampler has a grammar: it picks after known tokens");
    if (sampler->forced_left.len > 0 && !is_known)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "the sampler forces the beginning of the text: it picks after known tokens");
    if (options->n_top < 0 || options->n_top > most)
        return frit_fail(FRIT_E_INVALID, "the %d likeliest tokens are asked for; expected 0 to %d", options->n_top,
                         most);
    if (n_drafts > FRIT_MAX_DRAFTS)
        return frit_fail(FRIT_E_INVALID, "%zu drafts are to be verified; expected 0 to %d", n_drafts, FRIT_MAX_DRAFTS);
    if (session->n_tokens - session->n_done < n_drafts + 1)
        return frit_fail(FRIT_E_INVALID,
                         "the token to pick after, and %zu drafts, must be queued: %zu of %zu tokens are", n_drafts,
                         session->n_tokens - session->n_done, session->n_tokens);
    for (size_t i = session->n_tokens - n_drafts - 1; i < session->n_tokens; i++) {
        if (frit_session_result(session, i) == FRIT_RESULT_HIDDEN)
            return frit_fail(FRIT_E_INVALID,
                             "the push of token %zu asked for hidden states: there is nothing to pick from", i);
        if (frit_session_find_pick(session, i))
            return frit_fail(FRIT_E_INVALID, "what follows token %zu is asked for already", i);
        if (i > session->n_tokens - n_drafts - 1 && session->tokens[i] < 0)
            return frit_fail(FRIT_E_INVALID, "token %zu is no draft: it is not known yet", i);
    }
    if (session->pick.n == FRIT_MAX_PICK_REQUESTS)
        return frit_fail(FRIT_E_LIMIT, "%d picks of the session wait already: frit_session_picked takes them",
                         FRIT_MAX_PICK_REQUESTS);
    return FRIT_OK;
}

frit_status frit_pick_request_reserve(frit_pick_request *request, int32_t n, int32_t n_tops)
{
    if (n > request->capacity) {
        frit_pick *picks = realloc(request->picks, (size_t)n * sizeof *picks);
        if (picks) request->picks = picks;
        frit_picked_token *picked = picks ? realloc(request->picked, (size_t)n * sizeof *picked) : NULL;
        if (!picked) return frit_fail_memory((size_t)n * (sizeof *picks + sizeof *picked), "picks");
        request->picked = picked;
        request->capacity = n;
    }
    return frit_pick_lists_reserve(&request->lists, &(frit_pick_room){.n_drafts = n - 1, .n_tops = n_tops});
}

static frit_status add_pick(frit_pick_request *request, int32_t k, frit_sampler *sampler,
                            const frit_pick_options *options)
{
    frit_pick *pick = &request->picks[k];
    frit_sampler_set_position(sampler, request->position + (uint64_t)k);
    FRIT_TRY(frit_sampler_add_pick(sampler, &request->lists, pick));
    if (!options->logprobs) return FRIT_OK;
    pick->n_top = options->n_top;
    pick->first_top = request->lists.n_tops;
    request->lists.n_tops += options->n_top;
    return FRIT_OK;
}

// Counts the token of the previous request for the penalties, if it is queued and not yet accepted. Returns the number
// of counted tokens.
static int32_t count_queued(const frit_session *session, frit_sampler *sampler, frit_sampler_mark *mark)
{
    if (session->pick.n == 0 || !session->pick.requests[session->pick.n - 1].is_pushed) return 0;
    const frit_token token = session->tokens[session->pick.requests[session->pick.n - 1].at + 1];
    frit_sampler_try_count(sampler, token, mark);
    return 1;
}

// Adds a pick for each position, as if the drafts before it had been accepted. Picks after a draft that does not fit
// the grammar are never used, because no pick gives that draft.
static frit_status add_picks(const frit_session *session, frit_pick_request *request, frit_sampler *sampler,
                             const frit_pick_options *options)
{
    frit_sampler_mark marks[FRIT_MAX_DRAFTS + 1];
    const uint64_t position = sampler->position;
    int32_t n_tried = count_queued(session, sampler, &marks[0]);
    bool fits = true;
    frit_status status = add_pick(request, 0, sampler, options);
    for (int32_t k = 1; status == FRIT_OK && k < request->n; k++) {
        fits = fits && frit_sampler_try(sampler, request->lists.drafts[k - 1], &marks[n_tried]);
        n_tried += fits;
        status = add_pick(request, k, sampler, options);
    }
    while (n_tried-- > 0) frit_sampler_go_back(sampler, &marks[n_tried]);
    sampler->position = position;
    return status;
}

frit_status frit_session_pick(frit_session *session, frit_sampler *sampler, const frit_pick_options *options)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(sampler);
    FRIT_REQUIRE_UNUSED(options);
    const frit_pick_options chosen = options ? *options : (frit_pick_options){0};
    FRIT_TRY(frit_session_check_usable(session));
    FRIT_TRY(frit_session_status(session));
    FRIT_TRY(check_request(session, sampler, &chosen));
    frit_pick_request *request = &session->pick.requests[session->pick.n];
    const int32_t n_drafts = (int32_t)chosen.n_drafts;
    frit_pick_lists_clear(&request->lists);
    FRIT_TRY(frit_pick_request_reserve(request, n_drafts + 1, (n_drafts + 1) * chosen.n_top));
    request->at = session->n_tokens - chosen.n_drafts - 1;
    request->position = session->shift.n_dropped + request->at + 1;
    request->n = n_drafts + 1;
    request->n_submitted = request->n_run = 0;
    request->is_pushed = false;
    request->late = frit_late_is_needed(session, sampler) ? FRIT_PICK_OPEN : FRIT_PICK_ON_TIME;
    request->options = chosen;
    request->row = -1;
    request->lists.n_vocab = session->engine->hp.n_vocab;
    request->lists.n_drafts = n_drafts;
    if (n_drafts > 0)
        memcpy(request->lists.drafts, session->tokens + request->at + 1,
               chosen.n_drafts * sizeof *request->lists.drafts);
    const uint64_t start = sampler->constraint ? frit_time_ns() : 0;
    if (request->late == FRIT_PICK_ON_TIME) FRIT_TRY(add_picks(session, request, sampler, &chosen));
    if (sampler->constraint) frit_speculation_measure_masks(session, n_drafts, (double)(frit_time_ns() - start));
    request->picks[0].n_drafts = n_drafts;
    session->pick.n++;
    return FRIT_OK;
}

frit_status frit_session_complete_pick(frit_session *session, frit_sampler *sampler)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(sampler);
    FRIT_TRY(frit_session_check_usable(session));
    FRIT_TRY(frit_session_status(session));
    frit_pick_request *request = session->pick.n > 0 ? &session->pick.requests[session->pick.n - 1] : NULL;
    if (!request || (request->late != FRIT_PICK_OPEN && request->late != FRIT_PICK_LOST)) return FRIT_OK;
    if (session->pick.n > 1)
        return frit_fail(FRIT_E_INVALID, "a late pick is made when frit_session_picked has given the token before it");
    if (!sampler->is_pick || sampler->n_vocab != session->engine->hp.n_vocab)
        return frit_fail(FRIT_E_INVALID, "a late pick must be made of the sampler that requested it");
    frit_pick_lists_clear(&request->lists);
    const frit_status status = add_picks(session, request, sampler, &request->options);
    if (status != FRIT_OK) {
        frit_session_fail(session, status);   // its token cannot come
        return status;
    }
    return frit_late_made(session, request);
}

frit_status frit_session_push_picked(frit_session *session)
{
    FRIT_REQUIRE(session);
    FRIT_TRY(frit_session_check_usable(session));
    FRIT_TRY(frit_session_status(session));
    if (session->shift.on) FRIT_TRY(frit_session_make_room(session, 1));   // the token may be known afterwards
    frit_pick_request *request = session->n_tokens > 0 ? frit_session_find_pick(session, session->n_tokens - 1) : NULL;
    if (!request) return frit_fail(FRIT_E_INVALID, "no token was asked for after the session's last one");
    if (request->n > 1)
        return frit_fail(FRIT_E_INVALID, "the last pick verifies drafts: what follows them is not known yet");
    if (session->engine->hp.is_bidirectional)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: every token sees all others, so none can run before it is known",
                              session->engine->model->info.path);
    if (request->late == FRIT_PICK_OPEN || request->late == FRIT_PICK_LOST)
        return frit_fail(FRIT_E_INVALID, "the last pick is late: frit_session_complete_pick comes first");
    const bool is_known = request->n_run == request->n;
    if (is_known) FRIT_TRY(frit_pick_check(request->picked[0].status));
    const frit_token token = is_known ? request->picked[0].token : 0;
    FRIT_TRY(frit_session_push(session, &token, 1, NULL));
    if (!is_known) session->tokens[session->n_tokens - 1] = -1;
    request->is_pushed = true;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- results

// Sets the token that the request after `request` counts.
static void resolve_counts(const frit_session *session, const frit_pick_request *request, frit_token token)
{
    const frit_pick_request *next = request + 1;
    if (next == session->pick.requests + session->pick.n || next->late == FRIT_PICK_OPEN) return;
    for (int32_t k = 0; k < next->n; k++) frit_pick_resolve(&next->lists, &next->picks[k], token);
}

void frit_session_store_pick(frit_session *session, size_t i, const frit_picked_token *picked, const frit_logprob *tops)
{
    frit_pick_request *request = frit_session_find_pick(session, i);
    if (!request) return;
    const frit_pick *pick = &request->picks[i - request->at];
    request->picked[i - request->at] = *picked;
    request->n_run++;
    if (pick->n_top > 0) memcpy(request->lists.tops + pick->first_top, tops, (size_t)pick->n_top * sizeof *tops);
    if (i + 1 >= session->n_tokens || session->tokens[i + 1] >= 0) return;
    const frit_status status = frit_pick_check(picked->status);
    session->tokens[i + 1] = status == FRIT_OK ? picked->token : 0;
    resolve_counts(session, request, session->tokens[i + 1]);
    if (status != FRIT_OK) frit_session_fail(session, status);   // a step may run without the token
}

bool frit_session_has_picked(const frit_session *session)
{
    FRIT_REQUIRE_OR(false, session);
    return session->pick.n > 0 && session->pick.requests[0].n_run == session->pick.requests[0].n;
}

// Drops rejected drafts. A recurrent state may go back further: the tokens in between wait to run again without
// results, as forced tokens do.
static frit_status drop_rejected(frit_session *session, size_t n_keep)
{
    FRIT_TRY(frit_session_truncate(session, n_keep));
    const size_t n_waiting = session->n_tokens - session->n_done;
    const size_t prefill = (size_t)session->engine->rows.least[FRIT_ROWS_PREFILL];
    const bool are_decode = n_waiting + 1 < prefill && n_waiting <= FRIT_MAX_DRAFTS;
    session->pick.n_forced = are_decode ? (int32_t)n_waiting : 0;
    return FRIT_OK;
}

frit_status frit_session_picked(frit_session *session, frit_picked *picked)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(picked);
    *picked = (frit_picked){0};
    FRIT_TRY(frit_session_check_usable(session));
    FRIT_TRY(frit_session_status(session));
    frit_pick_request *request = &session->pick.requests[0];
    if (session->pick.n == 0)
        return frit_fail(FRIT_E_INVALID, "no pick of the session waits: frit_session_pick asks for one");
    if (request->n_run < request->n)
        return frit_fail(FRIT_E_INVALID, "the token has not been picked yet: %d of %d rows have run", request->n_run,
                         request->n);
    frit_pick_verify(request->picks, request->n, &request->lists, request->picked);
    const frit_picked_token *result = &request->picked[0];
    const frit_pick *pick = &request->picks[result->n_accepted];
    const size_t n_keep = request->at + 1 + (size_t)result->n_accepted;
    const bool all = result->n_accepted == request->n - 1;
    const frit_picked given = {.token = result->token,
                               .n_accepted = result->n_accepted,
                               .logprob = result->logprob,
                               .top = pick->n_top > 0 ? request->lists.tops + pick->first_top : NULL,
                               .n_top = (size_t)pick->n_top};
    const frit_pick_status status = result->status;
    frit_speculation_count(session, request->n - 1, result->n_accepted);
    drop_oldest(session);
    if (all) frit_kv_drop_draft_snapshot(&session->engine->kv, &session->map);
    if (!all && n_keep < session->n_tokens) FRIT_TRY(drop_rejected(session, n_keep));
    FRIT_TRY(frit_pick_check(status));
    *picked = given;
    return FRIT_OK;
}

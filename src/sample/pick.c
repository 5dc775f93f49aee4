// SPDX-License-Identifier: MIT
// Picks of samplers, and the lists that picks share.
#include "base/grow.h"
#include "sample/pick.h"
#include "sample/sampler.h"
#include "sample/weight.h"

#include <stdlib.h>

// ------------------------------------------------------------------------------- lists

#define RESERVE(field, n) FRIT_TRY(FRIT_GROW(lists->field, lists->field##_capacity, n, "lists of picks"))

frit_status frit_pick_lists_reserve(frit_pick_lists *lists, const frit_pick_room *room)
{
    if (!(room->n_biases | room->n_counts | room->n_masks | room->n_drafts | room->n_tops)) return FRIT_OK;
    const int64_t n_words = (lists->n_masks + (int64_t)room->n_masks) * frit_pick_mask_words(lists->n_vocab);
    if (n_words > INT32_MAX) return frit_fail_memory((size_t)n_words * sizeof *lists->masks, "masks of picks");
    RESERVE(biases, lists->n_biases + room->n_biases);
    RESERVE(counts, lists->n_counts + room->n_counts);
    RESERVE(masks, n_words);
    RESERVE(drafts, lists->n_drafts + room->n_drafts);
    RESERVE(tops, lists->n_tops + room->n_tops);
    RESERVE(saved, lists->biases_capacity + lists->counts_capacity);
    return FRIT_OK;
}

void frit_pick_lists_clear(frit_pick_lists *lists)
{
    lists->n_biases = lists->n_counts = lists->n_masks = lists->n_drafts = lists->n_tops = 0;
}

void frit_pick_lists_free(frit_pick_lists *lists)
{
    free(lists->biases);
    free(lists->counts);
    free(lists->masks);
    free(lists->drafts);
    free(lists->tops);
    free(lists->saved);
    *lists = (frit_pick_lists){0};
}

static void append_entry(void *to, int32_t *n_to, const void *from, int32_t *first, int32_t n, size_t size)
{
    if (n > 0) memcpy((char *)to + (size_t)*n_to * size, (const char *)from + (size_t)*first * size, (size_t)n * size);
    *first = *n_to;
    *n_to += n;
}

frit_pick frit_pick_append(frit_pick_lists *to, const frit_pick_lists *from, const frit_pick *pick)
{
    frit_pick copy = *pick;
    const size_t mask_bytes = (size_t)frit_pick_mask_words(to->n_vocab) * sizeof *to->masks;
    append_entry(to->biases, &to->n_biases, from->biases, &copy.first_bias, pick->n_biases, sizeof *to->biases);
    append_entry(to->counts, &to->n_counts, from->counts, &copy.first_count, pick->n_counts, sizeof *to->counts);
    if (pick->mask >= 0) append_entry(to->masks, &to->n_masks, from->masks, &copy.mask, 1, mask_bytes);
    if (pick->first_top >= 0) copy.first_top = to->n_tops;
    to->n_tops += pick->n_top;
    copy.first_draft = copy.n_drafts = 0;
    return copy;
}

void frit_pick_resolve(const frit_pick_lists *lists, const frit_pick *pick, frit_token token)
{
    frit_pick_count *unknown = frit_pick_unknown(lists, pick);
    if (!unknown) return;
    *unknown = (frit_pick_count){token, 1};
    for (frit_pick_count *c = lists->counts + pick->first_count; c < unknown; c++) {
        if (c->token != token) continue;
        c->count += c->count > 0;
        unknown->count = 0;
    }
}

// ------------------------------------------------------------------------------- results

frit_status frit_pick_check(frit_pick_status status)
{
    if (status == FRIT_PICK_NOT_FINITE)
        return frit_fail(FRIT_E_INVALID, "logits are not finite: there is a NaN or +inf among them");
    if (status == FRIT_PICK_EMPTY)
        return frit_fail_at(FRIT_E_INVALID, NULL, FRIT_CODE_NO_TOKEN_LEFT, "no token is left: all logits are -inf");
    return FRIT_OK;
}

void frit_pick_verify(const frit_pick *picks, int32_t n_picks, const frit_pick_lists *lists, frit_picked_token *picked)
{
    for (int32_t i = 0; i < n_picks; i++) {
        const frit_token *drafts = lists->drafts + picks[i].first_draft;
        int32_t n = 0;
        while (n < picks[i].n_drafts && picked[i + n].status == FRIT_PICK_DONE && picked[i + n].token == drafts[n]) n++;
        if (picks[i].n_drafts > 0) picked[i] = picked[i + n];
        picked[i].n_accepted = n;
    }
}

// ------------------------------------------------------------------------------- of samplers

static void add_biases(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    pick->first_bias = lists->n_biases;
    pick->n_biases = sampler->n_biases;
    memcpy(lists->biases + lists->n_biases, sampler->biases, (size_t)sampler->n_biases * sizeof *sampler->biases);
    lists->n_biases += sampler->n_biases;
}

// The most counts of a pick: distinct tokens within the window, and what add_unknown adds.
static int32_t most_counts(const frit_sampler *sampler)
{
    int32_t n = sampler->n_unknown > 0 ? sampler->n_uncounted + 1 : 0;
    if (sampler->history)
        return n + (sampler->history_capacity < sampler->n_vocab ? sampler->history_capacity : sampler->n_vocab);
    for (int32_t t = 0; t < sampler->n_vocab; t++) n += sampler->counts[t] > 0;
    return n;
}

static bool is_first(const frit_sampler *sampler, int32_t i)
{
    if (sampler->history[i] < 0) return false;
    for (int32_t k = 0; k < i; k++)
        if (sampler->history[k] == sampler->history[i]) return false;
    return true;
}

// Adds a count of the token that is not known yet. It may be one that the penalties do not count, so these have a count
// of 0.
static frit_pick_count *add_unknown(const frit_sampler *sampler, frit_pick_count *at)
{
    for (int32_t i = 0; i < sampler->n_uncounted; i++) *at++ = (frit_pick_count){sampler->uncounted[i], 0};
    *at++ = (frit_pick_count){~0, 1};
    return at;
}

static void add_counts(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    const frit_sampler_options *options = &sampler->options;
    enum { FEW = 256 };   // a history up to this length is compared with itself
    const bool is_short = sampler->history && sampler->n_history <= FEW;
    frit_pick_count *at = lists->counts + lists->n_counts;
    pick->repeat = frit_penalties_factor(options);
    pick->frequency = options->frequency_penalty;
    pick->presence = options->presence_penalty;
    pick->first_count = lists->n_counts;
    for (int32_t i = 0; is_short && i < sampler->n_history; i++)
        if (is_first(sampler, i) && sampler->counts[sampler->history[i]] > 0)
            *at++ = (frit_pick_count){sampler->history[i], sampler->counts[sampler->history[i]]};
    for (int32_t t = 0; !is_short && t < sampler->n_vocab; t++)
        if (sampler->counts[t] > 0) *at++ = (frit_pick_count){t, sampler->counts[t]};
    if (sampler->n_unknown > 0) at = add_unknown(sampler, at);
    pick->n_counts = (int32_t)(at - lists->counts) - pick->first_count;
    lists->n_counts += pick->n_counts;
}

static void add_top_n_sigma(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    (void)lists;
    pick->top_n_sigma = frit_stage_number(&sampler->options, top_n_sigma);
}

static void add_top_k(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    (void)lists;
    pick->top_k = sampler->options.top_k;
}

static void add_top_p(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    (void)lists;
    pick->top_p = sampler->options.top_p;
}

static void add_min_p(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    (void)lists;
    pick->min_p = sampler->options.min_p;
}

static void add_temperature(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    (void)lists;
    pick->temp = sampler->options.temp;
}

// The stages of picks, in order.
static const struct {
    void (*apply)(frit_sampler *sampler, frit_candidates *candidates);
    void (*add)(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick);
} parts[] = {
    {frit_logit_bias_apply, add_biases},
    {frit_penalties_apply, add_counts},
    {frit_top_n_sigma_apply, add_top_n_sigma},
    {frit_top_k_apply, add_top_k},
    {frit_top_p_apply, add_top_p},
    {frit_min_p_apply, add_min_p},
    {frit_temperature_apply, add_temperature},
};

bool frit_sampler_is_pick(const frit_sampler *sampler)
{
    int n = 0;
    if (frit_temperature_is_dynamic(&sampler->options)) return false;
    for (size_t i = 0; i < FRIT_COUNT(parts); i++)
        if (n < sampler->n_stages && sampler->stages[n]->apply == parts[i].apply) n++;
    return n == sampler->n_stages;
}

static void add_forced_mask(const frit_sampler *sampler, uint32_t *mask)
{
    memset(mask, 0, (size_t)frit_pick_mask_words(sampler->n_vocab) * sizeof *mask);
    for (int32_t t = 0; t < sampler->n_vocab; t++)
        if (frit_forced_fits(sampler->forced_left, sampler->forced_pieces[t])) mask[t / 32] |= 1u << (t % 32);
}

// Adds the mask of a forced prefix or a grammar; a sampler has at most one of them.
static frit_status add_mask(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    const size_t n_words = (size_t)frit_pick_mask_words(sampler->n_vocab);
    uint32_t *mask = lists->masks + (size_t)lists->n_masks * n_words;
    const uint32_t *allowed;
    if (sampler->constraint) {
        FRIT_TRY(frit_constraint_mask(sampler->constraint, &allowed));
        memcpy(mask, allowed, n_words * sizeof *mask);
    } else {
        add_forced_mask(sampler, mask);
    }
    pick->mask = lists->n_masks++;
    return FRIT_OK;
}

frit_status frit_sampler_add_pick(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick)
{
    const bool has_mask = sampler->forced_left.len > 0 || sampler->constraint;
    const bool has_counts = frit_penalties_is_on(&sampler->options);
    const frit_pick_room room = {
        .n_biases = sampler->n_biases, .n_counts = has_counts ? most_counts(sampler) : 0, .n_masks = has_mask ? 1 : 0};
    FRIT_TRY(frit_pick_lists_reserve(lists, &room));
    *pick = (frit_pick){.temp = sampler->options.temp > 0 ? 1 : 0,
                        .mask = -1,
                        .first_top = -1,
                        .seed = sampler->options.seed,
                        .position = sampler->position};
    size_t k = 0;   // both have the order of frit_sampler_is_pick
    for (int i = 0; i < sampler->n_stages; i++, k++) {
        while (k < FRIT_COUNT(parts) && sampler->stages[i]->apply != parts[k].apply) k++;
        if (k < FRIT_COUNT(parts)) parts[k].add(sampler, lists, pick);
    }
    return has_mask ? add_mask(sampler, lists, pick) : FRIT_OK;
}

bool frit_sampler_has_counts(const frit_sampler *sampler, const frit_pick_lists *lists, const frit_pick *pick,
                             int32_t n)
{
    for (int32_t i = pick->first_count; i < pick->first_count + pick->n_counts; i++) {
        const frit_pick_count *c = &lists->counts[i];
        if (c->count == 0) continue;
        if (c->token < 0 || sampler->counts[c->token] != c->count) return false;
        n--;
    }
    return n == 0;
}

// ------------------------------------------------------------------------------- drafts

static frit_sampler_mark mark_of(const frit_sampler *sampler, frit_token token)
{
    return (frit_sampler_mark){.token = token,
                               .forgotten = sampler->history ? sampler->history[sampler->history_at] : -1,
                               .n_history = sampler->n_history,
                               .history_at = sampler->history_at,
                               .position = sampler->position,
                               .forced_left = sampler->forced_left};
}

bool frit_sampler_try(frit_sampler *sampler, frit_token token, frit_sampler_mark *before)
{
    *before = mark_of(sampler, token);
    before->is_accepted = true;
    return frit_sampler_accept(sampler, token) == FRIT_OK;
}

void frit_sampler_try_count(frit_sampler *sampler, frit_token token, frit_sampler_mark *before)
{
    *before = mark_of(sampler, token);
    frit_sampler_remember(sampler, token);
}

void frit_sampler_go_back(frit_sampler *sampler, const frit_sampler_mark *before)
{
    if (before->is_accepted && sampler->constraint) frit_constraint_undo(sampler->constraint);
    const bool was_full = sampler->history && before->n_history == sampler->history_capacity;
    frit_sampler_count(sampler, before->token, -1);
    if (sampler->history) sampler->history[before->history_at] = before->forgotten;
    if (was_full) frit_sampler_count(sampler, before->forgotten, 1);
    sampler->n_history = before->n_history;
    sampler->history_at = before->history_at;
    sampler->position = before->position;
    sampler->forced_left = before->forced_left;
}

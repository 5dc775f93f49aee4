// SPDX-License-Identifier: MIT
// Creates, resets and frees samplers, and draws at the end of the chain.
#include "sample/sampler.h"
#include "base/option.h"
#include "base/philox.h"
#include "text/vocab/vocab.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_WINDOW = 64 };

// ------------------------------------------------------------------------------- making

// Parses "ID=BIAS" or "ID=-inf".
static frit_status parse_bias(const char *text, int32_t n_vocab, frit_candidate *bias)
{
    char *end = NULL;
    long long id = strtoll(text, &end, 10);
    if (end == text || *end != '=')
        return frit_fail_at(FRIT_E_INVALID, "logit-bias", FRIT_CODE_INVALID_VALUE,
                            "'%.64s', expected ID=BIAS, as in 15=-1.5 or 15=-inf", text);
    if (id < 0 || id >= n_vocab)
        return frit_fail_at(FRIT_E_INVALID, "logit-bias", FRIT_CODE_INVALID_VALUE,
                            "'%.64s': token ids of this model are 0 to %d", text, n_vocab - 1);
    bias->token = (frit_token)id;
    bias->logit = -INFINITY;
    if (strcmp(end + 1, "-inf") == 0) return FRIT_OK;
    const frit_option row = {.name = "logit-bias", .type = FRIT_OPTION_FLOAT, .min = -1e6, .max = 1e6};
    return frit_option_set(&row, &bias->logit, end + 1);
}

static frit_status parse_biases(frit_sampler *sampler, const frit_option_list *list)
{
    if (list->n == 0) return FRIT_OK;
    if (list->n > INT32_MAX / 2)
        return frit_fail_at(FRIT_E_LIMIT, "logit-bias", FRIT_CODE_INVALID_VALUE, "%zu items are too many", list->n);
    sampler->biases = calloc(list->n, sizeof *sampler->biases);
    if (!sampler->biases) return frit_fail_memory(list->n * sizeof *sampler->biases, "logit biases");
    for (size_t i = 0; i < list->n; i++) {
        FRIT_TRY(parse_bias(list->items[i], sampler->n_vocab, &sampler->biases[i]));
        sampler->n_biases++;
    }
    return FRIT_OK;
}

// Checks the options against the ranges of their rows.
static frit_status check_ranges(const frit_sampler_options *options)
{
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    return frit_options_check(rows, n_rows, options);
}

static frit_status allocate(frit_sampler *sampler)
{
    size_t n = (size_t)sampler->n_vocab;
    int32_t window = sampler->options.repeat_last_n;
    if (window >= 0) {
        sampler->history_capacity = window > 0 ? window : DEFAULT_WINDOW;
        sampler->history = calloc((size_t)sampler->history_capacity, sizeof *sampler->history);
    }
    sampler->candidates = calloc(n, sizeof *sampler->candidates);
    sampler->counts = calloc(n, sizeof *sampler->counts);
    if (sampler->candidates && sampler->counts && (window < 0 || sampler->history)) return FRIT_OK;
    return frit_fail_memory(n * (sizeof *sampler->candidates + sizeof *sampler->counts), "a sampler");
}

// Lists the tokens that the penalties do not count.
static frit_status list_uncounted(frit_sampler *sampler)
{
    const frit_sampler_texts *texts = &sampler->texts;
    if (!frit_stage_flag(&sampler->options, no_penalize_nl) || !texts->vocab) return FRIT_OK;
    for (frit_token t = 0; t < texts->vocab->n && t < sampler->n_vocab; t++) {
        if (!frit_str_is(texts->pieces[t], "\n")) continue;
        const size_t n_bytes = (size_t)(sampler->n_uncounted + 1) * sizeof(frit_token);
        frit_token *more = realloc(sampler->uncounted, n_bytes);
        if (!more) return frit_fail_memory(n_bytes, "a sampler");
        sampler->uncounted = more;
        sampler->uncounted[sampler->n_uncounted++] = t;
    }
    return FRIT_OK;
}

static bool learns_picks(const frit_sampler *sampler)
{
    return sampler->n_stages > 0 && sampler->stages[sampler->n_stages - 1]->learn;
}

// Allocates the state of stages.
static frit_status allocate_for_stages(frit_sampler *sampler)
{
    const size_t n = (size_t)sampler->n_vocab;
    FRIT_TRY(frit_dry_new(sampler));
    if (!learns_picks(sampler)) return FRIT_OK;
    sampler->probabilities = calloc(n, sizeof *sampler->probabilities);
    return sampler->probabilities ? FRIT_OK : frit_fail_memory(n * sizeof *sampler->probabilities, "a sampler");
}

frit_status frit_sampler_create(frit_sampler **out, int32_t n_vocab, const frit_sampler_options *options)
{
    return frit_sampler_create_with(out, n_vocab, NULL, options);
}

frit_status frit_sampler_create_with(frit_sampler **out, int32_t n_vocab, const frit_sampler_texts *texts,
                                     const frit_sampler_options *options)
{
    *out = NULL;
    if (n_vocab <= 0)
        return frit_fail(FRIT_E_INVALID, "a sampler needs a vocabulary, this model has %d tokens", n_vocab);
    frit_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler) return frit_fail_memory(sizeof *sampler, "a sampler");
    if (options) sampler->options = *options;
    if (texts) sampler->texts = *texts;
    sampler->n_vocab = n_vocab;
    frit_status status = check_ranges(&sampler->options);
    if (status == FRIT_OK) status = frit_sampler_order(sampler);
    if (status == FRIT_OK) status = parse_biases(sampler, &sampler->options.logit_bias);
    if (status == FRIT_OK) status = allocate(sampler);
    if (status == FRIT_OK) status = list_uncounted(sampler);
    if (status == FRIT_OK) status = allocate_for_stages(sampler);
    sampler->is_pick = frit_sampler_is_pick(sampler);
    sampler->lists.n_vocab = n_vocab;
    if (status == FRIT_OK && sampler->is_pick) status = frit_pick_runner_new(&sampler->run, 1, 1);
    if (status != FRIT_OK) {
        frit_sampler_free(sampler);
        return status;
    }
    sampler->options.samplers = sampler->options.sampler_seq = NULL;
    sampler->options.logit_bias = sampler->options.dry_breakers = (frit_option_list){0};
    frit_sampler_reset(sampler);
    *out = sampler;
    return FRIT_OK;
}

void frit_sampler_free(frit_sampler *sampler)
{
    if (!sampler) return;
    free(sampler->candidates);
    free(sampler->biases);
    free(sampler->history);
    free(sampler->counts);
    free(sampler->uncounted);
    free(sampler->forced_prefix);
    free(sampler->own_pieces);
    frit_constraint_free(sampler->constraint);
    free(sampler->probabilities);
    frit_dry_free(sampler->dry);
    frit_pick_runner_free(sampler->run);
    frit_pick_lists_free(&sampler->lists);
    free(sampler);
}

// ------------------------------------------------------------------------------- accepting

void frit_sampler_count(frit_sampler *sampler, frit_token token, int n)
{
    for (int32_t i = 0; i < sampler->n_uncounted; i++)
        if (sampler->uncounted[i] == token) return;
    if (token >= 0)
        sampler->counts[token] += (uint32_t)n;
    else
        sampler->n_unknown += n;
}

void frit_sampler_remember(frit_sampler *sampler, frit_token token)
{
    frit_sampler_count(sampler, token, 1);
    if (!sampler->history) return;
    frit_token *oldest = &sampler->history[sampler->history_at];
    if (sampler->n_history == sampler->history_capacity)
        frit_sampler_count(sampler, *oldest, -1);
    else
        sampler->n_history++;
    *oldest = token;
    sampler->history_at = (sampler->history_at + 1) % sampler->history_capacity;
}

static void learn_pick(frit_sampler *sampler, frit_token token)
{
    if (learns_picks(sampler) && token == sampler->sampled)
        sampler->stages[sampler->n_stages - 1]->learn(sampler, sampler->probabilities[token]);
    sampler->sampled = -1;
}

frit_status frit_sampler_accept(frit_sampler *sampler, frit_token token)
{
    FRIT_REQUIRE(sampler);
    if (token < 0 || token >= sampler->n_vocab)
        return frit_fail(FRIT_E_INVALID, "token %d cannot be accepted: this model's ids are 0 to %d", token,
                         sampler->n_vocab - 1);
    if (sampler->constraint) FRIT_TRY(frit_constraint_accept(sampler->constraint, token));
    if (sampler->forced_left.len > 0) frit_forced_accept(sampler, token);
    FRIT_TRY(frit_dry_accept(sampler, token));
    learn_pick(sampler, token);
    sampler->position++;
    frit_sampler_remember(sampler, token);
    return FRIT_OK;
}

frit_status frit_sampler_reset(frit_sampler *sampler)
{
    FRIT_REQUIRE(sampler);
    memset(sampler->counts, 0, (size_t)sampler->n_vocab * sizeof *sampler->counts);
    sampler->n_history = sampler->history_at = 0;
    sampler->forced_left = (frit_str){"", 0};
    frit_constraint_free(sampler->constraint);
    sampler->constraint = NULL;
    sampler->position = 0;
    sampler->sampled = -1;
    sampler->learned = 0;
    frit_dry_reset(sampler->dry);
    return FRIT_OK;
}

frit_status frit_sampler_set_position(frit_sampler *sampler, uint64_t position)
{
    FRIT_REQUIRE(sampler);
    sampler->position = position;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- picking

// Copies the logits; false if one is NaN or +inf.
static bool fill(frit_candidates *candidates, const float *logits, int32_t n)
{
    bool good = true;
    for (int32_t i = 0; i < n; i++) {
        candidates->items[i] = (frit_candidate){i, logits[i]};
        good &= logits[i] < INFINITY;
    }
    candidates->n = n;
    candidates->sorted = false;
    return good;
}

// The largest logit, the lowest id among equals.
static frit_candidate likeliest(const frit_candidates *candidates)
{
    frit_candidate best = candidates->items[0];
    for (int32_t i = 1; i < candidates->n; i++) {
        frit_candidate c = candidates->items[i];
        if (c.logit > best.logit || (c.logit == best.logit && c.token < best.token)) best = c;
    }
    return best;
}

frit_status frit_sampler_run_chain(frit_sampler *sampler, const float *logits, frit_token *token)
{
    frit_candidates candidates = {.items = sampler->candidates};
    if (!fill(&candidates, logits, sampler->n_vocab)) return frit_pick_check(FRIT_PICK_NOT_FINITE);
    if (sampler->forced_left.len > 0) frit_forced_apply(sampler, &candidates);
    if (sampler->constraint) FRIT_TRY(frit_constraint_apply(sampler, &candidates));
    sampler->status = FRIT_OK;
    for (int i = 0; i < sampler->n_stages && sampler->status == FRIT_OK; i++)
        sampler->stages[i]->apply(sampler, &candidates);
    FRIT_TRY(sampler->status);
    const frit_candidate best = likeliest(&candidates);
    if (best.logit == -INFINITY) return frit_pick_check(FRIT_PICK_EMPTY);
    const uint64_t drawn = frit_philox_draw(sampler->options.seed, sampler->position);
    *token = sampler->options.temp > 0 ? frit_candidates_draw(&candidates, sampler->n_vocab, drawn) : best.token;
    sampler->sampled = *token;
    return FRIT_OK;
}

static frit_status run_pick(frit_sampler *sampler, const float *logits, frit_token *token)
{
    frit_pick pick;
    frit_picked_token picked;
    frit_pick_lists *lists = &sampler->lists;
    frit_pick_lists_clear(lists);
    FRIT_TRY(frit_sampler_add_pick(sampler, lists, &pick));
    float *row = (float *)logits;   // unchanged without biases and penalties
    if (pick.n_biases > 0 || pick.n_counts > 0) {
        row = (float *)(void *)sampler->candidates;   // large enough for a row
        memcpy(row, logits, (size_t)sampler->n_vocab * sizeof *row);
    }
    frit_pick_alone(sampler->run, &(frit_pick_job){row, &pick, 1, lists, &picked});
    FRIT_TRY(frit_pick_check(picked.status));
    *token = picked.token;
    return FRIT_OK;
}

frit_status frit_sampler_sample(frit_sampler *sampler, const float *logits, frit_token *token)
{
    FRIT_REQUIRE(sampler);
    FRIT_REQUIRE(logits);
    FRIT_REQUIRE(token);
    return sampler->is_pick ? run_pick(sampler, logits, token) : frit_sampler_run_chain(sampler, logits, token);
}

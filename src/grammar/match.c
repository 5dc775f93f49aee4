// SPDX-License-Identifier: MIT
// Frames, and a step: read a byte, return from calls that end, make calls.
#include "grammar/match.h"

#include "base/grow.h"

#include <stdlib.h>

static const char what[] = "the state of a grammar";

static frit_status fail_memory(void)
{
    return frit_fail_memory(sizeof(frit_item), what);
}

// ------------------------------------------------------------------------------------- frames

static uint32_t hash_entries(const frit_item *entries, int32_t n)
{
    uint64_t h = (uint64_t)n;
    for (int32_t i = 0; i < n; i++) {
        h = (h ^ ((uint64_t)(uint32_t)entries[i].state << 32 | (uint32_t)entries[i].frame)) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return (uint32_t)h;
}

static bool grow_frames(frit_frames *f)
{
    const int32_t room = f->room ? f->room * 2 : 64;
    frit_frame *frames = realloc(f->frames, (size_t)room * sizeof *frames);
    if (frames) f->frames = frames;
    int32_t *buckets = realloc(f->buckets, (size_t)room * 2 * sizeof *buckets);
    if (buckets) f->buckets = buckets;
    if (!frames || !buckets) return false;
    f->room = room;
    f->n_buckets = room * 2;
    memset(buckets, -1, (size_t)f->n_buckets * sizeof *buckets);
    for (int32_t i = 0; i < f->n; i++) {
        uint32_t at = hash_entries(f->entries + frames[i].first, frames[i].n) & (uint32_t)(f->n_buckets - 1);
        while (buckets[at] >= 0) at = (at + 1) & (uint32_t)(f->n_buckets - 1);
        buckets[at] = i;
    }
    return true;
}

// Returns the frame with these sorted entries.
static frit_status intern(frit_frames *f, const frit_item *entries, int32_t n, int32_t *out)
{
    if (f->n == f->room && !grow_frames(f)) return fail_memory();
    uint32_t at = hash_entries(entries, n) & (uint32_t)(f->n_buckets - 1);
    for (; f->buckets[at] >= 0; at = (at + 1) & (uint32_t)(f->n_buckets - 1)) {
        const frit_frame *frame = &f->frames[f->buckets[at]];
        *out = f->buckets[at];
        if (frame->n == n && memcmp(f->entries + frame->first, entries, (size_t)n * sizeof *entries) == 0)
            return FRIT_OK;
    }
    if (f->n >= FRIT_MATCH_FRAMES)
        return frit_fail(FRIT_E_LIMIT, "the text is inside of more than %d different calls of the grammar's rules",
                         FRIT_MATCH_FRAMES);
    FRIT_TRY(FRIT_GROW(f->entries, f->entries_capacity, f->n_entries + (uint32_t)n, what));
    memcpy(f->entries + f->n_entries, entries, (size_t)n * sizeof *entries);
    f->frames[f->n] = (frit_frame){f->n_entries, n};
    f->n_entries += (uint32_t)n;
    f->buckets[at] = f->n;
    *out = f->n++;
    return FRIT_OK;
}

frit_status frit_frames_init(frit_frames *f)
{
    *f = (frit_frames){0};
    int32_t at = 0;
    FRIT_TRY(intern(f, &(frit_item){FRIT_RETURN_END, 0}, 1, &at));
    return intern(f, &(frit_item){FRIT_RETURN_OUT, 0}, 1, &at);
}

void frit_frames_clear(frit_frames *f)
{
    f->n = 2;
    f->n_entries = 2;
    memset(f->buckets, -1, (size_t)f->n_buckets * sizeof *f->buckets);
    for (int32_t i = 0; i < f->n; i++) {
        uint32_t at = hash_entries(f->entries + f->frames[i].first, f->frames[i].n) & (uint32_t)(f->n_buckets - 1);
        while (f->buckets[at] >= 0) at = (at + 1) & (uint32_t)(f->n_buckets - 1);
        f->buckets[at] = i;
    }
}

void frit_frames_deinit(frit_frames *f)
{
    free(f->frames);
    free(f->entries);
    free(f->buckets);
    *f = (frit_frames){0};
}

void frit_config_free(frit_config *config)
{
    free(config->items);
    *config = (frit_config){0};
}

void frit_calls_free(frit_calls *calls)
{
    free(calls->items);
    free(calls->entries);
    *calls = (frit_calls){0};
}

// ------------------------------------------------------------------------------------- steps

typedef struct step {
    const frit_automaton *a;
    frit_frames *frames;
    frit_calls *calls;
    frit_config *out;
} step;

static frit_status fail_ambiguous(void)
{
    return frit_fail(FRIT_E_LIMIT, "the grammar is too ambiguous: the text may be in more than %d states",
                     FRIT_MATCH_ITEMS);
}

// Begins a config. The table of its items is emptied by counting up `round`.
static void begin(step *s)
{
    s->out->n = 0;
    s->out->final = s->out->out = false;
    s->calls->n = 0;
    s->calls->n_added = 0;
    s->calls->round++;
}

static frit_status add_item(step *s, frit_item item)
{
    frit_config *c = s->out;
    frit_calls *calls = s->calls;
    uint32_t at = hash_entries(&item, 1) % FRIT_MATCH_BUCKETS;
    if (++calls->n_added > FRIT_MATCH_WORK) return fail_ambiguous();
    for (; calls->buckets[at].round == calls->round; at = (at + 1) % FRIT_MATCH_BUCKETS) {
        const frit_item *known = &c->items[calls->buckets[at].item];
        if (known->state == item.state && known->frame == item.frame) return FRIT_OK;
    }
    if (c->n == FRIT_MATCH_ITEMS) return fail_ambiguous();
    FRIT_TRY(FRIT_GROW(c->items, c->capacity, c->n + 1, what));
    calls->buckets[at].round = calls->round;
    calls->buckets[at].item = c->n;
    c->items[c->n++] = item;
    return FRIT_OK;
}

// Adds the items that a frame returns to.
static frit_status add_returns(step *s, int32_t frame)
{
    const frit_frame f = s->frames->frames[frame];
    for (int32_t i = 0; i < f.n; i++) {
        const frit_item back = s->frames->entries[f.first + (uint32_t)i];
        if (back.state == FRIT_RETURN_END)
            s->out->final = true;
        else if (back.state == FRIT_RETURN_OUT)
            s->out->out = true;
        else
            FRIT_TRY(add_item(s, back));
    }
    return FRIT_OK;
}

static frit_status add_call(frit_calls *calls, int32_t rule, frit_item back)
{
    FRIT_TRY(FRIT_GROW(calls->items, calls->capacity, calls->n + 1, what));
    calls->items[calls->n++] = (struct frit_pending_call){rule, back};
    return FRIT_OK;
}

static frit_status add_calls(step *s, frit_item item)
{
    const frit_automaton_state *state = &s->a->states[item.state];
    for (int32_t i = 0; i < state->n_calls; i++) {
        const frit_call_edge *e = &s->a->calls[state->first_call + (uint32_t)i];
        FRIT_TRY(add_call(s->calls, e->rule, (frit_item){e->to, item.frame}));
    }
    return FRIT_OK;
}

static int compare_items(const void *a, const void *b)
{
    const frit_item *x = a, *y = b;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

// Makes the frame of all pending calls of a rule, and removes the calls. If a caller has nothing left to do, the call
// returns to the caller's own callers, so that lists written as recursions do not grow.
static frit_status make_frame(step *s, int32_t rule, int32_t *frame)
{
    frit_calls *calls = s->calls;
    int32_t n = 0, kept = 0;
    for (int32_t i = 0; i < calls->n; i++) {
        const struct frit_pending_call call = calls->items[i];
        if (call.rule != rule) {
            calls->items[kept++] = call;
            continue;
        }
        const bool tail = s->a->states[call.back.state].is_end;
        const frit_frame f = tail ? s->frames->frames[call.back.frame] : (frit_frame){0, 1};
        FRIT_TRY(FRIT_GROW(calls->entries, calls->entries_capacity, n + f.n, what));
        for (int32_t k = 0; k < f.n; k++)
            calls->entries[n++] = tail ? s->frames->entries[f.first + (uint32_t)k] : call.back;
    }
    calls->n = kept;
    int32_t distinct = 0;
    if (n > 1) qsort(calls->entries, (size_t)n, sizeof *calls->entries, compare_items);
    for (int32_t i = 0; i < n; i++)
        if (distinct == 0 || compare_items(&calls->entries[distinct - 1], &calls->entries[i]) != 0)
            calls->entries[distinct++] = calls->entries[i];
    return intern(s->frames, calls->entries, distinct, frame);
}

// Makes all calls. A rule is called when no pending rule can call it at its start.
static frit_status make_calls(step *s)
{
    frit_calls *calls = s->calls;
    while (calls->n > 0) {
        int32_t first = calls->items[0].rule;
        for (int32_t i = 1; i < calls->n; i++)
            if (s->a->rules[calls->items[i].rule].rank < s->a->rules[first].rank) first = calls->items[i].rule;
        int32_t frame = 0;
        FRIT_TRY(make_frame(s, first, &frame));
        const frit_item item = {s->a->rules[first].start, frame};
        FRIT_TRY(add_item(s, item));
        FRIT_TRY(add_calls(s, item));
    }
    return FRIT_OK;
}

// Completes a config after a byte: adds everything that follows from items[0 .. n). Items that read nothing are dropped
// at the end.
static frit_status finish(step *s)
{
    frit_config *c = s->out;
    for (int32_t i = 0; i < c->n; i++)
        if (s->a->states[c->items[i].state].final) FRIT_TRY(add_returns(s, c->items[i].frame));
    const int32_t n = c->n;
    for (int32_t i = 0; i < n; i++) FRIT_TRY(add_calls(s, c->items[i]));
    FRIT_TRY(make_calls(s));
    int32_t kept = 0;
    for (int32_t i = 0; i < c->n; i++)
        if (frit_state_reads(&s->a->states[c->items[i].state])) c->items[kept++] = c->items[i];
    c->n = kept;
    return FRIT_OK;
}

frit_status frit_config_start(const frit_automaton *a, frit_frames *frames, frit_calls *calls, frit_config *out)
{
    step s = {a, frames, calls, out};
    begin(&s);
    const frit_item item = {a->rules[a->root].start, FRIT_FRAME_ROOT};
    FRIT_TRY(add_item(&s, item));
    FRIT_TRY(add_calls(&s, item));
    FRIT_TRY(make_calls(&s));
    out->final = a->takes_nothing;
    return FRIT_OK;
}

frit_status frit_config_step(const frit_automaton *a, frit_frames *frames, frit_calls *calls, const frit_item *items,
                             int32_t n, unsigned char byte, frit_config *out)
{
    step s = {a, frames, calls, out};
    begin(&s);
    for (int32_t i = 0; i < n; i++) {
        const int32_t next = frit_state_next(a, items[i].state, byte);
        if (next >= 0) FRIT_TRY(add_item(&s, (frit_item){next, items[i].frame}));
    }
    return out->n > 0 ? finish(&s) : FRIT_OK;
}

// Adds the targets of a token that the grammar names.
static frit_status add_token(step *s, frit_item item, int32_t token)
{
    const frit_automaton_state *state = &s->a->states[item.state];
    for (int32_t i = 0; i < state->n_tokens; i++) {
        const frit_token_edge *e = &s->a->tokens[state->first_token + (uint32_t)i];
        if (token >= e->low && token <= e->high) FRIT_TRY(add_item(s, (frit_item){e->to, item.frame}));
    }
    return FRIT_OK;
}

frit_status frit_config_return(const frit_automaton *a, frit_frames *frames, frit_calls *calls, int32_t frame,
                               frit_config *out)
{
    step s = {a, frames, calls, out};
    begin(&s);
    FRIT_TRY(add_returns(&s, frame));
    return out->n > 0 ? finish(&s) : FRIT_OK;
}

// ------------------------------------------------------------------------------------- matches

frit_status frit_match_init(frit_match *match, const frit_automaton *automaton, int32_t max_marks)
{
    *match = (frit_match){.automaton = automaton, .max_marks = max_marks};
    frit_status status = frit_frames_init(&match->frames);
    if (status == FRIT_OK) status = frit_config_start(automaton, &match->frames, &match->calls, &match->now);
    if (status != FRIT_OK) frit_match_deinit(match);
    return status;
}

void frit_match_deinit(frit_match *match)
{
    frit_frames_deinit(&match->frames);
    frit_calls_free(&match->calls);
    frit_config_free(&match->now);
    frit_config_free(&match->next);
    frit_config_free(&match->saved);
    free(match->history);
    free(match->marks);
    *match = (frit_match){0};
}

frit_status frit_match_reset(frit_match *match)
{
    frit_frames_clear(&match->frames);
    match->n_history = 0;
    match->n_marks = 0;
    return frit_config_start(match->automaton, &match->frames, &match->calls, &match->now);
}

// Drops the older half of the marks.
static void drop_marks(frit_match *match)
{
    const int32_t half = match->n_marks / 2;
    const uint32_t first = match->marks[half].first;
    memmove(match->history, match->history + first, (match->n_history - first) * sizeof *match->history);
    memmove(match->marks, match->marks + half, (size_t)(match->n_marks - half) * sizeof *match->marks);
    match->n_marks -= half;
    match->n_history -= first;
    for (int32_t i = 0; i < match->n_marks; i++) match->marks[i].first -= first;
}

static frit_status mark(frit_match *match)
{
    if (match->max_marks == 0) return FRIT_OK;
    if (match->n_marks >= 2 * match->max_marks) drop_marks(match);
    FRIT_TRY(FRIT_GROW(match->marks, match->marks_capacity, match->n_marks + 1, what));
    const uint32_t n = (uint32_t)match->now.n;
    FRIT_TRY(FRIT_GROW(match->history, match->history_capacity, match->n_history + n, what));
    match->marks[match->n_marks++] = (struct frit_match_mark){match->n_history, match->now.n, match->now.final};
    if (n > 0) memcpy(match->history + match->n_history, match->now.items, n * sizeof *match->history);
    match->n_history += n;
    return FRIT_OK;
}

// Restores `now` from the last mark and removes the mark.
static frit_status restore(frit_match *match)
{
    const struct frit_match_mark m = match->marks[--match->n_marks];
    FRIT_TRY(FRIT_GROW(match->now.items, match->now.capacity, m.n, what));
    if (m.n > 0) memcpy(match->now.items, match->history + m.first, (size_t)m.n * sizeof *match->history);
    match->now.n = m.n;
    match->now.final = m.final;
    match->n_history = m.first;
    return FRIT_OK;
}

static frit_status copy_config(frit_config *to, const frit_config *from)
{
    FRIT_TRY(FRIT_GROW(to->items, to->capacity, from->n, what));
    if (from->n > 0) memcpy(to->items, from->items, (size_t)from->n * sizeof *to->items);
    to->n = from->n;
    to->final = from->final;
    return FRIT_OK;
}

static void swap(frit_config *a, frit_config *b)
{
    const frit_config c = *a;
    *a = *b;
    *b = c;
}

static frit_status step_on(frit_match *match, unsigned char byte)
{
    return frit_config_step(match->automaton, &match->frames, &match->calls, match->now.items, match->now.n, byte,
                            &match->next);
}

// Ends a token: makes the config from the config before its last byte and the one before its first. Both are stepped
// together, so that calls at one position of the text share their frame. byte -1: the text does not fit.
static frit_status step_token(frit_match *match, int byte, int32_t token)
{
    step s = {match->automaton, &match->frames, &match->calls, &match->next};
    begin(&s);
    for (int32_t i = 0; i < match->now.n && byte >= 0; i++) {
        const frit_item item = match->now.items[i];
        const int32_t next = frit_state_next(s.a, item.state, (unsigned char)byte);
        if (next >= 0) FRIT_TRY(add_item(&s, (frit_item){next, item.frame}));
    }
    for (int32_t i = 0; i < match->saved.n; i++) FRIT_TRY(add_token(&s, match->saved.items[i], token));
    return s.out->n > 0 ? finish(&s) : FRIT_OK;
}

static bool is_alive(const frit_config *config)
{
    return config->n > 0 || config->final;
}

// Steps over bytes until one does not fit.
static frit_status read_bytes(frit_match *match, const char *bytes, size_t n, size_t *n_read)
{
    for (*n_read = 0; *n_read < n; ++*n_read) {
        FRIT_TRY(step_on(match, (unsigned char)bytes[*n_read]));
        if (!is_alive(&match->next)) return FRIT_OK;
        swap(&match->now, &match->next);
    }
    return FRIT_OK;
}

static frit_status begin_push(frit_match *match)
{
    FRIT_TRY(copy_config(&match->saved, &match->now));
    return mark(match);
}

// Restores the match as it was before a push.
static void drop_push(frit_match *match)
{
    if (match->max_marks > 0) match->n_history = match->marks[--match->n_marks].first;
    swap(&match->now, &match->saved);
}

frit_status frit_match_push(frit_match *match, const char *bytes, size_t n, size_t *n_read)
{
    *n_read = 0;
    FRIT_TRY(begin_push(match));
    const frit_status status = read_bytes(match, bytes, n, n_read);
    if (status != FRIT_OK || *n_read < n) drop_push(match);
    return status;
}

frit_status frit_match_push_token(frit_match *match, int32_t token, frit_str text, bool *fits)
{
    size_t n_read = 0;
    *fits = false;
    FRIT_TRY(begin_push(match));
    const size_t before_last = text.len > 0 ? text.len - 1 : 0;
    frit_status status = read_bytes(match, text.ptr, before_last, &n_read);
    const bool has_last = text.len > 0 && n_read == before_last;
    if (status == FRIT_OK) status = step_token(match, has_last ? (unsigned char)text.ptr[before_last] : -1, token);
    *fits = status == FRIT_OK && is_alive(&match->next);
    if (*fits)
        swap(&match->now, &match->next);
    else
        drop_push(match);
    return status;
}

frit_status frit_match_pop(frit_match *match, int32_t n)
{
    if (n < 0 || n > match->n_marks)
        return frit_fail(FRIT_E_INVALID, "%d tokens are to be taken back from a grammar; expected 0 to %d", n,
                         match->n_marks);
    match->n_marks -= n > 0 ? n - 1 : 0;
    return n > 0 ? restore(match) : FRIT_OK;
}

bool frit_match_is_final(const frit_match *match)
{
    return match->now.final;
}

bool frit_match_is_over(const frit_match *match)
{
    return match->now.final && match->now.n == 0;
}

void frit_match_bytes(const frit_match *match, uint64_t bytes[4])
{
    memset(bytes, 0, 4 * sizeof *bytes);
    const frit_automaton *a = match->automaton;
    for (int32_t i = 0; i < match->now.n; i++) {
        const frit_automaton_state *s = &a->states[match->now.items[i].state];
        for (int k = 0; k < s->n_bytes; k++)
            for (int b = a->bytes[s->first_byte + (uint32_t)k].low; b <= a->bytes[s->first_byte + (uint32_t)k].high;
                 b++)
                bytes[b / 64] |= (uint64_t)1 << (b % 64);
    }
}

static bool may_name_token(const frit_match *match)
{
    bool found = false;
    for (int32_t i = 0; i < match->now.n; i++)
        found |= match->automaton->states[match->now.items[i].state].n_tokens > 0;
    return found;
}

// Returns the only byte of the set, or -1.
static int only_byte(const uint64_t bytes[4])
{
    int found = -1;
    for (int b = 0; b < 256; b++) {
        if (!(bytes[b / 64] >> (b % 64) & 1)) continue;
        if (found >= 0) return -1;
        found = b;
    }
    return found;
}

frit_status frit_match_forced(frit_match *match, size_t most, frit_buf *out)
{
    frit_status status = copy_config(&match->saved, &match->now);
    for (size_t i = 0; i < most && status == FRIT_OK && !match->now.final && !may_name_token(match); i++) {
        uint64_t bytes[4];
        frit_match_bytes(match, bytes);
        const int byte = only_byte(bytes);
        if (byte < 0) break;
        status = step_on(match, (unsigned char)byte);
        swap(&match->now, &match->next);
        if (status == FRIT_OK) frit_buf_char(out, (char)byte);
    }
    swap(&match->now, &match->saved);
    return status;
}

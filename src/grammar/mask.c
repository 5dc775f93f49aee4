// SPDX-License-Identifier: MIT
// Rows of tokens that can follow a state from a node of the trie on, and masks that are combined from rows.
#include "grammar/mask.h"

#include "base/grow.h"
#include "base/thread/thread.h"
#include "base/time.h"
#include "grammar/spans.h"
#include "grammar/token_lists.h"

#include <stdlib.h>

enum { TABLE_BYTES = 128 << 20, SCRATCH_FRAMES = 1 << 16, SCRATCH_ITEMS = 1 << 21, MASK_WORK = 1 << 20 };

typedef struct row {   // tokens of a state and a node
    int32_t state;
    uint32_t node;
    uint32_t tokens, n_tokens;   // in the pool, unless there is a bitmap
    uint32_t exits, n_exits;
    int32_t bitmap;   // -1: none
} row;

typedef struct level {   // of a walk: the items after the bytes of a node
    int32_t single;      // the only item is (single, outer); -1: items
    int32_t first, n;
} level;

typedef struct work_item {
    frit_item item;
    uint32_t node;
} work_item;

typedef struct pool {   // of 32-bit numbers
    uint32_t *items;
    size_t n, capacity;
} pool;

struct frit_masks {
    const frit_automaton *a;
    const frit_token_trie *trie;
    frit_lock *lock;
    row *rows;
    int32_t *buckets;
    int32_t n_rows, rows_room, n_buckets;
    pool tokens, exits;
    uint32_t **bitmaps;   // allocated separately, because growing an array would copy all bitmaps
    int32_t n_bitmaps;
    size_t bitmaps_capacity;
    bool *in_root;    // [n_states]: states of the root, if no rule calls it: nothing follows at their end
    frit_run *runs;   // [n_states]
    int32_t *alike;   // [n_states]: a state with the same rows
    struct strings {
        const frit_string_tokens *tokens;   // NULL: none
        uint32_t exits;                     // index in the pool; UINT32_MAX: not yet computed
    } * strings;                            // [n_counters]

    // Scratch of a walk.
    frit_frames frames;
    frit_calls calls;
    frit_config config;
    level *levels;   // [max_depth + 1]
    frit_item *items;
    size_t items_capacity;
    pool found, ended;

    work_item *work;
    size_t n_work, work_capacity;
};

static const char what[] = "the masks of a grammar";

static frit_status fail_memory(void)
{
    return frit_fail_memory(sizeof(row), what);
}

static frit_status reserve(pool *p, size_t n)
{
    if (p->n + n >= UINT32_MAX) return fail_memory();
    return FRIT_GROW(p->items, p->capacity, p->n + n, what);
}

static frit_status add(pool *p, const uint32_t *items, size_t n)
{
    FRIT_TRY(reserve(p, n));
    if (n > 0) memcpy(p->items + p->n, items, n * sizeof *items);
    p->n += n;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- walks

// True if all texts from a node on stay inside the rule after this state, without an end on the way.
static bool takes_all(const frit_run *run, const frit_token_node *node)
{
    const uint64_t other = node->classes & ~run->classes;
    if (other == 0) return node->height <= run->ascii;
    return other == FRIT_BEYOND_ASCII && node->is_utf8 && node->height <= run->utf8;
}

// Computes level d after the byte of a node. *alive is false if no item is left.
static frit_status take(frit_masks *m, size_t d, const frit_token_node *node, bool *alive, bool *out)
{
    const level *before = &m->levels[d - 1];
    level *now = &m->levels[d];
    *alive = true;
    *out = false;
    frit_item one = {before->single, FRIT_FRAME_OUTER};
    now->first = before->first + (before->single >= 0 ? 0 : before->n);
    now->n = 0;
    if (before->single >= 0) {
        now->single = frit_state_next(m->a, before->single, node->byte);
        *alive = now->single >= 0;
        const frit_automaton_state *state = *alive ? &m->a->states[now->single] : NULL;
        if (!state || state->n_calls == 0) {   // the result of a step, if nothing is called
            *out = state && state->final;
            *alive = state && frit_state_reads(state);
            return FRIT_OK;
        }
    }
    frit_config *c = &m->config;
    FRIT_TRY(frit_config_step(m->a, &m->frames, &m->calls, before->single >= 0 ? &one : m->items + before->first,
                              before->single >= 0 ? 1 : before->n, node->byte, c));
    *alive = c->n > 0;
    *out = c->out;
    now->single = c->n == 1 && c->items[0].frame == FRIT_FRAME_OUTER ? c->items[0].state : -1;
    if (now->single >= 0 || c->n == 0) return FRIT_OK;
    if (now->first + c->n >= SCRATCH_ITEMS) return fail_memory();
    FRIT_TRY(FRIT_GROW(m->items, m->items_capacity, now->first + c->n, what));
    memcpy(m->items + now->first, c->items, (size_t)c->n * sizeof *c->items);
    now->n = c->n;
    return FRIT_OK;
}

// Fills `found` with the tokens below a node that fit after `state`, except plain ones, and `ended` with the nodes at
// which the rule ends.
static frit_status walk(frit_masks *m, int32_t state, uint32_t top, const frit_plain_tokens *plain)
{
    const frit_token_trie *t = m->trie;
    const frit_token_node *nodes = t->nodes;
    const uint32_t base = nodes[top].depth;
    m->found.n = m->ended.n = 0;
    if (m->frames.n > SCRATCH_FRAMES) frit_frames_clear(&m->frames);
    m->levels[0] = (level){.single = state};
    size_t visit = 0;   // in a walk over the list of nodes that are not plain
    uint32_t i = plain ? plain->visits[0] : top + 1;
    while (i < nodes[top].end) {
        const size_t d = nodes[i].depth - base;
        const int32_t single = m->levels[d - 1].single;
        const uint32_t first = nodes[i].first_token;
        uint32_t next = nodes[i].end;
        if (single >= 0 && takes_all(&m->runs[single], &nodes[i])) {
            FRIT_TRY(add(&m->found, (const uint32_t *)t->tokens + first, nodes[next].first_token - first));
        } else {
            bool alive, out;
            FRIT_TRY(take(m, d, &nodes[i], &alive, &out));
            if (alive || out)
                FRIT_TRY(add(&m->found, (const uint32_t *)t->tokens + first, nodes[i + 1].first_token - first));
            if (out && next > i + 1 && !m->in_root[state]) FRIT_TRY(add(&m->ended, &i, 1));
            if (alive) next = i + 1;
        }
        while (plain && plain->visits[visit] < next) visit++;
        i = plain ? plain->visits[visit] : next;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- the table

static uint32_t hash(int32_t state, uint32_t node)
{
    const uint64_t h = ((uint64_t)(uint32_t)state << 32 | node) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static void put(frit_masks *m, int32_t i)
{
    uint32_t at = hash(m->rows[i].state, m->rows[i].node) & (uint32_t)(m->n_buckets - 1);
    while (m->buckets[at] >= 0) at = (at + 1) & (uint32_t)(m->n_buckets - 1);
    m->buckets[at] = i;
}

static frit_status grow_rows(frit_masks *m)
{
    const int32_t room = m->rows_room ? m->rows_room * 2 : 1024;
    row *rows = realloc(m->rows, (size_t)room * sizeof *rows);
    if (rows) m->rows = rows;
    int32_t *buckets = realloc(m->buckets, (size_t)room * 2 * sizeof *buckets);
    if (buckets) m->buckets = buckets;
    if (!rows || !buckets) return fail_memory();
    m->rows_room = room;
    m->n_buckets = room * 2;
    memset(buckets, -1, (size_t)m->n_buckets * sizeof *buckets);
    for (int32_t i = 0; i < m->n_rows; i++) put(m, i);
    return FRIT_OK;
}

static size_t table_bytes(const frit_masks *m)
{
    return (size_t)m->n_rows * (sizeof *m->rows + 16) +
           (m->tokens.n + m->exits.n + (size_t)m->n_bitmaps * (size_t)frit_mask_words(m->trie->n_vocab)) *
               sizeof(uint32_t);
}

// Drops all rows, because other states are in use now than when the rows were made.
static void drop_rows(frit_masks *m)
{
    for (int32_t i = 0; i < m->n_bitmaps; i++) free(m->bitmaps[i]);
    m->n_rows = m->n_bitmaps = 0;
    m->tokens.n = m->exits.n = 0;
    for (int32_t i = 0; i < m->a->n_counters; i++) m->strings[i].exits = UINT32_MAX;
    if (m->buckets) memset(m->buckets, -1, (size_t)m->n_buckets * sizeof *m->buckets);
}

// Finds the plain tokens of a state: tokens of some classes, which fit if they are short enough. NULL if the state has
// none.
static frit_status find_plain(frit_masks *m, int32_t state, uint32_t node, const frit_plain_tokens **out)
{
    const frit_run *run = &m->runs[state];
    *out = NULL;
    return node != 0 || !run->is_sharp ? FRIT_OK : frit_plain_tokens_get(m->trie, run->classes, out);
}

// Allocates a bitmap without initializing it.
static frit_status new_bitmap(frit_masks *m, uint32_t **out)
{
    const size_t n_words = (size_t)frit_mask_words(m->trie->n_vocab);
    FRIT_TRY(FRIT_GROW(m->bitmaps, m->bitmaps_capacity, m->n_bitmaps + 1, what));
    uint32_t *bits = malloc(n_words * sizeof *bits);
    if (!bits) return fail_memory();
    *out = m->bitmaps[m->n_bitmaps++] = bits;
    return FRIT_OK;
}

static frit_status add_bitmap(frit_masks *m, const frit_plain_tokens *plain, uint16_t most)
{
    const size_t n_words = (size_t)frit_mask_words(m->trie->n_vocab);
    uint32_t *bits;
    FRIT_TRY(new_bitmap(m, &bits));
    if (plain)
        frit_plain_tokens_mask(plain, n_words, most, bits);
    else
        memset(bits, 0, n_words * sizeof *bits);
    for (size_t i = 0; i < m->found.n; i++) bits[m->found.items[i] / 32] |= 1u << (m->found.items[i] % 32);
    return FRIT_OK;
}

// Finds the lists of a state between counted characters, of which low to high may follow; NULL for other states.
static struct strings *find_strings(const frit_masks *m, int32_t state, uint16_t *low, uint16_t *high)
{
    for (int32_t i = 0; i < m->a->n_counters; i++) {
        const frit_counter *counter = &m->a->counters[i];
        for (int32_t k = 0; k < counter->n_segments; k++) {
            const frit_count_segment *g = &counter->segments[k];
            const int64_t at = state - g->first, n = at / g->stride;
            if (at < 0 || n >= g->n || at % g->stride != 0) continue;
            const int64_t least = g->low + n * g->low_step, most = g->high + n * g->high_step;
            *low = least < UINT16_MAX ? (uint16_t)least : UINT16_MAX;
            *high = most < UINT16_MAX ? (uint16_t)most : UINT16_MAX;
            return m->strings[i].tokens ? &m->strings[i] : NULL;
        }
    }
    return NULL;
}

static frit_status add_string_row(frit_masks *m, int32_t state, struct strings *strings, uint16_t low, uint16_t high)
{
    const frit_counted_list *exits = &strings->tokens->exits;
    const uint16_t max = strings->tokens->max_length, most = high < max ? high : max;
    uint32_t *bits;
    if (strings->exits == UINT32_MAX) {
        const uint32_t at = (uint32_t)m->exits.n;
        FRIT_TRY(add(&m->exits, exits->items, exits->first[max + 1]));
        strings->exits = at;
    }
    row r = {.state = state, .exits = strings->exits, .bitmap = m->n_bitmaps};
    FRIT_TRY(new_bitmap(m, &bits));
    frit_string_tokens_mask(strings->tokens, (size_t)frit_mask_words(m->trie->n_vocab), low, high, bits);
    if (low <= most) {
        r.exits += exits->first[low];
        r.n_exits = exits->first[most + 1] - exits->first[low];
    }
    m->rows[m->n_rows] = r;
    put(m, m->n_rows++);
    return FRIT_OK;
}

static frit_status add_row(frit_masks *m, int32_t state, uint32_t node)
{
    const frit_plain_tokens *plain;
    uint16_t low, high;
    if (m->n_rows == m->rows_room) FRIT_TRY(grow_rows(m));
    struct strings *strings = node == 0 ? find_strings(m, state, &low, &high) : NULL;
    if (strings) return add_string_row(m, state, strings, low, high);
    FRIT_TRY(find_plain(m, state, node, &plain));
    FRIT_TRY(walk(m, state, node, plain));
    row r = {state, node, (uint32_t)m->tokens.n, (uint32_t)m->found.n, (uint32_t)m->exits.n, (uint32_t)m->ended.n, -1};
    FRIT_TRY(add(&m->exits, m->ended.items, m->ended.n));
    if (!plain && m->found.n <= (size_t)frit_mask_words(m->trie->n_vocab)) {
        FRIT_TRY(add(&m->tokens, m->found.items, m->found.n));
    } else {
        r.bitmap = m->n_bitmaps;
        FRIT_TRY(add_bitmap(m, plain, m->runs[state].ascii));
        r.n_tokens = 0;
    }
    m->rows[m->n_rows] = r;
    put(m, m->n_rows++);
    return FRIT_OK;
}

static frit_status find_row(frit_masks *m, int32_t state, uint32_t node, int32_t *out)
{
    state = m->alike[state];
    if (m->n_buckets > 0) {
        uint32_t at = hash(state, node) & (uint32_t)(m->n_buckets - 1);
        for (; m->buckets[at] >= 0; at = (at + 1) & (uint32_t)(m->n_buckets - 1)) {
            *out = m->buckets[at];
            if (m->rows[*out].state == state && m->rows[*out].node == node) return FRIT_OK;
        }
    }
    if (table_bytes(m) > TABLE_BYTES) drop_rows(m);
    *out = m->n_rows;
    return add_row(m, state, node);
}

// ------------------------------------------------------------------------------------- masks

// mask |= bits, in blocks that compilers vectorize.
static void join(uint32_t *restrict mask, const uint32_t *restrict bits, size_t n_words)
{
    enum { BLOCK = 16 };
    size_t i = 0;
    for (; i + BLOCK <= n_words; i += BLOCK)
        for (size_t k = 0; k < BLOCK; k++) mask[i + k] |= bits[i + k];
    for (; i < n_words; i++) mask[i] |= bits[i];
}

// Adds a row to the mask. is_empty: the mask has not been written yet.
static void allow(const frit_masks *m, const row *r, bool is_empty, uint32_t *mask)
{
    const size_t n_words = (size_t)frit_mask_words(m->trie->n_vocab);
    const uint32_t *bits = r->bitmap >= 0 ? m->bitmaps[r->bitmap] : NULL, *tokens = m->tokens.items + r->tokens;
    if (is_empty && bits)
        memcpy(mask, bits, n_words * sizeof *mask);
    else if (is_empty)
        memset(mask, 0, n_words * sizeof *mask);
    if (!is_empty && bits) join(mask, bits, n_words);
    for (uint32_t i = 0; i < r->n_tokens; i++) mask[tokens[i] / 32] |= 1u << (tokens[i] % 32);
}

// Adds the tokens that a state names, if they may be named.
static void allow_named(const frit_masks *m, int32_t state, uint32_t *mask)
{
    const frit_automaton_state *s = &m->a->states[state];
    for (int32_t i = 0; i < s->n_tokens; i++) {
        const frit_token_edge *e = &m->a->tokens[s->first_token + (uint32_t)i];
        const int32_t end = e->high < m->trie->n_vocab ? e->high + 1 : m->trie->n_vocab;
        for (int32_t t = e->low; t < end;) {
            const int32_t n = end - t < 32 - t % 32 ? end - t : 32 - t % 32;   // number of bits in one word
            mask[t / 32] |= (UINT32_MAX >> (32 - n) << t % 32) & m->trie->named[t / 32];
            t += n;
        }
    }
}

static frit_status add_work(frit_masks *m, frit_item item, uint32_t node)
{
    if (m->n_work == MASK_WORK)
        return frit_fail(FRIT_E_LIMIT, "the grammar is too ambiguous: a token may mean more than %d things", MASK_WORK);
    FRIT_TRY(FRIT_GROW(m->work, m->work_capacity, m->n_work + 1, what));
    m->work[m->n_work++] = (work_item){item, node};
    return FRIT_OK;
}

static frit_status put_together(frit_masks *m, frit_match *match, uint32_t *mask)
{
    m->n_work = 0;
    for (int32_t i = 0; i < match->now.n; i++) FRIT_TRY(add_work(m, match->now.items[i], 0));
    for (int64_t n = 0; m->n_work > 0; n++) {
        if (n > MASK_WORK)
            return frit_fail(FRIT_E_LIMIT, "the grammar is too ambiguous: a token may mean more than %d things",
                             MASK_WORK);
        const work_item w = m->work[--m->n_work];
        int32_t r = 0;
        FRIT_TRY(find_row(m, w.item.state, w.node, &r));
        allow(m, &m->rows[r], n == 0, mask);
        if (w.node == 0) allow_named(m, w.item.state, mask);
        if (m->rows[r].n_exits == 0) continue;
        const uint32_t first = m->rows[r].exits, end = first + m->rows[r].n_exits;
        FRIT_TRY(frit_config_return(m->a, &match->frames, &m->calls, w.item.frame, &m->config));
        for (uint32_t k = first; k < end; k++)
            for (int32_t i = 0; i < m->config.n; i++) FRIT_TRY(add_work(m, m->config.items[i], m->exits.items[k]));
    }
    return FRIT_OK;
}

frit_status frit_masks_get(frit_masks *m, frit_match *match, uint32_t *mask)
{
    if (match->now.n == 0) memset(mask, 0, (size_t)frit_mask_words(m->trie->n_vocab) * sizeof *mask);
    frit_lock_acquire(m->lock);
    const frit_status status = put_together(m, match, mask);
    frit_lock_release(m->lock);
    for (int32_t i = 0; i < m->trie->n_ends && match->now.final; i++)
        mask[m->trie->ends[i] / 32] |= 1u << (m->trie->ends[i] % 32);
    return status;
}

// ------------------------------------------------------------------------------------- making

// Sets in_root for the root's states, which are adjacent.
static void find_root(frit_masks *m)
{
    const frit_automaton *a = m->a;
    const int32_t start = a->rules[a->root].start;
    int32_t end = a->n_states;
    for (uint32_t i = 0; i < a->n_calls; i++)
        if (a->calls[i].rule == a->root) return;
    for (int32_t r = 0; r < a->n_rules; r++)
        if (a->rules[r].start > start && a->rules[r].start < end) end = a->rules[r].start;
    for (int32_t s = start; s < end; s++) m->in_root[s] = true;
}

// States of strings have equal rows if more characters may follow than any token has.
static frit_status find_lists(frit_masks *m)
{
    const frit_automaton *a = m->a;
    m->strings = calloc((size_t)a->n_counters + 1, sizeof *m->strings);
    if (!m->strings) return fail_memory();
    for (int32_t i = 0; i < a->n_counters; i++) {
        m->strings[i].exits = UINT32_MAX;
        FRIT_TRY(frit_string_tokens_get(m->trie, &a->counters[i].character, &m->strings[i].tokens));
        for (int32_t k = 0; k < a->counters[i].n_segments; k++) {
            const frit_count_segment *g = &a->counters[i].segments[k];
            const int32_t enough = m->trie->max_depth;
            if (g->low_step != 0 || g->high_step != 1 || g->high > enough) continue;
            for (int32_t n = enough - g->high + 1; n < g->n; n++)
                m->alike[g->first + n * g->stride] = g->first + (enough - g->high) * g->stride;
        }
    }
    return FRIT_OK;
}

enum { WIDE_BYTES = 60 };   // states that allow this number of bytes are slow to walk from

// Computes the rows of states in which strings begin.
static frit_status warm_strings(frit_masks *m)
{
    int32_t r;
    for (int32_t i = 0; i < m->a->n_counters; i++) {
        for (int32_t k = 0; k < m->a->counters[i].n_segments; k++) {
            const frit_count_segment *g = &m->a->counters[i].segments[k];
            FRIT_TRY(find_row(m, g->first + (g->n - 1) * g->stride, 0, &r));
        }
    }
    return FRIT_OK;
}

static frit_status warm(frit_masks *m, uint64_t for_ns)
{
    const uint64_t end = frit_time_ns() + for_ns;
    if (for_ns > 0) FRIT_TRY(warm_strings(m));
    for (int32_t s = 0; s < m->a->n_states; s++) {
        if (m->a->states[s].table < 0) continue;
        int n = 0, r;
        for (int b = 0; b < 256; b++) n += frit_state_next(m->a, s, (unsigned char)b) >= 0;
        if (n < WIDE_BYTES) continue;
        if (frit_time_ns() > end) break;
        FRIT_TRY(find_row(m, s, 0, &r));
    }
    return FRIT_OK;
}

frit_status frit_masks_new(frit_masks **out, const frit_automaton *automaton, const frit_token_trie *trie,
                           uint64_t warm_ns)
{
    *out = NULL;
    frit_masks *m = calloc(1, sizeof *m);
    if (!m) return fail_memory();
    m->a = automaton;
    m->trie = trie;
    m->levels = calloc((size_t)trie->max_depth + 1, sizeof *m->levels);
    m->runs = calloc((size_t)automaton->n_states, sizeof *m->runs);
    m->alike = calloc((size_t)automaton->n_states, sizeof *m->alike);
    m->in_root = calloc((size_t)automaton->n_states, sizeof *m->in_root);
    frit_status status = m->levels && m->runs && m->alike && m->in_root ? frit_lock_new(&m->lock) : fail_memory();
    if (status == FRIT_OK) status = frit_frames_init(&m->frames);
    if (status == FRIT_OK) find_root(m);
    if (status == FRIT_OK) status = frit_states_alike(automaton, m->in_root, m->alike);
    if (status == FRIT_OK) status = frit_states_runs(automaton, m->in_root, m->runs);
    if (status == FRIT_OK) status = find_lists(m);
    if (status == FRIT_OK) status = warm(m, warm_ns);
    if (status == FRIT_OK)
        *out = m;
    else
        frit_masks_free(m);
    return status;
}

void frit_masks_free(frit_masks *m)
{
    if (!m) return;
    frit_lock_free(m->lock);
    free(m->rows);
    free(m->buckets);
    free(m->tokens.items);
    free(m->exits.items);
    for (int32_t i = 0; i < m->n_bitmaps; i++) free(m->bitmaps[i]);
    free(m->bitmaps);
    free(m->strings);
    free(m->runs);
    free(m->alike);
    free(m->in_root);
    frit_frames_deinit(&m->frames);
    frit_calls_free(&m->calls);
    frit_config_free(&m->config);
    free(m->levels);
    free(m->items);
    free(m->found.items);
    free(m->ended.items);
    free(m->work);
    free(m);
}

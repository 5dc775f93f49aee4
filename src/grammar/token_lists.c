// SPDX-License-Identifier: MIT
// Lists of tokens, and the lists that a trie stores.
#include "grammar/token_lists.h"

#include "base/grow.h"
#include "base/thread/thread.h"
#include "grammar/mask.h"

#include <stdlib.h>

enum { MAX_PLAIN = 8, MAX_STRINGS = 4 };

struct frit_token_lists {
    frit_lock *lock;
    frit_plain_tokens *plain[MAX_PLAIN];
    frit_string_tokens *strings[MAX_STRINGS];
    int n_plain, n_strings;
};

static frit_status fail_memory(void)
{
    return frit_fail_memory(sizeof(frit_plain_tokens), "lists of a vocabulary's tokens");
}

// ------------------------------------------------------------------------------------- plain tokens

static bool is_plain_node(const frit_token_node *node, uint64_t classes)
{
    return node->is_utf8 && (node->classes & ~(classes | FRIT_BEYOND_ASCII)) == 0;
}

// Measures tokens. chars: the number of characters of plain tokens, 0 for others. visits: nodes that are not plain.
static void measure(const frit_token_trie *t, uint64_t classes, bool *plain, uint16_t *length, uint16_t *chars,
                    uint32_t *visits)
{
    uint32_t n_visits = 0, below = 0;   // nodes before `below` are below a plain node
    plain[0] = true;
    length[0] = 0;
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const frit_token_node *node = &t->nodes[i];
        const uint64_t class = (uint64_t)1 << frit_byte_class(node->byte);
        plain[node->depth] = plain[node->depth - 1] && (class & (classes | FRIT_BEYOND_ASCII));
        length[node->depth] = (uint16_t)(length[node->depth - 1] + ((node->byte & 0xc0) != 0x80));
        if (i >= below && plain[node->depth - 1] && is_plain_node(node, classes)) below = node->end;
        if (i >= below) visits[n_visits++] = i;
        for (uint32_t k = node->first_token; k < t->nodes[i + 1].first_token && i < below; k++)
            chars[k] = length[node->depth];
    }
    visits[n_visits] = UINT32_MAX;
}

static void sort_by_length(frit_plain_tokens *p, const frit_token_trie *t, const uint16_t *chars)
{
    for (int32_t k = 0; k < t->n_tokens; k++)
        if (chars[k] > 0) p->first[chars[k] + 1]++;
    for (uint32_t c = 1; c <= p->max_length; c++) p->first[c + 1] += p->first[c];
    for (int32_t k = 0; k < t->n_tokens; k++) {
        if (chars[k] == 0) continue;
        p->tokens[p->first[chars[k]]++] = (uint32_t)t->tokens[k];
        p->all[t->tokens[k] / 32] |= 1u << (t->tokens[k] % 32);
    }
    for (uint32_t c = p->max_length + 1u; c > 0; c--) p->first[c] = p->first[c - 1];   // ends become beginnings
}

static frit_status plain_new(frit_plain_tokens *out, const frit_token_trie *t, uint64_t classes)
{
    *out = (frit_plain_tokens){.classes = classes, .max_length = t->max_depth};
    bool *plain = calloc((size_t)t->max_depth + 1, sizeof *plain);
    uint16_t *length = calloc((size_t)t->max_depth + 1, sizeof *length);
    uint16_t *chars = calloc((size_t)t->n_tokens + 1, sizeof *chars);
    out->tokens = malloc(((size_t)t->n_tokens + 1) * sizeof *out->tokens);
    out->first = calloc((size_t)t->max_depth + 2, sizeof *out->first);
    out->all = calloc((size_t)frit_mask_words(t->n_vocab) + 1, sizeof *out->all);
    out->visits = malloc(((size_t)t->n_nodes + 1) * sizeof *out->visits);
    const bool good = plain && length && chars && out->tokens && out->first && out->all && out->visits;
    if (good) measure(t, classes, plain, length, chars, out->visits);
    if (good) sort_by_length(out, t, chars);
    free(plain);
    free(length);
    free(chars);
    return good ? FRIT_OK : fail_memory();
}

static void plain_free(frit_plain_tokens *plain)
{
    free(plain->tokens);
    free(plain->first);
    free(plain->all);
    free(plain->visits);
    *plain = (frit_plain_tokens){0};
}

void frit_plain_tokens_mask(const frit_plain_tokens *p, size_t n_words, uint16_t most, uint32_t *mask)
{
    const uint32_t n_all = p->first[p->max_length + 1];
    const uint32_t n = most >= p->max_length ? n_all : p->first[most + 1];
    if (n > n_all / 2)
        memcpy(mask, p->all, n_words * sizeof *mask);
    else
        memset(mask, 0, n_words * sizeof *mask);
    for (uint32_t i = 0; i < n && n <= n_all / 2; i++) mask[p->tokens[i] / 32] |= 1u << (p->tokens[i] % 32);
    for (uint32_t i = n; i < n_all && n > n_all / 2; i++) mask[p->tokens[i] / 32] &= ~(1u << (p->tokens[i] % 32));
}

// ------------------------------------------------------------------------------------- tokens of strings

static void counted_free(frit_counted_list *list)
{
    free(list->items);
    free(list->first);
    *list = (frit_counted_list){0};
}

static void strings_free(frit_string_tokens *strings)
{
    frit_dfa_free(&strings->character);
    counted_free(&strings->inside);
    counted_free(&strings->closing);
    counted_free(&strings->exits);
    free(strings->all);
    *strings = (frit_string_tokens){0};
}

typedef struct found {   // results of the walk, in the order of the trie
    uint32_t item;
    uint16_t count;
} found;

typedef struct founds {
    found *items;
    size_t n, capacity;
    bool failed;
} founds;

static void add_found(founds *f, uint32_t item, uint16_t count)
{
    if (FRIT_GROW(f->items, f->capacity, f->n + 1, "the tokens of a grammar") != FRIT_OK) {
        f->failed = true;
        return;
    }
    f->items[f->n++] = (found){item, count};
}

// Sorts by count and frees the results.
static frit_status sort_counted(frit_counted_list *out, founds *f, uint16_t max_length)
{
    out->items = malloc((f->n + 1) * sizeof *out->items);
    out->first = calloc((size_t)max_length + 3, sizeof *out->first);
    const bool good = out->items && out->first && !f->failed;
    for (size_t i = 0; good && i < f->n; i++) out->first[f->items[i].count + 2]++;
    for (uint32_t c = 0; good && c <= max_length; c++) out->first[c + 2] += out->first[c + 1];
    for (size_t i = 0; good && i < f->n; i++) out->items[out->first[f->items[i].count + 1]++] = f->items[i].item;
    free(f->items);
    return good ? FRIT_OK : fail_memory();
}

// Walks the whole trie with the automaton of a character, whose final state continues as the first state.
static void walk_strings(const frit_token_trie *t, const frit_dfa *one, int32_t *state, uint16_t *count, founds *inside,
                         founds *closing, founds *exits)
{
    state[0] = count[0] = 0;
    for (uint32_t i = 1; i < t->n_nodes;) {
        const frit_token_node *node = &t->nodes[i];
        const size_t d = node->depth;
        const uint32_t first = node->first_token, end = t->nodes[i + 1].first_token;
        if (state[d - 1] == 0 && node->byte == '"') {
            for (uint32_t k = first; k < end; k++) add_found(closing, (uint32_t)t->tokens[k], count[d - 1]);
            if (node->end > i + 1) add_found(exits, i, count[d - 1]);
            i = node->end;
            continue;
        }
        const int32_t to = frit_dfa_next(one, state[d - 1], node->byte);
        if (to < 0) {
            i = node->end;
            continue;
        }
        count[d] = (uint16_t)(count[d - 1] + (state[d - 1] == 0));
        state[d] = one->final[to] ? 0 : to;
        for (uint32_t k = first; k < end; k++) add_found(inside, (uint32_t)t->tokens[k], count[d]);
        i++;
    }
}

static frit_status strings_new(frit_string_tokens *out, const frit_token_trie *t, const frit_dfa *character)
{
    founds inside = {0}, closing = {0}, exits = {0};
    *out = (frit_string_tokens){.max_length = t->max_depth};
    int32_t *state = malloc(((size_t)t->max_depth + 1) * sizeof *state);
    uint16_t *count = malloc(((size_t)t->max_depth + 1) * sizeof *count);
    out->all = calloc((size_t)frit_mask_words(t->n_vocab) + 1, sizeof *out->all);
    frit_status status = state && count && out->all ? frit_dfa_copy(&out->character, character) : fail_memory();
    if (status == FRIT_OK) walk_strings(t, character, state, count, &inside, &closing, &exits);
    for (size_t i = 0; status == FRIT_OK && i < inside.n; i++)
        out->all[inside.items[i].item / 32] |= 1u << (inside.items[i].item % 32);
    const frit_status sorted[] = {sort_counted(&out->inside, &inside, out->max_length),
                                  sort_counted(&out->closing, &closing, out->max_length),
                                  sort_counted(&out->exits, &exits, out->max_length)};
    for (size_t i = 0; i < FRIT_COUNT(sorted) && status == FRIT_OK; i++) status = sorted[i];
    free(state);
    free(count);
    return status;
}

static void set_all(const frit_counted_list *list, uint32_t from, uint32_t end, uint32_t *mask)
{
    for (uint32_t i = from; i < end; i++) mask[list->items[i] / 32] |= 1u << (list->items[i] % 32);
}

void frit_string_tokens_mask(const frit_string_tokens *s, size_t n_words, uint16_t low, uint16_t high, uint32_t *mask)
{
    const uint16_t most = high < s->max_length ? high : s->max_length;
    const uint32_t n = s->inside.first[most + 1], n_all = s->inside.first[s->max_length + 1];
    const bool most_fit = n > n_all / 2;
    if (most_fit)
        memcpy(mask, s->all, n_words * sizeof *mask);
    else
        memset(mask, 0, n_words * sizeof *mask);
    if (!most_fit) set_all(&s->inside, 0, n, mask);
    for (uint32_t i = n; i < n_all && most_fit; i++)
        mask[s->inside.items[i] / 32] &= ~(1u << (s->inside.items[i] % 32));
    if (low <= most) set_all(&s->closing, s->closing.first[low], s->closing.first[most + 1], mask);
}

// ------------------------------------------------------------------------------------- what a trie keeps

frit_status frit_token_lists_new(frit_token_lists **out)
{
    *out = NULL;
    frit_token_lists *lists = calloc(1, sizeof *lists);
    if (!lists) return fail_memory();
    const frit_status status = frit_lock_new(&lists->lock);
    if (status == FRIT_OK)
        *out = lists;
    else
        free(lists);
    return status;
}

void frit_token_lists_free(frit_token_lists *lists)
{
    if (!lists) return;
    for (int i = 0; i < lists->n_plain; i++) {
        plain_free(lists->plain[i]);
        free(lists->plain[i]);
    }
    for (int i = 0; i < lists->n_strings; i++) {
        strings_free(lists->strings[i]);
        free(lists->strings[i]);
    }
    frit_lock_free(lists->lock);
    free(lists);
}

// Adds a list; the lock is held.
static frit_status add_plain(frit_token_lists *lists, const frit_token_trie *trie, uint64_t classes,
                             const frit_plain_tokens **out)
{
    if (lists->n_plain == MAX_PLAIN) return FRIT_OK;
    frit_plain_tokens *plain = calloc(1, sizeof *plain);
    const frit_status status = plain ? plain_new(plain, trie, classes) : fail_memory();
    if (status == FRIT_OK) {
        *out = lists->plain[lists->n_plain++] = plain;
        return FRIT_OK;
    }
    if (plain) plain_free(plain);
    free(plain);
    return status;
}

static frit_status add_strings(frit_token_lists *lists, const frit_token_trie *trie, const frit_dfa *character,
                               const frit_string_tokens **out)
{
    if (lists->n_strings == MAX_STRINGS) return FRIT_OK;
    frit_string_tokens *strings = calloc(1, sizeof *strings);
    const frit_status status = strings ? strings_new(strings, trie, character) : fail_memory();
    if (status == FRIT_OK) {
        *out = lists->strings[lists->n_strings++] = strings;
        return FRIT_OK;
    }
    if (strings) strings_free(strings);
    free(strings);
    return status;
}

frit_status frit_plain_tokens_get(const frit_token_trie *trie, uint64_t classes, const frit_plain_tokens **out)
{
    frit_token_lists *lists = trie->lists;
    frit_status status = FRIT_OK;
    *out = NULL;
    frit_lock_acquire(lists->lock);
    for (int i = 0; i < lists->n_plain; i++)
        if (lists->plain[i]->classes == classes) *out = lists->plain[i];
    if (!*out) status = add_plain(lists, trie, classes, out);
    frit_lock_release(lists->lock);
    return status;
}

frit_status frit_string_tokens_get(const frit_token_trie *trie, const frit_dfa *character,
                                   const frit_string_tokens **out)
{
    frit_token_lists *lists = trie->lists;
    frit_status status = FRIT_OK;
    *out = NULL;
    frit_lock_acquire(lists->lock);
    for (int i = 0; i < lists->n_strings; i++)
        if (frit_dfa_same(&lists->strings[i]->character, character)) *out = lists->strings[i];
    if (!*out) status = add_strings(lists, trie, character, out);
    frit_lock_release(lists->lock);
    return status;
}

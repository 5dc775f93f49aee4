// SPDX-License-Identifier: MIT
// Rules as front ends make them.
#include "grammar/grammar.h"

#include <stdlib.h>

static uint32_t hash_name(frit_str name)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < name.len; i++) h = (h ^ (unsigned char)name.ptr[i]) * 16777619u;
    return h;
}

static void put(frit_draft *draft, int32_t rule)
{
    uint32_t at = hash_name(frit_str_of(draft->rules[rule].name)) & (uint32_t)(draft->n_buckets - 1);
    while (draft->buckets[at] >= 0) at = (at + 1) & (uint32_t)(draft->n_buckets - 1);
    draft->buckets[at] = rule;
}

static bool grow(frit_draft *draft)
{
    const int32_t room = draft->room ? draft->room * 2 : 16;
    frit_budget *budget = &draft->budget;
    frit_draft_rule *rules =
        frit_budget_resize(budget, draft->rules, (size_t)draft->room * sizeof *rules, (size_t)room * sizeof *rules);
    if (rules) draft->rules = rules;
    int32_t *buckets = NULL;
    if (rules)
        buckets = frit_budget_resize(budget, draft->buckets, (size_t)draft->n_buckets * sizeof *buckets,
                                     (size_t)room * 2 * sizeof *buckets);
    if (!buckets) return false;
    draft->buckets = buckets;
    draft->room = room;
    draft->n_buckets = room * 2;
    memset(buckets, -1, (size_t)draft->n_buckets * sizeof *buckets);
    for (int32_t i = 0; i < draft->n_rules; i++) put(draft, i);
    return true;
}

static int32_t add(frit_draft *draft, frit_str name)
{
    if (draft->failed != FRIT_OK) return -1;
    if (draft->n_rules >= FRIT_GRAMMAR_RULES) {
        draft->failed = frit_fail(FRIT_E_LIMIT, "the grammar has more than %d rules", FRIT_GRAMMAR_RULES);
        return -1;
    }
    const bool has_room = frit_budget_acquire(&draft->budget, name.len + 48) == FRIT_OK;
    char *copy = has_room ? malloc(name.len + 1) : NULL;
    if (!copy || (draft->n_rules == draft->room && !grow(draft))) {
        free(copy);
        draft->failed = frit_budget_fail(&draft->budget, name.len + 1, "a rule of a grammar");
        return -1;
    }
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = 0;
    draft->rules[draft->n_rules] = (frit_draft_rule){.name = copy, .nfa = {.budget = &draft->budget}};
    put(draft, draft->n_rules);
    return draft->n_rules++;
}

int32_t frit_draft_rule_named(frit_draft *draft, frit_str name)
{
    if (draft->n_buckets > 0) {
        uint32_t at = hash_name(name) & (uint32_t)(draft->n_buckets - 1);
        for (; draft->buckets[at] >= 0; at = (at + 1) & (uint32_t)(draft->n_buckets - 1)) {
            if (frit_budget_spend(&draft->budget, 4) != FRIT_OK) break;   // hashes may collide on purpose
            if (draft->buckets[at] >= draft->first_named && frit_str_is(name, draft->rules[draft->buckets[at]].name))
                return draft->buckets[at];
        }
    }
    return add(draft, name);
}

int32_t frit_draft_rule_new(frit_draft *draft, const char *name)
{
    return add(draft, frit_str_of(name));
}

frit_nfa *frit_draft_nfa(frit_draft *draft, int32_t rule)
{
    return &draft->rules[rule].nfa;
}

void frit_draft_define(frit_draft *draft, int32_t rule, frit_fragment part)
{
    draft->rules[rule].part = part;
    draft->rules[rule].defined = true;
}

void frit_draft_define_table(frit_draft *draft, int32_t rule, frit_dfa *table, frit_counter *counter)
{
    frit_draft_rule *r = &draft->rules[rule];
    r->table = *table;
    draft->n_table_states += table->n_states;
    if (counter) r->counter = *counter;
    r->defined = true;
}

void frit_draft_define_entry(frit_draft *draft, int32_t rule, int32_t base, int32_t state)
{
    frit_draft_rule *r = &draft->rules[rule];
    r->is_entry = r->defined = true;
    r->base = base;
    r->entry = state;
}

void frit_counter_free(frit_counter *counter)
{
    frit_dfa_free(&counter->character);
    free(counter->segments);
    *counter = (frit_counter){0};
}

void frit_draft_free(frit_draft *draft)
{
    for (int32_t i = 0; i < draft->n_rules; i++) {
        frit_dfa_free(&draft->rules[i].table);
        frit_counter_free(&draft->rules[i].counter);
        free(draft->rules[i].name);
        frit_nfa_free(&draft->rules[i].nfa);
    }
    free(draft->rules);
    free(draft->buckets);
    *draft = (frit_draft){0};
}

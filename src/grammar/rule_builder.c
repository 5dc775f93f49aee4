// SPDX-License-Identifier: MIT
// Builds the list of rules of a grammar, with a hash table of their names.
#include "grammar/grammar.h"

#include <stdlib.h>

static uint32_t hash_name(frit_str name)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < name.len; i++) h = (h ^ (unsigned char)name.ptr[i]) * 16777619u;
    return h;
}

static void put(frit_rule_builder *builder, int32_t rule)
{
    uint32_t at = hash_name(frit_str_of(builder->rules[rule].name)) & (uint32_t)(builder->n_buckets - 1);
    while (builder->buckets[at] >= 0) at = (at + 1) & (uint32_t)(builder->n_buckets - 1);
    builder->buckets[at] = rule;
}

static bool grow(frit_rule_builder *builder)
{
    const int32_t room = builder->room ? builder->room * 2 : 16;
    frit_budget *budget = &builder->budget;
    frit_builder_rule *rules =
        frit_budget_resize(budget, builder->rules, (size_t)builder->room * sizeof *rules, (size_t)room * sizeof *rules);
    if (rules) builder->rules = rules;
    int32_t *buckets = NULL;
    if (rules)
        buckets = frit_budget_resize(budget, builder->buckets, (size_t)builder->n_buckets * sizeof *buckets,
                                     (size_t)room * 2 * sizeof *buckets);
    if (!buckets) return false;
    builder->buckets = buckets;
    builder->room = room;
    builder->n_buckets = room * 2;
    memset(buckets, -1, (size_t)builder->n_buckets * sizeof *buckets);
    for (int32_t i = 0; i < builder->n_rules; i++) put(builder, i);
    return true;
}

static int32_t add(frit_rule_builder *builder, frit_str name)
{
    if (builder->failed != FRIT_OK) return -1;
    if (builder->n_rules >= FRIT_GRAMMAR_RULES) {
        builder->failed = frit_fail(FRIT_E_LIMIT, "the grammar has more than %d rules", FRIT_GRAMMAR_RULES);
        return -1;
    }
    const bool has_room = frit_budget_acquire(&builder->budget, name.len + 48) == FRIT_OK;
    char *copy = has_room ? malloc(name.len + 1) : NULL;
    if (!copy || (builder->n_rules == builder->room && !grow(builder))) {
        free(copy);
        builder->failed = frit_budget_fail(&builder->budget, name.len + 1, "a rule of a grammar");
        return -1;
    }
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = 0;
    builder->rules[builder->n_rules] = (frit_builder_rule){.name = copy, .nfa = {.budget = &builder->budget}};
    put(builder, builder->n_rules);
    return builder->n_rules++;
}

int32_t frit_builder_rule_named(frit_rule_builder *builder, frit_str name)
{
    if (builder->n_buckets > 0) {
        uint32_t at = hash_name(name) & (uint32_t)(builder->n_buckets - 1);
        for (; builder->buckets[at] >= 0; at = (at + 1) & (uint32_t)(builder->n_buckets - 1)) {
            if (frit_budget_spend(&builder->budget, 4) != FRIT_OK) break;   // hashes may collide on purpose
            if (builder->buckets[at] >= builder->first_named &&
                frit_str_is(name, builder->rules[builder->buckets[at]].name))
                return builder->buckets[at];
        }
    }
    return add(builder, name);
}

int32_t frit_builder_rule_new(frit_rule_builder *builder, const char *name)
{
    return add(builder, frit_str_of(name));
}

frit_nfa *frit_builder_nfa(frit_rule_builder *builder, int32_t rule)
{
    return &builder->rules[rule].nfa;
}

void frit_builder_define(frit_rule_builder *builder, int32_t rule, frit_fragment part)
{
    builder->rules[rule].part = part;
    builder->rules[rule].defined = true;
}

void frit_builder_define_table(frit_rule_builder *builder, int32_t rule, frit_dfa *table, frit_counter *counter)
{
    frit_builder_rule *r = &builder->rules[rule];
    r->table = *table;
    builder->n_table_states += table->n_states;
    if (counter) r->counter = *counter;
    r->defined = true;
}

void frit_builder_define_entry(frit_rule_builder *builder, int32_t rule, int32_t base, int32_t state)
{
    frit_builder_rule *r = &builder->rules[rule];
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

void frit_builder_free(frit_rule_builder *builder)
{
    for (int32_t i = 0; i < builder->n_rules; i++) {
        frit_dfa_free(&builder->rules[i].table);
        frit_counter_free(&builder->rules[i].counter);
        free(builder->rules[i].name);
        frit_nfa_free(&builder->rules[i].nfa);
    }
    free(builder->rules);
    free(builder->buckets);
    *builder = (frit_rule_builder){0};
}

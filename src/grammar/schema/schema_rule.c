// SPDX-License-Identifier: MIT
// Rules of sets: the JSON texts of values. Scalars come from languages (schema_scalar.c), arrays and objects from terms
// (schema_machine.h).
#include "grammar/schema/schema_machine.h"

frit_status frit_schema_rule_of(schema *s, int32_t set_id, int32_t *rule)
{
    if (s->sets[set_id].rule < 0) {
        char name[32];
        snprintf(name, sizeof name, "value %d", set_id);
        s->sets[set_id].rule = frit_builder_rule_new(s->builder, name);
        FRIT_TRY(frit_schema_grow(s, &s->queue, s->n_queue, &s->queue_room, sizeof *s->queue));
        s->queue[s->n_queue++] = set_id;
    }
    *rule = s->sets[set_id].rule;
    return *rule < 0 ? s->builder->failed : FRIT_OK;
}

static bool may_be(schema *s, int32_t set_id, schema_type type)
{
    for (int32_t i = 0; i < s->sets[set_id].n; i++) {
        const int32_t id = s->sets[set_id].literals[i];
        const literal *l = &s->literals[id / 2];
        bool types[N_TYPES], integer;
        if (l->kind == LITERAL_SCHEMA && frit_schema_is_reference(s, l->value)) continue;
        json_t *keyword = l->kind == LITERAL_SCHEMA ? json_object_get(l->value, "type") : NULL;
        json_t *values = l->kind == LITERAL_SCHEMA ? json_object_get(l->value, "enum") : NULL, *one;
        json_t *constant = l->kind == LITERAL_CONST ? l->value : NULL;
        if (l->kind == LITERAL_SCHEMA && !constant) constant = json_object_get(l->value, "const");
        if (id & 1) continue;
        if (keyword && frit_schema_types(keyword, types, &integer) && !types[type]) return false;
        if (constant && json_is_array(constant) != (type == TYPE_ARRAY)) return false;
        if (constant && json_is_object(constant) != (type == TYPE_OBJECT)) return false;
        bool found = !values;
        size_t k;
        json_array_foreach(values, k, one) found |= type == TYPE_ARRAY ? json_is_array(one) : json_is_object(one);
        if (frit_budget_spend(s->budget, 8 + (int64_t)json_array_size(values)) != FRIT_OK) return true;
        if (!found) return false;
    }
    return true;
}

frit_status frit_schema_is_empty(schema *s, int32_t set_id, bool *empty)
{
    *empty = set_id == SET_FALSE;
    if (set_id == SET_FALSE || set_id == SET_TRUE) return FRIT_OK;
    if (s->sets[set_id].empty >= 0) {
        *empty = s->sets[set_id].empty;
        return FRIT_OK;
    }
    *empty = !may_be(s, set_id, TYPE_ARRAY) && !may_be(s, set_id, TYPE_OBJECT);
    for (int type = 0; type < TYPE_ARRAY && *empty; type++) {
        language l;
        FRIT_TRY(frit_schema_language_of(s, set_id, type, &l));
        *empty = l.kind == LANGUAGE_NONE;
    }
    s->sets[set_id].empty = *empty;
    return FRIT_OK;
}

static frit_status add_terms(schema *s, int32_t set_id, int32_t rule, schema_type type, bool is_arguments,
                             frit_fragment all)
{
    terms list;
    FRIT_TRY(frit_schema_terms_of(s, set_id, type, &list));
    for (int32_t i = 0; i < list.n; i++) {
        frit_fragment part;
        FRIT_TRY(type == TYPE_ARRAY ? frit_schema_array_part(s, rule, &list.items[i], &part)
                                    : frit_schema_object_part(s, rule, &list.items[i], is_arguments, &part));
        frit_nfa_or(frit_builder_nfa(s->builder, rule), all, part);
    }
    return FRIT_OK;
}

static frit_status end_rule(schema *s, int32_t rule, frit_fragment all)
{
    frit_builder_define(s->builder, rule, all);
    return s->arena.failed ? frit_schema_no_memory(s) : frit_nfa_check(frit_builder_nfa(s->builder, rule));
}

frit_status frit_schema_define_as(schema *s, int32_t set_id, int32_t rule, const bool types[N_TYPES])
{
    const frit_fragment all = frit_nfa_none(frit_builder_nfa(s->builder, rule));
    for (int type = 0; type < TYPE_ARRAY; type++) {
        language l;
        frit_fragment part;
        if (!types[type]) continue;
        FRIT_TRY(frit_schema_language_of(s, set_id, type, &l));
        if (l.kind == LANGUAGE_NONE) continue;
        FRIT_TRY(frit_schema_scalar_part(s, rule, type, l, &part));
        frit_nfa_or(frit_builder_nfa(s->builder, rule), all, part);
    }
    for (int type = TYPE_ARRAY; type < N_TYPES; type++)
        if (types[type]) FRIT_TRY(add_terms(s, set_id, rule, type, false, all));
    return end_rule(s, rule, all);
}

frit_status frit_schema_define(schema *s, int32_t set_id)
{
    static const bool all[N_TYPES] = {true, true, true, true, true, true, true};
    return frit_schema_define_as(s, set_id, s->sets[set_id].rule, all);
}

frit_status frit_schema_define_arguments(schema *s, int32_t set_id, int32_t rule)
{
    const frit_fragment all = frit_nfa_none(frit_builder_nfa(s->builder, rule));
    FRIT_TRY(add_terms(s, set_id, rule, TYPE_OBJECT, true, all));
    return end_rule(s, rule, all);
}

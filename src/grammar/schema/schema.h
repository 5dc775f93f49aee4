// SPDX-License-Identifier: MIT
// grammar/schema/schema.h: JSON schemas (draft 2020-12) as grammars: declarations that the files of the front end
// share.
//
//     literal   a schema, a constant, or a list of alternatives; or the negation of one
//     set       a conjunction of literals, interned: conditions on a value; each set becomes a rule
//     language  of a set and a scalar type: the texts of numbers, or the contents of strings, as an automaton
//     term      of a set and a container type: claims about members or items that must all hold. A set has several
//               terms, of which one must hold (disjunctive normal form)
//
// Only literals are negated. `not`, `if` and `oneOf` move the negation inwards to claims; the negation of a claim is a
// claim.
#pragma once
#include "grammar/grammar.h"

#include "base/arena.h"

#include <jansson.h>

typedef enum schema_type {
    TYPE_NULL,
    TYPE_TRUE,
    TYPE_FALSE,
    TYPE_NUMBER,
    TYPE_STRING,
    TYPE_ARRAY,
    TYPE_OBJECT,
    N_TYPES
} schema_type;

typedef enum literal_kind { LITERAL_SCHEMA, LITERAL_CONST, LITERAL_ANY } literal_kind;

typedef struct language {
    enum { LANGUAGE_NONE, LANGUAGE_ALL, LANGUAGE_SOME, LANGUAGE_LENGTHS } kind;
    frit_dfa *dfa;       // of LANGUAGE_SOME; lives as long as the schema
    int32_t low, high;   // for LANGUAGE_LENGTHS: strings of low to high characters; high may be NO_END
} language;

enum { N_SCALARS = TYPE_ARRAY };

typedef struct known_languages {   // of a literal or a set, by type
    language of[N_SCALARS];
    bool known[N_SCALARS];
} known_languages;

typedef struct literal {
    literal_kind kind;
    json_t *value;      // a schema or a constant
    const char *base;   // of a schema: the URI that its references are relative to
    uint64_t hash;      // of a small schema; schemas with equal hash and keywords are identical; 0: not a small schema
    int32_t *any;       // alternatives: sets, one of which must hold
    int32_t n_any;
    uint64_t key;   // in the index of literals
    known_languages languages;
} literal;

typedef struct set {
    int32_t *literals;   // sorted; 2 * literal + 1: its negation
    int32_t n;
    int32_t rule;        // -1: not yet
    signed char empty;   // -1: not yet known
    uint64_t key;        // in the index of sets
    known_languages languages;
} set;

enum { SET_TRUE = 0, SET_FALSE = 1, NO_END = INT32_MAX };

typedef struct counted_string {   // strings of low to high characters, and the rule of their JSON texts
    int32_t low, high, rule;
} counted_string;

typedef enum claim_kind {
    CLAIM_KEYS,       // all members whose key is in `keys` have values in `set`
    CLAIM_SOME_KEY,   // a member exists whose key is in `keys` and whose value is in `set`
    CLAIM_REQUIRED,   // the member `name` exists
    CLAIM_MEMBERS,    // there are low to high members
    CLAIM_ITEMS,      // items low to high - 1 are in `set`
    CLAIM_COUNT,      // of items low to high - 1, least to most are in `set`
    CLAIM_LENGTH,     // there are low to high items
    CLAIM_UNIQUE,     // no two items are equal
} claim_kind;

typedef struct claim {
    claim_kind kind;
    const char *name;   // the only key; NULL: `keys`
    uint32_t hash;      // of the name
    language keys;
    int32_t set;
    int32_t low, high, least, most;
} claim;

typedef struct term {
    claim *claims;
    int32_t n, room;
    int32_t *used;   // number of claims in use, for all terms that share the claims; a term that uses all of them may
                     // append more
    // Members and items to which unevaluatedProperties and unevaluatedItems do not apply.
    language seen_keys;
    int32_t seen_items;   // the first seen_items items; NO_END: all
    int32_t seen_if;      // and items that are in this set; SET_FALSE: none
    // Keys that the schemas name, also in `required`, if they restrict names; all keys if a schema allows others.
    language named;
    bool lists;   // a schema has `properties` or `patternProperties`
} term;

typedef struct terms {
    term *items;
    int32_t n, room;
} terms;

typedef struct resource {
    const char *uri;   // without a fragment; for an anchor, with the fragment
    json_t *value;
    const char *base;
} resource;

typedef struct item_index {   // indices of items by hash; hashes need not be unique
    int32_t *buckets;         // -1: free
    int32_t n_buckets, n;
} item_index;

// The value of `$schema`; DRAFT_ANY if it is absent. Then keywords of all drafts that have one meaning are read.
typedef enum schema_dialect { DRAFT_ANY, DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, DRAFT_2020_12 } schema_dialect;

typedef struct schema {
    json_t *root;
    json_t *object;   // the schema of all objects
    schema_dialect dialect;
    bool complete;   // frit_schema_options
    bool any_order, ignore_formats, open_objects;
    frit_arena arena;
    size_t arena_bytes;   // charged to the budget
    frit_rule_builder *builder;
    frit_budget *budget;   // of the builder
    const frit_schema_form *form;
    language allowed;   // strings that contain no mark of the form
    literal *literals;
    set *sets;
    resource *resources;
    int32_t n_literals, literals_room, n_sets, sets_room, n_resources, resources_room;
    item_index literal_index, set_index, uri_index, value_index;
    frit_dfa **dfas;         // automata of languages
    frit_dfa *universe[2];   // of numbers and strings
    int32_t n_dfas, dfas_room;
    language integers, nice;   // LANGUAGE_NONE: not yet made
    struct combined {
        const frit_dfa *a, *b;
        frit_dfa_op op;
        language out;
    } combined[256];   // cache of the last results, by a hash
    int32_t first_set;
    int32_t *queue;   // sets whose rules are not defined yet
    int32_t n_queue, queue_room;
    int32_t rule_number, rule_space;
    counted_string *counted;
    int32_t n_counted, counted_room;
    int depth;            // number of nested references without a value between them
    int32_t n_compared;   // number of comparisons of schemas with equal hashes
} schema;

enum { SCHEMA_DEPTH = 64, SCHEMA_TERMS = 4096, SCHEMA_NAMES = 256, SCHEMA_NAME_BYTES = 4096, SCHEMA_STATES = 120000 };

// schema_store.c
// Allocates zeroed memory that lives as long as the schema; NULL: frit_schema_no_memory returns the error.
void *frit_schema_alloc(schema *s, size_t n, size_t size);
char *frit_schema_text(schema *s, const char *text, size_t n);
frit_status frit_schema_no_memory(const schema *s);
// Makes room for one more item in a list of n.
frit_status frit_schema_grow(schema *s, void *items, int32_t n, int32_t *room, size_t size);
void frit_schema_free_list(schema *s, void *items, int32_t room, size_t size);
frit_status frit_schema_literal(schema *s, literal_kind kind, json_t *value, const char *base, int32_t *out);
frit_status frit_schema_any(schema *s, const int32_t *sets, int32_t n, int32_t *out);
frit_status frit_schema_set(schema *s, const int32_t *literals, int32_t n, int32_t *out);
frit_status frit_schema_set_one(schema *s, int32_t literal, int32_t *out);
frit_status frit_schema_set_and(schema *s, int32_t a, int32_t b, int32_t *out);
frit_status frit_schema_set_not(schema *s, int32_t a, int32_t *out);
// Returns the set of the first n literals of a set; -1: this set was never made.
int32_t frit_schema_set_known(const schema *s, int32_t a, int32_t n);
frit_status frit_schema_begin_sets(schema *s);
frit_status frit_schema_add_resource(schema *s, const char *uri, json_t *value, const char *base);
// Returns the last resource that was added with this URI, or this value; -1: not found.
int32_t frit_schema_find_uri(schema *s, const char *uri);
int32_t frit_schema_find_value(const schema *s, const json_t *value);
void frit_schema_free_store(schema *s);

// schema.c
// Returns the set of a subschema of a schema with this base.
frit_status frit_schema_set_of(schema *s, json_t *value, const char *base, int32_t *out);
// Resolves a reference. `keyword` is "$ref"; or "$dynamicRef" or "$recursiveRef" if it can only refer to one schema.
frit_status frit_schema_resolve(schema *s, const char *keyword, const char *base, json_t *reference, resource *out);
// True if a schema is only a reference: up to draft-07, keywords beside $ref are ignored.
bool frit_schema_is_reference(const schema *s, json_t *value);
const char *frit_schema_base(const schema *s, json_t *value, const char *base);
const char *frit_schema_id(const schema *s, json_t *value);   // the $id of a schema that is a resource; NULL for others
frit_status frit_schema_fail(const char *keyword, const char *what);

// schema_language.c
language frit_language_keep(schema *s, frit_dfa *dfa);   // takes ownership of the automaton
frit_status frit_language_combine(schema *s, language a, frit_dfa_op op, language b, const frit_dfa *all,
                                  language *out);
frit_status frit_language_text(schema *s, frit_str text, language *out);
// Returns the automaton of a language. LANGUAGE_LENGTHS becomes LANGUAGE_SOME; *out is NULL for other kinds.
frit_status frit_language_dfa(schema *s, language *l, const frit_dfa **out);
const frit_dfa *frit_language_universe(schema *s, schema_type type);
frit_status frit_schema_language_of(schema *s, int32_t set, schema_type type, language *out);
frit_status frit_schema_keys_of_pattern(schema *s, const char *pattern, language *out);
frit_status frit_language_strings(schema *s, language a, frit_dfa_op op, language b, language *out);   // of keys

// schema_number.c
frit_status frit_number_universe(frit_budget *budget, frit_dfa *out);   // numbers without exponents
frit_status frit_number_integers(frit_budget *budget, frit_dfa *out);   // numbers with an integer value
frit_status frit_number_nice(frit_budget *budget,
                             frit_dfa *out);   // numbers as programs write them, of a length that doubles can represent
// frit_number_from: values at least, or more than, a number. frit_number_multiples: multiples of a number.
frit_status frit_number_from(frit_budget *budget, json_t *bound, bool more, frit_dfa *out);
frit_status frit_number_multiples(frit_budget *budget, json_t *divisor, frit_dfa *out);
// Adds the texts of a number to `any`. `zeros` is the part of frit_number_zeros: what may follow an integer, made once
// for all numbers.
frit_fragment frit_number_zeros(frit_nfa *nfa);
frit_status frit_number_equal(json_t *number, frit_nfa *nfa, frit_fragment any, frit_fragment zeros);

// schema_claim.c
extern const term frit_no_claims;
frit_status frit_term_claim(schema *s, term *t, claim c);              // adds a claim
frit_status frit_term_is_dead(schema *s, const term *t, bool *dead);   // true if claims contradict each other
frit_status frit_terms_one(schema *s, terms *out);                     // one term without claims
frit_status frit_terms_add(schema *s, terms *list, term t);
frit_status frit_terms_single(schema *s, terms *list, claim c);   // adds a term of one claim
frit_status frit_terms_or(schema *s, terms *a, const terms *b);   // a becomes a or b
frit_status frit_terms_and(schema *s, terms *a, const terms *b);
frit_status frit_terms_not(schema *s, const term *t, terms *out);   // adds the negation of a term
frit_status frit_claim_not(schema *s, claim c, terms *out);
frit_status frit_schema_set_or(schema *s, int32_t a, int32_t b, int32_t *out);

// schema_term.c
frit_status frit_schema_terms_of(schema *s, int32_t set, schema_type type, terms *out);
bool frit_schema_types(json_t *value, bool types[N_TYPES], bool *integer);
frit_status frit_schema_bad_type(json_t *value);   // the error for an invalid `type`
frit_status frit_schema_too_many_names(void);

// schema_rule.c
frit_status frit_schema_rule_of(schema *s, int32_t set, int32_t *rule);
frit_status frit_schema_define(schema *s, int32_t set);
// Defines another rule as the values of a set that have one of the types.
frit_status frit_schema_define_as(schema *s, int32_t set, int32_t rule, const bool types[N_TYPES]);
// Defines a rule as the members of the set's objects, written as arguments in the form's syntax.
frit_status frit_schema_define_arguments(schema *s, int32_t set, int32_t rule);
// Sets *empty to true if no value satisfies the set, as far as is known without examining containers.
frit_status frit_schema_is_empty(schema *s, int32_t set, bool *empty);

// schema_scalar.c
frit_status frit_schema_space(schema *s);   // makes rule_space: the white space between the parts of arrays and objects
// Makes the strings of the language in quotes, without strings that contain a mark of the form.
frit_status frit_schema_string_part(schema *s, int32_t rule, language strings, frit_fragment *out);
// frit_schema_string_part for one string.
frit_status frit_schema_name_part(schema *s, int32_t rule, const char *name, frit_fragment *out);
// Makes the strings or numbers of the language, or null, true or false.
frit_status frit_schema_scalar_part(schema *s, int32_t rule, schema_type type, language l, frit_fragment *part);

// schema_string.c: strings of any characters with limits on their number.
frit_status frit_schema_counted_rule(schema *s, int32_t low, int32_t high, int32_t *rule);
frit_status frit_schema_define_counted(schema *s);   // defines the rules of frit_schema_counted_rule, when all are
                                                     // known

// schema_form.c
bool frit_form_is(const schema *s, int style);   // a call_style
bool frit_form_is_word(const char *name);
frit_status frit_form_allow(schema *s, language *strings);   // removes strings with marks that the form forbids
// Makes texts, or keys, between the quotes of loose calls.
frit_status frit_form_text(schema *s, int32_t rule, language texts, frit_fragment *out);
frit_status frit_form_key(schema *s, int32_t rule, const char *name, language keys, frit_fragment *out);
// Makes a member of arguments: key and value. `name` is NULL for keys that are not named.
frit_status frit_form_member(schema *s, int32_t rule, const char *name, language keys, int32_t set, frit_fragment *out);

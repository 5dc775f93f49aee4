// SPDX-License-Identifier: MIT
// Grammars for a model's vocabulary. The token trie is made once, for the first grammar.
#include "engine/chat/model_grammar.h"
#include "engine/engine.h"
#include "text/answer/parts.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { WARM_NS = 50000000 };   // time for masks that are slow to make

// Returns the text of a token. Special tokens have none, except marks of reasoning and calls if the grammar is about
// them (`chat`).
static frit_str text_of(const frit_model *model, frit_token token, const frit_chat *chat)
{
    static const frit_str none = {"", 0};
    if (token >= model->vocab.n || model->vocab.entries[token].is_end) return none;
    const unsigned char kind = model->vocab.entries[token].kind;
    if (kind == FRIT_TOKEN_NORMAL || kind == FRIT_TOKEN_BYTE || kind == FRIT_TOKEN_USER)
        return model->tokenizer->pieces[token];
    const frit_str piece = model->vocab.entries[token].piece;
    return chat && frit_answer_has_mark(frit_chat_get_format(chat), true, piece) ? piece : none;
}

// True if a grammar may name the token: special tokens too, but no token that ends the answer.
static bool can_name(const frit_model *model, frit_token token)
{
    const frit_vocab *vocab = &model->vocab;
    return token < vocab->n && vocab->entries[token].piece.len > 0 && !vocab->entries[token].is_end;
}

static const char *find_token(const void *ctx, frit_str text, frit_token *id)
{
    const frit_model *model = ctx;
    if (text.len > 0) *id = frit_vocab_find(&model->vocab, text);
    if (*id < 0) return "a text that is one token of the model's vocabulary";
    if (*id >= model->vocab.n) return "the id of a token of the model's vocabulary";
    return can_name(model, *id) ? NULL : "a token that has a text and does not end the answer";
}

// Makes the token lists for strings in advance: nearly every schema needs them.
static frit_status make_lists(const frit_token_trie *trie)
{
    frit_automaton *automaton;
    frit_masks *masks;
    FRIT_TRY(frit_schema_compile(&automaton, frit_str_of("{\"type\": \"string\"}"), NULL));
    const frit_status status = frit_masks_new(&masks, automaton, trie, 0);
    if (status == FRIT_OK) frit_masks_free(masks);
    frit_automaton_free(automaton);
    return status;
}

static frit_status make_trie(struct frit_model_trie *made, frit_model *model, const frit_chat *chat)
{
    const int32_t n = model->info.n_vocab;
    frit_str *pieces = malloc((size_t)n * sizeof *pieces);
    frit_token *ends = malloc((size_t)n * sizeof *ends);
    int32_t n_ends = 0;
    frit_status status = pieces && ends ? FRIT_OK : frit_fail_memory((size_t)n * sizeof *pieces, "the vocabulary");
    for (int32_t i = 0; status == FRIT_OK && i < n; i++) {
        pieces[i] = text_of(model, i, chat);
        if (i < model->vocab.n && model->vocab.entries[i].is_end) ends[n_ends++] = i;
    }
    if (status == FRIT_OK) status = frit_token_trie_new(&made->trie, pieces, n, ends, n_ends);
    free(ends);
    for (int32_t i = 0; status == FRIT_OK && i < n; i++)
        if (can_name(model, i)) frit_token_trie_name(made->trie, i);
    if (status == FRIT_OK) status = make_lists(made->trie);
    if (status != FRIT_OK) {
        frit_token_trie_free(made->trie);
        made->trie = NULL;
    }
    if (status == FRIT_OK)
        made->pieces = pieces;
    else
        free(pieces);
    return status;
}

static void release_model(void *model)
{
    frit_model_free(model);
}

frit_status frit_grammar_add(frit_rule_builder *builder, const frit_model *model, frit_str text,
                             const frit_grammar_options *options, const frit_schema_form *form, int32_t *rule)
{
    static const frit_schema_form plain;
    const frit_token_names names = {model, find_token};
    const frit_schema_options schema = {.any_order = options->any_order, .open_objects = options->open_objects};
    if (!form) form = &plain;
    switch (options->kind) {
    case FRIT_GRAMMAR_GBNF:
        return frit_gbnf_add(builder, text, &names, rule);
    case FRIT_GRAMMAR_SCHEMA:
        return frit_schema_add_text(builder, text, &schema, form, rule);
    case FRIT_GRAMMAR_REGEX:
        return frit_regex_add(builder, text, rule);
    case FRIT_GRAMMAR_TAGS:
        return frit_tags_add_text(builder, text, &(frit_tags_options){&names, schema, *form}, rule);
    }
    return frit_fail(FRIT_E_INVALID, "the kind of a grammar is %d; expected 0 to 3", (int)options->kind);
}

static frit_status prepare_masks(frit_grammar *grammar, frit_model *model, const frit_chat *chat)
{
    struct frit_model_trie *trie = &model->tries[!chat ? 0 : chat == model->tool_chat ? 2 : 1];
    frit_lock_acquire(model->trie_lock);
    const frit_status status = trie->trie ? FRIT_OK : make_trie(trie, model, chat);
    frit_lock_release(model->trie_lock);
    FRIT_TRY(status);
    grammar->trie = trie->trie;
    grammar->pieces = trie->pieces;
    return frit_masks_new(&grammar->masks, grammar->automaton, grammar->trie, WARM_NS);
}

frit_status frit_grammar_of(frit_grammar **out, const frit_model *model, frit_automaton *automaton,
                            const frit_chat *chat)
{
    *out = NULL;
    frit_grammar *grammar = calloc(1, sizeof *grammar);
    if (!grammar) {
        frit_automaton_free(automaton);
        return frit_fail_memory(sizeof *grammar, "a grammar");
    }
    atomic_init(&grammar->n_refs, 1);
    grammar->automaton = automaton;
    grammar->n_vocab = model->info.n_vocab;
    const frit_status status = prepare_masks(grammar, (frit_model *)model, chat);
    if (status != FRIT_OK) {
        frit_grammar_free(grammar);
        return status;
    }
    grammar->owner = (frit_model *)model;   // only the reference count changes
    grammar->release = release_model;
    frit_model_ref((frit_model *)model);
    *out = grammar;
    return FRIT_OK;
}

frit_status frit_grammar_compile(frit_automaton **out, const frit_model *model, frit_str text,
                                 const frit_grammar_options *options)
{
    static const frit_grammar_options defaults;
    *out = NULL;
    if (!model->tokenizer)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no vocabulary; a grammar needs one", model->info.path);
    if (!options) options = &defaults;
    frit_rule_builder builder = {.budget = {.cancelled = options->cancelled, .ctx = options->ctx}};
    int32_t rule;
    frit_status status = frit_grammar_add(&builder, model, text, options, NULL, &rule);
    if (status == FRIT_OK) status = frit_automaton_compile(out, &builder, rule);
    frit_builder_free(&builder);
    return status;
}

frit_status frit_grammar_new(frit_grammar **out, const frit_model *model, const char *text, size_t n_bytes,
                             const frit_grammar_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(text);
    FRIT_REQUIRE_UNUSED(options);
    frit_automaton *automaton;
    FRIT_TRY(frit_grammar_compile(&automaton, model, (frit_str){text, n_bytes}, options));
    return frit_grammar_of(out, model, automaton, NULL);
}

// SPDX-License-Identifier: MIT
// The grammar of an answer in a chat, from the tools and the end of the prompt.
#include "engine/chat/model_grammar.h"
#include "engine/chat/turn.h"
#include "grammar/answer.h"

typedef struct body {
    const frit_turn_grammar_options *options;
    const frit_model *model;
} body;

static frit_status add_format(void *ctx, frit_rule_builder *builder, const frit_schema_form *form, int32_t *rule)
{
    const body *f = ctx;
    const frit_turn_grammar_options *o = f->options;
    const frit_grammar_options how = {.kind = o->kind, .any_order = o->any_order, .open_objects = o->open_objects};
    return frit_grammar_add(builder, f->model, (frit_str){o->format, o->n_format}, &how, form, rule);
}

frit_status frit_turn_grammar(frit_grammar **out, const frit_turn *turn, const frit_turn_grammar_options *options)
{
    static const frit_turn_grammar_options defaults;
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(turn);
    FRIT_REQUIRE_UNUSED(options);
    const frit_turn_grammar_options *o = options ? options : &defaults;
    const answer_format *format = frit_chat_get_format(turn->chat);
    const bool is_object = frit_answer_is_object(format, turn->tools, turn->continues);
    if (!o->format && !turn->must_call && !is_object && !frit_answer_has_strict(turn->tools)) return FRIT_OK;
    const frit_str prompt = {turn->prompt.data ? turn->prompt.data : "", turn->prompt.len};
    const bool may_think = frit_answer_may_think(format, prompt, turn->continues);
    const frit_answer_grammar answer = {
        .format = format,
        .thinking = turn->is_thinking ? FRIT_THINKING_NOW
                    : may_think       ? FRIT_THINKING_MAYBE
                                      : FRIT_THINKING_NOT,
        .continues = turn->continues,
        .tools = turn->tools,
        .must_call = turn->must_call,
        .only = turn->only,
        .one_call = o->one_call || turn->only,   // a function that tool_choice names is called once
        .add_format = o->format ? add_format : NULL,
        .ctx = &(body){o, turn->model},
        .open_objects = o->open_objects,
        .budget = {.cancelled = o->cancelled, .ctx = o->ctx},
    };
    frit_automaton *automaton = NULL;
    FRIT_TRY(frit_answer_compile(&automaton, &answer));
    return frit_grammar_of(out, turn->model, automaton, turn->chat);
}

// SPDX-License-Identifier: MIT
// A model's chat template, and its variables.
#include "text/chat/chat.h"

#include "base/arena.h"
#include "base/time.h"
#include "text/template/template.h"

#include <stdatomic.h>
#include <stdlib.h>

// The template used in place of one that is missing or invalid.
#define CHATML                                                                        \
    "{% for message in messages %}"                                                   \
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}" \
    "{% endfor %}"                                                                    \
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

static const char chatml[] = CHATML, chatml_after_bos[] = "{{ bos_token }}" CHATML;

static frit_str chatml_for(frit_chat_tokens tokens)
{
    return frit_str_of(tokens.begins ? chatml_after_bos : chatml);
}

// Families by strings in their templates; the first match is used. For display only.
static const struct {
    const char *name, *marks[2];
} families[] = {
    {"llama4", {"<|header_start|>"}},
    {"llama3", {"<|start_header_id|>"}},
    {"gemma", {"<start_of_turn>"}},
    {"gemma4", {"<|turn>"}},
    {"harmony", {"<|start|>", "<|channel|>"}},
    {"phi4", {"<|im_sep|>"}},
    {"kimi", {"<|im_middle|>"}},
    {"chatml", {"<|im_start|>"}},
    {"phi3", {"<|user|>", "<|end|>"}},
    {"glm4", {"[gMASK]"}},
    {"zephyr", {"<|user|>", "eos_token"}},
    {"granite", {"<|start_of_role|>"}},
    {"command-r", {"<|START_OF_TURN_TOKEN|>"}},
    {"mistral-v7", {"[INST]", "[SYSTEM_PROMPT]"}},
    {"llama2", {"[INST]", "<<SYS>>"}},
    {"mistral-v3", {"[INST]", "[AVAILABLE_TOOLS]"}},
    {"mistral", {"[INST]"}},
    {"deepseek", {"<\xef\xbd\x9cUser\xef\xbd\x9c>"}},
};

// Templates for models without one, chosen by a token of their format; the last row fits every model.
typedef struct guess {
    const char *mark, *name, *source;
} guess;

#define TURNS(before, between, after, last)                                                  \
    "{{ bos_token }}{% for message in messages %}{{ '" before "' + message.role + '" between \
    "' + message.content + '" after "' }}{% endfor %}{% if add_generation_prompt %}{{ '" last "' }}{% endif %}"

static const guess guesses[] = {
    {"<|im_start|>", "chatml", chatml},
    {"<|start_header_id|>", "llama3",
     TURNS("<|start_header_id|>", "<|end_header_id|>\\n\\n", "<|eot_id|>",
           "<|start_header_id|>assistant<|end_header_id|>\\n\\n")},
    {"<start_of_turn>", "gemma",
     "{{ bos_token }}{% for message in messages %}{% if message.role == 'system' %}{{ raise_exception('System role not "
     "supported') }}{% endif %}{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + "
     "'\\n' + message.content + '<end_of_turn>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"},
    {"<|start_of_role|>", "granite",
     TURNS("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\\n", "<|start_of_role|>assistant<|end_of_role|>")},
    {"[INST]", "mistral",
     "{{ bos_token }}{% for message in messages %}{% if message.role == 'system' %}{{ raise_exception('System role not "
     "supported') }}{% elif message.role == 'assistant' %}{{ message.content + eos_token }}{% else %}"
     "{{ '[INST] ' + message.content + ' [/INST]' }}{% endif %}{% endfor %}"},
    {"<|end|>", "phi3", TURNS("<|", "|>\\n", "<|end|>\\n", "<|assistant|>\\n")},
    {NULL, "chatml", chatml},
};

// Limit of the steps of all probes together. Published templates need far fewer.
enum { PROBE_STEPS = 5 * 1000 * 1000 };

struct frit_chat {
    frit_template *template;
    const char *name;
    frit_str source, bos, eos;
    chat_shape shape;
    answer_format format;
    bool guessed;
    atomic_flag warned;   // about the assumed template
    int64_t n_left;       // steps of probes
    frit_log log;
    frit_arena arena;
};

// ------------------------------------------------------------------------------------- opening

static bool contains(frit_str text, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= text.len; i++)
        if (memcmp(text.ptr + i, part, n) == 0) return true;
    return false;
}

static const char *recognise(frit_str source)
{
    for (size_t i = 0; i < FRIT_COUNT(families); i++) {
        const char *const *marks = families[i].marks;
        if (contains(source, marks[0]) && (!marks[1] || contains(source, marks[1]))) return families[i].name;
    }
    return "custom";
}

static frit_str copy(frit_arena *arena, frit_str text)
{
    return (frit_str){frit_arena_text(arena, text.len ? text.ptr : "", text.len), text.len};
}

static frit_status open_template(frit_chat *chat, frit_str source, frit_chat_tokens tokens, const frit_log *log)
{
    frit_status status = frit_template_new(&chat->template, source);
    if (status == FRIT_E_MEMORY) return status;
    if (status == FRIT_OK) {
        frit_template_allow_changes(chat->template);
        chat->name = recognise(source);
        return FRIT_OK;
    }
    frit_log_say(log, FRIT_LOG_WARNING, "the chat template cannot be used, ChatML takes its place: %s", frit_error());
    chat->name = "chatml";
    chat->source = chatml_for(tokens);
    return frit_template_new(&chat->template, chat->source);
}

frit_status frit_chat_new(frit_chat **out, frit_str source, frit_chat_tokens tokens, const frit_log *log)
{
    *out = NULL;
    if (source.len == 0) return FRIT_OK;
    frit_chat *chat = calloc(1, sizeof *chat);
    if (!chat) return frit_fail_memory(sizeof *chat, "the chat template");
    chat->bos = copy(&chat->arena, tokens.bos);
    chat->eos = copy(&chat->arena, tokens.eos);
    chat->source = copy(&chat->arena, source);
    if (log) chat->log = *log;
    atomic_flag_clear(&chat->warned);
    chat->n_left = PROBE_STEPS;
    frit_status status = open_template(chat, source, tokens, log);
    if (status == FRIT_OK && frit_arena_failed(&chat->arena))
        status = frit_fail_memory(source.len, "the chat template");
    if (status != FRIT_OK) {
        frit_chat_free(chat);
        return status;
    }
    frit_chat_find_shape(chat, &chat->shape);
    frit_answer_derive(&chat->format, chat, &chat->arena);
    chat->shape.no_calls = chat->format.style != CALL_CHANNELS && !chat->shape.shows_calls;
    chat->shape.no_tools = chat->format.reply_open.len > 0;
    *out = chat;
    return FRIT_OK;
}

frit_status frit_chat_guess(frit_chat **out, bool (*has)(const void *ctx, const char *mark), const void *ctx,
                            frit_chat_tokens tokens, const frit_log *log)
{
    const guess *row = guesses;
    while (row->mark && !has(ctx, row->mark)) row++;
    const frit_str source = row->source == chatml ? chatml_for(tokens) : frit_str_of(row->source);
    FRIT_TRY(frit_chat_new(out, source, tokens, log));
    (*out)->guessed = true;
    (*out)->name = row->name;
    return FRIT_OK;
}

const char *frit_chat_name(const frit_chat *chat)
{
    return chat->guessed ? "" : chat->name;
}

const chat_shape *frit_chat_get_shape(const frit_chat *chat)
{
    return &chat->shape;
}

const answer_format *frit_chat_get_format(const frit_chat *chat)
{
    return &chat->format;
}

frit_str frit_chat_source(const frit_chat *chat)
{
    return chat->source;
}

void frit_chat_free(frit_chat *chat)
{
    if (!chat) return;
    frit_template_free(chat->template);
    frit_arena_free(&chat->arena);
    free(chat);
}

// ------------------------------------------------------------------------------------- rendering

frit_status frit_chat_apply_json(const frit_chat *chat, const json_t *variables, frit_buf *out, frit_spans *untrusted)
{
    struct tm now = frit_time_local();
    if (chat->guessed && !atomic_flag_test_and_set((atomic_flag *)&chat->warned))
        frit_log_say(&chat->log, FRIT_LOG_WARNING, "the model has no chat template: conversations are written as %s",
                     chat->name);
    return frit_chat_apply_at(chat, variables, &now, out, untrusted);
}

static frit_status apply(const frit_chat *chat, const json_t *variables, const struct tm *now, frit_buf *out,
                         frit_spans *untrusted, int64_t *n_steps)
{
    json_t *all = json_copy((json_t *)variables);   // shallow; only counts references
    json_t *bos = json_stringn_nocheck(chat->bos.ptr, chat->bos.len);
    json_t *eos = json_stringn_nocheck(chat->eos.ptr, chat->eos.len);
    const bool made =
        all && json_object_set_new(all, "bos_token", bos) == 0 && json_object_set_new(all, "eos_token", eos) == 0;
    frit_status status = FRIT_OK;
    if (!made)
        status = frit_fail_memory(chat->bos.len + chat->eos.len, "the variables of a chat template");
    else if (n_steps)
        status = frit_template_render_within(chat->template, all, now, out, untrusted, n_steps);
    else
        status = frit_template_render(chat->template, all, now, out, untrusted);
    json_decref(all);
    return status;
}

frit_status frit_chat_apply_at(const frit_chat *chat, const json_t *variables, const struct tm *now, frit_buf *out,
                               frit_spans *untrusted)
{
    return apply(chat, variables, now, out, untrusted, NULL);
}

frit_status frit_chat_probe(const frit_chat *chat, const json_t *variables, const struct tm *now, frit_buf *out)
{
    int64_t n_steps = chat->n_left;
    const frit_status status = apply(chat, variables, now, out, NULL, &n_steps);
    ((frit_chat *)chat)->n_left -= n_steps < chat->n_left ? n_steps : chat->n_left;   // before the chat is shared
    return status;
}

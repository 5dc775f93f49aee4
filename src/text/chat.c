// SPDX-License-Identifier: MIT
// Chat formats as a table: how each family of templates writes a message, and the marks that tell the family.
//
//     bos  [user.open] content [user.close]  [assistant.open] content [assistant.close]  ... [generate]
#include "text/chat.h"

#include "base/arena.h"

#include <stdlib.h>

enum {
    BOS = 1,             // the text begins with the BOS
    TRIM = 2,            // white space around a message is dropped
    EOS_CLOSES = 4,      // the EOS follows every answer (before `close`)
    EOS_ALL = 8,         // ... and every other message
    EOS_LAST = 16,       // the EOS ends a text that opens no answer
    NO_SYSTEM = 32,      // system messages are refused
    SYSTEM_FIRST = 64,   // the system message becomes part of the first user message
    SYSTEM_LAST = 128,   // ... of the last one
    ALTERNATE = 256,     // users and assistants take turns
    BOS_EACH = 512,      // a BOS before every user message
};

typedef struct brackets {
    const char *open, *close;
} brackets;

typedef struct family {
    const char *name;
    const char *marks[3];   // all must stand in the template ...
    const char *absent;     // ... and this must not
    unsigned flags;
    brackets system, user, assistant;
    const char *generate;
} family;

// clang-format off
static const family families[] = {
    {"llama3", {"<|start_header_id|>", "<|eot_id|>"}, "Cutting Knowledge", BOS | TRIM,
     {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
     {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
     {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"}, "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"gemma", {"<start_of_turn>", "System role not supported"}, NULL, BOS | TRIM | NO_SYSTEM | ALTERNATE,
     {"", ""}, {"<start_of_turn>user\n", "<end_of_turn>\n"}, {"<start_of_turn>model\n", "<end_of_turn>\n"}, "<start_of_turn>model\n"},
    {"gemma3", {"<start_of_turn>"}, NULL, BOS | TRIM | SYSTEM_FIRST | ALTERNATE,
     {"", "\n\n"}, {"<start_of_turn>user\n", "<end_of_turn>\n"}, {"<start_of_turn>model\n", "<end_of_turn>\n"}, "<start_of_turn>model\n"},
    {"phi3", {"<|user|>", "<|end|>", "eos_token"}, NULL, EOS_LAST,
     {"<|system|>\n", "<|end|>\n"}, {"<|user|>\n", "<|end|>\n"}, {"<|assistant|>\n", "<|end|>\n"}, "<|assistant|>\n"},
    {"phi3-bos", {"<|user|>", "<|end|>"}, NULL, BOS,
     {"<|system|>\n", "<|end|>\n"}, {"<|user|>\n", "<|end|>\n"}, {"<|assistant|>\n", "<|end|>\n"}, "<|assistant|>\n"},
    {"zephyr", {"<|user|>", "eos_token"}, NULL, EOS_CLOSES | EOS_ALL,
     {"<|system|>\n", "\n"}, {"<|user|>\n", "\n"}, {"<|assistant|>\n", "\n"}, "<|assistant|>\n"},
    {"llama2", {"[INST]", "<<SYS>>"}, NULL, BOS_EACH | TRIM | EOS_CLOSES | SYSTEM_FIRST | ALTERNATE,
     {"<<SYS>>\n", "\n<</SYS>>\n\n"}, {"[INST] ", " [/INST]"}, {" ", ""}, ""},
    {"mistral-v7", {"[INST]", "[SYSTEM_PROMPT]"}, NULL, BOS | EOS_CLOSES,
     {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}, {"[INST]", "[/INST]"}, {"", ""}, ""},
    {"mistral-v3-tekken", {"[INST]", "\"[INST]\" + "}, NULL, BOS | EOS_CLOSES | SYSTEM_LAST | ALTERNATE,
     {"", "\n\n"}, {"[INST]", "[/INST]"}, {"", ""}, ""},
    {"mistral-v3", {"[INST]", "[AVAILABLE_TOOLS]"}, NULL, BOS | TRIM | EOS_CLOSES | SYSTEM_LAST | ALTERNATE,
     {"", "\n\n"}, {"[INST] ", "[/INST]"}, {" ", ""}, ""},
    {"mistral-v1", {"[INST]"}, NULL, BOS | EOS_CLOSES | ALTERNATE,
     {"", "\n\n"}, {"[INST] ", " [/INST]"}, {" ", ""}, ""},
    {"chatml", {"<|im_start|>"}, NULL, 0,
     {"<|im_start|>system\n", "<|im_end|>\n"}, {"<|im_start|>user\n", "<|im_end|>\n"},
     {"<|im_start|>assistant\n", "<|im_end|>\n"}, "<|im_start|>assistant\n"},
};
// clang-format on

struct frit_chat {
    const family *family;
    frit_str bos, eos;
    frit_str default_system;   // what ChatML templates say where no system message is given
    frit_arena arena;
};

// ------------------------------------------------------------------------------------- recognising

static const char *find(frit_str text, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= text.len; i++)
        if (memcmp(text.ptr + i, part, n) == 0) return text.ptr + i;
    return NULL;
}

static const family *recognise(frit_str source)
{
    for (size_t i = 0; i < FRIT_COUNT(families); i++) {
        const family *f = &families[i];
        bool fits = !f->absent || !find(source, f->absent);
        for (size_t k = 0; k < FRIT_COUNT(f->marks) && f->marks[k]; k++) fits = fits && find(source, f->marks[k]);
        if (fits) return f;
    }
    return NULL;
}

// ChatML templates hold their default as a literal: <|im_start|>system\nYou are ...<|im_end|>. Escapes stay as they
// are.
static frit_str find_default_system(frit_str source)
{
    const char *open = "<|im_start|>system\\n";
    frit_str rest = source;
    for (const char *at; (at = find(rest, open));) {
        at += strlen(open);
        rest = (frit_str){at, (size_t)(source.ptr + source.len - at)};
        const char *end = find(rest, "<|im_end|>");
        frit_str text = {at, end ? (size_t)(end - at) : 0};
        if (text.len > 0 && !memchr(text.ptr, '\'', text.len) && !memchr(text.ptr, '"', text.len)) return text;
    }
    return (frit_str){"", 0};
}

static frit_str copy(frit_arena *arena, frit_str text)
{
    return (frit_str){frit_arena_text(arena, text.len ? text.ptr : "", text.len), text.len};
}

frit_status frit_chat_new(frit_chat **out, frit_str source, frit_chat_tokens tokens, const frit_log *log)
{
    *out = NULL;
    if (source.len == 0) return FRIT_OK;
    const family *f = recognise(source);
    if (!f) {
        frit_log_say(log, FRIT_LOG_WARNING, "the chat template is of no family that is known: ChatML is used instead");
        f = &families[FRIT_COUNT(families) - 1];
    }
    frit_chat *chat = calloc(1, sizeof *chat);
    if (!chat) return frit_fail_memory(sizeof *chat, "the chat template");
    chat->family = f;
    chat->bos = copy(&chat->arena, tokens.bos);
    chat->eos = copy(&chat->arena, tokens.eos);
    chat->default_system = copy(&chat->arena, find_default_system(source));
    if (frit_arena_failed(&chat->arena)) {
        frit_chat_free(chat);
        return frit_fail_memory(source.len, "the chat template");
    }
    *out = chat;
    return FRIT_OK;
}

const char *frit_chat_name(const frit_chat *chat)
{
    return chat->family->name;
}

void frit_chat_free(frit_chat *chat)
{
    if (!chat) return;
    frit_arena_free(&chat->arena);
    free(chat);
}

// ------------------------------------------------------------------------------------- rendering

static void put(frit_buf *out, frit_str text)
{
    frit_buf_append(out, text.ptr, text.len);
}

static frit_str content_of(const frit_chat *chat, const frit_message *message)
{
    frit_str text = frit_str_of(message->content);
    if (!(chat->family->flags & TRIM)) return text;
    while (text.len > 0 && strchr(" \t\n\v\f\r", text.ptr[0])) text.ptr++, text.len--;
    while (text.len > 0 && strchr(" \t\n\v\f\r", text.ptr[text.len - 1])) text.len--;
    return text;
}

static frit_status check(const frit_chat *chat, const frit_message *messages, size_t n, bool has_system)
{
    unsigned flags = chat->family->flags;
    if (has_system && (flags & NO_SYSTEM)) return frit_fail(FRIT_E_INVALID, "System role not supported");
    for (size_t i = has_system; (flags & ALTERNATE) && i < n; i++) {
        bool user = strcmp(messages[i].role, "user") == 0;
        if (user != ((i - has_system) % 2 == 0))
            return frit_fail(FRIT_E_INVALID, "Conversation roles must alternate user/assistant/user/assistant/...");
    }
    return FRIT_OK;
}

// `system`: a system message that goes inside this user message, or NULL.
static void write_message(const frit_chat *chat, const frit_message *message, const frit_message *system, frit_buf *out)
{
    const family *f = chat->family;
    bool assistant = strcmp(message->role, "assistant") == 0;
    const brackets *side = assistant ? &f->assistant : strcmp(message->role, "system") == 0 ? &f->system : &f->user;
    if ((f->flags & BOS_EACH) && side == &f->user) put(out, chat->bos);
    frit_buf_text(out, side->open);
    if (system) {
        frit_buf_text(out, f->system.open);
        put(out, content_of(chat, system));
        frit_buf_text(out, f->system.close);
    }
    put(out, content_of(chat, message));
    if (assistant && side->open[0] == ' ' && (f->flags & BOS_EACH)) frit_buf_char(out, ' ');   // Llama 2
    if ((f->flags & EOS_ALL) || (assistant && (f->flags & EOS_CLOSES))) put(out, chat->eos);
    frit_buf_text(out, side->close);
}

frit_status frit_chat_apply(const frit_chat *chat, const frit_message *messages, size_t n,
                            const frit_chat_options *options, frit_buf *out)
{
    const family *f = chat->family;
    bool has_system = n > 0 && strcmp(messages[0].role, "system") == 0;
    FRIT_TRY(check(chat, messages, n, has_system));
    bool inside = f->flags & (SYSTEM_FIRST | SYSTEM_LAST);
    size_t host = has_system ? 1 : n;   // the message that takes the system message in
    for (size_t i = 0; (f->flags & SYSTEM_LAST) && has_system && i < n; i++)
        if (strcmp(messages[i].role, "user") == 0) host = i;
    if (f->flags & BOS) put(out, chat->bos);
    if (!has_system && chat->default_system.len > 0) {
        frit_buf_text(out, f->system.open);
        put(out, chat->default_system);
        frit_buf_text(out, f->system.close);
    }
    for (size_t i = has_system && inside ? 1 : 0; i < n; i++)
        write_message(chat, &messages[i], has_system && inside && i == host ? &messages[0] : NULL, out);
    bool generate = !options || !options->no_generation_prompt;
    if (generate) frit_buf_text(out, f->generate);
    if (!generate && (f->flags & EOS_LAST)) put(out, chat->eos);
    return out->failed ? frit_fail_memory(out->len, "the rendered chat") : FRIT_OK;
}

// SPDX-License-Identifier: MIT
// Chat templates by name, and as the keys of a GGUF file.
#include "text/chat/chat_sources.h"

#define KEY        "tokenizer.chat_template"
#define NAMES_KEY  "tokenizer.chat_templates"
#define DEFAULT    "default"
#define WITH_TOOLS "tool_use"

enum { MOST_NAME_BYTES = 255 };

static bool same(frit_str a, frit_str b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static frit_status copy(frit_str *out, frit_str text, frit_arena *arena)
{
    *out = (frit_str){frit_arena_text(arena, text.ptr, text.len), text.len};
    return out->ptr ? FRIT_OK : frit_fail_memory(text.len, "a chat template");
}

frit_status frit_chat_sources_set(frit_chat_sources *sources, frit_str name, frit_str text, frit_arena *arena)
{
    frit_named_template *at = sources->items, *end = at + sources->n;
    if (text.len == 0) return FRIT_OK;
    if (name.len == 0 || name.len > MOST_NAME_BYTES)
        return frit_fail(FRIT_E_FORMAT, "the name of a chat template has %zu bytes, expected 1 to %d", name.len,
                         MOST_NAME_BYTES);
    while (at < end && !same(at->name, name)) at++;
    if (at == end) {
        if (sources->n == FRIT_MOST_CHAT_SOURCES)
            return frit_fail(FRIT_E_FORMAT, "there are more than %d chat templates", FRIT_MOST_CHAT_SOURCES);
        FRIT_TRY(copy(&at->name, name, arena));
        sources->n++;
    }
    return copy(&at->text, text, arena);
}

// ------------------------------------------------------------------------------------- GGUF

static frit_status read_key(frit_chat_sources *sources, const frit_meta *meta, frit_str name, frit_arena *arena)
{
    frit_buf key = {0};
    frit_str text = {"", 0};
    frit_buf_text(&key, KEY);
    if (!frit_str_is(name, DEFAULT)) frit_buf_printf(&key, ".%.*s", (int)name.len, name.ptr);
    frit_status status = key.failed ? frit_fail_memory(name.len, "the name of a chat template")
                                    : frit_meta_get_text(meta, key.data, &text, NULL);
    frit_buf_free(&key);
    return status == FRIT_OK ? frit_chat_sources_set(sources, name, text, arena) : status;
}

frit_status frit_chat_sources_read(frit_chat_sources *sources, const frit_meta *meta, frit_arena *arena)
{
    const frit_value *names = frit_meta_find(meta, NAMES_KEY);
    FRIT_TRY(read_key(sources, meta, frit_str_of(DEFAULT), arena));
    FRIT_TRY(read_key(sources, meta, frit_str_of(WITH_TOOLS), arena));   // some files have this key without the list
    if (!names) return FRIT_OK;
    if (names->type != FRIT_VALUE_ARRAY || names->array.type != FRIT_VALUE_TEXT)
        return frit_fail(FRIT_E_FORMAT, NAMES_KEY " is no list of texts");
    for (uint64_t i = 0; i < names->array.n; i++) {
        const frit_str name = frit_value_item_text(names, i);
        if (name.len == 0 || name.len > MOST_NAME_BYTES || i >= FRIT_MOST_CHAT_SOURCES)
            return frit_fail(FRIT_E_FORMAT, NAMES_KEY ": expected at most %d names of 1 to %d bytes",
                             FRIT_MOST_CHAT_SOURCES, MOST_NAME_BYTES);
        FRIT_TRY(read_key(sources, meta, name, arena));
    }
    return FRIT_OK;
}

static frit_status write_names(frit_meta *meta, const frit_str *names, uint64_t n)
{
    frit_str *kept = frit_arena_new(meta->arena, frit_str, (size_t)n);
    if (!kept) return frit_fail_memory((size_t)n * sizeof *kept, "the names of chat templates");
    memcpy(kept, names, (size_t)n * sizeof *kept);
    return frit_meta_add(meta, frit_str_of(NAMES_KEY),
                         (frit_value){.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, n, kept}});
}

static frit_status write_text(frit_meta *meta, frit_str name, frit_str text)
{
    frit_buf key = {0};
    frit_buf_text(&key, KEY);
    if (!frit_str_is(name, DEFAULT)) frit_buf_printf(&key, ".%.*s", (int)name.len, name.ptr);
    const char *kept = key.failed ? NULL : frit_arena_text(meta->arena, key.data, key.len);
    const size_t n = key.len;
    frit_buf_free(&key);
    if (!kept) return frit_fail_memory(n, "a metadata key");
    return frit_meta_add(meta, (frit_str){kept, n}, (frit_value){.type = FRIT_VALUE_TEXT, .text = text});
}

frit_status frit_chat_sources_write(const frit_chat_sources *sources, frit_meta *meta)
{
    frit_str others[FRIT_MOST_CHAT_SOURCES];
    uint64_t n = 0;
    for (size_t i = 0; i < sources->n; i++) {
        FRIT_TRY(write_text(meta, sources->items[i].name, sources->items[i].text));
        if (!frit_str_is(sources->items[i].name, DEFAULT)) others[n++] = sources->items[i].name;
    }
    return n > 0 ? write_names(meta, others, n) : FRIT_OK;
}

// ------------------------------------------------------------------------------------- choosing

frit_str frit_chat_sources_find(const frit_chat_sources *sources, const char *name)
{
    for (size_t i = 0; i < sources->n; i++)
        if (frit_str_is(sources->items[i].name, name)) return sources->items[i].text;
    return (frit_str){"", 0};
}

frit_str frit_chat_sources_choose(const frit_chat_sources *sources, bool with_tools)
{
    const frit_str tools = with_tools ? frit_chat_sources_find(sources, WITH_TOOLS) : (frit_str){"", 0};
    if (tools.len > 0) return tools;
    return sources->n == 1 ? sources->items[0].text : frit_chat_sources_find(sources, DEFAULT);
}

void frit_chat_sources_list(const frit_chat_sources *sources, frit_buf *out)
{
    for (size_t i = 0; i < sources->n; i++)
        frit_buf_printf(out, "%s'%.*s'", i > 0 ? ", " : "", (int)sources->items[i].name.len,
                        sources->items[i].name.ptr);
}

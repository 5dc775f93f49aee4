// SPDX-License-Identifier: MIT
// The pictures of a conversation. In its messages, a picture is a part {"type": "image", "path": FILE} before the text.
// A picture is encoded when it is named, and kept as long as a message has its part, so a file that changes later
// changes no earlier message.
#include "frit/chat/chat.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Identifies a picture by the address of its part, which is kept alive.
typedef struct picture {
    json_t *part;
    frit_media *media;
} picture;

struct chat_pictures {
    picture *list;
    size_t n;
    json_t *waiting;   // parts for the next message
    uint32_t max_tokens;
};

static bool is_image(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type && strcmp(type, "image") == 0;
}

static const char *path_of(const json_t *part)
{
    return json_string_value(json_object_get(part, "path"));
}

static picture *find(const chat_pictures *p, const json_t *part)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].part == part) return &p->list[i];
    return NULL;
}

static bool add(chat_pictures *p, json_t *part, frit_media *media)
{
    picture *list = realloc(p->list, (p->n + 1) * sizeof *list);
    if (!list) return false;
    p->list = list;
    list[p->n++] = (picture){json_incref(part), media};
    return true;
}

static void drop_from(chat_pictures *p, size_t n)
{
    while (p->n > n) {
        frit_media_free(p->list[--p->n].media);
        json_decref(p->list[p->n].part);
    }
}

chat_pictures *chat_pictures_new(uint32_t max_tokens)
{
    chat_pictures *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->max_tokens = max_tokens;
    p->waiting = json_array();
    if (p->waiting) return p;
    free(p);
    return NULL;
}

void chat_pictures_free(chat_pictures *p)
{
    if (!p) return;
    drop_from(p, 0);
    free(p->list);
    json_decref(p->waiting);
    free(p);
}

// ---------------------------------------------------------------------------------------- opening

static int open_part(chat *c, json_t *part)
{
    chat_pictures *p = c->pictures;
    frit_media *media;
    const frit_media_options options = {.max_tokens = p->max_tokens};
    if (!path_of(part)) return cli_fail("a picture without \"path\", which names its file");
    const int code = cli_encode_image(&media, c->engine, c->common, path_of(part), &options);
    if (code != CLI_DONE) return code;
    if (add(p, part, media)) return CLI_DONE;
    frit_media_free(media);
    return cli_no_memory();
}

// Returns part i of a message's content, or NULL past the end.
static json_t *part_of(const json_t *message, size_t i)
{
    return json_array_get(json_object_get(message, "content"), i);
}

int chat_pictures_open(chat *c, const json_t *messages)
{
    chat_pictures *p = c->pictures;
    const size_t n_before = p->n;
    json_t *part;
    for (size_t i = 0; i < json_array_size(messages); i++)
        for (size_t k = 0; (part = part_of(json_array_get(messages, i), k)); k++) {
            const int code = is_image(part) && !find(p, part) ? open_part(c, part) : CLI_DONE;
            if (code == CLI_DONE) continue;
            drop_from(p, n_before);
            return code;
        }
    return CLI_DONE;
}

static bool has_part(const json_t *messages, const json_t *part)
{
    const json_t *other;
    for (size_t i = 0; i < json_array_size(messages); i++)
        for (size_t k = 0; (other = part_of(json_array_get(messages, i), k)); k++)
            if (other == part) return true;
    return false;
}

// Frees the pictures that no message has, and that do not wait for one.
static void free_unused(const chat *c)
{
    chat_pictures *p = c->pictures;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        bool is_used = has_part(c->messages, p->list[i].part);
        for (size_t k = 0; k < json_array_size(p->waiting); k++)
            is_used = is_used || json_array_get(p->waiting, k) == p->list[i].part;
        const picture kept = p->list[n];
        p->list[n] = p->list[i];
        p->list[i] = kept;
        n += is_used;
    }
    drop_from(p, n);
}

int chat_pictures_wait(chat *c, const char *path)
{
    if (c->session_path) {
        chat_say("a chat with --session takes no pictures: its file cannot hold them");
        return CLI_FAILED;
    }
    if (c->shift.on) {
        chat_say("a chat with --context-shift takes no pictures: their tokens cannot be dropped one by one");
        return CLI_FAILED;
    }
    free_unused(c);
    json_t *part = json_pack("{s:s, s:s}", "type", "image", "path", path);
    if (!part) {
        chat_say("the name of the file is not UTF-8");
        return CLI_FAILED;
    }
    int code = open_part(c, part);
    if (code == CLI_DONE && json_array_append(c->pictures->waiting, part) != 0) code = cli_no_memory();
    json_decref(part);
    return code;
}

size_t chat_pictures_waiting(const chat *c)
{
    return json_array_size(c->pictures->waiting);
}

void chat_pictures_forget(chat *c)
{
    json_array_clear(c->pictures->waiting);
}

bool chat_pictures_names_one(const char *path)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg", ".webp", ".gif"};
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending && i < CLI_COUNT(endings); i++)
        if (strcasecmp(ending, endings[i]) == 0) return true;
    return false;
}

// ---------------------------------------------------------------------------------------- messages

json_t *chat_pictures_content(chat *c, const char *text)
{
    if (chat_pictures_waiting(c) == 0) return json_string(text);
    json_t *content = json_copy(c->pictures->waiting), *part = json_pack("{s:s, s:s}", "type", "text", "text", text);
    if (content && part && json_array_append(content, part) == 0) {
        json_array_clear(c->pictures->waiting);
    } else {
        json_decref(content);
        content = NULL;
    }
    json_decref(part);
    return content;
}

void chat_pictures_take_back(chat *c, const json_t *message)
{
    json_t *part;
    size_t n = 0;
    for (size_t k = 0; (part = part_of(message, k)); k++)
        if (is_image(part)) json_array_insert(c->pictures->waiting, n++, part);
}

const char *chat_pictures_path(const json_t *message, size_t i)
{
    const json_t *part;
    for (size_t k = 0; (part = part_of(message, k)); k++)
        if (is_image(part) && i-- == 0) return path_of(part) ? path_of(part) : "?";
    return NULL;
}

frit_media **chat_pictures_of(const chat *c, const json_t *messages, size_t *n)
{
    frit_media **media = calloc(c->pictures->n + 1, sizeof *media);
    const json_t *part;
    *n = 0;
    for (size_t i = 0; media && i < json_array_size(messages); i++)
        for (size_t k = 0; (part = part_of(json_array_get(messages, i), k)); k++) {
            const picture *one = is_image(part) ? find(c->pictures, part) : NULL;
            if (one && *n < c->pictures->n) media[(*n)++] = one->media;
        }
    return media;
}

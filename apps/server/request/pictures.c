// SPDX-License-Identifier: MIT
// Pictures of requests: from parts of messages to frit_media.
#include "server/request/pictures.h"

#include "server/request/base64.h"
#include "server/request/conversation.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char form[] = "data:image/jpeg;base64,...";

// ---------------------------------------------------------------------------------------- parts

bool server_is_picture(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type && strcmp(type, "image") == 0 && json_object_get(part, "data");
}

static json_t *make_part(json_t *data, const char *detail, const char *field)
{
    return json_pack("{s:s, s:O, s:s, s:s}", "type", "image", "data", data, "detail", detail, "field", field);
}

static const char *read_detail(const json_t *detail, const char *field, server_problem *problem)
{
    static const char *const names[] = {"auto", "low", "high"};
    const char *name = json_string_value(detail);
    if (!detail || json_is_null(detail)) return names[0];
    for (size_t i = 0; name && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return names[i];
    server_refuse(problem, 400, "invalid_value", field, "%s: the detail is '%.64s', expected low, high or auto", field,
                  name ? name : "");
    return NULL;
}

static bool is_address(const char *url)
{
    static const char *const schemes[] = {"http:", "https:", "file:", "ftp:"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0) return true;
    return false;
}

// The index at which the base64 of a data URI begins; 0: it is no data URI of a picture.
static size_t find_data(const char *url, size_t n)
{
    static const char begin[] = "data:image/", end[] = ";base64,";
    if (n < sizeof begin || strncasecmp(url, begin, sizeof begin - 1) != 0) return 0;
    const char *comma = memchr(url, ',', n < 256 ? n : 256);
    const size_t at = comma ? (size_t)(comma + 1 - url) : 0, n_end = sizeof end - 1;
    return at > n_end && strncasecmp(url + at - n_end, end, n_end) == 0 ? at : 0;
}

json_t *server_picture_of_url(json_t *url, const json_t *detail, const char *field, server_problem *problem)
{
    const char *text = json_string_value(url);
    const char *how = read_detail(detail, field, problem);
    if (!how) return NULL;
    if (!text)
        server_refuse(problem, 400, "invalid_type", field, "%s: expected the picture as a data URI, %s", field, form);
    else if (is_address(text))
        server_refuse(problem, 400, "unsupported_value", field,
                      "%s: '%.80s' is an address, and frit fetches no pictures: send a data URI, %s", field, text,
                      form);
    else if (find_data(text, json_string_length(url)) == 0)
        server_refuse(problem, 400, "invalid_value", field,
                      "%s: '%.24s' is no data URI of a picture, expected %s with the file in base64", field, text,
                      form);
    else
        return make_part(url, how, field);
    return NULL;
}

json_t *server_picture_of_base64(json_t *base64, const char *field, server_problem *problem)
{
    const char *text = json_string_value(base64);
    if (text && !is_address(text)) return make_part(base64, "auto", field);
    if (text)
        server_refuse(problem, 400, "unsupported_value", field,
                      "%s: '%.80s' is an address, and frit fetches no pictures: send the file in base64", field, text);
    else
        server_refuse(problem, 400, "invalid_type", field, "%s: expected a picture, the file in base64", field);
    return NULL;
}

// Calls a function for the pictures of messages, until it returns false.
typedef bool (*picture_fn)(void *ctx, json_t *part);
static bool each_picture(const json_t *messages, picture_fn call, void *ctx)
{
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");
        for (size_t k = 0; k < json_array_size(content); k++)
            if (server_is_picture(json_array_get(content, k)) && !call(ctx, json_array_get(content, k))) return false;
    }
    return true;
}

static bool is_none(void *ctx, json_t *part)
{
    (void)ctx, (void)part;
    return false;
}

static bool rename_picture(void *field, json_t *part)
{
    return json_object_set_new(part, "field", json_string(field)) == 0;
}

bool server_pictures_rename(const json_t *messages, const char *field)
{
    return each_picture(messages, rename_picture, (void *)(uintptr_t)field);
}

// The content with parts {"type": "image"}.
static json_t *strip_content(const json_t *content)
{
    json_t *list = json_array();
    for (size_t k = 0; k < json_array_size(content); k++) {
        json_t *part = json_array_get(content, k);
        part = server_is_picture(part) ? json_pack("{s:s}", "type", "image") : json_incref(part);
        if (json_array_append_new(list, part) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *server_without_pictures(json_t *root)
{
    const json_t *messages = json_object_get(root, "messages");
    if (each_picture(messages, is_none, NULL)) return json_incref(root);
    json_t *copy = json_copy(root), *list = json_array();
    bool good = copy && list;
    for (size_t i = 0; i < json_array_size(messages) && good; i++) {
        json_t *message = json_copy(json_array_get(messages, i)), *content = json_object_get(message, "content");
        good = !json_is_array(content) || json_object_set_new(message, "content", strip_content(content)) == 0;
        good = json_array_append_new(list, message) == 0 && good;
    }
    if (json_object_set_new(copy, "messages", list) == 0 && good) return copy;
    json_decref(copy);
    return NULL;
}

// ---------------------------------------------------------------------------------------- decoding

typedef struct preparing {
    server_pictures *pictures;
    const server_picture_rules *rules;
    uint64_t n_pixels;   // so far
    server_problem *problem;
} preparing;

static bool refuse_picture(server_problem *problem, const char *field, frit_status status)
{
    if (status == FRIT_E_MEMORY) return server_refuse_status(problem, 500, NULL, status);
    return server_refuse(problem, 400, status == FRIT_E_LIMIT ? "picture_too_large" : "invalid_image", field, "%s: %s",
                         field, frit_error());
}

// Decodes the base64 of a part. NULL with a problem.
static unsigned char *decode_base64(const json_t *part, const char *field, size_t *n_bytes, server_problem *problem)
{
    const json_t *data = json_object_get(part, "data");
    const char *text = json_string_value(data);
    const size_t n = json_string_length(data), from = find_data(text, n);
    size_t at;
    if ((n - from) / 4 * 3 > SERVER_MAX_PICTURE_BYTES + 3) {
        server_refuse(problem, 400, "picture_too_large", field,
                      "%s: the picture's file has %zu bytes; expected at most %d", field, (n - from) / 4 * 3,
                      SERVER_MAX_PICTURE_BYTES);
        return NULL;
    }
    unsigned char *bytes = malloc(server_base64_bytes(n - from));
    if (!bytes) {
        server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
        return NULL;
    }
    if (server_base64_decode(text + from, n - from, bytes, n_bytes, &at)) return bytes;
    free(bytes);
    if (from == 0 && strncasecmp(text, "data:", 5) == 0)
        server_refuse(problem, 400, "invalid_value", field, "%s: the picture is a data URI, expected base64 alone",
                      field);
    else
        server_refuse(problem, 400, "invalid_value", field,
                      "%s: the picture is no base64, from character %zu of %zu on", field, at, n - from);
    return NULL;
}

// Opens the picture of a part within what the pictures before it have left. NULL with a problem.
static frit_image *open_picture(const preparing *p, const json_t *part, const char *field)
{
    const uint64_t left = SERVER_MAX_ALL_PIXELS - p->n_pixels;
    const frit_image_limits limits = {.max_bytes = SERVER_MAX_PICTURE_BYTES,
                                      .max_pixels =
                                          left < SERVER_MAX_PICTURE_PIXELS ? left : SERVER_MAX_PICTURE_PIXELS};
    size_t n_bytes;
    frit_image *image = NULL;
    if (left == 0) {
        server_refuse(p->problem, 400, "picture_too_large", field,
                      "%s: the pictures before it have %d pixels together, the most of a request", field,
                      SERVER_MAX_ALL_PIXELS);
        return NULL;
    }
    unsigned char *bytes = decode_base64(part, field, &n_bytes, p->problem);
    if (!bytes) return NULL;
    const frit_status status = frit_image_open_memory(&image, bytes, n_bytes, &limits);
    free(bytes);
    if (status == FRIT_OK) return image;
    if (status == FRIT_E_LIMIT && left < SERVER_MAX_PICTURE_PIXELS)
        server_refuse(p->problem, 400, "picture_too_large", field,
                      "%s: %s: all pictures of a request have at most %d pixels together", field, frit_error(),
                      SERVER_MAX_ALL_PIXELS);
    else
        refuse_picture(p->problem, field, status);
    return NULL;
}

// Counts a picture among those of all requests.
static bool take_memory(server_pictures *pictures, uint64_t n_bytes, server_problem *problem)
{
    const uint64_t most = (uint64_t)SERVER_MAX_WAITING_MIB << 20;
    if (!pictures->memory) return true;
    pictures->n_bytes += n_bytes;   // given back when the pictures are freed
    if (atomic_fetch_add(&pictures->memory->n_bytes, n_bytes) + n_bytes <= most) return true;
    server_refuse(problem, 503, "too_many_pictures", NULL, "the pictures of requests that wait have %d MiB together",
                  SERVER_MAX_WAITING_MIB);
    problem->retry_after = 1;
    return false;
}

static frit_media_options options_of(const server_picture_rules *rules, const json_t *part)
{
    frit_media_options options = {.max_tokens = rules->max_tokens, .salt = rules->salt};
    const bool is_low = strcmp(json_string_value(json_object_get(part, "detail")), "low") == 0;
    if (is_low && (options.max_tokens == 0 || options.max_tokens > SERVER_LOW_TOKENS))
        options.max_tokens = SERVER_LOW_TOKENS;
    return options;
}

static bool prepare_picture(void *ctx, json_t *part)
{
    preparing *p = ctx;
    server_pictures *pictures = p->pictures;
    const char *field = json_string_value(json_object_get(part, "field"));
    if (p->rules->why_not)
        return server_refuse(p->problem, 400, "unsupported_parameter", field, "%s: %s", field, p->rules->why_not);
    if (pictures->n == SERVER_MAX_PICTURES)
        return server_refuse(p->problem, 400, "invalid_value", field, "%s: a request has at most %d pictures", field,
                             SERVER_MAX_PICTURES);
    frit_image *image = open_picture(p, part, field);
    uint32_t width, height;
    if (!image) return false;
    frit_image_get_size(image, &width, &height);
    p->n_pixels += (uint64_t)width * height;
    const frit_media_options options = options_of(p->rules, part);
    frit_media *media;
    const frit_status status = frit_media_prepare(&media, p->rules->model, image, &options);
    frit_image_free(image);
    if (status != FRIT_OK) return refuse_picture(p->problem, field, status);
    size_t n_tokens;
    frit_media_tokens(media, &n_tokens);
    pictures->n_tokens += n_tokens;
    pictures->items[pictures->n++] = (server_picture){json_incref(part), media};
    return take_memory(pictures, frit_media_bytes(media), p->problem);
}

bool server_pictures_prepare(server_pictures **pictures, const server_body *body, const server_picture_rules *rules,
                             server_problem *problem)
{
    const json_t *messages = json_object_get(body->root, "messages");
    if (*pictures || each_picture(messages, is_none, NULL)) return true;
    *pictures = calloc(1, sizeof **pictures);
    if (!*pictures) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    (*pictures)->memory = rules->memory;
    preparing p = {.pictures = *pictures, .rules = rules, .problem = problem};
    return each_picture(messages, prepare_picture, &p);
}

// ---------------------------------------------------------------------------------------- prepared pictures

typedef struct listing {
    const server_pictures *pictures;
    frit_media **media;
    size_t n;
} listing;

static bool list_picture(void *ctx, json_t *part)
{
    listing *l = ctx;
    for (size_t i = 0; i < l->pictures->n; i++)
        if (l->pictures->items[i].part == part) {
            if (l->n < SERVER_MAX_PICTURES) l->media[l->n++] = l->pictures->items[i].media;
            return true;
        }
    return true;
}

size_t server_pictures_list(const server_pictures *pictures, const server_body *body,
                            frit_media *media[SERVER_MAX_PICTURES])
{
    listing l = {pictures, media, 0};
    if (pictures) each_picture(json_object_get(body->root, "messages"), list_picture, &l);
    return l.n;
}

void server_pictures_drop_data(server_pictures *pictures)
{
    for (size_t i = 0; pictures && i < pictures->n; i++) {
        json_t *part = pictures->items[i].part;
        json_string_setn_nocheck(json_object_get(part, "data"), "", 0);
        json_decref(part);
        pictures->items[i].part = NULL;
    }
}

void server_pictures_free(server_pictures *pictures)
{
    if (!pictures) return;
    for (size_t i = 0; i < pictures->n; i++) {
        json_decref(pictures->items[i].part);
        frit_media_free(pictures->items[i].media);
    }
    if (pictures->memory) atomic_fetch_sub(&pictures->memory->n_bytes, pictures->n_bytes);
    free(pictures);
}

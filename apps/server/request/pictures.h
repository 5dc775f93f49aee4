// SPDX-License-Identifier: MIT
// server/request/pictures.h: pictures in the messages of requests.
//
// The parsers of all protocols turn a picture into a part of a message in one form:
//
//     {"type": "image", "data": "data:image/png;base64,...", "detail": "low", "field": "messages[1].content[0]"}
//
// server_pictures_prepare decodes them, on the thread that reads the request. frit_turn_new_with_media gets the parts
// without data, as templates know them. Pictures are found again by the address of their part, so messages may be
// removed, or put before others.
#pragma once
#include "frit.h"
#include "server/request/fields.h"

enum {
    SERVER_MAX_PICTURES = 32,               // of a request
    SERVER_MAX_PICTURE_BYTES = 20 << 20,    // of a file
    SERVER_MAX_PICTURE_PIXELS = 64 << 20,   // of a picture
    SERVER_MAX_ALL_PIXELS = 256 << 20,      // of all pictures of a request
    SERVER_MAX_WAITING_MIB = 1024,          // of decoded pictures of all requests, until their sessions have them
    SERVER_LOW_TOKENS = 256,                // of a picture with the detail "low"
};

// Make the part of a picture: of a data URI, or of base64 alone. NULL with a problem that names `field`. `detail` may
// be NULL.
json_t *server_picture_of_url(json_t *url, const json_t *detail, const char *field, server_problem *problem);
json_t *server_picture_of_base64(json_t *base64, const char *field, server_problem *problem);
bool server_is_picture(const json_t *part);
// Gives all pictures of messages another field. False: no memory.
bool server_pictures_rename(const json_t *messages, const char *field);
// The conversation without the data of its pictures: a new reference, to `root` itself if it has no pictures. NULL: no
// memory.
json_t *server_without_pictures(json_t *root);

typedef struct server_picture_memory {   // decoded pictures of all requests
    _Atomic uint64_t n_bytes;
} server_picture_memory;

typedef struct server_picture_rules {
    const frit_model *model;
    const char *why_not;   // why it reads no pictures; NULL: it reads them
    uint32_t max_tokens;   // of a picture; 0: the model's
    const char *salt;      // only pictures with equal salts share features; NULL: no salt
    server_picture_memory *memory;
} server_picture_rules;

typedef struct server_picture {
    json_t *part;   // a reference; NULL: taken by a job
    frit_media *media;
} server_picture;

typedef struct server_pictures {
    server_picture items[SERVER_MAX_PICTURES];
    size_t n;
    size_t n_tokens;   // of all pictures
    uint64_t n_bytes;
    server_picture_memory *memory;
} server_pictures;

// Decodes the pictures of the conversation in the body, unless *pictures is set already. *pictures stays NULL if there
// are none. False with a problem.
bool server_pictures_prepare(server_pictures **pictures, const server_body *body, const server_picture_rules *rules,
                             server_problem *problem);
// Writes the pictures of the body's conversation, in order: those that are left of the ones that were prepared. Returns
// their number.
size_t server_pictures_list(const server_pictures *pictures, const server_body *body,
                            frit_media *media[SERVER_MAX_PICTURES]);
// Frees the texts that the pictures were decoded from.
void server_pictures_drop_data(server_pictures *pictures);
void server_pictures_free(server_pictures *pictures);   // NULL is allowed

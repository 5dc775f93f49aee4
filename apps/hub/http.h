// SPDX-License-Identifier: MIT
// hub/http.h: requests. Redirects are followed here and not by libcurl: a token goes to the server that it is for (same
// scheme, host and port) and to no other, and an https address never leads to an http one.
#pragma once
#include "hub/hub.h"

typedef struct hub_head {   // what a reply says of a file
    long status;
    uint64_t n_bytes;                                 // of the body; UINT64_MAX: unknown
    uint64_t begin, total;                            // of Content-Range; UINT64_MAX: not said
    char etag[256], linked_etag[256], modified[64];   // as they stand there
    uint64_t linked_bytes;
    char commit[64];
    char location[HUB_PATH_BYTES];
    int retry_s;   // -1: not said
} hub_head;

typedef struct hub_request {
    const char *url;
    const char *token;    // for the server of `url`; NULL or "": none
    const char *accept;   // NULL: anything
    const hub_watch *watch;
    bool head_only;
    bool follows_near;   // redirects within the server only
    size_t max_bytes;    // of the body
} hub_request;

typedef struct hub_reply {
    hub_head head;
    char *body;   // malloc'd
    size_t n;
} hub_reply;

// HUB_OK whatever the reply's status is. HUB_E_NETWORK: no reply came.
hub_status hub_http_get(const hub_request *request, hub_reply *reply);
void hub_reply_free(hub_reply *reply);
// The sentence for a status that is no success: what is refused, and what to do. `what`: the model or file.
hub_status hub_http_refused(const hub_head *head, const char *url, const char *what, bool has_token);
// "host:port" of an address, for sentences.
void hub_host_of(const char *url, char out[256]);
// Scheme, host and port are the same.
bool hub_same_server(const char *a, const char *b);

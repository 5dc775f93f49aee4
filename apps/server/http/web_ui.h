// SPDX-License-Identifier: MIT
// server/http/web_ui.h: the files of the web UI, which are embedded in the program. cmake/FritWebUi.cmake writes the
// table from the bundle of apps/server/web_ui/build.mjs, or from apps/server/web_ui/plain if Node.js or the libraries
// of the web UI are absent.
#pragma once
#include <stddef.h>

struct MHD_Response;

typedef struct server_asset {
    const char *name;       // "index.html"
    const char *encoding;   // "gzip", or NULL
    const char *etag;       // in quotes
    const unsigned char *bytes;
    size_t n_bytes;
} server_asset;

extern const server_asset server_assets[];
extern const size_t server_n_assets;

// NULL if no file has that name.
const server_asset *server_asset_find(const char *name);
const char *server_asset_type(const server_asset *asset);
// The answer to a request with these headers (NULL: absent) and its status: 200, 304, or 406 for a client that cannot
// read the encoding. NULL: no memory.
struct MHD_Response *server_asset_response(const server_asset *asset, const char *accept_encoding,
                                           const char *if_none_match, unsigned *status);

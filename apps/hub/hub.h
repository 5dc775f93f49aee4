// SPDX-License-Identifier: MIT
// hub/hub.h: models by name.
//
// A name says where a model comes from: "hf:org/repo:Q4_K_M", "ollama:llama3.2:1b", "https://host/model.gguf". A source
// (sources.c) is a row of functions and a file: it reads names, finds models on this machine, fetches, lists and
// removes them. Models of the Hugging Face hub are stored in the hub's own cache, models of ollama in ollama's own
// store, so that frit and other programs find each other's models.
//
// Nothing here prints: a failure is a status and an error (hub_error), and progress is reported through a hub_watch.
// Names from files and servers are checked before they become a part of a path (name.h).
#pragma once
#include "frit_tools.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t;

typedef enum hub_status {
    HUB_OK,
    HUB_E_NAME,        // not a name, or a name of several models
    HUB_E_NOT_FOUND,   // there is no such model
    HUB_E_DENIED,      // a token or a permission is missing
    HUB_E_NETWORK,     // no connection, or the server cannot answer now
    HUB_E_DISK,        // a file cannot be written or read, or has no room
    HUB_E_DATA,        // unexpected data was received
    HUB_E_LIMIT,       // no quantization fits
    HUB_E_MEMORY,
    HUB_E_CANCELLED,
    HUB_E_UNSUPPORTED,   // this build does not support it
} hub_status;

// Stores the error of this thread; the value is the status.
hub_status hub_fail(hub_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *hub_error(void);
// hub_fail with HUB_E_DISK for lack of space: the disk is full, or the user's quota or limit is reached.
hub_status hub_fail_full(const char *path, const char *what, const char *why);
// True if the thread's last failure was a lack of space.
bool hub_error_is_full(void);

// A path or an address. Longer ones are refused.
enum { HUB_PATH_BYTES = 4096 };
typedef struct hub_path {
    char text[HUB_PATH_BYTES];
} hub_path;
hub_status hub_path_set(hub_path *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Locations of caches and servers, from the environment (settings.c).
enum { HUB_MAX_FOLDERS = 4 };
typedef struct hub_settings {
    hub_path hub_cache, hub_endpoint;   // of the Hugging Face hub; no '/' at the end
    char hub_token[512];                // "": none
    hub_path url_cache;                 // files of other addresses
    hub_path short_names;               // the user's table
    hub_path ollama[HUB_MAX_FOLDERS];   // stores of ollama; new models go to the first one
    size_t n_ollama;
    hub_path ollama_registry;
    hub_path studio[HUB_MAX_FOLDERS];   // folders of LM Studio
    size_t n_studio;
    bool offline;
} hub_settings;
hub_status hub_settings_read(hub_settings *settings);

typedef struct hub_source hub_source;

typedef struct hub_name {
    const hub_source *source;
    char repo[256];       // "org/repo"; for ollama: "library/llama3.2"
    char host[256];       // of ollama's registry; "": the usual one
    char revision[128];   // "main"; for ollama: the tag
    char part[1024];      // a file or a quantization; "": none
    hub_path url;         // address of a file
} hub_name;

// Callbacks to report progress, and to stop.
typedef struct hub_watch {
    bool (*stops)(void *ctx);
    void (*say)(void *ctx, const char *sentence);
    // Reports `done` of `total` bytes that are fetched (or, if `checks`, read again) for this name.
    void (*progress)(void *ctx, const char *name, uint64_t done, uint64_t total, bool checks);
    void *ctx;
} hub_watch;

typedef struct hub_pull {
    const hub_settings *settings;
    const char *typed;     // the name as given, for errors
    uint64_t room_bytes;   // of memory, for the choice of a quantization; 0: unknown
    const char *sha256;    // expected digest of a file at an address, in hexadecimal digits; NULL: unknown
    int n_connections;     // at once, for one file; 0: 4
    hub_watch watch;
} hub_pull;

// A model on this machine.
typedef struct hub_model {
    const char *name;   // the name that finds the model
    const char *path;
    uint64_t n_bytes;
    int64_t changed;   // seconds since 1970
} hub_model;
typedef void (*hub_each_fn)(void *ctx, const hub_model *model);

struct hub_source {
    const char *prefix;                                      // of its names: "hf:"
    const char *title;                                       // "Hugging Face hub"
    hub_status (*parse)(hub_name *name, const char *rest);   // `rest`: after the prefix
    // Finds the model's path; HUB_E_NOT_FOUND if it is not on this machine.
    hub_status (*find)(const hub_settings *settings, const hub_name *name, hub_path *out);
    hub_status (*pull)(const hub_pull *pull, const hub_name *name, hub_path *out);   // NULL: the source has no server
    hub_status (*each)(const hub_settings *settings, hub_each_fn each, void *ctx);
    hub_status (*remove)(const hub_settings *settings, const hub_name *name, uint64_t *freed);   // NULL: another source
                                                                                                 // removes its models
    // Describes a model on this machine or at the server as JSON: "rows" of texts, in the order of display.
    hub_status (*show)(const hub_pull *pull, const hub_name *name, struct json_t **out);
};

const hub_source *hub_source_get(size_t i);   // NULL past the end
bool hub_is_name(const char *text);           // starts with the prefix of a source, or is an address that a source
                                              // reads
// Reads a name, or a short name of the user's table, which is replaced first. HUB_E_NOT_FOUND: neither.
hub_status hub_name_read(const hub_settings *settings, const char *text, hub_name *out);
// Finds the meaning that a text without a prefix has in other programs: "hf:ORG/REPO:Q4_K_M" for "ORG/REPO:Q4_K_M",
// "ollama:MODEL:TAG" for "MODEL:TAG". HUB_E_NOT_FOUND: none.
hub_status hub_guess_name(const char *text, hub_path *out);
// Writes the name in the form of hub_model.name.
hub_status hub_name_text(const hub_name *name, hub_path *out);

extern const hub_source hub_source_hf, hub_source_ollama, hub_source_studio, hub_source_https, hub_source_http;

// SPDX-License-Identifier: MIT
// server/sched/loading.h: models come and go. Any thread.
//
//     request --> server_models_await --> held: the model is there, and stays until server_models_release
//                                    \--> waits: a thread loads the model, then calls the waiter, whose model is held
//
// One thread loads and frees models, one after the other, in the order in which they were asked for. A second one
// watches the clients that wait, and the time that models are idle. Where there is no room for a model (max_models, or
// its engine finds no memory), the idle one that was used longest ago is freed. If none is idle, new requests of the
// one that was used longest ago wait, and it is freed when those that it has are done: so models take turns.
#pragma once
#include "server/sched/worker.h"

typedef struct server_models server_models;

typedef struct server_format {   // what answers may be where a request does not say
    const char *text;            // NULL: anything
    size_t n;
    frit_grammar_kind kind;
    const char *option;   // that says so
    bool open_objects;    // of all schemas, those of requests too
} server_format;

typedef struct server_model {   // a model that is served
    const char *name;           // in answers: the first alias, or its stem
    frit_option_list aliases;   // names in requests, beside its stem
    char *stem;                 // what its source calls it, or the name of its file without the ending
    const char *path;
    server_metrics *metrics;
    int64_t started;   // of the server, in seconds since 1970
    // Only while it is held:
    frit_model *model;
    frit_model_info info;
    int32_t n_ctx;
    frit_sampler_options sampling;
    server_format format;
    server_adapters adapters;
    server_worker *worker;
    struct server_grammars *grammars;
} server_model;

typedef struct server_loaded {   // what a source gives
    frit_model *model;
    frit_engine *engine;             // of the worker's thread from here on
    frit_sampler_options sampling;   // of requests that say nothing else
    server_format format;            // likewise
    server_adapters adapters;        // that requests may choose
    server_worker_options worker;    // without adapters and metrics
    void *owned;                     // by the source
} server_loaded;

typedef enum server_opened { SERVER_OPENED, SERVER_OPEN_NO_MEMORY, SERVER_OPEN_FAILED } server_opened;

enum { SERVER_MAX_SENTENCE = 512 };

typedef struct server_source {   // where a model comes from
    const char *name;            // NULL: its file's
    const char *path;
    frit_option_list aliases;
    // Loads the model, or says in a sentence why that is not possible. Called on one thread at a time.
    server_opened (*open)(const struct server_source *source, server_loaded *out, char sentence[SERVER_MAX_SENTENCE]);
    void (*close)(const struct server_source *source, server_loaded *loaded);
    void *ctx;
} server_source;

typedef struct server_models_options {
    const server_source *sources;   // [n], must outlive the models
    size_t n;
    const server_loaded *first;   // of the first source; taken over
    int32_t max_models;           // that are loaded at once; 0: as many as there is memory for
    int32_t idle_s;               // a model without requests is freed after so many seconds; 0: never
    int32_t max_waiting;          // requests that wait for models
} server_models_options;

// A request that waits. Both functions may be called on any thread.
typedef struct server_waiter {
    // With a problem (of status 499: the client is gone), or the model is held. The waiter is the caller's again.
    void (*ready)(struct server_waiter *waiter, const server_problem *problem);
    bool (*is_gone)(struct server_waiter *waiter);
    // The list's own:
    const server_model *model;
    struct server_waiter *next;
} server_waiter;

typedef struct server_model_status {
    const char *value;   // "loaded", "loading", "unloaded"
    bool failed;         // the last attempt to load it
} server_model_status;

bool server_models_new(server_models **out, const server_models_options *options, server_problem *problem);
const server_model *server_models_all(const server_models *models, size_t *n);

// "dir/model-q4.gguf" is "model-q4", "dir/model/" is "model"; malloc'd.
char *server_stem(const char *path);

// Holds the model if it is there, for a request (which counts as use), or for a moment to look at it.
bool server_models_hold(server_models *models, const server_model *model, bool is_used);
// The latter, and how the model was in that moment.
bool server_models_look(server_models *models, const server_model *model, server_model_status *status);
void server_models_release(server_models *models, const server_model *model, bool is_used);
// True: the model is held. False without a problem: the waiter's function will be called, if it was not already.
bool server_models_await(server_models *models, const server_model *model, server_waiter *waiter,
                         server_problem *problem);
// Begins to load the model; frees it. False with a problem if it is there already, or not there, or has requests.
bool server_models_load(server_models *models, const server_model *model, server_problem *problem);
bool server_models_unload(server_models *models, const server_model *model, server_problem *problem);

// Of all models, with the requests that wait for one.
server_load server_models_load_of_all(server_models *models);

// As those of workers, for all of them.
void server_models_drain(server_models *models);
void server_models_cut(server_models *models);
bool server_models_are_idle(server_models *models);
bool server_models_are_loading(server_models *models);   // server_models_free waits for it
void server_models_free(server_models *models);          // after the last one was released

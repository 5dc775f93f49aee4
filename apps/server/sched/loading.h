// SPDX-License-Identifier: MIT
// server/sched/loading.h: the models that are served, which are loaded when requests need them. Any thread.
//
//     request --> server_models_await --> held: the model is loaded, and stays so until server_models_release
//                                    \--> waits: a thread loads the model, holds it for the waiter, and calls the
// waiter
//
// One thread loads and frees models, one after the other, in the order of the first requests for them. A second thread
// watches the clients that wait, and how long models are idle. If there is no room for a model (max_models, or its
// engine finds no memory), the least recently used idle model is freed. If no model is idle, new requests for the least
// recently used one wait, and it is freed when its running requests are done.
#pragma once
#include "server/sched/worker.h"

typedef struct server_models server_models;

typedef struct server_format {   // the format of answers to requests without one
    const char *text;            // NULL: any text
    size_t n;
    frit_grammar_kind kind;
    const char *option;   // that sets the format
    bool open_objects;    // for all schemas, also those of requests
} server_format;

typedef struct server_model {   // a served model
    const char *name;           // in replies: the first alias, or the stem
    frit_option_list aliases;   // names in requests, beside the stem
    char *stem;                 // the name of the source, or that of the file without its ending
    const char *path;
    server_metrics *metrics;
    int64_t started;   // when the server started: seconds since 1970
    // Valid while the model is held:
    frit_model *model;
    frit_model_info info;
    int32_t n_ctx;
    frit_sampler_options sampling;
    server_format format;
    server_adapters adapters;
    char why_no_pictures[256];   // "": the model reads pictures
    uint32_t image_tokens;       // most of a picture; 0: as the model's files say
    server_worker *worker;
    struct server_grammars *grammars;
} server_model;

typedef struct server_loaded {   // a model as its source gives it
    frit_model *model;
    frit_engine *engine;             // used by the worker's thread alone
    frit_sampler_options sampling;   // defaults of requests
    server_format format;            // default of requests
    server_adapters adapters;        // requests may choose among them
    uint64_t media_cache;            // bytes of features of pictures that are kept
    uint32_t image_tokens;           // most tokens of a picture; 0: as the model's files say
    server_worker_options worker;    // without adapters and metrics
    void *owned;                     // data of the source
} server_loaded;

typedef enum server_opened { SERVER_OPENED, SERVER_OPEN_NO_MEMORY, SERVER_OPEN_FAILED } server_opened;

enum { SERVER_MAX_SENTENCE = 512 };

typedef struct server_source {   // loads a model
    const char *name;            // NULL: that of the file
    const char *path;
    frit_option_list aliases;
    // Loads the model, or writes the reason why it cannot. Called on one thread at a time.
    server_opened (*open)(const struct server_source *source, server_loaded *out, char sentence[SERVER_MAX_SENTENCE]);
    void (*close)(const struct server_source *source, server_loaded *loaded);
    void *ctx;
} server_source;

typedef struct server_models_options {
    const server_source *sources;   // [n], must outlive the models
    size_t n;
    const server_loaded *first;   // from the first source; owned from now on
    int32_t max_models;           // most loaded models; 0: as memory allows
    int32_t idle_s;               // a model without requests is freed after this time; 0: never
    int32_t max_waiting;          // most requests that wait for models
} server_models_options;

// A request that waits for a model. Both functions may be called on any thread.
typedef struct server_waiter {
    // Called when the model is loaded and held for the request, or with a problem (status 499: the client is gone). The
    // list does not use the waiter after the call.
    void (*ready)(struct server_waiter *waiter, const server_problem *problem);
    bool (*is_gone)(struct server_waiter *waiter);
    // Used by the list:
    const server_model *model;
    struct server_waiter *next;
} server_waiter;

typedef struct server_model_status {
    const char *value;   // "loaded", "loading", "unloaded"
    bool failed;         // the last attempt to load the model failed
} server_model_status;

bool server_models_new(server_models **out, const server_models_options *options, server_problem *problem);
const server_model *server_models_all(const server_models *models, size_t *n);

// The stem of a path, malloc'd: "model-q4" of "dir/model-q4.gguf", "model" of "dir/model/".
char *server_stem(const char *path);

// Holds the model if it is loaded. `is_used`: for a request; else only to look at the model, which is not a use.
bool server_models_hold(server_models *models, const server_model *model, bool is_used);
// Like server_models_hold without `is_used`; also gives the status of the model.
bool server_models_look(server_models *models, const server_model *model, server_model_status *status);
void server_models_release(server_models *models, const server_model *model, bool is_used);
// True: the model is held. False without a problem: waiter->ready is called later, or was called already.
bool server_models_await(server_models *models, const server_model *model, server_waiter *waiter,
                         server_problem *problem);
// Begin to load, and to free, the model. False with a problem: it is loaded already, or it is not loaded or has
// requests.
bool server_models_load(server_models *models, const server_model *model, server_problem *problem);
bool server_models_unload(server_models *models, const server_model *model, server_problem *problem);

// True once a model that reads pictures was loaded.
bool server_models_read_pictures(const server_models *models);
// The sum over all models, with the requests that wait for a model.
server_load server_models_load_of_all(server_models *models);

// Like the functions of workers, for all models.
void server_models_drain(server_models *models);
void server_models_cut(server_models *models);
bool server_models_are_idle(server_models *models);
// True while a model is loaded, which server_models_free waits for.
bool server_models_are_loading(server_models *models);
void server_models_free(server_models *models);   // after the last model was released

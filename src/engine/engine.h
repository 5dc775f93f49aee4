// SPDX-License-Identifier: MIT
// engine/engine.h: the objects of frit.h, and how a step is built.
//
// A model is an opened checkpoint with its vocabulary, bound weights and hyperparameters; immutable, counted.
// An engine places a model on a device: a KV cache in pages, plans cached by shape class, its sessions.
// A session is a list of tokens, how many of them are in the cache, and the pages that hold them.
//
// The life of a step: schedule.c picks rows of sessions -> step.c fills the batch, takes the plan of its shape class
// (plans.c) and runs it -> results go to the sessions' logits and row functions.
//
// What a steady step needs is allocated when the engine, its sessions and its plans are made; the step itself allocates
// nothing.
#pragma once
#include "arch/arch.h"
#include "backend/backend.h"
#include "engine/kv.h"
#include "format/adapter.h"
#include "graph/segment.h"
#include "frit_tools.h"
#include "sample/sampler.h"
#include "text/chat.h"
#include "text/stream.h"

// ------------------------------------------------------------------------------- model

struct frit_model {
    _Atomic int n_refs;
    frit_checkpoint *ckpt;
    frit_arena arena;
    frit_log log;
    const frit_arch *arch;   // NULL if opened for its vocabulary only, and unknown
    frit_hparams hp;
    frit_weights weights;
    frit_vocab vocab;
    frit_tokenizer *tokenizer;   // NULL for a file without text
    frit_chat *chat;             // NULL for a file without text
    bool vocab_only;             // weights are not bound: asked for, or the file has no tensors
    frit_model_info info;
    const char **keys;     // [meta.n]: the metadata's keys, zero-terminated
    frit_stores *stores;   // weights as its engines' devices read them
};

void frit_model_retain(frit_model *model);   // frit_model_free gives the reference back
// FRIT_E_IO if a mapped file has shrunk. Touching what is gone raises SIGBUS, so look before reading weights.
frit_status frit_model_check_files(const frit_model *model);
// Hands a finished text out by the two-call pattern, and frees it (text.c).
// `model` has a vocabulary.
frit_status frit_give_tokens(const frit_model *model, frit_str text, const frit_encoding *how, frit_token *tokens,
                             size_t capacity, size_t *n_tokens);
frit_encoding frit_encoding_of(unsigned flags, const frit_spans *untrusted, const frit_tokenize_limits *limits);
frit_status frit_give_text(frit_status status, frit_buf *buf, char *text, size_t capacity, size_t *n_bytes);
// Fills model->info and model->keys from the rest (info.c).
frit_status frit_model_describe(frit_model *model);

// ------------------------------------------------------------------------------- adapters (adapter.c, adapted.c)

typedef struct frit_adapter_part {
    const char *name;          // of the model's tensor
    const frit_tensor *base;   // the tensor
    frit_low_rank low;
} frit_adapter_part;

struct frit_adapter {
    _Atomic int n_refs;
    frit_model *model;
    frit_adapter_file file;
    frit_arena arena;
    frit_adapter_part *parts;
    size_t n_parts;
    const float **directions;   // [n_layer] of a control vector, NULL where it does nothing; else NULL
    frit_adapter_info info;
};

// The adapters that sessions of an engine have, each in a slot: a run's scales are in their order. Plans with adapters
// are made for all of them and made again when another one comes.
typedef struct frit_adapter_slots {
    frit_adapter **items;   // [n]; NULL: free
    int32_t n;
    frit_arena arena;      // of what is bound
    frit_adapters bound;   // what plans add
} frit_adapter_slots;

void frit_adapter_retain(frit_adapter *adapter);
// Lists what the adapters add, tensor by tensor, in `arena`; the index is the caller's to free. Adapters may be NULL.
frit_status frit_adapters_bind(frit_adapters *out, frit_adapter *const *adapters, int32_t n, int32_t n_layer,
                               frit_arena *arena);
void frit_adapter_slots_deinit(frit_adapter_slots *slots);

// ------------------------------------------------------------------------------- plans, by shape class

// Classes are made when they are first needed, each for its largest shape; a step narrows the plans to its rows.
enum { FRIT_N_CLASSES = 5 };

typedef struct frit_plan_part {   // of one segment
    frit_device *device;
    frit_plan *plan;
    frit_exec *exec;
} frit_plan_part;

typedef struct frit_plan_class {
    frit_arena arena;
    frit_graph graph;
    frit_segments segments;
    frit_plan_part *parts;   // [segments.n], in the order in which they run; NULL: not made yet
} frit_plan_class;

// What plans of a class give: logits, hidden states, or what an encoder makes of a source.
typedef enum frit_plan_kind { FRIT_PLAN_LOGITS, FRIT_PLAN_HIDDEN, FRIT_PLAN_ENCODE, FRIT_PLAN_KINDS } frit_plan_kind;

typedef struct frit_plan_cache {
    frit_plan_class classes[2][FRIT_PLAN_KINDS][FRIT_N_CLASSES];   // [adapted]
} frit_plan_cache;

// ------------------------------------------------------------------------------- sessions

typedef struct frit_queue_item {   // a push whose every token has a result: OUTPUT_ALL, OUTPUT_EMBEDDINGS
    size_t first, n;               // tokens [first, first + n) of the session
    frit_push_options options;
} frit_queue_item;

struct frit_session {
    frit_engine *engine;   // NULL once the engine was freed
    frit_session *next;
    frit_token *tokens;       // [n_ctx]
    size_t n_tokens;          // in the timeline, queued ones too
    size_t n_done;            // of these, run
    size_t n_handed;          // of these, run before: where a state begins anew, they run again and give no results
    frit_kv_map map;          // pages for all n_tokens
    frit_queue_item *queue;   // oldest first
    size_t n_queue, queue_capacity;
    float *logits;       // [n_vocab]
    size_t logits_at;    // the logits are those after so many tokens; 0: there are none
    bool wants_logits;   // after the last queued token
    size_t copy_at;      // after so many tokens a copy of the states is kept; 0: nowhere
    char *note;          // the caller's, kept with the session; zero-terminated, or NULL
    size_t n_note_bytes;
    // Of encoder-decoders: the text that the decoder looks at, its pages, and what its rows are wanted for.
    frit_token *source;   // [n_ctx], NULL before the first
    size_t n_source;
    bool source_waits;   // has not been encoded yet; the session's tokens wait for it
    frit_kv_map source_map;
    frit_push_options source_options;
    int32_t n_taken;                  // rows in the step that is being made
    bool waited;                      // had something to run and no row in the last step
    float *scales;                    // [engine->adapters.n]; NULL: no adapters
    frit_status status;               // FRIT_OK, or why its last step failed: it does not run until it is truncated
    char failure[FRIT_ERROR_BYTES];   // the sentence
};

// FRIT_E_INVALID for a session whose engine was freed, or that a row function wants to use in the middle of a step.
frit_status frit_session_check_usable(const frit_session *session);
// The layers of the cache that hold a session's own positions, and those that hold its source's, if it has one.
frit_kv_layers frit_engine_own_layers(const frit_engine *engine);
frit_kv_layers frit_engine_source_layers(const frit_engine *engine);
// Gives the session this status and the calling thread's sentence, and forgets the row functions of its queue.
void frit_session_fail(frit_session *session, frit_status status);

void frit_session_drop_source(frit_session *session);   // gives its pages back
// Of a session without one: a source that waits to be encoded. The tokens may be unaligned.
frit_status frit_session_set_source(frit_session *session, const void *tokens, size_t n);
// What token i of the session wants from its step.
typedef enum frit_result { FRIT_RESULT_NONE, FRIT_RESULT_LOGITS, FRIT_RESULT_HIDDEN } frit_result;
frit_result frit_session_result(const frit_session *session, size_t i);

// ------------------------------------------------------------------------------- engine

// What a run knows by its place in the batch: page tables, scales of adapters (tables.c).
typedef struct frit_step_tables {
    int32_t *pages;   // [n_groups, n_runs, page_stride] of the step
    float *scales;    // [n_runs, adapters.n]
    size_t pages_capacity, scales_capacity;
    int32_t page_stride;   // of the step
} frit_step_tables;

typedef struct frit_step {                    // the batch and whose it is
    int32_t *tokens, *positions, *out_rows;   // [n_batch]
    frit_run *runs;                           // [n_batch]
    frit_session **owners;                    // [n_batch]: of the runs
    frit_taken *taken;                        // [n_batch]
    frit_step_tables tables;
    int32_t n_rows, n_outs, n_runs;
    frit_result result;   // the kind that this step gives; NONE while open
    bool many;            // its runs are of many rows each
    bool adapted;         // some run has adapters
    bool encodes;         // its rows are those of sources
} frit_step;

// How long steps take, as moving averages; 0: not measured yet.
typedef struct frit_pace {
    double decode_ns;       // a step in which every run is one row
    double prompt_row_ns;   // a row of a step of prompts
} frit_pace;

struct frit_engine {
    frit_model *model;
    frit_arena arena;
    frit_hparams hp;                          // the model's, with the rotation frequencies of n_ctx
    frit_device *devices[FRIT_MAX_DEVICES];   // the last one is the CPU
    int n_devices;
    frit_placement placement;
    int8_t *cache_devices;       // [layers of the cache]
    frit_weight_bytes weights;   // of all devices
    frit_kv kv;
    uint64_t kv_token_bytes;
    frit_plan_cache plans;
    frit_adapter_slots adapters;
    frit_step step;
    frit_session *sessions;   // a queue: a session with rows in a step goes to the end
    int32_t n_ctx, n_batch;
    int32_t many_rows;       // from so many queued tokens on a session runs in steps of its kind; INT32_MAX: never
    int32_t prompt_budget;   // prompt rows of one step while other sessions generate; 0: by the pace, -1: any number
    frit_pace pace;
    int32_t max_outs;   // rows with logits of one step, so that they stay within a few MiB
    bool no_fuse;
    bool in_step;   // row functions are called from inside a step and may not start another
};

// ------------------------------------------------------------------------------- devices (devices.c)

frit_status frit_engine_open_devices(frit_engine *engine, const frit_engine_options *options);
void frit_engine_close_devices(frit_engine *engine);
static inline frit_device *frit_engine_cpu(const frit_engine *engine)
{
    return engine->devices[engine->n_devices - 1];
}

// The plan for the rows that were scheduled; made on first use.
typedef struct frit_plan_wish {
    int32_t n_rows;
    bool many;   // runs of many rows each
    frit_plan_kind kind;
    bool adapted;   // with the adapters of the engine
} frit_plan_wish;
frit_status frit_plans_get(frit_engine *engine, frit_plan_wish wish, frit_plan_class **out);
void frit_plans_drop_adapted(frit_engine *engine);
// Decides where each layer of the cache lies; before all other plans.
frit_status frit_plans_place_cache(frit_engine *engine);
// What plans need, without preparing any: bytes of scratch for n_batch rows, and the weights of all kinds of plans.
typedef struct frit_plan_needs {
    uint64_t scratch_bytes;
    frit_weight_uses weights[FRIT_MAX_DEVICES];
    frit_plan_class logits, source;   // that read them
} frit_plan_needs;
frit_status frit_plans_measure(const frit_engine *engine, frit_plan_needs *needs);
void frit_plan_needs_free(frit_plan_needs *needs);
// Each device's weights: their bytes into engine->weights, and loading them (devices.c).
frit_status frit_engine_count_weights(frit_engine *engine, const frit_plan_needs *needs);
frit_status frit_engine_load_weights(frit_engine *engine, const frit_plan_needs *needs, frit_progress progress);
uint64_t frit_plans_scratch_bytes(const frit_engine *engine);
void frit_plans_free(frit_engine *engine);

// Where all rows of a session run in one step: makes room for steps of n_rows, and forgets the plans. FRIT_E_MEMORY if
// that is not there.
frit_status frit_engine_grow(frit_engine *engine, size_t n_rows);

// Room for the tables of a step with `n_sessions` runs and `n_adapters` scales each; what steps need is there before.
frit_status frit_step_reserve_tables(frit_engine *engine, size_t n_sessions, size_t n_adapters);
void frit_step_fill_tables(frit_engine *engine);   // for the runs of the step
void frit_step_free_tables(frit_step_tables *tables);

// Picks the rows of the next step into engine->step. Allocates nothing; n_rows is 0 if nothing is queued.
void frit_schedule(frit_engine *engine);
// Takes note that the step took so long.
void frit_schedule_measure(frit_engine *engine, uint64_t step_ns);
// Prompt rows of a step at most while other sessions generate: so many as take four times as long as a step without.
int32_t frit_schedule_budget(const frit_pace *pace, int32_t least);

// ------------------------------------------------------------------------------- embeddings

typedef enum frit_pooling {   // as ARCH.pooling_type counts
    FRIT_POOLING_NONE,
    FRIT_POOLING_MEAN,
    FRIT_POOLING_CLS,
    FRIT_POOLING_LAST,
    FRIT_POOLING_RANK,
    FRIT_POOLING_COUNT,
} frit_pooling;

extern const char *const frit_pooling_names[FRIT_POOLING_COUNT];
frit_pooling frit_model_pooling(const frit_model *model);   // the default

// What makes scores of a hidden state (head.c): out act(dense x), norms and biases where the file has them.
typedef struct frit_head {
    const frit_model *model;
    const frit_tensor *dense, *dense_b, *norm, *out, *out_b;   // NULL: it has no such part
    int64_t n_hidden, n_scores;
} frit_head;

frit_status frit_head_find(frit_head *head, const frit_model *model);   // FRIT_E_UNSUPPORTED without one
// scores [n_scores] of x [n_embd]; scratch: n_hidden numbers, and the longest row or bias.
frit_status frit_head_run(const frit_head *head, const float *x, float *scores, float *scratch);

// ------------------------------------------------------------------------------- fit

typedef struct frit_fit {
    const char *path;
    const frit_log *log;
    int32_t n_ctx;   // asked for; 0: the largest up to n_ctx_train that fits comfortably
    int32_t n_ctx_train, n_sessions;
    uint64_t page_bytes;     // of FRIT_PAGE_TOKENS positions, all layers
    uint64_t state_bytes;    // of one session
    uint64_t weight_bytes;   // of weights that are not in memory yet, or may leave it, as mapped ones may
    uint64_t scratch_bytes;
    uint64_t available;   // memory that can be used, in bytes
} frit_fit;

// Chooses the context. FRIT_E_MEMORY with numbers if what was asked for, or anything at all, does not fit.
frit_status frit_fit_context(const frit_fit *fit, int32_t *n_ctx);

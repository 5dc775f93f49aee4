// SPDX-License-Identifier: MIT
// engine/engine.h: the objects behind frit.h, and how a step is made.
//
// A model is an opened checkpoint with its vocabulary, bound weights and hyperparameters; immutable, counted.
// An engine places a model on a device: a KV cache in pages, plans cached by shape class, its sessions.
// A session is a list of tokens, how many of them are in the cache, and the pages that hold them.
//
// The life of a step: schedule.c picks rows of sessions → step.c fills the batch, finds or makes the plan for its
// shape class and runs it → results go to the sessions' logits and row functions.
#pragma once
#include "arch/arch.h"
#include "backend/backend.h"
#include "engine/kv.h"
#include "sample/sampler.h"
#include "text/chat.h"
#include "text/stream.h"

struct frit_model {
    _Atomic int n_refs;
    frit_checkpoint *ckpt;
    frit_arena arena;
    frit_log log;
    const frit_arch *arch;          // NULL if opened with vocab_only and unknown
    frit_hparams hp;
    frit_weights weights;
    frit_vocab vocab;
    frit_tokenizer *tokenizer;      // NULL for a file without text
    frit_chat *chat;                // NULL without a template
    bool vocab_only;
};

typedef struct frit_queue_item {    // one push that still has rows to run or results to give
    size_t first, n;                // tokens [first, first + n) of the session
    frit_push_options options;
} frit_queue_item;

struct frit_session {
    frit_engine *engine;
    frit_session *next;
    frit_token *tokens;             // [n_ctx]
    size_t n_tokens;                // in the timeline, queued ones too
    size_t n_done;                  // of these, run
    frit_kv_map map;
    frit_queue_item *queue;         // pushes with results of their own, oldest first
    size_t n_queue, queue_capacity;
    float *logits;                  // [n_vocab]
    bool has_logits;
};

struct frit_engine {
    frit_model *model;
    frit_device *device;
    frit_kv kv;
    struct frit_plan_cache *plans;
    struct frit_step_buffers *step;
    frit_session *sessions;
    int32_t n_ctx, n_batch;
    bool no_fuse;
};

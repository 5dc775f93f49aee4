// SPDX-License-Identifier: MIT
// gpu_model.h: decode steps of a dense model with random weights: five kernels a layer, one captured graph.
//
//     embed | qkv, attend, o, gate-up, down of each layer | head
//
// All steps of a graph have the same tokens and positions; their time is that of consecutive steps.
#pragma once
#include "backend/cuda/ops/product.h"
#include "gpu.h"

enum { MODEL_MAX_LAYERS = 64 };
enum { MODEL_QKV = 1, MODEL_ATTEND = 2, MODEL_O = 4, MODEL_GATE_UP = 8, MODEL_DOWN = 16, MODEL_HEAD = 32 };

typedef struct model_shape {
    const char *name;
    int n_layers, dim, n_heads, n_kv_heads, head_size, n_ff, n_vocab;
} model_shape;

// The types of a file: matrices whose layer is one of the `more` ones (llama.cpp's choice for Q4_K_M), and the others.
typedef struct model_types {
    const char *name;
    frit_dtype most, more, head;
} model_types;

typedef struct model_layer {
    uint64_t qk, v, o, gate_up, down;   // tiles
    bool is_more;                       // v and down are of the other type
    uint64_t norm1, norm2;
} model_layer;

// Settings of kernels; 0: the backend's choice.
typedef struct model_tuning {
    const char *name;
    int open_stages, groups, warps, stages, splits, attend_warps;
    int o_parts, down_parts;   // of the columns
    int attend_stages;         // pages copied ahead; -1: none
    bool copies_by_thread, is_serial;
    bool is_gate_up_f32;   // of prompts
    int without;           // bits of phases to leave out, to measure their cost: MODEL_QKV and so on
} model_tuning;

typedef struct model {
    model_shape shape;
    model_types types;
    model_tuning tuning;
    int rows, n_positions;   // of each row's sequence
    frit_cuda_heads heads;
    int page_stride;   // pages of a row
    model_layer layers[MODEL_MAX_LAYERS];
    uint64_t table, head, norm_out;                                           // weights
    uint64_t x, q, attended, h, logits, positions, tokens, rope, frequency;   // state of a step
    uint64_t pages, cache, partial, arrived, sums, counters;
    frit_cuda_kernel embed, qkv[2], attend, o, gate_up, down[2], logits_of_x;
    uint64_t n_weight_bytes;   // read in a step
    int n_steps;               // in one graph
} model;

bool model_is_more(const model_shape *shape, int layer);
frit_dtype model_type(const model *m, int layer, bool is_mixed);   // is_mixed: v or down
// Allocates a model whose rows start at position `depth`, without making weights.
void model_open(bench *b, model *m, int depth);
void model_close(bench *b, model *m);
void model_fill(bench *b, model *m);    // random weights, and a random cache
void model_record(bench *b, void *m);   // a record_fn: n_steps steps

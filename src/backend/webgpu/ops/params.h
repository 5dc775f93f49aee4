// SPDX-License-Identifier: MIT
// backend/webgpu/ops/params.h: the parameters of launches: 32 words, which a kernel names by macros.
//
// PARAM_STORE_N_OUT is P_N_OUT of kernels/store.wgsl, and so on: word i is component i % 4 of params[i / 4]. A kernel
// that includes a file has the file's parameters too. The test backend/webgpu_params compares words and kernels.
#pragma once

enum {   // step.wgsl, which all kernels include
    PARAM_ROWS = 31
};

enum {   // sources.wgsl, for ops with sources, sizes and factors
    PARAM_X0 = 0,
    PARAM_X1 = 1,
    PARAM_X2 = 2,
    PARAM_Y = 3,
    PARAM_EACH = 4,
    PARAM_SIZE0 = 8,
    PARAM_SIZE1 = 9,
    PARAM_SIZE2 = 10,
    PARAM_SIZE3 = 11,
    PARAM_SIZE4 = 12,
    PARAM_FACTOR0 = 16,
    PARAM_FACTOR1 = 17,
    PARAM_FACTOR2 = 18,
    PARAM_FACTOR3 = 19
};

enum {   // quantize.wgsl
    PARAM_QUANTIZE_X = 0,
    PARAM_QUANTIZE_WIDTH = 1,
    PARAM_QUANTIZE_BLOCKS = 2
};

enum {   // embed.wgsl
    PARAM_EMBED_Y = 0,
    PARAM_EMBED_WIDTH = 1,
    PARAM_EMBED_BLOCKS = 2,
    PARAM_EMBED_FIRST = 3,
    PARAM_EMBED_END = 4
};

enum {   // store.wgsl
    PARAM_STORE_Y = 0,
    PARAM_STORE_N_OUT = 1,
    PARAM_STORE_BLOCKS = 2,
    PARAM_STORE_BEGIN = 3,
    PARAM_STORE_ADD = 4,
    PARAM_STORE_TIMES = 5,
    PARAM_STORE_ACT = 6,
    PARAM_STORE_UNITS = 7,
    PARAM_STORE_STACK = 8,   // four words for each matrix of a stack
    PARAM_STORE_TILES = 28
};

enum {   // dispatch.wgsl
    PARAM_DISPATCH_ROUTE = 0,
    PARAM_DISPATCH_USED = 1,
    PARAM_DISPATCH_LISTS = 2,
    PARAM_DISPATCH_ORDER = 3,
    PARAM_DISPATCH_MOST = 4
};

enum {   // routed.wgsl
    PARAM_ROUTED_ROUTE = 20,
    PARAM_ROUTED_USED = 21,
    PARAM_ROUTED_LISTS = 22,
    PARAM_ROUTED_ORDER = 23,
    PARAM_ROUTED_FIRST = 24,
    PARAM_ROUTED_END = 25
};

enum {   // cache.wgsl
    PARAM_CACHE_GROUP = 0,
    PARAM_CACHE_N_KV = 1,
    PARAM_CACHE_K_PAGE = 4,
    PARAM_CACHE_K_WORDS = 5,
    PARAM_CACHE_K_ROW = 6,
    PARAM_CACHE_V_PAGE = 8,
    PARAM_CACHE_V_WORDS = 9,
    PARAM_CACHE_V_ROW = 10
};

enum {   // cache_write.wgsl
    PARAM_CACHE_WRITE_K = 2,
    PARAM_CACHE_WRITE_V = 3,
    PARAM_CACHE_WRITE_Q = 12,
    PARAM_CACHE_WRITE_ROTATED = 13,
    PARAM_CACHE_WRITE_DIM = 14,
    PARAM_CACHE_WRITE_FIRST = 15,
    PARAM_CACHE_WRITE_IS_NEOX = 16,
    PARAM_CACHE_WRITE_MAGNITUDE = 17,
    PARAM_CACHE_WRITE_EPSILON_Q = 18,
    PARAM_CACHE_WRITE_EPSILON_K = 19
};

enum {   // span.wgsl
    PARAM_SPAN_Q = 2,
    PARAM_SPAN_Y = 3,
    PARAM_SPAN_CHUNKS = 12,
    PARAM_SPAN_WINDOW = 13,
    PARAM_SPAN_CHUNK = 14,
    PARAM_SPAN_KIND = 15,
    PARAM_SPAN_SCALE = 16,
    PARAM_SPAN_SOFTCAP = 17,
    PARAM_SPAN_ALIBI = 18,
    PARAM_SPAN_REACH = 19,
    PARAM_SPAN_TEMP_SCALE = 20,
    PARAM_SPAN_TEMP_OFFSET = 21,
    PARAM_SPAN_TEMP_LENGTH = 22,
    PARAM_SPAN_ENDS = 25,
    PARAM_SPAN_ENDS_WIDTH = 26
};

enum {   // attend_sum.wgsl
    PARAM_ATTEND_SUM_BLOCKS = 24
};

enum {   // pick.wgsl
    PARAM_PICK_LOGITS = 0,
    PARAM_PICK_N_VOCAB = 1,
    PARAM_PICK_PARTS = 2
};

enum {   // pick_run.wgsl
    PARAM_PICK_RUN_LOGITS = 0,
    PARAM_PICK_RUN_N_VOCAB = 1,
    PARAM_PICK_RUN_PARTS = 2,
    PARAM_PICK_RUN_ZERO = 3
};

enum {   // recurrent.wgsl
    PARAM_RECURRENT_SOURCE0 = 0,
    PARAM_RECURRENT_SOURCE1 = 1,
    PARAM_RECURRENT_SOURCE2 = 2,
    PARAM_RECURRENT_SOURCE3 = 3,
    PARAM_RECURRENT_SOURCE4 = 4,
    PARAM_RECURRENT_Y = 5,
    PARAM_RECURRENT_STATES = 6,
    PARAM_RECURRENT_N_STATE = 7,
    PARAM_RECURRENT_SIZE0 = 8,
    PARAM_RECURRENT_SIZE1 = 9,
    PARAM_RECURRENT_SIZE2 = 10,
    PARAM_RECURRENT_SIZE3 = 11,
    PARAM_RECURRENT_SIZE4 = 12,
    PARAM_RECURRENT_IS_INTERLEAVED = 13,
    PARAM_RECURRENT_IS_FIXED = 14
};

enum {   // adapt.wgsl
    PARAM_ADAPT_X = 0,
    PARAM_ADAPT_H = 1,
    PARAM_ADAPT_Y = 2,
    PARAM_ADAPT_WIDTH = 3,
    PARAM_ADAPT_INDEX = 4,
    PARAM_ADAPT_N_H = 5,
    PARAM_ADAPT_FIRST_ROW = 6
};

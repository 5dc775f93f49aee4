// SPDX-License-Identifier: MIT
// frit/adapter.h: low-rank adapters and control vectors for sessions.
#ifndef FRIT_ADAPTER_H
#define FRIT_ADAPTER_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

// Adapters change the results of a model without changing its weights: low-rank adapters (LoRA) add to its matrices,
// control vectors add to the outputs of its layers. Sessions may use any number of adapters, each with its own scale;
// sessions with different adapters share steps. A session without adapters gives exactly the results of an engine
// without adapters.
//
//     frit_adapter_open(&adapter, model, "pirate.gguf", NULL);
//     frit_session_set_adapters(session, &adapter, (float[]){1}, 1);
typedef struct frit_adapter frit_adapter;

typedef struct frit_adapter_options {
    // For a control vector: the first and the last layer that it is applied to; 0: the vector's first and last layer.
    // Layer i, counted from 0, uses the tensor direction.i.
    int32_t first_layer, last_layer;
    uint64_t reserved[8];
} frit_adapter_options;

// Opens an adapter for this model: a GGUF file (general.type "adapter", or general.architecture "controlvector") or the
// folder of a PEFT adapter, which works with a model from either kind of file. FRIT_E_NOT_FOUND, FRIT_E_FORMAT,
// FRIT_E_IO, FRIT_E_MEMORY; FRIT_E_INVALID if it is for another model, FRIT_E_UNSUPPORTED for other kinds of adapters
// (biases, whole modules). Magnitudes (DoRA) are computed from the model's weights when the adapter is opened.
FRIT_API frit_status frit_adapter_open(frit_adapter **out, frit_model *model, const char *path,
                                       const frit_adapter_options *options);
FRIT_API void frit_adapter_free(frit_adapter *adapter);   // sessions with the adapter keep it alive

typedef struct frit_adapter_info {
    const char *path;
    const char *name;     // general.name of a GGUF file, the folder's name, or ""
    const char *format;   // "GGUF v3", "PEFT"
    const char *kind;     // "lora", "control vector"
    int32_t n_tensors;    // tensors of the model that the adapter changes; for a control vector: layers
    int32_t rank;         // the largest rank; 0 for a control vector
    float alpha;          // 0: the file has none
    uint64_t n_bytes;     // in memory
    uint64_t reserved[8];
} frit_adapter_info;
// The texts live as long as the adapter.
FRIT_API frit_status frit_adapter_get_info(const frit_adapter *adapter, frit_adapter_info *info);

// Sets the adapters of the session's tokens from here on, including queued tokens, each with its scale; replaces
// earlier ones. Tokens that ran before keep their values (truncate the session to 0 to run them again). A scale of 0
// has no effect, and an adapter that is listed twice is applied twice. The next step may take longer, because it is
// planned again. FRIT_E_INVALID for an adapter of another model, or a scale beyond 1e6; nothing changes then.
FRIT_API frit_status frit_session_set_adapters(frit_session *session, frit_adapter *const *adapters,
                                               const float *scales, size_t n_adapters);

#ifdef __cplusplus
}
#endif
#endif

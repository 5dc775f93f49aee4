// SPDX-License-Identifier: MIT
// backend/cuda/recordings.h: steps that repeat, recorded as graphs of the driver's.
//
// A step is recorded when its key is seen for the second time, and later steps with the key launch the graph. The
// number of a server's sequences changes with each request that begins or ends, so a device remembers keys of many
// steps, of all its executables. When there is no room, the key or graph that was used least recently is forgotten.
//
//     frit_cuda_recording *recording;
//     FRIT_TRY(frit_cuda_recordings_find(device, &key, &recording));
//     if (!recording) return run_launches(exec, step);
//     if (!recording->graph) frit_cuda_recordings_record(recording, exec, step, run_launches);
#pragma once
#include "backend/cuda/step.h"

enum { FRIT_CUDA_MOST_KEYS = 256, FRIT_CUDA_MOST_GRAPHS = 128, FRIT_CUDA_LEAST_GRAPHS = 8 };

// The values on which the launches of a step depend. A graph can be launched again while its key is equal.
typedef struct frit_cuda_graph_key {
    int32_t n_rows, n_outs, n_seqs, page_stride, n_row_tiles, n_shared_tiles, n_picks, n_passes;
    uint64_t input, scratch, work, picked, picks;   // addresses; each flight has an input of its own
    const frit_exec *exec;
} frit_cuda_graph_key;

typedef struct frit_cuda_recording {
    frit_cuda_graph_key key;
    frit_cuda_graph_exec graph;   // NULL: not recorded
    int n_seen;                   // steps with the key, since a graph of it was freed
    bool is_refused;              // recording failed
    uint64_t used_at;             // number of the find that found it last
} frit_cuda_recording;

typedef struct frit_cuda_recordings {
    frit_cuda_recording list[FRIT_CUDA_MOST_KEYS];   // [n]
    int n, n_graphs;
    uint64_t n_finds;
    uint64_t n_bytes;   // memory of the GPU that graphs took; the driver uses it again for later graphs
} frit_cuda_recordings;

// *out: the recording of a key that was seen before. NULL: the step should not be recorded.
frit_status frit_cuda_recordings_find(frit_cuda_device *device, const frit_cuda_graph_key *key,
                                      frit_cuda_recording **out);
// Records what `run` launches on the device's stream. If that fails, with a log line, the recording has no graph and is
// not found again.
typedef frit_status (*frit_cuda_launches_fn)(frit_exec *exec, const frit_cuda_step *step);
void frit_cuda_recordings_record(frit_cuda_recording *recording, frit_exec *exec, const frit_cuda_step *step,
                                 frit_cuda_launches_fn run);
// Drops the keys and graphs of an executable, or of all if it is NULL. No graph may be running.
void frit_cuda_recordings_drop(frit_cuda_device *device, const frit_exec *exec);

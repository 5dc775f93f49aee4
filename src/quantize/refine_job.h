// SPDX-License-Identifier: MIT
// quantize/refine_job.h: the state of a refinement, for refine.c (driver), refine_layer.c, refine_matrix.c and
// refine_report.c.
#pragma once
#include "base/file/file.h"
#include "quantize/refine_file.h"
#include "quantize/refine_rows.h"
#include "quantize/refine_state.h"
#include "quantize/refine_stream.h"

// Every FRIT_REFINE_HELD_OUT-th window is held out. A matrix is refined if at least FRIT_REFINE_TOKENS_PER_COLUMN
// tokens reached it for each of its columns.
enum { FRIT_REFINE_HELD_OUT = 8, FRIT_REFINE_TOKENS_PER_COLUMN = 5 };

typedef struct frit_refine_times {   // of a layer, in nanoseconds
    uint64_t model, file, sums, factors, rounding;
} frit_refine_times;

typedef struct frit_refining {
    const frit_refine_options *options;
    frit_log log;
    const char *path;   // of the quantized file
    frit_file *file;    // a copy of it, in which blocks are replaced
    char *bytes;        // contents of the copy
    size_t n_bytes;
    frit_model *source, *quantized;
    frit_refine_text text;
    frit_refine_stream original, changed;   // the model's and the quantized file's
    frit_covariance *kept, *kept_held;      // inputs of the model's matrices in the layer
    uint64_t most_kept;                     // limit of their bytes
    bool keeps_all;                         // inputs are stored for all windows
    int32_t kept_layer;                     // layer whose inputs are stored; below 0: none
    int64_t next;                           // entry of `kept` with the input of the current group of matrices
    frit_covariance *sums, *held;
    frit_pool *pool;
    int32_t layer;     // n_layer: the output matrix
    char prefix[64];   // of the names of the layer's tensors, such as "blk.3."
    frit_map done;     // names of tensors that need no more refining
    frit_refine_input input;
    const float *input_of;   // the sums that `input` is a factorization of
    int64_t n_matrices, n_refined, n_worse, n_few;
    int32_t n_in_layer, n_left;   // tensors to refine
    frit_refine_labels labels;
    frit_refine_state state;
    size_t n_taken;   // tensors that an earlier run has refined
    frit_refine_times times;
} frit_refining;

// refine_layer.c
frit_engine_options frit_refine_engine_options(const frit_refining *r);
frit_status frit_refine_open_quantized(frit_refining *r);    // the model of the file as it is now
frit_status frit_refine_start_quantized(frit_refining *r);   // its engine
void frit_refine_close_quantized(frit_refining *r);
frit_status frit_refine_layer(frit_refining *r);
// Runs both engines from this layer to the next, if they store the residuals.
frit_status frit_refine_advance(frit_refining *r);

// refine_matrix.c
bool frit_refine_can_round(const frit_refining *r, const char *name);   // the tensor has blocks of another type
frit_status frit_refine_tensor(frit_refining *r, const char *name);

// refine_report.c
uint64_t frit_refine_count_time(uint64_t *sum, uint64_t from);     // adds the time since `from`; returns now
frit_status frit_refine_report_progress(const frit_refining *r);   // FRIT_E_CANCELLED
void frit_refine_report_times(const frit_refining *r);
void frit_refine_report_result(const frit_refining *r, double before, double after);

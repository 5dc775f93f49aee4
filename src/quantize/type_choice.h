// SPDX-License-Identifier: MIT
// quantize/type_choice.h: which matrix gets how many bits: types for all matrices of a model so that a file has the
// size that was asked for and its predictions differ as little as they can.
//
//     type_tensors.c    the matrices, and the types that each may get
//     text_windows.c    the calibration text in windows; sample_windows.c: windows of sample_text.txt and of what the
//                  model writes itself, where no text is given
//     type_prices.c     one measurement for each matrix: the KL divergence of the model's predictions with this matrix
// alone
//                  in a probe type of about three bits
//     type_errors.c     the error of the matrix's output in each type, over that in the probe type
//     type_choice_search.c     predicted KL = measured KL x ratio of errors; contributions add up; the best choice for
// the bytes
//
// The importance of columns is measured over the same text (engine/observe.h), and files are written by convert/.
#pragma once
#include "convert/convert.h"
#include "engine/engine.h"

enum { FRIT_TYPE_CHOICE_TYPES = 24, FRIT_PRICED_WINDOWS = 8 };

// A type that a matrix may get.
typedef struct frit_type_price {
    frit_dtype type;
    uint64_t n_bytes;   // of the matrix
    double error;       // of its output on some rows: sum over columns of mean square of the input x squared error
    double kl;          // predicted
} frit_type_price;

// A matrix whose type is chosen.
typedef struct frit_type_choice_matrix {
    size_t i;           // in the checkpoint
    const char *name;   // borrowed from it
    frit_dtype probe;
    double probe_kl, probe_error;
    frit_type_price types[FRIT_TYPE_CHOICE_TYPES];   // by bytes
    int n_types, chosen;
    bool is_kept;   // its type was given: it is not measured, and what a state says of it stays for others
} frit_type_choice_matrix;

typedef struct frit_type_choice {
    const char *source;
    const frit_convert_options *convert;
    const frit_allocate_options *options;
    frit_quantize_options quantize;   // of `convert`, or none
    frit_log log;
    frit_arena arena;
    frit_checkpoint *ckpt;   // the tensors of the file, in the types of the source
    frit_hparams hp;
    frit_type_choice_matrix *list;
    size_t n;
    frit_map types;   // name -> type, of all tensors that are quantized
    frit_pool *pool;
    const frit_importance *importance;
    frit_importance read, measured;   // from a file, or from the text
    frit_model *model;                // in floats
    frit_token *tokens;               // [n_windows][n_ctx]
    size_t n_windows, n_ctx;
    bool has_text;         // it is one of the caller's, maybe of a state's
    uint8_t sha256[32];    // of the tokens
    char model_key[65];    // of the model and its matrices, and of importance that was read
    char key[65];          // of what was measured: that, text, windows
    uint64_t saved_ns;     // when the state was written
    double *errors;        // [n][FRIT_DTYPE_COUNT], below 0: not measured
    double *window_kl;     // [n][FRIT_PRICED_WINDOWS]: probe_kl in each window, below 0: not measured; may be NULL
    double kl, kl_error;   // predicted, and the error of the mean of windows; 0: not known
} frit_type_choice;

// What progress is shown of from now on.
void frit_type_choice_begin(const frit_type_choice *a, const char *phase);
frit_status frit_type_choice_report(const frit_type_choice *a, double done);   // FRIT_E_CANCELLED

frit_status frit_type_choice_list(frit_type_choice *a);          // the matrices, their types, and what is kept
frit_status frit_type_choice_set_windows(frit_type_choice *a);   // of the text, or of samples
// sample_text.txt: passages of many kinds, in the public domain or written for it.
extern const char frit_sample_text[];
extern const size_t frit_sample_text_bytes;
// n_windows of n_ctx tokens, every second one of frit_sample_text as long as that lasts, and the sums of what matrices
// read meanwhile; NULL: not wanted.
frit_status frit_type_choice_write_samples(frit_type_choice *a, frit_importance *sums);
frit_status frit_type_choice_open_engine(frit_type_choice *a, frit_engine **out);
// Empties the session and runs a window.
frit_status frit_type_choice_run_window(frit_engine *engine, frit_session *session, const frit_token *tokens, size_t n,
                                        const frit_push_options *push);
frit_status frit_type_choice_measure_importance(frit_type_choice *a);   // the importance of columns
// The importance of a tensor's columns [n_matrices, width], malloc'd; NULL where none is known.
frit_status frit_type_choice_column_means(const frit_type_choice *a, const frit_tensor *tensor, float **means);
frit_status frit_type_choice_measure_prices(frit_type_choice *a);
// What prices are measured over: windows, tokens that are read of each, and the last rows of these, which count.
typedef struct frit_priced_text {
    size_t n_windows, n_tokens, n_rows;
} frit_priced_text;
// `operations`: of a token, for all prices.
frit_priced_text frit_type_choice_priced_text(double operations, size_t n_windows, size_t n_ctx, size_t n_vocab);
frit_status frit_type_choice_measure_errors(frit_type_choice *a);

// type_state.c: what was measured, in a file, so that a run that was stopped goes on, and other sizes need no
// measuring. It is an importance file with the text, prices and errors as metadata.
frit_status frit_type_choice_load(frit_type_choice *a);   // nothing where there is no file, or it is of something else
frit_status frit_type_choice_save(frit_type_choice *a);
frit_status frit_type_choice_save_sometimes(frit_type_choice *a);   // once a minute

// FRIT_E_INVALID if the smallest types have more bytes together.
frit_status frit_type_choice_check_size(const frit_type_choice *a, uint64_t n_bytes);
// Chooses types whose bytes are at most n_bytes together. FRIT_E_INVALID if the smallest have more.
frit_status frit_type_choice_search(frit_type_choice *a, uint64_t n_bytes);

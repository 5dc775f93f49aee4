// SPDX-License-Identifier: MIT
// quantize/type_choice.h: chooses types for all matrices of a model so that a file has the requested size and its
// predictions differ from the model's as little as possible.
//
//     type_tensors.c        the matrices, and the types that each may get
//     text_windows.c        the calibration text in windows; sample_windows.c writes one if no text is given
//     type_prices.c         measures for each matrix the KL divergence of the model's predictions with only this matrix
//                           in a probe type of about three bits
//     type_errors.c         measures the error of each matrix's output in each type, relative to the probe type
//     type_choice_search.c  predicts KL as measured KL x ratio of errors, adds it up, and searches the best choice
//
// The importance of columns is measured over the same text (engine/observe.h). convert/ writes the file.
#pragma once
#include "convert/convert.h"
#include "engine/engine.h"

enum { FRIT_TYPE_CHOICE_TYPES = 24, FRIT_PRICED_WINDOWS = 8 };

// A type that a matrix may get.
typedef struct frit_type_price {
    frit_dtype type;
    uint64_t n_bytes;   // of the matrix
    double error;       // of the output of sampled rows: sum over columns of mean square of the input x squared error
    double kl;          // predicted
} frit_type_price;

// A matrix whose type is chosen.
typedef struct frit_type_choice_matrix {
    size_t i;           // in the checkpoint
    const char *name;   // borrowed from it
    frit_dtype probe;
    double probe_kl, probe_error;
    frit_type_price types[FRIT_TYPE_CHOICE_TYPES];   // by size
    int n_types, chosen;
    // The type was given: the matrix is not measured, but its entry in a state file stays for other runs.
    bool is_kept;
} frit_type_choice_matrix;

typedef struct frit_type_choice {
    const char *source;
    const frit_convert_options *convert;
    const frit_allocate_options *options;
    frit_quantize_options quantize;   // of the `convert` command's options, or none
    frit_log log;
    frit_arena arena;
    frit_checkpoint *ckpt;   // the tensors of the file, in the types of the source
    frit_hparams hp;
    frit_type_choice_matrix *list;
    size_t n;
    frit_map types;   // name -> type, for all tensors that are quantized
    frit_pool *pool;
    const frit_importance *importance;
    frit_importance read, measured;   // from a file, or from the text
    frit_model *model;                // in floats
    frit_token *tokens;               // [n_windows][n_ctx]
    size_t n_windows, n_ctx;
    bool has_text;         // the text is the caller's, or of a state file
    uint8_t sha256[32];    // hash of the tokens
    char model_key[65];    // hash of the model, its matrices, and importance from a file
    char key[65];          // hash of what is measured: model_key, text and windows
    uint64_t saved_ns;     // when the state was written
    double *errors;        // [n][FRIT_DTYPE_COUNT]; below 0: not measured
    double *window_kl;     // [n][FRIT_PRICED_WINDOWS]: probe_kl of each window; below 0: not measured; may be NULL
    double kl, kl_error;   // predicted, and its standard error over windows; 0: unknown
} frit_type_choice;

// Begins a phase, which progress is reported for.
void frit_type_choice_begin(const frit_type_choice *a, const char *phase);
frit_status frit_type_choice_report(const frit_type_choice *a, double done);   // FRIT_E_CANCELLED

frit_status frit_type_choice_list(frit_type_choice *a);          // lists the matrices, their types, and types that are
                                                                 // kept
frit_status frit_type_choice_set_windows(frit_type_choice *a);   // of the text, or of samples
// sample_text.txt: passages of many kinds, in the public domain or written for this project.
extern const char frit_sample_text[];
extern const size_t frit_sample_text_bytes;
// Fills a->tokens with n_windows of n_ctx tokens: alternately from frit_sample_text, as long as it lasts, and written
// by the model. Adds the inputs of matrices to `sums` meanwhile; NULL: not wanted.
frit_status frit_type_choice_write_samples(frit_type_choice *a, frit_importance *sums);
frit_status frit_type_choice_open_engine(frit_type_choice *a, frit_engine **out);
// Truncates the session to 0 and runs a window.
frit_status frit_type_choice_run_window(frit_engine *engine, frit_session *session, const frit_token *tokens, size_t n,
                                        const frit_push_options *push);
frit_status frit_type_choice_measure_importance(frit_type_choice *a);   // the importance of columns
// Returns the importance of a tensor's columns, [n_matrices, width], malloc'd; NULL if unknown.
frit_status frit_type_choice_column_means(const frit_type_choice *a, const frit_tensor *tensor, float **means);
frit_status frit_type_choice_measure_prices(frit_type_choice *a);
// The text that prices are measured over: windows, tokens of each, and the last rows of them that count.
typedef struct frit_priced_text {
    size_t n_windows, n_tokens, n_rows;
} frit_priced_text;
// Chooses the text by `operations`: of one token, for all prices.
frit_priced_text frit_type_choice_priced_text(double operations, size_t n_windows, size_t n_ctx, size_t n_vocab);
frit_status frit_type_choice_measure_errors(frit_type_choice *a);

// type_state.c: a file of measurements, so that a stopped run can continue and other sizes need no measuring. It is an
// importance file with text, prices and errors as metadata.
frit_status frit_type_choice_load(frit_type_choice *a);   // reads nothing if there is no file, or it has another key
frit_status frit_type_choice_save(frit_type_choice *a);
frit_status frit_type_choice_save_sometimes(frit_type_choice *a);   // once a minute

// FRIT_E_INVALID if the smallest types together exceed n_bytes.
frit_status frit_type_choice_check_size(const frit_type_choice *a, uint64_t n_bytes);
// Chooses types of at most n_bytes together. FRIT_E_INVALID if the smallest types exceed them.
frit_status frit_type_choice_search(frit_type_choice *a, uint64_t n_bytes);

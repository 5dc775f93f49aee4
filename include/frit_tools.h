// SPDX-License-Identifier: MIT
// frit_tools.h: what frit's own command, and tools like it, need beside frit.h: tables of options, models with random
// weights, where the time of steps goes, the ops and architectures of this build, the speed of this machine.
//
// The rules of frit.h apply here too.
#ifndef FRIT_TOOLS_H
#define FRIT_TOOLS_H

#include "frit.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------------------- options

// Options are rows: name, type, field, range, default, help. Command line, environment, JSON and bindings are
// generated from the rows that the functions *_option_rows below return.
typedef enum frit_option_type {
    FRIT_OPTION_FLAG,     // bool
    FRIT_OPTION_INT,      // int32_t
    FRIT_OPTION_SEED,     // uint64_t; "-1" asks for a random one where the caller supports it
    FRIT_OPTION_FLOAT,    // float
    FRIT_OPTION_TEXT,     // const char *
    FRIT_OPTION_CHOICE,   // const char *, one of `choices`
    FRIT_OPTION_LIST,     // frit_option_list, given any number of times
} frit_option_type;

typedef struct frit_option {
    const char *name;   // long name without dashes: "top-k"
    char letter;        // short name, or 0
    frit_option_type type;
    size_t offset;          // of the field in its options struct
    double min, max;        // for numbers; both 0: no limits
    const char *choices;    // for CHOICE: "md|json|csv"
    const char *fallback;   // the default of the command line as text, or NULL: the struct's zero
    const char *metavar;    // "N"
    const char *help;       // one line, no full stop
    const char *letters;    // short name of several letters, after one dash: "ctk"; or NULL
    const char *aliases;    // further long names, as llama.cpp spells them: "ctx-size|n-ctx"; or NULL
    uint64_t reserved[8];
} frit_option;

// Parses `text` into the field of `target` that the row describes. TEXT and CHOICE fields borrow `text`.
// FRIT_E_INVALID with a sentence that names the option, the value and what is allowed. Not for LIST.
FRIT_API frit_status frit_option_set(const frit_option *row, void *target, const char *text);

// The candidate with the smallest edit distance to `name`, for "did you mean ..."; NULL if the smallest is more than
// 1 + a third of the name's length. `candidates`: [n], none NULL.
FRIT_API const char *frit_name_nearest(const char *name, const char *const *candidates, size_t n);

// SHA-256 of some bytes. False, and nothing, if a pointer is NULL.
FRIT_API bool frit_sha256_of(const void *bytes, size_t n, uint8_t sum[32]);

// The rows of the options structs in frit.h. Static memory.
FRIT_API const frit_option *frit_model_option_rows(size_t *n_rows);
FRIT_API const frit_option *frit_convert_option_rows(size_t *n_rows);
FRIT_API const frit_option *frit_quantize_option_rows(size_t *n_rows);
FRIT_API const frit_option *frit_engine_option_rows(size_t *n_rows);
FRIT_API const frit_option *frit_embed_option_rows(size_t *n_rows);
FRIT_API const frit_option *frit_sampler_option_rows(size_t *n_rows);

// ---------------------------------------------------------------------------------------- files of a model

typedef struct frit_model_file {
    const char *path;   // lives as long as the model
    uint64_t n_bytes;
    uint64_t reserved[4];
} frit_model_file;

// File i of those that have the model's tensors: one, a set, or the weights of a folder. False past the end; a model
// that was opened from memory, or is random, has none.
FRIT_API bool frit_model_get_file(const frit_model *model, size_t i, frit_model_file *file);

// ---------------------------------------------------------------------------------------- files of sessions

// The note of a saved session (frit_session_set_note), without anything else of the file. Two calls as in
// frit_detokenize: FRIT_E_LIMIT if it does not fit. FRIT_E_FORMAT if the file is no session of this version.
FRIT_API frit_status frit_session_file_note(const char *path, char *note, size_t capacity, size_t *n_bytes);

// ---------------------------------------------------------------------------------------- random models

// Models in the shape of known ones with random weights, for measuring speed: how fast a model runs does not depend on
// what is in its weights. Its text is noise, and its experts are used evenly, as those of trained models are not.
typedef struct frit_random_shape {
    const char *name;   // "qwen3-30b-a3b"
    const char *arch, *title;
    int32_t n_layers;
    uint64_t reserved[8];
} frit_random_shape;

typedef struct frit_random_options {
    const char *shape;   // the name of one
    const char *type;    // of the matrices: "q4_k_m", "q5_k_m" or one type; NULL: q4_k_m
    int32_t n_layers;    // the first ones; 0: all
    int32_t n_threads;   // of frit_random_write; 0: one per core that this process may use
    frit_progress_fn progress;
    void *progress_ctx;
    uint64_t reserved[8];
} frit_random_options;

FRIT_API const frit_random_shape *frit_random_shape_get(size_t i);   // NULL past the end
// Writes one as GGUF, a few rows at a time; other engines load it too. Nothing is left under the name if it fails.
// FRIT_E_INVALID for an unknown shape or type, or more layers than the shape has; FRIT_E_IO.
FRIT_API frit_status frit_random_write(const char *path, const frit_random_options *options);
// Opens one without a file: engines make its weights while they pack them. Of the options of a model, `log` counts.
FRIT_API frit_status frit_model_open_random(frit_model **out, const frit_random_options *random,
                                            const frit_model_options *options);

// ---------------------------------------------------------------------------------------- importance

// How much the columns of matrices matter: the sums of the squares of what a model's products read, over a text.
// Quantizers weigh errors by them (frit_quantize_options.importance; other engines call such a file an imatrix).
typedef struct frit_importance frit_importance;

typedef struct frit_importance_info {
    const char *name;                        // of the matrix; lives as long as the object
    uint64_t n_values;                       // columns, times matrices where each has its own
    uint64_t n_counts, n_counts_zero;        // experts, or 1; and those that no token reached
    int64_t n_tokens;                        // of the expert that most tokens reached
    double sum, min, max, mean, deviation;   // of the mean squares
    double active;                           // share of mean squares above 1e-5
    double entropy;                          // of their distribution, in bits
    uint64_t reserved[8];
} frit_importance_info;

typedef struct frit_importance_file {
    bool legacy;                    // the format before GGUF
    const char *dataset;            // the name of the text; NULL: none
    int32_t n_chunks, chunk_size;   // windows of the text, and tokens of each; 0: as read
    uint64_t reserved[8];
} frit_importance_file;

FRIT_API frit_status frit_importance_new(frit_importance **out);
// A file of either format. FRIT_E_FORMAT with what is wrong in it.
FRIT_API frit_status frit_importance_read(frit_importance **out, const char *path);
FRIT_API void frit_importance_free(frit_importance *importance);
// Adds sums and counts. FRIT_E_INVALID for matrices of another size, or a legacy file that counts calls of unknown size
// beside one that counts tokens.
FRIT_API frit_status frit_importance_merge(frit_importance *into, const frit_importance *from);
FRIT_API frit_status frit_importance_write(const frit_importance *importance, const char *path,
                                           const frit_importance_file *options);
// Matrix i, by name; false past the end.
FRIT_API bool frit_importance_get_info(const frit_importance *importance, size_t i, frit_importance_info *info);

// Steps from now on add what products read to `importance`, which must outlive the engine; NULL: no more. Where logits
// or hidden states of all rows are asked for, all of them count in all layers. To be called between steps, and steps
// run one at a time. FRIT_E_UNSUPPORTED on devices that are not the CPU.
FRIT_API frit_status frit_engine_observe(frit_engine *engine, frit_importance *importance);

// The covariance of a matrix's input: H, the sum of x x^T over the rows x that the matrix multiplies. If E is added to
// the matrix, the squared changes of its results add up to trace(E H E^T).
typedef struct frit_covariance frit_covariance;

typedef struct frit_covariance_options {
    bool (*wants)(void *ctx, const char *name);   // whether this matrix's is wanted; NULL: all
    void *wants_ctx;
    uint64_t max_bytes;   // of all sums: a step fails with FRIT_E_MEMORY if they need more; 0: no limit
    uint64_t reserved[8];
} frit_covariance_options;

typedef struct frit_covariance_info {
    const char *name;        // of the matrix
    int64_t width, n_each;   // columns; experts or heads, which have sums each, or 1
    size_t source;           // the matrix with the sums: itself, or one that reads the same rows
    const float *sums;       // [n_each, width, width], symmetric
    const int64_t *counts;   // [n_each]: rows that were added up
    uint64_t reserved[8];
} frit_covariance_info;

// Sums take 4 width^2 bytes, once for matrices that read the same: 1 GB for a layer of an 8B model.
FRIT_API frit_status frit_covariance_new(frit_covariance **out, const frit_covariance_options *options);
FRIT_API void frit_covariance_free(frit_covariance *covariance);
// Matrix i, in the order of the model's graph; false past the end. Pointers hold until the next step.
FRIT_API bool frit_covariance_get_info(const frit_covariance *covariance, size_t i, frit_covariance_info *info);
// Steps from now on add to `covariance`, beside importance, and under the same conditions (frit_engine_observe). The
// sums do not depend on the number of threads.
FRIT_API frit_status frit_engine_observe_covariance(frit_engine *engine, frit_covariance *covariance);
// trace(E H E^T) for `errors`, rows of E [n_rows, info->width], with the sums of expert or head `each`. Several threads
// may call it.
FRIT_API double frit_covariance_error(const frit_covariance *covariance, const frit_covariance_info *info, int64_t each,
                                      const float *errors, int64_t n_rows);

typedef struct frit_refine_options {
    const frit_token *tokens;   // [n_tokens]: of a text like those that the model is for; some ten thousand
    size_t n_tokens;
    int32_t n_threads;   // 0: one per core that this process may use
    frit_progress_fn progress;
    void *progress_ctx;
    frit_log_fn log;   // how many matrices were refined, and warnings; NULL: silent
    void *log_ctx;
    uint64_t reserved[8];
} frit_refine_options;

// Rounds the matrices of `target` again, a GGUF file that frit_convert has made of `source`, with the covariance of
// their inputs: types and size stay, errors of results fall. Layer by layer, with the inputs as the quantized model
// has them; a matrix stays as it was where its error on text that is held out does not fall, or too few tokens reach
// it, and all do where the KL divergence there does not fall, which the file says (quantize.kl.mean). For q2_k to
// q6_k, q4_0 to q5_1, and the types of iq2, iq3 and iq4. Needs memory for two engines, the file, the covariance of a
// layer and, up to 4 GiB, the inputs of a layer in both models. The same bytes for any number of threads. The file is
// replaced at the end; where that fails, it stays, and TARGET.refine.part, from which the next run with the same
// target, source and tokens goes on. FRIT_E_INVALID for fewer than 4,096 tokens or a file that is not of this model,
// FRIT_E_UNSUPPORTED for a source that is no GGUF file, FRIT_E_CANCELLED.
FRIT_API frit_status frit_refine(const char *source, const char *target, const frit_refine_options *options);
// FRIT_OK if frit_refine accepts this source and n_tokens tokens: a check before the target file is made.
FRIT_API frit_status frit_refine_check(const frit_model *source, size_t n_tokens);

// ---------------------------------------------------------------------------------------- profile

// Where the time of steps goes, by kind of work.
typedef struct frit_profile_row {
    const char *op;     // "linear"; a backend's own steps have names too ("convert")
    const char *type;   // of the matrices or cached values that it reads: "q4_k"; "" without
    uint64_t n_calls;
    double run_s, wait_s;    // working, and waiting for other threads afterwards: the mean of the threads
    double n_bytes, n_ops;   // weights, keys and values read; multiplications and additions of products
    uint64_t reserved[8];
} frit_profile_row;
// Counts from zero from now on, or stops. Steps are somewhat slower while they are counted.
FRIT_API frit_status frit_engine_profile(frit_engine *engine, bool on);
// Row i, in the order of first use; false past the end. Its texts live until the counting stops or starts again.
FRIT_API bool frit_engine_get_profile(const frit_engine *engine, size_t i, frit_profile_row *row);

// ---------------------------------------------------------------------------------------- bits where they count

// Files of a given size: each matrix gets the type that serves the whole best. For each, the KL divergence of the
// model's predictions is measured with this matrix alone in a type of about three bits; the error of its output in the
// other types, relative to that one, predicts theirs; contributions add up.
typedef struct frit_allocate_options {
    const char *size;    // of the file at most: bytes, "300M", "4.5G" (powers of 1000)
    float bits;          // instead of a size: of a number, on average over all tensors
    const char *types;   // "k" (NULL): k-types and the older ones, fast everywhere; "all": i-quants too
    const char *text;    // to measure with, n_text bytes; NULL: the model's own, sampled at temperature 1
    size_t n_text;
    int32_t n_windows;   // of 512 tokens of the text, at most; 0: 256
    // A file for what was measured, also by a run that was stopped; a run with the same source and text goes on from
    // it, for any size. FRIT_E_FORMAT if it is another kind of file. NULL: none.
    const char *state;
    // Called when a new phase begins, with its name: "measuring prices", "encoding", ...; may be NULL.
    void (*phase)(void *ctx, const char *what);
    void *phase_ctx;
    // Gets every tensor, and the KL divergence that its type is predicted to cost; nothing is written then.
    void (*plan)(void *ctx, const frit_planned_tensor *tensor, double kl);
    void *plan_ctx;
    // Path of a file that was quantized from this source before, with importance or to a size. Tensors whose type,
    // source and importance did not change are copied from it, which gives the same bytes as encoding them. Refined
    // matrices are not copied. NULL: none.
    const char *reuse;
    // Called with the tokens that were measured with, windows one after the other, before the file is written; may be
    // NULL. frit_refine of the same text needs no second one.
    void (*tokens)(void *ctx, const frit_token *tokens, size_t n);
    void *tokens_ctx;
    uint64_t reserved[13];
} frit_allocate_options;

// As frit_convert, with types that are chosen. Of convert->quantize, `keep`, `output_type`, `embedding_type`,
// `importance` (measured too where it is NULL) count; the other matrices compete. The file has at most the
// bytes asked for. FRIT_E_INVALID for a size that is too small, or a text that is too short; else as frit_convert.
FRIT_API frit_status frit_allocate(const char *source, const char *target, const frit_convert_options *convert,
                                   const frit_allocate_options *options);

typedef struct frit_samples_options {
    size_t n_windows, n_ctx;   // of the text; n_ctx: tokens of each
    int32_t n_threads;         // 0: one per core that this process may use
    frit_progress_fn progress;
    void *progress_ctx;
    uint64_t reserved[8];
} frit_samples_options;

// A text that the model writes, to measure with: tokens [n_windows][n_ctx], sampled at temperature 1 from fixed seeds,
// from nothing and, if it is a model for chats, in every second window as a conversation. The same tokens on any number
// of threads. FRIT_E_UNSUPPORTED for models that write no text.
FRIT_API frit_status frit_samples_write(frit_model *model, const frit_samples_options *options, frit_token *tokens);

// ---------------------------------------------------------------------------------------- machine

typedef struct frit_machine {
    const char *cpu_name;
    const char *isa;        // best instruction set row of this build on this machine
    const char *cores_by;   // the source of n_cores: "hwloc", "sysfs"; "counted": every CPU is a core
    int32_t n_cores;        // that this process may use (affinity, cgroup quota)
    double read_gbps;       // measured: 10^9 bytes per second read from memory by n_threads
    double int8_tops;       // measured: 10^12 int8 multiply and add operations per second
    double float_tops;      // measured: the same of floats, bf16 where it is faster than f32
    uint64_t reserved[8];
} frit_machine;

// Fills the names, and measures for about a second when n_threads > 0.
FRIT_API frit_status frit_machine_probe(frit_machine *machine, int32_t n_threads);

typedef struct frit_machine_device {   // beside the CPU
    const char *name;                  // as frit_engine_options.device takes it: "cuda"
    bool is_usable;
    char kind[512];        // "NVIDIA H200"; of one that is not usable, why
    uint64_t free_bytes;   // of its memory
    uint64_t reserved[4];
} frit_machine_device;

// Device i of those that this build has code for, whether this machine has it or not. It is opened, which may take a
// second. False after the last.
FRIT_API bool frit_machine_get_device(size_t i, frit_machine_device *device);

typedef struct frit_op_info {
    const char *name;      // "rms_norm"
    const char *formula;   // what it computes
    const char *cpu;       // how the CPU runs it: "reference" or the instruction set of its kernel
    uint64_t reserved[8];
} frit_op_info;
// Row i of the op table; false past the end.
FRIT_API bool frit_op_get_info(size_t i, frit_op_info *info);

typedef struct frit_architecture_info {
    const char *name;    // general.architecture of a GGUF file: "llama"
    const char *title;   // for people: "Llama 1 to 3, Mistral, Mixtral"
    uint64_t reserved[8];
} frit_architecture_info;
// Row i of the list of architectures; false past the end.
FRIT_API bool frit_architecture_get_info(size_t i, frit_architecture_info *info);

#ifdef __cplusplus
}
#endif
#endif

// SPDX-License-Identifier: MIT
// frit_tools.h: declarations for frit's own command and similar tools, in addition to frit.h: tables of options, models
// with random weights, the times of steps, the ops and architectures of this build, the speed of this machine.
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
    FRIT_OPTION_SEED,     // uint64_t; "-1" means a random one if the caller supports it
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
    const char *aliases;    // further long names, as in llama.cpp: "ctx-size|n-ctx"; or NULL
    uint64_t reserved[8];
} frit_option;

// Parses `text` into the field of `target` that the row describes. TEXT and CHOICE fields borrow `text`. FRIT_E_INVALID
// with a sentence that names the option, the value and the allowed values. Not for LIST.
FRIT_API frit_status frit_option_set(const frit_option *row, void *target, const char *text);

// Returns the candidate with the smallest edit distance to `name`, for "did you mean ..."; NULL if the distance is more
// than 1 + a third of the name's length. `candidates`: [n], none of them NULL.
FRIT_API const char *frit_name_nearest(const char *name, const char *const *candidates, size_t n);

// Computes the SHA-256 of some bytes. If a pointer is NULL, returns false and writes nothing.
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

// Gets file i of the files with the model's tensors: one file, a split set, or the weights of a folder. False past the
// end; a model that was opened from memory, or is random, has no files.
FRIT_API bool frit_model_get_file(const frit_model *model, size_t i, frit_model_file *file);

// ---------------------------------------------------------------------------------------- files of sessions

// Reads only the note of a saved session (frit_session_set_note). Two-call pattern as in frit_detokenize: FRIT_E_LIMIT
// if it does not fit. FRIT_E_FORMAT if the file is not a session of this version.
FRIT_API frit_status frit_session_file_note(const char *path, char *note, size_t capacity, size_t *n_bytes);

// ---------------------------------------------------------------------------------------- random models

// Models with the shapes of known ones and random weights, for measuring speed: the speed of a model does not depend on
// the values of its weights. Its text is noise, and its experts are used evenly, unlike those of trained models.
typedef struct frit_random_shape {
    const char *name;   // "qwen3-30b-a3b"
    const char *arch, *title;
    int32_t n_layers;
    uint64_t reserved[8];
} frit_random_shape;

typedef struct frit_random_options {
    const char *shape;   // the name of a shape
    const char *type;    // of the matrices: "q4_k_m", "q5_k_m" or one type; NULL: q4_k_m
    int32_t n_layers;    // number of first layers; 0: all
    int32_t n_threads;   // of frit_random_write; 0: one per core that this process may use
    frit_progress_fn progress;
    void *progress_ctx;
    uint64_t reserved[8];
} frit_random_options;

FRIT_API const frit_random_shape *frit_random_shape_get(size_t i);   // NULL past the end
// Writes a random model as GGUF, a few rows at a time; other engines load it too. If it fails, no file is left under
// the name. FRIT_E_INVALID for an unknown shape or type, or more layers than the shape has; FRIT_E_IO.
FRIT_API frit_status frit_random_write(const char *path, const frit_random_options *options);
// Opens a random model without a file: engines generate its weights while they pack them. Only `log` of the options is
// used.
FRIT_API frit_status frit_model_open_random(frit_model **out, const frit_random_options *random,
                                            const frit_model_options *options);

// ---------------------------------------------------------------------------------------- kernels of GPUs

// NVIDIA GPUs run kernels that NVRTC compiles for the shapes of a model and the kind of GPU. An archive,
// FOLDER/sm_90.kernels, brings such kernels to a machine without NVRTC: engines find it in a folder `kernels` beside
// the library or program, in share/frit/kernels, or in the folder `weights_cache` of frit_engine_options.
typedef struct frit_kernels_gpu {
    const char *name;   // "h100"
    int32_t arch;       // 90: sm_90
    int32_t n_multiprocessors;
    uint64_t reserved[4];
} frit_kernels_gpu;

typedef struct frit_kernels_options {
    const char *folder;   // of the archives; it is made if its parent exists
    const char *gpu;      // the name of the GPU
    frit_progress_fn progress;
    void *progress_ctx;
    uint64_t reserved[8];
} frit_kernels_options;

typedef struct frit_kernels_report {
    char path[1024];                        // of the archive
    uint64_t n_kernels, n_added, n_bytes;   // in the archive; of these, new ones; size of the file
    uint64_t reserved[4];
} frit_kernels_report;

FRIT_API bool frit_kernels_get_gpu(size_t i, frit_kernels_gpu *gpu);   // false past the end
// Compiles what an engine of the model with these options would compile on the GPU, which this machine need not have,
// and adds it to the archive of the GPU's architecture. Reads no weights. Compiles on `n_threads` of the engine's
// options.
// An archive of another version of frit is replaced. FRIT_E_NOT_FOUND: there is no NVRTC; FRIT_E_CANCELLED.
FRIT_API frit_status frit_kernels_write(frit_model *model, const frit_engine_options *engine,
                                        const frit_kernels_options *options, frit_kernels_report *report);

// ---------------------------------------------------------------------------------------- importance

// The importance of the columns of matrices: sums of the squares of their inputs over a text. Quantizers weight errors
// by them (frit_quantize_options.importance; other engines call such a file an imatrix).
typedef struct frit_importance frit_importance;

typedef struct frit_importance_info {
    const char *name;                        // of the matrix; lives as long as the object
    uint64_t n_values;                       // columns, times the number of matrices if each has its own
    uint64_t n_counts, n_counts_zero;        // experts, or 1; and experts that no token reached
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
// Reads a file of either format. FRIT_E_FORMAT with the fault in the file.
FRIT_API frit_status frit_importance_read(frit_importance **out, const char *path);
FRIT_API void frit_importance_free(frit_importance *importance);
// Adds sums and counts. FRIT_E_INVALID for matrices of another size, or for a legacy file that counts calls of unknown
// size together with one that counts tokens.
FRIT_API frit_status frit_importance_merge(frit_importance *into, const frit_importance *from);
FRIT_API frit_status frit_importance_write(const frit_importance *importance, const char *path,
                                           const frit_importance_file *options);
// Gets matrix i, by name; false past the end.
FRIT_API bool frit_importance_get_info(const frit_importance *importance, size_t i, frit_importance_info *info);

// Makes steps add the squares of matrix inputs to `importance`, which must outlive the engine; NULL: no longer. If
// logits or hidden states of all rows are requested, all rows count in all layers. Must be called between steps, and
// steps run one at a time. FRIT_E_UNSUPPORTED on devices other than the CPU.
FRIT_API frit_status frit_engine_observe(frit_engine *engine, frit_importance *importance);

// The covariance of a matrix's input: H, the sum of x x^T over the rows x that the matrix multiplies. If E is added to
// the matrix, the squared changes of its results add up to trace(E H E^T).
typedef struct frit_covariance frit_covariance;

typedef struct frit_covariance_options {
    bool (*wants)(void *ctx, const char *name);   // true if this matrix is wanted; NULL: all are
    void *wants_ctx;
    uint64_t max_bytes;   // of all sums: a step fails with FRIT_E_MEMORY if they need more; 0: no limit
    uint64_t reserved[8];
} frit_covariance_options;

typedef struct frit_covariance_info {
    const char *name;        // of the matrix
    int64_t width, n_each;   // columns; experts or heads with separate sums, or 1
    size_t source;           // the matrix with the sums: itself, or one with the same input
    const float *sums;       // [n_each, width, width], symmetric
    const int64_t *counts;   // [n_each]: number of rows
    uint64_t reserved[8];
} frit_covariance_info;

// Sums take 4 width^2 bytes, once for matrices with the same input: 1 GB for a layer of an 8B model.
FRIT_API frit_status frit_covariance_new(frit_covariance **out, const frit_covariance_options *options);
FRIT_API void frit_covariance_free(frit_covariance *covariance);
// Gets matrix i, in the order of the model's graph; false past the end. Pointers are valid until the next step.
FRIT_API bool frit_covariance_get_info(const frit_covariance *covariance, size_t i, frit_covariance_info *info);
// Makes steps add to `covariance`, in addition to importance, under the conditions of frit_engine_observe. The sums do
// not depend on the number of threads.
FRIT_API frit_status frit_engine_observe_covariance(frit_engine *engine, frit_covariance *covariance);
// Returns trace(E H E^T) for `errors`, rows of E [n_rows, info->width], with the sums of expert or head `each`. Several
// threads may call it.
FRIT_API double frit_covariance_error(const frit_covariance *covariance, const frit_covariance_info *info, int64_t each,
                                      const float *errors, int64_t n_rows);

typedef struct frit_refine_options {
    const frit_token *tokens;   // [n_tokens]: some ten thousand tokens of text similar to the text that the model is
                                // used for
    size_t n_tokens;
    int32_t n_threads;   // 0: one per core that this process may use
    frit_progress_fn progress;
    void *progress_ctx;
    frit_log_fn log;   // number of refined matrices, and warnings; NULL: silent
    void *log_ctx;
    uint64_t reserved[8];
} frit_refine_options;

// Rounds the matrices of `target` again with the covariance of their inputs. `target` is a GGUF file that frit_convert
// made from `source`. Types and size stay, and errors of results become smaller. Layers are refined one after another,
// with the inputs of the quantized model. A matrix stays unchanged if its error on held-out text does not become
// smaller, or if too few tokens reach it. If the KL divergence on held-out text does not become smaller, the whole file
// stays unchanged; the divergence is stored in the file (quantize.kl.mean).
//
// Supports q2_k to q6_k, q4_0 to q5_1, and the types of iq2, iq3 and iq4. Needs memory for two engines, the file, the
// covariance of a layer and, up to 4 GiB, the inputs of a layer in both models. The bytes do not depend on the number
// of threads. The file is replaced at the end. After a failure it stays unchanged, and the next call with the same
// target, source and tokens continues from TARGET.refine.part. FRIT_E_INVALID for fewer than 4,096 tokens or a file
// that is not of this model, FRIT_E_UNSUPPORTED for a source that is not a GGUF file, FRIT_E_CANCELLED.
FRIT_API frit_status frit_refine(const char *source, const char *target, const frit_refine_options *options);
// Returns FRIT_OK if frit_refine accepts this source and n_tokens tokens: a check before the target file is made.
FRIT_API frit_status frit_refine_check(const frit_model *source, size_t n_tokens);

// ---------------------------------------------------------------------------------------- profile

// The times of steps by kind of work.
typedef struct frit_profile_row {
    const char *op;     // "linear"; a backend's own steps have names too ("convert")
    const char *type;   // of the matrices or cached values that the op reads: "q4_k"; "" without a type
    uint64_t n_calls;
    double run_s, wait_s;    // time of working, and of waiting for other threads afterwards: the mean over threads
    double n_bytes, n_ops;   // weights, keys and values read; multiply and add operations of products
    uint64_t reserved[8];
} frit_profile_row;
// Starts counting from zero, or stops. Steps are somewhat slower while they are counted.
FRIT_API frit_status frit_engine_profile(frit_engine *engine, bool on);
// Gets row i, in the order of first use; false past the end. The texts live until counting stops or starts again.
FRIT_API bool frit_engine_get_profile(const frit_engine *engine, size_t i, frit_profile_row *row);

// ---------------------------------------------------------------------------------------- bits where they count

// Files of a given size, in which each matrix gets a type so that the model's predictions change as little as possible.
// For each matrix, the KL divergence of the predictions is measured with this matrix alone in a type of about three
// bits. The error of its output in other types, relative to this type, predicts their divergence. The divergences of
// matrices are added.
typedef struct frit_allocate_options {
    const char *size;    // upper bound of the file's size: bytes, "300M", "4.5G" (powers of 1000)
    float bits;          // instead of a size: average bits of a number over all tensors
    const char *types;   // "k" (NULL): k-types and older types, which are fast everywhere; "all": also i-quants
    const char *text;    // the text of the measurement, n_text bytes; NULL: the model writes it, sampled at temperature
                         // 1
    size_t n_text;
    int32_t n_windows;   // upper bound of the text's windows of 512 tokens; 0: 256
    // A file for measurements, which a stopped call writes too. A call with the same source and text continues from it,
    // for any size. FRIT_E_FORMAT if it is another kind of file. NULL: none.
    const char *state;
    // Called when a new phase begins, with its name: "measuring prices", "encoding", ...; may be NULL.
    void (*phase)(void *ctx, const char *what);
    void *phase_ctx;
    // Called with every tensor and the predicted KL divergence of its type; if it is set, nothing is written.
    void (*plan)(void *ctx, const frit_planned_tensor *tensor, double kl);
    void *plan_ctx;
    // Path of a file that was quantized from this source before, with importance or to a size. Tensors whose type,
    // source and importance did not change are copied from it, which gives the same bytes as encoding them. Refined
    // matrices are not copied. NULL: none.
    const char *reuse;
    // Called with the tokens of the measurement, window by window, before the file is written; may be NULL. frit_refine
    // can use them as its text.
    void (*tokens)(void *ctx, const frit_token *tokens, size_t n);
    void *tokens_ctx;
    uint64_t reserved[13];
} frit_allocate_options;

// frit_convert with chosen types. Of convert->quantize, only `keep`, `output_type`, `embedding_type` and `importance`
// are used (NULL: importance is measured too); the types of all other matrices are chosen. The file has at most the
// requested bytes. FRIT_E_INVALID for a size that is too small, or a text that is too short; otherwise fails as
// frit_convert.
FRIT_API frit_status frit_allocate(const char *source, const char *target, const frit_convert_options *convert,
                                   const frit_allocate_options *options);

typedef struct frit_samples_options {
    size_t n_windows, n_ctx;   // of the text; n_ctx: tokens of each
    int32_t n_threads;         // 0: one per core that this process may use
    frit_progress_fn progress;
    void *progress_ctx;
    uint64_t reserved[8];
} frit_samples_options;

// Makes the model write a text for measurements: tokens [n_windows][n_ctx], sampled at temperature 1 from fixed seeds
// and an empty prompt. A chat model writes a conversation in every second window. The tokens do not depend on the
// number of threads. FRIT_E_UNSUPPORTED for models that generate no text.
FRIT_API frit_status frit_samples_write(frit_model *model, const frit_samples_options *options, frit_token *tokens);

// ---------------------------------------------------------------------------------------- machine

typedef struct frit_machine {
    const char *cpu_name;
    const char *isa;        // best instruction set row of this build on this machine
    const char *cores_by;   // the source of n_cores: "hwloc", "sysfs"; "counted": every CPU is a core
    int32_t n_cores;        // that this process may use (affinity, cgroup quota)
    double read_gbps;       // measured: 10^9 bytes per second read from memory by n_threads
    double int8_tops;       // measured: 10^12 int8 multiply and add operations per second
    double float_tops;      // measured: 10^12 float multiply and add operations per second, with bf16 if it is faster
                            // than f32
    int64_t n_nodes;        // memory (NUMA) nodes
    uint64_t reserved[7];
} frit_machine;

// Sets the names and, if n_threads > 0, measures for about a second.
FRIT_API frit_status frit_machine_probe(frit_machine *machine, int32_t n_threads);

typedef struct frit_machine_device {   // a device other than the CPU
    const char *name;                  // as in frit_engine_options.device: "cuda"
    bool is_usable;
    char kind[512];        // "NVIDIA H200"; if it is not usable, the reason
    uint64_t free_bytes;   // of the device's memory
    uint64_t reaches;      // bit k: it reads and writes the memory of the backend's device k, as NAME:k
    uint64_t reserved[3];
} frit_machine_device;

// Gets device i of the devices that this build has code for, even if this machine does not have it. The device is
// opened, which may take a second. False past the end.
FRIT_API bool frit_machine_get_device(size_t i, frit_machine_device *device);

typedef struct frit_op_info {
    const char *name;      // "rms_norm"
    const char *formula;   // definition of the op
    const char *cpu;       // "reference", or the instruction set of the CPU's kernel
    uint64_t reserved[8];
} frit_op_info;
// Gets row i of the op table; false past the end.
FRIT_API bool frit_op_get_info(size_t i, frit_op_info *info);

typedef struct frit_architecture_info {
    const char *name;    // general.architecture of a GGUF file: "llama"
    const char *title;   // for people: "Llama 1 to 3, Mistral, Mixtral"
    uint64_t reserved[8];
} frit_architecture_info;
// Gets row i of the list of architectures; false past the end.
FRIT_API bool frit_architecture_get_info(size_t i, frit_architecture_info *info);

#ifdef __cplusplus
}
#endif
#endif

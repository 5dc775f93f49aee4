// SPDX-License-Identifier: MIT
// frit/model.h: an opened model: its information and metadata; conversion of files.
#ifndef FRIT_MODEL_H
#define FRIT_MODEL_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct frit_model frit_model;
typedef int32_t frit_token;

// A list of zero-terminated texts, borrowed from the caller.
typedef struct frit_option_list {
    const char *const *items;
    size_t n;
} frit_option_list;

typedef enum frit_log_level { FRIT_LOG_ERROR, FRIT_LOG_WARNING, FRIT_LOG_INFO, FRIT_LOG_DEBUG } frit_log_level;
typedef void (*frit_log_fn)(void *ctx, frit_log_level level, const char *sentence);

// Called with 0...1 while a model loads; returns false to cancel (FRIT_E_CANCELLED).
typedef bool (*frit_progress_fn)(void *ctx, double done);

typedef struct frit_model_options {
    bool no_mmap;      // read the file into memory instead of mapping it
    bool vocab_only;   // for text functions only: tensors are listed, but their data is not used
    // Quantizes matrices to this type ("q8_0", "f16", "fp8", ...) when an engine packs them, to the values that
    // frit_convert would write. NULL: matrices keep the types of the file.
    const char *type;
    // Path of a file whose chat template replaces the model's own, or the name of one of the model's templates, which
    // is then used for all conversations. NULL: the model's "tool_use" with tools and "default" without.
    const char *chat_template;
    frit_progress_fn progress;
    void *progress_ctx;
    frit_log_fn log;   // warnings about the file; inherited by engines; NULL: silent
    void *log_ctx;
    // Overrides of the file's RoPE parameters; 0 and NULL: the file's values. Frequency factors that are stored as
    // tensors stay, and models without RoPE do not change. Sessions saved under other parameters are refused.
    const char *rope_scaling;   // "none", "linear", "yarn"
    float rope_scale;           // context extension factor: 4 for four times as many positions
    float rope_freq_scale;      // the inverse of rope_scale, instead of it
    float rope_freq_base;
    float yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
    int32_t yarn_orig_ctx;   // the context that the model was trained for before it was scaled
    // Path of the encoder of pictures: an mmproj file, which is GGUF, or a folder. NULL: it is in the model's folder,
    // or in the one file mmproj-*.gguf beside the model's GGUF file. It is opened with the first picture.
    const char *mmproj;
    uint64_t reserved[2];
} frit_model_options;

// Opens a GGUF file (any part of a split set), a safetensors file or a Hugging Face folder.
// FRIT_E_NOT_FOUND, FRIT_E_FORMAT, FRIT_E_UNSUPPORTED, FRIT_E_IO, FRIT_E_MEMORY, FRIT_E_CANCELLED.
FRIT_API frit_status frit_model_open(frit_model **out, const char *path, const frit_model_options *options);
// Opens one GGUF file in memory. The bytes are borrowed until the model and its engines are freed. The model's path is
// "memory", and `no_mmap` has no effect. FRIT_E_UNSUPPORTED for a part of a split set.
FRIT_API frit_status frit_model_open_memory(frit_model **out, const void *bytes, size_t n_bytes,
                                            const frit_model_options *options);
// Files whose bytes a function reads, for programs that cannot map files, as in browsers.
typedef struct frit_model_files {
    const uint64_t *n_bytes;   // [n_files]: the size of each file
    size_t n_files;            // 1, or all files of a split set in order
    // Reads bytes [at, at + n) of file `file`; false if they cannot be read. On the CPU, called only by threads that
    // call functions of the library; a GPU's weights may be read by other threads. Called until the model and its
    // engines are freed.
    bool (*read)(void *ctx, size_t file, uint64_t at, void *bytes, size_t n);
    void *ctx;
    uint64_t reserved[4];
} frit_model_files;

// Opens a GGUF file, or all files of a split set, through a function that reads ranges of them. Matrices are read when
// an engine packs them, a few MiB at a time, and stay in memory in packed form only. The sizes are borrowed for the
// call. The model's path is "files", weights_cache and `no_mmap` have no effect. FRIT_E_IO if bytes cannot be read;
// otherwise fails as frit_model_open.
FRIT_API frit_status frit_model_open_files(frit_model **out, const frit_model_files *files,
                                           const frit_model_options *options);
// Opens the model's multi-token prediction layer as a draft model. An engine of it drafts tokens for sessions of
// `model` (frit_speculate_options.draft) from their hidden states. Keeps `model` alive. FRIT_E_UNSUPPORTED if the file
// has no such layer, or lacks some of its tensors.
FRIT_API frit_status frit_model_open_next(frit_model **out, frit_model *model);
FRIT_API void frit_model_free(frit_model *model);   // engines keep their model alive

typedef enum frit_model_kind {
    FRIT_KIND_DECODER,           // a causal language model, or a diffusion model
    FRIT_KIND_ENCODER,           // computes embeddings; has no logits and generates no text
    FRIT_KIND_ENCODER_DECODER,   // encodes a source text (frit_session_encode), then generates another
} frit_model_kind;

typedef struct frit_model_info {
    frit_model_kind kind;
    const char *pooling;   // the default of frit_embed_options.pooling: such as "mean"
    const char *path;
    const char *format;         // "GGUF v3", "safetensors"
    const char *architecture;   // "llama"
    const char *name;           // general.name, or ""
    const char *file_type;      // "q4_k_m", or the most frequent tensor type
    const char *tokenizer;      // "gpt2", "llama", ..., "none"
    const char *chat_format;    // name of the recognised template family; "": no template
    int64_t n_params;           // weights in all tensors
    uint64_t n_bytes;           // their size in the file
    uint64_t bytes_per_token;   // weight bytes that one decode step reads
    uint64_t ops_per_token;     // multiply and add operations of one token at depth 0
    frit_token decoder_start;   // encoder-decoders: the token that generated text begins with
    int32_t n_vocab, n_ctx_train, n_embd, n_layer, n_head, n_head_kv, n_ff;
    size_t n_tensors, n_meta;
    bool adds_bos, adds_eos;   // FRIT_TEXT_SPECIAL adds these tokens around a text
    int32_t n_layer_next;      // layers for multi-token prediction in the file, in addition to n_layer
    int64_t n_embed_tokens;    // to which texts are cut before they are embedded (frit_embed_cut); 0: no limit
    uint64_t reserved[7];
} frit_model_info;

typedef struct frit_tensor_info {
    const char *name;
    const char *type;   // "q4_k"
    int n_dims;
    int64_t shape[4];   // outermost first
    uint64_t n_bytes;
    uint64_t reserved[8];
} frit_tensor_info;

// All pointers in the results live as long as the model.
FRIT_API frit_status frit_model_get_info(const frit_model *model, frit_model_info *info);
FRIT_API bool frit_model_get_tensor(const frit_model *model, size_t i, frit_tensor_info *info);
// Returns the bytes of the KV cache per token, with cache types as in frit_engine_options (NULL: "f16"). 0 if no layer
// has keys and values, or if the file's metadata is incomplete.
FRIT_API uint64_t frit_model_kv_bytes(const frit_model *model, const char *cache_type_k, const char *cache_type_v);
// Returns the key of metadata pair i, or NULL past the end, and writes its value as text: at most `max_items` items of
// an array, and at most `size` bytes with the final zero.
FRIT_API const char *frit_model_get_meta(const frit_model *model, size_t i, char *buffer, size_t size, int max_items);
// Returns the key of metadata pair i, or NULL past the end, and writes its value as JSON; a number that is not finite
// is null. A list of more than max_items (negative: no limit) becomes {"length": N, "first": [...]}. *n_bytes is the
// length of the JSON text; the buffer receives it with a final zero if *n_bytes < size, else nothing.
FRIT_API const char *frit_model_get_meta_json(const frit_model *model, size_t i, char *buffer, size_t size,
                                              int max_items, size_t *n_bytes);

typedef enum frit_meta_type { FRIT_META_BOOL, FRIT_META_INT, FRIT_META_FLOAT, FRIT_META_TEXT } frit_meta_type;

typedef struct frit_meta_info {
    frit_meta_type type;   // of the value, or of the items of an array
    bool is_array;
    uint64_t n_items;   // items of an array; 1 for a single value
    uint64_t reserved[8];
} frit_meta_info;

// Finds metadata by key, under GGUF's names ("llama.context_length"), also for models of other formats. `i` is the item
// of an array; a single value is item 0. Integers and floats convert into each other if the conversion is exact, and a
// bool reads as 0 or 1. FRIT_E_NOT_FOUND if there is no such key, FRIT_E_INVALID for an item past the end or a value of
// another type.
FRIT_API frit_status frit_model_find_meta(const frit_model *model, const char *key, frit_meta_info *info);
FRIT_API frit_status frit_model_meta_int(const frit_model *model, const char *key, uint64_t i, int64_t *value);
FRIT_API frit_status frit_model_meta_float(const frit_model *model, const char *key, uint64_t i, double *value);
// *text lives as long as the model and is not zero-terminated.
FRIT_API frit_status frit_model_meta_text(const frit_model *model, const char *key, uint64_t i, const char **text,
                                          size_t *n_bytes);

// ---------------------------------------------------------------------------------------- conversion

// A tensor of a conversion: its type before and after.
typedef struct frit_planned_tensor {
    const char *name;
    const char *from, *to;   // types
    int32_t n_dims;
    int64_t shape[4];   // outermost first
    uint64_t n_bytes;   // in the file
    bool needs_importance, has_importance;
    uint64_t reserved[8];
} frit_planned_tensor;

// Quantization with a mix of types, chosen for each tensor by the rules of llama.cpp's quantizer.
typedef struct frit_quantize_options {
    const char *mix;          // "q4_k_m", "iq3_xs", ...; NULL: only a type
    const char *importance;   // a file of 'frit imatrix' or llama-imatrix; NULL: none
    frit_option_list
        keep;   // "REGEX=TYPE": tensors whose names match get this type; the first rule that matches is used
    const char *output_type, *embedding_type;   // of the output matrix and the token table; NULL: by the mix
    bool pure;                                  // the mix's main type for all matrices
    // If set, called with every tensor in the order of the file, and no file is written; `target` may be NULL. The
    // tensor's texts live until the call returns.
    void (*plan)(void *ctx, const frit_planned_tensor *tensor);
    void *plan_ctx;
    // Path of a file that was quantized from this source before, with importance or to a size. Tensors whose type,
    // source and importance did not change are copied from it, which gives the same bytes as encoding them. NULL: none.
    const char *reuse;
    uint64_t reserved[7];
} frit_quantize_options;

typedef struct frit_convert_options {
    // Type of the matrices ("f32", "f16", "bf16", "q8_0", ...) or a mix ("q4_k_m", ...); NULL: the types of the source.
    const char *type;
    const char
        *split_max_size;   // bytes of a file at most ("500M", "4G"; K, M and G are powers of 1000); NULL: one file
    const char *base;      // of a PEFT adapter: its model, a folder or GGUF file; NULL: the one that the adapter names
    int32_t n_threads;     // 0: one per core that this process may use
    frit_progress_fn progress;
    void *progress_ctx;
    frit_log_fn log;   // warnings, and the name of the (first) file that was written; NULL: silent
    void *log_ctx;
    const frit_quantize_options *quantize;   // with a mix, instead of `type`; NULL: none
    uint64_t reserved[7];
} frit_convert_options;

// Converts a Hugging Face folder, a safetensors file with a config.json beside it, or a GGUF file to GGUF in the form
// that other engines expect: order of rows, tokenizer, chat template. A PEFT adapter becomes a GGUF adapter. `target`
// ends in ".gguf"; the files of a split set are called NAME-00001-of-00003.gguf and so on.
//
// Vectors and small tensors stay f32. A matrix whose row length is not a multiple of the type's block size gets the
// next finer type with blocks of 32 (q5_0 for q4_k, iq4_nl for q2_k, q3_k and i-quants, q5_1 for q5_k, q8_0 for q6_k),
// or else f16; `log` receives a warning that counts and names these matrices.
//
// Uses memory for a few rows, not for the model. A failed conversion leaves no file under a final name. FRIT_E_INVALID
// for an unknown type, a bad size or a bad name; FRIT_E_IO; otherwise fails as frit_model_open.
FRIT_API frit_status frit_convert(const char *source, const char *target, const frit_convert_options *options);

#ifdef __cplusplus
}
#endif
#endif

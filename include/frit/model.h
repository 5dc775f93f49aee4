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

// Texts that the caller lends.
typedef struct frit_option_list {
    const char *const *items;
    size_t n;
} frit_option_list;

typedef enum frit_log_level { FRIT_LOG_ERROR, FRIT_LOG_WARNING, FRIT_LOG_INFO, FRIT_LOG_DEBUG } frit_log_level;
typedef void (*frit_log_fn)(void *ctx, frit_log_level level, const char *sentence);

// Called with 0...1 while a model loads; return false to cancel (FRIT_E_CANCELLED).
typedef bool (*frit_progress_fn)(void *ctx, double done);

typedef struct frit_model_options {
    bool no_mmap;      // read the file into memory instead of mapping it
    bool vocab_only;   // only text is needed: tensors are listed but not bound
    // Matrices in this type ("q8_0", "f16", ...), with the same numbers as in the file that frit_convert writes; they
    // are quantized when an engine packs them. NULL: as the file has them.
    const char *type;
    // Path of a file with a chat template that takes the place of the model's own; or the name of one of its
    // templates, which is then used for all conversations, instead of "tool_use" with tools and "default" without.
    const char *chat_template;
    frit_progress_fn progress;
    void *progress_ctx;
    frit_log_fn log;   // warnings about the file; inherited by engines; NULL: silent
    void *log_ctx;
    // How positions are rotated (RoPE), where that is not what the file says; 0 and NULL: as it says. Factors that lie
    // among the weights stay, and models without RoPE do not change. Sessions saved otherwise are refused.
    const char *rope_scaling;   // "none", "linear", "yarn"
    float rope_scale;           // of the original context: 4 for four times as many positions
    float rope_freq_scale;      // the inverse of rope_scale, instead of it
    float rope_freq_base;
    float yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
    int32_t yarn_orig_ctx;   // the context that the model was trained for before it was scaled
    uint64_t reserved[3];
} frit_model_options;

// Opens a GGUF file (any part of a split set), a safetensors file or a Hugging Face folder.
// FRIT_E_NOT_FOUND, FRIT_E_FORMAT, FRIT_E_UNSUPPORTED, FRIT_E_IO, FRIT_E_MEMORY, FRIT_E_CANCELLED.
FRIT_API frit_status frit_model_open(frit_model **out, const char *path, const frit_model_options *options);
// Opens one GGUF file that lies in memory. The bytes are borrowed until the model and its engines are freed. The path
// in its information is "memory"; `no_mmap` means nothing. Parts of split sets are refused: FRIT_E_UNSUPPORTED.
FRIT_API frit_status frit_model_open_memory(frit_model **out, const void *bytes, size_t n_bytes,
                                            const frit_model_options *options);
// The model's layer for multi-token prediction, where its file has one, as a model: an engine of it guesses tokens as a
// draft model does (frit_speculate_options.draft), from the hidden states of sessions of `model`, which it keeps alive.
// FRIT_E_UNSUPPORTED: the file has no such layer, or not all of it.
FRIT_API frit_status frit_model_open_next(frit_model **out, frit_model *model);
FRIT_API void frit_model_free(frit_model *model);   // engines keep their model alive

typedef enum frit_model_kind {
    FRIT_KIND_DECODER,           // a causal language model, or a diffusion model
    FRIT_KIND_ENCODER,           // gives embeddings; has no logits and generates nothing
    FRIT_KIND_ENCODER_DECODER,   // reads a text, then writes another: frit_session_encode
} frit_model_kind;

typedef struct frit_model_info {
    frit_model_kind kind;
    const char *pooling;   // the default of frit_embed_options.pooling: "mean", "cls", "last", "rank", "none"
    const char *path;
    const char *format;         // "GGUF v3", "safetensors"
    const char *architecture;   // "llama"
    const char *name;           // general.name, or ""
    const char *file_type;      // "q4_k_m", or the most frequent tensor type
    const char *tokenizer;      // "gpt2", "llama", ..., "none"
    const char *chat_format;    // name of the recognised template family, or "" without one
    int64_t n_params;           // weights in all tensors
    uint64_t n_bytes;           // their size in the file
    uint64_t bytes_per_token;   // weight bytes that one decode step reads
    uint64_t ops_per_token;     // multiply and add operations of one token at depth 0
    frit_token decoder_start;   // of encoder-decoders: what the written text begins with
    int32_t n_vocab, n_ctx_train, n_embd, n_layer, n_head, n_head_kv, n_ff;
    size_t n_tensors, n_meta;
    bool adds_bos, adds_eos;   // FRIT_TEXT_SPECIAL puts these tokens around a text
    int32_t n_layer_next;      // layers for multi-token prediction that the file has beside n_layer
    uint64_t reserved[8];
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
// Bytes of the cache that each token takes, with the types of frit_engine_options (NULL: "f16"). 0 where no layer has
// keys and values, or the file does not say enough.
FRIT_API uint64_t frit_model_kv_bytes(const frit_model *model, const char *cache_type_k, const char *cache_type_v);
// Metadata pair i; `value` is written as text, long arrays shortened to at most `max_items` items.
// Returns the key, or NULL past the end. `buffer` receives at most `size` bytes with the final zero.
FRIT_API const char *frit_model_get_meta(const frit_model *model, size_t i, char *buffer, size_t size, int max_items);
// The same as JSON: numbers, true and false, text, lists; null for a number that is not finite. A list of more than
// max_items (negative: no limit) becomes {"length": N, "first": [...]}. *n_bytes: its length; the buffer has it all,
// and a final zero, if it is below `size`, else nothing.
FRIT_API const char *frit_model_get_meta_json(const frit_model *model, size_t i, char *buffer, size_t size,
                                              int max_items, size_t *n_bytes);

typedef enum frit_meta_type { FRIT_META_BOOL, FRIT_META_INT, FRIT_META_FLOAT, FRIT_META_TEXT } frit_meta_type;

typedef struct frit_meta_info {
    frit_meta_type type;   // of the value, or of the items of an array
    bool is_array;
    uint64_t n_items;   // of an array; 1 of a single value
    uint64_t reserved[8];
} frit_meta_info;

// Metadata by key, under the names of GGUF ("llama.context_length"), whatever files the model comes from. Item i of an
// array; a single value is item 0. FRIT_E_NOT_FOUND without the key, FRIT_E_INVALID for an item past the end or a
// value that is not of this type. Integers and floats convert into each other where the number stays the same; a bool
// is an integer too.
FRIT_API frit_status frit_model_find_meta(const frit_model *model, const char *key, frit_meta_info *info);
FRIT_API frit_status frit_model_meta_int(const frit_model *model, const char *key, uint64_t i, int64_t *value);
FRIT_API frit_status frit_model_meta_float(const frit_model *model, const char *key, uint64_t i, double *value);
// Lives as long as the model; not zero-terminated.
FRIT_API frit_status frit_model_meta_text(const frit_model *model, const char *key, uint64_t i, const char **text,
                                          size_t *n_bytes);

// ---------------------------------------------------------------------------------------- conversion

// What a tensor becomes.
typedef struct frit_planned_tensor {
    const char *name;
    const char *from, *to;   // types
    int32_t n_dims;
    int64_t shape[4];   // outermost first
    uint64_t n_bytes;   // in the file
    bool needs_importance, has_importance;
    uint64_t reserved[8];
} frit_planned_tensor;

// Mixtures of types, with the rules of llama.cpp's quantizer: files get the types that it would give them.
typedef struct frit_quantize_options {
    const char *mix;          // "q4_k_m", "iq3_xs", ...; NULL: only a type
    const char *importance;   // a file of 'frit imatrix' or llama-imatrix; NULL: none
    frit_option_list
        keep;   // "REGEX=TYPE": tensors whose names match get this type; the first rule that matches counts
    const char *output_type, *embedding_type;   // of the output matrix and the token table; NULL: by the mix
    bool pure;                                  // the mix's main type for all matrices
    // Gets every tensor, in the order of the file; nothing is written, and `target` may be NULL. The tensor's texts
    // live during the call.
    void (*plan)(void *ctx, const frit_planned_tensor *tensor);
    void *plan_ctx;
    // An earlier file of this source, of a mix with importance or of a size: tensors whose type, numbers and importance
    // are the same are copied from it, the bytes are those of encoding them. NULL: none.
    const char *reuse;
    uint64_t reserved[7];
} frit_quantize_options;

typedef struct frit_convert_options {
    // Of the matrices: "f32", "f16", "bf16", "q8_0", ...; or a mix: "q4_k_m", ...; NULL: as the source has them.
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

// Writes a Hugging Face folder, a safetensors file with its config.json beside it or a GGUF file as GGUF, with what
// other engines expect of one: order of rows, tokenizer, chat template. `target` ends in ".gguf"; a split set is called
// NAME-00001-of-00003.gguf and so on. Vectors and what else is small stay f32. A matrix whose rows the type's blocks do
// not divide gets the next finer type with blocks of 32 (q5_0 for q4_k, iq4_nl for q2_k, q3_k and i-quants, q5_1 for
// q5_k, q8_0 for q6_k), else f16, and `log` a warning that counts and names them. A PEFT adapter becomes a GGUF one.
// Needs memory for a few rows, not for the model. Nothing is left under the final names if it fails. FRIT_E_INVALID for
// an unknown type, or a bad size or name; else as frit_model_open, and FRIT_E_IO.
FRIT_API frit_status frit_convert(const char *source, const char *target, const frit_convert_options *options);

#ifdef __cplusplus
}
#endif
#endif

// SPDX-License-Identifier: MIT
// format/hf.h: how a Hugging Face folder reads as a GGUF file would: one small table per model family.
//
// A family is a row: which keys of config.json become which keys of GGUF (and what transformers takes where one is
// absent), and which tensors become which. Most families are written like Llama, so they share its names and only
// list where they differ: an own row replaces the shared row with the same GGUF name. Adding a family means one file
// hf_NAME.c with its rows, and one line in hf_families.c. Rotary embeddings are spelled alike everywhere: hf_rope.c.
//
//     {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, .if_absent = 8, .if_null = FRIT_HF_N_HEAD},
//     {"model.layers.*.self_attn.q_proj", "blk.*.attn_q", .bias_if = "attention_bias"},
#pragma once
#include "format/checkpoint.h"

#include <jansson.h>

// What a number of config.json is; each kind has its limits, in hf_config.c.
typedef enum frit_hf_kind {
    FRIT_HF_COUNT,   // from 0 on
    FRIT_HF_LAYERS,
    FRIT_HF_HEADS,
    FRIT_HF_WIDTH,    // elements of a vector
    FRIT_HF_TOKENS,   // positions, or entries of a vocabulary
    FRIT_HF_EPSILON,
    FRIT_HF_FACTOR,      // above 0
    FRIT_HF_MAGNITUDE,   // from 0 on
    FRIT_HF_BASE,        // of rotary frequencies, above 1
    FRIT_HF_FLAG,
} frit_hf_kind;

// What takes the place of an absent or null value: a number, or one of these. Zero means that a value must be there.
enum {
    FRIT_HF_NEEDED = 0,
    FRIT_HF_NO_KEY = -1,   // nothing is written
    // The rest refers to rows above this one.
    FRIT_HF_N_HEAD = -2,    // attention.head_count
    FRIT_HF_DIVIDED = -3,   // embedding_length / attention.head_count
    FRIT_HF_K_DIM = -4,     // attention.key_length
    FRIT_HF_4_EMBD = -5,    // 4 * embedding_length
    FRIT_HF_FALSE = -6,     // of flags, in the place of 0
};

typedef struct frit_hf_key {
    const char *name;   // in config.json; NULL: it does not say, what is absent counts
    const char *key;    // in GGUF, behind "ARCH."
    frit_hf_kind kind;
    double if_absent, if_null;
} frit_hf_key;

#define FRIT_HF_ALWAYS ""
#define FRIT_HF_MAYBE  "?"   // where the file has it

typedef struct frit_hf frit_hf;

typedef struct frit_hf_tensor {
    const char *name;   // without ".weight"; '*' stands for the layer, '@' for the expert, which become one tensor
    const char *gguf;
    const char *bias_if;   // the flag of config.json that adds a ".bias"; FRIT_HF_ALWAYS; NULL: none
    bool may_be_tied;      // may be absent where tie_word_embeddings is set
    bool may_be_absent;
    bool none;            // a shared row that the family does not have
    bool whole;           // both names are whole: nothing stands behind them
    bool is_key;          // of one number, which becomes item '*' of the list `gguf`; its name is whole
    bool of_classifier;   // has a place in models that classify texts only
    // Into GGUF's convention, weight and bias alike; NULL: as they are.
    frit_status (*rewrite)(const frit_hf *hf, frit_tensor *tensor, bool is_bias);
} frit_hf_tensor;

typedef struct frit_hf_names {
    const frit_hf_key *keys;
    size_t n_keys;
    const frit_hf_tensor *tensors;
    size_t n_tensors;
} frit_hf_names;

typedef struct frit_hf_family {
    const char *model_type;    // of config.json
    const char *class_name;    // the first of its "architectures", where it has no model_type
    const char *arch;          // general.architecture
    const char *prefix;        // that stands before all names in files of some classes: "bert."; or NULL
    const char *ignored;       // beginnings of names that have no place, on purpose: "pooler.|cls."; or NULL
    const char *act;           // values of hidden_act that the architecture computes: "silu|swish"
    const char *rope_style;    // frit.rope.style, where it is not that of the architecture's GGUF files; or NULL
    bool is_tied;              // tie_word_embeddings, where it is absent
    const char *act_name;      // of hidden_act, where it has another
    const char *default_act;   // where config.json has none
    const char *norm;          // frit.norm, where it is not that of the architecture's GGUF files; or NULL
    double partial_rotary;     // partial_rotary_factor, where it is absent; 0: 1
    double base, base_swa;     // rope_theta and rope_local_base_freq, where absent; 0: 10000, and none
    // Where layer_types are absent: so many layers at the beginning have no window, unless max_window_layers says
    // otherwise; of the others one of so many, unless sliding_window_pattern does. 0: all have one.
    int window_first, window_period;
    bool has_windows;       // layer_types and sliding_window say which layers slide
    bool is_proportional;   // partial_rotary_factor is the family's to read: pairs that rotate are of the whole head
    bool is_latent;         // YaRN scales attention, not what rotates
    const frit_hf_names *shared;
    frit_hf_names own;
    bool (*fits)(const json_t *config);       // NULL, or whether it is of this kind: the first that fits is taken
    frit_status (*more)(const frit_hf *hf);   // what rows cannot say; may be NULL
} frit_hf_family;

extern const frit_hf_names frit_hf_decoder;    // the names that most families share
extern const frit_hf_names frit_hf_no_names;   // for those that share none

const frit_hf_family *frit_hf_family_get(size_t i);   // NULL past the end
// Row i of the family's own rows and of the shared rows that they leave; NULL past the end.
const frit_hf_key *frit_hf_key_get(const frit_hf_family *family, size_t i);
const frit_hf_tensor *frit_hf_tensor_get(const frit_hf_family *family, size_t i);

// One config.json, being read into a checkpoint.
struct frit_hf {
    frit_checkpoint *ckpt;
    const char *path;       // of config.json
    const json_t *config;   // of the text model
    const json_t *whole;    // the file: the same, or what has it as text_config
    const frit_hf_family *family;
};

// folder.c: what GGUF calls the tensor with this name; `row` is NULL if the family has none. Needs no config.
typedef struct frit_hf_matrix {
    const frit_hf_tensor *row;
    int64_t expert;   // -1: of none
    char name[128];
} frit_hf_matrix;
frit_status frit_hf_find_matrix(const frit_hf *hf, const char *name, frit_hf_matrix *out);

// hf_config.c: finds the text model in hf->config, which becomes it, and its family, and writes its keys into the
// checkpoint's metadata.
frit_status frit_hf_read_config(frit_hf *hf);
// Reading. `where` names the object for sentences: "" or "rope_scaling."; absent and null leave *out as it is.
frit_status frit_hf_get_number(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                               frit_hf_kind kind, double *out);
frit_status frit_hf_get_flag(const frit_hf *hf, const json_t *object, const char *where, const char *name, bool *out);
frit_status frit_hf_get_text(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                             const char **out);
// Writing "ARCH.key".
frit_status frit_hf_add_number(const frit_hf *hf, const char *key, frit_hf_kind kind, double value);
frit_status frit_hf_add_text(const frit_hf *hf, const char *key, const char *value);
frit_status frit_hf_add_row(const frit_hf *hf, const json_t *object, const char *where, const frit_hf_key *row);
// A number that has been written as "ARCH.key".
double frit_hf_written(const frit_hf *hf, const char *key);

// Replaces a number.
frit_status frit_hf_set_number(const frit_hf *hf, const char *key, frit_hf_kind kind, double value);
frit_status frit_hf_add_flag(const frit_hf *hf, const char *key, bool value);
// "ARCH.key", an array of n items of a type; not copied.
frit_status frit_hf_add_array(const frit_hf *hf, const char *key, frit_value_type type, const void *items, size_t n);
// One number for each layer under a key of frit's own; copied.
frit_status frit_hf_add_list(const frit_hf *hf, const char *key, const uint32_t *values, size_t n);

// hf_rewrite.c: rewrites that more than one family needs.
frit_status frit_hf_add_one(const frit_hf *hf, frit_tensor *tensor, bool is_bias);     // to weights
frit_status frit_hf_transpose(const frit_hf *hf, frit_tensor *tensor, bool is_bias);   // weights
// Rows q, k, v of each group of heads in turn become all q, all k, all v.
frit_status frit_hf_ungroup_qkv(const frit_hf *hf, frit_tensor *tensor, bool is_bias);

// hf_recurrent.c: what families with recurrent layers share.
// A vector or matrix A_log becomes -exp(A_log) in f32.
frit_status frit_hf_negative_exp(const frit_hf *hf, frit_tensor *tensor, bool is_bias);
// Which layers are recurrent, [block_count], by layer_types: those whose type is not full_attention or attention.
frit_status frit_hf_recurrent_types(const frit_hf *hf, const char *name, bool *recurrent);
// attention.head_count_kv becomes a list with 0 for recurrent layers.
frit_status frit_hf_add_recurrent(const frit_hf *hf, const bool *recurrent);
// FRIT_E_UNSUPPORTED unless the number is absent or as said.
frit_status frit_hf_expect(const frit_hf *hf, const char *name, double value);
// "ARCH.key" becomes a list with one number for each layer.
frit_status frit_hf_set_list(const frit_hf *hf, const char *key, const uint32_t *values);

// hf_pooling.c: whether the model classifies texts; and ARCH.pooling_type, from the files that sentence-transformers
// puts beside a model.
bool frit_hf_is_classifier(const frit_hf *hf);
frit_status frit_hf_add_pooling(const frit_hf *hf, const char *folder, const frit_log *log);

// hf_layers.c: layer_types and windows, as frit.attention.sliding_window.
frit_status frit_hf_add_windows(const frit_hf *hf);

// hf_rope.c: the keys "ARCH.rope.*".
frit_status frit_hf_add_rope(const frit_hf *hf);

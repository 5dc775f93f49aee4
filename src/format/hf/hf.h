// SPDX-License-Identifier: MIT
// format/hf/hf.h: maps Hugging Face folders to GGUF's keys and tensors: one small table per model family.
//
// A family maps keys of config.json to keys of GGUF and tensors to tensors. What keys mean where they are absent is in
// hf_classes.def, by model_type. Most families share the names of Llama and list only differences: a row of the family
// replaces the shared row with the same GGUF name. A new family is one file hf_NAME.c with its rows, one line in
// hf_families.c, and rows in hf_classes.def. hf_rope.c reads RoPE's keys for all families.
//
//     {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
//     {"model.layers.*.self_attn.q_proj", "blk.*.attn_q", .bias_if = "attention_bias"},
#pragma once
#include "format/checkpoint.h"

#include <jansson.h>

// Kinds of numbers in config.json; hf_config.c has the range of each.
typedef enum frit_hf_kind {
    FRIT_HF_COUNT,   // 0 or more
    FRIT_HF_LAYERS,
    FRIT_HF_HEADS,
    FRIT_HF_WIDTH,    // elements of a vector
    FRIT_HF_TOKENS,   // positions, or entries of a vocabulary
    FRIT_HF_EPSILON,
    FRIT_HF_FACTOR,      // above 0
    FRIT_HF_MAGNITUDE,   // 0 or more
    FRIT_HF_BASE,        // of rotary frequencies, above 1
    FRIT_HF_FLAG,
} frit_hf_kind;

// Values of `otherwise`, for a key that is null, or absent without a default in the class: a number or one of these
// constants. Zero: the value is required.
enum {
    FRIT_HF_NEEDED = 0,
    FRIT_HF_NO_KEY = -1,   // the key is not written
    // The constants below use values of earlier rows.
    FRIT_HF_N_HEAD = -2,    // attention.head_count
    FRIT_HF_DIVIDED = -3,   // embedding_length / attention.head_count
    FRIT_HF_K_DIM = -4,     // attention.key_length
    FRIT_HF_4_EMBD = -5,    // 4 * embedding_length
    FRIT_HF_FALSE = -6,     // the flag false, as 0 means required
    FRIT_HF_16TH = -7,      // embedding_length / 16, rounded up
    FRIT_HF_N_LAYER = -8,   // block_count
};

typedef struct frit_hf_key {
    const char *name;   // in config.json; NULL: never there, `otherwise` is used
    const char *key;    // in GGUF, after "ARCH."
    frit_hf_kind kind;
    double otherwise;
} frit_hf_key;

#define FRIT_HF_ALWAYS ""
#define FRIT_HF_MAYBE  "?"   // if the file has one

typedef struct frit_hf frit_hf;

typedef struct frit_hf_tensor {
    const char *name;   // without ".weight"; '*' is the layer, '@' the expert (all experts become one tensor)
    const char *gguf;
    const char *bias_if;   // the flag of config.json that adds a ".bias"; FRIT_HF_ALWAYS; NULL: none
    bool may_be_tied;      // may be absent where tie_word_embeddings is set
    bool may_be_absent;
    bool none;            // removes a shared row
    bool whole;           // both names are complete: no ".weight" follows
    bool is_key;          // one number, which becomes item '*' of the list `gguf`; its name is complete
    bool of_classifier;   // only in models that classify texts
    bool of_attention;    // only in layers with attention, of models with recurrent layers
    bool of_masked_lm;    // only in models that predict masked tokens
    bool is_part;         // part of the tensor that another row makes
    // Converts weight and bias to GGUF's convention; NULL: unchanged.
    frit_status (*rewrite)(const frit_hf *hf, frit_tensor *tensor, bool is_bias);
} frit_hf_tensor;

typedef struct frit_hf_names {
    const frit_hf_key *keys;
    size_t n_keys;
    const frit_hf_tensor *tensors;
    size_t n_tensors;
} frit_hf_names;

// Prefixes of the layer for multi-token prediction, for files that name its tensors apart from the other layers. Names
// that begin with `there` in the file begin with `here` in GGUF, where '*' is the number of the layer. The first row is
// the prefix of the layer's projection.
typedef struct frit_hf_prefix {
    const char *there, *here;
} frit_hf_prefix;

typedef struct frit_hf_family {
    const char *model_type;   // of config.json
    const char *class_name;   // the first entry of "architectures", if there is no model_type
    const char *arch;         // general.architecture
    const char *prefix;       // of all names in files of some classes: "bert."; or NULL
    const char *ignored;      // prefixes of tensors to ignore: "pooler.|cls."; or NULL
    const char *act;          // values of hidden_act that the architecture computes: "silu|swish"
    const char *rope_style;   // frit.rope.style, if it differs from the architecture's GGUF files; or NULL
    const char *act_name;     // name of the key hidden_act, if it has another
    const char *norm;         // frit.norm, if it differs from the architecture's GGUF files; or NULL
    // Defaults without layer_types. The first window_first layers (or max_window_layers) have no window. After them,
    // every window_period-th layer (or sliding_window_pattern-th) has none; 0: all have one.
    int window_first, window_period;
    bool needs_types;             // layer_types may not be absent: no other key says what the class does then
    bool has_windows;             // layer_types and sliding_window give the layers with windows
    const char *other_type;       // with has_windows: the layer_types of layers without attention; or NULL
    bool is_proportional;         // the family reads partial_rotary_factor: pairs span the whole head
    bool is_latent;               // YaRN scales the attention scores, not RoPE's result; qk_rope_head_dim is rotated
    bool is_visual;               // the text side of a model with vision: RoPE may have the type mrope
    bool has_ntk;                 // RoPE may have the type ntk
    const char *groups_key;       // of the number of groups of consecutive layers that share weights; or NULL
    const frit_hf_prefix *next;   // ends with a row of NULL; NULL: the family has no such names
    const frit_hf_names *shared;
    frit_hf_names own;
    bool (*fits)(const json_t *config);   // true if the config is of this family; the first family that fits is used;
                                          // may be NULL
    frit_status (*more)(const frit_hf *hf);   // writes keys that rows cannot express; may be NULL
} frit_hf_family;

extern const frit_hf_names frit_hf_decoder;    // names that most families share
extern const frit_hf_names frit_hf_no_names;   // no shared names

const frit_hf_family *frit_hf_family_get(size_t i);   // NULL beyond the end
// Families of encoders of pictures; model_type is that of the whole model.
const frit_hf_family *frit_hf_vision_get(size_t i);
// Row i of the family's own rows followed by the shared rows that they do not replace; NULL beyond the end.
const frit_hf_key *frit_hf_key_get(const frit_hf_family *family, size_t i);
const frit_hf_tensor *frit_hf_tensor_get(const frit_hf_family *family, size_t i);

#define FRIT_HF_NEXT_PROJ "blk.*.nextn.eh_proj"   // a layer that has it predicts the token after the next

// A config.json that is read into a checkpoint.
struct frit_hf {
    frit_checkpoint *ckpt;
    const char *path;   // of config.json
    frit_checkpoint_part part;
    json_t *config;        // of the text model, completed by hf_class.c
    const json_t *whole;   // the whole file: equal to config, or the object with text_config
    const frit_hf_family *family;
    int64_t n_next;   // layers after the last for multi-token prediction that the files have
    // For rewrites: a tensor of the files by its name there. FRIT_E_FORMAT if it is missing.
    frit_status (*find)(const frit_hf *hf, const char *name, frit_tensor *out);
};

// folder.c: the GGUF name of a tensor; `row` is NULL if the family has none. Needs no config.
typedef struct frit_hf_matrix {
    const frit_hf_tensor *row;
    int64_t expert;   // -1: none
    char name[128];
} frit_hf_matrix;
frit_status frit_hf_find_matrix(const frit_hf *hf, const char *name, frit_hf_matrix *out);

// hf_class.c: applies hf_classes.def, the names and defaults that transformers has for a model_type. Renames keys to
// the names that families read, and adds the defaults of the class. Values in `config` are kept.
frit_status frit_hf_complete(json_t *config, const char *path, const char *model_type);
// The model_type of text_config, where a multimodal model leaves it to its class or the class determines it; NULL: use
// the one in text_config.
const char *frit_hf_text_type(const json_t *whole);
// The name of a key in this file, for errors.
enum { FRIT_HF_NAME_BYTES = 64 };
const char *frit_hf_spelling(const frit_hf *hf, const json_t *object, const char *name, char text[FRIT_HF_NAME_BYTES]);

// hf_config.c: sets hf->config to the text model or the encoder, finds its family, and writes its keys into the
// checkpoint's metadata.
frit_status frit_hf_read_config(frit_hf *hf);
// Getters. `where` names the object in errors: "" or "rope_scaling.". Absent and null leave *out unchanged.
frit_status frit_hf_get_number(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                               frit_hf_kind kind, double *out);
frit_status frit_hf_get_flag(const frit_hf *hf, const json_t *object, const char *where, const char *name, bool *out);
frit_status frit_hf_get_text(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                             const char **out);
// Setters of the key "ARCH.key".
frit_status frit_hf_add_number(const frit_hf *hf, const char *key, frit_hf_kind kind, double value);
frit_status frit_hf_add_text(const frit_hf *hf, const char *key, const char *value);
frit_status frit_hf_add_row(const frit_hf *hf, const json_t *object, const char *where, const frit_hf_key *row);
// The number that was written as "ARCH.key".
double frit_hf_written(const frit_hf *hf, const char *key);

// Replaces the number "ARCH.key".
frit_status frit_hf_set_number(const frit_hf *hf, const char *key, frit_hf_kind kind, double value);
frit_status frit_hf_add_flag(const frit_hf *hf, const char *key, bool value);
// Adds "ARCH.key", an array of n items of a type; the items are not copied.
frit_status frit_hf_add_array(const frit_hf *hf, const char *key, frit_value_type type, const void *items, size_t n);
// Adds a list with one number for each layer under a key of frit; the list is copied.
frit_status frit_hf_add_list(const frit_hf *hf, const char *key, const uint32_t *values, size_t n);

// hf_rewrite.c: rewrites that more than one family needs.
frit_status frit_hf_plus_one(const frit_hf *hf, frit_tensor *tensor, bool is_bias);    // to weights
frit_status frit_hf_flatten(const frit_hf *hf, frit_tensor *tensor, bool is_bias);     // filters become rows
frit_status frit_hf_transpose(const frit_hf *hf, frit_tensor *tensor, bool is_bias);   // weights
// Gate and up of the shared expert, or of the feed-forward, are one matrix: the tensor keeps the gate, and up is added
// as another tensor.
frit_status frit_hf_split_gate_up(const frit_hf *hf, frit_tensor *tensor, bool is_bias);
// Interleaved rows q, k, v of each group of heads become all q, all k, all v.
frit_status frit_hf_ungroup_qkv(const frit_hf *hf, frit_tensor *tensor, bool is_bias);

// hf_recurrent.c: shared by families with recurrent layers.
// A vector or matrix A_log becomes -exp(A_log) in f32.
frit_status frit_hf_negative_exp(const frit_hf *hf, frit_tensor *tensor, bool is_bias);
frit_status frit_hf_positive_exp(const frit_hf *hf, frit_tensor *tensor, bool is_bias);   // exp(A_log)
// Sets recurrent [block_count] for layers whose type in layer_types is neither full_attention nor attention. If there
// is no list, `otherwise` decides; NULL: a missing list is an error.
typedef bool (*frit_hf_layer_fn)(const frit_hf *hf, double period, size_t layer);
frit_status frit_hf_recurrent_types(const frit_hf *hf, frit_hf_layer_fn otherwise, bool *recurrent);
// FRIT_E_UNSUPPORTED if time_step_limit has a bound other than a lower bound of 0.
frit_status frit_hf_expect_open_steps(const frit_hf *hf);
// attention.head_count_kv becomes a list with 0 for recurrent layers.
frit_status frit_hf_add_recurrent(const frit_hf *hf, const bool *recurrent);
bool frit_hf_has_attention(const frit_hf *hf, int64_t layer);   // by this list
// FRIT_E_UNSUPPORTED unless the number or flag is absent, null or equal to `value`.
frit_status frit_hf_expect(const frit_hf *hf, const char *name, double value);
// FRIT_E_UNSUPPORTED unless the text is absent, null or equal to `value`.
frit_status frit_hf_expect_text(const frit_hf *hf, const char *name, const char *value);
// "ARCH.key" becomes a list with one number for each layer.
frit_status frit_hf_set_list(const frit_hf *hf, const char *key, const uint32_t *values);

// hf_pooling.c: a file of the folder as JSON; NULL if it is absent or not JSON.
json_t *frit_hf_load_optional(const char *folder, const char *name);
// frit_hf_is_classifier: true if the model classifies texts. frit_hf_is_masked_lm: true if it predicts masked tokens.
// frit_hf_add_pooling: writes ARCH.pooling_type, from the
// files that sentence-transformers adds to a model's folder.
bool frit_hf_is_classifier(const frit_hf *hf);
bool frit_hf_is_masked_lm(const frit_hf *hf);
frit_status frit_hf_add_pooling(const frit_hf *hf, const char *folder, const frit_checkpoint_options *options);
// Reads the modules Pooling and SpladePooling, whose configuration lies in the subfolder `path`.
frit_status frit_hf_read_pooling(const frit_hf *hf, const char *folder, const char *path);
frit_status frit_hf_read_splade(const frit_hf *hf, const char *folder, const char *path);
// Reads folder/NAME, or folder/sub/NAME, as a JSON object or list. *out is NULL if there is no folder/NAME; in a
// subfolder the file must exist.
frit_status frit_hf_load_object(const char *folder, const char *sub, const char *name, json_t **out);

// hf_modules.c: the modules of modules.json, and the prompts of config_sentence_transformers.json:
// {"prompts": {"query": "query: "}, "default_prompt_name": null}.
frit_status frit_hf_add_prompts(const frit_hf *hf, const char *folder, const json_t *config);
frit_status frit_hf_add_modules(const frit_hf *hf, const char *folder, const frit_checkpoint_options *options);

// hf_generation.c: adds the keys "general.sampling.*".
frit_status frit_hf_add_sampling(const frit_hf *hf, const char *folder);

// hf_layers.c: adds layer_types and windows as frit.attention.sliding_window.
frit_status frit_hf_add_windows(const frit_hf *hf);
// Adds no_rope_layers, or every no_rope_layer_interval-th layer, as frit.rope.none.
frit_status frit_hf_add_rope_layers(const frit_hf *hf);
// FRIT_E_UNSUPPORTED if layer_types is missing, for classes whose default no other key expresses.
frit_status frit_hf_expect_types(const frit_hf *hf);
uint32_t frit_hf_window(const frit_hf *hf, size_t layer);   // from the list of windows; 0: none
// Adds layer_rope_theta as frit.rope.none: layers have RoPE with rope_theta, or none.
frit_status frit_hf_add_rope_bases(const frit_hf *hf);
// "ARCH.key" becomes a list with one number for layers with a window and one for the others.
frit_status frit_hf_set_by_kind(const frit_hf *hf, const char *key, double full, double sliding);
// Replaces leading_dense_block_count by the number of dense layers in mlp_layer_types, if the list exists.
frit_status frit_hf_add_dense_layers(const frit_hf *hf);

// hf_rope.c: adds the keys "ARCH.rope.*".
frit_status frit_hf_add_rope(const frit_hf *hf);
// Adds llama_4_scaling_beta as the attention temperature, which begins at the context before extension.
frit_status frit_hf_add_temperature(const frit_hf *hf);
// Adds the factors of a rotation of the type proportional: RoPE applies to the first pairs of the whole head.
frit_status frit_hf_add_proportional(const frit_hf *hf);
// Adds mrope_section, which GGUF files of models with vision have. For text, M-RoPE equals plain RoPE.
frit_status frit_hf_add_sections(const frit_hf *hf);

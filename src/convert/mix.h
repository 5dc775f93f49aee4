// SPDX-License-Identifier: MIT
// convert/mix.h: mixes of number formats, as in llama.cpp's quantizer: "q4_k_m" gives most matrices q4_k and some q6_k.
//
// A mix is a row: name, general.file_type, base type. Exceptions are rows of mix_rules.c: kind of tensor, condition,
// type. The types equal those of llama-quantize (llama.cpp 3f545bec) for the same file, tensor by tensor, including
// details that look accidental: tensors are counted in the order "without a layer first, then by layer, then by name",
// a tensor with a type set by hand is not counted, and "8 experts" means exactly 8.
// a tensor with a type set by hand is not counted, and "8 experts" means exactly 8.
#pragma once
#include "format/checkpoint.h"
#include "frit.h"

typedef enum frit_mix_id {
    FRIT_MIX_Q1_0,
    FRIT_MIX_Q2_0,
    FRIT_MIX_Q4_0,
    FRIT_MIX_Q4_1,
    FRIT_MIX_Q5_0,
    FRIT_MIX_Q5_1,
    FRIT_MIX_Q8_0,
    FRIT_MIX_Q2_K,
    FRIT_MIX_Q2_K_S,
    FRIT_MIX_Q3_K_S,
    FRIT_MIX_Q3_K_M,
    FRIT_MIX_Q3_K_L,
    FRIT_MIX_Q4_K_S,
    FRIT_MIX_Q4_K_M,
    FRIT_MIX_Q5_K_S,
    FRIT_MIX_Q5_K_M,
    FRIT_MIX_Q6_K,
    FRIT_MIX_IQ1_S,
    FRIT_MIX_IQ1_M,
    FRIT_MIX_IQ2_XXS,
    FRIT_MIX_IQ2_XS,
    FRIT_MIX_IQ2_S,
    FRIT_MIX_IQ2_M,
    FRIT_MIX_IQ3_XXS,
    FRIT_MIX_IQ3_XS,
    FRIT_MIX_IQ3_S,
    FRIT_MIX_IQ3_M,
    FRIT_MIX_IQ4_NL,
    FRIT_MIX_IQ4_XS,
    FRIT_MIX_TQ1_0,
    FRIT_MIX_TQ2_0,
    FRIT_MIX_MXFP4_MOE,
    FRIT_MIX_COUNT
} frit_mix_id;

typedef struct frit_type_mix {
    const char *name;
    frit_mix_id id;
    frit_dtype base;
    int file_type;   // general.file_type
} frit_type_mix;

const frit_type_mix *frit_mix_get(size_t i);   // row i; NULL past the end
// Finds a mix by name. Ignores case, accepts "q4_k" for q4_k_m, and also finds "bf16", "f16" and "f32", which have no
// row; NULL: unknown.
const frit_type_mix *frit_mix_find(const char *name);
extern const frit_type_mix frit_mix_chosen;   // for types that were chosen one by one; has no rules
frit_status frit_mix_fail_unknown(const char *option, const char *name);   // with the list of names

// Kinds of tensors in rules. FRIT_KIND_OUTPUT includes the token table if the file has no output matrix.
typedef enum frit_kind {
    FRIT_KIND_OTHER,
    FRIT_KIND_OUTPUT,
    FRIT_KIND_TABLE,
    FRIT_KIND_V,
    FRIT_KIND_K,
    FRIT_KIND_Q,
    FRIT_KIND_ATTENTION_OUTPUT,
    FRIT_KIND_UP,
    FRIT_KIND_GATE,
    FRIT_KIND_DOWN,
    FRIT_KIND_ANY,   // in rules
    FRIT_KIND_COUNT
} frit_kind;

// Properties of a model that rules use.
typedef struct frit_mix_model {
    frit_str arch;
    int64_t n_layer, n_expert;
    int64_t n_head_per_kv;   // of layer 0; 0 if it has no heads of keys
    bool is_70b;
    bool has_importance;
} frit_mix_model;

// A tensor, and the number of tensors of its kind before it.
typedef struct frit_mix_tensor {
    const frit_mix_model *model;
    frit_kind kind;
    frit_dtype base;
    int64_t width, n_matrices;
    int64_t i_v, n_v;    // for V: number before it, and in total
    int64_t i_layer;     // for up, gate and down: number before it; in models with experts the layer
    int64_t i_counted;   // for down: number before it
} frit_mix_tensor;

// mix_rules.c: the type of a tensor by the rules of a mix.
frit_dtype frit_mix_apply(const frit_type_mix *mix, const frit_mix_tensor *tensor);
// True if rules treat the model as one of 70 billion parameters.
bool frit_mix_is_70b(const frit_mix_model *model);

// Options in addition to the mix.
typedef struct frit_mix_options {
    const frit_type_mix *mix;
    bool is_pure;                   // base type for all matrices
    bool has_importance;            // changes the types of some mixes
    frit_dtype output, table;       // types of the output matrix and the token table; FRIT_DTYPE_COUNT: by the mix
    const frit_option_list *keep;   // "REGEX=TYPE"; NULL: none
    // Name -> type, instead of the mix's rules; FRIT_DTYPE_COUNT for tensors without an entry. NULL: by the mix.
    const frit_map *chosen;
    // [n_tensors]: used where the mix's type is not smaller; NULL: none.
    const frit_dtype *natives;
} frit_mix_options;

// Sets types[i] for tensor i of the checkpoint, which has GGUF's names and shapes. Tensors that are not quantized keep
// their type. frit_convert_fit is applied afterwards. FRIT_E_INVALID for a bad rule in `keep`.
frit_status frit_mix_types(const frit_checkpoint *ckpt, const frit_mix_options *options, frit_dtype *types);
// True if encoding this tensor into the type is useless without importance.
bool frit_mix_needs_importance(const frit_type_mix *mix, const char *name, frit_dtype type);

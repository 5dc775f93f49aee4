// SPDX-License-Identifier: MIT
// format/hf/quant/hf_quant.h: folders whose weights are quantized. quantization_config.quant_method names a row of the
// table in hf_quant.c; a weight is a tensor of codes with companion tensors:
//
//     fp8, compressed-tensors      q_proj.weight (F8_E4M3, I8), q_proj.weight_scale_inv       hf_quant_scaled.c
//     gptq, awq, compressed-..     q_proj.qweight (words), .qzeros, .scales, .g_idx           hf_quant_packed.c
//     mxfp4                        gate_up_proj_blocks, gate_up_proj_scales                   hf_quant_mxfp4.c
//
// Each group becomes one tensor, whose rows are computed when they are read (format/rows.h), in the type that the
// configuration gives for weights (default f32). MXFP4 stays MXFP4, and F8_E4M3 becomes fp8_128 where that is exact. A
// weight is quantized if its name and type say so; lists of modules that are not quantized are not read.
#pragma once
#include "format/hf/hf.h"
#include "format/rows.h"
#include "format/safetensors.h"

typedef struct frit_hf_quant frit_hf_quant;

typedef struct frit_hf_scheme {
    const char *codes;   // suffix of the codes' name, replaced by `name`
    const char *name;
    const char *companions;   // "|.qzeros|.scales|": suffixes of companion tensors
    // Builds a tensor from `codes`; tensor->name is set. A plain weight stays unchanged.
    frit_status (*make)(const frit_hf_quant *quant, const frit_safetensors_entry *codes, frit_tensor *tensor);
} frit_hf_scheme;

struct frit_hf_quant {
    const frit_hf *hf;
    const frit_hf_scheme *scheme;   // NULL: weights are plain
    frit_dtype dtype;               // of computed tensors
    int bits;
    int64_t group;                       // columns that share a scale; 0: all
    int64_t block_rows, block_columns;   // of the matrix, that share a scale in schemes with block scales
    bool adds_one;                       // the file stores zero points minus one
    const float *f8;                     // values of all codes of F8_E4M3
    const frit_safetensors_entry *entries;
    const frit_map *index;   // name -> index in entries
};

extern const frit_hf_scheme frit_hf_scaled, frit_hf_gptq, frit_hf_awq, frit_hf_words, frit_hf_mxfp4;

// Reads quantization_config; FRIT_E_UNSUPPORTED for unknown methods and variants.
frit_status frit_hf_quant_read(frit_hf_quant *quant, const frit_hf *hf);
// The name of an entry's tensor (its own or from the arena); NULL for a companion of another entry.
frit_status frit_hf_quant_name(const frit_hf_quant *quant, const frit_safetensors_entry *entry, const char **name);
// The tensor of an entry: plain, or computed.
frit_status frit_hf_quant_tensor(const frit_hf_quant *quant, const frit_safetensors_entry *entry, const char *name,
                                 frit_tensor *tensor);

// ------------------------------------------------------------------------------------- for schemes

// The entry whose name is "q_proj.qweight" with another suffix; NULL if no entry has it.
const frit_safetensors_entry *frit_hf_beside(const frit_hf_quant *quant, const frit_safetensors_entry *codes,
                                             const char *ending, const char *other);
// The entry that frit_hf_beside finds, as a tensor of numbers; FRIT_E_FORMAT if it is absent.
frit_status frit_hf_beside_tensor(const frit_hf_quant *quant, const frit_safetensors_entry *codes, const char *ending,
                                  const char *other, frit_tensor *tensor);
frit_status frit_hf_quant_refuse(const frit_hf_quant *quant, const frit_safetensors_entry *entry, const char *why);
// One element of a tensor in a plain format whose data is in memory.
float frit_hf_number_at(const frit_tensor *tensor, int64_t i);

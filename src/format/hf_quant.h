// SPDX-License-Identifier: MIT
// format/hf_quant.h: folders whose weights are quantized. quantization_config.quant_method names a row of the table in
// hf_quant.c; what it calls a weight is a tensor of codes with others beside it:
//
//     fp8, compressed-tensors      q_proj.weight (F8_E4M3, I8), q_proj.weight_scale_inv       hf_quant_scaled.c
//     gptq, awq, compressed-..     q_proj.qweight (words), .qzeros, .scales, .g_idx           hf_quant_packed.c
//     mxfp4                        gate_up_proj_blocks, gate_up_proj_scales                   hf_quant_mxfp4.c
//
// Each group becomes one tensor, whose rows are computed when they are read (format/rows.h), in the type that the
// configuration names for the model's weights (f32 where it names none). Codes of MXFP4 stay what they are. Whether a
// weight is quantized is seen by its name and type, so lists of modules that are not need no reading.
#pragma once
#include "format/hf.h"
#include "format/rows.h"
#include "format/safetensors.h"

typedef struct frit_hf_quant frit_hf_quant;

typedef struct frit_hf_scheme {
    const char *codes;   // how the name of codes ends; what it becomes is `name`
    const char *name;
    const char *beside;   // "|.qzeros|.scales|": endings of names that go with them
    // A tensor from `codes`; tensor->name is set. Left alone if it is a plain weight.
    frit_status (*make)(const frit_hf_quant *quant, const frit_safetensors_entry *codes, frit_tensor *tensor);
} frit_hf_scheme;

struct frit_hf_quant {
    const frit_hf *hf;
    const frit_hf_scheme *scheme;   // NULL: weights are plain
    frit_dtype dtype;               // of what is computed
    int bits;
    int64_t group;                       // columns that share a scale; 0: all
    int64_t block_rows, block_columns;   // that share a scale, of scales that are blocks
    bool adds_one;                       // zeros are stored one less
    const float *f8;                     // values of all codes of F8_E4M3
    const frit_safetensors_entry *entries;
    const frit_map *index;   // name -> index in entries
};

extern const frit_hf_scheme frit_hf_scaled, frit_hf_gptq, frit_hf_awq, frit_hf_words, frit_hf_mxfp4;

// Reads quantization_config; FRIT_E_UNSUPPORTED for methods and variants that are not known.
frit_status frit_hf_quant_read(frit_hf_quant *quant, const frit_hf *hf);
// The name of the tensor that an entry stands for; NULL: it goes with another. In the arena if it is not its own.
frit_status frit_hf_quant_name(const frit_hf_quant *quant, const frit_safetensors_entry *entry, const char **name);
// That tensor: plain, or computed.
frit_status frit_hf_quant_tensor(const frit_hf_quant *quant, const frit_safetensors_entry *entry, const char *name,
                                 frit_tensor *tensor);

// ------------------------------------------------------------------------------------- for schemes

// "q_proj.qweight" with its ending replaced; NULL if there is no such entry.
const frit_safetensors_entry *frit_hf_beside(const frit_hf_quant *quant, const frit_safetensors_entry *codes,
                                             const char *ending, const char *other);
// The same as a tensor of numbers; FRIT_E_FORMAT if it is absent.
frit_status frit_hf_beside_tensor(const frit_hf_quant *quant, const frit_safetensors_entry *codes, const char *ending,
                                  const char *other, frit_tensor *tensor);
frit_status frit_hf_quant_refuse(const frit_hf_quant *quant, const frit_safetensors_entry *entry, const char *why);
// One number of a tensor in a plain format whose data lies in memory.
float frit_hf_number_at(const frit_tensor *tensor, int64_t i);

// SPDX-License-Identifier: MIT
// format/adapter_peft.h: an adapter of PEFT that is being read (adapter_peft.c), and what modules have beside low-rank
// pairs (adapter_more.c).
#pragma once
#include "format/adapter.h"
#include "format/hf/hf.h"

typedef struct peft_module {   // both sides of a pair, and the matrix that it changes
    frit_hf_matrix matrix;
    const char *name;   // in the folder of the text model
    const char *full;   // in the adapter
    bool is_table, is_parameter;
    frit_tensor a, b, m;   // m: magnitudes. No name: missing
    // Instead of the pair: the whole matrix; rows of a table; factors of outputs, [n, 1], or of inputs, [1, n].
    frit_tensor whole, tokens, factors;
    frit_tensor bias;   // instead of the module's own
} peft_module;

typedef struct peft {
    frit_adapter_file *file;
    const frit_checkpoint *base;
    json_t *config;
    frit_checkpoint shown;   // for rewrites: the base's metadata and the adapter's memory
    frit_hf hf;
    double r, alpha;
    bool by_root;   // the scale is alpha / sqrt(r)
    bool is_dora, is_ia3, has_parameters;
    const frit_log *log;
    const char *left_out;   // the first module that does not belong to the text model
    size_t n_left_out;
    peft_module *modules;
    size_t n, capacity;
    frit_map index;   // module name -> index in `modules`
} peft;

// The module's matrix of the model, as pairs: a whole matrix, rows of a table, or factors.
frit_status frit_peft_add_whole(peft *p, const peft_module *m);
frit_status frit_peft_add_tokens(peft *p, const peft_module *m);
frit_status frit_peft_add_factors(peft *p, const peft_module *m);
// A pair that adds nothing, for a matrix of the model with n_out rows and n_in columns.
frit_status frit_peft_empty_pair(peft *p, const char *name, int64_t n_out, int64_t n_in, frit_adapter_pair *out);

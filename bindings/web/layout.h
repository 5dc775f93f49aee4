// SPDX-License-Identifier: MIT
// web/layout.h: where fields lie in the structs of frit.h, for JavaScript. layout.py writes the table.
#pragma once
#include "frit.h"

// A field. `field` is "" in a row that gives the size of the whole struct, before the rows of its fields.
typedef struct frit_web_field {
    const char *type, *field;   // "frit_model_info", "n_vocab"
    const char *kind;           // as in the header: "int32_t", "const char*", "uint64_t[8]"; "callback"
    uint32_t offset, n_bytes;
} frit_web_field;

// A row of an options table: texts as in frit_option, and the number of its frit_option_type.
typedef struct frit_web_option {
    const char *name, *choices, *fallback, *help;
    int32_t type;
    double min, max;
} frit_web_option;

extern const frit_web_field frit_web_fields[];
extern const size_t frit_web_n_fields;

// SPDX-License-Identifier: MIT
// The module for browsers exports the functions of frit.h, and these, because JavaScript knows no structs.
#include "layout.h"
#include "frit_tools.h"

#include <string.h>

// Gets row i of the table of fields; false past the end.
FRIT_API bool frit_web_get_field(size_t i, frit_web_field *field);
// Sets an option of frit_model_options ("model"), frit_engine_options ("engine"), frit_sampler_options ("sampler") or
// frit_embed_options ("embed") by its name on the command line, without dashes. Texts are borrowed. FRIT_E_NOT_FOUND
// for other names.
FRIT_API frit_status frit_web_set_option(const char *kind, void *options, const char *name, const char *value);
// Gets row i of the table of options of one of these kinds; false past the end. bindings/web/generate.mjs writes types
// from the rows.
FRIT_API bool frit_web_get_option(const char *kind, size_t i, frit_web_option *option);

bool frit_web_get_field(size_t i, frit_web_field *field)
{
    if (i >= frit_web_n_fields) return false;
    *field = frit_web_fields[i];
    return true;
}

static const frit_option *find_rows(const char *kind, size_t *n_rows)
{
    if (strcmp(kind, "model") == 0) return frit_model_option_rows(n_rows);
    if (strcmp(kind, "engine") == 0) return frit_engine_option_rows(n_rows);
    if (strcmp(kind, "sampler") == 0) return frit_sampler_option_rows(n_rows);
    if (strcmp(kind, "embed") == 0) return frit_embed_option_rows(n_rows);
    return NULL;
}

frit_status frit_web_set_option(const char *kind, void *options, const char *name, const char *value)
{
    size_t n_rows = 0;
    const frit_option *rows = find_rows(kind, &n_rows);
    for (size_t i = 0; rows && i < n_rows; i++)
        if (strcmp(rows[i].name, name) == 0) return frit_option_set(&rows[i], options, value);
    return FRIT_E_NOT_FOUND;
}

bool frit_web_get_option(const char *kind, size_t i, frit_web_option *option)
{
    size_t n_rows = 0;
    const frit_option *rows = find_rows(kind, &n_rows);
    if (i >= n_rows) return false;
    *option = (frit_web_option){rows[i].name, rows[i].choices, rows[i].fallback, rows[i].help,
                                rows[i].type, rows[i].min,     rows[i].max};
    return true;
}

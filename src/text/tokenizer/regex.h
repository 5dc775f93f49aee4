// SPDX-License-Identifier: MIT
// text/tokenizer/regex.h: regexes as files publish them, compiled with PCRE2, and the search with limits.
//
// Files are written for other engines. Syntax that PCRE2 reads differently is translated (regex.c has the list); syntax
// that it cannot express is refused with an error. Regexes of files may backtrack exponentially, or look ahead over the
// whole text from every position, so a search that takes much longer than expected for its text ends with
// FRIT_E_TIMEOUT.
#pragma once
#include "base/buf.h"

typedef struct pcre2_real_code_8 frit_regex;

typedef enum frit_dialect {
    FRIT_DIALECT_PLAIN,       // Rust, Python and frit's own tables
    FRIT_DIALECT_ONIGURUMA,   // tokenizer.json
} frit_dialect;

frit_status frit_regex_new(frit_regex **out, frit_str source, frit_dialect dialect);
// Makes a regex that matches exactly these bytes.
frit_status frit_regex_new_literal(frit_regex **out, frit_str text);
void frit_regex_free(frit_regex *regex);

typedef struct frit_matcher {   // scratch of one thread
    struct pcre2_real_match_data_8 *data;
    struct pcre2_real_match_context_8 *context;
    struct pcre2_real_jit_stack_8 *stack;
    uint64_t may_take_ns, start_ns;   // of processor time; start_ns 0: not started
    uint32_t n_calls;
} frit_matcher;

frit_status frit_matcher_init(frit_matcher *matcher);
void frit_matcher_deinit(frit_matcher *matcher);
// Sets the total time limit of the searches of a text. Called before the searches.
void frit_matcher_allow(frit_matcher *matcher, size_t n_bytes);
// Finds the next match in `text` (valid UTF-8) at or after `from` that is not empty. *found is set to true if one
// exists.
frit_status frit_matcher_next(frit_matcher *matcher, const frit_regex *regex, frit_str text, size_t from, size_t *start,
                              size_t *end, bool *found);

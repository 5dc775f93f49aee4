// SPDX-License-Identifier: MIT
// text/tokenizer/regex.h: regexes as files publish them, compiled with PCRE2, and the search with limits.
//
// Files are written for other engines. What PCRE2 reads differently is translated (regex.c lists it); what it cannot
// express is refused with a sentence. A search that takes much longer than its text is worth ends with FRIT_E_TIMEOUT:
// regexes of files may go back for ever, or look ahead over the whole text from every place.
#pragma once
#include "base/buf.h"

typedef struct pcre2_real_code_8 frit_regex;

typedef enum frit_dialect {
    FRIT_DIALECT_PLAIN,       // Rust, Python and our own tables
    FRIT_DIALECT_ONIGURUMA,   // tokenizer.json
} frit_dialect;

frit_status frit_regex_new(frit_regex **out, frit_str source, frit_dialect dialect);
// Matches exactly these bytes.
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
// Called before the searches of a text: sets their total time limit.
void frit_matcher_allow(frit_matcher *matcher, size_t n_bytes);
// The next match in `text` (valid UTF-8) at or after `from` that is not empty. *found: whether one exists.
frit_status frit_matcher_next(frit_matcher *matcher, const frit_regex *regex, frit_str text, size_t from, size_t *start,
                              size_t *end, bool *found);

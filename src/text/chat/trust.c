// SPDX-License-Identifier: MIT
// Counts special tokens before and after normalizing.
#include "text/chat/trust.h"

static const frit_special_scope everywhere = {.parse_control = true};

static size_t count(const frit_special *special, frit_str text)
{
    size_t n = 0;
    frit_special_match match;
    for (size_t from = 0; frit_special_find(special, text, from, &everywhere, &match); from = match.end) n++;
    return n;
}

static bool touches(const frit_spans *spans, size_t begin, size_t end)
{
    const size_t i = frit_spans_find(spans, begin);
    return i < spans->n && spans->items[i].begin < end;
}

// True if every untrusted range has equally many specials before and after normalizing.
static frit_status ranges_agree(const frit_tokenizer *tokenizer, frit_str text, const frit_special_scope *scope,
                                frit_flow *flow, bool *agree)
{
    const frit_spans *spans = scope->untrusted;
    const size_t last = scope->offset + text.len;
    for (size_t i = frit_spans_find(spans, scope->offset); *agree && i < spans->n && spans->items[i].begin < last;
         i++) {
        const frit_span span = spans->items[i];
        const size_t begin = span.begin > scope->offset ? span.begin - scope->offset : 0;
        const size_t end = (span.end < last ? span.end : last) - scope->offset;
        const frit_str part = {text.ptr + begin, end - begin};
        frit_str normalized;
        FRIT_TRY(frit_pipeline_normalize(&tokenizer->vocab->pipeline, part, flow, &normalized));
        *agree = count(&tokenizer->special_raw, part) == count(&tokenizer->special_normalized, normalized);
    }
    return FRIT_OK;
}

frit_status frit_trust_normalized(const frit_tokenizer *tokenizer, frit_str text, const frit_special_scope *scope,
                                  frit_flow *flow, frit_spans *distrusted)
{
    frit_str after;
    bool agree = touches(scope->untrusted, scope->offset, scope->offset + text.len);
    if (!agree) return FRIT_OK;   // the whole text is trusted
    FRIT_TRY(ranges_agree(tokenizer, text, scope, flow, &agree));
    FRIT_TRY(frit_pipeline_normalize(&tokenizer->vocab->pipeline, text, flow, &after));
    size_t from_raw = 0;
    frit_special_match raw, match;
    for (size_t from = 0;
         agree && frit_special_find(&tokenizer->special_normalized, after, from, &everywhere, &match);) {
        agree = frit_special_find(&tokenizer->special_raw, text, from_raw, &everywhere, &raw) && raw.id == match.id;
        if (agree && touches(scope->untrusted, scope->offset + raw.start, scope->offset + raw.end))
            frit_spans_push(distrusted, match.start, match.end);
        from = match.end;
        from_raw = raw.end;
    }
    agree = agree && !frit_special_find(&tokenizer->special_raw, text, from_raw, &everywhere, &raw);
    if (!agree) {
        frit_spans_cut(distrusted, 0);
        frit_spans_push(distrusted, 0, after.len);
    }
    return distrusted->failed ? frit_fail_memory(text.len, "the special tokens of a text") : FRIT_OK;
}

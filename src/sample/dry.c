// SPDX-License-Identifier: MIT
// dry: "don't repeat yourself" (p-e-w 2024, text-generation-webui): a token that would continue a repetition becomes
// less likely, in proportion to the length of the repetition.
//
//     logit - multiplier base^(n - allowed),  n >= allowed tokens before it are repeated
//
// A repetition of n tokens: the last n tokens also precede an earlier occurrence of the token. A repetition ends at a
// breaker, a text such as a newline, and a token that contains a whole breaker is never changed. Breakers are matched
// in the bytes of the tokens (Knuth, Morris, Pratt), so they may span tokens.
#include "sample/sampler.h"
#include "text/vocab/vocab.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_BREAKERS = 64, MAX_BREAKER_BYTES = 128, DEFAULT_WINDOW = 64, DEFAULT_ALLOWED = 2 };

typedef struct breaker {
    unsigned char bytes[MAX_BREAKER_BYTES], borders[MAX_BREAKER_BYTES];   // borders[i]: border of the first i + 1 bytes
    size_t n, n_matched;                                                  // n_matched: bytes matched so far
} breaker;

struct frit_dry {
    frit_token *tokens;   // the last accepted tokens, at least the window
    int32_t *repeats;     // scratch [capacity]
    int32_t *longest;     // scratch [n_vocab], zeros between calls
    int32_t n, capacity;
    int32_t window;       // -1: all tokens
    int32_t n_unbroken;   // tokens after the last breaker
    int32_t n_breakers;
    breaker breakers[];
};

bool frit_dry_is_on(const frit_sampler_options *options)
{
    return frit_stage_number(options, dry_multiplier) > 0;
}

// ------------------------------------------------------------------------------- breakers

static void find_borders(breaker *b)
{
    for (size_t i = 1, n = 0; i < b->n; i++) {
        while (n > 0 && b->bytes[i] != b->bytes[n]) n = b->borders[n - 1];
        n += b->bytes[i] == b->bytes[n];
        b->borders[i] = (unsigned char)n;
    }
}

// True if the breaker ends within the text. *n_matched continues from the previous text.
static bool follow_match(const breaker *b, frit_str text, size_t *n_matched)
{
    bool ends = false;
    size_t n = *n_matched;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if (n == b->n) n = b->borders[n - 1];
        while (n > 0 && c != b->bytes[n]) n = b->borders[n - 1];
        n += c == b->bytes[n];
        ends = ends || n == b->n;
    }
    *n_matched = n;
    return ends;
}

// "\n", "\t" and "\\" are one character, because they are hard to write in shells.
static frit_status read_breaker(const char *text, breaker *b)
{
    static const char escapes[] = "n\nt\t\\\\";
    for (const char *at = text; *at; at++) {
        const char *escape = *at == '\\' && at[1] ? strchr(escapes, at[1]) : NULL;
        if (b->n == MAX_BREAKER_BYTES)
            return frit_fail_at(FRIT_E_INVALID, "dry-sequence-breaker", FRIT_CODE_INVALID_VALUE,
                                "a text of %zu bytes; expected 1 to %d", strlen(text), (int)MAX_BREAKER_BYTES);
        b->bytes[b->n++] = (unsigned char)(escape ? escape[1] : *at);
        at += escape != NULL;
    }
    if (b->n == 0)
        return frit_fail_at(FRIT_E_INVALID, "dry-sequence-breaker", FRIT_CODE_INVALID_VALUE,
                            "an empty text; expected 1 to %d bytes", (int)MAX_BREAKER_BYTES);
    find_borders(b);
    return FRIT_OK;
}

static frit_option_list breakers_of(const frit_sampler *sampler)
{
    static const char *const usual[] = {"\n", ":", "\"", "*"};
    const frit_option_list *list = &sampler->options.dry_breakers;
    const bool has_none = list->n == 1 && strcmp(list->items[0], "none") == 0;
    if (!sampler->texts.vocab || has_none) return (frit_option_list){0};
    return list->n > 0 ? *list : (frit_option_list){usual, FRIT_COUNT(usual)};
}

// ------------------------------------------------------------------------------- life

static frit_status reserve_matches(struct frit_dry *dry, int32_t capacity)
{
    frit_token *tokens = realloc(dry->tokens, (size_t)capacity * sizeof *tokens);
    if (tokens) dry->tokens = tokens;
    int32_t *repeats = realloc(dry->repeats, (size_t)capacity * sizeof *repeats);
    if (repeats) dry->repeats = repeats;
    if (!tokens || !repeats) return frit_fail_memory((size_t)capacity * sizeof *tokens, "tokens that DRY looks at");
    dry->capacity = capacity;
    return FRIT_OK;
}

frit_status frit_dry_new(frit_sampler *sampler)
{
    const int32_t last_n = frit_stage_integer(&sampler->options, dry_penalty_last_n);
    const frit_option_list list = breakers_of(sampler);
    if (sampler->options.dry_breakers.n > MAX_BREAKERS)
        return frit_fail_at(FRIT_E_INVALID, "dry-sequence-breaker", FRIT_CODE_INVALID_VALUE,
                            "%zu texts; expected at most %d", sampler->options.dry_breakers.n, (int)MAX_BREAKERS);
    if (!frit_dry_is_on(&sampler->options)) return FRIT_OK;
    struct frit_dry *dry = sampler->dry = calloc(1, sizeof *dry + list.n * sizeof *dry->breakers);
    if (!dry) return frit_fail_memory(sizeof *dry, "DRY");
    dry->window = last_n != 0 ? last_n : DEFAULT_WINDOW;
    dry->longest = calloc((size_t)sampler->n_vocab, sizeof *dry->longest);
    if (!dry->longest) return frit_fail_memory((size_t)sampler->n_vocab * sizeof *dry->longest, "DRY");
    for (; dry->n_breakers < (int32_t)list.n; dry->n_breakers++)
        FRIT_TRY(read_breaker(list.items[dry->n_breakers], &dry->breakers[dry->n_breakers]));
    return reserve_matches(dry, dry->window > 0 ? 2 * dry->window : 1024);
}

void frit_dry_free(struct frit_dry *dry)
{
    if (!dry) return;
    free(dry->tokens);
    free(dry->repeats);
    free(dry->longest);
    free(dry);
}

void frit_dry_reset(struct frit_dry *dry)
{
    if (!dry) return;
    dry->n = dry->n_unbroken = 0;
    for (int32_t i = 0; i < dry->n_breakers; i++) dry->breakers[i].n_matched = 0;
}

static frit_str piece_of(const frit_sampler *sampler, frit_token token)
{
    const frit_sampler_texts *texts = &sampler->texts;
    return texts->vocab && token < texts->vocab->n ? texts->pieces[token] : (frit_str){"", 0};
}

frit_status frit_dry_accept(frit_sampler *sampler, frit_token token)
{
    struct frit_dry *dry = sampler->dry;
    if (!dry) return FRIT_OK;
    if (dry->n == dry->capacity && dry->window < 0) {
        if (dry->capacity > INT32_MAX / 4) return frit_fail(FRIT_E_LIMIT, "DRY: %d tokens are too many", dry->n);
        FRIT_TRY(reserve_matches(dry, 2 * dry->capacity));
    } else if (dry->n == dry->capacity) {
        memmove(dry->tokens, dry->tokens + dry->n - dry->window, (size_t)dry->window * sizeof *dry->tokens);
        dry->n = dry->window;
    }
    bool breaks = false;
    for (int32_t i = 0; i < dry->n_breakers; i++)
        breaks |= follow_match(&dry->breakers[i], piece_of(sampler, token), &dry->breakers[i].n_matched);
    dry->tokens[dry->n++] = token;
    dry->n_unbroken = breaks ? 0 : dry->n_unbroken < INT32_MAX ? dry->n_unbroken + 1 : INT32_MAX;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- penalties

// repeats[k]: number of tokens before the last k that equal the last tokens, in linear time (the Z algorithm,
// backwards).
static void count_repeats(const frit_token *tokens, int32_t n, int32_t *repeats)
{
    const frit_token *last = tokens + n - 1;
    repeats[0] = n;
    for (int32_t k = 1, begin = 0, end = 0; k < n; k++) {   // [begin, end): the match with the largest end
        int32_t z = k < end ? repeats[k - begin] < end - k ? repeats[k - begin] : end - k : 0;
        while (k + z < n && last[-z] == last[-(k + z)]) z++;
        if (k + z > end) {
            begin = k;
            end = k + z;
        }
        repeats[k] = z;
    }
}

static bool has_breaker(const frit_sampler *sampler, frit_token token)
{
    for (int32_t i = 0; i < sampler->dry->n_breakers; i++) {
        size_t n_matched = 0;
        if (follow_match(&sampler->dry->breakers[i], piece_of(sampler, token), &n_matched)) return true;
    }
    return false;
}

// base^exponent, limited to a finite float.
static double power_of(double base, int32_t exponent)
{
    const double most = base > 1.000001 ? floor(88.72 / log(base)) : 0;
    return pow(base, most > 0 && exponent > most ? most : exponent);
}

void frit_dry_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const frit_sampler_options *options = &sampler->options;
    struct frit_dry *dry = sampler->dry;
    const int32_t given = frit_stage_integer(options, dry_allowed_length);
    const int32_t allowed = given != 0 ? given : DEFAULT_ALLOWED;
    const int32_t n = dry->window < 0 || dry->n < dry->window ? dry->n : dry->window;
    const int32_t most = dry->n_unbroken < n ? dry->n_unbroken : n;
    const double multiplier = (double)frit_stage_number(options, dry_multiplier);
    const double base = frit_or_default(frit_stage_number(options, dry_base), 1.75);
    const frit_token *tokens = dry->tokens + dry->n - n;
    if (n <= allowed || most < allowed) return;
    count_repeats(tokens, n, dry->repeats);
    for (int32_t k = 1; k < n; k++) {
        const int32_t length = dry->repeats[k] < most ? dry->repeats[k] : most;
        int32_t *longest = &dry->longest[tokens[n - k]];
        if (length >= allowed && length > *longest) *longest = length;
    }
    for (int32_t i = 0; i < candidates->n; i++) {
        frit_candidate *c = &candidates->items[i];
        const int32_t length = dry->longest[c->token];
        if (length == 0 || has_breaker(sampler, c->token)) continue;
        c->logit -= (float)(multiplier * power_of(base, length - allowed));
    }
    for (int32_t k = 1; k < n; k++) dry->longest[tokens[n - k]] = 0;
    candidates->sorted = false;
}

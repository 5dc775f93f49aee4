// SPDX-License-Identifier: MIT
// frit/session.h: a timeline of tokens on an engine: pushing, results, files, picks; speculation.
#ifndef FRIT_SESSION_H
#define FRIT_SESSION_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

FRIT_API frit_status frit_session_new(frit_session **out, frit_engine *engine);
FRIT_API void frit_session_free(frit_session *session);

// FRIT_OK, or why the session failed in a step; frit_error gives the sentence then. FRIT_E_FORMAT: its logits or hidden
// states are not finite, as the weights are damaged. A session that failed has no logits and nothing pending, runs no
// more, calls its row functions no more, and refuses pushes with its status, until frit_session_truncate,
// frit_session_encode or frit_session_load clear it. Truncate it to 0: what it has in the cache may be as bad.
FRIT_API frit_status frit_session_status(const frit_session *session);

// A second session of the same engine that goes on as this one would, to the bit: a copy of its tokens, queued ones
// too, of what the cache has of them, its source, logits, adapters, copies of states and note. Row functions of what
// is queued are forgotten. What the cache has is shared, until one of both writes on; FRIT_E_LIMIT if there
// is no room for another state of a recurrent model; the status of a session that failed.
FRIT_API frit_status frit_session_fork(frit_session **out, const frit_session *session);

// The prefix cache. What sessions run stays in the cache, also after they are freed, until others need its room. A
// session that begins with the same tokens, adapters and scales takes the longest beginning that is there, when its
// first step is made, and runs the rest: at least one token, and those with results for row functions. How much that
// can be: any number of tokens where layers see all positions; with windows, where the positions that the windows need
// are there still, as after the end of a recent text; with recurrent states, where a copy of them is (see
// frit_session_truncate) and where recent texts ended. Encoder-decoders, and models in which every token sees all
// others, have none, nor is there any for sessions that were loaded, or whose adapters changed in the middle.
//
// frit_session_cached is how many of the session's tokens were taken and did not run. A salt separates tenants: only
// sessions with the same one share anything, so that none can tell by the time what others have asked. Any bytes; none
// at first. FRIT_E_INVALID if tokens have run: truncate the session to 0 first.
FRIT_API size_t frit_session_cached(const frit_session *session);
FRIT_API frit_status frit_session_set_salt(frit_session *session, const char *salt, size_t n_bytes);

// How the session shares steps with the engine's other ones. Single tokens, and drafts after them, always run; of the
// rows that a step has left for prompts, those of the highest priority come first, and among equal priorities the rows
// that run are as the weights while their prompts wait. A prompt waits while those of higher priority take all these
// rows, but for single tokens of it. Where the cache is full and all sessions wait, one of the lowest priority gives
// its pages back, and runs again later. What sessions compute does not depend on this.
//
// weight: 1 to 1000, 1 at first; FRIT_E_INVALID for others. priority: any number, 0 at first. It may change at any
// time; forks have the same as the session.
FRIT_API frit_status frit_session_set_share(frit_session *session, int32_t weight, int32_t priority);

typedef enum frit_output {
    FRIT_OUTPUT_LAST,   // logits after the last token (the default)
    FRIT_OUTPUT_NONE,
    FRIT_OUTPUT_ALL,          // logits after every token, through `row`
    FRIT_OUTPUT_EMBEDDINGS,   // the last hidden state of every token, through `row`
} frit_output;

// Row i of the pushed tokens: n values, borrowed for the call. Called in order, from within frit_engine_step or a call
// that waits for a step; it may
// not change sessions or start a step.
typedef void (*frit_row_fn)(void *ctx, size_t i, const float *values, size_t n);

typedef struct frit_push_options {
    frit_output output;
    frit_row_fn row;
    void *row_ctx;
    uint64_t reserved[8];
} frit_push_options;

// Queues tokens; they run in the next steps. FRIT_E_LIMIT if they exceed the context (frit_session_set_shift makes
// room), FRIT_E_INVALID for ids outside the vocabulary; nothing is queued then. Pushing no tokens does nothing. Where
// every token of the model sees all others (encoders, LLaDA, Dream), the whole session runs in one step: tokens that
// ran become pending again, without results, what waits must want one kind of result, and FRIT_E_MEMORY says that there
// is no room for so many rows.
// Encoders have no logits: FRIT_E_UNSUPPORTED for FRIT_OUTPUT_LAST and FRIT_OUTPUT_ALL.
FRIT_API frit_status frit_session_push(frit_session *session, const frit_token *tokens, size_t n_tokens,
                                       const frit_push_options *options);
// Of encoder-decoders (T5): gives the session the text that its decoder looks at, in the place of the one before, and
// forgets all its tokens. It is encoded in one of the next steps, whole; its tokens run after that:
//
//     frit_session_encode(session, text, n_text, NULL);
//     frit_session_push(session, &info.decoder_start, 1, NULL);
//     while (frit_session_next(session, sampler, &token) == FRIT_OK && !frit_token_is_end(model, token)) ...
//
// The text and what is written each have room for the context. Options: FRIT_OUTPUT_EMBEDDINGS gives the encoder's
// hidden state of every token; NULL, FRIT_OUTPUT_NONE and FRIT_OUTPUT_LAST nothing. The text stays when the session is
// truncated, to nothing too; without one, tokens cannot be pushed. FRIT_E_UNSUPPORTED for other models; FRIT_E_INVALID
// for no tokens or ids outside the vocabulary, FRIT_E_LIMIT if they exceed the context, FRIT_E_MEMORY as
// frit_session_push.
FRIT_API frit_status frit_session_encode(frit_session *session, const frit_token *tokens, size_t n_tokens,
                                         const frit_push_options *options);
FRIT_API size_t frit_session_pending(const frit_session *session);   // queued, not yet run
FRIT_API size_t frit_session_length(const frit_session *session);    // tokens in the timeline, queued ones too
// Forgets everything after the first n_keep tokens, queued ones too. FRIT_E_INVALID if there are fewer. The state of
// recurrent models can only go back to where a copy was kept: 16 tokens before the end of each of the last pushes of 8
// tokens and more (its first token, if it is shorter), as options say. Where tokens that ran are forgotten, those kept
// after such a place become pending again, or all where no copy was kept.
FRIT_API frit_status frit_session_truncate(frit_session *session, size_t n_keep);
// Logits [n_vocab] after the last token; NULL while tokens are pending, after a push with OUTPUT_NONE or
// OUTPUT_EMBEDDINGS, and where a token was picked instead. Valid until the next push or step.
FRIT_API const float *frit_session_logits(const frit_session *session);
// The timeline, [frit_session_length]; -1 for tokens that are not known yet (frit_session_push_picked). Valid until the
// session changes.
FRIT_API const frit_token *frit_session_tokens(const frit_session *session);
// What frit_session_encode gave the session, encoded already or not; NULL without a source. Valid until the next one.
FRIT_API const frit_token *frit_session_source(const frit_session *session, size_t *n_tokens);

// Sessions in files: tokens, queued ones too; what the cache holds of them, whatever kind of model; the source of an
// encoder-decoder and what its encoder left; the logits; copies of states; and the note. A session that was loaded goes
// on as the saved one would have, without running anything again. Row functions of what is queued are forgotten. The
// file appears under its name when it is complete, and is its owner's alone: it tells what was said.
FRIT_API frit_status frit_session_save(const frit_session *session, const char *path);
// Replaces the session's content with what was saved. The file must be of the same model (architecture, metadata
// and weights), of the same types of cached keys and values, and of the adapters and scales that the session has:
// FRIT_E_INVALID if not. FRIT_E_FORMAT if it is damaged, FRIT_E_LIMIT if the context is shorter than its tokens or its
// source; the session is as it was then. FRIT_E_LIMIT too if other sessions leave the cache no room, and the session is
// empty.
FRIT_API frit_status frit_session_load(frit_session *session, const char *path);
// The same bytes in memory. Two calls as in frit_detokenize: *n_bytes is what is needed, FRIT_E_LIMIT if it does not
// fit (nothing is written then).
FRIT_API frit_status frit_session_save_memory(const frit_session *session, void *bytes, size_t capacity,
                                              size_t *n_bytes);
FRIT_API frit_status frit_session_load_memory(frit_session *session, const void *bytes, size_t n_bytes);
// Bytes of the caller's own that are saved with the session: a conversation, say. The session keeps a copy.
FRIT_API frit_status frit_session_set_note(frit_session *session, const char *note, size_t n_bytes);
// Zero-terminated, "" without one. Valid until the next frit_session_set_note or frit_session_load.
FRIT_API const char *frit_session_note(const frit_session *session, size_t *n_bytes);

// Runs what is pending, samples the next token, queues it and lets the sampler accept it. FRIT_E_LIMIT when the context
// is full and there is no shift (below): nothing is sampled then, and the logits stay. Other sessions' tokens run in
// the same steps; it fails with this session's status or for what concerns the engine, never for another session.
FRIT_API frit_status frit_session_next(frit_session *session, frit_sampler *sampler, frit_token *token);

// ---------------------------------------------------------------------------------------- full contexts

// The context shift: where a push finds no room, the oldest tokens leave the session, but for its first ones, and the
// others move to their places, as often as it takes. The text continues, and what left is no longer seen. Keys in the
// cache are rotated to their new positions; nothing runs again. With one layer that gives what a session of the tokens
// that are left would give, with more something near it: keys and values of upper layers have seen what left.
//
//     frit_session_set_shift(session, &(frit_shift_options){.n_keep = n_prompt});
//     while (frit_session_next(session, sampler, &token) == FRIT_OK) ...          // never FRIT_E_LIMIT
//
// frit_session_length and frit_session_tokens are of what is left. The tokens that leave have run, and wait for no
// result; a push that needs the place of others fails with FRIT_E_LIMIT. Pushes may wait for steps in flight. Pages are
// of 32 tokens, and only whole ones leave: n_keep is rounded up. What shifted sessions run is not found by others
// (frit_session_cached). Forks shift as the session does; saved sessions load with what is left.
typedef struct frit_shift_options {
    int32_t n_keep;   // tokens at the beginning that never leave: 32 at least, for models look at the first ones always
    int32_t n_drop;   // that leave at a time, or more where a push needs it; 0: half of those after n_keep
    uint64_t reserved[8];
} frit_shift_options;
// NULL: the context ends where it is full, as without this call. FRIT_E_UNSUPPORTED with the property and the sizes of
// longer contexts for models that do not allow it: encoders and encoder-decoders, states, learned positions, norms with
// weights after the rotation, sparse attention. FRIT_E_INVALID where n_keep, or a window, leaves too little room.
FRIT_API frit_status frit_session_set_shift(frit_session *session, const frit_shift_options *options);

typedef struct frit_shift_info {
    bool on;
    int32_t n_keep, n_drop;   // whole pages
    // Tokens that have left since the session was empty. With frit_session_length it is the position of the next token
    // in the text, and that of its draw (frit_sampler_set_position).
    size_t n_dropped;
    uint64_t reserved[8];
} frit_shift_info;
FRIT_API frit_status frit_session_get_shift(const frit_session *session, frit_shift_info *info);

// Self-extend (group attention) is no longer supported: YaRN (frit_model_options.rope_scaling) makes contexts longer
// than the model was trained for. The next minor version removes the function and its options.
typedef struct frit_extend_options {
    int32_t n_group, width;
    uint64_t reserved[8];
} frit_extend_options;
// FRIT_E_UNSUPPORTED for groups of more than one token. FRIT_OK, and nothing changes, for NULL and smaller groups.
FRIT_API frit_status frit_session_set_extend(frit_session *session, const frit_extend_options *options);

typedef struct frit_logprob {   // never grows
    frit_token token;
    float logprob;   // the natural logarithm of the token's probability, 0 or less
} frit_logprob;

// Sampling within a step. A pick asks for the token after the last one that is queued: the device samples it where the
// logits are, with all threads, and the logits stay there. Sessions share steps, whatever their samplers are.
//
//     frit_session_push(session, tokens, n, NULL);
//     frit_session_pick(session, sampler, NULL);
//     frit_engine_step(engine, NULL);                 // until nothing is pending
//     frit_session_picked(session, &picked);          // frit_sampler_accept, frit_session_push it, and so on
//
// It is the token that frit_session_next would give. Two picks of a session may wait at a time, for two tokens.
typedef struct frit_pick_options {
    // The last n_drafts tokens of the session are guesses of what the sampler would pick, 64 at most, to be verified:
    // picked.n_accepted of them are, and picked.token follows these. None of them, nor the token before them, has run.
    size_t n_drafts;
    bool logprobs;   // how likely the token was, and the n_top likeliest ones, 256 at most
    int32_t n_top;
    uint64_t reserved[8];
} frit_pick_options;

// Uses the sampler as it is now; accepts nothing. FRIT_E_UNSUPPORTED for samplers that devices cannot run: those with
// stages of the caller's own, or in another order than the default; their way is frit_session_logits. FRIT_E_INVALID if
// the last token has run already, FRIT_E_LIMIT if two picks wait.
FRIT_API frit_status frit_session_pick(frit_session *session, frit_sampler *sampler, const frit_pick_options *options);

typedef struct frit_picked {
    frit_token token;
    int32_t n_accepted;        // drafts
    float logprob;             // of the token, by the logits as they came; 0 unless asked for
    const frit_logprob *top;   // valid until the session is asked for picks again
    size_t n_top;
    uint64_t reserved[8];
} frit_picked;
// Takes the result of the oldest pick. Drafts that are not accepted are forgotten, as by frit_session_truncate.
// FRIT_E_INVALID if there is no pick, if it has not run yet, and where frit_sampler_sample would fail with it. The
// session's status if that failed. Picks are forgotten when the session is truncated.
FRIT_API frit_status frit_session_picked(frit_session *session, frit_picked *picked);
// Queues the token that the session's last pick gives, known or not, so that a step can be submitted that continues one
// in flight; the next pick may be asked for at once. Only without penalties can it be of the same text as one by one:
// a sampler with penalties must accept the token first. FRIT_E_INVALID if there is no pick after the last token.
FRIT_API frit_status frit_session_push_picked(frit_session *session);

// ---------------------------------------------------------------------------------------- speculation

// Speculation: tokens that the sampler will probably pick run together with the last one, in one step that picks after
// each of them. They are kept while they are what was picked, so the text is the one without speculation, token for
// token, greedy or sampled: a step gives one token or several.
//
//     frit_session_speculate(session, NULL);
//     while (frit_session_next_tokens(session, sampler, tokens, 16, &n) == FRIT_OK) ...
typedef struct frit_speculate_options {
    // "ngram": what followed the last tokens when they came before in the session. "draft": what `draft` says; "mtp":
    // the same, where it is the model's own layer for multi-token prediction. "auto" (NULL): both, as far as there are
    // both. "none": no speculation.
    const char *kind;
    // An engine of a smaller model with the same vocabulary, or of what frit_model_open_next gives, or NULL. It belongs
    // to the same thread as the session's engine, and gets a session for each one that speculates. Where it fails, the
    // text goes on without it.
    frit_engine *draft;
    float min_p;          // drafting ends before a token to which the draft model gives less probability
    int32_t max_drafts;   // of a step at most, up to 64; 0: 16. Fewer where more do not pay, as measured; often none
    bool always;          // as many as there are, whether they pay or not
    uint64_t reserved[8];
} frit_speculate_options;
// FRIT_E_INVALID for a draft model whose tokens are others. FRIT_E_UNSUPPORTED for models in which every token sees all
// others, and recurrent ones on an engine that keeps no copies of states (n_state_copies), one of which drafts need.
// What was set before ends. Forks speculate as the session does; it is not saved with it.
FRIT_API frit_status frit_session_speculate(frit_session *session, const frit_speculate_options *options);
// As frit_session_next, but gives all tokens of the step: *n_tokens of them, `capacity` at most. The sampler has
// accepted them all. Of a session without speculation: one.
FRIT_API frit_status frit_session_next_tokens(frit_session *session, frit_sampler *sampler, frit_token *tokens,
                                              size_t capacity, size_t *n_tokens);
// The same by hand, for sessions that share steps: queues *n_drafts guesses (often 0) after the session's last token,
// which must not have run. frit_session_pick verifies them, with this n_drafts and the same sampler, which stays as it
// is.
FRIT_API frit_status frit_session_draft(frit_session *session, frit_sampler *sampler, size_t max_drafts,
                                        size_t *n_drafts);

// The same for several sessions: their draft models run in shared steps, and how many drafts pay follows from the step
// that all of them share.
typedef struct frit_draft_item {
    frit_session *session;
    frit_sampler *sampler;
    size_t max_drafts;
    size_t n_drafts;   // is set
    uint64_t reserved[8];
} frit_draft_item;
FRIT_API frit_status frit_sessions_draft(frit_draft_item *items, size_t n_items);
// What will probably follow the session's last token: a text to be changed a little, say. Guesses from the text so far
// are made of it too. It takes the place of the prediction before; n_tokens 0: nothing is predicted. Does nothing to a
// session without such guesses. FRIT_E_MEMORY.
FRIT_API frit_status frit_session_predict(frit_session *session, const frit_token *tokens, size_t n_tokens);

typedef struct frit_speculation_info {
    uint64_t n_drafted, n_accepted;   // drafts that ran; those that were what the sampler picked
    const char *why_not;   // why no drafts can be verified with the sampler that was last used; NULL: they can
    uint64_t reserved[8];
} frit_speculation_info;
// Of the session's life, zeros without speculation.
FRIT_API frit_status frit_session_get_speculation(const frit_session *session, frit_speculation_info *info);

// Where the sampler's grammar leaves one token after the session's last one, which is queued: queues that too and gives
// it, for no logits are needed. The sampler is to accept it. *token is -1 where several tokens may follow, where the
// sampler has logit biases or stages that steps do not run, and where many tokens are queued already. The calls above
// do this themselves; by hand, before drafts and picks:
//
//     while (frit_session_push_forced(session, sampler, &token) == FRIT_OK && token >= 0)
//         frit_sampler_accept(sampler, token);
FRIT_API frit_status frit_session_push_forced(frit_session *session, frit_sampler *sampler, frit_token *token);

// ---------------------------------------------------------------------------------------- log-probabilities

// The n_top likeliest tokens by logits [n_vocab] (frit_session_logits, or a row of FRIT_OUTPUT_ALL), best first; of
// equal ones the lowest id first. FRIT_E_INVALID for logits that are NaN or +infinity, or n_top above n_vocab.
FRIT_API frit_status frit_logprobs_top(const float *logits, size_t n_vocab, frit_logprob *top, size_t n_top);
// Fills in the logprob of each of the tokens. FRIT_E_INVALID for ids outside [0, n_vocab) too.
FRIT_API frit_status frit_logprobs_of(const float *logits, size_t n_vocab, frit_logprob *tokens, size_t n_tokens);

#ifdef __cplusplus
}
#endif
#endif

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

// Returns FRIT_OK, or the status with which the session failed in a step, with frit_error's sentence. FRIT_E_FORMAT:
// logits or hidden states are not finite, because weights are damaged. A failed session has no logits and no pending
// tokens, does not run, does not call row functions, and refuses pushes with its status until frit_session_truncate,
// frit_session_encode or frit_session_load clears it. Truncate it to 0: its cached values may be bad too.
FRIT_API frit_status frit_session_status(const frit_session *session);

// Creates a second session of the same engine that continues exactly as this one would. It has the session's tokens
// (queued ones too), cached values, source, logits, adapters, snapshots and note, but not the row functions of queued
// tokens. Cached pages are shared until one of the sessions writes to them. FRIT_E_LIMIT if there is no room for
// another state of a recurrent model; the status of a session that failed.
FRIT_API frit_status frit_session_fork(frit_session **out, const frit_session *session);

// The prefix cache. Keys and values of tokens that sessions ran stay in the cache, even after the sessions are freed,
// until their room is needed. A session that begins with the same tokens, adapters and scales reuses the longest cached
// prefix in its first step and runs the rest: at least one token, and all tokens with results for row functions.
//
// The prefix may have any length in models whose layers see all positions. With attention windows it ends where the
// positions of the windows are still cached, as at the end of a recent text. With recurrent states it ends at a
// snapshot (frit_session_truncate) or at the end of a recent text. Encoder-decoders, models in which every token sees
// all others, loaded sessions, and sessions whose adapters changed in the middle do not use the prefix cache.
//
// frit_session_cached returns the number of the session's tokens that were reused and did not run. A salt separates
// tenants: only sessions with equal salts share prefixes, so that response times do not reveal what other tenants
// asked. A salt is any bytes; new sessions have none. FRIT_E_INVALID if tokens have run: truncate the session to 0
// first.
FRIT_API size_t frit_session_cached(const frit_session *session);
FRIT_API frit_status frit_session_set_salt(frit_session *session, const char *salt, size_t n_bytes);

// Sets how the session shares steps with other sessions of the engine. Single tokens, and drafts after them, run in
// every step. The rest of a step is for prompts: prompts of the highest priority run first, and prompts of equal
// priority run tokens in proportion to their weights. If the cache is full and all sessions wait, a session of the
// lowest priority releases its pages and runs its tokens again later. Results do not depend on weight or priority.
//
// weight: 1 to 1000, 1 by default; FRIT_E_INVALID for other values. priority: any number, 0 by default. Both may change
// at any time; a fork inherits them.
FRIT_API frit_status frit_session_set_share(frit_session *session, int32_t weight, int32_t priority);

typedef enum frit_output {
    FRIT_OUTPUT_LAST,   // logits after the last token (the default)
    FRIT_OUTPUT_NONE,
    FRIT_OUTPUT_ALL,          // logits after every token, through `row`
    FRIT_OUTPUT_EMBEDDINGS,   // the last hidden state of every token, through `row`
} frit_output;

// Receives the result of token i of a push: n values, borrowed for the call. Called in order, from within
// frit_engine_step or a call that waits for a step. Must not change sessions or start a step.
typedef void (*frit_row_fn)(void *ctx, size_t i, const float *values, size_t n);

typedef struct frit_media frit_media;   // a picture (media.h)

typedef struct frit_push_options {
    frit_output output;
    frit_row_fn row;
    void *row_ctx;
    // Pictures whose tokens are among those of the push (frit_media_prepare). The session encodes a picture before it
    // runs these tokens, unless the cache has them. Read by frit_session_push only.
    frit_media *const *media;   // [n_media]
    size_t n_media;
    uint64_t reserved[6];
} frit_push_options;

// Queues tokens, which run in the next steps. Queues nothing and returns FRIT_E_LIMIT if they exceed the context
// (frit_session_set_shift makes room), or FRIT_E_INVALID for ids outside the vocabulary. Pushing no tokens does
// nothing.
//
// Models in which every token sees all others (encoders, LLaDA, Dream) run a whole session in one step. In these
// models, tokens that ran before become pending again, without results; all pending tokens must request one kind of
// result; and FRIT_E_MEMORY means that a step has no room for the session's tokens. Encoders generate no text:
// FRIT_E_UNSUPPORTED for FRIT_OUTPUT_LAST, and without a masked-LM head for FRIT_OUTPUT_ALL.
FRIT_API frit_status frit_session_push(frit_session *session, const frit_token *tokens, size_t n_tokens,
                                       const frit_push_options *options);
// For encoder-decoders (T5): sets the source text that the decoder attends to, and forgets the session's tokens. The
// source is encoded whole in one of the next steps; tokens run after it:
//
//     frit_session_encode(session, text, n_text, NULL);
//     frit_session_push(session, &info.decoder_start, 1, NULL);
//     while (frit_session_next(session, sampler, &token) == FRIT_OK && !frit_token_is_end(model, token)) ...
//
// The source and the generated text may each be as long as the context. Options: FRIT_OUTPUT_EMBEDDINGS gives the
// encoder's hidden state of every token; NULL, FRIT_OUTPUT_NONE and FRIT_OUTPUT_LAST give none. The source stays when
// the session is truncated, even to 0; tokens cannot be pushed without a source. FRIT_E_UNSUPPORTED for other models;
// FRIT_E_INVALID for no tokens or ids outside the vocabulary; FRIT_E_LIMIT if the source exceeds the context;
// FRIT_E_MEMORY as in frit_session_push.
FRIT_API frit_status frit_session_encode(frit_session *session, const frit_token *tokens, size_t n_tokens,
                                         const frit_push_options *options);
FRIT_API size_t frit_session_pending(const frit_session *session);   // queued, not yet run
FRIT_API size_t frit_session_length(const frit_session *session);    // tokens in the timeline, including queued ones
// Forgets all tokens after the first n_keep, including queued ones. FRIT_E_INVALID if there are fewer. The state of a
// recurrent model can only return to a snapshot. Snapshots are taken 16 tokens before the end of each push of 8 tokens
// or more (at its first token, if it is shorter); frit_engine_options.n_state_copies of them are kept. Tokens between
// the snapshot and n_keep become pending again, or all tokens if there is no snapshot.
FRIT_API frit_status frit_session_truncate(frit_session *session, size_t n_keep);
// Returns the logits [n_vocab] after the last token. NULL while tokens are pending, after a push with OUTPUT_NONE or
// OUTPUT_EMBEDDINGS, and if a token was picked instead. Valid until the next push or step.
FRIT_API const float *frit_session_logits(const frit_session *session);
// Returns the timeline, [frit_session_length]; -1 for tokens that are not known yet (frit_session_push_picked). Valid
// until the session changes.
FRIT_API const frit_token *frit_session_tokens(const frit_session *session);
// Returns the source that frit_session_encode set, even if it is not encoded yet; NULL without a source. Valid until
// the next frit_session_encode.
FRIT_API const frit_token *frit_session_source(const frit_session *session, size_t *n_tokens);

// Saves a session in a file: tokens (including queued ones), cached values, the source and its encoding, logits,
// snapshots and the note, but not the row functions of queued tokens. A loaded session continues as the saved one would
// have, and runs no token again. The file appears under its name when it is complete; only its owner may read it,
// because it contains the session's text.
FRIT_API frit_status frit_session_save(const frit_session *session, const char *path);
// Replaces the session's content with a saved session. FRIT_E_INVALID if the file is of another model (architecture,
// metadata or weights), of other cache types, or of other adapters or scales than the session has. FRIT_E_FORMAT if it
// is damaged. FRIT_E_LIMIT if the context is shorter than the saved tokens or source. The session does not change in
// these cases. FRIT_E_LIMIT, and an empty session, if other sessions leave the cache no room.
FRIT_API frit_status frit_session_load(frit_session *session, const char *path);
// Saves a session into memory, with the bytes of frit_session_save. *n_bytes is the size that is needed. If `capacity`
// is smaller, returns FRIT_E_LIMIT and writes nothing.
FRIT_API frit_status frit_session_save_memory(const frit_session *session, void *bytes, size_t capacity,
                                              size_t *n_bytes);
FRIT_API frit_status frit_session_load_memory(frit_session *session, const void *bytes, size_t n_bytes);
// Sets bytes of the caller that are saved with the session, such as a conversation. The session keeps a copy.
FRIT_API frit_status frit_session_set_note(frit_session *session, const char *note, size_t n_bytes);
// Returns the note, zero-terminated; "" without a note. Valid until the next frit_session_set_note or
// frit_session_load.
FRIT_API const char *frit_session_note(const frit_session *session, size_t *n_bytes);

// Runs pending tokens, samples the next token, queues it and lets the sampler accept it. FRIT_E_LIMIT if the context is
// full and the session has no context shift; nothing is sampled then, and the logits stay. Tokens of other sessions run
// in the same steps. Fails with this session's status or for a fault of the engine, never for another session.
FRIT_API frit_status frit_session_next(frit_session *session, frit_sampler *sampler, frit_token *token);

// ---------------------------------------------------------------------------------------- full contexts

// The context shift. When a push finds no room, the oldest tokens after the first n_keep leave the session, and later
// tokens move to lower positions. Generation continues without the dropped tokens. Cached keys are rotated to their new
// positions, and no token runs again. The result is that of a session of the remaining tokens if the model has one
// layer, and close to it if it has more: keys and values of upper layers were computed from the dropped tokens too.
//
//     frit_session_set_shift(session, &(frit_shift_options){.n_keep = n_prompt});
//     while (frit_session_next(session, sampler, &token) == FRIT_OK) ...          // never FRIT_E_LIMIT
//
// frit_session_length and frit_session_tokens count the remaining tokens. Only tokens that have run and owe no result
// can leave; a push that needs the room of other tokens fails with FRIT_E_LIMIT. Pushes may wait for steps in flight.
// Tokens leave in pages of 32: n_keep is rounded up. Other sessions do not reuse tokens that a shifted session ran
// (frit_session_cached). A fork shifts as its session does; a saved session has the remaining tokens.
typedef struct frit_shift_options {
    int32_t n_keep;   // tokens at the beginning that never leave; at least 32, because models attend to the first
                      // tokens
    int32_t n_drop;   // tokens that leave at a time, more if a push needs it; 0: half of the tokens after n_keep
    uint64_t reserved[8];
} frit_shift_options;
// NULL disables the shift. FRIT_E_UNSUPPORTED, with the reason and the contexts that the model can have, for models
// whose keys cannot be rotated: encoders, encoder-decoders, recurrent states, learned positions, norms with weights
// after the rotation, sparse attention. FRIT_E_INVALID if n_keep, or an attention window, leaves too little room.
FRIT_API frit_status frit_session_set_shift(frit_session *session, const frit_shift_options *options);

typedef struct frit_shift_info {
    bool on;
    int32_t n_keep, n_drop;   // whole pages
    // Tokens that have left since the session was empty. n_dropped + frit_session_length is the position of the next
    // token in the text, which frit_sampler_set_position takes.
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
// FRIT_E_UNSUPPORTED for groups of more than one token. For NULL and smaller groups, returns FRIT_OK and changes
// nothing.
FRIT_API frit_status frit_session_set_extend(frit_session *session, const frit_extend_options *options);

typedef struct frit_logprob {   // never grows
    frit_token token;
    float logprob;   // the natural logarithm of the token's probability, 0 or less
} frit_logprob;

// Sampling within a step. A pick requests the token after the last queued one: the device samples it where the logits
// are, and does not copy them to the host. Sessions with different samplers share steps.
//
//     frit_session_push(session, tokens, n, NULL);
//     frit_session_pick(session, sampler, NULL);
//     frit_engine_step(engine, NULL);                 // until nothing is pending
//     frit_session_picked(session, &picked);          // frit_sampler_accept, frit_session_push it, and so on
//
// The token is the one that frit_session_next would give. A session may have two picks that wait, for two tokens.
typedef struct frit_pick_options {
    // The last n_drafts tokens of the session, at most 64, are drafts to verify: the sampler would have picked
    // picked.n_accepted of them, and picked.token follows the accepted drafts. Neither the drafts nor the token before
    // them may have run.
    size_t n_drafts;
    bool logprobs;   // also compute the token's log-probability and the n_top likeliest tokens
    int32_t n_top;   // 0 to 256
    // frit_session_pick_ahead may request a late pick, which needs frit_session_complete_pick.
    bool late;
    uint64_t reserved[7];
} frit_pick_options;

// Requests a pick. Uses the sampler's present state and accepts no token. FRIT_E_UNSUPPORTED for samplers that devices
// cannot run: with stages of the caller, or in another order than the default. Use frit_session_logits for such
// samplers. FRIT_E_INVALID if the last token has run already, FRIT_E_LIMIT if two picks wait.
FRIT_API frit_status frit_session_pick(frit_session *session, frit_sampler *sampler, const frit_pick_options *options);

typedef struct frit_picked {
    frit_token token;
    int32_t n_accepted;        // drafts that the sampler would have picked
    float logprob;             // log-probability of the token by the unchanged logits; 0 unless requested
    const frit_logprob *top;   // [n_top]; valid until the session's next frit_session_pick
    size_t n_top;
    uint64_t reserved[8];
} frit_picked;
// Returns the result of the oldest pick, and forgets drafts that were not accepted, as frit_session_truncate would.
// FRIT_E_INVALID if there is no pick, if it has not run yet, or if frit_sampler_sample would return it. The session's
// status if the session failed. Truncating a session discards its picks.
FRIT_API frit_status frit_session_picked(frit_session *session, frit_picked *picked);
// Queues the token of the session's last pick before it is known, so that the next step can be submitted while this one
// is in flight; the next pick may be requested at once. Until frit_session_picked takes the token, its sampler must not
// accept it: penalties of the next pick count the token all the same. FRIT_E_INVALID if there is no pick after the last
// token.
FRIT_API frit_status frit_session_push_picked(frit_session *session);
// True if the session's oldest pick has run, so that frit_session_picked gives its token.
FRIT_API bool frit_session_has_picked(const frit_session *session);
// Runs a session ahead of its caller, beside frit_engine_advance: queues the token of the session's pick that is in
// flight, as frit_session_push_picked does, and requests the pick after it. *requested is false, and nothing changes,
// if no pick is in flight after the last token, or if the next step must wait for the token: with a grammar unless the
// pick may be late, at the end of the context, for drafts that would gain time, and on devices without a queue. Take
// the pick then, push its token and request the next pick. Options with drafts request nothing.
FRIT_API frit_status frit_session_pick_ahead(frit_session *session, frit_sampler *sampler,
                                             const frit_pick_options *options, bool *requested);
// Makes a late pick. What a grammar allows depends on the token before, which is not known when a step that follows is
// submitted. With the option `late` the step runs all the same, and its pick is made while the device computes: call
// this function, or frit_session_pick_ahead, after frit_session_picked and frit_sampler_accept of the token before, and
// before the next frit_engine_advance. If the call comes later, the token runs again in a later step; without it the
// pick never comes. Does nothing if the session has no late pick that is to be made.
FRIT_API frit_status frit_session_complete_pick(frit_session *session, frit_sampler *sampler);
// Ends a generation: forgets all picks, and the queued tokens that no step runs. Tokens in flight stay in the session,
// and count as pending until their step has run. Waits only for results of row functions, and for tokens in flight that
// are not known yet.
FRIT_API frit_status frit_session_stop(frit_session *session);

// ---------------------------------------------------------------------------------------- speculation

// Speculation. Drafts, tokens that the sampler will probably pick, run in one step with the last token, and the step
// picks after each of them. Drafts are accepted as long as they equal the picks. So the text is the same as without
// speculation, token for token, greedy or sampled, and a step gives one or more tokens.
//
//     frit_session_speculate(session, NULL);
//     while (frit_session_next_tokens(session, sampler, tokens, 16, &n) == FRIT_OK) ...
typedef struct frit_speculate_options {
    // The source of drafts. "ngram": tokens that followed the last ones earlier in the session. "draft": the model of
    // `draft`. "mtp": the model of `draft`, which is a multi-token prediction layer (frit_model_open_next). "auto"
    // (NULL): n-grams, and `draft` if it is set. "none": no speculation.
    const char *kind;
    // An engine of a smaller model with the same vocabulary, or of a model of frit_model_open_next, or NULL. It belongs
    // to the thread of the session's engine, and gets a session for each session that speculates. If it fails,
    // generation continues without it.
    frit_engine *draft;
    float min_p;          // drafting ends before a token with less probability by the draft model
    int32_t max_drafts;   // drafts of a step, at most 64; 0: 16. Fewer, or none, if measurements show no gain
    bool always;          // use all drafts, even if they gain no time
    uint64_t reserved[8];
} frit_speculate_options;
// Sets how the session speculates; replaces earlier settings. A fork inherits them; saved sessions do not have them.
// FRIT_E_INVALID for a draft model with another vocabulary. FRIT_E_UNSUPPORTED for models in which every token sees all
// others, and for recurrent models on an engine without snapshots (n_state_copies), because drafts need one.
FRIT_API frit_status frit_session_speculate(frit_session *session, const frit_speculate_options *options);
// Gives all tokens of the step that frit_session_next would run, at most `capacity`, and lets the sampler accept them.
// A session without speculation gives one token.
FRIT_API frit_status frit_session_next_tokens(frit_session *session, frit_sampler *sampler, frit_token *tokens,
                                              size_t capacity, size_t *n_tokens);
// Queues *n_drafts drafts (often 0) after the session's last token, which must not have run, for callers that make
// steps themselves. frit_session_pick with this n_drafts and the same sampler verifies them. The sampler does not
// change.
FRIT_API frit_status frit_session_draft(frit_session *session, frit_sampler *sampler, size_t max_drafts,
                                        size_t *n_drafts);

// frit_session_draft for several sessions: draft models run in shared steps, and the number of drafts that gain time is
// computed for the step that all sessions share.
typedef struct frit_draft_item {
    frit_session *session;
    frit_sampler *sampler;
    size_t max_drafts;
    size_t n_drafts;   // result: drafts that were queued
    uint64_t reserved[8];
} frit_draft_item;
FRIT_API frit_status frit_sessions_draft(frit_draft_item *items, size_t n_items);
// Sets tokens that will probably follow the session's last token, such as a text that the model is asked to edit.
// N-gram drafts are taken from them too. Replaces an earlier prediction; n_tokens 0 removes it. Has no effect on a
// session without n-gram drafts. FRIT_E_MEMORY.
FRIT_API frit_status frit_session_predict(frit_session *session, const frit_token *tokens, size_t n_tokens);

typedef struct frit_speculation_info {
    uint64_t n_drafted, n_accepted;   // drafts that ran, and drafts that the sampler picked
    const char *why_not;   // reason why drafts cannot be verified with the sampler that was last used; NULL: they can
    uint64_t reserved[8];
} frit_speculation_info;
// Returns counts since the session was created; zeros without speculation.
FRIT_API frit_status frit_session_get_speculation(const frit_session *session, frit_speculation_info *info);

// If the sampler's grammar allows only one token after the session's last one, which must be queued, queues this token
// and sets *token, because no logits are needed; the caller lets the sampler accept it. *token is -1 if several tokens
// may follow, if the sampler has logit biases or stages that steps do not run, or if many tokens are queued already.
// frit_session_next and frit_session_next_tokens do this themselves. A caller that makes steps does it before drafts
// and picks:
//
//     while (frit_session_push_forced(session, sampler, &token) == FRIT_OK && token >= 0)
//         frit_sampler_accept(sampler, token);
FRIT_API frit_status frit_session_push_forced(frit_session *session, frit_sampler *sampler, frit_token *token);

// ---------------------------------------------------------------------------------------- log-probabilities

// Finds the n_top likeliest tokens by logits [n_vocab] (frit_session_logits, or a row of FRIT_OUTPUT_ALL), best first;
// of equally likely ones the lowest id first. FRIT_E_INVALID for logits that are NaN or +infinity, or n_top above
// n_vocab.
FRIT_API frit_status frit_logprobs_top(const float *logits, size_t n_vocab, frit_logprob *top, size_t n_top);
// Sets the logprob of each of the tokens. FRIT_E_INVALID also for ids outside [0, n_vocab).
FRIT_API frit_status frit_logprobs_of(const float *logits, size_t n_vocab, frit_logprob *tokens, size_t n_tokens);

#ifdef __cplusplus
}
#endif
#endif

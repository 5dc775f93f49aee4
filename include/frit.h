// SPDX-License-Identifier: MIT
// frit.h: the public interface of libfrit, an engine that runs large language models. What only frit's own command and
// tools like it need is in frit_tools.h.
//
// Three objects matter. A *model* is an opened file: weights, vocabulary, chat template; it never changes
// and any thread may use it. An *engine* is a model placed on this machine, with room for keys and values;
// it belongs to one thread at a time. A *session* is one timeline of tokens on an engine.
//
//     frit_model *model;  frit_engine *engine;  frit_session *session;  frit_sampler *sampler;
//     frit_model_open(&model, "model.gguf", NULL);
//     frit_engine_new(&engine, model, NULL);
//     frit_session_new(&session, engine);
//     frit_sampler_new(&sampler, model, NULL);
//     frit_session_push(session, prompt, n_prompt, NULL);       // queue the prompt
//     while (frit_session_next(session, sampler, &token) == FRIT_OK && !frit_token_is_end(model, token))
//         ...                                                   // show frit_token_piece(model, token, &n)
//
// Rules for all functions:
// - A function that can fail returns a frit_status: FRIT_OK or a negative code. frit_error() then gives one
//   sentence about the last failure of the calling thread: the object, what was found, what was expected.
// - Results go through the first parameter, which is NULL (or untouched, for values) after a failure.
// - An options struct of all zeros, or a NULL pointer to one, means the defaults.
// - Structs of options, information and items end in `reserved` words, which callers leave zero: a later version puts
//   new fields in their place, so that sizes and offsets stay and programs need not be compiled again (docs/abi.md).
//   FRIT_E_INVALID for options whose reserved words are not zero. Enums that the library returns may grow.
// - `const T *` is borrowed for the call. Returned pointers say how long they live.
// - A pointer is not NULL unless its text says so: FRIT_E_INVALID with a sentence that names the argument, or NULL, 0
//   or false of functions that return no status. An array of no items may be NULL, and so may the ctx of a callback.
//   Every *_free accepts NULL.
// - The library never prints, exits or reads the environment.
// - Shapes are written outermost first: [n_tokens, n_vocab] is n_tokens rows of n_vocab values.
//
// Threads:
// - Models and adapters never change: any number of threads may use one at once.
// - An engine and its sessions belong to one thread at a time: no two calls with the same engine, or with sessions of
//   it, may overlap. Different engines are independent, also of one model.
// - A sampler, a text stream and a turn belong to one thread at a time too, whichever it is: they need not be on the
//   engine's thread, and different ones are independent. frit_session_next uses the engine and the sampler.
// - frit_error is about the calling thread. Row functions, sampler stages and progress functions are called by the
//   thread that called the library; the log function by any thread that uses the model or its engines.
#ifndef FRIT_H
#define FRIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(FRIT_SHARED)
#ifdef FRIT_BUILDING
#define FRIT_API __declspec(dllexport)
#else
#define FRIT_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define FRIT_API __attribute__((visibility("default")))
#else
#define FRIT_API
#endif

#define FRIT_VERSION_MAJOR 0
#define FRIT_VERSION_MINOR 2
#define FRIT_VERSION_PATCH 0

// "0.2.0". Lives for ever.
FRIT_API const char *frit_version(void);

// ---------------------------------------------------------------------------------------- errors

// The one list of status codes: name, value, text.
#define FRIT_STATUS_MAP(X)                 \
    X(OK, 0, "done")                       \
    X(E_INVALID, -1, "invalid argument")   \
    X(E_MEMORY, -2, "out of memory")       \
    X(E_IO, -3, "input or output failed")  \
    X(E_NOT_FOUND, -4, "not found")        \
    X(E_FORMAT, -5, "bad model file")      \
    X(E_UNSUPPORTED, -6, "not supported")  \
    X(E_LIMIT, -7, "a limit was exceeded") \
    X(E_CANCELLED, -8, "cancelled")        \
    X(E_INTERNAL, -9, "internal error")    \
    X(E_TIMEOUT, -10, "took too long")

typedef enum frit_status {
#define FRIT_STATUS_ENUM(name, value, text) FRIT_##name = value,
    FRIT_STATUS_MAP(FRIT_STATUS_ENUM)
#undef FRIT_STATUS_ENUM
} frit_status;

// The general text of a code ("bad model file"). Lives for ever.
FRIT_API const char *frit_status_text(frit_status status);

// The sentence of the calling thread's last failure; "" if there was none. Valid until its next failure.
FRIT_API const char *frit_error(void);

// ---------------------------------------------------------------------------------------- model

typedef struct frit_model frit_model;
typedef int32_t frit_token;

// Texts that the caller lends.
typedef struct frit_option_list {
    const char *const *items;
    size_t n;
} frit_option_list;

typedef enum frit_log_level { FRIT_LOG_ERROR, FRIT_LOG_WARNING, FRIT_LOG_INFO, FRIT_LOG_DEBUG } frit_log_level;
typedef void (*frit_log_fn)(void *ctx, frit_log_level level, const char *sentence);

// Called with 0...1 while a model loads; return false to cancel (FRIT_E_CANCELLED).
typedef bool (*frit_progress_fn)(void *ctx, double done);

typedef struct frit_model_options {
    bool no_mmap;      // read the file into memory instead of mapping it
    bool vocab_only;   // only text is needed: tensors are listed but not bound
    // Matrices in this type ("q8_0", "f16", ...), with the same numbers as in the file that frit_convert writes; they
    // are quantized when an engine packs them. NULL: as the file has them.
    const char *type;
    const char *chat_template;   // path of a file with a chat template that takes the place of the model's own
    frit_progress_fn progress;
    void *progress_ctx;
    frit_log_fn log;   // warnings about the file; inherited by engines; NULL: silent
    void *log_ctx;
    uint64_t reserved[8];
} frit_model_options;

// Opens a GGUF file (any part of a split set), a safetensors file or a Hugging Face folder.
// FRIT_E_NOT_FOUND, FRIT_E_FORMAT, FRIT_E_UNSUPPORTED, FRIT_E_IO, FRIT_E_MEMORY, FRIT_E_CANCELLED.
FRIT_API frit_status frit_model_open(frit_model **out, const char *path, const frit_model_options *options);
// Opens one GGUF file that lies in memory. The bytes are borrowed until the model and its engines are freed. The path
// in its information is "memory"; `no_mmap` means nothing. Parts of split sets are refused: FRIT_E_UNSUPPORTED.
FRIT_API frit_status frit_model_open_memory(frit_model **out, const void *bytes, size_t n_bytes,
                                            const frit_model_options *options);
FRIT_API void frit_model_free(frit_model *model);   // engines keep their model alive

typedef enum frit_model_kind {
    FRIT_KIND_DECODER,           // a causal language model, or a diffusion model
    FRIT_KIND_ENCODER,           // gives embeddings; has no logits and generates nothing
    FRIT_KIND_ENCODER_DECODER,   // reads a text, then writes another: frit_session_encode
} frit_model_kind;

typedef struct frit_model_info {
    frit_model_kind kind;
    const char *pooling;   // the default of frit_embed_options.pooling: "mean", "cls", "last", "rank", "none"
    const char *path;
    const char *format;         // "GGUF v3", "safetensors"
    const char *architecture;   // "llama"
    const char *name;           // general.name, or ""
    const char *file_type;      // "q4_k_m", or the most frequent tensor type
    const char *tokenizer;      // "gpt2", "llama", ..., "none"
    const char *chat_format;    // name of the recognised template family, or "" without one
    int64_t n_params;           // weights in all tensors
    uint64_t n_bytes;           // their size in the file
    uint64_t bytes_per_token;   // weight bytes that one decode step reads
    uint64_t ops_per_token;     // multiply and add operations of one token at depth 0
    frit_token decoder_start;   // of encoder-decoders: what the written text begins with
    int32_t n_vocab, n_ctx_train, n_embd, n_layer, n_head, n_head_kv, n_ff;
    size_t n_tensors, n_meta;
    bool adds_bos, adds_eos;   // FRIT_TEXT_SPECIAL puts these tokens around a text
    uint64_t reserved[8];
} frit_model_info;

typedef struct frit_tensor_info {
    const char *name;
    const char *type;   // "q4_k"
    int n_dims;
    int64_t shape[4];   // outermost first
    uint64_t n_bytes;
    uint64_t reserved[8];
} frit_tensor_info;

// All pointers in the results live as long as the model.
FRIT_API frit_status frit_model_get_info(const frit_model *model, frit_model_info *info);
FRIT_API bool frit_model_get_tensor(const frit_model *model, size_t i, frit_tensor_info *info);
// Bytes of the cache that each token takes, with the types of frit_engine_options (NULL: "f16"). 0 where no layer has
// keys and values, or the file does not say enough.
FRIT_API uint64_t frit_model_kv_bytes(const frit_model *model, const char *cache_type_k, const char *cache_type_v);
// Metadata pair i; `value` is written as text, long arrays shortened to at most `max_items` items.
// Returns the key, or NULL past the end. `buffer` receives at most `size` bytes with the final zero.
FRIT_API const char *frit_model_get_meta(const frit_model *model, size_t i, char *buffer, size_t size, int max_items);
// The same as JSON: numbers, true and false, text, lists; null for a number that is not finite. A list of more than
// max_items (negative: no limit) becomes {"length": N, "first": [...]}. *n_bytes: its length; the buffer has it all,
// and a final zero, if it is below `size`, else nothing.
FRIT_API const char *frit_model_get_meta_json(const frit_model *model, size_t i, char *buffer, size_t size,
                                              int max_items, size_t *n_bytes);

typedef enum frit_meta_type { FRIT_META_BOOL, FRIT_META_INT, FRIT_META_FLOAT, FRIT_META_TEXT } frit_meta_type;

typedef struct frit_meta_info {
    frit_meta_type type;   // of the value, or of the items of an array
    bool is_array;
    uint64_t n_items;   // of an array; 1 of a single value
    uint64_t reserved[8];
} frit_meta_info;

// Metadata by key, under the names of GGUF ("llama.context_length"), whatever files the model comes from. Item i of an
// array; a single value is item 0. FRIT_E_NOT_FOUND without the key, FRIT_E_INVALID for an item past the end or a
// value that is not of this type. Integers and floats convert into each other where the number stays the same; a bool
// is an integer too.
FRIT_API frit_status frit_model_find_meta(const frit_model *model, const char *key, frit_meta_info *info);
FRIT_API frit_status frit_model_meta_int(const frit_model *model, const char *key, uint64_t i, int64_t *value);
FRIT_API frit_status frit_model_meta_float(const frit_model *model, const char *key, uint64_t i, double *value);
// Lives as long as the model; not zero-terminated.
FRIT_API frit_status frit_model_meta_text(const frit_model *model, const char *key, uint64_t i, const char **text,
                                          size_t *n_bytes);

// ---------------------------------------------------------------------------------------- conversion

typedef struct frit_convert_options {
    const char *type;   // of the matrices: "f32", "f16", "bf16", "q8_0", ...; NULL: as the source has them
    const char
        *split_max_size;   // bytes of a file at most ("500M", "4G"; K, M and G are powers of 1000); NULL: one file
    const char *base;      // of a PEFT adapter: its model, a folder or GGUF file; NULL: the one that the adapter names
    int32_t n_threads;     // 0: one per core that this process may use
    frit_progress_fn progress;
    void *progress_ctx;
    frit_log_fn log;   // warnings, and the name of the (first) file that was written; NULL: silent
    void *log_ctx;
    uint64_t reserved[8];
} frit_convert_options;

// Writes a Hugging Face folder, a safetensors file with its config.json beside it or a GGUF file as GGUF, with what
// other engines expect of one: order of rows, tokenizer, chat template. `target` ends in ".gguf"; a split set is called
// NAME-00001-of-00003.gguf and so on. Vectors and what else is small stay f32. A matrix whose rows the type's blocks do
// not divide gets the next finer type with blocks of 32 (q5_0 for q4_k, iq4_nl for q2_k, q3_k and i-quants, q5_1 for
// q5_k, q8_0 for q6_k), else f16, and `log` a warning that counts and names them. A PEFT adapter becomes a GGUF one.
// Needs memory for a few rows, not for the model. Nothing is left under the final names if it fails. FRIT_E_INVALID for
// an unknown type, or a bad size or name; else as frit_model_open, and FRIT_E_IO.
FRIT_API frit_status frit_convert(const char *source, const char *target, const frit_convert_options *options);

// ---------------------------------------------------------------------------------------- text

enum {
    FRIT_TEXT_SPECIAL = 1,         // tokenize: add BOS/EOS as the model asks; detokenize: show special tokens
    FRIT_TEXT_PARSE_SPECIAL = 2,   // tokenize: the text of special tokens becomes these tokens
    FRIT_TEXT_BYTES = 4,           // streams: the bytes of each token at once, be they half a character
};

// Writes at most `capacity` ids and sets *n_tokens to the number there are; FRIT_E_LIMIT if they did not fit
// (call again with more room). After any other failure *n_tokens is 0: FRIT_E_TIMEOUT if a regex of the tokenizer
// takes too long for this text, FRIT_E_INVALID for more than 512 MiB. The text is bytes of any content. `tokens` may be
// NULL if capacity is 0.
FRIT_API frit_status frit_tokenize(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                                   frit_token *tokens, size_t capacity, size_t *n_tokens);

typedef struct frit_tokenize_limits {
    size_t max_tokens;              // 0: any number
    bool (*cancelled)(void *ctx);   // asked now and then by the calling thread; NULL: never
    void *ctx;
    uint64_t reserved[8];
} frit_tokenize_limits;

// The same, but it ends early: with FRIT_E_LIMIT once there are more than max_tokens (*n_tokens is then a lower bound,
// which is more than max_tokens; a text that is certainly too long is not read), and with FRIT_E_CANCELLED once
// `cancelled` returns true. `limits` may be NULL.
FRIT_API frit_status frit_tokenize_within(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                                          const frit_tokenize_limits *limits, frit_token *tokens, size_t capacity,
                                          size_t *n_tokens);

// The text of the tokens, likewise: *n_bytes is what is needed; not zero-terminated.
FRIT_API frit_status frit_detokenize(const frit_model *model, const frit_token *tokens, size_t n_tokens, unsigned flags,
                                     char *text, size_t capacity, size_t *n_bytes);

// The bytes of one token as generation shows them ("" for control tokens). Lives as long as the model.
FRIT_API const char *frit_token_piece(const frit_model *model, frit_token token, size_t *n_bytes);

// True for the tokens that end an answer (EOS, end of turn, ...).
FRIT_API bool frit_token_is_end(const frit_model *model, frit_token token);

typedef enum frit_token_kind {   // GGUF's numbers
    FRIT_TOKEN_NORMAL = 1,
    FRIT_TOKEN_UNKNOWN,   // stands for what no token spells
    FRIT_TOKEN_CONTROL,   // a mark: has no text of its own
    FRIT_TOKEN_USER,      // added to the vocabulary; its text is always recognised
    FRIT_TOKEN_UNUSED,
    FRIT_TOKEN_BYTE   // a single byte
} frit_token_kind;

typedef struct frit_token_info {
    frit_token_kind kind;
    bool is_end;        // as frit_token_is_end
    double score;       // of vocabularies that have scores (SentencePiece); else 0
    const char *text;   // as the vocabulary spells it; not zero-terminated; lives as long as the model
    size_t n_bytes;     // of `text`; frit_token_piece gives the bytes that the token stands for
    uint64_t reserved[8];
} frit_token_info;

// FRIT_E_INVALID for an id outside the vocabulary, FRIT_E_UNSUPPORTED if the model has none.
FRIT_API frit_status frit_token_get_info(const frit_model *model, frit_token token, frit_token_info *info);

typedef enum frit_token_role {
    FRIT_ROLE_BOS,   // begins a text
    FRIT_ROLE_EOS,   // ends a text
    FRIT_ROLE_EOT,   // ends a turn of a chat
    FRIT_ROLE_UNKNOWN,
    FRIT_ROLE_SEPARATOR,
    FRIT_ROLE_PAD,
    FRIT_ROLE_MASK,
    FRIT_ROLE_NEWLINE,
    FRIT_ROLE_FIM_PREFIX,   // fill-in-the-middle: what is before the gap,
    FRIT_ROLE_FIM_SUFFIX,   // what is after it,
    FRIT_ROLE_FIM_MIDDLE,   // and where the answer begins
    FRIT_ROLE_FIM_PAD,
    FRIT_ROLE_FIM_REPO,        // the name of a repository follows
    FRIT_ROLE_FIM_SEPARATOR,   // a file follows
} frit_token_role;

// The token of a role, or -1 if the model has none.
FRIT_API frit_token frit_token_of_role(const frit_model *model, frit_token_role role);

// Turns tokens into text as they come, never half a character (unless FRIT_TEXT_BYTES asks for bytes).
typedef struct frit_text_stream frit_text_stream;
FRIT_API frit_status frit_text_stream_new(frit_text_stream **out, const frit_model *model, unsigned flags);
// The text that this token completes, possibly "": valid UTF-8, zero-terminated, lives until the next call.
FRIT_API frit_status frit_text_stream_push(frit_text_stream *stream, frit_token token, const char **text,
                                           size_t *n_bytes);
// What is still held back, with broken sequences replaced by U+FFFD.
FRIT_API frit_status frit_text_stream_flush(frit_text_stream *stream, const char **text, size_t *n_bytes);
FRIT_API void frit_text_stream_free(frit_text_stream *stream);

// Three ways from messages to a prompt. frit_turn (below) takes what clients of OpenAI's interface send, makes it fit
// the template, and takes the answer apart too: for chats and servers. frit_chat_render takes roles and texts: for
// small programs. Each has a function that gives the prompt's tokens: there the template's own text becomes control
// tokens, and text of messages, tools and other variables never does. Tokenizing the prompt's text
// with FRIT_TEXT_PARSE_SPECIAL would let a message "<|im_end|>" end its turn. frit_chat_render_json changes nothing: to
// see what a template makes of its variables, and for variables of one's own.

// Renders a chat template with everything it may look at, as it stands. `variables`: a JSON object of "messages" and
// whatever else (tools, enable_thinking, bos_token, ...); add_generation_prompt is true unless it says otherwise.
// `source`: a template to use instead of the model's, or NULL; with one, the model may be NULL. Two-call pattern as in
// frit_detokenize. FRIT_E_UNSUPPORTED if the model has no chat template, FRIT_E_INVALID if the template refuses.
FRIT_API frit_status frit_chat_render_json(const frit_model *model, const char *source, const char *variables,
                                           size_t n_variable_bytes, char *text, size_t capacity, size_t *n_bytes);

typedef struct frit_message {
    const char *role;      // "system", "user", "assistant"
    const char *content;   // UTF-8
    uint64_t reserved[8];
} frit_message;

typedef struct frit_chat_options {
    bool no_generation_prompt;   // do not open the assistant's turn at the end
    uint64_t reserved[8];
} frit_chat_options;

// Renders messages with the model's chat template; two-call pattern as in frit_detokenize. The text is for people:
// models read the tokens of frit_chat_tokenize.
// A model without a template gets one that fits its vocabulary, or ChatML, with a warning (frit_model_info.chat_format
// is "" then). FRIT_E_UNSUPPORTED if the model has no vocabulary, FRIT_E_INVALID if the template refuses the messages.
FRIT_API frit_status frit_chat_render(const frit_model *model, const frit_message *messages, size_t n_messages,
                                      const frit_chat_options *options, char *text, size_t capacity, size_t *n_bytes);
// The tokens of that prompt; two-call pattern as in frit_tokenize. Control tokens come from the template alone, not
// from roles or contents. A BOS is added where the model asks for one and the template wrote none.
FRIT_API frit_status frit_chat_tokenize(const frit_model *model, const frit_message *messages, size_t n_messages,
                                        const frit_chat_options *options, frit_token *tokens, size_t capacity,
                                        size_t *n_tokens);

// One turn of a chat with tools, reasoning and template variables: a conversation becomes a prompt, and what the model
// answers is taken apart while it comes. Belongs to one thread at a time; keeps its model alive.
//
//     frit_turn_new(&turn, model, conversation, n_bytes);
//     frit_turn_tokenize(turn, NULL, tokens, capacity, &n);   // push, and for every token of the answer:
//     frit_turn_push(turn, text, n);                     // its text, of special tokens where frit_turn_shows says so
//     while (frit_turn_next(turn, &part)) ...            // reasoning, text, calls of tools
//     frit_turn_end(turn);                               // the answer is over; next again
typedef struct frit_turn frit_turn;

// `conversation` is a JSON object as OpenAI's clients send it, other members are ignored:
//   messages                list of {role, content, ...}. Roles: system, developer, user, assistant, tool. Content: a
//                           text, or a list of {"type": "text", "text"}; of an assistant also null. Of an assistant:
//                           reasoning_content, tool_calls: [{id, type: "function", function: {name, arguments}}] with
//                           arguments as the text of a JSON object. Of a tool: tool_call_id.
//   tools                   list of {type: "function", function: {name, description, parameters: a JSON schema,
//                           strict: true where every call obeys the schema}}
//   tool_choice             "auto" (the default); "none": the tools are left out; "required", or {type: "function",
//                           function: {name}}: the answer calls a tool. frit_turn_grammar sees to that and to strict
//   chat_template_kwargs    object: variables of the template, {"enable_thinking": false}
//   reasoning_effort        text: a variable of the template; "none" also sets enable_thinking to false
//   add_generation_prompt   true by default: the prompt opens the assistant's turn
//   continue_final_message  false by default; true: the model continues the last message, an assistant's
// What the model's template does not take as it is gets the form that it takes: a system prompt becomes the beginning
// of the first message of the user where the template takes none, arguments are text or objects, reasoning has the
// name that is known. FRIT_E_INVALID with a sentence that begins with the place ("messages[2].content: ...") or with
// the template's own words; FRIT_E_UNSUPPORTED if the model has no vocabulary.
FRIT_API frit_status frit_turn_new(frit_turn **out, const frit_model *model, const char *conversation, size_t n_bytes);
// The prompt's text, for people. Zero-terminated; lives as long as the turn.
FRIT_API const char *frit_turn_prompt(const frit_turn *turn, size_t *n_bytes);
// The prompt's tokens, as frit_chat_tokenize gives them. Limits (may be NULL) and room: as in frit_tokenize_within.
FRIT_API frit_status frit_turn_tokenize(const frit_turn *turn, const frit_tokenize_limits *limits, frit_token *tokens,
                                        size_t capacity, size_t *n_tokens);

typedef enum frit_part_kind { FRIT_PART_TEXT, FRIT_PART_REASONING, FRIT_PART_CALL } frit_part_kind;

typedef struct frit_part {
    frit_part_kind kind;
    const char *text;   // the next piece of text or reasoning; of a call all its arguments, a JSON object
    size_t n_bytes;     // of `text`, which is zero-terminated too
    const char *name;   // of the tool that is called; NULL for text and reasoning
    const char *id;     // of the call: the model's own, or nine letters and digits
    uint64_t reserved[8];
} frit_part;

// Takes the next bytes of the answer: whole characters, cut anywhere else. FRIT_E_MEMORY.
FRIT_API frit_status frit_turn_push(frit_turn *turn, const char *text, size_t n_bytes);
// No more will come: what was held back, because it might have become a call, becomes parts. FRIT_E_MEMORY.
FRIT_API frit_status frit_turn_end(frit_turn *turn);
// The next part, or false. A call comes whole; what only looks like one (bad JSON, a mark missing, longer than
// 4 MiB) comes as text. Calls are looked for if the conversation has tools. The part's texts live until the next
// frit_turn_push or frit_turn_end.
FRIT_API bool frit_turn_next(frit_turn *turn, frit_part *part);
// True for special tokens that mark reasoning or calls in this model's answers: their text (frit_detokenize with
// FRIT_TEXT_SPECIAL) belongs into frit_turn_push, that of other special tokens does not.
FRIT_API bool frit_turn_shows(const frit_turn *turn, frit_token token);
// Whether the prompt leaves the model within its reasoning.
FRIT_API bool frit_turn_is_thinking(const frit_turn *turn);
FRIT_API void frit_turn_free(frit_turn *turn);

// ---------------------------------------------------------------------------------------- engine

typedef struct frit_engine frit_engine;
typedef struct frit_session frit_session;
typedef struct frit_sampler frit_sampler;

typedef struct frit_engine_options {
    int32_t n_ctx;             // positions of one session at most; 0: what the model was trained for, if memory allows
    int32_t n_sessions;        // sessions of full length that the KV cache has room for; 0: 1
    int32_t n_threads;         // 0: one per fast core that this process may use, or fewer where memory gives no more
    int32_t n_batch;           // rows of one step at most; 0: 512. Where every token sees all others, all of a
                               // session's tokens run in one step: a longer push raises it
    int32_t n_threads_batch;   // for steps of 32 rows and more; 0: n_threads if that is named, else one per core
    // "reference", or the best instruction set allowed: "scalar", "avx2", ...; NULL: the best there is
    const char *cpu;
    // Types of cached keys and values: "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1";
    // NULL: "f16", or "f32" with cpu "reference".
    const char *cache_type_k, *cache_type_v;
    // "auto" (NULL): on machines with several memory nodes threads stay on one each, beside the weights that they read.
    // Only threads of the engine's own: the caller's goes where it likes. "off": no thread is bound, no memory placed.
    const char *numa;
    // A folder for packed weights, in the order of this machine's kernels: as many bytes as the model has, once for
    // each model. The next engine maps them and starts faster, and processes share the memory. What is damaged or of
    // another version is written again; what goes wrong costs a warning. Files are never removed. NULL: no folder.
    // Models that come from no file are not kept.
    const char *weights_cache;
    bool no_fuse;   // run the graph without fusion (slower; for comparison)
    // Models with states or windows: places that frit_session_truncate can go back to, each with a copy of the state
    // and the positions of the windows; from anywhere else the tokens run again. 0: 2, -1: none.
    int32_t n_state_copies;
    frit_progress_fn progress;   // called while weights are packed, and quantized if the model's options say so
    void *progress_ctx;
    // Tokens of prompts that one step runs at most while some session generates, so that none waits long for its next
    // token; 0: as many as take four times as long as a step without prompts, as measured; -1: any number.
    int32_t prompt_budget;
    // The device beside the CPU, by the name of its backend; "cpu": none. NULL: what there is.
    const char *device;
    // How many layers run on it, counted from the end, the output first: a number, or "all"; NULL or "auto": as many as
    // it has memory for. Without such a device it says nothing but a warning.
    const char *gpu_layers;
    // "PATTERN=DEVICE", several separated by commas: what reads a tensor whose name has a match of the regex runs
    // there, if the device can; the first one that matches counts. NULL: none.
    const char *override_tensor;
    // Numbers do not depend on how a prompt is cut into steps, whatever the processor: on the CPU without AMX.
    bool deterministic;
    // Layers that look back at a window keep the positions before it too: more memory, and sessions can go back to any.
    bool full_windows;
    // Sessions run all their tokens, also where another one has run the same beginning (frit_session_cached).
    bool no_prefix_cache;
    // MiB of the host's memory for pages that only the prefix cache has, and that must give way in the memory of a
    // device; they come back when a session begins with their tokens. 0: none.
    int32_t prefix_host_mib;
    uint64_t reserved[3];
} frit_engine_options;

// Chooses a context that fits into memory if n_ctx is 0, then packs the weights, unless another engine of the model has
// them in the same order. FRIT_E_MEMORY with numbers if it does not fit, FRIT_E_INVALID for a model without weights or
// options outside their rows' limits, FRIT_E_CANCELLED if `progress` returns false.
FRIT_API frit_status frit_engine_new(frit_engine **out, frit_model *model, const frit_engine_options *options);
FRIT_API void frit_engine_free(frit_engine *engine);   // sessions left over can only be freed then

typedef struct frit_engine_info {
    const char *backend;   // "cpu"
    const char *isa;       // "avx2"
    int32_t n_ctx, n_threads, n_batch;
    int32_t n_threads_batch;   // for steps of 32 rows and more
    uint64_t kv_bytes;         // reserved for keys and values
    uint64_t kv_token_bytes;   // of these, what one token needs
    uint64_t scratch_bytes;    // buffers of the plans built so far
    uint64_t weight_bytes;     // of the weights that steps read, each once
    // Of these, in memory in the order of this machine's kernels; engines of one model that read the same order share
    // them. The others are read where the file is mapped.
    uint64_t packed_bytes;
    uint64_t reserved[6];
} frit_engine_info;
// To be called by the engine's thread, between steps: the figures grow with the plans that steps build.
FRIT_API frit_status frit_engine_get_info(const frit_engine *engine, frit_engine_info *info);

// Runs one step over whatever its sessions have queued: single tokens first, then prompts, n_batch rows at most.
// *n_rows: the rows that ran; 0 when nothing was queued; n_rows may be NULL. Fails only for what concerns the engine:
// FRIT_E_IO if the model's file shrank, FRIT_E_MEMORY; nothing has run then, and further steps may be tried. What
// concerns one session is its status (frit_session_status), and the others are served all the same.
// Sessions take room in the cache when their tokens run, and wait for it. FRIT_E_LIMIT if all of them wait: one must be
// freed or truncated.
FRIT_API frit_status frit_engine_step(frit_engine *engine, int32_t *n_rows);

// A step in two halves, so that the next one is made while a device runs this one. frit_engine_submit gives the devices
// what is queued, and returns; *step (may be NULL) is the step's number, from 1 on, or 0 if nothing was queued. Two
// steps may be in flight; a third waits for the first, and fails with what that failed with. Results reach the sessions
// in the order of steps: when frit_engine_wait returns, when frit_engine_poll says *done, or in a call that waits.
//
//     frit_engine_submit(engine, &a, NULL);   ...   frit_engine_submit(engine, &b, NULL);
//     frit_engine_wait(engine, a);                  // b still runs
//
// Meanwhile sessions can be made and pushed to, asked for picks and looked at; what is in flight counts as pending.
// frit_engine_step, frit_session_next, _truncate, _encode, _set_adapters, _fork, _save, _load and _free, and
// frit_embed_texts wait for all steps first. frit_engine_free waits too, and drops the results. On the CPU the step has
// run when frit_engine_submit returns; a step whose results go to row functions has its results handed out before
// another one is submitted.
//
// A step that fails late (a device's error) has not run, nor has one that was submitted after it: their tokens are
// queued again. Sessions of recurrent models fail with it, for their state is lost. The status of a step is remembered
// until the second one after it is submitted.
FRIT_API frit_status frit_engine_submit(frit_engine *engine, uint64_t *step, int32_t *n_rows);
// FRIT_E_INVALID for a step that was not submitted.
FRIT_API frit_status frit_engine_poll(frit_engine *engine, uint64_t step, bool *done);
FRIT_API frit_status frit_engine_wait(frit_engine *engine, uint64_t step);

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

// Adapters change what a model does without touching its weights: low-rank ones (LoRA) add to its matrices, control
// vectors to what its layers give. Sessions choose among any number of them, each by its own scale; sessions with
// different adapters share steps. A session without adapters gives to the bit what it gives where there are none.
//
//     frit_adapter_open(&adapter, model, "pirate.gguf", NULL);
//     frit_session_set_adapters(session, &adapter, (float[]){1}, 1);
typedef struct frit_adapter frit_adapter;

typedef struct frit_adapter_options {
    // Of a control vector: the layers that it works on; 0: from the first, to the last that it has. Layer i, counted
    // from 0, uses the tensor direction.i.
    int32_t first_layer, last_layer;
    uint64_t reserved[8];
} frit_adapter_options;

// Opens an adapter for this model: a GGUF file (general.type "adapter", or general.architecture "controlvector") or the
// folder of a PEFT adapter, which works with a model from either kind of file. FRIT_E_NOT_FOUND, FRIT_E_FORMAT,
// FRIT_E_IO, FRIT_E_MEMORY; FRIT_E_INVALID if it is for another model, FRIT_E_UNSUPPORTED for other kinds (DoRA,
// biases).
FRIT_API frit_status frit_adapter_open(frit_adapter **out, frit_model *model, const char *path,
                                       const frit_adapter_options *options);
FRIT_API void frit_adapter_free(frit_adapter *adapter);   // sessions that have it keep it alive

typedef struct frit_adapter_info {
    const char *path;
    const char *name;     // general.name of a GGUF file, the folder's name, or ""
    const char *format;   // "GGUF v3", "PEFT"
    const char *kind;     // "lora", "control vector"
    int32_t n_tensors;    // of the model's, that it adds to; of a control vector: layers
    int32_t rank;         // the largest; 0 of a control vector
    float alpha;          // 0: the file has none
    uint64_t n_bytes;     // in memory
    uint64_t reserved[8];
} frit_adapter_info;
// The texts live as long as the adapter.
FRIT_API frit_status frit_adapter_get_info(const frit_adapter *adapter, frit_adapter_info *info);

// From here on the session's tokens run with these adapters, queued ones too, each times its scale, and with no others;
// what ran before stays as it is (truncate the session to 0 to have it run again). A scale of 0 is as if the adapter
// were not there; one that is named twice counts twice. The next step may take longer: it is planned again.
// FRIT_E_INVALID for an adapter of another model, or a scale beyond 1e6: nothing changes then.
FRIT_API frit_status frit_session_set_adapters(frit_session *session, frit_adapter *const *adapters,
                                               const float *scales, size_t n_adapters);

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

// Queues tokens; they run in the next steps. FRIT_E_LIMIT if they exceed the context, FRIT_E_INVALID for ids
// outside the vocabulary; nothing is queued then. Pushing no tokens does nothing. Where every token of the model sees
// all others (encoders, LLaDA, Dream), the whole session runs in one step: tokens that ran become pending again,
// without results, what waits must want one kind of result, and FRIT_E_MEMORY says that there is no room for so many
// rows.
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
// file appears under its name when it is complete.
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
// is full: nothing is sampled then, and the logits stay. Other sessions' tokens run in the same steps; it fails with
// this session's status or for what concerns the engine, never for another session.
FRIT_API frit_status frit_session_next(frit_session *session, frit_sampler *sampler, frit_token *token);

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
    // "ngram": what followed the last tokens when they came before in the session. "draft": what `draft` says. "auto"
    // (NULL): both, as far as there are both. "none": no speculation.
    const char *kind;
    // An engine of a smaller model with the same vocabulary, or NULL. It belongs to the same thread as the session's
    // engine, and gets a session for each one that speculates. Where it fails, the text goes on without it.
    frit_engine *draft;
    float min_p;          // drafting ends before a token to which the draft model gives less probability
    int32_t max_drafts;   // of a step at most, up to 64; 0: 16. Fewer where more do not pay, as measured; often none
    bool always;          // as many as there are, whether they pay or not
    uint64_t reserved[8];
} frit_speculate_options;
// FRIT_E_INVALID for a draft model whose tokens are others. FRIT_E_UNSUPPORTED for models that cannot forget a token at
// once: recurrent ones, and those in which every token sees all others. What was set before ends. Forks speculate as
// the session does; it is not saved with it.
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

typedef struct frit_speculation_info {
    uint64_t n_drafted, n_accepted;   // drafts that ran; those that were what the sampler picked
    const char *why_not;   // why no drafts can be verified with the sampler that was last used; NULL: they can
    uint64_t reserved[8];
} frit_speculation_info;
// Of the session's life, zeros without speculation.
FRIT_API frit_status frit_session_get_speculation(const frit_session *session, frit_speculation_info *info);

// ---------------------------------------------------------------------------------------- log-probabilities

// The n_top likeliest tokens by logits [n_vocab] (frit_session_logits, or a row of FRIT_OUTPUT_ALL), best first; of
// equal ones the lowest id first. FRIT_E_INVALID for logits that are NaN or +infinity, or n_top above n_vocab.
FRIT_API frit_status frit_logprobs_top(const float *logits, size_t n_vocab, frit_logprob *top, size_t n_top);
// Fills in the logprob of each of the tokens. FRIT_E_INVALID for ids outside [0, n_vocab) too.
FRIT_API frit_status frit_logprobs_of(const float *logits, size_t n_vocab, frit_logprob *tokens, size_t n_tokens);

// ---------------------------------------------------------------------------------------- embeddings

typedef struct frit_embed_options {
    // How the hidden states of an item become one vector: their "mean", that of the first token ("cls") or of the
    // "last"; "rank": the scores that the model's classification head gives; "none": a vector for each token. NULL:
    // what the model's files say, or else mean for encoders and last for others.
    const char *pooling;
    // "l2": to length 1, "l1": absolute values that sum to 1, "max": at most 1, "none". NULL: l2, for scores none.
    const char *normalize;
    int32_t n_dims;   // keep so many numbers of each vector, before it is normalized; 0: all of them
    uint64_t reserved[8];
} frit_embed_options;

typedef struct frit_embed_item {   // a text, tokenized with FRIT_TEXT_SPECIAL; or tokens as they are
    const char *text;
    size_t n_bytes;
    const frit_token *tokens;   // NULL: the text counts
    size_t n_tokens;
    uint64_t reserved[8];
} frit_embed_item;

// A vector of n numbers, borrowed for the call: of an item, or of token i of it (pooling "none"; otherwise i is 0).
// Items may end in any order. It may not change sessions or start a step.
typedef void (*frit_embed_fn)(void *ctx, size_t item, size_t i, const float *values, size_t n);

// Embeds the items, many in one step as far as the batch and the cache have room, in sessions of its own; other
// sessions of the engine run what they have queued. Works for every kind of model. FRIT_E_INVALID for an item
// without tokens or longer than the context, ids outside the vocabulary, unknown names, or more numbers than a
// vector has; FRIT_E_LIMIT where other sessions fill the cache; FRIT_E_UNSUPPORTED for "rank" without a head.
// Items that ended before a failure have been handed out.
FRIT_API frit_status frit_embed_texts(frit_engine *engine, const frit_embed_item *items, size_t n_items,
                                      const frit_embed_options *options, frit_embed_fn row, void *row_ctx);
// *n: numbers of each vector that frit_embed_texts gives with these options. Fails as it would for them.
FRIT_API frit_status frit_embed_width(const frit_model *model, const frit_embed_options *options, size_t *n);

// ---------------------------------------------------------------------------------------- reranking

typedef struct frit_rerank_options {
    bool raw_scores;   // what the model's head gives; false: a number from 0 to 1 (the logistic function of it)
    uint64_t reserved[8];
} frit_rerank_options;

// How well each document answers the query, by a model with a classification head that reads both at once: higher is
// better. The texts become one prompt as frit_rerank_tokenize says; a document may also be that prompt's tokens, and
// the query does not count then. Of a head with several scores (decoders made rerankers) it is the first one's
// probability. Runs and fails as frit_embed_texts; FRIT_E_UNSUPPORTED without such a head. scores: [n_documents].
FRIT_API frit_status frit_rerank_texts(frit_engine *engine, const char *query, size_t n_query_bytes,
                                       const frit_embed_item *documents, size_t n_documents,
                                       const frit_rerank_options *options, float *scores);
// The tokens that the model reads: by the template for it in the model's file (tokenizer.chat_template.rerank), or else
// both texts with the special tokens of a pair. Texts never become control tokens. Limits as in frit_tokenize.
FRIT_API frit_status frit_rerank_tokenize(const frit_model *model, const char *query, size_t n_query_bytes,
                                          const char *document, size_t n_document_bytes, frit_token *tokens,
                                          size_t capacity, size_t *n_tokens);

// ---------------------------------------------------------------------------------------- beam search

typedef struct frit_beam_options {
    int32_t n_beams;     // 0: 4
    int32_t n_predict;   // tokens of a beam at most; 0: as many as the context holds
    uint64_t reserved[8];
} frit_beam_options;

typedef struct frit_beam {
    const frit_token *tokens;   // the one that ends the answer too
    size_t n_tokens;
    double logprob;   // the sum of its tokens' log-probabilities
    bool ended;       // by a token that ends answers; false: by its length
    uint64_t reserved[8];
} frit_beam;

// Searches the likeliest continuations of a session: at each step the n_beams likeliest of all extensions by one token
// live on. Draws nothing: the same session gives the same beams. The session runs what is pending and stays as it is;
// beams are forks of it, so the engine needs n_sessions of n_beams + 1. FRIT_E_LIMIT where the cache has no room,
// FRIT_E_INVALID where the session has no logits; fails as frit_session_next otherwise.
typedef struct frit_beams frit_beams;
FRIT_API frit_status frit_beam_search(frit_beams **out, frit_session *session, const frit_beam_options *options);
// Beam i, likeliest first; false past the end. Its tokens live as long as the beams.
FRIT_API bool frit_beams_get(const frit_beams *beams, size_t i, frit_beam *beam);
FRIT_API void frit_beams_free(frit_beams *beams);

// ---------------------------------------------------------------------------------------- sampling

// A value of a stage that has no field in frit_sampler_options. Its option row says which it is and where it lies.
typedef union frit_sampler_value {
    float number;
    int32_t integer;
    bool flag;
} frit_sampler_value;

enum { FRIT_SAMPLER_VALUES = 32 };

typedef struct frit_candidate {   // never grows
    frit_token token;
    float logit;
} frit_candidate;

// A stage of the caller's own. It may change logits (-INFINITY bans a token), reorder candidates, and drop some by
// moving those that stay to the front; returns how many stay. Called from within frit_sampler_sample and
// frit_session_next; it may not use the sampler, its session or engine.
typedef size_t (*frit_stage_fn)(void *ctx, frit_candidate *candidates, size_t n);

// All zeros: greedy. Zero also switches off each single stage.
typedef struct frit_sampler_options {
    float temp;                    // 0: greedy
    int32_t top_k;                 // keep the k likeliest; 0: off
    float top_p;                   // keep the smallest set with this probability; 0 or 1: off
    float min_p;                   // drop what is less likely than min_p times the likeliest; 0: off
    float repeat_penalty;          // divide positive, multiply negative logits of recent tokens; 0 or 1: off
    float frequency_penalty;       // subtract per occurrence; 0: off
    float presence_penalty;        // subtract once if it occurred; 0: off
    int32_t repeat_last_n;         // how many tokens the penalties look at; 0: 64; -1: all
    uint64_t seed;                 // the same seed gives the same text (frit_sampler_set_position)
    frit_option_list logit_bias;   // "ID=BIAS" or "ID=-inf" items
    // Order of the stages, as "penalties,top-k,temp" or "penalties;top_k;temperature"; those left out are off, but
    // logit-bias, which is the first then. adaptive-p and mirostat are always the last; with mirostat only logit-bias,
    // custom and temp run before it, whatever the order. NULL: the order that the help of this option's row lists,
    // without infill.
    const char *samplers;
    // Values of stages without a field, such as top-n-sigma: frit_sampler_set_option sets them; zero: off.
    frit_sampler_value more[FRIT_SAMPLER_VALUES];
    frit_stage_fn stage;   // runs where `samplers` says "custom": by default after the penalties, before dry
    void *stage_ctx;
    // Texts over which no repetition goes that DRY looks for; none: "\n", ":", "\"" and "*". One item "none": no text.
    frit_option_list dry_breakers;
    const char *sampler_seq;   // the order as letters, "edskypmxt", instead of `samplers`; or NULL
    uint64_t reserved[5];
} frit_sampler_options;

// Sets the fields for which the model's file recommends a value (GGUF's general.sampling.*, generation_config.json of
// folders); leaves the others. `samplers` may become a text that lives as long as the model.
FRIT_API frit_status frit_sampler_recommend(const frit_model *model, frit_sampler_options *options);
// Sets one option by its name on the command line, without dashes: "top-n-sigma" to "1.5". "samplers" and "sampler-seq"
// borrow `value`; "logit-bias" and "dry-sequence-breaker" take lists, which a program puts in the fields.
// FRIT_E_INVALID for unknown names, and for values that are no numbers or outside of the option's range.
FRIT_API frit_status frit_sampler_set_option(frit_sampler_options *options, const char *name, const char *value);

FRIT_API frit_status frit_sampler_new(frit_sampler **out, const frit_model *model, const frit_sampler_options *options);
FRIT_API void frit_sampler_free(frit_sampler *sampler);
// Picks from logits [n_vocab]; does not remember the pick: frit_sampler_accept does, for prompt tokens too. Called
// again with the same logits before anything is accepted, it picks the same token.
// FRIT_E_INVALID for logits that are NaN or +infinity, if all are -infinity, and if a stage of the caller's own leaves
// no candidates, more than it was given, ids outside the vocabulary, NaN or +infinity.
FRIT_API frit_status frit_sampler_sample(frit_sampler *sampler, const float *logits, frit_token *token);
FRIT_API frit_status frit_sampler_accept(frit_sampler *sampler, frit_token token);
FRIT_API frit_status frit_sampler_reset(frit_sampler *sampler);   // forgets accepted tokens; position 0
// The random number that decides is a function of the seed and of the token's position in its sequence, so a token
// sampled again at the same position, from the same logits, is the same. frit_sampler_sample uses the number of tokens
// accepted since the last reset, or what is set here, which accepting counts on from; frit_session_next uses the length
// of the session.
FRIT_API frit_status frit_sampler_set_position(frit_sampler *sampler, uint64_t position);

// Token healing. The end of a prompt cuts a token where its text does, and the model would often continue it
// ("http" and "://"). Takes the last tokens off again where the text of some token begins with theirs and is longer:
// *n_keep of them are to be pushed. The sampler then picks, and accepts, tokens that spell the text of the others
// before anything else. Special tokens stay, and so does the first. Call it after accepting the prompt;
// frit_sampler_reset ends it. FRIT_E_UNSUPPORTED if the model has no vocabulary. The model must outlive the sampler.
FRIT_API frit_status frit_sampler_heal(frit_sampler *sampler, const frit_model *model, const frit_token *tokens,
                                       size_t n_tokens, size_t *n_keep);

// ---------------------------------------------------------------------------------------- grammars

// What an answer may be, compiled for the vocabulary of a model. A grammar never changes: any thread may use it, and
// any number of samplers.
//
//     frit_grammar_new(&grammar, model, text, strlen(text), &(frit_grammar_options){.kind = FRIT_GRAMMAR_SCHEMA});
//     frit_sampler_set_grammar(sampler, grammar);               // after the prompt was accepted
//     while (!frit_sampler_is_over(sampler)) frit_session_next(session, sampler, &token); ...
typedef struct frit_grammar frit_grammar;

typedef enum frit_grammar_kind {
    FRIT_GRAMMAR_GBNF,     // rules in llama.cpp's notation, of which "root" is the answer
    FRIT_GRAMMAR_SCHEMA,   // JSON that a JSON schema (draft 2020-12) allows
    FRIT_GRAMMAR_REGEX,    // a text that a regular expression (ECMA-262) matches as a whole
} frit_grammar_kind;

typedef struct frit_grammar_options {
    frit_grammar_kind kind;
    bool any_order;   // of schemas: properties in any order; otherwise in the order of the schema
    uint64_t reserved[8];
} frit_grammar_options;

// Keeps the model alive. FRIT_E_INVALID for a text with mistakes, or which nothing matches; FRIT_E_UNSUPPORTED for what
// a grammar cannot say, as a schema with uniqueItems, and for a model without a vocabulary; FRIT_E_LIMIT for one that
// is too large.
FRIT_API frit_status frit_grammar_new(frit_grammar **out, const frit_model *model, const char *text, size_t n_bytes,
                                      const frit_grammar_options *options);
FRIT_API void frit_grammar_free(frit_grammar *grammar);   // samplers keep their grammar alive
// Counts one more owner: frit_grammar_free is to be called once more.
FRIT_API frit_status frit_grammar_retain(frit_grammar *grammar);
// From here on the sampler picks tokens whose text fits the grammar, from its beginning on; the tokens that end an
// answer fit where the text is complete. NULL removes the grammar, and so does frit_sampler_reset. frit_sampler_accept
// then gives FRIT_E_INVALID for a token that does not fit. FRIT_E_UNSUPPORTED while token healing is under way,
// FRIT_E_INVALID for a grammar of another vocabulary.
FRIT_API frit_status frit_sampler_set_grammar(frit_sampler *sampler, frit_grammar *grammar);
// What the answer of a turn may be: reasoning, where the model reasons, then calls in the model's own format, text, or
// what `format` says. With the tool_choice "required" or a function, the answer calls, and the arguments obey the
// schemas of the tools; with "auto", what begins like a call goes on as one. Strict tools need a schema that a grammar
// can say; the others may then have any arguments.
typedef struct frit_turn_grammar_options {
    const char *format;   // of an answer that calls nothing, as frit_grammar_new has it; NULL: any text
    size_t n_format;
    frit_grammar_kind kind;
    bool any_order;
    bool one_call;   // at most one call; a named function is called once in any case
    uint64_t reserved[8];
} frit_turn_grammar_options;

// *out: NULL where the answer may be anything. options may be NULL. Errors: of frit_grammar_new, and those that begin
// with the field of the conversation ("tools[1].function.parameters: ...").
FRIT_API frit_status frit_turn_grammar(frit_grammar **out, const frit_turn *turn,
                                       const frit_turn_grammar_options *options);
// Whether the text is complete by the sampler's grammar and nothing can follow. False without a grammar.
FRIT_API bool frit_sampler_is_over(const frit_sampler *sampler);

#ifdef __cplusplus
}
#endif
#endif

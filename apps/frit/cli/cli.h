// SPDX-License-Identifier: MIT
// frit/cli/cli.h: functions that the commands of frit share.
//
// A command is a row in commands.c and a file of its own: option groups and a run function. Options are rows, which the
// parser (parse_options.c), help and man page (help.c), completions (completions.c) and names of variables all read.
// Precedence is command line, then environment (FRIT_TOP_K for --top-k), then the row's default. All output other than
// answers goes to stderr. Symbols that commands share start with cli_; a folder's own start with its name (bench_,
// chat_). The library is used only through frit.h and frit_tools.h.
#pragma once
#include "common/shift.h"
#include "frit_tools.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

// Exit codes; exit_codes.c has their descriptions. A command that a signal stops returns CLI_INTERRUPTED;
// cli_end_output replaces it by the code of the signal.
enum {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_BAD_MODEL = 3,
    CLI_NO_MEMORY = 4,
    CLI_SIGNALLED = 128,   // plus the signal's number
    CLI_HUNG_UP = 129,
    CLI_INTERRUPTED = 130,
    CLI_PIPE_CLOSED = 141,
    CLI_TERMINATED = 143
};

#define CLI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

// ---------------------------------------------------------------------------------------- commands

enum { CLI_MAX_POSITIONAL = 256 };

// The first member of every command's arguments.
typedef struct cli_common {
    const char *positional[CLI_MAX_POSITIONAL];
    int n_positional;
    bool quiet, no_color;
    const char *model, *hf_repo;
    const frit_option *given[64];   // rows set by command line or environment
    int n_given;
    uint64_t typed;   // bit i: given[i] was set by the command line
} cli_common;

typedef const frit_option *(*cli_rows_fn)(size_t *n_rows);

typedef struct cli_group {
    const char *title;
    cli_rows_fn rows;
    size_t offset;   // of the struct that the rows fill, in the command's arguments
} cli_group;

typedef struct cli_command {
    const char *name;
    const char *usage;     // the text after the name: "[MODEL] [options]"
    const char *summary;   // one line
    const char *details;   // paragraphs and examples for its help page
    const char *usual;     // names of the options that its help shows without --help-all; NULL: all
    int max_positional;
    size_t args_bytes;   // of its arguments, which start with cli_common
    const cli_group *groups;
    size_t n_groups;
    int (*run)(void *args);   // returns the exit code
} cli_command;

extern const cli_command cli_command_run, cli_command_chat, cli_command_info, cli_command_bench, cli_command_perplexity,
    cli_command_tokenize, cli_command_detokenize, cli_command_template, cli_command_logits, cli_command_embed,
    cli_command_rerank, cli_command_serve, cli_command_convert, cli_command_quantize, cli_command_imatrix,
    cli_command_kl, cli_command_kernels, cli_command_help, cli_command_completions, cli_command_pull, cli_command_list,
    cli_command_show, cli_command_rm;
const cli_command *cli_command_get(size_t i);            // row i; NULL past the end
const cli_command *cli_command_find(const char *name);   // NULL if unknown
int cli_unknown_command(const char *name);               // prints an error with similar names; returns CLI_USAGE
void cli_print_models(void);                             // help_models.c: the architectures, by family
const frit_option *cli_common_rows(size_t *n_rows);      // --model, --quiet, ...
int cli_main(int argc, char **argv);                     // runs the command that argv names; returns the exit code

// ---------------------------------------------------------------------------------------- options

typedef struct cli_parse {
    const cli_command *command;
    char *args;        // the command's arguments, filled
    bool help;         // --help or --help-all was given
    bool help_all;     // --help-all was given
    void *owned[64];   // lists made during parsing
    int n_owned;
} cli_parse;

// Returns the option of this long name, or NULL.
const frit_option *cli_find_option(const cli_command *command, const char *name, const cli_group **group);
// True if "--top-k", "--top-k=5" or "-n5" is an option of the command.
bool cli_takes_option(const cli_command *command, const char *text);
// Prints that the command has no such option, with a similar name, and returns CLI_USAGE. `origin` says where the name
// was found.
int cli_refuse_option(const cli_command *command, const char *name, const char *origin);
// Sets the option of a group; the text must live as long as the arguments. Returns an exit code like cli_parse_options.
int cli_set_option(cli_parse *parse, const frit_option *row, const cli_group *group, const char *text,
                   const char *origin);
// Fills the zeroed `parse->args` from defaults, environment and command line. Returns CLI_DONE, or CLI_USAGE after
// printing an error.
int cli_parse_options(cli_parse *parse, int argc, char **argv);
void cli_parse_free(cli_parse *parse);
bool cli_is_typed(const cli_common *common, const char *option);   // "top-k" was given on the command line, not by a
                                                                   // variable
// Sets every sampling option that is not given to the recommendation in the model's file.
void cli_recommend(const cli_common *common, const frit_model *model, frit_sampler_options *options);
// Makes FRIT_TOP_K of "top-k".
void cli_env_name(const char *option, char *out, size_t size);

// ---------------------------------------------------------------------------------------- exit codes

typedef struct cli_exit_row {
    int code;
    const char *meaning;
} cli_exit_row;

const cli_exit_row *cli_exit_rows(size_t *n_rows);
int cli_report(frit_status status);         // prints frit_error() unless it is an interrupt; returns its exit code
int cli_report_model(frit_status status);   // cli_report for an error while a model was opened
int cli_no_memory(void);                    // prints an error; returns CLI_NO_MEMORY

// ---------------------------------------------------------------------------------------- process

extern _Atomic int cli_interrupted;   // number of signals that were not handled yet; read on any thread
extern _Atomic int cli_signal;        // the last signal: SIGINT, SIGTERM or SIGHUP; 0: none
void cli_begin_process(void);         // opens missing descriptors, catches signals
// With `yes`, a signal ends the process immediately from now on, which is allowed while no file is half written.
// Returns the previous setting.
bool cli_exit_on_signal(bool yes);
// Between cli_begin_wait and cli_end_wait, signals end the process immediately, because the main thread reads files
// that a network disk may delay for a long time. No effect in other threads.
void cli_begin_wait(void);
void cli_end_wait(void);
bool cli_was_told_to_end(void);          // a signal other than Ctrl-C was received
bool cli_is_piped(void);                 // stdin is a pipe or a file; not a terminal, a device or a socket
bool cli_input_is_late(int seconds);     // stdin gave neither data nor its end for this time
char *cli_real_path(const char *path);   // without symbolic links, malloc'd; NULL if it does not exist
typedef enum cli_path { CLI_PATH_NONE, CLI_PATH_FILE, CLI_PATH_FOLDER, CLI_PATH_SPECIAL } cli_path;
cli_path cli_path_kind(const char *path);
int cli_process_id(void);
char *cli_program_folder(void);   // the folder of the running program, malloc'd; NULL if unknown

// ---------------------------------------------------------------------------------------- output

// Flushes stdio's buffer. If the output cannot be written, returns false, now and in later calls. The command then
// stops (cli_interrupted), and cli_end_output prints the error.
bool cli_flush(void);
bool cli_should_stop(void);     // a signal was received, or the output cannot be written
int cli_end_output(int code);   // closes stdout; returns the exit code of the process
struct json_t;
int cli_print_json(struct json_t *value, size_t flags);   // with a newline; takes the reference. NULL: out of memory

// A file of results. A new or regular file appears under its name when it is complete; "-" is stdout.
typedef struct cli_file {
    FILE *file;
    const char *path;   // as given by the user
    char *target, *partial;
    int error;   // errno of the first write that failed
} cli_file;

int cli_file_open(cli_file *out, const char *path);
bool cli_file_write(cli_file *out, const void *bytes, size_t n);   // false after the first failed write
int cli_file_close(cli_file *out, int code);   // keeps the file if `code` is CLI_DONE; returns `code`, or CLI_FAILED
                                               // after printing an error
int cli_check_writable(const char *path);      // called before long work: fails if the file cannot be written
// Fails if the file at `path` is one of the inputs, even under another name (targets.c). Returns an exit code after
// printing an error. `path` and inputs may be NULL.
int cli_check_target(const char *path, const char *const *inputs, size_t n);
int cli_check_model_target(const char *path, const frit_model *model);   // fails if it is a file of the model
struct cli_adapter_options;
int cli_check_adapters_target(const char *path, const struct cli_adapter_options *adapters);

// ---------------------------------------------------------------------------------------- terminal

// Writes text of a model, a file or a server, in whole characters. On a terminal, characters that could control it are
// shown as U+FFFD; otherwise bytes stay unchanged.
void cli_put_text(FILE *stream, const char *text, size_t n);
void cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));   // printf with the rules of
                                                                                 // cli_put_text
// Prints a line on stderr; on terminals it is broken between words.
void cli_say(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
void cli_announce(const char *format, ...)
    __attribute__((format(printf, 1, 2)));                                      // prints "frit: ..." on stderr, even if
                                                                                // quiet
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));    // "frit: ..." on stderr; CLI_FAILED
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));   // prints "frit: ..." on stderr;
                                                                                // CLI_USAGE
const char *cli_last_failure(void);   // the last sentence of cli_fail or cli_usage on this thread
void cli_note(const cli_common *common, const char *format, ...)
    __attribute__((format(printf, 2, 3)));                                      // unless quiet
void cli_log(void *common, frit_log_level level, const char *sentence);         // a frit_log_fn for messages to users
void cli_keep_quiet(bool yes);                                                  // for functions without a cli_common
void cli_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));   // unless quiet
bool cli_color(const cli_common *common, FILE *stream);

typedef struct cli_progress {
    const char *what;   // "loading"
    bool on;
    uint64_t start_ns, last_ns;
} cli_progress;
void cli_progress_start(cli_progress *progress, const cli_common *common, const char *what);
bool cli_progress_step(void *progress, double done);   // a frit_progress_fn
void cli_progress_end(cli_progress *progress);
// Runs frit_machine_probe, which takes about two seconds: prints a message on terminals, and a signal ends the process
// immediately.
int cli_probe(const cli_common *common, frit_machine *machine, int32_t n_threads);
uint64_t cli_now_ns(void);
void cli_size_text(uint64_t n_bytes, char out[32]);   // "17.9 MiB"
void cli_count_text(int64_t n, char out[32]);         // "29.4 M"

// ---------------------------------------------------------------------------------------- models and generation

// Finds the path of the model that a text names, malloc'd: the text itself if such a file exists; otherwise the file of
// a model with this name, which is fetched if needed; otherwise the text. Returns an exit code after printing any
// error.
int cli_find_model(const cli_common *common, const char *text, char **path);
int cli_find_file(const cli_common *common, const char *text, char **path);   // cli_find_model for a file other than a
                                                                              // model
// True if the argument ends like a model's file, is a GGUF file, or is a folder with a slash in its path. Names
// (hf:ORG/REPO) are told by hub_is_name.
bool cli_is_model_path(const char *text);
// Opens the named model, or the bundled one. Returns an exit code after printing any error, also if two models are
// named.
int cli_open_model(frit_model **model, const cli_common *common, const frit_model_options *options,
                   const char *positional);
// Warns if there are many more threads than the machine has cores.
void cli_check_threads(const cli_common *common, const char *option, int32_t n_threads);
int cli_check_generates(const frit_model *model, bool chats);   // fails if the model generates no text, or does not
                                                                // support chats
int cli_open_engine(frit_engine **engine, const cli_common *common, frit_model *model,
                    const frit_engine_options *options);
// frit_engine_prepare, for a process that answers others. A signal ends the process at once.
int cli_prepare_engine(frit_engine *engine, const cli_common *common);
// Adapters of all sessions of a command (adapter_options.c).
typedef struct cli_adapter_options {
    frit_option_list lora, vectors;
    const char *range;
} cli_adapter_options;

typedef struct cli_adapters {
    frit_adapter **items;
    float *scales;
    size_t n;
} cli_adapters;

const frit_option *cli_adapter_rows(size_t *n_rows);
int cli_open_adapters(cli_adapters *adapters, frit_model *model, const cli_common *common,
                      const cli_adapter_options *options);
frit_status cli_use_adapters(const cli_adapters *adapters, frit_session *session);
void cli_free_adapters(cli_adapters *adapters);   // sessions keep theirs
// Prints the memory that the model would need with these options, as a table (estimate.c); CLI_NO_MEMORY if it is more
// than there is.
int cli_print_estimate(frit_model *model, const frit_engine_options *options, const cli_adapters *adapters, bool json);
// Speculation in all sessions of a command (speculate_options.c).
typedef struct cli_speculate_options {
    const char *kind, *draft;
    int32_t max_drafts;
    bool always;   // speculate even if it is slower
    float min_p;
} cli_speculate_options;

typedef struct cli_drafter {   // the draft model; NULL: none
    frit_model *model;
    frit_engine *engine;
} cli_drafter;

const frit_option *cli_speculate_rows(size_t *n_rows);
// Opens the draft model, with this engine's options, if one is named or if the model's own layer is used for drafts.
// Returns an exit code after printing any error.
int cli_open_drafter(cli_drafter *drafter, const cli_speculate_options *options, frit_model *model,
                     const cli_common *common, const frit_engine_options *engine, frit_speculate_options *how);
// Opens the draft model and enables speculation in the session. Prints nothing if the model cannot speculate and no
// option asks for it.
int cli_use_speculation(cli_drafter *drafter, const cli_speculate_options *options, frit_model *model,
                        const cli_common *common, const frit_engine_options *engine, frit_session *session);
void cli_drafter_free(cli_drafter *drafter);   // after the session
// Context shifts in all sessions of a command (shift_options.c).
const frit_option *cli_shift_rows(size_t *n_rows);   // of app_shift_options
int cli_check_shift(const app_shift_options *options);
// Returns an exit code after printing any error. n_prompt is the number of tokens that --keep -1 keeps.
int cli_use_shift(const app_shift_options *options, const frit_engine *engine, frit_session *session, size_t n_prompt);
// Prints the memory that a longer context takes, with these options and with smaller cache types.
void cli_note_room(const cli_common *common, frit_model *model, const frit_engine_options *options, int32_t n_ctx);
// frit_convert with progress, notes and warnings; `target` NULL: only the plan. Returns an exit code after printing any
// error.
int cli_convert(const cli_common *common, const char *named, const char *target, const frit_convert_options *options,
                const char *what);
// Prints the size of the GGUF file and its average number of bits per weight; prints nothing for a split file.
void cli_note_file(const cli_common *common, const char *path);
void cli_convert_log(void *common, frit_log_level level, const char *sentence);   // also prints notes, unless quiet
int cli_report_convert(const char *source, frit_status status);
// The path used when no model is named.
const char *cli_bundled_model(void);

typedef struct cli_text {   // malloc'd bytes
    char *data;
    size_t n;
} cli_text;
// Reads a file of any contents; "-": stdin. Returns an exit code after printing any error.
int cli_read_bytes(const char *path, cli_text *out);
int cli_read_file(const char *path, cli_text *out);   // reads a text; "-": stdin. Removes a byte order mark
// Reads a file as JSON; `flags` are Jansson's. Returns an exit code after printing any error; *out is then NULL.
int cli_read_json(const char *path, size_t flags, struct json_t **out);
// refine.c: rounds the weights of a GGUF file again, with `source`, from which it was made.
typedef struct cli_refine_options {
    const char *file;   // "own": the model writes the text
    bool fast, verbose;
} cli_refine_options;
const frit_option *cli_refine_rows(size_t *n_rows);
bool cli_refine_reads(const cli_refine_options *options);   // true if `file` is a path

typedef struct cli_refine_job {
    const cli_text *text;   // NULL: `tokens`, or the model writes the text
    const frit_token *tokens;
    size_t n_tokens;
    int32_t n_windows;   // of the text at most (0: all), or that the model writes (0: 256)
    int32_t n_threads;
    bool by_default;   // a model that cannot be refined is not an error
    bool verbose;
} cli_refine_job;
// Called before the file is made: fails if cli_refine would fail later.
int cli_refine_check(const cli_common *common, const char *source, const cli_refine_job *job);
int cli_refine(const cli_common *common, const char *source, const char *target, const cli_refine_job *job);
void cli_text_add(cli_text *text, const char *bytes, size_t n);
// Appends formatted text.
void cli_text_print(cli_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_text_vprint(cli_text *text, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
// Parses token ids: integers with spaces, commas or brackets between them. `where` is for errors.
int cli_parse_ids(const char *where, const char *text, size_t n_bytes, frit_token **ids, size_t *n_ids);
bool cli_is_id_separator(int c);
// Returns the texts to embed, slices of `text`, malloc'd: all of it, or its lines that are not empty. NULL: out of
// memory.
frit_embed_item *cli_cut_texts(const cli_text *text, bool is_one, size_t *n_items);
// Return tokens, malloc'd, or NULL after printing an error: cli_tokens of a text, others of a chat's prompt and a
// turn's prompt.
frit_token *cli_tokens(const frit_model *model, const char *text, size_t n_bytes, unsigned flags, size_t *n_tokens);
frit_token *cli_chat_tokens(const frit_model *model, const frit_message *messages, size_t n, size_t *n_tokens);
frit_token *cli_turn_tokens(const frit_turn *turn, size_t *n_tokens);

// Encodes the picture of a file ("-": stdin) and says how many tokens it has. Returns an exit code after printing any
// error.
int cli_encode_image(frit_media **out, frit_engine *engine, const cli_common *common, const char *path,
                     const frit_media_options *options);

typedef struct cli_images {   // encoded pictures, which must live as long as their tokens are used
    frit_media **list;
    size_t n;
} cli_images;

typedef struct cli_image_prompt {
    const frit_option_list *files;
    frit_media_options options;
    const char *system;   // or NULL
    const char *text;
    size_t n_bytes;
} cli_image_prompt;

// Encodes the pictures of files and makes the prompt's tokens by the model's chat template. The pictures are where the
// text has {image}, or before the text if it has none.
// *tokens is malloc'd. Returns an exit code after printing any error.
int cli_image_tokens(frit_engine *engine, const frit_model *model, const cli_common *common,
                     const cli_image_prompt *prompt, cli_images *images, frit_token **tokens, size_t *n_tokens);
void cli_images_free(cli_images *images);

typedef struct cli_grammar_options {
    const char *gbnf, *schema, *regex, *tags;
    bool open_objects;   // for JSON schemas
} cli_grammar_options;

const frit_option *cli_grammar_rows(size_t *n_rows);
// Compiles the grammar that an option names, while the prompt runs. Functions return exit codes after printing any
// error.
typedef struct cli_grammar {
    frit_grammar_job *job;
    frit_grammar *grammar;
    const char *name;   // of the option
} cli_grammar;
int cli_begin_grammar(cli_grammar *grammar, const frit_model *model, const cli_grammar_options *options);
int cli_finish_grammar(cli_grammar *grammar);                       // waits for the compilation
int cli_use_grammar(cli_grammar *grammar, frit_sampler *sampler);   // the same, and sets it
void cli_grammar_free(cli_grammar *grammar);
// Reads the text of the grammar that an option names. *name: of the option; NULL: no option names one.
int cli_read_grammar(cli_text *text, const char **name, const cli_grammar_options *options);
// Reads the grammar options for the answers of a chat: format is malloc'd, or NULL.
int cli_read_format(frit_turn_grammar_options *out, const frit_model *model, const cli_grammar_options *options);

typedef struct cli_logprobs_options {
    int32_t n_answer, n_prompt;   // number of likeliest tokens at each position; -1: not requested
} cli_logprobs_options;

const frit_option *cli_logprobs_rows(size_t *n_rows);

// Log-probabilities of tokens, from the unchanged logits (logprobs.c).
typedef struct cli_logprobs {
    int32_t n_top;         // number of likeliest tokens at each position
    frit_logprob *items;   // malloc'd, [n][1 + n_top]: the token, then the likeliest tokens; NaN: unknown
    size_t n, capacity;    // capacity: items
} cli_logprobs;

typedef struct cli_prompt_logprobs {   // tokens that have not run yet
    cli_logprobs logprobs;
    const frit_token *tokens;
    size_t n_tokens;
    frit_status status;
} cli_prompt_logprobs;

void cli_logprobs_init(cli_logprobs *logprobs, const frit_model *model, int32_t n_top);
// Adds a token. `logits` are those that it was picked from; NULL: its log-probability is unknown.
frit_status cli_logprobs_add(cli_logprobs *logprobs, frit_token token, const float *logits, size_t n_vocab);
void cli_logprobs_row(void *prompt, size_t i, const float *values, size_t n);   // a frit_row_fn
struct json_t *cli_logprobs_json(const cli_logprobs *logprobs, const frit_model *model);
void cli_logprobs_print(const cli_logprobs *logprobs, const frit_model *model, const char *what);   // to stderr
void cli_logprobs_deinit(cli_logprobs *logprobs);

typedef struct cli_answer_options {
    const frit_turn *turn;       // the marks of its answers are shown; may be NULL
    cli_grammar *grammar;        // set on the sampler after the prompt has run; may be NULL
    const frit_token *follows;   // tokens whose text the answer continues; NULL: the answer is a separate text
    size_t n_follows;
    size_t n_healed;          // number of tokens at the end of `follows` whose text the answer writes again
    int32_t n_beams;          // of a beam search; 0: tokens are sampled
    int32_t n_predict;        // -1: until the answer or the context ends
    cli_logprobs *logprobs;   // gets the answer's tokens, which are then generated one by one; NULL: none
    frit_option_list stop;
    void (*show)(void *ctx, const char *text, size_t n_bytes);   // called when text is available; may be NULL
    void *show_ctx;
} cli_answer_options;

typedef enum cli_finish {
    CLI_FINISH_END,
    CLI_FINISH_LENGTH,
    CLI_FINISH_STOP,
    CLI_FINISH_CONTEXT,
    CLI_FINISH_INTERRUPT
} cli_finish;

typedef struct cli_answer {
    cli_text text;
    frit_token *tokens;   // malloc'd
    size_t n_tokens, capacity;
    cli_finish finish;
    size_t n_prompt;   // tokens that were run before the first new one
    size_t n_cached;   // tokens of the prompt from the prefix cache, which did not run
    double prompt_s, answer_s;
    uint64_t n_drafted, n_accepted;   // by speculation
} cli_answer;

// Runs the queued tokens of the session, then generates. On failure prints an error and returns an exit code.
int cli_generate(const frit_model *model, frit_engine *engine, frit_session *session, frit_sampler *sampler,
                 const cli_answer_options *options, cli_answer *answer);
void cli_answer_free(cli_answer *answer);
void cli_answer_report(const cli_common *common, const cli_answer *answer);
const char *cli_finish_text(cli_finish finish);

// SPDX-License-Identifier: MIT
// frit/cli/cli.h: what the commands of frit share.
//
// A command is a row in commands.c and a file of its own: option groups and a run function. Options are rows; the
// parser (options.c), help, man page and completions (help.c) and environment names all read the same rows. Precedence
// is command line, then environment (FRIT_TOP_K for --top-k), then the row's default. Everything that is not an answer
// goes to stderr. Symbols of the program start with cli_; the library is used through frit.h alone.
#pragma once
#include "common/shift.h"
#include "frit_tools.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

// Exit codes; exit_codes.c tells what they mean. A command that a signal stops returns CLI_INTERRUPTED, whatever signal
// it was: cli_end_output knows.
enum {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_BAD_MODEL = 3,
    CLI_NO_MEMORY = 4,
    CLI_SIGNALLED = 128,   // and the signal's number
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
    uint64_t typed;   // bit i: given[i] is of the command line
} cli_common;

typedef const frit_option *(*cli_rows_fn)(size_t *n_rows);

typedef struct cli_group {
    const char *title;
    cli_rows_fn rows;
    size_t offset;   // of the struct that the rows fill, in the command's arguments
} cli_group;

typedef struct cli_command {
    const char *name;
    const char *usage;     // what follows the name: "[MODEL] [options]"
    const char *summary;   // one line
    const char *details;   // paragraphs and examples for its help page
    const char *usual;     // names of the options that its help shows without --all; NULL: all
    int max_positional;
    size_t args_bytes;   // of its arguments, which start with cli_common
    const cli_group *groups;
    size_t n_groups;
    int (*run)(void *args);   // returns the exit code
} cli_command;

extern const cli_command cli_command_run, cli_command_chat, cli_command_info, cli_command_bench, cli_command_perplexity,
    cli_command_tokenize, cli_command_detokenize, cli_command_template, cli_command_logits, cli_command_embed,
    cli_command_rerank, cli_command_serve, cli_command_convert, cli_command_quantize, cli_command_imatrix,
    cli_command_kl, cli_command_help, cli_command_completions, cli_command_pull, cli_command_list, cli_command_show,
    cli_command_rm;
const cli_command *cli_command_get(size_t i);            // row i; NULL past the end
const cli_command *cli_command_find(const char *name);   // NULL if unknown
int cli_unknown_command(const char *name);               // says so, and which is near; CLI_USAGE
const frit_option *cli_common_rows(size_t *n_rows);      // --model, --quiet, ...
int cli_main(int argc, char **argv);                     // runs the command that argv names; returns the exit code

// ---------------------------------------------------------------------------------------- options

typedef struct cli_parse {
    const cli_command *command;
    char *args;        // the command's arguments, filled
    bool help;         // --help or --help-all was given
    bool help_all;     // --help-all was given
    void *owned[64];   // lists made on the way
    int n_owned;
} cli_parse;

// The option of that long name, or NULL.
const frit_option *cli_find_option(const cli_command *command, const char *name, const cli_group **group);
// Whether "--top-k", "--top-k=5" or "-n5" is an option of the command.
bool cli_takes_option(const cli_command *command, const char *text);
// Says that the command has no such option, and which name is near; CLI_USAGE. `origin` says where it was found.
int cli_refuse_option(const cli_command *command, const char *name, const char *origin);
// Sets the option of a group; the text must live as long as the arguments. Exit codes as below.
int cli_set_option(cli_parse *parse, const frit_option *row, const cli_group *group, const char *text,
                   const char *origin);
// Fills the zeroed `parse->args` from defaults, environment and command line; CLI_DONE, or CLI_USAGE having said why.
int cli_parse_options(cli_parse *parse, int argc, char **argv);
void cli_parse_free(cli_parse *parse);
bool cli_is_typed(const cli_common *common, const char *option);   // "top-k" on the command line; not in a variable
// Takes what the model's file recommends for every sampling option that is not given.
void cli_recommend(const cli_common *common, const frit_model *model, frit_sampler_options *options);
// FRIT_TOP_K for "top-k".
void cli_env_name(const char *option, char *out, size_t size);

// ---------------------------------------------------------------------------------------- exit codes

typedef struct cli_exit_row {
    int code;
    const char *meaning;
} cli_exit_row;

const cli_exit_row *cli_exit_rows(size_t *n_rows);
int cli_report(frit_status status);         // says frit_error() unless it is an interrupt; returns its exit code
int cli_report_model(frit_status status);   // likewise, of what was opened with a model
int cli_no_memory(void);                    // says so; CLI_NO_MEMORY

// ---------------------------------------------------------------------------------------- process

extern _Atomic int cli_interrupted;   // how many signals wait for an answer; read on any thread
extern _Atomic int cli_signal;        // the last one: SIGINT, SIGTERM or SIGHUP; 0: there was none
void cli_begin_process(void);         // opens missing descriptors, catches signals
// Whether a signal ends the process at once from now on, as it may where no file is half written. Returns what held
// before.
bool cli_exit_on_signal(bool yes);
// Between these calls signals end the process at once, since the main thread reads files that a network disk may delay
// for long. No effect in other threads.
void cli_begin_wait(void);
void cli_end_wait(void);
bool cli_ends(void);                     // a signal other than Ctrl-C has asked for the end
bool cli_is_piped(void);                 // stdin is a pipe or a file; not a terminal, a device or a socket
bool cli_input_is_late(int seconds);     // stdin gave nothing for so long, not even its end
char *cli_real_path(const char *path);   // without links, malloc'd; NULL if it does not exist
typedef enum cli_path { CLI_PATH_NONE, CLI_PATH_FILE, CLI_PATH_FOLDER, CLI_PATH_SPECIAL } cli_path;
cli_path cli_path_kind(const char *path);
int cli_process_id(void);
char *cli_program_folder(void);   // where the running program lies, malloc'd; NULL where that cannot be told

// ---------------------------------------------------------------------------------------- output

// Writes what stdio still has. False, now and ever after, if the output cannot be written: the command stops then
// (cli_interrupted), and cli_end_output tells why.
bool cli_flush(void);
bool cli_stops(void);           // a signal came, or the output cannot be written
int cli_end_output(int code);   // closes stdout; the exit code of the process
struct json_t;
int cli_print_json(struct json_t *value, size_t flags);   // and a newline; takes the reference. NULL: out of memory

// A file of results. What has no name yet, or is a regular file, appears when it is whole; "-" is stdout.
typedef struct cli_file {
    FILE *file;
    const char *path;   // as it was given
    char *target, *partial;
    int error;   // errno of the first write that failed
} cli_file;

int cli_file_open(cli_file *out, const char *path);
bool cli_file_write(cli_file *out, const void *bytes, size_t n);   // false once something could not be written
int cli_file_close(cli_file *out, int code);   // keeps it if `code` is CLI_DONE; returns that, or CLI_FAILED with why
int cli_check_writable(const char *path);      // before long work: whether such a file could be written
// Whether the file at `path` is one that is read, under whatever name (targets.c): exit codes, having said so. `path`
// and inputs may be NULL.
int cli_check_target(const char *path, const char *const *inputs, size_t n);
int cli_check_model_target(const char *path, const frit_model *model);   // one of the model's
struct cli_adapter_options;
int cli_check_adapters_target(const char *path, const struct cli_adapter_options *adapters);

// ---------------------------------------------------------------------------------------- terminal

// Text of a model, a file or a server, in whole characters. On a terminal, what could steer it is shown as U+FFFD;
// elsewhere bytes stay as they are.
void cli_put_text(FILE *stream, const char *text, size_t n);
void cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));   // printf of such text
// A line on stderr; on terminals it is broken between words.
void cli_say(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
void cli_announce(const char *format, ...)
    __attribute__((format(printf, 1, 2)));                                      // "frit: ..." on stderr, quiet or not
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));    // "frit: ..." on stderr; CLI_FAILED
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));   // likewise; CLI_USAGE
const char *cli_last_failure(void);   // the last sentence of these two on this thread
void cli_note(const cli_common *common, const char *format, ...)
    __attribute__((format(printf, 2, 3)));                                // unless quiet
void cli_log(void *common, frit_log_level level, const char *sentence);   // a frit_log_fn: what a user should know
void cli_keep_quiet(bool yes);   // from now on, for functions without a cli_common
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
// frit_machine_probe, about two seconds long: says on terminals what happens, and a signal ends the process at once.
int cli_probe(const cli_common *common, frit_machine *machine, int32_t n_threads);
uint64_t cli_now_ns(void);
void cli_size_text(uint64_t n_bytes, char out[32]);   // "17.9 MiB"
void cli_count_text(int64_t n, char out[32]);         // "29.4 M"

// ---------------------------------------------------------------------------------------- models and generation

// The path of the model that a text means, malloc'd: the text itself if there is such a file, else what a name leads
// to, fetched if it is not here; else the text. An exit code, having said why.
int cli_find_model(const cli_common *common, const char *text, char **path);
int cli_find_file(const cli_common *common, const char *text, char **path);   // likewise, of a file that is no model
// Whether an argument names a model rather than being a prompt: a file that is one, or what would be called like one.
bool cli_is_model_name(const char *text);
// Opens the named model, or the bundled one. Returns an exit code; says what failed, and if two are named.
int cli_open_model(frit_model **model, const cli_common *common, const frit_model_options *options,
                   const char *positional);
// Warns of many more threads than this machine has cores.
void cli_check_threads(const cli_common *common, const char *option, int32_t n_threads);
int cli_check_generates(const frit_model *model, bool chats);   // says so if the model generates no text, or no chats
int cli_open_engine(frit_engine **engine, const cli_common *common, frit_model *model,
                    const frit_engine_options *options);
// Adapters of all sessions of a command (adapters.c).
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
void cli_close_adapters(cli_adapters *adapters);   // sessions keep theirs
// What the model would need with these options, as a table (estimate.c); CLI_NO_MEMORY if that is more than there is.
int cli_print_estimate(frit_model *model, const frit_engine_options *options, const cli_adapters *adapters, bool json);
// Speculation in all sessions of a command (speculate.c).
typedef struct cli_speculate_options {
    const char *kind, *draft;
    int32_t max_drafts;
    bool always;   // even where it does not pay
    float min_p;
} cli_speculate_options;

typedef struct cli_drafter {   // the draft model; NULL: none
    frit_model *model;
    frit_engine *engine;
} cli_drafter;

const frit_option *cli_speculate_rows(size_t *n_rows);
// Opens the draft model, if one is named or the model's own layer is to guess, with this engine's options. An exit
// code, having said why.
int cli_open_drafter(cli_drafter *drafter, const cli_speculate_options *options, frit_model *model,
                     const cli_common *common, const frit_engine_options *engine, frit_speculate_options *how);
// The same, and speculates in the session; without a word where the model cannot and nothing was asked for.
int cli_use_speculation(cli_drafter *drafter, const cli_speculate_options *options, frit_model *model,
                        const cli_common *common, const frit_engine_options *engine, frit_session *session);
void cli_drafter_free(cli_drafter *drafter);   // after the session
// Context shifts in all sessions of a command (shift.c).
const frit_option *cli_shift_rows(size_t *n_rows);   // of app_shift_options
int cli_check_shift(const app_shift_options *options);
// An exit code, having said why. n_prompt: of what --keep -1 keeps.
int cli_use_shift(const app_shift_options *options, const frit_engine *engine, frit_session *session, size_t n_prompt);
// Says what a longer context takes, with these options and with smaller cache types.
void cli_note_room(const cli_common *common, frit_model *model, const frit_engine_options *options, int32_t n_ctx);
// frit_convert with progress, notes and warnings; `target` NULL: a plan. An exit code, having said why.
int cli_convert(const cli_common *common, const char *named, const char *target, const frit_convert_options *options,
                const char *what);
// Says how large the GGUF file is, and how many bits its numbers have on average; nothing of a set of files.
void cli_note_file(const cli_common *common, const char *path);
void cli_convert_log(void *common, frit_log_level level, const char *sentence);   // notes too, unless quiet
int cli_report_convert(const char *source, frit_status status);
// The path used when no model is named.
const char *cli_bundled_model(void);

typedef struct cli_text {   // malloc'd bytes
    char *data;
    size_t n;
} cli_text;
int cli_read_file(const char *path, cli_text *out);   // a text; "-": stdin. Without a byte order mark
// The JSON of such a file; `flags` are Jansson's. An exit code, having said why; *out is NULL then.
int cli_read_json(const char *path, size_t flags, struct json_t **out);
// Rounding a GGUF file again that was made of `source` (refine.c): the options of frit quantize, and the work.
typedef struct cli_refine_options {
    const char *file;   // "own": a text that the model writes
    bool fast, verbose;
} cli_refine_options;
const frit_option *cli_refine_rows(size_t *n_rows);
bool cli_refine_reads(const cli_refine_options *options);   // a file

typedef struct cli_refine_job {
    const cli_text *text;   // NULL: `tokens`, or the model writes n_windows (0: 256)
    const frit_token *tokens;
    size_t n_tokens;
    int32_t n_windows;   // of the text at most; 0: all, by default 256
    int32_t n_threads;
    bool by_default;   // what cannot be refined is no error
    bool verbose;
} cli_refine_job;
// Before the file is made: says what cli_refine could not do.
int cli_refine_check(const cli_common *common, const char *source, const cli_refine_job *job);
int cli_refine(const cli_common *common, const char *source, const char *target, const cli_refine_job *job);
void cli_text_add(cli_text *text, const char *bytes, size_t n);
// Appends what printf would print.
void cli_text_print(cli_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_text_vprint(cli_text *text, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
// The token ids in a text: integers with spaces, commas or brackets between them. `where` is for the sentence.
int cli_parse_ids(const char *where, const char *text, size_t n_bytes, frit_token **ids, size_t *n_ids);
bool cli_is_id_separator(int c);
// The texts to embed, within `text`, malloc'd: all of it, or its lines that are not empty. NULL: out of memory.
frit_embed_item *cli_cut_texts(const cli_text *text, bool is_one, size_t *n_items);
// Tokens, malloc'd, or NULL having said why: of a text, of a chat's prompt, of a turn's prompt.
frit_token *cli_tokens(const frit_model *model, const char *text, size_t n_bytes, unsigned flags, size_t *n_tokens);
frit_token *cli_chat_tokens(const frit_model *model, const frit_message *messages, size_t n, size_t *n_tokens);
frit_token *cli_turn_tokens(const frit_turn *turn, size_t *n_tokens);

typedef struct cli_grammar_options {
    const char *gbnf, *schema, *regex, *tags;
    bool open_objects;   // of schemas
} cli_grammar_options;

const frit_option *cli_grammar_rows(size_t *n_rows);
// Compiles the grammar that an option asks for, if one does, while the prompt runs. Exit codes, having said why.
typedef struct cli_grammar {
    frit_grammar_job *job;
    frit_grammar *grammar;
    const char *name;   // of the option
} cli_grammar;
int cli_begin_grammar(cli_grammar *grammar, const frit_model *model, const cli_grammar_options *options);
int cli_use_grammar(cli_grammar *grammar, frit_sampler *sampler);   // waits for it
void cli_grammar_free(cli_grammar *grammar);
// The one for the answers of a chat: format is malloc'd, or NULL.
int cli_read_format(frit_turn_grammar_options *out, const frit_model *model, const cli_grammar_options *options);

typedef struct cli_logprobs_options {
    int32_t n_answer, n_prompt;   // so many of the likeliest tokens in each place; -1: not asked for
} cli_logprobs_options;

const frit_option *cli_logprobs_rows(size_t *n_rows);

// How likely tokens were, by the logits as they came (logprobs.c).
typedef struct cli_logprobs {
    int32_t n_top;         // of the likeliest tokens at each place
    frit_logprob *items;   // malloc'd, [n][1 + n_top]: the token, then the likeliest; NaN: not known
    size_t n, capacity;
} cli_logprobs;

typedef struct cli_prompt_logprobs {   // of tokens that wait to run
    cli_logprobs logprobs;
    const frit_token *tokens;
    size_t n_tokens;
    frit_status status;
} cli_prompt_logprobs;

void cli_logprobs_init(cli_logprobs *logprobs, const frit_model *model, int32_t n_top);
// logits: those that the token was picked from; NULL: nothing is known of it.
frit_status cli_logprobs_add(cli_logprobs *logprobs, frit_token token, const float *logits, size_t n_vocab);
void cli_logprobs_row(void *prompt, size_t i, const float *values, size_t n);   // a frit_row_fn
struct json_t *cli_logprobs_json(const cli_logprobs *logprobs, const frit_model *model);
void cli_logprobs_print(const cli_logprobs *logprobs, const frit_model *model, const char *what);   // to stderr
void cli_logprobs_free(cli_logprobs *logprobs);

typedef struct cli_answer_options {
    const frit_turn *turn;       // whose marks are shown; may be NULL
    cli_grammar *grammar;        // that the sampler gets once the prompt has run; may be NULL
    const frit_token *follows;   // tokens whose text the answer continues; NULL: it is a text of its own
    size_t n_follows;
    size_t n_healed;          // of these: the last ones, whose text the answer spells again before it goes on
    int32_t n_beams;          // of a beam search; 0: tokens are sampled
    int32_t n_predict;        // -1: until the answer or the context ends
    cli_logprobs *logprobs;   // gets those of the answer's tokens, which come one by one then; NULL: none
    frit_option_list stop;
    void (*show)(void *ctx, const char *text, size_t n_bytes);   // called as text comes; may be NULL
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
    size_t n_cached;   // of these, from the prefix cache: they did not run
    double prompt_s, answer_s;
    uint64_t n_drafted, n_accepted;   // by speculation
} cli_answer;

// Runs what is queued in the session, then generates. On failure says why and returns an exit code.
int cli_generate(const frit_model *model, frit_engine *engine, frit_session *session, frit_sampler *sampler,
                 const cli_answer_options *options, cli_answer *answer);
void cli_answer_free(cli_answer *answer);
void cli_answer_report(const cli_common *common, const cli_answer *answer);
const char *cli_finish_text(cli_finish finish);

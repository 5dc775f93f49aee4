// SPDX-License-Identifier: MIT
// frit run: one prompt, one answer.
#include "frit/cli/cli.h"

#include "hub/hub.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct run_options {
    const char *prompt, *file, *system, *session;
    int32_t n_predict, n_beams, image_tokens;
    frit_option_list stop, images;
    bool raw, heal, json;
} run_options;

typedef struct run_args {
    cli_common common;
    run_options run;
    cli_logprobs_options logprobs;
    frit_sampler_options sampler;
    cli_grammar_options grammar;
    cli_adapter_options adapters;
    cli_speculate_options speculate;
    app_shift_options shift;
    frit_engine_options engine;
    frit_model_options model;
} run_args;

static const frit_option *run_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "prompt",
         .letter = 'p',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(run_options, prompt),
         .metavar = "TEXT",
         .help = "the prompt"},
        {.name = "file",
         .letter = 'f',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(run_options, file),
         .metavar = "FILE",
         .help = "read the prompt from a file ('-': from stdin)"},
        {.name = "system",
         .letters = "sys",
         .aliases = "system-prompt",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(run_options, system),
         .metavar = "TEXT",
         .help = "a system message before the prompt"},
        {.name = "image",
         .type = FRIT_OPTION_LIST,
         .offset = offsetof(run_options, images),
         .metavar = "FILE",
         .help = "a picture for each {image} of the prompt, or before it: PNG, JPEG, WebP or GIF; -: stdin"},
        {.name = "image-tokens",
         .aliases = "image-max-tokens",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(run_options, image_tokens),
         .min = 0,
         .max = 1 << 20,
         .metavar = "N",
         .help = "shrink pictures until they have N tokens at most; 0: the model's limit"},
        {.name = "n-predict",
         .letter = 'n',
         .aliases = "predict",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(run_options, n_predict),
         .min = -1,
         .max = 2147483647,
         .fallback = "-1",
         .metavar = "N",
         .help = "tokens to generate at most; -1: until the answer or the context ends"},
        {.name = "beams",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(run_options, n_beams),
         .min = 0,
         .max = 1024,
         .metavar = "N",
         .help = "search the likeliest answer with N beams instead of sampling one; 0: sample"},
        {.name = "stop",
         .letter = 'r',
         .aliases = "reverse-prompt",
         .type = FRIT_OPTION_LIST,
         .offset = offsetof(run_options, stop),
         .metavar = "STR",
         .help = "end the answer before this text (may be given several times)"},
        {.name = "session",
         .aliases = "prompt-cache",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(run_options, session),
         .metavar = "FILE",
         .help = "keep prompt and answer there, and run only what the file does not hold of the next prompt"},
        {.name = "raw",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(run_options, raw),
         .help = "feed the prompt as it stands, without the model's chat template"},
        {.name = "heal",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(run_options, heal),
         .help = "with --raw: the answer may go on within the prompt's last word (token healing)"},
        {.name = "json",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(run_options, json),
         .help = "print one JSON object at the end instead of streaming text"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int read_text(const run_args *args, const char *path, cli_text *text)
{
    const int code = cli_read_file(path, text);
    // A text file ends with a newline that is not part of the message.
    if (code == CLI_DONE && !args->run.raw && text->n > 0 && text->data[text->n - 1] == '\n') text->data[--text->n] = 0;
    return code;
}

// Appends piped text to the prompt after an empty line: 'git diff | frit run "Summarize:"'.
static int add_piped_text(const run_args *args, cli_text *prompt)
{
    cli_text piped = {0};
    const bool is_piped = cli_is_piped();
    // A parent program may have left a pipe open that it never closes.
    if (is_piped && cli_input_is_late(2))
        cli_note(&args->common, "waiting for the text on stdin, which follows the prompt; '< /dev/null' leaves it out");
    const int code = is_piped ? read_text(args, "-", &piped) : CLI_DONE;
    if (code == CLI_DONE && piped.n > 0) {
        if (prompt->n > 0) cli_text_add(prompt, "\n\n", 2);
        cli_text_add(prompt, piped.data, piped.n);
    }
    free(piped.data);
    return code;
}

// `model` is the argument that was read as a model, or NULL.
static int refuse_empty_prompt(const char *what, const char *model)
{
    const bool is_missing = model && cli_path_kind(model) == CLI_PATH_NONE;
    if (is_missing && cli_is_model_path(model)) {
        cli_fail("%s: there is no such file", model);
        return CLI_BAD_MODEL;
    }
    if (is_missing) return cli_usage("run: %s; '%s' was taken as the model: give a prompt with -p TEXT", what, model);
    return cli_usage("run: %s; give one with -p TEXT, -f FILE or on stdin, or try 'frit chat'", what);
}

static int check_prompt(const run_args *args, const cli_text *prompt, const char *model)
{
    if (prompt->n == 0) return refuse_empty_prompt("the prompt is empty", model);
    const char *zero = memchr(prompt->data, 0, prompt->n);
    if (zero && !args->run.raw)
        return cli_usage("run: byte %zu of the prompt is zero; a text is expected", (size_t)(zero - prompt->data));
    return CLI_DONE;
}

static bool takes_image_of_stdin(const frit_option_list *images)
{
    for (size_t i = 0; i < images->n; i++)
        if (strcmp(images->items[i], "-") == 0) return true;
    return false;
}

// Reads the prompt's text from -p, -f or an argument, and piped text; only from stdin if the prompt is '-' or missing.
static int read_prompt(const run_args *args, const char *model, const char *argument, cli_text *prompt)
{
    const run_options *run = &args->run;
    const char *text = run->prompt ? run->prompt : argument, *file = run->file;
    int n_sources = (run->prompt != NULL) + (run->file != NULL) + (argument != NULL);
    if (n_sources > 1) return cli_usage("run: give the prompt once: by -p, by -f or as an argument");
    if (!run->prompt && argument && strcmp(argument, "-") == 0) text = NULL;
    if (!text && !file) file = "-";
    const bool piped_image = takes_image_of_stdin(&run->images);
    if (piped_image && file && strcmp(file, "-") == 0)
        return cli_usage("run: --image - reads a picture from stdin: give the prompt by -p, -f or as an argument");
    // The user types the prompt of an existing model.
    const bool is_typed = file && strcmp(file, "-") == 0 && isatty(STDIN_FILENO);
    if (is_typed && model && cli_path_kind(model) == CLI_PATH_NONE && !hub_is_name(model))
        return refuse_empty_prompt("no prompt", model);
    if (argument && text == argument && cli_path_kind(argument) == CLI_PATH_FILE)
        cli_note(&args->common, "the prompt is the text '%s'; -f %s reads the file", argument, argument);
    if (text) cli_text_add(prompt, text, strlen(text));
    int code = file ? read_text(args, file, prompt) : CLI_DONE;
    if (code == CLI_DONE && !piped_image && !(file && strcmp(file, "-") == 0)) code = add_piped_text(args, prompt);
    return code == CLI_DONE ? check_prompt(args, prompt, model) : code;
}

// Fails if the arguments are two models, or the model is given twice.
static int check_arguments(const cli_common *common, const char *model, const char *prompt)
{
    if (common->model && model) return cli_usage("run: the model is named twice: '%s' and -m %s", model, common->model);
    if (!prompt || !cli_is_model_path(prompt)) return CLI_DONE;
    if (common->model) return cli_usage("run: the model is named twice: '%s' and -m %s", prompt, common->model);
    return cli_usage("run: two models, '%s' and '%s'; expected one, and a prompt", model ? model : "", prompt);
}

// Converts the prompt's text to tokens, through the chat template if the model has one.
static frit_token *prompt_tokens(const frit_model *model, const run_options *run, const cli_text *prompt, size_t *n)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    if (run->raw || !info.chat_format[0]) return cli_tokens(model, prompt->data, prompt->n, FRIT_TEXT_SPECIAL, n);
    frit_message messages[2];
    size_t n_messages = 0;
    if (run->system) messages[n_messages++] = (frit_message){.role = "system", .content = run->system};
    messages[n_messages++] = (frit_message){.role = "user", .content = prompt->data};
    return cli_chat_tokens(model, messages, n_messages, n);
}

static void show(void *ctx, const char *text, size_t n_bytes)
{
    (void)ctx;
    cli_put_text(stdout, text, n_bytes);
    cli_flush();
}

typedef struct run_logprobs {
    cli_logprobs answer;
    cli_prompt_logprobs prompt;
} run_logprobs;

static int print_json(const run_args *args, const frit_model *model, const cli_answer *answer,
                      const run_logprobs *logprobs)
{
    json_t *text = json_stringn(answer->text.data, answer->text.n);
    json_t *object = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:{s:f, s:f}}", "text", text, "finish", cli_finish_text(answer->finish),
        "prompt_tokens", (json_int_t)answer->n_prompt, "cached_tokens", (json_int_t)answer->n_cached, "answer_tokens",
        (json_int_t)answer->n_tokens, "drafted_tokens", (json_int_t)answer->n_drafted, "accepted_tokens",
        (json_int_t)answer->n_accepted, "seconds", "prompt", answer->prompt_s, "answer", answer->answer_s);
    if (object && args->logprobs.n_answer >= 0)
        json_object_set_new(object, "logprobs", cli_logprobs_json(&logprobs->answer, model));
    if (object && args->logprobs.n_prompt >= 0)
        json_object_set_new(object, "prompt_logprobs", cli_logprobs_json(&logprobs->prompt.logprobs, model));
    return cli_print_json(object, JSON_INDENT(2));
}

static void print_logprobs(const run_args *args, const frit_model *model, const run_logprobs *logprobs)
{
    cli_flush();
    if (args->logprobs.n_prompt >= 0) cli_logprobs_print(&logprobs->prompt.logprobs, model, "prompt");
    if (args->logprobs.n_answer >= 0) cli_logprobs_print(&logprobs->answer, model, "answer");
}

// Makes the session contain the prompt, and keeps the common prefix. At least one token runs, unless the session has
// logits of the last one.
static frit_status feed(frit_session *session, const frit_token *tokens, size_t n)
{
    const frit_token *held = frit_session_tokens(session);
    const size_t n_held = frit_session_length(session);
    size_t n_keep = 0;
    while (n_keep < n && n_keep < n_held && held[n_keep] == tokens[n_keep]) n_keep++;
    if (n_keep > 0 && n_keep == n && !(n == n_held && frit_session_logits(session))) n_keep--;
    frit_status status = frit_session_truncate(session, n_keep);
    return status == FRIT_OK ? frit_session_push(session, tokens + n_keep, n - n_keep, NULL) : status;
}

// Runs the whole prompt and stores the log-probabilities of its tokens.
static frit_status feed_for_logprobs(frit_session *session, const frit_token *tokens, size_t n,
                                     cli_prompt_logprobs *prompt)
{
    const frit_push_options options = {.output = FRIT_OUTPUT_ALL, .row = cli_logprobs_row, .row_ctx = prompt};
    prompt->tokens = tokens;
    prompt->n_tokens = n;
    frit_status status = frit_session_truncate(session, 0);
    if (status == FRIT_OK && n > 0) status = cli_logprobs_add(&prompt->logprobs, tokens[0], NULL, 0);
    return status == FRIT_OK ? frit_session_push(session, tokens, n, &options) : status;
}

// Encodes the source, unless the session has it already.
static frit_status read_source(frit_session *session, const frit_token *tokens, size_t n)
{
    size_t n_held;
    const frit_token *held = frit_session_source(session, &n_held);
    if (n_held == n && memcmp(held, tokens, n * sizeof *tokens) == 0) return FRIT_OK;
    return frit_session_encode(session, tokens, n, NULL);
}

// Loads the session, if the file exists. A new file is written after the answer.
static int load_session(frit_session *session, const char *path)
{
    const frit_status status = path ? frit_session_load(session, path) : FRIT_OK;
    return status == FRIT_OK || status == FRIT_E_NOT_FOUND ? CLI_DONE : cli_fail("%s", frit_error());
}

// Reports that the context is full, or that a prompt is too long for it.
static void say_full(const run_args *args, frit_model *model, const frit_engine *engine, size_t n_prompt)
{
    enum { ANSWER = 256 };
    frit_engine_info info;
    frit_engine_get_info(engine, &info);
    const size_t n_ctx = (size_t)info.n_ctx, needed = n_prompt + ANSWER;
    const size_t more = needed > 2 * n_ctx ? (needed + ANSWER - 1) / ANSWER * ANSWER : 2 * n_ctx;
    if (more <= INT32_MAX / 2) cli_note_room(&args->common, model, &args->engine, (int32_t)more);
}

static int finish_answer(const run_args *args, const frit_model *model, frit_session *session, const cli_answer *answer,
                         const run_logprobs *logprobs)
{
    const char *path = args->run.session;
    if (path && frit_session_save(session, path) != FRIT_OK) return cli_fail("%s", frit_error());
    if (args->run.json) {
        const int code = print_json(args, model, answer, logprobs);
        if (code != CLI_DONE) return code;
    } else {
        putchar('\n');
        print_logprobs(args, model, logprobs);
    }
    cli_answer_report(&args->common, answer);
    if (answer->finish == CLI_FINISH_CONTEXT)
        cli_note(&args->common, "the context is full; --context-shift drops its oldest half and continues");
    return answer->finish == CLI_FINISH_INTERRUPT ? CLI_INTERRUPTED : CLI_DONE;
}

// The state of answering a prompt.
typedef struct run_state {
    frit_model_info info;
    frit_token *tokens;   // of the prompt; the answer begins with the text of the tokens after n_keep
    size_t n_tokens, n_keep;
    frit_session *session;
    frit_sampler *sampler;
    cli_drafter drafter;
    cli_grammar grammar;
    cli_answer answer;
    run_logprobs logprobs;
    cli_images images;
} run_state;

static void run_state_free(run_state *r)
{
    cli_answer_free(&r->answer);
    cli_logprobs_deinit(&r->logprobs.answer);
    cli_logprobs_deinit(&r->logprobs.prompt.logprobs);
    cli_grammar_free(&r->grammar);
    frit_sampler_free(r->sampler);
    frit_session_free(r->session);
    cli_drafter_free(&r->drafter);
    cli_images_free(&r->images);
    free(r->tokens);
}

static bool reads_prompt(const run_state *r)   // the answer is a separate text
{
    return r->info.kind == FRIT_KIND_ENCODER_DECODER;
}

static bool asks_for_speculation(const cli_speculate_options *how)
{
    return strcmp(how->kind, "none") != 0 && (how->draft || strcmp(how->kind, "auto") != 0);
}

static int make_session(const run_args *args, frit_model *model, frit_engine *engine, const cli_adapters *adapters,
                        run_state *r)
{
    frit_status status = frit_session_new(&r->session, engine);
    if (status == FRIT_OK) status = cli_use_adapters(adapters, r->session);
    if (status != FRIT_OK) return cli_report(status);
    int code = CLI_DONE;
    if (args->logprobs.n_answer < 0)   // log-probabilities of several tokens in one step would be unknown
        code = cli_use_speculation(&r->drafter, &args->speculate, model, &args->common, &args->engine, r->session);
    else if (asks_for_speculation(&args->speculate))
        cli_note(&args->common,
                 "--logprobs takes tokens one by one: there is no speculation, as with --speculate none");
    if (code != CLI_DONE) return code;
    frit_sampler_options sampling = args->sampler;
    cli_recommend(&args->common, model, &sampling);
    status = frit_sampler_new(&r->sampler, model, &sampling);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

static int check_read(const run_args *args)
{
    if (args->run.heal) return cli_usage("run: --heal continues the prompt's text, an encoder-decoder writes another");
    if (args->logprobs.n_prompt >= 0)
        return cli_usage("run: --prompt-logprobs: an encoder-decoder reads its prompt, and gives it no probabilities");
    return CLI_DONE;
}

// Gives the prompt to the sampler and the session.
static int queue_prompt(const run_args *args, frit_model *model, const frit_engine *engine, run_state *r)
{
    const bool reads = reads_prompt(r);
    int code = reads ? check_read(args) : CLI_DONE;
    if (code != CLI_DONE) return code;
    frit_status status = FRIT_OK;
    r->n_keep = r->n_tokens;
    for (size_t i = 0; !reads && i < r->n_tokens; i++) frit_sampler_accept(r->sampler, r->tokens[i]);
    if (args->run.heal) status = frit_sampler_heal(r->sampler, model, r->tokens, r->n_tokens, &r->n_keep);
    if (status == FRIT_OK && (code = load_session(r->session, args->run.session)) != CLI_DONE) return code;
    if (status == FRIT_OK && reads) status = read_source(r->session, r->tokens, r->n_tokens);
    if (status == FRIT_OK && reads)
        status = feed(r->session, &r->info.decoder_start, 1);
    else if (status == FRIT_OK && args->logprobs.n_prompt >= 0)
        status = feed_for_logprobs(r->session, r->tokens, r->n_keep, &r->logprobs.prompt);
    else if (status == FRIT_OK)
        status = feed(r->session, r->tokens, r->n_keep);
    if (status == FRIT_OK) return cli_use_shift(&args->shift, engine, r->session, r->n_tokens);
    code = cli_report(status);
    if (status == FRIT_E_LIMIT) say_full(args, model, engine, r->n_tokens);
    return code;
}

static int generate(const run_args *args, frit_model *model, frit_engine *engine, run_state *r)
{
    const cli_answer_options options = {.grammar = &r->grammar,
                                        .follows = r->tokens,
                                        .n_follows = args->run.raw && !reads_prompt(r) ? r->n_tokens : 0,
                                        .n_healed = r->n_tokens - r->n_keep,
                                        .n_predict = args->run.n_predict,
                                        .n_beams = args->run.n_beams,
                                        .logprobs = args->logprobs.n_answer >= 0 ? &r->logprobs.answer : NULL,
                                        .stop = args->run.stop,
                                        .show = args->run.json ? NULL : show};
    int code = cli_generate(model, engine, r->session, r->sampler, &options, &r->answer);
    if (code == CLI_DONE && r->logprobs.prompt.status != FRIT_OK) code = cli_report(r->logprobs.prompt.status);
    if (code == CLI_DONE) code = finish_answer(args, model, r->session, &r->answer, &r->logprobs);
    if (r->answer.finish == CLI_FINISH_CONTEXT) say_full(args, model, engine, r->n_tokens);
    return code;
}

static int read_tokens(const run_args *args, frit_model *model, frit_engine *engine, const cli_text *prompt,
                       run_state *r)
{
    const cli_image_prompt with_images = {.files = &args->run.images,
                                          .options = {.max_tokens = (uint32_t)args->run.image_tokens},
                                          .system = args->run.system,
                                          .text = prompt->data,
                                          .n_bytes = prompt->n};
    if (args->run.images.n > 0)
        return cli_image_tokens(engine, model, &args->common, &with_images, &r->images, &r->tokens, &r->n_tokens);
    r->tokens = prompt_tokens(model, &args->run, prompt, &r->n_tokens);
    return r->tokens ? CLI_DONE : CLI_FAILED;
}

static int answer_prompt(const run_args *args, frit_model *model, frit_engine *engine, const cli_adapters *adapters,
                         const cli_text *prompt)
{
    run_state r = {0};
    frit_model_get_info(model, &r.info);
    cli_logprobs_init(&r.logprobs.answer, model, args->logprobs.n_answer);
    cli_logprobs_init(&r.logprobs.prompt.logprobs, model, args->logprobs.n_prompt);
    int code = read_tokens(args, model, engine, prompt, &r);
    if (code == CLI_DONE) code = cli_begin_grammar(&r.grammar, model, &args->grammar);
    if (code == CLI_DONE) code = make_session(args, model, engine, adapters, &r);
    if (code == CLI_DONE) code = queue_prompt(args, model, engine, &r);
    if (code == CLI_DONE) code = generate(args, model, engine, &r);
    run_state_free(&r);
    return code;
}

// True if the first argument begins the prompt: with -m, if the only argument is '-', or if there are several words
// that are not a model.
static bool first_is_prompt(const cli_common *common)
{
    if (common->n_positional == 0) return false;
    const char *first = common->positional[0];
    if (common->model) return !cli_is_model_path(first);
    if (common->n_positional > 1) return false;
    return strcmp(first, "-") == 0 || (strchr(first, ' ') && cli_path_kind(first) == CLI_PATH_NONE &&
                                       !cli_is_model_path(first) && !hub_is_name(first));
}

// Joins the arguments: "hello there".
static void join_words(const cli_common *common, int first, cli_text *out)
{
    for (int i = first; i < common->n_positional; i++) {
        if (i > first) cli_text_add(out, " ", 1);
        cli_text_add(out, common->positional[i], strlen(common->positional[i]));
    }
}

static int run(void *ctx)
{
    const run_args *args = ctx;
    const cli_common *common = &args->common;
    const int n_names = common->n_positional > 0 && !first_is_prompt(common);
    cli_text words = {0};
    join_words(common, n_names, &words);
    const char *argument = words.data;
    if (args->run.heal && !args->run.raw) return cli_usage("run: --heal continues a text: it needs --raw");
    if (args->run.images.n > 0 && args->run.raw)
        return cli_usage("run: --image needs the model's chat template: not with --raw");
    if (args->run.images.n == 0 && args->run.image_tokens > 0)
        return cli_usage("run: --image-tokens limits the tokens of pictures: it needs --image");
    if (args->run.images.n > 0 && args->logprobs.n_prompt >= 0)
        return cli_usage("run: --prompt-logprobs: tokens of pictures have no probabilities");
    if (args->run.images.n > 0 && args->run.session)
        return cli_usage("run: --session: a session with pictures cannot be saved");
    if (args->run.heal && args->run.n_beams > 0)
        return cli_usage("run: --heal samples its first tokens: not with --beams");
    if (args->logprobs.n_answer >= 0 && args->run.n_beams > 0)
        return cli_usage("run: --logprobs is about sampled tokens: not with --beams");
    if (args->shift.on && args->run.n_beams > 0)
        return cli_usage("run: --context-shift drops tokens of one text: not with --beams");
    frit_engine_options engine_options = args->engine;
    if (args->run.n_beams > 0) engine_options.n_sessions = args->run.n_beams + 1;
    cli_text prompt = {0};
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    cli_adapters adapters = {0};
    const char *name = n_names ? common->positional[0] : NULL;
    int code = check_arguments(common, name, argument);
    if (code == CLI_DONE) code = cli_check_shift(&args->shift);
    if (code == CLI_DONE) code = read_prompt(args, name, argument, &prompt);
    if (code == CLI_DONE && args->run.session) code = cli_check_writable(args->run.session);
    if (code == CLI_DONE) code = cli_open_model(&model, common, &args->model, name);
    if (code == CLI_DONE) code = cli_check_generates(model, false);
    // Adapters come first, because the engine then checks the free memory.
    if (code == CLI_DONE) code = cli_open_adapters(&adapters, model, common, &args->adapters);
    if (code == CLI_DONE) code = cli_open_engine(&engine, &args->common, model, &engine_options);
    if (code == CLI_DONE) code = answer_prompt(args, model, engine, &adapters, &prompt);
    cli_free_adapters(&adapters);
    frit_engine_free(engine);
    frit_model_free(model);
    free(prompt.data);
    free(words.data);
    return code;
}

static const cli_group groups[] = {
    {"Prompt and answer", run_rows, offsetof(run_args, run)},
    {"Log-probabilities", cli_logprobs_rows, offsetof(run_args, logprobs)},
    {"Sampling", frit_sampler_option_rows, offsetof(run_args, sampler)},
    {"Constrained answers", cli_grammar_rows, offsetof(run_args, grammar)},
    {"Adapters", cli_adapter_rows, offsetof(run_args, adapters)},
    {"Speculation", cli_speculate_rows, offsetof(run_args, speculate)},
    {"Long texts", cli_shift_rows, offsetof(run_args, shift)},
    {"Engine", frit_engine_option_rows, offsetof(run_args, engine)},
    {"Model", frit_model_option_rows, offsetof(run_args, model)},
    {"General", cli_common_rows, offsetof(run_args, common)},
};

const cli_command cli_command_run = {
    .name = "run",
    .usage = "[MODEL] [PROMPT ... | -] [options]",
    .summary = "answer one prompt",
    .usual = "prompt file image system n-predict stop session raw json temp top-k top-p seed json-schema lora "
             "ctx threads gpu-layers type model hf-repo quiet",
    .details =
        "The answer streams to stdout, everything else goes to stderr. Where the model has a chat template the\n"
        "prompt is a user's message; --raw feeds it as it stands. Without a prompt it is read from a pipe or the\n"
        "keyboard; text that is piped in beside a prompt follows it after an empty line ('< /dev/null' leaves it\n"
        "out).\n"
        "Without a model the bundled one answers.\n"
        "\n"
        "  frit run -p \"Tell me the tale of Rapunzel.\"\n"
        "  frit run model.gguf -f question.txt --temp 0 -n 200\n"
        "  git diff | frit run model.gguf \"Summarize:\"\n"
        "  frit run model.gguf \"Yes or no?\" -n 1 --logprobs 5\n"
        "  frit run model.gguf --raw -f book.txt -n 0 --session book.frit",
    .max_positional = CLI_MAX_POSITIONAL,
    .args_bytes = sizeof(run_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};

// SPDX-License-Identifier: MIT
// frit logits: raw outputs for given token ids, for comparison with other engines.
#include "frit/cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct logits_options {
    const char *ids, *decoder_ids, *out;
    bool embeddings;
} logits_options;

typedef struct logits_args {
    cli_common common;
    logits_options logits;
    cli_adapter_options adapters;
    frit_engine_options engine;
    frit_model_options model;
} logits_args;

static const frit_option *logits_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "ids",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(logits_options, ids),
         .metavar = "1,2,3",
         .help = "the tokens, separated by commas or spaces"},
        {.name = "decoder-ids",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(logits_options, decoder_ids),
         .metavar = "1,2,3",
         .help = "encoder-decoders: token ids for the decoder, whose logits are written; --ids: for the encoder"},
        {.name = "output",
         .letter = 'o',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(logits_options, out),
         .metavar = "FILE",
         .help = "where to write ('-': to stdout): float32, little-endian, [n_tokens, n_vocab]"},
        {.name = "embeddings",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(logits_options, embeddings),
         .help = "write the last hidden states instead: [n_tokens, n_embd]"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

typedef struct sink {
    cli_file file;
    size_t n_rows, n_columns;
} sink;

static void write_row(void *ctx, size_t i, const float *values, size_t n)
{
    sink *to = ctx;
    (void)i;
    cli_file_write(&to->file, values, n * sizeof *values);
    to->n_rows++;
    to->n_columns = n;
}

typedef struct id_list {
    frit_token *ids;
    size_t n;
} id_list;

// Queues the requested rows: of the only list, or of the decoder's list after the other list has been encoded.
static frit_status push(frit_session *session, const id_list *ids, const id_list *decoder,
                        const frit_push_options *push)
{
    if (!decoder->ids) return frit_session_push(session, ids->ids, ids->n, push);
    frit_status status = frit_session_encode(session, ids->ids, ids->n, NULL);
    return status == FRIT_OK ? frit_session_push(session, decoder->ids, decoder->n, push) : status;
}

static int write_logits(const logits_args *args, frit_engine *engine, const cli_adapters *adapters, const id_list *ids,
                        const id_list *decoder)
{
    sink to = {0};
    int code = cli_file_open(&to.file, args->logits.out);
    if (code != CLI_DONE) return code;
    const char *name = to.file.path;
    const frit_push_options wanted = {
        .output = args->logits.embeddings ? FRIT_OUTPUT_EMBEDDINGS : FRIT_OUTPUT_ALL, .row = write_row, .row_ctx = &to};
    frit_session *session = NULL;
    frit_status status = frit_session_new(&session, engine);
    if (status == FRIT_OK) status = cli_use_adapters(adapters, session);
    if (status == FRIT_OK) status = push(session, ids, decoder, &wanted);
    while (status == FRIT_OK && frit_session_pending(session) > 0 && to.file.error == 0 && !cli_interrupted) {
        int32_t n_rows;
        status = frit_engine_step(engine, &n_rows);
    }
    if (status == FRIT_OK) status = frit_session_status(session);
    frit_session_free(session);
    if (status != FRIT_OK) code = cli_report(status);
    if (code == CLI_DONE && cli_interrupted) code = CLI_INTERRUPTED;
    code = cli_file_close(&to.file, code);
    if (code == CLI_DONE) cli_note(&args->common, "%s: [%zu, %zu] float32", name, to.n_rows, to.n_columns);
    return code;
}

static int parse(const char *where, const char *text, id_list *list)
{
    if (!text) return CLI_DONE;
    int code = cli_parse_ids(where, text, strlen(text), &list->ids, &list->n);
    return code == CLI_DONE && list->n == 0 ? cli_usage("%s: no tokens", where) : code;
}

static int check_lists(const logits_args *args, const frit_model *model, bool has_decoder)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    const bool two = info.kind == FRIT_KIND_ENCODER_DECODER;
    if (two && !has_decoder) return cli_usage("logits: --decoder-ids is missing, which an encoder-decoder needs");
    if (!two && has_decoder) return cli_usage("logits: --decoder-ids need an encoder-decoder, this model is not one");
    if (info.kind == FRIT_KIND_ENCODER && !args->logits.embeddings)
        return cli_usage("logits: an encoder has none; --embeddings writes its hidden states");
    return CLI_DONE;
}

static int run(void *ctx)
{
    const logits_args *args = ctx;
    if (!args->logits.ids) return cli_usage("logits: --ids is missing");
    if (!args->logits.out) return cli_usage("logits: --output is missing");
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    cli_adapters adapters = {0};
    id_list ids = {0}, decoder = {0};
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    int code = parse("logits: --ids", args->logits.ids, &ids);
    if (code == CLI_DONE) code = parse("logits: --decoder-ids", args->logits.decoder_ids, &decoder);
    if (code == CLI_DONE) code = cli_check_adapters_target(args->logits.out, &args->adapters);
    if (code == CLI_DONE) code = cli_open_model(&model, &args->common, &args->model, path);
    if (code == CLI_DONE) code = cli_check_model_target(args->logits.out, model);
    if (code == CLI_DONE) code = check_lists(args, model, decoder.ids != NULL);
    if (code == CLI_DONE) code = cli_open_adapters(&adapters, model, &args->common, &args->adapters);
    if (code == CLI_DONE) code = cli_open_engine(&engine, &args->common, model, &args->engine);
    if (code == CLI_DONE) code = write_logits(args, engine, &adapters, &ids, &decoder);
    cli_free_adapters(&adapters);
    frit_engine_free(engine);
    frit_model_free(model);
    free(ids.ids);
    free(decoder.ids);
    return code;
}

static const cli_group groups[] = {
    {"Input and output", logits_rows, offsetof(logits_args, logits)},
    {"Adapters", cli_adapter_rows, offsetof(logits_args, adapters)},
    {"Engine", frit_engine_option_rows, offsetof(logits_args, engine)},
    {"Model", frit_model_option_rows, offsetof(logits_args, model)},
    {"General", cli_common_rows, offsetof(logits_args, common)},
};

const cli_command cli_command_logits = {
    .name = "logits",
    .usage = "[MODEL] --ids 1,2,3 -o OUT.f32 [options]",
    .summary = "write the logits after each of the given tokens",
    .usual = "ids output embeddings lora ctx threads batch cpu gpu-layers type model hf-repo quiet",
    .details = "Works for files without a vocabulary too.\n"
               "\n"
               "  frit logits model.gguf --ids 1,2,3 -o out.f32 --cpu reference\n"
               "  frit logits t5.gguf --ids 5,6,7,1 --decoder-ids 0,8,9 -o out.f32",
    .max_positional = 1,
    .args_bytes = sizeof(logits_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};

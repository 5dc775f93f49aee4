// SPDX-License-Identifier: MIT
// frit embed: an embedding for each text.
#include "frit/cli/cli.h"

#include "common/grow.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct embed_input {
    const char *prompt, *file;
    bool json;
} embed_input;

typedef struct embed_args {
    cli_common common;
    embed_input input;
    frit_embed_options embed;
    frit_engine_options engine;
    frit_model_options model;
} embed_args;

static const frit_option *input_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "prompt",
         .letter = 'p',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(embed_input, prompt),
         .metavar = "TEXT",
         .help = "the text"},
        {.name = "file",
         .letter = 'f',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(embed_input, file),
         .metavar = "FILE",
         .help = "a text on each line of this file ('-': of stdin); empty lines are left out"},
        {.name = "json",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(embed_input, json),
         .help = "print one JSON object instead of a line of numbers for each vector"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

typedef struct vector_row {
    size_t item, position;
} vector_row;

typedef struct vectors {   // in the order of their arrival
    float *values;         // [n, width]
    vector_row *rows;
    size_t n, values_capacity, rows_capacity, width;
    bool failed;
} vectors;

static void keep(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    vectors *v = ctx;
    if (!APP_GROW(v->values, v->values_capacity, (v->n + 1) * n) || !APP_GROW(v->rows, v->rows_capacity, v->n + 1)) {
        v->failed = true;
        return;
    }
    v->width = n;
    memcpy(v->values + v->n * n, values, n * sizeof *values);
    v->rows[v->n++] = (vector_row){item, i};
}

static const float *find(const vectors *v, size_t item, size_t i)
{
    for (size_t k = 0; k < v->n; k++)
        if (v->rows[k].item == item && v->rows[k].position == i) return v->values + k * v->width;
    return NULL;
}

static bool is_sparse_pooling(const char *pooling)
{
    return strncmp(pooling, "splade", 6) == 0;
}

static void print_sparse(const vectors *v, size_t n_items)
{
    for (size_t item = 0; item < n_items && !cli_should_stop(); item++) {
        const float *values = find(v, item, 0);
        const char *space = "";
        for (size_t k = 0; values && k < v->width; k++) {
            if (values[k] == 0) continue;
            printf("%s%zu:%.8g", space, k, (double)values[k]);
            space = " ";
        }
        printf("\n");
    }
}

static void print_lines(const vectors *v, size_t n_items)
{
    const float *values;
    for (size_t item = 0; item < n_items && !cli_should_stop(); item++)
        for (size_t i = 0; (values = find(v, item, i)); i++)
            for (size_t k = 0; k < v->width; k++) printf("%.8g%c", (double)values[k], k + 1 < v->width ? ' ' : '\n');
}

static json_t *vector_json(const float *values, size_t n)
{
    json_t *list = json_array();
    for (size_t k = 0; k < n; k++) json_array_append_new(list, json_real((double)values[k]));
    return list;
}

// {"indices": [...], "values": [...]} of the numbers that are not 0.
static json_t *sparse_json(const float *values, size_t n)
{
    json_t *indices = json_array(), *numbers = json_array();
    for (size_t k = 0; k < n; k++) {
        if (values[k] == 0) continue;
        json_array_append_new(indices, json_integer((json_int_t)k));
        json_array_append_new(numbers, json_real((double)values[k]));
    }
    return json_pack("{s:o, s:o}", "indices", indices, "values", numbers);
}

static int print_json(const vectors *v, size_t n_items, const char *pooling)
{
    json_t *data = json_array();
    const float *values;
    for (size_t item = 0; item < n_items; item++)
        for (size_t i = 0; (values = find(v, item, i)); i++)
            json_array_append_new(
                data,
                json_pack("{s:I, s:I, s:o}", "index", (json_int_t)item, "token", (json_int_t)i, "embedding",
                          is_sparse_pooling(pooling) ? sparse_json(values, v->width) : vector_json(values, v->width)));
    json_t *object = json_pack("{s:s, s:I, s:o}", "pooling", pooling, "dims", (json_int_t)v->width, "embeddings", data);
    return cli_print_json(object, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
}

static int embed(const embed_args *args, const frit_model *model, frit_engine *engine, const cli_text *text)
{
    vectors v = {0};
    size_t n_items;
    frit_embed_item *items = cli_cut_texts(text, args->input.prompt != NULL, &n_items);
    int code = items ? CLI_DONE : cli_no_memory();
    if (code == CLI_DONE && n_items == 0) code = cli_usage("embed: there is no text");
    cli_exit_on_signal(true);   // nothing is written yet
    frit_status status = code == CLI_DONE ? frit_embed_texts(engine, items, n_items, &args->embed, keep, &v) : FRIT_OK;
    cli_exit_on_signal(false);
    if (status != FRIT_OK) code = cli_report(status);
    if (v.failed) code = cli_no_memory();
    frit_model_info info;
    frit_model_get_info(model, &info);
    const char *pooling = args->embed.pooling ? args->embed.pooling : info.pooling;
    if (code == CLI_DONE && args->input.json)
        code = print_json(&v, n_items, pooling);
    else if (code == CLI_DONE && is_sparse_pooling(pooling))
        print_sparse(&v, n_items);
    else if (code == CLI_DONE)
        print_lines(&v, n_items);
    free(v.values);
    free(v.rows);
    free(items);
    return code;
}

static int read_input(const embed_args *args, cli_text *text)
{
    const embed_input *input = &args->input;
    if (input->prompt && input->file) return cli_usage("embed: give the text once: by -p or by -f");
    if (!input->prompt && !input->file && isatty(STDIN_FILENO))
        return cli_usage("embed: no text; give one with -p TEXT, or a line for each with -f FILE or on stdin");
    if (!input->prompt) return cli_read_file(input->file ? input->file : "-", text);
    cli_text_add(text, input->prompt, strlen(input->prompt));
    return CLI_DONE;
}

static int run(void *ctx)
{
    embed_args *args = ctx;
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    cli_text text = {0};
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    int code = read_input(args, &text);
    if (code == CLI_DONE) code = cli_open_model(&model, &args->common, &args->model, path);
    if (code == CLI_DONE) {
        frit_model_info info;
        frit_model_get_info(model, &info);
        args->engine.n_sessions = info.kind == FRIT_KIND_ENCODER ? 4 : 1;   // short texts share steps
        code = cli_open_engine(&engine, &args->common, model, &args->engine);
    }
    if (code == CLI_DONE) code = embed(args, model, engine, &text);
    frit_engine_free(engine);
    frit_model_free(model);
    free(text.data);
    return code;
}

static const cli_group groups[] = {
    {"Input and output", input_rows, offsetof(embed_args, input)},
    {"Embeddings", frit_embed_option_rows, offsetof(embed_args, embed)},
    {"Engine", frit_engine_option_rows, offsetof(embed_args, engine)},
    {"Model", frit_model_option_rows, offsetof(embed_args, model)},
    {"General", cli_common_rows, offsetof(embed_args, common)},
};

const cli_command cli_command_embed = {
    .name = "embed",
    .usage = "[MODEL] [-p TEXT | -f FILE] [options]",
    .summary = "print the vector of each text",
    .usual =
        "prompt file json pooling prompt-name normalize dims ctx threads batch gpu-layers type model hf-repo quiet",
    .details = "Works with encoders and with every other model. Numbers of a vector stand on one line, with spaces\n"
               "between them; with --pooling rank they are the scores of the model's classification head, and with\n"
               "--pooling splade pairs TOKEN:WEIGHT of the tokens whose weight is not 0.\n"
               "\n"
               "  frit embed bge-small.gguf -p 'Where does the sun rise?'\n"
               "  frit embed bge-small.gguf -f sentences.txt --json\n"
               "  frit embed embeddinggemma -f questions.txt --prompt-name query --dimensions 256",
    .max_positional = 1,
    .args_bytes = sizeof(embed_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};

// SPDX-License-Identifier: MIT
// Prints a benchmark: as a table for people, and as JSON, JSON lines and CSV with every parameter in each row.
#include "frit/bench/bench.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- figures

static int smaller_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_figures bench_figures_of(const bench_row *row)
{
    bench_figures f = {0};
    const int n = row->n_samples;
    double n_tokens = (double)bench_test_tokens(&row->test), squares_ts = 0, squares_ns = 0;
    double *rates = calloc((size_t)n + 1, sizeof *rates);
    for (int i = 0; i < n && rates; i++) {
        rates[i] = n_tokens / row->seconds[i];
        f.mean_ts += rates[i] / n;
        f.mean_ns += row->seconds[i] * 1e9 / n;
    }
    for (int i = 0; i < n && rates; i++) {
        squares_ts += pow(rates[i] - f.mean_ts, 2);
        squares_ns += pow(row->seconds[i] * 1e9 - f.mean_ns, 2);
    }
    if (n > 1) f.sd_ts = sqrt(squares_ts / (n - 1));
    if (n > 1) f.sd_ns = sqrt(squares_ns / (n - 1));
    if (n > 0 && rates) {
        qsort(rates, (size_t)n, sizeof *rates, smaller_first);
        f.min_ts = rates[0];
        f.max_ts = rates[n - 1];
        f.median_ts = (rates[(n - 1) / 2] + rates[n / 2]) / 2;
    }
    free(rates);
    f.gbps = f.mean_ts * row->n_bytes * 1e-9;
    f.tops = f.mean_ts * row->n_ops * 1e-12;
    return f;
}

// ---------------------------------------------------------------------------------------- tables

// The number of characters: continuation bytes of UTF-8 do not count.
static int text_width(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void bench_table_widen(bench_column *column, const char *text)
{
    int n = text_width(text);
    if (n > column->width) column->width = n;
}

void bench_table_cell(const bench_column *column, const char *text)
{
    int pad = column->width - text_width(text);
    if (pad < 0) pad = 0;
    cli_print("| %*s%s%*s ", column->left ? 0 : pad, "", text, column->left ? pad : 0, "");
}

void bench_table_end_row(void)
{
    puts("|");
    cli_flush();
}

void bench_table_head(bench_column *columns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bench_table_widen(&columns[i], columns[i].title);
        bench_table_cell(&columns[i], columns[i].title);
    }
    bench_table_end_row();
    for (size_t i = 0; i < n; i++) {
        fputs("| ", stdout);
        for (int j = 0; j < columns[i].width - !columns[i].left; j++) putchar('-');
        fputs(columns[i].left ? " " : ": ", stdout);
    }
    bench_table_end_row();
}

// ---------------------------------------------------------------------------------------- md

// The columns of the table, in order. A parameter is shown if it differs between rows, or always if `always` is set.
typedef struct md_field {
    const char *title;
    bool left, always;
    int width;
    void (*text)(const bench_row *row, char out[64]);
} md_field;

static void model_text(const bench_row *row, char out[64])
{
    snprintf(out, 64, "%.40s %.20s", row->model->architecture, row->model->file_type);
}

static void size_text(const bench_row *row, char out[64])
{
    cli_size_text(row->model->n_bytes, out);
}

static void params_text(const bench_row *row, char out[64])
{
    cli_count_text(row->model->n_params, out);
}

static void backend_text(const bench_row *row, char out[64])
{
    snprintf(out, 64, "%s %s", row->engine.backend ? row->engine.backend : "", row->engine.isa ? row->engine.isa : "");
}

static void threads_text(const bench_row *row, char out[64])
{
    snprintf(out, 64, "%d", row->engine.n_threads ? row->engine.n_threads : row->setup.n_threads);
}

static void batch_text(const bench_row *row, char out[64])
{
    snprintf(out, 64, "%d", row->test.n_batch);
}

static void ubatch_text(const bench_row *row, char out[64])
{
    snprintf(out, 64, "%d", row->engine.n_batch);
}

static void type_k_text(const bench_row *row, char out[64])
{
    snprintf(out, 64, "%s", row->setup.type_k ? row->setup.type_k : "");
}

static void type_v_text(const bench_row *row, char out[64])
{
    snprintf(out, 64, "%s", row->setup.type_v ? row->setup.type_v : "");
}

static void kv_text(const bench_row *row, char out[64])
{
    cli_size_text(row->engine.kv_token_bytes, out);
}

static void test_text(const bench_row *row, char out[64])
{
    bench_test_name(&row->test, out);
}

static void rate_text(const bench_row *row, char out[64])
{
    bench_figures f = bench_figures_of(row);
    snprintf(out, 64, "%.2f \xc2\xb1 %.2f", f.mean_ts, f.sd_ts);
}

static void share_text(char out[64], double achieved, double possible, const char *unit)
{
    out[0] = 0;
    if (achieved <= 0) return;
    int n = snprintf(out, 64, achieved < 10 ? "%.2f %s" : "%.1f %s", achieved, unit);
    if (possible > 0) snprintf(out + n, 64 - (size_t)n, " %3.0f %%", 100 * achieved / possible);
}

// The machine's rate for the type of numbers that the model's weights are multiplied in.
static double machine_tops(const bench_row *row)
{
    static const char *const floats[] = {"f32", "f16", "bf16"};
    for (size_t i = 0; i < CLI_COUNT(floats); i++)
        if (strcmp(row->model->file_type, floats[i]) == 0) return row->machine.float_tops;
    return row->machine.int8_tops;
}

static void memory_text(const bench_row *row, char out[64])
{
    share_text(out, bench_figures_of(row).gbps, row->machine.read_gbps, "GB/s");
}

static void arithmetic_text(const bench_row *row, char out[64])
{
    share_text(out, bench_figures_of(row).tops, machine_tops(row), "TOPS");
}

// Columns of figures that are not measured yet have a minimum width.
static const md_field md_fields[] = {
    {"model", true, true, 0, model_text},      {"size", false, true, 0, size_text},
    {"params", false, true, 0, params_text},   {"backend", true, true, 14, backend_text},
    {"threads", false, true, 0, threads_text}, {"batch", false, false, 0, batch_text},
    {"ubatch", false, false, 0, ubatch_text},  {"type_k", false, false, 0, type_k_text},
    {"type_v", false, false, 0, type_v_text},  {"KV a token", false, true, 10, kv_text},
    {"test", true, true, 0, test_text},        {"t/s", false, true, 16, rate_text},
    {"memory", false, true, 15, memory_text},  {"arithmetic", false, true, 15, arithmetic_text},
};
enum { MD_FIELDS = CLI_COUNT(md_fields) };

static bench_column md_columns[MD_FIELDS];
static bool md_shown[MD_FIELDS];

static void md_head(void)
{
    bench_column shown[MD_FIELDS];
    size_t n = 0;
    for (size_t i = 0; i < MD_FIELDS; i++)
        if (md_shown[i]) shown[n++] = md_columns[i];
    bench_table_head(shown, n);
}

static void md_begin(const bench_plan *plan)
{
    for (size_t i = 0; i < MD_FIELDS; i++) {
        const md_field *field = &md_fields[i];
        char first[64] = "", text[64];
        md_columns[i] = (bench_column){field->title, field->width, field->left};
        md_shown[i] = field->always;
        bench_table_widen(&md_columns[i], field->title);
        for (int r = 0; r < plan->n; r++) {
            field->text(&plan->rows[r], text);
            if (r == 0) memcpy(first, text, sizeof first);
            bench_table_widen(&md_columns[i], text);
            md_shown[i] = md_shown[i] || strcmp(first, text) != 0;
        }
    }
    md_head();
}

static void md_row(const bench_plan *plan, const bench_row *row)
{
    static bool after_profile;   // after an interruption the table starts again with its head
    if (after_profile) md_head();
    for (size_t i = 0; i < MD_FIELDS; i++) {
        char text[64];
        md_fields[i].text(row, text);
        if (md_shown[i]) bench_table_cell(&md_columns[i], text);
    }
    bench_table_end_row();
    after_profile = plan->profile;
}

static bool same_machine(const bench_row *a, const bench_row *b)
{
    return a->engine.n_threads == b->engine.n_threads;
}

static void md_end(const bench_plan *plan)
{
    for (int i = 0; i < plan->n; i++) {
        const bench_row *row = &plan->rows[i];
        bool first = row->machine.read_gbps > 0;
        for (int j = 0; j < i; j++) first = first && !same_machine(row, &plan->rows[j]);
        if (!first) continue;
        cli_print("\n%s: reads %.1f GB/s, int8 %.2f TOPS, floats %.2f (measured, %d thread%s)\n", row->machine.cpu_name,
                  row->machine.read_gbps, row->machine.int8_tops, row->machine.float_tops, row->engine.n_threads,
                  row->engine.n_threads == 1 ? "" : "s");
    }
}

// ---------------------------------------------------------------------------------------- every parameter

typedef struct field {
    const char *name;
    char kind;   // 's', 'i' or 'r'
    const char *text;
    long long integer;
    double real;
} field;
enum { MAX_FIELDS = 40 };

typedef struct fields {
    field list[MAX_FIELDS];
    size_t n;
    char test[64], type[64];
} fields;

static void add_text(fields *f, const char *name, const char *text)
{
    f->list[f->n++] = (field){.name = name, .kind = 's', .text = text ? text : ""};
}

static void add_integer(fields *f, const char *name, long long integer)
{
    f->list[f->n++] = (field){.name = name, .kind = 'i', .integer = integer};
}

static void add_real(fields *f, const char *name, double real)
{
    f->list[f->n++] = (field){.name = name, .kind = 'r', .real = real};
}

// Field names are those of similar programs, if they have the field.
static void list_fields(const bench_row *row, fields *f)
{
    const bench_figures r = bench_figures_of(row);
    f->n = 0;
    test_text(row, f->test);
    model_text(row, f->type);
    add_text(f, "test", f->test);
    add_text(f, "build", frit_version());
    add_text(f, "cpu_info", row->machine.cpu_name);
    add_text(f, "backends", row->engine.backend);
    add_text(f, "isa", row->engine.isa);
    add_text(f, "model_filename", row->model->path);
    add_text(f, "model_type", f->type);
    add_integer(f, "model_size", (long long)row->model->n_bytes);
    add_integer(f, "model_n_params", row->model->n_params);
    add_integer(f, "n_threads", row->engine.n_threads);
    add_integer(f, "n_batch", row->test.n_batch);
    add_integer(f, "n_ubatch", row->engine.n_batch);
    add_text(f, "type_k", row->setup.type_k);
    add_text(f, "type_v", row->setup.type_v);
    add_integer(f, "kv_bytes_per_token", (long long)row->engine.kv_token_bytes);
    add_integer(f, "n_prompt", row->test.n_prompt);
    add_integer(f, "n_gen", row->test.n_gen);
    add_integer(f, "n_depth", row->test.n_depth);
    add_integer(f, "n_parallel", row->test.n_parallel);
    add_integer(f, "n_samples", row->n_samples);
    add_integer(f, "avg_ns", (long long)r.mean_ns);
    add_integer(f, "stddev_ns", (long long)r.sd_ns);
    add_real(f, "avg_ts", r.mean_ts);
    add_real(f, "stddev_ts", r.sd_ts);
    add_real(f, "median_ts", r.median_ts);
    add_real(f, "min_ts", r.min_ts);
    add_real(f, "max_ts", r.max_ts);
    add_real(f, "bytes_per_token", row->n_bytes);
    add_real(f, "ops_per_token", row->n_ops);
    add_real(f, "gbps", r.gbps);
    add_real(f, "tops", r.tops);
    add_real(f, "machine_gbps", row->machine.read_gbps);
    add_real(f, "machine_tops", machine_tops(row));
}

static json_t *row_json(const bench_row *row)
{
    fields f;
    list_fields(row, &f);
    json_t *object = json_object(), *ns = json_array(), *ts = json_array();
    for (size_t i = 0; i < f.n; i++) {
        const field *at = &f.list[i];
        json_object_set_new(object, at->name,
                            at->kind == 's'   ? json_string(at->text)
                            : at->kind == 'i' ? json_integer(at->integer)
                                              : json_real(at->real));
    }
    for (int i = 0; i < row->n_samples; i++) {
        json_array_append_new(ns, json_integer((json_int_t)(row->seconds[i] * 1e9)));
        json_array_append_new(ts, json_real((double)bench_test_tokens(&row->test) / row->seconds[i]));
    }
    json_object_set_new(object, "samples_ns", ns);
    json_object_set_new(object, "samples_ts", ts);
    return object;
}

static void dump(const bench_row *row, size_t flags)
{
    json_t *object = row_json(row);
    json_dumpf(object, stdout, flags);
    json_decref(object);
}

// Begins an array whose rows follow one by one.
static void json_begin(const bench_plan *plan)
{
    (void)plan;
    cli_print("[");
}

static void json_row(const bench_plan *plan, const bench_row *row)
{
    cli_print(row == plan->rows ? "\n" : ",\n");
    dump(row, JSON_INDENT(2));
    cli_flush();
}

static void json_end(const bench_plan *plan)
{
    (void)plan;
    cli_print("\n]\n");
}

static void nothing(const bench_plan *plan)
{
    (void)plan;
}

static void jsonl_row(const bench_plan *plan, const bench_row *row)
{
    (void)plan;
    dump(row, JSON_COMPACT);
    cli_print("\n");
    cli_flush();
}

static void print_csv_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void csv_begin(const bench_plan *plan)
{
    fields f;
    list_fields(&plan->rows[0], &f);
    for (size_t i = 0; i < f.n; i++) cli_print("%s%s", i ? "," : "", f.list[i].name);
    cli_print("\n");
}

static void csv_row(const bench_plan *plan, const bench_row *row)
{
    (void)plan;
    fields f;
    list_fields(row, &f);
    for (size_t i = 0; i < f.n; i++) {
        const field *at = &f.list[i];
        if (i > 0) putchar(',');
        if (at->kind == 's') print_csv_text(at->text);
        if (at->kind == 'i') cli_print("%lld", at->integer);
        if (at->kind == 'r') cli_print("%.9g", at->real);
    }
    cli_print("\n");
    cli_flush();
}

const char bench_printer_names[] = "md|json|jsonl|csv";

static const bench_printer printers[] = {
    {"md", md_begin, md_row, md_end},
    {"json", json_begin, json_row, json_end},
    {"jsonl", nothing, jsonl_row, nothing},
    {"csv", csv_begin, csv_row, nothing},
};

const bench_printer *bench_printer_find(const char *name)
{
    size_t i = 0;
    while (i + 1 < CLI_COUNT(printers) && strcmp(printers[i].name, name) != 0) i++;
    return &printers[i];
}

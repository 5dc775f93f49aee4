// SPDX-License-Identifier: MIT
// Prints the results of a measurement. The values, and their names in JSON, are those of vLLM's `bench serve`.
#include "frit/bench/load.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct metric {
    const char *title, *name;   // name: in JSON
    size_t offset;              // of the load_series in load_result
} metric;

static const metric metrics[] = {
    {"time to first token (TTFT)", "ttft", offsetof(load_result, ttft)},
    {"time per output token after the first (TPOT)", "tpot", offsetof(load_result, tpot)},
    {"between tokens (ITL)", "itl", offsetof(load_result, itl)},
    {"end to end (E2EL)", "e2el", offsetof(load_result, e2el)},
    {"TPOT of answers without a grammar", "tpot_free", offsetof(load_result, tpot_of[0])},
    {"TPOT of answers with the grammar", "tpot_structured", offsetof(load_result, tpot_of[1])},
};

// Times of answers by kind are of interest where there are both kinds.
static size_t count_metrics(const load_report *report)
{
    enum { BY_KIND = 2 };
    const double share = report->load->structured;
    return CLI_COUNT(metrics) - (share > 0 && share < 1 ? 0 : BY_KIND);
}

static load_series *series_of(load_result *result, const metric *m)
{
    return (load_series *)((char *)result + m->offset);
}

static double rate_of(const load_result *result, int64_t n)
{
    return result->seconds > 0 ? (double)n / result->seconds : 0;
}

static const char *counted_by(const load_report *report)
{
    const load_result *r = report->result;
    if (strcmp(report->driver->kind, "offline") == 0) return "the engine";
    return r->n_by_events == 0 ? "usage" : r->n_by_usage == 0 ? "events" : "usage and events";
}

// ---------------------------------------------------------------------------------------- tables

enum { MAX_CELLS = 12 };

typedef struct table_row {
    char cells[MAX_CELLS][64];
} table_row;

static void print_table(bench_column *columns, size_t n, table_row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++)
        for (size_t k = 0; k < n; k++) bench_table_widen(&columns[k], rows[i].cells[k]);
    bench_table_head(columns, n);
    for (size_t i = 0; i < n_rows; i++) {
        for (size_t k = 0; k < n; k++) bench_table_cell(&columns[k], rows[i].cells[k]);
        bench_table_end_row();
    }
}

static void print_rates(const load_report *report)
{
    load_result *r = report->result;
    const struct {
        const char *title, *format;
        double value;
    } values[] = {{"done", "%.0f", (double)r->n_done},
                  {"failed", "%.0f", (double)r->n_failed},
                  {"seconds", "%.2f", r->seconds},
                  {"tokens in", "%.0f", (double)r->n_in},
                  {"tokens out", "%.0f", (double)r->n_out},
                  {"most at once", "%.0f", (double)r->most_running},
                  {"requests/s", "%.2f", rate_of(r, r->n_done)},
                  {"output tokens/s", "%.2f", rate_of(r, r->n_out)},
                  {"peak tokens/s", "%.0f", load_result_peak(r)},
                  {"total tokens/s", "%.2f", rate_of(r, r->n_in + r->n_out)}};
    bench_column columns[CLI_COUNT(values)];
    table_row row;
    for (size_t i = 0; i < CLI_COUNT(values); i++) {
        columns[i] = (bench_column){.title = values[i].title};
        snprintf(row.cells[i], sizeof row.cells[i], values[i].format, values[i].value);
    }
    print_table(columns, CLI_COUNT(columns), &row, 1);
}

static void print_times(const load_report *report)
{
    bench_column columns[] = {{.title = "ms", .left = true},
                              {.title = "mean"},
                              {.title = "median"},
                              {.title = "p90"},
                              {.title = "p95"},
                              {.title = "p99"},
                              {.title = "max"}};
    table_row rows[CLI_COUNT(metrics)];
    const size_t n = count_metrics(report);
    for (size_t i = 0; i < n; i++) {
        const load_summary s = load_summarize(series_of(report->result, &metrics[i]));
        const double values[] = {s.mean, s.median, s.p90, s.p95, s.p99, s.max};
        snprintf(rows[i].cells[0], sizeof rows[i].cells[0], "%s", metrics[i].title);
        for (size_t k = 0; k < CLI_COUNT(values); k++)
            snprintf(rows[i].cells[k + 1], sizeof rows[i].cells[k + 1], "%.2f", 1e3 * values[k]);
    }
    print_table(columns, CLI_COUNT(columns), rows, n);
}

static void print_errors(const load_result *result)
{
    bench_column columns[] = {
        {.title = "error", .left = true}, {.title = "requests"}, {.title = "first message", .left = true}};
    if (result->n_errors == 0) return;
    cli_print("\n");
    for (int i = 0; i < result->n_errors; i++) bench_table_widen(&columns[0], result->errors[i].kind);
    bench_table_head(columns, CLI_COUNT(columns));
    for (int i = 0; i < result->n_errors; i++) {
        char n[32];
        snprintf(n, sizeof n, "%lld", (long long)result->errors[i].n);
        bench_table_cell(&columns[0], result->errors[i].kind);
        bench_table_cell(&columns[1], n);
        bench_table_cell(&columns[2], result->errors[i].example);
        bench_table_end_row();
    }
}

static void print_heading(const load_report *report)
{
    const load_case *load = report->load;
    char begin[96] = "all at once", round[48] = "", shared[64] = "", structured[48] = "";
    if (load->rate > 0) snprintf(begin, sizeof begin, "%g each second", load->rate);
    if (load->n_at_once > 0)
        snprintf(begin + (load->rate > 0 ? strlen(begin) : 0), 48, "%s%d at once", load->rate > 0 ? ", " : "",
                 load->n_at_once);
    if (load->n_rounds > 1) snprintf(round, sizeof round, ", round %d of %d", load->round, load->n_rounds);
    if (load->n_shared > 0) snprintf(shared, sizeof shared, " (%d shared)", load->n_shared);
    if (load->structured > 0) snprintf(structured, sizeof structured, ", %g %% with a grammar", 100 * load->structured);
    cli_print("%s, %s: %d requests of %d%s + %d tokens, %s%s, seed %llu%s\n\n", report->driver->name,
              report->driver->kind, load->n_requests, load->n_in, shared, load->n_out, begin, structured,
              (unsigned long long)load->seed, round);
}

static void print_remarks(const load_report *report)
{
    const load_result *r = report->result;
    const char *by = counted_by(report);
    cli_print("\nTokens are counted by %s.", strcmp(by, "usage") == 0    ? "the server's usage fields"
                                             : strcmp(by, "events") == 0 ? "events of the stream"
                                                                         : by);
    if (r->n_cached > 0) cli_print(" %lld tokens of prompts came from a cache.", (long long)r->n_cached);
    if (r->client_cores >= 0) cli_print(" This program used %.2f of a core.", r->client_cores);
    if (r->n_short > 0)
        cli_print(" %lld answers have fewer than %d tokens.", (long long)r->n_short, report->load->n_out);
    if (r->is_stopped)
        cli_print(" Stopped: %d requests had no answer yet.",
                  (int)(report->load->n_requests - r->n_done - r->n_failed));
    cli_print("\n");
}

void load_print_tables(const load_report *report)
{
    print_heading(report);
    print_rates(report);
    cli_print("\n");
    print_times(report);
    print_errors(report->result);
    print_remarks(report);
    cli_flush();
}

static void set_pair(double pair[2], load_series *series)
{
    const load_summary s = load_summarize(series);
    pair[0] = s.median;
    pair[1] = s.p99;
}

load_summary_row load_summary_row_of(const load_report *report)
{
    load_result *r = report->result;
    load_summary_row line = {.n_at_once = report->load->n_at_once,
                             .round = report->load->round,
                             .n_failed = r->n_failed,
                             .requests = rate_of(r, r->n_done),
                             .output = rate_of(r, r->n_out),
                             .total = rate_of(r, r->n_in + r->n_out)};
    set_pair(line.ttft, &r->ttft);
    set_pair(line.tpot, &r->tpot);
    set_pair(line.itl, &r->itl);
    return line;
}

void load_print_summary(const load_summary_row *lines, size_t n)
{
    bench_column columns[] = {{.title = "at once"},         {.title = "round"},
                              {.title = "failed"},          {.title = "requests/s"},
                              {.title = "output tokens/s"}, {.title = "total tokens/s"},
                              {.title = "TTFT median ms"},  {.title = "p99"},
                              {.title = "TPOT median ms"},  {.title = "p99"},
                              {.title = "ITL median ms"},   {.title = "p99"}};
    table_row *rows = calloc(n, sizeof *rows);
    for (size_t i = 0; i < n && rows; i++) {
        const load_summary_row *l = &lines[i];
        const double values[] = {l->requests,      l->output,        l->total,
                                 1e3 * l->ttft[0], 1e3 * l->ttft[1], 1e3 * l->tpot[0],
                                 1e3 * l->tpot[1], 1e3 * l->itl[0],  1e3 * l->itl[1]};
        snprintf(rows[i].cells[0], sizeof rows[i].cells[0], l->n_at_once > 0 ? "%d" : "all", l->n_at_once);
        snprintf(rows[i].cells[1], sizeof rows[i].cells[1], "%d", l->round);
        snprintf(rows[i].cells[2], sizeof rows[i].cells[2], "%lld", (long long)l->n_failed);
        for (size_t k = 0; k < CLI_COUNT(values); k++)
            snprintf(rows[i].cells[k + 3], sizeof rows[i].cells[k + 3], "%.2f", values[k]);
    }
    cli_print("\n");
    if (rows) print_table(columns, CLI_COUNT(columns), rows, n);
    free(rows);
}

// ---------------------------------------------------------------------------------------- JSON

static void set_times(json_t *object, const char *name, const load_summary *s)
{
    const struct {
        const char *statistic;
        double value;
    } values[] = {{"mean", s->mean}, {"median", s->median}, {"std", s->sd}, {"p90", s->p90},
                  {"p95", s->p95},   {"p99", s->p99},       {"max", s->max}};
    for (size_t i = 0; i < CLI_COUNT(values); i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_%s_ms", values[i].statistic, name);
        json_object_set_new(object, key, json_real(1e3 * values[i].value));
    }
}

static json_t *errors_json(const load_result *result)
{
    json_t *errors = json_array();
    for (int i = 0; i < result->n_errors; i++)
        json_array_append_new(errors, json_pack("{s:s, s:I, s:s%}", "kind", result->errors[i].kind, "count",
                                                (json_int_t)result->errors[i].n, "example", result->errors[i].example,
                                                strlen(result->errors[i].example)));
    return errors;
}

static json_t *case_json(const load_report *report)
{
    const load_case *c = report->load;
    return json_pack("{s:s, s:s, s:s, s:I, s:i, s:i, s:i, s:f, s:i, s:i, s:f, s:i, s:i}", "build", frit_version(),
                     "mode", report->driver->kind, "model_id", report->driver->name, "seed", (json_int_t)c->seed,
                     "num_prompts", c->n_requests, "input_len", c->n_in, "output_len", c->n_out,
                     "structured_output_ratio", c->structured, "shared_prefix_len", c->n_shared, "vocab", c->n_vocab,
                     "request_rate", c->rate, "max_concurrency", c->n_at_once, "round", c->round);
}

json_t *load_json(const load_report *report)
{
    load_result *r = report->result;
    json_t *object = case_json(report);
    json_t *counts = json_pack(
        "{s:f, s:I, s:I, s:b, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:i, s:f, s:o}", "duration", r->seconds,
        "completed", (json_int_t)r->n_done, "failed", (json_int_t)r->n_failed, "stopped", r->is_stopped,
        "total_input_tokens", (json_int_t)r->n_in, "total_output_tokens", (json_int_t)r->n_out, "cached_tokens",
        (json_int_t)r->n_cached, "short_answers", (json_int_t)r->n_short, "tokens_counted_by", counted_by(report),
        "request_throughput", rate_of(r, r->n_done), "output_throughput", rate_of(r, r->n_out),
        "total_token_throughput", rate_of(r, r->n_in + r->n_out), "max_output_tokens_per_s", load_result_peak(r),
        "max_concurrent_requests", r->most_running, "client_cores", r->client_cores, "errors", errors_json(r));
    if (!object || !counts || json_object_update(object, counts) != 0) {
        json_decref(object);
        json_decref(counts);
        return NULL;
    }
    json_decref(counts);
    for (size_t i = 0; i < count_metrics(report); i++) {
        const load_summary s = load_summarize(series_of(r, &metrics[i]));
        set_times(object, metrics[i].name, &s);
    }
    return object;
}

// SPDX-License-Identifier: MIT
// Prints the times of one step by op, as a table sorted by time.
#include "frit/bench/bench.h"

#include <stdlib.h>
#include <string.h>

static double row_seconds(const frit_profile_row *row)
{
    return row->run_s + row->wait_s;
}

static int longer_first(const void *a, const void *b)
{
    double x = row_seconds(a), y = row_seconds(b);
    return (x < y) - (x > y);
}

static bench_column columns[] = {
    {"op", 13, true},    {"type", 6, true},         {"calls", 5, false}, {"ms", 9, false},
    {"share", 7, false}, {"waiting ms", 10, false}, {"GB/s", 6, false},  {"Gop/s", 7, false},
};

// Prints an empty cell if there is no figure: an op that reads no weights has no GB/s.
static void print_rate(const bench_column *column, double amount, double seconds)
{
    char text[32] = "";
    if (amount > 0 && seconds > 0) snprintf(text, sizeof text, "%.1f", amount * 1e-9 / seconds);
    bench_table_cell(column, text);
}

static void print_row(const frit_profile_row *row, int64_t n_steps, double total)
{
    char text[32];
    const double ms = 1e3 / (double)n_steps;
    bench_table_cell(&columns[0], row->op);
    bench_table_cell(&columns[1], row->type);
    snprintf(text, sizeof text, "%.0f", (double)row->n_calls / (double)n_steps);
    bench_table_cell(&columns[2], row->n_calls > 0 ? text : "");
    snprintf(text, sizeof text, "%.3f", row->run_s * ms);
    bench_table_cell(&columns[3], text);
    snprintf(text, sizeof text, "%.1f %%", 100 * row_seconds(row) / total);
    bench_table_cell(&columns[4], text);
    snprintf(text, sizeof text, "%.3f", row->wait_s * ms);
    bench_table_cell(&columns[5], text);
    print_rate(&columns[6], row->n_bytes, row->run_s);
    print_rate(&columns[7], row->n_ops, row->run_s);
    bench_table_end_row();
}

void bench_profile_print(const bench_run *run, const bench_row *row, int64_t n_steps, double seconds)
{
    frit_profile_row sum = {.op = "all", .type = ""};
    for (size_t i = 0; i < run->n_profile; i++) {
        sum.run_s += run->profile[i].run_s;
        sum.wait_s += run->profile[i].wait_s;
        sum.n_bytes += run->profile[i].n_bytes;
        sum.n_ops += run->profile[i].n_ops;
    }
    // The rest of the time is scheduling, handing out logits and the loop of this command.
    frit_profile_row rest = {.op = "between steps", .type = "", .run_s = seconds - row_seconds(&sum)};
    qsort(run->profile, run->n_profile, sizeof *run->profile, longer_first);
    char name[64];
    bench_test_name(&row->test, name);
    const double n_rows = (double)bench_test_tokens(&row->test) / (double)n_steps;
    cli_print("\n%s: a step of %.0f row%s takes %.3f ms (mean of %lld steps, %d threads)\n\n", name, n_rows,
              n_rows == 1 ? "" : "s", 1e3 * seconds / (double)n_steps, (long long)n_steps, row->engine.n_threads);
    bench_table_head(columns, CLI_COUNT(columns));
    for (size_t i = 0; i < run->n_profile; i++) print_row(&run->profile[i], n_steps, seconds);
    print_row(&rest, n_steps, seconds);
    sum.run_s += rest.run_s;
    print_row(&sum, n_steps, seconds);
    cli_print("\n");
}

// SPDX-License-Identifier: MIT
// frit/bench/load.h: workloads: many requests, answered by an engine in this process or by a server.
//
//     load.c            options, and one measurement after another
//     load_plan.c       when each request begins, and the tokens of its prompt
//     load_offline.c    answers by an engine
//     load_http.c       answers by a server (load_no_curl.c: in builds without libcurl)
//     load_body.c       bodies of requests to a server
//     load_event.c      events of a server's stream
//     load_result.c     times, counts and percentiles
//     load_print.c      tables and JSON
#pragma once
#include "frit/bench/bench.h"

// ---------------------------------------------------------------------------------------- requests

// One measurement: requests with equally long prompts and answers.
typedef struct load_case {
    int32_t n_requests, n_in, n_out;
    int32_t n_shared;          // equal tokens at the beginning of all prompts
    int32_t n_vocab;           // prompts have token ids below this one
    int32_t n_at_once;         // requests in flight at most; 0: no limit
    double structured;         // share of requests whose answers have the grammar
    double rate;               // requests per second, a Poisson process; 0: all requests begin at once
    uint64_t seed, first;      // the first request's number in the sequence of all requests of the seed
    int32_t round, n_rounds;   // from 1 on; 0: warm-up
    double *arrivals;          // [n_requests], seconds after the start
} load_case;

// Allocates arrivals. False: out of memory.
bool load_case_init(load_case *load);
void load_case_deinit(load_case *load);
// Writes the tokens of the i-th prompt [n_in]: a function of seed and number alone.
void load_case_prompt(const load_case *load, int32_t i, frit_token *tokens);
// True if the i-th answer has the grammar. Requests of both kinds alternate as evenly as their shares allow.
bool load_case_is_structured(const load_case *load, int32_t i);

// The requests of a measurement that have not begun.
typedef struct load_queue {
    const load_case *load;
    int32_t next, n_running, n_ended;
} load_queue;

// True if the next request may begin at this time, in seconds after the start.
bool load_queue_is_due(const load_queue *queue, double now);
// Seconds until the next request arrives; `most` if that takes longer, or if it waits for the end of another one.
double load_queue_wait(const load_queue *queue, double now, double most);

// ---------------------------------------------------------------------------------------- results

typedef struct load_series {
    double *items;
    size_t n, capacity;
} load_series;
bool load_series_add(load_series *series, double value);   // false: out of memory

typedef struct load_summary {
    double mean, sd, median, p90, p95, p99, max;   // sd: of the population
} load_summary;
// The percentile q (0 to 100) of sorted values, by linear interpolation between the two nearest ones.
double load_percentile(const double *sorted, size_t n, double q);
load_summary load_summarize(load_series *series);   // sorts it; zeros for an empty one

// The answer to one request. Times are seconds after the start of the measurement.
typedef struct load_answer {
    double sent, first, last;   // first: of the first token
    load_series gaps;           // between tokens, or between events that have several
    bool is_structured;
    int64_t n_events;
    int64_t n_in, n_out, n_cached;   // as the server counts tokens; -1: it does not say
} load_answer;
void load_answer_begin(load_answer *answer, double now);
bool load_answer_note(load_answer *answer, double now);   // a token came; false: out of memory
void load_answer_free(load_answer *answer);

enum { LOAD_MAX_ERRORS = 16 };
typedef struct load_error {
    char kind[48], example[240];
    int64_t n;
} load_error;

typedef struct load_result {
    load_series ttft, tpot, itl, e2el;   // seconds, of requests that were answered
    load_series tpot_of[2];              // tpot of answers without and with a grammar
    load_series events, n_arrived;       // when tokens came, and how many
    int64_t n_done, n_failed, n_in, n_out, n_cached;
    int64_t n_short;       // answers with fewer tokens than asked for
    int64_t n_by_usage;    // answers whose tokens the server counted (`usage`)
    int64_t n_by_events;   // answers whose tokens were counted as events of the stream
    int32_t most_running;
    double seconds, client_cores;   // client_cores: processor time of this process in each second; < 0: unknown
    load_error errors[LOAD_MAX_ERRORS];
    int n_errors;
    bool is_stopped;   // by a signal
} load_result;
// Adds an answer that has ended. False: out of memory.
bool load_result_add(load_result *result, const load_case *load, const load_answer *answer);
// Counts a request that failed. Further kinds than LOAD_MAX_ERRORS are counted as the last one.
void load_result_fail(load_result *result, const char *kind, const char *example);
double load_result_peak(load_result *result);   // the most tokens within a second
void load_result_free(load_result *result);

// ---------------------------------------------------------------------------------------- drivers

typedef struct load_driver {
    void *ctx;
    // Runs all requests of the measurement. Returns an exit code after printing any error; if it is CLI_INTERRUPTED,
    // the result has what was measured.
    int (*run)(void *ctx, const load_case *load, load_result *result, cli_progress *progress);
    void (*close)(void *ctx);
    const char *kind;   // "offline", "served"
    char name[160];     // of the model
    int32_t n_vocab;    // 0: unknown
    char what[400];     // what answers, and how it is asked
    bool has_grammar;   // of the answers
} load_driver;

// Return an exit code after printing any error. n_lanes: sessions of the engine.
int load_open_offline(load_driver *driver, const bench_args *args, int32_t n_lanes);
int load_open_server(load_driver *driver, const bench_args *args);

// ---------------------------------------------------------------------------------------- requests to a server

enum { LOAD_WORDS = 64 };   // prompts of text have this many different words
// The fields that all requests share, as JSON without the last brace, malloc'd. `more` (NULL: none) is a JSON object
// that changes them. Returns an exit code after printing any error.
int load_body_fields(char **fields, const char *model, const char *more);
// Adds the field that asks for answers with a grammar, as `option` (--json-schema, ...) says, and `text` is its text.
int load_body_add_grammar(char **out, const char *fields, const char *option, const char *text);
size_t load_body_size(const char *fields, const load_case *load);   // bytes of a body at most
// Writes the body of the i-th request, and returns its size. `tokens` [n_in] is scratch. A prompt of text is for a case
// whose n_vocab is LOAD_WORDS.
size_t load_body_write(char *out, const char *fields, const load_case *load, int32_t i, bool is_text,
                       frit_token *tokens);

// ---------------------------------------------------------------------------------------- streams of a server

// One event of a stream of /v1/completions or /v1/chat/completions.
typedef struct load_event {
    bool has_choice, has_text, is_end, is_error;   // is_end: it has a reason why the answer ends
    int64_t n_in, n_out, n_cached;                 // -1: it does not say
    const char *message;                           // of an error: within the event, escapes as they are; or NULL
    size_t n_message;
} load_event;
// Reads what a measurement needs, without building the event's values. False: it is not JSON.
bool load_event_read(load_event *event, const char *text, size_t n);

enum { LOAD_MAX_LINE = 1 << 20 };
typedef enum load_feed { LOAD_FEED_OK, LOAD_FEED_STOPPED, LOAD_FEED_TOO_LONG, LOAD_FEED_NO_MEMORY } load_feed;
typedef struct load_line_reader {   // the line that has not come wholly
    char *bytes;
    size_t n, capacity;
} load_line_reader;
// Called with what follows "data:" in a line; false: stop.
typedef bool (*load_data_fn)(void *ctx, const char *data, size_t n);
load_feed load_line_reader_feed(load_line_reader *lines, const char *bytes, size_t n, load_data_fn data, void *ctx);
void load_line_reader_free(load_line_reader *lines);

// ---------------------------------------------------------------------------------------- printing

typedef struct load_report {
    const load_driver *driver;
    const load_case *load;
    load_result *result;
} load_report;
void load_print_tables(const load_report *report);

// The row of a measurement in the table of all measurements.
typedef struct load_summary_row {
    int32_t n_at_once, round;
    int64_t n_failed;
    double requests, output, total;    // per second
    double ttft[2], tpot[2], itl[2];   // median and 99th percentile, in seconds
} load_summary_row;
load_summary_row load_summary_row_of(const load_report *report);
void load_print_summary(const load_summary_row *lines, size_t n);
struct json_t *load_json(const load_report *report);   // NULL: out of memory

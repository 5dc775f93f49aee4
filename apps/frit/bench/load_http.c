// SPDX-License-Identifier: MIT
// Requests that a server answers, by streams of /v1/completions. One thread drives all streams, and takes the time of
// each event when its bytes have been read.
#include "frit/bench/load.h"

#include "common/grow.h"

#include "hub/curl.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_BODY = 1 << 16 };   // bytes of a reply that is no stream

typedef struct client client;

typedef struct served {
    const bench_args *args;
    CURLM *multi;
    struct curl_slist *headers;
    char *base;          // address of the server, without "/v1"
    char *completions;   // the route
    char *fields;        // of each request, but for the prompt: "{...": without the last brace
    char *structured;    // of requests whose answers have the grammar; NULL: no answer has one
    client **clients;
    int32_t n_clients;
    // The measurement that runs:
    const load_case *load;
    load_result *result;
    load_queue queue;
    frit_token *prompt;
    uint64_t start_ns;
    double looked;   // when silent streams were looked for
    bool is_out_of_memory;
} served;

struct client {   // a connection, and the request that it has
    served *s;
    CURL *curl;
    char *body;
    size_t body_size;
    cli_text reply;   // if it is no stream
    load_line_reader lines;
    load_answer answer;
    long status;    // of HTTP; 0: not known yet
    double heard;   // when bytes came last
    bool is_busy, has_ended;
    char detail[CURL_ERROR_SIZE];   // libcurl's sentence about a failure
    char kind[48], example[240];    // the error; "": none
};

static double now_of(const served *s)
{
    return (double)(cli_now_ns() - s->start_ns) * 1e-9;
}

// ---------------------------------------------------------------------------------------- events

static bool fail(client *c, const char *kind, const char *example, size_t n)
{
    if (c->kind[0]) return false;
    snprintf(c->kind, sizeof c->kind, "%s", kind);
    snprintf(c->example, sizeof c->example, "%.*s", (int)(n < sizeof c->example ? n : sizeof c->example - 1), example);
    for (char *at = c->example; *at; at++)
        if ((unsigned char)*at < 32 || *at == '|') *at = ' ';   // it is shown in a table
    return false;
}

static void set_count(int64_t *count, int64_t value)
{
    if (value >= 0) *count = value;
}

static bool take_data(void *ctx, const char *data, size_t n)
{
    client *c = ctx;
    load_event event;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        c->has_ended = true;
        return true;
    }
    if (!load_event_read(&event, data, n)) return fail(c, "event is not JSON", data, n);
    if (event.is_error)
        return fail(c, "error in the stream", event.message ? event.message : data,
                    event.message ? event.n_message : n);
    set_count(&c->answer.n_in, event.n_in);
    set_count(&c->answer.n_out, event.n_out);
    set_count(&c->answer.n_cached, event.n_cached);
    if (!event.has_choice) return true;
    const double now = now_of(c->s);
    if (event.has_text || !event.is_end) c->s->is_out_of_memory |= !load_answer_note(&c->answer, now);
    c->answer.last = now;
    c->has_ended = c->has_ended || event.is_end;
    return true;
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    client *c = ctx;
    const size_t n_bytes = size * n;
    c->heard = now_of(c->s);
    if (c->status == 0) curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &c->status);
    if (c->status != 200) {
        if (c->reply.n + n_bytes <= MAX_BODY) cli_text_add(&c->reply, bytes, n_bytes);
        return n_bytes;
    }
    const load_feed fed = load_line_reader_feed(&c->lines, bytes, n_bytes, take_data, c);
    if (fed == LOAD_FEED_NO_MEMORY) c->s->is_out_of_memory = true;
    if (fed == LOAD_FEED_TOO_LONG) fail(c, "event is too long", "a line has more than 1 MiB", 64);
    return fed == LOAD_FEED_OK ? n_bytes : 0;
}

static size_t take_header(char *line, size_t size, size_t n, void *ctx)
{
    (void)line, (void)ctx;
    return size * n;
}

// ---------------------------------------------------------------------------------------- requests

static bool write_body(client *c, int32_t i)
{
    const served *s = c->s;
    c->answer.is_structured = load_case_is_structured(s->load, i);
    const char *fields = c->answer.is_structured ? s->structured : s->fields;
    const size_t size = load_body_size(fields, s->load);
    if (!APP_GROW(c->body, c->body_size, size)) return false;
    const size_t n = load_body_write(c->body, fields, s->load, i, s->args->load.text, s->prompt);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, (long)n);
    return true;
}

static CURL *new_handle(const served *s)
{
    CURL *curl = hub_curl_new();
    if (!curl) return NULL;
    const char *host = strstr(s->base, "://") + 3;
    const bool is_near = strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 || host[0] == '[';
    if (is_near) curl_easy_setopt(curl, CURLOPT_PROXY, "");   // whatever the environment says
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 0L);   // requests may wait long; end_silent has the limit
    return curl;
}

static client *new_client(served *s)
{
    client **grown = realloc(s->clients, (size_t)(s->n_clients + 1) * sizeof *grown);
    if (grown) s->clients = grown;
    client *c = grown ? calloc(1, sizeof *c) : NULL;
    if (!c) return NULL;
    s->clients[s->n_clients++] = c;
    c->s = s;
    c->curl = new_handle(s);
    if (!c->curl) return NULL;
    curl_easy_setopt(c->curl, CURLOPT_URL, s->completions);
    curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->detail);
    curl_easy_setopt(c->curl, CURLOPT_PRIVATE, c);
    return c;
}

static client *find_idle(served *s)
{
    for (int32_t i = 0; i < s->n_clients; i++)
        if (!s->clients[i]->is_busy) return s->clients[i];
    return new_client(s);
}

static bool begin(served *s)
{
    client *c = find_idle(s);
    if (!c || !c->curl || !write_body(c, s->queue.next++)) return false;
    c->status = 0;
    c->has_ended = false;
    c->kind[0] = c->detail[0] = 0;
    c->lines.n = c->reply.n = 0;
    c->heard = now_of(s);
    load_answer_begin(&c->answer, c->heard);
    if (curl_multi_add_handle(s->multi, c->curl) != CURLM_OK) return false;
    c->is_busy = true;
    if (++s->queue.n_running > s->result->most_running) s->result->most_running = s->queue.n_running;
    return true;
}

// ---------------------------------------------------------------------------------------- ends

// The sentence of a refusal, or its first characters.
static void fail_refused(client *c)
{
    load_event event;
    char kind[32];
    const char *text = c->reply.data ? c->reply.data : "";
    snprintf(kind, sizeof kind, "HTTP %ld", c->status);
    if (load_event_read(&event, text, c->reply.n) && event.message)
        fail(c, kind, event.message, event.n_message);
    else
        fail(c, kind, text, c->reply.n);
}

static void judge(client *c, CURLcode code)
{
    const char *why = c->detail[0] ? c->detail : curl_easy_strerror(code);
    const bool is_unreached =
        code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY;
    if (c->kind[0]) return;
    if (is_unreached)
        fail(c, "no connection", why, strlen(why));
    else if (code != CURLE_OK)
        fail(c, "connection lost", why, strlen(why));
    else if (c->status != 200)
        fail_refused(c);
    else if (!c->has_ended)
        fail(c, "stream ended early", c->answer.n_events > 0 ? "after some tokens" : "without a token", 64);
    else if (c->answer.n_events == 0 && c->answer.n_out <= 0)
        fail(c, "no tokens", "the answer is empty", 64);
}

static void finish(served *s, client *c, CURLcode code)
{
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &c->status);
    curl_multi_remove_handle(s->multi, c->curl);
    c->is_busy = false;
    s->queue.n_running--;
    s->queue.n_ended++;
    judge(c, code);
    if (c->kind[0])
        load_result_fail(s->result, c->kind, c->example);
    else
        s->is_out_of_memory |= !load_result_add(s->result, s->load, &c->answer);
}

static void finish_ended(served *s)
{
    int n_left;
    for (CURLMsg *message; (message = curl_multi_info_read(s->multi, &n_left));) {
        char *c = NULL;
        if (message->msg != CURLMSG_DONE) continue;
        const CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &c);
        finish(s, (client *)(void *)c, code);
    }
}

static void end_silent(served *s)
{
    const double now = now_of(s);
    char example[64];
    if (now - s->looked < 0.1) return;
    s->looked = now;
    snprintf(example, sizeof example, "nothing came for %d s", s->args->load.silence_s);
    for (int32_t i = 0; i < s->n_clients; i++) {
        client *c = s->clients[i];
        if (!c->is_busy || now - c->heard < s->args->load.silence_s) continue;
        fail(c, "silent for too long", example, sizeof example);
        finish(s, c, CURLE_OK);
    }
}

// ---------------------------------------------------------------------------------------- a measurement

static int run_streams(served *s, cli_progress *progress)
{
    enum { BEGIN_TOGETHER = 4 };   // requests that begin before libcurl sends them: their times begin with them
    while (s->queue.n_ended < s->load->n_requests) {
        for (int i = 0; i < BEGIN_TOGETHER && load_queue_is_due(&s->queue, now_of(s)); i++)
            if (!begin(s)) return cli_no_memory();
        int n_running;
        if (curl_multi_perform(s->multi, &n_running) != CURLM_OK) return cli_fail("bench: libcurl failed");
        finish_ended(s);
        end_silent(s);
        if (s->is_out_of_memory) return cli_no_memory();
        if (cli_should_stop() || !cli_progress_step(progress, (double)s->queue.n_ended / s->load->n_requests))
            return CLI_INTERRUPTED;
        if (s->queue.n_ended == s->load->n_requests || load_queue_is_due(&s->queue, now_of(s))) continue;
        curl_multi_poll(s->multi, NULL, 0, (int)(1e3 * load_queue_wait(&s->queue, now_of(s), 0.1)), NULL);
    }
    return CLI_DONE;
}

static void leave_streams(served *s)
{
    for (int32_t i = 0; i < s->n_clients; i++) {
        if (s->clients[i]->is_busy) curl_multi_remove_handle(s->multi, s->clients[i]->curl);
        s->clients[i]->is_busy = false;
    }
}

// Processor time of this process, in seconds; negative where clock() counts something else.
static double processor_time(void)
{
#ifdef _WIN32
    return -1;
#else
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static int run(void *ctx, const load_case *load, load_result *result, cli_progress *progress)
{
    served *s = ctx;
    s->load = load;
    s->result = result;
    s->queue = (load_queue){.load = load};
    s->looked = 0;
    s->prompt = malloc((size_t)load->n_in * sizeof *s->prompt);
    const double used = processor_time();
    s->start_ns = cli_now_ns();
    const int code = s->prompt ? run_streams(s, progress) : cli_no_memory();
    result->seconds = now_of(s);
    result->client_cores = used < 0 ? -1 : (processor_time() - used) / result->seconds;
    result->is_stopped = code == CLI_INTERRUPTED;
    leave_streams(s);
    free(s->prompt);
    return code;
}

// ---------------------------------------------------------------------------------------- opening

static void close_served(void *ctx)
{
    served *s = ctx;
    for (int32_t i = 0; i < s->n_clients; i++) {
        client *c = s->clients[i];
        curl_easy_cleanup(c->curl);
        free(c->body);
        free(c->reply.data);
        load_line_reader_free(&c->lines);
        load_answer_free(&c->answer);
        free(c);
    }
    if (s->multi) curl_multi_cleanup(s->multi);
    curl_slist_free_all(s->headers);
    free(s->clients);
    free(s->base);
    free(s->completions);
    free(s->fields);
    free(s->structured);
    free(s);
}

static bool add_header(served *s, const char *name, const char *value)
{
    cli_text line = {0};
    cli_text_print(&line, "%s%s", name, value);
    struct curl_slist *headers = curl_slist_append(s->headers, line.data);
    free(line.data);
    if (headers) s->headers = headers;
    return headers != NULL;
}

static int set_address(served *s, const char *url)
{
    cli_text text = {0};
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return cli_usage("bench: --url: '%s' is no address of a server like http://127.0.0.1:8080", url);
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/') n--;
    if (n > 3 && memcmp(url + n - 3, "/v1", 3) == 0) n -= 3;
    cli_text_print(&text, "%.*s", (int)n, url);
    s->base = text.data;
    text = (cli_text){0};
    cli_text_print(&text, "%s/v1/completions", s->base);
    s->completions = text.data;
    bool good = add_header(s, "Content-Type: ", "application/json") && add_header(s, "Expect:", "");
    if (good && s->args->load.api_key) good = add_header(s, "Authorization: Bearer ", s->args->load.api_key);
    return good ? CLI_DONE : cli_no_memory();
}

static size_t take_reply(char *bytes, size_t size, size_t n, void *ctx)
{
    cli_text *reply = ctx;
    if (reply->n + size * n > 16 * MAX_BODY) return 0;
    cli_text_add(reply, bytes, size * n);
    return size * n;
}

// Reads the list of models: the first one's name, and the size of its vocabulary where the server says it. Servers
// without such a list are asked all the same if the model is named.
static int ask_models(served *s, load_driver *driver)
{
    cli_text url = {0}, reply = {0};
    long status = 0;
    CURL *curl = new_handle(s);
    if (!curl) return cli_no_memory();
    cli_text_print(&url, "%s/v1/models", s->base);
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_reply);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply);
    const CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    json_t *list = status == 200 ? json_loadb(reply.data ? reply.data : "", reply.n, 0, NULL) : NULL, *item,
           *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(list, "data"), i, item)
    {
        const char *id = json_string_value(json_object_get(item, "id"));
        if (id && !found && (!driver->name[0] || strcmp(id, driver->name) == 0)) found = item;
    }
    const char *id = json_string_value(json_object_get(found, "id"));
    if (id) snprintf(driver->name, sizeof driver->name, "%s", id);
    const json_int_t n_vocab = json_integer_value(json_object_get(json_object_get(found, "meta"), "n_vocab"));
    if (n_vocab > 0 && n_vocab < INT32_MAX) driver->n_vocab = (int32_t)n_vocab;
    int result = CLI_DONE;
    if (code != CURLE_OK)
        result = cli_fail("bench: %s: %s", s->base, curl_easy_strerror(code));
    else if (!driver->name[0])
        result = cli_fail("bench: %s/v1/models names no model (HTTP %ld); --model names it", s->base, status);
    json_decref(list);
    curl_easy_cleanup(curl);
    free(url.data);
    free(reply.data);
    return result;
}

static int add_grammar(served *s, load_driver *driver)
{
    cli_text text;
    const char *option;
    int code = cli_read_grammar(&text, &option, &s->args->grammar);
    if (code == CLI_DONE && option)
        code = load_body_add_grammar(&s->structured, s->fields, option, text.data ? text.data : "");
    driver->has_grammar = s->structured != NULL;
    free(text.data);
    return code;
}

int load_open_server(load_driver *driver, const bench_args *args)
{
    *driver = (load_driver){.run = run, .close = close_served, .kind = "served"};
    if (hub_curl_ready() != HUB_OK) return cli_fail("bench: --url needs libcurl, which is not installed here");
    served *s = calloc(1, sizeof *s);
    if (!s) return cli_no_memory();
    driver->ctx = s;
    s->args = args;
    int code = set_address(s, args->load.url);
    if (cli_is_typed(&args->common, "model")) snprintf(driver->name, sizeof driver->name, "%s", args->common.model);
    if (code == CLI_DONE) code = ask_models(s, driver);
    if (code == CLI_DONE) code = load_body_fields(&s->fields, driver->name, args->load.body);
    if (code == CLI_DONE) code = add_grammar(s, driver);
    if (args->load.text) driver->n_vocab = LOAD_WORDS;
    s->multi = code == CLI_DONE ? curl_multi_init() : NULL;
    if (code == CLI_DONE && !s->multi) code = cli_no_memory();
    if (code == CLI_DONE)
        snprintf(driver->what, sizeof driver->what, "POST %.150s %.200s, \"max_tokens\": %d, \"prompt\": [%d %s]}",
                 s->completions, s->structured ? s->structured : s->fields, args->load.n_out, args->load.n_in,
                 args->load.text ? "words" : "token ids");
    return code;
}

// SPDX-License-Identifier: MIT
// POST /slots/ID?action=save|restore|erase of llama.cpp's server: writes the text and the cache of a session to a file,
// reads them, or clears the session.
//
// With --slot-save-path a session keeps its text after the answer. An action is a job of the engine thread for one
// session and needs no step. A file gets its name when it is complete (frit_session_save). A restored text is not in
// the prefix cache; the session itself serves the next request that begins with this text (server_slots_best). The
// session's note is the salt of the caller that owns the text: other callers can neither restore nor replace it, in the
// slot or in the file. Links in the folder are refused.
#include "server/api/handlers.h"

#include "frit_tools.h"

#include "server/ops/clock.h"
#include "server/api/json_reply.h"
#include "server/request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAME = 128 };

typedef struct slot_action slot_action;

typedef struct change {   // the job's ctx
    const slot_action *action;
    char *path;         // owned; NULL for erase
    char *name;         // owned
    const char *salt;   // borrowed from the job
    server_problem problem;
    size_t n_tokens, n_bytes;
    double seconds;
} change;

struct slot_action {
    const char *name, *n_tokens, *n_bytes, *time;   // members of the reply
    bool has_file;
    frit_status (*run)(change *c, server_slot *slot);
};

static size_t size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

static const char *salt_of(const change *c)
{
    return c->salt ? c->salt : "";
}

// ---------------------------------------------------------------------------------------- on the engine thread

// Refuses an action on the text of another caller.
static bool check_owner(change *c, const server_slot *slot)
{
    return frit_session_length(slot->session) == 0 || strcmp(server_slot_salt(slot), salt_of(c)) == 0 ||
           server_refuse(&c->problem, 403, "slot_of_another_key", NULL,
                         "the slot has the text of a request with another key or cache_salt");
}

static bool refuse_file_owner(change *c)
{
    return server_refuse(&c->problem, 403, "slot_of_another_key", "filename",
                         "filename: '%s' has the text of a request with another key or cache_salt", c->name);
}

// Refuses a file of another caller, and what is not a regular file. Sets *is_there to true if the file exists.
static bool check_file(change *c, bool *is_there)
{
    enum { MOST = 8192 };   // the most bytes of a salt, from a key and a request
    struct stat info;
    char note[MOST];
    size_t n;
    *is_there = lstat(c->path, &info) == 0;
    if (!*is_there) return true;
    if (!S_ISREG(info.st_mode))
        return server_refuse(&c->problem, 400, "invalid_value", "filename",
                             "filename: '%s' is a link, a folder or a device; expected a file", c->name);
    const frit_status status = frit_session_file_note(c->path, note, MOST, &n);
    if (status == FRIT_OK && n == strlen(salt_of(c)) && memcmp(note, salt_of(c), n) == 0) return true;
    if (status == FRIT_OK || status == FRIT_E_LIMIT) return refuse_file_owner(c);
    return !salt_of(c)[0] ||   // a server without keys
           server_refuse(&c->problem, 400, "invalid_value", "filename",
                         "filename: '%s' is not a slot that this version has saved", c->name);
}

// Refuses a file with the library's error. Its path is replaced by the name that clients use.
static bool refuse_file(change *c, int http_status)
{
    const char *why = frit_error(), *end = strrchr(why, '/'), *colon = end ? strstr(end, ": ") : NULL;
    return server_refuse(&c->problem, http_status, http_status < 500 ? "invalid_value" : NULL, "filename",
                         "filename: '%s'%s", c->name, colon ? colon : ": cannot be read or written");
}

static frit_status save_slot(change *c, server_slot *slot)
{
    c->n_tokens = frit_session_length(slot->session);
    if (c->n_tokens == 0) {
        server_refuse(&c->problem, 400, "slot_empty", NULL,
                      "the slot has no text: a request that ran in it leaves one");
        return FRIT_OK;
    }
    bool is_there;
    if (!check_owner(c, slot) || !check_file(c, &is_there)) return FRIT_OK;
    frit_status status = frit_session_set_note(slot->session, salt_of(c), strlen(salt_of(c)));
    if (status != FRIT_OK) return status;
    status = frit_session_save(slot->session, c->path);
    if (status == FRIT_E_IO) return refuse_file(c, 500), FRIT_OK;
    c->n_bytes = size_of(c->path);
    return status;
}

// Restores a file, which may be damaged, too long, or from another model or caller.
static frit_status restore_slot(change *c, server_slot *slot)
{
    size_t n_note;
    bool is_there;
    if (!check_owner(c, slot) || !check_file(c, &is_there)) return FRIT_OK;
    if (!is_there)
        return server_refuse(&c->problem, 404, "not_found", "filename", "there is no file '%s'", c->name), FRIT_OK;
    frit_status status = frit_session_load(slot->session, c->path);   // leaves the slot unchanged if it fails
    if (status == FRIT_E_MEMORY) return status;
    if (status != FRIT_OK && frit_session_length(slot->session) == 0) server_slot_clear(slot);
    if (status != FRIT_OK) return refuse_file(c, status == FRIT_E_IO ? 500 : 400), FRIT_OK;
    const char *note = frit_session_note(slot->session, &n_note);
    if (n_note != strlen(salt_of(c)) || memcmp(note, salt_of(c), n_note) != 0) {   // replaced since check_file
        refuse_file_owner(c);
        return server_slot_clear(slot);
    }
    c->n_tokens = frit_session_length(slot->session);
    c->n_bytes = size_of(c->path);
    return server_slot_mark_restored(slot, salt_of(c));
}

static frit_status erase_slot(change *c, server_slot *slot)
{
    if (!check_owner(c, slot)) return FRIT_OK;
    c->n_tokens = frit_session_length(slot->session);
    return server_slot_clear(slot);
}

static const slot_action actions[] = {{"save", "n_saved", "n_written", "save_ms", true, save_slot},
                                      {"restore", "n_restored", "n_read", "restore_ms", true, restore_slot},
                                      {"erase", "n_erased", NULL, NULL, false, erase_slot}};

static frit_status run_action(server_job *job, frit_engine *engine, bool *ended)
{
    change *c = job->reply.ctx;
    const double begun = server_now();
    (void)engine;
    const frit_status status = c->action->run(c, job->slot);
    c->seconds = server_now() - begun;
    *ended = status == FRIT_OK;
    return status;
}

static void put_reply(server_job *job, server_finish how)
{
    const change *c = job->reply.ctx;
    (void)how;
    if (c->problem.status) {
        job->reply.problem = c->problem;
        return;
    }
    json_t *json = json_pack("{s:i, s:I}", "id_slot", (int)job->request.wanted_slot - 1, c->action->n_tokens,
                             (json_int_t)c->n_tokens);
    if (c->action->has_file) {
        json_object_set_new(json, "filename", json_string(c->name));
        json_object_set_new(json, c->action->n_bytes, json_integer((json_int_t)c->n_bytes));
        json_object_set_new(json, "timings", json_pack("{s:f}", c->action->time, 1e3 * c->seconds));
    }
    server_json_reply_put(job, json);
}

static const server_reply_writer writer = {
    .text = server_json_reply_text, .finish = put_reply, .fail = server_json_reply_fail};

// ---------------------------------------------------------------------------------------- the request

static void free_change(void *ctx)
{
    change *c = ctx;
    free(c->path);
    free(c->name);
    free(c);
}

// Refuses names outside of the folder, and names of files that are being written.
static bool check_name(const char *name, server_problem *problem)
{
    const size_t n = strlen(name);
    bool good = n > 0 && n <= MAX_NAME && name[0] != '.';
    for (size_t i = 0; i < n && good; i++) good = (unsigned char)name[i] >= ' ' && !strchr("/\\\x7f", name[i]);
    if (good && n >= 4 && strcmp(name + n - 4, ".tmp") == 0) good = false;
    return good || server_refuse(problem, 400, "invalid_value", "filename",
                                 "filename: '%.140s' is not a name of 1 to %d bytes that begins without '.', ends "
                                 "without '.tmp' and has no '/', '\\' or control characters",
                                 name, MAX_NAME);
}

static const slot_action *find_action(server_exchange *exchange)
{
    const char *name = exchange->query ? exchange->query(exchange, "action") : NULL;
    for (size_t i = 0; name && i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, name) == 0) return &actions[i];
    server_refuse(&exchange->problem, 400, "invalid_value", "action",
                  "action: '%.40s', expected save, restore or erase", name ? name : "");
    return NULL;
}

static bool find_slot(server_exchange *exchange, int32_t *id)
{
    char *end = NULL;
    const char *text = exchange->rest;
    const int32_t n = server_worker_load(exchange->model->worker).n_sessions;
    const long number = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    *id = (int32_t)number;
    if (number >= 0 && number < n && !*end) return true;
    return server_refuse(&exchange->problem, 404, "not_found", "id_slot",
                         "there is no slot '%.40s'; the model '%.100s' has the slots 0 to %d", text,
                         exchange->model->name, (int)n - 1);
}

static bool fill_job(server_exchange *exchange, const slot_action *action, server_job *job, change *c)
{
    const server_saved *request = exchange->request;
    const char *folder = exchange->site->slot_folder;
    c->action = action;
    c->name = strdup(request->filename ? request->filename : "");
    if (!c->name || !server_set_salt(exchange, request->cache_salt, job))
        return server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
    c->salt = job->request.salt;
    if (!action->has_file) return true;
    if (!request->filename)
        return server_refuse(&exchange->problem, 400, "missing_required_parameter", "filename", "filename: is missing");
    if (!check_name(c->name, &exchange->problem)) return false;
    const size_t n = strlen(folder) + strlen(c->name) + 2;
    c->path = malloc(n);
    if (c->path) snprintf(c->path, n, "%s/%s", folder, c->name);
    return c->path || server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
}

void server_change_slot(server_exchange *exchange)
{
    int32_t id;
    if (!exchange->site->slot_folder) {
        server_refuse(&exchange->problem, 400, "not_supported", NULL,
                      "slots are saved and restored where the server was started with --slot-save-path");
        return;
    }
    const slot_action *action = find_action(exchange);
    if (!action || !find_slot(exchange, &id)) return;
    server_job *job = server_job_new();
    change *c = job ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        server_job_leave(NULL, job);
        server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
        return;
    }
    job->reply.ctx = c;
    job->reply.free_ctx = free_change;
    job->reply.writer = &writer;
    job->work = run_action;
    job->request.wanted_slot = id + 1;
    job->request.keeps_slot = true;
    if (fill_job(exchange, action, job, c))
        exchange->job = job;
    else
        server_job_leave(NULL, job);
}

// SPDX-License-Identifier: MIT
// support/served_posix.h: a running `frit serve`, and a client that uses raw sockets.
//
//     served s = serve(path, "--parallel 2");
//     reply r = post(&s, "/v1/completions", "{\"prompt\": \"a\"}");
//     assert_int_equal(r.status, 200);
//     reply_free(&r);
//     assert_int_equal(stop_serving(&s, SIGTERM), 0);
#pragma once
#include "support/support.h"

#include <jansson.h>
#include <signal.h>
#include <sys/types.h>

typedef struct served {
    pid_t pid;
    int port;           // TCP port, unless `path` is set
    char path[108];     // path of a Unix socket; "": none
    int err;            // pipe from its stderr
    char said[32768];   // text from its stderr so far
} served;

// A command that starts the server, such as "env NAME=VALUE"; "" by default.
extern const char *served_by;
// Starts a server on a free port and waits for its ready line; fails the test after 60 s.
served serve(const char *model, const char *options);
// Starts a server whose model's name makes each event SERVED_LONG_NAME bytes longer, so that a client that does not
// read soon blocks its answer.
enum { SERVED_LONG_NAME = 20000 };
served serve_with_long_events(const char *model, const char *options);
// Starts a server with these arguments, to which a free port is added.
served serve_arguments(const char *arguments);
// Sends the signal (0: none) and waits for the end; returns the exit code, or 128 + the signal that killed it.
int stop_serving(served *s, int signal_number);
// Waits until its stderr contains the text; fails the test after a minute.
void expect_said(served *s, const char *text);
// Runs `frit serve ARGUMENTS`, which must end by itself.
int serve_and_fail(const char *arguments, char *said, size_t size);

typedef struct reply {
    int status;
    char *headers, *body;   // body: chunks are joined
    size_t n_body;
    bool complete;   // as long as announced
} reply;

int connect_to(const served *s);
void send_text(int socket, const char *text);
void send_bytes(int socket, const char *bytes, size_t n);
// Reads the next reply of the connection; status 0 if the connection ends before one.
reply read_reply(int socket);
// Reads the bytes that arrive within some milliseconds; at least one, unless the connection ends or nothing arrives.
size_t read_some(int socket, char *bytes, size_t size, int milliseconds);
void reply_free(reply *r);
// The value of a header, or NULL; valid until the next call.
const char *reply_header(const reply *r, const char *name);
json_t *reply_json(const reply *r);   // fails the test if the body is no JSON
// Fails the test unless the reply is an error as JSON with this status and code; `code` NULL: any code.
void check_problem(const reply *r, int status, const char *code);

reply get(const served *s, const char *path);
reply post(const served *s, const char *path, const char *json);
// Makes the text of a request with a body; headers end with line feeds.
char *request_text(const char *method, const char *path, const char *headers, const char *body);
char *post_text(const char *path, const char *headers, const char *json);
// Sends a request on a new connection, which is returned. The caller may read the answer or not.
int send_request(const served *s, const char *method, const char *path, const char *headers, const char *body);
int send_post(const served *s, const char *path, const char *json);
// reply_to sends such a request and returns the reply; post and get do it with fixed methods.
reply reply_to(const served *s, const char *method, const char *path, const char *headers, const char *body);
reply reply_to_text(const served *s, const char *text);
// Waits for bytes of an answer, and reads some, or none.
void await_bytes(int socket);
void await_answer(int socket);
// Reads until the text has arrived; `said` has all bytes read, as a text.
void await_text(int socket, const char *text, char *said, size_t size);
// Reads until the text has arrived and keeps nothing; returns the number of bytes.
size_t read_until(int socket, const char *text);
// Returns a number of /health: "running", "waiting".
int health(const served *s, const char *name);
// Waits until the number has this value, for a minute at most.
void expect_health(const served *s, const char *name, int value);
void nap(int milliseconds);

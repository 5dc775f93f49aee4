// SPDX-License-Identifier: MIT
// Starts a server, and implements the parts of HTTP that tests need.
#include "support/served_posix.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

// With a sanitizer a server takes about ten times as long.
enum { PATIENCE_MS = 60000 * FRIT_TEST_STRIDE };

const char *served_by = "";

void nap(int milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

// ---------------------------------------------------------------------------------------- the process

// Ends the server when its test ends in any way.
static void end_with(pid_t test)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != test) _exit(127);
}

static pid_t start(const char *arguments, int *err)
{
    char command[4 << 14];
    int n = snprintf(command, sizeof command, "exec %s '%s/frit' serve %s", served_by, FRIT_BUILD_DIR, arguments);
    assert_true(n > 0 && (size_t)n < sizeof command);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t test = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        end_with(test);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    *err = ends[0];
    return pid;
}

// Waits in slices, so that a test that is stopped for a while loses one slice and not the whole time.
static bool is_readable(int fd, int milliseconds)
{
    enum { SLICE_MS = 100 };
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    for (int left = milliseconds; left > 0; left -= SLICE_MS)
        if (poll(&readable, 1, left < SLICE_MS ? left : SLICE_MS) == 1) return true;
    return false;
}

// Reads stderr until it contains `until`, or ends.
static bool listen_for(int err, char *said, size_t size, const char *until)
{
    size_t n = strlen(said);
    while (!until || !strstr(said, until)) {
        if (n + 1 >= size || !is_readable(err, PATIENCE_MS)) return false;
        ssize_t got = read(err, said + n, size - 1 - n);
        if (got <= 0) return !until;
        n += (size_t)got;
        said[n] = 0;
    }
    return true;
}

static int end_of(pid_t pid)
{
    int status = 0;
    for (int waited = 0; waitpid(pid, &status, WNOHANG) == 0; waited += 10) {
        if (waited > PATIENCE_MS) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        nap(10);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

served serve(const char *model, const char *options)
{
    char arguments[4 << 14];
    snprintf(arguments, sizeof arguments, "'%s' --port 0 %s", model, options);
    return serve_arguments(arguments);
}

served serve_with_long_events(const char *model, const char *options)
{
    char *all = malloc(SERVED_LONG_NAME + strlen(options) + 64);
    const size_t n = (size_t)sprintf(all, "%s --alias ", options);
    memset(all + n, 'n', SERVED_LONG_NAME);
    all[n + SERVED_LONG_NAME] = 0;
    const served s = serve(model, all);
    free(all);
    return s;
}

served serve_arguments(const char *arguments)
{
    served s = {0};
    s.pid = start(arguments, &s.err);
    if (!listen_for(s.err, s.said, sizeof s.said, " tokens)\n")) {
        kill(s.pid, SIGKILL);
        end_of(s.pid);
        fail_msg("frit serve %s: no ready line, but: %s", arguments, s.said);
    }
    const char *path = strstr(s.said, " at unix:"), *url = strstr(s.said, path ? " at unix:" : " at http");
    assert_non_null(url);
    if (path) {
        snprintf(s.path, sizeof s.path, "%.*s", (int)strcspn(path + 9, " "), path + 9);
        return s;
    }
    s.port = atoi(strrchr(url, ':') + 1);
    assert_in_range(s.port, 1, 65535);
    return s;
}

int stop_serving(served *s, int signal_number)
{
    if (signal_number && s->pid > 0) kill(s->pid, signal_number);   // 0: the process group, with ctest
    int code = end_of(s->pid);
    listen_for(s->err, s->said, sizeof s->said, NULL);
    close(s->err);
    if (code != 0) fprintf(stderr, "frit serve ended with %d: %s\n", code, s->said);
    return code;
}

void expect_said(served *s, const char *text)
{
    if (!listen_for(s->err, s->said, sizeof s->said, text)) fail_msg("no '%s' in: %s", text, s->said);
}

int serve_and_fail(const char *arguments, char *said, size_t size)
{
    int err;
    pid_t pid = start(arguments, &err);
    said[0] = 0;
    listen_for(err, said, size, NULL);
    close(err);
    return end_of(pid);
}

// ---------------------------------------------------------------------------------------- the client

int connect_to(const served *s)
{
    int fd = socket(s->path[0] ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    if (s->path[0]) {
        struct sockaddr_un local = {.sun_family = AF_UNIX};
        memcpy(local.sun_path, s->path, sizeof local.sun_path);
        assert_int_equal(connect(fd, (struct sockaddr *)&local, sizeof local), 0);
        return fd;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

void send_bytes(int socket, const char *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(socket, bytes + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0) return;   // the server may have answered and closed the connection
        at += (size_t)sent;
    }
}

void send_text(int socket, const char *text)
{
    send_bytes(socket, text, strlen(text));
}

size_t read_some(int socket, char *bytes, size_t size, int milliseconds)
{
    if (!is_readable(socket, milliseconds)) return 0;
    ssize_t n = recv(socket, bytes, size, 0);
    return n > 0 ? (size_t)n : 0;
}

static bool read_byte(int socket, char *c)
{
    return read_some(socket, c, 1, PATIENCE_MS) == 1;
}

// Reads n further bytes of the body.
static bool read_body(int socket, reply *r, size_t n)
{
    r->body = realloc(r->body, r->n_body + n + 1);
    for (size_t got = 0; n > 0; n -= got) {
        got = read_some(socket, r->body + r->n_body, n, PATIENCE_MS);
        if (got == 0) return false;
        r->n_body += got;
    }
    r->body[r->n_body] = 0;
    return true;
}

static bool read_line(int socket, char *line, size_t size)
{
    size_t n = 0;
    while (n + 1 < size && read_byte(socket, &line[n]))
        if (line[n++] == '\n') {
            line[n] = 0;
            return true;
        }
    return false;
}

static bool read_chunks(int socket, reply *r)
{
    char line[64];
    for (;;) {
        if (!read_line(socket, line, sizeof line)) return false;
        size_t n = strtoul(line, NULL, 16);
        if (n > 0 && !read_body(socket, r, n)) return false;
        if (!read_line(socket, line, sizeof line)) return false;
        if (n == 0) return true;
    }
}

const char *reply_header(const reply *r, const char *name)
{
    static _Thread_local char value[1024];
    size_t n = strlen(name);
    for (const char *line = strstr(r->headers, "\r\n"); line && line[2] != '\r'; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, n) != 0 || line[2 + n] != ':') continue;
        const char *start = line + 2 + n + 1 + strspn(line + 2 + n + 1, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(start, "\r"), start);
        return value;
    }
    return NULL;
}

reply read_reply(int socket)
{
    reply r = {.headers = calloc(1, 16384), .body = calloc(1, 1)};
    size_t n = 0;
    while (n < 16383 && !strstr(r.headers, "\r\n\r\n") && read_byte(socket, &r.headers[n])) n++;
    if (!strstr(r.headers, "\r\n\r\n")) return r;
    r.status = atoi(r.headers + 9);
    if (r.status == 100) {
        reply_free(&r);
        return read_reply(socket);
    }
    const char *length = reply_header(&r, "Content-Length");
    if (length)
        r.complete = read_body(socket, &r, strtoul(length, NULL, 10));
    else if (reply_header(&r, "Transfer-Encoding"))
        r.complete = read_chunks(socket, &r);
    else
        r.complete = r.status == 204;
    return r;
}

void reply_free(reply *r)
{
    free(r->headers);
    free(r->body);
    *r = (reply){0};
}

json_t *reply_json(const reply *r)
{
    json_error_t error;
    json_t *json = json_loadb(r->body, r->n_body, JSON_ALLOW_NUL, &error);
    if (!json) fail_msg("status %d, no JSON (%s): %s", r->status, error.text, r->body);
    return json;
}

char *request_text(const char *method, const char *path, const char *headers, const char *body)
{
    size_t size = strlen(method) + strlen(path) + strlen(headers) + strlen(body) + 256;
    char *text = malloc(size);
    snprintf(text, size, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s", method, path, headers,
             strlen(body), body);
    return text;
}

char *post_text(const char *path, const char *headers, const char *json)
{
    return request_text("POST", path, headers, json);
}

int send_request(const served *s, const char *method, const char *path, const char *headers, const char *body)
{
    const int fd = connect_to(s);
    char *text = request_text(method, path, headers, body);
    send_text(fd, text);
    free(text);
    return fd;
}

int send_post(const served *s, const char *path, const char *json)
{
    return send_request(s, "POST", path, "", json);
}

reply reply_to(const served *s, const char *method, const char *path, const char *headers, const char *body)
{
    const int fd = send_request(s, method, path, headers, body);
    const reply r = read_reply(fd);
    close(fd);
    return r;
}

reply reply_to_text(const served *s, const char *text)
{
    int fd = connect_to(s);
    send_text(fd, text);
    reply r = read_reply(fd);
    close(fd);
    return r;
}

reply get(const served *s, const char *path)
{
    char text[1024];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    return reply_to_text(s, text);
}

reply post(const served *s, const char *path, const char *json)
{
    char *text = post_text(path, "", json);
    reply r = reply_to_text(s, text);
    free(text);
    return r;
}

void await_bytes(int socket)
{
    char bytes[64];
    if (read_some(socket, bytes, sizeof bytes, PATIENCE_MS) == 0) fail_msg("nothing came");
}

void await_answer(int socket)
{
    if (!is_readable(socket, PATIENCE_MS)) fail_msg("nothing came");
}

void await_text(int socket, const char *text, char *said, size_t size)
{
    size_t n = 0;
    said[0] = 0;
    while (!strstr(said, text)) {
        const size_t more = n + 1 < size ? read_some(socket, said + n, size - 1 - n, PATIENCE_MS) : 0;
        if (more == 0) fail_msg("'%s' did not come: %s", text, said);
        n += more;
        said[n] = 0;
    }
}

size_t read_until(int socket, const char *text)
{
    enum { BLOCK = 1 << 16 };
    char *bytes = malloc(BLOCK);
    const size_t n_text = strlen(text);
    size_t total = 0, n = 0;
    for (bool found = false; !found;) {
        const size_t kept = n < n_text ? n : n_text - 1;   // the text may arrive in two pieces
        memmove(bytes, bytes + n - kept, kept);
        const size_t more = read_some(socket, bytes + kept, BLOCK - 1 - kept, PATIENCE_MS);
        if (more == 0) fail_msg("'%s' did not come in %zu bytes", text, total);
        n = kept + more;
        bytes[n] = 0;
        total += more;
        found = strstr(bytes, text) != NULL;
    }
    free(bytes);
    return total;
}

int health(const served *s, const char *name)
{
    reply r = get(s, "/health");
    assert_int_equal(r.status, 200);
    json_t *json = reply_json(&r);
    int value = (int)json_integer_value(json_object_get(json, name));
    json_decref(json);
    reply_free(&r);
    return value;
}

void expect_health(const served *s, const char *name, int value)
{
    int found = -1;
    for (int i = 0; i < PATIENCE_MS / 10 && found != value; i++) {
        if (i > 0) nap(10);
        found = health(s, name);
    }
    if (found != value) fail_msg("/health: %s stays at %d, expected %d", name, found, value);
}

void check_problem(const reply *r, int status, const char *code)
{
    if (r->status != status) fail_msg("status %d: %s", r->status, r->body ? r->body : "");
    assert_string_equal(reply_header(r, "Content-Type"), "application/json");
    json_t *json = reply_json(r);
    const char *found = json_string_value(json_object_get(json_object_get(json, "error"), "code"));
    if (code && (!found || strcmp(found, code) != 0)) fail_msg("code %s, not %s", found ? found : "null", code);
    json_decref(json);
}

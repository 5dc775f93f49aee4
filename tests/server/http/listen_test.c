// SPDX-License-Identifier: MIT
// Unix sockets, sockets of the parent process, and messages to the service manager.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT "/v1/completions"

static const char brief[] = "{\"prompt\": \"b\", \"temperature\": 0, \"max_tokens\": 8, \"logit_bias\": {\"2\": -100}}";

static const char *model(void)
{
    static char path[1024];
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("listen.gguf", &(tiny_options){0}));
    return path;
}

// Returns a short path, because paths of sockets must be short and the folder of the tests may be deep.
static const char *socket_path(const char *name)
{
    static char path[100];
    snprintf(path, sizeof path, "/tmp/frit-%d-%s.sock", (int)getpid(), name);
    return path;
}

static served serve_at(const char *host, const char *more)
{
    char options[1024];
    snprintf(options, sizeof options, "--host '%s' --threads 1 %s", host, more);
    return serve(model(), options);
}

static void expect_answer(const served *s, const char *text)
{
    const int fd = connect_to(s);
    send_text(fd, text);
    reply r = read_reply(fd);
    if (r.status != 200) fail_msg("%d: %s", r.status, r.body);
    reply_free(&r);
    close(fd);
}

// The server cannot use the address, prints the reason, and leaves the file as it is.
static void expect_refused(const char *host, const char *more, int code, const char *why)
{
    char arguments[2048], said[4096];
    snprintf(arguments, sizeof arguments, "'%s' --host '%s' %s", model(), host, more);
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), code);
    if (!strstr(said, why)) fail_msg("'%s' is not in: %s", why, said);
}

static int mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    return info.st_mode & 0777;
}

// ---------------------------------------------------------------------------------------- Unix sockets

static void a_unix_socket_is_its_owners(void **state)
{
    (void)state;
    const char *path = socket_path("own");
    char host[128];
    snprintf(host, sizeof host, "unix:%s", path);
    served s = serve_at(host, "");
    assert_string_equal(s.path, path);
    assert_int_equal(mode_of(path), 0600);
    reply r = post(&s, TEXT, brief);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    // The permissions of the file decide which users may connect, so any Host is allowed.
    expect_answer(&s, "GET /v1/models HTTP/1.1\r\nHost: any.example\r\n\r\n");
    expect_refused(path, "", 1, "another server listens there");
    expect_answer(&s, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_head_in_parts_comes_over_a_unix_socket(void **state)
{
    (void)state;
    served s = serve_at(socket_path("parts"), "--socket-mode 0660");
    assert_int_equal(mode_of(s.path), 0660);
    const int fd = connect_to(&s);
    static const char *const parts[] = {"GET /v1/mod", "els HTTP/1.1\r\nHo", "st: localhost\r\n", "\r\n"};
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
        send_text(fd, parts[i]);
        nap(30);
    }
    reply r = read_reply(fd);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(fd);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_dead_servers_socket_is_replaced(void **state)
{
    (void)state;
    const char *path = socket_path("dead");
    served s = serve_at(path, "");
    kill(s.pid, SIGKILL);
    assert_int_equal(stop_serving(&s, 0), 128 + SIGKILL);
    assert_int_equal(access(path, F_OK), 0);
    s = serve_at(path, "");
    expect_answer(&s, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // The file of a server that replaced this one is not removed.
    assert_int_equal(unlink(path), 0);
    write_file(path, "x", 1);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    assert_int_equal(access(path, F_OK), 0);
    expect_refused(path, "", 1, "which is no socket");
    assert_int_equal(unlink(path), 0);
}

static void bad_paths_and_modes_are_refused(void **state)
{
    (void)state;
    char longer[256] = "unix:";
    memset(longer + 5, 'a', 108);
    expect_refused(longer, "", 2, "has 108 bytes; expected 1 to 107");
    expect_refused("unix:", "", 2, "has 0 bytes");
    expect_refused("/no/such/folder/frit.sock", "", 1, "No such file");
    static const char *const modes[] = {"8", "-1", "1777", "rw", "''"};
    for (size_t i = 0; i < FRIT_COUNT(modes); i++) {
        char more[64];
        snprintf(more, sizeof more, "--socket-mode %s", modes[i]);
        expect_refused(socket_path("mode"), more, 2, "in octal");
    }
    assert_int_equal(access(socket_path("mode"), F_OK), -1);
}

// ---------------------------------------------------------------------------------------- sockets of the parent

static int bind_to(uint32_t host, bool listens)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(host);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listens) assert_int_equal(listen(fd, 5), 0);
    return fd;
}

static void a_socket_of_the_parent_is_used(void **state)
{
    (void)state;
    char more[128];
    const int fd = bind_to(INADDR_LOOPBACK, true);
    struct sockaddr_in address;
    socklen_t n = sizeof address;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    snprintf(more, sizeof more, "3<&%d", fd);
    served_by = "env LISTEN_PID=$$ LISTEN_FDS=1";
    served s = serve_at("no.such.host.invalid", more);
    assert_int_equal(s.port, ntohs(address.sin_port));
    expect_answer(&s, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    served_by = "env LISTEN_PID=1 LISTEN_FDS=1";   // of another process
    s = serve_at("127.0.0.1", more);
    assert_int_not_equal(s.port, ntohs(address.sin_port));
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    served_by = "";
    close(fd);
}

static void other_descriptors_are_refused(void **state)
{
    (void)state;
    char more[128];
    const int silent = bind_to(INADDR_LOOPBACK, false), open = bind_to(INADDR_ANY, true);
    served_by = "env LISTEN_PID=$$ LISTEN_FDS=1";
    snprintf(more, sizeof more, "3<&%d", silent);
    expect_refused("127.0.0.1", more, 2, "not a listening stream socket");
    expect_refused("127.0.0.1", "3</dev/null", 2, "not a listening stream socket");
    snprintf(more, sizeof more, "3<&%d", open);
    expect_refused("127.0.0.1", more, 2, "lets the whole network use the model");
    served_by = "env LISTEN_PID=$$ LISTEN_FDS=2";
    expect_refused("127.0.0.1", more, 2, "expected 1 socket");
    served_by = "";
    close(silent);
    close(open);
}

// ---------------------------------------------------------------------------------------- the service manager

static void expect_note(int fd, const char *start)
{
    char text[1024] = "";
    struct pollfd news = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&news, 1, 60000), 1);
    assert_true(recv(fd, text, sizeof text - 1, 0) > 0);
    if (strncmp(text, start, strlen(start)) != 0) fail_msg("'%s', not '%s'", text, start);
}

// A path, and on Linux an abstract name.
static void the_manager_is_told(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = socket_path("notify");
    char by[256];
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    snprintf(by, sizeof by, "env NOTIFY_SOCKET=%s", path);
    served_by = by;
    served s = serve_at("127.0.0.1", "");
    expect_note(fd, "READY=1\nSTATUS=serving listen at http://127.0.0.1:");
    kill(s.pid, SIGHUP);
    expect_note(fd, "RELOADING=1\nMONOTONIC_USEC=");
    expect_note(fd, "READY=1");
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    expect_note(fd, "STOPPING=1\n");
    served_by = "env NOTIFY_SOCKET=/no/such/socket";
    s = serve_at("127.0.0.1", "");
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
    served_by = "";
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unix_socket_is_its_owners),
        cmocka_unit_test(a_head_in_parts_comes_over_a_unix_socket),
        cmocka_unit_test(a_dead_servers_socket_is_replaced),
        cmocka_unit_test(bad_paths_and_modes_are_refused),
        cmocka_unit_test(a_socket_of_the_parent_is_used),
        cmocka_unit_test(other_descriptors_are_refused),
        cmocka_unit_test(the_manager_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

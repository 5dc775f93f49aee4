// SPDX-License-Identifier: MIT
// TLS: answers, invalid files, and certificates that are replaced while the server runs.
#include "support/served_posix.h"
#include "support/tiny_model.h"

#ifdef FRIT_HAVE_TLS

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <time.h>
#include <unistd.h>

static const char *model(void)
{
    static char path[1024];
    const tiny_options options = {.n_ctx = 12000};
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("tls.gguf", &options));
    return path;
}

static const char *pem(int i)
{
    static char paths[4][1024];
    static const char *const names[] = {"certificate.pem", "key.pem", "other.pem", "sealed.pem"};
    snprintf(paths[i], sizeof paths[i], "%s", temp_path(names[i]));
    return paths[i];
}

enum { CERTIFICATE, KEY, OTHER_KEY, SEALED_KEY };

static void write_datum(const char *path, gnutls_datum_t *text)
{
    write_file(path, text->data, text->size);
    gnutls_free(text->data);
}

static gnutls_x509_privkey_t new_key(void)
{
    gnutls_x509_privkey_t key;
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(
        gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0), 0);
    return key;
}

// Writes a new key and its certificate for this name.
static void write_pair(const char *name)
{
    gnutls_x509_privkey_t key = new_key();
    gnutls_x509_crt_t crt;
    gnutls_datum_t text;
    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_set_version(crt, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(crt, "\1", 1), 0);
    assert_int_equal(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned)strlen(name)),
                     0);
    assert_int_equal(gnutls_x509_crt_set_key(crt, key), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(crt, time(NULL) - 3600), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 86400), 0);
    assert_int_equal(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text), 0);
    write_datum(pem(CERTIFICATE), &text);
    assert_int_equal(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &text), 0);
    write_datum(pem(KEY), &text);
    assert_int_equal(
        gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, "secret", GNUTLS_PKCS_PBES2_AES_256, &text), 0);
    write_datum(pem(SEALED_KEY), &text);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
}

static served serve_tls(const char *more)
{
    char options[4096];
    snprintf(options, sizeof options, "--threads 1 --tls-cert '%s' --tls-key '%s' %s", pem(CERTIFICATE), pem(KEY),
             more);
    return serve(model(), options);
}

// ---------------------------------------------------------------------------------------- a client

typedef struct client {
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    int fd;
} client;

// A handshake with priorities of GnuTLS (NULL: the default ones). Gives its error, or 0.
static int try_tls(const served *s, const char *priorities, client *out)
{
    client c = {.fd = connect_to(s)};
    assert_int_equal(gnutls_certificate_allocate_credentials(&c.credentials), 0);
    assert_int_equal(gnutls_init(&c.session, GNUTLS_CLIENT), 0);
    assert_int_equal(priorities ? gnutls_priority_set_direct(c.session, priorities, NULL)
                                : gnutls_set_default_priority(c.session),
                     0);
    assert_int_equal(gnutls_credentials_set(c.session, GNUTLS_CRD_CERTIFICATE, c.credentials), 0);
    gnutls_transport_set_int(c.session, c.fd);
    gnutls_handshake_set_timeout(c.session, 60000);
    int error;
    do error = gnutls_handshake(c.session);
    while (error < 0 && !gnutls_error_is_fatal(error));
    *out = c;
    return error;
}

static client connect_tls(const served *s)
{
    client c;
    const int error = try_tls(s, NULL, &c);
    if (error < 0) fail_msg("handshake: %s", gnutls_strerror(error));
    return c;
}

static void leave(client *c)
{
    gnutls_deinit(c->session);
    gnutls_certificate_free_credentials(c->credentials);
    close(c->fd);
}

static void expect_name(const client *c, const char *name)
{
    unsigned n;
    char found[64];
    size_t size = sizeof found;
    gnutls_x509_crt_t crt;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(c->session, &n);
    assert_int_equal(n, 1);
    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_import(crt, chain, GNUTLS_X509_FMT_DER), 0);
    assert_int_equal(gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, found, &size), 0);
    gnutls_x509_crt_deinit(crt);
    assert_string_equal(found, name);
}

// Sends a request, and reads until the reply has `want`.
static void expect_reply(const client *c, const char *request, const char *want)
{
    char text[65536] = "";
    size_t n = 0;
    assert_int_equal(gnutls_record_send(c->session, request, strlen(request)), (ssize_t)strlen(request));
    gnutls_record_set_timeout(c->session, 60000);
    while (!strstr(text, want)) {
        const ssize_t got = gnutls_record_recv(c->session, text + n, sizeof text - 1 - n);
        if (got < 0 && !gnutls_error_is_fatal((int)got)) continue;
        if (got <= 0) fail_msg("no '%s' in: %s", want, text);
        n += (size_t)got;
        text[n] = 0;
    }
}

static void expect_models(const client *c)
{
    expect_reply(c, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", "\"object\":\"list\"");
}

// ---------------------------------------------------------------------------------------- tests

static void requests_are_answered(void **state)
{
    (void)state;
    write_pair("first");
    served s = serve_tls("");
    assert_non_null(strstr(s.said, " at https://127.0.0.1:"));
    client c = connect_tls(&s);
    expect_name(&c, "first");
    for (int i = 0; i < 2; i++) expect_models(&c);   // on one connection
    char *stream = post_text("/v1/completions", "", "{\"prompt\": \"a\", \"max_tokens\": 5, \"stream\": true}");
    expect_reply(&c, stream, "data: [DONE]");
    free(stream);
    leave(&c);
    // A client without TLS gets no reply and has no effect.
    const int fd = connect_to(&s);
    send_text(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reply r = read_reply(fd);
    assert_int_equal(r.status, 0);
    reply_free(&r);
    close(fd);
    c = connect_tls(&s);
    expect_models(&c);
    leave(&c);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void old_versions_and_ciphers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *priorities;
        bool good;
    } rows[] = {
        {"NORMAL:-VERS-ALL:+VERS-TLS1.3", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-GCM", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+CHACHA20-POLY1305", true},
        {"LEGACY:-VERS-ALL:+VERS-TLS1.1", false},
        {"LEGACY:-VERS-ALL:+VERS-TLS1.0", false},
        {"LEGACY:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA", false},
        {"LEGACY:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC:+AES-256-CBC", false},
    };
    write_pair("first");
    served s = serve_tls("");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        client c;
        const int error = try_tls(&s, rows[i].priorities, &c);
        if ((error == 0) != rows[i].good) fail_msg("%s: %s", rows[i].priorities, gnutls_strerror(error));
        if (rows[i].good) expect_models(&c);
        leave(&c);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_client_that_leaves_frees_its_session(void **state)
{
    (void)state;
    write_pair("first");
    served s = serve_tls("--parallel 1");
    for (int streams = 0; streams < 2; streams++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"prompt\": \"a\", \"max_tokens\": -1, \"logit_bias\": {\"2\": -100}, \"stream\": %s}",
                 streams ? "true" : "false");
        char *text = post_text("/v1/completions", "", body);
        client c = connect_tls(&s);
        if (streams)
            expect_reply(&c, text, "data: ");
        else
            assert_true(gnutls_record_send(c.session, text, strlen(text)) > 0);
        free(text);
        leave(&c);
        // The request takes the only session.
        c = connect_tls(&s);
        text = post_text("/v1/completions", "", "{\"prompt\": \"a\", \"max_tokens\": 2}");
        expect_reply(&c, text, "\"finish_reason\":");
        free(text);
        leave(&c);
    }
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_silent_connection_is_closed(void **state)
{
    (void)state;
    write_pair("first");
    served s = serve_tls("--request-timeout 1");
    const int silent = connect_to(&s), begun = connect_to(&s);
    send_bytes(begun, "\x16\x03", 2);   // the beginning of a handshake
    reply r = read_reply(silent);
    assert_int_equal(r.status, 0);
    reply_free(&r);
    r = read_reply(begun);
    assert_int_equal(r.status, 0);
    reply_free(&r);
    close(silent);
    close(begun);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void a_hangup_reads_the_files_again(void **state)
{
    (void)state;
    write_pair("first");
    served s = serve_tls("");
    client old = connect_tls(&s);
    expect_models(&old);
    write_file(pem(KEY), "x", 1);
    kill(s.pid, SIGHUP);
    expect_said(&s, "SIGHUP: certificate as before: --tls-key");
    client c = connect_tls(&s);
    expect_name(&c, "first");
    leave(&c);
    write_pair("second");
    kill(s.pid, SIGHUP);
    expect_said(&s, "new connections use the certificate as it is now");
    c = connect_tls(&s);
    expect_name(&c, "second");
    expect_models(&c);
    expect_models(&old);
    leave(&c);
    leave(&old);
    assert_int_equal(stop_serving(&s, SIGTERM), 0);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    write_pair("first");
    gnutls_x509_privkey_t key = new_key();
    gnutls_datum_t text;
    assert_int_equal(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), 0);
    write_datum(pem(OTHER_KEY), &text);
    gnutls_x509_privkey_deinit(key);
    const struct {
        const char *certificate, *key, *why;
    } rows[] = {
        {pem(CERTIFICATE), NULL, "--tls-key is missing"},
        {NULL, pem(KEY), "--tls-cert is missing"},
        {"/no/such/file.pem", pem(KEY), "cannot be read"},
        {pem(CERTIFICATE), "/no/such/file.pem", "cannot be read"},
        {pem(KEY), pem(KEY), "is not a certificate"},
        {pem(CERTIFICATE), pem(CERTIFICATE), "is not a private key"},
        {pem(CERTIFICATE), pem(OTHER_KEY), "is not the key of the first certificate"},
        {pem(CERTIFICATE), pem(SEALED_KEY), "is encrypted"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char arguments[4096], said[4096];
        size_t n = (size_t)snprintf(arguments, sizeof arguments, "'%s' --port 0", model());
        if (rows[i].certificate)
            n += (size_t)snprintf(arguments + n, sizeof arguments - n, " --tls-cert '%s'", rows[i].certificate);
        if (rows[i].key) snprintf(arguments + n, sizeof arguments - n, " --tls-key '%s'", rows[i].key);
        assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
        if (!strstr(said, rows[i].why)) fail_msg("'%s' is not in: %s", rows[i].why, said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(old_versions_and_ciphers_are_refused),
        cmocka_unit_test(a_client_that_leaves_frees_its_session),
        cmocka_unit_test(a_silent_connection_is_closed),
        cmocka_unit_test(a_hangup_reads_the_files_again),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void a_build_without_tls_says_so(void **state)
{
    (void)state;
    char arguments[2048], said[4096];
    snprintf(arguments, sizeof arguments, "'%s' --port 0 --tls-cert a --tls-key b",
             tiny_model("tls.gguf", &(tiny_options){0}));
    assert_int_equal(serve_and_fail(arguments, said, sizeof said), 2);
    assert_non_null(strstr(said, "this build has no TLS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_build_without_tls_says_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif

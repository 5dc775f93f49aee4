// SPDX-License-Identifier: MIT
// Certificate and key of new connections.
#include "server/http/tls.h"

#ifdef FRIT_HAVE_TLS

#include "frit.h"
#include "server/ops/exposed_file.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHAIN = 16, MAX_ID = 64 };

// A certificate and its key, as the files were read once. Handshakes may use a pair after it was replaced, so pairs are
// kept until the end.
typedef struct pair {
    gnutls_pcert_st chain[MAX_CHAIN];
    unsigned n_chain;
    gnutls_privkey_t key;
    struct pair *older;
} pair;

struct server_tls {
    char *certificate, *key;
    pair *newest;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static server_tls *current;

// The callback of libmicrohttpd: gives the newest pair to a handshake.
static int give_pair(gnutls_session_t session, const gnutls_datum_t *authorities, int n_authorities,
                     const gnutls_pk_algorithm_t *algorithms, int n_algorithms, gnutls_pcert_st **chain,
                     unsigned *n_chain, gnutls_privkey_t *key)
{
    (void)session, (void)authorities, (void)n_authorities, (void)algorithms, (void)n_algorithms;
    pthread_mutex_lock(&lock);
    pair *p = current ? current->newest : NULL;
    pthread_mutex_unlock(&lock);
    if (!p) return -1;
    *chain = p->chain;
    *n_chain = p->n_chain;
    *key = p->key;
    return 0;
}

void *server_tls_callback(void)
{
    return (void *)give_pair;
}

// TLS 1.2 and 1.3 with forward secrecy and authenticated ciphers.
const char *server_tls_priorities(void)
{
    return "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:"
           "-MAC-ALL:+AEAD:%SERVER_PRECEDENCE";
}

static void pair_free(pair *p)
{
    for (unsigned i = 0; i < p->n_chain; i++) gnutls_pcert_deinit(&p->chain[i]);
    if (p->key) gnutls_privkey_deinit(p->key);
    free(p);
}

static bool refuse_file(server_problem *problem, const char *option, const char *path, const char *why)
{
    return server_refuse(problem, 400, NULL, NULL, "--%s %.300s: %s", option, path, why);
}

static bool load_file(const char *option, const char *path, gnutls_datum_t *text, server_problem *problem)
{
    const int error = gnutls_load_file(path, text);
    return error == 0 || refuse_file(problem, option, path, "cannot be read");
}

static bool read_chain(pair *p, const char *path, server_problem *problem)
{
    gnutls_datum_t text;
    unsigned n = MAX_CHAIN;
    if (!load_file("tls-cert", path, &text, problem)) return false;
    const int error = gnutls_pcert_list_import_x509_raw(p->chain, &n, &text, GNUTLS_X509_FMT_PEM, 0);
    gnutls_free(text.data);
    if (error == 0 && n > 0) {
        p->n_chain = n;
        return true;
    }
    return refuse_file(problem, "tls-cert", path,
                       error == GNUTLS_E_SHORT_MEMORY_BUFFER ? "has more than 16 certificates"
                                                             : "is not a certificate in PEM format");
}

static bool has_text(const gnutls_datum_t *text, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= text->size; i++)
        if (memcmp(text->data + i, word, n) == 0) return true;
    return false;
}

static bool read_key(pair *p, const char *path, server_problem *problem)
{
    gnutls_datum_t text;
    if (!load_file("tls-key", path, &text, problem)) return false;
    const bool is_encrypted = has_text(&text, "ENCRYPTED");
    int error = is_encrypted ? GNUTLS_E_DECRYPTION_FAILED : gnutls_privkey_init(&p->key);
    if (error == 0) error = gnutls_privkey_import_x509_raw(p->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_memset(text.data, 0, text.size);
    gnutls_free(text.data);
    if (error == 0) server_warn_exposed_file("--tls-key", path, true);
    if (error == 0) return true;
    return refuse_file(problem, "tls-key", path,
                       is_encrypted
                           ? "is encrypted; expected a key without a password (openssl pkey -in FILE -out PLAIN)"
                           : "is not a private key in PEM format");
}

static bool check_match(const pair *p, const server_tls *tls, server_problem *problem)
{
    unsigned char ids[2][MAX_ID];
    size_t n[2] = {MAX_ID, MAX_ID};
    gnutls_pubkey_t own = NULL;
    const bool good = gnutls_pubkey_init(&own) == 0 && gnutls_pubkey_import_privkey(own, p->key, 0, 0) == 0 &&
                      gnutls_pubkey_get_key_id(own, GNUTLS_KEYID_USE_SHA256, ids[0], &n[0]) == 0 &&
                      gnutls_pubkey_get_key_id(p->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, ids[1], &n[1]) == 0 &&
                      n[0] == n[1] && memcmp(ids[0], ids[1], n[0]) == 0;
    if (own) gnutls_pubkey_deinit(own);
    if (good) return true;
    return server_refuse(problem, 400, NULL, NULL, "--tls-key %.200s is not the key of the first certificate in %.200s",
                         tls->key, tls->certificate);
}

bool server_tls_reload(server_tls *tls, server_problem *problem)
{
    pair *p = calloc(1, sizeof *p);
    if (!p) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    if (!read_chain(p, tls->certificate, problem) || !read_key(p, tls->key, problem) || !check_match(p, tls, problem)) {
        pair_free(p);
        return false;
    }
    pthread_mutex_lock(&lock);
    p->older = tls->newest;
    tls->newest = p;
    pthread_mutex_unlock(&lock);
    return true;
}

static void tls_free(server_tls *tls)
{
    for (pair *p = tls->newest, *older; p; p = older) {
        older = p->older;
        pair_free(p);
    }
    free(tls->certificate);
    free(tls->key);
    free(tls);
}

bool server_tls_open(server_tls **out, const char *certificate, const char *key, server_problem *problem)
{
    *out = NULL;
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES ||
        MHD_is_feature_supported(MHD_FEATURE_HTTPS_CERT_CALLBACK) != MHD_YES)
        return server_refuse(problem, 400, NULL, NULL, "--tls-cert: this system's libmicrohttpd has no TLS");
    server_tls *tls = calloc(1, sizeof *tls);
    if (!tls) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    tls->certificate = strdup(certificate);
    tls->key = strdup(key);
    bool good = (tls->certificate && tls->key) || server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    good = good && server_tls_reload(tls, problem);
    pthread_mutex_lock(&lock);
    if (good && current) good = server_refuse(problem, 500, NULL, NULL, "this process has a server with TLS already");
    if (good) current = *out = tls;
    pthread_mutex_unlock(&lock);
    if (!good) tls_free(tls);
    return good;
}

void server_tls_close(server_tls *tls)
{
    if (!tls) return;
    pthread_mutex_lock(&lock);
    current = NULL;
    pthread_mutex_unlock(&lock);
    tls_free(tls);
}

#else

#include <stddef.h>

bool server_tls_open(server_tls **out, const char *certificate, const char *key, server_problem *problem)
{
    (void)certificate, (void)key;
    *out = NULL;
    return server_refuse(problem, 400, NULL, NULL,
                         "--tls-cert: this build has no TLS; install GnuTLS' development files and build again");
}

bool server_tls_reload(server_tls *tls, server_problem *problem)
{
    (void)tls;
    return server_refuse(problem, 400, NULL, NULL, "this build has no TLS");
}

void server_tls_close(server_tls *tls)
{
    (void)tls;
}

void *server_tls_callback(void)
{
    return NULL;
}

const char *server_tls_priorities(void)
{
    return NULL;
}

#endif

// SPDX-License-Identifier: MIT
// libcurl opened at run time, for programs that are not linked to it. Archives and wheels need only the system's C
// library, and use the installed libcurl with the system's certificates. Each function at the end has the name of a
// function of libcurl and calls it. If there is no libcurl, hub_curl_ready fails before any of them is called.
#include "hub/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

// The macros with these names check the types of arguments.
#undef curl_easy_setopt
#undef curl_easy_getinfo

// Names of the library with OpenSSL, with GnuTLS (Debian), and on macOS.
static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "/usr/lib/libcurl.4.dylib"};

#define FUNCTIONS(F)                                                               \
    F(CURLcode, curl_global_init, (long))                                          \
    F(CURL *, curl_easy_init, (void))                                              \
    F(void, curl_easy_cleanup, (CURL *))                                           \
    F(CURLcode, curl_easy_setopt, (CURL *, CURLoption, ...))                       \
    F(CURLcode, curl_easy_getinfo, (CURL *, CURLINFO, ...))                        \
    F(CURLcode, curl_easy_perform, (CURL *))                                       \
    F(const char *, curl_easy_strerror, (CURLcode))                                \
    F(struct curl_slist *, curl_slist_append, (struct curl_slist *, const char *)) \
    F(void, curl_slist_free_all, (struct curl_slist *))                            \
    F(void, curl_free, (void *))                                                   \
    F(CURLU *, curl_url, (void))                                                   \
    F(void, curl_url_cleanup, (CURLU *))                                           \
    F(CURLUcode, curl_url_get, (CURLU *, CURLUPart, char **, unsigned))            \
    F(CURLUcode, curl_url_set, (CURLU *, CURLUPart, const char *, unsigned))       \
    F(CURLM *, curl_multi_init, (void))                                            \
    F(CURLMcode, curl_multi_add_handle, (CURLM *, CURL *))                         \
    F(CURLMcode, curl_multi_remove_handle, (CURLM *, CURL *))                      \
    F(CURLMcode, curl_multi_perform, (CURLM *, int *))                             \
    F(CURLMsg *, curl_multi_info_read, (CURLM *, int *))                           \
    F(CURLMcode, curl_multi_cleanup, (CURLM *))

#define DECLARE(result, name, arguments) result(*name) arguments;
static struct {
    FUNCTIONS(DECLARE)
    DECLARE(CURLMcode, curl_multi_poll, (CURLM *, struct curl_waitfd *, unsigned, int, int *))
    bool is_open;
} opened;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find_all(void *library)
{
#define FIND(result, name, arguments)               \
    {                                               \
        void *const found = dlsym(library, #name);  \
        if (!found) return false;                   \
        memcpy(&opened.name, &found, sizeof found); \
    }
    FUNCTIONS(FIND)
    // Before 7.66 (macOS 11) only curl_multi_wait exists, which returns immediately if there is nothing to wait for.
    void *poll = dlsym(library, "curl_multi_poll");
    if (!poll) poll = dlsym(library, "curl_multi_wait");
    memcpy(&opened.curl_multi_poll, &poll, sizeof poll);
    return poll != NULL;
}

static void open_library(void)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !opened.is_open; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);   // never closed, because other threads may use it
        opened.is_open = library && find_all(library);
    }
}

hub_status hub_curl_ready(void)
{
    pthread_once(&once, open_library);
    if (opened.is_open) return HUB_OK;
    return hub_fail(HUB_E_UNSUPPORTED, "fetching models needs libcurl, which is not installed here "
                                       "(libcurl4 of Debian and Ubuntu, libcurl of Fedora, curl of Arch)");
}

// The third argument of these functions is a long, a curl_off_t or a pointer: all have 64 bits and are passed in the
// same way.
CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    void *value = va_arg(arguments, void *);
    va_end(arguments);
    return opened.curl_easy_setopt(curl, option, value);
}

CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
    va_list arguments;
    va_start(arguments, info);
    void *out = va_arg(arguments, void *);
    va_end(arguments);
    return opened.curl_easy_getinfo(curl, info, out);
}

CURLcode curl_global_init(long flags)
{
    return opened.curl_global_init(flags);
}

CURL *curl_easy_init(void)
{
    return opened.curl_easy_init();
}

void curl_easy_cleanup(CURL *curl)
{
    opened.curl_easy_cleanup(curl);
}

CURLcode curl_easy_perform(CURL *curl)
{
    return opened.curl_easy_perform(curl);
}

const char *curl_easy_strerror(CURLcode code)
{
    return opened.curl_easy_strerror(code);
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
    return opened.curl_slist_append(list, text);
}

void curl_slist_free_all(struct curl_slist *list)
{
    opened.curl_slist_free_all(list);
}

void curl_free(void *memory)
{
    opened.curl_free(memory);
}

CURLU *curl_url(void)
{
    return opened.curl_url();
}

void curl_url_cleanup(CURLU *url)
{
    opened.curl_url_cleanup(url);
}

CURLUcode curl_url_get(CURLU *url, CURLUPart part, char **text, unsigned flags)
{
    return opened.curl_url_get(url, part, text, flags);
}

CURLUcode curl_url_set(CURLU *url, CURLUPart part, const char *text, unsigned flags)
{
    return opened.curl_url_set(url, part, text, flags);
}

CURLM *curl_multi_init(void)
{
    return opened.curl_multi_init();
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *curl)
{
    return opened.curl_multi_add_handle(multi, curl);
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *curl)
{
    return opened.curl_multi_remove_handle(multi, curl);
}

CURLMcode curl_multi_perform(CURLM *multi, int *n_running)
{
    return opened.curl_multi_perform(multi, n_running);
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *n_left)
{
    return opened.curl_multi_info_read(multi, n_left);
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
    return opened.curl_multi_cleanup(multi);
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd extra[], unsigned n_extra, int ms, int *n_ready)
{
    return opened.curl_multi_poll(multi, extra, n_extra, ms, n_ready);
}

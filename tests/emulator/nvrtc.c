// SPDX-License-Identifier: MIT
// NVRTC's functions for the emulator: a kernel becomes a shared library for the host, by the C++ compiler. Its "cubin"
// is the library's bytes after a header of 16. Libraries are cached in a folder of the build, by a hash of their
// sources and options, because test programs share many kernels.
#include "emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct program {
    char *source, *name;
    char **headers, **names;
    int n_headers;
    uint8_t *code;
    size_t n_bytes;
    char log[4096];
} program;

enum { FAILED = 6 };   // NVRTC_ERROR_COMPILATION

int nvrtcVersion(int *major, int *minor)
{
    *major = 13, *minor = 0;
    return 0;
}

int nvrtcCreateProgram(program **out, const char *source, const char *name, int n_headers, const char *const *headers,
                       const char *const *names)
{
    program *p = calloc(1, sizeof *p);
    *out = p;
    if (!p) return FAILED;
    p->source = strdup(source);
    p->name = strdup(name);
    p->headers = calloc((size_t)n_headers + 1, sizeof *p->headers);
    p->names = calloc((size_t)n_headers + 1, sizeof *p->names);
    p->n_headers = n_headers;
    for (int i = 0; i < n_headers; i++) p->headers[i] = strdup(headers[i]), p->names[i] = strdup(names[i]);
    return 0;
}

int nvrtcDestroyProgram(program **out)
{
    program *p = *out;
    for (int i = 0; i < p->n_headers; i++) free(p->headers[i]), free(p->names[i]);
    free(p->headers), free(p->names), free(p->source), free(p->name), free(p->code), free(p);
    *out = NULL;
    return 0;
}

// extern arrays in shared memory are emulated.h's `shared`; other variables there are static.
static void write_source(FILE *to, const char *text)
{
    static const char outer[] = "extern __shared__", inner[] = "__shared__";
    while (*text) {
        if (strncmp(text, outer, sizeof outer - 1) == 0) {
            text += strcspn(text, ";");
        } else if (strncmp(text, inner, sizeof inner - 1) == 0) {
            fputs("static", to);
            text += sizeof inner - 1;
        } else {
            fputc(*text++, to);
        }
    }
}

static bool is_name(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

// Appends, for each kernel, an untyped function that launches call, and the size of the kernel's struct of arguments.
static void write_entries(FILE *to, const char *text)
{
    for (const char *at = text; (at = strstr(at, "extern \"C\" __global__")) != NULL; at++) {
        const char *end = strstr(at, "\n{"), *name = end;
        char type[64] = "";
        if (!end) return;
        while (name > at && *name != '(') name--;
        const char *const arguments = name;
        while (is_name(name[-1])) name--;
        sscanf(arguments, "(const %60[a-z0-9_]", type);
        const int n = (int)(arguments - name);
        fprintf(to, "\nextern \"C\" EMULATED_EXPORT void entry_%.*s(const void *a)\n{\n    %.*s(*(const %s *)a);\n}\n",
                n, name, n, name, type);
        fprintf(to, "extern \"C\" EMULATED_EXPORT const unsigned long bytes_%.*s = sizeof(%s);\n", n, name, type);
    }
}

static bool write_file(const char *folder, const char *name, const char *text, bool is_kernel)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = fopen(path, "w");
    if (!to) return false;
    write_source(to, text);
    if (is_kernel) write_entries(to, text);
    return fclose(to) == 0;
}

static bool read_file(const char *path, size_t head, uint8_t **out, size_t *n_bytes)
{
    FILE *from = fopen(path, "rb");
    struct stat st;
    if (!from) return false;
    bool ok = fstat(fileno(from), &st) == 0;
    *n_bytes = ok ? (size_t)st.st_size + head : 0;
    *out = ok ? malloc(*n_bytes) : NULL;
    ok = *out && fread(*out + head, 1, *n_bytes - head, from) == *n_bytes - head;
    fclose(from);
    return ok;
}

// Hashes the compiler's options and all texts: FNV-1a of 128 bits.
static void name_library(const program *p, const char *defines, char *out, size_t size)
{
    unsigned __int128 hash = (unsigned __int128)0x6c62272e07bb0142u << 64 | 0x62b821756295c58du;
    const char *const first[] = {EMULATOR_COMPILER EMULATOR_FLAGS, defines, p->name, p->source};
    for (int i = 0; i < 4 + 2 * p->n_headers; i++) {
        const char *text = i < 4 ? first[i] : i % 2 == 0 ? p->names[i / 2 - 2] : p->headers[i / 2 - 2];
        do {
            hash = (hash ^ (uint8_t)*text) * (((unsigned __int128)1 << 88) + 0x13b);
        } while (*text++);
    }
    snprintf(out, size, EMULATOR_KERNELS "/%016llx%016llx.so", (unsigned long long)(hash >> 64),
             (unsigned long long)hash);
}

static bool read_library(program *p, const char *path)
{
    if (!read_file(path, EMULATED_HEAD, &p->code, &p->n_bytes)) return false;
    const uint64_t head[2] = {EMULATED_MAGIC, p->n_bytes};
    memcpy(p->code, head, sizeof head);
    return true;
}

// Renames the library into place, because another program may compile the same library at the same time.
static bool make_library(program *p, const char *folder, const char *defines, const char *library)
{
    char command[8192], path[512];
    snprintf(command, sizeof command,
             EMULATOR_COMPILER " " EMULATOR_FLAGS " -shared -I'%s' -include '" EMULATOR_HEADER
                               "' %s -x c++ '%s/%s' -o '%s/kernel.so' 2>'%s/log'",
             folder, defines, folder, p->name, folder, folder);
    const int result = system(command);
    snprintf(path, sizeof path, "%s/log", folder);
    FILE *log = fopen(path, "r");
    if (log) p->log[fread(p->log, 1, sizeof p->log - 1, log)] = 0, fclose(log);
    snprintf(path, sizeof path, "%s/kernel.so", folder);
    return result == 0 && rename(path, library) == 0;
}

static bool write_sources(const program *p, const char *folder)
{
    char command[1200];
    bool ok = write_file(folder, p->name, p->source, true);
    for (int i = 0; i < p->n_headers && ok; i++) {
        if (strcmp(p->names[i], p->name) == 0) continue;
        ok = write_file(folder, p->names[i], p->headers[i], false);
    }
    snprintf(command, sizeof command, "cp '" EMULATOR_FOLDER "/ptx.cuh' '" EMULATOR_FOLDER "/wgmma.cuh' '%s/'", folder);
    return ok && system(command) == 0;
}

int nvrtcCompileProgram(program *p, int n_options, const char *const *options)
{
    char folder[] = EMULATOR_KERNELS "/XXXXXX", defines[4096] = "", library[600], command[600];
    size_t n = 0;
    for (int i = 0; i < n_options; i++)
        if (strncmp(options[i], "-D", 2) == 0 && n < sizeof defines - 80)
            n += (size_t)snprintf(defines + n, sizeof defines - n, "'%s' ", options[i]);
    name_library(p, defines, library, sizeof library);
    if (read_library(p, library)) return 0;
    if (!mkdtemp(folder)) return FAILED;
    const bool ok = write_sources(p, folder) && make_library(p, folder, defines, library);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 && ok && read_library(p, library) ? 0 : FAILED;
}

int nvrtcGetProgramLogSize(program *p, size_t *n)
{
    *n = strlen(p->log) + 1;
    return 0;
}

int nvrtcGetProgramLog(program *p, char *log)
{
    strcpy(log, p->log);
    return 0;
}

int nvrtcGetCUBINSize(program *p, size_t *n)
{
    *n = p->n_bytes;
    return 0;
}

int nvrtcGetCUBIN(program *p, char *cubin)
{
    memcpy(cubin, p->code, p->n_bytes);
    return 0;
}

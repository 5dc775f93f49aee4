// SPDX-License-Identifier: MIT
// Compiling programs on several threads.
#include "backend/cuda/runtime/compile.h"
#include "backend/cuda/runtime/cubin_cache.h"
#include "backend/cuda/runtime/sources.h"
#include "base/buf.h"
#include "base/machine/cpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_OPTIONS = 64, MAX_HEADERS = 64, MOST_THREADS = 64, PROGRAM_BYTES = 256 << 20 };

static const char *text_of(const char *file)
{
    for (size_t i = 0; i < frit_cuda_n_sources; i++)
        if (strcmp(frit_cuda_sources[i].name, file) == 0) return frit_cuda_sources[i].text;
    return NULL;
}

// Instructions of a single generation (wgmma, setmaxnreg) need the "a" variant of its architecture.
static void print_arch(frit_buf *to, int arch)
{
    frit_buf_printf(to, "--gpu-architecture=sm_%d%s", arch, arch >= 90 ? "a" : "");
}

// Versions of driver and compiler. 0 without a compiler: cubins of any maker are used.
static uint64_t maker_of(const frit_cuda_compiler *compiler)
{
    const frit_nvrtc *nvrtc = compiler->nvrtc;
    return nvrtc ? (uint64_t)compiler->driver_version << 32 | (uint64_t)nvrtc->major << 16 | (uint64_t)nvrtc->minor : 0;
}

// The text whose hash is the key of the cubin. Sources include each other, so the text has all of them.
static void describe(const frit_cuda_compiler *compiler, const frit_cuda_program *program, frit_buf *to)
{
    print_arch(to, compiler->arch);
    frit_buf_printf(to, "\n%s\n", program->file);
    for (int i = 0; i < program->n_defines; i++) frit_buf_printf(to, "%s\n", program->defines[i]);
    for (size_t i = 0; i < frit_cuda_n_sources; i++)
        frit_buf_printf(to, "%s\n%s\n", frit_cuda_sources[i].name, frit_cuda_sources[i].text);
}

// ------------------------------------------------------------------------------- one program

static char *log_of(const frit_nvrtc *nvrtc, frit_nvrtc_program p)
{
    size_t n = 0;
    if (nvrtc->log_bytes(p, &n) != 0) return NULL;
    char *log = calloc(n + 1, 1);
    if (log && n > 0 && nvrtc->log_text(p, log) != 0) log[0] = 0;
    return log;
}

static int count_spills(const char *report)
{
    int n = 0;
    static const char word[] = " bytes spill stores";
    for (const char *at = report; (at = strstr(at, word)); at += sizeof word - 1) {
        const char *digits = at;
        while (digits > report && digits[-1] >= '0' && digits[-1] <= '9') digits--;
        n += (int)strtol(digits, NULL, 10);
    }
    return n;
}

static frit_status take_cubin(const frit_nvrtc *nvrtc, frit_nvrtc_program p, frit_cuda_program *program)
{
    size_t n = 0;
    if (nvrtc->cubin_bytes(p, &n) != 0 || n == 0)
        return frit_fail(FRIT_E_UNSUPPORTED, "kernels/%s: NVRTC returns no code", program->file);
    program->cubin = malloc(n);
    if (!program->cubin) return frit_fail_memory(n, "a compiled kernel");
    program->n_bytes = n;
    if (nvrtc->cubin(p, (char *)program->cubin) == 0) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED, "kernels/%s: NVRTC returns no code", program->file);
}

static frit_status run_compiler(const frit_cuda_compiler *compiler, frit_nvrtc_program p, frit_cuda_program *program,
                                const char *const *options, int n_options)
{
    const frit_nvrtc *nvrtc = compiler->nvrtc;
    const int result = nvrtc->compile(p, n_options, options);
    char *log = log_of(nvrtc, p);
    frit_status status = FRIT_OK;
    if (result != 0)
        status = frit_fail(FRIT_E_UNSUPPORTED, "kernels/%s for sm_%d: NVRTC %d.%d: error %d: %.600s", program->file,
                           compiler->arch, nvrtc->major, nvrtc->minor, result, log ? log : "");
    else
        status = take_cubin(nvrtc, p, program);
    if (status == FRIT_OK && compiler->wants_report && log) {
        program->n_spilled = count_spills(log);
        program->report = log;
        log = NULL;
    }
    free(log);
    return status;
}

static frit_status compile_with(const frit_cuda_compiler *compiler, frit_cuda_program *program, const char *arch)
{
    const char *names[MAX_HEADERS], *texts[MAX_HEADERS], *options[MAX_OPTIONS];
    int n_headers = 0, n_options = 0;
    const char *text = text_of(program->file);
    if (!text) return frit_fail(FRIT_E_INVALID, "kernels/%s does not exist", program->file);
    for (size_t i = 0; i < frit_cuda_n_sources && n_headers < MAX_HEADERS; i++, n_headers++) {
        names[n_headers] = frit_cuda_sources[i].name;
        texts[n_headers] = frit_cuda_sources[i].text;
    }
    options[n_options++] = arch;
    options[n_options++] = "--std=c++17";
    options[n_options++] = "--device-as-default-execution-space";
    if (compiler->wants_report) options[n_options++] = "--ptxas-options=-v";
    frit_buf defines[MAX_OPTIONS] = {{0}};
    bool failed = program->n_defines > MAX_OPTIONS - n_options;
    const int n_defines = failed ? 0 : program->n_defines;
    for (int i = 0; i < n_defines; i++) {
        frit_buf_printf(&defines[i], "-D%s", program->defines[i]);
        failed = failed || defines[i].failed;
        options[n_options++] = defines[i].data;
    }
    frit_nvrtc_program p = NULL;
    frit_status status = FRIT_OK;
    if (failed || compiler->nvrtc->create(&p, text, program->file, n_headers, texts, names) != 0)
        status = frit_fail(FRIT_E_UNSUPPORTED, "kernels/%s: NVRTC does not accept the program", program->file);
    else
        status = run_compiler(compiler, p, program, options, n_options);
    if (p) compiler->nvrtc->destroy(&p);
    for (int i = 0; i < n_defines; i++) frit_buf_free(&defines[i]);
    return status;
}

// The sentence names what the machine lacks. The user may install a compiler, or bring the kernel.
static frit_status fail_without_compiler(const frit_cuda_compiler *compiler, const frit_cuda_program *program)
{
    const frit_cubin_archive *archive = compiler->archive;
    return frit_fail(
        FRIT_E_NOT_FOUND,
        "kernels/%s for sm_%d: not kept in %s from an earlier start%s%s, and there is no NVRTC to compile "
        "it; install NVRTC (the Python package nvidia-cuda-nvrtc), or write the kernels of this model with "
        "'frit kernels' where NVRTC is",
        program->file, compiler->arch, compiler->folder ? compiler->folder : "a folder", archive ? ", not in " : "",
        archive ? frit_cubin_archive_path(archive) : "");
}

static frit_status compile_one(const frit_cuda_compiler *compiler, frit_cuda_program *program)
{
    if (!compiler->nvrtc) return fail_without_compiler(compiler, program);
    frit_buf arch = {0};
    print_arch(&arch, compiler->arch);
    const frit_status status =
        arch.failed ? frit_fail_memory(arch.len, "options of NVRTC") : compile_with(compiler, program, arch.data);
    frit_buf_free(&arch);
    return status;
}

static uint8_t *copy_from_archive(const frit_cuda_compiler *compiler, frit_cubin_key key, size_t *n_bytes)
{
    bool is_damaged;
    const uint8_t *code = frit_cubin_archive_find(compiler->archive, key, n_bytes, &is_damaged);
    if (is_damaged)
        frit_log_say(&compiler->log, FRIT_LOG_WARNING, "%s has a damaged kernel, which is compiled again",
                     frit_cubin_archive_path(compiler->archive));
    uint8_t *copy = code ? malloc(*n_bytes) : NULL;
    if (copy) memcpy(copy, code, *n_bytes);
    return copy;
}

// The cubin of the folder or, if it has none, of the archive. A report comes from compiling only.
static void find_cubin(const frit_cuda_compiler *compiler, frit_cuda_program *program)
{
    const frit_cubin_cache folder = {compiler->folder, maker_of(compiler), &compiler->log};
    if (compiler->wants_report) return;
    if (folder.folder) program->cubin = frit_cubin_cache_read(&folder, program->key, &program->n_bytes);
    if (!program->cubin && compiler->archive)
        program->cubin = copy_from_archive(compiler, program->key, &program->n_bytes);
    program->was_cached = program->cubin != NULL;
}

static frit_status find_key(const frit_cuda_compiler *compiler, frit_cuda_program *program)
{
    frit_buf description = {0};
    describe(compiler, program, &description);
    const frit_status status =
        description.failed ? frit_fail_memory(description.len, "the description of a kernel") : FRIT_OK;
    if (status == FRIT_OK) program->key = frit_cubin_key_of((frit_str){description.data, description.len});
    frit_buf_free(&description);
    return status;
}

// Finds the cubin, or compiles it and writes it to the folder. A folder that cannot be used costs a warning.
static frit_status provide_cubin(const frit_cuda_compiler *compiler, frit_cuda_program *program)
{
    program->n_spilled = -1;
    program->was_cached = false;
    if (compiler->folder || compiler->archive || compiler->collected) FRIT_TRY(find_key(compiler, program));
    find_cubin(compiler, program);
    if (program->was_cached) return FRIT_OK;
    FRIT_TRY(compile_one(compiler, program));
    const frit_cubin_cache folder = {compiler->folder, maker_of(compiler), &compiler->log};
    if (folder.folder) frit_cubin_cache_write(&folder, program->key, program->cubin, program->n_bytes);
    return FRIT_OK;
}

frit_cubin_key frit_cuda_sources_key(void)
{
    frit_buf all = {0};
    for (size_t i = 0; i < frit_cuda_n_sources; i++)
        frit_buf_printf(&all, "%s\n%s\n", frit_cuda_sources[i].name, frit_cuda_sources[i].text);
    const frit_cubin_key key = frit_cubin_key_of((frit_str){all.data, all.failed ? 0 : all.len});
    frit_buf_free(&all);
    return key;
}

// ------------------------------------------------------------------------------- all of them

typedef struct work {
    const frit_cuda_compiler *compiler;
    frit_cuda_program *programs;
    size_t n;
    _Atomic size_t next, n_done;
    atomic_bool is_cancelled;
    int most_threads;
    struct outcome {
        frit_status status;
        char sentence[FRIT_ERROR_BYTES];
    } * outcomes;
} work;

// Threads that compile at the same time. NVRTC takes up to PROGRAM_BYTES for a program.
static int count_threads(void)
{
    const uint64_t n = frit_memory_available() / PROGRAM_BYTES;
    return n < 1 ? 1 : n < MOST_THREADS ? (int)n : MOST_THREADS;
}

static void compile_next(work *w, size_t i)
{
    w->outcomes[i].status = provide_cubin(w->compiler, &w->programs[i]);
    if (w->outcomes[i].status != FRIT_OK)   // error text is thread-local
        snprintf(w->outcomes[i].sentence, sizeof w->outcomes[i].sentence, "%s", frit_error());
    atomic_fetch_add(&w->n_done, 1);
}

// True if the work goes on.
static bool report(work *w)
{
    const frit_cuda_compiler *c = w->compiler;
    if (c->progress && !c->progress(c->progress_ctx, (double)atomic_load(&w->n_done) / (double)w->n))
        atomic_store(&w->is_cancelled, true);
    return !atomic_load(&w->is_cancelled);
}

static void compile_some(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    work *w = ctx;
    size_t i;
    if (thread >= w->most_threads) return;
    while ((thread > 0 ? !atomic_load(&w->is_cancelled) : report(w)) && (i = atomic_fetch_add(&w->next, 1)) < w->n)
        compile_next(w, i);
}

static frit_status collect(const frit_cuda_compiler *compiler, const frit_cuda_program *programs, size_t n)
{
    frit_cubin_list *list = compiler->collected;
    for (size_t i = 0; i < n; i++) {
        FRIT_TRY(frit_cubin_list_add(list, programs[i].key, programs[i].cubin, programs[i].n_bytes));
        if (programs[i].was_cached) continue;
        list->nvrtc_major = (uint32_t)compiler->nvrtc->major;
        list->nvrtc_minor = (uint32_t)compiler->nvrtc->minor;
    }
    return FRIT_OK;
}

frit_status frit_cuda_compile(const frit_cuda_compiler *compiler, frit_pool *pool, frit_cuda_program *programs,
                              size_t n)
{
    work w = {.compiler = compiler, .programs = programs, .n = n, .most_threads = count_threads()};
    for (size_t i = 0; i < n; i++) {
        programs[i].cubin = NULL;
        programs[i].report = NULL;
    }
    w.outcomes = calloc(n + 1, sizeof *w.outcomes);
    if (!w.outcomes) return frit_fail_memory(n * sizeof *w.outcomes, "the outcomes of compiling");
    if (n > 0) frit_pool_run(pool, compile_some, &w);
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < n && status == FRIT_OK; i++)
        if (w.outcomes[i].status != FRIT_OK) status = frit_fail(w.outcomes[i].status, "%s", w.outcomes[i].sentence);
    if (status == FRIT_OK && w.is_cancelled) status = frit_fail(FRIT_E_CANCELLED, "compiling kernels was cancelled");
    if (status == FRIT_OK && compiler->collected) status = collect(compiler, programs, n);
    if (status != FRIT_OK) frit_cuda_programs_free(programs, n);
    free(w.outcomes);
    return status;
}

void frit_cuda_programs_free(frit_cuda_program *programs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(programs[i].cubin);
        free(programs[i].report);
        programs[i].cubin = NULL;
        programs[i].report = NULL;
        programs[i].n_bytes = 0;
    }
}

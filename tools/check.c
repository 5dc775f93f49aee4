// SPDX-License-Identifier: MIT
// The rules of the project that compilers do not check: layers, sizes, banned calls, the layout of text, and words that
// are not used.
//
//     frit_check [folder]      prints each fault as file:line: sentence; ends with 1 if there was one
//
// Each file is read line by line. Rules about calls and directives look at a copy of the line without comments and
// literals ("code"), rules about words at a copy with nothing else ("prose"). A function starts at a line that is "{"
// alone in the first column and ends at the next "}" there, which .clang-format guarantees.
#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
    MAX_COLUMNS = 120,
    MAX_TABLE_COLUMNS = 160,
    FILE_WARN = 800,
    FILE_FAIL = 1000,
    FUNCTION_WARN = 80,
    FUNCTION_FAIL = 150
};
enum { PATH_BYTES = 1024, LINE_BYTES = 8192, MAX_FILES = 10000 };

// clang-format off

#define BELOW_ENGINE "frit.h frit_tools.h base/ media/ quant/ format/ graph/ arch/ backend/ text/ grammar/ sample/ convert/ "

// The folders that each folder may include. A path belongs to the first row that it starts with. A word that ends with
// '/' allows a folder, any other word one header, relative to src/.
static const struct { const char *folder, *may_include; } layers[] = {
    {"src/base/",         "frit.h frit_tools.h base/"},
    {"src/quant/",        "frit.h base/ quant/"},
    {"src/media/",        "frit.h base/ media/"},
    {"src/format/",       "frit.h base/ quant/ media/processor.h format/"},
    {"src/graph/",        "frit.h base/ quant/ format/ graph/ sample/pick.h"},
    {"src/arch/",         "frit.h base/ quant/ format/ graph/ arch/"},
    {"src/backend/cpu/",  "frit.h frit_tools.h base/ quant/ format/rows.h graph/ sample/pick.h sample/pick_runner.h "
                          "backend/backend.h backend/store_cache.h backend/cpu/"},
    {"src/backend/webgpu/", "frit.h base/ quant/ format/rows.h graph/ sample/pick_runner.h backend/backend.h "
                            "backend/webgpu/ backend/cuda/weights/repack.h"},
    {"src/backend/cuda/", "frit.h base/ quant/ format/rows.h graph/ sample/weight.h backend/backend.h backend/cuda/"},
    {"src/backend/",      "frit.h frit_tools.h base/ quant/ graph/ backend/"},
    {"src/text/",         "frit.h base/ format/ text/"},
    {"src/grammar/",      "frit.h base/ text/vocab/vocab.h text/answer/ grammar/"},
    {"src/sample/",       "frit.h base/ text/vocab/vocab.h grammar/ sample/"},
    {"src/convert/",      "frit.h frit_tools.h base/ quant/ format/ graph/ arch/ text/ convert/"},
    // Within the engine: model and adapters; cache; session; schedule; plans; engine.
    {"src/engine/model/",    BELOW_ENGINE "engine/model/"},
    {"src/engine/lora/adapter.", BELOW_ENGINE "engine/model/ engine/lora/"},
    {"src/engine/kv/kv",     BELOW_ENGINE "engine/kv/"},
    {"src/engine/kv/prefix_", BELOW_ENGINE "engine/kv/"},
    {"src/engine/kv/session_prefix.h", BELOW_ENGINE "engine/kv/"},
    {"src/engine/spec/ngrams.", BELOW_ENGINE "engine/spec/"},
    {"src/engine/spec/draft_budget.", BELOW_ENGINE "engine/spec/"},
    {"src/engine/spec/speculate.h", BELOW_ENGINE "engine/spec/drafter.h"},
    {"src/engine/spec/drafter.h", BELOW_ENGINE "engine/spec/ engine/sched/schedule.h"},
    {"src/engine/media/soft.h", BELOW_ENGINE},
    {"src/engine/media/media.h", BELOW_ENGINE "engine/media/soft.h"},
    {"src/engine/session/pick_request.h", BELOW_ENGINE},
    {"src/engine/session/hidden.h", BELOW_ENGINE},
    {"src/engine/session/shift.h", BELOW_ENGINE},
    {"src/engine/session/session.h", BELOW_ENGINE "engine/lora/adapter.h engine/kv/ engine/media/soft.h engine/session/"},
    {"src/engine/session/classifier.", BELOW_ENGINE "engine/session/classifier.h engine/model/"},
    {"src/engine/session/saved.", BELOW_ENGINE "engine/session/saved.h engine/kv/kv_layout.h"},
    {"src/engine/sched/tables.h",   BELOW_ENGINE},
    {"src/engine/sched/schedule.h", BELOW_ENGINE "engine/session/session.h engine/sched/tables.h"},
    {"src/engine/sched/step_cost.h", BELOW_ENGINE "engine/sched/schedule.h"},
    {"src/engine/sched/prompt_share.h", BELOW_ENGINE "engine/session/session.h"},
    {"src/engine/sched/flight.h",   BELOW_ENGINE "engine/placement/plans.h engine/sched/schedule.h"},
    {"src/engine/placement/placement.h", BELOW_ENGINE "engine/kv/kv_layout.h"},
    {"src/engine/placement/plans.h", BELOW_ENGINE "engine/lora/adapter.h"},
    {"src/engine/placement/fit.",    BELOW_ENGINE "engine/placement/fit.h engine/kv/kv_layout.h"},
    {"src/engine/placement/needs.h", BELOW_ENGINE "engine/engine.h engine/placement/fit.h"},
    {"src/engine/",          BELOW_ENGINE "engine/"},
    {"src/quantize/",        BELOW_ENGINE "engine/ quantize/"},
    {"apps/hub/",         "frit.h frit_tools.h base/sha256.h common/grow.h common/text_file.h frit/cli/config.h hub/"},
    {"apps/",             "frit.h frit_tools.h frit/ common/ hub/ server/"},
    {"examples/",         "frit.h"},
    {"tests/",            "frit.h frit_tools.h support/ base/ media/ quant/ format/ graph/ arch/ backend/ convert/ text/ grammar/ sample/ engine/ quantize/ "
                          "common/ hub/ server/ frit/"},
    {"bench/",            "frit.h base/ quant/ format/ graph/ arch/ backend/ text/ grammar/ sample/ engine/"},
    {"tools/",            ""},
    {"include/frit/",     ""},
    {"include/frit.h",    "frit/"},
    {"include/",          "frit.h"},
};

// Functions that the library must not call. It returns a status: it does not end the process, print, or read its
// environment. The other functions write past the end of a buffer, or keep hidden state.
static const char *const banned_calls[] = {
    "exit", "_exit", "abort", "system", "popen", "getenv", "setenv",
    "printf", "fprintf", "vprintf", "vfprintf", "puts", "fputs", "putchar", "perror",
    "gets", "strcpy", "strcat", "sprintf", "vsprintf", "strtok", "alloca", "rand", "srand", "atoi",
};

// Calls that depend on the host's locale or are unsafe beside other threads, and their replacements in the library.
static const struct { const char *call, *instead, *home; bool in_apps; } replaced_calls[] = {
    {"strtod",    "frit_parse_double", "src/base/number.c", true},
    {"strtof",    "frit_parse_double", NULL,                true},
    {"strtold",   "frit_parse_double", NULL,                true},
    {"atof",      "frit_parse_double", NULL,                true},
    {"vsnprintf", "frit_vformat",      "src/base/number.c", false},
    {"setlocale", "frit_vformat",      "src/base/number.c", false},
    {"strerror",  "frit_errno_text",   NULL,                false},
};

// Calls that use the decimal point of the host's locale if their format has a fraction.
static const struct { const char *call, *instead; } format_calls[] = {
    {"snprintf", "frit_format"}, {"sscanf", "frit_parse_double"},
};

// Macros of operating systems, which only base/ and files with a system's suffix may use.
static const char *const system_macros[] = {"_WIN32", "__linux__", "__APPLE__", "__unix__"};

// Files of constant tables, which may have any length.
static const char *const long_files[] = {
    "src/quant/levels_data.c",
};

// Words that comments, messages and pages do not use, and their replacements: metaphors for code, and private words.
static const struct { const char *word, *instead; } unused_words[] = {
    {"whoever",        "name the function, thread or caller"},
    {"who",            "name the function, thread or caller"},
    {"nobody",         "no thread, no caller, not used"},
    {"somebody",       "name the function, thread or caller"},
    {"everybody",      "all threads, all callers"},
    {"behind",         "after"},
    {"is none",        "say what was found and what is expected"},
    {"is there twice", "occurs twice"},
    {"by turns",       "interleaved"},
    {"hold that",      "check that"},
    {"goes on with",   "continues with"},
    {"the house",      "the project"},
    {"mended",         "fixed"},
};

// Folders and files in which the rules about words apply.
static const char *const plain_prose[] = {
    "src/base/", "src/media/", "src/quant/", "src/format/", "src/arch/", "src/text/", "src/sample/", "src/grammar/", "src/convert/",
    "src/engine/", "src/quantize/", "include/", "src/graph/", "src/backend/", "apps/", "bench/",
    "docs/", "CONTRIBUTING.md", "README.md",
};

// Words with which a comment does not begin: they lean on another comment, or hide the noun that the comment is about.
static const char *const refused_openings[] = {
    "Of", "The same", "Those", "These", "So many", "As many", "That of", "Its", "Their", "They", "It", "Which", "Whose", "Such",
    "What", "Whether",
};

// Folders whose files are not checked.
static const char *const skipped[] = {"build", "node_modules", "models", "abi"};

// clang-format on

typedef struct file {
    const char *path;
    bool in_src, in_kernels, may_be_long, is_c, is_header, is_page, is_plain;
    const char *may_include;   // NULL: anything
    int n_lines;
    bool is_table;                              // between clang-format off and on
    bool in_comment;                            // inside a block comment
    bool after_comment;                         // the previous line is a comment of its own
    const char *comment;                        // the text of the line's // comment, or NULL
    const char *format_call, *format_instead;   // the call of format_calls whose statement is not complete
    int function_line;                          // line of its "{"; 0: outside functions
    char function[128];
} file;

static int n_faults, n_warnings, n_files;
static long n_lines_total;
static char *paths[MAX_FILES];

static void say(const char *path, int line, const char *kind, const char *format, va_list args)
{
    printf("%s:%d: %s", path, line, kind);
    vprintf(format, args);
    printf("\n");
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void
fault(const file *f, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(f->path, line, "", format, args);
    va_end(args);
    n_faults++;
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void
warn(const file *f, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(f->path, line, "warning: ", format, args);
    va_end(args);
    n_warnings++;
}

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *text, const char *suffix)
{
    size_t n = strlen(text), k = strlen(suffix);
    return n >= k && strcmp(text + n - k, suffix) == 0;
}

// ---------------------------------------------------------------------------------------- the text of a line

static void check_text(const file *f, const char *line, size_t n)
{
    int column = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c == '\t') fault(f, f->n_lines, "a tab");
        if (c == '\r') fault(f, f->n_lines, "a carriage return");
        if (c >= 0x80) fault(f, f->n_lines, "a character outside ASCII, in column %zu", i + 1);
        if (c == '\t' || c == '\r' || c >= 0x80) return;   // one fault for each line is enough
        column++;
    }
    if (n > 0 && line[n - 1] == ' ') fault(f, f->n_lines, "space at the end");
    int most = f->is_table ? MAX_TABLE_COLUMNS : MAX_COLUMNS;
    if (column > most && !ends(f->path, ".def"))
        fault(f, f->n_lines, "%d columns, at most %d are allowed", column, most);
}

static void check_head(const file *f, const char *line)
{
    if (f->n_lines == 1 && strcmp(line, "// SPDX-License-Identifier: MIT") != 0)
        fault(f, 1, "the first line is not // SPDX-License-Identifier: MIT");
    if (f->n_lines != 2) return;
    if (!starts(line, "// ")) fault(f, 2, "the second line does not say what the file is");
    if (!f->is_header || !starts(line, "// ")) return;
    // A header names itself by its include path: "// base/file/file.h: ..." in src/base/file/file.h.
    const char *name = strchr(f->path, '/') ? strchr(f->path, '/') + 1 : f->path;
    if (!starts(line + 3, name) || line[3 + strlen(name)] != ':')
        fault(f, 2, "the second line does not start with // %s:", name);
}

// Copies the line without comments and with empty literals: "x" becomes "". Directives keep their quoted path.
static void strip(file *f, const char *line, char *code)
{
    const char *p = line;
    f->comment = NULL;
    while (*p) {
        if (f->in_comment) {
            const char *end = strstr(p, "*/");
            f->in_comment = end == NULL;
            if (!end) break;
            p = end + 2;
        } else if (p[0] == '/' && p[1] == '/') {
            f->comment = p + 2 + strspn(p + 2, " ");
            break;
        } else if (p[0] == '/' && p[1] == '*') {
            f->in_comment = true;
            p += 2;
        } else if (*p == '"' || *p == '\'') {
            char quote = *code++ = *p++;
            while (*p && *p != quote) p += *p == '\\' && p[1] ? 2 : 1;
            if (*p) *code++ = *p++;
        } else {
            *code++ = *p++;
        }
    }
    *code = 0;
}

// ---------------------------------------------------------------------------------------- the prose of a line

// Copies the comments and literals of a line of C, with a space between them. `in_comment`: the line begins in a
// comment.
static void prose_of(bool in_comment, const char *line, char *prose)
{
    for (const char *p = line; *p;) {
        const char *end = NULL;
        if (in_comment || (p[0] == '/' && (p[1] == '*' || p[1] == '/'))) {
            end = in_comment || p[1] == '*' ? strstr(p + (in_comment ? 0 : 2), "*/") : NULL;
            end = end ? end + 2 : p + strlen(p);
            in_comment = false;
        } else if (*p == '"' || *p == '\'') {
            for (end = p + 1; *end && *end != *p; end++) end += *end == '\\' && end[1];
            if (*end) end++;
        }
        if (!end) {
            p++;
            continue;
        }
        memcpy(prose, p, (size_t)(end - p));
        prose += end - p;
        *prose++ = ' ';
        p = end;
    }
    *prose = 0;
}

// Copies a line of a page without text between backquotes. Indented lines are examples and give no prose.
static void prose_of_page(const char *line, char *prose)
{
    bool is_code = starts(line, "    ");
    for (const char *p = line; *p && !starts(line, "    "); p++) {
        if (*p == '`') is_code = !is_code;
        if (!is_code) *prose++ = *p;
    }
    *prose = 0;
}

static bool says(const char *prose, const char *words)
{
    const size_t n = strlen(words);
    for (const char *p = prose; *p; p++) {
        size_t k = 0;
        while (k < n && tolower((unsigned char)p[k]) == words[k]) k++;
        if (k == n && (p == prose || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)p[n])) return true;
    }
    return false;
}

static void check_words(const file *f, const char *prose)
{
    for (size_t i = 0; i < COUNT(unused_words); i++)
        if (says(prose, unused_words[i].word))
            fault(f, f->n_lines, "says '%s'; write instead: %s", unused_words[i].word, unused_words[i].instead);
}

// Checks the first word of a comment.
static void check_opening(file *f, const char *code)
{
    const bool alone = code[strspn(code, " ")] == 0;
    const bool begins = f->comment && !(alone && f->after_comment);
    for (size_t i = 0; begins && i < COUNT(refused_openings); i++) {
        const size_t n = strlen(refused_openings[i]);
        if (starts(f->comment, refused_openings[i]) && f->comment[n] == ' ')
            fault(f, f->n_lines, "the comment begins with '%s'; begin with the noun that it is about",
                  refused_openings[i]);
    }
    f->after_comment = alone && f->comment && f->n_lines > 1;
}

// ---------------------------------------------------------------------------------------- the code of a line

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// Finds the word between characters that are not part of words. With `call`, it must precede a parenthesis and not be a
// member.
static bool has_word(const char *code, const char *word, bool call)
{
    size_t n = strlen(word);
    for (const char *p = code; (p = strstr(p, word)); p += n) {
        bool alone = (p == code || !is_word(p[-1])) && !is_word(p[n]);
        if (!alone) continue;
        if (!call) return true;
        bool member = p > code && (p[-1] == '.' || p[-1] == '>');
        if (!member && p[n + strspn(p + n, " ")] == '(') return true;
    }
    return false;
}

static void check_calls(const file *f, const char *code)
{
    for (size_t i = 0; i < COUNT(banned_calls); i++)
        if (has_word(code, banned_calls[i], true)) fault(f, f->n_lines, "%s is not for a library", banned_calls[i]);
}

static void check_replaced(const file *f, const char *code)
{
    for (size_t i = 0; i < COUNT(replaced_calls); i++) {
        const char *home = replaced_calls[i].home;
        if (!f->in_src && !replaced_calls[i].in_apps) continue;
        if (home && strcmp(home, f->path) == 0) continue;
        if (has_word(code, replaced_calls[i].call, true))
            fault(f, f->n_lines, "%s: the library has %s", replaced_calls[i].call, replaced_calls[i].instead);
    }
}

// True for "%g", "%8.1f", "%lf"; false for "%.0f", which prints no decimal point.
static bool has_fraction(const char *line)
{
    for (const char *p = line; (p = strchr(p, '%'));) {
        const char *flags = ++p;
        p += strspn(p, "-+ #0123456789.*l");
        if (*p == '%')
            p++;
        else if (*p && strchr("fFeEgGaA", *p) && !(*p == 'f' && p - flags == 2 && starts(flags, ".0")))
            return true;
    }
    return false;
}

static void check_formats(file *f, const char *line, const char *code)
{
    for (size_t i = 0; i < COUNT(format_calls); i++)
        if (has_word(code, format_calls[i].call, true)) {
            f->format_call = format_calls[i].call;
            f->format_instead = format_calls[i].instead;
        }
    if (f->format_call && has_fraction(line))
        fault(f, f->n_lines, "%s of a fraction: the library has %s", f->format_call, f->format_instead);
    if (strpbrk(code, ";{}")) f->format_call = NULL;
}

static void check_include(const file *f, const char *path, size_t n)
{
    if (!f->may_include) return;
    for (const char *word = f->may_include; *word;) {
        size_t k = strcspn(word, " ");
        bool folder = k > 0 && word[k - 1] == '/';
        if (folder ? n > k && strncmp(path, word, k) == 0 : n == k && strncmp(path, word, k) == 0) return;
        word += k + (word[k] == ' ');
    }
    // Outside the library a file may include a header in its own folder.
    if (!f->in_src && !memchr(path, '/', n)) return;
    fault(f, f->n_lines, "includes \"%.*s\"; allowed here: %s", (int)n, path,
          *f->may_include ? f->may_include : "system headers only");
}

static void check_directive(const file *f, const char *line, const char *code)
{
    const char *p = code + strspn(code, " ");
    if (*p != '#') return;
    p += 1 + strspn(p + 1, " ");
    if (starts(p, "include")) {
        const char *open = strchr(line, '"'), *close = open ? strchr(open + 1, '"') : NULL;
        if (close) check_include(f, open + 1, (size_t)(close - open - 1));
        if (close && close[-2] == '.' && close[-1] == 'c') fault(f, f->n_lines, "includes a .c file");
    }
    if (starts(p, "pragma GCC unroll"))
        fault(f, f->n_lines, "clang unrolls no loop by GCC's pragma: FRIT_UNROLL is for both");
    bool condition = starts(p, "if") || starts(p, "elif");
    bool requires = starts(p, "if !defined");   // a macro that the including file must define: an #error follows
    if (condition && !requires && f->in_kernels)
        fault(f, f->n_lines, "a condition in a kernel file: the file is the condition");
    if (!condition || !f->in_src || starts(f->path, "src/base/")) return;
    for (size_t i = 0; i < COUNT(system_macros); i++)
        if (has_word(p, system_macros[i], false))
            fault(f, f->n_lines, "asks for %s; that belongs to base/ or to a file with a suffix", system_macros[i]);
}

// Notes the last name before a parenthesis in the lines of a signature.
static void note_name(file *f, const char *code)
{
    if (code[0] == ' ' || code[0] == '#' || code[0] == 0) return;
    const char *open = strchr(code, '(');
    if (!open) return;
    const char *end = open;
    while (end > code && end[-1] == ' ') end--;
    const char *start = end;
    while (start > code && is_word(start[-1])) start--;
    snprintf(f->function, sizeof f->function, "%.*s", (int)(end - start), start);
}

static void check_function(file *f, const char *code)
{
    if (strcmp(code, "{") == 0) {
        f->function_line = f->n_lines;
    } else if (code[0] == '}' && f->function_line) {
        int n = f->n_lines - f->function_line + 1;
        if (n > FUNCTION_FAIL)
            fault(f, f->function_line, "%s has %d lines, at most %d are allowed", f->function, n, FUNCTION_FAIL);
        else if (n > FUNCTION_WARN)
            warn(f, f->function_line, "%s has %d lines, more than %d", f->function, n, FUNCTION_WARN);
        f->function_line = 0;
    } else if (!f->function_line) {
        note_name(f, code);
    }
}

// ---------------------------------------------------------------------------------------- files and folders

static bool is_listed(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static void describe(file *f, const char *path)
{
    *f = (file){.path = path, .is_c = ends(path, ".c"), .is_header = ends(path, ".h")};
    f->in_src = starts(path, "src/");
    f->in_kernels = starts(path, "src/backend/cpu/x86/") || starts(path, "src/backend/cpu/arm/") ||
                    starts(path, "src/backend/cpu/wasm/") || starts(path, "src/backend/cpu/tmpl/");
    f->is_page = ends(path, ".md");
    for (size_t i = 0; i < COUNT(plain_prose); i++) f->is_plain |= starts(path, plain_prose[i]);
    f->may_be_long = is_listed(long_files, COUNT(long_files), path);
    for (size_t i = 0; i < COUNT(layers) && !f->may_include; i++)
        if (starts(path, layers[i].folder)) f->may_include = layers[i].may_include;
    if (!f->may_include && f->in_src) fault(f, 1, "this folder has no row in the table of layers");
}

// A help text is read alone, beside the name of its option.
static void check_help(file *f, const char *line)
{
    static const char *const openings[] = {"its ", "the same ", "such ", "of ", "then ", "what "};
    const char *text = strstr(line, ".help = \"");
    for (size_t i = 0; text && i < COUNT(openings); i++)
        if (starts(text + strlen(".help = \""), openings[i]))
            fault(f, f->n_lines, "a help text begins with '%s'; expected what the option does", openings[i]);
}

static void check_page(file *f, FILE *in)
{
    static char line[LINE_BYTES], prose[2 * LINE_BYTES];
    bool ended = true;
    while (fgets(line, sizeof line, in)) {
        ended = strchr(line, '\n') != NULL;
        f->n_lines++;
        prose_of_page(line, prose);
        if (f->is_plain) check_words(f, prose);
    }
    if (!ended) fault(f, f->n_lines, "no line end at the end");
    n_lines_total += f->n_lines;
}

static void check_file(const char *path, const char *full)
{
    static char line[LINE_BYTES], code[LINE_BYTES], prose[2 * LINE_BYTES];
    file f;
    describe(&f, path);
    FILE *in = fopen(full, "rb");
    if (!in) {
        fault(&f, 1, "cannot be read");
        return;
    }
    if (f.is_page) {
        check_page(&f, in);
        fclose(in);
        return;
    }
    bool ended = true, once = false;
    while (fgets(line, sizeof line, in)) {
        size_t n = strlen(line);
        ended = n > 0 && line[n - 1] == '\n';
        if (ended) line[--n] = 0;
        f.n_lines++;
        if (strstr(line, "// clang-format o")) f.is_table = strstr(line, "// clang-format off") != NULL;
        check_text(&f, line, n);
        check_head(&f, line);
        prose_of(f.in_comment, line, prose);
        if (f.is_plain) check_words(&f, prose);
        strip(&f, line, code);
        check_opening(&f, code);
        check_help(&f, line);
        check_directive(&f, line, code);
        if (f.in_src) check_calls(&f, code);
        if (f.in_src) check_formats(&f, line, code);
        if (f.in_src || starts(path, "apps/")) check_replaced(&f, code);
        if (f.is_c) check_function(&f, code);
        if (strcmp(code, "#pragma once") == 0) once = true;
    }
    fclose(in);
    if (!ended) fault(&f, f.n_lines, "no line end at the end");
    bool many_times = ends(path, "_tmpl.h");   // included by each instruction set with its own definitions
    if (f.is_header && f.in_src && !once && !many_times) fault(&f, 1, "no #pragma once");
    if (f.n_lines > FILE_FAIL && !f.may_be_long)
        fault(&f, f.n_lines, "%d lines, at most %d are allowed", f.n_lines, FILE_FAIL);
    else if (f.n_lines > FILE_WARN && !f.may_be_long)
        warn(&f, f.n_lines, "%d lines, more than %d", f.n_lines, FILE_WARN);
    n_lines_total += f.n_lines;
}

static void collect(const char *root, const char *folder)
{
    char path[PATH_BYTES], full[2 * PATH_BYTES];
    snprintf(full, sizeof full, "%s/%s", root, folder);
    DIR *dir = opendir(full);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (name[0] == '.' || is_listed(skipped, COUNT(skipped), name)) continue;
        int n = snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
        if (n < 0 || (size_t)n >= sizeof path) continue;
        snprintf(full, sizeof full, "%s/%s", root, path);
        struct stat st;
        if (stat(full, &st) != 0) continue;
        if (S_ISDIR(st.st_mode)) collect(root, path);
        bool ours =
            S_ISREG(st.st_mode) && (ends(name, ".c") || ends(name, ".h") || ends(name, ".def") || ends(name, ".md"));
        if (!ours || n_files == MAX_FILES) continue;
        paths[n_files] = malloc((size_t)n + 1);
        if (paths[n_files]) memcpy(paths[n_files++], path, (size_t)n + 1);
    }
    if (dir) closedir(dir);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    const char *root = argc > 1 ? argv[1] : ".";
    collect(root, "");
    qsort(paths, (size_t)n_files, sizeof *paths, by_name);
    for (int i = 0; i < n_files; i++) {
        char full[2 * PATH_BYTES];
        snprintf(full, sizeof full, "%s/%s", root, paths[i]);
        check_file(paths[i], full);
        free(paths[i]);
    }
    printf("%d files, %ld lines: %d faults, %d warnings\n", n_files, n_lines_total, n_faults, n_warnings);
    return n_faults > 0 || n_files == 0;
}

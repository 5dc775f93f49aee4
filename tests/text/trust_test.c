// SPDX-License-Identifier: MIT
// Text of messages never becomes control tokens: templates track the origin of text, and the tokenizer uses it.
#include "support/golden_chat.h"
#include "support/support.h"

#include "text/load_json.h"
#include "text/template/template.h"
#include "text/tokenizer/tokenizer.h"
#include "text/vocab/vocab_file.h"

#include <dirent.h>
#include <stdlib.h>
#include <time.h>

static const struct tm now = {.tm_year = 126, .tm_mday = 2, .tm_hour = 3, .tm_wday = 5, .tm_yday = 1};

static bool is_untrusted(const frit_spans *spans, size_t at)
{
    const size_t i = frit_spans_find(spans, at);
    return i < spans->n && spans->items[i].begin <= at;
}

// Counts the untrusted bytes of text[begin, end).
static size_t count_untrusted(const frit_spans *spans, size_t begin, size_t end)
{
    size_t n = 0;
    for (size_t at = begin; at < end; at++) n += is_untrusted(spans, at);
    return n;
}

// ------------------------------------------------------------------------------- templates

#define EVIL "<|evil|>"

// Puts EVIL into every text, except texts that are names of types or roles.
static void poison(json_t *json)
{
    static const char *const kept[] = {"role", "type", "id", "tool_call_id", "name"};
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_array(json)) json_array_foreach(json, i, item)
        {
            if (json_is_string(item))
                json_array_set_new(json, i, json_sprintf("%s " EVIL, json_string_value(item)));
            else
                poison(item);
        }
    json_object_foreach(json, key, item)
    {
        bool keep = !json_is_string(item);
        for (size_t k = 0; k < FRIT_COUNT(kept); k++) keep = keep || strcmp(key, kept[k]) == 0;
        const char *text = json_string_value(item);
        if (keep)
            poison(item);
        else if (text[0] == '{')   // arguments
            json_object_set_new(json, key, json_sprintf("{\"" EVIL "\": \"" EVIL "\",%s", text + 1));
        else
            json_object_set_new(json, key, json_sprintf("%s " EVIL " x", text));
    }
}

// Finds a mark in a template: text between < and > or [ and ], without spaces.
static size_t mark_at(const char *source)
{
    const char close = *source == '<' ? '>' : *source == '[' ? ']' : 0;
    if (!close) return 0;
    for (size_t n = 1; n < 48 && source[n] && !strchr(" \n'\"{}%()=,", source[n]); n++)
        if (source[n] == close) return n > 2 ? n + 1 : 0;
    return 0;
}

// Checks that every mark in the text that no variable spells is the template's own. Returns the number of marks.
static int check_marks(const char *name, const char *source, const char *variables, const frit_buf *out,
                       const frit_spans *spans)
{
    int n_marks = 0;
    for (const char *at = source; *at; at++) {
        char mark[64];
        const size_t n = mark_at(at);
        if (n == 0) continue;
        snprintf(mark, sizeof mark, "%.*s", (int)n, at);
        if (strstr(variables, mark)) continue;
        for (const char *found = out->data; found && (found = strstr(found, mark)); found += n) {
            const size_t begin = (size_t)(found - out->data);
            if (count_untrusted(spans, begin, begin + n) > 0)
                fail_msg("%s: '%s' at %zu is untrusted", name, mark, begin);
            n_marks++;
        }
    }
    return n_marks;
}

static int check_evil(const char *name, const frit_buf *out, const frit_spans *spans)
{
    int n_found = 0;
    const size_t n = strlen(EVIL);
    for (const char *found = out->data; found && (found = strstr(found, EVIL)); found += n, n_found++) {
        const size_t begin = (size_t)(found - out->data);
        if (count_untrusted(spans, begin, begin + n) != n)
            fail_msg("%s: a variable's text counts as the template's: %.*s", name, 80, found);
    }
    return n_found;
}

typedef struct totals {
    int n_templates, n_renderings, n_marks, n_evil;
} totals;

static void check_template(const char *name, const char *source, const json_t *scenarios, totals *sum)
{
    frit_template *template;
    assert_ok(frit_template_new(&template, frit_str_of(source)));
    frit_template_allow_changes(template);
    const char *scenario;
    json_t *variables;
    json_object_foreach((json_t *)scenarios, scenario, variables)
    {
        json_t *given = json_deep_copy(variables);
        json_object_set_new(given, "add_generation_prompt", json_true());
        json_object_set_new(given, "bos_token", json_string("<BOS>"));
        json_object_set_new(given, "eos_token", json_string("<EOS>"));
        char *text = json_dumps(given, 0);
        for (int poisoned = 0; poisoned < 2; poisoned++) {
            frit_buf out = {0}, plain = {0};
            frit_spans spans = {0};
            if (poisoned) poison(json_object_get(given, "messages"));
            if (poisoned) poison(json_object_get(given, "tools"));
            const frit_status status = frit_template_render(template, given, &now, &out, &spans);
            assert_int_equal(frit_template_render(template, given, &now, &plain, NULL), status);
            assert_int_equal(out.len, plain.len);   // tracking origins changes nothing
            if (out.len > 0) assert_memory_equal(out.data, plain.data, out.len);
            if (status == FRIT_OK && !poisoned) sum->n_marks += check_marks(name, source, text, &out, &spans);
            if (status == FRIT_OK && poisoned) sum->n_evil += check_evil(name, &out, &spans);
            sum->n_renderings += status == FRIT_OK;
            frit_buf_free(&out);
            frit_buf_free(&plain);
            frit_spans_free(&spans);
        }
        free(text);
        json_decref(given);
    }
    frit_template_free(template);
    sum->n_templates++;
}

static void published_templates_know_which_text_is_theirs(void **state)
{
    (void)state;
    json_t *scenarios = load_json(shared_path("goldens/template/scenarios.json"));
    DIR *folder = opendir(shared_path("goldens/template"));
    totals sum = {0};
    for (struct dirent *entry; (entry = readdir(folder));) {
        const size_t n = strlen(entry->d_name);
        if (n < 6 || strcmp(entry->d_name + n - 6, ".jinja") != 0) continue;
        char *source = read_file(shared_path("goldens/template/%s", entry->d_name), NULL);
        check_template(entry->d_name, source, scenarios, &sum);
        free(source);
    }
    closedir(folder);
    json_decref(scenarios);
    print_message("%d templates, %d renderings: %d marks of templates, %d texts of variables\n", sum.n_templates,
                  sum.n_renderings, sum.n_marks, sum.n_evil);
    assert_true((size_t)sum.n_templates >= shared_least(40));
    assert_true(sum.n_marks > 2000);
    assert_true((size_t)sum.n_evil > shared_least(1000));
}

// Renders with x = EVIL, y = "a b", l = [EVIL, "-"], d = {EVIL: EVIL}, n = 5.
static void render(const char *source, frit_buf *out, frit_spans *spans)
{
    frit_template *template;
    assert_ok(frit_template_new(&template, frit_str_of(source)));
    json_t *variables =
        json_pack("{s:s, s:s, s:[s, s], s:{s:s}, s:i}", "x", EVIL, "y", "a b", "l", EVIL, "-", "d", EVIL, EVIL, "n", 5);
    if (frit_template_render(template, variables, &now, out, spans) != FRIT_OK)
        fail_msg("%s: %s", source, frit_error());
    json_decref(variables);
    frit_template_free(template);
}

// In the row's text, `want` marks the untrusted bytes with ~.
static void text_keeps_its_origin_whatever_is_done_with_it(void **state)
{
    (void)state;
    static const struct {
        const char *source, *text, *marks;
    } rows[] = {
        {"<u>{{ x }}</u>", "<u><|evil|></u>", "   ~~~~~~~~    "},
        {"{{ '<u>' + x + '</u>' }}", "<u><|evil|></u>", "   ~~~~~~~~    "},
        {"{{ '<u>' ~ x ~ n }}", "<u><|evil|>5", "   ~~~~~~~~ "},
        {"{{ ('<u>' + x)|upper }}", "<U><|EVIL|>", "   ~~~~~~~~"},
        {"{{ x.title() ~ x.swapcase() }}", "<|Evil|><|EVIL|>", "~~~~~~~~~~~~~~~~"},
        {"{{ ('  ' + x + '<u> ')|trim }}", "<|evil|><u>", "~~~~~~~~   "},
        {"{{ (x + '<u>')[4:] }}", "il|><u>", "~~~~   "},
        {"{{ (x + 'ab')[::-1] }}", "ba>|live|<", "  ~~~~~~~~"},
        {"{{ x.replace('evil', 'u') }}", "<|u|>", "~~ ~~"},
        {"{{ '<e>'|replace('e', x) }}", "<<|evil|>>", " ~~~~~~~~ "},
        {"{{ x.split('|')|join('+') }}", "<+evil+>", "~ ~~~~ ~"},
        {"{{ l|join('<u>') }}", "<|evil|><u>-", "~~~~~~~~   ~"},
        {"{{ x|tojson }}", "\"<|evil|>\"", " ~~~~~~~~ "},
        {"{{ d|tojson }}", "{\"<|evil|>\": \"<|evil|>\"}", "  ~~~~~~~~    ~~~~~~~~  "},
        {"{{ l }}", "['<|evil|>', '-']", "  ~~~~~~~~    ~  "},
        {"{{ '<u>%s' % x }}", "<u><|evil|>", "   ~~~~~~~~"},
        {"{{ '%-10s<u>' % x }}", "<|evil|>  <u>", "~~~~~~~~     "},
        {"{{ '%.4s<u>' % x }}", "<|ev<u>", "~~~~   "},
        {"{{ '<u>{}{:>10}'.format(n, x) }}", "<u>5  <|evil|>", "      ~~~~~~~~"},
        {"{{ '{!r}'.format(x) }}", "'<|evil|>'", " ~~~~~~~~ "},
        {"{{ x.format() ~ '<u>' }}", "<|evil|><u>", "~~~~~~~~   "},
        {"{{ x * 2 }}<u>", "<|evil|><|evil|><u>", "~~~~~~~~~~~~~~~~   "},
        {"{{ x|e }}", "&lt;|evil|&gt;", NULL},
        {"{{ ('<u>\n' + x)|indent(1) }}", "<u>\n <|evil|>", "     ~~~~~~~~"},
        {"{{ x|center(12) }}", "  <|evil|>  ", "  ~~~~~~~~  "},
        {"{{ (y + x)|wordwrap(3) }}", "a b\n<|e\nvil\n|>", NULL},
        {"{{ x|truncate(6, true, '<u>', 0) }}", "<|e<u>", "~~~   "},
        {"{{ x|list|join }}", "<|evil|>", "~~~~~~~~"},
        {"{{ x|first }}{{ x|last }}<u>", "<><u>", "~~   "},
        {"{% set a = '<u>' + x %}{{ a }}", "<u><|evil|>", "   ~~~~~~~~"},
        {"{% set a %}<u>{{ x }}{% endset %}{{ a }}", "<u><|evil|>", "   ~~~~~~~~"},
        {"{% macro m(a) %}<u>{{ a }}{% endmacro %}{{ m(x) ~ '<b>' }}", "<u><|evil|><b>", "   ~~~~~~~~   "},
        {"{% filter upper %}<u>{{ x }}{% endfilter %}", "<U><|EVIL|>", "   ~~~~~~~~"},
        {"{% for c in x %}{{ c }}{% endfor %}<u>", "<|evil|><u>", "~~~~~~~~   "},
        {"{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", "<|evil|>=<|evil|>", "~~~~~~~~ ~~~~~~~~"},
        {"{{ {'a': x}|xmlattr }}", " a=\"&lt;|evil|&gt;\"", NULL},
        {"{{ x|urlencode }}", "%3C%7Cevil%7C%3E", "~~~~~~~~~~~~~~~~"},
        {"{{ strftime_now(x) }}", "<|evil|>", "~~~~~~~~"},
        {"{{ '<u>' if x == '<|evil|>' else x }}", "<u>", "   "},
        {"{{ {'role': 'user'}.role }}<u>", "user<u>", "       "},
        {"{{ (x ~ x).partition('|')[2] }}", "evil|><|evil|>", "~~~~~~~~~~~~~~"},
        {"{{ x.rjust(9, '.') ~ x.zfill(9) }}", ".<|evil|>0<|evil|>", NULL},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_buf out = {0};
        frit_spans spans = {0};
        render(rows[i].source, &out, &spans);
        if (strcmp(out.data, rows[i].text) != 0) fail_msg("%s: got '%s'", rows[i].source, out.data);
        char marks[128];
        for (size_t k = 0; k < out.len; k++) marks[k] = is_untrusted(&spans, k) ? '~' : ' ';
        marks[out.len] = 0;
        if (rows[i].marks && strcmp(marks, rows[i].marks) != 0)
            fail_msg("%s:\n%s\n%s\n%s was expected", rows[i].source, out.data, marks, rows[i].marks);
        for (const char *letter = out.data; !rows[i].marks && *letter; letter++)   // at least the rest of the text
            if (strchr("evil|", *letter) && *letter != ' ')
                assert_true(is_untrusted(&spans, (size_t)(letter - out.data)));
        frit_buf_free(&out);
        frit_spans_free(&spans);
    }
}

static void only_roles_that_are_known_and_the_names_of_tokens_are_a_templates_own(void **state)
{
    (void)state;
    frit_template *template;
    assert_ok(
        frit_template_new(&template, frit_str_of("{{ bos_token }}{{ m.bos_token }}<|{{ m.role }}|><|{{ w.role }}|>")));
    json_t *variables = json_pack("{s:s, s:{s:s, s:s}, s:{s:s}}", "bos_token", "<s>", "m", "role", "user", "bos_token",
                                  "<b>", "w", "role", "end");
    frit_buf out = {0};
    frit_spans spans = {0};
    assert_ok(frit_template_render(template, variables, &now, &out, &spans));
    assert_string_equal(out.data, "<s><b><|user|><|end|>");
    assert_int_equal(spans.n, 2);
    assert_int_equal(spans.items[0].begin, 3);
    assert_int_equal(spans.items[0].end, 6);
    assert_int_equal(spans.items[1].begin, 16);
    assert_int_equal(spans.items[1].end, 19);
    frit_buf_free(&out);
    frit_spans_free(&spans);
    json_decref(variables);
    frit_template_free(template);
}

// ------------------------------------------------------------------------------- tokenizers

typedef struct subject {
    frit_arena arena;
    frit_vocab vocab;
    frit_tokenizer *tokenizer;
} subject;

static void open_subject(subject *s, const char *path)
{
    memset(s, 0, sizeof *s);
    assert_ok(frit_vocab_open(&s->vocab, path, 0, &s->arena, NULL));
    assert_ok(frit_tokenizer_new(&s->tokenizer, &s->vocab, NULL));
}

static void close_subject(subject *s)
{
    frit_tokenizer_free(s->tokenizer);
    frit_vocab_deinit(&s->vocab);
    frit_arena_free(&s->arena);
}

// `marks` has ~ at untrusted bytes.
static void encode(const subject *s, const char *text, const char *marks, frit_ids *ids)
{
    frit_spans spans = {0};
    for (size_t i = 0; marks[i]; i++)
        if (marks[i] == '~') frit_spans_push(&spans, i, i + 1);
    const frit_encoding how = {.flags = FRIT_TEXT_PARSE_SPECIAL, .untrusted = &spans};
    assert_ok(frit_tokenizer_encode_as(s->tokenizer, frit_str_of(text), &how, ids));
    frit_spans_free(&spans);
}

static size_t count_control(const subject *s, const frit_ids *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < ids->n; i++) n += s->vocab.entries[ids->items[i]].kind == FRIT_TOKEN_CONTROL;
    return n;
}

static void check_control(const subject *s, const char *text, const char *marks, size_t expected)
{
    frit_ids ids = {0};
    encode(s, text, marks, &ids);
    if (count_control(s, &ids) != expected)
        fail_msg("'%s' has %zu control tokens, %zu are expected", text, count_control(s, &ids), expected);
    frit_ids_free(&ids);
}

static void a_control_token_has_no_untrusted_byte(void **state)
{
    (void)state;
    subject s;
    open_subject(&s, shared_path("goldens/tokenizer/real/llama3"));
    check_control(&s, "<|eot_id|>a<|eot_id|>", "                     ", 2);
    check_control(&s, "<|eot_id|>a<|eot_id|>", "~~~~~~~~~~~~~~~~~~~~~", 0);
    check_control(&s, "<|eot_id|>a<|eot_id|>", "          ~          ", 2);
    check_control(&s, "<|eot_id|>a<|eot_id|>", "          ~~         ", 1);
    check_control(&s, "<|eot_id|>a<|eot_id|>", "         ~~          ", 1);
    check_control(&s, "<|eot_id|>a<|eot_id|>", "     ~               ", 1);
    close_subject(&s);
}

// A vocabulary with the control token <S>, which is searched for in lower case.
static const char normalized_json[] =
    "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFKC\"}, {\"type\": \"Lowercase\"}]},"
    " \"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"post_processor\": null, \"decoder\": null,"
    " \"added_tokens\": [{\"id\": 0, \"content\": \"<S>\", \"special\": true, \"normalized\": true,"
    "   \"lstrip\": false, \"rstrip\": false, \"single_word\": false}],"
    " \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"u\", \"vocab\": {\"<S>\": 0, \"u\": 1, \"a\": 2}}}";

static void tokens_of_normalized_text_are_trusted_by_their_order(void **state)
{
    (void)state;
    subject s;
    const char *path = temp_path("tokenizer.json");
    write_file(path, normalized_json, sizeof normalized_json - 1);
    open_subject(&s, path);
    check_control(&s, "<S> a <S>", "         ", 2);
    check_control(&s, "<S> a <S>", "~~~      ", 1);
    check_control(&s, "<S> a <S>", "    ~~~~~", 1);
    check_control(&s, "<S> a <S>", "~~~~~~~~~", 0);
    check_control(&s, "<S> a <S>", "    ~    ", 2);
    // U+FF1C becomes < when it is normalized. Untrusted text makes a mark, so nothing is trusted.
    check_control(&s, "<S> \xef\xbc\x9cS>", "    ~~~~~", 0);
    check_control(&s, "\xef\xbc\x9cS> <S> <S>\xcc\xb8", "~~~~~     ~~~~~~", 0);
    close_subject(&s);
}

static void ranges_without_special_tokens_change_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"llama3", "deepseek_v3", "mistral_v3", "tekken_240718"};
    for (size_t k = 0; k < FRIT_COUNT(names); k++) {
        subject s;
        const char *file = k == 2 ? "/tokenizer.model" : k == 3 ? "/tekken.json" : "";
        open_subject(&s, shared_path("goldens/tokenizer/real/%s%s", names[k], file));
        json_t *golden = load_json(shared_path("goldens/tokenizer/real/%s/golden.json", names[k])), *item;
        json_t *cases = json_object_get(golden, "texts");
        size_t i, n_checked = 0;
        json_array_foreach(cases, i, item)
        {
            const frit_str text = {json_string_value(item), json_string_length(item)};
            frit_ids parsed = {0}, plain = {0}, ranged = {0};
            assert_ok(frit_tokenizer_encode(s.tokenizer, text, FRIT_TEXT_PARSE_SPECIAL, &parsed));
            assert_ok(frit_tokenizer_encode(s.tokenizer, text, 0, &plain));
            frit_spans spans = {0};
            const bool is_clean =
                parsed.n == plain.n && memcmp(parsed.items, plain.items, plain.n * sizeof(frit_token)) == 0;
            for (size_t at = 0; at < text.len; at += is_clean ? 3 : text.len)   // the whole text if it has specials
                frit_spans_push(&spans, at, is_clean ? at + 1 : text.len);
            const frit_encoding how = {.flags = FRIT_TEXT_PARSE_SPECIAL, .untrusted = &spans};
            assert_ok(frit_tokenizer_encode_as(s.tokenizer, text, &how, &ranged));
            assert_int_equal(ranged.n, plain.n);
            if (plain.n > 0) assert_memory_equal(ranged.items, plain.items, plain.n * sizeof(frit_token));
            n_checked++;
            frit_spans_free(&spans);
            frit_ids_free(&parsed);
            frit_ids_free(&plain);
            frit_ids_free(&ranged);
        }
        assert_true(n_checked > 10);
        json_decref(golden);
        close_subject(&s);
    }
}

// ------------------------------------------------------------------------------- giving up

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);   // the machine may be busy
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_asked(void *ctx)
{
    return ++*(int *)ctx > 2;
}

static void an_encoding_is_given_up_early(void **state)
{
    (void)state;
    subject s;
    open_subject(&s, shared_path("goldens/tokenizer/real/llama3"));
    assert_true(s.tokenizer->token_bytes >= 64);
    const size_t n = 8 << 20;
    char *text = malloc(n);
    memset(text, ' ', n);
    frit_ids ids = {0};
    const frit_encoding few = {.max_tokens = 100};
    const double start = seconds();
    assert_fails(frit_tokenizer_encode_as(s.tokenizer, (frit_str){text, n}, &few, &ids), FRIT_E_LIMIT,
                 "more than 100 tokens");
    assert_true(ids.n_least > 100);
    for (size_t i = 0; i < n; i++) text[i] = "one two\n"[i % 8];
    const frit_encoding many = {.max_tokens = n / s.tokenizer->token_bytes + 1};
    ids.n = ids.n_least = 0;
    assert_fails(frit_tokenizer_encode_as(s.tokenizer, (frit_str){text, n}, &many, &ids), FRIT_E_LIMIT, "tokens");
    assert_int_equal(ids.n_least, many.max_tokens + 1);
    int n_asked = 0;
    const frit_encoding cancelled = {.cancelled = is_asked, .cancel_ctx = &n_asked};
    assert_fails(frit_tokenizer_encode_as(s.tokenizer, (frit_str){text, n}, &cancelled, &ids), FRIT_E_CANCELLED, "");
    assert_int_equal(n_asked, 3);
    print_message("8 MiB given up three times in %.2f s\n", seconds() - start);
    frit_ids_free(&ids);
    free(text);
    close_subject(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_templates_know_which_text_is_theirs),
        cmocka_unit_test(text_keeps_its_origin_whatever_is_done_with_it),
        cmocka_unit_test(only_roles_that_are_known_and_the_names_of_tokens_are_a_templates_own),
        cmocka_unit_test(a_control_token_has_no_untrusted_byte),
        cmocka_unit_test(tokens_of_normalized_text_are_trusted_by_their_order),
        cmocka_unit_test(ranges_without_special_tokens_change_nothing),
        cmocka_unit_test(an_encoding_is_given_up_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// The template interpreter: published chat templates, Python's output formats, and refusals.
#include "support/support.h"

#include "text/load_json.h"
#include "text/template/template.h"

#include <dirent.h>
#include <time.h>

// 2026-01-02 03:04:05, a Friday.
static const struct tm now = {
    .tm_year = 126, .tm_mon = 0, .tm_mday = 2, .tm_hour = 3, .tm_min = 4, .tm_sec = 5, .tm_wday = 5, .tm_yday = 1};

static json_t *variables_of(const json_t *scenario, bool generate)
{
    json_t *variables = json_deep_copy(scenario);
    json_object_set_new(variables, "add_generation_prompt", json_boolean(generate));
    json_object_set_new(variables, "bos_token", json_string("<BOS>"));
    json_object_set_new(variables, "eos_token", json_string("<EOS>"));
    return variables;
}

// Converts a message as errors do.
static void as_sentence(const char *message, char out[FRIT_ERROR_BYTES])
{
    snprintf(out, FRIT_ERROR_BYTES, "%s", message);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < 32 || *at == 127) *at = '?';
}

static double slowest_ms;

// Compares a rendering with its golden. Returns true if they are equal.
static bool check_rendering(const char *name, const frit_template *template, const json_t *scenarios,
                            const json_t *golden)
{
    const char *scenario = json_string_value(json_object_get(golden, "scenario"));
    bool generate = json_is_true(json_object_get(golden, "add_generation_prompt"));
    const char *want = json_string_value(json_object_get(golden, "output"));
    const char *raises = json_string_value(json_object_get(golden, "raises"));
    json_t *variables = variables_of(json_object_get(scenarios, scenario), generate);
    frit_buf out = {0};
    clock_t start = clock();
    frit_status status = template ? frit_template_render(template, variables, &now, &out, NULL) : FRIT_E_FORMAT;
    double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC;
    if (ms > slowest_ms) slowest_ms = ms;
    char sentence[FRIT_ERROR_BYTES] = "";
    if (raises) as_sentence(raises, sentence);
    bool good = want ? status == FRIT_OK && out.len == json_string_length(json_object_get(golden, "output")) &&
                           memcmp(out.len ? out.data : "", want, out.len) == 0
                     : status != FRIT_OK && (!raises || strcmp(frit_error(), sentence) == 0);
    if (!good)
        print_message("%s %s %d:\n  wanted %s\n  got    %s\n", name, scenario, generate,
                      want     ? want
                      : raises ? raises
                               : "a failure",
                      status == FRIT_OK ? out.data ? out.data : "" : frit_error());
    frit_buf_free(&out);
    json_decref(variables);
    return good;
}

static void published_templates_render_as_published(void **state)
{
    (void)state;
    json_t *scenarios = load_json(shared_path("goldens/template/scenarios.json"));
    DIR *folder = opendir(shared_path("goldens/template"));
    int n_templates = 0, n_renderings = 0, n_bad = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t len = strlen(entry->d_name);
        if (len < 6 || strcmp(entry->d_name + len - 6, ".jinja") != 0) continue;
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)len - 6, entry->d_name);
        size_t n_source;
        char *source = read_file(shared_path("goldens/template/%s.jinja", name), &n_source);
        json_t *golden = load_json(shared_path("goldens/template/%s.json", name));
        frit_template *template;
        if (frit_template_new(&template, (frit_str){source, n_source}) != FRIT_OK)
            print_message("%s: %s\n", name, frit_error());
        n_templates++;
        for (size_t i = 0; i < json_array_size(golden); i++) {
            n_renderings++;
            n_bad += !check_rendering(name, template, scenarios, json_array_get(golden, i));
        }
        frit_template_free(template);
        json_decref(golden);
        free(source);
    }
    closedir(folder);
    json_decref(scenarios);
    print_message("%d renderings of %d templates, %d differ; the slowest took %.2f ms\n", n_renderings, n_templates,
                  n_bad, slowest_ms);
    assert_true((size_t)n_templates >= shared_least(40));
    assert_int_equal(n_bad, 0);
}

// ------------------------------------------------------------------------------------- single expressions

// Test templates that are hard for an interpreter; nasty/render.py made the expected output, with Jinja.
static void nasty_templates_render_as_jinja_renders_them(void **state)
{
    (void)state;
    json_t *expected = load_json(project_path("tests/text/nasty/expected.json"));
    json_t *variables = load_json(project_path("tests/text/nasty/variables.json"));
    const char *name, *scenario;
    json_t *rows, *row;
    int n_wrong = 0;
    assert_int_equal(json_object_size(expected), 10);
    json_object_foreach(expected, name, rows)
    {
        size_t n;
        char *source = read_file(project_path("tests/text/nasty/%s", name), &n);
        frit_template *template;
        assert_ok(frit_template_new(&template, (frit_str){source, n}));
        json_object_foreach(rows, scenario, row)
        {
            const char *want = json_string_value(json_object_get(row, "output")),
                       *raises = json_string_value(json_object_get(row, "raises"));
            frit_buf out = {0};
            frit_status status = frit_template_render(template, json_object_get(variables, scenario), &now, &out, NULL);
            bool good = want ? status == FRIT_OK && strcmp(out.data ? out.data : "", want) == 0
                             : status == FRIT_E_INVALID && strcmp(frit_error(), raises) == 0;
            n_wrong += !good;
            if (!good)
                print_message("%s %s:\n  wanted %s\n  got    %s\n", name, scenario, want ? want : raises,
                              status == FRIT_OK ? out.data : frit_error());
            frit_buf_free(&out);
        }
        frit_template_free(template);
        free(source);
    }
    json_decref(expected);
    json_decref(variables);
    assert_int_equal(n_wrong, 0);
}

static const char variables_text[] =
    "{\"s\": \"Hello, World\", \"u\": \"h\\u00e9llo \\u65e5\\u672c\", \"n\": 5, \"f\": 3.5, \"l\": [3, 1, 2],"
    " \"d\": {\"b\": 1, \"a\": [1, {\"x\": null}], \"c\": \"it's\"}, \"t\": true, \"none\": null,"
    " \"ld\": [{\"n\": \"x\", \"v\": 2}, {\"n\": \"y\", \"v\": 1}, {\"v\": 3}]}";

static frit_status render(const char *source, frit_buf *out)
{
    frit_template *template;
    frit_status status = frit_template_new(&template, frit_str_of(source));
    if (status != FRIT_OK) return status;
    json_t *variables = json_loads(variables_text, 0, NULL);
    status = frit_template_render(template, variables, &now, out, NULL);
    json_decref(variables);
    frit_template_free(template);
    return status;
}

static void check(const char *source, const char *want)
{
    frit_buf out = {0};
    frit_status status = render(source, &out);
    if (status != FRIT_OK) fail_msg("%s: %s", source, frit_error());
    if (strcmp(out.len ? out.data : "", want) != 0) fail_msg("%s: got '%s', expected '%s'", source, out.data, want);
    frit_buf_free(&out);
}

static void check_fails(const char *source, frit_status want, const char *part)
{
    frit_buf out = {0};
    frit_status status = render(source, &out);
    if (status != want || !strstr(frit_error(), part))
        fail_msg("%.200s: got %d '%s', expected %d with '%s'", source, status, status ? frit_error() : "", want, part);
    frit_buf_free(&out);
}

// All expected texts are Python's.
static void values_print_as_python_prints_them(void **state)
{
    (void)state;
    check("{{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.0001 }} {{ 123456789.125 }} {{ 1/3 }} {{ -0.0 }}",
          "1.0 1e+16 1e-05 0.0001 123456789.125 0.3333333333333333 -0.0");
    check("{{ none }} {{ true }} {{ [none, true, 'x'] }} {{ (1,) }} {{ () }} {{ {} }}",
          "None True [None, True, 'x'] (1,) () {}");
    check("{{ d }}", "{'b': 1, 'a': [1, {'x': None}], 'c': \"it's\"}");
    check("{{ ['a\\n\\t\\\\', '\\x00\\u200b'] }}", "['a\\n\\t\\\\', '\\x00\\u200b']");
    check("{{ undefined_name }}|{{ d.missing }}|{{ 'x' if false }}", "||");
    check("{{ d.items() }}", "dict_items([('b', 1), ('a', [1, {'x': None}]), ('c', \"it's\")])");
}

static void arithmetic_is_pythons(void **state)
{
    (void)state;
    check("{{ 7//2 }} {{ -7//2 }} {{ -7%3 }} {{ 7%-3 }} {{ 7/2 }} {{ 2**10 }} {{ 2**-1 }} {{ 7.5//2 }}",
          "3 -4 2 -2 3.5 1024 0.5 3.0");
    check("{{ 'a'*3 ~ [1]*2 ~ ('b'+'c') }} {{ [1]+[2] }}", "aaa[1, 1]bc [1, 2]");
    check("{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }}",
          "True False True True False");
    check("{{ -n|abs }} {{ (-n)|abs }} {{ 2**3**2 }} {{ not not t }}", "5 5 64 True");
    check_fails("{{ 'a' + 1 }}", FRIT_E_INVALID, "unsupported operand type(s) for +: 'str' and 'int'");
    check_fails("{{ 1 // 0 }}", FRIT_E_INVALID, "by zero");
    check_fails("{{ 9223372036854775807 + 1 }}", FRIT_E_INVALID, "too large");
}

static void text_is_counted_in_characters(void **state)
{
    (void)state;
    check("{{ u|length }} {{ u[1] }} {{ u[-2:] }} {{ u[::-1] }} {{ u.find('\xe6\x97\xa5') }}",
          "8 \xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xe6\x9c\xac\xe6\x97\xa5 oll\xc3\xa9h 6");
    check("{{ '\xc3\xa4\xc3\x9f'.upper() }} {{ 'they''re'|title }} {{ 'a-b c'|title }} {{ 'a-b c'.title() }}",
          "\xc3\x84SS Theyre A-B C A-B C");
    check("{{ ' a '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ s.split('l', 1) }}|{{ ' a  b '.split() }}",
          "a|a|['He', 'lo, World']|['a', 'b']");
    check("{{ 'a,b'.partition(',') }} {{ 'abc'.replace('b', '') }} {{ 'abc'.startswith(('x', 'ab')) }}",
          "('a', ',', 'b') ac True");
}

static void formats_are_pythons(void **state)
{
    (void)state;
    check("{{ '{}-{0}'.format(1) if false else '{:>5}|{:<4}|{:^5}|{:05d}|{:.2f}|{!r}'.format('a', 'b', 'c', 42, "
          "3.14159, 'x') }}",
          "    a|b   |  c  |00042|3.14|'x'");
    check("{{ '%s %d %5.1f %r %%' % ('a', 3, 2.25, 'q') }}", "a 3   2.2 'q' %");
    check("{{ '%s' % '' }}{{ '%.1s' % '' }}{{ '%.1s%s' % ('\u00e9!', '') }}", "\xc3\xa9");
    check("{{ '{:,}'.format(1234567) }} {{ '{a}{{}}'.format(a=1) }}", "1,234,567 1{}");
    check_fails("{{ '{}'.format() }}", FRIT_E_INVALID, "no argument");
    check_fails("{{ '%d' % 'x' }}", FRIT_E_INVALID, "a number is required");
}

static void json_is_pythons(void **state)
{
    (void)state;
    check("{{ d|tojson }}", "{\"b\": 1, \"a\": [1, {\"x\": null}], \"c\": \"it's\"}");
    check("{{ {'b': [], 'a': 1.0}|tojson(indent=2, sort_keys=true) }}", "{\n  \"a\": 1.0,\n  \"b\": []\n}");
    check("{{ u|tojson }} {{ u|tojson(ensure_ascii=true) }}",
          "\"h\xc3\xa9llo \xe6\x97\xa5\xe6\x9c\xac\" \"h\\u00e9llo \\u65e5\\u672c\"");
    check("{{ [1, 2]|tojson(separators=(',', ':')) }}", "[1,2]");
    check_fails("{{ undefined_name|tojson }}", FRIT_E_INVALID, "not JSON serializable");
}

static void sequences_are_filtered(void **state)
{
    (void)state;
    check("{{ l|sort }} {{ l|sort(reverse=true) }} {{ l|max }} {{ l|sum }} {{ l|first }}{{ l|last }}",
          "[1, 2, 3] [3, 2, 1] 3 6 32");
    check("{{ ld|map(attribute='n')|select('defined')|join(',') }} {{ ld|selectattr('v', 'gt', 1)|list|length }}",
          "x,y 2");
    check("{{ ld|sort(attribute='v')|map(attribute='v')|list }} {{ d|dictsort|first }}",
          "[1, 2, 3] ('a', [1, {'x': None}])");
    check("{{ ['b', 'A', 'b']|unique|list }} {{ [1, 2, 3]|batch(2)|list }}", "['b', 'A'] [[1, 2], [3]]");
}

static void white_space_goes_where_trim_blocks_sends_it(void **state)
{
    (void)state;
    check("a\n  {% if t %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc");
    check("x {%- if t -%}  y  {%- endif -%} z", "xyz");
    check("  {{ 1 }}  \n", "  1  ");
    check("  {%+ if t %} q{% endif %}\n z", "   q z");
    check("{# c #}\nx {#- c -#} y", "xy");
    check("{% raw %}{{ x }}{% endraw %}\ny", "{{ x }}y");
    check("a\r\n{{ 1 -}} \n b", "a\n1b");
}

static void scopes_are_jinjas(void **state)
{
    (void)state;
    check("{% set x = 1 %}{% for i in l %}{% set x = 2 %}{% endfor %}{{ x }}", "1");
    check("{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}", "2");
    check("{% set ns = namespace(a=1) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}", "7");
    check(
        "{% macro m(a, b=2) %}{{ a }}-{{ b }}{{ varargs }}{% endmacro %}{{ m(1) }} {{ m(1, 3, 4) }} {{ m(b=4, a=0) }}",
        "1-2() 1-3(4,) 0-4()");
    check("{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i "
          "}}{% endfor %}",
          "02");
    check("{% for i in [1, [2]] recursive %}{{ i if i is number else loop(i) }}{% endfor %}", "12");
    check("{% generation %}a{% set y = 1 %}{% endgeneration %}{{ y }}", "a");
    check("{% macro m(a) %}<{{ caller(a) }}>{% endmacro %}{% call(x) m(5) %}c{{ x }}{% endcall %}", "<c5>");
}

static void a_template_may_refuse_in_its_own_words(void **state)
{
    (void)state;
    check_fails("{{ raise_exception('Roles must alternate!') }}", FRIT_E_INVALID, "Roles must alternate!");
    check("{{ strftime_now('%d %b %Y %H:%M:%S %A') }}", "02 Jan 2026 03:04:05 Friday");
}

// ------------------------------------------------------------------------------------- refusals

static void syntax_errors_name_the_line(void **state)
{
    (void)state;
    static const char *const bad[] = {"{% for x in l %}",  "{% if %}",    "{{ 1 + }}",
                                      "{{ 'a }}",          "{% endif %}", "{# open",
                                      "{% raw %} x",       "{{ (1, 2 }}", "{% set 1 = 2 %}",
                                      "{% nonsense %}",    "{{ }}",       "{% macro x( %}",
                                      "{{ a.b.",           "{%",          "{{ x is nonsense }}",
                                      "{% include 'x' %}", "{{ ')' ) }}", "{{ 99999999999999999999 }}"};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) check_fails(bad[i], FRIT_E_FORMAT, "chat template, line 1: ");
    check_fails("a\n\n{% if %}", FRIT_E_FORMAT, "line 3: ");
    check_fails("a\n{{ undefined_name.x }}", FRIT_E_INVALID, "line 2: 'undefined_name' is undefined");
}

static void the_sandbox_hides_what_changes_or_reveals(void **state)
{
    (void)state;
    check_fails("{{ l.append(4) }}", FRIT_E_INVALID, "not allowed");
    check_fails("{{ d.pop('b') }}", FRIT_E_INVALID, "not allowed");
    check("{{ s.__class__ }}{{ d.__init__ }}", "");
    check_fails("{{ s.__class__.__mro__ }}", FRIT_E_INVALID, "undefined");
    check_fails("{{ l|nonsense }}", FRIT_E_INVALID, "no filter 'nonsense'");
}

static void a_template_cannot_run_or_grow_for_ever(void **state)
{
    (void)state;
    check_fails("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", FRIT_E_LIMIT, "");
    check_fails("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", FRIT_E_LIMIT, "levels deep");
    check_fails("{{ range(1000000000) }}", FRIT_E_LIMIT, "a range of more than");
    check_fails("{{ 'x' * 1000000000 }}", FRIT_E_LIMIT, "memory");
    check_fails("{{ 'x'.ljust(1000000000) }}", FRIT_E_LIMIT, "memory");
    check_fails("{{ '%1000000000d' % 1 }}", FRIT_E_LIMIT, "memory");
    check_fails("{% set ns = namespace(a='x') %}{% for i in range(100) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
                FRIT_E_LIMIT, "");
    check_fails(
        "{% set ns = namespace(a=[]) %}{% for i in range(100000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}",
        FRIT_E_LIMIT, "");
    check_fails("{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ "
                "ns.a == ns.a }}",
                FRIT_E_LIMIT, "");
    check_fails("{% for i in range(99999) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' * 99 }}{% endfor %}", FRIT_E_LIMIT,
                "");
    check_fails(
        "{% set a = 'a' * 1000000 %}{% for i in range(100000) %}{{ a.find(a + 'b') }}{{ a.count('ab') }}{% endfor %}",
        FRIT_E_LIMIT, "");
}

static void nesting_is_limited_when_it_is_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *open, *close;
    } units[] = {{"(", ")"}, {"[", "]"},  {"{1:", "}"}, {"not ", ""},
                 {"-", ""},  {"x[", "]"}, {"f(", ")"},  {"a if b else ", ""}};
    for (size_t i = 0; i < FRIT_COUNT(units); i++) {
        frit_buf source = {0};
        frit_buf_text(&source, "{{ ");
        for (int k = 0; k < 100000; k++) frit_buf_text(&source, units[i].open);
        frit_buf_char(&source, 'x');
        for (int k = 0; k < 100000; k++) frit_buf_text(&source, units[i].close);
        frit_buf_text(&source, " }}");
        check_fails(source.data, FRIT_E_LIMIT, "levels deep");
        frit_buf_free(&source);
    }
    frit_buf blocks = {0};
    for (int k = 0; k < 100000; k++) frit_buf_text(&blocks, "{% if t %}");
    check_fails(blocks.data, FRIT_E_LIMIT, "levels deep");
    frit_buf_free(&blocks);
}

static void lists_change_only_where_the_template_was_allowed_to(void **state)
{
    (void)state;
    static const struct {
        const char *source, *want, *fails;
    } cases[] = {
        {"{% set l = [] %}{% set _ = l.append('a') %}{% set _ = l.append(2) %}{{ l }}{{ l.pop(0) }}{{ l.pop() }}{{ l "
         "}}",
         "['a', 2]a2[]", NULL},
        {"{% set ns = namespace(q=[1, 2, 3]) %}{% for i in range(3) %}{{ ns.q.pop(0) }}{{ ns.q }}{% endfor %}",
         "1[2, 3]2[3]3[]", NULL},
        {"{% set a = [1] %}{% set b = a.copy() %}{% set _ = a.append(2) %}{{ a }}{{ b }}", "[1, 2][1]", NULL},
        {"{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}", NULL, ""},
        {"{{ [].pop() }}", NULL, "pop from empty list"},
        {"{{ [1].pop(1) }}", NULL, "pop index out of range"},
        {"{{ (1, 2).append(3) }}", NULL, "no attribute"},
        {"{% set l = [] %}{% set _ = l.append(l) %}{{ l }}", NULL, "append takes no list here"},
        {"{{ [2, 1].sort() }}", NULL, "sort"},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_template *template;
        frit_buf out = {0};
        json_t *none = json_object();
        assert_ok(frit_template_new(&template, frit_str_of(cases[i].source)));
        frit_status status = frit_template_render(template, none, &now, &out, NULL);
        assert_int_equal(status, FRIT_E_INVALID);   // as transformers' sandbox
        frit_buf_clear(&out);
        frit_template_allow_changes(template);
        status = frit_template_render(template, none, &now, &out, NULL);
        bool good = cases[i].want ? status == FRIT_OK && strcmp(out.data ? out.data : "", cases[i].want) == 0
                                  : status != FRIT_OK && strstr(frit_error(), cases[i].fails);
        if (!good)
            fail_msg("%s: got %s, not %s", cases[i].source, status == FRIT_OK ? out.data : frit_error(),
                     cases[i].want ? cases[i].want : cases[i].fails);
        frit_buf_free(&out);
        json_decref(none);
        frit_template_free(template);
    }
}

static int64_t steps_of(frit_str source, frit_status *status)
{
    int64_t n_steps = 20 * 1000 * 1000;
    frit_template *template;
    frit_buf out = {0};
    json_t *variables = json_object();
    assert_ok(frit_template_new(&template, source));
    *status = frit_template_render_within(template, variables, &now, &out, NULL, &n_steps);
    json_decref(variables);
    frit_template_free(template);
    frit_buf_free(&out);
    return n_steps;
}

// Names are found by linear search, which costs steps if there are many.
static void many_names_cost_steps(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        int n;
        frit_status status;
    } rows[] = {
        {"{%% set v%d=1 %%}", 40, FRIT_OK},
        {"{%% set v%d=1 %%}", 5000, FRIT_OK},
        {"{%% set v%d=1 %%}", 45000, FRIT_E_LIMIT},
        {"{%% macro m%d()%%}{%%endmacro%%}", 5000, FRIT_OK},
        {"{{v%d}}", 50000, FRIT_OK},   // undefined names cost nothing
        {"{%% set ns.v%d=1 %%}", 30000, FRIT_E_LIMIT},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_buf source = {0};
        frit_status status;
        frit_buf_text(&source, "{% set ns = namespace() %}");
        for (int k = 0; k < rows[i].n; k++) {
            char unit[64];
            snprintf(unit, sizeof unit, rows[i].unit, k);
            frit_buf_text(&source, unit);
        }
        const int64_t n_steps = steps_of((frit_str){source.data, source.len}, &status);
        const int64_t n = rows[i].n, least = strstr(rows[i].unit, "{{") || n < 64 ? n : n * n / 2 / 40;
        if (status != rows[i].status) fail_msg("row %zu: status %d after %lld steps", i, status, (long long)n_steps);
        if (status == FRIT_OK && n_steps < least) fail_msg("row %zu: %lld steps", i, (long long)n_steps);
        if (status == FRIT_OK && n < 64) assert_true(n_steps < 4 * n + 16);   // few names cost no steps
        if (status != FRIT_OK) assert_non_null(strstr(frit_error(), "takes more than 20000000 steps"));
        frit_buf_free(&source);
    }
}

static void a_template_has_two_megabytes_and_so_many_tokens_at_most(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        size_t n;
        const char *sentence;
    } rows[] = {
        {"{{a}}", 160000, NULL},
        {"{{a}}", 170000, "line 1: more than 500000 names, marks and texts"},
        {"a", 2 << 20, NULL},
        {"a", (2 << 20) + 1, "the chat template has 2097153 bytes, expected at most 2097152"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_buf source = {0};
        frit_template *template;
        for (size_t k = 0; k < rows[i].n; k++) frit_buf_text(&source, rows[i].unit);
        const frit_status status = frit_template_new(&template, (frit_str){source.data, source.len});
        if (rows[i].sentence)
            assert_fails(status, FRIT_E_LIMIT, rows[i].sentence);
        else
            assert_ok(status);
        frit_template_free(template);
        frit_buf_free(&source);
    }
}

// Two to the sixty items would be printed; only the first 16 MiB are.
static void printing_ends_where_a_text_is_too_long(void **state)
{
    (void)state;
    static const char *const ends[] = {"{{ ns.a }}", "{{ ns.a | tojson }}", "{{ ns.a | string | length }}",
                                       "{{ ns.a | tojson(indent='x' * 10000) }}"};
    for (size_t i = 0; i < FRIT_COUNT(ends); i++) {
        char source[256];
        frit_status status;
        snprintf(source, sizeof source,
                 "{%% set ns = namespace(a=[1]) %%}{%% for i in range(60) %%}{%% set ns.a = [ns.a, ns.a] %%}"
                 "{%% endfor %%}%s",
                 ends[i]);
        const int64_t n_steps = steps_of(frit_str_of(source), &status);
        assert_int_equal(status, FRIT_E_LIMIT);
        assert_non_null(strstr(frit_error(), "more than 16 MiB"));
        assert_true(n_steps < 10 * 1000 * 1000);   // a step is an item or more
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_change_only_where_the_template_was_allowed_to),
        cmocka_unit_test(published_templates_render_as_published),
        cmocka_unit_test(nasty_templates_render_as_jinja_renders_them),
        cmocka_unit_test(values_print_as_python_prints_them),
        cmocka_unit_test(arithmetic_is_pythons),
        cmocka_unit_test(text_is_counted_in_characters),
        cmocka_unit_test(formats_are_pythons),
        cmocka_unit_test(json_is_pythons),
        cmocka_unit_test(sequences_are_filtered),
        cmocka_unit_test(white_space_goes_where_trim_blocks_sends_it),
        cmocka_unit_test(scopes_are_jinjas),
        cmocka_unit_test(a_template_may_refuse_in_its_own_words),
        cmocka_unit_test(syntax_errors_name_the_line),
        cmocka_unit_test(the_sandbox_hides_what_changes_or_reveals),
        cmocka_unit_test(a_template_cannot_run_or_grow_for_ever),
        cmocka_unit_test(many_names_cost_steps),
        cmocka_unit_test(a_template_has_two_megabytes_and_so_many_tokens_at_most),
        cmocka_unit_test(printing_ends_where_a_text_is_too_long),
        cmocka_unit_test(nesting_is_limited_when_it_is_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

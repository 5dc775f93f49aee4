// SPDX-License-Identifier: MIT
// Names of models: valid names, refused names, and that no name leads out of a cache.
#include "hub/hf_cache.h"
#include "hub/http.h"
#include "hub/name.h"
#include "support/support.h"

static hub_settings settings;

static hub_status read_name(const char *text, hub_name *name)
{
    return hub_name_read(&settings, text, name);
}

static void names_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text, *repo, *revision, *part, *again;
    } rows[] = {
        {"hf:org/repo", "org/repo", "main", "", "hf:org/repo"},
        {"hf:org/repo:Q4_K_M", "org/repo", "main", "Q4_K_M", "hf:org/repo:Q4_K_M"},
        {"hf:org/repo:a/b c.gguf", "org/repo", "main", "a/b c.gguf", "hf:org/repo:a/b c.gguf"},
        {"hf:org/repo@v1.0:Q8_0", "org/repo", "v1.0", "Q8_0", "hf:org/repo@v1.0:Q8_0"},
        {"hf:org/repo@refs/pr/1", "org/repo", "refs/pr/1", "", "hf:org/repo@refs/pr/1"},
        {"hf://gpt2", "gpt2", "main", "", "hf:gpt2"},
        {"lmstudio:org/Repo-1.5_x", "org/Repo-1.5_x", "main", "", "lmstudio:org/Repo-1.5_x"},
        {"ollama:llama3.2", "library/llama3.2", "latest", "", "ollama:llama3.2:latest"},
        {"ollama:llama3.2:1b", "library/llama3.2", "1b", "", "ollama:llama3.2:1b"},
        {"ollama:me/tale:8b", "me/tale", "8b", "", "ollama:me/tale:8b"},
        {"ollama:host.example:5000/me/tale:8b", "me/tale", "8b", "", "ollama:host.example:5000/me/tale:8b"},
        {"https://a.example/x/y.gguf?z=1", "", "", "y.gguf", "https://a.example/x/y.gguf?z=1"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        hub_name name;
        hub_path again;
        if (read_name(rows[i].text, &name) != HUB_OK) fail_msg("%s: %s", rows[i].text, hub_error());
        assert_string_equal(name.repo, rows[i].repo);
        assert_string_equal(name.revision, rows[i].revision);
        assert_string_equal(name.part, rows[i].part);
        assert_int_equal(hub_name_text(&name, &again), HUB_OK);
        assert_string_equal(again.text, rows[i].again);
    }
}

static void bad_names_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "hf:",
        "hf:/",
        "hf:org/",
        "hf:/repo",
        "hf:../x",
        "hf:org/..",
        "hf:.org/x",
        "hf:-org/x",
        "hf:org/a--b",
        "hf:a/b/c",
        "hf:org/re po",
        "hf:org/repo@",
        "hf:org/repo@../main",
        "hf:org/repo@-x",
        "hf:org/repo@a/../b",
        "hf:org/repo@/abs",
        "hf:org/repo:",
        "hf:org/repo:..",
        "hf:org/repo:../../etc/passwd",
        "hf:org/repo:/etc/passwd",
        "hf:org/repo:a//b",
        "hf:org/repo:a/./b",
        "hf:org/repo:a\\b",
        "hf:org/repo:a\nb",
        "hf:org/repo\n",
        "hf:org/re%2fpo",
        "ollama:",
        "ollama::1b",
        "ollama:x:",
        "ollama:../x",
        "ollama:x:../../y",
        "ollama:a/b/c/d",
        "ollama:host.example/../x:y",
        "ollama:x y",
        "lmstudio:x",
        "lmstudio:../..",
        "https://",
        "https:///x.gguf",
        "https://a.example",
        "https://a.example/",
        "https://a.example/x/",
        "https://a.example/..",
        "https://a.example/.x",
        "https://u:p@h/x",
        "https://a.example/x y",
        "https://a.example/x\r\nHost: b",
        "http://",
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        hub_name name;
        if (read_name(bad[i], &name) != HUB_E_NAME) fail_msg("'%s' is taken as a name", bad[i]);
        assert_true(strlen(hub_error()) > 20);
        for (const char *c = hub_error(); *c; c++) assert_true((unsigned char)*c >= 32);
    }
    char longest[9000] = "hf:org/";
    memset(longest + 7, 'a', sizeof longest - 8);
    hub_name name;
    assert_int_equal(read_name(longest, &name), HUB_E_NAME);
    memcpy(longest, "https://a.b/", 12);
    assert_int_equal(read_name(longest, &name), HUB_E_NAME);
}

static void what_is_no_name_is_left_to_others(void **state)
{
    (void)state;
    static const char *const others[] = {"model.gguf", "a/b", "", "hf", "C:\\x", "ftp://a/b", "HF:org/repo", "x:y"};
    for (size_t i = 0; i < FRIT_COUNT(others); i++) {
        hub_name name;
        assert_false(hub_is_name(others[i]));
        assert_int_equal(read_name(others[i], &name), HUB_E_NOT_FOUND);
    }
}

static void addresses_of_the_hub_are_its_files(void **state)
{
    (void)state;
    hub_name name;
    assert_int_equal(read_name("https://hub.example/org/repo/resolve/main/a/b.gguf?download=true", &name), HUB_OK);
    assert_ptr_equal(name.source, &hub_source_hf);
    assert_string_equal(name.part, "a/b.gguf");
    assert_int_equal(read_name("https://hub.example/org/repo/blob/v1/b.gguf", &name), HUB_OK);
    assert_string_equal(name.revision, "v1");
    assert_int_equal(read_name("https://hub.example.evil/org/repo/resolve/main/b.gguf", &name), HUB_OK);
    assert_ptr_equal(name.source, &hub_source_https);
    assert_int_equal(read_name("https://hub.example/org/repo/resolve/../b.gguf", &name), HUB_OK);
    assert_ptr_equal(name.source, &hub_source_https);
}

static void pages_of_the_hub_and_of_ollama_are_names(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } rows[] = {
        {"https://huggingface.co/org/repo", "hf:org/repo"},
        {"https://huggingface.co/org/repo/", "hf:org/repo"},
        {"http://huggingface.co/org/repo", "hf:org/repo"},
        {"HTTPS://HuggingFace.co/org/repo", "hf:org/repo"},
        {"https://www.huggingface.co/org/repo?library=gguf#card", "hf:org/repo"},
        {"https://hf.co/org/repo", "hf:org/repo"},
        {"hf.co/org/repo", "hf:org/repo"},
        {"huggingface.co/org/repo", "hf:org/repo"},
        {"hf.co/org/repo:Q4_K_M", "hf:org/repo:Q4_K_M"},
        {"https://huggingface.co/org/repo:Q4_K_M", "hf:org/repo:Q4_K_M"},
        {"https://huggingface.co/org/repo/tree/main", "hf:org/repo"},
        {"https://huggingface.co/org/repo/tree/main/", "hf:org/repo"},
        {"https://huggingface.co/org/repo/tree/main/Q8_0", "hf:org/repo:Q8_0"},
        {"https://huggingface.co/org/repo/tree/v1.0", "hf:org/repo@v1.0"},
        {"https://huggingface.co/org/repo/tree/refs%2Fpr%2F3", "hf:org/repo@refs/pr/3"},
        {"https://huggingface.co/org/repo/tree/refs/pr/3", "hf:org/repo@refs/pr/3"},
        {"https://huggingface.co/org/repo/blob/main/x.gguf", "hf:org/repo:x.gguf"},
        {"https://huggingface.co/org/repo/blob/main/a/x%20y.gguf", "hf:org/repo:a/x y.gguf"},
        {"https://huggingface.co/org/repo/resolve/main/x.gguf?download=true", "hf:org/repo:x.gguf"},
        {"https://huggingface.co/org/repo/raw/v1/x.gguf", "hf:org/repo@v1:x.gguf"},
        {"hf.co/org/repo/blob/main/x.gguf", "hf:org/repo:x.gguf"},
        {"huggingface.co/org/repo/resolve/main/x.gguf", "hf:org/repo:x.gguf"},
        {"hf.co/org/repo/x.gguf", "hf:org/repo:x.gguf"},
        {"https://huggingface.co/org/repo?show_file_info=a%2Fx.gguf", "hf:org/repo:a/x.gguf"},
        {"https://huggingface.co/org/repo/commit/0123456789abcdef", "hf:org/repo@0123456789abcdef"},
        {"https://huggingface.co/org/repo/commits/main", "hf:org/repo"},
        {"https://huggingface.co/org/repo/discussions/7", "hf:org/repo"},
        {"https://huggingface.co/gpt2", "hf:gpt2"},
        {"https://huggingface.co/gpt2/resolve/main/x.gguf", "hf:gpt2:x.gguf"},
        {"https://ollama.com/library/llama3.2", "ollama:llama3.2:latest"},
        {"https://ollama.com/library/llama3.2:1b", "ollama:llama3.2:1b"},
        {"https://ollama.com/library/llama3.2/tags", "ollama:llama3.2:latest"},
        {"https://ollama.com/library/llama3.2:1b/blobs/74701a8c35f6", "ollama:llama3.2:1b"},
        {"ollama.com/library/llama3.2%3A1b", "ollama:llama3.2:1b"},
        {"https://ollama.com/me/tale:8b", "ollama:me/tale:8b"},
        {"https://www.ollama.com/me/tale", "ollama:me/tale:latest"},
        {"registry.ollama.ai/library/llama3.2:1b", "ollama:llama3.2:1b"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        hub_name name;
        hub_path again;
        if (read_name(rows[i].text, &name) != HUB_OK) fail_msg("%s: %s", rows[i].text, hub_error());
        assert_int_equal(hub_name_text(&name, &again), HUB_OK);
        assert_string_equal(again.text, rows[i].name);
    }
}

static void other_pages_name_no_model(void **state)
{
    (void)state;
    static const char *const others[] = {
        "https://huggingface.co",
        "https://huggingface.co/",
        "https://huggingface.co/models?search=llama",
        "https://huggingface.co/datasets/org/data",
        "https://huggingface.co/spaces/org/space",
        "https://huggingface.co/docs/hub/index",
        "https://huggingface.co/org/repo/blob/main",
        "https://huggingface.co/org/repo/what/is/this",
        "https://huggingface.co/org/repo/blob/../x.gguf",
        "https://huggingface.co/org/repo/blob/main/../../x.gguf",
        "https://huggingface.co/org/repo/blob/main/a%2F..%2F..%2Fx.gguf",
        "https://huggingface.co/org/repo/blob/main/x%00.gguf",
        "https://huggingface.co/org/repo/blob/main/x%0a.gguf",
        "https://huggingface.co/org/repo/blob/main/%E2%80%AEx.gguf",
        "https://huggingface.co/org/repo/tree/-x",
        "https://huggingface.co/../repo",
        "https://hf.co/org/repo:a/b/c.gguf",
        "hf.co/",
        "https://ollama.com/",
        "https://ollama.com/library",
        "https://ollama.com/search?q=x",
        "https://ollama.com/blog/x",
    };
    for (size_t i = 0; i < FRIT_COUNT(others); i++) {
        hub_name name;
        if (read_name(others[i], &name) != HUB_E_NAME) fail_msg("'%s' is taken as a name", others[i]);
        assert_true(strlen(hub_error()) > 20);
    }
    hub_name name;
    assert_int_equal(read_name("https://huggingface.co.evil/org/repo/x.gguf", &name), HUB_OK);
    assert_ptr_equal(name.source, &hub_source_https);
    assert_int_equal(read_name("hf.co", &name), HUB_E_NOT_FOUND);
}

static void what_other_programs_call_a_model_is_guessed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;   // NULL: nothing
    } rows[] = {
        {"org/repo", "hf:org/repo"},
        {"org/repo:Q4_K_M", "hf:org/repo:Q4_K_M"},
        {"llama3.2:1b", "ollama:llama3.2:1b"},
        {"llama3.2", NULL},
        {"org/repo:x.gguf", "hf:org/repo:x.gguf"},
        {"org/embed-v1.5", "hf:org/embed-v1.5"},
        {"HF:Org/Repo:Q4_K_M", "hf:Org/Repo:Q4_K_M"},
        {"huggingface:org/repo", "hf:org/repo"},
        {"hf-hub:org/repo", "hf:org/repo"},
        {"Ollama:llama3.2", "ollama:llama3.2"},
        {"LMStudio:org/repo", "lmstudio:org/repo"},
        {"HF:", NULL},
        {"models/x.gguf", NULL},
        {"models/x.imatrix", NULL},
        {"a/b/c", NULL},
        {"./models", NULL},
        {"../models", NULL},
        {"/models/x", NULL},
        {"C:\\models", NULL},
        {"C:/models", NULL},
        {"", NULL},
        {":", NULL},
        {"two words:x", NULL},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        hub_path name;
        const hub_status status = hub_guess_name(rows[i].text, &name);
        if ((status == HUB_OK) != (rows[i].name != NULL)) fail_msg("'%s'", rows[i].text);
        if (status == HUB_OK) assert_string_equal(name.text, rows[i].name);
    }
}

static void paths_stay_in_the_cache(void **state)
{
    (void)state;
    static const char *const good[] = {"a",        "a/b",           "a b/c", "..a", "a..", "-x", ".gitattributes",
                                       "\xc3\xa4", "\xe6\x96\x87/a"};
    static const char *const bad[] = {"",
                                      "/",
                                      "/a",
                                      "a/",
                                      "..",
                                      "a/..",
                                      "../a",
                                      "a/../b",
                                      ".",
                                      "a/.",
                                      "a\\b",
                                      "a\x7f",
                                      "a\n",
                                      "a\xc2\x9b",
                                      "a\xe2\x80\xae.gguf",
                                      "\xe2\x81\xa6x",
                                      "a\xd8\x9c"};
    for (size_t i = 0; i < FRIT_COUNT(good); i++) assert_true(hub_is_safe_path(good[i]));
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) assert_false(hub_is_safe_path(bad[i]));
}

static void etags_that_may_name_a_file(void **state)
{
    (void)state;
    char out[16];
    assert_true(hub_read_etag("\"abc\"", out, sizeof out));
    assert_string_equal(out, "abc");
    assert_true(hub_read_etag("W/\"abc\"", out, sizeof out));
    assert_string_equal(out, "abc");
    assert_false(hub_read_etag("\"\"", out, sizeof out));
    assert_false(hub_read_etag("\"aaaaaaaaaaaaaaaa\"", out, sizeof out));
    assert_true(hub_is_etag("0a-B_9"));
    static const char *const bad[] = {"", ".", "..", "a/b", "a.b", "a\"", "a b"};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) assert_false(hub_is_etag(bad[i]));
}

static void hosts_of_addresses(void **state)
{
    (void)state;
    char host[256];
    hub_host_of("https://a.example:8080/x?y", host);
    assert_string_equal(host, "a.example:8080");
    hub_host_of("http://a.example", host);
    assert_string_equal(host, "a.example");
}

int main(void)
{
    snprintf(settings.hub_endpoint.text, sizeof settings.hub_endpoint.text, "https://hub.example");
    snprintf(settings.short_names.text, sizeof settings.short_names.text, "/nonexistent");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_taken_apart),
        cmocka_unit_test(bad_names_are_refused_with_a_sentence),
        cmocka_unit_test(what_is_no_name_is_left_to_others),
        cmocka_unit_test(addresses_of_the_hub_are_its_files),
        cmocka_unit_test(pages_of_the_hub_and_of_ollama_are_names),
        cmocka_unit_test(other_pages_name_no_model),
        cmocka_unit_test(what_other_programs_call_a_model_is_guessed),
        cmocka_unit_test(paths_stay_in_the_cache),
        cmocka_unit_test(etags_that_may_name_a_file),
        cmocka_unit_test(hosts_of_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

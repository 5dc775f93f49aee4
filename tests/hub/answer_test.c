// SPDX-License-Identifier: MIT
// Answers of servers about models: valid and invalid lists of files and manifests, and the choice of the model's files.
#include "hub/manifest.h"
#include "hub/repo.h"
#include "support/support.h"

#define ZEROS    "0000000000000000000000000000000000000000"
#define COMMIT   "\"sha\": \"" ZEROS "\""
#define DIGEST   "sha256:" ZEROS "000000000000000000000000"
#define LAYER(t) "{\"mediaType\": \"application/vnd.ollama.image." t "\", \"digest\": \"" DIGEST "\", \"size\": 5}"

static hub_status parse_repo(const char *json, hub_repo *repo)
{
    return hub_repo_parse(repo, json, strlen(json), "it");
}

static void a_list_of_files_is_read(void **state)
{
    (void)state;
    hub_repo repo;
    assert_int_equal(parse_repo("{" COMMIT ", \"gated\": \"auto\", \"tags\": [1, \"license:mit\"], \"siblings\": ["
                                "{\"rfilename\": \"a\", \"size\": 3, \"blobId\": \"" ZEROS "\"},"
                                "{\"rfilename\": \"b/c.gguf\", \"size\": 9, \"blobId\": \"" ZEROS
                                "\", \"lfs\": {\"sha256\": \"" ZEROS
                                "000000000000000000000000\"}}, {\"rfilename\": \"d\"}]}",
                                &repo),
                     HUB_OK);
    assert_string_equal(repo.license, "mit");
    assert_true(repo.is_gated);
    assert_int_equal(repo.n, 3);
    assert_string_equal(repo.files[0].etag, ZEROS);
    assert_string_equal(repo.files[0].digest, ZEROS);
    assert_int_equal(strlen(repo.files[1].digest), 64);
    assert_true(repo.files[2].n_bytes == UINT64_MAX && !repo.files[2].etag[0]);
    hub_repo_free(&repo);
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "null",
        "[]",
        "{",
        "{}",
        "{\"siblings\": []}",
        "{" COMMIT "}",
        "{" COMMIT ", \"siblings\": {}}",
        "{\"sha\": \"main\", \"siblings\": []}",
        "{\"sha\": 5, \"siblings\": []}",
        "{\"sha\": \"../../../../../../../../../../../../../x\", \"siblings\": []}",
        "{" COMMIT ", \"siblings\": [5]}",
        "{" COMMIT ", \"siblings\": [{}]}",
        "{" COMMIT ", \"siblings\": [{\"rfilename\": \"../a\"}]}",
        "{" COMMIT ", \"siblings\": [{\"rfilename\": \"/a\"}]}",
        "{" COMMIT ", \"siblings\": [{\"rfilename\": \"\"}]}",
        "{" COMMIT ", \"siblings\": [{\"rfilename\": \"a\\u0000b\"}]}",
        "{" COMMIT ", \"siblings\": [{\"rfilename\": \"a\\nb\"}]}",
        "{" COMMIT ", \"siblings\": [{\"rfilename\": \"a\", \"size\": -1}]}",
        "{" COMMIT ", \"siblings\": [{\"rfilename\": \"a\", \"size\": \"5\"}]}",
        "{" COMMIT ", \"siblings\": [{\"rfilename\": \"a\", \"size\": 1e30}]}",
        "<html>",
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        hub_repo repo;
        if (parse_repo(bad[i], &repo) != HUB_E_DATA) fail_msg("taken: %s", bad[i]);
    }
}

static void manifests_are_read_or_refused(void **state)
{
    (void)state;
    hub_manifest manifest;
    const char *good = "{\"config\": " LAYER("x") ", \"layers\": [" LAYER("license") ", " LAYER("model") "]}";
    assert_int_equal(hub_manifest_parse(&manifest, good, strlen(good), "it"), HUB_OK);
    assert_int_equal(manifest.n, 3);
    assert_int_equal(manifest.model, 1);
    assert_int_equal(manifest.n_bytes, 15);
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"layers\": 5}",
        "{\"layers\": []}",
        "{\"layers\": [5]}",
        "{\"layers\": [" LAYER("license") "]}",
        "{\"layers\": [" LAYER("model") ", " LAYER("model") "]}",
        "{\"layers\": [{\"mediaType\": \"x.model\", \"digest\": \"sha256:..\", \"size\": 5}]}",
        "{\"layers\": [{\"mediaType\": \"x.model\", \"digest\": \"md5:" ZEROS "\", \"size\": 5}]}",
        "{\"layers\": [{\"mediaType\": \"x.model\", \"digest\": \"" DIGEST "\", \"size\": -5}]}",
        "{\"layers\": [{\"mediaType\": \"x.model\", \"digest\": \"" DIGEST "\", \"size\": 9000000000000000000}]}",
        "{\"layers\": [{\"mediaType\": \"x.model\", \"digest\": \"" DIGEST "\"}]}",
        "{\"layers\": [" LAYER("model") "], \"config\": 5}",
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++)
        if (hub_manifest_parse(&manifest, bad[i], strlen(bad[i]), "it") != HUB_E_DATA) fail_msg("taken: %s", bad[i]);
}

static void quantizations_of_file_names(void **state)
{
    (void)state;
    static const struct {
        const char *file, *quant;
    } rows[] = {
        {"Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"},
        {"tale.q8_0.gguf", "Q8_0"},
        {"x-IQ4_XS.gguf", "IQ4_XS"},
        {"x-UD-Q4_K_XL-00001-of-00002.gguf", "Q4_K_XL"},
        {"x-bf16.gguf", "BF16"},
        {"Q8_0/x-Q4_0.gguf", "Q4_0"},
        {"gpt-oss-20b-mxfp4.gguf", "MXFP4"},
        {"xQ4_0.gguf", ""},
        {"model.gguf", ""},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char quant[24];
        hub_quant_of(rows[i].file, quant);
        assert_string_equal(quant, rows[i].quant);
    }
}

// Checks the choice among files with sizes in MiB, or its failure.
static void expect_choice(const char *files, const char *part, uint64_t room_mib, const char *main, size_t n_files)
{
    char path[128];
    hub_repo repo = {0};
    hub_choice choice;
    int n, mib;
    for (const char *at = files; sscanf(at, " %127[^=]=%d%n", path, &mib, &n) == 2; at += n)
        assert_int_equal(hub_repo_add(&repo, path, (uint64_t)mib << 20, NULL), HUB_OK);
    const hub_status status = hub_choose(&repo, part, room_mib << 20, "it", &choice);
    if ((status == HUB_OK) != (main != NULL)) fail_msg("%s | %s: %s", files, part, hub_error());
    if (status == HUB_OK) {
        assert_string_equal(choice.main, main);
        assert_int_equal(choice.n_files, n_files);
        hub_choice_free(&choice);
    }
    hub_repo_free(&repo);
}

static void the_file_that_a_name_means(void **state)
{
    (void)state;
    const char *usual =
        "m-Q2_K.gguf=300 m-Q4_K_M.gguf=500 m-Q8_0.gguf=900 m-F16.gguf=1800 mmproj-F16.gguf=10 README.md=1";
    expect_choice(usual, "", 0, "m-Q4_K_M.gguf", 1);
    expect_choice(usual, "", 1400, "m-Q4_K_M.gguf", 1);
    expect_choice(usual, "", 1200, "m-Q2_K.gguf", 1);
    expect_choice(usual, "", 800, NULL, 0);
    expect_choice(usual, "q8_0", 1, "m-Q8_0.gguf", 1);
    expect_choice(usual, "mmproj-F16.gguf", 0, "mmproj-F16.gguf", 1);
    expect_choice(usual, "Q5_K_M", 0, NULL, 0);
    expect_choice("m-Q8_0.gguf=900 m-F16.gguf=1800", "", 9000, "m-Q8_0.gguf", 1);
    expect_choice("a-Q4_0.gguf=1 b-Q4_0.gguf=1", "Q4_0", 0, NULL, 0);   // ambiguous
    expect_choice("a-Q4_0.gguf=1 b-Q4_0.gguf=1", "b-Q4_0.gguf", 0, "b-Q4_0.gguf", 1);
    expect_choice("m-UD-Q4_K_XL.gguf=1 m-Q4_K_M.gguf=1", "UD-Q4_K_XL", 0, "m-UD-Q4_K_XL.gguf", 1);
    expect_choice("m-Q8_0-00002-of-00002.gguf=1 m-Q8_0-00001-of-00002.gguf=1", "Q8_0", 0, "m-Q8_0-00001-of-00002.gguf",
                  2);
    expect_choice("m-Q8_0-00002-of-00002.gguf=1 m-Q8_0-00001-of-00002.gguf=1", "m-Q8_0-00002-of-00002.gguf", 0,
                  "m-Q8_0-00001-of-00002.gguf", 2);
    expect_choice("m-Q8_0-00002-of-00003.gguf=1 m-Q8_0-00001-of-00003.gguf=1", "Q8_0", 0, NULL, 0);
    expect_choice("config.json=1 model.safetensors=1 tokenizer.json=1 x.bin=1 sub/model.safetensors=1", "", 0, "", 3);
    expect_choice("config.json=1 model.safetensors=1 consolidated.safetensors=1", "", 0, "", 2);
    expect_choice("config.json=1 model-00001-of-00002.safetensors=1", "", 0, NULL, 0);
    expect_choice("README.md=1", "", 0, NULL, 0);
    expect_choice("", "", 0, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_files_is_read),       cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(manifests_are_read_or_refused), cmocka_unit_test(quantizations_of_file_names),
        cmocka_unit_test(the_file_that_a_name_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

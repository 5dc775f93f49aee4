// SPDX-License-Identifier: MIT
// The command line: names of options, and the sources of prompts and models.
#include "support/command_posix.h"

#include <unistd.h>

static void options_have_the_names_of_llama_cpp_too(void **state)
{
    (void)state;
    char line[1024], model[512];
    snprintf(model, sizeof model, "%s", project_path("models/fable.gguf"));
    outcome o = frit("run -q --raw -p 'Once upon' -n 8 -c 64 --seed 3 --temp 1 -b 16 -t 1", NULL);
    assert_int_equal(o.code, 0);
    snprintf(line, sizeof line,
             "run -m '%s' -q --raw -p 'Once upon' --predict 8 --ctx-size 64 -s 3 --temperature 1 -ub 16 --threads 1",
             model);
    expect(line, NULL, 0, o.out, NULL);
    expect("run -q --raw -p 'Once upon' --n-predict 8 --ctx-size=64 -s3 --temp 1 --batch-size 16 --ubatch-size 16 -t1",
           NULL, 0, o.out, NULL);
    outcome_free(&o);
    expect("run -q -sys 'Be kind.' -p x -n 1 -r stop --reverse-prompt halt", NULL, 0, NULL, NULL);
    expect("chat -q --system-prompt 'Be kind.' -n 1 --chat-template-kwargs '{\"a\": 1}'", "/system\n", 0, NULL, "kind");
    expect("bench -q -p 4 -n 0 -r 1 --no-probe --batch-size 4 --ubatch-size 2 -o csv", NULL, 0, "pp4", NULL);
    expect("perplexity -q -f - -c 4 --chunks 1", "one two three four five six", 0, "in 1 windows of 4", NULL);
    expect("help run --all", NULL, 0, "--ctx-size", NULL);
    expect("run --help --all", NULL, 0, "also -ub,", NULL);
    expect("run --help-all", NULL, 0, "also -ub,", NULL);
    expect("help --man", NULL, 0, "ctx-size", NULL);
    // The environment has frit's names for them, and mistakes are explained.
    expect("run -p x --ctx-sice 4", NULL, 2, NULL, "did you mean '--ctx-size'?");
}

static void options_of_several_letters_that_frit_lacks_are_refused_by_name(void **state)
{
    (void)state;
    const char *options[] = {"-nkvo", "-mg", "-pvalue", "-nx", "-cb"};
    for (size_t i = 0; i < FRIT_COUNT(options); i++) {
        char line[64], sentence[64];
        snprintf(line, sizeof line, "run %s 99 -p x", options[i]);
        snprintf(sentence, sizeof sentence, "no option '%s'; 'frit run --help-all' lists them", options[i]);
        expect(line, NULL, 2, NULL, sentence);
    }
    expect("run -p x --flash-attn 1", NULL, 2, NULL, "no option '--flash-attn'; attention is chosen by itself");
    expect("run -p x -model y", NULL, 2, NULL, "no option '-model'; did you mean '--model'?");
    expect("run -p x --format json", NULL, 2, NULL, "--json-schema '{}' makes answers JSON");
    expect("run -p x -cnv", NULL, 2, NULL, "no option '-cnv'; 'frit chat' has conversations");
    expect("run --temp -p x", NULL, 2, NULL, "--temp: needs a value (T)");
    expect("run -p -x -n 1", NULL, 0, NULL, NULL);   // a text may begin with a dash
    expect("quantize a.gguf b.gguf q4_k_m", NULL, 2, NULL, "--mix q4_k_m");
    expect("create x", NULL, 2, NULL, "no command 'create'; 'frit help' lists them");
    expect("-v", NULL, 0, frit_version(), NULL);
    expect("run -q -p x -n1 -t+1 -c64", NULL, 0, NULL, NULL);   // numbers may follow directly
    expect("bench -p 4 -n0 -r1 -t1,1 --no-probe -q", NULL, 0, "pp4", NULL);
}

// Command lines for other programs have GPU options; without a GPU they have no effect.
static void options_of_gpus_do_no_harm_without_one(void **state)
{
    (void)state;
    expect("run -p x -n 1 -c 64 -ngl 99", NULL, 0, NULL, "gpu-layers 99: there is no GPU");
    expect("run -q -p x -n 1 -c 64 --n-gpu-layers 0 --device cpu -ot ffn=CPU --deterministic", NULL, 0, NULL, NULL);
    expect("run -q -p x -n 1 -ngl some", NULL, 2, NULL, "'some' is not a number of layers");
    expect("run -q -p x -n 1 --device cuda", NULL, 2, NULL, "device: 'cuda' is not a device that frit can use here");
    expect("run -q -p x -n 1 -ot ffn=CUDA0", NULL, 2, NULL, "this engine has no device 'CUDA0', it has cpu");
}

static void answers_follow_a_grammar(void **state)
{
    (void)state;
    char line[1024];
    const char *file = temp_path("rules");
    write_file(file, "root ::= \"# \" [a-z]{4}\n", 22);
    snprintf(line, sizeof line, "run -q --raw -p 'Once upon' -s 1 --grammar '%s'", file);
    expect(line, NULL, 0, "# ", NULL);
    expect("run -q --raw -p 'Once upon' --grammar 'root ::= \"x7\"'", NULL, 0, "x7\n", NULL);
    expect("run -q --raw -p 'Once upon' --json-schema '{\"const\": [1, \"x\"]}' --temp 0", NULL, 0, "\"x\"", NULL);
    expect("run -q --raw -p 'Once upon' --regex 'x(7|8)y'", NULL, 0, "x", NULL);
    expect("chat -q --regex 'x(7|8)y'", "hello\nagain\n", 0, "x", NULL);
    expect("run -q --raw -p x --regex '(7'", NULL, 2, NULL, "--regex: regular expression '(7': found its end");
    expect("run -q --raw -p x --grammar 'root ::= [a'", NULL, 2, NULL, "--grammar: grammar, line 1");
    expect("run -q --raw -p x --json-schema '{\"$ref\": \"y\"}'", NULL, 2, NULL, "'$ref' to 'y'");
    expect("run -q --raw -p x --regex a --grammar b", NULL, 2, NULL, "give one of them");
    expect("run -q --raw -p x --grammar rules.gbnf", NULL, 2, NULL,
           "--grammar: there is no file 'rules.gbnf', and it is not a grammar: it has no '::='");
    expect("run -q --raw -p 'Once upon' --temp 0 -n 8 --structural-tag '{\"type\": \"tag\", \"begin\": \"<\", "
           "\"content\": "
           "{\"type\": \"regex\", \"pattern\": \"x(7|8)\"}, \"end\": \">\"}'",
           NULL, 0, "<x", NULL);
    expect("run -q --raw -p x --structural-tag '{\"triggers\": [\"a\"], \"structures\": []}'", NULL, 2, NULL,
           "--structural-tag: structural tag: structures is empty");
    expect("run -q --raw -p x --structural-tag '<x>'", NULL, 2, NULL, "it is not a structural tag");
    expect("run -q --raw -p x --json-schema order.json", NULL, 2, NULL,
           "--json-schema: there is no file 'order.json', and it is not a JSON schema: it does not begin with '{'");
}

static void piped_text_follows_the_prompt(void **state)
{
    (void)state;
    char line[1024], model[512];
    snprintf(model, sizeof model, "%s", project_path("models/fable.gguf"));
    outcome o = frit("run -q --temp 0 -n 8 -p 'Summarize:\n\nA tale\nof a king.'", NULL);
    assert_int_equal(o.code, 0);
    expect("run -q --temp 0 -n 8 -p Summarize:", "A tale\nof a king.\n", 0, o.out, NULL);
    snprintf(line, sizeof line, "run '%s' Summarize: -q --temp 0 -n 8", model);
    expect(line, "A tale\nof a king.\n", 0, o.out, NULL);
    char file[512];
    snprintf(file, sizeof file, "%s", temp_path("question"));
    write_file(file, "Summarize:\n", 11);
    snprintf(line, sizeof line, "run -q --temp 0 -n 8 -f '%s'", file);
    expect(line, "A tale\nof a king.\n", 0, o.out, NULL);
    char command[2048];
    snprintf(command, sizeof command,
             "test \"$(printf 'A tale\\nof a king.\\n' | '%s/frit' run '%s' 'Summarize:' -q --temp 0 -n 8)\" = \"$(cat "
             "'%s')\"",
             FRIT_BUILD_DIR, model, (write_file(file, o.out, strlen(o.out)), file));
    assert_int_equal(system(command), 0);
    outcome_free(&o);
    // Nothing is piped in, so only the prompt is used.
    o = frit("run -q --temp 0 -n 8 -p 'Tell me a story.'", NULL);
    expect("run -q --temp 0 -n 8 -p 'Tell me a story.'", "", 0, o.out, NULL);
    outcome with_null = frit_with("run -q --temp 0 -n 8 -p 'Tell me a story.'", "x", "</dev/null");
    assert_string_equal(o.out, with_null.out);
    outcome_free(&with_null);
    outcome_free(&o);
    // With --raw the prompt is used byte for byte.
    o = frit("run -q --raw --temp 0 -n 8 -p 'Once\n\nupon a time\n'", NULL);
    expect("run -q --raw --temp 0 -n 8 -p Once", "upon a time\n", 0, o.out, NULL);
    outcome_free(&o);
    expect("run -q -p x", NULL, 0, NULL, NULL);
}

static void a_prompt_with_a_zero_byte_is_refused(void **state)
{
    (void)state;
    char file[512], line[1024];
    snprintf(file, sizeof file, "%s", temp_path("binary"));
    write_file(file, "ab\0cd", 5);
    snprintf(line, sizeof line, "run -q -f '%s'", file);
    expect(line, NULL, 2, NULL, "byte 2 of the prompt is zero");
}

// "frit run MODEL hello there", "frit MODEL hello", "frit -m MODEL -p hello" and "frit run 'hello there'".
static void a_model_and_words_are_an_answer(void **state)
{
    (void)state;
    char line[1024], model[512];
    snprintf(model, sizeof model, "%s", project_path("models/fable.gguf"));
    outcome o = frit("run -q -n 8 -p 'Tell me a story.'", NULL);
    static const char *const lines[] = {"run '%s' -q -n 8 Tell me a story.", "run '%s' Tell me -q -n 8 a story.",
                                        "'%s' 'Tell me a story.' -q -n 8", "-m '%s' -q -n 8 -p 'Tell me a story.'",
                                        "run -m '%s' -q -n 8 Tell me a story."};
    for (size_t i = 0; i < FRIT_COUNT(lines); i++) {
        snprintf(line, sizeof line, lines[i], model);
        expect(line, NULL, 0, o.out, NULL);
    }
    expect("run -q -n 8 'Tell me a story.'", NULL, 0, o.out, NULL);
    snprintf(line, sizeof line, "'%s' -q -n 8", model);
    expect(line, "Tell me a story.\n", 0, o.out, NULL);
    outcome_free(&o);
    expect("ls", NULL, 2, NULL, "no command 'ls'; did you mean 'frit list'?");
    expect("org/model", NULL, 2, NULL, "it is run by 'frit run hf:org/model'");
    expect("--modle x", NULL, 2, NULL, "no option '--modle' without a command");
}

static void two_models_are_one_too_many(void **state)
{
    (void)state;
    char line[2048], model[512], copy[512];
    snprintf(model, sizeof model, "%s", project_path("models/fable.gguf"));
    snprintf(copy, sizeof copy, "%s", temp_path("unnamed"));
    assert_int_equal(symlink(model, copy), 0);
    snprintf(line, sizeof line, "run '%s' '%s'", model, model);
    expect(line, NULL, 2, NULL, "run: two models, '");
    snprintf(line, sizeof line, "run '%s' '%s'", model, copy);   // recognised by its first bytes
    expect(line, NULL, 2, NULL, "expected one, and a prompt");
    expect("run Once", "", 2, NULL, "'Once' was taken as the model: give a prompt with -p");
    expect("missing.gguf", "", 3, NULL, "missing.gguf: there is no such file");
    expect("run -p x --session ''", "", 2, NULL, "--session: the name is empty; expected FILE");
    expect("run -p x --model=", "", 2, NULL, "--model: the name is empty; expected FILE");
    expect("run '' x", "", 3, NULL, "'': cannot be opened");
    expect("run llama3.2:1b -p x", "", 3, NULL,
           "llama3.2:1b: there is no such file; the model of ollama is called ollama:llama3.2:1b");
    expect("run HF:gpt2 -p x", "", 3, NULL, "the repository of the Hugging Face hub is called hf:gpt2");
    expect("run Ollama:llama3.2 -p x", "", 3, NULL, "the model of ollama is called ollama:llama3.2");
    expect("run -hfr org/repo -p x", "", 2, NULL, "a repository is given by -hf ORG/REPO");
    expect("run llama3.2 -p x", "", 3, NULL, "as hf:ORG/REPO or ollama:llama3.2");
    expect("run org/model:Q4_K_M -p x", "", 3, NULL, "is called hf:org/model:Q4_K_M");
    expect("info no/such.gguf", "", 3, NULL, "no/such.gguf: cannot be opened: No such file");
    expect("run", "", 2, NULL, "run: the prompt is empty; give one with -p TEXT");
    expect("run a.gguf b.gguf", NULL, 2, NULL, "run: two models, 'a.gguf' and 'b.gguf'; expected one, and a prompt");
    snprintf(line, sizeof line, "run '%s' -m b.gguf", model);
    expect(line, NULL, 2, NULL, "named twice: '");
    expect("run a.gguf Hello -m b.gguf", NULL, 2, NULL, "run: the model is named twice: 'a.gguf' and -m b.gguf");
    const char *commands[] = {"chat",
                              "info",
                              "bench",
                              "perplexity -f /dev/null",
                              "tokenize",
                              "embed",
                              "template --messages -",
                              "logits --ids 1 -o -"};
    for (size_t i = 0; i < FRIT_COUNT(commands); i++) {
        snprintf(line, sizeof line, "%s a.gguf -m b.gguf", commands[i]);
        expect(line, "x", 2, NULL, "the model is named twice: 'a.gguf' and -m b.gguf");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_have_the_names_of_llama_cpp_too),
        cmocka_unit_test(options_of_several_letters_that_frit_lacks_are_refused_by_name),
        cmocka_unit_test(options_of_gpus_do_no_harm_without_one),
        cmocka_unit_test(answers_follow_a_grammar),
        cmocka_unit_test(piped_text_follows_the_prompt),
        cmocka_unit_test(a_prompt_with_a_zero_byte_is_refused),
        cmocka_unit_test(a_model_and_words_are_an_answer),
        cmocka_unit_test(two_models_are_one_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// The pre-tokenizers: name -> regexes, as the models publish them (tokenizer.json, tiktoken). A published regex that
// can take quadratic time on long sequences is written in an equivalent form that cannot.
#include "text/tokenizer/pretok.h"

// clang-format off

// Parts that many regexes share.
#define CONTRACTION   "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BREAK         "[^\\r\\n\\p{L}\\p{N}]?"           // one character that a word may open with
#define PUNCTUATION   " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define PUNCTUATION_  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define SPACES        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER         "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER         "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
// UPPER and LOWER without Han characters: intersections, written as complements.
#define UPPER_NO_HAN  "[^\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{Han}]"
#define LOWER_NO_HAN  "[^\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{Han}]"
// "\\s*[\\r\\n]+" without backtracking over a sequence of spaces: after a space that is not a newline, no newline
// follows.
#define NEWLINES      "(?<![\\t\\x{B}\\x{C}\\x{85}\\p{Z}])\\s*[\\r\\n]+"
#define KANA_AND_HAN  "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{30FF}]+"

#define GPT2          "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3        CONTRACTION "|" BREAK "\\p{L}+|\\p{N}{1,3}|" PUNCTUATION "|" SPACES
#define QWEN2         CONTRACTION "|" BREAK "\\p{L}+|\\p{N}|" PUNCTUATION "|" SPACES
#define QWEN35        CONTRACTION "|" BREAK "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES
#define CASED(digits, end) \
    BREAK UPPER "*" LOWER "+" end "|" BREAK UPPER "+" LOWER "*" end "|" digits "|" PUNCTUATION_ "|" SPACES
#define GPT4O         CASED("\\p{N}{1,3}", CONTRACTION "?")
#define DEEPSEEK3     "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+" \
                      "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
// Groups of three, counted from the end of a sequence. Only the start of the sequence looks ahead.
#define BY_THREES(digit) \
    "(?<!" digit ")" digit "{1,2}(?=(?:" digit "{3})*+(?!" digit "))|" digit "{3}"
#define WORDS         " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"

// Cased letters, as DeepSeek LLM lists them.
#define CASED_LETTERS \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}" \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}" \
    "\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}" \
    "\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}" \
    "\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}" \
    "\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}" \
    "\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}" \
    "\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}" \
    "\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}" \
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}" \
    "\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}" \
    "\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}" \
    "\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}" \
    "\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"

// Scripts written without spaces, as AFMoE lists them.
#define ASIAN_SCRIPTS \
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{F900}-\\x{FAFF}\\x{3040}-\\x{30FF}\\x{FF65}-\\x{FF9F}" \
    "\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}" \
    "\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+"

#define IGNORE_MERGES FRIT_PRETOK_IGNORE_MERGES
#define ADD_BOS       FRIT_PRETOK_ADD_BOS
#define ADD_SEP       FRIT_PRETOK_ADD_SEP
#define RAW           FRIT_PRETOK_RAW
#define ESCAPED       FRIT_PRETOK_ESCAPE_SPACES

const frit_pretok_row frit_pretok_rows[] = {
    {"default", 0, {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9]{3}"}},
    {"gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert exaone4 mpt olmo jais trillion "
     "granite-docling", 0, {GPT2}},
    {"jina-v1-en jina-v2-code roberta-bpe", ADD_SEP, {GPT2}},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", IGNORE_MERGES | ADD_BOS, {LLAMA3}},
    {"dbrx smaug-bpe", 0, {LLAMA3}},
    {"glm4 chatglm-bpe", FRIT_PRETOK_NO_BOS, {LLAMA3}},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2", 0, {QWEN2}},
    {"qwen35", 0, {QWEN35}},
    {"ufakzeka", 0, {BREAK "\\p{L}+|\\p{N}|" PUNCTUATION "|" SPACES}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", 0, {"\\p{N}", GPT2}},
    {"falcon", 0, {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9]{3}"}},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", 0, {GPT4O}},
    {"granite-embed-multi-97m", IGNORE_MERGES, {GPT4O}},
    {"tekken", IGNORE_MERGES | ADD_BOS, {CASED("\\p{N}", "")}},
    {"tiny_aya cohere2moe", 0, {BY_THREES("\\p{N}"), GPT4O}},
    {"deepseek-llm", 0,
     {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+", "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+",
      "(?<!\\s)\\s+\\z", "[\\x{800}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+", "\\p{N}+"}},
    {"deepseek-coder", 0, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\\x{800}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+", "\\p{N}"}},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", 0, {"\\p{N}{1,3}", KANA_AND_HAN, DEEPSEEK3}},
    {"spark2_5", 0,
     {"\\p{N}{1,3}", KANA_AND_HAN,
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
      "| ?[\\p{P}\\p{S}]+|[\\r\\n]|\\s+(?!\\S)|\\s+", "\\p{N}"}},
    {"afmoe", 0, {BY_THREES("\\p{N}"), ASIAN_SCRIPTS, DEEPSEEK3}},
    {"youtu", IGNORE_MERGES,
     {"[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+"
      "|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+"
      "|[\\x{3105}-\\x{312F}]+|" KANA_AND_HAN, CASED("\\p{N}", CONTRACTION "?")}},
    {"kimi-k2", 0,
     {"\\p{Han}+|" BREAK UPPER_NO_HAN "*" LOWER_NO_HAN "+" CONTRACTION "?|" BREAK UPPER_NO_HAN "+" LOWER_NO_HAN "*"
      CONTRACTION "?|\\p{N}{1,3}|" PUNCTUATION "|" SPACES}},
    {"bailingmoe bailingmoe2 llada-moe", 0,
     {"'(?i:[sdmt]|ll|ve|re)|" BREAK "+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {"seed-coder", 0, {CONTRACTION "|" BREAK "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES}},
    {"minicpm5", IGNORE_MERGES, {"\\p{N}{1,3}", CONTRACTION "|" BREAK "\\p{L}+|\\p{N}+|" PUNCTUATION "|" SPACES}},
    {"exaone-moe", 0,
     {CONTRACTION "|" BREAK "(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {"jais-2", 0,
     {CONTRACTION "|" BREAK "\\p{L}+|\\p{N}{1,3}|" PUNCTUATION "|" NEWLINES "|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)"
      "|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s"}},
    {"chameleon", ADD_BOS,
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", "\\p{N}", "[\\p{P}!-/:-@\\[-`{-~]", GPT2}},
    {"laguna", 0, {"[^\\n]+|\\n+", QWEN2}},
    {"superbpe", 0, {"\\p{N}+", BY_THREES("[0-9]")}},
    {"bloom poro-chat gpt3-finnish", 0, {WORDS}},
    {"viking", 0, {WORDS, "\\p{N}"}},
    {"gemma4 granite-embed-multi-311m", RAW | ESCAPED | FRIT_PRETOK_NEWLINES, {"[^\\n]+|\\n+"}},
    {"sarvam-moe", RAW | ESCAPED, {"[^\\n]+|\\n+"}},
};
// clang-format on

const size_t frit_pretok_n_rows = sizeof frit_pretok_rows / sizeof frit_pretok_rows[0];

const frit_pretok_row *frit_pretok_find(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; len > 0 && i < frit_pretok_n_rows; i++) {
        for (const char *at = frit_pretok_rows[i].names; *at; at += strcspn(at, " "), at += *at == ' ')
            if (strcspn(at, " ") == len && memcmp(at, name, len) == 0) return &frit_pretok_rows[i];
    }
    return NULL;
}

frit_status frit_pretok_add(const frit_pretok_row *row, frit_pipeline *pipeline)
{
    for (int i = 0; i < FRIT_PRETOK_MAX_REGEXES && row->regexes[i]; i++) {
        frit_regex *regex;
        FRIT_TRY(frit_regex_new(&regex, frit_str_of(row->regexes[i]), FRIT_DIALECT_PLAIN));
        pipeline->cuts[pipeline->n_cuts++] = (frit_cut){.regex = regex};
    }
    return FRIT_OK;
}

const char *frit_pretok_gpt2(void)
{
    return GPT2;
}

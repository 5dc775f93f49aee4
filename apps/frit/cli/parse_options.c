// SPDX-License-Identifier: MIT
// Parses command line and environment into the fields that option rows describe.
#include "frit/cli/cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct target {
    const frit_option *row;
    void *fields;
} target;

void cli_env_name(const char *option, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "FRIT_");
    for (; *option && n + 1 < size; option++) out[n++] = *option == '-' ? '_' : (char)toupper((unsigned char)*option);
    out[n] = 0;
}

typedef bool (*match_fn)(const frit_option *row, const char *text, size_t n);

static bool has_name(const frit_option *row, const char *text, size_t n)
{
    if (strlen(row->name) == n && !memcmp(row->name, text, n)) return true;
    for (const char *at = row->aliases; at;) {
        size_t n_word = strcspn(at, "|");
        if (n_word == n && !memcmp(at, text, n)) return true;
        at = at[n_word] ? at + n_word + 1 : NULL;
    }
    return false;
}

static bool has_letter(const frit_option *row, const char *text, size_t n)
{
    (void)n;
    return row->letter == text[0];
}

static bool has_letters(const frit_option *row, const char *text, size_t n)
{
    return row->letters && strlen(row->letters) == n && !memcmp(row->letters, text, n);
}

// Finds the row with this name (n bytes), in any group of the command.
static bool find(const cli_parse *parse, const char *text, size_t n, match_fn match, target *out)
{
    for (size_t g = 0; g < parse->command->n_groups; g++) {
        const cli_group *group = &parse->command->groups[g];
        size_t n_rows;
        const frit_option *rows = group->rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) {
            if (!match(&rows[i], text, n)) continue;
            *out = (target){&rows[i], parse->args ? parse->args + group->offset : NULL};
            return true;
        }
    }
    return false;
}

typedef struct name_list {
    const char *names[256];
    size_t n;
    char copies[2048];   // copies of aliases, each with a final zero
    size_t n_copied;
} name_list;

static void add_name(name_list *list, const char *name)
{
    if (list->n < CLI_COUNT(list->names)) list->names[list->n++] = name;
}

static void add_names(name_list *list, const frit_option *row)
{
    add_name(list, row->name);
    for (const char *at = row->aliases; at;) {
        size_t n = strcspn(at, "|");
        if (n + 1 > sizeof list->copies - list->n_copied) return;
        char *copy = memcpy(list->copies + list->n_copied, at, n);
        copy[n] = 0;
        list->n_copied += n + 1;
        add_name(list, copy);
        at = at[n] ? at + n + 1 : NULL;
    }
}

// Returns the option with the most similar name, in `list`; NULL: none is similar.
static const char *nearest_option(const cli_command *command, const char *text, name_list *list)
{
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) add_names(list, &rows[i]);
    }
    return frit_name_nearest(text, list->names, list->n);
}

const frit_option *cli_find_option(const cli_command *command, const char *name, const cli_group **group)
{
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        *group = &command->groups[g];
        for (size_t i = 0; i < n_rows; i++)
            if (has_name(&rows[i], name, strlen(name))) return &rows[i];
    }
    return NULL;
}

// Options of other programs without a counterpart here, and replacements for them.
static const struct {
    const char *words, *instead;   // words: names with dashes, separated by blanks
} others[] = {
    {"-i --interactive -if --interactive-first -cnv --conversation", "'frit chat' has conversations"},
    {"--format", "--json-schema '{}' makes answers JSON, or what a schema allows"},
    {"--jinja --no-jinja", "chat templates are always used; --raw leaves them out"},
    {"-fa --flash-attn", "attention is chosen by itself"},
    {"--color", "colours are for terminals, --no-color leaves them out"},
    {"-e --escape", "texts are taken as they are; the shell's $'a\\nb' has a newline"},
    {"-no-cnv --no-conversation -st --single-turn", "'frit run' answers once"},
    {"--image --image-tokens --image-max-tokens", "'frit run' and 'frit chat' take pictures"},
    {"-hfr --hf", "a repository is given by -hf ORG/REPO"},
    {"-hff --hf-file", "a file of a repository is named hf:ORG/REPO:FILE"},
    {"-mu --model-url", "an address is a name of a model: give it in place of the file"},
    {"--keepalive --keep-alive", "'frit serve --idle-unload SECONDS' frees models without requests"},
    {"-o --output --outfile --output-file", "the file to write is an argument"},
    {"-gan --grp-attn-n -gaw --grp-attn-w", "--rope-scaling yarn makes contexts longer than the model was trained for"},
    {"--outtype", "--type has the type of the matrices"},
};

static const char *instead_of(const char *text)
{
    const size_t n = strcspn(text, "=");
    for (size_t i = 0; i < CLI_COUNT(others); i++)
        for (const char *at = others[i].words; *at; at += strspn(at, " ")) {
            const size_t n_word = strcspn(at, " ");
            if (n_word == n && memcmp(at, text, n) == 0) return others[i].instead;
            at += n_word;
        }
    return NULL;
}

static int unknown_option(const cli_parse *parse, const char *text)
{
    name_list list = {0};
    const cli_group *group;
    const char *name = parse->command->name, *instead = instead_of(text);
    if (instead) return cli_usage("%s: no option '%s'; %s", name, text, instead);
    if (text[1] != '-' && text[2] && cli_find_option(parse->command, text + 1, &group))
        return cli_usage("%s: no option '%s'; did you mean '-%s'?", name, text, text);
    const char *nearest = strncmp(text, "--", 2) == 0 ? nearest_option(parse->command, text + 2, &list) : NULL;
    if (nearest) return cli_usage("%s: no option '%s'; did you mean '--%s'?", name, text, nearest);
    return cli_usage("%s: no option '%s'; 'frit %s --help-all' lists them", name, text, name);
}

int cli_refuse_option(const cli_command *command, const char *name, const char *origin)
{
    name_list list = {0};
    const char *nearest = nearest_option(command, name, &list);
    if (nearest) return cli_usage("%s: no option '%.60s'; did you mean '%s'?", origin, name, nearest);
    return cli_usage("%s: no option '%.60s'; 'frit %s --help-all' lists them", origin, name, command->name);
}

static int append(cli_parse *parse, const target *to, const char *text)
{
    frit_option_list *list = (frit_option_list *)((char *)to->fields + to->row->offset);
    if (parse->n_owned == (int)CLI_COUNT(parse->owned)) return cli_usage("--%s: given too often", to->row->name);
    const char **items = malloc((list->n + 1) * sizeof *items);
    if (!items) return cli_no_memory();
    if (list->n > 0) memcpy(items, list->items, list->n * sizeof *items);
    items[list->n] = text;
    parse->owned[parse->n_owned++] = items;
    *list = (frit_option_list){items, list->n + 1};
    return CLI_DONE;
}

// A seed of "-1" means a different seed each time.
static uint64_t random_seed(void)
{
    uint64_t seed = cli_now_ns() * 0x9e3779b97f4a7c15u;
    FILE *source = fopen("/dev/urandom", "rb");
    if (source) {
        if (fread(&seed, sizeof seed, 1, source) != 1) seed ^= 1;
        fclose(source);
    }
    return seed;
}

// The origin of a text, for errors: DEFAULT, a variable's name, or "" for the command line.
static const char DEFAULT[] = "default";

// True if the value is a file name, according to the metavariable in help.
static bool names_file(const frit_option *row)
{
    static const char *const words[] = {"FILE", "DIR"};
    for (size_t i = 0; row->metavar && i < CLI_COUNT(words); i++)
        if (strncmp(row->metavar, words[i], strlen(words[i])) == 0) return true;
    return false;
}

static int set(cli_parse *parse, const target *to, const char *text, const char *origin)
{
    cli_common *common = (cli_common *)parse->args;
    if (!text[0] && names_file(to->row))
        return cli_usage("%s%s--%s: the name is empty; expected %s", origin, origin[0] ? ": " : "", to->row->name,
                         to->row->metavar);
    if (strcmp(origin, DEFAULT) != 0 && common->n_given < (int)CLI_COUNT(common->given)) {
        common->typed |= (uint64_t)!origin[0] << common->n_given;
        common->given[common->n_given++] = to->row;
    }
    if (to->row->type == FRIT_OPTION_LIST) return append(parse, to, text);
    if (to->row->type == FRIT_OPTION_SEED && strcmp(text, "-1") == 0) {
        uint64_t seed = random_seed();
        memcpy((char *)to->fields + to->row->offset, &seed, sizeof seed);
        return CLI_DONE;
    }
    if (frit_option_set(to->row, to->fields, text) == FRIT_OK) return CLI_DONE;
    return cli_usage("%s%s%s", origin, origin[0] ? ": " : "", frit_error());
}

int cli_set_option(cli_parse *parse, const frit_option *row, const cli_group *group, const char *text,
                   const char *origin)
{
    return set(parse, &(target){row, parse->args + group->offset}, text, origin);
}

static int set_defaults(cli_parse *parse)
{
    for (size_t g = 0; g < parse->command->n_groups; g++) {
        const cli_group *group = &parse->command->groups[g];
        size_t n_rows;
        const frit_option *rows = group->rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) {
            target to = {&rows[i], parse->args + group->offset};
            char name[80];
            cli_env_name(rows[i].name, name, sizeof name);
            const char *env = getenv(name);
            int code = CLI_DONE;
            if (env && *env) {
                code = set(parse, &to, env, name);
            } else if (rows[i].fallback) {
                code = set(parse, &to, rows[i].fallback, DEFAULT);
            }
            if (code != CLI_DONE) return code;
        }
    }
    return CLI_DONE;
}

// True for text that may directly follow a letter, as in -n128. Other text makes an option of several letters: -ngl is
// not -n gl.
static bool begins_number(const char *text)
{
    text += *text == '-' || *text == '+';
    text += *text == '.';
    return isdigit((unsigned char)*text);
}

bool cli_takes_option(const cli_command *command, const char *text)
{
    const cli_parse parse = {.command = command};
    target to;
    if (text[0] != '-' || !text[1]) return false;
    if (text[1] == '-') return find(&parse, text + 2, strcspn(text + 2, "="), has_name, &to);
    return find(&parse, text + 1, strlen(text + 1), has_letters, &to) ||
           (find(&parse, text + 1, 1, has_letter, &to) && (!text[2] || begins_number(text + 2)));
}

// True if an option has no value: it is the last argument, or another option follows where a number or one of some
// words is expected.
static bool lacks_value(const cli_parse *parse, const target *to, int argc, char **argv, int i)
{
    if (i + 1 >= argc) return true;
    const bool is_text = to->row->type == FRIT_OPTION_TEXT || to->row->type == FRIT_OPTION_LIST;
    return !is_text && cli_takes_option(parse->command, argv[i + 1]);
}

// Parses --name, --name=value, --name value or --no-name.
static int long_option(cli_parse *parse, int argc, char **argv, int *i)
{
    const char *text = argv[*i] + 2, *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : strlen(text);
    target to;
    if (!find(parse, text, n, has_name, &to)) {
        bool negated = !equals && strncmp(text, "no-", 3) == 0 && find(parse, text + 3, n - 3, has_name, &to);
        if (!negated || to.row->type != FRIT_OPTION_FLAG) return unknown_option(parse, argv[*i]);
        return set(parse, &to, "false", "");
    }
    if (equals) return set(parse, &to, equals + 1, "");
    if (to.row->type == FRIT_OPTION_FLAG) return set(parse, &to, "true", "");
    if (lacks_value(parse, &to, argc, argv, *i))
        return cli_usage("--%s: needs a value (%s)", to.row->name, to.row->metavar);
    return set(parse, &to, argv[++*i], "");
}

// Parses -x, -x value, -x5 or -xyz value.
static int short_option(cli_parse *parse, int argc, char **argv, int *i)
{
    const char *text = argv[*i], *rest = "";
    target to;
    if (!find(parse, text + 1, strlen(text + 1), has_letters, &to)) {
        if (!find(parse, text + 1, 1, has_letter, &to)) return unknown_option(parse, text);
        rest = text + 2;
        if (*rest && (to.row->type == FRIT_OPTION_FLAG || !begins_number(rest))) return unknown_option(parse, text);
    }
    if (to.row->type == FRIT_OPTION_FLAG) return set(parse, &to, "true", "");
    if (*rest) return set(parse, &to, rest, "");
    if (lacks_value(parse, &to, argc, argv, *i)) return cli_usage("%s: needs a value (%s)", text, to.row->metavar);
    return set(parse, &to, argv[++*i], "");
}

static int positional(cli_parse *parse, char *text)
{
    cli_common *common = (cli_common *)parse->args;
    if (common->n_positional >= parse->command->max_positional) {
        return cli_usage("%s: unexpected argument '%s'; usage: frit %s %s", parse->command->name, text,
                         parse->command->name, parse->command->usage);
    }
    common->positional[common->n_positional++] = text;
    return CLI_DONE;
}

// Makes "-hf ORG/REPO:Q4_K_M" the model "hf:ORG/REPO:Q4_K_M".
static int name_repository(cli_parse *parse)
{
    cli_common *common = (cli_common *)parse->args;
    const char *repo = common->hf_repo;
    if (!repo) return CLI_DONE;
    if (common->model) return cli_usage("the model is named twice: -hf %s and -m %s", repo, common->model);
    if (parse->n_owned == (int)CLI_COUNT(parse->owned)) return cli_no_memory();
    const bool is_bare = strncmp(repo, "hf:", 3) != 0 && !strstr(repo, "://");
    const size_t n = strlen(repo) + 4;
    char *name = malloc(n);
    if (!name) return cli_no_memory();
    snprintf(name, n, "%s%s", is_bare ? "hf:" : "", repo);
    parse->owned[parse->n_owned++] = name;
    common->model = name;
    return CLI_DONE;
}

int cli_parse_options(cli_parse *parse, int argc, char **argv)
{
    bool only_positional = false;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) break;
        const bool all = strcmp(argv[i], "--help-all") == 0;
        if (all || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            parse->help_all = all;
            parse->help = true;
            return CLI_DONE;
        }
    }
    int code = set_defaults(parse);
    for (int i = 0; i < argc && code == CLI_DONE; i++) {
        if (!only_positional && strcmp(argv[i], "--") == 0) {
            only_positional = true;
        } else if (only_positional || argv[i][0] != '-' || argv[i][1] == 0) {
            code = positional(parse, argv[i]);
        } else if (argv[i][1] == '-') {
            code = long_option(parse, argc, argv, &i);
        } else {
            code = short_option(parse, argc, argv, &i);
        }
    }
    cli_keep_quiet(((cli_common *)parse->args)->quiet);
    return code == CLI_DONE ? name_repository(parse) : code;
}

bool cli_is_typed(const cli_common *common, const char *option)
{
    for (int i = 0; i < common->n_given; i++)
        if (common->typed >> i & 1 && strcmp(common->given[i]->name, option) == 0) return true;
    return false;
}

void cli_recommend(const cli_common *common, const frit_model *model, frit_sampler_options *options)
{
    frit_sampler_options recommended = *options;
    frit_sampler_recommend(model, &recommended);
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        bool given = false;
        for (int g = 0; g < common->n_given; g++) given = given || common->given[g] == &rows[i];
        if (given) continue;
        const bool is_number = rows[i].type == FRIT_OPTION_INT || rows[i].type == FRIT_OPTION_FLOAT;
        const bool is_text = rows[i].type == FRIT_OPTION_TEXT;
        if (is_number || is_text)
            memcpy((char *)options + rows[i].offset, (char *)&recommended + rows[i].offset,
                   is_number ? 4 : sizeof(char *));
    }
}

void cli_parse_free(cli_parse *parse)
{
    for (int i = 0; i < parse->n_owned; i++) free(parse->owned[i]);
    free(parse->args);
}

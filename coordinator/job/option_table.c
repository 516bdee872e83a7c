// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/option_table.h"

#include <assert.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/base/number_parse.h"

enum bsw_status bsw_row_range_parse(const char *what, const char *text, struct bsw_row_range *out,
                                    struct bsw_error *err)
{
    char copy[64];
    size_t length = strlen(text);
    if (length >= sizeof copy || !strchr(text, ':')) goto malformed;
    memcpy(copy, text, length + 1);
    char *colon = strchr(copy, ':');
    *colon = '\0';
    struct bsw_row_range range = BSW_ALL_ROWS;
    if (*copy) BSW_TRY(bsw_count_parse(what, copy, &range.first, err));
    if (colon[1]) BSW_TRY(bsw_count_parse(what, colon + 1, &range.last, err));
    if (range.first >= range.last) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s '%s' is an empty range", what, text);
    }
    *out = range;
    return BSW_OK;
malformed:
    return bsw_fail(err, BSW_ERROR_USAGE, "%s '%s' is not of the form A:B", what, text);
}

static enum bsw_status check_range(const struct bsw_option *option, const char *what,
                                   const char *text, double value, struct bsw_error *err)
{
    if (value >= option->min && value <= option->max) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "%s %s: must be %.10g to %.10g%s%s", what, text,
                    option->min, option->max, option->word ? ", or " : "",
                    option->word ? option->word : "");
}

// Options of a table one by one, those of its groups in their place.
struct option_list {
    struct {
        const struct bsw_option *option;
        size_t offset; // of the target in the struct of the table
        unsigned char is_given;
    } items[BSW_MAX_OPTIONS];
    size_t count;
};

// Whether a name is among "a|b|c"; NULL: all are.
static int is_among(const char *name, const char *names)
{
    char word[64];
    int is_found = !names;
    while (!is_found && bsw_word_take(&names, '|', word, sizeof word))
        is_found = strcmp(name, word) == 0;
    return is_found;
}

static void append(struct option_list *list, const struct bsw_option_group *group,
                   const char *names, size_t offset)
{
    for (size_t i = 0; i < group->num_options; i++) {
        const struct bsw_option *option =
            (const void *)((const char *)group->options + i * group->row_bytes);
        if (option->group) {
            if (!names) append(list, option->group, option->choices, offset + option->offset);
            continue;
        }
        if (!option->help || !is_among(option->name, names)) continue;
        assert(list->count < BSW_MAX_OPTIONS);
        list->items[list->count].option = option;
        list->items[list->count++].offset = offset + option->offset;
    }
}

static void append_table(struct option_list *list, const struct bsw_option_table *table)
{
    const struct bsw_option_group all = {table->options, table->num_options,
                                         sizeof *table->options};
    append(list, &all, NULL, 0);
}

static enum bsw_status set_count(const struct bsw_option *option, uint64_t *target,
                                 const char *what, const char *text, struct bsw_error *err)
{
    uint64_t count = option->word_count;
    if (!option->word || strcmp(text, option->word) != 0) {
        BSW_TRY(option->word ? bsw_count_parse_or(what, text, option->word, &count, err)
                             : bsw_count_parse(what, text, &count, err));
        BSW_TRY(check_range(option, what, text, (double)count, err));
    }
    *target = count;
    return BSW_OK;
}

static enum bsw_status set_number(const struct bsw_option *option, double *target, const char *what,
                                  const char *text, struct bsw_error *err)
{
    double number = option->word_number;
    if (!option->word || strcmp(text, option->word) != 0) {
        BSW_TRY(bsw_number_parse(what, text, &number, err));
        BSW_TRY(check_range(option, what, text, number, err));
    }
    *target = number;
    return BSW_OK;
}

enum bsw_status bsw_option_set(const struct bsw_option *option, void *target, const char *text,
                               struct bsw_error *err)
{
    char what[64];
    unsigned choice = 0;
    if (option->choices)
        BSW_TRY(bsw_setting_choice(option->name, option->choices, text, &choice, err));
    snprintf(what, sizeof what, "--%s", option->name);
    switch (option->kind) {
    case BSW_OPTION_FLAG:
        *(int *)target = 1;
        return BSW_OK;
    case BSW_OPTION_CHOICE:
        *(unsigned *)target = choice + !option->default_text;
        return BSW_OK;
    case BSW_OPTION_TEXT:
        if (*text == '\0') return bsw_fail(err, BSW_ERROR_USAGE, "%s needs a value", what);
        if (strcmp(text, "-") ==
            0) // no option reads or writes a stream; no file of that name is meant
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "%s -: standard input and output are not used so: name a file", what);
        *(const char **)target = text;
        return BSW_OK;
    case BSW_OPTION_COUNT:
        return set_count(option, target, what, text, err);
    case BSW_OPTION_NUMBER:
        return set_number(option, target, what, text, err);
    case BSW_OPTION_ROWS:
        return bsw_row_range_parse(what, text, target, err);
    }
    return BSW_OK;
}

// Its place in the list, or the list's count.
static size_t find_option(const struct option_list *list, const char *name, size_t length)
{
    size_t i = 0;
    for (; i < list->count; i++) {
        const char *known = list->items[i].option->name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) break;
    }
    return i;
}

// What stands where an option should. Behind the name of an option that takes a value, that name
// has been taken for the value of the one before.
static enum bsw_status refuse_word(const char *command, const struct option_list *list, int at,
                                   char **argv, struct bsw_error *err)
{
    const char *before = at > 1 ? argv[at - 1] : "";
    if (strncmp(before, "--", 2) == 0) {
        size_t place = find_option(list, before + 2, strlen(before + 2));
        if (place < list->count && list->items[place].option->kind != BSW_OPTION_FLAG)
            return bsw_fail(err, BSW_ERROR_USAGE, "%s needs a value: %s, an option, follows it",
                            argv[at - 2], before);
    }
    return bsw_fail(err, BSW_ERROR_USAGE, "'%s' is no option of %s", argv[at], command);
}

static enum bsw_status refuse_name(const char *command, const struct option_list *list,
                                   const char *name, size_t length, struct bsw_error *err)
{
    struct bsw_setting_guess guess = {NULL, 0};
    for (size_t i = 0; i < list->count; i++)
        bsw_setting_consider(&guess, name, length, list->items[i].option->name);
    if (!guess.word)
        return bsw_fail(err, BSW_ERROR_USAGE, "unknown option --%.*s of %s", (int)length, name,
                        command);
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown option --%.*s of %s: did you mean --%s?",
                    (int)length, name, command, guess.word);
}

static enum bsw_status parse_word(const char *command, struct option_list *list, char *targets,
                                  int argc, char **argv, int *at, struct bsw_error *err)
{
    const char *word = argv[*at];
    if (word[0] != '-' || word[1] != '-' || word[2] == '\0')
        return refuse_word(command, list, *at, argv, err);
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    size_t place = find_option(list, name, length);
    if (place == list->count) return refuse_name(command, list, name, length, err);
    const struct bsw_option *option = list->items[place].option;
    if (list->items[place].is_given++) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--%s is given twice", option->name);
    }
    const char *value = equals ? equals + 1 : NULL;
    if (option->kind == BSW_OPTION_FLAG) {
        if (value) return bsw_fail(err, BSW_ERROR_USAGE, "--%s takes no value", option->name);
    } else if (!value) {
        if (*at + 1 >= argc)
            return bsw_fail(err, BSW_ERROR_USAGE, "--%s needs a value", option->name);
        value = argv[++*at];
    }
    return bsw_option_set(option, targets + list->items[place].offset, value, err);
}

static enum bsw_status refuse_missing(const char *command, const struct bsw_option *option,
                                      struct bsw_error *err)
{
    if (!option->may_stand_alone)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s needs --%s", command, option->name);
    return bsw_fail(err, BSW_ERROR_USAGE, "%s needs a name: bitsweep %s %s", command, command,
                    option->value_name);
}

enum bsw_status bsw_option_table_parse(const struct bsw_option_table *table, void *targets,
                                       int argc, char **argv, int *help, struct bsw_error *err)
{
    struct option_list list = {.count = 0};
    append_table(&list, table);
    int first = 0;
    *help = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
        *help = i + 1 < argc && strcmp(argv[i + 1], "all") == 0 ? BSW_HELP_ALL : BSW_HELP_OFTEN;
    }
    for (size_t i = 0; i < list.count; i++) {
        const struct bsw_option *option = list.items[i].option;
        void *target = (char *)targets + list.items[i].offset;
        const char *text = option->kind == BSW_OPTION_ROWS ? ":" : option->default_text;
        if (text) BSW_TRY(bsw_option_set(option, target, text, err));
        if (option->may_stand_alone && argc > 0 && argv[0][0] != '-' && !*help) {
            BSW_TRY(bsw_option_set(option, target, argv[first++], err));
            list.items[i].is_given = 1;
        }
    }
    if (*help) return BSW_OK;
    for (int i = first; i < argc; i++)
        BSW_TRY(parse_word(table->command, &list, targets, argc, argv, &i, err));
    for (size_t i = 0; i < list.count; i++) {
        const struct bsw_option *option = list.items[i].option;
        if (option->is_required && !list.items[i].is_given)
            return refuse_missing(table->command, option, err);
    }
    return BSW_OK;
}

// ---- help ----

enum { HELP_COLUMNS = 100, HELP_LEAST_COLUMNS = 60 };
enum { HELP_NAME_COLUMNS = 34, HELP_MARGIN = 2 + HELP_NAME_COLUMNS + 1 };

struct help {
    FILE *out;
    size_t columns;
};

static size_t columns_of(FILE *out)
{
    struct winsize size;
    int fd = fileno(out);
    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return HELP_COLUMNS;
    if (size.ws_col < HELP_LEAST_COLUMNS) return HELP_LEAST_COLUMNS;
    return size.ws_col < HELP_COLUMNS ? size.ws_col : HELP_COLUMNS;
}

// Prints the words of a text from *column on; a word that would pass the last column starts a line.
static void print_words(const struct help *help, const char *text, size_t *column)
{
    FILE *out = help->out;
    while (*(text += strspn(text, " ")) != '\0') {
        size_t length = strcspn(text, " "), gap = *column > HELP_MARGIN;
        if (gap && *column + gap + length > help->columns) {
            fprintf(out, "\n%*s", HELP_MARGIN, "");
            *column = HELP_MARGIN;
            gap = 0;
        }
        fprintf(out, "%s%.*s", gap ? " " : "", (int)length, text);
        *column += gap + length;
        text += length;
    }
}

static void print_option(const struct help *help, const struct bsw_option *option)
{
    FILE *out = help->out;
    char left[128], right[128];
    size_t column = HELP_MARGIN;
    const char *value = option->choices ? option->choices : option->value_name;
    int length =
        snprintf(left, sizeof left, "--%s%s%s", option->name, value ? " " : "", value ? value : "");
    if (length > HELP_NAME_COLUMNS)
        fprintf(out, "  %s\n%*s", left, HELP_MARGIN, "");
    else
        fprintf(out, "  %-*s ", HELP_NAME_COLUMNS, left);
    print_words(help, option->help, &column);
    if (option->default_text) {
        snprintf(right, sizeof right, "[%s]", option->default_text);
        print_words(help, right, &column);
    }
    if (option->is_required) print_words(help, "(required)", &column);
    fputc('\n', out);
}

enum help_part { NEEDED, OFTEN, OTHERS, NUM_PARTS };

static enum help_part part_of(const struct bsw_option_table *table, const struct bsw_option *option)
{
    return option->is_required ? NEEDED : is_among(option->name, table->often) ? OFTEN : OTHERS;
}

// Returns how many options the part has.
static size_t print_part(const struct help *help, const struct bsw_option_table *table,
                         const struct option_list *list, enum help_part part, int is_shown)
{
    static const char *const titles[] = {"Needed:", "Often used:", "All others:"};
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct bsw_option *option = list->items[i].option;
        if (part_of(table, option) != part) continue;
        if (is_shown && count == 0) fprintf(help->out, "\n%s\n", titles[part]);
        if (is_shown) print_option(help, option);
        count++;
    }
    return count;
}

static size_t count_words(const char *names)
{
    size_t count = 1;
    for (; *names; names++) count += *names == '|';
    return count;
}

static void print_parts(const struct help *help, const struct bsw_option_table *table,
                        const struct option_list *list, int with_all)
{
    char text[80] = "this text";
    size_t counts[NUM_PARTS];
    for (enum help_part part = NEEDED; part < NUM_PARTS; part++)
        counts[part] = print_part(help, table, list, part, part != OTHERS || with_all);
    size_t num_often = count_words(table->often);
    assert(counts[OFTEN] == num_often); // all of them are options
    (void)num_often;
    if (!with_all)
        snprintf(text, sizeof text, "this text; all: with %zu more options", counts[OTHERS]);
    const struct bsw_option own = {.name = "help", .value_name = "[all]", .help = text};
    print_option(help, &own);
}

void bsw_option_table_print(const struct bsw_option_table *table, int which, FILE *out)
{
    static const struct bsw_option own = {.name = "help", .help = "this text"};
    const struct help help = {out, columns_of(out)};
    struct option_list list = {.count = 0};
    append_table(&list, table);
    fprintf(out, "bitsweep %s: %s\n", table->command, table->summary);
    if (table->often) {
        print_parts(&help, table, &list, which == BSW_HELP_ALL);
        return;
    }
    fputc('\n', out);
    for (size_t i = 0; i < list.count; i++) print_option(&help, list.items[i].option);
    print_option(&help, &own);
}

// ---- what a setting may be ----------------------------------------------------------------------

enum bsw_status bsw_setting_choice(const char *option, const char *choices, const char *text,
                                   unsigned *out, struct bsw_error *err)
{
    size_t length = text ? strlen(text) : 0;
    unsigned place = 0;
    *out = 0;
    if (!text) return BSW_OK;
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        if (length > 0 && strcspn(at, "|") == length && memcmp(at, text, length) == 0) {
            *out = place;
            return BSW_OK;
        }
        place++;
    }
    char words[BSW_CHOICES_BYTES];
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown --%s '%s': use %s", option, text,
                    bsw_choices_text(choices, words));
}

const char *bsw_setting_word(const char *choices, unsigned place, char word[BSW_WORD_BYTES])
{
    word[0] = '\0';
    for (unsigned i = 0; i <= place; i++) bsw_word_take(&choices, '|', word, BSW_WORD_BYTES);
    return word;
}

enum { GUESS_BYTES = 32 };

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

// The distance of optimal string alignment; both at most GUESS_BYTES.
static unsigned distance_of(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[GUESS_BYTES + 1][GUESS_BYTES + 1];
    for (size_t i = 0; i <= a_length; i++) rows[i][0] = (unsigned)i;
    for (size_t j = 0; j <= b_length; j++) rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        for (size_t j = 1; j <= b_length; j++) {
            unsigned changed = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            rows[i][j] = least_of(changed, least_of(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = least_of(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[a_length][b_length];
}

void bsw_setting_consider(struct bsw_setting_guess *guess, const char *text, size_t length,
                          const char *known)
{
    size_t known_length = strlen(known);
    if (length < 2 || length > GUESS_BYTES || known_length > GUESS_BYTES) return;
    unsigned distance = distance_of(text, length, known, known_length);
    if (length >= 3 && strncmp(text, known, length) == 0) distance = 1; // begun, and not ended
    if (distance > (length < 4 ? 1 : length < 8 ? 2 : 3)) return;
    if (guess->word && guess->distance <= distance) return;
    *guess = (struct bsw_setting_guess){known, distance};
}

enum bsw_status bsw_setting_number(const char *option, double value, double least, double most,
                                   struct bsw_error *err)
{
    if (value >= least && value <= most) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s %.10g: must be %.10g to %.10g", option, value,
                    least, most);
}

enum bsw_status bsw_setting_count(const char *option, uint64_t value, uint64_t least, uint64_t most,
                                  struct bsw_error *err)
{
    if (value >= least && value <= most) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s %llu: must be %llu to %llu", option,
                    (unsigned long long)value, (unsigned long long)least, (unsigned long long)most);
}

enum bsw_status bsw_setting_default_threads(int threads, struct bsw_error *err)
{
    if (threads >= 1 && threads <= BSW_MAX_THREADS) return BSW_OK;
    return bsw_fail(
        err, BSW_ERROR_USAGE,
        "OpenMP has %d threads, must be 1 to %d: change OMP_NUM_THREADS or give --threads", threads,
        BSW_MAX_THREADS);
}

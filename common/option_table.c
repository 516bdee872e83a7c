#include "common/option_table.h"

#include <assert.h>
#include <string.h>

static enum bsw_status parse_rows(const char *what, const char *text, struct bsw_row_range *out,
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
    return bsw_fail(err, BSW_ERROR_USAGE, "%s %s: %.10g to %.10g is possible", what, text,
                    option->min, option->max);
}

static int is_choice(const char *choices, const char *text, const char **canonical)
{
    size_t length = strlen(text);
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        size_t word = strcspn(at, "|");
        if (length > 0 && word == length && memcmp(at, text, word) == 0) {
            *canonical = text;
            return 1;
        }
    }
    return 0;
}

static enum bsw_status set_value(const struct bsw_option *option, const char *text,
                                 struct bsw_error *err)
{
    char what[64];
    snprintf(what, sizeof what, "--%s", option->name);
    switch (option->kind) {
    case BSW_OPTION_FLAG:
        *(int *)option->target = 1;
        return BSW_OK;
    case BSW_OPTION_TEXT:
        if (*text == '\0') return bsw_fail(err, BSW_ERROR_USAGE, "%s needs a value", what);
        *(const char **)option->target = text;
        return BSW_OK;
    case BSW_OPTION_CHOICE:
        if (is_choice(option->choices, text, (const char **)option->target)) return BSW_OK;
        return bsw_fail(err, BSW_ERROR_USAGE, "%s '%s' is none of %s", what, text, option->choices);
    case BSW_OPTION_COUNT: {
        uint64_t count;
        BSW_TRY(bsw_count_parse(what, text, &count, err));
        BSW_TRY(check_range(option, what, text, (double)count, err));
        *(uint64_t *)option->target = count;
        return BSW_OK;
    }
    case BSW_OPTION_NUMBER: {
        double number = 0;
        BSW_TRY(bsw_number_parse(what, text, &number, err));
        BSW_TRY(check_range(option, what, text, number, err));
        *(double *)option->target = number;
        return BSW_OK;
    }
    case BSW_OPTION_ROWS:
        return parse_rows(what, text, option->target, err);
    }
    return BSW_OK;
}

static void clear_target(const struct bsw_option *option)
{
    switch (option->kind) {
    case BSW_OPTION_FLAG:
        *(int *)option->target = 0;
        break;
    case BSW_OPTION_TEXT:
    case BSW_OPTION_CHOICE:
        *(const char **)option->target = NULL;
        break;
    case BSW_OPTION_COUNT:
        *(uint64_t *)option->target = 0;
        break;
    case BSW_OPTION_NUMBER:
        *(double *)option->target = 0;
        break;
    case BSW_OPTION_ROWS:
        *(struct bsw_row_range *)option->target = BSW_ALL_ROWS;
        break;
    }
}

static const struct bsw_option *find_option(const struct bsw_option_table *table, const char *name,
                                            size_t length)
{
    for (size_t i = 0; i < table->num_options; i++) {
        const struct bsw_option *option = &table->options[i];
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
    }
    return NULL;
}

static enum bsw_status parse_word(const struct bsw_option_table *table, int argc, char **argv,
                                  int *at, unsigned char *given, struct bsw_error *err)
{
    const char *word = argv[*at];
    if (word[0] != '-' || word[1] != '-' || word[2] == '\0') {
        return bsw_fail(err, BSW_ERROR_USAGE, "'%s' is no option of %s", word, table->command);
    }
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct bsw_option *option = find_option(table, name, length);
    if (!option) {
        return bsw_fail(err, BSW_ERROR_USAGE, "unknown option --%.*s of %s", (int)length, name,
                        table->command);
    }
    if (given[option - table->options]++) {
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
    return set_value(option, value, err);
}

enum bsw_status bsw_option_table_parse(const struct bsw_option_table *table, int argc, char **argv,
                                       int *help, struct bsw_error *err)
{
    unsigned char given[BSW_MAX_OPTIONS] = {0};
    assert(table->num_options <= BSW_MAX_OPTIONS);
    *help = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) *help = 1;
    }
    for (size_t i = 0; i < table->num_options; i++) {
        clear_target(&table->options[i]);
        const char *text = table->options[i].default_text;
        if (text) BSW_TRY(set_value(&table->options[i], text, err));
    }
    if (*help) return BSW_OK;
    for (int i = 0; i < argc; i++) BSW_TRY(parse_word(table, argc, argv, &i, given, err));
    for (size_t i = 0; i < table->num_options; i++) {
        if (table->options[i].is_required && !given[i]) {
            return bsw_fail(err, BSW_ERROR_USAGE, "%s needs --%s", table->command,
                            table->options[i].name);
        }
    }
    return BSW_OK;
}

// ---- help ----

enum { HELP_COLUMNS = 100, HELP_NAME_COLUMNS = 34, HELP_MARGIN = 2 + HELP_NAME_COLUMNS + 1 };

// Prints the words of a text from *column on; a word that would pass the last column starts a line.
static void print_words(const char *text, size_t *column, FILE *out)
{
    while (*(text += strspn(text, " ")) != '\0') {
        size_t length = strcspn(text, " "), gap = *column > HELP_MARGIN;
        if (gap && *column + gap + length > HELP_COLUMNS) {
            fprintf(out, "\n%*s", HELP_MARGIN, "");
            *column = HELP_MARGIN;
            gap = 0;
        }
        fprintf(out, "%s%.*s", gap ? " " : "", (int)length, text);
        *column += gap + length;
        text += length;
    }
}

static void print_option(const char *name, const char *value, const char *help,
                         const char *default_text, int is_required, FILE *out)
{
    char left[128], right[128];
    size_t column = HELP_MARGIN;
    int length =
        snprintf(left, sizeof left, "--%s%s%s", name, value ? " " : "", value ? value : "");
    if (length > HELP_NAME_COLUMNS)
        fprintf(out, "  %s\n%*s", left, HELP_MARGIN, "");
    else
        fprintf(out, "  %-*s ", HELP_NAME_COLUMNS, left);
    print_words(help, &column, out);
    snprintf(right, sizeof right, "[%s]", default_text ? default_text : "");
    if (default_text) print_words(right, &column, out);
    if (is_required) print_words("(required)", &column, out);
    fputc('\n', out);
}

void bsw_option_table_print(const struct bsw_option_table *table, FILE *out)
{
    fprintf(out, "bitsweep %s: %s\n\n", table->command, table->summary);
    for (size_t i = 0; i < table->num_options; i++) {
        const struct bsw_option *option = &table->options[i];
        const char *value =
            option->kind == BSW_OPTION_CHOICE ? option->choices : option->value_name;
        print_option(option->name, value, option->help, option->default_text, option->is_required,
                     out);
    }
    print_option("help", NULL, "this text", NULL, 0, out);
}

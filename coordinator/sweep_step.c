#include "coordinator/sweep_step.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/child_process.h"

enum bsw_status bsw_launcher_split(const char *text, struct bsw_launcher *out,
                                   struct bsw_error *err)
{
    char *to = out->text;
    out->num_words = 0;
    if (!text) return BSW_OK;
    if (strlen(text) >= sizeof out->text)
        return bsw_fail(err, BSW_ERROR_USAGE, "--launcher: too long");
    while (text += strspn(text, " "), *text) {
        if (out->num_words == BSW_LAUNCHER_WORDS)
            return bsw_fail(err, BSW_ERROR_USAGE, "--launcher: more than %d words",
                            BSW_LAUNCHER_WORDS);
        out->words[out->num_words++] = to;
        while (*text && *text != ' ') {
            if (*text == '\\' && text[1]) text++;
            *to++ = *text++;
        }
        if (*text) text++;
        *to++ = '\0';
    }
    return out->num_words > 0 ? BSW_OK
                              : bsw_fail(err, BSW_ERROR_USAGE, "--launcher: there is no word");
}

void bsw_step_add(struct bsw_step *step, const char *option, const char *value)
{
    step->words[step->num_words++] = option;
    if (value) step->words[step->num_words++] = value;
}

void bsw_step_add_number(struct bsw_step *step, const char *option, double value)
{
    char *text = step->numbers[step->num_words];
    snprintf(text, BSW_STEP_NUMBER_BYTES, "%.15g", value);
    bsw_step_add(step, option, text);
}

void bsw_step_begin(struct bsw_step *step, const struct bsw_step_place *place, const char *command,
                    int is_parallel)
{
    *step = (struct bsw_step){.place = place,
                              .command = command,
                              .is_launched = is_parallel && place->launcher.num_words > 0};
    for (size_t i = 0; step->is_launched && i < place->launcher.num_words; i++)
        bsw_step_add(step, place->launcher.words[i], NULL);
    if (!step->is_launched) bsw_step_add(step, "/proc/self/exe", NULL);
    bsw_step_add(step, command, NULL);
    bsw_step_add(step, "--json", NULL);
    bsw_step_add(step, "--quiet", NULL);
    bsw_step_add(step, "--level", place->level);
    bsw_step_add_number(step, "--timeout", place->timeout);
    bsw_step_add_number(step, "--heartbeat", place->heartbeat);
    uint64_t threads = step->is_launched ? place->launched_threads : place->threads;
    // deploy/run.sh leaves a rank's share of the cores to whoever names a number, even 0.
    if (threads > 0) bsw_step_add_number(step, "--threads", (double)threads);
}

static enum bsw_status status_of(int exit_code)
{
    switch (exit_code) {
    case 2:
        return BSW_ERROR_USAGE;
    case 65:
        return BSW_ERROR_BAD_DATA;
    case 70:
        return BSW_ERROR_SELF_CHECK;
    case 75:
        return BSW_ERROR_STOPPED;
    default:
        return BSW_ERROR_IO;
    }
}

// The first line of what it said, without the program's name.
static enum bsw_status report_failure(const char *command, const char *err_path, int exit_code,
                                      struct bsw_error *err)
{
    char line[400] = "";
    FILE *file = fopen(err_path, "r");
    if (file && !fgets(line, sizeof line, file)) line[0] = '\0';
    if (file) fclose(file);
    line[strcspn(line, "\n")] = '\0';
    const char *text = strncmp(line, "bitsweep: ", 10) == 0 ? line + 10 : line;
    if (*text == '\0')
        return bsw_fail(err, status_of(exit_code), "%s: exit code %d", command, exit_code);
    return bsw_fail(err, status_of(exit_code), "%s: %s", command, text);
}

// deploy/run.sh starts the program that BITSWEEP names.
static enum bsw_status name_program(char *out, size_t capacity, struct bsw_error *err)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) return bsw_fail(err, BSW_ERROR_IO, "cannot tell where the program is");
    path[length] = '\0';
    snprintf(out, capacity, "BITSWEEP=%s", path);
    return BSW_OK;
}

enum bsw_status bsw_step_run(struct bsw_step *step, json_t **said, struct bsw_error *err)
{
    char out_path[BSW_PATH_BYTES], err_path[BSW_PATH_BYTES], program[PATH_MAX + 16];
    json_error_t fault;
    int exit_code;
    BSW_TRY(bsw_path_join(out_path, step->place->folder, "step.out", err));
    BSW_TRY(bsw_path_join(err_path, step->place->folder, "step.err", err));
    BSW_TRY(name_program(program, sizeof program, err));
    // A launcher must have time to take its ranks along.
    const struct bsw_child child = {.arguments = step->words,
                                    .variable = step->is_launched ? program : NULL,
                                    .death_signal = step->is_launched ? SIGTERM : SIGKILL,
                                    .out = out_path,
                                    .err = err_path};
    BSW_TRY(bsw_child_run(&child, &exit_code, err));
    if (exit_code != 0) return report_failure(step->command, err_path, exit_code, err);
    json_t *read = json_load_file(out_path, 0, &fault);
    if (!read) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", out_path, fault.text);
    *said = read;
    return BSW_OK;
}

enum bsw_status bsw_step_number(const json_t *said, const char *name, double *out,
                                struct bsw_error *err)
{
    const json_t *value = json_object_get(said, name);
    *out = 0;
    if (!json_is_number(value))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "a step of the sweep did not say %s", name);
    *out = json_number_value(value);
    return BSW_OK;
}

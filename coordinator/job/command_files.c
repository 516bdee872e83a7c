// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/command_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/rows/text_lines.h"
#include "common/rows/vectors.h"

// One that exists.
struct output {
    const char *path;
    struct stat facts;
};

static int is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// what: an input is, for the message.
static enum bsw_status refuse_file(const struct output *output, const char *input, const char *what,
                                   struct bsw_error *err)
{
    struct stat facts;
    if (stat(input, &facts) != 0 || !is_same(&facts, &output->facts)) return BSW_OK;
    if (strcmp(output->path, input) == 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: is %s: name another output", input, what);
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: is the same file as %s, %s: name another output",
                    output->path, input, what);
}

static enum bsw_status refuse_inputs(const struct bsw_command_files *files,
                                     const struct output *output, struct bsw_error *err)
{
    for (int i = 0; i < BSW_MOST_FILES; i++) {
        const char *input = files->inputs[i];
        struct bsw_hdf5_name hdf5;
        struct bsw_text_name text;
        if (!input || strncmp(input, "synth:", 6) == 0) continue;
        if (bsw_hdf5_name_parse(input, "", &hdf5)) input = hdf5.file;
        if (bsw_text_name_parse(input, &text)) input = text.file;
        BSW_TRY(refuse_file(output, input, "an input", err));
    }
    return BSW_OK;
}

// Files of the index's folder, or of one that a part of it has.
static enum bsw_status refuse_index_files(const struct bsw_command_files *files, const char *name,
                                          const struct output *output, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    enum bsw_status status = BSW_OK;
    DIR *folder = opendir(name);
    if (!folder) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot list: %s", name, strerror(errno));
    for (const struct dirent *entry; status == BSW_OK && (entry = readdir(folder));) {
        if (!files->is_of_index(entry->d_name)) continue;
        status = bsw_path_join(path, name, entry->d_name, err);
        if (status == BSW_OK)
            status = refuse_file(output, path, "part of the index that is read", err);
    }
    closedir(folder);
    return status;
}

static enum bsw_status refuse_index(const struct bsw_command_files *files,
                                    const struct output *output, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = files->manifest;
    char path[BSW_PATH_BYTES];
    if (!files->index) return BSW_OK;
    BSW_TRY(refuse_index_files(files, files->index, output, err));
    for (uint32_t p = 0; p < manifest->num_parts; p++) {
        if (manifest->parts[p].folder[0] == '\0') continue;
        BSW_TRY(bsw_path_join(path, files->index, manifest->parts[p].folder, err));
        BSW_TRY(refuse_index_files(files, path, output, err));
    }
    for (uint32_t shard = 0; shard < manifest->num_shards; shard++) {
        const struct bsw_shard_home home = bsw_manifest_home(manifest, shard);
        if (home.shard > 0 || home.source_is_copied || strncmp(home.source_path, "synth:", 6) == 0)
            continue;
        BSW_TRY(bsw_shard_source(&home, files->index, path, err));
        BSW_TRY(refuse_file(output, path, "the raw rows of the index that is read", err));
    }
    return BSW_OK;
}

static enum bsw_status check_path(const struct bsw_command_files *files, const char *path,
                                  struct bsw_error *err)
{
    struct output output = {.path = path};
    if (stat(path, &output.facts) != 0) return BSW_OK; // nothing there can be lost
    BSW_TRY(refuse_inputs(files, &output, err));
    return refuse_index(files, &output, err);
}

// OUTPUT.json, which says how the run ended. An empty one is what a shell has just made for
// standard output, which would be lost.
static enum bsw_status check_beside(const struct bsw_command_files *files, const char *path,
                                    struct bsw_error *err)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: is empty, perhaps for standard output; this command writes that file: "
                        "print elsewhere, or name another output",
                        path);
    return check_path(files, path, err);
}

// With what is written beside it.
static enum bsw_status check_output(const struct bsw_command_files *files, const char *path,
                                    struct bsw_error *err)
{
    const struct {
        const char *ending;
        int is_written;
    } names[] = {{"", 1},
                 {".json", files->is_result},
                 {".journal", files->is_result},
                 {".STATUS.json", files->is_result},
                 {".coverage.npy", files->is_result},
                 {".neighbors.ibin", files->is_split},
                 {".distances.fbin", files->is_split}};
    char name[BSW_PATH_BYTES], target[BSW_PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!names[i].is_written) continue;
        BSW_TRY(bsw_path_format(name, err, "%s%s", path, names[i].ending));
        int is_beside = strcmp(names[i].ending, ".json") == 0;
        BSW_TRY((is_beside ? check_beside : check_path)(files, name, err));
    }
    if (!files->is_result) return BSW_OK;
    BSW_TRY(bsw_file_follow(path, target, err));
    BSW_TRY(bsw_path_format(name, err, "%s.partial", target));
    return check_path(files, name, err);
}

static enum bsw_status check_folder(const struct bsw_command_files *files, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    enum bsw_status status = BSW_OK;
    if (!files->folder) return BSW_OK;
    size_t bytes = strlen(files->folder);
    while (bytes > 1 && files->folder[bytes - 1] == '/') bytes--;
    snprintf(path, sizeof path, "%.*s.json", (int)bytes,
             files->folder); // too long: none is written
    BSW_TRY(check_beside(files, path, err));
    DIR *folder = opendir(files->folder);
    if (!folder) return BSW_OK;
    for (const struct dirent *entry; status == BSW_OK && (entry = readdir(folder));) {
        if (!files->is_made(entry->d_name)) continue;
        status = bsw_path_join(path, files->folder, entry->d_name, err);
        if (status == BSW_OK) status = check_path(files, path, err);
    }
    closedir(folder);
    return status;
}

// ---- outputs among themselves ----

// Finds a file, or, if it does not exist, its folder, and *name in it.
static int find_place(const char *path, struct stat *facts, const char **name)
{
    char folder[BSW_PATH_BYTES];
    *name = "";
    if (stat(path, facts) == 0) return 1;
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    int length = snprintf(folder, sizeof folder, "%.*s", (int)(*name - path), path);
    if (length < 0 || (size_t)length >= sizeof folder) return 0;
    return stat(length > 0 ? folder : ".", facts) == 0;
}

static enum bsw_status check_pair(const char *a, const char *b, struct bsw_error *err)
{
    struct stat a_facts, b_facts;
    const char *a_name, *b_name;
    char a_path[BSW_PATH_BYTES], b_path[BSW_PATH_BYTES];
    BSW_TRY(bsw_file_follow(a, a_path, err));
    BSW_TRY(bsw_file_follow(b, b_path, err));
    if (!find_place(a_path, &a_facts, &a_name) || !find_place(b_path, &b_facts, &b_name) ||
        !is_same(&a_facts, &b_facts) || strcmp(a_name, b_name) != 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "%s and %s are the same file: name two outputs", a, b);
}

enum bsw_status bsw_command_files_check(const struct bsw_command_files *files,
                                        struct bsw_error *err)
{
    for (int i = 0; i < BSW_MOST_FILES; i++) {
        if (!files->outputs[i]) continue;
        BSW_TRY(check_output(files, files->outputs[i], err));
        for (int j = 0; j < i; j++) {
            if (files->outputs[j]) BSW_TRY(check_pair(files->outputs[j], files->outputs[i], err));
        }
    }
    return check_folder(files, err);
}

// ---- the metric ---------------------------------------------------------------------------------

static enum bsw_metric metric_of(const char *word)
{
    int metric = 0;
    while (metric < BSW_METRIC_NUM && strcmp(bsw_metrics[metric].name, word) != 0 &&
           strcmp(bsw_metrics[metric].in_files, word) != 0)
        metric++;
    return (enum bsw_metric)metric;
}

// *out: BSW_METRIC_NUM as long as nothing says it. unknown: the last word that is none of ours.
static enum bsw_status ask(const bsw_vectors *vectors, enum bsw_metric *out,
                           char unknown[BSW_DISTANCE_BYTES], struct bsw_error *err)
{
    char word[BSW_DISTANCE_BYTES];
    BSW_TRY(bsw_vectors_distance(vectors, word, err));
    if (*word == '\0') return BSW_OK;
    enum bsw_metric said = metric_of(word);
    if (said == BSW_METRIC_NUM) {
        memcpy(unknown, word, sizeof word);
    } else if (*out == BSW_METRIC_NUM) {
        *out = said;
    } else if (*out != said) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "metric %s: %s says its distance is %s (%s); convert --out FILE writes "
                        "its rows to a file that says nothing",
                        bsw_metric_name(*out), bsw_vectors_name(vectors), word,
                        bsw_metric_name(said));
    }
    return BSW_OK;
}

enum bsw_status bsw_metric_choose(const char *given, const bsw_vectors *base,
                                  const bsw_vectors *queries, enum bsw_metric *out,
                                  struct bsw_error *err)
{
    char unknown[BSW_DISTANCE_BYTES] = "";
    *out = BSW_METRIC_NUM;
    if (given) BSW_TRY(bsw_metric_parse(given, out, err));
    BSW_TRY(ask(base, out, unknown, err));
    if (queries) BSW_TRY(ask(queries, out, unknown, err));
    if (*out != BSW_METRIC_NUM) return BSW_OK;
    if (*unknown)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s says its distance is '%s', none of angular, euclidean, dot: --metric "
                        "cosine, ip or l2 is needed",
                        bsw_vectors_name(base), unknown);
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--metric cosine, ip or l2 is needed: %s does not say what is nearest",
                    bsw_vectors_name(base));
}

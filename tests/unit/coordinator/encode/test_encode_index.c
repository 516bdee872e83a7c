// SPDX-License-Identifier: Apache-2.0
// encode in one process, by its settings: the index that the command makes, its messages, and
// nothing printed.
#include "shard/codecs/codec.h"
#include "small_index.h"

#include "common/net/transport.h"
#include "coordinator/encode/encode_index.h"
#include "coordinator/job/command.h"
#include "lock_hook.h"
#include "temporary_folder.h"

static struct bsw_error err;
static struct bsw_transport transport = {.timeout_seconds = 10};

#define BASE "synth:count=300,dims=40"

static struct bsw_encode_settings settings_of(const struct bsw_codec *codec, const char *index)
{
    return (struct bsw_encode_settings){.base = BASE,
                                        .index = path_of(index),
                                        .codec = codec,
                                        .metric = "cosine",
                                        .code = {.seed = 1},
                                        .device.text = "cpu",
                                        .level = BSW_CPU_REFERENCE,
                                        .checks_codes = 1};
}

static enum bsw_status run(const struct bsw_encode_settings *settings,
                           struct bsw_encode_stats *stats)
{
    return bsw_encode_run(settings, &transport, stats, &err);
}

// words: what stands behind the options that every call has; NULL at the end.
static enum bsw_status run_command(const char *index, const char *const *words)
{
    const char *argv[40] = {"--base", BASE, "--quiet", "--level", "reference", "--index"};
    int argc = 6;
    argv[argc++] = path_of(index);
    for (; *words; words++) argv[argc++] = *words;
    return bsw_command_run(&bsw_command_encode, &transport, argc, (char **)(uintptr_t)argv, &err);
}

// The index of settings and that of words are the same files.
static void assert_same_index(struct bsw_encode_settings settings, const char *const *words,
                              size_t num_files)
{
    struct bsw_encode_stats stats;
    settings.index = path_of("mine");
    assert_ok(run(&settings, &stats), &err);
    assert_ok(run_command("theirs", words), &err);
    DIR *folder = opendir(path_of("mine"));
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char mine[300], theirs[300];
        if (entry->d_name[0] == '.') continue;
        snprintf(mine, sizeof mine, "mine/%s", entry->d_name);
        snprintf(theirs, sizeof theirs, "theirs/%s", entry->d_name);
        assert_same_file(mine, theirs);
        assert_int_equal(unlink(path_of(theirs)), 0);
        num_files--;
    }
    closedir(folder);
    assert_int_equal(num_files, 0);
    assert_int_equal(rmdir(path_of("theirs")), 0); // no others
    assert_int_equal(stats.num_rows, 300);
    assert_int_equal(stats.dims, 40);
    assert_true(stats.index_bytes > 0 && stats.encode_seconds > 0);
    assert_int_equal(remove_test_folder(path_of("mine")), 0);
}

// ---- tests ----

UNIT_TEST(settings_make_the_index_of_the_command)
{
    struct bsw_encode_settings plain = settings_of(&bsw_codec_xfbq, "mine"),
                               adaptive = settings_of(&bsw_codec_saq, "mine");
    plain.code.bits = 2;
    plain.shards = 3;
    plain.metric = NULL; // xfbq has one alone
    plain.code.has_scale = 1;
    plain.code.scale = 2.5;
    const char *plain_words[] = {"--codec", "xfbq",    "--bits", "2", "--shards",
                                 "3",       "--scale", "2.5",    NULL};
    assert_same_index(plain, plain_words, 4);
    adaptive.metric = "l2";
    adaptive.code.bits = 2.5;
    adaptive.copy_vectors = 1;
    adaptive.code.stage = BSW_STAGE_GIVEN;
    adaptive.code.stage_dims = 32;
    adaptive.rows = (struct bsw_row_range){0, 300};
    const char *adaptive_words[] = {"--metric", "l2", "--bits", "2.5",   "--copy-vectors",
                                    "--stage",  "32", "--rows", "0:300", NULL};
    assert_same_index(adaptive, adaptive_words, 3);
}

// The same exit code and the same line.
UNIT_TEST(invalid_settings_are_refused_as_by_the_command)
{
    struct bsw_encode_settings s[7];
    const char *const words[7][7] = {{"--codec", "xfbq", "--bits", "2.5"},
                                     {"--codec", "xfbq", "--stage", "32"},
                                     {"--codec", "raw", "--metric", "l2", "--bits", "4"},
                                     {"--metric", "l2", "--segments", "40x2", "--bits", "2"},
                                     {"--codec", "xfbq", "--metric", "l2"},
                                     {"--shards", "301", "--metric", "l2"},
                                     {"--codec", "raw", "--metric", "l2"}};
    for (int i = 0; i < 7; i++) s[i] = settings_of(&bsw_codec_saq, "mine");
    s[0].codec = s[1].codec = s[4].codec = &bsw_codec_xfbq;
    s[2].codec = s[6].codec = &bsw_codec_raw;
    s[0].code.bits = 2.5;
    s[1].code.stage = BSW_STAGE_GIVEN;
    s[1].code.stage_dims = 32;
    s[2].code.bits = 4;
    s[3].code.segments = "40x2";
    s[3].code.bits = 2;
    s[5].shards = 301;
    for (int i = 0; i < 7; i++) {
        struct bsw_encode_stats stats;
        struct bsw_error mine;
        if (i > 1) s[i].metric = "l2";
        enum bsw_status status = run(&s[i], &stats);
        mine = err;
        assert_int_equal(status, BSW_ERROR_USAGE);
        assert_int_equal(run_command("theirs", words[i]), status);
        assert_string_equal(mine.message, err.message);
        assert_int_equal(access(path_of("mine"), F_OK), -1); // nothing is left
    }
}

static void assert_refused(const struct bsw_encode_settings *s, const char *message)
{
    struct bsw_encode_stats stats;
    assert_int_equal(run(s, &stats), BSW_ERROR_USAGE);
    assert_string_equal(err.message, message);
}

// What the option table keeps from the command.
UNIT_TEST(settings_out_of_range_are_refused)
{
    struct bsw_encode_settings s = settings_of(&bsw_codec_saq, "mine");
    s.code.bits = 9;
    assert_refused(&s, "--bits 9: must be 1 to 8");
    s.code.bits = 0;
    s.shards = 100000;
    assert_refused(&s, "--shards 100000: must be 1 to 65536");
    s.shards = 0;
    s.index = NULL;
    assert_refused(&s, "--index is needed");
}

static int num_outputs, num_completes;
static uint64_t last_done, last_total;

static enum bsw_status note_output(const char *path, const char *unit, struct bsw_error *error)
{
    (void)error;
    assert_string_equal(path, path_of("mine"));
    assert_string_equal(unit, "blocks");
    num_outputs++;
    return BSW_OK;
}

static void note_count(uint64_t done, uint64_t total)
{
    last_done = done;
    last_total = total;
}

static enum bsw_status refuse(struct bsw_error *error)
{
    num_completes++;
    return bsw_fail(error, BSW_ERROR_IO, "the status cannot be written");
}

UNIT_TEST(events_tell_how_far_it_is)
{
    struct bsw_job_events events = {.output = note_output, .count = note_count};
    struct bsw_encode_settings s = settings_of(&bsw_codec_xfbq, "mine");
    struct bsw_encode_stats stats;
    s.events = &events;
    assert_ok(run(&s, &stats), &err);
    assert_int_equal(num_outputs, 1);
    assert_int_equal(last_done, last_total);
    assert_true(last_total > 0);
    events = (struct bsw_job_events){.complete = refuse}; // a job that cannot conclude has failed
    s.force = 1;
    assert_int_equal(run(&s, &stats), BSW_ERROR_IO);
    assert_string_equal(err.message, "the status cannot be written");
    assert_int_equal(num_completes, 1);
    assert_int_equal(remove_test_folder(path_of("mine")), 0);
}

UNIT_TEST(nothing_is_printed)
{
    struct bsw_encode_settings s = settings_of(&bsw_codec_saq, "mine");
    struct bsw_encode_stats stats;
    FILE *said = tmpfile();
    int fds[2] = {STDOUT_FILENO, STDERR_FILENO}, before[2];
    s.code.bits = 2.3; // fewer than asked for: the command would say so
    for (int i = 0; i < 2; i++) {
        before[i] = dup(fds[i]);
        assert_true(before[i] >= 0 && dup2(fileno(said), fds[i]) >= 0);
    }
    enum bsw_status status = run(&s, &stats);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        assert_true(dup2(before[i], fds[i]) >= 0);
        close(before[i]);
    }
    assert_ok(status, &err);
    assert_true(stats.has_fewer_bits && stats.bits < 2.3);
    fseek(said, 0, SEEK_END);
    assert_int_equal(ftell(said), 0);
    fclose(said);
    assert_int_equal(remove_test_folder(path_of("mine")), 0);
}

static void another_ends(void)
{
    unlink(path_of("taken/encode.plan"));
    write_test_file("taken/manifest.pb", "of another run", 14);
}

// Its index comes, or its plan goes, while this one begins.
UNIT_TEST(what_another_run_has_made_meanwhile_is_not_replaced)
{
    assert_int_equal(mkdir(path_of("taken"), 0700), 0);
    for (int resume = 0; resume < 2; resume++) {
        struct bsw_encode_settings s = settings_of(&bsw_codec_saq, "taken");
        struct bsw_buffer file = {0};
        struct bsw_encode_stats stats;
        s.resume = resume;
        if (resume) write_test_file("taken/manifest.pb", "before", 6);
        if (resume) write_test_file("taken/encode.plan", "", 0);
        before_next_lock = another_ends;
        assert_int_equal(run(&s, &stats), BSW_ERROR_USAGE);
        assert_non_null(strstr(err.message, "/taken: holds an index already; --force replaces it"));
        read_test_file("taken/manifest.pb", &file);
        assert_int_equal(file.bytes, 14);
        assert_memory_equal(file.data, "of another run", 14);
        bsw_buffer_deinit(&file);
        assert_int_equal(unlink(path_of("taken/manifest.pb")), 0);
    }
    assert_int_equal(rmdir(path_of("taken")), 0); // nothing else in it
}

int main(void)
{
    bsw_transport_local_init(&transport);
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}

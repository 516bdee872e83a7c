// SPDX-License-Identifier: Apache-2.0
// The rows that training sees: which, in which order, and what becomes of bad ones.
#include <math.h>
#include <unistd.h>

#include "common/base/arithmetic.h"
#include "common/rows/synth.h"
#include "sample_rows.h"
#include "small_index.h"
#include "temporary_folder.h"

// More than 65,536 rows: place p comes from the p-th of 65,536 equal strata of the range.
UNIT_TEST(a_large_corpus_gives_a_row_of_each_stratum)
{
    enum { DIMS = 3, FIRST = 7 };
    const struct bsw_synth synth = {.count = 100007, .dims = DIMS, .seed = 1};
    bsw_vectors *vectors = open_vectors("synth:count=100007,dims=3", FIRST, 100007);
    struct bsw_sample sample = make_sample(vectors, BSW_METRIC_L2, BSW_CPU_REFERENCE);
    assert_int_equal(sample.num_rows, 65536);
    struct prepared all = take_sample(&sample), again = take_sample(&sample);
    assert_int_equal(all.num_rows, 65536);
    assert_memory_equal(all.rows, again.rows, 65536 * DIMS * sizeof(float)); // every pass the same
    size_t firsts = 0, choices = 0;
    for (uint64_t place = 0; place < 65536; place++) {
        uint64_t first = place * 100000 / 65536, last = (place + 1) * 100000 / 65536;
        int found = 0;
        for (uint64_t row = first; row < last; row++) {
            float expected[DIMS];
            bsw_synth_rows(&synth, FIRST + row, 1, expected);
            if (memcmp(expected, all.rows + place * DIMS, sizeof expected) != 0) continue;
            found++;
            firsts += row == first && last - first == 2;
        }
        if (found != 1) fail_msg("place %d is not of its stratum", (int)place);
        choices += last - first == 2;
    }
    // Which of two is a hash's choice: about half, 7 standard deviations allowed.
    assert_true(fabs((double)firsts - (double)choices / 2) < 3.5 * sqrt((double)choices));
    bsw_free(&all.rows);
    bsw_free(&again.rows);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(a_small_corpus_is_its_own_sample)
{
    static const uint64_t counts[] = {1, 127, 128, 129, 1000, 65536};
    for (size_t i = 0; i < 6; i++) {
        char source[64];
        const struct bsw_synth synth = {.count = counts[i], .dims = 2, .seed = 1};
        snprintf(source, sizeof source, "synth:count=%llu,dims=2", (unsigned long long)counts[i]);
        bsw_vectors *vectors = open_vectors(source, 0, 0);
        struct bsw_sample sample = make_sample(vectors, BSW_METRIC_IP, BSW_CPU_REFERENCE);
        struct prepared all = take_sample(&sample);
        assert_int_equal(all.num_rows, counts[i]);
        float *expected = allocate_or_fail((size_t)counts[i] * 2, sizeof *expected);
        bsw_synth_rows(&synth, 0, (size_t)counts[i], expected);
        assert_memory_equal(all.rows, expected, (size_t)counts[i] * 2 * sizeof(float));
        bsw_free(&expected);
        bsw_free(&all.rows);
        bsw_sample_deinit(&sample);
        bsw_vectors_close(&vectors);
    }
}

// Bad rows of the sample are left out, the good ones close up in order.
UNIT_TEST(bad_rows_are_skipped)
{
    enum { ROWS = 300, DIMS = 2 };
    float rows[ROWS][DIMS], good[ROWS][DIMS];
    size_t num_good = 0;
    for (size_t i = 0; i < ROWS; i++) {
        rows[i][0] = (float)i + 1;
        rows[i][1] = i % 7 == 3 ? NAN : 1.0f;
        if (i / 128 == 1) rows[i][1] = INFINITY; // a tile without any good row
        if (isfinite(rows[i][1])) memcpy(good[num_good++], rows[i], sizeof rows[i]);
    }
    write_fbin(path_of("bad.fbin"), &rows[0][0], ROWS, DIMS);
    bsw_vectors *vectors = open_vectors(path_of("bad.fbin"), 0, 0);
    struct bsw_sample sample = make_sample(vectors, BSW_METRIC_L2, BSW_CPU_REFERENCE);
    struct prepared all = take_sample(&sample);
    assert_int_equal(all.num_rows, num_good);
    assert_memory_equal(all.rows, good, num_good * sizeof good[0]);
    bsw_free(&all.rows);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
}

// A pass says how far it is, with its label; the caller decides whether.
UNIT_TEST(passes_show_their_progress)
{
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows;
    char text[300] = "";
    struct bsw_progress progress;
    FILE *said = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_true(said && before >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0);
    bsw_vectors *vectors = open_vectors("synth:count=512,dims=3", 0, 0);
    struct bsw_sample sample = make_sample(vectors, BSW_METRIC_L2, BSW_CPU_REFERENCE);
    for (int is_shown = 0; is_shown < 2; is_shown++) {
        bsw_progress_init(&progress, "", "", 0, is_shown);
        sample.progress = &progress;
        bsw_sample_rewind(&sample, is_shown ? "shown" : "hidden");
        assert_ok(bsw_sample_next(&sample, &rows, factors, &num_rows, &err), &err);
        progress.started -= 100; // as if the first rows had taken so long
        progress.last_shown -= 100;
        assert_ok(bsw_sample_next(&sample, &rows, factors, &num_rows, &err), &err);
    }
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
    assert_true(dup2(before, STDERR_FILENO) >= 0 && close(before) == 0);
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = '\0';
    fclose(said);
    assert_ptr_equal(strstr(text, "shown: 25 %, 128 of 512 rows, 1.28/s, 300 s left\n"), text);
}

// ---- rows that lie far out ----

enum { MANY = 3000, WIDE = 6 };

// Rows of a pass once far ones were looked for.
static struct bsw_sample_far find_far(const float *rows, enum bsw_metric metric,
                                      struct prepared *all)
{
    write_fbin(path_of("far.fbin"), rows, MANY, WIDE);
    bsw_vectors *vectors = open_vectors(path_of("far.fbin"), 0, 0);
    struct bsw_sample sample = make_sample(vectors, metric, BSW_CPU_REFERENCE);
    assert_ok(bsw_sample_leave_out(&sample, &err), &err);
    *all = take_sample(&sample);
    struct bsw_sample_far far = sample.far;
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
    return far;
}

static void make_rows(float *rows, float middle)
{
    for (int i = 0; i < MANY * WIDE; i++)
        rows[i] = middle + (float)(bsw_hash2(5, (uint64_t)i) % 2001) / 1000 - 1;
}

UNIT_TEST(rows_far_from_all_others_are_left_out)
{
    float *rows = allocate_or_fail(MANY * WIDE, sizeof *rows);
    static const struct {
        float middle, factor;
        int step, num_far; // every step-th row is multiplied
    } cases[] = {{0, 1, MANY, 0},    {0, 3, MANY, 0},   {0, 1e6f, MANY, 1}, {0, 50, MANY, 1},
                 {0, 1e6f, 20, 150}, {100, 2, MANY, 1}, {100, 1, MANY, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct prepared all;
        make_rows(rows, cases[i].middle);
        for (int r = 7; r < MANY; r += cases[i].step)
            for (int d = 0; d < WIDE; d++) rows[r * WIDE + d] *= cases[i].factor;
        struct bsw_sample_far far = find_far(rows, BSW_METRIC_L2, &all);
        assert_int_equal(far.num_good, MANY);
        assert_int_equal(far.num_rows, cases[i].num_far);
        assert_int_equal(all.num_rows, MANY - cases[i].num_far);
        assert_true((far.ratio > BSW_SAMPLE_FAR) == (cases[i].num_far > 0));
        if (cases[i].num_far == 1) assert_int_equal(far.row, 7);
        bsw_free(&all.rows);
    }
    bsw_free(&rows);
}

// What most rows are is no measure of the others.
UNIT_TEST(copies_of_one_row_make_no_other_far)
{
    float *rows = allocate_or_fail(MANY * WIDE, sizeof *rows);
    struct prepared all;
    make_rows(rows, 3);
    for (int r = 0; r < MANY; r++)
        if (r % 20) memcpy(rows + r * WIDE, rows, WIDE * sizeof *rows);
    struct bsw_sample_far far = find_far(rows, BSW_METRIC_COSINE, &all);
    assert_int_equal(far.num_rows, 0);
    assert_int_equal(far.num_copies, MANY - MANY / 20 + 1);
    assert_int_equal(all.num_rows, MANY);
    bsw_free(&all.rows);
    for (int i = 0; i < MANY * WIDE; i++) rows[i] = 2; // all rows are the same
    far = find_far(rows, BSW_METRIC_L2, &all);
    assert_true(far.num_rows == 0 && far.num_copies == MANY && far.ratio == 0);
    bsw_free(&all.rows);
    bsw_free(&rows);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}

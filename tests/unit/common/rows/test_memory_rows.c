// SPDX-License-Identifier: Apache-2.0
// Rows of a caller as a source: what is read, what is refused, who sees them.
#include "common/rows/vectors.h"

#include <pthread.h>
#include <string.h>

#include "common/job/progress.h"
#include "common/job/stop_signal.h"
#include "unit_test.h"

#define NAME BSW_MEMORY_PREFIX "test"

static const float numbers[3][2] = {{1, 2}, {3, 4}, {5, 6}};

static struct bsw_memory_rows rows_of(const void *data)
{
    return (struct bsw_memory_rows){
        .name = NAME, .numbers = data, .type = BSW_VECTOR_FLOAT32, .dims = 2, .num_rows = 3};
}

UNIT_TEST(lent_rows_are_read_as_a_source)
{
    struct bsw_memory_rows rows = rows_of(numbers);
    struct bsw_error err;
    bsw_vectors *vectors;
    float out[2][2];
    assert_int_equal(bsw_memory_rows_lend(&rows, &err), BSW_OK);
    assert_int_equal(bsw_vectors_open(NAME, BSW_ALL_ROWS, &vectors, &err), BSW_OK);
    assert_int_equal(bsw_vectors_num_rows(vectors), 3);
    assert_int_equal(bsw_vectors_dims(vectors), 2);
    assert_int_equal(bsw_vectors_file_bytes(vectors), 0);
    assert_int_equal(bsw_vectors_read(vectors, 1, 2, out, &err), BSW_OK);
    assert_memory_equal(out, numbers[1], sizeof out);
    assert_int_equal(bsw_vectors_read(vectors, 2, 2, out, &err), BSW_ERROR_USAGE);
    bsw_vectors_close(&vectors);
    bsw_memory_rows_take_back(&rows);
    assert_int_equal(bsw_vectors_open(NAME, BSW_ALL_ROWS, &vectors, &err), BSW_ERROR_IO);
}

static void refuse(struct bsw_memory_rows rows, const char *words)
{
    struct bsw_error err;
    assert_int_equal(bsw_memory_rows_lend(&rows, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, words));
}

UNIT_TEST(shapes_that_cannot_be_are_refused)
{
    struct bsw_memory_rows rows;
    refuse(rows_of(NULL), "no array");
    rows = rows_of(numbers);
    rows.dims = 0;
    refuse(rows, "0 dims");
    rows = rows_of(numbers);
    rows.num_rows = 0;
    refuse(rows, "0 rows");
    rows.num_rows = UINT64_MAX;
    refuse(rows, "more than memory holds");
    rows = rows_of(numbers);
    rows.type = BSW_VECTOR_INT32;
    refuse(rows, "type 4");
}

static void *open_elsewhere(void *status)
{
    bsw_vectors *vectors;
    *(enum bsw_status *)status = bsw_vectors_open(NAME, BSW_ALL_ROWS, &vectors, NULL);
    return NULL;
}

// The last lent of a name counts, in its own thread alone.
UNIT_TEST(rows_belong_to_the_thread_that_lends_them)
{
    const float others[3][2] = {{7, 7}};
    struct bsw_memory_rows first = rows_of(numbers), second = rows_of(others);
    const struct bsw_memory_rows *found;
    enum bsw_status status = BSW_OK;
    pthread_t thread;
    assert_int_equal(bsw_memory_rows_lend(&first, NULL), BSW_OK);
    assert_int_equal(bsw_memory_rows_lend(&second, NULL), BSW_OK);
    assert_int_equal(bsw_memory_rows_find(NAME, &found, NULL), BSW_OK);
    assert_ptr_equal(found->numbers, others);
    assert_int_equal(pthread_create(&thread, NULL, open_elsewhere, &status), 0);
    pthread_join(thread, NULL);
    assert_int_equal(status, BSW_ERROR_IO);
    bsw_memory_rows_take_back(&second);
    assert_int_equal(bsw_memory_rows_find(NAME, &found, NULL), BSW_OK);
    assert_ptr_equal(found->numbers, numbers);
    bsw_memory_rows_take_back(&first);
    bsw_memory_rows_take_back(&first); // is not lent: nothing happens
}

static int stop_at_the_end(void *context, const char *label, uint64_t done, uint64_t total)
{
    ++*(int *)context;
    return strcmp(label, "work") == 0 && done == total;
}

UNIT_TEST(a_caller_is_asked_now_and_then_and_stops_the_job)
{
    int num_asked = 0;
    struct bsw_caller caller = {.ask = stop_at_the_end, .context = &num_asked};
    struct bsw_error err;
    assert_int_equal(bsw_stop_is_asked(), 0); // there is none
    assert_null(bsw_caller_set(&caller));
    for (uint64_t done = 0; done < 1000; done++) bsw_caller_note("work", done, 1000);
    assert_in_range(num_asked, 1, 100); // not a thousand times
    assert_int_equal(bsw_stop_is_asked(), 0);
    bsw_caller_note("work", 1000, 1000);
    assert_int_equal(bsw_stop_is_asked(), 1);
    assert_int_equal(bsw_stop_fail(&err), BSW_ERROR_STOPPED);
    assert_string_equal(err.message, "stopped by its caller");
    assert_ptr_equal(bsw_caller_set(NULL), &caller);
    assert_int_equal(bsw_stop_is_asked(), 0);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "common/files/npz_file.h"

#include <stdio.h>
#include <string.h>

#include "common/rows/vectors.h"

// ---- marks and sizes of ZIP ----

enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, LOCAL_EXTRA_BYTES = 20, CENTRAL_EXTRA_BYTES = 28 };
enum { END64_BYTES = 56, LOCATOR_BYTES = 20, END_BYTES = 22, VERSION = 45, WIDE_EXTRA = 1 };
#define LOCAL_MARK   0x04034b50u
#define CENTRAL_MARK 0x02014b50u
#define END64_MARK   0x06064b50u
#define LOCATOR_MARK 0x07064b50u
#define END_MARK     0x06054b50u
#define IN_EXTRA     0xffffffffu // a size that the extra field has
#define OLDEST_DAY   0x21        // 1980-01-01: the same bytes every day

static const char *const names[2] = {"ids.npy", "values.npy"};

_Static_assert(2 * (CENTRAL_BYTES + CENTRAL_EXTRA_BYTES) + sizeof "ids.npy" - 1 +
                       sizeof "values.npy" - 1 + END64_BYTES + LOCATOR_BYTES + END_BYTES ==
                   BSW_NPZ_TAIL_BYTES,
               "the directory");

uint32_t bsw_npz_sum(uint32_t sum, const void *data, size_t bytes)
{
    uint32_t table[256];
    const unsigned char *at = data;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1) * 0xedb88320u;
    }
    sum = ~sum;
    for (size_t i = 0; i < bytes; i++) sum = sum >> 8 ^ table[(sum ^ at[i]) & 255];
    return ~sum;
}

// ---- what is written ----

static unsigned char *put(unsigned char *at, uint64_t value, int bytes)
{
    memcpy(at, &value, (size_t)bytes);
    return at + bytes;
}

// What the directory repeats of a member: from the version that is needed to the name's length.
static unsigned char *put_facts(unsigned char *at, uint32_t sum, const char *name)
{
    at = put(put(put(at, VERSION, 2), 0, 2), 0, 2); // no flags, not packed
    at = put(put(at, 0, 2), OLDEST_DAY, 2);
    at = put(at, sum, 4);
    at = put(put(at, IN_EXTRA, 4), IN_EXTRA, 4);
    return put(at, strlen(name), 2);
}

static unsigned char *put_extra(unsigned char *at, int bytes, uint64_t size)
{
    at = put(put(at, WIDE_EXTRA, 2), (uint64_t)bytes - 4, 2);
    return put(put(at, size, 8), size, 8);
}

static unsigned char *head_of(struct bsw_npz_frame *frame, int which)
{
    return which == 0 ? frame->before : frame->between;
}

// Where the .npy file begins in its head.
static size_t npy_start(int which)
{
    return LOCAL_BYTES + strlen(names[which]) + LOCAL_EXTRA_BYTES;
}

static uint64_t member_bytes(const struct bsw_npz_frame *frame, int which)
{
    const struct bsw_result_layout *layout = frame->layout;
    uint64_t places = layout->num_queries * layout->k;
    return BSW_NPZ_HEAD_BYTES - npy_start(which) +
           places * (which == 0 ? layout->id_bytes : sizeof(float));
}

void bsw_npz_frame_begin(struct bsw_npz_frame *frame)
{
    const struct bsw_result_layout *layout = frame->layout;
    for (int which = 0; which < 2; which++) {
        const char *type = which == 1 ? "<f4" : layout->id_bytes == 8 ? "<i8" : "<i4";
        size_t start = npy_start(which), bytes = BSW_NPZ_HEAD_BYTES - start;
        char *npy = (char *)head_of(frame, which) + start;
        memset(npy, ' ', bytes);
        memcpy(npy, "\x93NUMPY\1\0", 8);
        put((unsigned char *)npy + 8, bytes - 10, 2);
        int length =
            snprintf(npy + 10, bytes - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%llu, %llu), }", type,
                     (unsigned long long)layout->num_queries, (unsigned long long)layout->k);
        npy[10 + length] = ' ';
        npy[bytes - 1] = '\n';
        frame->sums[which] = bsw_npz_sum(0, npy, bytes);
    }
}

static unsigned char *put_central(unsigned char *at, const struct bsw_npz_frame *frame, int which)
{
    uint64_t place = which == 0 ? 0 : npy_start(0) + member_bytes(frame, 0);
    at = put(put(at, CENTRAL_MARK, 4), VERSION, 2);
    at = put_facts(at, frame->sums[which], names[which]);
    at = put(put(put(at, CENTRAL_EXTRA_BYTES, 2), 0, 2), 0, 2); // no comment, disk 0
    at = put(put(put(at, 0, 2), 0, 4), IN_EXTRA, 4);
    memcpy(at, names[which], strlen(names[which]));
    at = put_extra(at + strlen(names[which]), CENTRAL_EXTRA_BYTES, member_bytes(frame, which));
    return put(at, place, 8);
}

void bsw_npz_frame_end(struct bsw_npz_frame *frame)
{
    for (int which = 0; which < 2; which++) {
        unsigned char *at = put(head_of(frame, which), LOCAL_MARK, 4);
        at = put(put_facts(at, frame->sums[which], names[which]), LOCAL_EXTRA_BYTES, 2);
        memcpy(at, names[which], strlen(names[which]));
        put_extra(at + strlen(names[which]), LOCAL_EXTRA_BYTES, member_bytes(frame, which));
    }
    unsigned char *at = put_central(put_central(frame->behind, frame, 0), frame, 1);
    uint64_t directory_bytes = (uint64_t)(at - frame->behind);
    uint64_t directory = frame->layout->file_bytes - BSW_NPZ_TAIL_BYTES;
    at = put(put(at, END64_MARK, 4), END64_BYTES - 12, 8);
    at = put(put(put(at, VERSION, 2), VERSION, 2), 0, 8); // disks
    at = put(put(put(put(at, 2, 8), 2, 8), directory_bytes, 8), directory, 8);
    at = put(put(at, LOCATOR_MARK, 4), 0, 4);
    at = put(put(at, directory + directory_bytes, 8), 1, 4);
    at = put(put(put(at, END_MARK, 4), 0, 4), 2, 2);
    put(put(put(put(at, 2, 2), directory_bytes, 4), IN_EXTRA, 4), 0, 2);
}

// ---- what is read ----

static uint64_t get(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, (size_t)bytes);
    return value;
}

// A member as its local head says it.
struct member {
    const unsigned char *name, *content;
    size_t name_bytes;
    uint64_t bytes;
};

// The size of a member whose head leaves it to the extra field; 0: it is not there.
static int find_wide_size(const unsigned char *extra, size_t bytes, uint64_t *size)
{
    while (bytes >= 4) {
        size_t part = (size_t)get(extra + 2, 2);
        if (part > bytes - 4) return 0;
        if (get(extra, 2) == WIDE_EXTRA && part >= 16) {
            *size = get(extra + 4, 8);
            return get(extra + 12, 8) == *size;
        }
        extra += 4 + part;
        bytes -= 4 + part;
    }
    return 0;
}

enum bsw_status bsw_npz_check(const char *name, const unsigned char *head, size_t bytes,
                              struct bsw_error *err)
{
    if (bytes >= 4 && get(head, 4) == LOCAL_MARK) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: does not begin as a .npz file does", name);
}

static enum bsw_status fail_packed(const char *name, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: is packed or written as a stream: numpy.savez(FILE, ids=, values=) makes "
                    "a file that is read",
                    name);
}

// The member at *place, which is then that of the next one.
static enum bsw_status take_member(const char *name, const unsigned char *data, size_t bytes,
                                   size_t *place, struct member *out, struct bsw_error *err)
{
    const unsigned char *at = data + *place;
    size_t left = bytes - *place, heads = LOCAL_BYTES;
    if (left < LOCAL_BYTES) goto truncated;
    unsigned flags = (unsigned)get(at + 6, 2), method = (unsigned)get(at + 8, 2);
    size_t extra_bytes = (size_t)get(at + 28, 2);
    out->name_bytes = (size_t)get(at + 26, 2);
    heads += out->name_bytes + extra_bytes;
    if (left < heads) goto truncated;
    out->name = at + LOCAL_BYTES;
    out->content = at + heads;
    out->bytes = get(at + 18, 4);
    if ((flags & 9) != 0 || method != 0) return fail_packed(name, err);
    if (out->bytes == IN_EXTRA &&
        !find_wide_size(out->name + out->name_bytes, extra_bytes, &out->bytes))
        return fail_packed(name, err);
    if (out->bytes > left - heads) goto truncated;
    *place += heads + (size_t)out->bytes;
    return BSW_OK;
truncated:
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: truncated inside an array", name);
}

static int is_named(const struct member *member, int which)
{
    return member->name_bytes == strlen(names[which]) &&
           memcmp(member->name, names[which], member->name_bytes) == 0;
}

// ids or values; shape [2] is that of the array.
static enum bsw_status take_array(const char *name, const struct member *member, int which,
                                  struct bsw_npz_arrays *out, uint64_t shape[2],
                                  struct bsw_error *err)
{
    static const char *const types[2][3] = {{"i4", "i8", NULL}, {"f4", NULL}};
    struct bsw_npy_array array;
    if (!bsw_npy_array_find(member->content, (size_t)member->bytes, types[which], &array))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: '%s' is no array of %s, two axes, C order",
                        name, which == 0 ? "ids" : "values",
                        which == 0 ? "int32 or int64" : "float32");
    memcpy(shape, array.shape, sizeof array.shape);
    if (which == 0) out->id_bytes = array.type == 1 ? 8 : 4;
    *(which == 0 ? &out->ids : &out->values) = member->content + array.first_byte;
    return BSW_OK;
}

enum bsw_status bsw_npz_parse(const char *name, const unsigned char *data, size_t bytes,
                              struct bsw_npz_arrays *out, struct bsw_error *err)
{
    uint64_t shapes[2][2] = {{0}};
    *out = (struct bsw_npz_arrays){0};
    BSW_TRY(bsw_npz_check(name, data, bytes, err));
    for (size_t place = 0; bytes - place >= 4 && get(data + place, 4) == LOCAL_MARK;) {
        struct member member = {0};
        BSW_TRY(take_member(name, data, bytes, &place, &member, err));
        for (int which = 0; which < 2; which++) {
            if (is_named(&member, which))
                BSW_TRY(take_array(name, &member, which, out, shapes[which], err));
        }
    }
    if (!out->ids || !out->values)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: has no array '%s': a result has ids and values", name,
                        out->ids ? "values" : "ids");
    if (memcmp(shapes[0], shapes[1], sizeof shapes[0]) != 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: ids are %llu x %llu, values %llu x %llu",
                        name, (unsigned long long)shapes[0][0], (unsigned long long)shapes[0][1],
                        (unsigned long long)shapes[1][0], (unsigned long long)shapes[1][1]);
    out->num_queries = shapes[0][0];
    out->k = shapes[0][1];
    return BSW_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Built without libhdf5: says so.
#include "common/rows/hdf5_source.h"

static enum bsw_status fail_without(const char *name, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: this program was built without libhdf5 (BITSWEEP_HDF5), which reads HDF5",
                    name);
}

enum bsw_status bsw_hdf5_rows_open(const char *name, const char *file, const char *dataset,
                                   uint64_t file_bytes, struct bsw_vector_layout *layout,
                                   bsw_hdf5_rows **out, struct bsw_error *err)
{
    (void)file, (void)dataset, (void)file_bytes;
    *layout = (struct bsw_vector_layout){0};
    *out = NULL;
    return fail_without(name, err);
}

void bsw_hdf5_rows_close(bsw_hdf5_rows **rows)
{
    *rows = NULL;
}

enum bsw_status bsw_hdf5_rows_read(bsw_hdf5_rows *rows, uint64_t first_row, size_t num_rows,
                                   void *out, struct bsw_error *err)
{
    (void)rows, (void)first_row, (void)num_rows, (void)out;
    return fail_without("rows", err);
}

enum bsw_status bsw_hdf5_ids_read(const char *name, const char *file, const char *dataset,
                                  uint64_t file_bytes, uint64_t *num_rows, uint64_t *num_columns,
                                  int64_t **ids, struct bsw_error *err)
{
    (void)file, (void)dataset, (void)file_bytes;
    *num_rows = *num_columns = 0;
    *ids = NULL;
    return fail_without(name, err);
}

enum bsw_status bsw_hdf5_distance_read(const char *name, const char *file,
                                       char out[BSW_DISTANCE_BYTES], struct bsw_error *err)
{
    (void)file;
    *out = '\0';
    return fail_without(name, err);
}

// SPDX-License-Identifier: Apache-2.0
#include "common/rows/source_name.h"

#include <string.h>

int bsw_name_ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

// The colon before the dataset, or the end of the name; NULL if no file of the kind ends there.
static const char *end_of_file(const char *name, const char *ending)
{
    size_t tail = strlen(ending);
    const char *end = NULL;
    for (const char *at = strstr(name, ending); at; at = strstr(at + 1, ending)) {
        if (at > name && (at[tail] == '\0' || (at[tail] == ':' && at[tail + 1]))) end = at + tail;
    }
    return end;
}

int bsw_hdf5_name_parse(const char *name, const char *fallback, struct bsw_hdf5_name *out)
{
    const char *end = end_of_file(name, ".hdf5");
    if (!end) end = end_of_file(name, ".h5");
    if (!end || (size_t)(end - name) >= sizeof out->file) return 0;
    memcpy(out->file, name, (size_t)(end - name));
    out->file[end - name] = '\0';
    out->dataset = *end ? end + 1 : fallback;
    return 1;
}

static const struct bsw_vector_format formats[] = {
    {".fvecs", BSW_VECTOR_FLOAT32, BSW_FORM_VECS}, {".bvecs", BSW_VECTOR_UINT8, BSW_FORM_VECS},
    {".ivecs", BSW_VECTOR_INT32, BSW_FORM_VECS},   {".fbin", BSW_VECTOR_FLOAT32, BSW_FORM_BIN},
    {".u8bin", BSW_VECTOR_UINT8, BSW_FORM_BIN},    {".i8bin", BSW_VECTOR_INT8, BSW_FORM_BIN},
    {".ibin", BSW_VECTOR_INT32, BSW_FORM_BIN},     {".npy", BSW_VECTOR_FLOAT32, BSW_FORM_NPY},
};

const struct bsw_vector_format *bsw_vector_format_of(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (bsw_name_ends_with(name, formats[i].ending)) return &formats[i];
    return NULL;
}

int bsw_name_is_ids(const char *name)
{
    const struct bsw_vector_format *format = bsw_vector_format_of(name);
    return format && format->type == BSW_VECTOR_INT32;
}

int bsw_name_is_vectors(const char *name)
{
    struct bsw_hdf5_name hdf5;
    if (strncmp(name, "synth:", 6) == 0) return 1;
    if (bsw_vector_format_of(name)) return !bsw_name_is_ids(name);
    return bsw_hdf5_name_parse(name, BSW_HDF5_BASE, &hdf5) &&
           strcmp(hdf5.dataset, BSW_HDF5_NEIGHBORS) != 0;
}

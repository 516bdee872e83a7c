// SPDX-License-Identifier: Apache-2.0
/* libbitsweep: vector search over quantized codes, in a program of your own.
 *
 *     #include <bitsweep.h>
 *
 *     struct bitsweep_rows base = {x, 1000000, 96, BITSWEEP_FLOAT32, NULL};
 *     struct bitsweep_rows queries = {q, 100, 96, BITSWEEP_FLOAT32, NULL};
 *     struct bitsweep_error error;
 *     struct bitsweep_encode_settings encode;
 *     bitsweep_encode_defaults(&encode);
 *     encode.metric = "l2";
 *     if (bitsweep_encode("folder", &base, &encode, NULL, &error) != BITSWEEP_OK)
 *         return fail(error.message);
 *
 *     bitsweep_index *index;
 *     if (bitsweep_open("folder", NULL, &index, &error) != BITSWEEP_OK) return fail(error.message);
 *     float values[100 * 10];
 *     int64_t ids[100 * 10];
 *     if (bitsweep_search(index, &queries, NULL, values, ids, &error) != BITSWEEP_OK) ...
 *     bitsweep_close(&index);
 *
 *     cc program.c $(pkg-config --cflags --libs bitsweep)
 *
 * The library gives the bytes that the program `bitsweep` gives for the same settings, for any
 * number of ranks and threads, on every CPU and GPU.
 *
 * ERRORS. A function that can fail returns BITSWEEP_OK (0) or another enum bitsweep_status, and
 * fills *error, which may be NULL. On failure outputs hold nothing of value, nothing is left to be
 * freed, and an index or a group of ranks stays usable unless the text below says otherwise. The
 * message is one line. It names settings as the program's options: `--probe-ratio` is probe_ratio,
 * `--base` the rows, `--queries` the queries.
 *
 * OWNERSHIP. Every array belongs to the caller, who says where results go. Rows, texts and settings
 * are borrowed during the call alone; queries are not copied but batch by batch. What the library
 * allocates is behind bitsweep_index, bitsweep_ranks and bitsweep_range, which functions free.
 * Texts that it returns are constants, or belong to the object they were asked of.
 *
 * THREADS. Any thread may call any function. Calls with the same bitsweep_index or the same
 * bitsweep_ranks wait for each other: one is done after the other. Calls with different ones run at
 * once. Close an object when no other call uses it. A call works with as many OpenMP threads as its
 * settings say and gives them back. The caller's own number of OpenMP threads, affinity, locale,
 * signal handlers and working directory stay as they are.
 *
 * FORKS. A child of a process that has made calls may make some, with the parent's objects too. It
 * has one of its threads alone: where the parent's calls had several, those of the child work on
 * one, whatever `threads` says; a GPU or ranks are BITSWEEP_ERROR_USAGE. So is every call of a
 * child that was forked while another thread was in a call. Closing what a child cannot use leaves
 * it to the parent.
 *
 * What changes in the whole process: training inside bitsweep_encode sets OpenBLAS to one thread
 * while it lasts; an encode of more shards than files may be open raises the soft limit of these
 * (RLIMIT_NOFILE), which stays so. Ranks with GPUs that NCCL joins set NCCL_COMM_BLOCKING=0, and
 * where they share a GPU NCCL_MULTI_RANK_GPU_ENABLE and NCCL_MAX_CTAS, in the environment; an NCCL
 * that does not end is left, and the process then ends without its destructors.
 *
 * The library prints nothing, never ends the process, catches no signals, and starts no MPI: a
 * program that does not use MPI needs no mpirun. To stop a long call use its progress function.
 *
 * TUNING. Which kernels take a batch goes by the file that BITSWEEP_TUNING in the environment
 * names, as for the program; answers never depend on it. It is read once, by the first call that
 * works; if it is wrong, that is the error of all such calls.
 *
 * SETTINGS. Fill a struct by its ..._defaults, change members, pass its address; NULL means the
 * defaults. Members called `size` are set there to what your compiler saw, so that a later library
 * that knows more members touches no more than there are: never set them yourself. (Other languages
 * call ..._defaults_of and ..._init_of with the size of their struct.) A text that is NULL and a
 * number that is 0 mean the default that the comment names. The page of the manual on each option
 * (`bitsweep encode --help`) says more.
 */
#ifndef BITSWEEP_H
#define BITSWEEP_H

#include <stddef.h>
#include <stdint.h>

#define BITSWEEP_VERSION_MAJOR 0
#define BITSWEEP_VERSION_MINOR 2
#define BITSWEEP_VERSION_PATCH 0

#if defined(__GNUC__)
#define BITSWEEP_API __attribute__((visibility("default")))
#else
#define BITSWEEP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------- */

enum bitsweep_status {
    BITSWEEP_OK = 0,
    BITSWEEP_ERROR_USAGE = 1,     /* a setting or an argument that cannot be; a file that exists */
    BITSWEEP_ERROR_TOO_LARGE = 2, /* beyond a stated limit */
    BITSWEEP_ERROR_BAD_DATA = 3,  /* content of a file or of rows: wrong, damaged, NaN */
    BITSWEEP_ERROR_IO = 4,        /* the system refused or failed: no such file, disk full */
    BITSWEEP_ERROR_OUT_OF_MEMORY = 5, /* of the host or of a GPU */
    BITSWEEP_ERROR_TIMEOUT = 6,       /* another rank did not answer */
    BITSWEEP_ERROR_PEER = 7,          /* MPI failed or another rank is lost */
    BITSWEEP_ERROR_STOPPED = 8,       /* a progress function asked for it */
    BITSWEEP_ERROR_SELF_CHECK = 9     /* the library found an answer of its own wrong: memory, CPU
                                         or GPU are not to be trusted */
};

struct bitsweep_error {
    int32_t status;    /* enum bitsweep_status */
    int32_t rank;      /* with several ranks: where it was found; else -1 */
    char message[512]; /* one line without newline, ends with 0 */
};

/* "ok", "usage", "bad data", ...; a constant. */
BITSWEEP_API const char *bitsweep_status_name(int status);

/* ---- version --------------------------------------------------------------------------------- */

/* The version of the library that runs, "0.2.0"; a constant. Programs compiled against one minor
   version run with every later patch of it: the soname says so. */
BITSWEEP_API const char *bitsweep_version(void);
/* major * 10000 + minor * 100 + patch. */
BITSWEEP_API int bitsweep_version_number(void);
/* 1 if the library was built with "mpi", "hdf5" or "cuda", else 0. */
BITSWEEP_API int bitsweep_has(const char *feature);

/* ---- rows ------------------------------------------------------------------------------------ */

enum bitsweep_type {
    BITSWEEP_FLOAT32 = 0,
    BITSWEEP_FLOAT16 = 1,
    BITSWEEP_UINT8 = 2,
    BITSWEEP_INT8 = 3
};

/* Vectors: an array in memory, or a file. This struct never changes. */
struct bitsweep_rows {
    const void *data;  /* [num_rows][dims] numbers of the type, without gaps; any alignment */
    uint64_t num_rows; /* 1 or more; of queries in memory 0, too, whose answer is empty: data and
                          the places for it may then be NULL */
    uint32_t dims;     /* 1 .. 65536 */
    int32_t type;      /* enum bitsweep_type; float16 is IEEE binary16 */
    const char *file;  /* not NULL: rows are those of this file, all else is not looked at: .fvecs
                          .bvecs .fbin .u8bin .i8bin .npy, .hdf5:DATASET, or
                          synth:count=N,dims=D[,seed=S] */
};

/* Called by the thread that made the call: at once, then about 20 times a second where the work
   allows it, and at the end of each phase. phase is a word such as "encode" or "lists, training",
   done of total its steps so far. A result other than 0 ends the call with BITSWEEP_ERROR_STOPPED
   as soon as it can, which is a block of rows or a batch of queries later. With several ranks each
   has its own function or none; all ranks stop when they next meet one that does. It must not call
   the library with the same index or ranks. */
typedef int (*bitsweep_progress)(void *context, const char *phase, uint64_t done, uint64_t total);

/* ---- several ranks --------------------------------------------------------------------------- */

/* Processes of an MPI communicator that share the work: each holds a part of an index. All of them
   make the same calls in the same order with the same settings (threads, device and progress
   apart), and all calls return the same status. Rank 0 gives the queries and gets the answers; the
   other ranks pass NULL for both. Rows that are encoded or searched exactly, and files, are the
   same on all ranks.

   Ranks agree at the start of each call. What is wrong on one of them (a setting, a NULL where
   something is needed, a struct without its defaults), other settings and another call are
   an error on all ranks: none waits for one that failed. A rank that does not call at all, also
   because it passed NULL for settings whose `ranks` it meant, is waited for until the timeout; then
   the group can no longer be used.

   MPI must be initialised by the caller, at least with MPI_THREAD_FUNNELED, and is not finalised
   here. Calls with ranks come from the thread that may call MPI. */
typedef struct bitsweep_ranks bitsweep_ranks;

/* comm: MPI_Comm_c2f(communicator), in mpi4py communicator.py2f(): an integer in every MPI, so that
   this header needs no mpi.h. All ranks of the communicator call it; the library works on a
   duplicate. timeout_seconds: how long a rank waits for a message of another before it is lost; 0:
   1800. BITSWEEP_ERROR_USAGE if the library was built without MPI or MPI is not initialised. */
BITSWEEP_API int bitsweep_ranks_open(int comm, double timeout_seconds, bitsweep_ranks **out,
                                     struct bitsweep_error *error);
/* All ranks, after every index with these ranks was closed, before MPI_Finalize. After
   BITSWEEP_ERROR_TIMEOUT or _PEER, when every further call fails, it waits for nobody. Sets *ranks
   to NULL; accepts NULL inside. */
BITSWEEP_API void bitsweep_ranks_close(bitsweep_ranks **ranks);

/* In place of a call that the others make: for a program that finds on one rank alone that it
   cannot make it, such as a binding to another language that checks arguments first. That call then
   fails on all ranks with BITSWEEP_ERROR_USAGE and `why`, a line of text; so does this one. */
BITSWEEP_API int bitsweep_ranks_refuse(bitsweep_ranks *ranks, const char *why,
                                       struct bitsweep_error *error);

/* ---- making an index ------------------------------------------------------------------------- */

#define BITSWEEP_AUTO UINT64_MAX /* of lists: chosen by the number of rows */
#define BITSWEEP_NONE (UINT64_MAX - 1)
#define BITSWEEP_ALL  UINT64_MAX

struct bitsweep_encode_settings {
    size_t size;
    const char *codec;  /* "saq" (default), "pq", "sq8", "raw", "xfbq", "rbe" */
    const char *metric; /* "l2", "ip", "cosine"; NULL: what file or codec say, else it is needed */
    double bits;        /* 1 .. 8 a dimension; pq: 4 or 8 a subspace. 0: 3; raw, sq8, pq: 8 */
    const char *segments; /* saq: "32x4,96x2", dims x bits; NULL: chosen */
    const char *axes;     /* saq: "principal" (default) or "random" */
    uint64_t subspaces;   /* pq; 0: for 2 bits a dimension */
    const char *rotation; /* pq: "opq" (default), "random", "none"; xfbq: "random", "none", NULL:
                             the better one */
    double scale;         /* xfbq; 0: chosen */
    uint64_t stage_dims;  /* saq: of the first stage of a scan; 0: chosen; BITSWEEP_NONE: none */
    const char *model;    /* rbe: a model file; saq, pq: an index whose codebooks are taken */
    uint64_t seed;        /* 0: 1 */
    uint64_t shards;      /* files that ranks share out; 0: 1 */

    uint64_t lists;          /* rows are ordered by the nearest of so many centroids, so that a
                                search can look at a part of them; 0: no lists; BITSWEEP_AUTO */
    const char *residual;    /* with lists: codes of rows less centroids: "auto" (default),
                                "yes", "no" */
    uint64_t calibrate_rows; /* with lists: rows that are tried as queries for the table that
                                `recall` of a search needs, at most all of them; 0: 1000 or a tenth
                                of the rows; BITSWEEP_NONE: no table */
    const struct bitsweep_rows *calibrate_queries; /* these instead; NULL: none */

    uint64_t first_row, num_rows; /* only these rows, whose ids stay; num_rows 0: all from there */
    int copy_vectors;  /* keeps the raw rows in the index, where searches refine candidates by them.
                          Always done for rows in memory. 0: the index refers to the file */
    int drop_bad_rows; /* skips rows with NaN or Inf, a squared norm above 1e37, (cosine) zeros;
                          0: they are an error */
    int force;         /* replaces an existing index */
    int resume;        /* goes on with one that was stopped, if there is one; with the same rows */

    int threads;            /* 1 .. 4096; 0: OMP_NUM_THREADS or all cores */
    const char *device;     /* "auto" (default), "cpu", "cuda", "cuda:N" */
    uint64_t device_memory; /* bytes of a GPU to use at most; 0: all that is free */
    bitsweep_ranks *ranks;  /* NULL: this process alone */
    bitsweep_progress progress;
    void *progress_context;
    int skip_check;     /* 1: check_recall of the index is not measured */
    const int64_t *ids; /* ids of the rows, which searches answer: 0 to 2^63 - 1, none twice; of
                           rank 0. NULL: their numbers */
    uint64_t num_ids;   /* as many as there are rows */
    const char *tags; /* file of tags of the rows, big-ann's sparse matrix; of rank 0. NULL: none */
};
#define bitsweep_encode_defaults(settings) bitsweep_encode_defaults_of(settings, sizeof *(settings))
BITSWEEP_API void bitsweep_encode_defaults_of(struct bitsweep_encode_settings *settings,
                                              size_t size);

/* What an index is. */
struct bitsweep_index_info {
    size_t size;
    uint64_t num_rows; /* with dropped ones: ids are first_row .. first_row + num_rows - 1 */
    uint64_t dropped_rows;
    uint64_t first_row;
    uint32_t dims;              /* of rows and queries */
    int32_t type;               /* of rows, enum bitsweep_type */
    const char *codec, *metric; /* constants */
    double bits;                /* a dimension */
    double bytes_per_vector;    /* of codes; raw rows are not counted */
    uint32_t shards, lists;     /* lists 0: none */
    int is_residual;
    int has_vectors;     /* raw rows are in the index */
    int has_calibration; /* `recall` of a search can be used */
    /* Before the index was made, rows of a sample were searched by the codes of others: the share
       of their nearest 10 among the best 50 by code. 0: not measured, the codes are exact or rows
       few. Below 0.9 `check_cause` says why, and what to do; it also tells of rows that lie far
       out. */
    double check_recall;
    char check_cause[192];
    uint64_t deleted_rows; /* of num_rows; bitsweep_compact takes them out */
    uint64_t generation;   /* changes since the index was made */
    int has_ids;           /* rows have ids, which searches answer */
    int has_tags;          /* rows have tags, by which searches find some */
};
#define bitsweep_index_info_init(info) bitsweep_index_info_init_of(info, sizeof *(info))
BITSWEEP_API void bitsweep_index_info_init_of(struct bitsweep_index_info *info, size_t size);

/* Makes the index in `folder`, which is created. An existing index is BITSWEEP_ERROR_USAGE unless
   `force`. *info, NULL or inited, tells what was made. After a failure or a stop nothing is left in
   the folder, unless there is something for `resume` to go on with: blocks, or lists that are
   trained or half trained when it was stopped, or when a disk or memory was full. While the table
   of recalls is measured the index is there already: it then stays, without one. */
BITSWEEP_API int bitsweep_encode(const char *folder, const struct bitsweep_rows *rows,
                                 const struct bitsweep_encode_settings *settings,
                                 struct bitsweep_index_info *info, struct bitsweep_error *error);

/* ---- searching an index ---------------------------------------------------------------------- */

struct bitsweep_open_settings {
    size_t size;
    int threads;            /* of searches; 0: OMP_NUM_THREADS or all cores */
    const char *device;     /* "auto" (default), "cpu", "cuda", "cuda:N" */
    uint64_t device_memory; /* bytes of a GPU to use at most; 0: all that is free */
    int is_unchecked;       /* 1: without checks of known answers and of samples of what is found */
    double check_seconds;   /* known answers are looked at again after so long; 0: 300 */
    bitsweep_ranks *ranks;  /* NULL: this process alone */
    const char *base;       /* where the file of raw rows is that the index refers to, if it has
                               moved; searches and bitsweep_reconstruct read it. NULL: where it was */
};
#define bitsweep_open_defaults(settings) bitsweep_open_defaults_of(settings, sizeof *(settings))
BITSWEEP_API void bitsweep_open_defaults_of(struct bitsweep_open_settings *settings, size_t size);

typedef struct bitsweep_index bitsweep_index;

/* Reads what the index is and takes no memory for codes yet. The folder's files, and the file of
   raw rows that it may refer to, must stay as they are until the index is closed: they are mapped,
   and a file that is cut shorter meanwhile ends the process by SIGBUS. */
BITSWEEP_API int bitsweep_open(const char *folder, const struct bitsweep_open_settings *settings,
                               bitsweep_index **out, struct bitsweep_error *error);
/* With ranks: all of them. Sets *index to NULL; accepts NULL inside. */
BITSWEEP_API void bitsweep_close(bitsweep_index **index);

/* Fills an inited *info. It waits for calls with the index: not from a progress function. */
BITSWEEP_API void bitsweep_info(bitsweep_index *index, struct bitsweep_index_info *info);

/* Which rows queries may find: masks or ids. What is wrong with them is BITSWEEP_ERROR_USAGE. */
struct bitsweep_allow {
    const uint8_t *masks;         /* [num_masks][num_rows]: 0 is left out; NULL: ids */
    uint64_t num_masks, num_rows; /* 1 mask of all queries, or one a query; rows of the index */
    const int64_t *ids;           /* [num_ids], of all queries, in any order */
    uint64_t num_ids;
};

struct bitsweep_search_settings {
    size_t size;
    uint64_t k;         /* neighbours a query, 1 .. 10000 and at most the rows; default 10. Not 0 */
    double oversample;  /* candidates that get exact values, times k, 1 .. 10000; 0: 5, or what
                           `recall` takes from the index's table */
    const char *refine; /* "exact" (default): ordered by exact values of the raw rows; "none": by
                           code */

    /* What is looked at of an index with lists. All 0: as recall 0.99, or the most that the table
       of the index has; without a table all lists. */
    double recall;      /* 0.5 .. 1: the cheapest that found this share of true neighbours */
    uint64_t probe;     /* so many nearest lists a query; BITSWEEP_ALL */
    double probe_ratio; /* 0.01 .. 1000: no list whose squared distance is above this times that
                           of the 16th */
    uint64_t scan_dims; /* candidates by the first so many dimensions; 0: all. With a table of
                           recalls only beside probe or probe_ratio */

    const char *scan;    /* "auto" (default), "planes", "matrix", "progressive-planes",
                            "progressive-matrix" */
    const char *table;   /* pq: "auto" (default), "float32", "float16", "e5m3", "e4m4" */
    uint64_t query_bits; /* bits a query component; 0: 6, or the codec's own */
    int exclude_self;    /* row i is left out of the answer of query i */
    uint64_t batch;      /* queries at a time; 0: 1000 */
    bitsweep_progress progress;
    void *progress_context;
    const struct bitsweep_allow *allow; /* rows that may be found, with ranks of rank 0, borrowed
                                           for the call; NULL: all. Fewer than k: id -1 */
    double margin; /* bitsweep_range_search: exact values are computed of rows whose estimate is
                      within the value and this share of its size; 0: 0.1 */
    uint64_t max_candidates; /* bitsweep_range_search: of a query, more are an error; 0: 10000 */
    const char *query_tags;  /* file of tags, big-ann's sparse matrix with a row a query, of rank 0:
                                rows that have all tags of their query; NULL: all. Not with allow */
    int allow_partial; /* 1: answers from the shards that can be read, if some cannot; `coverage` of
                          bitsweep_last_search then is below 1. 0: that is an error */
};
#define bitsweep_search_defaults(settings) bitsweep_search_defaults_of(settings, sizeof *(settings))
BITSWEEP_API void bitsweep_search_defaults_of(struct bitsweep_search_settings *settings,
                                              size_t size);

/* Finds the nearest rows of each query. values and ids [num_queries][k], best first, the order and
   layout of FAISS: values are squared distances (l2) or similarities (ip, cosine); equal values are
   ordered by id. Places without a neighbour have id -1 and value +inf (l2) or -inf. Queries may
   have another type than the rows of the index. For queries from a file bitsweep_shape tells
   num_queries.

   The first search loads the codes: into memory, or into that of the GPU. A search with the
   settings of the one before (progress apart) uses what is loaded. So does one whose probe,
   probe_ratio or recall differ, without ranks and GPU, if it has as many candidates. Another one
   loads again, which costs as much as the first time. Open an index twice to search it by turns
   with two settings.

   After BITSWEEP_ERROR_SELF_CHECK, _TIMEOUT and _PEER nothing of the index should be used again. */
BITSWEEP_API int bitsweep_search(bitsweep_index *index, const struct bitsweep_rows *queries,
                                 const struct bitsweep_search_settings *settings, float *values,
                                 int64_t *ids, struct bitsweep_error *error);

/* Rows of a range search: those of query q are places [lims[q], lims[q + 1]), best first. */
typedef struct bitsweep_range bitsweep_range;

/* Finds all rows of each query whose value is within `within`, a finite number: squared distances
   (l2) of at most that, similarities (ip, cosine) of at least that, compared as float32, as they
   are given. Of the settings all but k, oversample, recall and scan_dims count; lists are all
   looked at unless probe or probe_ratio say fewer. With refine "exact" the rows are those with such
   an exact value among candidates, which estimates by code choose: with a margin of 0.1 and 3 bits
   hardly any is missed, of codec raw none. With refine "none" values are estimates, and decide. A
   query with more than max_candidates is BITSWEEP_ERROR_TOO_LARGE. On CPUs.

   *out, also for no queries, is the caller's to free; with ranks it is NULL on ranks other than 0.
   Codes are loaded as by bitsweep_search, anew where the search before was one of that; another
   `within` loads nothing. */
BITSWEEP_API int bitsweep_range_search(bitsweep_index *index, const struct bitsweep_rows *queries,
                                       double within,
                                       const struct bitsweep_search_settings *settings,
                                       bitsweep_range **out, struct bitsweep_error *error);
BITSWEEP_API uint64_t bitsweep_range_num_queries(const bitsweep_range *range);
/* lims [num_queries + 1]; values and ids [lims[num_queries]], or NULL where there are none. They
   are there until the range is freed. */
BITSWEEP_API const uint64_t *bitsweep_range_lims(const bitsweep_range *range);
BITSWEEP_API const float *bitsweep_range_values(const bitsweep_range *range);
BITSWEEP_API const int64_t *bitsweep_range_ids(const bitsweep_range *range);
/* Sets *range to NULL; accepts NULL inside. */
BITSWEEP_API void bitsweep_range_free(bitsweep_range **range);

/* What the last complete search of an index did. */
struct bitsweep_search_stats {
    size_t size;
    double seconds;           /* of searching, without loading */
    double load_seconds;      /* 0 where nothing was loaded */
    double oversample;        /* that was used */
    double calibrated_recall; /* that the table of the index promises; 0: nothing is promised */
    double lists_per_query, rows_per_query; /* that were looked at */
    uint64_t resident_bytes;                /* of codes in memory, this rank */
    const char *scan, *device;              /* "planes", ...; "cpu", "cuda". Constants */
    double coverage;         /* share of the rows that are in shards that could be read; 1: all */
    uint32_t missing_shards; /* that were left out, as allow_partial says */
};
#define bitsweep_search_stats_init(stats) bitsweep_search_stats_init_of(stats, sizeof *(stats))
BITSWEEP_API void bitsweep_search_stats_init_of(struct bitsweep_search_stats *stats, size_t size);
/* Rank 0; all 0 before the first search. */
BITSWEEP_API void bitsweep_last_search(bitsweep_index *index, struct bitsweep_search_stats *stats);

/* Raw rows by their ids, as searches answer them; numbers of the type of the index's rows, into out
   [num_ids][dims]: of the copies in the index, else of the file that it refers to, which must be as
   it was when the index was made. Dropped rows that a copy lacks are zeros. An id that is none of
   the index, as -1, is BITSWEEP_ERROR_USAGE. With ranks it is a call of one rank alone. */
BITSWEEP_API int bitsweep_reconstruct(bitsweep_index *index, const int64_t *ids, uint64_t num_ids,
                                      void *out, struct bitsweep_error *error);

/* ---- changing an index ----------------------------------------------------------------------- */

/* Names as of `bitsweep append` and `compact`. */
struct bitsweep_change_settings {
    size_t size;
    uint64_t shards;    /* files; 0: 1; bitsweep_compact: as many as the index was made with */
    const int64_t *ids; /* ids of the rows that are appended, if rows of the index have some; of
                           rank 0. NULL: none */
    uint64_t num_ids;   /* as many as there are rows */
    int copy_vectors;   /* keeps the raw rows of a file in the index, too. Always done for rows in
                           memory, and by bitsweep_compact */
    int drop_bad_rows;  /* as in struct bitsweep_encode_settings */
    bitsweep_progress progress;
    void *progress_context;
    const char *tags; /* file of tags of the rows that are appended, if rows of the index have some;
                         of rank 0. NULL: none */
};
#define bitsweep_change_defaults(settings) bitsweep_change_defaults_of(settings, sizeof *(settings))
BITSWEEP_API void bitsweep_change_defaults_of(struct bitsweep_change_settings *settings,
                                              size_t size);

/* Each makes a new generation of the index in its folder, and the next search of this handle loads
   it; handles and processes that have loaded another one go on with that until they are opened
   again. After a failure or a stop the index is as it was. One process at a time changes an index:
   for another it is BITSWEEP_ERROR_USAGE. */

/* Rows of the type and dims of the index, coded as its others are. They are numbered on behind the
   last row. */
BITSWEEP_API int bitsweep_append(bitsweep_index *index, const struct bitsweep_rows *rows,
                                 const struct bitsweep_change_settings *settings,
                                 struct bitsweep_error *error);
/* Rows with these numbers or, with are_ids, these ids. One that the index does not have is
   BITSWEEP_ERROR_USAGE, and no row is deleted. *num_deleted, or NULL: how many were there; rank 0.
 */
BITSWEEP_API int bitsweep_delete(bitsweep_index *index, const int64_t *numbers,
                                 uint64_t num_numbers, int are_ids, uint64_t *num_deleted,
                                 struct bitsweep_error *error);
/* Takes deleted rows out of the folder. The others are numbered anew, from 0 on; ids stay. */
BITSWEEP_API int bitsweep_compact(bitsweep_index *index,
                                  const struct bitsweep_change_settings *settings,
                                  struct bitsweep_error *error);

/* The file of raw rows that the index refers to is this one now. Its rows must be the same: size,
   type and dims, and samples of every shard by their checksums; else BITSWEEP_ERROR_BAD_DATA. An
   index that has its rows in its folder is BITSWEEP_ERROR_USAGE. */
BITSWEEP_API int bitsweep_set_source(bitsweep_index *index, const char *file,
                                     struct bitsweep_error *error);

/* ---- which recall to ask for ----------------------------------------------------------------- */

/* bitsweep_encode measures an index with lists. Here an index gets another table of recalls, or a
   first one: by queries like those to come, or by more rows. Names as of `bitsweep calibrate`. */
struct bitsweep_calibrate_settings {
    size_t size;
    uint64_t sample;                     /* rows that are tried as queries, at most all of them; 0:
                                            1000, or a tenth */
    const struct bitsweep_rows *queries; /* these instead, the same on all ranks; NULL: none */
    bitsweep_progress progress;
    void *progress_context;
};
#define bitsweep_calibrate_defaults(settings) \
    bitsweep_calibrate_defaults_of(settings, sizeof *(settings))
BITSWEEP_API void bitsweep_calibrate_defaults_of(struct bitsweep_calibrate_settings *settings,
                                                 size_t size);

struct bitsweep_calibrate_stats {
    size_t size;
    double seconds;
    uint64_t num_queries, k;            /* that were searched, and neighbours each was to find */
    uint64_t num_searches, num_entries; /* entries of the table; 0: too few rows for one */
    double least_recall, best_recall;   /* of the entries: what `recall` of a search can promise */
};
#define bitsweep_calibrate_stats_init(stats) \
    bitsweep_calibrate_stats_init_of(stats, sizeof *(stats))
BITSWEEP_API void bitsweep_calibrate_stats_init_of(struct bitsweep_calibrate_stats *stats,
                                                   size_t size);

/* Measures what searches of some lists find, and writes the table into the folder, which must allow
   it. Other processes that have the index open keep the table they loaded. An index without lists
   is BITSWEEP_ERROR_USAGE. Rows of an index that was made of rows in memory, or whose file is gone
   while it has copies, are read into memory meanwhile, by each rank. After a failure or a stop, or
   with too few rows, the table is as before. The next search loads the codes again. *stats, NULL or
   inited: of rank 0. */
BITSWEEP_API int bitsweep_calibrate(bitsweep_index *index,
                                    const struct bitsweep_calibrate_settings *settings,
                                    struct bitsweep_calibrate_stats *stats,
                                    struct bitsweep_error *error);

/* ---- exact neighbours and recall ------------------------------------------------------------- */

struct bitsweep_knn_settings {
    size_t size;
    uint64_t k;         /* neighbours a query, at most the rows; default 10. Not 0 */
    const char *metric; /* "l2", "ip", "cosine"; NULL: what a file says, else it is needed */
    int exclude_self;   /* row i is left out of the answer of query i: graphs of neighbours */
    int drop_bad_rows;  /* as in struct bitsweep_encode_settings */
    int threads;
    const char *device; /* "cpu" (default), "cuda", "cuda:N" */
    uint64_t device_memory;
    bitsweep_ranks *ranks;
    bitsweep_progress progress;
    void *progress_context;
    const struct bitsweep_allow *allow; /* rows of base that may be found, the same on all ranks,
                                           borrowed for the call; NULL: all. Fewer than k: id -1.
                                           On a GPU one mask, or ids */
};
#define bitsweep_knn_defaults(settings) bitsweep_knn_defaults_of(settings, sizeof *(settings))
BITSWEEP_API void bitsweep_knn_defaults_of(struct bitsweep_knn_settings *settings, size_t size);

/* Exact nearest rows of each query, by looking at all of them: ground truth. values and ids as
   those of bitsweep_search, which see for their layout and order. Both integers: exact in int32;
   else float64 sums in a fixed order, rounded once to float32. base and queries are of the same
   type of numbers, or of any two. */
BITSWEEP_API int bitsweep_knn(const struct bitsweep_rows *base, const struct bitsweep_rows *queries,
                              const struct bitsweep_knn_settings *settings, float *values,
                              int64_t *ids, struct bitsweep_error *error);

/* k-recall@width: of the first k true neighbours of each query, the share that is among its `width`
   ids; over all queries. ids [num_queries][width], truth [num_queries][truth_width], 1 <= k <=
   truth_width. Ids below 0 are places without a neighbour. Ties are not looked at. */
BITSWEEP_API int bitsweep_recall(const int64_t *ids, uint64_t width, const int64_t *truth,
                                 uint64_t truth_width, uint64_t num_queries, uint64_t k,
                                 double *recall, struct bitsweep_error *error);

/* ---- text ------------------------------------------------------------------------------------ */

/* A model of `bitsweep train --text`, which makes rows of texts. Calls of several threads with the
   same model run at once. */
typedef struct bitsweep_text_model bitsweep_text_model;

/* path: the file of the model, or the folder of an index of texts, which keeps its own. *dims:
   numbers of a row; NULL: not asked for. */
BITSWEEP_API int bitsweep_text_open(const char *path, bitsweep_text_model **out, uint32_t *dims,
                                    struct bitsweep_error *error);
BITSWEEP_API void bitsweep_text_close(bitsweep_text_model **model);

/* The row of one text, any num_bytes bytes, into out [dims]: by the model's side for queries, as
   bitsweep_search takes them, or for documents. Bytes that are no UTF-8 stand between words. */
BITSWEEP_API int bitsweep_text_row(const bitsweep_text_model *model, int is_query, const char *text,
                                   uint64_t num_bytes, float *out, struct bitsweep_error *error);

/* ---- files ----------------------------------------------------------------------------------- */

/* num_rows, dims and type of a file of vectors, into *rows, whose data is NULL and whose file is
   `file`, borrowed: what the functions above take. */
BITSWEEP_API int bitsweep_shape(const char *file, struct bitsweep_rows *rows,
                                struct bitsweep_error *error);
/* Rows [first_row, first_row + num_rows) of the file's own type, into out [num_rows][dims]. */
BITSWEEP_API int bitsweep_read(const char *file, uint64_t first_row, uint64_t num_rows, void *out,
                               struct bitsweep_error *error);
/* Writes rows, in memory or of another file, to .fvecs .fbin (float32), .bvecs .u8bin (uint8),
   .i8bin (int8) or .npy (any). A number that the type of the file does not have is
   BITSWEEP_ERROR_USAGE. The file appears once it is complete. An existing one is an error unless
   `force`. */
BITSWEEP_API int bitsweep_write(const char *file, const struct bitsweep_rows *rows, int force,
                                struct bitsweep_error *error);

/* Results and ground truth: big-ann's layout, .npz, .ivecs, .ibin, FILE.hdf5 (its neighbors) to
   read; big-ann's layout or .npz to write, or .ivecs and .ibin (ids alone). */
BITSWEEP_API int bitsweep_neighbours_shape(const char *file, uint64_t *num_queries, uint64_t *k,
                                           int *has_values, struct bitsweep_error *error);
/* ids and values [num_queries][k]; values may be NULL, and are filled with NaN if the file has
   none. */
BITSWEEP_API int bitsweep_read_neighbours(const char *file, float *values, int64_t *ids,
                                          struct bitsweep_error *error);
BITSWEEP_API int bitsweep_write_neighbours(const char *file, uint64_t num_queries, uint64_t k,
                                           const float *values, const int64_t *ids, int force,
                                           struct bitsweep_error *error);

#ifdef __cplusplus
}
#endif
#endif

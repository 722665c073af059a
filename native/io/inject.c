/* Amends copies of the property lists that a program passes to HDF5. The program's own lists are never changed. */
#define _GNU_SOURCE
#include "hdf5.h"

#include <string.h>

/* H5AC_cache_config_t of HDF5 1.10 and later, as far as it is used. */
struct cache_config {
    int version;
    bool report, open_trace, close_trace;
    char trace_name[1025];
    bool evictions, set_initial_size;
    size_t initial_size;
    double min_clean_fraction;
    size_t max_size, min_size;
    char rest[4096];
};

bool is_parallel(struct hdf5 *hdf5, id access_list)
{
    return access_list != DEFAULT && hdf5->H5FD_mpio_init != NULL && hdf5->H5Pget_driver != NULL
           && id_of(hdf5, hdf5->H5Pget_driver(access_list)) == id_of(hdf5, hdf5->H5FD_mpio_init());
}

/* HDF5 (1.10.8 at least) crashes when it aligns objects in a file that is divided into several by kind. */
static bool is_divided(struct hdf5 *hdf5, id access_list)
{
    return hdf5->H5FD_multi_init != NULL && hdf5->H5Pget_driver != NULL
           && id_of(hdf5, hdf5->H5Pget_driver(access_list)) == id_of(hdf5, hdf5->H5FD_multi_init());
}

static void mark(const struct value *value, int result)
{
    if (result >= 0)
        mark_applied(value);
    else
        mark_inert(value->setting, "HDF5 refuses the value %s", value->text);
}

/* ---- files ---- */

static void amend_alignment(struct hdf5 *hdf5, id list, const char *path, bool writable)
{
    const struct value *threshold = wanted(ALIGNMENT_THRESHOLD, path), *alignment = wanted(ALIGNMENT, path);
    hsize old_threshold = 1, old_alignment = 1;
    if (threshold == NULL && alignment == NULL)
        return;
    bool divided = is_divided(hdf5, list);
    if (!writable || divided || alignment == NULL) {
        const char *why = !writable ? "the file is opened for reading only"
                          : divided ? "the file has the split or multi driver of HDF5"
                                    : "alignment is not set";
        if (threshold != NULL)
            mark_inert(ALIGNMENT_THRESHOLD, "%s", why);
        if (alignment != NULL)
            mark_inert(ALIGNMENT, "%s", why);
        if (!writable || divided)
            return;
    }
    hdf5->H5Pget_alignment(list, &old_threshold, &old_alignment);
    int result = hdf5->H5Pset_alignment(list, threshold ? threshold->number : old_threshold,
                                        alignment ? alignment->number : old_alignment);
    if (alignment != NULL)
        mark(alignment, result);
    if (threshold != NULL && alignment != NULL)
        mark(threshold, result);
}

static void amend_chunk_cache(struct hdf5 *hdf5, id list, const char *path)
{
    const struct value *bytes = wanted(CHUNK_CACHE_BYTES, path), *slots = wanted(CHUNK_CACHE_SLOTS, path),
                       *w0 = wanted(CHUNK_CACHE_W0, path);
    int elements;
    size_t old_slots, old_bytes;
    double old_w0;
    if ((bytes != NULL || slots != NULL || w0 != NULL)
        && hdf5->H5Pget_cache(list, &elements, &old_slots, &old_bytes, &old_w0) >= 0)
        hdf5->H5Pset_cache(list, elements, slots ? slots->number : old_slots, bytes ? bytes->number : old_bytes,
                           w0 ? w0->fraction : old_w0);
    /* Whether it was of use is known when a dataset is opened: look_at_dataset(). */
}

static void amend_metadata_cache(struct hdf5 *hdf5, id list, const struct value *value)
{
    static const size_t DEFAULT_SIZE = 2u << 20;
    struct cache_config config = {.version = 1};
    if (!hdf5->wide || hdf5->H5Pget_mdc_config(list, &config) < 0 || config.max_size < config.min_size
        || (config.initial_size != DEFAULT_SIZE && config.initial_size > config.max_size)) {
        mark_inert(METADATA_CACHE, "the configuration of the metadata cache of this HDF5 is not known");
        return;
    }
    config.set_initial_size = true;
    config.initial_size = config.min_size = config.max_size = value->number;
    mark(value, hdf5->H5Pset_mdc_config(list, &config));
}

static void amend_collective_metadata(struct hdf5 *hdf5, id list, const struct value *value, bool parallel)
{
    if (!parallel || hdf5->H5Pset_all_coll_metadata_ops == NULL || hdf5->H5Pset_coll_metadata_write == NULL) {
        mark_inert(COLLECTIVE_METADATA, "the file is not opened through MPI-IO");
        return;
    }
    bool on = value->number == 1;
    int result = hdf5->H5Pset_all_coll_metadata_ops(list, on);
    mark(value, result < 0 ? result : hdf5->H5Pset_coll_metadata_write(list, on));
}

id amended_access(struct hdf5 *hdf5, id list, const char *path, bool writable)
{
    if (!hdf5->injectable || !any_wanted(0, COLLECTIVE_METADATA))
        return list;
    bool parallel = is_parallel(hdf5, list);
    const struct value *value;
    id copy = copy_list(hdf5, list, FILE_ACCESS);
    if (copy < 0)
        return list;
    amend_alignment(hdf5, copy, path, writable);
    amend_chunk_cache(hdf5, copy, path);
    if ((value = wanted(SIEVE_BUFFER, path)) != NULL)
        hdf5->H5Pset_sieve_buf_size(copy, value->number);
    if ((value = wanted(METADATA_BLOCK, path)) != NULL) {
        if (!writable)
            mark_inert(METADATA_BLOCK, "the file is opened for reading only");
        else
            mark(value, hdf5->H5Pset_meta_block_size(copy, value->number));
    }
    if ((value = wanted(METADATA_CACHE, path)) != NULL)
        amend_metadata_cache(hdf5, copy, value);
    if ((value = wanted(COLLECTIVE_METADATA, path)) != NULL)
        amend_collective_metadata(hdf5, copy, value, parallel);
    return copy;
}

/* ---- datasets ---- */

/* True, and the shape in *chunk, if a dataset of this space can be divided into such chunks. */
static bool fit_chunk(struct hdf5 *hdf5, const struct value *value, id space, hsize *chunk)
{
    hsize sizes[DIMENSIONS], most[DIMENSIONS];
    int rank = hdf5->H5Sget_simple_extent_ndims(space);
    if (rank != value->rank || rank < 1) {
        mark_inert(CHUNK, "a dataset has %d dimensions, the chunk has %d", rank < 0 ? 0 : rank, value->rank);
        return false;
    }
    hdf5->H5Sget_simple_extent_dims(space, sizes, most);
    for (int i = 0; i < rank; i++) {
        if (sizes[i] == 0 || most[i] != sizes[i]) { /* HDF5 refuses to create those that grow, as it does without chunks */
            mark_inert(CHUNK, sizes[i] == 0 ? "a dataset is empty" : "a dataset without chunks cannot grow");
            return false;
        }
        chunk[i] = value->shape[i] < sizes[i] ? value->shape[i] : sizes[i];
    }
    return true;
}

static void amend_chunk(struct hdf5 *hdf5, id list, id space, const struct value *value)
{
    hsize chunk[DIMENSIONS];
    if (hdf5->H5Pget_layout(list) != LAYOUT_CONTIGUOUS || hdf5->H5Pget_external_count(list) > 0)
        mark_inert(CHUNK, "a dataset has a layout of its own (chunked, compact, external or virtual)");
    else if (fit_chunk(hdf5, value, space, chunk))
        mark(value, hdf5->H5Pset_chunk(list, value->rank, chunk));
}

static void amend_alloc_time(struct hdf5 *hdf5, id list, const struct value *value, bool parallel)
{
    static const int TIMES[] = {1, 2, 3}; /* H5D_ALLOC_TIME_EARLY, LATE, INCR */
    int layout = hdf5->H5Pget_layout(list);
    if (parallel && value->number != 0)
        mark_inert(ALLOC_TIME, "space in files of MPI-IO is always allocated early");
    else if (layout == LAYOUT_COMPACT)
        mark_inert(ALLOC_TIME, "a dataset is compact, its space is always allocated early");
    else if (layout == LAYOUT_CONTIGUOUS && value->number == 2)
        mark_inert(ALLOC_TIME, "incr holds for chunked datasets only");
    else
        mark(value, hdf5->H5Pset_alloc_time(list, TIMES[value->number]));
}

id amended_creation(struct hdf5 *hdf5, id list, id space, const struct file *file)
{
    const struct value *chunk = wanted(CHUNK, file->path), *fill = wanted(FILL_TIME, file->path),
                       *alloc = wanted(ALLOC_TIME, file->path);
    if (!hdf5->injectable || (chunk == NULL && fill == NULL && alloc == NULL))
        return list;
    id copy = copy_list(hdf5, list, DATASET_CREATE);
    if (copy < 0)
        return list;
    if (chunk != NULL)
        amend_chunk(hdf5, copy, space, chunk);
    if (alloc != NULL)
        amend_alloc_time(hdf5, copy, alloc, file->parallel);
    if (fill != NULL)
        mark(fill, hdf5->H5Pset_fill_time(copy, (int)fill->number));
    return copy;
}

/* Only where the program has an access list of its own: others take the chunk cache of the file. */
id amended_dataset_access(struct hdf5 *hdf5, id list, const struct file *file)
{
    const struct value *bytes = wanted(CHUNK_CACHE_BYTES, file->path), *slots = wanted(CHUNK_CACHE_SLOTS, file->path),
                       *w0 = wanted(CHUNK_CACHE_W0, file->path);
    size_t old_slots, old_bytes;
    double old_w0;
    if (!hdf5->injectable || list == DEFAULT || (bytes == NULL && slots == NULL && w0 == NULL)
        || hdf5->H5Pget_chunk_cache(list, &old_slots, &old_bytes, &old_w0) < 0)
        return list;
    id copy = copy_list(hdf5, list, DATASET_ACCESS);
    if (copy < 0)
        return list;
    hdf5->H5Pset_chunk_cache(copy, slots ? slots->number : old_slots, bytes ? bytes->number : old_bytes,
                             w0 ? w0->fraction : old_w0);
    return copy;
}

/* What became of a setting that is used for one layout only, in files that HDF5 does not open through MPI-IO. */
static void mark_layout(const struct value *value, bool fits, const char *other_layout, const struct file *file)
{
    if (!fits)
        mark_inert(value->setting, "%s", other_layout);
    else if (file->parallel)
        mark_inert(value->setting, "HDF5 does not use it for files of MPI-IO that are open for writing");
    else
        mark_applied(value);
}

/* The layout decides whether the chunk cache or the sieve buffer is used. It is looked at until each was used once; true if
 * there is nothing more to look for. */
bool look_at_dataset(struct hdf5 *hdf5, id dataset, const struct file *file)
{
    static const enum setting LOOKED_AT[] = {SIEVE_BUFFER, CHUNK_CACHE_BYTES, CHUNK_CACHE_SLOTS, CHUNK_CACHE_W0};
    int layout = -1;
    bool all_used = !by_file();
    for (size_t i = 0; i < sizeof LOOKED_AT / sizeof *LOOKED_AT; i++) {
        const struct value *value = wanted(LOOKED_AT[i], file->path);
        if (value == NULL || !hdf5->injectable || is_applied(value))
            continue;
        id list = layout < 0 ? id_of(hdf5, hdf5->H5Dget_create_plist(dataset)) : -1;
        if (list >= 0) {
            layout = hdf5->H5Pget_layout(list);
            hdf5->H5Pclose(list);
        }
        if (LOOKED_AT[i] == SIEVE_BUFFER)
            mark_layout(value, layout == LAYOUT_CONTIGUOUS, "a dataset is not contiguous", file);
        else
            mark_layout(value, layout == LAYOUT_CHUNKED, "a dataset is not chunked", file);
        all_used = all_used && is_applied(value);
    }
    return all_used;
}

/* ---- transfers ---- */

/* A list of this library's own where the program passes the default, so that nothing has to be made for each call. */
static id own_transfer(struct hdf5 *hdf5, int mode)
{
    id list = __atomic_load_n(&hdf5->transfer_list[mode], __ATOMIC_ACQUIRE);
    if (list > 0)
        return list;
    list = copy_list(hdf5, DEFAULT, DATASET_XFER);
    if (list > 0 && hdf5->H5Pset_dxpl_mpio(list, mode) >= 0)
        __atomic_store_n(&hdf5->transfer_list[mode], list, __ATOMIC_RELEASE);
    return list > 0 ? list : DEFAULT;
}

id amended_transfer(struct hdf5 *hdf5, id list, const struct file *file)
{
    const struct value *value = wanted(TRANSFER, file->path);
    if (value == NULL || !hdf5->injectable)
        return list;
    if (!file->parallel || hdf5->H5Pset_dxpl_mpio == NULL || hdf5->H5Pget_dxpl_mpio == NULL) {
        mark_inert(TRANSFER, "the file is not opened through MPI-IO");
        return list;
    }
    int mode = (int)value->number, old = -1;
    mark_applied(value);
    if (list == DEFAULT)
        return own_transfer(hdf5, mode);
    if (hdf5->H5Pget_dxpl_mpio(list, &old) < 0 || old == mode)
        return list;
    id copy = copy_list(hdf5, list, DATASET_XFER);
    if (copy < 0)
        return list;
    hdf5->H5Pset_dxpl_mpio(copy, mode);
    return copy;
}

/* Every call of HDF5 clears the stack of errors, which a program may read after a call that failed: it is kept. */
void close_list(const struct hdf5 *hdf5, id list, id of_caller, bool failed)
{
    if (list == of_caller || list == hdf5->transfer_list[0] || list == hdf5->transfer_list[1])
        return;
    id errors = failed ? hdf5->H5Eget_current_stack() : -1;
    hdf5->H5Pclose(list);
    if (failed)
        hdf5->H5Eset_current_stack(errors);
}

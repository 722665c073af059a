/* The calls of HDF5 that this library makes, as found in the HDF5 library of the program. hdf5.h is not needed to build.
 *
 * An identifier is an int before HDF5 1.10 and has 64 bits since. In a register or in its place on the stack the upper half
 * of an int is undefined, so that identifiers are passed on as 64 bits either way, and are looked at through id_of(). */
#ifndef LUTHIER_IO_HDF5_H
#define LUTHIER_IO_HDF5_H

#include "io.h"

typedef int64_t id;
typedef unsigned long long hsize;

#define HDF5_CALLS(X) \
    X(int, H5get_libversion, (unsigned *, unsigned *, unsigned *)) \
    X(int, H5open, (void)) \
    X(id, H5Pcopy, (id)) \
    X(int, H5Pclose, (id)) \
    X(id, H5Pget_driver, (id)) \
    X(int, H5Pget_alignment, (id, hsize *, hsize *)) \
    X(int, H5Pset_alignment, (id, hsize, hsize)) \
    X(int, H5Pset_sieve_buf_size, (id, size_t)) \
    X(int, H5Pset_meta_block_size, (id, hsize)) \
    X(int, H5Pget_cache, (id, int *, size_t *, size_t *, double *)) \
    X(int, H5Pset_cache, (id, int, size_t, size_t, double)) \
    X(int, H5Pget_mdc_config, (id, void *)) \
    X(int, H5Pset_mdc_config, (id, void *)) \
    X(int, H5Pset_all_coll_metadata_ops, (id, bool)) \
    X(int, H5Pset_coll_metadata_write, (id, bool)) \
    X(int, H5Pget_layout, (id)) \
    X(int, H5Pset_chunk, (id, int, const hsize *)) \
    X(int, H5Pget_external_count, (id)) \
    X(int, H5Pset_fill_time, (id, int)) \
    X(int, H5Pset_alloc_time, (id, int)) \
    X(int, H5Pget_chunk_cache, (id, size_t *, size_t *, double *)) \
    X(int, H5Pset_chunk_cache, (id, size_t, size_t, double)) \
    X(int, H5Pget_dxpl_mpio, (id, int *)) \
    X(int, H5Pset_dxpl_mpio, (id, int)) \
    X(int, H5Sget_simple_extent_type, (id)) \
    X(int, H5Sget_simple_extent_ndims, (id)) \
    X(int, H5Sget_simple_extent_dims, (id, hsize *, hsize *)) \
    X(long long, H5Sget_simple_extent_npoints, (id)) \
    X(long long, H5Sget_select_npoints, (id)) \
    X(int, H5Sget_select_bounds, (id, hsize *, hsize *)) \
    X(int, H5Sclose, (id)) \
    X(size_t, H5Tget_size, (id)) \
    X(id, H5Dget_space, (id)) \
    X(id, H5Dget_create_plist, (id)) \
    X(ssize_t, H5Fget_name, (id, char *, size_t)) \
    X(id, H5Eget_current_stack, (void)) \
    X(int, H5Eset_current_stack, (id)) \
    X(int, H5Eget_auto2, (id, void **, void **)) \
    X(int, H5Eset_auto2, (id, void *, void *)) \
    X(int, H5Eauto_is_v2, (id, unsigned *)) \
    X(int, H5Eget_auto1, (void **, void **)) \
    X(int, H5Eset_auto1, (void *, void *)) \
    X(id, H5FD_mpio_init, (void)) \
    X(id, H5FD_multi_init, (void)) \
    X(int, H5close, (void)) \
    X(id, H5Fcreate, (const char *, unsigned, id, id)) \
    X(id, H5Fopen, (const char *, unsigned, id)) \
    X(int, H5Fclose, (id)) \
    X(int, H5Fflush, (id, int)) \
    X(id, H5Dcreate1, (id, const char *, id, id, id)) \
    X(id, H5Dcreate2, (id, const char *, id, id, id, id, id)) \
    X(id, H5Dcreate_anon, (id, id, id, id, id)) \
    X(id, H5Dopen1, (id, const char *)) \
    X(id, H5Dopen2, (id, const char *, id)) \
    X(int, H5Dread, (id, id, id, id, id, void *)) \
    X(int, H5Dwrite, (id, id, id, id, id, const void *)) \
    X(int, H5Dclose, (id))

/* Property lists with the defaults, for where a program passes H5P_DEFAULT. */
enum default_list { FILE_ACCESS, DATASET_CREATE, DATASET_ACCESS, DATASET_XFER, DEFAULT_LISTS };

/* Types whose size never changes, the most common ones. */
#define FIXED_TYPES(X) \
    X(H5T_NATIVE_DOUBLE_g) X(H5T_NATIVE_FLOAT_g) X(H5T_NATIVE_INT_g) X(H5T_NATIVE_LONG_g) X(H5T_NATIVE_SCHAR_g) \
    X(H5T_NATIVE_UCHAR_g) X(H5T_NATIVE_SHORT_g) X(H5T_NATIVE_UINT_g) X(H5T_NATIVE_LLONG_g)
enum { MOST_FIXED_TYPES = 16 };

struct hdf5 {
    bool wide;       /* identifiers have 64 bits */
    bool injectable; /* settings can be injected; else `problem` says why not */
    const char *problem;
    const void *lists[DEFAULT_LISTS];
    const void *fixed_types[MOST_FIXED_TYPES]; /* variables with identifiers, NULL after the last */
    struct { id type; size_t size; } fixed_sizes[MOST_FIXED_TYPES]; /* filled as they are used */
    id transfer_list[2]; /* of this library, made when first needed: independent, collective */
#define MEMBER(type, name, parameters) type(*name) parameters;
    HDF5_CALLS(MEMBER)
#undef MEMBER
};

enum { LAYOUT_COMPACT, LAYOUT_CONTIGUOUS, LAYOUT_CHUNKED };
#define DEFAULT ((id)0) /* H5P_DEFAULT, H5S_ALL */

/* The code of one library of the program, and the HDF5 library that it was linked with. The first is the program itself as
 * a rule, and is looked at without a call of a function. */
struct caller {
    const char *first, *last;
    struct hdf5 *hdf5;
};
enum { CALLERS = 64 };
extern struct caller callers[CALLERS];
extern int caller_count;

struct hdf5 *find_hdf5_for(const void *caller); /* NULL: the program has no HDF5 library that it could have meant */

static inline struct hdf5 *first_hdf5(const void *caller) /* NULL: it is not the first caller */
{
    const char *code = caller;
    bool is_first = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE) > 0 && code >= callers[0].first && code < callers[0].last;
    return is_first ? callers[0].hdf5 : NULL;
}

static inline struct hdf5 *hdf5_for(const void *caller)
{
    struct hdf5 *hdf5 = first_hdf5(caller);
    return hdf5 != NULL ? hdf5 : find_hdf5_for(caller);
}

id id_of(const struct hdf5 *hdf5, id number);
size_t size_of_type(struct hdf5 *hdf5, id type);
id copy_list(const struct hdf5 *hdf5, id list, enum default_list otherwise);

extern int hdf5_restarts; /* HDF5 was closed or unloaded so often, and gives out the same numbers again */

/* While HDF5 prints no errors. */
struct silence {
    bool is_old; /* the handler of the program was set by H5Eset_auto1() */
    void *function, *data;
};
struct silence silence_errors(struct hdf5 *hdf5);
void end_silence(struct hdf5 *hdf5, const struct silence *silence);

/* identifiers.c */
void remember(const struct hdf5 *hdf5, id number, struct file *file);
struct file *named(const char *name);
struct file *file_with(struct hdf5 *hdf5, id number); /* the file that an identifier belongs to */

/* inject.c: a list to pass on instead of the caller's; equal to it if nothing was amended. */
id amended_access(struct hdf5 *hdf5, id list, const char *path, bool writable);
id amended_creation(struct hdf5 *hdf5, id list, id space, const struct file *file);
id amended_dataset_access(struct hdf5 *hdf5, id list, const struct file *file);
id amended_transfer(struct hdf5 *hdf5, id list, const struct file *file);
bool is_parallel(struct hdf5 *hdf5, id access_list);
bool look_at_dataset(struct hdf5 *hdf5, id dataset, const struct file *file); /* true: no need to look again */
void close_list(const struct hdf5 *hdf5, id list, id of_caller, bool failed);

#endif

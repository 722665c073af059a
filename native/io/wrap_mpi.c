/* libluthier_io_mpi.so: the calls of MPI-IO. It is preloaded beside libluthier_io.so into programs that use MPI, and is built
 * with the mpicc of the same MPI, for the types of MPI differ between implementations.
 *
 * Both names of a call are wrapped: Fortran's calls arrive as PMPI_. A call within a wrapped call is passed on uncounted. */
#define _GNU_SOURCE
#include "hints.h"

#include <stdlib.h>
#include <string.h>

#define CALLER __builtin_return_address(0)
enum { REMEMBERED = 256 };

const struct luthier_io *luthier_io_interface(void) __attribute__((weak));
const struct luthier_io *io;
static THREAD_LOCAL int depth;

/* The files of open handles. */
static struct {
    uintptr_t handle;
    struct file *file;
} remembered[REMEMBERED];

static struct file *file_with(MPI_File handle)
{
    uintptr_t number = (uintptr_t)handle;
    for (uintptr_t i = 0; i < REMEMBERED; i++) {
        uintptr_t place = (number / 16 + i) % REMEMBERED;
        if (__atomic_load_n(&remembered[place].handle, __ATOMIC_ACQUIRE) == number)
            return remembered[place].file;
    }
    return io->file_named(MPIIO, "");
}

static void remember(MPI_File handle, struct file *file)
{
    uintptr_t number = (uintptr_t)handle;
    for (uintptr_t i = 0; i < REMEMBERED; i++) {
        uintptr_t place = (number / 16 + i) % REMEMBERED, empty = 0;
        if (__atomic_compare_exchange_n(&remembered[place].handle, &empty, number, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            remembered[place].file = file;
            return;
        }
    }
}

static void forget_handle(MPI_File handle)
{
    for (int i = 0; i < REMEMBERED; i++)
        if (remembered[i].handle == (uintptr_t)handle)
            __atomic_store_n(&remembered[i].handle, 0, __ATOMIC_RELEASE);
}

static bool is_counting(void)
{
    return io != NULL && io->counting && depth == 0;
}

__attribute__((constructor)) static void start(void)
{
    if (luthier_io_interface == NULL)
        return;
    io = luthier_io_interface();
    choose_romio();
}

/* ---- files ---- */

typedef int (*open_call)(MPI_Comm, const char *, int, MPI_Info, MPI_File *);

static int open_file(open_call call, MPI_Comm group, const char *name, int mode, MPI_Info given, MPI_File *handle,
                     const void *caller)
{
    char path[PATH_MAX];
    bool made;
    if (call == NULL)
        return MPI_ERR_OTHER;
    if (io == NULL || depth > 0 || name == NULL)
        return call(group, name, mode, given, handle);
    io->absolute_path(name, path, sizeof path);
    uint64_t start_ns = now_ns();
    MPI_Info hints = amended(given, path, caller, &made);
    depth++;
    int result = call(group, name, mode, hints, handle);
    depth--;
    if (made)
        FIND(PMPI_Info_free, caller)(&hints);
    io->used_mpi();
    if (result == MPI_SUCCESS) {
        for (enum setting setting = FIRST_HINT; setting < SETTINGS; setting++)
            if (io->wanted(setting, path) != NULL)
                mark(setting, io->wanted(setting, path), path);
        if (io->counting) {
            struct file *file = io->file_named(MPIIO, path);
            add(&file->tally.opens, 1);
            io->note(file, OPENED, mode, 0);
            io->count_other(file, start_ns);
            remember(*handle, file);
        }
    }
    return result;
}

/* Each call under both of its names, with the parameters given once. */
#define BOTH(wrap, name, ...) wrap(name, __VA_ARGS__) wrap(P##name, __VA_ARGS__)
#undef NEXT
#define NEXT(name) FIND(name, CALLER)

#define OPENS(name, dummy) \
    EXPORT int name(MPI_Comm group, const char *path, int mode, MPI_Info info, MPI_File *handle) \
    { \
        return open_file(NEXT(name), group, path, mode, info, handle, CALLER); \
    }
BOTH(OPENS, MPI_File_open, )

#define CLOSES(name, dummy) \
    EXPORT int name(MPI_File *handle) \
    { \
        if (!is_counting() || handle == NULL) \
            return NEXT(name)(handle); \
        struct file *file = file_with(*handle); \
        uint64_t start_ns = now_ns(); \
        forget_handle(*handle); \
        depth++; \
        int result = NEXT(name)(handle); \
        depth--; \
        io->note(file, CLOSED, 0, 0); \
        io->count_other(file, start_ns); \
        return result; \
    }
BOTH(CLOSES, MPI_File_close, )

/* What a view shows of a file: where it begins, and the size and extent of its pattern. */
static void note_view(struct file *file, MPI_Offset offset, MPI_Datatype type, const void *caller)
{
    MPI_Aint low = 0, extent = 0;
    int size = 0;
    FIND(PMPI_Type_get_extent, caller)(type, &low, &extent);
    FIND(PMPI_Type_size, caller)(type, &size);
    io->note(file, DETAIL, offset, (uint64_t)size);
    io->note(file, DETAIL, low, (uint64_t)extent);
}

/* Calls that neither read nor write; `counter` is added to. */
#define OTHERS(name, parameters, counter, ...) \
    EXPORT int name parameters \
    { \
        if (!is_counting()) \
            return NEXT(name)(__VA_ARGS__); \
        struct file *file = file_with(handle); \
        uint64_t start_ns = now_ns(); \
        depth++; \
        int result = NEXT(name)(__VA_ARGS__); \
        depth--; \
        counter; \
        io->count_other(file, start_ns); \
        return result; \
    }
BOTH(OTHERS, MPI_File_sync, (MPI_File handle),
     (add(&file->tally.syncs, 1), io->note(file, SYNCED, result, 0)), handle)
BOTH(OTHERS, MPI_File_seek, (MPI_File handle, MPI_Offset offset, int whence),
     (add(&file->tally.seeks, 1), io->note(file, SOUGHT, offset, (uint64_t)whence)), handle, offset, whence)
BOTH(OTHERS, MPI_File_set_view,
     (MPI_File handle, MPI_Offset offset, MPI_Datatype element, MPI_Datatype type, const char *form, MPI_Info info),
     note_view(file, offset, type, CALLER), handle, offset, element, type, form, info)

/* ---- reading and writing ---- */

static ssize_t bytes_of(int count, MPI_Datatype type, const void *caller)
{
    int size = 0;
    if (count <= 0 || FIND(PMPI_Type_size, caller)(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    return (ssize_t)count * size;
}

enum way { INDEPENDENT, COLLECTIVE };

/* `offset` is in elements of the view, so that it says nothing about the position in the file. */
static void count_transfer(MPI_File handle, bool is_write, enum way way, int64_t offset, ssize_t bytes,
                           uint64_t start_ns)
{
    struct file *file = file_with(handle);
    io->note(file, DETAIL, offset, (uint64_t)way);
    (is_write ? io->count_write : io->count_read)(file, -1, bytes, start_ns);
    if (way == COLLECTIVE)
        add(is_write ? &file->tally.collective_writes : &file->tally.collective_reads, 1);
}

#define TRANSFERS(name, is_write, way, at, parameters, ...) \
    EXPORT int name parameters \
    { \
        if (!is_counting()) \
            return NEXT(name)(__VA_ARGS__); \
        uint64_t start_ns = now_ns(); \
        depth++; \
        int result = NEXT(name)(__VA_ARGS__); \
        if (result == MPI_SUCCESS) \
            count_transfer(handle, is_write, way, at, bytes_of(count, type, CALLER), start_ns); \
        depth--; \
        return result; \
    }

#define BASE(buffer_t) MPI_File handle, buffer_t buffer, int count, MPI_Datatype type
#define BASE_AT(buffer_t) MPI_File handle, MPI_Offset offset, buffer_t buffer, int count, MPI_Datatype type
#define PLAIN(name, is_write, way, buffer_t) \
    BOTH(TRANSFERS, name, is_write, way, -1, (BASE(buffer_t), MPI_Status *status), handle, buffer, count, type, status)
#define PLAIN_AT(name, is_write, way, buffer_t) \
    BOTH(TRANSFERS, name, is_write, way, offset, (BASE_AT(buffer_t), MPI_Status *status), handle, offset, buffer, count, type, \
         status)
#define STARTED(name, is_write, way, buffer_t) \
    BOTH(TRANSFERS, name, is_write, way, -1, (BASE(buffer_t), MPI_Request *request), handle, buffer, count, type, request)
#define STARTED_AT(name, is_write, way, buffer_t) \
    BOTH(TRANSFERS, name, is_write, way, offset, (BASE_AT(buffer_t), MPI_Request *request), handle, offset, buffer, count, \
         type, request)
#define SPLIT(name, is_write, buffer_t) \
    BOTH(TRANSFERS, name, is_write, COLLECTIVE, -1, (BASE(buffer_t)), handle, buffer, count, type)
#define SPLIT_AT(name, is_write, buffer_t) \
    BOTH(TRANSFERS, name, is_write, COLLECTIVE, offset, (BASE_AT(buffer_t)), handle, offset, buffer, count, type)

/* ---- nonblocking collective calls ---- */

/* The ROMIO of Open MPI 4 has none and crashes. Where it was chosen for the sake of hints, they are made as blocking ones,
 * and the request is finished when they return. */
static bool lacks_nonblocking(void)
{
#if defined ROMIO && OMPI_MAJOR_VERSION < 5
    const char *component = getenv("OMPI_MCA_io");
    return io != NULL && io->any_wanted(FIRST_HINT, SETTINGS - 1) && component != NULL && strcmp(component, ROMIO) == 0;
#else
    return false;
#endif
}

static int get_status(void *saved, MPI_Status *status)
{
    *status = *(const MPI_Status *)saved;
    return MPI_SUCCESS;
}

static int free_status(void *saved)
{
    free(saved);
    return MPI_SUCCESS;
}

static int ignore_cancel(void *saved, int is_complete)
{
    (void)saved, (void)is_complete;
    return MPI_SUCCESS;
}

static int finished(int result, MPI_Status *saved, MPI_Request *request, const void *caller)
{
    if (result == MPI_SUCCESS)
        result = FIND(PMPI_Grequest_start, caller)(get_status, free_status, ignore_cancel, saved, request);
    if (result != MPI_SUCCESS) {
        free(saved);
        return result;
    }
    return FIND(PMPI_Grequest_complete, caller)(*request);
}

#define STARTS_TOGETHER(name, blocking, is_write, at, parameters, ...) \
    EXPORT int name parameters \
    { \
        MPI_Status *saved = lacks_nonblocking() ? calloc(1, sizeof *saved) : NULL; \
        bool is_counted = is_counting(); \
        uint64_t start_ns = now_ns(); \
        depth++; \
        int result = saved == NULL ? NEXT(name)(__VA_ARGS__, request) \
                                   : finished(FIND(blocking, CALLER)(__VA_ARGS__, saved), saved, request, CALLER); \
        if (result == MPI_SUCCESS && is_counted) \
            count_transfer(handle, is_write, COLLECTIVE, at, bytes_of(count, type, CALLER), start_ns); \
        depth--; \
        return result; \
    }
#define TOGETHER(name, blocking, is_write, buffer_t) \
    BOTH(STARTS_TOGETHER, name, blocking, is_write, -1, (BASE(buffer_t), MPI_Request *request), handle, buffer, count, type)
#define TOGETHER_AT(name, blocking, is_write, buffer_t) \
    BOTH(STARTS_TOGETHER, name, blocking, is_write, offset, (BASE_AT(buffer_t), MPI_Request *request), handle, offset, buffer, \
         count, type)
TOGETHER(MPI_File_iread_all, PMPI_File_read_all, false, void *)
TOGETHER(MPI_File_iwrite_all, PMPI_File_write_all, true, const void *)
TOGETHER_AT(MPI_File_iread_at_all, PMPI_File_read_at_all, false, void *)
TOGETHER_AT(MPI_File_iwrite_at_all, PMPI_File_write_at_all, true, const void *)

/* ---- all others ---- */

PLAIN(MPI_File_read, false, INDEPENDENT, void *)
PLAIN(MPI_File_read_shared, false, INDEPENDENT, void *)
PLAIN(MPI_File_read_all, false, COLLECTIVE, void *)
PLAIN(MPI_File_read_ordered, false, COLLECTIVE, void *)
PLAIN_AT(MPI_File_read_at, false, INDEPENDENT, void *)
PLAIN_AT(MPI_File_read_at_all, false, COLLECTIVE, void *)
STARTED(MPI_File_iread, false, INDEPENDENT, void *)
STARTED(MPI_File_iread_shared, false, INDEPENDENT, void *)
STARTED_AT(MPI_File_iread_at, false, INDEPENDENT, void *)
SPLIT(MPI_File_read_all_begin, false, void *)
SPLIT(MPI_File_read_ordered_begin, false, void *)
SPLIT_AT(MPI_File_read_at_all_begin, false, void *)

PLAIN(MPI_File_write, true, INDEPENDENT, const void *)
PLAIN(MPI_File_write_shared, true, INDEPENDENT, const void *)
PLAIN(MPI_File_write_all, true, COLLECTIVE, const void *)
PLAIN(MPI_File_write_ordered, true, COLLECTIVE, const void *)
PLAIN_AT(MPI_File_write_at, true, INDEPENDENT, const void *)
PLAIN_AT(MPI_File_write_at_all, true, COLLECTIVE, const void *)
STARTED(MPI_File_iwrite, true, INDEPENDENT, const void *)
STARTED(MPI_File_iwrite_shared, true, INDEPENDENT, const void *)
STARTED_AT(MPI_File_iwrite_at, true, INDEPENDENT, const void *)
SPLIT(MPI_File_write_all_begin, true, const void *)
SPLIT(MPI_File_write_ordered_begin, true, const void *)
SPLIT_AT(MPI_File_write_at_all_begin, true, const void *)

/* ---- end ---- */

#define FINALIZES(name, dummy) \
    EXPORT int name(void) \
    { \
        int result = NEXT(name)(); \
        if (io != NULL) \
            io->conclude(); \
        return result; \
    }
BOTH(FINALIZES, MPI_Finalize, )

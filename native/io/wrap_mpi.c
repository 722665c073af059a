/* libluthier_io_mpi.so: the calls of MPI-IO. It is preloaded beside libluthier_io.so into programs that use MPI, and is built
 * with the mpicc of the same MPI, for the types of MPI differ between implementations.
 *
 * Both names of a call are wrapped: Fortran's calls arrive as PMPI_. A call within a wrapped call is passed on uncounted. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "io.h"
#include "next.h"

#define CALLER __builtin_return_address(0)
enum { REMEMBERED = 256 };

const struct luthier_io *luthier_io_interface(void) __attribute__((weak));
static const struct luthier_io *io; /* NULL without libluthier_io.so: every call is just passed on */
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

/* ---- hints ---- */

/* Open MPI's own implementation of MPI-IO stores hints and ignores them; ROMIO is part of it and obeys them. It is chosen
 * when MPI_Init() reads the environment. */
#ifdef OPEN_MPI
#if OMPI_MAJOR_VERSION >= 5
#define ROMIO "romio341"
#else
#define ROMIO "romio321"
#endif
#endif

__attribute__((constructor)) static void start(void)
{
    if (luthier_io_interface == NULL)
        return;
    io = luthier_io_interface();
#ifdef ROMIO
    bool uses_mpi = getenv("OMPI_COMM_WORLD_RANK") != NULL || dlsym(RTLD_DEFAULT, "ompi_mpi_init") != NULL;
    if (uses_mpi && io->any_wanted(FIRST_HINT, SETTINGS - 1))
        setenv("OMPI_MCA_io", ROMIO, 0);
#endif
}

static bool hints_are_ignored(void)
{
#ifdef ROMIO
    const char *component = getenv("OMPI_MCA_io");
    return component != NULL && strstr(component, "ompio") != NULL && *component != '^';
#else
    return false;
#endif
}

static bool is_striped(const char *path)
{
    static const unsigned long STRIPED[] = {0x0BD00BD0 /* Lustre */,  0x47504653 /* GPFS */, 0x19830326 /* BeeGFS */,
                                            0x20030528 /* OrangeFS */, 0xAAD7AAEA /* PanFS */, 0x00C36400 /* Ceph */};
    struct statfs status;
    if (statfs(path, &status) != 0)
        return true; /* not known: no warning */
    for (size_t i = 0; i < sizeof STRIPED / sizeof *STRIPED; i++)
        if ((unsigned long)status.f_type == STRIPED[i])
            return true;
    return false;
}

static void mark(enum setting setting, const struct value *value, const char *path)
{
    if (hints_are_ignored())
        io->mark_inert(setting, "Open MPI's ompio ignores hints; do not set io=ompio");
    else if (setting >= STRIPING_FACTOR && !is_striped(path))
        io->mark_inert(setting, "the file is not on a striped file system (Lustre, GPFS, BeeGFS, ...)");
    else
        io->mark_applied(value);
}

static MPI_Info no_info(const void *caller)
{
#ifdef OPEN_MPI
    /* MPI_INFO_NULL is the address of this variable. Where a program has a copy of it, the copy counts. */
    void *variable = dlsym(RTLD_DEFAULT, "ompi_mpi_info_null");
    return (MPI_Info)(variable != NULL ? variable : next_symbol("ompi_mpi_info_null", caller));
#else
    (void)caller;
    return MPI_INFO_NULL;
#endif
}

#define FIND(name, caller) \
    ({ \
        static __typeof__(&name) found; \
        if (found == NULL) \
            found = (__typeof__(&name))next_symbol(#name, caller); \
        found; \
    })

static long number_in(const char *name, const char *other)
{
    const char *text = getenv(name) != NULL ? getenv(name) : getenv(other);
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

/* By default ROMIO takes one process of each host for collective buffering, so that more than one for each host need the
 * hint cb_config_list as well. */
static void allow_several_per_host(MPI_Info hints, const struct value *nodes, const void *caller)
{
    long local = number_in("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS");
    long ranks = number_in("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    char list[32];
    int is_set = 0;
    if (local < 1 || ranks < local)
        return;
    long hosts = (ranks + local - 1) / local, each = ((long)nodes->number + hosts - 1) / hosts;
    FIND(PMPI_Info_get, caller)(hints, "cb_config_list", sizeof list - 1, list, &is_set);
    if (is_set || each < 2)
        return;
    snprintf(list, sizeof list, "*:%ld", each < local ? each : local);
    FIND(PMPI_Info_set, caller)(hints, "cb_config_list", list);
}

/* A copy of the hints of the program with the settings added; MPI_Info of its own to free, or *made is false. */
static MPI_Info amended(MPI_Info given, const char *path, const void *caller, bool *made)
{
    MPI_Info hints = given;
    *made = false;
    if (io == NULL || !io->any_wanted(FIRST_HINT, SETTINGS - 1))
        return given;
    int result = given == no_info(caller) ? FIND(PMPI_Info_create, caller)(&hints)
                                          : FIND(PMPI_Info_dup, caller)(given, &hints);
    if (result != MPI_SUCCESS)
        return given;
    *made = true;
    for (enum setting setting = FIRST_HINT; setting < SETTINGS; setting++) {
        const struct value *value = io->wanted(setting, path);
        char number[24];
        if (value == NULL)
            continue;
        snprintf(number, sizeof number, "%llu", (unsigned long long)value->number);
        bool is_word = *value->text < '0' || *value->text > '9';
        FIND(PMPI_Info_set, caller)(hints, io->setting_name(setting), is_word ? value->text : number);
        if (setting == CB_NODES)
            allow_several_per_host(hints, value, caller);
    }
    return hints;
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

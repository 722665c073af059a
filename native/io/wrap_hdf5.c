/* The calls of HDF5: settings are injected, times and bytes are counted. */
#define _GNU_SOURCE
#include "hdf5.h"

#include <string.h>
#include <unistd.h>

enum { READ_WRITE = 1, TRUNCATE = 2, EXCLUSIVE = 4 };

/* What there is to do; set once, before main(). */
static bool idle = true, transfers_idle = true, amends_transfers;
static bool datasets_idle = true; /* also later, when all settings that depend on the layout have been used once */
static bool watches_datasets;

void find_hdf5_work(void)
{
    amends_transfers = any_wanted(TRANSFER, TRANSFER);
    idle = !counting && !any_wanted(0, FIRST_HINT - 1);
    transfers_idle = !counting && !amends_transfers;
    watches_datasets = counting || amends_transfers || any_wanted(CHUNK, CHUNK_CACHE_W0) || any_wanted(FILL_TIME, ALLOC_TIME);
    datasets_idle = !watches_datasets && !any_wanted(SIEVE_BUFFER, SIEVE_BUFFER);
}

static uint64_t start(void)
{
    return counting ? now_ns() : 0;
}

/* ---- files ---- */

static id opened(const struct hdf5 *hdf5, id number, struct file *file, bool parallel, unsigned flags,
                 uint64_t start_ns)
{
    if (counting) {
        count_other(file, start_ns);
        if (number >= 0) {
            add(&file->tally.opens, 1);
            note(file, OPENED, flags, 0);
        }
    }
    if (number >= 0) {
        file->parallel = parallel;
        remember(hdf5, number, file);
    }
    return number;
}

struct request {
    const char *name;
    bool creates;
    unsigned flags;
    id creation;
};

static id open_with(struct hdf5 *hdf5, const struct request *request, id list)
{
    return id_of(hdf5, request->creates ? hdf5->H5Fcreate(request->name, request->flags, request->creation, list)
                                        : hdf5->H5Fopen(request->name, request->flags, list));
}

/* If HDF5 refuses a file with the amended list, it is opened as the program has asked for. */
static id open_file(struct hdf5 *hdf5, struct request request, id own_list)
{
    own_list = id_of(hdf5, own_list);
    uint64_t start_ns = start();
    struct file *file = named(request.name);
    bool parallel = is_parallel(hdf5, own_list), writable = request.creates || (request.flags & READ_WRITE) != 0;
    id list = amended_access(hdf5, own_list, file->path, writable), number = -1;
    if (list != own_list) {
        bool is_new = !parallel && request.creates && access(request.name, F_OK) != 0;
        struct silence silence = silence_errors(hdf5);
        number = open_with(hdf5, &request, list);
        end_silence(hdf5, &silence);
        close_list(hdf5, list, own_list, false);
        if (number < 0 && is_new) /* the file may be there now, by the call that failed */
            request.flags = (request.flags & ~EXCLUSIVE) | TRUNCATE;
    }
    if (number < 0) {
        number = open_with(hdf5, &request, own_list);
        if (list != own_list && number >= 0)
            warn("%.150s could not be opened with the settings and was opened without them", file->path);
    }
    return opened(hdf5, number, file, parallel, request.flags, start_ns);
}

EXPORT id H5Fcreate(const char *name, unsigned flags, id creation, id access)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || idle || name == NULL)
        return hdf5 == NULL ? -1 : hdf5->H5Fcreate(name, flags, creation, access);
    return open_file(hdf5, (struct request){name, true, flags, creation}, access);
}

EXPORT id H5Fopen(const char *name, unsigned flags, id access)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || idle || name == NULL)
        return hdf5 == NULL ? -1 : hdf5->H5Fopen(name, flags, access);
    return open_file(hdf5, (struct request){name, false, flags, DEFAULT}, access);
}

EXPORT int H5Fclose(id number)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || !counting)
        return hdf5 == NULL ? -1 : hdf5->H5Fclose(number);
    struct file *file = file_with(hdf5, id_of(hdf5, number));
    bool deferred = deferred_begins(file);
    uint64_t start_ns = now_ns();
    int result = hdf5->H5Fclose(number);
    note(file, CLOSED, 0, 0);
    count_other(file, start_ns);
    if (deferred)
        deferred_ends(file);
    return result;
}

EXPORT int H5Fflush(id number, int scope)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || !counting)
        return hdf5 == NULL ? -1 : hdf5->H5Fflush(number, scope);
    struct file *file = file_with(hdf5, id_of(hdf5, number));
    bool deferred = deferred_begins(file);
    uint64_t start_ns = now_ns();
    int result = hdf5->H5Fflush(number, scope);
    add(&file->tally.syncs, 1);
    note(file, SYNCED, scope, 0);
    count_other(file, start_ns);
    if (deferred)
        deferred_ends(file);
    return result;
}

/* ---- datasets ---- */

/* HDF5 counts the identifiers of datasets on their own, so that this is the same in each run of a program. */
static int64_t count_in(id number)
{
    return number & 0xffffff;
}

static id dataset_opened(struct hdf5 *hdf5, id number, const char *name, struct file *file, uint64_t start_ns)
{
    if (counting) {
        count_other(file, start_ns);
        if (number >= 0) {
            uint64_t hash = 5381;
            for (; name != NULL && *name != '\0'; name++)
                hash = hash * 33 + (unsigned char)*name;
            add(&file->tally.datasets, 1);
            note(file, OPENED, count_in(number), hash);
        }
    }
    if (number >= 0) {
        remember(hdf5, number, file);
        if (look_at_dataset(hdf5, number, file) && !watches_datasets)
            datasets_idle = true;
    }
    return number;
}

enum { LOCATION, TYPE, SPACE, LINK, CREATION, ACCESS, IDS };

static id create1(struct hdf5 *hdf5, const id *ids, const char *name)
{
    return hdf5->H5Dcreate1(ids[LOCATION], name, ids[TYPE], ids[SPACE], ids[CREATION]);
}

static id create2(struct hdf5 *hdf5, const id *ids, const char *name)
{
    return hdf5->H5Dcreate2(ids[LOCATION], name, ids[TYPE], ids[SPACE], ids[LINK], ids[CREATION], ids[ACCESS]);
}

static id create_anonymous(struct hdf5 *hdf5, const id *ids, const char *name)
{
    (void)name;
    return hdf5->H5Dcreate_anon(ids[LOCATION], ids[TYPE], ids[SPACE], ids[CREATION], ids[ACCESS]);
}

/* If HDF5 refuses a dataset with the amended list, it is created as the program has asked for. */
static id create(struct hdf5 *hdf5, id (*call)(struct hdf5 *, const id *, const char *), const id *given,
                 const char *name)
{
    id ids[IDS], number = -1;
    for (int i = 0; i < IDS; i++)
        ids[i] = id_of(hdf5, given[i]);
    id creation = ids[CREATION], access = ids[ACCESS];
    struct file *file = file_with(hdf5, ids[LOCATION]);
    uint64_t start_ns = start();
    ids[CREATION] = amended_creation(hdf5, creation, ids[SPACE], file);
    ids[ACCESS] = amended_dataset_access(hdf5, access, file);
    bool amended = ids[CREATION] != creation || ids[ACCESS] != access;
    if (amended) {
        struct silence silence = silence_errors(hdf5);
        number = id_of(hdf5, call(hdf5, ids, name));
        end_silence(hdf5, &silence);
        close_list(hdf5, ids[CREATION], creation, false);
        close_list(hdf5, ids[ACCESS], access, false);
    }
    if (number < 0) {
        ids[CREATION] = creation;
        ids[ACCESS] = access;
        number = id_of(hdf5, call(hdf5, ids, name));
        if (amended && number >= 0)
            warn("a dataset of %.150s could not be created with the settings and was created without them",
                 file->path);
    }
    return dataset_opened(hdf5, number, name, file, start_ns);
}

EXPORT id H5Dcreate1(id location, const char *name, id type, id space, id creation)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || datasets_idle)
        return hdf5 == NULL ? -1 : hdf5->H5Dcreate1(location, name, type, space, creation);
    return create(hdf5, create1, (id[]){location, type, space, DEFAULT, creation, DEFAULT}, name);
}

EXPORT id H5Dcreate2(id location, const char *name, id type, id space, id link, id creation, id access)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || datasets_idle)
        return hdf5 == NULL ? -1 : hdf5->H5Dcreate2(location, name, type, space, link, creation, access);
    return create(hdf5, create2, (id[]){location, type, space, link, creation, access}, name);
}

EXPORT id H5Dcreate_anon(id location, id type, id space, id creation, id access)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || datasets_idle)
        return hdf5 == NULL ? -1 : hdf5->H5Dcreate_anon(location, type, space, creation, access);
    return create(hdf5, create_anonymous, (id[]){location, type, space, DEFAULT, creation, access}, NULL);
}

EXPORT id H5Dopen1(id location, const char *name)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || datasets_idle)
        return hdf5 == NULL ? -1 : hdf5->H5Dopen1(location, name);
    struct file *file = file_with(hdf5, id_of(hdf5, location));
    uint64_t start_ns = start();
    return dataset_opened(hdf5, id_of(hdf5, hdf5->H5Dopen1(location, name)), name, file, start_ns);
}

EXPORT id H5Dopen2(id location, const char *name, id access)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || datasets_idle)
        return hdf5 == NULL ? -1 : hdf5->H5Dopen2(location, name, access);
    access = id_of(hdf5, access);
    struct file *file = file_with(hdf5, id_of(hdf5, location));
    uint64_t start_ns = start();
    id list = amended_dataset_access(hdf5, access, file);
    id number = id_of(hdf5, hdf5->H5Dopen2(location, name, list));
    close_list(hdf5, list, access, number < 0);
    return dataset_opened(hdf5, number, name, file, start_ns);
}

EXPORT int H5Dclose(id number)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || !counting)
        return hdf5 == NULL ? -1 : hdf5->H5Dclose(number);
    struct file *file = file_with(hdf5, id_of(hdf5, number));
    bool deferred = deferred_begins(file);
    uint64_t start_ns = now_ns();
    int result = hdf5->H5Dclose(number);
    note(file, CLOSED, 0, 1);
    count_other(file, start_ns);
    if (deferred)
        deferred_ends(file);
    return result;
}

/* ---- transfers ---- */

static bool is_collective(struct hdf5 *hdf5, id list, const struct file *file)
{
    int mode = 0;
    return file->parallel && list != DEFAULT && hdf5->H5Pget_dxpl_mpio != NULL
           && hdf5->H5Pget_dxpl_mpio(list, &mode) >= 0 && mode == 1;
}

struct transfer {
    struct hdf5 *hdf5;
    id dataset, type, memory, selection, own_list, list;
    uint64_t start_ns;
};

/* Elements that a call moved. Identifiers up to 2 are constants that stand for a space (H5S_ALL, H5S_BLOCK). */
static uint64_t elements_of(const struct transfer *transfer)
{
    struct hdf5 *hdf5 = transfer->hdf5;
    long long elements = 0;
    if (id_of(hdf5, transfer->memory) > 2)
        elements = hdf5->H5Sget_select_npoints(transfer->memory);
    else if (id_of(hdf5, transfer->selection) > 2)
        elements = hdf5->H5Sget_select_npoints(transfer->selection);
    else {
        id space = id_of(hdf5, hdf5->H5Dget_space(transfer->dataset));
        if (space >= 0) {
            elements = hdf5->H5Sget_simple_extent_npoints(space);
            hdf5->H5Sclose(space);
        }
    }
    return elements > 0 ? (uint64_t)elements : 0;
}

/* The dataset, and which part of it: the corners of what is selected in the file. HDF5 sets one number for each dimension,
 * of which it allows DIMENSIONS; the others keep NOT_SET, which costs less than to ask for their number. */
static void note_selection(const struct transfer *transfer, struct file *file, uint64_t elements)
{
    static const hsize NOT_SET = (hsize)-1;
    struct hdf5 *hdf5 = transfer->hdf5;
    id space = id_of(hdf5, transfer->selection);
    hsize low[DIMENSIONS], high[DIMENSIONS + 1];
    note(file, DETAIL, count_in(id_of(hdf5, transfer->dataset)), 0);
    if (elements == 0 || space <= 2 || hdf5->H5Sget_select_bounds == NULL)
        return;
    memset(high, 0xff, sizeof high);
    if (hdf5->H5Sget_select_bounds(space, low, high) < 0)
        return;
    for (int i = 0; high[i] != NOT_SET; i++)
        note(file, DETAIL, (int64_t)low[i], high[i]);
}

static void begin(struct transfer *transfer)
{
    struct hdf5 *hdf5 = transfer->hdf5;
    transfer->own_list = transfer->list = id_of(hdf5, transfer->list);
    if (amends_transfers)
        transfer->list = amended_transfer(hdf5, transfer->own_list, file_with(hdf5, id_of(hdf5, transfer->dataset)));
    transfer->start_ns = start();
}

/* Only a call that succeeded is counted: its arguments are valid. */
static int end(const struct transfer *transfer, int result, bool is_write)
{
    struct hdf5 *hdf5 = transfer->hdf5;
    if (counting && result >= 0) {
        struct file *file = file_with(hdf5, id_of(hdf5, transfer->dataset));
        uint64_t elements = elements_of(transfer);
        ssize_t bytes = elements == 0 ? 0 : (ssize_t)(elements * size_of_type(hdf5, transfer->type));
        note_selection(transfer, file, elements);
        (is_write ? count_write : count_read)(file, -1, bytes, transfer->start_ns);
        if (is_collective(hdf5, transfer->list, file))
            add(is_write ? &file->tally.collective_writes : &file->tally.collective_reads, 1);
    }
    close_list(hdf5, transfer->list, transfer->own_list, result < 0);
    return result;
}

/* The exported calls do as little as can be where a call is just passed on: they save no registers. */
#define CALLER __builtin_return_address(0)

__attribute__((noinline)) static int any_read(const void *caller, id dataset, id type, id memory, id selection, id list,
                                               void *data)
{
    struct hdf5 *hdf5 = hdf5_for(caller);
    if (hdf5 == NULL || transfers_idle)
        return hdf5 == NULL ? -1 : hdf5->H5Dread(dataset, type, memory, selection, list, data);
    struct transfer transfer = {hdf5, dataset, type, memory, selection, list, list, 0};
    begin(&transfer);
    return end(&transfer, hdf5->H5Dread(dataset, type, memory, selection, transfer.list, data), false);
}

EXPORT int H5Dread(id dataset, id type, id memory, id selection, id list, void *data)
{
    const struct hdf5 *hdf5 = first_hdf5(CALLER);
    if (hdf5 != NULL && transfers_idle)
        return hdf5->H5Dread(dataset, type, memory, selection, list, data);
    return any_read(CALLER, dataset, type, memory, selection, list, data);
}

__attribute__((noinline)) static int any_write(const void *caller, id dataset, id type, id memory, id selection, id list,
                                               const void *data)
{
    struct hdf5 *hdf5 = hdf5_for(caller);
    if (hdf5 == NULL || transfers_idle)
        return hdf5 == NULL ? -1 : hdf5->H5Dwrite(dataset, type, memory, selection, list, data);
    struct transfer transfer = {hdf5, dataset, type, memory, selection, list, list, 0};
    begin(&transfer);
    return end(&transfer, hdf5->H5Dwrite(dataset, type, memory, selection, transfer.list, data), true);
}

EXPORT int H5Dwrite(id dataset, id type, id memory, id selection, id list, const void *data)
{
    const struct hdf5 *hdf5 = first_hdf5(CALLER);
    if (hdf5 != NULL && transfers_idle)
        return hdf5->H5Dwrite(dataset, type, memory, selection, list, data);
    return any_write(CALLER, dataset, type, memory, selection, list, data);
}

/* ---- end ---- */

EXPORT int H5close(void)
{
    struct hdf5 *hdf5 = hdf5_for(__builtin_return_address(0));
    if (hdf5 == NULL || hdf5->H5close == NULL)
        return -1;
    hdf5->transfer_list[0] = hdf5->transfer_list[1] = 0;
    __atomic_fetch_add(&hdf5_restarts, 1, __ATOMIC_RELAXED);
    return hdf5->H5close();
}

/* Finds the HDF5 library that a call is meant for. */
#define _GNU_SOURCE
#include "hdf5.h"

#include <elf.h>
#include <string.h>

#include "next.h"

enum { LIBRARIES = 8 };

/* A program may hold several HDF5 libraries, each loaded with a module of its own (Python's h5py and netCDF4). So a call is
 * passed on to the library that the calling code was linked with. */
static struct hdf5 libraries[LIBRARIES];
struct caller callers[CALLERS];
int caller_count;
static int locked;
static THREAD_LOCAL bool is_finding;
static bool used;
int hdf5_restarts;

bool hdf5_was_used(void)
{
    return used;
}

id id_of(const struct hdf5 *hdf5, id number)
{
    return hdf5->wide ? number : (int32_t)number;
}

static const void *variable(const char *name, const void *caller)
{
    return symbol_in(RTLD_DEFAULT, name, caller); /* where a program has a copy of the variable, the copy counts */
}

static void check(struct hdf5 *hdf5)
{
    unsigned major = 0, minor = 0, release = 0;
    if (hdf5->H5get_libversion != NULL)
        hdf5->H5get_libversion(&major, &minor, &release);
    hdf5->wide = major > 1 || minor >= 10;
    hdf5->injectable = false;
    if (major < 1 || (major == 1 && minor < 8))
        hdf5->problem = "this HDF5 is older than 1.8";
#if !defined __x86_64__ && !defined __aarch64__
    else if (!hdf5->wide)
        hdf5->problem = "HDF5 before 1.10 is supported on x86-64 and aarch64 only";
#endif
    else if (hdf5->H5Pcopy == NULL || hdf5->H5Pclose == NULL || hdf5->H5Eget_auto2 == NULL || hdf5->lists[FILE_ACCESS] == NULL
             || hdf5->lists[DATASET_CREATE] == NULL || hdf5->lists[DATASET_XFER] == NULL)
        hdf5->problem = "this HDF5 lacks calls or lists that are needed";
    else
        hdf5->injectable = true;
    if (!hdf5->injectable && any_wanted(0, FIRST_HINT - 1))
        warn("no setting of HDF5 is injected: %s", hdf5->problem);
}

static void find_calls(struct hdf5 *hdf5, const void *caller)
{
    static const char *const LISTS[DEFAULT_LISTS][2] = {
        [FILE_ACCESS] = {"H5P_LST_FILE_ACCESS_ID_g", "H5P_LST_FILE_ACCESS_g"},
        [DATASET_CREATE] = {"H5P_LST_DATASET_CREATE_ID_g", "H5P_LST_DATASET_CREATE_g"},
        [DATASET_ACCESS] = {"H5P_LST_DATASET_ACCESS_ID_g", "H5P_LST_DATASET_ACCESS_g"},
        [DATASET_XFER] = {"H5P_LST_DATASET_XFER_ID_g", "H5P_LST_DATASET_XFER_g"},
    };
#define FIND(type, name, parameters) hdf5->name = (__typeof__(hdf5->name))next_symbol(#name, caller);
    HDF5_CALLS(FIND)
    for (int i = 0; i < DEFAULT_LISTS; i++) {
        hdf5->lists[i] = variable(LISTS[i][0], caller);
        if (hdf5->lists[i] == NULL)
            hdf5->lists[i] = variable(LISTS[i][1], caller);
    }
    static const char *const TYPES[] = {
#define NAME(name) #name,
        FIXED_TYPES(NAME)};
    int found = 0;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if ((hdf5->fixed_types[found] = variable(TYPES[i], caller)) != NULL)
            found++;
    hdf5->fixed_types[found] = NULL;
    check(hdf5);
}

/* The library at an address of H5Fcreate, known already or new. */
static struct hdf5 *library_with(const void *function, const void *caller)
{
    struct hdf5 *unused = NULL;
    for (int i = LIBRARIES - 1; i >= 0; i--) {
        if ((const void *)libraries[i].H5Fcreate == function)
            return &libraries[i];
        if (libraries[i].H5Fcreate == NULL)
            unused = &libraries[i];
    }
    if (unused != NULL)
        find_calls(unused, caller);
    return unused;
}

struct range {
    const char *address, *first, *last;
};

static int find_range(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    struct range *range = data;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const char *first = (const char *)object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        const char *last = first + object->dlpi_phdr[i].p_memsz;
        if (object->dlpi_phdr[i].p_type == PT_LOAD && range->address >= first && range->address < last) {
            range->first = first;
            range->last = last;
            return 1;
        }
    }
    return 0;
}

static struct hdf5 *find_for(const char *caller)
{
    struct range range = {caller, caller, caller + 1};
    void *function = next_symbol("H5Fcreate", caller);
    if (function == NULL)
        return NULL;
    struct hdf5 *hdf5 = library_with(function, caller);
    dl_iterate_phdr(find_range, &range);
    if (hdf5 != NULL && caller_count < CALLERS) {
        callers[caller_count].first = range.first;
        callers[caller_count].last = range.last;
        callers[caller_count].hdf5 = hdf5;
        __atomic_store_n(&caller_count, caller_count + 1, __ATOMIC_RELEASE);
    }
    return hdf5;
}

static struct hdf5 *known_for(const char *caller)
{
    int count = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE);
    for (int i = 0; i < count; i++)
        if (caller >= callers[i].first && caller < callers[i].last)
            return callers[i].hdf5;
    return NULL;
}

/* Signal handlers neither call HDF5 nor unload it, so that a lock may be waited for. */
static void lock(void)
{
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE) != 0)
        continue;
    is_finding = true;
}

static void unlock(void)
{
    is_finding = false;
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

/* A module and its HDF5 library may be gone afterwards, and others may be loaded in their place. */
EXPORT int dlclose(void *handle)
{
    static __typeof__(&dlclose) next_dlclose;
    Dl_info where;
    int result = NEXT(dlclose)(handle);
    if (is_finding || __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE) == 0)
        return result;
    lock();
    __atomic_store_n(&caller_count, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < LIBRARIES; i++)
        if (libraries[i].H5Fcreate != NULL && dladdr((const void *)libraries[i].H5Fcreate, &where) == 0)
            memset(&libraries[i], 0, sizeof libraries[i]);
    __atomic_fetch_add(&hdf5_restarts, 1, __ATOMIC_RELAXED);
    unlock();
    return result;
}

struct hdf5 *find_hdf5_for(const void *caller)
{
    struct hdf5 *hdf5 = known_for(caller);
    if (hdf5 != NULL)
        return hdf5;
    lock();
    hdf5 = known_for(caller);
    if (hdf5 == NULL)
        hdf5 = find_for(caller);
    unlock();
    used = true;
    print_warnings();
    return hdf5;
}

id copy_list(const struct hdf5 *hdf5, id list, enum default_list otherwise)
{
    if (list == DEFAULT) {
        if (hdf5->lists[otherwise] == NULL || hdf5->H5open == NULL || hdf5->H5open() < 0)
            return -1;
        list = hdf5->wide ? *(const int64_t *)hdf5->lists[otherwise] : *(const int32_t *)hdf5->lists[otherwise];
    }
    return id_of(hdf5, hdf5->H5Pcopy(list));
}

/* To ask HDF5 takes longer than the rest of counting a call. */
size_t size_of_type(struct hdf5 *hdf5, id type)
{
    type = id_of(hdf5, type);
    for (int i = 0; hdf5->fixed_types[i] != NULL; i++) {
        const void *place = hdf5->fixed_types[i];
        if ((hdf5->wide ? *(const int64_t *)place : *(const int32_t *)place) != type)
            continue;
        if (__atomic_load_n(&hdf5->fixed_sizes[i].type, __ATOMIC_ACQUIRE) != type) {
            hdf5->fixed_sizes[i].size = hdf5->H5Tget_size(type);
            __atomic_store_n(&hdf5->fixed_sizes[i].type, type, __ATOMIC_RELEASE);
        }
        return hdf5->fixed_sizes[i].size;
    }
    return hdf5->H5Tget_size(type);
}

/* ---- messages of HDF5 about errors ---- */

static void set_handler(struct hdf5 *hdf5, bool is_old, void *function, void *data)
{
    if (is_old)
        hdf5->H5Eset_auto1(function, data);
    else
        hdf5->H5Eset_auto2(DEFAULT, function, data);
}

struct silence silence_errors(struct hdf5 *hdf5)
{
    struct silence silence = {0};
    unsigned is_new = 1;
    if (hdf5->H5Eauto_is_v2 != NULL && hdf5->H5Eget_auto1 != NULL && hdf5->H5Eset_auto1 != NULL)
        hdf5->H5Eauto_is_v2(DEFAULT, &is_new);
    silence.is_old = is_new == 0;
    if (silence.is_old)
        hdf5->H5Eget_auto1(&silence.function, &silence.data);
    else
        hdf5->H5Eget_auto2(DEFAULT, &silence.function, &silence.data);
    set_handler(hdf5, silence.is_old, NULL, NULL);
    return silence;
}

void end_silence(struct hdf5 *hdf5, const struct silence *silence)
{
    set_handler(hdf5, silence->is_old, silence->function, silence->data);
}

/* ---- a statically linked HDF5 ---- */

static int find_text(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    static const char TEXT_OF_HDF5[] = "HDF5 library version";
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const void *start = (const char *)object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) != 0 && (segment->p_flags & PF_W) == 0
            && memmem(start, segment->p_filesz, TEXT_OF_HDF5, strlen(TEXT_OF_HDF5)) != NULL)
            *(bool *)data = true;
    }
    return 1; /* the first object is the program itself */
}

/* The program itself contains HDF5 and does not make its calls through the dynamic linker. */
bool hdf5_is_static(void)
{
    static int known; /* 1: no, 2: yes */
    if (known == 0) {
        bool found = false;
        if (!used && dlsym(RTLD_NEXT, "H5Fcreate") == NULL)
            dl_iterate_phdr(find_text, &found);
        known = found ? 2 : 1;
    }
    return known == 2;
}

/* Which file an identifier of HDF5 belongs to. */
#include "hdf5.h"

enum { REMEMBERED = 32 };

/* Files of the identifiers that this thread has used. HDF5 gives a number out again only after a restart, and what is not
 * found here is asked of HDF5. */
static THREAD_LOCAL struct {
    const struct hdf5 *hdf5;
    id number;
    struct file *file;
    int restarts;
} remembered[REMEMBERED];

void remember(const struct hdf5 *hdf5, id number, struct file *file)
{
    uint64_t place = (uint64_t)number % REMEMBERED;
    remembered[place].hdf5 = hdf5;
    remembered[place].number = number;
    remembered[place].file = file;
    remembered[place].restarts = __atomic_load_n(&hdf5_restarts, __ATOMIC_RELAXED);
}

struct file *named(const char *name)
{
    char path[PATH_MAX];
    absolute_path(name, path, sizeof path);
    return file_named(HDF5, path);
}

struct file *file_with(struct hdf5 *hdf5, id number)
{
    uint64_t place = (uint64_t)number % REMEMBERED;
    if (remembered[place].number == number && remembered[place].hdf5 == hdf5 && remembered[place].file != NULL
        && remembered[place].restarts == __atomic_load_n(&hdf5_restarts, __ATOMIC_RELAXED))
        return remembered[place].file;
    char name[PATH_MAX] = "";
    struct file *file = rest_of(HDF5);
    struct silence silence = silence_errors(hdf5); /* the identifier may be invalid */
    if (hdf5->H5Fget_name(number, name, sizeof name) > 0) {
        file = named(name);
        remember(hdf5, number, file);
    }
    end_silence(hdf5, &silence);
    return file;
}

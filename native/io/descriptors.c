/* Which file a descriptor stands for. It is asked of the kernel once, when a descriptor is first used, and forgotten when
 * a wrapped call closes or replaces it; so files that were opened by unseen calls, or by a parent, are counted as well. */
#define _GNU_SOURCE
#include "io.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS 65536 /* those with higher numbers are asked for at each call */
#define LONGEST_PATH 1024 /* short, for signal handlers may run on a small stack; longer paths count in the layer only */

static struct file uncounted; /* stands for everything that is no regular file */
static struct {
    struct file *file; /* NULL: not known */
    int64_t position;
} descriptors[DESCRIPTORS];
static int highest = -1; /* of those that are known */

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void number_to(char *text, int number)
{
    char digits[12];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        *text++ = digits[--count];
    *text = '\0';
}

/* Regular files and block devices, without those that the kernel makes up. */
static struct file *file_behind(int fd)
{
    struct stat status;
    char link[32] = "/proc/self/fd/", path[LONGEST_PATH];
    if (fstat(fd, &status) != 0)
        return NULL;
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        return &uncounted;
    number_to(link + strlen(link), fd);
    ssize_t length = readlink(link, path, sizeof path);
    if (length <= 0 || length == sizeof path)
        return rest_of(POSIX);
    path[length] = '\0';
    if (original_path(path) != path)
        return file_named(POSIX, original_path(path));
    if (begins(path, "/proc/") || begins(path, "/sys/") || begins(path, "/memfd:"))
        return &uncounted;
    return file_named(POSIX, path);
}

struct file *file_of(int fd)
{
    if (!counting || fd < 0)
        return NULL;
    struct file *file = fd < DESCRIPTORS ? __atomic_load_n(&descriptors[fd].file, __ATOMIC_RELAXED) : NULL;
    if (file == NULL) {
        int saved = errno;
        file = file_behind(fd);
        if (fd < DESCRIPTORS && file != NULL) {
            set_position(fd, file == &uncounted ? -1 : kernel_position(fd));
            __atomic_store_n(&descriptors[fd].file, file, __ATOMIC_RELAXED);
            int known = __atomic_load_n(&highest, __ATOMIC_RELAXED);
            while (known < fd && !__atomic_compare_exchange_n(&highest, &known, fd, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                continue;
        }
        errno = saved;
    }
    return file == &uncounted ? NULL : file;
}

struct file *known_file_of(int fd)
{
    struct file *file = fd >= 0 && fd < DESCRIPTORS ? __atomic_load_n(&descriptors[fd].file, __ATOMIC_RELAXED) : NULL;
    return file == &uncounted ? NULL : file;
}

void forget(int first, int last)
{
    int known = __atomic_load_n(&highest, __ATOMIC_RELAXED);
    for (int fd = first < 0 ? 0 : first; fd <= last && fd <= known; fd++)
        __atomic_store_n(&descriptors[fd].file, NULL, __ATOMIC_RELAXED);
}

void set_position(int fd, int64_t position)
{
    if (fd >= 0 && fd < DESCRIPTORS)
        __atomic_store_n(&descriptors[fd].position, position, __ATOMIC_RELAXED);
}

int64_t advance(int fd, ssize_t size)
{
    if (fd < 0 || fd >= DESCRIPTORS)
        return -1;
    int64_t position = __atomic_load_n(&descriptors[fd].position, __ATOMIC_RELAXED);
    if (position >= 0 && size > 0)
        set_position(fd, position + size);
    return position;
}

/* The calls with a path that neither open files nor streams. They matter only where files are kept in memory: each is passed
 * on with the path that memory.c gives. */
#define _GNU_SOURCE
#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "next.h"

/* Names that older programs call, or those built with _FORTIFY_SOURCE. */
int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat(int version, const char *path, struct stat *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstatat(int version, int base, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int base, const char *path, struct stat64 *status, int flags);
char *__realpath_chk(const char *path, char *result, size_t room);
char *__getcwd_chk(char *result, size_t size, size_t room);

#define AT AT_FDCWD
typedef int (*chooses)(const struct dirent *);
typedef int (*compares)(const struct dirent **, const struct dirent **);
typedef int (*chooses64)(const struct dirent64 *);
typedef int (*compares64)(const struct dirent64 **, const struct dirent64 **);
typedef const struct utimbuf *timebuf_t;

/* The call, or an error if there is none of that name. */
#define PASS(name, ...) \
    (__extension__({ \
        static __typeof__(&name) next_##name; \
        NEXT(name) != NULL ? next_##name(__VA_ARGS__) : (errno = ENOSYS, (__typeof__(name(__VA_ARGS__)))-1); \
    }))
#define PASS_POINTER(name, ...) \
    (__extension__({ \
        static __typeof__(&name) next_##name; \
        NEXT(name) != NULL ? next_##name(__VA_ARGS__) : (errno = ENOSYS, NULL); \
    }))

#define SWITCHES(name, parameters, base, use, ...) \
    EXPORT int name parameters \
    { \
        SWITCHED(base, path, use); \
        return PASS(name, __VA_ARGS__); \
    }

SWITCHES(stat, (const char *path, struct stat *status), AT, LOOK, path, status)
SWITCHES(stat64, (const char *path, struct stat64 *status), AT, LOOK, path, status)
SWITCHES(lstat, (const char *path, struct stat *status), AT, LOOK, path, status)
SWITCHES(lstat64, (const char *path, struct stat64 *status), AT, LOOK, path, status)
SWITCHES(fstatat, (int base, const char *path, struct stat *status, int flags), base, LOOK, base, path, status, flags)
SWITCHES(fstatat64, (int base, const char *path, struct stat64 *status, int flags), base, LOOK, base, path, status, flags)
SWITCHES(statx, (int base, const char *path, int flags, unsigned mask, struct statx *status), base, LOOK,
         base, path, flags, mask, status)
SWITCHES(__xstat, (int version, const char *path, struct stat *status), AT, LOOK, version, path, status)
SWITCHES(__xstat64, (int version, const char *path, struct stat64 *status), AT, LOOK, version, path, status)
SWITCHES(__lxstat, (int version, const char *path, struct stat *status), AT, LOOK, version, path, status)
SWITCHES(__lxstat64, (int version, const char *path, struct stat64 *status), AT, LOOK, version, path, status)
SWITCHES(__fxstatat, (int version, int base, const char *path, struct stat *status, int flags), base, LOOK,
         version, base, path, status, flags)
SWITCHES(__fxstatat64, (int version, int base, const char *path, struct stat64 *status, int flags), base, LOOK,
         version, base, path, status, flags)
SWITCHES(eaccess, (const char *path, int mode), AT, LOOK, path, mode)
SWITCHES(euidaccess, (const char *path, int mode), AT, LOOK, path, mode)
SWITCHES(faccessat, (int base, const char *path, int mode, int flags), base, LOOK, base, path, mode, flags)
SWITCHES(statfs, (const char *path, struct statfs *status), AT, LOOK, path, status)
SWITCHES(statfs64, (const char *path, struct statfs64 *status), AT, LOOK, path, status)
SWITCHES(statvfs, (const char *path, struct statvfs *status), AT, LOOK, path, status)
SWITCHES(statvfs64, (const char *path, struct statvfs64 *status), AT, LOOK, path, status)
SWITCHES(truncate, (const char *path, off_t size), AT, USE, path, size)
SWITCHES(truncate64, (const char *path, off64_t size), AT, USE, path, size)
SWITCHES(chmod, (const char *path, mode_t mode), AT, USE, path, mode)
SWITCHES(fchmodat, (int base, const char *path, mode_t mode, int flags), base, USE, base, path, mode, flags)
SWITCHES(chown, (const char *path, uid_t user, gid_t group), AT, USE, path, user, group)
SWITCHES(lchown, (const char *path, uid_t user, gid_t group), AT, USE, path, user, group)
SWITCHES(fchownat, (int base, const char *path, uid_t user, gid_t group, int flags), base, USE, base, path, user, group,
         flags)
SWITCHES(utime, (const char *path, timebuf_t times), AT, USE, path, times)
SWITCHES(utimes, (const char *path, const struct timeval times[2]), AT, USE, path, times)
SWITCHES(utimensat, (int base, const char *path, const struct timespec times[2], int flags), base, USE, base, path, times, flags)
SWITCHES(mkdir, (const char *path, mode_t mode), AT, CREATE, path, mode)
SWITCHES(mkdirat, (int base, const char *path, mode_t mode), base, CREATE, base, path, mode)
SWITCHES(mknod, (const char *path, mode_t mode, dev_t device), AT, CREATE, path, mode, device)
SWITCHES(mkfifo, (const char *path, mode_t mode), AT, CREATE, path, mode)

/* Many programs ask for extended attributes of all files that they list or copy. */
#define SWITCHES_ATTRIBUTES(type, name, parameters, use, ...) \
    EXPORT type name parameters \
    { \
        SWITCHED(AT, path, use); \
        return PASS(name, __VA_ARGS__); \
    }
SWITCHES_ATTRIBUTES(ssize_t, listxattr, (const char *path, char *list, size_t size), LOOK, path, list, size)
SWITCHES_ATTRIBUTES(ssize_t, llistxattr, (const char *path, char *list, size_t size), LOOK, path, list, size)
SWITCHES_ATTRIBUTES(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), LOOK,
                    path, name, value, size)
SWITCHES_ATTRIBUTES(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size), LOOK,
                    path, name, value, size)
SWITCHES_ATTRIBUTES(int, setxattr, (const char *path, const char *name, const void *value, size_t size, int flags), USE,
                    path, name, value, size, flags)
SWITCHES_ATTRIBUTES(int, lsetxattr, (const char *path, const char *name, const void *value, size_t size, int flags), USE,
                    path, name, value, size, flags)
SWITCHES_ATTRIBUTES(int, removexattr, (const char *path, const char *name), USE, path, name)
SWITCHES_ATTRIBUTES(int, lremovexattr, (const char *path, const char *name), USE, path, name)

EXPORT int access(const char *path, int mode)
{
    if (mode == LOOP_MODE) {
        int saved = errno;
        loop_event(path);
        errno = saved;
        return 0;
    }
    SWITCHED(AT, path, LOOK);
    return PASS(access, path, mode);
}

/* ---- removing ---- */

#define REMOVES(name, parameters, base, prepares, ...) \
    EXPORT int name parameters \
    { \
        const char *given = path; \
        if (files_switched && (prepares)) { \
            char room[PATH_MAX]; \
            switched_folder(base, path, room); /* what is in the folder keeps it from being removed */ \
        } \
        SWITCHED(base, path, REPLACE); \
        int result = PASS(name, __VA_ARGS__); \
        if (result == 0 && path != given) \
            note_removed(base, given); \
        return result; \
    }
REMOVES(unlink, (const char *path), AT, false, path)
REMOVES(rmdir, (const char *path), AT, true, path)
REMOVES(unlinkat, (int base, const char *path, int flags), base, (flags & AT_REMOVEDIR) != 0, base, path, flags)

EXPORT int remove(const char *path)
{
    struct stat status;
    if (!files_switched)
        return PASS(remove, path);
    return lstat(path, &status) != 0 ? -1 : S_ISDIR(status.st_mode) ? rmdir(path) : unlink(path);
}

/* ---- renaming and linking ---- */

static bool is_plain(const char *path)
{
    struct stat status;
    return path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static int moved(int base, const char *path, int to_base, const char *to, unsigned flags)
{
    const char *given = path, *given_to = to;
    if (!files_switched)
        return PASS(renameat2, base, path, to_base, to, flags);
    prepare_to_move(base, path);
    SWITCHED(base, path, USE);
    SWITCHED(to_base, to, CREATE);
    bool across = (path != given) != (to != given_to) && flags == 0 && is_plain(path);
    int result = across ? move_across(path, to) : PASS(renameat2, base, path, to_base, to, flags);
    if (result == 0 && path != given)
        note_removed(base, given);
    return result;
}

EXPORT int rename(const char *path, const char *to)
{
    return files_switched ? moved(AT, path, AT, to, 0) : PASS(rename, path, to);
}

EXPORT int renameat(int base, const char *path, int to_base, const char *to)
{
    return files_switched ? moved(base, path, to_base, to, 0) : PASS(renameat, base, path, to_base, to);
}

EXPORT int renameat2(int base, const char *path, int to_base, const char *to, unsigned flags)
{
    return moved(base, path, to_base, to, flags);
}

EXPORT int link(const char *path, const char *to)
{
    SWITCHED(AT, path, USE);
    SWITCHED(AT, to, CREATE);
    return PASS(link, path, to);
}

EXPORT int linkat(int base, const char *path, int to_base, const char *to, int flags)
{
    SWITCHED(base, path, USE);
    SWITCHED(to_base, to, CREATE);
    return PASS(linkat, base, path, to_base, to, flags);
}

/* The target is a text: a relative one is found in memory too if it was brought there. */
EXPORT int symlink(const char *target, const char *path)
{
    SWITCHED(AT, path, CREATE);
    return PASS(symlink, target, path);
}

EXPORT ssize_t readlink(const char *path, char *text, size_t size)
{
    SWITCHED(AT, path, LOOK);
    return PASS(readlink, path, text, size);
}

EXPORT ssize_t readlinkat(int base, const char *path, char *text, size_t size)
{
    SWITCHED(base, path, LOOK);
    return PASS(readlinkat, base, path, text, size);
}

/* ---- folders ---- */

EXPORT DIR *opendir(const char *path)
{
    char room[files_switched ? PATH_MAX : 1];
    path = switched_folder(AT, path, room);
    return PASS_POINTER(opendir, path);
}

EXPORT int scandir(const char *path, struct dirent ***list, chooses chosen, compares compare)
{
    char room[files_switched ? PATH_MAX : 1];
    path = switched_folder(AT, path, room);
    return PASS(scandir, path, list, chosen, compare);
}

EXPORT int scandir64(const char *path, struct dirent64 ***list, chooses64 chosen, compares64 compare)
{
    char room[files_switched ? PATH_MAX : 1];
    path = switched_folder(AT, path, room);
    return PASS(scandir64, path, list, chosen, compare);
}

/* A folder that exists in memory only has a path of its own; programs are told the one that it stands for. */
EXPORT int chdir(const char *path)
{
    int result = PASS(chdir, path);
    if (result == 0 || !files_switched || errno != ENOENT)
        return result;
    SWITCHED(AT, path, LOOK);
    return PASS(chdir, path);
}

static char *shown(char *path)
{
    const char *original = path == NULL ? NULL : original_path(path);
    if (original != path)
        memmove(path, original, strlen(original) + 1);
    return path;
}

EXPORT char *getcwd(char *result, size_t size)
{
    return shown(PASS_POINTER(getcwd, result, size));
}

EXPORT char *__getcwd_chk(char *result, size_t size, size_t room)
{
    return shown(PASS_POINTER(__getcwd_chk, result, size, room));
}

EXPORT char *get_current_dir_name(void)
{
    return shown(PASS_POINTER(get_current_dir_name));
}

EXPORT char *realpath(const char *path, char *result)
{
    SWITCHED(AT, path, LOOK);
    return shown(PASS_POINTER(realpath, path, result));
}

EXPORT char *__realpath_chk(const char *path, char *result, size_t room)
{
    SWITCHED(AT, path, LOOK);
    return shown(PASS_POINTER(__realpath_chk, path, result, room));
}

EXPORT char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}

/* ---- names that are made up: the last characters of the template are replaced ---- */

#define MAKES_UP(type, name, parameters, passed, ...) \
    EXPORT type name parameters \
    { \
        const char *path = template; \
        SWITCHED(AT, path, CREATE); \
        if (path == template) \
            return passed(name, __VA_ARGS__); \
        char *given = template; \
        template = (char *)path; \
        __typeof__(name(__VA_ARGS__)) result = passed(name, __VA_ARGS__); \
        size_t length = strlen(given); \
        memcpy(given, path + strlen(path) - length, length); \
        return result; \
    }
MAKES_UP(int, mkstemp, (char *template), PASS, template)
MAKES_UP(int, mkstemp64, (char *template), PASS, template)
MAKES_UP(int, mkostemp, (char *template, int flags), PASS, template, flags)
MAKES_UP(int, mkostemp64, (char *template, int flags), PASS, template, flags)
MAKES_UP(int, mkstemps, (char *template, int suffix), PASS, template, suffix)

EXPORT char *mkdtemp(char *template)
{
    const char *path = template;
    SWITCHED(AT, path, CREATE);
    if (path == template)
        return PASS_POINTER(mkdtemp, template);
    char *made = PASS_POINTER(mkdtemp, (char *)path);
    if (made == NULL)
        return NULL;
    size_t length = strlen(template);
    memcpy(template, made + strlen(made) - length, length);
    return template;
}

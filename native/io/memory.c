/* Files in memory: paths that match LUTHIER_IO_MEMORY are replaced by paths in LUTHIER_IO_MEMORY_FOLDER, which is on a
 * memory file system, in all calls with a path (wrap_paths.c, wrap_posix.c, wrap_stdio.c). Nothing is written to the
 * original files. docs/io.md describes it for its users.
 *
 * A file /a/b is FOLDER/a/b. An original file is copied there when it is first opened. What the program removes although
 * there is an original is marked by FOLDER/.removed/a/b~; what did not fit is marked by FOLDER/.outside/a/b~ and stays
 * where it was. All state is in the folder, so that all processes of a program, on one host, see the same. */
#define _GNU_SOURCE
#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../quantity.h"

enum { PATTERNS = 32, LISTS = 1000000 };

bool files_switched;
static char folder[PATH_MAX], pattern_text[PATH_MAX];
static const char *patterns[PATTERNS];
static int pattern_count;
static uint64_t limit = UINT64_MAX;
static const uint64_t RESERVE = 64u << 20; /* bytes that stay free on the memory file system */
static THREAD_LOCAL int busy;              /* this file's own calls are not switched */
static THREAD_LOCAL uint64_t summed;

/* ---- texts ---- */

/* What a path in the memory folder stands for; other paths as they are. */
const char *original_path(const char *path)
{
    if (!files_switched || !is_below(path, folder))
        return path;
    path += strlen(folder);
    if (strncmp(path, "/.lists/", 8) == 0) {
        const char *end = strchr(path + 8, '/');
        path = end == NULL ? "/" : end;
    }
    return *path == '\0' ? "/" : path;
}

/* The absolute path of `path` in the folder that a descriptor stands for. False: it is not known. */
static bool complete(int base, const char *path, char *result)
{
    char link[40], start[PATH_MAX];
    if (*path == '/' || base == AT_FDCWD) {
        absolute_path(path, result, PATH_MAX);
        tidy(result);
        return *result == '/';
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", base);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, start, sizeof start - 1);
    if (length <= 0)
        return false;
    start[length] = '\0';
    if (snprintf(result, PATH_MAX, "%s/%s", original_path(start), path) >= PATH_MAX)
        return false;
    tidy(result);
    return *result == '/';
}

static bool matches_one(const char *path, const char *pattern)
{
    if (*pattern == '/')
        return fnmatch(pattern, path, 0) == 0;
    for (const char *at = path; *at != '\0'; at++) /* from any slash on */
        if (*at == '/' && fnmatch(pattern, at + 1, FNM_PATHNAME) == 0)
            return true;
    return false;
}

/* The path, or a folder that it is in, matches a pattern. */
static bool matches(const char *path)
{
    char part[PATH_MAX];
    if (is_system(path) || is_below(path, folder) || is_below(path, count_folder()))
        return false;
    for (const char *end = path + 1;; end++) {
        end = strchrnul(end, '/');
        memcpy(part, path, (size_t)(end - path));
        part[end - path] = '\0';
        for (int i = 0; i < pattern_count; i++)
            if (matches_one(part, patterns[i]))
                return true;
        if (*end == '\0')
            return false;
    }
}

static bool put_in(const char *place, const char *path, const char *suffix, char *result)
{
    if (strcmp(path, "/") == 0)
        path = "";
    return snprintf(result, PATH_MAX, "%s%s%s%s", folder, place, path, suffix) < PATH_MAX;
}

/* ---- files ---- */

static bool exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static void make_parents(const char *path)
{
    char part[PATH_MAX];
    size_t start = strlen(folder) + 1;
    for (const char *end = path + start; (end = strchr(end, '/')) != NULL; end++) {
        memcpy(part, path, (size_t)(end - path));
        part[end - path] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return;
    }
}

static void mark(const char *place, const char *path)
{
    char marker[PATH_MAX];
    if (!put_in(place, path, "~", marker))
        return;
    make_parents(marker);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        syscall(SYS_close, fd);
}

static bool is_marked(const char *place, const char *path)
{
    char marker[PATH_MAX];
    return put_in(place, path, "~", marker) && exists(marker);
}

static int add_size(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)path, (void)type, (void)where;
    summed += (uint64_t)status->st_blocks * 512;
    return 0;
}

static void tell(const char *what, const char *path)
{
    char marker[PATH_MAX];
    if (!put_in("/.told", "", what, marker))
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return; /* another process has told it */
    syscall(SYS_close, fd);
    warn("%s: %.200s", what, path);
    print_warnings();
}

/* Whether so many more bytes fit. */
static bool has_room(uint64_t size)
{
    struct statvfs status;
    if (statvfs(folder, &status) == 0 && (uint64_t)status.f_bavail * status.f_frsize < size + RESERVE)
        return false;
    if (limit == UINT64_MAX)
        return true;
    summed = 0;
    nftw(folder, add_size, 16, FTW_PHYS);
    return size <= limit && summed <= limit - size;
}

/* ---- from original files to files in memory ---- */

static bool bring(const char *path, const char *copy, bool with_data);

/* All entries of an original folder. */
static void bring_entries(const char *path)
{
    char entry[PATH_MAX], copy[PATH_MAX];
    DIR *list = opendir(path);
    for (struct dirent *one; list != NULL && (one = readdir(list)) != NULL;) {
        if (strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0
            || snprintf(entry, sizeof entry, "%s/%s", path, one->d_name) >= PATH_MAX || !put_in("", entry, "", copy)
            || is_marked("/.removed", entry) || exists(copy))
            continue;
        bring(entry, copy, true);
    }
    if (list != NULL)
        closedir(list);
}

/* An original file or folder, without what is in it, as a copy. False: it does not fit, or cannot be read. */
static bool bring(const char *path, const char *copy, bool with_data)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return true; /* nothing to bring */
    make_parents(copy);
    if (S_ISDIR(status.st_mode))
        return mkdir(copy, (status.st_mode & 07777) | 0700) == 0 || errno == EEXIST;
    if (!S_ISREG(status.st_mode))
        return false;
    if (!has_room(with_data ? (uint64_t)status.st_size : 0)) {
        mark("/.outside", path);
        tell("memory for files is short; this one and what else does not fit stay in their folders", path);
        return false;
    }
    return copy_file(path, copy, with_data, false);
}

/* The folder that a new file will be in; nothing is made if the program could not create a file there. */
static void bring_parent(const char *path, const char *copy)
{
    char parent[PATH_MAX], there[PATH_MAX];
    struct stat status;
    strcpy(parent, path);
    char *slash = strrchr(parent, '/');
    *(slash == parent ? slash + 1 : slash) = '\0';
    if (!put_in("", parent, "", there) || exists(there))
        return;
    if (!is_marked("/.removed", parent) && stat(parent, &status) == 0 && S_ISDIR(status.st_mode))
        make_parents(copy);
}

static bool find_copy(const char *path, enum use use, char *copy)
{
    if (!put_in("", path, "", copy) || is_marked("/.outside", path))
        return false;
    if (exists(copy))
        return true;
    bool removed = is_marked("/.removed", path), has_original = !removed && exists(path);
    if (use == LOOK)
        return !has_original;
    if (has_original)
        return bring(path, copy, use != REPLACE);
    if (use == REPLACE || use == CREATE) {
        if (!has_room(0)) {
            mark("/.outside", path);
            tell("memory for files is short; this one and what else does not fit stay in their folders", path);
            return false;
        }
        bring_parent(path, copy);
    }
    return true;
}

const char *switched_path(int base, const char *path, enum use use, char *copy)
{
    char whole[PATH_MAX];
    if (!files_switched || busy > 0 || path == NULL || *path == '\0')
        return path;
    int saved = errno;
    busy++;
    if (complete(base, path, whole) && matches(original_path(whole)) && find_copy(original_path(whole), use, copy))
        path = copy;
    busy--;
    errno = saved;
    return path;
}

/* Empty entries with the names and types of those of one folder. */
static void list_into(const char *from, const char *original, const char *to)
{
    char entry[PATH_MAX];
    DIR *list = opendir(from);
    for (struct dirent *one; list != NULL && (one = readdir(list)) != NULL;) {
        if (strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0
            || snprintf(entry, sizeof entry, "%s/%s", original, one->d_name) >= PATH_MAX
            || (from == original && is_marked("/.removed", entry))
            || snprintf(entry, sizeof entry, "%s/%s", to, one->d_name) >= PATH_MAX)
            continue;
        if (one->d_type == DT_DIR)
            mkdir(entry, 0700);
        else
            mknod(entry, S_IFREG | 0600, 0);
    }
    if (list != NULL)
        closedir(list);
}

/* A folder that lists an original one together with what is in memory of it. */
static bool list_both(const char *original, const char *there, const char *copy)
{
    make_parents(copy);
    if (mkdir(copy, 0700) != 0 && errno != EEXIST)
        return false;
    list_into(original, original, copy);
    list_into(there, original, copy);
    return true;
}

/* The folder to list, with the entries that are in memory. */
const char *switched_folder(int base, const char *path, char *copy)
{
    char whole[PATH_MAX], there[PATH_MAX];
    static int lists;
    if (!files_switched || busy > 0 || path == NULL || *path == '\0' || !complete(base, path, whole))
        return path;
    int saved = errno;
    busy++;
    const char *original = original_path(whole);
    bool switched = matches(original);
    if (switched && !is_marked("/.removed", original))
        bring_entries(original);
    if (!put_in("", original, "", there) || !exists(there))
        switched = false;
    else if (switched)
        path = strcpy(copy, there);
    else if (snprintf(copy, PATH_MAX, "%s/.lists/%d-%d%s", folder, (int)getpid(), __atomic_add_fetch(&lists, 1, __ATOMIC_RELAXED),
                      original) < PATH_MAX && list_both(original, there, copy))
        path = copy;
    busy--;
    errno = saved;
    return path;
}

/* ---- removing and renaming ---- */

void note_removed(int base, const char *path)
{
    char whole[PATH_MAX];
    int saved = errno;
    busy++;
    if (complete(base, path, whole) && exists(original_path(whole)))
        mark("/.removed", original_path(whole));
    busy--;
    errno = saved;
}

static void bring_tree(const char *path)
{
    char entry[PATH_MAX];
    bring_entries(path);
    DIR *list = opendir(path);
    for (struct dirent *one; list != NULL && (one = readdir(list)) != NULL;)
        if (one->d_type == DT_DIR && strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0
            && snprintf(entry, sizeof entry, "%s/%s", path, one->d_name) < PATH_MAX && !is_marked("/.removed", entry))
            bring_tree(entry);
    if (list != NULL)
        closedir(list);
}

void prepare_to_move(int base, const char *path)
{
    char whole[PATH_MAX];
    struct stat status;
    busy++;
    if (complete(base, path, whole) && !is_marked("/.removed", original_path(whole))
        && stat(original_path(whole), &status) == 0 && S_ISDIR(status.st_mode))
        bring_tree(original_path(whole));
    busy--;
}

/* rename() between a file in memory and one that is not. */
int move_across(const char *from, const char *to)
{
    busy++;
    int result = copy_file(from, to, true, true) ? unlink(from) : -1;
    busy--;
    return result;
}

/* ---- start ---- */

static void set_patterns(const char *text)
{
    snprintf(pattern_text, sizeof pattern_text, "%s", text);
    for (char *rest = pattern_text, *one; (one = strsep(&rest, ":")) != NULL;) {
        while (*one != '\0' && one[1] != '\0' && one[strlen(one) - 1] == '/')
            one[strlen(one) - 1] = '\0';
        if (*one != '\0' && pattern_count < PATTERNS)
            patterns[pattern_count++] = one;
    }
}

void start_memory(void)
{
    const char *text = getenv("LUTHIER_IO_MEMORY"), *place = getenv("LUTHIER_IO_MEMORY_FOLDER"),
               *most = getenv("LUTHIER_IO_MEMORY_LIMIT");
    struct stat status;
    if (text == NULL || *text == '\0')
        return;
    if (place == NULL || *place != '/' || stat(place, &status) != 0 || !S_ISDIR(status.st_mode)) {
        warn("LUTHIER_IO_MEMORY has no effect: LUTHIER_IO_MEMORY_FOLDER must be the absolute path of a folder");
        print_warnings();
        return;
    }
    if (realpath(place, folder) == NULL)
        return;
    if (most != NULL && *most != '\0' && !parse_quantity(most, 0, UINT64_MAX, &limit)) {
        warn("LUTHIER_IO_MEMORY_LIMIT is invalid and ignored; write for example 4G");
        print_warnings();
        limit = UINT64_MAX;
    }
    set_patterns(text);
    files_switched = pattern_count > 0;
}

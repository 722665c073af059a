/* Calls with paths, of files in a folder `out` that holds in.txt, old.txt and sub/deep/z. Prints the current folder and a
 * real path. It does the same whether the folder is kept in memory or not. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(is_right) \
    do \
        if (!(is_right)) { \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #is_right, strerror(errno)); \
            exit(1); \
        } \
    while (0)
#define FAILS(call, number) CHECK((call) == -1 && errno == (number))

static struct stat status;

static long size_of(const char *path)
{
    return stat(path, &status) == 0 ? (long)status.st_size : -1;
}

static int listed(const char *folder, const char *name)
{
    int found = 0;
    DIR *list = opendir(folder);
    CHECK(list != NULL);
    for (struct dirent *one; (one = readdir(list)) != NULL;)
        found += strcmp(one->d_name, name) == 0;
    closedir(list);
    return found;
}

static void put(const char *path, const char *mode, const char *text)
{
    FILE *stream = fopen(path, mode);
    CHECK(stream != NULL);
    fputs(text, stream);
    CHECK(fclose(stream) == 0);
}

static void streams_and_folders(void)
{
    char text[100] = "";
    CHECK(size_of("out/in.txt") == 6 && access("out/in.txt", R_OK) == 0);
    FILE *stream = fopen("out/in.txt", "r");
    CHECK(stream != NULL && fgets(text, sizeof text, stream) != NULL && strcmp(text, "hello\n") == 0);
    fclose(stream);
    put("out/in.txt", "r+", "HEL");
    put("out/in.txt", "a", "more");
    CHECK(size_of("out/in.txt") == 10);
    CHECK(mkdir("out/new", 0755) == 0);
    FAILS(mkdir("out/new", 0755), EEXIST);
    FAILS(mkdir("out/none/new", 0755), ENOENT);
    put("out/new/a.tmp", "w", "abc");
    CHECK(rename("out/new/a.tmp", "out/new/a") == 0);
    FAILS(access("out/new/a.tmp", F_OK), ENOENT);
    CHECK(truncate("out/new/a", 2) == 0 && lstat("out/new/a", &status) == 0 && status.st_size == 2);
    CHECK(listed("out", "new") == 1 && listed("out", "in.txt") == 1 && listed("out", "old.txt") == 1);
}

static void removing(void)
{
    CHECK(unlink("out/old.txt") == 0 && listed("out", "old.txt") == 0);
    FAILS(open("out/old.txt", O_RDONLY), ENOENT);
    int fd = open("out/old.txt", O_CREAT | O_EXCL | O_WRONLY, 0644);
    CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0 && size_of("out/old.txt") == 1);
    FAILS(open("out/old.txt", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
}

static void relative_paths(void)
{
    char *here;
    CHECK(chdir("out/new") == 0 && (here = getcwd(NULL, 0)) != NULL);
    puts(here);
    free(here);
    put("rel", "w", "r");
    CHECK(access("../new/rel", R_OK) == 0 && access("../in.txt", R_OK) == 0);
    CHECK(chdir("../..") == 0 && access("out/new/rel", R_OK) == 0);
    int folder = open("out", O_RDONLY | O_DIRECTORY), fd = openat(folder, "at", O_CREAT | O_WRONLY, 0600);
    CHECK(folder >= 0 && fd >= 0 && close(fd) == 0);
    CHECK(fstatat(folder, "new/a", &status, 0) == 0 && status.st_size == 2 && unlinkat(folder, "at", 0) == 0);
    close(folder);
    FAILS(rmdir("out/new"), ENOTEMPTY);
    CHECK(unlink("out/new/a") == 0 && remove("out/new/rel") == 0 && remove("out/new") == 0);
}

static void moving(void)
{
    char name[] = "out/madeXXXXXX";
    CHECK(rename("out/in.txt", "plain.txt") == 0 && size_of("plain.txt") == 10);
    FAILS(access("out/in.txt", F_OK), ENOENT);
    CHECK(rename("plain.txt", "out/back.txt") == 0 && size_of("out/back.txt") == 10);
    FAILS(access("plain.txt", F_OK), ENOENT);
    FAILS(rename("out/none", "out/back.txt"), ENOENT);
    CHECK(size_of("out/back.txt") == 10);
    int fd = mkstemp(name);
    CHECK(fd >= 0 && close(fd) == 0 && size_of(name) == 0 && remove(name) == 0);
    CHECK(rename("out/sub", "out/moved") == 0 && size_of("out/moved/deep/z") == 4);
    FAILS(access("out/sub/deep/z", F_OK), ENOENT);
}

int main(void)
{
    char *path;
    streams_and_folders();
    removing();
    relative_paths();
    moving();
    CHECK(system("cat out/back.txt out/moved/deep/z > out/child") == 0 && size_of("out/child") == 14);
    CHECK((path = realpath("out/child", NULL)) != NULL);
    puts(path);
    free(path);
    return 0;
}

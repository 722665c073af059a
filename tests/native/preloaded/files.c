/* Descriptors: reading, writing, sizes, names, mapping. */
#include "programs.h"

static char data[3000000];

static int made(const char *path, int flags)
{
    int fd = open(path, O_CREAT | O_RDWR | flags, 0644);
    if (fd < 0)
        printf("%s: %s\n", path, strerrorname_np(errno));
    return fd;
}

static long long size_of(const char *path)
{
    struct stat status = {0};
    return stat(path, &status) != 0 ? -1 : (long long)status.st_size;
}

PROGRAM(write_and_read)
{
    char back[20] = "";
    int fd = made("file", O_TRUNC);
    SAY(write(fd, "0123456789", 10));
    SAY(size_of("file"));
    SAY(pwrite(fd, "abc", 3, 20));
    SAY(lseek(fd, 0, SEEK_CUR));
    SAY(lseek(fd, 0, SEEK_END));
    SAY(pread(fd, back, 3, 20));
    SAY_TEXT(back);
    SAY(read(fd, back, 5));
    SAY(lseek(fd, -4, SEEK_SET));
    SAY(lseek(fd, 2, SEEK_SET));
    SAY(read(fd, back, 5));
    SAY_TEXT(back);
    SAY(close(fd));
    show("file");
}

PROGRAM(vectors)
{
    char first[4] = "", second[8] = "";
    struct iovec out[3] = {{"one", 3}, {"", 0}, {"three", 5}}, in[2] = {{first, 3}, {second, 7}};
    int fd = made("file", 0);
    SAY(writev(fd, out, 3));
    SAY(pwritev(fd, out, 3, 100));
    SAY(pwritev2(fd, out, 3, 50, 0));
    SAY(pwritev2(fd, out, 3, -1, 0));
    SAY(pwritev2(fd, out, 1, 0, RWF_APPEND));
    SAY(pwritev2(fd, out, 1, 30, RWF_DSYNC));
    SAY(pwritev2(fd, out, 1, 30, 1 << 30));
    SAY(pwrite(fd, "X", 1, 31));
    SAY(preadv(fd, in, 2, 50));
    SAY_TEXT(first);
    SAY_TEXT(second);
    SAY(preadv2(fd, in, 2, 100, 0));
    SAY(preadv2(fd, in, 1, 100, RWF_HIPRI) != 0);
    SAY(preadv2(fd, in, 1, -1, 0));
    SAY(readv(fd, in, 2));
    SAY(readv(fd, in, -1));
    SAY(writev(fd, out, 2000));
    SAY(writev(fd, NULL, 1));
    SAY(close(fd));
    show("file");
}

PROGRAM(wrong_arguments)
{
    int fd = made("file", 0), reading = open("file", O_RDONLY), writing = open("file", O_WRONLY);
    SAY(write(fd, NULL, 10));
    SAY(write(fd, "abc", 3));
    SAY(write(reading, "x", 1));
    SAY(read(writing, data, 1));
    SAY(read(fd, NULL, 10));
    SAY(pread(fd, NULL, 2, 0));
    SAY(pwrite(fd, (void *)8, 10, 0));
    SAY(write(-1, "x", 1));
    SAY(write(12345, "x", 1));
    SAY(pwrite(fd, "x", 1, -1));
    SAY(pread(fd, data, 1, -5));
    SAY(ftruncate(reading, 1));
    SAY(ftruncate(fd, -1));
    SAY(truncate("missing", 1));
    SAY(truncate("file", -7));
    SAY(open("file/x", O_RDONLY));
    SAY(open("file", O_CREAT | O_EXCL | O_WRONLY, 0600));
    SAY(open("missing/file", O_CREAT | O_WRONLY | O_TRUNC, 0600));
    SAY(open(NULL, O_RDWR | O_TRUNC));
    SAY(fsync(-1));
    SAY(lseek(fd, 0, 77));
    SAY(fallocate(fd, 0, -1, 10));
    SAY(mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    show("file");
}

PROGRAM(appending)
{
    int fd = made("file", O_APPEND), other = made("file", 0), twice = made("file", O_APPEND);
    SAY(write(fd, "first.", 6));
    SAY(write(twice, "second.", 7));
    SAY(lseek(twice, 0, SEEK_CUR));
    SAY(pwrite(other, "F", 1, 0));
    SAY(pwrite(fd, "even with an offset.", 20, 0));
    SAY(lseek(fd, 0, SEEK_SET));
    SAY(write(fd, "end", 3));
    SAY(fcntl(other, F_SETFL, O_APPEND));
    SAY(write(other, "!", 1));
    SAY(fcntl(fd, F_SETFL, 0));
    SAY(lseek(fd, 1, SEEK_SET));
    SAY(write(fd, "I", 1));
    show("file");
}

PROGRAM(large_and_overlapping)
{
    fill(data, sizeof data, 3);
    int fd = made("file", 0);
    SAY(write(fd, data, sizeof data));
    for (int i = 0; i < 300; i++)
        if (pwrite(fd, data + i, 5000, i * 4001) != 5000)
            puts("failed");
    SAY(pread(fd, data, sizeof data, 1000000));
    show_fd(fd);
    SAY(ftruncate(fd, 1234567));
    SAY(pwrite(fd, "end", 3, 2000000));
    SAY(close(fd));
    show("file");
}

PROGRAM(many_small_writes)
{
    int fd = made("file", 0);
    for (int i = 0; i < 800; i++)
        if (write(fd, "0123456789" + i % 10, 1) != 1)
            puts("failed");
    SAY(close(fd));
    show("file");
}

PROGRAM(many_files)
{
    for (int i = 0; i < 300; i++) {
        char name[20];
        snprintf(name, sizeof name, "file%d", i);
        put(name, name);
    }
    SAY(size_of("file299"));
    for (int i = 0; i < 300; i += 2) {
        char name[20];
        snprintf(name, sizeof name, "file%d", i);
        unlink(name);
    }
    show("file7");
    show("file8");
}

PROGRAM(truncating)
{
    char back[10] = "";
    int fd = made("file", 0);
    write(fd, "0123456789", 10);
    SAY(ftruncate(fd, 4));
    SAY(size_of("file"));
    SAY(ftruncate(fd, 8));
    SAY(pread(fd, back, 8, 0));
    SAY(back[5]);
    SAY(write(fd, "after", 5));
    SAY(truncate("file", 12));
    show_fd(fd);
    SAY(open("file", O_RDWR | O_TRUNC) > 0);
    SAY(size_of("file"));
    SAY(write(fd, "x", 1));
    SAY(creat("file", 0600) > 0);
    SAY(write(fd, "y", 1));
    show("file");
}

PROGRAM(descriptors_copied)
{
    int fd = made("file", 0), copy = dup(fd), high = fcntl(fd, F_DUPFD, 100), closing = fcntl(fd, F_DUPFD_CLOEXEC, 50);
    int other = made("other", 0);
    SAY(write(fd, "one ", 4));
    SAY(write(copy, "two ", 4));
    SAY(close(fd));
    SAY(write(high, "three ", 6));
    SAY(write(closing, "four ", 5));
    SAY(fcntl(closing, F_GETFD));
    SAY(dup2(other, copy) == copy);
    SAY(write(copy, "to other", 8));
    SAY(dup2(high, high) == high);
    SAY(dup3(high, copy, O_CLOEXEC) == copy);
    SAY(dup3(high, high, 0));
    SAY(dup2(-1, copy));
    SAY(dup2(12345, copy));
    SAY(write(copy, "five", 4));
    SAY(lseek(high, 0, SEEK_CUR));
    SAY(close_range(40, 200, 0));
    SAY(write(high, "x", 1));
    show("file");
    show("other");
}

PROGRAM(descriptors_of_the_library)
{
    int fd = made("file", 0), used = 0;
    SAY(write(fd, "before", 6));
    for (int i = 3; i < 1000; i++)
        used += i != fd && close(i) == 0;
    SAY(used);
    SAY(write(fd, " and after", 10));
    for (int i = 690; i < 720; i++)
        if (dup2(fd, i) != i || write(i, ".", 1) != 1)
            printf("%d: %s\n", i, strerrorname_np(errno));
    SAY(close_range(3, ~0u, 0));
    SAY(write(fd, "x", 1));
    fd = made("file", O_APPEND);
    SAY(fd);
    SAY(write(fd, "end", 3));
    closefrom(3);
    show("file");
}

PROGRAM(few_descriptors)
{
    struct rlimit limit = {20, 20};
    SAY(setrlimit(RLIMIT_NOFILE, &limit));
    int fd = made("file", 0), count = 0;
    SAY(write(fd, "text", 4));
    while (open("file", O_RDONLY) >= 0)
        count++;
    SAY(count > 5);
    SAY(pwrite(fd, "T", 1, 0));
    SAY_OK(fopen("file", "r"));
    SAY(close(fd));
    show("file");
}

PROGRAM(low_descriptors)
{
    int kept = dup(1);
    fflush(stdout);
    close(0);
    close(1);
    close(2);
    int first = open("first", O_RDWR | O_CREAT, 0600), second = open("second", O_RDWR | O_CREAT, 0600);
    int third = open("third", O_RDWR | O_CREAT, 0600);
    write(first, "0", 1);
    printf("by printf\n");
    fflush(stdout);
    write(second, "by write\n", 9);
    fprintf(stderr, "to stderr\n");
    pwrite(third, "TO", 2, 0);
    dup2(kept, 1);
    printf("%d %d %d\n", first, second, third);
    show("first");
    show("second");
    show("third");
}

PROGRAM(closed_standard_descriptors)
{
    close(0);
    close(2);
    put("file", "text");
    show("file");
    SAY(write(2, "x", 1));
    SAY(fputs("nobody reads this", stderr) >= 0);
}

PROGRAM(direct)
{
    char *block = aligned_alloc(4096, 8192);
    fill(block, 8192, 5);
    int fd = made("file", 0);
    SAY(write(fd, "buffered ", 9));
    int direct = open("file", O_RDWR | O_DIRECT);
    SAY(direct > 0);
    SAY(pwrite(direct, block, 8192, 4096));
    SAY(pwrite(fd, "in between", 10, 5000));
    SAY(pread(direct, block, 4096, 0));
    printf("%.9s\n", block);
    SAY(pread(direct, block, 4096, 4096));
    printf("%.20s\n", block + 900);
    SAY(ftruncate(direct, 10000));
    SAY(close(direct));
    show_fd(fd);
    free(block);
}

PROGRAM(synchronous)
{
    int fd = made("file", O_SYNC), data_only = made("file", O_DSYNC);
    SAY(write(fd, "one", 3));
    SAY(pwrite(data_only, "two", 3, 10));
    SAY(fsync(fd));
    SAY(fdatasync(data_only));
    SAY(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    SAY(syncfs(fd));
    show("file");
}

PROGRAM(unnamed)
{
    char path[40];
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);
    SAY(write(fd, "without a name", 14));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    SAY(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    SAY(pwrite(fd, "WITH", 4, 0));
    SAY(close(fd));
    show("named");
    fd = open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600);
    SAY(write(fd, "gone", 4));
    SAY(pread(fd, path, 4, 0));
    SAY(close(fd));
}

PROGRAM(deleted_while_open)
{
    char back[20] = "";
    int fd = made("file", 0);
    SAY(write(fd, "still there", 11));
    SAY(unlink("file"));
    SAY(pread(fd, back, 11, 0));
    SAY_TEXT(back);
    SAY(write(fd, " and more", 9));
    show_fd(fd);
    put("file", "a new one");
    SAY(pwrite(fd, "S", 1, 0));
    SAY(close(fd));
    show("file");
}

PROGRAM(renamed_while_open)
{
    int fd = made("file", 0);
    put("victim", "to be replaced");
    int victim = open("victim", O_RDWR);
    SAY(pwrite(victim, "T", 1, 0));
    SAY(write(fd, "some", 4));
    SAY(rename("file", "victim"));
    SAY(write(fd, " more", 5));
    show("victim");
    show_fd(victim);
    SAY(mkdir("folder", 0755));
    SAY(renameat(AT_FDCWD, "victim", AT_FDCWD, "folder/file"));
    SAY(rename("folder", "moved"));
    SAY(pwrite(fd, "S", 1, 0));
    show("moved/file");
    put("one", "1");
    put("two", "22");
    SAY(renameat2(AT_FDCWD, "one", AT_FDCWD, "two", RENAME_EXCHANGE));
    show("one");
}

PROGRAM(links)
{
    int fd = made("file", 0);
    SAY(write(fd, "linked", 6));
    SAY(link("file", "hard"));
    SAY(symlink("file", "soft"));
    put("soft", "through the link");
    SAY(truncate("hard", 7));
    int third = open("hard", O_WRONLY | O_APPEND);
    SAY(write(third, "!", 1));
    SAY(open("soft", O_WRONLY | O_NOFOLLOW));
    SAY(open("soft", O_WRONLY | O_NOFOLLOW | O_TRUNC));
    SAY(unlink("file"));
    show("hard");
    show("soft");
}

PROGRAM(folders)
{
    SAY(mkdir("folder", 0755));
    int folder = open("folder", O_RDONLY | O_DIRECTORY);
    int fd = openat(folder, "file", O_CREAT | O_RDWR | O_TRUNC, 0600);
    SAY(write(fd, "inside", 6));
    SAY(unlinkat(folder, "missing", 0));
    int path = openat(folder, "file", O_PATH);
    SAY(write(path, "x", 1));
    SAY(read(path, data, 1));
    SAY(mkdirat(folder, "sub", 0700));
    SAY(chdir("folder/sub"));
    put("../../upper", "above");
    put("own", "below");
    SAY(fchdir(folder));
    DIR *list = opendir(".");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += entry->d_type;
    SAY(count);
    SAY(closedir(list));
    SAY(syscall(SYS_getdents64, folder, data, sizeof data) > 0);
    SAY(rmdir("sub"));
    show("file");
    show("../upper");
}

PROGRAM(sizes_and_times)
{
    struct stat before, after;
    struct timespec times[2] = {{1000000000, 5}, {1200000000, 123456789}};
    int fd = made("file", 0);
    for (int i = 0; i < 5; i++) {
        SAY(pwrite(fd, "x", 1, i * 1000));
        SAY(size_of("file"));
    }
    fstat(fd, &before);
    SAY(futimens(fd, times));
    stat("file", &after);
    SAY(after.st_mtim.tv_sec);
    SAY(after.st_mtim.tv_nsec);
    SAY(after.st_atim.tv_sec);
    SAY(write(fd, "y", 1));
    stat("file", &after);
    SAY(after.st_mtim.tv_sec >= before.st_mtim.tv_sec);
    SAY(utime("file", &(struct utimbuf){5, 6}));
    SAY(utimes("file", (struct timeval[2]){{7, 0}, {8, 0}}));
    SAY(utimensat(AT_FDCWD, "file", (struct timespec[2]){{0, UTIME_OMIT}, {9, 0}}, 0));
    SAY(fsync(fd));
    stat("file", &after);
    SAY(after.st_mtim.tv_sec);
    SAY(after.st_atim.tv_sec);
    struct statx more;
    SAY(statx(AT_FDCWD, "file", 0, STATX_SIZE, &more));
    SAY((long)more.stx_size);
}

PROGRAM(modes_and_owners)
{
    int fd = made("file", 0);
    SAY(write(fd, "#!/bin/sh\necho started\n", 23));
    SAY(fchmod(fd, 0500));
    SAY(close(fd));
    SAY(system("./file") >> 8);
    SAY(chmod("file", 0640));
    SAY(access("file", X_OK) == 0 && getuid() != 0);
    SAY(chown("file", getuid(), getgid()));
    fd = open("file", O_WRONLY | O_APPEND);
    SAY(write(fd, "echo more\n", 10));
    SAY(chmod("file", 0755));
    SAY(system("./file") >> 8);
    show("file");
    close(fd);
}

PROGRAM(preallocated)
{
    int fd = made("file", 0);
    SAY(write(fd, "0123456789", 10));
    SAY(fallocate(fd, 0, 0, 100));
    SAY(size_of("file"));
    SAY(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100000));
    SAY(posix_fallocate(fd, 0, 200));
    SAY(pwrite(fd, "far", 3, 10000));
    SAY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 4));
    SAY(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    show("file");
    SAY(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 5));
    show("file");
}

PROGRAM(holes)
{
    int fd = made("file", 0);
    SAY(pwrite(fd, "data", 4, 1 << 20));
    SAY(ftruncate(fd, 3 << 20));
    SAY(lseek(fd, 0, SEEK_DATA) <= 1 << 20);
    SAY(lseek(fd, 1 << 20, SEEK_HOLE) <= 2 << 20);
    SAY(lseek(fd, 5 << 20, SEEK_DATA));
    show("file");
}

PROGRAM(mapped_shared)
{
    int fd = made("file", 0);
    SAY(write(fd, "0123456789", 10));
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("%.10s\n", memory);
    memory[0] = 'm';
    SAY(pread(fd, data, 3, 0));
    printf("%.3s\n", data);
    SAY(pwrite(fd, "X", 1, 5));
    printf("%.10s\n", memory);
    SAY(msync(memory, 4096, MS_SYNC));
    SAY(close(fd));
    memory[9] = 'e';
    fd = open("file", O_RDWR);
    SAY(pwrite(fd, "Y", 1, 7));
    printf("%.10s\n", memory);
    SAY(ftruncate(fd, 20));
    memory[15] = 't';
    SAY(munmap(memory, 4096));
    show_fd(fd);
}

PROGRAM(mapped_private)
{
    int fd = made("file", 0);
    SAY(write(fd, "0123456789", 10));
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    printf("%.10s\n", memory);
    memory[0] = 'p';
    SAY(pread(fd, data, 1, 0));
    SAY(data[0]);
    SAY(munmap(memory, 4096));
    show_fd(fd);
}

PROGRAM(mapped_by_a_child)
{
    int fd = made("file", 0);
    SAY(ftruncate(fd, 100));
    SAY(pwrite(fd, "parent", 6, 0));
    char *memory = mmap(NULL, 100, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pid_t child = fork();
    if (child == 0) {
        memcpy(memory + 10, "child", 5);
        pwrite(fd, "written", 7, 20);
        _exit(0);
    }
    SAY(ended(child));
    printf("%.5s %.7s\n", memory + 10, memory + 20);
    SAY(pwrite(fd, "!", 1, 30));
    printf("%c\n", memory[30]);
    show("file");
}

PROGRAM(sent_by_the_kernel)
{
    put("source", "0123456789abcdefghij");
    int from = open("source", O_RDWR), to = made("file", 0), pipe_ends[2], other = made("other", 0);
    off_t offset = 5;
    off64_t at = 2, into = 30;
    SAY(pwrite(from, "SOURCE", 6, 10));
    SAY(sendfile(to, from, &offset, 8));
    SAY(offset);
    SAY(sendfile(to, from, NULL, 4));
    SAY(lseek(from, 0, SEEK_CUR));
    SAY(copy_file_range(from, &at, other, NULL, 6, 0) == 6 || errno == EXDEV);
    SAY(pipe(pipe_ends));
    at = 0;
    SAY(splice(from, &at, pipe_ends[1], NULL, 10, 0));
    SAY(splice(pipe_ends[0], NULL, to, &into, 10, 0));
    SAY(pwrite(to, "!", 1, 31));
    SAY(sendfile(pipe_ends[1], to, &(off_t){0}, 5));
    SAY(read(pipe_ends[0], data, 5));
    printf("%.5s\n", data);
    SAY(tee(pipe_ends[0], pipe_ends[0], 1, SPLICE_F_NONBLOCK));
    SAY(vmsplice(pipe_ends[1], &(struct iovec){"vm", 2}, 1, 0));
    SAY(splice(pipe_ends[0], NULL, to, NULL, 2, 0));
    show("file");
}

PROGRAM(sent_from_a_descriptor_of_the_same_file)
{
    int fd = made("file", 0), again = open("file", O_RDONLY);
    SAY(write(fd, "0123456789", 10));
    SAY(sendfile(fd, again, NULL, 5));
    show("file");
    SAY(sendfile(again, fd, NULL, 5));
    int append = made("file", O_APPEND);
    SAY(sendfile(append, again, NULL, 5));
}

PROGRAM(cloned)
{
    put("source", "to be cloned");
    int from = open("source", O_RDWR), to = made("file", 0);
    SAY(pwrite(from, "T", 1, 0));
    if (ioctl(to, 0x40049409, from) != 0) /* FICLONE, which few file systems have */
        SAY(write(to, "T", 1));
    int waiting = -1;
    SAY(ioctl(from, FIONREAD, &waiting));
    SAY(waiting);
    SAY(ioctl(from, 0x5401, data));
}

PROGRAM(asynchronous)
{
    int fd = made("file", 0);
    SAY(write(fd, "0123456789", 10));
    struct aiocb out = {.aio_fildes = fd, .aio_buf = (char *)"async", .aio_nbytes = 5, .aio_offset = 3};
    struct aiocb in = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 10, .aio_offset = 0};
    const struct aiocb *both[] = {&out};
    SAY(aio_write(&out));
    while (aio_error(&out) == EINPROGRESS)
        aio_suspend(both, 1, NULL);
    SAY(aio_return(&out));
    SAY(aio_read(&in));
    both[0] = &in;
    while (aio_error(&in) == EINPROGRESS)
        aio_suspend(both, 1, NULL);
    SAY(aio_return(&in));
    printf("%.10s\n", data);
    SAY(pwrite(fd, "sync", 4, 20));
    show("file");
}

PROGRAM(asynchronous_list)
{
    int fd = made("file", 0);
    SAY(write(fd, "0123456789", 10));
    struct aiocb out = {.aio_fildes = fd, .aio_buf = (char *)"list", .aio_nbytes = 4, .aio_offset = 2,
                        .aio_lio_opcode = LIO_WRITE};
    struct aiocb in = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 2, .aio_offset = 0, .aio_lio_opcode = LIO_READ};
    SAY(lio_listio(LIO_WAIT, (struct aiocb *[]){&out}, 1, NULL));
    SAY(lio_listio(LIO_WAIT, (struct aiocb *[]){&in, NULL}, 2, NULL));
    printf("%.2s\n", data);
    SAY(aio_fsync(O_SYNC, &out));
    while (aio_error(&out) == EINPROGRESS)
        aio_suspend((const struct aiocb *[]){&out}, 1, NULL);
    SAY(aio_return(&out));
    SAY(pwrite(fd, "!", 1, 8));
    show("file");
}

PROGRAM(locks)
{
    int fd = made("file", 0), other = open("file", O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_start = 0, .l_len = 10};
    SAY(write(fd, "0123456789", 10));
    SAY(flock(fd, LOCK_EX));
    SAY(flock(other, LOCK_EX | LOCK_NB));
    SAY(flock(fd, LOCK_UN));
    SAY(flock(other, LOCK_SH | LOCK_NB));
    SAY(fcntl(fd, F_SETLK, &lock));
    pid_t child = fork();
    if (child == 0)
        _exit(fcntl(other, F_SETLK, &lock) < 0 && (errno == EAGAIN || errno == EACCES) ? 5 : 6);
    SAY(ended(child));
    SAY(fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_RDLCK, .l_start = 100, .l_len = 1}));
    SAY(lockf(fd, F_TLOCK, 5));
    SAY(pwrite(fd, "locked", 6, 0));
    show_fd(other);
}

PROGRAM(locked_while_others_are_closed)
{
    struct flock lock = {.l_type = F_WRLCK, .l_start = 0, .l_len = 10};
    int fd = made("file", 0);
    SAY(fcntl(fd, F_SETLK, &lock));
    SAY(write(fd, "0123456789", 10));
    SAY(fsync(fd));
    SAY(chmod("file", 0700)); /* none of these may close a descriptor of the file: that would end the lock */
    SAY(ftruncate(fd, 5));
    SAY(sendfile(fd, fd, NULL, 0));
    FILE *file = fopen("other", "w");
    SAY_OK(freopen("other", "a", file));
    pid_t child = fork();
    if (child == 0)
        _exit(fcntl(fd, F_SETLK, &lock) < 0 ? 5 : 6);
    SAY(ended(child));
    fclose(file);
}

PROGRAM(errno_is_kept)
{
    int fd = made("file", 0);
    errno = 77;
    ssize_t written = write(fd, "text", 4);
    SAY(written == 4);
    fd = made("other", 0);
    errno = 78;
    write(fd, "text", 4);
    int after_write = errno;
    FILE *file = fopen("third", "w");
    fputs("text", file);
    fflush(file);
    int after_stream = errno;
    fclose(file);
    close(fd);
    int after_close = errno;
    printf("%d %d %d\n", after_write, after_stream, after_close);
}

PROGRAM(devices_and_pipes)
{
    int null = open("/dev/null", O_WRONLY), zero = open("/dev/zero", O_RDONLY), ends[2], file = made("file", 0);
    SAY(write(null, "text", 4));
    SAY(read(zero, data, 100));
    SAY(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    SAY(read(ends[0], data, 1));
    SAY(write(ends[1], "pipe", 4));
    SAY(lseek(ends[0], 0, SEEK_CUR));
    SAY(pread(ends[0], data, 1, 0));
    SAY(mkfifo("fifo", 0600));
    int fifo = open("fifo", O_RDWR | O_NONBLOCK);
    SAY(write(fifo, "fifo", 4));
    SAY(read(fifo, data, 10));
    SAY(write(file, data, 4));
    SAY(poll(&(struct pollfd){.fd = file, .events = POLLIN | POLLOUT}, 1, 0));
    SAY(memfd_create("memory", 0) > 0);
    show("file");
}

/* Without the C library: what is written by system calls directly is in the file for everybody. */
PROGRAM(system_calls)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "file", O_CREAT | O_RDWR, 0600);
    SAY(syscall(SYS_write, fd, "0123456789", 10));
    SAY(syscall(SYS_pwrite64, fd, "abc", 3, 20));
    SAY(syscall(SYS_close, fd));
    show("file");
}

static int listed(const char *path)
{
    int count = 0;
    DIR *list = opendir(path);
    while (list != NULL && readdir(list) != NULL)
        count++;
    if (list != NULL)
        closedir(list);
    return count;
}

PROGRAM(nothing_is_left_behind)
{
    for (int i = 0; i < 50; i++) {
        int fd = made("file", O_TRUNC);
        write(fd, "text", 4);
        SAY(i == 49 ? close(fd) : fclose(fdopen(fd, "w")));
    }
    FILE *file = fopen("file", "a");
    SAY(fclose(freopen("file", "w", file)));
    SAY(listed("."));
    SAY(open("next", O_CREAT | O_WRONLY, 0600));
}

PROGRAM(large_offsets)
{
    int fd = made("file", 0);
    SAY(pwrite64(fd, "far away", 8, 5000000000));
    SAY(pread64(fd, data, 8, 5000000000));
    printf("%.8s\n", data);
    SAY(lseek64(fd, 0, SEEK_END));
    SAY(size_of("file"));
    SAY(ftruncate64(fd, 100));
    SAY(pwrite(fd, "x", 1, INT64_MAX));
    show("file");
}

PROGRAM(at_the_limit_of_size)
{
    struct rlimit limit = {1000, 1000};
    int fd = made("file", 0);
    signal(SIGXFSZ, SIG_IGN);
    SAY(setrlimit(RLIMIT_FSIZE, &limit));
    SAY(pwrite(fd, "in", 2, 100));
    SAY(pwrite(fd, "beyond", 6, 2000));
    SAY(ftruncate(fd, 5000));
    SAY(pwrite(fd, "across", 6, 997));
    show("file");
}

static void end_of_limit(void)
{
    int fd = made("file", 0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000});
    pwrite(fd, "beyond", 6, 2000);
    puts("alive");
}

PROGRAM(killed_at_the_limit_of_size)
{
    SAY(child_of(end_of_limit));
}

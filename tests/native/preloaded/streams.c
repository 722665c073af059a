/* The streams of the C library. */
#include "programs.h"

static void use(FILE *file)
{
    char line[100];
    SAY_OK(file);
    if (file == NULL)
        return;
    SAY(ftell(file));
    SAY(fputs("written", file));
    SAY(fflush(file));
    SAY(ftell(file));
    SAY(fseek(file, 2, SEEK_SET));
    SAY_TEXT(fgets(line, 6, file));
    SAY(fseek(file, 0, SEEK_CUR));
    SAY(fputc('!', file));
    SAY(fseek(file, -3, SEEK_END));
    SAY(fgetc(file));
    SAY(feof(file));
    SAY(ferror(file) != 0);
    SAY(fcntl(fileno(file), F_GETFD));
    SAY(fcntl(fileno(file), F_GETFL) & (O_ACCMODE | O_APPEND));
    SAY(fclose(file));
}

static void in_mode(const char *mode)
{
    put("there", "0123456789abcdef\nsecond line\n");
    printf("there, %s\n", mode);
    use(fopen("there", mode));
    show("there");
    printf("missing, %s\n", mode);
    use(fopen("missing", mode));
    show("missing");
    int fd = open("there", O_RDWR);
    printf("fdopen, %s\n", mode);
    use(fdopen(fd, mode));
    show("there");
}

#define MODE(name, text)  \
    PROGRAM(mode_##name)  \
    {                     \
        in_mode(text);    \
    }
MODE(r, "r")
MODE(w, "w")
MODE(a, "a")
MODE(r_plus, "r+")
MODE(w_plus, "w+")
MODE(a_plus, "a+")
MODE(rb, "rb")
MODE(wb_plus, "wb+")
MODE(r_plus_b, "r+b")
MODE(wx, "wx")
MODE(w_plus_x, "w+x")
MODE(re, "re")
MODE(we, "we")
MODE(ae, "a+e")
MODE(rm, "rm")
MODE(rc, "r+c")
MODE(wrong, "q")
MODE(empty, "")

/* ---- freopen ---- */

static FILE *opened(const char *mode)
{
    FILE *file = fopen("first", mode);
    fputs("first text", file);
    return file;
}

static void reopened(FILE *file, const char *path, const char *mode)
{
    char line[50];
    int before = fileno(file);
    FILE *again = freopen(path, mode, file);
    printf("freopen %s %s: %s\n", path == NULL ? "(null)" : path, mode, again == file ? "same" : again == NULL ? "NULL" : "other");
    if (again == NULL) {
        puts(strerrorname_np(errno));
        return;
    }
    SAY(fileno(again) == before);
    SAY(ftell(again));
    SAY(fputs("second text", again));
    SAY(fseek(again, 3, SEEK_SET));
    SAY_TEXT(fgets(line, 9, again));
    SAY(fflush(again));
    struct stat status;
    fstat(fileno(again), &status);
    SAY(status.st_size);
    SAY(fclose(again));
}

#define REOPEN(name, mode, path, new_mode)              \
    PROGRAM(freopen_##name)                             \
    {                                                   \
        put("first", "what was there before");          \
        put("other", "what was in the other");          \
        reopened(opened(mode), path, new_mode);         \
        show("first");                                  \
        show("other");                                  \
    }
REOPEN(same_w, "w", "first", "w")
REOPEN(same_r, "w+", "first", "r")
REOPEN(same_a, "w", "first", "a")
REOPEN(same_r_plus, "r+", "first", "r+")
REOPEN(other_w, "w", "other", "w")
REOPEN(other_r, "w", "other", "r")
REOPEN(other_a_plus, "a", "other", "a+")
REOPEN(other_w_plus, "r+", "other", "w+")
REOPEN(other_e, "w", "other", "we")
REOPEN(new, "w", "new", "w")
REOPEN(exclusive, "w", "other", "wx")
REOPEN(missing, "w", "nowhere/file", "w")
REOPEN(not_there, "w", "not there", "r")
REOPEN(null_r, "w+", NULL, "r")
REOPEN(null_r_plus, "w+", NULL, "r+")
REOPEN(null_a, "w", NULL, "a")
REOPEN(null_w, "w", NULL, "w")
REOPEN(null_device, "w", "/dev/null", "w")
REOPEN(bad_mode, "w", "other", "?")
REOPEN(ccs, "w", "other", "w,ccs=UTF-8")

PROGRAM(freopen_many)
{
    FILE *file = fopen("f0", "w");
    for (int i = 0; i < 60; i++) {
        char name[20];
        snprintf(name, sizeof name, "f%d", i % 7);
        if (fprintf(file, "%d\n", i) < 0 || freopen(name, i % 3 == 0 ? "w+" : "a", file) != file)
            printf("%d: %s\n", i, strerrorname_np(errno));
    }
    SAY(fclose(file));
    for (int i = 0; i < 100; i++) {
        file = fopen("again", i == 0 ? "w" : "a");
        if (file == NULL || freopen("again", "a", file) == NULL || fputs("x", file) < 0 || fclose(file) != 0)
            puts("failed");
    }
    show("again");
    SAY(open("lowest", O_CREAT | O_WRONLY, 0600));
}

PROGRAM(freopen_streams_of_the_program)
{
    put("input", "one\ntwo\nthree\n");
    char line[20];
    SAY_TEXT(freopen("input", "r", stdin) == stdin ? "stdin" : NULL);
    SAY_TEXT(fgets(line, 20, stdin));
    fflush(stdout);
    int kept = dup(1);
    SAY_OK(freopen("output", "w", stdout));
    printf("to the file\n");
    SAY(write(1, "", 0));
    system("echo by a child");
    SAY_OK(freopen("output", "a", stdout));
    printf("more\n");
    SAY_OK(freopen("errors", "w", stderr));
    fprintf(stderr, "an error\n");
    fflush(stdout);
    dup2(kept, 1);
    show("output");
    show("errors");
    SAY_OK(freopen("errors", "a+", stderr));
    fprintf(stderr, "another\n");
    show("errors");
}

PROGRAM(freopen_after_wide)
{
    FILE *file = fopen("first", "w");
    SAY(fwide(file, 1));
    SAY(fputws(L"wide text", file));
    SAY_OK(freopen("other", "w", file));
    SAY(fwide(file, 0));
    SAY(fputs("narrow", file));
    SAY(fclose(file));
    show("first");
    show("other");
}

PROGRAM(freopen_fdopened)
{
    FILE *file = fdopen(open("first", O_RDWR | O_CREAT, 0600), "w+");
    fputs("some text", file);
    SAY_OK(freopen("other", "w", file));
    SAY(fputs("other text", file));
    SAY(fclose(file));
    show("first");
    show("other");
}

PROGRAM(freopen_closed_descriptor)
{
    FILE *file = fopen("first", "w");
    fputs("text", file);
    fflush(file);
    SAY(close(fileno(file)));
    SAY_OK(freopen("other", "w", file));
    SAY(fputs("other", file));
    SAY(fclose(file));
    show("first");
    show("other");
}

PROGRAM(freopen_unread)
{
    char line[20];
    put("first", "line 1\nline 2\nline 3\n");
    FILE *file = fopen("first", "r+");
    SAY_TEXT(fgets(line, 20, file));
    SAY(ungetc('?', file));
    SAY_OK(freopen("first", "r", file));
    SAY_TEXT(fgets(line, 20, file));
    SAY(fclose(file));
}

static void *reopen_often(void *number)
{
    char name[20];
    snprintf(name, sizeof name, "thread%ld", (long)(intptr_t)number);
    for (int i = 0; i < 50; i++) {
        FILE *file = fopen(name, "a");
        fprintf(file, "%d ", i);
        file = freopen(name, "a", file);
        fprintf(file, "again ");
        fclose(file);
    }
    return NULL;
}

PROGRAM(freopen_threads)
{
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, reopen_often, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    show("thread0");
    show("thread3");
}

/* ---- buffers and positions ---- */

static void with_buffer(int kind, size_t size)
{
    static char room[1 << 16];
    char line[50];
    FILE *file = fopen("file", "w+");
    SAY(setvbuf(file, size == 0 ? NULL : room, kind, size));
    for (int i = 0; i < 500; i++)
        fprintf(file, "line %d\n", i);
    struct stat status;
    stat("file", &status);
    SAY(status.st_size);
    rewind(file);
    SAY_TEXT(fgets(line, 50, file));
    SAY(fseek(file, 100, SEEK_SET));
    SAY(fwrite("changed", 1, 7, file));
    SAY(ftell(file));
    SAY(fclose(file));
    show("file");
}

PROGRAM(setvbuf_none)
{
    with_buffer(_IONBF, 0);
}

PROGRAM(setvbuf_line)
{
    with_buffer(_IOLBF, 300);
}

PROGRAM(setvbuf_full_large)
{
    with_buffer(_IOFBF, 1 << 16);
}

PROGRAM(setvbuf_full_odd)
{
    with_buffer(_IOFBF, 77);
}

PROGRAM(ungetc_and_seek)
{
    put("file", "abcdefghij");
    FILE *file = fopen("file", "r+");
    SAY(fgetc(file));
    SAY(ungetc('X', file));
    SAY(ftell(file));
    SAY(fgetc(file));
    SAY(ungetc('Y', file));
    SAY(fseek(file, 1, SEEK_CUR));
    SAY(fgetc(file));
    SAY(fseek(file, 0, SEEK_CUR));
    SAY(fputs("ZZ", file));
    rewind(file);
    SAY(fgetc(file));
    SAY(fseek(file, -1, SEEK_END));
    SAY(fgetc(file));
    SAY(fgetc(file));
    SAY(feof(file) != 0);
    clearerr(file);
    SAY(fseek(file, -100, SEEK_SET));
    SAY(ftello(file));
    SAY(fclose(file));
    show("file");
}

PROGRAM(positions_saved)
{
    fpos_t place;
    char line[20] = "";
    FILE *file = fopen("file", "w+");
    fputs("0123456789", file);
    SAY(fgetpos(file, &place));
    fputs("abc", file);
    SAY(fsetpos(file, &place));
    SAY_TEXT(fgets(line, 20, file));
    SAY(fseeko(file, 5, SEEK_SET));
    SAY(fread(line, 2, 3, file));
    SAY(ftell(file));
    SAY(lseek(fileno(file), 0, SEEK_CUR) >= 11);
    SAY(fclose(file));
}

PROGRAM(holes_by_seeking)
{
    FILE *file = fopen("file", "w");
    SAY(fseek(file, 3000000, SEEK_SET));
    SAY(fputs("end", file));
    SAY(ftell(file));
    SAY(fseek(file, 1500000, SEEK_SET));
    SAY(fputs("middle", file));
    SAY(fclose(file));
    show("file");
}

PROGRAM(printf_and_scanf)
{
    int number;
    char word[20];
    FILE *file = fopen("file", "w+");
    SAY(fprintf(file, "%d %s %5.2f\n", 42, "word", 3.14159));
    rewind(file);
    SAY(fscanf(file, "%d %19s", &number, word));
    printf("%d %s\n", number, word);
    SAY(ftell(file));
    char *line = NULL;
    size_t room = 0;
    SAY(getline(&line, &room, file));
    SAY(getline(&line, &room, file));
    free(line);
    SAY(dprintf(fileno(file), "%s", "by dprintf"));
    SAY(fclose(file));
    show("file");
}

PROGRAM(large_blocks)
{
    static char data[3000000], back[3000000];
    fill(data, sizeof data, 1);
    FILE *file = fopen("file", "w+");
    SAY(fwrite(data, 1, sizeof data, file));
    SAY(fwrite(data, 1000, 7, file));
    rewind(file);
    SAY(fread(back, 1, sizeof back, file));
    SAY(memcmp(data, back, sizeof data));
    SAY(fread(back, 1000, 20, file));
    SAY(fclose(file));
    show("file");
}

PROGRAM(wide_characters)
{
    wchar_t line[50];
    FILE *file = fopen("file", "w+");
    SAY(fwide(file, 0));
    SAY(fputws(L"some wide text\n", file));
    SAY(fwprintf(file, L"%d %ls\n", 5, L"five"));
    SAY(fputwc(L'x', file));
    SAY(fwide(file, 0) > 0);
    rewind(file);
    SAY_OK(fgetws(line, 50, file));
    printf("%ls", line);
    SAY(fgetwc(file));
    SAY(ungetwc(L'9', file));
    int number = 0;
    SAY(fwscanf(file, L"%d", &number));
    SAY(number);
    SAY(fputs("narrow", file) < 0);
    SAY(fclose(file));
    show("file");
}

PROGRAM(wide_after_narrow)
{
    FILE *file = fopen("file", "w");
    SAY(fputs("narrow", file));
    SAY(fwide(file, 1) < 0);
    SAY(fputwc(L'x', file) == (wint_t)-1);
    SAY(fputs("more", file));
    SAY(fclose(file));
    show("file");
}

PROGRAM(wide_by_mode)
{
    put("file", "before\n");
    int fd = open("file", O_RDWR);
    SAY(write(fd, "BEFORE", 6));
    FILE *file = fopen("file", "a,ccs=UTF-8");
    SAY_OK(file);
    SAY(fputws(L"gr\u00fc\u00df", file));
    SAY(fclose(file));
    SAY(pwrite(fd, "b", 1, 0));
    show_fd(fd);
}

PROGRAM(orientation_first)
{
    FILE *file = fopen("file", "w");
    SAY(fwide(file, -1) < 0);
    SAY(fputs("narrow", file));
    SAY(fclose(file));
    file = fopen("file", "a");
    SAY(fwide(file, 1) > 0);
    SAY(putwc(L'w', file));
    SAY(fclose(file));
    show("file");
}

/* ---- other streams ---- */

PROGRAM(streams_in_memory)
{
    char room[50] = "", *text = NULL, line[20];
    size_t size = 0;
    FILE *file = fmemopen(room, sizeof room, "w+");
    SAY(fputs("in memory", file));
    rewind(file);
    SAY_TEXT(fgets(line, 20, file));
    SAY(fileno(file) < 0);
    SAY(fclose(file));
    file = open_memstream(&text, &size);
    SAY(fprintf(file, "%d", 12345));
    SAY(fclose(file));
    SAY_TEXT(text);
    free(text);
}

static ssize_t upper_write(void *cookie, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (write(*(int *)cookie, (char[]){(char)(data[i] & ~0x20)}, 1) != 1)
            return 0;
    return (ssize_t)size;
}

PROGRAM(own_stream)
{
    int fd = open("file", O_WRONLY | O_CREAT, 0600);
    FILE *file = fopencookie(&fd, "w", (cookie_io_functions_t){.write = upper_write});
    SAY(fputs("upper", file));
    SAY(fclose(file));
    SAY(close(fd));
    show("file");
}

PROGRAM(pipes)
{
    char line[50];
    FILE *file = popen("cat > file; echo said", "w");
    SAY(fputs("through a pipe\n", file));
    SAY(pclose(file));
    file = popen("cat file", "r");
    SAY_TEXT(fgets(line, 50, file));
    SAY(pclose(file));
    SAY(system("echo more >> file; exit 7") >> 8);
    show("file");
}

PROGRAM(temporary_files)
{
    char line[50], name[] = "madeXXXXXX";
    FILE *file = tmpfile();
    SAY(fputs("temporary", file));
    rewind(file);
    SAY_TEXT(fgets(line, 50, file));
    SAY(fclose(file));
    int fd = mkstemp(name);
    file = fdopen(fd, "w+");
    SAY(fputs("made", file));
    SAY(fclose(file));
    SAY(rename(name, "made"));
    show("made");
}

PROGRAM(fdopen_misfit)
{
    put("file", "text");
    int fd = open("file", O_RDONLY);
    SAY_OK(fdopen(fd, "w"));
    SAY_OK(fdopen(fd, "a"));
    SAY_OK(fdopen(-1, "r"));
    SAY_OK(fdopen(900, "r"));
    FILE *file = fdopen(fd, "r");
    SAY(fputc('x', file));
    SAY(fgetc(file));
    SAY(fclose(file));
}

PROGRAM(fdopen_keeps_the_position)
{
    put("file", "0123456789");
    int fd = open("file", O_RDWR);
    SAY(lseek(fd, 4, SEEK_SET));
    FILE *file = fdopen(fd, "r+");
    SAY(ftell(file));
    SAY(fgetc(file));
    SAY(fflush(file));
    SAY(lseek(fd, 0, SEEK_CUR));
    SAY(fclose(file));
    show("file");
}

PROGRAM(two_streams_of_one_file)
{
    char line[30] = "";
    FILE *out = fopen("file", "w"), *in = fopen("file", "r"), *more = fopen("file", "a");
    for (int i = 0; i < 100; i++) {
        fprintf(out, "line %03d\n", i);
        fflush(out);
        if (fgets(line, 30, in) == NULL || atoi(line + 5) != i)
            printf("%d: '%s'\n", i, line);
    }
    SAY(fputs("appended\n", more));
    SAY(fclose(more));
    SAY_TEXT(fgets(line, 30, in));
    SAY(fclose(in));
    SAY(fclose(out));
    show("file");
}

PROGRAM(unflushed_at_exit)
{
    FILE *file = fopen("file", "w"), *wide = fopen("wide", "w");
    fputs("flushed by exit", file);
    fputws(L"this, too", wide);
}

PROGRAM(unflushed_at_quick_exit)
{
    FILE *file = fopen("file", "w");
    fputs("flushed", file);
    fflush(file);
    fputs("lost", file);
    fflush(stdout);
    _exit(3);
}

PROGRAM(closed_under_a_stream)
{
    FILE *file = fopen("file", "w");
    SAY(fputs("text", file));
    SAY(close(fileno(file)));
    SAY(fflush(file));
    SAY(ferror(file) != 0);
    SAY(fclose(file));
    show("file");
}

PROGRAM(descriptor_of_a_stream_replaced)
{
    FILE *file = fopen("file", "w");
    int other = open("other", O_WRONLY | O_CREAT, 0600);
    SAY(fputs("to the first", file));
    SAY(fflush(file));
    SAY(dup2(other, fileno(file)) == fileno(file));
    SAY(fputs("to the second", file));
    SAY(fclose(file));
    SAY(write(other, "!", 1));
    show("file");
    show("other");
}

PROGRAM(full_and_read_only)
{
    put("file", "text");
    FILE *file = fopen("/dev/full", "w");
    SAY(fputs("text", file));
    SAY(fclose(file));
    SAY_OK(fopen("/proc/nothing", "w"));
    SAY_OK(fopen(".", "w"));
    file = fopen(".", "r");
    SAY_OK(file);
    SAY(fgetc(file));
    SAY(fclose(file));
}

PROGRAM(fcloseall_and_fpurge)
{
    FILE *file = fopen("file", "w");
    fputs("purged", file);
    __fpurge(file);
    fputs("kept", file);
    SAY((long)__fpending(file));
    SAY(__fwriting(file) != 0);
    SAY(__fwritable(file) != 0);
    SAY(__freadable(file) != 0);
    SAY(fflush(file));
    SAY(fcloseall());
}

PROGRAM(locked_streams)
{
    FILE *file = fopen("file", "w");
    flockfile(file);
    SAY(putc_unlocked('a', file));
    SAY(fputs_unlocked("bcd", file));
    SAY(fwrite_unlocked("ef", 1, 2, file));
    SAY(fflush_unlocked(file));
    funlockfile(file);
    SAY(fclose(file));
    show("file");
}

PROGRAM(stdout_on_a_file)
{
    int fd = open("file", O_RDWR | O_CREAT, 0600), kept = dup(1);
    SAY(write(fd, "0123456789", 10));
    fflush(stdout);
    dup2(fd, 1);
    lseek(fd, 3, SEEK_SET);
    printf("by printf");
    fflush(stdout);
    write(fd, "|by write|", 10);
    printf("again");
    fflush(stdout);
    pwrite(fd, "AB", 2, 0);
    dup2(kept, 1);
    show_fd(fd);
    show("file");
}

PROGRAM(stdin_from_a_file)
{
    char line[20];
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    write(fd, "one\ntwo\nthree\n", 14);
    lseek(fd, 0, SEEK_SET);
    dup2(fd, 0);
    SAY_TEXT(fgets(line, 20, stdin));
    SAY(scanf("%19s", line));
    SAY_TEXT(line);
    pwrite(fd, "T", 1, 8);
    SAY(fseek(stdin, 8, SEEK_SET));
    SAY_TEXT(fgets(line, 20, stdin));
}

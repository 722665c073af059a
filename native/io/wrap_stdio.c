/* The C library's streams. It reads and writes for them by calls of its own, which cannot be wrapped. So each call on a stream
 * compares what is in the buffer of the stream before and after: what went missing was written to the file, what came in
 * addition was read from it. A call that moves data between buffer and file counts as one operation. */
#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "next.h"

#undef fread_unlocked /* macros in some headers */
#undef fwrite_unlocked

/* For programs built with _FORTIFY_SOURCE, and for putc_unlocked() and getc_unlocked(), which compilers insert. */
size_t __fread_chk(void *data, size_t room, size_t size, size_t count, FILE *stream);
size_t __fread_unlocked_chk(void *data, size_t room, size_t size, size_t count, FILE *stream);
char *__fgets_chk(char *text, size_t room, int size, FILE *stream);
int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments);
int __overflow(FILE *stream, int byte);
int __uflow(FILE *stream);
ssize_t __getdelim(char **line, size_t *size, int end, FILE *stream);
/* The C library's headers give fscanf() one of the other names, except to programs in the C of 1989. */
int vfscanf_1989(FILE *stream, const char *format, va_list arguments) __asm__("vfscanf");
int fscanf_1989(FILE *stream, const char *format, ...) __asm__("fscanf");
int __isoc99_vfscanf(FILE *stream, const char *format, va_list arguments);
int __isoc23_vfscanf(FILE *stream, const char *format, va_list arguments);

#define CALLS(X) \
    X(fopen) X(fopen64) X(freopen) X(freopen64) X(fclose) X(fflush) X(fflush_unlocked) \
    X(fread) X(fread_unlocked) X(__fread_chk) X(__fread_unlocked_chk) X(fgets) X(fgets_unlocked) X(__fgets_chk) \
    X(fgetc) X(getc) X(__uflow) X(getline) X(getdelim) X(__getdelim) \
    X(fwrite) X(fwrite_unlocked) X(fputs) X(fputs_unlocked) X(puts) X(fputc) X(putc) X(putchar) X(__overflow) \
    X(vfprintf) X(__vfprintf_chk) X(__isoc99_vfscanf) X(__isoc23_vfscanf) \
    X(fseek) X(fseeko) X(fseeko64) X(rewind)

#define DECLARE(name) static __typeof__(&name) next_##name;
CALLS(DECLARE)

static __typeof__(&vfscanf_1989) next_vfscanf_1989;
static FILE **all_streams; /* the C library's list, and its lock; NULL if they were not found */
static void (*lock_streams)(void), (*unlock_streams)(void);

void find_stdio(void)
{
#define FIND(name) (void)NEXT(name);
    CALLS(FIND)
    next_vfscanf_1989 = (__typeof__(next_vfscanf_1989))next_symbol("vfscanf", NULL);
    all_streams = next_symbol("_IO_list_all", NULL);
    lock_streams = (void (*)(void))next_symbol("_IO_list_lock", NULL);
    unlock_streams = (void (*)(void))next_symbol("_IO_list_unlock", NULL);
}

/* ---- buffers ---- */

struct before {
    struct file *file;
    size_t output, input; /* bytes in the buffer */
    uint64_t start_ns;
};

static size_t output_in(const FILE *stream)
{
    return stream->_IO_write_ptr > stream->_IO_write_base ? (size_t)(stream->_IO_write_ptr - stream->_IO_write_base) : 0;
}

static size_t input_in(const FILE *stream)
{
    return stream->_IO_read_end > stream->_IO_read_ptr ? (size_t)(stream->_IO_read_end - stream->_IO_read_ptr) : 0;
}

static size_t room_in(const FILE *stream)
{
    return stream->_IO_write_end > stream->_IO_write_ptr ? (size_t)(stream->_IO_write_end - stream->_IO_write_ptr) : 0;
}

/* `is_large`: the call will probably reach the file, so that it is worth knowing the time. */
static struct before look(FILE *stream, bool is_large)
{
    struct before before = {0};
    if (!counting || stream == NULL || (before.file = file_of(stream->_fileno)) == NULL)
        return before;
    before.output = output_in(stream);
    before.input = input_in(stream);
    before.start_ns = is_large ? now_ns() : 0;
    return before;
}

static void count_output(FILE *stream, const struct before *before, size_t bytes)
{
    size_t total = before->file == NULL ? 0 : before->output + bytes, left = total == 0 ? 0 : output_in(stream);
    if (total > left)
        count_write(before->file, advance(stream->_fileno, (ssize_t)(total - left)), (ssize_t)(total - left),
                    before->start_ns ? before->start_ns : now_ns());
}

static void count_input(FILE *stream, const struct before *before, size_t bytes, bool at_end)
{
    if (before->file == NULL || (bytes <= before->input && !at_end))
        return;
    size_t got = bytes + input_in(stream) - before->input;
    count_read(before->file, advance(stream->_fileno, (ssize_t)got), (ssize_t)got,
               before->start_ns ? before->start_ns : now_ns());
}

/* Visit the streams of files; those whose buffer is empty are visited too. */
void each_stream(void (*visit)(struct file *file, size_t output, size_t room))
{
    if (all_streams == NULL || lock_streams == NULL || unlock_streams == NULL)
        return;
    lock_streams();
    for (FILE *stream = *all_streams; stream != NULL; stream = stream->_chain) {
        struct file *file = stream->_fileno >= 0 ? file_of(stream->_fileno) : NULL;
        if (file != NULL)
            visit(file, output_in(stream), (size_t)(stream->_IO_buf_end - stream->_IO_buf_base));
    }
    unlock_streams();
}

/* What is in the buffers of all streams is written when the process exits, after the report. */
void count_streams_at_exit(void)
{
    if (!counting || all_streams == NULL || lock_streams == NULL || unlock_streams == NULL)
        return;
    lock_streams();
    for (FILE *stream = *all_streams; stream != NULL; stream = stream->_chain) {
        struct file *file = output_in(stream) > 0 ? file_of(stream->_fileno) : NULL;
        ssize_t bytes = (ssize_t)output_in(stream);
        if (file != NULL)
            count_write(file, advance(stream->_fileno, bytes), bytes, now_ns());
    }
    unlock_streams();
}

/* ---- opening and closing ---- */

static enum use use_of_mode(const char *mode)
{
    return mode == NULL || *mode == 'r' ? USE : *mode == 'w' && strchr(mode, 'x') == NULL ? REPLACE : CREATE;
}

#define OPENS(name) \
    EXPORT FILE *name(const char *path, const char *mode) \
    { \
        uint64_t start_ns = counting ? now_ns() : 0; \
        SWITCHED(AT_FDCWD, path, use_of_mode(mode)); \
        FILE *stream = NEXT(name) != NULL ? next_##name(path, mode) : NULL; \
        if (stream != NULL) \
            note_open(stream->_fileno, start_ns); \
        return stream; \
    }
OPENS(fopen)
OPENS(fopen64)

#define REOPENS(name) \
    EXPORT FILE *name(const char *path, const char *mode, FILE *stream) \
    { \
        struct before before = look(stream, true); \
        uint64_t start_ns = counting ? now_ns() : 0; \
        if (before.file != NULL && before.output > 0) \
            count_write(before.file, -1, (ssize_t)before.output, start_ns); \
        if (stream != NULL) \
            forget(stream->_fileno, stream->_fileno); \
        SWITCHED(AT_FDCWD, path, use_of_mode(mode)); \
        FILE *result = NEXT(name)(path, mode, stream); \
        if (result != NULL) \
            note_open(result->_fileno, start_ns); \
        return result; \
    }
REOPENS(freopen)
REOPENS(freopen64)

EXPORT int fclose(FILE *stream)
{
    struct before before = look(stream, true);
    if (before.file != NULL && before.output > 0)
        count_write(before.file, advance(stream->_fileno, 0), (ssize_t)before.output, before.start_ns);
    if (stream != NULL)
        forget(stream->_fileno, stream->_fileno);
    int result = NEXT(fclose)(stream);
    if (before.file != NULL) {
        note(before.file, CLOSED, 0, 0);
        count_other(before.file, before.start_ns);
    }
    return result;
}

#define FLUSHES(name) \
    EXPORT int name(FILE *stream) \
    { \
        struct before before = look(stream, true); \
        if (stream == NULL) \
            count_streams_at_exit(); \
        int result = NEXT(name)(stream); \
        if (stream != NULL) \
            count_output(stream, &before, 0); \
        return result; \
    }
FLUSHES(fflush)
FLUSHES(fflush_unlocked)

/* ---- reading ---- */

/* `asked` bytes at most; `got` may use the result. */
#define READS(type, name, parameters, asked, got, at_end, ...) \
    EXPORT type name parameters \
    { \
        struct before before = look(stream, stream != NULL && (asked) > input_in(stream)); \
        type result = NEXT(name)(__VA_ARGS__); \
        if (before.file != NULL) \
            count_input(stream, &before, got, at_end); \
        return result; \
    }
#define SHORT_OF_DATA (result < count && (stream->_flags & _IO_EOF_SEEN) != 0)
#define LINE (result == NULL ? 0 : strlen(text))

READS(size_t, fread, (void *data, size_t size, size_t count, FILE *stream), size * count, result * size, SHORT_OF_DATA,
      data, size, count, stream)
READS(size_t, fread_unlocked, (void *data, size_t size, size_t count, FILE *stream), size * count, result * size,
      SHORT_OF_DATA, data, size, count, stream)
READS(size_t, __fread_chk, (void *data, size_t room, size_t size, size_t count, FILE *stream), size * count,
      result * size, SHORT_OF_DATA, data, room, size, count, stream)
READS(size_t, __fread_unlocked_chk, (void *data, size_t room, size_t size, size_t count, FILE *stream), size * count,
      result * size, SHORT_OF_DATA, data, room, size, count, stream)
READS(char *, fgets, (char *text, int size, FILE *stream), (size_t)size, LINE, result == NULL, text, size, stream)
READS(char *, fgets_unlocked, (char *text, int size, FILE *stream), (size_t)size, LINE, result == NULL, text, size,
      stream)
READS(char *, __fgets_chk, (char *text, size_t room, int size, FILE *stream), (size_t)size, LINE, result == NULL, text,
      room, size, stream)
READS(int, fgetc, (FILE *stream), 1, result >= 0, result < 0, stream)
READS(int, getc, (FILE *stream), 1, result >= 0, result < 0, stream)
READS(int, __uflow, (FILE *stream), 1, result >= 0, result < 0, stream)
READS(ssize_t, getline, (char **line, size_t *size, FILE *stream), 200, result < 0 ? 0 : (size_t)result, result < 0, line,
      size, stream)
READS(ssize_t, getdelim, (char **line, size_t *size, int end, FILE *stream), 200, result < 0 ? 0 : (size_t)result,
      result < 0, line, size, end, stream)
READS(ssize_t, __getdelim, (char **line, size_t *size, int end, FILE *stream), 200, result < 0 ? 0 : (size_t)result,
      result < 0, line, size, end, stream)

/* ---- writing ---- */

#define WRITES(type, name, parameters, stream, given, written, ...) \
    EXPORT type name parameters \
    { \
        struct before before = look(stream, (given) >= room_in(stream)); \
        type result = NEXT(name)(__VA_ARGS__); \
        count_output(stream, &before, written); \
        return result; \
    }
WRITES(size_t, fwrite, (const void *data, size_t size, size_t count, FILE *stream), stream, size * count, result * size,
       data, size, count, stream)
WRITES(size_t, fwrite_unlocked, (const void *data, size_t size, size_t count, FILE *stream), stream, size * count,
       result * size, data, size, count, stream)
WRITES(int, fputs, (const char *text, FILE *stream), stream, strlen(text), result < 0 ? 0 : strlen(text), text, stream)
WRITES(int, fputs_unlocked, (const char *text, FILE *stream), stream, strlen(text), result < 0 ? 0 : strlen(text), text,
       stream)
WRITES(int, puts, (const char *text), stdout, strlen(text) + 1, result < 0 ? 0 : strlen(text) + 1, text)
WRITES(int, fputc, (int byte, FILE *stream), stream, (size_t)1, result >= 0, byte, stream)
WRITES(int, putc, (int byte, FILE *stream), stream, (size_t)1, result >= 0, byte, stream)
WRITES(int, putchar, (int byte), stdout, (size_t)1, result >= 0, byte)
WRITES(int, __overflow, (FILE *stream, int byte), stream, (size_t)1, result >= 0 && byte >= 0, stream, byte)

/* Text of unknown length: probably short. */
#define FORMATTED (size_t)128
WRITES(int, vfprintf, (FILE *stream, const char *format, va_list arguments), stream, FORMATTED,
       result < 0 ? 0 : (size_t)result, stream, format, arguments)
WRITES(int, __vfprintf_chk, (FILE *stream, int flag, const char *format, va_list arguments), stream, FORMATTED,
       result < 0 ? 0 : (size_t)result, stream, flag, format, arguments)

#define PRINTS(name, parameters, last, call) \
    EXPORT int name parameters \
    { \
        va_list arguments; \
        va_start(arguments, last); \
        int result = call; \
        va_end(arguments); \
        return result; \
    }
PRINTS(fprintf, (FILE *stream, const char *format, ...), format, vfprintf(stream, format, arguments))
PRINTS(printf, (const char *format, ...), format, vfprintf(stdout, format, arguments))
PRINTS(__fprintf_chk, (FILE *stream, int flag, const char *format, ...), format,
       __vfprintf_chk(stream, flag, format, arguments))
PRINTS(__printf_chk, (int flag, const char *format, ...), format, __vfprintf_chk(stdout, flag, format, arguments))

/* How much text is taken is not known: the position in the file tells how much was read. */
#define SCANS(name) \
    EXPORT int name(FILE *stream, const char *format, va_list arguments) \
    { \
        struct before before = look(stream, true); \
        int result = NEXT(name)(stream, format, arguments), saved = errno; \
        if (before.file != NULL) { \
            int64_t from = advance(stream->_fileno, 0), to = kernel_position(stream->_fileno); \
            if (to > from && from >= 0) \
                count_read(before.file, advance(stream->_fileno, (ssize_t)(to - from)), (ssize_t)(to - from), \
                           before.start_ns); \
        } \
        errno = saved; \
        return result; \
    }
SCANS(vfscanf_1989)
SCANS(__isoc99_vfscanf)
SCANS(__isoc23_vfscanf)
PRINTS(fscanf_1989, (FILE *stream, const char *format, ...), format, vfscanf_1989(stream, format, arguments))
PRINTS(__isoc99_fscanf, (FILE *stream, const char *format, ...), format, __isoc99_vfscanf(stream, format, arguments))
PRINTS(__isoc23_fscanf, (FILE *stream, const char *format, ...), format, __isoc23_vfscanf(stream, format, arguments))

/* ---- positions ---- */

static void sought(FILE *stream, const struct before *before)
{
    if (before->file == NULL)
        return;
    if (before->output > 0)
        count_write(before->file, advance(stream->_fileno, 0), (ssize_t)before->output, before->start_ns);
    int64_t position = kernel_position(stream->_fileno);
    add(&before->file->tally.seeks, 1);
    note(before->file, SOUGHT, position, 0);
    set_position(stream->_fileno, position);
}

#define SEEKS(name, offset_t) \
    EXPORT int name(FILE *stream, offset_t offset, int whence) \
    { \
        struct before before = look(stream, true); \
        int result = NEXT(name)(stream, offset, whence); \
        int saved = errno; \
        sought(stream, &before); \
        errno = saved; \
        return result; \
    }
SEEKS(fseek, long)
SEEKS(fseeko, off_t)
SEEKS(fseeko64, off64_t)

EXPORT void rewind(FILE *stream)
{
    struct before before = look(stream, true);
    NEXT(rewind)(stream);
    int saved = errno;
    sought(stream, &before);
    errno = saved;
}

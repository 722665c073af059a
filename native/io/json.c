/* Text of a JSON file, written without the C library's stdio and without memory of its own, so that it can be done in
 * _exit(), before exec() and in a signal handler. */
#define _GNU_SOURCE
#include "json.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    int fd;
    size_t length;
    bool failed;
    char bytes[32768];
} out;

void start_json(int fd)
{
    out.fd = fd;
    out.length = 0;
    out.failed = false;
}

static void flush(void)
{
    size_t done = 0;
    while (done < out.length && !out.failed) {
        ssize_t written = syscall(SYS_write, out.fd, out.bytes + done, out.length - done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            out.failed = true;
    }
    out.length = 0;
}

static void put_byte(char byte)
{
    if (out.length == sizeof out.bytes)
        flush();
    out.bytes[out.length++] = byte;
}

void put(const char *text)
{
    while (*text != '\0')
        put_byte(*text++);
}

void put_number(uint64_t number)
{
    char digits[24];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        put_byte(digits[--count]);
}

void put_seconds(uint64_t ns)
{
    put_number(ns / 1000000000u);
    put_byte('.');
    for (uint64_t unit = 100000000u, rest = ns % 1000000000u; unit > 0; unit /= 10)
        put_byte((char)('0' + rest / unit % 10));
}

/* Bytes of the UTF-8 character at `text`, 0 if it is invalid. */
static int utf8_length(const unsigned char *text)
{
    int length = *text < 0x80 ? 1 : *text >= 0xC2 && *text < 0xE0 ? 2 : (*text & 0xF0) == 0xE0 ? 3
                 : *text >= 0xF0 && *text < 0xF5 ? 4 : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    if ((*text == 0xE0 && text[1] < 0xA0) || (*text == 0xED && text[1] > 0x9F) || (*text == 0xF0 && text[1] < 0x90)
        || (*text == 0xF4 && text[1] > 0x8F))
        return 0;
    return length;
}

void put_string(const char *string)
{
    static const char HEX[] = "0123456789abcdef";
    const unsigned char *text = (const unsigned char *)string;
    put_byte('"');
    while (*text != '\0') {
        int length = utf8_length(text);
        if (length == 0) {
            put("\\ufffd");
            text++;
        } else if (*text < ' ' || *text == '"' || *text == '\\' || *text == 0x7F) {
            put("\\u00");
            put_byte(HEX[*text >> 4]);
            put_byte(HEX[*text & 15]);
            text++;
        } else {
            while (length-- > 0)
                put_byte((char)*text++);
        }
    }
    put_byte('"');
}

void put_field(const char *name, uint64_t number)
{
    put(", \"");
    put(name);
    put("\": ");
    put_number(number);
}

void put_time(const char *name, uint64_t ns)
{
    put(", \"");
    put(name);
    put("\": ");
    put_seconds(ns);
}

void put_hexadecimal(const char *name, uint64_t number)
{
    put(", \"");
    put(name);
    put("\": \"");
    for (int shift = 60; shift >= 0; shift -= 4)
        put_byte("0123456789abcdef"[number >> shift & 15]);
    put("\"");
}

void put_sizes(const char *name, const uint64_t *sizes)
{
    put(", \"");
    put(name);
    put("\": [");
    for (int i = 0; i < SIZE_BUCKETS; i++) {
        if (i > 0)
            put(", ");
        put_number(sizes[i]);
    }
    put("]");
}

bool end_json(void)
{
    flush();
    return !out.failed;
}

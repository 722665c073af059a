/* Settings from a file as H5Tuner reads it:
 *
 *     <Parameters>
 *       <High_Level_IO_Library> <alignment>0,65536</alignment> </High_Level_IO_Library>
 *       <Middleware_Layer> <cb_nodes>4</cb_nodes> </Middleware_Layer>
 *       <Parallel_File_System> <striping_factor FileName="out.h5">4</striping_factor> </Parallel_File_System>
 *     </Parameters>
 *
 * This reads the part of XML that such files use: elements, attributes, comments, a declaration, the five named
 * entities. Anything else, or a file with an error, is refused as a whole, with the line. */
#define _GNU_SOURCE
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_FILE = 1 << 20, NAME = 64, LONGEST = 256, FOUND = 128 };

struct parser {
    const char *at;
    int line;
    const char *error; /* the first one */
};
struct found {
    char name[NAME], text[LONGEST], file[LONGEST];
};

static bool fail(struct parser *parser, const char *error)
{
    if (parser->error == NULL)
        parser->error = error;
    return false;
}

static char step(struct parser *parser)
{
    if (*parser->at == '\n')
        parser->line++;
    return *parser->at++;
}

static bool take(struct parser *parser, const char *token)
{
    if (strncmp(parser->at, token, strlen(token)) != 0)
        return false;
    parser->at += strlen(token);
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct parser *parser)
{
    while (is_space(*parser->at))
        step(parser);
}

static bool skip_to(struct parser *parser, const char *end, const char *error)
{
    while (!take(parser, end)) {
        if (*parser->at == '\0')
            return fail(parser, error);
        step(parser);
    }
    return true;
}

/* White space and comments. */
static bool skip_between(struct parser *parser)
{
    skip_space(parser);
    while (take(parser, "<!--")) {
        if (!skip_to(parser, "-->", "comment without end"))
            return false;
        skip_space(parser);
    }
    return true;
}

static bool read_name(struct parser *parser, char *name)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    size_t length = strspn(parser->at, LETTERS);
    if (length == 0 || length >= NAME)
        return fail(parser, "a name is expected");
    memcpy(name, parser->at, length);
    name[length] = '\0';
    parser->at += length;
    return true;
}

/* Text up to `end`, which is not taken; entities are replaced. */
static bool read_text(struct parser *parser, char end, char *text)
{
    static const struct { const char *name; char means; } ENTITIES[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    size_t length = 0;
    while (*parser->at != end) {
        char next = *parser->at;
        if (next == '\0' || next == '<')
            return fail(parser, "text without end");
        if (next == '&') {
            size_t i = 0;
            while (i < 5 && !take(parser, ENTITIES[i].name))
                i++;
            if (i == 5)
                return fail(parser, "unknown entity");
            next = ENTITIES[i].means;
        } else {
            step(parser);
        }
        if (length + 1 >= LONGEST)
            return fail(parser, "text is too long");
        text[length++] = next;
    }
    text[length] = '\0';
    return true;
}

/* Attributes of a start tag up to and with its ">"; *empty is set for "/>". */
static bool read_attributes(struct parser *parser, char *file, bool *empty)
{
    for (;;) {
        char name[NAME], text[LONGEST];
        skip_space(parser);
        *empty = take(parser, "/>");
        if (*empty || take(parser, ">"))
            return true;
        if (!read_name(parser, name))
            return false;
        skip_space(parser);
        if (!take(parser, "="))
            return fail(parser, "= is expected");
        skip_space(parser);
        char quote = *parser->at;
        if (quote != '"' && quote != '\'')
            return fail(parser, "a value in quotes is expected");
        step(parser);
        if (!read_text(parser, quote, text))
            return false;
        step(parser);
        if (strcmp(name, "FileName") != 0)
            return fail(parser, "the only attribute is FileName");
        strcpy(file, text);
    }
}

static bool read_end(struct parser *parser, const char *name)
{
    char closed[NAME];
    if (!take(parser, "</") || !read_name(parser, closed) || strcmp(closed, name) != 0)
        return fail(parser, "end tag does not match");
    skip_space(parser);
    return take(parser, ">") || fail(parser, "> is expected");
}

/* Without white space, which people put around and between numbers. */
static void strip(char *text)
{
    char *to = text;
    for (; *text != '\0'; text++)
        if (!is_space(*text))
            *to++ = *text;
    *to = '\0';
}

static bool read_section(struct parser *parser, struct found *found, int *count)
{
    char section[NAME], file[LONGEST] = "";
    bool empty;
    if (!take(parser, "<") || !read_name(parser, section) || !read_attributes(parser, file, &empty))
        return fail(parser, "a section is expected");
    if (*file != '\0')
        return fail(parser, "FileName belongs to a setting, not to a section");
    if (strcmp(section, "High_Level_IO_Library") != 0 && strcmp(section, "Middleware_Layer") != 0
        && strcmp(section, "Parallel_File_System") != 0)
        return fail(parser, "sections are High_Level_IO_Library, Middleware_Layer and Parallel_File_System");
    while (!empty) {
        if (!skip_between(parser))
            return false;
        if (strncmp(parser->at, "</", 2) == 0)
            return read_end(parser, section);
        if (*count == FOUND)
            return fail(parser, "too many settings");
        struct found *one = &found[*count];
        bool no_text;
        memset(one, 0, sizeof *one);
        if (!take(parser, "<") || !read_name(parser, one->name) || !read_attributes(parser, one->file, &no_text))
            return fail(parser, "a setting is expected");
        if (no_text)
            return fail(parser, "a setting without value");
        if (!read_text(parser, '<', one->text) || !read_end(parser, one->name))
            return false;
        strip(one->text);
        ++*count;
    }
    return true;
}

static bool read_document(struct parser *parser, struct found *found, int *count)
{
    char file[LONGEST] = "", root[NAME];
    bool empty;
    take(parser, "\xEF\xBB\xBF");
    if (take(parser, "<?xml") && !skip_to(parser, "?>", "declaration without end"))
        return false;
    if (!skip_between(parser) || !take(parser, "<") || !read_name(parser, root) || strcmp(root, "Parameters") != 0
        || !read_attributes(parser, file, &empty))
        return fail(parser, "<Parameters> is expected");
    if (*file != '\0')
        return fail(parser, "FileName belongs to a setting, not to <Parameters>");
    while (!empty) {
        if (!skip_between(parser))
            return false;
        if (strncmp(parser->at, "</", 2) != 0) {
            if (!read_section(parser, found, count))
                return false;
        } else if (!read_end(parser, "Parameters")) {
            return false;
        } else {
            break;
        }
    }
    return skip_between(parser) && (*parser->at == '\0' || fail(parser, "something follows </Parameters>"));
}

/* H5Tuner's alignment is "threshold,alignment". */
static void take_found(const struct found *one)
{
    const char *comma = strchr(one->text, ',');
    if (strcmp(one->name, "alignment") != 0 || comma == NULL) {
        take_setting(one->name, one->text, one->file);
        return;
    }
    char threshold[LONGEST];
    snprintf(threshold, sizeof threshold, "%.*s", (int)(comma - one->text), one->text);
    take_setting("alignment_threshold", threshold, one->file);
    take_setting("alignment", comma + 1, one->file);
}

static char *content_of(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *content = NULL;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < LARGEST_FILE
        && (content = malloc((size_t)status.st_size + 1)) != NULL) {
        ssize_t got = read(fd, content, (size_t)status.st_size);
        content[got < 0 ? 0 : got] = '\0';
    } else if (fd >= 0 && content == NULL) {
        errno = EINVAL;
    }
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return content;
}

void read_xml(const char *path)
{
    char *content = content_of(path);
    struct found *found = calloc(FOUND, sizeof *found);
    struct parser parser = {.at = content, .line = 1};
    int count = 0;
    if (content == NULL || found == NULL)
        warn("LUTHIER_IO_XML: cannot read %.150s: %s; no setting of it is used", path, strerror(errno));
    else if (!read_document(&parser, found, &count))
        warn("%.150s:%d: %s; no setting of the file is used", path, parser.line, parser.error);
    else
        for (int i = 0; i < count; i++)
            take_found(&found[i]);
    free(content);
    free(found);
}

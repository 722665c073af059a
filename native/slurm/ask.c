/* Asks the server which configuration a job gets, and prints its answer; prints nothing if there is none in time, or if
 * it is not signed by the server for this very question.
 *
 *     luthier-ask CONFIG REQUEST
 *
 * CONFIG has the lines `url http://HOST:PORT`, `token TOKEN`, `key KEY` and optionally `limit_ms N`. REQUEST is a file of
 * NUL-terminated texts in pairs: `script` (the path of a file), `text` (a script itself), `file`, `name`, `option`;
 * the last two may be missing and `option` may be repeated. The plug-in of Slurm writes it, so no text of a user is
 * ever part of a command line.
 *
 * A timer kills the process when its time is over, whatever it waits for: a name server, a file system, the server.
 */

#include <ctype.h>
#include <fcntl.h>
#include <netdb.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"

enum {
    LIMIT_MS = 200,
    LONGEST_LIMIT_MS = 2000,
    LONGEST_SCRIPT = 256 * 1024,
    LONGEST_REQUEST = 512 * 1024,
    LONGEST_ANSWER = 64 * 1024,
    MOST_VARIABLES = 5000
};

extern char **environ;

struct text {
    char *at;
    size_t length, room;
};

static void start_timer(int limit_ms)
{
    struct itimerval timer = {{0, 0}, {limit_ms / 1000, limit_ms % 1000 * 1000}};
    sigset_t alarm;

    signal(SIGALRM, SIG_DFL); /* the caller may have ignored or blocked it */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    setitimer(ITIMER_REAL, &timer, NULL); /* SIGALRM ends the process */
}

static void give_up(void)
{
    _exit(1);
}

static void add(struct text *text, const char *more, size_t length)
{
    if (text->length + length + 1 > text->room) {
        text->room = 2 * (text->length + length + 1);
        text->at = realloc(text->at, text->room);
        if (text->at == NULL)
            give_up();
    }
    memcpy(text->at + text->length, more, length);
    text->length += length;
    text->at[text->length] = '\0';
}

static void add_string(struct text *text, const char *more)
{
    add(text, more, strlen(more));
}

/* The length of the UTF-8 character at `at`, 0 if it is not a valid one. */
static size_t character(const unsigned char *at, size_t left)
{
    size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : (at[0] & 0xf0) == 0xe0 ? 3
                  : at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90)
        || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

/* Adds a JSON string; bytes that are not UTF-8 become question marks. */
static void add_json(struct text *text, const char *said, size_t length)
{
    const unsigned char *at = (const unsigned char *)said, *end = at + length;
    char escaped[8];

    add(text, "\"", 1);
    while (at < end) {
        size_t size = character(at, (size_t)(end - at));
        if (size == 0) {
            add(text, "?", 1);
            size = 1;
        } else if (size == 1 && (*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7f)) {
            snprintf(escaped, sizeof escaped, "\\u%04x", *at);
            add_string(text, escaped);
        } else {
            add(text, (const char *)at, size);
        }
        at += size;
    }
    add(text, "\"", 1);
}

static void add_field(struct text *text, const char *name, const char *said, size_t length)
{
    add_string(text, ",\"");
    add_string(text, name);
    add_string(text, "\":");
    add_json(text, said, length);
}

/* The contents of a regular file; gives up on anything else, and on more than `longest` bytes. */
static struct text contents(const char *path, size_t longest)
{
    struct text text = {NULL, 0, 0};
    struct stat found;
    char part[65536];
    ssize_t got;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (file < 0 || fstat(file, &found) != 0 || !S_ISREG(found.st_mode))
        give_up();
    add(&text, "", 0);
    while ((got = read(file, part, sizeof part)) > 0) {
        add(&text, part, (size_t)got);
        if (text.length > longest)
            give_up();
    }
    close(file);
    if (got < 0)
        give_up();
    return text;
}

/* Reads the value of a key at the beginning of a line; false if it is missing or too long. */
static int value_of(const char *config, const char *key, char *value, size_t room)
{
    size_t length = strlen(key);
    for (const char *line = config; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            size_t end = strcspn(line + length + 1, "\r\n");
            if (end == 0 || end >= room)
                return 0;
            memcpy(value, line + length + 1, end);
            value[end] = '\0';
            return 1;
        }
    }
    return 0;
}

static void add_environment(struct text *body)
{
    int count = 0;
    add_string(body, ",\"variables\":[");
    for (char **one = environ; *one != NULL && count < MOST_VARIABLES; one++) {
        size_t length = strcspn(*one, "=");
        if (length == 0 || length > 200)
            continue;
        if (count++ > 0)
            add_string(body, ",");
        add_json(body, *one, length);
    }
    add_string(body, "]");
}

static struct text body_of(const char *request, size_t length)
{
    struct text body = {NULL, 0, 0}, options = {NULL, 0, 0};
    const struct passwd *user = getpwuid(getuid());
    time_t now = time(NULL);
    struct tm local;
    char offset[64];
    int has_script = 0;

    if (user == NULL || localtime_r(&now, &local) == NULL)
        give_up();
    add_string(&body, "{\"user\":");
    add_json(&body, user->pw_name, strlen(user->pw_name));
    add(&options, "", 0);
    for (const char *at = request, *end = request + length; at < end;) {
        const char *key = at, *value = memchr(at, '\0', (size_t)(end - at)), *last;
        if (value == NULL || ++value >= end || (last = memchr(value, '\0', (size_t)(end - value))) == NULL)
            give_up();
        if (strcmp(key, "script") == 0 || strcmp(key, "text") == 0) {
            struct text script = {NULL, 0, 0};
            if (*key == 's')
                script = contents(value, LONGEST_SCRIPT);
            else
                add(&script, value, (size_t)(last - value));
            if (memchr(script.at, '\0', script.length) != NULL)
                give_up();
            add_field(&body, "script", script.at, script.length);
            has_script++;
        } else if (strcmp(key, "option") == 0) {
            if (options.length > 0)
                add_string(&options, ",");
            add_json(&options, value, (size_t)(last - value));
        } else if (strcmp(key, "file") == 0 || strcmp(key, "name") == 0) {
            add_field(&body, key, value, (size_t)(last - value));
        } else {
            give_up();
        }
        at = last + 1;
    }
    if (has_script != 1)
        give_up();
    add_string(&body, ",\"options\":[");
    add(&body, options.at, options.length);
    snprintf(offset, sizeof offset, "],\"utc_offset_s\":%ld,\"via\":\"export\"", local.tm_gmtoff);
    add_string(&body, offset);
    add_environment(&body);
    add_string(&body, "}");
    return body;
}

/* A connection to `http://HOST:PORT`. */
static int connected(const char *url, char *authority, size_t room)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found;
    char host[256], *port;
    const char *name = host;

    if (strncmp(url, "http://", 7) != 0 || strlen(url + 7) >= sizeof host || strlen(url + 7) >= room)
        give_up();
    strcpy(authority, url + 7);
    authority[strcspn(authority, "/")] = '\0';
    for (const char *at = authority; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr(".-:[]", *at) == NULL)
            give_up();
    strcpy(host, authority);
    port = strrchr(host, ':');
    if (port == NULL)
        give_up();
    *port++ = '\0';
    if (host[0] == '[' && host[strlen(host) - 1] == ']') {
        host[strlen(host) - 1] = '\0';
        name = host + 1;
    }
    if (getaddrinfo(name, port, &wanted, &found) != 0)
        give_up();
    for (struct addrinfo *one = found; one != NULL; one = one->ai_next) {
        int server = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
        if (server >= 0 && connect(server, one->ai_addr, one->ai_addrlen) == 0)
            return server;
        if (server >= 0)
            close(server);
    }
    give_up();
    return -1;
}

static void send_all(int server, const char *at, size_t left)
{
    while (left > 0) {
        ssize_t sent = send(server, at, left, MSG_NOSIGNAL);
        if (sent <= 0)
            give_up();
        at += sent;
        left -= (size_t)sent;
    }
}

struct config {
    char url[512], token[600];
    unsigned char key[KEY_BYTES];
};

static void read_config(const char *path, struct config *config)
{
    struct text text = contents(path, 4096);
    char key[2 * KEY_BYTES + 2], limit[16];
    int limit_ms;

    if (!value_of(text.at, "url", config->url, sizeof config->url)
        || !value_of(text.at, "token", config->token, sizeof config->token)
        || !value_of(text.at, "key", key, sizeof key) || !from_hex(key, '\0', config->key, KEY_BYTES))
        give_up();
    for (const char *at = config->token; *at != '\0'; at++)
        if (!isgraph((unsigned char)*at))
            give_up();
    if (value_of(text.at, "limit_ms", limit, sizeof limit)) {
        limit_ms = atoi(limit);
        if (limit_ms > 0 && limit_ms <= LONGEST_LIMIT_MS)
            start_timer(limit_ms);
    }
}

/* The request with its head; the nonce makes the answer to it unlike all others. */
static struct text message(
    const struct config *config, const char *authority, const unsigned char *nonce, const struct text *body)
{
    struct text text = {NULL, 0, 0};
    char part[100];

    add_string(&text, "POST /api/v1/submissions?form=lines HTTP/1.0\r\nHost: ");
    add_string(&text, authority);
    add_string(&text, "\r\nAuthorization: Bearer ");
    add_string(&text, config->token);
    add_string(&text, "\r\nLuthier-Nonce: ");
    for (int i = 0; i < NONCE_BYTES; i++) {
        snprintf(part, sizeof part, "%02x", nonce[i]);
        add_string(&text, part);
    }
    snprintf(part, sizeof part, "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body->length);
    add_string(&text, part);
    add(&text, body->at, body->length);
    return text;
}

/* Everything that the server sends; gives up if that is too much. */
static struct text received(int server)
{
    struct text text = {NULL, 0, 0};
    char part[8192];
    ssize_t got;

    add(&text, "", 0);
    while ((got = recv(server, part, sizeof part, 0)) > 0) {
        add(&text, part, (size_t)got);
        if (text.length > LONGEST_ANSWER)
            give_up();
    }
    if (got < 0)
        give_up();
    return text;
}

/* The signature in the head of an answer. */
static int signature_of(const char *head, unsigned char *signature)
{
    static const char name[] = "\r\nLuthier-Signature: ";
    for (const char *at = strchr(head, '\r'); at != NULL; at = strchr(at + 1, '\r'))
        if (strncasecmp(at, name, sizeof name - 1) == 0)
            return from_hex(at + sizeof name - 1, '\r', signature, SIGNATURE_BYTES);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned char nonce[NONCE_BYTES], signature[SIGNATURE_BYTES];
    struct text request, body, sent, answer;
    struct config config;
    char authority[300];
    const char *text;
    size_t length;
    int server;

    start_timer(LIMIT_MS);
    if (argc != 3)
        return 2;
    read_config(argv[1], &config);
    if (!can_check(config.key) || getrandom(nonce, sizeof nonce, 0) != sizeof nonce)
        return 1;
    request = contents(argv[2], LONGEST_REQUEST);
    body = body_of(request.at, request.length);
    server = connected(config.url, authority, sizeof authority);
    sent = message(&config, authority, nonce, &body);
    send_all(server, sent.at, sent.length);
    answer = received(server);
    text = strstr(answer.at, "\r\n\r\n");
    if (text == NULL || strncmp(answer.at, "HTTP/1.", 7) != 0 || strncmp(answer.at + 8, " 201 ", 5) != 0)
        return 1;
    text += 4;
    length = answer.length - (size_t)(text - answer.at);
    if (!signature_of(answer.at, signature) || !is_signed(signature, nonce, body.at, body.length, text, length)
        || !is_allowed(text, length))
        return 1;
    return fwrite(text, 1, length, stdout) != length || fflush(stdout) != 0;
}

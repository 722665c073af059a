/* Options and variables of sbbd, and how it speaks. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "quantity.h"
#include "sbbd.h"

void say(const char *format, ...)
{
    char line[1024];
    va_list words;
    va_start(words, format);
    vsnprintf(line, sizeof line, format, words);
    va_end(words);
    dprintf(STDERR_FILENO, "sbbd: %s\n", line);
}

void give_up(const char *format, ...)
{
    char line[1024];
    va_list words;
    va_start(words, format);
    vsnprintf(line, sizeof line, format, words);
    va_end(words);
    dprintf(STDERR_FILENO, "sbbd: %s\n", line);
    _exit(1);
}

struct parameter {
    const char *option, *variable;
    uint64_t low, high, value;
    size_t place;
};

#define PARAMETER(name, option, variable, low, high, value) \
    {option, variable, low, high, value, offsetof(struct settings, name)}

static const struct parameter PARAMETERS[] = {
    PARAMETER(rdma_pollers, "rdma-pollers", "SBB_RDMA_POLLERS", 1, 64, 2),
    PARAMETER(workers, "workers", "SBB_WORKERS", 1, 256, 10),
    PARAMETER(ram_destagers, "ram-destagers", "SBB_RAM_DESTAGERS", 1, 256, 10),
    PARAMETER(flash_destagers, "flash-destagers", "SBB_FLASH_DESTAGERS", 1, 256, 10),
    PARAMETER(ram_cache, "ram-cache", "SBB_RAM_CACHE", 4u << 20, UINT64_C(1) << 40, 256u << 20),
    PARAMETER(ram_threshold_percent, "ram-threshold-percent", "SBB_RAM_THRESHOLD_PERCENT", 0, 100, 80),
    PARAMETER(flash_cache, "flash-cache", "SBB_FLASH_CACHE", 8u << 20, UINT64_C(1) << 44, UINT64_C(1) << 30),
    PARAMETER(flash_threshold_percent, "flash-threshold-percent", "SBB_FLASH_THRESHOLD_PERCENT", 0, 100, 80),
};
#define COUNT (sizeof PARAMETERS / sizeof PARAMETERS[0])

static const char HELP[] =
    "usage: sbbd --folder FOLDER --target TARGET [OPTION=VALUE...]\n"
    "       sbbd --folder FOLDER --status | --drain | --stop\n"
    "       sbbd --folder FOLDER --target TARGET --recover\n"
    "\n"
    "A burst buffer for programs with libsbb.so preloaded that write to files below TARGET.\n"
    "\n"
    "  --folder FOLDER            on fast storage, for socket and log ($SBB_FOLDER)\n"
    "  --target TARGET            the folder on slow storage ($SBB_TARGET)\n"
    "  --mode flash|ram           when a write is acknowledged: in the log on flash (default), or\n"
    "                             already in RAM, where it is lost if the daemon dies ($SBB_MODE)\n"
    "  --rdma-pollers N           threads that receive requests (2)\n"
    "  --workers N                threads that copy data into RAM (10)\n"
    "  --ram-destagers N          threads that copy from RAM to flash (10)\n"
    "  --flash-destagers N        threads that copy from flash to the target (10)\n"
    "  --ram-cache SIZE           RAM for data (256M)\n"
    "  --ram-threshold-percent N  remove copies from RAM above this (80)\n"
    "  --flash-cache SIZE         bytes of the log in FOLDER (1G)\n"
    "  --flash-threshold-percent N  remove copies from the log above this (80)\n"
    "  --detach                   return when the daemon is ready\n"
    "  --status                   print the counters of a running daemon as JSON\n"
    "  --drain                    wait until a running daemon has written everything to the target\n"
    "  --stop                     the same, then end it\n"
    "  --recover                  write what a killed daemon has left in its log to the target; a start does it, too\n"
    "\n"
    "The numbers may also be given as SBB_RDMA_POLLERS, SBB_WORKERS and so on; an option has priority.\n";

static void set(struct settings *settings, const struct parameter *parameter, const char *name, const char *text)
{
    uint64_t value;
    if (!parse_quantity(text, parameter->low, parameter->high, &value))
        give_up("%s: '%.40s' is not a whole number from %llu to %llu (10, 64M, 1G)", name, text,
                (unsigned long long)parameter->low, (unsigned long long)parameter->high);
    memcpy((char *)settings + parameter->place, &value, sizeof value);
}

static void set_mode(struct settings *settings, const char *text)
{
    if (strcmp(text, "flash") != 0 && strcmp(text, "ram") != 0)
        give_up("mode: '%.40s' is neither flash nor ram", text);
    settings->acknowledge_in_ram = strcmp(text, "ram") == 0;
}

static void set_path(char *place, const char *name, const char *text)
{
    if (text[0] == '\0' || strlen(text) > PATH_MAX - 64)
        give_up("%s: the path is empty or too long", name);
    strcpy(place, text);
}

static void from_environment(struct settings *settings)
{
    for (size_t i = 0; i < COUNT; i++) {
        memcpy((char *)settings + PARAMETERS[i].place, &PARAMETERS[i].value, sizeof(uint64_t));
        const char *text = getenv(PARAMETERS[i].variable);
        if (text != NULL)
            set(settings, &PARAMETERS[i], PARAMETERS[i].variable, text);
    }
    if (getenv("SBB_MODE") != NULL)
        set_mode(settings, getenv("SBB_MODE"));
    if (getenv("SBB_FOLDER") != NULL)
        set_path(settings->folder, "SBB_FOLDER", getenv("SBB_FOLDER"));
    if (getenv("SBB_TARGET") != NULL)
        set_path(settings->target, "SBB_TARGET", getenv("SBB_TARGET"));
}

enum { FOLDER = 100, TARGET, MODE, DETACH, STATUS, DRAIN, STOP, RECOVER, HELP_OPTION };

static const char *const ACTIONS[] = {
    [DETACH] = "detach", [STATUS] = "status", [DRAIN] = "drain", [STOP] = "stop", [RECOVER] = "recover",
};

/* False if only the help was asked for. */
bool read_settings(struct settings *settings, int count, char **words, const char **action)
{
    struct option options[COUNT + 10] = {{0}};
    for (size_t i = 0; i < COUNT; i++)
        options[i] = (struct option){PARAMETERS[i].option, required_argument, NULL, (int)i};
    const struct option others[] = {
        {"folder", required_argument, NULL, FOLDER}, {"target", required_argument, NULL, TARGET},
        {"mode", required_argument, NULL, MODE},     {"detach", no_argument, NULL, DETACH},
        {"status", no_argument, NULL, STATUS},       {"drain", no_argument, NULL, DRAIN},
        {"stop", no_argument, NULL, STOP},           {"recover", no_argument, NULL, RECOVER},
        {"help", no_argument, NULL, HELP_OPTION},
    };
    memcpy(options + COUNT, others, sizeof others);
    from_environment(settings);
    *action = "run";
    for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;) {
        if (option == '?')
            give_up("--help lists the options");
        else if (option == HELP_OPTION)
            return (void)(fputs(HELP, stdout), fflush(stdout)), false;
        else if (option == FOLDER)
            set_path(settings->folder, "--folder", optarg);
        else if (option == TARGET)
            set_path(settings->target, "--target", optarg);
        else if (option == MODE)
            set_mode(settings, optarg);
        else if (option >= DETACH)
            *action = ACTIONS[option];
        else
            set(settings, &PARAMETERS[option], PARAMETERS[option].option, optarg);
    }
    if (optind < count)
        give_up("unexpected argument '%.80s'; --help lists the options", words[optind]);
    return true;
}

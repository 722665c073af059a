/* The hints of MPI-IO: which implementation obeys them, and a copy of the program's with the settings added. */
#define _GNU_SOURCE
#include "hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

/* Before MPI_Init(), and only if hints are asked for. */
void choose_romio(void)
{
#ifdef ROMIO
    bool uses_mpi = getenv("OMPI_COMM_WORLD_RANK") != NULL || dlsym(RTLD_DEFAULT, "ompi_mpi_init") != NULL;
    if (uses_mpi && io->any_wanted(FIRST_HINT, SETTINGS - 1))
        setenv("OMPI_MCA_io", ROMIO, 0);
#endif
}

static bool hints_are_ignored(void)
{
#ifdef ROMIO
    const char *component = getenv("OMPI_MCA_io");
    return component != NULL && strstr(component, "ompio") != NULL && *component != '^';
#else
    return false;
#endif
}

static bool is_striped(const char *path)
{
    static const unsigned long STRIPED[] = {0x0BD00BD0 /* Lustre */,  0x47504653 /* GPFS */, 0x19830326 /* BeeGFS */,
                                            0x20030528 /* OrangeFS */, 0xAAD7AAEA /* PanFS */, 0x00C36400 /* Ceph */};
    struct statfs status;
    if (statfs(path, &status) != 0)
        return true; /* not known: no warning */
    for (size_t i = 0; i < sizeof STRIPED / sizeof *STRIPED; i++)
        if ((unsigned long)status.f_type == STRIPED[i])
            return true;
    return false;
}

void mark(enum setting setting, const struct value *value, const char *path)
{
    if (hints_are_ignored())
        io->mark_inert(setting, "Open MPI's ompio ignores hints; do not set io=ompio");
    else if (setting >= STRIPING_FACTOR && !is_striped(path))
        io->mark_inert(setting, "the file is not on a striped file system (Lustre, GPFS, BeeGFS, ...)");
    else
        io->mark_applied(value);
}

static MPI_Info no_info(const void *caller)
{
#ifdef OPEN_MPI
    /* MPI_INFO_NULL is the address of this variable. Where a program has a copy of it, the copy counts. */
    void *variable = dlsym(RTLD_DEFAULT, "ompi_mpi_info_null");
    return (MPI_Info)(variable != NULL ? variable : next_symbol("ompi_mpi_info_null", caller));
#else
    (void)caller;
    return MPI_INFO_NULL;
#endif
}

static long number_in(const char *name, const char *other)
{
    const char *text = getenv(name) != NULL ? getenv(name) : getenv(other);
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

/* By default ROMIO takes one process of each host for collective buffering, so that more than one for each host need the
 * hint cb_config_list as well. */
static void allow_several_per_host(MPI_Info hints, const struct value *nodes, const void *caller)
{
    long local = number_in("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS");
    long ranks = number_in("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    char list[32];
    int is_set = 0;
    if (local < 1 || ranks < local)
        return;
    long hosts = (ranks + local - 1) / local, each = ((long)nodes->number + hosts - 1) / hosts;
    FIND(PMPI_Info_get, caller)(hints, "cb_config_list", sizeof list - 1, list, &is_set);
    if (is_set || each < 2)
        return;
    snprintf(list, sizeof list, "*:%ld", each < local ? each : local);
    FIND(PMPI_Info_set, caller)(hints, "cb_config_list", list);
}

MPI_Info amended(MPI_Info given, const char *path, const void *caller, bool *made)
{
    MPI_Info hints = given;
    *made = false;
    if (io == NULL || !io->any_wanted(FIRST_HINT, SETTINGS - 1))
        return given;
    int result = given == no_info(caller) ? FIND(PMPI_Info_create, caller)(&hints)
                                          : FIND(PMPI_Info_dup, caller)(given, &hints);
    if (result != MPI_SUCCESS)
        return given;
    *made = true;
    for (enum setting setting = FIRST_HINT; setting < SETTINGS; setting++) {
        const struct value *value = io->wanted(setting, path);
        char number[24];
        if (value == NULL)
            continue;
        snprintf(number, sizeof number, "%llu", (unsigned long long)value->number);
        bool is_word = *value->text < '0' || *value->text > '9';
        FIND(PMPI_Info_set, caller)(hints, io->setting_name(setting), is_word ? value->text : number);
        if (setting == CB_NODES)
            allow_several_per_host(hints, value, caller);
    }
    return hints;
}

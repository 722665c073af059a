/* What the library for MPI-IO, libluthier_io_mpi.so, uses of this one. */
#include "io.h"

static bool used_mpi;

bool mpi_was_used(void)
{
    return used_mpi;
}

static void note_mpi(void)
{
    used_mpi = true;
    print_warnings();
}

static void conclude(void)
{
    conclude_settings();
    write_report(false);
}

const struct luthier_io *luthier_io_interface(void)
{
    static struct luthier_io interface;
    start_library();
    interface = (struct luthier_io){
        .version = 2,
        .counting = counting,
        .file_named = file_named,
        .absolute_path = absolute_path,
        .wanted = wanted,
        .setting_name = setting_name,
        .any_wanted = any_wanted,
        .mark_applied = mark_applied,
        .mark_inert = mark_inert,
        .used_mpi = note_mpi,
        .count_read = count_read,
        .count_write = count_write,
        .count_other = count_other,
        .note = note,
        .conclude = conclude,
    };
    return &interface;
}

/* What the files of libluthier_io_mpi.so share. */
#ifndef LUTHIER_IO_HINTS_H
#define LUTHIER_IO_HINTS_H

#include <mpi.h>

#include "io.h"
#include "next.h"

/* Open MPI's own implementation of MPI-IO stores hints and ignores them; ROMIO is part of it and obeys them. It is chosen
 * when MPI_Init() reads the environment. */
#ifdef OPEN_MPI
#if OMPI_MAJOR_VERSION >= 5
#define ROMIO "romio341"
#else
#define ROMIO "romio321"
#endif
#endif

#define FIND(name, caller) \
    ({ \
        static __typeof__(&name) found; \
        if (found == NULL) \
            found = (__typeof__(&name))next_symbol(#name, caller); \
        found; \
    })

extern const struct luthier_io *io; /* NULL without libluthier_io.so: every call is just passed on */

void choose_romio(void);
/* A copy of the hints of the program with the settings added; MPI_Info of its own to free, or *made is false. */
MPI_Info amended(MPI_Info given, const char *path, const void *caller, bool *made);
void mark(enum setting setting, const struct value *value, const char *path); /* a hint was passed on for a file */

#endif

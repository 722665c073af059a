/* Paths of files that are kept in memory (memory.c). */
#ifndef LUTHIER_IO_MEMORY_H
#define LUTHIER_IO_MEMORY_H

#include "io.h"

/* What a call does with a path. */
enum use {
    LOOK,    /* asks about it: a file that is not in memory yet stays where it is */
    USE,     /* opens what exists, changes its attributes, renames it */
    CREATE,  /* may make it */
    REPLACE, /* the same, and its content is lost if it exists; also: removes it */
};

extern bool files_switched; /* set once, before main() */

const char *switched_path(int base, const char *path, enum use use, char *copy); /* copy: room for PATH_MAX */
const char *switched_folder(int base, const char *path, char *copy);             /* to list it */
void note_removed(int base, const char *path); /* it was removed, or renamed, in memory: its original is hidden now */
void prepare_to_move(int base, const char *path);
int move_across(const char *from, const char *to);

/* memory_files.c */
bool is_below(const char *path, const char *start);
void tidy(char *path);
bool copy_file(const char *from, const char *to, bool with_data, bool may_replace);

/* `path` becomes the path to pass on. */
#define SWITCHED(base, path, use) \
    char room_for_##path[files_switched ? PATH_MAX : 1]; \
    path = switched_path(base, path, use, room_for_##path)

static inline enum use use_of_flags(int flags)
{
    enum { CREATES = 0100, TRUNCATES = 01000 }; /* O_CREAT, O_TRUNC on Linux; not every file here includes fcntl.h */
    return (flags & CREATES) == 0 ? ((flags & TRUNCATES) != 0 ? REPLACE : USE) : (flags & TRUNCATES) != 0 ? REPLACE : CREATE;
}

#endif

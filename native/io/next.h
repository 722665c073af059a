/* Where a wrapped call goes on to. */
#ifndef LUTHIER_IO_NEXT_H
#define LUTHIER_IO_NEXT_H

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>

/* The symbol of one of the versions that a library was linked with; NULL if there is none. */
static inline void *versioned_symbol(void *scope, const char *name, const struct link_map *map)
{
    const char *texts = NULL, *needs = NULL, *base = (const char *)map->l_addr;
    size_t count = 0;
    void *symbol = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) /* most systems have added the address already */
            texts = entry->d_un.d_ptr < map->l_addr ? base + entry->d_un.d_ptr : (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_VERNEED)
            needs = base + entry->d_un.d_ptr;
        else if (entry->d_tag == DT_VERNEEDNUM)
            count = entry->d_un.d_val;
    }
    for (; needs != NULL && texts != NULL && count > 0 && symbol == NULL; count--) {
        const ElfW(Verneed) *need = (const void *)needs;
        const char *version = needs + need->vn_aux;
        for (int i = 0; i < need->vn_cnt && symbol == NULL; i++) {
            symbol = dlvsym(scope, name, texts + ((const ElfW(Vernaux) *)(const void *)version)->vna_name);
            version += ((const ElfW(Vernaux) *)(const void *)version)->vna_next;
        }
        needs += need->vn_next;
    }
    return symbol;
}

/* The symbol as the dynamic linker would have found it for the code at `caller`: in `scope` (RTLD_NEXT: the libraries of
 * the program, without this one), else in those that the caller's own library was loaded with (Python loads extensions
 * that way). If both have one, such as two builds of HDF5, the version that the caller was linked with decides. */
static inline void *symbol_in(void *scope, const char *name, const void *caller)
{
    int saved = errno;
    void *symbol = dlsym(scope, name), *handle = NULL;
    Dl_info where;
    struct link_map *map = NULL;
    if (caller != NULL && dladdr1(caller, &where, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL
        && *map->l_name != '\0')
        handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != NULL) {
        void *own = dlsym(handle, name);
        if (symbol != NULL && own != NULL && own != symbol) {
            void *versioned = versioned_symbol(scope, name, map);
            symbol = versioned != NULL ? versioned : symbol;
        } else if (symbol == NULL)
            symbol = own;
        dlclose(handle); /* it was loaded before and stays so */
    }
    errno = saved;
    return symbol;
}

static inline void *next_symbol(const char *name, const void *caller)
{
    return symbol_in(RTLD_NEXT, name, caller);
}

/* The next function of that name, kept in next_NAME. All are looked up at the start, for dlsym() is not for signal handlers;
 * only calls before that look here. */
#define NEXT(name) \
    (__extension__({ \
        if (next_##name == NULL) \
            next_##name = (__typeof__(next_##name))next_symbol(#name, NULL); \
        next_##name; \
    }))

#endif

/* A library with the interface of HDF5 1.8, whose identifiers are of type int: the upper half of what its calls return is
 * undefined, here such that all 64 bits look like an error. It prints what reaches it. */
#include <stdint.h>
#include <stdio.h>

#define UNDEFINED ((int64_t)(UINT64_C(0xdead) << 48))
int H5P_LST_FILE_ACCESS_ID_g = 100, H5P_LST_DATASET_CREATE_ID_g = 101, H5P_LST_DATASET_XFER_ID_g = 102,
    H5P_LST_DATASET_ACCESS_ID_g = 103;

int H5get_libversion(unsigned *major, unsigned *minor, unsigned *release)
{
    *major = 1;
    *minor = 8;
    *release = 22;
    return 0;
}

int H5open(void) { return 0; }
int64_t H5Pcopy(int list) { return UNDEFINED | (list + 1000); }
int H5Pclose(int list) { return printf("close list %d\n", list) > 0 ? 0 : -1; }
int64_t H5Pget_driver(int list) { return UNDEFINED | list; }
int H5Pget_alignment(int list, unsigned long long *threshold, unsigned long long *alignment)
{
    (void)list;
    *threshold = *alignment = 1;
    return 0;
}
int H5Pset_alignment(int list, unsigned long long threshold, unsigned long long alignment)
{
    return printf("alignment of list %d: %llu %llu\n", list, threshold, alignment) > 0 ? 0 : -1;
}
int H5Eget_auto2(int stack, void **function, void **data)
{
    (void)stack;
    *function = *data = NULL;
    return 0;
}
int H5Eset_auto2(int stack, void *function, void *data)
{
    (void)stack, (void)function, (void)data;
    return 0;
}
long H5Fget_name(int object, char *name, size_t size)
{
    (void)object;
    return snprintf(name, size, "old.h5");
}
int64_t H5Fcreate(const char *name, unsigned flags, int creation, int access)
{
    printf("create %s %u with list %d, access list %d\n", name, flags, creation, access);
    return UNDEFINED | 7;
}
int H5Fclose(int file) { return printf("close file %d\n", file) > 0 ? 0 : -1; }

/* A program built for HDF5 1.8. */
#include <stdio.h>

int H5Fcreate(const char *name, unsigned flags, int creation, int access);
int H5Fclose(int file);

int main(void)
{
    int file = H5Fcreate("old.h5", 2, 0, 0);
    int other = H5Fcreate("own.h5", 2, 0, 55);
    printf("files %d %d\n", file, other);
    return H5Fclose(file);
}

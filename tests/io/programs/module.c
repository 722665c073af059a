/* A module that uses HDF5, for host.c. */
#include <hdf5.h>

int write_file(const char *path)
{
    hsize_t size = 10;
    int data[10] = {1, 2, 3};
    hid_t space = H5Screate_simple(1, &size, NULL), file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t set = H5Dcreate2(group, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int result = H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(set);
    H5Gclose(group);
    H5Sclose(space);
    return H5Fclose(file) < 0 || result < 0;
}

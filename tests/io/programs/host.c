/* A program with a module that uses HDF5.
 *
 *     host FILE           the module is linked with it, and it has an HDF5 of its own (-DOWN_HDF5)
 *     host FILE MODULE    the module is loaded and unloaded, several times at other addresses
 */
#include <dlfcn.h>
#include <stddef.h>
#include <sys/mman.h>

#ifdef OWN_HDF5
#include <hdf5.h>

int write_file(const char *path);

int main(int count, char **arguments)
{
    hid_t file = H5Fcreate("own.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    int result = count == 2 ? write_file(arguments[1]) : 2;
    return H5Fclose(file) < 0 ? 3 : result;
}
#else
int main(int count, char **arguments)
{
    int result = count == 3 ? 0 : 2;
    for (int i = 0; i < 4 && result == 0; i++) {
        void *module = dlopen(arguments[2], RTLD_NOW);
        int (*write_file)(const char *) = NULL;
        if (module != NULL)
            *(void **)&write_file = dlsym(module, "write_file");
        result = write_file == NULL ? 3 : write_file(arguments[1]);
        if (module != NULL)
            dlclose(module);
        mmap(0, 300 << 10, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* the module does not fit there again */
        mmap(0, 5 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);   /* nor HDF5 */
    }
    return result;
}
#endif

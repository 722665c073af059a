/* Writes and reads one file from all ranks by nonblocking collective calls.
 *
 *     nonblocking FILE
 */
#include <mpi.h>
#include <stdio.h>

enum { SIZE = 1000 };

static int moved(MPI_Request *request)
{
    MPI_Status status;
    int count = -1;
    if (MPI_Wait(request, &status) == MPI_SUCCESS)
        MPI_Get_count(&status, MPI_INT, &count);
    return count;
}

int main(int count, char **arguments)
{
    MPI_File file;
    MPI_Request request;
    int rank, data[SIZE], back[SIZE] = {0}, moves[4];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < SIZE; i++)
        data[i] = rank * SIZE + i;
    MPI_Offset place = (MPI_Offset)rank * SIZE * 8;
    MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_iwrite_at_all(file, place, data, SIZE, MPI_INT, &request);
    moves[0] = moved(&request);
    MPI_File_seek(file, place + SIZE * 4, MPI_SEEK_SET);
    MPI_File_iwrite_all(file, data, SIZE, MPI_INT, &request);
    moves[1] = moved(&request);
    MPI_File_iread_at_all(file, place, back, SIZE, MPI_INT, &request);
    moves[2] = moved(&request);
    MPI_File_seek(file, place, MPI_SEEK_SET);
    MPI_File_iread_all(file, back, SIZE, MPI_INT, &request);
    moves[3] = moved(&request);
    if (rank == 0)
        printf("%d %d %d %d %d\n", moves[0], moves[1], moves[2], moves[3], back[SIZE - 1]);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

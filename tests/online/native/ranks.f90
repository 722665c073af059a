! Tunes a known function with MPI from Fortran, the same on all ranks; then a few iterations by the clock, each rank
! with its own.
program ranks
    use mpi
    use luthier_online
    use luthier_online_mpi
    implicit none
    integer(c_int), target :: block = 64
    type(c_ptr) :: tuning
    integer :: step, rank, lowest, highest, fetched, error
    fetched = 0
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    tuning = luthier_mpi_open(MPI_COMM_WORLD, "fortran", luthier_same)
    call luthier_integer(tuning, "block", block, 8, 512, 8)
    do step = 1, 40
        if (luthier_mpi_fetch(tuning)) fetched = fetched + 1
        call MPI_Allreduce(block, lowest, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, error)
        call MPI_Allreduce(block, highest, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
        if (lowest /= highest) fetched = -1000
        call luthier_mpi_report(tuning, 10 + abs(block - 256.0_c_double))
    end do
    if (.not. luthier_mpi_best(tuning)) fetched = -1000
    if (rank == 0) print '(i0, 1x, a)', fetched, luthier_phase(tuning)
    call luthier_mpi_close(tuning)
    tuning = luthier_mpi_open(MPI_COMM_WORLD, "clock", luthier_each)
    call luthier_integer(tuning, "block", block, 8, 512, 8)
    do step = 1, 5
        call luthier_mpi_begin(tuning)
        call luthier_mpi_end(tuning)
    end do
    call luthier_mpi_close(tuning)
    call MPI_Finalize(error)
end program

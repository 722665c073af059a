! Writes one file from all ranks.
program p
  use mpi
  implicit none
  integer :: e, f, r
  integer(kind=MPI_OFFSET_KIND) :: o
  double precision :: d(1000)
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, r, e)
  call MPI_File_open(MPI_COMM_WORLD, 'fortran.dat', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, f, e)
  d = r
  o = r * 8000
  call MPI_File_write_at_all(f, o, d, 1000, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, e)
  call MPI_File_close(f, e)
  call MPI_Finalize(e)
end program

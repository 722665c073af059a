! A smoothing filter whose tile sizes are tuned while it runs.
!
!     gfortran -O2 smooth.f90 $(pkg-config --cflags --libs luthier-online-fortran) -o smooth
!     luthier online &
!     ./smooth 200
program smooth
    use luthier_online
    implicit none
    integer, parameter :: n = 256
    real(c_double) :: before(0:n + 1, 0:n + 1), after(0:n + 1, 0:n + 1)
    integer(c_int), target :: rows = 4, columns = 4
    integer :: step, steps, i, j
    character(16) :: argument
    type(c_ptr) :: tuning
    logical :: is_best

    steps = 100
    call get_command_argument(1, argument)
    if (argument /= "") read (argument, *) steps
    do j = 0, n + 1
        do i = 0, n + 1
            before(i, j) = modulo(3*i + 5*j, 11)
        end do
    end do
    after = before

    tuning = luthier_open("smooth")
    call luthier_integer_log(tuning, "rows", rows, 1, n, 2.0_c_double)
    call luthier_integer_log(tuning, "columns", columns, 1, n, 2.0_c_double)
    do step = 1, steps
        call luthier_begin(tuning)
        call sweep(rows, columns)
        call luthier_end(tuning)
        before(1:n, 1:n) = after(1:n, 1:n)
    end do
    is_best = luthier_best(tuning)
    print '(a, es23.16, a, i0, a, i0, 2a)', "sum ", sum(after), ", rows ", rows, ", columns ", columns, ", ", &
        luthier_phase(tuning)
    call luthier_close(tuning)

contains

    subroutine sweep(tile_rows, tile_columns)
        integer(c_int), intent(in) :: tile_rows, tile_columns
        integer :: row, column, i, j
        do column = 1, n, tile_columns
            do row = 1, n, tile_rows
                do j = column, min(column + tile_columns - 1, n)
                    do i = row, min(row + tile_rows - 1, n)
                        after(i, j) = 0.2_c_double*(before(i, j) + before(i - 1, j) + before(i + 1, j) &
                            + before(i, j - 1) + before(i, j + 1))
                    end do
                end do
            end do
        end do
    end subroutine
end program

! On-line tuning of an MPI program in Fortran: luthier_online_mpi.h through iso_c_binding.
!
!     tuning = luthier_mpi_open(MPI_COMM_WORLD, "stencil", luthier_same)
!     call luthier_integer(tuning, "block", block, 8, 512, 8)          ! from the module luthier_online
!     call luthier_mpi_begin(tuning)
!     ...
!     call luthier_mpi_end(tuning)
!
! With the module mpi_f08 pass MPI_COMM_WORLD%mpi_val.
module luthier_online_mpi
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_loc, c_null_char, c_null_ptr, c_ptr
    implicit none
    private
    public :: luthier_mpi_open, luthier_mpi_close, luthier_mpi_begin, luthier_mpi_end, luthier_mpi_fetch
    public :: luthier_mpi_report, luthier_mpi_best

    ! One configuration on all ranks, or one on each: see luthier_online_mpi.h.
    integer(c_int), parameter, public :: luthier_same = 0, luthier_each = 1

    interface
        function c_open(communicator, address, session, mode) bind(C, name="luthier_mpi_open_f") result(tuning)
            import :: c_int, c_ptr
            integer(c_int), value :: communicator, mode
            type(c_ptr), value :: address, session
            type(c_ptr) :: tuning
        end function
        function c_begin(tuning) bind(C, name="luthier_mpi_begin") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        function c_end(tuning) bind(C, name="luthier_mpi_end") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        function c_fetch(tuning) bind(C, name="luthier_mpi_fetch") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        function c_report(tuning, value) bind(C, name="luthier_mpi_report") result(done)
            import :: c_double, c_int, c_ptr
            type(c_ptr), value :: tuning
            real(c_double), value :: value
            integer(c_int) :: done
        end function
        function c_best(tuning) bind(C, name="luthier_mpi_best") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        subroutine luthier_mpi_close(tuning) bind(C, name="luthier_mpi_close")
            import :: c_ptr
            type(c_ptr), value :: tuning
        end subroutine
    end interface

contains

    function luthier_mpi_open(communicator, session, mode, address) result(tuning)
        integer, intent(in) :: communicator
        character(*), intent(in) :: session
        integer(c_int), intent(in) :: mode
        character(*), intent(in), optional :: address
        type(c_ptr) :: tuning
        character(len=:, kind=c_char), allocatable, target :: name, place
        name = trim(session)//c_null_char
        if (present(address)) then
            place = trim(address)//c_null_char
            tuning = c_open(int(communicator, c_int), c_loc(place), c_loc(name), mode)
        else
            tuning = c_open(int(communicator, c_int), c_null_ptr, c_loc(name), mode)
        end if
    end function

    subroutine luthier_mpi_begin(tuning)
        type(c_ptr), intent(in) :: tuning
        integer(c_int) :: done
        done = c_begin(tuning)
    end subroutine

    subroutine luthier_mpi_end(tuning)
        type(c_ptr), intent(in) :: tuning
        integer(c_int) :: done
        done = c_end(tuning)
    end subroutine

    ! Whether the service chose the values.
    logical function luthier_mpi_fetch(tuning)
        type(c_ptr), intent(in) :: tuning
        luthier_mpi_fetch = c_fetch(tuning) /= 0
    end function

    subroutine luthier_mpi_report(tuning, value)
        type(c_ptr), intent(in) :: tuning
        real(c_double), intent(in) :: value
        integer(c_int) :: done
        done = c_report(tuning, value)
    end subroutine

    ! Whether the variables of all ranks now hold the best configuration known to the service or, without it, to rank 0.
    logical function luthier_mpi_best(tuning)
        type(c_ptr), intent(in) :: tuning
        luthier_mpi_best = c_best(tuning) /= 0
    end function
end module

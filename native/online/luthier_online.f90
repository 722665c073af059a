! On-line tuning for Fortran: luthier_online.h through iso_c_binding.
!
!     integer(c_int), target :: block = 64          ! tuned variables need the attribute target
!     tuning = luthier_open("stencil")
!     call luthier_integer(tuning, "block", block, 8, 512, 8)
!     do step = 1, steps
!         call luthier_begin(tuning)
!         call work(block)
!         call luthier_end(tuning)
!     end do
!     call luthier_close(tuning)
!
! The number of a choice starts at 0, as in C.
module luthier_online
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_int64_t, c_loc, c_null_char, &
        c_null_ptr, c_ptr, c_size_t
    implicit none
    private
    public :: luthier_open, luthier_close, luthier_integer, luthier_integer_log, luthier_real, luthier_real_log
    public :: luthier_choice, luthier_ordered, luthier_constraint, luthier_setting, luthier_begin, luthier_end
    public :: luthier_fetch, luthier_report, luthier_report_failed, luthier_best, luthier_phase, luthier_error
    public :: luthier_timeout_ms, luthier_quiet
    public :: c_double, c_int, c_int64_t, c_ptr

    ! A variable of the default kind, or of 64 bits.
    interface luthier_integer
        module procedure declare_integer, declare_integer64
    end interface
    interface luthier_integer_log
        module procedure declare_integer_log, declare_integer64_log
    end interface

    interface
        function c_open(address, session) bind(C, name="luthier_open") result(tuning)
            import :: c_ptr
            type(c_ptr), value :: address, session
            type(c_ptr) :: tuning
        end function
        subroutine luthier_close(tuning) bind(C, name="luthier_close")
            import :: c_ptr
            type(c_ptr), value :: tuning
        end subroutine
        function c_integer(tuning, name, variable, low, high, step) bind(C, name="luthier_integer") result(done)
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: tuning, variable
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: low, high, step
            integer(c_int) :: done
        end function
        function c_integer_log(tuning, name, variable, low, high, factor) bind(C, name="luthier_integer_log") &
            result(done)
            import :: c_char, c_double, c_int, c_ptr
            type(c_ptr), value :: tuning, variable
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: low, high
            real(c_double), value :: factor
            integer(c_int) :: done
        end function
        function c_integer64(tuning, name, variable, low, high, step) bind(C, name="luthier_integer64") result(done)
            import :: c_char, c_int, c_int64_t, c_ptr
            type(c_ptr), value :: tuning, variable
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), value :: low, high, step
            integer(c_int) :: done
        end function
        function c_integer64_log(tuning, name, variable, low, high, factor) bind(C, name="luthier_integer64_log") &
            result(done)
            import :: c_char, c_double, c_int, c_int64_t, c_ptr
            type(c_ptr), value :: tuning, variable
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), value :: low, high
            real(c_double), value :: factor
            integer(c_int) :: done
        end function
        function c_real(tuning, name, variable, low, high, step) bind(C, name="luthier_real") result(done)
            import :: c_char, c_double, c_int, c_ptr
            type(c_ptr), value :: tuning, variable
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), value :: low, high, step
            integer(c_int) :: done
        end function
        function c_real_log(tuning, name, variable, low, high, factor) bind(C, name="luthier_real_log") result(done)
            import :: c_char, c_double, c_int, c_ptr
            type(c_ptr), value :: tuning, variable
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), value :: low, high, factor
            integer(c_int) :: done
        end function
        function c_choice(tuning, name, variable, values) bind(C, name="luthier_choice") result(done)
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: tuning, variable
            character(kind=c_char), intent(in) :: name(*), values(*)
            integer(c_int) :: done
        end function
        function c_ordered(tuning, name, variable, values) bind(C, name="luthier_ordered") result(done)
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: tuning, variable
            character(kind=c_char), intent(in) :: name(*), values(*)
            integer(c_int) :: done
        end function
        function c_constraint(tuning, text) bind(C, name="luthier_constraint") result(done)
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: tuning
            character(kind=c_char), intent(in) :: text(*)
            integer(c_int) :: done
        end function
        function c_setting(tuning, name, value) bind(C, name="luthier_setting") result(done)
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: tuning
            character(kind=c_char), intent(in) :: name(*), value(*)
            integer(c_int) :: done
        end function
        function c_begin(tuning) bind(C, name="luthier_begin") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        function c_end(tuning) bind(C, name="luthier_end") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        function c_fetch(tuning) bind(C, name="luthier_fetch") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        function c_report(tuning, value) bind(C, name="luthier_report") result(done)
            import :: c_double, c_int, c_ptr
            type(c_ptr), value :: tuning
            real(c_double), value :: value
            integer(c_int) :: done
        end function
        function c_report_failed(tuning) bind(C, name="luthier_report_failed") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        function c_best(tuning) bind(C, name="luthier_best") result(done)
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int) :: done
        end function
        function c_phase(tuning) bind(C, name="luthier_phase") result(text)
            import :: c_ptr
            type(c_ptr), value :: tuning
            type(c_ptr) :: text
        end function
        function c_error(tuning) bind(C, name="luthier_error") result(text)
            import :: c_ptr
            type(c_ptr), value :: tuning
            type(c_ptr) :: text
        end function
        subroutine luthier_timeout_ms(tuning, milliseconds) bind(C, name="luthier_timeout_ms")
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int), value :: milliseconds
        end subroutine
        subroutine luthier_quiet(tuning, quiet) bind(C, name="luthier_quiet")
            import :: c_int, c_ptr
            type(c_ptr), value :: tuning
            integer(c_int), value :: quiet
        end subroutine
        function c_strlen(text) bind(C, name="strlen") result(length)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
    end interface

contains

    ! Without an address: $LUTHIER_ONLINE, else the default socket.
    function luthier_open(session, address) result(tuning)
        character(*), intent(in) :: session
        character(*), intent(in), optional :: address
        type(c_ptr) :: tuning
        character(len=:, kind=c_char), allocatable, target :: name, place
        name = trim(session)//c_null_char
        if (present(address)) then
            place = trim(address)//c_null_char
            tuning = c_open(c_loc(place), c_loc(name))
        else
            tuning = c_open(c_null_ptr, c_loc(name))
        end if
    end function

    subroutine declare_integer(tuning, name, variable, low, high, step)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name
        integer(c_int), intent(inout), target :: variable
        integer(c_int), intent(in) :: low, high, step
        integer(c_int) :: done
        done = c_integer(tuning, trim(name)//c_null_char, c_loc(variable), low, high, step)
    end subroutine

    subroutine declare_integer64(tuning, name, variable, low, high, step)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name
        integer(c_int64_t), intent(inout), target :: variable
        integer(c_int64_t), intent(in) :: low, high, step
        integer(c_int) :: done
        done = c_integer64(tuning, trim(name)//c_null_char, c_loc(variable), low, high, step)
    end subroutine

    subroutine declare_integer_log(tuning, name, variable, low, high, factor)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name
        integer(c_int), intent(inout), target :: variable
        integer(c_int), intent(in) :: low, high
        real(c_double), intent(in) :: factor
        integer(c_int) :: done
        done = c_integer_log(tuning, trim(name)//c_null_char, c_loc(variable), low, high, factor)
    end subroutine

    subroutine declare_integer64_log(tuning, name, variable, low, high, factor)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name
        integer(c_int64_t), intent(inout), target :: variable
        integer(c_int64_t), intent(in) :: low, high
        real(c_double), intent(in) :: factor
        integer(c_int) :: done
        done = c_integer64_log(tuning, trim(name)//c_null_char, c_loc(variable), low, high, factor)
    end subroutine

    subroutine luthier_real(tuning, name, variable, low, high, step)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name
        real(c_double), intent(inout), target :: variable
        real(c_double), intent(in) :: low, high, step
        integer(c_int) :: done
        done = c_real(tuning, trim(name)//c_null_char, c_loc(variable), low, high, step)
    end subroutine

    subroutine luthier_real_log(tuning, name, variable, low, high, factor)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name
        real(c_double), intent(inout), target :: variable
        real(c_double), intent(in) :: low, high, factor
        integer(c_int) :: done
        done = c_real_log(tuning, trim(name)//c_null_char, c_loc(variable), low, high, factor)
    end subroutine

    subroutine luthier_choice(tuning, name, variable, values)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name, values
        integer(c_int), intent(inout), target :: variable
        integer(c_int) :: done
        done = c_choice(tuning, trim(name)//c_null_char, c_loc(variable), trim(values)//c_null_char)
    end subroutine

    subroutine luthier_ordered(tuning, name, variable, values)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name, values
        integer(c_int), intent(inout), target :: variable
        integer(c_int) :: done
        done = c_ordered(tuning, trim(name)//c_null_char, c_loc(variable), trim(values)//c_null_char)
    end subroutine

    subroutine luthier_constraint(tuning, text)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: text
        integer(c_int) :: done
        done = c_constraint(tuning, trim(text)//c_null_char)
    end subroutine

    subroutine luthier_setting(tuning, name, value)
        type(c_ptr), intent(in) :: tuning
        character(*), intent(in) :: name, value
        integer(c_int) :: done
        done = c_setting(tuning, trim(name)//c_null_char, trim(value)//c_null_char)
    end subroutine

    subroutine luthier_begin(tuning)
        type(c_ptr), intent(in) :: tuning
        integer(c_int) :: done
        done = c_begin(tuning)
    end subroutine

    subroutine luthier_end(tuning)
        type(c_ptr), intent(in) :: tuning
        integer(c_int) :: done
        done = c_end(tuning)
    end subroutine

    ! Whether the service chose the values.
    logical function luthier_fetch(tuning)
        type(c_ptr), intent(in) :: tuning
        luthier_fetch = c_fetch(tuning) /= 0
    end function

    subroutine luthier_report(tuning, value)
        type(c_ptr), intent(in) :: tuning
        real(c_double), intent(in) :: value
        integer(c_int) :: done
        done = c_report(tuning, value)
    end subroutine

    subroutine luthier_report_failed(tuning)
        type(c_ptr), intent(in) :: tuning
        integer(c_int) :: done
        done = c_report_failed(tuning)
    end subroutine

    ! Whether the variables now hold the best configuration known to the service or, without it, to this program.
    logical function luthier_best(tuning)
        type(c_ptr), intent(in) :: tuning
        luthier_best = c_best(tuning) /= 0
    end function

    function luthier_phase(tuning) result(text)
        type(c_ptr), intent(in) :: tuning
        character(:), allocatable :: text
        text = fortran_text(c_phase(tuning))
    end function

    function luthier_error(tuning) result(text)
        type(c_ptr), intent(in) :: tuning
        character(:), allocatable :: text
        text = fortran_text(c_error(tuning))
    end function

    function fortran_text(from) result(text)
        type(c_ptr), intent(in) :: from
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: i, length
        length = int(c_strlen(from))
        call c_f_pointer(from, letters, [length])
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = letters(i)
        end do
    end function
end module

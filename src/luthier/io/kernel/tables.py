"""Tables of functions of the C library, MPI and HDF5."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# One letter for each argument: r read, w written, m both, b written to a file byte by byte, . neither, * by its type.
MODES = {
    "read": ".w.", "pread": ".w..", "pread64": ".w..", "write": ".b.", "pwrite": ".b..", "pwrite64": ".b..",
    "fread": "w...", "fwrite": "b...", "fgets": "w..", "getline": "mm.", "fgetc": ".", "getc": ".", "free": ".",
    "memset": "w..", "memcpy": "wr.", "memmove": "wr.", "strcpy": "wr", "strncpy": "wr.", "stpcpy": "wr",
    "snprintf": "w.r", "sprintf": "wr", "vsnprintf": "w.r.", "gettimeofday": "ww", "clock_gettime": ".w",
    "stat": "rw", "fstat": ".w", "lstat": "rw", "gethostname": "w.", "getcwd": "w.", "time": "w",
    "strtol": "rw.", "strtoll": "rw.", "strtoul": "rw.", "strtoull": "rw.", "strtod": "rw", "strtof": "rw",
    "modf": ".w", "frexp": ".w", "sincos": ".ww", "posix_memalign": "w..", "realloc": "..", "qsort": "m..*",
    "MPI_Init": "..", "MPI_Init_thread": "...w", "MPI_Comm_rank": ".w", "MPI_Comm_size": ".w",
    "MPI_Recv": "w.....w", "MPI_Irecv": "w.....w", "MPI_Send": "r.....", "MPI_Isend": "r.....w",
    "MPI_Sendrecv": "r....w.....w", "MPI_Wait": "mw", "MPI_Waitall": ".mw", "MPI_Probe": "...w", "MPI_Iprobe": "...ww",
    "MPI_Get_count": "r.w", "MPI_Reduce": "rw.....", "MPI_Allreduce": "rw....", "MPI_Scan": "rw....",
    "MPI_Exscan": "rw....", "MPI_Gather": "r..w....", "MPI_Gatherv": "r..wrr...", "MPI_Allgather": "r..w...",
    "MPI_Allgatherv": "r..wrr..", "MPI_Scatter": "r..w....", "MPI_Scatterv": "rrr.w....", "MPI_Alltoall": "r..w...",
    "MPI_Alltoallv": "rrr.wrr..", "MPI_Comm_split": "...w", "MPI_Comm_dup": ".w", "MPI_Cart_create": "..rr.w",
    "MPI_Cart_coords": "...w", "MPI_Cart_shift": "...ww", "MPI_Cart_get": "..www", "MPI_Type_contiguous": "..w",
    "MPI_Type_vector": "....w", "MPI_Type_create_subarray": ".rrr..w", "MPI_Type_size": ".w", "MPI_Alloc_mem": "..w",
    "MPI_Get_processor_name": "ww", "MPI_File_open": ".r..w", "MPI_File_get_size": ".w",
    "MPI_File_write": ".b..w", "MPI_File_write_all": ".b..w", "MPI_File_write_at": "..b..w",
    "MPI_File_write_at_all": "..b..w", "MPI_File_write_shared": ".b..w", "MPI_File_write_ordered": ".b..w",
    "MPI_File_read": ".w..w", "MPI_File_read_all": ".w..w", "MPI_File_read_at": "..w..w",
    "MPI_File_read_at_all": "..w..w", "MPI_File_read_shared": ".w..w", "MPI_File_read_ordered": ".w..w",
    "MPI_Dims_create": "..m", "MPI_Finalized": "w", "MPI_Initialized": "w",
    "H5Dwrite": ".....b", "H5Dread": ".....w", "H5Aread": "..w", "H5Awrite": "..r", "H5Screate_simple": ".rr",
    "H5Sget_simple_extent_dims": ".ww", "H5Pget_chunk": "..w", "H5Eset_auto2": "..*", "H5Eset_auto1": "..*",
    "getopt": ".rr", "getopt_long": ".rrrw",
}  # fmt: skip

GIVES_NEW = _words("""
    aligned_alloc calloc malloc memalign opendir pvalloc strdup strndup tempnam valloc wcsdup
""")  # what these return is not part of any argument; any other pointer may be
SHARED_RESULTS = {
    name: names[0]
    for names in (
        ("asctime", "ctime"),
        ("gmtime", "localtime"),
        *(
            (name,)
            for name in ("crypt", "hstrerror", "inet_ntoa", "localeconv", "nl_langinfo", "setlocale", "strerror")
        ),
        ("getpwnam", "getpwuid", "getpwent"),
        ("getgrnam", "getgrgid", "getgrent"),
    )
    for name in names
}  # one buffer of the C library, which each call fills again
MOVES_CONTENT = _words("""
    memcpy memmove qsort realloc reallocarray
""")  # pointers inside the data are copied
POINTER_INTO_FIRST = _words("""
    strtod strtof strtol strtold strtoll strtoul strtoull
""")
ALLOCATORS = _words("""
    aligned_alloc calloc malloc memalign posix_memalign realloc strdup strndup valloc
""")
EXITS = _words("""
    MPI_Abort _Exit __assert_fail _exit abort err errx exit quick_exit
""")
FAILURES = _words("""
    MPI_Abort __assert_fail abort err errx
""")

# Functions that make the analysis unsound, by what they use.
REFUSED = {
    "setjmp": _words("setjmp _setjmp __sigsetjmp __builtin_setjmp"),
    "longjmp": _words("longjmp siglongjmp __builtin_longjmp"),
    "memory-mapped I/O": _words("mmap mmap64"),
    "shared memory": _words("shmat"),
    "vfork": _words("vfork"),
    "swapcontext": _words("swapcontext makecontext"),
    "asynchronous I/O": _words("aio_write aio_read lio_listio"),
    "a signal handler": _words("sigaction"),
    "asynchronous MPI-IO": _words("MPI_File_iread MPI_File_iwrite"),
    "clone": _words("clone"),
    "a thread": _words("pthread_create thrd_create"),
    "a table or tree of the C library": _words(
        "hcreate hcreate_r hsearch hsearch_r tsearch tfind tdelete twalk insque remque"
    ),
}
REFUSED_PREFIXES = {
    "one-sided communication": ("MPI_Win_", "MPI_Put", "MPI_Get_acc", "MPI_Accumulate", "MPI_Rput", "MPI_Rget"),
    "asynchronous MPI-IO": ("MPI_File_iread", "MPI_File_iwrite"),
    "the MPI tool interface": ("MPI_T_",),
    "the MPI profiling interface": ("PMPI_",),
    "a lock of OpenMP": ("omp_set_lock", "omp_set_nest_lock", "omp_test_lock"),
}

# Headers of the C library whose functions do no I/O, and those whose functions do; then the exceptions.
QUIET_HEADERS = _words("""
    alloca.h assert.h cmathcalls.h complex.h ctype.h errno.h fenv.h float.h getopt.h getopt_core.h getopt_ext.h
    getopt_posix.h inttypes.h libgen.h limits.h locale.h malloc.h math.h mathcalls-helper-functions.h mathcalls-
    narrow.h mathcalls.h mathinline.h omp.h pthread.h resource.h sched.h search.h signal.h stdlib-bsearch.h stdlib-
    float.h stdlib.h string.h string_fortified.h strings.h sysinfo.h time.h times.h utsname.h wchar.h wctype.h
""")
LOUD_HEADERS = _words("""
    dirent.h fcntl.h file.h ftw.h glob.h ioctl.h mman.h mount.h poll.h select.h sendfile.h socket.h stat.h statfs.h
    statvfs.h stdio.h stdio2.h stdio_ext.h types.h uio.h unistd.h utime.h vfs.h wait.h xattr.h
""")
LOUD_IN_QUIET = _words("""
    getloadavg mkdtemp mkostemp mkstemp mkstemps realpath system
""")
QUIET_IN_LOUD = _words("""
    alarm asprintf confstr crypt getegid geteuid getgid gethostname getlogin getlogin_r getopt getpagesize getpid
    getppid gettid getuid isatty nice optarg pause perror printf putchar putchar_unlocked puts sleep snprintf
    sprintf sscanf swab sysconf usleep vasprintf vprintf vsnprintf vsprintf vsscanf
""")

TO_STREAM = {
    "fprintf": 0,
    "vfprintf": 0,
    "fputs": 1,
    "fputc": 1,
    "putc": 1,
    "fwrite": 3,
    "fflush": 0,
    "setlinebuf": 0,
}  # which argument is the stream
TO_OUTPUT = _words("printf vprintf puts putchar putchar_unlocked perror")
REDIRECTIONS = _words("freopen dup2 dup3 dup")
TERMINALS = _words("""
    stderr stdout
""")
PRINTS = _words("""
    asprintf dprintf fprintf printf snprintf sprintf syslog
""")
SCANS = _words("""
    fscanf scanf sscanf
""")
ALWAYS = tuple(
    sorted(
        _words("""
    MPI_Init MPI_Finalize MPI_Info_ MPI_Comm_set_ MPI_Buffer_ MPI_Register_datarep
""")
    )
)

# Hidden state of the C library: each of these functions reads and changes it.
_STATES = {
    "random": "rand srand random srandom drand48 erand48 lrand48 nrand48 mrand48 jrand48 srand48 seed48 i"
    "nitstate setstate",
    "tokens": "strtok",
    "environment": "getenv secure_getenv setenv putenv unsetenv clearenv",
    "options": "getopt getopt_long getopt_long_only",
    "locale": "setlocale uselocale",
    "threads": "omp_set_num_threads omp_get_max_threads omp_set_dynamic omp_set_nested omp_get_num_threads",
    "rounding": "fesetround fesetenv feenableexcept",
    "zone": "tzset",
}
STATE_OF = {name: state for state, names in _STATES.items() for name in names.split()}
STATE_VARIABLES = dict.fromkeys(("optarg", "optind", "opterr", "optopt"), "options")

RELEASES = _words("""
    cfree free
""")
COMPLETIONS = tuple(
    sorted(
        _words("""
    MPI_Wait MPI_Test MPI_Request_free MPI_Comm_free MPI_Type_free MPI_Group_free MPI_Op_free MPI_Cancel MPI_Start
    MPI_Free_mem
""")
    )
)
POINT_TO_POINT = tuple(
    sorted(
        _words("""
    MPI_Send MPI_Ssend MPI_Bsend MPI_Rsend MPI_Isend MPI_Issend MPI_Ibsend MPI_Irsend MPI_Recv MPI_Irecv
    MPI_Sendrecv MPI_Probe MPI_Iprobe MPI_Mprobe MPI_Mrecv MPI_Improbe MPI_Imrecv
""")
    )
)
TAGS = {
    "MPI_Sendrecv": (4, 9),
    "MPI_Sendrecv_replace": (4, 6),
    "MPI_Probe": (1,),
    "MPI_Iprobe": (1,),
}  # which arguments are tags, if not the fifth
COLLECTIVES = tuple(
    sorted(
        _words("""
    MPI_Bcast MPI_Reduce MPI_Allreduce MPI_Scan MPI_Exscan MPI_Gather MPI_Allgather MPI_Scatter MPI_Alltoall
    MPI_Barrier MPI_Comm_split MPI_Comm_dup MPI_Comm_create MPI_Cart_create MPI_Graph_create MPI_Dist_graph
    MPI_Neighbor_ MPI_Ibcast MPI_Iallreduce MPI_Ireduce MPI_Igather MPI_Iallgather MPI_Iscatter MPI_Ialltoall
    MPI_Ibarrier MPI_Iscan MPI_Iexscan MPI_Cart_sub MPI_Intercomm_
""")
    )
)
FILTERS = tuple(
    sorted(
        _words("""
    H5Pset_deflate H5Pset_szip H5Pset_filter H5Pset_nbit H5Pset_scaleoffset H5Pset_fletcher32
""")
    )
)
TYPES_WITH_ADDRESSES = ("H5Rcreate", "H5Tvlen_create")
CHANNELS = _words("""
    MPI_Comm_spawn MPI_Comm_spawn_multiple dup2 dup3 execl execle execlp execv execve execvp execvpe fexecve
    fmemopen fopencookie fork memfd_create mkfifo mkfifoat mknod mknodat open_memstream openpty pipe pipe2 popen
    posix_openpt posix_spawn posix_spawnp socket socketpair splice system tee vmsplice
""")  # through which data that is written reaches more than a file
READS = _words("""
    fread fread_unlocked pread pread64 preadv preadv64 read readv
""")
READS_OF_LIBRARIES = ("H5DOread", "H5Dread", "H5IM", "H5LTread", "H5PT", "H5TB", "MPI_File_read")
READS_TEXT = _words("""
    fgetc fgetc_unlocked fgets fgets_unlocked fgetwc fgetws fscanf fwscanf getc getc_unlocked getdelim getline getw
    getwc vfscanf
""")  # the flow of control depends on the content

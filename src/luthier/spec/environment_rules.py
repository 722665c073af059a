"""Which environment variables luthier never sets for a job of another user.

A recommended configuration comes from an experiment of some user, and is used in jobs of others. A variable that makes
programs load a library, read a start-up file or search another folder would run that user's programs there. An
administrator has approved what is set; this list is the second line of defence. The lists of the C program and of the
Lua plug-in are made from it.
"""

import re

LONGEST_NAME = 100
LONGEST_VALUE = 256
MOST_VARIABLES = 64

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VALUE_SIGNS = "_.:+=@%^-,"
"""What a value may contain beside letters and digits."""

_VALUE = re.compile(f"[A-Za-z0-9{re.escape(VALUE_SIGNS)}]*")

REFUSED = """
    LD_* DYLD_* LUTHIER* GCONV* GLIBC_* MALLOC_TRACE NSS_* FAKEROOT* FAKECHROOT* CUDA_INJECTION* *PRELOAD* *PATH
    *LIBRARY *LIBRARIES *_LIB *_LIBS *LIBDIR *PLUGIN* *_MODULES *DRIVERS HDF5_DRIVER* HDF5_VOL* OMP_TOOL*
    SLURM* SBATCH* SRUN* SALLOC* PMI* PRTE* PALS_* ALPS_* APRUN* MPIRUN* MPIEXEC* HYDRA_* I_MPI_HYDRA* I_MPI_MPIRUN*
    I_MPI_JOB_* I_MPI_PROCESS_MANAGER MV2_SSH* OPAL_* ORTE_*
    OMPI_MCA_*AGENT* OMPI_MCA_PLM* OMPI_MCA_*ORTE* OMPI_MCA_*PRTE* OMPI_MCA_*RSH* OMPI_MCA_ESS* OMPI_MCA_RAS*
    OMPI_MCA_FILEM* OMPI_MCA_ODLS* OMPI_MCA_SCHIZO* OMPI_MCA_MCA_* OMPI_MCA_*FILE OMPI_MCA_*FILES OMPI_MCA_*FILENAME
    OMPI_MCA_*DIR* OMPI_MCA_*PATH* OMPI_MCA_*COMMAND* OMPI_MCA_*CMD* OMPI_MCA_*EXEC* OMPI_MCA_*LAUNCH* OMPI_MCA_*SCRIPT*
    OMPI_MCA_*SERVER* OMPI_MCA_*URI* OMPI_MCA_*DEBUGGER*
    *PREFIX *_EXEC *EXEC_* *AGENT *LAUNCHER *LAUNCH_CMD *BOOTSTRAP* *DEBUGGER* *PROFILER* *WRAPPER* *_CMD *COMMAND
    *_PROG *_PROGRAM *BINARY *_BIN *_EXE *HELPER *_HOOK *_HOOKS *_SCRIPT
    BASH* ENV IFS PS4 SHELL SHELLOPTS *_SHELL PROMPT_COMMAND EDITOR *_EDITOR VISUAL BROWSER *PAGER* LESS LESS_*
    LESSOPEN LESSCLOSE MANOPT MANROFFOPT MAIL
    HOME USER LOGNAME PWD OLDPWD TMP TEMP *DIR *_HOME *_ROOT TERM TERMINFO* TERMCAP LANG LANGUAGE LC_* TZ INPUTRC
    *RC XDG_* DBUS_* DISPLAY
    *_OPTS *_OPTIONS *_OPTION *_OPT *OPTS *_DEFAULTS *_ARGS *FLAGS *_CONF *_CONFIG *_CNF *_CFG *_FILE *_FILES *FILENAME
    *_PROFILE *STARTUP* *INITFILE *_INIT *_SITE
    PYTHON* PIP_* CONDA_* IPYTHON* MPLBACKEND KERAS_BACKEND DASK_* PYSPARK* SPARK_SUBMIT* PERL* RUBY* GEM_*
    LUA* JAVA* _JAVA* JDK_* NODE_* NPM_* DENO_* PHP* ERL_* DOTNET_* CORECLR_* COMPLUS_* MONO_* R_LIBS* R_ENVIRON*
    R_PROFILE* JULIA_PROJECT
    R_DEFAULT_PACKAGES R_BROWSER R_PDFVIEWER TCL* BUNDLE_* TK_* RUSTC* CARGO_* GAWK* AWK* OCTAVE_* MATLAB_*
    CC CXX CPP FC F77 F90 LD AR AS NM *_CC *_CXX *_CPP *_FC *_F77 *_F90 *_LD NVCC* CCACHE_* DISTCC_* COMPILER_* GCC_*
    MAKE MAKEFLAGS MAKEFILES MAKE_* CMAKE_* PKG_CONFIG* GMON_* GCOV_* VALGRIND_* GDB_* PGI_TERM*
    GIT_* SVN_* HGEDITOR HGMERGE CVS_* RSYNC_* *RSH SSH* *_SSH SUDO* DOAS_* SYSTEMD_* MODULE* LMOD* KRB5* GPG* GNUPG*
    TAR_* TAPE GZIP BZIP BZIP2 XZ_* ZIP ZIPOPT UNZIP UNZIPOPT ZSTD_* GREP_* DIFF_*
    *_PROXY *PROXY HOSTALIASES LOCALDOMAIN RES_OPTIONS RESOLV* OPENSSL_* SSL_* SSLKEYLOGFILE CURL_* WGET* *_CA_BUNDLE
    *_URL *_URI *_ENDPOINT AWS_* DOCKER_* SINGULARITY* APPTAINER* PODMAN* CHARLIECLOUD_* PGHOST* PGPORT PGUSER
    PGDATABASE
    PGPASS* PGSERVICE* PGSSL* PGOPTIONS MYSQL_*
    LIBGL_* VK_* OCL_* OPENCL_* QT_* GTK_* GST_* GIO_* XKB* XAUTHORITY
""".split()  # noqa: SIM905 - a hundred pairs of quotes make it harder to read
"""Names in capital letters; `*` is any text. Small letters in a name count as capital ones."""


def problem_of_variable(name: str, value: str) -> str | None:
    """Why luthier does not set this variable in other people's jobs; None if it may."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        return f"{name[:40]!r} is not the name of an environment variable"
    if _is_refused(name.upper()):
        return f"{name} can change which programs and libraries a job uses"
    if len(value) > LONGEST_VALUE:
        return f"the value of {name} has more than {LONGEST_VALUE} characters"
    if not _VALUE.fullmatch(value):
        return f"the value of {name} has other characters than letters, digits and {' '.join(VALUE_SIGNS)}"
    return None


def _is_refused(name: str) -> bool:
    # One large expression would take 3 ms to compile, in every `luthier submit`: most names have no pattern's texts.
    likely = [one for one in REFUSED if all(text in name for text in one.split("*"))]
    return any(re.fullmatch(one.replace("*", ".*"), name) for one in likely)

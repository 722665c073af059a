# For mpirun on one machine, also with more ranks than processors, and as root in a container; read it with: . FILE
export OMPI_MCA_rmaps_base_oversubscribe=1
# Ranks that wait leave the processor to others; without this a small collective takes milliseconds.
[ "$(nproc)" -ge "${RANKS:-4}" ] || export OMPI_MCA_mpi_yield_when_idle=1
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

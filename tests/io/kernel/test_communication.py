"""Communication: what decides sizes is kept together with its partner, the rest is dropped."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.io.kernel.tiny import check

MPI = """\
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank = 0, ranks = 2, n = 0, m = 0;
    double local = 1, global = 0, halo[8];
    MPI_Init(&argc, &argv); // +
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); // +
    MPI_Comm_size(MPI_COMM_WORLD, &ranks); // %s
%s
    write(4, "abc", n); // +
    printf("%%d %%g %%g %%d", m, global, halo[0] + local, ranks); // -
    MPI_Finalize(); // +
    return 0;
}
"""
PROGRAMS = {
    "collectives in order": (
        "-",
        """\
    int mine = rank; // +
    MPI_Allreduce(&mine, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // +
    MPI_Allreduce(&local, &global, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); // -
    MPI_Bcast(&m, 1, MPI_INT, 0, MPI_COMM_WORLD); // -
""",
    ),
    "collectives in branches of the rank": (
        "-",
        """\
    if (rank == 0) { // +
        n = 3; // +
        MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD); // +
    }
    if (rank != 0) // +
        MPI_Bcast(&m, 1, MPI_INT, 0, MPI_COMM_WORLD); // +
""",
    ),
    "settings that one rank reads and sends to all": (
        "-",
        """\
    if (rank == 0) // +
        scanf("%%d", &m); // +
    MPI_Bcast(&m, 1, MPI_INT, 0, MPI_COMM_WORLD); // +
    if (m > 3) // +
        MPI_Allreduce(&rank, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // +
    if (m > 4) // -
        MPI_Allreduce(&local, &global, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); // -
""".replace("%%", "%"),
    ),
    "messages by tag": (
        "-",
        """\
    if (rank == 0) // +
        MPI_Send(&argc, 2, MPI_INT, 1, 5, MPI_COMM_WORLD); // +
    else
        MPI_Recv(&n, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // +
    MPI_Sendrecv(halo, 4, MPI_DOUBLE, ranks - 1, 7, halo + 4, 4, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, // -
                 MPI_STATUS_IGNORE);
""",
    ),
    "requests and their completion": (
        "-",
        """\
    MPI_Request wanted, other; // +
    lseek(4, rank, SEEK_SET); // +
    MPI_Irecv(&n, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, &wanted); // +
    MPI_Irecv(halo, 8, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, &other); // -
    MPI_Isend(&argc, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, &wanted); // +
    MPI_Wait(&wanted, MPI_STATUS_IGNORE); // +
    MPI_Wait(&other, MPI_STATUS_IGNORE); // -
""",
    ),
    "tokens and barriers that order I/O": (
        "-",
        """\
    char token = 0; // +
    if (rank > 0) // +
        MPI_Recv(&token, 1, MPI_CHAR, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // +
    write(4, "x", 1); // +
    MPI_Send(&token, 1, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD); // +
    MPI_Barrier(MPI_COMM_WORLD); // +
""",
    ),
    "a message of one element that is made of many": (
        "-",
        """\
    MPI_Datatype line; // -
    lseek(4, rank, SEEK_SET); // +
    MPI_Type_contiguous(4, MPI_DOUBLE, &line); // -
    MPI_Sendrecv(halo, 1, line, ranks - 1, 7, halo + 4, 1, line, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // -
    MPI_Send(&argc, 1, MPI_INT, 1, 5, MPI_COMM_WORLD); // +
""",
    ),
    "communicators and types": (
        "-",
        """\
    MPI_Comm row, unused; // +
    MPI_Datatype pair; // -
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row); // +
    MPI_Comm_dup(MPI_COMM_WORLD, &unused); // -
    MPI_Comm_rank(row, &n); // +
    MPI_Type_contiguous(2, MPI_INT, &pair); // -
    MPI_Type_commit(&pair); // -
    MPI_Comm_free(&row); // +
    MPI_Comm_free(&unused); // -
    MPI_Type_free(&pair); // -
""",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_communication(name: str, tmp_path: Path) -> None:
    if shutil.which("mpicc") is None:
        missing("mpicc is not installed; as root: sh tests/services.sh")
    size, body = PROGRAMS[name]
    check(tmp_path, MPI % (size, body), compiler="mpicc")

"""The digests of operations: they see offsets, sizes and order, and nothing else."""

from pathlib import Path

import pytest
from tests.io.io_runs import Libraries, compile_c

PROGRAM = """\
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char data[4096];
static int fd, other;

static void *in_thread(void *word) { return pwrite(fd, data, 10, 0) == 10 ? word : NULL; }

/* Each letter is an operation. */
int main(int count, char **words)
{
    pthread_t thread;
    int value;
    FILE *stream;
    fd = open("one", O_RDWR | O_CREAT | O_TRUNC, 0644);
    other = open("two", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (const char *at = words[count - 1]; *at != 0; at++)
        switch (*at) {
        case 'a': if (pwrite(fd, data, 10, 0) != 10) return 1; break;
        case 'b': if (pwrite(fd, data, 10, 100) != 10) return 1; break;
        case 'w': if (write(fd, data, 10) != 10) return 1; break;
        case 'v': if (write(fd, data, 20) != 20) return 1; break;
        case 'o': if (write(other, data, 10) != 10) return 1; break;
        case 's': fsync(fd); break;
        case 'l': lseek(fd, 7, SEEK_SET); break;
        case 'k': lseek(fd, 8, SEEK_SET); break;
        case 'c': memset(data, 'x', sizeof data); break;
        case 'e': stream = fopen("/etc/hostname", "r"); if (stream) fclose(stream); break;
        case 't': pthread_create(&thread, NULL, in_thread, data); pthread_join(thread, NULL); break;
        case 'n': stream = fopen("numbers", "w+"); fputs("1 2 3", stream); rewind(stream);
                  while (fscanf(stream, "%d", &value) == 1) continue;
                  fclose(stream); break;
        }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("order")
    (folder / "order.c").write_text(PROGRAM)
    return compile_c(folder / "order.c", folder / "order", "-pthread")


def digests(io: Libraries, program: Path, folder: Path, letters: str) -> tuple[str, str, str]:
    """Order of the process, order and operations of the first file; the folder is another one for each call."""
    place = folder / f"{letters}-{len(list(folder.iterdir()))}"
    place.mkdir()
    report = io.run([program, letters], place).of("order")
    [file] = [file for file in report["files"] if file["path"] == str(place / "one")]
    return report["order"], file["order"], file["operations"]


@pytest.mark.parametrize(("one", "other"), [("abws", "abws"), ("ab", "cab"), ("ab", "aeb"), ("w", "w")])
def test_the_same_operations_have_the_same_digests(
    io: Libraries, program: Path, tmp_path: Path, one: str, other: str
) -> None:
    assert digests(io, program, tmp_path, one) == digests(io, program, tmp_path, other)


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ("ab", "ba", (True, True, False)),
        ("wv", "vw", (True, True, True)),  # at other offsets
        ("a", "b", (True, True, True)),
        ("lw", "kw", (True, True, True)),
        ("as", "a", (True, True, True)),
        ("asb", "abs", (True, True, False)),
        ("ao", "oa", (True, False, False)),
        ("aa", "", (True, True, True)),
    ],
)
def test_other_operations_have_other_digests(
    io: Libraries, program: Path, tmp_path: Path, one: str, other: str, differs: tuple[bool, ...]
) -> None:
    pairs = zip(digests(io, program, tmp_path, one), digests(io, program, tmp_path, other), strict=True)
    assert tuple(first != second for first, second in pairs) == differs


def test_threads_are_reported(io: Libraries, program: Path, tmp_path: Path) -> None:
    assert "threads" not in io.run([program, "aa"], tmp_path).of("order")
    assert io.run([program, "at"], tmp_path).of("order")["threads"] is True


def test_fscanf_is_counted(io: Libraries, program: Path, tmp_path: Path) -> None:
    counted = io.run([program, "n"], tmp_path).posix(tmp_path / "numbers")
    assert (counted["reads"], counted["read_bytes"]) == (1, 5)

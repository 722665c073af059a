"""What docs/online-c.md shows, compiles, and every call it names exists."""

import re
from pathlib import Path

from tests.online.native.conftest import ROOT, SOURCES, STRICT, compiled, need

PAGE = (ROOT / "docs" / "online-c.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_every_call_exists_and_every_call_for_users_is_described() -> None:
    headers = [(SOURCES / name).read_text(encoding="utf-8") for name in ("luthier_online.h", "luthier_online_mpi.h")]
    declared = set(re.findall(r"\b(luthier_\w+)\(", re.sub(r"/\*.*?\*/", "", "".join(headers), flags=re.DOTALL)))
    named = set(re.findall(r"\b(luthier_\w+)\b(?!\.)", PAGE)) - {"luthier_online", "luthier_online_mpi"}
    assert named <= declared, named - declared
    users, _, _ = headers[0].partition("/* For code that speaks for several processes")
    assert set(re.findall(r"\b(luthier_\w+)\(luthier_online \*", users)) <= named


def test_the_c_examples_compile(tmp_path: Path) -> None:
    need("cc", "mpicc")
    for number, block in enumerate(blocks("c")):
        include, _, body = block.partition("\n")
        words = "static void work(int n) { (void)n; }\nstatic void advance(int n) { (void)n; }\n"
        used = words.splitlines()[number]
        source = tmp_path / f"example{number}.c"
        source.write_text(
            f"{include}\n{used}\nint main(void)\n{{\nint steps = 1, depth = 1;\n(void)depth;\n{body}return 0;\n}}\n"
        )
        compiled(source.with_suffix(".o"), *STRICT, f"-I{SOURCES}", "-c", source, compiler=("cc", "mpicc")[number])
    assert len(blocks("c")) == 2


def test_the_fortran_example_compiles(tmp_path: Path) -> None:
    need("gfortran")
    (block,) = blocks("fortran")
    used, declared, rest = block.split("\n", 1)[0], *block.split("\n", 1)[1].split("tuning = ", 1)
    source = tmp_path / "example.f90"
    tail = "contains\nsubroutine work(n)\ninteger(c_int), intent(in) :: n\nprint *, n\nend subroutine\n"
    source.write_text(
        f"program example\n{used}\nimplicit none\n{declared}integer :: step, steps = 1\n"
        f"tuning = {rest}{tail}end program\n"
    )
    words = ["-std=f2008", "-Wall", "-Wextra", "-Werror", f"-J{tmp_path}", "-c"]
    compiled(tmp_path / "module.o", *words, SOURCES / "luthier_online.f90", compiler="gfortran")
    compiled(tmp_path / "example.o", *words, source, compiler="gfortran")

"""Files, signals and commands that set the parameters of a running program."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from luthier.errors import InvalidInputError, RefusedError, UnavailableError
from luthier.online.unchanged.program_settings import ProgramSettings, check_used, reload_command, reload_signal
from luthier.online.unchanged.server_process import ServerProcess, TunedProgram
from luthier.online.unchanged.written_file import replace_file, written_file
from luthier.space import Choice, Integer, Space

SPACE = Space(Integer("workers", 1, 16, default=4), Choice("mode", ["safe", "it's fast"]))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    template, target = tmp_path / "app.conf.in", tmp_path / "app.conf"
    template.write_text("# {{kept}}\nworkers = {workers};\nmode = {mode} {other text}\n")
    target.write_text("workers = 3; # by hand\n")
    target.chmod(0o640)
    return template, target


def settings(files: tuple[Path, Path], command: str, *, shell: bool = False) -> ProgramSettings:
    folder = files[0].parent / "copies"
    folder.mkdir(exist_ok=True)
    file = written_file(f"{files[0]}:{files[1]}")
    return ProgramSettings(SPACE, [file], reload_command(command, SPACE, 20.0, shell=shell), folder)


def test_a_file_is_written_and_the_original_put_back(files: tuple[Path, Path]) -> None:
    target = files[1]
    program = settings(files, f"cp {target} {target}.seen")
    (target.parent / ".app.conf.1a2b.luthier").write_text("of a luthier that was killed")
    program.keep_originals()
    program.apply(SPACE.check({"workers": 8, "mode": "it's fast"}))
    written = "# {kept}\nworkers = 8;\nmode = it's fast {other text}\n"
    assert target.read_text() == written == Path(f"{target}.seen").read_text()
    assert target.stat().st_mode & 0o777 == 0o640
    program.keep_originals()  # a second start keeps the first copy
    program.apply(None)
    assert target.read_text() == "workers = 3; # by hand\n" == Path(f"{target}.seen").read_text()
    assert target.stat().st_mode & 0o777 == 0o640
    program.forget_restored()
    assert list(program.copies.iterdir()) == []
    assert not list(target.parent.glob(".app*")), "no temporary file is left"
    assert (target.parent / "app.conf.in").exists()


def test_copies_stay_while_the_file_is_not_the_original(files: tuple[Path, Path]) -> None:
    program = settings(files, "true")
    program.keep_originals()
    program.apply(SPACE.default)
    program.forget_restored()
    assert [path.read_text() for path in program.copies.iterdir()] == ["workers = 3; # by hand\n"]


def test_a_file_that_was_not_there_is_deleted_again(files: tuple[Path, Path]) -> None:
    files[1].unlink()
    program = settings(files, "true")
    program.keep_originals()
    program.apply(SPACE.default)
    assert files[1].exists()
    program.apply(None)
    assert not files[1].exists()
    program.forget_restored()
    assert list(program.copies.iterdir()) == []


def test_a_symbolic_link_stays_one(files: tuple[Path, Path], tmp_path: Path) -> None:
    link = tmp_path / "enabled"
    link.symlink_to(files[1])
    program = settings((files[0], link), "true")
    program.write(SPACE.default)
    assert link.is_symlink()
    assert "workers = 4" in files[1].read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(files: tuple[Path, Path]) -> None:
    os.chown(files[1], 65534, 65534)
    replace_file(files[1], b"new")
    assert (files[1].stat().st_uid, files[1].stat().st_gid) == (65534, 65534)


def test_a_file_that_cannot_be_written_is_not_changed(tmp_path: Path) -> None:
    target = tmp_path / "gone" / "app.conf"
    target.parent.mkdir()
    target.parent.rmdir()
    with pytest.raises(UnavailableError, match="it was not changed"):
        replace_file(target, b"new")


def test_a_refusal_quotes_the_program(files: tuple[Path, Path]) -> None:
    program = settings(files, "sh -c 'echo unknown directive >&2; exit 1'")
    with pytest.raises(RefusedError, match="exit code 1: unknown directive"):
        program.apply(SPACE.default)


def test_values_in_a_command_are_arguments_and_quoted_in_a_shell(files: tuple[Path, Path], tmp_path: Path) -> None:
    config = SPACE.check({"workers": 2, "mode": "it's fast"})
    for shell, command in (
        (False, f"{sys.executable} -c 'import sys; open(sys.argv[1], \"w\").write(sys.argv[2])' {tmp_path}/a {{mode}}"),
        (True, f"printf %s {{mode}} > {tmp_path}/a"),
    ):
        (tmp_path / "a").unlink(missing_ok=True)
        settings(files, command, shell=shell).apply(config)
        assert (tmp_path / "a").read_text() == "it's fast"


def test_a_value_that_a_shell_would_read_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="cannot be quoted"):
        reload_command("echo `{mode}`", SPACE, 1.0, shell=True)


def test_a_reload_that_hangs_is_refused_after_its_time(files: tuple[Path, Path]) -> None:
    folder = files[0].parent
    program = ProgramSettings(SPACE, [], reload_command("sleep 600", SPACE, 0.2, shell=False), folder)
    with pytest.raises(RefusedError, match=r"took longer than 0.2 s"):
        program.apply(SPACE.default)


def test_a_command_that_leaves_a_server_behind_does_not_hang(tmp_path: Path) -> None:
    text = f"sh -c 'sleep 60 & echo $! > {tmp_path}/pid'"
    ProgramSettings(SPACE, [], reload_command(text, SPACE, 20.0, shell=False), tmp_path).apply(SPACE.default)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


COUNTS = """
import signal, sys, time
seen = 0
def reload(*_):
    global seen
    seen += 1
    open(sys.argv[1], "w").write(str(seen))
signal.signal(signal.SIGHUP, reload)
print("ready", flush=True)
while True:
    time.sleep(1)
"""


def test_a_signal_reaches_the_process_of_the_pid_file(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", COUNTS, str(tmp_path / "seen")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        (tmp_path / "pid").write_text(f"{process.pid}\nfurther lines\n")
        reload_signal("sighup", tmp_path / "pid")(SPACE, SPACE.default)
        wait_until(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text() == "1")
    finally:
        process.kill()
        process.communicate()
    with pytest.raises(RefusedError, match="No such process"):
        reload_signal("HUP", tmp_path / "pid")(SPACE, SPACE.default)


@pytest.mark.parametrize("content", ["", "x", "-5", "0", "1", "99999999999", "12a", "\xff"])
def test_a_pid_file_without_a_process_number(tmp_path: Path, content: str) -> None:
    (tmp_path / "pid").write_text(content)
    with pytest.raises(RefusedError, match="is not a process number"):
        reload_signal("HUP", tmp_path / "pid")(SPACE, SPACE.default)


def test_signals_that_end_programs_are_refused(tmp_path: Path) -> None:
    for name in ("KILL", "TERM", "9", ""):
        with pytest.raises(InvalidInputError, match="HUP, USR1, USR2"):
            reload_signal(name, tmp_path / "pid")
    with pytest.raises(InvalidInputError, match="--pid-file FILE"):
        reload_signal("HUP", None)


def test_every_parameter_needs_a_place() -> None:
    check_used(SPACE, ["{workers}", "set {mode}"])
    with pytest.raises(InvalidInputError, match="parameter mode is not used"):
        check_used(SPACE, ["{workers}"])
    with pytest.raises(InvalidInputError, match=r"did you mean \{workers\}"):
        check_used(SPACE, ["{worker} {mode}"])


@pytest.mark.parametrize(
    ("text", "said"), [("a", "TEMPLATE:TARGET"), (":b", "TEMPLATE:TARGET"), ("none.in:b", "cannot be read")]
)
def test_what_write_needs(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        written_file(text)


def test_a_template_does_not_overwrite_itself(files: tuple[Path, Path]) -> None:
    for target in (files[0], files[0].parent, files[0].parent / "none" / "app.conf"):
        with pytest.raises(InvalidInputError, match="--write"):
            written_file(f"{files[0]}:{target}")


def test_a_server_goes_on_and_is_found_again(files: tuple[Path, Path], tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNTS, str(tmp_path / "seen")]
    first = ServerProcess(command, tmp_path)
    program = TunedProgram(settings(files, "true"), first)
    assert program.ending() == "the program ended (it printed nothing)"
    program.start(SPACE.default)
    try:
        assert "workers = 4" in files[1].read_text()
        again = ServerProcess(command, tmp_path)
        assert again.is_running()
        assert program.ending() is None
        wait_until(lambda: (tmp_path / "server.log").read_text() == "ready\n")
    finally:
        first.stop()
    assert not again.is_running()
    assert program.ending() == "the program ended (ready)"


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot be started"):
        ServerProcess([str(tmp_path / "none")], tmp_path).start()

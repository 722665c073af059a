"""What a component makes of an application, run by real shells."""

import os
import shlex
import subprocess
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import InvalidInputError
from luthier.runners.supervisor import MARK_VARIABLE
from luthier.space import Choice, Integer, Parameter, Real, Space
from luthier.spec.component import Component
from luthier.spec.script import JobScript
from luthier.trial import Config, Value

SHOW = 'for word; do printf "%s\\0" "$word"; done'


def job(application: str = "", where: str = "local", **keys: object) -> JobScript:
    component = Component.model_validate(keys)
    return JobScript(component, application, "app.sh", "slurm" if where == "slurm" else "local")


def parameter(kind: str = "int", default: Value | None = 1, **keys: object) -> dict[str, object]:
    return {"type": kind, "default": default, **keys}


def run(script: JobScript, space: Space, config: Config | None = None, **environment: str) -> str:
    argv, added = script.render(space, config or space.default)
    done = subprocess.run(argv, env={**os.environ, **added, **environment}, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("keys", "written"),
    [
        ({}, "prog p=7"),
        ({"flag": "f"}, "prog -f 7"),
        ({"flag": "fl"}, "prog --fl 7"),
        ({"suffix": "M"}, "prog p=7M"),
        ({"flag": "f", "suffix": "M"}, "prog -f 7M"),
        ({"flag": "flag", "suffix": "M"}, "prog --flag 7M"),
    ],
)
def test_arguments_are_written_as_shaman_does(keys: Mapping[str, object], written: str) -> None:
    script = job(command="prog", parameters={"p": {**parameter(cmd_var=True), **keys}})
    batch = script.batch(Space(Integer("p", 1, 9)), Config({"p": 7}))
    assert batch.script == f"#!/bin/bash\n{written}\n"


def test_zero_and_floats_are_passed_through_tuned_or_not() -> None:
    script = job(
        command="prog",
        parameters={
            "a": parameter(default=0, cmd_var=True),
            "b": parameter("float", 0.0, cmd_var=True),
            "C": parameter("float", 0.25, env_var=True),
            "d": parameter(cmd_var=True),
            "e": parameter("float", 1.0, cmd_var=True),
        },
    )
    space = Space(Integer("d", 0, 3), Real("e", 0.0, 1.0, 0.25))
    batch = script.batch(space, Config({"d": 0, "e": 0.75}))
    assert batch.script.splitlines()[1] == "prog a=0 b=0.0 d=0 e=0.75"
    assert batch.environment == {"C": "0.25"}


def test_an_optional_parameter_without_a_default_is_left_out() -> None:
    script = job(
        command="prog",
        parameters={"x": parameter(default=None, optional=True, cmd_var=True), "y": parameter(cmd_var=True)},
    )
    assert script.batch(Space(Integer("y", 1, 2)), Config({"y": 2})).script.endswith("\nprog y=2\n")


def test_names_may_have_hyphens_and_false_is_not_passed() -> None:
    script = job(
        command="prog",
        parameters={"worker-threads": parameter(cmd_var=True), "B": parameter(cmd_var=False, env_var=True)},
    )
    space = Space(Integer("worker-threads", 1, 4))
    assert script.batch(space, Config({"worker-threads": 4})).script.endswith("\nprog worker-threads=4\n")


APPLICATION = (
    "#!/bin/bash\n" + "".join(f"#SBATCH --comment=c{n}\n" for n in range(14)) + "\n# remark\necho $0\nexit 3\n"
)


def test_any_number_of_sbatch_lines_stay_first() -> None:
    script = job(
        APPLICATION, header="hdr", command="cmd", ld_preload="/l.so", parameters={"A": parameter(env_var=True)}
    )
    lines = script.batch(Space(Integer("A", 1, 2)), Config({"A": 2})).script.splitlines()
    assert lines[:17] == APPLICATION.splitlines()[:17]
    assert lines[18] == "hdr"
    assert MARK_VARIABLE in lines[20]
    assert lines[21] == "cmd"
    assert lines[23].startswith("export LD_PRELOAD=")
    assert lines[24:] == ["echo $0", "exit 3"]


def test_a_comment_command_stays_in_the_head_and_nothing_is_timed_apart() -> None:
    script = job(
        "#!/bin/sh\n#SBATCH -N 1\nhostname\n",
        command="#SBB targets=/fs1 flavor=small",
        header="#SBB trash-data=all",
        parameters={"worker-threads": parameter(cmd_var=True)},
    )
    batch = script.batch(Space(Integer("worker-threads", 1, 4)), Config({"worker-threads": 3}))
    assert batch.script == (
        "#!/bin/sh\n#SBATCH -N 1\n#SBB trash-data=all\n#SBB targets=/fs1 flavor=small worker-threads=3\nhostname\n"
    )
    assert not script.is_timed_apart


@pytest.mark.parametrize("text", ["a\ntouch /tmp/x", "a\rb"])
def test_a_value_cannot_break_out_of_a_comment(text: str) -> None:
    script = job("hostname\n", command="#SBB", parameters={"p": parameter("str", "a", cmd_var=True)})
    with pytest.raises(InvalidInputError, match="line break is not allowed in a comment"):
        script.batch(Space(Choice("p", ["a", text])), Config({"p": text}))


def test_sbatch_options_are_words() -> None:
    script = job(
        "#!/bin/bash\ntrue\n",
        "slurm",
        plugin="fastio=yes --ioi=yes",
        parameters={
            "level": parameter(cli_var=True),
            "mode": parameter("str", "x", cli_var=True, flag="m"),
            "size": parameter(cli_var=True, flag="size", suffix="K"),
        },
    )
    space = Space(Choice("mode", ["x", "$(id) 'a'\n"]))
    batch = script.batch(space, Config({"mode": "$(id) 'a'\n"}))
    assert batch.options == ("--fastio=yes", "--ioi=yes", "--level=1", "-m", "$(id) 'a'\n", "--size", "1K")


def test_the_library_is_exported_and_only_for_the_application() -> None:
    script = job(
        "echo app:$LD_PRELOAD; sh -c 'echo child:$LD_PRELOAD'\n",
        header="echo header:$LD_PRELOAD",
        command="echo command:$LD_PRELOAD; unset LD_PRELOAD #",
        ld_preload="$LIBRARY",
        parameters={"A": parameter(env_var=True)},
    )
    space = Space(Integer("A", 1, 2))
    library = "libm.so.6"
    assert run(script, space, LIBRARY=library).split() == ["header:", "command:", f"app:{library}", f"child:{library}"]


def test_the_application_runs_as_it_would_by_itself() -> None:
    text = (
        "#!/bin/bash\n#SBATCH -N 1\nshopt -s extglob\ncd /usr\necho @(lib) $0 \\\n  $A\n"
        "cat <<END\nhere\nEND\nexit 0\necho no"
    )
    script = job(text, header=":", command=":", parameters={"A": parameter(env_var=True)})
    assert run(script, Space(Integer("A", 1, 2))) == "lib app.sh 1\nhere\n"


@pytest.mark.parametrize(
    ("header", "command", "ending"),
    [("true", "true", (0, "on\n")), ("true", "(exit 5)", (5, "")), ("(exit 6)", "true", (6, ""))],
)
def test_a_header_or_command_that_fails_fails_the_run(header: str, command: str, ending: tuple[int, str]) -> None:
    space = Space(Integer("A", 1, 2))
    script = job("echo on\n", header=header, command=command, parameters={"A": parameter(env_var=True)})
    argv, _ = script.render(space, space.default)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == ending


def test_the_shell_of_the_first_line_is_used() -> None:
    space = Space(Integer("A", 1, 2))
    for first, words in [
        ("#!/bin/sh", ("/bin/sh",)),
        ("#!/usr/bin/env bash", ("/usr/bin/env", "bash")),
        ("", ("/bin/bash",)),
    ]:
        script = job(f"{first}\necho ok\n", parameters={"A": parameter(env_var=True)})
        argv, _ = script.render(space, space.default)
        assert argv[: len(words) + 1] == (*words, "-c")
        assert run(script, space) == "ok\n"


nasty = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)
SHELLS = st.sampled_from(["#!/bin/bash\n", "#!/bin/dash\n"])


@settings(max_examples=60, deadline=None)
@given(nasty, SHELLS)
def test_any_value_reaches_the_program_as_it_is(text: str, shell: str) -> None:
    described = parameter("str", text, cmd_var=True, flag="v", env_var=True)
    files = [{"path": "/dev/stdout", "text": "{V}|"}]
    script = job(
        shell + "printf '%s|' \"$V\"\n",
        command=f"set -- x; show() {{ shift; {SHOW}; }}; show",
        files=files,
        parameters={"V": described},
    )
    space = Space(Choice("V", [text]))
    argv, added = script.render(space, space.default)
    done = subprocess.run(argv, env={**os.environ, **added}, capture_output=True, check=True)
    assert done.stdout == f"{text}|{text}\0{text}|".encode()
    line = script.line(space, space.default)
    alone = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert alone.stdout == done.stdout


@pytest.mark.parametrize(
    "text", ["$(rm -rf ~)", "`id`", "a\nb", "'", '"', "--", "\\", "$HOME", "é☃\U0001f600", "; exit 1", "-n"]
)
def test_values_that_look_like_shell_are_data(text: str) -> None:
    script = job(command="printf %s,%s", parameters={"v": parameter("str", "a", cmd_var=True, flag="v")})
    space = Space(Choice("v", ["a", text]))
    assert run(script, space, Config({"v": text})) == f"-v,{text}"


def test_files_are_written_before_the_clock_starts(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("files")
    files = [
        {"path": "$FOLDER/a.conf", "format": "ini", "text": "[s]\nworkers = 1 ; some\n", "set": {"s.workers": "{W}"}},
        {"path": "$FOLDER/b.json", "text": '{"n": 1, "m": "x"}', "set": {"n": "{W}", "m": "w{W}"}},
        {"path": "$FOLDER/c.txt", "text": "{W} {{W}} {other thing}"},
    ]
    script = job("cat $FOLDER/*\n", files=files, parameters={"W": parameter()})
    space = Space(Integer("W", 1, 9))
    out = run(script, space, Config({"W": 8}), FOLDER=str(folder))
    assert out == '[s]\nworkers = 8 ; some\n{"n": 8, "m": "w8"}8 {W} {other thing}'
    assert script.is_timed_apart


parameters_of = {"A": parameter(env_var=True)}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (job("x\n", plugin="fastio=yes", parameters=parameters_of), "--fastio=yes is an option of sbatch"),
        (job("x\n", parameters={"A": parameter(cli_var=True)}), "parameter A is an option of sbatch"),
        (job("", parameters=parameters_of), "there is nothing to run"),
        (job("", command="#SBB", parameters=parameters_of), "there is nothing to run"),
        (job("#!/usr/bin/python3\nprint()\n", parameters=parameters_of), "can only be put into a shell script"),
        (job("x\n", parameters={"B": parameter(env_var=True)}), "the component has no parameter 'A'"),
        (
            job("x\n", parameters={**parameters_of, "B": parameter(default=None, env_var=True)}),
            "parameter B has no default and is not tuned",
        ),
        (job("x\r\n", "slurm", parameters=parameters_of), "DOS line ends"),
        (
            job(
                "x\n", files=[{"path": "f.ini", "text": "[a]\n", "set": {"a.b": "{A}"}}], parameters={"A": parameter()}
            ),
            "file f.ini: a.b: there is no 'b' in [a]; it must exist in the file already",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(script: JobScript, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        script.check(Space(Integer("A", 1, 2)))
    assert message in str(caught.value)


def test_a_script_too_long_for_an_argument_is_refused() -> None:
    script = job("true\n" * 30_000, parameters=parameters_of)
    with pytest.raises(InvalidInputError, match="longer than 128 KiB"):
        script.render(Space(Integer("A", 1, 2)), Config({"A": 1}))


def test_the_script_to_keep_needs_nothing_else() -> None:
    script = job(
        "#!/bin/bash\necho $A\n",
        "slurm",
        plugin="fastio=yes",
        header="echo first",
        parameters={"A": parameter("str", "x", env_var=True), "b": parameter(cli_var=True)},
    )
    space = Space(Choice("A", ["x", "it's"]))
    line = script.line(space, Config({"A": "it's"}))
    assert line.splitlines()[:2] == ["#!/bin/bash", "#SBATCH --fastio=yes --b=1"]
    assert MARK_VARIABLE not in line
    assert subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout == "first\nit's\n"


@pytest.mark.parametrize("where", ["local", "slurm"])
def test_a_job_survives_json(where: str) -> None:
    files = [{"path": "f", "text": "{A}"}]
    script = job(
        "echo\n", where, header="h", command="c", files=files, parameters={"A": parameter(cmd_var=True, flag="f")}
    )
    assert JobScript.from_json(script.to_json()) == script
    with pytest.raises(InvalidInputError, match="contain no component"):
        JobScript.from_json({"component": {}})


units: tuple[Parameter, ...] = (Integer("A", "4k", "1M", 2, "log"), Choice("A", [True, False]))


@pytest.mark.parametrize(("space", "text"), [(Space(units[0]), "A=4k"), (Space(units[1]), "A=true")])
def test_units_and_truth_values_are_written_as_elsewhere(space: Space, text: str) -> None:
    script = job(command="echo", parameters={"A": parameter(default=None, cmd_var=True)})
    assert shlex.split(script.batch(space, space.default).script.splitlines()[-1]) == ["echo", text]

"""The settings of an experiment are declared once, and everything else follows from that."""

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest
from tests.spec.test_experiment_file import KNOWN

import luthier
from luthier.errors import InvalidInputError
from luthier.spec.experiment_file import declared
from luthier.spec.setting_kinds import (
    Configs,
    EarlierNumbers,
    Objectives,
    RuleOrSeconds,
    Seconds,
    Text,
    Texts,
    ValuesByName,
    Whole,
)
from luthier.spec.settings import GivenSettings, Settings, all_settings
from luthier.spec.yaml_lines import parse_document

DECLARATION = """
    patience: Annotated[
        int, Setting(Whole(0), "A setting that is made for a test.", "Patience", "Limits", unset="endless")
    ] = 0
"""

USES = """
import json, sys
from pathlib import Path
import luthier as lt
from luthier.__main__ import main
from luthier.server.api.options import get_options

def call(*words):
    sys.argv = ["luthier", *words]
    try:
        main()
    except SystemExit as end:
        return end.code

assert call("tune", "--help") == 0
assert call("tune", "-q", "-p", "x=1..3", "-n", "3", "--patience", "4", "--", "true", "{x}") == 0
assert call("tune", "-q", "-p", "x=1..3", "-n", "3", "--patience", "-1", "--", "true", "{x}") == 2
Path("e.yaml").write_text('''
experiment: {budget: 3, patience: 5, script: "true"}
definitions: {c: {parameters: {x: {type: int, default: 1, min: 1, max: 3, env_var: true}}}}
components: {c: {}}
''')
assert call("run", "-q", "e.yaml") == 0
assert call("run", "-q", "e.yaml", "--set", "patience=often") == 2
assert call("validate", "--schema", "experiment") == 0
assert call("report", "1", "-o", "one.html") == 0
assert call("report", "2", "-o", "two.html") == 0
assert lt.tune(lambda config: 1.0, lt.Space(lt.Integer("x", 1, 3)), budget=3, patience=6).experiment.patience == 6
told = {setting.name: setting for setting in get_options(None).settings}["patience"]
assert (told.label, told.kind, told.default) == ("Patience", "int", "endless")
"""


def test_one_more_setting_is_one_declaration(tmp_path: Path) -> None:
    """Nothing but its declaration brings a setting to the command line, files, REST, the form and the report."""
    package = tmp_path / "luthier"
    shutil.copytree(Path(luthier.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    declarations = package / "spec" / "settings.py"
    text = declarations.read_text()
    text = text.replace("\n\nclass GivenSettings", f"{DECLARATION}\n\nclass GivenSettings", 1)
    declarations.write_text(text.replace("    slots: int\n", "    slots: int\n    patience: int\n"))
    environment = {"PYTHONPATH": str(tmp_path), "LUTHIER_STORE": str(tmp_path / "s.db"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", USES],
        cwd=tmp_path,
        env={**environment, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "--patience" in done.stdout
    assert "A setting that is made for a test." in done.stdout
    assert "luthier: --patience: -1 is not a whole number of at least 0" in done.stderr
    assert "--set patience=often: experiment.patience: 'often' is not a whole number of at least 0" in done.stderr
    first, second = ((tmp_path / name).read_text() for name in ("one.html", "two.html"))
    assert "--patience 4" in first
    assert "Patience" in second


def test_calls_from_python_know_every_setting() -> None:
    given, declared_types = get_type_hints(GivenSettings), get_type_hints(Settings)
    assert set(given) | {"objectives", "cwd"} == set(declared_types)
    for name, kind in given.items():
        if "Sequence" not in str(kind):
            assert kind == declared_types[name], name


def test_every_setting_is_explained() -> None:
    for setting in all_settings():
        assert setting.help.endswith("."), setting.name
        assert setting.label
        assert setting.flags
    names = [name for setting in all_settings() for name in (setting.name, setting.former) if name]
    assert len(set(names)) == len(names)


def test_defaults_are_read_as_themselves() -> None:
    usual = Settings()
    for setting in all_settings():
        assert setting.kind.read(setting.default) == setting.default == getattr(usual, setting.field)
    assert [each.name for each in dataclasses.fields(Settings)] == [setting.field for setting in all_settings()]


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (Whole(1), 3, 3),
        (Seconds(), "1.5m", 90.0),
        (Seconds(), 90, 90.0),
        (RuleOrSeconds(), "q75", "q75"),
        (RuleOrSeconds(), "90s", 90.0),
        (Text(), "once", "once"),
        (Texts(), ["target 3", "after 2h"], ("target 3", "after 2h")),
        (Texts(), "target 3", ("target 3",)),
        (EarlierNumbers(), [3, 4], (3, 4)),
        (EarlierNumbers(), 3, (3,)),
        (EarlierNumbers(), "3, 7", (3, 7)),
        (EarlierNumbers(), ["3,7", "7", 2], (3, 7, 2)),
        (EarlierNumbers(), "none", ()),
        (EarlierNumbers(), ["auto"], ("auto",)),
        (ValuesByName(), ["kernel=rbf", "initial=4", "warm=true"], {"kernel": "rbf", "initial": 4, "warm": True}),
        (Configs(), ["threads=4,block=64k"], ({"threads": "4", "block": "64k"},)),
    ],
)
def test_values_survive_the_command_line(kind: Whole | Seconds, given: object, value: object) -> None:
    found = kind.read(given)
    assert found == value
    words = [int(word) if isinstance(kind, Whole) else word for word in kind.words(found)]
    assert kind.read(words if isinstance(found, tuple | dict) else words[0]) == found


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Whole(1), True), (Whole(1), None), (Whole(1), 0), (Whole(1), 1.0), (Seconds(), "soon"),
        (Seconds(), float("nan")), (Seconds(), True), (Text(), 3), (Texts(), 3), (Texts(), [3]),
        (EarlierNumbers(), [0]), (EarlierNumbers(), "x"), (EarlierNumbers(), "3,auto"), (EarlierNumbers(), ["none", 3]),
        (Objectives(), []), (Objectives(), {"measure": "wall"}),
        (ValuesByName(), ["kernel"]), (ValuesByName(), {"a": [1]}),
        (Configs(), {"x": 1}), (Configs(), ["x"]), (Configs(), [3]), (Text(), "a\0b"), (Texts(), ["\ud800"]),
    ],
)  # fmt: skip
def test_bad_values_are_refused(kind: Whole | Seconds, given: object) -> None:
    with pytest.raises(InvalidInputError):
        kind.read(given)


def test_a_former_name_is_read_and_reported() -> None:
    document = parse_document("experiment: {workers: 3}\ncomponents: {known: {}}", "e.yaml")
    found = declared(document, None, Path(), lambda _: KNOWN)
    assert (found.experiment.slots, found.notes) == (3, ("experiment.workers is now called slots",))
    wrong = parse_document("experiment:\n  workers: 0\ncomponents: {known: {}}", "e.yaml")
    with pytest.raises(InvalidInputError, match=r"^e.yaml:2: experiment.slots: 0 is not a whole number of at least 1$"):
        declared(wrong, None, Path(), lambda _: KNOWN)

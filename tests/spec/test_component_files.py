from pathlib import Path

import pytest

from luthier.errors import InvalidInputError
from luthier.spec.component import Component, ComponentFile, components_in, read_components
from luthier.spec.yaml_lines import parse_document

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "components"


def component(text: str) -> Component:
    """The one component of a file; `text` is what stands below its name."""
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    described = components_in(parse_document(f"components:\n  one:\n{lines}\n", "c.yaml"), Path())
    return described["one"]


@pytest.mark.parametrize("name", ["openmpi", "dd", "demo", "dm-accelerators"])
def test_files_of_shamans_shape_load_as_they_are(name: str) -> None:
    assert read_components(EXAMPLES / f"{name}.yaml")


def test_every_key_of_shamans_first_listing() -> None:
    described = component(
        """\
plugin: example_1
header: example_header
command: example_cmd
ld_preload: example_lib
custom_target: test_parse_output.test_parse_output
parameters:
  param_1:
    env_var: True
    type: int
    default: 1
  param_2:
    cmd_var: True
    type: int
    default: 100
    flag: test
  param_3:
    cli_var: True
    type: int
    default: 1
  param_4:
    env_var: True
    type: str
    optional: True"""
    )
    assert described.options == ("--example_1",)
    assert [name for name, one in described.parameters.items() if one.env_var] == ["param_1", "param_4"]
    assert described.parameters["param_2"].flag == "test"
    assert described.parameters["param_4"].default is None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("plugin: fastio=yes --ioi=yes", ("--fastio=yes", "--ioi=yes")),
        ("cli_command: fastio=yes", ("--fastio=yes",)),
        ("plugin: -N 2 --comment='a b'", ("-N", "2", "--comment=a b")),
        ("description: none", ()),
    ],
)
def test_a_plugin_may_hold_several_options(text: str, options: tuple[str, ...]) -> None:
    assert component(f"{text}\nparameters: {{A: {{env_var: true, type: int, default: 1}}}}").options == options


def test_false_is_false() -> None:
    described = component(
        "command: prog\nparameters: {A: {env_var: true, cmd_var: False, type: int, default: 1, cli_var: no}}"
    )
    assert described.parameters["A"].cmd_var is False
    assert described.parameters["A"].cli_var is False


def test_zero_and_floats_are_defaults_like_others() -> None:
    described = component(
        "parameters:\n  A: {env_var: true, type: int, default: 0}\n  B: {env_var: true, type: float, default: 0.25}"
    )
    assert described.parameters["A"].default == 0
    assert described.parameters["B"].default == 0.25


def test_a_whole_number_is_a_fine_text() -> None:
    described = component("parameters: {A: {env_var: true, type: str, default: 2, values: [1, 2, many]}}")
    assert described.parameters["A"].default == "2"
    assert described.parameters["A"].values == ["1", "2", "many"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "parameters: {a: {env_var: true, type: int, default: 1, min: x, max: 3}}",
            "3: {0}.a.min: 'x' is not a number",
        ),
        ("parameters: {a: {env_vra: true, type: int}}", "3: {0}.a.env_vra: is unknown; did you mean 'env_var'?"),
        ("parameters: {a: {env_var: true, type: int, stp: 2}}", "3: {0}.a.stp: is unknown; did you mean 'step'?"),
        (
            "parameters: {a: {env_var: true, type: int, constraints: [a < 2]}}",
            "3: {0}.a.constraints: is unknown; valid here: cli_var, cmd_var,",
        ),
        ("parameters: {a: {env_var: true}}", "3: {0}.a.type: is missing"),
        ("parameters: {a: {env_var: true, type: integer}}", "{0}.a.type: 'integer' is invalid; expected"),
        ("parameters: {a: {env_var: 'False', type: int}}", "{0}.a.env_var: 'False' is invalid; expected true or false"),
        ("parameters: {a: {type: int, default: 1}}", "3: {0}.a: is not passed to the program"),
        ("parameters:\n  b: {cmd_var: true, type: int, default: 1}", "4: {0}.b: has cmd_var, but the component has no"),
        (
            "parameters: {a-b: {env_var: true, type: int, default: 1}}",
            "{0}.a-b: is not a valid name of an environment variable",
        ),
        ("parameters: {9a: {cli_var: true, type: int, default: 1}}", "'9a' is not a valid parameter name"),
        (
            "parameters: {a: {env_var: true, type: str, default: 1.10}}",
            "{0}.a: 1.1 is not of type str; expected a text",
        ),
        ("parameters: {a: {env_var: true, type: int, default: 1.5}}", "1.5 is not of type int"),
        ("parameters: {a: {env_var: true, type: int, default: true}}", "True is not of type int"),
        ("parameters: {a: {env_var: true, type: int, min: 1}}", "a range needs both ends; max is missing"),
        ("parameters: {a: {env_var: true, type: int, step: 1}}", "step needs min and max"),
        ("parameters: {a: {env_var: true, type: int, default: [1]}}", "{0}.a.default: [1] is not a value"),
        ("plugin: a\ncli_command: b\nparameters: {a: {env_var: true, type: int}}", "4: components.one.cli_command"),
        (
            "plugin: it's\nparameters: {a: {env_var: true, type: int}}",
            "one.plugin: cannot be split into words: No closing",
        ),
        (
            "ld_preload: 'a\"b'\nparameters: {a: {env_var: true, type: int}}",
            "one.ld_preload: 'a\"b' is not a plain path",
        ),
        ("header: 3\nparameters: {a: {env_var: true, type: int}}", "components.one.header: 3 is not a text"),
        ("header: x", "2: components.one.parameters: is missing"),
        ("parameters: [a]", "components.one.parameters: ['a'] is invalid; expected settings by name"),
        ("files: [{path: f}]\nparameters: {}", "3: components.one.files.0: give either text or base"),
        ("files: [{path: f, text: 'x={y}'}]\nparameters: {}", "components.one.files: unknown parameter 'y'"),
        ("files: [{path: f, base: none.ini}]\nparameters: {}", "files.0.base: 'none.ini': No such file"),
        ("files: [{path: '$(id)', text: a}]\nparameters: {}", "'$(id)' is not a plain path"),
        ("files: [{path: f.txt, text: a, set: {b: 1}}]\nparameters: {}", "the format of 'f.txt' is unknown"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        component(text)
    assert message.format("components.one.parameters") in str(caught.value)
    assert str(caught.value).startswith("c.yaml:")
    assert len(str(caught.value).splitlines()) == 1


def test_a_component_has_a_name_that_can_be_a_file() -> None:
    document = parse_document("components: {../up: {parameters: {}}}", "c.yaml")
    with pytest.raises(InvalidInputError, match="is not a valid name"):
        components_in(document, Path())


def test_a_base_file_is_read_once_and_for_all(tmp_path: Path) -> None:
    (tmp_path / "base.ini").write_text("[a]\nb = 1\n")
    (tmp_path / "c.yaml").write_text(
        "components: {one: {files: [{path: out.ini, base: base.ini, set: {a.b: '{B}'}}],"
        " parameters: {B: {type: int, default: 1}}}}"
    )
    file = read_components(tmp_path / "c.yaml")["one"].files[0]
    assert (file.text, file.base, file.kind) == ("[a]\nb = 1\n", "", "ini")


def test_the_schema_names_every_key() -> None:
    schema = ComponentFile.model_json_schema()
    keys = schema["$defs"]["ComponentParameter"]["properties"]
    assert {"env_var", "cmd_var", "cli_var", "type", "default", "flag", "suffix"} <= set(keys)
    assert all(one.get("description") for one in keys.values())
    assert schema["$defs"]["Component"]["additionalProperties"] is False

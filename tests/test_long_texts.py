"""Every parser takes time in proportion to its text, whatever the text holds.

A new parser is added to `PARSERS`. Each one gets long repetitive texts; a text of four times the length may take about
four times as long, while a parser that takes time by the square of the length would need sixteen times as long.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from luthier.errors import LuthierError
from luthier.measures.json_output import last_document, parse_path
from luthier.measures.output import number_in, quote_last_line, whole_number
from luthier.measures.registry import measure_from
from luthier.optimizers.registry import make_optimizer
from luthier.runners.slurm_text import parse_sacct, parse_squeue
from luthier.space import Choice, Integer, Space, parse_quantity
from luthier.spec.component import components_in
from luthier.spec.config_files import FORMATS, Format, edited
from luthier.spec.durations import parse_duration
from luthier.spec.notation import parse_parameter
from luthier.spec.rules import TunedProblem, compares_times, prune_from, resample_from, stop_from
from luthier.spec.setting_kinds import parse_value
from luthier.spec.shaman import measure_of
from luthier.spec.template import Template, fill, placeholders
from luthier.spec.yaml_lines import parse_document, parse_plain
from luthier.submission.job_times import parse_ended
from luthier.submission.matching import fields_of, job_of_script
from luthier.submission.submitted_job import JobText, Offer, is_refused, objection
from luthier.texts import check_name, check_nesting, closest, shown, visible, visible_json, visible_lines
from luthier.trial import Execution

SPACE = Space(Integer("x", 0, 9))
Parser = Callable[[str], object]


def in_file(kind: Format) -> Parser:
    return lambda text: edited(text, kind, {"a.b": 1})


def measured(measure: str) -> Parser:
    def parse(text: str) -> object:
        with TemporaryDirectory() as folder:
            (Path(folder) / "stdout").write_text(text)
            return measure_from(measure)(Execution("k", 0.0, 1.0, logs=folder))

    return parse


def submitted(text: str) -> None:
    """All that is asked about the script of a stranger's job."""
    script = JobText(text, takes_commas=False)
    is_refused(script)
    fields_of(job_of_script(text, "ann", datetime.now(UTC)))
    objection(Offer("c", {"a": "1,2"}), script)


PARSERS: dict[str, Parser] = {
    "parameter": lambda text: parse_parameter(f"x={text}"),
    "name of a parameter": lambda text: Integer(text, 0, 1),
    "choice": lambda text: Choice("x", [text, "a"], default=text + "b"),
    "unit": lambda text: Integer("x", 0, 1, unit=text),
    "quantity": parse_quantity,
    "value": parse_value,
    "duration": parse_duration,
    "constraint": lambda text: Space(Integer("x", 0, 9), constraints=[text]),
    "configuration": lambda text: SPACE.check({text: 1}),
    "resample": resample_from,
    "resample constants": lambda text: resample_from(f"auto:least={text}"),
    "prune": prune_from,
    "prune constants": lambda text: prune_from(f"default:factor={text}"),
    "stop": lambda text: stop_from([text], TunedProblem(SPACE)),
    "stop at a target": lambda text: stop_from([f"target {text}"], TunedProblem(SPACE)),
    "stop by time": compares_times,
    "optimizer": lambda text: make_optimizer(text, SPACE, seed=0, budget=9),
    "measure": measure_from,
    "regex pattern": lambda text: measure_from(f"regex:{text}"),
    "json path": parse_path,
    "number": number_in,
    "whole number": lambda text: whole_number(text, len(text) // 2, len(text) // 2 + 1),
    "last line": quote_last_line,
    "json document": last_document,
    "osu output": measured("osu"),
    "time output": measured("time"),
    "time of a script": lambda text: measure_of("", text),
    "regex output": measured("regex:time: ([0-9.]+)"),
    "template": lambda text: (placeholders(text), fill(text, {"a": "b"})),
    "command": lambda text: Template((text,), {text: text}).check(SPACE),
    "YAML document": lambda text: parse_document(text, "t.yaml"),
    "YAML value": parse_plain,
    "components": lambda text: components_in(
        parse_document(f"components: {{a: {{parameters: {{}}, {text}: 1}}}}", "t.yaml"), None
    ),
    **{f"{kind} file": in_file(kind) for kind in FORMATS},
    "XML tag": lambda text: edited(f"<a><b {text}='1'>1</b></a>", "xml", {"b.@c": 1}),
    "INI line": lambda text: edited(f"[a]\nb = {text}\n", "ini", {"a.b": 1}),
    "TOML line": lambda text: edited(f"[a]\nb = {text}\n", "toml", {"a.b": 1}),
    "submitted script": submitted,
    "options of a submitted script": lambda text: submitted(f"#!/bin/sh\n#SBATCH {text}"),
    "squeue": lambda text: parse_squeue(f"1|{text}|2|3|4|5"),
    "sacct": parse_sacct,
    "comments of squeue": lambda text: parse_ended(f"1,ann,COMPLETED,1,2,{text},{text},", ","),
    "name": lambda text: check_name(text, "name"),
    "nesting": lambda text: check_nesting(text, "it"),
    "closest": lambda text: closest(text, [text + "a", "a"]),
    "escapes": lambda text: (visible(text), visible_lines(text), visible_json(text), shown(text)),
}
IN_SCRIPTS = [
    "$((", "$(", "$()", "${", "`", '"\\', "<<", "<<a", "<<a ", "<<a\n", "<<a\na\n", "unset ba ", "read ba;", "env ",
    "env a\n", "b=1 ", "srun \n", "\\\n", "1<", "&&", "''", '""', "#SBATCH '\n", "#SBATCH --comment=luthier:off\n",
    "luthier:1,",
]  # fmt: skip
PATTERNS = [
    "1", "1.", "a", " ", "\n", "\t", "[", "]", "{", "}", "[]", "(", '"', "'", "\\", '\\"', ":", "1:", "=", ",", "-",
    "#", ";", ".", "..", "..,", "{a", "{{a}}", "<a", "<a>", "</a>", "<a b='1'>", "a=1 ", "a: ", "a: [", "- ", "[1 \n",
    "[x\n", '{"a": 1}\n', '{"a": \n', "[\n", "1 2\n", "\n1", "time: 1\n", "and ", "x < 1 and ", "@", "a@", "\\,", "é",
    "\x1b[", "&a ", "*a ", "a=1\n", "[a]\n", "%", "e", "1e", "0x", "'a", "?", "|", ">\n ", "!", "!!int 1\n", "\r",
    "\r\n", "\x85", "real 0", "real 0\n", "; ", "( ", "time", *IN_SCRIPTS,
]  # fmt: skip
ENDS = ["", "x"]
SHORT, FACTOR, SLOW_S = 2_000, 4, 0.02


def seconds(parse: Parser, text: str) -> float:
    began = time.process_time()
    with suppress(LuthierError):
        parse(text)
    return time.process_time() - began


@pytest.mark.parametrize("name", PARSERS)
def test_time_grows_with_the_length_and_not_with_its_square(name: str) -> None:
    parse = PARSERS[name]
    for pattern in PATTERNS:
        for end in ENDS:
            text, longer = (pattern * (size // len(pattern)) + end for size in (SHORT, FACTOR * SHORT))
            if seconds(parse, longer) < SLOW_S:
                continue  # by the square, no parser is that fast
            # Other work on this machine makes a single time longer, never shorter.
            ratios = (seconds(parse, longer) / max(seconds(parse, text), SLOW_S / FACTOR**2) for _ in range(8))
            assert any(ratio < 2.0 * FACTOR for ratio in ratios), (pattern, end)


@pytest.mark.parametrize("head", ["#!/bin/sh\n", "#!/bin/sh\n#SBATCH "])
def test_a_submitted_script_takes_few_steps_however_long_it_is(head: str) -> None:
    """A script of 256 KiB is read with at most so many calls of functions; in Python each takes about 0.1 us."""
    submitted("srun true")  # imports

    def calls(text: str) -> int:
        counted = [0]

        def count(_: object, event: str, __: object) -> None:
            counted[0] += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            submitted(text)
        finally:
            sys.setprofile(None)
        return counted[0]

    numbered = "".join(f"<<x{number}\nx{number}\n" for number in range(20_000))  # no two ends are the same
    texts = [numbered, *(pattern * (256 * 1024 // len(pattern)) for pattern in (*IN_SCRIPTS, "- ", "a\n", "a;"))]
    steps = {text[:20]: calls(head + text) for text in texts}
    assert max(steps.values()) < 250_000, max(steps, key=lambda text: steps[text])

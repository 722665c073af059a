"""Makes the programs that `luthier io tune` runs, and the search on the I/O kernel."""

import shlex
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from luthier.errors import InvalidInputError, KernelRefusedError
from luthier.io.comparison import APPLICATION, KERNEL, SEARCH, Planned
from luthier.io.kernel import KernelOptions
from luthier.io.kernel_memory import MemoryFolder, checked_patterns
from luthier.io.kernel_memory import in_memory as memory_for
from luthier.io.kernel_reduction import Reduced, with_reduced_loops
from luthier.io.kernel_runs import discover_apart, sources_from, write_kernel
from luthier.io.kernel_trial import WORD
from luthier.io.kernel_verification import BuiltProgram, Verification, build_from, built, verified
from luthier.io.measures import PREFIX
from luthier.launch import Done, Launch, LaunchRequest, View, create, declared_by, library, unseen, work_through
from luthier.spec.component import Component, read_components
from luthier.spec.experiment import Experiment
from luthier.spec.objectives import Objective
from luthier.spec.origin import Origin, Step
from luthier.spec.script import JobScript
from luthier.spec.settings import GivenSettings
from luthier.spec.yaml_lines import parse_document
from luthier.trial import Json

MEASURE = "io:time"
"""What is tuned by default: the seconds that the slowest process spends in I/O."""
PAIRS = 5
"""Pairs of runs of the application, with the default and with the best configuration."""
STEPS = ("kernel", "impact-first", "stop", "verify")
"""The steps that can be left out; a reduced kernel and files in memory are left out by default."""


def tune(  # noqa: PLR0913 - keywords, as the options of `luthier io tune`
    sources: Sequence[Path],
    run: Sequence[str],
    *,
    component: str,
    build: str = "cc",
    folder: Path | None = None,
    output: Path = Path("io-tuning"),
    measures: Sequence[Objective] | None = None,
    buffers: str = "cut",
    reduce: float = 1.0,
    in_memory: Sequence[str] = (),
    without: Collection[str] = (),
    store: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    view: View = unseen,
    **settings: Unpack[GivenSettings],
) -> Done:
    """Tune the I/O of a C program: search on its I/O kernel, then compare the best configuration on the program.

    `run` is the command, with {program} in place of the path of the program; each run has a new copy of `folder`.
    `component`, the name of a registered one or a file, says what is tuned. Programs and runs are in the new folder
    `output`. `reduce` is the share of the executions of I/O that loops of the kernel do; files that match `in_memory`
    are kept in memory during the search. `without` has those of `STEPS` that are left out. `say` is told what is
    searched on, and `view` shows the progress. The search is `before` of what is returned if a comparison followed.
    `luthier io tune --help` explains more, and the settings.
    """
    _check_steps(without)
    values: dict[str, Any] = {**settings, **({} if measures is None else {"objectives": tuple(measures)})}
    described = component_named(component, store)
    program = _program(run, build, folder, values)
    options = KernelOptions(buffer_content=buffers, reduce=reduce)
    if reduce < 1 and "kernel" in without:
        raise InvalidInputError("--reduce shortens loops of the kernel; leave out --without kernel, or --reduce")
    if reduce < 1 or in_memory:
        _check_measures(values, "--reduce" if reduce < 1 else "--in-memory")
    values, pairs = _with_steps(values, without)
    program = replace(program, in_memory=checked_patterns(in_memory))
    prepared = prepare(sources, program, output, None if "kernel" in without else options)
    say(prepared.sentence)
    if program.in_memory:
        say("the search keeps files in memory; the comparison at the end does not")
    with memory_for(program.in_memory) as kept:
        return work_through(Tuning(prepared, program.run, described, store).search(values, pairs, kept), view)


def _check_steps(left_out: Collection[str]) -> None:
    if unknown := sorted(set(left_out) - set(STEPS)):
        raise InvalidInputError(f"--without {unknown[0]}: unknown step; choose from {', '.join(STEPS)}")


def _with_steps(values: dict[str, Any], left_out: Collection[str]) -> tuple[dict[str, Any], int | None]:
    """The settings of the search with the steps that are not left out, and the pairs of runs of the comparison."""
    objectives = values.get("objectives", (Objective.parse(MEASURE),))
    if len(objectives) > 1:
        raise InvalidInputError("luthier io tune needs a single measure, since it compares two configurations")
    given = {"impact-first": "impact_first", "stop": "stop", "verify": "verify_pairs"}
    for step in sorted(set(left_out) & set(given)):
        if values.get(given[step]):
            raise InvalidInputError(f"--without {step} and --{step} exclude each other; give one of them")
    values = dict(values)
    if "impact-first" not in left_out:
        values.setdefault("impact_first", "auto")
    if "stop" not in left_out and not objectives[0].is_amount:
        values.setdefault("stop", ("learned",))
    pairs: int | None = values.pop("verify_pairs", None)
    return values, 0 if "verify" in left_out else pairs


def _check_measures(values: dict[str, Any], option: str) -> None:
    """Only the library that counts I/O multiplies counters of loops that are left early, and keeps files in memory."""
    for objective in values.get("objectives", ()):
        if not objective.measure.startswith(PREFIX):
            raise InvalidInputError(
                f"{option} cannot be used with the measure {objective.measure}; choose a measure {PREFIX}*, "
                f"or leave out {option}"
            )


def _program(run: Sequence[str], build: str, folder: Path | None, values: dict[str, Any]) -> BuiltProgram:
    """How to build and run the program."""
    if not run:
        raise InvalidInputError("no command; put it after --, e.g. luthier io tune sim.c ... -- {program} 1000")
    try:
        words = shlex.split(build)
    except ValueError as error:
        raise InvalidInputError(f"--build: {error}; correct the quotes") from None
    how = BuiltProgram(build_from(words), tuple(run), folder)
    return how if values.get("timeout_s") is None else replace(how, timeout_s=values["timeout_s"])


@dataclass(frozen=True, slots=True)
class Prepared:
    """The programs in their folder; without a `kernel` the search runs the application, for the `reason`.

    `seconds` is how long it took to make them: compilers, analysis, and the runs that verify the kernel.
    """

    folder: Path
    application: Path
    kernel: Path | None = None
    verification: Verification | None = None
    reason: str = ""
    reduced: Reduced | None = None
    seconds: float = 0.0

    @property
    def tuned(self) -> Path:
        """The program that the search runs."""
        return self.kernel or self.application

    @property
    def sentence(self) -> str:
        """What the search runs, and why."""
        if self.kernel is None or self.verification is None:
            return f"the search runs the application: {self.reason}"
        loops = "" if self.reduced is None else f"; {self.reduced.text}"
        if self.reduced is not None and self.reduced.reduction.loops:
            loops += "; the values of the search are predictions for whole loops"
        return f"the search runs the I/O kernel, {self.verification.text}{loops}"

    def to_json(self) -> dict[str, Json]:
        """The kernel as plain values."""
        loops = None if self.reduced is None else self.reduced.plain
        inputs = [] if self.verification is None else list(self.verification.inputs)
        kernel: dict[str, Json] = {"is_used": self.kernel is not None, "sentence": self.sentence, "inputs": inputs}
        return {**kernel, "folder": str(self.folder), "reduction": loops}


def prepare(sources: Sequence[Path], program: BuiltProgram, folder: Path, options: KernelOptions | None) -> Prepared:
    """Compile the application and, with `options`, its verified I/O kernel, into a new folder.

    The kernel is left out, with the reason, if it cannot be made or is not proven to make the same I/O.
    """
    began = time.monotonic()
    if folder.exists():
        raise InvalidInputError(f"{folder}: already exists; remove it or name another with --output")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise InvalidInputError(f"{folder}: cannot be made: {error.strerror}") from None
    place = folder.resolve()
    try:
        _copy_inputs(program.folder, place / "input")
        application = built(sources, program.build, place / "application" / "program").program
        prepared = Prepared(place, application, reason="no kernel was asked for")
        if options is not None:
            prepared = _with_kernel(sources, program, prepared, options)
        return replace(prepared, seconds=time.monotonic() - began)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _copy_inputs(source: Path | None, copy: Path) -> None:
    if source is None:
        copy.mkdir()
        return
    if not source.is_dir():
        raise InvalidInputError(f"--folder {source}: is not a folder")
    shutil.copytree(source, copy)


def _with_kernel(
    sources: Sequence[Path], program: BuiltProgram, prepared: Prepared, options: KernelOptions
) -> Prepared:
    words = (program.build.compiler, *program.build.flags)
    try:
        discovery = discover_apart(sources_from(sources, words), options)
        checked = verified(discovery, program)
        if not checked.accepted:
            return replace(prepared, verification=checked, reason=checked.text)
        reduced = with_reduced_loops(discovery, program, checked, options.reduce) if options.reduce < 1 else None
        discovery = discovery if reduced is None else reduced.discovery
        loops = None if reduced is None else reduced.plain
        lines = (*checked.lines, *([] if reduced is None else [reduced.text]))
        written = write_kernel(discovery, prepared.folder / "kernel" / "sources", lines, loops=loops)
        kernel = built(written, program.build, prepared.folder / "kernel" / "program").program
    except KernelRefusedError as refused:
        return replace(prepared, reason=str(refused))
    return replace(prepared, kernel=kernel, verification=checked, reduced=reduced)


def component_named(text: str, store_url: str | None) -> tuple[str, Component]:
    """The component with this name in the store, or the only one that a file describes."""
    path = Path(text)
    if not path.is_file():
        return text, library(store_url).get(text)
    described = read_components(path)
    if len(described) != 1:
        raise InvalidInputError(f"{text}: describes {len(described)} components; a file with one is required here")
    return next(iter(described.items()))


@dataclass(frozen=True, slots=True)
class Tuning:
    """The search on the kernel; `luthier.io.comparison` makes the comparison on the application."""

    prepared: Prepared
    run: tuple[str, ...]
    component: tuple[str, Component]
    store_url: str | None = None

    def search(self, settings: Mapping[str, Any], pairs: int | None, memory: MemoryFolder | None = None) -> Launch:
        """The search; its best configuration is compared on the application, in at most `pairs` pairs of runs.

        With `memory` the search keeps its files there.
        """
        compared = self._experiment(self.prepared.application, {"timeout_s": settings.get("timeout_s")})
        if not isinstance(compared.command, JobScript):
            raise TypeError("an experiment with a component has a job script")
        name = "kernel" if self.prepared.kernel is not None else "preparation"
        kernel = self.prepared.to_json()
        planned = Planned(kernel, compared.command, PAIRS if pairs is None else pairs)
        step = Step(name, (self.prepared.sentence,), self.prepared.seconds)
        origin = Origin((step,), KERNEL if kernel.get("is_used") else APPLICATION, data=planned.to_json())
        given = {**settings, "verify_pairs": 0, "origin": origin}
        experiment = self._experiment(self.prepared.tuned, given, memory)
        return create(LaunchRequest(experiment, f"{self.component[0]}: {SEARCH}", self.store_url))

    def _experiment(self, binary: Path, settings: Mapping[str, Any], memory: MemoryFolder | None = None) -> Experiment:
        """Runs of a program with the settings of the component, each in a new copy of the inputs."""
        import yaml

        name, described = self.component
        command = shlex.join(word.replace(WORD, str(binary)) for word in self.run)
        fresh = described.model_copy(
            update={"header": f"{described.header}\n{_new_copy(self.prepared.folder, memory)}"}
        )
        values = {
            "experiment": {"script": f"#!/bin/sh\n{command}\n", "runner": "local", "measure": MEASURE},
            "components": {name: {}},
        }
        document = parse_document(yaml.safe_dump(values, allow_unicode=True), "luthier io tune")
        folder = self.prepared.folder
        declared = declared_by(document, folder, folder, lambda _: fresh)
        return replace(declared.experiment, **{"slots": 1, **settings})


def _new_copy(folder: Path, memory: MemoryFolder | None) -> str:
    """Commands that are not timed and, without LD_PRELOAD, not counted."""
    run, source = shlex.quote(str(folder / "run")), shlex.quote(str(folder / "input"))
    lines = [f"LD_PRELOAD= rm -rf {run}", f"LD_PRELOAD= cp -R {source} {run}", f"cd {run}"]
    if memory is not None:
        place = shlex.quote(str(memory.folder))
        lines += [f"LD_PRELOAD= rm -rf {place}", f"LD_PRELOAD= mkdir -m 700 {place}"]
        lines.append(f"trap {shlex.quote(f'LD_PRELOAD= rm -rf {place}')} EXIT")
        variables = memory.variables(folder / "run")
        lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join(lines)

"""What a tuned component can give to a job that is being submitted, whose script is not changed."""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from luthier.errors import LuthierError
from luthier.runners.slurm_text import words_of
from luthier.spec.approvals import is_allowed
from luthier.spec.component import Component, version_of
from luthier.spec.environment_rules import MOST_VARIABLES, problem_of_variable
from luthier.spec.experiment import Experiment
from luthier.spec.script import JobScript
from luthier.store.server_store import Approval
from luthier.submission.job import LONGEST_HEAD
from luthier.trial import Value

REFUSAL = "luthier:off"
"""A job with this comment is left alone."""

_REMOVAL = re.compile(r"\b(?:unset|setenv|read)\b([^\n;]*+)")
_MOST_REMOVALS = 2_000


@dataclass(frozen=True, slots=True)
class Offer:
    """The variables that set a configuration, or in `problem` why other jobs cannot have it.

    A job uses the component if all `options` are among its options of sbatch and all `texts` are in its script.
    `version` is the digest of the component that the experiment tuned, `author` the account that created the
    experiment; empty without an account.
    """

    component: str
    environment: Mapping[str, str]
    options: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    problem: str | None = None
    version: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True)
class JobText:
    """A job as it is submitted: the text of its script, its options of sbatch, and the variables that are set already.

    `takes_commas` tells whether variables with a comma in their value can be passed on.
    """

    text: str
    options: Sequence[str] = ()
    variables: Collection[str] = frozenset()
    takes_commas: bool = True

    @property
    def words(self) -> list[str]:
        """The options in the script, then those of the command line."""
        return [*words_of(self.text[:LONGEST_HEAD]), *self.options]


def offer_of(experiment: Experiment, config: Mapping[str, Value]) -> Offer:
    """What an experiment can give to other jobs: the variables of this configuration."""
    command = experiment.command
    if not isinstance(command, JobScript):
        return Offer("", {}, problem="it was found without a component")
    component, name = command.component, command.component_name
    try:
        checked = experiment.space.check(config)
        environment = dict(command.batch(experiment.space, checked).environment)
    except LuthierError as error:
        return Offer(name, {}, problem=f"it is not in the space of component {name}: {error}")
    offer = Offer(name, environment, component.options, _texts(component), version=version_of(component))
    if elsewhere := [each for each in experiment.space.names if not component.parameters[each].env_var]:
        problem = f"parameter {elsewhere[0]} is not an environment variable; to use it: luthier apply"
        return Offer(name, {}, problem=problem)
    problems = list(filter(None, (problem_of_variable(each, text) for each, text in environment.items())))
    if problems or not 0 < len(environment) <= MOST_VARIABLES:
        return Offer(name, {}, problem=problems[0] if problems else f"it sets {len(environment)} variables")
    return offer


def objection(offer: Offer, job: JobText) -> str | None:
    """Why a job does not get what is offered; None if it does.

    It gets the whole configuration or nothing: a part of it was never measured.
    """
    if offer.problem is not None:
        return offer.problem
    words = job.words
    if absent := [option for option in offer.options if option not in words]:
        return f"the job does not use component {offer.component}: no option {absent[0]}"
    if absent := [text for text in offer.texts if text not in job.text]:
        return f"the job does not use component {offer.component}: its script has no {absent[0]}"
    said = " ".join(words)
    if own := [name for name in offer.environment if name in job.variables or _sets(f"{said}\n{job.text}", name)]:
        return f"the job sets {own[0]} itself"
    if not _exports_all(words):
        return "the job chooses its environment itself with --export"
    if not job.takes_commas and (listed := [name for name, text in offer.environment.items() if "," in text]):
        return f"sbatch --export cannot pass the comma in {listed[0]}; luthier submit can"
    return None


def is_refused(job: JobText) -> bool:
    """Whether the options of a job say that it must be left alone."""
    if REFUSAL not in job.text and not any(REFUSAL in option for option in job.options):
        return False  # almost always, and much faster
    return any(REFUSAL in word for word in _values(job.words, "--comment"))


def _texts(component: Component) -> tuple[str, ...]:
    """What the script of a job that uses the component has in it: its command, and the name of its library."""
    lines = [line.strip() for line in component.command.split("\n")]
    commands = [line for line in lines if line and not line.startswith("#")]
    libraries = [PurePosixPath(one.removeprefix("luthier:")).name for one in component.ld_preload.split()]
    return (*commands, *libraries)


def _sets(text: str, name: str) -> bool:
    """Whether a script or option gives the variable a value, or removes it; in time by the length of the text."""
    if name not in text:
        return False
    if re.search(rf"(?<![\w$]){re.escape(name)}\+?=", text):
        return True
    whole, end = re.compile(rf"\b{re.escape(name)}\b"), 0
    for _ in range(_MOST_REMOVALS):
        if (command := _REMOVAL.search(text, end)) is None:
            break
        end = command.end()
        if whole.search(text, command.start(1), end):
            return True
    return False


def _exports_all(words: Sequence[str]) -> bool:
    return all(value.upper() == "ALL" or value.upper().startswith("ALL,") for value in _values(words, "--export")[-1:])


def _values(words: Sequence[str], option: str) -> list[str]:
    """The values of an option, as `--option=value` or in two words."""
    found = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    return [*found, *(value for word, value in pairwise(words) if word == option)]


def refusal(offer: Offer, approvals: Sequence[Approval]) -> str | None:
    """Why what an experiment found is not set in jobs of other people; None if all of it is approved.

    `approvals` are those of the component. They hold for exactly the component that the administrator looked at.
    """
    component = f"component {offer.component}"
    way_out = f"an administrator can do so: luthier component approve {shlex.quote(offer.component)}"
    if not approvals:
        return f"no variable of {component} is approved for jobs of others; {way_out}"
    approved = {one.variable: one.allowed for one in approvals if one.version == offer.version}
    if not approved:
        return f"it was found with another version of {component} than the approved one; tune again"
    for name, text in offer.environment.items():
        if name not in approved:
            return f"{name} of {component} is not approved for jobs of others; {way_out}"
        if not is_allowed(approved[name], text):
            return f"{name}={text} is not among the values approved for {component}: {approved[name]}"
    return None

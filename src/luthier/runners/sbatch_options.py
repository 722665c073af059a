"""What a batch script asks sbatch for that luthier has to arrange itself, because it sets the same options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from luthier.runners.slurm_text import words_of

_OPTIONS = {"output": "o", "error": "e", "open-mode": "", "job-name": "J"}
_SHORTEST_PREFIX = len("--ou")  # two letters distinguish these four options from all others of sbatch


@dataclass(frozen=True, slots=True)
class ScriptOptions:
    """The options of a script as sbatch would take them: "" where they are not given.

    `output` and `error` are patterns such as `slurm-%j.out`.
    """

    output: str = ""
    error: str = ""
    open_mode: str = ""
    job_name: str = ""

    def encoded(self, job_name: str) -> str:
        """What `slurm_supervisor.py` reads from the file `output`; `job_name` counts if the script gives no name."""
        patterns = ("/dev/null" if one.lower() == "none" else one for one in (self.output, self.error or self.output))
        return "\0".join([self.job_name or job_name, self.open_mode, *patterns])

    @property
    def has_output(self) -> bool:
        """Whether it asks for a file with its output."""
        return bool(self.output or self.error)


def asked(script: str, options: Sequence[str], environment: Mapping[str, str]) -> ScriptOptions:
    """The last value of each option: sbatch reads the script, then its variables, then the command line."""
    found: dict[str, str] = {}
    _read(words_of(script), found)
    for name in _OPTIONS:
        if value := environment.get(f"SBATCH_{name.upper().replace('-', '_')}"):
            found[name] = value
    _read(options, found)
    return ScriptOptions(**{name.replace("-", "_"): value for name, value in found.items()})


def _read(words: Sequence[str], found: dict[str, str]) -> None:
    left = iter(words)
    for word in left:
        for name, letter in _OPTIONS.items():
            option, equals, value = word.partition("=")
            if len(option) >= _SHORTEST_PREFIX and f"--{name}".startswith(option):
                found[name] = value if equals else next(left, "")
            elif letter and word.startswith(f"-{letter}"):
                found[name] = word[2:] or next(left, "")

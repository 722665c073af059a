"""Command lines as data: words, the program behind its launchers, and options. No shell is ever involved."""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

LONGEST_COMMAND = 8192
"""Most characters of a command line that are read."""

MOST_TOKENS = 4_000
"""Most tokens of a script that are read: a step takes up to 1 us, and strangers write scripts that are all tokens."""

_MOST_COMMANDS = 1_000
_MOST_LINES = 10_000
_MOST_WORDS = 256

_TOKEN = re.compile(
    r"""
    (?:[^\S\n]|\\\n)*+(?:
    (?P<comment>\#[^\n]*+)
    |(?P<redirection>\d*+(?:<<<|<<-?|<>|<&|>>|>\||>&|<|>)|&>>?)
    |(?P<separator>\n|&&|\|\||\|&|;;|[;|&()])
    |(?P<word>(?:
        \\.|'[^']*+'|"(?:\\.|[^"\\])*+"
        |\$\((?:[^()\n]++|\([^()\n]*+\))*+\)|\$\{[^{}\n]*+\}|`[^`\n]*+`
        |[^\s\\'"`&|;<>()]
    )++|.))
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"""\\\n|\\(.)|'([^']*+)'|"((?:\\.|[^"\\])*+)\"""", re.DOTALL)
_ESCAPED = re.compile(r"""\\([\\"$`])""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*+\+?=")
_NUMBER = re.compile(r"-[0-9.]")


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a program is called: its path, its options as in `Fields`, and the launchers in front of it."""

    path: str
    options: tuple[tuple[str, tuple[str, ...]], ...]
    launchers: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The name of the program, without its folders."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class _Launcher:
    """A program that starts another one: its options that take values, and how many arguments come before the other."""

    valued: frozenset[str] = frozenset()
    in_pairs: frozenset[str] = frozenset()
    arguments: int = 0


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """The tokens of a shell script without comments and here-documents, each with its kind.

    A `word` is without its quotes, a `redirection` is such as `2>`, a `separator` of commands such as `;`. An unknown
    construct is plain words. Of a long script, only the first tokens are read.
    """
    position, awaits_end = 0, False
    ends: deque[str] = deque()
    lines: dict[str, list[int]] | None = None
    for _ in range(MOST_TOKENS):
        if (match := _TOKEN.match(text, position)) is None:
            return
        position, kind = match.end(), match.lastgroup or ""
        found = match[kind]
        if kind == "word":
            found = _unquoted(found[:LONGEST_COMMAND])
            if awaits_end:
                ends.append(found)
                awaits_end = False
        elif kind == "redirection":
            awaits_end = found.lstrip("0123456789") in {"<<", "<<-"}
        elif kind == "comment":
            continue
        yield kind, found
        while ends and found == "\n" and kind == "separator":
            lines = _line_ends(text) if lines is None else lines
            after = lines.get(ends.popleft(), ())
            place = bisect_right(after, position)
            position = after[place] if place < len(after) else len(text)


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a script, without redirections; lists of values and names of functions are none."""
    return islice(_simple_commands(text), _MOST_COMMANDS)


def _simple_commands(text: str) -> Iterator[list[str]]:
    words, skips, in_list = list[str](), False, False
    for kind, found in tokens(text):
        if in_list:
            in_list = found != ")"
        elif kind == "separator":
            if found == "(" and words:  # NAME=(values) or NAME()
                in_list = words[-1].endswith("=")
            elif words:
                yield words
            words, skips = [], False
        elif kind == "redirection":
            skips = True
        elif skips:
            skips = False
        elif len(words) < _MOST_WORDS:
            words.append(found)
    if words:
        yield words


def invocation(command: str) -> Invocation:
    """How a command line calls its program; launchers in front of it are left out."""
    words = next(simple_commands(command[:LONGEST_COMMAND]), [])
    return invocation_of(words)


def invocation_of(words: Sequence[str]) -> Invocation:
    """The same for a command line that is split into words."""
    left, launchers = list(words), list[str]()
    while left:
        if _ASSIGNMENT.match(left[0]):
            left = left[1:]
            continue
        name = left[0].rpartition("/")[2]
        launcher = _LAUNCHERS.get(name)
        rest = [] if launcher is None else _behind(launcher, left[1:])
        if not rest:
            break
        launchers.append(name)
        left = rest
    if not left:
        return Invocation("", (), tuple(launchers))
    return Invocation(left[0], options_of(left[1:]), tuple(launchers))


def options_of(words: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Every option with its values: `--name=value`, `--name value`, `-n value`, `name=value`; sorted.

    Whether an option takes a value is not known: a word behind it that is no option counts as its value. Arguments
    that belong to no option have the option "".
    """
    found: dict[str, set[str]] = {}
    option, only_arguments = "", False
    for word in words:
        if word == "--" and not only_arguments:
            option, only_arguments = "", True
        elif not only_arguments and word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
            name, equals, value = word.lstrip("-").partition("=")
            found.setdefault(name, set()).add(value)
            option = "" if equals else name
        elif option:
            found[option] = (found[option] - {""}) | {word}
            option = ""
        elif _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            found.setdefault(name, set()).add(value)
        else:
            found.setdefault("", set()).add(word)
    return tuple((name, tuple(sorted(found[name]))) for name in sorted(found))


def _line_ends(text: str) -> dict[str, list[int]]:
    """The positions after the lines of a text, by what the lines say: each may end a here-document."""
    found: dict[str, list[int]] = {}
    position = 0
    for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        position = min(position + len(line) + 1, len(text))
        found.setdefault(line.lstrip("\t").removesuffix("\r"), []).append(position)
    return found


def _unquoted(word: str) -> str:
    return _QUOTED.sub(_content, word) if "'" in word or '"' in word or "\\" in word else word


def _content(match: re.Match[str]) -> str:
    escaped, single, double = match.groups()
    if double is not None:
        return _ESCAPED.sub(r"\1", double.replace("\\\n", ""))
    return escaped or single or ""


def _behind(launcher: _Launcher, words: Sequence[str]) -> list[str]:
    """The words behind a launcher's own options and arguments."""
    position, arguments = 0, launcher.arguments
    while position < len(words):
        word = words[position]
        if word == "--":
            position += 1
            break
        if word in launcher.in_pairs:
            position += 3
        elif word in launcher.valued:
            position += 2
        elif word.startswith("-") and len(word) > 1:
            position += 1
        elif arguments and not _ASSIGNMENT.match(word):
            arguments -= 1
            position += 1
        else:
            break
    return list(words[position:])


def _launcher(valued: str = "", in_pairs: str = "", arguments: int = 0) -> _Launcher:
    return _Launcher(frozenset(valued.split()), frozenset(in_pairs.split()), arguments)


_SRUN = _launcher(
    "-A -B -C -c -D -d -e -G -I -i -J -K -L -M -m -N -n -o -p -q -r -S -T -t -W -w -x --account --bind --chdir "
    "--cluster-constraint --constraint --cores-per-socket --cpu-bind --cpu-freq --cpus-per-gpu --cpus-per-task "
    "--dependency --distribution --error --exclude --export --gpu-bind --gpus --gpus-per-node --gpus-per-task --gres "
    "--hint --input --job-name --mem --mem-bind --mem-per-cpu --mem-per-gpu --mpi --nodefile --nodelist --nodes "
    "--ntasks --ntasks-per-core --ntasks-per-gpu --ntasks-per-node --ntasks-per-socket --output --partition --qos "
    "--relative --reservation --signal --threads --threads-per-core --time --wait"
)
_MPI = _launcher(
    "-H -N -c -f -host -hosts --host -hostfile --hostfile -machinefile --machinefile -n -np --np -npernode --npernode "
    "-npersocket --npersocket -ppn --ppn -perhost -x -wdir --wdir -wd -bind-to --bind-to -map-by --map-by -rank-by "
    "--rank-by -rf --rankfile -cpus-per-proc --cpus-per-proc -output-filename --output-filename -prefix --prefix "
    "-genvlist -envlist -iface -launcher -bootstrap -path -timeout --timeout -tune --tune",
    "-mca --mca -genv -env -gmca --gmca",
)
_PYTHON = _launcher("-X -W")
_SHELL = _launcher("-o +o -O")
_CONTAINER = _launcher(
    "-B --bind -H --home -W --workdir --pwd --env --env-file --overlay -S --scratch --app", arguments=2
)  # `exec` and the image
_LAUNCHERS: Mapping[str, _Launcher] = {
    "sbatch": _SRUN,
    "srun": _SRUN,
    "mpirun": _MPI,
    "mpiexec": _MPI,
    "mpiexec.hydra": _MPI,
    "orterun": _MPI,
    "prterun": _MPI,
    "aprun": _launcher("-n -N -d -S -j -cc -L"),
    "jsrun": _launcher("-n -a -c -g -r -b -d -E -p --nrs --tasks_per_rs --cpu_per_rs --gpu_per_rs --bind"),
    "ibrun": _launcher("-n -o"),
    "env": _launcher("-u --unset -C --chdir -S"),
    "time": _launcher("-o --output -f --format"),
    "exec": _launcher("-a"),
    "command": _launcher(),
    "nohup": _launcher(),
    "nice": _launcher("-n --adjustment"),
    "ionice": _launcher("-c -n --class --classdata"),
    "stdbuf": _launcher("-i -o -e --input --output --error"),
    "setsid": _launcher(),
    "timeout": _launcher("-k -s --kill-after --signal", arguments=1),
    "numactl": _launcher("-i -N -m -C -p --interleave --cpunodebind --membind --physcpubind --preferred"),
    "taskset": _launcher(arguments=1),
    "chrt": _launcher(arguments=1),
    "singularity": _CONTAINER,
    "apptainer": _CONTAINER,
    "python": _PYTHON,
    "python2": _PYTHON,
    "python3": _PYTHON,
    "perl": _launcher("-I"),
    "Rscript": _launcher(),
    "julia": _launcher("-t --threads -p --procs -J --project"),
    "bash": _SHELL,
    "sh": _SHELL,
}

"""Small random changes of the source: does a test fail? `python -m benchmarks.mutants --room statistics --seed 1`.

The tests of the room, and those that import it, run once in a copy of the tree in which each function notes which test
entered it, also in other processes. Then the quickest tests of its function run for each mutant, one after the other.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAIRS = "Lt LtE, LtE Lt, Gt GtE, GtE Gt, Eq NotEq, NotEq Eq, Is IsNot, IsNot Is, In NotIn, NotIn In, And Or, Or And"
ARITHMETIC = "Add Sub, Sub Add, Mult Div, Div Mult, FloorDiv Mult, Mod Mult, Pow Mult"
SWAPPED: dict[str, str] = dict(pair.split() for pair in f"{PAIRS}, {ARITHMETIC}".split(", "))
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
NOT_CHANGED = re.compile(r"kill|unlink|rmtree|rmdir|_log\.")  # could harm the machine, or changes a log only
NOTES = """
import os
def entered(place, seen=set()):
    if (test := os.environ.get("PYTEST_CURRENT_TEST")) and (test, place) not in seen:
        seen.add((test, place))
        with open(os.path.join(os.environ["MUTANTS_NOTES"], str(os.getpid())), "a") as note:
            note.write(f"{test.rpartition(' ')[0]}\\t{place}\\n")
"""
Tests = dict[tuple[str, int, int], set[tuple[float, str]]]  # file, first and last line of a function: seconds and name


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may replace one."""
    match node:
        case ast.Compare(left, [first, *rest], others) if type(first).__name__ in SWAPPED:
            yield ast.Compare(left, [getattr(ast, SWAPPED[type(first).__name__])(), *rest], others)
            yield ast.UnaryOp(ast.Not(), node)
        case ast.BinOp(left, operator, right) if type(operator).__name__ in SWAPPED:
            yield ast.BinOp(left, getattr(ast, SWAPPED[type(operator).__name__])(), right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(getattr(ast, SWAPPED[type(operator).__name__])(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Name(name, ast.Load()) if name in NAMES:
            yield ast.Name(NAMES[name])
        case ast.IfExp(test, body, otherwise):
            yield ast.IfExp(test, otherwise, body)
        case ast.Subscript(value, ast.Slice(low, high, None)):
            later, longer = (bound and ast.BinOp(bound, ast.Add(), ast.Constant(1)) for bound in (low, high))
            yield from (ast.Subscript(value, ast.Slice(*bounds)) for bounds in ((later, high), (low, longer)))
        case ast.Call(ast.Name("range"), [end]) | ast.Call(ast.Name("range"), [_, end, *_]):
            more = ast.BinOp(end, ast.Add(), ast.Constant(1))
            yield ast.Call(node.func, [more if each is end else each for each in node.args], [])
        case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.Return(ast.AST()) | ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()


def nodes(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Those that may change: without annotations, decorators and what stands in texts."""
    if isinstance(node, (ast.expr, ast.stmt)):
        yield node
    for name, field in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list") and not isinstance(node, ast.JoinedStr):
            for child in field if isinstance(field, list) else [field]:
                yield from nodes(child) if isinstance(child, ast.AST) else ()


def chosen(source: Path, room: str, count: int, seed: int) -> list[tuple[str, int, str, str]]:
    """Random mutants of a room, one in a line at most: file, line, what changes, the new source."""
    found: defaultdict[tuple[str, int], list[tuple[str, str]]] = defaultdict(list)
    for path in sorted((source / "luthier" / room).rglob("*.py")):
        lines = (text := path.read_text(encoding="utf-8")).splitlines(keepends=True)
        for node in nodes(tree := ast.parse(text)) if path.name != "contract.py" else ():  # that is a suite of tests
            ends = ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
            first, last = (len("".join(lines[: at - 1]) + lines[at - 1].encode()[:to].decode()) for at, to in ends)
            for new in changes(node) if not NOT_CHANGED.search(lines[node.lineno - 1]) else ():
                said = ast.unparse(new) if isinstance(new, ast.Pass) else f"({ast.unparse(new)})"
                if ast.dump(ast.parse(mutated := text[:first] + said + text[last:])) != ast.dump(tree):
                    change = f"{' '.join(text[first:last].split())} => {said}"
                    found[str(path.relative_to(source)), node.lineno].append((change, mutated))
    rng = random.Random(seed)
    return [(*at, *rng.choice(found[at])) for at in rng.sample(sorted(found), min(count, len(found)))]


def run_tests(copy: Path, *arguments: str, timeout_s: int = 180) -> tuple[int, str]:
    """Exit code and output of pytest; root runs it apart, so that a mutant cannot signal other processes."""
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] if os.geteuid() == 0 else []
    limits = ["timeout", str(timeout_s), *apart, "prlimit", "--data=6000000000", "nice", "-n", "19"]
    pytest = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    variables = {**os.environ, "PYTHONPATH": str(copy / "src"), "MUTANTS_NOTES": str(copy / ".notes")}
    done = subprocess.run([*limits, *pytest, *arguments], check=False, cwd=copy, env=variables, stdout=-1, text=True)
    return done.returncode, done.stdout


def tests_of_functions(copy: Path, room: str, paths: list[str]) -> Tests:
    """The tests that enter each function of a room and pass."""
    sources = {path: path.read_text(encoding="utf-8") for path in (copy / "src" / "luthier" / room).rglob("*.py")}
    (copy / ".notes").mkdir()
    (copy / "src" / "mutants_notes.py").write_text(NOTES, encoding="utf-8")
    for path, text in sources.items():
        for node in ast.walk(tree := ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                place = f"{path.relative_to(copy / 'src')}\t{node.lineno}\t{node.end_lineno}"
                node.body[:0] = ast.parse(f"__import__('mutants_notes').entered({place!r})").body
        path.write_text(ast.unparse(tree), encoding="utf-8")
    _, said = run_tests(copy, "-vv", "--durations=0", "--durations-min=0", *paths, timeout_s=3600)
    for path, text in sources.items():
        path.write_text(text, encoding="utf-8")
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE))
    seconds: defaultdict[str, float] = defaultdict(lambda: 0.01)  # of call, setup and teardown
    for took, test in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +(.*)$", said, re.MULTILINE):
        seconds[test] += float(took)
    found: Tests = defaultdict(set)
    for line in {line for path in (copy / ".notes").iterdir() for line in path.read_text().splitlines()}:
        test, file, first, last = line.split("\t")
        if test not in failed:
            found[file, int(first), int(last)].add((seconds[test], test))
    return found


def verdict(copy: Path, mutant: tuple[str, int, str, str], tests: Tests, budget_s: float) -> str:
    """Run the quickest tests of the innermost function that any test enters, else of the file."""
    file, line, _, new = mutant
    around = [place for place in tests if place[0] == file and place[1] <= line <= place[2]]
    places = [max(around)] if around else [place for place in tests if place[0] == file]
    known, few = sorted({test for place in places for test in tests[place]}), list[str]()
    for seconds, test in known:
        budget_s -= seconds
        few += [test] if budget_s > 0.0 or not few else []
    path = copy / "src" / file
    before = path.read_text(encoding="utf-8")
    path.write_text(new, encoding="utf-8")
    code, said = run_tests(copy, "-x", *few) if few else (0, "")
    path.write_text(before, encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    reason = failed[1] if failed else "the time limit" if code == 124 else f"exit code {code}"
    return f"survived {len(few)} of {len(known)} tests" if code == 0 else f"killed by {reason}"


def main() -> None:
    """Print a line for each mutant: number, place, what changes, verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--room", required=True, help="a folder of src/luthier")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=25, help="number of mutants")
    parser.add_argument("--tests", nargs="*", help="test files (default: of the room, and those that import it)")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests for a mutant")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(shutil.copytree(ROOT, Path(folder, "copy"), ignore=shutil.ignore_patterns(".*", "__pycache__")))
        importing = re.compile(rf"^(from|import) luthier\.{asked.room}\b", re.MULTILINE)
        beside = [str(path) for path in (copy / "tests").rglob("test_*.py") if importing.search(path.read_text())]
        tests = tests_of_functions(copy, asked.room, asked.tests or [f"tests/{asked.room}", *sorted(beside)])
        for number, mutant in enumerate(chosen(copy / "src", asked.room, asked.count, asked.seed), 1):
            file, line, change, _ = mutant
            print(f"{number}\t{file}:{line}\t{change}\t{verdict(copy, mutant, tests, asked.budget)}", flush=True)


if __name__ == "__main__":
    main()

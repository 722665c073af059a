"""Why runs gave no number, counted and told in one line."""

from collections.abc import Sequence

from luthier.result.failures import reasons_of, reasons_text
from luthier.trial import Completed, Config, Failed, Lost, Outcome, Run, TimedOut


def runs_of(outcomes: Sequence[Outcome | None]) -> list[Run]:
    return [
        Run(at, at, "search", Config({"x": at}), 0.0, 2 * at, 2 * at + 1, outcome=outcome)
        for at, outcome in enumerate(outcomes)
    ]


def test_only_runs_that_ended_without_a_number_are_counted() -> None:
    runs = runs_of([None, Completed(1.0), Failed("exit code 3: no file-7"), None, Failed("exit code 3: no file-12")])
    assert [(reason.text, reason.runs) for reason in reasons_of(runs)] == [("failed: exit code 3: no file-7", 2)]
    assert reasons_of(runs)[0].first == runs[2]
    assert reasons_text(runs) == "failed: exit code 3: no file-7"
    assert reasons_of(runs_of([None, Completed(1.0)])) == []


def test_exit_codes_differ_and_numbers_in_messages_do_not() -> None:
    runs = runs_of([Failed("exit code 3: at 7"), Failed("exit code 4: at 7"), Failed("exit code 4: at 8")])
    said = [(reason.text, reason.runs) for reason in reasons_of(runs)]
    assert said == [("failed: exit code 4: at 7", 2), ("failed: exit code 3: at 7", 1)]


def test_the_three_most_common_reasons_are_told_and_the_rest_is_counted() -> None:
    outcomes: Sequence[Outcome] = [TimedOut("10 s")] * 4 + [Failed("a")] * 3 + [Failed("b")] * 2
    assert reasons_text(runs_of(outcomes)) == "timed out: 10 s (4 runs); failed: a (3 runs); failed: b (2 runs)"
    told = reasons_text(runs_of([*outcomes[:-1], Lost("node 1"), Lost("node 2")]))
    assert told == "timed out: 10 s (4 runs); failed: a (3 runs); failed: b (1 run); other reasons (2 runs)"


def test_rare_reasons_are_one_sum() -> None:
    """Twelve reasons: the ten most common ones are listed, the runs of the two others counted together."""
    common: Sequence[Outcome] = [Failed(f"reason {letter}") for letter in "abcdefghij" for _ in range(2)]
    runs = runs_of([*common, Failed("rare"), Failed("rarer")])
    found = reasons_of(runs)
    assert [(reason.text, reason.runs) for reason in found[9:]] == [("failed: reason j", 2), ("other reasons", 2)]
    assert found[10].first is None
    assert sum(reason.runs for reason in found) == len(runs)
    assert reasons_text(runs).endswith("; other reasons (16 runs)")

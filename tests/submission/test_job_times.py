from luthier.submission.job_times import parse_ended, squeue_command

MARK = "|5f3a|"


def row(*fields: str) -> str:
    return "".join(f"{field}{MARK}" for field in fields) + "\n"


def test_ended_jobs_with_the_number_of_a_decision() -> None:
    text = row("7", "ada", "COMPLETED", "100", "160", "luthier:5", "(null)") + row(
        "8", "bob", "FAILED", "100", "170", "my own", "luthier:6"
    )
    first, second = parse_ended(text, MARK)
    assert (first.job_id, first.user, first.state, first.elapsed_s, first.decision) == (
        "7",
        "ada",
        "COMPLETED",
        60.0,
        5,
    )
    assert (second.elapsed_s, second.decision) == (70.0, 6)


def test_other_jobs_are_left_out() -> None:
    assert parse_ended(row("7", "ada", "COMPLETED", "1", "2", "(null)", "(null)"), MARK) == []
    assert parse_ended(row("7", "ada", "COMPLETED", "1", "2", "see luthier:5", "(null)"), MARK) == []
    assert parse_ended("", MARK) == []


def test_a_job_that_never_began_has_no_time() -> None:
    (ended,) = parse_ended(row("7", "ada", "CANCELLED", "N/A", "160", "luthier:5", "(null)"), MARK)
    assert ended.elapsed_s is None


def test_a_comment_cannot_forge_another_job() -> None:
    forged = "x\n9|bob|COMPLETED|100|101|luthier:6|(null)|"
    assert parse_ended(row("7", "ada", "COMPLETED", "1", "2", forged, "(null)"), MARK) == []
    half = row("7", "ada", "COMPLETED", "1", "2", "luthier:5", "(null)") + "8" + MARK
    assert len(parse_ended(half, MARK)) == 1


def test_the_command_asks_for_all_fields_and_has_no_text_of_users() -> None:
    command = squeue_command(MARK)
    assert command[0] == "squeue"
    assert command[-1].count(MARK) == 7

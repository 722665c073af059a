"""TotalTime: steps, clients that come and go, and the history."""

from itertools import combinations, pairwise
from statistics import fmean

import pytest

from luthier.online.total_time import MOST_POINTS, Ran, TotalTime, slowest_of_part


def joined(*clients: str) -> TotalTime:
    total = TotalTime()
    for client in clients:
        total.join(client)
    return total


def test_the_slowest_client_counts() -> None:
    total = joined("a", "b")
    for _ in range(3):
        total.add("a", 1.0, "other")
        total.add("b", 2.0, "other")
    assert (total.steps, total.total) == (3, 6.0)


def test_a_step_is_complete_when_all_have_reported() -> None:
    total = joined("a", "b")
    total.add("a", 1.0, "other")
    total.add("a", 5.0, "other")
    assert total.steps == 0
    closed = total.add("b", 3.0, "best")
    assert [(step.number, step.worst, step.ran) for step in closed] == [(1, 3.0, "other")]
    assert [step.worst for step in total.add("b", 1.0, "other")] == [5.0]


def test_a_client_that_joins_later_starts_at_the_newest_step() -> None:
    total = joined("a")
    for _ in range(10):
        total.add("a", 1.0, "other")
    total.join("b")
    total.add("a", 1.0, "other")
    total.add("b", 4.0, "other")
    assert (total.steps, total.total) == (11, 14.0)


def test_a_client_that_leaves_is_not_waited_for() -> None:
    total = joined("a", "b")
    for _ in range(5):
        total.add("a", 1.0, "other")
    assert total.steps == 0
    assert len(total.leave("b")) == 5
    assert (total.steps, total.total) == (5, 5.0)
    assert total.leave("nobody") == []


def test_a_client_that_is_far_behind_no_longer_counts() -> None:
    total = joined("fast", "faster", "slow")
    for _ in range(3000):
        total.add("fast", 1.0, "other")
        total.add("faster", 1.0, "other")
    assert total.steps > 1000
    total.add("slow", 9.0, "other")
    total.add("fast", 1.0, "other")
    total.add("faster", 1.0, "other")
    assert total.steps <= 3002


def test_the_default_is_compared_within_a_search_only() -> None:
    total = joined("a")
    total.add("a", 4.0, "default")
    total.add("a", 2.0, "default")
    total.add("a", 1.0, "other")
    assert total.compared == (3, 7.0, 9.0)
    total.begin_search()
    total.add("a", 1.0, "other")
    assert total.compared == (3, 7.0, 9.0)
    assert total.steps == 4
    total.add("a", 8.0, "default")
    assert total.compared == (5, 16.0, 25.0)


def all_report(total: TotalTime, clients: int, value: float, ran: Ran) -> None:
    for number in range(clients):
        total.join(f"client {number}")
    for number in range(clients):
        total.add(f"client {number}", value, ran)


def test_steps_of_fewer_clients_are_compared_with_the_slowest_of_as_many() -> None:
    total = joined(*"abcd")
    for client, value in zip("abcd", (1.0, 2.0, 3.0, 6.0), strict=True):
        total.add(client, value, "default")
    total.leave("a")
    total.leave("b")
    for client in "cd":
        total.add(client, 1.0, "other")
    pairs = [max(pair) for pair in combinations((1.0, 2.0, 3.0, 6.0), 2)]
    assert total.compared[:2] == (2, 7.0)
    assert total.compared[2] == pytest.approx(6.0 + fmean(pairs))
    total.leave("c")
    total.add("d", 1.0, "other")
    assert total.default_step == 3.0  # the mean


@pytest.mark.parametrize("count", range(1, 7))
def test_the_slowest_of_a_part_is_the_mean_over_all_parts(count: int) -> None:
    values = (1.0, 1.5, 4.0, 4.0, 9.0, 30.0)
    assert slowest_of_part(values, count) == pytest.approx(fmean(map(max, combinations(values, count))))


@pytest.mark.parametrize(
    ("clients", "compared"), [(3, (2, 6.0, 8.0)), (4, (2, 6.0, 8.0)), (5, (2, 6.0, 8.0)), (6, (1, 4.0, 4.0))]
)
def test_steps_of_at_most_a_third_more_clients_are_compared(clients: int, compared: tuple[int, float, float]) -> None:
    total = TotalTime()
    all_report(total, 4, 4.0, "default")
    total.forget_clients()
    all_report(total, clients, 2.0, "other")
    assert total.compared == compared


def test_the_default_is_restored_for_each_number_of_clients() -> None:
    total = TotalTime()
    all_report(total, 2, 4.0, "default")
    all_report(total, 8, 6.0, "default")
    restored = TotalTime(steps=total.steps, defaults=total.default_steps)
    assert restored.default_step == total.default_step == 6.0
    all_report(restored, 2, 1.0, "other")
    assert restored.compared == (1, 1.0, 4.0)


def test_very_many_numbers_of_clients_are_counted_without_a_comparison() -> None:
    total = TotalTime()
    for clients in range(1, 60):
        all_report(total, clients, 1.0, "default")
    assert total.steps == 59
    assert len(total.default_steps) < 40


def test_the_history_is_thinned_out_evenly() -> None:
    total = joined("a")
    for number in range(1, 5001):
        total.add("a", float(number), "other")
    assert MOST_POINTS / 2 <= len(total.history) <= MOST_POINTS
    steps = [step for step, _ in total.history]
    assert len({late - early for early, late in pairwise(steps)}) == 1
    assert all(value == step for step, value in total.history)

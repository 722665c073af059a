"""Hypothesis strategies for runs and JSON values."""

from collections.abc import Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from luthier.trial import Completed, Config, Failed, Json, Lost, Outcome, Pruned, Run, TimedOut

# Every example uses its own experiment, so that all can share one store; several classes inherit the same test.
examples = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)

texts = st.text(st.characters(exclude_categories=()))
short_texts = st.text(st.characters(exclude_categories=()), max_size=200)
_finite = st.floats(allow_nan=False, allow_infinity=False)
_values = st.one_of(st.booleans(), st.integers(), _finite, texts)
_bounds = st.none() | _finite
_outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Completed, _finite, st.lists(_finite, max_size=2).map(tuple)),
    st.builds(Failed, texts),
    st.builds(TimedOut, texts, _bounds),
    st.builds(Pruned, texts, _bounds),
    st.builds(Lost, texts),
)
jsons: st.SearchStrategy[Json] = st.recursive(
    st.none() | _values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def ended_runs(draw: st.DrawFn) -> Sequence[Run]:
    """Runs that all ended, in random order."""
    count = draw(st.integers(1, 4))
    finish = draw(st.permutations(range(count)))
    return [
        Run(
            number=number,
            trial=draw(st.integers(0, 9)),
            purpose=draw(st.sampled_from(["default", "search", "verify"])),
            config=Config(draw(st.dictionaries(texts, _values, max_size=4))),
            submitted_at=draw(_finite),
            submit_order=number,
            finish_order=count + finish[number],
            started_at=draw(_bounds),
            duration_s=draw(_bounds),
            outcome=draw(_outcomes),
            metrics=draw(st.dictionaries(texts, _finite, max_size=3)),
            logs=draw(st.none() | texts),
            uid=draw(st.text("0123456789abcdef", max_size=12)),
            batch_job=draw(st.none() | texts),
        )
        for number in range(count)
    ]

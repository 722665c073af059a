"""The explanation of an experiment over REST: in its details and in its report."""

from typing import Any, cast

from tests.server.server_fixtures import Running

from luthier.result.explanation import Explanation, Observation
from luthier.trial import Completed

API = "/api/v1"
EXPLAINED = Explanation(
    1.0,
    Observation({"LEVEL": 1}, {"posix_writes": 65536.0, "wall_s": 2.0}),
    Observation({"LEVEL": 4}, {"posix_writes": 64.0, "wall_s": 1.99}),
    ("<b>perf</b> is not installed.",),
)
SENTENCE = "It makes 64 POSIX writes instead of 65,536: 1,024 times fewer."


def test_it_is_in_the_details_and_in_the_report(server: Running) -> None:
    number = server.launch()
    server.play(number, [Completed(2.0), Completed(1.0)])

    def detail() -> dict[str, Any]:
        return cast("dict[str, Any]", server.ask("GET", f"{API}/experiments/{number}").json)

    assert detail()["explanation"] is None
    server.store.explanations.put(number, EXPLAINED.to_json())
    found = detail()["explanation"]
    assert found["sentences"] == [SENTENCE]
    assert [(one["name"], one["best_text"], one["is_large"]) for one in found["differences"]] == [
        ("posix_writes", "64", True),
        ("wall_s", "1.99 s", False),
    ]
    assert found["notes"] == ["<b>perf</b> is not installed."]
    report = server.ask("GET", f"{API}/experiments/{number}/report").body.decode()
    assert SENTENCE in report
    assert "<b>perf" not in report
